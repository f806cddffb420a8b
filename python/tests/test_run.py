"""What is read of a run, against what the program itself measured."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

import stealgrid
from stealgrid.columns import TABLES


def test_means_over_the_jobs_are_those_of_metrics_json(quickstart: stealgrid.Run) -> None:
    jobs = quickstart.jobs
    stored = json.loads((quickstart.folder / "metrics.json").read_text())["metrics"]

    assert len(jobs) == stored["jobs"] == 2000
    assert jobs["wait_s"].mean() == pytest.approx(stored["wait_mean_s"], rel=1e-9)
    assert jobs["wait_s"].max() == pytest.approx(stored["wait_max_s"])
    assert jobs["turnaround_s"].mean() == pytest.approx(stored["turnaround_mean_s"], rel=1e-9)
    assert jobs["end_s"].max() - jobs["submit_s"].min() == pytest.approx(stored["makespan_s"])
    work = (jobs["processors"] * jobs["run_time_s"]).sum()
    assert work == pytest.approx(stored["work"])
    busy = work / (quickstart.sites["processors"].sum() * stored["makespan_s"])
    assert busy == pytest.approx(stored["utilization"])
    assert (jobs["exec_site"] != jobs["home_site"]).sum() == stored["away_from_home_jobs"]
    assert quickstart.metrics["wait_mean_s"] == stored["wait_mean_s"]
    assert quickstart.complete


def test_times_of_a_job_add_up(quickstart: stealgrid.Run) -> None:
    jobs = quickstart.jobs

    assert (jobs["submit_s"] + jobs["wait_s"] - jobs["start_s"]).abs().max() < 1e-5
    assert (jobs["start_s"] + jobs["run_time_s"] - jobs["end_s"]).abs().max() < 1e-5
    assert jobs["exec_site"].between(1, 7).all()


def test_migrations_steals_and_events_tell_of_the_same_jobs(quickstart: stealgrid.Run) -> None:
    moved = quickstart.jobs.groupby(["home_site", "exec_site"]).size()
    told = quickstart.migrations.set_index(["home_site", "exec_site"])["jobs"]
    assert told.to_dict() == moved.to_dict()
    assert len(quickstart.steals) == quickstart.jobs["hops"].sum() > 0

    events = quickstart.events(["started", "granted"])
    assert set(events["kind"]) == {"started", "granted"}
    started = events[events["kind"] == "started"].set_index("job")["at_s"]
    starts = quickstart.jobs.set_index("job")["start_s"]
    assert (started.sort_index() - starts.sort_index()).abs().max() < 1e-6
    assert len(quickstart.events()) == quickstart.manifest["events"]
    assert quickstart.events(["no such kind"]).empty


def test_every_column_is_described(quickstart: stealgrid.Run) -> None:
    for table in ("jobs", "migrations", "steals", "sites"):
        frame: pd.DataFrame = getattr(quickstart, table)
        assert set(frame.columns) == set(quickstart.describe(table).index), table
        assert set(TABLES[table][0]._fields) >= {"unit", "meaning"}
    assert quickstart.describe("jobs").loc["wait_s", "unit"] == "s"
    with pytest.raises(ValueError, match="no table 'job'"):
        quickstart.describe("job")


def test_a_run_without_steals_has_a_frame_without_rows(
    simulate: Callable[..., stealgrid.Run], quickstart: stealgrid.Run
) -> None:
    local = simulate("--strategy", "local")

    assert local.steals.empty
    assert list(local.steals.columns) == list(quickstart.steals.columns)


def test_what_is_no_run_is_refused(quickstart: stealgrid.Run, tmp_path: Path) -> None:
    with pytest.raises(stealgrid.ResultsError, match=r"no manifest\.json"):
        stealgrid.Run(tmp_path)

    copy = tmp_path / "copy"
    shutil.copytree(quickstart.folder, copy)
    (copy / "manifest.json").write_text('{"format": 99}')
    with pytest.raises(stealgrid.ResultsError, match="not of format 3"):
        stealgrid.Run(copy)

    shutil.copy(quickstart.folder / "manifest.json", copy)
    jobs = (copy / "jobs.csv").read_text().replace("waiting_time", "waited")
    (copy / "jobs.csv").write_text(jobs)
    with pytest.raises(stealgrid.ResultsError, match="no column waiting_time"):
        _ = stealgrid.Run(copy).jobs
