//! What peers say to each other.
//!
//! Two layers share these messages: stealing or a global queue (who gets which job) and the hand-over (a job changes
//! owner exactly once). They meet in [`Message::Grant`], [`Message::Award`] and [`Message::Reply`]: a grant *is* a
//! transfer, and giving a job back *is* declining it. Nothing here is recursive and no list has elements of size zero, so decoding is bounded.

use scheduler::event::MessageKind;
use scheduler::{SiteId, Span};
use serde::{Deserialize, Serialize};

pub(crate) mod jobs;
pub(crate) mod processors;

pub use self::jobs::{Report, Transfer, Void};
pub use self::processors::Release;
pub use crate::pool::board::{Board, Epoch, Listing, OfferId};

/// One message between two peers. The driver says who sent it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Message {
    /// Thief to victim: I am hungry.
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
        /// The request.
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
        /// All transfers to this thief below this number are settled.
        floor: u64,
    },
    /// Receiver of a grant or route: what became of the transfers.
    Reply {
        /// Transfer numbers that were taken.
        accepted: Vec<u64>,
        /// Transfer numbers that were not.
        declined: Vec<u64>,
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
        /// Keep me informed: I am hungry.
        keep: bool,
        /// What the victim may send without being asked; nothing if it is not my root.
        offer: Offer,
    },
    /// Thief to victim: no longer hungry, stop serving me. Never repeated.
    Withdraw {
        /// The newest version heard from this victim.
        version: u64,
    },
    /// Any site to the home of a job that was submitted elsewhere. Always accepted.
    Route {
        /// The jobs.
        transfers: Vec<Transfer>,
        /// As in [`Message::Grant`].
        floor: u64,
    },
    /// Owner to receiver: I would like this job back.
    Recall {
        /// The transfer.
        number: u64,
        /// As in [`Message::Grant`].
        floor: u64,
    },
    /// Owner to receiver: all transfers below this number are settled.
    Floor {
        /// The number.
        floor: u64,
    },
    /// Any site to those who decide: my record for the global queue changed.
    Board {
        /// The record, or what changed of it.
        board: Board,
        /// Who is host, as the sender believes.
        epoch: Epoch,
        /// Send me yours, whole.
        ask: bool,
    },
    /// Host to all, every now and then, or to a site that follows an older one: who is host. Answered by a whole board.
    Host {
        /// The host.
        epoch: Epoch,
    },
    /// Host to owner: this job of yours goes there.
    Assign {
        /// The offer.
        offer: OfferId,
        /// The taker.
        to: SiteId,
        /// Who decided.
        epoch: Epoch,
    },
    /// Would-be taker to owner: I have reserved processors for this job.
    Claim {
        /// The offer.
        offer: OfferId,
        /// Counts the claims of the sender, never reused.
        claim: u64,
    },
    /// Owner to claimant: not any more.
    Deny {
        /// The offer.
        offer: OfferId,
        /// The claim.
        claim: u64,
    },
    /// Owner to taker: the job is yours and nobody else's, if you can start it now.
    Award {
        /// The job.
        transfer: Transfer,
        /// The offer that it was promised by.
        version: u64,
        /// The claim that is granted, none if a host assigned it.
        claim: Option<u64>,
        /// As in [`Message::Grant`].
        floor: u64,
    },
    /// Baselines, site asked to thief: nothing for this request.
    Refuse {
        /// The request.
        seq: u64,
        /// What the site has.
        digest: Digest,
    },
    /// Baselines, owner to receiver: these jobs are for you.
    Give {
        /// The jobs, each with its transfer number.
        transfers: Vec<Transfer>,
        /// The request this answers, or none if they are pushed or sent again.
        answers: Option<u64>,
        /// What the owner has left.
        digest: Digest,
        /// As in [`Message::Grant`].
        floor: u64,
    },
    /// Baselines, to any site: tell me once. A site that pulls wants a waiting job of at most this width, one that
    /// pushes wants at least so many idle processors.
    Watch {
        /// Counts what this site asked that site to watch for, from 1.
        seq: u64,
        /// The width.
        width: u32,
    },
    /// Baselines: what was watched for is there.
    News {
        /// Number of the [`Message::Watch`].
        seq: u64,
        /// What the site has.
        digest: Digest,
    },
    /// Baselines: what sites say of themselves, the sender's own digest or those it heard.
    Gossip {
        /// One per site at most.
        digests: Vec<Digest>,
    },
    /// Any to any, every now and then: I am there.
    Beat {
        /// How often the sender began again.
        life: u32,
        /// It takes no more jobs.
        leaving: bool,
        /// Jobs that it took over, numbered from this one.
        first: u64,
        /// The jobs.
        voids: Vec<Void>,
        /// How many of those that the receiver took over the sender knows of.
        known: u64,
    },
    /// Holder to who is responsible: this became of your jobs. Repeated until it is noted.
    Reports {
        /// One per job.
        reports: Vec<Report>,
    },
    /// Noted.
    Noted {
        /// What.
        reports: Vec<Report>,
    },
}

/// What a site says of itself to any other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Digest {
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
    /// Idle processors.
    pub idle: u32,
}

/// What a thief can take.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Offer {
    /// Idle processors not offered to anybody else.
    pub free: u32,
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

impl PartialOrd for Transfer {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Transfer {
    /// By number, then by what distinguishes two transfers of one number: nothing else, for one sender.
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.number, self.job.key(), self.bounces, self.hops, self.epoch, self.moves, self.guardian).cmp(&(
            other.number,
            other.job.key(),
            other.bounces,
            other.hops,
            other.epoch,
            other.moves,
            other.guardian,
        ))
    }
}

impl Message {
    /// The kind, for events and metrics.
    pub fn kind(&self) -> MessageKind {
        match self {
            Message::Request { .. } => MessageKind::Request,
            Message::NoWork { .. } => MessageKind::NoWork,
            Message::Grant { .. } => MessageKind::Grant,
            Message::Reply { .. } => MessageKind::Reply,
            Message::Notice { .. } => MessageKind::Notice,
            Message::Seen { .. } => MessageKind::Seen,
            Message::Withdraw { .. } => MessageKind::Withdraw,
            Message::Route { .. } => MessageKind::Route,
            Message::Recall { .. } => MessageKind::Recall,
            Message::Floor { .. } => MessageKind::Floor,
            Message::Board { .. } => MessageKind::Board,
            Message::Host { .. } => MessageKind::Host,
            Message::Assign { .. } => MessageKind::Assign,
            Message::Claim { .. } => MessageKind::Claim,
            Message::Deny { .. } => MessageKind::Deny,
            Message::Award { .. } => MessageKind::Award,
            Message::Refuse { .. } => MessageKind::Refuse,
            Message::Give { .. } => MessageKind::Give,
            Message::Watch { .. } => MessageKind::Watch,
            Message::News { .. } => MessageKind::News,
            Message::Gossip { .. } => MessageKind::Gossip,
            Message::Beat { .. } => MessageKind::Beat,
            Message::Reports { .. } => MessageKind::Reports,
            Message::Noted { .. } => MessageKind::Noted,
        }
    }

    /// Whether its receiver may have something to decide after it.
    pub fn wakes(&self) -> bool {
        match self {
            Message::Seen { .. }
            | Message::Withdraw { .. }
            | Message::Floor { .. }
            | Message::Noted { .. }
            | Message::Gossip { .. } => false,
            // Decided at quiescence, or answered at once.
            Message::Board { .. }
            | Message::Host { .. }
            | Message::Assign { .. }
            | Message::Claim { .. }
            | Message::Award { .. } => false,
            Message::Reply { declined, .. } => !declined.is_empty(),
            _ => true,
        }
    }

    /// Bytes of jobs that move with it.
    pub fn payload(&self) -> u64 {
        let payloads = self.transfers().iter().map(|transfer| transfer.job.payload);
        payloads.fold(0, u64::saturating_add)
    }

    /// The jobs that change owner with this message, none for most kinds.
    pub fn transfers(&self) -> &[Transfer] {
        match self {
            Message::Grant { transfers, .. }
            | Message::Route { transfers, .. }
            | Message::Give { transfers, .. } => transfers,
            Message::Award { transfer, .. } => std::slice::from_ref(transfer),
            _ => &[],
        }
    }
}
