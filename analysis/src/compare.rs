//! Two runs of one workload, job by job.
//!
//! Two schedules are identical if every job starts at the same time at the same site; ends follow, because run
//! times belong to the workload. This is how a protocol is shown to equal its ideal when messages are free.
//! [`events`] compares what led to the schedules.

pub mod events;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use scheduler::{JobId, SiteId, Span, Time};

use crate::job::JobOutcome;
use crate::outcome::Outcome;

/// Where and when a job started, if it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    /// The site that executed it.
    pub site: SiteId,
    /// When it began to execute, in trace time.
    #[serde(rename = "start_s", with = "scheduler::time::seconds")]
    pub start: Time,
}

/// One job that the two runs treated differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// The job, by the id that both runs have.
    pub job: JobId,
    /// In the first run.
    pub left: Option<Placement>,
    /// In the second run.
    pub right: Option<Placement>,
}

/// What two runs of one workload have in common.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Agreement {
    /// Jobs that both runs have.
    pub compared: usize,
    /// Jobs that only one run has.
    pub unmatched: usize,
    /// Of the compared, jobs with the same site and start.
    pub same: usize,
    /// Of the compared, jobs with the same site.
    pub same_site: usize,
    /// Makespan of the first run less that of the second.
    #[serde(rename = "makespan_difference_s", with = "scheduler::time::seconds")]
    pub makespan_difference: Span,
    /// Mean start of the first run less that of the second over the jobs that started in both, in seconds.
    pub start_difference_mean_s: f64,
    /// The largest absolute such difference.
    #[serde(rename = "start_difference_max_s", with = "scheduler::time::seconds")]
    pub start_difference_max: Span,
    /// The first jobs, by their earlier start, that differ.
    pub first_differences: Vec<Difference>,
}

impl Agreement {
    /// Compares two runs and keeps at most `limit` differences.
    pub fn between(left: &Outcome, right: &Outcome, limit: usize) -> Agreement {
        let mut tally = Tally::new(limit);
        for pair in Pairs::of(left, right) {
            match pair {
                (Some(left), Some(right)) => tally.pair(left.id, placement(left), placement(right)),
                _ => tally.unmatched(),
            }
        }
        tally.finish(left.makespan() - right.makespan())
    }

    /// Whether the two schedules are the same, job for job.
    pub fn identical(&self) -> bool {
        self.unmatched == 0 && self.same == self.compared
    }
}

/// An [`Agreement`] that is counted job by job, for runs that are not in memory.
#[derive(Clone, Debug)]
pub struct Tally {
    agreement: Agreement,
    limit: usize,
    /// The first differences, by their earlier start and the job.
    first: BTreeMap<(Time, JobId), Difference>,
    total: i128,
    both: u64,
}

impl Tally {
    /// Keeps at most `limit` differences.
    pub fn new(limit: usize) -> Tally {
        let agreement = Agreement {
            compared: 0,
            unmatched: 0,
            same: 0,
            same_site: 0,
            makespan_difference: Span::ZERO,
            start_difference_mean_s: 0.0,
            start_difference_max: Span::ZERO,
            first_differences: Vec::new(),
        };
        Tally { agreement, limit, first: BTreeMap::new(), total: 0, both: 0 }
    }

    /// A job that both runs have.
    pub fn pair(&mut self, job: JobId, left: Option<Placement>, right: Option<Placement>) {
        let agreement = &mut self.agreement;
        agreement.compared += 1;
        if let (Some(left), Some(right)) = (left, right) {
            self.both += 1;
            let difference = left.start.since(right.start);
            self.total += i128::from(difference.as_micros());
            agreement.start_difference_max = agreement.start_difference_max.max(difference).max(-difference);
        }
        let site = |placement: Option<Placement>| placement.map(|placement| placement.site);
        agreement.same_site += usize::from(site(left) == site(right));
        if left == right {
            agreement.same += 1;
            return;
        }
        let difference = Difference { job, left, right };
        self.first.insert((earlier(&difference), job), difference);
        if self.first.len() > self.limit {
            self.first.pop_last();
        }
    }

    /// A job that only one run has.
    pub fn unmatched(&mut self) {
        self.agreement.unmatched += 1;
    }

    /// The agreement of all jobs, with the makespan of the first run less that of the second.
    pub fn finish(mut self, makespan_difference: Span) -> Agreement {
        self.agreement.makespan_difference = makespan_difference;
        self.agreement.first_differences = self.first.into_values().collect();
        if self.both > 0 {
            self.agreement.start_difference_mean_s = self.total as f64 / 1e6 / self.both as f64;
        }
        self.agreement
    }
}

fn placement(job: &JobOutcome) -> Option<Placement> {
    Some(Placement { site: job.site?, start: job.start? })
}

fn earlier(difference: &Difference) -> Time {
    let start = |placement: Option<Placement>| placement.map_or(Time::MAX, |placement| placement.start);
    start(difference.left).min(start(difference.right))
}

/// The jobs of two runs matched by id.
enum Pairs<'a> {
    /// Both runs list the same jobs in the same order.
    Aligned(std::iter::Zip<std::slice::Iter<'a, JobOutcome>, std::slice::Iter<'a, JobOutcome>>),
    Matched(std::collections::btree_map::IntoValues<JobId, (Option<&'a JobOutcome>, Option<&'a JobOutcome>)>),
}

impl<'a> Pairs<'a> {
    fn of(left: &'a Outcome, right: &'a Outcome) -> Pairs<'a> {
        let ids = |outcome: &'a Outcome| outcome.jobs.iter().map(|job| job.id);
        if ids(left).eq(ids(right)) {
            return Pairs::Aligned(left.jobs.iter().zip(&right.jobs));
        }
        let mut matched: BTreeMap<JobId, (Option<&JobOutcome>, Option<&JobOutcome>)> = BTreeMap::new();
        for job in &left.jobs {
            matched.entry(job.id).or_default().0 = Some(job);
        }
        for job in &right.jobs {
            matched.entry(job.id).or_default().1 = Some(job);
        }
        Pairs::Matched(matched.into_values())
    }
}

impl<'a> Iterator for Pairs<'a> {
    type Item = (Option<&'a JobOutcome>, Option<&'a JobOutcome>);

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Pairs::Aligned(jobs) => jobs.next().map(|(left, right)| (Some(left), Some(right))),
            Pairs::Matched(jobs) => jobs.next(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;

    #[test]
    fn a_run_is_identical_to_itself() {
        let outcome = fixtures::outcome(&[2, 4], &[(0, 2, 10, 1, 0), (3, 2, 5, 2, 4)]);
        let agreement = Agreement::between(&outcome, &outcome, 5);
        assert!(agreement.identical());
        assert_eq!(agreement.same, 2);
    }

    #[test]
    fn the_first_difference_by_time_is_named() {
        let left = fixtures::outcome(&[2, 4], &[(0, 2, 10, 1, 30), (3, 2, 5, 2, 4), (4, 1, 1, 1, 5)]);
        let right = fixtures::outcome(&[2, 4], &[(0, 2, 10, 1, 40), (3, 2, 5, 2, 4), (4, 1, 1, 2, 6)]);

        let agreement = Agreement::between(&left, &right, 1);

        assert!(!agreement.identical());
        assert_eq!((agreement.same, agreement.same_site, agreement.compared), (1, 2, 3));
        assert_eq!(agreement.makespan_difference, Span::from_secs(-10));
        assert_eq!(agreement.start_difference_max, Span::from_secs(10));
        assert_eq!(agreement.first_differences.len(), 1);
        let first = agreement.first_differences[0];
        assert_eq!(first.job, JobId(3));
        assert_eq!(first.left, Some(Placement { site: SiteId(1), start: Time::from_secs(5) }));
    }

    #[test]
    fn jobs_of_one_run_only_are_unmatched() {
        let left = fixtures::outcome(&[2], &[(0, 2, 10, 1, 0), (3, 2, 5, 1, 10)]);
        let right = fixtures::outcome(&[2], &[(0, 2, 10, 1, 0)]);
        let agreement = Agreement::between(&left, &right, 5);
        assert_eq!((agreement.compared, agreement.unmatched), (1, 1));
        assert!(!agreement.identical());
    }
}
