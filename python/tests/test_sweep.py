"""A sweep from its database and from its exports, and comparisons against what `stealgrid study` says."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import stealgrid
from stealgrid.sweep import _observed, holm, sign_flips

Program = Callable[..., object]

LOCAL = "local"


@pytest.fixture(scope="module")
def database(program: Program, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sweep")
    database = folder / "small.db"
    program("sweep", "configs/sweeps/small.toml", "--out", database, "--jobs", "2")
    return database


def test_database_and_exports_say_the_same(program: Program, database: Path, tmp_path: Path) -> None:
    sweep = stealgrid.Sweep(database)
    assert sweep.parameters == ["network.delay", "strategy.name", "workload.load_factor"]
    assert (len(sweep.runs), len(sweep.failed)) == (96, 0)
    assert sweep.replicates == ["workload.load_factor"]
    assert sweep.about["name"] == "small"

    for file, options in (("small.csv", []), ("small.csv.zst", ["--format", "study", "--digits", "12"])):
        program("export", database, "--out", tmp_path / file, *options)
        again = stealgrid.Sweep(tmp_path / file)
        assert again.parameters == sweep.parameters, file
        assert set(again.metrics) == set(sweep.metrics), file
        for column in (*sweep.parameters, "wait_mean_s", "jobs", "processors"):
            ours, theirs = sweep.runs[column], again.runs[column]
            if pd.api.types.is_numeric_dtype(ours):
                np.testing.assert_allclose(theirs.astype(float), ours.astype(float), rtol=1e-9, err_msg=f"{file} {column}")
            else:
                assert list(theirs) == list(ours), (file, column)


def test_a_row_is_the_run_that_simulate_makes(
    database: Path, simulate: Callable[..., stealgrid.Run]
) -> None:
    runs = stealgrid.Sweep(database).runs
    row = runs[(runs["strategy.name"] == "st:50") & (runs["network.delay"] == "5m") & (runs["workload.load_factor"] == 1.0)]

    run = simulate("--strategy", "st:50", "--count", "1000")

    for metric in ("wait_mean_s", "makespan_s", "stolen_jobs"):
        assert row[metric].item() == pytest.approx(run.metrics[metric]), metric


def test_paired_differences_are_those_of_a_document(program: Program, database: Path, tmp_path: Path) -> None:
    """The same change in percent, and the same difference, as `stealgrid study` writes into a page."""
    compared = stealgrid.Sweep(database).compare("wait_mean_s", LOCAL)
    selected = "metric=wait_mean_s series=st:50 against=local delay=5m"
    template = tmp_path / "page.md.in"
    template.write_text(
        f'+++\npage = "page.md"\n[data]\nsmall = "{database}"\n+++\n# Page\n\n'
        f"ratio {{{{ratio {selected} plain}}}} difference {{{{difference {selected} unit=s digits=6 plain}}}}\n"
    )
    program("study", template, "--out", tmp_path / "page.md")
    page = (tmp_path / "page.md").read_text()
    found = re.search(r"ratio (\S+) ?% difference (\S+) ", page)
    assert found, page
    ratio, difference = (float(text.replace("−", "-").replace(",", "")) for text in found.groups())

    row = compared[(compared["series"] == "st:50") & (compared["network.delay"] == "5m")].iloc[0]

    assert (row["pairs"], row["p"]) == (3, 0.25)
    assert row["change_percent"] == pytest.approx(ratio, abs=0.5)
    assert row["difference"] == pytest.approx(difference, rel=1e-4)
    assert row["low"] <= row["difference"] <= row["high"]
    assert row["mean"] - row["baseline_mean"] == pytest.approx(row["difference"])
    assert len(compared) == 3 * 8
    assert (compared["p_holm"] >= compared["p"]).all()


def test_what_cannot_be_compared_is_said(database: Path, tmp_path: Path) -> None:
    sweep = stealgrid.Sweep(database)
    with pytest.raises(ValueError, match="no series 'nobody'"):
        sweep.compare("wait_mean_s", "nobody")
    with pytest.raises(ValueError, match="no metric 'wait'"):
        sweep.compare("wait", LOCAL)
    with pytest.raises(ValueError, match="no parameter 'jobs'"):
        sweep.compare("wait_mean_s", LOCAL, replicates=["jobs"])
    with pytest.raises(stealgrid.ResultsError, match="there is no"):
        stealgrid.Sweep(tmp_path / "none.db")
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    with pytest.raises(stealgrid.ResultsError, match="neither a database"):
        stealgrid.Sweep(tmp_path / "other.csv")


def test_copies_of_one_run_are_one_observation() -> None:
    rng = np.random.default_rng(1)
    assert sign_flips(_observed(np.full(20, 3.0), np.full(20, 1.0)), rng) == 1.0
    assert len(_observed(np.arange(20.0) + 2, np.arange(20.0))) == 20


def test_flips_of_signs_are_counted_exactly() -> None:
    rng = np.random.default_rng(1)
    assert sign_flips(np.array([1.0, 2.0, 3.0]), rng) == 2 / 8
    assert sign_flips(np.array([1.0, -1.0]), rng) == 1.0
    assert sign_flips(np.zeros(5), rng) == 1.0
    # -1, 2, 3 sums to 4: as far are 4 and 6, and their opposites.
    assert sign_flips(np.array([-1.0, 2.0, 3.0]), rng) == 4 / 8
    assert sign_flips(np.full(40, 1.0), rng) < 1e-4


def test_holm_multiplies_by_what_is_left_and_never_falls() -> None:
    corrected = holm(np.array([0.04, 0.01, 0.03]))

    np.testing.assert_allclose(corrected, [0.06, 0.03, 0.06])
    np.testing.assert_allclose(holm(np.array([0.9, 0.8])), [1.0, 1.0])
