"""A real run and a real sweep of the program that the environment variable STEALGRID names."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import stealgrid

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 300
"""Far above what any of these commands takes."""


@pytest.fixture(scope="session")
def program() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs stealgrid with some arguments, in the folder of the project."""
    binary = os.environ.get("STEALGRID")
    if not binary:
        pytest.fail("set STEALGRID to the program: STEALGRID=target/debug/stealgrid")
    path = Path(binary).resolve()

    def run(*arguments: str | Path, code: int = 0) -> subprocess.CompletedProcess[str]:
        command = [str(path), *map(str, arguments)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS)
        assert done.returncode == code, f"{command} ended with {done.returncode}:\n{done.stderr}"
        return done

    return run


Simulate = Callable[..., stealgrid.Run]


@pytest.fixture(scope="session")
def simulate(program: Callable[..., object], tmp_path_factory: pytest.TempPathFactory) -> Simulate:
    """Simulates the quick start with other switches and reads the results."""

    def run(*arguments: str, code: int = 0) -> stealgrid.Run:
        folder = tmp_path_factory.mktemp("run") / "results"
        program("simulate", "configs/quickstart.toml", "--out", folder, "--no-page", *arguments, code=code)
        return stealgrid.Run(folder)

    return run


@pytest.fixture(scope="session")
def quickstart(simulate: Simulate) -> stealgrid.Run:
    """The quick start as it is."""
    return simulate()


@pytest.fixture(scope="session")
def strategy(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """Writes a strategy of some lines and gives the command that starts it."""

    def command(text: str) -> str:
        path = tmp_path_factory.mktemp("strategy") / "strategy.py"
        path.write_text(f"import stealgrid\n{text}", encoding="utf-8")
        return f"'{sys.executable}' '{path}'"

    return command
