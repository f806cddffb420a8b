//! `events.jsonl.zst`: one event a line as JSON, compressed with zstd, written while the run goes on.
//!
//! What was logged is on disk at the latest [`FLUSH_EVERY`] events later, also if the program is killed, and
//! whole when the log is finished or dropped. While the disk is full it waits in memory, at most [`BACKLOG_MAX`] bytes. `zstdcat events.jsonl.zst` shows it.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use scheduler::{Event, SiteId};
use workload::limits::{Exceeded, Limits, read_line};
use workload::source::{decompress, open};

#[cfg(doc)]
use crate::backlog::BACKLOG_MAX;
use crate::backlog::Backlog;

/// Bytes of lines that are handed to the compressor at once; arbitrary, a few hundred lines.
const PIECE: usize = 1 << 16;
/// Events between two flushes to the file: a second or less of simulation, and small cost in size.
const FLUSH_EVERY: u64 = 1 << 18;
/// Higher levels cost more time than a simulation takes and save a few percent.
const LEVEL: i32 = 1;

/// A log that events are appended to.
pub struct EventLog {
    path: PathBuf,
    lines: Vec<u8>,
    written: u64,
    /// Whether an error was returned: whoever got it says so, and nothing is written any more.
    failed: bool,
    /// `None` after the log was finished.
    encoder: Option<zstd::Encoder<'static, Backlog>>,
}

/// Why events could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum EventLogError {
    /// The file could not be written.
    #[error("write {}: {cause}; is the disk full?", path.display())]
    Write {
        /// The log that could not be written.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// The file could not be read, or ends in the middle: the run was killed.
    #[error("read {}: line {line}: {cause}; was it cut off? Repeat the run", path.display())]
    Read {
        /// The log that could not be read.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What the system said.
        cause: io::Error,
    },
    /// It costs more than a file may, unless somebody says so.
    #[error("read {}: {exceeded}", path.display())]
    Limit {
        /// The log that costs too much.
        path: PathBuf,
        /// Which limit it is over, and where.
        exceeded: Exceeded,
    },
    /// A line is no event.
    #[error("read {}: line {line}: {cause}; was it written by another version?", path.display())]
    Malformed {
        /// The log with that line.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What is wrong.
        cause: serde_json::Error,
    },
}

impl EventLog {
    /// Starts a log, replacing a file of that name.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub fn create(path: &Path) -> Result<EventLog, EventLogError> {
        let wrap = |cause| EventLogError::Write { path: path.to_path_buf(), cause };
        let encoder = Backlog::create(path).and_then(|file| zstd::Encoder::new(file, LEVEL)).map_err(wrap)?;
        let lines = Vec::with_capacity(PIECE + 1024);
        Ok(EventLog { path: path.to_path_buf(), lines, written: 0, failed: false, encoder: Some(encoder) })
    }

    /// Appends one event.
    ///
    /// # Errors
    /// If the disk has taken nothing for so long that too much waits.
    pub fn write(&mut self, event: &Event) -> Result<(), EventLogError> {
        serde_json::to_writer(&mut self.lines, event).expect("an event is plain data");
        self.lines.push(b'\n');
        self.written += 1;
        let flush = self.written.is_multiple_of(FLUSH_EVERY);
        if flush || self.lines.len() >= PIECE {
            let done = self.hand_over(flush);
            done.map_err(|cause| self.fail(cause))?;
        }
        Ok(())
    }

    /// Why the disk takes nothing and events wait in memory, the first time that this is asked since.
    pub fn refused(&mut self) -> Option<io::Error> {
        self.encoder.as_mut()?.get_mut().refused()
    }

    /// How many events were appended.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Completes the file.
    ///
    /// # Errors
    /// If the disk does not take the rest.
    pub fn finish(mut self) -> Result<(), EventLogError> {
        let done = self.complete();
        done.map_err(|cause| self.fail(cause))
    }

    fn fail(&mut self, cause: io::Error) -> EventLogError {
        self.failed = true;
        EventLogError::Write { path: self.path.clone(), cause }
    }

    fn hand_over(&mut self, flush: bool) -> io::Result<()> {
        let encoder = self.encoder.as_mut().expect("the log is open until it is finished");
        encoder.write_all(&self.lines)?;
        self.lines.clear();
        if flush { encoder.flush() } else { Ok(()) }
    }

    fn complete(&mut self) -> io::Result<()> {
        if self.failed || self.encoder.is_none() {
            return Ok(());
        }
        self.hand_over(false)?;
        match self.encoder.take() {
            Some(encoder) => encoder.finish()?.finish(),
            None => Ok(()),
        }
    }
}

impl Drop for EventLog {
    fn drop(&mut self) {
        if let Err(error) = self.complete() {
            // Nobody is left to return it to; `finish` is the way to learn of it.
            let _ = writeln!(io::stderr(), "warning: {} is incomplete: {error}", self.path.display());
        }
    }
}

/// Reads a log back, event by event.
pub struct EventReader {
    path: PathBuf,
    line: u64,
    messages: Messages,
    limits: Limits,
    /// How many sites there are, if that is known.
    sites: Option<usize>,
    text: Vec<u8>,
    lines: Box<dyn BufRead>,
}

impl EventReader {
    /// Opens a log that may cost so much.
    ///
    /// # Errors
    /// If there is no such file or its first bytes cannot be read.
    pub fn open(path: &Path, limits: Limits) -> Result<EventReader, EventLogError> {
        let wrap = |cause| EventLogError::Read { path: path.to_path_buf(), line: 1, cause };
        let whole = |file: File| {
            let mut bytes = BufReader::new(file);
            // No compressed file has no bytes: the disk was full.
            if path.extension().is_some_and(|name| name == "zst") && bytes.fill_buf()?.is_empty() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            decompress(bytes, &limits)
        };
        let lines = open(path).and_then(whole).map_err(wrap)?;
        Ok(EventReader {
            path: path.to_path_buf(),
            line: 0,
            messages: Messages::All,
            limits,
            sites: None,
            text: Vec::new(),
            lines,
        })
    }

    /// Takes no event of or about another site than the first so many: whoever looks one up would not find it.
    #[must_use]
    pub fn of_sites(self, sites: usize) -> EventReader {
        EventReader { sites: Some(sites), ..self }
    }

    /// The event of the line that was read.
    fn event(&self) -> Result<Event, serde_json::Error> {
        let event: Event = serde_json::from_slice(&self.text)?;
        let is_there = |site: SiteId, sites: usize| site.0 > 0 && site.0 as usize <= sites;
        match self.sites {
            Some(sites) => match event.sites().find(|&site| !is_there(site, sites)) {
                Some(site) => {
                    let reason = format!("it names site {site}, and the manifest has {sites} sites");
                    Err(serde::de::Error::custom(reason))
                }
                None => Ok(event),
            },
            None => Ok(event),
        }
    }

    /// Leaves out messages that were sent once and arrived, which are most of a log and say nothing of sites or jobs.
    #[must_use]
    pub fn without_messages(self) -> EventReader {
        EventReader { messages: Messages::Few { passed: false }, ..self }
    }

    /// Line of the last event, from 1, in the log as it is.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// Whether such a message was left out so far.
    pub fn passed_messages(&self) -> bool {
        self.messages == Messages::Few { passed: true }
    }
}

/// Which events of messages are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Messages {
    /// Every one.
    All,
    /// Only those that were lost or repeated; whether there was another.
    Few { passed: bool },
}

/// Whether a line is known at sight to tell of a message that was sent for the first time, or arrived. Any other layout
/// than the one written here is no such line, and is read in full.
fn is_plain_message(line: &[u8]) -> bool {
    // No key before it has this letter.
    let Some(kind) = line.iter().position(|&byte| byte == b'k') else { return false };
    let kind = &line[kind..];
    kind.starts_with(br#"kind":{"received":{"#)
        || (kind.starts_with(br#"kind":{"sent":{"#)
            && kind.trim_ascii_end().ends_with(br#","retry":false}}}"#))
}

impl Iterator for EventReader {
    type Item = Result<Event, EventLogError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.line += 1;
        let mut read = read_line(&mut self.lines, &mut self.text, self.limits.line);
        if let Messages::Few { passed } = &mut self.messages {
            while matches!(read, Ok(1..)) && is_plain_message(&self.text) {
                *passed = true;
                self.line += 1;
                read = read_line(&mut self.lines, &mut self.text, self.limits.line);
            }
        }
        let (path, line) = (&self.path, self.line);
        match read {
            Ok(0) => None,
            Ok(_) => {
                let event = self.event();
                Some(event.map_err(|cause| EventLogError::Malformed { path: path.clone(), line, cause }))
            }
            Err(cause) => Some(Err(match Exceeded::of(&cause) {
                Some(exceeded) => {
                    EventLogError::Limit { path: path.clone(), exceeded: Exceeded { line, ..exceeded } }
                }
                None => EventLogError::Read { path: path.clone(), line, cause },
            })),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::folder;
    use scheduler::{EventKind, JobId, SiteId, Time};
    use workload::source::ZSTD;

    fn event(number: u64) -> Event {
        let kind = EventKind::Started { job: JobId(number), processors: 2, hops: 0 };
        Event { at: Time::from_secs(number as i64), site: SiteId(1), kind }
    }

    #[test]
    fn events_are_read_back_as_written() {
        let path = folder("event_log").join("events.jsonl.zst");
        let mut log = EventLog::create(&path).unwrap();
        let events: Vec<Event> = (0..3000).map(event).collect();
        for event in &events {
            log.write(event).unwrap();
        }
        log.finish().unwrap();

        let read: Vec<Event> =
            EventReader::open(&path, Limits::default()).unwrap().map(Result::unwrap).collect();
        assert_eq!(read, events);
    }

    #[test]
    fn a_dropped_log_is_whole() {
        let path = folder("event_log_dropped").join("events.jsonl.zst");
        let mut log = EventLog::create(&path).unwrap();
        log.write(&event(1)).unwrap();
        drop(log);
        assert_eq!(EventReader::open(&path, Limits::default()).unwrap().count(), 1);
    }

    #[test]
    fn logs_of_older_releases_can_be_read() {
        let granted = r#"{"at":5,"site":1,"kind":{"granted":{"job":7,"to":2,"transfer":3,"hops":1}}}"#;
        let requested = r#"{"at":4,"site":2,"kind":{"requested":{"victim":1,"seq":2,"offer":8}}}"#;
        let read = |line| serde_json::from_str::<Event>(line).unwrap().kind;
        let cause = scheduler::event::GrantCause::Unknown;
        assert_eq!(
            read(granted),
            EventKind::Granted { job: JobId(7), to: SiteId(2), transfer: 3, hops: 1, cause, request: 0 }
        );
        assert_eq!(
            read(requested),
            EventKind::Requested { victim: SiteId(1), seq: 2, offer: 8, view_age: None }
        );
    }

    #[test]
    fn a_log_of_a_full_disk_is_said_to_be_cut_off() {
        let path = folder("event_log_cut").join("events.jsonl.zst");
        for bytes in [&[][..], &ZSTD[..1], &ZSTD[..3], &ZSTD[..]] {
            std::fs::write(&path, bytes).unwrap();
            let error =
                EventReader::open(&path, Limits::default()).and_then(|mut log| log.next().transpose());
            let error = error.expect_err("it ends in the middle").to_string();
            assert!(error.contains("was it cut off?"), "{error}");
        }
    }

    #[test]
    fn a_wrong_line_is_named() {
        let path = folder("event_log_wrong").join("events.jsonl.zst");
        let mut encoder = zstd::Encoder::new(File::create(&path).unwrap(), 1).unwrap();
        encoder.write_all(b"{\"at\":1}\n").unwrap();
        encoder.finish().unwrap();
        let error =
            EventReader::open(&path, Limits::default()).unwrap().next().unwrap().unwrap_err().to_string();
        assert!(error.contains("line 1"), "{error}");
    }
}
