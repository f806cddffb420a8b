"""Submits jobs to a cluster under Slurm, makes a log of what Slurm wrote of them, and holds simulations of it against that."""

import csv
import datetime
import os
import random
import re
import statistics
import subprocess
import sys
import time

TOLERANCE = 2  # Slurm's log has seconds, and it looks at its queue once in one.

GAP = 1  # Between an end and what starts for it Slurm needs about a second; run times are that much longer in what is simulated.


def submit(confs):
    random.seed(11)
    begun = time.time()
    at = 0.0
    for job in range(1, 61):
        at += random.expovariate(1.0)
        run_time, width = random.randint(3, 14), random.choice([1, 1, 2, 3, 4, 6, 8])
        # Users ask for minutes, and for more than they need.
        minutes = random.choice([1, 1, 2, 3])
        time.sleep(max(0.0, begun + at - time.time()))
        words = ["sbatch", "--parsable", f"--job-name=job-{job}", f"--ntasks={width}", f"--time={minutes}", "--output=/dev/null", f"--wrap=sleep {run_time}"]
        for conf in confs:
            subprocess.run(words, check=True, stdout=subprocess.DEVNULL, env={**os.environ, "SLURM_CONF": conf})


def ended(out):
    rows = []
    with open(f"{out}/ended.txt") as file:
        for line in file:
            fields = dict(re.findall(r"(\w+)=(\S*)", line))
            times = [datetime.datetime.fromisoformat(fields[name]).timestamp() for name in ("SubmitTime", "StartTime", "EndTime")]
            rows.append((int(fields["JobId"]), *times, int(fields["ProcCnt"]), int(fields["TimeLimit"]) * 60))
            assert fields["JobState"] == "COMPLETED", line
    return sorted(rows)


def log(out):
    rows = ended(out)
    origin = min(row[1] for row in rows)
    with open(f"{out}/jobs.swf", "w") as file:
        for job, submitted, started, finished, width, limit in rows:
            file.write(f"{job} {submitted - origin:.0f} -1 {finished - started + GAP:.0f} {width} -1 -1 {width} {limit} -1 1 1 1 1 1 -1 -1 -1\n")


def compare(out, schedulers):
    rows = ended(out)
    slurm = {job: started - submitted for job, submitted, started, *_ in rows}
    print(f"Slurm: {len(rows)} jobs, mean wait {statistics.mean(slurm.values()):.1f} s, longest {max(slurm.values()):.0f} s")
    for scheduler in schedulers:
        with open(f"{out}/{scheduler}/jobs.csv") as file:
            ours = {int(row["job_id"]): float(row["waiting_time"]) for row in csv.DictReader(file)}
        apart = {job: ours[job] - slurm[job] for job in slurm}
        same = sum(abs(difference) <= TOLERANCE for difference in apart.values())
        first = next((job for job in sorted(slurm, key=lambda job: min(slurm[job], ours[job])) if abs(apart[job]) > TOLERANCE), None)
        print(
            f"{scheduler:20} mean wait {statistics.mean(ours.values()):6.1f} s, longest {max(ours.values()):4.0f} s; {same} of {len(rows)} start within {TOLERANCE} s of Slurm, "
            f"{sum(d > TOLERANCE for d in apart.values())} later, {sum(d < -TOLERANCE for d in apart.values())} earlier; mean distance {statistics.mean(map(abs, apart.values())):.1f} s; first apart: job {first}"
        )
    with open(f"{out}/apart.csv", "w") as file:
        names = ",".join(schedulers)
        file.write(f"job,processors,run_time,limit,submitted,slurm,{names}\n")
        starts = {}
        for scheduler in schedulers:
            with open(f"{out}/{scheduler}/jobs.csv") as table:
                starts[scheduler] = {int(row["job_id"]): float(row["starting_time"]) for row in csv.DictReader(table)}
        origin = min(row[1] for row in rows)
        for job, submitted, started, finished, width, limit in rows:
            ours = ",".join(f"{starts[scheduler][job]:.0f}" for scheduler in schedulers)
            file.write(f"{job},{width},{finished - started:.0f},{limit},{submitted - origin:.0f},{started - origin:.0f},{ours}\n")


what, out = sys.argv[1], sys.argv[2]
if what == "submit":
    submit(sys.argv[3:])
elif what == "log":
    log(out)
else:
    compare(out, sys.argv[3:])
