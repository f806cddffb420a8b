"""How long jobs took from one cluster to another beyond what Slurm itself took, by the logs of the nodes of a run: from when a site granted a
job that waited in its Slurm until Slurm had it at the other, less the delay of the link, and less all time in which either node waited for
Slurm to cancel or to take this job or another."""

import datetime
import glob
import re
import statistics
import sys

out, delay_ms = sys.argv[1], float(sys.argv[2])
UNITS = {"ns": 1e-6, "µs": 1e-3, "ms": 1.0, "s": 1e3}


def millis(line):
    number, unit = re.search(r"took=([\d.]+)(ns|µs|ms|s)\b", line).groups()
    return float(number) * UNITS[unit]


def covered(spans, begin, end):
    """How much of a time is in some span."""
    length, until = 0.0, begin
    for a, b in sorted(spans):
        a, b = max(a, until), min(b, end)
        if b > a:
            length, until = length + b - a, b
    return length


lines, waited = [], {}
for path in glob.glob(f"{out}/nodes/*.log"):
    waited[path] = []
    with open(path) as log:
        for line in log:
            job = re.search(r"\bjob=(\d+)", line)
            if job and "node::" in line:
                at = datetime.datetime.fromisoformat(line.split("Z", 1)[0]).timestamp() * 1000
                lines.append((at, int(job.group(1)), path, line))
                if "took=" in line:
                    waited[path].append((at - millis(line), at))
granted, cancelled, beyond, in_all = {}, set(), [], []
for at, job, path, line in sorted(lines):
    if "a job is to leave" in line:
        granted[job] = at, path
    elif "does not begin in Slurm any more, to leave" in line:
        cancelled.add(job)
    elif "submitted to Slurm" in line and job in granted and job in cancelled:
        begin, victim = granted.pop(job)
        cancelled.remove(job)
        in_all.append(at - begin)
        beyond.append(at - begin - delay_ms - covered(waited[victim] + waited[path], begin, at))
beyond.sort()
print(
    f"{len(beyond)} jobs handed over: beyond Slurm's answers {statistics.median(beyond):.0f} ms in the median, {beyond[int(len(beyond) * 0.95)]:.0f} ms for 95%, {beyond[-1]:.0f} ms at most; "
    f"with them and the link {statistics.median(in_all):.0f} ms in the median"
)
