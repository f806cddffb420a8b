//! What is asserted after each call, from what is durable and what executors were told, not from what peers say.

use std::collections::{BTreeMap, BTreeSet};

use protocol::gang::Attempt;
use protocol::handover::{Answer, Arrival, Record};
use protocol::message::{BalanceMessage, BrokerMessage, Offer, OfferId, PoolMessage, StealMessage};
use protocol::{Durable, Fact, Message};
use scheduler::{EventKind, Grid, JobId, JobSpec, SiteId, Time};

use super::record::EventRecord;

/// One of the checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Check {
    /// A job executes once; again only after a crash ended it, and only if interrupted jobs wait again, or because it
    /// was taken over: then once under each epoch.
    SingleStart,
    /// No job starts before its submission.
    Early,
    /// No site executes more than fits.
    Capacity,
    /// A job that a site took on is never lost.
    Lost,
    /// A job has one owner under each epoch, or is in one transfer whose receiver has not accepted.
    SingleOwner,
    /// A job ends once under each epoch, and only after it was executed or killed.
    SingleEnd,
    /// A peer is what its facts say.
    Agreement,
    /// A restarted peer has what was durable.
    Restart,
    /// No number is used for two things.
    Numbers,
    /// No assertion inside the protocol fails.
    Invariant,
    /// Once faults stop, every job ends.
    Unfinished,
    /// Once every job has ended, nobody waits, and only who polls or watches talks.
    Silence,
    /// Once nothing is under way, no site has room for a job that it should steal. Classic stealing only.
    Starvation,
    /// In the end all agree on who is there.
    Presence,
    /// A site that has left holds nothing; one that is to leave, does.
    Left,
    /// Once nothing is under way, brokers know what sites have that have told them all.
    Views,
    /// A broker learns from a job at a site once for each time that it ended there.
    LearnedOnce,
    /// What sites say of a job in parts is what became of it.
    Record,
}

impl Check {
    /// Every check, in the order of the enum.
    pub const ALL: [Check; 18] = [
        Check::SingleStart,
        Check::Early,
        Check::Capacity,
        Check::Lost,
        Check::SingleOwner,
        Check::SingleEnd,
        Check::Agreement,
        Check::Restart,
        Check::Numbers,
        Check::Invariant,
        Check::Unfinished,
        Check::Silence,
        Check::Starvation,
        Check::Presence,
        Check::Left,
        Check::Views,
        Check::LearnedOnce,
        Check::Record,
    ];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Check::SingleStart => "single-start",
            Check::Early => "early-start",
            Check::Capacity => "capacity",
            Check::Lost => "lost",
            Check::SingleOwner => "single-owner",
            Check::SingleEnd => "single-end",
            Check::Agreement => "agreement",
            Check::Restart => "restart",
            Check::Numbers => "numbers",
            Check::Invariant => "invariant",
            Check::Unfinished => "unfinished",
            Check::Silence => "silence",
            Check::Starvation => "starvation",
            Check::Presence => "presence",
            Check::Left => "left",
            Check::Views => "views",
            Check::LearnedOnce => "learned-once",
            Check::Record => "record",
        }
    }
}

/// A check that does not hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} at {at}: {what}", check.name())]
pub struct Broken {
    /// The check that does not hold.
    pub check: Check,
    /// When it was seen, in true time: not by the clock of a site.
    pub at: Time,
    /// What was seen.
    pub what: String,
}

/// How far the execution of a job is, once it has started. Before that users have it, or a site where it waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// At this site, or ended there and not yet written down.
    Executing(SiteId),
    /// A crash ended it.
    Interrupted,
    /// It is written down that it ended.
    Ended,
    /// It was taken over since, and what there was under this epoch is dropped, or goes on under a newer one.
    Dropped,
}

/// A job, and how often it was taken over.
type Copy = (JobId, u32);

/// The attempt of a broker: each counts its own.
type By = (SiteId, Attempt);

/// Parts of a job that started by one attempt.
#[derive(Clone, Debug)]
struct Gang {
    by: By,
    /// Processors of parts that have not started.
    missing: u32,
    started: BTreeSet<SiteId>,
    executing: BTreeSet<SiteId>,
    /// Those that came to their end.
    ended: BTreeSet<SiteId>,
    /// A part was stopped, or its site crashed, maybe before it had written down that the part ended.
    is_lost: bool,
}

impl Gang {
    fn new(by: By, missing: u32) -> Gang {
        let none = BTreeSet::new;
        Gang { by, missing, started: none(), executing: none(), ended: none(), is_lost: false }
    }

    /// Whether all parts have come to their end.
    fn is_whole(&self) -> bool {
        self.missing == 0 && self.ended == self.started
    }
}

/// A number that a message carries: sender, receiver if numbers are counted for each, kind, number.
type Numbered = (SiteId, SiteId, u8, u64);

/// What a number stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Meaning {
    Transfer(JobId),
    Request(Offer),
    Claim(OfferId),
}

/// Everything seen so far.
#[derive(Clone, Debug)]
pub(crate) struct Watch {
    submitted: BTreeSet<JobId>,
    progress: BTreeMap<Copy, Progress>,
    /// Epochs under which jobs were taken over durably, the newest.
    taken_over: BTreeMap<JobId, BTreeSet<u32>>,
    /// Jobs that a site took on durably and that have not ended.
    taken: BTreeSet<JobId>,
    used: Vec<u32>,
    /// Processors of what executes: a liar may say that a job has others.
    executing: BTreeMap<(SiteId, JobId), u32>,
    /// The newest execution of a job in parts, under each epoch.
    gangs: BTreeMap<Copy, Gang>,
    /// Attempts that a broker had start while the job was its own under their epoch.
    committed: BTreeSet<By>,
    numbers: BTreeMap<Numbered, Meaning>,
    /// Whether interrupted jobs are given up.
    kills: bool,
    /// Jobs given up, or ended, and how often.
    ended: BTreeMap<JobId, u32>,
    /// The same at each site, without those that ended elsewhere.
    ended_at: BTreeMap<(SiteId, JobId), u32>,
    /// How often a broker learned from a job at a site: broker, site, job.
    learned: BTreeMap<(SiteId, SiteId, JobId), u32>,
    /// Whether a job that is over was given up. Nothing of one whose parts all came to their ends, of which one may not have been written down.
    given_up: BTreeMap<JobId, bool>,
    /// What sites say of jobs, where some start in parts.
    record: EventRecord,
    /// Jobs that a lost disk had and nobody else: they are missing until somebody takes them over.
    missing: BTreeSet<JobId>,
    /// Jobs that a liar was given or has named. Nothing is promised of them.
    tainted: BTreeSet<JobId>,
    /// What lies is not held to what it said before.
    liar: Option<SiteId>,
}

impl Watch {
    pub(crate) fn new(sites: usize, kills: bool) -> Watch {
        Watch {
            submitted: BTreeSet::new(),
            progress: BTreeMap::new(),
            taken_over: BTreeMap::new(),
            taken: BTreeSet::new(),
            used: vec![0; sites],
            executing: BTreeMap::new(),
            gangs: BTreeMap::new(),
            committed: BTreeSet::new(),
            numbers: BTreeMap::new(),
            kills,
            ended: BTreeMap::new(),
            ended_at: BTreeMap::new(),
            learned: BTreeMap::new(),
            given_up: BTreeMap::new(),
            record: EventRecord::default(),
            missing: BTreeSet::new(),
            tainted: BTreeSet::new(),
            liar: None,
        }
    }

    /// This site lies from now on. What it has may be anything.
    pub(crate) fn lies(&mut self, site: SiteId) {
        self.liar = Some(site);
    }

    /// A liar was given this job or has named it.
    pub(crate) fn taint(&mut self, job: JobId) {
        self.tainted.insert(job);
    }

    /// Whether something is promised of a job.
    pub(crate) fn is_promised(&self, job: JobId) -> bool {
        !self.tainted.contains(&job)
    }

    /// Whether a site took the job on, and it has not ended.
    pub(crate) fn is_taken(&self, job: JobId) -> bool {
        self.taken.contains(&job)
    }

    /// The disk of this site was lost, and these are all that there are. What nobody has is missing until it is taken over.
    pub(crate) fn lost<'a>(&mut self, site: SiteId, grid: &Grid, journal: impl Fn(usize) -> &'a Durable) {
        // A broker learns anew what it has forgotten.
        self.learned.retain(|&(broker, ..), _| broker != site);
        let mut held: BTreeMap<JobId, u32> = BTreeMap::new();
        let mut hold = |job: JobId, epoch: u32| {
            let newest = held.entry(job).or_default();
            *newest = epoch.max(*newest);
        };
        for rank in 0..grid.len() {
            let here = journal(rank);
            here.jobs.values().for_each(|kept| hold(kept.job.id, kept.custody.epoch));
            for (to, out) in here.ledger.transfers_out() {
                // Its sender may still hear that it arrived there before.
                let receiver = &journal(grid.rank(to)).ledger;
                let arrival = receiver.arrival(grid.at_rank(rank), out.number);
                let may_take = matches!(arrival, Arrival::New | Arrival::Answered(Answer::Declined));
                if may_take && !receiver.is_of_lost_journal(out.number) {
                    hold(out.job.id, out.epoch);
                }
            }
        }
        let is_held = |job: &JobId| held.get(job).is_some_and(|&epoch| epoch >= self.newest(*job));
        let missing: Vec<JobId> = self.taken.iter().filter(|job| !is_held(job)).copied().collect();
        self.missing.extend(missing);
    }

    /// How many jobs have ended, under any epoch.
    pub(crate) fn ended(&self) -> usize {
        self.ended.len()
    }

    pub(crate) fn has_ended(&self, job: JobId) -> bool {
        self.ended.contains_key(&job)
    }

    /// How many jobs ended more than once.
    pub(crate) fn ran_twice(&self) -> u64 {
        self.ended.values().filter(|&&times| times > 1).count() as u64
    }

    /// Whether an executor is busy.
    pub(crate) fn executes(&self) -> bool {
        self.used.iter().any(|&used| used > 0)
    }

    pub(crate) fn all_submitted(&self, jobs: usize) -> bool {
        self.submitted.len() == jobs
    }

    pub(crate) fn submitted(&mut self, job: JobId) {
        self.submitted.insert(job);
    }

    /// The newest epoch under which a job was taken over; 0 if it was not.
    pub(super) fn newest(&self, job: JobId) -> u32 {
        self.taken_over.get(&job).and_then(|epochs| epochs.last()).copied().unwrap_or(0)
    }

    /// Whether a copy may start that is so far: one that a crash interrupted waits again, unless crashes kill.
    fn may_start(&self, there: Option<Progress>) -> bool {
        there.is_none_or(|there| there == Progress::Interrupted && !self.kills)
    }

    /// An executor begins a job under an epoch.
    pub(crate) fn started(
        &mut self,
        at: Time,
        grid: &Grid,
        site: SiteId,
        job: &JobSpec,
        epoch: u32,
    ) -> Result<(), Broken> {
        let broken = |check, what| Err(Broken { check, at, what });
        let id = job.id;
        if !self.is_promised(id) {
            // What lies may have it executed again, but not beside itself, nor beside more than there is room for.
            return self.started_for_a_liar(at, grid, site, job, epoch);
        }
        if !self.submitted.contains(&id) {
            return broken(Check::Early, format!("job {id} starts at site {site} before it is submitted"));
        }
        let there = self.progress.get(&(id, epoch)).copied();
        if !self.may_start(there) {
            let what = format!("job {id}, epoch {epoch}, starts at site {site}, and was {there:?} before");
            return broken(Check::SingleStart, what);
        }
        let is_known = epoch == 0 || self.taken_over.get(&id).is_some_and(|epochs| epochs.contains(&epoch));
        if there.is_none() && !is_known {
            let what = format!("job {id}, epoch {epoch}, starts at site {site}, and nobody took it over");
            return broken(Check::SingleStart, what);
        }
        self.progress.insert((id, epoch), Progress::Executing(site));
        self.executing.insert((site, id), job.processors);
        let used = &mut self.used[site.index()];
        *used += job.processors;
        let processors = grid.site(site).processors;
        if *used > processors {
            return broken(
                Check::Capacity,
                format!("site {site} uses {used} of its {processors} processors"),
            );
        }
        Ok(())
    }

    /// An executor begins a part of a job of so many processors: all or none of an attempt are executed, each once, and no other attempt is
    /// there beside them.
    pub(crate) fn part_started(
        &mut self,
        at: Time,
        grid: &Grid,
        site: SiteId,
        part: &JobSpec,
        by: By,
        whole: u32,
    ) -> Result<(), Broken> {
        let (id, epoch) = (part.id, by.1.epoch);
        let broken = |check, what| Err(Broken { check, at, what });
        if self.is_promised(id) {
            if !self.submitted.contains(&id) {
                return broken(
                    Check::Early,
                    format!("job {id} starts at site {site} before it is submitted"),
                );
            }
            let there = self.progress.get(&(id, epoch)).copied();
            let gang = self.gangs.entry((id, epoch)).or_insert(Gang::new(by, whole));
            let was = gang.clone();
            let may_begin_anew = gang.executing.is_empty() && (gang.is_lost || !gang.is_whole());
            if by != gang.by && may_begin_anew {
                *gang = Gang::new(by, whole);
            }
            let is_next = gang.by == by && gang.started.insert(site);
            let fits = part.processors <= gang.missing;
            // That the job was taken over since, a site may not have heard yet. Then its part is stopped.
            let may_start = match there {
                None | Some(Progress::Interrupted) => true,
                Some(Progress::Dropped) => self.committed.contains(&by),
                Some(Progress::Executing(_) | Progress::Ended) => false,
            };
            if !is_next || !fits || !may_start {
                let what = format!(
                    "a part of job {id} starts at site {site} by {by:?}, with {was:?} and {there:?} before"
                );
                return broken(Check::SingleStart, what);
            }
            gang.missing -= part.processors;
            gang.executing.insert(site);
        }
        self.executing.insert((site, id), part.processors);
        let used = &mut self.used[site.index()];
        *used += part.processors;
        if *used > grid.site(site).processors {
            return broken(Check::Capacity, format!("site {site} uses {used} processors"));
        }
        Ok(())
    }

    /// An executor stopped a part of a job.
    pub(crate) fn stopped(&mut self, site: SiteId, job: JobId) {
        self.executed(site, job);
        let gangs = self.gangs.range_mut((job, 0)..=(job, u32::MAX));
        gangs.for_each(|(_, gang)| {
            gang.is_lost |= gang.ended.remove(&site);
        });
    }

    fn started_for_a_liar(
        &mut self,
        at: Time,
        grid: &Grid,
        site: SiteId,
        job: &JobSpec,
        epoch: u32,
    ) -> Result<(), Broken> {
        let here = Progress::Executing(site);
        let twice = (self.progress.range((job.id, 0)..=(job.id, u32::MAX))).any(|(_, at)| *at == here);
        if twice && self.liar != Some(site) {
            let what = format!("job {} starts at site {site}, where it executes", job.id);
            return Err(Broken { check: Check::SingleStart, at, what });
        }
        self.progress.insert((job.id, epoch), here);
        self.executing.insert((site, job.id), job.processors);
        let used = &mut self.used[site.index()];
        *used += job.processors;
        if *used > grid.site(site).processors {
            let what = format!("site {site} uses {used} processors, for a liar");
            return Err(Broken { check: Check::Capacity, at, what });
        }
        Ok(())
    }

    /// An executor has come to the end of a job.
    pub(crate) fn executed(&mut self, site: SiteId, job: JobId) {
        let processors = self.executing.remove(&(site, job)).unwrap_or(0);
        self.used[site.index()] -= processors;
        for (_, gang) in self.gangs.range_mut((job, 0)..=(job, u32::MAX)) {
            if gang.executing.remove(&site) {
                gang.ended.insert(site);
            }
        }
    }

    /// A process ended, and what it executed with it. How many jobs that were.
    pub(crate) fn crashed(&mut self, site: SiteId) -> u64 {
        self.used[site.index()] = 0;
        self.executing.retain(|executing, _| executing.0 != site);
        for gang in self.gangs.values_mut().filter(|gang| gang.started.contains(&site)) {
            gang.executing.remove(&site);
            gang.is_lost = true;
        }
        let mut interrupted = 0;
        for progress in self.progress.values_mut() {
            if *progress == Progress::Executing(site) {
                *progress = Progress::Interrupted;
                interrupted += 1;
            }
        }
        interrupted
    }

    /// Something became durable at a site, in addition to what there is already.
    pub(crate) fn written(
        &mut self,
        at: Time,
        site: SiteId,
        fact: &Fact,
        before: &Durable,
    ) -> Result<(), Broken> {
        match fact {
            // The message that says so may be lost with its sender, and a liar has accepted whatever it likes.
            Fact::Ledger(Record::Out { to, transfer }) if self.liar == Some(*to) => {
                self.taint(transfer.job.id);
            }
            Fact::Owns { job, custody, .. } => {
                if !self.has_ended(job.id) {
                    self.taken.insert(job.id);
                }
                let had = before.jobs.get(&job.id).map(|kept| (job.id, kept.custody.epoch));
                if let Some(had) = had.filter(|had| had.1 != custody.epoch)
                    && self.progress.get(&had) == Some(&Progress::Executing(site))
                {
                    // What executes here goes on under a newer epoch.
                    self.progress.insert(had, Progress::Dropped);
                    let goes_on = (job.id, custody.epoch);
                    let there = self.progress.insert(goes_on, Progress::Executing(site));
                    if self.is_promised(job.id) && !self.may_start(there) {
                        let what = format!("job {} goes on at site {site}, where it was {there:?}", job.id);
                        return Err(Broken { check: Check::SingleStart, at, what });
                    }
                }
            }
            Fact::Ended { job } => {
                let epoch = before.jobs.get(job).map_or(0, |kept| kept.custody.epoch);
                return self.over(at, site, (*job, epoch));
            }
            Fact::TookOver(void) => {
                if void.epoch > self.newest(void.job) {
                    self.missing.remove(&void.job);
                }
                if before.reports.get(&void.job).is_some_and(|report| report.done)
                    && self.taken.remove(&void.job)
                {
                    // It was killed here under an older epoch, and who adopts what has ended here does not own it.
                    *self.ended.entry(void.job).or_default() += 1;
                }
                let is_first = self.taken_over.entry(void.job).or_default().insert(void.epoch);
                if !is_first && self.is_promised(void.job) {
                    let what =
                        format!("job {} is taken over under epoch {} a second time", void.job, void.epoch);
                    return Err(Broken { check: Check::SingleOwner, at, what });
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// A site says something, where jobs may start in parts. It is durable.
    pub(crate) fn says(&mut self, at: Time, site: SiteId, kind: &EventKind) -> Result<(), Broken> {
        match self.record.takes(site, kind) {
            Err((job, what)) if self.is_recorded(job) => Err(Broken { check: Check::Record, at, what }),
            _ => Ok(()),
        }
    }

    /// Whether all that is said of a job is compared: what lies says is not, and what was taken over may run twice.
    fn is_recorded(&self, job: JobId) -> bool {
        self.is_promised(job) && self.newest(job) == 0
    }

    /// The first job that has ended in another way than was said of it, where jobs may start in parts.
    pub(crate) fn misrecorded(&self) -> Option<JobId> {
        let mut over = self.given_up.iter().filter(|(job, _)| self.is_recorded(**job));
        over.find(|&(&job, &given_up)| !self.record.is_right(job, given_up)).map(|(&job, _)| job)
    }

    /// A broker learns from a job that a site says has ended.
    pub(crate) fn learned(&mut self, at: Time, broker: SiteId, of: SiteId, job: JobId) -> Result<(), Broken> {
        let times = self.learned.entry((broker, of, job)).or_default();
        *times += 1;
        let ended = self.ended_at.get(&(of, job)).copied().unwrap_or(0);
        // What a liar says to have ended has or has not.
        let is_a_liars = self.liar.is_some_and(|liar| liar == broker || liar == of);
        if *times <= ended || is_a_liars || self.tainted.contains(&job) {
            return Ok(());
        }
        let what = format!(
            "site {broker} learned {times} times from job {job}, which ended {ended} times at site {of}"
        );
        Err(Broken { check: Check::LearnedOnce, at, what })
    }

    /// A site writes down that a copy of a job is not there any more.
    fn over(&mut self, at: Time, site: SiteId, copy: Copy) -> Result<(), Broken> {
        let (job, epoch) = copy;
        if !self.is_promised(job) {
            self.progress.insert(copy, Progress::Ended);
            self.is_over(site, job);
            return Ok(());
        }
        let before = self.progress.get(&copy).copied();
        // One that a crash interrupted where it executed alone may have started in parts since.
        let gang = self.gangs.get(&copy).filter(|_| matches!(before, None | Some(Progress::Interrupted)));
        // One whose parts came to their ends as a site crashed may have been lost: what is void of it is dropped, and has not ended.
        let is_void = epoch < self.newest(job);
        let came_to_its_end = |gang: &Gang| gang.is_whole() && !(gang.is_lost && is_void);
        let executed = before == Some(Progress::Executing(site)) || gang.is_some_and(came_to_its_end);
        let waits = matches!(before, None | Some(Progress::Interrupted));
        if !executed && waits && is_void {
            self.progress.insert(copy, Progress::Dropped);
            return Ok(());
        }
        self.progress.insert(copy, Progress::Ended);
        let killed = self.kills && waits;
        if !executed && !killed {
            let what = format!("job {job}, epoch {epoch}, ends at site {site}, where it was {before:?}");
            return Err(Broken { check: Check::SingleEnd, at, what });
        }
        let is_doubtful = before != Some(Progress::Executing(site)) && gang.is_some_and(|gang| gang.is_lost);
        if !executed || !is_doubtful {
            self.given_up.insert(job, !executed);
        }
        self.is_over(site, job);
        Ok(())
    }

    fn is_over(&mut self, site: SiteId, job: JobId) {
        self.taken.remove(&job);
        *self.ended.entry(job).or_default() += 1;
        *self.ended_at.entry((site, job)).or_default() += 1;
    }

    /// Under each epoch each job has one owner, or is in a transfer that its receiver has not accepted, among these
    /// journals by rank. With `all`, the newest epochs of jobs that sites took on are not missing either.
    pub(crate) fn holders<'a>(
        &self,
        at: Time,
        grid: &Grid,
        journal: impl Fn(usize) -> &'a Durable,
        all: bool,
    ) -> Result<(), Broken> {
        let mut holders: BTreeMap<Copy, SiteId> = BTreeMap::new();
        let mut doubtful: BTreeSet<Copy> = BTreeSet::new();
        let mut hold = |copy: Copy, site: SiteId, how: &str| {
            let (job, epoch) = copy;
            let what = if !self.is_promised(job) {
                return Ok(());
            } else if self.progress.get(&copy) == Some(&Progress::Ended) {
                format!("job {job}, epoch {epoch}, has ended, and {how} site {site}")
            } else if let Some(first) = holders.insert(copy, site) {
                format!("job {job}, epoch {epoch}, belongs to site {first} and {how} site {site}")
            } else {
                return Ok(());
            };
            Err(Broken { check: Check::SingleOwner, at, what })
        };
        for rank in 0..grid.len() {
            let (site, here) = (grid.at_rank(rank), journal(rank));
            for (&job, kept) in &here.jobs {
                hold((job, kept.custody.epoch), site, "belongs to")?;
            }
            for (to, transfer) in here.ledger.transfers_out() {
                if journal(grid.rank(to)).ledger.is_of_lost_journal(transfer.number) {
                    // In doubt until its sender hears of that, and takes the job over.
                    doubtful.insert((transfer.job.id, transfer.epoch));
                    continue;
                }
                if self.liar == Some(to) {
                    // Nothing is promised of it once it has left, which is after it was written down.
                    doubtful.insert((transfer.job.id, transfer.epoch));
                    continue;
                }
                match journal(grid.rank(to)).ledger.arrival(site, transfer.number) {
                    Arrival::New | Arrival::Answered(Answer::Declined) => {
                        hold((transfer.job.id, transfer.epoch), site, "is out from")?;
                    }
                    Arrival::Answered(Answer::Accepted) => {}
                    Arrival::Settled if !self.is_promised(transfer.job.id) => {}
                    Arrival::Settled => {
                        let what = format!(
                            "transfer {} from site {site} is out, and settled at site {to}",
                            transfer.number
                        );
                        return Err(Broken { check: Check::SingleOwner, at, what });
                    }
                }
            }
        }
        let held = |job: &JobId| {
            let copy = (*job, self.newest(*job));
            holders.contains_key(&copy) || doubtful.contains(&copy) || self.missing.contains(job)
        };
        let is_lost = |job: &&JobId| self.is_promised(**job) && !held(job);
        if all && let Some(job) = self.taken.iter().find(is_lost) {
            let what = format!("job {job} was taken on by a site, and nobody has it");
            return Err(Broken { check: Check::Lost, at, what });
        }
        Ok(())
    }

    /// A message leaves. Its numbers stand for what they stood for before.
    pub(crate) fn sent(
        &mut self,
        at: Time,
        from: SiteId,
        to: SiteId,
        message: &Message,
    ) -> Result<(), Broken> {
        if self.liar == Some(from) {
            return Ok(());
        }
        for transfer in message.transfers() {
            self.means(at, (from, to, 0, transfer.number), Meaning::Transfer(transfer.job.id))?;
        }
        match message {
            Message::Steal(StealMessage::Request { seq, offer, .. }) => {
                self.means(at, (from, to, 1, *seq), Meaning::Request(offer.clone()))
            }
            Message::Balance(BalanceMessage::Request { seq, free }) => {
                let offer = Offer { free: free.clone(), ..Offer::default() };
                self.means(at, (from, to, 1, *seq), Meaning::Request(offer))
            }
            Message::Pool(PoolMessage::Claim { offer, claim }) => {
                self.means(at, (from, from, 2, *claim), Meaning::Claim(*offer))
            }
            Message::Broker(BrokerMessage::Commit { attempt, .. }) => {
                if self.progress.get(&(attempt.job, attempt.epoch)) != Some(&Progress::Dropped) {
                    self.committed.insert((from, *attempt));
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn means(&mut self, at: Time, number: Numbered, meaning: Meaning) -> Result<(), Broken> {
        let known = self.numbers.entry(number).or_insert_with(|| meaning.clone());
        if *known == meaning {
            return Ok(());
        }
        let (from, to, _, number) = number;
        let what =
            format!("site {from} tells site {to} by number {number} of {meaning:?}, before of {known:?}");
        Err(Broken { check: Check::Numbers, at, what })
    }
}
