//! Changes of rows: as bytes in the order in which they were noted, which is what a commit appends to the file, and
//! what they make of each row.
//!
//! Appending is all that a commit does for a change. Rows are changed later, many at once, see [`super::Journal`].

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Range;

use foldhash::fast::RandomState;
use serde::Serialize;

use super::row::{Key, Kind, encode_into};

/// Changes that were noted, and those since the last [`Changes::take`] that were committed.
#[derive(Debug, Default)]
pub(super) struct Changes {
    bytes: Vec<u8>,
    /// Where those begin that were not committed.
    pending: usize,
    last: HashMap<Key, Last, RandomState>,
    /// A value whose length is not known yet.
    value: Vec<u8>,
}

/// What the last change of a row made of it.
#[derive(Clone, Copy, Debug)]
struct Last {
    /// Where in the bytes its value is; nowhere if it is removed.
    at: Option<(u32, u32)>,
    /// No earlier change has it, and no file: without this one it leaves no trace.
    is_new: bool,
}

/// Rows as changes have left them, in the order of their keys.
#[derive(Debug, Default)]
pub(super) struct Rows {
    bytes: Vec<u8>,
    last: Vec<(Key, Option<(u32, u32)>)>,
}

impl Changes {
    /// Notes the value of a row that may be there already.
    pub(super) fn put(&mut self, key: Key, value: &impl Serialize) {
        self.value_of(key, value, false);
    }

    /// Notes the value of a row that is not there.
    pub(super) fn put_new(&mut self, key: Key, value: &impl Serialize) {
        self.value_of(key, value, true);
    }

    fn value_of(&mut self, key: Key, value: &impl Serialize, is_new: bool) {
        self.value.clear();
        encode_into(&mut self.value, value);
        self.head(key, false);
        write_number(&mut self.bytes, self.value.len() as u64);
        let begin = self.bytes.len();
        self.bytes.extend_from_slice(&self.value);
        self.noted(key, Some(begin..self.bytes.len()), is_new);
    }

    /// Notes that a row is removed.
    pub(super) fn remove(&mut self, key: Key) {
        self.head(key, true);
        self.noted(key, None, false);
    }

    fn head(&mut self, Key { kind, a, b }: Key, is_removed: bool) {
        self.bytes.push((kind as u8) << 1 | u8::from(is_removed));
        write_number(&mut self.bytes, a);
        write_number(&mut self.bytes, b);
    }

    fn noted(&mut self, key: Key, value: Option<Range<usize>>, is_new: bool) {
        let short = |number: usize| u32::try_from(number).expect("changes are gathered far below 4 GiB");
        let at = value.map(|value| (short(value.start), short(value.len())));
        match self.last.entry(key) {
            // What comes and goes leaves no trace.
            Entry::Occupied(row) if at.is_none() && row.get().is_new => {
                row.remove();
            }
            Entry::Occupied(mut row) => row.get_mut().at = at,
            Entry::Vacant(row) => {
                row.insert(Last { at, is_new });
            }
        }
    }

    /// Adds changes that a file has, of which it may have brought some into its rows.
    ///
    /// # Errors
    /// If the bytes are no changes; those before count.
    pub(super) fn read(&mut self, bytes: &[u8]) -> Result<(), String> {
        let base = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        self.pending = self.bytes.len();
        let mut rest = bytes;
        while let Some((&head, after)) = rest.split_first() {
            rest = after;
            let kind = Kind::of((head >> 1).into())
                .ok_or_else(|| format!("there are changes of rows of an unknown kind {}", head >> 1))?;
            let (a, b) = (read_number(&mut rest)?, read_number(&mut rest)?);
            let value = if head & 1 == 1 {
                None
            } else {
                let len = usize::try_from(read_number(&mut rest)?).map_err(|_| CUT_OFF)?;
                let begin = base + (bytes.len() - rest.len());
                rest = rest.get(len..).ok_or(CUT_OFF)?;
                Some(begin..begin + len)
            };
            self.noted(Key::new(kind, a, b), value, false);
        }
        Ok(())
    }

    /// Changes that wait for a commit.
    pub(super) fn pending(&self) -> &[u8] {
        &self.bytes[self.pending..]
    }

    /// They are committed.
    pub(super) fn committed(&mut self) {
        self.pending = self.bytes.len();
    }

    /// Bytes of all changes since the last [`Changes::take`].
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// What all changes make of rows, and begins anew. All must be committed.
    pub(super) fn take(&mut self) -> Rows {
        assert!(self.pending().is_empty(), "what waits for a commit is not lost");
        let Changes { bytes, last, .. } = std::mem::take(self);
        let mut last: Vec<_> = last.into_iter().map(|(key, Last { at, .. })| (key, at)).collect();
        last.sort_unstable_by_key(|(key, _)| *key);
        Rows { bytes, last }
    }
}

impl Rows {
    pub(super) fn len(&self) -> usize {
        self.last.len()
    }

    /// Rows from one on: keys, and values if they are not removed.
    pub(super) fn from(&self, first: usize) -> impl Iterator<Item = (Key, Option<&[u8]>)> {
        self.last[first..].iter().map(|&(key, at)| {
            let value = at.map(|(begin, len)| &self.bytes[begin as usize..][..len as usize]);
            (key, value)
        })
    }

    /// Rows of a kind.
    pub(super) fn of(&self, kind: Kind) -> impl Iterator<Item = (Key, Option<&[u8]>)> {
        let first = self.last.partition_point(|(key, _)| key.kind < kind);
        self.from(first).take_while(move |(key, _)| key.kind == kind)
    }
}

const CUT_OFF: &str = "a change is cut off";

/// Seven bits in a byte, the lowest first; the last byte has the eighth clear.
fn write_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn read_number(bytes: &mut &[u8]) -> Result<u64, String> {
    let mut number = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let (&byte, rest) = bytes.split_first().ok_or(CUT_OFF)?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err("a number in a change is too long".to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(a: u64) -> Key {
        Key::new(Kind::Job, a, 1 << 40)
    }

    fn rows(rows: &Rows) -> Vec<(u64, Option<Vec<u8>>)> {
        rows.from(0).map(|(key, value)| (key.a, value.map(<[u8]>::to_vec))).collect()
    }

    #[test]
    fn the_last_change_of_a_row_counts_and_half_a_change_is_refused() {
        let mut changes = Changes::default();
        let mut whole = Vec::new();
        changes.put(key(1), &1u8);
        whole.push(changes.len());
        changes.put(key(300), &2u8);
        whole.push(changes.len());
        changes.put(key(1), &3u8);
        whole.push(changes.len());
        changes.remove(key(300));
        let all = changes.pending().to_vec();
        let mut read = Changes::default();
        read.read(&all).unwrap();
        let expected = vec![(1, Some(vec![3])), (300, None)];
        assert_eq!(rows(&read.take()), expected);
        changes.committed();
        assert_eq!(rows(&changes.take()), expected);
        for len in (1..all.len()).filter(|len| !whole.contains(len)) {
            assert!(Changes::default().read(&all[..len]).is_err(), "{len} bytes");
        }
    }

    #[test]
    fn numbers_of_any_length_are_read_again() {
        for number in (0..64).map(|bit| 1u64 << bit).flat_map(|power| [power - 1, power]).chain([u64::MAX]) {
            let mut bytes = Vec::new();
            write_number(&mut bytes, number);
            assert_eq!(read_number(&mut &bytes[..]), Ok(number));
        }
        assert!(read_number(&mut &[0xff; 11][..]).is_err());
    }

    #[test]
    fn what_comes_and_goes_leaves_no_trace_but_a_removal_of_what_was_there_does() {
        let mut changes = Changes::default();
        changes.put_new(key(1), &1u8);
        changes.remove(key(1));
        // This one was there: what is put anew after its removal must be removed again.
        changes.remove(key(2));
        changes.put_new(key(2), &1u8);
        changes.remove(key(2));
        // And this one may have been.
        changes.put(key(3), &1u8);
        changes.remove(key(3));
        let bytes = changes.pending().to_vec();
        changes.committed();
        assert_eq!(rows(&changes.take()), [(2, None), (3, None)]);
        // A file may have brought some of them into its rows.
        changes.read(&bytes).unwrap();
        assert_eq!(rows(&changes.take()), [(1, None), (2, None), (3, None)]);
    }
}
