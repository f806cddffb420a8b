//! What sites say to each other under the baselines.

use scheduler::event::MessageKind;
use scheduler::{Room, SiteId, Span};
use serde::{Deserialize, Serialize};

use crate::message::jobs::{TRANSFERS_MAX, Transfer};
use crate::message::part::Part;

/// Most load reports in one message.
pub const LOAD_REPORTS_MAX: usize = 64;

/// Pulling and pushing jobs, and what sites say of themselves.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum BalanceMessage {
    /// Thief to any site: I am idle.
    Request {
        /// Counts the requests of this thief to this site, from 1.
        seq: u64,
        /// What is idle there.
        free: Room,
    },
    /// Site asked to thief: nothing for this request.
    Refuse {
        /// Number of the request that is refused.
        seq: u64,
        /// What the site has.
        load_report: LoadReport,
    },
    /// Owner to receiver: these jobs are for you.
    Give {
        /// The jobs, each with its transfer number.
        transfers: Vec<Transfer>,
        /// The request this answers, or none if they are pushed or sent again.
        answers: Option<u64>,
        /// What the owner has left.
        load_report: LoadReport,
        /// All transfers to the receiver below this number are settled.
        floor: u64,
    },
    /// To any site: tell me once. A site that pulls wants a waiting job of at most this width, one that
    /// pushes wants at least so many idle processors.
    Watch {
        /// Counts what this site asked that site to watch for, from 1.
        seq: u64,
        /// The widest job that is of use, or the fewest idle processors that are; or of nodes that jobs share what there is, and any job is of use that
        /// fits it.
        width: Room,
    },
    /// What was watched for is there.
    News {
        /// Number of the [`BalanceMessage::Watch`].
        seq: u64,
        /// What the site has.
        load_report: LoadReport,
    },
    /// What sites say of themselves, the sender's own load report or those it heard.
    Gossip {
        /// One per site at most.
        load_reports: Vec<LoadReport>,
    },
    /// Watcher to site: no use for the news of this number, tell somebody else.
    Seen {
        /// Number of the [`BalanceMessage::Watch`].
        seq: u64,
    },
}

/// What a site says of itself to any other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LoadReport {
    /// Who says it.
    pub site: SiteId,
    /// Counts what this site says of itself; the higher is the newer.
    pub version: u64,
    /// How long ago it was said, as far as the sender of the message knows.
    pub age: Span,
    /// Waiting work by estimates, in processor-seconds.
    pub work: u64,
    /// The narrowest waiting job, 0 if none waits.
    pub narrowest: u32,
    /// Idle processors of the site.
    pub idle: u32,
}

impl Part for BalanceMessage {
    fn kind(&self) -> MessageKind {
        match self {
            BalanceMessage::Request { .. } => MessageKind::Request,
            BalanceMessage::Refuse { .. } => MessageKind::Refuse,
            BalanceMessage::Give { .. } => MessageKind::Give,
            BalanceMessage::Watch { .. } => MessageKind::Watch,
            BalanceMessage::News { .. } => MessageKind::News,
            BalanceMessage::Gossip { .. } => MessageKind::Gossip,
            BalanceMessage::Seen { .. } => MessageKind::Seen,
        }
    }

    fn wakes(&self) -> bool {
        !matches!(self, BalanceMessage::Seen { .. } | BalanceMessage::Gossip { .. })
    }

    fn transfers(&self) -> &[Transfer] {
        match self {
            BalanceMessage::Give { transfers, .. } => transfers,
            _ => &[],
        }
    }

    fn transfers_mut(&mut self) -> Option<&mut Vec<Transfer>> {
        match self {
            BalanceMessage::Give { transfers, .. } => Some(transfers),
            _ => None,
        }
    }

    fn longest(&self) -> (usize, usize) {
        match self {
            BalanceMessage::Give { transfers, .. } => (transfers.len(), TRANSFERS_MAX),
            BalanceMessage::Gossip { load_reports } => (load_reports.len(), LOAD_REPORTS_MAX),
            BalanceMessage::Request { .. }
            | BalanceMessage::Refuse { .. }
            | BalanceMessage::Watch { .. }
            | BalanceMessage::News { .. }
            | BalanceMessage::Seen { .. } => (0, 0),
        }
    }
}
