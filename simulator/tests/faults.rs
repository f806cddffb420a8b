//! Whatever the network does short of a crash, every job runs exactly once and the grid falls silent.

use std::sync::Arc;

use links::{Model, Properties};
use proptest::prelude::*;
use protocol::{BalanceOptions, Discovery, Options, StealOptions};
use scheduler::{
    Amount, Balance, Event, EventKind, Grid, Initiative, JobId, JobSpec, Labels, Order, Selection, SiteId,
    Span, Steal, Strategy as Scheduling, Submit, Threshold, Time, TimedJob, VictimRule,
};
use simulator::{Checks, Simulation, SimulationConfig, Violation};

fn scheduling() -> impl Strategy<Value = Scheduling> {
    let steal = (0u8..=100, prop::sample::select(&Order::ALL[..]), prop::sample::select(&Selection::ALL[..]))
        .prop_map(|(percent, order, select)| Steal {
            threshold: Threshold::new(percent).expect("a percentage"),
            order,
            select,
        });
    prop_oneof![
        4 => steal.clone().prop_map(Scheduling::Steal),
        2 => steal.prop_map(Scheduling::StealGreedy),
        1 => Just(Scheduling::CommonPool),
        4 => balance().prop_map(Scheduling::Balance),
    ]
}

fn balance() -> impl Strategy<Value = Balance> {
    const AMOUNTS: [Amount; 3] = [Amount::One, Amount::Half, Amount::Fit];
    let victim = prop::sample::select(&VictimRule::ALL[..]);
    (victim, prop::sample::select(&AMOUNTS[..]), any::<bool>(), any::<bool>()).prop_map(
        |(victim, amount, push, easy)| Balance {
            victim,
            amount,
            initiative: if push { Initiative::Push } else { Initiative::Pull },
            select: if easy { Selection::Easy } else { Selection::FirstFit },
        },
    )
}

fn workload(max_sites: usize, max_jobs: usize) -> impl Strategy<Value = (Arc<Grid>, Vec<TimedJob>)> {
    let job = (0i64..40, 1u32..17, 0i64..30, 1i64..3, any::<prop::sample::Index>());
    (prop::collection::vec(1u32..17, 1..=max_sites), prop::collection::vec(job, 1..=max_jobs)).prop_map(
        |(sizes, jobs)| {
            let grid = Arc::new(Grid::of_sizes(&sizes).expect("a grid"));
            let widest = grid.widest();
            let mut jobs: Vec<TimedJob> = jobs
                .into_iter()
                .enumerate()
                .map(|(index, (submit, width, run, factor, origin))| TimedJob {
                    spec: JobSpec {
                        id: JobId(index as u64 + 1),
                        submit: Time::from_secs(submit),
                        processors: width.min(widest),
                        requested: Span::from_secs((run * factor).max(1)),
                        labels: Labels::UNKNOWN,
                        origin: SiteId::from_index(origin.index(sizes.len())),
                        payload: 0,
                    },
                    run_time: Span::from_secs(run),
                })
                .collect();
            jobs.sort_by_key(|job| job.spec.key());
            (grid, jobs)
        },
    )
}

fn options() -> impl Strategy<Value = Options> {
    let discovery = prop_oneof![
        3 => Just(Discovery::Standing),
        1 => Just(Discovery::Polling { period: Span::from_secs(5), period_max: Span::from_secs(40) }),
    ];
    (
        discovery,
        1usize..3,
        prop_oneof![Just(1usize), Just(2), Just(1024)],
        any::<bool>(),
        0u32..4,
        any::<bool>(),
        (1usize..4, 5i64..50, prop::option::of(0i64..40), prop::option::of(0i64..40)),
    )
        .prop_map(
            |(discovery, window, batch, eager, bounces_max, recall, (tries, gossip, margin, prefetch))| {
                Options {
                    discovery,
                    steal: StealOptions { window, eager, prefetch: prefetch.map(Span::from_secs) },
                    balance: BalanceOptions {
                        tries,
                        gossip: Span::from_secs(gossip),
                        ..BalanceOptions::default()
                    },
                    batch,
                    bounces_max,
                    retry: Some(Span::from_secs(30)),
                    recall: recall.then(|| Span::from_secs(90)),
                    margin: margin.map(Span::from_secs),
                    ..Options::default()
                }
            },
        )
}

fn config(
    grid: Arc<Grid>,
    strategy: Scheduling,
    options: Options,
    delay: i64,
    faults: Properties,
) -> SimulationConfig {
    let mut config = SimulationConfig::new(grid, strategy);
    config.options = options;
    // Polling has no order that asks before own work starts.
    if let (Scheduling::Steal(steal), Discovery::Polling { .. }) = (&mut config.strategy, options.discovery)
        && steal.order.stolen_first()
    {
        steal.order = Order::Ahb;
    }
    config.network = Model::constant(Span::from_secs(delay)).with(faults);
    config.checks = Checks::Full;
    config
}

/// Far more than any run of so few jobs needs; a run that makes more talks for ever.
const EVENTS_MAX: u32 = 100_000;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn every_job_runs_once_under_loss_duplication_and_reordering(
        (grid, jobs) in workload(6, 25),
        strategy in scheduling(),
        options in options(),
        delay in 0i64..12,
        loss in 0.0f64..0.5,
        duplication in 0.0f64..0.5,
        jitter in 0i64..20,
        origin in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let faults = Properties::unreliable(loss, duplication, Span::from_secs(jitter));
        let mut config = config(grid, strategy, options, delay, faults);
        config.seed = seed;
        config.submit = if origin { Submit::Origin } else { Submit::Home };
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

    #[test]
    fn one_seed_gives_one_log((grid, jobs) in workload(4, 12), strategy in scheduling(), seed in any::<u64>()) {
        let faults = Properties::unreliable(0.2, 0.2, Span::from_secs(7));
        let options = Options { retry: Some(Span::from_secs(30)), ..Options::default() };
        let mut config = config(grid, strategy, options, 3, faults);
        config.seed = seed;
        let log = || {
            let mut log = Vec::new();
            let totals = Simulation::new(config.clone(), &jobs).run(&mut |event: &Event| log.push(*event));
            (log, totals)
        };
        prop_assert_eq!(log(), log());
    }
}

/// A grid in which site 2 steals from site 1, for mutants.
fn stealing_grid() -> (SimulationConfig, Vec<TimedJob>) {
    let grid = Arc::new(Grid::of_sizes(&[2, 8]).expect("a grid"));
    let spec = |id, submit| JobSpec {
        id: JobId(id),
        submit: Time::from_secs(submit),
        processors: 2,
        requested: Span::from_secs(10),
        labels: Labels::UNKNOWN,
        origin: SiteId(1),
        payload: 0,
    };
    let jobs = (1..6).map(|id| TimedJob { spec: spec(id, 0), run_time: Span::from_secs(10) }).collect();
    let steal = Scheduling::Steal(Steal::with_threshold(Threshold::HALF));
    let options = Options { retry: Some(Span::from_secs(30)), ..Options::default() };
    (config(grid, steal, options, 1, Properties::NONE), jobs)
}

#[test]
fn a_grid_without_retries_starves_when_messages_are_lost() {
    // The mutant of the liveness check: the same runs pass with retries.
    let (mut config, jobs) = stealing_grid();
    config.network.properties = Properties::unreliable(0.5, 0.0, Span::from_secs(0));
    let unfinished = |retry| {
        (0..50)
            .filter(|&seed| {
                let mut config = config.clone();
                config.seed = seed;
                config.options.retry = retry;
                let mut events = 0;
                let result = Simulation::new(config, &jobs).run(&mut |_| {
                    events += 1;
                    assert!(events < EVENTS_MAX, "the grid never falls silent");
                });
                matches!(result, Err(Violation::Unfinished { .. } | Violation::NotQuiet { .. }))
            })
            .count()
    };

    assert!(unfinished(None) > 10);
    assert_eq!(unfinished(Some(Span::from_secs(30))), 0);
}
