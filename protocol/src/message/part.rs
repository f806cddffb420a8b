//! What every part of what is said can tell of itself.

use scheduler::event::MessageKind;
use scheduler::{JobId, JobSpec};

use crate::message::jobs::Transfer;

/// The messages of one layer: of the hand-over, of the membership, or of one family.
pub(crate) trait Part {
    /// The kind, for events and metrics.
    fn kind(&self) -> MessageKind;

    /// Whether its receiver may have something to decide after it.
    fn wakes(&self) -> bool {
        true
    }

    /// The jobs that change owner with this message.
    fn transfers(&self) -> &[Transfer];

    /// The same, to leave some out; none where a message is nothing without its job.
    fn transfers_mut(&mut self) -> Option<&mut Vec<Transfer>> {
        None
    }

    /// The job of which the receiver is to execute a part, and that part if the message has it.
    fn executes(&self) -> Option<(JobId, Option<&JobSpec>)> {
        None
    }

    /// How many entries its longest list has, and the most that it may have. A list without a limit here would be
    /// bounded by the length of a frame only.
    fn longest(&self) -> (usize, usize);
}
