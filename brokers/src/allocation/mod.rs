//! Two-level scheduling: which site a broker gives a job (Quezada Pina 2012, §3.3 and §3.5).
//!
//! An [`Allocator`] has the rules and decides; a [`Book`] is what it knows of one site. Whoever drives it keeps the books:
//! the ideal reference from what happens, a broker from what sites report, and a [`Calendar`] from estimates alone.
//! Nothing here knows messages or a true run time.
//!
//! Sites are given in ascending order of size; of sites that are equally good the first is taken. All comparisons are
//! exact.

mod admissible;
pub(crate) mod allocator;
mod balance;
pub(crate) mod book;
mod calendar;
pub(crate) mod decider;
pub mod follow;
mod fraction;
pub(crate) mod patience;
pub(crate) mod planner;

pub use admissible::admissible;
pub use allocator::Allocator;
pub use book::{Book, Load, Site};
pub use calendar::Calendar;
pub use decider::{BrokerDecider, Question};
pub use patience::Patience;
pub use planner::Planner;
