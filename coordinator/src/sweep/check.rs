//! `stealgrid study --check`: whether runs again give the rows that a document's figures come from.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use experiments::interrupt::Interrupt;
use outputs::sweep::{Cell, Row, Rows, stored};

use super::file::{Plain, Plan, PlannedRun};
use super::worker::{Assignment, Bench};

/// What the runs of one file of rows gave.
#[derive(Debug, Default)]
pub(super) struct Checked {
    /// Rows that were made again.
    pub rows: usize,
    /// Cells that were compared.
    pub cells: usize,
    /// Where something else came out.
    pub differences: Vec<Difference>,
}

/// A cell that is not what it was.
#[derive(Debug)]
pub(super) struct Difference {
    position: i64,
    column: String,
    stored: String,
    now: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference { position, column, stored, now } = self;
        write!(f, "run {position}: {column} is {stored} in the data, and {now} now")
    }
}

/// Where the files are that a stored sweep names.
pub(super) struct Places<'a> {
    /// The folder of logs, if not as the sweep says.
    pub traces: Option<&'a Path>,
    /// The folder of the sweep file, if not as its command says.
    pub sweeps: Option<&'a Path>,
}

/// Whether rows are those of a sweep, which a sweep file says how to make.
pub(super) fn is_of_a_sweep(rows: &Rows) -> bool {
    rows.command.starts_with("stealgrid sweep ")
}

/// Runs `slice` rows again, spread evenly over all that succeeded, and compares each metric to its last stored digit.
///
/// # Errors
/// In words, if the stored sweep file is none, or names what is not there.
pub(super) fn check(
    rows: &Rows,
    slice: usize,
    places: &Places,
    interrupt: &Interrupt,
) -> Result<Checked, String> {
    let plan = Plan::of(&file(rows, places), rows.text.clone(), places.traces)
        .map_err(|error| format!("failed to {error}"))?;
    let planned: BTreeMap<Vec<String>, &PlannedRun> =
        plan.runs.iter().map(|run| (of_run(&rows.parameters, run), run)).collect();
    let done: Vec<&Row> = rows.rows.iter().filter(|row| row.done).collect();
    let count = slice.min(done.len());
    let mut chosen: Vec<(&Row, Option<&PlannedRun>)> = (0..count)
        .map(|number| {
            // In the middle of each of `count` parts of the rows.
            let row = done[(2 * number + 1) * done.len() / (2 * count)];
            (row, planned.get(&of_row(row)).copied())
        })
        .collect();
    // Runs of the same jobs one after another, which are then prepared once.
    chosen.sort_by_key(|(row, run)| (run.map(|run| &run.workload), row.position));
    let mut checked = Checked::default();
    let mut bench = Bench::default();
    for (row, run) in chosen {
        if interrupt.is_set() {
            return Ok(checked);
        }
        let mut differs = |column: &str, stored: String, now: String| {
            let column = column.to_string();
            checked.differences.push(Difference { position: row.position, column, stored, now });
        };
        checked.rows += 1;
        let Some(run) = run else {
            differs("the run", "there".to_string(), "not in its sweep file".to_string());
            continue;
        };
        let order = Assignment { position: run.position, experiment: run.experiment.clone(), keep: None };
        let measures = match bench.measured(&order, &mut 0.0) {
            Ok(measures) => measures,
            Err(reason) => {
                differs("the run", "complete".to_string(), reason);
                continue;
            }
        };
        for (name, before) in rows.metrics.iter().zip(&row.metrics) {
            let now = match (measures.get(name), rows.digits) {
                (Some(Cell::Real(value)), Some(digits)) => Cell::Real(stored::rounded(*value, digits)),
                (Some(cell), _) => cell.clone(),
                (None, _) => Cell::Null,
            };
            checked.cells += 1;
            if now.to_string() != before.to_string() {
                differs(name, before.to_string(), now.to_string());
            }
        }
    }
    Ok(checked)
}

/// The path that the sweep file had, from which others start that it names.
fn file(rows: &Rows, places: &Places) -> PathBuf {
    let typed = rows.command.split_whitespace().nth(2).map(PathBuf::from);
    let typed = typed.unwrap_or_else(|| PathBuf::from(format!("{}.toml", rows.name)));
    match (places.sweeps, typed.file_name()) {
        (Some(folder), Some(name)) => folder.join(name),
        _ => typed,
    }
}

fn of_run(parameters: &[String], run: &PlannedRun) -> Vec<String> {
    let text =
        |name: &String| run.values.get(name).map_or_else(String::new, |value| Plain(value).to_string());
    parameters.iter().map(text).map(as_number).collect()
}

fn of_row(row: &Row) -> Vec<String> {
    row.parameters.iter().map(ToString::to_string).map(as_number).collect()
}

/// A number as both write it: one of a sweep file may be 1.0, and is 1 in a table.
fn as_number(text: String) -> String {
    text.parse::<f64>().map_or(text, |number| number.to_string())
}
