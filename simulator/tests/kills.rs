//! No question outlives what it is about, under any strategy, whoever is killed when, and killed once more as it restarts.
//!
//! A small run without faults says when something happens. Each kind of member is killed at those instants, in the middle of
//! a call or between two, and a second kill strikes while it restarts: it, or somebody that it asks. After each call every
//! timer is about something open (`Observed::is_open` in the protocol), and in the end all jobs have ended, all agree and nobody
//! waits. Instants and kinds of kills are fixed here; fresh ones are drawn by `stealgrid swarm --with restarts`, of which
//! `.ci/run` takes new seeds each time.

use std::collections::BTreeSet;
use std::sync::Arc;

use links::Model;
use protocol::{BalanceOptions, BrokerOptions, Discovery, Options, PoolOptions, Reporting, Terms};
use scheduler::strategy::{Batches, Via};
use scheduler::{
    Balance, BrokerRule, Event, Grid, Initiative, LocalUsers, Order, Pool, SiteId, Span, Steal, Strategy,
    StrategySpec, Submit, Time,
};
use simulator::faults::{Broken, Fault, Scenario, Tally, Torn};
use simulator::swarm::{self, Trial};

use crate::opaque::Flow;

/// Strategies that are looked at together, to have several tests of about the same length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Group {
    Stealing,
    Pools,
    Baselines,
    Brokers,
    Opaque,
    Gangs,
}

/// A new kind of strategy does not compile until it is in a group.
fn group(strategy: &Strategy) -> Group {
    match strategy {
        Strategy::Local | Strategy::Steal(_) | Strategy::StealGreedy(_) | Strategy::CommonPool => {
            Group::Stealing
        }
        Strategy::Pool(_) => Group::Pools,
        Strategy::Balance(_) => Group::Baselines,
        Strategy::Broker(_) => Group::Brokers,
        Strategy::Opaque(_) => Group::Opaque,
    }
}

const SECOND: Span = Span::from_secs(1);

/// Links take this long in each direction.
const DELAY: Span = SECOND;

/// Twelve jobs in half a minute, some of which wait at the small sites while the large one is idle.
const FLOW: Flow = Flow { at_once: 4, every_s: 12, run_times: (4, 23), widest: 3 };

fn scenario(strategy: Strategy, options: Options) -> Scenario {
    let sites = [2, 3, 4].into_iter().enumerate().map(|(place, size)| (format!("site{}", place + 1), size));
    let brokers = if strategy.nature().brokers { 2 } else { 0 };
    let brokers = (1..=brokers).map(|number| (format!("broker{number}"), None));
    let grid = Arc::new(Grid::with_brokers(sites, brokers).expect("names differ"));
    Scenario {
        terms: Terms { options, ..Terms::new(grid, strategy) },
        jobs: FLOW.jobs(12),
        submit: Submit::Origin,
        local_users: LocalUsers::default(),
        network: Model::constant(DELAY),
        faults: Vec::new(),
        healed: None,
    }
}

fn options() -> Options {
    Options {
        retry: Some(SECOND.saturating_mul(5)),
        pool: PoolOptions { refresh: Some(SECOND.saturating_mul(10)) },
        balance: BalanceOptions { gossip: SECOND.saturating_mul(5), ..BalanceOptions::default() },
        journal: true,
        message_events: true,
        ..Options::default()
    }
}

/// All strategies of a group, with what has timers of its own: gossip, polling, pushing, reports and batches, and limits that
/// have brokers call jobs back.
fn scenarios(group_of: Group) -> Vec<Scenario> {
    let mut all = Vec::new();
    if group_of == Group::Gangs {
        return gangs();
    }
    let reports = [Reporting::Change, Reporting::Every(SECOND.saturating_mul(7)), Reporting::Probe(2)];
    let period = SECOND.saturating_mul(3);
    let polling = Discovery::Polling { period, period_max: period.saturating_mul(4) };
    for (place, strategy) in Strategy::all().into_iter().filter(|one| group(one) == group_of).enumerate() {
        match strategy {
            Strategy::Local => all.push(scenario(strategy, options())),
            Strategy::Steal(steal) => {
                all.push(scenario(strategy, options()));
                let stolen_first = Strategy::Steal(Steal { order: Order::Hab, ..steal });
                all.push(scenario(stolen_first, options()));
                all.push(scenario(strategy, Options { discovery: polling, ..options() }));
            }
            Strategy::StealGreedy(_) | Strategy::CommonPool => {
                all.push(scenario(strategy, options()));
                all.push(scenario(strategy, Options { discovery: polling, ..options() }));
            }
            Strategy::Pool(pool) => {
                for via in [Via::Hosted, Via::Gossip] {
                    all.push(scenario(Strategy::Pool(Pool { via, ..pool }), options()));
                }
            }
            Strategy::Balance(balance) => {
                for initiative in [Initiative::Pull, Initiative::Push] {
                    let strategy = Strategy::Balance(Balance { initiative, ..balance });
                    all.push(scenario(strategy, options()));
                }
                all.push(scenario(strategy, Options { discovery: polling, ..options() }));
            }
            Strategy::Broker(mut broker) => {
                // Small batches, searched for a moment.
                broker.batches = Batches {
                    jobs: 3,
                    window: SECOND.saturating_mul(8),
                    population: 2,
                    generations: 1,
                    ..broker.batches
                };
                let plans = broker.rule == BrokerRule::Genetic;
                let report = if plans { place % 2 } else { place % 3 };
                let broker_options = BrokerOptions { report: reports[report], ..BrokerOptions::default() };
                all.push(scenario(Strategy::Broker(broker), Options { broker: broker_options, ..options() }));
            }
            Strategy::Opaque(opaque) => {
                let timeout = Some(SECOND.saturating_mul(6));
                let strategy =
                    Strategy::Opaque(scheduler::strategy::opaque::Options { cap: 3, timeout, ..opaque });
                all.push(scenario(strategy, options()));
            }
        }
    }
    all
}

/// Brokers that start jobs in parts at several sites at once: every third is wider than each of them.
fn gangs() -> Vec<Scenario> {
    let strategies = ["broker:mcisne,coallocate=dp", "broker:mcisne,coallocate=super,phases=two"];
    let scenarios = strategies.map(|strategy| {
        let strategy = strategy.parse::<StrategySpec>().expect("a name").strategy;
        let mut scenario = scenario(strategy, options());
        let spread = strategy.spread(scenario.grid.widths());
        scenario.grid = Arc::new((*scenario.grid).clone().with_spread(spread));
        for job in scenario.jobs.iter_mut().filter(|job| job.spec.id.0.is_multiple_of(3)) {
            job.spec.processors = 5 + (job.spec.id.0 % 4) as u32;
        }
        scenario
    });
    scenarios.into()
}

/// Members with failure detectors and a lease.
fn with_members(mut scenario: Scenario) -> Scenario {
    scenario.options.heartbeat = Some(SECOND.saturating_mul(5));
    scenario.options.suspect_after = SECOND.saturating_mul(16);
    scenario.options.lease = Some(SECOND.saturating_mul(30));
    scenario
}

/// One of each kind: who hosts a pool, a site whose jobs are stolen, who steals, and a broker.
fn victims(scenario: &Scenario) -> Vec<SiteId> {
    let brokers = scenario.strategy.nature().brokers.then_some(SiteId(4));
    brokers.into_iter().chain([SiteId(1), SiteId(3)]).collect()
}

/// When something happens in a run without faults.
fn instants(scenario: &Scenario) -> Vec<Time> {
    let mut times = BTreeSet::new();
    let mut note = |event: &Event| {
        times.insert(event.at);
    };
    swarm::run_scenario(scenario, Trial::default(), &mut note)
        .unwrap_or_else(|broken| panic!("{}: {broken}", scenario.strategy));
    times.into_iter().collect()
}

/// Ways in which somebody is killed, restarts, and is killed once more: whoever was, or another.
const WAYS: usize = 4 * 3 * 5 * 2;

fn strike(scenario: &Scenario, victim: usize, at: Time, way: usize) -> Scenario {
    let members = victims(scenario);
    let (torn, down, again, other) = (way % 4, way / 4 % 3, way / 12 % 5, way / 60 % 2);
    // At that instant, or in the middle of the call that comes next: of its facts none or all are durable, and of what it
    // says nothing or a part has left.
    let torn = [
        None,
        Some(Torn { written: false, outputs: 0 }),
        Some(Torn { written: true, outputs: 0 }),
        Some(Torn { written: true, outputs: 1 }),
    ][torn];
    // Before a message is repeated, after that, and after others have taken over.
    let down = SECOND.saturating_mul([2, 7, 60][down]);
    let tick = Span::from_micros(1);
    // While it is down, so that it is killed in the middle of its first call; as its questions leave, are there, are
    // answered, and are asked again.
    let (from, again) = [
        (down - tick, Some(Torn { written: true, outputs: 1 })),
        (down + tick, None),
        (down + DELAY + tick, None),
        (down + DELAY.saturating_mul(2) - tick, Some(Torn { written: true, outputs: 0 })),
        (down + SECOND.saturating_mul(6), None),
    ][again];
    let kill = |site, at, down, torn| Fault::Crash { site, at, down: Some(down), written_percent: 100, torn };
    let second = members[(victim + other) % members.len()];
    let mut scenario = match other {
        0 => scenario.clone(),
        _ => with_members(scenario.clone()),
    };
    let second_at = at + from;
    scenario.faults = vec![kill(members[victim], at, down, torn), kill(second, second_at, SECOND, again)];
    scenario.healed = Some(second_at + SECOND.saturating_mul(30));
    scenario.options.message_events = false;
    scenario
}

#[derive(Default)]
struct Struck {
    runs: usize,
    tally: Tally,
    failed: Vec<(String, Broken)>,
}

/// Kills each kind of member at instants that are spread over the run, so many for each strategy and member, or all.
fn kill_all(group_of: Group, most: Option<usize>, trial: Trial) -> Struck {
    let mut struck = Struck::default();
    // Not the same ways at the same places of all runs.
    let mut way = 0;
    for scenario in scenarios(group_of) {
        let instants = instants(&scenario);
        for victim in 0..victims(&scenario).len() {
            let few = most.unwrap_or(instants.len()).min(instants.len());
            for place in 0..few {
                let at = instants[(place * instants.len() + way % instants.len()) / few % instants.len()];
                let ways = if most.is_some() { 1 } else { WAYS };
                for _ in 0..ways {
                    // Coprime to their count, so that all have their turn.
                    way += 67;
                    let scenario = strike(&scenario, victim, at, way % WAYS);
                    struck.runs += 1;
                    match swarm::run_scenario(&scenario, trial, &mut |_| {}) {
                        Ok(tally) => struck.tally.add(&tally),
                        Err(broken) => struck.failed.push((
                            format!("{} {:?} way {}", scenario.strategy, scenario.faults, way % WAYS),
                            broken,
                        )),
                    }
                }
            }
        }
    }
    struck
}

fn nothing_outlives_its_question(group_of: Group, most: Option<usize>) {
    let struck = kill_all(group_of, most, Trial::default());
    let failed: Vec<String> =
        struck.failed.iter().map(|(what, broken)| format!("{what}: {broken}")).collect();
    assert!(failed.is_empty(), "{} of {}: {:#?}", failed.len(), struck.runs, &failed[..failed.len().min(5)]);
    println!("{group_of:?}: {} runs, {:?}", struck.runs, struck.tally);
    // Most are killed twice, and all restart.
    let tally = struck.tally;
    assert!(tally.crashes as usize > struck.runs * 3 / 2, "{} runs, {tally:?}", struck.runs);
    assert!(tally.torn as usize > struck.runs / 2, "{} runs, {tally:?}", struck.runs);
    assert_eq!(tally.orphaned, 0);
}

/// So many instants for each strategy and kind of member: seconds in all.
const FEW: usize = 24;

#[test]
fn nothing_outlives_its_question_where_sites_steal() {
    nothing_outlives_its_question(Group::Stealing, Some(FEW));
}

#[test]
fn nothing_outlives_its_question_in_global_queues() {
    nothing_outlives_its_question(Group::Pools, Some(FEW));
}

#[test]
fn nothing_outlives_its_question_under_baselines() {
    nothing_outlives_its_question(Group::Baselines, Some(FEW));
}

#[test]
fn nothing_outlives_its_question_under_brokers() {
    nothing_outlives_its_question(Group::Brokers, Some(FEW));
}

#[test]
fn nothing_outlives_its_question_where_jobs_start_in_parts() {
    nothing_outlives_its_question(Group::Gangs, Some(4 * FEW));
}

#[test]
#[ignore = "long: minutes"]
fn whenever_somebody_is_killed_nothing_outlives_its_question_where_jobs_start_in_parts() {
    nothing_outlives_its_question(Group::Gangs, None);
}

#[test]
fn nothing_outlives_its_question_before_opaque_sites() {
    nothing_outlives_its_question(Group::Opaque, Some(FEW));
}

#[test]
#[ignore = "long: minutes"]
fn whenever_somebody_is_killed_nothing_outlives_its_question_where_sites_steal() {
    nothing_outlives_its_question(Group::Stealing, None);
}

#[test]
#[ignore = "long: minutes"]
fn whenever_somebody_is_killed_nothing_outlives_its_question_in_global_queues() {
    nothing_outlives_its_question(Group::Pools, None);
}

#[test]
#[ignore = "long: minutes"]
fn whenever_somebody_is_killed_nothing_outlives_its_question_under_baselines() {
    nothing_outlives_its_question(Group::Baselines, None);
}

#[test]
#[ignore = "long: minutes"]
fn whenever_somebody_is_killed_nothing_outlives_its_question_under_brokers() {
    nothing_outlives_its_question(Group::Brokers, None);
}

#[test]
#[ignore = "long: minutes"]
fn whenever_somebody_is_killed_nothing_outlives_its_question_before_opaque_sites() {
    nothing_outlives_its_question(Group::Opaque, None);
}

mod mutants {
    use protocol::mutant::Mutant;
    use simulator::faults::Check;

    use super::*;

    /// Each family has a mistake whose timer goes on when its question is answered.
    #[test]
    fn mutant_timers_that_outlive_their_questions_are_noticed() {
        for (mutant, group_of) in [
            (Mutant::AsksOn, Group::Opaque),
            (Mutant::ThiefAsksOn, Group::Stealing),
            (Mutant::RowAskedOn, Group::Brokers),
            (Mutant::ClaimAskedOn, Group::Pools),
            (Mutant::VictimAskedOn, Group::Baselines),
        ] {
            let struck = kill_all(group_of, Some(2), Trial { mutant: Some(mutant), ..Trial::default() });
            let outlives = |broken: &Broken| {
                broken.check == Check::Invariant && broken.what.contains("nothing is open that it is about")
            };
            let met = struck.failed.iter().filter(|(_, broken)| outlives(broken)).count();
            println!("{mutant:?}: {met} of {} runs", struck.runs);
            assert!(met > 0, "{mutant:?} is not noticed");
            assert_eq!(met, struck.failed.len(), "{mutant:?}: {:?}", struck.failed.first());
        }
    }
}
