//! What a process may take.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How much time and room a process may take. Times are of the wall clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// For the answer to one decision.
    pub decision: Duration,
    /// From its start until it has answered that the simulation begins.
    pub start: Duration,
    /// Bytes of a line that it answers.
    pub line_bytes: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { decision: Duration::from_secs(10), start: Duration::from_secs(30), line_bytes: 1 << 20 }
    }
}
