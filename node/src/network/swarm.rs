//! The libp2p stack of a node: TCP, the grid's shared key, Noise, yamux, and its behaviours.
//!
//! Streams negotiate lazily (`V1Lazy`), without a round trip of their own. That is safe because all nodes of a run
//! speak the same protocols, and the names of the protocols carry the run.

use std::sync::Arc;
use std::time::Duration;

use futures::future::Either;
use libp2p::core::Transport as _;
use libp2p::core::upgrade::Version;
use libp2p::pnet::{PnetConfig, PnetError};
use libp2p::request_response::{self, ProtocolSupport};
use libp2p::swarm::NetworkBehaviour;
use libp2p::swarm::behaviour::toggle::Toggle;
use libp2p::{
    StreamProtocol, Swarm, SwarmBuilder, allow_block_list, connection_limits, identify, mdns, noise, ping,
    tcp, yamux,
};

use super::codec::Codec;
use super::frames::Frames;
use super::patience::Patient;
use super::streams::Limited;
use super::{Discovery, NetworkConfig, NetworkCounters, NetworkError};

/// Connections stay open when nothing is sent for this long; a quiet grid is a normal grid.
const IDLE_TIMEOUT: Duration = Duration::from_secs(600);
/// A hello that is not answered by then is repeated on a new connection.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest hello or probe: the sizes of some sixteen thousand sites.
const REQUEST_BYTES_MAX: usize = 64 * 1024;
/// Hellos and probes at once on one connection, both ways. A node has one of each under way.
const REQUESTS_AT_ONCE: usize = 16;
/// Of the time after which a silent link is given up: how often the round trip is measured, and how long an answer may
/// take. Three pings in a row must fail, see `PING_FAILURES_MAX`, and closing may take as long as one
/// answer more: 3 * (1 + 2) + 2 parts. With the default of 55 s that is a ping every 5 s, and 10 s for its answer.
const SILENCE_PARTS: u32 = 11;
const ANSWER_PARTS: u32 = 2;
/// Streams beyond the limit that yamux takes before the connection is closed: those that libp2p has not looked at.
const STREAMS_UNSEEN: usize = 256;
/// How often mDNS asks again, should the first question have been lost.
const MDNS_INTERVAL: Duration = Duration::from_secs(10);

/// What a node does on its connections.
#[derive(NetworkBehaviour)]
pub(super) struct Behaviour {
    pub(super) limits: connection_limits::Behaviour,
    pub(super) banned: allow_block_list::Behaviour<allow_block_list::BlockedPeers>,
    pub(super) hellos: request_response::Behaviour<Codec>,
    pub(super) frames: Frames,
    pub(super) ping: ping::Behaviour,
    pub(super) identify: identify::Behaviour,
    pub(super) mdns: Toggle<mdns::tokio::Behaviour>,
}

/// The name by which nodes of a run recognise each other.
pub(super) fn run_protocol(run: &str) -> Result<String, NetworkError> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if run.is_empty() || run.len() > 64 || !run.chars().all(allowed) {
        return Err(NetworkError::RunName(run.to_string()));
    }
    Ok(format!("/stealgrid/{run}"))
}

/// Builds the stack, not listening yet.
pub(super) fn build(
    config: &NetworkConfig,
    counters: &Arc<NetworkCounters>,
) -> Result<Swarm<Behaviour>, NetworkError> {
    let start = |error: &dyn std::fmt::Display| NetworkError::Start(error.to_string());
    let run_protocol = run_protocol(&config.run)?;
    let protocol = |name: &str| {
        StreamProtocol::try_from_owned(format!("{run_protocol}/{name}"))
            .map_err(|_| NetworkError::RunName(config.run.clone()))
    };
    let frames = Frames::new(protocol("frames/2")?, config.frame_bytes_max);
    let codec = Codec { bytes_max: REQUEST_BYTES_MAX };
    let request_config = request_response::Config::default()
        .with_request_timeout(REQUEST_TIMEOUT)
        .with_max_concurrent_streams(REQUESTS_AT_ONCE);
    let hellos = request_response::Behaviour::with_codec(
        codec,
        [(protocol("hello/1")?, ProtocolSupport::Full)],
        request_config,
    );
    let part = Duration::from_secs(u64::from(config.limits.link_silence_secs)) / SILENCE_PARTS;
    let patience = part * ANSWER_PARTS;
    let ping = ping::Behaviour::new(ping::Config::new().with_interval(part).with_timeout(patience));
    let keypair = config.identity.keypair();
    let identify =
        identify::Behaviour::new(identify::Config::new(run_protocol, keypair.public()).with_agent_version(
            format!("stealgrid-node/{} site/{}", env!("CARGO_PKG_VERSION"), config.site.0),
        ));
    let mdns = match config.discovery {
        Discovery::Static => Toggle::from(None),
        Discovery::Mdns => {
            let config_of_mdns = mdns::Config { query_interval: MDNS_INTERVAL, ..mdns::Config::default() };
            let behaviour = mdns::tokio::Behaviour::new(config_of_mdns, config.identity.peer())
                .map_err(|error| start(&error))?;
            Toggle::from(Some(behaviour))
        }
    };
    let limits = connection_limits::ConnectionLimits::default()
        .with_max_pending_incoming(Some(config.limits.connections_pending))
        .with_max_established(Some(config.limits.connections))
        .with_max_established_per_peer(Some(config.limits.connections_per_peer));
    let limits = connection_limits::Behaviour::new(limits);
    let banned = allow_block_list::Behaviour::default();
    let behaviour = Behaviour { limits, banned, hellos, frames, ping, identify, mdns };
    let shared = config.grid_key.as_ref().map(|key| PnetConfig::new(key.shared()));
    let streams_max = config.limits.streams_per_connection;
    let counters = Arc::clone(counters);
    let swarm = SwarmBuilder::with_existing_identity(keypair)
        .with_tokio()
        .with_other_transport(|keypair| {
            let noise = noise::Config::new(keypair)?;
            let mut yamux = yamux::Config::default();
            yamux.set_max_num_streams(streams_max + STREAMS_UNSEEN);
            // With the key everything after the first 24 bytes is encrypted once more, beneath Noise.
            let private = tcp::tokio::Transport::new(tcp::Config::default().nodelay(true)).and_then(
                move |socket, _| async move {
                    let socket = Patient::new(socket, patience);
                    match shared {
                        Some(shared) => shared.handshake(socket).await.map(Either::Left),
                        None => Ok::<_, PnetError>(Either::Right(socket)),
                    }
                },
            );
            let streams = private.upgrade(Version::V1Lazy).authenticate(noise).multiplex(yamux);
            Ok(streams.map(move |(peer, streams), _| (peer, Limited::new(streams, streams_max, counters))))
        })
        .map_err(|error| start(&error))?
        .with_behaviour(|_| behaviour)
        .map_err(|error| start(&error))?
        .with_swarm_config(|swarm| {
            swarm
                .with_idle_connection_timeout(IDLE_TIMEOUT)
                .with_substream_upgrade_protocol_override(Version::V1Lazy)
        })
        .build();
    Ok(swarm)
}
