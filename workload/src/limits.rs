//! What a file of somebody else may cost: bytes of a line, decompressed bytes, rows.
//!
//! Memory then follows what is kept of a file and what the file itself takes, never what it expands to. The defaults
//! are far above every log of the archives; whoever trusts a larger file raises them.

use std::fmt;
use std::io::{self, BufRead, Read};

/// The limits, in bytes unless they say otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// One line. Lines of logs are below 1 KiB; those of workflow traces list dependencies.
    pub line: u64,
    /// All comments of a log, and what stands before the first line that tells its format.
    pub header: u64,
    /// Jobs of a log: twice the largest one published.
    pub rows: u64,
    /// The decompressed text.
    pub text: u64,
    /// How many times larger than the compressed bytes read so far the text may be, beyond [`SMALL`]. Logs come to 25
    /// times, event logs to 40, and bombs begin at 1,000.
    pub expansion: u64,
    /// A document that is read as a whole, such as a workload in JSON.
    pub document: u64,
    /// The rows of a sweep in memory: each cell, and the text in it. One value of a small file can stand in all its rows.
    pub cells: u64,
}

/// Text up to here may expand as it will: small files compress well by chance.
pub const SMALL: u64 = 16 << 20;

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            line: 64 << 10,
            header: 1 << 20,
            rows: 20_000_000,
            text: 16 << 30,
            expansion: 250,
            document: 256 << 20,
            cells: 256 << 20,
        }
    }
}

/// Which of the limits on what a file may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// [`Limits::line`].
    Line,
    /// [`Limits::header`].
    Header,
    /// [`Limits::rows`].
    Rows,
    /// [`Limits::text`].
    Text,
    /// [`Limits::expansion`].
    Expansion,
    /// [`Limits::document`].
    Document,
    /// [`Limits::cells`].
    Cells,
}

impl Limit {
    /// All of them.
    pub const ALL: [Limit; 7] = [
        Limit::Line,
        Limit::Header,
        Limit::Rows,
        Limit::Text,
        Limit::Expansion,
        Limit::Document,
        Limit::Cells,
    ];

    /// The environment variable that sets it, where a program reads one.
    pub fn variable(self) -> &'static str {
        match self {
            Limit::Line => "STEALGRID_MAX_LINE",
            Limit::Header => "STEALGRID_MAX_HEADER",
            Limit::Rows => "STEALGRID_MAX_ROWS",
            Limit::Text => "STEALGRID_MAX_TEXT",
            Limit::Expansion => "STEALGRID_MAX_EXPANSION",
            Limit::Document => "STEALGRID_MAX_DOCUMENT",
            Limit::Cells => "STEALGRID_MAX_CELLS",
        }
    }
}

impl Limits {
    /// One of them.
    pub fn of(&mut self, limit: Limit) -> &mut u64 {
        match limit {
            Limit::Line => &mut self.line,
            Limit::Header => &mut self.header,
            Limit::Rows => &mut self.rows,
            Limit::Text => &mut self.text,
            Limit::Expansion => &mut self.expansion,
            Limit::Document => &mut self.document,
            Limit::Cells => &mut self.cells,
        }
    }
}

/// A file is over a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exceeded {
    /// The limit that it is over.
    pub limit: Limit,
    /// What it allows.
    pub most: u64,
    /// In which line, from 1; 0 if that is not known.
    pub line: u64,
}

impl fmt::Display for Exceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Exceeded { limit, most, line } = *self;
        if line > 0 {
            write!(f, "line {line}: ")?;
        }
        match limit {
            Limit::Line => write!(f, "a line has more than {most} bytes"),
            Limit::Header => {
                write!(f, "there are more than {most} bytes of comments or of lines that tell no format")
            }
            Limit::Rows => write!(f, "there are more than {most} rows"),
            Limit::Text => write!(f, "there are more than {most} bytes of text"),
            Limit::Expansion => write!(f, "it decompresses to more than {most} times its size"),
            Limit::Document => write!(f, "it has more than {most} bytes"),
            Limit::Cells => write!(f, "it takes more than {most} bytes of memory"),
        }?;
        write!(f, "; if you trust it, set {} higher", limit.variable())
    }
}

impl std::error::Error for Exceeded {}

impl From<Exceeded> for io::Error {
    fn from(exceeded: Exceeded) -> io::Error {
        io::Error::new(io::ErrorKind::FileTooLarge, exceeded)
    }
}

impl Exceeded {
    /// The limit that an error of a reader of this module is about, if it is.
    pub fn of(error: &io::Error) -> Option<Exceeded> {
        error.get_ref().and_then(|inner| inner.downcast_ref()).copied()
    }
}

/// Reads a line with its line break into `line`, which is emptied first; 0 at the end.
///
/// # Errors
/// If the text cannot be read, or the line is longer than `most`, of which no more is read.
pub fn read_line(text: &mut (impl BufRead + ?Sized), line: &mut Vec<u8>, most: u64) -> io::Result<usize> {
    line.clear();
    let read = text.take(most.saturating_add(1)).read_until(b'\n', line)?;
    if read as u64 > most {
        // What an attacker wrote is not kept.
        *line = Vec::new();
        return Err(Exceeded { limit: Limit::Line, most, line: 0 }.into());
    }
    Ok(read)
}

/// Counts the compressed bytes that a decoder has taken.
pub(crate) struct Counted<R> {
    inner: R,
    count: std::rc::Rc<std::cell::Cell<u64>>,
}

impl<R: BufRead> Read for Counted<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(bytes)?;
        self.count.set(self.count.get() + read as u64);
        Ok(read)
    }
}

impl<R: BufRead> BufRead for Counted<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.inner.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        self.count.set(self.count.get() + amount as u64);
        self.inner.consume(amount);
    }
}

/// Text that ends with an error where it is over a limit.
pub(crate) struct Bounded<R> {
    inner: R,
    text: u64,
    limits: Limits,
    /// Compressed bytes so far; `None` if the text was not compressed.
    compressed: Option<std::rc::Rc<std::cell::Cell<u64>>>,
}

impl<R> Bounded<R> {
    /// What `decode` makes of counted bytes, limited by them.
    pub(crate) fn expanding<C: BufRead>(
        bytes: C,
        limits: Limits,
        decode: impl FnOnce(Counted<C>) -> io::Result<R>,
    ) -> io::Result<Bounded<R>> {
        let count = std::rc::Rc::default();
        let inner = decode(Counted { inner: bytes, count: std::rc::Rc::clone(&count) })?;
        Ok(Bounded { inner, text: 0, limits, compressed: Some(count) })
    }

    /// Text that was not compressed.
    pub(crate) fn plain(inner: R, limits: Limits) -> Bounded<R> {
        Bounded { inner, text: 0, limits, compressed: None }
    }

    fn count(&mut self, bytes: usize) -> io::Result<()> {
        self.text += bytes as u64;
        let Limits { text, expansion, .. } = self.limits;
        if self.text > text {
            return Err(Exceeded { limit: Limit::Text, most: text, line: 0 }.into());
        }
        match &self.compressed {
            Some(compressed)
                if self.text > compressed.get().saturating_mul(expansion).saturating_add(SMALL) =>
            {
                Err(Exceeded { limit: Limit::Expansion, most: expansion, line: 0 }.into())
            }
            _ => Ok(()),
        }
    }
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(bytes)?;
        self.count(read)?;
        Ok(read)
    }
}

/// A document that is read as a whole, up to `most` bytes.
pub struct Document<R> {
    inner: R,
    left: u64,
    most: u64,
}

impl<R: Read> Document<R> {
    /// The document that `inner` holds.
    pub fn new(inner: R, most: u64) -> Document<R> {
        Document { inner, left: most, most }
    }
}

impl<R: Read> Read for Document<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(bytes)?;
        self.left = self.left.checked_sub(read as u64).ok_or(Exceeded {
            limit: Limit::Document,
            most: self.most,
            line: 0,
        })?;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_just_the_limit_is_read_and_a_longer_one_refused() {
        let read = |text: &str| {
            let mut line = b"what was there".to_vec();
            read_line(&mut text.as_bytes(), &mut line, 5).map(|read| (read, line))
        };
        assert_eq!(read("1234\n56").unwrap(), (5, b"1234\n".to_vec()));
        assert_eq!(read("12345").unwrap(), (5, b"12345".to_vec()));
        assert_eq!(read("").unwrap(), (0, Vec::new()));
        let error = read("12345\n").unwrap_err();
        assert_eq!(Exceeded::of(&error), Some(Exceeded { limit: Limit::Line, most: 5, line: 0 }));
        let expected = "a line has more than 5 bytes; if you trust it, set STEALGRID_MAX_LINE higher";
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn every_limit_can_be_set() {
        let mut limits = Limits::default();
        for limit in Limit::ALL {
            *limits.of(limit) = 7;
        }
        let Limits { line, header, rows, text, expansion, document, cells } = limits;
        assert_eq!([line, header, rows, text, expansion, document, cells], [7; 7]);
    }
}
