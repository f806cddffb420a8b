//! Claims that no instance may contradict: what is proved of the ideal, and of any run.

use scheduler::ideal::StatelessSteal;
use scheduler::{Pass, Span, Steal, Strategy, StrategySpec, Submit, Threshold};
use simulator::Checks;
use simulator::reference::{self, Checker};

use crate::runs::{Instance, Network, ideal, named, peers, span};
use crate::{Found, Parameters, Verdict};

fn steal(percent: u8) -> Steal {
    Steal::with_threshold(Threshold::new(percent).expect("thresholds are percentages"))
}

fn spec(percent: u8) -> StrategySpec {
    StrategySpec { strategy: Strategy::Steal(steal(percent)), ideal: true, fetch: Span::ZERO }
}

/// Every random instance, offline and online.
fn instances(parameters: &Parameters) -> impl Iterator<Item = (bool, Instance)> + '_ {
    (0..parameters.instances).map(|seed| {
        let offline = seed % 2 == 0;
        (offline, Instance::random(parameters, seed, offline))
    })
}

/// The violations found, how many runs, and a figure that says so.
fn violations(count: u64, runs: u64, what: &str, mut figures: Vec<String>) -> Found {
    figures.insert(0, format!("{count} violations in {runs} {what}"));
    Found { verdict: Verdict::unless(count), runs, figures }
}

/// Q1: the proved invariants of the ideal hold after every instant.
pub(crate) fn ideal_keeps_its_invariants(parameters: &Parameters) -> Found {
    let (mut runs, mut found, mut first) = (0, 0, None);
    for (_, instance) in instances(parameters) {
        for &percent in &parameters.thresholds {
            let (grid, jobs) = (&*instance.grid, &instance.jobs);
            let mut checker = Checker::new(grid, steal(percent), jobs);
            let mut policy = StatelessSteal::new(grid, steal(percent));
            let summary =
                reference::run_observed(&mut policy, jobs, grid, Pass::Batch, &mut |_| {}, &mut checker)
                    .expect("the workload fits the grid");
            let broken = checker.finish(&summary);
            runs += 1;
            found += broken.len() as u64;
            first = first
                .or_else(|| broken.first().map(|(at, violation)| format!("first: at {at} s, {violation}")));
        }
    }
    violations(found, runs, "runs, checked after every instant", first.into_iter().collect())
}

/// Q2: the ratio of the ideal stays below its proved ceiling, offline and online.
pub(crate) fn ideal_keeps_its_ceilings(parameters: &Parameters) -> Found {
    let (mut runs, mut found, mut worst) = (0, 0, [0.0_f64; 2]);
    for (offline, instance) in instances(parameters) {
        for &percent in &parameters.thresholds {
            let measured = ideal(&instance, spec(percent));
            let ceiling = analysis::theory::ceiling(&Strategy::Steal(steal(percent)), offline)
                .expect("thresholds between 0 and 100 have one");
            let share = measured.ratio() / ceiling;
            runs += 1;
            found += u64::from(share >= 1.0);
            let worst = &mut worst[usize::from(!offline)];
            *worst = worst.max(share);
        }
    }
    let figure = format!("closest to the ceiling: {:.3} of it offline, {:.3} online", worst[0], worst[1]);
    violations(found, runs, "runs", vec![figure])
}

/// Q3: with all jobs at the start, the deficiency V_k of the ideal is 0.
pub(crate) fn ideal_offline_has_no_deficiency(parameters: &Parameters) -> Found {
    let (mut runs, mut found) = (0, 0);
    for seed in 0..parameters.instances {
        let instance = Instance::random(parameters, seed, true);
        for &percent in &parameters.thresholds {
            let attribution = ideal(&instance, spec(percent)).attribution.expect("every job ended");
            runs += 1;
            found += u64::from(attribution.exact().total() != 0);
        }
    }
    violations(found, runs, "runs with all jobs at the start", Vec::new())
}

/// Q4: the certificate holds in runs of peers, with delay and loss.
pub(crate) fn the_certificate_holds(parameters: &Parameters) -> Found {
    let (mut runs, mut found, mut closest, mut broken) = (0, 0, 0.0_f64, Vec::new());
    for (_, instance) in instances(parameters) {
        for name in &parameters.strategies {
            for &delay in &parameters.delays_s {
                for &loss in &parameters.loss {
                    let mut network = Network::delayed(delay).unreliable(loss, loss / 2.0, delay / 2.0);
                    network.seed = runs;
                    network.submit = Submit::Home;
                    runs += 1;
                    let measured = match peers(&instance, named(name).strategy, &network) {
                        Ok(measured) => measured,
                        Err(violation) => {
                            found += 1;
                            broken.push(format!("{name}, delay {delay} s, loss {loss}: {violation}"));
                            continue;
                        }
                    };
                    let attribution = measured.attribution.expect("every job ended");
                    let exact = attribution.exact();
                    let sums = exact.foreign + exact.lost + exact.in_transit + exact.drain + exact.blind;
                    found += u64::from(!attribution.certificate.holds || sums != exact.total());
                    let bound = attribution.certificate.bound.as_secs_f64();
                    if bound > 0.0 {
                        closest = closest.max(measured.outcome.makespan().as_secs_f64() / bound);
                    }
                }
            }
        }
    }
    broken.truncate(3);
    let mut figures = vec![format!("closest: the makespan is {closest:.3} of the bound")];
    figures.extend(broken);
    violations(found, runs, "runs of peers", figures)
}

/// Q5: the ideal that fetches jobs keeps the bounds proved for its fetch time.
pub(crate) fn fetching_keeps_its_bounds(parameters: &Parameters) -> Found {
    let (mut runs, mut found, mut closest) = (0, 0, 0.0_f64);
    for (offline, instance) in instances(parameters) {
        for &percent in &parameters.thresholds {
            for &delay in &parameters.delays_s {
                let delta = span(delay);
                let measured = ideal(&instance, StrategySpec { fetch: delta, ..spec(percent) });
                let beta = steal(percent).threshold.beta_percent();
                let relations = analysis::theory::fetch::comparisons(
                    &measured.outcome,
                    &measured.bounds,
                    delta,
                    beta,
                    true,
                );
                runs += 1;
                found += relations.iter().filter(|relation| relation.within == Some(false)).count() as u64;
                // The bound on the makespan is the one that is sharp.
                if let (true, Some(is), Some(limit)) = (offline, relations[0].measured, relations[0].limit) {
                    closest = closest.max(is / limit);
                }
            }
        }
    }
    violations(
        found,
        runs,
        "runs",
        vec![format!("closest: the makespan is {closest:.3} of its bound offline")],
    )
}

/// Q20: every job starts exactly once, whatever the network does.
pub(crate) fn jobs_start_exactly_once(parameters: &Parameters) -> Found {
    let (mut runs, mut found, mut broken) = (0, 0, Vec::new());
    for (_, instance) in instances(parameters) {
        for name in &parameters.strategies {
            for &delay in &parameters.delays_s {
                for &loss in &parameters.loss {
                    let mut network = Network::delayed(delay).unreliable(loss, loss, 2.0 * delay);
                    network.seed = runs;
                    network.checks = Checks::Full;
                    runs += 1;
                    let wrong = match peers(&instance, named(name).strategy, &network) {
                        Ok(measured) => {
                            let contradictions = measured.outcome.contradictions.total();
                            let once = measured.outcome.is_complete() && contradictions == 0;
                            (!once).then(|| format!("{contradictions} events contradict each other"))
                        }
                        Err(violation) => Some(violation.to_string()),
                    };
                    if let Some(wrong) = wrong {
                        found += 1;
                        broken.push(format!("{name}, delay {delay} s, loss {loss}: {wrong}"));
                    }
                }
            }
        }
    }
    broken.truncate(3);
    violations(found, runs, "runs, owners checked after every step", broken)
}
