//! The lists L_i of the stealing algorithm over the true queues: which widths wait at each home, nothing more.
//!
//! A list is one class of one home, from some width on (docs/THEORY.md, "The lists"), so it is told by a range.

use scheduler::waiting::Widths;
use scheduler::{Order, Threshold};

/// The list of one site: a range of widths of one home's waiting jobs, never empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct List {
    /// The home, by size.
    pub(crate) home: usize,
    pub(crate) widths: Widths,
    /// The narrowest job of the list.
    pub(crate) narrowest: u32,
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
///
/// Sites of one size have one list, and homes are the first sites of their sizes, so all is kept by size. A home's jobs
/// are in the lists of a stretch of sizes from its own on, and only those are made anew when its widths change.
#[derive(Clone, Debug)]
pub(crate) struct Lists {
    /// Waiting jobs by the size of their homes, in ascending order of size.
    homes: Vec<Lanes>,
    borders: Vec<u32>,
    order: Order,
    lists: Vec<Option<List>>,
    /// Sizes whose widths changed, in no order.
    changed: Vec<usize>,
    /// The same as flags.
    is_changed: Vec<bool>,
}

impl Lists {
    /// Nothing waits. `sizes` ascend strictly.
    pub(crate) fn new(sizes: &[u32], threshold: Threshold, order: Order) -> Lists {
        Lists {
            homes: vec![Lanes::default(); sizes.len()],
            borders: sizes.iter().map(|&size| threshold.widest_small(size)).collect(),
            order,
            lists: vec![None; sizes.len()],
            changed: Vec::new(),
            is_changed: vec![false; sizes.len()],
        }
    }

    pub(crate) fn insert(&mut self, size: usize, width: u32) {
        if self.homes[size].insert(width) {
            self.note(size);
        }
    }

    pub(crate) fn remove(&mut self, size: usize, width: u32) {
        if self.homes[size].remove(width) {
            self.note(size);
        }
    }

    fn note(&mut self, size: usize) {
        if !self.is_changed[size] {
            self.is_changed[size] = true;
            self.changed.push(size);
        }
    }

    /// The list of all sites of a size, as of the last [`Lists::refresh`].
    pub(crate) fn of(&self, size: usize) -> Option<List> {
        self.lists[size]
    }

    /// Makes lists anew, and tells of each that is another one.
    pub(crate) fn refresh(&mut self, mut differs: impl FnMut(usize)) {
        if self.changed.is_empty() {
            return;
        }
        let mut changed = std::mem::take(&mut self.changed);
        changed.sort_unstable();
        let mut done = 0;
        for &first in &changed {
            // What an earlier one reached is up to date.
            for size in first.max(done)..self.lists.len() {
                let below = size.checked_sub(1).and_then(|below| self.lists[below]);
                let list = self.list(size, below);
                let other = list != self.lists[size];
                if other {
                    self.lists[size] = list;
                    differs(size);
                }
                done = size + 1;
                // The next size takes from this list, and looks at the widths behind it.
                if !other && list.is_none_or(|list| !self.is_changed[list.home]) {
                    break;
                }
            }
        }
        for &size in &changed {
            self.is_changed[size] = false;
        }
        changed.clear();
        self.changed = changed;
    }

    /// L_i from L_{i-1}: the first non-empty of A_i, L_{i-1} with what is big here, and B_i, in the order of the
    /// strategy, else L_{i-1}. H goes before or after both others: B_i and H_i are never both possible.
    fn list(&self, size: usize, below: Option<List>) -> Option<List> {
        let border = self.borders[size];
        let of = |home: usize, widths: Widths| {
            let (narrowest, _) = self.homes[home].ends(widths)?;
            Some(List { home, widths, narrowest })
        };
        let big = || of(size, Widths::above(border));
        let small = || of(size, Widths::up_to(border));
        let stolen = || {
            let list = below?;
            of(list.home, Widths { above: list.widths.above.max(border), ..list.widths })
        };
        let own = || if self.order.small_first() { small().or_else(big) } else { big().or_else(small) };
        let first = if self.order.stolen_first() { stolen().or_else(own) } else { own() };
        first.or_else(stolen).or(below)
    }
}
