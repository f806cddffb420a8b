//! The laboratory: what is measured, searched and judged beside runs, each with a command of its own.
//!
//! | module | command | question |
//! |---|---|---|
//! | [`theory`] | `theory` | what holds of an experiment by proof, and do the claims hold in simulations? |
//! | [`power`] | `power` | which differences would the comparison of a run with its simulations notice? |
//! | [`genetic`] | `genetic` | how good are allocations of a batch of jobs that are searched? |
//! | [`learning`] | `learning` | what do dispatchers learn that know no more than what their jobs met? |
//! | [`prediction`] | `predict` | how far are predictions of run times from what happened, and what do they do to a schedule? |
//! | [`swarm`] | `swarm` | does any of many small simulations with faults break what must hold? |
//! | [`chaos`] | `chaos` | does any of many runs on processes, while these are harmed? |
//! | [`mod@bench`] | `bench` | what do parts of a run cost on this machine? |
//!
//! Nothing here runs an experiment for its results: that is for `experiments` and `operation`, of which this is made, as of
//! the simulator and of the claims. What is judged here is judged by code of its own where that matters: the audit of
//! [`chaos`] shares nothing with what it looks at.
//!
//! ```
//! use laboratory::chaos::schedule::{Schedule, Shape};
//!
//! // What strikes a round of chaos is drawn from its seed: a failure can be repeated.
//! let shape = Shape { sites: 3, span_ms: 10_000, faults_max: 5 };
//! let schedule = Schedule::draw(7, shape);
//! assert_eq!(schedule, Schedule::draw(7, shape));
//! assert!((1..=5).contains(&schedule.faults.len()));
//! ```

#[macro_use(eprint, eprintln, print, println)]
extern crate experiments;

pub mod bench;
pub mod chaos;
pub mod genetic;
pub mod learning;
pub mod power;
pub mod prediction;
pub mod swarm;
pub mod theory;
