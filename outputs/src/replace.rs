//! Files that appear complete or not at all.
//!
//! The content goes to `name.tmp`, which takes the name only when it is whole: a crash leaves the former file. So does a
//! failure, after which nothing else is left either.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Large enough that writing a hundred megabytes of rows is not a matter of system calls.
const BUFFER: usize = 1 << 18;

/// Writes a file through a temporary neighbor.
///
/// # Errors
/// If the disk does not take it, or `content` says so.
pub fn write(path: &Path, content: impl Fn(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let temporary = temporary(path);
    let file = File::create(&temporary)?;
    whole_or_gone(&temporary, filled(file, content).and_then(|_| fs::rename(&temporary, path)))
}

/// The same into a file that `create` makes, and on the disk when this returns: what somebody was told is kept survives
/// a crash of the machine, too.
///
/// # Errors
/// As for [`write()`].
pub fn write_durably(
    path: &Path,
    create: impl FnOnce(&Path) -> io::Result<File>,
    content: impl Fn(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let temporary = temporary(path);
    let file = create(&temporary)?;
    let whole =
        filled(file, content).and_then(|file| file.sync_all()).and_then(|()| fs::rename(&temporary, path));
    whole_or_gone(&temporary, whole)?;
    match path.parent() {
        Some(folder) => File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}

fn temporary(path: &Path) -> PathBuf {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".tmp");
    temporary.into()
}

/// Takes away what was not written to its end: on a full disk it is in the way.
fn whole_or_gone(temporary: &Path, written: io::Result<()>) -> io::Result<()> {
    if written.is_err() {
        // The first failure is the one to tell.
        let _ = fs::remove_file(temporary);
    }
    written
}

/// A new file with this content.
fn filled(file: File, content: impl Fn(&mut dyn Write) -> io::Result<()>) -> io::Result<File> {
    let mut file = BufWriter::with_capacity(BUFFER, file);
    content(&mut file)?;
    file.into_inner().map_err(io::IntoInnerError::into_error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_leaves_the_former_file_and_no_other() {
        let folder = crate::fixtures::folder("replace");
        let path = folder.join("file");
        write(&path, |file| file.write_all(b"first")).unwrap();

        let failed = write(&path, |file| {
            file.write_all(b"second")?;
            Err(io::Error::other("disk full"))
        });

        assert!(failed.is_err());
        assert_eq!(fs::read(&path).unwrap(), b"first");
        assert!(!temporary(&path).exists());
    }
}
