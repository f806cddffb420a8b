//! Names of sites.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Names a site: its number in the experiment, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SiteId(pub u32);

impl SiteId {
    /// The site's place in a table that has one row per site, in the order of the experiment.
    ///
    /// # Panics
    /// If the number is 0, which no site has.
    pub fn index(self) -> usize {
        (self.0.checked_sub(1).expect("sites are numbered from 1")) as usize
    }

    /// The site whose [`SiteId::index`] is `index`.
    pub fn from_index(index: usize) -> SiteId {
        SiteId(u32::try_from(index + 1).expect("fewer sites than u32::MAX"))
    }
}

impl fmt::Display for SiteId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}
