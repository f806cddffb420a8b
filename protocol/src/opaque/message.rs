//! What a broker and sites that it does not see into say to each other: only of the broker's own jobs.

use scheduler::event::MessageKind;
use scheduler::{JobId, JobSpec, Time};
use serde::{Deserialize, Serialize};

use crate::message::jobs::{TRANSFERS_MAX, Transfer};
use crate::message::part::Part;

/// Most jobs in one message; more go in several.
pub const HELD_MAX: usize = 1024;

/// A job that ended, by the clock of its site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Executed {
    /// Which one.
    pub job: JobId,
    /// When it entered the queue of the site.
    pub queued: Time,
    /// When it started.
    pub started: Time,
    /// When it ended.
    pub ended: Time,
}

/// A job of a broker that a site has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// Which one.
    pub job: JobSpec,
    /// When it entered the queue of the site.
    pub queued: Time,
    /// Since when it executes; none if it waits.
    pub started: Option<Time>,
}

impl PartialOrd for Held {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Held {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let key = |held: &Held| (held.job.key(), held.queued, held.started);
        key(self).cmp(&key(other))
    }
}

/// Jobs that brokers give away and call back, and what they are told of them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum OpaqueMessage {
    /// Broker to site: execute these for me. Always accepted.
    Give {
        /// The jobs, each with its transfer number.
        transfers: Vec<Transfer>,
        /// All transfers to the receiver below this number are settled.
        floor: u64,
    },
    /// Site to broker: these jobs of yours have ended. Repeated until it is known.
    Ended {
        /// In the order of their numbers.
        jobs: Vec<Executed>,
    },
    /// Broker to site: that these have ended is known.
    Known {
        /// The jobs.
        jobs: Vec<JobId>,
    },
    /// Broker to site: give this job back if it has not started. The answer is the job, or a refusal.
    Recall {
        /// Which one.
        job: JobId,
    },
    /// Site to broker: that job does not come back.
    Refused {
        /// Which one.
        job: JobId,
        /// Since when it executes; none if it is not here.
        started: Option<Time>,
    },
    /// Broker to site: which jobs of mine do you have?
    Anew {
        /// Counts how often this broker asked; repeated until it is answered.
        count: u64,
    },
    /// Site to broker: those of yours that I have. Of a site that restarts, or has dropped one, the count is 0: ask me.
    Have {
        /// The question that this answers.
        count: u64,
        /// How many there are in all messages of this answer.
        all: u32,
        /// Some of them.
        jobs: Vec<Held>,
    },
}

impl Part for OpaqueMessage {
    fn kind(&self) -> MessageKind {
        match self {
            OpaqueMessage::Give { .. } => MessageKind::Give,
            OpaqueMessage::Ended { .. } | OpaqueMessage::Have { .. } => MessageKind::State,
            OpaqueMessage::Known { .. } => MessageKind::Known,
            OpaqueMessage::Recall { .. } => MessageKind::Recall,
            OpaqueMessage::Refused { .. } => MessageKind::Deny,
            OpaqueMessage::Anew { .. } => MessageKind::Anew,
        }
    }

    fn wakes(&self) -> bool {
        matches!(
            self,
            OpaqueMessage::Give { .. }
                | OpaqueMessage::Ended { .. }
                | OpaqueMessage::Have { .. }
                // What waited behind a job that goes may start.
                | OpaqueMessage::Recall { .. }
        )
    }

    fn transfers(&self) -> &[Transfer] {
        match self {
            OpaqueMessage::Give { transfers, .. } => transfers,
            _ => &[],
        }
    }

    fn longest(&self) -> (usize, usize) {
        match self {
            OpaqueMessage::Give { transfers, .. } => (transfers.len(), TRANSFERS_MAX),
            OpaqueMessage::Ended { jobs } => (jobs.len(), HELD_MAX),
            OpaqueMessage::Known { jobs } => (jobs.len(), HELD_MAX),
            OpaqueMessage::Have { jobs, .. } => (jobs.len(), HELD_MAX),
            OpaqueMessage::Recall { .. } | OpaqueMessage::Refused { .. } | OpaqueMessage::Anew { .. } => {
                (0, 0)
            }
        }
    }
}
