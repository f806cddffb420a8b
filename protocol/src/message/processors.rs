//! What messages say of processors.

use scheduler::Time;
use serde::{Deserialize, Serialize};

/// Processors that are estimated to become free.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Release {
    /// When they come free by the estimates of the jobs that hold them.
    pub at: Time,
    /// How many come free at that instant.
    pub processors: u32,
}
