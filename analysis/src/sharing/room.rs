//! Whether a job fits the nodes of a site now: the question that its scheduler asks (social contract: tasks and memory of each node, beside
//! local users), answered from what events tell. How fast anything goes on there is not looked at.
//!
//! Jobs are the places that whoever asks knows them by.

use std::collections::BTreeMap;
use std::sync::Arc;

use scheduler::sharing::{Candidate, place};
use scheduler::{Grid, SharedNodes, Time, have_memory};

/// The nodes of one site, the tasks on them, and the jobs that are on their way there.
#[derive(Clone, Debug)]
pub(crate) struct Occupied {
    nodes: Arc<SharedNodes>,
    /// By job: memory that each task takes, in KB, and where they are.
    placed: BTreeMap<u32, (u64, Vec<u32>)>,
    /// By job: tasks, and memory that each will take, in KB.
    coming: BTreeMap<u32, (u32, u64)>,
}

/// What another job could have of a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    /// Memory in KB that is left on each node which takes a task more, ascending. None if more is on its way than fits.
    left: Option<Vec<u64>>,
}

impl Room {
    /// Nobody has any: the site is away.
    pub(crate) const NONE: Room = Room { left: None };

    /// Nodes that take a task without memory; below zero if more is on its way than fits.
    pub(crate) fn nodes(&self) -> i64 {
        self.left.as_ref().map_or(-1, |left| left.len() as i64)
    }

    /// Whether there is a node for each of so many tasks with so much memory each, in KB.
    pub(crate) fn fits(&self, tasks: u32, memory: u64) -> bool {
        self.left.as_ref().is_some_and(|left| have_memory(left, tasks, memory))
    }
}

impl Occupied {
    pub(crate) fn new(nodes: &Arc<SharedNodes>) -> Occupied {
        Occupied { nodes: Arc::clone(nodes), placed: BTreeMap::new(), coming: BTreeMap::new() }
    }

    /// The nodes of each member of a grid, by rank; none of those whose processors have one job each.
    pub(crate) fn of_grid(grid: &Grid) -> Vec<Option<Occupied>> {
        let of = |rank: usize| grid.cluster(grid.at_rank(rank)).map(Occupied::new);
        (0..grid.len()).map(of).collect()
    }

    /// A task of a job that takes so much memory, in KB, is on a node.
    pub(crate) fn place(&mut self, job: u32, memory: u64, node: u32) {
        self.placed.entry(job).or_insert_with(|| (memory, Vec::new())).1.push(node);
    }

    /// A job has ended, or does not execute any more.
    pub(crate) fn remove(&mut self, job: u32) {
        self.placed.remove(&job);
    }

    /// Nothing executes any more.
    pub(crate) fn clear(&mut self) {
        self.placed.clear();
    }

    /// A job is on its way here, with so many tasks of so much memory each, in KB.
    pub(crate) fn expect(&mut self, job: u32, tasks: u32, memory: u64) {
        self.coming.insert(job, (tasks, memory));
    }

    /// It is not any more.
    pub(crate) fn forget(&mut self, job: u32) {
        self.coming.remove(&job);
    }

    /// What another job could have at an instant. Jobs on their way get nodes first, as the site would place them.
    pub(crate) fn room(&self, now: Time) -> Room {
        let platform = &self.nodes.platform;
        let nodes = platform.nodes().iter().zip(platform.local()).zip(0..);
        let idle = nodes.map(|((spec, local), node)| Candidate {
            node,
            tasks: 0,
            mpl: spec.mpl,
            memory: local.at(now).memory_left(spec.memory),
            power: spec.power,
        });
        let mut nodes: Vec<Candidate> = idle.collect();
        let mut put = |node: u32, memory: u64| {
            if let Some(node) = nodes.get_mut(node as usize) {
                node.tasks += 1;
                node.memory = node.memory.saturating_sub(memory);
            }
        };
        for (memory, on) in self.placed.values() {
            on.iter().for_each(|&node| put(node, *memory));
        }
        for &(tasks, memory) in self.coming.values() {
            let mut best = nodes.clone();
            place(&mut best, memory);
            if best.len() < tasks as usize {
                return Room::NONE;
            }
            for chosen in &best[..tasks as usize] {
                let node = &mut nodes[chosen.node as usize];
                node.tasks += 1;
                node.memory -= memory;
            }
        }
        let takes = nodes.iter().filter(|node| node.takes(0));
        let mut left: Vec<u64> = takes.map(|node| node.memory).collect();
        left.sort_unstable();
        Room { left: Some(left) }
    }
}

/// When local users of any node come or go, ascending, with the ranks of their sites: instants at which room changes though nothing happens.
pub(crate) fn local_changes(grid: &Grid) -> Vec<(Time, u32)> {
    let of = |rank: usize| {
        let nodes = grid.cluster(grid.at_rank(rank))?;
        let changes = nodes.platform.local().iter().flat_map(|load| load.changes());
        Some(changes.map(move |&(at, _)| (at, rank as u32)).collect::<Vec<_>>())
    };
    let mut all: Vec<(Time, u32)> = (0..grid.len()).filter_map(of).flatten().collect();
    all.sort_unstable();
    all.dedup();
    all
}
