//! ST_x with explicit lists and the procedure *Update*, as in GRID_CONCURRENT_SUBMISSION (Quezada Pina 2012,
//! Algorithm 2, with the misprints of its lines 2.B 5 and 8 corrected).
//!
//! For jobs that are all submitted at once, in the order AHB. Kept as evidence that [`StatelessSteal`] is the same
//! algorithm; nothing else runs it.
//!
//! [`StatelessSteal`]: crate::ideal::StatelessSteal

use crate::class::{Order, Selection, Threshold};
use crate::grid::Grid;
use crate::ideal::definition::{in_a, in_b, in_h};
use crate::ideal::machines::Machines;
use crate::ideal::select::pick;
use crate::job::{JobId, JobSpec};
use crate::policy::{Policy, Start};
use crate::time::Time;
use crate::waiting::{WaitingList, Widths};

/// The ideal stealing algorithm with one explicit list per site, refilled only when it is empty.
#[derive(Clone, Debug)]
pub struct StatefulSteal {
    grid: Grid,
    threshold: Threshold,
    selection: Selection,
    waiting: Vec<JobSpec>,
    lists: Vec<WaitingList>,
    machines: Machines,
    begun: bool,
}

impl StatefulSteal {
    /// The order of the classes that this form has.
    pub const ORDER: Order = Order::Ahb;

    /// An idle grid without jobs.
    pub fn new(grid: &Grid, threshold: Threshold, selection: Selection) -> StatefulSteal {
        StatefulSteal {
            grid: grid.clone(),
            threshold,
            selection,
            waiting: Vec::new(),
            lists: vec![WaitingList::new(); grid.len()],
            machines: Machines::new(grid, selection == Selection::Easy),
            begun: false,
        }
    }

    fn refill(&mut self, rank: usize, jobs: Vec<JobSpec>) {
        for job in jobs {
            self.lists[rank].insert(job);
        }
    }

    /// Every list becomes A_i, then empty ones are refilled.
    fn begin(&mut self) {
        self.begun = true;
        for rank in 0..self.grid.len() {
            let own = self.waiting.iter().filter(|job| in_a(&self.grid, self.threshold, job, rank));
            let own = own.copied().collect();
            self.refill(rank, own);
        }
        self.update();
    }

    /// Refills empty lists in one ascending pass: big stolen work, else small own work, else anything site i − 1 may run.
    fn update(&mut self) {
        for rank in 0..self.grid.len() {
            if !self.lists[rank].is_empty() {
                continue;
            }
            let below: Vec<JobSpec> =
                if rank == 0 { Vec::new() } else { self.lists[rank - 1].iter().copied().collect() };
            let mut big = below.clone();
            big.retain(|job| in_h(&self.grid, self.threshold, job, rank));
            let mut small = self.waiting.clone();
            small.retain(|job| in_b(&self.grid, self.threshold, job, rank));
            let jobs = [big, small, below].into_iter().find(|jobs| !jobs.is_empty());
            self.refill(rank, jobs.unwrap_or_default());
        }
    }

    fn start(&mut self, now: Time, rank: usize, job: JobSpec, starts: &mut Vec<Start>) {
        self.machines.start(now, rank, &job);
        starts.push(Start { job, site: self.grid.at_rank(rank) });
        self.waiting.retain(|waiting| waiting.id != job.id);
        for list in &mut self.lists {
            list.remove(job.processors, job.key());
        }
        if self.lists.iter().any(WaitingList::is_empty) {
            self.update();
        }
    }
}

impl Policy for StatefulSteal {
    fn submitted(&mut self, _now: Time, job: JobSpec) {
        assert!(!self.begun, "the stateful form is defined for jobs that are all submitted at once");
        assert!(job.processors <= self.grid.widest(), "job {} fits no site of the grid", job.id);
        self.waiting.push(job);
    }

    fn completed(&mut self, now: Time, job: JobId) {
        self.machines.complete(now, job);
    }

    fn decide(&mut self, now: Time, starts: &mut Vec<Start>) {
        if !self.begun {
            self.begin();
        }
        loop {
            let before = starts.len();
            for rank in 0..self.grid.len() {
                while let Some(&job) =
                    pick(&self.lists[rank], Widths::ALL, self.selection, &self.machines, rank, now)
                {
                    self.start(now, rank, job, starts);
                }
            }
            if starts.len() == before {
                return;
            }
        }
    }

    fn waiting(&self) -> usize {
        self.waiting.len()
    }
}
