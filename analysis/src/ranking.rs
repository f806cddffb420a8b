//! Which strategy is best by several metrics at once: degradations, their means, and ranks.
//!
//! The method is that of Tsafrir et al. (2007) as Quezada Pina (2012, §4.4) applies it to grids. A strategy degrades a
//! metric by so many percent of the best strategy's value. Degradations are averaged over metrics with equal weights, and
//! over grids; the least mean has rank 1. Metrics whose values differ most between strategies decide such a mean.
//!
//! `profile` shows whole distributions in place of means, `significance` asks whether a difference between two strategies
//! could be chance, and `order` compares two orders of the same strategies. Metrics come from [`crate::metrics`].

mod order;
mod profile;
mod significance;
#[cfg(test)]
mod tests;

pub use order::{kendall, kendall_chance, spearman};
pub use profile::Profile;
pub use significance::chances_against;

use crate::statistics::{Bootstrap, mean};

/// Means that differ by less than this part have the same rank, so that rounding decides nothing.
const SAME: f64 = 1e-9;

/// Which values of a metric are good ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Small ones, as of waits.
    Less,
    /// Great ones, as of utilization.
    More,
}

/// How degradations in several experiments become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aggregate {
    /// The metric is averaged over experiments, then compared with the best average: one strategy has exactly 0.
    RatioOfMeans,
    /// Values are compared with the best in each experiment, then averaged: experiments with small values count as much.
    MeanOfRatios,
}

/// The values of a metric, of each strategy in each experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    better: Better,
    values: Vec<Vec<f64>>,
}

impl Measured {
    /// Values by strategy, then by experiment; all have the same experiments in the same order. None below 0.
    ///
    /// # Panics
    /// If strategies differ in the number of experiments, or a value is negative or not finite.
    pub fn new(better: Better, values: Vec<Vec<f64>>) -> Measured {
        let experiments = values.first().map_or(0, Vec::len);
        assert!(values.iter().all(|row| row.len() == experiments), "every strategy has every experiment");
        let is_amount = |value: &f64| value.is_finite() && *value >= 0.0;
        assert!(values.iter().flatten().all(is_amount), "metrics are finite and not negative");
        Measured { better, values }
    }

    /// How many strategies there are.
    pub fn strategies(&self) -> usize {
        self.values.len()
    }

    /// How many experiments there are.
    pub fn experiments(&self) -> usize {
        self.values.first().map_or(0, Vec::len)
    }

    /// The mean of each strategy over experiments.
    pub fn means(&self) -> Vec<f64> {
        self.values.iter().filter_map(|row| mean(row)).collect()
    }

    /// The values of all strategies in one experiment.
    fn of_experiment(&self, experiment: usize) -> Vec<f64> {
        self.values.iter().map(|row| row[experiment]).collect()
    }

    /// The degradation of each strategy, in percent. Empty without experiments.
    pub fn degradations(&self, how: Aggregate) -> Vec<f64> {
        let all: Vec<usize> = (0..self.experiments()).collect();
        self.degradations_in(how, &all)
    }

    /// The same over some experiments, of which one may be there several times.
    fn degradations_in(&self, how: Aggregate, experiments: &[usize]) -> Vec<f64> {
        if experiments.is_empty() {
            return Vec::new();
        }
        let n = experiments.len() as f64;
        match how {
            Aggregate::RatioOfMeans => {
                let mean = |row: &Vec<f64>| experiments.iter().map(|&place| row[place]).sum::<f64>() / n;
                degradations(&self.values.iter().map(mean).collect::<Vec<_>>(), self.better)
            }
            Aggregate::MeanOfRatios => {
                let mut sums = vec![0.0; self.strategies()];
                for &experiment in experiments {
                    let parts = degradations(&self.of_experiment(experiment), self.better);
                    sums.iter_mut().zip(parts).for_each(|(sum, part)| *sum += part);
                }
                sums.into_iter().map(|sum| sum / n).collect()
            }
        }
    }
}

/// How many percent each value is worse than the best: 100 (value / best - 1), and of what is better the more of it there
/// is 100 (1 - value / best), at most 100 (Quezada Pina 2012, §4.4; the second is how table 10 prints U and Th). Infinite if
/// the best of what should be little is 0 and the value is not.
pub fn degradations(values: &[f64], better: Better) -> Vec<f64> {
    let best = values.iter().copied().fold(None, |best: Option<f64>, value| {
        Some(best.map_or(value, |best| match better {
            Better::Less => best.min(value),
            Better::More => best.max(value),
        }))
    });
    let Some(best) = best else { return Vec::new() };
    let of = |&value: &f64| match better {
        _ if value == best => 0.0,
        Better::Less => 100.0 * value / best - 100.0,
        Better::More => 100.0 - 100.0 * value / best,
    };
    values.iter().map(of).collect()
}

/// The mean degradation of each strategy over metrics, or over grids, with equal weights.
///
/// # Panics
/// If the rows have different lengths.
pub fn mean_degradations(rows: &[Vec<f64>]) -> Vec<f64> {
    let strategies = rows.first().map_or(0, Vec::len);
    assert!(rows.iter().all(|row| row.len() == strategies), "every row has every strategy");
    let of = |strategy: usize| mean(&rows.iter().map(|row| row[strategy]).collect::<Vec<_>>());
    (0..strategies).filter_map(of).collect()
}

/// The rank of each value, 1 for the least; equal ones share the best rank that they take.
pub fn ranks(values: &[f64]) -> Vec<usize> {
    let is_less = |other: f64, value: f64| other < value - SAME * value.abs().clamp(1.0, f64::MAX);
    values.iter().map(|&value| 1 + values.iter().filter(|&&other| is_less(other, value)).count()).collect()
}

/// By how much each strategy improves on its twin, in percent: 100 (1 - value / before) (Quezada Pina 2012, table 5). What
/// is better the more of it there is improves by 100 (value / before - 1). Infinite or not a number where `before` is 0.
pub fn improvement(value: f64, before: f64, better: Better) -> f64 {
    match better {
        Better::Less => 100.0 * (1.0 - value / before),
        Better::More => 100.0 * (value / before - 1.0),
    }
}

/// Strategies in order, by some metrics over the same experiments.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranking {
    /// By metric, then strategy: degradations in percent, as ratios of means.
    pub degradations: Vec<Vec<f64>>,
    /// By strategy: their mean over metrics.
    pub means: Vec<f64>,
    /// The ranks of those.
    pub ranks: Vec<usize>,
    /// The mean over metrics of means of ratios.
    pub means_of_ratios: Vec<f64>,
    /// The ranks of those.
    pub ranks_of_ratios: Vec<usize>,
    /// By strategy, then experiment: the rank by the mean degradation in that experiment alone.
    pub ranks_in: Vec<Vec<usize>>,
    /// By strategy: the chance that its mean degradation is that of the best one, corrected for how many are compared with
    /// it. `None` of the best itself.
    pub chances: Vec<Option<f64>>,
}

impl Ranking {
    /// Ranks strategies. The seed and the number of draws are for the chances.
    ///
    /// # Panics
    /// If metrics differ in strategies or experiments, or there is none of any.
    pub fn of(metrics: &[Measured], bootstrap: &Bootstrap) -> Ranking {
        let first = metrics.first().expect("callers rank by some metric");
        let (strategies, experiments) = (first.strategies(), first.experiments());
        assert!(strategies > 0 && experiments > 0, "there is nothing to rank");
        let same = |other: &Measured| (other.strategies(), other.experiments()) == (strategies, experiments);
        assert!(metrics.iter().all(same), "metrics are of the same runs");
        let of = |how| metrics.iter().map(|metric| metric.degradations(how)).collect::<Vec<_>>();
        let degradations = of(Aggregate::RatioOfMeans);
        let means = mean_degradations(&degradations);
        let means_of_ratios = mean_degradations(&of(Aggregate::MeanOfRatios));
        let mut ranks_in = vec![Vec::with_capacity(experiments); strategies];
        for experiment in 0..experiments {
            let here = |metric: &Measured| metric.degradations_in(Aggregate::RatioOfMeans, &[experiment]);
            let found = ranks(&mean_degradations(&metrics.iter().map(here).collect::<Vec<_>>()));
            ranks_in.iter_mut().zip(found).for_each(|(row, rank)| row.push(rank));
        }
        let best = (0..strategies).min_by(|&a, &b| means[a].total_cmp(&means[b])).expect("there is one");
        Ranking {
            ranks: ranks(&means),
            ranks_of_ratios: ranks(&means_of_ratios),
            chances: chances_against(metrics, best, bootstrap),
            degradations,
            means,
            means_of_ratios,
            ranks_in,
        }
    }
}
