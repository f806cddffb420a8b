//! Injected delay: how long a message waits between the peer and the network, in trace time.
//!
//! What the real network adds comes on top and is measured elsewhere. First in, first out per destination, always.

use std::collections::{BTreeMap, VecDeque};

use scheduler::{SiteId, Span, Time};
use serde::{Deserialize, Serialize};

/// Messages that may wait at once. Arbitrary; far above what an experiment needs, so that hitting it says
/// something.
pub const DELAY_LINE_MAX: usize = 65_536;

/// One-way delays of a grid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DelayConfig {
    /// The same on every link, in microseconds of trace time.
    ConstantUs(Span),
    /// `matrix[sender][receiver]` in the order of the experiment, in microseconds of trace time.
    MatrixUs(Vec<Vec<Span>>),
}

impl Default for DelayConfig {
    fn default() -> Self {
        DelayConfig::ConstantUs(Span::ZERO)
    }
}

/// Why delays do not fit a grid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DelayError {
    /// A negative delay.
    #[error("delay {0} s is negative")]
    Negative(Span),
    /// Not one row and one column per site.
    #[error("the delay matrix has {rows} rows and {columns} columns; the grid has {sites} sites")]
    Shape {
        /// Rows given.
        rows: usize,
        /// Columns of the first row that is wrong, or of the first.
        columns: usize,
        /// Sites of the grid.
        sites: usize,
    },
}

impl DelayConfig {
    /// Checks the delays against the number of sites.
    ///
    /// # Errors
    /// If one is negative or a matrix has the wrong shape.
    pub fn check(&self, sites: usize) -> Result<(), DelayError> {
        let delays: Vec<Span> = match self {
            DelayConfig::ConstantUs(delay) => vec![*delay],
            DelayConfig::MatrixUs(matrix) => {
                let odd = matrix.iter().find(|row| row.len() != sites);
                if matrix.len() != sites || odd.is_some() {
                    let columns = odd.or(matrix.first()).map_or(0, Vec::len);
                    return Err(DelayError::Shape { rows: matrix.len(), columns, sites });
                }
                matrix.iter().flatten().copied().collect()
            }
        };
        match delays.into_iter().find(|delay| *delay < Span::ZERO) {
            Some(delay) => Err(DelayError::Negative(delay)),
            None => Ok(()),
        }
    }

    /// The delay of one directed link. Call after [`DelayConfig::check`].
    pub fn between(&self, from: SiteId, to: SiteId) -> Span {
        match self {
            DelayConfig::ConstantUs(delay) => *delay,
            DelayConfig::MatrixUs(matrix) => matrix[from.index()][to.index()],
        }
    }
}

/// What waits for its time, one line per destination.
#[derive(Debug)]
pub struct DelayLine<T> {
    lines: BTreeMap<SiteId, VecDeque<(Time, T)>>,
    len: usize,
    len_max: usize,
}

impl<T> DelayLine<T> {
    /// An empty line for at most `len_max` items in all.
    pub fn new(len_max: usize) -> Self {
        DelayLine { lines: BTreeMap::new(), len: 0, len_max }
    }

    /// Puts an item in; it never overtakes another to the same destination.
    ///
    /// # Errors
    /// Gives the item back if the line is full.
    pub fn push(&mut self, to: SiteId, due: Time, item: T) -> Result<(), T> {
        if self.len >= self.len_max {
            return Err(item);
        }
        let line = self.lines.entry(to).or_default();
        let due = line.back().map_or(due, |(last, _)| due.max(*last));
        line.push_back((due, item));
        self.len += 1;
        Ok(())
    }

    /// Takes out an item that is due: the earliest, and the lowest destination among equals.
    pub fn pop_due(&mut self, now: Time) -> Option<T> {
        let line =
            self.lines.values_mut().min_by_key(|line| line.front().map_or(Time::MAX, |(due, _)| *due))?;
        if line.front().is_none_or(|(due, _)| *due > now) {
            return None;
        }
        self.len -= 1;
        line.pop_front().map(|(_, item)| item)
    }

    /// When the next item is due.
    pub fn next_due(&self) -> Option<Time> {
        self.lines.values().filter_map(|line| line.front()).map(|(due, _)| *due).min()
    }

    /// How many items wait.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: SiteId = SiteId(2);
    const THREE: SiteId = SiteId(3);

    fn at(seconds: i64) -> Time {
        Time::from_secs(seconds)
    }

    #[test]
    fn items_leave_when_due_and_in_the_order_of_each_destination() {
        let mut line = DelayLine::new(10);
        line.push(TWO, at(5), "a").unwrap();
        line.push(TWO, at(4), "b: never before a").unwrap();
        line.push(THREE, at(3), "c").unwrap();

        assert_eq!(line.next_due(), Some(at(3)));
        assert_eq!(line.pop_due(at(2)), None);
        assert_eq!(line.pop_due(at(4)), Some("c"));
        assert_eq!(line.pop_due(at(4)), None);
        assert_eq!(line.pop_due(at(5)), Some("a"));
        assert_eq!(line.pop_due(at(5)), Some("b: never before a"));
        assert_eq!(line.next_due(), None);
        assert!(line.is_empty());
    }

    #[test]
    fn a_full_line_gives_the_item_back() {
        let mut line = DelayLine::new(1);
        line.push(TWO, at(1), 1).unwrap();
        assert_eq!(line.push(THREE, at(1), 2), Err(2));
        assert_eq!(line.pop_due(at(1)), Some(1));
        assert_eq!(line.push(THREE, at(1), 2), Ok(()));
    }

    #[test]
    fn a_matrix_is_read_by_sender_then_receiver() {
        let seconds = |row: [i64; 2]| row.map(Span::from_secs).to_vec();
        let delay = DelayConfig::MatrixUs(vec![seconds([0, 1]), seconds([2, 0])]);
        assert_eq!(delay.check(2), Ok(()));
        assert_eq!(delay.between(SiteId(1), TWO), Span::from_secs(1));
        assert_eq!(delay.between(TWO, SiteId(1)), Span::from_secs(2));
        assert_eq!(delay.check(3), Err(DelayError::Shape { rows: 2, columns: 2, sites: 3 }));
    }

    #[test]
    fn negative_delays_are_refused() {
        let delay = DelayConfig::ConstantUs(Span::from_micros(-1));
        assert_eq!(delay.check(2), Err(DelayError::Negative(Span::from_micros(-1))));
    }
}
