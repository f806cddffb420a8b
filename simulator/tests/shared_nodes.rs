//! A broker that predicts run times where jobs share nodes: what a site must tell it for the schedule to be that of the ideal.

use std::collections::BTreeMap;
use std::sync::Arc;

use brokers::ideal::Brokered;
use predict::{Correction, Forecast};
use protocol::Terms;
use protocol::mutant::Mutant;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use scheduler::sharing::{Cluster, Fairness, Node, Platform};
use scheduler::{
    Event, EventKind, Grid, JobId, JobSpec, Labels, LocalScheduler, Pass, SharedNodes, SiteId, Span,
    Strategy, StrategySpec, Time, TimedJob,
};
use simulator::{Simulation, SimulationConfig, reference};

use crate::met::met;

const SEEDS: u64 = 300;
/// Seeds without the mistake. `tests/tests/brokers.rs` draws such grids and jobs anew.
const RIGHT: u64 = 100;
/// Up to so many tasks on a node.
const MPL: u32 = 3;

/// Two or three clusters behind a broker, and jobs of three users who ask for three times what a job takes.
fn instance(seed: u64) -> (Arc<Grid>, Vec<TimedJob>) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let sizes: Vec<u32> = (0..rng.random_range(2..4)).map(|_| rng.random_range(2..6)).collect();
    let widest = *sizes.iter().max().expect("there are some");
    let cluster = |&nodes: &u32| {
        let node = Node { power: 1.0, memory: 1000, link: 100.0, mpl: MPL };
        let nodes = vec![node; nodes as usize];
        let platform = Arc::new(Platform::new(&[Cluster { nodes, uplink: 100.0 }]).unwrap());
        Some(Arc::new(SharedNodes {
            platform,
            fairness: Fairness::Proportional,
            applications: Arc::default(),
        }))
    };
    let sites = sizes.iter().zip(1..).map(|(&nodes, number)| (format!("site{number}"), nodes * MPL));
    let grid = Grid::with_brokers(sites, [("broker".to_string(), None)]).unwrap();
    let grid = grid.with_clusters(sizes.iter().map(cluster)).unwrap();
    let mut jobs: Vec<TimedJob> = (1..=40)
        .map(|id| {
            let user = (id % 3) as i32;
            let run_time = Span::from_secs(i64::from(user) * 20 + rng.random_range(1..10));
            let spec = JobSpec {
                id: JobId(id),
                submit: Time::from_secs(rng.random_range(0..200)),
                processors: rng.random_range(1..=widest),
                requested: run_time.saturating_mul(3),
                labels: Labels { user, ..Labels::UNKNOWN },
                origin: SiteId(1),
                payload: 0,
            };
            TimedJob { spec, run_time }
        })
        .collect();
    jobs.sort_by_key(|job| job.spec.key());
    (Arc::new(grid), jobs)
}

/// How many seeds are met, of so many, whose schedule is not that of the ideal.
fn differing(strategy: &str, mutant: Option<Mutant>, seeds: u64) -> usize {
    let Strategy::Broker(rules) = strategy.parse::<StrategySpec>().unwrap().strategy else {
        panic!("{strategy} is no broker")
    };
    let forecast = Forecast { predictor: "avg2".parse().unwrap(), correction: Correction::Doubling };
    let differs = |&seed: &u64| {
        let (grid, jobs) = instance(seed);
        let (mut ideal, mut starts) = (BTreeMap::new(), BTreeMap::new());
        let local = LocalScheduler::Easy;
        let policy = Brokered::new(&grid, rules, local, Pass::Batch, 1);
        let mut policy = policy.with_estimators(local, Pass::Batch, || forecast.estimator());
        let mut note = |event: Event| note(&mut ideal, &event);
        reference::run(&mut policy, &jobs, &grid, Pass::Batch, &mut note)
            .expect("a workload that can be run");
        let terms = Terms { local, forecast: Some(forecast), ..Terms::new(grid, Strategy::Broker(rules)) };
        let mut simulation = Simulation::new(SimulationConfig::on(terms), &jobs);
        if let Some(mutant) = mutant {
            simulation = simulation.with_mutant(mutant);
        }
        let ran = simulation.run(&mut |event| self::note(&mut starts, event));
        ran.is_err() || starts != ideal
    };
    let differing = met((0..seeds).filter(differs)).len();
    println!("{strategy} {mutant:?}: {differing} of {seeds} schedules differ");
    differing
}

fn note(starts: &mut BTreeMap<JobId, (Time, SiteId)>, event: &Event) {
    if let EventKind::Started { job, .. } = event.kind {
        starts.insert(job, (event.at, event.site));
    }
}

#[test]
fn mutant_a_site_that_tells_no_run_times_on_idle_nodes_makes_schedules_differ() {
    for strategy in ["broker:mcisne", "broker:mst"] {
        assert_eq!(differing(strategy, None, RIGHT), 0);
        assert!(differing(strategy, Some(Mutant::WorkUntold), SEEDS) > 0);
    }
}
