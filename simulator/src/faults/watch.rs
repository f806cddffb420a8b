//! What is asserted after each call, from what is durable and what executors were told, not from what peers say.

use std::collections::{BTreeMap, BTreeSet};

use protocol::handover::{Answer, Arrival};
use protocol::message::{Offer, OfferId};
use protocol::{Durable, Fact, Message};
use scheduler::{Grid, JobId, JobSpec, SiteId, Time};

/// One of the checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Check {
    /// A job executes once; again only after a crash ended it, and only if interrupted jobs wait again.
    SingleStart,
    /// No job starts before its submission.
    Early,
    /// No site executes more than fits.
    Capacity,
    /// A job that a site took on is never lost.
    Lost,
    /// A job has one owner, or is in one transfer whose receiver has not accepted.
    SingleOwner,
    /// A job ends once, and only after it was executed or killed.
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
}

impl Check {
    /// All.
    pub const ALL: [Check; 13] = [
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
        }
    }
}

/// A check that does not hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} at {at}: {what}", check.name())]
pub struct Broken {
    /// Which.
    pub check: Check,
    /// True time.
    pub at: Time,
    /// What was seen.
    pub what: String,
}

/// How far the execution of a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// Users have it, or a site where it waits.
    Waiting,
    /// At this site, or ended there and not yet written down.
    Executing(SiteId),
    /// A crash ended it.
    Interrupted,
    /// It is written down that it ended.
    Ended,
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
    progress: BTreeMap<JobId, Progress>,
    /// Jobs that a site took on durably and that have not ended.
    taken: BTreeSet<JobId>,
    used: Vec<u32>,
    numbers: BTreeMap<Numbered, Meaning>,
    /// Whether interrupted jobs are given up.
    kills: bool,
    /// Jobs given up, or ended.
    ended: usize,
}

impl Watch {
    pub(crate) fn new(sites: usize, kills: bool) -> Watch {
        Watch {
            progress: BTreeMap::new(),
            taken: BTreeSet::new(),
            used: vec![0; sites],
            numbers: BTreeMap::new(),
            kills,
            ended: 0,
        }
    }

    /// How many jobs have ended for good.
    pub(crate) fn ended(&self) -> usize {
        self.ended
    }

    /// A job that has not ended.
    pub(crate) fn unfinished(&self) -> Option<JobId> {
        self.progress.iter().find(|&(_, &progress)| progress != Progress::Ended).map(|(&job, _)| job)
    }

    pub(crate) fn submitted(&mut self, job: JobId) {
        self.progress.insert(job, Progress::Waiting);
    }

    /// An executor begins a job.
    pub(crate) fn started(
        &mut self,
        at: Time,
        grid: &Grid,
        site: SiteId,
        job: &JobSpec,
    ) -> Result<(), Broken> {
        let broken = |check, what| Err(Broken { check, at, what });
        let id = job.id;
        match self.progress.get(&id) {
            None => {
                return broken(
                    Check::Early,
                    format!("job {id} starts at site {site} before it is submitted"),
                );
            }
            Some(Progress::Waiting) => {}
            Some(Progress::Interrupted) if !self.kills => {}
            Some(Progress::Interrupted) => {
                return broken(
                    Check::SingleStart,
                    format!("job {id}, killed by a crash, starts at site {site}"),
                );
            }
            Some(Progress::Executing(other)) => {
                return broken(
                    Check::SingleStart,
                    format!("job {id} starts at site {site} and executes at {other}"),
                );
            }
            Some(Progress::Ended) => {
                return broken(
                    Check::SingleStart,
                    format!("job {id} starts at site {site} after it has ended"),
                );
            }
        }
        self.progress.insert(id, Progress::Executing(site));
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

    /// An executor has come to the end of a job.
    pub(crate) fn executed(&mut self, site: SiteId, processors: u32) {
        self.used[site.index()] -= processors;
    }

    /// A process ended, and what it executed with it. How many jobs that were.
    pub(crate) fn crashed(&mut self, site: SiteId) -> u64 {
        self.used[site.index()] = 0;
        let mut interrupted = 0;
        for progress in self.progress.values_mut() {
            if *progress == Progress::Executing(site) {
                *progress = Progress::Interrupted;
                interrupted += 1;
            }
        }
        interrupted
    }

    /// Something became durable.
    pub(crate) fn written(&mut self, at: Time, site: SiteId, fact: &Fact) -> Result<(), Broken> {
        match fact {
            Fact::Owns { job, .. } => {
                self.taken.insert(job.id);
            }
            Fact::Ended { job } => {
                let before = self.progress.insert(*job, Progress::Ended);
                let executed = before == Some(Progress::Executing(site));
                let killed = self.kills && matches!(before, Some(Progress::Waiting | Progress::Interrupted));
                if !executed && !killed {
                    let what = format!("job {job} ends at site {site}, where it was {before:?}");
                    return Err(Broken { check: Check::SingleEnd, at, what });
                }
                self.taken.remove(job);
                self.ended += 1;
            }
            _ => {}
        }
        Ok(())
    }

    /// Each job has one owner, or is in a transfer that its receiver has not accepted, among these journals by rank.
    /// With `all`, jobs that sites took on are not missing either.
    pub(crate) fn holders<'a>(
        &self,
        at: Time,
        grid: &Grid,
        journal: impl Fn(usize) -> &'a Durable,
        all: bool,
    ) -> Result<(), Broken> {
        let mut holders: BTreeMap<JobId, SiteId> = BTreeMap::new();
        let mut hold = |job: JobId, site: SiteId, how: &str| {
            let what = if self.progress.get(&job) == Some(&Progress::Ended) {
                format!("job {job} has ended, and {how} site {site}")
            } else if let Some(first) = holders.insert(job, site) {
                format!("job {job} belongs to site {first} and {how} site {site}")
            } else {
                return Ok(());
            };
            Err(Broken { check: Check::SingleOwner, at, what })
        };
        for rank in 0..grid.len() {
            let (site, here) = (grid.at_rank(rank), journal(rank));
            for &job in here.jobs.keys() {
                hold(job, site, "belongs to")?;
            }
            for (to, transfer) in here.ledger.transfers_out() {
                match journal(grid.rank(to)).ledger.arrival(site, transfer.number) {
                    Arrival::New | Arrival::Answered(Answer::Declined) => {
                        hold(transfer.job.id, site, "is out from")?;
                    }
                    Arrival::Answered(Answer::Accepted) => {}
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
        if all && let Some(job) = self.taken.iter().find(|job| !holders.contains_key(job)) {
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
        for transfer in message.transfers() {
            self.means(at, (from, to, 0, transfer.number), Meaning::Transfer(transfer.job.id))?;
        }
        match message {
            Message::Request { seq, offer, .. } => {
                self.means(at, (from, to, 1, *seq), Meaning::Request(offer.clone()))
            }
            Message::Claim { offer, claim } => {
                self.means(at, (from, from, 2, *claim), Meaning::Claim(*offer))
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
