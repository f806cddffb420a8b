//! Strategies of others: the seam for whoever decides outside of this code, such as a process of the user.
//!
//! A broker asks a [`BrokerDecider`] for each job, and a local queue a [`QueueDecider`] at each decision that has news. Both
//! are handles to something that has effects, so clones of a queue or of a broker never get one: they decide by the
//! fallback. What is answered is checked here; whoever answers once what cannot be, or not at all, is not asked again, and
//! the fallback decides from then on. No job depends on the answer of anybody.

use std::fmt::Debug;
use std::sync::Arc;

use scheduler::local::QueueDecider;
use scheduler::{Grid, SiteId};

pub use crate::allocation::{BrokerDecider, Question};

/// Where deciders come from.
pub trait External: Debug + Send + Sync {
    /// For the broker of this number, counted from 0.
    fn broker(&self, grid: &Grid, number: u64) -> Arc<dyn BrokerDecider>;

    /// For the queue of this site.
    fn queue(&self, grid: &Grid, site: SiteId) -> Arc<dyn QueueDecider>;
}
