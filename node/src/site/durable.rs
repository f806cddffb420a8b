//! The site loop with a journal: one atomic write for all that happens at an instant, before anybody sees it.
//!
//! Frames wait for the commit in `unsent`; the control interface is answered between instants, so it tells only what
//! is written. A start needs no waiting: if it is forgotten, so is the timer that stands for the job.

use std::time::SystemTime;

use protocol::Fact;
use protocol::journal::Kept;
use scheduler::{Event, SiteId};
use tokio::time::Instant;

use super::SiteLoop;
use crate::config::PeerAddress;
use crate::event_log::Forgotten;
use crate::journal::{Journal, Saved};

/// Frames of a life have larger numbers than this, so that no number comes twice.
pub(super) fn first_frame(life: u32) -> u64 {
    u64::from(life) << 40
}

impl SiteLoop {
    /// Goes on where the journal ends.
    pub(crate) fn resume(mut self, journal: Journal, saved: Saved) -> anyhow::Result<SiteLoop> {
        let restarted = saved.durable.life.is_some();
        if let Some(order) = &saved.clock {
            self.clock.start(order, SystemTime::now(), Instant::now())?;
            self.control.arm();
        }
        let last = saved.events.last().map(|event| event.at);
        self.now = last.into_iter().chain([self.clock.at(Instant::now())]).max().expect("there is one");
        self.arrivals.resume(&saved.arrivals, saved.handed_over);
        for (job, run_time) in &saved.run_times {
            self.executor.learn(*job, *run_time);
        }
        // Events name jobs only.
        let here = saved.durable.jobs.values().map(|Kept { job, .. }| job);
        let out = saved.durable.ledger.transfers_out().map(|(_, transfer)| &transfer.job);
        here.chain(out).for_each(|job| self.metrics.introduce(job));
        saved.events.iter().for_each(|event| self.metrics.observe(event));
        self.events.resume(&saved.events);
        self.others.extend(saved.others);
        self.journal = Some(journal);
        self.peer = protocol::Peer::restore(self.peer.config().clone(), &saved.durable, self.now);
        self.obey_peer()?;
        if restarted {
            self.rejoining = Some(Instant::now());
            tracing::info!(
                life = self.peer.life(),
                jobs = saved.durable.jobs.len(),
                to_come = saved.arrivals.len(),
                events = saved.events.len(),
                "the node goes on with its journal"
            );
        }
        self.commit()?;
        Ok(self)
    }

    /// Notes a fact; without a journal the peer states none.
    pub(super) fn write(&mut self, fact: &Fact) {
        let executor = &self.executor;
        if let Some(journal) = &mut self.journal {
            journal.write(fact, |job| executor.run_time(job));
        }
    }

    /// Writes what was noted, then sends what waits for that.
    pub(super) fn commit(&mut self) -> anyhow::Result<()> {
        while let Some(journal) = &mut self.journal {
            if journal.is_dirty() {
                journal.commit()?;
                self.metrics.journal_written();
            }
            // One that cannot be sent is an event, which is written as well.
            let unsent = std::mem::take(&mut self.unsent);
            if unsent.is_empty() {
                break;
            }
            unsent.into_iter().try_for_each(|outgoing| self.send_now(outgoing))?;
        }
        Ok(())
    }

    /// Events from the memory, or from the journal if they are older.
    pub(super) fn page_of_events(
        &self,
        from: u64,
        limit: usize,
    ) -> anyhow::Result<Result<Vec<Event>, Forgotten>> {
        Ok(match (self.events.page(from, limit), &self.journal) {
            (Err(_), Some(journal)) => Ok(journal.read_events(from, limit)?),
            (page, _) => page,
        })
    }

    /// Keeps where other sites listen for the next life.
    pub(super) fn note_addresses(&mut self, peers: &[PeerAddress]) -> anyhow::Result<()> {
        if let Some(journal) = &mut self.journal {
            journal.peers(peers);
        }
        self.commit()
    }

    /// Keeps which journal another site has: one that comes back without it has forgotten its jobs.
    pub(super) fn note_other(&mut self, site: SiteId, incarnation: u64) {
        if let Some(journal) = &mut self.journal
            && self.others.insert(site, incarnation) != Some(incarnation)
        {
            journal.other(site, incarnation);
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
