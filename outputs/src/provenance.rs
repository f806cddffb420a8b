//! How a result was made: the switches that decide an answer, the logs, what preparation did to them, and the program.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What must be known to repeat a result, and to believe it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Provenance {
    /// Keys of the experiment that decide what the numbers are of, and their values, also those that nobody wrote.
    pub switches: BTreeMap<String, String>,
    /// The logs, in the order of the experiment.
    pub logs: Vec<LogDigest>,
    /// What was done to the part of them that was run.
    pub preparation: Preparation,
}

/// A log by its content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogDigest {
    /// Its name, without folders.
    pub file: String,
    /// SHA-256 of the file as it is, compressed or not, in hexadecimal digits.
    pub sha256: String,
    /// Jobs of it that were run.
    pub jobs: u64,
}

/// What preparation did to the part of the logs that was run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Preparation {
    /// Jobs that were left out.
    pub jobs_dropped: u64,
    /// Their work, as far as the log knows it, of all work with it: from 0 to 1.
    pub work_dropped_share: f64,
    /// Jobs that run with other numbers than the log has.
    pub jobs_changed: u64,
    /// Jobs that were stopped at their requested time.
    pub jobs_cut: u64,
    /// The work that was cut off so, of all work with it: from 0 to 1.
    pub work_cut_share: f64,
    /// How often each rule was used, by what it does.
    pub rules: BTreeMap<String, u64>,
}

/// The program: its version and, in a build for use, the commit that it was made from.
pub fn version() -> String {
    match commit() {
        Some(commit) => format!("{}+{commit}", env!("CARGO_PKG_VERSION")),
        None => env!("CARGO_PKG_VERSION").to_string(),
    }
}

/// The commit that the program was made from, with `-dirty` if files differed from it; nothing in a build for
/// development, and outside of a repository.
pub fn commit() -> Option<&'static str> {
    option_env!("STEALGRID_COMMIT").filter(|commit| !commit.is_empty())
}
