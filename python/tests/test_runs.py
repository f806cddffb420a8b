"""Several runs beside each other, each with its status."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import stealgrid


def said(run: stealgrid.Run, to: Path, manifest: dict[str, Any], metrics: dict[str, Any]) -> Path:
    """The same folder with other words in its documents."""
    shutil.copytree(run.folder, to)
    for name, values in (("manifest.json", manifest), ("metrics.json", metrics)):
        document = json.loads((to / name).read_text())
        (to / name).write_text(json.dumps({**document, **values}))
    return to


def test_each_run_and_each_of_its_jobs_has_the_status_of_the_run(
    simulate: Callable[..., stealgrid.Run], quickstart: stealgrid.Run, tmp_path: Path
) -> None:
    local = simulate("--strategy", "local", "--count", "100")
    late = {"status": "not_measured", "reason": "messages were late"}
    early = {"status": "partial", "reason": "interrupted"}
    folders = [
        quickstart.folder,
        local.folder,
        said(local, tmp_path / "late", late, late),
        said(local, tmp_path / "early", early, {**early, "verdict": "partial"}),
        said(local, tmp_path / "wrong", {}, {"verdict": "violated"}),
    ]
    runs = stealgrid.Runs(folders)

    expected = ["complete", "complete", "not_measured", "partial", "violated"]
    assert list(runs.runs["status"]) == expected
    assert list(runs.runs["reason"].fillna("")) == ["", "", "messages were late", "interrupted", ""]
    assert list(runs.runs["folder"]) == [str(folder) for folder in folders]
    assert list(runs.runs["strategy"])[1:] == ["local"] * 4
    assert runs.runs["wait_mean_s"][1] == local.metrics["wait_mean_s"]

    counted = runs.jobs.groupby("folder", sort=False)["status"].agg(["first", "nunique", "size"])
    assert list(counted["first"]) == expected
    assert list(counted["nunique"]) == [1] * 5
    assert list(counted["size"]) == [2000, 100, 100, 100, 100]
    complete = runs.jobs[runs.jobs["status"] == "complete"]
    assert complete.groupby("folder", sort=False)["wait_s"].mean().iloc[1] == pytest.approx(local.jobs["wait_s"].mean())
    assert stealgrid.Run(folders[4]).status == "violated"


def test_one_folder_is_no_list_of_folders(quickstart: stealgrid.Run) -> None:
    with pytest.raises(TypeError, match="a list of folders"):
        stealgrid.Runs(str(quickstart.folder))
    with pytest.raises(stealgrid.ResultsError, match="no run"):
        stealgrid.Runs([])
