//! Jobs as timers, set by [`scheduler::execution`]. Pure: the caller brings the time.

use scheduler::execution::Begun;
use scheduler::{EventKind, Execution, Grid, JobId, JobSpec, SiteId, Span, Time};

/// The timers of one site's running jobs.
#[derive(Debug)]
pub(super) struct Timers {
    site: SiteId,
    executing: Execution<JobId>,
    started: u64,
}

impl Timers {
    /// Nothing runs at a site.
    pub(super) fn at(grid: &Grid, site: SiteId) -> Timers {
        Timers { site, executing: Execution::on(grid), started: 0 }
    }

    /// Starts a job that runs so long.
    pub(super) fn start(&mut self, now: Time, job: &JobSpec, run_time: Span) {
        self.started += 1;
        self.executing.start(now, Begun { site: self.site, job, run_time, order: self.started, key: job.id });
    }

    /// A job executes here no longer. It may start again.
    pub(super) fn stop(&mut self, job: JobId) {
        self.executing.stop(|&executing| executing == job);
    }

    /// A job that has ended by now, and when; earliest first, then in the order of starting.
    pub(super) fn pop_due(&mut self, now: Time) -> Option<(Time, JobId)> {
        self.executing.pop_due(now).map(|end| (end.at, end.what))
    }

    /// What became of jobs on shared nodes since the last call: see [`Execution::told`].
    pub(super) fn told(&mut self) -> impl Iterator<Item = EventKind> + '_ {
        self.executing.told().map(|(_, kind)| kind)
    }

    /// When the next job ends.
    pub(super) fn next_due(&self) -> Option<Time> {
        self.executing.next_end()
    }

    /// How many jobs run.
    pub(super) fn running(&self) -> usize {
        self.executing.len()
    }
}
