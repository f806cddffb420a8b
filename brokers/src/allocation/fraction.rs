//! Sums over counts, compared without rounding.

use std::cmp::Ordering;

/// A quotient of whole numbers, such as a mean. The divisor is positive.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quotient {
    pub(super) sum: i128,
    pub(super) count: i128,
}

impl Quotient {
    pub(super) fn of(sum: i128, count: impl Into<i128>) -> Quotient {
        let count = count.into();
        assert!(count > 0, "a mean of nothing");
        Quotient { sum, count }
    }

    /// Sums are processor-microseconds at most: some 2^90 times a count stays in range.
    pub(super) fn compare(&self, other: &Quotient) -> Ordering {
        (self.sum * other.count).cmp(&(other.sum * self.count))
    }
}
