//! A running node: its event loop, its network and its control interface, started and stopped together.
//!
//! Several can live in one process, as tasks of one runtime; that is how tests run a grid.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use protocol::PeerConfig;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tracing::Instrument as _;

use crate::config::{ConfigError, IdentitySource, NodeConfig};
use crate::control::api::ReadyLine;
use crate::control::serve::ControlCounters;
use crate::control::{COMMANDS_MAX, Command, Token, TokenError, server};
use crate::event_log::EventLog;
use crate::exit;
use crate::http;
use crate::http::hosts::Hosts;
use crate::instance;
use crate::journal::{self, About, Journal, JournalError, Saved};
use crate::network::handle::Network;
use crate::network::{GridKey, GridKeyError, Identity, IdentityError, NetworkConfig, NetworkError};
use crate::peer_address::PeerAddress;
use crate::site::SiteLoop;

/// How long open requests may take after the node has stopped.
const SERVER_GRACE: Duration = Duration::from_secs(2);

/// Why a node does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The configuration makes no sense.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The key of the node cannot be read or made.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The grid's key.
    #[error(transparent)]
    GridKey(#[from] GridKeyError),
    /// The token of the control interface.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The network does not start.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// The control interface, or the address for metrics.
    #[error("listen for control on {address}: {error}; choose a free port, or 0 for any")]
    Http {
        /// The address that it cannot listen on.
        address: String,
        /// What the system said.
        error: io::Error,
    },
    /// The data directory.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The event loop cannot begin.
    #[error("{0:#}")]
    Begin(anyhow::Error),
    /// The event file.
    #[error("write events to {}: {error}", .path.display())]
    Events {
        /// The file that events go to.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
}

impl StartError {
    /// The exit code of a process that fails with this.
    pub fn exit_code(&self) -> u8 {
        match self {
            StartError::Http { .. } | StartError::Network(NetworkError::Listen { .. }) => exit::ADDRESS,
            StartError::Network(NetworkError::Start(_) | NetworkError::Closed) => exit::UNEXPECTED,
            StartError::Journal(error) => error.exit_code(),
            StartError::Begin(error) => {
                error.downcast_ref::<JournalError>().map_or(exit::UNEXPECTED, JournalError::exit_code)
            }
            _ => exit::INPUT,
        }
    }
}

/// A running node.
pub struct Node {
    ready: ReadyLine,
    commands: mpsc::Sender<Command>,
    site: JoinHandle<anyhow::Result<()>>,
    control: Arc<ControlCounters>,
    /// Control, and metrics if they have an address of their own.
    servers: Vec<Server>,
}

/// One HTTP listener.
struct Server {
    task: JoinHandle<io::Result<()>>,
    stop: oneshot::Sender<()>,
}

/// Stops a node from elsewhere.
#[derive(Clone)]
pub struct Stopper {
    commands: mpsc::Sender<Command>,
}

impl Node {
    /// Starts a node: returns when both its listeners are up.
    ///
    /// # Errors
    /// If the configuration makes no sense, the key cannot be had, or an address is in use.
    pub async fn start(config: NodeConfig) -> Result<Node, StartError> {
        let peer = config.check()?;
        let span = tracing::info_span!("node", site = config.site.0);
        let grid_key = config.grid_key.as_deref().map(GridKey::read).transpose()?;
        let token = config.control_token.as_deref().map(Token::read).transpose()?;
        let (control_listener, http) = listen(&config.http).await?;
        if !control_listener.local_addr().is_ok_and(|address| address.ip().is_loopback()) {
            tracing::warn!(
                http,
                "the control interface is open to other machines, and its token is not encrypted"
            );
        }
        let metrics_listener = match &config.metrics {
            Some(address) => Some(listen(address).await?),
            None => None,
        };
        let (identity, identity_seed) = match &config.identity {
            IdentitySource::Seed(seed) => (Identity::derived(&config.run, *seed, config.site), Some(*seed)),
            IdentitySource::File(path) => (Identity::from_file(path)?, None),
            IdentitySource::Drawn => (Identity::drawn(), None),
        };
        let events = EventLog::new(config.events_max, config.events_file.as_deref()).map_err(|error| {
            StartError::Events { path: config.events_file.clone().unwrap_or_default(), error }
        })?;
        let mut journal = open_journal(&config, &peer)?;
        let restarted = journal.as_ref().is_some_and(|(_, saved)| saved.durable.incarnation.is_some());
        let instance = journal.as_ref().map_or_else(|| instance::draw(0), |(_, saved)| saved.about.instance);
        let network_config = NetworkConfig {
            run: config.run.clone(),
            site: config.site,
            processors: config.grid.iter().map(|site| site.processors).collect(),
            identity,
            identity_seed,
            instance,
            listen: config.listen.clone(),
            discovery: config.discovery,
            frame_bytes_max: config.frame_bytes_max,
            grid_key,
            allow_open_network: config.allow_open_network,
            members: config.members.iter().map(|member| (member.site, member.peer_id.clone())).collect(),
            limits: config.limits.clone(),
            rejoins: restarted || config.new_incarnation.is_some(),
            journals: journal.as_ref().map(|(_, saved)| saved.others.clone()),
        };
        let network_begun = Instant::now();
        let listened = journal.as_ref().map_or(&[][..], |(_, saved)| &saved.listen[..]);
        let network = start_network(network_config, port_before(&config.listen, listened))
            .instrument(span.clone())
            .await?;
        let sender = network.handle();
        let mut peers: Vec<PeerAddress> = config.peers.clone();
        // Where the others were found in an earlier incarnation, which only a coordinator may have known.
        peers.extend(journal.iter().flat_map(|(_, saved)| saved.peers.iter().cloned()));
        let peers = peers.into_iter().map(|peer| (peer.site, peer.address)).collect();
        if let Err(error) = sender.connect(peers).await {
            network.shutdown().await;
            return Err(error.into());
        }
        let network_took = network_begun.elapsed();
        let state = sender.state();
        let ready = ReadyLine {
            site: config.site,
            name: peer.grid.site(config.site).name.clone(),
            peer_id: state.peer_id,
            listen: state.listen.clone(),
            http,
            metrics: metrics_listener.as_ref().map(|(_, address)| address.clone()),
        };
        if let Some((journal, _)) = &mut journal {
            journal.listen(&state.listen);
        }
        let (commands, command_receiver) = mpsc::channel(COMMANDS_MAX);
        let counters = Arc::new(ControlCounters::default());
        let (control, control_counters) = (Arc::clone(&counters), Arc::clone(&counters));
        let site =
            SiteLoop::new(&config, peer, instance, network, events, command_receiver, control_counters);
        let site = match journal {
            Some((journal, saved)) => site
                .resume(journal, saved, config.new_incarnation, network_took)
                .map_err(StartError::Begin)?,
            None => {
                let mut site = site;
                site.begin_executing(BTreeSet::new()).map_err(StartError::Begin)?;
                site
            }
        };
        let addresses = [Some(&config.http), config.metrics.as_ref()];
        let listened = addresses.into_iter().flatten().filter_map(|address| address.rsplit_once(':'));
        let names = listened.map(|(host, _)| host.to_string()).chain(config.http_hosts.iter().cloned());
        let hosts = Hosts::new(names, "--http-host");
        let context = server::Context::new(commands.clone(), sender, token, Arc::clone(&counters), hosts);
        let limits = http::Limits {
            connections: config.limits.control_connections,
            request: Duration::from_secs(u64::from(config.limits.control_request_secs)),
            // Long answers are for those who show the token, and a coordinator may stand still for a while.
            unread: None,
        };
        let mut servers = Vec::new();
        let mut serve_on = |listener, router| {
            let (stop, stopped) = oneshot::channel();
            let serving = http::serve(listener, router, limits, Arc::clone(&counters.turned), stopped);
            servers.push(Server { task: tokio::spawn(serving.instrument(span.clone())), stop });
        };
        serve_on(control_listener, server::control(context.clone()));
        if let Some((listener, _)) = metrics_listener {
            serve_on(listener, server::metrics_only(context));
        }
        Ok(Node { ready, commands, site: tokio::spawn(site.run().instrument(span)), control, servers })
    }

    /// What the process prints when it is up.
    pub fn ready_line(&self) -> &ReadyLine {
        &self.ready
    }

    /// Whether somebody still wants what the node does.
    pub(crate) fn control(&self) -> Arc<ControlCounters> {
        Arc::clone(&self.control)
    }

    /// A way to stop the node while somebody waits for it.
    pub fn stopper(&self) -> Stopper {
        Stopper { commands: self.commands.clone() }
    }

    /// Waits until the node was told to stop, and for everything it started to end.
    ///
    /// # Errors
    /// If its event loop failed.
    pub async fn wait(self) -> anyhow::Result<()> {
        let Node { commands, site, servers, .. } = self;
        let result = site.await.context("the event loop failed");
        drop(commands);
        for Server { mut task, stop } in servers {
            // An error means that the server has ended by itself, which its result tells.
            let _ = stop.send(());
            match tokio::time::timeout(SERVER_GRACE, &mut task).await {
                Ok(served) => served.context("the control interface failed")??,
                Err(_) => {
                    task.abort();
                    tracing::warn!("closed the control interface with a request open");
                }
            }
        }
        result?
    }
}

/// A listener, and the address that it has.
async fn listen(address: &str) -> Result<(TcpListener, String), StartError> {
    let failed = |error| StartError::Http { address: address.to_string(), error };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let local = listener.local_addr().map_err(failed)?;
    Ok((listener, local.to_string()))
}

impl Stopper {
    /// Tells the node to stop. It may have stopped already.
    pub async fn stop(&self) {
        let (answer, answered) = oneshot::channel();
        if self.commands.send(Command::Stop { left: false, answer }).await.is_ok() {
            // An error means that the loop ended first.
            let _ = answered.await;
        }
    }
}

/// Opens the journal of the data directory, if there is one.
fn open_journal(config: &NodeConfig, peer: &PeerConfig) -> Result<Option<(Journal, Saved)>, JournalError> {
    let Some(dir) = &config.data_dir else { return Ok(None) };
    let about = About {
        format: journal::FORMAT,
        run: config.run.clone(),
        site: config.site,
        grid: config.grid.iter().map(|site| (site.name.clone(), site.processors)).collect(),
        instance: instance::draw(config.new_incarnation.map_or(0, |new| new.journals_lost)),
    };
    let (journal, saved) = Journal::open(dir, &about, config.durability, config.journal_bytes_max)?;
    let [theirs, ours] = [&saved.about, &about].map(|about| instance::lost_before(about.instance));
    if theirs < ours {
        // It was put back after others were told that it is lost.
        let [theirs, ours] = [theirs, ours].map(|lost| format!("number {}", lost + 1));
        return Err(JournalError::Foreign { dir: dir.clone(), what: "journal", theirs, ours });
    }
    journal.check(&saved, peer)?;
    Ok(Some((journal, saved)))
}

/// The address to listen on so that others find the node where it was: with the port of the last incarnation, if any will
/// do.
fn port_before(configured: &str, listened: &[String]) -> Option<String> {
    let any = configured.strip_suffix("/tcp/0")?;
    let port = listened.iter().find_map(|address| address.split("/tcp/").nth(1))?;
    let port: u16 = port.split('/').next()?.parse().ok()?;
    Some(format!("{any}/tcp/{port}"))
}

/// Starts the network at its old address, or if that is taken as configured.
async fn start_network(config: NetworkConfig, before: Option<String>) -> Result<Network, NetworkError> {
    if let Some(listen) = before {
        match Network::start(NetworkConfig { listen, ..config.clone() }).await {
            Err(NetworkError::Listen { address, error }) => {
                tracing::warn!(address, %error, "the address of the last incarnation is taken; others are told the new one");
            }
            started => return started,
        }
    }
    Network::start(config).await
}
