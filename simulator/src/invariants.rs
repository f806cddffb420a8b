//! I1 to I10 of the stealing algorithm, asserted over the true state of a simulation without delay.
//!
//! With free messages peers must keep what is proved of the ideal algorithm. With delay the same rules are broken by
//! nature, so nothing is asserted then. The rules themselves are in [`scheduler::ideal::invariants`].

use protocol::Discovery;
use scheduler::ideal::invariants::{self, State, Terms};
use scheduler::{JobId, JobSpec, Time, TimedJob};

use crate::checks::Violation;
use crate::config::SimulationConfig;

/// The state of a run as its observer sees it, and what must hold of it.
#[derive(Clone, Debug)]
pub(crate) struct IdealMode {
    terms: Terms,
    state: State,
}

impl IdealMode {
    /// For a run that the proofs speak of; nothing for others.
    pub(crate) fn of(config: &SimulationConfig, jobs: &[TimedJob]) -> Option<IdealMode> {
        let steal = *config.strategy.steal_from_homes()?;
        if !config.network.is_free()
            || config.options.discovery != Discovery::Standing
            || config.views.is_some()
        {
            return None;
        }
        let rows = jobs.iter().map(|job| (job.spec.submit, job.spec.processors, job.run_time));
        Some(IdealMode { terms: Terms::new(&config.grid, steal, rows), state: State::new(&config.grid) })
    }

    pub(crate) fn submitted(&mut self, now: Time, job: JobSpec) {
        self.state.submitted(now, job);
    }

    pub(crate) fn started(&mut self, now: Time, job: JobSpec, rank: usize) {
        self.state.started(now, job, rank);
    }

    pub(crate) fn completed(&mut self, now: Time, job: JobId, rank: usize) {
        self.state.completed(now, job, rank);
    }

    /// Everything that starts at this instant has started.
    pub(crate) fn decided(&mut self, at: Time) -> Result<(), Violation> {
        self.state.decided(at, self.terms.lists(&self.state));
        let found = invariants::check(&self.state, &self.terms);
        self.state.forget_starts();
        match found.into_iter().next() {
            Some(violation) => Err(Violation::Invariant { at, violation }),
            None => Ok(()),
        }
    }

    /// The run is over.
    pub(crate) fn finished(&self, last_end: Time) -> Result<(), Violation> {
        invariants::certificate(&self.terms, last_end)
            .map_err(|violation| Violation::Invariant { at: last_end, violation })
    }
}
