//! A scenario of brokers and sites with a failure detector and journals, over links that lose nothing.

use std::sync::Arc;

use links::Model;
use protocol::{BrokerOptions, Options, Terms};
use scheduler::{Grid, LocalUsers, Span, StrategySpec, Submit, TimedJob};
use simulator::faults::Scenario;

/// Nothing goes wrong in it yet.
pub(crate) fn scenario(grid: Arc<Grid>, jobs: Vec<TimedJob>, strategy: &str, lease: i64) -> Scenario {
    let second = Span::from_secs(1);
    let options = Options {
        retry: Some(second.saturating_mul(5)),
        heartbeat: Some(second.saturating_mul(10)),
        suspect_after: second.saturating_mul(40),
        lease: Some(second.saturating_mul(lease)),
        journal: true,
        message_events: false,
        broker: BrokerOptions::default(),
        ..Options::default()
    };
    let strategy = strategy.parse::<StrategySpec>().expect("a strategy").strategy;
    Scenario {
        terms: Terms { options, ..Terms::new(grid, strategy) },
        jobs,
        submit: Submit::Home,
        local_users: LocalUsers::default(),
        network: Model::constant(second),
        faults: Vec::new(),
        healed: None,
    }
}
