//! Rows of a sweep as one small file beside a document: CSV with a head, compressed with zstd.
//!
//! ```text
//! # stealgrid sweep, format 1
//! # commit "4f2c..."                    each line of the head is a key and its value as JSON
//! # parameters ["network.delay", ...]   what the columns are
//! # kinds {"network.delay": "text"}     of columns that are not numbers
//! # constants {"jobs": "1000"}          columns that have one value in all rows, and are left out below
//! position,wall_s,network.delay,...
//! ```
//!
//! Numbers are rounded to so many significant digits, whole numbers are not. `zstdcat FILE | head` shows what it is. A
//! file says all that a report needs, so [`read`] gives the same [`Rows`] as a database, but for the digits.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;

use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use workload::limits::{Document, Exceeded, Limit, Limits, read_line};
use workload::source::{ZSTD, decompress, open};

use super::{Cell, Meter, Row, Rows};
use crate::replace;

/// The first line. A program reads its own format only.
const FIRST: &str = "# stealgrid sweep, format 1";
/// Small matters more than fast: such a file is written once, and read from a repository for years.
const LEVEL: i32 = 19;
/// Digits of wall times: nobody reads more of them, and they compress worst of all.
const WALL_DIGITS: usize = 3;
/// Columns that are no parameters or metrics.
const POSITION: &str = "position";
const ERROR: &str = "error";
const WALL: &str = "wall_s";

/// Why a file holds no rows. Reads after "failed to".
#[derive(Debug, thiserror::Error)]
pub enum StoredError {
    /// It cannot be read.
    #[error("read {path}: {cause}")]
    Read {
        /// The file.
        path: String,
        /// What the system said.
        cause: io::Error,
    },
    /// It is another file, or a damaged one.
    #[error(
        "read {path}: line {line}: {reason}; write it again with stealgrid export --format study, or name another file"
    )]
    Content {
        /// The file.
        path: String,
        /// Where, from 1.
        line: u64,
        /// What is wrong.
        reason: String,
    },
}

/// Whether a file begins as a stored sweep does.
///
/// # Errors
/// If it cannot be read.
pub fn is_stored(path: &Path) -> io::Result<bool> {
    let mut begin = Vec::new();
    io::Read::read_to_end(&mut io::Read::take(open(path)?, ZSTD.len() as u64), &mut begin)?;
    Ok(begin == ZSTD)
}

/// A number with so many significant digits.
///
/// # Panics
/// If it shall have none.
pub fn rounded(value: f64, digits: usize) -> f64 {
    assert!(digits > 0, "a number has a digit");
    format!("{value:.*e}", digits - 1).parse().unwrap_or(value)
}

/// Writes rows with the metrics that they have, rounded to `digits`; what stood there is replaced at once or not at all.
///
/// # Errors
/// If the disk does not take it.
pub fn write(path: &Path, rows: &Rows, digits: usize) -> io::Result<()> {
    let columns = columns(rows, digits);
    replace::write(path, |file| {
        let mut file = zstd::Encoder::new(file, LEVEL)?;
        head(&mut file, rows, &columns, digits)?;
        let mut table = csv::Writer::from_writer(&mut file);
        let shown = || columns.iter().filter(|column| !column.is_constant());
        table.write_record(shown().map(|column| column.name.as_bytes()))?;
        for row in 0..rows.rows.len() {
            table.write_record(shown().map(|column| column.written(row)))?;
        }
        table.flush()?;
        drop(table);
        file.finish()?;
        Ok(())
    })
}

/// A column with its cells as they are stored.
struct Column<'a> {
    name: &'a str,
    kind: Kind,
    cells: Vec<Cell>,
}

/// What the cells of a column are, so that a text that looks like a number stays one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Numbers, or nothing.
    Number,
    /// Texts, or nothing.
    Text,
    /// Both, or empty texts: texts in quotes of JSON.
    Any,
}

impl Kind {
    const ALL: [(Kind, &'static str); 3] =
        [(Kind::Number, "number"), (Kind::Text, "text"), (Kind::Any, "any")];

    fn name(self) -> &'static str {
        Kind::ALL[self as usize].1
    }

    fn of(cells: &[Cell]) -> Kind {
        let is_text = |cell: &Cell| matches!(cell, Cell::Text(text) if !text.is_empty());
        if !cells.iter().any(|cell| matches!(cell, Cell::Text(_))) {
            Kind::Number
        } else if cells.iter().all(|cell| *cell == Cell::Null || is_text(cell)) {
            Kind::Text
        } else {
            Kind::Any
        }
    }

    /// The cell that a text stands for.
    fn read(self, text: &str) -> Option<Cell> {
        match self {
            _ if text.is_empty() => Some(Cell::Null),
            Kind::Text => Some(Cell::Text(text.to_string())),
            Kind::Any if text.starts_with('"') => serde_json::from_str(text).ok().map(Cell::Text),
            Kind::Any | Kind::Number => match text.parse() {
                Ok(value) => Some(Cell::Integer(value)),
                Err(_) => text.parse().ok().filter(|value: &f64| value.is_finite()).map(Cell::Real),
            },
        }
    }
}

impl Column<'_> {
    /// Whether all rows have the same value.
    fn is_constant(&self) -> bool {
        self.name != POSITION
            && self.cells.windows(2).all(|pair| pair[0] == pair[1])
            && !self.cells.is_empty()
    }

    fn written(&self, row: usize) -> String {
        match (&self.cells[row], self.kind) {
            (Cell::Null, _) => String::new(),
            (Cell::Text(text), Kind::Any) => Json::from(text.as_str()).to_string(),
            (Cell::Real(value), _) if !value.is_finite() => String::new(),
            // With a point or an exponent, so that it is read as what it was.
            (Cell::Real(value), _) => format!("{value:?}"),
            (cell, _) => cell.to_string(),
        }
    }
}

fn columns(rows: &Rows, digits: usize) -> Vec<Column<'_>> {
    let mut columns = Vec::new();
    let mut push = |name, cell: &dyn Fn(&Row) -> Cell| {
        let cells: Vec<Cell> = rows.rows.iter().map(cell).collect();
        columns.push(Column { name, kind: Kind::of(&cells), cells });
    };
    push(POSITION, &|row| Cell::Integer(row.position));
    // Who is not done has a reason, so this says both.
    push(ERROR, &|row| match (&row.error, row.done) {
        (_, true) => Cell::Null,
        (Some(error), false) if !error.is_empty() => Cell::Text(error.clone()),
        (_, false) => Cell::Text("unknown".to_string()),
    });
    push(WALL, &|row| Cell::Real(rounded(row.wall_s, WALL_DIGITS)));
    for (index, name) in rows.parameters.iter().enumerate() {
        push(name, &|row| row.parameters[index].clone());
    }
    for (index, name) in rows.metrics.iter().enumerate() {
        push(name, &|row| match &row.metrics[index] {
            Cell::Real(value) => Cell::Real(rounded(*value, digits)),
            cell => cell.clone(),
        });
    }
    columns
}

fn head(file: &mut impl Write, rows: &Rows, columns: &[Column], digits: usize) -> io::Result<()> {
    let constants: BTreeMap<&str, String> = columns
        .iter()
        .filter(|column| column.is_constant())
        .map(|column| (column.name, column.written(0)))
        .collect();
    let kinds: BTreeMap<&str, &str> = columns
        .iter()
        .filter(|column| column.kind != Kind::Number)
        .map(|column| (column.name, column.kind.name()))
        .collect();
    writeln!(file, "{FIRST}")?;
    let mut line = |key: &str, value: Json| writeln!(file, "# {key} {value}");
    line("name", Json::from(rows.name.as_str()))?;
    line("commit", Json::from(rows.commit.as_deref()))?;
    line("version", Json::from(rows.version.as_str()))?;
    line("command", Json::from(rows.command.as_str()))?;
    line("planned", Json::from(rows.planned))?;
    line("rows", Json::from(rows.rows.len()))?;
    line("digits", Json::from(digits))?;
    line("parameters", Json::from(rows.parameters.as_slice()))?;
    line("metrics", Json::from(rows.metrics.as_slice()))?;
    line("kinds", serde_json::to_value(kinds)?)?;
    line("constants", serde_json::to_value(constants)?)?;
    line("sweep", Json::from(rows.text.as_str()))
}

/// Reads a stored sweep.
///
/// # Errors
/// If it cannot be read, is another file, or is over a limit.
pub fn read(path: &Path, limits: &Limits) -> Result<Rows, StoredError> {
    let wrap = |cause| StoredError::Read { path: path.display().to_string(), cause };
    let text = open(path).and_then(|file| decompress(file, limits)).map_err(wrap)?;
    read_text(BufReader::new(Document::new(text, limits.document)), limits).map_err(|error| match error {
        Wrong::System(cause) => wrap(cause),
        Wrong::Content(line, reason) => {
            StoredError::Content { path: path.display().to_string(), line, reason }
        }
    })
}

/// What may be wrong, before the file is named.
enum Wrong {
    System(io::Error),
    Content(u64, String),
}

impl From<io::Error> for Wrong {
    fn from(error: io::Error) -> Wrong {
        Wrong::System(error)
    }
}

/// The head, by key, with the line of each.
struct Head(BTreeMap<String, (u64, Json)>);

impl Head {
    fn take<T: DeserializeOwned>(&mut self, key: &str) -> Result<T, Wrong> {
        let (line, value) =
            self.0.remove(key).ok_or_else(|| Wrong::Content(1, format!("the head has no key {key:?}")))?;
        serde_json::from_value(value)
            .map_err(|error| Wrong::Content(line, format!("{key} cannot be read: {error}")))
    }
}

fn read_text(mut text: impl BufRead, limits: &Limits) -> Result<Rows, Wrong> {
    let (mut head, lines) = read_head(&mut text, limits)?;
    let parameters: Vec<String> = head.take("parameters")?;
    let metrics: Vec<String> = head.take("metrics")?;
    let kinds: BTreeMap<String, String> = head.take("kinds")?;
    let constants: BTreeMap<String, String> = head.take("constants")?;
    let count: usize = head.take("rows")?;
    let mut table = csv::ReaderBuilder::new().from_reader(text);
    let at = |line: u64| lines + line;
    let header = table.headers().map_err(|error| wrong_csv(error, lines))?.clone();
    let mut places = Vec::new();
    for name in
        [POSITION, ERROR, WALL].into_iter().chain(parameters.iter().chain(&metrics).map(String::as_str))
    {
        let kind = kinds.get(name).map_or("number", String::as_str);
        let kind = Kind::ALL.into_iter().find(|(_, other)| *other == kind).map(|(kind, _)| kind);
        let kind = kind.ok_or_else(|| Wrong::Content(1, format!("the kind of {name} is unknown")))?;
        places.push(match (header.iter().position(|other| other == name), constants.get(name)) {
            (None, Some(text)) => {
                let cell = kind.read(text);
                Place::Constant(cell.ok_or_else(|| {
                    Wrong::Content(1, format!("{text:?} is no value of the constant {name}"))
                })?)
            }
            (Some(index), None) => Place::Column(index, kind),
            (found, _) => {
                let often = if found.is_some() { "twice" } else { "not" };
                return Err(Wrong::Content(at(1), format!("the column {name} is {often} there")));
            }
        });
    }
    let mut rows = Vec::new();
    let mut meter = Meter::new(limits);
    let mut record = csv::StringRecord::new();
    while table.read_record(&mut record).map_err(|error| wrong_csv(error, lines))? {
        let line = at(record.position().map_or(0, csv::Position::line));
        let over = |exceeded| Wrong::System(Exceeded { line, ..exceeded }.into());
        meter.row(places.len()).map_err(over)?;
        let mut cells = Vec::with_capacity(places.len());
        for place in &places {
            meter.text(place.bytes(&record)).map_err(over)?;
            cells.push(place.cell(&record).map_err(|found| {
                let name = if let Place::Column(index, _) = place { &header[*index] } else { "" };
                Wrong::Content(line, format!("{found:?} is no value of the column {name}"))
            })?);
        }
        let metrics = cells.split_off(3 + parameters.len());
        let parameters = cells.split_off(3);
        let Cell::Integer(position) = cells[0] else {
            return Err(Wrong::Content(line, "the row has no position".to_string()));
        };
        let error = if let Cell::Text(error) = &cells[1] { Some(error.clone()) } else { None };
        let wall_s = cells[2].number().unwrap_or(0.0);
        rows.push(Row { position, done: error.is_none(), error, wall_s, parameters, metrics });
    }
    if rows.len() != count {
        let reason = format!("there are {} rows, and the head says {count}", rows.len());
        return Err(Wrong::Content(at(1), reason));
    }
    Ok(Rows {
        name: head.take("name")?,
        text: head.take("sweep")?,
        version: head.take("version")?,
        command: head.take("command")?,
        commit: head.take("commit")?,
        planned: head.take("planned")?,
        // Files of before this was noted have none.
        digits: if head.0.contains_key("digits") { head.take("digits")? } else { None },
        parameters,
        metrics,
        rows,
    })
}

/// Reads the head, and how many lines it has.
fn read_head(text: &mut impl BufRead, limits: &Limits) -> Result<(Head, u64), Wrong> {
    let mut head = BTreeMap::new();
    let mut line = Vec::new();
    let mut number = 0;
    let mut bytes = 0;
    loop {
        if number > 0 && text.fill_buf()?.first() != Some(&b'#') {
            return Ok((Head(head), number));
        }
        number += 1;
        // The text of a sweep file stands in one line.
        bytes += read_line(text, &mut line, limits.header)? as u64;
        if bytes > limits.header {
            return Err(Wrong::System(
                Exceeded { limit: Limit::Header, most: limits.header, line: number }.into(),
            ));
        }
        let words = String::from_utf8_lossy(&line);
        let words = words.trim_end();
        if number == 1 {
            if words != FIRST {
                return Err(Wrong::Content(1, format!("it does not begin with {FIRST:?}")));
            }
            continue;
        }
        let parts = words.strip_prefix("# ").and_then(|words| words.split_once(' '));
        let (key, value) =
            parts.ok_or_else(|| Wrong::Content(number, "it is no key with its value".to_string()))?;
        let value =
            serde_json::from_str(value).map_err(|error| Wrong::Content(number, format!("{key}: {error}")))?;
        head.insert(key.to_string(), (number, value));
    }
}

fn wrong_csv(error: csv::Error, lines: u64) -> Wrong {
    let line = lines + error.position().map_or(1, csv::Position::line);
    match error.into_kind() {
        csv::ErrorKind::Io(error) => Wrong::System(error),
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            Wrong::Content(line, format!("it has {len} cells of {expected_len}"))
        }
        _ => Wrong::Content(line, "it is no row of UTF-8 text".to_string()),
    }
}

/// Where the cells of a column are.
enum Place {
    /// In the head.
    Constant(Cell),
    /// In the table.
    Column(usize, Kind),
}

impl Place {
    /// Bytes of its text in a row, at most.
    fn bytes(&self, record: &csv::StringRecord) -> usize {
        match self {
            Place::Constant(Cell::Text(text)) => text.len(),
            Place::Constant(_) | Place::Column(_, Kind::Number) => 0,
            Place::Column(index, _) => record[*index].len(),
        }
    }

    /// The cell of a row, or what stands there instead.
    fn cell(&self, record: &csv::StringRecord) -> Result<Cell, String> {
        let (index, kind) = match self {
            Place::Constant(cell) => return Ok(cell.clone()),
            Place::Column(index, kind) => (*index, *kind),
        };
        kind.read(&record[index]).ok_or_else(|| record[index].to_string())
    }
}

#[cfg(test)]
mod tests;
