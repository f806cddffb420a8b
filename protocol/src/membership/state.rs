//! What a site knows of others, and of jobs that it answers for.

use std::collections::BTreeMap;

use scheduler::{JobId, JobSpec, Span, Time};

use crate::config::PeerConfig;
use crate::journal::{Durable, Guarded};
use crate::membership::unheard::Unheard;
use crate::message::{Report, Void};
use crate::rank::Rank;
use crate::table::Table;

/// What a site knows of the presence of others.
#[derive(Clone, Debug)]
pub(crate) struct Membership {
    pub(super) heartbeat: Span,
    pub(super) patience: Span,
    pub(super) lease: Option<Span>,
    /// By rank; the own entry is not used.
    pub(super) sites: Table<Other>,
    /// When this site was told anything last; none before its first instant.
    pub(super) awake: Option<Time>,
    /// Of jobs that this site is responsible for and gave away.
    pub(super) guarded_jobs: BTreeMap<JobId, Guarded>,
    /// What those who are responsible must still learn.
    pub(super) reports: BTreeMap<JobId, Report>,
    /// Epochs below these are void.
    pub(super) voids: BTreeMap<JobId, u32>,
    /// What this site tells everybody of, in that order: what it took over, and what it passes on.
    pub(super) taken_over: Vec<Void>,
    /// Jobs whose senders may not know that they came. In memory only.
    pub(super) unheard: Unheard,
    /// Ranks of sites that may have taken over jobs that wait here and have not told all since this site woke up, and
    /// since when they told nothing new.
    pub(super) asked: BTreeMap<Rank, Time>,
    /// Jobs that wait here because nobody who is there is wide enough.
    pub(super) orphaned: Vec<JobSpec>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Other {
    /// When it was heard of last.
    pub(super) heard: Time,
    /// How many of the jobs that this site took over it knows of.
    pub(super) knows: u64,
    /// How many of the jobs that it took over this site knows of.
    pub(super) known: u64,
    /// How many journals it has lost.
    pub(super) journal: u32,
}

/// Whether a site is there, as another believes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It was heard of lately.
    Here,
    /// It was silent for a while.
    Suspected,
    /// It gives its jobs away and takes none.
    Leaving,
    /// It was silent for so long that its jobs are taken over.
    Gone,
}

impl Membership {
    pub(crate) fn of(config: &PeerConfig) -> Option<Box<Membership>> {
        let options = &config.options;
        let heartbeat = options.heartbeat?;
        assert!(heartbeat > Span::ZERO, "heartbeats take time");
        let at = Time::from_micros(i64::MIN);
        let other = Other { heard: at, knows: 0, known: 0, journal: 0 };
        Some(Box::new(Membership {
            heartbeat,
            patience: options.suspect_after.max(heartbeat),
            lease: options.lease.map(|lease| lease.max(options.suspect_after)),
            sites: Table::of(Rank::all(&config.grid), |_| other),
            awake: None,
            guarded_jobs: BTreeMap::new(),
            reports: BTreeMap::new(),
            voids: BTreeMap::new(),
            taken_over: Vec::new(),
            unheard: Unheard::default(),
            asked: BTreeMap::new(),
            orphaned: Vec::new(),
        }))
    }

    /// Jobs that wait and are in no queue.
    pub(crate) fn orphaned_count(&self) -> usize {
        self.orphaned.len()
    }

    /// What a peer must know of membership and its journal must say, too.
    pub(crate) fn agrees_with(&self, durable: &Durable) -> Result<(), String> {
        let differs = |what: &str| Err(format!("{what} differ from those written down"));
        if self.guarded_jobs != durable.guarded_jobs {
            return differs("jobs that it is responsible for");
        }
        if self.reports != durable.reports {
            return differs("reports to others");
        }
        if self.voids != durable.voids {
            return differs("newest epochs");
        }
        if self.taken_over != durable.taken_over {
            return differs("jobs that it took over");
        }
        Ok(())
    }

    /// No copy of a job waits that is known to have been taken over since.
    pub(crate) fn keeps_no_void_copy(&self, durable: &Durable) -> Result<(), String> {
        let void = durable.jobs.values().find(|kept| {
            let newest = self.voids.get(&kept.job.id).copied().unwrap_or(0);
            kept.started.is_none() && kept.custody.epoch < newest
        });
        void.map_or(Ok(()), |kept| Err(format!("a void copy of job {} waits", kept.job.id)))
    }

    pub(crate) fn restore(&mut self, durable: &Durable) {
        self.guarded_jobs.clone_from(&durable.guarded_jobs);
        self.reports.clone_from(&durable.reports);
        self.voids.clone_from(&durable.voids);
        self.taken_over.clone_from(&durable.taken_over);
    }
}
