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
//! Nothing here begins a process, or asks one as a coordinator does: that is the crate `operation`. The process says of
//! itself where it serves ([`running`]), and a site in lockstep has both ends of its connection here ([`lockstep`]).
//!
//! ```
//! use node::delay::DelayLine;
//! use node::config::{NodeConfig, SiteEntry};
//! use scheduler::{SiteId, Time};
//!
//! // Messages wait here for as long as the links of the experiment say; what the network adds comes on top.
//! let mut line = DelayLine::new(2);
//! line.push(Time::from_secs(30), "offer").unwrap();
//! assert_eq!(line.pop_due(Time::from_secs(29)), None);
//! assert_eq!(line.pop_due(Time::from_secs(30)), Some((Time::from_secs(30), "offer")));
//!
//! // A node is told its site and the whole grid, and says what is wrong before it listens anywhere.
//! let grid = vec![SiteEntry::new("a", 2), SiteEntry::new("b", 8)];
//! assert!(NodeConfig::new(SiteId(1), grid.clone()).check().is_ok());
//! assert!(NodeConfig::new(SiteId(3), grid).check().is_err());
//! ```

mod alarm;
pub mod arrivals;
pub mod bench;
pub mod bounded;
mod bytes;
pub mod cli;
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
pub mod nodes;
mod parent;
pub mod peer_address;
mod plan_limit;
pub mod private;
pub mod registration;
pub mod running;
mod secret_file;
mod site;
pub mod telemetry;

pub use config::NodeConfig;
pub use node::Node;
