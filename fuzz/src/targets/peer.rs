//! One peer among others that say whatever they like: it does not panic, runs no job twice and keeps its books.
//!
//! The bytes are a program: first the grid, the strategy and the options, then one input after the other, each from
//! the driver, which keeps its side of the seam, or from another site, which keeps nothing. Small numbers are more
//! likely than large ones, so that inputs meet.

use std::collections::BTreeMap;
use std::sync::Arc;

use protocol::codec::{decode, encode};
use protocol::gang::Attempt;
use protocol::message::{
    BalanceMessage, Board, BrokerMessage, Change, Epoch, Executed, HandOverMessage, Held, Listing,
    LoadReport, MembershipMessage, Offer, OfferId, OpaqueMessage, PoolMessage, QueueState, Release, Report,
    Rest, StealMessage, Transfer, Void,
};
use protocol::{
    BrokerOptions, Discovery, Durable, Failover, Input, Message, Options, Output, Peer, PeerConfig, Pending,
    PoolOptions, Reporting, StealOptions, Terms,
};
use scheduler::exchange::{Entered, WaitingJob};
use scheduler::{Grid, JobId, JobSpec, Labels, LocalScheduler, Pass, SiteId, Span, StrategySpec, Time};

/// Grids, by sizes.
const GRIDS: [&[u32]; 5] = [&[4, 8, 16], &[1, 2, 3, 4], &[8, 8], &[2], &[3, 100, 4096, 1 << 20]];
/// Strategies, by name.
pub(crate) const STRATEGIES: [&str; 16] = [
    "st:50",
    "st:0",
    "st-greedy:50",
    "st:50,order=bah",
    "st:50,order=bha",
    "st:50,select=easy",
    "st:100,select=head",
    "common-pool",
    "local",
    "pool:easy",
    "pool:fcfs",
    "pool:list",
    "steal:random",
    "steal:two-choices",
    "steal:random,select=easy",
    "steal:loaded,mode=push,select=easy",
];
/// Strategies with brokers, by name: the last values of the byte, so that nearly all inputs from before say what they said.
pub(crate) const BROKERS: [&str; 9] = [
    "opaque:mqd,cap=2,timeout=5,growth=50,tie=random",
    "opaque:ag,cap=2,timeout=5",
    "broker:genetic,batch=3,population=2,generations=1",
    "broker:mpl",
    "broker:mct",
    "broker:mwwt-s,mwt-pop=system",
    "broker:lbal-s,a=0.5",
    "broker:mst,plan=open-loop",
    "broker:random",
];
/// The value of the byte that is the first of them.
pub(crate) const BROKERS_FROM: u8 = u8::MAX - BROKERS.len() as u8 + 1;
/// Inputs of one program, at most: arbitrary; longer programs find nothing that shorter ones do not.
const INPUTS_MAX: usize = 400;
/// Rounds of work after a crash: arbitrary, some timeouts.
const ROUNDS: u32 = 8;
/// Entries of one list in a message, at most: arbitrary.
const ENTRIES_MAX: u8 = 4;

/// Bytes as what happens to one peer.
///
/// # Panics
/// If the peer does, starts a job that it runs, does not fit or nobody gave it, or contradicts itself.
pub fn peer(bytes: &[u8]) {
    let mut bytes = Bytes(bytes);
    let mut world = World::new(&mut bytes);
    for _ in 0..INPUTS_MAX {
        if bytes.0.is_empty() {
            break;
        }
        world.step(&mut bytes);
    }
    if world.peer.config().options.journal {
        world.crash();
        world.work();
    }
}

/// What is left of the program. Zeros follow its end.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }

    fn flag(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    fn wide(&mut self) -> u64 {
        u64::from_le_bytes(std::array::from_fn(|_| self.byte()))
    }

    /// Most likely a small number.
    fn number(&mut self) -> u64 {
        match self.byte() {
            byte @ 0..224 => u64::from(byte % 32),
            224..232 => u64::MAX - u64::from(self.byte() % 4),
            232..240 => (1 << (self.byte() % 64)) - 1,
            _ => self.wide(),
        }
    }

    fn narrow(&mut self) -> u32 {
        self.number() as u32
    }

    /// Most likely some seconds.
    fn micros(&mut self) -> i64 {
        match self.byte() {
            byte @ 0..224 => i64::from(byte) * 1_000_000,
            224..232 => i64::MAX - i64::from(self.byte() % 4),
            232..240 => i64::MIN + i64::from(self.byte() % 4),
            _ => self.wide().cast_signed(),
        }
    }

    fn list<T>(&mut self, mut entry: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let len = self.byte() % (ENTRIES_MAX + 1);
        (0..len).map(|_| entry(self)).collect()
    }

    fn release(&mut self) -> Release {
        Release { at: Time::from_micros(self.micros()), processors: self.narrow() }
    }

    fn offer(&mut self) -> Offer {
        Offer { free: self.narrow().into(), stand: self.flag(), releases: self.list(Self::release) }
    }

    fn state(&mut self) -> QueueState {
        let rest = match self.byte() % 3 {
            0 => Rest::Empty,
            1 => Rest::Need(self.narrow()),
            _ => Rest::More,
        };
        QueueState { version: self.number(), rest, lead: self.narrow() }
    }

    fn job(&mut self) -> JobSpec {
        JobSpec {
            id: JobId(self.number()),
            processors: self.narrow(),
            submit: Time::from_micros(self.micros()),
            requested: Span::from_micros(self.micros()),
            labels: Labels::UNKNOWN,
            origin: SiteId(self.narrow()),
            payload: self.number(),
        }
    }

    fn transfer(&mut self) -> Transfer {
        Transfer {
            number: self.number(),
            job: self.job(),
            bounces: self.narrow(),
            hops: self.narrow(),
            epoch: self.narrow(),
            moves: self.narrow(),
            guardian: if self.flag() { Some(SiteId(self.narrow())) } else { None },
        }
    }

    fn report(&mut self) -> Report {
        Report {
            job: JobId(self.number()),
            guardian: SiteId(self.narrow()),
            epoch: self.narrow(),
            moves: self.narrow(),
            holder: SiteId(self.narrow()),
            done: self.flag(),
        }
    }

    fn load_report(&mut self) -> LoadReport {
        LoadReport {
            site: SiteId(self.narrow()),
            version: self.number(),
            age: Span::from_micros(self.micros()),
            work: self.number(),
            narrowest: self.narrow(),
            idle: self.narrow(),
        }
    }

    fn offer_id(&mut self) -> OfferId {
        OfferId { job: JobId(self.number()), version: self.number() }
    }

    fn epoch(&mut self) -> Epoch {
        Epoch { counter: self.number(), site: SiteId(self.narrow()) }
    }

    fn waiting(&mut self) -> WaitingJob {
        let job = WaitingJob::new(&self.job());
        if self.flag() { job.entering(Entered::on_arrival(Time::from_micros(self.micros()))) } else { job }
    }

    fn listing(&mut self) -> Listing {
        Listing { job: self.waiting(), version: self.number() }
    }

    fn board(&mut self) -> Board {
        Board {
            revision: self.number(),
            whole: self.flag(),
            free: self.narrow().into(),
            kept: if self.flag() { Some(self.waiting()) } else { None },
            busy: self.list(Self::release),
            idle: self.list(Self::release),
            offered: self.list(Self::listing),
            withdrawn: self.list(Self::offer_id),
            seen: self.list(Self::offer_id),
        }
    }

    fn maybe(&mut self) -> Option<u64> {
        if self.flag() { Some(self.number()) } else { None }
    }

    fn change(&mut self) -> Change {
        let at = Time::from_micros(self.micros());
        let byte = self.byte();
        if byte == u8::MAX {
            let job = JobId(self.number());
            return Change::EndedAfter { at, job, run_time: Span::from_micros(self.micros()) };
        }
        if byte == u8::MAX - 1 {
            return Change::Asked { at, count: self.number() };
        }
        if byte == u8::MAX - 2 {
            let (part, since, whole) = (self.job(), Time::from_micros(self.micros()), self.narrow());
            return Change::PartRuns { at, part, since, whole };
        }
        if byte == u8::MAX - 3 {
            return Change::PartEnded { at, job: JobId(self.number()) };
        }
        match byte % 6 {
            0 => Change::Joined { at, job: self.job() },
            1 => Change::Decided { at, started: self.list(|bytes| JobId(bytes.number())) },
            2 => Change::Ended { at, job: JobId(self.number()) },
            3 => Change::Left { at, job: JobId(self.number()) },
            4 => Change::Runs { at, job: self.job(), since: Time::from_micros(self.micros()) },
            _ => Change::JoinedBefore { at, job: self.job(), overtaker: JobId(self.number()) },
        }
    }

    fn broker_message(&mut self, byte: u8) -> BrokerMessage {
        match byte {
            250 => BrokerMessage::State {
                epoch: self.number(),
                first: self.number(),
                changes: self.list(Self::change),
                probe: self.number(),
            },
            251 => BrokerMessage::Known { epoch: self.number(), next: self.number() },
            252 => BrokerMessage::Probe { probe: self.number() },
            _ => BrokerMessage::Anew { count: self.number() },
        }
    }

    fn gang_message(&mut self) -> BrokerMessage {
        let byte = self.byte();
        let kind = if byte == u8::MAX { 9 } else { byte % 9 };
        let (job, epoch, number) = (JobId(self.number()), self.narrow(), self.number());
        let attempt = Attempt { job, epoch, number };
        match kind {
            0 => BrokerMessage::Prepare {
                attempt,
                floor: self.number(),
                part: Box::new(JobSpec { id: job, ..self.job() }),
                of: SiteId(self.narrow()),
                hops: self.narrow(),
            },
            1 => BrokerMessage::Commit { attempt, at: Time::from_micros(self.micros()) },
            2 => BrokerMessage::Abort { attempt },
            3 => BrokerMessage::Ready { attempt },
            4 => BrokerMessage::Refused { attempt },
            5 => BrokerMessage::Over { attempt, ended: self.flag() },
            6 => BrokerMessage::Heard { attempt },
            7 => BrokerMessage::Fetch { job },
            9 => BrokerMessage::PreparePredicted {
                attempt,
                floor: self.number(),
                part: Box::new(JobSpec { id: job, ..self.job() }),
                of: SiteId(self.narrow()),
                hops: self.narrow(),
                whole: self.narrow(),
                run_time: Span::from_micros(self.micros()),
            },
            _ => BrokerMessage::Missing { job },
        }
    }

    fn executed(&mut self) -> Executed {
        let [queued, started, ended] = [self.micros(), self.micros(), self.micros()].map(Time::from_micros);
        Executed { job: JobId(self.number()), queued, started, ended }
    }

    fn held(&mut self) -> Held {
        let started = if self.flag() { Some(Time::from_micros(self.micros())) } else { None };
        Held { job: self.job(), queued: Time::from_micros(self.micros()), started }
    }

    fn opaque_message(&mut self, byte: u8) -> OpaqueMessage {
        let other = self.flag();
        match (byte, other) {
            (246, _) => OpaqueMessage::Give { transfers: self.list(Self::transfer), floor: self.number() },
            (247, false) => OpaqueMessage::Ended { jobs: self.list(Self::executed) },
            (247, true) => {
                let (count, all) = (self.number(), self.narrow());
                OpaqueMessage::Have { count, all, jobs: self.list(Self::held) }
            }
            (248, false) => OpaqueMessage::Known { jobs: self.list(|bytes| JobId(bytes.number())) },
            (248, true) => OpaqueMessage::Recall { job: JobId(self.number()) },
            (_, false) => {
                let started = if self.flag() { Some(Time::from_micros(self.micros())) } else { None };
                OpaqueMessage::Refused { job: JobId(self.number()), started }
            }
            (_, true) => OpaqueMessage::Anew { count: self.number() },
        }
    }

    fn message(&mut self) -> Message {
        let byte = self.byte();
        // Kinds that came later than the others take two values, so that nearly all inputs from before say what they said.
        match byte {
            254 => {
                return Message::Balance(BalanceMessage::Request {
                    seq: self.number(),
                    free: self.narrow().into(),
                });
            }
            255 => return Message::Balance(BalanceMessage::Seen { seq: self.number() }),
            244 | 245 => return Message::Broker(self.gang_message()),
            246..=249 => return Message::Opaque(self.opaque_message(byte)),
            250..=253 => return Message::Broker(self.broker_message(byte)),
            _ => {}
        }
        match byte % 24 {
            0 => Message::Steal(StealMessage::Request {
                seq: self.number(),
                offer: self.offer(),
                seen: self.number(),
            }),
            1 => Message::Steal(StealMessage::NoWork { seq: self.number(), state: self.state() }),
            2 => Message::Steal(StealMessage::Grant {
                transfers: self.list(Self::transfer),
                answers: self.maybe(),
                state: self.state(),
                floor: self.number(),
            }),
            3 => Message::HandOver(HandOverMessage::Reply {
                accepted: self.list(Self::number),
                declined: self.list(Self::number),
            }),
            4 => Message::Steal(StealMessage::Notice { state: self.state() }),
            5 => Message::Steal(StealMessage::Seen {
                version: self.number(),
                keep: self.flag(),
                offer: self.offer(),
            }),
            6 => Message::Steal(StealMessage::Withdraw { version: self.number() }),
            7 => Message::HandOver(HandOverMessage::Route {
                transfers: self.list(Self::transfer),
                floor: self.number(),
            }),
            8 => Message::HandOver(HandOverMessage::Recall { number: self.number(), floor: self.number() }),
            9 => Message::HandOver(HandOverMessage::Floor { floor: self.number() }),
            10 => Message::Pool(PoolMessage::Board {
                board: Box::new(self.board()),
                epoch: self.epoch(),
                ask: self.flag(),
            }),
            11 => Message::Pool(PoolMessage::Host { epoch: self.epoch() }),
            12 => Message::Pool(PoolMessage::Assign {
                offer: self.offer_id(),
                to: SiteId(self.narrow()),
                epoch: self.epoch(),
            }),
            13 => Message::Pool(PoolMessage::Claim { offer: self.offer_id(), claim: self.number() }),
            14 => Message::Pool(PoolMessage::Deny { offer: self.offer_id(), claim: self.number() }),
            15 => Message::Pool(PoolMessage::Award {
                transfer: Box::new(self.transfer()),
                version: self.number(),
                claim: self.maybe(),
                floor: self.number(),
            }),
            16 => Message::Balance(BalanceMessage::Refuse {
                seq: self.number(),
                load_report: self.load_report(),
            }),
            17 => Message::Balance(BalanceMessage::Give {
                transfers: self.list(Self::transfer),
                answers: self.maybe(),
                load_report: self.load_report(),
                floor: self.number(),
            }),
            18 => Message::Balance(BalanceMessage::Watch { seq: self.number(), width: self.narrow().into() }),
            19 => {
                Message::Balance(BalanceMessage::News { seq: self.number(), load_report: self.load_report() })
            }
            20 => Message::Balance(BalanceMessage::Gossip { load_reports: self.list(Self::load_report) }),
            21 => Message::Membership(MembershipMessage::Heartbeat {
                incarnation: self.narrow(),
                leaving: self.flag(),
                first: self.number(),
                voids: self.list(|bytes| Void { job: JobId(bytes.number()), epoch: bytes.narrow() }),
                known: self.number(),
            }),
            22 => Message::Membership(MembershipMessage::Reports { reports: self.list(Self::report) }),
            _ => Message::Membership(MembershipMessage::Noted { reports: self.list(Self::report) }),
        }
    }
}

/// The grid, the strategy and the options that a program begins with.
fn configuration(bytes: &mut Bytes<'_>) -> PeerConfig {
    let sizes = GRIDS[usize::from(bytes.byte()) % GRIDS.len()];
    let (site, strategy) = (usize::from(bytes.byte()), bytes.byte());
    let (name, grid) = match strategy.checked_sub(BROKERS_FROM) {
        Some(place) => (BROKERS[usize::from(place)], with_brokers(sizes)),
        None => {
            let name = STRATEGIES[usize::from(strategy) % STRATEGIES.len()];
            (name, Grid::of_sizes(sizes).expect("sizes of a grid"))
        }
    };
    let site = SiteId::from_index(site % grid.len());
    let strategy = name.parse::<StrategySpec>().expect("the name of a strategy").strategy;
    let local = LocalScheduler::ALL[usize::from(bytes.byte()) % LocalScheduler::ALL.len()];
    let (switches, limits, members) = (bytes.byte(), bytes.byte(), bytes.byte());
    let on = |bit: u8| switches >> bit & 1 == 1;
    let second = Span::from_secs(1);
    let (period, period_max) = (second, Span::from_secs(8));
    let options = Options {
        discovery: if on(0) { Discovery::Polling { period, period_max } } else { Discovery::Standing },
        steal: StealOptions {
            eager: on(1),
            window: 1 + usize::from(limits & 1),
            prefetch: (members & 8 == 8).then(|| Span::from_secs(30)),
        },
        retry: on(2).then_some(second),
        recall: on(3).then_some(Span::from_secs(3)),
        broker: broker_options(limits),
        pool: PoolOptions { refresh: on(4).then_some(Span::from_secs(10)) },
        margin: on(5).then_some(second),
        message_events: on(6),
        heartbeat: (members & 1 == 1).then_some(Span::from_secs(5)),
        suspect_after: Span::from_secs(12),
        lease: (members & 2 == 2).then_some(Span::from_secs(30)),
        journal: members & 4 == 4,
        batch: 1 + usize::from(limits >> 1 & 3),
        bounces_max: u32::from(limits >> 3 & 3),
        unanswered_max: 1 + usize::from(limits >> 5),
        ..Options::default()
    };
    let pass = if on(7) { Pass::PerEvent } else { Pass::Batch };
    PeerConfig { site, terms: Terms { local, pass, options, ..Terms::new(Arc::new(grid), strategy) } }
}

/// A grid with two brokers, of which one is beside the first site.
fn with_brokers(sizes: &[u32]) -> Grid {
    let sites = sizes.iter().enumerate().map(|(place, &size)| (format!("site{}", place + 1), size));
    let brokers = [("broker1".to_string(), None), ("broker2".to_string(), Some(SiteId(1)))];
    Grid::with_brokers(sites, brokers).expect("names differ")
}

/// What brokers know.
fn broker_options(switches: u8) -> BrokerOptions {
    let report = match switches & 3 {
        0 => Reporting::Every(Span::from_secs(10)),
        1 => Reporting::Probe(2),
        _ => Reporting::Change,
    };
    let pending = if switches & 4 == 4 { Pending::Ignore } else { Pending::Count };
    let failover = if switches & 8 == 8 { Failover::Local } else { Failover::Next };
    BrokerOptions { report, pending, failover }
}

/// The same of bytes.
pub(super) fn config_of(bytes: &[u8]) -> PeerConfig {
    configuration(&mut Bytes(bytes))
}

/// The peer and what its driver knows.
pub(super) struct World {
    peer: Peer,
    now: Time,
    /// Jobs that run, with their processors.
    executing: BTreeMap<JobId, u32>,
    /// Jobs that users submitted so far. Their numbers are those that other sites are likely to name.
    submitted: u64,
    /// What the peer said last, for sites that repeat or answer it.
    said: Vec<(SiteId, Message)>,
    disk: Durable,
}

impl World {
    fn new(bytes: &mut Bytes<'_>) -> World {
        let config = configuration(bytes);
        // A site with a journal begins with an empty one.
        match config.options.journal {
            true => World::restored(config, Durable::default()),
            false => World::of(Peer::new(config), Durable::default()),
        }
    }

    fn of(peer: Peer, disk: Durable) -> World {
        let executing = BTreeMap::new();
        World { peer, now: Time::ZERO, executing, submitted: 0, said: Vec::new(), disk }
    }

    /// A peer that begins with a journal.
    pub(super) fn restored(config: PeerConfig, disk: Durable) -> World {
        // As a driver does: at the last instant of which the journal knows.
        let started = disk.jobs.values().filter_map(|kept| kept.started);
        let now = started.chain([Time::ZERO]).max().expect("there is one");
        let mut world = World::of(Peer::restore(config, &disk, now), disk);
        world.now = now;
        world.obey();
        world
    }

    /// Lets the peer restart with what it wrote.
    pub(super) fn crash(&mut self) {
        let config = self.peer.config().clone();
        assert_eq!(self.disk.check(&config), Ok(()), "what a peer wrote is no damage");
        let now = self.now;
        *self = World::restored(config, std::mem::take(&mut self.disk));
        self.now = now.max(self.now);
    }

    /// Some turns, timeouts, and the ends of what executes.
    pub(super) fn work(&mut self) {
        self.tell(Input::Turn);
        for _ in 0..ROUNDS {
            if let Some(at) = self.peer.poll_timeout() {
                self.now = self.now.max(at.min(Time::from_micros(2 * protocol::MICROS_MAX)));
                self.tell(Input::Timeout);
            }
            while let Some((job, _)) = self.executing.pop_first() {
                self.tell(Input::Completed(job));
            }
            self.tell(Input::Turn);
            if self.peer.wants_settle() {
                self.tell(Input::Settle);
            }
        }
    }

    fn step(&mut self, bytes: &mut Bytes<'_>) {
        let input = match bytes.byte() % 16 {
            0..=5 => {
                // Site 0 and those beyond the grid are nobody.
                let from = SiteId(u32::from(bytes.byte()) % (self.peer.config().grid.len() as u32 + 2));
                Input::Message { from, message: bytes.message() }
            }
            6 => match self.answer(bytes) {
                Some(input) => input,
                None => return,
            },
            7 => Input::Submitted(self.job(bytes)),
            8 => match bytes.byte() {
                255 => Input::Leave,
                240..255 => Input::Adopt { job: self.job(bytes), epoch: 1 + bytes.narrow() % 1000 },
                _ => Input::Submitted(self.job(bytes)),
            },
            9 => {
                let running = self.executing.len().max(1);
                let Some(&job) = self.executing.keys().nth(usize::from(bytes.byte()) % running) else {
                    return;
                };
                self.executing.remove(&job);
                Input::Completed(job)
            }
            10 | 11 => Input::Turn,
            12 if self.peer.wants_settle() => Input::Settle,
            12 => return,
            13 => {
                let Some(at) = self.peer.poll_timeout() else { return };
                self.now = self.now.max(at.min(Time::from_secs(1_000_000_000)));
                Input::Timeout
            }
            14 => {
                self.now += Span::from_secs(i64::from(bytes.byte()));
                Input::Turn
            }
            _ => {
                self.now += Span::from_micros(i64::from(bytes.byte()));
                Input::Timeout
            }
        };
        self.tell(input);
    }

    /// A site that answers what it was told by this peer, well or badly.
    fn answer(&mut self, bytes: &mut Bytes<'_>) -> Option<Input> {
        let last = self.said.len().max(1);
        let (to, message) = self.said.iter().nth_back(usize::from(bytes.byte()) % last)?.clone();
        let state = bytes.state();
        let numbers = message.transfers().iter().map(|transfer| transfer.number).collect();
        let floor = bytes.number();
        let message = match message {
            _ if bytes.byte().is_multiple_of(4) => message,
            Message::Broker(BrokerMessage::Probe { probe }) => {
                let (epoch, first, changes) = (bytes.number(), bytes.number(), bytes.list(Bytes::change));
                Message::Broker(BrokerMessage::State { epoch, first, changes, probe })
            }
            Message::Broker(BrokerMessage::State { epoch, first, changes, .. }) => {
                let next = first.saturating_add(changes.len() as u64);
                Message::Broker(BrokerMessage::Known { epoch, next })
            }
            Message::Steal(StealMessage::Request { seq, .. }) if bytes.flag() => {
                Message::Steal(StealMessage::NoWork { seq, state })
            }
            Message::Steal(StealMessage::Request { seq, .. }) => {
                let transfers = bytes.list(Bytes::transfer);
                Message::Steal(StealMessage::Grant { transfers, answers: Some(seq), state, floor })
            }
            Message::Balance(BalanceMessage::Request { seq, .. }) if bytes.flag() => {
                Message::Balance(BalanceMessage::Refuse { seq, load_report: bytes.load_report() })
            }
            Message::Balance(BalanceMessage::Request { seq, .. }) => {
                let (transfers, load_report) = (bytes.list(Bytes::transfer), bytes.load_report());
                Message::Balance(BalanceMessage::Give { transfers, answers: Some(seq), load_report, floor })
            }
            Message::Balance(BalanceMessage::Watch { seq, .. }) => {
                Message::Balance(BalanceMessage::News { seq, load_report: bytes.load_report() })
            }
            Message::Steal(StealMessage::Notice { state }) => Message::Steal(StealMessage::Seen {
                version: state.version,
                keep: bytes.flag(),
                offer: bytes.offer(),
            }),
            Message::Pool(PoolMessage::Claim { offer, claim }) if bytes.flag() => {
                Message::Pool(PoolMessage::Deny { offer, claim })
            }
            Message::Pool(PoolMessage::Claim { offer: OfferId { version, .. }, claim }) => {
                Message::Pool(PoolMessage::Award {
                    transfer: Box::new(bytes.transfer()),
                    version,
                    claim: Some(claim),
                    floor,
                })
            }
            Message::Pool(PoolMessage::Board { board, .. }) => {
                let offer = board.offered.first()?.job.id;
                let offer = OfferId { job: offer, version: board.offered.first()?.version };
                Message::Pool(PoolMessage::Assign { offer, to: SiteId(bytes.narrow()), epoch: bytes.epoch() })
            }
            _ if bytes.flag() => {
                Message::HandOver(HandOverMessage::Reply { accepted: numbers, declined: Vec::new() })
            }
            _ => Message::HandOver(HandOverMessage::Reply { accepted: Vec::new(), declined: numbers }),
        };
        Some(Input::Message { from: to, message })
    }

    /// What users submit: the driver refuses jobs wider than the widest site, and numbers them itself.
    fn job(&mut self, bytes: &mut Bytes<'_>) -> JobSpec {
        let config = self.peer.config();
        self.submitted += 1;
        JobSpec {
            id: JobId(self.submitted),
            submit: self.now,
            processors: 1 + bytes.narrow() % config.grid.widest(),
            requested: Span::from_secs(1 + i64::from(bytes.byte())),
            labels: Labels::UNKNOWN,
            origin: config.site,
            payload: 0,
        }
    }

    fn tell(&mut self, input: Input) {
        self.peer.handle(self.now, input);
        self.obey();
    }

    /// Does what the peer wants done.
    fn obey(&mut self) {
        while let Some(output) = self.peer.poll_output() {
            self.carry_out(output);
        }
        self.check();
    }

    fn carry_out(&mut self, output: Output) {
        match output {
            Output::Start(job) => {
                let before = self.executing.insert(job.id, job.processors);
                assert!(before.is_none(), "job {} was started while it runs", job.id);
                assert!(job.processors > 0, "job {} takes no processors", job.id);
            }
            Output::Send { to, message } => {
                let config = self.peer.config();
                assert!(to != config.site, "a message to itself");
                assert!((1..=config.grid.len()).contains(&(to.0 as usize)), "a message to nobody");
                assert_eq!(decode(&encode(&message)).as_ref(), Ok(&message), "what it says can be read");
                self.said.push((to, message));
            }
            Output::Stop(job) => panic!("job {job} has no parts"),
            Output::Write(fact) => self.disk.apply(&fact),
            Output::Event(_) => {}
        }
    }

    fn check(&self) {
        let busy: u32 = self.executing.values().sum();
        assert_eq!(busy + self.peer.free(), self.peer.processors(), "processors are busy or idle");
        assert!(self.peer.running().eq(self.executing.keys().copied()), "what runs was started");
        let mut here: Vec<JobId> = self.peer.running().chain(self.peer.pooled()).collect();
        here.extend(
            self.peer.own().iter().chain(self.peer.held()).chain(self.peer.orphaned()).map(|job| job.id),
        );
        here.sort_unstable();
        let jobs = here.len();
        here.dedup();
        assert_eq!(here.len(), jobs, "no job is here twice");
        self.peer.check_invariants();
    }
}
