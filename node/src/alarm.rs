//! A timer that is precise to some ten microseconds.
//!
//! Tokio's timers tick in milliseconds, and a trace clock that runs a thousand times faster makes a second of trace
//! time out of each. On Linux a timer descriptor does better; elsewhere tokio's timer has to do.

use std::io;

#[cfg(target_os = "linux")]
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
#[cfg(target_os = "linux")]
use tokio::io::unix::AsyncFd;
use tokio::time::Instant;

/// One timer, for one sleeper at a time.
pub(crate) struct Alarm {
    #[cfg(target_os = "linux")]
    timer: AsyncFd<rustix::fd::OwnedFd>,
}

#[cfg(target_os = "linux")]
impl Alarm {
    /// Makes the timer. Call it inside a runtime.
    pub(crate) fn new() -> io::Result<Alarm> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        #[expect(unsafe_code, reason = "tokio has no safe way to wait for a descriptor")]
        // SAFETY: an `OwnedFd` is open, is nobody else's, and stays the same until the `AsyncFd` that owns it from
        // here on is dropped.
        let timer = unsafe { AsyncFd::register(timer) }?;
        Ok(Alarm { timer })
    }

    /// Sleeps until then, or forever. Can be cancelled at any time.
    pub(crate) async fn until(&self, instant: Option<Instant>) -> io::Result<()> {
        let Some(instant) = instant else { return std::future::pending().await };
        let wait = instant.saturating_duration_since(Instant::now());
        if wait.is_zero() {
            return Ok(());
        }
        let seconds = i64::try_from(wait.as_secs()).unwrap_or(i64::MAX);
        let it_value = Timespec { tv_sec: seconds, tv_nsec: wait.subsec_nanos().into() };
        let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
        timerfd_settime(
            self.timer.get_ref(),
            TimerfdTimerFlags::empty(),
            &Itimerspec { it_interval, it_value },
        )?;
        loop {
            let mut ready = self.timer.readable().await?;
            let mut expirations = [0; 8];
            match ready.try_io(|timer| Ok(rustix::io::read(timer.get_ref(), &mut expirations)?)) {
                Ok(read) => return read.map(drop),
                // Readiness was left over from a sleep that was cancelled; setting the timer reset it.
                Err(_would_block) => {}
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
impl Alarm {
    /// Makes the timer.
    pub(crate) fn new() -> io::Result<Alarm> {
        Ok(Alarm {})
    }

    /// Sleeps until then, or forever. Can be cancelled at any time.
    pub(crate) async fn until(&self, instant: Option<Instant>) -> io::Result<()> {
        match instant {
            Some(instant) => Ok(tokio::time::sleep_until(instant).await),
            None => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn it_rings_not_before_its_time_and_again_after_a_cancelled_sleep() {
        let alarm = Alarm::new().unwrap();
        for _ in 0..3 {
            let soon = Instant::now() + Duration::from_millis(1);
            alarm.until(Some(soon)).await.unwrap();
            assert!(Instant::now() >= soon);

            let later = Instant::now() + Duration::from_millis(1);
            tokio::select! {
                biased;
                result = alarm.until(Some(later)) => panic!("it rang at once: {result:?}"),
                () = std::future::ready(()) => {}
            }
            // The cancelled one goes off now, and must not be taken for the next.
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    #[tokio::test]
    async fn a_time_that_is_over_does_not_sleep_and_none_sleeps_forever() {
        let alarm = Alarm::new().unwrap();
        alarm.until(Some(Instant::now())).await.unwrap();
        let forever = tokio::time::timeout(Duration::from_millis(5), alarm.until(None)).await;
        assert!(forever.is_err());
    }
}
