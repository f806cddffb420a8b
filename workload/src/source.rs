//! Opening a trace: what compression and which format, by content and never by name.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;

use crate::calendar::Zone;
use crate::limits::{Bounded, Exceeded, Limit, Limits, read_line};
use crate::members::Members;
use crate::trace::{Format, Trace, TraceError};
use crate::{batsim, gwf, sacct, swf, tables};

/// Bytes read at a time; arbitrary, large enough that calls into the system do not show in a profile.
const BUFFER: usize = 1 << 17;
/// A line with so many columns and no header before it is GWF: logs of Alea have 21, GWF has 29, and some
/// writers leave out the last ones.
const GWF_COLUMNS_LEAST: usize = 25;
/// First bytes of a gzip file (RFC 1952).
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// What some editors write before UTF-8, and what is no text.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// First bytes of a zstd frame (RFC 8878, section 3.1.1).
pub const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// First bytes of compressions that are not undone here, and of what else is often given.
const KNOWN: [(&[u8], &str); 7] = [
    (b"BZh", "compressed by bzip2"),
    (b"\xfd7zXZ", "compressed by xz"),
    (b"PK\x03\x04", "compressed by zip"),
    (b"7z\xbc\xaf", "compressed by 7-Zip"),
    (b"PAR1", "binary (Parquet, of which `trace convert --columns` reads the CSV)"),
    (b"%PDF-", "binary (PDF)"),
    (b"SQLite format 3\0", "binary (a database of SQLite)"),
];
/// Bytes at the beginning that tell whether a file is text; arbitrary, more than most programs have before their first zero.
const TELLING: usize = 4096;

/// Reads a whole trace from a file of any known format and compression, within the limits that apply by default.
///
/// # Errors
/// If the file cannot be read, is over a limit, or a line is not a job.
pub fn read(path: impl AsRef<Path>) -> Result<Trace, TraceError> {
    read_within(path, &Limits::default())
}

/// The same within other limits.
///
/// # Errors
/// As [`read`].
pub fn read_within(path: impl AsRef<Path>, limits: &Limits) -> Result<Trace, TraceError> {
    let path = path.as_ref();
    let name = path.display().to_string();
    match open(path) {
        Ok(file) => read_from_within(&name, file, limits),
        Err(cause) => Err(TraceError::Io { file: name, cause }),
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

/// Reads a whole trace from bytes of any known format and compression, within the limits that apply by default. `name`
/// stands in messages.
///
/// # Errors
/// If the bytes cannot be read, are over a limit, or a line is not a job.
pub fn read_from(name: &str, bytes: impl Read) -> Result<Trace, TraceError> {
    read_from_within(name, bytes, &Limits::default())
}

/// The same within other limits.
///
/// # Errors
/// As [`read_from`].
pub fn read_from_within(name: &str, bytes: impl Read, limits: &Limits) -> Result<Trace, TraceError> {
    read_local_from(name, bytes, limits, None)
}

/// The same, with the zone of times that the format gives as local ones; `None` for the zone that comments of the file
/// name, else UTC. Only `sacct` writes such times.
///
/// # Errors
/// As [`read_from`].
pub fn read_local_from(
    name: &str,
    bytes: impl Read,
    limits: &Limits,
    zone: Option<&Zone>,
) -> Result<Trace, TraceError> {
    let failed = |cause| TraceError::reading(name, 0, cause);
    let (beginning, text) = peeked(decompress(bytes, limits).map_err(failed)?, TELLING).map_err(failed)?;
    let refused = |problem| TraceError::Structure { file: name.to_string(), problem };
    if let Some(what) = no_text(&beginning) {
        return Err(refused(no_log(&what)));
    }
    let mut text = Cursor::new(beginning).chain(text);
    let (format, head, told_by) = detect(&mut text, limits).map_err(failed)?;
    if let Some(problem) = tables::problem(&head[told_by..]) {
        return Err(refused(problem));
    }
    let mut text = Cursor::new(head).chain(text);
    let trace = match format {
        Format::Swf => swf::read_trace(name, &mut text, limits),
        Format::Gwf => gwf::read_trace(name, &mut text, limits),
        Format::OpenDc => gwf::read_opendc(name, &mut text, limits),
        Format::Batsim => batsim::read_trace(name, &mut text, limits),
        Format::Sacct => sacct::read_trace(name, &mut text, limits, zone),
        Format::Csv => Err(refused("only a map says what the columns of CSV hold".to_string())),
    }?;
    if trace.records.is_empty() {
        let problem = "there is no job in it; is it a workload trace?".to_string();
        return Err(TraceError::Structure { file: name.to_string(), problem });
    }
    Ok(trace)
}

/// The plain bytes behind gzip, zstd or no compression. Reading more of them than the limits allow is an error that
/// [`Exceeded::of`](crate::limits::Exceeded::of) knows.
///
/// # Errors
/// If the first bytes cannot be read, or are fewer than a zstd frame begins with and begin like one: the file was cut off.
pub fn decompress<'a>(bytes: impl Read + 'a, limits: &Limits) -> io::Result<Box<dyn BufRead + 'a>> {
    let mut bytes = BufReader::with_capacity(BUFFER, bytes);
    let mut head = Vec::with_capacity(ZSTD.len());
    bytes.by_ref().take(ZSTD.len() as u64).read_to_end(&mut head)?;
    let is_gzip = head.starts_with(&GZIP);
    let is_zstd = head.starts_with(&ZSTD);
    if !is_zstd && !head.is_empty() && ZSTD.starts_with(&head) {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let whole = Cursor::new(head).chain(bytes);
    let text: Box<dyn Read + 'a> = if is_gzip {
        Box::new(Bounded::expanding(whole, *limits, |bytes| Ok(Members::new(bytes)))?)
    } else if is_zstd {
        Box::new(Bounded::expanding(whole, *limits, zstd::Decoder::with_buffer)?)
    } else {
        Box::new(Bounded::plain(whole, *limits))
    };
    let (beginning, text) = peeked(BufReader::with_capacity(BUFFER, text), BYTE_ORDER_MARK.len())?;
    let beginning = if beginning == BYTE_ORDER_MARK { Vec::new() } else { beginning };
    Ok(Box::new(Cursor::new(beginning).chain(text)))
}

/// The first bytes, up to so many, and what is behind them. What a buffered reader has at hand may be less than that.
fn peeked<R: BufRead>(mut text: R, most: usize) -> io::Result<(Vec<u8>, R)> {
    let mut beginning = Vec::new();
    text.by_ref().take(most as u64).read_to_end(&mut beginning)?;
    Ok((beginning, text))
}

/// That something is no log, and what is one.
fn no_log(what: &str) -> String {
    format!(
        "it is {what}, and not a log; a log is text: SWF, GWF, the JSON of Batsim, or what sacct prints with --parsable2, plain or \
         compressed by gzip or zstd"
    )
}

/// What a beginning is that is no text; nothing if it may be some. Comments may be in any alphabet and hold anything but zeros.
fn no_text(beginning: &[u8]) -> Option<String> {
    if let Some((_, what)) = KNOWN.iter().find(|(first, _)| beginning.starts_with(first)) {
        return Some(what.to_string());
    }
    let line = beginning.trim_ascii_start();
    let (line, is_whole) = match line.iter().position(|&byte| byte == b'\n') {
        Some(end) => (&line[..end], true),
        None => (line, false),
    };
    let is_text = |line: &[u8]| match std::str::from_utf8(line) {
        // A letter may be cut in two where the beginning ends.
        Err(error) => !is_whole && error.error_len().is_none(),
        Ok(_) => true,
    };
    let is_control = |byte: &u8| byte.is_ascii_control() && !byte.is_ascii_whitespace();
    let is_comment = matches!(line.first(), Some(b';' | b'#'));
    let is_binary =
        beginning.contains(&0) || (!is_comment && (!is_text(line) || line.iter().any(is_control)));
    is_binary.then(|| "binary".to_string())
}

/// The format, the bytes that had to be read to know it, all lines up to the first that tells, and where that line begins.
fn detect(text: &mut dyn BufRead, limits: &Limits) -> io::Result<(Format, Vec<u8>, usize)> {
    let mut head = Vec::new();
    let mut line = Vec::new();
    loop {
        // Of this line only: what is before it is not looked at again for each of many blank ones.
        let tells = |byte: &&u8| **byte == b'\n' || !byte.is_ascii_whitespace();
        if text.fill_buf()?.iter().find(tells) == Some(&b'{') {
            // Documents may well be one line; they have a limit of their own.
            let end = head.len();
            return Ok((Format::Batsim, head, end));
        }
        if read_line(text, &mut line, limits.line)? == 0 {
            let end = head.len();
            return Ok((Format::Swf, head, end));
        }
        let begin = head.len();
        head.extend_from_slice(&line);
        if let Some(format) = format_of(&line) {
            return Ok((format, head, begin));
        }
        if head.len() as u64 > limits.header {
            return Err(Exceeded { limit: Limit::Header, most: limits.header, line: 0 }.into());
        }
    }
}

/// The format that a line gives away; `None` for a blank line or an ordinary `#` comment.
fn format_of(line: &[u8]) -> Option<Format> {
    let line = line.trim_ascii();
    match line.first()? {
        b'{' => Some(Format::Batsim),
        b';' => Some(Format::Swf),
        _ if sacct::is_header(line) => Some(Format::Sacct),
        _ if gwf::is_opendc_header(line) => Some(Format::OpenDc),
        _ if gwf::is_header(line) => Some(Format::Gwf),
        b'#' => None,
        _ if gwf::columns(line) >= GWF_COLUMNS_LEAST => Some(Format::Gwf),
        // A dump without its header, which its reader can tell better than others.
        _ if line.contains(&b'|') => Some(Format::Sacct),
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
    fn a_byte_order_mark_is_no_text_in_any_format() {
        let dump = "JobID|Submit|Start|End|State|NCPUS|Timelimit\n\
                    7|2024-01-01T00:00:00|2024-01-01T00:00:10|2024-01-01T00:01:00|COMPLETED|4|00:10:00\n";
        for text in [LOG, dump] {
            let plain = read_from("t", text.as_bytes()).unwrap();
            let marked = [b"\xef\xbb\xbf", text.as_bytes()].concat();
            assert_eq!(read_from("t", &marked[..]).unwrap(), plain);
            assert_eq!(read_from("t", &gzip(&marked)[..]).unwrap(), plain);
        }
    }

    #[test]
    fn what_is_no_text_is_refused_with_what_is_read() {
        let refused = |bytes: &[u8]| match read_from("t", bytes) {
            Err(TraceError::Structure { problem, .. }) => problem,
            other => panic!("{other:?}"),
        };
        // A program with a separator of dumps in its first line, and bytes of chance without a zero.
        for bytes in
            [&b"\x7fELF\x02|\x01\n\0\0\0"[..], b"\x9b|\xc2\xf1\x88|\n1 2 3\n", b"a\x01|b\n", b"\0\0\0\0"]
        {
            let said = refused(bytes);
            assert!(said.starts_with("it is binary, and not a log") && said.contains("sacct"), "{said}");
            assert_eq!(refused(&gzip(bytes)), said);
        }
        assert!(refused(b"BZh91AY&SY").contains("compressed by bzip2"));
        assert!(refused(b"\xfd7zXZ\0\0\x04").contains("compressed by xz"));
        assert!(refused(b"%PDF-1.7\n1 0 obj\n").contains("binary (PDF)"));
        assert!(refused(b"PAR1\x15\x04").contains("Parquet"));
        // A tar file has a name first, and zeros behind it.
        assert!(refused(&[&b"log.swf"[..], &[0; 93], b"0000644\0"].concat()).contains("it is binary"));
        // What logs of others have: comments in any alphabet, tabs, form feeds, and letters of two bytes at the end of what
        // is looked at.
        let job = "1 0 -1 60 2 -1 -1 2 120 -1 1 1 1 -1 1 1 -1 -1\n";
        for beginning in
            [b"; Universit\xe4t\x07\n".to_vec(), b"\t\x0c\n".to_vec(), "# \u{fc}".repeat(3000).into_bytes()]
        {
            let log = [&beginning[..], b"\n", job.as_bytes()].concat();
            assert_eq!(read_from("t", &log[..]).unwrap().records.len(), 1);
        }
        let cut = [b"a".repeat(TELLING - 1), "\u{fc}".as_bytes()[..1].to_vec()].concat();
        assert_eq!(no_text(&cut), None);
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
        assert_eq!(format("# JobID\tSubmitTime\tWaitTime\tRunTime\tNProcs"), Some(Format::Gwf));
        assert_eq!(format("JobID,SubmitTime,RunTime,NProcs"), Some(Format::Gwf));
        assert_eq!(format("# a comment"), None);
        assert_eq!(format("WorkflowID, JobID, SubmitTime, RunTime"), Some(Format::OpenDc));
        assert_eq!(format("JobID|User|State"), Some(Format::Sacct));
        assert_eq!(format("User|JobIDRaw|State|"), Some(Format::Sacct));
        assert_eq!(format("  {\"nb_res\": 4,"), Some(Format::Batsim));
    }

    #[test]
    fn what_comes_after_blank_lines_is_told_by_itself() {
        let detected = |text: &str| detect(&mut text.as_bytes(), &Limits::default()).unwrap();
        assert_eq!(detected(" \n\n\t {\"jobs\""), (Format::Batsim, b" \n\n".to_vec(), 3));
        assert_eq!(detected("\n\n; {"), (Format::Swf, b"\n\n; {".to_vec(), 2));
    }

    /// A reader of so many bytes, which are made as they are read.
    fn endless(unit: &'static [u8], bytes: u64) -> impl Read {
        let mut at = 0;
        let made = move |buffer: &mut [u8]| {
            for byte in buffer.iter_mut() {
                *byte = unit[at % unit.len()];
                at += 1;
            }
            buffer.len()
        };
        struct Made<F>(F);
        impl<F: FnMut(&mut [u8]) -> usize> Read for Made<F> {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                Ok((self.0)(buffer))
            }
        }
        Made(made).take(bytes)
    }

    fn refused(bytes: impl Read, limits: &Limits) -> Exceeded {
        match read_from_within("t.swf", bytes, limits).unwrap_err() {
            error @ TraceError::Limit { exceeded, .. } => {
                let text = error.to_string();
                assert!(text.starts_with("read trace t.swf: "), "{text}");
                assert!(text.contains(exceeded.limit.variable()), "{text}");
                exceeded
            }
            error => panic!("{error}"),
        }
    }

    const GIB: u64 = 1 << 30;
    const ROW: &[u8] = b"1 0 -1 60 2 -1 -1 2 120 -1 1 1 1 -1 1 1 -1 -1\n";

    /// Compressed, a quarter of a GiB in many frames, which are made as quickly as one.
    fn bomb(unit: &[u8]) -> Vec<u8> {
        let part = unit.repeat((4 << 20) / unit.len());
        zstd::encode_all(&part[..], 1).unwrap().repeat(64)
    }

    #[test]
    fn what_expands_far_beyond_its_size_is_refused_after_little_of_it() {
        let limits = Limits::default();
        let begun = |bomb: Vec<u8>| [zstd::encode_all(LOG.as_bytes(), 1).unwrap(), bomb].concat();
        for (bomb, expected) in [
            (bomb(b"0"), Limit::Line),
            (bomb(b"\n"), Limit::Header),
            (bomb(b"; x\n"), Limit::Header),
            (begun(bomb(b"# x\n")), Limit::Header),
            (begun(bomb(b"\n")), Limit::Expansion),
            (bomb(ROW), Limit::Expansion),
        ] {
            assert!(bomb.len() < 200_000, "{}", bomb.len());
            assert_eq!(refused(&bomb[..], &limits).limit, expected);
        }
        // A gzip file expands a thousand times at most.
        let gzipped = gzip(&ROW.repeat((4 << 20) / ROW.len())).repeat(16);
        assert_eq!(refused(&gzipped[..], &limits).limit, Limit::Expansion);
        // Who trusts it may read it.
        let trusting = Limits { expansion: 1_000_000, ..limits };
        let rows = bomb(ROW);
        let jobs = read_from_within("t", &rows[..rows.len() / 8], &trusting).unwrap().records.len();
        assert_eq!(jobs, 8 * ((4 << 20) / ROW.len()));
    }

    #[test]
    fn a_line_without_end_is_refused_in_every_format_and_names_its_line() {
        let limits = Limits::default();
        for beginning in [
            "",
            LOG,
            "# JobID\tSubmitTime\tWaitTime\tRunTime\tNProcs\n",
            "WorkflowID,JobID,SubmitTime,RunTime,NProcs,ReqNProcs,Dependencies\n",
            "JobID|Submit|Elapsed|State|NCPUS\n",
        ] {
            let text = Cursor::new(beginning).chain(endless(b"7", GIB));
            let exceeded = refused(text, &limits);
            assert_eq!(exceeded.limit, Limit::Line, "{beginning}");
            let lines = beginning.lines().count() as u64;
            assert_eq!(exceeded.line, if lines == 0 { 0 } else { lines + 1 }, "{beginning}");
        }
        let document = Cursor::new("{\"nb_res\": 4, \"jobs\": [").chain(endless(b" ", GIB));
        assert_eq!(refused(document, &limits).limit, Limit::Document);
    }

    #[test]
    fn rows_comments_and_text_have_limits_that_can_be_lowered_and_raised() {
        let limits = Limits { rows: 3, ..Limits::default() };
        let three = endless(ROW, 3 * ROW.len() as u64);
        assert_eq!(read_from_within("t", three, &limits).unwrap().records.len(), 3);
        let four = || endless(ROW, 4 * ROW.len() as u64);
        assert_eq!(refused(four(), &limits), Exceeded { limit: Limit::Rows, most: 3, line: 4 });
        assert_eq!(read_from("t", four()).unwrap().records.len(), 4);
        let text = Limits { text: 100, ..Limits::default() };
        assert_eq!(refused(four(), &text).limit, Limit::Text);
        for comment in [b"; x\n".as_slice(), b"# x\n"] {
            assert_eq!(refused(endless(comment, 8 << 20), &Limits::default()).limit, Limit::Header);
        }
        let job = r#"{"id": 1, "subtime": 0, "res": 1, "profile": "p"},"#.repeat(4);
        let document =
            format!(r#"{{"nb_res": 4, "jobs": [{}], "profiles": {{}}}}"#, job.trim_end_matches(','));
        assert_eq!(refused(document.as_bytes(), &limits).limit, Limit::Rows);
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
