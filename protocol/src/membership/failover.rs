//! Who stands in for a member that is not there.

use scheduler::{Grid, JobSpec, SiteId};
use serde::{Deserialize, Serialize};

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
    let there = |&rank: &usize| is_there(grid.at_rank(rank));
    let holds = |&rank: &usize| grid.widths()[rank] >= job.processors;
    let broker = next_broker(grid, failover, grid.rank(site), |rank| is_there(grid.at_rank(rank)));
    if let Some(broker) = broker {
        return Some(grid.at_rank(broker));
    }
    let after = (grid.rank(site)..grid.len()).filter(there).find(holds);
    after.or_else(|| (0..grid.len()).rfind(there)).map(|rank| grid.at_rank(rank))
}

/// The rank of the broker that stands in for the one of this rank. None for sites, or if sites stand in for brokers.
pub(crate) fn next_broker(
    grid: &Grid,
    failover: Failover,
    rank: usize,
    is_there: impl Fn(usize) -> bool,
) -> Option<usize> {
    let brokers = grid.brokers();
    if rank >= brokers || failover == Failover::Local {
        return None;
    }
    (rank + 1..brokers).chain(0..rank).find(|&other| is_there(other))
}
