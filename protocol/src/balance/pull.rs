//! Asking for work, and serving who asks.

use scheduler::event::{MessageKind, RefusalReason};
use scheduler::waiting::Widths;
use scheduler::{Amount, EventKind, JobSpec, Room, Time};

use super::BalanceTimer;
use super::{Balancer, Search};
use crate::core::{Answers, Reason};
use crate::engine::Engine;
use crate::handover::{Answer, Arrival};
use crate::journal::Place;
use crate::margin::Worth;
use crate::message::jobs::TRANSFERS_MAX;
use crate::message::{BalanceMessage, LoadReport, Transfer};
use crate::mutant::Mutant;
use crate::rank::Rank;

/// The request that is not answered.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) victim: Rank,
    seq: u64,
    free: Room,
    /// When it left, unless it was repeated.
    sent_once: Option<Time>,
}

/// The newest request of a site, and the transfers that answered it, if any did.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Served {
    seq: u64,
    granted: Option<(u64, u64)>,
}

impl Engine<Balancer> {
    /// Turns to the next site if this one has idle processors that nothing here fits.
    pub(super) fn look_for_work(&mut self, now: Time) {
        if self.core.view.len() == 1 {
            return;
        }
        if self.room() == 0 {
            self.family.search = Search::Content;
            return;
        }
        if self.family.asked.is_some() {
            return;
        }
        if let Some(left) = self.searching() {
            match if left == 0 { None } else { self.choose(Rank::FIRST) } {
                Some(victim) => return self.ask_for_work(now, victim),
                None => self.rest(now),
            }
        }
        if self.family.sleep.is_none() {
            let free = self.room();
            match self.family.index.first_promising(free, &self.core.view) {
                Some(victim) => self.ask_for_work(now, victim),
                None => self.have_work_watched(now),
            }
        }
    }

    pub(super) fn ask_for_work(&mut self, now: Time, victim: Rank) {
        let free = self.offered();
        let offer = free.width();
        let site = self.core.site_at(victim);
        let balancer = &mut self.family;
        balancer.tried.insert(victim);
        let seq = balancer.last_seq.entry(victim).or_insert(balancer.first);
        *seq += 1;
        let seq = *seq;
        balancer.asked = Some(Asked { victim, seq, free: free.clone(), sent_once: Some(now) });
        let view_age = balancer.known.get(&victim).map(|known| now.since(known.at));
        if let Some(retry) = self.core.config.options.retry {
            self.timers.set(BalanceTimer::Request(victim), now, retry);
        }
        self.core.event(EventKind::Requested { victim: site, seq, offer, view_age });
        self.send_ask(victim, seq, free, false);
    }

    fn send_ask(&mut self, victim: Rank, seq: u64, free: Room, retry: bool) {
        self.core.send_again(victim, BalanceMessage::Request { seq, free }, retry);
    }

    /// Repeats a request that was not answered.
    pub(super) fn repeat_ask(&mut self, victim: Rank) {
        match &mut self.family.asked {
            Some(asked) if asked.victim == victim => {
                asked.sent_once = None;
                let (seq, free) = (asked.seq, asked.free.clone());
                self.send_ask(victim, seq, free, true);
            }
            _ => self.timers.cancel(BalanceTimer::Request(victim)),
        }
    }

    /// Waits no longer for the answer of a site; false if there was nothing to wait for.
    pub(super) fn give_up_ask(&mut self, victim: Rank) -> bool {
        let balancer = &mut self.family;
        let asked = balancer.asked.take_if(|asked| asked.victim == victim).is_some();
        if asked {
            self.timers.cancel(BalanceTimer::Request(victim));
        }
        asked
    }

    pub(super) fn on_ask(&mut self, now: Time, thief: Rank, seq: u64, free: Room) {
        let record = *self.family.served.entry(thief).or_default();
        if seq < record.seq || !self.family.pulls() {
            let from = self.core.site_at(thief);
            return self.core.event(EventKind::Ignored { from, message: MessageKind::Request });
        }
        if self.core.fresh {
            self.turn(now);
        }
        if seq == record.seq {
            return self.answer_again(now, thief, record);
        }
        self.family.hears_of_nodes(thief, &free);
        let site = self.core.site_at(thief);
        let room = self.core.room_at(thief);
        let worth = self.worth(now, thief);
        let has_none = self.family.own.is_empty() || self.starts_all_soon();
        let jobs =
            if room == 0 || has_none { Vec::new() } else { self.take_for(thief, free.clone(), room, worth) };
        if jobs.is_empty() {
            let reason = if room == 0 {
                RefusalReason::Busy
            } else if has_none {
                RefusalReason::Empty
            } else if self.family.first_worth(Widths::ALL, &free, &Worth::Any).is_some() {
                RefusalReason::Margin
            } else {
                RefusalReason::TooWide
            };
            self.family.served.insert(thief, Served { seq, granted: None });
            self.core.event(EventKind::Refused { thief: site, seq, reason });
            let load_report = self.load_report_for(now, thief);
            return self.core.send(thief, BalanceMessage::Refuse { seq, load_report });
        }
        let jobs = jobs.into_iter().map(|job| self.family.described(job)).collect();
        let transfers = self.grant_all(now, thief, jobs, Reason::serving(Some(seq)));
        let granted =
            transfers.first().zip(transfers.last()).map(|(first, last)| (first.number, last.number));
        self.family.served.insert(thief, Served { seq, granted });
        self.give(now, thief, transfers, Some(seq));
    }

    /// Takes the jobs out of the queue that a site with such room gets: at least one of them fits there
    /// at once, and all fit its machine.
    pub(super) fn take_for(&mut self, other: Rank, free: Room, room: usize, worth: Worth) -> Vec<JobSpec> {
        let limit = self.core.config.options.batch.min(room);
        let machine = Widths::up_to(self.core.width_of(other));
        let mut free = free;
        let mut jobs = Vec::new();
        let Some(first) = self.family.first_worth(machine, &free, &worth) else { return jobs };
        match self.family.rules.amount {
            Amount::One => jobs.push(first),
            Amount::Fit => {
                let mut next = Some(first);
                while let Some(job) = next {
                    self.family.remove(&job);
                    free.put(job.processors, job.memory());
                    jobs.push(job);
                    let more = jobs.len() < limit && free.width() > 0;
                    next = if more { self.family.first_worth(machine, &free, &worth) } else { None };
                }
                return jobs;
            }
            // The younger half, so that both sites go on in queue order.
            Amount::Half => {
                let half = self.family.own.count(machine).div_ceil(2);
                let mut fits = false;
                while jobs.len() < half
                    && let Some(&job) = self.family.own.last(machine)
                    && worth.holds(&job)
                {
                    self.family.remove(&job);
                    fits |= free.fits(&job);
                    jobs.push(job);
                }
                if !fits {
                    // `first` is older than all of these; it goes instead of the oldest.
                    let kept = jobs.pop().expect("half of some jobs is one at least");
                    self.family.insert(kept);
                    self.family.remove(&first);
                    jobs.push(first);
                }
                jobs.reverse();
                return jobs;
            }
        }
        self.family.remove(&first);
        jobs
    }

    /// Writes transfers down, in queue order.
    pub(super) fn grant_all(
        &mut self,
        now: Time,
        to: Rank,
        jobs: Vec<JobSpec>,
        why: Reason,
    ) -> Vec<Transfer> {
        let grant = |job: JobSpec| {
            let custody = self.core.custody_of(job.id);
            self.core.grant_transfer(now, to, job, custody, why)
        };
        jobs.into_iter().map(grant).collect()
    }

    /// Sends transfers, in as many messages as they need; the first one answers the request.
    pub(super) fn give(&mut self, now: Time, to: Rank, transfers: Vec<Transfer>, answers: Option<u64>) {
        let load_report = self.load_report_for(now, to);
        let floor = self.core.ledger.floor_to(self.core.site_at(to));
        let batch = self.core.config.options.batch.min(TRANSFERS_MAX);
        for (place, part) in transfers.chunks(batch).enumerate() {
            let answers = if place == 0 { answers } else { None };
            self.core
                .send(to, BalanceMessage::Give { transfers: part.to_vec(), answers, load_report, floor });
        }
    }

    /// The answer to a repeated request. It may be a late copy, so it gets nothing that the first one did not.
    fn answer_again(&mut self, now: Time, thief: Rank, record: Served) {
        let site = self.core.site_at(thief);
        let transfers: Vec<Transfer> = match record.granted {
            Some((first, last)) => {
                (first..=last).filter_map(|number| self.core.ledger.out(site, number).copied()).collect()
            }
            None => Vec::new(),
        };
        if transfers.is_empty() {
            let load_report = self.load_report_for(now, thief);
            return self.core.send(thief, BalanceMessage::Refuse { seq: record.seq, load_report });
        }
        self.give(now, thief, transfers, Some(record.seq));
    }

    pub(super) fn on_refuse(&mut self, now: Time, victim: Rank, seq: u64, load_report: LoadReport) {
        let answers = self.answered_work(now, victim, seq, 0);
        self.learn(now, victim, load_report);
        if answers {
            self.refused();
        } else {
            self.core.ignore(self.core.site_at(victim), MessageKind::Refuse);
        }
    }

    /// Ends the request that this answers; false if it answers none.
    fn answered_work(&mut self, now: Time, victim: Rank, seq: u64, jobs: usize) -> bool {
        let is_it = |asked: &mut Asked| (asked.victim, asked.seq) == (victim, seq);
        let Some(asked) = self.family.asked.take_if(is_it) else { return false };
        if !self.core.has(Mutant::VictimAskedOn) {
            self.timers.cancel(BalanceTimer::Request(victim));
        }
        if let Some(sent) = asked.sent_once {
            self.core.round_trips.measured(victim, now.since(sent));
        }
        let jobs = u32::try_from(jobs).expect("messages are short");
        self.core.event(EventKind::Answered { victim: self.core.site_at(victim), seq, jobs });
        true
    }

    pub(super) fn on_give(
        &mut self,
        now: Time,
        from: Rank,
        transfers: &[Transfer],
        answers: Option<u64>,
        load_report: LoadReport,
    ) {
        self.learn(now, from, load_report);
        if self.core.fresh {
            self.turn(now);
        }
        let site = self.core.site_at(from);
        let mut replies = Answers::default();
        let room = self.room_for_pushed(transfers);
        for transfer in transfers {
            let answer = match self.core.ledger.arrival(site, transfer.number) {
                Arrival::Settled => {
                    self.core.event(EventKind::Ignored { from: site, message: MessageKind::Give });
                    continue;
                }
                Arrival::Answered(answer) => answer,
                Arrival::New => self.take_given(now, from, transfer, room),
            };
            replies.push(transfer.number, answer);
        }
        self.core.reply(from, replies);
        if let Some(seq) = answers
            && self.answered_work(now, from, seq, transfers.len())
        {
            self.progress();
        }
    }

    /// Makes a job that came one of this site's own.
    pub(super) fn take_in(&mut self, now: Time, from: Rank, transfer: &Transfer) {
        let site = self.core.site_at(from);
        self.core.apply(self.core.ledger.answer(site, transfer.number, Answer::Accepted));
        self.keep_custody(transfer, Place::Queue);
        let (job, number) = (transfer.job.id, transfer.number);
        self.core.event(EventKind::Accepted { job, from: site, transfer: number, firm: false });
        self.family.enter(now, transfer.job);
        self.core.fresh = true;
    }
}

impl Balancer {
    /// The first job of these widths that fits such room and is worth giving away.
    pub(super) fn first_worth(&self, widths: Widths, room: &Room, worth: &Worth) -> Option<JobSpec> {
        let fitting = widths.fitting(room.width());
        match (room, worth) {
            (Room::Processors(_), Worth::Any) => self.own.first(fitting).copied(),
            (room, worth) => self.own.first_where(fitting, |job| room.fits(job) && worth.holds(job)).copied(),
        }
    }

    /// Another site says what is left of its nodes.
    pub(super) fn hears_of_nodes(&mut self, rank: Rank, room: &Room) {
        if let Room::Nodes(_) = room {
            self.rooms.insert(rank, room.clone());
        }
    }
}
