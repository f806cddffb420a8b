"""Results of Stealgrid as data frames, and strategies for it in a few lines.

>>> run = stealgrid.Run("out/quickstart-simulated")          # doctest: +SKIP
>>> run.jobs.groupby("exec_site")["wait_s"].mean()           # doctest: +SKIP

``Run`` reads the folder of one run, ``Runs`` those of several, ``Sweep`` the database of many, and ``booktabs`` writes a data frame
for LaTeX. ``broker`` and ``queue`` turn a function into a command for ``broker:exec=`` and ``--local exec=``. Only the first four need
pandas, and it is imported with them: a strategy is a process for each broker or site, and starts without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .strategy import Job, Load, Queue, Running, Site, broker, queue

if TYPE_CHECKING:
    from .latex import booktabs
    from .run import ResultsError, Run
    from .runs import Runs
    from .sweep import Sweep

__all__ = ["Job", "Load", "Queue", "ResultsError", "Run", "Running", "Runs", "Site", "Sweep", "booktabs", "broker", "queue"]


def __getattr__(name: str) -> Any:
    if name in ("Run", "ResultsError"):
        from . import run

        return getattr(run, name)
    if name == "Runs":
        from . import runs

        return runs.Runs
    if name == "Sweep":
        from . import sweep

        return sweep.Sweep
    if name == "booktabs":
        from . import latex

        return latex.booktabs
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
