//! Where sites listen.

use scheduler::SiteId;
use serde::{Deserialize, Serialize};

/// Where another site listens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PeerAddress {
    /// The site that listens there.
    pub site: SiteId,
    /// Its multiaddress; with `/p2p/…` unless all nodes derive their keys from one seed.
    pub address: String,
}
