//! Rigid parallel jobs: what a scheduler may know, and what only an executor knows.
//!
//! A strategy is handed a [`JobSpec`], which has no true run time. A [`TimedJob`] adds it, for the workload
//! that a driver replays; no scheduling function accepts one.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::site_id::SiteId;
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
#[serde(deny_unknown_fields)]
pub struct JobSpec {
    /// The job's name, unique in a run.
    pub id: JobId,
    /// Submission time r_j.
    pub submit: Time,
    /// Width size_j: processors held for the whole run, at least 1.
    pub processors: u32,
    /// Requested time p'_j, the user's estimate of the run time; positive.
    pub requested: Span,
    /// What the log tells of who submitted it, and of what it is.
    #[serde(default)]
    pub labels: Labels,
    /// The site where the user submitted it.
    pub origin: SiteId,
    /// Bytes that move with the job when it changes sites.
    pub payload: u64,
}

/// What a log tells of who submitted a job and of what it is, as numbers that mean something within that log only (fields
/// 10 and 12 to 15 of SWF); -1 where nothing is known. Strategies may decide by them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Labels {
    /// Who submitted it.
    pub user: i32,
    /// The group of that user.
    pub group: i32,
    /// The program that it runs (field 14 of SWF).
    pub executable: i32,
    /// The queue that it was submitted to.
    pub queue: i32,
    /// Memory that it asked for, per processor in KB.
    pub memory: i64,
}

impl Labels {
    /// Nothing is known.
    pub const UNKNOWN: Labels = Labels { user: -1, group: -1, executable: -1, queue: -1, memory: -1 };
}

impl Default for Labels {
    fn default() -> Labels {
        Labels::UNKNOWN
    }
}

impl JobSpec {
    /// The place of the job in every queue: first come, first served.
    pub fn key(&self) -> QueueKey {
        QueueKey { submit: self.submit, id: self.id }
    }

    /// Memory that each of its tasks takes of its node, in KB; none if the log says nothing of it.
    pub fn memory(&self) -> u64 {
        u64::try_from(self.labels.memory).unwrap_or(0)
    }
}

/// Queue order of all local queues and lists: by submission, then by job id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct QueueKey {
    /// Submission time r_j: the earlier goes first.
    pub submit: Time,
    /// Of jobs submitted at one instant the lower id goes first.
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
