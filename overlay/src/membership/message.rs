//! What peers say to each other about who knows whom, and the limits on what is believed of it.

use serde::{Deserialize, Serialize};

use crate::contact::Contact;

/// A message between two peers. Those marked *anywhere* go to peers that may be in neither view.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Message<I, A> {
    /// *Anywhere.* The sender wants to be in the overlay (§4.2).
    Join(Contact<I, A>),
    /// Somebody joined: a walk to a peer that takes it into its active view (§4.2).
    ForwardJoin {
        /// Who joined.
        newcomer: Contact<I, A>,
        /// Steps that are left.
        ttl: u8,
    },
    /// *Anywhere.* The sender wants to be in the active view of the receiver, as it has lost a neighbor (§4.3).
    Neighbor {
        /// The sender.
        contact: Contact<I, A>,
        /// Whether it may be refused.
        priority: Priority,
    },
    /// *Anywhere.* The receiver is in the active view of the sender. The answer to the three above, and repeated each round
    /// as long as it is so.
    Linked(Contact<I, A>),
    /// *Anywhere.* The receiver is not in the active view of the sender: it was dropped, or its wish is refused (§4.2, §4.3).
    Disconnect {
        /// The sender leaves the overlay, so that nobody should keep it in mind.
        leaving: bool,
    },
    /// Contacts to be exchanged, on a walk to a peer that takes them (§4.4).
    Shuffle {
        /// Who began it, and gets the answer.
        origin: Contact<I, A>,
        /// Some that it knows.
        contacts: Vec<Contact<I, A>>,
        /// Steps that are left.
        ttl: u8,
    },
    /// *Anywhere.* As many contacts in return (§4.4).
    ShuffleReply {
        /// Some that the sender knows.
        contacts: Vec<Contact<I, A>>,
    },
}

/// How urgent it is to be somebody's neighbor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Priority {
    /// Only if there is a free place.
    Low,
    /// Somebody else makes room if need be.
    High,
}
