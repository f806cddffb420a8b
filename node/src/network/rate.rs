//! How many messages a second: a token bucket, kept as the instant at which it will be full again.

use std::time::Duration;

use tokio::time::Instant;

/// The bucket of one peer. It holds the messages of one second, and fills within one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rate {
    every: Duration,
    full_at: Instant,
}

/// How long a full bucket lasts at the allowed rate.
const BURST: Duration = Duration::from_secs(1);

impl Rate {
    /// A full bucket for so many messages a second.
    pub(super) fn new(per_second: u32, now: Instant) -> Rate {
        Rate { every: Duration::from_secs(1) / per_second.max(1), full_at: now }
    }

    /// Counts a message; how long to wait if that was one too many.
    pub(super) fn take(&mut self, now: Instant) -> Option<Duration> {
        self.full_at = self.full_at.max(now) + self.every;
        let debt = self.full_at.duration_since(now);
        debt.checked_sub(BURST).filter(|wait| *wait > Duration::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_of_messages_may_come_at_once_and_then_as_many_a_second() {
        let start = Instant::now();
        let mut rate = Rate::new(100, start);
        assert!((0..100).all(|_| rate.take(start).is_none()));
        assert_eq!(rate.take(start), Some(Duration::from_millis(10)));

        // Half a second later half of the bucket is there again, less the message beyond it.
        let later = start + Duration::from_millis(500);
        assert_eq!((0..100).filter(|_| rate.take(later).is_none()).count(), 49);
    }

    #[test]
    fn a_quiet_peer_saves_no_more_than_a_second() {
        let start = Instant::now();
        let mut rate = Rate::new(10, start);
        let later = start + Duration::from_secs(1000);
        assert_eq!((0..100).filter(|_| rate.take(later).is_none()).count(), 10);
    }
}
