//! What sites and brokers say to each other.
//!
//! A site tells each broker what happened there as one row of changes, numbered from 0. A new row, of a higher epoch, begins
//! with what the site has. So a broker knows from the numbers whether it missed something, and needs no more than the
//! newest row, whichever of the two restarted.

use scheduler::event::MessageKind;
use scheduler::{JobId, JobSpec, SiteId, Span, Time};
use serde::{Deserialize, Serialize};

use crate::gang::Attempt;
use crate::message::jobs::Transfer;
use crate::message::part::Part;

/// Most changes in one message, with the jobs that decisions started; more go in several.
pub const CHANGES_MAX: usize = 1024;

/// Something that happened at a site, by its clock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Change {
    /// A job joined the queue.
    Joined {
        /// When.
        at: Time,
        /// The job that waits from then on.
        job: JobSpec,
    },
    /// The site decided, and started these jobs.
    Decided {
        /// When.
        at: Time,
        /// In the order of the decisions.
        started: Vec<JobId>,
    },
    /// A job ended.
    Ended {
        /// When.
        at: Time,
        /// The job that has freed its processors.
        job: JobId,
    },
    /// A job went to another site before it started.
    Left {
        /// When.
        at: Time,
        /// The job that does not wait here any more.
        job: JobId,
    },
    /// A job executes, as a row begins.
    Runs {
        /// When the row began.
        at: Time,
        /// The job that executes.
        job: JobSpec,
        /// Since when.
        since: Time,
    },
    /// A job joined the queue late, before another one that was sent after it and had overtaken it.
    JoinedBefore {
        /// When.
        at: Time,
        /// The job that waits from then on.
        job: JobSpec,
        /// The job that comes after it, of those that wait.
        overtaker: JobId,
    },
    /// A job ended that shared nodes, or the first part of one, where brokers predict run times.
    EndedAfter {
        /// When.
        at: Time,
        /// The job that has freed its nodes or processors.
        job: JobId,
        /// How long it ran, or would have on idle nodes of full power.
        run_time: Span,
    },
    /// The row begins, after the broker asked for one: what an incarnation of it before was told may arrive once more, and is no answer.
    Asked {
        /// When.
        at: Time,
        /// The newest request ([`BrokerMessage::Anew`]) that the site has heard.
        count: u64,
    },
    /// A part of a job has processors, where brokers predict run times.
    PartRuns {
        /// When that was told.
        at: Time,
        /// The job with the processors of the part.
        part: JobSpec,
        /// Since when.
        since: Time,
        /// Processors of the whole job.
        whole: u32,
    },
    /// A part of a job ended, where brokers predict run times; how long the job ran, the site tells that it is known by.
    PartEnded {
        /// When.
        at: Time,
        /// The job that has freed its processors.
        job: JobId,
    },
}

impl Change {
    /// When it happened.
    pub(super) fn at(&self) -> Time {
        match self {
            Change::Joined { at, .. }
            | Change::Decided { at, .. }
            | Change::Ended { at, .. }
            | Change::Left { at, .. }
            | Change::Runs { at, .. }
            | Change::JoinedBefore { at, .. }
            | Change::EndedAfter { at, .. }
            | Change::Asked { at, .. }
            | Change::PartRuns { at, .. }
            | Change::PartEnded { at, .. } => *at,
        }
    }

    /// How many entries of lists it is: itself, and the jobs that a decision started.
    pub(super) fn entries(&self) -> usize {
        match self {
            Change::Decided { started, .. } => 1 + started.len(),
            Change::Joined { .. }
            | Change::Ended { .. }
            | Change::Left { .. }
            | Change::Runs { .. }
            | Change::JoinedBefore { .. }
            | Change::EndedAfter { .. }
            | Change::Asked { .. }
            | Change::PartRuns { .. }
            | Change::PartEnded { .. } => 1,
        }
    }
}

/// Reports of sites, and what brokers ask of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BrokerMessage {
    /// Site to broker: this happened here.
    State {
        /// Of the row; the highest counts.
        epoch: u64,
        /// Number of the first of these changes in the row.
        first: u64,
        /// What happened, in order.
        changes: Vec<Change>,
        /// Number of the probe that this answers, 0 for none.
        probe: u64,
    },
    /// Broker to site: these changes have arrived, and all before.
    Known {
        /// Of the row.
        epoch: u64,
        /// Number of the change after them.
        next: u64,
    },
    /// Broker to site: tell me what happened since you told me last.
    Probe {
        /// Counts the probes of this broker to this site, from 1.
        probe: u64,
    },
    /// Broker to site: I know nothing of you. Begin a new row.
    Anew {
        /// Counts how often this broker asked for it; repeated until it is heard.
        count: u64,
    },
    /// Broker to site: keep processors for a part of a job.
    Prepare {
        /// Of which attempt to start it.
        attempt: Attempt,
        /// All attempts of this broker below are settled.
        floor: u64,
        /// The job with the processors of the part alone.
        part: Box<JobSpec>,
        /// The site that the job is known by.
        of: SiteId,
        /// How often the job has changed sites, once it starts.
        hops: u32,
    },
    /// Broker to site: all parts have their processors.
    Commit {
        /// Of which attempt.
        attempt: Attempt,
        /// When all start. One that hears of it later starts at once.
        at: Time,
    },
    /// Broker to site: this attempt does not start.
    Abort {
        /// Which.
        attempt: Attempt,
    },
    /// Site to broker: processors are kept for a part. Also the question what becomes of it.
    Ready {
        /// Of which attempt.
        attempt: Attempt,
    },
    /// Site to broker: there are none for it.
    Refused {
        /// Of which attempt.
        attempt: Attempt,
    },
    /// Site to broker: a part is over, and its processors are free.
    Over {
        /// Of which attempt.
        attempt: Attempt,
        /// Whether it ran to its end.
        ended: bool,
    },
    /// Broker to site: that a part is over was heard.
    Heard {
        /// Of which attempt.
        attempt: Attempt,
    },
    /// Broker to site: send me a job that waits in your queue, as it can start elsewhere.
    Fetch {
        /// Which.
        job: JobId,
    },
    /// Site to broker: it does not wait here any more.
    Missing {
        /// Which.
        job: JobId,
    },
    /// Broker to site: [`BrokerMessage::Prepare`], where run times are predicted.
    PreparePredicted {
        /// Of which attempt to start it.
        attempt: Attempt,
        /// All attempts of this broker below are settled.
        floor: u64,
        /// The job with the processors of the part alone.
        part: Box<JobSpec>,
        /// The site that the job is known by.
        of: SiteId,
        /// How often the job has changed sites, once it starts.
        hops: u32,
        /// Processors of the whole job.
        whole: u32,
        /// How long it is predicted to run, in all of its parts.
        run_time: Span,
    },
}

impl PartialOrd for BrokerMessage {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for BrokerMessage {
    /// By what tells two messages of one sender apart.
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        fn key(message: &BrokerMessage) -> (u8, u64, u64, u64, usize) {
            let of = |kind: u8, attempt: &Attempt, more: u64| {
                let Attempt { job, epoch, number } = *attempt;
                (kind, number, job.0, more, epoch as usize)
            };
            match message {
                BrokerMessage::State { epoch, first, changes, probe } => {
                    (0, *epoch, *first, *probe, changes.len())
                }
                BrokerMessage::Known { epoch, next } => (1, *epoch, *next, 0, 0),
                BrokerMessage::Probe { probe } => (2, *probe, 0, 0, 0),
                BrokerMessage::Anew { count } => (3, *count, 0, 0, 0),
                BrokerMessage::Prepare { attempt, floor, .. } => of(4, attempt, *floor),
                BrokerMessage::Commit { attempt, at } => of(5, attempt, at.as_micros() as u64),
                BrokerMessage::Abort { attempt } => of(6, attempt, 0),
                BrokerMessage::Ready { attempt } => of(7, attempt, 0),
                BrokerMessage::Refused { attempt } => of(8, attempt, 0),
                BrokerMessage::Over { attempt, ended } => of(9, attempt, u64::from(*ended)),
                BrokerMessage::Heard { attempt } => of(10, attempt, 0),
                BrokerMessage::Fetch { job } => (11, job.0, 0, 0, 0),
                BrokerMessage::Missing { job } => (12, job.0, 0, 0, 0),
                BrokerMessage::PreparePredicted { attempt, floor, .. } => of(13, attempt, *floor),
            }
        }
        key(self).cmp(&key(other))
    }
}

impl Part for BrokerMessage {
    fn kind(&self) -> MessageKind {
        match self {
            BrokerMessage::State { .. } => MessageKind::State,
            BrokerMessage::Known { .. } | BrokerMessage::Heard { .. } => MessageKind::Known,
            BrokerMessage::Probe { .. } => MessageKind::Probe,
            BrokerMessage::Anew { .. } => MessageKind::Anew,
            BrokerMessage::Prepare { .. } | BrokerMessage::PreparePredicted { .. } => MessageKind::Prepare,
            BrokerMessage::Commit { .. } => MessageKind::Commit,
            BrokerMessage::Abort { .. } => MessageKind::Abort,
            BrokerMessage::Ready { .. } => MessageKind::Ready,
            BrokerMessage::Refused { .. } | BrokerMessage::Missing { .. } => MessageKind::Refuse,
            BrokerMessage::Over { .. } => MessageKind::Over,
            BrokerMessage::Fetch { .. } => MessageKind::Recall,
        }
    }

    /// What a job waits for has a decision made, and what gives or takes processors.
    fn wakes(&self) -> bool {
        match self {
            BrokerMessage::State { probe, .. } => *probe > 0,
            BrokerMessage::Prepare { .. }
            | BrokerMessage::PreparePredicted { .. }
            | BrokerMessage::Abort { .. }
            | BrokerMessage::Fetch { .. } => true,
            _ => false,
        }
    }

    fn transfers(&self) -> &[Transfer] {
        &[]
    }

    fn executes(&self) -> Option<(JobId, Option<&JobSpec>)> {
        match self {
            BrokerMessage::Prepare { part, .. } | BrokerMessage::PreparePredicted { part, .. } => {
                Some((part.id, Some(part.as_ref())))
            }
            BrokerMessage::Commit { attempt, .. } => Some((attempt.job, None)),
            _ => None,
        }
    }

    fn longest(&self) -> (usize, usize) {
        match self {
            BrokerMessage::State { changes, .. } => (changes.iter().map(Change::entries).sum(), CHANGES_MAX),
            _ => (0, 0),
        }
    }
}
