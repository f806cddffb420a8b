//! The place of a job in the queue of a site: its turn, which whoever fills the queue may give, then first come, first
//! served.

use std::ops::Deref;

use crate::job::{JobSpec, QueueKey};
use crate::time::Span;

/// A place in the queue; lower ones come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) turn: u64,
    pub(crate) key: QueueKey,
}

/// What decides whether a job may start: its width, and how long it asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) processors: u32,
    pub(crate) requested: Span,
}

/// A job that waits, or was chosen and has not started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub(crate) turn: u64,
    pub(crate) job: JobSpec,
}

impl Waiting {
    pub(crate) fn place(&self) -> Place {
        Place { turn: self.turn, key: self.job.key() }
    }

    pub(crate) fn shape(&self) -> Shape {
        Shape { processors: self.job.processors, requested: self.job.requested }
    }
}

impl Deref for Waiting {
    type Target = JobSpec;

    fn deref(&self) -> &JobSpec {
        &self.job
    }
}
