//! A world without faults does event for event what a simulation does, so that runs with and without faults compare.

use std::sync::Arc;

use links::Model;
use protocol::{Options, PoolOptions, Terms};
use scheduler::{
    Event, Grid, JobId, JobSpec, Labels, LocalUsers, Pass, SiteId, Span, StrategySpec, Submit, Time, TimedJob,
};
use simulator::faults::{Broken, Check, Fault, Limits, Scenario, Tally, World};
use simulator::{Simulation, SimulationConfig};

pub(crate) const STRATEGIES: [&str; 16] = [
    "st:50",
    "st:30,order=hab",
    "st-greedy:50",
    "common-pool",
    "local",
    "pool:fcfs",
    "pool:easy",
    "pool:list,via=gossip",
    "steal:random",
    "steal:nearest",
    "steal:loaded",
    "steal:two-choices",
    "steal:random,mode=push",
    "steal:loaded,mode=push,amount=half",
    "steal:random,select=easy",
    "steal:two-choices,mode=push,select=easy",
];

/// Sixty jobs in bursts; some begin and end at one instant, some need no time.
fn jobs(grid: &Grid) -> Vec<TimedJob> {
    let mut jobs: Vec<TimedJob> = (1..=60u64)
        .map(|id| {
            let run_time = Span::from_secs(i64::try_from(id * 37 % 50).expect("small"));
            let spec = JobSpec {
                id: JobId(id),
                submit: Time::from_secs(100 + i64::try_from(id / 7 * 25).expect("small")),
                processors: 1 + u32::try_from(id * 13 % u64::from(grid.widest())).expect("small"),
                requested: run_time.max(Span::from_secs(1)),
                labels: Labels::UNKNOWN,
                origin: SiteId::from_index(usize::try_from(id).expect("small") % grid.len()),
                payload: 0,
            };
            TimedJob { spec, run_time }
        })
        .collect();
    jobs.sort_by_key(|job| job.spec.key());
    jobs
}

fn options() -> Options {
    Options { journal: true, ..Options::default() }
}

fn scenario(strategy: &str, network: Model, options: Options, submit: Submit) -> Scenario {
    let grid = Arc::new(Grid::of_sizes(&[2, 4, 4, 8]).expect("a grid"));
    let spec: StrategySpec = strategy.parse().expect("a strategy");
    Scenario {
        jobs: jobs(&grid),
        terms: Terms { options, seed: 7, ..Terms::new(grid, spec.strategy) },
        submit,
        local_users: LocalUsers::default(),
        network,
        faults: Vec::new(),
        healed: None,
    }
}

fn world(scenario: &Scenario) -> (Vec<Event>, Result<Tally, Broken>) {
    let limits = Limits { over: Time::from_secs(1_000_000), calls: 1_000_000 };
    let mut events = Vec::new();
    let result = World::new(scenario, limits).run(&mut |event| events.push(*event));
    (events, result)
}

fn simulation(scenario: &Scenario) -> Vec<Event> {
    let config = SimulationConfig {
        submit: scenario.submit,
        network: scenario.network.clone(),
        ..SimulationConfig::on(scenario.terms.clone())
    };
    let mut events = Vec::new();
    Simulation::new(config, &scenario.jobs).run(&mut |event| events.push(*event)).expect("it ends");
    events
}

fn same(scenario: &Scenario, what: &str) {
    let (events, result) = world(scenario);
    result.unwrap_or_else(|broken| panic!("{what}: {broken}"));
    let expected = simulation(scenario);
    let differs = events.iter().zip(&expected).position(|(one, other)| one != other);
    if let Some(place) = differs {
        panic!("{what}, event {place}: {:?} instead of {:?}", events[place], expected[place]);
    }
    assert_eq!(events.len(), expected.len(), "{what}");
}

#[test]
fn a_world_without_faults_is_a_simulation() {
    for strategy in STRATEGIES {
        for delay in [0, 400_000, 7_000_000] {
            for submit in [Submit::Home, Submit::Origin] {
                let network = Model::constant(Span::from_micros(delay));
                same(
                    &scenario(strategy, network, options(), submit),
                    &format!("{strategy}, {delay} us, {submit:?}"),
                );
            }
        }
    }
}

#[test]
fn repetition_and_heartbeats_change_nothing_of_that() {
    let options = Options {
        retry: Some(Span::from_secs(20)),
        pool: PoolOptions { refresh: Some(Span::from_secs(40)) },
        heartbeat: Some(Span::from_secs(15)),
        lease: Some(Span::from_secs(120)),
        ..options()
    };
    for strategy in STRATEGIES {
        let scenario = scenario(strategy, Model::constant(Span::from_secs(2)), options, Submit::Home);
        same(&scenario, strategy);
    }
}

#[test]
fn local_schedulers_that_decide_at_each_event_do_so_here() {
    for submit in [Submit::Home, Submit::Origin] {
        for delay in [0, 400_000, 25_000_000] {
            let network = Model::constant(Span::from_micros(delay));
            let mut scenario = scenario("local", network, options(), submit);
            scenario.pass = Pass::PerEvent;
            same(&scenario, &format!("local, pass per event, {delay} us, {submit:?}"));
        }
    }
}

#[test]
fn a_dead_site_is_replaced_where_nothing_is_healed() {
    for strategy in STRATEGIES {
        let options = Options {
            retry: Some(Span::from_secs(10)),
            pool: PoolOptions { refresh: Some(Span::from_secs(20)) },
            heartbeat: Some(Span::from_secs(10)),
            suspect_after: Span::from_secs(40),
            lease: Some(Span::from_secs(80)),
            ..options()
        };
        let mut scenario = scenario(strategy, Model::constant(Span::from_secs(1)), options, Submit::Home);
        for job in &mut scenario.jobs {
            job.spec.processors = job.spec.processors.min(4);
        }
        let at = Time::from_secs(160);
        scenario.faults = vec![
            Fault::Crash { site: SiteId(1), at, down: None, written_percent: 100, torn: None },
            Fault::Crash { site: SiteId(4), at, down: None, written_percent: 100, torn: None },
        ];
        let (_, result) = world(&scenario);
        let tally = result.unwrap_or_else(|broken| panic!("{strategy}: {broken}"));
        assert_eq!(tally.deaths, 2, "{strategy}");
        assert!(tally.taken_over > 0, "{strategy}: {tally:?}");
    }
}

#[test]
fn what_never_ends_is_named() {
    let options =
        Options { heartbeat: Some(Span::from_secs(10)), lease: Some(Span::from_secs(80)), ..options() };
    let mut scenario = scenario("st:50", Model::constant(Span::from_secs(1)), options, Submit::Home);
    let at = Time::from_secs(1);
    scenario.faults = vec![Fault::Crash { site: SiteId(4), at, down: None, written_percent: 0, torn: None }];
    let (_, result) = world(&scenario);
    let broken = result.expect_err("jobs are wider than any site that is left");
    assert_eq!(broken.check, Check::Unfinished);
    assert!(broken.what.contains("too wide for who is there"), "{broken}");
}
