//! How jobs were served: the distributions of wait and bounded slowdown, over all jobs and over groups of them.
//!
//! A mean says nothing of who waits. Quantiles are by nearest rank: the smallest value that at least so many of the jobs
//! do not exceed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::job::JobOutcome;
use crate::outcome::Outcome;

/// Steps from the least value to the greatest: more than a curve on a page has pixels to show.
const STEPS: usize = 200;

/// The distributions of a run, as quantiles at equal steps from the least to the greatest; empty if no job ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Service {
    /// Waits from submission to start, in seconds, ascending.
    pub wait_s: Vec<f64>,
    /// Bounded slowdowns, at least 1 (Feitelson et al. 1997), ascending.
    pub bounded_slowdown: Vec<f64>,
}

/// How some jobs were served. Jobs that ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GroupService {
    /// How many they are.
    pub jobs: u64,
    /// Their mean wait.
    pub wait_mean_s: f64,
    /// What 95 % of them did not wait longer than.
    pub wait_p95_s: f64,
    /// The longest wait.
    pub wait_max_s: f64,
    /// Their mean bounded slowdown.
    pub bounded_slowdown_mean: f64,
    /// What 95 % of them do not exceed.
    pub bounded_slowdown_p95: f64,
}

/// Jobs of some widths.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct WidthService {
    /// The least width of this class, in processors.
    pub narrowest: u32,
    /// The greatest; each class is twice as wide as the one before.
    pub widest: u32,
    /// How they were served.
    #[serde(flatten)]
    pub service: GroupService,
}

/// Jobs of one user, wherever they were submitted. A log has a number for each of its users, also where it is dealt to
/// several sites; a mix of logs has numbers of its own, so that users of different logs are different ones.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct UserService {
    /// The user by number; -1 where it is not known.
    pub user: i32,
    /// How the jobs were served.
    #[serde(flatten)]
    pub service: GroupService,
}

impl Service {
    /// Of all jobs that ended.
    pub fn of(outcome: &Outcome) -> Service {
        let values: Values = outcome.finished().collect();
        let (waits, slowdowns) = values.ascending();
        let curve = |values: &[f64]| match values.len() {
            0 => Vec::new(),
            _ => (0..=STEPS).map(|step| quantile(values, step, STEPS)).collect(),
        };
        Service { wait_s: curve(&waits), bounded_slowdown: curve(&slowdowns) }
    }

    /// Jobs by classes of widths that occur: 1, 2, 3 to 4, 5 to 8, ...
    pub fn by_width(outcome: &Outcome) -> Vec<WidthService> {
        let mut classes: BTreeMap<u32, Values> = BTreeMap::new();
        for job in outcome.finished() {
            classes.entry(job.processors.next_power_of_two()).or_default().add(job);
        }
        let class = |(widest, values): (u32, Values)| WidthService {
            narrowest: widest / 2 + 1,
            widest,
            service: values.service(),
        };
        classes.into_iter().map(class).collect()
    }

    /// The `most` users with most jobs, and how many users there are.
    pub fn by_user(outcome: &Outcome, most: usize) -> (Vec<UserService>, usize) {
        let mut users: BTreeMap<i32, Values> = BTreeMap::new();
        for job in outcome.finished() {
            users.entry(job.labels.user).or_default().add(job);
        }
        let count = users.len();
        let mut users: Vec<_> = users.into_iter().collect();
        users.sort_by_key(|(who, values)| (std::cmp::Reverse(values.waits.len()), *who));
        users.truncate(most);
        let user = |(user, values): (i32, Values)| UserService { user, service: values.service() };
        (users.into_iter().map(user).collect(), count)
    }
}

/// Waits in seconds and bounded slowdowns of jobs that ended.
#[derive(Default)]
struct Values {
    waits: Vec<f64>,
    slowdowns: Vec<f64>,
}

impl Values {
    fn add(&mut self, job: &JobOutcome) {
        if let (Some(wait), Some(slowdown)) = (job.wait(), job.bounded_slowdown()) {
            self.waits.push(wait.as_secs_f64());
            self.slowdowns.push(slowdown.max(1.0));
        }
    }

    fn ascending(mut self) -> (Vec<f64>, Vec<f64>) {
        self.waits.sort_unstable_by(f64::total_cmp);
        self.slowdowns.sort_unstable_by(f64::total_cmp);
        (self.waits, self.slowdowns)
    }

    fn service(self) -> GroupService {
        let (waits, slowdowns) = self.ascending();
        if waits.is_empty() {
            return GroupService::default();
        }
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        GroupService {
            jobs: waits.len() as u64,
            wait_mean_s: mean(&waits),
            wait_p95_s: quantile(&waits, 95, 100),
            wait_max_s: quantile(&waits, 1, 1),
            bounded_slowdown_mean: mean(&slowdowns),
            bounded_slowdown_p95: quantile(&slowdowns, 95, 100),
        }
    }
}

impl<'a> FromIterator<&'a JobOutcome> for Values {
    fn from_iter<T: IntoIterator<Item = &'a JobOutcome>>(jobs: T) -> Values {
        let mut values = Values::default();
        jobs.into_iter().for_each(|job| values.add(job));
        values
    }
}

/// The value at `part` of `whole` of some that are ascending and not empty.
fn quantile(values: &[f64], part: usize, whole: usize) -> f64 {
    let rank = (values.len() * part).div_ceil(whole).max(1);
    values[rank - 1]
}

#[cfg(test)]
mod tests {
    use scheduler::{
        Event, EventKind, Grid, JobId, JobSpec, Labels, SiteId, Span, Threshold, Time, TimedJob,
    };

    use super::*;
    use crate::outcome::OutcomeBuilder;

    /// Jobs of 100 s `(width, user, wait)`, one after another submitted at 0, on one site of 1,024 processors.
    fn outcome(jobs: &[(u32, i32, i64)]) -> Outcome {
        let grid = Grid::of_sizes(&[1024]).unwrap();
        let site = SiteId(1);
        let job = |(place, &(processors, user, _)): (usize, &(u32, i32, i64))| TimedJob {
            spec: JobSpec {
                id: JobId(place as u64 + 1),
                submit: Time::ZERO,
                processors,
                requested: Span::from_secs(100),
                labels: Labels { user, ..Labels::UNKNOWN },
                origin: site,
                payload: 0,
            },
            run_time: Span::from_secs(100),
        };
        let workload: Vec<TimedJob> = jobs.iter().enumerate().map(job).collect();
        let mut events: Vec<Event> = Vec::new();
        for (timed, &(processors, _, wait)) in workload.iter().zip(jobs) {
            let job = timed.spec.id;
            let start = EventKind::Started { job, processors, hops: 0 };
            events.push(Event { at: Time::from_secs(wait), site, kind: start });
            let end = EventKind::Completed { job, processors };
            events.push(Event { at: Time::from_secs(wait + 100), site, kind: end });
        }
        events.sort_by_key(|event| event.at);
        let mut builder = OutcomeBuilder::new(&grid, Threshold::HALF, &workload);
        events.iter().for_each(|event| builder.observe(event));
        builder.finish()
    }

    #[test]
    fn quantiles_are_by_nearest_rank_and_reach_both_ends() {
        let service = Service::of(&outcome(&[(1, 1, 300), (1, 1, 0), (1, 1, 100), (1, 1, 200)]));
        let at = |percent: usize| service.wait_s[percent * STEPS / 100];
        assert_eq!([0, 25, 26, 50, 75, 76, 100].map(at), [0.0, 0.0, 100.0, 100.0, 200.0, 300.0, 300.0]);
        assert_eq!((service.bounded_slowdown[0], service.bounded_slowdown[STEPS]), (1.0, 4.0));
        assert_eq!(Service::of(&outcome(&[])), Service::default());
    }

    #[test]
    fn groups_hold_each_job_once() {
        let run = outcome(&[(1, 7, 0), (2, 7, 10), (3, 8, 20), (4, 8, 40), (5, 8, 0), (1024, 9, 5)]);
        let widths = Service::by_width(&run);
        let classes: Vec<_> =
            widths.iter().map(|class| (class.narrowest, class.widest, class.service.jobs)).collect();
        assert_eq!(classes, [(1, 1, 1), (2, 2, 1), (3, 4, 2), (5, 8, 1), (513, 1024, 1)]);
        assert_eq!(widths[2].service.wait_mean_s, 30.0);
        assert_eq!(widths[2].service.wait_p95_s, 40.0);
        // The log was dealt to two sites: its users are the same at both.
        let mut run = run;
        run.jobs[2].origin = SiteId(2);
        let (users, count) = Service::by_user(&run, 2);
        let users: Vec<_> =
            users.iter().map(|one| (one.user, one.service.jobs, one.service.wait_max_s)).collect();
        assert_eq!((users, count), (vec![(8, 3, 40.0), (7, 2, 10.0)], 3));
    }
}
