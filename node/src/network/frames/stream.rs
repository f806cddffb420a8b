//! One end of the stream of one connection.
//!
//! The node that dialed opens the stream. Frames leave in the order in which they are given, and are answered in that
//! order; answers wait a moment for a frame to share a packet with. A frame that is not answered in time is lost.

use std::collections::VecDeque;
use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::{AsyncRead, AsyncWrite};
use libp2p::StreamProtocol;
use libp2p::core::upgrade::ReadyUpgrade;
use libp2p::swarm::handler::{
    ConnectionEvent, DialUpgradeError, FullyNegotiatedInbound, FullyNegotiatedOutbound,
};
use libp2p::swarm::{ConnectionHandler, ConnectionHandlerEvent, Stream, SubstreamProtocol};
use tokio::time::{Instant, Sleep};

use super::super::codec::Answer;
use super::record::{self, Incoming, Record};

/// A frame that is not answered by then is lost.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// How long answers wait for a frame that goes the same way. Far below any timeout, and longer than a node takes to
/// answer a request with a grant.
const ANSWERS_WAIT: Duration = Duration::from_millis(2);
/// This many answers do not wait: a quarter of what a sender may have unanswered.
const ANSWERS_WAIT_MAX: usize = super::super::IN_FLIGHT_MAX / 4;
/// A node that takes no answers for so many of its frames wants to fill this node's memory.
const ANSWERS_MAX: usize = 64 * 1024;
/// Frames are put together up to about this many bytes before they are written. Arbitrary; some packets.
const WRITE_BYTES: usize = 64 * 1024;
/// Bytes read at once.
const READ_BYTES: usize = 16 * 1024;

/// What the stream is told.
#[derive(Debug)]
pub(in crate::network) enum Command {
    /// Open it, if this is the side to do so: the other node is of this run.
    Open,
    /// Send a frame, known by a number.
    Send { id: u64, frame: Vec<u8> },
    /// The oldest frame that arrived and was not answered is answered by this.
    Answer(Answer),
    /// Read nothing until then.
    Pause(Instant),
}

/// What the stream tells.
#[derive(Debug)]
pub(in crate::network) enum Report {
    Arrived(Vec<u8>),
    Answered {
        id: u64,
        answer: Answer,
    },
    Lost {
        id: u64,
    },
    /// The stream is gone, and so should be the connection. Whether the other node broke its rules.
    Broken {
        reason: String,
        fault: Option<Fault>,
    },
}

/// How the other node broke the rules of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::network) enum Fault {
    /// A frame that is too long.
    Oversize,
    /// Any other breach: an unknown record, an answer to nothing, or answers that are not taken.
    Other,
}

/// A frame without an answer.
struct Unanswered {
    id: u64,
    due: Instant,
}

/// The handler of one connection.
pub(in crate::network) struct FrameStream {
    protocol: StreamProtocol,
    dialer: bool,
    /// Whether the stream is to be asked for, and whether it was.
    to_open: bool,
    asked: bool,
    stream: Option<Stream>,
    broken: bool,
    queue: VecDeque<Vec<u8>>,
    /// In the order of sending; the first `expired` of them count as lost.
    unanswered: VecDeque<Unanswered>,
    expired: usize,
    timeout: Option<Pin<Box<Sleep>>>,
    /// Answers as bytes that were not written.
    answers: Vec<u8>,
    answers_wait: Option<Pin<Box<Sleep>>>,
    outgoing: Vec<u8>,
    written: usize,
    to_flush: bool,
    incoming: Incoming,
    buffer: Box<[u8]>,
    /// Nothing is read before.
    paused: Option<Pin<Box<Sleep>>>,
    reports: VecDeque<Report>,
}

impl FrameStream {
    pub(super) fn new(protocol: StreamProtocol, bytes_max: usize, dialer: bool) -> FrameStream {
        FrameStream {
            protocol,
            dialer,
            to_open: false,
            asked: false,
            stream: None,
            broken: false,
            queue: VecDeque::new(),
            unanswered: VecDeque::new(),
            expired: 0,
            timeout: None,
            answers: Vec::new(),
            answers_wait: None,
            outgoing: Vec::new(),
            written: 0,
            to_flush: false,
            incoming: Incoming::new(bytes_max),
            buffer: vec![0; READ_BYTES].into_boxed_slice(),
            paused: None,
            reports: VecDeque::new(),
        }
    }

    fn fail(&mut self, reason: String, fault: Option<Fault>) {
        self.stream = None;
        self.broken = true;
        self.queue.clear();
        let lost = self.unanswered.drain(..).skip(self.expired).map(|frame| Report::Lost { id: frame.id });
        self.reports.extend(lost);
        self.expired = 0;
        self.reports.push_back(Report::Broken { reason, fault });
    }

    /// Gives frames up that were not answered in time.
    fn expire(&mut self, cx: &mut Context<'_>) {
        while let Some(oldest) = self.unanswered.get(self.expired) {
            let due = oldest.due;
            let timer = self.timeout.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(due)));
            if timer.as_mut().poll(cx).is_pending() {
                return;
            }
            if due <= Instant::now() {
                self.reports.push_back(Report::Lost { id: oldest.id });
                self.expired += 1;
            }
            self.timeout = None;
        }
    }

    /// Whether answers are to be written now, with or without a frame.
    fn answers_are_due(&mut self, cx: &mut Context<'_>) -> bool {
        if self.answers.is_empty() {
            return false;
        }
        if self.answers.len() >= ANSWERS_WAIT_MAX {
            return true;
        }
        let timer = self.answers_wait.get_or_insert_with(|| Box::pin(tokio::time::sleep(ANSWERS_WAIT)));
        timer.as_mut().poll(cx).is_ready()
    }

    /// Puts together what is to be written next.
    fn fill(&mut self, cx: &mut Context<'_>) {
        if self.queue.is_empty() && !self.answers_are_due(cx) {
            return;
        }
        record::put_answers(&mut self.outgoing, &mut self.answers);
        self.answers_wait = None;
        while self.outgoing.len() < WRITE_BYTES
            && let Some(frame) = self.queue.pop_front()
        {
            record::put_frame(&mut self.outgoing, &frame);
        }
    }

    fn write(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        loop {
            if self.written == self.outgoing.len() {
                self.outgoing.clear();
                self.written = 0;
                self.fill(cx);
            }
            let Some(stream) = &mut self.stream else { return Ok(()) };
            let mut stream = Pin::new(stream);
            if self.outgoing.is_empty() {
                if self.to_flush && stream.as_mut().poll_flush(cx)?.is_ready() {
                    self.to_flush = false;
                }
                return Ok(());
            }
            match stream.as_mut().poll_write(cx, &self.outgoing[self.written..])? {
                Poll::Ready(0) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(count) => {
                    self.written += count;
                    self.to_flush = true;
                }
                Poll::Pending => return Ok(()),
            }
        }
    }

    fn read(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        if let Some(pause) = &mut self.paused {
            if pause.as_mut().poll(cx).is_pending() {
                return Ok(());
            }
            self.paused = None;
        }
        while self.reports.is_empty() {
            let Some(stream) = &mut self.stream else { return Ok(()) };
            let count = match Pin::new(stream).poll_read(cx, &mut self.buffer)? {
                Poll::Ready(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Poll::Ready(count) => count,
                Poll::Pending => return Ok(()),
            };
            let FrameStream { incoming, buffer, reports, unanswered, expired, .. } = self;
            let mut unasked = false;
            incoming.add(&buffer[..count], &mut |record| match record {
                Record::Frame(frame) => reports.push_back(Report::Arrived(frame)),
                Record::Answer(answer) => match unanswered.pop_front() {
                    // Too late: it counts as lost.
                    Some(_) if *expired > 0 => *expired -= 1,
                    Some(Unanswered { id, .. }) => reports.push_back(Report::Answered { id, answer }),
                    None => unasked = true,
                },
            })?;
            if unasked {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "an answer to no frame"));
            }
        }
        Ok(())
    }
}

impl ConnectionHandler for FrameStream {
    type FromBehaviour = Command;
    type ToBehaviour = Report;
    type InboundProtocol = ReadyUpgrade<StreamProtocol>;
    type OutboundProtocol = ReadyUpgrade<StreamProtocol>;
    type InboundOpenInfo = ();
    type OutboundOpenInfo = ();

    fn listen_protocol(&self) -> SubstreamProtocol<Self::InboundProtocol> {
        SubstreamProtocol::new(ReadyUpgrade::new(self.protocol.clone()), ())
    }

    fn poll(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<ConnectionHandlerEvent<Self::OutboundProtocol, (), Report>> {
        if let Some(report) = self.reports.pop_front() {
            return Poll::Ready(ConnectionHandlerEvent::NotifyBehaviour(report));
        }
        if self.to_open && !self.asked {
            self.asked = true;
            let protocol = SubstreamProtocol::new(ReadyUpgrade::new(self.protocol.clone()), ());
            return Poll::Ready(ConnectionHandlerEvent::OutboundSubstreamRequest { protocol });
        }
        self.expire(cx);
        if self.stream.is_some()
            && let Err(error) = self.write(cx).and_then(|()| self.read(cx))
        {
            let fault = match error.kind() {
                io::ErrorKind::InvalidData if record::is_oversize(&error) => Some(Fault::Oversize),
                io::ErrorKind::InvalidData => Some(Fault::Other),
                _ => None,
            };
            self.fail(error.to_string(), fault);
        }
        match self.reports.pop_front() {
            Some(report) => Poll::Ready(ConnectionHandlerEvent::NotifyBehaviour(report)),
            None => Poll::Pending,
        }
    }

    fn on_behaviour_event(&mut self, command: Command) {
        match command {
            Command::Open => self.to_open = self.dialer,
            Command::Send { id, .. } if self.broken => self.reports.push_back(Report::Lost { id }),
            Command::Send { id, frame } => {
                self.unanswered.push_back(Unanswered { id, due: Instant::now() + ANSWER_TIMEOUT });
                self.queue.push_back(frame);
            }
            Command::Answer(_) if self.broken => {}
            Command::Answer(_) if self.answers.len() >= ANSWERS_MAX => {
                self.fail("the other node takes no answers".to_string(), Some(Fault::Other));
            }
            Command::Answer(answer) => self.answers.push(answer.to_byte()),
            Command::Pause(until) => {
                let until = self.paused.as_ref().map_or(until, |pause| pause.deadline().max(until));
                self.paused = Some(Box::pin(tokio::time::sleep_until(until)));
            }
        }
    }

    fn on_connection_event(
        &mut self,
        event: ConnectionEvent<'_, Self::InboundProtocol, Self::OutboundProtocol>,
    ) {
        match event {
            ConnectionEvent::FullyNegotiatedInbound(FullyNegotiatedInbound { protocol, .. })
                if !self.dialer && self.stream.is_none() && !self.broken =>
            {
                self.stream = Some(protocol);
            }
            ConnectionEvent::FullyNegotiatedOutbound(FullyNegotiatedOutbound { protocol, .. }) => {
                self.stream = Some(protocol);
                // The other node sees the stream with its first bytes, and may want to use it first.
                record::put_nothing(&mut self.outgoing);
            }
            ConnectionEvent::DialUpgradeError(DialUpgradeError { error, .. }) => {
                self.fail(format!("the stream for frames does not open: {error}"), None);
            }
            // A second stream is dropped, which closes it.
            _ => {}
        }
    }
}
