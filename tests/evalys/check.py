"""Checks that evalys reads a result directory and sees the utilization that metrics.json reports.

    pip install evalys "pandas<3"
    python tests/evalys/check.py RESULT_DIRECTORY

evalys knows one machine at a time, from the bounds it is given: the whole grid is one machine whose processors are
numbered site after site, and one site is the rows it executed with the bounds of manifest.json. Bounds must be given;
without them evalys takes the lowest and highest processor that it sees. Rejected jobs have no times, and evalys leaves
them out of the load. Exits with 1 if a number differs by more than a millionth.
"""

import json
import pathlib
import sys

from evalys.jobset import JobSet

TOLERANCE = 1e-6


def utilization(jobs, bounds, makespan):
    """The mean share of the processors within the bounds that were busy.

    mean_utilisation() refuses times before the first start or after the last end of a site, where nothing runs, so the
    area under the load is divided here.
    """
    jobset = JobSet(jobs, resource_bounds=bounds)
    return jobset.utilisation["area"].sum() / (makespan * jobset.MaxProcs)


def main(directory):
    manifest = json.loads((directory / "manifest.json").read_text())
    metrics = json.loads((directory / "metrics.json").read_text())["metrics"]
    sites = manifest["sites"]
    whole = (0, sites[-1]["resource_bounds"][1])
    jobset = JobSet.from_csv(str(directory / "jobs.csv"), resource_bounds=whole)
    jobs = jobset.df[jobset.df["final_state"] != "REJECTED"]

    wrong = (jobs["proc_alloc"] != jobs["requested_number_of_resources"]).sum()
    problems = [f"{wrong} jobs hold another number of processors than they asked for"] if wrong else []
    makespan = metrics["makespan_s"]

    def compare(name, rows, bounds, expected):
        seen = utilization(rows, bounds, makespan) if len(rows) else 0.0
        print(f"{name:<16} evalys {seen:.6f}  metrics.json {expected:.6f}")
        if abs(seen - expected) > TOLERANCE:
            problems.append(f"{name}: evalys sees {seen}, metrics.json says {expected}")

    compare("whole grid", jobs, whole, metrics["utilization"])
    for site, row in zip(sites, metrics["sites"]):
        rows = jobs[jobs["exec_site"] == site["id"]]
        compare(site["name"], rows, tuple(site["resource_bounds"]), row["utilization"])
    for problem in problems:
        print("PROBLEM:", problem)
    return 1 if problems else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(pathlib.Path(sys.argv[1])))
