//! What a peer is told, and what it wants done.

use scheduler::{EventKind, JobId, JobSpec, SiteId};

use crate::journal::Fact;
use crate::message::Message;

/// What can happen to a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A user submitted a job here.
    Submitted(JobSpec),
    /// A job that runs here ended.
    Completed(JobId),
    /// A message arrived.
    Message {
        /// Who sent it, as the transport authenticated it.
        from: SiteId,
        /// What it says.
        message: Message,
    },
    /// All facts of this instant are in: decide.
    Turn,
    /// [`crate::Peer::wants_settle`] and nothing is under way at this instant: decide what was put off until then.
    Settle,
    /// [`crate::Peer::poll_timeout`] has passed.
    Timeout,
    /// The operator wants the site to give its jobs away and to stop; see [`crate::Peer::has_left`].
    Leave,
    /// The operator makes the site the owner of a job whose guardian never comes back, under an epoch newer than any
    /// other; see [`crate::membership::operator`]. May be repeated.
    Adopt {
        /// The job.
        job: JobSpec,
        /// The epoch.
        epoch: u32,
    },
}

/// What a peer wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Execute this job, and tell when it ends.
    Start(JobSpec),
    /// Send a message.
    Send {
        /// To whom.
        to: SiteId,
        /// What.
        message: Message,
    },
    /// Remember this.
    Event(EventKind),
    /// Make this durable before any other output of the same call is carried out. Only with
    /// [`crate::Options::journal`].
    Write(Fact),
}
