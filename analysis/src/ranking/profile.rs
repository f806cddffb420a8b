//! Performance profiles: in what share of the experiments a strategy is within a factor of the best (Dolan and Moré 2002).

use super::{Better, Measured};

/// How a strategy does in all experiments.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// By experiment, ascending: its value over the best one there, 1 or more. Infinite where the best is 0 and it is not.
    ratios: Vec<f64>,
}

impl Profile {
    /// The profile of each strategy.
    pub fn of(metric: &Measured) -> Vec<Profile> {
        let mut ratios = vec![Vec::with_capacity(metric.experiments()); metric.strategies()];
        for experiment in 0..metric.experiments() {
            let values = metric.of_experiment(experiment);
            let best = match metric.better {
                Better::Less => values.iter().copied().fold(f64::INFINITY, f64::min),
                Better::More => values.iter().copied().fold(0.0, f64::max),
            };
            for (row, value) in ratios.iter_mut().zip(values) {
                row.push(match metric.better {
                    _ if value == best => 1.0,
                    Better::Less => value / best,
                    Better::More => best / value,
                });
            }
        }
        ratios.iter_mut().for_each(|row| row.sort_unstable_by(f64::total_cmp));
        ratios.into_iter().map(|ratios| Profile { ratios }).collect()
    }

    /// The share of the experiments in which its value is at most so many times the best, from 0 to 1.
    pub fn share_within(&self, factor: f64) -> f64 {
        let within = self.ratios.partition_point(|ratio| *ratio <= factor);
        within as f64 / self.ratios.len().max(1) as f64
    }

    /// The factors at which the share grows, ascending; the infinite ones are never within.
    pub fn factors(&self) -> &[f64] {
        &self.ratios
    }
}
