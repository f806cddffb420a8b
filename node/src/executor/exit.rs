//! How a command ended that was a job.

use scheduler::event::ExitCause;

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exit {
    /// By what.
    pub how: ExitCause,
    /// Its exit code; that of a signal is 128 more than its number.
    pub code: Option<i32>,
    /// What else is to be said.
    pub why: Option<String>,
}
