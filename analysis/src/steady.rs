//! Metrics of the jobs in the middle of a run, without those that found the grid still empty or saw no others come after them.
//!
//! A run begins with idle sites and ends when the last job has. Jobs submitted in the first part of the time of submissions
//! wait less than they would in a grid that has been busy for long; those of the last part compete with fewer later ones.
//! Both are left out ([`Cut`]); all of them are simulated. Whose waits: a job belongs to the site of its user, wherever it ran.

use serde::{Deserialize, Serialize};

use scheduler::{Grid, SiteId, Span, Time};

use crate::job::{JobOutcome, JobState};
use crate::outcome::Outcome;
use crate::statistics::{mean, quantile};

/// Shares of the time from the first submission to the last that are left out at its ends.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cut {
    /// At the beginning, 0 or more.
    pub warm_up: f64,
    /// At the end; both together are less than 1.
    pub cool_down: f64,
}

impl Default for Cut {
    /// A fifth at either end: of two weeks nearly three days, longer than most jobs of most logs.
    fn default() -> Cut {
        Cut { warm_up: 0.2, cool_down: 0.2 }
    }
}

impl Cut {
    /// The submissions that count: from the first time on, up to and without the second. All of them if nothing is cut.
    pub fn window(self, first: Time, last: Time) -> (Time, Time) {
        let span = last.since(first).as_micros() as f64;
        let at = |share: f64| first + Span::from_micros((span * share).round() as i64);
        let end = if self.cool_down > 0.0 { at(1.0 - self.cool_down) } else { Time::MAX };
        (at(self.warm_up), end)
    }
}

/// Metrics of the jobs submitted between warm-up and cool-down. Times in seconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Steady {
    /// The first submission that counts, and the end of those that do, in trace time.
    pub from_s: f64,
    /// See [`Steady::from_s`].
    pub until_s: f64,
    /// Jobs that were submitted then and ended.
    pub jobs: usize,
    /// Mean wait.
    pub wait_mean_s: f64,
    /// The 99 % quantile of the waits, with linear interpolation between neighbors.
    pub wait_p99_s: f64,
    /// The longest wait.
    pub wait_max_s: f64,
    /// Mean of max(1, turnaround / max(10 s, p_j)) (Feitelson et al. 1997).
    pub bounded_slowdown_mean: f64,
    /// AWRT: sum of w_j turnaround over sum of w_j (Grimme, Lepping and Papaspyrou 2007). `None` without work.
    pub awrt_s: Option<f64>,
    /// Wide jobs: those that need more than half of the site of their user, or more than all of it.
    pub wide_jobs: usize,
    /// Their mean wait. `None` if there are none.
    pub wide_wait_mean_s: Option<f64>,
    /// Jain's index of the sites' mean bounded slowdowns, 1 if all are the same, 1/n if one site has it all (Jain, Chiu, Hawe
    /// 1984). `None` without jobs.
    pub fairness: Option<f64>,
    /// One row per site, in the order of the experiment.
    pub sites: Vec<SteadySite>,
}

/// What the users of one site got.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SteadySite {
    /// Where they submit.
    pub site: SiteId,
    /// Its name in the experiment.
    pub name: String,
    /// How many of its users' jobs count.
    pub jobs: usize,
    /// Their mean wait. `None` if there are none.
    pub wait_mean_s: Option<f64>,
    /// Their mean bounded slowdown. `None` if there are none.
    pub bounded_slowdown_mean: Option<f64>,
}

impl Steady {
    /// The metrics of a run. Jobs that did not end do not count, as in [`crate::Metrics`].
    pub fn of(outcome: &Outcome, cut: Cut) -> Steady {
        let submissions =
            || outcome.jobs.iter().filter(|job| job.state != JobState::Rejected).map(|job| job.submit);
        let first = submissions().min().unwrap_or(Time::ZERO);
        let last = submissions().max().unwrap_or(Time::ZERO);
        let (from, until) = cut.window(first, last);
        let jobs: Vec<&JobOutcome> =
            outcome.finished().filter(|job| from <= job.submit && job.submit < until).collect();
        let mut waits: Vec<f64> = jobs.iter().map(|job| wait(job)).collect();
        let wide: Vec<f64> =
            jobs.iter().filter(|job| is_wide(&outcome.grid, job)).map(|job| wait(job)).collect();
        let work: f64 = jobs.iter().map(|job| job.work() as f64).sum();
        let weighted: f64 = jobs.iter().map(|job| job.work() as f64 * turnaround(job)).sum();
        let mut by_site: Vec<Vec<&JobOutcome>> = vec![Vec::new(); outcome.grid.len()];
        for job in &jobs {
            by_site[job.origin.index()].push(job);
        }
        let sites: Vec<SteadySite> = outcome
            .grid
            .sites()
            .iter()
            .zip(&by_site)
            .filter(|(site, _)| site.processors > 0)
            .map(|(site, own)| of_site(site, own))
            .collect();
        let slowdowns: Vec<f64> = sites.iter().filter_map(|site| site.bounded_slowdown_mean).collect();
        let wait_mean_s = mean(&waits).unwrap_or(0.0);
        waits.sort_unstable_by(f64::total_cmp);
        Steady {
            from_s: from.as_secs_f64(),
            until_s: until.min(last).as_secs_f64(),
            jobs: jobs.len(),
            wait_mean_s,
            wait_p99_s: quantile(&waits, 0.99).unwrap_or(0.0),
            wait_max_s: waits.last().copied().unwrap_or(0.0),
            bounded_slowdown_mean: mean_slowdown(&jobs).unwrap_or(0.0),
            awrt_s: (work > 0.0).then(|| weighted / work),
            wide_jobs: wide.len(),
            wide_wait_mean_s: mean(&wide),
            fairness: jain(&slowdowns),
            sites,
        }
    }
}

fn of_site(site: &scheduler::Site, own: &[&JobOutcome]) -> SteadySite {
    let waits: Vec<f64> = own.iter().map(|job| wait(job)).collect();
    SteadySite {
        site: site.id,
        name: site.name.clone(),
        jobs: own.len(),
        wait_mean_s: mean(&waits),
        bounded_slowdown_mean: mean_slowdown(own),
    }
}

/// More than half of the site of its user.
fn is_wide(grid: &Grid, job: &JobOutcome) -> bool {
    u64::from(job.processors) * 2 > u64::from(grid.site(job.origin).processors)
}

fn wait(job: &JobOutcome) -> f64 {
    job.wait().expect("a finished job has started").as_secs_f64()
}

fn turnaround(job: &JobOutcome) -> f64 {
    job.turnaround().expect("a finished job has ended").as_secs_f64()
}

fn mean_slowdown(jobs: &[&JobOutcome]) -> Option<f64> {
    let bounded = |job: &&JobOutcome| job.bounded_slowdown().expect("a finished job has ended").max(1.0);
    mean(&jobs.iter().map(bounded).collect::<Vec<f64>>())
}

/// Jain's index: the square of the sum over n times the sum of squares.
fn jain(values: &[f64]) -> Option<f64> {
    let (sum, squares) =
        values.iter().fold((0.0, 0.0), |(sum, squares), value| (sum + value, squares + value * value));
    (squares > 0.0).then(|| sum * sum / (values.len() as f64 * squares))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;
    use crate::{Bounds, Metrics};

    fn close(measured: f64, expected: f64) {
        assert!((measured - expected).abs() < 1e-9 * expected.abs().max(1.0), "{measured} is not {expected}");
    }

    /// `(submit, processors, run time, site, start)`; all are submitted at site 1, which has 2 processors.
    const JOBS: [(i64, u32, i64, u32, i64); 5] =
        [(0, 1, 100, 1, 0), (20, 1, 40, 1, 30), (50, 2, 10, 2, 90), (79, 1, 1, 1, 80), (100, 1, 5, 1, 400)];

    #[test]
    fn only_jobs_between_the_cuts_count() {
        let outcome = fixtures::outcome(&[2, 4], &JOBS);
        let steady = Steady::of(&outcome, Cut::default());

        // Submissions at 0 and 100 are at the ends; the window is from 20 up to and without 80.
        assert_eq!((steady.from_s, steady.until_s, steady.jobs), (20.0, 80.0, 3));
        close(steady.wait_mean_s, (10.0 + 40.0 + 1.0) / 3.0);
        close(steady.wait_max_s, 40.0);
        close(steady.wait_p99_s, 40.0 - 0.02 * 30.0);
        // Turnarounds 50, 50 and 2 over 40, 10 and 10; the last is 1 at least.
        close(steady.bounded_slowdown_mean, (1.25 + 5.0 + 1.0) / 3.0);
        close(steady.awrt_s.unwrap(), (40.0 * 50.0 + 20.0 * 50.0 + 2.0) / 61.0);
        // Two processors are more than half of site 1, one is not.
        assert_eq!((steady.wide_jobs, steady.wide_wait_mean_s), (1, Some(40.0)));
        assert_eq!((steady.sites[0].jobs, steady.sites[1].jobs), (3, 0));
        assert_eq!((steady.sites[1].wait_mean_s, steady.fairness), (None, Some(1.0)));
    }

    #[test]
    fn without_a_cut_they_are_the_metrics_of_all_jobs() {
        let outcome = fixtures::outcome(&[2, 4], &JOBS);
        let steady = Steady::of(&outcome, Cut { warm_up: 0.0, cool_down: 0.0 });
        let metrics = Metrics::of(&outcome, &Bounds::of(&outcome));

        assert_eq!(steady.jobs, metrics.finished);
        close(steady.wait_mean_s, metrics.wait_mean_s);
        close(steady.wait_max_s, metrics.wait_max_s);
        close(steady.bounded_slowdown_mean, metrics.bounded_slowdown_mean);
        close(steady.awrt_s.unwrap(), metrics.awrt_s.unwrap());
    }

    #[test]
    fn nothing_is_in_a_window_without_jobs() {
        let outcome = fixtures::outcome(&[2], &[]);
        let steady = Steady::of(&outcome, Cut::default());
        assert_eq!((steady.jobs, steady.awrt_s, steady.fairness), (0, None, None));
    }

    #[test]
    fn fairness_is_one_for_all_or_a_part_for_one() {
        close(jain(&[3.0, 3.0, 3.0]).unwrap(), 1.0);
        close(jain(&[1.0, 0.0, 0.0, 0.0]).unwrap(), 0.25);
        assert_eq!(jain(&[]), None);
    }
}
