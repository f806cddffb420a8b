//! Drives one queue with a whole log: the smallest event loop that keeps the order of an instant.
//!
//! For tests, benches and single-site runs. Grids, delays and faults are the simulator's.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::LocalQueue;
use crate::job::{JobId, JobSpec, TimedJob};
use crate::strategy::Pass;
use crate::time::{Time, earlier};

/// Runs every job through the queue and returns the starts in the order of the decisions.
///
/// The order of an instant is that of the queue's [`Pass`]. The jobs may come in any order.
///
/// # Panics
/// If two jobs share an id, or a job is wider than the site or never starts.
pub fn replay(queue: LocalQueue, jobs: &[TimedJob]) -> Vec<(JobId, Time)> {
    replay_watched(queue, jobs, |_, _| {})
}

/// The same; `decided` sees the queue after each of its decisions.
///
/// # Panics
/// As [`replay`].
pub fn replay_watched(
    queue: LocalQueue,
    jobs: &[TimedJob],
    decided: impl FnMut(&LocalQueue, Time),
) -> Vec<(JobId, Time)> {
    replay_seen(queue, jobs, &mut Decisions(decided))
}

/// Sees what happens in a replay, in that order.
pub trait Watch {
    /// A job has joined the queue, which has not decided since.
    fn submitted(&mut self, _queue: &LocalQueue, _now: Time, _job: &JobSpec) {}

    /// A job has ended.
    fn ended(&mut self, _now: Time, _job: &TimedJob) {}

    /// A job starts.
    fn started(&mut self, _now: Time, _job: &TimedJob) {}

    /// The queue has decided.
    fn decided(&mut self, _queue: &LocalQueue, _now: Time) {}
}

struct Decisions<F>(F);

impl<F: FnMut(&LocalQueue, Time)> Watch for Decisions<F> {
    fn decided(&mut self, queue: &LocalQueue, now: Time) {
        (self.0)(queue, now);
    }
}

/// The same, for somebody who sees all that happens.
///
/// # Panics
/// As [`replay`].
pub fn replay_seen(queue: LocalQueue, jobs: &[TimedJob], watch: &mut impl Watch) -> Vec<(JobId, Time)> {
    let mut replay = Replay::new(queue, jobs, watch);
    while let Some(now) = replay.next_instant() {
        match replay.queue.pass() {
            Pass::Batch => {
                while let Some(job) = replay.next_completion(now) {
                    replay.complete(now, job);
                }
                while let Some(job) = replay.next_submission(now) {
                    replay.submit(now, job);
                }
                replay.decide(now);
            }
            Pass::PerEvent => {
                let mut decided = false;
                while let Some(job) = replay.next_submission(now) {
                    replay.submit(now, job);
                    replay.decide(now);
                    decided = true;
                }
                while let Some(job) = replay.next_completion(now) {
                    replay.complete(now, job);
                    replay.decide(now);
                    decided = true;
                }
                if !decided {
                    replay.decide(now);
                }
            }
        }
    }
    assert_eq!(replay.started.len(), jobs.len(), "every job starts");
    replay.started
}

struct Replay<'a, W> {
    queue: LocalQueue,
    jobs: &'a [TimedJob],
    /// Indices of jobs in queue order, those not submitted yet.
    submissions: std::iter::Peekable<std::vec::IntoIter<usize>>,
    /// Job ids with the index of the job, ascending.
    index: Vec<(JobId, usize)>,
    /// Earliest first; those of one instant in start order.
    completions: BinaryHeap<Reverse<(Time, usize, JobId)>>,
    started: Vec<(JobId, Time)>,
    starts: Vec<JobSpec>,
    watch: &'a mut W,
}

impl<'a, W: Watch> Replay<'a, W> {
    fn new(queue: LocalQueue, jobs: &'a [TimedJob], watch: &'a mut W) -> Self {
        let mut order: Vec<usize> = (0..jobs.len()).collect();
        order.sort_by_key(|&place| jobs[place].spec.key());
        let mut index: Vec<(JobId, usize)> = jobs.iter().map(|job| job.spec.id).zip(0..).collect();
        index.sort_unstable();
        assert!(index.is_sorted_by(|a, b| a.0 < b.0), "no two jobs share an id");
        Replay {
            queue,
            jobs,
            submissions: order.into_iter().peekable(),
            index,
            completions: BinaryHeap::new(),
            started: Vec::with_capacity(jobs.len()),
            starts: Vec::new(),
            watch,
        }
    }

    fn next_instant(&mut self) -> Option<Time> {
        let submission = self.submissions.peek().map(|&place| self.jobs[place].spec.submit);
        let completion = self.completions.peek().map(|&Reverse((time, ..))| time);
        earlier(earlier(submission, completion), self.queue.wake_at())
    }

    fn next_submission(&mut self, now: Time) -> Option<JobSpec> {
        let place = self.submissions.next_if(|&place| self.jobs[place].spec.submit <= now)?;
        Some(self.jobs[place].spec)
    }

    fn next_completion(&mut self, now: Time) -> Option<JobId> {
        self.completions.peek().filter(|Reverse((time, ..))| *time <= now)?;
        self.completions.pop().map(|Reverse((_, _, job))| job)
    }

    fn submit(&mut self, now: Time, job: JobSpec) {
        self.queue.submit(now, job);
        self.watch.submitted(&self.queue, now, &job);
    }

    fn complete(&mut self, now: Time, job: JobId) {
        self.queue.complete(now, job);
        let job = self.job(job);
        self.watch.ended(now, job);
    }

    fn decide(&mut self, now: Time) {
        let mut starts = std::mem::take(&mut self.starts);
        self.queue.decide(now, &mut starts);
        for job in starts.drain(..) {
            let job = self.job(job.id);
            let end = now.saturating_add(job.run_time);
            self.completions.push(Reverse((end, self.started.len(), job.spec.id)));
            self.started.push((job.spec.id, now));
            self.watch.started(now, job);
        }
        self.starts = starts;
        self.watch.decided(&self.queue, now);
    }

    fn job(&self, job: JobId) -> &'a TimedJob {
        let entry = self.index.binary_search_by_key(&job, |&(id, _)| id);
        let (_, place) = self.index[entry.expect("only submitted jobs start and end")];
        &self.jobs[place]
    }
}
