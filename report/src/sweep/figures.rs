//! Which plots a report has, and what is drawn in each.

use analysis::statistics::{Interval, crossovers};
use scheduler::StrategySpec;

use super::axis::{LOG_FROM, short};
use super::calibration;
use super::chart::{self, BarChart, Line, LineChart, Pane, Theory, part_looks};
use super::metric::{CAUSES, IN_PARTS, Metric, RANKED, SHOWN, Unit, WAITS, is_range};
use super::ranking;
use super::study::Study;

/// A plot with its text.
#[derive(Clone, Debug)]
pub struct Figure {
    /// Name of its file, without an ending.
    pub id: String,
    /// Place of the panel that it belongs to; `None` for the whole sweep.
    pub(super) panel: Option<usize>,
    /// Shown only on demand.
    pub(super) is_detail: bool,
    /// The plot as SVG.
    pub(super) svg: String,
    /// The same for a phone.
    pub(super) narrow: String,
    /// What a reader should know to read it.
    pub(super) note: String,
}

impl Figure {
    /// What it shows, safe for HTML: the name that the drawing has for who cannot see it.
    pub(super) fn title(&self) -> &str {
        let (_, rest) = self.svg.split_once("aria-label=\"").unwrap_or_default();
        rest.split('"').next().unwrap_or_default()
    }

    /// Whether it belongs to the section that ranks strategies.
    pub(super) fn is_ranking(&self) -> bool {
        self.id.starts_with(ranking::PREFIX)
    }

    /// The plot as a file of its own.
    pub fn standalone(&self) -> String {
        chart::standalone(&self.svg)
    }
}

/// Other metrics than the chosen ones that get a plot; more would make the page slow.
const DETAILS_MAX: usize = 60;
/// Columns that say what was run, not what happened.
const GIVEN: [&str; 20] = [
    "jobs",
    "finished",
    "work",
    "rejected",
    "violated",
    "free_messages",
    "certificate_holds",
    "sites",
    "processors",
    "delay_s",
    "ceiling",
    "run_time_by_size_s",
    "run_time_by_size_min_s",
    "bound_time_s",
    "bound_area_s",
    "bound_count_s",
    "bound_thesis_s",
    "bound_proof_s",
    "bound_best_s",
    "walltime_reached",
];

/// How often [`all`] and [`super::html`] together tell that a part is done.
pub fn parts(study: &Study) -> usize {
    let present = study.metrics();
    let of_panel = 4 + of_columns(&SHOWN, &present).count() + of_columns(&RANKED, &present).count();
    study.panels.len() * (of_panel + details(&present).count())
}

/// The metrics that a sweep has.
fn of_columns<'a>(metrics: &'a [Metric], present: &'a [String]) -> impl Iterator<Item = &'a Metric> {
    metrics.iter().filter(|metric| present.iter().any(|name| name == metric.column))
}

/// Columns without a chosen place that get a plot.
fn details(present: &[String]) -> impl Iterator<Item = &String> {
    let is_shown = |name: &str| SHOWN.iter().any(|metric| metric.column == name);
    let is_cause = |name: &str| CAUSES.iter().chain(&WAITS).any(|(_, column)| *column == name);
    let others = present.iter().filter(move |name| !is_shown(name) && !is_cause(name) && !is_range(name));
    others.filter(|name| !GIVEN.contains(&name.as_str())).take(DETAILS_MAX)
}

/// All plots, in the order of the page; `told` is called when a part is done.
pub fn all(study: &Study, told: &mut dyn FnMut()) -> Vec<Figure> {
    let mut figures: Vec<Figure> = calibration::figures(study);
    let present = study.metrics();
    let has = |name: &str| present.iter().any(|other| other == name);
    for panel in 0..study.panels.len() {
        figures.extend(theory(study, panel));
        figures.extend(ranking::figures(study, panel));
        told();
        for metric in of_columns(&SHOWN, &present) {
            figures.extend(of_metric(study, panel, metric));
            told();
        }
        for metric in of_columns(&RANKED, &present) {
            figures.extend(differences(study, panel, metric));
            told();
        }
        // Databases of older releases have other parts.
        if CAUSES.iter().all(|(_, column)| has(column)) {
            figures.extend(causes(study, panel));
        }
        if WAITS.iter().all(|(_, column)| has(column) || *column == IN_PARTS) {
            figures.extend(waits(study, panel, has(IN_PARTS)));
        }
        told();
        for name in details(&present) {
            figures.extend(detail(study, panel, name));
            told();
        }
    }
    figures
}

pub(super) fn id(study: &Study, panel: usize, name: &str) -> String {
    let clean = |text: &str| -> String {
        text.chars().map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' }).collect()
    };
    match study.panels[panel].title.as_str() {
        "" => clean(name),
        title => format!("{}-{}", clean(name), clean(title)),
    }
}

fn titled(study: &Study, panel: usize, title: &str) -> String {
    match (title, study.panels[panel].title.as_str()) {
        (title, "") => title.to_string(),
        ("", panel) => panel.to_string(),
        (title, panel) => format!("{title}, {panel}"),
    }
}

/// An empty plot along the axis of the study.
pub(super) fn plot(study: &Study, panel: usize, title: &str, y_label: &str) -> LineChart {
    let per = study.over_workloads(panel, "run_time_by_size_s").filter(|per| study.is_time && *per > 0.0);
    // What the axis says is not said twice.
    let heading = if title.eq_ignore_ascii_case(y_label) { "" } else { title };
    LineChart {
        title: titled(study, panel, title),
        heading: titled(study, panel, heading),
        x_label: study.x_label(),
        y_label: y_label.to_string(),
        x: study.points.clone(),
        x_per: per.map(|per| (per, "delay / p_w".to_string())),
        lines: Vec::new(),
        theory: Vec::new(),
        y_unit: Unit::Number,
        log_from: LOG_FROM,
        least_possible: None,
    }
}

/// The mean of a metric of a strategy along the axis; nothing if it never has a value.
fn line(study: &Study, panel: usize, series: usize, metric: &str) -> Option<Line> {
    let points: Vec<(f64, Option<f64>, Option<Interval>)> = study
        .points
        .iter()
        .enumerate()
        .map(|(point, (x, _))| {
            let summary = study.summary(panel, series, point, metric);
            (*x, summary.map(|summary| summary.mean), summary.and_then(|summary| summary.interval))
        })
        .collect();
    let any = points.iter().any(|(_, y, _)| y.is_some());
    let look = study.looks[series];
    any.then(|| Line { name: study.series[series].clone(), points, marks: Vec::new(), look })
}

pub(super) fn lines(study: &Study, panel: usize, metric: &str) -> Vec<Line> {
    (0..study.series.len()).filter_map(|series| line(study, panel, series, metric)).collect()
}

/// Whether there is anything to see.
fn varies(lines: &[Line]) -> bool {
    let mut values = lines.iter().flat_map(|line| &line.points).filter_map(|(_, y, _)| *y);
    values.next().is_some_and(|first| values.any(|value| value != first))
}

fn of_metric(study: &Study, panel: usize, metric: &Metric) -> Option<Figure> {
    let mut chart = plot(study, panel, metric.title, metric.label);
    chart.lines = lines(study, panel, metric.column);
    chart.least_possible = metric.least_possible();
    if !varies(&chart.lines) {
        return None;
    }
    chart.y_unit = Unit::of(metric.column);
    let is_ranked = RANKED.iter().any(|ranked| ranked.column == metric.column);
    let mut note = "Mean of the repetitions; the band is its 95 % bootstrap interval.".to_string();
    if is_ranked {
        for line in &mut chart.lines {
            let series = study.series.iter().position(|name| *name == line.name).unwrap_or(0);
            if series != study.baseline {
                let duel = study.duel(panel, (series, study.baseline), metric.column);
                line.marks = duel.crossovers.iter().map(|crossover| crossover.at()).collect();
            }
        }
        if chart.lines.iter().any(|line| !line.marks.is_empty()) {
            note += &format!(
                " Triangles on the axis: where the mean paired difference to {} changes its sign.",
                study.series[study.baseline]
            );
        }
    }
    Some(Figure {
        id: id(study, panel, metric.column),
        panel: Some(panel),
        is_detail: false,
        svg: chart.svg(),
        narrow: chart.narrow(),
        note,
    })
}

fn detail(study: &Study, panel: usize, name: &str) -> Option<Figure> {
    let mut chart = plot(study, panel, name, "mean of the repetitions");
    chart.lines = lines(study, panel, name);
    chart.y_unit = Unit::of(name);
    varies(&chart.lines).then(|| Figure {
        id: id(study, panel, name),
        panel: Some(panel),
        is_detail: true,
        svg: chart.svg(),
        narrow: chart.narrow(),
        note: String::new(),
    })
}

/// The strategy that a series stands for.
pub(super) fn strategy(name: &str) -> Option<StrategySpec> {
    name.split(", ").next()?.parse().ok()
}

/// Jobs that are offered, reserved and fetched wait this many one-way delays (direct pull).
const DELAYS_A_STEAL: f64 = 2.0;

/// The ratio between what is proved and what is possible.
fn theory(study: &Study, panel: usize) -> Option<Figure> {
    let stealing = (0..study.series.len()).find(|&series| {
        strategy(&study.series[series])
            .is_some_and(|spec| spec.strategy.steal_from_homes().is_some() && !spec.ideal)
            && study.mean(panel, series, 0, "ceiling").is_some()
    })?;
    let spec = strategy(&study.series[stealing])?;
    let beta = f64::from(analysis::deficiency::beta_percent(&spec.strategy)) / 100.0;
    let ceiling = study.mean(panel, stealing, 0, "ceiling")?;
    let mut chart =
        plot(study, panel, "Competitive ratio and what is proved of it", "makespan / best lower bound");
    chart.lines = lines(study, panel, "ratio_best");
    chart.least_possible = Some(1.0);
    // The bound goes far above what is measured.
    chart.log_from = 3.0;
    let name = &study.series[stealing];
    let across = |value: f64| study.points.iter().map(|(x, _)| (*x, value)).collect();
    chart.theory.push(Theory { name: "1: nothing is faster".into(), points: across(1.0) });
    chart
        .theory
        .push(Theory { name: format!("{} proved, no delay", short(ceiling)), points: across(ceiling) });
    if let (0.0, Some(ideal)) = (study.points[0].0, study.mean(panel, stealing, 0, "ratio_best")) {
        chart.theory.push(Theory { name: format!("{name} without delay"), points: across(ideal) });
    }
    let least = study.over_workloads(panel, "run_time_by_size_min_s").filter(|least| *least > 0.0);
    let bound = study.over_workloads(panel, "bound_best_s").filter(|bound| *bound > 0.0);
    if let (true, Some(least), Some(bound)) = (study.is_time, least, bound) {
        let points = study.points.iter().map(|(delay, _)| {
            let steal = DELAYS_A_STEAL * delay;
            (*delay, ceiling + steal / (beta * least) + 2.0 * steal / bound)
        });
        chart.theory.push(Theory { name: "bound D1, steal = 2 delays".into(), points: points.collect() });
    }
    let note = format!(
        "Dotted: no schedule is below 1; {} is the ceiling that is proved for {name} at zero latency; D1 is the bound \
         if every stolen job keeps its processors waiting for two delays and sites know of work at once, with the means \
         of the workloads (docs/THEORY). Nothing is proved for the other strategies.",
        short(ceiling)
    );
    Some(Figure {
        id: id(study, panel, "theory"),
        panel: Some(panel),
        is_detail: false,
        svg: chart.svg(),
        narrow: chart.narrow(),
        note,
    })
}

/// Means over those of the baseline, by pairs.
fn differences(study: &Study, panel: usize, metric: &Metric) -> Option<Figure> {
    let baseline = &study.series[study.baseline];
    let title = format!("{} against {baseline}, paired", metric.title);
    let mut chart = plot(study, panel, &title, &format!("mean over that of {baseline}"));
    for series in (0..study.series.len()).filter(|&series| series != study.baseline) {
        let point = |(point, (x, _)): (usize, &(f64, String))| {
            let ratio = study.ratio(panel, (series, study.baseline), point, metric.column)?;
            Some((*x, Some(ratio.ratio), ratio.interval))
        };
        let points: Vec<_> = study.points.iter().enumerate().filter_map(point).collect();
        if !points.is_empty() {
            let means: Vec<(f64, f64)> =
                points.iter().filter_map(|(x, y, _)| y.map(|y| (*x, y - 1.0))).collect();
            chart.lines.push(Line {
                name: study.series[series].clone(),
                marks: crossovers(&means).iter().map(|crossover| crossover.at()).collect(),
                points,
                look: study.looks[series],
            });
        }
    }
    if !varies(&chart.lines) {
        return None;
    }
    chart.theory.push(Theory {
        name: format!("as {baseline}"),
        points: study.points.iter().map(|(x, _)| (*x, 1.0)).collect(),
    });
    let note = format!(
        "Below 1 is better than {baseline} on the same workloads. The band is the 95 % bootstrap interval over pairs; \
         triangles mark where the mean difference changes its sign."
    );
    let name = format!("{}-against", metric.column);
    Some(Figure {
        id: id(study, panel, &name),
        panel: Some(panel),
        is_detail: false,
        svg: chart.svg(),
        narrow: chart.narrow(),
        note,
    })
}

/// Where the delay went, as stacks.
fn causes(study: &Study, panel: usize) -> Option<Figure> {
    let note = "Processors that the bound on the makespan counts on and that were not busy while the job that ends last \
                waited, by cause (docs/THEORY, deficiency), means of the repetitions. How much that is in all is in the plot above; no bar where that \
                job did not wait.";
    let title = "Where the delay went: causes of the deficiency";
    let (chart, any) = stacks(study, panel, title, "share of the deficiency", &CAUSES);
    any.then(|| Figure {
        id: id(study, panel, "causes"),
        panel: Some(panel),
        is_detail: false,
        svg: chart.svg(),
        narrow: chart.narrow(),
        note: note.to_string(),
    })
}

/// Where the waits went, as stacks.
fn waits(study: &Study, panel: usize, in_parts: bool) -> Option<Figure> {
    let note = "The waits of all jobs, by what was true of the grid while they waited (docs/THEORY, where the waits went), means of the repetitions. \
                How long they are is in the plot of the mean wait. Of several things that are true the first counts: the \
                columns wait_*_least_s and wait_*_greatest_s say how far that matters.";
    let title = "Where the waits went";
    let parts: Vec<(&str, &str)> =
        WAITS.into_iter().filter(|(_, column)| in_parts || *column != IN_PARTS).collect();
    let (chart, any) = stacks(study, panel, title, "share of the waits", &parts);
    any.then(|| Figure {
        id: id(study, panel, "waits"),
        panel: Some(panel),
        is_detail: false,
        svg: chart.svg(),
        narrow: chart.narrow(),
        note: note.to_string(),
    })
}

/// Stacks of parts, given by names and columns, and whether any is not zero.
fn stacks(
    study: &Study,
    panel: usize,
    title: &str,
    y_label: &str,
    parts: &[(&str, &str)],
) -> (BarChart, bool) {
    let panes: Vec<Pane> = (0..study.series.len())
        .map(|series| {
            let stack = |point| {
                parts
                    .iter()
                    .map(|(_, column)| study.mean(panel, series, point, column).unwrap_or(0.0).max(0.0))
                    .collect()
            };
            let stacks = (0..study.points.len()).map(stack).collect();
            Pane { name: study.series[series].clone(), stacks }
        })
        .collect();
    let any = panes.iter().flat_map(|pane| &pane.stacks).flatten().any(|part| *part != 0.0);
    let looks = part_looks(&parts.iter().map(|(_, column)| *column).collect::<Vec<_>>());
    let chart = BarChart {
        title: titled(study, panel, title),
        heading: titled(study, panel, title),
        x_label: study.x_label(),
        y_label: y_label.to_string(),
        x: study.points.iter().map(|(_, words)| words.clone()).collect(),
        parts: parts.iter().map(|(name, _)| name.to_string()).zip(looks).collect(),
        unit: Unit::Time,
        panes,
    };
    (chart, any)
}
