//! The results of one run: what is known of it, and its directory, how that is written and read back.
//!
//! ```text
//! manifest.json       what was run, with which seed and versions, and whether it ended
//! jobs.csv            one row per finished or rejected job; the 17 columns of Batsim, then ours
//! site<i>/jobs.csv    the same rows split by executing site, if asked for
//! schedule.swf        the finished jobs as a log in the Standard Workload Format
//! migrations.csv      which site ran whose jobs
//! steals.csv          each accepted change of site; written while the run goes on, see [`StealsCsv`]
//! metrics.json        metrics, bounds, theory, migrations, comparison with the ideal
//! faults.csv          one row per job that was interrupted, taken over or orphaned, if there is one
//! executions.csv      executions that are not the one in jobs.csv, if there are any
//! membership.csv      what sites believed of each other's presence, if anything happened
//! events.jsonl.zst    every event, one JSON object a line; written while the run goes on, see [`EventLog`]
//! experiment.toml     what was run, as a file that runs it again
//! report.html         a page for people, by whoever can draw one
//! ```
//!
//! A driver fills in a [`RunAbout`], makes a [`RunResult`] of it and the outcome, and calls [`write_all`]. Each
//! file appears complete or not at all, except the event log and `steals.csv`, which grow. A [`ResultDirectory`] reads
//! them. Nothing here knows who ran the jobs, or how numbers are shown to people.
//!
//! ```
//! use outputs::{EventLog, EventReader};
//! use scheduler::{Event, EventKind, JobId, SiteId, Time};
//!
//! let path = std::env::temp_dir().join(format!("events-{}.jsonl.zst", std::process::id()));
//! let kind = EventKind::Completed { job: JobId(1), processors: 2 };
//! let event = Event { at: Time::from_secs(10), site: SiteId(1), kind };
//! let mut log = EventLog::create(&path).unwrap();
//! log.write(&event).unwrap();
//! log.finish().unwrap();
//! let read: Vec<Event> = EventReader::open(&path, Default::default()).unwrap().map(Result::unwrap).collect();
//! assert_eq!(read, [event]);
//! # std::fs::remove_file(path).unwrap();
//! ```

mod allocation;
mod backlog;
pub mod compared;
pub mod csv_cell;
mod directory;
mod errors;
mod event_log;
mod faults_csv;
#[cfg(any(test, feature = "fixtures"))]
pub mod fixtures;
mod jobs_csv;
mod manifest;
mod metrics_json;
mod migrations_csv;
mod missed;
mod number;
pub mod orders;
mod provenance;
pub mod quantity;
pub mod replace;
mod run_result;
mod schedule_swf;
pub mod scraped;
mod steals_csv;
pub mod sweep;
pub mod table;
mod values;
mod write;

pub use allocation::{Allocation, Interval};
pub use backlog::BACKLOG_MAX;
pub use directory::{EVENTS, ResultDirectory};
pub use errors::{DirectoryError, WriteError};
pub use event_log::{EventLog, EventLogError, EventReader};
pub use jobs_csv::{JobRow, JobRows};
pub use manifest::{Manifest, SiteEntry};
pub use metrics_json::write as write_metrics;
pub use missed::{Missed, Why};
pub use provenance::{LogDigest, Preparation, Provenance, commit, version};
pub use run_result::{Ideal, Overloaded, RunAbout, RunResult, Status, StealCost};
pub use steals_csv::{STEALS, StealsCsv};
pub use write::{Options, Page, write_all};
