//! Peers without faults: a grid in virtual time, what is asserted of it, and when it is over.
//!
//! The order of one instant is in `instant.rs`, the same as with faults; where the peers live is up to a [`Host`].

use std::collections::{BTreeSet, VecDeque};

use links::Links;
use protocol::{Input, Output, Peer};
use scheduler::execution::{Begun, Parts};
use scheduler::{Event, EventKind, JobId, JobIndex, JobSpec, SiteId, Span, Time, TimedJob};

use crate::checks::{Checks, Observer, Violation};
use crate::config::SimulationConfig;
use crate::host::{Carried as _, Host, Peers, Standing};
use crate::instant::{Driver, EventList, Parcel, polls};
use crate::invariants::IdealMode;
use crate::lateness::Lateness;
use crate::together::{Together, Try};

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

/// Without crashes a job starts once.
const ONCE: Try = (0, SiteId(0));

/// A job that executes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ending {
    rank: usize,
    job: JobId,
    processors: u32,
    /// Of a job over several sites.
    is_part: bool,
}

/// A grid of peers in virtual time.
pub struct Simulation<'a, H: Host = Peers> {
    config: SimulationConfig,
    jobs: &'a [TimedJob],
    index: JobIndex,
    host: H,
    /// What a peer wants done after it was told something; kept to spare allocations.
    outputs: VecDeque<Output<H::Message>>,
    links: Links,
    event_list: EventList<H::Message, Ending>,
    /// When the jobs arrive, and where they are among all, in that order; `None` if they do so as submitted.
    arrivals: Option<Vec<(Time, usize)>>,
    /// Jobs that have arrived.
    arrived: usize,
    observer: Observer,
    ideal_mode: Option<IdealMode>,
    unfinished: BTreeSet<JobId>,
    /// Jobs over several sites.
    together: Together,
    totals: Totals,
}

impl<'a> Simulation<'a> {
    /// A grid at rest, in this process, and the jobs that it will get.
    ///
    /// # Panics
    /// If jobs are not in queue order, share an id, or are wider than the widest site: callers check their input.
    pub fn new(config: SimulationConfig, jobs: &'a [TimedJob]) -> Simulation<'a> {
        Simulation::over(Peers::new(&config.terms), config, jobs)
    }

    /// Makes every peer commit a mistake.
    #[cfg(feature = "mutant")]
    pub fn with_mutant(mut self, mutant: protocol::mutant::Mutant) -> Simulation<'a> {
        for peer in &mut self.host.peers {
            peer.set_mutant(mutant);
        }
        self
    }

    /// Goes through the next instant; false if there is none. Of peers in this process: this way their loop is compiled
    /// once, here, and not in every crate that simulates.
    ///
    /// # Errors
    /// The first violation of a check.
    pub fn advance(&mut self, sink: &mut dyn FnMut(&Event)) -> Result<bool, Violation> {
        self.advance_over(sink)
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
        let event_list = EventList::new(grid, config.strategy, config.pass);
        let mut event_list = event_list.with_last_change(config.network.last_change());
        // Everybody gets a first turn: a site that polls begins at once.
        event_list.restless.extend(0..grid.len());
        Simulation {
            index: JobIndex::new(jobs),
            host,
            outputs: VecDeque::new(),
            links: Links::new(config.network.clone(), config.seed),
            event_list,
            arrivals: config.late.map(|late| late_arrivals(&config, late, jobs)),
            arrived: 0,
            observer: Observer::new(jobs.len(), grid.len()),
            ideal_mode: match config.checks {
                Checks::Full => IdealMode::of(&config, jobs),
                Checks::Cheap => None,
            },
            unfinished: BTreeSet::new(),
            together: Together::default(),
            totals: Totals::default(),
            config,
            jobs,
        }
    }

    /// Runs to the end. Every event goes to `sink`, in order.
    ///
    /// # Errors
    /// The first violation of a check.
    pub fn run(mut self, sink: &mut dyn FnMut(&Event)) -> Result<Totals, Violation> {
        while self.advance_over(sink)? {}
        self.finish()
    }

    /// Goes through the next instant, wherever the peers live; false if there is none.
    ///
    /// # Errors
    /// The first violation of a check.
    pub fn advance_over(&mut self, sink: &mut dyn FnMut(&Event)) -> Result<bool, Violation> {
        let Some(at) = self.next_instant() else { return Ok(false) };
        self.totals.instants += 1;
        self.instant(at, sink)?;
        if self.config.checks == Checks::Full && self.config.strategy.nature().talks {
            self.host.check_owners(at, &mut self.unfinished.iter().copied())?;
        }
        Ok(true)
    }

    /// When something happens next; none when every job ended and nobody waits for an answer, or the run has stalled
    /// ([`STALL_INSTANTS`](crate::STALL_INSTANTS)). Sites that poll would ask each other for ever.
    pub fn next_instant(&self) -> Option<Time> {
        if self.is_over() || self.stalled_since().is_some() { None } else { self.next_due() }
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
        self.totals.completed == self.jobs.len()
            && (polls(self.config.strategy, &self.config.options) || self.event_list.under_way() == 0)
            && self.first_waiting().is_none()
    }

    /// The rank of a peer that still waits for an answer.
    fn first_waiting(&self) -> Option<usize> {
        (0..self.config.grid.len()).find(|&rank| !self.host.is_quiet(rank))
    }

    /// The instant processed last.
    pub fn now(&self) -> Time {
        self.event_list.now
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
        if let Some(since) = self.stalled_since().filter(|_| !self.is_over()) {
            return Err(Violation::Stalled {
                since,
                now: self.now(),
                unfinished: self.jobs.len() - self.totals.completed,
                site: self
                    .first_waiting()
                    .map(|rank| self.config.grid.site(self.config.grid.at_rank(rank)).name.clone()),
            });
        }
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

    fn execute(&mut self, rank: usize, job: &JobSpec) -> Result<(), Violation> {
        let place = self.index.get(job.id).expect("only jobs of the workload are started");
        let (site, limit) = (self.config.grid.at_rank(rank), self.config.grid.sizes()[rank]);
        let now = self.event_list.now;
        let whole = self.jobs[place].spec.processors;
        if job.processors < whole && self.config.grid.spreads() {
            self.observer.start_part(now, place, job, site, limit, whole)?;
            let shares_nodes = self.config.grid.cluster(site).is_some();
            if shares_nodes {
                let nodes = self.nodes(rank, job.id)?;
                self.event_list.executing.is_on(site, job.id, &nodes);
            }
            let parts = self.together.start((job.id, ONCE), rank, *job, whole);
            if shares_nodes && !parts.is_empty() {
                return self.begin_apart(place, &parts);
            }
            for (rank, part) in parts {
                self.host.begins(rank, now, &part);
                self.begin(rank, place, &part)?;
            }
            return Ok(());
        }
        self.observer.start(now, place, job, site, limit)?;
        if let Some(ideal_mode) = &mut self.ideal_mode {
            ideal_mode.started(now, *job, rank);
        }
        self.begin(rank, place, job)
    }

    /// Where a site has a job, or a part of one: it alone knows of the places that it keeps for parts that have not started.
    fn nodes(&self, rank: usize, job: JobId) -> Result<Vec<u32>, Violation> {
        let nodes = self.host.nodes(rank, job).map(<[u32]>::to_vec);
        nodes.ok_or_else(|| Violation::Host {
            site: self.config.grid.at_rank(rank),
            reason: format!("it does not say on which nodes job {job} is"),
        })
    }

    /// All parts of a job have started, at sites whose jobs share nodes: it begins to execute.
    fn begin_apart(&mut self, place: usize, parts: &[(usize, JobSpec)]) -> Result<(), Violation> {
        let TimedJob { spec, run_time } = self.jobs[place];
        let (mut on, mut keys) = (Vec::new(), Vec::new());
        for &(rank, part) in parts {
            self.host.begins(rank, self.event_list.now, &part);
            on.push((self.config.grid.at_rank(rank), self.nodes(rank, spec.id)?));
            let ending = Ending { rank, job: spec.id, processors: part.processors, is_part: true };
            keys.push((self.event_list.number(), ending));
        }
        let now = self.event_list.now;
        self.event_list.executing.start_apart(now, (&spec, run_time), &Parts::On(on), keys);
        Ok(())
    }

    /// A job begins to execute, or a part of it.
    fn begin(&mut self, rank: usize, place: usize, job: &JobSpec) -> Result<(), Violation> {
        let (site, now) = (self.config.grid.at_rank(rank), self.event_list.now);
        let (run_time, late, order) = (self.jobs[place].run_time, self.config.late, self.event_list.number());
        let is_part = job.processors < self.jobs[place].spec.processors;
        let ending = Ending { rank, job: job.id, processors: job.processors, is_part };
        let begun = Begun { site, job, run_time, order, key: ending };
        if self.config.grid.spreads() && self.config.grid.cluster(site).is_some() {
            let nodes = self.nodes(rank, job.id)?;
            self.event_list.executing.start_on(now, begun, nodes);
            return Ok(());
        }
        self.event_list
            .executing
            .start_noticed(now, begun, |end| late.map_or(Span::ZERO, |late| late.of(site, end)));
        Ok(())
    }

    /// What is said of jobs that change their owner may go to all: a job goes home.
    fn check_view(
        &self,
        from: SiteId,
        to: SiteId,
        rank: usize,
        message: &H::Message,
    ) -> Result<(), Violation> {
        let Some(views) = &self.config.views else { return Ok(()) };
        let kind = message.kind();
        if kind.hands_over() || views.are_neighbors(self.config.grid.rank(from), rank) {
            return Ok(());
        }
        Err(Violation::Stranger { at: self.event_list.now, site: from, to, message: kind.name() })
    }

    fn send(&mut self, from: SiteId, to: SiteId, message: H::Message) -> Result<(), Violation> {
        self.totals.messages += 1;
        let copies = self.links.send(self.event_list.now, from, to, message.payload());
        let rank = self.config.grid.rank(to);
        self.check_view(from, to, rank, &message)?;
        self.host.posted(rank, &message, copies)?;
        if copies.first.is_none() {
            self.totals.lost += 1;
            self.event_list.say(from, EventKind::Lost { to, message: message.kind() });
        }
        self.event_list.post(copies, Parcel { from, to: rank, message });
        Ok(())
    }
}

impl<H: Host> Driver for Simulation<'_, H> {
    type Message = H::Message;
    type Executed = Ending;
    type Error = Violation;

    fn event_list(&self) -> &EventList<H::Message, Ending> {
        &self.event_list
    }

    fn event_list_mut(&mut self) -> &mut EventList<H::Message, Ending> {
        &mut self.event_list
    }

    fn call(&mut self, rank: usize, input: Input<H::Message>) -> Result<(), Violation> {
        let mut outputs = std::mem::take(&mut self.outputs);
        let Standing { timeout, settle } = self.host.tell(rank, self.event_list.now, input, &mut outputs)?;
        let site = self.config.grid.at_rank(rank);
        for output in outputs.drain(..) {
            match output {
                Output::Event(kind) => self.event_list.say(site, kind),
                Output::Start(job) => self.execute(rank, &job)?,
                Output::Stop(job) => {
                    let processors = self.together.stopped(rank, job).expect("only a part is stopped");
                    self.observer.end(site, processors);
                }
                Output::Send { to, message } => self.send(site, to, message)?,
                // Nothing crashes here, so nothing need be durable.
                Output::Write(_) => {}
            }
        }
        self.outputs = outputs;
        if settle {
            self.event_list.unsettled.insert(rank);
        }
        self.event_list.wake(rank, timeout);
        if self.config.checks == Checks::Full {
            self.host.check_peer(rank);
        }
        Ok(())
    }

    fn ended(&mut self, Ending { rank, job, processors, is_part }: Ending) -> Result<(), Violation> {
        let now = self.event_list.now;
        // What was stopped does not end.
        let was_last = if is_part { self.together.ended((job, ONCE), rank) } else { Some(true) };
        let Some(was_last) = was_last else { return Ok(()) };
        self.observer.end(self.config.grid.at_rank(rank), processors);
        if !was_last {
            return self.tell(rank, Input::Completed(job));
        }
        self.totals.completed += 1;
        self.totals.last_end = Some(now);
        if self.config.checks == Checks::Full {
            self.unfinished.remove(&job);
        }
        if let Some(ideal_mode) = &mut self.ideal_mode {
            ideal_mode.completed(now, job, rank);
        }
        self.tell(rank, Input::Completed(job))
    }

    fn next_submission(&self) -> Option<Time> {
        self.next_arrival().map(|(at, _)| at)
    }

    fn submit_next(&mut self) -> Result<(), Violation> {
        let (_, job) = self.next_arrival().expect("callers look first");
        self.arrived += 1;
        if self.config.checks == Checks::Full {
            self.unfinished.insert(job.spec.id);
        }
        if let Some(ideal_mode) = &mut self.ideal_mode {
            ideal_mode.submitted(self.event_list.now, job.spec);
        }
        self.tell(entry(&self.config, &job.spec), Input::Submitted(job.spec))
    }

    fn decided(&mut self) -> Result<(), Violation> {
        match &mut self.ideal_mode {
            Some(ideal_mode) => ideal_mode.decided(self.event_list.now),
            None => Ok(()),
        }
    }
}

/// The rank of the site where a job enters the grid.
fn entry(config: &SimulationConfig, job: &JobSpec) -> usize {
    config
        .submit
        .rank(&config.grid, config.strategy, job, &config.local_users)
        .expect("callers refuse jobs too wide")
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
