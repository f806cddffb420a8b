use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;

/// The columns of tables 3 and 4 of Quezada Pina (2012).
const STRATEGIES: [&str; 9] = ["MCT", "MLB", "LBal_S", "MLp", "MPL", "Random", "MST", "MWWT_S", "MWT"];
/// Table 3 by grid: the degradations of the competitive ratio, the bounded slowdown and the wait, in percent.
const TABLE_3: [[[f64; 9]; 3]; 3] = [
    [
        [0.0, 0.0, 0.0, 2.0, 0.0, 21.0, 0.0, 7.0, 0.0],
        [1284.0, 408.0, 18.0, 71.0, 0.0, 41_924.0, 91.0, 12_576.0, 204.0],
        [1256.0, 463.0, 11.0, 119.0, 0.0, 51_929.0, 80.0, 17_303.0, 252.0],
    ],
    [
        [0.0, 0.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0],
        [4001.0, 754.0, 17.0, 53.0, 0.0, 12_196.0, 111.0, 7550.0, 628.0],
        [4833.0, 1799.0, 70.0, 153.0, 0.0, 18_027.0, 252.0, 9132.0, 933.0],
    ],
    [
        [2.0, 22.0, 19.0, 87.0, 17.0, 83.0, 0.0, 45.0, 26.0],
        [1.0, 33.0, 10.0, 65.0, 18.0, 46.0, 0.0, 50.0, 42.0],
        [1.0, 32.0, 9.0, 65.0, 16.0, 49.0, 0.0, 47.0, 40.0],
    ],
];
/// Table 4: means over the three metrics by grid, then over all cases.
const TABLE_4_MEANS: [[f64; 9]; 4] = [
    [846.7, 290.3, 9.7, 64.0, 0.0, 31_291.3, 57.0, 9962.0, 152.0],
    [2944.7, 851.0, 29.0, 68.7, 0.0, 10_075.0, 121.0, 5560.7, 520.3],
    [1.3, 29.0, 12.7, 72.3, 17.0, 59.3, 0.0, 47.3, 36.0],
    [1264.23, 390.10, 17.13, 68.33, 5.67, 13_808.53, 59.33, 5190.00, 236.10],
];
const TABLE_4_RANKS: [[usize; 9]; 4] = [
    [7, 6, 2, 4, 1, 9, 3, 8, 5],
    [7, 6, 2, 3, 1, 9, 4, 8, 5],
    [2, 5, 3, 9, 4, 8, 1, 7, 6],
    [7, 6, 2, 4, 1, 9, 3, 8, 5],
];
/// Table 7: the ratio, the slowdown and the wait of the 18 strategies, with a = 0.5 and a = 1 in turn.
const TABLE_7: [[f64; 18]; 3] = [
    [1., 2., 20., 23., 20., 19., 41., 87., 15., 17., 41., 83., 0., 0., 43., 45., 22., 26.],
    [62., 63., 114., 115., 73., 79., 0., 168., 81., 91., 118., 136., 59., 62., 142., 143., 112., 130.],
    [44., 45., 87., 90., 52., 57., 0., 137., 58., 66., 93., 115., 41., 44., 110., 111., 85., 102.],
];
const TABLE_7_MEANS: [f64; 18] =
    [36., 37., 74., 76., 48., 52., 14., 131., 51., 58., 84., 111., 33., 35., 98., 100., 73., 86.];
const TABLE_7_RANKS: [usize; 18] = [4, 5, 11, 12, 6, 8, 1, 18, 7, 9, 13, 17, 2, 3, 15, 16, 10, 14];

/// Values of which the printed percents are the degradations.
fn values_of(percents: &[f64]) -> Vec<f64> {
    percents.iter().map(|percent| 3.0 * (1.0 + percent / 100.0)).collect()
}

fn close(found: &[f64], expected: &[f64], tolerance: f64) {
    let near = |(a, b): (&f64, &f64)| (a - b).abs() <= tolerance;
    assert!(found.len() == expected.len() && found.iter().zip(expected).all(near), "{found:?} {expected:?}");
}

#[test]
fn table_4_follows_from_table_3() {
    let mut grids = Vec::new();
    for (grid, printed) in TABLE_3.iter().enumerate() {
        let rows: Vec<Vec<f64>> =
            printed.iter().map(|row| degradations(&values_of(row), Better::Less)).collect();
        rows.iter().zip(printed).for_each(|(row, printed)| close(row, printed, 1e-6));
        let means = mean_degradations(&rows);
        close(&means, &TABLE_4_MEANS[grid], 0.051);
        assert_eq!(ranks(&means), TABLE_4_RANKS[grid]);
        grids.push(means);
    }
    let all = mean_degradations(&grids);
    // Printed from the rounded means of the grids.
    close(&all, &TABLE_4_MEANS[3], 0.05);
    assert_eq!(ranks(&all), TABLE_4_RANKS[3]);
    assert_eq!(STRATEGIES[ranks(&all).iter().position(|rank| *rank == 1).unwrap()], "MPL");
}

#[test]
fn the_means_and_ranks_of_table_7_follow_from_its_rows() {
    let means = mean_degradations(&TABLE_7.map(|row| row.to_vec()));

    // Printed without digits.
    close(&means, &TABLE_7_MEANS, 0.51);
    assert_eq!(ranks(&means), TABLE_7_RANKS);
}

/// Table 7 relative to the best of all, and of those with a = 1 only, which table 3 has.
#[test]
fn the_best_that_is_compared_with_decides_the_percents() {
    let slowdown = values_of(&TABLE_7[1]);
    let whole_grid: Vec<f64> = slowdown.iter().skip(1).step_by(2).copied().collect();

    // Both tables are rounded: a percent of 136 more on a percent of 62.
    close(&degradations(&whole_grid, Better::Less), &TABLE_3[2][1], 1.3);
}

#[test]
fn what_is_better_the_more_of_it_there_is_loses_a_part() {
    // Throughput is the inverse of the makespan: 87 % more of the one is 46.5 % less of the other.
    close(&degradations(&[1.0, 1.0 / 1.87], Better::More), &[0.0, 46.524], 1e-3);
    close(&degradations(&[0.8, 0.4, 0.0], Better::More), &[0.0, 50.0, 100.0], 1e-9);
    assert_eq!(degradations(&[], Better::More), []);
}

#[test]
fn nothing_is_infinitely_better_than_something() {
    assert_eq!(degradations(&[0.0, 2.0, 0.0], Better::Less), [0.0, f64::INFINITY, 0.0]);
    assert_eq!(degradations(&[0.0, 0.0], Better::More), [0.0, 0.0]);
    assert_eq!(ranks(&[0.0, f64::INFINITY, 5.0, f64::INFINITY]), [1, 3, 2, 3]);
}

#[test]
fn equal_strategies_share_a_rank_and_rounding_makes_none() {
    assert_eq!(ranks(&[2.0, 1.0, 2.0 + 1e-12, 3.0]), [2, 1, 2, 4]);
    assert_eq!(ranks(&[0.1 + 0.2, 0.3]), [1, 1]);
}

#[test]
fn an_improvement_is_relative_to_before() {
    close(
        &[improvement(1.41, 1.87, Better::Less), improvement(3.0, 2.0, Better::More)],
        &[24.599, 50.0],
        1e-3,
    );
}

/// Two strategies in two experiments, of which one counts a hundred times more.
fn a_hard_and_an_easy_one() -> Measured {
    Measured::new(Better::Less, vec![vec![1.0, 110.0], vec![2.0, 100.0]])
}

#[test]
fn ratios_of_means_and_means_of_ratios_are_what_they_say() {
    let measured = a_hard_and_an_easy_one();

    // 111 / 102; and (0 + 10) / 2, (100 + 0) / 2.
    close(&measured.degradations(Aggregate::RatioOfMeans), &[100.0 * 111.0 / 102.0 - 100.0, 0.0], 1e-9);
    close(&measured.degradations(Aggregate::MeanOfRatios), &[5.0, 50.0], 1e-9);
}

/// Each row of the thesis has an exact 0, which means of ratios have not: no strategy is best in every experiment.
#[test]
fn mutant_means_of_ratios_are_not_ratios_of_means() {
    let measured = a_hard_and_an_easy_one();

    let right = ranks(&measured.degradations(Aggregate::RatioOfMeans));
    let wrong = measured.degradations(Aggregate::MeanOfRatios);

    assert_ne!(ranks(&wrong), right, "the other order of division and mean is noticed");
    assert!(wrong.iter().all(|percent| *percent > 0.0));
}

/// Table 4 with metrics taken the wrong way round, a metric forgotten, and grids weighed by their percents.
#[test]
fn mutant_wrong_means_do_not_make_table_4() {
    let of_grid = |grid: usize, better: Better, metrics: std::ops::Range<usize>| {
        let rows: Vec<Vec<f64>> =
            TABLE_3[grid][metrics].iter().map(|row| degradations(&values_of(row), better)).collect();
        mean_degradations(&rows)
    };
    for (grid, printed) in TABLE_4_RANKS.iter().enumerate().take(3) {
        assert_eq!(ranks(&of_grid(grid, Better::Less, 0..3)), *printed);
        assert_ne!(ranks(&of_grid(grid, Better::More, 0..3)), *printed, "Better::More, {grid}");
    }
    let without_waits =
        (0..3).filter(|&grid| ranks(&of_grid(grid, Better::Less, 0..2)) != TABLE_4_RANKS[grid]);
    assert!(without_waits.count() >= 1, "a metric less is another order");
}

#[test]
fn profiles_count_experiments_within_a_factor() {
    let profiles = Profile::of(&a_hard_and_an_easy_one());

    assert_eq!([1.0, 1.1, 2.0].map(|factor| profiles[0].share_within(factor)), [0.5, 1.0, 1.0]);
    assert_eq!([1.0, 1.1, 2.0].map(|factor| profiles[1].share_within(factor)), [0.5, 0.5, 1.0]);
    let use_of = Profile::of(&Measured::new(Better::More, vec![vec![0.5, 0.2], vec![0.25, 0.4]]));
    assert_eq!(use_of[0].factors(), [1.0, 2.0]);
    let waits = Profile::of(&Measured::new(Better::Less, vec![vec![0.0], vec![3.0]]));
    assert_eq!((waits[0].share_within(1.0), waits[1].share_within(1e300)), (1.0, 0.0));
}

/// The profile by its definition, one experiment after the other.
fn naive_share(measured: &Measured, strategy: usize, factor: f64) -> f64 {
    let mut within = 0;
    for experiment in 0..measured.experiments() {
        let own = measured.values[strategy][experiment];
        let others = measured.values.iter().map(|row| row[experiment]);
        within += usize::from(match measured.better {
            Better::Less => others.into_iter().all(|other| own / other <= factor),
            Better::More => others.into_iter().all(|other| other / own <= factor),
        });
    }
    within as f64 / measured.experiments() as f64
}

/// Degradation with loops and sums, as the formula is printed.
fn naive_ratio_of_means(measured: &Measured, strategy: usize) -> f64 {
    let mean = |strategy: usize| {
        measured.values[strategy].iter().sum::<f64>() / measured.values[strategy].len() as f64
    };
    let own = mean(strategy);
    let against = (0..measured.strategies()).map(|other| match measured.better {
        Better::Less => 100.0 * own / mean(other) - 100.0,
        Better::More => 100.0 - 100.0 * own / mean(other),
    });
    against.fold(f64::NEG_INFINITY, f64::max)
}

fn naive_rank(values: &[f64], place: usize) -> usize {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    1 + sorted.iter().position(|value| *value == values[place]).unwrap()
}

fn measured() -> impl Strategy<Value = Measured> {
    (1_usize..6, 1_usize..8, any::<bool>()).prop_flat_map(|(strategies, experiments, less)| {
        let row = prop::collection::vec(1_u32..2000, experiments);
        prop::collection::vec(row, strategies).prop_map(move |rows| {
            let better = if less { Better::Less } else { Better::More };
            let of = |row: Vec<u32>| row.into_iter().map(|value| f64::from(value) / 8.0).collect();
            Measured::new(better, rows.into_iter().map(of).collect())
        })
    })
}

proptest! {
    #[test]
    fn degradations_and_profiles_agree_with_their_naive_twins(measured in measured(), factor in 1.0f64..9.0) {
        let degradations = measured.degradations(Aggregate::RatioOfMeans);
        let profiles = Profile::of(&measured);
        for strategy in 0..measured.strategies() {
            prop_assert!((degradations[strategy] - naive_ratio_of_means(&measured, strategy)).abs() < 1e-9);
            let (share, naive) = (profiles[strategy].share_within(factor), naive_share(&measured, strategy, factor));
            prop_assert!((share - naive).abs() < 1e-12);
        }
        prop_assert!(degradations.contains(&0.0), "someone is the best");
    }

    #[test]
    fn ranks_agree_with_their_naive_twin(values in prop::collection::vec(0u32..50, 1..12)) {
        let values: Vec<f64> = values.into_iter().map(f64::from).collect();
        let naive: Vec<usize> = (0..values.len()).map(|place| naive_rank(&values, place)).collect();

        prop_assert_eq!(ranks(&values), naive);
    }

    #[test]
    fn orders_agree_with_themselves_and_disagree_reversed(values in prop::collection::btree_set(0u32..500, 2..12)) {
        let values: Vec<f64> = values.into_iter().map(f64::from).collect();
        let reversed: Vec<f64> = values.iter().map(|value| -value).collect();
        for correlation in [kendall, spearman] {
            prop_assert!((correlation(&values, &values).unwrap() - 1.0).abs() < 1e-12);
            prop_assert!((correlation(&values, &reversed).unwrap() + 1.0).abs() < 1e-12);
        }
    }
}

#[test]
fn known_orders_have_known_correlations() {
    // Without ties 1 - 6 Σd² / (n (n² - 1)).
    let left = [7.0, 4.0, 3.0, 10.0, 6.0, 2.0, 9.0, 8.0, 1.0, 5.0];
    let right = [5.0, 7.0, 3.0, 10.0, 1.0, 9.0, 6.0, 2.0, 8.0, 4.0];
    let squares: f64 = left.iter().zip(right).map(|(a, b)| (a - b) * (a - b)).sum();
    let expected = 1.0 - 6.0 * squares / 990.0;
    close(&[spearman(&left, &right).unwrap()], &[expected], 1e-12);
    // With ties, by hand: pairs 5 ordered left, 5 right, 4 of both: all alike.
    close(&[kendall(&[1.0, 2.0, 2.0, 3.0], &[1.0, 2.0, 3.0, 3.0]).unwrap()], &[4.0 / 5.0], 1e-12);
    assert_eq!(kendall(&[1.0, 1.0], &[1.0, 2.0]), None);
    assert_eq!(kendall_chance(&[1.0, 1.0], &[1.0, 2.0]), None);
    // SciPy: kendalltau([1, 2, 3, 4, 5], [2, 1, 3, 5, 4]) has tau 0.6 and p 7 / 30.
    let swapped = [2.0, 1.0, 3.0, 5.0, 4.0];
    close(&[kendall_chance(&[1.0, 2.0, 3.0, 4.0, 5.0], &swapped).unwrap()], &[7.0 / 30.0], 1e-12);
    close(&[kendall_chance(&[5.0, 4.0, 3.0, 2.0, 1.0], &swapped).unwrap()], &[7.0 / 30.0], 1e-12);
    close(&[kendall_chance(&swapped, &swapped).unwrap()], &[2.0 / 120.0], 1e-12);
    assert_eq!(spearman(&[1.0, 1.0], &[1.0, 2.0]), None);
}

/// Strategies whose experiments differ much, and which differ little from each other.
fn alike(rng: &mut ChaCha8Rng, factors: &[f64]) -> Measured {
    let experiments: Vec<f64> = (0..30).map(|_| rng.random_range(10.0..1000.0)).collect();
    let of =
        |&factor: &f64| experiments.iter().map(|value| value * factor * rng.random_range(0.9..1.1)).collect();
    Measured::new(Better::Less, factors.iter().map(of).collect())
}

const DRAWS: Bootstrap = Bootstrap { resamples: 1000, confidence: 0.95, seed: 7 };

#[test]
fn small_differences_in_all_experiments_are_told_from_chance() {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let chances = chances_against(&[alike(&mut rng, &[1.0, 1.1, 1.0001, 1.5])], 0, &DRAWS);

    assert_eq!(chances[0], None);
    assert!(chances[1].unwrap() < 0.05 && chances[3].unwrap() < 0.05, "{chances:?}");
    assert!(chances[2].unwrap() > 0.05, "{chances:?}");
}

/// The same values, but the experiments of one strategy in another order.
#[test]
fn mutant_without_pairs_the_experiments_hide_the_difference() {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let paired = alike(&mut rng, &[1.0, 1.1]);
    let mut unpaired = paired.clone();
    unpaired.values[1].sort_by(f64::total_cmp);
    unpaired.values[0].sort_by(|a, b| b.total_cmp(a));

    assert!(chances_against(&[paired], 0, &DRAWS)[1].unwrap() < 0.05);
    assert!(chances_against(&[unpaired], 0, &DRAWS)[1].unwrap() > 0.05);
}

/// 200 families of 6 strategies with nothing behind any difference.
#[test]
fn mutant_a_family_of_equals_is_rarely_told_apart() {
    let mut rng = ChaCha8Rng::seed_from_u64(11);
    let few = Bootstrap { resamples: 400, ..DRAWS };
    let (mut corrected, mut plain) = (0, 0);
    for _ in 0..200 {
        let chances = chances_against(&[alike(&mut rng, &[1.0; 6])], 0, &few);
        let least = chances.iter().flatten().copied().fold(1.0, f64::min);
        corrected += usize::from(least <= 0.05);
        // The least of five was multiplied by five.
        plain += usize::from(least <= 0.25);
    }
    println!(
        "of 200 families of 5 true nulls {plain} reject one without correction, {corrected} with Holm's"
    );

    // 5 % of 200 is 10; percentile intervals of 30 values are a little narrow.
    assert!(corrected <= 22, "{corrected} of 200");
    assert!(plain > 2 * corrected, "{plain} and {corrected} of 200");
}

#[test]
fn a_ranking_says_it_all() {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let waits = alike(&mut rng, &[1.2, 1.0, 1.5]);
    let used = Measured::new(Better::More, vec![vec![0.8; 30], vec![0.8; 30], vec![0.4; 30]]);

    let ranking = Ranking::of(&[waits.clone(), used], &DRAWS);

    assert_eq!(ranking.ranks, [2, 1, 3]);
    assert_eq!(ranking.ranks_of_ratios, [2, 1, 3]);
    assert_eq!(ranking.degradations[1], [0.0, 0.0, 50.0]);
    close(
        &ranking.means,
        &[ranking.degradations[0][0] / 2.0, 0.0, 25.0 + ranking.degradations[0][2] / 2.0],
        1e-9,
    );
    assert_eq!(ranking.chances[1], None);
    assert!(ranking.chances[2].unwrap() < 0.05);
    assert!(ranking.ranks_in.iter().all(|ranks| ranks.len() == 30));
    // In one experiment it need not be so.
    assert!(ranking.ranks_in[2].iter().all(|rank| *rank == 3));
    assert_eq!(
        ranking,
        Ranking::of(
            &[waits.clone(), Measured::new(Better::More, vec![vec![0.8; 30], vec![0.8; 30], vec![0.4; 30]])],
            &DRAWS
        )
    );
}
