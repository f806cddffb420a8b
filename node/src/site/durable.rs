//! The site loop with a journal: one atomic write for all that happens at an instant, before anybody sees it.
//!
//! Frames wait for the commit, see [`super::unsent`]. Whoever asks by the control interface has everything committed
//! first, or, for events, is told those that are. A start needs no waiting: if it is forgotten, so is the timer that
//! stands for the job.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use anyhow::Context as _;
use protocol::journal::Kept;
use protocol::{Fact, Input, Peer};
use scheduler::{Event, JobId, SiteId};
use tokio::time::Instant;

use super::{SiteLoop, limited};
use crate::config::NewLife;
use crate::journal::error::NoEvents;
use crate::journal::{Journal, Saved, Took, Writer};
use crate::peer_address::PeerAddress;

/// Metrics are kept with every so many events: a start counts fewer again.
const TOTALS_EVERY: u64 = 5000;

/// Frames of an incarnation have larger numbers than this, so that no number comes twice.
pub(super) fn first_frame(incarnation: u32) -> u64 {
    u64::from(incarnation) << 40
}

impl SiteLoop {
    /// Goes on where the journal ends, or begins a new incarnation with one that is empty; the network took so long to start.
    pub(crate) fn resume(
        mut self,
        mut journal: Journal,
        saved: Saved,
        new_incarnation: Option<NewLife>,
        network: Duration,
    ) -> anyhow::Result<SiteLoop> {
        let begun = Instant::now();
        let restarted = saved.durable.incarnation.is_some();
        let new_incarnation = new_incarnation.filter(|_| !restarted);
        if let Some(order) = saved.clock.or(new_incarnation.map(|new| new.clock)) {
            self.clock.start(&order, SystemTime::now(), begun)?;
            self.control.arm();
        }
        self.now = saved.last_event.into_iter().chain([self.clock.at(begun)]).max().expect("there is one");
        self.arrivals.resume(&saved.arrivals, saved.portions, saved.handed_over);
        for (job, run_time) in &saved.run_times {
            self.executor.learn(*job, *run_time);
        }
        self.metrics.go_on(&saved.totals);
        // Events name jobs only.
        let here = saved.durable.jobs.values().map(|Kept { job, .. }| job);
        let out = saved.durable.ledger.transfers_out().map(|(_, transfer)| &transfer.job);
        here.chain(out).for_each(|job| self.metrics.introduce(job));
        saved.untold.iter().for_each(|event| self.metrics.observe(event));
        self.metrics.take_stock(&saved.durable);
        self.totals_at = saved.totals.events;
        self.events.resume(saved.next_event);
        self.others.extend(saved.others);
        if let Some(NewLife { clock, .. }) = &new_incarnation {
            journal.clock(clock);
        }
        self.journal = Some(Writer::new(journal));
        let config = self.peer.config().clone();
        let peer = match new_incarnation {
            Some(new) => Peer::restore_lost(config, new.journals_lost, self.now),
            None => Peer::restore(config, &saved.durable, self.now),
        };
        self.peer = limited(peer, &self.plan_limit, self.outside.is_some());
        if let Some(outside) = self.outside.as_mut().filter(|_| restarted) {
            outside.resume(&self.peer);
        }
        self.metrics.learned(&self.peer.efficiencies());
        self.obey_peer()?;
        // Where somebody else decides what starts, what waited or was to leave may have begun since.
        let is_outside = self.outside.is_some();
        let here = saved.durable.jobs.iter().filter(|(_, kept)| is_outside || kept.started.is_some());
        let out = saved.durable.ledger.transfers_out().filter(|_| is_outside);
        let out = out.map(|(_, transfer)| transfer.job.id);
        self.begin_executing(here.map(|(job, _)| *job).chain(out).collect())?;
        self.unsettled = restarted && self.executor.may_have_left_some();
        if restarted {
            self.rejoining = Some(begun);
            let Took { open, read } = saved.took;
            let restore = begun.elapsed();
            self.metrics.restarted([open, read, network, restore]);
            tracing::info!(
                incarnation = self.peer.incarnation(),
                jobs = saved.durable.jobs.len(),
                to_come = self.arrivals.held(),
                events = saved.next_event,
                ?open,
                ?read,
                ?network,
                ?restore,
                "the node goes on with its journal"
            );
        }
        if let Some(NewLife { journals_lost, .. }) = new_incarnation {
            self.rejoining = Some(begun);
            tracing::warn!(
                journals_lost,
                "the site begins another incarnation, without the journal that it had"
            );
        }
        self.commit()?;
        Ok(self)
    }

    /// Has the executor get ready; these executed when the last process ended.
    pub(crate) fn begin_executing(&mut self, executing: BTreeSet<JobId>) -> anyhow::Result<()> {
        let processors = self.peer.processors();
        self.executor.begin(executing, processors).context("failed to get ready to execute jobs (execution)")
    }

    /// Starts again what executed when the last process ended and may still, as the queue has it before all else, and waits until the rest of
    /// that is gone. Nobody hears anything of the site before.
    pub(super) async fn find_executions(&mut self) -> anyhow::Result<()> {
        (self.unsettled, self.awake) = (false, true);
        self.now = self.now.max(self.clock.at(Instant::now()));
        self.tell(Input::Turn)?;
        self.settle()?;
        self.withdraw_suspects()?;
        self.follow_queue()?;
        self.executor.keep_started().await.map_err(anyhow::Error::msg)?;
        self.commit()?;
        self.executor.launch(self.clock.factor());
        Ok(())
    }

    /// Notes a fact; without a journal the peer states none.
    pub(super) fn write(&mut self, fact: Fact) {
        let executor = &self.executor;
        if let Some(journal) = &mut self.journal {
            journal.write(fact, |job| executor.run_time(job));
        }
    }

    /// Has what was noted written if a frame has waited for it long enough, or if it has become much. A site that has
    /// more to do at once does that meanwhile: several instants share a write, and nobody has seen any of them.
    pub(super) fn commit_if_due(&mut self) -> anyhow::Result<()> {
        let Some(journal) = &self.journal else { return Ok(()) };
        let bytes = journal.pending_bytes();
        let is_back = self.take_back(self.unsent.is_much(bytes))?;
        if !is_back || !self.unsent.is_due(Instant::now(), bytes) {
            return Ok(());
        }
        if self.journal.as_ref().is_some_and(|journal| !journal.is_dirty()) {
            // Frames that were delayed: what led to them was written before.
            return self.commit();
        }
        self.note_totals();
        if let Some(journal) = &mut self.journal {
            journal.hand_over(self.unsent.take())?;
        }
        Ok(())
    }

    /// Takes back what was handed over if it is written, or waits for that, and lets its frames leave. Whether nothing
    /// is being written.
    fn take_back(&mut self, wait: bool) -> anyhow::Result<bool> {
        let Some(journal) = &mut self.journal else { return Ok(true) };
        if let Some(frames) = journal.take_back(wait)? {
            self.count_write();
            frames.into_iter().try_for_each(|outgoing| self.send_now(outgoing))?;
        }
        Ok(self.journal.as_ref().is_none_or(|journal| !journal.is_writing()))
    }

    /// The journal, if there is one, for what is noted seldom; nothing is being written.
    pub(super) fn journal_at_rest(&mut self) -> anyhow::Result<Option<&mut Journal>> {
        self.take_back(true)?;
        Ok(self.journal.as_mut().map(Writer::journal))
    }

    /// Until when a site that has nothing else to do puts off the write of what was noted.
    pub(super) fn listens_until(&self) -> Option<Instant> {
        let is_dirty = self.journal.as_ref().is_some_and(Writer::is_dirty);
        is_dirty.then(|| self.unsent.listens_until(Instant::now(), self.active)).flatten()
    }

    /// Writes what was noted, then sends what waits for that.
    pub(super) fn commit(&mut self) -> anyhow::Result<()> {
        self.take_back(true)?;
        loop {
            self.note_totals();
            let Some(journal) = &mut self.journal else { return Ok(()) };
            if journal.commit()? {
                self.count_write();
            }
            // One that cannot be sent is an event, which is written as well.
            let unsent = self.unsent.take();
            if unsent.is_empty() {
                return Ok(());
            }
            unsent.into_iter().try_for_each(|outgoing| self.send_now(outgoing))?;
        }
    }

    fn count_write(&mut self) {
        self.metrics.journal_written();
        self.unsent.written(Instant::now());
    }

    /// Notes metrics if there were many events since.
    fn note_totals(&mut self) {
        let Some(journal) = &mut self.journal else { return };
        let events = journal.next_event();
        if events - self.totals_at >= TOTALS_EVERY {
            journal.totals(self.metrics.totals_so_far());
            self.totals_at = events;
        }
    }

    /// Uses a moment without other work for the journal. Whether there is more to do.
    pub(super) fn tidy(&mut self) -> anyhow::Result<bool> {
        Ok(match self.journal_at_rest()? {
            Some(journal) => journal.tidy()?,
            None => false,
        })
    }

    /// Events that are written, from the memory, or from the journal if they are older. The rest is written soon.
    pub(super) fn page_of_events(
        &mut self,
        from: u64,
        limit: usize,
    ) -> anyhow::Result<Result<Vec<Event>, NoEvents>> {
        let Some(journal) = &self.journal else {
            return Ok(self.events.page(from, limit).map_err(NoEvents::from));
        };
        if journal.next_written() < journal.next_event() {
            self.unsent.asked(Instant::now());
        }
        let written = journal.next_written().saturating_sub(from);
        let limit = limit.min(usize::try_from(written).unwrap_or(usize::MAX));
        if limit == 0 {
            return Ok(Ok(Vec::new()));
        }
        if let Ok(page) = self.events.page(from, limit) {
            return Ok(Ok(page));
        }
        let older = self.journal_at_rest()?.expect("it was looked at");
        Ok(older.read_events(from, limit).map_err(NoEvents::from))
    }

    /// Keeps where other sites listen for the next incarnation.
    pub(super) fn note_addresses(&mut self, peers: &[PeerAddress]) -> anyhow::Result<()> {
        if let Some(journal) = self.journal_at_rest()? {
            journal.peers(peers);
        }
        self.commit()
    }

    /// Keeps which journals the connected sites have, which they say when they connect.
    pub(super) fn note_others(&mut self) {
        for (site, link) in self.sender.state().links {
            if let Some(instance) = link.instance.filter(|_| link.connected) {
                self.note_other(site, instance);
            }
        }
    }

    /// Keeps which journal another site has: one that comes back without it has forgotten its jobs.
    pub(super) fn note_other(&mut self, site: SiteId, instance: u64) {
        if let Some(journal) = &mut self.journal
            && self.others.insert(site, instance) != Some(instance)
        {
            journal.other(site, instance);
        }
    }

    /// Notes how long it took to find all others after a restart, once they are there.
    pub(super) fn look_for_rejoin(&mut self, ready: bool) {
        if ready && let Some(since) = self.rejoining.take() {
            let took = since.elapsed();
            tracing::info!(?took, "all sites are connected again");
            self.metrics.rejoined(took);
        }
    }
}
