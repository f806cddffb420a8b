//! Many peers in virtual time: discrete events, modelled links, checkers, one seed.
//!
//! Drives the very same [`protocol::Peer`] that a node runs. Pure: given a configuration and a workload it calls
//! back with events, always the same ones. Start with `instant.rs` for the loop and the discipline of one instant,
//! [`simulation`] for peers without faults, [`host`] for where they live, [`links`] for delays and losses, [`checks`] for
//! what is asserted after each step, [`mod@reference`] for runs of ideal algorithms without messages, [`faults`] for sites
//! that crash and [`swarm`] for very many of those.

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
