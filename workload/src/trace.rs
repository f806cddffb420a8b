//! A whole log in memory, and why a file may not become one.

use std::io;

use scheduler::Span;

use crate::header::Header;
use crate::limits::{Exceeded, Limit};
use crate::record::Record;
use crate::repair::{Repair, Repairs};

/// A submit time from here on is a Unix time: no log covers the 15 years that this many seconds are, and
/// every log with Unix times is later than November 1985.
const EPOCH_FROM: Span = Span::from_secs(500_000_000);

/// Letters of a wrong field that are shown: enough to find it.
const SHOWN: usize = 40;

/// A wrong field as it can be shown on a terminal, whatever is in it, and what helps.
pub(crate) fn shown(field: &[u8], remedy: &'static str) -> (String, &'static str) {
    match std::str::from_utf8(field) {
        Ok(text) if !text.contains(char::is_control) => (text.chars().take(SHOWN).collect(), remedy),
        _ => {
            let escaped = field.escape_ascii().to_string().chars().take(SHOWN).collect();
            (escaped, "no text; name a log, as text or compressed by gzip or zstd")
        }
    }
}

/// The formats that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// Standard Workload Format: 18 columns of numbers.
    Swf,
    /// Grid Workload Format of the Grid Workloads Archive: 29 columns.
    Gwf,
    /// The seven comma-separated columns that OpenDC calls GWF.
    OpenDc,
    /// Batsim's JSON workload.
    Batsim,
    /// What Slurm's `sacct` prints with `--parsable2` or `-p`: named columns with `|` between.
    Sacct,
    /// CSV of any columns, by a map.
    Csv,
}

impl std::fmt::Display for Format {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Format::Swf => "swf",
            Format::Gwf => "gwf",
            Format::OpenDc => "opendc",
            Format::Batsim => "batsim",
            Format::Sacct => "sacct",
            Format::Csv => "csv",
        })
    }
}

/// A log in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// The file's name, for messages.
    pub name: String,
    /// The format it was read from.
    pub format: Format,
    /// What its comments say.
    pub header: Header,
    /// Its jobs in file order.
    pub records: Vec<Record>,
    /// What was not as it should be.
    pub repairs: Repairs,
}

impl Trace {
    /// An empty trace of a name and format.
    pub fn empty(name: impl Into<String>, format: Format) -> Trace {
        Trace {
            name: name.into(),
            format,
            header: Header::default(),
            records: Vec::new(),
            repairs: Repairs::default(),
        }
    }

    /// Shifts submit times that are Unix times, so that they count from the start of the log: by
    /// `UnixStartTime` if it explains them, else by the earliest submission. The shift is counted, and
    /// `header.unix_start_time` says afterwards what time 0 is.
    pub fn shift_epoch(&mut self) {
        let known = |submit: &Span| *submit >= Span::ZERO;
        let Some(earliest) = self.records.iter().map(|record| record.submit).filter(known).min() else {
            return;
        };
        if earliest < EPOCH_FROM {
            return;
        }
        let declared = self.header.unix_start_time.map(Span::from_secs);
        let start = declared
            .filter(|&start| start >= EPOCH_FROM && start <= earliest)
            .unwrap_or(Span::from_secs(earliest.as_micros().div_euclid(1_000_000)));
        for record in &mut self.records {
            if known(&record.submit) {
                record.submit -= start;
            }
        }
        self.header.set_unix_start_time(start.as_micros() / 1_000_000);
        self.repairs.add(Repair::EpochShifted, 1);
    }

    /// The share of the work, by allocated processors where they are known, of jobs whose requested ones differ. 0 without work.
    pub fn differing_work(&self) -> f64 {
        let differs = |record: &&Record| {
            record.allocated > 0 && record.requested > 0 && record.allocated != record.requested
        };
        let work: f64 = self.records.iter().map(Record::work).sum();
        let differing: f64 = self.records.iter().filter(differs).map(Record::work).sum();
        if work > 0.0 { differing / work } else { 0.0 }
    }

    /// The widest job's processors, 0 if none is known.
    pub fn widest_job(&self) -> u32 {
        self.records.iter().filter_map(Record::processors).max().unwrap_or(0)
    }

    /// Processors of the machine by the header, else the widest job's.
    pub fn processors(&self) -> u32 {
        self.header.processors().unwrap_or_else(|| self.widest_job())
    }
}

/// Why a file is not a trace. Reads after "failed to".
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file cannot be opened, read or decompressed.
    #[error("read trace {file}: {cause}; check the path, and that the file is complete")]
    Io {
        /// Name of the file.
        file: String,
        /// What the system said.
        cause: io::Error,
    },
    /// It costs more than a file may, unless somebody says so.
    #[error("read trace {file}: {exceeded}")]
    Limit {
        /// Name of the file.
        file: String,
        /// Which limit it is over, and where.
        exceeded: Exceeded,
    },
    /// A field is not a number of its kind.
    #[error("read trace {file}: line {line}: field {field} ({name}) is `{value}`: {problem}")]
    Field {
        /// Name of the file.
        file: String,
        /// Line, from 1.
        line: u64,
        /// Column, from 1.
        field: usize,
        /// What the column holds.
        name: &'static str,
        /// What stands there.
        value: String,
        /// What is wrong and what helps.
        problem: &'static str,
    },
    /// A line has too few columns to be a job.
    #[error(
        "read trace {file}: line {line} has {columns} columns, at least {least} are needed; \
         complete or remove the line (the file may be cut short)"
    )]
    ShortLine {
        /// Name of the file.
        file: String,
        /// Line, from 1.
        line: u64,
        /// How many columns the line has.
        columns: usize,
        /// How many columns a job needs.
        least: usize,
    },
    /// The file's structure is not that of its format.
    #[error("read trace {file}: {problem}")]
    Structure {
        /// Name of the file.
        file: String,
        /// What is wrong and what helps.
        problem: String,
    },
}

impl TraceError {
    /// What went wrong when a line was read, 0 if that is not known.
    pub(crate) fn reading(file: &str, line: u64, cause: io::Error) -> TraceError {
        let file = file.to_string();
        match Exceeded::of(&cause) {
            Some(exceeded) => TraceError::Limit { file, exceeded: Exceeded { line, ..exceeded } },
            None => TraceError::Io { file, cause },
        }
    }

    /// Too much of something was kept when a line was read.
    pub(crate) fn over(file: &str, line: u64, limit: Limit, most: u64) -> TraceError {
        TraceError::Limit { file: file.to_string(), exceeded: Exceeded { limit, most, line } }
    }
}
