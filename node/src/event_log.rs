//! What happened at this site, numbered from 0: the latest in memory for the coordinator to fetch, all of it in a
//! file if one is named.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::Path;

use scheduler::Event;

/// Events that are asked for have been forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "event {from} is no longer in memory, the oldest is {first}; fetch more often or write events to a file"
)]
pub struct Forgotten {
    /// The number asked for.
    pub from: u64,
    /// The oldest that is kept.
    pub first: u64,
}

/// The event log of one site.
#[derive(Debug)]
pub struct EventLog {
    kept: VecDeque<Event>,
    /// Number of the first event in `kept`.
    first: u64,
    /// Events of earlier incarnations.
    earlier: u64,
    kept_max: usize,
    file: Option<BufWriter<File>>,
}

impl EventLog {
    /// An empty log that keeps at most `kept_max` events in memory and writes all to `file`, made anew.
    ///
    /// # Errors
    /// If the file cannot be made.
    pub fn new(kept_max: usize, file: Option<&Path>) -> io::Result<EventLog> {
        let file = file.map(File::create).transpose()?.map(BufWriter::new);
        Ok(EventLog { kept: VecDeque::new(), first: 0, earlier: 0, kept_max, file })
    }

    /// A log that goes on after so many events of earlier incarnations, which are not in memory.
    pub fn resume(&mut self, earlier: u64) {
        self.first = earlier;
        self.earlier = earlier;
    }

    /// Adds an event.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn push(&mut self, event: Event) -> io::Result<()> {
        if let Some(file) = &mut self.file {
            serde_json::to_writer(&mut *file, &event)?;
            file.write_all(b"\n")?;
        }
        if self.kept.len() >= self.kept_max {
            self.kept.pop_front();
            self.first += 1;
        }
        self.kept.push_back(event);
        Ok(())
    }

    /// At most `limit` events from number `from` on; empty if there are none yet.
    ///
    /// # Errors
    /// If the first of them has been forgotten.
    pub fn page(&self, from: u64, limit: usize) -> Result<Vec<Event>, Forgotten> {
        let skip = from.checked_sub(self.first).ok_or(Forgotten { from, first: self.first })?;
        let skip = usize::try_from(skip).unwrap_or(usize::MAX);
        Ok(self.kept.iter().skip(skip).take(limit).copied().collect())
    }

    /// The number of the next event, which is how many there were.
    pub fn next(&self) -> u64 {
        self.first + self.kept.len() as u64
    }

    /// How many events of this incarnation are no longer in memory.
    pub fn forgotten(&self) -> u64 {
        self.first - self.earlier
    }

    /// Writes out what is buffered for the file.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), BufWriter::flush)
    }
}

#[cfg(test)]
mod tests {
    use scheduler::{EventKind, JobId, SiteId, Time};

    use super::*;

    fn event(number: u64) -> Event {
        let kind = EventKind::Completed { job: JobId(number), processors: 1 };
        Event { at: Time::ZERO, site: SiteId(1), kind }
    }

    #[test]
    fn pages_continue_where_the_last_one_ended() {
        let mut log = EventLog::new(10, None).unwrap();
        for number in 0..5 {
            log.push(event(number)).unwrap();
        }
        assert_eq!(log.page(0, 2).unwrap(), [event(0), event(1)]);
        assert_eq!(log.page(2, 100).unwrap(), [event(2), event(3), event(4)]);
        assert_eq!(log.page(5, 100).unwrap(), []);
    }

    #[test]
    fn the_oldest_events_are_forgotten_and_asking_for_them_is_an_error() {
        let mut log = EventLog::new(3, None).unwrap();
        for number in 0..5 {
            log.push(event(number)).unwrap();
        }
        assert_eq!((log.next(), log.forgotten()), (5, 2));
        assert_eq!(log.page(2, 1).unwrap(), [event(2)]);
        assert_eq!(log.page(1, 1), Err(Forgotten { from: 1, first: 2 }));
    }

    #[test]
    fn a_log_goes_on_after_earlier_events() {
        let mut log = EventLog::new(3, None).unwrap();
        log.resume(5);
        log.push(event(5)).unwrap();
        assert_eq!(log.page(5, 10).unwrap(), [event(5)]);
        assert_eq!(log.page(3, 10), Err(Forgotten { from: 3, first: 5 }));
        assert_eq!((log.next(), log.forgotten()), (6, 0));
    }

    #[test]
    fn the_file_has_every_event_as_a_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events.jsonl");
        let mut log = EventLog::new(1, Some(&path)).unwrap();
        for number in 0..3 {
            log.push(event(number)).unwrap();
        }
        log.flush().unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let read: Vec<Event> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(read, [event(0), event(1), event(2)]);
    }
}
