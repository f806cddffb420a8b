//! With all delays zero, brokers give each job to the site that the ideal reference gives it to, job for job: over random
//! grids, every rule and every reading of it, and whole real logs.

use std::collections::BTreeMap;
use std::sync::Arc;

use analysis::Decisions;
use brokers::ideal::Brokered;
use links::Model;
use predict::{Correction, Forecast};
use proptest::prelude::*;
use protocol::{BrokerOptions, Options, Pending, Reporting, Terms};
use scheduler::local::LocalGrid;
use scheduler::sharing::local_load::{Layout, Redraws, Spread, Usage};
use scheduler::sharing::{Cluster, Fairness, Node, Platform};
use scheduler::strategy::{
    ArrivingLoad, Batches, Chance, ClusterFilter, ClusterSelection, Coallocation, Completion, Count, Cut,
    Fraction, Goal, IdleSince, JobSelection, MetaScheduler, Overrun, OwnWait, Phases, Plan, Population,
    QueueLimit, RunningWork, SharingEstimator, UpperOrder, Weighting, Weights,
};
use scheduler::{
    Application, Broker, BrokerRule, Event, EventKind, Grid, JobId, JobSpec, Labels, LocalScheduler,
    LocalUsers, Pass, SharedNodes, SiteId, Span, Strategy as Scheduling, StrategySpec, Time, TimedJob,
};
use simulator::reference;
use simulator::{Checks, Simulation, SimulationConfig};
use stealgrid_tests::Steady;

use crate::runs::drawn;

/// Jobs of the users of three sites.
const STEADY: Steady =
    Steady { together: 3, every: Span::from_secs(7), shortest: Span::from_secs(20), widest: 11, sites: 3 };

type Starts = Vec<(JobId, Time, SiteId)>;

fn starts_of(event: &Event, starts: &mut Starts) {
    if let EventKind::Started { job, .. } = event.kind {
        starts.push((job, event.at, event.site));
    }
}

/// What a site says of its processors: who, when, where, what, how many, and of which site the job is.
type Ran = (JobId, Time, SiteId, u8, u32, SiteId);

fn ran(event: &Event, all: &mut Vec<Ran>) {
    let Event { at, site, kind } = *event;
    all.extend(match kind {
        EventKind::Started { job, processors, .. } => Some((job, at, site, 0, processors, site)),
        EventKind::PartStarted { job, processors, of } => Some((job, at, site, 1, processors, of)),
        EventKind::Completed { job, processors } => Some((job, at, site, 2, processors, site)),
        EventKind::PartCompleted { job, processors, of } => Some((job, at, site, 3, processors, of)),
        _ => None,
    });
}

fn ideal(grid: &Grid, rules: Broker, local: LocalScheduler, jobs: &[TimedJob]) -> Starts {
    ideal_with(Brokered::new(grid, rules, local, Pass::Batch, 1), grid, jobs)
}

fn ideal_with(mut policy: Brokered, grid: &Grid, jobs: &[TimedJob]) -> Starts {
    let mut starts = Vec::new();
    let done = reference::run(&mut policy, jobs, grid, Pass::Batch, &mut |event: Event| {
        starts_of(&event, &mut starts)
    });
    done.expect("the workload is sound");
    starts.sort_unstable();
    starts
}

/// Nobody predicts, half of the time; else predictors that learn little and much, with corrections.
pub(crate) fn forecasts() -> impl Strategy<Value = Option<Forecast>> {
    let predictor =
        prop::sample::select(vec!["avg2", "last:k=3,by=mean", "last:k=1,by=ratio", "template:k=2"]);
    let forecast = (predictor, one_of(&Correction::ALL)).prop_map(|(predictor, correction)| Forecast {
        predictor: predictor.parse().expect("a predictor"),
        correction,
    });
    prop_oneof![Just(None), forecast.prop_map(Some)]
}

fn config(grid: &Arc<Grid>, rules: Broker, local: LocalScheduler, options: Options) -> SimulationConfig {
    let terms = Terms { local, options, ..Terms::new(grid.clone(), Scheduling::Broker(rules)) };
    SimulationConfig::on(terms)
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

/// Sites of these sizes behind so many brokers that are beside no site.
fn behind_brokers(sizes: &[u32], brokers: usize) -> Arc<Grid> {
    let sites = sizes.iter().zip(1..).map(|(&size, number)| (format!("site{number}"), size));
    let brokers = (1..=brokers).map(|number| (format!("broker{number}"), None));
    Arc::new(Grid::with_brokers(sites, brokers).expect("names differ"))
}

/// Sites, up to three brokers, jobs of which some run past their estimates, and those of local users: often nobody's.
fn workload() -> impl Strategy<Value = (Arc<Grid>, Vec<TimedJob>, LocalUsers)> {
    let local = prop_oneof![2 => Just(u64::MAX), 1 => 1u64..5];
    (drawn::workload(40, 0..4, any::<bool>()), 1usize..4, local).prop_map(
        |((sizes, mut jobs), brokers, every)| {
            // Three users, so that something is learned of each.
            jobs.iter_mut().for_each(|job| job.spec.labels.user = (job.spec.id.0 % 3) as i32);
            let grid = behind_brokers(&sizes, brokers);
            let local = jobs.iter().map(|job| job.spec.id).filter(|id| id.0.is_multiple_of(every)).collect();
            (grid, jobs, local)
        },
    )
}

/// The schedule of the protocol without delay, and that of the ideal.
fn both(
    (grid, jobs, local_users): (Arc<Grid>, Vec<TimedJob>, LocalUsers),
    rules: Broker,
    local: LocalScheduler,
    retries: bool,
    forecast: Option<Forecast>,
) -> (Starts, Starts) {
    let retry = retries.then(|| Span::from_secs(30));
    let options = Options { retry, message_events: false, ..Options::default() };
    let mut config = SimulationConfig {
        checks: Checks::Full,
        local_users: local_users.clone(),
        ..config(&grid, rules, local, options)
    };
    config.terms.forecast = forecast;
    let mut policy = Brokered::new(&grid, rules, local, Pass::Batch, 1).with_local_users(local_users);
    if let Some(forecast) = forecast {
        policy = policy.with_estimators(local, Pass::Batch, || forecast.estimator());
    }
    (protocol(config, &jobs), ideal_with(policy, &grid, &jobs))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn brokers_without_delay_equal_the_ideal(
        (grid, jobs, local_users) in workload(),
        rules in rules(),
        local in one_of(&LocalScheduler::ALL),
        retries in any::<bool>(),
        forecast in forecasts(),
    ) {
        let (found, expected) = both((grid, jobs, local_users), rules, local, retries, forecast);
        prop_assert_eq!(found, expected);
    }
}

/// Small batches and searches: what is tested is when they are planned, by what, and that rows are kept to.
fn genetic() -> impl Strategy<Value = Broker> {
    let window = prop_oneof![Just(0), Just(1), Just(7), Just(60), Just(10_000)];
    (one_of(Goal::ALL), 1u32..12, window, 2u32..5, 0u32..4, 2u32..20).prop_map(
        |(goal, jobs, window, population, generations, evaluations)| Broker {
            batches: Batches {
                jobs,
                window: Span::from_secs(window),
                goal,
                population,
                generations,
                evaluations,
                ..Batches::default()
            },
            ..Broker::new(BrokerRule::Genetic)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn planned_batches_without_delay_equal_the_ideal(
        (grid, jobs, local_users) in workload(),
        rules in genetic(),
        local in one_of(&LocalScheduler::ALL),
        retries in any::<bool>(),
        forecast in forecasts(),
    ) {
        let (found, expected) = both((grid, jobs, local_users), rules, local, retries, forecast);
        prop_assert_eq!(found, expected);
    }
}

/// Every reading of the upper level of M-CISNE.
fn upper() -> impl Strategy<Value = Broker> {
    let limit = prop_oneof![
        (1u32..4).prop_map(QueueLimit::Jobs),
        Just(QueueLimit::None),
        Just(QueueLimit::Rates),
        Just(QueueLimit::Saturation),
    ];
    let weight = prop::sample::select(vec![0, 300_000, 1_000_000]);
    let choice = (one_of(ClusterSelection::ALL), weight, one_of(Weighting::ALL));
    let sight = (one_of(ClusterFilter::ALL), one_of(SharingEstimator::ALL));
    (choice, sight, one_of(UpperOrder::ALL), one_of(JobSelection::ALL), limit, one_of(Overrun::ALL)).prop_map(
        |((select, weight, weighting), (filter, estimator), order, jobs, limit, overrun)| {
            let weights = Weights::all(Chance::millionths(weight).expect("at most one"));
            let meta = MetaScheduler {
                select,
                weights,
                weighting,
                order,
                jobs,
                limit,
                filter,
                estimator,
                ..MetaScheduler::default()
            };
            Broker { meta, overrun, ..Broker::new(BrokerRule::Mcisne) }
        },
    )
}

proptest! {
    // Drawn anew each time.
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn an_upper_queue_without_delay_equals_the_ideal(
        (grid, jobs, local_users) in workload(),
        rules in upper(),
        local in one_of(&LocalScheduler::ALL),
        retries in any::<bool>(),
        forecast in forecasts(),
    ) {
        let (found, expected) = both((grid, jobs, local_users), rules, local, retries, forecast);
        prop_assert_eq!(found, expected);
    }

    /// Who executes what from when to when, in parts too. Not under conservative backfilling, where rare drawn runs differ.
    #[test]
    fn an_upper_queue_that_spreads_jobs_without_delay_equals_the_ideal(
        (grid, jobs, local_users) in workload(),
        (by, phases) in (one_of(&Coallocation::ALL[1..]), one_of(Phases::ALL)),
        mut rules in upper(),
        local in one_of(&[LocalScheduler::Fcfs, LocalScheduler::List, LocalScheduler::Easy, LocalScheduler::EasyBestFit]),
        retries in any::<bool>(),
        stretch in 1u32..4,
        forecast in forecasts(),
    ) {
        rules.meta.coallocation = by;
        rules.meta.phases = phases;
        let spread = Scheduling::Broker(rules).spread(grid.widths());
        let grid = Arc::new((*grid).clone().with_spread(spread));
        // Some are wider than any site.
        let widened = |job: TimedJob| {
            let processors = (job.spec.processors * stretch).min(grid.widest_job());
            let is_wide = job.spec.id.0.is_multiple_of(2);
            TimedJob { spec: JobSpec { processors: if is_wide { processors } else { job.spec.processors }, ..job.spec }, ..job }
        };
        let jobs: Vec<TimedJob> = jobs.into_iter().map(widened).collect();
        let options = Options { retry: retries.then(|| Span::from_secs(30)), message_events: false, ..Options::default() };
        let mut config = SimulationConfig {
            checks: Checks::Full,
            local_users: local_users.clone(),
            ..config(&grid, rules, local, options)
        };
        config.terms.forecast = forecast;
        let mut found = Vec::new();
        Simulation::new(config, &jobs)
            .run(&mut |event: &Event| ran(event, &mut found))
            .unwrap_or_else(|violation| panic!("{violation}"));
        let mut policy = Brokered::new(&grid, rules, local, Pass::Batch, 1).with_local_users(local_users);
        if let Some(forecast) = forecast {
            policy = policy.with_estimators(local, Pass::Batch, || forecast.estimator());
        }
        let mut expected = Vec::new();
        let done = reference::run(&mut policy, &jobs, &grid, Pass::Batch, &mut |event| ran(&event, &mut expected));
        done.expect("the workload is sound");
        found.sort_unstable();
        expected.sort_unstable();
        prop_assert_eq!(found, expected);
    }

    /// Small nodes that are shared, with users of their own who come and go.
    #[test]
    fn an_upper_queue_before_shared_nodes_without_delay_equals_the_ideal(
        (grid, jobs, local_users) in workload(),
        rules in prop_oneof![upper(), Just(Broker::new(BrokerRule::StartTime)), Just(Broker::new(BrokerRule::ParallelLoad))],
        local in one_of(&[LocalScheduler::Fcfs, LocalScheduler::List, LocalScheduler::Easy]),
        retries in any::<bool>(),
        mpl in 1u32..4,
        seed in any::<u64>(),
        forecast in forecasts(),
    ) {
        let (grid, jobs) = shared(&grid, &jobs, mpl, seed, true);
        let (found, expected) = both((grid, jobs, local_users), rules, local, retries, forecast);
        prop_assert_eq!(found, expected);
    }

    /// The same without brokers: what a site predicts of jobs on its nodes, learns of them and corrects.
    #[test]
    fn sites_with_shared_nodes_that_predict_equal_the_ideal(
        (grid, jobs, _) in workload(),
        local in one_of(&[LocalScheduler::Fcfs, LocalScheduler::List, LocalScheduler::Easy]),
        mpl in 1u32..4,
        seed in any::<u64>(),
        forecast in forecasts(),
    ) {
        let (grid, jobs) = shared(&grid, &jobs, mpl, seed, true);
        let terms = Terms { local, forecast, ..Terms::new(grid.clone(), Scheduling::Local) };
        let found = protocol(SimulationConfig { checks: Checks::Full, ..SimulationConfig::on(terms) }, &jobs);
        let mut policy = LocalGrid::new((*grid).clone(), local, Pass::Batch);
        if let Some(forecast) = forecast {
            policy = policy.with_estimators(|| forecast.estimator());
        }
        let mut expected = Vec::new();
        reference::run(&mut policy, &jobs, &grid, Pass::Batch, &mut |event| starts_of(&event, &mut expected))
            .expect("the workload is sound");
        expected.sort_unstable();
        prop_assert_eq!(found, expected);
    }
}

/// Nodes in place of the processors of a grid, with local users who may move, and memory for jobs.
pub(crate) fn shared(
    grid: &Grid,
    jobs: &[TimedJob],
    mpl: u32,
    seed: u64,
    moves: bool,
) -> (Arc<Grid>, Vec<TimedJob>) {
    let sites: Vec<(String, u32)> =
        grid.machines().map(|site| (site.name.clone(), site.processors * mpl)).collect();
    let brokers = grid.sites()[sites.len()..].iter().map(|site| (site.name.clone(), site.beside));
    let applications = [
        (0, Application { computing: 0.5, bandwidth: 60.0 }),
        (1, Application { computing: 0.9, bandwidth: 10.0 }),
    ];
    let applications: Arc<BTreeMap<i32, Application>> = Arc::new(applications.into_iter().collect());
    let clusters: Vec<Option<Arc<SharedNodes>>> = grid
        .machines()
        .map(|site| {
            let node =
                |number: u32| Node { power: 1.0 / f64::from(1 + number % 2), memory: 1000, link: 100.0, mpl };
            let nodes: Vec<Node> = (0..site.processors).map(node).collect();
            let spread = Spread {
                usage: Usage::new(0.2, 0.3, 5.0).expect("a usage"),
                share: 0.4,
                layout: Layout::Uniform,
                redraws: moves.then(|| Redraws { every: Span::from_secs(20), until: Time::from_secs(300) }),
            };
            let local = spread.draw(&[nodes.len()], seed.wrapping_add(u64::from(site.id.0)));
            let platform = Platform::new(&[Cluster { nodes, uplink: 100.0 }]).expect("a cluster");
            let platform = Arc::new(platform.with_local(local).expect("loads"));
            Some(Arc::new(SharedNodes {
                platform,
                fairness: Fairness::Proportional,
                applications: Arc::clone(&applications),
            }))
        })
        .collect();
    let joined = Grid::with_brokers(sites, brokers).expect("names differ");
    let described = |job: &TimedJob| {
        let labels = Labels {
            executable: (job.spec.id.0 % 3) as i32,
            memory: [-1, 300, 650][job.spec.id.0 as usize % 3],
            ..job.spec.labels
        };
        TimedJob { spec: JobSpec { labels, ..job.spec }, ..*job }
    };
    (Arc::new(joined.with_clusters(clusters).expect("widths ascend")), jobs.iter().map(described).collect())
}

/// Two clusters of two nodes, of which only the second has the memory of every second job.
#[test]
fn an_upper_queue_sends_a_job_only_to_a_cluster_with_its_memory() {
    let nodes = |memory: u64| {
        let node = Node { power: 1.0, memory, link: 100.0, mpl: 2 };
        let platform = Platform::new(&[Cluster { nodes: vec![node; 2], uplink: 100.0 }]).expect("a cluster");
        let (platform, applications) = (Arc::new(platform), Arc::default());
        Some(Arc::new(SharedNodes { platform, fairness: Fairness::Proportional, applications }))
    };
    let sites = [("small".to_string(), 4), ("large".to_string(), 4)];
    let grid = Grid::with_brokers(sites, [("broker".to_string(), None)]).expect("names differ");
    let grid = Arc::new(grid.with_clusters([nodes(500), nodes(1000)]).expect("widths ascend"));
    let jobs: Vec<TimedJob> = (1..=20u64)
        .map(|id| {
            let labels = Labels { memory: if id % 2 == 0 { 501 } else { 100 }, ..Labels::UNKNOWN };
            let spec = JobSpec {
                id: JobId(id),
                submit: Time::from_secs(id as i64),
                processors: 2,
                requested: Span::from_secs(30),
                labels,
                origin: SiteId(1),
                payload: 0,
            };
            TimedJob { spec, run_time: Span::from_secs(25) }
        })
        .collect();
    for &select in ClusterSelection::ALL {
        let meta = MetaScheduler { select, limit: QueueLimit::None, ..MetaScheduler::default() };
        let rules = Broker { meta, ..Broker::new(BrokerRule::Mcisne) };
        let all = (grid.clone(), jobs.clone(), LocalUsers::default());
        let (found, expected) = both(all, rules, LocalScheduler::Fcfs, false, None);
        assert_eq!(found, expected, "{select:?}");
        assert_eq!(found.len(), jobs.len(), "{select:?}");
        let at = |wanted: u32| found.iter().filter(move |start| start.2 == SiteId(wanted));
        assert!(at(1).all(|start| start.0.0 % 2 == 1), "{select:?} {found:?}");
        assert!(at(1).count() > 0, "{select:?} {found:?}");
    }
}

/// A window is over at the instant at which a plan wakes its site, while a job is past its estimate there: how often the site
/// decides at that instant shows in the schedule.
#[test]
fn a_site_that_wakes_as_a_window_is_over_decides_behind_it() {
    // Number, submission, processors, requested and run time in seconds.
    let jobs = [
        (2, 0, 6, 28, 14),
        (5, 0, 12, 9, 3),
        (12, 1, 12, 1, 2),
        (3, 2, 1, 15, 15),
        (4, 3, 8, 1, 0),
        (11, 4, 14, 1, 0),
        (10, 5, 14, 1, 0),
        (8, 6, 14, 1, 0),
        (9, 7, 14, 1, 0),
        (6, 8, 14, 1, 0),
        (1, 11, 1, 9, 9),
        (7, 15, 14, 1, 0),
    ];
    let jobs = jobs.map(|(id, submit, processors, requested, run_time)| TimedJob {
        spec: JobSpec {
            id: JobId(id),
            submit: Time::from_secs(submit),
            processors,
            requested: Span::from_secs(requested),
            labels: Labels::UNKNOWN,
            origin: SiteId(1),
            payload: 0,
        },
        run_time: Span::from_secs(run_time),
    });
    let batches = Batches {
        jobs: 2,
        window: Span::ZERO,
        goal: Goal::Average,
        population: 2,
        generations: 0,
        evaluations: 2,
        ..Batches::default()
    };
    let rules = Broker { batches, ..Broker::new(BrokerRule::Genetic) };
    let workload = (behind_brokers(&[14, 1], 1), jobs.to_vec(), LocalUsers::default());
    let (found, expected) = both(workload, rules, LocalScheduler::Conservative, false, None);
    assert_eq!(found, expected);
    assert_eq!(
        found[0],
        (JobId(1), Time::from_secs(16), SiteId(1)),
        "the job that was late when they differed"
    );
}

/// What a broker predicts decides where a job goes. Two sites of 4 processors, each job as wide as one; user 1 asks for ten times
/// what the job takes, user 2 for what it does.
#[test]
fn a_predictor_sends_jobs_where_a_hand_computed_plan_does() {
    // Number, user, submission, requested and run time in seconds.
    let jobs = [
        (1, 1, 0, 100, 10),
        (2, 1, 20, 100, 10),
        // Both sites are idle: the first. Of user 1 two jobs are known, so this one is predicted to end at 50 and asks to end at 140.
        (3, 1, 40, 100, 10),
        (4, 2, 40, 50, 50),
        // The second site is busy until 90.
        (5, 2, 41, 50, 50),
        // Runs past its prediction: it was to end at 120.
        (6, 1, 110, 100, 80),
        (7, 2, 110, 30, 30),
        (8, 2, 125, 5, 5),
    ];
    let jobs = jobs.map(|(id, user, submit, requested, run_time)| TimedJob {
        spec: JobSpec {
            id: JobId(id),
            submit: Time::from_secs(submit),
            processors: 4,
            requested: Span::from_secs(requested),
            labels: Labels { user, ..Labels::UNKNOWN },
            origin: SiteId(1),
            payload: 0,
        },
        run_time: Span::from_secs(run_time),
    });
    let of = |correction| Some(Forecast { predictor: "avg2".parse().expect("a predictor"), correction });
    // Where and when jobs 5 and 8 start.
    for (forecast, five, eight) in [
        // At 90 the second site has had job 4, until 140 job 5, until 170 job 7; the first asks until 210.
        (None, (2, 90), (2, 170)),
        // Job 5 follows job 3 at 50; at 125 job 6 is believed to end at 210, and job 7 at 140.
        (of(Correction::User), (1, 50), (2, 140)),
        // Job 6 is believed to end at every moment, and ends at 190.
        (of(Correction::Never), (1, 50), (1, 190)),
    ] {
        let workload = (behind_brokers(&[4, 4], 1), jobs.to_vec(), LocalUsers::default());
        let rules = Broker::new(BrokerRule::StartTime);
        let (found, expected) = both(workload, rules, LocalScheduler::Easy, false, forecast);
        assert_eq!(found, expected);
        let start = |id: usize| (found[id - 1].2.0, found[id - 1].1);
        assert_eq!(start(5), (five.0, Time::from_secs(five.1)), "{forecast:?}");
        assert_eq!(start(8), (eight.0, Time::from_secs(eight.1)), "{forecast:?}");
    }
}

/// Whole logs, each on a grid of its machine and three smaller ones. In the second every third user is a local one.
#[test]
fn brokers_without_delay_equal_the_ideal_on_whole_real_logs() {
    let logs = [
        ("KTH-SP2-1996-2.1-cln", 100, &["broker:mst", "broker:mct,a=0.5", "broker:mwwt-s"][..]),
        ("SDSC-SP2-1998-4.2-cln", 128, &["broker:mpl,a=0.5", "broker:mst,a=auto"][..]),
        ("CTC-SP2-1996-3.1-cln", 338, &["broker:lbal-s", "broker:mlb", "broker:mpl"][..]),
    ];
    for (number, (log, processors, strategies)) in logs.into_iter().enumerate() {
        let Some(mut jobs) = stealgrid_tests::real_jobs(log, processors) else { continue };
        let sizes = [processors / 8, processors / 4, processors / 4, processors];
        let user = |job: &TimedJob| job.spec.labels.user.unsigned_abs() as usize;
        for job in &mut jobs {
            job.spec.origin = SiteId::from_index(user(job) % sizes.len());
        }
        let is_local = |job: &&TimedJob| number == 1 && user(job).is_multiple_of(3);
        let local_users: LocalUsers = jobs.iter().filter(is_local).map(|job| job.spec.id).collect();
        let grid = behind_brokers(&sizes, 2);
        for strategy in strategies {
            let spec = strategy.parse::<StrategySpec>().expect("a strategy");
            let Scheduling::Broker(rules) = spec.strategy else { unreachable!("all are brokers") };
            let options = Options { message_events: false, ..Options::default() };
            let local = LocalScheduler::Easy;
            let config = config(&grid, rules, local, options);
            let config = SimulationConfig { local_users: local_users.clone(), ..config };
            let policy = Brokered::new(&grid, rules, local, Pass::Batch, 1);
            let expected = ideal_with(policy.with_local_users(local_users.clone()), &grid, &jobs);

            assert_eq!(expected.len(), jobs.len());
            assert!(protocol(config, &jobs) == expected, "{log} under {strategy} differs from the ideal");
        }
    }
}

/// Knowing late, or not counting what was sent, leads to other schedules: the equality above can fail.
#[test]
fn what_a_broker_does_not_know_shows() {
    let sizes = [4, 8, 8, 16];
    let grid = behind_brokers(&sizes, 1);
    let jobs = STEADY.jobs(400);
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
        // Admissibility is told by all sites, not once more by those that were asked.
        let half = Broker { admissible: Fraction::new(1, 2).expect("a fraction"), ..rules };
        let options = Options { broker: all, ..Options::default() };
        assert_eq!(protocol(config(&grid, half, local, options), &jobs), ideal(&grid, half, local, &jobs));
        for (name, options) in [("late", late), ("blind", blind), ("probing", probing)] {
            assert_ne!(run(options), expected, "{name} {rule:?}");
        }
    }
}

/// What local users submit, a broker learns by reports alone: with late ones it decides otherwise than with early ones, and it
/// moves none of their jobs.
#[test]
fn a_broker_sees_only_part_of_the_load_at_once() {
    let sizes = [12, 12, 12];
    let grid = behind_brokers(&sizes, 1);
    let jobs = STEADY.jobs(400);
    let local_users: LocalUsers = jobs.iter().map(|job| job.spec.id).filter(|id| id.0 % 2 == 0).collect();
    let (rules, local) = (Broker::new(BrokerRule::ParallelLoad), LocalScheduler::Easy);
    let run = |report| {
        let options =
            Options { broker: BrokerOptions { report, ..BrokerOptions::default() }, ..Options::default() };
        let config = config(&grid, rules, local, options);
        protocol(SimulationConfig { local_users: local_users.clone(), ..config }, &jobs)
    };
    let policy = Brokered::new(&grid, rules, local, Pass::Batch, 1).with_local_users(local_users.clone());
    let expected = ideal_with(policy, &grid, &jobs);

    assert_eq!(run(Reporting::Change), expected);
    let late = run(Reporting::Every(Span::from_secs(300)));
    assert_ne!(late, expected);
    assert_ne!(expected, ideal(&grid, rules, local, &jobs), "local users are not the broker's");
    for (job, _, site) in late {
        let job = jobs.iter().find(|other| other.spec.id == job).expect("of the workload");
        assert!(local_users.site(&grid, &job.spec).is_none_or(|rank| grid.at_rank(rank) == site), "{site}");
    }
}

/// What is said of old views: nothing is amiss where none is old, and the true state decides as the protocol does; with
/// reports that are late it decides otherwise, and jobs lose by it.
#[test]
fn decisions_by_the_true_state_are_those_of_a_broker_without_delay() {
    let sizes = [4, 8, 8, 16];
    let grid = behind_brokers(&sizes, 2);
    let jobs = STEADY.jobs(400);
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
                (by_state.then_some(0.0), 0.0, by_state.then_some(0.0)),
                "{rule:?} {local:?}"
            );
        }
        if by_state {
            let late = cost(rule, LocalScheduler::Easy, Reporting::Every(Span::from_secs(600)));
            assert!(
                late.otherwise_share.is_some_and(|share| share > 0.05) && late.stale_share > 0.5,
                "{rule:?}: {late:?}"
            );
            assert!(late.unseen_mean > 1.0 && late.view_age_s.mean > 100.0, "{rule:?}: {late:?}");
        }
    }
}

/// Messages that take time, are lost, copied and overtake each other: every job runs once, wherever.
#[test]
fn jobs_run_once_whatever_links_do() {
    let sizes = [4, 8, 16];
    let grid = behind_brokers(&sizes, 2);
    let often =
        Steady { together: 1, every: Span::from_secs(2), shortest: Span::from_secs(1), widest: 16, sites: 3 };
    let jobs = often.jobs(300);
    let reports = [Reporting::Change, Reporting::Every(Span::from_secs(45)), Reporting::Probe(2)];
    // Each rule under each way to report.
    let seeds = 1..=BrokerRule::BUILT_IN.len() as u64;
    for (seed, report) in seeds.flat_map(|seed| reports.map(|report| (seed, report))) {
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
