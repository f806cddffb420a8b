//! Opening a trace: what compression and which format, by content and never by name.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

use crate::swf;
use crate::trace::{Format, Trace, TraceError};

/// Bytes read at a time; arbitrary, large enough that calls into the system do not show in a profile.
const BUFFER: usize = 1 << 17;
/// First bytes of a gzip file (RFC 1952).
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// First bytes of a zstd frame (RFC 8878).
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Reads a whole trace from a file of any known format and compression.
///
/// # Errors
/// If the file cannot be read, or a line is not a job.
pub fn read(path: impl AsRef<Path>) -> Result<Trace, TraceError> {
    let path = path.as_ref();
    let name = path.display().to_string();
    match File::open(path) {
        Ok(file) => read_from(&name, file),
        Err(source) => Err(TraceError::Io { file: name, source }),
    }
}

/// Reads a whole trace from bytes of any known format and compression. `name` stands in messages.
///
/// # Errors
/// If the bytes cannot be read, or a line is not a job.
pub fn read_from(name: &str, bytes: impl Read) -> Result<Trace, TraceError> {
    let failed = |source| TraceError::Io { file: name.to_string(), source };
    let mut text = decompress(bytes).map_err(failed)?;
    let (format, head) = detect(&mut text).map_err(failed)?;
    let mut text = Cursor::new(head).chain(text);
    match format {
        Format::Swf => swf::read_trace(name, &mut text),
        _ => unreachable!("only SWF is detected"),
    }
}

/// The plain bytes behind gzip, zstd or no compression.
///
/// # Errors
/// If the first bytes cannot be read.
pub fn decompress<'a>(bytes: impl Read + 'a) -> io::Result<Box<dyn BufRead + 'a>> {
    let mut bytes = BufReader::with_capacity(BUFFER, bytes);
    let mut head = Vec::with_capacity(ZSTD.len());
    bytes.by_ref().take(ZSTD.len() as u64).read_to_end(&mut head)?;
    let is_gzip = head.starts_with(&GZIP);
    let is_zstd = head.starts_with(&ZSTD);
    let whole = Cursor::new(head).chain(bytes);
    Ok(if is_gzip {
        Box::new(BufReader::with_capacity(BUFFER, MultiGzDecoder::new(whole)))
    } else if is_zstd {
        Box::new(BufReader::with_capacity(BUFFER, zstd::Decoder::with_buffer(whole)?))
    } else {
        Box::new(whole)
    })
}

/// The format, and the bytes that had to be read to know it: the first line that is not empty.
fn detect(text: &mut dyn BufRead) -> io::Result<(Format, Vec<u8>)> {
    let mut head = Vec::new();
    loop {
        let start = head.len();
        if text.read_until(b'\n', &mut head)? == 0 {
            return Ok((Format::Swf, head));
        }
        let line = head[start..].trim_ascii();
        if !line.is_empty() {
            return Ok((Format::Swf, head));
        }
    }
}
