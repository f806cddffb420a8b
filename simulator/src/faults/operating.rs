//! Who belongs to the grid: sites that join, leave and die, users who turn to others, and the operator.

use std::collections::BTreeMap;

use protocol::membership::operator::{adoptions_after_losses, all_know_of_losses, missing, successor};
use protocol::{Durable, Input};
use scheduler::event::{BeginCause, EndCause};
use scheduler::{EventKind, JobId, JobSpec, SiteId, Span, Time};

use super::fault_queue::Coming;
use super::scenario::Mistake;
use super::site::Stay;
use super::watch::{Broken, Check};
use super::world::World;
use crate::instant::Driver as _;

impl World<'_> {
    /// How long until users and the operator give a dead site up.
    pub(super) fn patience(&self) -> Span {
        let options = &self.scenario.options;
        options.lease.map_or(options.suspect_after, |lease| lease.max(options.suspect_after))
    }

    /// Whether the operator still has something to do for a site that died.
    pub(super) fn operator_acts(&self) -> bool {
        let waits = |stay| matches!(stay, Stay::Dead(at) if at.saturating_add(self.patience()) >= self.now());
        let anybody = self.sites.iter().any(|site| site.is_member());
        let pending = |&lost: &Time| lost.saturating_add(self.patience()) >= self.now();
        let is_pending = || self.coordinator.losses.iter().any(pending) || self.is_loss_unheard();
        if self.coordinator.is_away() || (anybody && is_pending()) {
            return true;
        }
        anybody && self.sites.iter().any(|site| waits(site.stay) || !site.adopting.is_empty())
    }

    /// Whether the operator must look again what is missing, as a site may not have heard of a loss. Liars hear what they like.
    fn is_loss_unheard(&self) -> bool {
        let grid = &self.scenario.grid;
        let stays = |rank: usize| self.sites[rank].is_member() && !self.is_liar(rank);
        self.scenario.options.lease.is_some()
            && !self.coordinator.losses.is_empty()
            && !all_know_of_losses(&self.journals(), |site| stays(grid.rank(site)))
    }

    /// What each site has written down.
    fn journals(&self) -> BTreeMap<SiteId, &Durable> {
        let grid = &self.scenario.grid;
        self.sites.iter().enumerate().map(|(rank, site)| (grid.at_rank(rank), &site.disk)).collect()
    }

    /// A process will never restart.
    pub(super) fn dies(&mut self, rank: usize) {
        if self.sites[rank].is_member() {
            self.sites[rank].stay = Stay::Dead(self.now());
            self.tally.deaths += 1;
            self.expect(self.now().saturating_add(self.patience()), Coming::Operator);
        }
    }

    pub(super) fn leave(&mut self, rank: usize) -> Result<(), Broken> {
        if self.sites[rank].stay != Stay::Member {
            return Ok(());
        }
        self.sites[rank].stay = Stay::Leaving;
        self.say(rank, EventKind::Dismissed {});
        self.tell(rank, Input::Leave)
    }

    pub(super) fn join(&mut self, rank: usize) -> Result<(), Broken> {
        if self.sites[rank].stay != Stay::Absent {
            return Ok(());
        }
        self.sites[rank].stay = Stay::Member;
        self.tally.joined += 1;
        // What was lost while nobody was there that could adopt it.
        self.expect(self.now(), Coming::Operator);
        self.begin(rank, Some(BeginCause::Join))?;
        self.move_users()
    }

    /// A site that restarted is told what it may not remember.
    pub(super) fn remind(&mut self, rank: usize) -> Result<(), Broken> {
        if self.sites[rank].stay == Stay::Leaving {
            self.tell(rank, Input::Leave)?;
        }
        let adopting: Vec<(JobSpec, u32)> = self.sites[rank].adopting.values().copied().collect();
        for (job, epoch) in adopting {
            self.tell(rank, Input::Adopt { job, epoch })?;
        }
        Ok(())
    }

    /// Processes end of sites that have left. They must leave nothing behind.
    pub(super) fn stop_who_left(&mut self) -> Result<(), Broken> {
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
            if self.liar.is_none()
                && (!disk.jobs.is_empty() || !disk.ledger.is_settled() || !disk.guarded_jobs.is_empty())
            {
                let site = self.scenario.grid.at_rank(rank);
                let (jobs, out) = (disk.jobs.len(), disk.ledger.transfers_out().count());
                let what = format!(
                    "site {site} has left with {jobs} jobs, {out} transfers, responsible for {}",
                    disk.guarded_jobs.len()
                );
                return self.broken(Check::Left, what);
            }
            self.end_process(rank);
            self.say(rank, EventKind::Ended { how: EndCause::Leave });
            self.sites[rank].stay = Stay::Left;
            self.tally.left += 1;
            any = true;
        }
        if any { self.move_users() } else { Ok(()) }
    }

    /// A user brings a job: where it belongs, or to who stands in for a site that is not there.
    pub(super) fn submit(&mut self, job: JobSpec) -> Result<(), Broken> {
        let scenario = self.scenario;
        let rank = scenario.submit.rank(&scenario.grid, scenario.strategy, &job, &scenario.local_users);
        self.bring(rank.expect("scenarios have no job that is wider than the widest site"), job)
    }

    fn bring(&mut self, rank: usize, job: JobSpec) -> Result<(), Broken> {
        let grid = self.scenario.grid.clone();
        let failover = self.scenario.options.broker.failover;
        let stays = |site: SiteId| self.sites[grid.rank(site)].stay == Stay::Member;
        let to = match stays(grid.at_rank(rank)) {
            true => rank,
            // With nobody there it waits for somebody to come.
            false => successor(&grid, failover, grid.at_rank(rank), &job, stays)
                .map_or(rank, |site| grid.rank(site)),
        };
        self.sites[to].users.insert(job.id, job);
        if self.gives_order() { self.hand_over(to, job) } else { Ok(()) }
    }

    /// A site is handed a job, unless it says that it has had it.
    pub(super) fn hand_over(&mut self, rank: usize, job: JobSpec) -> Result<(), Broken> {
        self.taint_if_liar(rank, job.id);
        if self.sites[rank].handed.contains(&job.id) && self.mistake != Some(Mistake::HandsOverAgain) {
            self.sites[rank].users.remove(&job.id);
            return Ok(());
        }
        self.tell(rank, Input::Submitted(job))
    }

    /// Users whose site is not one any more turn to others.
    fn move_users(&mut self) -> Result<(), Broken> {
        for rank in 0..self.sites.len() {
            if self.sites[rank].is_member() {
                continue;
            }
            for job in std::mem::take(&mut self.sites[rank].users).into_values() {
                // What it had, its journal says.
                if self.sites[rank].handed.contains(&job.id) {
                    continue;
                }
                self.bring(rank, job)?;
            }
        }
        Ok(())
    }

    /// The operator looks who died so long ago that nobody waits any more.
    pub(super) fn operate(&mut self) -> Result<(), Broken> {
        if self.coordinator.is_away() {
            return Ok(());
        }
        self.move_users()?;
        if self.scenario.options.lease.is_none() {
            return Ok(());
        }
        let (grid, patience) = (self.scenario.grid.clone(), self.patience());
        let failover = self.scenario.options.broker.failover;
        for site in &mut self.sites {
            if !site.is_member() {
                site.adopting.clear();
            }
        }
        let lost = |died: Time| died.saturating_add(patience) <= self.now();
        let dead: BTreeMap<SiteId, &Durable> = (0..self.sites.len())
            .filter(|&rank| matches!(self.sites[rank].stay, Stay::Dead(at) if lost(at)))
            .map(|rank| (grid.at_rank(rank), &self.sites[rank].disk))
            .collect();
        let is_there = |site: SiteId| self.sites[grid.rank(site)].is_member();
        let is_told = |job: JobId| self.sites.iter().any(|site| site.adopting.contains_key(&job));
        let has_lost = |site: SiteId| self.sites[grid.rank(site)].losses > 0;
        let mut list = adoptions_after_losses(&grid, failover, &dead, &self.adopted, is_there, has_lost);
        let mut looks_again = false;
        let lost_long_ago = |&at: &Time| at.saturating_add(patience) <= self.now();
        if self.coordinator.losses.iter().any(lost_long_ago)
            && self.mistake != Some(Mistake::MissingForgotten)
        {
            let journals = self.journals();
            let is_listed = |job: &JobSpec| list.iter().any(|adoption| adoption.job.id == job.id);
            let unended = self.scenario.jobs.iter().map(|job| job.spec);
            let unended = unended.filter(|job| self.watch.is_taken(job.id) && !is_listed(job));
            // Who lost it counts for none that is preferred: the jobs are told apart by their epoch.
            let first = (0..self.sites.len()).find(|&rank| self.sites[rank].losses > 0);
            let site = grid.at_rank(first.expect("a disk was lost"));
            let missing = missing(&grid, failover, site, unended, &journals, &self.adopted, is_there);
            list.extend(missing);
            looks_again = self.is_loss_unheard();
        }
        list.retain(|adoption| !is_told(adoption.job.id));
        if looks_again {
            self.expect(self.now().saturating_add(patience), Coming::Operator);
        }
        for adoption in &list {
            let rank = grid.rank(adoption.to);
            self.sites[rank].adopting.insert(adoption.job.id, (adoption.job, adoption.epoch));
        }
        for adoption in list {
            let rank = grid.rank(adoption.to);
            let (job, epoch) = (adoption.job, adoption.epoch);
            if !self.gives_order() {
                return Ok(());
            }
            self.taint_if_liar(rank, job.id);
            self.tell(rank, Input::Adopt { job, epoch })?;
        }
        Ok(())
    }
}
