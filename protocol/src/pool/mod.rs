//! Exchange through a global queue between peers (Grimme, Lepping, Papaspyrou 2007).
//!
//! A site serves its own queue, and offers what it cannot start. **Ownership never goes to the queue**: the owner
//! keeps an offered job, and the queue is an index of offers. Each site has a public [`board`] of its idle
//! processors and its offers. Who has all boards takes the decision of the ideal, by the same function
//! ([`scheduler::exchange::pool_phase`]):
//!
//! - `hosted`: one elected site, which tells owners where their jobs go (`host.rs`);
//! - `gossip`: every site, each acting on its own lines only, by claims to owners (`gossip.rs`).
//!
//! A job is on the board with the run time that its owner believes in; whoever takes it believes in its own (`beliefs.rs`).
//!
//! In both the owner promises an offer to one taker (`owner.rs`), which answers durably (`taker.rs`); the transfer
//! is that of [`crate::handover`]. Decisions are taken when nothing is under way ([`crate::Peer::wants_settle`]).
//!
//! | an offered job is | until | then |
//! |---|---|---|
//! | offered(v) | the decision names its own site | started |
//! | offered(v) | an assignment or a claim of v | promised(v, taker) |
//! | promised(v, taker) | the taker accepts | gone |
//! | promised(v, taker) | the taker declines | offered(v + 1) |

mod beliefs;
pub mod board;
mod gossip;
mod host;
mod known;
pub(crate) mod message;
pub(crate) mod options;
mod owner;
mod taker;

use std::collections::{BTreeMap, VecDeque};

use scheduler::exchange::{Entered, JobQueue, OwnTurn, SiteView, WaitingJob, own_phase};
use scheduler::strategy::{PoolAlgorithm, PoolOrder, Via};
use scheduler::{JobId, JobSpec, Room, SiteId, Span, Time};

use self::beliefs::{Beliefs, Corrected};
use self::board::{Board, Epoch, Listing, OfferId, SEEN_MAX};
use self::gossip::Gossip;
use self::host::Hosted;
use self::known::Boards;
use self::owner::Promise;
use crate::bounds::{COUNT_MAX, are_counts, is_release};
use crate::config::PeerConfig;
use crate::core::Core;
use crate::engine::{Engine, Family, Giving, InParts, Lawful, Leaving, Observed, Recovery};
use crate::experience::Experience;
use crate::journal::Durable;
use crate::message::{PoolMessage, Release, Transfer};
use crate::mutant::Mutant;
use crate::rank::Rank;
use crate::timers::Alarm;

/// After so many [`crate::PoolOptions::refresh`] without a sign a site is left out of decisions, a host is replaced, and
/// an assignment that nobody confirmed is forgotten.
pub const SILENCE_REFRESHES: i64 = 3;

/// After so many [`crate::PoolOptions::refresh`] without an answer a claim is given up.
pub const CLAIM_REFRESHES: i64 = 5;

/// The part of a peer that exchanges jobs through a global queue.
#[derive(Clone, Debug)]
pub(crate) struct Exchange {
    rules: scheduler::Pool,
    /// Processors of this site; those reserved by claims count as busy.
    site: SiteView,
    /// The local queue; what is kept included.
    own: JobQueue,
    /// Of jobs in the local queue and of offered ones, as users described them.
    specs: BTreeMap<JobId, JobSpec>,
    beliefs: Beliefs,
    offers: BTreeMap<JobId, Listing>,
    promised: BTreeMap<JobId, Promise>,
    /// Revisions, offers and claims are numbered from here.
    first: u64,
    /// Revision of the board as told last.
    revision: u64,
    /// What is to be told.
    news: Board,
    told_free: Room,
    told_kept: Option<WaitingJob>,
    /// Offers answered last.
    seen: VecDeque<OfferId>,
    known: Boards,
    role: Role,
    /// Something changed that a decision depends on.
    unsettled: bool,
    /// When this site last heard of its host or, if it decides, when it began to wait for others.
    sign: Time,
    /// When the whole board was sent last.
    whole_at: Time,
    /// Kept to spare allocations.
    turn: OwnTurn,
}

#[derive(Clone, Debug)]
enum Role {
    Hosted(Hosted),
    Gossip(Gossip),
}

impl Exchange {
    /// Whether this site takes decisions.
    fn decides(&self, me: SiteId) -> bool {
        match &self.role {
            Role::Hosted(hosted) => hosted.epoch.site == me,
            Role::Gossip(_) => true,
        }
    }

    /// Whether anything waits that others must know of, or that this site must hear about.
    fn has_cause(&self, me: SiteId) -> bool {
        let offers = if self.decides(me) { self.known.any_offers() } else { !self.offers.is_empty() };
        offers
            || match &self.role {
                Role::Hosted(hosted) => hosted.any_marks(),
                Role::Gossip(gossip) => gossip.any_claims(),
            }
    }

    fn knows_ends(&self) -> bool {
        self.rules.algorithm == PoolAlgorithm::Easy
    }

    /// Notes that a job takes processors of this site.
    fn note_busy(&mut self, end: Time, processors: u32) {
        if self.knows_ends() {
            self.news.add_busy(Release { at: end, processors });
        }
    }

    /// Frees processors of this site.
    fn vacate(&mut self, end: Time, processors: u32) {
        self.site.complete(end, processors);
        if self.knows_ends() {
            self.news.add_idle(Release { at: end, processors });
        }
    }

    /// What is left of nodes that jobs share, less what claims are for.
    fn recount(&mut self, core: &Core) {
        if core.nodes.is_none() {
            return;
        }
        self.site.has(core.room());
        if let Role::Gossip(gossip) = &self.role {
            gossip.claimed().for_each(|job| self.site.put(job));
        }
    }

    /// Takes processors of this site.
    fn occupy(&mut self, now: Time, job: &WaitingJob) {
        self.site.start(now, job);
        self.note_busy(now.saturating_add(job.requested), job.processors);
    }

    /// Tells who decides that an offer was answered here.
    fn note_seen(&mut self, offer: OfferId) {
        if matches!(self.role, Role::Gossip(_)) {
            return;
        }
        if self.seen.len() == SEEN_MAX {
            self.seen.pop_front();
        }
        self.seen.push_back(offer);
        self.news.seen.push(offer);
    }

    /// All of the board, as told last.
    fn whole_board(&self) -> Board {
        let mut whole = Board {
            revision: self.revision,
            whole: true,
            free: self.told_free.clone(),
            kept: self.told_kept,
            offered: self.offers.values().copied().collect(),
            seen: self.seen.iter().copied().collect(),
            ..Board::default()
        };
        if self.knows_ends() {
            let ends = self.site.releases.iter().map(|(at, processors)| Release { at, processors });
            whole.busy = ends.collect();
        }
        whole.offered.sort_unstable_by_key(|listing| (listing.job.submit, listing.job.id));
        whole.cut_to_limit()
    }
}

/// What a site of a global queue waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PoolTimer {
    /// A claim to an offered job is unanswered.
    Claim(u64),
    /// Repeat the board, as long as something waits in the global queue.
    Refresh,
}

impl Alarm for PoolTimer {
    fn repeats(&self) -> bool {
        true
    }
}

impl Family for Exchange {
    type Message = PoolMessage;
    type Timer = PoolTimer;

    fn of(config: &PeerConfig, first: u64) -> Exchange {
        let rules = *config.strategy.pool().expect("a global queue");
        let grid = &config.grid;
        let site = SiteView::on(grid.capacity(config.site));
        Exchange {
            rules,
            told_free: site.room(),
            site,
            own: JobQueue::new(PoolOrder::Submit),
            specs: BTreeMap::new(),
            beliefs: Beliefs::of(config),
            offers: BTreeMap::new(),
            promised: BTreeMap::new(),
            first,
            revision: first,
            news: Board::default(),
            told_kept: None,
            seen: VecDeque::new(),
            known: Boards::idle(grid, Rank::of(grid, config.site), &rules),
            role: match rules.via {
                Via::Hosted => Role::Hosted(Hosted::first()),
                Via::Gossip => Role::Gossip(Gossip::from_number(first)),
            },
            unsettled: false,
            sign: Time::from_micros(i64::MIN),
            whole_at: Time::from_micros(i64::MIN),
            turn: OwnTurn::default(),
        }
    }

    fn enqueue(engine: &mut Engine<Exchange>, now: Time, job: JobSpec) {
        let width = engine.core.width();
        let Engine { core, family: exchange, .. } = engine;
        exchange.specs.insert(job.id, job);
        exchange.beliefs.stir();
        let believed = exchange.beliefs.enter(core, now, job);
        let waiting = told_of(core, &believed);
        if job.processors > width {
            let job = waiting.entering(Entered::on_arrival(now));
            let version = exchange.first + 1;
            engine.pool_offer(Listing { job, version });
        } else {
            exchange.own.insert(waiting);
        }
    }

    /// The site serves its own queue and offers what is left.
    fn turn(engine: &mut Engine<Exchange>, now: Time) {
        engine.pool_correct(now);
        let Engine { core, family: exchange, .. } = engine;
        if exchange.own.is_empty() {
            return;
        }
        let mut turn = std::mem::take(&mut exchange.turn);
        own_phase(&exchange.rules, now, &mut exchange.site, &mut exchange.own, &mut turn);
        for job in turn.starts.drain(..) {
            exchange.note_busy(now.saturating_add(job.requested), job.processors);
            let spec = exchange.specs.remove(&job.id).expect("what waits has a specification");
            exchange.beliefs.start(core, now, spec, job.requested);
        }
        for job in turn.offers_of(core.rank.index(), now) {
            let version = engine.family.first + 1;
            engine.pool_offer(Listing { job, version });
        }
        turn.offers.clear();
        engine.family.turn = turn;
    }

    fn jobs(&self) -> impl Iterator<Item = &JobSpec> {
        self.specs.values()
    }

    fn waiting(&self) -> usize {
        self.specs.len()
    }

    fn take(engine: &mut Engine<Exchange>, job: &JobSpec) -> Option<JobSpec> {
        engine.pool_forget(job.id)
    }

    fn heard(engine: &mut Engine<Exchange>, now: Time, rank: Rank, message: PoolMessage) {
        engine.family.known.sites[rank].at = now;
        let from = engine.core.site_at(rank);
        match message {
            PoolMessage::Board { board, epoch, ask } => engine.on_board(now, rank, *board, epoch, ask),
            PoolMessage::Host { epoch } => engine.on_host(now, rank, epoch),
            PoolMessage::Assign { offer, to, epoch } => engine.on_assign(now, rank, offer, to, epoch),
            PoolMessage::Claim { offer, claim } => engine.on_claim(now, rank, offer, claim),
            PoolMessage::Deny { offer, claim } => engine.on_deny(now, rank, offer, claim),
            PoolMessage::Award { transfer, version, claim, floor } => {
                engine.core.on_floor(from, floor);
                engine.on_award(now, rank, *transfer, version, claim);
            }
        }
    }

    fn fired(engine: &mut Engine<Exchange>, now: Time, timer: PoolTimer) {
        match timer {
            PoolTimer::Claim(number) => {
                engine.timers.again(timer, now);
                engine.repeat_claim(now, number);
            }
            PoolTimer::Refresh => engine.pool_refresh(now),
        }
    }

    /// A job is its origin's: nobody is sent to its home, and one that nobody can hold is offered until somebody comes.
    fn belongs(core: &Core, _home: Option<Rank>, _job: &JobSpec) -> Option<Rank> {
        Some(core.rank)
    }

    fn completed(engine: &mut Engine<Exchange>, now: Time, job: JobId, estimated_end: Time, processors: u32) {
        let Engine { core, family, .. } = engine;
        family.vacate(estimated_end, processors);
        family.recount(core);
        family.beliefs.ended(core, now, job);
    }

    fn wants_settle(&self) -> bool {
        self.unsettled
    }

    fn settle(engine: &mut Engine<Exchange>, now: Time) {
        engine.pool_settle(now);
    }

    fn after(engine: &mut Engine<Exchange>, now: Time) {
        engine.pool_after(now);
    }

    fn enters(engine: &mut Engine<Exchange>, _now: Time, rank: Rank) {
        engine.pool_sees(rank);
    }

    fn leaves(engine: &mut Engine<Exchange>, _now: Time, rank: Rank, why: Leaving) {
        engine.pool_sees(rank);
        if why == Leaving::Gone {
            engine.pool_forgets(rank);
        }
    }

    fn may_start(engine: &mut Engine<Exchange>) {
        engine.family.unsettled = true;
    }

    fn is_quiet(engine: &Engine<Exchange>) -> bool {
        let claims = match &engine.family.role {
            Role::Hosted(_) => false,
            Role::Gossip(gossip) => gossip.any_claims(),
        };
        !claims && !engine.timers.any_retry()
    }
}

impl Lawful for Exchange {
    fn is_lawful(core: &Core, rank: Rank, message: &PoolMessage) -> bool {
        match message {
            PoolMessage::Board { board, epoch, .. } => may_tell(core, rank, board) && is_epoch(*epoch),
            PoolMessage::Host { epoch } => is_epoch(*epoch),
            PoolMessage::Assign { offer, epoch, .. } => are_counts(&[offer.version]) && is_epoch(*epoch),
            PoolMessage::Claim { offer, claim } | PoolMessage::Deny { offer, claim } => {
                are_counts(&[offer.version, *claim])
            }
            PoolMessage::Award { transfer, version, claim, floor } => {
                are_counts(&[*version, claim.unwrap_or(0), *floor])
                    && core.may_move(rank, std::slice::from_ref(&**transfer))
            }
        }
    }

    fn takes_routed(core: &Core, job: &JobSpec) -> bool {
        let is_home = || core.config.home_rank(job) == Some(core.rank);
        core.membership.is_some() && (job.processors <= core.width() || is_home())
    }
}

impl Giving for Exchange {
    fn repeat(
        engine: &mut Engine<Exchange>,
        _now: Time,
        to: Rank,
        transfer: &Transfer,
    ) -> Option<PoolMessage> {
        // An award names an offer, which a crash makes the owner forget: then it takes the job back.
        engine.pool_award(to, transfer.number)
    }

    fn settled(engine: &mut Engine<Exchange>, _now: Time, _rank: Rank, transfer: &Transfer) {
        engine.family.promised.remove(&transfer.job.id);
    }

    fn returned(engine: &mut Engine<Exchange>, now: Time, _rank: Rank, transfer: &Transfer) {
        engine.pool_returned(now, transfer);
    }

    fn voided(engine: &mut Engine<Exchange>, _rank: Rank, transfer: &Transfer) {
        engine.family.promised.remove(&transfer.job.id);
    }
}

impl Recovery for Exchange {
    fn remember(engine: &mut Engine<Exchange>, durable: &Durable) {
        engine.family.beliefs.remember(&engine.core, durable);
    }

    fn can_remember(engine: &Engine<Exchange>, durable: &Durable) -> Result<(), String> {
        Experience::can_be(&engine.core, &durable.memory)
    }

    fn agrees_with(engine: &Engine<Exchange>, durable: &Durable) -> Result<(), String> {
        engine.family.beliefs.agree_with(&engine.core, durable)
    }

    fn resume(engine: &mut Engine<Exchange>, now: Time) {
        engine.pool_resume(now);
    }
}

impl InParts for Exchange {}

impl Observed for Exchange {
    fn is_open(engine: &Engine<Exchange>, timer: PoolTimer) -> bool {
        match (&engine.family.role, timer) {
            (Role::Gossip(gossip), PoolTimer::Claim(number)) => gossip.has_claim(number),
            (Role::Hosted(_), PoolTimer::Claim(_)) => false,
            (_, PoolTimer::Refresh) => engine.family.has_cause(engine.core.config.site),
        }
    }

    fn check(engine: &Engine<Exchange>) {
        let Engine { core, family: exchange, .. } = engine;
        let reserved = match &exchange.role {
            Role::Gossip(gossip) => gossip.reserved(),
            Role::Hosted(_) => 0,
        };
        if core.nodes.is_none() {
            let counted = core.busy() + reserved + exchange.site.free;
            assert_eq!(counted, core.processors(), "processors are counted");
        } else if reserved == 0 {
            assert_eq!(exchange.site.room(), core.room(), "what is left of nodes is known");
        }
        assert_eq!(exchange.own.len() + exchange.offers.len(), exchange.specs.len(), "what waits waits once");
        for job in exchange.own.iter().map(|job| job.id).chain(exchange.offers.keys().copied()) {
            assert!(exchange.specs.contains_key(&job), "job {job} waits");
            assert!(!exchange.promised.contains_key(&job), "job {job} waits and is promised");
        }
        for (job, promise) in &exchange.promised {
            let out = core.ledger.out(core.site_at(promise.to), promise.number);
            assert!(
                out.is_some_and(|transfer| transfer.job.id == *job),
                "job {job} is promised, so it is out"
            );
        }
        let serves = !core.fresh && !core.is_leaving();
        assert!(exchange.own.len() <= 1 || !serves, "a site keeps one job");
        exchange.known.check_invariants();
    }

    fn pooled(&self) -> impl Iterator<Item = JobId> {
        self.specs.keys().copied()
    }
}

impl Engine<Exchange> {
    /// Takes a waiting job out of the local queue, or its offer back.
    pub(super) fn pool_forget(&mut self, job: JobId) -> Option<JobSpec> {
        let exchange = &mut self.family;
        if let Some(listing) = exchange.offers.get(&job) {
            let offer = listing.id();
            self.pool_withdraw(offer);
        } else {
            let waiting = *exchange.own.iter().find(|waiting| waiting.id == job)?;
            exchange.own.remove(&waiting);
            if exchange.site.kept.is_some_and(|kept| kept.id == job) {
                exchange.site.kept = None;
            }
        }
        self.family.beliefs.leave(job);
        self.family.specs.remove(&job)
    }

    /// Corrects what is believed of jobs that run past it, if a job came to this site or ended here, and tells who decides.
    fn pool_correct(&mut self, now: Time) {
        let Engine { core, family: exchange, .. } = self;
        for Corrected { processors, before, at } in exchange.beliefs.correct(core, now) {
            exchange.site.expect(before, at, processors);
            if exchange.knows_ends() && !core.has(Mutant::CorrectionUntold) {
                exchange.news.add_idle(Release { at: before, processors });
                exchange.news.add_busy(Release { at, processors });
            }
        }
    }

    /// This site restarts: it knows of no board, and nobody knows of its.
    pub(super) fn pool_resume(&mut self, now: Time) {
        let (grid, rank) = (self.core.config.grid.clone(), self.core.rank);
        let exchange = &mut self.family;
        exchange.known = Boards::nothing(&grid, rank, &exchange.rules);
        exchange.sign = now;
        match &exchange.role {
            Role::Gossip(_) => {
                for other in self.core.view.others() {
                    self.send_whole(now, other, true);
                }
            }
            Role::Hosted(_) => self.resume_hosted(now),
        }
    }

    /// Nothing is under way at this instant.
    pub(super) fn pool_settle(&mut self, now: Time) {
        if self.core.fresh {
            self.turn(now);
        }
        // What is decided on must be what this site knows of itself.
        self.pool_publish();
        let exchange = &mut self.family;
        exchange.unsettled = false;
        match exchange.rules.via {
            Via::Hosted => self.settle_hosted(now),
            Via::Gossip => self.settle_gossip(now),
        }
    }

    /// After everything that the peer was told: say what changed, unless a turn is still to come.
    pub(super) fn pool_after(&mut self, now: Time) {
        if !self.core.fresh {
            self.pool_publish();
        }
        let Some(refresh) = self.core.config.options.pool.refresh else { return };
        let site = self.core.config.site;
        match (self.family.has_cause(site), self.timers.is_set(PoolTimer::Refresh)) {
            (true, false) => {
                self.family.sign = now;
                self.timers.set(PoolTimer::Refresh, now, refresh);
            }
            (false, true) => self.timers.cancel(PoolTimer::Refresh),
            _ => {}
        }
    }

    /// Tells those who decide what changed here.
    pub(super) fn pool_publish(&mut self) {
        let rank = self.core.rank;
        let site = self.core.config.site;
        let exchange = &mut self.family;
        let (free, kept) = (exchange.site.room(), exchange.site.kept);
        if exchange.news.lists_nothing() && free == exchange.told_free && kept == exchange.told_kept {
            return;
        }
        (exchange.told_free, exchange.told_kept) = (free.clone(), kept);
        let decides = exchange.decides(site);
        exchange.unsettled |= decides;
        let hears_demand = matches!(exchange.role, Role::Hosted(_)) || exchange.rules.demand;
        if !hears_demand {
            exchange.news.busy.clear();
            exchange.news.idle.clear();
            if !exchange.news.tells_of_offers() {
                return;
            }
        }
        loop {
            let exchange = &mut self.family;
            exchange.revision += 1;
            let board =
                Board { revision: exchange.revision, free: free.clone(), kept, ..exchange.news.cut() };
            if decides {
                self.note_board(rank, &board);
            }
            self.tell_board(board);
            if self.family.news.lists_nothing() {
                return;
            }
        }
    }

    fn tell_board(&mut self, board: Board) {
        let board = Box::new(board);
        let epoch = self.epoch();
        match &self.family.role {
            Role::Hosted(hosted) => {
                let host = hosted.epoch.site;
                if host != self.core.config.site {
                    let host = self.core.rank_of(host);
                    self.core.send(host, PoolMessage::Board { board, epoch, ask: false });
                }
            }
            Role::Gossip(_) => {
                for other in self.core.view.others() {
                    self.core.send(other, PoolMessage::Board { board: board.clone(), epoch, ask: false });
                }
            }
        }
    }

    /// Sends all of the board to one site.
    fn send_whole(&mut self, now: Time, to: Rank, ask: bool) {
        self.pool_publish();
        let exchange = &mut self.family;
        exchange.whole_at = now;
        let board = Box::new(exchange.whole_board());
        let epoch = self.epoch();
        self.core.send_again(to, PoolMessage::Board { board, epoch, ask }, true);
    }

    /// Takes over what a board says of offers, the own one included. If that is nothing new, there is nothing new to decide either: as
    /// time goes by, jobs that run past their estimates make the same boards look otherwise.
    fn note_board(&mut self, rank: Rank, board: &Board) {
        let exchange = &mut self.family;
        let mut is_new = exchange.known.apply(rank, board);
        if let Role::Hosted(hosted) = &mut exchange.role {
            is_new |= hosted.confirm(rank, board, &exchange.known);
        }
        exchange.unsettled |= is_new;
    }

    fn on_board(&mut self, now: Time, other: Rank, board: Board, epoch: Epoch, ask: bool) {
        if !self.hear_epoch(now, other, epoch) {
            return;
        }
        let refreshes = self.core.config.options.pool.refresh.is_some();
        let away = !self.core.is_reachable(other);
        let exchange = &mut self.family;
        exchange.unsettled |= exchange.known.set_silent(other, away);
        let heard = &mut exchange.known.sites[other];
        let ready = heard.receive(board);
        let (gap, overflow) = (heard.has_gap(), heard.overflowed());
        if !heard.asked && (overflow || (gap && refreshes)) {
            heard.asked = true;
            self.ask_whole(now, other);
        }
        self.family.unsettled |= !ready.is_empty();
        for board in ready {
            self.family.known.sites[other].apply(&board);
            self.note_board(other, &board);
        }
        if ask {
            self.send_whole(now, other, false);
        }
        if self.core.has(Mutant::DecideAtOnce) {
            self.pool_settle(now);
        }
    }

    /// Asks a site for all of its board.
    fn ask_whole(&mut self, now: Time, other: Rank) {
        match self.family.role {
            Role::Hosted(Hosted { epoch, .. }) => self.core.send(other, PoolMessage::Host { epoch }),
            Role::Gossip(_) => self.send_whole(now, other, true),
        }
    }

    /// [`crate::PoolOptions::refresh`] is over: repeat what may have been lost, and look who is silent.
    pub(super) fn pool_refresh(&mut self, now: Time) {
        let Some(refresh) = self.core.config.options.pool.refresh else { return };
        self.timers.set(PoolTimer::Refresh, now, refresh);
        let patience = refresh.saturating_mul(SILENCE_REFRESHES);
        let (site, others) = (self.core.config.site, self.core.view.others());
        if self.family.decides(site) {
            for other in others {
                let away = !self.core.is_reachable(other);
                let exchange = &mut self.family;
                let heard = exchange.known.sites[other].at.max(exchange.sign);
                exchange.known.sites[other].asked = false;
                exchange.unsettled |= exchange.known.set_silent(other, away || now.since(heard) >= patience);
            }
        }
        match self.family.role {
            Role::Hosted(_) => self.refresh_hosted(now, refresh, patience),
            Role::Gossip(_) => {
                for other in self.core.view.others() {
                    self.send_whole(now, other, true);
                }
            }
        }
    }

    /// A site is not there, or is again: decisions leave it out, or not.
    pub(super) fn pool_sees(&mut self, rank: Rank) {
        let away = !self.core.is_reachable(rank);
        let exchange = &mut self.family;
        exchange.known.set_silent(rank, away);
        exchange.unsettled = true;
    }

    /// A site is gone: what it offered is taken over by others. If it comes back it is asked for all of its board.
    pub(super) fn pool_forgets(&mut self, rank: Rank) {
        let capacity = self.core.capacity_of(rank);
        self.note_board(rank, &Board { whole: true, ..Board::default() });
        let exchange = &mut self.family;
        exchange.unsettled = true;
        let heard = &mut exchange.known.sites[rank];
        let at = heard.at;
        *heard = board::Heard::unknown(capacity);
        heard.at = at;
    }
}

/// A waiting job as others are told of it, with what it asks for of memory where jobs share nodes.
fn told_of(core: &Core, job: &JobSpec) -> WaitingJob {
    let told = WaitingJob::new(job);
    if core.config.grid.is_shared() { told.with_memory_of(job) } else { told }
}

/// So long after `since`, or longer.
fn has_passed(now: Time, since: Time, span: Span) -> bool {
    now >= since.saturating_add(span)
}

/// Whether a site can say this of its processors and offers.
fn may_tell(core: &Core, rank: Rank, board: &Board) -> bool {
    let is_waiting = |job: &WaitingJob| core.is_job(job.processors, job.submit, job.requested);
    let widest = core.config.grid.widest();
    let is_busy = |release: &Release| is_release(release) && release.processors <= widest;
    let versions = board.withdrawn.iter().chain(&board.seen).map(|offer| offer.version);
    let is_room = match &board.free {
        Room::Processors(free) => *free <= widest,
        nodes => nodes.is_within(&core.capacity_of(rank)),
    };
    // Who has told nothing yet may say all there is; there is no difference before the first.
    board.revision <= COUNT_MAX
        && (board.whole || board.revision > 0)
        && is_room
        && board.kept.iter().all(is_waiting)
        && board.busy.iter().chain(&board.idle).all(is_busy)
        && board.offered.iter().all(|listing| is_waiting(&listing.job) && listing.version <= COUNT_MAX)
        && versions.into_iter().all(|version| version <= COUNT_MAX)
}

fn is_epoch(epoch: Epoch) -> bool {
    epoch.counter <= COUNT_MAX
}
