//! One site: a process that may be gone, a disk that stays, and users who keep their jobs until it has them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use protocol::{Durable, Fact, Input, Output, Peer};
use scheduler::{JobId, JobSpec, Span, Time};

use super::clock::Clock;
use super::schedule::Torn;

/// A call whose facts are being written. Its other outputs wait for that.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) facts: Vec<Fact>,
    pub(super) outputs: Vec<Output>,
    pub(super) ready: Time,
}

/// A crash that waits for its moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Armed {
    pub(super) torn: Torn,
    pub(super) down: Option<Span>,
    pub(super) written_percent: u8,
}

/// Whether a site belongs to the grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stay {
    /// It has not joined yet.
    Absent,
    /// It does, up or down.
    Member,
    /// It was told to leave.
    Leaving,
    /// It has left.
    Left,
    /// Its process ended for good, then.
    Dead(Time),
}

/// A site as the driver has it: its clock, its peer while it is up, and its disk.
#[derive(Clone, Debug)]
pub(super) struct Site {
    pub(super) clock: Clock,
    /// By how much it was set back in this incarnation, which the next one sees.
    pub(super) set_back: Span,
    pub(super) stay: Stay,
    /// None while the process is down.
    pub(super) peer: Option<Peer>,
    /// Counts processes. What belongs to an earlier one is void.
    pub(super) process: u32,
    pub(super) paused: bool,
    /// What happened while the process was paused.
    pub(super) missed: VecDeque<Input>,
    /// What is durable.
    pub(super) disk: Durable,
    /// What will be, once everything is written.
    pub(super) ahead: Durable,
    /// Calls being written, oldest first.
    pub(super) writing: VecDeque<Call>,
    /// Jobs of users that are not durable here yet.
    pub(super) users: BTreeMap<JobId, JobSpec>,
    /// Jobs that users brought and that were durable here: whoever brings one again is told so.
    pub(super) handed: BTreeSet<JobId>,
    /// How many disks it has lost.
    pub(super) losses: u32,
    /// Jobs that the operator lets it adopt, with their epochs, until that is durable.
    pub(super) adopting: BTreeMap<JobId, (JobSpec, u32)>,
    pub(super) armed: Option<Armed>,
}

impl Site {
    pub(super) fn new(clock: Clock) -> Site {
        Site {
            clock,
            set_back: Span::ZERO,
            stay: Stay::Member,
            peer: None,
            process: 0,
            paused: false,
            missed: VecDeque::new(),
            disk: Durable::default(),
            ahead: Durable::default(),
            writing: VecDeque::new(),
            users: BTreeMap::new(),
            handed: BTreeSet::new(),
            losses: 0,
            adopting: BTreeMap::new(),
            armed: None,
        }
    }

    /// Whether it can be told something.
    pub(super) fn is_up(&self) -> bool {
        self.peer.is_some() && !self.paused
    }

    /// Whether it is one of the grid, up or down, and if it leaves.
    pub(super) fn is_member(&self) -> bool {
        matches!(self.stay, Stay::Member | Stay::Leaving)
    }

    /// Whether it has nothing left to write, to answer, or to hear of.
    pub(super) fn is_quiet(&self) -> bool {
        self.is_up() && self.writing.is_empty() && self.peer.as_ref().is_some_and(Peer::is_quiet)
    }
}
