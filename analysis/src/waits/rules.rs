//! Who may take a waiting job, by the rules of the strategy, whatever sites know.
//!
//! Rules that look at estimates, at single jobs or at the order within a list are not here: `easy`, `head`, the order of
//! a global queue, margins.

use scheduler::waiting::Widths;
use scheduler::{Grid, Order, Selection, Strategy, Threshold};

use super::sums::{Cause, Causes};
use crate::deficiency::lists::{List, Lists};

/// The rules of a strategy, and what they depend on. Sites are ranks.
#[derive(Clone, Debug)]
pub(super) enum Rules {
    /// A job stays.
    Stay,
    /// Each site takes from one list, that of its size.
    Lists(Box<Listed>),
    /// A site where no job waits takes from any smaller home.
    Greedy {
        /// How many jobs wait at each site that is their home.
        at_home: Vec<u32>,
    },
    /// Any site takes from any home.
    Common,
    /// Any site takes what is in the global queue.
    Offered,
    /// Any site takes from any.
    Any,
    /// A site where no job waits takes from any. Where one waits, idle processors may be reserved for it (EASY).
    Reserved {
        /// How many jobs wait at each site.
        waiting: Vec<u32>,
    },
}

#[derive(Clone, Debug)]
pub(super) struct Listed {
    lists: Lists,
    /// As of the last refresh, by size.
    pub(super) of: Vec<Option<List>>,
    /// The place of its size, by site.
    sizes: Vec<u32>,
    /// The first site of each size.
    pub(super) first: Vec<u32>,
}

impl Rules {
    pub(super) fn of(strategy: &Strategy, grid: &Grid) -> Rules {
        match strategy {
            // A job that a broker has given to a site stays there.
            Strategy::Local | Strategy::Broker(_) | Strategy::Opaque(_) => Rules::Stay,
            Strategy::Steal(steal) => {
                Rules::Lists(Box::new(Listed::new(grid.sizes(), steal.threshold, steal.order)))
            }
            Strategy::StealGreedy(_) => Rules::Greedy { at_home: vec![0; grid.len()] },
            Strategy::CommonPool => Rules::Common,
            Strategy::Pool(_) => Rules::Offered,
            Strategy::Balance(rules) if rules.select == Selection::Easy => {
                Rules::Reserved { waiting: vec![0; grid.len()] }
            }
            Strategy::Balance(_) => Rules::Any,
        }
    }

    /// Whether a site may take a job of this width that waits elsewhere, perhaps at home, perhaps in the global queue.
    /// The site is wide enough.
    pub(super) fn allow(&self, taker: u32, site: u32, width: u32, at_home: bool, offered: bool) -> bool {
        match self {
            Rules::Stay => false,
            Rules::Lists(listed) => at_home && listed.allow(taker, site, width),
            Rules::Greedy { at_home: waiting } => at_home && taker > site && waiting[taker as usize] == 0,
            Rules::Common => at_home,
            Rules::Offered => offered,
            Rules::Any => true,
            Rules::Reserved { waiting } => waiting[taker as usize] == 0,
        }
    }

    /// Whether what a site may take hangs on that site and that job, each by itself: see [`Rules::is_open`] and [`Rules::lets_go`].
    pub(super) fn is_simple(&self) -> bool {
        !matches!(self, Rules::Lists(_) | Rules::Greedy { .. })
    }

    /// Under simple rules, whether a site may take jobs that wait elsewhere.
    pub(super) fn is_open(&self, taker: u32) -> bool {
        match self {
            Rules::Reserved { waiting } => waiting[taker as usize] == 0,
            _ => true,
        }
    }

    /// Under simple rules, whether another site may take a job that waits, perhaps at home, perhaps in the global queue.
    pub(super) fn lets_go(&self, at_home: bool, offered: bool) -> bool {
        match self {
            Rules::Stay | Rules::Lists(_) | Rules::Greedy { .. } => false,
            Rules::Common => at_home,
            Rules::Offered => offered,
            Rules::Any | Rules::Reserved { .. } => true,
        }
    }

    /// The causes that sites with room can be: once all are found, there is no need to look at more sites.
    pub(super) fn possible(&self, at_home: bool, offered: bool) -> Causes {
        Causes::of(match self {
            Rules::Stay => &[Cause::Ineligible],
            Rules::Lists(_) | Rules::Greedy { .. } if at_home => {
                &[Cause::Ineligible, Cause::Asked, Cause::Blind]
            }
            Rules::Common if at_home => &[Cause::Asked, Cause::Blind],
            Rules::Lists(_) | Rules::Greedy { .. } | Rules::Common => &[Cause::Ineligible],
            Rules::Offered if offered => &[Cause::Offered],
            Rules::Offered => &[Cause::Ineligible],
            Rules::Any => &[Cause::Asked, Cause::Blind],
            Rules::Reserved { .. } => &[Cause::Ineligible, Cause::Asked, Cause::Blind],
        })
    }

    /// A job begins or ends to wait at a site, its home or not; whether that changes what the site may take.
    pub(super) fn queues(&mut self, site: u32, begins: bool) -> bool {
        let Rules::Reserved { waiting } = self else { return false };
        let count = &mut waiting[site as usize];
        *count = if begins { *count + 1 } else { *count - 1 };
        *count == u32::from(begins)
    }

    /// A job begins or ends to wait at its home; whether that made the queue there begin or end.
    pub(super) fn waits(&mut self, home: u32, width: u32, begins: bool) -> bool {
        match self {
            Rules::Lists(listed) => {
                let size = listed.sizes[home as usize] as usize;
                if begins {
                    listed.lists.insert(size, width);
                } else {
                    listed.lists.remove(size, width);
                }
                false
            }
            Rules::Greedy { at_home } => {
                let count = &mut at_home[home as usize];
                *count = if begins { *count + 1 } else { *count - 1 };
                *count == u32::from(begins)
            }
            _ => false,
        }
    }
}

impl Listed {
    fn new(ranked: &[u32], threshold: Threshold, order: Order) -> Listed {
        let mut distinct: Vec<u32> = Vec::new();
        let (mut sizes, mut first) = (Vec::new(), Vec::new());
        for (rank, &size) in ranked.iter().enumerate() {
            if distinct.last() != Some(&size) {
                distinct.push(size);
                first.push(rank as u32);
            }
            sizes.push(distinct.len() as u32 - 1);
        }
        Listed {
            lists: Lists::new(&distinct, threshold, order),
            of: vec![None; distinct.len()],
            sizes,
            first,
        }
    }

    fn allow(&self, taker: u32, site: u32, width: u32) -> bool {
        let home = self.sizes[site as usize] as usize;
        self.of[self.sizes[taker as usize] as usize]
            .is_some_and(|list| list.home == home && list.widths.contains(width))
    }

    /// Makes lists anew, and tells the home and the widths of those that were or are another.
    pub(super) fn refresh(&mut self, mut differs: impl FnMut(u32, Widths)) {
        let Listed { lists, of, first, .. } = self;
        let mut changed = Vec::new();
        lists.refresh(|size| changed.push(size));
        for size in changed {
            let before = std::mem::replace(&mut of[size], lists.of(size));
            // A list whose narrowest job is another allows the same.
            let bounds = |list: Option<List>| list.map(|list| (list.home, list.widths));
            if bounds(before) == bounds(of[size]) {
                continue;
            }
            for (home, widths) in bounds(before).into_iter().chain(bounds(of[size])) {
                differs(first[home], widths);
            }
        }
    }
}
