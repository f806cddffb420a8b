//! How long a broker that plans may search, on the wall clock: a node that searches answers nobody meanwhile.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use brokers::allocation::Patience;

/// The limit of one node.
#[derive(Debug)]
pub(crate) struct PlanLimit {
    limit: Duration,
    is_lifted: AtomicBool,
    /// When the decision began that is under way, or was the last.
    begun: Mutex<Option<Instant>>,
    hits: AtomicU64,
}

impl PlanLimit {
    pub(crate) fn new(limit: Duration) -> PlanLimit {
        PlanLimit {
            limit,
            is_lifted: AtomicBool::new(false),
            begun: Mutex::new(None),
            hits: AtomicU64::new(0),
        }
    }

    /// From now on decisions take as long as they want to: where the clock is the coordinator's the same seed makes the same
    /// plans, however slow the machine is.
    pub(crate) fn lift(&self) {
        self.is_lifted.store(true, Ordering::Relaxed);
    }

    /// Decisions that ended early.
    pub(crate) fn hits(&self) -> u64 {
        self.hits.load(Ordering::Relaxed)
    }
}

impl Patience for PlanLimit {
    fn begins(&self) {
        *self.begun.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    fn is_over(&self) -> bool {
        let begun = *self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        let is_over = !self.is_lifted.load(Ordering::Relaxed)
            && begun.is_some_and(|begun| begun.elapsed() >= self.limit);
        if is_over {
            self.hits.fetch_add(1, Ordering::Relaxed);
        }
        is_over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_too_long_is_counted_until_the_limit_is_lifted() {
        let none = PlanLimit::new(Duration::ZERO);
        assert!(!none.is_over(), "nothing has begun");
        none.begins();
        assert!(none.is_over());
        assert_eq!(none.hits(), 1);
        none.lift();
        assert!(!none.is_over());
        assert_eq!(none.hits(), 1);

        let ample = PlanLimit::new(Duration::from_secs(3600));
        ample.begins();
        assert!(!ample.is_over());
        assert_eq!(ample.hits(), 0);
    }
}
