//! Claims that one way of sharing work is better than another, by differences paired by seed.

use std::sync::Arc;

use links::Model;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use scheduler::{Grid, JobId, JobSpec, Labels, SiteId, Span, Submit, Time, TimedJob};

use crate::runs::{Instance, Measured, Network, named, paired, peers, span};
use crate::{Found, Parameters, Verdict};

fn run(instance: &Instance, strategy: &str, network: &Network) -> Measured {
    peers(instance, named(strategy).strategy, network)
        .unwrap_or_else(|violation| panic!("{strategy}: {violation}; nothing is lost here"))
}

/// Where a difference in percent lies, as an interval against a margin.
fn against(mean: f64, half: f64, margin: f64) -> &'static str {
    if mean - half > margin {
        "higher"
    } else if mean + half < -margin {
        "lower"
    } else if mean + half <= margin && mean - half >= -margin {
        "the same"
    } else {
        "open"
    }
}

/// How much a value is above another, in percent.
fn above(value: f64, reference: f64) -> f64 {
    100.0 * (value / reference.max(1e-9) - 1.0)
}

/// Q13: `strategies[0]` is ST50, the others have one queue.
pub(crate) fn one_queue_is_no_worse(parameters: &Parameters) -> Found {
    let (mut runs, mut figures, mut worse, mut open) = (0, Vec::new(), 0, 0);
    for &load in &parameters.loads {
        for &delay in &parameters.delays_s {
            let network = Network::delayed(delay);
            let all: Vec<Vec<Measured>> = parameters
                .strategies
                .iter()
                .map(|name| {
                    (1..=parameters.seeds)
                        .map(|seed| {
                            let instance = Instance::model(&parameters.sites, parameters.jobs, load, seed);
                            run(&instance, name, &network)
                        })
                        .collect()
                })
                .collect();
            runs += parameters.seeds * parameters.strategies.len() as u64;
            for (name, one) in parameters.strategies.iter().zip(&all).skip(1) {
                let pairs = || one.iter().zip(&all[0]);
                let ratios: Vec<f64> = pairs().map(|(a, b)| above(a.ratio(), b.ratio())).collect();
                let waits: Vec<f64> = pairs()
                    .map(|(a, b)| above(a.metrics.wait_mean_s.max(1.0), b.metrics.wait_mean_s.max(1.0)))
                    .collect();
                let deviation = |runs: &[Measured]| {
                    let ratios: Vec<f64> = runs.iter().map(Measured::ratio).collect();
                    let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
                    (ratios.iter().map(|ratio| (ratio - mean).powi(2)).sum::<f64>()
                        / (ratios.len() as f64 - 1.0).max(1.0))
                    .sqrt()
                };
                let ((ratio, ratio_half), (wait, wait_half)) = (paired(&ratios), paired(&waits));
                if delay == 0.0 {
                    worse += u64::from(ratio - ratio_half > 0.0) + u64::from(wait - wait_half > 0.0);
                    open += u64::from(ratio + ratio_half > 0.0 && ratio - ratio_half <= 0.0);
                }
                figures.push(format!(
                    "load {load}, d = {delay} s, {name} against {}: ratio {ratio:+.2} +- {ratio_half:.2} %, wait {wait:+.1} +- \
                     {wait_half:.1} %, sd of ratio {:.4} against {:.4}",
                    parameters.strategies[0],
                    deviation(one),
                    deviation(&all[0])
                ));
            }
        }
    }
    figures
        .insert(0, format!("without delay, {worse} means are significantly worse, {open} ratios are open"));
    let verdict = match (worse, open) {
        (0, 0) => Verdict::Holds,
        (0, _) => Verdict::Inconclusive,
        _ => Verdict::Fails,
    };
    Found { verdict, runs, figures }
}

/// Q14: all `strategies` against the first, with a margin of `equivalence`.
pub(crate) fn order_and_fit_do_not_matter(parameters: &Parameters) -> Found {
    let (mut runs, mut figures, mut differ, mut open) = (0, Vec::new(), 0, 0);
    let margin = 100.0 * parameters.equivalence;
    for &load in &parameters.loads {
        for &delay in &parameters.delays_s {
            let network = Network::delayed(delay);
            let ratios = |name: &str| -> Vec<f64> {
                (1..=parameters.seeds)
                    .map(|seed| {
                        let instance = Instance::model(&parameters.sites, parameters.jobs, load, seed);
                        run(&instance, name, &network).ratio()
                    })
                    .collect()
            };
            let first = ratios(&parameters.strategies[0]);
            runs += parameters.seeds * parameters.strategies.len() as u64;
            for name in &parameters.strategies[1..] {
                let differences: Vec<f64> =
                    ratios(name).iter().zip(&first).map(|(a, b)| above(*a, *b)).collect();
                let (mean, half) = paired(&differences);
                let word = against(mean, half, margin);
                differ += u64::from(matches!(word, "higher" | "lower"));
                open += u64::from(word == "open");
                figures.push(format!(
                    "load {load}, d = {delay} s, {name}: ratio {mean:+.2} +- {half:.2} % against {}: {word}",
                    parameters.strategies[0]
                ));
            }
        }
    }
    figures.insert(0, format!("{differ} differences of more than {margin} %, {open} open"));
    let verdict = match (differ, open) {
        (0, 0) => Verdict::Holds,
        (0, _) => Verdict::Inconclusive,
        _ => Verdict::Fails,
    };
    Found { verdict, runs, figures }
}

/// Two clusters of sites: `delays_s[0]` inside, `delay` between.
fn clusters(sites: usize, inside: Span, between: Span) -> Model {
    let of = |from: usize, to: usize| match (from == to, (from < sites / 2) == (to < sites / 2)) {
        (true, _) => Span::ZERO,
        (_, true) => inside,
        _ => between,
    };
    Model::matrix((0..sites).map(|from| (0..sites).map(|to| of(from, to)).collect()).collect())
}

/// Q15: `strategies` are by load, then by distance; between clusters `delays_s`, inside a hundredth of it.
pub(crate) fn load_beats_distance(parameters: &Parameters) -> Found {
    let (mut runs, mut figures, mut words) = (0, Vec::new(), Vec::new());
    for &load in &parameters.loads {
        for &delay in &parameters.delays_s {
            let (mut waits, mut messages) = (Vec::new(), Vec::new());
            for seed in 1..=parameters.seeds {
                let instance = Instance::model(&parameters.sites, parameters.jobs, load, seed);
                let mut network = Network::delayed(0.0);
                network.model = clusters(parameters.sites.len(), span(delay / 100.0), span(delay));
                network.submit = Submit::Origin;
                network.seed = seed;
                let by_load = run(&instance, &parameters.strategies[0], &network);
                let by_distance = run(&instance, &parameters.strategies[1], &network);
                runs += 2;
                waits.push(above(
                    by_load.metrics.wait_mean_s.max(1.0),
                    by_distance.metrics.wait_mean_s.max(1.0),
                ));
                messages.push(above(by_load.messages as f64, by_distance.messages as f64));
            }
            let ((wait, half), (sent, _)) = (paired(&waits), paired(&messages));
            words.push(against(wait, half, 0.0));
            figures.push(format!(
                "load {load}, {delay} s between clusters: mean wait by load {wait:+.1} +- {half:.1} % of by distance, \
                 messages {sent:+.0} %"
            ));
        }
    }
    figures.push("message budgets were not made equal".into());
    let verdict = match (words.contains(&"higher"), words.iter().all(|&word| word == "lower")) {
        (true, _) => Verdict::Fails,
        (_, true) => Verdict::Holds,
        _ => Verdict::Inconclusive,
    };
    Found { verdict, runs, figures }
}

/// Jobs of one processor, exponential run times of mean `mean` seconds, Poisson arrivals of the same rate everywhere.
fn exponential(sites: usize, jobs: usize, load: f64, mean: f64, seed: u64) -> Instance {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut draw = |mean: f64| -mean * (1.0 - rng.random::<f64>()).ln();
    let gap = mean / (load * sites as f64);
    let mut now = 0.0;
    let mut list = Vec::new();
    for id in 1..=jobs as u64 {
        now += draw(gap);
        let run_time = span(draw(mean).max(1e-6));
        let origin = SiteId(1 + (draw(1.0).fract() * 1e9) as u32 % sites as u32);
        let spec = JobSpec {
            id: JobId(id),
            submit: Time::ZERO + span(now),
            processors: 1,
            requested: run_time.max(Span::from_secs(1)),
            labels: Labels::UNKNOWN,
            origin,
            payload: 0,
        };
        list.push(TimedJob { spec, run_time });
    }
    let grid = Grid::of_sizes(&vec![1; sites]).expect("sites of one processor");
    Instance { grid: Arc::new(grid), jobs: list }
}

/// Mean run time in the experiments with exponential jobs, in seconds; delays are in the same unit.
const MEAN_S: f64 = 100.0;

/// Mean waits of both `strategies` at a load and delay, in percent: the first above the second.
fn waits(parameters: &Parameters, load: f64, delay: f64) -> (f64, f64, f64) {
    let (mut waits, mut messages) = (Vec::new(), Vec::new());
    for seed in 1..=parameters.seeds {
        let instance = exponential(parameters.sites.len(), parameters.jobs, load, MEAN_S, seed);
        let mut network = Network::delayed(delay);
        network.submit = Submit::Origin;
        network.seed = seed;
        let first = run(&instance, &parameters.strategies[0], &network);
        let second = run(&instance, &parameters.strategies[1], &network);
        waits.push(above(first.metrics.wait_mean_s.max(0.01), second.metrics.wait_mean_s.max(0.01)));
        messages.push(above(first.messages as f64, second.messages as f64));
    }
    let (wait, half) = paired(&waits);
    (wait, half, paired(&messages).0)
}

/// Q16: `strategies` are the globally least or most loaded, then two choices; `delays_s` make news old.
pub(crate) fn two_choices_stand_old_news(parameters: &Parameters) -> Found {
    let (mut runs, mut figures, mut old) = (0, Vec::new(), Vec::new());
    for &load in &parameters.loads {
        for &delay in &parameters.delays_s {
            let (wait, half, sent) = waits(parameters, load, delay);
            runs += 2 * parameters.seeds;
            let word = against(wait, half, 0.0);
            if delay >= 0.5 * MEAN_S {
                old.push(word);
            }
            figures.push(format!(
                "load {load}, d = {:.2} service times: {} waits {wait:+.1} +- {half:.1} % against {}: {word}; messages \
                 {sent:+.0} %",
                delay / MEAN_S,
                parameters.strategies[0],
                parameters.strategies[1]
            ));
        }
    }
    let verdict = if old.contains(&"higher") {
        Verdict::Holds
    } else if old.contains(&"open") || old.is_empty() {
        Verdict::Inconclusive
    } else {
        Verdict::Fails
    };
    Found { verdict, runs, figures }
}

/// Q17: `strategies` are push, then pull; `expected[0]` is the load of the crossover.
pub(crate) fn push_or_pull_by_load(parameters: &Parameters) -> Found {
    let (mut runs, mut figures, mut signs) = (0, Vec::new(), Vec::new());
    for &delay in &parameters.delays_s {
        for &load in &parameters.loads {
            let (wait, half, sent) = waits(parameters, load, delay);
            runs += 2 * parameters.seeds;
            signs.push((load, against(wait, half, 0.0)));
            figures.push(format!(
                "d = {delay} s, load {load}: push waits {wait:+.1} +- {half:.1} % against pull, messages {sent:+.0} %"
            ));
        }
    }
    figures.push("message budgets were not made equal".into());
    let wrong = signs
        .iter()
        .any(|&(load, word)| word == if load < parameters.expected[0] { "higher" } else { "lower" });
    let right = signs
        .iter()
        .all(|&(load, word)| word == if load < parameters.expected[0] { "lower" } else { "higher" });
    let verdict = match (wrong, right) {
        (true, _) => Verdict::Fails,
        (_, true) => Verdict::Holds,
        _ => Verdict::Inconclusive,
    };
    Found { verdict, runs, figures }
}

/// Q18: `strategies[0]` is a pool, `strategies[1]` local queues; mean waits of the users of each site.
pub(crate) fn every_site_gains_from_a_pool(parameters: &Parameters) -> Found {
    let (mut runs, mut figures, mut loses_free, mut first_loss) = (0, Vec::new(), 0, None);
    for &load in &parameters.loads {
        for &delay in &parameters.delays_s {
            let sites = parameters.sites.len();
            let mut sums = vec![[0.0_f64; 3]; sites];
            for seed in 1..=parameters.seeds {
                let instance = Instance::model(&parameters.sites, parameters.jobs, load, seed);
                for (column, name) in parameters.strategies.iter().take(2).enumerate() {
                    let mut network = Network::delayed(delay);
                    network.submit = Submit::Origin;
                    network.seed = seed;
                    let measured = run(&instance, name, &network);
                    runs += 1;
                    for row in measured.outcome.finished() {
                        let sum = &mut sums[row.origin.index()];
                        sum[column] += row.wait().map_or(0.0, Span::as_secs_f64);
                        sum[2] += 0.5;
                    }
                }
            }
            let losers: Vec<String> = (0..sites)
                .filter(|&site| sums[site][0] > sums[site][1])
                .map(|site| {
                    let mean = |column: usize| sums[site][column] / sums[site][2].max(1.0);
                    format!(
                        "site {} of {}: {:.0} s against {:.0} s alone",
                        site + 1,
                        parameters.sites[site],
                        mean(0),
                        mean(1)
                    )
                })
                .collect();
            if delay == 0.0 {
                loses_free += losers.len();
            } else if !losers.is_empty() && first_loss.is_none() {
                first_loss = Some(delay);
            }
            figures.push(if losers.is_empty() {
                format!("load {load}, d = {delay} s: the users of every site wait less")
            } else {
                format!(
                    "load {load}, d = {delay} s: {} of {sites} sites lose; {}",
                    losers.len(),
                    losers.join("; ")
                )
            });
        }
    }
    figures.insert(
        0,
        match first_loss {
            Some(delay) => {
                format!("{loses_free} sites lose without delay; with delay the first at d* <= {delay} s")
            }
            None => format!("{loses_free} sites lose without delay, and none at the delays tried"),
        },
    );
    Found { verdict: Verdict::unless(loses_free as u64), runs, figures }
}
