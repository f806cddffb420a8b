//! What a seed adds to the small grids of [`super::drawing`], now and then. Each part has a stream and a share of its own,
//! so that most seeds have one or two, and one more part does not change what the others are.

use std::sync::Arc;

use links::Cut;
use links::model::Base;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use scheduler::{Grid, JobId, SiteId, Span, Time};

use super::drawing::{between, micros};
use crate::faults::{Fault, Scenario};

/// Large grids take a thousand times as long as small ones.
const LARGE_SHARE: f64 = 1.0 / 3_000.0;
const MATRIX_SHARE: f64 = 0.2;
const BANDWIDTH_SHARE: f64 = 0.1;
const ESTIMATES_SHARE: f64 = 0.15;
const STEPS_SHARE: f64 = 0.15;
const LONG_SHARE: f64 = 0.1;
const FULL_SHARE: f64 = 0.1;
/// Of those where others take over.
const LOST_SHARE: f64 = 0.3;
const COORDINATOR_SHARE: f64 = 0.12;
const LIAR_SHARE: f64 = 0.03;

/// Most sites and jobs of a large grid.
const SITES_MAX: usize = 64;
const JOBS_MAX: usize = 1_000;

/// Draws one part.
type Part = fn(&mut ChaCha8Rng, &mut Scenario);

/// Adds what the seed has of each part.
pub(super) fn widen(mut scenario: Scenario) -> Scenario {
    let seed = scenario.seed;
    let part = |number: u64, share: f64| {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(100 + number);
        rng.random_bool(share).then_some(rng)
    };
    let parts: [(f64, Part); 10] = [
        (LONG_SHARE, long),
        (LARGE_SHARE, large),
        (MATRIX_SHARE, matrix),
        (BANDWIDTH_SHARE, bandwidth),
        (ESTIMATES_SHARE, estimates),
        (STEPS_SHARE, steps),
        (FULL_SHARE, full_disks),
        (LOST_SHARE, lost_disks),
        (COORDINATOR_SHARE, coordinators),
        (LIAR_SHARE, liar),
    ];
    for (number, (share, add)) in (0..).zip(parts) {
        if let Some(mut rng) = part(number, share) {
            add(&mut rng, &mut scenario);
        }
    }
    scenario
}

fn healed(scenario: &Scenario) -> Time {
    scenario.healed.expect("what is drawn is healed")
}

fn any_time(rng: &mut ChaCha8Rng, scenario: &Scenario) -> Time {
    Time::from_micros(rng.random_range(0..healed(scenario).as_micros()))
}

fn any_site(rng: &mut ChaCha8Rng, scenario: &Scenario) -> SiteId {
    SiteId::from_index(rng.random_range(0..scenario.grid.len()))
}

/// Cuts and pauses of up to an hour.
fn long(rng: &mut ChaCha8Rng, scenario: &mut Scenario) {
    let begins = any_time(rng, scenario);
    let most = [600, 3_600][rng.random_range(0..2usize)];
    let lasts = micros(rng, Span::from_secs(120), Span::from_secs(most));
    let healed = healed(scenario).max(begins.saturating_add(lasts)).saturating_add(Span::from_secs(60));
    scenario.healed = Some(healed);
    for _ in 0..rng.random_range(1..=2) {
        let at = Time::from_micros(rng.random_range(0..=begins.as_micros()));
        let until = at.saturating_add(lasts);
        scenario.faults.push(match rng.random_bool(0.5) {
            true => Fault::Pause { site: any_site(rng, scenario), at, lasts },
            false => Fault::Cut(Cut { at, until, between: between(rng, &scenario.grid) }),
        });
    }
}

/// Up to 64 sites and 1,000 jobs: those that are there, and more of their kind.
fn large(rng: &mut ChaCha8Rng, scenario: &mut Scenario) {
    let mut sizes: Vec<u32> = scenario.grid.sites().iter().map(|site| site.processors).collect();
    let widest = scenario.grid.widest();
    let sites = rng.random_range(9..=SITES_MAX);
    sizes.resize_with(sites, || rng.random_range(1..=widest));
    scenario.grid = Arc::new(Grid::of_sizes(&sizes).expect("sites with processors are a grid"));
    let few = scenario.jobs.len();
    for _ in few..rng.random_range(few..=JOBS_MAX) {
        let mut job = scenario.jobs[rng.random_range(0..few)];
        job.spec.id = JobId(scenario.jobs.len() as u64 + 1);
        job.spec.origin = any_site(rng, scenario);
        job.spec.processors = rng.random_range(1..=widest);
        scenario.jobs.push(job);
    }
    scenario.jobs.sort_by_key(|job| job.spec.key());
    for _ in 0..rng.random_range(0..=20) {
        let (site, at) = (any_site(rng, scenario), any_time(rng, scenario));
        let down = Some(micros(rng, Span::ZERO, Span::from_secs(60)));
        scenario.faults.push(Fault::Crash { site, at, down, written_percent: 50, torn: None });
    }
}

/// Each directed link has a delay of its own, at most the one that all had.
fn matrix(rng: &mut ChaCha8Rng, scenario: &mut Scenario) {
    let most = scenario.network.base.largest();
    let sites = scenario.grid.len();
    let rows = (0..sites).map(|_| (0..sites).map(|_| micros(rng, Span::ZERO, most)).collect()).collect();
    scenario.network.base = Base::Matrix(rows);
}

/// Jobs have bytes, and links room for so many of them in a second.
fn bandwidth(rng: &mut ChaCha8Rng, scenario: &mut Scenario) {
    let bandwidth = 1_000_000;
    scenario.network.properties.bandwidth = Some(bandwidth);
    let most = bandwidth * [1, 4][rng.random_range(0..2usize)];
    for job in &mut scenario.jobs {
        job.spec.payload = rng.random_range(0..=most);
    }
}

/// Jobs run past their estimates, and some estimates are below a second, or nothing.
fn estimates(rng: &mut ChaCha8Rng, scenario: &mut Scenario) {
    for job in &mut scenario.jobs {
        job.spec.requested = match rng.random_range(0..4) {
            0 => Span::ZERO,
            1 => micros(rng, Span::ZERO, Span::from_secs(1)),
            2 => micros(rng, Span::ZERO, job.run_time),
            _ => job.spec.requested,
        };
    }
}

/// Clocks are set anew, ahead and back, by up to an hour.
fn steps(rng: &mut ChaCha8Rng, scenario: &mut Scenario) {
    for _ in 0..rng.random_range(1..=4) {
        let most = [1_000, 1_000_000, 60_000_000, 3_600_000_000][rng.random_range(0..4usize)];
        let by = Span::from_micros(rng.random_range(-most..=most));
        let (site, at) = (any_site(rng, scenario), any_time(rng, scenario));
        scenario.faults.push(Fault::Step { site, at, by });
    }
}

fn full_disks(rng: &mut ChaCha8Rng, scenario: &mut Scenario) {
    for _ in 0..rng.random_range(1..=3) {
        let (site, at) = (any_site(rng, scenario), any_time(rng, scenario));
        let lasts = micros(rng, Span::ZERO, Span::from_secs(120));
        let until = at.saturating_add(lasts).min(healed(scenario));
        scenario.faults.push(Fault::FullDisk { site, at, until });
    }
}

/// Only where others take over: without that a site whose disk is lost does not come back.
fn lost_disks(rng: &mut ChaCha8Rng, scenario: &mut Scenario) {
    if scenario.options.lease.is_none() {
        return;
    }
    for _ in 0..rng.random_range(1..=3) {
        let (site, at) = (any_site(rng, scenario), any_time(rng, scenario));
        let down = match rng.random_bool(0.5) {
            true => Span::ZERO,
            false => micros(rng, Span::ZERO, Span::from_secs(300)),
        };
        scenario.faults.push(Fault::LostDisk { site, at, down });
    }
}

fn coordinators(rng: &mut ChaCha8Rng, scenario: &mut Scenario) {
    for _ in 0..rng.random_range(1..=3) {
        let at = any_time(rng, scenario);
        let most = [2, 60, 300][rng.random_range(0..3usize)];
        let down = micros(rng, Span::ZERO, Span::from_secs(most));
        let torn = rng.random_bool(0.7).then(|| rng.random_range(0..4));
        scenario.faults.push(Fault::Coordinator { at, down, torn });
    }
}

fn liar(rng: &mut ChaCha8Rng, scenario: &mut Scenario) {
    let (site, at) = (any_site(rng, scenario), any_time(rng, scenario));
    let percent = [5, 30, 90][rng.random_range(0..3usize)];
    scenario.faults.push(Fault::Liar { site, at, percent });
}
