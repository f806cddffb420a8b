"""Several runs beside each other: a row per run, and the jobs of all."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from .run import ResultsError, Run


class Runs:
    """The folders of several runs, in the order in which they are given.

    Every frame has a column ``status``, as figures of a run that is not ``complete`` may not stand beside those of one that is:
    choose rows by it before a mean is taken.
    """

    def __init__(self, folders: Iterable[str | Path]) -> None:
        if isinstance(folders, str | Path):
            raise TypeError(f"give a list of folders, as in stealgrid.Runs(Path({str(folders)!r}).iterdir())")
        self.all = [Run(folder) for folder in folders]
        """Each of them."""
        if not self.all:
            raise ResultsError("there is no run among no folders")

    def __repr__(self) -> str:
        return f"<Runs of {len(self.all)} folders>"

    @cached_property
    def runs(self) -> pd.DataFrame:
        """A row per run: what it is, ``status`` with its ``reason``, then the numbers of section ``metrics``."""
        return pd.DataFrame([{**self._about(run), "reason": run.reason, **run.metrics.to_dict()} for run in self.all])

    @cached_property
    def jobs(self) -> pd.DataFrame:
        """A row per job of each run: what the run is, with its ``status``, then the columns of :attr:`Run.jobs`."""
        frames = []
        for run in self.all:
            about, jobs = self._about(run), run.jobs
            said = pd.DataFrame({name: pd.Series(value, index=jobs.index) for name, value in about.items()})
            frames.append(pd.concat([said, jobs], axis=1))
        return pd.concat(frames, ignore_index=True)

    @staticmethod
    def _about(run: Run) -> dict[str, Any]:
        said = run.manifest
        return {
            "folder": str(run.folder),
            "experiment": said.get("experiment"),
            "strategy": said.get("strategy"),
            "seed": said.get("seed"),
            "status": run.status,
        }
