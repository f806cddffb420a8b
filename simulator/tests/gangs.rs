//! Jobs in parts at several sites, whatever links lose: all of a job starts, once, or none, and every job ends.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use brokers::ideal::Brokered;
use links::{Model, Properties};
use predict::{Correction, Forecast, Predictor};
use proptest::prelude::*;
use protocol::mutant::Mutant;
use protocol::{BrokerOptions, Options, Pending, Reporting, Terms};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use scheduler::strategy::{Coallocation, JobSelection, MetaScheduler, Phases, QueueLimit};
use scheduler::{
    Broker, BrokerRule, Event, EventKind, Grid, JobId, JobSpec, Labels, LocalScheduler, Pass, SiteId, Span,
    Strategy as Scheduling, StrategySpec, Time, TimedJob,
};
use simulator::{Checks, Simulation, SimulationConfig, reference};

use crate::met::met;

fn meta() -> impl Strategy<Value = MetaScheduler> {
    let limit = prop_oneof![Just(QueueLimit::None), (1u32..4).prop_map(QueueLimit::Jobs)];
    let one_of = (
        prop::sample::select(&Coallocation::ALL[1..]),
        prop::sample::select(Phases::ALL),
        prop::sample::select(JobSelection::ALL),
    );
    (one_of, limit).prop_map(|((coallocation, phases, jobs), limit)| MetaScheduler {
        coallocation,
        phases,
        jobs,
        limit,
        ..MetaScheduler::default()
    })
}

/// Sites behind one or two brokers, and jobs of which some are wider than each.
fn workload(meta: MetaScheduler) -> impl Strategy<Value = (Arc<Grid>, Scheduling, Vec<TimedJob>)> {
    let job = (0i64..60, 1u32..40, 0i64..30, 1i64..3, any::<prop::sample::Index>());
    let sizes = prop::collection::vec(1u32..12, 2..5);
    (sizes, 1usize..3, prop::collection::vec(job, 1..=14)).prop_map(move |(sizes, brokers, jobs)| {
        let sites = sizes.iter().enumerate().map(|(place, &size)| (format!("site{place}"), size));
        let names = (0..brokers).map(|number| (format!("broker{number}"), None));
        let grid = Grid::with_brokers(sites, names).expect("a grid");
        let strategy = Scheduling::Broker(Broker { meta, ..Broker::new(BrokerRule::Mcisne) });
        let spread = strategy.spread(grid.widths());
        let grid = Arc::new(grid.with_spread(spread));
        let spec = |(place, (submit, width, run, factor, origin)): (
            usize,
            (i64, u32, i64, i64, prop::sample::Index),
        )| {
            let spec = JobSpec {
                id: JobId(place as u64 + 1),
                submit: Time::from_secs(submit),
                processors: 1 + (width - 1) % grid.widest_job(),
                requested: Span::from_secs((run * factor).max(1)),
                labels: Labels::UNKNOWN,
                origin: SiteId::from_index(origin.index(sizes.len())),
                payload: 0,
            };
            TimedJob { spec, run_time: Span::from_secs(run) }
        };
        let mut jobs: Vec<TimedJob> = jobs.into_iter().enumerate().map(spec).collect();
        jobs.sort_by_key(|job| job.spec.key());
        (grid, strategy, jobs)
    })
}

/// Far more than any run of so few jobs needs; a run that makes more talks for ever.
const EVENTS_MAX: u32 = 100_000;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn every_job_in_parts_runs_once_under_loss_duplication_and_reordering(
        (grid, strategy, jobs) in meta().prop_flat_map(workload),
        local in prop::sample::select(&LocalScheduler::ALL[..]),
        (retry, period, counts) in (1i64..40, prop::option::of(1i64..60), any::<bool>()),
        delay in 0i64..12,
        (loss, duplication) in (0.0f64..0.5, 0.0f64..0.5),
        jitter in 0i64..20,
        seed in any::<u64>(),
        correction in prop::option::of(prop::sample::select(&Correction::ALL[..])),
    ) {
        let broker = BrokerOptions {
            report: period.map_or(Reporting::Change, |period| Reporting::Every(Span::from_secs(period))),
            pending: if counts { Pending::Count } else { Pending::Ignore },
            ..BrokerOptions::default()
        };
        let retry = Some(Span::from_secs(retry));
        let options = Options { retry, broker, message_events: false, ..Options::default() };
        let mut jobs = jobs;
        jobs.iter_mut().for_each(|job| job.spec.labels.user = (job.spec.id.0 % 2) as i32);
        let forecast = correction.map(|correction| Forecast { predictor: Predictor::Avg2, correction });
        let terms = Terms { local, options, seed, forecast, ..Terms::new(grid, strategy) };
        let faults = Properties::unreliable(loss, duplication, Span::from_secs(jitter));
        let config = SimulationConfig {
            network: Model::constant(Span::from_secs(delay)).with(faults),
            checks: Checks::Full,
            ..SimulationConfig::on(terms)
        };
        let (mut starts, mut events) = (0, 0u32);
        let totals = Simulation::new(config, &jobs)
            .run(&mut |event: &Event| {
                starts += usize::from(matches!(event.kind, EventKind::Started { .. }));
                events += 1;
                assert!(events < EVENTS_MAX, "the grid never falls silent: {event:?}");
            })
            .map_err(|violation| TestCaseError::fail(violation.to_string()))?;
        prop_assert_eq!(totals.completed, jobs.len());
        prop_assert_eq!(starts, jobs.len());
    }
}

const SEEDS: u64 = 300;
/// Seeds without the mistake. `tests/tests/brokers.rs` draws such grids and jobs anew.
const RIGHT: u64 = 100;

/// Three or four sites behind two brokers, and jobs of three users who ask for three times what a job takes: every other one is wider than each site.
fn instance(seed: u64, strategy: Scheduling) -> (Arc<Grid>, Vec<TimedJob>) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let sizes: Vec<u32> = (0..rng.random_range(3..5)).map(|_| rng.random_range(2..9)).collect();
    let sites = sizes.iter().zip(1..).map(|(&size, number)| (format!("site{number}"), size));
    let brokers = (1..3).map(|number| (format!("broker{number}"), None));
    let grid = Grid::with_brokers(sites, brokers).unwrap();
    let spread = strategy.spread(grid.widths());
    let grid = grid.with_spread(spread);
    let mut jobs: Vec<TimedJob> = (1..=40)
        .map(|id| {
            let user = (id % 3) as i32;
            let run_time = Span::from_secs(i64::from(user) * 20 + rng.random_range(1..10));
            let widths = if id % 2 == 0 { grid.widest() + 1..=grid.widest_job() } else { 1..=grid.widest() };
            let spec = JobSpec {
                id: JobId(id),
                submit: Time::from_secs(rng.random_range(0..200)),
                processors: rng.random_range(widths),
                requested: run_time.saturating_mul(3),
                labels: Labels { user, ..Labels::UNKNOWN },
                origin: SiteId::from_index(rng.random_range(0..sizes.len())),
                payload: 0,
            };
            TimedJob { spec, run_time }
        })
        .collect();
    jobs.sort_by_key(|job| job.spec.key());
    (Arc::new(grid), jobs)
}

const PREDICTED: Forecast = Forecast { predictor: Predictor::Avg2, correction: Correction::Doubling };

fn simulated(seed: u64, strategy: Scheduling, mutant: Option<Mutant>) -> Vec<Event> {
    let (grid, jobs) = instance(seed, strategy);
    let terms = Terms { forecast: Some(PREDICTED), ..Terms::new(grid, strategy) };
    let mut simulation = Simulation::new(SimulationConfig::on(terms), &jobs);
    if let Some(mutant) = mutant {
        simulation = simulation.with_mutant(mutant);
    }
    let mut events = Vec::new();
    simulation.run(&mut |event| events.push(*event)).unwrap();
    events
}

/// Where each job started, with its parts.
fn starts(events: &[Event]) -> BTreeSet<(JobId, Time, SiteId)> {
    let started = events.iter().filter_map(|event| match event.kind {
        EventKind::Started { job, .. } | EventKind::PartStarted { job, .. } => {
            Some((job, event.at, event.site))
        }
        _ => None,
    });
    started.collect()
}

/// How many seeds are met, of so many, whose schedule is not that of the ideal.
fn differing(strategy: &str, mutant: Option<Mutant>, seeds: u64) -> usize {
    let strategy = strategy.parse::<StrategySpec>().unwrap().strategy;
    let rules = *strategy.broker().unwrap();
    let differs = |&seed: &u64| {
        let (grid, jobs) = instance(seed, strategy);
        let local = LocalScheduler::Easy;
        let policy = Brokered::new(&grid, rules, local, Pass::Batch, 1);
        let mut policy = policy.with_estimators(local, Pass::Batch, || PREDICTED.estimator());
        let mut ideal = Vec::new();
        reference::run(&mut policy, &jobs, &grid, Pass::Batch, &mut |event| ideal.push(event)).unwrap();
        starts(&ideal) != starts(&simulated(seed, strategy, mutant))
    };
    let differing = met((0..seeds).filter(differs)).len();
    println!("{strategy} {mutant:?}: {differing} of {seeds} schedules differ");
    differing
}

/// A site that has a part of a job, and is not the one that the job is known by, learns nothing from its end, and has nobody else do so.
#[test]
fn mutant_a_job_that_is_learned_from_in_each_of_its_parts_makes_schedules_differ() {
    for strategy in ["broker:mcisne,coallocate=dp", "broker:mcisne,coallocate=super,phases=two"] {
        assert_eq!(differing(strategy, None, RIGHT), 0);
        assert!(differing(strategy, Some(Mutant::PartLearned), SEEDS) > 0);
    }
}

/// Each broker predicts a job once, and of the sites that have it the one that it is known by alone says how long it is believed to run.
#[test]
fn a_job_in_parts_is_predicted_once_by_its_broker_and_said_once_by_a_site() {
    let strategy = "broker:mcisne,coallocate=dp".parse::<StrategySpec>().unwrap().strategy;
    let mut in_parts = 0;
    for seed in 0..20 {
        let (grid, jobs) = instance(seed, strategy);
        let events = simulated(seed, strategy, None);
        let apart: BTreeSet<JobId> = events
            .iter()
            .filter_map(|event| match event.kind {
                EventKind::PartStarted { job, .. } => Some(job),
                _ => None,
            })
            .collect();
        in_parts += apart.len();
        let mut known_by: BTreeMap<JobId, SiteId> = BTreeMap::new();
        let mut said: BTreeMap<JobId, Vec<(SiteId, Span)>> = BTreeMap::new();
        for event in &events {
            match event.kind {
                EventKind::Started { job, .. } => drop(known_by.insert(job, event.site)),
                EventKind::Predicted { job, run_time, corrections: 0 } => {
                    said.entry(job).or_default().push((event.site, run_time));
                }
                _ => {}
            }
        }
        for job in jobs.iter().filter(|job| apart.contains(&job.spec.id)) {
            let [(broker, first), (site, again)] = said[&job.spec.id][..] else {
                panic!("seed {seed}: {:?}", said[&job.spec.id])
            };
            assert!(grid.is_broker(broker) && known_by[&job.spec.id] == site, "seed {seed}");
            assert_eq!(first, again, "seed {seed}: its parts share what the broker predicts");
        }
    }
    assert!(in_parts > 100, "{in_parts} jobs in parts");
}
