//! What a node must not forget, in its data directory: everything that [`protocol::journal`] calls durable, jobs to
//! come, the trace clock, addresses, and all events.
//!
//! State, not a log: a row for each job and transfer, changed in place, so that a restart takes as long as what is
//! left and not as long as what happened. Several changes share one [`Journal::commit`], which is atomic; the event
//! loop shows nothing to anybody before it. The store is SQLite: one file, transactions, and tested for crashes.
//!
//! [`Journal`] is for the node; [`inspect`] looks at a directory from outside.

mod error;
pub mod inspect;
mod row;
mod saved;
mod store;

use std::collections::BTreeMap;
use std::path::Path;

use protocol::handover::{Entry, Record};
use protocol::{Durable, Fact};
use scheduler::{Event, JobId, SiteId, Span, TimedJob};
use serde::{Deserialize, Serialize};

pub use self::error::JournalError;
use self::row::{Key, Kind, Single, encode};
pub use self::saved::Saved;
use self::store::Store;
use crate::clock::StartOrder;
use crate::config::PeerAddress;

/// The version of what is in the file.
pub const FORMAT: u32 = 1;

/// What a journal survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// The end of the process, by `kill -9` too. What is written is left to the system to bring to the disk.
    #[default]
    Process,
    /// Also a crash of the machine: every commit waits for the disk.
    Disk,
}

/// Whose journal it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// The version of the file.
    pub format: u32,
    /// The name of the run.
    pub run: String,
    /// The site.
    pub site: SiteId,
    /// Names and processors of all sites.
    pub grid: Vec<(String, u32)>,
    /// A number that no other journal has.
    pub incarnation: u64,
}

/// The journal of one node.
#[derive(Debug)]
pub struct Journal {
    store: Store,
    /// What the rows say once all changes are written.
    durable: Durable,
    /// Rows to change; none to remove.
    pending: BTreeMap<Key, Option<Vec<u8>>>,
    /// Events to add.
    events: Vec<Event>,
    /// The number of the first of them.
    first_event: u64,
    portions: u64,
}

impl Journal {
    /// Opens the journal of a directory, or begins one, and reads what it says.
    ///
    /// # Errors
    /// If it is in use, about something else, or damaged; then nothing was changed.
    pub fn open(
        dir: &Path,
        about: &About,
        durability: Durability,
        bytes_max: Option<u64>,
    ) -> Result<(Journal, Saved), JournalError> {
        let (mut store, is_new) = Store::open(dir, durability, bytes_max)?;
        if is_new {
            let rows = [(Key::single(Single::About), Some(encode(about)))].into();
            store.commit(&rows, 0, &[])?;
        }
        let saved = Saved::read(&store)?;
        let theirs = &saved.about;
        let of_grid = |about: &About| {
            let sites: Vec<String> = about.grid.iter().map(|(name, size)| format!("{name}={size}")).collect();
            sites.join(",")
        };
        for (what, theirs, ours) in [
            ("format", theirs.format.to_string(), FORMAT.to_string()),
            ("run", theirs.run.clone(), about.run.clone()),
            ("site", theirs.site.to_string(), about.site.to_string()),
            ("grid", of_grid(theirs), of_grid(about)),
        ] {
            if theirs != ours {
                return Err(JournalError::Foreign { dir: dir.to_path_buf(), what, theirs, ours });
            }
        }
        let journal = Journal {
            store,
            durable: saved.durable.clone(),
            pending: BTreeMap::new(),
            events: Vec::new(),
            first_event: saved.next_event,
            portions: saved.portions,
        };
        Ok((journal, saved))
    }

    /// Notes one change of what the site owns; `run_time` is that of a job here.
    pub fn write(&mut self, fact: &Fact, run_time: impl Fn(JobId) -> Option<Span>) {
        if let Fact::Ledger(Record::Floor { from, floor }) = *fact {
            for number in self.durable.ledger.tombs_below(from, floor) {
                self.pending.insert(Key::new(Kind::Tomb, from.0.into(), number), None);
            }
        }
        self.durable.apply(fact);
        match *fact {
            Fact::Began { life } => self.put(Key::single(Single::Life), &life),
            Fact::Owns { job: scheduler::JobSpec { id, .. }, .. } | Fact::Started { job: id, .. } => {
                let value = encode(&(self.durable.jobs[&id], run_time(id)));
                self.pending.insert(Key::new(Kind::Job, id.0, 0), Some(value));
            }
            Fact::Ended { job } => self.remove(Key::new(Kind::Job, job.0, 0)),
            Fact::Ledger(record) => self.ledger(&record, run_time),
            Fact::Routed { to, number } => self.put(Key::new(Kind::Route, to.0.into(), number), &()),
            Fact::Ward(ward) => {
                let id = ward.job.id;
                self.put(Key::new(Kind::Ward, id.0, 0), &(ward, run_time(id)));
            }
            Fact::Unward { job } => self.remove(Key::new(Kind::Ward, job.0, 0)),
            Fact::Reports(report) => self.put(Key::new(Kind::Report, report.job.0, 0), &report),
            Fact::Reported { job } => self.remove(Key::new(Kind::Report, job.0, 0)),
            Fact::TookOver(void) => {
                let number = self.durable.taken_over.len() as u64;
                self.put(Key::new(Kind::TakenOver, number, 0), &void);
                self.put(Key::new(Kind::Void, void.job.0, 0), &void.epoch);
            }
            Fact::Superseded(void) => self.put(Key::new(Kind::Void, void.job.0, 0), &void.epoch),
        }
    }

    fn ledger(&mut self, record: &Record, run_time: impl Fn(JobId) -> Option<Span>) {
        match *record {
            Record::Out { to, transfer } => {
                let id = transfer.job.id;
                self.remove(Key::new(Kind::Job, id.0, 0));
                self.put(Key::new(Kind::Out, to.0.into(), transfer.number), &(transfer, run_time(id)));
                self.put(Key::new(Kind::Next, to.0.into(), 0), &(transfer.number + 1));
            }
            Record::Settled { to, number, .. } | Record::Voided { to, number } => {
                self.remove(Key::new(Kind::Out, to.0.into(), number));
                self.remove(Key::new(Kind::Route, to.0.into(), number));
            }
            Record::Tomb { from, number, answer } => {
                self.put(Key::new(Kind::Tomb, from.0.into(), number), &answer);
                self.numbers(from);
            }
            Record::Floor { from, .. } => self.numbers(from),
        }
    }

    fn numbers(&mut self, from: SiteId) {
        let Entry::Numbers { floor, seen, .. } = self.durable.ledger.numbers(from) else { return };
        self.put(Key::new(Kind::Numbers, from.0.into(), 0), &(floor, seen));
    }

    fn put(&mut self, key: Key, value: &impl Serialize) {
        self.pending.insert(key, Some(encode(value)));
    }

    fn remove(&mut self, key: Key) {
        self.pending.insert(key, None);
    }

    /// Notes an event.
    pub fn event(&mut self, event: Event) {
        self.events.push(event);
    }

    /// Notes jobs that were handed over and are to be submitted later.
    pub fn handed_over(&mut self, jobs: &[TimedJob]) {
        let ids: Vec<JobId> = jobs.iter().map(|job| job.spec.id).collect();
        self.put(Key::new(Kind::Portion, self.portions, 0), &ids);
        self.portions += 1;
        for job in jobs {
            self.put(Key::new(Kind::Arrival, job.spec.id.0, 0), job);
        }
    }

    /// Notes that the time of a job has come.
    pub fn submitted(&mut self, job: JobId) {
        self.remove(Key::new(Kind::Arrival, job.0, 0));
    }

    /// Notes when the trace clock starts.
    pub fn clock(&mut self, order: &StartOrder) {
        self.put(Key::single(Single::Clock), order);
    }

    /// Notes where the node listens.
    pub fn listen(&mut self, addresses: &[String]) {
        self.put(Key::single(Single::Listen), &addresses);
    }

    /// Notes where other sites listen.
    pub fn peers(&mut self, addresses: &[PeerAddress]) {
        self.put(Key::single(Single::Peers), &addresses);
    }

    /// Notes which journal another site has.
    pub fn other(&mut self, site: SiteId, incarnation: u64) {
        self.put(Key::new(Kind::Other, site.0.into(), 0), &incarnation);
    }

    /// Whether there is something to commit.
    pub fn is_dirty(&self) -> bool {
        !self.pending.is_empty() || !self.events.is_empty()
    }

    /// Writes everything that was noted, or nothing.
    ///
    /// # Errors
    /// If it cannot be written. Then the node must stop: what it would show is not durable.
    pub fn commit(&mut self) -> Result<(), JournalError> {
        if !self.is_dirty() {
            return Ok(());
        }
        self.store.commit(&self.pending, self.first_event, &self.events)?;
        self.pending.clear();
        self.first_event += self.events.len() as u64;
        self.events.clear();
        Ok(())
    }

    /// How often something was written in all lives.
    pub fn commits(&self) -> u64 {
        self.store.commits()
    }

    /// At most `limit` events that were written, from number `from` on.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn read_events(&self, from: u64, limit: usize) -> Result<Vec<Event>, JournalError> {
        let mut page = Vec::new();
        self.store.events(from, &mut |first, events| {
            let events = events.map_err(|what| self.store.damaged(what))?;
            let skip = usize::try_from(from.saturating_sub(first)).unwrap_or(usize::MAX);
            page.extend(events.into_iter().skip(skip).take(limit - page.len()));
            Ok(page.len() < limit)
        })?;
        Ok(page)
    }
}
