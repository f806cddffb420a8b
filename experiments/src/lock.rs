//! One process at a time writes into a place.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::folder::NoPlace;

/// Locks a file beside `path`, with `.lock` behind its name, until what is returned is dropped; nothing if another process
/// holds it. The file stays: if it went, two processes could hold locks of different files of one name.
///
/// # Errors
/// If the file cannot be made or locked.
pub fn lock(path: &Path) -> anyhow::Result<Option<File>> {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let name = PathBuf::from(name);
    let lock = File::create(&name).map_err(|cause| NoPlace::of_file(&name, cause, "--out"))?;
    match lock.try_lock() {
        Ok(()) => Ok(Some(lock)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => {
            Err(error).with_context(|| format!("failed to lock {}", name.display()))
        }
    }
}
