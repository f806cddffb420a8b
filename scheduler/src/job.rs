//! Rigid parallel jobs: what a scheduler may know, and what only an executor knows.
//!
//! A strategy is handed a [`JobSpec`], which has no true run time. A [`TimedJob`] adds it, for the workload
//! that a driver replays; no scheduling function accepts one.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::grid::SiteId;
use crate::time::{Span, Time};

/// Run times below this count as this in bounded slowdowns, as everywhere in the literature.
pub const SLOWDOWN_BOUND: Span = Span::from_secs(10);

/// Names one job of a run. For a single trace it is the job number of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JobId(pub u64);

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A rigid parallel job as schedulers see it: everything known at submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct JobSpec {
    /// The job's name, unique in a run.
    pub id: JobId,
    /// Submission time r_j.
    pub submit: Time,
    /// Width size_j: processors held for the whole run, at least 1.
    pub processors: u32,
    /// Requested time p'_j, the user's estimate of the run time; positive.
    pub requested: Span,
    /// User number of the log, -1 if unknown.
    pub user: i32,
    /// The site where the user submitted it.
    pub origin: SiteId,
    /// Bytes that move with the job when it changes sites.
    pub payload: u64,
}

impl JobSpec {
    /// The place of the job in every queue: first come, first served.
    pub fn key(&self) -> QueueKey {
        QueueKey { submit: self.submit, id: self.id }
    }
}

/// Queue order of all local queues and lists: by submission, then by job id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct QueueKey {
    /// Submission time.
    pub submit: Time,
    /// Breaks ties.
    pub id: JobId,
}

/// A job together with its true run time p_j. For workloads and executors only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimedJob {
    /// What schedulers may see.
    pub spec: JobSpec,
    /// True run time p_j, not negative.
    pub run_time: Span,
}
