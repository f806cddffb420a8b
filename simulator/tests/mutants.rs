//! Mistakes built into peers on purpose, each of which a check must notice.
//!
//! The same runs without a mistake pass, so what is noticed is the mistake. Mistakes in the hand-over between
//! crashes are searched for in `protocol/tests/handover_search.rs`, those of ideal algorithms in
//! `scheduler/tests/ideal_invariants.rs`.

use std::collections::BTreeMap;
use std::sync::Arc;

use links::{Model, Properties};
use protocol::mutant::Mutant;
use protocol::{Options, StealOptions};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use scheduler::ideal::{StatelessSteal, closed_form};
use scheduler::waiting::WaitingList;
use scheduler::{
    EventKind, Grid, JobId, JobSpec, Labels, Pass, SiteId, Span, Steal, Strategy, Threshold, Time, TimedJob,
};
use simulator::{Checks, Simulation, SimulationConfig, Violation, reference};

use crate::met::met;

const SEEDS: u64 = 300;

#[test]
fn peers_without_mistakes_pass_every_check() {
    assert_eq!(differing(None), 0);
    assert_eq!(problems(None, 20 * SEEDS, |_| true), []);
}

#[test]
fn notices_never_sent_make_schedules_differ() {
    assert!(differing(Some(Mutant::NoticesNeverSent)) > 0);
}

#[test]
fn notices_never_sent_starve_thieves() {
    let found = |problem: &Problem| matches!(problem, Problem::Starves { .. });
    assert_ne!(problems(Some(Mutant::NoticesNeverSent), SEEDS, found), []);
}

#[test]
fn asking_on_a_notice_makes_schedules_differ() {
    assert!(differing(Some(Mutant::AskOnNotice)) > 0);
}

#[test]
fn own_work_before_a_request_makes_schedules_differ() {
    assert!(differing(Some(Mutant::OwnWorkBeforeRequest)) > 0);
}

#[test]
fn obeying_any_withdrawal_starves_a_thief() {
    // Rare: a withdrawal must be overtaken by a request and its answer, then a narrower job must come.
    let starves = |seed: u64, mutant| {
        let (mut config, jobs) = withdrawing(seed);
        config.seed = seed;
        matches!(problem(simulation(config, &jobs, mutant)), Some(Problem::Starves { .. }))
    };
    let starving = met((0..200 * SEEDS).filter(|&seed| starves(seed, Some(Mutant::WithdrawUnchecked))));
    println!("WithdrawUnchecked: {starving:?} of {} runs starve", 200 * SEEDS);
    assert!(!starving.is_empty());
    // Without the mistake neither these do nor others.
    let others = 0..20 * SEEDS;
    assert_eq!(others.chain(starving).find(|&seed| starves(seed, None)), None);
}

#[test]
fn reclaiming_an_unanswered_job_makes_two_owners() {
    let found = |problem: &Problem| {
        matches!(problem, Problem::Violates(Violation::OwnedTwice { .. } | Violation::StartedTwice { .. }))
    };
    assert_ne!(problems(Some(Mutant::ReclaimOnTimeout), SEEDS, found), []);
}

#[test]
fn starting_without_the_ledger_starts_a_job_twice() {
    let found = |problem: &Problem| matches!(problem, Problem::Violates(Violation::StartedTwice { .. }));
    assert_ne!(problems(Some(Mutant::StartWithoutLedger), SEEDS, found), []);
}

#[test]
fn forgetting_a_declined_job_loses_it() {
    let found = |problem: &Problem| matches!(problem, Problem::Violates(Violation::Lost { .. }));
    assert_ne!(problems(Some(Mutant::ForgetDeclined), SEEDS, found), []);
}

/// What can be wrong with a run on a bad network.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Problem {
    Violates(Violation),
    /// Nothing is under way, and this site does not take a job that it should.
    Starves {
        at: Time,
        site: SiteId,
        job: JobId,
    },
    /// More instants than a run of so few jobs can need.
    Talks,
}

/// How many schedules are met that differ from the ideal when communication is free.
fn differing(mutant: Option<Mutant>) -> usize {
    let differing: Vec<u64> = met((0..SEEDS).filter(|&seed| {
        let (grid, jobs) = instance(seed, 6, 30);
        let config = SimulationConfig::new(grid.clone(), Strategy::Steal(steal()));
        let (mut ideal, mut starts) = (BTreeMap::new(), BTreeMap::new());
        let mut policy = StatelessSteal::new(&grid, steal());
        reference::run(&mut policy, &jobs, &grid, Pass::Batch, &mut |event| {
            if let EventKind::Started { job, .. } = event.kind {
                ideal.insert(job, (event.at, event.site));
            }
        })
        .expect("a workload that can be run");
        let result = simulation(config, &jobs, mutant).run(&mut |event| {
            if let EventKind::Started { job, .. } = event.kind {
                starts.insert(job, (event.at, event.site));
            }
        });
        result.is_err() || starts != ideal
    }));
    println!(
        "{mutant:?}: {} of {SEEDS} schedules differ, first with seed {:?}",
        differing.len(),
        differing.first()
    );
    differing.len()
}

/// What goes wrong when messages are late, lost, repeated and reordered, at most one problem per seed, of those that are meant.
fn problems(mutant: Option<Mutant>, seeds: u64, is_meant: impl Fn(&Problem) -> bool) -> Vec<Problem> {
    let mut first = None;
    let problems: Vec<Problem> = met((0..seeds).filter_map(|seed| {
        let (config, jobs) = bad_network(seed);
        let problem = problem(simulation(config, &jobs, mutant)).filter(&is_meant);
        first = first.or(problem.is_some().then_some(seed));
        problem
    }));
    println!("{mutant:?}: {} of {seeds} runs have a problem, first with seed {first:?}", problems.len());
    problems
}

/// Options differ from seed to seed, every second time they are the defaults.
fn bad_network(seed: u64) -> (SimulationConfig, Vec<TimedJob>) {
    let (grid, jobs) = instance(seed, 4, 20);
    let mut config = SimulationConfig::new(grid, Strategy::Steal(steal()));
    config.seed = seed;
    config.checks = Checks::Full;
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(2);
    let (loss, duplication) = (rng.random_range(0.0..0.4), rng.random_range(0.0..0.4));
    config.network =
        Model::constant(Span::from_secs(1)).with(Properties::unreliable(loss, duplication, JITTER));
    if rng.random_bool(0.5) {
        let (window, batch, eager) = (rng.random_range(1..3), rng.random_range(1..5), rng.random_bool(0.5));
        config.options = Options {
            steal: StealOptions { window, eager, prefetch: None },
            batch,
            bounces_max: rng.random_range(0..4),
            recall: rng.random_bool(0.5).then(|| Span::from_secs(40)),
            unanswered_max: rng.random_range(1..8),
            ..Options::default()
        };
    }
    config.options.retry = Some(Span::from_secs(15));
    (config, jobs)
}

const JITTER: Span = Span::from_secs(6);
const INSTANTS_MAX: u32 = 20_000;

fn problem(mut simulation: Simulation<'_>) -> Option<Problem> {
    for _ in 0..INSTANTS_MAX {
        let Some(next) = simulation.next_instant() else {
            return simulation.finish().err().map(Problem::Violates);
        };
        // Whatever was sent has arrived, and nobody is going to say anything.
        let silent = simulation.peers().iter().all(|peer| peer.is_quiet())
            && next > simulation.now().saturating_add(JITTER + Span::from_secs(1));
        if silent && let Some(starved) = starved(&simulation) {
            return Some(starved);
        }
        if let Err(violation) = simulation.advance(&mut |_| {}) {
            return Some(Problem::Violates(violation));
        }
    }
    Some(Problem::Talks)
}

/// A site that has room for a job of its list.
fn starved(simulation: &Simulation<'_>) -> Option<Problem> {
    let peers = simulation.peers();
    let queues: Vec<WaitingList> = peers.iter().map(|peer| peer.own().clone()).collect();
    let grid = &peers[0].config().grid;
    peers.iter().enumerate().find_map(|(rank, peer)| {
        let list = closed_form::list(&queues, grid, Threshold::HALF, rank)?;
        let job = queues[list.home].first(list.widths.fitting(peer.free()))?;
        Some(Problem::Starves { at: simulation.now(), site: peer.site(), job: job.id })
    })
}

fn simulation(config: SimulationConfig, jobs: &[TimedJob], mutant: Option<Mutant>) -> Simulation<'_> {
    let simulation = Simulation::new(config, jobs);
    match mutant {
        Some(mutant) => simulation.with_mutant(mutant),
        None => simulation,
    }
}

fn steal() -> Steal {
    Steal::with_threshold(Threshold::HALF)
}

/// Two sites, of which the larger has short own work again and again and withdraws from the smaller.
fn withdrawing(seed: u64) -> (SimulationConfig, Vec<TimedJob>) {
    let (mut config, mut jobs) = bad_network(seed);
    config.options = Options { retry: Some(Span::from_secs(15)), ..Options::default() };
    config.grid = Arc::new(Grid::of_sizes(&[8, 10]).expect("a grid"));
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(3);
    for job in &mut jobs {
        let own = rng.random_bool(0.5);
        job.spec.processors = if own { rng.random_range(9..=10) } else { rng.random_range(1..=8) };
        job.run_time = Span::from_secs(if own { rng.random_range(1..4) } else { rng.random_range(10..40) });
        job.spec.requested = job.run_time;
    }
    (config, jobs)
}

/// A small grid and workload, always the same for a seed; half of them are all submitted at once.
fn instance(seed: u64, sites_max: usize, jobs_max: u64) -> (Arc<Grid>, Vec<TimedJob>) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let sizes: Vec<u32> = (0..rng.random_range(2..=sites_max)).map(|_| rng.random_range(2..13)).collect();
    let grid = Arc::new(Grid::of_sizes(&sizes).expect("a grid"));
    let horizon = if rng.random_bool(0.5) { 0 } else { 60 };
    let mut jobs: Vec<TimedJob> = (1..=rng.random_range(4..=jobs_max))
        .map(|id| {
            let run = Span::from_secs(rng.random_range(1..30));
            let spec = JobSpec {
                id: JobId(id),
                submit: Time::from_secs(rng.random_range(0..=horizon)),
                processors: rng.random_range(1..=grid.widest()),
                requested: run,
                labels: Labels::UNKNOWN,
                origin: SiteId(1),
                payload: 0,
            };
            TimedJob { spec, run_time: run }
        })
        .collect();
    jobs.sort_by_key(|job| job.spec.key());
    (grid, jobs)
}
