//! Sites, links and disks with faults: an fault_queue beside jobs and messages, and calls that are written down.
//!
//! Until [`Scenario::healed`] faults strike. Then everybody who ever comes back restarts, links are reliable, and all
//! must end. A scenario that is never healed suffers its faults and nothing else. What happens beside jobs and messages is
//! in `fault_queue.rs`, what becomes of a call in `writing.rs`, of processes in `processes.rs`, who is there in `operating.rs`,
//! what must hold in the end in `ending.rs`. The order of one instant is in `instant.rs`: without faults, events are those
//! of [`crate::simulation`].

use std::collections::BTreeMap;

use links::Links;
use protocol::{Input, Interrupted, Message, Output, Peer};
use scheduler::event::EndCause;
use scheduler::execution::Begun;
use scheduler::{Event, EventKind, JobId, JobIndex, JobSpec, SiteId, Span, Time};

use super::clock::Clock;
use super::coordinator::Coordinator;
use super::fault_queue::{Coming, Executed};
use super::liar::Liar;
use super::scenario::{Limits, Mistake, Scenario, Tally};
use super::schedule::{self, Fault};
use super::site::{Site, Stay};
use super::watch::{Broken, Check, Watch};
use crate::instant::{Driver, EventList, Parcel};
use crate::together::{Together, Try};

/// A grid with faults, in virtual time.
pub struct World<'a> {
    pub(super) scenario: &'a Scenario,
    limits: Limits,
    pub(super) mistake: Option<Mistake>,
    stop: Option<&'a dyn Fn() -> bool>,
    #[cfg(feature = "mutant")]
    pub(super) mutant: Option<protocol::mutant::Mutant>,
    /// Whether peers are compared with what is written; without it, what follows from a difference is seen.
    pub(super) agreement: bool,
    pub(super) sites: Vec<Site>,
    index: JobIndex,
    links: Links,
    pub(super) event_list: EventList<Message, Executed>,
    /// What comes beside jobs and messages, by time, class and number.
    pub(super) fault_queue: BTreeMap<(Time, u8, u64), Coming>,
    /// Jobs that users have brought, in queue order.
    submitted: usize,
    pub(super) healed: bool,
    pub(super) watch: Watch,
    pub(super) tally: Tally,
    /// Epochs of jobs that the operator had others adopt, once that is durable.
    pub(super) adopted: BTreeMap<JobId, u32>,
    pub(super) coordinator: Coordinator,
    pub(super) liar: Option<Liar>,
    /// Jobs over several sites.
    pub(super) together: Together,
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
            #[cfg(feature = "mutant")]
            mutant: None,
            agreement: true,
            sites: (0..sites).map(|rank| Site::new(clock_of(rank))).collect(),
            index: JobIndex::new(&scenario.jobs),
            links: Links::new(
                schedule::links(&scenario.network, &scenario.faults, scenario.healed),
                scenario.seed,
            ),
            event_list: EventList::new(&scenario.grid, scenario.strategy, scenario.pass)
                .with_last_change(scenario.network.last_change()),
            fault_queue: BTreeMap::new(),
            submitted: 0,
            healed: false,
            watch: Watch::new(sites, scenario.options.interrupted == Interrupted::Kill),
            tally: Tally { jobs: scenario.jobs.len() as u64, ..Tally::default() },
            adopted: BTreeMap::new(),
            coordinator: Coordinator::default(),
            liar: None,
            together: Together::default(),
            scenario,
        }
    }

    /// Makes the driver commit a mistake.
    pub fn with_mistake(mut self, mistake: Option<Mistake>) -> World<'a> {
        self.mistake = mistake;
        self
    }

    /// Makes every peer commit a mistake.
    #[cfg(feature = "mutant")]
    pub fn with_mutant(mut self, mutant: Option<protocol::mutant::Mutant>) -> World<'a> {
        self.mutant = mutant;
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
        let end = self.go_on(sink);
        self.event_list.flush(sink);
        end?;
        self.tally.ran_twice = self.watch.ran_twice();
        self.tally.site_time_us = self.now().as_micros().unsigned_abs() * self.sites.len() as u64;
        Ok(self.tally)
    }

    fn go_on(&mut self, sink: &mut dyn FnMut(&Event)) -> Result<(), Broken> {
        self.plan();
        self.event_list.now = match self.scenario.healed {
            Some(_) => Time::ZERO,
            // As a simulation, whose first instant is the first thing that happens.
            None => self.next_fact().unwrap_or(Time::ZERO),
        };
        for rank in 0..self.sites.len() {
            if self.sites[rank].stay == Stay::Absent {
                self.say(rank, EventKind::Ended { how: EndCause::Absent });
            }
            self.begin(rank, None)?;
        }
        let mut next = self.now();
        loop {
            match self.instant(next, sink).and_then(|()| self.stop_who_left()) {
                Err(endless) if endless.check == Check::Silence => {
                    if self.scenario.healed.is_none() || self.liar.is_some() {
                        self.check_end()?;
                    }
                    // Whoever lies may keep others talking for ever.
                    return if self.liar.is_some() { Ok(()) } else { Err(endless) };
                }
                other => other?,
            }
            if self.healed {
                self.check_starvation()?;
                self.check_views()?;
            }
            if self.stop.is_some_and(|stop| stop()) {
                return self.broken(Check::Unfinished, "stopped from outside".to_owned());
            }
            // A swarm has an end of its own.
            if self.scenario.healed.is_none()
                && let Some(since) = self.stalled_since().filter(|_| !self.is_over())
            {
                let left = self.scenario.jobs.len().saturating_sub(self.watch.ended());
                let what = format!(
                    "nothing happened from {since} s on but asking in vain (the stall limit of virtual time); {left} jobs have \
                     not ended; is a link cut?"
                );
                return self.broken(Check::Unfinished, what);
            }
            match self.next() {
                Some(at) if at <= self.limits.over => next = at,
                _ => return self.check_end(),
            }
        }
    }

    pub(super) fn now(&self) -> Time {
        self.event_list.now
    }

    /// When something happens next; none if the run is over.
    pub(super) fn next(&self) -> Option<Time> {
        if self.is_over() { None } else { self.next_due() }
    }

    pub(super) fn broken<T>(&self, check: Check, what: String) -> Result<T, Broken> {
        Err(Broken { check, at: self.now(), what })
    }

    /// How long a job runs. One that a liar made up runs as long as it says.
    fn run_time(&self, job: &JobSpec) -> Span {
        self.index.get(job.id).map_or(job.requested, |place| self.scenario.jobs[place].run_time)
    }

    /// Records what the driver does to a site.
    pub(super) fn say(&mut self, rank: usize, kind: EventKind) {
        self.event_list.say(self.scenario.grid.at_rank(rank), kind);
    }

    /// A message is lost.
    pub(super) fn lose(&mut self, from: SiteId, to: usize, message: &Message) {
        self.tally.messages_lost += 1;
        let kind = EventKind::Lost { to: self.scenario.grid.at_rank(to), message: message.kind() };
        self.event_list.say(from, kind);
    }

    /// Carries out one thing that a peer wants done.
    pub(super) fn output(&mut self, rank: usize, output: Output) -> Result<(), Broken> {
        self.says(rank, &output)?;
        let site = self.scenario.grid.at_rank(rank);
        match output {
            Output::Start(job) => self.execute(rank, site, &job),
            Output::Stop(job) => {
                self.tally.stopped += 1;
                self.together.stopped(rank, job);
                self.watch.stopped(site, job);
                Ok(())
            }
            Output::Send { to, message } => self.send(site, to, message),
            Output::Event(kind) => {
                self.tally.events += 1;
                self.tally.moved += u64::from(matches!(kind, EventKind::Accepted { .. }));
                self.event_list.say(site, kind);
                Ok(())
            }
            Output::Write(_) => unreachable!("facts were taken out"),
        }
    }

    /// What a peer says is durable with its call, whether or not it comes to say so.
    pub(super) fn says(&mut self, rank: usize, output: &Output) -> Result<(), Broken> {
        let Output::Event(kind) = output else { return Ok(()) };
        let (now, site) = (self.now(), self.scenario.grid.at_rank(rank));
        if let EventKind::Learned { of, job, .. } = *kind {
            self.watch.learned(now, site, of, job)?;
        }
        match self.scenario.strategy.nature().coallocates {
            true => self.watch.says(now, site, kind),
            false => Ok(()),
        }
    }

    fn execute(&mut self, rank: usize, site: SiteId, job: &JobSpec) -> Result<(), Broken> {
        let here = &self.sites[rank];
        let kept = here.disk.jobs.get(&job.id).or_else(|| here.ahead.jobs.get(&job.id));
        if kept.is_none() && self.scenario.strategy.nature().coallocates {
            return self.execute_part(rank, site, job);
        }
        let epoch = kept.map_or(0, |kept| kept.custody.epoch);
        self.watch.started(self.now(), &self.scenario.grid, site, job, epoch)?;
        self.begin_executing(rank, site, job, None);
        Ok(())
    }

    /// A part of a job executes: it begins once all have started.
    fn execute_part(&mut self, rank: usize, site: SiteId, part: &JobSpec) -> Result<(), Broken> {
        let here = &self.sites[rank];
        let Some((broker, attempt)) = here.disk.part_of(part.id).or_else(|| here.ahead.part_of(part.id))
        else {
            let what = format!("site {site} starts a part of job {} that it has not written down", part.id);
            return self.broken(Check::SingleStart, what);
        };
        let whole = self
            .index
            .get(part.id)
            .map_or(part.processors, |place| self.scenario.jobs[place].spec.processors);
        self.watch.part_started(self.now(), &self.scenario.grid, site, part, (broker, attempt), whole)?;
        self.tally.parts += 1;
        let one = (attempt.number, broker);
        let run = (part.id, one);
        for (rank, part) in self.together.start(run, rank, *part, whole) {
            self.begin_executing(rank, self.scenario.grid.at_rank(rank), &part, Some(one));
        }
        Ok(())
    }

    /// Whether a peer has said that it executes a job no longer, and that is being written.
    fn is_to_stop(&self, rank: usize, job: JobId) -> bool {
        self.sites[rank].writing.iter().any(|call| call.outputs.contains(&Output::Stop(job)))
    }

    fn begin_executing(&mut self, rank: usize, site: SiteId, job: &JobSpec, attempt: Option<Try>) {
        let executed = Executed { rank, process: self.sites[rank].process, job: job.id, attempt };
        let (now, run_time, order) = (self.now(), self.run_time(job), self.event_list.number());
        self.event_list.executing.start(now, Begun { site, job, run_time, order, key: executed });
    }

    fn send(&mut self, from: SiteId, to: SiteId, message: Message) -> Result<(), Broken> {
        let Some(message) = self.told_as(from, to, message) else { return Ok(()) };
        self.watch.sent(self.now(), from, to, &message)?;
        self.tally.messages += 1;
        let copies = self.links.send(self.now(), from, to, message.payload());
        let to = self.scenario.grid.rank(to);
        if copies.first.is_none() {
            self.lose(from, to, &message);
        }
        self.event_list.post(copies, Parcel { from, to, message });
        Ok(())
    }

    pub(super) fn set_wake(&mut self, rank: usize) {
        let site = &self.sites[rank];
        let timeout = site.peer.as_ref().filter(|_| site.is_up()).and_then(Peer::poll_timeout);
        let at = timeout.map(|timeout| site.clock.reaches(timeout).max(self.now()));
        self.event_list.wake(rank, at);
    }
}

impl Driver for World<'_> {
    type Message = Message;
    type Executed = Executed;
    type Error = Broken;

    fn event_list(&self) -> &EventList<Message, Executed> {
        &self.event_list
    }

    fn event_list_mut(&mut self) -> &mut EventList<Message, Executed> {
        &mut self.event_list
    }

    /// One call of a peer: now, or when its process goes on, or never, if there is none.
    fn call(&mut self, rank: usize, input: Input) -> Result<(), Broken> {
        if self.tally.calls > self.limits.calls {
            let what = format!("{} calls, and still talking", self.tally.calls);
            return self.broken(Check::Silence, what);
        }
        let now = self.now();
        let site = &mut self.sites[rank];
        let Some(peer) = &mut site.peer else {
            // Users keep their jobs; what others say is lost.
            if let Input::Message { from, message } = input {
                self.lose(from, rank, &message);
            }
            return Ok(());
        };
        if site.paused {
            if !matches!(input, Input::Turn | Input::Settle | Input::Timeout) {
                site.missed.push_back(input);
            }
            return Ok(());
        }
        peer.handle(site.clock.shows(now), input);
        self.carry_out(rank)
    }

    fn ended(&mut self, Executed { rank, process, job, attempt }: Executed) -> Result<(), Broken> {
        let lives = self.sites[rank].process == process;
        if let Some(one) = attempt
            && (!lives || self.is_to_stop(rank, job) || self.together.ended((job, one), rank).is_none())
        {
            // It was stopped, or waits in vain for a part that is lost.
            return Ok(());
        }
        if lives || self.mistake == Some(Mistake::JobsOutliveProcess) {
            self.watch.executed(self.scenario.grid.at_rank(rank), job);
        }
        if lives { self.tell(rank, Input::Completed(job)) } else { Ok(()) }
    }

    fn next_submission(&self) -> Option<Time> {
        let ahead = match self.mistake {
            Some(Mistake::SubmitEarly) => Span::from_secs(1),
            _ => Span::ZERO,
        };
        self.scenario.jobs.get(self.submitted).map(|job| job.spec.submit - ahead)
    }

    fn submit_next(&mut self) -> Result<(), Broken> {
        self.submitted += 1;
        self.happen(Coming::Submitted(self.submitted - 1))
    }

    fn next_planned(&self) -> Option<Time> {
        self.fault_queue.first_key_value().map(|(&(at, ..), _)| at)
    }

    fn happen_next(&mut self) -> Result<(), Broken> {
        let (_, what) = self.fault_queue.pop_first().expect("callers look first");
        self.happen(what)
    }
}
