//! Looks at the journal in a directory without a node: what is readable, and what it says.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use protocol::Durable;
use protocol::journal::restarts_of;
use scheduler::{Event, JobId, SiteId, TimedJob};

use super::About;
use super::error::JournalError;
use super::row::{Kind, Single};
use super::saved::Saved;
use super::store::Store;
use crate::clock::StartOrder;
use crate::instance::lost_before;

/// What can be read of a journal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Readable rows by kind, in words.
    pub readable: Vec<(&'static str, u64)>,
    /// How many events can be read.
    pub events: u64,
    /// Everything that is wrong; nothing in a good journal.
    pub damage: Vec<String>,
}

/// Reads everything that can be read. A node may be using the directory.
///
/// # Errors
/// If there is no journal, or it cannot be opened.
pub fn check(dir: &Path) -> Result<Checked, JournalError> {
    let store = Store::look(dir)?;
    let mut checked = Checked::default();
    if let Err(error) = store.check("(1)") {
        checked.damage.push(error.to_string());
    }
    checked.damage.extend(store.damage().iter().cloned());
    for kind in Kind::ALL {
        let mut readable = 0;
        let read = store.rows(kind, &mut |row| {
            match row {
                Ok(_) => readable += 1,
                Err(what) => checked.damage.push(what),
            }
            Ok(())
        });
        checked.damage.extend(read.err().map(|error| error.to_string()));
        checked.readable.push((kind.name(), readable));
    }
    let read = store.events(0, &mut |_, events| {
        match events {
            Ok(events) => checked.events += events.len() as u64,
            Err(what) => checked.damage.push(what),
        }
        Ok(true)
    });
    checked.damage.extend(read.err().map(|error| error.to_string()));
    if checked.damage.is_empty() {
        checked.damage.extend(Saved::read(&store).err().map(|error| error.to_string()));
    }
    Ok(checked)
}

/// The journal of a directory, if its state is whole.
fn look(dir: &Path) -> Result<Store, JournalError> {
    let store = Store::look(dir)?;
    match store.damage().first() {
        Some(what) => Err(store.damaged(what)),
        None => Ok(store),
    }
}

/// The file of a journal, which is there as soon as its node was up once.
pub fn file(dir: &Path) -> PathBuf {
    dir.join(super::store::FILE)
}

/// Whether this is the file that is locked while a node uses its directory.
pub fn is_lock(file: &Path) -> bool {
    file.file_name().is_some_and(|name| name == super::store::LOCK)
}

/// Keeps nodes away from a directory until it is dropped. None if one uses it.
///
/// # Errors
/// If the system does not say.
pub fn lock(dir: &Path) -> io::Result<Option<File>> {
    let file = match File::open(dir.join(super::store::LOCK)) {
        // Nobody ever used it.
        Err(error) if error.kind() == io::ErrorKind::NotFound => File::open(dir)?,
        file => file?,
    };
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// What a site that never comes back has left.
#[derive(Clone, Debug)]
pub struct Remains {
    /// What its peer had written down.
    pub durable: Durable,
    /// Jobs that it was to submit and did not.
    pub arrivals: Vec<TimedJob>,
    /// All jobs that were ever handed over to it.
    pub handed_over: BTreeSet<JobId>,
    /// Its events from a number on.
    pub events: Vec<Event>,
}

/// Reads what a node that has ended has left, with its events from number `from` on.
///
/// # Errors
/// If there is no journal, or it is damaged.
pub fn remains(dir: &Path, from: u64) -> Result<Remains, JournalError> {
    let store = look(dir)?;
    let Saved { durable, arrivals, handed_over, .. } = Saved::read(&store)?;
    let arrivals = arrivals.into_values().flatten().collect();
    let events = events_of(&store, from)?;
    Ok(Remains { durable, arrivals, handed_over, events })
}

/// Reads the events of a node from number `from` on, whatever else its journal says. A node may be using the directory.
///
/// # Errors
/// If there is no journal, or they are damaged.
pub fn events(dir: &Path, from: u64) -> Result<Vec<Event>, JournalError> {
    events_of(&Store::look(dir)?, from)
}

/// Reads the events of a node from number `from` on, up to the first that is damaged or missing; none if there is no
/// journal.
pub fn readable_events(dir: &Path, from: u64) -> Vec<Event> {
    let mut events: Vec<Event> = Vec::new();
    let read = Store::look(dir).and_then(|store| {
        store.events(from, &mut |first, group| {
            let Ok(group) = group else { return Ok(false) };
            let next = from + events.len() as u64;
            let Some(skip) = next.checked_sub(first) else { return Ok(false) };
            events.extend(group.into_iter().skip(usize::try_from(skip).unwrap_or(usize::MAX)));
            Ok(true)
        })
    });
    if let Err(error) = read {
        tracing::warn!(%error, "not all events of a site can be read");
    }
    events
}

/// Whose journal it is, and which of its site: how many the site had lost before. None if that cannot be read.
pub fn whose(dir: &Path) -> Option<(String, SiteId, u32)> {
    let about = Store::look(dir).and_then(|store| store.single::<About>(Single::About)).ok()??;
    let lost_before = u32::try_from(lost_before(about.instance)).ok()?;
    Some((about.run, about.site, lost_before))
}

/// Reads what the peer of a node has written down. A node may be using the directory.
///
/// # Errors
/// If there is no journal, or it is damaged.
pub fn durable(dir: &Path) -> Result<Durable, JournalError> {
    Ok(Saved::read(&look(dir)?)?.durable)
}

fn events_of(store: &Store, from: u64) -> Result<Vec<Event>, JournalError> {
    let mut events = Vec::new();
    store.events(from, &mut |first, group| {
        let skip = usize::try_from(from.saturating_sub(first)).unwrap_or(usize::MAX);
        events.extend(group.map_err(|what| store.damaged(what))?.into_iter().skip(skip));
        Ok(true)
    })?;
    Ok(events)
}

/// A journal in words, for people.
///
/// # Errors
/// If there is none, or it is damaged.
pub fn show(dir: &Path) -> Result<String, JournalError> {
    let store = look(dir)?;
    let saved = Saved::read(&store)?;
    let About { run, site, instance, .. } = &saved.about;
    let mut text = String::new();
    let mut line = |line: std::fmt::Arguments<'_>| {
        writeln!(text, "{line}").expect("a string takes everything");
    };
    line(format_args!("run {run}, site {site}, journal {instance:016x}"));
    let commits = store.commits();
    let restarts = restarts_of(saved.durable.incarnation.unwrap_or(0));
    line(format_args!("restarts {restarts}, writes {commits}, events {}", saved.next_event));
    match saved.clock {
        Some(StartOrder { unix_micros, factor, trace_origin_us }) => line(format_args!(
            "the trace clock runs since {unix_micros} us after 1970, {factor} times the wall clock, from \
             {trace_origin_us} us on"
        )),
        None => line(format_args!("the trace clock was not started")),
    }
    let mut arrivals: Vec<_> = saved.arrivals.values().flatten().collect();
    arrivals.sort_by_key(|job| job.spec.key());
    line(format_args!("jobs to come: {}", arrivals.len()));
    for job in arrivals {
        line(format_args!(
            "  job {} at {} s, {} processors",
            job.spec.id, job.spec.submit, job.spec.processors
        ));
    }
    line(format_args!("jobs owned: {}", saved.durable.jobs.len()));
    for kept in saved.durable.jobs.values() {
        let state = match kept.started {
            Some(at) => format!("executes since {at} s"),
            None => "waits".to_string(),
        };
        line(format_args!("  job {}, {} processors, {state}", kept.job.id, kept.job.processors));
    }
    let out: Vec<_> = saved.durable.ledger.transfers_out().collect();
    line(format_args!("transfers without an answer: {}", out.len()));
    for (to, transfer) in out {
        line(format_args!("  job {} to site {to}, transfer {}", transfer.job.id, transfer.number));
    }
    Ok(text)
}
