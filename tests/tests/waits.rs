//! The causes of waits add up to the waits, whatever the strategy and the network; and where nothing takes time and the
//! rules are to take what fits, nobody waits for what was asked, travels, or is not known.

use std::sync::Arc;

use analysis::waits::{CAUSES, Cause, Ranges};
use analysis::{Bounds, Metrics, Outcome, OutcomeBuilder, WaitCauses, Waits};
use links::{Model, Properties};
use proptest::prelude::*;
use protocol::{Discovery, Options, PoolOptions, StealOptions};
use scheduler::ideal::{CommonPool, GreedySteal, StatelessSteal};
use scheduler::{
    Event, Grid, JobId, JobSpec, Labels, LocalScheduler, Order, Pass, Selection, SiteId, Span, Steal,
    Strategy as Scheduling, StrategySpec, Submit, Threshold, Time, TimedJob,
};
use simulator::{Checks, Simulation, SimulationConfig, reference};

/// Of every family.
const STRATEGIES: [&str; 18] = [
    "local",
    "st:50",
    "st:25,select=best-fit",
    "st:80,order=hab",
    "st:50,order=bah",
    "st:50,select=easy",
    "st-greedy:50",
    "common-pool",
    "pool:fcfs",
    "pool:easy",
    "pool:list,via=gossip",
    "pool:easy,offer=all,via=gossip",
    "steal:random",
    "steal:nearest,amount=half",
    "steal:loaded,mode=push",
    "steal:random,mode=push",
    "steal:random,select=easy",
    "steal:loaded,mode=push,select=easy",
];

fn named(name: &str) -> Scheduling {
    name.parse::<StrategySpec>().unwrap_or_else(|error| panic!("{name}: {error}")).strategy
}

fn judge(grid: &Grid, strategy: Scheduling, jobs: &[TimedJob], events: &[Event]) -> (WaitCauses, Outcome) {
    let mut waits = Waits::new(grid, &strategy, jobs);
    let mut builder = OutcomeBuilder::new(grid, strategy.threshold(), jobs);
    for event in events {
        waits.observe(event);
        builder.observe(event);
    }
    (waits.finish().expect("every job started"), builder.finish())
}

/// The sums are those of the outcome.
fn check(found: &WaitCauses, outcome: &Outcome) -> Result<(), TestCaseError> {
    prop_assert!(found.holds);
    let waits = || outcome.finished().map(|job| (job, job.wait().expect("it started").as_micros()));
    let by_job: i128 = waits().map(|(_, wait)| i128::from(wait)).sum();
    let by_processor: i128 = waits().map(|(job, wait)| i128::from(wait) * i128::from(job.processors)).sum();
    for (ranges, sum) in [(found.exact(), by_job), (found.exact_by_processor(), by_processor)] {
        prop_assert!(ranges.hold(sum), "{:?} is not {}", ranges, sum);
        prop_assert!(ranges.least.iter().all(|&least| least >= 0));
    }
    let metrics = Metrics::of(outcome, &Bounds::of(outcome));
    prop_assert!((found.total_s - metrics.wait_sum_s).abs() < 1e-6);
    prop_assert_eq!(found.jobs, outcome.finished().count() as u64);
    prop_assert_eq!(found.widths.iter().map(|width| width.jobs).sum::<u64>(), found.jobs);
    for cause in 0..CAUSES {
        let sum: f64 = found.widths.iter().map(|width| width.causes[cause].wait_s).sum();
        prop_assert!((sum - found.causes[cause].wait_s).abs() < 1e-6);
    }
    Ok(())
}

fn greatest(ranges: &Ranges, causes: &[Cause]) -> Vec<i128> {
    causes.iter().map(|&cause| ranges.greatest[cause as usize]).collect()
}

fn workload() -> impl Strategy<Value = (Arc<Grid>, Vec<TimedJob>)> {
    let job = (0i64..40, any::<prop::sample::Index>(), 0u32..9, 0i64..30, any::<prop::sample::Index>());
    let sizes = prop::collection::vec(1u32..17, 1..=7);
    (sizes, prop::collection::vec(job, 1..=40)).prop_map(|(sizes, jobs)| {
        let grid = Arc::new(Grid::of_sizes(&sizes).expect("a grid"));
        let mut jobs: Vec<TimedJob> = jobs
            .into_iter()
            .zip(1..)
            .map(|((submit, size, less, run, origin), id)| TimedJob {
                spec: JobSpec {
                    id: JobId(id),
                    submit: Time::from_secs(submit),
                    processors: sizes[size.index(sizes.len())].saturating_sub(less).max(1),
                    requested: Span::from_secs(run.max(1)),
                    labels: Labels::UNKNOWN,
                    origin: SiteId(1 + origin.index(sizes.len()) as u32),
                    payload: 0,
                },
                run_time: Span::from_secs(run),
            })
            .collect();
        jobs.sort_by_key(|job| job.spec.key());
        (grid, jobs)
    })
}

fn options() -> impl Strategy<Value = Options> {
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

/// Far more than any run of so few jobs needs; a run that makes more talks for ever.
const EVENTS_MAX: usize = 100_000;

fn simulate(config: SimulationConfig, jobs: &[TimedJob]) -> Vec<Event> {
    let mut events = Vec::new();
    let mut sink = |event: &Event| {
        events.push(*event);
        assert!(events.len() < EVENTS_MAX, "the grid never falls silent: {event:?}");
    };
    Simulation::new(config, jobs).run(&mut sink).expect("no violation");
    events
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn causes_add_up_for_every_strategy_delay_and_loss(
        (grid, jobs) in workload(),
        strategy in prop::sample::select(&STRATEGIES[..]).prop_map(named),
        options in options(),
        local in prop::sample::select(&LocalScheduler::ALL[..]),
        origin in any::<bool>(),
        delay in 0i64..20,
        loss in prop::sample::select(vec![0.0, 0.0, 0.1, 0.3]),
        jitter in 0i64..10,
        seed in 0u64..1000,
    ) {
        // Polling has no order that asks before own work starts.
        let strategy = match (strategy, options.discovery) {
            (Scheduling::Steal(steal), Discovery::Polling { .. }) if steal.order.stolen_first() => {
                Scheduling::Steal(Steal { order: Order::Ahb, ..steal })
            }
            _ => strategy,
        };
        let mut config = SimulationConfig::new(grid.clone(), strategy);
        config.options = options;
        config.local = local;
        config.submit = if origin { Submit::Origin } else { Submit::Home };
        config.network = Model::constant(Span::from_secs(delay));
        config.network.properties = Properties::unreliable(loss, loss / 2.0, Span::from_secs(jitter));
        config.checks = Checks::Cheap;
        config.seed = seed;
        let (found, outcome) = judge(&grid, strategy, &jobs, &simulate(config, &jobs));
        check(&found, &outcome)?;
        if strategy == Scheduling::Local {
            prop_assert_eq!(greatest(found.exact(), &[Cause::Asked, Cause::Offered, Cause::Blind]), [0, 0, 0]);
        }
        if !matches!(strategy, Scheduling::Pool(_)) {
            prop_assert_eq!(greatest(found.exact(), &[Cause::Offered]), [0]);
        } else {
            prop_assert_eq!(greatest(found.exact(), &[Cause::Blind]), [0]);
        }
    }

    /// An ideal that takes what fits takes all that its rules allow.
    #[test]
    fn ideals_leave_nothing_that_is_blind(
        (grid, jobs) in workload(),
        percent in 0u8..=100,
        order in prop::sample::select(&Order::ALL[..]),
        select in prop::sample::select(vec![Selection::FirstFit, Selection::BestFit]),
        which in 0u8..4,
    ) {
        let threshold = Threshold::new(percent).expect("a percentage");
        let steal = Steal { threshold, order, select };
        let strategy = match which {
            0 | 1 => Scheduling::Steal(steal),
            2 => Scheduling::StealGreedy(Steal { order: Order::Ahb, ..steal }),
            _ => Scheduling::CommonPool,
        };
        let events = ideal(&grid, strategy, &jobs);
        let (found, outcome) = judge(&grid, strategy, &jobs, &events);
        check(&found, &outcome)?;
        let none = [Cause::Travelling, Cause::Asked, Cause::Offered, Cause::Blind];
        prop_assert_eq!(greatest(found.exact(), &none), [0; 4], "{:?}", found);
    }

    /// And so do peers whose messages take no time.
    #[test]
    fn free_messages_leave_nothing_that_is_blind(
        (grid, jobs) in workload(),
        strategy in prop::sample::select(vec!["st:50", "st:30,order=bah", "st-greedy:50", "common-pool"]).prop_map(named),
    ) {
        let config = SimulationConfig::new(grid.clone(), strategy);
        let (found, outcome) = judge(&grid, strategy, &jobs, &simulate(config, &jobs));
        check(&found, &outcome)?;
        let none = [Cause::Travelling, Cause::Asked, Cause::Offered, Cause::Blind];
        prop_assert_eq!(greatest(found.exact(), &none), [0; 4], "{:?}", found);
    }
}

fn ideal(grid: &Grid, strategy: Scheduling, jobs: &[TimedJob]) -> Vec<Event> {
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
fn delayed() -> (Arc<Grid>, Vec<TimedJob>, Vec<Event>) {
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

/// The checks above see what delay does if it does something.
#[test]
fn canary_delay_makes_jobs_wait_for_what_is_blind_asked_or_travels() {
    let (grid, jobs, events) = delayed();
    let (found, outcome) = judge(&grid, named("st:50"), &jobs, &events);
    check(&found, &outcome).unwrap();
    for cause in [Cause::Blind, Cause::Asked, Cause::Travelling] {
        assert!(found.exact().least[cause as usize] > 0, "{cause:?}: {found:?}");
    }
}

#[test]
fn canary_an_outcome_of_other_waits_is_noticed() {
    let (grid, jobs, events) = delayed();
    let (found, mut outcome) = judge(&grid, named("st:50"), &jobs, &events);
    let start = outcome.jobs[3].start.expect("it started");
    outcome.jobs[3].start = Some(start + Span::from_micros(1));
    assert!(check(&found, &outcome).is_err());
}
