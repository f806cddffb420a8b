//! The node's end of registration: asks until it is told which site it is.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _, UdpSocket};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use ipnet::IpNet;
use serde::Serialize;

use super::api::{Answer, Asking, Ready};
use crate::config::{IdentitySource, NodeConfig};
use crate::control::Token;
use crate::control::api::{Failure, ReadyLine};
use crate::network::listen_at;
use crate::secret_file;

/// Between two questions.
const ASK_EVERY: Duration = Duration::from_millis(250);
/// Wall time until a question without an answer is given up.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The default of `--register-patience`: containers start in any order, and images may be loaded first.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// How to ask.
#[derive(Clone, Debug)]
pub struct Application {
    /// The coordinator, as in `http://coordinator:8080`.
    pub url: String,
    /// The file with the token; it may appear later.
    pub token: PathBuf,
    /// What is the same when this process restarts.
    pub instance: String,
    /// The name of the site that it wants to be.
    pub name: Option<String>,
    /// How many processors that must have.
    pub processors: Option<u32>,
    /// Where it keeps journals.
    pub data_dir: Option<PathBuf>,
    /// How long a coordinator or a token that is not there is waited for.
    pub patience: Duration,
}

/// Why a node is no site.
#[derive(Debug, thiserror::Error)]
pub enum RegisterError {
    /// No coordinator, or none that makes sense.
    #[error("register at {url}: {reason}")]
    Unreachable {
        /// Address of the coordinator.
        url: String,
        /// What went wrong last.
        reason: String,
    },
    /// It said no.
    #[error("register at {url}: the coordinator refused: {reason}")]
    Refused {
        /// Address of the coordinator.
        url: String,
        /// Why the coordinator refused, in its words.
        reason: String,
    },
    /// The experiment wants what this node does not have.
    #[error("the experiment keeps journals; say where this node can, with --data-dir")]
    NoDataDir,
    /// Whoever has the token says what the scheduler does, and not which programs are started.
    #[error(
        "the experiment has commands that decide, and a node that registers starts no commands of others"
    )]
    Commands,
    /// It cannot be made.
    #[error("--data-dir {}: {}", .0.display(), .1)]
    DataDir(PathBuf, std::io::Error),
    /// No address of this machine is in the network.
    #[error("--listen-within {0}: this machine has no address there")]
    NotWithin(IpNet),
    /// The coordinator is on another machine and could not reach it.
    #[error(
        "the control interface listens on {0}, which the coordinator cannot reach; write --http as in 0.0.0.0:9100"
    )]
    Loopback(String),
    /// Not an address that can be listened on.
    #[error("--listen {0}: with --listen-within, write an address as in /ip4/0.0.0.0/tcp/4001")]
    Listen(String),
}

/// A node that knows which site it is, and that has to say when it is up.
#[derive(Debug)]
pub struct Accepted {
    application: Application,
    token: Token,
    process: u64,
    /// What it was told.
    pub config: Box<NodeConfig>,
}

/// Asks until there is an answer. Blocks.
///
/// # Errors
/// If the coordinator refuses, or none is there for too long.
pub fn ask(application: Application) -> Result<Accepted, RegisterError> {
    let process = u64::from_le_bytes(*secret_file::random());
    let mut deadline = Instant::now() + application.patience;
    let mut said = String::new();
    loop {
        let token = Token::read(&application.token);
        let problem = match token {
            Err(error) => error.to_string(),
            Ok(token) => match application.post("/register", &token, &application.asking(process)) {
                Ok(text) => match serde_json::from_str(&text) {
                    Ok(Answer::Be(config)) => {
                        let config = application.adopt(config)?;
                        return Ok(Accepted { application, token, process, config });
                    }
                    Ok(Answer::Wait { reason }) => {
                        deadline = Instant::now() + application.patience;
                        reason
                    }
                    Err(error) => return Err(application.unreachable(format!("no answer: {error}"))),
                },
                Err(Trouble::Refused(_, reason)) => return Err(application.refused(reason)),
                Err(Trouble::Silent(reason)) => reason,
            },
        };
        if problem != said {
            tracing::info!(coordinator = application.url, "waiting to be a site: {problem}");
            said = problem;
        }
        if Instant::now() >= deadline {
            return Err(application.unreachable(format!("{said}; waited {:?}", application.patience)));
        }
        std::thread::sleep(ASK_EVERY);
    }
}

impl Accepted {
    /// Says that the node is up. Blocks.
    ///
    /// # Errors
    /// If the coordinator refuses, or is gone for too long.
    pub fn ready(&self, ready: &ReadyLine) -> Result<(), RegisterError> {
        let application = &self.application;
        let ready = self.reachable(ready)?;
        let message = Ready { instance: application.instance.clone(), process: self.process, ready };
        let deadline = Instant::now() + application.patience;
        loop {
            match application.post("/register/ready", &self.token, &message) {
                Ok(_) => return Ok(()),
                Err(Trouble::Refused(_, reason)) => return Err(application.refused(reason)),
                Err(Trouble::Silent(reason)) if Instant::now() >= deadline => {
                    return Err(application.unreachable(reason));
                }
                Err(Trouble::Silent(_)) => std::thread::sleep(ASK_EVERY),
            }
        }
    }

    /// Whether a coordinator with the same secret is there that does not know this process: of another run, as the one that
    /// made this process a site listens at that address no more. It is asked once. Blocks.
    pub fn is_superseded(&self, ready: &ReadyLine) -> bool {
        let Ok(ready) = self.reachable(ready) else { return false };
        let instance = self.application.instance.clone();
        let message = Ready { instance, process: self.process, ready };
        let answer = self.application.post("/register/ready", &self.token, &message);
        matches!(answer, Err(Trouble::Refused(StatusCode::CONFLICT, _)))
    }

    /// With addresses by which the coordinator reaches this machine.
    fn reachable(&self, ready: &ReadyLine) -> Result<ReadyLine, RegisterError> {
        let application = &self.application;
        let mut ready = ready.clone();
        let is_loopback = |text: &str| text.parse().is_ok_and(|at: SocketAddr| at.ip().is_loopback());
        if is_loopback(&ready.http) && application.local_address().is_some_and(|local| !local.is_loopback()) {
            return Err(RegisterError::Loopback(ready.http));
        }
        ready.http = reachable(&ready.http, application.local_address());
        ready.metrics = ready.metrics.map(|metrics| reachable(&metrics, application.local_address()));
        Ok(ready)
    }
}

/// Why a request has no answer.
enum Trouble {
    /// No answer, or not one that says no: asking again may help.
    Silent(String),
    /// The coordinator says no: asking again is of no use.
    Refused(StatusCode, String),
}

impl Application {
    fn asking(&self, process: u64) -> Asking {
        Asking {
            instance: self.instance.clone(),
            process,
            version: env!("CARGO_PKG_VERSION").to_string(),
            name: self.name.clone(),
            processors: self.processors,
            journal: self.data_dir.is_some(),
        }
    }

    fn unreachable(&self, reason: String) -> RegisterError {
        RegisterError::Unreachable { url: self.url.clone(), reason }
    }

    fn refused(&self, reason: String) -> RegisterError {
        RegisterError::Refused { url: self.url.clone(), reason }
    }

    fn post(&self, path: &str, token: &Token, body: &impl Serialize) -> Result<String, Trouble> {
        let agent = ureq::Agent::config_builder().timeout_global(Some(TIMEOUT)).http_status_as_error(false);
        let agent: ureq::Agent = agent.build().into();
        let url = format!("{}{path}", self.url.trim_end_matches('/'));
        let asking = agent.post(&url).header("authorization", token.header().as_str());
        let mut answer = asking.send_json(body).map_err(|error| Trouble::Silent(error.to_string()))?;
        let text = answer.body_mut().read_to_string().map_err(|error| Trouble::Silent(error.to_string()))?;
        let status = answer.status();
        if status.is_success() {
            return Ok(text);
        }
        let reason = serde_json::from_str::<Failure>(&text).map_or(text, |failure| failure.reason);
        let reason = format!("{reason} (status {status})");
        Err(if status.is_client_error() { Trouble::Refused(status, reason) } else { Trouble::Silent(reason) })
    }

    /// What the coordinator said, with this node's own places for files.
    fn adopt(&self, mut config: Box<NodeConfig>) -> Result<Box<NodeConfig>, RegisterError> {
        if !config.external.is_none() {
            return Err(RegisterError::Commands);
        }
        if config.data_dir.is_some() {
            let dir = self.data_dir.as_ref().ok_or(RegisterError::NoDataDir)?;
            // Another run has other journals.
            config.data_dir = Some(dir.join(&config.run));
        }
        config.control_token = Some(self.token.clone());
        // Its own, which nobody can compute: others are told it when they are introduced. Without a place to keep it, the
        // node does not restart either.
        config.identity = match &self.data_dir {
            Some(dir) => {
                crate::private::make_folder(dir)
                    .map_err(|error| RegisterError::DataDir(dir.clone(), error))?;
                IdentitySource::File(dir.join("identity.key"))
            }
            None => IdentitySource::Drawn,
        };
        Ok(config)
    }

    /// The address by which the coordinator reaches this machine.
    fn local_address(&self) -> Option<IpAddr> {
        let rest = self.url.split_once("://").map_or(self.url.as_str(), |(_, rest)| rest);
        let host = rest.split('/').next().unwrap_or_default();
        let host = if host.contains(':') { host.to_string() } else { format!("{host}:80") };
        local_toward(host.to_socket_addrs().ok()?.next()?)
    }
}

/// The address of this machine from which another is reached; nothing is sent.
fn local_toward(other: SocketAddr) -> Option<IpAddr> {
    let any: IpAddr = match other {
        SocketAddr::V4(_) => [0; 4].into(),
        SocketAddr::V6(_) => [0u16; 8].into(),
    };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect(other).ok()?;
    Some(socket.local_addr().ok()?.ip()).filter(|address| !address.is_unspecified())
}

/// An address as others reach it: one that is listened on everywhere is no address.
fn reachable(address: &str, local: Option<IpAddr>) -> String {
    match (address.parse::<SocketAddr>(), local) {
        (Ok(bound), Some(local)) if bound.ip().is_unspecified() => {
            SocketAddr::new(local, bound.port()).to_string()
        }
        _ => address.to_string(),
    }
}

/// The multiaddress to listen on, with this machine's address within a network instead of its own.
///
/// # Errors
/// If the machine has none there.
pub fn within(listen: &str, network: IpNet) -> Result<String, RegisterError> {
    let some_host = network.hosts().next().unwrap_or(network.addr());
    let local = local_toward(SocketAddr::new(some_host, 1)).filter(|local| network.contains(local));
    let local = local.ok_or(RegisterError::NotWithin(network))?;
    listen_at(listen, local).ok_or_else(|| RegisterError::Listen(listen.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_listens_on_its_address_within_a_network() {
        let loopback: IpNet = "127.0.0.0/8".parse().unwrap();
        assert_eq!(within("/ip4/0.0.0.0/tcp/4001", loopback).unwrap(), "/ip4/127.0.0.1/tcp/4001");
        // Reserved: nobody has an address there.
        let nowhere: IpNet = "240.0.0.0/24".parse().unwrap();
        let error = within("/ip4/0.0.0.0/tcp/4001", nowhere).unwrap_err().to_string();
        assert_eq!(error, "--listen-within 240.0.0.0/24: this machine has no address there");
        for listen in ["4001", "/dns4/here/tcp/4001"] {
            assert!(matches!(within(listen, loopback), Err(RegisterError::Listen(_))), "{listen}");
        }
    }

    #[test]
    fn an_address_that_is_everywhere_becomes_one_that_can_be_reached() {
        let local = Some([10, 0, 0, 7].into());
        assert_eq!(reachable("0.0.0.0:9100", local), "10.0.0.7:9100");
        assert_eq!(reachable("127.0.0.1:9100", local), "127.0.0.1:9100");
        assert_eq!(reachable("0.0.0.0:9100", None), "0.0.0.0:9100");
    }
}
