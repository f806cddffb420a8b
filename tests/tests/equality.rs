//! With all delays zero the protocol's schedule is the ideal one, job for job: over random grids and workloads, all
//! orders, selections and switches, and over whole real logs.
//!
//! This equality is what lets later differences be blamed on communication alone.

use std::sync::Arc;

use links::Model;
use predict::{Correction, Forecast, Predictor};
use proptest::prelude::*;
use protocol::{Options, PoolOptions, StealOptions};
use scheduler::event::GrantCause;
use scheduler::ideal::{CommonPool, GreedySteal, PoolExchange, StatelessSteal};
use scheduler::strategy::{OfferRule, PoolAlgorithm, PoolOrder, SiteOrder, Via};
use scheduler::{
    Event, EventKind, Grid, JobId, JobSpec, Labels, Order, Pass, Pool, Selection, SiteId, Span, Steal,
    Strategy as Scheduling, Submit, Threshold, Time, TimedJob,
};
use simulator::reference;
use simulator::{Checks, Simulation, SimulationConfig};

use crate::brokers::forecasts;
use crate::runs::drawn;

type Starts = Vec<(JobId, Time, SiteId)>;

fn starts_of(event: &Event, starts: &mut Starts) {
    if let EventKind::Started { job, .. } = event.kind {
        starts.push((job, event.at, event.site));
    }
}

fn ideal(grid: &Grid, strategy: Scheduling, submit: Submit, jobs: &[TimedJob]) -> Starts {
    let mut starts = Vec::new();
    let mut sink = |event: Event| starts_of(&event, &mut starts);
    let done = match strategy {
        Scheduling::Steal(steal) => {
            reference::run(&mut StatelessSteal::new(grid, steal), jobs, grid, Pass::Batch, &mut sink)
        }
        Scheduling::StealGreedy(steal) => {
            reference::run(&mut GreedySteal::new(grid, steal), jobs, grid, Pass::Batch, &mut sink)
        }
        Scheduling::CommonPool => {
            reference::run(&mut CommonPool::new(grid), jobs, grid, Pass::Batch, &mut sink)
        }
        Scheduling::Pool(pool) => return pooled(grid, pool, submit, jobs, None),
        Scheduling::Broker(_) | Scheduling::Opaque(_) => {
            unreachable!("brokers have an equality of their own")
        }
        Scheduling::Balance(_) => unreachable!("a baseline has no ideal"),
        Scheduling::Local => unreachable!("local queues exchange nothing"),
    };
    done.expect("the workload is sound");
    starts.sort_unstable();
    starts
}

fn protocol(
    grid: &Arc<Grid>,
    strategy: Scheduling,
    submit: Submit,
    jobs: &[TimedJob],
    options: Options,
    checks: Checks,
) -> Starts {
    let mut config = SimulationConfig::new(grid.clone(), strategy);
    config.submit = submit;
    config.options = options;
    config.checks = checks;
    simulated(config, jobs)
}

fn simulated(config: SimulationConfig, jobs: &[TimedJob]) -> Starts {
    let mut starts = Vec::new();
    Simulation::new(config, jobs)
        .run(&mut |event: &Event| starts_of(event, &mut starts))
        .expect("no violation");
    starts.sort_unstable();
    starts
}

/// The ideal of the global queue, by what users say or somebody predicts.
fn pooled(grid: &Grid, pool: Pool, submit: Submit, jobs: &[TimedJob], forecast: Option<Forecast>) -> Starts {
    let mut policy = PoolExchange::new(grid, pool, submit);
    if let Some(forecast) = forecast {
        policy = policy.with_estimators(|| forecast.estimator());
    }
    let mut starts = Vec::new();
    let mut sink = |event: Event| starts_of(&event, &mut starts);
    reference::run(&mut policy, jobs, grid, Pass::Batch, &mut sink).expect("the workload is sound");
    starts.sort_unstable();
    starts
}

/// The same jobs, of three users in turn.
fn of_users(mut jobs: Vec<TimedJob>) -> Vec<TimedJob> {
    jobs.iter_mut().for_each(|job| job.spec.labels.user = (job.spec.id.0 % 3) as i32);
    jobs
}

fn steal() -> impl Strategy<Value = Steal> {
    (0u8..=4, prop::sample::select(&Order::ALL[..]), prop::sample::select(&Selection::ALL[..])).prop_map(
        |(quarter, order, select)| Steal {
            threshold: Threshold::new(quarter * 25).expect("a percentage"),
            order,
            select,
        },
    )
}

/// Greedy stealing has no reservation: one in each of several lists would protect nothing.
fn greedy(steal: Steal) -> Steal {
    let select = if steal.select == Selection::Easy { Selection::FirstFit } else { steal.select };
    Steal { order: Order::Ahb, select, ..steal }
}

fn scheduling() -> impl Strategy<Value = Scheduling> {
    prop_oneof![
        6 => steal().prop_map(Scheduling::Steal),
        2 => steal().prop_map(|steal| Scheduling::StealGreedy(greedy(steal))),
        1 => Just(Scheduling::CommonPool),
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

fn workload() -> impl Strategy<Value = (Arc<Grid>, Vec<TimedJob>)> {
    drawn::workload(30, 1..4, any::<bool>())
        .prop_map(|(sizes, jobs)| (Arc::new(Grid::of_sizes(&sizes).expect("a grid")), jobs))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn protocol_without_delay_equals_the_ideal(
        (grid, jobs) in workload(),
        strategy in scheduling(),
        options in options(),
    ) {
        let expected = ideal(&grid, strategy, Submit::Home, &jobs);
        let actual = protocol(&grid, strategy, Submit::Home, &jobs, options, Checks::Full);
        prop_assert_eq!(actual, expected);
    }

    #[test]
    fn exchange_through_a_global_queue_without_delay_equals_the_ideal(
        (grid, jobs) in workload(),
        pool in pool(),
        submit in prop::sample::select(&[Submit::Home, Submit::Origin][..]),
        refreshes in any::<bool>(),
        forecast in forecasts(),
    ) {
        let jobs = of_users(jobs);
        let expected = pooled(&grid, pool, submit, &jobs, forecast);
        // On links that may lose something sites repeat their boards; that must change nothing either.
        let often = refreshes.then(|| Span::from_secs(30));
        let options = Options { retry: often, pool: PoolOptions { refresh: often }, message_events: false, ..Options::default() };
        for via in [Via::Hosted, Via::Gossip] {
            let mut config = SimulationConfig::new(grid.clone(), Scheduling::Pool(Pool { via, ..pool }));
            (config.submit, config.options, config.forecast) = (submit, options, forecast);
            config.checks = Checks::Full;
            let strategy = config.strategy;
            prop_assert_eq!(&simulated(config, &jobs), &expected, "{}", strategy);
        }
    }
}

/// All that peers can run: they decide by the rules of the ideal, so switches of the decision come for free.
fn pool() -> impl Strategy<Value = Pool> {
    (
        prop::sample::select(&[PoolAlgorithm::Fcfs, PoolAlgorithm::Easy, PoolAlgorithm::List][..]),
        prop::sample::select(&[OfferRule::Head, OfferRule::All, OfferRule::AllButHead][..]),
        prop_oneof![3 => Just(SiteOrder::Ascending), 1 => Just(SiteOrder::Descending)],
        prop_oneof![3 => Just(PoolOrder::Submit), 1 => Just(PoolOrder::Offered)],
    )
        .prop_map(|(algorithm, offer, site_order, pool_order)| Pool {
            offer,
            site_order,
            pool_order,
            ..Pool::new(algorithm)
        })
}

/// Submitted anywhere, a job is sent to its home; without delay that changes nothing.
fn with_homes() -> impl Strategy<Value = Scheduling> {
    prop_oneof![
        3 => steal().prop_map(Scheduling::Steal),
        1 => steal().prop_map(|steal| Scheduling::StealGreedy(greedy(steal))),
        1 => Just(Scheduling::CommonPool),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn submission_at_the_origin_without_delay_equals_the_ideal(
        (grid, jobs) in workload(),
        strategy in with_homes(),
        options in options(),
    ) {
        let mut config = SimulationConfig::new(grid.clone(), strategy);
        config.options = options;
        config.submit = Submit::Origin;
        let mut starts = Vec::new();
        Simulation::new(config, &jobs)
            .run(&mut |event: &Event| starts_of(event, &mut starts))
            .map_err(|violation| TestCaseError::fail(violation.to_string()))?;
        starts.sort_unstable();
        prop_assert_eq!(starts, ideal(&grid, strategy, Submit::Home, &jobs));
    }
}

/// A job pays the delay once if it is submitted away from its first owner, and nothing there.
#[test]
fn a_routed_job_pays_one_delay() {
    let grid = Arc::new(Grid::of_sizes(&[2, 8]).expect("a grid"));
    let delay = Span::from_secs(7);
    for strategy in [steal_by(50, Order::Ahb, Selection::FirstFit), Scheduling::CommonPool] {
        for (processors, origin) in [(2, 1), (2, 2), (8, 1), (8, 2)] {
            let spec = JobSpec {
                id: JobId(1),
                submit: Time::from_secs(3),
                processors,
                requested: Span::from_secs(5),
                labels: Labels::UNKNOWN,
                origin: SiteId(origin),
                payload: 0,
            };
            let jobs = [TimedJob { spec, run_time: Span::from_secs(5) }];
            let mut config = SimulationConfig::new(grid.clone(), strategy);
            config.submit = Submit::Origin;
            config.network = Model::constant(delay);
            let (mut routed, mut taken) = (None, None);
            Simulation::new(config, &jobs)
                .run(&mut |event: &Event| match event.kind {
                    EventKind::Granted { cause: GrantCause::Route, .. } => routed = Some(event.at),
                    EventKind::Accepted { firm: true, .. } => taken = Some(event.at),
                    _ => {}
                })
                .expect("no violation");
            let first_owner = if strategy == Scheduling::CommonPool || processors == 2 { 1 } else { 2 };
            let expected = (origin != first_owner).then_some(spec.submit);
            assert_eq!(routed, expected, "{strategy:?}, {processors} processors from site {origin}");
            assert_eq!(taken, expected.map(|at| at + delay), "a route takes one delay");
        }
    }
}

/// Whole logs, each on a grid that splits its machine into halves, as `(log, processors)`.
const LOGS: [(&str, u32); 5] = [
    ("KTH-SP2-1996-2.1-cln", 100),
    ("SDSC-SP2-1998-4.2-cln", 128),
    ("CTC-SP2-1996-3.1-cln", 338),
    ("LANL-CM5-1994-4.1-cln", 1024),
    ("SDSC-BLUE-2000-4.2-cln", 1152),
];

/// Each strategy on two of the logs, and two strategies on each.
#[test]
fn protocol_without_delay_equals_the_ideal_on_whole_real_logs() {
    on_whole_real_logs(|log, strategy| [0, 2].contains(&((log + strategy) % LOGS.len())));
}

#[test]
#[ignore = "long: half a minute"]
fn protocol_without_delay_equals_the_ideal_under_each_strategy_on_each_real_log() {
    on_whole_real_logs(|_, _| true);
}

/// Those whose numbers are asked for.
fn on_whole_real_logs(is_wanted: impl Fn(usize, usize) -> bool) {
    let strategies = [
        steal_by(50, Order::Ahb, Selection::FirstFit),
        steal_by(25, Order::Bah, Selection::BestFit),
        steal_by(75, Order::Hab, Selection::FirstFit),
        Scheduling::StealGreedy(Steal::with_threshold(Threshold::HALF)),
        Scheduling::CommonPool,
    ];
    let options = Options { message_events: false, ..Options::default() };
    for (number, (log, processors)) in LOGS.into_iter().enumerate() {
        let Some(jobs) = stealgrid_tests::real_jobs(log, processors) else { continue };
        // The whole machine, and three smaller ones beside it.
        let sizes = [processors / 8, processors / 4, processors / 2, processors];
        let grid = Arc::new(Grid::of_sizes(&sizes).expect("a grid"));

        for (place, strategy) in strategies.into_iter().enumerate() {
            if !is_wanted(number, place) {
                continue;
            }
            let expected = ideal(&grid, strategy, Submit::Home, &jobs);
            let actual = protocol(&grid, strategy, Submit::Home, &jobs, options, Checks::Cheap);

            assert_eq!(expected.len(), jobs.len());
            assert!(actual == expected, "{log} under {strategy:?} differs from the ideal");
        }
    }
}

#[test]
fn exchange_through_a_global_queue_without_delay_equals_the_ideal_on_real_logs() {
    // Users of the log live at different sites; widths go up to that of the widest.
    let logs = [
        ("KTH-SP2-1996-2.1-cln", PoolAlgorithm::Easy, 100),
        ("SDSC-SP2-1998-4.2-cln", PoolAlgorithm::List, 128),
        ("CTC-SP2-1996-3.1-cln", PoolAlgorithm::Fcfs, 338),
    ];
    let options = Options { message_events: false, ..Options::default() };
    for (log, algorithm, processors) in logs {
        let Some(mut jobs) = stealgrid_tests::real_jobs(log, processors) else { continue };
        let sizes = [processors / 8, processors / 4, processors / 4, processors];
        for job in &mut jobs {
            job.spec.origin = SiteId::from_index(job.spec.labels.user.unsigned_abs() as usize % sizes.len());
        }
        let grid = Arc::new(Grid::of_sizes(&sizes).expect("a grid"));
        for via in [Via::Hosted, Via::Gossip] {
            let strategy = Scheduling::Pool(Pool { via, ..Pool::new(algorithm) });
            let expected = ideal(&grid, strategy, Submit::Origin, &jobs);
            let actual = protocol(&grid, strategy, Submit::Origin, &jobs, options, Checks::Cheap);

            assert_eq!(expected.len(), jobs.len());
            assert!(actual == expected, "{log} under {strategy} differs from the ideal");
        }
        let forecast = Some(Forecast { predictor: Predictor::Avg2, correction: Correction::Tsafrir });
        let pool = Pool::new(PoolAlgorithm::Easy);
        let mut config = SimulationConfig::new(grid.clone(), Scheduling::Pool(pool));
        (config.submit, config.options, config.forecast) = (Submit::Origin, options, forecast);
        config.checks = Checks::Cheap;
        let by_users = pooled(&grid, pool, Submit::Origin, &jobs, None);
        let expected = pooled(&grid, pool, Submit::Origin, &jobs, forecast);
        assert!(expected != by_users, "{log}: predictions change nothing");
        assert!(simulated(config, &jobs) == expected, "{log} by predictions differs from the ideal");
    }
}

fn steal_by(percent: u8, order: Order, select: Selection) -> Scheduling {
    Scheduling::Steal(Steal { threshold: Threshold::new(percent).expect("a percentage"), order, select })
}
