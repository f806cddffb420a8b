//! Virtual time over real processes: what a coordinator that is the time authority and a node say to each other.
//!
//! In lockstep a node has no clock. It is told one fact after another, each with its instant, and answers what its
//! peer wants done. Messages between sites go over libp2p at once, as always; the answer names them only. The
//! coordinator says when a message is due, and the receiving node waits until it is there.
//!
//! ```text
//! coordinator --- Tell: a turn ----------> node a --- frame 7 ---> node b (held in its mailbox)
//! coordinator <-- Told: sent 7 to b ------ node a
//! coordinator --- Tell: letter 7 of a ---------------------------> node b (waits for the frame, if it must)
//! coordinator <-- Told: started job 3 ---------------------------- node b
//! ```
//!
//! Orders travel over a connection of their own: `POST /control/lockstep` on the control interface with
//! `Upgrade: stealgrid-lockstep/1`, then frames of [`wire`]. [`Client`] is the coordinator's end. It needs the
//! token, like every order.

mod client;
mod mailbox;
pub mod wire;

use std::time::Duration;

use scheduler::event::MessageKind;
use scheduler::{EventKind, JobId, SiteId, Time, TimedJob};
use serde::{Deserialize, Serialize};

pub use client::{Client, LinkError};
pub(crate) use mailbox::Mailbox;

/// What both ends must name to talk in lockstep; the number changes with the layout of orders and replies.
pub const UPGRADE: &str = "stealgrid-lockstep/1";

/// What the coordinator orders. Every order is answered by one [`Reply`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Order {
    /// The first order.
    Begin(Terms),
    /// Tell the peer these facts, one after the other.
    Tell {
        /// The instant.
        now: Time,
        /// What became of letters since the last order.
        notes: Vec<Note>,
        /// The facts.
        facts: Vec<Fact>,
    },
}

/// How the orders to come are to be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terms {
    /// Whether replies name the events of single messages. The node records them in any case.
    pub message_events: bool,
    /// How long to wait for a letter that is due, on the wall clock.
    pub patience: Duration,
}

/// What the modelled network did to a letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Note {
    /// To its sender: it is lost.
    Lost {
        /// When it was sent.
        at: Time,
        /// The site that will never see it.
        to: SiteId,
        /// What it was.
        kind: MessageKind,
    },
    /// To its receiver: it will be due so many times, where that is not once.
    Copies {
        /// The sender.
        from: SiteId,
        /// Its number.
        number: u64,
        /// How often.
        copies: u8,
    },
}

/// Something the peer is told. See `protocol::Input`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fact {
    /// A user submitted a job here.
    Submitted(TimedJob),
    /// A job that runs here ended.
    Completed(JobId),
    /// A letter is due.
    Letter {
        /// The sender.
        from: SiteId,
        /// Its number on this directed link.
        number: u64,
    },
    /// All facts of this instant are in: decide.
    Turn,
    /// Nothing is under way at this instant: decide what was put off until then.
    Settle,
    /// The time that the peer asked for has come.
    Timeout,
}

/// What a node answers. Events are written field by field, so no field of theirs may be skipped on the way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reply {
    /// To [`Order::Begin`].
    Begun,
    /// One answer for each fact, in order.
    Told(Vec<Answer>),
    /// The order cannot be carried out, and no later one can.
    Failed(String),
}

/// What a peer wants after it was told one fact.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// What it wants done, in order.
    pub wishes: Vec<Wish>,
    /// When it wants [`Fact::Timeout`].
    pub timeout: Option<Time>,
    /// Whether it wants [`Fact::Settle`] at this instant.
    pub settle: bool,
    /// Whether it waits for no answer.
    pub quiet: bool,
}

/// One thing that a peer wants done. See `protocol::Output`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Wish {
    /// It began to execute a job.
    Start(JobId),
    /// A letter is on its way to another site.
    Send(Letter),
    /// Something to remember.
    Event(EventKind),
}

/// A message that was sent, as far as the coordinator must know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Letter {
    /// Its receiver.
    pub to: SiteId,
    /// Its number on this directed link, from 1.
    pub number: u64,
    /// What it is.
    pub kind: MessageKind,
    /// Whether its receiver may have something to decide after it.
    pub wakes: bool,
    /// Bytes of jobs that move with it.
    pub payload: u64,
}
