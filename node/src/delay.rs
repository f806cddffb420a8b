//! Injected delay: where messages wait between the peer and the network, in trace time.
//!
//! How long each waits, and whether it arrives at all, says [`links::Links`]. What the real network adds comes on top
//! and is measured elsewhere.

use std::collections::BTreeMap;

use scheduler::Time;

/// What waits for its time. Items that are due at the same time leave as they came.
#[derive(Debug)]
pub struct DelayLine<T> {
    items: BTreeMap<(Time, u64), T>,
    sequence: u64,
    len_max: usize,
}

impl<T> DelayLine<T> {
    /// An empty line for at most `len_max` items.
    pub fn new(len_max: usize) -> Self {
        DelayLine { items: BTreeMap::new(), sequence: 0, len_max }
    }

    /// Puts an item in.
    ///
    /// # Errors
    /// Gives the item back if the line is full.
    pub fn push(&mut self, due: Time, item: T) -> Result<(), T> {
        if self.items.len() >= self.len_max {
            return Err(item);
        }
        self.sequence += 1;
        self.items.insert((due, self.sequence), item);
        Ok(())
    }

    /// Takes out the earliest item that is due, with the time at which it is.
    pub fn pop_due(&mut self, now: Time) -> Option<(Time, T)> {
        let first = self.items.first_entry()?;
        let due = first.key().0;
        (due <= now).then(|| (due, first.remove()))
    }

    /// Takes out all items of which this is true, in the order in which they are due.
    pub fn take_if(&mut self, mut is_wanted: impl FnMut(&T) -> bool) -> Vec<T> {
        let items = std::mem::take(&mut self.items).into_iter();
        let (taken, kept): (BTreeMap<_, _>, _) = items.partition(|(_, item)| is_wanted(item));
        self.items = kept;
        taken.into_values().collect()
    }

    /// When the next item is due.
    pub fn next_due(&self) -> Option<Time> {
        self.items.first_key_value().map(|((due, _), _)| *due)
    }

    /// How many items wait.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Time {
        Time::from_secs(seconds)
    }

    #[test]
    fn items_leave_when_due_and_those_of_one_time_as_they_came() {
        let mut line = DelayLine::new(10);
        for (seconds, item) in [(5, "b"), (4, "a"), (5, "c")] {
            line.push(at(seconds), item).unwrap();
        }

        assert_eq!(line.next_due(), Some(at(4)));
        assert_eq!(line.pop_due(at(3)), None);
        assert_eq!(line.pop_due(at(4)), Some((at(4), "a")));
        assert_eq!(line.pop_due(at(4)), None);
        assert_eq!(line.pop_due(at(6)), Some((at(5), "b")));
        assert_eq!(line.pop_due(at(6)), Some((at(5), "c")));
        assert_eq!(line.next_due(), None);
        assert!(line.is_empty());
    }

    #[test]
    fn items_that_are_taken_out_early_leave_in_the_order_in_which_they_are_due() {
        let mut line = DelayLine::new(10);
        for (seconds, item) in [(5, 3), (4, 1), (5, 2), (3, 7)] {
            line.push(at(seconds), item).unwrap();
        }

        assert_eq!(line.take_if(|item| item % 2 == 1), [7, 1, 3]);
        assert_eq!(line.pop_due(at(9)), Some((at(5), 2)));
        assert!(line.is_empty());
    }

    #[test]
    fn a_full_line_gives_the_item_back() {
        let mut line = DelayLine::new(1);
        line.push(at(1), 1).unwrap();
        assert_eq!(line.push(at(1), 2), Err(2));
        assert_eq!(line.pop_due(at(1)), Some((at(1), 1)));
        assert_eq!(line.push(at(1), 2), Ok(()));
    }
}
