//! The two ends of a running network that a node holds: where arrivals come out, and where frames go in.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use scheduler::SiteId;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use super::task::NetworkTask;
use super::{
    Arrival, COMMANDS_MAX, Command, INBOX_FRAMES_CAP, LOSSES_MAX, NetworkConfig, NetworkCounters,
    NetworkError, NetworkState, Offence, Outgoing, Place,
};

/// The running network of a node: the receiving end. There is one.
pub struct Network {
    handle: NetworkHandle,
    arrivals: mpsc::Receiver<(Arrival, Option<Place>)>,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

/// The sending end; clones share the network.
#[derive(Clone)]
pub struct NetworkHandle {
    commands: mpsc::Sender<Command>,
    pub(super) state: watch::Receiver<NetworkState>,
    counters: Arc<NetworkCounters>,
}

impl Network {
    /// Starts the network and waits until its listener is up.
    ///
    /// # Errors
    /// If the configuration makes no sense or the address cannot be listened on.
    pub async fn start(config: NetworkConfig) -> Result<Network, NetworkError> {
        let inbox_of = config.processors.iter().map(|_| AtomicUsize::new(0)).collect();
        let counters = Arc::new(NetworkCounters { inbox_of, ..NetworkCounters::default() });
        let (commands, command_receiver) = mpsc::channel(COMMANDS_MAX);
        let (arrival_sender, arrivals) =
            mpsc::channel(config.limits.inbox_frames.min(INBOX_FRAMES_CAP) + LOSSES_MAX);
        let (stop, stopped) = oneshot::channel();
        let task = NetworkTask::new(config, arrival_sender, Arc::clone(&counters)).await?;
        let state = task.state();
        let task = tokio::spawn(task.run(command_receiver, stopped));
        Ok(Network { handle: NetworkHandle { commands, state, counters }, arrivals, stop, task })
    }

    /// The sending end.
    pub fn handle(&self) -> NetworkHandle {
        self.handle.clone()
    }

    /// The next arrival; `None` only if the network task has failed. Can be cancelled without losing one.
    pub async fn next(&mut self) -> Option<Arrival> {
        self.arrivals.recv().await.map(|(arrival, _)| arrival)
    }

    /// The next arrival if there is one already.
    pub fn try_next(&mut self) -> Option<Arrival> {
        self.arrivals.try_recv().ok().map(|(arrival, _)| arrival)
    }

    /// How many arrivals are waiting to be taken.
    pub fn waiting(&self) -> usize {
        self.arrivals.len()
    }

    /// Closes all connections and waits for the task to end.
    pub async fn shutdown(self) {
        // An error means that the task has ended already, which is what is wanted.
        let _ = self.stop.send(());
        if let Err(error) = self.task.await {
            tracing::error!(%error, "the network task failed");
        }
    }
}

impl NetworkHandle {
    /// Sends a frame, or counts it as lost if too many are waiting; then `false`.
    pub fn send(&self, outgoing: Outgoing) -> bool {
        self.counters.in_flight.fetch_add(1, Ordering::Relaxed);
        let sent = self.commands.try_send(Command::Send(outgoing)).is_ok();
        if !sent {
            self.counters.in_flight.fetch_sub(1, Ordering::Relaxed);
            self.counters.lost.fetch_add(1, Ordering::Relaxed);
            self.counters.outbox_full.fetch_add(1, Ordering::Relaxed);
        }
        sent
    }

    /// Reports that a frame of this site was not what it may send: the site is slowed down, and disconnected if it
    /// goes on like that.
    pub fn offence(&self, by: SiteId, offence: Offence) {
        // A full channel means that there is worse to do; the next one will be heard.
        let _ = self.commands.try_send(Command::Offence { by, offence });
    }

    /// Makes the addresses of other sites known; they are dialed from then on.
    ///
    /// # Errors
    /// If one of them is no address of another site, or its peer id is not known; then none is used.
    pub async fn connect(&self, peers: Vec<(SiteId, String)>) -> Result<(), NetworkError> {
        let (answer, answered) = oneshot::channel();
        let command = Command::Connect { peers, answer };
        self.commands.send(command).await.map_err(|_| NetworkError::Closed)?;
        answered.await.map_err(|_| NetworkError::Closed)?
    }

    /// Sends a small frame to a site and waits for the answer of its network: the time there and back, on the wall
    /// clock. `None` if the site cannot be reached.
    pub async fn probe(&self, to: SiteId) -> Option<Duration> {
        let (answer, answered) = oneshot::channel();
        self.commands.send(Command::Probe { to, answer }).await.ok()?;
        answered.await.ok()
    }

    /// The network as of now.
    pub fn state(&self) -> NetworkState {
        self.state.borrow().clone()
    }

    /// Waits until something of the network has changed since the last time.
    pub(crate) async fn changed(&mut self) {
        if self.state.changed().await.is_err() {
            // The network is gone and will never change.
            std::future::pending::<()>().await;
        }
    }

    /// Waits until the network is ready; forever if a site never appears.
    pub async fn ready(&self) {
        let mut state = self.state.clone();
        if state.wait_for(NetworkState::ready).await.is_err() {
            // The network is gone and will never be ready.
            std::future::pending::<()>().await;
        }
    }

    /// What the network has counted.
    pub fn counters(&self) -> &NetworkCounters {
        &self.counters
    }
}
