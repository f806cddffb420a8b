//! Limits of the global queue.

use scheduler::Span;
use serde::{Deserialize, Serialize};

/// Limits of the global queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolOptions {
    /// How often a site repeats its board while something waits in the global queue; see [`crate::pool`]. At least
    /// twice the largest delay, better ten times; `None` on links that lose nothing.
    pub refresh: Option<Span>,
}
