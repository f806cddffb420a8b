//! What every site has at the moment: idle processors, waiting jobs, unanswered requests. From events alone.

use std::collections::{BTreeMap, BTreeSet};

use scheduler::{Event, EventKind, Grid, JobId, SiteId, Time};

/// The state of all sites.
#[derive(Clone, Debug)]
pub(super) struct World {
    grid: Grid,
    idle: Vec<u32>,
    /// Jobs in the queue of each site, in queue order, with their width.
    waiting: Vec<BTreeMap<(Time, JobId), u32>>,
    /// Submission and width of jobs that have not started.
    jobs: BTreeMap<JobId, (Time, u32)>,
    /// The same of jobs that execute, and where: a crash may end that.
    running: BTreeMap<JobId, (SiteId, (Time, u32))>,
    /// By thief and victim: number of the unanswered request, and the processors offered.
    asked: BTreeMap<(SiteId, SiteId), (u64, u32)>,
    /// Sites that are not there, or stand still, as drivers say.
    away: BTreeSet<SiteId>,
}

impl World {
    pub(super) fn new(grid: &Grid) -> World {
        World {
            idle: grid.sites().iter().map(|site| site.processors).collect(),
            waiting: vec![BTreeMap::new(); grid.len()],
            grid: grid.clone(),
            jobs: BTreeMap::new(),
            running: BTreeMap::new(),
            asked: BTreeMap::new(),
            away: BTreeSet::new(),
        }
    }

    /// Whether the site is not there, or stands still.
    pub(super) fn is_away(&self, site: SiteId) -> bool {
        self.away.contains(&site)
    }

    pub(super) fn grid(&self) -> &Grid {
        &self.grid
    }

    /// Processors that could begin something now.
    pub(super) fn idle(&self, site: SiteId) -> u32 {
        if self.is_away(site) { 0 } else { self.idle[site.index()] }
    }

    pub(super) fn waiting_at(&self, site: SiteId) -> usize {
        self.waiting[site.index()].len()
    }

    /// The smallest site where so many processors are idle.
    pub(super) fn smallest_with_room(&self, processors: u32) -> Option<SiteId> {
        (0..self.grid.len()).map(|rank| self.grid.at_rank(rank)).find(|&site| self.idle(site) >= processors)
    }

    pub(super) fn is_asked(&self, thief: SiteId, victim: SiteId) -> bool {
        self.asked.contains_key(&(thief, victim))
    }

    /// Processors offered in the request that is not answered.
    pub(super) fn offer(&self, thief: SiteId, victim: SiteId) -> Option<u32> {
        self.asked.get(&(thief, victim)).map(|&(_, offer)| offer)
    }

    /// Home and width of the jobs before a place in a queue.
    pub(super) fn ahead(&self, site: SiteId, key: (Time, JobId)) -> Vec<(Option<SiteId>, u32)> {
        let queue = &self.waiting[site.index()];
        queue.range(..key).map(|(_, &processors)| (self.grid.home(processors), processors)).collect()
    }

    pub(super) fn observe(&mut self, event: &Event) {
        let Event { at, site, kind } = *event;
        match kind {
            EventKind::Submitted { job, processors, .. } => {
                self.jobs.insert(job, (at, processors));
                self.enter(site, job);
            }
            EventKind::Accepted { job, .. } | EventKind::Returned { job, .. } => self.enter(site, job),
            EventKind::Granted { job, .. } => self.leave(site, job),
            EventKind::Started { job, processors, .. } => {
                self.leave(site, job);
                if let Some(description) = self.jobs.remove(&job) {
                    self.running.insert(job, (site, description));
                }
                let idle = &mut self.idle[site.index()];
                *idle = idle.saturating_sub(processors);
            }
            EventKind::Completed { job, processors } => {
                self.stop(site, job);
                self.free(site, processors);
            }
            EventKind::Interrupted { job, processors, killed } => {
                self.free(site, processors);
                let here = self.stop(site, job);
                if let Some(description) = here.filter(|_| !killed) {
                    self.jobs.insert(job, description);
                    self.enter(site, job);
                }
            }
            EventKind::TookOver { job, .. } => {
                if self.running.get(&job).is_some_and(|&(there, _)| there == site) {
                    // It goes on.
                    return;
                }
                if let Some((_, description)) = self.running.remove(&job) {
                    self.jobs.insert(job, description);
                }
                self.waiting.iter_mut().for_each(|queue| queue.retain(|&(_, waiting), _| waiting != job));
                self.enter(site, job);
            }
            EventKind::Superseded { job, started: false, .. } => self.leave(site, job),
            EventKind::Ended { how } => {
                self.away.insert(site);
                if how.interrupts() {
                    self.idle[site.index()] = self.grid.site(site).processors;
                }
            }
            EventKind::Begun { .. } => {
                self.away.remove(&site);
            }
            EventKind::Requested { victim, seq, offer, .. } => {
                self.asked.insert((site, victim), (seq, offer));
            }
            EventKind::Answered { victim, seq, .. }
                if self.asked.get(&(site, victim)).is_some_and(|asked| asked.0 == seq) =>
            {
                self.asked.remove(&(site, victim));
            }
            _ => {}
        }
    }

    fn free(&mut self, site: SiteId, processors: u32) {
        let most = self.grid.site(site).processors;
        let idle = &mut self.idle[site.index()];
        *idle = (*idle + processors).min(most);
    }

    /// A job no longer executes at a site; `None` if the execution that is known is another.
    fn stop(&mut self, site: SiteId, job: JobId) -> Option<(Time, u32)> {
        let (there, description) = *self.running.get(&job)?;
        (there == site).then(|| {
            self.running.remove(&job);
            description
        })
    }

    fn enter(&mut self, site: SiteId, job: JobId) {
        if let Some(&(submit, processors)) = self.jobs.get(&job) {
            self.waiting[site.index()].insert((submit, job), processors);
        }
    }

    fn leave(&mut self, site: SiteId, job: JobId) {
        if let Some(&(submit, _)) = self.jobs.get(&job) {
            self.waiting[site.index()].remove(&(submit, job));
        }
    }
}
