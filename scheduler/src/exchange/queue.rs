//! Waiting jobs in the order of a queue or of the pool.
//!
//! Kept in chunks with the narrowest width and the shortest request of each, so that a site passes over
//! thousands of jobs that it cannot start at the cost of a few.

use std::ops::ControlFlow;

use serde::ser::SerializeTuple;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::job::{JobId, JobSpec};
use crate::local::backlog::Least;
use crate::local::chunked::{Chunked, Entry};
use crate::local::turn::Shape;
use crate::strategy::PoolOrder;
use crate::time::{Span, Time};

/// A waiting job as sites tell each other of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "Told", into = "Told")]
pub struct WaitingJob {
    /// Id of the job; its owner has the rest.
    pub id: JobId,
    /// Submission time r_j.
    pub submit: Time,
    /// Width size_j in processors.
    pub processors: u32,
    /// Requested time p'_j.
    pub requested: Span,
    /// When it entered the pool. Means nothing in a local queue.
    pub entered: Entered,
    /// Memory of each task in KB, where jobs share nodes; 0 elsewhere.
    pub memory: u64,
}

/// A waiting job as messages have it.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Told {
    id: JobId,
    submit: Time,
    size: Size,
    requested: Span,
    entered: Entered,
}

/// A width, and memory if some is asked for: then the width has this bit, which none has ([`crate::grid::PROCESSORS_MAX`]).
#[derive(Clone, Copy)]
struct Size {
    processors: u32,
    memory: u64,
}

const MEMORY_FOLLOWS: u32 = 1 << 31;

impl From<Told> for WaitingJob {
    fn from(Told { id, submit, size, requested, entered }: Told) -> WaitingJob {
        WaitingJob { id, submit, processors: size.processors, requested, entered, memory: size.memory }
    }
}

impl From<WaitingJob> for Told {
    fn from(job: WaitingJob) -> Told {
        let WaitingJob { id, submit, processors, requested, entered, memory } = job;
        Told { id, submit, size: Size { processors, memory }, requested, entered }
    }
}

impl Serialize for Size {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.memory == 0 {
            return serializer.serialize_u32(self.processors & !MEMORY_FOLLOWS);
        }
        let mut both = serializer.serialize_tuple(2)?;
        both.serialize_element(&(self.processors | MEMORY_FOLLOWS))?;
        both.serialize_element(&self.memory)?;
        both.end()
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Size, D::Error> {
        let (first, memory) = crate::room::number_and(deserializer, MEMORY_FOLLOWS)?;
        Ok(Size { processors: first, memory: memory.unwrap_or(0) })
    }
}

/// The place of a job in the order of entering the pool, of which [`PoolOrder::Offered`] makes the order of the pool.
///
/// At one instant, jobs wider than the site where they were submitted come first, in order of submission; then
/// come what the sites offered, site by site in ascending rank, each in the order of its offers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Entered {
    at: Time,
    /// 0 on arrival, else 1 + rank.
    turn: u32,
    /// How many offers at this turn were earlier.
    earlier: u32,
}

impl Entered {
    /// On arrival, because no job this wide fits its site.
    pub fn on_arrival(now: Time) -> Entered {
        Entered { at: now, turn: 0, earlier: 0 }
    }

    /// Offered by the site of this rank after so many other offers of the instant.
    pub fn offered(now: Time, rank: usize, earlier: usize) -> Entered {
        let short = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        Entered { at: now, turn: short(rank).saturating_add(1), earlier: short(earlier) }
    }
}

impl WaitingJob {
    /// A job of a local queue.
    pub fn new(job: &JobSpec) -> WaitingJob {
        let JobSpec { id, submit, processors, requested, .. } = *job;
        WaitingJob { id, submit, processors, requested, entered: Entered::default(), memory: 0 }
    }

    /// The same with what it asks for of the memory of nodes that jobs share.
    pub fn with_memory_of(self, job: &JobSpec) -> WaitingJob {
        WaitingJob { memory: job.memory(), ..self }
    }

    /// The same job as it enters the pool.
    pub fn entering(&self, entered: Entered) -> WaitingJob {
        WaitingJob { entered, ..*self }
    }

    pub(super) fn shape(&self) -> Shape {
        Shape { processors: self.processors, requested: self.requested }
    }
}

/// Where a job stands: (how it entered, if that counts; submission; id).
type Place = (Entered, Time, JobId);

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
        Least::of(self.job.shape())
    }

    fn merge(one: Least, other: Least) -> Least {
        one.and(other)
    }

    fn without(&self, group: Least) -> Option<Least> {
        group.without(self.job.shape())
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

    /// Takes all jobs out, in order.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = WaitingJob> {
        let jobs = std::mem::replace(&mut self.jobs, Chunked::new());
        jobs.into_iter().map(|placed| placed.job)
    }

    /// Takes out, in order, every job that `pick` says yes to. `may` is asked of the least of some jobs and must
    /// say yes whenever `pick` would for one of them, or would learn from it, and break when it has seen enough.
    pub(super) fn take<S>(
        &mut self,
        state: &mut S,
        may: impl Fn(&S, Least) -> ControlFlow<(), bool>,
        mut pick: impl FnMut(&mut S, &WaitingJob) -> bool,
    ) {
        self.jobs.take(state, may, |state, placed| pick(state, &placed.job));
    }

    fn place(&self, job: &WaitingJob) -> Place {
        let entered = match self.order {
            PoolOrder::Submit => Entered::default(),
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
