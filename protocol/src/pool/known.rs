//! What a decider knows: the newest board of every site, and all offers in the order of the pool.

use std::collections::BTreeMap;

use scheduler::exchange::{JobQueue, SiteView, WaitingJob, pool_phase};
use scheduler::{Capacity, Grid, JobId, Pool, Time};

use super::board::{Board, Heard, Listing, OfferId};

use crate::rank::Rank;
use crate::table::Table;

/// An offer on some board.
#[derive(Clone, Copy, Debug)]
pub(super) struct KnownOffer {
    /// The rank of its owner.
    pub(super) owner: Rank,
    pub(super) version: u64,
    pub(super) job: WaitingJob,
    /// Whether it is in the queue that decisions are taken from.
    queued: bool,
}

impl KnownOffer {
    pub(super) fn id(&self) -> OfferId {
        OfferId { job: self.job.id, version: self.version }
    }
}

/// A line of a decision.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    /// The rank of the site where the job starts.
    pub(super) to: Rank,
    pub(super) offer: KnownOffer,
}

/// What one site knows of the boards of all others, and the queue that follows.
#[derive(Clone, Debug)]
pub(super) struct Boards {
    /// Whose knowledge it is. What this site offers itself nobody else knows better.
    own: Rank,
    /// The own entry is not used: a site knows itself.
    pub(super) sites: Table<Heard>,
    offers: BTreeMap<JobId, KnownOffer>,
    queue: JobQueue,
    /// How many jobs of each width are in the queue.
    widths: BTreeMap<u32, usize>,
    /// Offers that are listed and must not be decided on: in flight, claimed or denied. At most one a job.
    excluded: BTreeMap<JobId, u64>,
    /// Whether a site is silent although it was asked.
    silent: Table<bool>,
}

impl Boards {
    /// An idle grid, as all sites find it.
    pub(super) fn idle(grid: &Grid, own: Rank, rules: &Pool) -> Boards {
        Boards {
            own,
            sites: Table::of(Rank::all(grid), |rank| Heard::idle(capacity(grid, rank))),
            offers: BTreeMap::new(),
            queue: JobQueue::new(rules.pool_order),
            widths: BTreeMap::new(),
            excluded: BTreeMap::new(),
            silent: Table::of(Rank::all(grid), |_| false),
        }
    }

    /// A grid of which nothing is known.
    pub(super) fn nothing(grid: &Grid, own: Rank, rules: &Pool) -> Boards {
        let sites = Table::of(Rank::all(grid), |rank| Heard::unknown(capacity(grid, rank)));
        Boards { sites, ..Boards::idle(grid, own, rules) }
    }

    pub(super) fn any_offers(&self) -> bool {
        !self.offers.is_empty()
    }

    /// Whether a job that is so narrow is in the queue.
    pub(super) fn any_within(&self, processors: u32) -> bool {
        self.widths.first_key_value().is_some_and(|(&width, _)| width <= processors)
    }

    fn enqueue(&mut self, job: WaitingJob) {
        self.queue.insert(job);
        *self.widths.entry(job.processors).or_default() += 1;
    }

    fn dequeue(&mut self, job: &WaitingJob) {
        self.queue.remove(job);
        self.forget_width(job.processors);
    }

    fn forget_width(&mut self, width: u32) {
        let count = self.widths.get_mut(&width).expect("it was counted");
        *count -= 1;
        if *count == 0 {
            self.widths.remove(&width);
        }
    }

    /// The version under which a job is listed.
    pub(super) fn listed(&self, job: JobId) -> Option<u64> {
        self.offers.get(&job).map(|offer| offer.version)
    }

    /// Takes over what a board says of offers; whether that was new.
    pub(super) fn apply(&mut self, owner: Rank, board: &Board) -> bool {
        let mut is_new = false;
        if board.whole {
            let listed: BTreeMap<JobId, u64> =
                board.offered.iter().map(|listing| (listing.job.id, listing.version)).collect();
            let gone: Vec<OfferId> = self
                .offers
                .values()
                .filter(|offer| offer.owner == owner && listed.get(&offer.job.id) != Some(&offer.version))
                .map(KnownOffer::id)
                .collect();
            for offer in gone {
                is_new |= self.unlist(owner, offer);
            }
        }
        for &offer in &board.withdrawn {
            is_new |= self.unlist(owner, offer);
        }
        for &listing in &board.offered {
            is_new |= self.list(owner, listing);
        }
        is_new
    }

    fn list(&mut self, owner: Rank, Listing { job, version }: Listing) -> bool {
        match self.offers.get(&job.id) {
            Some(known) if known.owner == owner && known.version >= version => return false,
            // A board that is late still lists what came here since; it would never be listed again.
            Some(known) if known.owner == self.own => return false,
            // A job has one owner: who was told last, if it moved without the pool.
            Some(known) => drop(self.unlist(known.owner, known.id())),
            None => {}
        }
        let excluded = self.excluded.get(&job.id) == Some(&version);
        let queued = !excluded && !self.silent[owner];
        if queued {
            self.enqueue(job);
        }
        self.offers.insert(job.id, KnownOffer { owner, version, job, queued });
        true
    }

    fn unlist(&mut self, owner: Rank, offer: OfferId) -> bool {
        let Some(known) = self.offers.get(&offer.job) else { return false };
        if known.owner != owner || known.version != offer.version {
            return false;
        }
        if known.queued {
            let job = known.job;
            self.dequeue(&job);
        }
        self.offers.remove(&offer.job);
        self.excluded.remove(&offer.job);
        true
    }

    /// Leaves a decided offer out of decisions for as long as it is listed.
    pub(super) fn exclude(&mut self, offer: OfferId) {
        self.excluded.insert(offer.job, offer.version);
    }

    /// Puts an offer back that was decided on, if it is still listed.
    pub(super) fn include(&mut self, offer: OfferId) {
        if self.excluded.get(&offer.job) == Some(&offer.version) {
            self.excluded.remove(&offer.job);
        }
        if let Some(known) = self.offers.get_mut(&offer.job)
            && known.version == offer.version
            && !known.queued
            && !self.silent[known.owner]
        {
            known.queued = true;
            let job = known.job;
            self.enqueue(job);
        }
    }

    /// Leaves the offers of a site that does not answer out of decisions, or takes them in again; whether that is a change.
    pub(super) fn set_silent(&mut self, rank: Rank, silent: bool) -> bool {
        if std::mem::replace(&mut self.silent[rank], silent) == silent {
            return false;
        }
        let mut changed = Vec::new();
        for known in self.offers.values_mut().filter(|known| known.owner == rank) {
            let excluded = self.excluded.get(&known.job.id) == Some(&known.version);
            if known.queued == silent && !excluded {
                known.queued = !silent;
                changed.push(known.job);
            }
        }
        for job in changed {
            if silent {
                self.dequeue(&job);
            } else {
                self.enqueue(job);
            }
        }
        true
    }

    pub(super) fn is_silent(&self, rank: Rank) -> bool {
        self.silent[rank]
    }

    /// Decides, and takes what is decided out of the queue.
    pub(super) fn decide(&mut self, rules: &Pool, now: Time, views: &mut [SiteView]) -> Vec<Line> {
        let mut decisions = Vec::new();
        pool_phase(rules, now, views, &mut self.queue, &mut decisions);
        let mut lines = Vec::with_capacity(decisions.len());
        for decision in decisions {
            self.forget_width(decision.job.processors);
            let known = self.offers.get_mut(&decision.job.id).expect("what is in the queue is listed");
            known.queued = false;
            lines.push(Line { to: Rank::at(decision.rank), offer: *known });
        }
        lines
    }

    /// Panics if the queue, the counts of widths and the offers contradict each other.
    pub(super) fn check_invariants(&self) {
        let queued = self.offers.values().filter(|offer| offer.queued).count();
        assert_eq!(queued, self.queue.len(), "the queue holds what is listed and may be decided on");
        assert_eq!(queued, self.widths.values().sum::<usize>(), "widths are counted");
        for (job, version) in &self.excluded {
            let queued = self.offers.get(job).is_some_and(|offer| offer.queued && offer.version == *version);
            assert!(!queued, "job {job} is left out of decisions");
        }
    }
}

fn capacity(grid: &Grid, rank: Rank) -> Capacity {
    grid.capacity(grid.at_rank(rank.index()))
}
