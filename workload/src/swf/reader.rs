//! The streaming reader: one record at a time from any buffered reader, with the header on the side.
//!
//! It keeps one line in memory, up to a limit, and the comments, up to another. It accepts what real logs contain and counts it; it
//! refuses only a line of which a number cannot be read that a run needs.

use std::io::BufRead;

use scheduler::Span;

use super::descriptor;
use super::number::{Number, NumberError};
use super::{COLUMNS, FIELDS};
use crate::bursts;
use crate::header::{Header, KEPT_LINE};
use crate::limits::{Limit, Limits, read_line};
use crate::record::{Record, UNKNOWN_TIME};
use crate::repair::{Repair, Repairs};
use crate::trace::{TraceError, shown};

/// Columns up to the requested time: without them a line says too little to be a job, and a log cut short
/// in its last line would pass unseen.
const LEAST_COLUMNS: usize = 9;

/// Columns without which there is no job to run, from 0: its number, submit time, run time, processors and requested time.
const NEEDED: [usize; 6] = [0, 1, 3, 4, 7, 8];
/// The column of a size descriptor, from 0, in logs that have more than the format.
const DESCRIPTOR: usize = 20;
/// Columns that records only tell apart, from 0: user, group, executable, queue, partition.
const LABELS: std::ops::Range<usize> = 11..16;

/// An iterator over the records of a log.
///
/// Lines are delivered as they are: with Unix times, bursts of jobs, and -1 for labels that are too large.
/// [`crate::swf::read_trace`] shifts the first, joins the second and numbers the third.
pub struct Reader<R> {
    name: String,
    text: R,
    line: Vec<u8>,
    line_number: u64,
    limits: Limits,
    /// Bytes of the header so far.
    header_bytes: u64,
    header: Header,
    repairs: Repairs,
    /// Submit time of the record before, to see whether the log is sorted.
    previous: Span,
    /// Labels of the latest record that its fields cannot hold, with their place among the labels.
    labels: Vec<(usize, Vec<u8>)>,
    done: bool,
}

impl<R: BufRead> Reader<R> {
    /// A reader of plain text. `name` stands in messages.
    pub fn new(name: impl Into<String>, text: R) -> Self {
        Reader {
            name: name.into(),
            text,
            line: Vec::with_capacity(256),
            line_number: 0,
            limits: Limits::default(),
            header_bytes: 0,
            header: Header::default(),
            repairs: Repairs::default(),
            previous: Span::from_micros(i64::MIN),
            labels: Vec::new(),
            done: false,
        }
    }

    /// Keeps other limits on lines and comments.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// The line that was read last, from 1.
    pub fn line_number(&self) -> u64 {
        self.line_number
    }

    /// Labels of the record that came last which its fields cannot hold, with their place from the user on. Each once.
    pub(crate) fn take_labels(&mut self) -> Vec<(usize, Vec<u8>)> {
        std::mem::take(&mut self.labels)
    }

    /// The comments met so far: all of a usual log's once the first record is out.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// What was not as it should be so far.
    pub fn repairs(&self) -> &Repairs {
        &self.repairs
    }

    /// Header and repairs, once the records are out.
    pub fn into_parts(self) -> (Header, Repairs) {
        (self.header, self.repairs)
    }

    fn advance(&mut self) -> Result<Option<Record>, TraceError> {
        loop {
            let read = read_line(&mut self.text, &mut self.line, self.limits.line);
            self.line_number += 1;
            if read.map_err(|cause| TraceError::reading(&self.name, self.line_number, cause))? == 0 {
                return Ok(None);
            }
            let end =
                self.line.iter().rposition(|&byte| byte != b'\n' && byte != b'\r').map_or(0, |at| at + 1);
            let line = &self.line[..end];
            match line.trim_ascii_start().first() {
                None => {}
                Some(b';' | b'#') => {
                    self.header_bytes += KEPT_LINE + line.len() as u64;
                    if self.header_bytes > self.limits.header {
                        let most = self.limits.header;
                        return Err(TraceError::over(&self.name, self.line_number, Limit::Header, most));
                    }
                    self.header.push(line);
                }
                Some(_) => {
                    let numbers = split(line).map_err(|problem| self.refuse(problem))?;
                    return self.record(numbers, end).map(Some);
                }
            }
        }
    }

    /// The record of these numbers, which stand in the line up to `end`.
    fn record(&mut self, mut line: Line, end: usize) -> Result<Record, TraceError> {
        let mut fraction = false;
        let mut record = line.record(&mut fraction).map_err(|problem| self.refuse(problem))?;
        if let Some(nodes) = descriptor::nodes(&self.line[line.descriptor.clone()]) {
            record.described = nodes;
        }
        for index in std::mem::take(&mut line.unread) {
            if LABELS.contains(&index) {
                let label = fields(&self.line[..end]).nth(index).unwrap_or_default().to_vec();
                self.labels.push((index - LABELS.start, label));
                self.repairs.add(Repair::LabelNumbered, self.line_number);
            } else {
                self.repairs.add(Repair::FieldUnread, self.line_number);
            }
        }
        let mut note = |seen: bool, repair| {
            if seen {
                self.repairs.add(repair, self.line_number);
            }
        };
        note(fraction, Repair::FractionDropped);
        note(line.columns > COLUMNS, Repair::ExtraColumns);
        note(line.columns < COLUMNS, Repair::MissingColumns);
        // What is unusual in a part of a job is not unusual in the job.
        if !bursts::is_burst(&record) {
            note(record.submit < self.previous, Repair::OutOfOrder);
            note_values(&record, &mut note);
            self.previous = record.submit;
        }
        Ok(record)
    }

    #[cold]
    fn refuse(&self, problem: Problem) -> TraceError {
        let (file, line) = (self.name.clone(), self.line_number);
        match problem {
            Problem::Short { columns } => TraceError::ShortLine { file, line, columns, least: LEAST_COLUMNS },
            Problem::Field { index, error } => {
                let field = fields(&self.line).nth(index).unwrap_or_default();
                let (value, problem) = shown(field, error.remedy());
                TraceError::Field { file, line, field: index + 1, name: FIELDS[index], value, problem }
            }
        }
    }
}

impl<R: BufRead> Iterator for Reader<R> {
    type Item = Result<Record, TraceError>;

    /// The next record; nothing more after an error.
    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let next = self.advance().transpose();
        self.done = !matches!(next, Some(Ok(_)));
        next
    }
}

/// Notes what is unusual in the values of a record, whatever format it came from.
pub(crate) fn note_values(record: &Record, note: &mut (impl FnMut(bool, Repair) + ?Sized)) {
    let (allocated, requested) = (record.allocated > 0, record.requested > 0);
    note(record.submit < Span::ZERO, Repair::NegativeSubmit);
    note(record.job < 1, Repair::BadJobNumber);
    note(record.run_time < Span::ZERO, Repair::MissingRunTime);
    note(record.run_time == Span::ZERO, Repair::ZeroRunTime);
    note(!allocated && !requested, Repair::MissingProcessors);
    note(allocated && !requested, Repair::OnlyAllocated);
    note(!allocated && requested, Repair::OnlyRequested);
    note(allocated && requested && record.allocated != record.requested, Repair::ProcessorsDiffer);
    note(record.requested_time <= Span::ZERO, Repair::MissingEstimate);
    note(
        record.requested_time > Span::ZERO && record.run_time > record.requested_time,
        Repair::RanPastEstimate,
    );
}

enum Problem {
    Short { columns: usize },
    Field { index: usize, error: NumberError },
}

/// The numbers of one line.
struct Line {
    numbers: [Number; COLUMNS],
    columns: usize,
    /// Columns whose field is no number that they hold, and that no run needs.
    unread: Vec<usize>,
    /// Where the size descriptor stands, if there is a field for it.
    descriptor: std::ops::Range<usize>,
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

fn fields(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|&byte| is_blank(byte)).filter(|field| !field.is_empty())
}

fn split(line: &[u8]) -> Result<Line, Problem> {
    let unknown = Number::parse(b"-1").expect("-1 is a number");
    let mut numbers = [unknown; COLUMNS];
    let mut columns = 0;
    let mut unread = Vec::new();
    let mut descriptor = 0..0;
    let mut at = 0;
    loop {
        while at < line.len() && is_blank(line[at]) {
            at += 1;
        }
        if at == line.len() {
            break;
        }
        let start = at;
        while at < line.len() && !is_blank(line[at]) {
            at += 1;
        }
        if columns < COLUMNS {
            let index = columns;
            match Number::parse(&line[start..at]) {
                Ok(number) => numbers[index] = number,
                Err(error) if NEEDED.contains(&index) => return Err(Problem::Field { index, error }),
                Err(_) => unread.push(index),
            }
        }
        if columns == DESCRIPTOR {
            descriptor = start..at;
        }
        columns += 1;
    }
    if columns < LEAST_COLUMNS {
        return Err(Problem::Short { columns });
    }
    Ok(Line { numbers, columns, unread, descriptor })
}

impl Line {
    fn record(&mut self, fraction: &mut bool) -> Result<Record, Problem> {
        let Line { numbers, unread, .. } = self;
        let mut long = |index: usize| {
            let (whole, had_fraction) = numbers[index].whole();
            *fraction |= had_fraction;
            whole
        };
        let (job, used_memory, requested_memory, preceding) = (long(0), long(6), long(9), long(16));
        let unread = std::cell::RefCell::new(unread);
        let unknown = |index: usize| match NEEDED.contains(&index) {
            true => Err(Problem::Field { index, error: NumberError::TooLarge }),
            false => {
                unread.borrow_mut().push(index);
                Ok(())
            }
        };
        let span = |index: usize| match numbers[index].seconds() {
            Ok(span) => Ok(span),
            Err(_) => unknown(index).map(|()| UNKNOWN_TIME),
        };
        let mut short = |index: usize| match i32::try_from(long(index)) {
            Ok(count) => Ok(count),
            Err(_) => unknown(index).map(|()| -1),
        };
        Ok(Record {
            job,
            submit: span(1)?,
            wait: span(2)?,
            run_time: span(3)?,
            cpu_time: span(5)?,
            requested_time: span(8)?,
            think_time: span(17)?,
            used_memory,
            requested_memory,
            preceding,
            allocated: short(4)?,
            requested: short(7)?,
            status: short(10)?,
            user: short(11)?,
            group: short(12)?,
            executable: short(13)?,
            queue: short(14)?,
            partition: short(15)?,
            described: -1,
            origin: -1,
            executed: -1,
        })
    }
}

#[cfg(test)]
#[path = "reader_tests.rs"]
mod tests;
