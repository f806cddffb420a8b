//! Files of result directories, which may come from others, as texts of so many bytes and no more.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// A text that is read as a whole.
///
/// # Errors
/// If it cannot be read, is no text, or has more than `most` bytes, of which no more is kept.
pub(crate) fn read_text(path: &Path, most: u64) -> io::Result<String> {
    let mut text = String::new();
    let file = File::open(path)?;
    let too_long = || {
        let words = format!("it has more than {most} bytes, the most that such a file may have");
        io::Error::new(io::ErrorKind::FileTooLarge, words)
    };
    if file.metadata()?.len() > most {
        return Err(too_long());
    }
    // A file that grows, or has no length, ends here, too.
    let read = file.take(most + 1).read_to_string(&mut text)? as u64;
    if read > most { Err(too_long()) } else { Ok(text) }
}
