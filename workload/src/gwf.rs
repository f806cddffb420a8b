//! The Grid Workload Format of the Grid Workloads Archive: 29 columns with tabs between, comments after `#`.
//!
//! It is the one classic format with a site of submission and a site of execution. Identifiers may be names;
//! they are numbered in order of appearance. Below a header with commas, lines have commas, too. [`read_opendc`] reads the
//! comma-separated seven columns that OpenDC gives the same name.

mod opendc;
mod writer;

pub use opendc::read_opendc;
pub use writer::write_trace;

pub(crate) use opendc::is_opendc_header;

use std::io::BufRead;

use scheduler::Span;

use crate::bursts;
use crate::header::{Header, KEPT_LINE};
use crate::labels::{self, Field, Labels};
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

/// Columns up to the requested processors: without them a line is no job, if no header says what there is.
const LEAST_COLUMNS: usize = 8;
/// Columns that become part of a record.
const READ_COLUMNS: usize = 18;
/// Columns that only this format has: any two beside the job tell a header.
const TELLING: [usize; 5] = [1, 2, 3, 4, 7];
/// The column of submit times, and that of run times: without them there is no job.
const NEEDED: [usize; 2] = [1, 3];
/// The columns of processors, one of which is needed.
const PROCESSORS: [usize; 2] = [4, 7];

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
            Some(_) if is_header(line) => reader.set_columns(line)?,
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

/// Whether a line names the columns; with or without a comment sign. A job alone is named by many tables.
pub(crate) fn is_header(line: &[u8]) -> bool {
    let (named, _) = names(line);
    let is_named = |column: &usize| named.iter().any(|name| name.eq_ignore_ascii_case(COLUMNS[*column]));
    named.first().is_some_and(|first| first.eq_ignore_ascii_case(COLUMNS[0]))
        && TELLING.iter().filter(|column| is_named(column)).count() >= 2
}

/// The names in a header, and whether commas are between.
fn names(line: &[u8]) -> (Vec<String>, bool) {
    let line = line.trim_ascii_start();
    let line = line.strip_prefix(b"#").unwrap_or(line).trim_ascii_start();
    let commas = line.contains(&b',') && !line.contains(&b'\t');
    (fields(line, commas).map(clean_name).collect(), commas)
}

/// Columns of a line without commas.
pub(crate) fn columns(line: &[u8]) -> usize {
    fields(line, false).count()
}

/// Fields between commas if the header has them, else between tabs if there is one, else between blanks.
fn fields(line: &[u8], commas: bool) -> impl Iterator<Item = &[u8]> {
    let tabs = !commas && line.contains(&b'\t');
    let is_between = move |&byte: &u8| match (commas, tabs) {
        (true, _) => byte == b',',
        (_, true) => byte == b'\t',
        _ => byte.is_ascii_whitespace(),
    };
    line.split(is_between).map(<[u8]>::trim_ascii).filter(move |field| commas || tabs || !field.is_empty())
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
    /// Columns that a line needs.
    least: usize,
    /// Whether commas are between the fields.
    commas: bool,
    /// Names, by the column that they are of.
    labels: [Labels; LABELS.len()],
    /// How many jobs there are.
    jobs: usize,
    /// Lines of jobs that may be parts of one.
    bursts: Vec<u64>,
    repairs: Repairs,
    previous: Span,
}

impl Table {
    fn new(file: &str) -> Table {
        Table {
            file: file.to_string(),
            places: std::array::from_fn(Some),
            least: LEAST_COLUMNS,
            commas: false,
            labels: LABELS
                .map(|fields| Labels::new(fields, if fields == SITES { 1 } else { labels::FIRST_NAME })),
            jobs: 0,
            bursts: Vec::new(),
            repairs: Repairs::default(),
            previous: Span::from_micros(i64::MIN),
        }
    }

    fn set_columns(&mut self, line: &[u8]) -> Result<(), TraceError> {
        let (named, commas) = names(line);
        self.commas = commas;
        self.places = COLUMNS.map(|column| named.iter().position(|name| name.eq_ignore_ascii_case(column)));
        let has = |column: &usize| self.places[*column].is_some();
        let lacks = NEEDED.iter().find(|column| !has(column)).map(|&column| COLUMNS[column]);
        let lacks = lacks.or((!PROCESSORS.iter().any(has)).then_some("NProcs or ReqNProcs"));
        if let Some(lacks) = lacks {
            let problem = format!("the header has no column {lacks}; add it, with -1 where unknown");
            return Err(TraceError::Structure { file: self.file.clone(), problem });
        }
        let needed = [0].iter().chain(&NEEDED).chain(&PROCESSORS);
        self.least = needed.filter_map(|&column| self.places[column]).max().unwrap_or(0) + 1;
        Ok(())
    }

    fn record(&mut self, line: &[u8], number: u64) -> Result<Record, TraceError> {
        let fields: Vec<&[u8]> = fields(line, self.commas).collect();
        if fields.len() < self.least {
            let (file, columns) = (self.file.clone(), fields.len());
            return Err(TraceError::ShortLine { file, line: number, columns, least: self.least });
        }
        let is_there = |place: &Option<usize>| place.is_some_and(|place| place < fields.len());
        if !self.places[..READ_COLUMNS].iter().all(is_there) {
            self.repairs.add(Repair::MissingColumns, number);
        }
        let mut line = Row { table: self, fields: &fields, number };
        let record = Record {
            job: line.id(0)?,
            submit: line.time(1)?,
            wait: line.unneeded_time(2),
            run_time: line.time(3)?,
            allocated: line.count(4)?,
            cpu_time: line.unneeded_time(5),
            used_memory: line.unneeded(6),
            requested: line.count(7)?,
            requested_time: line.time(8)?,
            requested_memory: line.unneeded(9),
            status: i32::try_from(line.unneeded(10)).unwrap_or(-1),
            user: line.label(11),
            group: line.label(12),
            executable: line.label(13),
            queue: line.label(14),
            partition: line.label(15),
            origin: line.label(16),
            executed: line.label(17),
            described: -1,
            preceding: -1,
            think_time: UNKNOWN_TIME,
        };
        let mut note = |seen: bool, repair| {
            if seen {
                self.repairs.add(repair, number);
            }
        };
        // What is unusual in a part of a job is not unusual in the job.
        if bursts::is_burst(&record) {
            self.bursts.push(number);
        } else {
            note(record.submit < self.previous, Repair::OutOfOrder);
            note_values(&record, &mut note);
            self.previous = record.submit;
        }
        self.jobs += 1;
        Ok(record)
    }

    fn finish(mut self, trace: &mut Trace) {
        for (fields, labels) in LABELS.into_iter().zip(self.labels) {
            let named = labels.resolve(&mut trace.records);
            if fields == SITES {
                labels::comment(&mut trace.header, &[(Field::Origin, named)]);
            }
        }
        if trace.header == Header::default() {
            self.repairs.add(Repair::MissingHeader, 1);
        }
        trace.repairs = self.repairs;
        bursts::join(trace, &self.bursts, |record, note| note_values(record, note));
    }
}

/// `OrigSiteID` and `LastRunSiteID`, whose names share one numbering from 1.
const SITES: &[Field] = &[Field::Origin, Field::Executed];
/// Fields whose names share their numbers.
const LABELS: [&[Field]; 7] = [
    &[Field::Job],
    &[Field::User],
    &[Field::Group],
    &[Field::Executable],
    &[Field::Queue],
    &[Field::Partition],
    SITES,
];

/// The labels of a column and its field in a record; `None` if it has none.
fn labels_of(column: usize) -> Option<(usize, Field)> {
    Some(match column {
        0 => (0, Field::Job),
        11 => (1, Field::User),
        12 => (2, Field::Group),
        13 => (3, Field::Executable),
        14 => (4, Field::Queue),
        15 => (5, Field::Partition),
        16 => (6, Field::Origin),
        17 => (6, Field::Executed),
        _ => return None,
    })
}

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

    /// A time that no run needs, -1 if it cannot be read.
    fn unneeded_time(&mut self, column: usize) -> Span {
        self.time(column).unwrap_or_else(|_| {
            self.table.repairs.add(Repair::FieldUnread, self.number);
            UNKNOWN_TIME
        })
    }

    /// A number that no run needs, -1 if it cannot be read.
    fn unneeded(&mut self, column: usize) -> i64 {
        self.long(column).unwrap_or_else(|_| {
            self.table.repairs.add(Repair::FieldUnread, self.number);
            -1
        })
    }

    /// A number, or a name for which one is found when all are known.
    fn id(&mut self, column: usize) -> Result<i64, TraceError> {
        match Number::parse(self.field(column)) {
            Err(NumberError::NotANumber) => Ok(self.named(column, Repair::NameNumbered)),
            _ => self.long(column),
        }
    }

    /// A number that fits a label, or a name or a larger number for which one is found when all are known.
    fn label(&mut self, column: usize) -> i32 {
        let Ok(number) = self.id(column) else {
            self.named(column, Repair::LabelNumbered);
            return -1;
        };
        i32::try_from(number).unwrap_or_else(|_| {
            self.named(column, Repair::LabelNumbered);
            -1
        })
    }

    /// Notes a label that has no number yet, and gives one that stands there until then. Names are counted once each, numbers with each job.
    fn named(&mut self, column: usize, repair: Repair) -> i64 {
        let (labels, field) = labels_of(column).expect("only columns of labels are asked for one");
        let name = self.field(column).to_vec();
        let is_new = self.table.labels[labels].add(self.table.jobs, field, &name);
        if is_new || repair == Repair::LabelNumbered {
            self.table.repairs.add(repair, self.number);
        }
        labels::FIRST_NAME
    }
}

#[cfg(test)]
#[path = "gwf/gwf_tests.rs"]
mod tests;
