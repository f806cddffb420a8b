//! What is going to happen beside jobs and messages, and in which order at one instant.

use scheduler::event::BeginCause;
use scheduler::{JobId, Time};

use super::scenario::Mistake;
use super::schedule::Fault;
use super::site::Stay;
use super::watch::Broken;
use super::world::World;
use crate::together::Try;

/// Something that is going to happen.
#[derive(Clone, Copy, Debug)]
pub(super) enum Coming {
    Heal,
    Fault(usize),
    /// The operator looks who is gone for good.
    Operator,
    /// Another coordinator goes on.
    Attach,
    Restart {
        rank: usize,
        process: u32,
    },
    Resume {
        rank: usize,
        process: u32,
    },
    Written {
        rank: usize,
        process: u32,
    },
    /// A user brings a job; on the fault_queue only while nobody takes it.
    Submitted(usize),
}

/// A job that a process of a site executed to its end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Executed {
    pub(super) rank: usize,
    pub(super) process: u32,
    pub(super) job: JobId,
    /// The attempt, of one in parts.
    pub(super) attempt: Option<Try>,
}

impl Coming {
    /// The order at one instant.
    pub(super) fn class(self) -> u8 {
        match self {
            Coming::Heal => 0,
            Coming::Written { .. } => 2,
            _ => 1,
        }
    }
}

impl World<'_> {
    /// What is known from the start.
    pub(super) fn plan(&mut self) {
        let scenario = self.scenario;
        if let Some(healed) = scenario.healed {
            self.expect(healed, Coming::Heal);
        }
        for (place, fault) in scenario.faults.iter().enumerate() {
            if let Fault::Crash { at, .. }
            | Fault::Pause { at, .. }
            | Fault::Leave { at, .. }
            | Fault::Join { at, .. }
            | Fault::Step { at, .. }
            | Fault::LostDisk { at, .. }
            | Fault::Coordinator { at, .. }
            | Fault::Liar { at, .. } = fault
            {
                self.expect(*at, Coming::Fault(place));
            }
            if let Fault::Join { site, .. } = fault {
                self.sites[scenario.grid.rank(*site)].stay = Stay::Absent;
            }
        }
    }

    pub(super) fn expect(&mut self, at: Time, what: Coming) {
        let number = self.event_list.number();
        self.fault_queue.insert((at, what.class(), number), what);
    }

    pub(super) fn happen(&mut self, what: Coming) -> Result<(), Broken> {
        if self.coordinator.is_away() && self.needs_coordinator(&what) {
            self.coordinator.postponed.push(what);
            return Ok(());
        }
        match what {
            Coming::Attach => self.attach(),
            Coming::Heal => self.heal(),
            Coming::Fault(place) => self.strike(place),
            Coming::Operator => self.operate(),
            Coming::Restart { rank, process } if self.sites[rank].process == process => {
                self.begin(rank, Some(BeginCause::Restart))
            }
            Coming::Resume { rank, process } if self.sites[rank].process == process => self.resume(rank),
            Coming::Written { rank, process } if self.sites[rank].process == process => self.release(rank),
            Coming::Restart { .. } | Coming::Resume { .. } | Coming::Written { .. } => Ok(()),
            Coming::Submitted(place) => {
                let job = self.scenario.jobs[place].spec;
                if self.mistake != Some(Mistake::SubmitEarly) || job.submit <= self.now() {
                    self.watch.submitted(job.id);
                }
                self.submit(job)
            }
        }
    }
}
