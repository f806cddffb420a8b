"""Strategies as functions: lines of JSON on stdin and stdout become calls.

The protocol is that of ``docs/EXTERNAL.md``, schema ``stealgrid-external/1``. Times are ``Decimal`` seconds of trace time,
exact to the microsecond: floats would make ties where there are none. What a strategy prints goes to stderr, since stdout
belongs to the protocol. An error in it ends the process; then Stealgrid says so and has its fallback decide.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, TextIO

SCHEMA = "stealgrid-external/1"


@dataclass(frozen=True)
class Job:
    """A job as strategies see it; nobody is told its run time."""

    id: str
    """Its name in the protocol, ``w0!7``."""
    number: int
    """Its number in the log."""
    submit_s: Decimal
    """When it was submitted, in seconds."""
    requested_s: Decimal
    """The user's estimate of its run time, in seconds."""
    processors: int
    """How many it needs."""
    origin: str | None = None
    """The site of the user; told to brokers only."""


@dataclass(frozen=True)
class Load:
    """Some jobs of a site, added up."""

    jobs: int
    """How many."""
    processors: int
    """What they need together."""
    work: Decimal
    """In processor-seconds, by estimates."""


@dataclass(frozen=True)
class Site:
    """A site as a broker knows it."""

    name: str
    """Its name in the experiment."""
    processors: int
    """How many it has."""
    admissible: bool
    """Whether the job may go there."""
    age_s: Decimal | None
    """For how long what follows may have changed unheard of; ``None`` if nothing was ever heard."""
    load: Load
    """All jobs there: they run, wait, or are on their way."""
    waiting: Load
    """Those that wait or are on their way."""
    pending: Load
    """Those that are on their way, as far as the broker knows."""


@dataclass(frozen=True)
class Running:
    """A job that runs."""

    job: Job
    """Which."""
    start_s: Decimal
    """When it started, in seconds."""

    @property
    def end_estimated_s(self) -> Decimal:
        """When it ends by the user's estimate; that may have passed."""
        return self.start_s + self.job.requested_s


@dataclass
class Queue:
    """A site with its queue at an instant."""

    name: str
    """Name of the site."""
    processors: int
    """How many the site has."""
    now_s: Decimal = Decimal(0)
    """The instant, in seconds."""
    waiting: list[Job] = field(default_factory=list)
    """In the order of the queue: by submission, then number."""
    running: list[Running] = field(default_factory=list)
    """In the order in which they were started."""
    _calls: list[Decimal] = field(default_factory=list, repr=False)

    @property
    def free(self) -> int:
        """Idle processors."""
        return self.processors - sum(running.job.processors for running in self.running)

    def call_at(self, time_s: Decimal | int) -> None:
        """Asks to be called at a time after now even if nothing happens."""
        if time_s <= self.now_s:
            raise ValueError(f"call_at({time_s}) is not after now, {self.now_s}")
        self._calls.append(Decimal(time_s))


Decide = Callable[[Job, list[Site]], Site | str]
"""Of a job and the sites that it may go to, ascending by size, the one it goes to."""

Start = Callable[[Queue], Iterable[Job]]
"""Of a queue the jobs that start now."""


def broker(decide: Decide, *, stdin: TextIO | None = None, stdout: TextIO | None = None) -> None:
    """Decides for ``broker:exec=`` where jobs go, until stdin is closed.

    ``decide`` is called for each job with the admissible sites. ::

        stealgrid.broker(lambda job, sites: min(sites, key=lambda site: site.load.jobs))
    """
    for message, answer in _messages(stdin, stdout):
        for kind, data in _events(message):
            if kind == "SIMULATION_BEGINS":
                _check(data, "broker")
            elif kind == "JOB_SUBMITTED":
                sites = [site for site in map(_site, data["sites"]) if site.admissible]
                with contextlib.redirect_stdout(sys.stderr):
                    chosen = decide(_job(data), sites)
                name = chosen.name if isinstance(chosen, Site) else chosen
                if name not in [site.name for site in sites]:
                    raise ValueError(f"{name} is not among the admissible sites {[site.name for site in sites]}")
                answer("EXECUTE_JOB", {"job_id": data["job_id"], "site": name})


def queue(start: Start, *, stdin: TextIO | None = None, stdout: TextIO | None = None) -> None:
    """Decides for ``--local exec=`` what starts at a site, until stdin is closed.

    ``start`` is called once at each instant at which something happened and jobs wait. ::

        stealgrid.queue(lambda queue: [job for job in queue.waiting[:1] if job.processors <= queue.free])
    """
    state = Queue(name="", processors=0)
    for message, answer in _messages(stdin, stdout):
        state.now_s = Decimal(message["now"])
        for kind, data in _events(message):
            if kind == "SIMULATION_BEGINS":
                _check(data, "queue")
                state.name, state.processors = str(data["name"]), int(data["nb_resources"])
            elif kind == "JOB_SUBMITTED":
                state.waiting.append(_job(data))
            elif kind == "JOB_COMPLETED":
                state.running = [running for running in state.running if running.job.id != data["job_id"]]
            elif kind == "JOB_LEFT":
                state.waiting = [job for job in state.waiting if job.id != data["job_id"]]
        state.waiting.sort(key=lambda job: (job.submit_s, job.number))
        if not state.waiting:
            continue
        with contextlib.redirect_stdout(sys.stderr):
            started = list(start(state))
        for job in started:
            if job not in state.waiting:
                raise ValueError(f"job {job.number} does not wait")
            if job.processors > state.free:
                raise ValueError(f"job {job.number} needs {job.processors} processors, {state.free} are idle")
            state.waiting.remove(job)
            state.running.append(Running(job, state.now_s))
            answer("EXECUTE_JOB", {"job_id": job.id})
        for time_s in state._calls:
            answer("CALL_ME_LATER", {"timestamp": float(time_s)})
        state._calls.clear()


Answer = Callable[[str, Mapping[str, Any]], None]


def _messages(stdin: TextIO | None, stdout: TextIO | None) -> Iterable[tuple[dict[str, Any], Answer]]:
    """Each message with what takes its answers; they are sent when the next message is asked for."""
    lines, out = stdin or sys.stdin, stdout or sys.stdout
    for line in lines:
        message = json.loads(line, parse_float=Decimal)
        now = float(message["now"])
        events: list[dict[str, Any]] = []

        def answer(kind: str, data: Mapping[str, Any], now: float = now, events: list[Any] = events) -> None:
            events.append({"timestamp": now, "type": kind, "data": data})

        yield message, answer
        print(json.dumps({"now": now, "events": events}), file=out, flush=True)


def _events(message: Mapping[str, Any]) -> Iterable[tuple[str, dict[str, Any]]]:
    for event in message["events"]:
        yield event["type"], event.get("data") or {}


def _check(data: Mapping[str, Any], role: str) -> None:
    if data.get("schema") != SCHEMA:
        raise ValueError(f"Stealgrid speaks {data.get('schema')} and this package {SCHEMA}; take the one of the same version")
    if data.get("role") != role:
        raise ValueError(f"this is a {role}, and was started as a {data.get('role')}")


def _job(data: Mapping[str, Any]) -> Job:
    job = data["job"]
    return Job(
        id=str(data["job_id"]),
        number=int(str(data["job_id"]).rsplit("!", 1)[-1]),
        submit_s=Decimal(job["subtime"]),
        requested_s=Decimal(job["walltime"]),
        processors=int(job["res"]),
        origin=data.get("origin"),
    )


def _site(data: Mapping[str, Any]) -> Site:
    def load(name: str) -> Load:
        of = data[name]
        return Load(jobs=int(of["jobs"]), processors=int(of["processors"]), work=Decimal(of["work"]))

    age = data["age"]
    return Site(
        name=str(data["name"]),
        processors=int(data["processors"]),
        admissible=bool(data["admissible"]),
        age_s=None if age is None else Decimal(age),
        load=load("load"),
        waiting=load("waiting"),
        pending=load("pending"),
    )
