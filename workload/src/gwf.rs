//! The Grid Workload Format of the Grid Workloads Archive: 29 columns with tabs between, comments after `#`.
//!
//! It is the one classic format with a site of submission and a site of execution. Identifiers may be names;
//! they are numbered in order of appearance. [`read_opendc`] reads the comma-separated seven columns that
//! OpenDC gives the same name.

mod opendc;
mod writer;

pub use opendc::read_opendc;
pub use writer::write_trace;

pub(crate) use opendc::is_opendc_header;

use std::collections::BTreeMap;
use std::io::BufRead;

use scheduler::Span;

use crate::header::{Header, KEPT_LINE};
use crate::limits::{Limit, Limits, read_line};
use crate::record::{Record, UNKNOWN_TIME};
use crate::repair::{Repair, Repairs};
use crate::swf::{Number, NumberError, note_values};
use crate::trace::{Format, Trace, TraceError, shown};

/// The columns in the order of the format.
pub const COLUMNS: [&str; 29] = [
    "JobID",
    "SubmitTime",
    "WaitTime",
    "RunTime",
    "NProcs",
    "AverageCPUTimeUsed",
    "UsedMemory",
    "ReqNProcs",
    "ReqTime",
    "ReqMemory",
    "Status",
    "UserID",
    "GroupID",
    "ExecutableID",
    "QueueID",
    "PartitionID",
    "OrigSiteID",
    "LastRunSiteID",
    "JobStructure",
    "JobStructureParams",
    "UsedNetwork",
    "UsedLocalDiskSpace",
    "UsedResources",
    "ReqPlatform",
    "ReqNetwork",
    "ReqLocalDiskSpace",
    "ReqResources",
    "VOID",
    "ProjectID",
];

/// Names of things other than sites are numbered from here; above the numbers of the archive's logs, so that
/// a column that mixes both stays apart.
const FIRST_NAME: i64 = 1_000_001;
/// Columns up to the requested processors: without them a line is no job.
const LEAST_COLUMNS: usize = 8;

/// Reads a whole log. Submit times that are Unix times are shifted, see [`Trace::shift_epoch`].
///
/// # Errors
/// If the log cannot be read, is over a limit, or a line is not a job.
pub fn read_trace(name: &str, mut text: impl BufRead, limits: &Limits) -> Result<Trace, TraceError> {
    let mut reader = Table::new(name);
    let mut trace = Trace::empty(name, Format::Gwf);
    let (mut line, mut header) = (Vec::new(), 0);
    for number in 1.. {
        let read = read_line(&mut text, &mut line, limits.line);
        if read.map_err(|cause| TraceError::reading(name, number, cause))? == 0 {
            break;
        }
        let line = line.trim_ascii_end();
        match line.trim_ascii_start().first() {
            None => {}
            Some(_) if is_header(line) => reader.set_columns(line),
            Some(b'#' | b';') => {
                header += KEPT_LINE + line.len() as u64;
                if header > limits.header {
                    return Err(TraceError::over(name, number, Limit::Header, limits.header));
                }
                trace.header.push(line);
            }
            Some(_) if trace.records.len() as u64 >= limits.rows => {
                return Err(TraceError::over(name, number, Limit::Rows, limits.rows));
            }
            Some(_) => trace.records.push(reader.record(line, number)?),
        }
    }
    reader.finish(&mut trace);
    trace.shift_epoch();
    Ok(trace)
}

/// Whether a line names the columns; with or without a comment sign.
pub(crate) fn is_header(line: &[u8]) -> bool {
    let line = line.trim_ascii_start();
    let line = line.strip_prefix(b"#").unwrap_or(line);
    fields(line).next().is_some_and(|first| clean_name(first).eq_ignore_ascii_case(COLUMNS[0]))
}

/// Columns of a line.
pub(crate) fn columns(line: &[u8]) -> usize {
    fields(line).count()
}

/// Fields between tabs if there is one, else between blanks.
fn fields(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let tabs = line.contains(&b'\t');
    line.split(move |&byte| if tabs { byte == b'\t' } else { byte.is_ascii_whitespace() })
        .map(<[u8]>::trim_ascii)
        .filter(move |field| tabs || !field.is_empty())
}

/// A column name without what published headers add to it, as in `ReqTime:`.
fn clean_name(field: &[u8]) -> String {
    String::from_utf8_lossy(field).chars().filter(char::is_ascii_alphanumeric).collect()
}

/// Turns lines into records, and remembers names.
struct Table {
    file: String,
    /// Place in the line of each of [`COLUMNS`].
    places: [Option<usize>; COLUMNS.len()],
    names: BTreeMap<(usize, Vec<u8>), i64>,
    /// How many names each column has.
    named: [i64; COLUMNS.len()],
    repairs: Repairs,
    previous: Span,
}

impl Table {
    fn new(file: &str) -> Table {
        Table {
            file: file.to_string(),
            places: std::array::from_fn(Some),
            names: BTreeMap::new(),
            named: [0; COLUMNS.len()],
            repairs: Repairs::default(),
            previous: Span::from_micros(i64::MIN),
        }
    }

    fn set_columns(&mut self, line: &[u8]) {
        let line = line.trim_ascii_start();
        let line = line.strip_prefix(b"#").unwrap_or(line).trim_ascii_start();
        let named: Vec<String> = fields(line).map(clean_name).collect();
        self.places = COLUMNS.map(|column| named.iter().position(|name| name.eq_ignore_ascii_case(column)));
    }

    fn record(&mut self, line: &[u8], number: u64) -> Result<Record, TraceError> {
        let fields: Vec<&[u8]> = fields(line).collect();
        if fields.len() < LEAST_COLUMNS {
            let (file, columns) = (self.file.clone(), fields.len());
            return Err(TraceError::ShortLine { file, line: number, columns, least: LEAST_COLUMNS });
        }
        let mut line = Row { table: self, fields: &fields, number };
        let record = Record {
            job: line.id(0)?,
            submit: line.time(1)?,
            wait: line.time(2)?,
            run_time: line.time(3)?,
            allocated: line.count(4)?,
            cpu_time: line.time(5)?,
            used_memory: line.long(6)?,
            requested: line.count(7)?,
            requested_time: line.time(8)?,
            requested_memory: line.long(9)?,
            status: line.short_id(10)?,
            user: line.short_id(11)?,
            group: line.short_id(12)?,
            executable: line.short_id(13)?,
            queue: line.short_id(14)?,
            partition: line.short_id(15)?,
            origin: line.short_id(SITE_COLUMNS[0])?,
            executed: line.short_id(SITE_COLUMNS[1])?,
            preceding: -1,
            think_time: UNKNOWN_TIME,
        };
        let mut note = |seen: bool, repair| {
            if seen {
                self.repairs.add(repair, number);
            }
        };
        note(record.submit < self.previous, Repair::OutOfOrder);
        note_values(&record, &mut note);
        self.previous = record.submit;
        Ok(record)
    }

    fn finish(mut self, trace: &mut Trace) {
        let mut sites: Vec<(i64, String)> = Vec::new();
        for ((column, name), number) in self.names {
            if column == SITE_COLUMNS[0] {
                sites.push((number, String::from_utf8_lossy(&name).into_owned()));
            }
        }
        sites.sort_unstable();
        for (number, name) in sites {
            trace.header.push_pair("Note", &format!("site {number} is {name}"));
        }
        if trace.header == Header::default() {
            self.repairs.add(Repair::MissingHeader, 1);
        }
        trace.repairs = self.repairs;
    }
}

/// `OrigSiteID` and `LastRunSiteID`, whose names share one numbering from 1.
const SITE_COLUMNS: [usize; 2] = [16, 17];

/// One line while it is taken apart.
struct Row<'a> {
    table: &'a mut Table,
    fields: &'a [&'a [u8]],
    number: u64,
}

impl Row<'_> {
    fn field(&self, column: usize) -> &[u8] {
        let field = self.table.places[column].and_then(|place| self.fields.get(place).copied());
        field.filter(|field| !field.is_empty()).unwrap_or(b"-1")
    }

    fn refuse(&self, column: usize, error: NumberError) -> TraceError {
        let (value, problem) = shown(self.field(column), error.remedy());
        TraceError::Field {
            file: self.table.file.clone(),
            line: self.number,
            field: self.table.places[column].map_or(0, |place| place + 1),
            name: COLUMNS[column],
            value,
            problem,
        }
    }

    fn time(&self, column: usize) -> Result<Span, TraceError> {
        let time = Number::parse(self.field(column)).and_then(Number::seconds);
        time.map_err(|error| self.refuse(column, error))
    }

    fn long(&mut self, column: usize) -> Result<i64, TraceError> {
        let parsed = Number::parse(self.field(column));
        let (whole, fraction) = parsed.map_err(|error| self.refuse(column, error))?.whole();
        if fraction {
            self.table.repairs.add(Repair::FractionDropped, self.number);
        }
        Ok(whole)
    }

    fn count(&mut self, column: usize) -> Result<i32, TraceError> {
        let whole = self.long(column)?;
        i32::try_from(whole).map_err(|_| self.refuse(column, NumberError::TooLarge))
    }

    /// A number, or a name that stands for one.
    fn id(&mut self, column: usize) -> Result<i64, TraceError> {
        if Number::parse(self.field(column)) != Err(NumberError::NotANumber) {
            return self.long(column);
        }
        let is_site = SITE_COLUMNS.contains(&column);
        let column_of_names = if is_site { SITE_COLUMNS[0] } else { column };
        let key = (column_of_names, self.field(column).to_vec());
        if let Some(&number) = self.table.names.get(&key) {
            return Ok(number);
        }
        self.table.repairs.add(Repair::NameNumbered, self.number);
        let number = self.table.named[column_of_names] + if is_site { 1 } else { FIRST_NAME };
        self.table.named[column_of_names] += 1;
        self.table.names.insert(key, number);
        Ok(number)
    }

    fn short_id(&mut self, column: usize) -> Result<i32, TraceError> {
        let id = self.id(column)?;
        i32::try_from(id).map_err(|_| self.refuse(column, NumberError::TooLarge))
    }
}

#[cfg(test)]
#[path = "gwf/gwf_tests.rs"]
mod tests;
