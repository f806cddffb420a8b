//! Deadlines of one peer, the earliest first. Knows nothing of what they are for.

use std::collections::{BTreeMap, BTreeSet};

use scheduler::{Span, Time};

use crate::config::RETRY_FACTOR_MAX;

/// What a deadline belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    /// A request to the victim of this rank is unanswered.
    Request(usize),
    /// A notice to the thief of this rank was not seen.
    Notice(usize),
    /// A transfer to the site of this rank is unanswered.
    Transfer(usize, u64),
    /// The sleep between two rounds of polling.
    Poll,
    /// Serve standing requests, once nothing else happens at this instant.
    Serve,
    /// A claim to an offered job is unanswered.
    Claim(u64),
    /// Repeat the board, as long as something waits in the global queue.
    Refresh,
    /// What the site of this rank was asked to watch for has not come.
    Watch(usize),
    /// Pass on what changed.
    Gossip,
    /// Say that this site is there, and look who else is.
    Beat,
}

/// All deadlines that are set, at most one per [`Timer`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Timers {
    by_time: BTreeSet<(Time, Timer)>,
    set: BTreeMap<Timer, Deadline>,
}

#[derive(Clone, Copy, Debug)]
struct Deadline {
    at: Time,
    first_set: Time,
    interval: Span,
    interval_max: Span,
}

impl Timers {
    /// Sets a timer; it is repeated with doubled intervals by [`Timers::again`].
    pub(crate) fn set(&mut self, timer: Timer, now: Time, interval: Span) {
        self.cancel(timer);
        let at = now.saturating_add(interval);
        let interval_max = interval.saturating_mul(RETRY_FACTOR_MAX);
        self.by_time.insert((at, timer));
        self.set.insert(timer, Deadline { at, first_set: now, interval, interval_max });
    }

    /// Sets a timer that just fired to fire again after twice its last interval.
    pub(crate) fn again(&mut self, timer: Timer, now: Time) {
        if let Some(deadline) = self.set.get_mut(&timer) {
            self.by_time.remove(&(deadline.at, timer));
            deadline.interval = deadline.interval.saturating_mul(2).min(deadline.interval_max);
            deadline.at = now.saturating_add(deadline.interval);
            self.by_time.insert((deadline.at, timer));
        }
    }

    pub(crate) fn cancel(&mut self, timer: Timer) {
        if let Some(deadline) = self.set.remove(&timer) {
            self.by_time.remove(&(deadline.at, timer));
        }
    }

    pub(crate) fn is_set(&self, timer: Timer) -> bool {
        self.set.contains_key(&timer)
    }

    /// How long ago the timer was first set.
    pub(crate) fn age(&self, timer: Timer, now: Time) -> Option<Span> {
        self.set.get(&timer).map(|deadline| now.since(deadline.first_set))
    }

    /// The earliest deadline.
    pub(crate) fn next(&self) -> Option<Time> {
        self.by_time.first().map(|&(at, _)| at)
    }

    /// Every timer that is due, in order.
    pub(crate) fn due(&self, now: Time) -> Vec<Timer> {
        self.by_time.iter().take_while(|&&(at, _)| at <= now).map(|&(_, timer)| timer).collect()
    }

    /// Whether a message may have to be repeated.
    pub(crate) fn any_retry(&self) -> bool {
        self.set.keys().any(|timer| !matches!(timer, Timer::Poll | Timer::Serve | Timer::Beat))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_double_up_to_their_limit() {
        let mut timers = Timers::default();
        timers.set(Timer::Poll, Time::ZERO, Span::from_secs(1));
        let mut fired = Vec::new();
        for _ in 0..8 {
            let now = timers.next().expect("it is set");
            assert_eq!(timers.due(now), [Timer::Poll]);
            fired.push(now.as_micros() / 1_000_000);
            timers.again(Timer::Poll, now);
        }
        assert_eq!(fired, [1, 3, 7, 15, 31, 63, 95, 127]);
        timers.cancel(Timer::Poll);
        assert_eq!(timers.next(), None);
    }
}
