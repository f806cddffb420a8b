//! Every job at the site where it is submitted under that site's own queue: the ideal reference of the strategy `local`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::LocalQueue;
use super::decider::QueueDecider;
use super::estimates::Estimator;
use crate::entry::Submit;
use crate::event::FallbackCause;
use crate::grid::{Grid, SiteId};
use crate::job::{JobId, JobSpec};
use crate::policy::{Policy, Start};
use crate::prediction::Prediction;
use crate::strategy::{LocalScheduler, Pass, Strategy};
use crate::time::Time;

/// One [`LocalQueue`] per site, and no exchange between them.
#[derive(Clone, Debug)]
pub struct LocalGrid {
    grid: Grid,
    submit: Submit,
    /// By [`SiteId::index`].
    queues: Vec<LocalQueue>,
    /// Sites of running jobs.
    running: BTreeMap<JobId, SiteId>,
    /// Sites with a fact that no decision has seen.
    dirty: BTreeSet<SiteId>,
    /// When sites want to decide without a fact.
    timers: BTreeSet<(Time, SiteId)>,
    /// The timer of each site, by [`SiteId::index`].
    timer: Vec<Option<Time>>,
    waiting: usize,
    starts: Vec<JobSpec>,
    /// Whether somebody else decides what starts.
    is_external: bool,
    /// Whether queues predict run times.
    predicts: bool,
}

impl LocalGrid {
    /// Idle sites, all under one kind of scheduler. Jobs are submitted at their homes.
    pub fn new(grid: Grid, scheduler: LocalScheduler, pass: Pass) -> Self {
        let queues: Vec<LocalQueue> = grid
            .sites()
            .iter()
            .map(|site| LocalQueue::new(scheduler, pass, grid.capacity(site.id)))
            .collect();
        LocalGrid {
            timer: vec![None; queues.len()],
            grid,
            submit: Submit::Home,
            queues,
            running: BTreeMap::new(),
            dirty: BTreeSet::new(),
            timers: BTreeSet::new(),
            waiting: 0,
            starts: Vec::new(),
            is_external: false,
            predicts: false,
        }
    }

    /// The same with jobs submitted elsewhere. What is too wide for the site of its user goes to its home.
    pub fn submitting(self, submit: Submit) -> Self {
        LocalGrid { submit, ..self }
    }

    /// The same with queues that each predict run times by an estimator of their own.
    #[must_use]
    pub fn with_estimators(mut self, estimator: impl Fn() -> Box<dyn Estimator>) -> Self {
        self.queues = self.queues.into_iter().map(|queue| queue.with_estimator(estimator())).collect();
        self.predicts = true;
        self
    }

    /// The same with queues whose starts somebody else decides, each by a decider of its own.
    pub fn with_deciders(mut self, decider: impl Fn(&Grid, SiteId) -> Arc<dyn QueueDecider>) -> Self {
        for site in self.grid.sites() {
            self.queues[site.id.index()] =
                LocalQueue::external(decider(&self.grid, site.id), site.processors);
        }
        self.is_external = true;
        self
    }

    /// The queue of one site.
    pub fn queue(&self, site: SiteId) -> &LocalQueue {
        &self.queues[site.index()]
    }

    fn set_timer(&mut self, site: SiteId) {
        let wake_at = self.queues[site.index()].wake_at();
        let before = std::mem::replace(&mut self.timer[site.index()], wake_at);
        if before != wake_at {
            if let Some(time) = before {
                self.timers.remove(&(time, site));
            }
            if let Some(time) = wake_at {
                self.timers.insert((time, site));
            }
        }
    }
}

impl Policy for LocalGrid {
    /// # Panics
    /// If the job is wider than every site.
    fn submitted(&mut self, now: Time, job: JobSpec) {
        let entry = self.entry(&self.grid, &job).filter(|&entry| self.grid.width(entry) >= job.processors);
        let site = entry.or_else(|| self.grid.home(job.processors));
        let site = site.unwrap_or_else(|| panic!("job {} is wider than every site", job.id));
        self.queues[site.index()].submit(now, job);
        self.dirty.insert(site);
        self.waiting += 1;
    }

    fn entry(&self, grid: &Grid, job: &JobSpec) -> Option<SiteId> {
        self.submit.rank_among_sites(grid, Strategy::Local, job).map(|rank| grid.at_rank(rank))
    }

    /// # Panics
    /// If the job does not run.
    fn completed(&mut self, now: Time, job: JobId) {
        let site = self.running.remove(&job);
        let site = site.unwrap_or_else(|| panic!("job {job} ended and does not run"));
        self.queues[site.index()].complete(now, job);
        self.dirty.insert(site);
    }

    /// Sites decide in ascending order of their ids; those without news are not visited.
    fn decide(&mut self, now: Time, starts: &mut Vec<Start>) {
        while let Some(&(_, site)) = self.timers.first().filter(|(time, _)| *time <= now) {
            self.timers.pop_first();
            self.timer[site.index()] = None;
            self.dirty.insert(site);
        }
        for site in std::mem::take(&mut self.dirty) {
            self.queues[site.index()].decide(now, &mut self.starts);
            for job in self.starts.drain(..) {
                self.running.insert(job.id, site);
                self.waiting -= 1;
                starts.push(Start { job, site });
            }
            self.set_timer(site);
        }
    }

    fn failures(&mut self, sink: &mut dyn FnMut(SiteId, FallbackCause)) {
        if !self.is_external {
            return;
        }
        for (index, queue) in self.queues.iter_mut().enumerate() {
            if let Some(cause) = queue.failure() {
                sink(SiteId::from_index(index), cause);
            }
        }
    }

    fn predictions(&mut self, sink: &mut dyn FnMut(SiteId, Prediction)) {
        if !self.predicts {
            return;
        }
        for (index, queue) in self.queues.iter_mut().enumerate() {
            queue.predictions().for_each(|prediction| sink(SiteId::from_index(index), prediction));
        }
    }

    fn wake_at(&self) -> Option<Time> {
        self.timers.first().map(|&(time, _)| time)
    }

    fn waiting(&self) -> usize {
        self.waiting
    }
}
