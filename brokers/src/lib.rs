//! Which job goes to which site: brokers that see into sites ([`allocation`]), plan batches ([`genetic`]) or learn from what
//! becomes of their jobs ([`learning`]), and their references ([`ideal`]).
//!
//! Nothing here does I/O, knows what time it is, sends a message, or can see the true run time of a job
//! that has not ended. How a broker and its sites talk is in the crate `protocol`. Start with the trait [`Broker`] and with [`broker()`],
//! which makes one of its rules.
//!
//! ```
//! use brokers::allocation::{Allocator, Book};
//! use scheduler::{JobId, JobSpec, Labels, LocalScheduler, Pass, SiteId, Span, StrategySpec, Time};
//!
//! let spec: StrategySpec = "broker:mlb".parse().unwrap(); // The least work per processor.
//! let (easy, pass) = (LocalScheduler::Easy, Pass::default());
//! let mut broker = Allocator::new(*spec.strategy.broker().unwrap(), &[2, 8], easy, pass, 1, 0);
//! let mut books = [2_u32, 8].map(|size| Book::new(easy, pass, size, true));
//! let job = |id| JobSpec {
//!     id: JobId(id),
//!     submit: Time::ZERO,
//!     processors: 2,
//!     requested: Span::from_secs(60),
//!     labels: Labels::UNKNOWN,
//!     origin: SiteId(1),
//!     payload: 0,
//! };
//! books[0].joined(Time::ZERO, job(1));
//! assert_eq!(broker.choose_knowing(Time::ZERO, &job(2), &mut books), Some(1));
//! ```

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
