//! Real load on one processor of this machine: threads that compute, and one that does so now and then as a local user would.
//!
//! What each of them had of the processor is what the kernel counted of it alone, and time is what all of them had of it together, so that
//! other programs on the same processor make a measurement longer and not another one.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, Timespec, clock_gettime};

/// Steps of a unit of computing: some twenty microseconds, between two looks at the clock. Arbitrary, long enough that looking costs
/// nothing.
const UNIT: u32 = 20_000;
/// How often a local user calls: a person at a window system wants something fifty times a second at most. Arbitrary, shorter than
/// anybody notices and several times as long as the kernel lets one run.
pub(super) const PERIOD: Duration = Duration::from_millis(20);

/// A user who waits looks at the clock again so soon at the most. Arbitrary, far below [`PERIOD`], and seldom enough to cost nothing.
const NAP: Duration = Duration::from_micros(100);

/// What one thread did.
#[derive(Clone, Copy, Debug)]
pub(super) struct Done {
    /// Units that it computed.
    pub units: u64,
    /// How long it had the processor.
    pub ran: Duration,
    /// How long it was there.
    pub wall: Duration,
}

/// A call of a local user.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    /// From when it was to begin to its end, in time that all of us had the processor.
    pub latency: Duration,
    /// What of that it computed itself.
    pub ran: Duration,
}

/// What happened on a processor for a while.
#[derive(Clone, Debug)]
pub(super) struct Observed {
    /// Of each task.
    pub tasks: Vec<Done>,
    /// Of the local user, if there was one, with its calls.
    pub user: Option<(Done, Vec<Call>)>,
}

impl Observed {
    /// How long all of us had the processor.
    pub(super) fn ran(&self) -> Duration {
        let user = self.user.iter().map(|(done, _)| done.ran);
        self.tasks.iter().map(|done| done.ran).chain(user).sum()
    }

    /// The part of the time in which other programs had the processor: tasks never leave it idle.
    pub(super) fn foreign(&self) -> f64 {
        let wall = self.tasks.iter().map(|done| done.wall).max().unwrap_or_default().as_secs_f64();
        (1.0 - self.ran().as_secs_f64() / wall).clamp(0.0, 1.0)
    }
}

/// How long each of us has had the processor, as each says after each unit: a clock that stands still while other programs have it.
struct Clock(Vec<AtomicU64>);

impl Clock {
    fn set(&self, place: usize, ran: Duration) {
        let nanos = u64::try_from(ran.as_nanos()).unwrap_or(u64::MAX);
        self.0[place].store(nanos, Ordering::Relaxed);
    }

    fn now(&self) -> Duration {
        Duration::from_nanos(self.0.iter().map(|ran| ran.load(Ordering::Relaxed)).sum())
    }
}

/// One thread's part in it.
#[derive(Clone, Copy)]
struct Part<'a> {
    processor: usize,
    barrier: &'a Barrier,
    window: Duration,
    clock: &'a Clock,
    /// Its place on the clock.
    place: usize,
}

/// So many tasks, at least one, that compute as fast as they can, and a local user whose calls take so many units each, all on one
/// processor for so long. The user calls once in each [`PERIOD`] in which we have the processor: what other programs have of it is no time.
///
/// # Errors
/// If this process may not use such a processor.
pub(super) fn observe(
    processor: usize,
    tasks: u32,
    user: Option<u64>,
    window: Duration,
) -> anyhow::Result<Observed> {
    let threads = tasks as usize + usize::from(user.is_some());
    let barrier = &Barrier::new(threads);
    let clock = &Clock((0..threads).map(|_| AtomicU64::new(0)).collect());
    let part = |place| Part { processor, barrier, window, clock, place };
    std::thread::scope(|scope| {
        let tasks: Vec<_> =
            (0..tasks as usize).map(|place| scope.spawn(move || part(place).compute())).collect();
        let user = user.map(|units| scope.spawn(move || part(threads - 1).call(units)));
        let join = "threads that measure do not panic";
        let tasks: Vec<_> = tasks.into_iter().map(|task| task.join().expect(join)).collect();
        let user = user.map(|user| user.join().expect(join)).transpose()?;
        Ok(Observed { tasks: tasks.into_iter().collect::<Result<_, _>>()?, user })
    })
}

impl Part<'_> {
    /// Stays on the processor, and begins when all are there.
    fn begin(&self) -> anyhow::Result<(Instant, Duration)> {
        let mut only = CpuSet::new();
        if self.processor < CpuSet::MAX_CPU {
            only.set(self.processor);
        }
        let pinned = sched_setaffinity(None, &only);
        // All wait for each other, also those who fail.
        self.barrier.wait();
        pinned.with_context(|| format!("stay on processor {}", self.processor))?;
        Ok((Instant::now(), ran()))
    }

    /// Computes for as long as it may.
    fn compute(&self) -> anyhow::Result<Done> {
        let (begun, before) = self.begin()?;
        let mut units = 0;
        while begun.elapsed() < self.window {
            unit();
            units += 1;
            self.clock.set(self.place, ran() - before);
        }
        Ok(Done { units, ran: ran() - before, wall: begun.elapsed() })
    }

    /// Computes for so many units once in each period. Who is late calls again at once, and does not make up for what it missed.
    fn call(&self, each: u64) -> anyhow::Result<(Done, Vec<Call>)> {
        let (begun, before) = self.begin()?;
        let now = || {
            self.clock.set(self.place, ran() - before);
            self.clock.now()
        };
        let (mut next, mut calls, mut units) = (PERIOD, Vec::new(), 0);
        loop {
            // That clock is never faster than that of the wall, so nobody sleeps too long.
            while let Some(left) = next.checked_sub(now()).filter(|left| !left.is_zero()) {
                if begun.elapsed() >= self.window {
                    return Ok((Done { units, ran: ran() - before, wall: begun.elapsed() }, calls));
                }
                std::thread::sleep(left.clamp(NAP, PERIOD));
            }
            let first = ran();
            (0..each).for_each(|_| unit());
            units += each;
            let end = now();
            calls.push(Call { latency: end - next, ran: ran() - first });
            next = (next + PERIOD).max(end);
            if begun.elapsed() >= self.window {
                return Ok((Done { units, ran: ran() - before, wall: begun.elapsed() }, calls));
            }
        }
    }
}

fn unit() {
    let mut state = 1_u64;
    for _ in 0..UNIT {
        // The step of Knuth's MMIX generator; each waits for the one before.
        state = std::hint::black_box(
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407),
        );
    }
}

/// How long this thread has had a processor so far.
fn ran() -> Duration {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(tv_sec).unwrap_or(0), u32::try_from(tv_nsec).unwrap_or(0))
}

/// The processors that this process may use.
///
/// # Errors
/// If the kernel does not say.
pub(super) fn processors() -> anyhow::Result<Vec<usize>> {
    let allowed = sched_getaffinity(None).context("ask which processors this process may use")?;
    Ok((0..CpuSet::MAX_CPU).filter(|&processor| allowed.is_set(processor)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_compute_and_a_user_calls_on_the_same_processor() {
        let window = Duration::from_millis(200);
        let seen = observe(processors().unwrap()[0], 2, Some(1), window).unwrap();
        assert_eq!(seen.tasks.len(), 2);
        assert!(seen.tasks.iter().all(|done| done.units > 0 && done.wall >= window), "{seen:?}");
        let (user, calls) = seen.user.as_ref().unwrap();
        // One in each period that the three had the processor, and none before the first is over.
        let most = seen.ran().as_nanos() / PERIOD.as_nanos();
        assert!(calls.len() as u128 <= most && user.units == calls.len() as u64, "{seen:?}");
        assert!(calls.iter().all(|call| call.latency >= call.ran), "{seen:?}");
        assert!((0.0..=1.0).contains(&seen.foreign()));
    }

    #[test]
    fn a_processor_that_is_not_there_is_told() {
        for processor in [CpuSet::MAX_CPU - 1, CpuSet::MAX_CPU] {
            let error = observe(processor, 1, None, Duration::from_millis(1)).unwrap_err();
            assert!(error.to_string().contains("stay on processor"), "{error:#}");
        }
    }
}
