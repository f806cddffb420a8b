//! Busy processors and waiting jobs of each site over time, as step functions of bounded length.
//!
//! A job waits at its home site from its submission to its start, wherever it starts: the short time it spends
//! between sites counts as waiting at home. Jobs that did not start or end reach to the last event of the run. A
//! function with too many steps is replaced by its means over equal intervals, which keeps its area.

use scheduler::{Class, SiteId, Span, Time};

use crate::faults::Attempt;
use crate::job::{JobOutcome, JobState};
use crate::outcome::Outcome;

/// A step function: from `times[i]` on it has `values[i]`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Steps {
    /// When the value changes, in ascending order.
    pub times: Vec<Time>,
    /// One per time.
    pub values: Vec<f64>,
}

/// What one site, or the whole grid, did over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SiteSeries {
    /// Processors running jobs.
    pub busy: Steps,
    /// Waiting jobs that are big at their home, this site.
    pub waiting_a: Steps,
    /// Waiting jobs that are small at their home, this site.
    pub waiting_b: Steps,
}

/// The functions of every site, each with at most `points` steps, in the order of the experiment.
pub fn per_site(outcome: &Outcome, points: usize) -> Vec<SiteSeries> {
    let sites: Vec<SiteId> = outcome.grid.machines().map(|site| site.id).collect();
    of_sites(outcome, &sites, points)
}

/// The functions of some sites, in the order given.
pub fn of_sites(outcome: &Outcome, sites: &[SiteId], points: usize) -> Vec<SiteSeries> {
    let mut places = vec![None; outcome.grid.len()];
    for (place, site) in sites.iter().enumerate() {
        places[site.index()] = Some(place);
    }
    let mut changes: Vec<Changes> = sites.iter().map(|_| Changes::default()).collect();
    for job in &outcome.jobs {
        for part in outcome.parts(job) {
            if let Some(place) = part.site.and_then(|site| places[site.index()]) {
                changes[place].run(&part, outcome.until);
            }
        }
        if let Some(place) = job.home.and_then(|home| places[home.index()]) {
            changes[place].wait(job, outcome);
        }
    }
    for attempt in &outcome.faults.attempts {
        if let Some(place) = places[attempt.site.index()] {
            changes[place].attempt(attempt);
        }
    }
    changes.into_iter().map(|changes| changes.series(outcome, points)).collect()
}

/// The same, summed over all sites.
pub fn whole_grid(outcome: &Outcome, points: usize) -> SiteSeries {
    let mut changes = Changes::default();
    for job in &outcome.jobs {
        changes.run(job, outcome.until);
        changes.wait(job, outcome);
    }
    outcome.faults.attempts.iter().for_each(|attempt| changes.attempt(attempt));
    changes.series(outcome, points)
}

/// The most jobs that wait at once: in the whole grid, and with each of these sites as their home.
pub fn most_waiting(outcome: &Outcome, sites: &[SiteId]) -> (u64, Vec<u64>) {
    let mut whole = Changes::default();
    let mut of_home = vec![Changes::default(); outcome.grid.len()];
    for job in &outcome.jobs {
        whole.wait(job, outcome);
        if let Some(home) = job.home {
            of_home[home.index()].wait(job, outcome);
        }
    }
    let most = |changes: &Changes| {
        let all = [&changes.waiting_a[..], &changes.waiting_b[..]].concat();
        // Whole numbers, as long as they are counts of jobs.
        steps(all, outcome.origin).values.into_iter().fold(0.0, f64::max) as u64
    };
    (most(&whole), sites.iter().map(|site| most(&of_home[site.index()])).collect())
}

/// The busiest sites by work executed, at most `limit`, in the order of the experiment.
pub fn busiest(outcome: &Outcome, limit: usize) -> Vec<SiteId> {
    let mut work: Vec<(i128, SiteId)> = outcome.grid.sites().iter().map(|site| (0, site.id)).collect();
    for part in outcome.finished().flat_map(|job| outcome.parts(job)) {
        if let Some(site) = part.site {
            work[site.index()].0 += part.work();
        }
    }
    work.retain(|&(_, site)| outcome.grid.site(site).processors > 0);
    work.sort_by_key(|&(work, site)| (std::cmp::Reverse(work), site));
    let mut sites: Vec<SiteId> = work.into_iter().take(limit).map(|(_, site)| site).collect();
    sites.sort_unstable();
    sites
}

/// Ups and downs of the three functions.
#[derive(Clone, Default)]
struct Changes {
    busy: Vec<(Time, i64)>,
    waiting_a: Vec<(Time, i64)>,
    waiting_b: Vec<(Time, i64)>,
}

impl Changes {
    fn run(&mut self, job: &JobOutcome, until: Time) {
        if let Some(start) = job.start {
            self.busy.push((start, i64::from(job.processors)));
            self.busy.push((job.end.unwrap_or(until), -i64::from(job.processors)));
        }
    }

    /// An execution that does not count kept its processors busy up to the last sign of life of its site.
    fn attempt(&mut self, attempt: &Attempt) {
        self.busy.push((attempt.start, i64::from(attempt.processors)));
        self.busy.push((attempt.at_least, -i64::from(attempt.processors)));
    }

    fn wait(&mut self, job: &JobOutcome, outcome: &Outcome) {
        if matches!(job.state, JobState::Pending | JobState::Rejected) {
            return;
        }
        let list = match job.class {
            Class::A => &mut self.waiting_a,
            Class::B => &mut self.waiting_b,
        };
        // A job that was given up waited until it started first.
        let given_up = || outcome.faults.attempts.iter().find(|attempt| attempt.job == job.id);
        let end = match job.state {
            JobState::Killed => given_up().map(|attempt| attempt.start),
            _ => job.start,
        };
        let end = end.unwrap_or(outcome.until);
        if end > job.submit {
            list.push((job.submit, 1));
            list.push((end, -1));
        }
    }

    fn series(self, outcome: &Outcome, points: usize) -> SiteSeries {
        let steps = |changes| thin(steps(changes, outcome.origin), outcome.until, points);
        SiteSeries {
            busy: steps(self.busy),
            waiting_a: steps(self.waiting_a),
            waiting_b: steps(self.waiting_b),
        }
    }
}

/// The exact step function of these changes, from `origin` on.
fn steps(mut changes: Vec<(Time, i64)>, origin: Time) -> Steps {
    changes.sort_unstable();
    let mut steps = Steps { times: vec![origin], values: vec![0.0] };
    let mut level = 0;
    for group in changes.chunk_by(|a, b| a.0 == b.0) {
        level += group.iter().map(|change| change.1).sum::<i64>();
        let value = level as f64;
        if group[0].0 == origin {
            steps.values[0] = value;
        } else if steps.values.last() != Some(&value) {
            steps.times.push(group[0].0);
            steps.values.push(value);
        }
    }
    steps
}

/// The function itself if it has at most `points` steps, else its means over `points` equal intervals.
fn thin(exact: Steps, until: Time, points: usize) -> Steps {
    let length = until.since(exact.times[0]).as_micros();
    let intervals = i64::try_from(points).unwrap_or(i64::MAX);
    if exact.times.len() <= points || length <= 0 || intervals == 0 {
        return exact;
    }
    let border = |interval: i64| {
        let offset = i128::from(length) * i128::from(interval) / i128::from(intervals);
        exact.times[0] + Span::from_micros(i64::try_from(offset).expect("within the run"))
    };
    let mut thinned = Steps::default();
    let mut step = 0;
    for interval in 0..intervals {
        let (from, to) = (border(interval), border(interval + 1));
        if to == from {
            continue;
        }
        let mut area = 0.0;
        let mut at = from;
        while at < to {
            let next = exact.times.get(step + 1).copied().unwrap_or(Time::MAX);
            let end = next.min(to);
            area += exact.values[step] * end.since(at).as_micros() as f64;
            at = end;
            if end == next {
                step += 1;
            }
        }
        thinned.times.push(from);
        thinned.values.push(area / to.since(from).as_micros() as f64);
    }
    thinned
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::fixtures;

    fn area(steps: &Steps, until: Time) -> f64 {
        let ends = steps.times.iter().skip(1).copied().chain([until]);
        let pieces = steps.times.iter().zip(ends).zip(&steps.values);
        pieces.map(|((&from, to), value)| value * to.since(from).as_secs_f64()).sum()
    }

    #[test]
    fn busy_and_waiting_follow_the_jobs() {
        let outcome = fixtures::outcome(&[2, 4], &[(0, 2, 10, 1, 0), (3, 2, 5, 2, 4), (3, 1, 5, 1, 10)]);
        let series = per_site(&outcome, 100);

        let at = |seconds: &[i64]| seconds.iter().map(|&s| Time::from_secs(s)).collect::<Vec<_>>();
        let expected = Steps { times: at(&[0, 10, 15]), values: vec![2.0, 1.0, 0.0] };
        assert_eq!(series[0].busy, expected);
        let expected = Steps { times: at(&[0, 3, 4]), values: vec![0.0, 1.0, 0.0] };
        assert_eq!(series[0].waiting_a, expected);
        let expected = Steps { times: at(&[0, 3, 10]), values: vec![0.0, 1.0, 0.0] };
        assert_eq!(series[0].waiting_b, expected);
        assert_eq!(series[1].waiting_a, Steps { times: at(&[0]), values: vec![0.0] });
        assert_eq!(of_sites(&outcome, &[SiteId(2)], 100), series[1..]);
        assert_eq!(busiest(&outcome, 1), [SiteId(1)]);
        assert_eq!(most_waiting(&outcome, &[SiteId(1), SiteId(2)]), (2, vec![2, 0]), "of both classes");
    }

    proptest! {
        #[test]
        fn thinning_keeps_the_area_and_the_limit(
            jobs in prop::collection::vec((0i64..50, 1u32..3, 1i64..20, 0i64..10), 1..40),
            points in 1usize..20,
        ) {
            let jobs: Vec<_> = jobs.into_iter().map(|(r, q, p, late)| (r, q, p, 1, r + late)).collect();
            let outcome = fixtures::outcome(&[2], &jobs);
            let exact = whole_grid(&outcome, usize::MAX);
            let thinned = whole_grid(&outcome, points);
            for (exact, thinned) in [
                (&exact.busy, &thinned.busy),
                (&exact.waiting_a, &thinned.waiting_a),
                (&exact.waiting_b, &thinned.waiting_b),
            ] {
                prop_assert!(thinned.times.len() <= points.max(1));
                prop_assert!(thinned.times.is_sorted());
                let (expected, kept) = (area(exact, outcome.until), area(thinned, outcome.until));
                prop_assert!((expected - kept).abs() < 1e-6 * expected.max(1.0), "{expected} {kept}");
            }
            let work: f64 = outcome.finished().map(|job| job.work() as f64 / 1e6).sum();
            let waits: Vec<_> = outcome.jobs.iter().map(|job| (job.submit, job.start.unwrap())).collect();
            let at = |(now, _): &(Time, Time)| waits.iter().filter(|(from, to)| from <= now && now < to).count() as u64;
            let most = waits.iter().map(at).max().unwrap_or(0);
            prop_assert_eq!(most_waiting(&outcome, &[SiteId(1)]), (most, vec![most]));
            prop_assert!((area(&exact.busy, outcome.until) - work).abs() < 1e-6 * work.max(1.0));
        }
    }
}
