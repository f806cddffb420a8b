//! Waiting jobs in another order than that of the queue: candidates of backfilling, shortest or narrowest first.

use std::ops::ControlFlow;

use super::backlog::{Least, Limits};
use super::chunked::{Chunked, Entry};
use super::turn::{Place, Waiting};

/// A job with what it is ordered by; of equals the first in queue order comes first.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    by: i64,
    job: Waiting,
}

impl Entry for Candidate {
    type Key = (i64, Place);
    type Summary = Least;

    fn key(&self) -> (i64, Place) {
        (self.by, self.job.place())
    }

    fn summary(&self) -> Least {
        Least::of(self.job.shape())
    }

    fn merge(one: Least, other: Least) -> Least {
        one.and(other)
    }

    fn without(&self, group: Least) -> Option<Least> {
        group.without(self.job.shape())
    }
}

/// Candidates, the least first.
#[derive(Clone, Debug)]
pub(super) struct Ordered {
    by: fn(&Waiting) -> i64,
    jobs: Chunked<Candidate>,
}

impl Ordered {
    pub(super) fn by(by: fn(&Waiting) -> i64) -> Ordered {
        Ordered { by, jobs: Chunked::new() }
    }

    pub(super) fn insert(&mut self, job: Waiting) {
        self.jobs.insert(Candidate { by: (self.by)(&job), job });
    }

    pub(super) fn remove(&mut self, job: &Waiting) {
        let found = self.jobs.remove(((self.by)(job), job.place()));
        assert!(found.is_some(), "job {} waits", job.id);
    }

    /// Takes every job that the limits admit, in order, each shrinking what is left to the next.
    pub(super) fn take(&mut self, mut limits: Limits, taken: &mut Vec<Waiting>) {
        self.jobs.take(
            &mut limits,
            |limits, least| ControlFlow::Continue(limits.may_admit(&least)),
            |limits, candidate| {
                let shape = candidate.job.shape();
                let admitted = limits.admits(shape);
                if admitted {
                    limits.take(shape);
                    taken.push(candidate.job);
                }
                admitted
            },
        );
    }

    pub(super) fn len(&self) -> usize {
        self.jobs.len()
    }

    pub(super) fn check_invariants(&self) {
        self.jobs.check_invariants();
    }
}
