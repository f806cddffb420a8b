//! Switches and limits of job stealing.

use scheduler::Span;
use serde::{Deserialize, Serialize};

/// Switches and limits of job stealing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StealOptions {
    /// Outstanding requests of one thief, to different victims. At least 1.
    pub window: usize,
    /// Serve thieves that believe the queue empty, too. Saves two delays on an idle grid, costs declines.
    pub eager: bool,
    /// Processors whose jobs end by their estimates within this time count as idle when a thief asks, so that work is there
    /// when they are. What comes too early waits for them. `None`: only idle processors count.
    #[serde(default)]
    pub prefetch: Option<Span>,
}

impl Default for StealOptions {
    fn default() -> StealOptions {
        StealOptions { window: 1, eager: false, prefetch: None }
    }
}
