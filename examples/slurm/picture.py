"""Draws what Slurm's own logs say of some runs: busy processors of each cluster over time, and waits in order of length."""

import csv
import datetime
import os
import re
import sys

out, runs = sys.argv[1], sys.argv[2:]
CLUSTERS = [("small", 8, "#d55e00"), ("middle", 16, "#0072b2"), ("large", 16, "#009e73")]
WIDTH, HEIGHT, LEFT, GAP = 860, 74, 110, 26


def executed(run):
    rows = []
    for cluster, _, _ in CLUSTERS:
        with open(f"{out}/{run}/ended-{cluster}.txt") as file:
            for line in file:
                fields = dict(re.findall(r"(\w+)=(\S*)", line))
                if fields["JobState"] != "CANCELLED" or fields["NodeList"] != "(null)":
                    times = [datetime.datetime.fromisoformat(fields[name]).timestamp() for name in ("SubmitTime", "StartTime", "EndTime")]
                    rows.append((cluster, *times, int(fields["ProcCnt"])))
    return rows


def waits(run):
    if os.path.exists(f"{out}/{run}/jobs.csv"):
        with open(f"{out}/{run}/jobs.csv") as file:
            return sorted(float(row["waiting_time"]) for row in csv.DictReader(file))
    return sorted(started - submitted for _, submitted, started, *_ in executed(run))


def steps(rows, cluster, origin):
    changes = {}
    for name, _, started, ended, processors in rows:
        if name == cluster:
            changes[started - origin] = changes.get(started - origin, 0) + processors
            changes[ended - origin] = changes.get(ended - origin, 0) - processors
    busy = 0
    for at in sorted(changes):
        yield at, busy
        busy += changes[at]
        yield at, busy


all_rows = {run: executed(run) for run in runs}
length = max(max(row[3] for row in rows) - min(row[1] for row in rows) for rows in all_rows.values())
chart = WIDTH - LEFT - 230
parts = []
for place, run in enumerate(runs):
    rows, top = all_rows[run], 30 + place * (HEIGHT + GAP)
    origin = min(row[1] for row in rows)
    parts.append(f'<text x="8" y="{top + HEIGHT / 2}">{run}</text>')
    parts.append(f'<rect x="{LEFT}" y="{top}" width="{chart}" height="{HEIGHT}" fill="#fff" stroke="#bbb"/>')
    for cluster, _, colour in CLUSTERS:
        points = " ".join(f"{LEFT + at / length * chart:.1f},{top + HEIGHT - busy / 16 * HEIGHT:.1f}" for at, busy in steps(rows, cluster, origin))
        if points:
            parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
    own, left = waits(run), LEFT + chart + 30
    most = max(waits("local")[-1] if "local" in runs else 0, own[-1], 1)
    parts.append(f'<rect x="{left}" y="{top}" width="180" height="{HEIGHT}" fill="#fff" stroke="#bbb"/>')
    points = " ".join(f"{left + number / len(own) * 180:.1f},{top + HEIGHT - wait / most * HEIGHT:.1f}" for number, wait in enumerate(own))
    parts.append(f'<polyline points="{points}" fill="none" stroke="#333" stroke-width="1.5"/>')
    parts.append(f'<text x="{left + 4}" y="{top + 14}">{sum(own) / len(own):.1f} s on average</text>')
bottom = 30 + len(runs) * (HEIGHT + GAP)
legend = "".join(f'<tspan fill="{colour}">{name} ({size}) </tspan>' for name, size, colour in CLUSTERS)
parts.append(f'<text x="{LEFT}" y="20">busy processors of {legend}in {length:.0f} s</text>')
parts.append(f'<text x="{LEFT + chart + 30}" y="20">waits, shortest first</text>')
with open(f"{out}/runs.svg", "w") as file:
    file.write(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {bottom}" font-family="sans-serif" font-size="13"><rect width="100%" height="100%" fill="#fff"/>')
    file.write("".join(parts) + "</svg>\n")
print(f"{out}/runs.svg")
