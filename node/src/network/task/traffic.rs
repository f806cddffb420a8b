//! Frames and probes: what is sent to whom, what arrives, and what is lost.

use std::sync::atomic::Ordering;
use std::time::Duration;

use libp2p::PeerId;
use scheduler::SiteId;
use scheduler::event::MessageKind;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::{NetworkTask, Peer, Sent};
use crate::network::codec::{Answer, Request};
use crate::network::frames::{Fault, FrameEvent};
use crate::network::{Arrival, IN_FLIGHT_MAX, OUTBOX_MAX, Offence, Outgoing, Place, Refusal};

/// Content of a probe: the size of a request for work.
const PROBE_BYTES: usize = 128;

impl NetworkTask {
    pub(super) fn on_frame_event(&mut self, event: FrameEvent) {
        match event {
            FrameEvent::Arrived { peer, connection, frame } => {
                self.count_rate(peer, false);
                let answer = self.on_frame(peer, frame);
                self.count_refusal(answer);
                self.swarm.behaviour_mut().frames.answer(peer, connection, answer);
            }
            FrameEvent::Answered { id, answer } => {
                let Some(Sent { peer, to, kind }) = self.sent.remove(&id) else { return };
                if answer == Answer::Taken {
                    self.counters.in_flight.fetch_sub(1, Ordering::Relaxed);
                } else {
                    tracing::debug!(to = to.0, ?answer, "a frame was not taken");
                    self.lose(to, kind);
                }
                self.free_place(peer);
            }
            FrameEvent::Lost { id } => {
                let Some(Sent { peer, to, kind }) = self.sent.remove(&id) else { return };
                tracing::debug!(to = to.0, "a frame was lost");
                self.lose(to, kind);
                self.free_place(peer);
            }
            FrameEvent::Broken { peer, connection, reason, fault } => {
                tracing::debug!(%peer, reason, "a connection carries no frames");
                if fault == Some(Fault::Oversize) {
                    self.counters.counts().oversize();
                }
                if fault.is_some() && self.listed(peer).is_some() {
                    self.offend(peer, Offence::Stream);
                }
                self.swarm.close_connection(connection);
            }
        }
    }

    fn on_frame(&mut self, peer_id: PeerId, bytes: Vec<u8>) -> Answer {
        let Some(Peer { site: Some(from), instance, refused: false, .. }) = self.peers.get(&peer_id) else {
            return Answer::Refused(Refusal::NotIntroduced);
        };
        let place = Place::take(&self.counters, &self.config.limits, *from, bytes.len());
        let arrival = Arrival::Frame { from: *from, instance: *instance, bytes };
        if place.is_none() || self.arrivals.try_send((arrival, place)).is_err() {
            self.counters.inbox_full.fetch_add(1, Ordering::Relaxed);
            return Answer::Full;
        }
        Answer::Taken
    }

    pub(super) fn send(&mut self, outgoing: Outgoing) {
        let peer_id = self.sites.get(&outgoing.to).copied();
        let peer = peer_id.and_then(|id| self.peers.get_mut(&id)).filter(|peer| peer.taken && !peer.refused);
        let (Some(peer_id), Some(peer)) = (peer_id, peer) else {
            tracing::debug!(to = outgoing.to.0, "a frame was lost: not connected");
            self.lose(outgoing.to, outgoing.kind);
            return;
        };
        if peer.in_flight >= IN_FLIGHT_MAX {
            if peer.outbox.len() >= OUTBOX_MAX {
                self.counters.outbox_full.fetch_add(1, Ordering::Relaxed);
                self.lose(outgoing.to, outgoing.kind);
            } else {
                peer.outbox.push_back(outgoing);
            }
            return;
        }
        peer.in_flight += 1;
        let Outgoing { to, kind, bytes } = outgoing;
        let id = self.swarm.behaviour_mut().frames.send(peer_id, bytes);
        self.sent.insert(id, Sent { peer: peer_id, to, kind });
    }

    /// Sends a probe past all frames that wait; without an answer if the site is not connected.
    pub(super) fn probe(&mut self, to: SiteId, answer: oneshot::Sender<Duration>) {
        let peer_id = self.sites.get(&to).copied();
        let connected = |id: &PeerId| self.peers.get(id).is_some_and(|peer| peer.taken && !peer.refused);
        if let Some(peer_id) = peer_id.filter(connected) {
            let request = Request::Probe(vec![0; PROBE_BYTES]);
            let id = self.swarm.behaviour_mut().hellos.send_request(&peer_id, request);
            self.probes.insert(id, (Instant::now(), answer));
        }
    }

    /// A frame to the peer was answered or lost: its place goes to the next frame that waits.
    fn free_place(&mut self, peer_id: PeerId) {
        let Some(peer) = self.peers.get_mut(&peer_id) else { return };
        peer.in_flight = peer.in_flight.saturating_sub(1);
        if let Some(outgoing) = peer.outbox.pop_front() {
            self.send(outgoing);
        }
    }

    pub(super) fn lose(&mut self, to: SiteId, kind: MessageKind) {
        self.counters.in_flight.fetch_sub(1, Ordering::Relaxed);
        self.counters.lost.fetch_add(1, Ordering::Relaxed);
        if self.arrivals.try_send((Arrival::Lost { to, kind }, None)).is_err() {
            // Counted above; only the event is missing.
            self.counters.inbox_full.fetch_add(1, Ordering::Relaxed);
        }
    }
}
