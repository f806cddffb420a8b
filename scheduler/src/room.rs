//! What a site can take now: idle processors, or what is left of the nodes that jobs share.
//!
//! Sites that steal or exchange jobs tell each other this, so that nobody is handed a job that cannot start at once. A job fits nodes by the test of
//! the node queue: as many nodes as it has tasks keep the social contract, each with a task and its memory more. Who gives several jobs away at once
//! puts one after the other, as the nodes themselves will.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Error, SeqAccess, Visitor};
use serde::ser::SerializeTuple;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::capacity::{Capacity, SharedNodes};
use crate::job::{JobId, JobSpec};
use crate::sharing::{Candidate, Demand, Estimate, RUN_TIME_MAX, Refusal, Shared, place};
use crate::time::Time;

/// What a site can take now.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Room {
    /// So many idle processors.
    Processors(u32),
    /// These nodes, all of a site, the lowest number first.
    Nodes(Vec<NodeRoom>),
}

/// What is left of a node that jobs share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NodeRoom {
    /// Tasks of jobs on it.
    pub tasks: u32,
    /// The most tasks that it takes.
    pub mpl: u32,
    /// Memory in KB that neither local users nor tasks have.
    pub memory: u64,
    /// The bits of its relative power, which is no less than 0: they are in the order of powers.
    power: u64,
}

impl NodeRoom {
    /// As placing sees a node.
    pub fn of(node: &Candidate) -> NodeRoom {
        let Candidate { tasks, mpl, memory, power, .. } = *node;
        NodeRoom { tasks, mpl, memory, power: power.to_bits() }
    }

    fn candidate(&self, node: u32) -> Candidate {
        let NodeRoom { tasks, mpl, memory, power } = *self;
        Candidate { node, tasks, mpl, memory, power: f64::from_bits(power) }
    }
}

impl From<u32> for Room {
    fn from(free: u32) -> Room {
        Room::Processors(free)
    }
}

impl Default for Room {
    fn default() -> Room {
        Room::NONE
    }
}

impl Room {
    /// None at all.
    pub const NONE: Room = Room::Processors(0);

    /// The width of the widest job that fits, if it asks for no memory.
    pub fn width(&self) -> u32 {
        match self {
            Room::Processors(free) => *free,
            Room::Nodes(nodes) => nodes.iter().map(|node| u32::from(node.tasks < node.mpl)).sum(),
        }
    }

    /// Whether a job can start: of such a width, with so much memory in KB for each task.
    pub fn takes(&self, processors: u32, memory: u64) -> bool {
        match self {
            Room::Processors(free) => processors <= *free,
            Room::Nodes(nodes) => {
                let takes = |node: &&NodeRoom| node.candidate(0).takes(memory);
                nodes.iter().filter(takes).count() >= processors as usize
            }
        }
    }

    /// As [`Room::takes`], of a job.
    pub fn fits(&self, job: &JobSpec) -> bool {
        self.takes(job.processors, job.memory())
    }

    /// A job starts, and its tasks go where the nodes will have them. What does not fit takes what there is.
    pub fn put(&mut self, processors: u32, memory: u64) {
        match self {
            Room::Processors(free) => *free = free.saturating_sub(processors),
            Room::Nodes(nodes) => {
                let mut candidates: Vec<Candidate> =
                    nodes.iter().zip(0..).map(|(node, number)| node.candidate(number)).collect();
                place(&mut candidates, memory);
                for candidate in candidates.iter().take(processors as usize) {
                    let node = &mut nodes[candidate.node as usize];
                    node.tasks += 1;
                    node.memory -= memory;
                }
            }
        }
    }

    /// Whether a site with such a capacity can say this of itself: no more than it has.
    pub fn is_within(&self, capacity: &Capacity) -> bool {
        match (self, capacity) {
            (Room::Processors(free), capacity) => *free <= capacity.processors(),
            (Room::Nodes(nodes), Capacity::Shared(site)) => {
                let there = site.platform.nodes();
                let may_be = |(said, node): (&NodeRoom, &crate::sharing::Node)| {
                    said.tasks <= said.mpl
                        && said.mpl == node.mpl
                        && said.memory <= node.memory
                        && said.power == node.power.to_bits()
                };
                nodes.len() == there.len() && nodes.iter().zip(there).all(may_be)
            }
            (Room::Nodes(_), Capacity::Processors(_)) => false,
        }
    }
}

/// What says in a message that nodes follow. Never set in a number of processors ([`crate::grid::PROCESSORS_MAX`]).
const NODES_FOLLOW: u32 = 1 << 31;

/// Idle processors are a number, as if there were no nodes.
impl Serialize for Room {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Room::Processors(free) => serializer.serialize_u32(*free & !NODES_FOLLOW),
            Room::Nodes(nodes) => {
                let mut both = serializer.serialize_tuple(2)?;
                both.serialize_element(&NODES_FOLLOW)?;
                both.serialize_element(nodes)?;
                both.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for Room {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Room, D::Error> {
        let (free, nodes) = number_and(deserializer, NODES_FOLLOW)?;
        Ok(nodes.map_or(Room::Processors(free), Room::Nodes))
    }
}

/// Reads a number, and something more if this bit is set in it; without the bit.
pub(crate) fn number_and<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
    follows: u32,
) -> Result<(u32, Option<T>), D::Error> {
    struct Both<T> {
        follows: u32,
        what: PhantomData<T>,
    }
    impl<'de, T: Deserialize<'de>> Visitor<'de> for Both<T> {
        type Value = (u32, Option<T>);

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a number, and what it says that follows")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut both: A) -> Result<Self::Value, A::Error> {
            let first: u32 = both.next_element()?.ok_or_else(|| A::Error::invalid_length(0, &self))?;
            if first & self.follows == 0 {
                return Ok((first, None));
            }
            let second = both.next_element()?.ok_or_else(|| A::Error::invalid_length(1, &self))?;
            Ok((first & !self.follows, Some(second)))
        }
    }
    deserializer.deserialize_tuple(2, Both { follows, what: PhantomData })
}

/// A picture of the nodes of a site: which jobs are on them, as far as that says what may be beside them. Nothing ends in it by itself.
#[derive(Clone, Debug)]
pub struct Occupancy {
    nodes: std::sync::Arc<SharedNodes>,
    picture: Shared<()>,
}

impl Occupancy {
    /// Of a site with nodes; none of one where each processor has a job of its own.
    pub fn of(capacity: Capacity) -> Option<Occupancy> {
        let Capacity::Shared(nodes) = capacity else { return None };
        let mut picture = Shared::new((*nodes.platform).clone(), Estimate::Sdpn(nodes.fairness));
        // Local users are there from the start, before anything starts.
        picture.pop_due(Time::ZERO);
        Some(Occupancy { nodes, picture })
    }

    /// A job starts, on the nodes where the site itself has it.
    ///
    /// # Errors
    /// If it does not fit.
    pub fn start(&mut self, now: Time, job: &JobSpec) -> Result<(), Refusal> {
        let demand = Demand { computing: 1.0, bandwidth: 0.0, ..self.nodes.demand(job, RUN_TIME_MAX) };
        self.picture.start(now, 0, job.id, demand, ()).map(|_| ())
    }

    /// A job ends.
    pub fn end(&mut self, now: Time, job: JobId) {
        self.picture.stop(now, job);
    }

    /// What is left, as of the latest start or end.
    pub fn room(&self) -> Room {
        Room::Nodes((0..self.nodes.count()).map(|node| NodeRoom::of(&self.picture.node(node))).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room(nodes: &[(u32, u32, u64)]) -> Room {
        let node =
            |&(tasks, mpl, memory): &(u32, u32, u64)| NodeRoom { tasks, mpl, memory, power: 1f64.to_bits() };
        Room::Nodes(nodes.iter().map(node).collect())
    }

    #[test]
    fn a_job_fits_as_many_nodes_as_take_a_task_with_its_memory() {
        let room = room(&[(1, 2, 500), (2, 2, 900), (0, 2, 100)]);
        assert_eq!(room.width(), 2);
        let fits =
            [(2, 100), (2, 101), (1, 500), (1, 501), (3, 0)].map(|(tasks, memory)| room.takes(tasks, memory));
        assert_eq!(fits, [true, false, true, false, false]);
    }

    #[test]
    fn tasks_go_where_the_nodes_will_have_them() {
        let mut left = room(&[(1, 2, 500), (0, 2, 300), (0, 2, 400)]);
        left.put(2, 200);
        assert_eq!(left, room(&[(1, 2, 500), (1, 2, 100), (1, 2, 200)]));
        left.put(1, 150);
        assert_eq!(left, room(&[(2, 2, 350), (1, 2, 100), (1, 2, 200)]));
    }
}
