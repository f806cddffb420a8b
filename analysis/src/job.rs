//! A job of a run: how far it got, when, and where.

use serde::{Deserialize, Serialize};

use scheduler::job::SLOWDOWN_BOUND;
use scheduler::{Class, JobId, Labels, SiteId, Span, Time};

/// How far a job got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// Not submitted before the run stopped.
    Pending,
    /// Submitted and not started.
    Waiting,
    /// Started and not ended.
    Running,
    /// Ended by itself.
    Completed,
    /// Ended because its estimate was used up: it ran for less than its true run time.
    WalltimeReached,
    /// Given up because its site crashed while it executed.
    Killed,
    /// Too wide for the grid: never in the system.
    Rejected,
}

impl JobState {
    /// All states, in the order of a job's life.
    pub const ALL: [JobState; 7] = [
        JobState::Pending,
        JobState::Waiting,
        JobState::Running,
        JobState::Completed,
        JobState::WalltimeReached,
        JobState::Killed,
        JobState::Rejected,
    ];

    /// Whether the job ran to an end.
    pub fn is_finished(self) -> bool {
        matches!(self, JobState::Completed | JobState::WalltimeReached)
    }

    /// The name in files.
    pub fn name(self) -> &'static str {
        match self {
            JobState::Pending => "pending",
            JobState::Waiting => "waiting",
            JobState::Running => "running",
            JobState::Completed => "completed",
            JobState::WalltimeReached => "walltime_reached",
            JobState::Killed => "killed",
            JobState::Rejected => "rejected",
        }
    }
}

/// What became of one job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobOutcome {
    /// Id of the job in the workload.
    pub id: JobId,
    /// Submission time r_j, from the workload.
    pub submit: Time,
    /// When it started.
    pub start: Option<Time>,
    /// When it ended (c_j).
    pub end: Option<Time>,
    /// Requested time p'_j.
    pub requested: Span,
    /// True run time of the workload; the time it executed for can be less, see [`JobOutcome::execution`].
    pub run_time: Span,
    /// Time under way between sites: for every hop, from the grant to its acceptance.
    pub steal_delay: Span,
    /// From when the site where it started last accepted it to its start: more than nothing if it did not fit at once. Nothing for
    /// jobs that never moved, and those that a fault touched.
    pub start_delay: Span,
    /// Width size_j in processors.
    pub processors: u32,
    /// Changes of site.
    pub hops: u32,
    /// Where the user submitted it.
    pub origin: SiteId,
    /// The smallest site that can hold it; `None` if none can, as of rejected jobs and of those that only several sites hold.
    pub home: Option<SiteId>,
    /// The site in whose queue it came first: where it was submitted, or was routed from there. Its home where jobs are
    /// submitted at home; `None` for rejected jobs, and before its submission for one that no site can hold.
    pub arrived: Option<SiteId>,
    /// Where it started.
    pub site: Option<SiteId>,
    /// What the log tells of it.
    pub labels: Labels,
    /// Class at its home; B for jobs that have none.
    pub class: Class,
    /// How far it got.
    pub state: JobState,
}

impl JobOutcome {
    /// The time it held its processors, `None` before its end.
    pub fn execution(&self) -> Option<Span> {
        Some(self.end?.since(self.start?))
    }

    /// The run time a lower bound may count on: what was executed if the job ended, else the true run time.
    pub fn service(&self) -> Span {
        self.execution().unwrap_or(self.run_time)
    }

    /// Time from submission to start, `None` before its start.
    pub fn wait(&self) -> Option<Span> {
        Some(self.start?.since(self.submit))
    }

    /// Time from submission to end, `None` before its end.
    pub fn turnaround(&self) -> Option<Span> {
        Some(self.end?.since(self.submit))
    }

    /// Turnaround over max(10 s, run time), SD_b of the thesis (Quezada Pina 2012, Eq. 2); the usual bounded slowdown is the
    /// greater of it and 1 (Feitelson et al. 1997). `None` before its end.
    pub fn bounded_slowdown(&self) -> Option<f64> {
        let run_time = self.service().as_secs_f64().max(SLOWDOWN_BOUND.as_secs_f64());
        Some(self.turnaround()?.as_secs_f64() / run_time)
    }

    /// Processor time used, in processor-microseconds; 0 before its end.
    pub fn work(&self) -> i128 {
        self.execution().map_or(0, |span| i128::from(span.as_micros()) * i128::from(self.processors))
    }

    /// Whether it started at another site than that in whose queue it came first.
    pub fn stolen(&self) -> bool {
        self.site.is_some() && self.site != self.arrived
    }

    /// Whether it started at another site than its home.
    pub fn away_from_home(&self) -> bool {
        self.site.is_some() && self.site != self.home
    }

    /// Whether it started at another site than the workload names.
    pub fn away_from_origin(&self) -> bool {
        self.site.is_some_and(|site| site != self.origin)
    }
}
