//! The peer of one site: its state, its one door in and its one door out.
//!
//! **Facts change state, turns decide, answers continue the turn that asked.** For one instant a driver
//!
//! 1. delivers all completions, then all submissions, then all messages that are due;
//! 2. gives each site an [`Input::Turn`] in ascending order of rank, delivering every message of zero delay before
//!    the next turn, and repeats the pass until nothing starts;
//! 3. tells all sites that want it to [`Input::Settle`], then delivers what they sent, and goes back to 2;
//! 4. fires timers that are due ([`Input::Timeout`]) and, if any fired, goes back to 2.
//!
//! With all delays zero this discipline makes the schedule that of the ideal algorithm, job for job. Three rules
//! carry that equality: a notice only updates the view (Z1); a victim serves a request at once and does not start
//! own jobs first (Z2), unless it has facts it had no turn for (Z3).
//!
//! Stealing from others is in `thief.rs`, being stolen from in `victim.rs`.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use scheduler::event::{GrantCause, MessageKind};
use scheduler::local::LocalQueue;
use scheduler::waiting::WaitingList;
use scheduler::{EventKind, JobId, JobSpec, Selection, SiteId, Span, Strategy, Submit, Time};

use crate::balance::Balancer;
use crate::canary::Canary;
use crate::config::PeerConfig;
use crate::handover::{Answer, Custody, Ledger, Record};
use crate::journal::{Fact, Place, first_number};
use crate::lists::{Lists, place};
use crate::membership::Membership;
use crate::message::{Message, Offer, Release, Transfer};
use crate::pool::Exchange;
use crate::round_trips::RoundTrips;
use crate::thief::{Polling, View};
use crate::timers::{Timer, Timers};
use crate::victim::ThiefRecord;

/// What can happen to a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A user submitted a job here.
    Submitted(JobSpec),
    /// A job that runs here ended.
    Completed(JobId),
    /// A message arrived.
    Message {
        /// Who sent it, as the transport authenticated it.
        from: SiteId,
        /// What it says.
        message: Message,
    },
    /// All facts of this instant are in: decide.
    Turn,
    /// [`Peer::wants_settle`] and nothing is under way at this instant: decide what was put off until then.
    Settle,
    /// [`Peer::poll_timeout`] has passed.
    Timeout,
    /// The operator wants the site to give its jobs away and to stop; see [`Peer::has_left`].
    Leave,
    /// The operator makes the site the owner of a job whose guardian never comes back, under an epoch newer than any
    /// other; see [`crate::membership::operator`]. May be repeated.
    Adopt {
        /// The job.
        job: JobSpec,
        /// The epoch.
        epoch: u32,
    },
}

/// What a peer wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Execute this job, and tell when it ends.
    Start(JobSpec),
    /// Send a message.
    Send {
        /// To whom.
        to: SiteId,
        /// What.
        message: Message,
    },
    /// Remember this.
    Event(EventKind),
    /// Make this durable before any other output of the same call is carried out. Only with
    /// [`crate::Options::journal`].
    Write(Fact),
}

/// One site's scheduler as a state machine.
#[derive(Clone, Debug)]
pub struct Peer {
    pub(crate) config: PeerConfig,
    pub(crate) rank: usize,
    pub(crate) lists: Option<Lists>,
    local: Option<LocalQueue>,
    pub(crate) free: u32,
    /// Waiting jobs whose home is here.
    pub(crate) own: WaitingList,
    /// Of every job here, whether it waits, is held or runs.
    pub(crate) custody: BTreeMap<JobId, Custody>,
    /// Firmly granted jobs that wait to fit; they go before everything.
    pub(crate) held: VecDeque<JobSpec>,
    running: BTreeMap<JobId, Running>,
    /// Facts arrived that had no turn yet.
    pub(crate) fresh: bool,
    /// Counts starts and completions, to notice that an offer changed.
    pub(crate) changes: u64,
    /// What this site believes of smaller sites, by rank.
    pub(crate) views: Vec<View>,
    /// The victim that may serve this site without being asked.
    pub(crate) standing_at: Option<usize>,
    pub(crate) polling: Option<Polling>,
    /// What this site told larger sites, by rank minus own rank minus one.
    pub(crate) records: Vec<ThiefRecord>,
    pub(crate) releases_offered: BTreeMap<usize, Vec<Release>>,
    pub(crate) version: u64,
    /// Counts restarts.
    life: u32,
    pub(crate) ledger: Ledger,
    /// Transfers that are routes, not grants: (rank, number).
    pub(crate) routed: BTreeSet<(usize, u64)>,
    pub(crate) timers: Timers,
    pub(crate) round_trips: RoundTrips,
    /// Exchange through a global queue, under that strategy.
    pub(crate) pool: Option<Box<Exchange>>,
    /// What a classic baseline adds.
    pub(crate) balance: Option<Balancer>,
    /// Who is there, if sites say so.
    pub(crate) membership: Option<Box<Membership>>,
    /// Ranks that do not count in the order of sizes, ascending.
    pub(crate) absent: Vec<usize>,
    outputs: VecDeque<Output>,
    #[cfg(feature = "canary")]
    pub(crate) canary: Option<Canary>,
}

#[derive(Clone, Copy, Debug)]
struct Running {
    processors: u32,
    estimated_end: Time,
}

/// Why a job is granted, as the event log tells it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reason {
    cause: GrantCause,
    /// Number of the request that is answered, 0 for none.
    request: u64,
}

impl Reason {
    /// The job goes through the global queue.
    pub(crate) const POOL: Reason = Reason { cause: GrantCause::Pool, request: 0 };
    pub(crate) const ROUTE: Reason = Reason { cause: GrantCause::Route, request: 0 };

    /// Any cause but a request.
    pub(crate) fn of(cause: GrantCause) -> Reason {
        Reason { cause, request: 0 }
    }

    /// The answer to a request, or to one that stands.
    pub(crate) fn serving(answers: Option<u64>) -> Reason {
        match answers {
            Some(request) => Reason { cause: GrantCause::Request, request },
            None => Reason { cause: GrantCause::Standing, request: 0 },
        }
    }
}

impl Peer {
    /// A peer with an empty queue that believes every other queue empty. Its journal is empty, too.
    pub fn new(config: PeerConfig) -> Peer {
        Peer::at_rest(config, 0, first_number(0))
    }

    /// A peer in its so-manieth life, whose numbers are larger than `first`.
    pub(crate) fn at_rest(config: PeerConfig, life: u32, first: u64) -> Peer {
        assert!(config.options.window >= 1, "a thief needs one request");
        assert!(config.options.batch >= 1, "a grant holds a job");
        let grid = config.grid.clone();
        let rank = grid.rank(config.site);
        let processors = grid.sizes()[rank];
        let lists = Lists::of(&config.strategy);
        let pool = Exchange::of(&config, first);
        let balance = Balancer::of(&config, first);
        let local = (lists.is_none() && pool.is_none() && balance.is_none())
            .then(|| LocalQueue::new(config.local, config.pass, processors));
        Peer {
            rank,
            local,
            free: processors,
            own: WaitingList::new(),
            custody: BTreeMap::new(),
            held: VecDeque::new(),
            running: BTreeMap::new(),
            fresh: false,
            changes: 0,
            views: if lists.is_some() { vec![View::from_number(first); rank] } else { Vec::new() },
            standing_at: None,
            polling: Polling::of(&config.options),
            records: match lists {
                Some(_) => vec![ThiefRecord::default(); grid.len() - rank - 1],
                None => Vec::new(),
            },
            releases_offered: BTreeMap::new(),
            version: first,
            life,
            ledger: Ledger::new(),
            routed: BTreeSet::new(),
            timers: Timers::default(),
            round_trips: RoundTrips::default(),
            pool,
            balance,
            membership: Membership::of(&config),
            absent: Vec::new(),
            outputs: VecDeque::new(),
            #[cfg(feature = "canary")]
            canary: None,
            lists,
            config,
        }
    }

    /// Tells the peer one thing. Drain [`Peer::poll_output`] before the next. Within a life `now` never goes back; it may
    /// jump ahead, and another life may begin at any time.
    pub fn handle(&mut self, now: Time, input: Input) {
        self.wake(now);
        match input {
            Input::Submitted(job) => self.on_submitted(now, job),
            Input::Completed(job) => self.on_completed(now, job),
            Input::Message { from, message } => self.on_message(now, from, message),
            Input::Turn => self.turn(now),
            Input::Settle if self.pool.is_some() => self.pool_settle(now),
            Input::Settle => {}
            Input::Timeout => self.on_timeout(now),
            Input::Leave => self.leave(now),
            Input::Adopt { job, epoch } => self.on_adopt(now, job, epoch),
        }
        if self.pool.is_some() {
            self.pool_after(now);
        }
    }

    /// The next thing the peer wants done, in order.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When the peer wants an [`Input::Timeout`] (and a turn) even if nothing else happens.
    pub fn poll_timeout(&self) -> Option<Time> {
        // A site that leaves starts nothing, and one that must hear of others first has nothing to do until then.
        let local = self.local.as_ref().filter(|_| !self.is_leaving() && !self.must_ask_first());
        let planned = local.and_then(LocalQueue::wake_at);
        [self.timers.next(), planned].into_iter().flatten().min()
    }

    /// Whether the peer wants an [`Input::Settle`] once nothing is under way at this instant.
    pub fn wants_settle(&self) -> bool {
        self.pool_wants_settle()
    }

    fn on_submitted(&mut self, now: Time, job: JobSpec) {
        if self.is_here(job.id) || self.ledger.hops_out(job.id).is_some() {
            // Another site gave its number to a job of its own making, or it was submitted twice.
            let from = self.config.site;
            return self.event(EventKind::Ignored { from, message: MessageKind::Route });
        }
        self.event(EventKind::Submitted {
            job: job.id,
            processors: job.processors,
            requested: job.requested,
            origin: job.origin,
        });
        self.own_up(job, Custody::default(), Place::Queue);
        self.custody.insert(job.id, Custody::default());
        self.settle_in(now, job, Custody::default());
    }

    /// Whether a job that was submitted here stays here: always at its home, and where homes mean nothing if it fits.
    pub(crate) fn keeps(&self, home: usize, job: &JobSpec) -> bool {
        let is_free = self.balance.is_some() || self.config.strategy == Strategy::Local;
        home == self.rank || (is_free && job.processors <= self.processors())
    }

    /// Puts a job into the queue of this site.
    pub(crate) fn enqueue(&mut self, now: Time, job: JobSpec) {
        match &mut self.local {
            Some(local) => {
                if self.membership.as_mut().is_none_or(|membership| membership.keep_local(job)) {
                    local.submit(now, job);
                }
            }
            None if self.pool.is_some() => self.pool_submitted(now, job),
            None if self.balance.is_some() => self.balance_enqueue(job),
            None => self.own.insert(job),
        }
        self.fresh = true;
    }

    pub(crate) fn route(&mut self, now: Time, home: usize, job: JobSpec, custody: Custody) {
        let transfer = self.grant_transfer(now, home, job, custody, Reason::ROUTE);
        self.routed.insert((home, transfer.number));
        self.write(Fact::Routed { to: self.site_at(home), number: transfer.number });
        let told = if self.has(Canary::FloorOfAnother) { home % 8 } else { home };
        let floor = self.ledger.floor_to(self.site_at(told));
        self.send(home, Message::Route { transfers: vec![transfer], floor });
    }

    fn on_completed(&mut self, now: Time, job: JobId) {
        let gone = self.running.remove(&job).expect("only a running job completes");
        if let Some(local) = &mut self.local {
            local.complete(now, job);
        }
        if self.pool.is_some() {
            self.pool_completed(gone.estimated_end, gone.processors);
        }
        let lost = self.has(Canary::FreesOneLess) && gone.processors > 1;
        self.free += gone.processors - u32::from(lost);
        assert!(self.free <= self.processors(), "a job frees what it held");
        let custody = self.custody.remove(&job).unwrap_or_default();
        if !self.has(Canary::EndNotWritten) {
            self.write(Fact::Ended { job });
        }
        self.ward_done(job, custody);
        self.fresh = true;
        self.changes += 1;
        self.event(EventKind::Completed { job, processors: gone.processors });
    }

    fn on_message(&mut self, now: Time, from: SiteId, message: Message) {
        if self.config.options.message_events {
            self.event(EventKind::Received { from, message: message.kind() });
        }
        if from.0 == 0 || from.index() >= self.config.grid.len() || from == self.config.site {
            return self.ignore(from, &message);
        }
        let other = self.config.grid.rank(from);
        if !self.is_lawful(other, &message) && !self.has(Canary::LiesBelieved) {
            return self.ignore(from, &message);
        }
        self.heard_of(now, other);
        let steals = self.lists.is_some();
        match message {
            Message::Request { .. }
            | Message::Refuse { .. }
            | Message::Give { .. }
            | Message::Watch { .. }
            | Message::News { .. }
            | Message::Seen { .. }
            | Message::Gossip { .. }
                if self.balance.is_some() =>
            {
                self.balance_message(now, other, message);
            }
            Message::Grant { .. }
            | Message::NoWork { .. }
            | Message::Notice { .. }
            | Message::Request { .. }
            | Message::Seen { .. }
            | Message::Withdraw { .. }
                if !steals =>
            {
                self.ignore(from, &message);
            }
            Message::Grant { transfers, answers, state, floor } if other < self.rank => {
                self.on_floor(from, floor);
                self.on_grant(now, other, &transfers, answers, state);
            }
            Message::NoWork { seq, state } if other < self.rank => self.on_no_work(now, other, seq, state),
            Message::Notice { state } if other < self.rank => self.on_notice(now, other, state),
            Message::Request { seq, offer, seen } if other > self.rank => {
                self.on_request(now, other, seq, offer, seen);
            }
            Message::Seen { version, keep, offer } if other > self.rank => {
                self.on_seen(now, other, version, keep, offer);
            }
            Message::Withdraw { version } if other > self.rank => self.on_withdraw(other, version),
            Message::Reply { accepted, declined } => self.on_reply(now, other, &accepted, &declined),
            Message::Route { transfers, floor } => {
                self.on_floor(from, floor);
                self.on_route(now, other, &transfers);
            }
            Message::Recall { number, floor } => {
                self.on_floor(from, floor);
                self.on_recall(other, number);
            }
            Message::Floor { floor } => self.on_floor(from, floor),
            Message::Beat { life, leaving, first, voids, known } => {
                if self.on_journal(now, other, life) {
                    self.on_beat(now, other, leaving, first, &voids, known);
                }
            }
            Message::Reports { reports } => self.on_reports(now, other, reports),
            Message::Noted { reports } => self.on_noted(now, other, &reports),
            message if self.pool.is_some() => self.on_pool_message(now, other, message),
            // From a site that has no business saying so.
            message => self.ignore(from, &message),
        }
    }

    /// Decides what starts here, tells others, and asks for work if hungry.
    pub(crate) fn turn(&mut self, now: Time) {
        if self.must_ask_first() {
            return;
        }
        self.fresh = false;
        if self.is_leaving() {
            return self.turn_out(now);
        }
        self.settle_stranded(now);
        self.follow_pool(now);
        if self.local.is_some() {
            return self.local_turn(now);
        }
        if self.pool.is_some() {
            return self.pool_turn(now);
        }
        if self.balance.is_some() {
            return self.balance_turn(now);
        }
        self.start_held(now);
        if !self.lists().stolen_first() {
            self.start_own(now);
        }
        self.publish(now);
        self.ask(now);
    }

    fn local_turn(&mut self, now: Time) {
        let mut starts = Vec::new();
        loop {
            let local = self.local.as_mut().expect("checked by the caller");
            local.decide(now, &mut starts);
            let mut withdrawn = false;
            for job in starts.drain(..) {
                if self.membership.as_mut().is_none_or(|membership| membership.starts_local(job.id)) {
                    self.start(now, job);
                } else {
                    let local = self.local.as_mut().expect("checked by the caller");
                    local.complete(now, job.id);
                    withdrawn = true;
                }
            }
            if !withdrawn {
                return;
            }
        }
    }

    fn start_held(&mut self, now: Time) {
        while self.held.front().is_some_and(|job| job.processors <= self.free) {
            let job = self.held.pop_front().expect("just looked");
            self.start(now, job);
        }
    }

    /// Starts own jobs of the leading class while one is selected.
    pub(crate) fn start_own(&mut self, now: Time) {
        while self.held.is_empty() && self.start_own_one(now) {}
    }

    pub(crate) fn start_own_one(&mut self, now: Time) -> bool {
        if self.free == 0 || self.own.is_empty() {
            return false;
        }
        let lists = self.lists();
        let ranges = lists.list(&self.own, &self.config.grid, self.rank, self.rank, &self.absent);
        let releases = self.releases(now);
        let Some(job) = lists.pick(&self.own, ranges, self.free, now, &releases) else { return false };
        let (processors, key) = place(&job);
        self.own.remove(processors, key).expect("it was just selected");
        self.start(now, job);
        true
    }

    pub(crate) fn start(&mut self, now: Time, job: JobSpec) {
        assert!(job.processors <= self.free, "a policy started job {} that does not fit", job.id);
        let uncounted = self.has(Canary::CountsOneLess) && job.processors > 1;
        let processors = match self.has(Canary::NoTimeNoRoom) && job.requested == Span::ZERO {
            true => 0,
            false => job.processors - u32::from(uncounted),
        };
        self.free -= processors;
        let running = Running { processors, estimated_end: now.saturating_add(job.requested) };
        let before = self.running.insert(job.id, running);
        assert!(before.is_none(), "job {} runs once", job.id);
        self.changes += 1;
        self.write(Fact::Started { job: job.id, at: now });
        let hops = self.custody.get(&job.id).map_or(0, |custody| custody.hops);
        self.event(EventKind::Started { job: job.id, processors: job.processors, hops });
        self.outputs.push_back(Output::Start(job));
    }

    fn on_timeout(&mut self, now: Time) {
        for timer in self.timers.due(now) {
            // An earlier one of this batch may have canceled it.
            if self.timers.is_set(timer) {
                self.on_timer(now, timer);
            }
        }
    }

    fn on_timer(&mut self, now: Time, timer: Timer) {
        match timer {
            Timer::Request(victim) => {
                self.timers.again(timer, now);
                if self.balance.is_some() { self.repeat_ask(victim) } else { self.repeat_request(victim) }
            }
            Timer::Notice(thief) => {
                self.timers.again(timer, now);
                self.repeat_notice(thief);
            }
            Timer::Transfer(to, number) => {
                self.timers.again(timer, now);
                self.repeat_transfer(now, to, number);
            }
            Timer::Poll => {
                self.timers.cancel(timer);
                if self.balance.is_some() { self.balance_wakes() } else { self.poll_round_due() }
            }
            Timer::Watch(rank) => {
                self.timers.again(timer, now);
                self.repeat_watch(rank);
            }
            Timer::Gossip => {
                self.timers.cancel(timer);
                self.pass_on(now);
            }
            Timer::Serve => {
                self.timers.cancel(timer);
                self.serve_standing(now);
            }
            Timer::Claim(number) => {
                self.timers.again(timer, now);
                self.repeat_claim(now, number);
            }
            Timer::Refresh => self.pool_refresh(now),
            Timer::Beat => self.beat(now),
        }
    }

    pub(crate) fn on_floor(&mut self, from: SiteId, floor: u64) {
        if let Some(record) = self.ledger.floor_from(from, floor) {
            self.apply(record);
        }
    }

    pub(crate) fn ignore(&mut self, from: SiteId, message: &Message) {
        self.event(EventKind::Ignored { from, message: message.kind() });
    }

    /// Writes a transfer down and arms its timer; the caller sends it.
    pub(crate) fn grant_transfer(
        &mut self,
        now: Time,
        to: usize,
        job: JobSpec,
        custody: Custody,
        why: Reason,
    ) -> Transfer {
        let site = self.site_at(to);
        // A route makes the receiver responsible, unless somebody else is.
        let keeps = why.cause != GrantCause::Route;
        let guardian = custody.guardian.or(keeps.then_some(self.site()));
        let (record, transfer) = self.ledger.grant(site, job, Custody { guardian, ..custody });
        self.apply(record);
        self.ward_out(site, &transfer, custody);
        self.custody.remove(&job.id);
        self.round_trips.transfer_left(to, transfer.number, now);
        if let Some(retry) = self.config.options.retry {
            self.timers.set(Timer::Transfer(to, transfer.number), now, retry);
        }
        self.event(EventKind::Granted {
            job: job.id,
            to: site,
            transfer: transfer.number,
            hops: transfer.hops,
            cause: why.cause,
            request: why.request,
        });
        transfer
    }

    pub(crate) fn apply(&mut self, record: Record) {
        self.ledger.apply(&record);
        let forgets = match record {
            Record::Tomb { answer: Answer::Accepted, .. } => self.has(Canary::AcceptedNotWritten),
            Record::Tomb { answer: Answer::Declined, .. } => self.has(Canary::DeclinedNotWritten),
            Record::Floor { .. } => self.has(Canary::FloorNotWritten),
            Record::Out { .. }
            | Record::Settled { .. }
            | Record::Voided { .. }
            | Record::Renumbered { .. } => false,
        };
        if !forgets {
            self.write(Fact::Ledger(record));
        }
    }

    /// This site owns a job that came by a transfer.
    pub(crate) fn keep_custody(&mut self, transfer: &Transfer, place: Place) {
        let (job, me) = (transfer.job, self.site());
        let guardian = transfer.guardian.filter(|&guardian| guardian != me);
        let Transfer { hops, epoch, moves, .. } = *transfer;
        let custody = Custody { hops, bounces: 0, epoch, moves, guardian };
        self.came_back(transfer);
        self.custody.insert(job.id, custody);
        self.own_up(job, custody, place);
        self.ward_back(job.id);
    }

    /// Writes down that this site owns a job that waits here.
    pub(crate) fn own_up(&mut self, job: JobSpec, custody: Custody, place: Place) {
        self.write(Fact::Owns { job, custody, place });
    }

    pub(crate) fn write(&mut self, fact: Fact) {
        if self.config.options.journal {
            self.outputs.push_back(Output::Write(fact));
        }
    }

    pub(crate) fn send(&mut self, to: usize, message: Message) {
        self.send_again(to, message, false);
    }

    pub(crate) fn send_again(&mut self, to: usize, message: Message, retry: bool) {
        let to = self.site_at(to);
        if self.config.options.message_events {
            self.event(EventKind::Sent { to, message: message.kind(), retry });
        }
        self.outputs.push_back(Output::Send { to, message });
    }

    pub(crate) fn event(&mut self, kind: EventKind) {
        self.outputs.push_back(Output::Event(kind));
    }

    pub(crate) fn lists(&self) -> Lists {
        self.lists.expect("only the local strategy has no lists")
    }

    pub(crate) fn site_at(&self, rank: usize) -> SiteId {
        self.config.grid.at_rank(rank)
    }

    /// The processors of a job that executes here.
    pub(crate) fn runs_with(&self, job: JobId) -> Option<u32> {
        self.running.get(&job).map(|running| running.processors)
    }

    /// Idle processors, own queue empty, nothing held: the site would take work.
    pub(crate) fn is_hungry(&self) -> bool {
        self.free > 0 && self.held.is_empty() && (self.own.is_empty() || self.lists().stolen_first())
    }

    /// Estimated ends of running jobs, ascending, if the selection needs them.
    pub(crate) fn releases(&self, now: Time) -> Vec<Release> {
        if self.lists.is_none_or(|lists| lists.select() != Selection::Easy) {
            return Vec::new();
        }
        let mut by_time: BTreeMap<Time, u32> = BTreeMap::new();
        for running in self.running.values() {
            *by_time.entry(running.estimated_end.max(now)).or_default() += running.processors;
        }
        by_time.into_iter().map(|(at, processors)| Release { at, processors }).collect()
    }

    /// An offer of these processors.
    pub(crate) fn offer(&self, now: Time, free: u32, stand: bool) -> Offer {
        let mut releases = if free > 0 { self.releases(now) } else { Vec::new() };
        releases.truncate(crate::codec::RELEASES_MAX);
        Offer { free, stand, releases }
    }

    /// Estimated ends of running jobs with their widths, in no order of time.
    pub(crate) fn releases_of_running(&self) -> impl Iterator<Item = (Time, u32)> {
        self.running.values().map(|running| (running.estimated_end, running.processors))
    }

    /// The site of this peer.
    pub fn site(&self) -> SiteId {
        self.config.site
    }

    /// How often this site began again with its journal.
    pub fn life(&self) -> u32 {
        self.life
    }

    /// What the peer was told before it started.
    pub fn config(&self) -> &PeerConfig {
        &self.config
    }

    /// All processors of the site.
    pub fn processors(&self) -> u32 {
        self.config.grid.sizes()[self.rank]
    }

    /// Idle processors.
    pub fn free(&self) -> u32 {
        self.free
    }

    /// Jobs that wait here, own and held.
    pub fn waiting(&self) -> usize {
        self.own.len() + self.held.len() + self.local.as_ref().map_or(0, LocalQueue::waiting)
            - self.membership.as_ref().map_or(0, |membership| membership.withdrawn())
            + self.pooled().count()
            + self.membership.as_ref().map_or(0, |membership| membership.stranded_count())
    }

    /// Jobs that wait here, in the local queue or offered, under exchange through a global queue.
    pub fn pooled(&self) -> impl Iterator<Item = JobId> {
        self.pool.iter().flat_map(|exchange| exchange.waiting())
    }

    /// Waiting jobs whose home is here, for observers. Empty under the local strategy.
    pub fn own(&self) -> &WaitingList {
        &self.own
    }

    /// Jobs that run here.
    pub fn running(&self) -> impl Iterator<Item = JobId> {
        self.running.keys().copied()
    }

    /// Firmly granted jobs that wait to fit.
    pub fn held(&self) -> impl Iterator<Item = &JobSpec> {
        self.held.iter()
    }

    /// Transfers from and to this site.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Whether no answer is outstanding and no message may have to be repeated. A site that polls always has a
    /// question open; for it only transfers count.
    pub fn is_quiet(&self) -> bool {
        if self.membership.as_ref().is_some_and(|membership| membership.reports_due(&self.config.grid) > 0) {
            return false;
        }
        if self.balance.is_some() {
            return self.ledger.is_settled() && self.balance_is_quiet();
        }
        if self.polling.is_some() {
            return self.ledger.is_settled();
        }
        self.ledger.is_settled()
            && self.pool.as_ref().is_none_or(|exchange| exchange.is_quiet())
            && !self.timers.any_retry()
            && !self.timers.is_set(Timer::Serve)
            && self.views.iter().all(|view| !view.is_asked())
    }

    /// Walks the whole state and panics if it contradicts itself.
    pub fn check_invariants(&self) {
        let busy: u32 = self.running.values().map(|running| running.processors).sum();
        assert_eq!(busy + self.free, self.processors(), "processors are busy or idle");
        for (to, out) in self.ledger.transfers_out() {
            // It may have come back before the answer: then it moved on since.
            let job = out.job.id;
            let came_back = self.custody.get(&job).is_some_and(|custody| custody.hops > out.hops);
            let runs = self.running.contains_key(&job);
            assert!(!runs || came_back, "job {job} runs here and is out to site {to}");
        }
        for job in self.own.iter().chain(self.held.iter()) {
            assert!(!self.running.contains_key(&job.id), "job {} waits and runs", job.id);
        }
        if let Some(local) = &self.local {
            assert_eq!(local.free(), self.free, "the local queue counts the same processors");
        }
        if let Some(exchange) = &self.pool {
            self.check_pool(exchange, busy);
        }
        self.check_balance();
        assert!(self.outputs.is_empty(), "drivers drain outputs after every input");
    }
}

impl PeerConfig {
    /// The rank of the site that first owns a job: its home by size, or the host of the common pool.
    /// `None` if no site is wide enough.
    pub fn home_rank(&self, job: &JobSpec) -> Option<usize> {
        Submit::Home.rank(&self.grid, self.strategy, job)
    }
}
