//! `report.html`: a run as one page that needs nothing else.

use std::io::{self, Write};

use crate::outputs::{Allocation, RunResult};

/// Writes the page.
pub fn write(file: &mut dyn Write, result: &RunResult, _allocation: &Allocation) -> io::Result<()> {
    let summary = super::summary::terminal(result);
    let escaped = summary.replace('&', "&amp;").replace('<', "&lt;");
    writeln!(file, "<!doctype html><meta charset=\"utf-8\"><title>Stealgrid</title><pre>{escaped}</pre>")
}
