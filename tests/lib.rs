//! What the tests of several crates share: where the real workload logs are, how a check says that it was skipped, and
//! the tables of documents.

use std::fmt::Display;
use std::io::Write as _;
use std::path::PathBuf;

/// The folder of real workload logs and reference schedules beside the project, or the one that
/// `STEALGRID_SHARED` names. `None`, said loudly on stderr with the file's name, if `file` is not there.
pub fn shared(file: &str) -> Option<PathBuf> {
    let root = std::env::var_os("STEALGRID_SHARED")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared"), PathBuf::from);
    let path = root.join(file);
    if path.exists() {
        Some(path)
    } else {
        skipped(format_args!(
            "{} is not there; set STEALGRID_SHARED to the folder that holds {file}",
            path.display()
        ));
        None
    }
}

/// Says that a check was skipped and why, in a line that `.ci/run` counts. Those of [`shared`] are
/// failures there where the folder is.
///
/// # Panics
/// If there is no stderr.
pub fn skipped(why: impl Display) {
    // Not `eprintln`: the test harness hides that of tests that pass, and a skipped check must be seen.
    writeln!(std::io::stderr(), "SKIPPED: {why}").expect("tests have a stderr");
}

/// The rows of all tables of a page with these columns, cell by cell.
pub fn rows<'a>(page: &'a str, header: &[&str]) -> Vec<Vec<&'a str>> {
    let mut rows = Vec::new();
    let mut inside = false;
    for line in page.lines() {
        let Some(cells) = line.strip_prefix('|').and_then(|line| line.trim_end().strip_suffix('|')) else {
            inside = false;
            continue;
        };
        let cells: Vec<&str> = cells.split('|').map(str::trim).collect();
        if cells == header {
            inside = true;
        } else if inside && !cells[0].starts_with("---") {
            rows.push(cells);
        }
    }
    rows
}

/// What is in code quotes.
pub fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}
