//! Changes of rows as bytes, in the order in which they were noted: what a commit appends to the file.
//!
//! Appending is all that a commit does for a change. Rows are changed later, many at once, see [`super::Journal`].

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use serde::Serialize;

use super::row::{Key, Kind};

/// The length of a value that says that the row is removed.
const REMOVED: u32 = u32::MAX;
/// Kind, two numbers, and the length of the value.
const HEAD: usize = 1 + 8 + 8 + 4;

/// What changes make of rows: the last value of each, or none if it is removed.
pub(super) type Rows = BTreeMap<Key, Option<Vec<u8>>>;

/// Changes that were noted.
#[derive(Debug, Default)]
pub(super) struct Changes {
    bytes: Vec<u8>,
}

impl Changes {
    pub(super) fn put(&mut self, key: Key, value: &impl Serialize) {
        self.head(key, 0);
        let begin = self.bytes.len();
        bincode::serialize_into(&mut self.bytes, value)
            .expect("what is kept is plain data of bounded length");
        let len = u32::try_from(self.bytes.len() - begin).expect("a value is far below 4 GiB");
        self.bytes[begin - 4..begin].copy_from_slice(&len.to_le_bytes());
    }

    pub(super) fn remove(&mut self, key: Key) {
        self.head(key, REMOVED);
    }

    fn head(&mut self, Key { kind, a, b }: Key, len: u32) {
        self.bytes.push(kind as u8);
        self.bytes.extend_from_slice(&a.to_le_bytes());
        self.bytes.extend_from_slice(&b.to_le_bytes());
        self.bytes.extend_from_slice(&len.to_le_bytes());
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
    }
}

/// Applies changes in their order.
///
/// # Errors
/// If the bytes are no changes.
pub(super) fn apply(bytes: &[u8], rows: &mut Rows) -> Result<(), String> {
    each(bytes, |key, value| {
        rows.insert(key, value.map(<[u8]>::to_vec));
    })
}

/// The same for rows that no file has as yet: what comes and goes leaves no trace. Not for changes of which a file
/// may have some already.
///
/// # Errors
/// If the bytes are no changes.
pub(super) fn gather(bytes: &[u8], rows: &mut Rows) -> Result<(), String> {
    each(bytes, |key, value| match rows.entry(key) {
        Entry::Occupied(row) if value.is_none() && key.kind.is_put_once() && row.get().is_some() => {
            row.remove();
        }
        Entry::Occupied(mut row) => {
            row.insert(value.map(<[u8]>::to_vec));
        }
        Entry::Vacant(row) => {
            row.insert(value.map(<[u8]>::to_vec));
        }
    })
}

fn each(mut bytes: &[u8], mut take: impl FnMut(Key, Option<&[u8]>)) -> Result<(), String> {
    while !bytes.is_empty() {
        let (head, rest) = bytes.split_first_chunk::<HEAD>().ok_or("a change is cut off")?;
        let number = |at: usize| u64::from_le_bytes(*head[at..].first_chunk().expect("a head is so long"));
        let kind = Kind::of(head[0].into())
            .ok_or_else(|| format!("there are changes of rows of an unknown kind {}", head[0]))?;
        let len = u32::from_le_bytes(*head[17..].first_chunk().expect("a head is so long"));
        bytes = rest;
        let value = if len == REMOVED {
            None
        } else {
            let (value, rest) = bytes.split_at_checked(len as usize).ok_or("a change is cut off")?;
            bytes = rest;
            Some(value)
        };
        take(Key::new(kind, number(1), number(9)), value);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_change_of_a_row_counts_and_half_a_change_is_refused() {
        let key = |a| Key::new(Kind::Job, a, 7);
        let mut changes = Changes::default();
        changes.put(key(1), &1u64);
        changes.put(key(2), &2u64);
        changes.put(key(1), &3u64);
        changes.remove(key(2));
        let mut rows = Rows::new();
        apply(changes.bytes(), &mut rows).unwrap();
        assert_eq!(rows, [(key(1), Some(3u64.to_le_bytes().to_vec())), (key(2), None)].into());
        let all = changes.bytes();
        let whole = [HEAD + 8, 2 * (HEAD + 8), 3 * (HEAD + 8)];
        for len in (1..all.len()).filter(|len| !whole.contains(len)) {
            assert!(apply(&all[..len], &mut Rows::new()).is_err(), "{len} bytes");
        }
    }

    #[test]
    fn what_comes_and_goes_leaves_no_trace_but_a_removal_of_what_was_there_does() {
        let key = |a| Key::new(Kind::Arrival, a, 0);
        let mut rows = Rows::new();
        let mut changes = Changes::default();
        changes.put(key(1), &1u64);
        changes.remove(key(1));
        changes.remove(key(2));
        gather(changes.bytes(), &mut rows).unwrap();
        assert_eq!(rows, [(key(2), None)].into());
        apply(changes.bytes(), &mut rows).unwrap();
        assert_eq!(rows, [(key(1), None), (key(2), None)].into());
    }
}
