"""Tables for LaTeX: what is in them, and that nothing in them means something there."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

import stealgrid

Program = Callable[..., object]


def test_a_table_has_rules_and_text_that_means_nothing_in_latex() -> None:
    frame = pd.DataFrame(
        {"series": ["st:50, a_b", "50 % & {x}"], "pairs": [3, 12_000], "change_percent": [-2.0456, float("nan")], "p": [0.25, 1.0]}
    )

    table = stealgrid.booktabs(frame, columns={"series": "series", "pairs": "pairs", "change_percent": "change, %", "p": "p"})

    assert table == (
        "\\begin{tabular}{lrrr}\n\\toprule\nseries & pairs & change,\\,\\% & p \\\\\n\\midrule\n"
        "st:50, a\\_b & 3 & $-$2.05 & 0.250 \\\\\n50\\,\\% \\& \\{x\\} & 12,000 & -- & 1 \\\\\n\\bottomrule\n\\end{tabular}\n"
    )


@pytest.mark.parametrize(
    ("value", "written"),
    [(4853.2, "4,853"), (448.04, "448"), (39.96, "40.0"), (0.01234, "0.0123"), (-1234.5, "$-$1,234"), (2.0, "2"), (0.0, "0"), (float("inf"), r"$\infty$")],
)
def test_numbers_have_the_digits_that_say_something(value: float, written: str) -> None:
    assert f"\n{written} \\\\\n" in stealgrid.booktabs(pd.DataFrame({"x": [value]}))


def test_what_cannot_be_a_table_is_said() -> None:
    frame = pd.DataFrame({"a": [1]})
    with pytest.raises(ValueError, match="no column 'b'; there are \\['a'\\]"):
        stealgrid.booktabs(frame, columns=["b"])
    with pytest.raises(ValueError, match="below 1"):
        stealgrid.booktabs(frame, digits=0)


def test_a_comparison_becomes_a_table_without_jinja2(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    database = tmp_path / "small.db"
    program("sweep", "configs/sweeps/small.toml", "--out", database, "--jobs", "2")

    compared = stealgrid.Sweep(database).compare("wait_mean_s", "local")
    table = stealgrid.booktabs(compared)

    assert table.startswith("\\begin{tabular}{llrrrrrrrrr}\n\\toprule\nnetwork.delay & series & pairs & mean & baseline\\_mean & ")
    assert table.count("\\\\\n") == 1 + len(compared)
