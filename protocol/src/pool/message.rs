//! What sites say to each other about a global queue.

use scheduler::SiteId;
use scheduler::event::MessageKind;
use serde::{Deserialize, Serialize};

use crate::message::jobs::Transfer;
use crate::message::part::Part;
use crate::pool::board::{BOARD_MAX, Board, Epoch, OfferId};

/// Boards, decisions of a host, and claims.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum PoolMessage {
    /// Any site to those who decide: my record for the global queue changed.
    Board {
        /// The record, or what changed of it. Apart, so that no other message is as large.
        board: Box<Board>,
        /// Who is host, as the sender believes.
        epoch: Epoch,
        /// Send me yours, whole.
        ask: bool,
    },
    /// Host to all, every now and then, or to a site that follows an older one: who is host. Answered by a whole board.
    Host {
        /// The sender as host, with the count of hosts so far.
        epoch: Epoch,
    },
    /// Host to owner: this job of yours goes there.
    Assign {
        /// The offer that is decided on.
        offer: OfferId,
        /// The site that is to execute the job.
        to: SiteId,
        /// The host that decided; a decision of an older one means nothing.
        epoch: Epoch,
    },
    /// Would-be taker to owner: I have reserved processors for this job.
    Claim {
        /// The offer that is claimed.
        offer: OfferId,
        /// Counts the claims of the sender, never reused.
        claim: u64,
    },
    /// Owner to claimant: not any more.
    Deny {
        /// The offer that was claimed.
        offer: OfferId,
        /// Number of the claim that is turned down.
        claim: u64,
    },
    /// Owner to taker: the job is yours and nobody else's, if you can start it now.
    Award {
        /// The job with its transfer number.
        transfer: Box<Transfer>,
        /// The offer that it was promised by.
        version: u64,
        /// The claim that is granted, none if a host assigned it.
        claim: Option<u64>,
        /// All transfers to the receiver below this number are settled.
        floor: u64,
    },
}

impl Part for PoolMessage {
    fn kind(&self) -> MessageKind {
        match self {
            PoolMessage::Board { .. } => MessageKind::Board,
            PoolMessage::Host { .. } => MessageKind::Host,
            PoolMessage::Assign { .. } => MessageKind::Assign,
            PoolMessage::Claim { .. } => MessageKind::Claim,
            PoolMessage::Deny { .. } => MessageKind::Deny,
            PoolMessage::Award { .. } => MessageKind::Award,
        }
    }

    fn wakes(&self) -> bool {
        // What else is said is decided on at quiescence, or answered at once.
        matches!(self, PoolMessage::Deny { .. })
    }

    fn transfers(&self) -> &[Transfer] {
        match self {
            PoolMessage::Award { transfer, .. } => std::slice::from_ref(&**transfer),
            _ => &[],
        }
    }

    fn longest(&self) -> (usize, usize) {
        match self {
            PoolMessage::Board { board, .. } => (board.longest(), BOARD_MAX),
            PoolMessage::Host { .. }
            | PoolMessage::Assign { .. }
            | PoolMessage::Claim { .. }
            | PoolMessage::Deny { .. }
            | PoolMessage::Award { .. } => (0, 0),
        }
    }
}
