//! Deadlines of one peer, the earliest first. Knows nothing of what they are for.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use scheduler::{Span, Time};

use crate::config::RETRY_FACTOR_MAX;
use crate::rank::Rank;

/// What a deadline belongs to. Of two at one time the lesser fires first.
pub(crate) trait Alarm: Copy + Debug + Ord + Send + Sync + 'static {
    /// Whether something is said again then, because it may have been lost.
    fn repeats(&self) -> bool;
}

/// What every site waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    /// A transfer to the site of this rank is unanswered.
    Transfer(Rank, u64),
    /// Say that this site is there, and look who else is.
    Heartbeat,
}

impl Alarm for Timer {
    fn repeats(&self) -> bool {
        matches!(self, Timer::Transfer(..))
    }
}

/// Of a family that waits for nothing of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Never {}

impl Alarm for Never {
    fn repeats(&self) -> bool {
        match *self {}
    }
}

/// All deadlines that are set, at most one for each alarm.
#[derive(Clone, Debug)]
pub(crate) struct Timers<T> {
    by_time: BTreeSet<(Time, T)>,
    set: BTreeMap<T, Deadline>,
}

#[derive(Clone, Copy, Debug)]
struct Deadline {
    at: Time,
    first_set: Time,
    interval: Span,
    interval_max: Span,
}

impl<T> Default for Timers<T> {
    fn default() -> Timers<T> {
        Timers { by_time: BTreeSet::new(), set: BTreeMap::new() }
    }
}

impl<T: Alarm> Timers<T> {
    /// Sets a timer; it is repeated with doubled intervals by [`Timers::again`].
    pub(crate) fn set(&mut self, timer: T, now: Time, interval: Span) {
        self.cancel(timer);
        let at = now.saturating_add(interval);
        let interval_max = interval.saturating_mul(RETRY_FACTOR_MAX);
        self.by_time.insert((at, timer));
        self.set.insert(timer, Deadline { at, first_set: now, interval, interval_max });
    }

    /// Sets a timer that just fired to fire again after twice its last interval.
    pub(crate) fn again(&mut self, timer: T, now: Time) {
        if let Some(deadline) = self.set.get_mut(&timer) {
            self.by_time.remove(&(deadline.at, timer));
            deadline.interval = deadline.interval.saturating_mul(2).min(deadline.interval_max);
            deadline.at = now.saturating_add(deadline.interval);
            self.by_time.insert((deadline.at, timer));
        }
    }

    pub(crate) fn cancel(&mut self, timer: T) {
        if let Some(deadline) = self.set.remove(&timer) {
            self.by_time.remove(&(deadline.at, timer));
        }
    }

    /// All that are set, in order.
    pub(crate) fn all(&self) -> impl Iterator<Item = T> {
        self.set.keys().copied()
    }

    pub(crate) fn is_set(&self, timer: T) -> bool {
        self.set.contains_key(&timer)
    }

    /// How long ago the timer was first set.
    pub(crate) fn age(&self, timer: T, now: Time) -> Option<Span> {
        self.set.get(&timer).map(|deadline| now.since(deadline.first_set))
    }

    /// The earliest deadline.
    pub(crate) fn next(&self) -> Option<Time> {
        self.by_time.first().map(|&(at, _)| at)
    }

    /// Every timer that is due, and when it was, in order.
    pub(crate) fn due(&self, now: Time) -> Vec<(Time, T)> {
        self.by_time.iter().take_while(|&&(at, _)| at <= now).copied().collect()
    }

    /// Whether a message may have to be repeated.
    pub(crate) fn any_retry(&self) -> bool {
        self.set.keys().any(Alarm::repeats)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_double_up_to_their_limit() {
        let mut timers = Timers::<Timer>::default();
        timers.set(Timer::Heartbeat, Time::ZERO, Span::from_secs(1));
        let mut fired = Vec::new();
        for _ in 0..8 {
            let now = timers.next().expect("it is set");
            assert_eq!(timers.due(now), [(now, Timer::Heartbeat)]);
            fired.push(now.as_micros() / 1_000_000);
            timers.again(Timer::Heartbeat, now);
        }
        assert_eq!(fired, [1, 3, 7, 15, 31, 63, 95, 127]);
        timers.cancel(Timer::Heartbeat);
        assert_eq!(timers.next(), None);
    }
}
