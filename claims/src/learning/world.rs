//! What a round is: sites, their local users, and the tasks, all drawn from a seed.
//!
//! Draws are uniform, without logarithms, so that all machines draw the same. Each kind of draw has a stream of its own:
//! the sites of a round are the same whatever its users and tasks are.

use brokers::ideal::{self, Outage};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use scheduler::{Grid, JobId, JobSpec, Labels, SiteId, Span, Time, TimedJob};
use workload::bag::{LengthModel, Photons};

/// Sites of a round (§5.1: as many as were available, never fewer or more).
const SITES: std::ops::RangeInclusive<usize> = 4..=6;
/// Processors that local users leave at a site, in the mean. Together about 31 of the reference machine at five sites, by
/// Little's law from the printed makespans (§5.7).
const LEFT: std::ops::RangeInclusive<u32> = 3..=10;
/// Percent of the reference machine.
const SPEEDS: std::ops::RangeInclusive<u32> = 70..=130;
/// Percent of a site's processors that its local users keep busy.
const LOCAL_LOADS: std::ops::RangeInclusive<u32> = 20..=60;
/// Run times of local jobs, in seconds; their mean is 15 minutes. Arbitrary: of the local users nothing is printed.
const LOCAL_RUN_TIMES: std::ops::RangeInclusive<i64> = 60..=1740;
const LOCAL_RUN_TIME_MEAN: i64 = 900;
/// Local jobs that are submitted together, so that waits are skewed.
const BATCHES: std::ops::RangeInclusive<u32> = 1..=8;
/// Local users are there before the tasks are, so long.
const BEFORE_S: i64 = 7200;
/// Local users of a bag, and of a stream, go on so long: longer than any run of tasks.
const BAG_S: i64 = 40_000;
const STREAM_S: i64 = 120_000;
/// Seconds between tasks of a stream: a sixth of what sites leave together.
const GAPS: std::ops::RangeInclusive<i64> = 0..=360;
/// Where load changes, it does after so many seconds, to a part of its mean or more than that, in percent.
const CHANGES_S: i64 = 3600;
const PARTS: [u32; 2] = [20, 180];
/// When a site fails, and for how long, in seconds. Arbitrary: some minutes to an hour, within the run.
const FAILS_AT: std::ops::RangeInclusive<i64> = 300..=4000;
const FAILS_FOR: std::ops::RangeInclusive<i64> = 600..=3000;

/// What may happen at sites.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conditions {
    /// Each site fails once.
    pub fails: bool,
    /// Local load changes every hour.
    pub changes: bool,
    /// How long a task is in submission, in seconds.
    pub submission_s: u32,
    /// What local users submit, in percent of what they do otherwise; above 0.
    pub local_percent: u32,
}

impl Default for Conditions {
    fn default() -> Conditions {
        Conditions { fails: false, changes: false, submission_s: 0, local_percent: 100 }
    }
}

/// What a world is drawn by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Draws {
    /// Of the experiment.
    pub seed: u64,
    /// The round.
    pub round: u64,
    /// Which local users, of those that the round could have.
    pub background: u64,
    /// Tasks.
    pub jobs: usize,
    /// Whether tasks come one by one.
    pub streams: bool,
    /// What happens.
    pub conditions: Conditions,
}

/// Streams of random numbers.
#[derive(Clone, Copy)]
enum Purpose {
    Sites,
    Failures,
    Gaps,
    /// Of local users of a background.
    Users(u64),
}

impl Draws {
    fn rng(&self, purpose: Purpose) -> ChaCha8Rng {
        let stream = match purpose {
            Purpose::Sites => 0,
            Purpose::Failures => 1,
            Purpose::Gaps => 2,
            Purpose::Users(background) => 3 + background,
        };
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        rng.set_stream((self.round << 8) + stream);
        rng
    }
}

/// One round.
#[derive(Clone, Debug, PartialEq)]
pub struct World {
    /// The sites, smallest first, so that places are ranks.
    pub grid: Grid,
    /// Tasks, numbered from 1, and jobs of local users, in queue order.
    pub jobs: Vec<TimedJob>,
    /// How many are tasks.
    pub tasks: usize,
    /// How fast sites compute, in percent of the reference machine.
    pub speeds: Vec<u32>,
    /// When sites fail.
    pub outages: Vec<Outage>,
    /// How long a task is in submission, in seconds.
    pub submission_s: u32,
}

#[derive(Clone, Copy)]
struct Site {
    processors: u32,
    speed: u32,
    /// Percent.
    load: u32,
}

fn job(id: u64, submit: i64, run_time: Span, origin: usize) -> TimedJob {
    let spec = JobSpec {
        id: JobId(id),
        submit: Time::from_secs(submit),
        processors: 1,
        requested: run_time,
        labels: Labels::UNKNOWN,
        origin: SiteId::from_index(origin),
        payload: 0,
    };
    TimedJob { spec, run_time }
}

impl World {
    /// The world of these draws.
    pub fn draw(draws: Draws) -> World {
        let mut rng = draws.rng(Purpose::Sites);
        let mut sites: Vec<Site> = (0..rng.random_range(SITES))
            .map(|_| {
                let (left, load) = (rng.random_range(LEFT), rng.random_range(LOCAL_LOADS));
                // So that what is not local is `left`, rounded up.
                Site { processors: (left * 100).div_ceil(100 - load), load, speed: rng.random_range(SPEEDS) }
            })
            .collect();
        sites.sort_by_key(|site| site.processors);
        let mut photons = Photons::new(draws.seed.wrapping_mul(1_000_003).wrapping_add(draws.round));
        let mut gaps = draws.rng(Purpose::Gaps);
        let mut at = 0;
        let mut jobs: Vec<TimedJob> = (1..=draws.jobs as u64)
            .map(|id| {
                at += if draws.streams { gaps.random_range(GAPS) } else { 0 };
                job(id, at, LengthModel::Uniform.length(photons.draw()), 0)
            })
            .collect();
        let until = if draws.streams { STREAM_S } else { BAG_S };
        let mut users = draws.rng(Purpose::Users(draws.background));
        for (place, site) in sites.iter().enumerate() {
            let first = jobs.len() as u64 + 1;
            jobs.extend(local_jobs(&mut users, site, place, first, until, draws.conditions));
        }
        jobs.sort_by_key(|job| job.spec.key());
        let mut failures = draws.rng(Purpose::Failures);
        let outages = (0..sites.len()).map(|place| {
            let from = failures.random_range(FAILS_AT);
            let until = from + failures.random_range(FAILS_FOR);
            Outage { place, from: Time::from_secs(from), until: Time::from_secs(until) }
        });
        let sizes: Vec<u32> = sites.iter().map(|site| site.processors).collect();
        World {
            grid: Grid::of_sizes(&sizes).expect("sites have processors"),
            jobs,
            tasks: draws.jobs,
            speeds: sites.iter().map(|site| site.speed).collect(),
            outages: if draws.conditions.fails { outages.collect() } else { Vec::new() },
            submission_s: draws.conditions.submission_s,
        }
    }

    /// How many sites there are.
    pub fn sites(&self) -> usize {
        self.speeds.len()
    }

    /// Whether a job is a task, and not of a local user.
    pub fn is_task(&self, job: JobId) -> bool {
        job.0 <= self.tasks as u64
    }

    /// When each task was submitted.
    pub fn submits(&self) -> Vec<Time> {
        let tasks = self.jobs.iter().filter(|job| self.is_task(job.spec.id));
        let mut submits: Vec<(JobId, Time)> = tasks.map(|job| (job.spec.id, job.spec.submit)).collect();
        submits.sort_unstable();
        submits.into_iter().map(|(_, submit)| submit).collect()
    }

    /// What sites are like, where dispatchers learn so many seconds late.
    pub fn world(&self, feedback_s: u32) -> ideal::World {
        ideal::World {
            local_users: self.jobs.iter().map(|job| job.spec.id).filter(|job| !self.is_task(*job)).collect(),
            speeds: self.speeds.clone(),
            outages: self.outages.clone(),
            feedback: Span::from_secs(i64::from(feedback_s)),
            submission: Span::from_secs(i64::from(self.submission_s)),
        }
    }
}

/// Jobs of the users of a site: batches of sequential ones.
fn local_jobs(
    rng: &mut ChaCha8Rng,
    site: &Site,
    place: usize,
    first: u64,
    until: i64,
    conditions: Conditions,
) -> Vec<TimedJob> {
    let batch_most = site.processors.min(*BATCHES.end());
    let batch_mean = f64::from(batch_most + 1) / 2.0;
    let work_per_s = f64::from(site.processors * site.load) / 100.0 * f64::from(site.speed) / 100.0;
    let gap_mean_s = batch_mean * LOCAL_RUN_TIME_MEAN as f64 / work_per_s;
    let gap_mean_s = gap_mean_s * 100.0 / f64::from(conditions.local_percent);
    let (mut at_s, mut jobs) = (-BEFORE_S as f64, Vec::new());
    let (mut hour, mut part) = (i64::MIN, 100);
    loop {
        let now = (at_s as i64).div_euclid(CHANGES_S);
        if conditions.changes && now != hour {
            (hour, part) = (now, PARTS[rng.random_range(0..PARTS.len())]);
        }
        at_s += rng.random_range(0.0..2.0) * gap_mean_s * 100.0 / f64::from(part);
        if at_s >= until as f64 {
            return jobs;
        }
        for _ in 0..rng.random_range(*BATCHES.start()..=batch_most) {
            let run_time = Span::from_secs(rng.random_range(LOCAL_RUN_TIMES));
            jobs.push(job(first + jobs.len() as u64, at_s as i64, run_time, place));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draws(round: u64, background: u64, fails: bool) -> Draws {
        let conditions = Conditions { fails, ..Conditions::default() };
        Draws { seed: 1, round, background, jobs: 500, streams: false, conditions }
    }

    #[test]
    fn sites_leave_what_the_published_makespans_need_and_users_keep_the_rest_busy() {
        let (mut left, mut offered, mut processors) = (0.0, 0.0, 0.0);
        for round in 1..=200 {
            let world = World::draw(draws(round, 0, false));
            assert!(SITES.contains(&world.sites()));
            let speed = |site: SiteId| f64::from(world.speeds[world.grid.rank(site)]) / 100.0;
            let local = world.jobs.iter().filter(|job| job.spec.id.0 > 500);
            let work: f64 = local.map(|job| job.run_time.as_secs_f64() / speed(job.spec.origin)).sum();
            offered += work / (BEFORE_S + BAG_S) as f64 / world.sites() as f64;
            processors += world.grid.processors() as f64 / world.sites() as f64;
            left +=
                (world.grid.processors() as f64 - work / (BEFORE_S + BAG_S) as f64) / world.sites() as f64;
        }
        let load = offered / processors;
        assert!((0.36..0.46).contains(&load), "{load}");
        assert!((6.0..8.0).contains(&(left / 200.0)), "{left}");
    }

    #[test]
    fn a_background_changes_users_only_and_failures_are_one_a_site() {
        let (one, other) = (World::draw(draws(3, 0, false)), World::draw(draws(3, 1, true)));
        assert_eq!((one.grid.sizes(), &one.speeds), (other.grid.sizes(), &other.speeds));
        let tasks = |world: &World| -> Vec<TimedJob> {
            world.jobs.iter().filter(|job| job.spec.id.0 <= 500).copied().collect()
        };
        assert_eq!(tasks(&one), tasks(&other));
        assert_ne!(one.jobs, other.jobs);
        assert_eq!((one.outages.len(), other.outages.len()), (0, other.sites()));
    }

    #[test]
    fn less_local_load_is_fewer_jobs_of_the_same_kind() {
        let mut draws = draws(2, 0, false);
        let local = |draws: Draws| World::draw(draws).jobs.len() as f64 - draws.jobs as f64;
        let all = local(draws);
        draws.conditions.local_percent = 60;
        let part = local(draws) / all;
        assert!((0.55..0.65).contains(&part), "{part}");
    }
}
