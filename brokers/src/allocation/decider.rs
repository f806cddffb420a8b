//! The seam of a broker whose choices somebody else makes; see [`crate::external`].

use std::fmt::Debug;
use std::sync::Arc;

use scheduler::event::FallbackCause;
use scheduler::{JobSpec, Time};

use super::book::Site;

/// What a broker asks.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The instant of the decision.
    pub now: Time,
    /// The job that arrived.
    pub job: &'a JobSpec,
    /// What is known of all sites that are there, ascending by size.
    pub sites: &'a [Site<'a>],
    /// Places, ascending, of those that the job may go to. There is one at least.
    pub admissible: &'a [usize],
}

/// Decides for one broker.
pub trait BrokerDecider: Debug + Send + Sync {
    /// The place of the site that gets the job.
    ///
    /// # Errors
    /// If there is no answer.
    fn choose(&self, question: &Question<'_>) -> Result<usize, FallbackCause>;

    /// The answer could not be followed, or there was none: nobody asks again.
    fn end(&self, reason: &str);
}

/// Somebody to ask, who is not cloned with whoever asks.
#[derive(Debug, Default)]
pub(super) struct Handle(pub(super) Option<Arc<dyn BrokerDecider>>);

impl Clone for Handle {
    fn clone(&self) -> Handle {
        Handle(None)
    }
}
