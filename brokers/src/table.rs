//! Which rule of `broker:` is which broker.

use scheduler::strategy::{LocalScheduler, Pass};
use scheduler::{Broker as Rules, BrokerRule, Grid};

use crate::allocation::allocator::Allocator;
use crate::allocation::planner::Planner;
use crate::broker::Broker;
use crate::metascheduler::MetaScheduler;

/// The broker of this number among all of a grid.
pub fn broker(
    rules: Rules,
    grid: &Grid,
    scheduler: LocalScheduler,
    pass: Pass,
    seed: u64,
    number: u64,
) -> Box<dyn Broker> {
    let sites = || (grid.brokers()..grid.len()).map(|rank| grid.at_rank(rank));
    match rules.rule {
        BrokerRule::Genetic => Box::new(Planner::new(rules.batches, seed, number)),
        BrokerRule::Mcisne => Box::new(MetaScheduler::new(rules, sites().map(|site| site.index()).collect())),
        _ => Box::new(Allocator::new(rules, &grid.sizes()[grid.brokers()..], scheduler, pass, seed, number)),
    }
}
