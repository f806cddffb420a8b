//! A site begins again with what its journal says.
//!
//! What is not in the journal is found out anew, by the messages of every day: the restarted site believes nothing
//! (it asks), repeats unanswered transfers, and tells every larger site what its queue is now, until each has seen
//! it. Others notice only that its numbers jump.

use scheduler::{EventKind, JobSpec, Time};

use crate::canary::Canary;
use crate::config::{Interrupted, PeerConfig};
use crate::handover::Answer;
use crate::journal::{Durable, Fact, Kept, Place, first_number};
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
        let (mut peer, life) = Peer::unborn(config, durable, first_number);
        peer.go_on(durable, life, now);
        peer
    }

    /// As [`Peer::restore`], of a peer that makes a mistake.
    #[cfg(feature = "canary")]
    pub fn restore_with(config: PeerConfig, durable: &Durable, now: Time, canary: Option<Canary>) -> Peer {
        let reuses = canary == Some(Canary::NumbersBeginAgain);
        let first = |life| if reuses { 0 } else { first_number(life) };
        let (mut peer, life) = Peer::unborn(config, durable, first);
        peer.canary = canary;
        peer.go_on(durable, life, now);
        peer
    }

    /// A peer in this life, with an empty journal, among others that know it.
    pub(crate) fn with_nothing(config: PeerConfig, life: u32, now: Time) -> Peer {
        let mut peer = Peer::at_rest(config, life, first_number(life));
        peer.write(Fact::Began { life });
        peer.ledger.began(life);
        peer.event(EventKind::Recovered { life, waiting: 0, running: 0, out: 0 });
        peer.ask_and_tell(now);
        peer
    }

    /// A peer that knows nothing yet, and the number of its life.
    fn unborn(config: PeerConfig, durable: &Durable, first: impl Fn(u32) -> u64) -> (Peer, u32) {
        let life = durable.life.map_or(0, |last| last + 1);
        (Peer::at_rest(config, life, first(life)), life)
    }

    fn go_on(&mut self, durable: &Durable, life: u32, now: Time) {
        let peer = self;
        peer.write(Fact::Began { life });
        if durable.is_new() {
            return;
        }
        peer.ledger = durable.ledger.clone();
        peer.ledger.began(life);
        if peer.has(Canary::TombsForgotten) {
            peer.ledger.forget_answers();
        }
        if peer.has(Canary::OutForgotten) {
            peer.settle_all();
        }
        if let Some(membership) = &mut peer.membership {
            membership.restore(durable);
        }
        let running = durable.running().count();
        peer.event(EventKind::Recovered {
            life,
            waiting: u32::try_from(durable.jobs.len() - running).unwrap_or(u32::MAX),
            running: u32::try_from(running).unwrap_or(u32::MAX),
            out: u32::try_from(durable.ledger.transfers_out().count()).unwrap_or(u32::MAX),
        });
        let mut jobs: Vec<&Kept> = durable.jobs.values().collect();
        jobs.sort_unstable_by_key(|kept| kept.job.key());
        for kept in jobs {
            peer.take_up(now, kept);
        }
        if !peer.has(Canary::RoutesForgotten) {
            let grid = peer.config.grid.clone();
            peer.routed = durable.routes.iter().map(|&(to, number)| (grid.rank(to), number)).collect();
        }
        peer.resume_transfers(now);
        peer.ask_and_tell(now);
    }

    /// Others were told something by an earlier life, and told it something, that this one does not know.
    fn ask_and_tell(&mut self, now: Time) {
        self.fresh = true;
        if self.lists.is_some() {
            self.resume_stealing(now);
        }
        if self.pool.is_some() {
            self.pool_resume(now);
        }
    }

    /// The mistake [`Canary::OutForgotten`].
    fn settle_all(&mut self) {
        let out: Vec<_> = self.ledger.transfers_out().map(|(to, transfer)| (to, transfer.number)).collect();
        for (to, number) in out {
            let (record, _) = self.ledger.settle(to, number, Answer::Accepted).expect("it is out");
            self.apply(record);
        }
    }

    /// Takes up a job that the journal says is this site's.
    fn take_up(&mut self, now: Time, kept: &Kept) {
        let Kept { job, custody, mut place, started } = *kept;
        if started.is_some() {
            if self.has(Canary::JobsForgotten) {
                return;
            }
            let kills =
                self.config.options.interrupted == Interrupted::Kill && !self.has(Canary::KilledRunAgain);
            let kill = kills || self.has(Canary::InterruptedGivenUp);
            // It was taken over while it executed: it went on, and does not begin again.
            let void = self.is_void_epoch(job.id, custody.epoch);
            let killed = kill || void;
            self.event(EventKind::Interrupted { job: job.id, processors: job.processors, killed });
            if killed {
                self.write(Fact::Ended { job: job.id });
                if !void {
                    self.ward_done(job.id, custody);
                }
                return;
            }
            if self.lists.is_some() && self.config.home_rank(&job) != Some(self.rank) {
                // It is stolen: nobody steals it back.
                place = Place::Held;
            }
            self.own_up(job, custody, place);
        }
        self.custody.insert(job.id, custody);
        self.put_back(now, job, place);
    }

    fn put_back(&mut self, now: Time, job: JobSpec, place: Place) {
        let is_home = self.pool.is_some() || self.config.home_rank(&job) == Some(self.rank);
        if job.processors > self.processors() && !is_home && self.membership.is_some() {
            self.strand(job);
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
