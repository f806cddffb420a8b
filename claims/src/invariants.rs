//! Claims that no instance may contradict: what is proved of the ideal, and of any run.

use analysis::theory::fetch::{FetchBounds, FetchSetting, Suffix};
use scheduler::ideal::{GreedySteal, StatelessSteal};
use scheduler::{
    EventKind, LocalScheduler, Pass, Policy, Span, Steal, Strategy, StrategySpec, Submit, Threshold,
};
use simulator::Checks;
use simulator::reference::{self, Checker};

use crate::cells::{Group, Of, Question, Says, Unit, ask};
use crate::runs::{Instance, Network, ideal, ideal_attributed, named, peers, peers_seen_by, span};
use crate::tally::Tally;
use crate::{Found, Parameters, Verdict};

fn steal(percent: u8) -> Steal {
    Steal::with_threshold(Threshold::new(percent).expect("thresholds are percentages"))
}

fn spec(percent: u8) -> StrategySpec {
    StrategySpec { strategy: Strategy::Steal(steal(percent)), ideal: true, fetch: Span::ZERO }
}

/// Every random instance, even seeds offline and odd ones over time.
fn over_instances(
    parameters: &Parameters,
    one: impl Fn(u64, bool, &Instance) -> Tally + Send + Sync,
) -> Tally {
    Tally::over(0..parameters.instances, |seed| {
        let offline = seed % 2 == 0;
        one(seed, offline, &Instance::random(parameters, seed, offline))
    })
}

/// Q1: the proved invariants of the ideal hold after every instant. Wrong: it steals from any smaller site.
pub(crate) fn ideal_keeps_its_invariants(parameters: &Parameters, wrong: bool) -> Found {
    fn violations(policy: &mut impl Policy, instance: &Instance, percent: u8) -> Vec<String> {
        let (grid, jobs) = (&*instance.grid, &instance.jobs);
        let mut checker = Checker::new(grid, steal(percent), jobs);
        let summary = reference::run_observed(policy, jobs, grid, Pass::Batch, &mut |_| {}, &mut checker)
            .expect("the workload fits the grid");
        checker.finish(&summary).iter().map(|(at, violation)| format!("at {at} s, {violation}")).collect()
    }
    let tally = over_instances(parameters, |_, _, instance| {
        let mut tally = Tally::default();
        for &percent in &parameters.thresholds {
            let grid = &*instance.grid;
            let broken = if wrong {
                violations(&mut GreedySteal::new(grid, steal(percent)), instance, percent)
            } else {
                violations(&mut StatelessSteal::new(grid, steal(percent)), instance, percent)
            };
            tally.runs += 1;
            broken.into_iter().for_each(|broken| tally.violated(|| broken));
        }
        tally
    });
    tally.found("runs, checked after every instant", Vec::new())
}

/// Q2: the ratio of the ideal stays below its proved ceiling, offline and online. Wrong: the ceiling is half of it.
pub(crate) fn ideal_keeps_its_ceilings(parameters: &Parameters, wrong: bool) -> Found {
    let tally = over_instances(parameters, |_, offline, instance| {
        let mut tally = Tally::default();
        for &percent in &parameters.thresholds {
            let proved =
                analysis::theory::ceiling(&Strategy::Steal(steal(percent)), LocalScheduler::Easy, offline)
                    .expect("thresholds between 0 and 100 have one");
            let ceiling = if wrong { proved / 2.0 } else { proved };
            let ratio = ideal(instance, spec(percent)).ratio();
            tally.runs += 1;
            tally.near(usize::from(!offline), ratio / ceiling);
            if ratio >= ceiling {
                tally
                    .violated(|| format!("st:{percent}: a ratio of {ratio:.3}, the ceiling is {ceiling:.3}"));
            }
        }
        tally
    });
    let [offline, online] = tally.closest;
    tally.found(
        "runs",
        vec![format!("closest to the ceiling: {offline:.3} of it offline, {online:.3} online")],
    )
}

/// Q3: with all jobs at the start, the deficiency V_k of the ideal is 0. Wrong: jobs come over time.
pub(crate) fn ideal_offline_has_no_deficiency(parameters: &Parameters, wrong: bool) -> Found {
    let tally = Tally::over(0..parameters.instances, |seed| {
        let instance = Instance::random(parameters, seed, !wrong);
        let mut tally = Tally::default();
        for &percent in &parameters.thresholds {
            let attribution =
                ideal_attributed(&instance, spec(percent)).attribution.expect("every job ended");
            tally.runs += 1;
            if attribution.exact().total() != 0 {
                tally.violated(|| format!("st:{percent}: {} processor-seconds", attribution.total));
            }
        }
        tally
    });
    tally.found("runs with all jobs at the start", Vec::new())
}

/// Q4: the certificate holds in runs of peers, with delay and loss. Wrong: its bound is without V_k.
pub(crate) fn the_certificate_holds(parameters: &Parameters, wrong: bool) -> Found {
    let tally = over_instances(parameters, |seed, _, instance| {
        let mut tally = Tally::default();
        for name in &parameters.strategies {
            for &delay in &parameters.delays_s {
                for &loss in &parameters.loss {
                    let mut network = Network::delayed(delay).unreliable(loss, loss / 2.0, delay / 2.0);
                    network.seed = 1_000 * seed + tally.runs;
                    network.submit = Submit::Home;
                    network.attribute = true;
                    tally.runs += 1;
                    let measured = match peers(instance, named(name).strategy, &network) {
                        Ok(measured) => measured,
                        Err(violation) => {
                            tally.violated(|| format!("{name}, delay {delay} s, loss {loss}: {violation}"));
                            continue;
                        }
                    };
                    let attribution = measured.attribution.expect("every job ended");
                    let mut bound = attribution.certificate.bound.as_secs_f64();
                    let mut holds = attribution.certificate.holds;
                    let makespan = measured.outcome.makespan().as_secs_f64();
                    if wrong {
                        let above = &instance.grid.sizes()[instance.grid.rank(attribution.k)..];
                        let counted: f64 = above.iter().map(|&size| f64::from(size)).sum();
                        bound -= 100.0 * attribution.total / (f64::from(attribution.beta_percent) * counted);
                        holds &= makespan <= bound;
                    }
                    if !holds {
                        tally.violated(|| {
                            format!("{name}, delay {delay} s, loss {loss}: {makespan} s, the bound is {bound:.3} s")
                        });
                    }
                    if bound > 0.0 {
                        tally.near(0, makespan / bound);
                    }
                }
            }
        }
        tally
    });
    let closest = tally.closest[0];
    tally.found("runs of peers", vec![format!("closest: the makespan is {closest:.3} of the bound")])
}

/// Q5: the ideal that fetches jobs keeps the bounds proved for its fetch time, and its ratio grows by no more than they
/// do, on average. Wrong: bounds without the fetch time, a slope of a tenth.
pub(crate) fn fetching_keeps_its_bounds(parameters: &Parameters, wrong: bool) -> Found {
    let tally = over_instances(parameters, |_, offline, instance| {
        let mut tally = Tally::default();
        for &percent in &parameters.thresholds {
            for &delay in &parameters.delays_s {
                let delta = span(delay);
                let measured = ideal(instance, StrategySpec { fetch: delta, ..spec(percent) });
                let beta = steal(percent).threshold.beta_percent();
                let counted = if wrong { Span::ZERO } else { delta };
                let relations = analysis::theory::fetch::comparisons(
                    &measured.outcome,
                    &measured.bounds,
                    counted,
                    beta,
                    true,
                );
                tally.runs += 1;
                for relation in relations.iter().filter(|relation| relation.verdict.within() == Some(false)) {
                    tally.violated(|| format!("st:{percent}, fetched in {delay} s: {}", relation.name));
                }
                // The bound on the makespan is the one that is sharp.
                if let (true, Some(is), Some(limit)) = (offline, relations[0].measured, relations[0].limit) {
                    tally.near(0, is / limit);
                }
            }
        }
        tally
    });
    let closest = tally.closest[0];
    let kept =
        tally.found("runs", vec![format!("closest: the makespan is {closest:.3} of its bound offline")]);
    let slopes = ask(parameters, slopes(parameters, wrong));
    let verdict = match (kept.verdict, slopes.verdict) {
        (Verdict::Holds, verdict) => verdict,
        (verdict, _) => verdict,
    };
    let figures = kept.figures.into_iter().chain(slopes.figures).collect();
    Found { verdict, runs: kept.runs + slopes.runs, cells: slopes.cells, figures }
}

/// By how much the ratio grew, in parts of what the bound allows it: offline, for each threshold and fetch time.
fn slopes(parameters: &Parameters, wrong: bool) -> Vec<Group<'_>> {
    let cells = parameters
        .thresholds
        .iter()
        .flat_map(|&percent| parameters.delays_s.iter().map(move |&delay| (percent, delay)));
    cells
        .map(|(percent, delay)| Group {
            questions: vec![Question {
                name: format!("st:{percent}, fetched in {delay} s, growth over the slope of the bound"),
                of: Of::Mean(0),
                unit: Unit::Number,
                says: Some(Says::Below(if wrong { 0.1 } else { 1.0 })),
            }],
            // Instances of their own: those of the bounds have seeds from 0 on.
            measure: Box::new(move |seed| {
                let instance = Instance::random(parameters, 2_000_000 + seed, true);
                let at = |fetch| ideal(&instance, StrategySpec { fetch, ..spec(percent) });
                let (free, fetched) = (at(Span::ZERO), at(span(delay)));
                let bound = |delta| {
                    let setting = FetchSetting {
                        delta,
                        beta_percent: steal(percent).threshold.beta_percent(),
                        offline: true,
                        longest: Span::ZERO,
                        last: Span::ZERO,
                        bound: fetched.bounds.proof,
                    };
                    FetchBounds::of(setting, &Suffix::all(&fetched.outcome)).ratio.unwrap_or(0.0)
                };
                let allowed = bound(span(delay)) - bound(Span::ZERO);
                vec![(fetched.ratio() - free.ratio()) / allowed.max(f64::MIN_POSITIVE)]
            }),
            runs: 2,
        })
        .collect()
}

/// Q20: every job starts exactly once, whatever the network does. Wrong: the first start is told twice.
pub(crate) fn jobs_start_exactly_once(parameters: &Parameters, wrong: bool) -> Found {
    let tally = over_instances(parameters, |seed, _, instance| {
        let mut tally = Tally::default();
        for name in &parameters.strategies {
            for &delay in &parameters.delays_s {
                for &loss in &parameters.loss {
                    let mut network = Network::delayed(delay).unreliable(loss, loss, 2.0 * delay);
                    network.seed = 1_000 * seed + tally.runs;
                    network.checks = Checks::Full;
                    tally.runs += 1;
                    let mut again = wrong;
                    let seen = peers_seen_by(instance, named(name).strategy, &network, |event, take| {
                        take(event);
                        if again && matches!(event.kind, EventKind::Started { .. }) {
                            again = false;
                            take(event);
                        }
                    });
                    let reason = match seen {
                        Ok(measured) => {
                            let contradictions = measured.outcome.contradictions.total();
                            let once = measured.outcome.is_complete() && contradictions == 0;
                            (!once).then(|| format!("{contradictions} events contradict each other"))
                        }
                        Err(violation) => Some(violation.to_string()),
                    };
                    if let Some(reason) = reason {
                        tally.violated(|| format!("{name}, delay {delay} s, loss {loss}: {reason}"));
                    }
                }
            }
        }
        tally
    });
    tally.found("runs, owners checked after every step", Vec::new())
}
