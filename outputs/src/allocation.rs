//! Which processors each job ran on: the lowest free ones of its site when it started; where jobs share nodes, the lowest free
//! place for a task on each of its nodes.
//!
//! A job over several sites has some of each.
//! Sites number their processors; the grid numbers them all, each site after the one before it in the order of
//! the experiment. Schedulers count processors and do not choose them, so they are chosen here, by replaying the
//! starts and ends of an outcome, those of executions that a crash interrupted included. At one instant ends come before starts, as in every driver.
//! Of shared nodes events say which a job is on; the places of a node are numbered one after the other, and those of all nodes in their order.

use analysis::faults::Attempt;
use analysis::{JobOutcome, Outcome};
use scheduler::{Grid, JobId, Site, SiteId, Time};

/// Processors from `first` to `last`, both included, in the numbering of the grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// The lowest processor, counted from 0 over all sites.
    pub first: u32,
    /// The highest processor, counted as `first`.
    pub last: u32,
}

impl Interval {
    /// How many processors these are.
    pub fn len(self) -> u32 {
        self.last - self.first + 1
    }

    /// Never true: an interval has a processor.
    pub fn is_empty(self) -> bool {
        false
    }
}

/// The processors of every job that started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allocation {
    intervals: Vec<Interval>,
    /// Per job of the outcome, and then per execution that does not count, where its intervals begin and end.
    ranges: Vec<(u32, u32)>,
    /// Jobs of the outcome.
    jobs: usize,
    /// Number of the first processor of each site, in the order of the experiment.
    offsets: Vec<u32>,
    /// Jobs that were started although too few processors of their site were free.
    overcommitted: usize,
}

impl Allocation {
    /// Replays an outcome.
    pub fn of(outcome: &Outcome) -> Allocation {
        let mut offsets = Vec::with_capacity(outcome.grid.len());
        let mut next = 0u32;
        for site in outcome.grid.sites() {
            offsets.push(next);
            next += site.processors;
        }
        let holds = Hold::all(outcome);
        let mut starts: Vec<(i64, u32)> = Vec::with_capacity(holds.len());
        let mut ends: Vec<(i64, u32)> = Vec::with_capacity(holds.len());
        for (hold, index) in holds.iter().zip(0..) {
            if let Some(Hold { start, end, .. }) = hold {
                starts.push((start.as_micros(), index));
                // A job of no length holds nothing past its start; it never enters the list of ends.
                if let Some(end) = end.filter(|end| end > start) {
                    ends.push((end.as_micros(), index));
                }
            }
        }
        starts.sort_unstable();
        ends.sort_unstable();
        let mut replay = Replay {
            free: outcome.grid.sites().iter().map(|site| Free::of(&outcome.grid, site)).collect(),
            allocation: Allocation {
                intervals: Vec::with_capacity(starts.len() * 2),
                ranges: vec![(0, 0); holds.len()],
                jobs: outcome.jobs.len(),
                offsets,
                overcommitted: 0,
            },
        };
        let mut ended = ends.into_iter().peekable();
        for (at, index) in starts {
            while let Some((_, done)) = ended.next_if(|&(end, _)| end <= at) {
                replay.release(done as usize);
            }
            let Some(hold) = holds[index as usize] else { continue };
            let spread = outcome.jobs.get(index as usize).and_then(|job| outcome.spread.get(&job.id));
            let whole = [(hold.site, hold.processors)];
            let nodes = |site: SiteId| {
                // Parts of one job need not start at one instant.
                let latest =
                    || spread.and_then(|_| outcome.placements.latest(hold.job, site)).map(|part| part.1);
                let placement = outcome.placements.get(hold.job, site, hold.start).or_else(latest);
                placement.map_or([].as_slice(), |placement| &placement.nodes)
            };
            replay.take(spread.map_or(&whole[..], Vec::as_slice), nodes, index as usize);
            if hold.end == Some(hold.start) {
                replay.release(index as usize);
            }
        }
        replay.allocation
    }

    /// The processors of the job in this row of the outcome, ascending; none if it did not start.
    pub fn of_job(&self, row: usize) -> &[Interval] {
        let (from, to) = self.ranges[row];
        &self.intervals[from as usize..to as usize]
    }

    /// Those of them that are of one site: of a job over several sites its part there.
    pub fn of_job_at(&self, row: usize, site: SiteId) -> impl Iterator<Item = &Interval> {
        let from = self.offset(site);
        let until = self.offsets.get(site.index() + 1).copied().unwrap_or(u32::MAX);
        self.of_job(row).iter().filter(move |interval| (from..until).contains(&interval.first))
    }

    /// The processors of an execution that is not the one that counts, by its place in [`analysis::Faults::attempts`].
    pub fn of_attempt(&self, place: usize) -> &[Interval] {
        self.of_job(self.jobs + place)
    }

    /// The number of the first processor of a site.
    pub fn offset(&self, site: SiteId) -> u32 {
        self.offsets[site.index()]
    }

    /// Jobs without processors, because their site had too few free: an error of the run.
    pub fn overcommitted(&self) -> usize {
        self.overcommitted
    }
}

/// Processors held from a start to an end.
#[derive(Clone, Copy)]
struct Hold {
    job: JobId,
    site: SiteId,
    processors: u32,
    start: Time,
    end: Option<Time>,
}

impl Hold {
    /// Those of the jobs that started, in the order of rows, and then those of executions that do not count.
    fn all(outcome: &Outcome) -> Vec<Option<Hold>> {
        let of_job = |job: &JobOutcome| {
            let (start, site) = job.start.zip(job.site)?;
            Some(Hold { job: job.id, site, processors: job.processors, start, end: job.end })
        };
        let of_attempt = |attempt: &Attempt| {
            let Attempt { job, site, processors, start, at_most, .. } = *attempt;
            Some(Hold { job, site, processors, start, end: Some(at_most) })
        };
        let attempts = outcome.faults.attempts.iter().map(of_attempt);
        outcome.jobs.iter().map(of_job).chain(attempts).collect()
    }
}

struct Replay {
    free: Vec<Free>,
    allocation: Allocation,
}

/// What is free at a site.
enum Free {
    Processors(Processors),
    Nodes(Nodes),
}

impl Free {
    fn of(grid: &Grid, site: &Site) -> Free {
        match grid.cluster(site.id) {
            Some(cluster) => {
                Free::Nodes(Nodes::all_free(cluster.platform.nodes().iter().map(|node| node.mpl)))
            }
            None => Free::Processors(Processors::all_free(site.processors)),
        }
    }

    /// Whether so many processors are free; of nodes that is seen when they are taken.
    fn may_have(&self, processors: u32) -> bool {
        match self {
            Free::Processors(free) => processors <= free.free,
            Free::Nodes(_) => true,
        }
    }

    fn take(&mut self, processors: u32, nodes: &[u32], offset: u32, intervals: &mut Vec<Interval>) -> bool {
        match self {
            Free::Processors(free) => free.take(processors, offset, intervals),
            Free::Nodes(free) => free.take(processors, nodes, offset, intervals),
        }
    }

    fn release(&mut self, first: u32, last: u32) {
        match self {
            Free::Processors(free) => free.release(first, last),
            Free::Nodes(free) => free.busy[first as usize..=last as usize].fill(false),
        }
    }
}

/// Places for tasks on the nodes of one site.
struct Nodes {
    /// The first place of each node, and where the last one ends.
    first: Vec<u32>,
    busy: Vec<bool>,
}

impl Nodes {
    fn all_free(places: impl Iterator<Item = u32>) -> Nodes {
        let mut first = vec![0];
        for places in places {
            first.push(first.last().map_or(0, |last| last + places));
        }
        let busy = vec![false; first.last().map_or(0, |&last| last as usize)];
        Nodes { first, busy }
    }

    /// Appends the lowest free place of each node and marks it busy. Changes nothing and returns false if it is not one node for each task, or
    /// one has no free place.
    fn take(&mut self, tasks: u32, nodes: &[u32], offset: u32, intervals: &mut Vec<Interval>) -> bool {
        let place = |&node: &u32| {
            let (from, to) = (*self.first.get(node as usize)?, *self.first.get(node as usize + 1)?);
            (from..to).find(|&place| !self.busy[place as usize])
        };
        let Some(places) = nodes.iter().map(place).collect::<Option<Vec<u32>>>() else { return false };
        if places.len() != tasks as usize {
            return false;
        }
        let begin = intervals.len();
        for place in places {
            self.busy[place as usize] = true;
            let number = offset + place;
            match intervals[begin..].last_mut() {
                Some(previous) if previous.last + 1 == number => previous.last = number,
                _ => intervals.push(Interval { first: number, last: number }),
            }
        }
        true
    }
}

impl Replay {
    /// Takes processors of different sites, or places on these nodes of each, all or none.
    fn take<'a>(&mut self, parts: &[(SiteId, u32)], nodes: impl Fn(SiteId) -> &'a [u32], row: usize) {
        let Allocation { intervals, ranges, offsets, overcommitted, .. } = &mut self.allocation;
        if parts.iter().any(|&(site, processors)| !self.free[site.index()].may_have(processors)) {
            *overcommitted += 1;
            return;
        }
        let from = intervals.len();
        for &(site, processors) in parts {
            if !self.free[site.index()].take(processors, nodes(site), offsets[site.index()], intervals) {
                // Of shared nodes: what was taken of other sites is given back.
                *overcommitted += 1;
                for taken in intervals.drain(from..) {
                    let site = offsets.partition_point(|&offset| offset <= taken.first) - 1;
                    self.free[site].release(taken.first - offsets[site], taken.last - offsets[site]);
                }
                return;
            }
        }
        intervals[from..].sort_unstable_by_key(|interval| interval.first);
        let place = |index: usize| u32::try_from(index).expect("fewer intervals than u32::MAX");
        ranges[row] = (place(from), place(intervals.len()));
    }

    fn release(&mut self, row: usize) {
        let (from, to) = self.allocation.ranges[row];
        let offsets = &self.allocation.offsets;
        for interval in &self.allocation.intervals[from as usize..to as usize] {
            // Members without processors have the offset of the site after them.
            let site = offsets.partition_point(|&offset| offset <= interval.first) - 1;
            self.free[site].release(interval.first - offsets[site], interval.last - offsets[site]);
        }
    }
}

/// The free processors of one site, one bit each.
struct Processors {
    words: Vec<u64>,
    free: u32,
    /// No word before this one has a free processor.
    lowest: usize,
}

impl Processors {
    fn all_free(processors: u32) -> Processors {
        let mut site = Processors { words: vec![0; processors.div_ceil(64) as usize], free: 0, lowest: 0 };
        if processors > 0 {
            site.release(0, processors - 1);
        }
        site
    }

    /// Appends the lowest free processors and marks them busy. Changes nothing and returns false if too few are
    /// free.
    fn take(&mut self, processors: u32, offset: u32, intervals: &mut Vec<Interval>) -> bool {
        if processors > self.free {
            return false;
        }
        let begin = intervals.len();
        let mut needed = processors;
        let mut word = self.lowest;
        while needed > 0 {
            let bits = self.words[word];
            if bits == 0 {
                word += 1;
                continue;
            }
            let start = bits.trailing_zeros();
            let run = (bits >> start).trailing_ones().min(needed);
            self.words[word] &= !(mask(run) << start);
            needed -= run;
            let first = offset + word as u32 * 64 + start;
            match intervals[begin..].last_mut() {
                Some(previous) if previous.last + 1 == first => previous.last += run,
                _ => intervals.push(Interval { first, last: first + run - 1 }),
            }
        }
        self.lowest = word;
        self.free -= processors;
        true
    }

    fn release(&mut self, first: u32, last: u32) {
        let mut processor = first;
        while processor <= last {
            let (word, start) = ((processor / 64) as usize, processor % 64);
            let run = (64 - start).min(last - processor + 1);
            self.words[word] |= mask(run) << start;
            processor += run;
        }
        self.free += last - first + 1;
        self.lowest = self.lowest.min((first / 64) as usize);
    }
}

/// The lowest `ones` bits.
fn mask(ones: u32) -> u64 {
    if ones == 64 { u64::MAX } else { (1 << ones) - 1 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::fixtures::outcome;

    #[test]
    fn lowest_free_processors_are_taken_and_split() {
        let jobs = [
            (0, 2, 9, 2, 0),
            (0, 1, 3, 2, 0),
            (0, 1, 9, 2, 0),
            (3, 2, 4, 2, 3),
            (0, 2, 0, 1, 0),
            (0, 2, 5, 1, 0),
        ];
        let allocation = Allocation::of(&outcome(&[2, 5], &jobs));

        let of = |row| allocation.of_job(row).iter().map(|i| (i.first, i.last)).collect::<Vec<_>>();
        assert_eq!(of(0), [(2, 3)]);
        assert_eq!(of(1), [(4, 4)]);
        assert_eq!(of(2), [(5, 5)]);
        assert_eq!(of(3), [(4, 4), (6, 6)]);
        assert_eq!((of(4), of(5)), (vec![(0, 1)], vec![(0, 1)]));
        assert_eq!(allocation.overcommitted(), 0);
    }

    #[test]
    fn a_job_over_several_sites_has_processors_of_each_until_its_end() {
        let mut outcome =
            outcome(&[2, 4], &[(0, 4, 5, 2, 0), (0, 1, 5, 1, 0), (5, 4, 1, 2, 5), (5, 2, 1, 1, 5)]);
        let first = outcome.jobs[0].id;
        outcome.spread.insert(first, vec![(SiteId(2), 3), (SiteId(1), 1)]);
        let allocation = Allocation::of(&outcome);

        let of = |row| allocation.of_job(row).iter().map(|i| (i.first, i.last)).collect::<Vec<_>>();
        assert_eq!([of(0), of(1)], [vec![(0, 0), (2, 4)], vec![(1, 1)]]);
        assert_eq!([of(2), of(3)], [vec![(2, 5)], vec![(0, 1)]]);
        let at = |site| allocation.of_job_at(0, SiteId(site)).map(|i| (i.first, i.last)).collect::<Vec<_>>();
        assert_eq!([at(1), at(2)], [vec![(0, 0)], vec![(2, 4)]]);
        assert_eq!(allocation.overcommitted(), 0);
    }

    #[test]
    fn a_part_too_many_leaves_the_job_without_processors_anywhere() {
        let mut outcome = outcome(&[2, 4], &[(0, 2, 5, 1, 0), (0, 4, 5, 2, 1)]);
        let second = outcome.jobs[1].id;
        outcome.spread.insert(second, vec![(SiteId(2), 3), (SiteId(1), 1)]);
        let allocation = Allocation::of(&outcome);
        assert_eq!(allocation.overcommitted(), 1);
        assert!(allocation.of_job(1).is_empty());
    }

    #[test]
    fn on_shared_nodes_each_task_has_a_place_of_its_node() {
        let mut nodes = Nodes::all_free([2, 2, 1].into_iter());
        let of = |nodes: &mut Nodes, tasks: &[u32]| {
            let mut intervals = Vec::new();
            let taken = nodes.take(tasks.len() as u32, tasks, 10, &mut intervals);
            taken
                .then(|| intervals.iter().map(|interval| (interval.first, interval.last)).collect::<Vec<_>>())
        };
        assert_eq!(of(&mut nodes, &[0, 1]), Some(vec![(10, 10), (12, 12)]));
        assert_eq!(of(&mut nodes, &[0, 1, 2]), Some(vec![(11, 11), (13, 14)]));
        assert_eq!(of(&mut nodes, &[2]), None, "it takes one task");
        assert_eq!(of(&mut nodes, &[3]), None, "there is no such node");
        Free::Nodes(Nodes::all_free([1].into_iter())).release(0, 0);
        nodes.busy[2] = false;
        assert_eq!(of(&mut nodes, &[1]), Some(vec![(12, 12)]));
    }

    #[test]
    fn a_job_too_many_is_counted_and_gets_nothing() {
        let allocation = Allocation::of(&outcome(&[4], &[(0, 3, 5, 1, 0), (0, 2, 5, 1, 1), (0, 1, 5, 1, 1)]));
        assert_eq!(allocation.overcommitted(), 1);
        assert!(allocation.of_job(1).is_empty());
        assert_eq!(allocation.of_job(2), [Interval { first: 3, last: 3 }]);
    }

    proptest! {
        /// The naive twin searches a vector of busy flags.
        #[test]
        fn equals_a_search_over_flags(
            steps in prop::collection::vec((1u32..150, any::<bool>()), 1..60),
            size in 1u32..200,
        ) {
            let mut fast = Processors::all_free(size);
            let mut busy = vec![false; size as usize];
            let mut held: Vec<Vec<Interval>> = Vec::new();
            for (width, release) in steps {
                if release && !held.is_empty() {
                    for interval in held.remove(width as usize % held.len()) {
                        fast.release(interval.first, interval.last);
                        busy[interval.first as usize..=interval.last as usize].fill(false);
                    }
                    continue;
                }
                let free: Vec<u32> = (0..size).filter(|&p| !busy[p as usize]).take(width as usize).collect();
                let mut intervals = Vec::new();
                let taken = fast.take(width, 0, &mut intervals);
                prop_assert_eq!(taken, free.len() == width as usize);
                if taken {
                    let listed: Vec<u32> = intervals.iter().flat_map(|i| i.first..=i.last).collect();
                    prop_assert_eq!(&listed, &free);
                    prop_assert!(intervals.windows(2).all(|pair| pair[0].last + 1 < pair[1].first));
                    for processor in listed { busy[processor as usize] = true; }
                    held.push(intervals);
                }
            }
        }
    }
}
