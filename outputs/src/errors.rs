//! Why results cannot be written or read.

use std::io;
use std::path::{Path, PathBuf};

use workload::limits::Exceeded;

use crate::event_log::EventLogError;

// What the system said is in the text of these errors, and so not their `source`: who prints the causes of an error would
// say it twice.

/// Why a result could not be written.
#[derive(Debug, thiserror::Error)]
#[error("write {}: {cause}; is the disk full or the directory read-only?", path.display())]
pub struct WriteError {
    /// The file that could not be written.
    pub path: PathBuf,
    /// What the system said.
    pub cause: io::Error,
}

impl WriteError {
    pub(crate) fn at(path: &Path) -> impl FnOnce(io::Error) -> WriteError {
        let path = path.to_path_buf();
        move |cause| WriteError { path, cause }
    }
}

/// Why a result directory cannot be read. Reads after "failed to".
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// There is no such file, or it cannot be opened.
    #[error("read {}: {cause}; is {} the result directory of a run?", path.display(),
        path.parent().unwrap_or(Path::new("")).display())]
    Open {
        /// The file that was asked for.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// It is not what this version writes.
    #[error("read {}: {reason}; was it written by another version, or changed?", path.display())]
    Content {
        /// The file with that content.
        path: PathBuf,
        /// What is wrong and where.
        reason: String,
    },
    /// It costs more than a file may, unless somebody says so.
    #[error("read {}: {exceeded}", path.display())]
    Limit {
        /// The file that costs too much.
        path: PathBuf,
        /// Which limit it is over, and where.
        exceeded: Exceeded,
    },
    /// The event log cannot be read.
    #[error(transparent)]
    Events(#[from] EventLogError),
    /// There is no event log.
    #[error(
        "read {}: there is none; repeat the run without --no-events (outputs.events = true): {command}",
        path.display()
    )]
    NoEvents {
        /// Where it would be.
        path: PathBuf,
        /// The command line of the run.
        command: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_said_is_said_once() {
        let full = || io::Error::from(io::ErrorKind::StorageFull);
        let errors: [Box<dyn std::error::Error>; 3] = [
            Box::new(WriteError::at(Path::new("out/jobs.csv"))(full())),
            Box::new(DirectoryError::Open { path: "out/jobs.csv".into(), cause: full() }),
            Box::new(EventLogError::Write { path: "out/events.jsonl.zst".into(), cause: full() }),
        ];
        for error in errors {
            assert!(error.to_string().contains(&full().to_string()), "{error}");
            assert!(error.source().is_none(), "{error}");
        }
    }
}
