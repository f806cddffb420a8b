//! What a run was worth: outcomes, metrics, lower bounds, proved ceilings, and comparisons.
//!
//! Everything here is computed from one workload and one stream of [`scheduler::Event`]s, so that a simulation and
//! a run of real processes are judged by the same code. Nothing here does I/O or knows how results are shown.
//! Start with [`outcome`], which turns events into one row per job; [`metrics`], [`bounds`] and [`theory`] read it.
//!
//! ```
//! use analysis::{Bounds, Metrics, OutcomeBuilder};
//! use scheduler::{Event, EventKind, Grid, JobId, JobSpec, Labels, SiteId, Span, Threshold, Time, TimedJob};
//!
//! let grid = Grid::of_sizes(&[2, 4]).unwrap();
//! let spec = JobSpec {
//!     id: JobId(1),
//!     submit: Time::ZERO,
//!     processors: 3,
//!     requested: Span::from_secs(60),
//!     labels: Labels::UNKNOWN,
//!     origin: SiteId(1),
//!     payload: 0,
//! };
//! let workload = [TimedJob { spec, run_time: Span::from_secs(10) }];
//! let mut builder = OutcomeBuilder::new(&grid, Threshold::HALF, &workload);
//! let site = SiteId(2);
//! for (seconds, kind) in [
//!     (0, EventKind::Started { job: JobId(1), processors: 3, hops: 0 }),
//!     (10, EventKind::Completed { job: JobId(1), processors: 3 }),
//! ] {
//!     builder.observe(&Event { at: Time::from_secs(seconds), site, kind });
//! }
//! let outcome = builder.finish();
//! let bounds = Bounds::of(&outcome);
//! assert_eq!(Metrics::of(&outcome, &bounds).makespan_s, 10.0);
//! assert_eq!(bounds.best, Span::from_secs(10));
//! ```

mod asking;
pub mod bounds;
pub mod compare;
pub mod decisions;
pub mod deficiency;
pub mod ensemble;
pub mod executions;
pub mod faults;
pub mod federation;
#[cfg(test)]
mod fixtures;
mod inversions;
pub mod job;
pub mod lessons;
pub mod life;
pub mod metrics;
pub mod migrations;
pub mod outcome;
pub mod prediction;
pub mod ranking;
pub mod series;
pub mod service;
pub mod sharing;
pub mod so_far;
pub mod spread;
pub mod starts;
pub mod statistics;
pub mod steady;
pub mod steals;
pub mod theory;
pub mod waits;

pub use bounds::Bounds;
pub use compare::Agreement;
pub use decisions::{DecisionCost, Decisions};
pub use deficiency::{Attribution, Deficiency};
pub use ensemble::{Figures, Placed};
pub use executions::Executions;
pub use faults::{Faults, RanTwice};
pub use federation::Federation;
pub use job::{JobOutcome, JobState};
pub use lessons::{Lesson, Lessons};
pub use metrics::Metrics;
pub use migrations::Migrations;
pub use outcome::{JobExit, Outcome, OutcomeBuilder, Predicted};
pub use service::Service;
pub use so_far::SoFar;
pub use steady::Steady;
pub use steals::{Price, Steal, Steals};
pub use theory::{Comparison, Hindrance, Messages, Setting, Verdict};
pub use waits::{WaitCauses, Waits};
