//! Workload traces in and out, filters, mixes and statistical models.
//!
//! [`read()`] turns a file into a [`Trace`], whatever its format and compression; [`prepare()`] turns the
//! trace into the jobs that a driver replays. [`mix`] merges several logs into one grid workload, and
//! [`generate`] makes one up from statistical models. Nothing here schedules anything.
//!
//! ```
//! use workload::prepare::{PrepareOptions, prepare};
//!
//! let log = "; MaxProcs: 4\n1 0 -1 60 2 -1 -1 2 120 -1 1 1 1 -1 1 1 -1 -1\n";
//! let trace = workload::read_from("tiny.swf", log.as_bytes())?;
//! let prepared = prepare(&trace, &PrepareOptions::default(), 4)?;
//! assert_eq!(prepared.jobs[0].spec.processors, 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod anonymize;
pub mod bag;
pub mod batsim;
mod bursts;
pub mod calendar;
pub mod columns;
pub mod deal;
mod draw;
pub mod generate;
pub mod gwf;
pub mod header;
mod labels;
pub mod limits;
pub mod lublin;
mod members;
pub mod mix;
pub mod nas;
pub mod prepare;
pub mod record;
pub mod repair;
pub mod sacct;
pub mod slice;
pub mod source;
pub mod swf;
mod tables;
pub mod trace;
pub mod tsafrir;

pub use limits::Limits;
pub use prepare::prepare;
pub use record::Record;
pub use source::{read, read_from, read_local_from, read_within};
pub use trace::{Format, Trace, TraceError};
