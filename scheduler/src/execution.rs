//! When a job that executes ends: decided here, for every driver.
//!
//! A driver starts jobs, asks when the next one ends, and takes what has ended. A job ends its run time after its start,
//! whatever else executes. The run time is what the driver says: references scale it by the speed of a site.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use crate::{Span, Time};

/// Jobs that execute, at one site or at many, each under a key by which its driver knows it.
#[derive(Clone, Debug)]
pub struct Execution<K> {
    ends: BinaryHeap<Reverse<Due<K>>>,
}

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

/// How long something executes at this speed, in percent of the reference machine, that takes so long on that one. Rounded
/// up; a speed of 0 counts as 1.
pub fn at_speed(span: Span, percent: u32) -> Span {
    let percent = i128::from(percent.max(1));
    let micros = i128::from(span.as_micros()) * 100;
    let up = i128::from(micros.rem_euclid(percent) > 0);
    Span::from_micros(i64::try_from(micros.div_euclid(percent) + up).unwrap_or(i64::MAX))
}

impl<K> Default for Execution<K> {
    fn default() -> Self {
        Execution { ends: BinaryHeap::new() }
    }
}

impl<K> Execution<K> {
    /// A job begins to execute. Of jobs that end at one instant the one with the lower `order` ends first.
    pub fn start(&mut self, now: Time, run_time: Span, order: u64, key: K) {
        self.start_noticed(now, run_time, order, key, |_| Span::ZERO);
    }

    /// As [`Execution::start`], at a site that notices an end so much late.
    pub fn start_noticed(
        &mut self,
        now: Time,
        run_time: Span,
        order: u64,
        key: K,
        late: impl FnOnce(Time) -> Span,
    ) {
        let end = now.saturating_add(run_time);
        self.ends.push(Reverse(Due { at: end.saturating_add(late(end)), order, what: key }));
    }

    /// The job that ends next, as things are.
    pub fn next(&self) -> Option<&Due<K>> {
        self.ends.peek().map(|Reverse(end)| end)
    }

    /// When a job ends next.
    pub fn next_end(&self) -> Option<Time> {
        self.next().map(|end| end.at)
    }

    /// A job that has ended by now.
    pub fn pop_due(&mut self, now: Time) -> Option<Due<K>> {
        self.next_end().filter(|&at| at <= now)?;
        self.ends.pop().map(|Reverse(end)| end)
    }

    /// How many jobs execute.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether none does.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_a_second_takes_more_where_it_is_slow() {
        let at = |percent| at_speed(Span::from_secs(1), percent).as_micros();
        assert_eq!([at(100), at(50), at(200), at(300)], [1_000_000, 2_000_000, 500_000, 333_334]);
        assert_eq!(at_speed(Span::MAX, 1), Span::MAX);
        assert_eq!(at_speed(Span::ZERO, 0), Span::ZERO);
    }

    #[test]
    fn jobs_end_after_their_run_time_in_order() {
        let mut execution = Execution::default();
        let at = Time::from_secs(100);
        for (order, (job, seconds)) in [(1, 10), (2, 5), (3, 5), (4, 0)].into_iter().enumerate() {
            execution.start(at, Span::from_secs(seconds), order as u64, job);
        }
        execution.start_noticed(at, Span::from_secs(4), 9, 5, |end| end.since(at));
        assert_eq!((execution.next_end(), execution.len()), (Some(at), 5));
        let mut ended = Vec::new();
        for second in 100..=110 {
            while let Some(end) = execution.pop_due(Time::from_secs(second)) {
                assert_eq!(end.at, Time::from_secs(second));
                ended.push(end.what);
            }
        }
        assert_eq!(ended, [4, 2, 3, 5, 1]);
        assert!(execution.is_empty());
    }
}
