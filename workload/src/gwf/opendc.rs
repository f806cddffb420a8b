//! OpenDC's comma-separated workflow traces: seven named columns, the last one for dependencies.
//!
//! Dependencies are counted and ignored: the jobs here are independent.

use std::io::BufRead;

use crate::limits::{Limit, Limits, read_line};
use crate::record::Record;
use crate::repair::Repair;
use crate::swf::{Number, NumberError, note_values};
use crate::trace::{Format, Trace, TraceError, shown};

const COLUMNS: [&str; 7] =
    ["WorkflowID", "JobID", "SubmitTime", "RunTime", "NProcs", "ReqNProcs", "Dependencies"];
const DEPENDENCIES: usize = 6;

/// Whether a line names OpenDC's columns.
pub(crate) fn is_opendc_header(line: &[u8]) -> bool {
    let named = names(line);
    ["WorkflowID", "JobID"].iter().all(|&column| named.iter().any(|name| name == column))
}

fn names(line: &[u8]) -> Vec<String> {
    line.split(|&byte| byte == b',').map(super::clean_name).collect()
}

/// Reads a whole trace. The workflow becomes the group of a job. Submit times that are Unix times are
/// shifted, see [`Trace::shift_epoch`].
///
/// # Errors
/// If the trace cannot be read, is over a limit, a column is missing from its header, or a line is not a job.
pub fn read_opendc(name: &str, mut text: impl BufRead, limits: &Limits) -> Result<Trace, TraceError> {
    let mut trace = Trace::empty(name, Format::OpenDc);
    let mut places: Option<[usize; COLUMNS.len()]> = None;
    let mut line = Vec::new();
    for number in 1.. {
        let read = read_line(&mut text, &mut line, limits.line);
        if read.map_err(|cause| TraceError::reading(name, number, cause))? == 0 {
            break;
        }
        let line = line.trim_ascii();
        match places {
            _ if line.is_empty() => {}
            None if is_opendc_header(line) => places = Some(find_columns(name, line)?),
            None => {}
            Some(_) if trace.records.len() as u64 >= limits.rows => {
                return Err(TraceError::over(name, number, Limit::Rows, limits.rows));
            }
            Some(places) => {
                let record = record(name, line, number, &places, &mut trace)?;
                trace.records.push(record);
            }
        }
    }
    trace.repairs.add(Repair::MissingHeader, 1);
    trace.shift_epoch();
    Ok(trace)
}

fn find_columns(file: &str, line: &[u8]) -> Result<[usize; COLUMNS.len()], TraceError> {
    let named = names(line);
    let mut places = [usize::MAX; COLUMNS.len()];
    for (place, column) in places.iter_mut().zip(COLUMNS) {
        match named.iter().position(|name| name == column) {
            Some(found) => *place = found,
            None if column == COLUMNS[DEPENDENCIES] => {}
            None => {
                let problem = format!("the header has no column {column}; add it, with -1 where unknown");
                return Err(TraceError::Structure { file: file.to_string(), problem });
            }
        }
    }
    Ok(places)
}

fn record(
    file: &str,
    line: &[u8],
    number: u64,
    places: &[usize; COLUMNS.len()],
    trace: &mut Trace,
) -> Result<Record, TraceError> {
    // Dependencies come last and may hold commas themselves.
    let fields: Vec<&[u8]> =
        line.splitn(COLUMNS.len(), |&byte| byte == b',').map(<[u8]>::trim_ascii).collect();
    let field = |column: usize| fields.get(places[column]).copied().filter(|field| !field.is_empty());
    let refuse = |column: usize, error: NumberError| {
        let (value, problem) = shown(field(column).unwrap_or_default(), error.remedy());
        let (file, field) = (file.to_string(), places[column] + 1);
        TraceError::Field { file, line: number, field, name: COLUMNS[column], value, problem }
    };
    let parse = |column| Number::parse(field(column).unwrap_or(b"-1")).map_err(|error| refuse(column, error));
    let time = |column| parse(column)?.seconds().map_err(|error| refuse(column, error));
    let count =
        |column| i32::try_from(parse(column)?.whole().0).map_err(|_| refuse(column, NumberError::TooLarge));
    let record = Record {
        group: count(0)?,
        job: parse(1)?.whole().0,
        submit: time(2)?,
        run_time: time(3)?,
        allocated: count(4)?,
        requested: count(5)?,
        ..Record::default()
    };
    let depends =
        field(DEPENDENCIES).is_some_and(|field| !matches!(field, b"-1" | b"[]" | b"\"\"" | b"\"[]\""));
    let mut note = |seen: bool, repair| {
        if seen {
            trace.repairs.add(repair, number);
        }
    };
    note(depends, Repair::DependencyIgnored);
    note_values(&record, &mut note);
    Ok(record)
}
