//! The distribution of many spans in little memory: mean and extremes exactly, quantiles to four digits.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use scheduler::Span;

/// Values are told apart by this many decimal digits: at most 9,000 different ones in each power of ten.
const DIGITS: u32 = 4;

/// Spans as they come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spread {
    /// By their value in microseconds, rounded towards zero to four digits.
    counts: BTreeMap<i64, u64>,
    count: u64,
    sum: i128,
    extremes: Option<(Span, Span)>,
}

/// A distribution in five numbers, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    /// How many values; the others are 0 if there is none.
    pub count: u64,
    /// Mean of the values.
    pub mean: f64,
    /// The smallest value.
    pub min: f64,
    /// Half of the values are at most this. Like all quantiles the smallest value with that property (nearest rank),
    /// of which four digits are known.
    pub median: f64,
    /// 90 % of the values are at most this.
    pub p90: f64,
    /// 99 % of the values are at most this.
    pub p99: f64,
    /// The largest value.
    pub max: f64,
}

impl Spread {
    /// Takes a value.
    pub fn add(&mut self, span: Span) {
        *self.counts.entry(rounded(span.as_micros())).or_default() += 1;
        self.count += 1;
        self.sum += i128::from(span.as_micros());
        let (min, max) = self.extremes.unwrap_or((span, span));
        self.extremes = Some((min.min(span), max.max(span)));
    }

    /// How many values there are.
    pub fn len(&self) -> u64 {
        self.count
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The smallest value that at least this share of all values does not exceed, to four digits; `None` without
    /// values.
    pub fn quantile(&self, percent: u64) -> Option<Span> {
        let rank = (self.count * percent).div_ceil(100).max(1);
        let mut seen = 0;
        for (&value, &count) in &self.counts {
            seen += count;
            if seen >= rank {
                return Some(Span::from_micros(value));
            }
        }
        None
    }

    /// The smallest and the largest value.
    pub fn extremes(&self) -> Option<(Span, Span)> {
        self.extremes
    }

    /// The share of values, from 0 to 1, that are at most each of these limits, for a curve.
    pub fn shares_up_to(&self, limits: &[Span]) -> Vec<f64> {
        let at_most =
            |limit: &Span| self.counts.range(..=limit.as_micros()).map(|(_, count)| count).sum::<u64>();
        limits.iter().map(|limit| at_most(limit) as f64 / self.count.max(1) as f64).collect()
    }

    /// All of it in a few numbers.
    pub fn distribution(&self) -> Distribution {
        let Some((min, max)) = self.extremes else { return Distribution::default() };
        let quantile = |percent| self.quantile(percent).map_or(0.0, Span::as_secs_f64);
        Distribution {
            count: self.count,
            mean: self.sum as f64 / self.count as f64 / 1e6,
            min: min.as_secs_f64(),
            median: quantile(50),
            p90: quantile(90),
            p99: quantile(99),
            max: max.as_secs_f64(),
        }
    }
}

fn rounded(micros: i64) -> i64 {
    let digits = micros.unsigned_abs().checked_ilog10().map_or(0, |log| log + 1);
    match digits.checked_sub(DIGITS) {
        None | Some(0) => micros,
        Some(excess) => {
            let unit = 10i64.pow(excess);
            micros / unit * unit
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn five_numbers_of_a_known_list() {
        let mut spread = Spread::default();
        (1..=200).for_each(|second| spread.add(Span::from_secs(second)));
        let distribution = spread.distribution();
        let expected = Distribution {
            count: 200,
            mean: 100.5,
            min: 1.0,
            median: 100.0,
            p90: 180.0,
            p99: 198.0,
            max: 200.0,
        };
        assert_eq!(distribution, expected);
        assert_eq!(spread.shares_up_to(&[Span::ZERO, Span::from_secs(50), Span::MAX]), [0.0, 0.25, 1.0]);
    }

    #[test]
    fn nothing_has_no_quantiles() {
        assert_eq!(Spread::default().distribution(), Distribution::default());
        assert_eq!(Spread::default().quantile(50), None);
    }

    proptest! {
        #[test]
        fn quantiles_are_those_of_the_sorted_list_to_four_digits(
            mut values in prop::collection::vec(-5_000_000_000i64..5_000_000_000, 1..50),
            percent in 0u64..=100,
        ) {
            let mut spread = Spread::default();
            values.iter().for_each(|&value| spread.add(Span::from_micros(value)));
            values.sort_unstable();
            let rank = (values.len() as u64 * percent).div_ceil(100).max(1);
            let exact = values[rank as usize - 1] as f64;
            let found = spread.quantile(percent).unwrap().as_micros() as f64;
            prop_assert!((found - exact).abs() <= 1e-3 * exact.abs(), "{found} {exact}");
            prop_assert_eq!(spread.distribution().max, values[values.len() - 1] as f64 / 1e6);
        }
    }
}
