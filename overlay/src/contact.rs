//! A peer as others know it: its id, what they are to know of it, and how new that is.

use serde::{Deserialize, Serialize};

/// How to address a peer, and what it has said of itself.
///
/// Contacts travel from peer to peer, so one that is old may arrive after one that is new: the greater edition wins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contact<I, A> {
    /// Whom a message is sent to.
    pub peer: I,
    /// Counted by the peer itself, one more each time that it says something new.
    pub edition: u64,
    /// What others are to know of it: processors, say, or how many jobs wait there.
    pub about: A,
}

impl<I: PartialEq, A> Contact<I, A> {
    /// Whether this one says something of the same peer that the other cannot know.
    pub fn is_newer_than(&self, other: &Contact<I, A>) -> bool {
        self.peer == other.peer && self.edition > other.edition
    }
}
