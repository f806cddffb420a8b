//! The exchange through a global queue as pure functions over plain views (Grimme, Lepping, Papaspyrou 2007).
//!
//! At one instant each site first serves its own queue and offers what it cannot start ([`own_phase`]), then all
//! sites serve the pool ([`pool_phase`]). The ideal calls both with a global view; peers call the first with
//! their own queue and the second with what boards told them. Who knows what, and how a job moves, is decided
//! elsewhere. See the section on the exchange in `docs/THEORY.md` for the rules and where each comes from.
//!
//! # The algorithms on a list
//! | | what starts |
//! |---|---|
//! | FCFS | from the front while the first fits |
//! | LIST | each job that fits, in one scan in order |
//! | EASY | from the front while the first fits; the first that does not gets a reservation, and others start around it |
//!
//! A reservation holds processors of one site and lives for one run of the algorithm. Running an algorithm a
//! second time on what it left starts nothing.

use std::ops::ControlFlow;

mod queue;
mod site;

pub use queue::{Entered, JobQueue, WaitingJob};
pub use site::{Releases, SiteView};

use crate::local::backlog::Limits;
use crate::strategy::{OfferRule, Pool, PoolAlgorithm, SiteOrder, TooWide};
use crate::time::Time;

/// A line of the decision: this job of the pool starts at this site now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The place of the site among the views.
    pub rank: usize,
    /// The job; it has left the pool.
    pub job: WaitingJob,
}

/// What a site does with its own queue at an instant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnTurn {
    /// Jobs that start here, in the order of the decisions.
    pub starts: Vec<WaitingJob>,
    /// Jobs that leave the queue for the pool, in the order in which they are offered. When that is and in
    /// which order they enter the pool is for the caller to say ([`OwnTurn::offers_of`]).
    pub offers: Vec<WaitingJob>,
}

impl OwnTurn {
    /// The offers as they enter the pool, made now by the site of this rank.
    pub fn offers_of(&self, rank: usize, now: Time) -> impl Iterator<Item = WaitingJob> {
        let offers = self.offers.iter().enumerate();
        offers.map(move |(earlier, job)| job.entering(Entered::offered(now, rank, earlier)))
    }

    fn len(&self) -> usize {
        self.starts.len() + self.offers.len()
    }
}

/// One site serves its own queue: runs its algorithm and offers, until it neither starts nor offers anything.
///
/// `own` is all of the queue, a job kept since an earlier instant included, in order of submission; no job in it
/// is wider than the site. Afterwards it is empty, or holds the one job that the site keeps, which does not fit
/// and stands in [`SiteView::kept`].
pub fn own_phase(pool: &Pool, now: Time, site: &mut SiteView, own: &mut JobQueue, turn: &mut OwnTurn) {
    loop {
        let before = turn.len();
        own_step(pool, now, site, own, turn);
        if site.free == 0 && pool.offer == OfferRule::Head {
            // None of the next heads starts either.
            turn.offers.extend(own.drain());
        }
        if turn.len() == before {
            return;
        }
    }
}

/// One run of the algorithm on the own queue, and one offer.
pub(crate) fn own_step(pool: &Pool, now: Time, site: &mut SiteView, own: &mut JobQueue, turn: &mut OwnTurn) {
    site.kept = None;
    serve(pool, now, site, own, &mut turn.starts);
    match pool.offer {
        OfferRule::Head => turn.offers.extend(own.pop_first()),
        OfferRule::All => turn.offers.extend(own.drain()),
        OfferRule::AllButHead => {
            site.kept = own.pop_first();
            turn.offers.extend(own.drain());
            own.extend(site.kept);
        }
    }
}

/// All sites serve the pool: the decision of every instant.
///
/// Pass after pass, each site runs its algorithm on its view, which is the job it keeps followed by the jobs of
/// the pool that are not wider than it, until a whole pass starts nothing. The views and the pool change along:
/// a decided job holds its processors until now plus its request. A kept job that fits is its site's own to
/// start; it takes its processors here and is on no line.
///
/// `sites` is ascending by (processors, id). Appends to `decisions` in the order in which they are taken.
pub fn pool_phase(
    pool: &Pool,
    now: Time,
    sites: &mut [SiteView],
    jobs: &mut JobQueue,
    decisions: &mut Vec<Decision>,
) {
    let mut starts = Vec::new();
    // How many decisions there were when a site was last served: if there is none by others since, its view
    // is what it left, and it would start nothing.
    let mut served: Vec<Option<usize>> = vec![None; sites.len()];
    loop {
        let before = decisions.len();
        for place in 0..sites.len() {
            let rank = match pool.site_order {
                SiteOrder::Ascending => place,
                SiteOrder::Descending => sites.len() - 1 - place,
            };
            if served[rank] == Some(decisions.len()) {
                continue;
            }
            serve(pool, now, &mut sites[rank], jobs, &mut starts);
            decisions.extend(starts.drain(..).map(|job| Decision { rank, job }));
            served[rank] = Some(decisions.len());
        }
        if decisions.len() == before {
            return;
        }
    }
}

/// How far a run of the algorithm has come.
enum Scan {
    /// Everything so far started.
    Front,
    /// The first job that does not fit was found.
    Behind(Limits),
    /// Nothing more starts.
    Over,
}

/// As [`serve`], at a site whose nodes jobs share. Nobody knows when these end, so nothing is reserved: the algorithm is FCFS or LIST.
fn serve_nodes(
    pool: &Pool,
    now: Time,
    site: &mut SiteView,
    jobs: &mut JobQueue,
    starts: &mut Vec<WaitingJob>,
) {
    assert!(pool.algorithm != PoolAlgorithm::Easy, "EASY reserves processors, and jobs share nodes");
    let mut is_over = false;
    if let Some(kept) = site.kept {
        if site.takes(&kept) {
            site.start(now, &kept);
            site.kept = None;
        } else {
            is_over = pool.algorithm == PoolAlgorithm::Fcfs;
        }
    }
    let mut state = (site, is_over);
    jobs.take(
        &mut state,
        |(site, is_over), least| match site.free == 0 || *is_over {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(least.processors <= site.processors),
        },
        |(site, is_over), job| {
            if job.processors > site.processors && pool.too_wide == TooWide::Skip || *is_over {
                return false;
            }
            if !site.takes(job) {
                *is_over = pool.algorithm == PoolAlgorithm::Fcfs;
                return false;
            }
            site.start(now, job);
            starts.push(*job);
            true
        },
    );
}

/// Runs the algorithm once on a site's view of a queue: its kept job, then the queue.
pub(crate) fn serve(
    pool: &Pool,
    now: Time,
    site: &mut SiteView,
    jobs: &mut JobQueue,
    starts: &mut Vec<WaitingJob>,
) {
    if site.free == 0 || jobs.is_empty() {
        return;
    }
    if site.nodes.is_some() {
        return serve_nodes(pool, now, site, jobs, starts);
    }
    let width = match pool.too_wide {
        TooWide::Skip => site.processors,
        TooWide::Block => u32::MAX,
    };
    let algorithm = pool.algorithm;
    let behind = |site: &SiteView, first: &WaitingJob| match algorithm {
        PoolAlgorithm::Fcfs => Scan::Over,
        PoolAlgorithm::List => Scan::Behind(Limits::unreserved(now, site.free)),
        PoolAlgorithm::Easy => Scan::Behind(site.limits(now, first.processors)),
    };
    let mut scan = Scan::Front;
    if let Some(kept) = site.kept {
        if kept.processors <= site.free {
            site.start(now, &kept);
            site.kept = None;
        } else {
            scan = behind(site, &kept);
        }
    }
    let mut state = (site, scan);
    jobs.take(
        &mut state,
        |(site, scan), least| match scan {
            _ if site.free == 0 => ControlFlow::Break(()),
            Scan::Front => ControlFlow::Continue(least.processors <= width),
            Scan::Behind(limits) => ControlFlow::Continue(limits.may_admit(&least)),
            Scan::Over => ControlFlow::Break(()),
        },
        |(site, scan), job| {
            if job.processors > width {
                return false;
            }
            match scan {
                Scan::Front if job.processors > site.free => {
                    *scan = behind(site, job);
                    return false;
                }
                Scan::Front => {}
                Scan::Behind(limits) if limits.admits(job.shape()) => limits.take(job.shape()),
                Scan::Behind(_) | Scan::Over => return false,
            }
            site.start(now, job);
            starts.push(*job);
            true
        },
    );
}
