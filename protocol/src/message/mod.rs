//! What peers say to each other: one part for each layer that speaks.
//!
//! The hand-over and the membership are spoken by all; each family adds a part of its own, in its folder, and hears no
//! other's. Nothing here is recursive and no list has elements of size zero, so decoding is bounded.

use scheduler::event::MessageKind;
use scheduler::{JobId, JobSpec};
use serde::{Deserialize, Serialize};

pub(crate) mod hand_over;
pub(crate) mod jobs;
pub(crate) mod part;
pub(crate) mod processors;

use self::part::Part;

pub use self::hand_over::{HandOverMessage, REPLIES_MAX};
pub use self::jobs::{Report, TRANSFERS_MAX, Transfer, Void};
pub use self::processors::Release;
pub use crate::balance::message::{BalanceMessage, LOAD_REPORTS_MAX, LoadReport};
pub use crate::broker::message::{BrokerMessage, CHANGES_MAX, Change};
pub use crate::membership::message::MembershipMessage;
pub use crate::opaque::message::{Executed, HELD_MAX, Held, OpaqueMessage};
pub use crate::pool::board::{Board, Epoch, Listing, OfferId};
pub use crate::pool::message::PoolMessage;
pub use crate::steal::message::{Offer, QueueState, RELEASES_MAX, Rest, StealMessage};

/// What a family says: a part of [`Message`].
pub(crate) trait Speech: Part + Into<Message> + Sized {
    /// What is said, if it is of this family.
    fn of(message: Message) -> Option<Self>;

    /// The same, to look at only.
    fn seen_in(message: &Message) -> Option<&Self>;
}

/// The speech of a family that says nothing of its own.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Silence {}

impl Part for Silence {
    fn kind(&self) -> MessageKind {
        match *self {}
    }

    fn transfers(&self) -> &[Transfer] {
        match *self {}
    }

    fn longest(&self) -> (usize, usize) {
        match *self {}
    }
}

impl From<Silence> for Message {
    fn from(silence: Silence) -> Message {
        match silence {}
    }
}

impl Speech for Silence {
    fn of(_message: Message) -> Option<Silence> {
        None
    }

    fn seen_in(_message: &Message) -> Option<&Silence> {
        None
    }
}

/// Names the parts once: the sum of them, the way in and the way out of it.
macro_rules! parts {
    ($($(#[$doc:meta])* $name:ident($part:ty),)*) => {
        /// One message between two peers. The driver says who sent it.
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum Message {
            $($(#[$doc])* $name($part),)*
        }

        impl Message {
            fn part(&self) -> &dyn Part {
                match self {
                    $(Message::$name(part) => part,)*
                }
            }

            fn part_mut(&mut self) -> &mut dyn Part {
                match self {
                    $(Message::$name(part) => part,)*
                }
            }
        }

        $(
            impl From<$part> for Message {
                fn from(part: $part) -> Message {
                    Message::$name(part)
                }
            }

            impl Speech for $part {
                fn of(message: Message) -> Option<$part> {
                    match message {
                        Message::$name(part) => Some(part),
                        _ => None,
                    }
                }

                fn seen_in(message: &Message) -> Option<&$part> {
                    match message {
                        Message::$name(part) => Some(part),
                        _ => None,
                    }
                }
            }
        )*
    };
}

parts! {
    /// How jobs change their owner.
    HandOver(HandOverMessage),
    /// Who is there.
    Membership(MembershipMessage),
    /// How idle sites take jobs from smaller ones.
    Steal(StealMessage),
    /// The global queue.
    Pool(PoolMessage),
    /// How sites of the baselines pull and push jobs.
    Balance(BalanceMessage),
    /// What brokers know of sites.
    Broker(BrokerMessage),
    /// What becomes of the jobs of a broker at sites that it does not see into.
    Opaque(OpaqueMessage),
}

impl Message {
    /// The kind, for events and metrics.
    pub fn kind(&self) -> MessageKind {
        self.part().kind()
    }

    /// Whether its receiver may have something to decide after it.
    pub fn wakes(&self) -> bool {
        self.part().wakes()
    }

    /// Bytes of jobs that move with it.
    pub fn payload(&self) -> u64 {
        let payloads = self.transfers().iter().map(|transfer| transfer.job.payload);
        payloads.fold(0, u64::saturating_add)
    }

    /// The jobs that change owner with this message, none for most kinds.
    pub fn transfers(&self) -> &[Transfer] {
        self.part().transfers()
    }

    /// The same message without a transfer that is not to arrive. None if it says nothing without.
    pub fn without(mut self, number: u64) -> Option<Message> {
        let transfers = self.part_mut().transfers_mut()?;
        transfers.retain(|transfer| transfer.number != number);
        let is_answer = !matches!(self, Message::HandOver(_));
        (is_answer || !self.transfers().is_empty()).then_some(self)
    }

    /// The job of which its receiver is to execute a part, and that part if the message has it.
    pub fn executes(&self) -> Option<(JobId, Option<&JobSpec>)> {
        self.part().executes()
    }

    /// How many entries its longest list has, and the most that it may have.
    pub(crate) fn longest(&self) -> (usize, usize) {
        self.part().longest()
    }
}
