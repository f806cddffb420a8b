//! One site as a process: tokio and libp2p around one [`protocol::Peer`]. Decides nothing.
//!
//! ```text
//!   control interface (HTTP)          other nodes (libp2p)
//!            |                                 |
//!        commands                     network: frames of bytes
//!            |                                 |
//!            +-----------> site loop <---------+
//!                     clock, executor,
//!                  arrivals, delay line, Peer
//! ```
//! Start with `site` for the event loop, [`network`] for what crosses the wire, [`control`] for the HTTP interface.
//! The coordinator uses [`fleet`] to run a grid of processes; [`spawn`] and [`client`] are its parts.

mod alarm;
pub mod arrivals;
pub mod bench;
pub mod bounded;
mod bytes;
pub mod cli;
pub mod client;
pub mod clock;
pub mod config;
pub mod control;
pub mod delay;
#[cfg(feature = "doors")]
pub mod doors;
pub mod environment;
pub mod event_log;
pub mod executor;
pub mod exit;
pub mod fleet;
pub mod frame;
pub mod health;
pub mod http;
mod instance;
pub mod journal;
pub mod licenses;
pub mod limits;
pub mod lockstep;
pub mod measured;
pub mod metrics;
pub mod network;
pub mod node;
mod parent;
pub mod peer_address;
mod plan_limit;
pub mod private;
pub mod registration;
pub mod running;
mod secret_file;
mod site;
pub mod spawn;
pub mod telemetry;

pub use client::NodeClient;
pub use config::NodeConfig;
pub use fleet::Fleet;
pub use node::Node;
pub use spawn::NodeProcess;
