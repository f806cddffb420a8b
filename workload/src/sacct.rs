//! Accounting dumps of Slurm: what `sacct` prints with `--parsable2` or `-p`, columns by name.
//!
//! A row is a job, or it is counted as left out or joined to another, see [`Repair::LINES`]. Names are numbered in order
//! of appearance and kept as comments. `docs/WORKLOADS.md` says what becomes of which column; `values` reads fields,
//! `columns` finds them, and `rows` the lines of one row.

mod columns;
mod rows;
mod values;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::io::BufRead;

use scheduler::Span;

use crate::calendar::Zone;
use crate::header::KEPT_LINE;
use crate::labels::NAMES_MOST;
use crate::limits::{Limit, Limits, read_line};
use crate::record::{Record, UNKNOWN_TIME};
use crate::repair::Repair;
use crate::swf::{NumberError, note_values};
use crate::trace::{Format, Trace, TraceError};

use columns::{Column, Columns};
use rows::{Next, Pending};
use values::{Id, Moment, Part, State};

/// Numbers of jobs that have none of their own, or one that is taken, begin above this: Slurm's end at 67,108,863.
const NUMBERS_FROM: i64 = 1_000_000_000;
/// Seconds in the unit of `TimelimitRaw`.
const MINUTE: i64 = 60;

/// Whether a line is the header of a dump.
pub(crate) fn is_header(line: &[u8]) -> bool {
    Columns::are_named(line)
}

/// Reads a whole dump. Times without a zone are in `zone`, else in that of a comment `# TimeZoneString: NAME` above the
/// header, else in UTC; they are shifted, see [`Trace::shift_epoch`].
///
/// # Errors
/// If the dump cannot be read, is over a limit, its header lacks a column, a comment names no zone, or a line is neither
/// a job nor a step of one.
pub fn read_trace(
    name: &str,
    mut text: impl BufRead,
    limits: &Limits,
    zone: Option<&Zone>,
) -> Result<Trace, TraceError> {
    let mut trace = Trace::empty(name, Format::Sacct);
    if let Some(zone) = zone {
        trace.header.set_time_zone(&zone.to_string());
    }
    let mut dump: Option<Dump> = None;
    let (mut line, mut header) = (Vec::new(), 0);
    for number in 1.. {
        let read = read_line(&mut text, &mut line, limits.line);
        if read.map_err(|cause| TraceError::reading(name, number, cause))? == 0 {
            break;
        }
        let line = line.trim_ascii();
        if line.starts_with(b"#") {
            // As many as may be comments are kept, whether they are or not.
            header += KEPT_LINE + line.len() as u64;
            if header > limits.header {
                return Err(TraceError::over(name, number, Limit::Header, limits.header));
            }
        }
        if let Some(dump) = &mut dump
            && dump.goes_on(&mut trace, line, number, limits)?
        {
            continue;
        }
        match (line.first(), &mut dump) {
            (None, _) => {}
            (Some(b'#'), _) => trace.header.push(line),
            // Dumps of several months may be in one file, each with its header.
            (Some(_), Some(dump)) if is_header(line) => {
                dump.columns = Columns::of_header(name, number, line)?;
            }
            (Some(_), Some(dump)) => dump.pending = Some(Pending::new(line, number)),
            (Some(_), none) => {
                let zone = match zone {
                    Some(zone) => zone.clone(),
                    None => zone_of(&trace)?,
                };
                *none = Some(Dump::new(Columns::of_header(name, number, line)?, zone));
            }
        }
    }
    if let Some(mut dump) = dump {
        dump.end_row(&mut trace, false, limits)?;
        dump.finish(&mut trace);
    }
    Ok(trace)
}

fn zone_of(trace: &Trace) -> Result<Zone, TraceError> {
    match Zone::of_header(&trace.header) {
        Ok(zone) => Ok(zone.unwrap_or_else(Zone::utc)),
        Err(error) => Err(TraceError::Structure { file: trace.name.clone(), problem: error.to_string() }),
    }
}

/// Columns whose values are numbered, with what comments call them.
const NAMED: [(Column, &str); 5] = [
    (Column::User, "user"),
    (Column::Account, "group"),
    (Column::Qos, "queue"),
    (Column::Partition, "partition"),
    (Column::JobName, "executable"),
];

/// The numbers of one column's names, from 1.
#[derive(Default)]
struct Names {
    numbers: BTreeMap<Vec<u8>, i32>,
}

/// A heterogeneous job.
struct Heterogeneous {
    /// Its place among the records.
    index: usize,
    /// Its components as records of their own.
    components: BTreeMap<i64, Record>,
}

/// What is remembered from line to line.
struct Dump {
    columns: Columns,
    /// The row that the next line may go on with.
    pending: Option<Pending>,
    zone: Zone,
    names: [Names; NAMED.len()],
    /// The latest record of a job or task that was submitted then.
    seen: BTreeMap<(i64, Part, Span), usize>,
    /// Jobs and tasks that have a line.
    ids: BTreeSet<(i64, Part)>,
    /// By job and submission.
    heterogeneous: BTreeMap<(i64, Span), Heterogeneous>,
    taken: BTreeSet<i64>,
    /// How many numbers were made up.
    made_up: i64,
    /// The line of each record.
    lines: Vec<u64>,
}

impl Dump {
    fn new(columns: Columns, zone: Zone) -> Dump {
        Dump {
            columns,
            pending: None,
            zone,
            names: Default::default(),
            seen: BTreeMap::new(),
            ids: BTreeSet::new(),
            heterogeneous: BTreeMap::new(),
            taken: BTreeSet::new(),
            made_up: 0,
            lines: Vec::new(),
        }
    }

    /// Whether a line goes on with the row before it, which ends if it does not.
    fn goes_on(
        &mut self,
        trace: &mut Trace,
        line: &[u8],
        number: u64,
        limits: &Limits,
    ) -> Result<bool, TraceError> {
        let Some(pending) = &mut self.pending else { return Ok(false) };
        match pending.next(&self.columns, line) {
            Next::Rest => pending.join(&trace.name, line, number, limits)?,
            Next::Comment => pending.comments.push(line.to_vec()),
            // A blank line may stand before a header, and comments before it.
            Next::Apart if line.is_empty() => {}
            Next::Apart => {
                self.end_row(trace, is_header(line), limits)?;
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Makes a job of the row that is complete. Before a header, lines behind it are comments.
    fn end_row(
        &mut self,
        trace: &mut Trace,
        is_before_header: bool,
        limits: &Limits,
    ) -> Result<(), TraceError> {
        let Some(mut pending) = self.pending.take() else { return Ok(()) };
        if is_before_header {
            std::mem::take(&mut pending.comments).iter().for_each(|comment| trace.header.push(comment));
        }
        if trace.records.len() as u64 >= limits.rows {
            return Err(TraceError::over(&trace.name, pending.line, Limit::Rows, limits.rows));
        }
        pending.end(&trace.name, limits)?;
        if pending.broken {
            trace.repairs.add(Repair::LineBreakInName, pending.line);
        }
        self.row(trace, &pending.text, pending.line)
    }

    fn row(&mut self, trace: &mut Trace, line: &[u8], number: u64) -> Result<(), TraceError> {
        let (fields, separated) = match self.columns.fields(line) {
            Ok(fields) => fields,
            Err(misfit) if misfit.columns < self.columns.count() => {
                let (file, columns) = (trace.name.clone(), misfit.columns);
                let least = self.columns.count();
                return Err(TraceError::ShortLine { file, line: number, columns, least });
            }
            Err(misfit) => {
                let problem = format!(
                    "line {number} has {} columns and the header {}; a name with | in it can only be told where one \
                     column holds names of users' choice: leave the others out",
                    misfit.columns,
                    self.columns.count()
                );
                return Err(TraceError::Structure { file: trace.name.clone(), problem });
            }
        };
        let row = Row { file: &trace.name, columns: &self.columns, fields: &fields, number };
        let (job, part) = match row.id()? {
            Id::Job(job, part) => (job, part),
            Id::Step => {
                trace.repairs.add(Repair::StepIgnored, number);
                return Ok(());
            }
            Id::ArrayRest => {
                trace.repairs.add(Repair::ArrayRestIgnored, number);
                return Ok(());
            }
        };
        if separated {
            trace.repairs.add(Repair::SeparatorInName, number);
        }
        let mut noted = Vec::new();
        let raw = row.raw_id(&mut noted);
        let mut record = row.record(&self.zone, &mut noted)?;
        number_names(&mut self.names, &row, &mut record, &mut noted)?;
        let own = raw.or((!matches!(part, Part::Task(_))).then_some(job));
        for repair in noted {
            trace.repairs.add(repair, number);
        }
        if let Part::Component(component) = part {
            if let Some(whole) = self.heterogeneous.get_mut(&(job, record.submit)) {
                match whole.components.entry(component) {
                    Entry::Vacant(entry) => {
                        entry.insert(record);
                        trace.repairs.add(Repair::ComponentJoined, number);
                    }
                    Entry::Occupied(mut entry) => {
                        if is_unfinished(entry.get()) {
                            entry.insert(record);
                        }
                        trace.repairs.add(Repair::LineRepeated, number);
                    }
                }
                return Ok(());
            }
        } else if let Some(&index) = self.seen.get(&(job, part, record.submit)) {
            let earlier = &mut trace.records[index];
            let is_same_run = earlier.wait == record.wait || is_unfinished(&record);
            if is_unfinished(earlier) || is_same_run {
                if is_unfinished(earlier) {
                    *earlier = Record { job: earlier.job, ..record };
                }
                trace.repairs.add(Repair::LineRepeated, number);
                return Ok(());
            }
        }
        let whole = if matches!(part, Part::Component(_)) { Part::Whole } else { part };
        if !self.ids.insert((job, whole)) {
            trace.repairs.add(Repair::RunAgain, number);
        }
        let index = trace.records.len();
        if let Part::Component(component) = part {
            let components = BTreeMap::from([(component, record)]);
            self.heterogeneous.insert((job, record.submit), Heterogeneous { index, components });
        } else {
            self.seen.insert((job, part, record.submit), index);
        }
        record.job = self.number_of(own, trace, number);
        trace.records.push(record);
        self.lines.push(number);
        Ok(())
    }

    /// The number of a new job: its own if it is free.
    fn number_of(&mut self, own: Option<i64>, trace: &mut Trace, line: u64) -> i64 {
        if let Some(own) = own.filter(|&own| own <= NUMBERS_FROM)
            && self.taken.insert(own)
        {
            return own;
        }
        trace.repairs.add(Repair::NameNumbered, line);
        self.made_up += 1;
        NUMBERS_FROM + self.made_up
    }

    fn finish(self, trace: &mut Trace) {
        for whole in self.heterogeneous.values() {
            trace.records[whole.index] = joined(&whole.components, trace.records[whole.index].job);
        }
        let mut previous = Span::from_micros(i64::MIN);
        for (record, &line) in trace.records.iter().zip(&self.lines) {
            let mut note = |seen: bool, repair| {
                if seen {
                    trace.repairs.add(repair, line);
                }
            };
            note(record.submit < previous, Repair::OutOfOrder);
            note(is_unfinished(record), Repair::Unfinished);
            note_values(record, &mut note);
            previous = record.submit;
        }
        trace.shift_epoch();
        if trace.header.unix_start_time.is_none() {
            trace.header.set_unix_start_time(0);
        }
        self.name_in_comments(trace);
    }

    /// Names as comments, but not those of jobs: there may be as many as jobs.
    fn name_in_comments(self, trace: &mut Trace) {
        let mut comments: Vec<(&str, String)> = Vec::new();
        for ((column, what), names) in NAMED.into_iter().zip(self.names) {
            let mut names: Vec<(i32, String)> = names
                .numbers
                .into_iter()
                .map(|(name, number)| (number, String::from_utf8_lossy(&name).into_owned()))
                .collect();
            names.sort_unstable();
            comments.extend(names.into_iter().filter_map(|(number, name)| match column {
                Column::JobName => None,
                Column::Qos => Some(("Queue", format!("{number} {name}"))),
                Column::Partition => Some(("Partition", format!("{number} {name}"))),
                _ => Some(("Note", format!("{what} {number} is {name}"))),
            }));
        }
        let length = |(key, value): &(&str, String)| KEPT_LINE as usize + key.len() + value.len();
        if comments.iter().map(length).sum::<usize>() > NAMES_MOST {
            trace.header.push_pair("Note", "names left out, there are too many for comments");
            return;
        }
        for (key, value) in comments {
            trace.header.push_pair(key, &value);
        }
    }
}

/// Gives a record the numbers of the names in its row.
fn number_names(
    names: &mut [Names; NAMED.len()],
    row: &Row<'_>,
    record: &mut Record,
    noted: &mut Vec<Repair>,
) -> Result<(), TraceError> {
    let mut numbers = [-1; NAMED.len()];
    for (place, (column, _)) in NAMED.into_iter().enumerate() {
        let column = match column {
            Column::Account if !row.columns.has(column) => Column::Group,
            Column::Qos if !row.columns.has(column) => Column::Partition,
            column => column,
        };
        let mut name = row.text(column);
        if column == Column::Partition {
            // A job that waits may name several.
            name = name.split(|&byte| byte == b',').next().unwrap_or_default();
        }
        if name.is_empty() {
            continue;
        }
        let names = &mut names[place].numbers;
        numbers[place] = match names.get(name) {
            Some(&number) => number,
            None => {
                let next = i32::try_from(names.len() + 1)
                    .map_err(|_| row.refuse(column, NumberError::TooLarge.remedy()))?;
                names.insert(name.to_vec(), next);
                noted.push(Repair::NameNumbered);
                next
            }
        };
    }
    [record.user, record.group, record.queue, record.partition, record.executable] = numbers;
    Ok(())
}

/// Whether a record is of a job that had not ended.
fn is_unfinished(record: &Record) -> bool {
    record.run_time == UNKNOWN_TIME
}

/// One job of the components of a heterogeneous one. They start together, so that it is as wide as all of them; it ends
/// with the last. All else is that of its first.
fn joined(components: &BTreeMap<i64, Record>, job: i64) -> Record {
    let mut whole = components.values().next().copied().unwrap_or_default();
    let sum = |count: fn(&Record) -> i32| {
        let known = components.values().map(count).filter(|&count| count > 0);
        known.fold(-1, |sum: i32, count| if sum < 0 { count } else { sum.saturating_add(count) })
    };
    whole.allocated = sum(|record| record.allocated);
    whole.requested = sum(|record| record.requested);
    for record in components.values() {
        whole.run_time = if is_unfinished(record) || is_unfinished(&whole) {
            UNKNOWN_TIME
        } else {
            whole.run_time.max(record.run_time)
        };
        whole.requested_time = whole.requested_time.max(record.requested_time);
    }
    Record { job, ..whole }
}

/// One line while it is taken apart.
struct Row<'a> {
    file: &'a str,
    columns: &'a Columns,
    fields: &'a [&'a [u8]],
    number: u64,
}

impl Row<'_> {
    /// What stands in a column; nothing if the dump does not have it.
    fn text(&self, column: Column) -> &[u8] {
        self.columns.place(column).and_then(|place| self.fields.get(place).copied()).unwrap_or_default()
    }

    fn refuse(&self, column: Column, problem: &'static str) -> TraceError {
        TraceError::Field {
            file: self.file.to_string(),
            line: self.number,
            field: self.columns.place(column).map_or(0, |place| place + 1),
            name: column.name(),
            value: String::from_utf8_lossy(self.text(column)).chars().take(40).collect(),
            problem,
        }
    }

    fn parse<T>(
        &self,
        column: Column,
        parse: impl FnOnce(&[u8]) -> Result<T, &'static str>,
    ) -> Result<T, TraceError> {
        parse(self.text(column)).map_err(|problem| self.refuse(column, problem))
    }

    fn id(&self) -> Result<Id, TraceError> {
        let column = if self.columns.has(Column::JobId) { Column::JobId } else { Column::JobIdRaw };
        self.parse(column, values::id)
    }

    /// The number that Slurm keeps of each job, task and component; `None` without that column.
    fn raw_id(&self, noted: &mut Vec<Repair>) -> Option<i64> {
        if !self.columns.has(Column::JobIdRaw) {
            return None;
        }
        match self.unneeded(Column::JobIdRaw, None, noted, |text| values::id(text).map(Some)) {
            Some(Id::Job(job, Part::Whole)) => Some(job),
            _ => None,
        }
    }

    /// What a column says that no run needs: a value for unknown, and a note, if it cannot be read.
    fn unneeded<T>(
        &self,
        column: Column,
        unknown: T,
        noted: &mut Vec<Repair>,
        parse: impl FnOnce(&[u8]) -> Result<T, &'static str>,
    ) -> T {
        parse(self.text(column)).unwrap_or_else(|_| {
            noted.push(Repair::FieldUnread);
            unknown
        })
    }

    fn moment(
        &self,
        column: Column,
        zone: &Zone,
        noted: &mut Vec<Repair>,
    ) -> Result<Option<Moment>, TraceError> {
        let moment = self.parse(column, |text| values::moment(text, zone))?;
        if moment.is_some_and(|moment| moment.changed) {
            noted.push(Repair::ClockChange);
        }
        Ok(moment)
    }

    /// The first of some columns that the dump has and that says a number above 0, else -1.
    fn count(&self, columns: &[Column]) -> Result<i32, TraceError> {
        for &column in columns {
            let text = self.text(column);
            if values::is_none(text) {
                continue;
            }
            let count = self.parse(column, values::count)?;
            if count > 0 {
                return Ok(count);
            }
        }
        Ok(-1)
    }

    /// A duration in its raw column, else in the other one.
    fn duration(&self, raw: Column, unit: i64, clock: Column) -> Result<Option<Span>, TraceError> {
        match self.parse(raw, |text| values::raw(text, unit))? {
            None => self.parse(clock, values::duration),
            known => Ok(known),
        }
    }

    /// The record, but for its number and names. Submission is since 1970.
    fn record(&self, zone: &Zone, noted: &mut Vec<Repair>) -> Result<Record, TraceError> {
        let state = values::state(self.text(Column::State));
        if state == State::Unknown {
            noted.push(Repair::StateUnknown);
        }
        let submit = self.moment(Column::Submit, zone, noted)?.map(|moment| moment.earlier);
        let bound = submit.unwrap_or(Span::from_micros(i64::MIN));
        let start = self.moment(Column::Start, zone, noted)?.map(|moment| moment.not_before(bound));
        let bound = start.unwrap_or(bound);
        let end = self.moment(Column::End, zone, noted)?.map(|moment| moment.not_before(bound));
        let elapsed = self.duration(Column::ElapsedRaw, 1, Column::Elapsed)?;
        let mut between = |from: Option<Span>, to: Option<Span>| {
            let span = from.zip(to).map(|(from, to)| to - from)?;
            if span < Span::ZERO {
                noted.push(Repair::TimesCrossed);
            }
            Some(span.max(Span::ZERO))
        };
        let unfinished = state == State::Unfinished || (self.columns.has(Column::End) && end.is_none());
        // A job that never started waited until it was canceled.
        let wait = between(submit, start.or(end.filter(|_| self.columns.has(Column::Start))));
        let run_time = match (unfinished, elapsed) {
            (true, _) => None,
            (false, None) if start.is_none() => Some(Span::ZERO),
            (false, None) => between(start, end),
            (false, elapsed) => elapsed,
        };
        let allocated = self.count(&[Column::AllocCpus, Column::NCpus])?;
        let requested = self.count(&[Column::ReqCpus])?;
        let processors = if allocated > 0 { allocated } else { requested };
        let nodes = self.count(&[Column::NNodes]).unwrap_or_else(|_| {
            noted.push(Repair::FieldUnread);
            -1
        });
        let used = self.unneeded(Column::TotalCpu, None, noted, values::duration);
        let requested_memory =
            self.unneeded(Column::ReqMem, -1, noted, |text| values::memory(text, processors, nodes));
        let share = |time: Span| Span::from_micros(time.as_micros() / i64::from(processors.max(1)));
        Ok(Record {
            submit: submit.unwrap_or(UNKNOWN_TIME),
            wait: wait.unwrap_or(UNKNOWN_TIME),
            run_time: run_time.unwrap_or(UNKNOWN_TIME),
            allocated,
            cpu_time: used.map_or(UNKNOWN_TIME, share),
            requested,
            requested_time: self
                .duration(Column::TimelimitRaw, MINUTE, Column::Timelimit)?
                .unwrap_or(UNKNOWN_TIME),
            requested_memory,
            status: match state {
                State::Ended(status) if !unfinished => status,
                _ => -1,
            },
            ..Record::default()
        })
    }
}

#[cfg(test)]
#[path = "sacct/sacct_tests.rs"]
mod tests;
