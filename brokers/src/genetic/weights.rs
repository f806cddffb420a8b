//! Ordered weighted averaging: four criteria as one number (§2), exact.
//!
//! Weights are integers over a common denominator, scaled criteria have [`SCALE_BITS`] binary places, rounded down.

use super::individual::{Criteria, Individual};
use super::options::Reading;
use crate::genetic::Aim;

/// Binary places of a scaled criterion: its rounding is far below what a second changes in a batch of any length.
const SCALE_BITS: u32 = 40;

/// The weights of formula 6 for k criteria: w_j = (3k - 2j - 1) / (2k (k - 1)), j from 1, and 1 for k = 1.
///
/// Printed are `i` for j and `n` for k (the number of criteria); with the number of jobs they would not sum to 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Weights {
    numerators: Vec<u64>,
    denominator: u64,
}

impl Weights {
    /// Those of so many criteria.
    ///
    /// # Panics
    /// If there are none.
    pub fn new(criteria: u64) -> Weights {
        assert!(criteria > 0, "weights are of criteria");
        if criteria == 1 {
            return Weights { numerators: vec![1], denominator: 1 };
        }
        let numerators = (1..=criteria).map(|place| 3 * criteria - 2 * place - 1).collect();
        Weights { numerators, denominator: 2 * criteria * (criteria - 1) }
    }

    /// All weights, in parts of [`Weights::denominator`].
    pub fn numerators(&self) -> &[u64] {
        &self.numerators
    }

    /// What they sum to.
    pub fn denominator(&self) -> u64 {
        self.denominator
    }

    /// The weighted mean of scaled criteria, times the denominator.
    fn sum(&self, reading: Reading, mut scaled: Vec<u128>) -> u128 {
        assert_eq!(scaled.len(), self.numerators.len(), "each criterion has a weight");
        match reading {
            Reading::WorstFirst => scaled.sort_unstable_by(|a, b| b.cmp(a)),
            Reading::BestFirst => scaled.sort_unstable(),
            Reading::Fixed => {}
        }
        scaled.iter().zip(&self.numerators).map(|(&scaled, &weight)| scaled * u128::from(weight)).sum()
    }
}

/// What an individual is judged by; less is better. Fitness is its negative, of which only the order counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cost {
    /// Jobs at sites that are too small for them: worse than everything else.
    misfits: u32,
    value: u128,
}

/// What makes costs of criteria: the largest values that they are divided by (formula 7), and how they are put together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scale {
    weights: Weights,
    reading: Reading,
    largest: [u128; 4],
}

impl Scale {
    /// By the largest of these individuals; those that are no schedule count only if there are no others.
    pub fn of(population: &[Individual], reading: Reading) -> Scale {
        let scale = Scale { weights: Weights::new(4), reading, largest: [0; 4] };
        scale.with(population)
    }

    /// The same with more individuals.
    #[must_use]
    pub fn with(mut self, population: &[Individual]) -> Scale {
        let any = population.iter().any(|one| one.criteria().misfits == 0);
        for one in population.iter().filter(|one| !any || one.criteria().misfits == 0) {
            for (largest, value) in self.largest.iter_mut().zip(one.criteria().values()) {
                *largest = value.max(*largest);
            }
        }
        self
    }

    /// The cost of an individual under an aim.
    pub fn cost(&self, aim: Aim, criteria: &Criteria) -> Cost {
        let values = criteria.values();
        let value = match aim {
            Aim::Makespan => values[0],
            Aim::Turnaround => values[1],
            Aim::ResponseRatio => values[2],
            Aim::Wait => values[3],
            Aim::Owa => {
                let scaled = |(&largest, value): (&u128, u128)| (value << SCALE_BITS) / largest.max(1);
                self.weights.sum(self.reading, self.largest.iter().zip(values).map(scaled).collect())
            }
        };
        Cost { misfits: criteria.misfits, value }
    }

    /// The weighted average of an individual as a number, to be shown.
    pub fn average(&self, criteria: &Criteria) -> f64 {
        let cost = self.cost(Aim::Owa, criteria);
        cost.value as f64 / self.weights.denominator as f64 / (1_u64 << SCALE_BITS) as f64
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const READINGS: [Reading; 3] = [Reading::WorstFirst, Reading::BestFirst, Reading::Fixed];

    #[test]
    fn weights_are_those_of_the_formula_sum_to_one_and_descend() {
        for (criteria, numerators, denominator) in [
            (1, vec![1], 1),
            (2, vec![3, 1], 4),
            (3, vec![6, 4, 2], 12),
            (4, vec![9, 7, 5, 3], 24),
            (5, vec![12, 10, 8, 6, 4], 40),
        ] {
            let weights = Weights::new(criteria);
            assert_eq!((weights.numerators(), weights.denominator()), (&numerators[..], denominator));
        }
        for criteria in 2..=10 {
            let weights = Weights::new(criteria);
            assert_eq!(weights.numerators().iter().sum::<u64>(), weights.denominator(), "k = {criteria}");
            assert!(weights.numerators().windows(2).all(|pair| pair[0] > pair[1] && pair[1] > 0));
            // w_1 = 3 / (2k), the first branch of the formula.
            assert_eq!(weights.numerators()[0] * 2 * criteria, 3 * weights.denominator());
        }
    }

    fn averages(reading: Reading, scaled: [f64; 4]) -> f64 {
        let weights = Weights::new(4);
        let fixed = scaled.map(|value| (value * 1e12).round() as u128);
        weights.sum(reading, fixed.to_vec()) as f64 / 1e12 / weights.denominator() as f64
    }

    #[test]
    fn the_readings_of_one_vector_are_those_of_the_worked_example() {
        let found = READINGS.map(|reading| averages(reading, [0.9, 0.5, 0.7, 0.3]));
        for (found, expected) in found.into_iter().zip([0.683_333, 0.516_667, 0.666_667]) {
            assert!((found - expected).abs() < 1e-6, "{found} {expected}");
        }
    }

    fn criteria(makespan: i64, turnaround: i64, response: u128, wait: i64) -> Criteria {
        Criteria { makespan, turnaround, response, wait, misfits: 0, jobs: 1 }
    }

    #[test]
    fn three_individuals_are_scaled_and_ordered_as_in_the_worked_example() {
        let raw = [criteria(120, 60, 4, 40), criteria(100, 80, 5, 60), criteria(110, 64, 8, 44)];
        let expected = [
            (Reading::WorstFirst, [0.795_139, 0.918_403, 0.900_694], [0, 2, 1]),
            (Reading::BestFirst, [0.663_194, 0.810_764, 0.824_306], [0, 1, 2]),
            (Reading::Fixed, [0.781_250, 0.859_375, 0.877_083], [0, 1, 2]),
        ];
        for (reading, values, order) in expected {
            let scale = Scale { weights: Weights::new(4), reading, largest: [120, 80, 8, 60] };
            for (raw, value) in raw.iter().zip(values) {
                assert!((scale.average(raw) - value).abs() < 1e-6, "{reading:?} {}", scale.average(raw));
            }
            let mut found = [0, 1, 2];
            found.sort_by_key(|&place: &usize| scale.cost(Aim::Owa, &raw[place]));
            assert_eq!(found, order, "{reading:?}");
        }
    }

    #[test]
    fn an_aim_is_its_criterion_and_what_is_no_schedule_is_worse_than_all() {
        let scale = Scale { weights: Weights::new(4), reading: Reading::WorstFirst, largest: [9; 4] };
        let (one, other) = (criteria(1, 5, 3, 4), criteria(2, 4, 2, 3));
        let cost = |aim, criteria: &Criteria| scale.cost(aim, criteria);
        assert!(cost(Aim::Makespan, &one) < cost(Aim::Makespan, &other));
        for aim in [Aim::Turnaround, Aim::ResponseRatio, Aim::Wait] {
            assert!(cost(aim, &one) > cost(aim, &other), "{aim:?}");
        }
        let misfit = Criteria { misfits: 1, ..criteria(0, 0, 0, 0) };
        for aim in [Aim::Makespan, Aim::Turnaround, Aim::ResponseRatio, Aim::Wait, Aim::Owa] {
            assert!(cost(aim, &misfit) > cost(aim, &one), "{aim:?}");
        }
    }

    proptest! {
        #[test]
        fn a_criterion_that_grows_makes_no_average_smaller(
            values in prop::array::uniform4(0.0..1.5f64), grows in 0usize..4, by in 0.0..1.0f64,
        ) {
            let mut more = values;
            more[grows] += by;
            for reading in READINGS {
                prop_assert!(averages(reading, more) >= averages(reading, values));
            }
            // The worst first is the largest that an order of the weights gives, and the best first the smallest.
            let [worst, best, fixed] = READINGS.map(|reading| averages(reading, values));
            prop_assert!(worst >= fixed && fixed >= best);
        }

        /// OWA of satisfactions 1 - s in ascending order, as in the work that the operator is from.
        #[test]
        fn the_worst_first_is_one_minus_the_average_of_satisfactions(values in prop::array::uniform4(0.0..1.0f64)) {
            let satisfactions = values.map(|value| 1.0 - value);
            let found = averages(Reading::WorstFirst, values);
            prop_assert!((found - (1.0 - averages(Reading::BestFirst, satisfactions))).abs() < 1e-9);
        }
    }
}
