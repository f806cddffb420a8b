//! What a stored sweep says of how it was made beside the sweep file: the base experiment, the values of the switches that
//! decide, and the logs by their content. As comments below the file, which stays one.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::PathBuf;

use experiments::experiment::{Source, accounts};

use super::file::{self, Plan, PlannedRun};

/// Comments that go below the text of a sweep file.
///
/// # Errors
/// In words, if a log cannot be read.
pub(super) fn comments(plan: &Plan) -> Result<String, String> {
    let mut switches: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for run in &plan.runs {
        for (key, value) in file::resolve(&run.experiment)?.switches() {
            switches.entry(key).or_default().insert(value);
        }
    }
    let mut text = "\n# ---- switches that decide, also those that nobody wrote\n".to_string();
    for (key, values) in switches {
        let values: Vec<String> = values.into_iter().collect();
        let _ = writeln!(text, "# {key} = {}", values.join(" | "));
    }
    text += "# ---- logs, by SHA-256\n";
    for path in logs(&plan.runs)? {
        let digest = accounts::digest(&path).map_err(|cause| format!("read {}: {cause}", path.display()))?;
        let _ = writeln!(text, "# {} {}", digest.sha256, digest.file);
    }
    if let Some(base) = &plan.base {
        text += "# ---- base\n";
        base.lines().for_each(|line| text += &format!("# {line}\n"));
    }
    Ok(text)
}

/// The logs that runs read.
///
/// # Errors
/// In words, if a run is no experiment.
pub(super) fn logs<'a>(runs: impl IntoIterator<Item = &'a PlannedRun>) -> Result<BTreeSet<PathBuf>, String> {
    let mut logs = BTreeSet::new();
    for run in runs {
        match file::resolve(&run.experiment)?.source {
            Source::Trace(path) => drop(logs.insert(path)),
            Source::Mix(sites) => logs.extend(sites.into_iter().map(|site| site.trace)),
            Source::Bag(bag) => drop(logs.insert(bag.file)),
            Source::BagBeside(bag, sites) => {
                logs.extend(sites.into_iter().map(|site| site.trace).chain([bag.file]));
            }
            // What is drawn is said by the file and the seed.
            Source::Generated(_) => {}
        }
    }
    Ok(logs)
}
