//! The writer: 29 columns with tabs between, under comments that repeat the header.

use std::io::{self, Write};

use scheduler::Span;

use super::COLUMNS;
use crate::trace::Trace;

/// Writes a whole log. Submit times become Unix times again if the header knows the start of the log. The
/// sites of submission and execution are those of the records, -1 where unknown.
///
/// # Errors
/// If `out` cannot be written.
pub fn write_trace(trace: &Trace, out: &mut impl Write) -> io::Result<()> {
    for line in &trace.header.lines {
        let text = line.trim_ascii_start();
        let text = text.strip_prefix(b";").or_else(|| text.strip_prefix(b"#")).unwrap_or(text);
        // No comment line may look like the line that names the columns.
        out.write_all(b"#")?;
        out.write_all(text)?;
        out.write_all(b"\n")?;
    }
    writeln!(out, "# {}", COLUMNS.join("\t"))?;
    let start = Span::from_secs(trace.header.unix_start_time.unwrap_or(0));
    for record in &trace.records {
        let known = record.submit >= Span::ZERO;
        let submit = if known { record.submit + start } else { record.submit };
        write!(out, "{}\t{submit}\t{}\t{}", record.job, record.wait, record.run_time)?;
        write!(out, "\t{}\t{}\t{}", record.allocated, record.cpu_time, record.used_memory)?;
        write!(out, "\t{}\t{}\t{}", record.requested, record.requested_time, record.requested_memory)?;
        write!(out, "\t{}\t{}\t{}", record.status, record.user, record.group)?;
        write!(out, "\t{}\t{}\t{}", record.executable, record.queue, record.partition)?;
        write!(out, "\t{}\t{}\tUNITARY", record.origin, record.executed)?;
        writeln!(out, "{}", "\t-1".repeat(COLUMNS.len() - 19))?;
    }
    Ok(())
}
