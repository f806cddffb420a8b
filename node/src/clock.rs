//! The trace clock of a scaled run: trace time as a function of monotonic time.
//!
//! The wall clock is read once, when the start is ordered, to place the common start instant; a later step of the
//! system's clock changes nothing. Pure: the caller brings both times.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use scheduler::Time;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

/// Largest compression: a millisecond is a quarter of an hour then, and every timer is that coarse.
const FACTOR_MAX: f64 = 1e6;
/// Sleeps are cut to this, far below what a timer can represent.
const SLEEP_MAX: Duration = Duration::from_secs(30 * 24 * 3600);

/// The start of a clock that stands still: when that ends will be ordered.
const SOMETIME: i64 = i64::MAX;

/// When trace time begins to run, and how fast.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StartOrder {
    /// The instant on the wall clock, in microseconds since 1970.
    pub unix_micros: i64,
    /// Seconds of trace time in a second of wall-clock time.
    pub factor: f64,
    /// What trace time is until and at that instant, in microseconds.
    pub trace_origin_us: i64,
}

impl StartOrder {
    /// Trace time at an instant on the system's clock.
    pub fn at(&self, wall: SystemTime) -> Time {
        self.after(unix_micros(wall).saturating_sub(self.unix_micros))
    }

    /// Whether it says that trace time stands still.
    pub fn is_halted(&self) -> bool {
        self.unix_micros == SOMETIME
    }

    /// That trace time stands still at this time, in a run that goes by this factor.
    pub fn halted_at(factor: f64, time: Time) -> StartOrder {
        StartOrder { unix_micros: SOMETIME, factor, trace_origin_us: time.as_micros() }
    }

    /// Trace time so many microseconds on the wall clock after the start: the origin until then.
    fn after(&self, wall_us: i64) -> Time {
        let micros = (wall_us.max(0) as f64 * self.factor) as i64;
        Time::from_micros(self.trace_origin_us.saturating_add(micros))
    }
}

fn unix_micros(wall: SystemTime) -> i64 {
    wall.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as i64)
}

/// Why a start is refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ClockError {
    /// There was a start before.
    #[error("the trace clock was started before; a node serves one run")]
    Started,
    /// Nothing to be stopped.
    #[error("the trace clock does not run; order the start first")]
    Stopped,
    /// An instant that no trace has.
    #[error(
        "the trace time of {0} us would be beyond some 285 years (2^53 us); choose unix_micros near the present and \
         trace_origin_us near the jobs"
    )]
    Bounds(i64),
    /// There is no clock in lockstep.
    #[error("the node runs in lockstep: its time goes by orders")]
    Lockstep,
    /// A factor that no clock can run at.
    #[error("factor {0}: use a number above 0 and up to {FACTOR_MAX}")]
    Factor(f64),
}

#[derive(Clone, Copy, Debug)]
struct Started {
    /// When the order was taken.
    base: Instant,
    /// Microseconds on the wall clock from the start instant to `base`; negative if the start was ahead.
    elapsed_us: i64,
    order: StartOrder,
}

/// The trace clock of one node.
#[derive(Clone, Copy, Debug, Default)]
pub struct TraceClock {
    started: Option<Started>,
}

impl TraceClock {
    /// Takes the order to start, or to go on after it was stopped: never from before the time at which it stands.
    ///
    /// # Errors
    /// If there was one before, or the factor or the instant makes no sense.
    pub fn start(&mut self, order: &StartOrder, wall: SystemTime, now: Instant) -> Result<(), ClockError> {
        if self.started.is_some() && !self.is_halted() {
            return Err(ClockError::Started);
        }
        if !(order.factor > 0.0 && order.factor <= FACTOR_MAX) {
            return Err(ClockError::Factor(order.factor));
        }
        let elapsed_us = unix_micros(wall).saturating_sub(order.unix_micros);
        let started = Started { base: now, elapsed_us, order: *order };
        let origin = Time::from_micros(order.trace_origin_us);
        let first = order.after(elapsed_us);
        if let Some(beyond) = [origin, first].into_iter().find(|time| !protocol::is_time(*time)) {
            return Err(ClockError::Bounds(beyond.as_micros()));
        }
        self.started = Some(started);
        Ok(())
    }

    /// Stops trace time where it is, until another start is ordered: the order by which it stands.
    ///
    /// # Errors
    /// If it does not run.
    pub fn halt(&mut self, now: Instant) -> Result<StartOrder, ClockError> {
        let started = self.started.filter(|_| self.is_running(now)).ok_or(ClockError::Stopped)?;
        let (factor, trace_origin_us) = (started.order.factor, self.at(now).as_micros());
        let order = StartOrder { unix_micros: SOMETIME, factor, trace_origin_us };
        self.started = Some(Started { base: now, elapsed_us: -SOMETIME, order });
        Ok(order)
    }

    /// Whether trace time was stopped and has not gone on.
    pub fn is_halted(&self) -> bool {
        self.started.is_some_and(|started| started.order.is_halted())
    }

    /// Trace time that goes by in a unit of wall-clock time; 1 until a start is ordered.
    pub fn factor(&self) -> f64 {
        self.started.map_or(1.0, |started| started.order.factor)
    }

    /// Whether a start was ordered.
    pub fn is_armed(&self) -> bool {
        self.started.is_some()
    }

    /// Whether trace time advances.
    pub fn is_running(&self, now: Instant) -> bool {
        self.started.is_some_and(|started| started.wall_us(now) >= 0)
    }

    /// Trace time at an instant: the origin until the start, and [`Time::ZERO`] until that is known.
    pub fn at(&self, now: Instant) -> Time {
        self.started.map_or(Time::ZERO, |started| started.order.after(started.wall_us(now)))
    }

    /// The first instant at which trace time is not before `time`; `None` until a start is ordered. Never more than
    /// a month ahead: whoever sleeps until then looks again.
    pub fn instant(&self, time: Time) -> Option<Instant> {
        let started = self.started?;
        let ahead = time.as_micros().saturating_sub(started.order.trace_origin_us).max(0);
        let wall_us = (ahead as f64 / started.order.factor).ceil() - started.elapsed_us as f64;
        let wait = if wall_us <= 0.0 { Duration::ZERO } else { Duration::from_micros(wall_us as u64) };
        let mut instant = started.base + wait.min(SLEEP_MAX);
        if wait < SLEEP_MAX && self.at(instant) < time {
            // Rounding of the division; one microsecond is more than it can be.
            instant += Duration::from_micros(1);
        }
        Some(instant)
    }

    /// How long ago on the wall clock trace time was `time`, zero if it is yet to come; `None` of a time before the order
    /// was taken, when nobody could be late here: another incarnation or nobody had the clock.
    pub fn lateness(&self, time: Time, now: Instant) -> Option<Duration> {
        let taken = self.at(self.started?.base);
        let due = self.instant(time).filter(|_| time >= taken)?;
        Some(now.saturating_duration_since(due))
    }
}

impl Started {
    fn wall_us(&self, now: Instant) -> i64 {
        let since_base = now.saturating_duration_since(self.base).as_micros() as i64;
        self.elapsed_us.saturating_add(since_base)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// A wall clock at second 1000, and a start `ahead_ms` later.
    fn started(ahead_ms: i64, factor: f64, origin: Time) -> (TraceClock, Instant) {
        let mut clock = TraceClock::default();
        let wall = UNIX_EPOCH + Duration::from_secs(1000);
        let unix_micros = 1_000_000_000 + ahead_ms * 1000;
        let now = Instant::now();
        let order = StartOrder { unix_micros, factor, trace_origin_us: origin.as_micros() };
        clock.start(&order, wall, now).unwrap();
        (clock, now)
    }

    #[test]
    fn an_order_and_the_clock_that_took_it_agree_on_the_time() {
        let order = StartOrder { unix_micros: 2_000_000, factor: 500.0, trace_origin_us: 7_000_000 };
        let (wall, now) = (UNIX_EPOCH + Duration::from_secs(1), Instant::now());
        let mut clock = TraceClock::default();
        clock.start(&order, wall, now).unwrap();
        for ms in [0, 999, 1000, 1003, 60_000] {
            let later = Duration::from_millis(ms);
            assert_eq!(order.at(wall + later), clock.at(now + later), "after {ms} ms");
        }
        assert_eq!(order.at(wall + Duration::from_millis(1003)), Time::from_micros(8_500_000));
    }

    #[test]
    fn time_stands_still_until_the_start() {
        let (clock, now) = started(50, 1000.0, Time::from_secs(7));
        let start = now + Duration::from_millis(50);

        assert!(!clock.is_running(now));
        assert_eq!(clock.at(now + Duration::from_millis(49)), Time::from_secs(7));
        assert!(clock.is_running(start));
        assert_eq!(clock.at(start + Duration::from_millis(2)), Time::from_secs(9));
        assert_eq!(clock.instant(Time::from_secs(9)), Some(start + Duration::from_millis(2)));
    }

    #[test]
    fn a_start_that_is_over_has_run_already() {
        let (clock, now) = started(-50, 10.0, Time::ZERO);
        assert_eq!(clock.at(now), Time::from_micros(500_000));
        assert_eq!(clock.instant(Time::ZERO), Some(now));
        assert_eq!(clock.lateness(Time::from_micros(500_000), now + SECOND), Some(SECOND));
        assert_eq!(
            clock.lateness(Time::from_micros(499_999), now + SECOND),
            None,
            "due in another incarnation"
        );
        assert_eq!(clock.lateness(Time::from_secs(100), now + SECOND), Some(Duration::ZERO), "yet to come");
    }

    #[test]
    fn a_start_at_a_time_beyond_all_bounds_is_refused_and_none_is_made() {
        let wall = UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        for (unix_micros, factor, trace_origin_us) in
            [(0, 1.0, i64::MAX), (0, 1.0, i64::MIN), (i64::MIN, 1.0, 0), (0, FACTOR_MAX, 0)]
        {
            let mut clock = TraceClock::default();
            let order = StartOrder { unix_micros, factor, trace_origin_us };
            let error = clock.start(&order, wall, Instant::now()).unwrap_err();
            assert!(error.to_string().contains("choose unix_micros near the present"), "{error}");
            assert!(!clock.is_armed());
        }
    }

    #[test]
    fn without_an_order_nothing_is_ever_due() {
        let clock = TraceClock::default();
        assert_eq!(clock.instant(Time::ZERO), None);
        assert_eq!(clock.at(Instant::now()), Time::ZERO);
    }

    #[test]
    fn a_second_start_and_odd_factors_are_refused() {
        let (mut clock, now) = started(0, 1.0, Time::ZERO);
        let order = StartOrder { unix_micros: 0, factor: 1.0, trace_origin_us: 0 };
        assert_eq!(clock.start(&order, UNIX_EPOCH, now), Err(ClockError::Started));
        for factor in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let order = StartOrder { factor, ..order };
            assert!(matches!(
                TraceClock::default().start(&order, UNIX_EPOCH, now),
                Err(ClockError::Factor(_))
            ));
        }
    }

    #[test]
    fn a_clock_that_is_stopped_goes_on_from_where_it_stood_and_nothing_is_due_meanwhile() {
        let (mut clock, now) = started(0, 1000.0, Time::from_secs(7));
        let stop = now + Duration::from_millis(5);
        assert_eq!(TraceClock::default().halt(now), Err(ClockError::Stopped));

        let order = clock.halt(stop).unwrap();

        let later = stop + Duration::from_secs(3600);
        assert_eq!(order, StartOrder::halted_at(1000.0, Time::from_secs(12)));
        assert!(order.is_halted() && clock.is_halted() && clock.is_armed() && !clock.is_running(later));
        assert_eq!(clock.at(later), Time::from_secs(12));
        assert_eq!(clock.halt(later), Err(ClockError::Stopped), "it stands already");
        assert!(clock.instant(Time::from_secs(12)).unwrap() > later, "what is due waits");
        // Another process that reads the order stands still, too.
        let mut other = TraceClock::default();
        other.start(&order, UNIX_EPOCH + Duration::from_secs(5000), later).unwrap();
        assert_eq!((other.at(later), other.is_running(later)), (Time::from_secs(12), false));

        let wall = UNIX_EPOCH + Duration::from_secs(5000);
        let go_on = StartOrder { unix_micros: 5_000_000_000, factor: 1000.0, trace_origin_us: 12_000_000 };
        clock.start(&go_on, wall, later).unwrap();
        assert_eq!(clock.at(later + Duration::from_millis(2)), Time::from_secs(14));
        assert_eq!(clock.start(&go_on, wall, later), Err(ClockError::Started));
    }

    proptest! {
        /// Sleeping until `instant(time)` is enough, and not a microsecond of wall-clock time too much.
        #[test]
        fn the_instant_of_a_time_is_the_first_at_which_it_is_reached(
            micros in 0i64..10_000_000_000_000, factor in 0.1f64..10_000.0, ahead_ms in -1000i64..1000,
        ) {
            let (clock, now) = started(ahead_ms, factor, Time::ZERO);
            let time = Time::from_micros(micros);
            let instant = clock.instant(time).unwrap();
            prop_assume!(instant < now + SLEEP_MAX);
            prop_assert!(clock.at(instant) >= time);
            let before = instant - Duration::from_micros(2);
            prop_assert!(instant <= now + Duration::from_micros(1) || clock.at(before) < time);
        }
    }
}
