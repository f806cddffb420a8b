//! Where the peers of a simulation live: in this process, or anywhere else that can be told something and asked what
//! it wants. The loop in [`crate::simulation`] is the same for all.

use std::collections::VecDeque;

use links::Copies;
use protocol::{Input, Message, Output, Peer, Terms};
use scheduler::event::MessageKind;
use scheduler::{JobId, JobSpec, Time};

use crate::checks::{Violation, conservation};

/// A message on its way, as far as the loop must know it.
pub trait Carried: Clone {
    /// What the message says, for events.
    fn kind(&self) -> MessageKind;
    /// Whether its receiver may have something to decide after it.
    fn wakes(&self) -> bool;
    /// Bytes of jobs that move with it.
    fn payload(&self) -> u64;
}

impl Carried for Message {
    fn kind(&self) -> MessageKind {
        Message::kind(self)
    }

    fn wakes(&self) -> bool {
        Message::wakes(self)
    }

    fn payload(&self) -> u64 {
        Message::payload(self)
    }
}

/// What a peer waits for after it was told something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// When it wants [`Input::Timeout`].
    pub timeout: Option<Time>,
    /// Whether it wants [`Input::Settle`] at this instant.
    pub settle: bool,
}

/// All peers of a grid, by rank.
pub trait Host {
    /// A message between them.
    type Message: Carried;

    /// Tells one peer one thing. What it wants done is in `outputs` then, in order, which is empty before.
    ///
    /// # Errors
    /// [`Violation::Host`] if the peer cannot be told.
    fn tell(
        &mut self,
        rank: usize,
        now: Time,
        input: Input<Self::Message>,
        outputs: &mut VecDeque<Output<Self::Message>>,
    ) -> Result<Standing, Violation>;

    /// A message that a peer sent will be delivered after these delays, if not lost.
    ///
    /// # Errors
    /// [`Violation::Host`] if the receiver cannot be reached.
    fn posted(&mut self, _to: usize, _message: &Self::Message, _copies: Copies) -> Result<(), Violation> {
        Ok(())
    }

    /// A part of a job that a peer has started executes from now on: all have started.
    fn begins(&mut self, _rank: usize, _now: Time, _part: &JobSpec) {}

    /// The nodes of a job that a peer has started, or of a part of one, where jobs share nodes and start in parts: see [`Peer::nodes`].
    fn nodes(&self, _rank: usize, _job: JobId) -> Option<&[u32]> {
        None
    }

    /// Whether a peer waits for no answer.
    fn is_quiet(&self, rank: usize) -> bool;

    /// Walks a peer's state and panics if it contradicts itself.
    fn check_peer(&self, _rank: usize) {}

    /// Checks that each of these jobs, submitted and not finished, has exactly one owner.
    ///
    /// # Errors
    /// If one has none or two.
    fn check_owners(
        &self,
        _now: Time,
        _unfinished: &mut dyn Iterator<Item = JobId>,
    ) -> Result<(), Violation> {
        Ok(())
    }
}

/// Peers in this process.
#[derive(Clone, Debug)]
pub struct Peers {
    pub(crate) peers: Vec<Peer>,
}

impl Peers {
    pub(crate) fn new(terms: &Terms) -> Peers {
        Peers { peers: (0..terms.grid.len()).map(|rank| Peer::new(terms.at_rank(rank))).collect() }
    }
}

impl Host for Peers {
    type Message = Message;

    fn tell(
        &mut self,
        rank: usize,
        now: Time,
        input: Input,
        outputs: &mut VecDeque<Output>,
    ) -> Result<Standing, Violation> {
        let peer = &mut self.peers[rank];
        peer.handle(now, input);
        peer.take_outputs(outputs);
        Ok(Standing { timeout: peer.poll_timeout(), settle: peer.wants_settle() })
    }

    fn nodes(&self, rank: usize, job: JobId) -> Option<&[u32]> {
        self.peers[rank].nodes(job)
    }

    fn is_quiet(&self, rank: usize) -> bool {
        self.peers[rank].is_quiet()
    }

    fn check_peer(&self, rank: usize) {
        self.peers[rank].check_invariants();
    }

    fn check_owners(&self, now: Time, unfinished: &mut dyn Iterator<Item = JobId>) -> Result<(), Violation> {
        conservation(now, self.peers.iter(), unfinished)
    }
}
