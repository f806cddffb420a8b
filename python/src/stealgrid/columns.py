"""The columns of the data frames: what each is called in its file, its unit and its meaning."""

from __future__ import annotations

from typing import NamedTuple


class Column(NamedTuple):
    """A column of a data frame. ``source`` is its name in the file."""

    name: str
    source: str
    dtype: str
    unit: str
    meaning: str


JOBS = (
    Column("job", "job_id", "int64", "", "number in the log"),
    Column("submit_s", "submission_time", "float64", "s", "submission, trace time"),
    Column("processors", "requested_number_of_resources", "int64", "processors", "width"),
    Column("requested_s", "requested_time", "float64", "s", "the user's estimate of the run time"),
    Column("success", "success", "Int64", "0 or 1", "1 if it ended, 0 if it was rejected"),
    Column("state", "final_state", "str", "", "COMPLETED_SUCCESSFULLY or REJECTED"),
    Column("start_s", "starting_time", "float64", "s", "start, trace time"),
    Column("run_time_s", "execution_time", "float64", "s", "from start to end"),
    Column("end_s", "finish_time", "float64", "s", "end, trace time"),
    Column("wait_s", "waiting_time", "float64", "s", "from submission to start"),
    Column("turnaround_s", "turnaround_time", "float64", "s", "from submission to end"),
    Column("slowdown", "stretch", "float64", "", "turnaround over run time"),
    Column("allocated", "allocated_resources", "str", "", "processors as intervals, numbered through the grid"),
    Column("origin_site", "origin_site", "Int64", "", "site of the user, from 1"),
    Column("exec_site", "exec_site", "Int64", "", "site that ran it, from 1"),
    Column("class", "class", "str", "", "A big or B small at its home"),
    Column("hops", "hops", "Int64", "", "changes of site"),
    Column("steal_delay_s", "steal_delay", "float64", "s", "how long it was under way between sites"),
)

PREDICTED = (
    Column("predicted_s", "predicted", "float64", "s", "predicted run time at the site that ran it; none if nobody predicts"),
    Column("corrections", "corrections", "Int64", "", "how often it ran past a prediction there; none if nobody predicts"),
)

SHARED = (
    Column("nodes", "nodes", "str", "", "nodes as intervals, numbered within the site from 0; none if none are shared"),
    Column("sharing_slowdown", "sharing_slowdown", "float64", "", "run time over that on idle nodes; none if none are shared"),
)

METADATA = (
    Column("user", "metadata", "Int64", "", "number of the user in the log, -1 if unknown"),
    Column("home_site", "metadata", "Int64", "", "smallest site that can hold it, from 1"),
)

MIGRATIONS = (
    Column("home_site", "home_site", "int64", "", "smallest site that can hold the jobs, from 1"),
    Column("exec_site", "exec_site", "int64", "", "site that ran them, from 1"),
    Column("jobs", "jobs", "int64", "", "how many"),
    Column("jobs_share", "jobs_share", "float64", "", "of the jobs of the home"),
    Column("work", "work_proc_s", "float64", "processor-s", "processors times run time"),
    Column("work_share", "work_share", "float64", "", "of the work of the home"),
)

STEALS = (
    Column("job", "job_id", "int64", "", "number in the log"),
    Column("hop", "hop", "int64", "", "the number of this change of site of the job, from 1"),
    Column("thief", "thief", "int64", "", "new owner, from 1"),
    Column("victim", "victim", "int64", "", "former owner, from 1"),
    Column("cause", "cause", "str", "", "request, standing, push, pool, route or unknown"),
    Column("requested_s", "requested_at", "float64", "s", "the request left, trace time"),
    Column("granted_s", "granted_at", "float64", "s", "the victim gave the job away, trace time"),
    Column("accepted_s", "accepted_at", "float64", "s", "the thief had it, trace time"),
    Column("start_s", "started_at", "float64", "s", "it started there, trace time"),
    Column("request_s", "request_s", "float64", "s", "from request to grant"),
    Column("transfer_s", "transfer_s", "float64", "s", "from grant to acceptance"),
    Column("hold_s", "start_s", "float64", "s", "from acceptance to start"),
    Column("total_s", "total_s", "float64", "s", "from request to start"),
    Column("bounces", "bounces", "int64", "", "how often it was declined before"),
    Column("firm", "firm", "int64", "0 or 1", "1 if the thief had to take it"),
    Column("view_age_s", "view_age_s", "float64", "s", "age of the thief's newest news of the victim"),
)

SITES = (
    Column("site", "id", "int64", "", "number, from 1"),
    Column("name", "name", "str", "", "name"),
    Column("processors", "processors", "int64", "processors", "size"),
    Column("first_processor", "resource_bounds", "int64", "", "its first processor, numbered through the grid"),
    Column("last_processor", "resource_bounds", "int64", "", "its last processor"),
)

EVENTS = (
    Column("at_s", "at", "float64", "s", "trace time, exact to the microsecond"),
    Column("site", "site", "Int64", "", "where, from 1"),
    Column("kind", "kind", "str", "", "what happened; its fields are further columns, times among them in microseconds"),
)

TABLES = {
    "jobs": JOBS + PREDICTED + SHARED + METADATA,
    "migrations": MIGRATIONS,
    "steals": STEALS,
    "sites": SITES,
    "events": EVENTS,
}
