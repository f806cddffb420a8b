//! One row per job: when and where it ran, and how it got there.
//!
//! [`OutcomeBuilder`] makes an [`Outcome`] from the workload and the events of a run, one event at a time, so
//! that no list of events is kept. Numbers derived from the rows are in [`crate::metrics`].

mod builder;
mod traffic;

use serde::{Deserialize, Serialize};

use std::collections::BTreeMap;

use scheduler::event::ExitCause;
use scheduler::{Grid, JobId, SiteId, Span, Submit, Threshold, Time, TimedJob};

use crate::faults::Faults;
use crate::job::{JobOutcome, JobState};
use crate::sharing::{Placement, Placements};

pub use builder::OutcomeBuilder;
pub use traffic::{MessageCounts, Traffic};

/// What the events contradicted. All zero in a sound run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contradictions {
    /// Events about jobs that the workload does not have.
    pub unknown_jobs: u64,
    /// Starts of a job that had started before, without a crash or a take-over that allows it.
    pub repeated_starts: u64,
    /// Ends of a job that was not running.
    pub unexpected_ends: u64,
    /// Starts or submissions of a job that the grid cannot hold.
    pub rejected_seen: u64,
}

impl Contradictions {
    /// How many there are in all.
    pub fn total(self) -> u64 {
        self.unknown_jobs + self.repeated_starts + self.unexpected_ends + self.rejected_seen
    }
}

/// From where everything is counted: the first submission of a job that the grid can hold, as others are not measured.
pub fn first_submission<'a>(grid: &Grid, jobs: impl IntoIterator<Item = &'a TimedJob>) -> Option<Time> {
    let fits = |job: &&TimedJob| job.spec.processors <= grid.widest_job();
    jobs.into_iter().filter(fits).map(|job| job.spec.submit).min()
}

/// What became of every job of a run, complete or not.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The sites of the run.
    pub grid: Grid,
    /// The border between classes A and B.
    pub threshold: Threshold,
    /// One row per job of the workload, in its order.
    pub jobs: Vec<JobOutcome>,
    /// Messages, requests and transfers.
    pub traffic: Traffic,
    /// What the events contradicted.
    pub contradictions: Contradictions,
    /// From where the makespan and all bounds are counted: [`first_submission`], 0 if there is none.
    pub origin: Time,
    /// The time of the latest event, and not before the origin.
    pub until: Time,
    /// How many events were observed.
    pub events: u64,
    /// Jobs of a global queue that started although an older one was on offer that would have fit in their place,
    /// known at the end. `None` if no job was on offer, as in ideal runs.
    pub fcfs_inversions: Option<u64>,
    /// Where users submitted jobs.
    pub submit: Submit,
    /// What crashes and take-overs did, known at the end.
    pub faults: Faults,
    /// Of jobs whose run times were predicted, what; nothing if nobody predicts.
    pub predicted: BTreeMap<JobId, Predicted>,
    /// Of jobs that started at several sites, which and how many of their processors are at each: first the site of the row.
    pub spread: BTreeMap<JobId, Vec<(SiteId, u32)>>,
    /// Executions on nodes that jobs share; nothing if they share none.
    pub placements: Placements,
    /// Of jobs that were commands, how each ended last; nothing where jobs are timers.
    pub exits: BTreeMap<JobId, JobExit>,
}

/// How a command ended that was a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobExit {
    /// What ended it.
    pub how: ExitCause,
    /// Its exit code, if it is known.
    pub code: Option<i32>,
}

impl JobExit {
    /// Whether it did what it was to do, as far as it says itself.
    pub fn is_success(self) -> bool {
        self.how == ExitCause::Exit && self.code == Some(0)
    }
}

/// What was predicted of a job where it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Predicted {
    /// How long it was believed to run when it joined the queue there.
    pub run_time: Span,
    /// How often it ran past a prediction there.
    pub corrections: u32,
}

impl Outcome {
    /// Whether every job that could run has ended, or was given up.
    pub fn is_complete(&self) -> bool {
        let given_up = |job: &JobOutcome| matches!(job.state, JobState::Rejected | JobState::Killed);
        self.jobs.iter().all(|job| job.state.is_finished() || given_up(job))
    }

    /// Jobs that ended, in the order of the workload.
    pub fn finished(&self) -> impl Iterator<Item = &JobOutcome> {
        self.jobs.iter().filter(|job| job.state.is_finished())
    }

    /// A job as each site has it where it started: itself, or if it is spread one row for each of its parts, with the processors there.
    pub fn parts(&self, job: &JobOutcome) -> impl Iterator<Item = JobOutcome> {
        let (whole, spread) = (*job, self.spread.get(&job.id));
        let parts = spread.into_iter().flatten().map(move |&(site, processors)| JobOutcome {
            site: Some(site),
            processors,
            ..whole
        });
        parts.chain((spread.is_none() && whole.site.is_some()).then_some(whole))
    }

    /// How many jobs are in a state.
    pub fn count(&self, state: JobState) -> usize {
        self.jobs.iter().filter(|job| job.state == state).count()
    }

    /// The makespan C_max: from the first submission, [`Outcome::origin`], to the latest end. Zero if no job ended.
    ///
    /// This is the only makespan. Utilization, throughput and competitive ratios divide by it, and lower bounds and
    /// theorems are counted from the same origin, so none of them depends on what time the log calls 0.
    pub fn makespan(&self) -> Span {
        let last = self.finished().filter_map(|job| job.end).max();
        last.map_or(Span::ZERO, |end| end.since(self.origin))
    }

    /// The nodes and speeds of the execution that a row shows, if it is on shared nodes.
    pub fn placement(&self, job: &JobOutcome) -> Option<&Placement> {
        self.placements.get(job.id, job.site?, job.start?)
    }

    /// How many times longer a job took than on idle nodes of full power: the mean slow-down of Lérida (3.1). `None` if it has not
    /// ended, takes no time, or was on no shared nodes.
    pub fn sharing_slowdown(&self, job: &JobOutcome) -> Option<f64> {
        self.placement(job)?;
        let (execution, run_time) = (job.execution()?, job.run_time);
        (run_time > Span::ZERO).then(|| execution.as_secs_f64() / run_time.as_secs_f64())
    }

    /// Whether all jobs that may run are submitted at once: the *offline* case of the theorems.
    pub fn is_offline(&self) -> bool {
        self.jobs.iter().all(|job| job.state == JobState::Rejected || job.submit <= self.origin)
    }
}
