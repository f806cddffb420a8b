//! Clusters whose nodes are shared: several jobs on a node, users of its own beside them, and what that does to run times.
//!
//! The model is that of Lérida's thesis on M-CISNE (Universitat de Lleida): how much computing (3.2 to 3.4) and communicating (3.5, 3.6,
//! Algorithm 3.1) slow down, and how much is left to do when either changes (3.8, 3.9). A [`Platform`] is what there is, [`LocalLoad`]
//! what local users take of it, [`Demand`] what a job asks for; [`Shared`] says when jobs end, as
//! [`Execution`](crate::Execution) does for jobs that have their processors to themselves, and [`forward`] plays a queue on. No file here
//! knows who drives it.
//!
//! Slow-downs are real numbers, instants are not. What is left of a job is kept as a double of microseconds on an idle node of full power,
//! and changes only where its slow-down does; an end is rounded to the nearest microsecond, halves up. Sums go by job and by node number. So one
//! history gives the same microseconds everywhere, and a job that nothing slows down ends exactly its run time after its start.

mod bandwidth;
mod demand;
pub mod forward;
pub mod local_load;
mod platform;
mod retiming;
mod shared;
mod slowdown;
mod social_contract;

pub use bandwidth::{Fairness, Flow, SATURATION_TOLERANCE, assign};
pub use demand::{Demand, DemandError, RUN_TIME_MAX};
pub use local_load::{Layout, LocalLoad, Redraws, Spread, Usage};
pub use platform::{Cluster, Node, Platform, PlatformError};
pub use retiming::{Estimate, Pace, Running, Slowdown};
pub use shared::{Refusal, Shared};
pub use slowdown::{communication_share, processing, stretch};
pub use social_contract::{Candidate, place};
