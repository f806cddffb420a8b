//! Which waiting jobs are worth giving away: those that another site could start earlier by more than the price.
//!
//! The estimate is the site's own. Its running jobs end as their users said, or now if they should have ended. Its
//! waiting jobs start in the order in which it takes them (firmly held ones, the leading class, the rest; each in
//! queue order), none before the one ahead of it. So estimated starts never decrease along that order, and the jobs
//! worth giving away are all from some place on.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use scheduler::waiting::{WaitingList, Widths};
use scheduler::{JobSpec, QueueKey, Span, Time};

use crate::core::Core;
use crate::rank::Rank;

/// The waiting jobs that are worth giving to one site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Worth {
    /// All of them: no margin is asked for.
    Any,
    /// Those of each class from this place on, none for a class without a place.
    From {
        /// Processors of the site; what is wider never starts here.
        processors: u32,
        /// The class that the site takes first.
        leading: Widths,
        /// Where it begins there.
        leading_from: Option<QueueKey>,
        /// Where it begins among the others.
        rest_from: Option<QueueKey>,
    },
}

impl Worth {
    /// Whether a waiting job is worth giving away.
    pub(crate) fn holds(&self, job: &JobSpec) -> bool {
        match *self {
            Worth::Any => true,
            Worth::From { processors, .. } if job.processors > processors => true,
            Worth::From { leading, leading_from, rest_from, .. } => {
                let from = if leading.contains(job.processors) { leading_from } else { rest_from };
                from.is_some_and(|from| job.key() >= from)
            }
        }
    }
}

impl Core {
    /// Which waiting jobs are worth giving to another site. A job that would start here later than the margin and
    /// twice the one-way delay to that site, as far as it is known, from now. `held` go first, then those of `own` that
    /// are of the leading class.
    pub(crate) fn worth<'a>(
        &self,
        now: Time,
        other: Rank,
        own: &WaitingList,
        held: impl Iterator<Item = &'a JobSpec>,
        leading: Widths,
    ) -> Worth {
        let Some(margin) = self.config.options.margin else { return Worth::Any };
        let price = margin + self.round_trips.to(other).unwrap_or(Span::ZERO);
        let limit = now.saturating_add(price);
        let processors = self.processors();
        let mut machine = Machine::new(now, self.free, self.releases_of_running());
        for job in held {
            machine.start(job);
        }
        let leading_from = machine.first_after(limit, own.merged(leading.fitting(processors)));
        let mut rest = own.merged(Widths::up_to(processors)).filter(|job| !leading.contains(job.processors));
        let rest_from = match leading_from {
            // Whatever comes after a late job is later.
            Some(_) => rest.next().map(JobSpec::key),
            None => machine.first_after(limit, rest),
        };
        Worth::From { processors, leading, leading_from, rest_from }
    }
}

/// A machine on which jobs start one after the other, each as early as it fits.
struct Machine {
    at: Time,
    free: u32,
    releases: BinaryHeap<Reverse<(Time, u32)>>,
}

impl Machine {
    fn new(now: Time, free: u32, releases: impl Iterator<Item = (Time, u32)>) -> Machine {
        Machine {
            at: now,
            free,
            releases: releases.map(|(end, width)| Reverse((end.max(now), width))).collect(),
        }
    }

    /// The first of these jobs that starts later than this.
    fn first_after<'a>(
        &mut self,
        limit: Time,
        mut jobs: impl Iterator<Item = &'a JobSpec>,
    ) -> Option<QueueKey> {
        jobs.find(|job| self.start(job) > limit).map(JobSpec::key)
    }

    /// When the job starts.
    fn start(&mut self, job: &JobSpec) -> Time {
        while self.free < job.processors {
            let Reverse((end, width)) = self.releases.pop().expect("a job is no wider than its site");
            self.at = self.at.max(end);
            self.free += width;
        }
        self.free -= job.processors;
        self.releases.push(Reverse((self.at.saturating_add(job.requested), job.processors)));
        self.at
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;

    fn job(id: u64, processors: u32, requested: i64) -> JobSpec {
        JobSpec { requested: Span::from_secs(requested), ..fixtures::job(id, processors) }
    }

    #[test]
    fn jobs_start_in_order_when_enough_processors_are_free() {
        let releases = [(Time::from_secs(4), 2), (Time::from_secs(-9), 1)];
        let mut machine = Machine::new(Time::ZERO, 1, releases.into_iter());
        let starts = [job(1, 2, 10), job(2, 3, 5), job(3, 1, 1), job(4, 1, 1)].map(|job| machine.start(&job));
        // The second one needs the first to end; the third may not overtake it.
        assert_eq!(starts, [0, 10, 10, 11].map(Time::from_secs));
    }

    #[test]
    fn only_jobs_from_a_place_on_are_worth_it() {
        let leading = Widths::above(2);
        let leading_from = Some(job(2, 3, 1).key());
        let worth = Worth::From { processors: 4, leading, leading_from, rest_from: None };
        assert!(!worth.holds(&job(1, 3, 1)));
        assert!(worth.holds(&job(2, 3, 1)));
        assert!(!worth.holds(&job(3, 1, 1)), "no job of the other class is late");
        assert!(worth.holds(&job(1, 5, 1)), "it never starts here");
        assert!(Worth::Any.holds(&job(1, 3, 1)));
    }
}
