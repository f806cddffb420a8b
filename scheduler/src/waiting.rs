//! A list of waiting jobs in queue order that answers "the first that fits" without scanning the list.
//!
//! Jobs are kept per width, each width in queue order, so the first fit among n jobs of k different widths costs
//! O(k), not O(n). Lists of the stealing algorithm are *views* of this one structure by a range of widths.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::Range;

use crate::job::{JobSpec, QueueKey};

/// A range of widths: wider than `above`, at most `at_most`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Widths {
    /// Exclusive lower end.
    pub above: u32,
    /// Inclusive upper end.
    pub at_most: u32,
}

impl Widths {
    /// The range that no job is outside of.
    pub const ALL: Widths = Widths { above: 0, at_most: u32::MAX };

    /// Every width up to this one.
    pub fn up_to(at_most: u32) -> Widths {
        Widths { above: 0, at_most }
    }

    /// Every width above this one.
    pub fn above(above: u32) -> Widths {
        Widths { above, at_most: u32::MAX }
    }

    /// The widths of this range that also fit `processors`.
    pub fn fitting(self, processors: u32) -> Widths {
        Widths { above: self.above, at_most: self.at_most.min(processors) }
    }

    /// Whether the range holds this width.
    pub fn contains(self, processors: u32) -> bool {
        processors > self.above && processors <= self.at_most
    }
}

/// Waiting jobs in queue order, indexed by width.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WaitingList {
    /// Widths of waiting jobs, ascending. The three lists run in parallel; a width without jobs is in none.
    widths: Vec<u32>,
    /// Keys of the first job of each width, side by side: finding the first of a range reads nothing else.
    heads: Vec<QueueKey>,
    /// Jobs of each width in queue order.
    queues: Vec<VecDeque<JobSpec>>,
    len: usize,
}

impl WaitingList {
    /// An empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many jobs wait.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no job waits.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds a job at its place in queue order.
    ///
    /// # Panics
    /// If a job of the same key and width already waits: a job is in one list once.
    pub fn insert(&mut self, job: JobSpec) {
        let key = job.key();
        self.len += 1;
        let lane = match self.widths.binary_search(&job.processors) {
            Ok(lane) => lane,
            Err(lane) => {
                self.widths.insert(lane, job.processors);
                self.heads.insert(lane, key);
                self.queues.insert(lane, VecDeque::from([job]));
                return;
            }
        };
        let queue = &mut self.queues[lane];
        match queue.back() {
            Some(last) if last.key() >= key => {
                let place = queue.partition_point(|waiting| waiting.key() < key);
                assert!(queue[place].key() != key, "job {} waits twice", job.id);
                queue.insert(place, job);
                self.heads[lane] = self.heads[lane].min(key);
            }
            _ => queue.push_back(job),
        }
    }

    /// Takes a job out. `None` if it does not wait here.
    pub fn remove(&mut self, processors: u32, key: QueueKey) -> Option<JobSpec> {
        let lane = self.widths.binary_search(&processors).ok()?;
        let queue = &mut self.queues[lane];
        let job = if self.heads[lane] == key {
            queue.pop_front()
        } else {
            let place = queue.binary_search_by_key(&key, JobSpec::key).ok()?;
            queue.remove(place)
        };
        match queue.front() {
            Some(first) => self.heads[lane] = first.key(),
            None => {
                self.widths.remove(lane);
                self.heads.remove(lane);
                self.queues.remove(lane);
            }
        }
        self.len -= 1;
        job
    }

    /// The first job in queue order with a width in the range.
    pub fn first(&self, widths: Widths) -> Option<&JobSpec> {
        let lanes = self.lanes(widths);
        let begin = lanes.start;
        let (offset, _) = self.heads[lanes].iter().enumerate().min_by_key(|&(_, key)| key)?;
        self.queues[begin + offset].front()
    }

    /// The last job in queue order with a width in the range.
    pub fn last(&self, widths: Widths) -> Option<&JobSpec> {
        self.queues[self.lanes(widths)].iter().filter_map(VecDeque::back).max_by_key(|job| job.key())
    }

    /// How many jobs have a width in the range.
    pub fn count(&self, widths: Widths) -> usize {
        self.queues[self.lanes(widths)].iter().map(VecDeque::len).sum()
    }

    /// The first job in queue order among the widest of the range.
    pub fn widest_first(&self, widths: Widths) -> Option<&JobSpec> {
        self.queues[self.lanes(widths)].last()?.front()
    }

    /// The first job in queue order with a width in the range that satisfies a condition. Looks at every job of
    /// the range before it, so it costs O(n) if few satisfy.
    pub fn first_where(&self, widths: Widths, condition: impl Fn(&JobSpec) -> bool) -> Option<&JobSpec> {
        let mut first: Option<&JobSpec> = None;
        for queue in &self.queues[self.lanes(widths)] {
            let earlier = queue.iter().take_while(|job| first.is_none_or(|first| job.key() < first.key()));
            first = earlier.into_iter().find(|job| condition(job)).or(first);
        }
        first
    }

    /// The smallest width present in the range.
    pub fn narrowest(&self, widths: Widths) -> Option<u32> {
        self.widths[self.lanes(widths)].first().copied()
    }

    /// The largest width present in the range.
    pub fn widest(&self, widths: Widths) -> Option<u32> {
        self.widths[self.lanes(widths)].last().copied()
    }

    /// Whether a job with a width in the range waits.
    pub fn any(&self, widths: Widths) -> bool {
        !self.lanes(widths).is_empty()
    }

    /// All jobs with a width in the range, in queue order. Costs O(n log n).
    pub fn in_order(&self, widths: Widths) -> Vec<&JobSpec> {
        let mut jobs: Vec<&JobSpec> = self.queues[self.lanes(widths)].iter().flatten().collect();
        jobs.sort_unstable_by_key(|job| job.key());
        jobs
    }

    /// Jobs with a width in the range, in queue order, one after the other. Each costs O(log k), k different widths.
    pub fn merged(&self, widths: Widths) -> impl Iterator<Item = &JobSpec> {
        let queues = &self.queues[self.lanes(widths)];
        let mut next: BinaryHeap<Reverse<(QueueKey, usize, usize)>> =
            queues.iter().enumerate().map(|(lane, queue)| Reverse((queue[0].key(), lane, 0))).collect();
        std::iter::from_fn(move || {
            let Reverse((_, lane, place)) = next.pop()?;
            if let Some(job) = queues[lane].get(place + 1) {
                next.push(Reverse((job.key(), lane, place + 1)));
            }
            queues[lane].get(place)
        })
    }

    /// Every job, by width and then in queue order.
    pub fn iter(&self) -> impl Iterator<Item = &JobSpec> {
        self.queues.iter().flatten()
    }

    /// Where the widths of a range are.
    fn lanes(&self, widths: Widths) -> Range<usize> {
        let place_above = |width: u32| match width {
            0 => 0,
            u32::MAX => self.widths.len(),
            _ => self.widths.partition_point(|&present| present <= width),
        };
        let begin = place_above(widths.above);
        begin..place_above(widths.at_most).max(begin)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::grid::SiteId;
    use crate::job::JobId;
    use crate::job::Labels;
    use crate::time::{Span, Time};

    fn job(id: u64, submit: i64, processors: u32) -> JobSpec {
        JobSpec {
            id: JobId(id),
            submit: Time::from_secs(submit),
            processors,
            requested: Span::from_secs(1),
            labels: Labels::UNKNOWN,
            origin: SiteId(1),
            payload: 0,
        }
    }

    proptest! {
        /// The naive twin is a sorted vector that is scanned.
        #[test]
        fn answers_like_a_scanned_list(
            jobs in prop::collection::vec((0i64..6, 1u32..9), 1..30),
            removals in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
            above in 0u32..9,
            at_most in 0u32..10,
        ) {
            let mut list = WaitingList::new();
            let mut naive: Vec<JobSpec> = Vec::new();
            for (index, (submit, width)) in jobs.into_iter().enumerate() {
                let job = job(index as u64, submit, width);
                list.insert(job);
                naive.push(job);
            }
            naive.sort_by_key(JobSpec::key);
            for index in removals {
                if naive.is_empty() { break; }
                let gone = naive.remove(index.index(naive.len()));
                prop_assert_eq!(list.remove(gone.processors, gone.key()), Some(gone));
                prop_assert_eq!(list.remove(gone.processors, gone.key()), None);
            }
            let widths = Widths { above, at_most };
            let inside: Vec<&JobSpec> = naive.iter().filter(|job| widths.contains(job.processors)).collect();
            prop_assert_eq!(list.len(), naive.len());
            prop_assert_eq!(list.first(widths), inside.first().copied());
            prop_assert_eq!(list.last(widths), inside.last().copied());
            prop_assert_eq!(list.count(widths), inside.len());
            let even = |job: &JobSpec| job.id.0.is_multiple_of(2);
            prop_assert_eq!(
                list.first_where(widths, even),
                inside.iter().copied().find(|job| even(job))
            );
            prop_assert_eq!(list.narrowest(widths), inside.iter().map(|job| job.processors).min());
            let widest = inside.iter().map(|job| job.processors).max();
            prop_assert_eq!(list.widest(widths), widest);
            prop_assert_eq!(
                list.widest_first(widths),
                inside.iter().copied().find(|job| Some(job.processors) == widest)
            );
            prop_assert_eq!(list.merged(widths).collect::<Vec<_>>(), inside.clone());
            prop_assert_eq!(list.in_order(widths), inside);
        }
    }
}
