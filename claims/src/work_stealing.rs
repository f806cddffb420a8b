//! Claims about classic work stealing of unit tasks, which calibrate the network of the simulator: one processor per
//! site, all tasks at one site, a random victim, half of its tasks per steal.

use std::sync::Arc;

use analysis::prediction;
use scheduler::{Grid, TimedJob};

use crate::cells::{Group, Of, Question, Says, Unit, ask};
use crate::runs::{Instance, Measured, Network, change, job, named, peers};
use crate::{Found, Parameters};

fn tasks(processors: u32, per_processor: u64) -> Instance {
    let jobs: Vec<TimedJob> =
        (1..=per_processor * u64::from(processors)).map(|id| job(id, 0, 1, 1)).collect();
    let grid = Grid::of_sizes(&vec![1; processors as usize]).expect("sites of one processor");
    Instance { grid: Arc::new(grid), jobs }
}

fn run(instance: &Instance, latency: f64, seed: u64) -> Measured {
    let mut network = Network::delayed(latency);
    network.seed = seed;
    let measured = peers(instance, named("steal:random,amount=half").strategy, &network);
    measured.unwrap_or_else(|violation| panic!("{violation}; nothing is lost here"))
}

/// What the makespan is above W/p, in tasks.
fn overhead(instance: &Instance, measured: &Measured) -> f64 {
    measured.outcome.makespan().as_secs_f64() - instance.jobs.len() as f64 / instance.grid.len() as f64
}

/// Every number of processors, its place in the parameters, and every latency in tasks.
fn settings(parameters: &Parameters) -> impl Iterator<Item = (usize, u32, f64)> + '_ {
    parameters.processors.iter().enumerate().flat_map(|(place, &processors)| {
        parameters.delays_s.iter().map(move |&latency| (place, processors, latency))
    })
}

/// Q9: the overhead grows like lambda log2(W/lambda) from W to `growth` times as much. Wrong: like the square root.
pub(crate) fn the_overhead_is_logarithmic(parameters: &Parameters, wrong: bool) -> Found {
    let groups = settings(parameters).map(|(_, processors, latency)| {
        let [small, large] = [1, parameters.growth].map(|times| {
            let instance = tasks(processors, times * parameters.tasks_per_processor);
            let relative = instance.jobs.len() as f64 / latency;
            let law = if wrong { relative.sqrt() } else { relative.log2() };
            (instance, relative, law)
        });
        Group {
            questions: vec![Question {
                name: format!(
                    "p = {processors}, λ = {latency}, W/λ from {:.0} to {:.0}, overhead over the law",
                    small.1, large.1
                ),
                of: Of::Mean(0),
                unit: Unit::Change,
                says: Some(Says::Within(parameters.margin)),
            }],
            measure: Box::new(move |seed| {
                let of = |(instance, _, law): &(Instance, f64, f64)| {
                    overhead(instance, &run(instance, latency, seed)) / law
                };
                vec![change(of(&large), of(&small), f64::MIN_POSITIVE)]
            }),
            runs: 2,
        }
    });
    ask(parameters, groups.collect())
}

/// Q10: the overhead over lambda log2(W/lambda) is `expected` to within `tolerance`, and the makespan below the bound. Wrong:
/// the constant of 8 processors for all.
pub(crate) fn the_overhead_constant(parameters: &Parameters, wrong: bool) -> Found {
    let groups = settings(parameters).map(|(place, processors, latency)| {
        let instance = tasks(processors, parameters.tasks_per_processor);
        let (p, work) = (f64::from(processors), instance.jobs.len() as f64);
        let bound = prediction::work_stealing(p, work, latency).map_or(f64::INFINITY, |found| found.bound);
        let expected = if wrong { prediction::overhead_constant(8.0) } else { parameters.expected[place] };
        let question = |what: &str, column, says| Question {
            name: format!("p = {processors}, λ = {latency}, W/λ = {:.0}, {what}", work / latency),
            of: Of::Mean(column),
            unit: Unit::Number,
            says: Some(says),
        };
        Group {
            questions: vec![
                question("constant", 0, Says::Near(expected, parameters.tolerance[place])),
                question("makespan over its bound", 1, Says::Below(1.0)),
            ],
            measure: Box::new(move |seed| {
                let measured = run(&instance, latency, seed);
                let constant = overhead(&instance, &measured) / (latency * (work / latency).log2());
                vec![constant, measured.outcome.makespan().as_secs_f64() / bound]
            }),
            runs: 1,
        }
    });
    ask(parameters, groups.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every processor works or waits for an answer: C_max = W/p + 2 lambda R/p, with requests that are under way at the
    /// end counted up to it. An identity of bookkeeping, so a test of the simulator and no claim.
    #[test]
    fn work_and_requests_fill_the_makespan() {
        for (processors, latency) in [(8, 1.0), (8, 5.0), (16, 1.0)] {
            let instance = tasks(processors, 100);
            for seed in 1..=3 {
                let measured = run(&instance, latency, seed);
                let makespan = measured.outcome.makespan().as_secs_f64();
                let idle: f64 = measured
                    .requests
                    .iter()
                    .map(|at| (makespan - at.as_secs_f64()).clamp(0.0, 2.0 * latency))
                    .sum();
                let explained = (instance.jobs.len() as f64 + idle) / f64::from(processors);
                assert!((makespan - explained).abs() < 0.01 * latency, "{makespan} {explained}");
            }
        }
    }
}
