//! The loop: sites, links, disks and faults, one event after the other.
//!
//! | a call of a peer | what may happen |
//! | --- | --- |
//! | before its facts are durable | a crash undoes it: nobody has heard of it |
//! | after | a crash cuts off its other outputs anywhere |
//! | while earlier calls are being written | it waits for them, facts or not: what it wants done may depend on theirs |
//!
//! Until [`Scenario::healed`] faults strike. Then everybody begins again, links are reliable, and all must end.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::sync::Arc;

use links::{Copies, Links, Model};
use protocol::{Discovery, Durable, Fact, Input, Interrupted, Message, Options, Output, Peer, PeerConfig};
use scheduler::ideal::closed_form;
use scheduler::waiting::WaitingList;
use scheduler::{
    Event, EventKind, Grid, JobId, JobIndex, JobSpec, LocalScheduler, Order, Pass, Selection, SiteId, Span,
    Strategy, Submit, Time, TimedJob,
};

use super::clock::Clock;
use super::schedule::{self, Fault};
use super::site::{Armed, Call, Site};
use super::watch::{Broken, Check, Watch};

/// Everything that a run depends on.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// All sites.
    pub grid: Arc<Grid>,
    /// All jobs, in queue order.
    pub jobs: Vec<TimedJob>,
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
    /// What links do without faults.
    pub network: Model,
    /// What goes wrong.
    pub faults: Vec<Fault>,
    /// When faults stop.
    pub healed: Time,
    /// The seed of what links do and peers draw.
    pub seed: u64,
}

/// How long a run may take before it counts as endless.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// When it must be over, in true time.
    pub over: Time,
    /// Calls of peers.
    pub calls: u64,
}

/// A mistake of the driver, to see that the checks notice it. Mistakes of peers are in `protocol::canary`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// Messages leave before the facts of their call are durable.
    SendBeforeWrite,
    /// A call without facts does not wait for earlier ones that are being written.
    OvertakeWrites,
    /// Jobs go on executing when the process of their site ends.
    JobsOutliveProcess,
    /// A user's job comes before its submission.
    SubmitEarly,
}

/// What a run did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Tally {
    /// Calls of peers.
    pub calls: u64,
    /// Events that peers recorded.
    pub events: u64,
    /// Messages sent.
    pub messages: u64,
    /// Messages lost on links or because their receiver was down.
    pub messages_lost: u64,
    /// Processes that ended.
    pub crashes: u64,
    /// Of these, in the middle of a call.
    pub torn: u64,
    /// Processes that began again.
    pub restarts: u64,
    /// Jobs that executed when their process ended.
    pub interrupted: u64,
    /// Jobs that changed owner.
    pub moved: u64,
    /// Jobs.
    pub jobs: u64,
    /// True time times sites, in microseconds.
    pub site_time_us: u64,
}

impl Tally {
    /// Adds what another run did.
    pub fn add(&mut self, other: &Tally) {
        self.calls += other.calls;
        self.events += other.events;
        self.messages += other.messages;
        self.messages_lost += other.messages_lost;
        self.crashes += other.crashes;
        self.torn += other.torn;
        self.restarts += other.restarts;
        self.interrupted += other.interrupted;
        self.moved += other.moved;
        self.jobs += other.jobs;
        self.site_time_us += other.site_time_us;
    }
}

/// Something that is going to happen.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "most of what comes are letters, the largest")]
enum Coming {
    Heal,
    Fault(usize),
    Restart { rank: usize, process: u32 },
    Resume { rank: usize, process: u32 },
    Written { rank: usize, process: u32 },
    Executed { rank: usize, process: u32, job: JobId },
    Submitted(usize),
    Letter { from: SiteId, to: usize, message: Message },
}

impl Coming {
    /// The order at one instant.
    fn class(&self) -> u8 {
        match self {
            Coming::Heal => 0,
            Coming::Fault(_) | Coming::Restart { .. } | Coming::Resume { .. } => 1,
            Coming::Written { .. } => 2,
            Coming::Executed { .. } => 3,
            Coming::Submitted(_) => 4,
            Coming::Letter { .. } => 5,
        }
    }
}

#[derive(Debug)]
struct Due {
    key: (Time, u8, u64),
    what: Coming,
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Due {}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Due {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}

/// A grid with faults, in virtual time.
pub struct World<'a> {
    scenario: &'a Scenario,
    limits: Limits,
    mistake: Option<Mistake>,
    #[cfg(feature = "canary")]
    canary: Option<protocol::canary::Canary>,
    /// Whether peers are compared with what is written; without it, what follows from a difference is seen.
    agreement: bool,
    sites: Vec<Site>,
    index: JobIndex,
    links: Links,
    coming: BinaryHeap<Reverse<Due>>,
    sequence: u64,
    letters: usize,
    wakes: BTreeSet<(Time, usize)>,
    restless: BTreeSet<usize>,
    unsettled: BTreeSet<usize>,
    now: Time,
    healed: bool,
    watch: Watch,
    tally: Tally,
}

impl<'a> World<'a> {
    /// Sites that are about to begin.
    pub fn new(scenario: &'a Scenario, limits: Limits) -> World<'a> {
        let sites = scenario.grid.len();
        let clock_of = |rank: usize| {
            let here = scenario.grid.at_rank(rank);
            let clock = scenario.faults.iter().find_map(|fault| match *fault {
                Fault::Clock { site, offset, drift_ppm } if site == here => Some(Clock { offset, drift_ppm }),
                _ => None,
            });
            clock.unwrap_or_default()
        };
        World {
            limits,
            mistake: None,
            #[cfg(feature = "canary")]
            canary: None,
            agreement: true,
            sites: (0..sites).map(|rank| Site::new(clock_of(rank))).collect(),
            index: JobIndex::new(&scenario.jobs),
            links: Links::new(
                schedule::links(&scenario.network, &scenario.faults, scenario.healed),
                scenario.seed,
            ),
            coming: BinaryHeap::new(),
            sequence: 0,
            letters: 0,
            wakes: BTreeSet::new(),
            restless: BTreeSet::new(),
            unsettled: BTreeSet::new(),
            now: Time::ZERO,
            healed: false,
            watch: Watch::new(sites, scenario.options.interrupted == Interrupted::Kill),
            tally: Tally { jobs: scenario.jobs.len() as u64, ..Tally::default() },
            scenario,
        }
    }

    /// Makes the driver commit a mistake.
    pub fn with_mistake(mut self, mistake: Option<Mistake>) -> World<'a> {
        self.mistake = mistake;
        self
    }

    /// Makes every peer commit a mistake.
    #[cfg(feature = "canary")]
    pub fn with_canary(mut self, canary: Option<protocol::canary::Canary>) -> World<'a> {
        self.canary = canary;
        self
    }

    /// Leaves [`Check::Agreement`] and [`Check::Restart`] out, so that mistakes in what is written or read show by
    /// what they lead to.
    pub fn without_agreement(mut self) -> World<'a> {
        self.agreement = false;
        self
    }

    /// Runs to the end. Events go to `sink` when they are durable.
    ///
    /// # Errors
    /// The first check that does not hold.
    ///
    /// # Panics
    /// If an assertion of the protocol fails; callers report that as [`Check::Invariant`].
    pub fn run(mut self, sink: &mut dyn FnMut(&Event)) -> Result<Tally, Broken> {
        self.plan();
        for rank in 0..self.sites.len() {
            self.begin(rank, sink)?;
        }
        loop {
            self.instant(sink)?;
            if self.tally.calls > self.limits.calls {
                return self.broken(Check::Silence, format!("{} calls, and still talking", self.tally.calls));
            }
            if self.healed {
                self.check_starvation()?;
            }
            let Some(next) = self.next() else { break };
            if next > self.limits.over {
                break;
            }
            self.now = next;
        }
        self.check_end()?;
        self.tally.site_time_us = self.now.as_micros().unsigned_abs() * self.sites.len() as u64;
        Ok(self.tally)
    }

    fn plan(&mut self) {
        self.expect(self.scenario.healed, Coming::Heal);
        for (place, fault) in self.scenario.faults.iter().enumerate() {
            if let Fault::Crash { at, .. } | Fault::Pause { at, .. } = fault {
                self.expect(*at, Coming::Fault(place));
            }
        }
        let ahead = match self.mistake {
            Some(Mistake::SubmitEarly) => Span::from_secs(1),
            _ => Span::ZERO,
        };
        for (place, job) in self.scenario.jobs.iter().enumerate() {
            self.expect((job.spec.submit - ahead).max(Time::ZERO), Coming::Submitted(place));
        }
    }

    fn expect(&mut self, at: Time, what: Coming) {
        self.sequence += 1;
        self.letters += usize::from(matches!(what, Coming::Letter { .. }));
        self.coming.push(Reverse(Due { key: (at, what.class(), self.sequence), what }));
    }

    fn next(&self) -> Option<Time> {
        if self.is_over() {
            return None;
        }
        let coming = self.coming.peek().map(|Reverse(due)| due.key.0);
        [coming, self.wakes.first().map(|&(at, _)| at)].into_iter().flatten().min()
    }

    /// Every job has ended, nobody waits for an answer, and all that is left is asking in vain.
    fn is_over(&self) -> bool {
        let polls = matches!(self.scenario.strategy, Strategy::Balance(_))
            || matches!(self.scenario.options.discovery, Discovery::Polling { .. });
        polls
            && self.healed
            && self.watch.ended() == self.scenario.jobs.len()
            && self.sites.iter().all(Site::is_quiet)
    }

    fn check_end(&self) -> Result<(), Broken> {
        if self.watch.ended() < self.scenario.jobs.len() {
            let left = self.scenario.jobs.len() - self.watch.ended();
            let job = self
                .watch
                .unfinished()
                .map_or_else(|| "none submitted".to_owned(), |job| format!("job {job}"));
            return self.broken(Check::Unfinished, format!("{left} jobs have not ended, the first is {job}"));
        }
        for (rank, site) in self.sites.iter().enumerate() {
            if !site.is_quiet() {
                let what = format!("site {} still waits for an answer", self.scenario.grid.at_rank(rank));
                return self.broken(Check::Silence, what);
            }
        }
        match self.next() {
            Some(next) => {
                self.broken(Check::Silence, format!("every job has ended, but something happens at {next}"))
            }
            None => Ok(()),
        }
    }

    fn broken<T>(&self, check: Check, what: String) -> Result<T, Broken> {
        Err(Broken { check, at: self.now, what })
    }

    /// Everything that happens now, until nothing more does.
    fn instant(&mut self, sink: &mut dyn FnMut(&Event)) -> Result<(), Broken> {
        while self.tally.calls <= self.limits.calls {
            if self.coming.peek().is_some_and(|Reverse(due)| due.key.0 <= self.now) {
                let Reverse(due) = self.coming.pop().expect("just looked");
                self.happen(due.what, sink)?;
            } else if let Some(rank) = self.restless.pop_first() {
                self.call(rank, Input::Turn, sink)?;
            } else if !self.unsettled.is_empty() {
                for rank in std::mem::take(&mut self.unsettled) {
                    self.call(rank, Input::Settle, sink)?;
                    self.restless.insert(rank);
                }
            } else if let Some(&(at, rank)) = self.wakes.first()
                && at <= self.now
            {
                self.call(rank, Input::Timeout, sink)?;
                self.restless.insert(rank);
            } else {
                return Ok(());
            }
        }
        Ok(())
    }

    fn happen(&mut self, what: Coming, sink: &mut dyn FnMut(&Event)) -> Result<(), Broken> {
        match what {
            Coming::Heal => self.heal(sink),
            Coming::Fault(place) => self.strike(place),
            Coming::Restart { rank, process } if self.sites[rank].process == process => {
                self.begin(rank, sink)
            }
            Coming::Resume { rank, process } if self.sites[rank].process == process => {
                self.resume(rank, sink)
            }
            Coming::Written { rank, process } if self.sites[rank].process == process => {
                self.release(rank, sink)
            }
            Coming::Restart { .. } | Coming::Resume { .. } | Coming::Written { .. } => Ok(()),
            Coming::Executed { rank, process, job } => {
                let outlives = self.mistake == Some(Mistake::JobsOutliveProcess);
                if self.sites[rank].process != process {
                    if outlives {
                        let processors = self.scenario.jobs[self.place(job)].spec.processors;
                        self.watch.executed(self.scenario.grid.at_rank(rank), processors);
                    }
                    return Ok(());
                }
                let processors = self.scenario.jobs[self.place(job)].spec.processors;
                self.watch.executed(self.scenario.grid.at_rank(rank), processors);
                self.tell(rank, Input::Completed(job), true, sink)
            }
            Coming::Submitted(place) => {
                let job = self.scenario.jobs[place].spec;
                let scenario = self.scenario;
                let rank = scenario.submit.rank(&scenario.grid, scenario.strategy, &job);
                let rank = rank.expect("scenarios have no job that is wider than the widest site");
                if self.mistake != Some(Mistake::SubmitEarly) || job.submit <= self.now {
                    self.watch.submitted(job.id);
                }
                self.sites[rank].users.insert(job.id, job);
                self.tell(rank, Input::Submitted(job), true, sink)
            }
            Coming::Letter { from, to, message } => {
                self.letters -= 1;
                let wakes = message.wakes();
                self.tell(to, Input::Message { from, message }, wakes, sink)
            }
        }
    }

    fn place(&self, job: JobId) -> usize {
        self.index.get(job).expect("only jobs of the scenario are executed")
    }

    /// Tells a site something, now or when it goes on.
    fn tell(
        &mut self,
        rank: usize,
        input: Input,
        wakes: bool,
        sink: &mut dyn FnMut(&Event),
    ) -> Result<(), Broken> {
        let site = &mut self.sites[rank];
        if site.peer.is_none() {
            // Users keep their jobs; what others say is lost.
            self.tally.messages_lost += u64::from(matches!(input, Input::Message { .. }));
            return Ok(());
        }
        if site.paused {
            site.missed.push_back(input);
            return Ok(());
        }
        let fact = !matches!(input, Input::Message { .. });
        if wakes {
            self.restless.insert(rank);
        }
        self.call(rank, input, sink)?;
        if fact && self.scenario.strategy == Strategy::Local && self.scenario.pass == Pass::PerEvent {
            self.call(rank, Input::Turn, sink)?;
        }
        Ok(())
    }

    /// One call of a peer, unless its process is not there any more.
    fn call(&mut self, rank: usize, input: Input, sink: &mut dyn FnMut(&Event)) -> Result<(), Broken> {
        let site = &mut self.sites[rank];
        let shown = site.clock.shows(self.now);
        if site.paused {
            return Ok(());
        }
        let Some(peer) = &mut site.peer else { return Ok(()) };
        peer.handle(shown, input);
        self.carry_out(rank, sink)
    }

    /// Takes what a peer wants done, writes it down, and does it, or crashes on the way.
    fn carry_out(&mut self, rank: usize, sink: &mut dyn FnMut(&Event)) -> Result<(), Broken> {
        self.tally.calls += 1;
        let now = self.now;
        let takes = self.write_takes(rank);
        let site = &mut self.sites[rank];
        let peer = site.peer.as_mut().expect("it was just told something");
        let (mut facts, mut outputs) = (Vec::new(), Vec::new());
        while let Some(output) = peer.poll_output() {
            match output {
                Output::Write(fact) => facts.push(fact),
                output => outputs.push(output),
            }
        }
        peer.check_invariants();
        if peer.wants_settle() {
            self.unsettled.insert(rank);
        }
        for fact in &facts {
            site.ahead.apply(fact);
        }
        if self.agreement
            && let Err(what) = peer.agrees_with(&site.ahead)
        {
            let what = format!("site {}: {what}", self.scenario.grid.at_rank(rank));
            return self.broken(Check::Agreement, what);
        }
        self.set_wake(rank);
        if !facts.is_empty() {
            self.watch.holders(now, &self.scenario.grid, |rank| &self.sites[rank].ahead, false)?;
        }
        let site = &mut self.sites[rank];
        if !facts.is_empty()
            && let Some(Armed { torn, down, written_percent }) = site.armed.take()
        {
            self.tally.torn += 1;
            if torn.written {
                self.flush(rank, sink)?;
                self.make_durable(rank, &facts)?;
                outputs.truncate(torn.outputs);
                for output in outputs {
                    self.output(rank, output, sink)?;
                }
            }
            return self.crash(rank, down, written_percent);
        }
        if self.mistake == Some(Mistake::SendBeforeWrite) {
            let early = std::mem::take(&mut outputs);
            for output in early {
                self.output(rank, output, sink)?;
            }
        }
        let site = &mut self.sites[rank];
        let overtakes = self.mistake == Some(Mistake::OvertakeWrites) && facts.is_empty();
        if overtakes || (takes == Span::ZERO && site.writing.is_empty()) {
            self.make_durable(rank, &facts)?;
            for output in outputs {
                self.output(rank, output, sink)?;
            }
            return Ok(());
        }
        let last = site.writing.back().map_or(now, |call| call.ready);
        let ready = last.max(now.saturating_add(if facts.is_empty() { Span::ZERO } else { takes }));
        site.writing.push_back(Call { facts, outputs, ready });
        let process = site.process;
        self.expect(ready, Coming::Written { rank, process });
        Ok(())
    }

    fn write_takes(&self, rank: usize) -> Span {
        let here = self.scenario.grid.at_rank(rank);
        let slow = self.scenario.faults.iter().filter_map(|fault| match *fault {
            Fault::SlowDisk { site, at, until, takes }
                if site == here && at <= self.now && self.now < until =>
            {
                Some(takes)
            }
            _ => None,
        });
        slow.max().unwrap_or(Span::ZERO)
    }

    fn make_durable(&mut self, rank: usize, facts: &[Fact]) -> Result<(), Broken> {
        let at = self.now;
        for fact in facts {
            let site = &mut self.sites[rank];
            site.disk.apply(fact);
            if let Fact::Owns { job, .. } = fact {
                site.users.remove(&job.id);
            }
            self.watch.written(at, self.scenario.grid.at_rank(rank), fact)?;
        }
        if facts.is_empty() { Ok(()) } else { self.check_disks() }
    }

    fn check_disks(&self) -> Result<(), Broken> {
        self.watch.holders(self.now, &self.scenario.grid, |rank| &self.sites[rank].disk, true)
    }

    /// Calls that are written by now are carried out.
    fn release(&mut self, rank: usize, sink: &mut dyn FnMut(&Event)) -> Result<(), Broken> {
        while self.sites[rank].is_up()
            && let Some(call) = self.sites[rank].writing.front()
            && call.ready <= self.now
        {
            self.release_one(rank, sink)?;
        }
        Ok(())
    }

    fn release_one(&mut self, rank: usize, sink: &mut dyn FnMut(&Event)) -> Result<(), Broken> {
        let call = self.sites[rank].writing.pop_front().expect("callers look first");
        self.make_durable(rank, &call.facts)?;
        for output in call.outputs {
            self.output(rank, output, sink)?;
        }
        Ok(())
    }

    fn flush(&mut self, rank: usize, sink: &mut dyn FnMut(&Event)) -> Result<(), Broken> {
        while !self.sites[rank].writing.is_empty() {
            self.release_one(rank, sink)?;
        }
        Ok(())
    }

    fn output(&mut self, rank: usize, output: Output, sink: &mut dyn FnMut(&Event)) -> Result<(), Broken> {
        let site = self.scenario.grid.at_rank(rank);
        match output {
            Output::Start(job) => self.execute(rank, site, &job),
            Output::Send { to, message } => self.send(site, to, message),
            Output::Event(kind) => {
                self.tally.events += 1;
                self.tally.moved += u64::from(matches!(kind, EventKind::Accepted { .. }));
                sink(&Event { at: self.now, site, kind });
                Ok(())
            }
            Output::Write(_) => unreachable!("facts were taken out"),
        }
    }

    fn execute(&mut self, rank: usize, site: SiteId, job: &JobSpec) -> Result<(), Broken> {
        self.watch.started(self.now, &self.scenario.grid, site, job)?;
        let at = self.now + self.scenario.jobs[self.place(job.id)].run_time;
        let process = self.sites[rank].process;
        self.expect(at, Coming::Executed { rank, process, job: job.id });
        Ok(())
    }

    fn send(&mut self, from: SiteId, to: SiteId, message: Message) -> Result<(), Broken> {
        self.watch.sent(self.now, from, to, &message)?;
        self.tally.messages += 1;
        let Copies { first, second } = self.links.send(self.now, from, to, message.payload());
        self.tally.messages_lost += u64::from(first.is_none());
        let to = self.scenario.grid.rank(to);
        if let Some(second) = second {
            self.expect(self.now + second, Coming::Letter { from, to, message: message.clone() });
        }
        if let Some(first) = first {
            self.expect(self.now + first, Coming::Letter { from, to, message });
        }
        Ok(())
    }

    fn set_wake(&mut self, rank: usize) {
        let site = &mut self.sites[rank];
        if let Some(before) = site.wake.take() {
            self.wakes.remove(&(before, rank));
        }
        if site.is_up()
            && let Some(timeout) = site.peer.as_ref().and_then(Peer::poll_timeout)
        {
            let at = site.clock.reaches(timeout).max(self.now);
            site.wake = Some(at);
            self.wakes.insert((at, rank));
        }
    }

    // Faults.

    fn strike(&mut self, place: usize) -> Result<(), Broken> {
        match self.scenario.faults[place] {
            Fault::Crash { site, down, written_percent, torn, .. } => {
                let rank = self.scenario.grid.rank(site);
                match torn {
                    Some(torn) => self.sites[rank].armed = Some(Armed { torn, down, written_percent }),
                    None if self.sites[rank].peer.is_some() => self.crash(rank, down, written_percent)?,
                    None => {}
                }
                Ok(())
            }
            Fault::Pause { site, lasts, .. } => {
                let rank = self.scenario.grid.rank(site);
                let now = self.now;
                let site = &mut self.sites[rank];
                if site.is_up() {
                    site.paused = true;
                    let process = site.process;
                    self.set_wake(rank);
                    self.expect(now.saturating_add(lasts), Coming::Resume { rank, process });
                }
                Ok(())
            }
            // These are looked up where they matter.
            Fault::Cut(_) | Fault::Noise(_) | Fault::Clock { .. } | Fault::SlowDisk { .. } => Ok(()),
        }
    }

    /// The process of a site ends. Of what is being written, the oldest share is durable.
    fn crash(&mut self, rank: usize, down: Span, written_percent: u8) -> Result<(), Broken> {
        let calls = std::mem::take(&mut self.sites[rank].writing);
        let written = calls.len() * usize::from(written_percent) / 100;
        let mut kept: Vec<Fact> = Vec::new();
        for call in calls.into_iter().take(written) {
            kept.extend(call.facts);
        }
        self.make_durable(rank, &kept)?;
        let now = self.now;
        let outlives = self.mistake == Some(Mistake::JobsOutliveProcess);
        let site = &mut self.sites[rank];
        site.peer = None;
        site.process += 1;
        site.paused = false;
        site.armed = None;
        for missed in std::mem::take(&mut site.missed) {
            self.tally.messages_lost += u64::from(matches!(missed, Input::Message { .. }));
        }
        site.ahead = site.disk.clone();
        let process = site.process;
        self.tally.crashes += 1;
        if !outlives {
            self.tally.interrupted += self.watch.crashed(self.scenario.grid.at_rank(rank));
        }
        self.set_wake(rank);
        self.restless.remove(&rank);
        self.unsettled.remove(&rank);
        let at = if self.healed { now } else { now.saturating_add(down) };
        self.expect(at, Coming::Restart { rank, process });
        self.check_disks()
    }

    /// A process begins, with what is on disk; its users come again with what is not.
    fn begin(&mut self, rank: usize, sink: &mut dyn FnMut(&Event)) -> Result<(), Broken> {
        if self.sites[rank].peer.is_some() {
            return Ok(());
        }
        let scenario = self.scenario;
        let config = PeerConfig {
            site: scenario.grid.at_rank(rank),
            grid: scenario.grid.clone(),
            strategy: scenario.strategy,
            local: scenario.local,
            pass: scenario.pass,
            options: scenario.options,
            seed: scenario.seed,
        };
        let before = self.sites[rank].disk.clone();
        self.tally.restarts += u64::from(!before.is_new());
        let peer = self.restored(config, &before, self.sites[rank].clock.shows(self.now));
        self.sites[rank].peer = Some(peer);
        self.restless.insert(rank);
        self.carry_out(rank, sink)?;
        self.check_restart(rank, &before)?;
        let users: Vec<JobSpec> = self.sites[rank].users.values().copied().collect();
        for job in users {
            self.tell(rank, Input::Submitted(job), true, sink)?;
        }
        Ok(())
    }

    #[cfg(not(feature = "canary"))]
    fn restored(&self, config: PeerConfig, durable: &Durable, now: Time) -> Peer {
        Peer::restore(config, durable, now)
    }

    #[cfg(feature = "canary")]
    fn restored(&self, config: PeerConfig, durable: &Durable, now: Time) -> Peer {
        Peer::restore_with(config, durable, now, self.canary)
    }

    /// A peer that just began has what was durable.
    fn check_restart(&self, rank: usize, before: &Durable) -> Result<(), Broken> {
        let Some(peer) = self.sites[rank].peer.as_ref().filter(|_| self.agreement) else { return Ok(()) };
        let site = peer.site();
        if *peer.ledger() != before.ledger {
            return self.broken(Check::Restart, format!("site {site} begins again with other transfers"));
        }
        let kills = self.scenario.options.interrupted == Interrupted::Kill;
        let kept = before.jobs.values().filter(|kept| !kills || kept.started.is_none()).count();
        let here = peer.waiting() + peer.running().count();
        if here != kept {
            return self
                .broken(Check::Restart, format!("site {site} begins again with {here} of {kept} jobs"));
        }
        Ok(())
    }

    fn resume(&mut self, rank: usize, sink: &mut dyn FnMut(&Event)) -> Result<(), Broken> {
        if !self.sites[rank].paused {
            return Ok(());
        }
        self.sites[rank].paused = false;
        self.release(rank, sink)?;
        self.set_wake(rank);
        self.restless.insert(rank);
        for input in std::mem::take(&mut self.sites[rank].missed) {
            self.tell(rank, input, true, sink)?;
        }
        Ok(())
    }

    fn heal(&mut self, sink: &mut dyn FnMut(&Event)) -> Result<(), Broken> {
        self.healed = true;
        for rank in 0..self.sites.len() {
            self.sites[rank].armed = None;
            self.resume(rank, sink)?;
            self.begin(rank, sink)?;
        }
        Ok(())
    }

    /// Nothing is under way, and a site does not take a job of its list that it has room for.
    fn check_starvation(&self) -> Result<(), Broken> {
        let Strategy::Steal(steal) = self.scenario.strategy else { return Ok(()) };
        let options = &self.scenario.options;
        let proved = steal.order == Order::default()
            && steal.select == Selection::default()
            && options.discovery == Discovery::Standing
            && options.margin.is_none();
        if !proved || self.letters > 0 || !self.sites.iter().all(Site::is_quiet) {
            return Ok(());
        }
        let peers: Vec<&Peer> = self.sites.iter().filter_map(|site| site.peer.as_ref()).collect();
        let queues: Vec<WaitingList> = peers.iter().map(|peer| peer.own().clone()).collect();
        for (rank, peer) in peers.iter().enumerate() {
            if peer.held().next().is_some() {
                continue;
            }
            let Some(list) = closed_form::list(&queues, &self.scenario.grid, steal.threshold, rank) else {
                continue;
            };
            if let Some(job) = queues[list.home].first(list.widths.fitting(peer.free())) {
                let what = format!("all is quiet, and site {} does not take job {}", peer.site(), job.id);
                return self.broken(Check::Starvation, what);
            }
        }
        Ok(())
    }
}
