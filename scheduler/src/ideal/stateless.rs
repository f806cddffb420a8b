//! ST_x, the job stealing of Schwiegelshohn, Tchernykh and Yahyapour (IPDPS 2008), in its stateless form.
//!
//! The lists are a function of the waiting jobs alone and are computed anew after every arrival, start and
//! completion: L_i is the first non-empty of A_i, L_{i-1} ∩ H_i and B_i, else L_{i-1}. `stateful` keeps explicit
//! lists, as the paper does, and gives the same schedule offline.

use crate::class::Selection;
use crate::grid::{Grid, SiteId};
use crate::ideal::homes::{Homes, View};
use crate::ideal::machines::Machines;
use crate::ideal::select::pick;
use crate::job::{JobId, JobSpec};
use crate::policy::{Policy, Start};
use crate::strategy::Steal;
use crate::time::{Span, Time};

/// The ideal stealing algorithm ST_x with its variants of threshold, order and selection.
///
/// Ratio 1 + 1/β offline and 3 + 1/β online for the order AHB, β = min(x, 1 − x); none for x = 0 and x = 1.
#[derive(Clone, Debug)]
pub struct StatelessSteal {
    grid: Grid,
    selection: Selection,
    homes: Homes,
    machines: Machines,
    /// L_i of every site as of its last turn.
    lists: Vec<Option<View>>,
    /// What each site had looked at when it last found nothing to start.
    settled: Vec<Option<Settled>>,
    /// How long stolen jobs hold their processors idle first.
    fetch: Span,
}

/// A list of which nothing could start. While it is as it was, before `until`, and with no start or completion
/// at the site, nothing can.
#[derive(Clone, Copy, Debug)]
struct Settled {
    seen: Seen,
    /// With EASY, the first moment at which passing time alone may change the reservation.
    until: Time,
}

/// What is compared to tell whether a list is as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    list: View,
    arrivals: u64,
    /// With head only and EASY a job can become startable because others left: the head is another then.
    departures: u64,
}

impl StatelessSteal {
    /// An idle grid without jobs.
    pub fn new(grid: &Grid, steal: Steal) -> StatelessSteal {
        StatelessSteal {
            grid: grid.clone(),
            selection: steal.select,
            homes: Homes::new(grid, steal.threshold, steal.order),
            machines: Machines::new(grid, steal.select == Selection::Easy),
            lists: vec![None; grid.len()],
            settled: vec![None; grid.len()],
            fetch: Span::ZERO,
        }
    }

    /// Reserve, then fetch: every stolen job holds its processors idle for so long before it runs.
    #[must_use]
    pub fn with_fetch(mut self, fetch: Span) -> StatelessSteal {
        self.fetch = fetch;
        self
    }

    /// The lists L_i of all sites by rank, as views of home queues.
    pub fn views(&self) -> Vec<Option<View>> {
        let mut below = None;
        (0..self.grid.len())
            .map(|rank| {
                below = self.homes.list(rank, below);
                below
            })
            .collect()
    }

    /// The jobs of the lists L_i of all sites by rank, in queue order.
    pub fn lists(&self) -> Vec<Vec<JobSpec>> {
        let jobs =
            |view: View| self.homes.queue(view.home).in_order(view.widths).into_iter().copied().collect();
        self.views().into_iter().map(|view| view.map_or_else(Vec::new, jobs)).collect()
    }

    /// Recomputes L_from to L_to.
    fn relist(&mut self, from: usize, to: usize) {
        for rank in from..=to {
            let below = if rank == 0 { None } else { self.lists[rank - 1] };
            self.lists[rank] = self.homes.list(rank, below);
        }
    }

    fn look(&self, list: View) -> Seen {
        let departures = match self.selection {
            Selection::FirstFit | Selection::BestFit => 0,
            Selection::HeadOnly | Selection::Easy => self.homes.departures(list),
        };
        Seen { list, arrivals: self.homes.arrivals(list), departures }
    }

    /// Whether a site need not look at its list again.
    fn is_settled(&self, now: Time, rank: usize, list: View) -> bool {
        self.settled[rank].is_some_and(|settled| now < settled.until && settled.seen == self.look(list))
    }

    /// A site found nothing to start in its list.
    fn settle(&mut self, now: Time, rank: usize, list: View) {
        let until = match self.selection {
            Selection::Easy => self.machines.next_overrun(now, rank),
            _ => Time::MAX,
        };
        self.settled[rank] = Some(Settled { seen: self.look(list), until });
    }

    /// One site starts jobs of its list until none can.
    fn turn(&mut self, now: Time, rank: usize, starts: &mut Vec<Start>) {
        self.relist(rank, rank);
        while let Some(list) = self.lists[rank] {
            if self.machines.free(rank) == 0 || self.is_settled(now, rank, list) {
                return;
            }
            let queue = self.homes.queue(list.home);
            let Some(&job) = pick(queue, list.widths, self.selection, &self.machines, rank, now) else {
                self.settle(now, rank, list);
                return;
            };
            self.machines.start(now, rank, &job);
            self.settled[rank] = None;
            starts.push(Start { job, site: self.grid.at_rank(rank) });
            if self.homes.remove(list.home, &job) {
                self.relist(list.home, rank);
            }
        }
    }
}

impl Policy for StatelessSteal {
    fn submitted(&mut self, _now: Time, job: JobSpec) {
        self.homes.insert(job);
    }

    fn completed(&mut self, now: Time, job: JobId) {
        let rank = self.machines.complete(now, job);
        self.settled[rank] = None;
    }

    fn decide(&mut self, now: Time, starts: &mut Vec<Start>) {
        loop {
            let before = starts.len();
            for rank in 0..self.grid.len() {
                self.turn(now, rank, starts);
            }
            if starts.len() == before {
                return;
            }
        }
    }

    fn fetch(&self, grid: &Grid, job: &JobSpec, site: SiteId) -> Span {
        if grid.home(job.processors) == Some(site) { Span::ZERO } else { self.fetch }
    }

    fn waiting(&self) -> usize {
        self.homes.len()
    }
}
