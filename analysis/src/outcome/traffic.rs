//! Counts of what sites said to each other.
//!
//! Only sums over the run; where a single message went is in the event log.

use serde::{Deserialize, Serialize};

use scheduler::event::{DeclineReason, EventKind, MessageKind, RefusalReason, ReleaseReason};

/// Messages of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageCounts {
    /// Left their sender, repetitions included.
    pub sent: u64,
    /// Of those, repetitions of an earlier message that went unanswered.
    pub retried: u64,
    /// Arrived, duplicates included.
    pub received: u64,
    /// Arrived and changed nothing.
    pub ignored: u64,
    /// Lost on the way.
    pub lost: u64,
}

/// Per kind, in the order of [`MessageKind::ALL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ByKind([MessageCounts; MessageKind::ALL.len()]);

impl Default for ByKind {
    /// The language has none of so many.
    fn default() -> ByKind {
        ByKind([MessageCounts::default(); MessageKind::ALL.len()])
    }
}

/// Messages, requests and transfers of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    messages: ByKind,
    /// Requests for work.
    pub requests: u64,
    /// Answers to requests that arrived.
    pub answers: u64,
    /// Answers without a job.
    pub empty_answers: u64,
    /// Refusals because no job waited at the victim.
    pub refused_empty: u64,
    /// Refusals because no waiting job fitted.
    pub refused_too_wide: u64,
    /// Refusals because of a limit of the victim.
    pub refused_busy: u64,
    /// Refusals because no job would start at the thief earlier by more than the margin.
    pub refused_margin: u64,
    /// Jobs given away, also those that came back.
    pub grants: u64,
    /// Jobs taken by the site they were given to.
    pub accepts: u64,
    /// Of those, taken although they did not fit at once.
    pub firm_accepts: u64,
    /// Jobs not taken because the site had work of its own.
    pub declined_own_work: u64,
    /// Jobs not taken because the processors offered were no longer idle.
    pub declined_does_not_fit: u64,
    /// Jobs not taken because the owner wanted them back.
    pub declined_recalled: u64,
    /// Jobs not taken because the claim that was granted had been given up.
    pub declined_unclaimed: u64,
    /// Jobs not taken because they were taken over since.
    pub declined_superseded: u64,
    /// Jobs back in the queue of their owner.
    pub returns: u64,
    /// Offers to the global queue, also of jobs that came back.
    pub offers: u64,
    /// Offers of others that sites claimed.
    pub claims: u64,
    /// Claims that owners turned down.
    pub denials: u64,
    /// Claims given up because no answer came.
    pub dropped_claims: u64,
    /// Processors reserved by claims times how long, in processor-microseconds.
    reserved: u128,
    /// Changes of the host of the global queue, as sites noticed them.
    pub host_changes: u64,
}

impl Traffic {
    /// Messages of one kind.
    pub fn of(&self, kind: MessageKind) -> MessageCounts {
        self.messages.0[kind as usize]
    }

    /// Messages of all kinds.
    pub fn all(&self) -> MessageCounts {
        self.messages.0.iter().fold(MessageCounts::default(), |sum, counts| MessageCounts {
            sent: sum.sent + counts.sent,
            retried: sum.retried + counts.retried,
            received: sum.received + counts.received,
            ignored: sum.ignored + counts.ignored,
            lost: sum.lost + counts.lost,
        })
    }

    /// Requests that the victim could not serve.
    pub fn refusals(&self) -> u64 {
        self.refused_empty + self.refused_too_wide + self.refused_busy + self.refused_margin
    }

    /// Jobs that were granted and not taken.
    pub fn declines(&self) -> u64 {
        self.declined_own_work
            + self.declined_does_not_fit
            + self.declined_recalled
            + self.declined_unclaimed
            + self.declined_superseded
    }

    /// Processors reserved by claims times how long, in processor-seconds.
    #[expect(clippy::cast_precision_loss, reason = "a statistic")]
    pub fn reserved_processor_seconds(&self) -> f64 {
        self.reserved as f64 / 1e6
    }

    /// Counts one event.
    pub(super) fn observe(&mut self, kind: &EventKind) {
        match *kind {
            EventKind::Granted { .. } => self.grants += 1,
            EventKind::Accepted { firm, .. } => {
                self.accepts += 1;
                self.firm_accepts += u64::from(firm);
            }
            EventKind::Declined { reason, .. } => match reason {
                DeclineReason::OwnWork => self.declined_own_work += 1,
                DeclineReason::DoesNotFit => self.declined_does_not_fit += 1,
                DeclineReason::Recalled => self.declined_recalled += 1,
                DeclineReason::Unclaimed => self.declined_unclaimed += 1,
                DeclineReason::Superseded => self.declined_superseded += 1,
            },
            EventKind::Returned { .. } => self.returns += 1,
            EventKind::Requested { .. } => self.requests += 1,
            EventKind::Answered { jobs, .. } => {
                self.answers += 1;
                self.empty_answers += u64::from(jobs == 0);
            }
            EventKind::Refused { reason, .. } => match reason {
                RefusalReason::Empty => self.refused_empty += 1,
                RefusalReason::TooWide => self.refused_too_wide += 1,
                RefusalReason::Busy => self.refused_busy += 1,
                RefusalReason::Margin => self.refused_margin += 1,
            },
            EventKind::Sent { message, retry, .. } => {
                let counts = &mut self.messages.0[message as usize];
                counts.sent += 1;
                counts.retried += u64::from(retry);
            }
            EventKind::Received { message, .. } => self.messages.0[message as usize].received += 1,
            EventKind::Ignored { message, .. } => self.messages.0[message as usize].ignored += 1,
            EventKind::Lost { message, .. } => self.messages.0[message as usize].lost += 1,
            EventKind::Submitted { .. }
            | EventKind::Allocated { .. }
            | EventKind::Recalled { .. }
            | EventKind::Learned { .. }
            | EventKind::Started { .. }
            | EventKind::Completed { .. }
            | EventKind::Settled { .. }
            | EventKind::Withdrawn { .. } => {}
            EventKind::Offered { .. } => self.offers += 1,
            EventKind::Claimed { .. } => self.claims += 1,
            EventKind::Denied { .. } => self.denials += 1,
            EventKind::Released { processors, held, reason, .. } => {
                self.dropped_claims += u64::from(reason == ReleaseReason::Dropped);
                self.reserved += u128::from(processors) * u128::from(held.as_micros().max(0).unsigned_abs());
            }
            EventKind::Followed { .. } => self.host_changes += 1,
            // What faults did is in `crate::faults`.
            EventKind::Suspected { .. }
            | EventKind::Heard { .. }
            | EventKind::Gone { .. }
            | EventKind::Left { .. }
            | EventKind::TookOver { .. }
            | EventKind::Superseded { .. }
            | EventKind::Orphaned { .. }
            | EventKind::Recovered { .. }
            | EventKind::Interrupted { .. }
            | EventKind::Ended { .. }
            | EventKind::Begun { .. }
            | EventKind::Dismissed {}
            | EventKind::FellBack { .. }
            | EventKind::Predicted { .. }
            | EventKind::PartStarted { .. }
            | EventKind::PartCompleted { .. }
            | EventKind::Revoked { .. }
            | EventKind::Placed { .. }
            | EventKind::Paced { .. }
            | EventKind::Exited { .. }
            | EventKind::Batch { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_kinds_is_in_the_order_of_their_numbers() {
        for (place, kind) in MessageKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, place);
        }
    }
}
