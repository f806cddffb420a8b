//! A small driver: every message takes a second, jobs run for their requested time, a disk per site.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use protocol::{Durable, Input, Interrupted, Message, Options, Output, Peer, PeerConfig, PoolOptions, Terms};
use scheduler::{EventKind, Grid, JobId, JobSpec, Labels, SiteId, Span, StrategySpec, Time};

const DELAY: Span = Span::from_secs(1);

pub(crate) struct World {
    pub(crate) terms: Terms,
    /// By rank; none while the site is down.
    pub(crate) peers: Vec<Option<Peer>>,
    pub(crate) disks: Vec<Durable>,
    /// Arrival, order, from, to.
    pub(crate) under_way: BTreeMap<(Time, u64), (usize, usize, Message)>,
    pub(crate) endings: BTreeSet<(Time, JobId, usize)>,
    pub(crate) cut: BTreeSet<usize>,
    pub(crate) sent: u64,
    pub(crate) now: Time,
    pub(crate) events: Vec<(Time, usize, EventKind)>,
}

pub(crate) fn job(id: u64, processors: u32, seconds: i64) -> JobSpec {
    JobSpec {
        id: JobId(id),
        submit: Time::ZERO,
        processors,
        requested: Span::from_secs(seconds),
        labels: Labels::UNKNOWN,
        origin: SiteId(1),
        payload: 0,
    }
}

impl World {
    pub(crate) fn new(sizes: &[u32], strategy: &str) -> World {
        let strategy: StrategySpec = strategy.parse().expect("a strategy");
        let options = Options {
            heartbeat: Some(Span::from_secs(10)),
            suspect_after: Span::from_secs(35),
            lease: Some(Span::from_secs(100)),
            retry: Some(Span::from_secs(5)),
            pool: PoolOptions { refresh: strategy.strategy.nature().offers.then_some(Span::from_secs(30)) },
            journal: true,
            interrupted: Interrupted::Requeue,
            ..Options::default()
        };
        let grid = Arc::new(Grid::of_sizes(sizes).expect("a grid"));
        let terms = Terms { options, ..Terms::new(grid, strategy.strategy) };
        let mut world = World {
            terms,
            peers: Vec::new(),
            disks: vec![Durable::default(); sizes.len()],
            under_way: BTreeMap::new(),
            endings: BTreeSet::new(),
            cut: BTreeSet::new(),
            sent: 0,
            now: Time::ZERO,
            events: Vec::new(),
        };
        world.peers = (0..sizes.len()).map(|_| None).collect();
        for rank in 0..sizes.len() {
            world.restart(rank);
        }
        world
    }

    pub(crate) fn config(&self, rank: usize) -> PeerConfig {
        self.terms.at_rank(rank)
    }

    pub(crate) fn restart(&mut self, rank: usize) {
        let peer = Peer::restore(self.config(rank), &self.disks[rank], self.now);
        self.peers[rank] = Some(peer);
        self.carry_out(rank);
        self.tell(rank, Input::Turn);
    }

    pub(crate) fn crash(&mut self, rank: usize) {
        self.peers[rank] = None;
        self.endings.retain(|ending| ending.2 != rank);
    }

    /// The site comes back at once, with another journal for the one that is lost.
    pub(crate) fn come_back_empty(&mut self, rank: usize, lost: u32) {
        self.crash(rank);
        self.disks[rank] = Durable::default();
        self.peers[rank] = Some(Peer::restore_lost(self.config(rank), lost, self.now));
        self.carry_out(rank);
        self.tell(rank, Input::Turn);
    }

    pub(crate) fn tell(&mut self, rank: usize, input: Input) {
        if let Some(peer) = &mut self.peers[rank] {
            peer.handle(self.now, input);
            self.carry_out(rank);
        }
    }

    pub(crate) fn carry_out(&mut self, rank: usize) {
        let peer = self.peers[rank].as_mut().expect("it is up");
        while let Some(output) = peer.poll_output() {
            match output {
                Output::Write(fact) => self.disks[rank].apply(&fact),
                Output::Event(kind) => self.events.push((self.now, rank, kind)),
                Output::Start(job) => {
                    self.endings.insert((self.now + job.requested, job.id, rank));
                }
                Output::Stop(job) => panic!("job {job} has no parts"),
                Output::Send { to, message } => {
                    let to = self.terms.grid.rank(to);
                    if !self.cut.contains(&rank) && !self.cut.contains(&to) {
                        self.sent += 1;
                        self.under_way.insert((self.now + DELAY, self.sent), (rank, to, message));
                    }
                }
            }
        }
        peer.check_invariants();
        // The disk says what the peer would say of its own.
        let disk = &self.disks[rank];
        assert_eq!(disk.ledger, *peer.ledger());
        let running: Vec<JobId> = disk.running().map(|kept| kept.job.id).collect();
        assert_eq!(running, peer.running().collect::<Vec<_>>());
        assert_eq!(disk.jobs.len() - running.len(), peer.waiting());
    }

    pub(crate) fn run_until(&mut self, seconds: i64) {
        let end = Time::from_secs(seconds);
        loop {
            let timers = self.peers.iter().flatten().filter_map(Peer::poll_timeout).min();
            let next = [
                self.under_way.first_key_value().map(|(key, _)| key.0),
                self.endings.first().map(|ending| ending.0),
                timers,
            ];
            let Some(next) = next.into_iter().flatten().min().filter(|&next| next <= end) else { break };
            self.now = self.now.max(next);
            let mut turns = BTreeSet::new();
            while let Some(&(at, job, rank)) = self.endings.first().filter(|ending| ending.0 <= self.now) {
                self.endings.remove(&(at, job, rank));
                self.tell(rank, Input::Completed(job));
                turns.insert(rank);
            }
            while let Some(entry) = self.under_way.first_entry().filter(|entry| entry.key().0 <= self.now) {
                let (from, to, message) = entry.remove();
                let from = self.terms.grid.at_rank(from);
                self.tell(to, Input::Message { from, message });
                turns.insert(to);
            }
            for rank in 0..self.peers.len() {
                while self.peers[rank].as_ref().is_some_and(|peer| peer.wants_settle()) {
                    self.tell(rank, Input::Settle);
                    turns.insert(rank);
                }
                if self.peers[rank].as_ref().is_some_and(|peer| peer.poll_timeout() <= Some(self.now))
                    && self.peers[rank].as_ref().and_then(Peer::poll_timeout).is_some()
                {
                    self.tell(rank, Input::Timeout);
                    turns.insert(rank);
                }
            }
            for rank in turns {
                self.tell(rank, Input::Turn);
            }
        }
        self.now = end;
    }

    pub(crate) fn submit(&mut self, rank: usize, job: JobSpec) {
        self.tell(rank, Input::Submitted(job));
        self.tell(rank, Input::Turn);
    }

    pub(crate) fn starts(&self, job: u64) -> Vec<usize> {
        let is_start = |kind: &EventKind| matches!(kind, EventKind::Started { job: id, .. } if id.0 == job);
        self.events.iter().filter(|event| is_start(&event.2)).map(|event| event.1).collect()
    }

    pub(crate) fn completions(&self, job: u64) -> Vec<usize> {
        let is_end = |kind: &EventKind| matches!(kind, EventKind::Completed { job: id, .. } if id.0 == job);
        self.events.iter().filter(|event| is_end(&event.2)).map(|event| event.1).collect()
    }

    pub(crate) fn any(&self, test: impl Fn(&EventKind) -> bool) -> bool {
        self.events.iter().any(|event| test(&event.2))
    }
}
