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
//! In both the owner promises an offer to one taker (`owner.rs`), which answers durably (`taker.rs`); the transfer
//! is that of [`crate::handover`]. Decisions are taken when nothing is under way ([`Peer::wants_settle`]).
//!
//! | an offered job is | until | then |
//! |---|---|---|
//! | offered(v) | the decision names its own site | started |
//! | offered(v) | an assignment or a claim of v | promised(v, taker) |
//! | promised(v, taker) | the taker accepts | gone |
//! | promised(v, taker) | the taker declines | offered(v + 1) |

pub mod board;
mod gossip;
mod host;
mod known;
mod owner;
mod taker;

use std::collections::{BTreeMap, VecDeque};

use scheduler::exchange::{Entered, JobQueue, OwnTurn, SiteView, WaitingJob, own_phase};
use scheduler::strategy::{PoolAlgorithm, PoolOrder, Via};
use scheduler::{JobId, JobSpec, SiteId, Span, Strategy, Time};

use self::board::{Board, Listing, OfferId, SEEN_MAX};
use self::gossip::Gossip;
use self::host::Hosted;
use self::known::Known;
use self::owner::Promise;
use crate::config::PeerConfig;
use crate::message::{Message, Release};
use crate::peer::Peer;
use crate::timers::Timer;

/// After so many [`crate::Options::refresh`] without a sign a site is left out of decisions, a host is replaced, and
/// an assignment that nobody confirmed is forgotten.
pub const SILENCE_REFRESHES: i64 = 3;

/// After so many [`crate::Options::refresh`] without an answer a claim is given up.
pub const CLAIM_REFRESHES: i64 = 5;

/// The part of a peer that exchanges jobs through a global queue.
#[derive(Clone, Debug)]
pub(crate) struct Exchange {
    rules: scheduler::Pool,
    /// Processors of this site; those reserved by claims count as busy.
    site: SiteView,
    /// The local queue; what is kept included.
    own: JobQueue,
    /// Of jobs in the local queue and of offered ones.
    specs: BTreeMap<JobId, JobSpec>,
    offers: BTreeMap<JobId, Listing>,
    promised: BTreeMap<JobId, Promise>,
    /// Revisions, offers and claims are numbered from here.
    first: u64,
    /// Revision of the board as told last.
    revision: u64,
    /// What is to be told.
    news: Board,
    told_free: u32,
    told_kept: Option<WaitingJob>,
    /// Offers answered last.
    seen: VecDeque<OfferId>,
    known: Known,
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
    /// For peers that exchange through a global queue; none for others.
    pub(crate) fn of(config: &PeerConfig, first: u64) -> Option<Box<Exchange>> {
        let Strategy::Pool(rules) = config.strategy else { return None };
        let grid = &config.grid;
        let processors = grid.site(config.site).processors;
        Some(Box::new(Exchange {
            rules,
            site: SiteView::idle(processors),
            own: JobQueue::new(PoolOrder::Submit),
            specs: BTreeMap::new(),
            offers: BTreeMap::new(),
            promised: BTreeMap::new(),
            first,
            revision: first,
            news: Board::default(),
            told_free: processors,
            told_kept: None,
            seen: VecDeque::new(),
            known: Known::idle(grid, grid.rank(config.site), &rules),
            role: match rules.via {
                Via::Hosted => Role::Hosted(Hosted::first()),
                Via::Gossip => Role::Gossip(Gossip::from_number(first)),
            },
            unsettled: false,
            sign: Time::from_micros(i64::MIN),
            whole_at: Time::from_micros(i64::MIN),
            turn: OwnTurn::default(),
        }))
    }

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
            free: self.told_free,
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

    /// Jobs that wait here.
    pub(crate) fn jobs(&self) -> impl Iterator<Item = &JobSpec> {
        self.specs.values()
    }

    /// Jobs that wait here.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = JobId> {
        self.specs.keys().copied()
    }

    /// Whether nothing waits for an answer and nothing is going to be repeated.
    pub(crate) fn is_quiet(&self) -> bool {
        match &self.role {
            Role::Hosted(_) => true,
            Role::Gossip(gossip) => !gossip.any_claims(),
        }
    }
}

impl Peer {
    /// The ranks of all other sites.
    pub(crate) fn others(&self) -> impl Iterator<Item = usize> + use<> {
        let rank = self.rank;
        (0..self.config.grid.len()).filter(move |&other| other != rank)
    }

    pub(crate) fn exchange(&mut self) -> &mut Exchange {
        self.pool.as_mut().expect("only called where there is a global queue")
    }

    /// Takes a waiting job out of the local queue, or its offer back.
    pub(crate) fn pool_forget(&mut self, job: JobId) -> Option<JobSpec> {
        let exchange = self.exchange();
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
        self.exchange().specs.remove(&job)
    }

    /// A job was submitted here.
    pub(crate) fn pool_submitted(&mut self, now: Time, job: JobSpec) {
        let processors = self.processors();
        let exchange = self.exchange();
        exchange.specs.insert(job.id, job);
        let waiting = WaitingJob::new(&job);
        if job.processors > processors {
            let job = waiting.entering(Entered::on_arrival(now));
            let version = exchange.first + 1;
            self.pool_offer(Listing { job, version });
        } else {
            exchange.own.insert(waiting);
        }
        self.fresh = true;
    }

    /// A job that ran here ended.
    pub(crate) fn pool_completed(&mut self, estimated_end: Time, processors: u32) {
        self.exchange().vacate(estimated_end, processors);
    }

    /// This site begins again: it knows of no board, and nobody knows of its.
    pub(crate) fn pool_resume(&mut self, now: Time) {
        let (grid, rank) = (self.config.grid.clone(), self.rank);
        let exchange = self.exchange();
        exchange.known = Known::nothing(&grid, rank, &exchange.rules);
        exchange.sign = now;
        match &exchange.role {
            Role::Gossip(_) => {
                for other in self.others() {
                    self.send_whole(now, other, true);
                }
            }
            Role::Hosted(_) => self.resume_hosted(now),
        }
    }

    /// The site serves its own queue and offers what is left.
    pub(crate) fn pool_turn(&mut self, now: Time) {
        let exchange = self.exchange();
        if exchange.own.is_empty() {
            return;
        }
        let mut turn = std::mem::take(&mut exchange.turn);
        own_phase(&exchange.rules, now, &mut exchange.site, &mut exchange.own, &mut turn);
        for job in turn.starts.drain(..) {
            let exchange = self.exchange();
            exchange.note_busy(now.saturating_add(job.requested), job.processors);
            let spec = exchange.specs.remove(&job.id).expect("what waits has a specification");
            self.start(now, spec);
        }
        for job in turn.offers_of(self.rank, now) {
            let version = self.exchange().first + 1;
            self.pool_offer(Listing { job, version });
        }
        turn.offers.clear();
        self.exchange().turn = turn;
    }

    /// Nothing is under way at this instant.
    pub(crate) fn pool_settle(&mut self, now: Time) {
        if self.fresh {
            self.turn(now);
        }
        // What is decided on must be what this site knows of itself.
        self.pool_publish();
        let exchange = self.exchange();
        exchange.unsettled = false;
        match exchange.rules.via {
            Via::Hosted => self.settle_hosted(now),
            Via::Gossip => self.settle_gossip(now),
        }
    }

    /// This site may start what waits here from now on.
    pub(crate) fn pool_may_start(&mut self) {
        if let Some(exchange) = &mut self.pool {
            exchange.unsettled = true;
        }
    }

    /// Whether a decision is wanted once nothing is under way.
    pub(crate) fn pool_wants_settle(&self) -> bool {
        self.pool.as_ref().is_some_and(|exchange| exchange.unsettled)
    }

    /// After everything that the peer was told: say what changed, unless a turn is still to come.
    pub(crate) fn pool_after(&mut self, now: Time) {
        if !self.fresh {
            self.pool_publish();
        }
        let Some(refresh) = self.config.options.refresh else { return };
        let site = self.config.site;
        match (self.exchange().has_cause(site), self.timers.is_set(Timer::Refresh)) {
            (true, false) => {
                self.exchange().sign = now;
                self.timers.set(Timer::Refresh, now, refresh);
            }
            (false, true) => self.timers.cancel(Timer::Refresh),
            _ => {}
        }
    }

    /// Tells those who decide what changed here.
    pub(crate) fn pool_publish(&mut self) {
        let rank = self.rank;
        let site = self.config.site;
        let exchange = self.exchange();
        let (free, kept) = (exchange.site.free, exchange.site.kept);
        if exchange.news.lists_nothing() && (free, kept) == (exchange.told_free, exchange.told_kept) {
            return;
        }
        (exchange.told_free, exchange.told_kept) = (free, kept);
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
            let exchange = self.exchange();
            exchange.revision += 1;
            let board = Board { revision: exchange.revision, free, kept, ..exchange.news.cut() };
            if decides {
                self.note_board(rank, &board);
            }
            self.tell_board(board);
            if self.exchange().news.lists_nothing() {
                return;
            }
        }
    }

    fn tell_board(&mut self, board: Board) {
        let epoch = self.epoch();
        match &self.exchange().role {
            Role::Hosted(hosted) => {
                let host = hosted.epoch.site;
                if host != self.config.site {
                    let host = self.config.grid.rank(host);
                    self.send(host, Message::Board { board, epoch, ask: false });
                }
            }
            Role::Gossip(_) => {
                for other in self.others() {
                    self.send(other, Message::Board { board: board.clone(), epoch, ask: false });
                }
            }
        }
    }

    /// Sends all of the board to one site.
    fn send_whole(&mut self, now: Time, to: usize, ask: bool) {
        self.pool_publish();
        let exchange = self.exchange();
        exchange.whole_at = now;
        let board = exchange.whole_board();
        let epoch = self.epoch();
        self.send_again(to, Message::Board { board, epoch, ask }, true);
    }

    /// Takes over what a board says of offers, the own one included.
    fn note_board(&mut self, rank: usize, board: &Board) {
        let exchange = self.exchange();
        exchange.known.apply(rank, board);
        if let Role::Hosted(hosted) = &mut exchange.role {
            hosted.confirm(rank, board, &exchange.known);
        }
        exchange.unsettled = true;
    }

    /// A message of the global queue arrived.
    pub(crate) fn on_pool_message(&mut self, now: Time, other: usize, message: Message) {
        self.exchange().known.sites[other].at = now;
        match message {
            Message::Board { board, epoch, ask } => self.on_board(now, other, board, epoch, ask),
            Message::Host { epoch } => self.on_host(now, other, epoch),
            Message::Assign { offer, to, epoch } => self.on_assign(now, other, offer, to, epoch),
            Message::Claim { offer, claim } => self.on_claim(now, other, offer, claim),
            Message::Deny { offer, claim } => self.on_deny(now, other, offer, claim),
            Message::Award { transfer, version, claim, floor } => {
                self.on_floor(self.site_at(other), floor);
                self.on_award(now, other, transfer, version, claim);
            }
            message => self.ignore(self.site_at(other), &message),
        }
    }

    fn on_board(&mut self, now: Time, other: usize, board: Board, epoch: board::Epoch, ask: bool) {
        if !self.hear_epoch(now, other, epoch) {
            return;
        }
        let refreshes = self.config.options.refresh.is_some();
        let away = !self.is_reachable(other);
        let exchange = self.exchange();
        exchange.known.set_silent(other, away);
        let heard = &mut exchange.known.sites[other];
        let ready = heard.receive(board);
        let (gap, overflow) = (heard.has_gap(), heard.overflowed());
        if !heard.asked && (overflow || (gap && refreshes)) {
            heard.asked = true;
            self.ask_whole(now, other);
        }
        for board in ready {
            self.exchange().known.sites[other].apply(&board);
            self.note_board(other, &board);
        }
        if ask {
            self.send_whole(now, other, false);
        }
        if self.has(crate::canary::Canary::DecideAtOnce) {
            self.pool_settle(now);
        }
    }

    /// Asks a site for all of its board.
    fn ask_whole(&mut self, now: Time, other: usize) {
        match self.exchange().role {
            Role::Hosted(Hosted { epoch, .. }) => self.send(other, Message::Host { epoch }),
            Role::Gossip(_) => self.send_whole(now, other, true),
        }
    }

    /// [`crate::Options::refresh`] is over: repeat what may have been lost, and look who is silent.
    pub(crate) fn pool_refresh(&mut self, now: Time) {
        let Some(refresh) = self.config.options.refresh else { return };
        self.timers.set(Timer::Refresh, now, refresh);
        let patience = refresh.saturating_mul(SILENCE_REFRESHES);
        let (site, others) = (self.config.site, self.others());
        if self.exchange().decides(site) {
            for other in others {
                let away = !self.is_reachable(other);
                let exchange = self.exchange();
                let heard = exchange.known.sites[other].at.max(exchange.sign);
                exchange.known.sites[other].asked = false;
                exchange.known.set_silent(other, away || now.since(heard) >= patience);
            }
            self.exchange().unsettled = true;
        }
        match self.exchange().role {
            Role::Hosted(_) => self.refresh_hosted(now, refresh, patience),
            Role::Gossip(_) => {
                for other in self.others() {
                    self.send_whole(now, other, true);
                }
            }
        }
    }

    /// A site is not there, or is again: decisions leave it out, or not.
    pub(crate) fn pool_sees(&mut self, rank: usize) {
        let away = !self.is_reachable(rank);
        let exchange = self.exchange();
        exchange.known.set_silent(rank, away);
        exchange.unsettled = true;
    }

    /// A site is gone: what it offered is taken over by others. If it comes back it is asked for all of its board.
    pub(crate) fn pool_forgets(&mut self, rank: usize) {
        let size = self.config.grid.sizes()[rank];
        self.note_board(rank, &Board { whole: true, ..Board::default() });
        let exchange = self.exchange();
        let heard = &mut exchange.known.sites[rank];
        let at = heard.at;
        *heard = board::Heard::unknown(size);
        heard.at = at;
    }

    /// Walks the state of the exchange.
    pub(crate) fn check_pool(&self, exchange: &Exchange, running: u32) {
        let reserved = match &exchange.role {
            Role::Gossip(gossip) => gossip.reserved(),
            Role::Hosted(_) => 0,
        };
        assert_eq!(running + reserved + exchange.site.free, self.processors(), "processors are counted");
        assert_eq!(exchange.own.len() + exchange.offers.len(), exchange.specs.len(), "what waits waits once");
        for job in exchange.own.iter().map(|job| job.id).chain(exchange.offers.keys().copied()) {
            assert!(exchange.specs.contains_key(&job), "job {job} waits");
            assert!(!exchange.promised.contains_key(&job), "job {job} waits and is promised");
        }
        for (job, promise) in &exchange.promised {
            let out = self.ledger.out(self.site_at(promise.to), promise.number);
            assert!(
                out.is_some_and(|transfer| transfer.job.id == *job),
                "job {job} is promised, so it is out"
            );
        }
        let serves = !self.fresh && !self.is_leaving();
        assert!(exchange.own.len() <= 1 || !serves, "a site keeps one job");
        exchange.known.check_invariants();
    }
}

/// So long after `since`, or longer.
fn has_passed(now: Time, since: Time, span: Span) -> bool {
    now >= since.saturating_add(span)
}
