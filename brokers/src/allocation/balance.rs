//! LBal_S: by which site the parallel load of all would deviate least (Quezada Pina 2012, §3.3, Ec. 6).
//!
//! With L_i processors asked for at site i of M_i, m sites, and t more at site q, the square of m times the deviation is
//! m Σ (PL_i)² − (Σ PL_i)². What does not depend on q aside, that is
//!
//! ```text
//! t (2 m L_q + (m − 1) t − 2 S M_q) / M_q²,  S = Σ L_i / M_i
//! ```
//!
//! It is compared in floating point where that decides, and with whole numbers where it does not.

use std::cell::OnceCell;
use std::cmp::Ordering;

use num_bigint::BigInt;

/// Part of the greatest term that rounding cannot reach: 2^-53 for each of up to a million terms is below it.
const ROUNDING: f64 = 1e-9;

/// The parallel load of all sites.
pub(super) struct Balance {
    sites: i128,
    /// (L_i, M_i) of all.
    loads: Vec<(u64, u32)>,
    /// S.
    sum: f64,
    /// S as a quotient of whole numbers.
    exact: OnceCell<(BigInt, BigInt)>,
}

/// A site with the arriving job.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    /// L_q.
    pub(super) load: u64,
    /// M_q.
    pub(super) processors: u32,
    /// t.
    pub(super) more: u64,
}

impl Balance {
    pub(super) fn of(loads: Vec<(u64, u32)>) -> Balance {
        #[expect(clippy::cast_precision_loss, reason = "what rounding may change is compared exactly")]
        let sum = loads.iter().map(|&(load, processors)| load as f64 / f64::from(processors)).sum();
        Balance { sites: loads.len() as i128, loads, sum, exact: OnceCell::new() }
    }

    /// Compares the deviations that two sites would lead to.
    pub(super) fn compare(&self, one: &Candidate, other: &Candidate) -> Ordering {
        if (one.load, one.processors, one.more) == (other.load, other.processors, other.more) {
            return Ordering::Equal;
        }
        let ((left, left_error), (right, right_error)) = (self.rounded(one), self.rounded(other));
        if (left - right).abs() > left_error + right_error {
            return left.total_cmp(&right);
        }
        let (left, right) = (self.scaled(one), self.scaled(other));
        let square = |candidate: &Candidate| BigInt::from(candidate.processors) * candidate.processors;
        (left * square(other)).cmp(&(right * square(one)))
    }

    fn constant(&self, candidate: &Candidate) -> i128 {
        let (load, more) = (i128::from(candidate.load), i128::from(candidate.more));
        2 * self.sites * load + (self.sites - 1) * more
    }

    #[expect(clippy::cast_precision_loss, reason = "what rounding may change is compared exactly")]
    fn rounded(&self, candidate: &Candidate) -> (f64, f64) {
        let processors = f64::from(candidate.processors);
        let more = candidate.more as f64 / processors;
        let one = more * (self.constant(candidate) as f64 / processors);
        let other = more * 2.0 * self.sum;
        (one - other, ROUNDING * (one.abs() + other.abs()))
    }

    /// The value times M_q² and the divisor of S.
    fn scaled(&self, candidate: &Candidate) -> BigInt {
        let (sum, divisor) = self.exact.get_or_init(|| exact_sum(&self.loads));
        let twice = 2 * i128::from(candidate.processors);
        (BigInt::from(self.constant(candidate)) * divisor - sum * twice) * candidate.more
    }
}

/// Σ L_i / M_i as a quotient.
fn exact_sum(loads: &[(u64, u32)]) -> (BigInt, BigInt) {
    let mut by_size: std::collections::BTreeMap<u32, u64> = std::collections::BTreeMap::new();
    for &(load, processors) in loads {
        *by_size.entry(processors).or_default() += load;
    }
    let mut sum = BigInt::ZERO;
    let mut divisor = BigInt::from(1);
    for (processors, load) in by_size {
        sum = sum * processors + &divisor * load;
        divisor *= processors;
    }
    (sum, divisor)
}
