//! Peers on machines that crash, stop, write slowly, have wrong clocks, and talk over links that lose.
//!
//! [`world`] goes through instants as [`crate::simulation`] does, with an fault_queue of faults before all else. It calls each
//! site as a node does, one call, one write, then the other outputs, and may end it between any two of these steps. [`schedule`] says what goes
//! wrong, [`watch`] what is asserted after each call. With the same scenario it does the same, whatever else is done.

mod clock;
mod coordinator;
mod disks;
mod ending;
mod fault_queue;
mod liar;
mod operating;
mod processes;
mod record;
mod scenario;
pub mod schedule;
mod site;
pub mod watch;
pub mod world;
mod writing;

pub use clock::Clock;
pub use scenario::{Limits, Mistake, Scenario, Tally};
pub use schedule::{Fault, Torn};
pub use watch::{Broken, Check};
pub use world::World;
