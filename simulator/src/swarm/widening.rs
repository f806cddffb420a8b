//! What a seed adds to the small grids of [`super::drawing`], now and then. Each part has a stream and a share of its own,
//! so that most seeds have one or two, and one more part does not change what the others are.

use std::sync::Arc;

use links::Cut;
use links::model::Base;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use scheduler::{Grid, JobId, SiteId, Span, Time};

use super::brokers;
use super::drawing::{between, micros};
use super::restarts;
use crate::faults::{Fault, Scenario};

/// Most sites and jobs of a large grid.
const SITES_MAX: usize = 64;
const JOBS_MAX: usize = 1_000;

/// What is added to small grids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Pauses and cuts of up to an hour.
    LongFaults,
    /// 9 to 64 sites and up to 1,000 jobs.
    LargeGrids,
    /// A delay of its own for each directed link.
    UnequalLinks,
    /// Jobs have bytes, and links room for so many a second.
    Bandwidth,
    /// Jobs run past their estimates, some of which are nothing.
    Estimates,
    /// Clocks are set anew.
    ClockSteps,
    /// Disks without room.
    FullDisks,
    /// Disks that are lost, where others take over.
    LostDisks,
    /// Coordinators that end.
    Coordinators,
    /// A site that lies.
    Liars,
    /// Brokers in place of the strategy that was drawn. In no seed unless asked for: others stay what they are.
    Brokers,
    /// Brokers before opaque sites, likewise.
    Opaque,
    /// Whoever restarts is killed once more, likewise; most often brokers that call jobs back.
    Restarts,
    /// Jobs that brokers start in parts at several sites at once, likewise.
    Gangs,
}

/// Which parts are added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Parts {
    /// Each in its share of the seeds.
    #[default]
    Usual,
    /// This one in every seed, the others as usual.
    With(Part),
    /// None, to see what only they find.
    None,
}

impl Part {
    /// All, in the order in which they are added, but for brokers, which come first.
    pub const ALL: [Part; 14] = [
        Part::LongFaults,
        Part::LargeGrids,
        Part::UnequalLinks,
        Part::Bandwidth,
        Part::Estimates,
        Part::ClockSteps,
        Part::FullDisks,
        Part::LostDisks,
        Part::Coordinators,
        Part::Liars,
        Part::Brokers,
        Part::Opaque,
        Part::Restarts,
        Part::Gangs,
    ];

    /// As on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Part::LongFaults => "long-faults",
            Part::LargeGrids => "large-grids",
            Part::UnequalLinks => "unequal-links",
            Part::Bandwidth => "bandwidth",
            Part::Estimates => "estimates",
            Part::ClockSteps => "clock-steps",
            Part::FullDisks => "full-disks",
            Part::LostDisks => "lost-disks",
            Part::Coordinators => "coordinators",
            Part::Liars => "liars",
            Part::Brokers => "brokers",
            Part::Opaque => "opaque",
            Part::Restarts => "restarts",
            Part::Gangs => "gangs",
        }
    }

    /// How many of the seeds have it.
    fn share(self) -> f64 {
        match self {
            Part::LongFaults | Part::Bandwidth | Part::FullDisks => 0.1,
            // A thousand times as long as small ones.
            Part::LargeGrids => 1.0 / 3_000.0,
            Part::UnequalLinks => 0.2,
            Part::Estimates | Part::ClockSteps => 0.15,
            // Of those where others take over.
            Part::LostDisks => 0.3,
            Part::Coordinators => 0.12,
            Part::Liars => 0.03,
            Part::Brokers | Part::Opaque | Part::Restarts | Part::Gangs => 0.0,
        }
    }

    fn add(self, rng: &mut ChaCha8Rng, scenario: &mut Scenario) {
        match self {
            Part::LongFaults => long(rng, scenario),
            Part::LargeGrids => large(rng, scenario),
            Part::UnequalLinks => matrix(rng, scenario),
            Part::Bandwidth => bandwidth(rng, scenario),
            Part::Estimates => estimates(rng, scenario),
            Part::ClockSteps => steps(rng, scenario),
            Part::FullDisks => full_disks(rng, scenario),
            Part::LostDisks => lost_disks(rng, scenario),
            Part::Coordinators => coordinators(rng, scenario),
            Part::Liars => liar(rng, scenario),
            Part::Brokers => brokers::join(rng, scenario),
            Part::Opaque => brokers::join_opaque(rng, scenario),
            Part::Restarts => restarts::strike(rng, scenario),
            Part::Gangs => brokers::join_gangs(rng, scenario),
        }
    }
}

/// Adds what the seed has of each part.
pub(super) fn widen(mut scenario: Scenario, parts: Parts) -> Scenario {
    if parts == Parts::None {
        return scenario;
    }
    let stream = |seed, number: u64| {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(100 + number);
        rng
    };
    let brokers = [Part::Brokers, Part::Opaque, Part::Restarts, Part::Gangs];
    for (part, number) in brokers.into_iter().zip(10..).filter(|(part, _)| parts == Parts::With(*part)) {
        // First: what the others add strikes brokers, too.
        part.add(&mut stream(scenario.seed, number), &mut scenario);
    }
    for (number, part) in (0..).zip(Part::ALL).filter(|(_, part)| !brokers.contains(part)) {
        let mut rng = stream(scenario.seed, number);
        if rng.random_bool(part.share()) || parts == Parts::With(part) {
            part.add(&mut rng, &mut scenario);
        }
    }
    brokers::spread(&mut scenario);
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
    // Faults that brokers were drawn into before name these, too.
    let sites = rng.random_range(9..=SITES_MAX).max(sizes.len());
    sizes.resize_with(sites, || rng.random_range(1..=widest));
    let beside = scenario.grid.sites().iter().map(|site| site.beside);
    let beside = beside.chain(std::iter::repeat(None));
    let members = sizes.into_iter().zip(beside).enumerate();
    let members = members.map(|(index, (size, beside))| (format!("site{}", index + 1), size, beside));
    scenario.grid = Arc::new(Grid::of_members(members).expect("sites with processors are a grid"));
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
