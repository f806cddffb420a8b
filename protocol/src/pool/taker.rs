//! The taker of an awarded job starts it at once or declines it, and gives the same answer for ever after.

use scheduler::EventKind;
use scheduler::Time;
use scheduler::event::{DeclineReason, MessageKind, ReleaseReason};

use super::board::OfferId;
use super::{Exchange, told_of};
use crate::core::Answers;
use crate::engine::Engine;
use crate::handover::{Answer, Arrival};
use crate::journal::Place;
use crate::message::Transfer;
use crate::mutant::Mutant;
use crate::rank::Rank;

impl Engine<Exchange> {
    /// An owner promised a job to this site.
    pub(super) fn on_award(
        &mut self,
        now: Time,
        other: Rank,
        transfer: Transfer,
        version: u64,
        claim: Option<u64>,
    ) {
        if self.core.fresh {
            // Own work of this instant goes before the pool.
            self.turn(now);
        }
        let from = self.core.site_at(other);
        let answer = match self.core.ledger.arrival(from, transfer.number) {
            Arrival::Settled => {
                return self.core.event(EventKind::Ignored { from, message: MessageKind::Award });
            }
            Arrival::Answered(answer) => answer,
            Arrival::New => self.take_or_decline(now, other, &transfer, version, claim),
        };
        self.core.reply(other, Answers::of(transfer.number, answer));
    }

    fn take_or_decline(
        &mut self,
        now: Time,
        other: Rank,
        transfer: &Transfer,
        version: u64,
        claim: Option<u64>,
    ) -> Answer {
        let from = self.core.site_at(other);
        let (job, number) = (transfer.job, transfer.number);
        self.learn_epoch(now, transfer);
        let offer = OfferId { job: job.id, version };
        let claimed =
            claim.is_none_or(|claim| self.release_claim(now, other, offer, claim, ReleaseReason::Granted));
        self.family.note_seen(offer);
        if self.core.is_void(transfer) {
            return self.core.take_void(from, transfer);
        }
        if self.merge_running(now, from, transfer) {
            return Answer::Accepted;
        }
        let reason = if !claimed {
            Some(DeclineReason::Unclaimed)
        } else if !self.family.site.takes(&told_of(&self.core, &job)) {
            Some(DeclineReason::DoesNotFit)
        } else {
            None
        };
        if let Some(reason) = reason {
            return self.core.decline(from, transfer, reason);
        }
        self.core.apply(self.core.ledger.answer(from, number, Answer::Accepted));
        self.keep_custody(transfer, Place::Queue);
        self.core.event(EventKind::Accepted { job: job.id, from, transfer: number, firm: false });
        let Engine { core, family: exchange, .. } = self;
        let predicted = exchange.beliefs.enter(core, now, job);
        let believed = if core.has(Mutant::TakenBelieved) { job } else { predicted };
        exchange.occupy(now, &told_of(core, &believed));
        exchange.beliefs.start(core, now, job, believed.requested);
        Answer::Accepted
    }
}
