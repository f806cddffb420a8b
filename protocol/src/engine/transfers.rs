//! What every family does about transfers: routes, recalls, answers, repetitions, and jobs that come back.
//!
//! What a grant or an award means is its family's; see [`crate::handover`] for why a job changes its owner exactly once.

use scheduler::event::MessageKind;
use scheduler::{EventKind, SiteId, Time};

use crate::core::Answers;
use crate::engine::Engine;
use crate::engine::Family;
use crate::handover::{Answer, Arrival, Custody};
use crate::journal::Place;
use crate::message::{HandOverMessage, Message, Transfer};
use crate::mutant::Mutant;
use crate::rank::Rank;
use crate::timers::Timer;

impl<F: Family> Engine<F> {
    pub(crate) fn on_hand_over(&mut self, now: Time, other: Rank, message: HandOverMessage) {
        let from = self.core.site_at(other);
        match message {
            HandOverMessage::Reply { accepted, declined } => self.on_reply(now, other, &accepted, &declined),
            HandOverMessage::Route { transfers, floor } => {
                self.core.on_floor(from, floor);
                self.on_route(now, other, &transfers);
            }
            HandOverMessage::Recall { number, floor } => {
                self.core.on_floor(from, floor);
                self.on_recall(other, number);
            }
            HandOverMessage::Floor { floor } => self.core.on_floor(from, floor),
        }
    }

    /// Jobs come that this site must take.
    pub(crate) fn on_route(&mut self, now: Time, from: Rank, transfers: &[Transfer]) {
        let site = self.core.site_at(from);
        let mut answers = Answers::default();
        for transfer in transfers {
            match self.core.ledger.arrival(site, transfer.number) {
                Arrival::Settled | Arrival::Answered(Answer::Declined) => {
                    self.core.event(EventKind::Ignored { from: site, message: MessageKind::Route });
                    continue;
                }
                Arrival::Answered(Answer::Accepted) => {}
                Arrival::New => self.take_routed(now, from, transfer),
            }
            answers.push(transfer.number, Answer::Accepted);
        }
        self.core.reply(from, answers);
    }

    fn take_routed(&mut self, now: Time, from: Rank, transfer: &Transfer) {
        let site = self.core.site_at(from);
        if self.take_known(now, from, transfer).is_some() {
            return;
        }
        self.core.apply(self.core.ledger.answer(site, transfer.number, Answer::Accepted));
        self.keep_custody(transfer, Place::Queue);
        self.core.guarded_came(site, transfer);
        let (job, number) = (transfer.job, transfer.number);
        self.core.event(EventKind::Accepted { job: job.id, from: site, transfer: number, firm: true });
        F::routed(self, now, from, transfer);
        self.core.fresh = true;
    }

    /// Answers a transfer that was never answered if it brings a copy of a job that was taken over, or of one that
    /// executes here. None if it is a job that this site may take.
    pub(crate) fn take_known(&mut self, now: Time, from: Rank, transfer: &Transfer) -> Option<Answer> {
        let site = self.core.site_at(from);
        self.learn_epoch(now, transfer);
        let answer = match self.core.is_void(transfer) {
            true => Some(self.core.take_void(site, transfer)),
            false => self.merge_running(now, site, transfer).then_some(Answer::Accepted),
        };
        if answer.is_some() {
            F::was_in_vain(self, now, transfer);
        }
        answer
    }

    /// A site wants a transfer back unless it was accepted.
    pub(crate) fn on_recall(&mut self, from: Rank, number: u64) {
        let core = &mut self.core;
        let site = core.site_at(from);
        let answer = match core.ledger.arrival(site, number) {
            Arrival::Settled => {
                return core.event(EventKind::Ignored { from: site, message: MessageKind::Recall });
            }
            Arrival::Answered(answer) => answer,
            Arrival::New => {
                // A promise never to accept this transfer, should the grant still come.
                core.apply(core.ledger.answer(site, number, Answer::Declined));
                Answer::Declined
            }
        };
        core.reply(from, Answers::of(number, answer));
    }

    /// This site owns a job that came by a transfer.
    pub(crate) fn keep_custody(&mut self, transfer: &Transfer, place: Place) {
        let (job, me) = (transfer.job, self.core.site());
        let guardian = transfer.guardian.filter(|&guardian| guardian != me);
        let Transfer { hops, epoch, moves, .. } = *transfer;
        let custody = Custody { hops, bounces: 0, epoch, moves, guardian };
        self.came_back(transfer);
        self.core.custody.insert(job.id, custody);
        self.core.own_up(job, custody, place);
        self.core.guarded_back(job.id);
    }

    /// No answer came to a transfer: sends it again, or recalls it.
    pub(crate) fn repeat_transfer(&mut self, now: Time, to: Rank, number: u64) {
        let core = &mut self.core;
        let site = core.site_at(to);
        let Some(&transfer) = core.ledger.out(site, number) else {
            return core.timers.cancel(Timer::Transfer(to, number));
        };
        if core.has(Mutant::ReclaimOnTimeout) {
            return self.on_reply(now, to, &[], &[number]);
        }
        core.round_trips.transfer_repeated(to, number);
        let floor = core.ledger.floor_to(site);
        let age = core.timers.age(Timer::Transfer(to, number), now);
        let recalls = core.config.options.recall.is_some_and(|limit| age.is_some_and(|age| age >= limit));
        let message = if core.routed.contains(&(to, number)) {
            HandOverMessage::Route { transfers: vec![transfer], floor }.into()
        } else {
            let again = if recalls { None } else { F::repeat(self, now, to, &transfer) };
            again.map_or_else(|| HandOverMessage::Recall { number, floor }.into(), Into::<Message>::into)
        };
        self.core.send_again(to, message, true);
    }

    /// A site has answered transfers.
    pub(crate) fn on_reply(&mut self, now: Time, rank: Rank, accepted: &[u64], declined: &[u64]) {
        let site = self.core.site_at(rank);
        let was_full = self.core.is_full(rank);
        for &number in accepted {
            let core = &mut self.core;
            if core.ledger.is_to_lost_journal(site, number) {
                // What that journal accepted is lost with it.
                core.event(EventKind::Ignored { from: site, message: MessageKind::Reply });
                continue;
            }
            if let Some((record, transfer)) = core.ledger.settle(site, number, Answer::Accepted) {
                core.apply(record);
                core.timers.cancel(Timer::Transfer(rank, number));
                core.round_trips.transfer_answered(rank, number, now);
                core.routed.remove(&(rank, number));
                core.event(EventKind::Settled { job: transfer.job.id, to: site, transfer: number });
                core.guarded_settled(site, &transfer);
                F::settled(self, now, rank, &transfer);
            }
        }
        for &number in declined {
            let core = &mut self.core;
            if core.routed.contains(&(rank, number)) {
                // A route is always accepted and never recalled: this answer is not ours.
                core.event(EventKind::Ignored { from: site, message: MessageKind::Reply });
                continue;
            }
            if let Some((record, transfer)) = core.ledger.settle(site, number, Answer::Declined) {
                core.apply(record);
                core.timers.cancel(Timer::Transfer(rank, number));
                core.round_trips.transfer_answered(rank, number, now);
                if !core.has(Mutant::ForgetDeclined) {
                    self.take_back(now, rank, &transfer);
                }
            }
        }
        F::replied(self, now, rank, accepted, declined, was_full);
    }

    /// A transfer has never left: as if its receiver had declined, whatever it was.
    pub(crate) fn on_kept(&mut self, now: Time, to: SiteId, number: u64) {
        let core = &mut self.core;
        let rank = core.rank_of(to);
        let was_full = core.is_full(rank);
        let Some((record, transfer)) = core.ledger.settle(to, number, Answer::Declined) else { return };
        core.apply(record);
        core.timers.cancel(Timer::Transfer(rank, number));
        // Nobody has answered.
        core.round_trips.transfer_repeated(rank, number);
        core.routed.remove(&(rank, number));
        self.take_back(now, rank, &transfer);
        F::replied(self, now, rank, &[], &[number], was_full);
    }

    fn take_back(&mut self, now: Time, rank: Rank, transfer: &Transfer) {
        let core = &mut self.core;
        let by = core.site_at(rank);
        if core.is_here(transfer.job.id) {
            // It came back as another transfer: whoever declines it after that never had it.
            core.event(EventKind::Ignored { from: by, message: MessageKind::Reply });
            return F::settled(self, now, rank, transfer);
        }
        let bounces = transfer.bounces + 1;
        let me = core.site();
        let guardian = transfer.guardian.filter(|&guardian| guardian != me);
        let moves = transfer.moves.saturating_add(1);
        let custody = Custody { hops: transfer.hops - 1, bounces, epoch: transfer.epoch, moves, guardian };
        core.custody.insert(transfer.job.id, custody);
        core.own_up(transfer.job, custody, Place::Queue);
        core.guarded_returned(transfer.job.id, custody);
        core.event(EventKind::Returned { job: transfer.job.id, by, transfer: transfer.number, bounces });
        F::returned(self, now, rank, transfer);
    }
}
