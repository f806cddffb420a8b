//! Sites that steal jobs, or exchange them through a global queue, over nodes that jobs share: with all delays zero stealing is the ideal, and whoever
//! is handed a job starts it at once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;
use protocol::{Options, StealOptions};
use scheduler::event::EventKind;
use scheduler::ideal::{CommonPool, GreedySteal, StatelessSteal};
use scheduler::sharing::{Cluster, Fairness, Node, Platform};
use scheduler::strategy::{Amount, Balance, PoolAlgorithm, VictimRule};
use scheduler::{
    Event, Grid, JobId, Occupancy, Order, Pass, Policy, Pool, Selection, SharedNodes, SiteId, Span, Steal,
    Strategy as Scheduling, Submit, Threshold, Time, TimedJob,
};
use simulator::{Checks, Simulation, SimulationConfig, reference};

use crate::brokers::shared;
use crate::runs::drawn;

/// Who executes what from when to when.
type Ran = (JobId, Time, SiteId, bool);

fn ran(event: &Event, all: &mut Vec<Ran>) {
    match event.kind {
        EventKind::Started { job, .. } => all.push((job, event.at, event.site, true)),
        EventKind::Completed { job, .. } => all.push((job, event.at, event.site, false)),
        _ => {}
    }
}

fn sorted(mut all: Vec<Ran>) -> Vec<Ran> {
    all.sort_unstable();
    all
}

fn simulated(
    grid: &Arc<Grid>,
    strategy: Scheduling,
    options: Options,
    jobs: &[TimedJob],
    sink: &mut dyn FnMut(&Event),
) {
    let mut config = SimulationConfig::new(grid.clone(), strategy);
    if !matches!(strategy, Scheduling::Balance(_) | Scheduling::Pool(_)) {
        config.submit = Submit::Home;
    }
    // I1 to I10 of stealing are of processors, and ask for no memory.
    let of_nodes = grid.is_shared() && strategy.pool().is_none() && strategy.balance().is_none();
    config.checks = if of_nodes { Checks::Cheap } else { Checks::Full };
    config.options = options;
    Simulation::new(config, jobs).run(sink).unwrap_or_else(|violation| panic!("{violation}"));
}

fn ideal(policy: &mut impl Policy, grid: &Grid, jobs: &[TimedJob]) -> Vec<Ran> {
    let mut all = Vec::new();
    reference::run(policy, jobs, grid, Pass::Batch, &mut |event| ran(&event, &mut all)).expect("sound");
    sorted(all)
}

fn steal() -> impl Strategy<Value = Steal> {
    let selects = [Selection::FirstFit, Selection::BestFit, Selection::HeadOnly];
    (0u8..=4, prop::sample::select(&Order::ALL[..]), prop::sample::select(selects.to_vec())).prop_map(
        |(quarter, order, select)| Steal {
            threshold: Threshold::new(quarter * 25).expect("a percentage"),
            order,
            select,
        },
    )
}

fn stealing() -> impl Strategy<Value = Scheduling> {
    prop_oneof![
        4 => steal().prop_map(Scheduling::Steal),
        2 => steal().prop_map(|steal| Scheduling::StealGreedy(Steal { order: Order::Ahb, ..steal })),
        1 => Just(Scheduling::CommonPool),
    ]
}

fn exchanging() -> impl Strategy<Value = Scheduling> {
    let victims = prop::sample::select(&VictimRule::ALL[..]);
    let amounts = prop::sample::select(vec![Amount::One, Amount::Fit]);
    let algorithms = prop::sample::select(vec![PoolAlgorithm::List, PoolAlgorithm::Fcfs]);
    prop_oneof![
        (victims, amounts)
            .prop_map(|(victim, amount)| Scheduling::Balance(Balance { amount, ..Balance::new(victim) })),
        algorithms.prop_map(|algorithm| Scheduling::Pool(Pool::new(algorithm))),
    ]
}

fn options() -> impl Strategy<Value = Options> {
    let batch = prop_oneof![Just(1usize), Just(2), Just(1024)];
    (1usize..3, batch, any::<bool>(), any::<bool>()).prop_map(|(window, batch, eager, retry)| Options {
        steal: StealOptions { window, eager, prefetch: None },
        batch,
        retry: retry.then(|| Span::from_secs(30)),
        message_events: false,
        ..Options::default()
    })
}

/// Nodes that take one task, all alike, without local users: processors by another name.
fn nodes_of(grid: &Grid) -> Arc<Grid> {
    let cluster = |size: u32| {
        let node = Node { power: 1.0, memory: 1000, link: 100.0, mpl: 1 };
        let cluster = Cluster { nodes: vec![node; size as usize], uplink: 100.0 };
        let platform = Arc::new(Platform::new(&[cluster]).expect("a cluster"));
        let applications = Arc::new(BTreeMap::new());
        Some(Arc::new(SharedNodes { platform, fairness: Fairness::Proportional, applications }))
    };
    let clusters: Vec<_> = grid.machines().map(|site| cluster(site.processors)).collect();
    Arc::new(grid.clone().with_clusters(clusters).expect("widths ascend"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn stealing_over_shared_nodes_without_delay_equals_the_ideal(
        (sizes, jobs) in drawn::workload(30, 1..4, any::<bool>()),
        strategy in stealing(),
        options in options(),
        mpl in 1u32..4,
        seed in any::<u64>(),
    ) {
        let grid = Grid::of_sizes(&sizes).expect("a grid");
        let (grid, jobs) = shared(&grid, &jobs, mpl, seed, false);
        let expected = match strategy {
            Scheduling::Steal(steal) => ideal(&mut StatelessSteal::new(&grid, steal), &grid, &jobs),
            Scheduling::StealGreedy(steal) => ideal(&mut GreedySteal::new(&grid, steal), &grid, &jobs),
            _ => ideal(&mut CommonPool::new(&grid), &grid, &jobs),
        };
        let mut found = Vec::new();
        simulated(&grid, strategy, options, &jobs, &mut |event| ran(event, &mut found));
        prop_assert_eq!(sorted(found), expected);
    }

    /// Nothing but the words of the messages differs.
    #[test]
    fn nodes_with_one_task_each_are_processors(
        (sizes, jobs) in drawn::workload(30, 1..4, any::<bool>()),
        strategy in prop_oneof![stealing(), exchanging().prop_filter("draws", |one| one.balance().is_none())],
        options in options(),
    ) {
        let processors = Arc::new(Grid::of_sizes(&sizes).expect("a grid"));
        let run = |grid: &Arc<Grid>| {
            let mut all = Vec::new();
            simulated(grid, strategy, options, &jobs, &mut |event| ran(event, &mut all));
            sorted(all)
        };
        prop_assert_eq!(run(&nodes_of(&processors)), run(&processors));
    }

    /// A job that moves starts at that instant, and none is left waiting that fits what is left of the nodes of some site.
    #[test]
    fn what_is_handed_over_starts_at_once_and_nothing_waits_that_fits(
        (sizes, jobs) in drawn::workload(30, 1..4, any::<bool>()),
        strategy in exchanging(),
        options in options(),
        mpl in 1u32..4,
        seed in any::<u64>(),
    ) {
        let grid = Grid::of_sizes(&sizes).expect("a grid");
        let (grid, jobs) = shared(&grid, &jobs, mpl, seed, false);
        let specs: BTreeMap<JobId, _> = jobs.iter().map(|job| (job.spec.id, job.spec)).collect();
        let mut sites: BTreeMap<SiteId, Occupancy> = grid.sites().iter()
            .map(|site| (site.id, Occupancy::of(grid.capacity(site.id)).expect("nodes"))).collect();
        let (mut waiting, mut moved) = (BTreeSet::new(), BTreeMap::new());
        let mut last = Time::ZERO;
        let fcfs = strategy.pool().is_some_and(|pool| pool.algorithm == PoolAlgorithm::Fcfs);
        let mut completed = 0;
        simulated(&grid, strategy, options, &jobs, &mut |event| {
            if event.at > last {
                let idle = |job: &&JobId| sites.values().any(|site| site.room().fits(&specs[job]));
                let left: Vec<&JobId> = waiting.iter().filter(idle).collect();
                assert!(fcfs || left.is_empty(), "at {last} s {left:?} wait and fit");
                last = event.at;
            }
            match event.kind {
                EventKind::Submitted { job, .. } => { waiting.insert(job); }
                EventKind::Granted { job, .. } => { moved.insert(job, event.at); }
                // Two sites may give what one of them alone has room for: what does not fit goes back at once.
                EventKind::Declined { job, .. } => { moved.remove(&job); }
                EventKind::Started { job, .. } => {
                    waiting.remove(&job);
                    assert!(moved.get(&job).is_none_or(|&at| at == event.at), "job {job} starts late");
                    sites.get_mut(&event.site).unwrap().start(event.at, &specs[&job]).expect("it fits");
                }
                EventKind::Completed { job, .. } => {
                    completed += 1;
                    sites.get_mut(&event.site).unwrap().end(event.at, job);
                }
                _ => {}
            }
        });
        prop_assert_eq!(completed, jobs.len());
    }
}
