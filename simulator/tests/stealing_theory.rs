//! Random stealing of half the tasks agrees with the theory of work stealing with latency (Gast, Khatiri, Trystram,
//! Wagner 2018): p processors, W unit tasks at one of them, latency lambda one way.
//!
//! A processor that runs no task has a request under way, so C_max = W/p + I/p with I the time that requests are under
//! way before the last task ends. A request takes 2 lambda, so C_max = W/p + 2 lambda R/p + O(lambda) with R requests that
//! left before the last task ended. Later ones are not in it: nobody tells the sites that the work is done, so at the end
//! each searches once more in vain, which can double their number. And the overhead over W/p grows as c(p) lambda
//! log2(W/lambda).

use std::sync::Arc;

use links::Model;
use protocol::Options;
use scheduler::{Event, EventKind, Grid, JobId, JobSpec, Labels, SiteId, Span, Strategy, Time, TimedJob};
use simulator::{Simulation, SimulationConfig};

/// What one run measured, times in lengths of a task.
#[derive(Clone, Copy, Debug)]
struct Measured {
    makespan: f64,
    /// Requests that left before the end.
    requests: f64,
    /// How long they were under way before the end, in all.
    under_way: f64,
}

/// W tasks of one second at the first of p sites with one processor each.
fn run(processors: usize, tasks: u64, latency: i64, seed: u64) -> Measured {
    let grid = Arc::new(Grid::of_sizes(&vec![1; processors]).expect("a grid"));
    let second = Span::from_secs(1);
    let jobs: Vec<TimedJob> = (1..=tasks)
        .map(|id| TimedJob {
            spec: JobSpec {
                id: JobId(id),
                submit: Time::ZERO,
                processors: 1,
                requested: second,
                labels: Labels::UNKNOWN,
                origin: SiteId(1),
                payload: 0,
            },
            run_time: second,
        })
        .collect();
    let strategy: Strategy =
        "steal:random,amount=half".parse::<scheduler::StrategySpec>().expect("a strategy").strategy;
    let mut config = SimulationConfig::new(grid, strategy);
    config.options = Options { message_events: false, ..Options::default() };
    config.network = Model::constant(Span::from_secs(latency));
    config.seed = seed;
    let mut asked = Vec::new();
    let totals = Simulation::new(config, &jobs)
        .run(&mut |event: &Event| {
            if matches!(event.kind, EventKind::Requested { .. }) {
                asked.push(event.at);
            }
        })
        .expect("no violation");
    let end = totals.last_end.expect("every task ended");
    // Who asks after the last task is done idles nobody.
    asked.retain(|&at| at < end);
    let until_end = |at: &Time| end.since(*at).as_secs_f64().min(2.0 * latency as f64);
    let under_way = asked.iter().map(until_end).sum();
    Measured { makespan: end.as_secs_f64(), requests: asked.len() as f64, under_way }
}

/// The overhead over W/p in lambda log2(W/lambda), and by how many lambda the identity is missed.
fn overhead(measured: Measured, processors: usize, tasks: u64, latency: i64) -> (f64, f64) {
    let (processors, tasks, latency) = (processors as f64, tasks as f64, latency as f64);
    let over = measured.makespan - tasks / processors;
    let missed = over - 2.0 * latency * measured.requests / processors;
    (over / (latency * (tasks / latency).log2()), missed / latency)
}

#[test]
fn every_request_idles_its_thief_for_a_round_trip() {
    for (processors, constant) in [(16, 2.5), (64, 3.3)] {
        let (tasks, latency, seeds) = (20_000, 10, 6);
        let mut mean = 0.0;
        for seed in 1..=seeds {
            let measured = run(processors, tasks, latency, seed);
            let (over, missed) = overhead(measured, processors, tasks, latency);
            assert!(
                missed.abs() <= 3.0,
                "{processors} processors, seed {seed}: {missed} lambda, {measured:?}"
            );
            // Nobody rests before the end here, so who runs no task has asked.
            let idle = measured.makespan - (tasks as f64 + measured.under_way) / processors as f64;
            assert!(idle.abs() < 0.01 * latency as f64, "{processors} processors, seed {seed}: {idle} tasks");
            mean += over / seeds as f64;
        }
        // Six runs of a small instance: the constant of the theory's own simulations within a quarter.
        assert!((mean / constant - 1.0).abs() < 0.25, "{processors} processors: {mean}");
    }
}

/// What the other test measures is latency: without it nothing is lost.
#[test]
fn without_latency_there_is_no_overhead_to_explain() {
    let measured = run(16, 2_000, 0, 1);
    assert!((measured.makespan - 125.0).abs() <= 1.0, "{measured:?}");
}
