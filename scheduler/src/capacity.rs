//! What executes jobs at a site: processors of which each has one job, or nodes that jobs share.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::job::JobSpec;
use crate::sharing::{Demand, Fairness, Platform};
use crate::time::Span;

/// What a site has to execute jobs.
#[derive(Clone, Debug)]
pub enum Capacity {
    /// So many processors, each of one job.
    Processors(u32),
    /// Nodes with a limit of jobs on each.
    Shared(Arc<SharedNodes>),
}

impl Capacity {
    /// How many tasks execute at once at most: processors, or the sum of the limits of all nodes.
    pub fn processors(&self) -> u32 {
        match self {
            Capacity::Processors(processors) => *processors,
            Capacity::Shared(nodes) => nodes.places(),
        }
    }

    /// The width of the widest job: tasks of one job are on different nodes.
    pub fn widest(&self) -> u32 {
        match self {
            Capacity::Processors(processors) => *processors,
            Capacity::Shared(nodes) => nodes.count(),
        }
    }
}

/// Whether there is a node for each of so many tasks with so much memory each, in KB, where nodes have this much left, ascending.
pub fn have_memory(left: &[u64], tasks: u32, memory: u64) -> bool {
    let too_small = left.partition_point(|&left| left < memory);
    left.len() - too_small >= tasks as usize
}

/// Which jobs fit a site when nothing else executes there, whatever local users do.
#[derive(Clone, Debug)]
pub struct Holds {
    widest: u32,
    /// Memory in KB that is always left of each node, ascending; none where each processor has one job.
    memory: Option<Arc<[u64]>>,
}

impl Holds {
    /// What a site can hold.
    pub fn new(capacity: &Capacity) -> Holds {
        let memory = match capacity {
            Capacity::Processors(_) => None,
            Capacity::Shared(nodes) => Some(nodes.memory_always_left().into()),
        };
        Holds { widest: capacity.widest(), memory }
    }

    /// Whether a job would ever start there. One that would not waits for ever.
    pub fn holds(&self, job: &JobSpec) -> bool {
        let enough = |left: &Arc<[u64]>| have_memory(left, job.processors, job.memory());
        job.processors <= self.widest && self.memory.as_ref().is_none_or(enough)
    }
}

impl From<u32> for Capacity {
    fn from(processors: u32) -> Capacity {
        Capacity::Processors(processors)
    }
}

/// What is known of a program: of what its run time is made up (Lérida, *M-CISNE*, tables `Applications` of §2.3 and D.1).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Application {
    /// The share of its run time on idle nodes in which it computes, from 0 to 1; in the rest it communicates.
    pub computing: f64,
    /// What each of its tasks takes of the link of its node, in Mbit/s.
    pub bandwidth: f64,
}

/// One that only computes: what jobs are taken for of which nothing is known.
pub const COMPUTES: Application = Application { computing: 1.0, bandwidth: 0.0 };

/// The nodes of one site, and what is known of the programs of jobs.
#[derive(Clone, Debug, PartialEq)]
pub struct SharedNodes {
    /// One cluster, with its local users.
    pub platform: Arc<Platform>,
    /// How jobs share a link that is saturated.
    pub fairness: Fairness,
    /// By the number of the executable ([`crate::Labels::executable`]); others are [`COMPUTES`].
    pub applications: Arc<BTreeMap<i32, Application>>,
}

impl SharedNodes {
    /// How many nodes there are.
    pub fn count(&self) -> u32 {
        u32::try_from(self.platform.nodes().len()).unwrap_or(u32::MAX)
    }

    /// How many tasks there may be at once.
    pub fn places(&self) -> u32 {
        self.platform.nodes().iter().fold(0, |places, node| places.saturating_add(node.mpl))
    }

    /// Memory in KB that local users leave of each node at all times, ascending.
    pub fn memory_always_left(&self) -> Vec<u64> {
        let nodes = self.platform.nodes().iter().zip(self.platform.local());
        let left = nodes.map(|(node, local)| {
            let least = local.changes().iter().map(|(_, usage)| usage.memory_left(node.memory)).min();
            least.unwrap_or(node.memory).min(node.memory)
        });
        let mut left: Vec<u64> = left.collect();
        left.sort_unstable();
        left
    }

    /// What is known of the program of a job.
    pub fn program(&self, job: &JobSpec) -> Application {
        self.applications.get(&job.labels.executable).copied().unwrap_or(COMPUTES)
    }

    /// What a job asks for that takes so long on idle nodes of full power. One that says nothing of memory needs none.
    pub fn demand(&self, job: &JobSpec, run_time: Span) -> Demand {
        let application = self.program(job);
        Demand {
            tasks: job.processors,
            run_time: run_time.max(Span::ZERO),
            computing: application.computing,
            bandwidth: application.bandwidth,
            memory: job.memory(),
        }
    }
}
