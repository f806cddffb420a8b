//! A site begins again with what its journal says.
//!
//! What is not in the journal is found out anew, by the messages of every day: the restarted site believes nothing
//! (it asks), repeats unanswered transfers, and tells every larger site what its queue is now, until each has seen
//! it. Others notice only that its numbers jump.

use scheduler::{EventKind, JobSpec, Time};

use crate::config::{Interrupted, PeerConfig};
use crate::handover::Custody;
use crate::journal::{Durable, Fact, Kept, Place};
use crate::peer::Peer;
use crate::timers::Timer;

impl Peer {
    /// A peer that goes on where its journal ends; a new one if the journal is empty. Drain [`Peer::poll_output`],
    /// then give it a turn.
    ///
    /// On links that lose messages, and a crash loses some, [`crate::Options::retry`] must be set.
    ///
    /// # Panics
    /// If the journal is of another grid or site.
    pub fn restore(config: PeerConfig, durable: &Durable, now: Time) -> Peer {
        let Some(last) = durable.life else {
            let mut peer = Peer::new(config);
            peer.write(Fact::Began { life: 0 });
            return peer;
        };
        let mut peer = Peer::at_rest(config, last + 1);
        peer.write(Fact::Began { life: last + 1 });
        peer.ledger = durable.ledger.clone();
        if let Some(membership) = &mut peer.membership {
            membership.restore(durable);
        }
        let running = durable.running().count();
        peer.event(EventKind::Recovered {
            life: last + 1,
            waiting: u32::try_from(durable.jobs.len() - running).unwrap_or(u32::MAX),
            running: u32::try_from(running).unwrap_or(u32::MAX),
            out: u32::try_from(durable.ledger.transfers_out().count()).unwrap_or(u32::MAX),
        });
        let mut jobs: Vec<&Kept> = durable.jobs.values().collect();
        jobs.sort_unstable_by_key(|kept| kept.job.key());
        for kept in jobs {
            peer.take_up(now, kept);
        }
        for &(to, number) in &durable.routes {
            let to = peer.config.grid.rank(to);
            peer.routed.insert((to, number));
        }
        peer.resume_transfers(now);
        peer.fresh = true;
        if peer.lists.is_some() {
            peer.resume_stealing(now);
        }
        if peer.pool.is_some() {
            peer.pool_resume(now);
        }
        peer
    }

    /// Takes up a job that the journal says is this site's.
    fn take_up(&mut self, now: Time, kept: &Kept) {
        let Kept { job, custody, mut place, started } = *kept;
        if started.is_some() {
            let kill = self.config.options.interrupted == Interrupted::Kill;
            self.event(EventKind::Interrupted { job: job.id, processors: job.processors, killed: kill });
            if kill {
                return self.write(Fact::Ended { job: job.id });
            }
            if self.lists.is_some() && self.config.home_rank(&job) != Some(self.rank) {
                // It is stolen: nobody steals it back.
                place = Place::Held;
            }
            self.own_up(job, custody, place);
        }
        if custody != Custody::default() {
            self.custody.insert(job.id, custody);
        }
        self.put_back(now, job, place);
    }

    fn put_back(&mut self, now: Time, job: JobSpec, place: Place) {
        if self.pool.is_some() {
            self.pool_submitted(now, job);
        } else if place == Place::Held && self.lists.is_some() {
            self.held.push_back(job);
        } else {
            self.enqueue(now, job);
        }
    }

    fn resume_transfers(&mut self, now: Time) {
        let Some(retry) = self.config.options.retry else { return };
        let out: Vec<Timer> = self
            .ledger
            .transfers_out()
            .map(|(to, transfer)| Timer::Transfer(self.config.grid.rank(to), transfer.number))
            .collect();
        for timer in out {
            self.timers.set(timer, now, retry);
        }
    }

    fn resume_stealing(&mut self, now: Time) {
        self.views.iter_mut().for_each(|view| view.forget());
        if self.polling.is_some() {
            return;
        }
        for thief in self.rank + 1..self.config.grid.len() {
            self.notify(now, thief);
        }
        if self.lists().stolen_first() {
            // These sites act on what smaller ones tell them unasked: ask once, for nothing.
            for victim in 0..self.rank {
                self.request(now, victim, 0, false);
            }
        }
    }
}
