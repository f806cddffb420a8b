//! Files of result directories, which may come from others, as texts of so many bytes and no more.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// A text is over a limit that no variable sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it has more than {most} bytes, the most that such a file may have")]
pub struct TooLong {
    /// What the limit allows, in bytes.
    pub most: u64,
}

impl From<TooLong> for io::Error {
    fn from(error: TooLong) -> io::Error {
        io::Error::new(io::ErrorKind::FileTooLarge, error)
    }
}

/// Opens a file that may be of somebody else: a regular one, or a folder, of which reading says so itself. Who opens a pipe or a
/// device may wait for ever. One that says that it has nothing, as those of `/proc` do, is taken at its word.
///
/// # Errors
/// If it cannot be opened, or is neither.
pub fn open(path: &Path) -> io::Result<File> {
    let about = std::fs::metadata(path)?;
    if !about.is_file() && !about.is_dir() {
        let reason = "it is a pipe, a device or a socket, and no file; write what comes out of it to a file, and name that";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
    }
    File::open(if about.is_file() && about.len() == 0 { Path::new("/dev/null") } else { path })
}

/// A file that is read as a whole.
///
/// # Errors
/// If it cannot be read, is no text, or has more than `most` bytes, of which no more is kept ([`TooLong`]).
pub fn read_text(path: &Path, most: u64) -> io::Result<String> {
    read_text_or(path, most, TooLong { most })
}

/// The same, with other words for what is too long.
///
/// # Errors
/// As [`read_text`].
pub fn read_text_or(path: &Path, most: u64, too_long: impl Into<io::Error>) -> io::Result<String> {
    let file = open(path)?;
    if file.metadata()?.len() > most {
        return Err(too_long.into());
    }
    text_of(file, most, too_long)
}

/// What is left to read, whether or not it says how much that is.
///
/// # Errors
/// As [`read_text`].
pub fn text_of(source: impl Read, most: u64, too_long: impl Into<io::Error>) -> io::Result<String> {
    let mut bytes = Vec::new();
    // A letter may be cut in two where the limit is, which is no fault of the text.
    source.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(too_long.into());
    }
    String::from_utf8(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is no text in UTF-8"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn no_more_is_read_than_may_be() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "äöü").unwrap();
        assert_eq!(read_text(&path, 6).unwrap(), "äöü");
        // In the middle of a letter, too.
        for most in 0..6 {
            let error = read_text(&path, most).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
            assert!(error.to_string().contains(&format!("more than {most} bytes")), "{error}");
            let error = text_of(io::repeat(b'x'), most, TooLong { most }).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        }
        fs::write(&path, [0xff]).unwrap();
        assert_eq!(read_text(&path, 6).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn what_is_no_file_is_refused_before_anybody_waits_for_it() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        for path in [&socket, Path::new("/dev/zero")] {
            let error = read_text(path, 6).unwrap_err();
            assert!(error.to_string().contains("a device or a socket"), "{error}");
        }
        assert_eq!(read_text(Path::new("/proc/self/environ"), 6).unwrap(), "", "it says that it has nothing");
    }
}
