//! Whether one strategy ranks before another by chance of the experiments.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{Aggregate, Measured, mean_degradations};
use crate::statistics::{Bootstrap, holm};

/// The chance that each strategy's mean degradation over the metrics is that of another one, two-sided, with Holm's
/// correction over all that are compared; `None` of that one itself.
///
/// By a paired bootstrap over experiments (Efron and Tibshirani 1993, section 16): experiments are drawn with replacement,
/// the same ones for all strategies and metrics, and the chance is twice the share of draws in which the difference has not
/// the sign that it mostly has. It is never 0: with n draws at least 2 in n + 1.
///
/// # Panics
/// If there is no such strategy.
pub fn chances_against(metrics: &[Measured], other: usize, bootstrap: &Bootstrap) -> Vec<Option<f64>> {
    let (strategies, experiments) =
        metrics.first().map_or((0, 0), |metric| (metric.strategies(), metric.experiments()));
    assert!(other < strategies, "there is no strategy {other}");
    let mut rng = ChaCha8Rng::seed_from_u64(bootstrap.seed);
    // How often it is not worse, and not better.
    let mut sides = vec![(0_usize, 0_usize); strategies];
    for _ in 0..bootstrap.resamples {
        let drawn: Vec<usize> = (0..experiments).map(|_| rng.random_range(0..experiments)).collect();
        let here = |metric: &Measured| metric.degradations_in(Aggregate::RatioOfMeans, &drawn);
        let means = mean_degradations(&metrics.iter().map(here).collect::<Vec<_>>());
        for (side, mean) in sides.iter_mut().zip(&means) {
            side.0 += usize::from(*mean <= means[other]);
            side.1 += usize::from(*mean >= means[other]);
        }
    }
    let chance = |(below, above): (usize, usize)| {
        (2.0 * (below.min(above) + 1) as f64 / (bootstrap.resamples + 1) as f64).min(1.0)
    };
    let compared: Vec<usize> = (0..strategies).filter(|&strategy| strategy != other).collect();
    let corrected = holm(&compared.iter().map(|&strategy| chance(sides[strategy])).collect::<Vec<_>>());
    let mut chances = vec![None; strategies];
    compared.into_iter().zip(corrected).for_each(|(strategy, corrected)| chances[strategy] = Some(corrected));
    chances
}
