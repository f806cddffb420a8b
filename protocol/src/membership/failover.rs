//! Who stands in for a member that is not there.

use scheduler::{Grid, JobSpec, SiteId};
use serde::{Deserialize, Serialize};

use crate::rank::Rank;

/// Who gets what waits at a broker that is not there any more, and what its users submit from then on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Failover {
    /// The next broker in the order of ranks that is there, after the last the first. If none is, as [`Failover::Local`].
    #[default]
    Next,
    /// The smallest site wide enough that is there, whose local scheduler queues it.
    Local,
}

/// Who stands in for a site that is not there: the next larger one that is and can hold the job, else the widest; for a
/// broker another one that is there, if that is how brokers stand in for each other.
pub fn successor(
    grid: &Grid,
    failover: Failover,
    site: SiteId,
    job: &JobSpec,
    is_there: impl Fn(SiteId) -> bool,
) -> Option<SiteId> {
    let there = |rank: &Rank| is_there(grid.at_rank(rank.index()));
    let holds = |rank: &Rank| grid.widths()[rank.index()] >= job.processors;
    let rank = Rank::of(grid, site);
    let successor = next_broker(grid, failover, rank, |broker| there(&broker))
        .or_else(|| Rank::all(grid).filter(|&other| other >= rank).filter(there).find(holds))
        .or_else(|| Rank::all(grid).rfind(there));
    successor.map(|rank| grid.at_rank(rank.index()))
}

/// The rank of the broker that stands in for the one of this rank. None for sites, or if sites stand in for brokers.
pub(crate) fn next_broker(
    grid: &Grid,
    failover: Failover,
    rank: Rank,
    is_there: impl Fn(Rank) -> bool,
) -> Option<Rank> {
    if rank.index() >= grid.brokers() || failover == Failover::Local {
        return None;
    }
    let brokers = Rank::of_brokers(grid);
    let after = brokers.clone().filter(|&other| other > rank);
    after.chain(brokers.filter(|&other| other < rank)).find(|&other| is_there(other))
}
