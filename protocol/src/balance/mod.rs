//! The classic baselines: any site may give waiting jobs to any other that is wide enough.
//!
//! Each site starts what fits in queue order (LIST). A site that *pulls* asks for work when processors are idle and
//! none of its own jobs fits them; one that *pushes* gives jobs away that cannot start at once. Whom it turns to is
//! in [`choose`], asking and serving in `pull.rs`, giving away in `push.rs`. After enough refusals in a row a site
//! rests and has others *watch* for it (`watch.rs`), or sleeps and tries again if it polls. What sites know of each
//! other is a [`Digest`] with every answer and, for the rules that need it, by gossip (`gossip.rs`).
//!
//! Everything is decided in a turn; messages change what is known and wake. A request is served at once, after a
//! turn if facts came that had none. Jobs move by the transfers of [`crate::handover`].

mod choose;
mod gossip;
mod index;
mod pull;
mod push;
mod watch;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use scheduler::waiting::Widths;
use scheduler::{Balance, EventKind, Grid, Initiative, JobSpec, Span, Strategy, Time};

use crate::config::{Discovery, PeerConfig};
use crate::margin::Worth;
use crate::message::{Digest, Message};
use crate::peer::Peer;
use crate::timers::Timer;

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
    me: usize,
    rng: ChaCha8Rng,
    search: Search,
    /// Sites that were turned to in this search.
    tried: BTreeSet<usize>,
    /// Sleep after the next search without success, if this site polls.
    sleep: Option<Span>,
    /// Waiting work of this site, in processor-microseconds by estimates.
    work: u128,
    /// What this site said of itself last.
    said: Option<Digest>,
    /// What others said of themselves last.
    known: BTreeMap<usize, Known>,
    /// Sites of which something was heard since it was passed on.
    news: BTreeSet<usize>,
    /// What this site passed on of itself last.
    gossiped: u64,
    last_seq: BTreeMap<usize, u64>,
    asked: Option<Asked>,
    served: BTreeMap<usize, Served>,
    pushed: Option<Pushed>,
    /// What this site had others watch for.
    watched: BTreeMap<usize, Watched>,
    /// What follows from `known` and `watched`.
    index: Index,
    /// What others had this site watch for.
    watchers: BTreeMap<usize, Watcher>,
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
struct Known {
    digest: Digest,
    /// When it said so, as far as this site can tell.
    at: Time,
}

impl Balancer {
    pub(crate) fn of(config: &PeerConfig, first: u64) -> Option<Balancer> {
        let Strategy::Balance(rules) = config.strategy else { return None };
        assert!(config.options.tries >= 1, "a site turns to somebody before it rests");
        assert!(config.options.gossip > Span::ZERO, "gossip takes time");
        let mut rng = ChaCha8Rng::seed_from_u64(config.seed);
        rng.set_stream(FIRST_STREAM + config.grid.rank(config.site) as u64);
        let mut balancer = Balancer {
            rules,
            first,
            grid: config.grid.clone(),
            me: config.grid.rank(config.site),
            rng,
            search: Search::Content,
            tried: BTreeSet::new(),
            sleep: match config.options.discovery {
                Discovery::Standing => None,
                Discovery::Polling { period, .. } => Some(period),
            },
            work: 0,
            said: None,
            known: BTreeMap::new(),
            news: BTreeSet::new(),
            gossiped: 0,
            last_seq: BTreeMap::new(),
            asked: None,
            served: BTreeMap::new(),
            pushed: None,
            watched: BTreeMap::new(),
            index: Index::new(config.grid.len()),
            watchers: BTreeMap::new(),
            watch_count: 0,
        };
        balancer.index = balancer.index_anew();
        Some(balancer)
    }

    fn pulls(&self) -> bool {
        self.rules.initiative == Initiative::Pull
    }
}

fn area(job: &JobSpec) -> u128 {
    u128::from(job.processors) * u128::try_from(job.requested.as_micros()).unwrap_or(0)
}

impl Peer {
    /// The part of this peer that takes part in a baseline.
    ///
    /// # Panics
    /// If the strategy is none.
    fn balancer(&mut self) -> &mut Balancer {
        self.balance.as_mut().expect("only called under a baseline")
    }

    /// Puts a waiting job into the queue of this site.
    pub(crate) fn balance_enqueue(&mut self, job: JobSpec) {
        self.balancer().work += area(&job);
        self.own.insert(job);
    }

    /// A job came from a user or by a route: a site that rested looks for room again.
    pub(crate) fn balance_arrived(&mut self) {
        let balancer = self.balancer();
        if !balancer.pulls() && balancer.search == Search::Resting {
            balancer.search = Search::Content;
        }
    }

    pub(crate) fn balance_take(&mut self, job: &JobSpec) {
        self.own.remove(job.processors, job.key()).expect("it waits here");
        self.balancer().work -= area(job);
    }

    /// Starts what fits, tells who watches, and looks for work or for room.
    pub(crate) fn balance_turn(&mut self, now: Time) {
        while self.free > 0
            && let Some(&job) = self.own.first(Widths::up_to(self.free))
        {
            self.balance_take(&job);
            self.start(now, job);
        }
        self.tell_watchers(now);
        if self.balancer().pulls() {
            self.look_for_work(now);
        } else {
            self.look_for_room(now);
        }
        self.arm_gossip(now);
    }

    /// Acts on a message of a baseline.
    pub(crate) fn balance_message(&mut self, now: Time, from: usize, message: Message) {
        match message {
            Message::Request { seq, offer, .. } => self.on_ask(now, from, seq, offer.free),
            Message::Refuse { seq, digest } => self.on_refuse(now, from, seq, digest),
            Message::Give { transfers, answers, digest, floor } => {
                self.on_floor(self.site_at(from), floor);
                self.on_give(now, from, &transfers, answers, digest);
            }
            Message::Watch { seq, width } => self.on_watch(now, from, seq, width),
            Message::News { seq, digest } => self.on_news(now, from, seq, digest),
            Message::Seen { .. } => self.tell_watchers(now),
            Message::Gossip { digests } => self.on_gossip(now, from, &digests),
            message => self.ignore(self.site_at(from), &message),
        }
    }

    /// Whether this site waits for no answer. A site that polls always has a question open.
    pub(crate) fn balance_is_quiet(&self) -> bool {
        self.balance.as_ref().is_none_or(|balancer| {
            balancer.sleep.is_some() || (balancer.asked.is_none() && balancer.pushed.is_none())
        })
    }

    /// What this site says of itself.
    fn digest(&mut self) -> Digest {
        let site = self.site();
        let idle = self.free;
        let narrowest = self.own.narrowest(Widths::ALL).unwrap_or(0);
        let balancer = self.balancer();
        let work = u64::try_from(balancer.work.div_ceil(1_000_000)).unwrap_or(u64::MAX);
        let digest = match balancer.said {
            Some(said) if (said.work, said.narrowest, said.idle) == (work, narrowest, idle) => said,
            said => {
                let version = said.map_or(balancer.first, |said| said.version) + 1;
                Digest { site, version, age: Span::ZERO, work, narrowest, idle }
            }
        };
        balancer.said = Some(digest);
        digest
    }

    /// As [`Peer::digest`], for one site: what a limit or the margin forbids to give to it is as if it did not wait.
    fn digest_for(&mut self, now: Time, other: usize) -> Digest {
        let digest = self.digest();
        if !self.balancer().pulls() {
            return digest;
        }
        Digest { narrowest: self.narrowest_for(now, other).unwrap_or(0), ..digest }
    }

    /// The narrowest waiting job that may be given to a site; it may be too wide for its machine.
    fn narrowest_for(&self, now: Time, other: usize) -> Option<u32> {
        if self.ledger.out_count(self.site_at(other)) >= self.config.options.unanswered_max {
            return None;
        }
        match self.worth(now, other) {
            Worth::Any => self.own.narrowest(Widths::ALL),
            // By width, the narrowest first.
            worth => self.own.iter().find(|job| worth.holds(job)).map(|job| job.processors),
        }
    }

    /// Remembers what a site told this one of itself.
    fn learn(&mut self, now: Time, from: usize, digest: Digest) {
        self.overhear(now, from, digest);
        let known = self.balancer().known.get_mut(&from);
        if let Some(known) = known.filter(|known| known.digest.version == digest.version) {
            // It may be meant for this site alone, and is true again whatever this site counted on its own since.
            known.digest = digest;
            self.balancer().reindex(from);
        }
    }

    /// Remembers what a site said of itself, unless something newer is known.
    fn overhear(&mut self, now: Time, from: usize, digest: Digest) {
        if digest.site.0 == 0 || digest.site.index() >= self.config.grid.len() || digest.site == self.site() {
            return;
        }
        let rank = self.config.grid.rank(digest.site);
        let under_way = self.round_trips.one_way(from).unwrap_or(Span::ZERO);
        let at = now - digest.age - under_way;
        let balancer = self.balancer();
        let newer = balancer.known.get(&rank).is_none_or(|known| known.digest.version < digest.version);
        if newer {
            balancer.known.insert(rank, Known { digest, at });
            balancer.reindex(rank);
            balancer.news.insert(rank);
        } else if let Some(known) = balancer.known.get_mut(&rank)
            && known.digest.version == digest.version
        {
            // Said again: it was still so then.
            known.at = known.at.max(at);
        }
    }

    /// Panics if the index is not what follows from what is known.
    pub(crate) fn check_balance(&self) {
        if let Some(balancer) = &self.balance {
            assert_eq!(balancer.index, balancer.index_anew(), "the index follows from what is known");
        }
    }

    /// A search ended without success: sleep, or have others watch.
    fn rest(&mut self, now: Time) {
        let polling = self.config.options.discovery;
        let balancer = self.balancer();
        balancer.search = Search::Resting;
        if let (Some(sleep), Discovery::Polling { period_max, .. }) = (balancer.sleep, polling) {
            balancer.sleep = Some(sleep.saturating_mul(2).min(period_max));
            self.timers.set(Timer::Poll, now, sleep);
        }
    }

    /// Something moved: the next search begins afresh.
    fn progress(&mut self) {
        let polling = self.config.options.discovery;
        let balancer = self.balancer();
        balancer.search = Search::Content;
        if let Discovery::Polling { period, .. } = polling {
            balancer.sleep = Some(period);
        }
    }

    /// The sleep is over.
    pub(crate) fn balance_wakes(&mut self) {
        let balancer = self.balancer();
        if balancer.search == Search::Resting {
            balancer.search = Search::Content;
        }
    }

    /// Begins a search if none is under way, and counts what it may still be refused. None if it rests.
    fn searching(&mut self) -> Option<usize> {
        let tries = self.config.options.tries.min(self.config.grid.len() - 1);
        let balancer = self.balancer();
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
        if let Search::Looking { left } = &mut self.balancer().search {
            *left = left.saturating_sub(1);
        }
    }

    fn balance_ignored(&mut self, from: usize, message: &Message) {
        self.event(EventKind::Ignored { from: self.site_at(from), message: message.kind() });
    }
}
