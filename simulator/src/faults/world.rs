//! The loop: sites, links, disks and faults, one event after the other.
//!
//! | a call of a peer | what may happen |
//! | --- | --- |
//! | before its facts are durable | a crash undoes it: nobody has heard of it |
//! | after | a crash cuts off its other outputs anywhere |
//! | while earlier calls are being written | it waits for them, facts or not: what it wants done may depend on theirs |
//!
//! Until [`Scenario::healed`] faults strike. Then everybody who ever comes back begins again, links are reliable, and all
//! must end. A scenario that is never healed suffers its faults and nothing else. What becomes of processes is in
//! `processes.rs`, who is there in `operating.rs`, what must hold in the end in `ending.rs`. Without faults, events are those of [`crate::simulation`].

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};

use links::{Copies, Links};
use protocol::{Fact, Input, Interrupted, Message, Output, Peer};
use scheduler::event::{BeginCause, EndCause};
use scheduler::{Event, EventKind, Execution, JobId, JobIndex, JobSpec, Pass, SiteId, Span, Strategy, Time};

use super::agenda::{Coming, Due, Executed};
use super::clock::Clock;
use super::coordinator::Coordinator;
use super::liar::Liar;
use super::scenario::{Limits, Mistake, Scenario, Tally};
use super::schedule::{self, Fault};
use super::site::{Armed, Call, Site, Stay};
use super::watch::{Broken, Check, Watch};

/// A message that needs no time.
type Parcel = (SiteId, usize, Message);

/// A grid with faults, in virtual time.
pub struct World<'a> {
    pub(super) scenario: &'a Scenario,
    limits: Limits,
    pub(super) mistake: Option<Mistake>,
    stop: Option<&'a dyn Fn() -> bool>,
    #[cfg(feature = "canary")]
    pub(super) canary: Option<protocol::canary::Canary>,
    /// Whether peers are compared with what is written; without it, what follows from a difference is seen.
    pub(super) agreement: bool,
    pub(super) sites: Vec<Site>,
    index: JobIndex,
    links: Links,
    coming: BinaryHeap<Reverse<Due>>,
    executing: Execution<Executed>,
    /// Messages without delay, delivered before anything else happens.
    inbox: VecDeque<Parcel>,
    sequence: u64,
    /// Messages that need time.
    pub(super) under_way: usize,
    wakes: BTreeSet<(Time, usize)>,
    pub(super) restless: BTreeSet<usize>,
    pub(super) unsettled: BTreeSet<usize>,
    pub(super) now: Time,
    pub(super) healed: bool,
    pub(super) watch: Watch,
    pub(super) tally: Tally,
    /// Epochs of jobs that the operator had others adopt, once that is durable.
    pub(super) adopted: BTreeMap<JobId, u32>,
    pub(super) coordinator: Coordinator,
    pub(super) liar: Option<Liar>,
}

impl<'a> World<'a> {
    /// Sites that are about to begin.
    ///
    /// # Panics
    /// If peers write no journal: callers set [`protocol::Options::journal`].
    pub fn new(scenario: &'a Scenario, limits: Limits) -> World<'a> {
        assert!(scenario.options.journal, "what a crash leaves is what was written");
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
            stop: None,
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
            executing: Execution::default(),
            inbox: VecDeque::new(),
            sequence: 0,
            under_way: 0,
            wakes: BTreeSet::new(),
            restless: BTreeSet::new(),
            unsettled: BTreeSet::new(),
            now: Time::ZERO,
            healed: false,
            watch: Watch::new(sites, scenario.options.interrupted == Interrupted::Kill),
            tally: Tally { jobs: scenario.jobs.len() as u64, ..Tally::default() },
            adopted: BTreeMap::new(),
            coordinator: Coordinator::default(),
            liar: None,
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

    /// Ends, unfinished, as soon as this is true.
    pub fn stopping_if(mut self, stop: &'a dyn Fn() -> bool) -> World<'a> {
        self.stop = Some(stop);
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
        if self.scenario.healed.is_none() {
            // As a simulation, whose first instant is the first thing that happens.
            self.now = self.coming.peek().map_or(Time::ZERO, |Reverse(due)| due.key.0);
        }
        for rank in 0..self.sites.len() {
            if self.sites[rank].stay == Stay::Absent {
                self.say(rank, EventKind::Ended { how: EndCause::Absent }, sink);
            }
            self.begin(rank, None, sink)?;
        }
        loop {
            self.instant(sink)?;
            if self.is_endless() {
                if self.scenario.healed.is_none() || self.liar.is_some() {
                    self.check_end()?;
                }
                if self.liar.is_some() {
                    break;
                }
                return self.broken(Check::Silence, format!("{} calls, and still talking", self.tally.calls));
            }
            self.stop_who_left(sink)?;
            if self.healed {
                self.check_starvation()?;
            }
            if self.stop.is_some_and(|stop| stop()) {
                return self.broken(Check::Unfinished, "stopped from outside".to_owned());
            }
            let Some(next) = self.next() else { break };
            if next > self.limits.over {
                break;
            }
            self.now = next;
        }
        self.check_end()?;
        self.tally.ran_twice = self.watch.ran_twice();
        self.tally.site_time_us = self.now.as_micros().unsigned_abs() * self.sites.len() as u64;
        Ok(self.tally)
    }

    fn plan(&mut self) {
        let scenario = self.scenario;
        if let Some(healed) = scenario.healed {
            self.expect(healed, Coming::Heal);
        }
        for (place, fault) in scenario.faults.iter().enumerate() {
            if let Fault::Crash { at, .. }
            | Fault::Pause { at, .. }
            | Fault::Leave { at, .. }
            | Fault::Join { at, .. }
            | Fault::Step { at, .. }
            | Fault::LostDisk { at, .. }
            | Fault::Coordinator { at, .. }
            | Fault::Liar { at, .. } = fault
            {
                self.expect(*at, Coming::Fault(place));
            }
            if let Fault::Join { site, .. } = fault {
                self.sites[scenario.grid.rank(*site)].stay = Stay::Absent;
            }
        }
        let ahead = match self.mistake {
            Some(Mistake::SubmitEarly) => Span::from_secs(1),
            _ => Span::ZERO,
        };
        for (place, job) in scenario.jobs.iter().enumerate() {
            self.expect(job.spec.submit - ahead, Coming::Submitted(place));
        }
    }

    pub(super) fn expect(&mut self, at: Time, what: Coming) {
        self.sequence += 1;
        self.under_way += usize::from(matches!(what, Coming::Message { .. }));
        let class = what.class(self.decides_per_event());
        self.coming.push(Reverse(Due { key: (at, class, self.sequence), what }));
    }

    /// Whether local schedulers decide after each event.
    fn decides_per_event(&self) -> bool {
        self.scenario.strategy == Strategy::Local && self.scenario.pass == Pass::PerEvent
    }

    /// When something happens next; none if the run is over.
    pub(super) fn next(&self) -> Option<Time> {
        if self.is_over() {
            return None;
        }
        [self.next_coming(), self.wakes.first().map(|&(at, _)| at)].into_iter().flatten().min()
    }

    /// When the agenda goes on, or a job ends.
    fn next_coming(&self) -> Option<Time> {
        let coming = self.coming.peek().map(|Reverse(due)| due.key.0);
        [coming, self.executing.next_end()].into_iter().flatten().min()
    }

    /// What is due now and comes first, with its class; ends of jobs only up to a class.
    fn pop_due(&mut self, reached: u8) -> Option<(u8, Coming)> {
        let end = self.executing.next().filter(|end| end.at <= self.now);
        let end =
            end.map(|end| (end.at, Coming::Executed(end.what).class(self.decides_per_event()), end.order));
        let end = end.filter(|&(_, class, _)| class >= reached);
        let coming = self.coming.peek().map(|Reverse(due)| due.key).filter(|key| key.0 <= self.now);
        if let Some(first) = end
            && coming.is_none_or(|coming| first < coming)
        {
            return self.executing.pop_due(self.now).map(|end| (first.1, Coming::Executed(end.what)));
        }
        coming?;
        self.coming.pop().map(|Reverse(due)| (due.key.1, due.what))
    }

    pub(super) fn broken<T>(&self, check: Check, what: String) -> Result<T, Broken> {
        Err(Broken { check, at: self.now, what })
    }

    /// Everything that happens now, in the order of [`protocol::peer`], until nothing more does.
    fn instant(&mut self, sink: &mut dyn FnMut(&Event)) -> Result<(), Broken> {
        while !self.is_endless() {
            let mut reached = 0;
            // A job that began only now and needs no time ends when everybody has decided.
            while let Some((class, what)) = self.pop_due(reached) {
                // Never back: what a slow disk has written by now may come after an end that waits for decisions.
                reached = reached.max(class);
                // A job on its way home, and an answer that needs no time, come before anybody decides.
                let answered = !matches!(what, Coming::Executed(_));
                self.happen(what, sink)?;
                if answered {
                    self.drain_inbox(sink)?;
                }
            }
            self.turns(sink)?;
            while self.settle(sink)? || self.timers_due(sink)? {
                self.turns(sink)?;
            }
            if self.next_coming().is_none_or(|at| at > self.now) {
                break;
            }
        }
        Ok(())
    }

    /// Whether so much was done that it counts as endless.
    fn is_endless(&self) -> bool {
        self.tally.calls > self.limits.calls
    }

    fn turns(&mut self, sink: &mut dyn FnMut(&Event)) -> Result<(), Broken> {
        let mut from = 0;
        while !self.is_endless() {
            let next = self.restless.range(from..).next().or_else(|| self.restless.first());
            let Some(&rank) = next else { break };
            self.restless.remove(&rank);
            self.call(rank, Input::Turn, sink)?;
            self.drain_inbox(sink)?;
            from = rank + 1;
        }
        Ok(())
    }

    fn settle(&mut self, sink: &mut dyn FnMut(&Event)) -> Result<bool, Broken> {
        let ranks = std::mem::take(&mut self.unsettled);
        for &rank in &ranks {
            self.call(rank, Input::Settle, sink)?;
        }
        self.drain_inbox(sink)?;
        Ok(!ranks.is_empty() && !self.is_endless())
    }

    fn timers_due(&mut self, sink: &mut dyn FnMut(&Event)) -> Result<bool, Broken> {
        let due = self.wakes.iter().take_while(|&&(at, _)| at <= self.now);
        let ranks: BTreeSet<usize> = due.map(|&(_, rank)| rank).collect();
        for &rank in &ranks {
            self.restless.insert(rank);
            self.call(rank, Input::Timeout, sink)?;
            self.drain_inbox(sink)?;
        }
        Ok(!ranks.is_empty() && !self.is_endless())
    }

    fn drain_inbox(&mut self, sink: &mut dyn FnMut(&Event)) -> Result<(), Broken> {
        while !self.is_endless()
            && let Some((from, to, message)) = self.inbox.pop_front()
        {
            self.deliver(from, to, message, sink)?;
        }
        Ok(())
    }

    fn deliver(
        &mut self,
        from: SiteId,
        to: usize,
        message: Message,
        sink: &mut dyn FnMut(&Event),
    ) -> Result<(), Broken> {
        let wakes = message.wakes();
        self.tell(to, Input::Message { from, message }, wakes, sink)
    }

    pub(super) fn happen(&mut self, what: Coming, sink: &mut dyn FnMut(&Event)) -> Result<(), Broken> {
        if self.coordinator.is_away() && self.needs_coordinator(&what) {
            self.coordinator.postponed.push(what);
            return Ok(());
        }
        match what {
            Coming::Attach => self.attach(sink),
            Coming::Heal => self.heal(sink),
            Coming::Fault(place) => self.strike(place, sink),
            Coming::Operator => self.operate(sink),
            Coming::Restart { rank, process } if self.sites[rank].process == process => {
                self.begin(rank, Some(BeginCause::Restart), sink)
            }
            Coming::Resume { rank, process } if self.sites[rank].process == process => {
                self.resume(rank, sink)
            }
            Coming::Written { rank, process } if self.sites[rank].process == process => {
                self.release(rank, sink)
            }
            Coming::Restart { .. } | Coming::Resume { .. } | Coming::Written { .. } => Ok(()),
            Coming::Executed(Executed { rank, process, job }) => {
                let outlives = self.mistake == Some(Mistake::JobsOutliveProcess);
                if self.sites[rank].process != process {
                    if outlives {
                        self.watch.executed(self.scenario.grid.at_rank(rank), job);
                    }
                    return Ok(());
                }
                self.watch.executed(self.scenario.grid.at_rank(rank), job);
                self.tell(rank, Input::Completed(job), true, sink)
            }
            Coming::Submitted(place) => {
                let job = self.scenario.jobs[place].spec;
                if self.mistake != Some(Mistake::SubmitEarly) || job.submit <= self.now {
                    self.watch.submitted(job.id);
                }
                self.submit(job, sink)
            }
            Coming::Message { from, to, message } => {
                self.under_way -= 1;
                self.deliver(from, to, message, sink)
            }
        }
    }

    /// How long a job runs. One that a liar made up runs as long as it says.
    fn run_time(&self, job: &JobSpec) -> Span {
        self.index.get(job.id).map_or(job.requested, |place| self.scenario.jobs[place].run_time)
    }

    /// Tells a site something, now or when it goes on.
    pub(super) fn tell(
        &mut self,
        rank: usize,
        input: Input,
        wakes: bool,
        sink: &mut dyn FnMut(&Event),
    ) -> Result<(), Broken> {
        let site = &mut self.sites[rank];
        if site.peer.is_none() {
            // Users keep their jobs; what others say is lost.
            if let Input::Message { from, message } = input {
                self.lose(from, rank, &message, sink);
            }
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
        if fact && self.decides_per_event() {
            self.call(rank, Input::Turn, sink)?;
        }
        Ok(())
    }

    /// Records what the driver does to a site.
    pub(super) fn say(&self, rank: usize, kind: EventKind, sink: &mut dyn FnMut(&Event)) {
        sink(&Event { at: self.now, site: self.scenario.grid.at_rank(rank), kind });
    }

    /// A message is lost.
    pub(super) fn lose(&mut self, from: SiteId, to: usize, message: &Message, sink: &mut dyn FnMut(&Event)) {
        self.tally.messages_lost += 1;
        let kind = EventKind::Lost { to: self.scenario.grid.at_rank(to), message: message.kind() };
        sink(&Event { at: self.now, site: from, kind });
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
    pub(super) fn carry_out(&mut self, rank: usize, sink: &mut dyn FnMut(&Event)) -> Result<(), Broken> {
        self.tally.calls += 1;
        let now = self.now;
        let takes = self.write_takes(rank);
        let room = self.room_at(rank);
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
        let agrees = match self.liar {
            None => peer.agrees_with(&site.ahead),
            Some(_) => peer.agrees_among_liars(&site.ahead),
        };
        if self.agreement
            && let Err(what) = agrees
        {
            let what = format!("site {}: {what}", self.scenario.grid.at_rank(rank));
            return self.broken(Check::Agreement, what);
        }
        self.set_wake(rank);
        if !facts.is_empty() && self.looks_at_all() {
            self.watch.holders(now, &self.scenario.grid, |rank| &self.sites[rank].ahead, false)?;
        }
        if let Some(room) = room.filter(|_| !facts.is_empty()) {
            if self.mistake != Some(Mistake::FullDiskIgnored) {
                return self.runs_full(rank, room, sink);
            }
            for output in outputs {
                self.output(rank, output, sink)?;
            }
            return Ok(());
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
            return self.crash(rank, down, written_percent, sink);
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

    pub(super) fn make_durable(&mut self, rank: usize, facts: &[Fact]) -> Result<(), Broken> {
        let at = self.now;
        for fact in facts {
            let site = &mut self.sites[rank];
            self.watch.written(at, self.scenario.grid.at_rank(rank), fact, &site.disk)?;
            site.disk.apply(fact);
            match fact {
                Fact::Owns { job, .. } if site.users.contains_key(&job.id) => {
                    site.handed.insert(job.id);
                    // Nobody hears of that while there is no coordinator.
                    if !self.coordinator.is_away() {
                        site.users.remove(&job.id);
                    }
                }
                Fact::TookOver(void) => {
                    self.tally.taken_over += 1;
                    let is_told = site.adopting.get(&void.job).is_some_and(|told| told.1 == void.epoch);
                    if is_told && !self.coordinator.is_away() {
                        site.adopting.remove(&void.job);
                        self.adopted.insert(void.job, void.epoch);
                        self.tally.adopted += 1;
                    }
                }
                _ => {}
            }
        }
        if facts.is_empty() || !self.looks_at_all() { Ok(()) } else { self.check_disks() }
    }

    /// Whether all that sites have is compared after this call: always, but on large grids, where it takes long, after
    /// one in so many as there are sites.
    fn looks_at_all(&self) -> bool {
        let sites = self.sites.len() as u64;
        sites <= 8 || self.tally.calls.is_multiple_of(sites)
    }

    pub(super) fn check_disks(&self) -> Result<(), Broken> {
        self.watch.holders(self.now, &self.scenario.grid, |rank| &self.sites[rank].disk, true)
    }

    /// Calls that are written by now are carried out.
    pub(super) fn release(&mut self, rank: usize, sink: &mut dyn FnMut(&Event)) -> Result<(), Broken> {
        while self.sites[rank].is_up()
            && let Some(call) = self.sites[rank].writing.front()
            && call.ready <= self.now
        {
            if let Some(room) = self.room_at(rank).filter(|_| !call.facts.is_empty())
                && self.mistake != Some(Mistake::FullDiskIgnored)
            {
                return self.runs_full(rank, room, sink);
            }
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
            Output::Send { to, message } => self.send(site, to, message, sink),
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
        let here = &self.sites[rank];
        let kept = here.disk.jobs.get(&job.id).or_else(|| here.ahead.jobs.get(&job.id));
        let epoch = kept.map_or(0, |kept| kept.custody.epoch);
        self.watch.started(self.now, &self.scenario.grid, site, job, epoch)?;
        let executed = Executed { rank, process: self.sites[rank].process, job: job.id };
        self.sequence += 1;
        self.executing.start(self.now, self.run_time(job), self.sequence, executed);
        Ok(())
    }

    fn send(
        &mut self,
        from: SiteId,
        to: SiteId,
        message: Message,
        sink: &mut dyn FnMut(&Event),
    ) -> Result<(), Broken> {
        let Some(message) = self.told_as(from, to, message) else { return Ok(()) };
        self.watch.sent(self.now, from, to, &message)?;
        self.tally.messages += 1;
        let Copies { first, second } = self.links.send(self.now, from, to, message.payload());
        let to = self.scenario.grid.rank(to);
        let Some(first) = first else {
            self.lose(from, to, &message, sink);
            return Ok(());
        };
        if let Some(second) = second {
            self.post(first, from, to, message.clone());
            self.post(second, from, to, message);
        } else {
            self.post(first, from, to, message);
        }
        Ok(())
    }

    fn post(&mut self, delay: Span, from: SiteId, to: usize, message: Message) {
        if delay == Span::ZERO {
            self.inbox.push_back((from, to, message));
        } else {
            self.expect(self.now + delay, Coming::Message { from, to, message });
        }
    }

    pub(super) fn set_wake(&mut self, rank: usize) {
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
}
