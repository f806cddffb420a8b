//! What a node must not forget, in its data directory: everything that [`protocol::journal`] calls durable, jobs to
//! come, the trace clock, addresses, and all events.
//!
//! Rows hold the state: one for each job and transfer. Several changes share one [`Journal::commit`], which is atomic
//! and only appends them; the event loop shows nothing to anybody before it. When enough changes are there, the next
//! commits bring them into the rows, some with each. A job that comes and goes in between never is a row, no commit
//! does more than in proportion to what was noted, and a start reads the rows and a bounded number of changes: what is
//! left, not what happened. The store is SQLite: one file, transactions, and tested for crashes.
//!
//! [`Journal`] is for the node, which writes to it through a [`Writer`]; [`inspect`] looks at a directory from outside.

mod changes;
#[cfg(feature = "doors")]
pub(crate) mod doors;
pub mod error;
pub mod inspect;
mod row;
mod saved;
mod store;
mod writer;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::time::{Duration, Instant};

use foldhash::fast::RandomState;
use protocol::handover::{Entry, Ledger, Record};
use protocol::journal::Kept;
use protocol::{Fact, PeerConfig};
use scheduler::{Event, JobId, SiteId, Span, TimedJob};
use serde::{Deserialize, Serialize};

use self::changes::{Changes, Rows};
pub use self::error::JournalError;
use self::row::{Key, Kind, Single};
pub use self::saved::Saved;
use self::store::{Commit, Store};
pub use self::writer::Writer;
use crate::clock::StartOrder;
pub use crate::limits::Durability;
use crate::metrics::Totals;
use crate::peer_address::PeerAddress;

/// The version of what is in the file.
pub const FORMAT: u32 = 5;

/// Bytes of changes that are gathered before they are brought into the rows: of some 150,000 jobs, which a start reads
/// in a fraction of a second. What comes and goes meanwhile never is a row.
const GATHERED_BYTES: usize = 12 * 1024 * 1024;
/// A commit counts as so many bytes of them at least: it is one more to read at the start.
const COMMIT_BYTES: usize = 16;
/// Rows that a commit brings up to date at least, if there are any: about a millisecond.
const ROWS_PER_COMMIT: usize = 512;
/// A change has at least so many bytes: so many rows per byte of changes, and the rows are up to date before as many
/// changes are gathered again.
const CHANGE_BYTES_MIN: usize = 3;

/// Whose journal it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// The version of the file.
    pub format: u32,
    /// The name of the run.
    pub run: String,
    /// The site that the journal is of.
    pub site: SiteId,
    /// Names and processors of all sites.
    pub grid: Vec<(String, u32)>,
    /// A number that no other journal has.
    pub instance: u64,
}

/// The journal of one node.
#[derive(Debug)]
pub struct Journal {
    store: Store,
    /// Transfers as of all that was noted.
    ledger: Ledger,
    incarnation: u32,
    /// Jobs that are owned; of those that execute, in which incarnation they began.
    owned: HashMap<JobId, Option<u32>, RandomState>,
    taken_over: u64,
    /// Of how many jobs the time has come, by portion.
    come: BTreeMap<u64, u64>,
    /// Portions of which that is not in the changes.
    coming: BTreeSet<u64>,
    /// What was noted since rows last became stale; the end of it waits for the next commit.
    changes: Changes,
    /// Events that it adds.
    events: Vec<Event>,
    /// The number of the first of them.
    first_event: u64,
    /// Commits since then.
    gathered: usize,
    /// Rows that are to be brought up to date, and how many of them are.
    stale: Rows,
    fresh: usize,
    /// With them the rows have everything up to this commit.
    stale_until: Option<u64>,
}

/// What opening a journal took, on the wall clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct Took {
    /// Opening and checking the file.
    pub open: Duration,
    /// Reading what it says.
    pub read: Duration,
}

/// The job whose run time is kept with a fact.
pub fn job_with_run_time(fact: &Fact) -> Option<JobId> {
    match fact {
        Fact::Owns { job, .. } => Some(job.id),
        Fact::Ledger(Record::Out { transfer, .. }) => Some(transfer.job.id),
        Fact::Guarded(guarded) => Some(guarded.job.id),
        _ => None,
    }
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
        let begun = Instant::now();
        let (mut store, is_new) = Store::open(dir, durability, bytes_max)?;
        if is_new {
            let mut changes = Changes::default();
            changes.put(Key::single(Single::About), about);
            let (changes, rows, events) = (changes.pending(), &[], &[]);
            store.commit(&Commit { changes, rows, folded: None, first_event: 0, events })?;
            store.read_log()?;
        }
        let open = begun.elapsed();
        let mut saved = Saved::read(&store)?;
        saved.took = Took { open, read: begun.elapsed() - open };
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
        store.take_over()?;
        let journal = Journal::on(store, &saved);
        Ok((journal, saved))
    }

    /// A journal that goes on where it was read.
    fn on(mut store: Store, saved: &Saved) -> Journal {
        let stale_until = Some(store.commits());
        Journal {
            ledger: saved.durable.ledger.clone(),
            incarnation: saved.durable.incarnation.unwrap_or(0),
            owned: saved.durable.jobs.keys().map(|job| (*job, saved.begun.get(job).copied())).collect(),
            taken_over: saved.durable.taken_over.len() as u64,
            come: saved.come.clone(),
            coming: BTreeSet::new(),
            changes: Changes::default(),
            events: Vec::new(),
            first_event: saved.next_event,
            gathered: 0,
            stale: store.take_logged(),
            fresh: 0,
            stale_until,
            store,
        }
    }

    /// Whether a site of this configuration can have written what was read.
    ///
    /// # Errors
    /// If not: then it is damaged.
    pub fn check(&self, saved: &Saved, config: &PeerConfig) -> Result<(), JournalError> {
        saved.check(config).map_err(|what| self.store.damaged(what))
    }

    /// Notes one change of what the site owns; `run_time` is that of [`job_with_run_time`], if it is known.
    pub fn write(&mut self, fact: &Fact, run_time: Option<Span>) {
        match *fact {
            Fact::Began { incarnation } => {
                self.incarnation = incarnation;
                self.ledger.began(incarnation);
                self.put(Key::single(Single::Incarnation), &incarnation);
            }
            Fact::Owns { job, custody, place } => {
                let before = self.owned.insert(job.id, None);
                self.executes_no_longer(job.id, before);
                let key = Key::new(Kind::Job, job.id.0, 0);
                let kept = (Kept { job, custody, place, started: None }, run_time);
                if before.is_none() { self.changes.put_new(key, &kept) } else { self.changes.put(key, &kept) }
            }
            Fact::Started { job, at } => {
                self.owned.insert(job, Some(self.incarnation));
                self.changes.put_new(Key::new(Kind::Begun, job.0, self.incarnation.into()), &at);
            }
            Fact::Ended { job } => self.owned_no_longer(job),
            Fact::Ledger(record) => self.ledger(&record, run_time),
            Fact::Routed { to, number } => {
                self.changes.put_new(Key::new(Kind::Route, to.0.into(), number), &())
            }
            Fact::Guarded(guarded) => {
                self.put(Key::new(Kind::Guarded, guarded.job.id.0, 0), &(guarded, run_time));
            }
            Fact::Unguarded { job } => self.remove(Key::new(Kind::Guarded, job.0, 0)),
            Fact::Reports(report) => self.put(Key::new(Kind::Report, report.job.0, 0), &report),
            Fact::Reported { job } => self.remove(Key::new(Kind::Report, job.0, 0)),
            Fact::TookOver(void) | Fact::PassesOn(void) => {
                self.taken_over += 1;
                self.put(Key::new(Kind::TakenOver, self.taken_over, 0), &void);
                self.put(Key::new(Kind::Void, void.job.0, 0), &void.epoch);
            }
            Fact::Superseded(void) => self.put(Key::new(Kind::Void, void.job.0, 0), &void.epoch),
            Fact::Remembers { topic, words: Some(words) } => self.put(Key::memory(topic), &words),
            Fact::Remembers { topic, words: None } => self.remove(Key::memory(topic)),
        }
    }

    /// A job executes no longer, if it was owned and did.
    fn executes_no_longer(&mut self, job: JobId, owned: Option<Option<u32>>) {
        if let Some(Some(incarnation)) = owned {
            self.remove(Key::new(Kind::Begun, job.0, incarnation.into()));
        }
    }

    fn owned_no_longer(&mut self, job: JobId) {
        let owned = self.owned.remove(&job);
        self.executes_no_longer(job, owned);
        self.remove(Key::new(Kind::Job, job.0, 0));
    }

    fn ledger(&mut self, record: &Record, run_time: Option<Span>) {
        if let Record::Floor { from, floor } = *record {
            for number in self.ledger.tombstones_below(from, floor) {
                self.changes.remove(Key::new(Kind::Tombstone, from.0.into(), number));
            }
        }
        self.ledger.apply(record);
        match *record {
            Record::Out { to, transfer } => {
                self.owned_no_longer(transfer.job.id);
                self.changes
                    .put_new(Key::new(Kind::Out, to.0.into(), transfer.number), &(transfer, run_time));
                self.put(Key::new(Kind::Next, to.0.into(), 0), &(transfer.number + 1));
            }
            Record::Settled { to, number, .. } | Record::Voided { to, number } => {
                self.remove(Key::new(Kind::Out, to.0.into(), number));
                self.remove(Key::new(Kind::Route, to.0.into(), number));
            }
            Record::Tombstone { from, number, answer } => {
                self.changes.put_new(Key::new(Kind::Tombstone, from.0.into(), number), &answer);
                self.numbers(from);
            }
            Record::Floor { from, .. } => self.numbers(from),
            Record::Renumbered { to, number } => self.put(Key::new(Kind::Next, to.0.into(), 0), &number),
        }
    }

    fn numbers(&mut self, from: SiteId) {
        let Entry::Numbers { floor, seen, .. } = self.ledger.numbers(from) else { return };
        self.put(Key::new(Kind::Numbers, from.0.into(), 0), &(floor, seen));
    }

    fn put(&mut self, key: Key, value: &impl Serialize) {
        self.changes.put(key, value);
    }

    fn remove(&mut self, key: Key) {
        self.changes.remove(key);
    }

    /// Notes an event.
    pub fn event(&mut self, event: Event) {
        self.events.push(event);
    }

    /// Notes a portion of jobs that were handed over and are to be submitted later.
    pub fn handed_over(&mut self, portion: u64, mut jobs: Vec<TimedJob>) {
        jobs.sort_unstable_by_key(|job| job.spec.key());
        self.changes.put_new(Key::new(Kind::Portion, portion, 0), &jobs);
    }

    /// Notes that the time of the next job of a portion has come, in the order of the queue.
    pub fn submitted(&mut self, portion: u64) {
        *self.come.entry(portion).or_default() += 1;
        self.coming.insert(portion);
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
    pub fn other(&mut self, site: SiteId, instance: u64) {
        self.put(Key::new(Kind::Other, site.0.into(), 0), &instance);
    }

    /// Notes metrics as of all events that were noted.
    pub fn totals(&mut self, totals: &Totals) {
        self.put(Key::single(Single::Totals), totals);
    }

    /// The number of the next event.
    pub fn next_event(&self) -> u64 {
        self.first_event + self.events.len() as u64
    }

    /// Whether there is something to commit.
    pub fn is_dirty(&self) -> bool {
        !self.changes.pending().is_empty() || !self.coming.is_empty() || !self.events.is_empty()
    }

    /// Writes everything that was noted, or nothing.
    ///
    /// # Errors
    /// If it cannot be written. Then the node must stop: what it would show is not durable.
    pub fn commit(&mut self) -> Result<(), JournalError> {
        if self.is_dirty() { self.write_all() } else { Ok(()) }
    }

    /// Brings some rows up to date, if there are any to bring; for when there is nothing else to do. Whether there
    /// are more.
    ///
    /// # Errors
    /// As for [`Journal::commit`].
    pub fn tidy(&mut self) -> Result<bool, JournalError> {
        if self.stale_until.is_none() {
            return Ok(false);
        }
        self.write_all()?;
        Ok(self.stale_until.is_some())
    }

    fn write_all(&mut self) -> Result<(), JournalError> {
        for portion in std::mem::take(&mut self.coming) {
            self.changes.put(Key::new(Kind::Come, portion, 0), &self.come[&portion]);
        }
        let changes = self.changes.pending();
        let some = ROWS_PER_COMMIT.max(changes.len() / CHANGE_BYTES_MIN);
        let rows: Vec<_> = self.stale.from(self.fresh).take(some).collect();
        let is_done = self.fresh + rows.len() == self.stale.len();
        let folded = self.stale_until.filter(|_| is_done);
        let (first_event, events) = (self.first_event, &self.events[..]);
        self.store.commit(&Commit { changes, rows: &rows, folded, first_event, events })?;
        self.fresh += rows.len();
        if is_done {
            (self.stale, self.fresh, self.stale_until) = (Rows::default(), 0, None);
        }
        self.changes.committed();
        self.gathered += 1;
        self.first_event = self.next_event();
        self.events.clear();
        // While rows are stale, more are gathered: two generations never mix.
        if self.changes.len() + self.gathered * COMMIT_BYTES >= GATHERED_BYTES && self.stale_until.is_none() {
            (self.stale, self.gathered) = (self.changes.take(), 0);
            self.stale_until = Some(self.store.commits());
        }
        Ok(())
    }

    /// How often something was written in all incarnations.
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
