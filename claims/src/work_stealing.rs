//! Claims about classic work stealing of unit tasks, which calibrate the network of the simulator: one processor per
//! site, all tasks at one site, a random victim, half of its tasks per steal.

use std::sync::Arc;

use analysis::prediction;
use scheduler::{Grid, TimedJob};

use crate::runs::{Instance, Measured, Network, job, named, peers};
use crate::{Found, Parameters, Verdict};

fn tasks(processors: u32, per_processor: u64) -> Instance {
    let jobs: Vec<TimedJob> =
        (1..=per_processor * u64::from(processors)).map(|id| job(id, 0, 1, 1)).collect();
    let grid = Grid::of_sizes(&vec![1; processors as usize]).expect("sites of one processor");
    Instance { grid: Arc::new(grid), jobs }
}

/// A run, or why there is none.
fn run(instance: &Instance, latency: f64, seed: u64) -> Result<Measured, String> {
    let mut network = Network::delayed(latency);
    network.seed = seed;
    peers(instance, named("steal:random,amount=half").strategy, &network)
        .map_err(|violation| violation.to_string())
}

/// Q9: C_max = W/p + 2 lambda R/p, to within `tolerance[0]` lambda. R counts requests that left before the last task ended,
/// the last ones in part; the figures say what all requests would come to.
pub(crate) fn requests_explain_the_makespan(parameters: &Parameters) -> Found {
    let (mut runs, mut outside, mut figures) = (0, 0, Vec::new());
    for &processors in &parameters.processors {
        let instance = tasks(processors, parameters.tasks_per_processor);
        let p = f64::from(processors);
        for &latency in &parameters.delays_s {
            let (mut worst, mut sum, mut of_all) = (0.0_f64, 0.0, 0.0);
            for seed in 1..=parameters.seeds {
                let measured = match run(&instance, latency, seed) {
                    Ok(measured) => measured,
                    Err(reason) => return broken(runs, reason),
                };
                let makespan = measured.outcome.makespan().as_secs_f64();
                // A request that is under way at the end idles its thief until then only.
                let idle: f64 = measured
                    .requests
                    .iter()
                    .map(|at| (makespan - at.as_secs_f64()).clamp(0.0, 2.0 * latency))
                    .sum();
                let overhead = makespan - instance.jobs.len() as f64 / p;
                of_all += 2.0 * latency * measured.requests.len() as f64 / p / overhead;
                let explained = (instance.jobs.len() as f64 + idle) / p;
                let off = (makespan - explained) / latency;
                runs += 1;
                outside += u64::from(off.abs() > parameters.tolerance[0]);
                if off.abs() > worst.abs() {
                    worst = off;
                }
                sum += off;
            }
            figures.push(format!(
                "p = {processors}, lambda = {latency} tasks: off by {:+.2} lambda on average, {worst:+.2} at most; with the \
                 last searches, which find nothing, 2 lambda R/p is {:.2} times the overhead",
                sum / parameters.seeds as f64,
                of_all / parameters.seeds as f64
            ));
        }
    }
    figures.insert(
        0,
        format!("{outside} of {runs} runs are off by more than {} lambda", parameters.tolerance[0]),
    );
    Found { verdict: Verdict::unless(outside), runs, figures }
}

fn broken(runs: u64, reason: String) -> Found {
    Found { verdict: Verdict::Fails, runs: runs + 1, figures: vec![reason] }
}

/// Q10: the overhead over lambda log2(W/lambda) is `expected` to within `tolerance`, and its mean below the bound.
pub(crate) fn the_overhead_constant(parameters: &Parameters) -> Found {
    let (mut runs, mut outside, mut above, mut figures) = (0, 0, 0, Vec::new());
    for (place, &processors) in parameters.processors.iter().enumerate() {
        let instance = tasks(processors, parameters.tasks_per_processor);
        let (p, work) = (f64::from(processors), instance.jobs.len() as f64);
        for &latency in &parameters.delays_s {
            let mut constants = Vec::new();
            let mut makespans = 0.0;
            for seed in 1..=parameters.seeds {
                let measured = match run(&instance, latency, seed) {
                    Ok(measured) => measured,
                    Err(reason) => return broken(runs, reason),
                };
                runs += 1;
                let makespan = measured.outcome.makespan().as_secs_f64();
                makespans += makespan;
                constants.push((makespan - work / p) / (latency * (work / latency).log2()));
            }
            let (mean, half) = crate::runs::paired(&constants);
            let bound =
                prediction::work_stealing(p, work, latency).map_or(f64::INFINITY, |found| found.bound);
            let (expected, tolerance) = (parameters.expected[place], parameters.tolerance[place]);
            outside += u64::from((mean - expected).abs() > tolerance);
            above += u64::from(makespans / parameters.seeds as f64 > bound);
            figures.push(format!(
                "p = {processors}, lambda = {latency}, W/lambda = {:.0}: c = {mean:.2} +- {half:.2}, expected {expected} +- \
                 {tolerance}; mean makespan {:.3} of the bound",
                work / latency,
                makespans / parameters.seeds as f64 / bound
            ));
        }
    }
    figures.insert(
        0,
        format!("{outside} of {} constants are outside, {above} means above the bound", figures.len()),
    );
    Found { verdict: Verdict::unless(outside + above), runs, figures }
}
