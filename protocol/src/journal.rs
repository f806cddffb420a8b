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
//! with older ones begin anew, far higher, with each life, so a restarted site never repeats one.

use std::collections::{BTreeMap, BTreeSet};

use scheduler::{JobId, JobSpec, SiteId, Strategy, Time};
use serde::{Deserialize, Serialize};

use crate::config::PeerConfig;
use crate::handover::{Custody, Ledger, Record};
use crate::lawful::{EPOCH_MAX, is_job_of, is_site_of, is_time};
use crate::membership::{Report, Ward};
use crate::message::Void;

/// How many numbers of each kind a site can use between two restarts.
const NUMBERS_PER_LIFE: u64 = 1 << 40;

/// Numbers of requests, versions, offers, claims and revisions of a life are larger than this.
pub(crate) fn first_number(life: u32) -> u64 {
    u64::from(life & 0x00ff_ffff) * NUMBERS_PER_LIFE
}

/// A site that lost its journal so often minus one does not come back again: numbers and epochs have room for so many.
pub const JOURNALS_MAX: u32 = 16;

/// Lives of one journal. The first with the next journal is numbered from there, so that others see by the number that
/// the site knows nothing of what it was told before.
pub const LIVES_PER_JOURNAL: u32 = 1 << 16;

/// How many journals the site had lost before this life.
pub fn journal_of(life: u32) -> u32 {
    life / LIVES_PER_JOURNAL
}

/// How often the site began again with the journal of this life.
pub fn restarts_of(life: u32) -> u32 {
    life % LIVES_PER_JOURNAL
}

/// So many transfers from one journal to one journal have numbers.
const TRANSFERS_PER_JOURNALS: u64 = 1 << 52;

/// Numbers of transfers from a site with the second journal to one with the first are larger.
pub(crate) fn first_transfer(receiver: u32, sender: u32) -> u64 {
    let [receiver, sender, journals] = [receiver, sender, JOURNALS_MAX].map(u64::from);
    (receiver.min(journals) * journals + sender.min(journals)) * TRANSFERS_PER_JOURNALS
}

/// For which journal of its receiver a transfer was numbered.
pub(crate) fn receiving_journal(number: u64) -> u32 {
    let journals = number.saturating_sub(1) / TRANSFERS_PER_JOURNALS;
    u32::try_from(journals / u64::from(JOURNALS_MAX)).unwrap_or(u32::MAX)
}

/// Where a job waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Place {
    /// In the queue of the site.
    Queue,
    /// Before all others: the site must take it and it has not fitted yet, or it was interrupted here.
    Held,
}

/// One durable change at a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fact {
    /// The site began to run for the so-many-th time, from 0.
    Began {
        /// The number.
        life: u32,
    },
    /// The site owns a job that waits here.
    Owns {
        /// The job.
        job: JobSpec,
        /// Its history.
        custody: Custody,
        /// Where it waits.
        place: Place,
    },
    /// An owned job begins to execute.
    Started {
        /// The job.
        job: JobId,
        /// When.
        at: Time,
    },
    /// An owned job ended, or was given up.
    Ended {
        /// The job.
        job: JobId,
    },
    /// A transfer changed. A job that goes out is no longer owned.
    Ledger(Record),
    /// A transfer that just went out brings a job home; it is always accepted and not called back.
    Routed {
        /// The receiver.
        to: SiteId,
        /// The transfer.
        number: u64,
    },
    /// Another site has, or was granted, a job that this site is responsible for.
    Ward(Ward),
    /// This site is no longer responsible for a job that it gave away, or has it again.
    Unward {
        /// The job.
        job: JobId,
    },
    /// Another site must learn what became of a job that it is responsible for.
    Reports(Report),
    /// It has.
    Reported {
        /// The job.
        job: JobId,
    },
    /// This site took a job over; everybody must learn it.
    TookOver(Void),
    /// Another site took a job over.
    Superseded(Void),
}

/// A job that a site owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// The job.
    pub job: JobSpec,
    /// Its history.
    pub custody: Custody,
    /// Where it waits, or waited.
    pub place: Place,
    /// Since when it executes; none if it waits.
    pub started: Option<Time>,
}

/// What a site finds when it begins again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Durable {
    /// Counts restarts. None before the first life.
    pub life: Option<u32>,
    /// What the site owns.
    pub jobs: BTreeMap<JobId, Kept>,
    /// Transfers from and to the site.
    pub ledger: Ledger,
    /// Unanswered transfers that bring a job home: receiver and number.
    pub routes: BTreeSet<(SiteId, u64)>,
    /// Of jobs that the site is responsible for and gave away.
    pub wards: BTreeMap<JobId, Ward>,
    /// What others must still learn of their jobs.
    pub reports: BTreeMap<JobId, Report>,
    /// The newest epochs of jobs that were taken over.
    pub voids: BTreeMap<JobId, u32>,
    /// What the site took over, in that order.
    pub taken_over: Vec<Void>,
}

impl Durable {
    /// Applies one fact.
    ///
    /// # Panics
    /// If it contradicts what was written before: a peer never does that, a store reports it as damage.
    pub fn apply(&mut self, fact: &Fact) {
        match *fact {
            Fact::Began { life } => {
                assert!(self.life.is_none_or(|last| last < life), "lives are counted");
                self.life = Some(life);
                self.ledger.began(life);
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
                    Record::Tomb { .. } | Record::Floor { .. } | Record::Renumbered { .. } => {}
                }
            }
            Fact::Routed { to, number } => {
                self.routes.insert((to, number));
            }
            Fact::Ward(ward) => {
                self.wards.insert(ward.job.id, ward);
            }
            Fact::Unward { job } => {
                self.wards.remove(&job);
            }
            Fact::Reports(report) => {
                self.reports.insert(report.job, report);
            }
            Fact::Reported { job } => {
                self.reports.remove(&job);
            }
            Fact::TookOver(void) => {
                self.taken_over.push(void);
                self.voids.insert(void.job, void.epoch);
            }
            Fact::Superseded(void) => {
                self.voids.insert(void.job, void.epoch);
            }
        }
    }

    /// Whether a peer of this configuration can have written this, as far as it can be told: [`crate::Peer::restore`]
    /// takes it then.
    ///
    /// # Errors
    /// What cannot be.
    pub fn check(&self, config: &PeerConfig) -> Result<(), String> {
        let grid = &config.grid;
        let is_other = |site: SiteId| site != config.site && is_site_of(grid, site);
        let is_job = |job: &JobSpec| match is_job_of(grid, job) {
            true => Ok(()),
            false => Err(format!("job {} is none of this grid", job.id)),
        };
        // Others say epochs up to the limit, and a site adds to them. What else they count is theirs to say.
        let counts = |job: JobId, epoch: u32| match epoch <= 2 * EPOCH_MAX {
            true => Ok(()),
            false => Err(format!("job {job} was taken over more often than can be")),
        };
        let guardian = |job: JobId, guardian: Option<SiteId>| match guardian {
            Some(site) if !is_site_of(grid, site) => Err(format!("job {job} is in the care of nobody")),
            _ => Ok(()),
        };
        let is_last = |life: u32| (life + 1).is_multiple_of(LIVES_PER_JOURNAL);
        if self.life.is_some_and(|life| journal_of(life) >= JOURNALS_MAX || is_last(life)) {
            return Err("the site began more often than can be".to_string());
        }
        if self.is_new() && *self != Durable::default() {
            return Err("the site never began and has something".to_string());
        }
        // The local scheduler alone cannot hold what is too wide; with a failure detector that is kept beside it.
        let holds = |job: &JobSpec| {
            job.processors <= grid.site(config.site).processors
                || config.strategy != Strategy::Local
                || config.options.heartbeat.is_some()
        };
        for (id, Kept { job, custody, started, .. }) in &self.jobs {
            is_job(job)?;
            counts(*id, custody.epoch)?;
            guardian(*id, custody.guardian)?;
            if *id != job.id || started.is_some_and(|at| !is_time(at)) {
                return Err(format!("job {id} is another, or began at no time"));
            }
            if started.is_some() && job.processors > grid.site(config.site).processors {
                return Err(format!("job {id} executes and does not fit"));
            }
            if !holds(job) {
                return Err(format!("job {id} waits and does not fit"));
            }
        }
        self.ledger.check(&is_other)?;
        // Under these strategies jobs are granted to larger sites, and routed to all.
        let grants = |to: SiteId| match config.strategy {
            Strategy::Local => false,
            Strategy::Steal(_) | Strategy::CommonPool => grid.rank(to) > grid.rank(config.site),
            _ => true,
        };
        for (to, transfer) in self.ledger.transfers_out() {
            let id = transfer.job.id;
            if !self.routes.contains(&(to, transfer.number)) && !grants(to) {
                return Err(format!("job {id} is on its way to site {to}, which is granted none from here"));
            }
            is_job(&transfer.job)?;
            counts(id, transfer.epoch)?;
            guardian(id, transfer.guardian)?;
            // It may have come back before the answer: then it moved on since. A take-over voids the transfer.
            if self.jobs.get(&id).is_some_and(|kept| kept.custody.hops <= transfer.hops) {
                return Err(format!("job {id} is here and on its way elsewhere"));
            }
        }
        for (to, number) in &self.routes {
            if !self.ledger.is_out(*to, *number) {
                return Err(format!("a job is on its way home to site {to} by a transfer that is not out"));
            }
        }
        for (id, ward) in &self.wards {
            is_job(&ward.job)?;
            counts(*id, ward.epoch)?;
            if *id != ward.job.id || !is_site_of(grid, ward.holder) {
                return Err(format!("job {id} was given to nobody"));
            }
        }
        for (id, report) in &self.reports {
            counts(*id, report.epoch)?;
            if *id != report.job || !is_site_of(grid, report.guardian) || !is_site_of(grid, report.holder) {
                return Err(format!("job {id} is reported to nobody"));
            }
        }
        for (job, epoch) in &self.voids {
            counts(*job, *epoch)?;
        }
        for void in &self.taken_over {
            counts(void.job, void.epoch)?;
        }
        Ok(())
    }

    /// Jobs that executed when the site was last heard of.
    pub fn running(&self) -> impl Iterator<Item = &Kept> {
        self.jobs.values().filter(|kept| kept.started.is_some())
    }

    /// The number of the life that begins with this journal.
    pub(crate) fn next_life(&self) -> u32 {
        self.life.map_or(0, |last| last + 1)
    }

    /// Whether nothing was ever written.
    pub fn is_new(&self) -> bool {
        self.life.is_none()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use scheduler::{Grid, LocalScheduler, Pass, Span, StrategySpec};

    use super::*;
    use crate::config::Options;
    use crate::message::Transfer;

    fn config() -> PeerConfig {
        PeerConfig {
            site: SiteId(2),
            grid: Arc::new(Grid::of_sizes(&[2, 4, 8]).unwrap()),
            strategy: "st:50".parse::<StrategySpec>().unwrap().strategy,
            local: LocalScheduler::ALL[0],
            pass: Pass::Batch,
            options: Options { journal: true, ..Options::default() },
            seed: 1,
        }
    }

    const JOB: JobSpec = JobSpec {
        id: JobId(7),
        submit: Time::from_secs(3),
        processors: 4,
        requested: Span::from_secs(60),
        user: -1,
        origin: SiteId(2),
        payload: 0,
    };

    fn after(facts: &[Fact]) -> Result<(), String> {
        durable(facts).check(&config())
    }

    fn durable(facts: &[Fact]) -> Durable {
        let mut durable = Durable::default();
        durable.apply(&Fact::Began { life: 0 });
        facts.iter().for_each(|fact| durable.apply(fact));
        durable
    }

    #[test]
    fn what_no_site_can_have_written_is_told_as_damage() {
        let owns = |job: JobSpec| Fact::Owns { job, custody: Custody::default(), place: Place::Queue };
        let out = |to: u32| {
            let (bounces, hops, epoch, moves, guardian) = (0, 1, 0, 1, None);
            let transfer = Transfer { number: 1, job: JOB, bounces, hops, epoch, moves, guardian };
            [owns(JOB), Fact::Ledger(Record::Out { to: SiteId(to), transfer })]
        };
        let started = |job: JobSpec| [owns(job), Fact::Started { job: job.id, at: Time::from_secs(4) }];
        let ward = |holder: u32| Fact::Ward(Ward { job: JOB, epoch: 0, moves: 1, holder: SiteId(holder) });
        let wide = JobSpec { processors: 8, ..JOB };
        let home = [&out(1)[..], &[Fact::Routed { to: SiteId(1), number: 1 }]].concat();
        for whole in [&started(JOB)[..], &out(3), &home, &[owns(wide)], &[ward(1)]] {
            assert_eq!(after(whole), Ok(()), "{whole:?}");
        }
        // Others say how often a job moved, and who has it, and may lie; that must not make the journal unreadable.
        let often = Custody { hops: u32::MAX, moves: u32::MAX, bounces: u32::MAX, ..Custody::default() };
        assert_eq!(after(&[Fact::Owns { job: JOB, custody: often, place: Place::Queue }, ward(2)]), Ok(()));
        let never = JobSpec { submit: Time::from_micros(i64::MAX), ..JOB };
        let vast = JobSpec { processors: 9, ..JOB };
        let nowhere = JobSpec { origin: SiteId(4), ..JOB };
        let routed = Fact::Routed { to: SiteId(1), number: 3 };
        let custody = Custody { epoch: 2, ..Custody::default() };
        let taken_over = Fact::Owns { job: JOB, custody, place: Place::Queue };
        for damaged in [
            &[owns(never)][..],
            &[owns(vast)],
            &[owns(nowhere)],
            &started(wide),
            &out(2),
            &out(4),
            // Smaller sites are granted none, but routed to.
            &out(1),
            &[&out(3)[..], &[owns(JOB)]].concat(),
            &[&out(3)[..], &[taken_over]].concat(),
            &[ward(4)],
            &[routed],
            &[Fact::Superseded(Void { job: JobId(7), epoch: u32::MAX })],
            &[Fact::Ledger(Record::Floor { from: SiteId(9), floor: 1 })],
        ] {
            assert!(after(damaged).is_err(), "{damaged:?}");
        }
    }

    #[test]
    fn what_does_not_fit_waits_where_it_may() {
        let wide = JobSpec { processors: 8, ..JOB };
        let waits = durable(&[Fact::Owns { job: wide, custody: Custody::default(), place: Place::Queue }]);
        let check = |strategy: &str, heartbeat| {
            let mut config = config();
            config.strategy = strategy.parse::<StrategySpec>().unwrap().strategy;
            config.options.heartbeat = heartbeat;
            waits.check(&config).is_ok()
        };
        assert!(!check("local", None), "it went home at once");
        assert!(check("local", Some(Span::from_secs(5))), "its home may have left");
        for strategy in ["st:50", "common-pool", "steal:random", "pool:easy"] {
            assert!(check(strategy, None), "{strategy}: others can take it");
        }
    }
}
