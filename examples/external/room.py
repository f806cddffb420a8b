#!/usr/bin/env python3
"""The smallest site where a job finds room; if there is none, the site with the least work per processor.

    PYTHONPATH=python/src stealgrid simulate EXPERIMENT.toml --strategy "broker:exec=python3 examples/external/room.py"

room.rs beside it is its twin in Rust and gives the same schedule. See docs/OWN-STRATEGY.md.
"""
from fractions import Fraction

import stealgrid


def room_first(job, sites):
    for site in sites:
        if site.load.processors + job.processors <= site.processors:
            return site
    return min(sites, key=lambda site: Fraction(site.load.work) / site.processors)


stealgrid.broker(room_first)
