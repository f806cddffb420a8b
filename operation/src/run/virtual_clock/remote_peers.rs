//! Peers that live in node processes: the simulator's loop tells them one thing after another, over a connection for
//! orders to each.
//!
//! What a message says stays between the nodes. The loop gets a token, enough to say when the message is due.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use experiments::interrupt::Interrupt;
use links::Copies;
use node::control::api::MeasuredDelay;
use node::lockstep::{Answer, Client, Due, LinkError, Note, Order, Posted, Reply, Terms};
use node::measured::Measured;
use protocol::{Input, Output};
use scheduler::event::MessageKind;
use scheduler::{Grid, JobIndex, JobSpec, SiteId, Time, TimedJob};
use simulator::host::Standing;
use simulator::{Carried, Host, Violation};

/// A message between two nodes, as far as the loop must know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    from: SiteId,
    to: SiteId,
    posted: Posted,
}

impl Carried for Token {
    fn kind(&self) -> MessageKind {
        self.posted.kind
    }

    fn wakes(&self) -> bool {
        self.posted.wakes
    }

    fn payload(&self) -> u64 {
        self.posted.payload
    }
}

/// What all nodes of a run are told, and what their answers are checked against.
#[derive(Clone, Copy)]
pub struct Common<'a> {
    /// The sites that the nodes are.
    pub grid: &'a Grid,
    /// Every job of the run, with its true run time.
    pub jobs: &'a [TimedJob],
    /// Whether events of single messages are wanted.
    pub message_events: bool,
    /// How long to wait for an answer on the wall clock.
    pub patience: Duration,
    /// Ends the wait for an answer early.
    pub interrupt: &'a Interrupt,
}

/// The connection to one node, and what it must be told next.
struct Remote {
    client: Client,
    /// What it has to know before it is told anything.
    notes: Vec<Note>,
    /// Number of its last message to each site.
    sent: Vec<u64>,
    quiet: bool,
}

/// All nodes of a run.
pub struct RemotePeers<'a> {
    common: Common<'a>,
    index: JobIndex,
    /// One node per site, in the order of rank.
    remotes: Vec<Remote>,
    orders: u64,
    /// The instant of the last order.
    now: Time,
    /// The delays of messages that arrive, by sender and receiver.
    delays: BTreeMap<(SiteId, SiteId), Measured>,
}

impl<'a> RemotePeers<'a> {
    /// Brings all nodes into lockstep, given connections to them in the order of the experiment.
    ///
    /// # Errors
    /// If one does not answer.
    pub fn begin(common: Common<'a>, clients: Vec<Client>) -> Result<RemotePeers<'a>, Violation> {
        let grid = common.grid;
        let remote = |client| Remote { client, notes: Vec::new(), sent: vec![0; grid.len()], quiet: true };
        let mut by_site: Vec<Option<Remote>> = clients.into_iter().map(remote).map(Some).collect();
        let by_rank = (0..grid.len()).map(|rank| by_site[grid.at_rank(rank).index()].take());
        let remotes = by_rank.map(|remote| remote.expect("each site has one rank")).collect();
        let mut peers = RemotePeers {
            index: JobIndex::new(common.jobs),
            common,
            remotes,
            orders: 0,
            now: Time::ZERO,
            delays: BTreeMap::new(),
        };
        // A node waits for a message less long than the coordinator for the node, so that it can say what is missing.
        let terms = Terms { message_events: common.message_events, patience: common.patience / 2 };
        for rank in 0..grid.len() {
            match peers.ask(rank, &Order::Begin(terms))? {
                Reply::Begun => {}
                other => {
                    return Err(peers.nonsense(rank, &format!("it answers {other:?} to the first order")));
                }
            }
        }
        Ok(peers)
    }

    /// How many orders were given.
    pub fn orders(&self) -> u64 {
        self.orders
    }

    /// The delays of the messages from one site to another; `None` if none arrives.
    pub fn delay(&self, from: SiteId, to: SiteId) -> Option<MeasuredDelay> {
        self.delays.get(&(from, to)).map(Measured::report)
    }

    /// Sends an order and waits for the reply.
    fn ask(&mut self, rank: usize, order: &Order) -> Result<Reply, Violation> {
        self.orders += 1;
        let Common { patience, interrupt, .. } = self.common;
        let client = &mut self.remotes[rank].client;
        let asked = client.send(order).and_then(|()| client.receive(patience, &mut || !interrupt.is_set()));
        match asked {
            Ok(Reply::Failed(reason)) => Err(self.failed(rank, reason)),
            Ok(reply) => Ok(reply),
            Err(LinkError::Silent(patience)) => {
                let reason = format!("it did not answer an order within {patience:?} (run.stall_timeout)");
                Err(self.failed(rank, reason))
            }
            Err(error) => Err(self.failed(rank, error.to_string())),
        }
    }

    fn failed(&self, rank: usize, reason: String) -> Violation {
        Violation::Host { site: self.common.grid.at_rank(rank), reason }
    }

    fn nonsense(&self, rank: usize, what: &str) -> Violation {
        self.failed(rank, format!("what it answers makes no sense: {what}"))
    }

    /// What a peer wants as the loop wants it, if it is something that a peer can want.
    fn believed(&mut self, rank: usize, output: Output<Posted>) -> Result<Output<Token>, Violation> {
        let grid = self.common.grid;
        let from = grid.at_rank(rank);
        Ok(match output {
            Output::Event(kind) => Output::Event(kind),
            Output::Stop(job) => Output::Stop(job),
            Output::Start(job) => match self.index.get(job.id) {
                Some(place) if self.common.jobs[place].spec == job => Output::Start(job),
                Some(place) if grid.spreads() && is_part(&job, &self.common.jobs[place].spec) => {
                    self.remotes[rank].notes.push(Note::Waits { job: job.id });
                    Output::Start(job)
                }
                _ => {
                    let what = format!("it starts job {}, which nobody submitted so", job.id);
                    return Err(self.nonsense(rank, &what));
                }
            },
            Output::Send { to, message: posted } => {
                if to.0 == 0 || to.index() >= grid.len() || to == from {
                    return Err(self.nonsense(rank, &format!("it writes to site {to}")));
                }
                let sent = &mut self.remotes[rank].sent[to.index()];
                *sent += 1;
                if posted.number != *sent {
                    let what = format!("message {} to site {to} has the number {}", *sent, posted.number);
                    return Err(self.nonsense(rank, &what));
                }
                Output::Send { to, message: Token { from, to, posted } }
            }
            Output::Write(_) => return Err(self.nonsense(rank, "it keeps a journal")),
        })
    }

    /// What the node is told, with what it must know beforehand.
    fn order(&mut self, rank: usize, now: Time, input: Input<Token>) -> Order {
        let mut notes = std::mem::take(&mut self.remotes[rank].notes);
        let input = match input {
            Input::Submitted(spec) => {
                let place = self.index.get(spec.id).expect("only jobs of the workload are submitted");
                let run_time = self.common.jobs[place].run_time;
                notes.push(Note::RunTime { job: spec.id, run_time });
                Input::Submitted(spec)
            }
            Input::Completed(job) => Input::Completed(job),
            Input::Message { from, message } => {
                Input::Message { from, message: Due { number: message.posted.number } }
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
        Order::Tell { now, notes, inputs: vec![input] }
    }
}

/// Whether it is a job at one of the sites that start it together.
fn is_part(part: &JobSpec, job: &JobSpec) -> bool {
    part.processors > 0
        && part.processors < job.processors
        && JobSpec { processors: job.processors, ..*part } == *job
}

impl Host for RemotePeers<'_> {
    type Message = Token;

    fn tell(
        &mut self,
        rank: usize,
        now: Time,
        input: Input<Token>,
        outputs: &mut VecDeque<Output<Token>>,
    ) -> Result<Standing, Violation> {
        self.now = now;
        let order = self.order(rank, now, input);
        let answers = match self.ask(rank, &order)? {
            Reply::Told(answers) => answers,
            other => return Err(self.nonsense(rank, &format!("{other:?}"))),
        };
        let Ok([Answer { outputs: wanted, timeout, settle, quiet }]) = <[Answer; 1]>::try_from(answers)
        else {
            return Err(self.nonsense(rank, "not one answer to one thing that it was told"));
        };
        for output in wanted {
            outputs.push_back(self.believed(rank, output)?);
        }
        self.remotes[rank].quiet = quiet;
        Ok(Standing { timeout, settle })
    }

    fn posted(&mut self, to: usize, token: &Token, copies: Copies) -> Result<(), Violation> {
        let Token { from, to: receiver, posted } = *token;
        for delay in copies.arriving() {
            // The model decides when a message arrives, and then it does: all of its delay is injected.
            self.delays.entry((from, receiver)).or_default().add(delay, delay, posted.number);
        }
        let copies = copies.arriving().count();
        if copies == 1 {
            return Ok(());
        }
        let note = Note::Copies { from, number: posted.number, copies: copies as u8 };
        self.remotes[to].notes.push(note);
        if copies == 0 {
            let sender = self.common.grid.rank(from);
            let lost = Note::Lost { at: self.now, to: receiver, kind: posted.kind };
            self.remotes[sender].notes.push(lost);
        }
        Ok(())
    }

    fn begins(&mut self, rank: usize, at: Time, part: &JobSpec) {
        self.remotes[rank].notes.push(Note::Begins { part: *part, at });
    }

    fn is_quiet(&self, rank: usize) -> bool {
        self.remotes[rank].quiet
    }
}
