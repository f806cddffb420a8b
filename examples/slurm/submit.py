"""Submits the jobs of a log to a cluster under Slurm, each at its time."""

import subprocess
import sys
import time

begun = time.time()
with open(sys.argv[1]) as log:
    for line in log:
        fields = line.split()
        job, at, run_time, width = fields[0], float(fields[1]), fields[3], fields[4]
        time.sleep(max(0.0, begun + at - time.time()))
        words = ["sbatch", "--parsable", f"--job-name=sg-0-{job}.0", f"--ntasks={width}", "--time=1", "--output=/dev/null", f"--wrap=sleep {run_time}"]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
