//! The JSON of registration, for both ends.

use serde::{Deserialize, Serialize};

use crate::config::NodeConfig;
use crate::control::api::ReadyLine;

/// A process that wants to be a site.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Asking {
    /// What is the same when it restarts, as the name of its host.
    pub instance: String,
    /// Drawn anew by each process.
    pub process: u64,
    /// Its version: all nodes of a run are of that of the coordinator.
    pub version: String,
    /// The name of the site that it wants to be.
    #[serde(default)]
    pub name: Option<String>,
    /// How many processors the site must have.
    #[serde(default)]
    pub processors: Option<u32>,
    /// Whether it has a place for a journal.
    #[serde(default)]
    pub journal: bool,
}

/// What a process is told that asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Ask again in a moment.
    Wait {
        /// What it waits for, in words for a log.
        reason: String,
    },
    /// Be this site. Files that the configuration names are the node's own to choose.
    Be(Box<NodeConfig>),
}

/// A process that is up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ready {
    /// As in [`Asking::instance`].
    pub instance: String,
    /// As in [`Asking::process`].
    pub process: u64,
    /// What it would print if the coordinator had started it, with addresses that others can reach.
    pub ready: ReadyLine,
}
