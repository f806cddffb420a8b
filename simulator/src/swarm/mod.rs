//! Very many small runs with faults, each drawn from one number.
//!
//! A seed draws everything (`drawing`); a [`Reduction`] takes things away from what it drew. Both together are one line
//! that repeats a failure. [`shrink`](fn@shrink) looks for the largest reduction that still fails by the same check.

mod brokers;
mod drawing;
mod reduction;
mod restarts;
mod shrinking;
mod widening;

use std::panic::{AssertUnwindSafe, catch_unwind};

use scheduler::{Event, Span, Time};

use crate::faults::{Broken, Check, Limits, Mistake, Scenario, Tally, World};

pub use drawing::draw;
pub use reduction::{Reduction, ReductionError};
pub use shrinking::shrink;
pub use widening::{Part, Parts};

/// Calls of peers in a run that count as talking for ever: far more than so few jobs need. Large grids may have so many
/// for each 8 sites.
pub const CALLS_MAX: u64 = 300_000;

/// Mistakes built in on purpose, and what is left out to see what they lead to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Trial {
    /// A mistake of the driver.
    pub mistake: Option<Mistake>,
    /// A mistake of every peer.
    #[cfg(feature = "mutant")]
    pub mutant: Option<protocol::mutant::Mutant>,
    /// Leaves [`Check::Agreement`] and [`Check::Restart`] out.
    pub deep: bool,
    /// What is added to small grids.
    pub parts: Parts,
}

/// Runs what a seed drew, less what a reduction takes away.
///
/// # Errors
/// The first check that does not hold, failed assertions of the protocol included.
pub fn run(seed: u64, reduction: &Reduction, trial: Trial) -> Result<Tally, Broken> {
    run_scenario(&reduction.apply(draw(seed, trial.parts)), trial, &mut |_| {})
}

/// Runs a scenario. Every event goes to `sink`.
///
/// # Errors
/// As [`run`].
pub fn run_scenario(
    scenario: &Scenario,
    trial: Trial,
    sink: &mut dyn FnMut(&Event),
) -> Result<Tally, Broken> {
    let mut last = Time::ZERO;
    let result = catch_unwind(AssertUnwindSafe(|| {
        let world = World::new(scenario, limits(scenario)).with_mistake(trial.mistake);
        #[cfg(feature = "mutant")]
        let world = world.with_mutant(trial.mutant);
        let world = if trial.deep { world.without_agreement() } else { world };
        world.run(&mut |event| {
            last = event.at;
            sink(event);
        })
    }));
    result.unwrap_or_else(|panic| {
        let said = panic.downcast_ref::<String>().cloned();
        let said = said.or_else(|| panic.downcast_ref::<&str>().map(|said| (*said).to_owned()));
        Err(Broken {
            check: Check::Invariant,
            at: last,
            what: said.unwrap_or_else(|| "it panicked".to_owned()),
        })
    })
}

/// Until when a run must be over, and after how many calls: all jobs one after the other, each after every repetition of
/// a message that its moves could need.
fn limits(scenario: &Scenario) -> Limits {
    let jobs = scenario.jobs.len() as i64;
    let work = scenario.jobs.iter().fold(Span::ZERO, |sum, job| sum + job.run_time);
    let submitted = scenario.jobs.last().map_or(Time::ZERO, |job| job.spec.submit);
    let options = &scenario.options;
    let patience = options.retry.unwrap_or(Span::ZERO).saturating_mul(64)
        + options.pool.refresh.unwrap_or(Span::ZERO).saturating_mul(10)
        + options.balance.gossip;
    let healed = scenario.healed.unwrap_or(submitted);
    // Every job may be taken over more than once, each time after a lease.
    let (takes, runs) = match options.heartbeat {
        Some(heartbeat) => (heartbeat + options.suspect_after + options.lease.unwrap_or(Span::ZERO), 4),
        None => (Span::ZERO, 2),
    };
    let over = healed.max(submitted)
        + work.saturating_mul(runs)
        + patience.saturating_mul(jobs + 10)
        + takes.saturating_mul(8);
    let sites = scenario.grid.len() as u64;
    // Sites that are there say so as long as jobs execute: a call to hear each heartbeat, and one for what follows.
    let heartbeats = options.heartbeat.map_or(0, |heartbeat| over.as_micros() / heartbeat.as_micros().max(1));
    let heard = u64::try_from(heartbeats).unwrap_or(0) * sites * (sites - 1);
    Limits { over, calls: CALLS_MAX * sites.div_ceil(8) + 2 * heard }
}
