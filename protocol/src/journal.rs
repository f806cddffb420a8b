//! What a site must not forget: facts, and the state that they make.
//!
//! With [`crate::Options::journal`] a peer emits a [`Fact`] for every change of what it owns. The rule for drivers:
//! **one [`crate::Peer::handle`], one atomic write, then its other outputs.** Nothing that a peer wants sent, started
//! or recorded may happen before all facts of the same call are durable; facts of several calls may be written
//! together. Then a crash between any two steps is, for all others, a delay and the loss of some messages, and the
//! safety of [`crate::handover`] does not depend on when it happens.
//!
//! [`Durable`] is exactly what the facts say. [`crate::Peer::restore`] makes a peer of it. Everything else (views,
//! requests, standing offers, boards, timers) is lost in a crash and found out again. Numbers that others compare
//! with older ones begin anew, far higher, with each incarnation, so a restarted site never repeats one.

use std::collections::{BTreeMap, BTreeSet};

use scheduler::{JobId, JobSpec, SiteId, Time};
use serde::{Deserialize, Serialize};

use crate::handover::{Custody, Ledger, Record};
use crate::message::{Report, Void};
pub use crate::numbers::{INCARNATIONS_PER_JOURNAL, JOURNALS_MAX, journal_of, restarts_of};

/// A job that its guardian gave away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Guarded {
    /// The job as it was given away, enough to run it again.
    pub job: JobSpec,
    /// Take-overs so far.
    pub epoch: u32,
    /// How often it was granted or came back, as far as the guardian knows.
    pub moves: u32,
    /// Who has it, or was granted it.
    pub holder: SiteId,
}

/// Where a job waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Place {
    /// In the queue of the site.
    Queue,
    /// Before all others: the site must take it and it has not fitted yet, or it was interrupted here.
    Held,
}

/// What a family remembers something of. A journal is of one strategy, so that each family has all tables for itself and
/// gives them their meaning; nobody else reads them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Topic {
    /// Which table the row is in. The numbers are on disk: a family never uses one again.
    pub table: u8,
    /// The row, by two numbers: sites, users and ranks are short, jobs and transfers long.
    pub a: u32,
    /// The other one.
    pub b: u64,
}

/// What is remembered of one topic, as the family has it. A job with where it is needs all of them.
pub type Words = [u64; 12];

/// One durable change at a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fact {
    /// A process of the site began to run.
    Began {
        /// Journals lost before times `INCARNATIONS_PER_JOURNAL`, plus restarts with this one; 0 at first.
        incarnation: u32,
    },
    /// The site owns a job that waits here.
    Owns {
        /// The job with all that is needed to run it.
        job: JobSpec,
        /// How often it moved and was taken over, and who is its guardian.
        custody: Custody,
        /// Where it waits.
        place: Place,
    },
    /// An owned job begins to execute.
    Started {
        /// The owned job that executes from now on.
        job: JobId,
        /// When it began to execute, by the clock of the site.
        at: Time,
    },
    /// An owned job ended, or was given up.
    Ended {
        /// The job that this site forgets.
        job: JobId,
    },
    /// A transfer changed. A job that goes out is no longer owned.
    Ledger(Record),
    /// A transfer that just went out brings a job home; it is always accepted and not called back.
    Routed {
        /// The site that the job goes home to.
        to: SiteId,
        /// Number of the transfer from this site to the receiver.
        number: u64,
    },
    /// Another site has, or was granted, a job that this site is responsible for.
    Guarded(Guarded),
    /// This site is no longer responsible for a job that it gave away, or has it again.
    Unguarded {
        /// The job that is a guarded job no longer.
        job: JobId,
    },
    /// Another site must learn what became of a job that it is responsible for.
    Reports(Report),
    /// The guardian has noted the report; it is not repeated.
    Reported {
        /// The job that the report was about.
        job: JobId,
    },
    /// This site took a job over; everybody must learn it.
    TookOver(Void),
    /// Another site took a job over.
    Superseded(Void),
    /// Another site took a job over and may tell of it no more; this one tells everybody in its place.
    PassesOn(Void),
    /// What the family of the site is to find when it restarts.
    Remembers {
        /// What it is of.
        topic: Topic,
        /// None once it need not be known.
        words: Option<Words>,
    },
}

/// A job that a site owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// The job with all that is needed to run it.
    pub job: JobSpec,
    /// How often it moved and was taken over, and who is its guardian.
    pub custody: Custody,
    /// Where it waits, or waited.
    pub place: Place,
    /// Since when it executes; none if it waits.
    pub started: Option<Time>,
}

/// What a site finds when it restarts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Durable {
    /// Counts restarts. None before the first incarnation.
    pub incarnation: Option<u32>,
    /// What the site owns.
    pub jobs: BTreeMap<JobId, Kept>,
    /// Transfers from and to the site.
    pub ledger: Ledger,
    /// Unanswered transfers that bring a job home: receiver and number.
    pub routes: BTreeSet<(SiteId, u64)>,
    /// Of jobs that the site is responsible for and gave away.
    pub guarded_jobs: BTreeMap<JobId, Guarded>,
    /// What others must still learn of their jobs.
    pub reports: BTreeMap<JobId, Report>,
    /// The newest epochs of jobs that were taken over.
    pub voids: BTreeMap<JobId, u32>,
    /// What the site tells everybody of, in that order: what it took over, and what it passes on.
    pub taken_over: Vec<Void>,
    /// What its family wrote down.
    pub memory: BTreeMap<Topic, Words>,
}

impl Durable {
    /// Applies one fact.
    ///
    /// # Panics
    /// If it contradicts what was written before: a peer never does that, a store reports it as damage.
    pub fn apply(&mut self, fact: &Fact) {
        match *fact {
            Fact::Began { incarnation } => {
                assert!(self.incarnation.is_none_or(|last| last < incarnation), "incarnations are counted");
                self.incarnation = Some(incarnation);
                self.ledger.began(incarnation);
            }
            Fact::Owns { job, custody, place } => {
                self.jobs.insert(job.id, Kept { job, custody, place, started: None });
            }
            Fact::Started { job, at } => {
                let kept = self.jobs.get_mut(&job).expect("only an owned job starts");
                kept.started = Some(at);
            }
            Fact::Ended { job } => {
                let gone = self.jobs.remove(&job);
                assert!(gone.is_some(), "only an owned job ends");
            }
            Fact::Ledger(record) => {
                self.ledger.apply(&record);
                match record {
                    Record::Out { transfer, .. } => {
                        let gone = self.jobs.remove(&transfer.job.id);
                        assert!(gone.is_some_and(|kept| kept.started.is_none()), "only a waiting job moves");
                    }
                    Record::Settled { to, number, .. } | Record::Voided { to, number } => {
                        self.routes.remove(&(to, number));
                    }
                    Record::Tombstone { .. } | Record::Floor { .. } | Record::Renumbered { .. } => {}
                }
            }
            Fact::Routed { to, number } => {
                self.routes.insert((to, number));
            }
            Fact::Guarded(guarded) => {
                self.guarded_jobs.insert(guarded.job.id, guarded);
            }
            Fact::Unguarded { job } => {
                self.guarded_jobs.remove(&job);
            }
            Fact::Reports(report) => {
                self.reports.insert(report.job, report);
            }
            Fact::Reported { job } => {
                self.reports.remove(&job);
            }
            Fact::TookOver(void) | Fact::PassesOn(void) => {
                self.taken_over.push(void);
                self.voids.insert(void.job, void.epoch);
            }
            Fact::Superseded(void) => {
                self.voids.insert(void.job, void.epoch);
            }
            Fact::Remembers { topic, words: Some(words) } => drop(self.memory.insert(topic, words)),
            Fact::Remembers { topic, words: None } => drop(self.memory.remove(&topic)),
        }
    }

    /// Jobs that executed when the site was last heard of.
    pub fn running(&self) -> impl Iterator<Item = &Kept> {
        self.jobs.values().filter(|kept| kept.started.is_some())
    }

    /// The number of the incarnation that begins with this journal.
    pub(crate) fn next_incarnation(&self) -> u32 {
        self.incarnation.map_or(0, |last| last + 1)
    }

    /// Most families write nothing of their own down.
    pub(crate) fn has_no_memory(&self) -> Result<(), String> {
        match self.memory.keys().next() {
            None => Ok(()),
            Some(topic) => Err(format!("it has {topic:?}, which no site of this strategy writes")),
        }
    }

    /// Whether nothing was ever written.
    pub fn is_new(&self) -> bool {
        self.incarnation.is_none()
    }
}
