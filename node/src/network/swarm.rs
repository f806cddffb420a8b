//! The libp2p stack of a node: TCP, Noise, yamux, and four behaviours.
//!
//! Requests negotiate lazily (`V1Lazy`): with the default a request costs one more round trip, which would double
//! the latency of every steal. That is safe because all nodes of a run speak the same protocols, and the name of
//! the request protocol carries the run.

use std::time::Duration;

use libp2p::core::upgrade::Version;
use libp2p::request_response::{self, ProtocolSupport};
use libp2p::swarm::NetworkBehaviour;
use libp2p::swarm::behaviour::toggle::Toggle;
use libp2p::{StreamProtocol, Swarm, SwarmBuilder, identify, mdns, noise, ping, tcp, yamux};

use super::codec::Codec;
use super::{Discovery, IN_FLIGHT_MAX, NetworkConfig, NetworkError};

/// Connections stay open when nothing is sent for this long; a quiet grid is a normal grid.
const IDLE_TIMEOUT: Duration = Duration::from_secs(600);
/// A request that is not acknowledged by then is lost.
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
    pub(super) requests: request_response::Behaviour<Codec>,
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
    let protocol = StreamProtocol::try_from_owned(format!("{run_protocol}/frame/2"))
        .map_err(|_| NetworkError::RunName(config.run.clone()))?;
    let codec = Codec { bytes_max: config.frame_bytes_max };
    let request_config = request_response::Config::default()
        .with_request_timeout(REQUEST_TIMEOUT)
        // Both directions share this limit; half of it is kept free for what the other side sends.
        .with_max_concurrent_streams(2 * IN_FLIGHT_MAX + 2);
    let requests =
        request_response::Behaviour::with_codec(codec, [(protocol, ProtocolSupport::Full)], request_config);
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
    let behaviour = Behaviour { requests, ping, identify, mdns };
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
                .with_max_negotiating_inbound_streams(2 * IN_FLIGHT_MAX)
        })
        .build();
    Ok(swarm)
}
