//! Which of a site's waiting jobs a machine may take, computed by that site alone.
//!
//! The lists L_i of the stealing algorithm in closed form (docs/THEORY.md, "Lists"): every L_i lies in the queue
//! of one site r, as a range of widths. For r's leading class with widest job w, let k° be the largest rank in
//! (r, i] for which w is big; L_i holds the jobs of the leading class that are big for k°, or all of it.

use scheduler::ideal::pick_for;
use scheduler::waiting::{WaitingList, Widths};
use scheduler::{
    Grid, JobSpec, Order, QueueKey, Reservation, Room, Selection, Span, Strategy, Threshold, Time,
    reservation,
};

use crate::margin::Worth;
use crate::membership::view::View;
use crate::message::Release;
use crate::rank::Rank;

/// The rules by which a queue is split into lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lists {
    /// ST_x: one list per machine.
    Steal { threshold: Threshold, order: Order, select: Selection },
    /// ST50g: the leading class, then the other.
    Greedy { threshold: Threshold, order: Order, select: Selection },
    /// Common pool: everything.
    All,
}

/// Up to two ranges of widths, taken one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ranges {
    ranges: [Widths; 2],
    len: usize,
}

impl Ranges {
    const NONE: Ranges = Ranges { ranges: [Widths::ALL; 2], len: 0 };

    fn one(widths: Widths) -> Ranges {
        Ranges { ranges: [widths; 2], len: 1 }
    }

    fn two(first: Widths, second: Widths) -> Ranges {
        Ranges { ranges: [first, second], len: 2 }
    }

    fn iter(&self) -> impl Iterator<Item = Widths> + '_ {
        self.ranges[..self.len].iter().copied()
    }
}

impl Lists {
    /// # Panics
    /// If the strategy is of another family.
    pub(super) fn of(strategy: &Strategy) -> Lists {
        match *strategy {
            Strategy::Steal(steal) => {
                Lists::Steal { threshold: steal.threshold, order: steal.order, select: steal.select }
            }
            Strategy::StealGreedy(steal) => {
                Lists::Greedy { threshold: steal.threshold, order: steal.order, select: steal.select }
            }
            Strategy::CommonPool => Lists::All,
            other => panic!("{other} does not steal"),
        }
    }

    pub(super) fn select(&self) -> Selection {
        match *self {
            Lists::Steal { select, .. } | Lists::Greedy { select, .. } => select,
            Lists::All => Selection::FirstFit,
        }
    }

    /// Whether a site must ask another before it starts own work.
    pub(super) fn stolen_first(&self) -> bool {
        matches!(self, Lists::Steal { order, .. } if order.stolen_first())
    }

    /// The classes of a site of this size in the order they are taken.
    fn classes(threshold: Threshold, order: Order, site_processors: u32) -> (Widths, Widths) {
        let border = threshold.widest_small(site_processors);
        let (small, big) = (Widths::up_to(border), Widths::above(border));
        if order.small_first() { (small, big) } else { (big, small) }
    }

    /// The leading class of the queue of a site: what that site itself takes next.
    pub(super) fn leading(&self, waiting: &WaitingList, site_processors: u32) -> Option<Widths> {
        match *self {
            Lists::Steal { threshold, order, .. } | Lists::Greedy { threshold, order, .. } => {
                let (first, second) = Lists::classes(threshold, order, site_processors);
                [first, second].into_iter().find(|&class| waiting.any(class))
            }
            Lists::All => waiting.any(Widths::ALL).then_some(Widths::ALL),
        }
    }

    /// The list of the machine of rank `thief` in the queue of the site of rank `owner`. Who is absent is as
    /// if it did not exist.
    pub(super) fn list(
        &self,
        waiting: &WaitingList,
        grid: &Grid,
        owner: Rank,
        thief: Rank,
        view: &View,
    ) -> Ranges {
        let sizes = grid.widths();
        let Some(class) = self.leading(waiting, sizes[owner.index()]) else { return Ranges::NONE };
        match *self {
            _ if owner == thief => Ranges::one(class),
            Lists::Steal { threshold, .. } => {
                let widest = waiting.widest(class).expect("the leading class is not empty");
                let is_big = |rank: Rank| threshold.is_big(widest, sizes[rank.index()]);
                Ranges::one(match view.last_between(owner, thief, is_big) {
                    Some(rank) => {
                        let border = threshold.widest_small(sizes[rank.index()]);
                        Widths { above: class.above.max(border), at_most: class.at_most }
                    }
                    None => class,
                })
            }
            Lists::Greedy { threshold, order, .. } => {
                let (first, second) = Lists::classes(threshold, order, sizes[owner.index()]);
                Ranges::two(first, second)
            }
            Lists::All => Ranges::one(Widths::ALL),
        }
    }

    /// The job that a machine with such room takes next from these ranges.
    pub(super) fn pick(
        &self,
        waiting: &WaitingList,
        ranges: Ranges,
        room: &Room,
        now: Time,
        releases: &[Release],
    ) -> Option<JobSpec> {
        let free = match room {
            Room::Processors(free) => *free,
            Room::Nodes(_) => {
                let pick = |widths| pick_for(waiting, widths, self.select(), room).copied();
                return ranges.iter().find_map(pick);
            }
        };
        ranges.iter().find_map(|widths| match self.select() {
            Selection::FirstFit => waiting.first(widths.fitting(free)).copied(),
            Selection::BestFit => waiting.widest_first(widths.fitting(free)).copied(),
            Selection::HeadOnly => waiting.first(widths).filter(|job| job.processors <= free).copied(),
            Selection::Easy => easy(waiting, widths, free, now, releases),
        })
    }

    /// As [`Lists::pick`], among jobs that are worth giving away. The others are as if they did not wait.
    pub(super) fn pick_worth(
        &self,
        waiting: &WaitingList,
        ranges: Ranges,
        room: &Room,
        now: Time,
        releases: &[Release],
        worth: &Worth,
    ) -> Option<JobSpec> {
        if *worth == Worth::Any {
            return self.pick(waiting, ranges, room, now, releases);
        }
        let select = self.select();
        if matches!(select, Selection::FirstFit | Selection::HeadOnly) {
            return ranges.iter().find_map(|widths| {
                let widths =
                    if select == Selection::FirstFit { widths.fitting(room.width()) } else { widths };
                let first = waiting.merged(widths).find(|job| worth.holds(job));
                first.filter(|job| room.fits(job)).copied()
            });
        }
        let mut late = WaitingList::new();
        for job in ranges.iter().flat_map(|widths| waiting.merged(widths)).filter(|job| worth.holds(job)) {
            late.insert(*job);
        }
        self.pick(&late, ranges, room, now, releases)
    }

    /// The narrowest job of these ranges.
    pub(super) fn narrowest(waiting: &WaitingList, ranges: Ranges) -> Option<u32> {
        ranges.iter().filter_map(|widths| waiting.narrowest(widths)).min()
    }
}

/// EASY backfilling inside one list: the head, or the first job that does not delay the head by the estimates.
fn easy(
    waiting: &WaitingList,
    widths: Widths,
    free: u32,
    now: Time,
    releases: &[Release],
) -> Option<JobSpec> {
    let head = *waiting.first(widths)?;
    if head.processors <= free {
        return Some(head);
    }
    if !waiting.any(widths.fitting(free)) {
        return None;
    }
    let ends = releases.iter().map(|release| (release.at, release.processors));
    let reserved = reservation::shadow(head.processors, free, now, ends);
    // If the machine is too small for the head, it never blocks anything.
    let Reservation { shadow, extra } = reserved.unwrap_or(Reservation { shadow: Time::MAX, extra: free });
    waiting
        .in_order(widths.fitting(free))
        .into_iter()
        .find(|job| fits_before(job, now, shadow, extra))
        .copied()
}

fn fits_before(job: &JobSpec, now: Time, shadow: Time, extra: u32) -> bool {
    now.saturating_add(job.requested) <= shadow || job.processors <= extra
}

/// The job's place in its list, for taking it out.
pub(super) fn place(job: &JobSpec) -> (u32, QueueKey) {
    (job.processors, job.key())
}

/// Adds a job that starts now to estimated ends that are kept in order.
pub(super) fn add_release(releases: &mut Vec<Release>, now: Time, requested: Span, processors: u32) {
    let at = now.saturating_add(requested);
    let place = releases.partition_point(|release| release.at < at);
    match releases.get_mut(place) {
        Some(release) if release.at == at => release.processors += processors,
        _ => releases.insert(place, Release { at, processors }),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use std::sync::Arc;

    use super::*;
    use crate::config::Terms;
    use crate::fixtures::job;

    /// The definition with sets: L_i by the recursion over machines, for orders that take own work first.
    fn recursion(
        waiting: &[Vec<JobSpec>],
        sizes: &[u32],
        threshold: Threshold,
        order: Order,
    ) -> Vec<Vec<u64>> {
        let mut lists: Vec<Vec<JobSpec>> = Vec::new();
        for (rank, own) in waiting.iter().enumerate() {
            let is_big = |job: &JobSpec| threshold.is_big(job.processors, sizes[rank]);
            let (a, b): (Vec<JobSpec>, Vec<JobSpec>) = own.iter().copied().partition(is_big);
            let below = if rank == 0 { Vec::new() } else { lists[rank - 1].clone() };
            let h: Vec<JobSpec> = below.iter().copied().filter(is_big).collect();
            let candidates = match order {
                Order::Ahb => [a, h, b],
                Order::Abh => [a, b, h],
                Order::Bah => [b, a, h],
                Order::Bha => [b, h, a],
                Order::Hab => [h, a, b],
                Order::Hba => [h, b, a],
            };
            lists.push(candidates.into_iter().find(|list| !list.is_empty()).unwrap_or(below));
        }
        lists
            .into_iter()
            .map(|list| {
                let mut ids: Vec<u64> = list.iter().map(|job| job.id.0).collect();
                ids.sort_unstable();
                ids
            })
            .collect()
    }

    proptest! {
        #[test]
        fn closed_form_equals_the_recursion(
            mut sizes in prop::collection::vec(1u32..12, 1..6),
            widths in prop::collection::vec(1u32..12, 0..12),
            percent in 0u8..=100,
            order in prop::sample::select(vec![Order::Ahb, Order::Abh, Order::Bah]),
        ) {
            sizes.sort_unstable();
            let grid = Grid::of_sizes(&sizes).unwrap();
            let threshold = Threshold::new(percent).unwrap();
            let lists = Lists::Steal { threshold, order, select: Selection::FirstFit };
            let mut queues = vec![Vec::new(); sizes.len()];
            for (id, width) in widths.into_iter().enumerate() {
                if let Some(home) = grid.home_rank(width) {
                    queues[home].push(job(id as u64, width));
                }
            }
            let expected = recursion(&queues, &sizes, threshold, order);
            let view = View::of(&Terms::new(Arc::new(grid.clone()), scheduler::Strategy::default()).at_rank(0));
            let waiting: Vec<WaitingList> = queues
                .iter()
                .map(|queue| {
                    let mut list = WaitingList::new();
                    queue.iter().for_each(|&job| list.insert(job));
                    list
                })
                .collect();
            for (thief, list) in expected.iter().enumerate() {
                let root = (0..=thief).rev().find(|&rank| !waiting[rank].is_empty());
                let mut ids: Vec<u64> = Vec::new();
                if let Some(owner) = root {
                    let ranges = lists.list(&waiting[owner], &grid, Rank::at(owner), Rank::at(thief), &view);
                    for widths in ranges.iter() {
                        ids.extend(waiting[owner].in_order(widths).iter().map(|job| job.id.0));
                    }
                }
                ids.sort_unstable();
                prop_assert_eq!(&ids, list, "machine of rank {}", thief);
            }
        }
    }
}
