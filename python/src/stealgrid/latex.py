"""Data frames as tables for LaTeX, with the rules of booktabs; ``DataFrame.to_latex`` needs jinja2 and escapes nothing."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': "''",
    **{letter: f"\\{letter}" for letter in "{}$&#_%"},
}
NOTHING = "--"


def booktabs(
    frame: pd.DataFrame, *, columns: Sequence[str] | Mapping[str, str] | None = None, digits: int = 3
) -> str:
    """A ``tabular`` of a data frame, such as ``Sweep.compare`` gives, without a float around it; it needs ``booktabs``.

    ``columns`` chooses and orders columns; a mapping also names them. Text is escaped, in names, too. Numbers are right, have
    ``digits`` significant digits and all before the point; whole ones keep theirs. What is missing has a dash.
    """
    names = dict(columns) if isinstance(columns, Mapping) else {name: name for name in (frame.columns if columns is None else columns)}
    unknown = [name for name in names if name not in frame.columns]
    if unknown:
        raise ValueError(f"no column {unknown[0]!r}; there are {list(frame.columns)}")
    if digits < 1:
        raise ValueError(f"digits={digits} is below 1")
    numeric = [pd.api.types.is_numeric_dtype(frame[name]) and not pd.api.types.is_bool_dtype(frame[name]) for name in names]
    cells = [[_cell(value, digits) for value in frame[name]] for name in names]
    lines = [
        f"\\begin{{tabular}}{{{''.join('r' if is_number else 'l' for is_number in numeric)}}}",
        r"\toprule",
        _line([_text(name) for name in names.values()]),
        r"\midrule",
        *(_line(row) for row in zip(*cells, strict=True)),
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "\n".join(lines) + "\n"


def _line(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"


def _text(text: str) -> str:
    escaped = "".join(SPECIAL.get(letter, letter) for letter in text)
    # A line ends before no percent.
    return escaped.replace(r" \%", r"\,\%")


def _cell(value: Any, digits: int) -> str:
    if pd.isna(value):
        return NOTHING
    if isinstance(value, bool) or not isinstance(value, (int, float)) and not hasattr(value, "dtype"):
        return _text(str(value))
    number = float(value)
    if math.isinf(number):
        return r"$\infty$" if number > 0 else r"$-\infty$"
    if number == int(number):
        written = f"{int(number):,}"
    else:
        decimals = max(0, digits - 1 - math.floor(math.log10(abs(number))))
        written = f"{number:,.{decimals}f}"
    return re.sub(r"^-(?=.*[1-9])", "$-$", written)
