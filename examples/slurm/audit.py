"""Holds the results of a run against what Slurm wrote of its clusters: each job executed once, where the results say."""

import csv
import datetime
import re
import statistics
import sys

out = sys.argv[1]
names = ["small", "middle", "large"]
with open(f"{out}/jobs.csv") as file:
    rows = list(csv.DictReader(file))

executed = {}
spans = []
for cluster in names:
    with open(f"{out}/ended-{cluster}.txt") as file:
        for line in file:
            fields = dict(re.findall(r"(\w+)=(\S*)", line))
            job = int(fields["Name"].split("-")[2].split(".")[0])
            executed.setdefault(job, []).append((cluster, fields["JobState"]))
            spans += [datetime.datetime.fromisoformat(fields[at]) for at in ("StartTime", "EndTime")]

for row in rows:
    job, site = int(row["job_id"]), names[int(row["exec_site"]) - 1]
    assert executed.get(job) == [(site, "COMPLETED")], f"job {job} at {site}: Slurm says {executed.get(job)}"
assert set(executed) == {int(row["job_id"]) for row in rows}, "Slurm has jobs that the results do not have"

waits = [float(row["waiting_time"]) for row in rows]
run_times = [float(row["execution_time"]) for row in rows]
moved = sum(row["hops"] != "0" for row in rows)
by_slurm = (max(spans) - min(spans)).total_seconds()
print(f"{len(rows)} jobs, each executed once by Slurm's own log, none twice; {moved} at another cluster than where they were submitted")
print(f"mean wait {statistics.mean(waits):.1f} s, longest {max(waits):.1f} s; mean execution {statistics.mean(run_times):.2f} s; {by_slurm:.0f} s from the first start to the last end by Slurm")
