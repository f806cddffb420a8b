//! The causes of waits add up to the waits, whatever the strategy and the network; and where nothing takes time and the
//! rules are to take what fits, nobody waits for what was asked, travels, or is not known.

use std::sync::Arc;

use analysis::waits::{CAUSES, Cause, Ranges};
use analysis::{Bounds, Metrics, Outcome, OutcomeBuilder, WaitCauses, Waits};
use links::{Model, Properties};
use proptest::prelude::*;
use scheduler::{
    Event, Grid, JobId, JobSpec, Labels, LocalScheduler, Order, Selection, SiteId, Span, Steal,
    Strategy as Scheduling, Submit, Threshold, Time, TimedJob,
};
use simulator::{Checks, SimulationConfig};

use crate::runs::{delayed, for_discovery, ideal, named, options, simulate, workload};

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
    prop_assert_eq!(found.causes.len(), CAUSES - usize::from(!outcome.grid.spreads()));
    for (place, cause) in found.causes.iter().enumerate() {
        let sum: f64 = found.widths.iter().map(|width| width.causes[place].wait_s).sum();
        prop_assert!((sum - cause.wait_s).abs() < 1e-6);
    }
    Ok(())
}

fn greatest(ranges: &Ranges, causes: &[Cause]) -> Vec<i128> {
    causes.iter().map(|&cause| ranges.greatest[cause as usize]).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn causes_add_up_for_every_strategy_delay_and_loss(
        (grid, jobs) in workload(true),
        strategy in prop::sample::select(&STRATEGIES[..]).prop_map(named),
        options in options(),
        local in prop::sample::select(&LocalScheduler::ALL[..]),
        origin in any::<bool>(),
        delay in 0i64..20,
        loss in prop::sample::select(vec![0.0, 0.0, 0.1, 0.3]),
        jitter in 0i64..10,
        seed in 0u64..1000,
    ) {
        let strategy = for_discovery(strategy, options.discovery);
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
        (grid, jobs) in workload(true),
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
        let none = [Cause::InTransit, Cause::Asked, Cause::Offered, Cause::Blind];
        prop_assert_eq!(greatest(found.exact(), &none), [0; 4], "{:?}", found);
    }

    /// And so do peers whose messages take no time.
    #[test]
    fn free_messages_leave_nothing_that_is_blind(
        (grid, jobs) in workload(true),
        strategy in prop::sample::select(vec!["st:50", "st:30,order=bah", "st-greedy:50", "common-pool"]).prop_map(named),
    ) {
        let config = SimulationConfig::new(grid.clone(), strategy);
        let (found, outcome) = judge(&grid, strategy, &jobs, &simulate(config, &jobs));
        check(&found, &outcome)?;
        let none = [Cause::InTransit, Cause::Asked, Cause::Offered, Cause::Blind];
        prop_assert_eq!(greatest(found.exact(), &none), [0; 4], "{:?}", found);
    }
}

/// A job that only several sites together can hold, on an idle grid: it waits for as long as its broker needs to ask them, which is all
/// that delay costs it; and where messages take no time it does not wait.
#[test]
fn what_delay_costs_a_job_in_parts_has_a_cause_of_its_own() {
    let grid = Grid::with_brokers(
        [("small".to_string(), 4), ("large".to_string(), 8)],
        [("broker".to_string(), None)],
    );
    let strategy = named("broker:mcisne,coallocate=dp");
    let grid = grid.expect("names differ");
    let spread = strategy.spread(grid.widths());
    let grid = Arc::new(grid.with_spread(spread));
    let job = |(id, submit, processors): (u64, i64, u32)| TimedJob {
        spec: JobSpec {
            id: JobId(id),
            submit: Time::from_secs(submit),
            processors,
            requested: Span::from_secs(60),
            labels: Labels::UNKNOWN,
            origin: SiteId(1),
            payload: 0,
        },
        run_time: Span::from_secs(60),
    };
    let jobs = [(1, 0, 10), (2, 100, 3), (3, 200, 12)].map(job);
    for delay in [0, 5] {
        let mut config = SimulationConfig::new(grid.clone(), strategy);
        config.network = Model::constant(Span::from_secs(delay));
        config.checks = Checks::Cheap;
        let (found, outcome) = judge(&grid, strategy, &jobs, &simulate(config, &jobs));
        check(&found, &outcome).expect("it adds up");
        let of = |cause: Cause| found.exact().chosen[cause as usize];
        let first = outcome.finished().next().and_then(|job| job.wait()).expect("it started");
        assert_eq!(of(Cause::Full), 0, "{found:?}");
        if delay == 0 {
            assert_eq!((of(Cause::InParts), first), (0, Span::ZERO));
        } else {
            // There and back, and the longest answer until all start.
            assert!(of(Cause::InParts) >= 2 * i128::from(Span::from_secs(10).as_micros()), "{found:?}");
            assert!(first >= Span::from_secs(10), "{first:?}");
        }
    }
}

/// The checks above see what delay does if it does something.
#[test]
fn mutant_delay_makes_jobs_wait_for_what_is_blind_asked_or_travels() {
    let (grid, jobs, events) = delayed();
    let (found, outcome) = judge(&grid, named("st:50"), &jobs, &events);
    check(&found, &outcome).unwrap();
    for cause in [Cause::Blind, Cause::Asked, Cause::InTransit] {
        assert!(found.exact().least[cause as usize] > 0, "{cause:?}: {found:?}");
    }
}

#[test]
fn mutant_an_outcome_of_other_waits_is_noticed() {
    let (grid, jobs, events) = delayed();
    let (found, mut outcome) = judge(&grid, named("st:50"), &jobs, &events);
    let start = outcome.jobs[3].start.expect("it started");
    outcome.jobs[3].start = Some(start + Span::from_micros(1));
    assert!(check(&found, &outcome).is_err());
}
