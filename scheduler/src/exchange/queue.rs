//! Waiting jobs in the order of a queue or of the pool.
//!
//! Kept in chunks with the narrowest width and the shortest request of each, so that a site passes over
//! thousands of jobs that it cannot start at the cost of a few.

use serde::{Deserialize, Serialize};

use crate::job::{JobId, JobSpec};
use crate::local::backlog::Least;
use crate::local::chunked::{Chunked, Entry};
use crate::strategy::PoolOrder;
use crate::time::{Span, Time};

/// A waiting job as sites tell each other of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitingJob {
    /// The job.
    pub id: JobId,
    /// Submission time r_j.
    pub submit: Time,
    /// Its width.
    pub processors: u32,
    /// Requested time p'_j.
    pub requested: Span,
    /// When it entered the pool; for a job of a local queue its submission. Jobs that enter at one instant are
    /// in order of submission.
    pub entered: Time,
}

impl WaitingJob {
    /// A job of a local queue.
    pub fn new(job: &JobSpec) -> WaitingJob {
        let JobSpec { id, submit, processors, requested, .. } = *job;
        WaitingJob { id, submit, processors, requested, entered: submit }
    }

    /// The same job as it enters the pool.
    pub fn offered(&self, now: Time) -> WaitingJob {
        WaitingJob { entered: now, ..*self }
    }

    pub(super) fn least(&self) -> Least {
        Least { processors: self.processors, requested: self.requested }
    }
}

/// Where a job stands: (when it entered, if that counts, else nothing; submission; id).
type Place = (Time, Time, JobId);

#[derive(Clone, Copy, Debug)]
struct Placed {
    place: Place,
    job: WaitingJob,
}

impl Entry for Placed {
    type Key = Place;
    type Summary = Least;

    fn key(&self) -> Place {
        self.place
    }

    fn summary(&self) -> Least {
        self.job.least()
    }

    fn merge(one: Least, other: Least) -> Least {
        Least {
            processors: one.processors.min(other.processors),
            requested: one.requested.min(other.requested),
        }
    }

    fn without(&self, group: Least) -> Option<Least> {
        let job = self.job.least();
        (job.processors != group.processors && job.requested != group.requested).then_some(group)
    }
}

/// Waiting jobs in order.
#[derive(Clone, Debug)]
pub struct JobQueue {
    order: PoolOrder,
    jobs: Chunked<Placed>,
}

impl JobQueue {
    /// An empty queue. Local queues are in [`PoolOrder::Submit`], whatever the order of the pool.
    pub fn new(order: PoolOrder) -> JobQueue {
        JobQueue { order, jobs: Chunked::new() }
    }

    /// How many jobs wait.
    pub fn len(&self) -> usize {
        self.jobs.len()
    }

    /// Whether no job waits.
    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    /// The first job.
    pub fn first(&self) -> Option<&WaitingJob> {
        self.jobs.first().map(|placed| &placed.job)
    }

    /// All jobs in order.
    pub fn iter(&self) -> impl Iterator<Item = &WaitingJob> {
        self.jobs.iter().map(|placed| &placed.job)
    }

    /// Adds a job at its place.
    ///
    /// # Panics
    /// If it waits here already.
    pub fn insert(&mut self, job: WaitingJob) {
        self.jobs.insert(Placed { place: self.place(&job), job });
    }

    /// Takes a job out. `None` if it does not wait here.
    pub fn remove(&mut self, job: &WaitingJob) -> Option<WaitingJob> {
        self.jobs.remove(self.place(job)).map(|placed| placed.job)
    }

    /// Walks everything.
    ///
    /// # Panics
    /// If the jobs are not in order or miscounted.
    pub fn check_invariants(&self) {
        self.jobs.check_invariants();
        for placed in self.jobs.iter() {
            assert_eq!(placed.place, self.place(&placed.job), "job {} stands in its place", placed.job.id);
        }
    }

    pub(super) fn pop_first(&mut self) -> Option<WaitingJob> {
        let first = *self.first()?;
        self.remove(&first)
    }

    /// Moves all jobs, in order, to where they enter now.
    pub(super) fn drain(&mut self, now: Time, to: &mut Vec<WaitingJob>) {
        to.extend(self.iter().map(|job| job.offered(now)));
        self.jobs = Chunked::new();
    }

    /// Takes out, in order, every job that `pick` says yes to. `may` is asked of the least of some jobs and must
    /// say yes whenever `pick` would for one of them, or would learn from it.
    pub(super) fn take<S>(
        &mut self,
        state: &mut S,
        may: impl Fn(&S, Least) -> bool,
        mut pick: impl FnMut(&mut S, &WaitingJob) -> bool,
    ) {
        self.jobs.take(state, may, |state, placed| pick(state, &placed.job));
    }

    fn place(&self, job: &WaitingJob) -> Place {
        let entered = match self.order {
            PoolOrder::Submit => Time::ZERO,
            PoolOrder::Offered => job.entered,
        };
        (entered, job.submit, job.id)
    }
}

impl Extend<WaitingJob> for JobQueue {
    fn extend<I: IntoIterator<Item = WaitingJob>>(&mut self, jobs: I) {
        for job in jobs {
            self.insert(job);
        }
    }
}
