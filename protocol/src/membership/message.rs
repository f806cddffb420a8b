//! What sites say of who is there, and of jobs whose holder may be gone.

use scheduler::event::MessageKind;
use serde::{Deserialize, Serialize};

use crate::message::jobs::{Report, Transfer, Void};
use crate::message::part::Part;

/// Most superseded jobs told in one heartbeat; the rest follows with the next.
pub const VOIDS_MAX: usize = 256;

/// Most reports in one message; the rest follows with the next heartbeat.
pub const REPORTS_MAX: usize = 256;

/// Heartbeats, and what becomes of guarded jobs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum MembershipMessage {
    /// Any to any, every now and then: I am there.
    Heartbeat {
        /// Number of the sender's process: journals lost before times `INCARNATIONS_PER_JOURNAL`, plus restarts.
        incarnation: u32,
        /// It takes no more jobs.
        leaving: bool,
        /// Jobs that it took over, numbered from this one.
        first: u64,
        /// The jobs that it took over, with the epochs under which it has them.
        voids: Vec<Void>,
        /// How many of those that the receiver took over the sender knows of.
        known: u64,
    },
    /// Holder to who is responsible: this became of your jobs. Repeated until it is noted.
    Reports {
        /// One per job.
        reports: Vec<Report>,
    },
    /// Responsible site to holder: these reports are noted, do not repeat them.
    Noted {
        /// The reports as they arrived.
        reports: Vec<Report>,
    },
}

impl Part for MembershipMessage {
    fn kind(&self) -> MessageKind {
        match self {
            MembershipMessage::Heartbeat { .. } => MessageKind::Heartbeat,
            MembershipMessage::Reports { .. } => MessageKind::Reports,
            MembershipMessage::Noted { .. } => MessageKind::Noted,
        }
    }

    fn wakes(&self) -> bool {
        !matches!(self, MembershipMessage::Noted { .. })
    }

    fn transfers(&self) -> &[Transfer] {
        &[]
    }

    fn longest(&self) -> (usize, usize) {
        match self {
            MembershipMessage::Heartbeat { voids, .. } => (voids.len(), VOIDS_MAX),
            MembershipMessage::Reports { reports } | MembershipMessage::Noted { reports } => {
                (reports.len(), REPORTS_MAX)
            }
        }
    }
}
