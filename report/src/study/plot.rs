//! Plots of a page: files beside it, with a link in the text.

use analysis::statistics::Interval;

use super::Maker;
use super::data::{Data, Selection};
use super::expression::Expression;
use super::prose::foreign_figure;
use super::ranked;
use crate::sweep::axis::LOG_FROM;
use crate::sweep::chart::{self, BarChart, Line, LineChart, PARTS, Pane, Room, Theory, part_looks};
use crate::sweep::look::Looks;
use crate::sweep::metric::{SHOWN, Unit};

/// What a plot is asked for.
pub(super) struct Asked {
    pub(super) metrics: Vec<(String, String)>,
    pub(super) series: Option<Vec<String>>,
    pub(super) against: Option<String>,
    pub(super) selection: Selection,
    pub(super) room: Room,
    pub(super) title: String,
    /// What stands above the drawing: the title as it was asked for, or else what its axes do not say.
    pub(super) heading: String,
}

/// Makes the plot that an expression asks for, and returns the link to it.
pub(super) fn plot(maker: &mut Maker, expression: Expression) -> Result<String, String> {
    let mut looks = std::mem::take(&mut maker.looks);
    let drawn = draw(maker, expression, &mut looks);
    maker.looks = looks;
    let Drawing { id, title, svg } = drawn?;
    let file = format!("{}-{id}.svg", maker.prefix);
    let link = format!("![{}]({}/{file})", title.replace(['[', ']'], ""), maker.images);
    maker.file(&id, file, chart::standalone(&svg))?;
    Ok(link)
}

/// A plot that has no place yet.
struct Drawing {
    id: String,
    title: String,
    svg: String,
}

fn draw(maker: &Maker, mut expression: Expression, looks: &mut Looks) -> Result<Drawing, String> {
    let (_, data) = maker.data_of(&mut expression)?;
    let kind = expression.word().ok_or("a plot is of values, changes, parts, ranks or profile")?;
    let id = expression.need("id")?;
    let title = expression.take("title");
    let room = match expression.take("width").as_deref() {
        None | Some("page") => Room::Page,
        Some("column") => Room::Column,
        Some(other) => return Err(format!("width={other} is neither page nor column")),
    };
    let metrics = maker.metrics_of(data, &mut expression, "for parts")?;
    let (series, against) = (expression.list("series"), expression.take("against"));
    let pairs = expression.rest()?;
    if let Some(title) = &title {
        let known: String = pairs
            .iter()
            .flat_map(|(_, values)| values)
            .chain(&series.clone().unwrap_or_default())
            .cloned()
            .collect::<Vec<_>>()
            .join(" ");
        if let Some(figure) = foreign_figure(title, &known) {
            return Err(format!(
                "the title has a figure, {figure}, that no parameter has; figures come from the data"
            ));
        }
    }
    let fixed: Vec<String> = pairs
        .iter()
        .filter(|(key, values)| values.len() == 1 && !data.parameter(key).is_ok_and(|place| data.is_x(place)))
        .map(|(key, values)| {
            format!("{} {}", data.parameter(key).map_or(key.as_str(), |place| data.short(place)), values[0])
        })
        .collect();
    let words = match (&kind[..], &against) {
        ("changes", Some(against)) => format!("{} against {}", metrics[0].1, maker.data_label(against)),
        ("parts", _) => "Parts".to_string(),
        ("ranks", _) => "Ranks".to_string(),
        _ => metrics[0].1.clone(),
    };
    let has_axis = matches!(kind.as_str(), "values" | "changes");
    let heading = match &title {
        Some(title) => title.clone(),
        None if has_axis => fixed.join(", "),
        None => std::iter::once(words.clone()).chain(fixed.clone()).collect::<Vec<_>>().join(", "),
    };
    let title = title.unwrap_or_else(|| std::iter::once(words).chain(fixed).collect::<Vec<_>>().join(", "));
    let selection = data.selection(pairs)?;
    let asked = Asked { metrics, series, against, selection, room, title, heading };
    if kind != "parts" && kind != "ranks" && asked.metrics.len() != 1 {
        return Err(format!("a plot of {kind} is of one metric"));
    }
    let drawn = match kind.as_str() {
        "values" | "changes" => lines(maker, data, &asked, kind == "changes", looks),
        "parts" => parts(data, &asked),
        "ranks" | "profile" => ranked::plot(data, &kind, &asked, looks),
        other => Err(format!("a plot is of values, changes, parts, ranks or profile, not of {other:?}")),
    };
    Ok(Drawing { id, svg: drawn?, title: asked.title })
}

fn groups(data: &Data, asked: &Asked) -> Result<Vec<usize>, String> {
    let groups = data.named_groups(&asked.selection, asked.series.as_deref())?;
    let mut names: Vec<String> = groups.iter().map(|&group| data.label(group, &asked.selection)).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(format!("several series are {:?}; fix what tells them apart", pair[0])),
        None if groups.is_empty() => Err("nothing is selected".to_string()),
        None => Ok(groups),
    }
}

/// A metric along an axis: as the page calls it, or as reports do.
fn axis_label(maker: &Maker, column: &str) -> String {
    let known = || SHOWN.iter().find(|metric| metric.column == column).map(|metric| metric.label.to_string());
    maker.metrics.get(column).cloned().or_else(known).unwrap_or_else(|| column.to_string())
}

fn lines(
    maker: &Maker,
    data: &Data,
    asked: &Asked,
    is_change: bool,
    looks: &mut Looks,
) -> Result<String, String> {
    let (column, _) = &asked.metrics[0];
    let metric = data.metric(column)?;
    let selection = &asked.selection;
    let points = data.points(selection);
    let mut found = Vec::new();
    let mut names = Vec::new();
    let mut baseline = None;
    for group in groups(data, asked)? {
        let other = match &asked.against {
            None if is_change => return Err("it needs against=".to_string()),
            None => None,
            Some(against) => Some(data.against(selection, group, against)?),
        };
        baseline = baseline.or(other);
        if is_change && other == Some(group) {
            continue;
        }
        let at = |point: &usize| -> (f64, Option<f64>, Option<Interval>) {
            let x = data.study.points[*point].0;
            let values = data.measured(selection, group, *point, metric);
            if let (true, Some(other)) = (is_change, other) {
                let right = data.measured(selection, other, *point, metric);
                let ratio = data.study.bootstrap.paired_ratio(&values, &right);
                return (x, ratio.map(|ratio| ratio.ratio), ratio.and_then(|ratio| ratio.interval));
            }
            let summary = data.study.bootstrap.summary(&values.into_values().collect::<Vec<_>>());
            (x, summary.map(|summary| summary.mean), summary.and_then(|summary| summary.interval))
        };
        let mut line = Line {
            name: data.label(group, selection),
            points: points.iter().map(at).collect(),
            marks: Vec::new(),
            look: 0,
        };
        if let Some(other) = other.filter(|other| *other != group) {
            let crossing =
                data.study.bootstrap.crossover_interval(&data.differences(selection, (group, other), metric));
            line.marks.extend(crossing.map(|found| found.advantage.end()).filter(|end| end.is_finite()));
        }
        found.push(line);
        names.push(data.name(group, selection));
    }
    if found.iter().flat_map(|line| &line.points).all(|(_, y, _)| y.is_none()) {
        return Err("there are no values to plot".to_string());
    }
    // What a page calls a series does not change its color.
    let looks = looks.of(&names);
    found.iter_mut().zip(looks).for_each(|(line, look)| line.look = look);
    let mut chart = LineChart {
        title: asked.title.clone(),
        heading: asked.heading.clone(),
        x_label: data.study.x_label(),
        y_label: axis_label(maker, column),
        x: points.iter().map(|&point| data.study.points[point].clone()).collect(),
        x_per: None,
        lines: found,
        theory: Vec::new(),
        y_unit: if is_change { Unit::Number } else { Unit::of(column) },
        log_from: LOG_FROM,
        least_possible: None,
    };
    if let (true, Some(other)) = (is_change, baseline) {
        let name = maker.data_label(&data.label(other, &Selection::default()));
        chart.y_label = format!("{} over that of {name}", chart.y_label);
        let across = points.iter().map(|&point| (data.study.points[point].0, 1.0)).collect();
        chart.theory.push(Theory { name: format!("as {name}"), points: across });
    }
    Ok(chart.drawn(asked.room))
}

/// Stacks of several metrics as shares of their sum, one drawing for each series.
fn parts(data: &Data, asked: &Asked) -> Result<String, String> {
    if asked.metrics.len() > PARTS {
        return Err(format!("there are colors for {PARTS} parts, not for {}", asked.metrics.len()));
    }
    if asked.against.is_some() {
        return Err("parts are compared with nothing".to_string());
    }
    let points = data.points(&asked.selection);
    let columns: Vec<usize> =
        asked.metrics.iter().map(|(column, _)| data.metric(column)).collect::<Result<_, _>>()?;
    let panes = groups(data, asked)?.into_iter().map(|group| {
        let part = |point: usize, column: usize| {
            data.mean(&asked.selection, group, point, column).unwrap_or(0.0).max(0.0)
        };
        let stack = |&point: &usize| columns.iter().map(|&column| part(point, column)).collect();
        Pane { name: data.label(group, &asked.selection), stacks: points.iter().map(stack).collect() }
    });
    let names: Vec<&str> = asked.metrics.iter().map(|(column, _)| column.as_str()).collect();
    let are_times = names.iter().all(|column| Unit::of(column) == Unit::Time);
    let chart = BarChart {
        title: asked.title.clone(),
        heading: asked.heading.clone(),
        x_label: data.study.x_label(),
        y_label: "share of the sum".to_string(),
        x: points.iter().map(|&point| data.study.points[point].1.clone()).collect(),
        parts: asked.metrics.iter().map(|(_, words)| words.clone()).zip(part_looks(&names)).collect(),
        unit: if are_times { Unit::Time } else { Unit::Number },
        panes: panes.collect(),
    };
    Ok(chart.drawn(asked.room))
}
