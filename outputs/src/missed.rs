//! Faults of an experiment that never happened.

use scheduler::Time;
use serde::Serialize;

/// A fault that never happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Missed {
    /// Its place in the file, from 1.
    pub entry: usize,
    /// The site, by name.
    pub site: String,
    /// `crash`, `pause`, `leave` or `join`.
    pub what: &'static str,
    /// When it was to happen, in trace time.
    #[serde(rename = "at_s", with = "scheduler::time::seconds")]
    pub at: Time,
    /// Why it did not.
    pub why: Why,
}

/// Why a fault never happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// The run was over before.
    RunOver,
    /// The site was not there.
    SiteAway,
}

impl Why {
    /// The reason as a clause for a table.
    pub fn text(self) -> &'static str {
        match self {
            Why::RunOver => "the run was over before",
            Why::SiteAway => "the site was not there",
        }
    }
}
