//! The plot that checks the delay injector: unit jobs on single processors, stolen at random.
//!
//! With W jobs of a second that all start at one site, p sites of one processor and a one-way delay of lambda, the
//! overhead of stealing is about c(p) lambda log2(W / lambda) with c from 2.5 (16 sites) to 4 (256 and more), 3.8
//! as a fit over all p, and never above 16.12 by proof (Gast, Khatiri, Trystram, Wagner 2018, arXiv:1805.00857).

use std::collections::BTreeMap;

use analysis::statistics::Bootstrap;
use outputs::sweep::Row;

use super::axis::{LOG_FROM, span};
use super::chart::{Line, LineChart, Theory};
use super::figures::Figure;
use super::look::Looks;
use super::metric::Unit;
use super::study::Study;

/// The fit over all numbers of sites.
const FITTED: f64 = 3.8;
/// The constant of the proof.
const PROVED: f64 = 16.12;

const TITLE: &str = "Calibration: overhead of stealing unit jobs";

/// The plot, if every run is of this kind.
pub(super) fn figures(study: &Study) -> Vec<Figure> {
    let rows = &study.rows;
    let column = |name: &str| rows.metrics.iter().position(|metric| metric == name);
    let columns = ["sites", "processors", "delay_s", "work", "makespan_s"].map(column);
    let [Some(sites), Some(processors), Some(delay), Some(work), Some(makespan)] = columns else {
        return Vec::new();
    };
    let number = |row: &Row, index: usize| row.metrics[index].number().unwrap_or(0.0);
    let done = || rows.rows.iter().filter(|row| row.done);
    if !done().all(|row| number(row, sites) == number(row, processors) && number(row, sites) > 1.0) {
        return Vec::new();
    }
    let strategy = rows.parameters.iter().position(|name| name == "strategy.name");
    // (strategy, delay in its bits) and sites: overheads of the repetitions.
    let mut found: BTreeMap<(String, u64), BTreeMap<u64, Vec<f64>>> = BTreeMap::new();
    for row in done() {
        let (lambda, jobs, p) = (number(row, delay), number(row, work), number(row, sites));
        let doublings = (jobs / lambda).log2();
        if lambda <= 0.0 || doublings <= 0.0 {
            continue;
        }
        let overhead = (number(row, makespan) - jobs / p) / (lambda * doublings);
        let name = strategy.map_or(String::new(), |index| row.parameters[index].to_string());
        found.entry((name, lambda.to_bits())).or_default().entry(p as u64).or_default().push(overhead);
    }
    if found.is_empty() {
        return Vec::new();
    }
    let mut points: Vec<u64> = found.values().flat_map(BTreeMap::keys).copied().collect();
    points.sort_unstable();
    points.dedup();
    let bootstrap = Bootstrap::default();
    let names: Vec<String> =
        found.keys().map(|(name, lambda)| legend(name, f64::from_bits(*lambda))).collect();
    let looks = Looks::default().of(&names);
    let lines = found.iter().zip(looks).map(|(((name, lambda), by_sites), look)| Line {
        name: legend(name, f64::from_bits(*lambda)),
        points: points
            .iter()
            .map(|p| {
                let summary = by_sites.get(p).and_then(|values| bootstrap.summary(values));
                (*p as f64, summary.map(|summary| summary.mean), summary.and_then(|summary| summary.interval))
            })
            .collect(),
        marks: Vec::new(),
        look,
    });
    let across = |value: f64| points.iter().map(|p| (*p as f64, value)).collect();
    let chart = LineChart {
        title: TITLE.to_string(),
        heading: TITLE.to_string(),
        x_label: "sites of one processor".to_string(),
        y_label: "(makespan \u{2212} W/p) / (d log2(W/d))".to_string(),
        x: points.iter().map(|p| (*p as f64, p.to_string())).collect(),
        x_per: None,
        lines: lines.collect(),
        theory: vec![
            Theory { name: format!("{FITTED}, published fit"), points: across(FITTED) },
            Theory { name: format!("{PROVED}, proved"), points: across(PROVED) },
        ],
        y_unit: Unit::Number,
        log_from: LOG_FROM,
        least_possible: None,
    };
    let note = "W unit jobs, p sites of one processor, one-way delay d. Published simulations fit 3.8; 16.12 is proved \
                (Gast, Khatiri, Trystram and Wagner 2018)."
        .to_string();
    vec![Figure {
        id: "calibration".to_string(),
        panel: None,
        is_detail: false,
        svg: chart.svg(),
        narrow: chart.narrow(),
        note,
    }]
}

fn legend(strategy: &str, delay: f64) -> String {
    let delay = format!("delay {}", span(delay));
    if strategy.is_empty() { delay } else { format!("{strategy}, {delay}") }
}
