//! A job over several clusters: how many tasks go to each, at once and all or none.
//!
//! The model is that of Lérida's thesis (4.6): a job is as slow as its slowest node, and communicates as slowly as the most loaded link between
//! clusters lets it. [`best`] solves it exactly; nothing is sent or started here.

mod exact;

pub use exact::{Cluster, CoallocationError, Job, Solution, Variant, best, crossing};
