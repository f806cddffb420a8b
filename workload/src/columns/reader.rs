//! Reading a CSV by a map.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::io::{self, Read};
use std::rc::Rc;

use scheduler::Span;

use super::{Ending, Map, Processor, Role};
use crate::calendar::Zone;
use crate::labels::{self, FIRST_NAME, Field, Labels};
use crate::limits::{Exceeded, Limit, Limits};
use crate::record::{Record, UNKNOWN_TIME};
use crate::repair::Repair;
use crate::source::decompress;
use crate::swf::{Number, note_values};
use crate::trace::{Format, Trace, TraceError, shown};

const TIME: &str = "no time as `time` of the map has it; correct it, or the map";
const LENGTH: &str = "no length as `length` of the map has it; correct it, or the map";
const COUNT: &str = "no number; correct it, or name another column in the map";

/// Fields that are numbered, and their roles.
const LABELS: [(Role, &[Field]); 7] = [
    (Role::Job, &[Field::Job]),
    (Role::User, &[Field::User]),
    (Role::Group, &[Field::Group]),
    (Role::Executable, &[Field::Executable]),
    (Role::Queue, &[Field::Queue]),
    (Role::Partition, &[Field::Partition]),
    (Role::Site, &[Field::Origin]),
];

/// Reads a whole CSV by a map, plain or compressed. Submit times that are dates or Unix times are shifted, see
/// [`Trace::shift_epoch`].
///
/// # Errors
/// If it cannot be read, is over a limit, lacks a column that the map names, or has a job of which a needed field cannot be read.
pub fn read_trace(name: &str, bytes: impl Read, limits: &Limits, map: &Map) -> Result<Trace, TraceError> {
    let text = decompress(bytes, limits).map_err(|cause| TraceError::reading(name, 0, cause))?;
    let left = Rc::new(Cell::new(limits.line));
    let text = Metered { inner: text, left: Rc::clone(&left), most: limits.line };
    let mut table = csv::ReaderBuilder::new().delimiter(map.separator).flexible(true).from_reader(text);
    let header = table.byte_headers().map_err(|error| wrong(name, error))?.clone();
    let mut reading = Reading::new(name, map, &header)?;
    let mut row = csv::ByteRecord::new();
    loop {
        left.set(limits.line);
        if !table.read_byte_record(&mut row).map_err(|error| wrong(name, error))? {
            break;
        }
        let line = row.position().map_or(0, csv::Position::line);
        if reading.trace.records.len() as u64 >= limits.rows {
            return Err(TraceError::over(name, line, Limit::Rows, limits.rows));
        }
        row.trim();
        if row.len() < header.len() {
            let (file, columns, least) = (name.to_string(), row.len(), header.len());
            return Err(TraceError::ShortLine { file, line, columns, least });
        }
        reading.row(&row, line)?;
    }
    reading.finish()
}

/// What a reader of CSV cannot read.
fn wrong(file: &str, error: csv::Error) -> TraceError {
    let line = error.position().map_or(0, csv::Position::line);
    match error.into_kind() {
        csv::ErrorKind::Io(cause) => TraceError::reading(file, line, cause),
        other => {
            let problem = format!("no CSV: {other:?}; correct the file there");
            TraceError::Structure { file: file.to_string(), problem }
        }
    }
}

/// Text of which a row may take so much: a quote that is never closed would take it all.
struct Metered<R> {
    inner: R,
    left: Rc<Cell<u64>>,
    most: u64,
}

impl<R: Read> Read for Metered<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.left.get();
        if left == 0 {
            return Err(Exceeded { limit: Limit::Line, most: self.most, line: 0 }.into());
        }
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        let read = self.inner.read(&mut buffer[..most])?;
        self.left.set(left - read as u64);
        Ok(read)
    }
}

/// A CSV while it is read.
struct Reading<'a> {
    map: &'a Map,
    zone: Zone,
    /// Place of each role in a row.
    places: Vec<Option<usize>>,
    labels: [Labels; LABELS.len()],
    /// Numbers of jobs so far.
    taken: BTreeSet<i64>,
    previous: Span,
    trace: Trace,
}

impl<'a> Reading<'a> {
    fn new(name: &str, map: &'a Map, header: &csv::ByteRecord) -> Result<Reading<'a>, TraceError> {
        let mut places = Vec::new();
        for (role, _) in Role::ALL {
            let place = match map.column(role) {
                None => None,
                Some(column) => {
                    let found = header.iter().position(|title| title.trim_ascii() == column.name.as_bytes());
                    Some(found.ok_or_else(|| {
                        let titles: Vec<_> = header.iter().take(40).map(|title| shown(title, "").0).collect();
                        let problem = format!(
                            "there is no column {}, which the map names for {}; there are {}",
                            column.name,
                            role.name(),
                            titles.join(", ")
                        );
                        TraceError::Structure { file: name.to_string(), problem }
                    })?)
                }
            };
            places.push(place);
        }
        let mut trace = Trace::empty(name, Format::Csv);
        if let Some(computer) = &map.computer {
            trace.header.push_pair("Computer", computer);
        }
        if let Some(processors) = map.processors {
            trace.header.push_pair("MaxProcs", &processors.to_string());
        }
        let processor = match map.processor {
            Processor::Core => "core",
            Processor::Gpu => "GPU",
            Processor::Node => "node",
        };
        trace.header.push_pair("Note", &format!("a processor is a {processor}"));
        if let Some(zone) = &map.zone {
            trace.header.set_time_zone(&zone.to_string());
        }
        Ok(Reading {
            map,
            zone: map.zone.clone().unwrap_or_else(Zone::utc),
            places,
            labels: LABELS
                .map(|(role, fields)| Labels::new(fields, if role == Role::Site { 1 } else { FIRST_NAME })),
            taken: BTreeSet::new(),
            previous: Span::from_micros(i64::MIN),
            trace,
        })
    }

    fn row(&mut self, row: &csv::ByteRecord, line: u64) -> Result<(), TraceError> {
        let map = self.map;
        let mut noted: Vec<Repair> = Vec::new();
        let field = |role: Role| {
            let field = self.places[role as usize].and_then(|place| row.get(place));
            field.filter(|field| !map.is_none(field))
        };
        let refuse = |role: Role, problem: &'static str| {
            let (value, problem) = shown(field(role).unwrap_or_default(), problem);
            let place = self.places[role as usize].map_or(0, |place| place + 1);
            TraceError::Field {
                file: self.trace.name.clone(),
                line,
                field: place,
                name: role.name(),
                value,
                problem,
            }
        };
        let mut moment = |role: Role| -> Result<Option<Span>, TraceError> {
            let (Some(column), Some(text)) = (map.column(role), field(role)) else { return Ok(None) };
            let (time, changed) = column.moment.read(text, &self.zone).ok_or_else(|| refuse(role, TIME))?;
            if changed {
                noted.push(Repair::ClockChange);
            }
            Ok(Some(time))
        };
        let (submit, start, end) = (moment(Role::Submit)?, moment(Role::Start)?, moment(Role::End)?);
        let length = |role: Role| -> Result<Option<Span>, TraceError> {
            let (Some(column), Some(text)) = (map.column(role), field(role)) else { return Ok(None) };
            let length = column.length.read(text).ok_or_else(|| refuse(role, LENGTH))?;
            Ok(Some(length).filter(|&length| length >= Span::ZERO))
        };
        let mut between = |from: Option<Span>, to: Option<Span>| {
            let span = from.zip(to).map(|(from, to)| to - from)?;
            if span < Span::ZERO {
                noted.push(Repair::TimesCrossed);
            }
            Some(span.max(Span::ZERO))
        };
        let wait = between(submit, start);
        let run_time = match length(Role::RunTime)? {
            None => between(start, end),
            known => known,
        };
        let mut count = |role: Role| -> Result<i32, TraceError> {
            let (Some(column), Some(text)) = (map.column(role), field(role)) else { return Ok(-1) };
            let millionths =
                Number::parse(text).and_then(Number::seconds).map_err(|_| refuse(role, COUNT))?.as_micros();
            let whole = i64::from(column.divide) * 1_000_000;
            if millionths > 0 && millionths % whole > 0 {
                noted.push(Repair::RoundedUp);
            }
            if millionths < 0 {
                return Ok(-1);
            }
            let count = millionths / whole + i64::from(millionths % whole > 0);
            i32::try_from(count).map_err(|_| refuse(role, COUNT))
        };
        let both = count(Role::Processors)?;
        let (allocated, requested) = (count(Role::Allocated)?, count(Role::Requested)?);
        let ending = field(Role::State)
            .map(|state| std::str::from_utf8(state).ok().and_then(|state| map.states.get(state)).copied());
        let status = match ending {
            Some(Some(Ending::Completed)) => 1,
            Some(Some(Ending::Failed)) => 0,
            Some(Some(Ending::Canceled)) => 5,
            Some(Some(Ending::Unfinished)) => -1,
            Some(None) => {
                noted.push(Repair::StateUnknown);
                -1
            }
            None => -1,
        };
        let is_unfinished = ending == Some(Some(Ending::Unfinished));
        if is_unfinished {
            noted.push(Repair::Unfinished);
        }
        let mut record = Record {
            submit: submit.unwrap_or(UNKNOWN_TIME),
            wait: wait.unwrap_or(UNKNOWN_TIME),
            run_time: run_time.filter(|_| !is_unfinished).unwrap_or(UNKNOWN_TIME),
            allocated: if allocated > 0 { allocated } else { both },
            requested: if requested > 0 { requested } else { both },
            requested_time: length(Role::RequestedTime)?.unwrap_or(UNKNOWN_TIME),
            status,
            ..Record::default()
        };
        let labels = LABELS.map(|(role, _)| field(role));
        self.label(&mut record, labels, line);
        for repair in noted {
            self.trace.repairs.add(repair, line);
        }
        let mut note = |seen: bool, repair| {
            if seen {
                self.trace.repairs.add(repair, line);
            }
        };
        note(record.submit < self.previous, Repair::OutOfOrder);
        note_values(&record, &mut note);
        self.previous = record.submit;
        self.trace.records.push(record);
        Ok(())
    }

    /// Gives a record its labels: numbers as they are, names and what is taken when all are known.
    fn label(&mut self, record: &mut Record, labels: [Option<&[u8]>; LABELS.len()], line: u64) {
        let index = self.trace.records.len();
        for ((place, (role, fields)), label) in LABELS.into_iter().enumerate().zip(labels) {
            let number = label.and_then(|label| std::str::from_utf8(label).ok()?.parse::<i64>().ok());
            let (least, most) = match role {
                Role::Job => (1, i64::MAX),
                Role::Site => (1, i64::from(i32::MAX)),
                _ => (0, i64::from(i32::MAX)),
            };
            let number = number.filter(|number| (least..=most).contains(number));
            // Without a column of jobs, rows are counted.
            let is_counted = role == Role::Job && self.places[Role::Job as usize].is_none();
            let number = if is_counted { Some(index as i64 + 1) } else { number };
            let number = number.filter(|&number| role != Role::Job || self.taken.insert(number));
            match (number, label) {
                (Some(number), _) => fields[0].set(record, number),
                (None, _) if role == Role::Job => {
                    // One name a row: jobs of two clusters may have one number, or even one name.
                    self.labels[place].add(index, fields[0], index.to_string().as_bytes());
                    fields[0].set(record, FIRST_NAME);
                    self.trace.repairs.add(Repair::NameNumbered, line);
                }
                (None, Some(label)) if self.labels[place].add(index, fields[0], label) => {
                    self.trace.repairs.add(Repair::NameNumbered, line);
                }
                (None, _) => {}
            }
        }
    }

    fn finish(self) -> Result<Trace, TraceError> {
        let mut trace = self.trace;
        if trace.records.is_empty() {
            let problem = "there is no job in it; is it a workload trace?".to_string();
            return Err(TraceError::Structure { file: trace.name, problem });
        }
        let mut named = Vec::new();
        for ((role, fields), labels) in LABELS.into_iter().zip(self.labels) {
            let names = labels.resolve(&mut trace.records);
            // There may be as many names of programs as jobs.
            if !matches!(role, Role::Job | Role::Executable) {
                named.push((fields[0], names));
            }
        }
        for record in &mut trace.records {
            record.executed = record.origin;
        }
        labels::comment(&mut trace.header, &named);
        trace.shift_epoch();
        Ok(trace)
    }
}
