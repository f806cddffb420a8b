//! What runs where in an ideal reference: idle processors, and estimated ends for EASY reservations.
//!
//! Knows nothing of lists or of true run times.

use std::collections::BTreeMap;
use std::ops::Bound;

use crate::grid::Grid;
use crate::job::{JobId, JobSpec};
use crate::reservation::{self, Reservation};
use crate::room::{Occupancy, Room};
use crate::time::Time;

/// The processors of all sites, by rank.
#[derive(Clone, Debug)]
pub(crate) struct Machines {
    rooms: Vec<Room>,
    /// The nodes of sites whose jobs share them; none of others.
    nodes: Vec<Option<Occupancy>>,
    running: BTreeMap<JobId, Running>,
    /// Estimated ends of the jobs of each site, ascending, with their widths. Kept only if asked for.
    ends: Vec<BTreeMap<(Time, JobId), u32>>,
    with_ends: bool,
}

#[derive(Clone, Copy, Debug)]
struct Running {
    rank: usize,
    processors: u32,
    estimated_end: Time,
}

impl Machines {
    /// Idle machines; `with_ends` if [`Machines::reservation`] will be asked for.
    pub(crate) fn new(grid: &Grid, with_ends: bool) -> Machines {
        let nodes: Vec<Option<Occupancy>> =
            (0..grid.len()).map(|rank| Occupancy::of(grid.capacity(grid.at_rank(rank)))).collect();
        Machines {
            rooms: nodes
                .iter()
                .zip(grid.sizes())
                .map(|(nodes, &size)| room_of(nodes.as_ref(), size))
                .collect(),
            nodes,
            running: BTreeMap::new(),
            ends: if with_ends { vec![BTreeMap::new(); grid.len()] } else { Vec::new() },
            with_ends,
        }
    }

    /// Idle processors of a site, or where jobs share nodes those nodes that take a task more.
    pub(crate) fn free(&self, rank: usize) -> u32 {
        self.rooms[rank].width()
    }

    /// What is left of the nodes of a site whose jobs share them.
    pub(crate) fn nodes(&self, rank: usize) -> Option<&Room> {
        self.nodes[rank].as_ref().map(|_| &self.rooms[rank])
    }

    pub(crate) fn start(&mut self, now: Time, rank: usize, job: &JobSpec) {
        assert!(self.rooms[rank].fits(job), "job {} does not fit what is idle", job.id);
        match &mut self.nodes[rank] {
            Some(nodes) => {
                nodes.start(now, job).expect("it fits");
                self.rooms[rank] = nodes.room();
            }
            None => self.rooms[rank].put(job.processors, 0),
        }
        let estimated_end = now.saturating_add(job.requested);
        let running = Running { rank, processors: job.processors, estimated_end };
        let before = self.running.insert(job.id, running);
        assert!(before.is_none(), "job {} runs once", job.id);
        if self.with_ends {
            self.ends[rank].insert((estimated_end, job.id), job.processors);
        }
    }

    /// Frees a job's processors; returns the rank of the site it ran on.
    pub(crate) fn complete(&mut self, now: Time, id: JobId) -> usize {
        let running = self.running.remove(&id).expect("only running jobs complete");
        let rank = running.rank;
        self.rooms[rank] = match &mut self.nodes[rank] {
            Some(nodes) => {
                nodes.end(now, id);
                nodes.room()
            }
            None => Room::Processors(self.rooms[rank].width() + running.processors),
        };
        if self.with_ends {
            self.ends[running.rank].remove(&(running.estimated_end, id));
        }
        running.rank
    }

    /// When the next running job of a site will have reached its estimated end. Until then, without starts and
    /// completions, [`Machines::reservation`] does not change except that it may move along with the time.
    pub(crate) fn next_overrun(&self, now: Time, rank: usize) -> Time {
        let later = self.ends[rank].range((Bound::Excluded((now, JobId(u64::MAX))), Bound::Unbounded));
        later.map(|(&(end, _), _)| end).next().unwrap_or(Time::MAX)
    }

    /// The reservation of a job that does not fit now. A job past its estimate is taken to end now.
    pub(crate) fn reservation(&self, now: Time, rank: usize, processors: u32) -> Reservation {
        let ends = self.ends[rank].iter().map(|(&(end, _), &width)| (end, width));
        reservation::shadow(processors, self.free(rank), now, ends)
            .expect("a job of a site's list fits the site when all of it is idle")
    }
}

fn room_of(nodes: Option<&Occupancy>, processors: u32) -> Room {
    nodes.map_or(Room::Processors(processors), Occupancy::room)
}
