//! The switches of the upper level of M-CISNE (Lérida, *M-CISNE*, chapter 4): a queue before the clusters, from which jobs go to
//! the queue of a cluster one by one.
//!
//! What they do is in `brokers::metascheduler`.

use serde::{Deserialize, Serialize};

use super::chance::Chance;
use crate::switch;

switch! {
    /// Which cluster a job is meant for (§4.3), of those that are wide enough.
    ClusterSelection {
        /// TAT: where its predicted turnaround is least (Algorithm 4.2).
        Turnaround = "tat",
        /// PTT: where the weighted sum of predicted turnaround and local users is least (Algorithm 4.3).
        Weighted = "ptt",
        /// FFIT: the first in the order of the grid.
        FirstFit = "ffit",
        /// RR: the clusters in turn, in the order of the grid.
        RoundRobin = "rr",
    }
}

switch! {
    /// How (4.1) of PTT is read, which the text has lost in part.
    Weighting {
        /// The turnaround times the weighted sum, as printed.
        Scaled = "scaled",
        /// The weighted sum alone, as its explanation says.
        Plain = "plain",
    }
}

switch! {
    /// The order of the upper queue.
    UpperOrder {
        /// By submission.
        Fcfs = "fcfs",
        /// By estimated run time, the shortest first.
        Sjf = "sjf",
    }
}

switch! {
    /// What becomes of the upper queue while the cluster that its next job is meant for takes none (§4.4, Algorithm 4.4).
    JobSelection {
        /// NB.RS: others go to other clusters, and a cluster is chosen anew once something has changed.
        NonBlockingAnew = "nb.rs",
        /// NB: others go to other clusters.
        NonBlocking = "nb",
        /// B.RS: all wait, and a cluster is chosen anew once something has changed.
        BlockingAnew = "b.rs",
        /// B: all wait.
        Blocking = "b",
    }
}

impl JobSelection {
    /// Whether all wait behind a job that waits for its cluster.
    pub fn blocks(self) -> bool {
        matches!(self, JobSelection::Blocking | JobSelection::BlockingAnew)
    }

    /// RS: whether a cluster is chosen anew once something has changed.
    pub fn chooses_anew(self) -> bool {
        matches!(self, JobSelection::NonBlockingAnew | JobSelection::BlockingAnew)
    }
}

/// When the queue of a cluster takes no more jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum QueueLimit {
    /// When so many wait there (§4.4).
    Jobs(u32),
    /// Never.
    None,
    /// When jobs come to it as fast as it executes them, by what came and ended lately (§4.5.1).
    Rates,
    /// When jobs come to it as fast as the predicted wait lets those leave that wait (§4.5.2).
    Saturation,
}

/// The most jobs that a limit may be: arbitrary, more than any log has.
const LIMIT_MAX: u32 = 100_000_000;

impl QueueLimit {
    fn parse(key: &str, text: &str) -> Result<QueueLimit, String> {
        match text {
            "none" => Ok(QueueLimit::None),
            "auto" => Ok(QueueLimit::Rates),
            "saturation" => Ok(QueueLimit::Saturation),
            _ => super::broker::count(key, text, 1, LIMIT_MAX)
                .map(QueueLimit::Jobs)
                .map_err(|error| format!("{error}, none, auto or saturation")),
        }
    }
}

impl std::fmt::Display for QueueLimit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            QueueLimit::Jobs(jobs) => write!(f, "{jobs}"),
            QueueLimit::None => f.write_str("none"),
            QueueLimit::Rates => f.write_str("auto"),
            QueueLimit::Saturation => f.write_str("saturation"),
        }
    }
}

/// All of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MetaScheduler {
    /// Which cluster a job is meant for.
    pub select: ClusterSelection,
    /// w of PTT: 1 for turnaround alone, 0 for local users alone.
    pub weight: Chance,
    /// How PTT is read.
    pub weighting: Weighting,
    /// The order of the upper queue.
    pub order: UpperOrder,
    /// What waits behind a job whose cluster takes none.
    pub jobs: JobSelection,
    /// When a cluster takes none.
    pub limit: QueueLimit,
}

impl Default for MetaScheduler {
    /// What the published experiments recommend: NB.RS with three jobs in the queue of a cluster, and TAT.
    fn default() -> MetaScheduler {
        MetaScheduler {
            select: ClusterSelection::default(),
            weight: const { Chance::millionths(500_000).expect("it is below one") },
            weighting: Weighting::default(),
            order: UpperOrder::default(),
            jobs: JobSelection::default(),
            limit: QueueLimit::Jobs(3),
        }
    }
}

impl MetaScheduler {
    /// Names of its options.
    pub(super) const OPTIONS: [&str; 6] = ["select", "w", "ptt", "order", "jobs", "limit"];

    /// Sets one switch. False if it has none of this name.
    pub(super) fn set(&mut self, key: &str, value: &str) -> Result<bool, String> {
        match key {
            "select" => self.select = ClusterSelection::parse(key, value)?,
            "w" => self.weight = Chance::parse(key, value)?,
            "ptt" => self.weighting = Weighting::parse(key, value)?,
            "order" => self.order = UpperOrder::parse(key, value)?,
            "jobs" => self.jobs = JobSelection::parse(key, value)?,
            "limit" => self.limit = QueueLimit::parse(key, value)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Each of [`MetaScheduler::OPTIONS`] as it is written, and whether it means something beside the others.
    pub(super) fn switches(&self) -> [(String, bool); MetaScheduler::OPTIONS.len()] {
        let is_weighted = self.select == ClusterSelection::Weighted;
        [
            (self.select.name().to_string(), true),
            (self.weight.to_string(), is_weighted),
            (self.weighting.name().to_string(), is_weighted),
            (self.order.name().to_string(), true),
            // Without a limit no job waits in the upper queue.
            (self.jobs.name().to_string(), self.limit != QueueLimit::None),
            (self.limit.to_string(), true),
        ]
    }
}
