//! What a stored sweep says of how it was made beside the sweep file: the base experiment, the values of the switches that
//! decide, and the logs by their content. As comments below the file, which stays one.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;

use experiments::experiment::accounts;

use super::file::{self, Plan, PlannedRun};

/// Writes below the text of a plan, as comments, what made its rows, and notes the logs by their content.
///
/// # Errors
/// In words, if a log cannot be read.
pub(super) fn comment(plan: &mut Plan) -> Result<(), String> {
    let mut text = "\n# ---- switches that decide, also those that nobody wrote\n".to_string();
    for (key, values) in &plan.switches {
        let values: Vec<&str> = values.iter().map(String::as_str).collect();
        let _ = writeln!(text, "# {key} = {}", values.join(" | "));
    }
    text += "# ---- logs, by SHA-256\n";
    for (path, sha256) in &mut plan.logs {
        let digest = accounts::digest(path).map_err(|cause| format!("read {}: {cause}", path.display()))?;
        let _ = writeln!(text, "# {} {}", digest.sha256, digest.file);
        *sha256 = Some(digest.sha256);
    }
    if let Some(base) = &plan.base {
        text += "# ---- base\n";
        base.lines().for_each(|line| text += &format!("# {line}\n"));
    }
    plan.text += &text;
    Ok(())
}

/// The logs that runs read.
///
/// # Errors
/// In words, if a run is no experiment.
pub(super) fn logs<'a>(runs: impl IntoIterator<Item = &'a PlannedRun>) -> Result<BTreeSet<PathBuf>, String> {
    let mut logs = BTreeSet::new();
    for run in runs {
        logs.extend(file::logs_of(&file::resolve(&run.experiment)?).into_iter().cloned());
    }
    Ok(logs)
}
