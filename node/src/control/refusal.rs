//! Why a site does not do what it is told.

use protocol::EPOCH_MAX;
use scheduler::{JobId, SiteId};

/// Why an order of the operator is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unready {
    /// Time stands still.
    #[error("the trace clock does not run; order the start first")]
    Clock,
    /// Nobody would notice.
    #[error("sites do not say that they are there; give all nodes --heartbeat (options.heartbeat)")]
    Membership,
    /// A job that no site of the grid can execute.
    #[error("job {job} needs {processors} processors; the widest site has {widest}")]
    Width {
        /// The job that is too wide.
        job: JobId,
        /// Processors that it needs.
        processors: u32,
        /// Processors of the widest site.
        widest: u32,
    },
    /// A job that cannot be, or was taken over more often than can be.
    #[error(
        "job {0}: its times must lie within some 285 years (2^53 microseconds), its origin must be a site of the grid, \
         and its epoch at most {EPOCH_MAX}"
    )]
    Bounds(JobId),
}

/// The site was to end if it had left, and has not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the site has not left: tell it to (POST /control/leave), and wait until its status says has_left")]
pub(crate) struct StillThere;

/// Why no link is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Uncut {
    /// There is no such link.
    #[error("site {0} is not another site of the grid")]
    Site(SiteId),
    /// The coordinator carries the messages.
    #[error("the node runs in lockstep: what becomes of a message is said by its coordinator")]
    Lockstep,
}

/// Why a node does not switch to lockstep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the node has a clock, jobs, a journal or a coordinator already; a node serves one run, and in lockstep it keeps \
     no journal"
)]
pub(crate) struct Occupied;
