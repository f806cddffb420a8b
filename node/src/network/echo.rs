//! The yardstick for the node's own transport: an echo over nothing but libp2p's request-response behaviour, on the
//! same TCP, Noise and yamux, with the same lazy negotiation. For benchmarks only.

use std::io;
use std::time::{Duration, Instant};

use futures::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, StreamExt as _};
use libp2p::core::upgrade::Version;
use libp2p::request_response::{self, ProtocolSupport};
use libp2p::swarm::SwarmEvent;
use libp2p::{Multiaddr, PeerId, StreamProtocol, Swarm, SwarmBuilder, noise, tcp, yamux};

use super::NetworkError;

/// Far more than a frame.
const BYTES_MAX: usize = 1024 * 1024;
/// Ample for a round trip on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(10);

/// Bytes with a length before them, both ways.
#[derive(Clone, Debug, Default)]
struct Bytes;

async fn read<T: AsyncRead + Unpin + Send>(io: &mut T) -> io::Result<Vec<u8>> {
    let mut len = [0; 4];
    io.read_exact(&mut len).await?;
    let len = u32::from_le_bytes(len) as usize;
    if len > BYTES_MAX {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut bytes = vec![0; len];
    io.read_exact(&mut bytes).await?;
    Ok(bytes)
}

async fn write<T: AsyncWrite + Unpin + Send>(io: &mut T, content: &[u8]) -> io::Result<()> {
    let mut bytes = u32::try_from(content.len()).expect("payloads are short").to_le_bytes().to_vec();
    bytes.extend_from_slice(content);
    io.write_all(&bytes).await
}

impl request_response::Codec for Bytes {
    type Protocol = StreamProtocol;
    type Request = Vec<u8>;
    type Response = Vec<u8>;

    async fn read_request<T>(&mut self, _: &StreamProtocol, io: &mut T) -> io::Result<Vec<u8>>
    where
        T: AsyncRead + Unpin + Send,
    {
        read(io).await
    }

    async fn read_response<T>(&mut self, _: &StreamProtocol, io: &mut T) -> io::Result<Vec<u8>>
    where
        T: AsyncRead + Unpin + Send,
    {
        read(io).await
    }

    async fn write_request<T>(&mut self, _: &StreamProtocol, io: &mut T, bytes: Vec<u8>) -> io::Result<()>
    where
        T: AsyncWrite + Unpin + Send,
    {
        write(io, &bytes).await
    }

    async fn write_response<T>(&mut self, _: &StreamProtocol, io: &mut T, bytes: Vec<u8>) -> io::Result<()>
    where
        T: AsyncWrite + Unpin + Send,
    {
        write(io, &bytes).await
    }
}

type EchoSwarm = Swarm<request_response::Behaviour<Bytes>>;
type EchoEvent = SwarmEvent<request_response::Event<Vec<u8>, Vec<u8>>>;

fn failed(error: &dyn std::fmt::Display) -> NetworkError {
    NetworkError::Start(error.to_string())
}

fn build() -> Result<EchoSwarm, NetworkError> {
    let protocols = [(StreamProtocol::new("/stealgrid/echo/1"), ProtocolSupport::Full)];
    let behaviour = request_response::Behaviour::new(protocols, request_response::Config::default());
    let swarm = SwarmBuilder::with_new_identity()
        .with_tokio()
        .with_tcp(tcp::Config::default().nodelay(true), noise::Config::new, yamux::Config::default)
        .map_err(|error| failed(&error))?
        .with_behaviour(|_| behaviour)
        .map_err(|error| failed(&error))?
        .with_swarm_config(|swarm| {
            swarm
                .with_idle_connection_timeout(Duration::from_secs(600))
                .with_substream_upgrade_protocol_override(Version::V1Lazy)
        })
        .build();
    Ok(swarm)
}

/// The end that answers.
pub(crate) struct EchoServer {
    swarm: EchoSwarm,
    address: Multiaddr,
}

impl EchoServer {
    /// Listens on the loopback interface.
    pub(crate) async fn start() -> Result<EchoServer, NetworkError> {
        let mut swarm = build()?;
        let any: Multiaddr = "/ip4/127.0.0.1/tcp/0".parse().expect("it is an address");
        swarm.listen_on(any).map_err(|error| failed(&error))?;
        loop {
            if let SwarmEvent::NewListenAddr { address, .. } = swarm.select_next_some().await {
                return Ok(EchoServer { swarm, address });
            }
        }
    }

    /// Where it is: to be dialed by [`EchoClient::connect`].
    pub(crate) fn address(&self) -> String {
        format!("{}/p2p/{}", self.address, self.swarm.local_peer_id())
    }

    /// Answers every request with these bytes. Never ends.
    pub(crate) async fn serve(&mut self, answer: &[u8]) {
        loop {
            if let SwarmEvent::Behaviour(request_response::Event::Message {
                message: request_response::Message::Request { channel, .. },
                ..
            }) = self.swarm.select_next_some().await
            {
                // An error means that the other end is gone.
                let _ = self.swarm.behaviour_mut().send_response(channel, answer.to_vec());
            }
        }
    }
}

/// The end that asks.
pub(crate) struct EchoClient {
    swarm: EchoSwarm,
    server: PeerId,
}

impl EchoClient {
    /// Connects to a server.
    pub(crate) async fn connect(address: &str) -> Result<EchoClient, NetworkError> {
        let mut swarm = build()?;
        let address: Multiaddr = address.parse().map_err(|error| failed(&error))?;
        swarm.dial(address).map_err(|error| failed(&error))?;
        loop {
            match next(&mut swarm).await? {
                SwarmEvent::ConnectionEstablished { peer_id, .. } => {
                    return Ok(EchoClient { swarm, server: peer_id });
                }
                SwarmEvent::OutgoingConnectionError { error, .. } => return Err(failed(&error)),
                _ => {}
            }
        }
    }

    /// Asks once: how long the answer took.
    pub(crate) async fn round_trip(&mut self, request: Vec<u8>) -> Result<Duration, NetworkError> {
        let begun = Instant::now();
        self.swarm.behaviour_mut().send_request(&self.server, request);
        loop {
            match next(&mut self.swarm).await? {
                SwarmEvent::Behaviour(request_response::Event::Message {
                    message: request_response::Message::Response { .. },
                    ..
                }) => return Ok(begun.elapsed()),
                SwarmEvent::Behaviour(request_response::Event::OutboundFailure { error, .. }) => {
                    return Err(failed(&error));
                }
                _ => {}
            }
        }
    }
}

async fn next(swarm: &mut EchoSwarm) -> Result<EchoEvent, NetworkError> {
    tokio::time::timeout(PATIENCE, swarm.select_next_some())
        .await
        .map_err(|_| failed(&"the echo does not answer"))
}
