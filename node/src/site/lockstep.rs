//! The site loop in lockstep: time goes by the coordinator's orders; see [`crate::lockstep`].
//!
//! Peer, codec, network, executor, metrics and event log are those of a node with a clock. Messages leave at once and
//! wait in the receiver's mailbox until the coordinator says that they are due: the delay is the coordinator's.
//! Everything else that is asked of the node is answered meanwhile.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use protocol::{Input, Output};
use scheduler::{EventKind, SiteId, Time};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::Instant;

use super::SiteLoop;
use crate::arrivals::ArrivalsError;
use crate::clock::ClockError;
use crate::control::{Command, Occupied};
use crate::executor::End;
use crate::lockstep::wire::{self, Incoming};
use crate::lockstep::{Answer, Due, Mailbox, Note, Order, Posted, Reply, Terms};
use crate::metrics::Direction;
use crate::network::{Arrival, Outgoing};

/// The coordinator has its answer to the upgrade within a moment, or is gone.
const UPGRADE_TIMEOUT: Duration = Duration::from_secs(5);
/// How often the connection to the sender of an awaited message is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Room for the next order; most take a hundred bytes.
const READ_BYTES: usize = 4096;

/// Why an order cannot be carried out, in words for the coordinator.
type Reason = String;

/// An order that is being carried out.
struct Pending {
    /// Whether it is the first.
    begin: bool,
    inputs: VecDeque<Input<Due>>,
    answers: Vec<Answer>,
    since: Instant,
}

/// The connection to the coordinator, and what it has ordered.
struct Session {
    connection: TokioIo<Upgraded>,
    incoming: Incoming,
    outgoing: Vec<u8>,
    terms: Option<Terms>,
    pending: Option<Pending>,
    /// Why no further order can be carried out.
    broken: Option<Reason>,
    #[cfg(feature = "mutant")]
    mutant: mutant::Mutant,
}

impl SiteLoop {
    /// Whether the node is free for a run in lockstep.
    pub(super) fn may_lockstep(&self) -> Result<(), Occupied> {
        let free = self.mailbox.is_none()
            && !self.clock.is_armed()
            && self.arrivals.held() == 0
            && self.journal.is_none()
            // Nobody could say beforehand when a command ends.
            && !self.executor.is_outside();
        if free { Ok(()) } else { Err(Occupied) }
    }

    /// Does what the coordinator orders until the node is told to stop; false if there is no coordinator.
    pub(super) async fn lockstep(&mut self, upgrade: OnUpgrade) -> anyhow::Result<bool> {
        let connection = match tokio::time::timeout(UPGRADE_TIMEOUT, upgrade).await {
            Ok(Ok(upgraded)) => TokioIo::new(upgraded),
            Ok(Err(error)) => {
                tracing::warn!(%error, "the coordinator has gone before its first order");
                return Ok(false);
            }
            Err(_) => {
                tracing::warn!("the coordinator did not take the connection for orders");
                return Ok(false);
            }
        };
        tracing::info!("time goes by the coordinator's orders");
        self.mailbox = Some(Mailbox::new(self.delay_line_max));
        self.plan_limit.lift();
        let mut session = Some(Session::new(connection));
        loop {
            if let Some(open) = &mut session
                && let Some(reply) = self.reply(open)
                && let Err(error) = open.send(&reply).await
            {
                tracing::warn!(%error, "the coordinator does not take a reply");
                session = None;
            }
            let waiting = session.as_ref().is_some_and(|open| open.pending.is_some());
            tokio::select! {
                biased; // What other sites sent first: an order may wait for it. Then the operator, then orders.
                arrival = self.network.next() => match arrival {
                    Some(arrival) => self.hold(arrival, &mut session),
                    None => anyhow::bail!("the network has failed; see the log"),
                },
                command = self.commands.recv() => match command {
                    Some(Command::Stop { left, answer }) => {
                        if self.may_stop(left, answer) {
                            return Ok(true);
                        }
                    }
                    Some(Command::Start(_, answer)) => drop(answer.send(Err(ClockError::Lockstep))),
                    Some(Command::Jobs { answer, .. }) => drop(answer.send(Err(ArrivalsError::Lockstep))),
                    Some(command) => self.on_command(command)?,
                    None => return Ok(true), // Every operator is gone.
                },
                order = next_order(&mut session), if !waiting => match order {
                    Ok(order) => self.take(session.as_mut().expect("it gave an order"), order),
                    Err(error) => {
                        tracing::info!(%error, "there are no more orders");
                        session = None;
                    }
                },
                () = tokio::time::sleep(LOOK_EVERY), if waiting => {}
            }
        }
    }

    /// Takes an order in. What it wants done is done by [`SiteLoop::reply`].
    fn take(&mut self, session: &mut Session, order: Order) {
        self.control.ask();
        let begin = matches!(order, Order::Begin(_));
        if let Err(reason) = order.check(&self.grid) {
            session.broken.get_or_insert(reason);
        }
        let (now, notes, inputs) = match order {
            Order::Begin(terms) => {
                session.terms = Some(terms);
                (self.now, Vec::new(), Vec::new())
            }
            Order::Tell { now, notes, inputs } => (now, notes, inputs),
        };
        session.pending =
            Some(Pending { begin, inputs: inputs.into(), answers: Vec::new(), since: Instant::now() });
        if session.broken.is_none()
            && let Err(reason) = self.enter(now, notes)
        {
            session.broken = Some(reason);
        }
    }

    /// Goes to the instant of an order.
    fn enter(&mut self, now: Time, notes: Vec<Note>) -> Result<(), Reason> {
        for note in notes {
            match note {
                Note::Lost { at, to, kind } => {
                    let event = EventKind::Lost { to, message: kind };
                    self.record_at(at, event).map_err(|error| error.to_string())?;
                }
                Note::Copies { from, number, copies } => self.mailbox().expect(from, number, copies),
                Note::RunTime { job, run_time } => self.executor.learn(job, run_time),
                Note::Waits { job } => self.executor.stop(job),
                Note::Begins { part, at } => {
                    self.executor.start(at, &part).map_err(|error| error.to_string())?;
                }
            }
        }
        // The first instant may be before the zero of trace time, at which an idle node stands.
        if now < self.now && self.awake {
            return Err(format!("time would run backwards, from {} to {now}", self.now));
        }
        (self.now, self.awake) = (now, true);
        Ok(())
    }

    /// Carries the pending order out as far as possible; the reply if that is to its end.
    fn reply(&mut self, session: &mut Session) -> Option<Reply> {
        let mut pending = session.pending.take()?;
        if session.broken.is_none()
            && let Err(reason) = self.carry_out(session, &mut pending)
        {
            session.broken = Some(reason);
        }
        if let Some(reason) = &session.broken {
            tracing::error!(reason, "an order cannot be carried out");
            return Some(Reply::Failed(reason.clone()));
        }
        if !pending.inputs.is_empty() {
            session.pending = Some(pending);
            return None;
        }
        Some(if pending.begin { Reply::Begun } else { Reply::Told(pending.answers) })
    }

    /// Tells the peer what an order says, up to a message that is not here.
    fn carry_out(&mut self, session: &mut Session, pending: &mut Pending) -> Result<(), Reason> {
        let Some(terms) = session.terms else {
            return Err("the first order is not how to answer".to_string());
        };
        while let Some(input) = pending.inputs.front() {
            let input = match *input {
                Input::Submitted(job) => {
                    if self.executor.run_time(job.id).is_none() {
                        return Err(format!(
                            "job {} is submitted, and no note says how long it runs",
                            job.id
                        ));
                    }
                    self.metrics.introduce(&job);
                    Input::Submitted(job)
                }
                Input::Completed(job) => match self.executor.pop_due(self.now) {
                    Some(End { at, job: ended, .. }) if (at, ended) == (self.now, job) => {
                        Input::Completed(job)
                    }
                    ended => {
                        let now = self.now;
                        return Err(format!("job {job} is said to end at {now}; here that is {ended:?}"));
                    }
                },
                Input::Message { from, message: Due { number } } => {
                    let Some(frame) = self.mailbox().take(from, number) else {
                        return self.await_message(from, number, pending.since, terms.patience);
                    };
                    let Some(message) = self.read(&frame) else {
                        return Err(format!("message {number} of site {from} cannot be read"));
                    };
                    Input::Message { from, message }
                }
                Input::Turn => Input::Turn,
                Input::Settle => Input::Settle,
                Input::Timeout => Input::Timeout,
                Input::Begun(job) => Input::Begun(job),
                Input::Kept { to, number } => Input::Kept { to, number },
                Input::Foreign(processors) => Input::Foreign(processors),
                Input::Leave => Input::Leave,
                Input::Adopt { job, epoch } => Input::Adopt { job, epoch },
            };
            pending.inputs.pop_front();
            #[cfg(feature = "mutant")]
            let Some(input) = session.mutant.spoil(input) else {
                pending.answers.push(self.answer(Vec::new()));
                continue;
            };
            let mut outputs = Vec::new();
            self.tell_in_lockstep(input, terms, &mut outputs).map_err(|error| format!("{error:#}"))?;
            #[cfg(feature = "mutant")]
            while let Some(input) = session.mutant.late() {
                self.tell_in_lockstep(input, terms, &mut outputs).map_err(|error| format!("{error:#}"))?;
            }
            pending.answers.push(self.answer(outputs));
        }
        Ok(())
    }

    /// Tells the peer one thing, carries out what it wants done here, and lists all that it wants.
    fn tell_in_lockstep(
        &mut self,
        input: Input,
        terms: Terms,
        outputs: &mut Vec<Output<Posted>>,
    ) -> anyhow::Result<()> {
        self.peer.handle(self.now, input);
        while let Some(output) = self.peer.poll_output() {
            match output {
                Output::Start(job) => {
                    self.executor.start(self.now, &job)?;
                    outputs.push(Output::Start(job));
                }
                Output::Stop(job) => {
                    self.executor.stop(job);
                    outputs.push(Output::Stop(job));
                }
                Output::Send { to, message } => {
                    let frame = self.pack(to, &message);
                    self.metrics.carried(message.kind(), Direction::Sent, frame.size());
                    let number = frame.sequence;
                    if !self.sender.send(Outgoing { to, kind: message.kind(), bytes: frame.encode() }) {
                        anyhow::bail!("too many messages to site {to} are under way over the network");
                    }
                    let (kind, wakes, payload) = (message.kind(), message.wakes(), message.payload());
                    outputs.push(Output::Send { to, message: Posted { number, kind, wakes, payload } });
                }
                Output::Write(_) => unreachable!("a node with a journal does not run in lockstep"),
                Output::Event(kind) => {
                    self.record(kind)?;
                    if terms.message_events || !is_about_a_message(&kind) {
                        outputs.push(Output::Event(kind));
                    }
                }
            }
        }
        // The coordinator knows these from its own executor.
        self.record_paces()?;
        Ok(())
    }

    fn answer(&self, outputs: Vec<Output<Posted>>) -> Answer {
        Answer {
            outputs,
            timeout: self.peer.poll_timeout(),
            settle: self.peer.wants_settle(),
            quiet: self.peer.is_quiet(),
        }
    }

    /// Whether it is worth waiting for a message any longer.
    fn await_message(
        &self,
        from: SiteId,
        number: u64,
        since: Instant,
        patience: Duration,
    ) -> Result<(), Reason> {
        let waited = since.elapsed();
        if waited < LOOK_EVERY {
            return Ok(());
        }
        let name = &self.grid.site(from).name;
        let connected = self.sender.state().links.get(&from).is_some_and(|link| link.connected);
        if !connected && self.network.waiting() == 0 {
            return Err(format!(
                "message {number} of site {name} did not arrive, and the connection to that site is gone"
            ));
        }
        if waited >= patience {
            return Err(format!("message {number} of site {name} did not arrive within {patience:?}"));
        }
        Ok(())
    }

    /// Keeps what the network delivers until it is due.
    fn hold(&mut self, arrival: Arrival, session: &mut Option<Session>) {
        let held = match arrival {
            Arrival::Frame { from, instance, bytes } => match self.unpack(from, instance, &bytes) {
                Some(frame) => self.mailbox().put(frame).map_err(|error| error.to_string()),
                None => Ok(()),
            },
            Arrival::Lost { to, kind } => {
                let name = &self.grid.site(to).name;
                Err(format!("the network lost a message ({}) to site {name}", kind.name()))
            }
        };
        if let (Err(reason), Some(session)) = (held, session) {
            session.broken.get_or_insert(reason);
        }
    }

    fn mailbox(&mut self) -> &mut Mailbox {
        self.mailbox.as_mut().expect("a node in lockstep has a mailbox")
    }
}

impl Session {
    fn new(connection: TokioIo<Upgraded>) -> Session {
        Session {
            connection,
            incoming: Incoming::default(),
            outgoing: Vec::new(),
            terms: None,
            pending: None,
            broken: None,
            #[cfg(feature = "mutant")]
            mutant: mutant::Mutant::from_environment(),
        }
    }

    async fn send(&mut self, reply: &Reply) -> io::Result<()> {
        self.outgoing.clear();
        if let Err(error) = wire::put(&mut self.outgoing, reply) {
            let failed = Reply::Failed(format!("its reply cannot be sent: {error}"));
            wire::put(&mut self.outgoing, &failed).expect("a sentence is short");
        }
        self.connection.write_all(&self.outgoing).await
    }
}

/// The next order, as soon as all of it is there; never without a coordinator. Can be cancelled: bytes that came are
/// kept.
async fn next_order(session: &mut Option<Session>) -> io::Result<Order> {
    let Some(session) = session else { return std::future::pending().await };
    loop {
        let taken = session.incoming.take();
        match taken.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))? {
            Some(order) => return Ok(order),
            None => {
                let space = session.incoming.space();
                space.reserve(READ_BYTES);
                if session.connection.read_buf(space).await? == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
        }
    }
}

/// Whether an event is about a single message, which an experiment may not want.
fn is_about_a_message(kind: &EventKind) -> bool {
    matches!(kind, EventKind::Sent { .. } | EventKind::Received { .. })
}

/// A node that handles its messages wrongly, if the environment asks for it.
#[cfg(feature = "mutant")]
mod mutant {
    use protocol::Input;

    /// Which message of a node is spoilt. Arbitrary; early enough for short tests.
    const SPOILT: u64 = 10;

    #[derive(Default)]
    pub(super) struct Mutant {
        mistake: Option<String>,
        messages: u64,
        kept: Option<Input>,
        late: Option<Input>,
    }

    impl Mutant {
        /// `STEALGRID_MUTANT` is `drop`, `swap`, something else, or not set.
        pub(super) fn from_environment() -> Mutant {
            Mutant { mistake: std::env::var("STEALGRID_MUTANT").ok(), ..Mutant::default() }
        }

        /// What the peer is told instead.
        pub(super) fn spoil(&mut self, input: Input) -> Option<Input> {
            if !matches!(input, Input::Message { .. }) {
                return Some(input);
            }
            self.messages += 1;
            match self.mistake.as_deref() {
                Some("drop") if self.messages == SPOILT => None,
                Some("swap") if self.messages == SPOILT => {
                    self.kept = Some(input);
                    None
                }
                Some("swap") => {
                    self.late = self.kept.take();
                    Some(input)
                }
                _ => Some(input),
            }
        }

        /// What the peer is told in addition.
        pub(super) fn late(&mut self) -> Option<Input> {
            self.late.take()
        }
    }
}
