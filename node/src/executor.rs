//! Runs jobs: a running job is a timer of its true run time.
//!
//! The only place of a node that looks at true run times. It learns them with the jobs: from the coordinator at
//! submission, from the sending node when a job moves. Pure: the caller brings the time.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use scheduler::{JobId, Span, Time};

/// A job was started whose run time never reached this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("job {0} was started, but its run time never reached this node")]
pub struct UnknownRunTime(pub JobId);

/// The timers of one site's running jobs.
#[derive(Debug, Default)]
pub struct Executor {
    run_times: BTreeMap<JobId, Span>,
    /// (end, order of starting, job)
    endings: BinaryHeap<Reverse<(Time, u64, JobId)>>,
    started: u64,
}

impl Executor {
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
    pub fn start(&mut self, now: Time, job: JobId) -> Result<(), UnknownRunTime> {
        let run_time = self.run_time(job).ok_or(UnknownRunTime(job))?;
        self.started += 1;
        self.endings.push(Reverse((now.saturating_add(run_time), self.started, job)));
        Ok(())
    }

    /// A job that has ended by now, and when; earliest first, then in the order of starting.
    pub fn pop_due(&mut self, now: Time) -> Option<(Time, JobId)> {
        let Reverse((end, _, job)) = *self.endings.peek()?;
        if end > now {
            return None;
        }
        self.endings.pop();
        self.run_times.remove(&job);
        Some((end, job))
    }

    /// When the next job ends.
    pub fn next_due(&self) -> Option<Time> {
        self.endings.peek().map(|Reverse((end, ..))| *end)
    }

    /// How many jobs run.
    pub fn running(&self) -> usize {
        self.endings.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_end_after_their_run_time_in_order() {
        let mut executor = Executor::default();
        for (job, seconds) in [(1, 10), (2, 5), (3, 5), (4, 0)] {
            executor.learn(JobId(job), Span::from_secs(seconds));
            executor.start(Time::from_secs(100), JobId(job)).unwrap();
        }

        assert_eq!(executor.next_due(), Some(Time::from_secs(100)));
        let mut ended = Vec::new();
        for second in 100..=110 {
            while let Some((end, job)) = executor.pop_due(Time::from_secs(second)) {
                assert_eq!(end, Time::from_secs(second));
                ended.push(job.0);
            }
        }
        assert_eq!(ended, [4, 2, 3, 1]);
        assert_eq!(executor.running(), 0);
    }

    #[test]
    fn a_job_without_a_run_time_is_not_started() {
        let mut executor = Executor::default();
        assert_eq!(executor.start(Time::ZERO, JobId(1)), Err(UnknownRunTime(JobId(1))));
        assert_eq!(executor.running(), 0);
    }
}
