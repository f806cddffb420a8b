//! A sorted list cut into chunks that each keep a summary, so that a search can pass over a whole chunk at
//! once.
//!
//! Used for the waiting jobs of a site (summary: narrowest and shortest) and for the ends of its running jobs
//! (summary: processors freed). With a few dozen entries it is one sorted `Vec`; with n entries, inserting,
//! removing and passing over everything cost O(n / chunk + chunk).

use std::ops::ControlFlow;

/// Entries of a chunk at which it is cut in two. Arbitrary: a chunk is a few cache lines to shift, and 10,000
/// waiting jobs are about 200 summaries to pass over.
const CHUNK_MAX: usize = 96;

/// What a chunked list holds: something with a place and a digest of many.
pub(crate) trait Entry: Copy {
    /// The place in the list; unique.
    type Key: Ord + Copy + std::fmt::Debug;
    /// What is known about all entries of a chunk.
    type Summary: Copy + PartialEq + std::fmt::Debug;

    /// The place of this entry.
    fn key(&self) -> Self::Key;
    /// What is known about this entry alone.
    fn summary(&self) -> Self::Summary;
    /// What is known about two groups together.
    fn merge(one: Self::Summary, other: Self::Summary) -> Self::Summary;
    /// What is known about a group without this entry, `None` if that takes a look at the others.
    fn without(&self, group: Self::Summary) -> Option<Self::Summary>;
}

#[derive(Clone, Debug)]
struct Chunk<E: Entry> {
    /// Never empty, ascending by key.
    entries: Vec<E>,
    summary: E::Summary,
}

impl<E: Entry> Chunk<E> {
    fn new(entries: Vec<E>) -> Self {
        let summary = summarize(&entries);
        Chunk { entries, summary }
    }

    fn last(&self) -> E::Key {
        self.entries.last().expect("no chunk is kept without an entry").key()
    }
}

fn summarize<E: Entry>(entries: &[E]) -> E::Summary {
    let (first, rest) = entries.split_first().expect("no chunk is kept without an entry");
    rest.iter().fold(first.summary(), |sum, entry| E::merge(sum, entry.summary()))
}

/// The list, ascending by key.
#[derive(Clone, Debug)]
pub(crate) struct Chunked<E: Entry> {
    chunks: Vec<Chunk<E>>,
    len: usize,
}

impl<E: Entry> Chunked<E> {
    pub(crate) fn new() -> Self {
        Chunked { chunks: Vec::new(), len: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn first(&self) -> Option<&E> {
        self.chunks.first().map(|chunk| &chunk.entries[0])
    }

    pub(crate) fn into_iter(self) -> impl Iterator<Item = E> {
        self.chunks.into_iter().flat_map(|chunk| chunk.entries)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &E> {
        self.chunks.iter().flat_map(|chunk| &chunk.entries)
    }

    /// Each chunk's summary with its entries, in order.
    pub(crate) fn chunks(&self) -> impl DoubleEndedIterator<Item = (E::Summary, &[E])> {
        self.chunks.iter().map(|chunk| (chunk.summary, chunk.entries.as_slice()))
    }

    /// Adds an entry at its place.
    ///
    /// # Panics
    /// If an entry of this key is there.
    pub(crate) fn insert(&mut self, entry: E) {
        let key = entry.key();
        self.len += 1;
        if self.chunks.is_empty() {
            self.chunks.push(Chunk::new(vec![entry]));
            return;
        }
        let place = self.chunks.partition_point(|chunk| chunk.last() < key).min(self.chunks.len() - 1);
        let chunk = &mut self.chunks[place];
        let offset = chunk.entries.partition_point(|other| other.key() < key);
        assert!(
            chunk.entries.get(offset).is_none_or(|other| other.key() != key),
            "an entry is in a list once"
        );
        chunk.entries.insert(offset, entry);
        chunk.summary = E::merge(chunk.summary, entry.summary());
        if chunk.entries.len() >= CHUNK_MAX {
            let upper = chunk.entries.split_off(CHUNK_MAX / 2);
            chunk.summary = summarize(&chunk.entries);
            self.chunks.insert(place + 1, Chunk::new(upper));
        }
    }

    /// Takes the entry of a key out. `None` if there is none.
    pub(crate) fn remove(&mut self, key: E::Key) -> Option<E> {
        let place = self.chunks.partition_point(|chunk| chunk.last() < key);
        let chunk = self.chunks.get_mut(place)?;
        let offset = chunk.entries.binary_search_by_key(&key, E::key).ok()?;
        let entry = chunk.entries.remove(offset);
        self.len -= 1;
        match entry.without(chunk.summary) {
            Some(summary) if !chunk.entries.is_empty() => chunk.summary = summary,
            _ => self.after_removal(place),
        }
        Some(entry)
    }

    /// Takes out, in order, every entry that `pick` says yes to. Chunks whose summary `may` rules out are not
    /// looked at, so `may` must say yes whenever `pick` would for one entry of the chunk; from a chunk at which it
    /// breaks nothing on is looked at.
    pub(crate) fn take<S>(
        &mut self,
        state: &mut S,
        may: impl Fn(&S, E::Summary) -> ControlFlow<(), bool>,
        mut pick: impl FnMut(&mut S, &E) -> bool,
    ) {
        let mut place = 0;
        while place < self.chunks.len() {
            let chunk = &mut self.chunks[place];
            match may(state, chunk.summary) {
                ControlFlow::Continue(true) => {}
                ControlFlow::Continue(false) => {
                    place += 1;
                    continue;
                }
                ControlFlow::Break(()) => return,
            }
            let before = chunk.entries.len();
            chunk.entries.retain(|entry| !pick(state, entry));
            let after = chunk.entries.len();
            if after < before {
                self.len -= before - after;
                self.after_removal(place);
            }
            if after > 0 {
                place += 1;
            }
        }
    }

    /// Walks everything.
    ///
    /// # Panics
    /// If the list is not sorted, has an empty chunk or miscounts.
    pub(crate) fn check_invariants(&self) {
        let mut last = None;
        for entry in self.iter() {
            assert!(last.is_none_or(|last| last < entry.key()), "a chunked list is sorted");
            last = Some(entry.key());
        }
        for chunk in &self.chunks {
            assert!(chunk.entries.len() < CHUNK_MAX, "no chunk is too long");
            assert_eq!(chunk.summary, summarize(&chunk.entries), "a summary is that of its entries");
        }
        assert_eq!(self.len, self.iter().count(), "the length is that of the list");
    }

    fn after_removal(&mut self, place: usize) {
        let chunk = &mut self.chunks[place];
        if chunk.entries.is_empty() {
            self.chunks.remove(place);
        } else {
            chunk.summary = summarize(&chunk.entries);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    impl Entry for u32 {
        type Key = u32;
        type Summary = u64;
        fn key(&self) -> u32 {
            *self
        }
        fn summary(&self) -> u64 {
            u64::from(*self)
        }
        fn merge(one: u64, other: u64) -> u64 {
            one + other
        }
        fn without(&self, group: u64) -> Option<u64> {
            Some(group - u64::from(*self))
        }
    }

    proptest! {
        /// The naive twin is a sorted set.
        #[test]
        fn a_chunked_list_is_a_sorted_set(steps in prop::collection::vec((any::<bool>(), 0u32..400), 0..1200)) {
            let mut list: Chunked<u32> = Chunked::new();
            let mut naive = std::collections::BTreeSet::new();
            for (insert, value) in steps {
                if insert {
                    if naive.insert(value) {
                        list.insert(value);
                    }
                } else {
                    prop_assert_eq!(list.remove(value), naive.take(&value));
                }
            }
            list.check_invariants();
            prop_assert_eq!(list.len(), naive.len());
            prop_assert!(list.iter().eq(&naive));
            prop_assert_eq!(list.first(), naive.first());

            let mut taken = Vec::new();
            list.take(&mut taken, |_, _| ControlFlow::Continue(true), |taken, value| {
                let yes = value % 3 == 0;
                if yes {
                    taken.push(*value);
                }
                yes
            });
            list.check_invariants();
            let (third, rest): (Vec<u32>, Vec<u32>) = naive.into_iter().partition(|value| value % 3 == 0);
            prop_assert_eq!(taken, third);
            prop_assert!(list.iter().eq(&rest));
        }
    }
}
