//! Claims about families of instances that are made on purpose.

use std::sync::Arc;

use scheduler::{Class, Grid, Span, TimedJob};

use crate::cells::{Group, Of, Question, Says, Unit, ask};
use crate::runs::{Instance, ideal, job, named};
use crate::tally::Tally;
use crate::{Found, Parameters};

/// One site of 2q processors where big jobs block small ones, q = 11 + 15 c; the optimum is at most n + 1.
fn stress(c: i64) -> (Instance, f64) {
    let q = u32::try_from(11 + 15 * c).expect("the family is small");
    let n = 4 * (2 * c + 1) + 1;
    let widths = std::iter::repeat_n((q + 1, 1), n as usize)
        .chain([(q + 2, 1)])
        .chain(std::iter::repeat_n((15, 1), (n * c) as usize))
        .chain([(10, n)]);
    let jobs: Vec<TimedJob> =
        widths.zip(1..).map(|((width, length), id)| job(id, 0, width, length)).collect();
    let grid = Arc::new(Grid::of_sizes(&[2 * q]).expect("it has processors"));
    (Instance { grid, jobs }, (n + 1) as f64)
}

/// Sites of n + 1 to n + m processors, T unit jobs of each size, T divisible by 1 to m. With n at least m no two jobs share a
/// site.
pub(crate) fn harmonic(m: u32, n: u32) -> (Instance, i64) {
    let gcd = |mut a: i64, mut b: i64| {
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    let length = (1..=i64::from(m)).fold(1, |all, next| all / gcd(all, next) * next);
    let sizes: Vec<u32> = (1..=m).map(|site| n + site).collect();
    let widths = sizes.iter().flat_map(|&size| std::iter::repeat_n(size, length as usize));
    let jobs: Vec<TimedJob> = widths.zip(1..).map(|(width, id)| job(id, 0, width, 1)).collect();
    (Instance { grid: Arc::new(Grid::of_sizes(&sizes).expect("they have processors")), jobs }, length)
}

/// Q8: `family` are the c of the stress family, `expected` its ratios, `processors` the m of the harmonic family. Wrong:
/// stealing needs as long as the list on the harmonic family.
pub(crate) fn bad_families_are_as_bad_as_known(parameters: &Parameters, wrong: bool) -> Found {
    let (mut tally, mut figures) = (Tally::default(), Vec::new());
    for (&c, &expected) in parameters.family.iter().zip(&parameters.expected) {
        let (instance, optimum) = stress(c);
        let ratio = ideal(&instance, named("ideal/st:50")).outcome.makespan().as_secs_f64() / optimum;
        tally.runs += 1;
        let figure = format!("stress c = {c}: ratio {ratio:.3}, expected {expected}");
        if (ratio - expected).abs() > parameters.tolerance[0] {
            tally.violated(|| figure.clone());
        }
        figures.push(figure);
    }
    for &m in &parameters.processors {
        let (instance, length) = harmonic(m, m);
        let list = ideal(&instance, named("ideal/common-pool")).outcome.makespan();
        let steal = ideal(&instance, named("ideal/st:50")).outcome.makespan();
        let listed: i64 = (1..=i64::from(m)).map(|part| length / part).sum();
        let stolen = if wrong { listed } else { length };
        tally.runs += 2;
        let figure = format!(
            "harmonic m = {m}: list {list} s, expected {listed}; stealing {steal} s, expected {stolen}"
        );
        if list != Span::from_secs(listed) || steal != Span::from_secs(stolen) {
            tally.violated(|| figure.clone());
        }
        figures.push(figure);
    }
    tally.found("runs", figures)
}

/// Q19: over `sites`, equal at the start, shares of big and small work by site. Wrong: from the last site to the first.
pub(crate) fn equal_sites_shift_from_small_to_big(parameters: &Parameters, wrong: bool) -> Found {
    let smallest = parameters.sites.iter().min().copied().unwrap_or(0);
    let mut equal: Vec<usize> =
        (0..parameters.sites.len()).filter(|&site| parameters.sites[site] == smallest).collect();
    if wrong {
        equal.reverse();
    }
    let equal = &equal;
    let groups = parameters.loads.iter().map(|&load| {
        let when = if load > 0.0 { format!("load {load}") } else { "all at the start".into() };
        let steps = equal.len() - 1;
        // The columns: differences between neighbors of big work, then of small work.
        let questions = (0..2 * steps).map(|column| {
            let (class, step) = (["A", "B"][column / steps], column % steps);
            let margin = parameters.margin;
            let says = if class == "A" { Says::Above(margin) } else { Says::Below(-margin) };
            Question {
                name: format!("{when}, share of {class} work, site {} less site {}", step + 2, step + 1),
                of: Of::Mean(column),
                unit: Unit::Percent,
                says: Some(says),
            }
        });
        Group {
            questions: questions.collect(),
            measure: Box::new(move |seed| {
                let instance = Instance::model(&parameters.sites, parameters.jobs, load, seed);
                let measured = ideal(&instance, named("ideal/st:50"));
                let mut work = vec![[0.0_f64; 2]; equal.len()];
                for row in measured.outcome.finished() {
                    let place =
                        row.site.and_then(|site| equal.iter().position(|&other| other == site.index()));
                    if let Some(place) = place {
                        work[place][usize::from(row.class == Class::B)] += row.work() as f64;
                    }
                }
                let steps = |class: usize| {
                    let total = work.iter().map(|site| site[class]).sum::<f64>().max(1.0);
                    work.windows(2)
                        .map(move |pair| 100.0 * (pair[1][class] - pair[0][class]) / total)
                        .collect::<Vec<_>>()
                };
                [steps(0), steps(1)].concat()
            }),
            runs: 1,
        }
    });
    ask(parameters, groups.collect())
}
