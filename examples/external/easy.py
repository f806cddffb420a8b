#!/usr/bin/env python3
"""EASY backfilling as the queue of a site.

    stealgrid simulate EXPERIMENT.toml --strategy local --local "exec=python3 examples/external/easy.py"

Gives the schedule of --local easy. See docs/EXTERNAL.md.
"""
import json
import sys
from decimal import Decimal  # Times have up to six digits behind the point, and are compared exactly.

queue, running, free = [], {}, 0


def easy(now):
    """The jobs that start now: heads while they fit, then what delays the first that does not by no estimate."""
    global free
    started, shadow, extra = [], None, 0
    for job in sorted(queue, key=lambda job: (job["subtime"], job["number"])):
        if shadow is None and job["res"] > free:
            extra = free
            for end, width in sorted((max(end, now), width) for end, width in running.values()):
                if shadow is not None and end > shadow:
                    break
                extra += width
                if shadow is None and extra >= job["res"]:
                    shadow = end
            extra -= job["res"]
        elif job["res"] <= free and (shadow is None or now + job["walltime"] <= shadow or job["res"] <= extra):
            if shadow is not None and now + job["walltime"] > shadow:
                extra -= job["res"]
            free -= job["res"]
            running[job["id"]] = (now + job["walltime"], job["res"])
            queue.remove(job)
            started.append(job)
    return started


for line in sys.stdin:
    message = json.loads(line, parse_float=Decimal, parse_int=int)
    for event in message["events"]:
        data = event["data"]
        if event["type"] == "SIMULATION_BEGINS":
            free = data["nb_resources"]
        elif event["type"] == "JOB_SUBMITTED":
            queue.append({**data["job"], "number": int(data["job_id"].split("!")[1])})
        elif event["type"] == "JOB_COMPLETED":
            free += running.pop(data["job_id"])[1]
        elif event["type"] == "JOB_LEFT":
            queue[:] = [job for job in queue if job["id"] != data["job_id"]]
    now = float(message["now"])
    starts = [{"timestamp": now, "type": "EXECUTE_JOB", "data": {"job_id": job["id"]}} for job in easy(message["now"])]
    print(json.dumps({"now": now, "events": starts}), flush=True)
