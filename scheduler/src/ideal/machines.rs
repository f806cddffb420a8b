//! What runs where in an ideal reference: idle processors, and estimated ends for EASY reservations.
//!
//! Knows nothing of lists or of true run times.

use std::collections::BTreeMap;
use std::ops::Bound;

use crate::grid::Grid;
use crate::job::{JobId, JobSpec};
use crate::reservation::{self, Reservation};
use crate::time::Time;

/// The processors of all sites, by rank.
#[derive(Clone, Debug)]
pub(crate) struct Machines {
    free: Vec<u32>,
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
        Machines {
            free: grid.sizes().to_vec(),
            running: BTreeMap::new(),
            ends: if with_ends { vec![BTreeMap::new(); grid.len()] } else { Vec::new() },
            with_ends,
        }
    }

    /// Idle processors of a site.
    pub(crate) fn free(&self, rank: usize) -> u32 {
        self.free[rank]
    }

    pub(crate) fn start(&mut self, now: Time, rank: usize, job: &JobSpec) {
        assert!(self.free[rank] >= job.processors, "job {} does not fit the idle processors", job.id);
        self.free[rank] -= job.processors;
        let estimated_end = now.saturating_add(job.requested);
        let running = Running { rank, processors: job.processors, estimated_end };
        let before = self.running.insert(job.id, running);
        assert!(before.is_none(), "job {} runs once", job.id);
        if self.with_ends {
            self.ends[rank].insert((estimated_end, job.id), job.processors);
        }
    }

    /// Frees a job's processors; returns the rank of the site it ran on.
    pub(crate) fn complete(&mut self, id: JobId) -> usize {
        let running = self.running.remove(&id).expect("only running jobs complete");
        self.free[running.rank] += running.processors;
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
        reservation::shadow(processors, self.free[rank], now, ends)
            .expect("a job of a site's list fits the site when all of it is idle")
    }
}
