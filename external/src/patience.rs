//! Waiting for what nobody tells of.

use std::time::{Duration, Instant};

/// The first thing that a look finds before the deadline; one is taken in any case.
pub(crate) fn look_until<T>(deadline: Instant, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let mut pause = Duration::from_millis(1);
    loop {
        let found = look();
        if found.is_some() || Instant::now() >= deadline {
            return found;
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}
