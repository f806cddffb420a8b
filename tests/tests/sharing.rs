//! Jobs on shared nodes end when an audit says that has no code in common with the model, and the audit notices who does otherwise.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use analysis::sharing::audit::{self, Fault, Wrong};
use analysis::{Outcome, OutcomeBuilder};
use predict::{Correction, Forecast, Predictor};
use scheduler::local::{Estimator, LocalGrid};
use scheduler::sharing::local_load::{Layout, Redraws, Spread, Usage};
use scheduler::sharing::{Cluster, Fairness, Node, Platform};
use scheduler::{
    Application, Event, EventKind, Grid, JobId, JobSpec, Labels, LocalScheduler, Pass, SharedNodes, SiteId,
    Span, StrategySpec, Threshold, Time, TimedJob,
};
use simulator::{Simulation, SimulationConfig, reference};

/// Two clusters of unequal nodes with local users who come and go, and links that are short for some programs.
fn grid(fairness: Fairness, seed: u64) -> Arc<Grid> {
    let applications = [
        (0, Application { computing: 0.5, bandwidth: 60.0 }),
        (1, Application { computing: 0.9, bandwidth: 10.0 }),
        (2, Application { computing: 0.2, bandwidth: 45.0 }),
    ];
    let applications: Arc<BTreeMap<i32, Application>> = Arc::new(applications.into_iter().collect());
    let cluster = |nodes: u32| {
        let node =
            |number: u32| Node { power: 1.0 / f64::from(1 + number % 3), memory: 1000, link: 100.0, mpl: 3 };
        let nodes: Vec<Node> = (0..nodes).map(node).collect();
        let spread = Spread {
            usage: Usage::new(0.2, 0.3, 5.0).unwrap(),
            share: 0.4,
            layout: Layout::Uniform,
            redraws: Some(Redraws { every: Span::from_secs(20), until: Time::from_secs(500) }),
        };
        let local = spread.draw(&[nodes.len()], seed + nodes.len() as u64);
        let platform = Platform::new(&[Cluster { nodes, uplink: 100.0 }]).unwrap();
        let platform = Arc::new(platform.with_local(local).unwrap());
        Some(Arc::new(SharedNodes { platform, fairness, applications: Arc::clone(&applications) }))
    };
    let sites = [("small".to_string(), 4 * 3), ("large".to_string(), 8 * 3)];
    Arc::new(Grid::new(sites).unwrap().with_clusters([cluster(4), cluster(8)]).unwrap())
}

fn jobs(count: u64) -> Vec<TimedJob> {
    let job = |number: u64| {
        let spec = JobSpec {
            id: JobId(number),
            submit: Time::from_secs((number * number * 7 % 5 + 4 * number) as i64),
            processors: (1 + number * 5 % 7) as u32,
            requested: Span::from_secs(100),
            labels: Labels {
                executable: (number % 4) as i32,
                memory: 100 * (number % 3) as i64,
                ..Labels::UNKNOWN
            },
            origin: SiteId(1),
            payload: 0,
        };
        TimedJob { spec, run_time: Span::from_secs((10 + number * 13 % 60) as i64) }
    };
    let mut jobs: Vec<TimedJob> = (1..=count).map(job).collect();
    jobs.sort_by_key(|job| job.spec.key());
    jobs
}

fn events(grid: &Arc<Grid>, jobs: &[TimedJob]) -> Vec<Event> {
    let strategy: StrategySpec = "local".parse().unwrap();
    let mut config = SimulationConfig::new(Arc::clone(grid), strategy.strategy);
    config.terms.local = LocalScheduler::Easy;
    let mut events = Vec::new();
    Simulation::new(config, jobs).run(&mut |event| events.push(*event)).unwrap();
    events
}

fn outcome(grid: &Grid, jobs: &[TimedJob], events: &[Event]) -> Outcome {
    let mut builder = OutcomeBuilder::new(grid, Threshold::HALF, jobs);
    events.iter().for_each(|event| builder.observe(event));
    builder.finish()
}

#[test]
fn ends_on_shared_nodes_are_those_of_a_naive_audit() {
    for fairness in [Fairness::Proportional, Fairness::MaxMin] {
        for seed in 0..20 {
            let (grid, jobs) = (grid(fairness, seed), jobs(60));
            let events = events(&grid, &jobs);
            let outcome = outcome(&grid, &jobs, &events);
            assert!(outcome.is_complete());
            let wrong = audit::audit(&outcome);
            assert!(wrong.is_empty(), "{fairness:?}, seed {seed}: {wrong:?}");
            // Something was to be judged: most jobs were slowed down, and most more than once.
            let slowed = outcome.jobs.iter().filter(|job| outcome.sharing_slowdown(job) > Some(1.5)).count();
            let paces: usize = outcome.placements.iter().map(|(.., placement)| placement.paces.len()).sum();
            assert!(slowed > 20 && paces > 200, "{slowed} jobs were slowed down, {paces} speeds");
        }
    }
}

/// The speeds that drivers tell are those at which jobs go on: over its time each does its work.
#[test]
fn the_speeds_that_are_told_add_up_to_the_work() {
    let (grid, jobs) = (grid(Fairness::Proportional, 1), jobs(60));
    let outcome = outcome(&grid, &jobs, &events(&grid, &jobs));
    for job in &outcome.jobs {
        let placement = outcome.placement(job).expect("all ran");
        assert_eq!(placement.nodes.len(), job.processors as usize);
        let spans = placement.spans(outcome.until);
        let done: f64 = spans
            .map(|(from, to, pace)| to.since(from).as_secs_f64() / (pace.slowdown_millionths as f64 / 1e6))
            .sum();
        assert!((done - job.run_time.as_secs_f64()).abs() < 1e-3, "job {}: {done} s", job.id);
    }
}

/// Mistakes in a log that is right otherwise: an end a tenth of a second early and late, a task on another node, one on none, and local
/// users who slow nobody down.
#[test]
fn mutant_a_wrong_end_or_place_is_noticed() {
    let (grid, jobs) = (grid(Fairness::Proportional, 3), jobs(60));
    let events = events(&grid, &jobs);
    let audited = |events: &[Event]| audit::audit(&outcome(&grid, &jobs, events));
    let of =
        |wrong: &[Wrong], job: JobId| wrong.iter().find(|wrong| wrong.job == job).map(|wrong| wrong.what);
    let completed = |event: &Event| matches!(event.kind, EventKind::Completed { .. });
    let mut noticed = 0;
    for place in (0..events.len()).filter(|&place| completed(&events[place])) {
        let EventKind::Completed { job, .. } = events[place].kind else { unreachable!("just looked") };
        for micros in [-100_000, 100_000] {
            let mut spoiled = events.clone();
            spoiled[place].at += Span::from_micros(micros);
            let Some(Fault::End(late)) = of(&audited(&spoiled), job) else { panic!("job {job} by {micros}") };
            assert!((late.as_micros() - micros).abs() < 1000, "{late} for {micros}");
            noticed += 1;
        }
    }
    assert_eq!(noticed, 2 * jobs.len());
    let placed: Vec<usize> =
        (0..events.len()).filter(|&place| matches!(events[place].kind, EventKind::Placed { .. })).collect();
    let mut spoiled = events.clone();
    spoiled.remove(placed[0]);
    assert!(audited(&spoiled).iter().any(|wrong| matches!(wrong.what, Fault::Nodes { .. })));
    let elsewhere = placed.iter().filter(|&&place| {
        let EventKind::Placed { job, node } = events[place].kind else { unreachable!("just looked") };
        let mut spoiled = events.clone();
        spoiled[place].kind = EventKind::Placed { job, node: (node + 1) % 4 };
        !audited(&spoiled).is_empty()
    });
    assert!(elsewhere.count() * 2 > placed.len());
    let idle: Vec<_> = grid
        .sites()
        .iter()
        .map(|site| {
            let nodes = grid.cluster(site.id).expect("nodes");
            let alone = Platform::new(&[Cluster { nodes: nodes.platform.nodes().to_vec(), uplink: 100.0 }]);
            Some(Arc::new(SharedNodes { platform: Arc::new(alone.unwrap()), ..(**nodes).clone() }))
        })
        .collect();
    let without_users = Arc::new((*grid).clone().with_clusters(idle).unwrap());
    let wrong = audit::audit(&outcome(&grid, &jobs, &self::events(&without_users, &jobs)));
    assert!(wrong.len() > jobs.len() / 2, "{} of {} ends", wrong.len(), jobs.len());
    let text = wrong[0].to_string();
    assert!(text.contains("before its work was done"), "{text}");
}

/// Predicts a third of what users ask for, so that most jobs run past it, and notes what it learns of each.
#[derive(Clone, Debug)]
struct Noting {
    correction: Correction,
    learned: Arc<Mutex<Vec<(JobId, Time, Span)>>>,
}

impl Estimator for Noting {
    fn predict(&mut self, _now: Time, job: &JobSpec) -> Span {
        Span::from_micros(job.requested.as_micros() / 3)
    }

    fn correct(&self, job: &JobSpec, predicted: Span, before: u32) -> Span {
        Forecast { predictor: Predictor::User, correction: self.correction }
            .estimator()
            .correct(job, predicted, before)
    }

    fn learn(&mut self, now: Time, job: &JobSpec, run_time: Span) {
        self.learned.lock().unwrap().push((job.id, now, run_time));
    }

    fn boxed(&self) -> Box<dyn Estimator> {
        Box::new(self.clone())
    }
}

/// What sites learn of jobs that share nodes, and what they would learn if they took the time since the start; each as how many are off by
/// more than a millisecond from what the job takes on idle nodes.
fn lessons_off(correction: Correction, seed: u64) -> (usize, usize) {
    let (grid, jobs) = (grid(Fairness::Proportional, seed), jobs(60));
    let learned = Arc::default();
    let noting = Noting { correction, learned: Arc::clone(&learned) };
    let mut policy = LocalGrid::new((*grid).clone(), LocalScheduler::Easy, Pass::Batch);
    policy = policy.with_estimators(|| Box::new(noting.clone()));
    let mut starts = BTreeMap::new();
    let mut see = |event: Event| {
        if let EventKind::Started { job, .. } = event.kind {
            starts.insert(job, event.at);
        }
    };
    reference::run(&mut policy, &jobs, &grid, Pass::Batch, &mut see).unwrap();
    let run_times: BTreeMap<JobId, Span> = jobs.iter().map(|job| (job.spec.id, job.run_time)).collect();
    let learned = learned.lock().unwrap();
    assert_eq!(learned.len(), jobs.len(), "each end is a lesson");
    let is_off = |job: JobId, span: Span| (span.as_micros() - run_times[&job].as_micros()).abs() > 1000;
    let worked = learned.iter().filter(|&&(job, _, run_time)| is_off(job, run_time)).count();
    let elapsed = learned.iter().filter(|&&(job, end, _)| is_off(job, end.since(starts[&job]))).count();
    (worked, elapsed)
}

/// A run time is that on idle nodes of full power, whatever slowed a job down, and however often its prediction was corrected.
#[test]
fn what_is_learned_of_jobs_that_share_nodes_is_what_they_take_on_idle_ones() {
    for correction in Correction::ALL {
        for seed in 0..10 {
            assert_eq!(lessons_off(correction, seed).0, 0, "{correction:?}, seed {seed}");
        }
    }
}

/// The time from start to end is another one: the check above can fail.
#[test]
fn mutant_the_time_since_the_start_is_no_lesson() {
    let off: usize = (0..10).map(|seed| lessons_off(Correction::Doubling, seed).1).sum();
    println!("{off} of 600 jobs were on their nodes for another time than on idle ones");
    assert!(off > 500, "{off} of 600");
}
