//! Brokers before sites that they neither see into nor control: caps, calling back, the times of a job, and what survives.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock, Mutex};

use links::model::Between;
use links::{Cut, Model};
use protocol::{Options, Terms};
use scheduler::{
    Event, EventKind, Grid, JobId, JobSpec, Labels, LocalScheduler, LocalUsers, SiteId, Span, StrategySpec,
    Time, TimedJob,
};
use simulator::faults::{Fault, Scenario};
use simulator::swarm::{self, Part, Parts, Reduction, Trial};
use simulator::{Checks, Simulation, SimulationConfig};

use crate::behind_brokers;
use crate::met::met;

/// Sites of 4, 4 and 8 processors, and so many brokers.
fn grid(brokers: usize) -> Arc<Grid> {
    let sites = [4, 4, 8].into_iter().enumerate().map(|(index, size)| (format!("site{}", index + 1), size));
    let brokers = (1..=brokers).map(|number| (format!("broker{number}"), None));
    Arc::new(Grid::with_brokers(sites, brokers).expect("names differ"))
}

/// Jobs that come so many at once every so often to three sites in turn, with run times and widths that vary.
pub(crate) struct Flow {
    pub(crate) at_once: u64,
    pub(crate) every_s: u64,
    /// In seconds: the shortest run time, and how many longer ones there are.
    pub(crate) run_times: (u64, u64),
    pub(crate) widest: u64,
}

impl Flow {
    pub(crate) fn jobs(&self, count: u64) -> Vec<TimedJob> {
        let job = |number: u64| {
            let run_time = Span::from_secs((self.run_times.0 + number * 7919 % self.run_times.1) as i64);
            let spec = JobSpec {
                id: JobId(number + 1),
                submit: Time::from_secs((number / self.at_once * self.every_s) as i64),
                processors: 1 + (number * 31 % self.widest) as u32,
                requested: run_time.saturating_mul(2),
                labels: Labels::UNKNOWN,
                origin: SiteId(1 + (number % 3) as u32),
                payload: 0,
            };
            TimedJob { spec, run_time }
        };
        (0..count).map(job).collect()
    }
}

/// Jobs that come faster than they can be executed.
pub(crate) fn jobs(count: u64) -> Vec<TimedJob> {
    Flow { at_once: 3, every_s: 5, run_times: (20, 97), widest: 4 }.jobs(count)
}

pub(crate) fn config(strategy: &str, brokers: usize) -> SimulationConfig {
    let strategy = strategy.parse::<StrategySpec>().expect("a name").strategy;
    SimulationConfig { checks: Checks::Full, ..SimulationConfig::new(grid(brokers), strategy) }
}

fn events(config: SimulationConfig, jobs: &[TimedJob]) -> Vec<Event> {
    let mut events = Vec::new();
    Simulation::new(config, jobs)
        .run(&mut |event: &Event| events.push(*event))
        .unwrap_or_else(|violation| panic!("{violation}"));
    events
}

fn count(events: &[Event], is_it: impl Fn(&EventKind) -> bool) -> usize {
    events.iter().filter(|event| is_it(&event.kind)).count()
}

pub(crate) const RULES: [&str; 6] = [
    "opaque:round-robin",
    "opaque:ag,cap=3,timeout=60",
    "opaque:mqd,cap=4,timeout=100,growth=50",
    "opaque:mct,timeout=30,clock=scheduled",
    "opaque:agents",
    "opaque:linucb,cap=2,timeout=20,growth-of=site",
];

#[test]
fn every_job_is_executed_once_and_its_parts_are_its_whole_time() {
    let jobs = jobs(120);
    let delay = Span::from_secs(2);
    for strategy in RULES {
        let config = SimulationConfig { network: Model::constant(delay), ..config(strategy, 2) };
        let events = events(config, &jobs);
        let mut given = BTreeMap::new();
        let (mut started, mut ended, mut learned) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
        for event in &events {
            match event.kind {
                EventKind::Allocated { job, .. } => drop(given.insert(job, event.at)),
                EventKind::Started { job, .. } => {
                    assert!(started.insert(job, event.at).is_none(), "{strategy}: job {job} starts once");
                }
                EventKind::Completed { job, .. } => drop(ended.insert(job, event.at)),
                EventKind::Learned { job, execution, queue, transfer, overhead, .. } => {
                    assert!(learned.insert(job), "{strategy}: job {job} is learned from once");
                    let (from, start, end) = (given[&job], started[&job], ended[&job]);
                    // One way there and one way back.
                    assert_eq!(transfer, delay + delay, "{strategy}: job {job}");
                    assert_eq!(execution, end.since(start), "{strategy}: job {job}");
                    assert_eq!(queue, start.since(from) - delay, "{strategy}: job {job}");
                    assert_eq!(overhead, Span::ZERO, "{strategy}: job {job}");
                    assert_eq!(execution + queue + transfer + overhead, event.at.since(from), "{strategy}");
                }
                _ => {}
            }
        }
        assert_eq!((ended.len(), learned.len()), (120, 120), "{strategy}");
    }
}

#[test]
fn what_waits_too_long_is_called_back_and_what_started_is_not() {
    let jobs = jobs(120);
    let mut total = 0;
    for strategy in RULES.iter().filter(|name| name.contains("timeout")) {
        let config = SimulationConfig { network: Model::constant(Span::from_secs(2)), ..config(strategy, 1) };
        let events = events(config, &jobs);
        let mut started = BTreeSet::new();
        for event in &events {
            match event.kind {
                EventKind::Started { job, .. } => drop(started.insert(job)),
                EventKind::Recalled { job, .. } => assert!(!started.contains(&job), "{strategy}"),
                _ => {}
            }
        }
        assert_eq!(started.len(), jobs.len());
        total += count(&events, |kind| matches!(kind, EventKind::Recalled { .. }));
    }
    assert!(total > 20, "{total} came back");
}

#[test]
fn a_site_never_has_more_jobs_of_a_broker_than_the_cap() {
    let jobs = jobs(150);
    for (strategy, cap) in [("opaque:round-robin,cap=1", 1), ("opaque:ag,cap=3", 3), ("opaque:mqd,cap=5", 5)]
    {
        let events = events(config(strategy, 1), &jobs);
        let (mut at, mut site) = (BTreeMap::<SiteId, usize>::new(), BTreeMap::new());
        let mut most = 0;
        for event in &events {
            match event.kind {
                EventKind::Allocated { job, to, .. } => {
                    let here = at.entry(to).or_default();
                    *here += 1;
                    most = most.max(*here);
                    site.insert(job, to);
                }
                EventKind::Completed { job, .. } => {
                    *at.get_mut(&site[&job]).expect("it was given there") -= 1
                }
                _ => {}
            }
        }
        assert_eq!(most, cap, "{strategy}");
    }
}

#[test]
fn local_users_go_past_the_broker_and_it_learns_nothing_of_their_jobs() {
    let jobs = jobs(120);
    let local_users: LocalUsers = jobs.iter().map(|job| job.spec.id).filter(|id| id.0 % 3 == 0).collect();
    for local in LocalScheduler::ALL {
        let mut config = config("opaque:ag,timeout=60", 1);
        (config.local, config.local_users) = (local, local_users.clone());
        let events = events(config, &jobs);
        assert_eq!(count(&events, |kind| matches!(kind, EventKind::Completed { .. })), 120);
        let learned = |kind: &EventKind| match kind {
            EventKind::Learned { job, .. } | EventKind::Recalled { job, .. } => Some(job.0 % 3),
            _ => None,
        };
        assert_eq!(
            count(&events, |kind| learned(kind).is_some() && matches!(kind, EventKind::Learned { .. })),
            80
        );
        assert_eq!(count(&events, |kind| learned(kind) == Some(0)), 0);
    }
}

#[test]
fn jobs_run_once_whatever_links_do() {
    let jobs = jobs(150);
    for (seed, strategy) in (1..=24).zip(RULES.iter().cycle()) {
        let mut config = config(strategy, 2);
        config.options = Options { retry: Some(Span::from_secs(40)), ..Options::default() };
        config.network = Model::constant(Span::from_secs(5));
        config.network.properties = links::Properties::unreliable(0.1, 0.1, Span::from_secs(9));
        config.seed = seed;
        let events = events(config, &jobs);
        let started: BTreeSet<JobId> = events
            .iter()
            .filter_map(|event| match event.kind {
                EventKind::Started { job, .. } => Some(job),
                _ => None,
            })
            .collect();
        assert_eq!(started.len(), jobs.len(), "{strategy}");
        assert_eq!(
            count(&events, |kind| matches!(kind, EventKind::Started { .. })),
            jobs.len(),
            "{strategy}"
        );
        assert_eq!(
            count(&events, |kind| matches!(kind, EventKind::Learned { .. })),
            jobs.len(),
            "{strategy}"
        );
    }
}

/// Links that lose nothing, and one member that is killed.
fn killed(strategy: &str, site: SiteId, at: i64, down: Option<i64>) -> Scenario {
    let crash = Fault::Crash {
        site,
        at: Time::from_secs(at),
        down: down.map(Span::from_secs),
        written_percent: 100,
        torn: None,
    };
    let healed = Some(Time::from_secs(2_000));
    Scenario { faults: vec![crash], healed, ..behind_brokers::scenario(grid(1), jobs(150), strategy, 100) }
}

fn run(scenario: &Scenario) -> Vec<Event> {
    let mut events = Vec::new();
    swarm::run_scenario(scenario, Trial::default(), &mut |event| events.push(*event))
        .unwrap_or_else(|broken| panic!("{broken}"));
    let ended: BTreeSet<JobId> = events
        .iter()
        .filter_map(|event| match event.kind {
            EventKind::Completed { job, .. } => Some(job),
            _ => None,
        })
        .collect();
    assert_eq!(ended.len(), scenario.jobs.len());
    events
}

#[test]
fn a_broker_that_is_killed_goes_on_with_what_it_had_learned() {
    let scenario = killed("opaque:ag,cap=6", SiteId(4), 300, Some(60));
    let events = run(&scenario);
    let back = events
        .iter()
        .find(|event| matches!(event.kind, EventKind::Recovered { .. }))
        .expect("it begins again")
        .at;
    let mut last = BTreeMap::new();
    let mut first = BTreeMap::new();
    for event in &events {
        if let EventKind::Learned { of, efficiency_millionths, .. } = event.kind {
            if event.at < back {
                last.insert(of, efficiency_millionths);
            } else {
                first.entry(of).or_insert(efficiency_millionths);
            }
        }
    }
    assert!(last.values().any(|&efficiency| efficiency != 0), "something was learned: {last:?}");
    // One job moves it by l = 0.3 of the way to 1 or -1, or not at all.
    for (site, first) in first {
        let before = f64::from(last.get(&site).copied().unwrap_or(0));
        let possible = [before, before + 0.3 * (1e6 - before), before + 0.3 * (-1e6 - before)];
        let is_near = possible.iter().any(|one| (one - f64::from(first)).abs() < 2.0);
        assert!(is_near, "site {site}: {before} before, {first} after");
    }
    assert_eq!(count(&events, |kind| matches!(kind, EventKind::TookOver { .. })), 0);
}

/// How long jobs wait at least before they come back doubles each time, over a crash, too; and the main phase stays.
#[test]
fn limits_that_grew_and_the_main_phase_survive_their_broker() {
    let limit = 20_i64;
    let mut after_crash = 0;
    for strategy in
        ["opaque:mqd,cap=6,timeout=20,growth=100", "opaque:mqd,cap=6,timeout=20,growth=100,clock=scheduled"]
    {
        let scenario = killed(strategy, SiteId(4), 300, Some(60));
        let requested: BTreeMap<JobId, Span> =
            scenario.jobs.iter().map(|job| (job.spec.id, job.spec.requested)).collect();
        let events = run(&scenario);
        let back = events.iter().find(|event| matches!(event.kind, EventKind::Recovered { .. }));
        let back = back.expect("it begins again").at;
        let (mut given, mut recalls) = (BTreeMap::new(), BTreeMap::<JobId, u32>::new());
        let mut given_since: BTreeMap<Time, Vec<Span>> = BTreeMap::new();
        for event in &events {
            match event.kind {
                EventKind::Allocated { job, .. } => {
                    given.insert(job, event.at);
                    if event.at > back {
                        given_since.entry(event.at).or_default().push(requested[&job]);
                    }
                }
                EventKind::Recalled { job, .. } => {
                    let times = recalls.entry(job).or_default();
                    let waited = event.at.since(given[&job]);
                    let least = Span::from_secs(limit << *times);
                    assert!(
                        waited >= least,
                        "{strategy}: job {job} came back after {waited} s, not {least} s"
                    );
                    after_crash += u32::from(event.at > back && *times > 0 && given[&job] > back);
                    *times += 1;
                }
                _ => {}
            }
        }
        // The longest first: in the first phase it would be the shortest.
        let first =
            given_since.values().find(|jobs| jobs.first() != jobs.last()).expect("it gives several at once");
        assert!(first.is_sorted_by(|one, other| one >= other), "{strategy}: {first:?}");
    }
    assert!(after_crash > 0, "none came back again after the crash");
}

/// Each rule, with what draws and what grows among them.
const ALL_RULES: [&str; 32] = [
    "opaque:round-robin,cap=3",
    "opaque:round-robin,cap=3,turn=random",
    "opaque:ag,cap=3,timeout=30",
    "opaque:ag,cap=4,tie=random,timeout=20,total-from=first,timeout-blame=slower,growth-of=site",
    "opaque:mqd,cap=3",
    "opaque:mqd,cap=3,tie=random,timeout=40,phase-end=finished,growth-of=all",
    "opaque:mqd,cap=4,group-over=all,timeout=25,clock=scheduled",
    "opaque:met,cap=3",
    "opaque:mct,cap=3,timeout=30",
    "opaque:min-min,cap=3",
    "opaque:max-min,cap=3",
    "opaque:sufferage,cap=3,timeout=50",
    "opaque:xsufferage,cap=3",
    "opaque:qsufferage,cap=3",
    "opaque:least-loaded,cap=3",
    "opaque:greedy-cost,cap=3",
    "opaque:online-cost,cap=3",
    "opaque:online-cost,cap=6,timeout=20",
    "opaque:agents,cap=3",
    "opaque:agents,cap=4,tie=random,exploit=0.5,timeout=30",
    "opaque:work-queue,cap=3",
    "opaque:wqr,cap=3,copies=1",
    "opaque:mqd-dup,cap=3,copies=1,timeout=30",
    "opaque:storage-affinity,cap=3,copies=1",
    "opaque:cost,cap=6,deadline=100000,timeout=20",
    "opaque:time,cap=6,deadline=100000,timeout=20",
    "opaque:cost-time,cap=3,deadline=100000,timeout=60",
    "opaque:data-local,cap=3",
    "opaque:data-any,cap=3",
    "opaque:data-adaptive,cap=6,timeout=30",
    "opaque:smoothing,cap=3,timeout=30",
    "opaque:linucb,cap=3,tie=random,timeout=30",
];

/// Runs of each.
const RUNS: u64 = 4;

/// Messages need no time, so that a broker that restarts at once knows what sites have before anything else happens.
fn struck(strategy: &str, seed: u64, at: &[Time]) -> Scenario {
    let site = SiteId(4);
    let crash =
        |&at: &Time| Fault::Crash { site, at, down: Some(Span::ZERO), written_percent: 100, torn: None };
    let plain = behind_brokers::scenario(grid(1), jobs(80), strategy, 100);
    let mut jobs = plain.jobs.clone();
    for (number, job) in (0_u64..).zip(&mut jobs) {
        job.spec.labels.user = (number * 7 % 5) as i32;
    }
    Scenario {
        terms: Terms {
            options: Options { heartbeat: None, lease: None, ..plain.options },
            seed,
            ..plain.terms
        },
        network: Model::constant(Span::ZERO),
        faults: at.iter().map(crash).collect(),
        jobs,
        ..plain
    }
}

/// What a broker decides and learns, and what comes of it.
fn decisions(scenario: &Scenario, trial: Trial) -> Vec<Event> {
    let mut events = Vec::new();
    let done = swarm::run_scenario(scenario, trial, &mut |event| events.push(*event));
    done.unwrap_or_else(|broken| panic!("{}, {:?}: {broken}", scenario.strategy, scenario.faults));
    events.retain(|event| {
        matches!(
            event.kind,
            EventKind::Allocated { .. }
                | EventKind::Started { .. }
                | EventKind::Completed { .. }
                | EventKind::Recalled { .. }
                | EventKind::Learned { .. }
        )
    });
    assert_eq!(count(&events, |kind| matches!(kind, EventKind::Completed { .. })), scenario.jobs.len());
    events
}

/// Logs by rule and seed.
type Logs = BTreeMap<(String, u64), Arc<Vec<Event>>>;

/// What is decided without a crash: two tests hold others against it.
static WHOLE: LazyLock<Mutex<Logs>> = LazyLock::new(Mutex::default);

fn undisturbed(strategy: &str, seed: u64) -> Arc<Vec<Event>> {
    let mut kept = WHOLE.lock().expect("nobody panics with it");
    kept.entry((strategy.to_string(), seed))
        .or_insert_with(|| Arc::new(decisions(&struck(strategy, seed, &[]), Trial::default())))
        .clone()
}

/// The seeds that are met, of so many, with which a broker decides otherwise after crashes.
fn differing(strategy: &str, trial: Trial, runs: u64) -> Vec<u64> {
    let differs = |seed: &u64| {
        let whole = undisturbed(strategy, *seed);
        let end = whole.last().expect("something happens").at.as_micros();
        // Now and then between two events, else as something happens, and three times in each run.
        let mut at: Vec<Time> = (1..=3_u64)
            .map(|number| {
                let drawn = (*seed * 3 + number).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16;
                match drawn % 3 {
                    0 => Time::from_micros((drawn % end.unsigned_abs()) as i64),
                    _ => whole[(drawn % whole.len() as u64) as usize].at,
                }
            })
            .collect();
        at.sort_unstable();
        decisions(&struck(strategy, *seed, &at), trial) != *whole
    };
    met((1..=runs).filter(differs))
}

#[test]
fn a_broker_that_is_killed_decides_as_one_that_was_not_whatever_its_rule() {
    let known: BTreeSet<&str> =
        ALL_RULES.iter().filter_map(|name| name["opaque:".len()..].split(',').next()).collect();
    let all: BTreeSet<&str> =
        scheduler::strategy::opaque::DispatchRule::ALL.iter().map(|rule| rule.name()).collect();
    assert_eq!(known, all, "each rule is tried");
    let wrong: Vec<_> = ALL_RULES
        .iter()
        .map(|strategy| (strategy, differing(strategy, Trial::default(), RUNS)))
        .filter(|(_, seeds)| !seeds.is_empty())
        .collect();
    assert!(wrong.is_empty(), "decide otherwise, by these seeds: {wrong:?}");
}

/// What rules know decides, and those that know nothing go on as before. Data-local and data-any count what data-adaptive goes by.
#[test]
fn mutant_rules_that_forget_what_they_knew_decide_otherwise() {
    use protocol::mutant::Mutant;

    let trial = Trial { mutant: Some(Mutant::RuleForgotten), deep: true, ..Trial::default() };
    let mut found = BTreeSet::new();
    for strategy in ALL_RULES {
        let rule = strategy["opaque:".len()..].split(',').next().expect("a rule has a name");
        let seeds = differing(strategy, trial, RUNS);
        println!("{strategy}: {} of {RUNS} differ", seeds.len());
        if !seeds.is_empty() {
            found.insert(rule);
        }
    }
    let expected = [
        "round-robin",
        "ag",
        "mqd",
        "online-cost",
        "agents",
        "mqd-dup",
        "cost",
        "time",
        "cost-time",
        "data-adaptive",
        "smoothing",
        "linucb",
    ];
    assert_eq!(found, expected.into());
}

#[test]
fn jobs_of_a_site_that_dies_come_back_to_their_broker_which_may_blame_it() {
    for (strategy, is_blamed) in [("opaque:ag,cap=6", false), ("opaque:ag,cap=6,failure-blame=slower", true)]
    {
        let dead = SiteId(3);
        let events = run(&killed(strategy, dead, 300, None));
        let by_broker = events.iter().filter(|event| event.site == SiteId(4));
        let took = by_broker.filter(|event| matches!(event.kind, EventKind::TookOver { .. })).count();
        assert!(took > 0, "{strategy}: its broker is responsible");
        let after = events.iter().filter(|event| {
            event.at > Time::from_secs(420)
                && matches!(event.kind, EventKind::Allocated { to, .. } if to == dead)
        });
        assert_eq!(after.count(), 0, "{strategy}: nobody is sent there (blamed: {is_blamed})");
    }
}

#[test]
fn jobs_of_a_site_that_is_killed_and_begins_again_are_executed_there() {
    let events = run(&killed("opaque:mqd,cap=6,timeout=200", SiteId(3), 300, Some(30)));
    assert_eq!(count(&events, |kind| matches!(kind, EventKind::TookOver { .. })), 0);
    assert!(count(&events, |kind| matches!(kind, EventKind::Interrupted { .. })) > 0);
}

/// Three jobs of two processors, one for each site, and one that only the widest holds. A broker gives a site one at a time.
fn one_for_each(faults: Vec<Fault>) -> Scenario {
    let job = |(id, submit, processors, run_time): (u64, i64, u32, i64)| {
        let run_time = Span::from_secs(run_time);
        let labels = Labels::UNKNOWN;
        let (id, submit, origin, requested) = (JobId(id), Time::from_secs(submit), SiteId(1), run_time);
        let spec = JobSpec { id, submit, processors, requested, labels, origin, payload: 0 };
        TimedJob { spec, run_time }
    };
    let jobs = [(1, 0, 2, 250), (2, 0, 2, 250), (3, 0, 2, 120), (4, 500, 8, 50)].map(job).to_vec();
    let healed = Some(Time::from_secs(700));
    let scenario = behind_brokers::scenario(grid(1), jobs, "opaque:round-robin,cap=1", 100);
    Scenario { faults, healed, ..scenario }
}

/// The broker takes the third job over. As the site restarts, it says that it has that, and drops it only then.
#[test]
fn what_a_site_drops_that_stood_still_is_counted_there_no_more() {
    let (site, at) = (SiteId(3), Time::from_secs(410));
    let events = run(&one_for_each(vec![
        Fault::Pause { site, at: Time::from_secs(100), lasts: Span::from_secs(310) },
        Fault::Crash { site, at, down: Some(Span::from_secs(5)), written_percent: 100, torn: None },
    ]));
    let is_dropped =
        |event: &&Event| event.site == site && matches!(event.kind, EventKind::Superseded { .. });
    let dropped = events.iter().find(is_dropped).expect("the copy is dropped").at;
    let ended = |kind: &EventKind| matches!(kind, EventKind::Completed { job: JobId(3), .. });
    let ended = events.iter().find(|event| ended(&event.kind)).expect("it is executed elsewhere");
    assert!(ended.site != site && ended.at < dropped && dropped < Time::from_secs(500));
}

/// The site forgets that the third job ended, as it believes its broker gone, which hears of it before it looks who is.
#[test]
fn what_ended_at_a_site_that_forgot_it_for_its_broker_is_counted_there_no_more() {
    let (site, broker) = (SiteId(3), SiteId(4));
    let (at, until) = (Time::from_secs(100), Time::from_secs(300));
    let between = Between::Groups(vec![BTreeSet::from([site]), BTreeSet::from([broker])]);
    let events = run(&one_for_each(vec![
        Fault::Cut(Cut { at, until, between }),
        Fault::Pause { site: broker, at: Time::from_secs(110), lasts: Span::from_secs(290) },
    ]));
    let says = |by: SiteId, of: SiteId| {
        let is_it = |event: &&Event| event.site == by && event.kind == EventKind::Gone { peer: of };
        events.iter().filter(is_it).count()
    };
    assert_eq!((says(site, broker), says(broker, site)), (1, 0));
    let learned = |kind: &EventKind| matches!(kind, EventKind::Learned { job: JobId(3), .. });
    assert_eq!(count(&events, learned), 0, "its end was forgotten");
}

#[test]
fn what_a_swarm_strikes_them_with_loses_no_job_and_runs_none_twice() {
    let mut failed = Vec::new();
    let trial = Trial { parts: Parts::With(Part::Opaque), ..Trial::default() };
    // With seeds whose brokers learned twice from a job.
    for seed in (1..=400).chain([650, 903, 1161, 1255, 1267, 1328, 1657, 2303, 2759]) {
        if let Err(broken) = swarm::run(seed, &Reduction::default(), trial) {
            failed.push(format!("seed {seed}: {broken}"));
        }
    }
    assert!(failed.is_empty(), "{} {failed:#?}", failed.len());
}
