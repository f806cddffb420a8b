//! A job over several clusters: how many tasks go to each, at once and all or none.
//!
//! The model is that of Lérida's thesis (4.6): a job is as slow as its slowest node, and communicates as slowly as the most loaded link between
//! clusters lets it. [`best`] solves it exactly; [`mostly_in_one`] and
//! [`super_cluster`] are the rules that it is compared with; nothing is sent or started here.

mod exact;
mod rules;

pub use exact::{Cluster, CoallocationError, Job, Solution, Variant, assigned, best, crossing};
pub use rules::{mostly_in_one, super_cluster};
