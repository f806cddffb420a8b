//! The seam of a queue whose starts somebody else decides: a process of the user, in simulations and nodes.

use std::fmt::Debug;

use crate::event::FallbackCause;
use crate::job::{JobId, JobSpec};
use crate::strategy::LocalScheduler;
use crate::time::Time;

/// [`QueueDecider::most_calls`] by default: whoever asks to be called each second has a gap of 27 hours in a log, and asking that
/// often takes seconds.
pub const CALLS: usize = 100_000;

/// What a queue was told since it last asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    /// A job joined the queue.
    Joined(JobSpec),
    /// A job left the queue without a start: its site gives jobs away, or heard that another has it.
    Left(JobId),
    /// A job that executed has ended.
    Ended(JobId),
    /// The time has come that was asked for.
    Called,
}

/// What a queue is to do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// Jobs that start now, in this order.
    pub starts: Vec<JobId>,
    /// When to ask again even if nothing happens.
    pub calls: Vec<Time>,
}

/// Decides for the queue of one site.
pub trait QueueDecider: Debug + Send + Sync {
    /// What starts at this instant.
    ///
    /// # Errors
    /// If there is no answer.
    fn decide(&self, now: Time, news: &[(Time, News)]) -> Result<Decision, FallbackCause>;

    /// The answer could not be followed, or there was none: nobody asks again.
    fn end(&self, reason: &str);

    /// How often it may be called in a row, at times that it asked for, while no job joins, starts, ends or leaves; and how many
    /// such times may lie ahead. More is nonsense: a run might never end.
    fn most_calls(&self) -> usize {
        CALLS
    }

    /// Who decides then, and in plans. Not [`LocalScheduler::External`].
    fn fallback(&self) -> LocalScheduler;
}
