//! What messages say of jobs.

use scheduler::{JobId, JobSpec, SiteId};
use serde::{Deserialize, Serialize};

/// Most transfers in one message; a grant of more jobs is cut and the thief asks again.
pub const TRANSFERS_MAX: usize = 1024;

/// A job on its way to another owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Transfer {
    /// Counts the transfers from the sender to the receiver, from 1, never reused.
    pub number: u64,
    /// The job with all that is needed to execute it.
    pub job: JobSpec,
    /// How often it was declined so far.
    pub bounces: u32,
    /// How often it will have changed sites when it is accepted.
    pub hops: u32,
    /// Counts take-overs of the job after a site died.
    pub epoch: u32,
    /// How often it was granted or came back, this time included.
    pub moves: u32,
    /// Who is responsible for it if the receiver dies; none if that is the receiver.
    pub guardian: Option<SiteId>,
}

impl PartialOrd for Transfer {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Transfer {
    /// By number, then by what distinguishes two transfers of one number: nothing else, for one sender.
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.number, self.job.key(), self.bounces, self.hops, self.epoch, self.moves, self.guardian).cmp(&(
            other.number,
            other.job.key(),
            other.bounces,
            other.hops,
            other.epoch,
            other.moves,
            other.guardian,
        ))
    }
}

/// A job was taken over: its epochs below this one mean nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Void {
    /// The job that was taken over.
    pub job: JobId,
    /// Its epoch now.
    pub epoch: u32,
}

/// What a guardian is told of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Report {
    /// The job that the guardian is responsible for.
    pub job: JobId,
    /// Who must know.
    pub guardian: SiteId,
    /// Take-overs so far.
    pub epoch: u32,
    /// How often it was granted or came back: the higher is the newer.
    pub moves: u32,
    /// Who has it, or was granted it.
    pub holder: SiteId,
    /// Whether it has ended there.
    pub done: bool,
}
