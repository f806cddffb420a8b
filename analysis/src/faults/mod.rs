//! What crashes, silence and take-overs did to a run: to its sites, and to each job that they touched.
//!
//! Read from events, as everything else. Drivers say when a process ended and restarted. Where nobody does, as of nodes
//! that were started by hand, a site that comes back says so, and what it had done by its last event before that; then
//! downtimes and what was wasted are given as bounds: *at least* up to the last sign of life, *at most* until the site
//! was back. [`RanTwice`] says exactly what is known of jobs that ran in two places. [`crate::executions`] says which
//! starts are allowed.

mod builder;
#[cfg(test)]
mod naive;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use scheduler::event::{BeginCause, EndCause};
use scheduler::{JobId, SiteId, Span, Time};

pub(crate) use builder::{FaultsBuilder, JobRecord};

/// Everything that is known of the faults of a run. Empty if there were none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Faults {
    /// Sums over the run.
    pub totals: Totals,
    /// Sites that crashed, or of which others believed something, in the order of the experiment.
    pub sites: Vec<SiteFaults>,
    /// Jobs that were interrupted, taken over, superseded or orphaned, or that started twice, by number.
    pub jobs: Vec<JobFaults>,
    /// Executions that are not the one that counts, by job and start.
    pub attempts: Vec<Attempt>,
    /// When sites were down, by site and begin.
    pub downtimes: Vec<Downtime>,
    /// What drivers say that they did to sites, in the order of events.
    pub deeds: Vec<Deed>,
    /// What sites believed of each other, in the order of events.
    pub membership: Vec<Belief>,
}

/// Sums over a run. Work in processor-seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Totals {
    /// How often a site restarted after a crash.
    pub crashes: u64,
    /// Sites that were down when the run ended, or silent and believed to be.
    pub silent_sites: u64,
    /// Time that sites were down: from their end, or their last event if nobody says when they ended, until they were
    /// back or the run ended.
    pub down_at_most_s: f64,
    /// How often a site stood still.
    pub pauses: u64,
    /// How long, in all.
    pub paused_s: f64,
    /// Sites that joined late.
    pub joined: u64,
    /// Sites that were to join and never did.
    pub absent: u64,
    /// Sites that were told to leave.
    pub dismissed: u64,
    /// Of those, sites that had nothing left to do, so that their process ended.
    pub have_left: u64,
    /// The longest time from a restart until a site that had given up on the one restarted heard of it again.
    pub rejoin_max_s: Option<f64>,
    /// Executions that a crash interrupted.
    pub interrupted: u64,
    /// Jobs that were given up.
    pub killed: u64,
    /// Work of executions that a crash interrupted, up to the end of their process, or to the last sign of life of their
    /// site if nobody says when that was.
    pub wasted_at_least: f64,
    /// The same, or until their site was back.
    pub wasted_at_most: f64,
    /// Work of executions without an end that are not the one that counts, until the last sign of life of their site.
    pub unknown_work: f64,
    /// Work of executions that ended after another of the same job had.
    pub repeated_work: f64,
    /// How often a site suspected another.
    pub suspected: u64,
    /// How often a site heard of another again.
    pub heard: u64,
    /// How often a site held another for gone.
    pub gone: u64,
    /// How often a site learned that another leaves.
    pub left: u64,
    /// Take-overs of jobs.
    pub taken_over: u64,
    /// Copies that were dropped because their job was taken over.
    pub superseded: u64,
    /// Copies that executed when their site learned of the take-over.
    pub superseded_running: u64,
    /// Jobs that may have run twice, those that did included: see [`RanTwice`].
    pub may_have_run_twice: u64,
    /// Jobs of which two executions ended by themselves.
    pub ran_twice: u64,
    /// Jobs for which nobody was wide enough for some time.
    pub orphaned: u64,
    /// Of those, jobs for which that was so when the run ended.
    pub still_orphaned: u64,
    /// The longest such time.
    pub orphaned_max_s: f64,
}

/// What happened to a site. Work in processor-seconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SiteFaults {
    /// The site that it happened to.
    pub site: SiteId,
    /// Name of the site in the experiment.
    pub name: String,
    /// How often it restarted after a crash.
    pub crashes: u64,
    /// How long it was down; at most, where nobody says when its process ended.
    pub down_at_most_s: f64,
    /// Whether it was down when the run ended, or silent and believed to be.
    pub silent_at_end: bool,
    /// How often it stood still.
    #[serde(default)]
    pub pauses: u64,
    /// How long, in all.
    #[serde(default)]
    pub paused_s: f64,
    /// When it joined; none if it was there from the start, or never was.
    #[serde(default)]
    pub joined_at_s: Option<f64>,
    /// Whether it was to join and never did.
    #[serde(default)]
    pub absent: bool,
    /// Whether it was told to leave.
    #[serde(default)]
    pub dismissed: bool,
    /// Whether it then had nothing left to do, so that its process ended.
    #[serde(default)]
    pub has_left: bool,
    /// The longest time from a restart until all had heard of it again that had given up on it.
    pub rejoin_max_s: Option<f64>,
    /// Executions that a crash interrupted.
    pub interrupted: u64,
    /// Of those, jobs that were given up.
    pub killed: u64,
    /// Work of those executions up to the end of the process, or to the last sign of life if nobody says when that was.
    pub wasted_at_least: f64,
    /// The same, or until it was back.
    pub wasted_at_most: f64,
    /// How often others suspected it.
    pub suspected: u64,
    /// How often others heard of it again.
    pub heard: u64,
    /// How often others held it for gone.
    pub gone: u64,
    /// How often others learned that it leaves.
    pub left: u64,
    /// Jobs that it took over.
    pub took_over: u64,
    /// Jobs that others took over from it, each once.
    pub taken_from: u64,
}

/// What happened to a job. Work in processor-seconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobFaults {
    /// The job that it happened to.
    pub job: JobId,
    /// Processors that it held while it executed.
    pub processors: u32,
    /// How often it started.
    pub starts: u32,
    /// How often it ended by itself.
    pub completions: u32,
    /// How often a crash interrupted it.
    pub interrupted: u32,
    /// Whether it was given up for that, and never started again.
    pub killed: bool,
    /// How often it was taken over.
    pub taken_over: u32,
    /// Copies that were dropped because it was taken over.
    pub superseded: u32,
    /// Copies that executed when their site learned of it.
    pub superseded_running: u32,
    /// Whether it ran twice.
    pub ran_twice: RanTwice,
    /// Whether nobody was wide enough for it for some time.
    pub was_orphaned: bool,
    /// How long that was: until it was given to a site, started or was dropped, or the run ended.
    #[serde(rename = "orphaned_s", with = "scheduler::time::seconds")]
    pub orphaned: Span,
    /// Whether it was orphaned when the run ended.
    pub still_orphaned: bool,
    /// Work of interrupted executions up to the end of their process, or to the last sign of life of their site if nobody
    /// says when that was.
    pub wasted_at_least: f64,
    /// The same, or until their site was back.
    pub wasted_at_most: f64,
    /// Work of executions without an end that are not the one that counts, until the last sign of life of their site.
    pub unknown_work: f64,
    /// Work of executions that ended after another.
    pub repeated_work: f64,
}

/// Whether a job ran twice, as far as events tell.
///
/// An execution *may have ended* if it ended by itself, or if no event says what became of it: neither its end, nor that
/// a crash interrupted it, nor that its process ended. To these comes one that no event shows for a site from which the
/// job was taken over, or to which it was on its way at that time, if no event of that site is newer than the take-over,
/// or if the site is silent at the end of the run; where the operator let a site adopt the job, that holds for every
/// other site. But not if the driver says that the process of that site has ended for good, or never began: all that it
/// started is in the log then. Not if the site said after the take-over that it dropped its copy, and not if an open
/// execution there is counted already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RanTwice {
    /// At most one execution may have ended.
    #[default]
    No,
    /// Two executions may have ended, but not two are known to.
    Perhaps,
    /// Two executions ended by themselves.
    Yes,
}

/// An execution that is not the one that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// The job that was executed.
    pub job: JobId,
    /// The site that executed it.
    pub site: SiteId,
    /// Processors that it held.
    pub processors: u32,
    /// When it started.
    pub start: Time,
    /// Until when it executed at least.
    pub at_least: Time,
    /// Until when it held its processors at most.
    pub at_most: Time,
    /// What became of it.
    pub end: AttemptEnd,
}

/// What became of an execution that does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptEnd {
    /// A crash interrupted it.
    Interrupted,
    /// No event says.
    Unknown,
    /// It ended by itself, after another of the same job.
    Repeated,
}

/// A time that a site was down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Downtime {
    /// The site that was down.
    pub site: SiteId,
    /// When its process ended; where that is not known, its last event, `None` if it had none before.
    pub from: Option<Time>,
    /// When it was back; `None` if never.
    pub to: Option<Time>,
    /// How it ended, if the driver says so.
    pub how: Option<EndCause>,
}

impl Downtime {
    /// Whether the process ended at the begin of this time, and not perhaps later.
    pub fn is_exact(&self) -> bool {
        self.how.is_some_and(|how| how != EndCause::Found)
    }
}

/// What a driver says that it did to a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deed {
    /// The site that it was done to.
    pub site: SiteId,
    /// When it was done, in trace time.
    pub at: Time,
    /// What was done to the process.
    pub what: Done,
}

/// What was done to a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    /// It is away.
    Ended(EndCause),
    /// It is there.
    Begun(BeginCause),
    /// It was told to leave.
    Dismissed,
}

/// What a site came to believe of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Belief {
    /// When the belief began, in trace time.
    pub at: Time,
    /// Who believes it; of a restart the site itself.
    pub observer: SiteId,
    /// The site that it is about.
    pub about: SiteId,
    /// What is believed of that site.
    pub what: Presence,
    /// How long the site was silent, where that is known.
    pub after: Option<Span>,
}

/// What is believed of a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It restarted after a crash.
    Recovered,
    /// It is silent.
    Suspected,
    /// It is there again.
    Heard,
    /// It was silent for so long that its jobs are taken over.
    Gone,
    /// It takes no more jobs and gives those away that wait there.
    Left,
}

impl Faults {
    /// Whether there were none.
    pub fn is_empty(&self) -> bool {
        self.sites.is_empty() && self.jobs.is_empty() && self.membership.is_empty() && self.deeds.is_empty()
    }

    /// Whether executions were lost or repeated, or processors were not there: then what is computed from starts, ends and
    /// idle processors alone does not explain the run.
    pub fn disturbed(&self) -> bool {
        !self.attempts.is_empty()
            || !self.downtimes.is_empty()
            || !self.deeds.is_empty()
            || self.jobs.iter().any(|job| job.taken_over > 0 || job.interrupted > 0)
    }

    /// Jobs that may have run twice, those that did included.
    pub fn may_have_run_twice(&self) -> impl Iterator<Item = &JobFaults> {
        self.jobs.iter().filter(|job| job.ran_twice != RanTwice::No)
    }
}

impl RanTwice {
    /// The name in files.
    pub fn name(self) -> &'static str {
        match self {
            RanTwice::No => "no",
            RanTwice::Perhaps => "perhaps",
            RanTwice::Yes => "yes",
        }
    }
}

impl Presence {
    /// The name in files.
    pub fn name(self) -> &'static str {
        match self {
            Presence::Recovered => "recovered",
            Presence::Suspected => "suspected",
            Presence::Heard => "heard",
            Presence::Gone => "gone",
            Presence::Left => "left",
        }
    }
}
