//! The exchange through a global queue with a global view (Grimme, Lepping, Papaspyrou 2007).
//!
//! Which site starts what is decided in [`exchange`](crate::exchange); here is the order of an instant, where
//! jobs enter, and what runs. The rules and where each comes from are in `docs/THEORY.md`.
//!
//! With estimators a job is in its queue and in the pool with the run time that the site predicts where it was submitted. A site that
//! starts a job of another predicts it anew: it knows other ends. Then reservations there are others than the pool was served by, and it is
//! served once more.

use std::collections::BTreeMap;

use crate::entry::Submit;
use crate::exchange::{
    Decision, Entered, JobQueue, OwnTurn, SiteView, WaitingJob, own_phase, own_step, pool_phase, serve,
};
use crate::grid::{Grid, SiteId};
use crate::job::{JobId, JobSpec};
use crate::local::{Estimates, Estimator};
use crate::policy::{Policy, Start};
use crate::prediction::Prediction;
use crate::strategy::{Discipline, Pool, PoolOrder, SiteOrder, Strategy};
use crate::time::Time;

/// Sites that offer to one pool what they cannot start, and take from it when they start nothing of their own.
///
/// One instant: completions and arrivals, then every site serves its own queue, then all sites serve the pool
/// ([`Discipline::TwoPhase`]); or, site by site, the own queue once and the pool only if nothing of the own queue started,
/// pass after pass ([`Discipline::Interleaved`]). A job wider than the site where it is submitted enters the
/// pool at once.
#[derive(Clone, Debug)]
pub struct PoolExchange {
    grid: Grid,
    pool: Pool,
    submit: Submit,
    /// What each site has and keeps, in the order of rank.
    sites: Vec<SiteView>,
    /// The queue of each site; its kept job is in it too.
    own: Vec<JobQueue>,
    /// The pool G.
    shared: JobQueue,
    /// Sites where something happened since they last served their own queues.
    touched: Vec<bool>,
    /// What each site believes of run times, in the order of rank; nothing if users are believed.
    estimates: Vec<Estimates>,
    /// Sites where a job was submitted or ended since predictions were corrected there.
    stirred: Vec<bool>,
    waiting: BTreeMap<JobId, Waiting>,
    running: BTreeMap<JobId, Running>,
    /// What was offered at the latest instant.
    offered: Vec<JobId>,
    decisions: Vec<Decision>,
    turn: OwnTurn,
}

/// A job as its user described it, and the rank of the site where it was submitted.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    job: JobSpec,
    entry: usize,
}

#[derive(Clone, Copy, Debug)]
struct Running {
    rank: usize,
    processors: u32,
    estimated_end: Time,
}

impl PoolExchange {
    /// An idle grid without jobs. `submit` says at which site a job enters.
    pub fn new(grid: &Grid, pool: Pool, submit: Submit) -> PoolExchange {
        PoolExchange {
            grid: grid.clone(),
            pool,
            submit,
            sites: grid.sizes().iter().map(|&processors| SiteView::idle(processors)).collect(),
            own: vec![JobQueue::new(PoolOrder::Submit); grid.len()],
            shared: JobQueue::new(pool.pool_order),
            touched: vec![false; grid.len()],
            estimates: Vec::new(),
            stirred: vec![false; grid.len()],
            waiting: BTreeMap::new(),
            running: BTreeMap::new(),
            offered: Vec::new(),
            decisions: Vec::new(),
            turn: OwnTurn::default(),
        }
    }

    /// The same with sites that each predict run times by an estimator of their own.
    #[must_use]
    pub fn with_estimators(mut self, estimator: impl Fn() -> Box<dyn Estimator>) -> PoolExchange {
        self.estimates = self.sites.iter().map(|_| Estimates::by(estimator())).collect();
        self
    }

    /// The jobs that their sites offered at the latest instant, in the order of the offers. Jobs wider than the
    /// site where they were submitted never were at a site and are not among them.
    pub fn offered(&self) -> &[JobId] {
        &self.offered
    }

    /// The sites by rank as the last decision left them.
    pub fn sites(&self) -> &[SiteView] {
        &self.sites
    }

    /// The queue of the site of this rank.
    pub fn own(&self, rank: usize) -> &JobQueue {
        &self.own[rank]
    }

    /// The jobs in the pool G that no site has started.
    pub fn shared(&self) -> &JobQueue {
        &self.shared
    }

    fn two_phase(&mut self, now: Time, starts: &mut Vec<Start>) {
        for rank in 0..self.sites.len() {
            if std::mem::take(&mut self.touched[rank]) {
                own_phase(&self.pool, now, &mut self.sites[rank], &mut self.own[rank], &mut self.turn);
                self.carry_out(now, rank, rank, starts);
            }
        }
        let mut decisions = std::mem::take(&mut self.decisions);
        loop {
            pool_phase(&self.pool, now, &mut self.sites, &mut self.shared, &mut decisions);
            let mut is_new = false;
            for Decision { rank, job } in decisions.drain(..) {
                is_new |= self.run(now, rank, &job, starts);
            }
            if !is_new {
                break;
            }
        }
        self.decisions = decisions;
    }

    fn interleaved(&mut self, now: Time, starts: &mut Vec<Start>) {
        // Of all visits of sites at this instant.
        let mut visit = 0;
        loop {
            let mut changed = false;
            for place in 0..self.sites.len() {
                visit += 1;
                let rank = match self.pool.site_order {
                    SiteOrder::Ascending => place,
                    SiteOrder::Descending => self.sites.len() - 1 - place,
                };
                let site = &mut self.sites[rank];
                own_step(&self.pool, now, site, &mut self.own[rank], &mut self.turn);
                changed |= !self.turn.starts.is_empty() || !self.turn.offers.is_empty();
                let own_work = !self.turn.starts.is_empty();
                self.carry_out(now, rank, visit, starts);
                if !own_work {
                    let site = &mut self.sites[rank];
                    serve(&self.pool, now, site, &mut self.shared, &mut self.turn.starts);
                    changed |= !self.turn.starts.is_empty();
                    self.carry_out(now, rank, visit, starts);
                }
            }
            if !changed {
                return;
            }
        }
    }

    /// Starts and offers what a site decided at its turn.
    fn carry_out(&mut self, now: Time, rank: usize, turn_of: usize, starts: &mut Vec<Start>) {
        let mut turn = std::mem::take(&mut self.turn);
        for job in turn.starts.drain(..) {
            self.run(now, rank, &job, starts);
        }
        self.offered.extend(turn.offers.iter().map(|job| job.id));
        self.shared.extend(turn.offers_of(turn_of, now));
        turn.offers.clear();
        self.turn = turn;
    }

    /// Whether its site believes otherwise of its run time than the one that it comes from.
    fn run(&mut self, now: Time, rank: usize, job: &WaitingJob, starts: &mut Vec<Start>) -> bool {
        let Waiting { job: spec, entry } = self.waiting.remove(&job.id).expect("only waiting jobs start");
        let planned = now.saturating_add(job.requested);
        let mut estimated_end = planned;
        if !self.estimates.is_empty() {
            let known = if entry == rank {
                JobSpec { requested: job.requested, ..spec }
            } else {
                self.estimates[entry].leave(job.id);
                self.estimates[rank].enter(now, spec)
            };
            self.estimates[rank].start(now, &known);
            estimated_end = now.saturating_add(known.requested);
            self.sites[rank].expect(planned, estimated_end, job.processors);
        }
        self.running.insert(job.id, Running { rank, processors: job.processors, estimated_end });
        starts.push(Start { job: spec, site: self.grid.at_rank(rank) });
        estimated_end != planned
    }

    /// Corrects what a site believes of jobs that run past it.
    fn correct(&mut self, now: Time, rank: usize) {
        let PoolExchange { sites, running, estimates, .. } = self;
        estimates[rank].correct(now, |job, end| {
            let running = running.get_mut(&job).expect("what is corrected runs");
            sites[rank].expect(running.estimated_end, end, running.processors);
            running.estimated_end = end;
        });
    }
}

impl Policy for PoolExchange {
    fn submitted(&mut self, now: Time, job: JobSpec) {
        let entry = self.entry(&self.grid, &job);
        let entry = entry.unwrap_or_else(|| panic!("job {} fits no site of the grid", job.id));
        let rank = self.grid.rank(entry);
        let before = self.waiting.insert(job.id, Waiting { job, entry: rank });
        assert!(before.is_none(), "job {} is submitted once", job.id);
        let estimates = self.estimates.get_mut(rank);
        let waiting = WaitingJob::new(&estimates.map_or(job, |estimates| estimates.enter(now, job)));
        self.stirred[rank] = true;
        if job.processors > self.sites[rank].processors {
            self.shared.insert(waiting.entering(Entered::on_arrival(now)));
        } else {
            self.own[rank].insert(waiting);
            self.touched[rank] = true;
        }
    }

    fn entry(&self, grid: &Grid, job: &JobSpec) -> Option<SiteId> {
        self.submit.rank_among_sites(grid, Strategy::Pool(self.pool), job).map(|rank| grid.at_rank(rank))
    }

    fn completed(&mut self, now: Time, job: JobId) {
        let Running { rank, processors, estimated_end } =
            self.running.remove(&job).expect("only running jobs complete");
        self.sites[rank].complete(estimated_end, processors);
        self.touched[rank] = true;
        self.stirred[rank] = true;
        if let Some(estimates) = self.estimates.get_mut(rank) {
            estimates.complete(now, job);
        }
    }

    fn decide(&mut self, now: Time, starts: &mut Vec<Start>) {
        self.offered.clear();
        for rank in 0..self.estimates.len() {
            if std::mem::take(&mut self.stirred[rank]) {
                self.correct(now, rank);
            }
        }
        match self.pool.discipline {
            Discipline::TwoPhase => self.two_phase(now, starts),
            Discipline::Interleaved => self.interleaved(now, starts),
        }
    }

    fn predictions(&mut self, sink: &mut dyn FnMut(SiteId, Prediction)) {
        for (rank, estimates) in self.estimates.iter_mut().enumerate() {
            let site = self.grid.at_rank(rank);
            estimates.news().for_each(|prediction| sink(site, prediction));
        }
    }

    fn waiting(&self) -> usize {
        self.waiting.len()
    }
}
