//! What a process may take.

use std::time::Duration;

use scheduler::local::CALLS;
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
    /// Calls in a row of a queue, at times that it asked for, while nothing changes; and such times that lie ahead.
    #[serde(default = "calls")]
    pub calls: usize,
    /// Bytes of what it says on stderr that are handed on.
    #[serde(default = "stderr_bytes")]
    pub stderr_bytes: u64,
}

fn stderr_bytes() -> u64 {
    16 << 20
}

fn calls() -> usize {
    CALLS
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            decision: Duration::from_secs(10),
            start: Duration::from_secs(30),
            line_bytes: 1 << 20,
            calls: CALLS,
            stderr_bytes: stderr_bytes(),
        }
    }
}
