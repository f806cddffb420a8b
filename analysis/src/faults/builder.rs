//! Follows sites and the jobs that faults touch. A job without a fault costs nothing: what is known of it is in its row
//! of the outcome, from which a record is made when its first fault is seen.

use std::collections::{BTreeMap, BTreeSet};

use scheduler::event::{BeginCause, EndCause};
use scheduler::{Event, EventKind, Grid, JobId, SiteId, Span, Time};

use super::{
    Attempt, AttemptEnd, Belief, Deed, Done, Downtime, Faults, JobFaults, Presence, RanTwice, SiteFaults,
    Totals,
};
use crate::executions::{Execution, Executions, Fate};
use crate::job::JobOutcome;

const MICROS: f64 = 1e6;

/// Collects what faults did.
#[derive(Clone, Debug)]
pub(crate) struct FaultsBuilder {
    grid: Grid,
    sites: Vec<SiteRecord>,
    /// By observer and the site that it has given up on: since when.
    doubts: BTreeMap<(SiteId, SiteId), Time>,
    jobs: BTreeMap<JobId, JobRecord>,
    downtimes: Vec<Downtime>,
    deeds: Vec<Deed>,
    membership: Vec<Belief>,
}

#[derive(Clone, Debug, Default)]
struct SiteRecord {
    /// The newest event of its own; what drivers say of it is none.
    last: Option<Time>,
    /// Why it is away and since when, as the driver says.
    away: Option<(EndCause, Time)>,
    /// The driver had it begin, and it has not said yet that it did.
    begun: Option<BeginCause>,
    /// Its last event before it restarted, and when that was.
    crash: Option<(Option<Time>, Time)>,
    crashes: u64,
    down: Span,
    pauses: u64,
    paused: Span,
    joined: Option<Time>,
    dismissed: bool,
    rejoin: Option<Span>,
    killed: u64,
    suspected: u64,
    heard: u64,
    gone: u64,
    left: u64,
    took_over: u64,
    taken_from: BTreeSet<JobId>,
}

/// A job that a fault touched.
#[derive(Clone, Debug)]
pub(crate) struct JobRecord {
    pub(crate) executions: Executions,
    processors: u32,
    taken_over: u32,
    superseded: u32,
    superseded_running: u32,
    /// Where a copy may have been at a take-over, and when that was.
    suspects: Vec<(SiteId, Time)>,
    /// Where a copy was dropped, and when.
    dropped: Vec<(SiteId, Time)>,
    was_orphaned: bool,
    orphaned_since: Option<Time>,
    orphaned: Span,
}

impl FaultsBuilder {
    pub(crate) fn new(grid: &Grid) -> FaultsBuilder {
        FaultsBuilder {
            grid: grid.clone(),
            sites: vec![SiteRecord::default(); grid.len()],
            doubts: BTreeMap::new(),
            jobs: BTreeMap::new(),
            downtimes: Vec::new(),
            deeds: Vec::new(),
            membership: Vec::new(),
        }
    }

    /// Takes what an event says of sites. Before anything is done about its job.
    pub(crate) fn observe(&mut self, event: &Event) {
        let Event { at, site, kind } = *event;
        let place = site.index();
        let mut believe = |about: SiteId, what: Presence, after: Option<Span>| {
            self.membership.push(Belief { at, observer: site, about, what, after });
        };
        match kind {
            EventKind::Ended { how } => return self.ended(site, at, how),
            EventKind::Begun { how } => return self.begun(site, at, how),
            EventKind::Dismissed {} => {
                self.sites[place].dismissed = true;
                self.deeds.push(Deed { site, at, what: Done::Dismissed });
                return;
            }
            EventKind::Recovered { .. } => {
                let record = &mut self.sites[place];
                match record.begun.take() {
                    Some(BeginCause::Join) => {}
                    begun => {
                        believe(site, Presence::Recovered, None);
                        record.crash = Some((record.last, at));
                        if begun.is_none() {
                            // Nobody says when it ended.
                            record.crashes += 1;
                            record.down += record.last.map_or(Span::ZERO, |last| at.since(last));
                            self.downtimes.push(Downtime {
                                site,
                                from: record.last,
                                to: Some(at),
                                how: None,
                            });
                        }
                    }
                }
                // It begins with the belief that everybody is there.
                self.doubts.retain(|&(observer, _), _| observer != site);
            }
            EventKind::Suspected { peer } => {
                believe(peer, Presence::Suspected, None);
                self.sites[peer.index()].suspected += 1;
                self.doubts.insert((site, peer), at);
            }
            EventKind::Gone { peer } => {
                believe(peer, Presence::Gone, None);
                self.sites[peer.index()].gone += 1;
                self.doubts.insert((site, peer), at);
            }
            EventKind::Heard { peer, after } => {
                // A site that no longer leaves was not silent.
                believe(peer, Presence::Heard, Some(after).filter(|&after| after > Span::ZERO));
                let doubt = self.doubts.remove(&(site, peer));
                let record = &mut self.sites[peer.index()];
                record.heard += 1;
                if let (Some(since), Some((_, back))) = (doubt, record.crash)
                    && since <= back
                {
                    record.rejoin = record.rejoin.max(Some(at.since(back)));
                }
            }
            EventKind::Left { peer } => {
                believe(peer, Presence::Left, None);
                self.sites[peer.index()].left += 1;
                self.doubts.remove(&(site, peer));
            }
            EventKind::Interrupted { killed, .. } => self.sites[place].killed += u64::from(killed),
            EventKind::Revoked { of, killed, .. } => self.sites[of.index()].killed += u64::from(killed),
            EventKind::TookOver { job, holder, .. } => {
                self.sites[place].took_over += 1;
                // Where the operator orders it, it is from nobody.
                if holder != site {
                    self.sites[holder.index()].taken_from.insert(job);
                }
            }
            EventKind::Started { job, .. }
            | EventKind::Granted { job, .. }
            | EventKind::Completed { job, .. } => {
                self.no_longer_orphaned(job, at);
            }
            _ => {}
        }
        let record = &mut self.sites[place];
        record.last = record.last.max(Some(at));
        record.begun = None;
    }

    /// The driver says that a site is away from now on.
    fn ended(&mut self, site: SiteId, at: Time, how: EndCause) {
        self.deeds.push(Deed { site, at, what: Done::Ended(how) });
        let record = &mut self.sites[site.index()];
        record.pauses += u64::from(how == EndCause::Pause);
        record.away = match record.away {
            Some((EndCause::Pause, since)) => {
                record.paused += at.since(since);
                Some((how, at))
            }
            // It was down before, and stays so.
            Some((_, since)) => Some((how, since)),
            None => Some((how, at)),
        };
        record.begun = None;
    }

    /// The driver says that a site is there again, or for the first time.
    fn begun(&mut self, site: SiteId, at: Time, how: BeginCause) {
        self.deeds.push(Deed { site, at, what: Done::Begun(how) });
        let record = &mut self.sites[site.index()];
        if how == BeginCause::Join {
            record.joined = Some(at);
        }
        match record.away.take() {
            Some((EndCause::Pause, since)) => record.paused += at.since(since),
            Some((cause, since)) if cause.interrupts() => {
                let down = record.downtime(site, cause, since, Some(at));
                record.crashes += 1;
                record.crash = Some((record.last, at));
                record.down += at.since(down.from.unwrap_or(at));
                self.downtimes.push(down);
            }
            _ => {}
        }
        if how != BeginCause::Resume {
            record.begun = Some(how);
            self.doubts.retain(|&(observer, _), _| observer != site);
        }
    }

    /// The last sign of life of a site before a time at which it ended for this reason.
    pub(crate) fn last_before(&self, site: SiteId, how: EndCause, at: Time) -> Option<Time> {
        self.sites[site.index()].last_before(how, at)
    }

    /// Jobs that a fault touched before and that execute at a site.
    pub(crate) fn executing(&self, site: SiteId) -> Vec<JobId> {
        let open = |execution: &Execution| execution.site == site && execution.fate == Fate::Open;
        let executes = |record: &JobRecord| record.executions.all().iter().any(open);
        self.jobs.iter().filter(|(_, record)| executes(record)).map(|(&job, _)| job).collect()
    }

    /// The process of a site restarted.
    pub(crate) fn began_again(&mut self, site: SiteId) {
        self.jobs.values_mut().for_each(|record| record.executions.began_again(site));
    }

    /// The record of a job, if a fault touched it.
    pub(crate) fn job(&mut self, job: JobId) -> Option<&mut JobRecord> {
        self.jobs.get_mut(&job)
    }

    /// The last sign of life of a site before it restarted.
    pub(crate) fn last_sign(&self, site: SiteId) -> Option<Time> {
        let record = &self.sites[site.index()];
        record.crash.map_or(record.last, |(last, _)| last)
    }

    /// The record of a job that a fault touches now; `row` says what is known of it.
    pub(crate) fn touch(&mut self, row: &JobOutcome) -> &mut JobRecord {
        self.jobs.entry(row.id).or_insert_with(|| {
            let known = row.start.zip(row.site).map(|(start, site)| Execution {
                site,
                start,
                hops: row.hops,
                fate: row.end.map_or(Fate::Open, Fate::Completed),
            });
            JobRecord {
                executions: Executions::of(known),
                processors: row.processors,
                taken_over: 0,
                superseded: 0,
                superseded_running: 0,
                suspects: Vec::new(),
                dropped: Vec::new(),
                was_orphaned: false,
                orphaned_since: None,
                orphaned: Span::ZERO,
            }
        })
    }

    fn no_longer_orphaned(&mut self, job: JobId, at: Time) {
        if let Some(record) = self.jobs.get_mut(&job) {
            record.no_longer_orphaned(at);
        }
    }

    /// What was found in a run whose last event is at `until`.
    pub(crate) fn finish(self, until: Time) -> Faults {
        let doubted = self
            .doubts
            .iter()
            .filter(|&(&(_, about), &since)| self.sites[about.index()].last.is_none_or(|last| last < since))
            .map(|(&(_, about), _)| about);
        let mut silent: BTreeSet<SiteId> = doubted.collect();
        for site in self.grid.sites().iter().map(|site| site.id) {
            match self.sites[site.index()].away {
                Some((how, _)) if how.interrupts() => silent.insert(site),
                Some((EndCause::Leave | EndCause::Absent, _)) => silent.remove(&site),
                _ => false,
            };
        }
        let mut downtimes = self.downtimes;
        let never_back = |&site: &SiteId| {
            let record = &self.sites[site.index()];
            match record.away {
                Some((how, since)) if how.interrupts() => record.downtime(site, how, since, None),
                _ => Downtime { site, from: record.last, to: None, how: None },
            }
        };
        let not_back: Vec<Downtime> = silent.iter().map(never_back).collect();
        downtimes.extend(&not_back);
        downtimes.sort_by_key(|down| (down.site, down.from));

        let ends = Ends { sites: &self.sites, silent: &silent, until };
        let (deeds, membership) = (self.deeds, self.membership);
        let mut faults = Faults { downtimes, deeds, membership, ..Faults::default() };
        let mut wasted = vec![[0.0; 2]; self.sites.len()];
        let mut interrupted = vec![0; self.sites.len()];
        for (&job, record) in &self.jobs {
            let attempts = record.attempts(job, &ends);
            for attempt in attempts.iter().filter(|attempt| attempt.end == AttemptEnd::Interrupted) {
                wasted[attempt.site.index()][0] += attempt.work(attempt.at_least);
                wasted[attempt.site.index()][1] += attempt.work(attempt.at_most);
                interrupted[attempt.site.index()] += 1;
            }
            faults.jobs.push(record.finish(job, &attempts, &ends));
            faults.attempts.extend(attempts);
        }
        for (site, record) in self.grid.sites().iter().zip(&self.sites) {
            let silent_at_end = silent.contains(&site.id);
            let not_back = not_back.iter().filter(|down| down.site == site.id).filter_map(|down| down.from);
            let down = not_back.fold(record.down, |sum, from| sum + until.since(from));
            let paused = match record.away {
                Some((EndCause::Pause, since)) => record.paused + until.since(since),
                _ => record.paused,
            };
            let found = SiteFaults {
                site: site.id,
                name: site.name.clone(),
                crashes: record.crashes,
                down_at_most_s: down.as_secs_f64(),
                silent_at_end,
                pauses: record.pauses,
                paused_s: paused.as_secs_f64(),
                joined_at_s: record.joined.map(|at| at.since(Time::ZERO).as_secs_f64()),
                absent: matches!(record.away, Some((EndCause::Absent, _))),
                dismissed: record.dismissed,
                has_left: matches!(record.away, Some((EndCause::Leave, _))),
                rejoin_max_s: record.rejoin.map(Span::as_secs_f64),
                interrupted: interrupted[site.id.index()],
                killed: record.killed,
                wasted_at_least: wasted[site.id.index()][0],
                wasted_at_most: wasted[site.id.index()][1],
                suspected: record.suspected,
                heard: record.heard,
                gone: record.gone,
                left: record.left,
                took_over: record.took_over,
                taken_from: record.taken_from.len() as u64,
            };
            if found.anything() {
                faults.sites.push(found);
            }
        }
        faults.totals = Totals::of(&faults);
        faults
    }
}

impl SiteRecord {
    /// What is known of when its process ended: exactly, unless it was only found.
    fn last_before(&self, how: EndCause, at: Time) -> Option<Time> {
        if how == EndCause::Found { self.last.map(|last| last.min(at)) } else { Some(at) }
    }

    fn downtime(&self, site: SiteId, how: EndCause, since: Time, to: Option<Time>) -> Downtime {
        Downtime { site, from: self.last_before(how, since), to, how: Some(how) }
    }

    /// Whether its process has ended, and everything that it had recorded is in the log.
    fn has_told_all(&self) -> bool {
        self.away.is_some_and(|(how, _)| !matches!(how, EndCause::Crash | EndCause::Pause))
    }
}

/// What is known at the end of a run.
struct Ends<'a> {
    sites: &'a [SiteRecord],
    silent: &'a BTreeSet<SiteId>,
    until: Time,
}

impl JobRecord {
    /// It is taken over: copies may be at these sites.
    pub(crate) fn taken_over(&mut self, at: Time, epoch: u32, copies: impl IntoIterator<Item = SiteId>) {
        self.taken_over += 1;
        self.executions.taken_over(epoch);
        self.suspects.extend(copies.into_iter().map(|site| (site, at)));
    }

    /// A site learned of a take-over.
    pub(crate) fn superseded(&mut self, at: Time, site: SiteId, epoch: u32, running: bool) {
        self.executions.taken_over(epoch);
        if running {
            self.superseded_running += 1;
        } else {
            self.superseded += 1;
            self.dropped.push((site, at));
            self.no_longer_orphaned(at);
        }
    }

    /// Nobody is wide enough.
    pub(crate) fn orphan(&mut self, at: Time) {
        self.was_orphaned = true;
        self.orphaned_since.get_or_insert(at);
    }

    fn no_longer_orphaned(&mut self, at: Time) {
        if let Some(since) = self.orphaned_since.take() {
            self.orphaned += at.since(since);
        }
    }

    /// Executions that are not the one that counts.
    fn attempts(&self, job: JobId, ends: &Ends) -> Vec<Attempt> {
        let counts = self.executions.counts();
        let mut attempts = Vec::new();
        for (place, &Execution { site, start, fate, .. }) in self.executions.all().iter().enumerate() {
            if Some(place) == counts {
                continue;
            }
            let (at_least, at_most, end) = match fate {
                Fate::Completed(end) => (end, end, AttemptEnd::Repeated),
                Fate::Cut { last_sign, until } | Fate::Interrupted { last_sign, until, .. } => {
                    (last_sign, until, AttemptEnd::Interrupted)
                }
                Fate::Open => {
                    let last = ends.sites[site.index()].last.unwrap_or(start).max(start);
                    (last, ends.until.max(last), AttemptEnd::Unknown)
                }
            };
            let processors = self.processors;
            attempts.push(Attempt { job, site, processors, start, at_least, at_most, end });
        }
        attempts
    }

    /// Whether it ran twice, see [`RanTwice`].
    fn ran_twice(&self, ends: &Ends) -> RanTwice {
        let of = |wanted: fn(&Execution) -> bool| self.executions.all().iter().filter(move |e| wanted(e));
        let completed = of(|execution| matches!(execution.fate, Fate::Completed(_))).count();
        let open: Vec<SiteId> =
            of(|execution| execution.fate == Fate::Open).map(|execution| execution.site).collect();
        let unseen: BTreeSet<SiteId> = self
            .suspects
            .iter()
            .filter(|&&(site, at)| {
                let record = &ends.sites[site.index()];
                let unknown = ends.silent.contains(&site) || record.last < Some(at);
                // What it began before its process ended is among the executions.
                let unknown = unknown && !record.has_told_all();
                let dropped = self.dropped.iter().any(|&(there, when)| there == site && when >= at);
                unknown && !dropped && !open.contains(&site)
            })
            .map(|&(site, _)| site)
            .collect();
        match (completed, completed + open.len() + unseen.len()) {
            (2.., _) => RanTwice::Yes,
            (_, 2..) => RanTwice::Perhaps,
            _ => RanTwice::No,
        }
    }

    fn finish(&self, job: JobId, attempts: &[Attempt], ends: &Ends) -> JobFaults {
        let all = self.executions.all();
        let count = |wanted: fn(&Fate) -> bool| {
            u32::try_from(all.iter().filter(|execution| wanted(&execution.fate)).count()).unwrap_or(u32::MAX)
        };
        let work = |end: AttemptEnd, until: fn(&Attempt) -> Time| -> f64 {
            let those = attempts.iter().filter(|attempt| attempt.end == end);
            // The sum of nothing is -0.
            those.fold(0.0, |sum, attempt| sum + attempt.work(until(attempt)))
        };
        let orphaned = self.orphaned_since.map_or(Span::ZERO, |since| ends.until.since(since));
        JobFaults {
            job,
            processors: self.processors,
            starts: count(|_| true),
            completions: count(|fate| matches!(fate, Fate::Completed(_))),
            interrupted: count(|fate| matches!(fate, Fate::Cut { .. } | Fate::Interrupted { .. })),
            killed: self.executions.is_given_up(),
            taken_over: self.taken_over,
            superseded: self.superseded,
            superseded_running: self.superseded_running,
            ran_twice: self.ran_twice(ends),
            was_orphaned: self.was_orphaned,
            orphaned: self.orphaned + orphaned,
            still_orphaned: self.orphaned_since.is_some(),
            wasted_at_least: work(AttemptEnd::Interrupted, |attempt| attempt.at_least),
            wasted_at_most: work(AttemptEnd::Interrupted, |attempt| attempt.at_most),
            unknown_work: work(AttemptEnd::Unknown, |attempt| attempt.at_least),
            repeated_work: work(AttemptEnd::Repeated, |attempt| attempt.at_most),
        }
    }
}

impl Attempt {
    /// Processor-seconds from the start until then.
    pub fn work(&self, until: Time) -> f64 {
        f64::from(self.processors) * (until.since(self.start).as_micros() as f64 / MICROS)
    }
}

impl SiteFaults {
    fn anything(&self) -> bool {
        let counts = [
            self.crashes,
            u64::from(self.silent_at_end || self.absent || self.dismissed || self.joined_at_s.is_some()),
            self.pauses,
            self.interrupted,
            self.suspected,
            self.heard,
            self.gone,
            self.left,
            self.took_over,
            self.taken_from,
        ];
        counts.into_iter().any(|count| count > 0)
    }
}

impl Totals {
    fn of(faults: &Faults) -> Totals {
        let sites = |value: fn(&SiteFaults) -> u64| faults.sites.iter().map(value).sum();
        let jobs = |value: fn(&JobFaults) -> u64| faults.jobs.iter().map(value).sum();
        let work = |value: fn(&JobFaults) -> f64| faults.jobs.iter().fold(0.0, |sum, job| sum + value(job));
        let rejoins = faults.sites.iter().filter_map(|site| site.rejoin_max_s);
        Totals {
            crashes: sites(|site| site.crashes),
            silent_sites: sites(|site| u64::from(site.silent_at_end)),
            pauses: sites(|site| site.pauses),
            paused_s: faults.sites.iter().fold(0.0, |sum, site| sum + site.paused_s),
            joined: sites(|site| u64::from(site.joined_at_s.is_some())),
            absent: sites(|site| u64::from(site.absent)),
            dismissed: sites(|site| u64::from(site.dismissed)),
            have_left: sites(|site| u64::from(site.has_left)),
            down_at_most_s: faults.sites.iter().fold(0.0, |sum, site| sum + site.down_at_most_s),
            rejoin_max_s: rejoins.reduce(f64::max),
            interrupted: jobs(|job| u64::from(job.interrupted)),
            killed: jobs(|job| u64::from(job.killed)),
            wasted_at_least: work(|job| job.wasted_at_least),
            wasted_at_most: work(|job| job.wasted_at_most),
            unknown_work: work(|job| job.unknown_work),
            repeated_work: work(|job| job.repeated_work),
            suspected: sites(|site| site.suspected),
            heard: sites(|site| site.heard),
            gone: sites(|site| site.gone),
            left: sites(|site| site.left),
            taken_over: jobs(|job| u64::from(job.taken_over)),
            superseded: jobs(|job| u64::from(job.superseded)),
            superseded_running: jobs(|job| u64::from(job.superseded_running)),
            may_have_run_twice: jobs(|job| u64::from(job.ran_twice != RanTwice::No)),
            ran_twice: jobs(|job| u64::from(job.ran_twice == RanTwice::Yes)),
            orphaned: jobs(|job| u64::from(job.was_orphaned)),
            still_orphaned: jobs(|job| u64::from(job.still_orphaned)),
            orphaned_max_s: faults.jobs.iter().map(|job| job.orphaned.as_secs_f64()).fold(0.0, f64::max),
        }
    }
}
