//! What a peer is told, and what it wants done: the one vocabulary of all drivers.
//!
//! A driver that only says when a message arrives need not know what it says: then `M` is what it knows of it.

use scheduler::{EventKind, JobId, JobSpec, SiteId};
use serde::{Deserialize, Serialize};

use crate::journal::Fact;
use crate::message::Message;

/// What can happen to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Input<M = Message> {
    /// A user submitted a job here.
    Submitted(JobSpec),
    /// A job that runs here ended.
    Completed(JobId),
    /// A job that waits here was started by whoever decides that ([`crate::Peer::starts_outside`]).
    Begun(JobId),
    /// A transfer has never left and never will: its job was started meanwhile, and is this site's again.
    Kept {
        /// The site that it was for.
        to: SiteId,
        /// Its number.
        number: u64,
    },
    /// What executes at this site, or is about to, and is no job of the grid has so many processors.
    Foreign(u32),
    /// A message arrived.
    Message {
        /// Who sent it, as the transport authenticated it.
        from: SiteId,
        /// What it says.
        message: M,
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
        /// The job that the site is the owner of from now on.
        job: JobSpec,
        /// Epoch of the job from now on; older ones mean nothing.
        epoch: u32,
    },
}

/// What a peer wants done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Output<M = Message> {
    /// Execute this job, and tell when it ends.
    Start(JobSpec),
    /// Execute this job no longer. Nobody is told when it would have ended.
    Stop(JobId),
    /// Send a message.
    Send {
        /// The site that the message is for.
        to: SiteId,
        /// What it says; a driver carries it as it is.
        message: M,
    },
    /// Something happened that the event log is told. Carries nothing out.
    Event(EventKind),
    /// Make this durable before any other output of the same call is carried out. Only with
    /// [`crate::Options::journal`].
    Write(Fact),
}
