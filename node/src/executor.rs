//! Runs jobs: a running job is a timer, set by [`scheduler::execution`].
//!
//! The only place of a node that looks at true run times. It learns them with the jobs: from the coordinator at
//! submission, from the sending node when a job moves. Pure: the caller brings the time.

use std::collections::BTreeMap;

use scheduler::execution::Begun;
use scheduler::{EventKind, Execution, Grid, JobId, JobSpec, SiteId, Span, Time};

/// A job was started whose run time never reached this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("job {0} was started, but its run time never reached this node")]
pub struct UnknownRunTime(pub JobId);

/// The timers of one site's running jobs.
#[derive(Debug)]
pub struct Executor {
    site: SiteId,
    run_times: BTreeMap<JobId, Span>,
    executing: Execution<JobId>,
    started: u64,
}

impl Executor {
    /// Nothing runs at a site.
    pub fn at(grid: &Grid, site: SiteId) -> Executor {
        Executor { site, run_times: BTreeMap::new(), executing: Execution::on(grid), started: 0 }
    }

    /// Notes how long a job will run.
    pub fn learn(&mut self, job: JobId, run_time: Span) {
        self.run_times.insert(job, run_time);
    }

    /// How long a job will run, to be sent along when it moves. Kept after it has moved: the message that moved it
    /// may have to be repeated.
    pub fn run_time(&self, job: JobId) -> Option<Span> {
        self.run_times.get(&job).copied()
    }

    /// Starts a job.
    ///
    /// # Errors
    /// If its run time is not known.
    pub fn start(&mut self, now: Time, job: &JobSpec) -> Result<(), UnknownRunTime> {
        let run_time = self.run_time(job.id).ok_or(UnknownRunTime(job.id))?;
        self.started += 1;
        self.executing.start(now, Begun { site: self.site, job, run_time, order: self.started, key: job.id });
        Ok(())
    }

    /// A job executes here no longer. It may start again.
    pub fn stop(&mut self, job: JobId) {
        self.executing.stop(|&executing| executing == job);
    }

    /// A job that has ended by now, and when; earliest first, then in the order of starting.
    pub fn pop_due(&mut self, now: Time) -> Option<(Time, JobId)> {
        let end = self.executing.pop_due(now)?;
        self.run_times.remove(&end.what);
        Some((end.at, end.what))
    }

    /// What became of jobs on shared nodes since the last call: see [`Execution::told`].
    pub fn told(&mut self) -> impl Iterator<Item = EventKind> + '_ {
        self.executing.told().map(|(_, kind)| kind)
    }

    /// When the next job ends.
    pub fn next_due(&self) -> Option<Time> {
        self.executing.next_end()
    }

    /// How many jobs run.
    pub fn running(&self) -> usize {
        self.executing.len()
    }
}

#[cfg(test)]
mod tests {
    use scheduler::Labels;

    use super::*;

    fn executor() -> Executor {
        Executor::at(&Grid::of_sizes(&[1]).unwrap(), SiteId(1))
    }

    fn job() -> JobSpec {
        JobSpec {
            id: JobId(1),
            submit: Time::ZERO,
            processors: 1,
            requested: Span::from_secs(10),
            labels: Labels::UNKNOWN,
            origin: SiteId(1),
            payload: 0,
        }
    }

    #[test]
    fn a_run_time_is_kept_until_the_job_ends_here() {
        let mut executor = executor();
        executor.learn(JobId(1), Span::from_secs(10));
        executor.start(Time::from_secs(100), &job()).unwrap();
        assert_eq!((executor.pop_due(Time::from_secs(109)), executor.running()), (None, 1));
        let end = Time::from_secs(110);
        assert_eq!(executor.next_due(), Some(end));
        assert_eq!(executor.pop_due(end), Some((end, JobId(1))));
        assert_eq!(executor.run_time(JobId(1)), None);
    }

    #[test]
    fn a_job_without_a_run_time_is_not_started() {
        let mut executor = executor();
        assert_eq!(executor.start(Time::ZERO, &job()), Err(UnknownRunTime(JobId(1))));
        assert_eq!(executor.running(), 0);
    }
}
