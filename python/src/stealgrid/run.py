"""The folder of one run as data frames."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from .columns import JOBS, MIGRATIONS, PREDICTED, SHARED, STEALS, TABLES, Column
from .compression import text_lines

FORMAT = 3
"""The format of manifest and metrics that this version reads."""


class ResultsError(Exception):
    """What was given is not what Stealgrid writes; the message says what to do."""


class Run:
    """What ``stealgrid run`` or ``stealgrid simulate`` left in a folder.

    Frames are read when they are asked for, and kept. :meth:`describe` has the unit and the meaning of each column. Sites are
    numbered from 1 and times are seconds of trace time, as everywhere in the results.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.manifest = self._document("manifest.json")
        """Experiment, strategy, seed, command line, version, status and sites, as in the file."""

    def __repr__(self) -> str:
        return f"<Run {self.folder}: {self.manifest.get('strategy')}, {self.manifest.get('status')}>"

    @property
    def complete(self) -> bool:
        """Whether the run came to its end, measured or not."""
        return self.manifest.get("status") in ("complete", "not_measured")

    @property
    def measured(self) -> bool:
        """Whether the machine kept to the delays of the experiment; if not, the figures are those of longer ones."""
        return self.manifest.get("status") != "not_measured"

    @property
    def status(self) -> str:
        """``complete``, ``not_measured`` or ``partial``; ``violated`` if it broke what is proved of its strategy, whatever else."""
        violated = "violated"
        if self.sections.get("verdict") == violated:
            return violated
        return str(self.manifest.get("status"))

    @property
    def reason(self) -> str | None:
        """Why it is not complete, or not measured; none if it is."""
        reason = self.manifest.get("reason")
        return None if reason is None else str(reason)

    @cached_property
    def sections(self) -> dict[str, Any]:
        """All of ``metrics.json``: ``theory``, ``steady``, ``steals`` and what else is there."""
        return self._document("metrics.json")

    @cached_property
    def metrics(self) -> pd.Series[Any]:
        """The numbers of section ``metrics`` by name; units are the endings of the names."""
        values = {name: value for name, value in self.sections["metrics"].items() if not isinstance(value, list | dict)}
        return pd.Series(values, name=str(self.manifest.get("strategy")))

    @cached_property
    def sites(self) -> pd.DataFrame:
        """A row per site."""
        rows = [
            {
                "site": site["id"],
                "name": site["name"],
                "processors": site["processors"],
                "first_processor": site["resource_bounds"][0],
                "last_processor": site["resource_bounds"][1],
            }
            for site in self.manifest["sites"]
        ]
        return pd.DataFrame(rows)

    @cached_property
    def jobs(self) -> pd.DataFrame:
        """A row per job that finished or was rejected."""
        frame = self._table("jobs.csv", JOBS + PREDICTED + SHARED, "metadata")
        for name, key in (("user", "user"), ("home_site", "home")):
            values = frame["metadata"].str.extract(rf"(?:^|;){key}=(-?\d+)", expand=False)
            frame[name] = pd.to_numeric(values).astype("Int64")
        return frame.drop(columns="metadata")

    @cached_property
    def migrations(self) -> pd.DataFrame:
        """A row per pair of home and executing site."""
        return self._table("migrations.csv", MIGRATIONS)

    @cached_property
    def steals(self) -> pd.DataFrame:
        """A row per accepted change of site; none if no job changed sites."""
        if not (self.folder / "steals.csv").exists():
            empty = {column.name: pd.Series(dtype=column.dtype) for column in STEALS}
            return pd.DataFrame(empty)
        return self._table("steals.csv", STEALS)

    def events(self, kinds: Collection[str] | None = None) -> pd.DataFrame:
        """A row per event, of these kinds only if some are given; needs the extra ``events``.

        A log has many events per job, and most of their columns are empty: choose kinds where it is long.
        """
        frame = pd.DataFrame(self._events(kinds))
        if frame.empty:
            return pd.DataFrame({column.name: pd.Series(dtype=column.dtype) for column in TABLES["events"]})
        # An event without a field has no value there, and numbers stay whole.
        frame = frame.convert_dtypes()
        return frame.astype({"at_s": "float64"})

    def _events(self, kinds: Collection[str] | None) -> Iterator[dict[str, Any]]:
        with text_lines(self.folder / "events.jsonl.zst") as lines:
            for line in lines:
                event = json.loads(line)
                kind = event["kind"]
                name, fields = (kind, {}) if isinstance(kind, str) else next(iter(kind.items()))
                if kinds is None or name in kinds:
                    values = fields if isinstance(fields, dict) else {"value": fields}
                    yield {"at_s": event["at"] / 1e6, "site": event["site"], "kind": name, **values}

    @staticmethod
    def describe(table: str) -> pd.DataFrame:
        """The columns of a frame: unit, meaning, and name in the file. Tables are jobs, migrations, steals, sites, events."""
        if table not in TABLES:
            raise ValueError(f"no table {table!r}; there are {', '.join(TABLES)}")
        return pd.DataFrame(
            {"unit": [c.unit for c in TABLES[table]], "meaning": [c.meaning for c in TABLES[table]],
             "source": [c.source for c in TABLES[table]]},
            index=pd.Index([c.name for c in TABLES[table]], name="column"),
        )

    def _path(self, name: str) -> Path:
        path = self.folder / name
        if not path.exists():
            raise ResultsError(f"{self.folder} has no {name}; is it what `stealgrid run` or `simulate` wrote with --out?")
        return path

    def _document(self, name: str) -> dict[str, Any]:
        document = json.loads(self._path(name).read_text(encoding="utf-8"))
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            raise ResultsError(f"{self.folder / name} is not of format {FORMAT}; take the package of the version that wrote it")
        return document

    def _table(self, name: str, columns: tuple[Column, ...], *others: str) -> pd.DataFrame:
        types = {column.source: column.dtype for column in columns}
        path = self._path(name)
        # Strings such as NA are names, and only nothing is nothing.
        frame = pd.read_csv(path, dtype={**types, **dict.fromkeys(others, "str")}, na_values=[""], keep_default_na=False)
        # Columns that are there only where somebody predicts, or jobs share nodes.
        for column in PREDICTED + SHARED:
            if column in columns and column.source not in frame.columns:
                frame[column.source] = pd.Series(dtype=column.dtype, index=frame.index)
        missing = [source for source in types if source not in frame.columns]
        if missing:
            raise ResultsError(f"{path} has no column {missing[0]}; take the package of the version that wrote it")
        frame = frame[[*types, *others]]
        return frame.rename(columns={column.source: column.name for column in columns})
