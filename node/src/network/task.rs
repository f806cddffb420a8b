//! The task that owns the libp2p swarm: connects to the other sites, checks who they are, moves frames.
//!
//! ```text
//! dialed or accepted -> identify (is it of this run?) -> our Hello taken, its Hello taken -> connected
//! ```
//! A peer that fails a check is refused with a reason that both sides log, and its connection is closed.

mod door;
mod traffic;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use libp2p::core::ConnectedPoint;
use libp2p::core::transport::TransportError;
use libp2p::multiaddr::Protocol;
use libp2p::request_response::{self, OutboundRequestId};
use libp2p::swarm::dial_opts::{DialOpts, PeerCondition};
use libp2p::swarm::{ConnectionError, ConnectionId, SwarmEvent};
use libp2p::{Multiaddr, PeerId, Swarm, identify, mdns, ping};
use scheduler::SiteId;
use scheduler::event::MessageKind;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

use crate::instance::may_follow;

use super::address::{is_loopback, look_up, needs_name_lookup, parse_address, socket_address, strip_peer};
use super::codec::{Answer, Request};
use super::dial::DialTable;
use super::guard::Guard;
use super::hello::Hello;
use super::rate::Rate;
use super::swarm::{Behaviour, BehaviourEvent, build, run_protocol};
use super::{
    Arrival, Command, Identity, LinkState, NetworkConfig, NetworkCounters, NetworkError, NetworkState,
    Offence, Outgoing, Place, Refusal, RefusedConnection,
};

/// How long the listener may take to come up.
const LISTEN_TIMEOUT: Duration = Duration::from_secs(10);
/// How long to wait for more addresses of a listener on all interfaces after the first.
const LISTEN_SETTLE: Duration = Duration::from_millis(200);
/// How long a refused peer has to read the reason and leave by itself.
const LEAVING_GRACE: Duration = Duration::from_secs(1);
/// What is shown of a text that another node chose.
const SHOWN_CHARS_MAX: usize = 80;
/// Reports of failed pings before a connection is given up. Libp2p keeps the first failure to itself, so that this is
/// the third ping in a row.
const PING_FAILURES_MAX: u32 = 2;

/// A node there is a connection to.
struct Peer {
    /// All connections, oldest first, and whether this node dialed them.
    connections: Vec<(ConnectionId, bool)>,
    /// The site it is, once its hello was taken.
    site: Option<SiteId>,
    instance: u64,
    /// Whether our hello was sent on this connection, and taken.
    greeted: bool,
    taken: bool,
    rtt: Option<Duration>,
    ping_failures: u32,
    in_flight: usize,
    outbox: VecDeque<Outgoing>,
    /// What it may send, and ask.
    frames: Rate,
    requests: Rate,
    /// To be disconnected as soon as the refusal is on its way.
    refused: bool,
    /// It came before it was on the list.
    stranger: bool,
}

impl Peer {
    /// A node that is not connected and has not said which site it is.
    fn new(config: &NetworkConfig) -> Peer {
        let now = Instant::now();
        Peer {
            connections: Vec::new(),
            site: None,
            instance: 0,
            greeted: false,
            taken: false,
            rtt: None,
            ping_failures: 0,
            in_flight: 0,
            outbox: VecDeque::new(),
            frames: Rate::new(config.limits.frames_per_second, now),
            requests: Rate::new(config.limits.requests_per_second, now),
            refused: false,
            stranger: false,
        }
    }
}

/// A frame that was sent and not answered.
struct Sent {
    peer: PeerId,
    to: SiteId,
    kind: MessageKind,
}

/// Owner of the swarm.
pub(super) struct NetworkTask {
    config: NetworkConfig,
    run_protocol: String,
    /// The keys that sites must have, where known.
    keys: BTreeMap<SiteId, PeerId>,
    swarm: Swarm<Behaviour>,
    dials: DialTable,
    resolving: FuturesUnordered<BoxFuture<'static, (PeerId, Vec<Multiaddr>)>>,
    peers: BTreeMap<PeerId, Peer>,
    /// The peers whose hello was taken.
    sites: BTreeMap<SiteId, PeerId>,
    /// Hellos and frames without an answer.
    greetings: HashMap<OutboundRequestId, PeerId>,
    /// Probes without an answer: when they left, and who asked.
    probes: HashMap<OutboundRequestId, (Instant, oneshot::Sender<Duration>)>,
    sent: HashMap<u64, Sent>,
    /// Refused peers that are disconnected if they have not left by then, in that order.
    leaving: VecDeque<(Instant, PeerId)>,
    /// Connections, and by when their nodes must have introduced themselves, in that order.
    newcomers: VecDeque<(Instant, PeerId, ConnectionId)>,
    guard: Guard,
    arrivals: mpsc::Sender<(Arrival, Option<Place>)>,
    counters: Arc<NetworkCounters>,
    state: watch::Sender<NetworkState>,
}

impl NetworkTask {
    /// Builds the swarm and waits for its listener.
    pub(super) async fn new(
        config: NetworkConfig,
        arrivals: mpsc::Sender<(Arrival, Option<Place>)>,
        counters: Arc<NetworkCounters>,
    ) -> Result<NetworkTask, NetworkError> {
        let run_protocol = run_protocol(&config.run)?;
        let swarm = build(&config, &counters)?;
        let local = *swarm.local_peer_id();
        let mut keys = BTreeMap::new();
        let mut links = BTreeMap::new();
        for site in (0..config.processors.len()).map(SiteId::from_index).filter(|site| *site != config.site) {
            links.insert(site, LinkState::default());
            if let Some(seed) = config.identity_seed {
                keys.insert(site, Identity::derived(&config.run, seed, site).peer());
            }
        }
        let initial = NetworkState { peer_id: local.to_string(), listen: Vec::new(), links };
        let mut task = NetworkTask {
            run_protocol,
            keys,
            swarm,
            dials: DialTable::new(local, config.rejoins),
            resolving: FuturesUnordered::new(),
            peers: BTreeMap::new(),
            sites: BTreeMap::new(),
            greetings: HashMap::new(),
            probes: HashMap::new(),
            sent: HashMap::new(),
            leaving: VecDeque::new(),
            newcomers: VecDeque::new(),
            guard: Guard::new(&config.limits),
            arrivals,
            counters,
            state: watch::Sender::new(initial),
            config,
        };
        task.list_members()?;
        task.listen().await?;
        Ok(task)
    }

    pub(super) fn state(&self) -> watch::Receiver<NetworkState> {
        self.state.subscribe()
    }

    /// Starts the listener. libp2p reports an address in use as a mere event; a deaf node must not go on.
    async fn listen(&mut self) -> Result<(), NetworkError> {
        let address = self.config.listen.clone();
        let parsed = parse_address(&address)?;
        if self.config.grid_key.is_none() && !is_loopback(&parsed) {
            if !self.config.allow_open_network {
                return Err(NetworkError::Open(address));
            }
            tracing::warn!(
                address,
                "listens without a grid key: everybody who reaches this address can connect"
            );
        }
        let failed = |error: io::Error| NetworkError::Listen { address: address.clone(), error };
        let socket = socket_address(&parsed);
        // A listener on all interfaces reports one address for each; otherwise there is one in all.
        let settle = match socket {
            Some(socket) if socket.ip().is_unspecified() => LISTEN_SETTLE,
            _ => Duration::ZERO,
        };
        if let Some(socket) = socket.filter(|socket| socket.port() != 0) {
            // libp2p listens with SO_REUSEPORT: a second node on the same port would start and take half of the
            // first one's connections. A plain socket finds out.
            std::net::TcpListener::bind(socket).map_err(failed)?;
        }
        self.swarm.listen_on(parsed).map_err(|error| match error {
            TransportError::MultiaddrNotSupported(_) => NetworkError::Address {
                address: address.clone(),
                reason: "only TCP over IP is supported".to_string(),
            },
            TransportError::Other(error) => failed(error),
        })?;
        let mut deadline = Instant::now() + LISTEN_TIMEOUT;
        loop {
            let listening = !self.state.borrow().listen.is_empty();
            match tokio::time::timeout_at(deadline, self.swarm.select_next_some()).await {
                Err(_) if listening => return Ok(()),
                Err(_) => return Err(failed(io::ErrorKind::TimedOut.into())),
                Ok(SwarmEvent::ListenerClosed { reason, .. }) => {
                    return Err(failed(reason.err().unwrap_or_else(|| io::ErrorKind::NotConnected.into())));
                }
                Ok(event) => self.on_swarm_event(event),
            }
            if !listening && !self.state.borrow().listen.is_empty() {
                deadline = Instant::now() + settle;
            }
        }
    }

    /// Runs until told to stop or all handles are gone.
    pub(super) async fn run(
        mut self,
        mut commands: mpsc::Receiver<Command>,
        mut stop: oneshot::Receiver<()>,
    ) {
        loop {
            let next_dial = self.dials.next_due();
            let next_leaving = self.leaving.front().map(|(due, _)| *due);
            let next_newcomer = self.newcomers.front().map(|(due, ..)| *due);
            let next_unban = self.guard.next_end();
            tokio::select! {
                biased; // The end first, then our own work, then other sites.
                _ = &mut stop => break,
                () = sleep_until(next_dial) => self.dial_due(),
                () = sleep_until(next_leaving) => self.disconnect_refused(),
                () = sleep_until(next_newcomer) => self.disconnect_silent(),
                () = sleep_until(next_unban) => self.end_bans(),
                command = commands.recv() => match command {
                    Some(command) => self.on_command(command),
                    None => break,
                },
                Some((peer, addresses)) = self.resolving.next() => self.dial(peer, addresses),
                event = self.swarm.select_next_some() => self.on_swarm_event(event),
            }
        }
        self.close().await;
    }

    /// Closes every connection properly, so that the others see the end at once.
    async fn close(mut self) {
        let peers: Vec<PeerId> = self.swarm.connected_peers().copied().collect();
        for peer in peers {
            // An error means that it is disconnected already.
            let _ = self.swarm.disconnect_peer_id(peer);
        }
        let closed = async {
            while self.swarm.network_info().num_peers() > 0 {
                self.swarm.select_next_some().await;
            }
        };
        // One second is ample for closing sockets, and nothing depends on it.
        if tokio::time::timeout(Duration::from_secs(1), closed).await.is_err() {
            tracing::debug!("some connections did not close in time");
        }
    }

    fn on_command(&mut self, command: Command) {
        match command {
            Command::Send(outgoing) => self.send(outgoing),
            Command::Offence { by, offence } => {
                if let Some(peer) = self.sites.get(&by) {
                    self.offend(*peer, offence);
                }
            }
            Command::Probe { to, answer } => self.probe(to, answer),
            Command::Connect { peers, answer } => {
                // The asker may have gone; then nobody wants the answer.
                let _ = answer.send(self.connect(peers));
            }
        }
    }

    // Finding and dialing.

    fn connect(&mut self, peers: Vec<(SiteId, String)>) -> Result<(), NetworkError> {
        let mut learned = Vec::new();
        for (site, address) in peers {
            if site == self.config.site || !self.is_site(site) {
                return Err(NetworkError::PeerSite(site));
            }
            let mut parsed = parse_address(&address)?;
            let named = match parsed.iter().last() {
                Some(Protocol::P2p(peer)) => {
                    parsed.pop();
                    Some(peer)
                }
                _ => None,
            };
            let peer = match (named, self.keys.get(&site)) {
                (Some(named), Some(expected)) if named != *expected => {
                    let expected = expected.to_string();
                    return Err(NetworkError::PeerMismatch { site, address, expected });
                }
                (Some(peer), _) => peer,
                (None, Some(expected)) => *expected,
                (None, None) => return Err(NetworkError::PeerUnknown { site, address }),
            };
            learned.push((site, peer, parsed));
        }
        for (site, peer, address) in learned {
            self.keys.insert(site, peer);
            self.learn(peer, address);
        }
        Ok(())
    }

    fn learn(&mut self, peer: PeerId, address: Multiaddr) {
        let connected = self.peers.contains_key(&peer);
        self.dials.learn(peer, address, connected, Instant::now());
    }

    fn dial_due(&mut self) {
        for (peer, addresses) in self.dials.take_due(Instant::now()) {
            if addresses.iter().any(needs_name_lookup) {
                self.resolving.push(Box::pin(async move { (peer, look_up(addresses).await) }));
            } else {
                self.dial(peer, addresses);
            }
        }
    }

    fn dial(&mut self, peer: PeerId, addresses: Vec<Multiaddr>) {
        // A new port each time: reusing the listener's port fails while an old connection lingers.
        let options = DialOpts::peer_id(peer)
            .condition(PeerCondition::DisconnectedAndNotDialing)
            .addresses(addresses)
            .allocate_new_port()
            .build();
        if let Err(error) = self.swarm.dial(options) {
            tracing::debug!(%peer, %error, "cannot dial");
            if !self.peers.contains_key(&peer) {
                self.dials.on_failed(peer, Instant::now());
            }
        }
    }

    // What libp2p reports.

    fn on_swarm_event(&mut self, event: SwarmEvent<BehaviourEvent>) {
        match event {
            SwarmEvent::Behaviour(event) => self.on_behaviour_event(event),
            SwarmEvent::NewListenAddr { address, .. } => {
                tracing::info!(%address, "listening");
                self.state.send_modify(|state| state.listen.push(address.to_string()));
            }
            SwarmEvent::ExpiredListenAddr { address, .. } => {
                let gone = address.to_string();
                self.state.send_modify(|state| state.listen.retain(|listen| *listen != gone));
            }
            SwarmEvent::ListenerClosed { addresses, reason, .. } => {
                tracing::error!(
                    ?addresses,
                    ?reason,
                    "a listener closed; other nodes cannot connect any more"
                );
                self.state.send_modify(|state| state.listen.clear());
            }
            SwarmEvent::ConnectionEstablished { peer_id, connection_id, endpoint, .. } => {
                self.on_connected(peer_id, connection_id, &endpoint);
            }
            SwarmEvent::ConnectionClosed { peer_id, connection_id, num_established, cause, .. } => {
                self.on_closed(peer_id, connection_id, num_established, cause.as_ref());
            }
            SwarmEvent::OutgoingConnectionError { peer_id: Some(peer), error, .. } => {
                self.on_dial_error(peer, &error);
                if !self.peers.contains_key(&peer) {
                    self.dials.on_failed(peer, Instant::now());
                }
            }
            SwarmEvent::IncomingConnectionError { error, peer_id, .. } => {
                self.on_incoming_error(peer_id, &error);
            }
            SwarmEvent::ListenerError { error, .. } => tracing::warn!(%error, "the listener has a problem"),
            _ => {}
        }
    }

    fn on_connected(&mut self, peer_id: PeerId, connection: ConnectionId, endpoint: &ConnectedPoint) {
        self.dials.on_connected(peer_id);
        let peer = self.peers.entry(peer_id).or_insert_with(|| Peer::new(&self.config));
        peer.connections.push((connection, endpoint.is_dialer()));
        self.watch_newcomer(peer_id, connection);
        let Some(peer) = self.peers.get(&peer_id) else { return };
        if peer.connections.len() > 1 && self.dials.dials(peer_id) {
            // Both dialed. The lower id decides which connection stays, and it alone closes the others.
            let kept = peer.connections.iter().find(|(_, dialed)| *dialed).unwrap_or(&peer.connections[0]).0;
            for (surplus, _) in peer.connections.iter().filter(|(id, _)| *id != kept) {
                self.swarm.close_connection(*surplus);
            }
        }
    }

    fn on_closed(
        &mut self,
        peer_id: PeerId,
        connection: ConnectionId,
        left: u32,
        cause: Option<&ConnectionError>,
    ) {
        let Some(peer) = self.peers.get_mut(&peer_id) else { return };
        if peer.ping_failures >= PING_FAILURES_MAX || cause.is_some_and(door::is_timeout) {
            self.counters.counts().silence();
        }
        peer.connections.retain(|(id, _)| *id != connection);
        if left > 0 {
            if peer.greeted {
                // A node that restarted may have dialed before the end of its earlier process was seen here: what that process was
                // told the one on the other connection does not know.
                self.greet(peer_id);
            }
            return;
        }
        let peer = self.peers.remove(&peer_id).expect("it was there a moment ago");
        for outgoing in peer.outbox {
            self.lose(outgoing.to, outgoing.kind);
        }
        if let Some(site) = peer.site {
            self.sites.remove(&site);
            let cause = cause.map(tracing::field::display);
            tracing::info!(other = site.0, cause, "disconnected");
            self.update_link(site, |link| link.connected = false);
        } else if !peer.refused {
            self.on_closed_early(peer_id);
        }
        let listed_since = peer.stranger && self.listed(peer_id).is_some();
        if peer.refused && !listed_since {
            self.dials.on_refused(peer_id, Instant::now());
        } else {
            self.dials.on_disconnected(peer_id, Instant::now());
        }
    }

    fn on_behaviour_event(&mut self, event: BehaviourEvent) {
        match event {
            BehaviourEvent::Hellos(event) => self.on_request_event(event),
            BehaviourEvent::Frames(event) => self.on_frame_event(event),
            BehaviourEvent::Ping(event) => self.on_ping(event),
            BehaviourEvent::Identify(identify::Event::Received { peer_id, info, .. }) => {
                self.on_identified(peer_id, &info);
            }
            BehaviourEvent::Identify(_) => {}
            BehaviourEvent::Mdns(mdns::Event::Discovered(found)) => {
                for (peer, address) in found {
                    if self.listed(peer).is_some() {
                        tracing::debug!(%peer, %address, "found by mDNS");
                        self.learn(peer, strip_peer(address));
                    }
                }
            }
            BehaviourEvent::Mdns(mdns::Event::Expired(_)) => {}
            BehaviourEvent::Limits(never) | BehaviourEvent::Banned(never) => match never {},
        }
    }

    fn on_ping(&mut self, event: ping::Event) {
        let Some(peer) = self.peers.get_mut(&event.peer) else { return };
        match event.result {
            Ok(rtt) => {
                peer.ping_failures = 0;
                peer.rtt = Some(rtt);
                if let Some(site) = peer.site {
                    self.update_link(site, |link| link.rtt = Some(rtt));
                }
            }
            Err(error) => {
                peer.ping_failures += 1;
                tracing::warn!(peer = %event.peer, %error, failures = peer.ping_failures, "a ping failed");
                if peer.ping_failures >= PING_FAILURES_MAX {
                    self.swarm.close_connection(event.connection);
                }
            }
        }
    }

    /// Checks that the peer is of this run before anything else is sent: an unknown protocol name would kill the
    /// connection without a reason.
    fn on_identified(&mut self, peer_id: PeerId, info: &identify::Info) {
        let Some(peer) = self.peers.get_mut(&peer_id) else { return };
        if info.protocol_version != self.run_protocol {
            peer.refused = true;
            let theirs: String = info.protocol_version.chars().take(SHOWN_CHARS_MAX).collect();
            let why = format!("it is of another run: {theirs:?} instead of {:?}", self.run_protocol);
            self.refuse(RefusedConnection::Introduction, Some(peer_id), &why);
            self.counters.refused.fetch_add(1, Ordering::Relaxed);
            self.disconnect(peer_id);
            return;
        }
        if peer.refused {
            return;
        }
        // Each connection has a stream of its own, and is identified by itself.
        self.swarm.behaviour_mut().frames.open(peer_id);
        if !peer.greeted {
            peer.greeted = true;
            self.greet(peer_id);
        }
    }

    fn greet(&mut self, peer_id: PeerId) {
        let hello = Hello {
            site: self.config.site,
            instance: self.config.instance,
            processors: self.config.processors.clone(),
        };
        let id = self.swarm.behaviour_mut().hellos.send_request(&peer_id, Request::Hello(hello.encode()));
        self.greetings.insert(id, peer_id);
    }

    fn on_request_event(&mut self, event: request_response::Event<Request, Answer>) {
        match event {
            request_response::Event::Message { peer, message, .. } => match message {
                request_response::Message::Request { request, channel, .. } => {
                    let in_time = self.count_rate(peer, true);
                    let answer = match request {
                        _ if !in_time => Answer::Full,
                        Request::Hello(bytes) => self.on_hello(peer, &bytes),
                        Request::Probe(_) => match self.peers.get(&peer) {
                            Some(Peer { site: Some(_), .. }) => Answer::Taken,
                            _ => Answer::Refused(Refusal::NotIntroduced),
                        },
                    };
                    self.count_refusal(answer);
                    // An error means that the connection has closed meanwhile; the sender learns that by itself.
                    let _ = self.swarm.behaviour_mut().hellos.send_response(channel, answer);
                }
                request_response::Message::Response { request_id, response } => {
                    if let Some(peer) = self.greetings.remove(&request_id) {
                        self.on_greeted(peer, response);
                    } else if let Some((sent, answer)) = self.probes.remove(&request_id)
                        && response == Answer::Taken
                    {
                        // The asker may have gone; then nobody wants the answer.
                        let _ = answer.send(sent.elapsed());
                    }
                }
            },
            request_response::Event::OutboundFailure { request_id, error, .. } => {
                // Who asked for a probe learns that by the sender that is dropped here.
                self.probes.remove(&request_id);
                if let Some(peer) = self.greetings.remove(&request_id) {
                    tracing::debug!(%peer, %error, "the hello went unanswered");
                    // The connection is of no use without it; dialing anew repeats it.
                    self.disconnect(peer);
                }
            }
            request_response::Event::InboundFailure { peer, error, .. } => {
                tracing::debug!(%peer, %error, "a hello could not be taken or answered");
                if let request_response::InboundFailure::Io(error) = error
                    && error.kind() == io::ErrorKind::InvalidData
                    && self.listed(peer).is_some()
                {
                    self.offend(peer, Offence::Garbage);
                }
            }
            request_response::Event::ResponseSent { peer, .. } => {
                if self.peers.get(&peer).is_some_and(|peer| peer.refused) {
                    // Closing at once could overtake the reason.
                    self.leaving.push_back((Instant::now() + LEAVING_GRACE, peer));
                }
            }
        }
    }

    fn count_refusal(&self, answer: Answer) {
        if let Answer::Refused(_) = answer {
            self.counters.refused.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn on_hello(&mut self, peer_id: PeerId, bytes: &[u8]) -> Answer {
        let checked = self.check_hello(peer_id, bytes);
        let Some(peer) = self.peers.get_mut(&peer_id) else { return Answer::Refused(Refusal::NotIntroduced) };
        match checked {
            Ok(hello) => {
                peer.site = Some(hello.site);
                peer.instance = hello.instance;
                self.sites.insert(hello.site, peer_id);
                if let Some(journals) = &mut self.config.journals {
                    journals.insert(hello.site, hello.instance);
                }
                self.after_hello(peer_id);
                Answer::Taken
            }
            Err((site, refusal)) => {
                let first = !std::mem::replace(&mut peer.refused, true);
                if first {
                    let reason = match refusal {
                        Refusal::WrongKey | Refusal::NotListed => RefusedConnection::Identity,
                        _ => RefusedConnection::Introduction,
                    };
                    self.refuse(reason, Some(peer_id), &refusal);
                }
                tracing::error!(peer = %peer_id, site = ?site.map(|site| site.0), reason = %refusal, "refused a node");
                if let Some(site) = site.filter(|_| refusal != Refusal::DuplicateSite) {
                    self.update_link(site, |link| link.problem = Some(format!("refused: {refusal}")));
                }
                Answer::Refused(refusal)
            }
        }
    }

    fn check_hello(&self, peer_id: PeerId, bytes: &[u8]) -> Result<Hello, (Option<SiteId>, Refusal)> {
        let hello = Hello::decode(bytes).map_err(|_| (None, Refusal::Unreadable))?;
        let refuse = |refusal| Err((Some(hello.site), refusal));
        if hello.processors != self.config.processors {
            return refuse(Refusal::OtherGrid);
        }
        if hello.site == self.config.site || !self.is_site(hello.site) {
            return refuse(Refusal::UnknownSite);
        }
        match self.keys.get(&hello.site) {
            None => return refuse(Refusal::NotListed),
            Some(key) if *key != peer_id => return refuse(Refusal::WrongKey),
            Some(_) => {}
        }
        if self.sites.get(&hello.site).is_some_and(|known| *known != peer_id) {
            return refuse(Refusal::DuplicateSite);
        }
        let known = self.config.journals.as_ref().and_then(|journals| journals.get(&hello.site));
        if known.is_some_and(|known| !may_follow(*known, hello.instance)) {
            return refuse(Refusal::OtherJournal);
        }
        Ok(hello)
    }

    /// What became of our hello.
    fn on_greeted(&mut self, peer_id: PeerId, answer: Answer) {
        match answer {
            Answer::Taken => {
                if let Some(peer) = self.peers.get_mut(&peer_id) {
                    peer.taken = true;
                    self.after_hello(peer_id);
                }
            }
            // No answer to a hello; dialing anew repeats it.
            Answer::Full => self.disconnect(peer_id),
            Answer::Refused(refusal) => {
                tracing::error!(
                    peer = %peer_id,
                    "another node refuses this one because {refusal}; check the site, the grid and the identities"
                );
                if let Some(peer) = self.peers.get_mut(&peer_id) {
                    peer.refused = true;
                }
                let site = self.keys.iter().find(|(_, key)| **key == peer_id).map(|(site, _)| *site);
                if let Some(site) = site {
                    self.update_link(site, |link| link.problem = Some(format!("it refuses us: {refusal}")));
                }
                self.disconnect(peer_id);
            }
        }
    }

    /// Reports the link as connected once both hellos are through.
    fn after_hello(&mut self, peer_id: PeerId) {
        let Some(Peer { site: Some(site), instance, taken: true, rtt, .. }) = self.peers.get(&peer_id) else {
            return;
        };
        let (site, instance, rtt) = (*site, *instance, *rtt);
        let before = self.state.borrow().links.get(&site).cloned().unwrap_or_default();
        if !before.connected {
            tracing::info!(other = site.0, "connected");
        }
        if before.instance.is_some_and(|before| before != instance) {
            tracing::warn!(other = site.0, "the site's process has been started anew");
        }
        self.update_link(site, |link| {
            *link = LinkState { connected: true, instance: Some(instance), rtt, problem: None };
        });
    }

    // Small things.

    fn is_site(&self, site: SiteId) -> bool {
        site.0 >= 1 && site.index() < self.config.processors.len()
    }

    /// Disconnects the refused peer that has had its time, unless it came back as another site meanwhile.
    fn disconnect_refused(&mut self) {
        if let Some((_, peer)) = self.leaving.pop_front()
            && self.peers.get(&peer).is_some_and(|peer| peer.refused)
        {
            self.disconnect(peer);
        }
    }

    fn disconnect(&mut self, peer: PeerId) {
        // An error means that it is disconnected already.
        let _ = self.swarm.disconnect_peer_id(peer);
    }

    fn update_link(&self, site: SiteId, change: impl FnOnce(&mut LinkState)) {
        self.state.send_modify(|state| {
            if let Some(link) = state.links.get_mut(&site) {
                change(link);
            }
        });
    }
}

/// Sleeps until then, or forever.
async fn sleep_until(instant: Option<Instant>) {
    match instant {
        Some(instant) => tokio::time::sleep_until(instant).await,
        None => std::future::pending().await,
    }
}
