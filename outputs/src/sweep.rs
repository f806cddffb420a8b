//! The results of a sweep: one row a run, with its parameters and what was measured.
//!
//! A driver fills a database with them; [`stored`] is the small file that can lie beside a document.

pub mod stored;

use workload::limits::{Exceeded, Limit, Limits};

/// A number or a text in a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// No value was given or measured.
    Null,
    /// A whole number.
    Integer(i64),
    /// Any other number.
    Real(f64),
    /// A word or a name.
    Text(String),
}

impl Cell {
    /// The number, if it is one.
    pub fn number(&self) -> Option<f64> {
        match self {
            Cell::Integer(value) => Some(*value as f64),
            Cell::Real(value) => Some(*value),
            Cell::Null | Cell::Text(_) => None,
        }
    }
}

impl std::fmt::Display for Cell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Cell::Null => Ok(()),
            Cell::Integer(value) => write!(f, "{value}"),
            Cell::Real(value) => write!(f, "{value}"),
            Cell::Text(text) => f.write_str(text),
        }
    }
}

/// All rows of a sweep, read at once.
#[derive(Clone, Debug, PartialEq)]
pub struct Rows {
    /// Name of the sweep.
    pub name: String,
    /// Text of the sweep file.
    pub text: String,
    /// The version that made the file.
    pub version: String,
    /// The command that made it.
    pub command: String,
    /// The commit of the program that made it, where somebody said so.
    pub commit: Option<String>,
    /// How many runs the sweep file has; unknown in databases of before this was noted.
    pub planned: Option<usize>,
    /// Significant digits of numbers that are not whole, where they were rounded to be stored.
    pub digits: Option<usize>,
    /// Names of the parameters.
    pub parameters: Vec<String>,
    /// Names of the metrics.
    pub metrics: Vec<String>,
    /// The rows by position.
    pub rows: Vec<Row>,
}

impl Rows {
    /// How many runs of the sweep file have no row yet, if there are any: the sweep is still running, or was stopped.
    pub fn missing(&self) -> Option<usize> {
        self.planned.map(|planned| planned.saturating_sub(self.rows.len())).filter(|&missing| missing > 0)
    }
}

/// Counts what the rows of a file of others take in memory: a file that is small can have the same text in each.
#[derive(Clone, Copy, Debug)]
pub struct Meter {
    limits: Limits,
    rows: u64,
    bytes: u64,
}

impl Meter {
    /// Nothing was read yet.
    pub fn new(limits: &Limits) -> Meter {
        Meter { limits: *limits, rows: 0, bytes: 0 }
    }

    /// Counts a row with so many cells, before it is kept.
    ///
    /// # Errors
    /// If there are more rows than [`Limits::rows`], or they take more bytes than [`Limits::cells`].
    pub fn row(&mut self, cells: usize) -> Result<(), Exceeded> {
        self.rows += 1;
        if self.rows > self.limits.rows {
            return Err(Exceeded { limit: Limit::Rows, most: self.limits.rows, line: 0 });
        }
        self.take(size_of::<Row>() + cells * size_of::<Cell>())
    }

    /// Counts a text of so many bytes, before it is kept.
    ///
    /// # Errors
    /// If all together take more bytes than [`Limits::cells`].
    pub fn text(&mut self, bytes: usize) -> Result<(), Exceeded> {
        self.take(bytes)
    }

    fn take(&mut self, bytes: usize) -> Result<(), Exceeded> {
        self.bytes = self.bytes.saturating_add(bytes as u64);
        let most = self.limits.cells;
        if self.bytes > most { Err(Exceeded { limit: Limit::Cells, most, line: 0 }) } else { Ok(()) }
    }
}

/// One run of a sweep: its parameters and what was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Number in the sweep.
    pub position: i64,
    /// Whether it was measured.
    pub done: bool,
    /// Why it was not measured; `None` if it was.
    pub error: Option<String>,
    /// Wall time of its simulation and measurement, in seconds.
    pub wall_s: f64,
    /// Values of the parameters, in their order.
    pub parameters: Vec<Cell>,
    /// Values of the metrics, in their order.
    pub metrics: Vec<Cell>,
}
