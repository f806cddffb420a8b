"""Holds the results of a run against what Slurm wrote of its clusters: each job executed once, where the results say."""

import csv
import datetime
import os
import re
import statistics
import sys

out = sys.argv[1]
names = ["small", "middle", "large"]


def mean_and_longest(waits):
    return f"mean wait {statistics.mean(waits):.1f} s, longest {max(waits):.1f} s"


def waits_of(folder):
    with open(f"{folder}/jobs.csv") as file:
        return [float(row["waiting_time"]) for row in csv.DictReader(file)]


# Where parts of Slurm were killed, what its machines began tells how often each job ran.
logs = [f"{out}/{name}" for name in os.listdir(out) if name.startswith("slurmd.")]
launched = sum(line.count("Launching batch job") for log in logs for line in open(log, errors="replace")) if logs else None
executed = {}
failed = 0
spans = []
waits_by_slurm = []
for cluster in names:
    with open(f"{out}/ended-{cluster}.txt") as file:
        for line in file:
            fields = dict(re.findall(r"(\w+)=(\S*)", line))
            # What waited and was cancelled, to run at another, has had no processors.
            if fields["JobState"] == "CANCELLED" and fields["NodeList"] == "(null)":
                continue
            # What a machine never began, as it was killed, or a controller that was killed had forgotten to have ended.
            if fields["JobState"] == "NODE_FAIL" and launched is not None:
                failed += 1
                continue
            job = int(fields["Name"].split("-")[2].split(".")[0])
            executed.setdefault(job, []).append((cluster, fields["JobState"]))
            submitted, started, ended = (datetime.datetime.fromisoformat(fields[at]) for at in ("SubmitTime", "StartTime", "EndTime"))
            spans += [started, ended]
            waits_by_slurm.append((started - submitted).total_seconds())

by_slurm = (max(spans) - min(spans)).total_seconds()
if not os.path.exists(f"{out}/jobs.csv"):
    assert all(ends == [("small", "COMPLETED")] for ends in executed.values())
    print(f"{len(executed)} jobs by Slurm alone: {mean_and_longest(waits_by_slurm)}; {by_slurm:.0f} s from the first start to the last end")
    sys.exit()
with open(f"{out}/jobs.csv") as file:
    rows = list(csv.DictReader(file))
lost = 0
for row in rows:
    job, site = int(row["job_id"]), names[int(row["exec_site"]) - 1]
    # A controller that was killed may have forgotten, too, that a job was ever submitted. Then what its machines began has to tell.
    if job not in executed and launched is not None:
        lost += 1
        continue
    assert executed.get(job) == [(site, "COMPLETED")], f"job {job} at {site}: Slurm says {executed.get(job)}"
assert set(executed) <= {int(row["job_id"]) for row in rows}, "Slurm has jobs that the results do not have"
if launched is not None:
    assert launched == len(rows), f"the machines began {launched} jobs, and the results have {len(rows)}"

if failed or lost:
    print(f"{launched} began by the logs of slurmd; slurmctld, killed, had forgotten {lost} jobs, and took {failed} for failed that had ended or not begun")
run_times = [float(row["execution_time"]) for row in rows]
moved = sum(row["exec_site"] != "1" for row in rows)
print(f"{len(rows)} jobs, each executed once by Slurm's own log, none twice; {moved} at another cluster than where they were submitted")
print(f"{mean_and_longest(waits_of(out))}; mean execution {statistics.mean(run_times):.2f} s; {by_slurm:.0f} s from the first start to the last end by Slurm")
print(f"simulated: {mean_and_longest(waits_of(out + '-simulated'))}")
