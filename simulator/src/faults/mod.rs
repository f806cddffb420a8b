//! Peers on machines that crash, stop, write slowly, have wrong clocks, and talk over links that lose.
//!
//! [`world`] is a driver of its own beside [`crate::simulation`]: it drives each site as a node does, one call, one
//! write, then the other outputs, and may end a site between any two of these steps. [`schedule`] says what goes
//! wrong, [`watch`] what is asserted after each call. With the same scenario it does the same, whatever else is done.

mod agenda;
mod clock;
mod coordinator;
mod disks;
mod ending;
mod liar;
mod operating;
mod processes;
mod scenario;
pub mod schedule;
mod site;
pub mod watch;
pub mod world;

pub use clock::Clock;
pub use scenario::{Limits, Mistake, Scenario, Tally};
pub use schedule::{Fault, Torn};
pub use watch::{Broken, Check};
pub use world::World;
