//! The waiting jobs of one site in queue order, and the one question backfilling asks of them: which may
//! start within these limits?
//!
//! [`Limits::admits`] is monotone in width and in request, so one summary of a chunk of jobs (narrowest
//! width, shortest request of each class of widths) tells that none of them may start. What a scan refused stays
//! refused until a limit grows, so after an arrival only the new job is looked at.

use std::ops::ControlFlow;

use super::chunked::{Chunked, Entry};
use super::turn::{Place, Shape, Waiting};
use crate::job::JobId;
use crate::time::{Span, Time};

/// Classes of widths: 1, 2, 3 and 4, 5 to 8, and so on; the last has all that are wider.
const CLASSES: usize = 8;

/// The least of some jobs, each of its own job. One shortest request for all widths would be that of a job which is too wide, in
/// almost every chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Least {
    pub(crate) processors: u32,
    /// The shortest request of each class.
    requested: [Span; CLASSES],
}

impl Least {
    pub(crate) fn of(shape: Shape) -> Least {
        let mut requested = [Span::MAX; CLASSES];
        requested[class_of(shape.processors)] = shape.requested;
        Least { processors: shape.processors, requested }
    }

    pub(crate) fn and(self, other: Least) -> Least {
        let mut requested = self.requested;
        for (one, other) in requested.iter_mut().zip(other.requested) {
            *one = other.min(*one);
        }
        Least { processors: self.processors.min(other.processors), requested }
    }

    /// Without a job that may be one of the least: then it takes a look at the others.
    pub(crate) fn without(self, shape: Shape) -> Option<Least> {
        let is_least = shape.processors == self.processors
            || shape.requested == self.requested[class_of(shape.processors)];
        (!is_least).then_some(self)
    }
}

fn class_of(processors: u32) -> usize {
    let doublings = u32::BITS - processors.saturating_sub(1).leading_zeros();
    (doublings as usize).min(CLASSES - 1)
}

/// The narrowest width of a class.
fn narrowest_of(class: usize) -> u32 {
    if class == 0 { 0 } else { (1 << (class - 1)) + 1 }
}

impl Entry for Waiting {
    type Key = Place;
    type Summary = Least;

    fn key(&self) -> Place {
        self.place()
    }

    fn summary(&self) -> Least {
        Least::of(self.shape())
    }

    fn merge(one: Least, other: Least) -> Least {
        one.and(other)
    }

    fn without(&self, group: Least) -> Option<Least> {
        group.without(self.shape())
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

    pub(crate) fn admits(&self, job: Shape) -> bool {
        job.processors <= self.free && (job.processors <= self.extra || self.in_time(job.requested))
    }

    /// Whether one of the jobs with these least may be admitted; yes, if in doubt.
    pub(crate) fn may_admit(&self, least: &Least) -> bool {
        if least.processors > self.free {
            return false;
        }
        let slack = self.slack();
        let classes = least.requested.iter().enumerate();
        least.processors <= self.extra
            || classes
                .take_while(|&(class, _)| narrowest_of(class) <= self.free)
                .any(|(_, &least)| least <= slack)
    }

    pub(crate) fn take(&mut self, job: Shape) {
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
                if limits.admits(job.shape()) && self.jobs.remove(job.place()).is_some() {
                    limits.take(job.shape());
                    taken.push(*job);
                }
            }
        } else {
            self.jobs.take(
                &mut limits,
                |limits, least| ControlFlow::Continue(limits.may_admit(&least)),
                |limits, job| {
                    let admitted = limits.admits(job.shape());
                    if admitted {
                        limits.take(job.shape());
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
                assert!(!limits.admits(job.shape()), "job {} was refused by the limits kept", job.id);
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shape() -> impl Strategy<Value = Shape> {
        (1u32..300, 1i64..50).prop_map(|(processors, s)| Shape { processors, requested: Span::from_secs(s) })
    }

    proptest! {
        /// Whatever is admitted is looked for, and a group of jobs that are too wide or too long is not.
        #[test]
        fn a_group_is_looked_at_if_one_of_it_may_start(
            shapes in prop::collection::vec(shape(), 1..12), free in 0u32..300, extra in 0u32..300, shadow in 0i64..60
        ) {
            let limits = Limits { now: Time::ZERO, free, shadow: Time::from_secs(shadow), extra };
            let least = shapes.iter().copied().map(Least::of).reduce(Least::and).expect("there is one");
            let admitted = shapes.iter().any(|&shape| limits.admits(shape));
            prop_assert!(limits.may_admit(&least) || !admitted);
            // With the limits at the bounds of classes nothing is in doubt.
            let whole = Limits { free: free.next_power_of_two().min(64), extra: 0, ..limits };
            prop_assert_eq!(whole.may_admit(&least), shapes.iter().any(|&shape| whole.admits(shape)));
            for shape in &shapes {
                if let Some(rest) = least.without(*shape) {
                    prop_assert_eq!(rest, least);
                }
            }
        }
    }
}
