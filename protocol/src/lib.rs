//! One site as a sans-IO state machine: who steals what, and how a job changes owner exactly once.
//!
//! A driver feeds a [`Peer`] with [`Input`]s and carries out its [`Output`]s; nothing here does I/O or knows what
//! time it is. The simulator and the node are two drivers of the same peer. Start with [`peer`] for the seam and
//! the discipline of one instant, [`message`] for what is said, [`handover`] for the exactly-once transfer, [`journal`]
//! for what survives a crash.
//!
//! ```
//! use std::sync::Arc;
//!
//! use protocol::{Input, Output, Peer, Terms};
//! use scheduler::{Grid, JobId, JobSpec, Labels, SiteId, Span, StrategySpec, Time};
//!
//! let spec: StrategySpec = "st:50".parse().unwrap();
//! let terms = Terms::new(Arc::new(Grid::of_sizes(&[2, 8]).unwrap()), spec.strategy);
//! let mut peer = Peer::new(terms.at_rank(0));
//! let spec = JobSpec {
//!     id: JobId(1),
//!     submit: Time::ZERO,
//!     processors: 2,
//!     requested: Span::from_secs(60),
//!     labels: Labels::UNKNOWN,
//!     origin: SiteId(1),
//!     payload: 0,
//! };
//! // Facts of an instant first, then the turn to decide.
//! peer.handle(Time::ZERO, Input::Submitted(spec));
//! peer.handle(Time::ZERO, Input::Turn);
//! let outputs: Vec<Output> = std::iter::from_fn(|| peer.poll_output()).collect();
//! assert!(outputs.contains(&Output::Start(spec)));
//! assert_eq!(peer.free(), 0);
//! ```

mod agreement;
mod balance;
mod bounds;
mod broker;
pub mod codec;
pub mod config;
mod core;
mod engine;
mod experience;
mod families;
#[cfg(test)]
mod fixtures;
pub mod gang;
pub mod handover;
pub mod journal;
mod local;
mod margin;
pub mod membership;
pub mod message;
#[cfg(feature = "mutant")]
pub mod mutant;
#[cfg(not(feature = "mutant"))]
mod mutant;
mod numbers;
mod opaque;
pub mod peer;
pub mod pool;
mod ports;
mod queue;
mod rank;
mod round_trips;
mod soundness;
mod steal;
mod table;
mod timers;
mod views;

pub use balance::options::BalanceOptions;
pub use bounds::{EPOCH_MAX, MICROS_MAX, is_job_of, is_site_of, is_time};
pub use broker::options::{BrokerOptions, Pending, Reporting};
pub use config::{Discovery, Interrupted, Options, PeerConfig, Terms};
pub use journal::{Durable, Fact};
pub use membership::Presence;
pub use membership::failover::Failover;
pub use message::Message;
pub use peer::{Input, Output, Peer};
pub use pool::options::PoolOptions;
pub use steal::options::StealOptions;
pub use views::Views;
