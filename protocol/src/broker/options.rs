//! What a broker knows of sites, and how it comes to know it.

use scheduler::Span;
use serde::{Deserialize, Serialize};

use crate::membership::failover::Failover;

/// When a site tells the brokers what happened there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reporting {
    /// At once. What happens at one instant is told together.
    #[default]
    Change,
    /// At fixed times, so long apart, if something happened. Those of the sites are spread evenly over it.
    Every(Span),
    /// When a broker asks, which it does for each job: so many sites, drawn at random among those that may get it.
    Probe(usize),
}

/// What a broker thinks of jobs that it has sent to a site and that the site has not reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Pending {
    /// They wait there.
    #[default]
    Count,
    /// They are not there.
    Ignore,
}

/// Switches of brokers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrokerOptions {
    /// When sites report.
    #[serde(default)]
    pub report: Reporting,
    /// Jobs on their way.
    #[serde(default)]
    pub pending: Pending,
    /// Who stands in for a broker.
    #[serde(default)]
    pub failover: Failover,
}
