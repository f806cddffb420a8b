//! The lists of the stealing algorithm exactly as defined, with sets and scans.
//!
//! Slow and obviously right: what views, closed form and checkers are compared with. Nothing that has to be fast
//! uses it.

use crate::class::{Order, Threshold};
use crate::grid::Grid;
use crate::ideal::{Set, sequence};
use crate::job::JobSpec;

/// Whether a job is in A_i: big for site i and too wide for every smaller site (Quezada Pina 2012, Eq. 11).
pub fn in_a(grid: &Grid, threshold: Threshold, job: &JobSpec, rank: usize) -> bool {
    grid.home_rank(job.processors) == Some(rank) && threshold.is_big(job.processors, grid.widths()[rank])
}

/// Whether a job is in B_i: small for site i and too wide for every smaller site (Eq. 12).
pub fn in_b(grid: &Grid, threshold: Threshold, job: &JobSpec, rank: usize) -> bool {
    grid.home_rank(job.processors) == Some(rank) && !threshold.is_big(job.processors, grid.widths()[rank])
}

/// Whether a job is in H_i: big for site i, with a smaller home (Eq. 13).
pub fn in_h(grid: &Grid, threshold: Threshold, job: &JobSpec, rank: usize) -> bool {
    grid.home_rank(job.processors).is_some_and(|home| home < rank)
        && threshold.is_big(job.processors, grid.widths()[rank])
}

/// L_i of every site by rank, each in the order of `waiting`: the first non-empty of A_i, L_{i-1} ∩ H_i and B_i in
/// the given order, else L_{i-1}.
pub fn lists(grid: &Grid, threshold: Threshold, order: Order, waiting: &[JobSpec]) -> Vec<Vec<JobSpec>> {
    let mut lists: Vec<Vec<JobSpec>> = Vec::new();
    for rank in 0..grid.len() {
        let below = lists.last().cloned().unwrap_or_default();
        let filtered = |jobs: &[JobSpec], member: fn(&Grid, Threshold, &JobSpec, usize) -> bool| {
            jobs.iter().copied().filter(|job| member(grid, threshold, job, rank)).collect::<Vec<_>>()
        };
        let list = sequence(order)
            .into_iter()
            .map(|set| match set {
                Set::A => filtered(waiting, in_a),
                Set::H => filtered(&below, in_h),
                Set::B => filtered(waiting, in_b),
            })
            .find(|jobs| !jobs.is_empty())
            .unwrap_or(below);
        lists.push(list);
    }
    lists
}
