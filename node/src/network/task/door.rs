//! Who is let in, and who is shown the door: the grid's list of identities, time to introduce oneself, offences and
//! bans, and in words why a connection does not come about.

use std::error::Error;
use std::io;
use std::time::Duration;

use libp2p::core::transport::TransportError;
use libp2p::swarm::{ConnectionDenied, ConnectionError, ConnectionId, DialError, ListenError};
use libp2p::{PeerId, allow_block_list, connection_limits};
use scheduler::SiteId;
use tokio::time::Instant;

use super::NetworkTask;
use crate::network::guard::Verdict;
use crate::network::{NetworkError, Offence, RefusedConnection};

/// A node that has not introduced itself by then is disconnected. Several times what libp2p allows for a hello.
const INTRODUCTION_TIMEOUT: Duration = Duration::from_secs(20);

impl NetworkTask {
    /// Puts the configured identities on the list.
    pub(super) fn list_members(&mut self) -> Result<(), NetworkError> {
        for (site, peer_id) in std::mem::take(&mut self.config.members) {
            let wrong = |reason: &str| {
                let (peer_id, reason) = (peer_id.clone(), reason.to_string());
                Err(NetworkError::Member { site, peer_id, reason })
            };
            let Ok(peer) = peer_id.parse::<PeerId>() else {
                return wrong("not a peer id; `stealgrid key id FILE` prints that of an identity file");
            };
            if !self.is_site(site) {
                return wrong("the grid has no such site");
            }
            if site == self.config.site {
                if peer != *self.swarm.local_peer_id() {
                    return wrong("this node has another identity; check --site and --identity-file");
                }
            } else if self.keys.insert(site, peer).is_some_and(|before| before != peer) {
                return wrong("the site has another identity already, by the seed or an earlier entry");
            }
        }
        Ok(())
    }

    /// The site that an identity belongs to, if it is on the list.
    pub(super) fn listed(&self, peer: PeerId) -> Option<SiteId> {
        self.keys.iter().find(|(_, key)| **key == peer).map(|(site, _)| *site)
    }

    /// Counts a connection that is not wanted. Logs more rarely the more there are: strangers must not fill the disk.
    pub(super) fn refuse(
        &self,
        reason: RefusedConnection,
        peer: Option<PeerId>,
        why: &dyn std::fmt::Display,
    ) {
        let counts = self.counters.counts();
        counts.refuse(reason);
        let count = counts.refused(reason);
        if count.is_power_of_two() {
            let peer = peer.map(tracing::field::display);
            tracing::warn!(peer, count, "refused a connection ({}): {why}", reason.name());
        }
    }

    pub(super) fn on_incoming_error(&self, peer: Option<PeerId>, error: &ListenError) {
        match error {
            ListenError::Denied { cause } => self.on_denied(peer, cause),
            ListenError::Transport(error) => {
                let why = format!("it has another grid key, or none, or is no node of Stealgrid ({error})");
                self.refuse(RefusedConnection::Handshake, peer, &why);
            }
            error => self.refuse(RefusedConnection::Handshake, peer, error),
        }
    }

    /// Counts a connection that this node's own rules forbid.
    fn on_denied(&self, peer: Option<PeerId>, cause: &ConnectionDenied) {
        match cause.downcast_ref::<connection_limits::Exceeded>() {
            Some(exceeded) => self.refuse(RefusedConnection::Limit, peer, exceeded),
            None if cause.downcast_ref::<allow_block_list::Blocked>().is_some() => {
                self.refuse(RefusedConnection::Banned, peer, &"its node is banned");
            }
            None => self.refuse(RefusedConnection::Limit, peer, cause),
        }
    }

    /// Tells in the state of the link why it does not come about.
    pub(super) fn on_dial_error(&mut self, peer: PeerId, error: &DialError) {
        tracing::debug!(%peer, %error, "dial failed");
        if let DialError::Denied { cause } = error {
            self.on_denied(Some(peer), cause);
        }
        let Some(problem) = dial_problem(error) else { return };
        if let Some(site) = self.listed(peer) {
            let known = self.state.borrow().links.get(&site).and_then(|link| link.problem.clone());
            if known.as_deref() != Some(problem.as_str()) {
                tracing::warn!(other = site.0, problem, "cannot connect");
                self.update_link(site, |link| link.problem = Some(problem));
            }
        }
    }

    /// Gives a new connection some time to introduce itself; a stranger only as much as it takes to hear the reason.
    pub(super) fn watch_newcomer(&mut self, peer_id: PeerId, connection: ConnectionId) {
        let now = Instant::now();
        if self.listed(peer_id).is_none() {
            if let Some(peer) = self.peers.get_mut(&peer_id) {
                (peer.refused, peer.stranger) = (true, true);
            }
            self.refuse(
                RefusedConnection::Identity,
                Some(peer_id),
                &"its identity is not on the list of this grid",
            );
            self.leaving.push_back((now + super::LEAVING_GRACE, peer_id));
        }
        self.newcomers.push_back((now + INTRODUCTION_TIMEOUT, peer_id, connection));
    }

    /// Disconnects the newcomer whose time is over, unless it has said which site it is.
    pub(super) fn disconnect_silent(&mut self) {
        let Some((_, peer_id, connection)) = self.newcomers.pop_front() else { return };
        let silent = self.peers.get(&peer_id).is_some_and(|peer| {
            peer.site.is_none() && peer.connections.iter().any(|(id, _)| *id == connection)
        });
        if silent {
            self.refuse(RefusedConnection::Silent, Some(peer_id), &"it did not introduce itself");
            self.swarm.close_connection(connection);
        }
    }

    /// A connection ended before both nodes knew each other, and nobody has said why.
    pub(super) fn on_closed_early(&mut self, peer: PeerId) {
        if let Some(site) = self.listed(peer) {
            self.update_link(site, |link| {
                link.problem.get_or_insert_with(|| {
                    "it closed the connection before the introduction; its log says why: this node's identity may \
                     not be on its list, or is banned, or there are too many connections"
                        .to_string()
                });
            });
        }
    }

    /// Slows an offender down, and bans it if it goes on.
    pub(super) fn offend(&mut self, peer_id: PeerId, offence: Offence) {
        self.counters.counts().offend(offence);
        let now = Instant::now();
        match self.guard.judge(peer_id, offence, now) {
            Verdict::Known => {}
            Verdict::Pause(length) => {
                tracing::warn!(peer = %peer_id, offence = offence.name(), ?length, "an offence: reads nothing from it");
                self.swarm.behaviour_mut().frames.pause(peer_id, now + length);
            }
            Verdict::Ban(length) => {
                tracing::error!(peer = %peer_id, offence = offence.name(), ?length, "too many offences: banned it");
                self.counters.counts().ban();
                if let Some(peer) = self.peers.get_mut(&peer_id) {
                    peer.refused = true;
                }
                self.swarm.behaviour_mut().banned.block_peer(peer_id);
                if let Some(site) = self.listed(peer_id) {
                    let problem =
                        format!("banned for {length:?} after too many offences ({})", offence.name());
                    self.update_link(site, |link| link.problem = Some(problem));
                }
            }
        }
    }

    /// Counts a frame or a request against the rate of its sender.
    pub(super) fn count_rate(&mut self, peer_id: PeerId, request: bool) -> bool {
        let now = Instant::now();
        let Some(peer) = self.peers.get_mut(&peer_id) else { return true };
        let rate = if request { &mut peer.requests } else { &mut peer.frames };
        let Some(wait) = rate.take(now) else { return true };
        self.swarm.behaviour_mut().frames.pause(peer_id, now + wait);
        self.offend(peer_id, Offence::Rate);
        false
    }

    /// Lets those in again whose ban has ended.
    pub(super) fn end_bans(&mut self) {
        let now = Instant::now();
        for peer in self.guard.take_ended(now) {
            tracing::info!(%peer, "its ban has ended");
            self.swarm.behaviour_mut().banned.unblock_peer(peer);
            self.dials.on_disconnected(peer, now);
            if let Some(site) = self.listed(peer) {
                self.update_link(site, |link| link.problem = None);
            }
        }
    }
}

/// Whether a connection ended because nothing came or went for too long.
pub(super) fn is_timeout(error: &ConnectionError) -> bool {
    let mut source: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = source {
        let error_of_system = error.downcast_ref::<io::Error>();
        if error_of_system.is_some_and(|error| error.kind() == io::ErrorKind::TimedOut) {
            return true;
        }
        source = deeper(error);
    }
    false
}

/// What an operator should know of a dial that failed; nothing if that is the node's own doing.
fn dial_problem(error: &DialError) -> Option<String> {
    match error {
        DialError::WrongPeerId { obtained, .. } => {
            Some(format!("another identity answers at its address: {obtained}"))
        }
        DialError::Transport(failures) => failures.iter().find_map(|(address, failure)| {
            let TransportError::Other(error) = failure else { return None };
            Some(match connect_error(error) {
                // Under another key a length may be read that never comes.
                Some(io::ErrorKind::TimedOut) => format!(
                    "no handshake at {address} in time: nobody is there, or it has another grid key than this node, or \
                     one of the two has none"
                ),
                Some(kind) => format!("nobody answers at {address}: {kind}"),
                None => format!(
                    "the handshake at {address} failed: it has another grid key than this node, or one of the two \
                     has none"
                ),
            })
        }),
        _ => None,
    }
}

/// What an error wraps: that of the system hides another behind `get_ref`.
fn deeper<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        Some(inner) => Some(inner),
        None => error.source(),
    }
}

/// What the system says when the other end cannot be reached.
const UNREACHABLE: [io::ErrorKind; 5] = [
    io::ErrorKind::ConnectionRefused,
    io::ErrorKind::HostUnreachable,
    io::ErrorKind::NetworkUnreachable,
    io::ErrorKind::NetworkDown,
    io::ErrorKind::AddrNotAvailable,
];

/// Which of these, or a timeout, is inside. Each layer of libp2p wraps the error, and some pass on its words alone.
fn connect_error(error: &io::Error) -> Option<io::ErrorKind> {
    let mut source: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = source {
        let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
        if let Some(kind) = kind.filter(|kind| UNREACHABLE.contains(kind)) {
            return Some(kind);
        }
        source = deeper(error);
    }
    let words = format!("{error:?}");
    if words.contains("Timeout") || words.contains("kind: TimedOut") {
        return Some(io::ErrorKind::TimedOut);
    }
    UNREACHABLE.into_iter().find(|kind| words.contains(&format!("kind: {kind:?}")))
}
