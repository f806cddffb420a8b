//! All switches of preparation together, with their defaults.

use std::str::FromStr;

use scheduler::{SiteId, spelling};

use super::missing::MissingEstimate;
use super::switches::{Estimate, Filters, Origin, Overrun, Size};

/// What happens to a job that no site can hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TooWide {
    /// Dropped and counted (default).
    #[default]
    Drop,
    /// The trace is refused.
    Refuse,
}

impl FromStr for TooWide {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "refuse" => Ok(TooWide::Refuse),
            "drop" => Ok(TooWide::Drop),
            _ => Err(spelling::unknown("rule", text, "refuse or drop")),
        }
    }
}

/// How records become jobs.
#[derive(Clone, Debug, PartialEq)]
pub struct PrepareOptions {
    /// Which field is the size. Default: requested.
    pub size: Size,
    /// What strategies are told about run times. Default: the user's estimate.
    pub estimate: Estimate,
    /// What takes the place of a missing estimate. Default: the run time, if other jobs of the log have an estimate.
    pub missing_estimate: MissingEstimate,
    /// What becomes of a job that would run past its estimate. Default: runs on, as it did.
    pub overrun: Overrun,
    /// Which jobs are dropped for their values. Default: [`Filters::default`].
    pub filters: Filters,
    /// What becomes of a job wider than the widest site. Default: dropped.
    pub too_wide: TooWide,
    /// Where jobs are submitted. Default: all at site 1.
    pub origin: Origin,
    /// Bytes that move with each job. Default: none.
    pub payload: u64,
}

impl Default for PrepareOptions {
    fn default() -> Self {
        PrepareOptions {
            size: Size::default(),
            estimate: Estimate::default(),
            missing_estimate: MissingEstimate::default(),
            overrun: Overrun::default(),
            filters: Filters::default(),
            too_wide: TooWide::default(),
            origin: Origin::Site(SiteId(1)),
            payload: 0,
        }
    }
}
