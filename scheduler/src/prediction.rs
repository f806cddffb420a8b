//! What whoever plans tells of a job's run time that it does not know.

use crate::job::JobId;
use crate::time::Span;

/// What somebody predicts of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prediction {
    /// The job that joined a queue, or runs.
    pub job: JobId,
    /// How long it is believed to run in all.
    pub run_time: Span,
    /// How often it ran past what was predicted; 0 when it joins.
    pub corrections: u32,
}
