//! Some hundreds of small runs whose event logs are known: a change that was to move nothing shows here if it did.
//!
//! `known.txt` has a digest of each run's events, messages included: of every strategy with its options, orders and
//! local schedulers on links of four kinds, and of what the search for fault schedules draws, with journals, crashes,
//! take-overs, sites that join and leave, lost disks and liars. A change of behaviour that is meant is written down by
//! `STEALGRID_CORPUS=write cargo test -p stealgrid-tests --test corpus`, and the reason in the commit.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use links::model::Probability;
use links::{Model, Properties};
use predict::Forecast;
use protocol::{
    BalanceOptions, BrokerOptions, Discovery, Options, Pending, PoolOptions, Reporting, StealOptions, Terms,
};
use scheduler::{
    Event, Grid, JobId, JobSpec, Labels, LocalScheduler, Pass, SiteId, Span, Strategy, StrategySpec, Time,
    TimedJob,
};
use sha2::{Digest as _, Sha256};
use simulator::swarm::{self, Part, Parts, Trial};
use simulator::{Simulation, SimulationConfig};

/// Seeds of the search for fault schedules.
const SEEDS: u64 = 600;
/// The same with brokers in each.
const BROKER_SEEDS: u64 = 200;
/// And before sites that they do not see into.
const OPAQUE_SEEDS: u64 = 100;
/// Jobs of a run without faults.
const JOBS: u64 = 60;

/// Of each family and each option that has a name, at least one.
const STRATEGIES: &[&str] = &[
    "local",
    "common-pool",
    "st:0",
    "st:50",
    "st:75",
    "st:100",
    "st:50,order=abh",
    "st:50,order=bah",
    "st:50,order=bha",
    "st:50,order=hab",
    "st:50,order=hba",
    "st:50,select=head",
    "st:50,select=best-fit",
    "st:50,select=easy",
    "st:75,order=hab,select=easy",
    "st-greedy:50",
    "st-greedy:50,select=head",
    "pool:fcfs",
    "pool:easy",
    "pool:list",
    "pool:easy,offer=all",
    "pool:easy,via=gossip",
    "pool:list,via=gossip",
    "pool:fcfs,via=gossip,demand=off",
    "steal:random",
    "steal:nearest",
    "steal:loaded",
    "steal:two-choices",
    "steal:random,mode=push",
    "steal:loaded,amount=half",
    "steal:random,select=easy",
    "steal:loaded,mode=push,select=easy",
    "broker:random",
    "broker:round-robin",
    "broker:ml",
    "broker:mlp",
    "broker:mpl",
    "broker:lbal-s",
    "broker:mlb",
    "broker:mct",
    "broker:mst",
    "broker:mwt",
    "broker:mwwt-s",
    "broker:mpl,a=0.5",
    "broker:mct,mct=job-after,plan=open-loop",
    "broker:mwt,mwt-pop=system,a=0.5",
    "broker:genetic",
    "broker:genetic,window=0s,population=8,generations=5",
    "broker:genetic,batch=7,window=3600s,goal=wait,population=8,generations=5",
    "opaque:round-robin",
    "opaque:ag,cap=2,timeout=600,tie=random",
    "opaque:mqd,cap=2,timeout=600,growth=50,tie=random,total-from=first",
    "opaque:mct,cap=3,timeout=900,clock=scheduled,growth-of=site",
];

/// A digest of events, each as a line of the event log.
#[derive(Default)]
struct Log {
    hash: Sha256,
    kinds: BTreeSet<String>,
}

impl Log {
    fn observe(&mut self, event: &Event) {
        let kind = serde_json::to_value(event.kind).unwrap();
        let named = kind.as_object().and_then(|fields| fields.keys().next()).map(String::as_str);
        self.kinds.insert(named.or(kind.as_str()).unwrap().to_string());
        self.hash.update(serde_json::to_string(event).unwrap());
        self.hash.update("\n");
    }

    /// The first half of the digest: 64 bits tell some hundred runs apart.
    fn digest(self) -> String {
        self.hash.finalize()[..8].iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Sites of many widths.
fn grid() -> Arc<Grid> {
    Arc::new(Grid::of_sizes(&[2, 4, 4, 9, 16]).unwrap())
}

/// The same with two brokers.
fn grid_with_brokers() -> Arc<Grid> {
    let sites = grid().sites().iter().map(|site| (site.name.clone(), site.processors)).collect::<Vec<_>>();
    let brokers = [("broker1".to_string(), None), ("broker2".to_string(), Some(SiteId(2)))];
    Arc::new(Grid::with_brokers(sites, brokers).unwrap())
}

/// Jobs in bursts and alone, narrow and wide, with estimates that are right, too long and too short.
fn jobs() -> Vec<TimedJob> {
    let mut at = Time::ZERO;
    let drawn = |place: u64| {
        // Numbers without a pattern that no library has a say in.
        let mixed = (place + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 32
    };
    let job = |place: u64| {
        let number = drawn(place);
        at += Span::from_secs([0, 0, 30, 240][(number % 4) as usize]);
        let run_time = Span::from_secs(20 + (number >> 3) as i64 % 1_500);
        let requested = match (number >> 2) % 5 {
            0 => run_time,
            1 => Span::from_secs((run_time.as_secs_f64() / 2.0) as i64 + 1),
            _ => run_time.saturating_mul(3),
        };
        TimedJob {
            spec: JobSpec {
                id: JobId(place + 1),
                submit: at,
                processors: [1, 1, 2, 3, 4, 5, 9, 16][(number >> 5) as usize % 8],
                requested,
                labels: Labels { user: (number % 7) as i32, ..Labels::UNKNOWN },
                origin: SiteId(1 + (number % 5) as u32),
                payload: (number % 3) * 1_000_000,
            },
            run_time,
        }
    };
    (0..JOBS).map(job).collect()
}

/// Links, and the options that suit them.
fn networks() -> Vec<(&'static str, Model, Options)> {
    let minute = Span::from_secs(60);
    let seen = Options { message_events: true, ..Options::default() };
    let losing =
        Properties { loss: Probability::new(0.1).unwrap(), ..Properties::unreliable(0.1, 0.05, minute) };
    let repeats = Options {
        retry: Some(minute.saturating_mul(10)),
        pool: PoolOptions { refresh: Some(minute.saturating_mul(20)) },
        ..seen
    };
    vec![
        ("free", Model::ZERO, seen),
        ("minute", Model::constant(minute), seen),
        (
            "minute-windows",
            Model::constant(minute),
            Options {
                steal: StealOptions { window: 3, eager: true, prefetch: None },
                balance: BalanceOptions { tries: 2, ..seen.balance },
                batch: 4,
                margin: Some(minute),
                ..seen
            },
        ),
        (
            "minute-fetching",
            Model::constant(minute),
            Options {
                steal: StealOptions { prefetch: Some(minute.saturating_mul(10)), ..StealOptions::default() },
                ..seen
            },
        ),
        ("minute-losing", Model::constant(minute).with(losing), repeats),
    ]
}

fn simulate(config: SimulationConfig, jobs: &[TimedJob]) -> Log {
    let mut log = Log::default();
    Simulation::new(config, jobs).run(&mut |event: &Event| log.observe(event)).unwrap();
    log
}

/// Names and logs of runs without faults.
fn plain() -> Vec<(String, Log)> {
    let (grid, jobs, minute) = (grid(), jobs(), Span::from_secs(60));
    let mut runs = Vec::new();
    for &name in STRATEGIES {
        let strategy = name.parse::<StrategySpec>().unwrap_or_else(|error| panic!("{error}")).strategy;
        let members = match strategy {
            _ if strategy.nature().brokers => grid_with_brokers(),
            _ => grid.clone(),
        };
        let terms = Terms::new(members, strategy);
        let over = |network: Model, terms: Terms| SimulationConfig { network, ..SimulationConfig::on(terms) };
        for (network, model, options) in networks() {
            let config = over(model, Terms { options, ..terms.clone() });
            runs.push((format!("{name} {network}"), simulate(config, &jobs)));
        }
        let (_, model, options) = networks().swap_remove(1);
        let home = over(model, Terms { pass: Pass::PerEvent, options, ..terms });
        runs.push((format!("{name} home per-event"), simulate(home, &jobs)));
        if let Strategy::Steal(steal) = strategy
            && !steal.order.stolen_first()
        {
            let (_, model, options) = networks().swap_remove(1);
            let discovery = Discovery::Polling { period: minute, period_max: minute.saturating_mul(8) };
            let options = Options { discovery, ..options };
            let polling = over(model, Terms { options, ..Terms::new(grid.clone(), strategy) });
            runs.push((format!("{name} polling"), simulate(polling, &jobs)));
        }
    }
    let strategy = "broker:mpl".parse::<StrategySpec>().unwrap().strategy;
    let broker = BrokerOptions::default();
    for (name, broker) in [
        ("every", BrokerOptions { report: Reporting::Every(minute), ..broker }),
        ("probe", BrokerOptions { report: Reporting::Probe(2), ..broker }),
        ("ignoring", BrokerOptions { pending: Pending::Ignore, ..broker }),
    ] {
        let (_, network, options) = networks().swap_remove(4);
        let mut config = SimulationConfig::new(grid_with_brokers(), strategy);
        (config.network, config.options) = (network, Options { broker, ..options });
        runs.push((format!("broker:mpl {name}"), simulate(config, &jobs)));
    }
    runs.extend(in_parts(&jobs));
    for local in LocalScheduler::ALL {
        for pass in [Pass::Batch, Pass::PerEvent] {
            let terms = Terms { local, pass, ..Terms::new(grid.clone(), Strategy::Local) };
            let log = simulate(SimulationConfig::on(terms), &jobs);
            runs.push((format!("local {} {pass:?}", local.name()).to_lowercase(), log));
        }
    }
    runs
}

/// Of jobs in parts, some wider than each site, with run times as users say and as predicted.
fn in_parts(jobs: &[TimedJob]) -> Vec<(String, Log)> {
    let mut jobs = jobs.to_vec();
    jobs.iter_mut().step_by(7).for_each(|job| job.spec.processors += 16);
    let mut runs = Vec::new();
    for name in ["broker:mcisne,coallocate=dp", "broker:mcisne,coallocate=super,phases=two"] {
        let strategy = name.parse::<StrategySpec>().unwrap().strategy;
        let grid = grid_with_brokers();
        let spread = strategy.spread(grid.widths());
        let grid = Arc::new((*grid).clone().with_spread(spread));
        for (network, model, options) in networks() {
            for estimate in ["user", "avg2"] {
                let forecast = Forecast::of(estimate, None).unwrap();
                let terms = Terms { options, forecast, ..Terms::new(grid.clone(), strategy) };
                let config = SimulationConfig { network: model.clone(), ..SimulationConfig::on(terms) };
                runs.push((format!("{name} {network} {estimate}"), simulate(config, &jobs)));
            }
        }
    }
    runs
}

/// Names and logs of runs with faults.
fn faulty() -> Vec<(String, Log)> {
    let usual = (1..=SEEDS).map(|seed| (seed, Parts::Usual, ""));
    let brokers = (1..=BROKER_SEEDS).map(|seed| (seed, Parts::With(Part::Brokers), "with brokers "));
    let opaque = (1..=OPAQUE_SEEDS).map(|seed| (seed, Parts::With(Part::Opaque), "before opaque sites "));
    usual
        .chain(brokers)
        .chain(opaque)
        .map(|(seed, parts, with)| {
            let mut scenario = swarm::draw(seed, parts);
            scenario.options.message_events = true;
            let mut log = Log::default();
            let tally = swarm::run_scenario(&scenario, Trial::default(), &mut |event| log.observe(event));
            let tally = tally.unwrap_or_else(|broken| panic!("seed {seed}: {broken}"));
            // Counters that are younger than the digests, and zero where no job has parts.
            let tally = serde_json::to_string(&tally).unwrap().replace(",\"parts\":0,\"stopped\":0", "");
            log.hash.update(tally);
            (format!("seed {seed} {with}{}", scenario.strategy), log)
        })
        .collect()
}

fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/known.txt")
}

#[test]
fn runs_are_those_that_are_known() {
    let runs: Vec<(String, Log)> = plain().into_iter().chain(faulty()).collect();
    let kinds: BTreeSet<String> = runs.iter().flat_map(|(_, log)| log.kinds.iter().cloned()).collect();
    let families: BTreeSet<&str> = runs
        .iter()
        .filter_map(|(name, _)| name.split(' ').find(|word| word.parse::<StrategySpec>().is_ok()))
        .collect();
    assert!(families.len() > 60, "few strategies: {families:?}");
    for kind in [
        "submitted",
        "granted",
        "accepted",
        "declined",
        "returned",
        "took_over",
        "orphaned",
        "begun",
        "ended",
        "sent",
        "received",
        "recalled",
        "learned",
    ] {
        assert!(kinds.contains(kind), "nothing is {kind} in any run, only {kinds:?}");
    }
    let now: BTreeMap<String, String> = runs.into_iter().map(|(name, log)| (name, log.digest())).collect();
    if std::env::var_os("STEALGRID_CORPUS").is_some_and(|how| how == "write") {
        let text: String = now.iter().map(|(name, digest)| format!("{digest} {name}\n")).collect();
        std::fs::write(file(), text).unwrap();
        return;
    }
    let text = std::fs::read_to_string(file()).unwrap();
    let known: BTreeMap<String, String> = text
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(digest, name)| (name.into(), digest.into()))
        .collect();
    let other = |name: &&String| known.get(*name).is_some_and(|digest| now[*name] != *digest);
    let moved: Vec<&String> = now.keys().filter(other).collect();
    let new: Vec<&String> = now.keys().filter(|name| !known.contains_key(*name)).collect();
    let gone: Vec<&String> = known.keys().filter(|name| !now.contains_key(*name)).collect();
    assert!(
        moved.is_empty() && new.is_empty() && gone.is_empty(),
        "of {} runs {} did something else than before, {} are new, {} are gone; the first of each: {:#?}",
        now.len(),
        moved.len(),
        new.len(),
        gone.len(),
        [&moved, &new, &gone].map(|names| names.iter().take(10).collect::<Vec<_>>())
    );
}

/// What a digest is worth: one message more or less, or one that is a microsecond later, is another run.
#[test]
fn mutant_another_delay_or_one_event_less_is_another_run() {
    let (grid, jobs) = (grid(), jobs());
    let digest = |delay, skip| {
        let options = Options { message_events: true, ..Options::default() };
        let strategy = "st:50".parse::<StrategySpec>().unwrap().strategy;
        let config = SimulationConfig {
            network: Model::constant(delay),
            ..SimulationConfig::on(Terms { options, ..Terms::new(grid.clone(), strategy) })
        };
        let (mut log, mut place) = (Log::default(), 0);
        let mut sink = |event: &Event| {
            place += 1;
            if Some(place) != skip {
                log.observe(event);
            }
        };
        Simulation::new(config, &jobs).run(&mut sink).unwrap();
        log.digest()
    };
    let minute = Span::from_secs(60);
    let known = digest(minute, None);
    assert_eq!(known, digest(minute, None));
    assert_ne!(known, digest(Span::from_micros(60_000_001), None));
    assert_ne!(known, digest(minute, Some(17)));
}
