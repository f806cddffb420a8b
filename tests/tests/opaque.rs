//! With all delays zero, brokers before opaque sites give each job to the site that the ideal reference gives it to, and call
//! it back when that does, job for job: over random grids, every rule and every reading of it, and whole real logs.

use std::sync::Arc;

use brokers::ideal::{Dispatched, World};
use links::Model;
use predict::Forecast;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use protocol::{Options, Terms};
use scheduler::strategy::opaque::{
    AlphaWeighs, Blame, Border, Clock, Counted, Deviation, DispatchRule, GroupOver, GroupSize, Growth,
    Options as Dispatching, PhaseEnd, Tie, Tolerance, TotalFrom, Turn,
};
use scheduler::{
    Event, EventKind, Grid, JobId, LocalScheduler, LocalUsers, Pass, SiteId, Span, Strategy as Scheduling,
    StrategySpec, Time, TimedJob,
};
use simulator::reference;
use simulator::{Checks, Simulation, SimulationConfig};

use crate::brokers::forecasts;
use crate::runs::drawn;

/// Where and when each job starts, and how often jobs were called back.
type Ran = (Vec<(JobId, Time, SiteId)>, u64);

/// A grid, its jobs, those of local users, and what decides.
#[derive(Clone, Debug)]
struct Case {
    grid: Arc<Grid>,
    jobs: Vec<TimedJob>,
    local_users: LocalUsers,
    options: Dispatching,
    local: LocalScheduler,
    seed: u64,
    forecast: Option<Forecast>,
}

impl Case {
    fn ideal(&self) -> Ran {
        let world = World { local_users: self.local_users.clone(), ..World::default() };
        let policy = Dispatched::new(&self.grid, &self.options, self.local, world, self.seed);
        let mut policy = policy.expect("it makes no copies");
        if let Some(forecast) = self.forecast {
            policy = policy.with_estimators(|| forecast.estimator());
        }
        let mut starts = Vec::new();
        let mut see = |event: Event| {
            if let EventKind::Started { job, .. } = event.kind {
                starts.push((job, event.at, event.site));
            }
        };
        reference::run(&mut policy, &self.jobs, &self.grid, Pass::Batch, &mut see).expect("nobody starves");
        starts.sort_unstable();
        (starts, policy.recalled_total())
    }

    fn config(&self) -> SimulationConfig {
        let terms = Terms::new(self.grid.clone(), Scheduling::Opaque(self.options));
        SimulationConfig {
            checks: Checks::Full,
            local_users: self.local_users.clone(),
            ..SimulationConfig::on(Terms {
                local: self.local,
                seed: self.seed,
                forecast: self.forecast,
                ..terms
            })
        }
    }

    fn protocol(&self, config: SimulationConfig) -> Ran {
        let (mut starts, mut recalled) = (Vec::new(), 0);
        let see = &mut |event: &Event| match event.kind {
            EventKind::Started { job, .. } => starts.push((job, event.at, event.site)),
            EventKind::Recalled { .. } => recalled += 1,
            _ => {}
        };
        Simulation::new(config, &self.jobs).run(see).unwrap_or_else(|violation| panic!("{violation}"));
        starts.sort_unstable();
        (starts, recalled)
    }
}

fn one_of<T: Copy + std::fmt::Debug + 'static>(all: &'static [T]) -> impl Strategy<Value = T> {
    prop::sample::select(all)
}

/// Every rule that makes no copies, with every switch.
fn options() -> impl Strategy<Value = Dispatching> {
    let rules: Vec<DispatchRule> = Scheduling::all()
        .into_iter()
        .filter_map(|one| if let Scheduling::Opaque(options) = one { Some(options.rule) } else { None })
        .collect();
    // Half of the time one of those that the others were compared with.
    let published = one_of(&[DispatchRule::RoundRobin, DispatchRule::Ag, DispatchRule::Mqd]);
    let rule = prop_oneof![published, prop::sample::select(rules)];
    let limits = (1u32..6, prop::option::weighted(0.7, 1i64..40), 0u32..120, one_of(Growth::ALL));
    let times = (one_of(Clock::ALL), one_of(TotalFrom::ALL), one_of(Blame::ALL));
    let draws = (one_of(Tie::ALL), one_of(Turn::ALL));
    let learner = (
        one_of(Deviation::ALL),
        one_of(Counted::ALL),
        one_of(AlphaWeighs::ALL),
        one_of(Tolerance::ALL),
        0.0..1.0f64,
    );
    let groups = (one_of(GroupOver::ALL), one_of(PhaseEnd::ALL), one_of(Border::ALL), one_of(GroupSize::ALL));
    (rule, limits, times, draws, learner, groups).prop_map(|(rule, limits, times, draws, learner, groups)| {
        Dispatching {
            cap: limits.0,
            timeout: limits.1.map(Span::from_secs),
            growth_percent: limits.2,
            growth: limits.3,
            clock: times.0,
            total_from: times.1,
            timeout_blame: times.2,
            tie: draws.0,
            turn: draws.1,
            deviation: learner.0,
            counted: learner.1,
            alpha_weighs: learner.2,
            tolerance: learner.3,
            exploit: learner.4,
            group_over: groups.0,
            phase_end: groups.1,
            border: groups.2,
            group_size: groups.3,
            ..Dispatching::new(rule)
        }
    })
}

/// Sites of these sizes behind so many brokers that are beside no site.
fn behind_brokers(sizes: &[u32], brokers: usize) -> Arc<Grid> {
    let sites = sizes.iter().zip(1..).map(|(&size, number)| (format!("site{number}"), size));
    let brokers = (1..=brokers).map(|number| (format!("broker{number}"), None));
    let grid = Grid::with_brokers(sites, brokers).expect("names differ");
    // Prices in another order than sizes, some alike.
    Arc::new(grid.with_prices([3, 1, 2, 1, 4].into_iter().cycle().take(sizes.len())))
}

/// Sites, up to three brokers, jobs of which half take one processor as the published ones do, and those of local users.
fn case() -> impl Strategy<Value = Case> {
    let jobs = drawn::workload(40, 1..4, any::<bool>());
    let local = prop_oneof![1 => Just(u64::MAX), 1 => 1u64..5];
    let rest = (1usize..4, local, any::<bool>(), options(), one_of(&LocalScheduler::ALL), any::<u64>());
    (jobs, rest, forecasts()).prop_map(|((sizes, mut jobs), rest, forecast)| {
        let (brokers, every, is_narrow, mut options, local, seed) = rest;
        if forecast.is_some() {
            // A job that comes back at the instant of an end, and joins a queue again, is predicted before that end is learned from or after
            // it. Without a limit jobs come at submissions only, behind all ends.
            options.timeout = None;
        }
        jobs.iter_mut().for_each(|job| job.spec.labels.user = (job.spec.id.0 % 3) as i32);
        // A literal border sends wide jobs to sites that are too narrow for ever.
        if is_narrow || options.border == Border::Literal {
            jobs.iter_mut().for_each(|job| job.spec.processors = 1);
        }
        let of_local = jobs.iter().map(|job| job.spec.id).filter(|id| id.0.is_multiple_of(every));
        let (grid, local_users) = (behind_brokers(&sizes, brokers), of_local.collect());
        Case { grid, jobs, local_users, options, local, seed, forecast }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn brokers_without_delay_equal_the_ideal(case in case(), retries in any::<bool>()) {
        let retry = retries.then(|| Span::from_secs(30));
        let mut config = case.config();
        config.options = Options { retry, message_events: false, ..Options::default() };
        prop_assert_eq!(case.protocol(config), case.ideal());
    }
}

/// Whole logs on a grid of the machine and three smaller ones; every third user is a local one.
#[test]
fn brokers_without_delay_equal_the_ideal_on_whole_real_logs() {
    let logs = [
        ("KTH-SP2-1996-2.1-cln", 100, &["opaque:ag,timeout=3600", "opaque:round-robin,timeout=600"][..]),
        ("SDSC-SP2-1998-4.2-cln", 128, &["opaque:mqd,timeout=1800,growth=50,tie=random"][..]),
    ];
    for (log, processors, strategies) in logs {
        let Some(mut jobs) = stealgrid_tests::real_jobs(log, processors) else { continue };
        let user = |job: &TimedJob| job.spec.labels.user.unsigned_abs() as usize;
        for job in &mut jobs {
            job.spec.origin = SiteId::from_index(user(job) % 4);
        }
        let local = jobs.iter().filter(|job| user(job).is_multiple_of(3)).map(|job| job.spec.id);
        let local_users: LocalUsers = local.collect();
        let grid = behind_brokers(&[processors / 8, processors / 4, processors / 4, processors], 2);
        for strategy in strategies {
            let spec = strategy.parse::<StrategySpec>().expect("a strategy");
            let Scheduling::Opaque(options) = spec.strategy else { unreachable!("all are brokers") };
            let (grid, jobs, local_users) = (grid.clone(), jobs.clone(), local_users.clone());
            let case = Case {
                grid,
                jobs,
                local_users,
                options,
                local: LocalScheduler::Easy,
                seed: 1,
                forecast: None,
            };
            let (starts, recalled) = case.ideal();
            assert!(recalled > 100, "{log} under {strategy}: {recalled} came back");
            assert_eq!(starts.len(), case.jobs.len());
            let mut config = SimulationConfig { checks: Checks::Cheap, ..case.config() };
            config.options = Options { message_events: false, ..Options::default() };
            assert!(
                case.protocol(config) == (starts, recalled),
                "{log} under {strategy} differs from the ideal"
            );
        }
    }
}

/// Messages that take time lead to other schedules: the equality above can fail.
#[test]
fn mutant_messages_that_take_a_second_show() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (mut differs, mut recalls) = (0, 0);
    for _ in 0..300 {
        let case = case().new_tree(&mut runner).expect("a case").current();
        let network = Model::constant(Span::from_secs(1));
        let late = case.protocol(SimulationConfig { network, ..case.config() });
        let (starts, recalled) = case.ideal();
        recalls += recalled;
        differs += u32::from(late != (starts, recalled));
    }
    println!("{differs} of 300 differ; {recalls} came back");
    assert!(recalls > 100, "too few jobs are called back: {recalls}");
    assert!(differs > 240, "{differs} of 300 differ");
}
