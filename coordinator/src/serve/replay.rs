//! A run that has ended, shown again: its events, one after another by a clock that can be stopped, sped up and set.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use outputs::orders::Given;
use scheduler::{Event, Time};
use serde::{Deserialize, Serialize};

use super::Shown;
use super::live::{Live, Phase};
use crate::audit::Audit;

/// How often the picture moves on.
const STEP: Duration = Duration::from_millis(50);
/// How long a run is shown if nobody says otherwise.
const LENGTH_DEFAULT: Duration = Duration::from_secs(60);
/// The fastest and the slowest, in seconds of trace time a second.
const SPEEDS: [f64; 2] = [0.01, 1e9];

/// What a viewer wants.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Go on, or stand still.
    Playing(bool),
    /// Seconds of trace time a second.
    Speed(f64),
    /// Where to go on, from 0 (the first event) to 1 (the last).
    At(f64),
}

/// How a run is shown.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct State {
    playing: bool,
    speed: f64,
    /// From 0 to 1.
    at: f64,
}

impl State {
    /// Whether time goes on.
    pub fn is_playing(self) -> bool {
        self.playing
    }
}

/// The clock of a run that is shown again.
#[derive(Debug)]
pub struct Replay {
    first: Time,
    last: Time,
    clock: Mutex<Clock>,
}

#[derive(Clone, Copy, Debug)]
struct Clock {
    playing: bool,
    speed: f64,
    /// Where it was set, and when on the wall clock.
    from: Time,
    since: Instant,
}

impl Clock {
    fn now(&self, last: Time) -> Time {
        if !self.playing {
            return self.from;
        }
        let passed = self.since.elapsed().as_secs_f64() * self.speed * 1e6;
        let at = self.from.as_micros() as f64 + passed;
        if at >= last.as_micros() as f64 { last } else { Time::from_micros(at as i64) }
    }
}

impl Replay {
    /// For events from the first to the last of these times. It begins to play.
    pub fn new(first: Time, last: Time) -> Replay {
        let span = last.since(first).as_secs_f64();
        let speed = (span / LENGTH_DEFAULT.as_secs_f64()).clamp(1.0, SPEEDS[1]);
        let clock = Clock { playing: true, speed, from: first, since: Instant::now() };
        Replay { first, last, clock: Mutex::new(clock) }
    }

    fn clock(&self) -> MutexGuard<'_, Clock> {
        self.clock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Obeys a viewer.
    ///
    /// # Errors
    /// What is wrong with the order.
    pub fn order(&self, order: Order) -> Result<(), String> {
        let mut clock = self.clock();
        let now = clock.now(self.last);
        (clock.from, clock.since) = (now, Instant::now());
        match order {
            Order::Playing(playing) => {
                // Who plays at the end wants to see it from the beginning.
                if playing && now >= self.last {
                    clock.from = self.first;
                }
                clock.playing = playing;
            }
            Order::Speed(speed) if (SPEEDS[0]..=SPEEDS[1]).contains(&speed) => clock.speed = speed,
            Order::Speed(speed) => {
                return Err(format!("speed {speed}: write {} to {}", SPEEDS[0], SPEEDS[1]));
            }
            Order::At(at) if (0.0..=1.0).contains(&at) => {
                let micros = self.last.since(self.first).as_micros() as f64 * at;
                clock.from = Time::from_micros(self.first.as_micros() + micros as i64);
            }
            Order::At(at) => return Err(format!("at {at}: write a number from 0 to 1")),
        }
        Ok(())
    }

    /// How the run is shown now.
    pub fn state(&self) -> State {
        let clock = self.clock();
        let now = clock.now(self.last);
        let span = self.last.since(self.first).as_micros().max(1) as f64;
        let playing = clock.playing && now < self.last;
        // In thousandths, as the page's slider: who stands still is not told anew.
        let at = (now.since(self.first).as_micros() as f64 / span * 1000.0).round() / 1000.0;
        State { playing, speed: clock.speed, at }
    }

    /// Moves the picture on until told to stop. `new` is the picture before the first event, and who judges them.
    pub fn play(
        &self,
        events: &[Event],
        orders: &[Given],
        shown: &Shown,
        new: impl Fn() -> (Live, Audit),
        stop: impl Fn() -> bool,
    ) {
        let (mut next, mut next_order) = (0, 0);
        let mut reached = self.first;
        let begin = || {
            let (live, audit) = new();
            shown.set_live(live);
            audit
        };
        let mut audit = begin();
        while !stop() {
            let now = self.clock().now(self.last);
            if now < reached {
                // Back: from the beginning on.
                audit = begin();
                (next, next_order) = (0, 0);
            }
            reached = now;
            let until = events[next..].partition_point(|event| event.at <= now) + next;
            let ordered = orders[next_order..].partition_point(|given| given.at <= now) + next_order;
            shown.change(|live| {
                for given in &orders[next_order..ordered] {
                    given.job.iter().for_each(|job| audit.add(job));
                    live.ordered(given);
                }
                for event in &events[next..until] {
                    audit.observe(event);
                    live.observe(event);
                }
                live.judge(audit.failed());
                live.pass(now);
                live.enter(if now >= self.last { Phase::Ended } else { Phase::Running });
            });
            (next, next_order) = (until, ordered);
            std::thread::sleep(STEP);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replay() -> Replay {
        Replay::new(Time::from_secs(100), Time::from_secs(1100))
    }

    #[test]
    fn the_clock_stands_still_and_is_set() {
        let replay = replay();
        replay.order(Order::Playing(false)).unwrap();
        replay.order(Order::At(0.5)).unwrap();
        assert_eq!(replay.state().at, 0.5);
        assert!(!replay.state().playing);
        replay.order(Order::Speed(1e9)).unwrap();
        replay.order(Order::Playing(true)).unwrap();
        std::thread::sleep(Duration::from_millis(2));
        assert_eq!(replay.state(), State { playing: false, speed: 1e9, at: 1.0 }, "at the end nothing moves");
        replay.order(Order::Speed(0.01)).unwrap();
        replay.order(Order::Playing(true)).unwrap();
        assert_eq!(replay.state().at, 0.0, "from the beginning");
    }

    #[test]
    fn orders_without_sense_are_refused() {
        for order in [Order::Speed(0.0), Order::Speed(f64::NAN), Order::At(1.1), Order::At(f64::NAN)] {
            assert!(replay().order(order).is_err(), "{order:?}");
        }
    }
}
