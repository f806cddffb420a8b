//! Frames between nodes: one stream for each connection, open as long as the connection, used both ways.
//!
//! Every frame is answered by one byte, or lost: with the connection, or because no answer came in time. Frames over
//! one connection arrive in the order in which they were sent.

pub(super) mod record;
mod stream;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::task::{Context, Poll};

use libp2p::core::Endpoint;
use libp2p::core::transport::PortUse;
use libp2p::swarm::behaviour::{ConnectionClosed, ConnectionEstablished};
use libp2p::swarm::{
    ConnectionDenied, ConnectionId, FromSwarm, NetworkBehaviour, NotifyHandler, THandler, THandlerInEvent,
    THandlerOutEvent, ToSwarm,
};
use libp2p::{Multiaddr, PeerId, StreamProtocol};
use tokio::time::Instant;

pub(super) use self::stream::Fault;
use self::stream::{Command, FrameStream, Report};
use super::codec::Answer;

/// What became of frames.
#[derive(Debug)]
pub(super) enum FrameEvent {
    /// One arrived. [`Frames::answer`] is owed for each, in order.
    Arrived { peer: PeerId, connection: ConnectionId, frame: Vec<u8> },
    /// One of ours was answered.
    Answered { id: u64, answer: Answer },
    /// One of ours was not.
    Lost { id: u64 },
    /// A connection can carry no frames.
    Broken { peer: PeerId, connection: ConnectionId, reason: String, fault: Option<Fault> },
}

/// All streams of a node.
pub(super) struct Frames {
    protocol: StreamProtocol,
    bytes_max: usize,
    /// Connections of each peer, oldest first.
    connections: BTreeMap<PeerId, Vec<ConnectionId>>,
    /// Frames without an answer.
    unanswered: BTreeSet<(ConnectionId, u64)>,
    last_id: u64,
    events: VecDeque<ToSwarm<FrameEvent, Command>>,
}

impl Frames {
    /// For frames of at most so many bytes.
    pub(super) fn new(protocol: StreamProtocol, bytes_max: usize) -> Frames {
        Frames {
            protocol,
            bytes_max,
            connections: BTreeMap::new(),
            unanswered: BTreeSet::new(),
            last_id: 0,
            events: VecDeque::new(),
        }
    }

    /// Opens the stream of each connection to a peer that is known to be of this run.
    pub(super) fn open(&mut self, peer: PeerId) {
        for connection in self.connections.get(&peer).cloned().unwrap_or_default() {
            self.command(peer, connection, Command::Open);
        }
    }

    /// Sends a frame; its number, by which [`FrameEvent`] tells what became of it.
    pub(super) fn send(&mut self, peer: PeerId, frame: Vec<u8>) -> u64 {
        self.last_id += 1;
        let id = self.last_id;
        let connection = self.connections.get(&peer).and_then(|connections| connections.first());
        match connection.copied().filter(|_| frame.len() <= self.bytes_max) {
            Some(connection) => {
                self.unanswered.insert((connection, id));
                self.command(peer, connection, Command::Send { id, frame });
            }
            None => self.events.push_back(ToSwarm::GenerateEvent(FrameEvent::Lost { id })),
        }
        id
    }

    /// Answers the oldest unanswered frame of a connection.
    pub(super) fn answer(&mut self, peer: PeerId, connection: ConnectionId, answer: Answer) {
        self.command(peer, connection, Command::Answer(answer));
    }

    /// Reads nothing from a peer until then.
    pub(super) fn pause(&mut self, peer: PeerId, until: Instant) {
        for connection in self.connections.get(&peer).cloned().unwrap_or_default() {
            self.command(peer, connection, Command::Pause(until));
        }
    }

    fn command(&mut self, peer_id: PeerId, connection: ConnectionId, event: Command) {
        self.events.push_back(ToSwarm::NotifyHandler {
            peer_id,
            handler: NotifyHandler::One(connection),
            event,
        });
    }

    fn on_closed(&mut self, peer: PeerId, connection: ConnectionId) {
        if let Some(connections) = self.connections.get_mut(&peer) {
            connections.retain(|other| *other != connection);
            if connections.is_empty() {
                self.connections.remove(&peer);
            }
        }
        let lost: Vec<_> = self.unanswered.range((connection, 0)..=(connection, u64::MAX)).copied().collect();
        for (connection, id) in lost {
            self.unanswered.remove(&(connection, id));
            self.events.push_back(ToSwarm::GenerateEvent(FrameEvent::Lost { id }));
        }
    }

    fn stream(&self, dialer: bool) -> FrameStream {
        FrameStream::new(self.protocol.clone(), self.bytes_max, dialer)
    }
}

impl NetworkBehaviour for Frames {
    type ConnectionHandler = FrameStream;
    type ToSwarm = FrameEvent;

    fn handle_established_inbound_connection(
        &mut self,
        _: ConnectionId,
        _: PeerId,
        _: &Multiaddr,
        _: &Multiaddr,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        Ok(self.stream(false))
    }

    fn handle_established_outbound_connection(
        &mut self,
        _: ConnectionId,
        _: PeerId,
        _: &Multiaddr,
        _: Endpoint,
        _: PortUse,
    ) -> Result<THandler<Self>, ConnectionDenied> {
        Ok(self.stream(true))
    }

    fn on_swarm_event(&mut self, event: FromSwarm<'_>) {
        match event {
            FromSwarm::ConnectionEstablished(ConnectionEstablished { peer_id, connection_id, .. }) => {
                self.connections.entry(peer_id).or_default().push(connection_id);
            }
            FromSwarm::ConnectionClosed(ConnectionClosed { peer_id, connection_id, .. }) => {
                self.on_closed(peer_id, connection_id);
            }
            _ => {}
        }
    }

    fn on_connection_handler_event(
        &mut self,
        peer: PeerId,
        connection: ConnectionId,
        report: THandlerOutEvent<Self>,
    ) {
        let event = match report {
            Report::Arrived(frame) => FrameEvent::Arrived { peer, connection, frame },
            // What was lost with its connection is not lost again.
            Report::Answered { id, .. } | Report::Lost { id }
                if !self.unanswered.remove(&(connection, id)) =>
            {
                return;
            }
            Report::Answered { id, answer } => FrameEvent::Answered { id, answer },
            Report::Lost { id } => FrameEvent::Lost { id },
            Report::Broken { reason, fault } => FrameEvent::Broken { peer, connection, reason, fault },
        };
        self.events.push_back(ToSwarm::GenerateEvent(event));
    }

    fn poll(&mut self, _: &mut Context<'_>) -> Poll<ToSwarm<FrameEvent, THandlerInEvent<Self>>> {
        self.events.pop_front().map_or(Poll::Pending, Poll::Ready)
    }
}
