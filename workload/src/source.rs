//! Opening a trace: what compression and which format, by content and never by name.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

use crate::trace::{Format, Trace, TraceError};
use crate::{batsim, gwf, swf};

/// Bytes read at a time; arbitrary, large enough that calls into the system do not show in a profile.
const BUFFER: usize = 1 << 17;
/// A line with so many columns and no header before it is GWF: logs of Alea have 21, GWF has 29, and some
/// writers leave out the last ones.
const GWF_COLUMNS_LEAST: usize = 25;
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
        Err(cause) => Err(TraceError::Io { file: name, cause }),
    }
}

/// Reads a whole trace from bytes of any known format and compression. `name` stands in messages.
///
/// # Errors
/// If the bytes cannot be read, or a line is not a job.
pub fn read_from(name: &str, bytes: impl Read) -> Result<Trace, TraceError> {
    let failed = |cause| TraceError::Io { file: name.to_string(), cause };
    let mut text = decompress(bytes).map_err(failed)?;
    let (format, head) = detect(&mut text).map_err(failed)?;
    let mut text = Cursor::new(head).chain(text);
    let trace = match format {
        Format::Swf => swf::read_trace(name, &mut text),
        Format::Gwf => gwf::read_trace(name, &mut text),
        Format::OpenDc => gwf::read_opendc(name, &mut text),
        Format::Batsim => batsim::read_trace(name, &mut text),
    }?;
    if trace.records.is_empty() {
        let problem = "there is no job in it; is it a workload trace?".to_string();
        return Err(TraceError::Structure { file: name.to_string(), problem });
    }
    Ok(trace)
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

/// The format, and the bytes that had to be read to know it: all lines up to the first that tells.
fn detect(text: &mut dyn BufRead) -> io::Result<(Format, Vec<u8>)> {
    let mut head = Vec::new();
    loop {
        let start = head.len();
        if text.read_until(b'\n', &mut head)? == 0 {
            return Ok((Format::Swf, head));
        }
        if let Some(format) = format_of(&head[start..]) {
            return Ok((format, head));
        }
    }
}

/// The format that a line gives away; `None` for a blank line or an ordinary `#` comment.
fn format_of(line: &[u8]) -> Option<Format> {
    let line = line.trim_ascii();
    match line.first()? {
        b'{' => Some(Format::Batsim),
        b';' => Some(Format::Swf),
        _ if gwf::is_opendc_header(line) => Some(Format::OpenDc),
        _ if gwf::is_header(line) => Some(Format::Gwf),
        b'#' => None,
        _ if gwf::columns(line) >= GWF_COLUMNS_LEAST => Some(Format::Gwf),
        _ => Some(Format::Swf),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    const LOG: &str = "; MaxProcs: 4\n1 0 -1 60 2 -1 -1 2 120 -1 1 1 1 -1 1 1 -1 -1\n";

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn compression_is_recognized_by_content() {
        let plain = read_from("t", LOG.as_bytes()).unwrap();
        let zstd = zstd::encode_all(LOG.as_bytes(), 0).unwrap();

        assert_eq!(read_from("t", &gzip(LOG.as_bytes())[..]).unwrap(), plain);
        assert_eq!(read_from("t", &zstd[..]).unwrap(), plain);
    }

    #[test]
    fn members_of_a_gzip_file_are_read_one_after_the_other() {
        let (head, tail) = LOG.split_at(15);
        let both = [gzip(head.as_bytes()), gzip(tail.as_bytes())].concat();

        assert_eq!(read_from("t", &both[..]).unwrap(), read_from("t", LOG.as_bytes()).unwrap());
    }

    #[test]
    fn formats_are_recognized_by_content() {
        let format = |line: &str| format_of(line.as_bytes());
        let columns = |count| vec!["1"; count].join("\t");

        assert_eq!(format("; Version: 2.2"), Some(Format::Swf));
        assert_eq!(format(&columns(18)), Some(Format::Swf));
        assert_eq!(format(&columns(21)), Some(Format::Swf));
        assert_eq!(format(&columns(29)), Some(Format::Gwf));
        assert_eq!(format("# JobID\tSubmitTime\tWaitTime"), Some(Format::Gwf));
        assert_eq!(format("# a comment"), None);
        assert_eq!(format("WorkflowID, JobID, SubmitTime, RunTime"), Some(Format::OpenDc));
        assert_eq!(format("  {\"nb_res\": 4,"), Some(Format::Batsim));
    }

    #[test]
    fn a_file_cut_short_is_refused() {
        let mut cut = gzip(LOG.as_bytes());
        cut.truncate(cut.len() - 9);

        let error = read_from("t.gz", &cut[..]).unwrap_err().to_string();

        assert!(error.starts_with("read trace t.gz: "), "{error}");
        assert!(error.contains("file is complete"), "{error}");
    }

    #[test]
    fn a_file_without_jobs_is_refused() {
        for text in ["", "\n", "; MaxProcs: 4\n"] {
            assert!(matches!(read_from("t", text.as_bytes()), Err(TraceError::Structure { .. })), "{text:?}");
        }
    }
}
