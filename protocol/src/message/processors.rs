//! What messages say of processors.

use scheduler::Time;
use serde::{Deserialize, Serialize};

/// Processors that are estimated to become free.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Release {
    /// Estimated end.
    pub at: Time,
    /// How many.
    pub processors: u32,
}
