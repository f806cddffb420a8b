//! The other side of a peer: serving requests, keeping thieves informed, taking declined jobs back.
//!
//! For each larger site a [`ThiefRecord`] says what that site was last told, so that everything it must learn is
//! sent once: a queue that turns empty or non-empty, or a job narrower than any it knows of.

use std::collections::BTreeSet;

use scheduler::event::{MessageKind, RefusalReason};
use scheduler::{EventKind, Room, Selection, Span, Time};

use super::StealTimer;
use super::Stealing;
use super::lists::{Lists, add_release, place};
use crate::core::Reason;
use crate::engine::Engine;
use crate::margin::Worth;
use crate::message::{Offer, QueueState, Release, Rest, StealMessage, Transfer};
use crate::mutant::Mutant;
use crate::rank::Rank;
use crate::table::Table;

/// What this site last told a larger site, and what that site offered.
#[derive(Clone, Debug, Default)]
pub(crate) struct ThiefRecord {
    mode: Mode,
    /// The width told with Need, or none for Empty.
    told: Option<u32>,
    /// The widest job of the leading class, as told.
    lead: u32,
    /// Whether the offer may be served without being asked.
    serve: bool,
    /// What it offered, less what was granted since.
    free: Room,
    /// Version of the newest thing told.
    version: u64,
    last_seq: u64,
    /// The last request that was answered with jobs, and their transfer numbers.
    granted: Option<Granted>,
    /// Told that something could be picked for it, and not asked since.
    nudged: bool,
    /// Its last request was refused although a job fitted: too many transfers to it were unanswered, or none was worth it.
    blocked: bool,
}

#[derive(Clone, Copy, Debug)]
struct Granted {
    seq: u64,
    first: u64,
    last: u64,
}

/// What a victim owes a thief.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Mode {
    /// The thief believes the queue empty: owed a notice when it is not.
    #[default]
    Watching,
    /// The thief knows of work: owed a notice if the queue runs empty or gets narrower jobs.
    Standing,
    /// A notice was sent and not yet seen.
    Pending,
    /// The thief knows that it knows nothing: owed nothing until it asks.
    Silent,
}

impl ThiefRecord {
    /// Whether a notice was sent that was not seen.
    pub(super) fn is_unseen(&self) -> bool {
        self.mode == Mode::Pending
    }
}

/// Larger sites that may be owed something, by what they were told: all others are passed over whenever the queue changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Owed {
    /// Those that believe the queue empty.
    watching: BTreeSet<Rank>,
    /// Those that know of work, or have left an offer which may be served.
    standing: BTreeSet<Rank>,
}

impl Owed {
    /// As these records have it.
    pub(super) fn of(records: &Table<ThiefRecord>) -> Owed {
        let mut owed = Owed::default();
        records.iter().for_each(|(thief, record)| owed.note(thief, record));
        owed
    }

    fn note(&mut self, thief: Rank, record: &ThiefRecord) {
        let offers = record.mode == Mode::Pending && record.serve;
        put(&mut self.watching, thief, record.mode == Mode::Watching);
        put(&mut self.standing, thief, record.mode == Mode::Standing || offers);
    }

    /// Who may have to be told something or can be served, in order, with a queue that is empty or not.
    fn with_queue(&self, is_empty: bool) -> Vec<Rank> {
        match is_empty {
            true => self.standing.iter().copied().collect(),
            false => self.watching.union(&self.standing).copied().collect(),
        }
    }
}

fn put(set: &mut BTreeSet<Rank>, rank: Rank, is_in: bool) {
    if is_in {
        set.insert(rank);
    } else {
        set.remove(&rank);
    }
}

impl Stealing {
    /// What a larger site was told, or what it offers, is something else than before.
    fn owes(&mut self, thief: Rank) {
        self.owed.note(thief, &self.records[thief]);
    }
}

impl Engine<Stealing> {
    fn record(&mut self, thief: Rank) -> &mut ThiefRecord {
        &mut self.family.records[thief]
    }

    pub(super) fn on_request(&mut self, now: Time, thief: Rank, seq: u64, offer: Offer, seen: u64) {
        let last = self.record(thief).last_seq;
        if seq < last {
            return self
                .core
                .event(EventKind::Ignored { from: self.core.site_at(thief), message: MessageKind::Request });
        }
        if seq == last
            && let Some(granted) = self.record(thief).granted
            && granted.seq == seq
        {
            return self.grant_again(thief, granted);
        }
        self.record(thief).last_seq = seq;
        if self.core.fresh || self.core.has(Mutant::OwnWorkBeforeRequest) {
            self.turn(now);
        }
        let mut free = offer.free;
        let out = self.core.ledger.out_to(self.core.site_at(thief));
        for transfer in out.filter(|transfer| transfer.number > seen) {
            free.put(transfer.job.processors, transfer.job.memory());
        }
        self.remember_releases(thief, offer.releases);
        self.record(thief).nudged = false;
        self.record(thief).blocked = false;
        if seq == last && self.family.polling.is_none() && !self.can_pick(now, thief, &free) {
            // Refused before, and still. As with grants, a late copy must not change what the thief was told.
            self.ask_again(thief, seq);
        } else {
            self.serve(now, thief, Some(seq), free, offer.stand);
        }
        self.publish(now);
    }

    fn remember_releases(&mut self, thief: Rank, releases: Vec<Release>) {
        if releases.is_empty() {
            self.family.releases_offered.remove(&thief);
        } else {
            self.family.releases_offered.insert(thief, releases);
        }
    }

    /// The answer to a repeated request whose answer was a grant. It changes nothing of what the thief was told: if
    /// the request is a late copy, the thief waits for no answer and would not notice that one got lost.
    fn grant_again(&mut self, thief: Rank, granted: Granted) {
        let site = self.core.site_at(thief);
        let transfers: Vec<Transfer> = (granted.first..=granted.last)
            .filter_map(|number| self.core.ledger.out(site, number).copied())
            .collect();
        if transfers.is_empty() {
            // The jobs came with repeated transfers or came back; only the answer is missing.
            return self.ask_again(thief, granted.seq);
        }
        let (state, floor) = (self.told(thief), self.core.ledger.floor_to(site));
        self.core.send(thief, StealMessage::Grant { transfers, answers: Some(granted.seq), state, floor });
    }

    /// Ends a request whose answer got lost. What the thief offered then may no longer be true, so it is not refused
    /// but told to ask anew.
    fn ask_again(&mut self, thief: Rank, seq: u64) {
        let state = QueueState { rest: Rest::More, ..self.told(thief) };
        self.core.send(thief, StealMessage::NoWork { seq, state });
    }

    /// Picks jobs for a thief and sends them, or says that there are none if it asked.
    fn serve(&mut self, now: Time, thief: Rank, answers: Option<u64>, offered: Room, stand: bool) {
        let lists = self.family.lists;
        let mut free = offered.clone();
        let mut transfers = Vec::new();
        let mut releases = self.family.releases_offered.remove(&thief).unwrap_or_default();
        let room = self.core.room_at(thief);
        let limit = self.core.config.options.batch.min(room);
        let lead = self.own_lead();
        while transfers.len() < limit && free.width() > 0 {
            let ranges =
                lists.list(&self.family.own, &self.core.config.grid, self.core.rank, thief, &self.core.view);
            let worth = self.worth(now, thief);
            let Some(job) = lists.pick_worth(&self.family.own, ranges, &free, now, &releases, &worth) else {
                break;
            };
            let (processors, key) = place(&job);
            self.family.own.remove(processors, key).expect("it was just picked");
            free.put(processors, job.memory());
            if lists.select() == Selection::Easy {
                add_release(&mut releases, now, job.requested, processors);
            }
            let custody = self.core.custody_of(job.id);
            transfers.push(self.core.grant_transfer(now, thief, job, custody, Reason::serving(answers)));
            if lists.stolen_first() && self.own_lead() != lead {
                // The thief's leader may be another site now; let it look.
                break;
            }
        }
        let cut = !transfers.is_empty()
            && free.width() > 0
            && (transfers.len() >= limit || (lists.stolen_first() && self.own_lead() != lead));
        if lists.select() == Selection::Easy && !cut {
            self.remember_releases(thief, releases);
        }
        if let (Some(seq), Some(first), Some(last)) = (answers, transfers.first(), transfers.last()) {
            let granted = Granted { seq, first: first.number, last: last.number };
            self.record(thief).granted = Some(granted);
        }
        if transfers.is_empty() {
            let Some(seq) = answers else { return };
            let reason = if room == 0 {
                RefusalReason::Busy
            } else if self.family.own.is_empty() {
                RefusalReason::Empty
            } else if self.could_pick(now, thief, &offered, &Worth::Any) {
                RefusalReason::Margin
            } else {
                RefusalReason::TooWide
            };
            self.record(thief).blocked = matches!(reason, RefusalReason::Busy | RefusalReason::Margin);
            self.core.event(EventKind::Refused { thief: self.core.site_at(thief), seq, reason });
        }
        self.conclude(thief, answers, transfers, free, stand, cut);
    }

    /// Tells a thief what is left for it, with the jobs it gets, and notes what it was told.
    fn conclude(
        &mut self,
        thief: Rank,
        answers: Option<u64>,
        transfers: Vec<Transfer>,
        free: Room,
        stand: bool,
        cut: bool,
    ) {
        let (polling, eager) = (self.family.polling.is_some(), self.core.config.options.steal.eager);
        let state = self.next_state(thief, cut);
        // Orders that steal first need every change of the leading class, so they are never left in silence.
        let need = if self.family.lists.stolen_first() { self.need(thief) } else { None };
        self.timers.cancel(StealTimer::Notice(thief));
        let record = self.record(thief);
        record.version = state.version;
        record.lead = state.lead;
        record.free = free;
        (record.mode, record.told, record.serve) = match state.rest {
            Rest::Empty => (Mode::Watching, None, stand && eager),
            Rest::Need(width) => (Mode::Standing, Some(width), stand),
            Rest::More if need.is_some() => (Mode::Standing, need, false),
            Rest::More => (Mode::Silent, None, false),
        };
        if polling {
            record.mode = Mode::Silent;
        }
        self.family.owes(thief);
        let floor = self.core.ledger.floor_to(self.core.site_at(thief));
        let message = match (transfers.is_empty(), answers) {
            (true, Some(seq)) => StealMessage::NoWork { seq, state },
            _ => StealMessage::Grant { transfers, answers, state, floor },
        };
        self.core.send(thief, message);
    }

    fn next_state(&mut self, thief: Rank, cut: bool) -> QueueState {
        self.family.version += 1;
        let rest = match self.need(thief) {
            None => Rest::Empty,
            Some(_) if cut => Rest::More,
            Some(width) => Rest::Need(width),
        };
        QueueState { version: self.family.version, rest, lead: self.own_lead() }
    }

    /// The narrowest job a thief may take; none if no own job waits.
    fn need(&self, thief: Rank) -> Option<u32> {
        if self.family.own.is_empty() {
            return None;
        }
        let ranges = self.family.lists.list(
            &self.family.own,
            &self.core.config.grid,
            self.core.rank,
            thief,
            &self.core.view,
        );
        Lists::narrowest(&self.family.own, ranges)
    }

    /// The widest job of the leading class, 0 if the queue is empty.
    pub(super) fn own_lead(&self) -> u32 {
        let class = self.family.lists.leading(&self.family.own, self.core.width());
        class.and_then(|class| self.family.own.widest(class)).unwrap_or(0)
    }

    /// Whether something could be picked for what a thief offered.
    fn can_pick(&self, now: Time, thief: Rank, free: &Room) -> bool {
        if self.core.is_full(thief) {
            return false;
        }
        free.width() > 0 && self.could_pick(now, thief, free, &self.worth(now, thief))
    }

    fn could_pick(&self, now: Time, thief: Rank, free: &Room, worth: &Worth) -> bool {
        let lists = self.family.lists;
        let releases = self.family.releases_offered.get(&thief).map_or(&[][..], Vec::as_slice);
        let ranges =
            lists.list(&self.family.own, &self.core.config.grid, self.core.rank, thief, &self.core.view);
        lists.pick_worth(&self.family.own, ranges, free, now, releases, worth).is_some()
    }

    /// Tells larger sites what they are owed, and arms the timer for standing requests that can be served.
    pub(super) fn publish(&mut self, now: Time) {
        if self.family.polling.is_some() {
            return;
        }
        for thief in self.family.owed.with_queue(self.family.own.is_empty()) {
            self.publish_to(now, thief);
        }
    }

    /// Tells a thief that was not there what it may have missed.
    pub(super) fn notify_again(&mut self, now: Time, thief: Rank) {
        if self.record(thief).mode == Mode::Pending {
            self.notify(now, thief);
        }
    }

    pub(super) fn publish_to(&mut self, now: Time, thief: Rank) {
        if !self.core.is_reachable(thief) {
            return;
        }
        let eager = self.core.config.options.steal.eager;
        let empty = self.family.own.is_empty();
        let record = &self.family.records[thief];
        let (mode, told, lead, nudged) = (record.mode, record.told, record.lead, record.nudged);
        let (serve, free, blocked) = (record.serve, record.free.clone(), record.blocked);
        let notify = match mode {
            Mode::Silent | Mode::Pending => false,
            Mode::Watching => !empty,
            Mode::Standing if empty => true,
            Mode::Standing => {
                let narrower = self.need(thief) < told;
                let lists = self.family.lists;
                // On nodes a job that is no narrower may ask for less memory.
                let scans = blocked
                    || matches!(lists.select(), Selection::HeadOnly | Selection::Easy)
                    || matches!(free, Room::Nodes(_));
                let nudge = scans && !nudged && self.can_pick(now, thief, &free);
                if nudge {
                    self.record(thief).nudged = true;
                }
                narrower || nudge || (lists.stolen_first() && self.own_lead() != lead)
            }
        };
        let served = match mode {
            Mode::Standing | Mode::Pending => serve,
            Mode::Watching => serve && eager,
            Mode::Silent => false,
        };
        if served && !empty && !self.timers.is_set(StealTimer::Serve) && self.can_pick(now, thief, &free) {
            self.timers.set(StealTimer::Serve, now, Span::ZERO);
        }
        if notify {
            self.notify(now, thief);
        }
    }

    pub(super) fn notify(&mut self, now: Time, thief: Rank) {
        if self.core.has(Mutant::NoticesNeverSent) {
            return;
        }
        let state = self.next_state(thief, false);
        let eager = self.core.config.options.steal.eager;
        let record = self.record(thief);
        if record.mode == Mode::Watching && !eager {
            record.serve = false;
        }
        record.mode = Mode::Pending;
        record.version = state.version;
        record.lead = state.lead;
        record.told = match state.rest {
            Rest::Need(width) => Some(width),
            Rest::Empty | Rest::More => None,
        };
        self.family.owes(thief);
        if let Some(retry) = self.core.config.options.retry {
            self.timers.set(StealTimer::Notice(thief), now, retry);
        }
        self.core.send(thief, StealMessage::Notice { state });
    }

    pub(super) fn repeat_notice(&mut self, thief: Rank) {
        let record = self.record(thief);
        let rest = record.told.map_or(Rest::Empty, Rest::Need);
        let state = QueueState { version: record.version, rest, lead: record.lead };
        self.core.send_again(thief, StealMessage::Notice { state }, true);
    }

    /// What a thief was told last, to tell it again.
    pub(super) fn told(&mut self, thief: Rank) -> QueueState {
        let record = self.record(thief);
        let rest = match (record.mode, record.told) {
            (Mode::Silent, _) => Rest::More,
            (_, Some(width)) => Rest::Need(width),
            (_, None) => Rest::Empty,
        };
        QueueState { version: record.version, rest, lead: record.lead }
    }

    /// Serves thieves that left an offer, once nothing else happens at this instant.
    pub(super) fn serve_standing(&mut self, now: Time) {
        for thief in self.family.owed.with_queue(self.family.own.is_empty()) {
            let eager = self.core.config.options.steal.eager;
            let record = self.record(thief);
            let served = match record.mode {
                Mode::Standing | Mode::Pending => record.serve,
                Mode::Watching => record.serve && eager,
                Mode::Silent => false,
            };
            let free = record.free.clone();
            if served && self.core.is_reachable(thief) && self.can_pick(now, thief, &free) {
                self.serve(now, thief, None, free, true);
            }
        }
        self.publish(now);
    }

    pub(super) fn on_seen(&mut self, now: Time, thief: Rank, version: u64, keep: bool, offer: Offer) {
        let stolen_first = self.family.lists.stolen_first();
        let unheard = self.core.has(Mutant::SeenUnheard);
        let record = self.record(thief);
        if record.mode != Mode::Pending || record.version != version || unheard {
            return self
                .core
                .event(EventKind::Ignored { from: self.core.site_at(thief), message: MessageKind::Seen });
        }
        (record.mode, record.serve) = match record.told {
            None => (Mode::Watching, record.serve),
            Some(_) if keep || stolen_first => (Mode::Standing, offer.free.width() > 0 && offer.stand),
            Some(_) => (Mode::Silent, false),
        };
        let is_told = record.told.is_some();
        if is_told {
            record.free = offer.free;
        }
        self.family.owes(thief);
        if is_told {
            self.remember_releases(thief, offer.releases);
        }
        self.timers.cancel(StealTimer::Notice(thief));
        self.publish_to(now, thief);
    }

    pub(super) fn on_withdraw(&mut self, thief: Rank, version: u64) {
        let unchecked = self.core.has(Mutant::WithdrawUnchecked);
        let record = self.record(thief);
        // Something told later will put the thief right; without this test it could wait for ever.
        if record.mode == Mode::Standing && (record.version == version || unchecked) {
            record.mode = Mode::Silent;
            record.serve = false;
            self.family.owes(thief);
        }
    }

    /// What a larger site offered no longer counts, because a grant to it means nothing any more: it is told anew that
    /// there is work, and asks.
    pub(super) fn forget_offer(&mut self, thief: Rank) {
        let Some(record) = self.family.records.get_mut(thief) else { return };
        record.free = Room::NONE;
        record.serve = false;
        if record.mode != Mode::Pending {
            // A recall takes the news that came with the grant back, too: tell it anew.
            record.mode = Mode::Watching;
        }
        self.family.owes(thief);
    }
}
