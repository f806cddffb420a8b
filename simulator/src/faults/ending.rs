//! When a run is over, and what must hold then.

use std::collections::BTreeSet;

use protocol::{Discovery, Peer, Presence};
use scheduler::ideal::closed_form;
use scheduler::waiting::WaitingList;
use scheduler::{JobId, JobSpec, Order, Selection, SiteId};

use super::site::{Site, Stay};
use super::watch::{Broken, Check};
use super::world::World;
use crate::instant::polls;

impl World<'_> {
    /// Every job has ended, nobody waits for an answer, and all that is left is asking in vain.
    pub(super) fn is_over(&self) -> bool {
        if self.liar.is_some() {
            return self.is_over_with_a_liar();
        }
        let polls = polls(self.scenario.strategy, &self.scenario.options);
        let silent = polls || self.event_list.under_way() == 0;
        let at_rest = silent && !self.watch.executes() && self.members().all(|site| self.is_quiet(site));
        if !at_rest || self.operator_acts() || (self.scenario.healed.is_some() && !(polls && self.healed)) {
            return false;
        }
        let ended = self.watch.ended() == self.scenario.jobs.len();
        if self.scenario.healed.is_none() {
            return ended
                || (self.watch.all_submitted(self.scenario.jobs.len()) && self.unfinished().is_none());
        }
        (ended || self.unfinished().is_none())
            && self.members().all(|site| self.has_nothing_to_do(site))
            && self.disagreement().is_none()
    }

    /// With a liar nobody ever need be at rest. It is over when every job has ended that must.
    fn is_over_with_a_liar(&self) -> bool {
        self.healed && !self.operator_acts() && self.unfinished().is_none()
    }

    /// Whether jobs that a liar has nothing to do with end all the same: they run at home, and nobody need be asked.
    /// A liar can decide for a global queue or a common pool, and have others wait for it that steal before they start
    /// what is their own.
    fn ends_in_spite_of_a_liar(&self) -> bool {
        let strategy = self.scenario.strategy;
        strategy.steal().map_or(!strategy.nature().talks, |steal| !steal.order.stolen_first())
    }

    /// Whether a site waits for nothing. With a global queue those go on asking whose offer nobody can take.
    fn is_quiet(&self, site: &Site) -> bool {
        let offers = self.scenario.strategy.nature().offers;
        let settled = || site.peer.as_ref().is_some_and(|peer| peer.ledger().is_settled());
        let asks_in_vain =
            || offers && self.is_any_orphaned() && site.is_up() && site.writing.is_empty() && settled();
        site.is_quiet() || asks_in_vain()
    }

    /// Whether a job is left that nobody can hold, or another copy of one that has ended.
    fn is_any_orphaned(&self) -> bool {
        let widest = self.widest();
        let holds_wide = |site: &Site| site.disk.jobs.values().any(|kept| kept.job.processors > widest);
        self.unfinished().is_none()
            && (self.watch.ended() < self.scenario.jobs.len() || self.members().any(holds_wide))
    }

    fn members(&self) -> impl Iterator<Item = &Site> {
        self.sites.iter().filter(|site| site.is_member())
    }

    /// Processors of the widest site that stays, or is still to join, but for a liar: one that says that it leaves, or has lost
    /// its journal, is given nothing any more, and what nobody else could hold waits.
    fn widest(&self) -> u32 {
        let stays = |&rank: &usize| {
            matches!(self.sites[rank].stay, Stay::Member | Stay::Absent) && !self.is_liar(rank)
        };
        let sizes = self.scenario.grid.sizes();
        let alone = (0..self.sites.len()).rfind(stays).map_or(0, |rank| sizes[rank]);
        if !(0..self.scenario.grid.brokers()).any(|broker| stays(&broker)) {
            return alone;
        }
        // Several start together what none is wide enough for.
        let widths: Vec<u32> = (0..self.sites.len()).filter(stays).map(|rank| sizes[rank]).collect();
        alone.max(self.scenario.strategy.spread(&widths))
    }

    /// A job that has not ended and can: it is not too wide for every site that stays, and not at a dead one that nobody
    /// takes jobs over from.
    fn unfinished(&self) -> Option<JobId> {
        let widest = self.widest();
        let takes_over = self.scenario.options.lease.is_some();
        let is_lost = |job: JobId| {
            let has = |site: &Site| site.disk.jobs.contains_key(&job);
            !takes_over && self.sites.iter().any(|site| matches!(site.stay, Stay::Dead(_)) && has(site))
        };
        let open = self.scenario.jobs.iter().map(|job| job.spec);
        let must = |job: &JobSpec| {
            self.liar.is_none() || (self.ends_in_spite_of_a_liar() && self.watch.is_promised(job.id))
        };
        let mut open = open.filter(|job| {
            !self.watch.has_ended(job.id) && job.processors <= widest && !is_lost(job.id) && must(job)
        });
        open.next().map(|job| job.id)
    }

    /// Only jobs that are too wide for every site that stays wait there.
    fn has_nothing_to_do(&self, site: &Site) -> bool {
        let widest = self.widest();
        let left = site.stay != Stay::Leaving || !self.could_leave(site);
        left && site.disk.jobs.values().all(|kept| kept.job.processors > widest)
    }

    /// Whether nothing holds a site that is to leave: no job waits there, and it answers for none that waits at another
    /// because it is too wide for every site that stays.
    fn could_leave(&self, site: &Site) -> bool {
        let widest = self.widest();
        site.disk.jobs.is_empty()
            && !site.disk.guarded_jobs.values().any(|guarded| guarded.job.processors > widest)
    }

    /// Two sites that are there and do not know it, or one that takes another for there that is not.
    fn disagreement(&self) -> Option<String> {
        let options = &self.scenario.options;
        options.heartbeat?;
        let grid = &self.scenario.grid;
        for (rank, site) in self.sites.iter().enumerate().filter(|(_, site)| site.is_member()) {
            let peer = site.peer.as_ref()?;
            for (other, its) in self.sites.iter().enumerate().filter(|&(other, _)| other != rank) {
                let believed = peer.presence(grid.at_rank(other));
                let right = match its.stay {
                    Stay::Member => believed == Presence::Here,
                    Stay::Leaving => believed == Presence::Leaving,
                    _ if options.lease.is_some() => believed == Presence::Gone,
                    _ => believed != Presence::Here,
                };
                if !right {
                    let (site, other) = (grid.at_rank(rank), grid.at_rank(other));
                    return Some(format!(
                        "site {site} believes of site {other}, {:?}: {believed:?}",
                        its.stay
                    ));
                }
            }
        }
        None
    }

    pub(super) fn check_end(&mut self) -> Result<(), Broken> {
        if self.healed && self.liar.is_none() && self.watch.executes() {
            return self.broken(Check::Unfinished, "something still executes".to_owned());
        }
        let jobs = self.scenario.jobs.len();
        // A liar may make jobs up, which end as well.
        let left = jobs.saturating_sub(self.watch.ended());
        let open = match self.scenario.healed {
            Some(_) => self.unfinished(),
            None => self.scenario.jobs.iter().map(|job| job.spec.id).find(|&job| !self.watch.has_ended(job)),
        };
        if let Some(job) = open {
            let orphaned = self.sites.iter().filter_map(|site| site.peer.as_ref());
            let orphaned = orphaned.flat_map(Peer::orphaned).any(|waiting| waiting.id == job);
            let why = if orphaned { ", too wide for who is there" } else { "" };
            let what = format!("{left} jobs have not ended, the first is job {job}{why}");
            return self.broken(Check::Unfinished, what);
        }
        if self.liar.is_some() {
            return Ok(());
        }
        if self.scenario.strategy.nature().coallocates
            && let Some(job) = self.watch.misrecorded()
        {
            return self.broken(Check::Record, format!("job {job} ended in another way than sites say"));
        }
        self.check_orphaned()?;
        self.tally.orphaned = left as u64;
        for (rank, site) in self.sites.iter().enumerate().filter(|(_, site)| site.is_member()) {
            let here = self.scenario.grid.at_rank(rank);
            if !self.is_quiet(site) {
                let out: Vec<_> = site.disk.ledger.jobs_out().collect();
                let what = format!("site {here} still waits for an answer; out are {out:?}");
                return self.broken(Check::Silence, what);
            }
            if self.healed && site.stay == Stay::Leaving && self.could_leave(site) {
                return self.broken(Check::Left, format!("site {here} has no job, and does not leave"));
            }
        }
        if self.healed
            && let Some(what) = self.disagreement()
        {
            return self.broken(Check::Presence, what);
        }
        match self.next() {
            Some(next) => {
                self.broken(Check::Silence, format!("every job has ended, but something happens at {next}"))
            }
            None => Ok(()),
        }
    }

    /// Jobs that are too wide for every site that stays wait somewhere, and where homes count they are reported.
    fn check_orphaned(&self) -> Result<(), Broken> {
        let open = self.scenario.jobs.iter().filter(|job| !self.watch.has_ended(job.spec.id));
        if self.members().next().is_none() {
            return Ok(());
        }
        for job in open.map(|job| job.spec) {
            let user = self.sites.iter().any(|site| site.users.contains_key(&job.id));
            let waits = self.members().any(|site| {
                site.disk.jobs.contains_key(&job.id)
                    || site.disk.ledger.jobs_out().any(|(_, out)| out == job.id)
            });
            if !waits && !user {
                let what = format!("job {} is too wide for who is there, and waits nowhere", job.id);
                return self.broken(Check::Lost, what);
            }
        }
        Ok(())
    }

    /// Nothing is under way: a broker believes of each site that it hears, and that has told it all, what is true; before
    /// opaque sites, nothing that is not.
    pub(super) fn check_views(&self) -> Result<(), Broken> {
        let nature = self.scenario.strategy.nature();
        if !nature.brokers
            || self.liar.is_some()
            || self.event_list.under_way() > 0
            || !self.members().all(Site::is_quiet)
        {
            return Ok(());
        }
        let grid = &self.scenario.grid;
        let peer_at = |site: SiteId| {
            let site = &self.sites[grid.rank(site)];
            site.peer.as_ref().filter(|_| site.is_member())
        };
        for broker in 0..grid.brokers() {
            let broker = grid.at_rank(broker);
            let Some(desk) = peer_at(broker) else { continue };
            for (id, book) in desk.books() {
                let Some(site) = peer_at(id) else { continue };
                let hears = desk.presence(id) == Presence::Here && site.presence(broker) == Presence::Here;
                if !hears || !site.has_told(broker) {
                    continue;
                }
                let running = site.running().chain(site.parts()).map(|job| (job, true));
                // Until it hears that the job was taken over, a site has a part of which its broker knows that it means nothing.
                let is_void = |job: JobId| {
                    let part = self.sites[grid.rank(id)].disk.part_of(job);
                    part.is_some_and(|(_, attempt)| attempt.epoch < self.watch.newest(job))
                };
                let true_state: BTreeSet<(JobId, bool)> = running
                    .chain(site.pooled().map(|job| (job, false)))
                    .filter(|&(job, _)| !is_void(job))
                    .collect();
                let book: BTreeSet<(JobId, bool)> =
                    book.into_iter().filter(|&(job, _)| !is_void(job)).collect();
                let is_there =
                    |&(job, _): &(JobId, bool)| true_state.iter().any(|&(true_job, _)| true_job == job);
                let is_true = if nature.learns { book.iter().all(is_there) } else { book == true_state };
                if !is_true {
                    let what = format!(
                        "broker {broker} believes that site {id} has {book:?}; it has {true_state:?}"
                    );
                    return self.broken(Check::Views, what);
                }
            }
        }
        Ok(())
    }

    /// Nothing is under way, and a site does not take a job of its list that it has room for.
    pub(super) fn check_starvation(&self) -> Result<(), Broken> {
        let Some(steal) = self.scenario.strategy.steal_from_homes() else { return Ok(()) };
        if self.liar.is_some() {
            return Ok(());
        }
        let options = &self.scenario.options;
        let proved = steal.order == Order::default()
            && steal.select == Selection::default()
            && options.discovery == Discovery::Standing
            && options.margin.is_none()
            && options.heartbeat.is_none();
        if !proved || self.event_list.under_way() > 0 || !self.sites.iter().all(Site::is_quiet) {
            return Ok(());
        }
        let peers: Vec<&Peer> = self.sites.iter().filter_map(|site| site.peer.as_ref()).collect();
        let queues: Vec<WaitingList> = peers.iter().map(|peer| peer.own().clone()).collect();
        for (rank, peer) in peers.iter().enumerate() {
            if peer.held().next().is_some() {
                continue;
            }
            let Some(list) = closed_form::list(&queues, &self.scenario.grid, steal.threshold, rank) else {
                continue;
            };
            if let Some(job) = queues[list.home].first(list.widths.fitting(peer.free())) {
                let what = format!("all is quiet, and site {} does not take job {}", peer.site(), job.id);
                return self.broken(Check::Starvation, what);
            }
        }
        Ok(())
    }
}
