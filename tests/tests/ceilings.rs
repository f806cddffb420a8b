//! Ideal job stealing respects every ceiling that is proved for it, and the known bad families are as bad as known.
//!
//! A violation on a random instance means that the algorithm, the bounds or the theory module is wrong.

use proptest::prelude::*;

use analysis::{Bounds, Metrics, Outcome, OutcomeBuilder, Setting, Verdict, theory};
use claims::runs::job;
use scheduler::ideal::{CommonPool, StatelessSteal};
use scheduler::{
    Grid, LocalScheduler, Pass, Policy, Span, Strategy as Scheme, StrategySpec, Threshold, TimedJob,
};

fn outcome(policy: &mut impl Policy, grid: &Grid, threshold: Threshold, jobs: &[TimedJob]) -> Outcome {
    let mut builder = OutcomeBuilder::new(grid, threshold, jobs);
    simulator::reference::run(policy, jobs, grid, Pass::Batch, &mut |event| builder.observe(&event))
        .expect("the workload fits the grid");
    builder.finish()
}

fn stealing(strategy: &str, grid: &Grid, jobs: &[TimedJob]) -> (StrategySpec, Outcome) {
    let spec: StrategySpec = strategy.parse().expect("a strategy of this test");
    let Scheme::Steal(steal) = spec.strategy else { panic!("{strategy} does not steal") };
    (spec, outcome(&mut StatelessSteal::new(grid, steal), grid, steal.threshold, jobs))
}

proptest! {
    #[test]
    fn no_ceiling_is_violated(
        sizes in prop::collection::vec(1u32..20, 1..6),
        raw in prop::collection::vec((0i64..30, 1u32..20, 0i64..20), 1..40),
        offline in any::<bool>(),
        threshold in prop::sample::select(vec![10, 25, 50, 75, 90]),
        order in prop::sample::select(vec!["ahb", "abh", "bah"]),
        select in prop::sample::select(vec!["first-fit", "best-fit", "head", "easy"]),
    ) {
        let grid = Grid::of_sizes(&sizes).unwrap();
        let mut jobs: Vec<TimedJob> = raw
            .into_iter()
            .zip(1..)
            .map(|((submit, width, length), id)| {
                job(id, if offline { 0 } else { submit }, width.min(grid.widest()), length)
            })
            .collect();
        jobs.sort_by_key(|job| job.spec.key());

        let (strategy, outcome) =
            stealing(&format!("ideal/st:{threshold},order={order},select={select}"), &grid, &jobs);

        let bounds = Bounds::of(&outcome);
        let comparisons = theory::compare(&outcome, &bounds, Setting { strategy, local: LocalScheduler::Easy, messages: analysis::Messages::FREE, local_users: false });
        for comparison in comparisons {
            prop_assert_eq!(&comparison.verdict, &Verdict::Holds, "{:?}", comparison);
        }
    }
}

/// One machine of 2q processors where class A blocks class B: the ratio tends to 2.5.
#[test]
fn the_stress_family_costs_stealing_what_is_known() {
    for (c, expected) in [(1i64, 2.214), (2, 2.318), (5, 2.413), (10, 2.453), (20, 2.476)] {
        let q = u32::try_from(11 + 15 * c).unwrap();
        let n = 4 * (2 * c + 1) + 1;
        let widths = std::iter::repeat_n((q + 1, 1), n as usize)
            .chain([(q + 2, 1)])
            .chain(std::iter::repeat_n((15, 1), (n * c) as usize))
            .chain([(10, n)]);
        let jobs: Vec<TimedJob> =
            widths.zip(1..).map(|((width, length), id)| job(id, 0, width, length)).collect();
        let grid = Grid::of_sizes(&[2 * q]).unwrap();

        let (_, outcome) = stealing("ideal/st:50", &grid, &jobs);

        // The optimum is at most n + 1.
        let ratio = outcome.makespan().as_secs_f64() / (n + 1) as f64;
        assert!((ratio - expected).abs() < 5e-4, "c = {c}: {ratio}");
    }
}

/// Sites of N + 1 to N + m processors and T unit jobs as wide as each: one list in order of width needs T times the
/// m-th harmonic number, stealing needs T.
#[test]
fn the_harmonic_family_separates_lists_from_stealing() {
    for (m, length, expected) in [(2u32, 2i64, 3i64), (3, 6, 11), (4, 12, 25), (5, 60, 137), (6, 60, 147)] {
        let sizes: Vec<u32> = (1..=m).map(|site| m + site).collect();
        let grid = Grid::of_sizes(&sizes).unwrap();
        let widths = sizes.iter().flat_map(|&size| std::iter::repeat_n(size, length as usize));
        let jobs: Vec<TimedJob> = widths.zip(1..).map(|(width, id)| job(id, 0, width, 1)).collect();

        let list = outcome(&mut CommonPool::new(&grid), &grid, Threshold::HALF, &jobs);
        let (_, stealing) = stealing("ideal/st:50", &grid, &jobs);

        assert_eq!(list.makespan(), Span::from_secs(expected), "m = {m}");
        assert_eq!(stealing.makespan(), Span::from_secs(length), "m = {m}");
        let bounds = Bounds::of(&stealing);
        assert_eq!(bounds.best, Span::from_secs(length), "the bound is tight here");
        assert_eq!(Metrics::of(&stealing, &bounds).ratio_best, Some(1.0));
    }
}
