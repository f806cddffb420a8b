//! What delay costs the exchange through a global queue, on random instances. Prints what is quoted in
//! `docs/FAMILIES.md` with `cargo test -p stealgrid-simulator --test it pool_delay_cost:: -- --ignored --nocapture`.

use std::sync::Arc;

use links::Properties;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use scheduler::event::MessageKind;
use scheduler::{
    Event, EventKind, Grid, JobId, JobSpec, Labels, SiteId, Span, Strategy, StrategySpec, Submit, Time,
    TimedJob,
};
use simulator::{Checks, Simulation, SimulationConfig};

const INSTANCES: u64 = 120;
const DELAYS: [i64; 6] = [0, 1, 2, 5, 10, 20];
const LONGEST: i64 = 20;
const STRATEGIES: [&str; 9] = [
    "pool:list",
    "pool:list,via=gossip",
    "pool:list,via=gossip,demand=off",
    "pool:easy",
    "pool:easy,via=gossip",
    "pool:easy,via=gossip,demand=off",
    "pool:fcfs",
    "pool:fcfs,via=gossip",
    "pool:fcfs,via=gossip,demand=off",
];

#[test]
fn waits_grow_with_delay_and_nothing_is_refused_without() {
    for name in STRATEGIES {
        let spec: StrategySpec = name.parse().expect("a strategy");
        let [without, with] = [0, LONGEST].map(|delay| measure(spec.strategy, delay));
        if !name.contains("demand=off") {
            assert_eq!(without.refused, 0, "every site knows the same");
        }
        assert!(with.wait > without.wait, "three messages before a job starts elsewhere");
        assert!(with.refused > 0, "what was decided on was no longer true");
    }
}

#[test]
#[ignore = "prints what is quoted, and refuses nothing"]
fn the_costs_of_all_delays() {
    for name in STRATEGIES {
        let spec: StrategySpec = name.parse().expect("a strategy");
        let line = DELAYS.map(|delay| measure(spec.strategy, delay).to_string());
        println!("| {name} | {} |", line.join(" | "));
    }
}

/// Sums over all instances.
#[derive(Default)]
struct Cost {
    jobs: u64,
    wait: i64,
    moved: u64,
    /// Awards declined and claims denied.
    refused: u64,
    /// Messages other than boards, and boards.
    exchanged: u64,
    boards: u64,
}

impl std::fmt::Display for Cost {
    #[expect(clippy::cast_precision_loss, reason = "means of small numbers")]
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let moved = self.moved.max(1) as f64;
        write!(
            f,
            "{:.1} ({:.0} %) {:.1} + {:.1}",
            self.wait as f64 / 1e6 / self.jobs as f64,
            100.0 * self.refused as f64 / moved,
            self.exchanged as f64 / moved,
            self.boards as f64 / self.jobs as f64,
        )
    }
}

/// One-way delays are uniform from nothing to `delay`.
fn measure(strategy: Strategy, delay: i64) -> Cost {
    let mut cost = Cost::default();
    for seed in 0..INSTANCES {
        let (grid, jobs) = instance(seed);
        let mut config = SimulationConfig::new(grid, strategy);
        config.submit = Submit::Origin;
        config.seed = seed;
        config.checks = Checks::Full;
        config.network.properties = Properties::unreliable(0.0, 0.0, Span::from_secs(delay));
        cost.jobs += jobs.len() as u64;
        Simulation::new(config, &jobs)
            .run(&mut |event: &Event| match event.kind {
                EventKind::Started { job, .. } => {
                    let job = jobs.iter().find(|timed| timed.spec.id == job).expect("a job of the workload");
                    cost.wait += event.at.since(job.spec.submit).as_micros();
                }
                EventKind::Accepted { .. } => cost.moved += 1,
                EventKind::Declined { .. } | EventKind::Denied { .. } => cost.refused += 1,
                EventKind::Sent { message: MessageKind::Board, .. } => cost.boards += 1,
                EventKind::Sent { .. } => cost.exchanged += 1,
                _ => {}
            })
            .expect("no violation");
    }
    cost
}

/// Up to six sites, up to forty jobs, run times of 11 on average, estimates exact, too long and too short, jobs wider
/// than their site.
fn instance(seed: u64) -> (Arc<Grid>, Vec<TimedJob>) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let sizes: Vec<u32> = (0..rng.random_range(2..=6)).map(|_| rng.random_range(2..17)).collect();
    let grid = Arc::new(Grid::of_sizes(&sizes).expect("a grid"));
    let mut jobs: Vec<TimedJob> = (1..=rng.random_range(20..=40u64))
        .map(|id| {
            let run = rng.random_range(1i64..=21);
            TimedJob {
                spec: JobSpec {
                    id: JobId(id),
                    submit: Time::from_secs(rng.random_range(0..40)),
                    processors: rng.random_range(1..=grid.widest()),
                    requested: Span::from_secs((run * rng.random_range(1..=4) / 2).max(1)),
                    labels: Labels::UNKNOWN,
                    origin: SiteId::from_index(rng.random_range(0..sizes.len())),
                    payload: 0,
                },
                run_time: Span::from_secs(run),
            }
        })
        .collect();
    jobs.sort_by_key(|job| job.spec.key());
    (grid, jobs)
}
