//! Jobs on nodes that they share, as of now: how much they are slowed down, and how much they slow local users down.

use std::collections::BTreeMap;

use scheduler::SharedNodes;
use scheduler::{EventKind, JobId, Time};

const MILLION: f64 = 1e6;

/// A job that executes.
#[derive(Clone, Debug, Default)]
struct Running {
    nodes: Vec<u32>,
    /// In millionths: how many times longer it takes, and the part of its time in which it computes.
    slowdown: u64,
    computing: u32,
}

/// The jobs that execute on shared nodes of the site.
#[derive(Clone, Debug, Default)]
pub(super) struct Sharing {
    running: BTreeMap<JobId, Running>,
}

impl Sharing {
    pub(super) fn observe(&mut self, kind: &EventKind) {
        match *kind {
            EventKind::Placed { job, node } => self.running.entry(job).or_default().nodes.push(node),
            EventKind::Paced { job, slowdown_millionths, computing_millionths } => {
                // What is said after its end is of no job.
                if let Some(running) = self.running.get_mut(&job) {
                    (running.slowdown, running.computing) = (slowdown_millionths, computing_millionths);
                }
            }
            EventKind::Completed { job, .. } | EventKind::Interrupted { job, .. } => {
                self.running.remove(&job);
            }
            _ => {}
        }
    }

    /// Mean slow-down of the jobs that execute; 0 if none does.
    pub(super) fn slowdown(&self) -> f64 {
        let sum: f64 = self.running.values().map(|running| running.slowdown as f64 / MILLION).sum();
        sum / self.running.len().max(1) as f64
    }

    /// How many times longer calls of local users take than without jobs, as things are at an instant; 0 without local users. The reading
    /// is that of `analysis::sharing::intrusion`.
    pub(super) fn intrusion(&self, nodes: &SharedNodes, now: Time) -> f64 {
        let mut beside = vec![0.0; nodes.platform.nodes().len()];
        for running in self.running.values() {
            for &node in &running.nodes {
                if let Some(beside) = beside.get_mut(node as usize) {
                    *beside += f64::from(running.computing) / MILLION;
                }
            }
        }
        let used = nodes.platform.local().iter().map(|load| load.at(now).computing());
        let (calls, slowed) = used.zip(beside).fold((0.0, 0.0), |(calls, slowed), (used, beside)| {
            (calls + used, slowed + used * (1.0 + beside))
        });
        if calls > 0.0 { slowed / calls } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use scheduler::sharing::{Cluster, Fairness, LocalLoad, Node, Platform, Usage};

    use super::*;

    #[test]
    fn what_runs_is_slow_and_local_users_wait_for_what_computes_beside_them() {
        let node = Node { power: 1.0, memory: 1, link: 100.0, mpl: 4 };
        let platform = Platform::new(&[Cluster { nodes: vec![node; 2], uplink: f64::INFINITY }]).unwrap();
        let user = LocalLoad::constant(Usage::new(0.25, 0.0, 0.0).unwrap());
        let platform = platform.with_local(vec![user, LocalLoad::default()]).unwrap();
        let nodes = SharedNodes {
            platform: Arc::new(platform),
            fairness: Fairness::Proportional,
            applications: Arc::new(BTreeMap::new()),
        };
        let mut sharing = Sharing::default();
        assert_eq!((sharing.slowdown(), sharing.intrusion(&nodes, Time::ZERO)), (0.0, 1.0));
        let placed = |job, node| EventKind::Placed { job: JobId(job), node };
        let paced = |job, slowdown_millionths, computing_millionths| EventKind::Paced {
            job: JobId(job),
            slowdown_millionths,
            computing_millionths,
        };
        for kind in [
            placed(1, 0),
            paced(1, 2_500_000, 1_000_000),
            placed(2, 0),
            placed(2, 1),
            paced(2, 1_500_000, 500_000),
        ] {
            sharing.observe(&kind);
        }
        assert_eq!((sharing.slowdown(), sharing.intrusion(&nodes, Time::ZERO)), (2.0, 2.5));
        sharing.observe(&EventKind::Completed { job: JobId(1), processors: 1 });
        sharing.observe(&paced(1, 9_000_000, 0));
        assert_eq!((sharing.slowdown(), sharing.intrusion(&nodes, Time::ZERO)), (1.5, 1.5));
    }
}
