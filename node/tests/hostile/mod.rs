//! A site of the grid that turns against it: it has the key and an identity on the list, introduces itself like a node,
//! and then sends what it wants. Built from libp2p alone, so that it obeys none of the rules of a node.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use futures::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, StreamExt as _};
use libp2p::core::Transport as _;
use libp2p::core::upgrade::Version;
use libp2p::identity::Keypair;
use libp2p::pnet::{PnetConfig, PreSharedKey};
use libp2p::request_response::{self, Message, ProtocolSupport};
use libp2p::swarm::dial_opts::DialOpts;
use libp2p::swarm::{NetworkBehaviour, SwarmEvent};
use libp2p::{Multiaddr, PeerId, StreamProtocol, Swarm, SwarmBuilder, identify, noise, ping, tcp, yamux};

/// How long it waits before it comes again.
const AGAIN: Duration = Duration::from_millis(100);
/// Bytes of the headers of a request or a frame.
const HEAD: usize = 5;

/// What a node is told at the beginning: `node::network::hello` has the layout.
pub(crate) struct Introduction {
    /// Name of the run.
    pub(crate) run: String,
    /// Number of the site.
    pub(crate) site: u32,
    /// Processors of all sites.
    pub(crate) processors: Vec<u32>,
}

/// What it does.
pub(crate) struct Conduct {
    /// Whether it introduces itself, as a node does.
    pub(crate) introduces: bool,
    /// What it writes on every stream for frames once it attacks.
    pub(crate) bytes: Vec<u8>,
    /// How often it introduces itself once more on every connection once it attacks.
    pub(crate) hellos: usize,
}

impl Default for Conduct {
    fn default() -> Conduct {
        Conduct { introduces: true, bytes: Vec::new(), hellos: 0 }
    }
}

/// The hostile site, on a thread of its own until it is dropped.
pub(crate) struct Hostile {
    attacks: Arc<AtomicBool>,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// A new identity, and its peer id.
pub(crate) fn identity() -> (Keypair, String) {
    let keypair = Keypair::generate_ed25519();
    let peer_id = keypair.public().to_peer_id().to_string();
    (keypair, peer_id)
}

/// A frame as it is written to the stream.
pub(crate) fn record(frame: &[u8]) -> Vec<u8> {
    let mut bytes = vec![1];
    bytes.extend_from_slice(&(frame.len() as u32).to_le_bytes());
    bytes.extend_from_slice(frame);
    bytes
}

impl Hostile {
    /// Connects to the nodes at these addresses, again and again.
    pub(crate) fn start(
        keypair: Keypair,
        grid_key: &Path,
        introduction: Introduction,
        addresses: Vec<String>,
        conduct: Conduct,
    ) -> Hostile {
        let key: PreSharedKey = std::fs::read_to_string(grid_key).unwrap().parse().unwrap();
        let (attacks, ends) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let flags = (Arc::clone(&attacks), Arc::clone(&ends));
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let swarm = build(keypair, key, &introduction.run);
                let addresses = addresses.iter().map(|address| address.parse().unwrap()).collect();
                let running = Running { swarm, introduction, addresses, conduct, attacked: BTreeSet::new() };
                running.run(&flags.0, &flags.1).await;
            });
        });
        Hostile { attacks, ends, thread: Some(thread) }
    }

    /// Begins to send what it wants.
    pub(crate) fn attack(&self) {
        self.attacks.store(true, Ordering::Relaxed);
    }
}

impl Drop for Hostile {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic of the thread would hide the reason why the test ends.
            let _ = thread.join();
        }
    }
}

struct Running {
    swarm: Swarm<Behaviour>,
    introduction: Introduction,
    addresses: Vec<Multiaddr>,
    conduct: Conduct,
    /// To whom its bytes are on their way.
    attacked: BTreeSet<PeerId>,
}

impl Running {
    async fn run(mut self, attacks: &AtomicBool, ends: &AtomicBool) {
        let mut tick = tokio::time::interval(AGAIN);
        while !ends.load(Ordering::Relaxed) {
            tokio::select! {
                _ = tick.tick() => {
                    for address in self.addresses.clone() {
                        let Some(libp2p::multiaddr::Protocol::P2p(peer)) = address.iter().last() else { panic!() };
                        if !self.swarm.is_connected(&peer) {
                            self.attacked.remove(&peer);
                            // One attempt at a time: a second connection that is closed would take what is sent with it.
                            // Refused attempts are what this is about.
                            let _ = self.swarm.dial(DialOpts::peer_id(peer).addresses(vec![address]).build());
                            continue;
                        }
                        if !attacks.load(Ordering::Relaxed) {
                            continue;
                        }
                        if self.attacked.insert(peer) {
                            for _ in 0..self.conduct.hellos {
                                self.introduce(&peer);
                            }
                            if !self.conduct.bytes.is_empty() {
                                self.swarm.behaviour_mut().frames.send_request(&peer, self.conduct.bytes.clone());
                            }
                        }
                    }
                }
                event = self.swarm.select_next_some() => self.on_event(event),
            }
        }
    }

    fn introduce(&mut self, peer: &PeerId) {
        let mut hello = Vec::new();
        hello.extend_from_slice(&1_u32.to_le_bytes());
        hello.extend_from_slice(&self.introduction.site.to_le_bytes());
        hello.extend_from_slice(&LIFE.to_le_bytes());
        hello.extend_from_slice(&(self.introduction.processors.len() as u32).to_le_bytes());
        for processors in &self.introduction.processors {
            hello.extend_from_slice(&processors.to_le_bytes());
        }
        let mut request = vec![0];
        request.extend_from_slice(&(hello.len() as u32).to_le_bytes());
        request.extend_from_slice(&hello);
        self.swarm.behaviour_mut().hellos.send_request(peer, request);
    }

    fn on_event(&mut self, event: SwarmEvent<BehaviourEvent>) {
        match event {
            SwarmEvent::Behaviour(BehaviourEvent::Identify(identify::Event::Received {
                peer_id, ..
            })) if self.conduct.introduces => {
                self.introduce(&peer_id);
            }
            SwarmEvent::Behaviour(BehaviourEvent::Hellos(request_response::Event::Message {
                message: Message::Request { channel, .. },
                ..
            })) => {
                // The connection may be gone.
                let _ = self.swarm.behaviour_mut().hellos.send_response(channel, vec![0]);
            }
            // Sent on a connection that went away, or before the node knew who it is: once more.
            SwarmEvent::Behaviour(BehaviourEvent::Frames(request_response::Event::OutboundFailure {
                peer,
                ..
            })) => {
                self.attacked.remove(&peer);
            }
            _ => {}
        }
    }
}

/// Which incarnation of its process it claims to be in.
pub(crate) const LIFE: u64 = 666;

#[derive(NetworkBehaviour)]
struct Behaviour {
    identify: identify::Behaviour,
    ping: ping::Behaviour,
    hellos: request_response::Behaviour<Hellos>,
    frames: request_response::Behaviour<Frames>,
}

fn build(keypair: Keypair, key: PreSharedKey, run: &str) -> Swarm<Behaviour> {
    let protocol = |name: &str| StreamProtocol::try_from_owned(format!("/stealgrid/{run}/{name}")).unwrap();
    let config = || request_response::Config::default().with_request_timeout(Duration::from_secs(600));
    let behaviour = Behaviour {
        identify: identify::Behaviour::new(identify::Config::new(
            format!("/stealgrid/{run}"),
            keypair.public(),
        )),
        ping: ping::Behaviour::default(),
        hellos: request_response::Behaviour::new([(protocol("hello/1"), ProtocolSupport::Full)], config()),
        frames: request_response::Behaviour::new(
            [(protocol("frames/2"), ProtocolSupport::Outbound)],
            config(),
        ),
    };
    SwarmBuilder::with_existing_identity(keypair)
        .with_tokio()
        .with_other_transport(|keypair| {
            let noise = noise::Config::new(keypair)?;
            let tcp = tcp::tokio::Transport::new(tcp::Config::default().nodelay(true));
            let private = tcp.and_then(move |socket, _| PnetConfig::new(key).handshake(socket));
            Ok(private.upgrade(Version::V1Lazy).authenticate(noise).multiplex(yamux::Config::default()))
        })
        .unwrap()
        .with_behaviour(|_| behaviour)
        .unwrap()
        .with_swarm_config(|swarm| {
            swarm
                .with_idle_connection_timeout(Duration::from_secs(600))
                .with_substream_upgrade_protocol_override(Version::V1Lazy)
        })
        .build()
}

/// Hellos as nodes have them, with answers of one byte.
#[derive(Clone, Default)]
struct Hellos;

impl request_response::Codec for Hellos {
    type Protocol = StreamProtocol;
    type Request = Vec<u8>;
    type Response = Vec<u8>;

    async fn read_request<T: AsyncRead + Unpin + Send>(
        &mut self,
        _: &StreamProtocol,
        io: &mut T,
    ) -> io::Result<Vec<u8>> {
        let mut head = [0; HEAD];
        io.read_exact(&mut head).await?;
        let mut content = vec![0; u32::from_le_bytes([head[1], head[2], head[3], head[4]]) as usize];
        io.read_exact(&mut content).await?;
        Ok(content)
    }

    async fn read_response<T: AsyncRead + Unpin + Send>(
        &mut self,
        _: &StreamProtocol,
        io: &mut T,
    ) -> io::Result<Vec<u8>> {
        let mut byte = vec![0];
        io.read_exact(&mut byte).await?;
        Ok(byte)
    }

    async fn write_request<T: AsyncWrite + Unpin + Send>(
        &mut self,
        _: &StreamProtocol,
        io: &mut T,
        bytes: Vec<u8>,
    ) -> io::Result<()> {
        io.write_all(&bytes).await
    }

    async fn write_response<T: AsyncWrite + Unpin + Send>(
        &mut self,
        _: &StreamProtocol,
        io: &mut T,
        bytes: Vec<u8>,
    ) -> io::Result<()> {
        io.write_all(&bytes).await
    }
}

/// Any bytes on a stream for frames. What comes back is not read before all are written.
#[derive(Clone, Default)]
struct Frames;

impl request_response::Codec for Frames {
    type Protocol = StreamProtocol;
    type Request = Vec<u8>;
    type Response = ();

    async fn read_request<T: AsyncRead + Unpin + Send>(
        &mut self,
        _: &StreamProtocol,
        _: &mut T,
    ) -> io::Result<Vec<u8>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    async fn read_response<T: AsyncRead + Unpin + Send>(
        &mut self,
        _: &StreamProtocol,
        io: &mut T,
    ) -> io::Result<()> {
        let mut buffer = [0; 4096];
        while io.read(&mut buffer).await? > 0 {}
        Ok(())
    }

    async fn write_request<T: AsyncWrite + Unpin + Send>(
        &mut self,
        _: &StreamProtocol,
        io: &mut T,
        bytes: Vec<u8>,
    ) -> io::Result<()> {
        io.write_all(&bytes).await
    }

    async fn write_response<T: AsyncWrite + Unpin + Send>(
        &mut self,
        _: &StreamProtocol,
        _: &mut T,
        (): (),
    ) -> io::Result<()> {
        Ok(())
    }
}
