//! Waiting jobs by home site, and lists as views of them.
//!
//! A list L_i is A_i, B_i, L_{i-1} or the part of L_{i-1} that is big for i, so it is always one class of one home
//! from some width on: a [`View`], never a copy. Which job of a list starts is decided in `select`.

use crate::class::{Class, Order, Threshold};
use crate::grid::Grid;
use crate::ideal::{Set, sequence};
use crate::job::JobSpec;
use crate::waiting::{WaitingList, Widths};

/// A list of the stealing algorithm: the jobs of one home and class with a width in a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View {
    /// The rank of the home site, from 0.
    pub home: usize,
    /// The class of all its jobs at their home.
    pub class: Class,
    /// The widths of its jobs.
    pub widths: Widths,
}

/// One home's queue and what the lists need to know of it.
#[derive(Clone, Debug)]
struct Home {
    queue: WaitingList,
    /// Widths of class A and of class B.
    ranges: [Widths; 2],
    /// The widest waiting job of each class, 0 if there is none.
    widest: [u32; 2],
    /// How often a class gained a job.
    arrivals: [u64; 2],
    /// How often a class lost a job.
    departures: [u64; 2],
    /// The widest job that is small for this site.
    border: u32,
}

/// All waiting jobs, by home.
#[derive(Clone, Debug)]
pub(crate) struct Homes {
    homes: Vec<Home>,
    sizes: Vec<u32>,
    sequence: [Set; 3],
    len: usize,
}

impl Homes {
    pub(crate) fn new(grid: &Grid, threshold: Threshold, order: Order) -> Homes {
        let sizes = grid.widths().to_vec();
        let homes = (0..sizes.len())
            .map(|rank| {
                let smaller = if rank == 0 { 0 } else { sizes[rank - 1] };
                let border = threshold.widest_small(sizes[rank]);
                Home {
                    queue: WaitingList::new(),
                    ranges: [
                        Widths { above: border.max(smaller), at_most: sizes[rank] },
                        Widths { above: smaller, at_most: border },
                    ],
                    widest: [0; 2],
                    arrivals: [0; 2],
                    departures: [0; 2],
                    border,
                }
            })
            .collect();
        Homes { homes, sizes, sequence: sequence(order), len: 0 }
    }

    /// How many jobs wait.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The rank of the home of a job this wide.
    ///
    /// # Panics
    /// If it fits no site: drivers refuse such jobs.
    pub(crate) fn home_of(&self, processors: u32) -> usize {
        let rank = self.sizes.partition_point(|&size| size < processors);
        assert!(rank < self.sizes.len(), "a job of {processors} processors fits no site of the grid");
        rank
    }

    pub(crate) fn insert(&mut self, job: JobSpec) {
        let rank = self.home_of(job.processors);
        let home = &mut self.homes[rank];
        let class = home.class_index(job.processors);
        home.widest[class] = home.widest[class].max(job.processors);
        home.arrivals[class] += 1;
        home.queue.insert(job);
        self.len += 1;
    }

    /// Takes a job out of its home's queue. Says whether that changed what lists are made of: the widest job of
    /// a class, or that there is one.
    pub(crate) fn remove(&mut self, rank: usize, job: &JobSpec) -> bool {
        let home = &mut self.homes[rank];
        home.queue.remove(job.processors, job.key()).expect("only waiting jobs are picked");
        self.len -= 1;
        let class = home.class_index(job.processors);
        home.departures[class] += 1;
        if home.widest[class] != job.processors {
            return false;
        }
        let widest = home.queue.widest(home.ranges[class]).unwrap_or(0);
        let changed = widest != home.widest[class];
        home.widest[class] = widest;
        changed
    }

    /// The jobs of a home.
    pub(crate) fn queue(&self, rank: usize) -> &WaitingList {
        &self.homes[rank].queue
    }

    /// One class of a home's waiting jobs, `None` if it is empty.
    pub(crate) fn own(&self, rank: usize, class: Class) -> Option<View> {
        let home = &self.homes[rank];
        let index = index(class);
        (home.widest[index] > 0).then(|| View { home: rank, class, widths: home.ranges[index] })
    }

    /// How often the home and class of a view gained a job.
    pub(crate) fn arrivals(&self, view: View) -> u64 {
        self.homes[view.home].arrivals[index(view.class)]
    }

    /// How often the home and class of a view lost a job.
    pub(crate) fn departures(&self, view: View) -> u64 {
        self.homes[view.home].departures[index(view.class)]
    }

    /// L_i from L_{i-1}: the first non-empty of A_i, L_{i-1} ∩ H_i and B_i in the order of the run, else L_{i-1}.
    pub(crate) fn list(&self, rank: usize, below: Option<View>) -> Option<View> {
        self.sequence
            .iter()
            .find_map(|set| match set {
                Set::A => self.own(rank, Class::A),
                Set::B => self.own(rank, Class::B),
                Set::H => below.and_then(|list| self.bigs(list, rank)),
            })
            .or(below)
    }

    /// The jobs of a list of the next smaller site that are big for the site of this rank.
    fn bigs(&self, list: View, rank: usize) -> Option<View> {
        let border = self.homes[rank].border;
        if self.homes[list.home].widest[index(list.class)] <= border {
            return None;
        }
        let widths = Widths { above: list.widths.above.max(border), at_most: list.widths.at_most };
        Some(View { widths, ..list })
    }
}

impl Home {
    fn class_index(&self, processors: u32) -> usize {
        if processors > self.border { 0 } else { 1 }
    }
}

fn index(class: Class) -> usize {
    match class {
        Class::A => 0,
        Class::B => 1,
    }
}
