//! Who belongs to the grid: sites that join, leave and die, users who turn to others, and the operator.

use std::collections::BTreeMap;

use protocol::membership::operator::{adoptions, successor};
use protocol::{Durable, Input};
use scheduler::event::{BeginCause, EndCause};
use scheduler::{Event, EventKind, JobId, JobSpec, SiteId, Span, Time};

use super::agenda::Coming;
use super::site::Stay;
use super::watch::{Broken, Check};
use super::world::World;

impl World<'_> {
    /// How long until users and the operator give a dead site up.
    fn patience(&self) -> Span {
        let options = &self.scenario.options;
        options.lease.map_or(options.suspect_after, |lease| lease.max(options.suspect_after))
    }

    /// Whether the operator still has something to do for a site that died.
    pub(super) fn operator_acts(&self) -> bool {
        let waits = |stay| matches!(stay, Stay::Dead(at) if at.saturating_add(self.patience()) >= self.now);
        let anybody = self.sites.iter().any(|site| site.is_member());
        anybody && self.sites.iter().any(|site| waits(site.stay) || !site.adopting.is_empty())
    }

    /// A process will never begin again.
    pub(super) fn dies(&mut self, rank: usize) {
        if self.sites[rank].is_member() {
            self.sites[rank].stay = Stay::Dead(self.now);
            self.tally.deaths += 1;
            self.expect(self.now.saturating_add(self.patience()), Coming::Operator);
        }
    }

    pub(super) fn leave(&mut self, rank: usize, sink: &mut dyn FnMut(&Event)) -> Result<(), Broken> {
        if self.sites[rank].stay != Stay::Member {
            return Ok(());
        }
        self.sites[rank].stay = Stay::Leaving;
        self.say(rank, EventKind::Dismissed {}, sink);
        self.tell(rank, Input::Leave, true, sink)
    }

    pub(super) fn join(&mut self, rank: usize, sink: &mut dyn FnMut(&Event)) -> Result<(), Broken> {
        if self.sites[rank].stay != Stay::Absent {
            return Ok(());
        }
        self.sites[rank].stay = Stay::Member;
        self.tally.joined += 1;
        self.begin(rank, Some(BeginCause::Join), sink)?;
        self.move_users(sink)
    }

    /// A site that began again is told what it may not remember.
    pub(super) fn remind(&mut self, rank: usize, sink: &mut dyn FnMut(&Event)) -> Result<(), Broken> {
        if self.sites[rank].stay == Stay::Leaving {
            self.tell(rank, Input::Leave, true, sink)?;
        }
        let adopting: Vec<(JobSpec, u32)> = self.sites[rank].adopting.values().copied().collect();
        for (job, epoch) in adopting {
            self.tell(rank, Input::Adopt { job, epoch }, true, sink)?;
        }
        Ok(())
    }

    /// Processes end of sites that have left. They must leave nothing behind.
    pub(super) fn stop_who_left(&mut self, sink: &mut dyn FnMut(&Event)) -> Result<(), Broken> {
        let mut any = false;
        for rank in 0..self.sites.len() {
            let site = &self.sites[rank];
            let done = site.stay == Stay::Leaving
                && site.is_up()
                && site.writing.is_empty()
                && site.adopting.is_empty()
                && site.peer.as_ref().is_some_and(protocol::Peer::has_left);
            if !done {
                continue;
            }
            let disk = &site.disk;
            if !disk.jobs.is_empty() || !disk.ledger.is_settled() || !disk.wards.is_empty() {
                let site = self.scenario.grid.at_rank(rank);
                let (jobs, out) = (disk.jobs.len(), disk.ledger.transfers_out().count());
                let what = format!(
                    "site {site} has left with {jobs} jobs, {out} transfers, responsible for {}",
                    disk.wards.len()
                );
                return self.broken(Check::Left, what);
            }
            self.end_process(rank);
            self.say(rank, EventKind::Ended { how: EndCause::Leave }, sink);
            self.sites[rank].stay = Stay::Left;
            self.tally.left += 1;
            any = true;
        }
        if any { self.move_users(sink) } else { Ok(()) }
    }

    /// A user brings a job: where it belongs, or to who stands in for a site that is not there.
    pub(super) fn submit(&mut self, job: JobSpec, sink: &mut dyn FnMut(&Event)) -> Result<(), Broken> {
        let scenario = self.scenario;
        let rank = scenario.submit.rank(&scenario.grid, scenario.strategy, &job);
        self.bring(rank.expect("scenarios have no job that is wider than the widest site"), job, sink)
    }

    fn bring(&mut self, rank: usize, job: JobSpec, sink: &mut dyn FnMut(&Event)) -> Result<(), Broken> {
        let grid = self.scenario.grid.clone();
        let stays = |site: SiteId| self.sites[grid.rank(site)].stay == Stay::Member;
        let to = match stays(grid.at_rank(rank)) {
            true => rank,
            // With nobody there it waits for somebody to come.
            false => successor(&grid, grid.at_rank(rank), &job, stays).map_or(rank, |site| grid.rank(site)),
        };
        self.sites[to].users.insert(job.id, job);
        self.tell(to, Input::Submitted(job), true, sink)
    }

    /// Users whose site is not one any more turn to others.
    fn move_users(&mut self, sink: &mut dyn FnMut(&Event)) -> Result<(), Broken> {
        for rank in 0..self.sites.len() {
            if self.sites[rank].is_member() {
                continue;
            }
            for job in std::mem::take(&mut self.sites[rank].users).into_values() {
                self.bring(rank, job, sink)?;
            }
        }
        Ok(())
    }

    /// The operator looks who died so long ago that nobody waits any more.
    pub(super) fn operate(&mut self, sink: &mut dyn FnMut(&Event)) -> Result<(), Broken> {
        self.move_users(sink)?;
        if self.scenario.options.lease.is_none() {
            return Ok(());
        }
        let (grid, patience) = (self.scenario.grid.clone(), self.patience());
        for site in &mut self.sites {
            if !site.is_member() {
                site.adopting.clear();
            }
        }
        let lost = |died: Time| died.saturating_add(patience) <= self.now;
        let dead: BTreeMap<SiteId, &Durable> = (0..self.sites.len())
            .filter(|&rank| matches!(self.sites[rank].stay, Stay::Dead(at) if lost(at)))
            .map(|rank| (grid.at_rank(rank), &self.sites[rank].disk))
            .collect();
        let is_there = |site: SiteId| self.sites[grid.rank(site)].is_member();
        let is_told = |job: JobId| self.sites.iter().any(|site| site.adopting.contains_key(&job));
        let mut list = adoptions(&grid, &dead, &self.adopted, is_there);
        list.retain(|adoption| !is_told(adoption.job.id));
        for adoption in list {
            let rank = grid.rank(adoption.to);
            let (job, epoch) = (adoption.job, adoption.epoch);
            self.sites[rank].adopting.insert(job.id, (job, epoch));
            self.tell(rank, Input::Adopt { job, epoch }, true, sink)?;
        }
        Ok(())
    }
}
