//! Mistakes built into the exchange through a global queue, each of which a check must notice. Mistakes of hosts are in `pool_hosts.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use links::{Model, Properties};
use predict::{Correction, Forecast, Predictor};
use protocol::mutant::Mutant;
use protocol::{Options, PoolOptions};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use scheduler::event::ReleaseReason;
use scheduler::ideal::PoolExchange;
use scheduler::strategy::{PoolAlgorithm, Via};
use scheduler::{
    Event, EventKind, Grid, JobId, JobSpec, Labels, Pass, Pool, SiteId, Span, Strategy, Submit, Time,
    TimedJob,
};
use simulator::{Checks, Simulation, SimulationConfig, Violation, reference};

use crate::met::met;

const SEEDS: u64 = 300;

/// Of jobs of which every third is one user's.
const PREDICTED: Forecast = Forecast { predictor: Predictor::Avg2, correction: Correction::Doubling };

const BOTH: [Via; 2] = [Via::Hosted, Via::Gossip];

#[test]
fn peers_without_mistakes_pass_every_check() {
    for via in BOTH {
        assert_eq!(differing(via, None, None), 0);
        assert_eq!(differing(via, None, Some(PREDICTED)), 0);
        assert_eq!(problems(via, None, |_| true), []);
    }
}

#[test]
fn deciding_after_every_board_makes_schedules_differ() {
    for via in BOTH {
        assert!(differing(via, Some(Mutant::DecideAtOnce), None) > 0);
    }
}

#[test]
fn believing_users_of_taken_jobs_makes_schedules_differ() {
    for via in BOTH {
        assert!(differing(via, Some(Mutant::TakenBelieved), Some(PREDICTED)) > 0);
        assert_eq!(differing(via, Some(Mutant::TakenBelieved), None), 0, "nobody predicts");
    }
}

#[test]
fn corrections_that_nobody_is_told_of_make_schedules_differ() {
    for via in BOTH {
        assert!(differing(via, Some(Mutant::CorrectionUntold), Some(PREDICTED)) > 0);
    }
}

#[test]
fn reading_silence_as_not_received_makes_two_owners() {
    for via in BOTH {
        let found = |problem: &Problem| {
            matches!(
                problem,
                Problem::Panics
                    | Problem::Violates(Violation::OwnedTwice { .. } | Violation::StartedTwice { .. })
            )
        };
        assert_ne!(problems(via, Some(Mutant::ReclaimOnTimeout), found), []);
    }
}

#[test]
fn numbers_of_claims_that_are_used_again_are_seen() {
    let found = |problem: &Problem| matches!(problem, Problem::ClaimedTwice { .. } | Problem::Panics);
    assert_ne!(problems(Via::Gossip, Some(Mutant::ClaimsReused), found), []);
}

#[test]
fn forgetting_a_declined_job_loses_it() {
    for via in BOTH {
        let found = |problem: &Problem| {
            matches!(problem, Problem::Panics | Problem::Violates(Violation::Lost { .. }))
        };
        assert_ne!(problems(via, Some(Mutant::ForgetDeclined), found), []);
    }
}

/// What can be wrong with a run on a bad network.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Problem {
    Violates(Violation),
    /// A site gave one number to two claims.
    ClaimedTwice {
        site: SiteId,
        claim: u64,
    },
    /// A claim ended that was not made, or ended twice.
    Unclaimed {
        site: SiteId,
        claim: u64,
    },
    /// A peer saw that its own state contradicts itself.
    Panics,
    /// More instants than a run of so few jobs can need.
    Talks,
}

/// How many schedules are met that differ from the ideal when communication is free.
fn differing(via: Via, mutant: Option<Mutant>, forecast: Option<Forecast>) -> usize {
    let differing: Vec<u64> = met((0..SEEDS).filter(|&seed| {
        let (grid, mut jobs) = instance(seed, 6, 30);
        jobs.iter_mut().for_each(|job| job.spec.labels.user = (job.spec.id.0 % 3) as i32);
        let pool = pool(via, seed);
        let (mut ideal, mut starts) = (BTreeMap::new(), BTreeMap::new());
        let mut policy = PoolExchange::new(&grid, pool, Submit::Origin);
        if let Some(forecast) = forecast {
            policy = policy.with_estimators(|| forecast.estimator());
        }
        reference::run(&mut policy, &jobs, &grid, Pass::Batch, &mut |event| note(&mut ideal, &event))
            .expect("a workload that can be run");
        let mut config = SimulationConfig::new(grid.clone(), Strategy::Pool(pool));
        config.submit = Submit::Origin;
        config.forecast = forecast;
        let result = simulation(config, &jobs, mutant).run(&mut |event| note(&mut starts, event));
        result.is_err() || starts != ideal
    }));
    let by = if forecast.is_some() { "predictions" } else { "users" };
    println!("{via:?} {mutant:?} by {by}: {} of {SEEDS} schedules differ", differing.len());
    differing.len()
}

fn note(starts: &mut BTreeMap<JobId, (Time, SiteId)>, event: &Event) {
    if let EventKind::Started { job, .. } = event.kind {
        starts.insert(job, (event.at, event.site));
    }
}

fn pool(via: Via, seed: u64) -> Pool {
    let algorithms = [PoolAlgorithm::Fcfs, PoolAlgorithm::Easy, PoolAlgorithm::List];
    Pool { via, ..Pool::new(algorithms[(seed % 3) as usize]) }
}

/// What goes wrong when messages are late, lost, repeated and reordered, at most one problem per seed, of those that are meant.
fn problems(via: Via, mutant: Option<Mutant>, is_meant: impl Fn(&Problem) -> bool) -> Vec<Problem> {
    let problems: Vec<Problem> = met((0..SEEDS).filter_map(|seed| {
        let (grid, jobs) = instance(seed, 5, 30);
        let mut config = SimulationConfig::new(grid, Strategy::Pool(pool(via, seed)));
        config.submit = Submit::Origin;
        config.seed = seed;
        config.network = Model::constant(Span::from_secs(1));
        config.checks = Checks::Full;
        config.network.properties = Properties::unreliable(0.3, 0.2, Span::from_secs(6));
        let often = Some(Span::from_secs(15));
        config.options = Options { retry: often, pool: PoolOptions { refresh: often }, ..Options::default() };
        let run = || problem(simulation(config, &jobs, mutant));
        catch_unwind(AssertUnwindSafe(run)).unwrap_or(Some(Problem::Panics)).filter(&is_meant)
    }));
    println!("{via:?} {mutant:?}: {} of {SEEDS} runs have a problem", problems.len());
    problems
}

const INSTANTS_MAX: u32 = 20_000;

fn problem(mut simulation: Simulation<'_>) -> Option<Problem> {
    let mut audit = Audit::default();
    for _ in 0..INSTANTS_MAX {
        let advanced = simulation.advance(&mut |event| audit.see(event));
        if let Some(problem) = audit.problem {
            return Some(problem);
        }
        match advanced {
            Ok(true) => {}
            Ok(false) => return simulation.finish().err().map(Problem::Violates),
            Err(violation) => return Some(Problem::Violates(violation)),
        }
    }
    Some(Problem::Talks)
}

/// Reads the log: a claim has its number for itself, and ends once.
#[derive(Default)]
struct Audit {
    last: BTreeMap<SiteId, u64>,
    open: BTreeSet<(SiteId, u64)>,
    problem: Option<Problem>,
}

impl Audit {
    fn see(&mut self, event: &Event) {
        let site = event.site;
        match event.kind {
            EventKind::Claimed { claim, .. } => {
                self.open.insert((site, claim));
                if self.last.insert(site, claim).is_some_and(|last| claim <= last) {
                    self.problem.get_or_insert(Problem::ClaimedTwice { site, claim });
                }
            }
            EventKind::Released { claim, reason, .. } if !self.open.remove(&(site, claim)) => {
                assert_ne!(reason, ReleaseReason::Granted, "the ledger grants once");
                self.problem.get_or_insert(Problem::Unclaimed { site, claim });
            }
            _ => {}
        }
    }
}

fn simulation(config: SimulationConfig, jobs: &[TimedJob], mutant: Option<Mutant>) -> Simulation<'_> {
    let simulation = Simulation::new(config, jobs);
    match mutant {
        Some(mutant) => simulation.with_mutant(mutant),
        None => simulation,
    }
}

fn instance(seed: u64, sites: usize, jobs: usize) -> (Arc<Grid>, Vec<TimedJob>) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let sizes: Vec<u32> = (0..rng.random_range(2..=sites)).map(|_| rng.random_range(1..13)).collect();
    let grid = Arc::new(Grid::of_sizes(&sizes).expect("a grid"));
    let mut jobs: Vec<TimedJob> = (1..=jobs as u64)
        .map(|id| {
            let run = rng.random_range(1i64..20);
            TimedJob {
                spec: JobSpec {
                    id: JobId(id),
                    submit: Time::from_secs(rng.random_range(0..40)),
                    processors: rng.random_range(1..=grid.widest()),
                    requested: Span::from_secs((run * rng.random_range(1..4) / 2).max(1)),
                    labels: Labels::UNKNOWN,
                    origin: SiteId::from_index(rng.random_range(0..sizes.len())),
                    payload: 0,
                },
                run_time: Span::from_secs(run),
            }
        })
        .collect();
    jobs.sort_by_key(|job| job.spec.key());
    (grid, jobs)
}
