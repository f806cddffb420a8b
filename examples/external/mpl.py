#!/usr/bin/env python3
"""The rule MPL as a broker: the admissible site with the fewest requested processors per processor.

    stealgrid simulate EXPERIMENT.toml --strategy "ideal/broker:exec=python3 examples/external/mpl.py"

Gives the schedule of ideal/broker:mpl. See docs/EXTERNAL.md.
"""
import json
import sys
from fractions import Fraction

for line in sys.stdin:
    message = json.loads(line)
    answers = []
    for event in message["events"]:
        if event["type"] == "JOB_SUBMITTED":
            data = event["data"]
            sites = [site for site in data["sites"] if site["admissible"]]
            # Of equal ones min takes the first, which is the smallest site; fractions are exact.
            best = min(sites, key=lambda site: Fraction(site["load"]["processors"], site["processors"]))
            answers.append({"timestamp": message["now"], "type": "EXECUTE_JOB",
                            "data": {"job_id": data["job_id"], "site": best["name"]}})
    print(json.dumps({"now": message["now"], "events": answers}), flush=True)
