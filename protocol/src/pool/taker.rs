//! The taker of an awarded job starts it at once or declines it, and gives the same answer for ever after.

use scheduler::EventKind;
use scheduler::Time;
use scheduler::event::{DeclineReason, MessageKind, ReleaseReason};
use scheduler::exchange::WaitingJob;

use super::board::OfferId;
use crate::handover::{Answer, Arrival};
use crate::journal::Place;
use crate::message::{Message, Transfer};
use crate::peer::Peer;

impl Peer {
    /// An owner promised a job to this site.
    pub(super) fn on_award(
        &mut self,
        now: Time,
        other: usize,
        transfer: Transfer,
        version: u64,
        claim: Option<u64>,
    ) {
        if self.fresh {
            // Own work of this instant goes before the pool.
            self.turn(now);
        }
        let from = self.site_at(other);
        let answer = match self.ledger.arrival(from, transfer.number) {
            Arrival::Settled => {
                return self.event(EventKind::Ignored { from, message: MessageKind::Award });
            }
            Arrival::Answered(answer) => answer,
            Arrival::New => self.take_or_decline(now, other, &transfer, version, claim),
        };
        let (accepted, declined) = match answer {
            Answer::Accepted => (vec![transfer.number], Vec::new()),
            Answer::Declined => (Vec::new(), vec![transfer.number]),
        };
        self.send(other, Message::Reply { accepted, declined });
    }

    fn take_or_decline(
        &mut self,
        now: Time,
        other: usize,
        transfer: &Transfer,
        version: u64,
        claim: Option<u64>,
    ) -> Answer {
        let from = self.site_at(other);
        let (job, number) = (transfer.job, transfer.number);
        self.learn_epoch(transfer);
        let offer = OfferId { job: job.id, version };
        let claimed =
            claim.is_none_or(|claim| self.release_claim(now, other, offer, claim, ReleaseReason::Granted));
        self.exchange().note_seen(offer);
        if self.is_void(transfer) {
            return self.take_void(from, transfer);
        }
        if self.merge_running(now, from, transfer) {
            return Answer::Accepted;
        }
        let reason = if !claimed {
            Some(DeclineReason::Unclaimed)
        } else if job.processors > self.exchange().site.free {
            Some(DeclineReason::DoesNotFit)
        } else {
            None
        };
        if let Some(reason) = reason {
            self.apply(self.ledger.answer(from, number, Answer::Declined));
            self.event(EventKind::Declined { job: job.id, from, transfer: number, reason });
            return Answer::Declined;
        }
        self.apply(self.ledger.answer(from, number, Answer::Accepted));
        self.keep_custody(transfer, Place::Queue);
        self.event(EventKind::Accepted { job: job.id, from, transfer: number, firm: false });
        self.exchange().occupy(now, &WaitingJob::new(&job));
        self.start(now, job);
        Answer::Accepted
    }
}
