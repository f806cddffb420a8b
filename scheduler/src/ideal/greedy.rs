//! ST_x-greedy ("ST50g"): an idle site takes what fits from any smaller site, not only from its root.
//!
//! An ablation of the root rule. It follows the thesis's prose (Quezada Pina 2012, §3.2.2.2) instead of its algorithm and
//! has no guarantee.

use crate::class::{Class, Order, Selection};
use crate::grid::Grid;
use crate::ideal::homes::{Homes, View};
use crate::ideal::machines::Machines;
use crate::ideal::select::pick;
use crate::job::{JobId, JobSpec};
use crate::policy::{Policy, Start};
use crate::strategy::Steal;
use crate::time::Time;

/// The greedy variant of the stealing algorithm.
///
/// At its turn site i does this:
///
/// 1. While jobs of its own wait, it starts jobs of its leading class only: A_i if that is non-empty, else B_i; the
///    other way round for the orders that put B before A. The leading class is determined anew after every start.
///    Where H stands in the order has no meaning here.
/// 2. If *no* job of its own is left waiting, it goes through the smaller sites k = i − 1, i − 2, … down to the
///    smallest and starts of each what fits: first jobs of A_k until none can start, then jobs of B_k until none can.
///
/// The selection rule applies inside each of these lists: with *head only* the head of A_k starts or no job of
/// A_k does, and with EASY the head of A_k holds a reservation at site i against other jobs of A_k, not
/// against those of B_k. A site does not go back to an earlier list in the same turn. Passes over all sites repeat
/// until one starts nothing.
#[derive(Clone, Debug)]
pub struct GreedySteal {
    grid: Grid,
    selection: Selection,
    classes: [Class; 2],
    homes: Homes,
    machines: Machines,
    /// Counts what can make a job startable without a completion at the site: arrivals, and queues running dry.
    changes: u64,
    /// The count at which each site last found nothing to start.
    settled: Vec<Option<u64>>,
}

impl GreedySteal {
    /// An idle grid without jobs.
    pub fn new(grid: &Grid, steal: Steal) -> GreedySteal {
        GreedySteal {
            grid: grid.clone(),
            selection: steal.select,
            classes: if steal.order.small_first() { [Class::B, Class::A] } else { [Class::A, Class::B] },
            homes: Homes::new(grid, steal.threshold, Order::Ahb),
            machines: Machines::new(grid, steal.select == Selection::Easy),
            changes: 0,
            settled: vec![None; grid.len()],
        }
    }

    /// The own list of a site: its leading class.
    fn own(&self, rank: usize) -> Option<View> {
        self.classes.into_iter().find_map(|class| self.homes.own(rank, class))
    }

    /// Starts one job of a list at a site, if one can start.
    fn start_one(&mut self, now: Time, rank: usize, list: View, starts: &mut Vec<Start>) -> bool {
        let queue = self.homes.queue(list.home);
        let Some(&job) = pick(queue, list.widths, self.selection, &self.machines, rank, now) else {
            return false;
        };
        self.machines.start(now, rank, &job);
        starts.push(Start { job, site: self.grid.at_rank(rank) });
        if self.homes.remove(list.home, &job) {
            self.changes += 1;
        }
        true
    }

    fn turn(&mut self, now: Time, rank: usize, starts: &mut Vec<Start>) {
        while let Some(list) = self.own(rank) {
            if !self.start_one(now, rank, list, starts) {
                return;
            }
        }
        for victim in (0..rank).rev() {
            for class in [Class::A, Class::B] {
                while let Some(list) = self.homes.own(victim, class) {
                    if !self.start_one(now, rank, list, starts) {
                        break;
                    }
                }
            }
        }
    }

    fn is_settled(&self, rank: usize) -> bool {
        match self.selection {
            Selection::FirstFit | Selection::BestFit => self.settled[rank] == Some(self.changes),
            Selection::HeadOnly | Selection::Easy => false,
        }
    }
}

impl Policy for GreedySteal {
    fn submitted(&mut self, _now: Time, job: JobSpec) {
        self.homes.insert(job);
        self.changes += 1;
    }

    fn completed(&mut self, now: Time, job: JobId) {
        let rank = self.machines.complete(now, job);
        self.settled[rank] = None;
    }

    fn decide(&mut self, now: Time, starts: &mut Vec<Start>) {
        loop {
            let before = starts.len();
            for rank in 0..self.grid.len() {
                if self.machines.free(rank) == 0 || self.is_settled(rank) {
                    continue;
                }
                self.turn(now, rank, starts);
                self.settled[rank] = Some(self.changes);
            }
            if starts.len() == before {
                return;
            }
        }
    }

    fn waiting(&self) -> usize {
        self.homes.len()
    }
}
