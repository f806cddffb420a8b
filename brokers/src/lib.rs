//! Which job goes to which site: brokers that see into sites ([`allocation`]), plan batches ([`genetic`]) or learn from what
//! becomes of their jobs ([`learning`]), and their references ([`ideal`]).
//!
//! Nothing here does I/O, knows what time it is, sends a message, or can see the true run time of a job.

pub mod allocation;
pub mod external;
pub mod genetic;
pub mod ideal;
pub mod learning;

pub use external::External;
