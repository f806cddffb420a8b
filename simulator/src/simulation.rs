//! The event loop: every peer, every link, one instant after the other.
//!
//! At one instant: all completions, all submissions, all messages that are due; then turns in ascending order of
//! rank, each with its messages drained to quiescence, until nobody has anything left to decide; then timers that
//! are due, and turns again. A turn of a peer that nothing happened to changes nothing, so it is not given.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};
use std::sync::Arc;

use protocol::{Discovery, Input, Message, Options, Output, Peer, PeerConfig};
use scheduler::{
    Event, EventKind, Grid, JobId, JobSpec, LocalScheduler, Pass, SiteId, Strategy, Time, TimedJob,
};

use crate::checks::{Checks, Observer, Violation, conservation};
use crate::invariants::IdealMode;
use crate::network::{Delay, Faults, Network};
use scheduler::JobIndex;

/// Everything a simulation is told besides its jobs.
#[derive(Clone, Debug)]
pub struct SimulationConfig {
    /// All sites.
    pub grid: Arc<Grid>,
    /// How jobs find a site.
    pub strategy: Strategy,
    /// The scheduler of local queues, for [`Strategy::Local`].
    pub local: LocalScheduler,
    /// When local schedulers decide.
    pub pass: Pass,
    /// Switches and limits of the protocol.
    pub options: Options,
    /// Delay of messages.
    pub delay: Delay,
    /// What else happens to messages.
    pub faults: Faults,
    /// The seed of everything random.
    pub seed: u64,
    /// What is asserted.
    pub checks: Checks,
}

impl SimulationConfig {
    /// Free communication, published defaults, cheap checks.
    pub fn new(grid: Arc<Grid>, strategy: Strategy) -> SimulationConfig {
        SimulationConfig {
            grid,
            strategy,
            local: LocalScheduler::default(),
            pass: Pass::default(),
            options: Options::default(),
            delay: Delay::ZERO,
            faults: Faults::NONE,
            seed: 1,
            checks: Checks::Cheap,
        }
    }
}

/// What a run did, in numbers that every run has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Jobs that ended.
    pub completed: usize,
    /// Messages sent, copies and lost ones included once.
    pub messages: u64,
    /// Messages that were lost.
    pub lost: u64,
    /// Instants at which something happened.
    pub instants: u64,
    /// When the last job ended.
    pub last_end: Option<Time>,
}

/// A completion or a message under way, ordered by time and then by when it was caused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Due<T> {
    at: Time,
    sequence: u64,
    what: T,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Ending {
    rank: usize,
    job: JobId,
    processors: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Letter {
    from: SiteId,
    to: usize,
    message: Message,
}

/// A grid of peers in virtual time.
pub struct Simulation<'a> {
    config: SimulationConfig,
    jobs: &'a [TimedJob],
    index: JobIndex,
    peers: Vec<Peer>,
    network: Network,
    endings: BinaryHeap<Reverse<Due<Ending>>>,
    letters: BinaryHeap<Reverse<Due<Letter>>>,
    /// Messages without delay, delivered before anything else happens.
    inbox: VecDeque<Letter>,
    timeouts: BTreeSet<(Time, usize)>,
    timeout_of: Vec<Option<Time>>,
    /// Ranks of peers that something happened to since their last turn.
    restless: BTreeSet<usize>,
    next_job: usize,
    sequence: u64,
    now: Time,
    observer: Observer,
    ideal_mode: Option<IdealMode>,
    unfinished: BTreeSet<JobId>,
    totals: Totals,
}

impl<'a> Simulation<'a> {
    /// A grid at rest and the jobs that it will get.
    ///
    /// # Panics
    /// If jobs are not in queue order, share an id, or are wider than the widest site: callers check their input.
    pub fn new(config: SimulationConfig, jobs: &'a [TimedJob]) -> Simulation<'a> {
        assert!(
            jobs.windows(2).all(|pair| pair[0].spec.key() < pair[1].spec.key()),
            "jobs come in queue order"
        );
        let grid = &config.grid;
        let peers = (0..grid.len())
            .map(|rank| {
                Peer::new(PeerConfig {
                    site: grid.at_rank(rank),
                    grid: grid.clone(),
                    strategy: config.strategy,
                    local: config.local,
                    pass: config.pass,
                    options: config.options,
                })
            })
            .collect();
        Simulation {
            index: JobIndex::new(jobs),
            peers,
            network: Network::new(config.delay.clone(), config.faults, config.seed),
            endings: BinaryHeap::new(),
            letters: BinaryHeap::new(),
            inbox: VecDeque::new(),
            timeouts: BTreeSet::new(),
            timeout_of: vec![None; grid.len()],
            // Everybody gets a first turn: a site that polls begins at once.
            restless: (0..grid.len()).collect(),
            next_job: 0,
            sequence: 0,
            now: Time::from_micros(i64::MIN),
            observer: Observer::new(jobs.len(), grid.len()),
            ideal_mode: match config.checks {
                Checks::Full => IdealMode::of(&config, jobs),
                Checks::Cheap => None,
            },
            unfinished: BTreeSet::new(),
            totals: Totals::default(),
            config,
            jobs,
        }
    }

    /// Makes every peer commit a mistake.
    #[cfg(feature = "canary")]
    pub fn with_canary(mut self, canary: protocol::canary::Canary) -> Simulation<'a> {
        for peer in &mut self.peers {
            peer.set_canary(canary);
        }
        self
    }

    /// Runs to the end. Every event goes to `sink`, in order.
    ///
    /// # Errors
    /// The first violation of a check.
    pub fn run(mut self, sink: &mut impl FnMut(&Event)) -> Result<Totals, Violation> {
        while self.advance(sink)? {}
        self.finish()
    }

    /// Goes through the next instant; false if there is none.
    ///
    /// # Errors
    /// The first violation of a check.
    pub fn advance(&mut self, sink: &mut impl FnMut(&Event)) -> Result<bool, Violation> {
        let Some(at) = self.next_instant() else { return Ok(false) };
        self.step(at, sink)?;
        Ok(true)
    }

    /// When something happens next; none when every job ended and nobody waits for an answer. Sites that poll
    /// would ask each other for ever.
    pub fn next_instant(&self) -> Option<Time> {
        if self.is_over() {
            return None;
        }
        [
            self.endings.peek().map(|Reverse(due)| due.at),
            self.letters.peek().map(|Reverse(due)| due.at),
            self.jobs.get(self.next_job).map(|job| job.spec.submit),
            self.timeouts.first().map(|&(at, _)| at),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    fn is_over(&self) -> bool {
        let polls = matches!(self.config.options.discovery, Discovery::Polling { .. });
        self.totals.completed == self.jobs.len()
            && (polls || self.letters.is_empty())
            && self.peers.iter().all(Peer::is_quiet)
    }

    /// All peers by rank.
    pub fn peers(&self) -> &[Peer] {
        &self.peers
    }

    /// The instant processed last.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Checks what must hold when nothing is left to happen.
    ///
    /// # Errors
    /// If a job never finished or an answer is still outstanding.
    pub fn finish(self) -> Result<Totals, Violation> {
        if self.totals.completed < self.jobs.len() {
            let job = self.unfinished.first().copied().unwrap_or_else(|| self.jobs[self.next_job].spec.id);
            let unfinished = self.jobs.len() - self.totals.completed;
            return Err(Violation::Unfinished { unfinished, job });
        }
        if let (Some(ideal_mode), Some(last_end)) = (&self.ideal_mode, self.totals.last_end) {
            ideal_mode.finished(last_end)?;
        }
        match self.peers.iter().find(|peer| !peer.is_quiet()) {
            Some(peer) => Err(Violation::NotQuiet { site: peer.site() }),
            None => Ok(self.totals),
        }
    }

    fn step(&mut self, at: Time, sink: &mut impl FnMut(&Event)) -> Result<(), Violation> {
        assert!(at >= self.now, "time does not run backwards");
        self.now = at;
        self.totals.instants += 1;
        let per_event = self.config.strategy == Strategy::Local && self.config.pass == Pass::PerEvent;
        loop {
            if per_event {
                self.submissions(at, true, sink)?;
                self.completions(at, true, sink)?;
            } else {
                self.completions(at, false, sink)?;
                self.submissions(at, false, sink)?;
            }
            self.letters_due(at, sink)?;
            self.turns(sink)?;
            while self.timers_due(at, sink)? {
                self.turns(sink)?;
            }
            if let Some(ideal_mode) = &mut self.ideal_mode {
                ideal_mode.decided(at)?;
            }
            // A job without run time ends at the instant it starts.
            if self.endings.peek().is_none_or(|Reverse(due)| due.at > at) {
                break;
            }
        }
        self.check()
    }

    fn completions(
        &mut self,
        at: Time,
        per_event: bool,
        sink: &mut impl FnMut(&Event),
    ) -> Result<(), Violation> {
        while let Some(Reverse(due)) = self.endings.peek()
            && due.at <= at
        {
            let Ending { rank, job, processors } = due.what;
            self.endings.pop();
            self.observer.end(self.peers[rank].site(), processors);
            self.totals.completed += 1;
            self.totals.last_end = Some(at);
            if self.config.checks == Checks::Full {
                self.unfinished.remove(&job);
            }
            if let Some(ideal_mode) = &mut self.ideal_mode {
                ideal_mode.completed(at, job, rank);
            }
            self.handle(rank, Input::Completed(job), sink)?;
            if per_event {
                self.turns(sink)?;
            }
        }
        Ok(())
    }

    fn submissions(
        &mut self,
        at: Time,
        per_event: bool,
        sink: &mut impl FnMut(&Event),
    ) -> Result<(), Violation> {
        while let Some(job) = self.jobs.get(self.next_job)
            && job.spec.submit <= at
        {
            self.next_job += 1;
            if self.config.checks == Checks::Full {
                self.unfinished.insert(job.spec.id);
            }
            if let Some(ideal_mode) = &mut self.ideal_mode {
                ideal_mode.submitted(at, job.spec);
            }
            let rank = self.peers[0].config().home_rank(&job.spec).expect("callers refuse jobs too wide");
            self.handle(rank, Input::Submitted(job.spec), sink)?;
            if per_event {
                self.turns(sink)?;
            }
        }
        Ok(())
    }

    fn letters_due(&mut self, at: Time, sink: &mut impl FnMut(&Event)) -> Result<(), Violation> {
        while let Some(Reverse(due)) = self.letters.peek()
            && due.at <= at
        {
            let Reverse(due) = self.letters.pop().expect("just looked");
            self.deliver(due.what, sink)?;
            self.drain_inbox(sink)?;
        }
        Ok(())
    }

    fn turns(&mut self, sink: &mut impl FnMut(&Event)) -> Result<(), Violation> {
        let mut from = 0;
        loop {
            let next = self.restless.range(from..).next().or_else(|| self.restless.first());
            let Some(&rank) = next else { return Ok(()) };
            self.restless.remove(&rank);
            self.act(rank, Input::Turn, sink)?;
            self.drain_inbox(sink)?;
            from = rank + 1;
        }
    }

    fn timers_due(&mut self, at: Time, sink: &mut impl FnMut(&Event)) -> Result<bool, Violation> {
        let due: Vec<usize> =
            self.timeouts.iter().take_while(|&&(time, _)| time <= at).map(|&(_, rank)| rank).collect();
        let mut ranks = due;
        ranks.sort_unstable();
        for &rank in &ranks {
            self.handle(rank, Input::Timeout, sink)?;
            self.drain_inbox(sink)?;
        }
        Ok(!ranks.is_empty())
    }

    fn drain_inbox(&mut self, sink: &mut impl FnMut(&Event)) -> Result<(), Violation> {
        while let Some(letter) = self.inbox.pop_front() {
            self.deliver(letter, sink)?;
        }
        Ok(())
    }

    fn deliver(&mut self, letter: Letter, sink: &mut impl FnMut(&Event)) -> Result<(), Violation> {
        let decides = match &letter.message {
            Message::Seen { .. } | Message::Withdraw { .. } | Message::Floor { .. } => false,
            Message::Reply { declined, .. } => !declined.is_empty(),
            _ => true,
        };
        if decides {
            self.restless.insert(letter.to);
        }
        self.act(letter.to, Input::Message { from: letter.from, message: letter.message }, sink)
    }

    /// Tells a peer a fact it will want a turn for.
    fn handle(&mut self, rank: usize, input: Input, sink: &mut impl FnMut(&Event)) -> Result<(), Violation> {
        self.restless.insert(rank);
        self.act(rank, input, sink)
    }

    /// Tells a peer something and carries out what it wants done.
    fn act(&mut self, rank: usize, input: Input, sink: &mut impl FnMut(&Event)) -> Result<(), Violation> {
        self.peers[rank].handle(self.now, input);
        let site = self.peers[rank].site();
        while let Some(output) = self.peers[rank].poll_output() {
            match output {
                Output::Event(kind) => sink(&Event { at: self.now, site, kind }),
                Output::Start(job) => self.execute(rank, &job)?,
                Output::Send { to, message } => self.send(site, to, message, sink),
            }
        }
        let timeout = self.peers[rank].poll_timeout();
        let before = std::mem::replace(&mut self.timeout_of[rank], timeout);
        if before != timeout {
            if let Some(before) = before {
                self.timeouts.remove(&(before, rank));
            }
            if let Some(timeout) = timeout {
                self.timeouts.insert((timeout, rank));
            }
        }
        if self.config.checks == Checks::Full {
            self.peers[rank].check_invariants();
        }
        Ok(())
    }

    fn execute(&mut self, rank: usize, job: &JobSpec) -> Result<(), Violation> {
        let place = self.index.get(job.id).expect("only jobs of the workload are started");
        let (site, limit) = (self.peers[rank].site(), self.peers[rank].processors());
        self.observer.start(self.now, place, job, site, limit)?;
        if let Some(ideal_mode) = &mut self.ideal_mode {
            ideal_mode.started(self.now, *job, rank);
        }
        self.sequence += 1;
        self.endings.push(Reverse(Due {
            at: self.now + self.jobs[place].run_time,
            sequence: self.sequence,
            what: Ending { rank, job: job.id, processors: job.processors },
        }));
        Ok(())
    }

    fn send(&mut self, from: SiteId, to: SiteId, message: Message, sink: &mut impl FnMut(&Event)) {
        self.totals.messages += 1;
        let copies = self.network.send(from, to);
        let rank = self.config.grid.rank(to);
        let Some(first) = copies.first else {
            self.totals.lost += 1;
            let kind = EventKind::Lost { to, message: message.kind() };
            return sink(&Event { at: self.now, site: from, kind });
        };
        if let Some(second) = copies.second {
            self.post(second, Letter { from, to: rank, message: message.clone() });
        }
        self.post(first, Letter { from, to: rank, message });
    }

    fn post(&mut self, delay: scheduler::Span, letter: Letter) {
        if delay == scheduler::Span::ZERO {
            self.inbox.push_back(letter);
        } else {
            self.sequence += 1;
            self.letters.push(Reverse(Due { at: self.now + delay, sequence: self.sequence, what: letter }));
        }
    }

    fn check(&self) -> Result<(), Violation> {
        if self.config.checks == Checks::Full && self.config.strategy != Strategy::Local {
            conservation(self.now, self.peers.iter(), self.unfinished.iter().copied())?;
        }
        Ok(())
    }
}
