//! Members of a grid without processors: users may submit jobs to them, and no job starts there.

use std::collections::BTreeMap;
use std::sync::Arc;

use links::{Model, Properties};
use protocol::{BalanceOptions, Options, PoolOptions};
use scheduler::{Event, EventKind, Grid, JobId, SiteId, Span, StrategySpec, Submit, Time, TimedJob};
use simulator::{Checks, Simulation, SimulationConfig};
use stealgrid_tests::Steady;

const SIZES: [u32; 4] = [4, 16, 8, 8];
const STRATEGIES: [&str; 13] = [
    "local",
    "st:0",
    "st:50",
    "st:100,order=hab",
    "st:50,select=easy",
    "st-greedy:50",
    "common-pool",
    "pool:easy",
    "pool:list,via=gossip",
    "steal:random",
    "steal:two-choices,mode=push",
    "steal:loaded",
    "steal:nearest,amount=half",
];

fn grid(brokers: usize) -> Arc<Grid> {
    let sites = SIZES.iter().zip(1..).map(|(&size, number): (_, u32)| (format!("site{number}"), size));
    let brokers = (1..=brokers).map(|number| (format!("broker{number}"), None));
    Arc::new(Grid::with_brokers(sites, brokers).expect("names differ"))
}

/// Three hundred jobs, submitted at sites in turn.
fn jobs() -> Vec<TimedJob> {
    let every = Span::from_secs(3);
    Steady { together: 1, every, shortest: Span::from_secs(1), widest: 11, sites: 4 }.jobs(300)
}

fn config(grid: Arc<Grid>, strategy: &str) -> SimulationConfig {
    let strategy = strategy.parse::<StrategySpec>().unwrap_or_else(|error| panic!("{error}")).strategy;
    SimulationConfig { checks: Checks::Full, ..SimulationConfig::new(grid, strategy) }
}

/// When and where each job started.
fn starts(config: SimulationConfig, jobs: &[TimedJob]) -> BTreeMap<JobId, (Time, SiteId)> {
    let mut starts = BTreeMap::new();
    let mut note = |event: &Event| {
        if let EventKind::Started { job, .. } = event.kind {
            starts.insert(job, (event.at, event.site));
        }
    };
    let totals = Simulation::new(config, jobs).run(&mut note).expect("no violation");
    assert_eq!((totals.completed, starts.len()), (jobs.len(), jobs.len()));
    starts
}

/// With free messages it is as if they were not there. Baselines draw whom they ask, so theirs is another schedule.
#[test]
fn where_messages_are_free_they_change_no_schedule() {
    let jobs = jobs();
    for strategy in STRATEGIES.iter().filter(|name| !name.starts_with("steal:")) {
        let without = starts(config(grid(0), strategy), &jobs);
        for brokers in [1, 3] {
            assert_eq!(
                starts(config(grid(brokers), strategy), &jobs),
                without,
                "{strategy}, {brokers} of them"
            );
        }
    }
}

/// Jobs that users submit there go to where they can execute, whatever messages cost or get lost.
#[test]
fn what_is_submitted_there_executes_elsewhere() {
    let mut jobs = jobs();
    for (job, number) in jobs.iter_mut().zip(0..) {
        job.spec.origin = SiteId(5 + number % 2);
    }
    let second = Span::from_secs(1);
    for strategy in STRATEGIES {
        for (delay, loss) in [(0, 0.0), (1, 0.0), (1, 0.2)] {
            let mut config = config(grid(2), strategy);
            config.submit = Submit::Origin;
            config.network = Model::constant(second.saturating_mul(delay));
            if loss > 0.0 {
                config.network = config.network.with(Properties::unreliable(loss, 0.1, second));
                config.options = Options {
                    retry: Some(second.saturating_mul(10)),
                    pool: PoolOptions { refresh: Some(second.saturating_mul(20)) },
                    balance: BalanceOptions {
                        gossip: second.saturating_mul(20),
                        ..BalanceOptions::default()
                    },
                    ..Options::default()
                };
            }
            let starts = starts(config, &jobs);
            let there = starts.values().filter(|(_, site)| site.0 > 4).count();
            assert_eq!(there, 0, "{strategy}: jobs start where there are no processors");
        }
    }
}
