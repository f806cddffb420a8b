//! Which job goes to which site: brokers that see into sites ([`allocation`]), plan batches ([`genetic`]) or learn from what
//! becomes of their jobs ([`learning`]), and their references ([`ideal`]).
//!
//! Nothing here does I/O, knows what time it is, sends a message, or can see the true run time of a job
//! that has not ended.

pub mod allocation;
mod broker;
pub mod coallocation;
#[cfg(test)]
mod example;
pub mod external;
pub mod genetic;
pub mod ideal;
pub mod learning;
pub mod metascheduler;
mod predictions;
mod table;

pub use broker::{Act, Broker, CloneBroker, Disclosure, Sites, Spread, Truth};
pub use external::External;
pub use predictions::{Lesson, Predictions};
pub use table::broker;
