//! Files and folders that nobody but their owner may read: secrets, and what a node keeps and logs. Whatever the mask of
//! the process is (umask), which containers and services often leave open.

use std::fs::{DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use std::time::{Duration, Instant};

/// Reading and writing by the owner.
const FILE_MODE: u32 = 0o600;
/// The same, and entering.
const FOLDER_MODE: u32 = 0o700;

/// How long a lock of another process is waited for, and how often it is looked at.
const LOCK_PATIENCE: Duration = Duration::from_secs(1);
const LOCK_LOOK: Duration = Duration::from_millis(10);

/// Makes a folder, with those above it, that its owner alone may enter; one that is there stays as it is.
///
/// # Errors
/// If it cannot be made.
pub fn make_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(path)
}

/// Whether somebody other than its owner may write there: into a folder, new files in the place of those that are there.
///
/// # Errors
/// If the system does not say.
pub fn others_may_write(path: &Path) -> io::Result<bool> {
    Ok(path.metadata()?.permissions().mode() & 0o022 != 0)
}

/// How files are opened that, if made, are for their owner alone.
pub fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(FILE_MODE);
    options
}

/// An empty file for its owner alone, in place of what was there.
///
/// # Errors
/// If it cannot be made.
pub fn create(path: &Path) -> io::Result<File> {
    let file = options().write(true).create(true).truncate(true).open(path)?;
    // One that was there has the mode that it had.
    file.set_permissions(Permissions::from_mode(FILE_MODE))?;
    Ok(file)
}

/// Locks a file that one process at a time may have, until it is closed. A child of a process that has just ended may have it for a moment more:
/// until it becomes another program.
///
/// # Errors
/// If another process has it, for a second on end, or the system cannot.
pub fn lock(file: &File) -> Result<(), TryLockError> {
    let deadline = Instant::now() + LOCK_PATIENCE;
    loop {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => std::thread::sleep(LOCK_LOOK),
            locked => return locked,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_lock_that_is_given_up_in_a_moment_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let open = || create(&folder.path().join("lock")).unwrap();
        let (first, second) = (open(), open());
        lock(&first).unwrap();
        assert!(matches!(second.try_lock(), Err(TryLockError::WouldBlock)));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(50));
                drop(first);
            });
            lock(&second).unwrap();
        });
    }

    #[test]
    fn what_is_made_is_for_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("a/b");
        make_folder(&inner).unwrap();
        assert_eq!([mode(inner.parent().unwrap()), mode(&inner)], [0o700; 2]);
        for (mode, open) in [(0o700, false), (0o755, false), (0o770, true), (0o1777, true)] {
            std::fs::set_permissions(&inner, Permissions::from_mode(mode)).unwrap();
            assert_eq!(others_may_write(&inner).unwrap(), open, "{mode:o}");
        }

        let file = inner.join("file");
        std::fs::write(&file, "open to all").unwrap();
        std::fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
        create(&file).unwrap();
        assert_eq!((mode(&file), std::fs::read(&file).unwrap().len()), (0o600, 0));
    }
}
