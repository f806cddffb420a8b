//! The list of one site without looking at any list of another: what a decentralised site can compute.
//!
//! Holds for the orders AHB and ABH. Such a site needs one victim, its *root*: the nearest site, itself included, of no
//! higher rank that has waiting jobs of its own.

use crate::class::{Class, Threshold};
use crate::grid::Grid;
use crate::ideal::homes::View;
use crate::waiting::{WaitingList, Widths};

/// L_i of the site of rank `rank`; `queues` are the waiting jobs by the rank of their home.
///
/// With r the root: its A jobs, or its B jobs if it has no A. A thief (r < rank) takes of A_r only what is wider
/// than x of the largest site between, up to the thief, for which the widest of A_r is big.
pub fn list(queues: &[WaitingList], grid: &Grid, threshold: Threshold, rank: usize) -> Option<View> {
    let root = (0..=rank).rev().find(|&home| !queues[home].is_empty())?;
    let sizes = grid.widths();
    let border = threshold.widest_small(sizes[root]);
    let Some(widest) = queues[root].widest(Widths::above(border)) else {
        let smaller = if root == 0 { 0 } else { sizes[root - 1] };
        let widths = Widths { above: smaller, at_most: border };
        return Some(View { home: root, class: Class::B, widths });
    };
    let floor = if root == 0 { border } else { border.max(sizes[root - 1]) };
    let filter = (root + 1..=rank).rev().find(|&site| threshold.is_big(widest, sizes[site]));
    let above = filter.map_or(floor, |site| floor.max(threshold.widest_small(sizes[site])));
    Some(View { home: root, class: Class::A, widths: Widths { above, at_most: sizes[root] } })
}
