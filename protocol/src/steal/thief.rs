//! The idle side of a peer: whom to ask, and what to do with answers.
//!
//! A thief needs one victim, its *root*: the nearest smaller site with waiting jobs of its own. It believes of each
//! smaller site what that site last told it ([`View`]), and never looks past its root.

use scheduler::event::{DeclineReason, MessageKind};
use scheduler::{EventKind, JobSpec, Room, Span, Time};

use super::StealTimer;
use super::Stealing;
use super::lists::Lists;
use crate::config::{Discovery, Options};
use crate::core::Answers;
use crate::engine::Engine;
use crate::handover::{Answer, Arrival};
use crate::journal::Place;
use crate::message::{Offer, QueueState, Rest, StealMessage, Transfer};
use crate::mutant::Mutant;
use crate::rank::Rank;

/// What a site believes of a smaller site.
#[derive(Clone, Debug, Default)]
pub(crate) struct View {
    known: Known,
    /// Newest version applied; older information is ignored.
    heard: u64,
    /// When it was heard.
    heard_at: Option<Time>,
    /// Widest job of the leading class, as last told.
    lead: u32,
    last_seq: u64,
    asked: Option<Asked>,
    /// [`crate::core::Core::changes`] when the offer that was refused last was made: asking again with the same offer is pointless until
    /// the victim says something new.
    refused_at: Option<Refused>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Known {
    /// No own job waits there, and one notice is promised when that changes.
    #[default]
    Empty,
    /// Jobs wait there; nothing for this site below this width.
    Need(u32),
    /// Nothing is known; ask.
    Unknown,
}

/// An offer that was of no use.
#[derive(Clone, Copy, Debug)]
struct Refused {
    /// [`crate::core::Core::changes`] when it was made.
    changes: u64,
    /// What it offered. More may be offered once another request is answered.
    free: u32,
}

#[derive(Clone, Debug)]
struct Asked {
    seq: u64,
    offer: Offer,
    /// [`crate::core::Core::changes`] when the offer was made.
    changes: u64,
    /// When the request left, unless it was repeated.
    sent_once: Option<Time>,
}

impl View {
    /// Nothing was heard, and requests are numbered from here.
    pub(super) fn from_number(first: u64) -> View {
        View { last_seq: first, ..View::default() }
    }

    pub(super) fn is_asked(&self) -> bool {
        self.asked.is_some()
    }

    /// From now on the victim owes this site nothing; what it said before, refusals too, is void.
    pub(super) fn forget(&mut self) {
        self.known = Known::Unknown;
        self.refused_at = None;
    }

    fn hear(&mut self, now: Time, state: QueueState) {
        self.heard = state.version;
        self.heard_at = Some(now);
        self.lead = state.lead;
        self.refused_at = None;
        self.known = match state.rest {
            Rest::Empty => Known::Empty,
            Rest::Need(width) => Known::Need(width),
            Rest::More => Known::Unknown,
        };
    }
}

/// Asking in rounds with sleeps instead of waiting for notices.
#[derive(Clone, Debug)]
pub(crate) struct Polling {
    period: Span,
    period_max: Span,
    sleep: Span,
    /// The victim to ask next in this round.
    next: Option<Rank>,
}

impl Polling {
    pub(super) fn of(options: &Options) -> Option<Polling> {
        match options.discovery {
            Discovery::Standing => None,
            Discovery::Polling { period, period_max } => {
                assert!(period > Span::ZERO, "a site that polls sleeps between rounds");
                Some(Polling { period, period_max, sleep: period, next: None })
            }
        }
    }
}

impl Engine<Stealing> {
    /// Asks for work if this site is idle and there is somebody to ask. Continues a turn; changes nothing else.
    pub(super) fn ask(&mut self, now: Time) {
        if self.family.polling.is_some() {
            return self.ask_in_rounds(now);
        }
        if self.family.lists.stolen_first() {
            return self.ask_before_own_work(now);
        }
        if !self.may_fetch() || !self.family.own.is_empty() {
            return self.withdraw_standing();
        }
        if self.spare(now).width() == 0 {
            return;
        }
        match self.family.lists {
            Lists::Greedy { .. } => self.ask_anybody(now),
            Lists::Steal { .. } | Lists::All => self.ask_root(now),
        }
    }

    /// The nearest smaller site that is there and not believed empty.
    fn root(&self) -> Option<Rank> {
        let has_work = |&victim: &Rank| {
            self.family.views[victim].known != Known::Empty && self.core.is_reachable(victim)
        };
        self.core.view.smaller().rev().find(has_work)
    }

    fn ask_root(&mut self, now: Time) {
        let root = self.root();
        if self.family.standing_at.is_some() && self.family.standing_at != root {
            self.withdraw_standing();
        }
        if let Some(victim) = root {
            self.request_if_useful(now, victim, true);
        }
    }

    /// Greedy stealing asks every smaller site in turn, the nearest first; it leaves no standing request, because
    /// several victims would serve the same processors.
    fn ask_anybody(&mut self, now: Time) {
        for victim in self.core.view.smaller().rev() {
            if self.family.views[victim].known != Known::Empty && self.core.is_reachable(victim) {
                self.request_if_useful(now, victim, false);
            }
        }
    }

    /// Orders that prefer stolen big work: own work starts only when no smaller site leads.
    fn ask_before_own_work(&mut self, now: Time) {
        while self.family.held.is_empty() && self.core.free > 0 {
            match self.leader() {
                Some(victim) if victim < self.core.rank => {
                    return self.request_if_useful(now, victim, false);
                }
                Some(_) => {
                    if !self.start_own_one(now) {
                        return;
                    }
                    self.publish(now);
                }
                None => return,
            }
        }
    }

    /// The site whose leading class this site must take from (specs: h(i)), itself included.
    fn leader(&self) -> Option<Rank> {
        let lists = self.family.lists;
        let Lists::Steal { threshold, .. } = lists else { return None };
        let mut leader: Option<(Rank, u32)> = None;
        let leads = self.family.views.iter().map(|(rank, view)| (rank, view.lead));
        for (rank, lead) in leads.chain([(self.core.rank, self.own_lead())]) {
            let size = self.core.width_of(rank);
            let keeps = leader.is_some_and(|(_, width)| threshold.is_big(width, size));
            if !keeps && lead > 0 && self.core.is_reachable(rank) {
                leader = Some((rank, lead));
            }
        }
        leader.map(|(rank, _)| rank)
    }

    fn request_if_useful(&mut self, now: Time, victim: Rank, stand: bool) {
        let asked = self.family.views.rows().filter(|view| view.is_asked()).count();
        if self.family.views[victim].is_asked() || asked >= self.core.config.options.steal.window {
            return;
        }
        let room = self.unoffered(now);
        let free = room.width();
        let again = |refused: Refused| refused.changes == self.core.changes && free <= refused.free;
        if free == 0 || self.family.views[victim].refused_at.is_some_and(again) {
            return;
        }
        if let Known::Need(width) = self.family.views[victim].known
            && width > free
        {
            return;
        }
        self.request(now, victim, room, stand);
    }

    /// What may be offered beside what is offered in requests that are not answered. Nodes are offered to one site at a time: which of them jobs of
    /// another will be on is not known.
    fn unoffered(&self, now: Time) -> Room {
        let asked = || self.family.views.rows().filter_map(|view| view.asked.as_ref());
        match self.spare(now) {
            // Own work may have started on offered processors since.
            Room::Processors(spare) => {
                let offered: u32 = asked().map(|asked| asked.offer.free.width()).sum();
                Room::Processors(spare.saturating_sub(offered))
            }
            Room::Nodes(_) if asked().any(|asked| asked.offer.free.width() > 0) => Room::NONE,
            nodes => nodes,
        }
    }

    pub(super) fn request(&mut self, now: Time, victim: Rank, room: Room, stand: bool) {
        let free = room.width();
        let offer = self.offer(now, room, stand);
        let seen = self.core.ledger.seen(self.core.site_at(victim));
        let view = &mut self.family.views[victim];
        view.last_seq += 1;
        let seq = view.last_seq;
        view.asked =
            Some(Asked { seq, offer: offer.clone(), changes: self.core.changes, sent_once: Some(now) });
        if let Some(retry) = self.core.config.options.retry {
            self.timers.set(StealTimer::Request(victim), now, retry);
        }
        let view_age = self.view_age(now, victim);
        self.core.event(EventKind::Requested {
            victim: self.core.site_at(victim),
            seq,
            offer: free,
            view_age,
        });
        self.core.send(victim, StealMessage::Request { seq, offer, seen });
    }

    /// How old the newest news of a victim is, as far as this site can tell.
    fn view_age(&self, now: Time, victim: Rank) -> Option<Span> {
        let under_way = self.core.round_trips.one_way(victim).unwrap_or(Span::ZERO);
        Some(now.since(self.family.views[victim].heard_at?) + under_way)
    }

    pub(super) fn repeat_request(&mut self, victim: Rank) {
        let seen = self.core.ledger.seen(self.core.site_at(victim));
        if let Some(asked) = &mut self.family.views[victim].asked {
            asked.sent_once = None;
            let (seq, offer) = (asked.seq, asked.offer.clone());
            self.core.send_again(victim, StealMessage::Request { seq, offer, seen }, true);
        }
    }

    fn withdraw_standing(&mut self) {
        if let Some(victim) = self.family.standing_at.take() {
            let view = &mut self.family.views[victim];
            let version = view.heard;
            if !view.is_asked() {
                view.forget();
            }
            self.core.send(victim, StealMessage::Withdraw { version });
        }
    }

    pub(super) fn on_grant(
        &mut self,
        now: Time,
        victim: Rank,
        transfers: &[Transfer],
        answers: Option<u64>,
        state: QueueState,
    ) {
        let mut replies = Answers::default();
        for transfer in transfers {
            let answer = match self.core.ledger.arrival(self.core.site_at(victim), transfer.number) {
                Arrival::Settled => {
                    self.core.event(EventKind::Ignored {
                        from: self.core.site_at(victim),
                        message: MessageKind::Grant,
                    });
                    continue;
                }
                Arrival::Answered(answer) => {
                    if self.core.has(Mutant::StartWithoutLedger) {
                        self.start_again(now, transfer.job);
                    }
                    answer
                }
                Arrival::New => self.consider(now, victim, transfer),
            };
            replies.push(transfer.number, answer);
        }
        self.core.reply(victim, replies);
        self.hear(now, victim, state);
        if answers.is_some_and(|seq| self.answered(now, victim, seq, transfers.len())) {
            self.after_answer(now, victim, Some(state.rest));
        }
    }

    /// What [`Mutant::StartWithoutLedger`] does wrong.
    fn start_again(&mut self, now: Time, job: JobSpec) {
        if self.core.fits(&job) && !self.core.running.contains_key(&job.id) {
            self.core.start(now, job);
        }
    }

    /// Takes or declines a transfer that was never answered, and writes the answer down.
    fn consider(&mut self, now: Time, victim: Rank, transfer: &Transfer) -> Answer {
        let from = self.core.site_at(victim);
        let (job, number) = (transfer.job, transfer.number);
        if let Some(answer) = self.take_known(now, victim, transfer) {
            return answer;
        }
        let firm = transfer.bounces >= self.core.config.options.bounces_max;
        let fits = self.core.fits(&job);
        let reason =
            if !self.may_fetch() || (!self.family.own.is_empty() && !self.family.lists.stolen_first()) {
                Some(DeclineReason::OwnWork)
            } else if !self.spare(now).fits(&job) {
                Some(DeclineReason::DoesNotFit)
            } else {
                None
            };
        if let Some(reason) = reason
            && !(firm && job.processors <= self.core.width())
        {
            return self.core.decline(from, transfer, reason);
        }
        self.core.apply(self.core.ledger.answer(from, number, Answer::Accepted));
        self.keep_custody(transfer, Place::Held);
        self.core.event(EventKind::Accepted { job: job.id, from, transfer: number, firm: reason.is_some() });
        if fits && self.may_fetch() {
            self.core.start(now, job);
        } else {
            self.family.held.push_back(job);
        }
        Answer::Accepted
    }

    pub(super) fn on_no_work(&mut self, now: Time, victim: Rank, seq: u64, state: QueueState) {
        self.hear(now, victim, state);
        // A request for nothing, as a restarted site makes them, is not refused by what it is told.
        let asked = self.family.views[victim].asked.as_ref().filter(|asked| asked.offer.free.width() > 0);
        let refused = asked.map(|asked| Refused { changes: asked.changes, free: asked.offer.free.width() });
        if self.answered(now, victim, seq, 0) {
            // A refusal that a newer notice overtook says nothing of what waits there by then.
            if state.rest != Rest::More && state.version == self.family.views[victim].heard {
                self.family.views[victim].refused_at = refused;
            }
            self.after_answer(now, victim, None);
        }
    }

    /// Applies what a victim said of its queue, unless something newer was heard.
    fn hear(&mut self, now: Time, victim: Rank, state: QueueState) {
        if state.version <= self.family.views[victim].heard {
            // The answer to a repeated request may say nothing newer, but that a withdrawal arrived in between.
            if state.version == self.family.views[victim].heard && state.rest == Rest::More {
                self.family.views[victim].forget();
            }
            return;
        }
        self.family.views[victim].hear(now, state);
        let stands = matches!(state.rest, Rest::Need(_))
            && matches!(self.family.lists, Lists::Steal { .. } | Lists::All);
        if stands && !self.family.lists.stolen_first() && self.family.polling.is_none() {
            self.family.standing_at = Some(victim);
        } else if self.family.standing_at == Some(victim) {
            self.family.standing_at = None;
        }
    }

    /// Clears the outstanding request if this answers it.
    fn answered(&mut self, now: Time, victim: Rank, seq: u64, jobs: usize) -> bool {
        if self.family.views[victim].asked.as_ref().is_none_or(|asked| asked.seq != seq) {
            return false;
        }
        if let Some(sent) = self.family.views[victim].asked.take().and_then(|asked| asked.sent_once) {
            self.core.round_trips.measured(victim, now.since(sent));
        }
        if !self.core.has(Mutant::ThiefAsksOn) {
            self.timers.cancel(StealTimer::Request(victim));
        }
        let jobs = u32::try_from(jobs).expect("grants are short");
        self.core.event(EventKind::Answered { victim: self.core.site_at(victim), seq, jobs });
        true
    }

    fn after_answer(&mut self, now: Time, victim: Rank, granted: Option<Rest>) {
        if self.family.polling.is_some() {
            self.continue_round(now, victim, granted);
        }
        self.ask(now);
    }

    pub(super) fn on_notice(&mut self, now: Time, victim: Rank, state: QueueState) {
        let stolen_first = self.family.lists.stolen_first();
        if state.version > self.family.views[victim].heard {
            self.family.views[victim].hear(now, state);
            if self.family.standing_at == Some(victim) {
                self.family.standing_at = None;
            }
        } else {
            self.core
                .event(EventKind::Ignored { from: self.core.site_at(victim), message: MessageKind::Notice });
        }
        let keep = stolen_first || (self.is_idle(now) && self.family.views[victim].known != Known::Unknown);
        let mut free = Room::NONE;
        if !keep && self.family.views[victim].known != Known::Empty {
            self.family.views[victim].forget();
        }
        if keep && !stolen_first && matches!(self.family.lists, Lists::Steal { .. } | Lists::All) {
            let root = self.root();
            if root == Some(victim) {
                if self.family.standing_at.is_some_and(|other| other != victim) {
                    self.withdraw_standing();
                }
                self.family.standing_at = Some(victim);
                free = self.unoffered(now);
            }
        }
        let stands = free.width() > 0;
        let offer = self.offer(now, free, stands);
        self.core.send(victim, StealMessage::Seen { version: state.version, keep, offer });
        if self.core.has(Mutant::AskOnNotice) {
            self.ask(now);
        }
    }

    fn ask_in_rounds(&mut self, now: Time) {
        if self.core.rank == Rank::FIRST
            || self.timers.is_set(StealTimer::Poll)
            || self.family.views.rows().any(View::is_asked)
        {
            return;
        }
        if !self.is_idle(now) {
            if let Some(polling) = &mut self.family.polling {
                polling.next = None;
            }
            return;
        }
        let pool = self.core.view.smaller().find(|&rank| self.core.is_reachable(rank)).unwrap_or(Rank::FIRST);
        let nearest = if self.family.lists == Lists::All { Some(pool) } else { self.core.rank.below() };
        let Some(nearest) = nearest else { return };
        let polling = self.family.polling.as_mut().expect("checked by the caller");
        let next = *polling.next.get_or_insert(nearest);
        let mut nearer = self.core.view.smaller().rev().skip_while(|&victim| victim > next);
        let Some(victim) = nearer.find(|&victim| self.core.is_reachable(victim)) else {
            return self.sleep_on(now);
        };
        let room = self.core.room();
        self.request(now, victim, room, false);
    }

    /// Where a round of polling goes after an answer: on, or to sleep.
    fn continue_round(&mut self, now: Time, victim: Rank, granted: Option<Rest>) {
        let greedy = matches!(self.family.lists, Lists::Greedy { .. });
        let known = self.family.views[victim].known;
        let reachable = self.core.is_reachable(victim);
        let polling = self.family.polling.as_mut().expect("checked by the caller");
        if granted.is_some() {
            polling.sleep = polling.period;
        }
        polling.next = match known {
            Known::Unknown if reachable => Some(victim),
            Known::Need(_) if !greedy => None,
            Known::Need(_) | Known::Empty | Known::Unknown => victim.below(),
        };
        if polling.next.is_none() {
            self.sleep_on(now);
        }
    }

    /// A round of polling is over.
    fn sleep_on(&mut self, now: Time) {
        let Some(polling) = &mut self.family.polling else { return };
        polling.next = None;
        let sleep = polling.sleep;
        polling.sleep = sleep.saturating_mul(2).min(polling.period_max);
        self.timers.set(StealTimer::Poll, now, sleep);
    }

    /// A smaller site is not there: its answer is not waited for.
    pub(super) fn give_up_request(&mut self, now: Time, victim: Rank) {
        if self.family.standing_at == Some(victim) {
            self.family.standing_at = None;
        }
        let asked = self.family.views[victim].asked.take();
        self.family.views[victim].forget();
        if asked.is_some() {
            self.timers.cancel(StealTimer::Request(victim));
            if self.family.polling.is_some() {
                self.continue_round(now, victim, None);
            }
        }
    }

    pub(super) fn poll_round_due(&mut self) {
        if let Some(polling) = &mut self.family.polling {
            polling.next = None;
        }
    }
}
