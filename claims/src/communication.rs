//! Claims about what delay does to job stealing.

use std::sync::Arc;

use scheduler::{Grid, Span, TimedJob};

use crate::cells::{Group, Of, Question, Says, Unit, ask};
use crate::runs::{Instance, Measured, Network, change, job, named, peers};
use crate::tally::Tally;
use crate::{Found, Parameters};

/// Width-weighted mean run time in seconds.
fn weighted_run_time(instance: &Instance) -> f64 {
    let width: f64 = instance.jobs.iter().map(|job| f64::from(job.spec.processors)).sum();
    analysis::prediction::work_per_job(&instance.jobs) * instance.jobs.len() as f64 / width
}

/// Q11: delays are `relative_delays` times the weighted mean run time, as costs 2 d of a steal. Wrong: times a hundred.
pub(crate) fn small_delays_cost_waits_only(parameters: &Parameters, wrong: bool) -> Found {
    let settings = parameters
        .loads
        .iter()
        .flat_map(|&load| parameters.relative_delays.iter().map(move |&relative| (load, relative)));
    let groups = settings.map(|(load, relative)| {
        let relative = if wrong { 100.0 * relative } else { relative };
        let question = |what: &str, column, unit, says| Question {
            name: format!("load {load}, Δ/p_w = {relative}, {what}"),
            of: Of::Mean(column),
            unit,
            says: Some(says),
        };
        Group {
            questions: vec![
                question("ratio", 0, Unit::Change, Says::Within(parameters.margin)),
                question("mean wait", 1, Unit::Seconds, Says::Above(0.0)),
            ],
            measure: Box::new(move |seed| {
                let strategy = named("st:50").strategy;
                let instance = Instance::model(&parameters.sites, parameters.jobs, load, seed);
                let delay = relative * weighted_run_time(&instance) / 2.0;
                let run =
                    |delay| peers(&instance, strategy, &Network::delayed(delay)).expect("nothing is lost");
                let (free, delayed) = (run(0.0), run(delay));
                vec![
                    change(delayed.ratio(), free.ratio(), 0.0),
                    delayed.metrics.wait_mean_s - free.metrics.wait_mean_s,
                ]
            }),
            runs: 2,
        }
    });
    ask(parameters, groups.collect())
}

/// Processors that stolen jobs kept busy, on average between the first start and the last, over what one request at a
/// time can keep busy: (n / (n - 1)) E[size p] / tau for n stolen jobs, which begin n - 1 round trips apart at least.
fn share_of_cap(measured: &Measured, delay: f64) -> Option<f64> {
    let stolen: Vec<_> = measured.outcome.jobs.iter().filter(|job| job.stolen()).collect();
    let starts = || stolen.iter().filter_map(|job| job.start);
    let (first, last) = (starts().min()?, starts().max()?);
    if stolen.len() < 2 || first == last {
        return None;
    }
    let busy: f64 = stolen
        .iter()
        .filter_map(|job| {
            let (start, end) = job.start.zip(job.end)?;
            Some(f64::from(job.processors) * end.min(last).since(start.min(last)).as_secs_f64())
        })
        .sum();
    let length = last.since(first).as_secs_f64();
    let work = stolen.iter().map(|job| job.work()).sum::<i128>() as f64 / 1e6;
    let round_trip = Span::from_micros((2e6 * delay).round() as i64).as_secs_f64();
    let gaps = (stolen.len() - 1) as f64;
    Some(busy / length / (work / gaps / round_trip))
}

/// Q12: a narrow site with all jobs, and a wide one that pulls one job per request. Wrong: four jobs per answer.
pub(crate) fn serial_pulling_is_capped(parameters: &Parameters, wrong: bool) -> Found {
    let grid = Arc::new(Grid::of_sizes(&parameters.sites).expect("the parameters name a grid"));
    let narrow = u64::from(grid.sizes()[0]);
    let (mut sum, mut figures) = (Tally::default(), Vec::new());
    for &delay in &parameters.delays_s {
        let tally = Tally::over(1..parameters.seeds + 1, |seed| {
            // Whole seconds from 1 to 100, widths that fit the narrow site, in an order that depends on the seed.
            let jobs: Vec<TimedJob> = (1..=parameters.jobs as u64)
                .map(|id| {
                    let drawn = id.wrapping_mul(2_654_435_761).wrapping_add(seed * 97) >> 7;
                    job(id, 0, 1 + (drawn % narrow) as u32, 1 + (drawn / narrow % 100) as i64)
                })
                .collect();
            let instance = Instance { grid: Arc::clone(&grid), jobs };
            let mut network = Network::delayed(delay);
            network.options.batch = if wrong { 4 } else { 1 };
            let measured = peers(&instance, named("st:50").strategy, &network).expect("nothing is lost");
            let mut tally = Tally { runs: 1, ..Tally::default() };
            if let Some(share) = share_of_cap(&measured, delay) {
                tally.near(0, share);
                if share > 1.0 + 1e-9 {
                    tally.violated(|| format!("d = {delay} s, seed {seed}: {share:.3} of the cap"));
                }
            }
            tally
        });
        figures.push(format!(
            "d = {delay} s: at most {:.3} of what one request at a time can keep busy",
            tally.closest[0]
        ));
        sum = sum.and(tally);
    }
    sum.found("runs", figures)
}
