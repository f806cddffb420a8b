//! Brokers in place of the strategy that a seed drew, and what strikes them.

use std::sync::Arc;

use predict::{Correction, Forecast};
use protocol::{BrokerOptions, Failover, Pending, Reporting};
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use scheduler::strategy::opaque::{
    Blame, Clock, DispatchRule, Growth, Options as DispatchOptions, TotalFrom,
};
use scheduler::strategy::{
    ArrivingLoad, Batches, ClusterSelection, Coallocation, Completion, Count, Cut, Fraction, Goal, IdleSince,
    JobSelection, MetaScheduler, Overrun, OwnWait, Phases, Plan, Population, QueueLimit, RunningWork,
};
use scheduler::{Broker, BrokerRule, Grid, SiteId, Span, Strategy};

use super::drawing::{fault, members, micros};
use crate::faults::{Fault, Scenario};

/// Puts one to three brokers into the grid.
pub(super) fn join(rng: &mut ChaCha8Rng, scenario: &mut Scenario) {
    let healed = scenario.healed.expect("what is drawn is healed");
    let sites = scenario.grid.len();
    let few = rng.random_range(1..=3usize);
    let brokers: Vec<(String, Option<SiteId>)> = (1..=few)
        .map(|number| {
            let beside = rng.random_bool(0.3).then(|| SiteId::from_index(rng.random_range(0..sites)));
            (format!("broker{number}"), beside)
        })
        .collect();
    let names = scenario.grid.sites().iter().map(|site| (site.name.clone(), site.processors));
    scenario.grid = Arc::new(Grid::with_brokers(names, brokers).expect("names differ"));
    scenario.strategy = Strategy::Broker(rules(rng));
    scenario.options.broker = options(rng);
    // Without this most would see nobody die.
    let longest = scenario.options.retry.unwrap_or(Span::from_secs(30));
    let grid = scenario.grid.clone();
    if scenario.options.heartbeat.is_none() && rng.random_bool(0.5) {
        members(rng, &grid, &mut scenario.terms.options, &mut scenario.faults, healed, longest);
    }
    for index in sites..grid.len() {
        let broker = SiteId::from_index(index);
        strike(rng, scenario, broker);
        for _ in 0..rng.random_range(0..=3) {
            let one = match fault(rng, &grid, healed) {
                Fault::Crash { at, down, written_percent, torn, .. } => {
                    Fault::Crash { site: broker, at, down, written_percent, torn }
                }
                Fault::Pause { at, lasts, .. } => Fault::Pause { site: broker, at, lasts },
                Fault::SlowDisk { at, until, takes, .. } => {
                    Fault::SlowDisk { site: broker, at, until, takes }
                }
                other => other,
            };
            scenario.faults.push(one);
        }
    }
    follow(rng, scenario);
    if rng.random_bool(0.3) {
        scenario.local_users =
            scenario.jobs.iter().map(|job| job.spec.id).filter(|_| rng.random_bool(0.4)).collect();
    }
    plan_batches(rng, scenario);
}

/// Puts brokers into the grid that see into no site.
pub(super) fn join_opaque(rng: &mut ChaCha8Rng, scenario: &mut Scenario) {
    join(rng, scenario);
    let all = Strategy::all();
    let opaque: Vec<&DispatchOptions> = all.iter().filter_map(Strategy::dispatch).collect();
    let learns = [DispatchRule::RoundRobin, DispatchRule::Ag, DispatchRule::Mqd];
    let drawn = *opaque.choose(rng).expect("there are some");
    let rule = match rng.random_bool(0.6) {
        true => *learns.choose(rng).expect("there are some"),
        false => drawn.rule,
    };
    let timeout = rng.random_range(1..=400);
    scenario.strategy = Strategy::Opaque(DispatchOptions {
        cap: rng.random_range(1..=20),
        timeout: rng.random_bool(0.7).then(|| Span::from_secs(timeout)),
        growth_percent: rng.random_range(0..=50),
        growth: *Growth::ALL.choose(rng).expect("there are some"),
        clock: *Clock::ALL.choose(rng).expect("there are some"),
        total_from: *TotalFrom::ALL.choose(rng).expect("there are some"),
        timeout_blame: *Blame::ALL.choose(rng).expect("there are some"),
        failure_blame: *Blame::ALL.choose(rng).expect("there are some"),
        ..DispatchOptions::new(rule)
    });
}

/// Puts brokers into the grid that start jobs in parts at several sites at once, and jobs that no site is wide enough for.
pub(super) fn join_gangs(rng: &mut ChaCha8Rng, scenario: &mut Scenario) {
    join(rng, scenario);
    if let Reporting::Probe(_) = scenario.options.broker.report {
        scenario.options.broker.report = Reporting::Change;
    }
    // Most often all are spread that no site is wide enough for, and one in three sees jobs that wait at sites fetched.
    let coallocation = match rng.random_bool(0.4) {
        true => Coallocation::Optimal,
        false => *Coallocation::ALL[1..].choose(rng).expect("there are some"),
    };
    // What nobody who is left is wide enough for would hold up all others.
    let may_die = scenario.options.lease.is_some();
    let selections = JobSelection::ALL.iter().filter(|jobs| !may_die || jobs.name().starts_with("nb"));
    let selections: Vec<JobSelection> = selections.copied().collect();
    let meta = MetaScheduler {
        coallocation,
        phases: if rng.random_bool(0.35) { Phases::Two } else { Phases::One },
        select: *ClusterSelection::ALL.choose(rng).expect("there are some"),
        jobs: *selections.choose(rng).expect("there are some"),
        limit: if rng.random_bool(0.3) {
            QueueLimit::None
        } else {
            QueueLimit::Jobs(rng.random_range(1..=3))
        },
        ..MetaScheduler::default()
    };
    scenario.strategy = Strategy::Broker(Broker { meta, ..Broker::new(BrokerRule::Mcisne) });
    spread(scenario);
    let (widest, widest_job) = (scenario.grid.widest(), scenario.grid.widest_job());
    for job in &mut scenario.jobs {
        if widest < widest_job && rng.random_bool(0.3) {
            job.spec.processors = rng.random_range(widest + 1..=widest_job);
        }
    }
    predict(scenario);
}

/// In one of four somebody predicts the run times of jobs of few users. From a stream of its own, so that the others stay what they are.
fn predict(scenario: &mut Scenario) {
    let mut rng = ChaCha8Rng::seed_from_u64(scenario.seed);
    rng.set_stream(200);
    if !rng.random_bool(0.25) {
        return;
    }
    let name = ["avg2", "half", "smith"].choose(&mut rng).expect("there are some");
    let predictor = name.parse().expect("a predictor");
    let correction = *Correction::ALL.choose(&mut rng).expect("there are some");
    scenario.terms.forecast = Some(Forecast { predictor, correction });
    for job in &mut scenario.jobs {
        job.spec.labels.user = rng.random_range(0..3);
    }
}

/// The grid takes jobs as wide as the strategy starts them over its sites.
pub(super) fn spread(scenario: &mut Scenario) {
    let spread = scenario.strategy.spread(scenario.grid.widths());
    if spread > 0 {
        scenario.grid = Arc::new((*scenario.grid).clone().with_spread(spread));
    }
}

/// Now and then brokers plan batches. Small ones, searched for a moment: it is about what becomes of jobs that are held.
fn plan_batches(rng: &mut ChaCha8Rng, scenario: &mut Scenario) {
    if matches!(scenario.options.broker.report, Reporting::Probe(_)) || !rng.random_bool(0.2) {
        return;
    }
    let batches = Batches {
        jobs: rng.random_range(1..=20),
        window: micros(rng, Span::ZERO, Span::from_secs(300)),
        goal: *Goal::ALL.choose(rng).expect("there are some"),
        population: rng.random_range(2..=4),
        generations: rng.random_range(0..=2),
        ..Batches::default()
    };
    scenario.strategy = Strategy::Broker(Broker { batches, ..Broker::new(BrokerRule::Genetic) });
}

/// Now and then the part of the processors that is admissible follows the load.
fn follow(rng: &mut ChaCha8Rng, scenario: &mut Scenario) {
    if let Strategy::Broker(rules) = &mut scenario.strategy
        && rng.random_bool(0.1)
    {
        *rules = Broker { admissible: Fraction::ONE, follows: true, ..*rules };
    }
}

/// Whether it dies, leaves, or comes late, where others see that.
fn strike(rng: &mut ChaCha8Rng, scenario: &mut Scenario, broker: SiteId) {
    let healed = scenario.healed.expect("what is drawn is healed");
    let at = scheduler::Time::from_micros(rng.random_range(0..healed.as_micros()));
    if scenario.options.heartbeat.is_some() && rng.random_bool(0.15) {
        scenario.faults.push(Fault::Join { site: broker, at });
    }
    if scenario.options.lease.is_none() {
        return;
    }
    match rng.random_range(0..10) {
        0..3 => scenario.faults.push(Fault::Crash {
            site: broker,
            at,
            down: None,
            written_percent: rng.random_range(0..=100),
            torn: None,
        }),
        3 => scenario.faults.push(Fault::Leave { site: broker, at }),
        _ => {}
    }
}

fn options(rng: &mut ChaCha8Rng) -> BrokerOptions {
    let report = match rng.random_range(0..4) {
        0 => Reporting::Every(micros(rng, Span::from_secs(1), Span::from_secs(120))),
        1 => Reporting::Probe(rng.random_range(1..=3)),
        _ => Reporting::Change,
    };
    BrokerOptions {
        report,
        pending: if rng.random_bool(0.8) { Pending::Count } else { Pending::Ignore },
        failover: if rng.random_bool(0.6) { Failover::Next } else { Failover::Local },
    }
}

fn rules(rng: &mut ChaCha8Rng) -> Broker {
    fn one_of<T: Copy>(rng: &mut ChaCha8Rng, all: &[T]) -> T {
        *all.choose(rng).expect("there are some")
    }
    let rule = one_of(rng, BrokerRule::BUILT_IN);
    if rng.random_bool(0.4) {
        return Broker::new(rule);
    }
    let (part, whole) = one_of(rng, &[(1, 1), (1, 2), (1, 4), (1, 10)]);
    Broker {
        admissible: Fraction::new(part, whole).expect("a fraction"),
        cut: one_of(rng, Cut::ALL),
        count: one_of(rng, Count::ALL),
        arriving: one_of(rng, ArrivingLoad::ALL),
        running: one_of(rng, RunningWork::ALL),
        completion: one_of(rng, Completion::ALL),
        idle: one_of(rng, IdleSince::ALL),
        own_wait: one_of(rng, OwnWait::ALL),
        population: one_of(rng, Population::ALL),
        plan: if rng.random_bool(0.7) { Plan::Resynchronised } else { one_of(rng, Plan::ALL) },
        overrun: one_of(rng, Overrun::ALL),
        ..Broker::new(rule)
    }
}
