//! Claims about what delay does to job stealing.

use std::sync::Arc;

use scheduler::{Grid, Span, TimedJob};

use crate::runs::{Instance, Network, job, named, paired, peers};
use crate::{Found, Parameters, Verdict};

/// Width-weighted mean run time in seconds.
fn weighted_run_time(instance: &Instance) -> f64 {
    let width: f64 = instance.jobs.iter().map(|job| f64::from(job.spec.processors)).sum();
    analysis::prediction::work_per_job(&instance.jobs) * instance.jobs.len() as f64 / width
}

/// Q11: delays are `relative_delays` times the weighted mean run time, as costs 2 d of a steal.
pub(crate) fn small_delays_cost_waits_only(parameters: &Parameters) -> Found {
    let strategy = named("st:50").strategy;
    let (mut runs, mut figures) = (0, Vec::new());
    let margin = 100.0 * parameters.equivalence;
    let (mut moved, mut still, mut grew, mut shrank, mut cases) = (0, 0, 0, 0, 0);
    for &load in &parameters.loads {
        for &relative in &parameters.relative_delays {
            let (mut ratios, mut waits) = (Vec::new(), Vec::new());
            for seed in 1..=parameters.seeds {
                let instance = Instance::model(&parameters.sites, parameters.jobs, load, seed);
                let delay = relative * weighted_run_time(&instance) / 2.0;
                let run =
                    |delay| peers(&instance, strategy, &Network::delayed(delay)).expect("nothing is lost");
                let (free, delayed) = (run(0.0), run(delay));
                runs += 2;
                ratios.push(100.0 * (delayed.ratio() / free.ratio() - 1.0));
                let wait = free.metrics.wait_mean_s.max(1.0);
                waits.push(100.0 * (delayed.metrics.wait_mean_s / wait - 1.0));
            }
            let ((ratio, ratio_half), (wait, wait_half)) = (paired(&ratios), paired(&waits));
            cases += 1;
            moved += u64::from(ratio.abs() - ratio_half > margin);
            still += u64::from(ratio.abs() + ratio_half <= margin);
            grew += u64::from(wait - wait_half > 0.0);
            shrank += u64::from(wait + wait_half < 0.0);
            figures.push(format!(
                "load {load}, Delta/p_w = {relative}: ratio {ratio:+.2} +- {ratio_half:.2} %, mean wait {wait:+.1} +- \
                 {wait_half:.1} %"
            ));
        }
    }
    figures.insert(
        0,
        format!(
            "of {cases} intervals of the ratio {still} are within {margin} % and {moved} outside; of those of the mean wait {grew} \
             are above 0 and {shrank} below"
        ),
    );
    let verdict = match (moved + shrank, still + grew == 2 * cases) {
        (0, true) => Verdict::Holds,
        (0, false) => Verdict::Inconclusive,
        _ => Verdict::Fails,
    };
    Found { verdict, runs, figures }
}

/// Q12: a narrow site with all jobs, and a wide one that pulls one job per request.
pub(crate) fn serial_pulling_is_capped(parameters: &Parameters) -> Found {
    let strategy = named("st:50").strategy;
    let (mut runs, mut exceeded, mut figures) = (0, 0, Vec::new());
    for &delay in &parameters.delays_s {
        let mut closest = 0.0_f64;
        for seed in 1..=parameters.seeds {
            let grid = Arc::new(Grid::of_sizes(&parameters.sites).expect("the parameters name a grid"));
            // Whole seconds from 1 to 100, widths that fit the narrow site, in an order that depends on the seed.
            let narrow = u64::from(grid.sizes()[0]);
            let jobs: Vec<TimedJob> = (1..=parameters.jobs as u64)
                .map(|id| {
                    let drawn = id.wrapping_mul(2_654_435_761).wrapping_add(seed * 97) >> 7;
                    job(id, 0, 1 + (drawn % narrow) as u32, 1 + (drawn / narrow % 100) as i64)
                })
                .collect();
            let instance = Instance { grid, jobs };
            let mut network = Network::delayed(delay);
            network.batch = 1;
            let measured = peers(&instance, strategy, &network).expect("nothing is lost");
            runs += 1;
            let stolen: Vec<_> = measured.outcome.jobs.iter().filter(|job| job.stolen()).collect();
            let starts = || stolen.iter().filter_map(|job| job.start);
            let (Some(first), Some(last)) = (starts().min(), starts().max()) else { continue };
            if last == first || stolen.len() < 2 {
                continue;
            }
            let work = stolen.iter().map(|job| job.work()).sum::<i128>() as f64 / 1e6 / stolen.len() as f64;
            let rate = (stolen.len() - 1) as f64 / last.since(first).as_secs_f64();
            let round_trip = Span::from_micros((2e6 * delay).round() as i64).as_secs_f64();
            let share = rate * work / (work / round_trip);
            closest = closest.max(share);
            exceeded += u64::from(share > 1.0 + 1e-9);
        }
        figures
            .push(format!("d = {delay} s: at most {closest:.3} of what one request at a time can keep busy"));
    }
    figures.insert(0, format!("{exceeded} of {runs} runs exceed the cap"));
    Found { verdict: Verdict::unless(exceeded), runs, figures }
}
