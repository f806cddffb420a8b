//! The event loop: every peer, every link, one instant after the other.
//!
//! At one instant: all completions, all submissions, all messages that are due; then turns in ascending order of
//! rank, each with its messages drained to quiescence, until nobody has anything left to decide; then timers that
//! are due, and turns again. A turn of a peer that nothing happened to changes nothing, so it is not given. Peers that
//! put a decision off until nothing is under way settle between turns and timers, all together: no message of one is
//! delivered before the last has decided.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};
use std::sync::Arc;

use links::{Copies, Links, Model};
use protocol::{Discovery, Input, Options, Output, Peer};
use scheduler::execution::Due;
use scheduler::{
    Event, EventKind, Execution, Grid, JobId, JobSpec, LocalScheduler, Pass, SiteId, Span, Strategy, Submit,
    Time, TimedJob,
};

use crate::checks::{Checks, Observer, Violation};
use crate::host::{Carried as _, Common, Host, Peers, Standing};
use crate::invariants::IdealMode;
use crate::lateness::Lateness;
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
    /// Where jobs enter the grid.
    pub submit: Submit,
    /// Switches and limits of the protocol.
    pub options: Options,
    /// What links do to messages.
    pub network: Model,
    /// The seed of everything random.
    pub seed: u64,
    /// What is asserted.
    pub checks: Checks,
    /// How late ends of jobs and submissions are; `None`: never.
    pub late: Option<Lateness>,
}

impl SimulationConfig {
    /// Free communication, published defaults, cheap checks.
    pub fn new(grid: Arc<Grid>, strategy: Strategy) -> SimulationConfig {
        SimulationConfig {
            grid,
            strategy,
            local: LocalScheduler::default(),
            pass: Pass::default(),
            submit: Submit::default(),
            options: Options::default(),
            network: Model::ZERO,
            seed: 1,
            checks: Checks::Cheap,
            late: None,
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

#[derive(Clone, Copy, Debug)]
struct Ending {
    rank: usize,
    job: JobId,
    processors: u32,
}

/// A message under way.
#[derive(Clone, Debug)]
struct Parcel<M> {
    from: SiteId,
    to: usize,
    message: M,
}

/// A grid of peers in virtual time.
pub struct Simulation<'a, H: Host = Peers> {
    config: SimulationConfig,
    jobs: &'a [TimedJob],
    index: JobIndex,
    host: H,
    /// What a peer wants done after it was told something; kept to spare allocations.
    outputs: Vec<Output<H::Message>>,
    links: Links,
    endings: Execution<Ending>,
    under_way: BinaryHeap<Reverse<Due<Parcel<H::Message>>>>,
    /// Messages without delay, delivered before anything else happens.
    inbox: VecDeque<Parcel<H::Message>>,
    timeouts: BTreeSet<(Time, usize)>,
    timeout_of: Vec<Option<Time>>,
    /// Ranks of peers that something happened to since their last turn.
    restless: BTreeSet<usize>,
    /// Ranks of peers that want to settle at this instant.
    unsettled: BTreeSet<usize>,
    /// When the jobs arrive, and where they are among all, in that order; `None` if they do so as submitted.
    arrivals: Option<Vec<(Time, usize)>>,
    /// Jobs that have arrived.
    arrived: usize,
    sequence: u64,
    now: Time,
    observer: Observer,
    ideal_mode: Option<IdealMode>,
    unfinished: BTreeSet<JobId>,
    totals: Totals,
}

impl<'a> Simulation<'a> {
    /// A grid at rest, in this process, and the jobs that it will get.
    ///
    /// # Panics
    /// If jobs are not in queue order, share an id, or are wider than the widest site: callers check their input.
    pub fn new(config: SimulationConfig, jobs: &'a [TimedJob]) -> Simulation<'a> {
        let host = Peers::new(&Common {
            grid: &config.grid,
            strategy: config.strategy,
            local: config.local,
            pass: config.pass,
            options: config.options,
            seed: config.seed,
        });
        Simulation::over(host, config, jobs)
    }

    /// Makes every peer commit a mistake.
    #[cfg(feature = "canary")]
    pub fn with_canary(mut self, canary: protocol::canary::Canary) -> Simulation<'a> {
        for peer in &mut self.host.peers {
            peer.set_canary(canary);
        }
        self
    }

    /// All peers by rank.
    pub fn peers(&self) -> &[Peer] {
        &self.host.peers
    }
}

impl<'a, H: Host> Simulation<'a, H> {
    /// A grid at rest, wherever its peers live, and the jobs that it will get.
    ///
    /// # Panics
    /// As [`Simulation::new`].
    pub fn over(host: H, config: SimulationConfig, jobs: &'a [TimedJob]) -> Simulation<'a, H> {
        assert!(
            jobs.windows(2).all(|pair| pair[0].spec.key() < pair[1].spec.key()),
            "jobs come in queue order"
        );
        let grid = &config.grid;
        Simulation {
            index: JobIndex::new(jobs),
            host,
            outputs: Vec::new(),
            links: Links::new(config.network.clone(), config.seed),
            endings: Execution::default(),
            under_way: BinaryHeap::new(),
            inbox: VecDeque::new(),
            timeouts: BTreeSet::new(),
            timeout_of: vec![None; grid.len()],
            // Everybody gets a first turn: a site that polls begins at once.
            restless: (0..grid.len()).collect(),
            unsettled: BTreeSet::new(),
            arrivals: config.late.map(|late| late_arrivals(&config, late, jobs)),
            arrived: 0,
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
            self.endings.next_end(),
            self.under_way.peek().map(|Reverse(due)| due.at),
            self.next_arrival().map(|(at, _)| at),
            self.timeouts.first().map(|&(at, _)| at),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// The job that arrives next, and when.
    fn next_arrival(&self) -> Option<(Time, &'a TimedJob)> {
        let jobs = self.jobs;
        match &self.arrivals {
            None => jobs.get(self.arrived).map(|job| (job.spec.submit, job)),
            Some(arrivals) => arrivals.get(self.arrived).map(|&(at, place)| (at, &jobs[place])),
        }
    }

    /// Where the peers live.
    pub fn host(&self) -> &H {
        &self.host
    }

    /// What was done so far.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    fn is_over(&self) -> bool {
        // Baselines repeat what they have others watch for until there is news.
        let watches =
            matches!(self.config.strategy, Strategy::Balance(_)) && self.config.options.retry.is_some();
        let beats = self.config.options.heartbeat.is_some();
        let polls = beats || watches || matches!(self.config.options.discovery, Discovery::Polling { .. });
        self.totals.completed == self.jobs.len()
            && (polls || self.under_way.is_empty())
            && self.first_waiting().is_none()
    }

    /// The rank of a peer that still waits for an answer.
    fn first_waiting(&self) -> Option<usize> {
        (0..self.config.grid.len()).find(|&rank| !self.host.is_quiet(rank))
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
        self.check_end().map(|()| self.totals)
    }

    /// The same, of a run that is kept.
    ///
    /// # Errors
    /// As [`Simulation::finish`].
    pub fn check_end(&self) -> Result<(), Violation> {
        if self.totals.completed < self.jobs.len() {
            // What was started has ended, so the first unfinished job is the first that never started.
            let place = self.observer.first_unstarted().expect("a job is unfinished");
            let job = self.jobs[place].spec.id;
            let unfinished = self.jobs.len() - self.totals.completed;
            return Err(Violation::Unfinished { unfinished, job });
        }
        if let (Some(ideal_mode), Some(last_end)) = (&self.ideal_mode, self.totals.last_end) {
            ideal_mode.finished(last_end)?;
        }
        match self.first_waiting() {
            Some(rank) => Err(Violation::NotQuiet { site: self.config.grid.at_rank(rank) }),
            None => Ok(()),
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
            self.messages_due(at, sink)?;
            self.turns(sink)?;
            while self.settle(sink)? || self.timers_due(at, sink)? {
                self.turns(sink)?;
            }
            if let Some(ideal_mode) = &mut self.ideal_mode {
                ideal_mode.decided(at)?;
            }
            // A job without run time ends at the instant it starts.
            if self.endings.next_end().is_none_or(|end| end > at) {
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
        while let Some(Due { what: Ending { rank, job, processors }, .. }) = self.endings.pop_due(at) {
            self.observer.end(self.config.grid.at_rank(rank), processors);
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
        while let Some((due, job)) = self.next_arrival()
            && due <= at
        {
            self.arrived += 1;
            if self.config.checks == Checks::Full {
                self.unfinished.insert(job.spec.id);
            }
            if let Some(ideal_mode) = &mut self.ideal_mode {
                ideal_mode.submitted(at, job.spec);
            }
            let rank = entry(&self.config, &job.spec);
            self.handle(rank, Input::Submitted(job.spec), sink)?;
            // A job on its way home is a fact of this instant, too: it arrives before anybody decides.
            self.drain_inbox(sink)?;
            if per_event {
                self.turns(sink)?;
            }
        }
        Ok(())
    }

    fn messages_due(&mut self, at: Time, sink: &mut impl FnMut(&Event)) -> Result<(), Violation> {
        while let Some(Reverse(due)) = self.under_way.peek()
            && due.at <= at
        {
            let Reverse(due) = self.under_way.pop().expect("just looked");
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

    /// Lets all peers that wait for quiescence decide, before anything that they send is delivered.
    fn settle(&mut self, sink: &mut impl FnMut(&Event)) -> Result<bool, Violation> {
        let ranks = std::mem::take(&mut self.unsettled);
        for &rank in &ranks {
            self.act(rank, Input::Settle, sink)?;
        }
        self.drain_inbox(sink)?;
        Ok(!ranks.is_empty())
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
        while let Some(parcel) = self.inbox.pop_front() {
            self.deliver(parcel, sink)?;
        }
        Ok(())
    }

    fn deliver(
        &mut self,
        parcel: Parcel<H::Message>,
        sink: &mut impl FnMut(&Event),
    ) -> Result<(), Violation> {
        let Parcel { from, to, message } = parcel;
        if message.wakes() {
            self.restless.insert(to);
        }
        self.act(to, Input::Message { from, message }, sink)
    }

    /// Tells a peer a fact it will want a turn for.
    fn handle(
        &mut self,
        rank: usize,
        input: Input<H::Message>,
        sink: &mut impl FnMut(&Event),
    ) -> Result<(), Violation> {
        self.restless.insert(rank);
        self.act(rank, input, sink)
    }

    /// Tells a peer something and carries out what it wants done.
    fn act(
        &mut self,
        rank: usize,
        input: Input<H::Message>,
        sink: &mut impl FnMut(&Event),
    ) -> Result<(), Violation> {
        let mut outputs = std::mem::take(&mut self.outputs);
        let Standing { timeout, settle } = self.host.tell(rank, self.now, input, &mut outputs)?;
        let site = self.config.grid.at_rank(rank);
        for output in outputs.drain(..) {
            match output {
                Output::Event(kind) => sink(&Event { at: self.now, site, kind }),
                Output::Start(job) => self.execute(rank, &job)?,
                Output::Send { to, message } => self.send(site, to, message, sink)?,
                Output::Write(_) => unreachable!("hosts keep it to themselves"),
            }
        }
        self.outputs = outputs;
        if settle {
            self.unsettled.insert(rank);
        }
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
            self.host.check_peer(rank);
        }
        Ok(())
    }

    fn execute(&mut self, rank: usize, job: &JobSpec) -> Result<(), Violation> {
        let place = self.index.get(job.id).expect("only jobs of the workload are started");
        let (site, limit) = (self.config.grid.at_rank(rank), self.config.grid.sizes()[rank]);
        self.observer.start(self.now, place, job, site, limit)?;
        if let Some(ideal_mode) = &mut self.ideal_mode {
            ideal_mode.started(self.now, *job, rank);
        }
        self.sequence += 1;
        let (run_time, late) = (self.jobs[place].run_time, self.config.late);
        let ending = Ending { rank, job: job.id, processors: job.processors };
        self.endings.start_noticed(self.now, run_time, self.sequence, ending, |end| {
            late.map_or(Span::ZERO, |late| late.of(site, end))
        });
        Ok(())
    }

    fn send(
        &mut self,
        from: SiteId,
        to: SiteId,
        message: H::Message,
        sink: &mut impl FnMut(&Event),
    ) -> Result<(), Violation> {
        self.totals.messages += 1;
        let copies = self.links.send(self.now, from, to, message.payload());
        let rank = self.config.grid.rank(to);
        self.host.posted(rank, &message, copies)?;
        let Copies { first, second } = copies;
        let Some(first) = first else {
            self.totals.lost += 1;
            let kind = EventKind::Lost { to, message: message.kind() };
            sink(&Event { at: self.now, site: from, kind });
            return Ok(());
        };
        if let Some(second) = second {
            self.post(first, Parcel { from, to: rank, message: message.clone() });
            self.post(second, Parcel { from, to: rank, message });
        } else {
            self.post(first, Parcel { from, to: rank, message });
        }
        Ok(())
    }

    fn post(&mut self, delay: Span, parcel: Parcel<H::Message>) {
        if delay == Span::ZERO {
            self.inbox.push_back(parcel);
        } else {
            self.sequence += 1;
            self.under_way.push(Reverse(Due { at: self.now + delay, order: self.sequence, what: parcel }));
        }
    }

    fn check(&self) -> Result<(), Violation> {
        if self.config.checks == Checks::Full && self.config.strategy != Strategy::Local {
            self.host.check_owners(self.now, &mut self.unfinished.iter().copied())?;
        }
        Ok(())
    }
}

/// The rank of the site where a job enters the grid.
fn entry(config: &SimulationConfig, job: &JobSpec) -> usize {
    config.submit.rank(&config.grid, config.strategy, job).expect("callers refuse jobs too wide")
}

/// When jobs arrive at sites that notice late. Each site takes its own in queue order, however late.
fn late_arrivals(config: &SimulationConfig, late: Lateness, jobs: &[TimedJob]) -> Vec<(Time, usize)> {
    let mut last = vec![Time::from_micros(i64::MIN); config.grid.len()];
    let arrival = |(place, job): (usize, &TimedJob)| {
        let rank = entry(config, &job.spec);
        let noticed = job.spec.submit + late.of(config.grid.at_rank(rank), job.spec.submit);
        last[rank] = last[rank].max(noticed);
        (last[rank], place)
    };
    let mut arrivals: Vec<(Time, usize)> = jobs.iter().enumerate().map(arrival).collect();
    arrivals.sort_unstable();
    arrivals
}
