//! Disks without room, and disks that are lost.

use protocol::Durable;
use protocol::journal::INCARNATIONS_PER_JOURNAL;
use scheduler::{Span, Time};

use super::fault_queue::Coming;
use super::schedule::Fault;
use super::watch::Broken;
use super::world::World;

impl World<'_> {
    /// When the disk of a site has room again; none if it has now.
    pub(super) fn room_at(&self, rank: usize) -> Option<Time> {
        if self.healed {
            return None;
        }
        let here = self.scenario.grid.at_rank(rank);
        let full = self.scenario.faults.iter().filter_map(|fault| match *fault {
            Fault::FullDisk { site, at, until } if site == here && at <= self.now() && self.now() < until => {
                Some(until)
            }
            _ => None,
        });
        full.max()
    }

    /// A write fails: the process ends, and nothing of the call has happened. It restarts once there is room.
    pub(super) fn runs_full(&mut self, rank: usize, room: Time) -> Result<(), Broken> {
        self.tally.disks_full += 1;
        self.crash(rank, Some(room.since(self.now())), 0)
    }

    /// A disk is lost, and the process with it. What was there, others take over, or the operator has them adopt it.
    pub(super) fn lose_disk(&mut self, rank: usize, down: Span) -> Result<(), Broken> {
        if !self.sites[rank].is_member() || self.sites[rank].disk.is_new() {
            return Ok(());
        }
        if self.sites[rank].peer.is_some() {
            self.crash(rank, Some(down), 0)?;
        }
        let site = &mut self.sites[rank];
        site.losses += 1;
        site.disk = Durable::default();
        site.disk.ledger.began(site.losses * INCARNATIONS_PER_JOURNAL);
        site.ahead = site.disk.clone();
        // What users brought and nobody heard of: it may have been executed, so it is not brought again.
        for job in std::mem::take(&mut site.handed) {
            site.users.remove(&job);
        }
        self.tally.disks_lost += 1;
        let here = self.scenario.grid.at_rank(rank);
        self.watch.lost(here, &self.scenario.grid, |rank| &self.sites[rank].disk);
        self.expect(self.now().saturating_add(self.patience()), Coming::Operator);
        self.coordinator.losses.push(self.now());
        self.check_disks()
    }
}
