//! With all delays zero, brokers give each job to the site that the ideal reference gives it to, job for job: over random
//! grids, every rule and every reading of it, and whole real logs.

use std::sync::Arc;

use analysis::Decisions;
use links::Model;
use proptest::prelude::*;
use protocol::{BrokerOptions, Options, Pending, Reporting};
use scheduler::ideal::Brokered;
use scheduler::strategy::{
    ArrivingLoad, Completion, Count, Cut, Fraction, IdleSince, Overrun, OwnWait, Plan, Population,
    RunningWork,
};
use scheduler::{
    Broker, BrokerRule, Event, EventKind, Grid, JobId, JobSpec, Labels, LocalScheduler, Pass, SiteId, Span,
    Strategy as Scheduling, Time, TimedJob,
};
use simulator::reference;
use simulator::{Checks, Simulation, SimulationConfig};

type Starts = Vec<(JobId, Time, SiteId)>;

fn starts_of(event: &Event, starts: &mut Starts) {
    if let EventKind::Started { job, .. } = event.kind {
        starts.push((job, event.at, event.site));
    }
}

fn ideal(grid: &Grid, rules: Broker, local: LocalScheduler, jobs: &[TimedJob]) -> Starts {
    let mut starts = Vec::new();
    let mut policy = Brokered::new(grid, rules, local, Pass::Batch, 1);
    let done = reference::run(&mut policy, jobs, grid, Pass::Batch, &mut |event: Event| {
        starts_of(&event, &mut starts)
    });
    done.expect("the workload is sound");
    starts.sort_unstable();
    starts
}

fn config(grid: &Arc<Grid>, rules: Broker, local: LocalScheduler, options: Options) -> SimulationConfig {
    SimulationConfig { local, options, ..SimulationConfig::new(grid.clone(), Scheduling::Broker(rules)) }
}

fn protocol(config: SimulationConfig, jobs: &[TimedJob]) -> Starts {
    let mut starts = Vec::new();
    Simulation::new(config, jobs)
        .run(&mut |event: &Event| starts_of(event, &mut starts))
        .unwrap_or_else(|violation| panic!("{violation}"));
    starts.sort_unstable();
    starts
}

fn one_of<T: Copy + std::fmt::Debug + 'static>(all: &'static [T]) -> impl Strategy<Value = T> {
    prop::sample::select(all)
}

fn rules() -> impl Strategy<Value = Broker> {
    let a = one_of(&[(1, 1), (1, 2), (1, 4), (3, 4), (1, 10)]);
    let loads = (one_of(Count::ALL), one_of(ArrivingLoad::ALL), one_of(RunningWork::ALL));
    let plans =
        (one_of(Completion::ALL), one_of(IdleSince::ALL), one_of(OwnWait::ALL), one_of(Population::ALL));
    let modes = (prop_oneof![3 => Just(Plan::Resynchronised), 1 => one_of(Plan::ALL)], one_of(Overrun::ALL));
    (one_of(BrokerRule::BUILT_IN), a, one_of(Cut::ALL), loads, plans, modes).prop_map(
        |(rule, (part, whole), cut, loads, plans, (plan, overrun))| Broker {
            admissible: Fraction::new(part, whole).expect("a fraction"),
            follows: part == 3,
            cut,
            count: loads.0,
            arriving: loads.1,
            running: loads.2,
            completion: plans.0,
            idle: plans.1,
            own_wait: plans.2,
            population: plans.3,
            plan,
            overrun,
            ..Broker::new(rule)
        },
    )
}

/// Sites, up to three brokers, and jobs of which some run past their estimates.
fn workload() -> impl Strategy<Value = (Arc<Grid>, Vec<TimedJob>)> {
    let index = any::<prop::sample::Index>;
    let job = (0i64..25, (index(), index()), 0u32..9, 0i64..12, 0i64..4);
    let sizes = prop::collection::vec(1u32..17, 1..=7);
    (sizes, 1usize..4, any::<bool>(), prop::collection::vec(job, 1..=40)).prop_map(
        |(sizes, brokers, online, jobs)| {
            let names = sizes.iter().enumerate().map(|(place, &size)| (format!("site{}", place + 1), size));
            let brokers = (1..=brokers).map(|number| (format!("broker{number}"), None));
            let grid = Arc::new(Grid::with_brokers(names, brokers).expect("names differ"));
            let mut jobs: Vec<TimedJob> = jobs
                .into_iter()
                .enumerate()
                .map(|(index, (submit, (size, origin), less, run, factor))| TimedJob {
                    spec: JobSpec {
                        id: JobId(index as u64 + 1),
                        submit: Time::from_secs(if online { submit } else { 0 }),
                        processors: sizes[size.index(sizes.len())].saturating_sub(less).max(1),
                        requested: Span::from_secs((run * factor).max(1)),
                        labels: Labels::UNKNOWN,
                        origin: SiteId::from_index(origin.index(sizes.len())),
                        payload: 0,
                    },
                    run_time: Span::from_secs(run),
                })
                .collect();
            jobs.sort_by_key(|job| job.spec.key());
            (grid, jobs)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn brokers_without_delay_equal_the_ideal(
        (grid, jobs) in workload(),
        rules in rules(),
        local in one_of(&LocalScheduler::ALL),
        retries in any::<bool>(),
    ) {
        let retry = retries.then(|| Span::from_secs(30));
        let options = Options { retry, message_events: false, ..Options::default() };
        let config = SimulationConfig { checks: Checks::Full, ..config(&grid, rules, local, options) };
        prop_assert_eq!(protocol(config, &jobs), ideal(&grid, rules, local, &jobs));
    }
}

/// Knowing late, or not counting what was sent, leads to other schedules: the equality above can fail.
#[test]
fn what_a_broker_does_not_know_shows() {
    let sizes = [4, 8, 8, 16];
    let names = sizes.iter().enumerate().map(|(place, &size)| (format!("site{}", place + 1), size));
    let grid = Arc::new(Grid::with_brokers(names, [("broker".to_string(), None)]).expect("names differ"));
    let jobs = steady_jobs(400, 11);
    let late = BrokerOptions { report: Reporting::Every(Span::from_secs(300)), ..BrokerOptions::default() };
    let blind = BrokerOptions { pending: Pending::Ignore, ..BrokerOptions::default() };
    let probing = BrokerOptions { report: Reporting::Probe(2), ..BrokerOptions::default() };
    let all = BrokerOptions { report: Reporting::Probe(4), ..BrokerOptions::default() };
    for rule in
        [BrokerRule::ParallelLoad, BrokerRule::LowerBound, BrokerRule::CompletionTime, BrokerRule::StartTime]
    {
        let (rules, local) = (Broker::new(rule), LocalScheduler::Easy);
        let expected = ideal(&grid, rules, local, &jobs);
        let run =
            |broker| protocol(config(&grid, rules, local, Options { broker, ..Options::default() }), &jobs);
        assert_eq!(run(BrokerOptions::default()), expected);
        assert_eq!(run(all), expected, "who asks all knows all");
        for (name, options) in [("late", late), ("blind", blind), ("probing", probing)] {
            assert_ne!(run(options), expected, "{name} {rule:?}");
        }
    }
}

/// What is said of old views: nothing is amiss where none is old, and the true state decides as the protocol does; with
/// reports that are late it decides otherwise, and jobs lose by it.
#[test]
fn decisions_by_the_true_state_are_those_of_a_broker_without_delay() {
    let sizes = [4, 8, 8, 16];
    let names = sizes.iter().enumerate().map(|(place, &size)| (format!("site{}", place + 1), size));
    let brokers = ["one", "two"].map(|name| (name.to_string(), None));
    let grid = Arc::new(Grid::with_brokers(names, brokers).expect("names differ"));
    let jobs = steady_jobs(400, 11);
    let cost = |rule, local, report| {
        let strategy = Scheduling::Broker(Broker::new(rule));
        let broker = BrokerOptions { report, ..BrokerOptions::default() };
        let config = config(&grid, Broker::new(rule), local, Options { broker, ..Options::default() });
        let mut decisions = Decisions::new(&grid, &strategy, local, &jobs, 1);
        Simulation::new(config, &jobs)
            .run(&mut |event: &Event| decisions.observe(event))
            .unwrap_or_else(|violation| panic!("{violation}"));
        decisions.finish().expect("brokers decided")
    };
    for &rule in BrokerRule::BUILT_IN {
        let by_state = !matches!(rule, BrokerRule::Random | BrokerRule::RoundRobin);
        for local in LocalScheduler::ALL {
            let now = cost(rule, local, Reporting::Change);
            assert_eq!((now.decisions, now.compared), (400, if by_state { 400 } else { 0 }), "{rule:?}");
            assert_eq!(
                (now.otherwise_share, now.stale_share, now.lost_max_s),
                (0.0, 0.0, 0.0),
                "{rule:?} {local:?}"
            );
        }
        if by_state {
            let late = cost(rule, LocalScheduler::Easy, Reporting::Every(Span::from_secs(600)));
            assert!(late.otherwise_share > 0.05 && late.stale_share > 0.5, "{rule:?}: {late:?}");
            assert!(late.unseen_mean > 1.0 && late.view_age_s.mean > 100.0, "{rule:?}: {late:?}");
        }
    }
}

fn steady_jobs(count: u64, widest: u64) -> Vec<TimedJob> {
    let job = |number: u64| {
        let run_time = Span::from_secs(20 + (number * 7919 % 97) as i64);
        let spec = JobSpec {
            id: JobId(number + 1),
            submit: Time::from_secs((number / 3 * 7) as i64),
            processors: 1 + (number * 31 % widest) as u32,
            requested: run_time.saturating_mul(2),
            labels: Labels::UNKNOWN,
            origin: SiteId(1 + (number % 3) as u32),
            payload: 0,
        };
        TimedJob { spec, run_time }
    };
    (0..count).map(job).collect()
}

/// Messages that take time, are lost, copied and overtake each other: every job runs once, wherever.
#[test]
fn jobs_run_once_whatever_links_do() {
    let sizes = [4, 8, 16];
    let names = sizes.iter().enumerate().map(|(place, &size)| (format!("site{}", place + 1), size));
    let grid = Arc::new(
        Grid::with_brokers(names, ["one", "two"].map(|name| (name.to_string(), None))).expect("names differ"),
    );
    let jobs: Vec<TimedJob> = (0..300_u64)
        .map(|number| {
            let run_time = Span::from_secs(1 + (number * 7919 % 97) as i64);
            let spec = JobSpec {
                id: JobId(number + 1),
                submit: Time::from_secs((number * 2) as i64),
                processors: 1 + (number * 31 % 16) as u32,
                requested: run_time.saturating_mul(2),
                labels: Labels::UNKNOWN,
                origin: SiteId(1 + (number % 3) as u32),
                payload: 0,
            };
            TimedJob { spec, run_time }
        })
        .collect();
    let reports = [Reporting::Change, Reporting::Every(Span::from_secs(45)), Reporting::Probe(2)];
    for (seed, report) in (1..=30).flat_map(|seed| reports.map(|report| (seed, report))) {
        let rules = Broker::new(BrokerRule::BUILT_IN[seed as usize % BrokerRule::BUILT_IN.len()]);
        let options = Options {
            retry: Some(Span::from_secs(40)),
            broker: BrokerOptions { report, ..BrokerOptions::default() },
            ..Options::default()
        };
        let mut config = config(&grid, rules, LocalScheduler::Easy, options);
        config.network = Model::constant(Span::from_secs(5));
        config.network.properties = links::Properties::unreliable(0.1, 0.1, Span::from_secs(9));
        config.seed = seed;
        config.checks = Checks::Full;
        assert_eq!(protocol(config, &jobs).len(), jobs.len());
    }
}
