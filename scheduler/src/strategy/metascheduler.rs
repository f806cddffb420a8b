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
    /// Which clusters a job is not meant for as they are, whatever is predicted there (appendix A, node limits; per cluster, as there). A
    /// cluster that has nothing is left whatever it is like, or a job might wait forever.
    ClusterFilter {
        /// All are left.
        None = "none",
        /// Those of whose memory more than the level is taken, by jobs and local users.
        Memory = "mem",
        /// Those with a node that has more than the level of the tasks that it may have.
        Tasks = "mpl",
        /// Those that execute a job of its type: one that computes for half of its time or more, or one that communicates for more.
        Type = "type",
    }
}

switch! {
    /// What is thought of jobs that share nodes (Table 3.3), by the broker alone: the sites plan by the model.
    SharingEstimator {
        /// The model itself.
        Sdpn = "sdpn",
        /// As many times slower as there are tasks on the fullest of its nodes.
        Hanzich = "hanzich",
        /// Of waits and of executions at each cluster the one of these that was less off of late (§3.6).
        Decisor = "decisor",
    }
}

/// Weights that a grid can have, cluster by cluster; more clusters have the last. Arbitrary, more than the published experiments have.
const WEIGHTS_MAX: usize = 16;

/// w of PTT, one for each cluster (§4.3.2) in the order of the grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Weights([Chance; WEIGHTS_MAX]);

impl Weights {
    /// The same for all.
    pub const fn all(weight: Chance) -> Weights {
        Weights([weight; WEIGHTS_MAX])
    }

    /// That of a cluster, by its number in the order of the grid from 0.
    pub fn of(&self, number: usize) -> Chance {
        self.0[number.min(WEIGHTS_MAX - 1)]
    }

    /// Reads one, or one for each cluster, with `/` between them; clusters after these have the last.
    fn parse(key: &str, text: &str) -> Result<Weights, String> {
        let given: Vec<Chance> =
            text.split('/').map(|text| Chance::parse(key, text)).collect::<Result<_, String>>()?;
        let Some(&last) = given.last().filter(|_| given.len() <= WEIGHTS_MAX) else {
            return Err(format!(
                "{key}={text:?} has more than {WEIGHTS_MAX} weights; write w=0.5 or w=0.5/1/0"
            ));
        };
        let mut weights = Weights::all(last);
        weights.0[..given.len()].copy_from_slice(&given);
        Ok(weights)
    }
}

impl std::fmt::Display for Weights {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let last = self.0[WEIGHTS_MAX - 1];
        let shown = self.0.iter().rposition(|&weight| weight != last).map_or(1, |before| before + 2);
        let shown: Vec<String> = self.0[..shown].iter().map(Chance::to_string).collect();
        f.write_str(&shown.join("/"))
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

switch! {
    /// Which jobs are spread over several clusters, and how (§4.6): only over processors that are free at once.
    Coallocation {
        /// None: a job wider than every cluster is refused.
        None = "none",
        /// MIP, Optimal: those wider than every cluster, where they end first by (4.17).
        Optimal = "dp",
        /// MIP, Non-saturated: the same where no link between clusters is over its capacity (4.19).
        NonSaturated = "nonsaturated",
        /// MIP, Non-saturated with Non-optimal: the same, and the first such place that is found.
        NonOptimal = "nonoptimal",
        /// Those wider than every cluster of which one cluster takes 85 % of the tasks (Jones; §1.3).
        Jones = "jones85",
        /// Any that no cluster can start at once, as if all clusters were one (Bucur; §1.3).
        SuperCluster = "super",
    }
}

impl Coallocation {
    /// The width of the widest job that may be spread over clusters of these widths; 0 if none is.
    pub fn widest(self, clusters: &[u32]) -> u32 {
        let all = clusters.iter().fold(0_u32, |sum, &width| sum.saturating_add(width));
        match self {
            Coallocation::None => 0,
            Coallocation::Jones => {
                let widest = u64::from(clusters.iter().copied().max().unwrap_or(0));
                let (part, whole) = JONES;
                all.min(u32::try_from(widest * u64::from(whole) / u64::from(part)).unwrap_or(u32::MAX))
            }
            _ => all,
        }
    }
}

/// The share of a job's tasks that must have place in one cluster, 85 % (Jones; Lérida, *M-CISNE*, §1.3), as a quotient.
pub const JONES: (u32, u32) = (17, 20);

switch! {
    /// Which jobs are looked at for co-allocation.
    Phases {
        /// Those of the upper queue (Algorithm 4.1).
        One = "one",
        /// After those the ones that wait in queues of clusters, too (Algorithm 4.5).
        Two = "two",
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
    pub weights: Weights,
    /// How PTT is read.
    pub weighting: Weighting,
    /// The order of the upper queue.
    pub order: UpperOrder,
    /// What waits behind a job whose cluster takes none.
    pub jobs: JobSelection,
    /// When a cluster takes none.
    pub limit: QueueLimit,
    /// Which clusters it is not.
    #[serde(default)]
    pub filter: ClusterFilter,
    /// The level of the filter.
    #[serde(default = "default_level")]
    pub level: Chance,
    /// What is thought of jobs that share nodes.
    #[serde(default)]
    pub estimator: SharingEstimator,
    /// Which jobs are spread over several clusters.
    #[serde(default)]
    pub coallocation: Coallocation,
    /// Which jobs are looked at for that.
    #[serde(default)]
    pub phases: Phases,
}

/// What a filter leaves where nobody says: three tasks of four, as many as three quarters of a node's memory. Ours.
const LEVEL: Chance = Chance::millionths(750_000).expect("it is below one");

fn default_level() -> Chance {
    LEVEL
}

impl Default for MetaScheduler {
    /// What the published experiments recommend: NB.RS with three jobs in the queue of a cluster, and TAT.
    fn default() -> MetaScheduler {
        MetaScheduler {
            select: ClusterSelection::default(),
            weights: const { Weights::all(Chance::millionths(500_000).expect("it is below one")) },
            weighting: Weighting::default(),
            order: UpperOrder::default(),
            jobs: JobSelection::default(),
            limit: QueueLimit::Jobs(3),
            filter: ClusterFilter::default(),
            level: LEVEL,
            estimator: SharingEstimator::default(),
            coallocation: Coallocation::default(),
            phases: Phases::default(),
        }
    }
}

impl MetaScheduler {
    /// Whether jobs are spread over several clusters.
    pub fn coallocates(&self) -> bool {
        self.coallocation != Coallocation::None
    }

    /// Names of its options.
    pub(super) const OPTIONS: [&str; 11] = [
        "select",
        "w",
        "ptt",
        "order",
        "jobs",
        "limit",
        "filter",
        "level",
        "estimator",
        "coallocate",
        "phases",
    ];

    /// Sets one switch. False if it has none of this name.
    pub(super) fn set(&mut self, key: &str, value: &str) -> Result<bool, String> {
        match key {
            "select" => self.select = ClusterSelection::parse(key, value)?,
            "w" => self.weights = Weights::parse(key, value)?,
            "ptt" => self.weighting = Weighting::parse(key, value)?,
            "order" => self.order = UpperOrder::parse(key, value)?,
            "jobs" => self.jobs = JobSelection::parse(key, value)?,
            "limit" => self.limit = QueueLimit::parse(key, value)?,
            "filter" => self.filter = ClusterFilter::parse(key, value)?,
            "level" => self.level = Chance::parse(key, value)?,
            "estimator" => self.estimator = SharingEstimator::parse(key, value)?,
            "coallocate" => self.coallocation = Coallocation::parse(key, value)?,
            "phases" => self.phases = Phases::parse(key, value)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// What must be written for one of [`MetaScheduler::OPTIONS`] to mean something; none for those that always do.
    pub(super) fn needed_for(key: &str) -> Option<&'static str> {
        match key {
            "w" | "ptt" => Some("select=ptt"),
            "level" => Some("filter=mem or filter=mpl"),
            "phases" => Some("coallocate=dp or another way to spread jobs"),
            "jobs" => Some("a limit other than none, or coallocate"),
            _ => None,
        }
    }

    /// Each of [`MetaScheduler::OPTIONS`] as it is written, and whether it means something beside the others.
    pub(super) fn switches(&self) -> [(String, bool); MetaScheduler::OPTIONS.len()] {
        let is_weighted = self.select == ClusterSelection::Weighted;
        [
            (self.select.name().to_string(), true),
            (self.weights.to_string(), is_weighted),
            (self.weighting.name().to_string(), is_weighted),
            (self.order.name().to_string(), true),
            // Without a limit no job waits in the upper queue, but one that is to be spread.
            (self.jobs.name().to_string(), self.limit != QueueLimit::None || self.coallocates()),
            (self.limit.to_string(), true),
            (self.filter.name().to_string(), true),
            (self.level.to_string(), matches!(self.filter, ClusterFilter::Memory | ClusterFilter::Tasks)),
            (self.estimator.name().to_string(), true),
            (self.coallocation.name().to_string(), true),
            (self.phases.name().to_string(), self.coallocates()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_may_be_as_wide_as_the_tasks_that_must_be_in_one_cluster_allow() {
        let widest = |by: Coallocation, clusters: &[u32]| by.widest(clusters);
        assert_eq!(widest(Coallocation::None, &[4, 8]), 0);
        assert_eq!(widest(Coallocation::Optimal, &[0, 4, 8]), 12);
        assert_eq!(widest(Coallocation::SuperCluster, &[u32::MAX, 8]), u32::MAX);
        // 85 % of 20 are 17, of 21 more than that; of 8 in a cluster 85 % are at most 9.
        assert_eq!(widest(Coallocation::Jones, &[17, 17]), 20);
        assert_eq!(widest(Coallocation::Jones, &[8, 8]), 9);
        assert_eq!(widest(Coallocation::Jones, &[1, 17]), 18, "there are no more");
        assert_eq!(widest(Coallocation::Jones, &[4, 4]), 4, "none is wider than a cluster");
    }
}
