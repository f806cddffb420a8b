//! Jobs, sites, local queues, the names and switches of every strategy of Stealgrid, and those strategies that need no broker, as
//! plain data and plain functions.
//!
//! Nothing here does I/O, knows what time it is, or can see the true run time of a job that has not ended: strategies are handed
//! [`JobSpec`], and `now` where they need it. Start with [`job`] and [`grid`] for the nouns, [`class`] for the
//! job classes A, B and H, [`waiting`] for the list a site keeps, and [`policy`] for
//! the seam between a scheduler and what drives it.
//!
//! ```
//! use scheduler::{Class, Grid, JobId, JobSpec, Labels, SiteId, Span, StrategySpec, Threshold, Time};
//!
//! let grid = Grid::of_sizes(&[2, 8]).unwrap();
//! let spec = JobSpec {
//!     id: JobId(1),
//!     submit: Time::ZERO,
//!     processors: 2,
//!     requested: Span::from_secs(60),
//!     labels: Labels::UNKNOWN,
//!     origin: SiteId(1),
//!     payload: 0,
//! };
//! // Two processors are all of the first site and a quarter of the second.
//! assert_eq!(grid.home(spec.processors), Some(SiteId(1)));
//! assert_eq!(Class::at_home(spec.processors, 2, Threshold::HALF), Class::A);
//! assert_eq!(Class::at_home(spec.processors, 8, Threshold::HALF), Class::B);
//!
//! let error = "steal:loadde".parse::<StrategySpec>().unwrap_err();
//! assert!(error.to_string().contains("loaded"), "{error}");
//! ```

mod capacity;
pub mod class;
pub mod draw;
mod due;
pub mod entry;
pub mod event;
pub mod exchange;
pub mod execution;
pub mod grid;
pub mod ideal;
pub mod job;
pub mod job_index;
pub mod local;
pub mod policy;
mod prediction;
pub mod reservation;
mod room;
pub mod sharing;
mod site_id;
pub mod spelling;
pub mod strategy;
mod switch;
pub mod text;
pub mod time;
pub mod waiting;

pub use capacity::{Application, COMPUTES, Capacity, Holds, SharedNodes, have_memory};
pub use class::{Class, Order, Selection, Threshold};
pub use entry::{LocalUsers, Submit};
pub use event::{Event, EventKind};
pub use execution::Execution;
pub use grid::{Grid, Site, SiteId, is_free};
pub use job::{JobId, JobSpec, Labels, QueueKey, TimedJob};
pub use job_index::JobIndex;
pub use policy::{Policy, Start};
pub use prediction::Prediction;
pub use reservation::Reservation;
pub use room::{NodeRoom, Occupancy, Room};
pub use strategy::{
    Amount, Balance, Broker, BrokerRule, Initiative, LocalScheduler, Pass, Pool, Steal, Strategy,
    StrategySpec, VictimRule,
};
pub use time::{Span, Time};
