//! Runs of small grids that tests of several measures are about.

pub(crate) mod drawn;

use std::sync::Arc;

use links::Model;
use proptest::prelude::*;
use protocol::{Discovery, Options, PoolOptions, StealOptions};
use scheduler::ideal::{CommonPool, GreedySteal, StatelessSteal};
use scheduler::{
    Event, Grid, JobId, JobSpec, Labels, Order, Pass, SiteId, Span, Steal, Strategy as Scheduling,
    StrategySpec, Time, TimedJob,
};
use simulator::{Simulation, SimulationConfig, reference};

/// A strategy by its name.
pub(crate) fn named(name: &str) -> Scheduling {
    name.parse::<StrategySpec>().unwrap_or_else(|error| panic!("{name}: {error}")).strategy
}

/// Grids and jobs; all are there at the start unless `online`.
pub(crate) fn workload(online: bool) -> impl Strategy<Value = (Arc<Grid>, Vec<TimedJob>)> {
    drawn::workload(40, 1..2, Just(online))
        .prop_map(|(sizes, jobs)| (Arc::new(Grid::of_sizes(&sizes).expect("a grid")), jobs))
}

/// Switches and limits, with repetitions.
pub(crate) fn options() -> impl Strategy<Value = Options> {
    let discovery = prop_oneof![
        3 => Just(Discovery::Standing),
        1 => Just(Discovery::Polling { period: Span::from_secs(5), period_max: Span::from_secs(40) }),
    ];
    (discovery, 1usize..3, any::<bool>(), 0u32..4, any::<bool>(), any::<bool>()).prop_map(
        |(discovery, window, eager, bounces_max, recall, message_events)| Options {
            discovery,
            steal: StealOptions { window, eager, prefetch: None },
            bounces_max,
            retry: Some(Span::from_secs(40)),
            recall: recall.then(|| Span::from_secs(90)),
            pool: PoolOptions { refresh: Some(Span::from_secs(120)) },
            message_events,
            ..Options::default()
        },
    )
}

/// Polling has no order that asks before own work starts.
pub(crate) fn for_discovery(strategy: Scheduling, discovery: Discovery) -> Scheduling {
    match (strategy, discovery) {
        (Scheduling::Steal(steal), Discovery::Polling { .. }) if steal.order.stolen_first() => {
            Scheduling::Steal(Steal { order: Order::Ahb, ..steal })
        }
        _ => strategy,
    }
}

/// Far more than any run of so few jobs needs; a run that makes more talks for ever.
const EVENTS_MAX: usize = 100_000;

/// The events of a run between peers.
pub(crate) fn simulate(config: SimulationConfig, jobs: &[TimedJob]) -> Vec<Event> {
    let mut events = Vec::new();
    let mut sink = |event: &Event| {
        events.push(*event);
        assert!(events.len() < EVENTS_MAX, "the grid never falls silent: {event:?}");
    };
    Simulation::new(config, jobs).run(&mut sink).expect("no violation");
    events
}

/// The events of the ideal of ST_x, of greedy stealing, or of the common pool.
pub(crate) fn ideal(grid: &Grid, strategy: Scheduling, jobs: &[TimedJob]) -> Vec<Event> {
    let mut events = Vec::new();
    let mut sink = |event: Event| events.push(event);
    let done = match strategy {
        Scheduling::Steal(steal) => {
            reference::run(&mut StatelessSteal::new(grid, steal), jobs, grid, Pass::Batch, &mut sink)
        }
        Scheduling::StealGreedy(steal) => {
            reference::run(&mut GreedySteal::new(grid, steal), jobs, grid, Pass::Batch, &mut sink)
        }
        _ => reference::run(&mut CommonPool::new(grid), jobs, grid, Pass::Batch, &mut sink),
    };
    done.expect("the workload is sound");
    events
}

/// Six jobs as wide as either of two sites, all at the first, messages of 2 s.
pub(crate) fn delayed() -> (Arc<Grid>, Vec<TimedJob>, Vec<Event>) {
    let grid = Arc::new(Grid::of_sizes(&[4, 4]).expect("a grid"));
    let jobs: Vec<TimedJob> = (1..=6)
        .map(|id| TimedJob {
            spec: JobSpec {
                id: JobId(id),
                submit: Time::ZERO,
                processors: 4,
                requested: Span::from_secs(10),
                labels: Labels::UNKNOWN,
                origin: SiteId(1),
                payload: 0,
            },
            run_time: Span::from_secs(10),
        })
        .collect();
    let mut config = SimulationConfig::new(grid.clone(), named("st:50"));
    config.network = Model::constant(Span::from_secs(2));
    let events = simulate(config, &jobs);
    (grid, jobs, events)
}
