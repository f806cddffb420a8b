//! Whether `[report]` of a sweep file speaks of what the sweep has, asked before hours of runs and not after them.

use report::sweep::{WrittenReport, no_parameter};
use scheduler::spelling;

use super::file::{Plain, PlannedRun, SweepError};

/// The parameter that names strategies.
const STRATEGY: &str = "strategy.name";

/// Checks the parts that parameters play in the report.
///
/// # Errors
/// If it names a parameter or a strategy that no run has.
pub fn check(report: &WrittenReport, parameters: &[String], runs: &[PlannedRun]) -> Result<(), SweepError> {
    let wrong = |key: &str, reason: String| SweepError::Value { place: format!("report.{key}"), reason };
    let named = [
        ("x", report.x.iter().collect::<Vec<_>>()),
        ("replicates", report.replicates.iter().flatten().collect()),
        ("panels", report.panels.iter().flatten().collect()),
    ];
    for (key, names) in named {
        if let Some(unknown) = names.into_iter().find(|name| !parameters.contains(name)) {
            return Err(wrong(key, no_parameter(unknown, parameters)));
        }
    }
    let Some(baseline) = &report.baseline else { return Ok(()) };
    let mut strategies: Vec<String> = Vec::new();
    for run in runs {
        // Where strategies do not tell runs apart, other parameters name them.
        let Some(value) = run.values.get(STRATEGY) else { return Ok(()) };
        let name = Plain(value).to_string();
        if !strategies.contains(&name) {
            strategies.push(name);
        }
    }
    let begins = |name: &String| {
        baseline.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(", "))
    };
    if strategies.len() < 2 || strategies.iter().any(begins) {
        return Ok(());
    }
    let hint = spelling::hint(baseline, &strategies);
    let reason = format!("no run has the strategy {baseline:?}{hint}; there are {}", strategies.join("; "));
    Err(wrong("baseline", reason))
}
