//! Why a journal cannot be used, with the exit code of the process that wanted to.

use std::io;
use std::path::PathBuf;

use crate::event_log::Forgotten;
use crate::exit;

/// Why a journal cannot be used. Nothing was overwritten.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// Somebody else has it.
    #[error(
        "the data directory {} is in use by another node; stop that one, or give this one a directory of its own",
        .dir.display()
    )]
    InUse {
        /// The data directory.
        dir: PathBuf,
    },
    /// There is none to look at.
    #[error(
        "{} holds no journal; give the data directory of a node, which has a file journal.sqlite in it",
        .dir.display()
    )]
    None {
        /// The directory that was given.
        dir: PathBuf,
    },
    /// It is about something else.
    #[error(
        "the data directory {} belongs to {what} {theirs}, and this node is of {what} {ours}; give it a directory \
         of its own",
        .dir.display()
    )]
    Foreign {
        /// The data directory.
        dir: PathBuf,
        /// What the two differ in, as a noun: the run, the site, the grid.
        what: &'static str,
        /// As written in the directory.
        theirs: String,
        /// As this node is configured.
        ours: String,
    },
    /// What it says cannot be.
    #[error(
        "the journal {} is damaged: {what}; nothing was changed. Leave the directory where it is until the file is repaired: what the site had stands nowhere else, and from an older copy jobs would run twice",
        .path.display()
    )]
    Damaged {
        /// The journal file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// The disk is full, or the journal has reached `journal_bytes_max`.
    #[error(
        "no room for the journal {}: {reason}; the node stops before anything is sent that is not written down. \
         Make room (or raise journal_bytes_max) and start it again: it goes on where it was",
        .path.display()
    )]
    Full {
        /// The journal file.
        path: PathBuf,
        /// What the library said.
        reason: String,
    },
    /// A system call failed.
    #[error("{what}: {error}")]
    File {
        /// What was tried.
        what: String,
        /// What the system said.
        error: io::Error,
    },
    /// Anything else that the library says.
    #[error("the journal {}: {reason}", .path.display())]
    Store {
        /// The journal file.
        path: PathBuf,
        /// What the library said.
        reason: String,
    },
}

impl JournalError {
    /// Whether nobody can read it before somebody puts back what it was: it is damaged, missing, or that of another site.
    pub fn is_for_good(&self) -> bool {
        matches!(
            self,
            JournalError::None { .. } | JournalError::Damaged { .. } | JournalError::Foreign { .. }
        )
    }

    /// The exit code of a node that fails with this.
    pub fn exit_code(&self) -> u8 {
        match self {
            JournalError::InUse { .. } => exit::JOURNAL_IN_USE,
            JournalError::Foreign { .. } => exit::JOURNAL_FOREIGN,
            JournalError::Damaged { .. } => exit::JOURNAL_DAMAGED,
            JournalError::Full { .. } => exit::JOURNAL_FULL,
            JournalError::File { error, .. } if error.kind() == io::ErrorKind::StorageFull => {
                exit::JOURNAL_FULL
            }
            JournalError::None { .. } | JournalError::File { .. } => exit::INPUT,
            JournalError::Store { .. } => exit::UNEXPECTED,
        }
    }
}

/// Why there are no events to show.
#[derive(Debug, thiserror::Error)]
pub enum NoEvents {
    /// They are neither in memory nor in a journal.
    #[error(transparent)]
    Forgotten(#[from] Forgotten),
    /// They are in the journal and cannot be read. The node goes on.
    #[error(transparent)]
    Unreadable(#[from] JournalError),
}
