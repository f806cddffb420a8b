//! Whoever hands jobs over, begins processes again and plays the operator: it may end in the middle of that, and another
//! goes on with what it had noted.
//!
//! It notes what it decides before it tells anybody: which site is to adopt which job under which epoch, and to which site
//! a job is brought. What a site answered while nobody listened, it answers again.

use scheduler::{JobId, Span, Time};

use super::fault_queue::Coming;
use super::scenario::Mistake;
use super::schedule::Fault;
use super::watch::Broken;
use super::world::World;

/// The coordinator of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct Coordinator {
    away: bool,
    /// It ends in the middle of the next thing it does, after so many orders, for so long.
    armed: Option<(u8, Span)>,
    /// What waits for another one.
    pub(super) postponed: Vec<Coming>,
    /// When disks were lost.
    pub(super) losses: Vec<Time>,
}

impl Coordinator {
    pub(super) fn is_away(&self) -> bool {
        self.away
    }
}

impl World<'_> {
    /// Whether nobody does this without a coordinator.
    pub(super) fn needs_coordinator(&self, what: &Coming) -> bool {
        match what {
            Coming::Submitted(_) | Coming::Operator | Coming::Restart { .. } => true,
            Coming::Fault(place) => {
                matches!(self.scenario.faults[*place], Fault::Leave { .. } | Fault::Join { .. })
            }
            _ => false,
        }
    }

    pub(super) fn strike_coordinator(&mut self, down: Span, torn: Option<u8>) {
        match torn {
            _ if self.coordinator.away => {}
            Some(orders) => self.coordinator.armed = Some((orders, down)),
            None => self.coordinator_ends(down),
        }
    }

    fn coordinator_ends(&mut self, down: Span) {
        if self.healed {
            return;
        }
        self.coordinator.away = true;
        self.coordinator.armed = None;
        self.tally.coordinators += 1;
        self.expect(self.now().saturating_add(down), Coming::Attach);
    }

    /// Before an order: whether the coordinator is still there to give it.
    pub(super) fn gives_order(&mut self) -> bool {
        if let Some((left, down)) = &mut self.coordinator.armed {
            let down = *down;
            match left.checked_sub(1) {
                Some(fewer) => *left = fewer,
                None => self.coordinator_ends(down),
            }
        }
        !self.coordinator.away
    }

    /// Another coordinator goes on.
    pub(super) fn attach(&mut self) -> Result<(), Broken> {
        self.coordinator.armed = None;
        if !std::mem::take(&mut self.coordinator.away) {
            return Ok(());
        }
        if self.mistake == Some(Mistake::NothingNoted) {
            self.adopted.clear();
            self.sites.iter_mut().for_each(|site| site.adopting.clear());
        }
        for rank in 0..self.sites.len() {
            let site = &mut self.sites[rank];
            // What is written down where it went needs no order any more.
            let voids = &site.disk.voids;
            let done = |job: &JobId, epoch: u32| voids.get(job).is_some_and(|&newest| newest >= epoch);
            let adopted = site.adopting.values().filter(|(job, epoch)| done(&job.id, *epoch));
            let adopted: Vec<(JobId, u32)> = adopted.map(|(job, epoch)| (job.id, *epoch)).collect();
            for &(job, epoch) in &adopted {
                self.adopted.insert(job, epoch);
            }
            // It is told again all the same: who noted that it was told may have ended before the answer.
            self.remind(rank)?;
            for (job, _) in adopted {
                self.sites[rank].adopting.remove(&job);
            }
            let users: Vec<_> = self.sites[rank].users.values().copied().collect();
            for job in users {
                self.hand_over(rank, job)?;
            }
        }
        for what in std::mem::take(&mut self.coordinator.postponed) {
            self.happen(what)?;
        }
        self.operate()
    }
}
