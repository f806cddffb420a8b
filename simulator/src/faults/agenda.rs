//! What is going to happen, and in which order at one instant.

use protocol::Message;
use scheduler::{JobId, SiteId, Time};

/// Something that is going to happen.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "most of what comes are messages, the largest")]
pub(super) enum Coming {
    Heal,
    Fault(usize),
    /// The operator looks who is gone for good.
    Operator,
    /// Another coordinator goes on.
    Attach,
    Restart {
        rank: usize,
        process: u32,
    },
    Resume {
        rank: usize,
        process: u32,
    },
    Written {
        rank: usize,
        process: u32,
    },
    Executed(Executed),
    Submitted(usize),
    Message {
        from: SiteId,
        to: usize,
        message: Message,
    },
}

/// A job that a process of a site executed to its end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Executed {
    pub(super) rank: usize,
    pub(super) process: u32,
    pub(super) job: JobId,
}

impl Coming {
    /// The order at one instant. A site that decides at each event hears of submissions first.
    pub(super) fn class(&self, per_event: bool) -> u8 {
        match self {
            Coming::Heal => 0,
            Coming::Fault(_)
            | Coming::Operator
            | Coming::Attach
            | Coming::Restart { .. }
            | Coming::Resume { .. } => 1,
            Coming::Written { .. } => 2,
            Coming::Executed(_) if per_event => 4,
            Coming::Executed(_) => 3,
            Coming::Submitted(_) if per_event => 3,
            Coming::Submitted(_) => 4,
            Coming::Message { .. } => 5,
        }
    }
}

/// Something that is going to happen, by time, class and number.
#[derive(Debug)]
pub(super) struct Due {
    pub(super) key: (Time, u8, u64),
    pub(super) what: Coming,
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Due {}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Due {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}
