//! Two runs of one workload, job by job.
//!
//! Two schedules are identical if every job starts at the same time at the same site; ends follow, because run
//! times belong to the workload. This is how a protocol is shown to equal its ideal when messages are free.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use scheduler::{JobId, SiteId, Span, Time};

use crate::outcome::{JobOutcome, Outcome};

/// Where and when a job started, if it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    /// The site.
    pub site: SiteId,
    /// The start.
    #[serde(rename = "start_us")]
    pub start: Time,
}

/// One job that the two runs treated differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// The job.
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
    #[serde(rename = "makespan_difference_us")]
    pub makespan_difference: Span,
    /// Mean start of the first run less that of the second over the jobs that started in both, in seconds.
    pub start_difference_mean_s: f64,
    /// The largest absolute such difference.
    #[serde(rename = "start_difference_max_us")]
    pub start_difference_max: Span,
    /// The first jobs, by their earlier start, that differ.
    pub first_differences: Vec<Difference>,
}

impl Agreement {
    /// Compares two runs and keeps at most `limit` differences.
    pub fn between(left: &Outcome, right: &Outcome, limit: usize) -> Agreement {
        let mut agreement = Agreement {
            compared: 0,
            unmatched: 0,
            same: 0,
            same_site: 0,
            makespan_difference: left.makespan() - right.makespan(),
            start_difference_mean_s: 0.0,
            start_difference_max: Span::ZERO,
            first_differences: Vec::new(),
        };
        let mut differences = Vec::new();
        let mut total = 0i128;
        let mut both = 0;
        for pair in Pairs::of(left, right) {
            let (Some(left), Some(right)) = pair else {
                agreement.unmatched += 1;
                continue;
            };
            agreement.compared += 1;
            let (from, to) = (placement(left), placement(right));
            if let (Some(from), Some(to)) = (from, to) {
                both += 1;
                let difference = from.start.since(to.start);
                total += i128::from(difference.as_micros());
                agreement.start_difference_max =
                    agreement.start_difference_max.max(difference).max(-difference);
            }
            let site = |placement: Option<Placement>| placement.map(|placement| placement.site);
            agreement.same_site += usize::from(site(from) == site(to));
            if from == to {
                agreement.same += 1;
            } else {
                differences.push(Difference { job: left.id, left: from, right: to });
            }
        }
        differences.sort_by_key(|difference| (earlier(difference), difference.job));
        differences.truncate(limit);
        agreement.first_differences = differences;
        if both > 0 {
            agreement.start_difference_mean_s = total as f64 / 1e6 / f64::from(both);
        }
        agreement
    }

    /// Whether the two schedules are the same, job for job.
    pub fn identical(&self) -> bool {
        self.unmatched == 0 && self.same == self.compared
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
