"""Strategies of some lines give the schedules of those that are built in."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal

import pandas as pd
import pytest

import stealgrid

Simulate = Callable[..., stealgrid.Run]
Command = Callable[[str], str]

MPL = """
from fractions import Fraction

stealgrid.broker(lambda job, sites: min(sites, key=lambda site: Fraction(site.load.processors, site.processors)))
"""

FCFS = """
def fcfs(queue):
    free = queue.free
    for job in queue.waiting:
        free -= job.processors
        if free < 0:
            return
        print("what a strategy says is no answer")
        yield job

stealgrid.queue(fcfs)
"""

BROKEN = """
def narrow(job, sites):
    return "nowhere"

stealgrid.broker(narrow)
"""


@pytest.mark.parametrize("prefix", ["ideal/", ""])
def test_mpl_in_one_line_gives_the_schedule_of_the_rule(simulate: Simulate, strategy: Command, prefix: str) -> None:
    built_in = simulate("--strategy", f"{prefix}broker:mpl")
    ours = simulate("--strategy", f"{prefix}broker:exec={strategy(MPL)}")

    pd.testing.assert_frame_equal(ours.jobs, built_in.jobs)
    assert len(set(ours.jobs["exec_site"])) > 1


def test_fcfs_in_a_few_lines_gives_the_schedule_of_fcfs_and_of_no_other(simulate: Simulate, strategy: Command) -> None:
    fcfs = simulate("--strategy", "local", "--local", "fcfs")
    ours = simulate("--strategy", "local", "--local", f"exec={strategy(FCFS)}")
    easy = simulate("--strategy", "local", "--local", "easy")

    pd.testing.assert_frame_equal(ours.jobs, fcfs.jobs)
    assert not ours.jobs["start_s"].equals(easy.jobs["start_s"])


def test_an_error_in_a_strategy_is_told_and_loses_no_job(simulate: Simulate, strategy: Command) -> None:
    run = simulate("--strategy", f"ideal/broker:exec={strategy(BROKEN)}", code=7)

    assert run.metrics["finished"] == 2000
    assert any("fallback decided" in warning for warning in run.manifest["warnings"])


def test_a_strategy_does_not_import_pandas() -> None:
    check = "import sys, stealgrid; sys.exit('pandas' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], timeout=60).returncode == 0


def line(now: str, *events: tuple[str, object]) -> str:
    told = [{"timestamp": 0, "type": kind, "data": data} for kind, data in events]
    return f'{{"now": {now}, "events": {json.dumps(told)}}}\n'


def submitted(number: int, submit: float, width: int) -> tuple[str, object]:
    job = {"id": f"w0!{number}", "subtime": submit, "walltime": 10.000001, "res": width, "profile": "p"}
    return "JOB_SUBMITTED", {"job_id": f"w0!{number}", "job": job}


BEGIN = ("SIMULATION_BEGINS", {"schema": "stealgrid-external/1", "role": "queue", "name": "a", "nb_resources": 4})


def test_a_queue_knows_what_waits_and_runs_exactly() -> None:
    seen: list[tuple[Decimal, int, list[int], list[Decimal]]] = []

    def start(queue: stealgrid.Queue) -> list[stealgrid.Job]:
        ends = [running.end_estimated_s for running in queue.running]
        seen.append((queue.now_s, queue.free, [job.number for job in queue.waiting], ends))
        if len(seen) == 1:
            queue.call_at(Decimal("7.5"))
        return [job for job in queue.waiting[:1] if job.processors <= queue.free]

    lines = [
        line("0", BEGIN),
        line("1.100000", submitted(9, 1.0, 3), submitted(2, 1.0, 2)),
        line("7.5", ("REQUESTED_CALL", {}), ("NOTIFY", {})),
        line("8", ("JOB_COMPLETED", {"job_id": "w0!2"})),
        line("9", ("JOB_COMPLETED", {"job_id": "w0!9"})),
        line("10", submitted(3, 10, 4)),
        line("11", ("SIMULATION_ENDS", {})),
    ]
    lines.insert(6, line("10.5", ("JOB_LEFT", {"job_id": "w0!3"})))
    out = io.StringIO()
    stealgrid.queue(start, stdin=io.StringIO("".join(lines)), stdout=out)

    answers = [json.loads(text)["events"] for text in out.getvalue().splitlines()]
    assert len(answers) == len(lines)
    assert seen == [
        (Decimal("1.1"), 4, [2, 9], []),
        (Decimal("7.5"), 2, [9], [Decimal("11.100001")]),
        (Decimal("8"), 4, [9], []),
        (Decimal("10"), 4, [3], []),
    ]
    kinds = [[(event["type"], event["data"]) for event in events] for events in answers]
    assert kinds[1] == [("EXECUTE_JOB", {"job_id": "w0!2"}), ("CALL_ME_LATER", {"timestamp": 7.5})]
    assert kinds[2] == []
    assert kinds[3] == [("EXECUTE_JOB", {"job_id": "w0!9"})]
    assert answers[1][0]["timestamp"] == 1.1


@pytest.mark.parametrize(
    ("begin", "message"),
    [({"role": "broker"}, "is a queue"), ({"schema": "stealgrid-external/2"}, "speaks stealgrid-external/2")],
)
def test_another_role_or_protocol_is_refused(begin: dict[str, str], message: str) -> None:
    data = {"schema": "stealgrid-external/1", "role": "queue", "name": "a", "nb_resources": 4, **begin}
    text = io.StringIO(line("0", ("SIMULATION_BEGINS", data)))
    with pytest.raises(ValueError, match=message):
        stealgrid.queue(lambda queue: [], stdin=text, stdout=io.StringIO())


def test_a_job_that_does_not_fit_is_no_answer() -> None:
    text = line("0", BEGIN) + line("1", submitted(1, 1, 3), submitted(2, 1, 3))
    with pytest.raises(ValueError, match="job 2 needs 3 processors, 1 are idle"):
        stealgrid.queue(lambda queue: queue.waiting[:], stdin=io.StringIO(text), stdout=io.StringIO())
