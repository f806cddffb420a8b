//! Jobs per second of ideal runs and of the protocol, event loop included, on the seven sites of the thesis's Grid 1.
//!
//! Ideal ST50 is to be read against local FCFS on the same log in the same run: the ratio is what stealing costs.

use std::hint::black_box;
use std::sync::Arc;

use brokers::ideal::Brokered;
use criterion::{BatchSize, Criterion, SamplingMode, Throughput, criterion_group, criterion_main};
use scheduler::ideal::{CommonPool, GreedySteal, PoolExchange, StatelessSteal};
use scheduler::local::LocalGrid;
use scheduler::strategy::PoolAlgorithm;
use scheduler::{
    Broker, BrokerRule, Grid, JobId, JobSpec, Labels, LocalScheduler, Order, Pass, Policy, Pool, Selection,
    SiteId, Span, Steal, Strategy, Submit, Threshold, Time, TimedJob,
};
use simulator::reference::run;
use simulator::{Simulation, SimulationConfig};

/// Enough that set-up does not show, and what a log of several years holds.
const JOBS: usize = 500_000;

fn references(criterion: &mut Criterion) {
    let grid = Grid::of_sizes(&[100, 128, 240, 430, 1024, 1152, 1368]).expect("sizes are positive");
    let steal = |select| Steal { threshold: Threshold::HALF, order: Order::Ahb, select };
    // Below saturation queues stay short; above it a tenth of the jobs waits at the end; at infinity all wait at first.
    for load in [0.8, 1.1, f64::INFINITY] {
        let jobs = log(JOBS, load, &grid);
        let mut group = criterion.benchmark_group(format!("reference/load {load}"));
        group.sampling_mode(SamplingMode::Flat).sample_size(10).throughput(Throughput::Elements(JOBS as u64));
        let mut measure = |name: &str, make: &dyn Fn() -> Box<dyn Policy>| {
            group.bench_function(name, |bencher| {
                bencher.iter_batched(
                    || Boxed(make()),
                    |policy| whole_run(policy, &jobs, &grid),
                    BatchSize::PerIteration,
                );
            });
        };
        measure("local fcfs", &|| Box::new(LocalGrid::new(grid.clone(), LocalScheduler::Fcfs, Pass::Batch)));
        measure("st50", &|| Box::new(StatelessSteal::new(&grid, steal(Selection::FirstFit))));
        measure("st50 best fit", &|| Box::new(StatelessSteal::new(&grid, steal(Selection::BestFit))));
        measure("st50 head only", &|| Box::new(StatelessSteal::new(&grid, steal(Selection::HeadOnly))));
        if load < 1.0 {
            // EASY looks through all that waits, like every EASY.
            measure("st50 easy", &|| Box::new(StatelessSteal::new(&grid, steal(Selection::Easy))));
        }
        measure("st50 greedy", &|| Box::new(GreedySteal::new(&grid, steal(Selection::FirstFit))));
        measure("common pool", &|| Box::new(CommonPool::new(&grid)));
        for (name, algorithm) in [
            ("pool fcfs", PoolAlgorithm::Fcfs),
            ("pool easy", PoolAlgorithm::Easy),
            ("pool list", PoolAlgorithm::List),
        ] {
            measure(name, &|| Box::new(PoolExchange::new(&grid, Pool::new(algorithm), Submit::Home)));
        }
        let with_broker = with_broker(&grid);
        let mpl = Broker::new(BrokerRule::ParallelLoad);
        let (seed, easy) = (1, LocalScheduler::Easy);
        measure("broker mpl", &|| Box::new(Brokered::new(&grid, mpl, easy, Pass::Batch, seed)));
        let st50 = Strategy::Steal(Steal::with_threshold(Threshold::HALF));
        for (name, strategy, grid) in
            [("st50 protocol", st50, &grid), ("broker mpl protocol", Strategy::Broker(mpl), &with_broker)]
        {
            group.bench_function(name, |bencher| bencher.iter(|| simulated(&jobs, grid, strategy)));
        }
        group.finish();
    }
}

/// The same sites behind a broker.
fn with_broker(grid: &Grid) -> Grid {
    let sites = grid.sites().iter().map(|site| (site.name.clone(), site.processors));
    Grid::with_brokers(sites, [("broker".to_string(), None)]).expect("names differ")
}

fn whole_run(mut policy: Boxed, jobs: &[TimedJob], grid: &Grid) {
    let mut events = 0u64;
    let summary = run(&mut policy, jobs, grid, Pass::Batch, &mut |event| {
        black_box(event);
        events += 1;
    });
    assert_eq!(summary.map(|summary| summary.jobs), Ok(jobs.len()));
    assert_eq!(events, 3 * jobs.len() as u64);
}

/// The same jobs through peers and messages without delay.
fn simulated(jobs: &[TimedJob], grid: &Grid, strategy: Strategy) {
    let config = SimulationConfig::new(Arc::new(grid.clone()), strategy);
    let mut events = 0u64;
    let totals = Simulation::new(config, jobs).run(&mut |event| {
        black_box(event);
        events += 1;
    });
    assert_eq!(totals.map(|totals| totals.completed), Ok(jobs.len()));
    assert!(events > 3 * jobs.len() as u64);
}

/// A policy chosen at run time.
struct Boxed(Box<dyn Policy>);

impl Policy for Boxed {
    fn submitted(&mut self, now: Time, job: JobSpec) {
        self.0.submitted(now, job);
    }
    fn completed(&mut self, now: Time, job: JobId) {
        self.0.completed(now, job);
    }
    fn decide(&mut self, now: Time, starts: &mut Vec<scheduler::Start>) {
        self.0.decide(now, starts);
    }
    fn wake_at(&self) -> Option<Time> {
        self.0.wake_at()
    }
    fn waiting(&self) -> usize {
        self.0.waiting()
    }
}

/// A log like those of production machines: a quarter serial jobs, most others powers of two, run times over four
/// orders of magnitude, random arrivals that offer `load` times what the grid can do.
fn log(jobs: usize, load: f64, grid: &Grid) -> Vec<TimedJob> {
    let mut random = SplitMix(1);
    let shapes: Vec<(u32, i64)> = (0..jobs)
        .map(|_| {
            let log_width = random.unit() * f64::from(grid.widest()).log2();
            let width = match random.unit() {
                serial if serial < 0.25 => 1,
                power if power < 0.85 => 1 << log_width as u32,
                _ => log_width.exp2() as u32,
            };
            (width.clamp(1, grid.widest()), 10f64.powf(1.0 + 3.6 * random.unit()) as i64)
        })
        .collect();
    let work: f64 = shapes.iter().map(|&(width, run)| f64::from(width) * run as f64).sum();
    let gap = work / jobs as f64 / (load * grid.processors() as f64);
    let mut at = 0.0;
    let mut timed = |(index, &(processors, run)): (usize, &(u32, i64))| {
        at -= gap * random.unit().ln();
        let spec = JobSpec {
            id: JobId(index as u64 + 1),
            submit: Time::from_secs(at as i64),
            processors,
            requested: Span::from_secs(2 * run),
            labels: Labels::UNKNOWN,
            origin: SiteId(1),
            payload: 0,
        };
        TimedJob { spec, run_time: Span::from_secs(run) }
    };
    shapes.iter().enumerate().map(&mut timed).collect()
}

/// Vigna's splitmix64: enough for a bench, and the same on every machine.
struct SplitMix(u64);

impl SplitMix {
    /// In (0, 1].
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        ((mixed >> 11) + 1) as f64 / (1u64 << 53) as f64
    }
}

criterion_group!(benches, references);
criterion_main!(benches);
