//! The classic baselines: any site may give waiting jobs to any other that is wide enough.
//!
//! Each site starts what fits in queue order (LIST), or what EASY backfilling lets start (`start.rs`). A site that *pulls* asks for work when processors are idle and
//! none of its own jobs fits them; one that *pushes* gives jobs away that cannot start at once. Whom it turns to is
//! in [`choose`], asking and serving in `pull.rs`, giving away in `push.rs`. After enough refusals in a row a site
//! rests and has others *watch* for it (`watch.rs`), or sleeps and tries again if it polls. What sites know of each
//! other is a [`LoadReport`] with every answer and, for the rules that need it, by gossip (`gossip.rs`).
//!
//! Everything is decided in a turn; messages change what is known and wake. A request is served at once, after a
//! turn if facts came that had none. Jobs move by the transfers of [`crate::handover`].

mod choose;
mod gossip;
mod index;
pub(crate) mod message;
pub(crate) mod options;
mod pull;
mod push;
mod start;
mod watch;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use brokers::Lesson;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use scheduler::local::Estimates;
use scheduler::waiting::{WaitingList, Widths};
use scheduler::{Balance, Grid, Initiative, JobId, JobSpec, Room, Span, Time};

use crate::bounds::{COUNT_MAX, MICROS_MAX, are_counts};
use crate::config::{Discovery, PeerConfig};
use crate::core::Core;
use crate::engine::{Engine, Family, Giving, InParts, Lawful, Leaving, Observed, Recovery};
use crate::experience::Experience;
use crate::journal::Durable;
use crate::margin::Worth;
use crate::membership::view::View;
use crate::message::{BalanceMessage, LoadReport, Transfer};
use crate::rank::Rank;
use crate::timers::Alarm;

use index::Index;
use pull::{Asked, Served};
use push::Pushed;
use watch::{Watched, Watcher};

/// The stream of the seed that the site of rank 0 draws from; others follow. The network draws from an earlier one.
const FIRST_STREAM: u64 = 1 << 32;

/// What a peer adds to its queue and ledger to take part in a baseline.
#[derive(Clone, Debug)]
pub(crate) struct Balancer {
    rules: Balance,
    /// Requests, watches and what it says of itself are numbered from here.
    first: u64,
    grid: Arc<Grid>,
    /// The rank of this site.
    me: Rank,
    rng: ChaCha8Rng,
    /// Jobs that wait here, in queue order, with run times as they are believed.
    own: WaitingList,
    /// None if users are believed.
    estimates: Option<Box<Estimates>>,
    /// What was learned of run times and is written down.
    experience: Experience,
    search: Search,
    /// Sites that were turned to in this search.
    tried: BTreeSet<Rank>,
    /// Sleep after the next search without success, if this site polls.
    sleep: Option<Span>,
    /// Waiting work of this site, in processor-microseconds by estimates.
    work: u128,
    /// Processors that are left beside the job with a reservation, as of the last turn; no limit if there is none.
    extra: u32,
    /// What this site said of itself last.
    said: Option<LoadReport>,
    /// What others said of themselves last.
    known: BTreeMap<Rank, LastHeard>,
    /// Sites of which something was heard since it was passed on.
    news: BTreeSet<Rank>,
    /// What this site passed on of itself last.
    gossiped: u64,
    last_seq: BTreeMap<Rank, u64>,
    asked: Option<Asked>,
    /// What is left of the nodes of this site, as of the last turn; none where its processors have a job each.
    nodes: Option<Room>,
    /// What is left of the nodes of others, as they last said when they asked or had this site watch.
    rooms: BTreeMap<Rank, Room>,
    served: BTreeMap<Rank, Served>,
    pushed: Option<Pushed>,
    /// What this site had others watch for.
    watched: BTreeMap<Rank, Watched>,
    /// What follows from `known` and `watched`.
    index: Index,
    /// What others had this site watch for.
    watchers: BTreeMap<Rank, Watcher>,
    /// Counts what others had this site watch for.
    watch_count: u64,
}

/// How far a site is in looking for work, or for room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Search {
    /// It needs none.
    Content,
    /// It may be refused so many times more.
    Looking { left: usize },
    /// It waits until it is told, or until it has slept.
    Resting,
}

/// What another site said of itself.
#[derive(Clone, Copy, Debug)]
struct LastHeard {
    load_report: LoadReport,
    /// When it said so, as far as this site can tell.
    at: Time,
}

impl Balancer {
    /// A job joins the queue, as its user described it.
    fn enter(&mut self, now: Time, job: JobSpec) {
        let believed = self.estimates.as_mut().map_or(job, |estimates| estimates.enter(now, job));
        self.insert(believed);
    }

    /// A job that waits no more, as its user described it.
    fn described(&mut self, job: JobSpec) -> JobSpec {
        self.estimates.as_mut().and_then(|estimates| estimates.leave(job.id)).unwrap_or(job)
    }

    /// Puts a waiting job into the queue, with its run time as it is believed.
    fn insert(&mut self, job: JobSpec) {
        self.work += area(&job);
        self.own.insert(job);
    }

    /// Takes a waiting job out of the queue, with its run time as it is believed.
    fn remove(&mut self, job: &JobSpec) -> JobSpec {
        let believed = self.own.remove(job.processors, job.key()).expect("it waits here");
        self.work -= area(&believed);
        believed
    }

    fn pulls(&self) -> bool {
        self.rules.initiative == Initiative::Pull
    }
}

fn area(job: &JobSpec) -> u128 {
    u128::from(job.processors) * u128::try_from(job.requested.as_micros()).unwrap_or(0)
}

/// What a site under a baseline waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum BalanceTimer {
    /// A request to the site of this rank is unanswered.
    Request(Rank),
    /// The sleep before the search restarts.
    Poll,
    /// What the site of this rank was asked to watch for has not come.
    Watch(Rank),
    /// Pass on what changed.
    Gossip,
}

impl Alarm for BalanceTimer {
    fn repeats(&self) -> bool {
        !matches!(self, BalanceTimer::Poll)
    }
}

impl Family for Balancer {
    type Message = BalanceMessage;
    type Timer = BalanceTimer;

    fn of(config: &PeerConfig, first: u64) -> Balancer {
        let rules = *config.strategy.balance().expect("a baseline");
        assert!(config.options.balance.tries >= 1, "a site turns to somebody before it rests");
        if let Discovery::Polling { period, .. } = config.options.discovery {
            assert!(period > Span::ZERO, "a site that polls sleeps between searches");
        }
        assert!(config.options.balance.gossip > Span::ZERO, "gossip takes time");
        let mut rng = ChaCha8Rng::seed_from_u64(config.seed);
        rng.set_stream(FIRST_STREAM + config.grid.rank(config.site) as u64);
        let mut balancer = Balancer {
            rules,
            first,
            grid: config.grid.clone(),
            me: Rank::of(&config.grid, config.site),
            rng,
            own: WaitingList::new(),
            estimates: config.forecast.map(|by| Box::new(Estimates::by(by.estimator()))),
            experience: Experience::default(),
            search: Search::Content,
            tried: BTreeSet::new(),
            sleep: match config.options.discovery {
                Discovery::Standing => None,
                Discovery::Polling { period, .. } => Some(period),
            },
            work: 0,
            extra: u32::MAX,
            said: None,
            known: BTreeMap::new(),
            news: BTreeSet::new(),
            gossiped: 0,
            last_seq: BTreeMap::new(),
            asked: None,
            nodes: None,
            rooms: BTreeMap::new(),
            served: BTreeMap::new(),
            pushed: None,
            watched: BTreeMap::new(),
            index: Index::of(View::of(config).all()),
            watchers: BTreeMap::new(),
            watch_count: 0,
        };
        balancer.index = balancer.index_anew();
        balancer
    }

    fn enqueue(engine: &mut Engine<Balancer>, now: Time, job: JobSpec) {
        let balancer = &mut engine.family;
        balancer.enter(now, job);
        if !balancer.pulls() && balancer.search == Search::Resting {
            // A site that rested looks for room again.
            balancer.search = Search::Content;
        }
    }

    /// Starts what fits, tells who watches, and looks for work or for room.
    fn turn(engine: &mut Engine<Balancer>, now: Time) {
        engine.correct(now);
        engine.start_own(now);
        engine.tell_watchers(now);
        engine.counts_nodes();
        if engine.family.pulls() {
            engine.look_for_work(now);
        } else {
            engine.look_for_room(now);
        }
        engine.arm_gossip(now);
    }

    fn begun(engine: &mut Engine<Balancer>, now: Time, job: &JobSpec) {
        engine.take_and_start(now, *job);
    }

    fn jobs(&self) -> impl Iterator<Item = &JobSpec> {
        self.own.iter()
    }

    fn waiting(&self) -> usize {
        self.own.len()
    }

    fn take(engine: &mut Engine<Balancer>, job: &JobSpec) -> Option<JobSpec> {
        let believed = engine.family.remove(job);
        Some(engine.family.described(believed))
    }

    fn completed(
        engine: &mut Engine<Balancer>,
        now: Time,
        job: JobId,
        _estimated_end: Time,
        _processors: u32,
    ) {
        let Engine { core, family, .. } = engine;
        if let Some(estimates) = &mut family.estimates {
            let (job, run_time) = estimates.complete(now, job);
            family.experience.note(core, &Lesson { job, at: now, run_time });
        }
    }

    fn heard(engine: &mut Engine<Balancer>, now: Time, rank: Rank, message: BalanceMessage) {
        let from = engine.core.site_at(rank);
        match message {
            BalanceMessage::Request { seq, free } => engine.on_ask(now, rank, seq, free),
            BalanceMessage::Refuse { seq, load_report } => engine.on_refuse(now, rank, seq, load_report),
            BalanceMessage::Give { transfers, answers, load_report, floor } => {
                engine.core.on_floor(from, floor);
                engine.on_give(now, rank, &transfers, answers, load_report);
            }
            BalanceMessage::Watch { seq, width } => engine.on_watch(now, rank, seq, width),
            BalanceMessage::News { seq, load_report } => engine.on_news(now, rank, seq, load_report),
            BalanceMessage::Seen { .. } => engine.tell_watchers(now),
            BalanceMessage::Gossip { load_reports } => engine.on_gossip(now, rank, &load_reports),
        }
    }

    fn fired(engine: &mut Engine<Balancer>, now: Time, timer: BalanceTimer) {
        match timer {
            BalanceTimer::Request(victim) => {
                engine.timers.again(timer, now);
                engine.repeat_ask(victim);
            }
            BalanceTimer::Watch(rank) => {
                engine.timers.again(timer, now);
                engine.repeat_watch(rank);
            }
            BalanceTimer::Poll => {
                engine.timers.cancel(timer);
                engine.wakes();
            }
            BalanceTimer::Gossip => {
                engine.timers.cancel(timer);
                engine.pass_on(now);
            }
        }
    }

    fn belongs(core: &Core, home: Option<Rank>, job: &JobSpec) -> Option<Rank> {
        core.here_or(home, job)
    }

    fn leaves(engine: &mut Engine<Balancer>, _now: Time, rank: Rank, _why: Leaving) {
        engine.gives_up(rank);
    }

    fn is_quiet(engine: &Engine<Balancer>) -> bool {
        // A site that polls always has a question open.
        let balancer = &engine.family;
        balancer.sleep.is_some() || (balancer.asked.is_none() && balancer.pushed.is_none())
    }
}

impl Lawful for Balancer {
    fn is_lawful(core: &Core, rank: Rank, message: &BalanceMessage) -> bool {
        match message {
            BalanceMessage::Request { seq, free } => {
                are_counts(&[*seq]) && free.is_within(&core.capacity_of(rank))
            }
            BalanceMessage::Refuse { seq, load_report } | BalanceMessage::News { seq, load_report } => {
                are_counts(&[*seq]) && is_load_report(load_report)
            }
            BalanceMessage::Give { transfers, answers, load_report, floor } => {
                are_counts(&[answers.unwrap_or(0), *floor])
                    && is_load_report(load_report)
                    && core.may_move(rank, transfers)
            }
            BalanceMessage::Watch { seq, width } => {
                let is_node = matches!(width, Room::Nodes(_));
                are_counts(&[*seq]) && (!is_node || width.is_within(&core.capacity_of(rank)))
            }
            BalanceMessage::Seen { seq } => are_counts(&[*seq]),
            BalanceMessage::Gossip { load_reports } => load_reports.iter().all(is_load_report),
        }
    }
}

impl Giving for Balancer {
    /// What nobody takes is no reason to look for room again.
    fn returned(engine: &mut Engine<Balancer>, now: Time, _rank: Rank, transfer: &Transfer) {
        engine.family.enter(now, transfer.job);
        engine.core.fresh = true;
    }

    fn repeat(
        engine: &mut Engine<Balancer>,
        now: Time,
        to: Rank,
        transfer: &Transfer,
    ) -> Option<BalanceMessage> {
        let load_report = engine.load_report_for(now, to);
        let floor = engine.core.ledger.floor_to(engine.core.site_at(to));
        Some(BalanceMessage::Give { transfers: vec![*transfer], answers: None, load_report, floor })
    }

    fn replied(
        engine: &mut Engine<Balancer>,
        now: Time,
        rank: Rank,
        accepted: &[u64],
        declined: &[u64],
        _was_full: bool,
    ) {
        engine.has_replied(now, rank, accepted, declined);
    }

    fn voided(engine: &mut Engine<Balancer>, rank: Rank, transfer: &Transfer) {
        engine.family.forget_pushed(rank, transfer.number);
    }
}

impl Recovery for Balancer {
    fn remember(engine: &mut Engine<Balancer>, durable: &Durable) {
        let Engine { core, family, .. } = engine;
        let lessons = family.experience.recall(core, &durable.memory);
        if let Some(estimates) = &mut family.estimates {
            lessons.iter().for_each(|lesson| estimates.learn(lesson.at, &lesson.job, lesson.run_time));
        }
    }

    fn can_remember(engine: &Engine<Balancer>, durable: &Durable) -> Result<(), String> {
        Experience::can_be(&engine.core, &durable.memory)
    }

    fn agrees_with(engine: &Engine<Balancer>, durable: &Durable) -> Result<(), String> {
        engine.family.experience.agrees_with(&engine.core.config.grid, &durable.memory)
    }
}

impl InParts for Balancer {}

impl Observed for Balancer {
    fn is_open(engine: &Engine<Balancer>, timer: BalanceTimer) -> bool {
        let balancer = &engine.family;
        match timer {
            BalanceTimer::Request(victim) => {
                balancer.asked.as_ref().is_some_and(|asked| asked.victim == victim)
            }
            BalanceTimer::Poll => balancer.sleep.is_some(),
            BalanceTimer::Watch(rank) => {
                balancer.watched.get(&rank).is_some_and(|watched| watched.what.is_some())
            }
            BalanceTimer::Gossip => {
                let said = balancer.said.is_some_and(|said| said.version > balancer.gossiped);
                said || !balancer.news.is_empty()
            }
        }
    }

    fn check(engine: &Engine<Balancer>) {
        let balancer = &engine.family;
        assert_eq!(balancer.index, balancer.index_anew(), "the index follows from what is known");
    }

    fn own(&self) -> Option<&WaitingList> {
        Some(&self.own)
    }
}

impl Engine<Balancer> {
    /// Tells what was predicted of jobs that came, and corrects what is believed of those that run past it. Nothing but a decision
    /// depends on it.
    fn correct(&mut self, now: Time) {
        let Engine { core, family, .. } = self;
        if let Some(estimates) = &mut family.estimates {
            estimates.correct(now, |job, end| {
                core.expects_end(job, end);
            });
            core.predicted(estimates.news());
        }
    }

    /// What this site says of itself.
    fn load_report(&mut self) -> LoadReport {
        let site = self.core.site();
        let idle = self.room_for_others();
        let narrowest = self.family.own.narrowest(Widths::ALL).unwrap_or(0);
        let balancer = &mut self.family;
        let work = u64::try_from(balancer.work.div_ceil(1_000_000)).unwrap_or(u64::MAX);
        let load_report = match balancer.said {
            Some(said) if (said.work, said.narrowest, said.idle) == (work, narrowest, idle) => said,
            said => {
                let version = said.map_or(balancer.first, |said| said.version) + 1;
                LoadReport { site, version, age: Span::ZERO, work, narrowest, idle }
            }
        };
        balancer.said = Some(load_report);
        load_report
    }

    /// As [`Engine::load report`], for one site: what a limit or the margin forbids to give to it is as if it did not wait.
    fn load_report_for(&mut self, now: Time, other: Rank) -> LoadReport {
        let load_report = self.load_report();
        if !self.family.pulls() {
            return load_report;
        }
        LoadReport { narrowest: self.narrowest_for(now, other).unwrap_or(0), ..load_report }
    }

    /// Which waiting jobs are worth giving to another site.
    fn worth(&self, now: Time, other: Rank) -> Worth {
        self.core.worth(now, other, &self.family.own, std::iter::empty(), Widths::ALL)
    }

    /// The narrowest waiting job that may be given to a site; it may be too wide for its machine.
    fn narrowest_for(&self, now: Time, other: Rank) -> Option<u32> {
        if self.core.is_full(other) {
            return None;
        }
        let worth = self.worth(now, other);
        if let Some(room) = self.family.rooms.get(&other) {
            let mut fit = self.family.own.iter().filter(|job| room.fits(job) && worth.holds(job));
            return fit.next().map(|job| job.processors);
        }
        match worth {
            Worth::Any => self.family.own.narrowest(Widths::ALL),
            // By width, the narrowest first.
            worth => self.family.own.iter().find(|job| worth.holds(job)).map(|job| job.processors),
        }
    }

    /// Notes what is left of the nodes here: what others are to watch for.
    fn counts_nodes(&mut self) {
        let nodes = self.core.nodes.as_ref().map(|nodes| nodes.room());
        if nodes != self.family.nodes {
            self.family.nodes = nodes;
            self.family.index = self.family.index_anew();
        }
    }

    /// Remembers what a site told this one of itself.
    fn learn(&mut self, now: Time, from: Rank, load_report: LoadReport) {
        self.overhear(now, from, load_report);
        let known = self.family.known.get_mut(&from);
        if let Some(known) = known.filter(|known| known.load_report.version == load_report.version) {
            // It may be meant for this site alone, and is true again whatever this site counted on its own since.
            known.load_report = load_report;
            self.family.reindex(from);
        }
    }

    /// Remembers what a site said of itself, unless something newer is known.
    fn overhear(&mut self, now: Time, from: Rank, load_report: LoadReport) {
        if load_report.site.0 == 0
            || load_report.site.index() >= self.core.config.grid.len()
            || load_report.site == self.core.site()
        {
            return;
        }
        let rank = self.core.rank_of(load_report.site);
        if !self.core.view.knows(rank) {
            return;
        }
        let under_way = self.core.round_trips.one_way(from).unwrap_or(Span::ZERO);
        let at = now - load_report.age - under_way;
        let balancer = &mut self.family;
        let newer =
            balancer.known.get(&rank).is_none_or(|known| known.load_report.version < load_report.version);
        if newer {
            balancer.known.insert(rank, LastHeard { load_report, at });
            balancer.reindex(rank);
            balancer.news.insert(rank);
        } else if let Some(known) = balancer.known.get_mut(&rank)
            && known.load_report.version == load_report.version
        {
            // Said again: it was still so then.
            known.at = known.at.max(at);
        }
    }

    /// A search ended without success: sleep, or have others watch.
    fn rest(&mut self, now: Time) {
        let polling = self.core.config.options.discovery;
        let balancer = &mut self.family;
        balancer.search = Search::Resting;
        if let (Some(sleep), Discovery::Polling { period_max, .. }) = (balancer.sleep, polling) {
            balancer.sleep = Some(sleep.saturating_mul(2).min(period_max));
            self.timers.set(BalanceTimer::Poll, now, sleep);
        }
    }

    /// Something moved: the next search begins afresh.
    fn progress(&mut self) {
        let polling = self.core.config.options.discovery;
        let balancer = &mut self.family;
        balancer.search = Search::Content;
        if let Discovery::Polling { period, .. } = polling {
            balancer.sleep = Some(period);
        }
    }

    /// The sleep is over.
    fn wakes(&mut self) {
        let balancer = &mut self.family;
        if balancer.search == Search::Resting {
            balancer.search = Search::Content;
        }
    }

    /// Begins a search if none is under way, and counts what it may still be refused. None if it rests.
    fn searching(&mut self) -> Option<usize> {
        let tries = self.core.config.options.balance.tries.min(self.core.view.len() - 1);
        let balancer = &mut self.family;
        match balancer.search {
            Search::Content => {
                balancer.search = Search::Looking { left: tries };
                balancer.tried.clear();
                Some(tries)
            }
            Search::Looking { left } => Some(left),
            Search::Resting => None,
        }
    }

    fn refused(&mut self) {
        if let Search::Looking { left } = &mut self.family.search {
            *left = left.saturating_sub(1);
        }
    }
}

fn is_load_report(load_report: &LoadReport) -> bool {
    load_report.version <= COUNT_MAX && (0..=MICROS_MAX).contains(&load_report.age.as_micros())
}
