//! The waiting jobs of one site in queue order, and the one question backfilling asks of them: which may
//! start within these limits?
//!
//! [`Limits::admits`] is monotone in width and in request, so one summary of a chunk of jobs (narrowest
//! width, shortest request) tells that none of them may start. What a scan refused stays refused until a
//! limit grows, so after an arrival only the new job is looked at.

use std::ops::ControlFlow;

use super::chunked::{Chunked, Entry};
use super::turn::{Place, Waiting};
use crate::job::JobId;
use crate::time::{Span, Time};

/// The narrowest width and the shortest request among some jobs, each of its own job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Least {
    pub(crate) processors: u32,
    pub(crate) requested: Span,
}

impl Entry for Waiting {
    type Key = Place;
    type Summary = Least;

    fn key(&self) -> Place {
        self.place()
    }

    fn summary(&self) -> Least {
        Least { processors: self.processors, requested: self.requested }
    }

    fn merge(one: Least, other: Least) -> Least {
        Least {
            processors: one.processors.min(other.processors),
            requested: one.requested.min(other.requested),
        }
    }

    fn without(&self, group: Least) -> Option<Least> {
        let is_least = self.processors == group.processors || self.requested == group.requested;
        (!is_least).then_some(group)
    }
}

/// What a job must respect to start now: the free processors, and the reservation of the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) now: Time,
    /// Processors free now.
    pub(crate) free: u32,
    /// A job that ends by its estimate no later than this does not touch the reservation.
    pub(crate) shadow: Time,
    /// Processors that jobs ending later may use.
    pub(crate) extra: u32,
}

impl Limits {
    /// Nothing is reserved.
    pub(crate) fn unreserved(now: Time, free: u32) -> Limits {
        Limits { now, free, shadow: Time::MAX, extra: u32::MAX }
    }

    /// Nothing may start.
    pub(crate) fn closed(now: Time) -> Limits {
        Limits { now, free: 0, shadow: Time::ZERO, extra: 0 }
    }

    /// The longest request that ends no later than the shadow time.
    pub(crate) fn slack(&self) -> Span {
        Span::from_micros(self.shadow.as_micros().saturating_sub(self.now.as_micros()))
    }

    fn in_time(&self, requested: Span) -> bool {
        requested <= self.slack()
    }

    pub(crate) fn admits(&self, job: Least) -> bool {
        job.processors <= self.free && (job.processors <= self.extra || self.in_time(job.requested))
    }

    pub(crate) fn take(&mut self, job: Least) {
        self.free -= job.processors;
        if !self.in_time(job.requested) {
            self.extra -= job.processors;
        }
    }

    /// Whether a job that `earlier` limits refused is refused by these too.
    fn within(&self, earlier: &Limits) -> bool {
        self.now >= earlier.now
            && self.free <= earlier.free
            && self.shadow <= earlier.shadow
            && self.extra <= earlier.extra
    }
}

/// Waiting jobs in queue order.
#[derive(Clone, Debug)]
pub(crate) struct Backlog {
    jobs: Chunked<Waiting>,
    /// Every waiting job that is not fresh is refused by these limits.
    refused_by: Option<Limits>,
    /// Jobs that came since.
    fresh: Vec<Waiting>,
}

impl Backlog {
    pub(crate) fn new() -> Self {
        Backlog { jobs: Chunked::new(), refused_by: None, fresh: Vec::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.jobs.len()
    }

    pub(crate) fn head(&self) -> Option<&Waiting> {
        self.jobs.first()
    }

    pub(crate) fn find(&self, job: JobId) -> Option<Waiting> {
        self.jobs.iter().find(|waiting| waiting.id == job).copied()
    }

    pub(crate) fn last_place(&self) -> Option<Place> {
        self.jobs.iter().last().map(Waiting::place)
    }

    pub(crate) fn insert(&mut self, job: Waiting) {
        self.jobs.insert(job);
        self.fresh.push(job);
    }

    pub(crate) fn remove(&mut self, key: Place) -> Option<Waiting> {
        self.jobs.remove(key)
    }

    /// Nobody is a candidate: the queue is empty, or only heads may start.
    pub(crate) fn forget_candidates(&mut self) {
        self.refused_by = None;
        self.fresh.clear();
    }

    /// Takes every job that the limits admit, in queue order, each shrinking what is left to the next.
    pub(crate) fn take_first_fit(&mut self, mut limits: Limits, taken: &mut Vec<Waiting>) {
        if limits.free == 0 {
            // Without a free processor nobody is a candidate, fresh or not.
            return self.refuse_rest(Limits::closed(limits.now));
        }
        if self.only_fresh_may(&limits) {
            self.fresh.sort_unstable_by_key(Waiting::place);
            for job in &self.fresh {
                if limits.admits(job.summary()) && self.jobs.remove(job.place()).is_some() {
                    limits.take(job.summary());
                    taken.push(*job);
                }
            }
        } else {
            self.jobs.take(
                &mut limits,
                |limits, least| ControlFlow::Continue(limits.admits(least)),
                |limits, job| {
                    let admitted = limits.admits(job.summary());
                    if admitted {
                        limits.take(job.summary());
                        taken.push(*job);
                    }
                    admitted
                },
            );
        }
        self.refuse_rest(limits);
    }

    /// What every waiting job is refused by since the latest scan.
    pub(crate) fn refused_by(&self) -> Option<Limits> {
        self.refused_by
    }

    pub(crate) fn check_invariants(&self) {
        self.jobs.check_invariants();
        if let Some(limits) = self.refused_by {
            for job in self.jobs.iter().filter(|job| !self.fresh.contains(job)) {
                assert!(!limits.admits(job.summary()), "job {} was refused by the limits kept", job.id);
            }
        }
    }

    fn only_fresh_may(&self, limits: &Limits) -> bool {
        self.refused_by.is_some_and(|refused_by| limits.within(&refused_by))
    }

    fn refuse_rest(&mut self, limits: Limits) {
        self.refused_by = Some(limits);
        self.fresh.clear();
    }
}
