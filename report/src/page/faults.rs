//! The section on faults: what happened to which sites and jobs. Marks in the schedule are drawn by `page.js`.

use std::io::{self, Write};

use analysis::faults::Downtime;
use outputs::RunResult;

use super::html::{entry, escape};
use super::quantity::grouped;
use super::table_html;
use crate::faults::{anything, faults_lines, jobs_left_out, jobs_table, sites_table};

/// Writes the section; nothing without faults.
pub(super) fn write(file: &mut dyn Write, result: &RunResult) -> io::Result<()> {
    if !anything(result) {
        return Ok(());
    }
    writeln!(file, "<section>\n<h2>What crashes and take-overs did</h2>")?;
    for line in faults_lines(result) {
        writeln!(file, "<p class=\"note\">{}.</p>", escape(&line))?;
    }
    if let Some(table) = sites_table(result) {
        table_html(file, "Faults by site", &table)?;
    }
    if let Some(table) = jobs_table(result) {
        let more = match jobs_left_out(result) {
            0 => String::new(),
            left => format!(" {} more are in <code>faults.csv</code>.", grouped(left as u64)),
        };
        writeln!(
            file,
            "<p class=\"note\">Jobs that were interrupted, taken over or orphaned, those that may have run twice \
             first.{more}{}</p>",
            guessed(result)
        )?;
        table_html(file, "Faults by job", &table)?;
    }
    writeln!(file, "</section>")
}

/// What bounds mean, where there are any.
fn guessed(result: &RunResult) -> &'static str {
    match result.outcome.faults.downtimes.iter().all(Downtime::is_exact) {
        true => "",
        false => {
            " Of some crashes the events do not say when they were: what is given as <i>at most</i> reaches to the return \
             of the site, what is given as <i>at least</i> to its last event before."
        }
    }
}

/// The legend of the marks in the schedule; empty without faults.
pub(super) fn legend(result: &RunResult) -> String {
    if !result.outcome.faults.disturbed() {
        return String::new();
    }
    let entries = [
        ("down", "site away"),
        ("cut-short", "interrupted by a crash; the pale part is after the last sign of life"),
        ("no-end", "end not known"),
        ("second", "second run, not counted"),
    ];
    format!("<p class=\"legend\">{}</p>\n", entries.map(|(color, words)| entry(color, words)).concat())
}
