//! What a journal says when a node starts, read row by row and checked.

use std::collections::{BTreeMap, BTreeSet};

use protocol::handover::{Answer, Entry, Ledger};
use protocol::journal::{Kept, Words};
use protocol::membership::{Guarded, Report};
use protocol::message::{Transfer, Void};
use protocol::{Durable, PeerConfig};
use scheduler::{Event, JobId, SiteId, Span, Time, TimedJob};
use serde::de::DeserializeOwned;

use super::error::JournalError;
use super::row::{Key, Kind, Single, decode};
use super::store::{Row, Store};
use super::{About, Took};
use crate::clock::StartOrder;
use crate::metrics::Totals;
use crate::peer_address::PeerAddress;

/// Everything that a journal says.
#[derive(Clone, Debug)]
pub struct Saved {
    /// Whose it is.
    pub about: About,
    /// What the peer begins with.
    pub durable: Durable,
    /// Run times of jobs that are here or on their way from here.
    pub run_times: BTreeMap<JobId, Span>,
    /// Jobs to come, by the portion in which they were handed over, each in the order in which they come.
    pub arrivals: BTreeMap<u64, Vec<TimedJob>>,
    /// All jobs that were ever handed over.
    pub handed_over: BTreeSet<JobId>,
    /// When the trace clock started.
    pub clock: Option<StartOrder>,
    /// Where the node listened.
    pub listen: Vec<String>,
    /// Where other sites listened.
    pub peers: Vec<PeerAddress>,
    /// Which journals other sites have.
    pub others: BTreeMap<SiteId, u64>,
    /// The number of the next event.
    pub next_event: u64,
    /// When the last event was.
    pub last_event: Option<Time>,
    /// Metrics as of some number of events.
    pub totals: Totals,
    /// The events after those.
    pub untold: Vec<Event>,
    /// What reading took.
    pub took: Took,
    /// In which incarnation the jobs began that execute.
    pub(super) begun: BTreeMap<JobId, u32>,
    /// Of how many jobs of each portion the time has come.
    pub(super) come: BTreeMap<u64, u64>,
    /// How many portions were handed over.
    pub portions: u64,
}

impl Saved {
    /// Of a journal in which nothing was written.
    #[cfg(feature = "doors")]
    pub(super) fn nothing(about: About) -> Saved {
        Saved {
            about,
            durable: Durable::default(),
            run_times: BTreeMap::new(),
            arrivals: BTreeMap::new(),
            handed_over: BTreeSet::new(),
            clock: None,
            listen: Vec::new(),
            peers: Vec::new(),
            others: BTreeMap::new(),
            next_event: 0,
            last_event: None,
            totals: Totals::default(),
            untold: Vec::new(),
            took: Took::default(),
            begun: BTreeMap::new(),
            come: BTreeMap::new(),
            portions: 0,
        }
    }

    /// Whether a site of this configuration can have written this.
    ///
    /// # Errors
    /// What cannot be.
    pub fn check(&self, config: &PeerConfig) -> Result<(), String> {
        self.durable.check(config)?;
        let is_time = |micros: i64| (0..=protocol::MICROS_MAX).contains(&micros);
        for job in self.arrivals.values().flatten() {
            if !protocol::is_job_of(&config.grid, &job.spec) || !is_time(job.run_time.as_micros()) {
                return Err(format!("job {} is to come and none of this grid", job.spec.id));
            }
        }
        if let Some((job, _)) = self.run_times.iter().find(|(_, time)| !is_time(time.as_micros())) {
            return Err(format!("job {job} runs longer than can be"));
        }
        match self.last_event {
            Some(at) if !protocol::is_time(at) => Err("its last event was at no time".to_string()),
            _ => Ok(()),
        }
    }

    /// Reads everything but events, of which there are more the longer a site runs.
    pub(super) fn read(store: &Store) -> Result<Saved, JournalError> {
        let damaged = |what: String| store.damaged(what);
        if let Some(kind) = store.unknown_kinds()?.first() {
            return Err(damaged(format!("there are rows of an unknown kind {kind}")));
        }
        let about = store.single::<About>(Single::About)?;
        let about = about.ok_or_else(|| damaged("it does not say whose it is".to_string()))?;
        let mut durable = Durable { incarnation: store.single(Single::Incarnation)?, ..Durable::default() };
        let mut run_times = BTreeMap::new();
        each::<(Kept, Option<Span>)>(store, Kind::Job, &mut |key, (kept, run_time)| {
            if kept.job.id.0 != key.a {
                return Err("a job is in the row of another".to_string());
            }
            run_times.extend(run_time.map(|run_time| (kept.job.id, run_time)));
            durable.jobs.insert(kept.job.id, kept);
            Ok(())
        })?;
        let mut begun = BTreeMap::new();
        each::<Time>(store, Kind::Begun, &mut |key, at| {
            let kept = durable.jobs.get_mut(&JobId(key.a)).ok_or("a job executes that is not owned")?;
            kept.started = Some(at);
            let incarnation = u32::try_from(key.b).map_err(|_| "a row names no incarnation".to_string())?;
            begun.insert(JobId(key.a), incarnation);
            Ok(())
        })?;
        let mut entries = Vec::new();
        each::<(Transfer, Option<Span>)>(store, Kind::Out, &mut |key, (transfer, run_time)| {
            run_times.extend(run_time.map(|run_time| (transfer.job.id, run_time)));
            entries.push(Entry::Out { to: site(key)?, transfer });
            Ok(())
        })?;
        each::<u64>(store, Kind::Next, &mut |key, number| {
            entries.push(Entry::Next { to: site(key)?, number });
            Ok(())
        })?;
        each::<(u64, u64)>(store, Kind::Numbers, &mut |key, (floor, seen)| {
            entries.push(Entry::Numbers { from: site(key)?, floor, seen });
            Ok(())
        })?;
        each::<Answer>(store, Kind::Tombstone, &mut |key, answer| {
            entries.push(Entry::Tombstone { from: site(key)?, number: key.b, answer });
            Ok(())
        })?;
        durable.ledger = Ledger::from_entries(entries).map_err(damaged)?;
        each::<()>(store, Kind::Route, &mut |key, ()| {
            durable.routes.insert((site(key)?, key.b));
            Ok(())
        })?;
        each::<(Guarded, Option<Span>)>(store, Kind::Guarded, &mut |_, (guarded, run_time)| {
            run_times.extend(run_time.map(|run_time| (guarded.job.id, run_time)));
            durable.guarded_jobs.insert(guarded.job.id, guarded);
            Ok(())
        })?;
        each::<Report>(store, Kind::Report, &mut |_, report| {
            durable.reports.insert(report.job, report);
            Ok(())
        })?;
        each::<u32>(store, Kind::Void, &mut |key, epoch| {
            durable.voids.insert(JobId(key.a), epoch);
            Ok(())
        })?;
        each::<Void>(store, Kind::TakenOver, &mut |_, void| {
            durable.taken_over.push(void);
            Ok(())
        })?;
        each::<Words>(store, Kind::Memory, &mut |key, words| {
            durable.memory.insert(key.topic().ok_or("what is remembered is of nothing")?, words);
            Ok(())
        })?;
        let mut come = BTreeMap::new();
        each::<u64>(store, Kind::Come, &mut |key, count| {
            come.insert(key.a, count);
            Ok(())
        })?;
        let mut arrivals = BTreeMap::new();
        let mut handed_over = BTreeSet::new();
        let mut portions = 0;
        each::<Vec<TimedJob>>(store, Kind::Portion, &mut |key, jobs| {
            if let Some(twice) = jobs.iter().find(|job| !handed_over.insert(job.spec.id)) {
                return Err(format!("job {} was handed over twice", twice.spec.id));
            }
            // Which of them have come is known by their number alone.
            if !jobs.is_sorted_by_key(|job| job.spec.key()) {
                return Err(format!("the jobs of portion {} are out of order", key.a));
            }
            let come = come.get(&key.a).copied().unwrap_or(0);
            let left = usize::try_from(come).ok().and_then(|come| jobs.get(come..));
            let left = left.ok_or_else(|| format!("{come} jobs of a portion of {} have come", jobs.len()))?;
            if !left.is_empty() {
                arrivals.insert(key.a, left.to_vec());
            }
            portions = key.a.checked_add(1).ok_or("a portion has no number")?;
            Ok(())
        })?;
        if let Some(portion) = come.keys().find(|portion| **portion >= portions) {
            return Err(damaged(format!("portion {portion} of the jobs handed over is missing")));
        }
        let mut others = BTreeMap::new();
        each::<u64>(store, Kind::Other, &mut |key, instance| {
            others.insert(site(key)?, instance);
            Ok(())
        })?;
        let totals: Totals = store.single(Single::Totals)?.unwrap_or_default();
        let (first, last) = store.last_events()?;
        let next_event = first + last.len() as u64;
        let mut untold = Vec::new();
        let mut expected = None;
        store.events(totals.events, &mut |first, group| {
            if expected.is_some_and(|expected| expected != first) {
                return Err(damaged(format!("events before number {first} are missing")));
            }
            let group = group.map_err(damaged)?;
            expected = Some(first + group.len() as u64);
            let told = usize::try_from(totals.events.saturating_sub(first)).unwrap_or(usize::MAX);
            untold.extend(group.into_iter().skip(told));
            Ok(true)
        })?;
        if totals.events + untold.len() as u64 != next_event {
            return Err(damaged(format!("events after number {} are missing", totals.events)));
        }
        Ok(Saved {
            about,
            durable,
            run_times,
            arrivals,
            handed_over,
            clock: store.single(Single::Clock)?,
            listen: store.single(Single::Listen)?.unwrap_or_default(),
            peers: store.single(Single::Peers)?.unwrap_or_default(),
            others,
            next_event,
            last_event: last.last().map(|event| event.at),
            totals,
            untold,
            took: Took::default(),
            begun,
            come,
            portions,
        })
    }
}

/// Takes every row of a kind, decoded.
fn each<T: DeserializeOwned>(
    store: &Store,
    kind: Kind,
    take: &mut dyn FnMut(Key, T) -> Result<(), String>,
) -> Result<(), JournalError> {
    store.rows(kind, &mut |row| {
        let taken = row.and_then(|Row { key, value }| take(key, decode(&value)?));
        taken.map_err(|what| store.damaged(what))
    })
}

fn site(key: Key) -> Result<SiteId, String> {
    let site = u32::try_from(key.a).map_err(|_| "a row names no site".to_string())?;
    Ok(SiteId(site))
}
