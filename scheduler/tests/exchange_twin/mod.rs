//! A naive twin of the exchange through a global queue: lists that are scanned and built anew for every question.
//!
//! It can be told to get one rule wrong, so that the tests can show that they would notice.

use proptest::prelude::*;
use scheduler::strategy::{Discipline, OfferRule, PoolAlgorithm, PoolOrder, SiteOrder, TooWide};
use scheduler::{Grid, JobId, JobSpec, Policy, Pool, SiteId, Start, Submit, Time, TimedJob};

use crate::ideal_twin::{Floor, job};

/// A rule got wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slip {
    /// One pass over the pool only.
    SinglePass,
    /// The pool is served before own work.
    PoolFirst,
    /// The pool stands before the kept head.
    KeptLast,
    /// A site serves its own queue once, and offers once, at an instant.
    OwnOnce,
    /// Reservations do not know of the jobs started at this instant.
    ForgetsStarted,
    /// What backfilled jobs take of the processors beside a reservation is not counted.
    ExtraForever,
    /// A job past its estimate is planned to end when it should have.
    EndsInThePast,
    /// A reservation survives the start of jobs that end in time only.
    InTimeOnly,
    /// Jobs wider than their origin wait at the smallest site that can hold them.
    WideGoesHome,
    /// A site takes its own offers back before any other pool job.
    OwnOffersFirst,
    /// Sites serve the pool in the order of the experiment.
    Unranked,
    /// Jobs that enter at one instant are in the order in which they came.
    LastInFirstOut,
}

impl Slip {
    pub(crate) const ALL: [Slip; 12] = [
        Slip::SinglePass,
        Slip::PoolFirst,
        Slip::KeptLast,
        Slip::OwnOnce,
        Slip::ForgetsStarted,
        Slip::ExtraForever,
        Slip::EndsInThePast,
        Slip::InTimeOnly,
        Slip::WideGoesHome,
        Slip::OwnOffersFirst,
        Slip::Unranked,
        Slip::LastInFirstOut,
    ];
}

/// Where a waiting job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Queue(usize),
    Pool { entered: usize, offered_by: usize },
}

/// The twin.
pub(crate) struct TwinExchange {
    pub(crate) floor: Floor,
    pub(crate) pool: Pool,
    submit: Submit,
    slip: Option<Slip>,
    places: Vec<(JobId, Place)>,
    /// Jobs that entered the pool so far.
    entered: usize,
}

impl TwinExchange {
    pub(crate) fn new(grid: &Grid, pool: Pool, submit: Submit, slip: Option<Slip>) -> TwinExchange {
        TwinExchange { floor: Floor::new(grid), pool, submit, slip, places: Vec::new(), entered: 0 }
    }

    fn place(&self, id: JobId) -> Place {
        self.places.iter().find(|(other, _)| *other == id).unwrap().1
    }

    /// Q_i in order of submission.
    pub(crate) fn queue(&self, rank: usize) -> Vec<JobSpec> {
        let waiting = self.floor.waiting.iter().copied();
        waiting.filter(|job| self.place(job.id) == Place::Queue(rank)).collect()
    }

    /// G in its order.
    pub(crate) fn shared(&self) -> Vec<JobSpec> {
        let mut jobs: Vec<(usize, JobSpec)> = self
            .floor
            .waiting
            .iter()
            .filter_map(|job| match self.place(job.id) {
                Place::Pool { entered, .. } => Some((entered, *job)),
                Place::Queue(_) => None,
            })
            .collect();
        jobs.sort_by_key(|(_, job)| job.key());
        if self.slip == Some(Slip::LastInFirstOut) {
            jobs.reverse();
        }
        if self.pool.pool_order == PoolOrder::Offered {
            jobs.sort_by_key(|(entered, _)| *entered);
        }
        jobs.into_iter().map(|(_, job)| job).collect()
    }

    /// V_i: what site i sees.
    pub(crate) fn view(&self, rank: usize) -> Vec<JobSpec> {
        let size = self.floor.grid.sizes()[rank];
        let mut view = self.shared();
        if self.pool.too_wide == TooWide::Skip {
            view.retain(|job| job.processors <= size);
        }
        if self.slip == Some(Slip::OwnOffersFirst) {
            view.sort_by_key(
                |job| !matches!(self.place(job.id), Place::Pool { offered_by, .. } if offered_by == rank),
            );
        }
        if self.pool.offer == OfferRule::AllButHead {
            let kept = self.queue(rank).into_iter().take(1);
            view = match self.slip {
                Some(Slip::KeptLast) => view.into_iter().chain(kept).collect(),
                _ => kept.chain(view).collect(),
            };
        }
        view
    }

    /// Processors that a site has idle at an instant by the estimates.
    fn available(&self, now: Time, rank: usize, at: Time) -> u32 {
        let ended = self.floor.running.iter().filter(|(place, job, started)| {
            let end = match self.slip {
                Some(Slip::EndsInThePast) => *started + job.requested,
                _ => (*started + job.requested).max(now),
            };
            let forgotten = self.slip == Some(Slip::ForgetsStarted) && *started == now;
            *place == rank && end <= at && !forgotten
        });
        self.floor.free(rank) + ended.map(|(_, job, _)| job.processors).sum::<u32>()
    }

    /// X on a list at a site; whether anything started.
    fn run(&mut self, now: Time, rank: usize, list: Vec<JobSpec>, starts: &mut Vec<Start>) -> bool {
        let before = starts.len();
        let mut reserved: Option<(Time, u32)> = None;
        let mut blocked = false;
        for job in list {
            let fits = job.processors <= self.floor.free(rank);
            let may = match (self.pool.algorithm, blocked) {
                (_, false) | (PoolAlgorithm::List, true) => fits,
                (PoolAlgorithm::Fcfs, true) => false,
                (PoolAlgorithm::Easy, true) => fits && self.may_backfill(now, &job, &mut reserved),
            };
            if may {
                self.floor.start(now, rank, job, starts);
            } else if !blocked {
                blocked = true;
                let mut ends: Vec<Time> = self
                    .floor
                    .running
                    .iter()
                    .filter(|(place, ..)| *place == rank)
                    .map(|(_, job, started)| match self.slip {
                        Some(Slip::EndsInThePast) => *started + job.requested,
                        _ => (*started + job.requested).max(now),
                    })
                    .collect();
                ends.sort_unstable();
                let shadow = ends.into_iter().find(|&end| self.available(now, rank, end) >= job.processors);
                reserved = shadow.map(|at| (at, self.available(now, rank, at) - job.processors));
            }
        }
        starts.len() > before
    }

    fn may_backfill(&self, now: Time, job: &JobSpec, reserved: &mut Option<(Time, u32)>) -> bool {
        // Without a reservation the first job is wider than the site: there is nothing to delay.
        let Some((shadow, extra)) = reserved else { return true };
        if now + job.requested <= *shadow {
            return true;
        }
        if job.processors > *extra || self.slip == Some(Slip::InTimeOnly) {
            return false;
        }
        if self.slip != Some(Slip::ExtraForever) {
            *extra -= job.processors;
        }
        true
    }

    /// What a site offers after a run; whether there was something.
    fn offer(&mut self, rank: usize) -> bool {
        let left = self.queue(rank).into_iter();
        let offered: Vec<JobSpec> = match self.pool.offer {
            OfferRule::Head => left.take(1).collect(),
            OfferRule::All => left.collect(),
            OfferRule::AllButHead => left.skip(1).collect(),
        };
        for job in &offered {
            let place = self.places.iter_mut().find(|(id, _)| *id == job.id).unwrap();
            place.1 = Place::Pool { entered: self.entered, offered_by: rank };
            self.entered += 1;
        }
        !offered.is_empty()
    }

    fn ranks(&self) -> Vec<usize> {
        let mut ranks: Vec<usize> = (0..self.floor.grid.len()).collect();
        if self.slip == Some(Slip::Unranked) {
            ranks.sort_by_key(|&rank| self.floor.grid.at_rank(rank));
        }
        if self.pool.site_order == SiteOrder::Descending {
            ranks.reverse();
        }
        ranks
    }

    fn phase_l(&mut self, now: Time, starts: &mut Vec<Start>) {
        for rank in 0..self.floor.grid.len() {
            loop {
                let started = self.run(now, rank, self.queue(rank), starts);
                let offered = self.offer(rank);
                if !started && !offered || self.slip == Some(Slip::OwnOnce) {
                    break;
                }
            }
        }
    }

    fn phase_p(&mut self, now: Time, starts: &mut Vec<Start>) {
        loop {
            let mut started = false;
            for rank in self.ranks() {
                started |= self.run(now, rank, self.view(rank), starts);
            }
            if !started || self.slip == Some(Slip::SinglePass) {
                return;
            }
        }
    }

    fn interleaved(&mut self, now: Time, starts: &mut Vec<Start>) {
        loop {
            let mut changed = false;
            for rank in self.ranks() {
                let started = self.run(now, rank, self.queue(rank), starts);
                changed |= self.offer(rank) | started;
                changed |= !started && self.run(now, rank, self.view(rank), starts);
            }
            if !changed {
                return;
            }
        }
    }

    /// What is wrong after an instant, if anything: each site's queue is empty or one job that does not fit, and
    /// no site can start a job by running the algorithm on its view.
    pub(crate) fn unrest(&mut self, now: Time) -> Option<String> {
        for rank in 0..self.floor.grid.len() {
            let own = self.queue(rank);
            let kept = usize::from(self.pool.offer == OfferRule::AllButHead);
            if own.len() > kept || own.iter().any(|job| job.processors <= self.floor.free(rank)) {
                return Some(format!("site {rank} still has {own:?}"));
            }
            if own.iter().any(|job| job.processors > self.floor.grid.sizes()[rank]) {
                return Some(format!("site {rank} holds a job wider than itself"));
            }
            let mut starts = Vec::new();
            if self.run(now, rank, self.view(rank), &mut starts) {
                return Some(format!("site {rank} could start {starts:?}"));
            }
            let fits = |job: &JobSpec| job.processors <= self.floor.free(rank);
            if self.pool.algorithm == PoolAlgorithm::List && self.shared().iter().any(fits) {
                return Some(format!("a job of the pool fits site {rank}"));
            }
        }
        None
    }
}

impl Policy for TwinExchange {
    fn submitted(&mut self, _now: Time, job: JobSpec) {
        let grid = &self.floor.grid;
        let home = grid.home_rank(job.processors).unwrap();
        let mut rank = match self.submit {
            Submit::Home => home,
            Submit::Origin => grid.rank(job.origin),
        };
        if self.slip == Some(Slip::WideGoesHome) {
            rank = rank.max(home);
        }
        let wide = job.processors > grid.sizes()[rank];
        let place =
            if wide { Place::Pool { entered: self.entered, offered_by: rank } } else { Place::Queue(rank) };
        self.entered += usize::from(wide);
        self.places.push((job.id, place));
        self.floor.waiting.push(job);
        self.floor.waiting.sort_by_key(JobSpec::key);
    }

    fn completed(&mut self, _now: Time, job: JobId) {
        self.floor.running.retain(|(_, running, _)| running.id != job);
    }

    fn decide(&mut self, now: Time, starts: &mut Vec<Start>) {
        match (self.pool.discipline, self.slip) {
            (Discipline::Interleaved, _) => self.interleaved(now, starts),
            (Discipline::TwoPhase, Some(Slip::PoolFirst)) => {
                self.phase_p(now, starts);
                self.phase_l(now, starts);
                self.phase_p(now, starts);
            }
            (Discipline::TwoPhase, _) => {
                self.phase_l(now, starts);
                self.phase_p(now, starts);
            }
        }
    }

    fn waiting(&self) -> usize {
        self.floor.waiting.len()
    }
}

/// Up to six sites, equal sizes likely, and up to 40 jobs submitted anywhere; estimates exact, too long and too
/// short; some jobs wider than their origin.
pub(crate) fn instances() -> impl Strategy<Value = (Grid, Vec<TimedJob>)> {
    let sizes = prop::collection::vec(prop_oneof![1u32..9, Just(4u32), Just(6)], 1..=6);
    sizes.prop_map(|sizes| Grid::of_sizes(&sizes).unwrap()).prop_flat_map(|grid| {
        let sites = grid.len() as u32;
        let row = (1..=grid.widest(), 1i64..12, -4i64..9, 0i64..30, 1..=sites);
        (Just(grid), prop::collection::vec(row, 1..=40)).prop_map(|(grid, rows)| {
            let timed = |(index, (width, run, more, submit, origin)): (usize, (u32, i64, i64, i64, u32))| {
                let mut timed = job(index as u64 + 1, width, run, run + more.max(1 - run), submit);
                timed.spec.origin = SiteId(origin);
                timed
            };
            let mut jobs: Vec<TimedJob> = rows.into_iter().enumerate().map(timed).collect();
            jobs.sort_by_key(|job| job.spec.key());
            (grid, jobs)
        })
    })
}

/// All switches, also those that exist in the ideal only.
pub(crate) fn pools() -> impl Strategy<Value = Pool> {
    let algorithms =
        prop::sample::select(vec![PoolAlgorithm::Fcfs, PoolAlgorithm::Easy, PoolAlgorithm::List]);
    let offers = prop::sample::select(vec![OfferRule::Head, OfferRule::All, OfferRule::AllButHead]);
    (algorithms, offers, any::<[bool; 4]>()).prop_map(
        |(algorithm, offer, [inter, descending, offered, block])| Pool {
            offer,
            discipline: if inter { Discipline::Interleaved } else { Discipline::TwoPhase },
            site_order: if descending { SiteOrder::Descending } else { SiteOrder::Ascending },
            pool_order: if offered { PoolOrder::Offered } else { PoolOrder::Submit },
            too_wide: if block { TooWide::Block } else { TooWide::Skip },
            ..Pool::new(algorithm)
        },
    )
}
