//! A file that a disk may refuse for a while: what it does not take waits in memory.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

/// The most bytes that wait: compressed events of some million jobs. Past them writing fails.
pub const BACKLOG_MAX: usize = 64 << 20;

/// A writer whose bytes reach the file in order, those that the disk refused before all others.
#[derive(Debug)]
pub(crate) struct Backlog<W = File> {
    file: W,
    waiting: Vec<u8>,
    most: usize,
    refused: Option<io::Error>,
}

impl Backlog {
    /// Replaces a file of this name.
    ///
    /// # Errors
    /// If it cannot be created.
    pub(crate) fn create(path: &Path) -> io::Result<Backlog> {
        Ok(Backlog::over(File::create(path)?, BACKLOG_MAX))
    }
}

impl<W: Write> Backlog<W> {
    fn over(file: W, most: usize) -> Backlog<W> {
        Backlog { file, waiting: Vec::new(), most, refused: None }
    }

    /// Why the disk takes nothing, the first time that this is asked since.
    pub(crate) fn refused(&mut self) -> Option<io::Error> {
        self.refused.take()
    }

    /// Writes what waits.
    ///
    /// # Errors
    /// If the disk does not take it.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.drain()?;
        self.file.flush()
    }

    fn drain(&mut self) -> io::Result<()> {
        let mut written = 0;
        let done = loop {
            if written == self.waiting.len() {
                break Ok(());
            }
            match self.file.write(&self.waiting[written..]) {
                Ok(0) => break Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => written += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => break Err(error),
            }
        };
        self.waiting.drain(..written);
        done
    }
}

impl<W: Write> Write for Backlog<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let waited = !self.waiting.is_empty();
        self.waiting.extend_from_slice(bytes);
        match self.drain() {
            Ok(()) => self.refused = None,
            Err(error) if self.waiting.len() > self.most => return Err(error),
            Err(error) if !waited => self.refused = Some(error),
            Err(_) => {}
        }
        Ok(bytes.len())
    }

    /// Tries; what the disk refuses waits on.
    fn flush(&mut self) -> io::Result<()> {
        self.write(&[]).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk with so much room.
    struct Disk {
        bytes: Vec<u8>,
        room: usize,
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let count = bytes.len().min(self.room - self.bytes.len());
            self.bytes.extend_from_slice(&bytes[..count]);
            if count > 0 || bytes.is_empty() { Ok(count) } else { Err(io::ErrorKind::StorageFull.into()) }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_a_full_disk_refused_comes_first_once_there_is_room() {
        let mut backlog = Backlog::over(Disk { bytes: Vec::new(), room: 4 }, 100);
        for bytes in [b"abc".as_slice(), b"def", b"ghi"] {
            backlog.write_all(bytes).unwrap();
        }
        assert_eq!(backlog.file.bytes, b"abcd");
        assert_eq!(backlog.refused().map(|error| error.kind()), Some(io::ErrorKind::StorageFull));
        assert!(backlog.refused().is_none(), "it is said once");
        backlog.file.room = 100;
        backlog.write_all(b"jkl").unwrap();
        assert_eq!(backlog.file.bytes, b"abcdefghijkl");
        backlog.finish().unwrap();
    }

    #[test]
    fn a_disk_that_stays_full_is_an_error_at_the_end_or_when_too_much_waits() {
        let full = || Backlog::over(Disk { bytes: Vec::new(), room: 0 }, 5);
        let mut backlog = full();
        backlog.write_all(b"abcde").unwrap();
        backlog.flush().unwrap();
        assert_eq!(backlog.finish().unwrap_err().kind(), io::ErrorKind::StorageFull);
        let mut backlog = full();
        assert_eq!(backlog.write_all(b"abcdef").unwrap_err().kind(), io::ErrorKind::StorageFull);
    }
}
