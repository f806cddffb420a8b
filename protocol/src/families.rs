//! Which family a strategy is of, and in which role: the one place that names them all.

use scheduler::Strategy;

use crate::balance::Balancer;
use crate::broker;
use crate::config::PeerConfig;
use crate::engine::{Engine, Site};
use crate::local::Local;
use crate::opaque;
use crate::pool::Exchange;
use crate::steal::Stealing;

/// A site at rest in this incarnation, under the family of its strategy; members without processors are brokers where there are any.
/// What it numbers begins after `first`.
pub(crate) fn begin(config: PeerConfig, incarnation: u32, first: u64) -> Box<dyn Site> {
    let decides = config.grid.is_broker(config.site);
    match config.strategy {
        Strategy::Local => Box::new(Engine::<Local>::at_rest(config, incarnation, first)),
        Strategy::Steal(_) | Strategy::StealGreedy(_) | Strategy::CommonPool => {
            Box::new(Engine::<Stealing>::at_rest(config, incarnation, first))
        }
        Strategy::Pool(_) => Box::new(Engine::<Exchange>::at_rest(config, incarnation, first)),
        Strategy::Balance(_) => Box::new(Engine::<Balancer>::at_rest(config, incarnation, first)),
        Strategy::Broker(_) if decides => {
            Box::new(Engine::<broker::Desk>::at_rest(config, incarnation, first))
        }
        Strategy::Broker(_) => Box::new(Engine::<broker::Reporter>::at_rest(config, incarnation, first)),
        Strategy::Opaque(_) if decides => {
            Box::new(Engine::<opaque::Desk>::at_rest(config, incarnation, first))
        }
        Strategy::Opaque(_) => Box::new(Engine::<opaque::Reporter>::at_rest(config, incarnation, first)),
    }
}
