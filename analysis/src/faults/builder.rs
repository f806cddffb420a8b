//! Follows sites and the jobs that faults touch. A job without a fault costs nothing: what is known of it is in its row
//! of the outcome, from which a record is made when its first fault is seen.

use std::collections::{BTreeMap, BTreeSet};

use scheduler::{Event, EventKind, Grid, JobId, SiteId, Span, Time};

use super::{
    Attempt, AttemptEnd, Belief, Downtime, Faults, JobFaults, Presence, RanTwice, SiteFaults, Totals,
};
use crate::executions::{Execution, Executions, Fate};
use crate::outcome::JobOutcome;

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
    membership: Vec<Belief>,
}

#[derive(Clone, Copy, Debug, Default)]
struct SiteRecord {
    /// Its newest event.
    last: Option<Time>,
    /// Its last event before it began again, and when that was.
    crash: Option<(Option<Time>, Time)>,
    crashes: u64,
    down: Span,
    rejoin: Option<Span>,
    interrupted: u64,
    killed: u64,
    suspected: u64,
    heard: u64,
    gone: u64,
    left: u64,
    took_over: u64,
    taken_from: u64,
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
    was_stranded: bool,
    stranded_since: Option<Time>,
    stranded: Span,
}

impl FaultsBuilder {
    pub(crate) fn new(grid: &Grid) -> FaultsBuilder {
        FaultsBuilder {
            grid: grid.clone(),
            sites: vec![SiteRecord::default(); grid.len()],
            doubts: BTreeMap::new(),
            jobs: BTreeMap::new(),
            downtimes: Vec::new(),
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
            EventKind::Recovered { .. } => {
                believe(site, Presence::Recovered, None);
                let record = &mut self.sites[place];
                record.crashes += 1;
                record.crash = Some((record.last, at));
                record.down += record.last.map_or(Span::ZERO, |last| at.since(last));
                self.downtimes.push(Downtime { site, from: record.last, to: Some(at) });
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
            EventKind::Interrupted { killed, .. } => {
                self.sites[place].interrupted += 1;
                self.sites[place].killed += u64::from(killed);
            }
            EventKind::TookOver { holder, .. } => {
                self.sites[place].took_over += 1;
                // Where the operator orders it, it is from nobody.
                self.sites[holder.index()].taken_from += u64::from(holder != site);
            }
            EventKind::Started { job, .. }
            | EventKind::Granted { job, .. }
            | EventKind::Completed { job, .. } => {
                self.unstrand(job, at);
            }
            _ => {}
        }
        let last = &mut self.sites[place].last;
        *last = (*last).max(Some(at));
    }

    /// The record of a job, if a fault touched it.
    pub(crate) fn job(&mut self, job: JobId) -> Option<&mut JobRecord> {
        self.jobs.get_mut(&job)
    }

    /// The last sign of life of a site before it began again.
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
                was_stranded: false,
                stranded_since: None,
                stranded: Span::ZERO,
            }
        })
    }

    fn unstrand(&mut self, job: JobId, at: Time) {
        if let Some(record) = self.jobs.get_mut(&job) {
            record.unstrand(at);
        }
    }

    /// What was found in a run whose last event is at `until`.
    pub(crate) fn finish(self, until: Time) -> Faults {
        let silent: BTreeSet<SiteId> = self
            .doubts
            .iter()
            .filter(|&(&(_, about), &since)| self.sites[about.index()].last.is_none_or(|last| last < since))
            .map(|(&(_, about), _)| about)
            .collect();
        let mut downtimes = self.downtimes;
        let never_back = |&site: &SiteId| Downtime { site, from: self.sites[site.index()].last, to: None };
        downtimes.extend(silent.iter().map(never_back));
        downtimes.sort_by_key(|down| (down.site, down.from));

        let ends = Ends { sites: &self.sites, silent: &silent, until };
        let mut faults = Faults { downtimes, membership: self.membership, ..Faults::default() };
        let mut wasted = vec![[0.0; 2]; self.sites.len()];
        for (&job, record) in &self.jobs {
            let attempts = record.attempts(job, &ends);
            for attempt in attempts.iter().filter(|attempt| attempt.end == AttemptEnd::Interrupted) {
                wasted[attempt.site.index()][0] += attempt.work(attempt.at_least);
                wasted[attempt.site.index()][1] += attempt.work(attempt.at_most);
            }
            faults.jobs.push(record.finish(job, &attempts, &ends));
            faults.attempts.extend(attempts);
        }
        for (site, record) in self.grid.sites().iter().zip(&self.sites) {
            let silent_at_end = silent.contains(&site.id);
            let down = match record.last.filter(|_| silent_at_end) {
                Some(last) => record.down + until.since(last),
                None => record.down,
            };
            let found = SiteFaults {
                site: site.id,
                name: site.name.clone(),
                crashes: record.crashes,
                down_at_most_s: down.as_secs_f64(),
                silent_at_end,
                rejoin_max_s: record.rejoin.map(Span::as_secs_f64),
                interrupted: record.interrupted,
                killed: record.killed,
                wasted_at_least: wasted[site.id.index()][0],
                wasted_at_most: wasted[site.id.index()][1],
                suspected: record.suspected,
                heard: record.heard,
                gone: record.gone,
                left: record.left,
                took_over: record.took_over,
                taken_from: record.taken_from,
            };
            if found.anything() {
                faults.sites.push(found);
            }
        }
        faults.totals = Totals::of(&faults);
        faults
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
            self.unstrand(at);
        }
    }

    /// Nobody is wide enough.
    pub(crate) fn strand(&mut self, at: Time) {
        self.was_stranded = true;
        self.stranded_since.get_or_insert(at);
    }

    fn unstrand(&mut self, at: Time) {
        if let Some(since) = self.stranded_since.take() {
            self.stranded += at.since(since);
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
                Fate::Interrupted { last_sign, back, .. } => (last_sign, back, AttemptEnd::Interrupted),
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
                let unknown = ends.silent.contains(&site) || ends.sites[site.index()].last < Some(at);
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
        let stranded = self.stranded_since.map_or(Span::ZERO, |since| ends.until.since(since));
        let given_up = count(|fate| matches!(fate, Fate::Interrupted { killed: true, .. })) > 0;
        JobFaults {
            job,
            processors: self.processors,
            starts: count(|_| true),
            completions: count(|fate| matches!(fate, Fate::Completed(_))),
            interrupted: count(|fate| matches!(fate, Fate::Interrupted { .. })),
            killed: given_up && !self.executions.may_start() && self.executions.counts().is_none(),
            taken_over: self.taken_over,
            superseded: self.superseded,
            superseded_running: self.superseded_running,
            ran_twice: self.ran_twice(ends),
            was_stranded: self.was_stranded,
            stranded: self.stranded + stranded,
            still_stranded: self.stranded_since.is_some(),
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
            u64::from(self.silent_at_end),
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
            stranded: jobs(|job| u64::from(job.was_stranded)),
            still_stranded: jobs(|job| u64::from(job.still_stranded)),
            stranded_max_s: faults.jobs.iter().map(|job| job.stranded.as_secs_f64()).fold(0.0, f64::max),
        }
    }
}
