//! Things that are going to happen, in order.

use std::cmp::Ordering;

use crate::time::Time;

/// Something that is going to happen, such as the end of a job, ordered by time and then as its driver numbers it.
#[derive(Clone, Copy, Debug)]
pub struct Due<K> {
    /// When it happens, or is noticed.
    pub at: Time,
    /// The place among whatever else its driver numbers at one instant.
    pub order: u64,
    /// What it is.
    pub what: K,
}

impl<K> PartialEq for Due<K> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<K> Eq for Due<K> {}

impl<K> PartialOrd for Due<K> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<K> Ord for Due<K> {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}
