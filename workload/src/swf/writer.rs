//! The writer: exactly 18 columns, single blanks, header lines as they came or as `; Key: value`.

use std::io::{self, Write};

use crate::header::Header;
use crate::record::Record;
use crate::trace::Trace;

/// Writes a whole log: its comment lines, then its records in the order given.
///
/// # Errors
/// If `out` cannot be written.
pub fn write_trace(trace: &Trace, out: &mut impl Write) -> io::Result<()> {
    write_header(&trace.header, out)?;
    for record in &trace.records {
        write_record(record, out)?;
    }
    Ok(())
}

/// Writes comment lines. A line that came with another comment sign gets `;`.
///
/// # Errors
/// If `out` cannot be written.
pub fn write_header(header: &Header, out: &mut impl Write) -> io::Result<()> {
    for line in &header.lines {
        let text = line.trim_ascii_start();
        if text.starts_with(b";") {
            out.write_all(line)?;
        } else if let Some(text) = text.strip_prefix(b"#") {
            out.write_all(b";")?;
            out.write_all(text)?;
        } else {
            out.write_all(b"; ")?;
            out.write_all(line)?;
        }
        out.write_all(b"\n")?;
    }
    Ok(())
}

/// Writes one record as one line.
///
/// # Errors
/// If `out` cannot be written.
pub fn write_record(record: &Record, out: &mut impl Write) -> io::Result<()> {
    let Record { job, submit, wait, run_time, cpu_time, requested_time, think_time, .. } = record;
    let Record { used_memory, requested_memory, preceding, allocated, requested, .. } = record;
    let Record { status, user, group, executable, queue, partition, .. } = record;
    writeln!(
        out,
        "{job} {submit} {wait} {run_time} {allocated} {cpu_time} {used_memory} {requested} {requested_time} \
         {requested_memory} {status} {user} {group} {executable} {queue} {partition} {preceding} {think_time}"
    )
}
