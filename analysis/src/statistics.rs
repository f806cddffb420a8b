//! Means, intervals and paired differences of repeated runs.
//!
//! Runs are repeated with other seeds or other weeks. Two strategies are compared on the same repetitions, by the mean
//! of their differences: weeks differ far more from each other than strategies do. Intervals are percentiles of
//! bootstrap means (Efron 1979), which need no assumption about the shape of the distribution. Of few values they are too
//! narrow: samples spread less than the values by (n - 1)/n, and the normal quantile stands where that of Student's t
//! belongs. Both are made up for by percentiles further out, the expanded percentile interval of Hesterberg (What
//! Teachers Should Know About the Bootstrap, The American Statistician 69, 2015, pp. 371-386).
//!
//! All randomness comes from a seed: the same values in the same order give the same interval.
//!
//! [`CrossoverInterval`] says where an advantage ends, [`sign_flip`] whether a difference could be chance, and [`holm`]
//! what is left of that if one asks often.

mod crossing;
mod permutation;

pub use crossing::{Advantage, CrossoverInterval};
pub use permutation::{holm, paired_sign_flip, sign_flip};

use std::collections::BTreeMap;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF as _, Normal, StudentsT};

/// An interval of the mean.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Interval {
    /// Whether a value lies within, ends included.
    pub fn contains(self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }
}

/// Repeated values in brief.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// How many values.
    pub count: usize,
    /// Arithmetic mean of the values.
    pub mean: f64,
    /// Their standard deviation, `None` of a single value.
    pub deviation: Option<f64>,
    /// The interval of the mean, `None` of a single value.
    pub interval: Option<Interval>,
    /// The smallest value.
    pub min: f64,
    /// The greatest value.
    pub max: f64,
}

/// The mean; `None` of nothing.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The standard deviation of a sample, with n - 1; `None` of fewer than two values.
///
/// In two passes, so that values that differ little from a great mean lose no digits.
pub fn standard_deviation(values: &[f64]) -> Option<f64> {
    let mean = mean(values).filter(|_| values.len() > 1)?;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some((squares / (values.len() - 1) as f64).sqrt())
}

/// The value below which a share of ascending values lies, with linear interpolation between neighbors (type 7 of
/// Hyndman and Fan 1996, the default of R and NumPy); `None` of nothing.
///
/// # Panics
/// If the share is not from 0 to 1.
pub fn quantile(ascending: &[f64], share: f64) -> Option<f64> {
    assert!((0.0..=1.0).contains(&share), "a share is from 0 to 1");
    let last = ascending.len().checked_sub(1)?;
    let place = share * last as f64;
    let below = place.floor() as usize;
    let above = (below + 1).min(last);
    let part = place - below as f64;
    Some(ascending[below] + part * (ascending[above] - ascending[below]))
}

/// How intervals are computed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bootstrap {
    /// Samples drawn with replacement.
    pub resamples: usize,
    /// How often intervals are to hold the true mean.
    pub confidence: f64,
    /// The seed of all draws.
    pub seed: u64,
}

impl Default for Bootstrap {
    /// 2,000 samples, which settle the third digit of a 95 % interval.
    fn default() -> Bootstrap {
        Bootstrap { resamples: 2000, confidence: 0.95, seed: 1 }
    }
}

impl Bootstrap {
    /// The expanded percentile interval of the mean; `None` of fewer than two values.
    pub fn interval(&self, values: &[f64]) -> Option<Interval> {
        if values.len() < 2 || self.resamples == 0 {
            return None;
        }
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        let means = (0..self.resamples)
            .map(|_| {
                let drawn = || values[rng.random_range(0..values.len())];
                std::iter::repeat_with(drawn).take(values.len()).sum::<f64>() / values.len() as f64
            })
            .collect();
        self.percentiles(means, values.len())
    }

    /// The values in brief; `None` of nothing.
    pub fn summary(&self, values: &[f64]) -> Option<Summary> {
        Some(Summary {
            count: values.len(),
            mean: mean(values)?,
            deviation: standard_deviation(values),
            interval: self.interval(values),
            min: values.iter().copied().min_by(f64::total_cmp)?,
            max: values.iter().copied().max_by(f64::total_cmp)?,
        })
    }

    /// The differences of pairs in brief; `None` if there is no pair.
    pub fn paired<K: Ord>(&self, left: &BTreeMap<K, f64>, right: &BTreeMap<K, f64>) -> Option<Summary> {
        self.summary(&paired_differences(left, right))
    }

    /// The mean of the left over the mean of the right, over the pairs that both have; the interval is of samples of
    /// pairs. `None` if there is no pair, or if a sum of the right is not positive.
    pub fn paired_ratio<K: Ord>(&self, left: &BTreeMap<K, f64>, right: &BTreeMap<K, f64>) -> Option<Ratio> {
        let pairs: Vec<(f64, f64)> =
            left.iter().filter_map(|(key, value)| Some((*value, *right.get(key)?))).collect();
        let over = |drawn: &mut dyn Iterator<Item = (f64, f64)>| {
            let (left, right) = drawn.fold((0.0, 0.0), |sums, pair| (sums.0 + pair.0, sums.1 + pair.1));
            (right > 0.0).then(|| left / right)
        };
        let ratio = over(&mut pairs.iter().copied())?;
        if pairs.len() < 2 || self.resamples == 0 {
            return Some(Ratio { ratio, interval: None });
        }
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        let mut ratios = Vec::with_capacity(self.resamples);
        for _ in 0..self.resamples {
            let drawn = || pairs[rng.random_range(0..pairs.len())];
            ratios.push(over(&mut std::iter::repeat_with(drawn).take(pairs.len()))?);
        }
        Some(Ratio { ratio, interval: self.percentiles(ratios, pairs.len()) })
    }

    /// The interval of a statistic that was computed from samples of so many repetitions.
    fn percentiles(&self, mut values: Vec<f64>, repetitions: usize) -> Option<Interval> {
        values.sort_unstable_by(f64::total_cmp);
        let tail = self.tail(repetitions);
        Some(Interval { low: quantile(&values, tail)?, high: quantile(&values, 1.0 - tail)? })
    }

    /// The share of samples beyond each end of an interval from so many repetitions, at least two: that of the normal
    /// distribution beyond sqrt(n / (n - 1)) t(n - 1), which from many on is half of what the interval need not hold.
    fn tail(&self, repetitions: usize) -> f64 {
        let n = repetitions as f64;
        let beyond = (1.0 - self.confidence) / 2.0;
        let student = StudentsT::new(0.0, 1.0, n - 1.0).expect("at least two repetitions");
        Normal::standard().cdf((n / (n - 1.0)).sqrt() * student.inverse_cdf(beyond))
    }
}

/// A mean of paired values in parts of the mean of the others.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// Mean of the left over mean of the right.
    pub ratio: f64,
    /// Its interval, `None` of a single pair.
    pub interval: Option<Interval>,
}

/// Left minus right for every key that both have, in the order of the keys.
pub fn paired_differences<K: Ord>(left: &BTreeMap<K, f64>, right: &BTreeMap<K, f64>) -> Vec<f64> {
    left.iter().filter_map(|(key, value)| Some(value - right.get(key)?)).collect()
}

/// Where a quantity along an axis changes its sign.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Crossover {
    /// The point before, and its value.
    pub before: (f64, f64),
    /// The point after, and its value.
    pub after: (f64, f64),
}

impl Crossover {
    /// The zero between the two points: linear in the logarithm of the axis, or in the axis itself from 0 on.
    pub fn at(&self) -> f64 {
        let ((from, below), (to, above)) = (self.before, self.after);
        let part = below / (below - above);
        if from > 0.0 { (from.ln() + part * (to.ln() - from.ln())).exp() } else { from + part * (to - from) }
    }
}

/// All changes of sign along points that ascend. A zero has no sign, so that touching zero is no change.
pub fn crossovers(points: &[(f64, f64)]) -> Vec<Crossover> {
    let mut found = Vec::new();
    let mut last: Option<(f64, f64)> = None;
    for &point in points.iter().filter(|point| point.1 != 0.0) {
        if let Some(before) = last
            && (before.1 < 0.0) != (point.1 < 0.0)
        {
            found.push(Crossover { before, after: point });
        }
        last = Some(point);
    }
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// One pass with sums of squares: right for small whole numbers.
    fn naive_deviation(values: &[f64]) -> f64 {
        let n = values.len() as f64;
        let (sum, squares) =
            values.iter().fold((0.0, 0.0), |(sum, squares), value| (sum + value, squares + value * value));
        ((squares - sum * sum / n) / (n - 1.0)).max(0.0).sqrt()
    }

    /// Every sample with replacement: n^n of them, all equally likely.
    fn all_resampled_means(values: &[f64]) -> Vec<f64> {
        let n = values.len();
        let mut means: Vec<f64> = (0..n.pow(n as u32))
            .map(|mut code| {
                let mut sum = 0.0;
                for _ in 0..n {
                    sum += values[code % n];
                    code /= n;
                }
                sum / n as f64
            })
            .collect();
        means.sort_unstable_by(f64::total_cmp);
        means
    }

    fn close(measured: f64, expected: f64, tolerance: f64) {
        assert!((measured - expected).abs() <= tolerance, "{measured} is not {expected}");
    }

    #[test]
    fn known_values_have_known_statistics() {
        let values = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0];

        close(mean(&values).unwrap(), 5.0, 1e-12);
        close(standard_deviation(&values).unwrap(), (32.0f64 / 7.0).sqrt(), 1e-12);
        // NumPy: percentile(values, 30) is 4.0, percentile(values, 90) is 7.6.
        close(quantile(&values, 0.3).unwrap(), 4.0, 1e-12);
        close(quantile(&values, 0.9).unwrap(), 7.6, 1e-12);
        assert_eq!(mean(&[]), None);
        assert_eq!(standard_deviation(&[1.0]), None);
        assert_eq!(Bootstrap::default().interval(&[1.0]), None);
    }

    #[test]
    fn little_spread_about_a_great_mean_is_not_lost() {
        let values = [1e9, 1e9 + 1.0, 1e9 + 2.0];

        close(standard_deviation(&values).unwrap(), 1.0, 1e-9);
    }

    #[test]
    fn the_interval_is_that_of_all_samples() {
        let values = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0];
        let means = all_resampled_means(&values);
        let bootstrap = Bootstrap { resamples: 20_000, ..Bootstrap::default() };

        let interval = bootstrap.interval(&values).unwrap();

        // Beyond sqrt(6 / 5) 2.5706 lie 0.243 % of a normal distribution.
        close(interval.low, quantile(&means, 0.00243).unwrap(), 0.25);
        close(interval.high, quantile(&means, 1.0 - 0.00243).unwrap(), 0.25);
    }

    #[test]
    fn few_values_have_wider_percentiles() {
        // R: pnorm(sqrt(n / (n - 1)) * qt(0.025, n - 1)).
        for (repetitions, tail) in [(2, 0.0), (8, 0.005734), (12, 0.010757), (23, 0.016978), (100_000, 0.025)]
        {
            close(Bootstrap::default().tail(repetitions), tail, 1e-5);
        }
    }

    #[test]
    fn the_interval_covers_the_true_mean_about_as_often_as_it_says() {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let bootstrap = Bootstrap { resamples: 400, ..Bootstrap::default() };
        for repetitions in [8, 30] {
            let mut covered = 0;
            for _ in 0..400 {
                let values: Vec<f64> = (0..repetitions).map(|_| rng.random_range(0.0..1.0)).collect();
                covered += usize::from(bootstrap.interval(&values).unwrap().contains(0.5));
            }

            // 95 % of 400 is 380. Plain percentiles hold the mean of eight values in some 355.
            assert!((366..=394).contains(&covered), "{covered} of 400 with {repetitions} values");
        }
    }

    #[test]
    fn pairs_are_told_by_their_key() {
        let left = BTreeMap::from([(1, 10.0), (2, 20.0), (4, 40.0)]);
        let right = BTreeMap::from([(4, 39.0), (1, 7.0), (3, 0.0)]);

        assert_eq!(paired_differences(&left, &right), [3.0, 1.0]);
        let summary = Bootstrap::default().paired(&left, &right).unwrap();
        assert_eq!((summary.count, summary.mean, summary.min, summary.max), (2, 2.0, 1.0, 3.0));
    }

    #[test]
    fn a_ratio_of_pairs_is_surer_than_its_parts() {
        let right: BTreeMap<u32, f64> = (1..=20).map(|key| (key, f64::from(key * key))).collect();
        let left: BTreeMap<u32, f64> = right.iter().map(|(&key, value)| (key, value * 0.25)).collect();

        let ratio = Bootstrap::default().paired_ratio(&left, &right).unwrap();

        close(ratio.ratio, 0.25, 1e-12);
        let interval = ratio.interval.unwrap();
        close(interval.low, 0.25, 1e-12);
        close(interval.high, 0.25, 1e-12);
        assert_eq!(Bootstrap::default().paired_ratio(&left, &BTreeMap::new()), None);
        let nothing = BTreeMap::from([(1, 0.0), (2, 0.0)]);
        assert_eq!(
            Bootstrap::default().paired_ratio(&left, &nothing),
            None,
            "nothing can be a part of nothing"
        );
    }

    #[test]
    fn crossovers_lie_where_the_sign_changes() {
        let points = [(0.0, -4.0), (1.0, -2.0), (10.0, 2.0), (100.0, 0.0), (1000.0, 1.0), (10_000.0, -1.0)];

        let found = crossovers(&points);

        assert_eq!(found.len(), 2);
        close(found[0].at(), 10f64.sqrt(), 1e-9);
        close(found[1].at(), 10f64.powf(3.5), 1e-6);
        close(crossovers(&[(0.0, -1.0), (4.0, 3.0)])[0].at(), 1.0, 1e-12);
        assert_eq!(crossovers(&[(0.0, 1.0), (1.0, 0.0), (2.0, 3.0)]), []);
    }

    proptest! {
        #[test]
        fn statistics_agree_with_their_naive_twins(values in prop::collection::vec(-1000i32..1000, 2..40)) {
            let values: Vec<f64> = values.into_iter().map(f64::from).collect();
            let mut ascending = values.clone();
            ascending.sort_unstable_by(f64::total_cmp);

            prop_assert!((standard_deviation(&values).unwrap() - naive_deviation(&values)).abs() < 1e-6);
            prop_assert_eq!(quantile(&ascending, 0.0), Some(ascending[0]));
            prop_assert_eq!(quantile(&ascending, 1.0), ascending.last().copied());
            let middle = ascending.len() / 2;
            let median =
                if ascending.len() % 2 == 1 { ascending[middle] } else { (ascending[middle - 1] + ascending[middle]) / 2.0 };
            prop_assert!((quantile(&ascending, 0.5).unwrap() - median).abs() < 1e-9);
        }

        #[test]
        fn an_interval_lies_within_the_values_and_about_their_mean(
            values in prop::collection::vec(-1e6f64..1e6, 2..30),
            seed in any::<u64>(),
        ) {
            let bootstrap = Bootstrap { resamples: 300, seed, ..Bootstrap::default() };

            let summary = bootstrap.summary(&values).unwrap();

            let interval = summary.interval.unwrap();
            prop_assert!(summary.min - 1e-6 <= interval.low && interval.high <= summary.max + 1e-6);
            prop_assert!(interval.low <= interval.high);
            prop_assert_eq!(bootstrap.interval(&values), Some(interval), "same seed, same interval");
            let moved: Vec<f64> = values.iter().map(|value| value + 64.0).collect();
            let shifted = bootstrap.interval(&moved).unwrap();
            prop_assert!((shifted.low - interval.low - 64.0).abs() < 1e-6);
        }

        #[test]
        fn a_constant_difference_is_certain(values in prop::collection::vec(-1e3f64..1e3, 2..20)) {
            let left: BTreeMap<usize, f64> = values.iter().copied().enumerate().collect();
            let right: BTreeMap<usize, f64> = left.iter().map(|(&key, value)| (key, value + 3.0)).collect();

            let summary = Bootstrap::default().paired(&left, &right).unwrap();

            prop_assert!((summary.mean + 3.0).abs() < 1e-9);
            let interval = summary.interval.unwrap();
            prop_assert!(interval.high - interval.low < 1e-9);
        }
    }
}
