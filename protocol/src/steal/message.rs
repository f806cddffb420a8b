//! What thieves and victims say to each other.

use scheduler::Room;
use scheduler::event::MessageKind;
use serde::{Deserialize, Serialize};

use crate::message::jobs::{TRANSFERS_MAX, Transfer};
use crate::message::part::Part;
use crate::message::processors::Release;

/// Most estimated ends in one offer.
pub const RELEASES_MAX: usize = 4096;

/// Job stealing: requests, grants, and what a victim says of its queue.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum StealMessage {
    /// Thief to victim: I am idle.
    Request {
        /// Counts the requests of this thief to this victim, from 1.
        seq: u64,
        /// What the thief can take now.
        offer: Offer,
        /// Highest transfer number that reached the thief from this victim.
        seen: u64,
    },
    /// Victim to thief: nothing for this request.
    NoWork {
        /// Number of the request that is refused.
        seq: u64,
        /// What the victim has, from now on.
        state: QueueState,
    },
    /// Victim to thief: these jobs are for you.
    Grant {
        /// The jobs, each with its transfer number.
        transfers: Vec<Transfer>,
        /// The request this answers, or none if a standing request was served.
        answers: Option<u64>,
        /// What the victim has left.
        state: QueueState,
        /// All transfers to the receiver below this number are settled.
        floor: u64,
    },
    /// Victim to thief: my queue changed in a way that matters to you.
    Notice {
        /// What the victim has.
        state: QueueState,
    },
    /// Thief to victim: I saw that notice.
    Seen {
        /// Version of the notice.
        version: u64,
        /// Keep me informed: I am idle.
        keep: bool,
        /// What the victim may send without being asked; nothing if it is not my root.
        offer: Offer,
    },
    /// Thief to victim: no longer idle, stop serving me. Never repeated.
    Withdraw {
        /// The newest version heard from this victim.
        version: u64,
    },
}

/// What a thief can take.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Offer {
    /// What is idle and not offered to anybody else.
    pub free: Room,
    /// Whether the victim may serve this offer later without being asked (a standing request).
    pub stand: bool,
    /// When running jobs are estimated to end, ascending. Only the selection EASY needs it.
    pub releases: Vec<Release>,
}

/// What a victim says about its queue to one thief.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct QueueState {
    /// Counts everything this victim says about its queue; the higher is the newer.
    pub version: u64,
    /// What is there for this thief.
    pub rest: Rest,
    /// The widest job of the victim's leading class, 0 if its queue is empty.
    pub lead: u32,
}

/// What a victim has for one thief.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Rest {
    /// No own job waits here. The victim promises one notice when that changes.
    Empty,
    /// Jobs wait; nothing for this thief is narrower than this.
    Need(u32),
    /// More was left than one grant may hold: ask again.
    More,
}

impl Part for StealMessage {
    fn kind(&self) -> MessageKind {
        match self {
            StealMessage::Request { .. } => MessageKind::Request,
            StealMessage::NoWork { .. } => MessageKind::NoWork,
            StealMessage::Grant { .. } => MessageKind::Grant,
            StealMessage::Notice { .. } => MessageKind::Notice,
            StealMessage::Seen { .. } => MessageKind::Seen,
            StealMessage::Withdraw { .. } => MessageKind::Withdraw,
        }
    }

    fn wakes(&self) -> bool {
        !matches!(self, StealMessage::Seen { .. } | StealMessage::Withdraw { .. })
    }

    fn transfers(&self) -> &[Transfer] {
        match self {
            StealMessage::Grant { transfers, .. } => transfers,
            _ => &[],
        }
    }

    fn transfers_mut(&mut self) -> Option<&mut Vec<Transfer>> {
        match self {
            StealMessage::Grant { transfers, .. } => Some(transfers),
            _ => None,
        }
    }

    fn longest(&self) -> (usize, usize) {
        match self {
            StealMessage::Request { offer, .. } | StealMessage::Seen { offer, .. } => {
                (offer.releases.len(), RELEASES_MAX)
            }
            StealMessage::Grant { transfers, .. } => (transfers.len(), TRANSFERS_MAX),
            StealMessage::NoWork { .. } | StealMessage::Notice { .. } | StealMessage::Withdraw { .. } => {
                (0, 0)
            }
        }
    }
}
