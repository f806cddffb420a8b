//! Brokers: families on which they have no constant ratio, and instances that their theorems hold on.

use std::sync::Arc;

use analysis::theory::brokers::{Facts, Proof, guarantee};
use analysis::{Setting, Verdict, theory};
use scheduler::{Broker, Grid, LocalScheduler, Span, TimedJob};

use crate::families::harmonic;
use crate::runs::{Instance, Measured, ideal_under, job, named};
use crate::tally::Tally;
use crate::{Found, Parameters};

/// Brokers that Quezada Pina 2012, §3.3, says have no constant ratio.
const RULES: [&str; 5] = ["ml", "mlp", "mpl", "mlb", "mct"];

/// Two equal sites of 2 n processors and n rounds of two sequential jobs, then two that need a whole site (Quezada Pina 2012,
/// §3.3). The sequential ones run n + 1, n + 2 … 2 n s, each longer than those before it, so that no reservation lets two rounds
/// run together; the others run 1 s. The optimum is 2 n: one site runs all that is sequential, the other the rest.
pub(crate) fn alternating(n: u32) -> Instance {
    let rounds = (1..=i64::from(n)).map(|round| i64::from(n) + round);
    let rows = rounds.flat_map(|length| [(1, length), (1, length), (2 * n, 1), (2 * n, 1)]);
    let jobs: Vec<TimedJob> = rows.zip(1..).map(|((width, length), id)| job(id, 0, width, length)).collect();
    Instance { grid: Arc::new(Grid::of_sizes(&[2 * n; 2]).expect("they have processors")), jobs }
}

/// The harmonic family on sites so nearly equal that loads per processor are in the order of counts: those of c and c + 1
/// jobs differ by more than sizes make of it while 2 m c is below n.
fn nearly_equal(m: u32) -> (Instance, i64, i64) {
    let (_, length) = harmonic(m, m);
    let listed: i64 = (1..=i64::from(m)).map(|part| length / part).sum();
    let n = u32::try_from(4 * listed * i64::from(m)).expect("the family is small");
    (harmonic(m, n).0, length, listed)
}

fn broker(name: &str) -> Broker {
    *named(name).strategy.broker().unwrap_or_else(|| panic!("{name} is no broker"))
}

/// What is proved of a run and not so.
fn violations(measured: &Measured, name: &str, local: LocalScheduler, wrong: bool) -> Vec<String> {
    let setting =
        Setting { strategy: named(name), local, messages: analysis::Messages::FREE, local_users: false };
    let relations = theory::compare(&measured.outcome, &measured.bounds, setting);
    let mut broken: Vec<String> = relations
        .iter()
        .filter(|relation| relation.verdict == Verdict::Violated)
        .map(|relation| {
            format!("{name}: {} {:?}, at most {:?}", relation.name, relation.measured, relation.limit)
        })
        .collect();
    let proof = Proof::of(&measured.outcome, &broker(name));
    if wrong && proof.is_some_and(|proof| measured.outcome.makespan() > proof.certificate(0)) {
        broken.push(format!("{name}: the makespan is above r_d + p_d"));
    }
    broken
}

/// Q21: `family` are the n of the alternating family, `processors` the m of the harmonic one, `strategies` run on random
/// instances under list scheduling. Wrong: sites start whatever fits where jobs alternate, and certificates count no work.
pub(crate) fn theorems_hold_and_families_have_none(parameters: &Parameters, wrong: bool) -> Found {
    let (mut tally, mut figures) = (Tally::default(), Vec::new());
    for &n in &parameters.family {
        let instance = alternating(u32::try_from(n).expect("the family is small"));
        // Of each site, one round after another; and under list scheduling.
        let (all, half) = (3 * n * (n + 1) / 2, (3 * n * n + 5 * n) / 2);
        let easy = if wrong { LocalScheduler::List } else { LocalScheduler::Easy };
        for rule in RULES {
            for (a, local, expected) in [
                ("", easy, all),
                (",a=0.5", easy, half),
                ("", LocalScheduler::List, 3 * n),
                (",a=0.5", LocalScheduler::List, 4 * n),
            ] {
                let name = format!("ideal/broker:{rule}{a}");
                let makespan = ideal_under(&instance, named(&name), local).outcome.makespan();
                tally.runs += 1;
                if makespan != Span::from_secs(expected) {
                    tally.violated(|| format!("n = {n}, {name}: {makespan} s, expected {expected}"));
                }
            }
        }
        figures.push(format!(
            "alternating n = {n}: ratio {:.2} under EASY, {:.2} with a = 0.5; under LIST 1.5 and 2",
            all as f64 / (2 * n) as f64,
            half as f64 / (2 * n) as f64
        ));
    }
    for &m in &parameters.processors {
        let (instance, length, listed) = nearly_equal(m);
        let mut worst: f64 = 0.0;
        for rule in RULES {
            let plain = ideal_under(&instance, named(&format!("ideal/broker:{rule}")), LocalScheduler::Easy);
            let makespan = plain.outcome.makespan();
            if makespan != Span::from_secs(listed) {
                tally.violated(|| format!("m = {m}, {rule}: {makespan} s, expected {listed}"));
            }
            let name = format!("ideal/broker:{rule},a=0.5");
            let admissible = ideal_under(&instance, named(&name), LocalScheduler::List);
            worst = worst.max(admissible.outcome.makespan().as_secs_f64() / length as f64);
            violations(&admissible, &name, LocalScheduler::List, false)
                .into_iter()
                .for_each(|broken| tally.violated(|| broken));
            tally.runs += 2;
        }
        figures.push(format!(
            "harmonic m = {m}: ratio {:.3}, expected H_m; at most {worst:.3} with a = 0.5",
            listed as f64 / length as f64
        ));
    }
    let random = Tally::over(0..parameters.instances, |seed| on_random(parameters, seed, wrong));
    let [ratio, certificate] = random.closest;
    figures.push(format!(
        "random instances: at most {ratio:.3} of the offline ceiling, also online, and {certificate:.3} of a certificate with c = 2"
    ));
    tally.and(random).found("runs", figures)
}

/// Every strategy on one instance, offline where the seed is even.
fn on_random(parameters: &Parameters, seed: u64, wrong: bool) -> Tally {
    let instance = Instance::random(parameters, seed, seed.is_multiple_of(2));
    let mut tally = Tally::default();
    for name in &parameters.strategies {
        let (local, broker) = (LocalScheduler::List, broker(name));
        let measured = ideal_under(&instance, named(name), local);
        tally.runs += 1;
        violations(&measured, name, local, wrong).into_iter().for_each(|broken| tally.violated(|| broken));
        let smallest = instance.grid.sizes()[0];
        let widths = || instance.jobs.iter().map(|job| job.spec.processors);
        let facts = Facts::of(smallest, widths(), true);
        // Under list scheduling what holds offline holds online, too.
        if let Ok(guarantee) = guarantee(&broker, local, facts) {
            let part = measured.ratio() / guarantee.ratio();
            tally.near(0, part);
            if part > 1.0 + 1e-9 {
                tally.violated(|| format!("{name}: {part} of the offline ceiling"));
            }
        }
        for relation in [Proof::of(&measured.outcome, &broker)].into_iter().flatten() {
            let limit = relation.certificate(2).as_secs_f64();
            tally.near(1, measured.outcome.makespan().as_secs_f64() / limit.max(f64::MIN_POSITIVE));
        }
    }
    tally
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The step of the published proof that list scheduling does not bear: C_max <= C_k + p_max, C_k what was planned before
    /// the last job came. Jobs of 5 processors go first and run beside those of 2; one processor that is taken when the first
    /// of them was to start lets three of 2 run instead, and they leave it no room until all have run.
    #[test]
    fn a_job_that_is_given_last_can_cost_more_than_it_runs() {
        let n = 40;
        let running = [(0, 4, 2), (0, 2, 3)];
        let wide = std::iter::repeat_n((0, 5, 3), n);
        let narrow = [(0, 2, 2)].into_iter().chain(std::iter::repeat_n((0, 2, 3), n));
        let rows: Vec<(i64, u32, i64)> =
            running.into_iter().chain(wide).chain(narrow).chain([(1, 1, 2)]).collect();
        let jobs: Vec<TimedJob> = rows
            .into_iter()
            .zip(1..)
            .map(|((submit, width, length), id)| job(id, submit, width, length))
            .collect();
        let grid = Arc::new(Grid::of_sizes(&[7]).unwrap());
        let makespan = |jobs: &[TimedJob]| {
            let instance = Instance { grid: grid.clone(), jobs: jobs.to_vec() };
            let spec = named("ideal/broker:mct");
            ideal_under(&instance, spec, LocalScheduler::List).outcome.makespan()
        };
        let planned = makespan(&jobs[..jobs.len() - 1]);
        let made = makespan(&jobs);
        // The last job runs 2 s, and the longest 3 s.
        assert!(made > planned + Span::from_secs(30), "planned {planned} s, made {made} s");
    }

    /// A local scheduler that keeps jobs waiting that fit is not 2-competitive, whatever the broker: 2 max(p_max, W/M) is 4 n
    /// and less here.
    #[test]
    fn one_site_under_easy_needs_more_than_twice_its_bound() {
        let rounds = 20;
        let instance = alternating(rounds);
        let alone = Instance {
            grid: Arc::new(Grid::of_sizes(&[2 * rounds]).unwrap()),
            jobs: instance.jobs.into_iter().filter(|job| job.spec.id.0 % 2 == 1).collect(),
        };
        for local in LocalScheduler::ALL {
            let measured = ideal_under(&alone, named("ideal/broker:mlb"), local);
            let bound = measured.bounds.time.max(measured.bounds.area_thesis);
            let makespan = measured.outcome.makespan();
            assert_eq!(makespan <= bound + bound, local == LocalScheduler::List, "{local:?}: {makespan}");
            // One round after another, or all that is sequential together.
            let expected =
                if local == LocalScheduler::List { 3 * rounds } else { 3 * rounds * (rounds + 1) / 2 };
            assert_eq!(makespan, Span::from_secs(expected.into()), "{local:?}");
        }
    }
}
