"""The rows of a sweep as a data frame, and its series compared in pairs."""

from __future__ import annotations

import itertools
import json
import sqlite3
import tomllib
from collections.abc import Sequence
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pandas as pd

from .compression import text_lines
from .run import ResultsError

SQLITE = b"SQLite format 3\x00"
ZSTD = b"\x28\xb5\x2f\xfd"
EXACT_PAIRS = 14
"""Up to so many pairs all flips of signs are tried, 16,384; above, as many are drawn."""


class Sweep:
    """What ``stealgrid sweep`` measured: its database, or what ``stealgrid export`` made of it (CSV, or the format study)."""

    parameters: list[str]
    """What the sweep file varies, by dotted path, as it is called in ``runs``."""
    metrics: list[str]
    """What was measured; units are the endings of the names."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.about: dict[str, str] = {}
        """What the file says of itself: ``name``, ``version``, ``command``, the text of the ``sweep`` file. Nothing for CSV."""
        if not self.path.exists():
            raise ResultsError(f"there is no {self.path}; `stealgrid sweep` writes out/NAME.db")
        with self.path.open("rb") as file:
            head = file.read(len(SQLITE))
        if head == SQLITE:
            rows = self._database()
        elif head.startswith(ZSTD):
            rows = self._study()
        else:
            rows = self._csv()
        self.failed = rows[rows["status"] != "done"].reset_index(drop=True)
        """Runs that failed, with ``error``."""
        self.runs = rows[rows["status"] == "done"].reset_index(drop=True)
        """A row per finished run, in the order of the sweep file: parameters by dotted path, then metrics."""

    def __repr__(self) -> str:
        return f"<Sweep {self.path}: {len(self.runs)} runs over {', '.join(self.parameters)}>"

    @property
    def replicates(self) -> list[str]:
        """The parameters whose values are repetitions, as the sweep file says; ``seed`` if it says nothing."""
        report = tomllib.loads(self.about.get("sweep", "")).get("report", {})
        named = [name for name in report.get("replicates", []) if name in self.parameters]
        return named or [name for name in self.parameters if name == "seed"]

    def compare(
        self,
        metric: str,
        baseline: str,
        *,
        series: str | Sequence[str] = "strategy.name",
        replicates: Sequence[str] | None = None,
        confidence: float = 0.95,
        draws: int = 2000,
        seed: int = 1,
    ) -> pd.DataFrame:
        """Each series against the baseline on the same repetitions, at each point of the other parameters.

        ``series`` are the parameters whose values, with commas between, name a series; ``baseline`` is such a name. A row has
        the point, ``series``, ``pairs``, ``mean`` and ``baseline_mean`` over these pairs, ``difference`` of the two in the unit
        of the metric with an expanded percentile interval of ``draws`` bootstrap means (``low``, ``high``; Hesterberg 2015), ``change_percent``, and ``p``
        by flips of signs, two-sided, with ``p_holm`` after Holm's correction over all rows. Runs without a partner are left
        out. ``seed`` is that of the bootstrap.
        """
        names = [series] if isinstance(series, str) else list(series)
        repetitions = self.replicates if replicates is None else list(replicates)
        if not repetitions:
            raise ValueError(f"say which parameters are repetitions: replicates=[...] of {self.parameters}")
        for name in (*names, *repetitions):
            if name not in self.parameters:
                raise ValueError(f"no parameter {name!r}; there are {self.parameters}")
        if metric not in self.metrics:
            raise ValueError(f"no metric {metric!r}; there are {self.metrics}")
        points = [name for name in self.parameters if name not in (*names, *repetitions)]
        runs = self.runs[[*points, *repetitions, metric]].copy()
        runs["series"] = self.runs[names].astype(str).agg(", ".join, axis=1)
        runs = runs.dropna(subset=[metric])
        ours = runs[runs["series"] != baseline]
        theirs = runs[runs["series"] == baseline].drop(columns="series")
        if theirs.empty:
            raise ValueError(f"no series {baseline!r}; there are {sorted(set(runs['series']))}")
        key = [*points, *repetitions]
        pairs = ours.merge(theirs, on=key, suffixes=("", "_baseline"), validate="many_to_one")
        if pairs.empty:
            raise ValueError(f"no run has the same {key} as one of {baseline!r}")
        rng = np.random.default_rng(seed)
        rows: list[dict[str, Any]] = []
        group = [*points, "series"]
        for values, part in pairs.groupby(group, sort=False):
            ours_at = part[metric].to_numpy(dtype=float)
            theirs_at = part[f"{metric}_baseline"].to_numpy(dtype=float)
            difference = ours_at - theirs_at
            means = rng.choice(difference, size=(draws, len(difference))).mean(axis=1)
            tail = _tail(confidence, len(difference))
            low, high = np.quantile(means, [tail, 1 - tail])
            mean, theirs_mean = float(ours_at.mean()), float(theirs_at.mean())
            change = 100 * (mean / theirs_mean - 1) if theirs_mean != 0 else float("nan")
            rows.append(
                {
                    **dict(zip(group, values, strict=True)),
                    "pairs": len(part),
                    "mean": mean,
                    "baseline_mean": theirs_mean,
                    "difference": float(difference.mean()),
                    "low": float(low),
                    "high": float(high),
                    "change_percent": change,
                    "p": sign_flips(_observed(ours_at, theirs_at), rng),
                }
            )
        frame = pd.DataFrame(rows)
        frame["p_holm"] = holm(frame["p"].to_numpy(dtype=float))
        return frame

    def _database(self) -> pd.DataFrame:
        uri = f"{self.path.resolve().as_uri()}?mode=ro"
        connection = sqlite3.connect(uri, uri=True)
        try:
            self.about = dict(connection.execute("SELECT key, value FROM about"))
            roles = connection.execute("SELECT name, role FROM columns ORDER BY ordinal").fetchall()
            rows = pd.read_sql_query("SELECT * FROM runs WHERE position IS NOT NULL ORDER BY position", connection)
        except (sqlite3.DatabaseError, pd.errors.DatabaseError) as error:
            raise ResultsError(f"{self.path} is no database of a sweep: {error}") from error
        finally:
            connection.close()
        self.parameters = [name for name, role in roles if role == "parameter"]
        self.metrics = sorted(name for name, role in roles if role == "metric")
        return rows[["position", *self.parameters, "status", "error", "wall_s", *self.metrics]]

    def _csv(self) -> pd.DataFrame:
        rows = pd.read_csv(self.path)
        columns = list(rows.columns)
        if columns[:1] != ["position"] or not {"status", "wall_s"} <= set(columns):
            raise ResultsError(f"{self.path} is neither a database of a sweep nor what `stealgrid export` wrote")
        self.parameters = columns[1 : columns.index("status")]
        self.metrics = columns[columns.index("wall_s") + 1 :]
        return rows

    def _study(self) -> pd.DataFrame:
        head: dict[str, Any] = {}
        with text_lines(self.path) as lines:
            first = next(lines, "")
            if not first.startswith("# stealgrid sweep, format 1"):
                raise ResultsError(f"{self.path} is not what `stealgrid export --format study` wrote, or of another version")
            names = ""
            for line in lines:
                if not line.startswith("# "):
                    names = line.rstrip("\n")
                    break
                key, _, value = line[2:].partition(" ")
                head[key] = json.loads(value)
            rows = pd.read_csv(lines, names=names.split(","), header=None)
        self.about = {key: str(head[key]) for key in ("name", "version", "command", "commit", "planned", "sweep") if key in head}
        # Columns with one value are in the head only. Failed runs are not stored.
        constants = {"status": "done", "error": "", **head["constants"]}
        more = {name: [_number(value)] * len(rows) for name, value in constants.items() if name not in rows.columns}
        rows = pd.concat([rows, pd.DataFrame(more, index=rows.index)], axis=1)
        self.parameters, self.metrics = list(head["parameters"]), list(head["metrics"])
        return rows[["position", *self.parameters, "status", "error", "wall_s", *self.metrics]]


def _number(text: str) -> Any:
    """A constant of a stored sweep."""
    if text == "":
        return None
    try:
        return float(text)
    except ValueError:
        return text


def _tail(confidence: float, repetitions: int) -> float:
    """The share of bootstrap means beyond each end of an interval of so many repetitions: that of the normal distribution beyond
    sqrt(n / (n - 1)) t(n - 1) (Hesterberg 2015, the expanded percentile interval)."""
    if repetitions < 2:
        return (1 - confidence) / 2
    freedom = repetitions - 1
    # With t = sqrt(freedom) tan(angle) the density is a power of a cosine.
    angles = np.linspace(-np.pi / 2, np.pi / 2, 200_001)
    below = np.cumsum(np.cos(angles) ** (freedom - 1))
    angle = np.interp((1 - confidence) / 2, below / below[-1], angles)
    return NormalDist().cdf(float(np.sqrt(repetitions) * np.tan(angle)))


def _observed(
    ours: np.ndarray[Any, np.dtype[np.float64]], theirs: np.ndarray[Any, np.dtype[np.float64]]
) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Differences of pairs; pairs that are all the same are copies of one run, and one observation."""
    copies = bool(np.all(ours == ours[0]) and np.all(theirs == theirs[0]))
    return (ours - theirs)[: 1 if copies else None]


def sign_flips(differences: np.ndarray[Any, np.dtype[np.float64]], rng: np.random.Generator) -> float:
    """How likely a mean at least as far from 0 is if each difference might as well have the other sign."""
    seen = abs(differences.mean())
    if len(differences) <= EXACT_PAIRS:
        signs = np.array(list(itertools.product((1.0, -1.0), repeat=len(differences))))
        means = np.abs((signs * differences).mean(axis=1))
        # A sum in another order may differ in its last digit.
        return float(np.mean(means >= seen * (1 - 1e-12)))
    signs = rng.choice((1.0, -1.0), size=(2**EXACT_PAIRS, len(differences)))
    means = np.abs((signs * differences).mean(axis=1))
    return float((np.sum(means >= seen * (1 - 1e-12)) + 1) / (len(means) + 1))


def holm(chances: np.ndarray[Any, np.dtype[np.float64]]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Chances after Holm's correction over all of them, in the same order."""
    order = np.argsort(chances, kind="stable")
    left = len(chances) - np.arange(len(chances))
    corrected = np.minimum(np.maximum.accumulate(chances[order] * left), 1.0)
    result = np.empty_like(corrected)
    result[order] = corrected
    return result
