//! Which nodes a job's tasks go to: those that it may use by the social contract, the most available first.
//!
//! The contract (Lérida 2.5.2) keeps jobs from nodes where they would break a limit, here on tasks and on memory. The thesis orders the rest by
//! availability and does not say how ties end; the order here is fewest tasks, most free memory, most power, lowest number.

use std::cmp::Reverse;

/// A node as placing sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    /// Its number.
    pub node: u32,
    /// Tasks of jobs on it.
    pub tasks: u32,
    /// The most tasks that it takes, MPL.
    pub mpl: u32,
    /// Memory in KB that neither local users nor tasks have.
    pub memory: u64,
    /// Relative power.
    pub power: f64,
}

impl Candidate {
    /// Whether one task more, with so much memory in KB, keeps the contract.
    pub fn takes(&self, memory: u64) -> bool {
        self.tasks < self.mpl && memory <= self.memory
    }
}

/// Puts the nodes that take such a task to the front, the most available first, and drops the others.
pub fn place(candidates: &mut Vec<Candidate>, memory: u64) {
    candidates.retain(|candidate| candidate.takes(memory));
    candidates.sort_unstable_by(|one, other| {
        let key = |candidate: &Candidate| (candidate.tasks, Reverse(candidate.memory));
        let by_power = || other.power.total_cmp(&one.power);
        key(one).cmp(&key(other)).then_with(by_power).then(one.node.cmp(&other.node))
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_available_nodes_come_first_and_full_ones_are_out() {
        let node = |node, tasks, memory, power| Candidate { node, tasks, mpl: 2, memory, power };
        let mut nodes = vec![
            node(0, 2, 900, 1.0),
            node(1, 1, 900, 1.0),
            node(2, 0, 99, 1.0),
            node(3, 0, 100, 0.5),
            node(4, 0, 100, 0.7),
            node(5, 0, 200, 0.1),
            node(6, 0, 100, 0.7),
        ];
        place(&mut nodes, 100);
        assert_eq!(nodes.iter().map(|candidate| candidate.node).collect::<Vec<_>>(), [5, 4, 6, 3, 1]);
    }
}
