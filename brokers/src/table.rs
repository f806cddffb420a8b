//! Which rule of `broker:` is which broker.

use scheduler::strategy::{LocalScheduler, Pass};
use scheduler::{Broker as Rules, BrokerRule};

use crate::allocation::allocator::Allocator;
use crate::allocation::planner::Planner;
use crate::broker::Broker;

/// The broker of this number among all, over sites of these sizes, ascending.
pub fn broker(
    rules: Rules,
    sizes: &[u32],
    scheduler: LocalScheduler,
    pass: Pass,
    seed: u64,
    number: u64,
) -> Box<dyn Broker> {
    match rules.rule {
        BrokerRule::Genetic => Box::new(Planner::new(rules.batches, seed, number)),
        _ => Box::new(Allocator::new(rules, sizes, scheduler, pass, seed, number)),
    }
}
