//! Claims about families of instances that are made on purpose.

use std::sync::Arc;

use scheduler::{Class, Grid, Span, TimedJob};

use crate::runs::{Instance, ideal, job, named};
use crate::{Found, Parameters, Verdict};

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

/// Sites of m + 1 to 2 m processors, T unit jobs of each size, T divisible by 1 to m.
fn harmonic(m: u32) -> (Instance, i64) {
    let gcd = |mut a: i64, mut b: i64| {
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    let length = (1..=i64::from(m)).fold(1, |all, next| all / gcd(all, next) * next);
    let sizes: Vec<u32> = (1..=m).map(|site| m + site).collect();
    let widths = sizes.iter().flat_map(|&size| std::iter::repeat_n(size, length as usize));
    let jobs: Vec<TimedJob> = widths.zip(1..).map(|(width, id)| job(id, 0, width, 1)).collect();
    (Instance { grid: Arc::new(Grid::of_sizes(&sizes).expect("they have processors")), jobs }, length)
}

/// Q8: `family` are the c of the stress family, `expected` its ratios, `processors` the m of the harmonic family.
pub(crate) fn bad_families_are_as_bad_as_known(parameters: &Parameters) -> Found {
    let (mut runs, mut wrong, mut figures) = (0, 0, Vec::new());
    for (&c, &expected) in parameters.family.iter().zip(&parameters.expected) {
        let (instance, optimum) = stress(c);
        let ratio = ideal(&instance, named("ideal/st:50")).outcome.makespan().as_secs_f64() / optimum;
        runs += 1;
        wrong += u64::from((ratio - expected).abs() > parameters.tolerance[0]);
        figures.push(format!("stress c = {c}: ratio {ratio:.3}, expected {expected}"));
    }
    for &m in &parameters.processors {
        let (instance, length) = harmonic(m);
        let list = ideal(&instance, named("ideal/common-pool")).outcome.makespan();
        let steal = ideal(&instance, named("ideal/st:50")).outcome.makespan();
        let expected: i64 = (1..=i64::from(m)).map(|part| length / part).sum();
        runs += 2;
        wrong += u64::from(list != Span::from_secs(expected)) + u64::from(steal != Span::from_secs(length));
        figures.push(format!(
            "harmonic m = {m}: list {list} s, expected {expected}; stealing {steal} s, expected {length}"
        ));
    }
    Found { verdict: Verdict::unless(wrong), runs, figures }
}

/// Q19: over `sites`, equal at the start, shares of big and small work by site.
pub(crate) fn equal_sites_shift_from_small_to_big(parameters: &Parameters) -> Found {
    let smallest = parameters.sites.iter().min().copied().unwrap_or(0);
    let equal: Vec<usize> =
        (0..parameters.sites.len()).filter(|&site| parameters.sites[site] == smallest).collect();
    let (mut runs, mut figures, mut monotone, mut cases) = (0, Vec::new(), 0, 0);
    for &load in &parameters.loads {
        let mut work = vec![[0.0_f64; 2]; equal.len()];
        for seed in 1..=parameters.seeds {
            let measured =
                ideal(&Instance::model(&parameters.sites, parameters.jobs, load, seed), named("ideal/st:50"));
            runs += 1;
            for row in measured.outcome.finished() {
                let Some(place) =
                    row.site.and_then(|site| equal.iter().position(|&other| other == site.index()))
                else {
                    continue;
                };
                work[place][usize::from(row.class == Class::B)] += row.work() as f64;
            }
        }
        let total = |class: usize| work.iter().map(|site| site[class]).sum::<f64>().max(1.0);
        let shares =
            |class: usize| -> Vec<f64> { work.iter().map(|site| site[class] / total(class)).collect() };
        let (big, small) = (shares(0), shares(1));
        cases += 2;
        monotone += usize::from(big.is_sorted()) + usize::from(small.iter().rev().is_sorted());
        let show = |shares: &[f64]| {
            shares.iter().map(|share| format!("{:.1} %", 100.0 * share)).collect::<Vec<_>>().join(", ")
        };
        let when = if load > 0.0 { format!("load {load}") } else { "all at the start".into() };
        figures.push(format!("{when}: A work {}; B work {}", show(&big), show(&small)));
    }
    let verdict = if monotone == cases { Verdict::Holds } else { Verdict::Fails };
    figures
        .insert(0, format!("{monotone} of {cases} series over the {} equal sites are monotone", equal.len()));
    Found { verdict, runs, figures }
}
