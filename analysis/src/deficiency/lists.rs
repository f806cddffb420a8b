//! The lists L_i of the stealing algorithm over the true queues: which widths wait at each home, nothing more.
//!
//! A list is one class of one home, from some width on (docs/THEORY.md, "The lists"), so it is told by a range.

use scheduler::waiting::Widths;
use scheduler::{Grid, Order, Threshold};

/// The list of one site: a range of widths of one home's waiting jobs, never empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct List {
    /// The rank of the home.
    pub(super) home: usize,
    widths: Widths,
    /// The narrowest job of the list.
    pub(super) narrowest: u32,
}

/// How many jobs of each width wait at one home.
#[derive(Clone, Debug, Default)]
struct Lanes {
    /// (width, jobs), ascending.
    lanes: Vec<(u32, u32)>,
}

impl Lanes {
    /// Whether that made a width appear.
    fn insert(&mut self, width: u32) -> bool {
        match self.lanes.binary_search_by_key(&width, |lane| lane.0) {
            Ok(lane) => {
                self.lanes[lane].1 += 1;
                false
            }
            Err(lane) => {
                self.lanes.insert(lane, (width, 1));
                true
            }
        }
    }

    /// Whether that made a width disappear.
    fn remove(&mut self, width: u32) -> bool {
        let Ok(lane) = self.lanes.binary_search_by_key(&width, |lane| lane.0) else { return false };
        self.lanes[lane].1 -= 1;
        let gone = self.lanes[lane].1 == 0;
        if gone {
            self.lanes.remove(lane);
        }
        gone
    }

    /// The narrowest and the widest width in a range.
    fn ends(&self, widths: Widths) -> Option<(u32, u32)> {
        let begin = self.lanes.partition_point(|lane| lane.0 <= widths.above);
        let end = self.lanes.partition_point(|lane| lane.0 <= widths.at_most);
        (begin < end).then(|| (self.lanes[begin].0, self.lanes[end - 1].0))
    }
}

/// All waiting jobs by home, and the lists that follow.
#[derive(Clone, Debug)]
pub(super) struct Lists {
    homes: Vec<Lanes>,
    borders: Vec<u32>,
    order: Order,
    lists: Vec<Option<List>>,
    stale: bool,
}

impl Lists {
    pub(super) fn new(grid: &Grid, threshold: Threshold, order: Order) -> Lists {
        Lists {
            homes: vec![Lanes::default(); grid.len()],
            borders: grid.sizes().iter().map(|&size| threshold.widest_small(size)).collect(),
            order,
            lists: vec![None; grid.len()],
            stale: false,
        }
    }

    pub(super) fn insert(&mut self, home: usize, width: u32) {
        self.stale |= self.homes[home].insert(width);
    }

    pub(super) fn remove(&mut self, home: usize, width: u32) {
        self.stale |= self.homes[home].remove(width);
    }

    /// The lists of all sites by rank.
    pub(super) fn all(&mut self) -> &[Option<List>] {
        if self.stale {
            self.stale = false;
            let mut below = None;
            for rank in 0..self.homes.len() {
                below = self.list(rank, below);
                self.lists[rank] = below;
            }
        }
        &self.lists
    }

    /// L_i from L_{i-1}: the first non-empty of A_i, L_{i-1} with what is big here, and B_i, in the order of the
    /// strategy, else L_{i-1}. H goes before or after both others: B_i and H_i are never both possible.
    fn list(&self, rank: usize, below: Option<List>) -> Option<List> {
        let border = self.borders[rank];
        let of = |home: usize, widths: Widths| {
            let (narrowest, _) = self.homes[home].ends(widths)?;
            Some(List { home, widths, narrowest })
        };
        let big = || of(rank, Widths::above(border));
        let small = || of(rank, Widths::up_to(border));
        let stolen = || {
            let list = below?;
            of(list.home, Widths { above: list.widths.above.max(border), ..list.widths })
        };
        let own = || if self.order.small_first() { small().or_else(big) } else { big().or_else(small) };
        let first = if self.order.stolen_first() { stolen().or_else(own) } else { own() };
        first.or_else(stolen).or(below)
    }
}
