//! The certificate of the makespan holds whatever the strategy and the network, its causes add up, and ideal
//! stealing of jobs that are all there at the start has no deficiency at all.

use analysis::{Attribution, Bounds, Deficiency, OutcomeBuilder};
use links::{Model, Properties};
use proptest::prelude::*;
use scheduler::{
    Event, Grid, LocalScheduler, Order, Selection, Span, Steal, Strategy as Scheduling, Submit, Threshold,
    TimedJob,
};
use simulator::{Checks, SimulationConfig};

use crate::runs::{delayed, for_discovery, ideal, named, options, simulate, workload};

/// What a run came to, and its makespan and the bound that proofs use.
struct Judged {
    attribution: Attribution,
    makespan: Span,
    bounds: Bounds,
}

fn judge(grid: &Grid, strategy: Scheduling, jobs: &[TimedJob], events: &[Event]) -> Judged {
    let mut deficiency = Deficiency::new(grid, &strategy, jobs);
    let mut builder = OutcomeBuilder::new(grid, strategy.threshold(), jobs);
    for event in events {
        deficiency.observe(event);
        builder.observe(event);
    }
    let outcome = builder.finish();
    Judged {
        attribution: deficiency.finish().expect("every job ended"),
        makespan: outcome.makespan(),
        bounds: Bounds::of(&outcome),
    }
}

/// The certificate holds, in both forms; the causes add up.
fn check(grid: &Grid, judged: &Judged) -> Result<(), TestCaseError> {
    let Judged { attribution, makespan, bounds } = judged;
    prop_assert!(attribution.certificate.holds, "{:?}", attribution);
    prop_assert!(*makespan <= attribution.certificate.bound);
    prop_assert_eq!(attribution.certificate.bound - *makespan, attribution.certificate.slack);
    let exact = attribution.exact();
    let (least, greatest) = (attribution.exact_least().causes(), attribution.exact_greatest().causes());
    for (place, cause) in exact.causes().into_iter().enumerate() {
        prop_assert!(0 <= least[place] && least[place] <= cause && cause <= greatest[place]);
    }
    // What no other cause explains is blind in every order.
    prop_assert_eq!((least[5], greatest[5]), (exact.blind, exact.blind));
    let sum: f64 = attribution.causes().iter().map(|(_, value)| value).sum();
    prop_assert!((sum - attribution.total).abs() <= 1e-9 * attribution.total.max(1.0));
    if let (Some(measured), Some(ceiling)) =
        (Bounds::ratio(*makespan, bounds.proof), attribution.ratio_bound(grid, bounds.proof))
    {
        prop_assert!(measured <= ceiling + 1e-9, "{} above {}", measured, ceiling);
    }
    Ok(())
}

fn steal() -> impl Strategy<Value = Steal> {
    (0u8..=100, prop::sample::select(&Order::ALL[..]), prop::sample::select(&Selection::ALL[..])).prop_map(
        |(percent, order, select)| Steal {
            threshold: Threshold::new(percent).expect("a percentage"),
            order,
            select,
        },
    )
}

fn scheduling() -> impl Strategy<Value = Scheduling> {
    let greedy = |steal: Steal| {
        let select = if steal.select == Selection::Easy { Selection::FirstFit } else { steal.select };
        Scheduling::StealGreedy(Steal { order: Order::Ahb, select, ..steal })
    };
    prop_oneof![
        4 => steal().prop_map(Scheduling::Steal),
        2 => steal().prop_map(greedy),
        1 => Just(Scheduling::CommonPool),
        1 => Just(Scheduling::Local),
        2 => prop::sample::select(&POOLS[..]).prop_map(named),
    ]
}

/// Exchanges through a global queue.
const POOLS: [&str; 5] =
    ["pool:fcfs", "pool:easy", "pool:list", "pool:list,via=gossip", "pool:easy,offer=all,via=gossip"];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn the_certificate_holds_for_every_strategy_delay_and_loss(
        (grid, jobs) in workload(true),
        strategy in scheduling(),
        options in options(),
        local in prop::sample::select(&LocalScheduler::ALL[..]),
        origin in any::<bool>(),
        delay in 0i64..20,
        loss in prop::sample::select(vec![0.0, 0.1, 0.3]),
        jitter in 0i64..10,
        seed in 0u64..1000,
    ) {
        let strategy = for_discovery(strategy, options.discovery);
        let mut config = SimulationConfig::new(grid.clone(), strategy);
        config.options = options;
        config.local = local;
        config.submit = if origin && strategy != Scheduling::Local { Submit::Origin } else { Submit::Home };
        config.network = Model::constant(Span::from_secs(delay));
        config.network.properties = Properties::unreliable(loss, loss / 2.0, Span::from_secs(jitter));
        config.checks = Checks::Cheap;
        config.seed = seed;
        let judged = judge(&grid, strategy, &jobs, &simulate(config, &jobs));
        check(&grid, &judged)?;
        if loss == 0.0 {
            prop_assert_eq!(judged.attribution.exact().lost, 0);
        }
        if strategy == Scheduling::Local {
            prop_assert_eq!(judged.attribution.in_transit_or_asked(), 0.0);
        }
    }

    #[test]
    fn the_certificate_holds_for_every_ideal(
        (grid, jobs) in workload(true),
        strategy in scheduling().prop_filter("an ideal of this test", |strategy| {
            !matches!(strategy, Scheduling::Local | Scheduling::Pool(_))
        }),
    ) {
        let judged = judge(&grid, strategy, &jobs, &ideal(&grid, strategy, &jobs));
        check(&grid, &judged)?;
        let exact = judged.attribution.exact();
        prop_assert_eq!((exact.lost, exact.in_transit, exact.asked), (0, 0, 0));
        // Ideal stealing in the original order knows everything and starts what it may. Stolen jobs that were started
        // before the last one was submitted still run, and so do small ones: foreign and drain remain.
        if let Scheduling::Steal(Steal { order: Order::Ahb | Order::Abh, threshold, select }) = strategy
            && !matches!(select, Selection::HeadOnly | Selection::Easy)
            && threshold.beta_percent() > 0
        {
            prop_assert_eq!(exact.blind, 0, "{:?}", judged.attribution);
        }
    }

    /// docs/THEORY.md, "Deficiency": with all jobs there at the start, no processor that counts is ever idle.
    #[test]
    fn ideal_stealing_offline_has_no_deficiency(
        (grid, jobs) in workload(false),
        percent in 1u8..100,
        order in prop::sample::select(vec![Order::Ahb, Order::Abh]),
        select in prop::sample::select(&Selection::ALL[..]),
    ) {
        let threshold = Threshold::new(percent).expect("a percentage");
        let strategy = Scheduling::Steal(Steal { threshold, order, select });
        let judged = judge(&grid, strategy, &jobs, &ideal(&grid, strategy, &jobs));
        check(&grid, &judged)?;
        prop_assert_eq!(judged.attribution.exact().total(), 0);
    }
}

/// The check of the test above sees a deficiency if there is one.
#[test]
fn mutant_delay_makes_a_deficiency_that_is_asked_or_travels_or_blind() {
    let (grid, jobs, events) = delayed();

    let found = judge(&grid, named("st:50"), &jobs, &events).attribution;

    // Notice, request and grant take 2 s each; then each of the two further steals waits for a request and a grant.
    assert!(found.certificate.holds);
    assert_eq!((found.blind, found.drain, found.foreign, found.lost), (4.0, 0.0, 0.0, 0.0));
    assert!(found.asked > 0.0 && found.in_transit > 0.0, "{found:?}");
}
