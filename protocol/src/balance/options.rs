//! Limits of the baselines.

use scheduler::Span;
use serde::{Deserialize, Serialize};

/// Limits of the baselines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BalanceOptions {
    /// Refusals in a row, at most one per other site, after which a site stops asking and waits.
    pub tries: usize,
    /// Where load reports decide: how often a site passes on what changed.
    pub gossip: Span,
    /// To how many sites, drawn at random, each time.
    pub gossip_fanout: usize,
}

impl Default for BalanceOptions {
    fn default() -> BalanceOptions {
        BalanceOptions { tries: 16, gossip: Span::from_secs(60), gossip_fanout: 3 }
    }
}
