//! The one-way delays of the messages that arrived from one site, in constant space.

use std::collections::BTreeMap;

use scheduler::Span;

use crate::control::api::MeasuredDelay;

/// Buckets for each power of two, as a power of two: 2^5 make a bucket 3 % wide, so that its middle is wrong by
/// less than 2 %.
const BUCKET_BITS: u32 = 5;

/// What arrived from one site.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    count: u64,
    total: Span,
    /// What of it was injected.
    injected: Span,
    /// The least that came on top of what was injected.
    added_min: Span,
    /// The most that came on top of what was injected.
    added_max: Span,
    min: Span,
    max: Span,
    /// Number of the latest frame.
    sequence: u64,
    overtaken: u64,
    /// Messages by the least delay of their bucket, in microseconds.
    buckets: BTreeMap<u64, u64>,
}

impl Measured {
    /// Adds the delay of the frame with this number, so much of it injected.
    pub fn add(&mut self, delay: Span, injected: Span, sequence: u64) {
        let added = delay - injected;
        if self.count == 0 {
            (self.min, self.max, self.added_min, self.added_max) = (delay, delay, added, added);
        }
        self.count += 1;
        self.total += delay;
        self.injected += injected;
        self.added_min = self.added_min.min(added);
        self.added_max = self.added_max.max(added);
        self.min = self.min.min(delay);
        self.max = self.max.max(delay);
        // Clocks of two machines can differ by more than the delay.
        *self.buckets.entry(bucket(delay.as_micros().max(0) as u64).0).or_default() += 1;
        if sequence < self.sequence {
            self.overtaken += 1;
        }
        self.sequence = self.sequence.max(sequence);
    }

    /// The mean so far.
    pub fn mean(&self) -> Span {
        self.per_message(self.total)
    }

    /// What of the mean was injected.
    pub fn injected_mean(&self) -> Span {
        self.per_message(self.injected)
    }

    fn per_message(&self, sum: Span) -> Span {
        Span::from_micros(sum.as_micros() / i64::try_from(self.count.max(1)).unwrap_or(i64::MAX))
    }

    /// All of it.
    pub fn report(&self) -> MeasuredDelay {
        MeasuredDelay {
            count: self.count,
            mean_us: self.mean().as_micros(),
            injected_mean_us: self.injected_mean().as_micros(),
            added_min_us: self.added_min.as_micros(),
            added_max_us: self.added_max.as_micros(),
            median_us: self.median(),
            min_us: self.min.as_micros(),
            max_us: self.max.as_micros(),
            overtaken: self.overtaken,
        }
    }

    fn median(&self) -> i64 {
        let mut before = 0;
        for (least, count) in &self.buckets {
            before += count;
            if 2 * before >= self.count {
                let (least, width) = bucket(*least);
                let middle = i64::try_from(least + width / 2).unwrap_or(i64::MAX);
                return middle.clamp(self.min.as_micros(), self.max.as_micros());
            }
        }
        0
    }
}

/// The least value of a value's bucket, and how many values it has.
fn bucket(value: u64) -> (u64, u64) {
    let bits = u64::BITS - value.leading_zeros();
    let width = 1 << bits.saturating_sub(BUCKET_BITS + 1);
    (value / width * width, width)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn nothing_measured_is_all_zero() {
        assert_eq!(Measured::default().report().median_us, 0);
    }

    #[test]
    fn frames_that_come_after_a_later_one_are_counted() {
        let mut measured = Measured::default();
        for sequence in [1, 3, 2, 4] {
            measured.add(Span::from_micros(7), Span::from_micros(4), sequence);
        }
        assert_eq!((measured.report().count, measured.report().overtaken), (4, 1));
        assert_eq!((measured.report().injected_mean_us, measured.report().added_min_us), (4, 3));
    }

    proptest! {
        #[test]
        fn the_median_is_that_of_a_sorted_list_to_two_percent(
            delays in prop::collection::vec(prop_oneof![0i64..100, 0i64..1_000_000_000_000], 1..200),
        ) {
            let mut measured = Measured::default();
            for delay in &delays {
                measured.add(Span::from_micros(*delay), Span::ZERO, 0);
            }
            let mut sorted = delays;
            sorted.sort_unstable();
            let exact = sorted[(sorted.len() - 1) / 2];
            let report = measured.report();
            prop_assert!((report.median_us - exact).abs() * 50 <= exact, "{} for {exact}", report.median_us);
            prop_assert_eq!((report.min_us, report.max_us), (sorted[0], sorted[sorted.len() - 1]));
        }
    }
}
