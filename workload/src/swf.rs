//! The Standard Workload Format, version 2.2: 18 columns of numbers, comments after `;`.
//!
//! [`Reader`] streams records from any buffered reader, [`read_trace`] collects them, [`write_trace`] writes
//! them back. Definition: <https://www.cs.huji.ac.il/labs/parallel/workload/swf.html>.

mod columns;
mod descriptor;
mod number;
mod reader;
mod writer;

pub use columns::{COLUMNS, FIELDS};
pub use reader::Reader;
pub use writer::{write_header, write_record, write_trace};

pub(crate) use number::{Number, NumberError};
pub(crate) use reader::note_values;

use std::io::BufRead;

use crate::bursts;
use crate::header::Header;
use crate::labels::{self, Field, Labels};
use crate::limits::{Limit, Limits};
use crate::record::Record;
use crate::repair::Repair;
use crate::trace::{Format, Trace, TraceError};

/// Whether a job held more processors than the header says that there are.
fn is_beyond(record: &Record, header: &Header) -> bool {
    let held = u32::try_from(record.allocated).unwrap_or(0);
    header.processors().is_some_and(|processors| held > processors)
}

/// The labels of a line, in their order: fields 12 to 16.
const LABELS: [&[Field]; 5] =
    [&[Field::User], &[Field::Group], &[Field::Executable], &[Field::Queue], &[Field::Partition]];
/// Room reserved for at most this many jobs on the word of a header, which may be wrong.
const TRUSTED_RECORDS: u64 = 1 << 22;

/// Reads a whole log. Submit times that are Unix times are shifted, see [`Trace::shift_epoch`], bursts are left out or joined, and
/// labels that are too large for their fields are numbered.
///
/// # Errors
/// If the log cannot be read, is over a limit, or a line is not a job.
pub fn read_trace(name: &str, text: impl BufRead, limits: &Limits) -> Result<Trace, TraceError> {
    let mut reader = Reader::new(name, text).with_limits(*limits);
    let mut records = Vec::new();
    let mut large = LABELS.map(|_| None);
    let mut bursts = Vec::new();
    let mut first_beyond = None;
    while let Some(record) = reader.next() {
        let record = record?;
        if records.is_empty() {
            let promised = reader.header().max_records.unwrap_or(0).min(TRUSTED_RECORDS);
            records.reserve(usize::try_from(promised).unwrap_or(0));
        }
        if records.len() as u64 >= limits.rows {
            return Err(TraceError::over(name, reader.line_number(), Limit::Rows, limits.rows));
        }
        for (place, label) in reader.take_labels() {
            let labels: &mut Labels =
                large[place].get_or_insert_with(|| Labels::new(LABELS[place], labels::FIRST_NAME));
            labels.add(records.len(), LABELS[place][0], &label);
        }
        if bursts::is_burst(&record) {
            bursts.push(reader.line_number());
        }
        if first_beyond.is_none() && is_beyond(&record, reader.header()) {
            first_beyond = Some(reader.line_number());
        }
        records.push(record);
    }
    let (mut header, mut repairs) = reader.into_parts();
    if header.lines.is_empty() {
        repairs.add(Repair::MissingHeader, 1);
    }
    let named: Vec<_> = LABELS
        .into_iter()
        .zip(large)
        .filter_map(|(fields, labels)| Some((fields[0], labels?.resolve(&mut records))))
        .collect();
    if !named.is_empty() {
        labels::comment(&mut header, &named);
    }
    let mut trace = Trace { name: name.to_string(), format: Format::Swf, header, records, repairs };
    bursts::join(&mut trace, &bursts, |record, note| note_values(record, note));
    if let Some(line) = first_beyond {
        let beyond = trace.records.iter().filter(|record| is_beyond(record, &trace.header)).count();
        trace.repairs.add_many(Repair::BeyondMachine, beyond as u64, line);
    }
    trace.shift_epoch();
    Ok(trace)
}
