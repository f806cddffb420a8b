//! Who may write into a result directory: one coordinator at a time, and none over nodes that still work there.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use node::running::Running;

/// The file that a run locks while it writes into a result directory.
const LOCK: &str = ".lock";
/// What a coordinator needs that goes on with a run; there until the run has ended.
pub(super) const RECORD: &str = "run.json";
/// What was measured before the clocks started, which is not measured again.
const CALIBRATION: &str = "calibration.csv";
/// What an earlier run may have left; a result directory holds one run.
const RESULTS: [&str; 14] = [
    RECORD,
    CALIBRATION,
    "manifest.json",
    "metrics.json",
    "jobs.csv",
    "migrations.csv",
    "steals.csv",
    "faults.csv",
    "executions.csv",
    "membership.csv",
    "schedule.swf",
    "events.jsonl.zst",
    "report.html",
    "links.csv",
];
/// Endings of what nodes left in `nodes/`. Their keys stay: identities can be kept from run to run.
const NODE_FILES: [&str; 2] = ["json", "log"];

/// Why a result directory is not free.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InUse {
    /// The other writes results.
    #[error("another coordinator writes into {}; wait for it, or give --out another directory", .0.display())]
    Coordinator(PathBuf),
    /// Nodes whose coordinator was killed.
    #[error(
        "nodes of a run whose coordinator was killed still work in {0}: {nodes}; `stealgrid attach {0}` goes on with \
         that run, `stealgrid attach --stop {0}` ends it; or give --out another directory",
        .dir.display()
    )]
    Nodes {
        /// The directory.
        dir: PathBuf,
        /// Their sites.
        nodes: String,
    },
}

/// Locks a result directory that is there. The lock ends with the file.
pub(super) fn lock(dir: &Path) -> anyhow::Result<File> {
    let path = dir.join(LOCK);
    let lock = File::create(&path).with_context(|| format!("failed to make {}", path.display()))?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => Err(InUse::Coordinator(dir.to_path_buf()).into()),
        Err(TryLockError::Error(error)) => {
            Err(error).with_context(|| format!("failed to lock {}", path.display()))
        }
    }
}

/// Makes a result directory that nobody else writes into, and clears what an earlier run left there.
pub(super) fn begin(dir: &Path) -> anyhow::Result<File> {
    std::fs::create_dir_all(dir)
        .with_context(|| format!("failed to make the result directory {}", dir.display()))?;
    let lock = lock(dir)?;
    let folder = dir.join("nodes");
    let left: Vec<String> = Running::all_in(&folder).into_iter().map(|running| running.ready.name).collect();
    if !left.is_empty() {
        return Err(InUse::Nodes { dir: dir.to_path_buf(), nodes: left.join(", ") }.into());
    }
    let of_nodes = std::fs::read_dir(&folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let of_nodes = of_nodes
        .filter(|path| path.extension().is_some_and(|ending| NODE_FILES.iter().any(|name| ending == *name)));
    for journal in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
        if journal.path().join("journal.sqlite").exists() {
            let path = journal.path();
            std::fs::remove_dir_all(&path)
                .with_context(|| format!("failed to replace {}", path.display()))?;
        }
    }
    RESULTS.iter().map(|name| dir.join(name)).chain(of_nodes).try_for_each(|old| remove(&old))?;
    Ok(lock)
}

/// Clears what a coordinator that was killed had written of results, and nothing of its nodes.
pub(super) fn go_on(dir: &Path) -> anyhow::Result<()> {
    let kept = [RECORD, CALIBRATION];
    let old = RESULTS.iter().filter(|name| !kept.contains(name));
    old.map(|name| dir.join(name)).try_for_each(|old| remove(&old))
}

fn remove(old: &Path) -> anyhow::Result<()> {
    match std::fs::remove_file(old) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("failed to replace {}", old.display()))
        }
        _ => Ok(()),
    }
}
