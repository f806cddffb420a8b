//! Mean and standard deviation of times, from sums that grow with each job and never need the jobs again.
//!
//! Sums are integers, so that they are the same in whatever order jobs came, and as from all jobs anew.

use scheduler::Span;
use scheduler::strategy::opaque::{Deviation, Tolerance};
use serde::{Deserialize, Serialize};

use super::memory::{halves, whole};

/// Longer times count as this, a year and more: squares of 2^36 of them still fit.
const LONGEST: i64 = 1 << 45;
/// Far more jobs than end at a site, and so few that squares of those of several sites fit.
const COUNT_MAX: u64 = 1 << 32;
const MICROS_PER_SECOND: f64 = 1e6;

/// What is kept of the jobs that ended: five numbers, however many there were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sums {
    count: u64,
    /// Σ te, in microseconds.
    #[serde(with = "scheduler::text")]
    execution: i128,
    /// Σ te².
    #[serde(with = "scheduler::text")]
    execution_squares: i128,
    /// Σ tto.
    #[serde(with = "scheduler::text")]
    total: i128,
}

impl Sums {
    /// Counts a job; negative times count as none.
    pub fn add(&mut self, execution: Span, total: Span) {
        let bounded = |span: Span| i128::from(span.as_micros().clamp(0, LONGEST));
        let (execution, total) = (bounded(execution), bounded(total));
        self.count += 1;
        self.execution += execution;
        self.execution_squares += execution * execution;
        self.total += total;
    }

    /// These and those of other jobs.
    #[must_use]
    pub fn with(self, other: Sums) -> Sums {
        Sums {
            count: self.count + other.count,
            execution: self.execution + other.execution,
            execution_squares: self.execution_squares + other.execution_squares,
            total: self.total + other.total,
        }
    }

    /// As words, of which [`Sums::from_words`] makes them again.
    pub(super) fn words(&self) -> [u64; 7] {
        let [[e, f], [s, t], [a, b]] = [self.execution, self.execution_squares, self.total].map(halves);
        [self.count, e, f, s, t, a, b]
    }

    /// None if no jobs have these.
    pub(super) fn from_words([count, e, f, s, t, a, b]: [u64; 7]) -> Option<Sums> {
        let [execution, execution_squares, total] =
            [[e, f], [s, t], [a, b]].map(|[high, low]| whole(high, low));
        let longest = i128::from(LONGEST);
        let up_to = |sum: i128, each: i128| (0..=i128::from(count) * each).contains(&sum);
        let is_sound = count <= COUNT_MAX
            && up_to(execution, longest)
            && up_to(execution_squares, longest * longest)
            && up_to(total, longest);
        is_sound.then_some(Sums { count, execution, execution_squares, total })
    }

    /// Jobs that were counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// tem: the mean execution time in seconds; 0 without a job.
    pub fn execution_mean_s(&self) -> f64 {
        self.mean_s(self.execution)
    }

    /// ttm: the mean total time in seconds; 0 without a job.
    pub fn total_mean_s(&self) -> f64 {
        self.mean_s(self.total)
    }

    fn mean_s(&self, sum: i128) -> f64 {
        if self.count == 0 { 0.0 } else { sum as f64 / self.count as f64 / MICROS_PER_SECOND }
    }

    /// stdtem, in seconds: the standard deviation of execution times, or of their mean. 0 for fewer than two jobs.
    pub fn tolerance_s(&self, deviation: Deviation, of: Tolerance) -> f64 {
        if self.count < 2 {
            return 0.0;
        }
        let count = i128::from(self.count);
        // Around the integer below the mean all terms stay small, and equal times have exactly no deviation.
        let (below, rest) = (self.execution / count, self.execution % count);
        let squares = self.execution_squares - below * (self.execution + rest);
        let rest = rest as f64;
        let squares = (squares as f64 - rest * rest / count as f64).max(0.0);
        let divisor = match deviation {
            Deviation::Sample => count - 1,
            Deviation::Population => count,
        };
        let deviation = (squares / divisor as f64).sqrt() / MICROS_PER_SECOND;
        match of {
            Tolerance::Deviation => deviation,
            Tolerance::StandardError => deviation / (count as f64).sqrt(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sums(times: &[(i64, i64)]) -> Sums {
        let mut sums = Sums::default();
        for &(execution, total) in times {
            sums.add(Span::from_micros(execution), Span::from_micros(total));
        }
        sums
    }

    #[test]
    fn equal_times_have_no_deviation_and_two_have_a_known_one() {
        let third = sums(&[(333_333, 1); 3]);
        assert_eq!(third.tolerance_s(Deviation::Sample, Tolerance::Deviation), 0.0);
        let two = sums(&[(200_000_000, 0), (300_000_000, 0)]);
        let close =
            |found: f64, expected: f64| assert!((found - expected).abs() < 1e-9, "{found} {expected}");
        close(two.tolerance_s(Deviation::Sample, Tolerance::Deviation), 5000_f64.sqrt());
        close(two.tolerance_s(Deviation::Population, Tolerance::Deviation), 50.0);
        close(two.tolerance_s(Deviation::Population, Tolerance::StandardError), 50.0 / 2_f64.sqrt());
        assert_eq!(sums(&[(5, 5)]).tolerance_s(Deviation::Sample, Tolerance::Deviation), 0.0);
        assert_eq!(sums(&[]).execution_mean_s(), 0.0);
    }

    proptest! {
        #[test]
        fn sums_say_what_all_jobs_say(times in proptest::collection::vec((0..LONGEST * 2, 0..LONGEST), 2..60)) {
            let all = sums(&times);
            let mut backwards = times.clone();
            backwards.reverse();
            prop_assert_eq!(&sums(&backwards), &all);
            // Two passes over all jobs, as books define it.
            let seconds: Vec<f64> = times.iter().map(|&(te, _)| te.min(LONGEST) as f64 / 1e6).collect();
            let mean = seconds.iter().sum::<f64>() / seconds.len() as f64;
            let squares: f64 = seconds.iter().map(|te| (te - mean) * (te - mean)).sum();
            let deviation = (squares / (seconds.len() - 1) as f64).sqrt();
            prop_assert!((all.execution_mean_s() - mean).abs() <= 1e-9 * mean.max(1.0));
            let found = all.tolerance_s(Deviation::Sample, Tolerance::Deviation);
            prop_assert!((found - deviation).abs() <= 1e-6 * deviation.max(1.0), "{} {}", found, deviation);
        }
    }
}
