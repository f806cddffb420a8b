//! One site's event loop around its [`Peer`]. Moves data, decides nothing.
//!
//! For one instant of the trace clock: all completions that are due, all submissions, all messages in the inbox, then
//! one turn, then the peer's timers; then it sleeps until something is due or arrives. Until the clock starts the
//! peer is told nothing and frames wait in the network's bounded inbox.

mod cuts;
mod durable;
mod lockstep;
#[cfg(feature = "mutant")]
mod mutant;
mod operator;
mod outside;
mod unsent;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use brokers::allocation::Patience;
use links::{Copies, Links};
use protocol::journal::restarts_of;
use protocol::{Input, Message, Output, Peer, PeerConfig};
use scheduler::event::MessageKind;
use scheduler::{Event, EventKind, Grid, JobId, Pass, SiteId, Span, Time};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::alarm::Alarm;
use crate::arrivals::{Arrivals, ArrivalsError};
use crate::clock::TraceClock;
use crate::config::NodeConfig;
use crate::control::Command;
use crate::control::api::{LinkStatus, Outstanding, Phase, Status, Way};
use crate::control::serve::ControlCounters;
use crate::delay::DelayLine;
use crate::event_log::EventLog;
use crate::executor::{End, Executor, Exit, Outcome};
use crate::frame::Frame;
use crate::journal::Writer;
use crate::journal::error::NoEvents;
use crate::lockstep::Mailbox;
use crate::measured::Measured;
use crate::metrics::{Direction, Late, Limit, Metrics};
use crate::network::handle::{Network, NetworkHandle};
use crate::network::{Arrival, Offence, Outgoing, RefusedConnection};
use crate::plan_limit::PlanLimit;
use crate::telemetry::JobSpans;

use self::cuts::Cuts;
use self::durable::first_frame;
use self::outside::Outside;
use self::unsent::Unsent;

/// Messages handled in one instant, so that a flood cannot keep the site from its jobs. Arbitrary.
const MESSAGES_PER_INSTANT: usize = 1024;

/// Instants that a node goes through at most before its clock stops, so that it answers. Arbitrary.
const INSTANTS_BEFORE_PAUSE: usize = 1024;

/// The event loop of one node.
pub(crate) struct SiteLoop {
    site: SiteId,
    grid: Arc<Grid>,
    /// Each submission and completion gets a turn of its own; see [`Pass::PerEvent`].
    per_event: bool,
    /// Whether the peer had its first turn.
    awake: bool,
    instance: u64,
    /// From here to all others.
    links: Links,
    peer: Peer,
    clock: TraceClock,
    now: Time,
    executor: Executor,
    arrivals: Arrivals,
    delayed: DelayLine<Outgoing>,
    delay_line_max: usize,
    /// Links that the operator has cut.
    cuts: Cuts,
    /// Messages that are not due; only in lockstep.
    mailbox: Option<Mailbox>,
    network: Network,
    sender: NetworkHandle,
    /// Number of the last frame to each site.
    sent: BTreeMap<SiteId, u64>,
    measured: BTreeMap<SiteId, Measured>,
    events: EventLog,
    /// Events of this incarnation about heartbeats, and heartbeats in the delay line.
    heartbeats: u64,
    heartbeats_delayed: usize,
    metrics: Metrics,
    spans: JobSpans,
    delayed_full: u64,
    arrivals_full: u64,
    /// How long the peer may search.
    plan_limit: Arc<PlanLimit>,
    journal: Option<Writer<Vec<Outgoing>>>,
    /// Frames that leave with the next commit.
    unsent: Unsent,
    /// When something was due last.
    active: Instant,
    /// The journals of the other sites, as far as frames have told.
    others: BTreeMap<SiteId, u64>,
    /// How many events were counted in the metrics that the journal has.
    totals_at: u64,
    /// When the process began to look for the others, until it has found them all.
    rejoining: Option<Instant>,
    /// Whether what executed when the last process ended may still, and nobody has looked yet.
    unsettled: bool,
    /// What is to be known where somebody else decides what starts here.
    outside: Option<Outside>,
    #[cfg(feature = "mutant")]
    mutant: mutant::Mutant,
    commands: mpsc::Receiver<Command>,
    control: Arc<ControlCounters>,
}

/// The peer, which decides within the limit, and leaves starts to whoever has the queue.
fn limited(mut peer: Peer, limit: &Arc<PlanLimit>, starts_outside: bool) -> Peer {
    peer.limit_decisions(Arc::clone(limit) as Arc<dyn Patience>);
    if starts_outside {
        peer.starts_outside();
    }
    peer
}

impl SiteLoop {
    pub(crate) fn new(
        config: &NodeConfig,
        peer: PeerConfig,
        instance: u64,
        network: Network,
        events: EventLog,
        commands: mpsc::Receiver<Command>,
        control: Arc<ControlCounters>,
    ) -> SiteLoop {
        let plan_limit = Arc::new(PlanLimit::new(Duration::from_millis(config.limits.plan_millis.into())));
        // A broker executes nothing, whatever its sites do.
        let executor = match peer.grid.site(peer.site).processors {
            0 => Executor::at(&peer.grid, peer.site),
            _ => Executor::by(&config.execution_here(), &peer.grid, peer.site),
        };
        let outside = executor.is_queue().then(Outside::default);
        SiteLoop {
            site: peer.site,
            grid: Arc::clone(&peer.grid),
            per_event: peer.strategy.nature().per_event && peer.pass == Pass::PerEvent,
            awake: false,
            instance,
            links: Links::new(config.network.clone(), config.seed),
            clock: TraceClock::default(),
            now: Time::ZERO,
            executor,
            arrivals: Arrivals::new(config.jobs_held_max, config.limits.jobs_waiting),
            delayed: DelayLine::new(config.delay_line_max),
            delay_line_max: config.delay_line_max,
            cuts: Cuts::default(),
            mailbox: None,
            sender: network.handle(),
            network,
            sent: BTreeMap::new(),
            measured: BTreeMap::new(),
            events,
            heartbeats: 0,
            heartbeats_delayed: 0,
            metrics: Metrics::new(peer.site, Arc::clone(&peer.grid), &peer.strategy),
            spans: JobSpans::new(&config.run),
            delayed_full: 0,
            arrivals_full: 0,
            commands,
            control,
            journal: None,
            unsent: Unsent::default(),
            active: Instant::now(),
            others: BTreeMap::new(),
            totals_at: 0,
            rejoining: None,
            unsettled: false,
            peer: limited(Peer::new(peer), &plan_limit, outside.is_some()),
            outside,
            #[cfg(feature = "mutant")]
            mutant: mutant::Mutant::from_environment(),
            plan_limit,
        }
    }

    /// Runs until it is told to stop, or nobody is left who could.
    pub(crate) async fn run(mut self) -> anyhow::Result<()> {
        let result = self.serve().await;
        self.executor.shutdown().await;
        self.events.flush()?;
        self.network.shutdown().await;
        result
    }

    async fn serve(&mut self) -> anyhow::Result<()> {
        let alarm = Alarm::new()?;
        let mut first = None;
        loop {
            if self.rejoining.is_some() {
                self.look_for_rejoin(self.sender.state().ready());
            }
            if self.unsettled && self.clock.is_running(Instant::now()) {
                self.find_executions().await?;
            }
            if self.instant(first.take())? {
                self.active = Instant::now();
                // More may be due already. Let the network and the commands have their turn before it.
                tokio::task::yield_now().await;
                if let Ok(command) = self.commands.try_recv()
                    && self.obey(command).await?.is_break()
                {
                    return Ok(());
                }
                continue;
            }
            // Nothing is due: what happened is written, but for a site that has just written and may hear more at once.
            let listens_until = self.listens_until();
            let mut untidy = false;
            if listens_until.is_none() {
                self.commit()?;
                untidy = self.tidy()?;
            }
            let running = self.clock.is_running(Instant::now());
            let wake = self.next_wake(running).into_iter().chain(listens_until).min();
            tokio::select! {
                biased; // What is due first, then the operator, then other sites.
                rung = alarm.until(wake) => rung?,
                command = self.commands.recv() => match command {
                    Some(command) => if self.obey(command).await?.is_break() {
                        return Ok(());
                    },
                    None => return self.commit(), // Every operator is gone.
                },
                arrival = self.network.next(), if running => match arrival {
                    Some(arrival) => first = Some(arrival),
                    None => anyhow::bail!("the network has failed; see the log"),
                },
                () = self.executor.ended(), if running => {}
                () = self.sender.changed(), if self.journal.is_some() => self.note_others(),
                () = tokio::task::yield_now(), if untidy => {}
            }
        }
    }

    /// When something is due without anybody's doing.
    fn next_wake(&self, running: bool) -> Option<Instant> {
        if !running {
            // The start itself; no time of the trace is before it.
            return self.clock.instant(Time::from_micros(i64::MIN));
        }
        let due = [
            self.executor.next_due(),
            self.arrivals.next_due(),
            self.delayed.next_due(),
            self.peer.poll_timeout(),
        ];
        due.into_iter().flatten().min().and_then(|due| self.clock.instant(due))
    }

    /// Does everything that is due at one instant; false if nothing was.
    fn instant(&mut self, first: Option<Arrival>) -> anyhow::Result<bool> {
        let wall = Instant::now();
        if !self.clock.is_running(wall) {
            return Ok(false);
        }
        // The wall clock may have been set back between two incarnations.
        self.now = self.now.max(self.clock.at(wall));
        let mut facts = false;
        if self.per_event {
            facts |= self.submissions(wall)?;
            facts |= self.completions(wall)?;
        } else {
            facts |= self.completions(wall)?;
            facts |= self.submissions(wall)?;
        }
        facts |= self.messages(first)?;
        // The first instant has a turn in any case: a site that polls begins at once.
        if facts || !self.awake {
            self.awake = true;
            self.tell(Input::Turn)?;
        }
        self.settle()?;
        let mut fired = false;
        while self.peer.poll_timeout().is_some_and(|due| due <= self.now) {
            self.tell(Input::Timeout)?;
            self.tell(Input::Turn)?;
            self.settle()?;
            fired = true;
        }
        let mut released = false;
        while let Some((due, outgoing)) = self.delayed.pop_due(self.now) {
            // All else of this instant came before it.
            self.late(Late::Message, due, Instant::now());
            self.heartbeats_delayed -= usize::from(is_heartbeat(outgoing.kind));
            self.post(outgoing)?;
            released = true;
        }
        if self.executor.has_to_launch() {
            // A start that the journal forgets could be followed by another, elsewhere.
            self.commit()?;
            self.executor.launch(self.clock.factor());
        }
        self.follow_queue()?;
        self.commit_if_due()?;
        Ok(facts || fired || released)
    }

    /// All that was known at this instant is in; a peer that waited for that decides.
    fn settle(&mut self) -> anyhow::Result<()> {
        while self.peer.wants_settle() {
            self.tell(Input::Settle)?;
            self.tell(Input::Turn)?;
        }
        Ok(())
    }

    fn completions(&mut self, wall: Instant) -> anyhow::Result<bool> {
        let mut any = false;
        while let Some(outcome) = self.executor.pop(self.now) {
            any = true;
            let End { at, job, exit } = match outcome {
                Outcome::Ended(end) => end,
                Outcome::Begun(job) => {
                    self.has_begun(job)?;
                    continue;
                }
                Outcome::Withdrawn(job) => {
                    self.has_left_queue(job)?;
                    continue;
                }
                Outcome::Said(job, state) => {
                    self.record(EventKind::Batch { job, state })?;
                    continue;
                }
                Outcome::Foreign(processors) => {
                    self.tell_fact(Input::Foreign(processors))?;
                    continue;
                }
            };
            match exit {
                // Nobody knew when it would end.
                Some(Exit { how, code, .. }) => self.record(EventKind::Exited { job, how, code })?,
                None => self.late(Late::Completion, at, wall),
            }
            self.tell_fact(Input::Completed(job))?;
            self.has_room_again()?;
        }
        self.record_paces()?;
        Ok(any)
    }

    fn submissions(&mut self, wall: Instant) -> anyhow::Result<bool> {
        let mut any = false;
        while let Some((job, portion)) = self.arrivals.pop_due(self.now) {
            self.late(Late::Submission, job.spec.submit, wall);
            self.metrics.introduce(&job.spec);
            self.executor.learn(job.spec.id, job.run_time);
            if let Some(journal) = &mut self.journal {
                journal.submitted(portion);
            }
            #[cfg(feature = "mutant")]
            if self.mutant.loses() {
                continue;
            }
            self.tell_fact(Input::Submitted(job.spec))?;
            any = true;
        }
        Ok(any)
    }

    fn late(&self, what: Late, due: Time, wall: Instant) {
        if let Some(lateness) = self.clock.lateness(due, wall) {
            self.metrics.late(what, lateness);
        }
    }

    fn messages(&mut self, first: Option<Arrival>) -> anyhow::Result<bool> {
        let mut next = first.or_else(|| self.network.try_next());
        let any = next.is_some();
        let mut left = MESSAGES_PER_INSTANT;
        while let Some(arrival) = next {
            match arrival {
                Arrival::Frame { from, .. } if self.cuts.takes(Way::From, from) => {}
                Arrival::Frame { from, instance, bytes } => {
                    let frame = self.unpack(from, instance, &bytes);
                    if let Some(message) = frame.and_then(|frame| self.read(&frame)) {
                        self.tell(Input::Message { from, message })?;
                    }
                }
                Arrival::Lost { to, kind } => self.record(EventKind::Lost { to, message: kind })?,
            }
            left -= 1;
            next = if left > 0 { self.network.try_next() } else { None };
        }
        Ok(any)
    }

    /// Tells the peer something that happened here, with a turn at once if the local scheduler wants one each.
    fn tell_fact(&mut self, input: Input) -> anyhow::Result<()> {
        self.tell(input)?;
        if self.per_event { self.tell(Input::Turn) } else { Ok(()) }
    }

    /// Tells the peer one thing and carries out what it wants done.
    fn tell(&mut self, input: Input) -> anyhow::Result<()> {
        self.peer.handle(self.now, input);
        self.obey_peer()
    }

    fn obey_peer(&mut self) -> anyhow::Result<()> {
        while let Some(output) = self.peer.poll_output() {
            match output {
                Output::Start(job) => self.executor.start(self.now, &job)?,
                Output::Stop(job) => self.executor.stop(job),
                Output::Send { to, message } => match &self.outside {
                    Some(_) => self.send_once_free(to, message)?,
                    None => self.send(to, &message)?,
                },
                Output::Event(kind) => self.record(kind)?,
                Output::Write(fact) => self.write(fact),
            }
        }
        self.record_paces()
    }

    /// What became of jobs on shared nodes by what was just recorded.
    fn record_paces(&mut self) -> anyhow::Result<()> {
        let told: Vec<EventKind> = self.executor.told().collect();
        told.into_iter().try_for_each(|kind| self.record(kind))
    }

    fn record(&mut self, kind: EventKind) -> anyhow::Result<()> {
        self.record_at(self.now, kind)
    }

    fn record_at(&mut self, at: Time, kind: EventKind) -> anyhow::Result<()> {
        let event = Event { at, site: self.site, kind };
        tracing::trace!(?event);
        self.spans.follow(&event);
        self.heartbeats += u64::from(is_about_a_heartbeat(&event.kind));
        self.metrics.observe(&event);
        if let Some(journal) = &mut self.journal {
            journal.event(event);
        }
        self.events.push(event)?;
        #[cfg(feature = "mutant")]
        for kind in self.mutant.repeats(&event.kind) {
            self.record_at(at, kind)?;
        }
        Ok(())
    }

    // Messages.

    fn send(&mut self, to: SiteId, message: &Message) -> anyhow::Result<()> {
        let mut frame = self.pack(to, message);
        self.metrics.carried(message.kind(), Direction::Sent, frame.size());
        let Copies { first, second } = self.links.send(self.now, self.site, to, message.payload());
        let cut = self.cuts.takes(Way::To, to);
        if first.is_none() || cut {
            self.record(EventKind::Lost { to, message: message.kind() })?;
        }
        if cut {
            return Ok(());
        }
        for delay in [first, second].into_iter().flatten() {
            frame.injected = delay;
            self.delay(delay, Outgoing { to, kind: message.kind(), bytes: frame.encode() })?;
        }
        Ok(())
    }

    /// Holds a message back for so long. One without delay still does not overtake those that are due.
    fn delay(&mut self, delay: Span, outgoing: Outgoing) -> anyhow::Result<()> {
        if delay == Span::ZERO && self.delayed.next_due().is_none_or(|due| due > self.now) {
            return self.post(outgoing);
        }
        let (to, is_heartbeat) = (outgoing.to, is_heartbeat(outgoing.kind));
        match self.delayed.push(self.now.saturating_add(delay), outgoing) {
            Ok(()) => self.heartbeats_delayed += usize::from(is_heartbeat),
            Err(lost) => {
                self.delayed_full += 1;
                self.record(EventKind::Lost { to, message: lost.kind })?;
            }
        }
        Ok(())
    }

    /// The next frame to a site.
    fn pack(&mut self, to: SiteId, message: &Message) -> Frame {
        let first = first_frame(self.peer.incarnation());
        let sequence = self.sent.entry(to).or_insert(first);
        *sequence += 1;
        // A run time that is gone belongs to a job that ended here, so the receiver has settled this transfer.
        let jobs = message.transfers().iter().map(|transfer| transfer.job.id);
        let jobs = jobs.chain(message.executes().map(|(job, _)| job));
        let run_times = jobs.filter_map(|job| Some((job, self.executor.run_time(job)?))).collect();
        Frame {
            from: self.site,
            to,
            instance: self.instance,
            sequence: *sequence,
            sent_at: self.now,
            injected: Span::ZERO,
            message: protocol::codec::encode(message),
            run_times,
        }
    }

    /// Sends a frame, with a journal as soon as all that led to it is written.
    fn post(&mut self, outgoing: Outgoing) -> anyhow::Result<()> {
        if self.journal.is_some() {
            self.unsent.push(Instant::now(), outgoing);
            return Ok(());
        }
        self.send_now(outgoing)
    }

    fn send_now(&mut self, outgoing: Outgoing) -> anyhow::Result<()> {
        let (to, message) = (outgoing.to, outgoing.kind);
        if self.sender.send(outgoing) { Ok(()) } else { self.record(EventKind::Lost { to, message }) }
    }

    /// The frame in these bytes, if it is what its authenticated sender may send.
    fn unpack(&mut self, from: SiteId, instance: u64, bytes: &[u8]) -> Option<Frame> {
        self.note_other(from, instance);
        let frame = match Frame::decode(bytes) {
            Ok(frame) => frame,
            Err(error) => return self.refuse(from, Offence::Garbage, &error),
        };
        if (frame.from, frame.to, frame.instance) != (from, self.site, instance) {
            return self.refuse(from, Offence::Ends, &"the frame has other ends than the connection");
        }
        Some(frame)
    }

    /// The message in a frame whose time has come.
    fn read(&mut self, frame: &Frame) -> Option<Message> {
        let from = frame.from;
        let message = match protocol::codec::decode(&frame.message) {
            Ok(message) => message,
            Err(error) => return self.refuse(from, Offence::Garbage, &error),
        };
        let carried = message.transfers().iter().map(|transfer| transfer.job.id);
        let carried: BTreeSet<JobId> = carried.chain(message.executes().map(|(job, _)| job)).collect();
        if frame.run_times.iter().any(|(job, _)| !carried.contains(job)) {
            return self.refuse(
                from,
                Offence::Ends,
                &"the frame has run times of jobs that it does not carry",
            );
        }
        for (job, run_time) in &frame.run_times {
            self.executor.learn(*job, *run_time);
        }
        for transfer in message.transfers() {
            self.metrics.introduce(&transfer.job);
        }
        if let Some((_, Some(part))) = message.executes() {
            self.metrics.introduce(part);
        }
        self.metrics.carried(message.kind(), Direction::Received, frame.size());
        let delay = self.now.since(frame.sent_at);
        self.measured.entry(from).or_default().add(delay, frame.injected, frame.sequence);
        Some(message)
    }

    fn refuse<T>(&mut self, from: SiteId, offence: Offence, reason: &dyn std::fmt::Display) -> Option<T> {
        tracing::warn!(from = from.0, %reason, "dropped a frame");
        self.sender.offence(from, offence);
        self.metrics.malformed();
        None
    }

    // The operator.

    /// Does what the operator wants, in lockstep for as long as that lasts.
    async fn obey(&mut self, command: Command) -> anyhow::Result<ControlFlow<()>> {
        // Whoever asks is told only what is written. Of events those are told that are; more will be asked for.
        if !matches!(command, Command::Events { .. }) {
            self.commit()?;
        }
        match command {
            Command::Stop { left, answer } => {
                if self.may_stop(left, answer) {
                    return Ok(ControlFlow::Break(()));
                }
            }
            Command::Lockstep(upgrade, answer) => {
                let free = self.may_lockstep();
                if answer.send(free).is_ok() && free.is_ok() && self.lockstep(upgrade).await? {
                    return Ok(ControlFlow::Break(()));
                }
            }
            command => self.on_command(command)?,
        }
        Ok(ControlFlow::Continue(()))
    }

    fn on_command(&mut self, command: Command) -> anyhow::Result<()> {
        // Whoever asked may have gone; then nobody wants the answer.
        match command {
            Command::Status(answer) => drop(answer.send(Box::new(self.status()))),
            Command::Metrics(answer) => drop(answer.send(self.page())),
            Command::Calibrated(links) => {
                links.into_iter().for_each(|(peer, one_way)| self.metrics.calibrated(peer, one_way));
            }
            Command::Start(order, answer) => {
                let result = self.clock.start(&order, SystemTime::now(), Instant::now());
                if result.is_ok() {
                    self.control.arm();
                    tracing::info!(
                        factor = order.factor,
                        origin_us = order.trace_origin_us,
                        "the start is ordered"
                    );
                    if let Some(journal) = self.journal_at_rest()? {
                        journal.clock(&order);
                    }
                    self.commit()?;
                }
                drop(answer.send(result));
            }
            Command::Pause(answer) => {
                // What was due by now happens first, so that time stands where nothing is left to do.
                // A node that does not keep up does the rest when time goes on.
                for _ in 0..INSTANTS_BEFORE_PAUSE {
                    if !self.instant(None)? {
                        break;
                    }
                }
                let result = self.clock.halt(Instant::now());
                if let (Ok(order), Some(journal)) = (&result, self.journal_at_rest()?) {
                    journal.clock(order);
                }
                self.commit()?;
                drop(answer.send(result));
            }
            Command::Jobs { jobs, again, answer } => {
                let jobs = if again { self.arrivals.unknown(jobs) } else { jobs };
                let result = self.arrivals.take(&jobs, self.peer.waiting(), &self.grid);
                if let Ok(portion) = result
                    && !jobs.is_empty()
                    && let Some(journal) = self.journal_at_rest()?
                {
                    journal.handed_over(portion, jobs);
                }
                // What is answered is kept.
                self.commit()?;
                if matches!(result, Err(ArrivalsError::Busy { .. })) {
                    self.arrivals_full += 1;
                }
                drop(answer.send(result.map(drop)));
            }
            Command::Events { from, limit, answer } => {
                let page = self.page_of_events(from, limit)?;
                if let Err(NoEvents::Unreadable(error)) = &page {
                    tracing::error!(%error, from, "old events cannot be read; the node goes on");
                }
                drop(answer.send(page));
            }
            Command::Leave(answer) => drop(answer.send(self.leave()?)),
            Command::Adopt(adoptions, answer) => drop(answer.send(self.adopt(&adoptions)?)),
            Command::Links(order, answer) => drop(answer.send(self.cut_links(order)?)),
            Command::Addresses(peers, answer) => {
                self.note_addresses(&peers)?;
                let _ = answer.send(());
            }
            Command::Lockstep(_, answer) => drop(answer.send(self.may_lockstep())),
            Command::Stop { .. } => unreachable!("the loop takes it out"),
        }
        Ok(())
    }

    fn trace_time(&self) -> Time {
        if self.mailbox.is_some() { self.now } else { self.clock.at(Instant::now()) }
    }

    /// The mean injected delay of a link as of now.
    fn configured(&self, from: SiteId, to: SiteId) -> Span {
        self.links.model().link(self.trace_time(), from, to).mean()
    }

    fn limits(&self) -> [(Limit, u64); Limit::ALL.len()] {
        let network = self.sender.counters();
        [
            (Limit::Outbox, network.outbox_full()),
            (Limit::Inbox, network.inbox_full()),
            (Limit::DelayLine, self.delayed_full),
            (Limit::Jobs, self.arrivals_full),
            // With a journal none is forgotten: older ones are read from it.
            (Limit::Events, if self.journal.is_some() { 0 } else { self.events.forgotten() }),
            (Limit::FrameBytes, network.counts().oversized()),
            (Limit::Rate, network.counts().offences(Offence::Rate)),
            (Limit::Connections, network.counts().refused(RefusedConnection::Limit)),
            (Limit::Streams, network.counts().crowded()),
            (Limit::LinkSilence, network.counts().silences()),
            (Limit::ControlConnections, self.control.turned.connections()),
            (Limit::ControlBody, self.control.turned.bodies_long()),
            (Limit::ControlTime, self.control.turned.bodies_slow()),
            (Limit::Plan, self.plan_limit.hits()),
        ]
    }

    fn page(&mut self) -> String {
        let state = self.sender.state();
        self.look_for_rejoin(state.ready());
        for (site, link) in &state.links {
            let configured = self.configured(*site, self.site);
            self.metrics.link(*site, link.connected, link.rtt, configured, self.measured.get(site));
            for way in Way::ALL {
                self.metrics.cut(*site, way.name(), self.cuts.is_cut(way, *site));
            }
        }
        for (limit, hits) in self.limits() {
            self.metrics.limit(limit, hits);
        }
        self.metrics.leaving(self.peer.ledger().transfers_out());
        self.metrics.cuts(&self.cuts.totals());
        self.metrics.refusals(self.sender.counters().counts(), &self.control);
        self.metrics.orphaned(self.control.silent());
        self.metrics.clock(self.trace_time(), state.ready());
        self.metrics.page()
    }

    fn status(&self) -> Status {
        let state = self.sender.state();
        let connected = state.ready();
        let phase = if self.mailbox.is_some() || self.clock.is_running(Instant::now()) {
            Phase::Running
        } else if self.clock.is_armed() {
            Phase::Armed
        } else if connected {
            Phase::Ready
        } else {
            Phase::Connecting
        };
        let links = state.links.iter().map(|(site, link)| LinkStatus {
            site: *site,
            name: self.grid.site(*site).name.clone(),
            connected: link.connected,
            instance: link.instance,
            problem: link.problem.clone(),
            rtt_us: link.rtt.map(|rtt| rtt.as_micros() as u64),
            delay_out_us: self.configured(self.site, *site).as_micros(),
            delay_in_us: self.configured(*site, self.site).as_micros(),
            measured: self.measured.get(site).map(Measured::report),
            cut_to: self.cuts.is_cut(Way::To, *site),
            cut_from: self.cuts.is_cut(Way::From, *site),
        });
        let (submitted, completed) = self.metrics.totals();
        Status {
            site: self.site,
            name: self.grid.site(self.site).name.clone(),
            phase,
            connected,
            instance: self.instance,
            trace_time_us: self.trace_time().as_micros(),
            processors: self.peer.processors(),
            idle: self.peer.free(),
            submitted,
            completed,
            killed: self.metrics.killed(),
            restarts: restarts_of(self.peer.incarnation()),
            events: self.events.next(),
            heartbeats: self.heartbeats,
            paused: self.clock.is_halted(),
            has_left: self.peer.has_left(),
            outstanding: Outstanding {
                arrivals: self.arrivals.held(),
                waiting: self.peer.waiting(),
                running: self.executor.running(),
                leaving: self.peer.ledger().transfers_out().count(),
                delayed: self.delayed.len() - self.heartbeats_delayed
                    + self.mailbox.as_ref().map_or(0, Mailbox::held),
                in_flight: self.sender.counters().in_flight(),
                inbox: self.network.waiting(),
                unanswered: !self.peer.is_quiet(),
            },
            links: links.collect(),
            frames_lost: self.sender.counters().lost(),
            limits_hit: self.limits().map(|(limit, hits)| (limit.name().to_string(), hits)).into(),
            peer_id: state.peer_id,
            listen: state.listen,
        }
    }
}

/// Whether an event tells of a message that says who is there or has what. Those go on for ever; the peer knows which
/// of them somebody must still hear.
fn is_about_a_heartbeat(kind: &EventKind) -> bool {
    use EventKind::{Lost, Received, Sent};
    let (Sent { message, .. } | Received { message, .. } | Lost { message, .. }) = kind else { return false };
    is_heartbeat(*message)
}

fn is_heartbeat(message: MessageKind) -> bool {
    // A floor answers the heartbeat of a site that leaves.
    matches!(message, MessageKind::Heartbeat | MessageKind::Floor | MessageKind::Reports | MessageKind::Noted)
}
