//! What became of requests to the control interface, and whether a coordinator is there.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use super::token::Unauthorised;
use crate::http::Turned;

/// How finely the wait for a coordinator is counted: in so many steps of the patience, none longer than this.
const STEPS: u32 = 10;
const STEP_MAX: Duration = Duration::from_secs(1);

/// What the control interface refused, and how often; and whether anybody with the token still asks.
#[derive(Debug, Default)]
pub(crate) struct ControlCounters {
    no_token: AtomicU64,
    missing: AtomicU64,
    wrong: AtomicU64,
    /// At the door.
    pub(crate) turned: Arc<Turned>,
    asked: AtomicU64,
    silent_ms: AtomicU64,
    armed: AtomicBool,
}

impl ControlCounters {
    /// Reasons of [`ControlCounters::unauthorised`], for metrics.
    pub(crate) const REASONS: [&str; 3] = ["no_token", "missing", "wrong"];

    pub(super) fn refuse(&self, why: Unauthorised) {
        let count = match why {
            Unauthorised::NoToken => &self.no_token,
            Unauthorised::Missing => &self.missing,
            Unauthorised::Wrong => &self.wrong,
        };
        let count = count.fetch_add(1, Ordering::Relaxed) + 1;
        if count.is_power_of_two() {
            tracing::warn!(count, "refused an order: {why}");
        }
    }

    /// A coordinator has ordered something, or asked for what only one may know.
    pub(crate) fn ask(&self) {
        self.asked.fetch_add(1, Ordering::Relaxed);
    }

    /// Resolves when nobody has shown the token for so long, counted anew by each who waits.
    pub(crate) async fn unasked(&self, patience: Duration) {
        loop {
            let before = self.asked.load(Ordering::Relaxed);
            tokio::time::sleep(patience).await;
            if self.asked.load(Ordering::Relaxed) == before {
                return;
            }
        }
    }

    /// The start of the trace clock is ordered.
    pub(crate) fn arm(&self) {
        self.armed.store(true, Ordering::Relaxed);
    }

    /// Whether it is.
    pub(crate) fn is_armed(&self) -> bool {
        self.armed.load(Ordering::Relaxed)
    }

    /// How long nobody has shown the token since somebody did, on the wall clock, as far as
    /// [`ControlCounters::orphaned`] counts.
    pub(crate) fn silent(&self) -> Duration {
        Duration::from_millis(self.silent_ms.load(Ordering::Relaxed))
    }

    /// Counts how long nobody has shown the token, and resolves when that is longer than the patience, if there is one.
    /// The patience begins with the order to start, before which a coordinator may have other things to do. Counts in
    /// steps: a process that was stopped could not be asked.
    pub(crate) async fn orphaned(&self, patience: Option<Duration>) {
        let step = patience.map_or(STEP_MAX, |patience| (patience / STEPS).min(STEP_MAX));
        let (mut asked, mut silent, mut armed) = (0, Duration::ZERO, Duration::ZERO);
        while patience.is_none_or(|patience| armed < patience) {
            tokio::time::sleep(step).await;
            let now = self.asked.load(Ordering::Relaxed);
            let is_silent = now == asked;
            silent = if is_silent && now > 0 { silent + step } else { Duration::ZERO };
            armed = if is_silent && self.is_armed() { armed + step } else { Duration::ZERO };
            asked = now;
            self.silent_ms.store(silent.as_millis() as u64, Ordering::Relaxed);
        }
    }

    /// Orders without the token, by the reasons in order.
    pub(crate) fn unauthorised(&self) -> [u64; 3] {
        [&self.no_token, &self.missing, &self.wrong].map(|count| count.load(Ordering::Relaxed))
    }
}
