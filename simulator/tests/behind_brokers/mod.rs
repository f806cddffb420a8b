//! A scenario of brokers and sites with a failure detector and journals, over links that lose nothing.

use std::sync::Arc;

use links::Model;
use protocol::{BrokerOptions, Options};
use scheduler::{Grid, LocalScheduler, LocalUsers, Pass, Span, StrategySpec, Submit, TimedJob};
use simulator::faults::Scenario;

/// Nothing goes wrong in it yet.
pub(crate) fn scenario(grid: Arc<Grid>, jobs: Vec<TimedJob>, strategy: &str, lease: i64) -> Scenario {
    let second = Span::from_secs(1);
    Scenario {
        external: None,
        grid,
        jobs,
        strategy: strategy.parse::<StrategySpec>().expect("a strategy").strategy,
        local: LocalScheduler::Easy,
        pass: Pass::Batch,
        submit: Submit::Home,
        local_users: LocalUsers::default(),
        options: Options {
            retry: Some(second.saturating_mul(5)),
            heartbeat: Some(second.saturating_mul(10)),
            suspect_after: second.saturating_mul(40),
            lease: Some(second.saturating_mul(lease)),
            journal: true,
            message_events: false,
            broker: BrokerOptions::default(),
            ..Options::default()
        },
        network: Model::constant(second),
        faults: Vec::new(),
        healed: None,
        seed: 1,
    }
}
