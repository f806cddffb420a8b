//! The operation of runs: what starts, feeds, watches and ends the processes of a grid, from an experiment to its results.
//!
//! ```text
//!   run             an experiment on processes: planned, begun, watched, judged; or gone on with, or in lockstep
//!   serve, orders   the page of a run that lasts, and what those order who look at it
//!   audit           what must hold of its events
//!   fleet           all nodes of a run: begun or taken over, told of each other, fed, asked, ended, restarted
//!   spawn, client   one process of them, and the other end of its control interface
//!   registration    processes that came by themselves
//! ```
//! Nothing here decides where a job goes: that is for the sites, and how one is served by a process is the crate `node`. Nor
//! is anything here about what an experiment says or how results are written: a run is a driver over the crate
//! [`experiments`], as the simulator is. The lower four know nothing of experiments.
//!
//! Start with [`run`] for a run and with [`fleet::Fleet`] for its processes.
//!
//! ```
//! use operation::audit::Audit;
//! use scheduler::{Event, EventKind, Grid, JobId, JobSpec, Labels, SiteId, Span, Time, TimedJob};
//!
//! let spec = JobSpec {
//!     id: JobId(1),
//!     submit: Time::from_secs(60),
//!     processors: 2,
//!     requested: Span::from_secs(60),
//!     labels: Labels::UNKNOWN,
//!     origin: SiteId(1),
//!     payload: 0,
//! };
//! let job = TimedJob { spec, run_time: Span::from_secs(10) };
//! let mut audit = Audit::new(&Grid::of_sizes(&[2, 8]).unwrap(), &[job]);
//! // A node says that it has started a job of which it cannot know yet.
//! let kind = EventKind::Started { job: JobId(1), processors: 2, hops: 0 };
//! audit.observe(&Event { at: Time::from_secs(5), site: SiteId(1), kind });
//! assert!(audit.finish(false).violation.is_some());
//! ```

#[macro_use(eprintln)]
extern crate experiments;

pub mod audit;
pub mod client;
pub mod fleet;
pub mod orders;
pub mod registration;
pub mod run;
pub mod serve;
pub mod spawn;

pub use client::NodeClient;
pub use fleet::Fleet;
pub use spawn::NodeProcess;
