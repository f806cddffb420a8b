//! The libp2p stack of a node: TCP, Noise, yamux, and five behaviours.
//!
//! Streams negotiate lazily (`V1Lazy`), without a round trip of their own. That is safe because all nodes of a run
//! speak the same protocols, and the names of the protocols carry the run.

use std::time::Duration;

use libp2p::core::upgrade::Version;
use libp2p::request_response::{self, ProtocolSupport};
use libp2p::swarm::NetworkBehaviour;
use libp2p::swarm::behaviour::toggle::Toggle;
use libp2p::{StreamProtocol, Swarm, SwarmBuilder, identify, mdns, noise, ping, tcp, yamux};

use super::codec::Codec;
use super::frames::Frames;
use super::{Discovery, NetworkConfig, NetworkError};

/// Connections stay open when nothing is sent for this long; a quiet grid is a normal grid.
const IDLE_TIMEOUT: Duration = Duration::from_secs(600);
/// A hello that is not answered by then is repeated on a new connection.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// How often the round trip to each peer is measured.
const PING_INTERVAL: Duration = Duration::from_secs(5);
/// A ping that is not answered by then has failed.
const PING_TIMEOUT: Duration = Duration::from_secs(10);
/// How often mDNS asks again, should the first question have been lost.
const MDNS_INTERVAL: Duration = Duration::from_secs(10);

/// What a node does on its connections.
#[derive(NetworkBehaviour)]
pub(super) struct Behaviour {
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
pub(super) fn build(config: &NetworkConfig) -> Result<Swarm<Behaviour>, NetworkError> {
    let start = |error: &dyn std::fmt::Display| NetworkError::Start(error.to_string());
    let run_protocol = run_protocol(&config.run)?;
    let protocol = |name: &str| {
        StreamProtocol::try_from_owned(format!("{run_protocol}/{name}"))
            .map_err(|_| NetworkError::RunName(config.run.clone()))
    };
    let frames = Frames::new(protocol("frames/2")?, config.frame_bytes_max);
    let codec = Codec { bytes_max: config.frame_bytes_max };
    let request_config = request_response::Config::default().with_request_timeout(REQUEST_TIMEOUT);
    let hellos = request_response::Behaviour::with_codec(
        codec,
        [(protocol("hello/1")?, ProtocolSupport::Full)],
        request_config,
    );
    let ping =
        ping::Behaviour::new(ping::Config::new().with_interval(PING_INTERVAL).with_timeout(PING_TIMEOUT));
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
    let behaviour = Behaviour { hellos, frames, ping, identify, mdns };
    let swarm = SwarmBuilder::with_existing_identity(keypair)
        .with_tokio()
        .with_tcp(tcp::Config::default().nodelay(true), noise::Config::new, yamux::Config::default)
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
