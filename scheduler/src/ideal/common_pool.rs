//! List Common Pool: one list of all jobs, first fit, no classes and no homes.
//!
//! The thesis names it without defining it (Quezada Pina 2012, §5); the definition used here is below.

use crate::class::Selection;
use crate::grid::Grid;
use crate::ideal::machines::Machines;
use crate::ideal::select::pick;
use crate::job::{JobId, JobSpec};
use crate::policy::{Policy, Start};
use crate::time::Time;
use crate::waiting::{WaitingList, Widths};

/// One list in queue order; sites in ascending rank each start the first job that fits until none does.
///
/// Its competitive ratio is unbounded: on s_i = N + i with T unit jobs of every size in ascending order it needs
/// T · H_m where T is possible.
#[derive(Clone, Debug)]
pub struct CommonPool {
    grid: Grid,
    pool: WaitingList,
    machines: Machines,
}

impl CommonPool {
    /// An idle grid without jobs.
    pub fn new(grid: &Grid) -> CommonPool {
        CommonPool { grid: grid.clone(), pool: WaitingList::new(), machines: Machines::new(grid, false) }
    }
}

impl Policy for CommonPool {
    fn submitted(&mut self, _now: Time, job: JobSpec) {
        assert!(job.processors <= self.grid.widest(), "job {} fits no site of the grid", job.id);
        self.pool.insert(job);
    }

    fn completed(&mut self, now: Time, job: JobId) {
        self.machines.complete(now, job);
    }

    fn decide(&mut self, now: Time, starts: &mut Vec<Start>) {
        // One pass is enough: a start takes processors and a job away, and gives nothing to anybody.
        for rank in 0..self.grid.len() {
            loop {
                let first = pick(&self.pool, Widths::ALL, Selection::FirstFit, &self.machines, rank, now);
                let Some(&job) = first else { break };
                self.pool.remove(job.processors, job.key());
                self.machines.start(now, rank, &job);
                starts.push(Start { job, site: self.grid.at_rank(rank) });
            }
        }
    }

    fn waiting(&self) -> usize {
        self.pool.len()
    }
}
