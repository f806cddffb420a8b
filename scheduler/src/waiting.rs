//! A list of waiting jobs in queue order that answers "the first that fits" without scanning the list.
//!
//! Jobs are kept per width, each width in queue order, so the first fit among n jobs of k different widths costs
//! O(k), not O(n). Lists of the stealing algorithm are *views* of this one structure by a range of widths.

use std::collections::{BTreeMap, VecDeque};

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
    /// Every width.
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

    fn is_empty(self) -> bool {
        self.above >= self.at_most
    }
}

/// Waiting jobs in queue order, indexed by width.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WaitingList {
    by_width: BTreeMap<u32, VecDeque<JobSpec>>,
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
        let queue = self.by_width.entry(job.processors).or_default();
        let key = job.key();
        match queue.back() {
            Some(last) if last.key() >= key => {
                let place = queue.partition_point(|waiting| waiting.key() < key);
                assert!(queue[place].key() != key, "job {} waits twice", job.id);
                queue.insert(place, job);
            }
            _ => queue.push_back(job),
        }
        self.len += 1;
    }

    /// Takes a job out. `None` if it does not wait here.
    pub fn remove(&mut self, processors: u32, key: QueueKey) -> Option<JobSpec> {
        let queue = self.by_width.get_mut(&processors)?;
        let job = if queue.front().is_some_and(|first| first.key() == key) {
            queue.pop_front()
        } else {
            let place = queue.binary_search_by_key(&key, JobSpec::key).ok()?;
            queue.remove(place)
        };
        if queue.is_empty() {
            self.by_width.remove(&processors);
        }
        self.len -= 1;
        job
    }

    /// The first job in queue order with a width in the range.
    pub fn first(&self, widths: Widths) -> Option<&JobSpec> {
        if widths.is_empty() {
            return None;
        }
        self.heads(widths).min_by_key(|job| job.key())
    }

    /// The first job in queue order among the widest of the range.
    pub fn widest_first(&self, widths: Widths) -> Option<&JobSpec> {
        if widths.is_empty() {
            return None;
        }
        self.heads(widths).next_back()
    }

    /// The first job in queue order with a width in the range that satisfies a condition. Looks at every job of
    /// the range before it, so it costs O(n) if few satisfy.
    pub fn first_where(&self, widths: Widths, condition: impl Fn(&JobSpec) -> bool) -> Option<&JobSpec> {
        if widths.is_empty() {
            return None;
        }
        let mut first: Option<&JobSpec> = None;
        for queue in self.by_width.range(widths.above + 1..=widths.at_most).map(|(_, queue)| queue) {
            let earlier = queue.iter().take_while(|job| first.is_none_or(|first| job.key() < first.key()));
            first = earlier.into_iter().find(|job| condition(job)).or(first);
        }
        first
    }

    /// The smallest width present in the range.
    pub fn narrowest(&self, widths: Widths) -> Option<u32> {
        if widths.is_empty() {
            return None;
        }
        self.by_width.range(widths.above + 1..=widths.at_most).next().map(|(&width, _)| width)
    }

    /// The largest width present in the range.
    pub fn widest(&self, widths: Widths) -> Option<u32> {
        if widths.is_empty() {
            return None;
        }
        self.by_width.range(widths.above + 1..=widths.at_most).next_back().map(|(&width, _)| width)
    }

    /// Whether a job with a width in the range waits.
    pub fn any(&self, widths: Widths) -> bool {
        self.narrowest(widths).is_some()
    }

    /// All jobs with a width in the range, in queue order. Costs O(n log n).
    pub fn in_order(&self, widths: Widths) -> Vec<&JobSpec> {
        if widths.is_empty() {
            return Vec::new();
        }
        let range = self.by_width.range(widths.above + 1..=widths.at_most);
        let mut jobs: Vec<&JobSpec> = range.flat_map(|(_, queue)| queue).collect();
        jobs.sort_unstable_by_key(|job| job.key());
        jobs
    }

    /// Every job, by width and then in queue order.
    pub fn iter(&self) -> impl Iterator<Item = &JobSpec> {
        self.by_width.values().flatten()
    }

    fn heads(&self, widths: Widths) -> impl DoubleEndedIterator<Item = &JobSpec> {
        self.by_width
            .range(widths.above + 1..=widths.at_most)
            .map(|(_, queue)| queue.front().expect("no width is kept without a job"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::grid::SiteId;
    use crate::job::JobId;
    use crate::time::{Span, Time};

    fn job(id: u64, submit: i64, processors: u32) -> JobSpec {
        JobSpec {
            id: JobId(id),
            submit: Time::from_secs(submit),
            processors,
            requested: Span::from_secs(1),
            user: 1,
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
            prop_assert_eq!(list.in_order(widths), inside);
        }
    }
}
