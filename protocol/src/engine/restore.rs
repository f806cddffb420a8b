//! A site restarts with what its journal says.
//!
//! What is not in the journal is found out anew, by the messages of every day: the restarted site believes nothing
//! (it asks), repeats unanswered transfers, and tells every larger site what its queue is now, until each has seen
//! it. Others notice only that its numbers jump.

use scheduler::{EventKind, JobSpec, Time};

use crate::config::Interrupted;
use crate::core::Core;
use crate::engine::Engine;
use crate::engine::Family;
use crate::handover::Answer;
use crate::journal::{Durable, Fact, Kept, Place};
use crate::mutant::Mutant;
use crate::rank::Rank;
use crate::timers::Timer;

impl Core {
    /// The mistake [`Mutant::OutForgotten`].
    fn settle_all(&mut self) {
        let out: Vec<_> = self.ledger.transfers_out().map(|(to, transfer)| (to, transfer.number)).collect();
        for (to, number) in out {
            let (record, _) = self.ledger.settle(to, number, Answer::Accepted).expect("it is out");
            self.apply(record);
        }
    }

    fn resume_transfers(&mut self, now: Time) {
        let Some(retry) = self.config.options.retry else { return };
        let out: Vec<Timer> = self
            .ledger
            .transfers_out()
            .map(|(to, transfer)| Timer::Transfer(self.rank_of(to), transfer.number))
            .collect();
        for timer in out {
            self.timers.set(timer, now, retry);
        }
    }
}

impl<F: Family> Engine<F> {
    /// Goes on where the journal ends, in an incarnation that has just begun.
    pub(crate) fn go_on(&mut self, durable: &Durable, now: Time) {
        let core = &mut self.core;
        let incarnation = core.incarnation;
        core.write(Fact::Began { incarnation });
        if durable.is_new() {
            return;
        }
        core.ledger = durable.ledger.clone();
        core.ledger.began(incarnation);
        if core.has(Mutant::TombsForgotten) {
            core.ledger.forget_answers();
        }
        if core.has(Mutant::OutForgotten) {
            core.settle_all();
        }
        if let Some(membership) = &mut core.membership {
            membership.restore(durable);
        }
        let running = durable.running().count();
        core.event(EventKind::Recovered {
            incarnation,
            waiting: u32::try_from(durable.jobs.len() - running).unwrap_or(u32::MAX),
            running: u32::try_from(running).unwrap_or(u32::MAX),
            out: u32::try_from(durable.ledger.transfers_out().count()).unwrap_or(u32::MAX),
        });
        F::remember(self, durable);
        let mut jobs: Vec<&Kept> = durable.jobs.values().collect();
        jobs.sort_unstable_by_key(|kept| kept.job.key());
        for kept in jobs {
            self.take_up(now, kept);
        }
        if !self.core.has(Mutant::RoutesForgotten) {
            let grid = self.core.config.grid.clone();
            self.core.routed =
                durable.routes.iter().map(|&(to, number)| (Rank::of(&grid, to), number)).collect();
        }
        self.core.resume_transfers(now);
        self.ask_and_tell(now);
    }

    /// Begins with an empty journal among others that know this site.
    pub(crate) fn begin_with_nothing(&mut self, now: Time) {
        let core = &mut self.core;
        let incarnation = core.incarnation;
        core.write(Fact::Began { incarnation });
        core.ledger.began(incarnation);
        core.event(EventKind::Recovered { incarnation, waiting: 0, running: 0, out: 0 });
        self.ask_and_tell(now);
    }

    fn ask_and_tell(&mut self, now: Time) {
        self.core.fresh = true;
        F::resume(self, now);
    }

    /// Takes up a job that the journal says is this site's.
    fn take_up(&mut self, now: Time, kept: &Kept) {
        let Kept { job, custody, mut place, started } = *kept;
        if started.is_some() {
            if self.core.has(Mutant::JobsForgotten) {
                return;
            }
            let kills = self.core.config.options.interrupted == Interrupted::Kill
                && !self.core.has(Mutant::KilledRunAgain);
            let kill = kills || self.core.has(Mutant::InterruptedGivenUp);
            // It was taken over while it executed: it went on, and does not restart.
            let void = self.core.is_void_epoch(job.id, custody.epoch);
            let killed = kill || void;
            self.core.event(EventKind::Interrupted { job: job.id, processors: job.processors, killed });
            if killed {
                self.core.write(Fact::Ended { job: job.id });
                if !void {
                    self.core.guarded_done(job.id, custody);
                }
                return;
            }
            place = F::place_again(&self.core, &job, place);
            self.core.own_up(job, custody, place);
        }
        self.core.custody.insert(job.id, custody);
        self.put_back(now, job, place);
    }

    fn put_back(&mut self, now: Time, job: JobSpec, place: Place) {
        let home = self.core.config.home_rank(&job);
        let is_here = F::belongs(&self.core, home, &job) == Some(self.core.rank);
        if job.processors > self.core.width() && !is_here && self.core.membership.is_some() {
            self.core.orphan(job);
        } else {
            F::put_back(self, now, job, place);
        }
    }
}
