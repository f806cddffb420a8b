//! How a job changes its owner exactly once, whatever it moves for; see [`crate::handover`].

use scheduler::event::MessageKind;
use serde::{Deserialize, Serialize};

use crate::message::jobs::{TRANSFERS_MAX, Transfer};
use crate::message::part::Part;

/// Most transfer numbers in one reply.
pub const REPLIES_MAX: usize = 2 * TRANSFERS_MAX;

/// What every family says of transfers. What grants a job is its family's message: a grant *is* a transfer, and giving a
/// job back *is* declining it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum HandOverMessage {
    /// Receiver of a grant or route: what became of the transfers.
    Reply {
        /// Transfer numbers that were taken.
        accepted: Vec<u64>,
        /// Transfer numbers that were not.
        declined: Vec<u64>,
    },
    /// Any site to the home of a job that was submitted elsewhere. Always accepted.
    Route {
        /// The jobs that go home, each with its transfer number.
        transfers: Vec<Transfer>,
        /// All transfers to the receiver below this number are settled.
        floor: u64,
    },
    /// Owner to receiver: I would like this job back.
    Recall {
        /// Number of the transfer that is called back.
        number: u64,
        /// All transfers to the receiver below this number are settled.
        floor: u64,
    },
    /// Owner to receiver: all transfers below this number are settled.
    Floor {
        /// The lowest transfer number that may still be open.
        floor: u64,
    },
}

impl Part for HandOverMessage {
    fn kind(&self) -> MessageKind {
        match self {
            HandOverMessage::Reply { .. } => MessageKind::Reply,
            HandOverMessage::Route { .. } => MessageKind::Route,
            HandOverMessage::Recall { .. } => MessageKind::Recall,
            HandOverMessage::Floor { .. } => MessageKind::Floor,
        }
    }

    fn wakes(&self) -> bool {
        match self {
            HandOverMessage::Reply { declined, .. } => !declined.is_empty(),
            HandOverMessage::Floor { .. } => false,
            HandOverMessage::Route { .. } | HandOverMessage::Recall { .. } => true,
        }
    }

    fn transfers(&self) -> &[Transfer] {
        match self {
            HandOverMessage::Route { transfers, .. } => transfers,
            _ => &[],
        }
    }

    fn transfers_mut(&mut self) -> Option<&mut Vec<Transfer>> {
        match self {
            HandOverMessage::Route { transfers, .. } => Some(transfers),
            _ => None,
        }
    }

    fn longest(&self) -> (usize, usize) {
        match self {
            HandOverMessage::Reply { accepted, declined } => (accepted.len() + declined.len(), REPLIES_MAX),
            HandOverMessage::Route { transfers, .. } => (transfers.len(), TRANSFERS_MAX),
            HandOverMessage::Recall { .. } | HandOverMessage::Floor { .. } => (0, 0),
        }
    }
}
