//! Many peers in virtual time: discrete events, modelled links, checkers, one seed.
//!
//! Drives the very same [`protocol::Peer`] that a node runs. Pure: given a configuration and a workload it calls
//! back with events, always the same ones. Start with `instant.rs` for the loop and the discipline of one instant,
//! [`simulation`] for peers without faults, [`host`] for where they live, [`links`] for delays and losses, [`checks`] for
//! what is asserted after each step, [`mod@reference`] for runs of ideal algorithms without messages, [`faults`] for sites
//! that crash and [`swarm`] for very many of those.
//!
//! ```
//! use std::sync::Arc;
//!
//! use scheduler::{EventKind, Grid, JobId, JobSpec, Labels, SiteId, Span, StrategySpec, Time, TimedJob};
//! use simulator::{Model, Simulation, SimulationConfig};
//!
//! // Four jobs of a minute come to the smaller of two sites, which can run one at a time.
//! let job = |id| {
//!     let spec = JobSpec {
//!         id: JobId(id),
//!         submit: Time::ZERO,
//!         processors: 2,
//!         requested: Span::from_secs(60),
//!         labels: Labels::UNKNOWN,
//!         origin: SiteId(1),
//!         payload: 0,
//!     };
//!     TimedJob { spec, run_time: Span::from_secs(60) }
//! };
//! let jobs: Vec<TimedJob> = (1..=4).map(job).collect();
//! let ended = |strategy: &str| {
//!     let spec: StrategySpec = strategy.parse().unwrap();
//!     let mut config = SimulationConfig::new(Arc::new(Grid::of_sizes(&[2, 8]).unwrap()), spec.strategy);
//!     config.network = Model::constant(Span::from_secs(1));
//!     let mut last = Time::ZERO;
//!     let mut note = |event: &scheduler::Event| {
//!         if matches!(event.kind, EventKind::Completed { .. }) {
//!             last = event.at;
//!         }
//!     };
//!     Simulation::new(config, &jobs).run(&mut note).unwrap();
//!     last
//! };
//! assert_eq!(ended("local"), Time::from_secs(240));
//! assert!(ended("st:50") < Time::from_secs(100));
//! ```

pub mod checks;
mod config;
pub mod faults;
pub mod host;
mod instant;
mod invariants;
pub mod lateness;
pub mod reference;
pub mod simulation;
pub mod swarm;
mod together;

pub use checks::{Checks, Violation};
pub use config::SimulationConfig;
pub use host::{Carried, Host, Peers};
pub use instant::{STALL, STALL_INSTANTS, STALL_INSTANTS_CUT};
pub use lateness::Lateness;
pub use links::{Links, Model};
pub use simulation::{Simulation, Totals};
