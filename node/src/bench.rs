//! What a steal costs on this machine: two peers over the node's network, beside a bare echo over libp2p.
//!
//! The victim and the server of the echo have a thread and a runtime each, as processes have; the thief and the client
//! share one. Steals and echoes alternate, each after a pause, so that both meet the same machine.

use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use protocol::message::StealMessage;
use protocol::{Input, Message, Output, Peer, PeerConfig, Terms};
use scheduler::{Grid, JobId, JobSpec, Labels, SiteId, Span, Strategy, Time};
use tokio::sync::oneshot;

use crate::frame::Frame;
use crate::limits::Limits;
use crate::network::echo::{EchoClient, EchoServer};
use crate::network::handle::{Network, NetworkHandle};
use crate::network::{Arrival, Discovery, FRAME_BYTES_MAX, Identity, NetworkConfig, Outgoing};

/// The victim, with jobs that nobody but the thief has processors for.
const VICTIM: SiteId = SiteId(1);
/// The thief, larger by one processor.
const THIEF: SiteId = SiteId(2);
/// Processors of both; every job has those of the victim.
const PROCESSORS: [u32; 2] = [2, 3];
/// Steals and echoes that are not counted.
const WARM_UP: usize = 50;
/// Before each: long enough for what the one before left behind, such as acknowledgements.
const PAUSE: Duration = Duration::from_millis(3);
/// Ample for a message on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(10);

/// What was measured.
#[derive(Clone, Debug)]
pub struct StealCost {
    /// From the thief's decision to ask until it has started the job that it was granted.
    pub steals: Vec<Duration>,
    /// From a request to its answer, with as many bytes.
    pub echoes: Vec<Duration>,
    /// Bytes of a request and a grant, with what the node adds to a message.
    pub bytes: (usize, usize),
}

/// Measures so many steals of one job each, and as many echoes.
///
/// # Errors
/// If the network does not come up, or the peers do something else.
pub fn steal(rounds: usize) -> anyhow::Result<StealCost> {
    let (about, victim) = start_victim(rounds + WARM_UP)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let cost = runtime.block_on(measure(rounds, &about))?;
    drop(about.stop);
    victim.join().expect("the victim does not panic")?;
    Ok(cost)
}

/// What the thief must know of the victim.
struct About {
    address: String,
    /// Dropped to end the victim.
    stop: oneshot::Sender<()>,
}

async fn measure(rounds: usize, victim: &About) -> anyhow::Result<StealCost> {
    let mut thief = Party::start(THIEF).await?;
    thief.network.handle().connect(vec![(VICTIM, victim.address.clone())]).await?;
    tokio::time::timeout(PATIENCE, thief.sender.ready()).await.context("the victim does not connect")?;
    // The first turn, in which nothing is known of the victim; then its queue is announced, and the first job taken.
    thief.tell(Input::Turn)?;
    let mut running = thief.until_started().await?;
    let mut bytes = (0, 0);
    let mut echo: Option<(EchoClient, EchoThread)> = None;
    let (mut steals, mut echoes) = (Vec::new(), Vec::new());
    for round in 0..rounds + WARM_UP {
        tokio::time::sleep(PAUSE).await;
        thief.drain()?;
        thief.now += Span::from_secs(1);
        thief.tell(Input::Completed(running))?;
        let begun = Instant::now();
        thief.tell(Input::Turn)?;
        if !matches!(thief.last_sent, Some(Message::Steal(StealMessage::Request { .. }))) {
            bail!("the thief does not ask; it sent {:?}", thief.last_sent);
        }
        let request = thief.last_sent_bytes;
        running = thief.until_started().await?;
        let took = begun.elapsed();
        bytes = (request, thief.last_granted_bytes);
        if echo.is_none() {
            let thread = EchoThread::start(bytes.1)?;
            echo = Some((EchoClient::connect(&thread.address).await?, thread));
        }
        tokio::time::sleep(PAUSE).await;
        let (client, _) = echo.as_mut().expect("it was connected");
        let echoed = client.round_trip(vec![7; bytes.0]).await?;
        if round >= WARM_UP {
            steals.push(took);
            echoes.push(echoed);
        }
    }
    thief.network.shutdown().await;
    Ok(StealCost { steals, echoes, bytes })
}

/// One peer over the network of a node.
struct Party {
    site: SiteId,
    peer: Peer,
    network: Network,
    sender: NetworkHandle,
    now: Time,
    sequence: u64,
    last_sent: Option<Message>,
    last_sent_bytes: usize,
    last_granted_bytes: usize,
    started: Option<JobId>,
}

impl Party {
    async fn start(site: SiteId) -> anyhow::Result<Party> {
        let run = "bench-steal".to_string();
        let network = Network::start(NetworkConfig {
            identity: Identity::derived(&run, 1, site),
            run,
            site,
            processors: PROCESSORS.to_vec(),
            identity_seed: Some(1),
            instance: u64::from(site.0),
            rejoins: false,
            journals: None,
            listen: "/ip4/127.0.0.1/tcp/0".to_string(),
            discovery: Discovery::Static,
            frame_bytes_max: FRAME_BYTES_MAX,
            grid_key: None,
            allow_open_network: false,
            members: Vec::new(),
            // A node that does nothing but steal may be faster than any other.
            limits: Limits { frames_per_second: u32::MAX, ..Limits::default() },
        })
        .await?;
        let peer = Peer::new(PeerConfig {
            site,
            terms: Terms::new(Arc::new(Grid::of_sizes(&PROCESSORS)?), Strategy::default()),
        });
        Ok(Party {
            site,
            peer,
            sender: network.handle(),
            network,
            now: Time::ZERO,
            sequence: 0,
            last_sent: None,
            last_sent_bytes: 0,
            last_granted_bytes: 0,
            started: None,
        })
    }

    /// Tells the peer one thing and sends what it wants sent, as a node does.
    fn tell(&mut self, input: Input) -> anyhow::Result<()> {
        self.peer.handle(self.now, input);
        while let Some(output) = self.peer.poll_output() {
            match output {
                Output::Start(job) => self.started = Some(job.id),
                Output::Stop(_) | Output::Event(_) | Output::Write(_) => {}
                Output::Send { to, message } => {
                    self.sequence += 1;
                    let run_times = message.transfers().iter().map(|t| (t.job.id, t.job.requested)).collect();
                    let frame = Frame {
                        from: self.site,
                        to,
                        instance: u64::from(self.site.0),
                        sequence: self.sequence,
                        sent_at: self.now,
                        injected: Span::ZERO,
                        message: protocol::codec::encode(&message),
                        run_times,
                    };
                    let outgoing = Outgoing { to, kind: message.kind(), bytes: frame.encode() };
                    self.last_sent_bytes = outgoing.bytes.len();
                    self.last_sent = Some(message);
                    if !self.sender.send(outgoing) {
                        bail!("the network does not take a frame");
                    }
                }
            }
        }
        Ok(())
    }

    /// Handles what arrived, and decides as a node does after it.
    fn on_arrival(&mut self, arrival: Arrival) -> anyhow::Result<()> {
        let Arrival::Frame { from, bytes, .. } = arrival else { bail!("a frame was lost: {arrival:?}") };
        let frame = Frame::decode(&bytes)?;
        let message = protocol::codec::decode(&frame.message)?;
        if matches!(message, Message::Steal(StealMessage::Grant { .. })) {
            self.last_granted_bytes = bytes.len();
        }
        self.now = self.now.max(frame.sent_at);
        self.tell(Input::Message { from, message })?;
        if self.started.is_none() { self.tell(Input::Turn) } else { Ok(()) }
    }

    async fn next(&mut self) -> anyhow::Result<Arrival> {
        let arrival = tokio::time::timeout(PATIENCE, self.network.next()).await;
        arrival.context("nothing arrives")?.context("the network has failed")
    }

    /// Waits until a job that was granted has started.
    async fn until_started(&mut self) -> anyhow::Result<JobId> {
        loop {
            if let Some(job) = self.started.take() {
                return Ok(job);
            }
            let arrival = self.next().await?;
            self.on_arrival(arrival)?;
        }
    }

    /// Handles what has arrived by now.
    fn drain(&mut self) -> anyhow::Result<()> {
        while let Some(arrival) = self.network.try_next() {
            self.on_arrival(arrival)?;
        }
        Ok(())
    }
}

/// Starts the victim on a thread of its own, busy, and with this many jobs that wait, and some more.
fn start_victim(jobs: usize) -> anyhow::Result<(About, JoinHandle<anyhow::Result<()>>)> {
    let (sender, about) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let mut victim = Party::start(VICTIM).await?;
            let (stop, mut stopped) = oneshot::channel();
            let address =
                victim.sender.state().listen.first().cloned().context("the victim does not listen")?;
            sender.send(About { address, stop }).expect("it is waited for");
            tokio::time::timeout(PATIENCE, victim.sender.ready()).await.context("no thief connects")?;
            for id in 0..jobs as u64 + 10 {
                victim.tell(Input::Submitted(job(id)))?;
            }
            victim.tell(Input::Turn)?;
            // The thief's part is to start jobs; here one runs for ever.
            loop {
                tokio::select! {
                    biased;
                    _ = &mut stopped => break,
                    arrival = victim.network.next() => match arrival {
                        Some(Arrival::Lost { .. }) | None => break,
                        Some(arrival) => {
                            victim.started = None;
                            victim.on_arrival(arrival)?;
                        }
                    },
                }
            }
            victim.network.shutdown().await;
            Ok(())
        })
    });
    match about.recv() {
        Ok(about) => Ok((about, thread)),
        Err(_) => match thread.join().expect("the victim does not panic") {
            Err(error) => Err(error),
            Ok(()) => bail!("the victim ended before the first steal"),
        },
    }
}

/// The server of the echo, on a thread of its own.
struct EchoThread {
    address: String,
    /// Dropped with it, which ends the thread.
    _stop: oneshot::Sender<()>,
}

impl EchoThread {
    /// Answers with so many bytes.
    fn start(answer: usize) -> anyhow::Result<EchoThread> {
        let (sender, address) = mpsc::channel();
        let (stop, stopped) = oneshot::channel::<()>();
        std::thread::spawn(move || -> anyhow::Result<()> {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(async {
                let mut server = EchoServer::start().await?;
                sender.send(server.address()).expect("it is waited for");
                let bytes = vec![7; answer];
                tokio::select! {
                    () = server.serve(&bytes) => {}
                    _ = stopped => {}
                }
                Ok(())
            })
        });
        let address = address.recv().context("the echo does not start")?;
        Ok(EchoThread { address, _stop: stop })
    }
}

fn job(id: u64) -> JobSpec {
    JobSpec {
        id: JobId(id),
        submit: Time::ZERO,
        processors: PROCESSORS[0],
        requested: Span::from_secs(1_000_000),
        labels: Labels::UNKNOWN,
        origin: VICTIM,
        payload: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Says nothing of speed: a test machine has its own.
    #[test]
    fn every_round_is_a_steal_and_an_echo_of_the_same_size() {
        let cost = steal(20).unwrap();
        assert_eq!((cost.steals.len(), cost.echoes.len()), (20, 20));
        assert!(cost.bytes.0 > 50 && cost.bytes.1 > 100, "{:?}", cost.bytes);
    }
}
