//! Tables: one number a cell, along any two of series, metrics and parameters.
//!
//! Cells without data have a dash. A difference that is statistically significant, corrected for all that are asked together, is
//! bold.

use std::collections::BTreeSet;

use analysis::statistics::Bootstrap;
use outputs::table::Table;

use super::Maker;
use super::data::{Data, Selection};
use super::expression::Expression;
use super::inline::{best_names, crossover_words};
use super::words::{self, Style};

/// What a cell says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The mean.
    Values,
    /// The mean over that of another series, in percent.
    Changes,
    /// Where an advantage over another series ends.
    Crossovers,
    /// The rank in the column, and how far from the best.
    Ranks,
    /// Who is best.
    Best,
}

/// What varies along rows or columns.
enum Along {
    Series(Vec<String>),
    /// Columns of the data, and what they are called.
    Metrics(Vec<(String, String)>),
    Parameter(usize, Vec<String>),
}

impl Along {
    fn len(&self) -> usize {
        match self {
            Along::Series(names) | Along::Parameter(_, names) => names.len(),
            Along::Metrics(names) => names.len(),
        }
    }
}

/// What a table is asked for.
struct Asked {
    kind: Kind,
    metrics: Vec<(String, String)>,
    series: Option<Vec<String>>,
    against: Option<String>,
    unit: Option<String>,
    digits: Option<usize>,
    within: f64,
    interval: bool,
    selection: Selection,
}

/// Where a cell is.
#[derive(Clone)]
struct Place {
    selection: Selection,
    metric: String,
    series: Option<String>,
}

/// A cell with something in it.
struct Found {
    group: Option<usize>,
    text: String,
    /// What ranks go by.
    mean: f64,
    /// A comparison by its name, and its chance.
    compared: Option<(String, f64)>,
}

/// The table that an expression asks for.
pub(super) fn table(maker: &mut Maker, mut expression: Expression) -> Result<Table, String> {
    let (data_name, data) = maker.data_of(&mut expression)?;
    let (rows, columns) = (expression.take("rows"), expression.take("columns"));
    let (corner, plain) = (expression.take("corner"), expression.has("plain"));
    let asked = asked(maker, data, &mut expression)?;
    let rows =
        along(data, &asked, rows.as_deref().unwrap_or(if asked.kind == Kind::Best { "" } else { "series" }))
            .map_err(|error| format!("rows: {error}"))?;
    let default = if asked.metrics.len() > 1 { "metrics" } else { data.short(data.x()) };
    let columns = match (&columns, asked.kind) {
        (None, Kind::Crossovers) if asked.metrics.len() < 2 => {
            return Err("it needs columns=, a parameter or metrics".to_string());
        }
        (columns, _) => along(data, &asked, columns.as_deref().unwrap_or(default)),
    }
    .map_err(|error| format!("columns: {error}"))?;
    let (rows, columns) = named(data, &asked, rows, columns);
    let mut cells: Vec<Vec<Option<Found>>> = Vec::new();
    let mut last_error = "nothing is selected".to_string();
    for row in 0..rows.len() {
        let mut line = Vec::new();
        for column in 0..columns.len() {
            let mut place = Place {
                selection: asked.selection.clone(),
                metric: asked.metrics[0].0.clone(),
                series: None,
            };
            for (along, index) in [(&rows, row), (&columns, column)] {
                match along {
                    Along::Series(names) => place.series = Some(names[index].clone()),
                    Along::Metrics(names) => place.metric = names[index].0.clone(),
                    Along::Parameter(parameter, values) => {
                        place.selection = place.selection.with(*parameter, &values[index]);
                    }
                }
            }
            line.push(match cell(data, data_name, &asked, &place) {
                Ok(found) => found,
                Err(Missing::Nothing(error)) => {
                    last_error = error;
                    None
                }
                Err(Missing::Wrong(error)) => return Err(error),
            });
        }
        // A name that was written down and is nowhere is a slip; one that is not everywhere is not.
        if let (Along::Series(names), true) =
            (&rows, asked.series.is_some() && line.iter().all(Option::is_none))
        {
            return Err(format!("the row {:?} is empty: {last_error}", names[row]));
        }
        cells.push(line);
    }
    if cells.iter().flatten().all(Option::is_none) {
        return Err(last_error);
    }
    if asked.kind == Kind::Ranks {
        rank(&mut cells, asked.within);
    }
    let heads = [
        heads(maker, data, &asked, &rows, &cells, true),
        heads(maker, data, &asked, &columns, &cells, false),
    ];
    let corner = match corner {
        Some(corner) => corner,
        None => corner_of(maker, &asked, &[&rows, &columns])?,
    };
    let compared: Vec<Option<(String, f64)>> =
        cells.iter().flatten().map(|cell| cell.as_ref().and_then(|cell| cell.compared.clone())).collect();
    let told = if plain { vec![false; compared.len()] } else { maker.told(&compared) };
    let mut table = Table::new(std::iter::once(corner).chain(heads[1].iter().cloned()));
    let mut told = told.into_iter();
    for (line, head) in cells.iter().zip(&heads[0]) {
        let mut row = vec![head.clone()];
        for cell in line {
            let bold = told.next().unwrap_or(false);
            row.push(match cell {
                None => "-".to_string(),
                Some(cell) if bold => format!("**{}**", cell.text),
                Some(cell) => cell.text.clone(),
            });
        }
        table.push(row);
    }
    Ok(table)
}

fn asked(maker: &Maker, data: &Data, expression: &mut Expression) -> Result<Asked, String> {
    let kind =
        match expression.word().as_deref() {
            Some("values") => Kind::Values,
            Some("changes") => Kind::Changes,
            Some("crossovers") => Kind::Crossovers,
            Some("ranks") => Kind::Ranks,
            Some("best") => Kind::Best,
            _ => return Err(
                "a table is of values, changes, crossovers, ranks, best, degradation, published or agreement"
                    .to_string(),
            ),
        };
    let metrics = maker.metrics_of(data, expression, "with several")?;
    let against = expression.take("against");
    if against.is_none() && matches!(kind, Kind::Changes | Kind::Crossovers) {
        return Err("it needs against=".to_string());
    }
    Ok(Asked {
        kind,
        metrics,
        series: expression.list("series"),
        against,
        unit: expression.take("unit"),
        digits: expression.number("digits")?,
        within: expression.number("within")?.unwrap_or(0.0),
        interval: expression.has("interval"),
        selection: data.selection(expression.rest()?)?,
    })
}

fn along(data: &Data, asked: &Asked, what: &str) -> Result<Along, String> {
    Ok(match what {
        "series" => Along::Series(asked.series.clone().unwrap_or_default()),
        "metrics" => Along::Metrics(asked.metrics.clone()),
        "" => return Err("it needs rows=, a parameter".to_string()),
        name => {
            let parameter = data.parameter(name)?;
            let values = data.selected_values(&asked.selection, parameter);
            Along::Parameter(parameter, values)
        }
    })
}

/// Names the series that are selected anywhere in the table, where none were named.
fn named(data: &Data, asked: &Asked, rows: Along, columns: Along) -> (Along, Along) {
    let mut places = vec![asked.selection.clone()];
    for along in [&rows, &columns] {
        if let Along::Parameter(parameter, values) = along
            && !data.is_x(*parameter)
        {
            let each = |place: Selection| {
                values.iter().map(move |value| place.with(*parameter, value)).collect::<Vec<_>>()
            };
            places = places.into_iter().flat_map(each).collect();
        }
    }
    let mut seen = BTreeSet::new();
    let mut names: Vec<(usize, String)> = Vec::new();
    for place in &places {
        let baseline = |group: usize| {
            let against = asked.against.as_deref().filter(|_| asked.kind != Kind::Values);
            against.is_some_and(|against| data.against(place, group, against) == Ok(group))
        };
        for group in data.groups(place) {
            let name = data.name(group, place);
            if !baseline(group) && seen.insert(name.clone()) {
                names.push((data.series_of(group), name));
            }
        }
    }
    names.sort_by_key(|(place, _)| *place);
    let names: Vec<String> = names.into_iter().map(|(_, name)| name).collect();
    let fill = |along| match along {
        Along::Series(given) if given.is_empty() => Along::Series(names.clone()),
        along => along,
    };
    (fill(rows), fill(columns))
}

/// Why a cell is empty.
enum Missing {
    /// There are no data.
    Nothing(String),
    /// The expression is wrong.
    Wrong(String),
}

fn cell(data: &Data, data_name: &str, asked: &Asked, place: &Place) -> Result<Option<Found>, Missing> {
    let selection = &place.selection;
    let metric = data.metric(&place.metric).map_err(Missing::Wrong)?;
    let style =
        Style::of(&place.metric, unit(asked, &place.metric), asked.digits, "s").map_err(Missing::Wrong)?;
    if asked.kind == Kind::Best {
        let point = data.point(selection).map_err(Missing::Wrong)?;
        let names = best_names(data, selection, asked.series.as_deref(), point, metric, asked.within);
        let names = names.map_err(Missing::Wrong)?;
        let text = names.join(", ");
        return Ok((!names.is_empty()).then_some(Found { group: None, text, mean: 0.0, compared: None }));
    }
    let wanted = place.series.as_deref().or(match asked.series.as_deref() {
        Some([one]) => Some(one.as_str()),
        _ => None,
    });
    let group = data.group(selection, wanted).map_err(Missing::Nothing)?;
    let other = match &asked.against {
        None => None,
        Some(against) => Some(data.against(selection, group, against).map_err(Missing::Nothing)?),
    };
    let found = |text: String, mean: f64, compared| Found { group: Some(group), text, mean, compared };
    if let (Kind::Crossovers, Some(other)) = (asked.kind, other) {
        let words = crossover_words(data, selection, (group, other), metric, true);
        return Ok(words.map(|words| found(words, 0.0, None)));
    }
    let point = data.point(selection).map_err(Missing::Wrong)?;
    let values: Vec<f64> = data.measured(selection, group, point, metric).into_values().collect();
    let Some(mean) = analysis::statistics::mean(&values) else { return Ok(None) };
    let chance = other.filter(|other| *other != group).and_then(|other| {
        let chance = data.chance(selection, (group, other), point, metric)?;
        let name = format!(
            "{data_name}; {}; {group} to {other} at {point}; {:?}",
            place.metric,
            data.repetitions(selection)
        );
        Some((name, chance))
    });
    if let (Kind::Changes, Some(other)) = (asked.kind, other) {
        let (left, right) = data.pair(selection, (group, other), point, metric);
        let resamples = if asked.interval { data.study.bootstrap.resamples } else { 0 };
        let ratio = Bootstrap { resamples, ..data.study.bootstrap }.paired_ratio(&left, &right);
        return Ok(ratio.map(|ratio| found(words::change(&ratio, asked.interval), mean, chance)));
    }
    let interval = if asked.interval { data.study.bootstrap.interval(&values) } else { None };
    // The unit stands in the corner if all cells have the same.
    let text = match interval {
        Some(interval) => {
            format!("{} ({} to {})", style.bare(mean), style.bare(interval.low), style.bare(interval.high))
        }
        None if asked.metrics.len() > 1 => style.full(mean),
        None => style.bare(mean),
    };
    Ok(Some(found(text, mean, chance)))
}

/// The unit for a metric: that of times is no matter of others beside them.
fn unit<'a>(asked: &'a Asked, metric: &str) -> Option<&'a str> {
    asked.unit.as_deref().filter(|_| asked.metrics.len() == 1 || metric.ends_with("_s"))
}

/// Ranks in each column, by the mean; the best and all within so many percent of it are bold.
fn rank(cells: &mut [Vec<Option<Found>>], within: f64) {
    let columns = cells.first().map_or(0, Vec::len);
    for column in 0..columns {
        let means: Vec<f64> = cells.iter().filter_map(|row| Some(row[column].as_ref()?.mean)).collect();
        let best = means.iter().copied().fold(f64::INFINITY, f64::min);
        for cell in cells.iter_mut().filter_map(|row| row[column].as_mut()) {
            let place = 1 + means.iter().filter(|other| **other < cell.mean).count();
            let ratio = analysis::statistics::Ratio { ratio: cell.mean / best, interval: None };
            let behind = if cell.mean == best || best <= 0.0 {
                String::new()
            } else {
                format!(" ({})", words::change(&ratio, false))
            };
            let text = format!("{place}{behind}");
            cell.text = if cell.mean <= best * (1.0 + within / 100.0) { format!("**{text}**") } else { text };
        }
    }
}

fn heads(
    maker: &Maker,
    data: &Data,
    asked: &Asked,
    along: &Along,
    cells: &[Vec<Option<Found>>],
    are_rows: bool,
) -> Vec<String> {
    let found = |index: usize| -> Option<usize> {
        let of_row = || cells[index].iter().flatten().find_map(|cell| cell.group);
        let of_column = || cells.iter().filter_map(|row| row[index].as_ref()).find_map(|cell| cell.group);
        if are_rows { of_row() } else { of_column() }
    };
    match along {
        Along::Series(names) => names
            .iter()
            .enumerate()
            .map(|(index, name)| match found(index) {
                // The label of a name; the name itself says what the row was asked for.
                Some(group) => data.label_of(group, name),
                None => name.clone(),
            })
            .collect(),
        Along::Metrics(names) => names
            .iter()
            .map(|(column, words)| {
                let unit = (asked.kind == Kind::Values && asked.metrics.len() == 1)
                    .then(|| Style::of(column, asked.unit.as_deref(), asked.digits, "s").ok()?.unit())
                    .flatten();
                let words = maker.metrics.get(column).unwrap_or(words);
                unit.map_or(words.clone(), |unit| format!("{words}, {unit}"))
            })
            .collect(),
        Along::Parameter(parameter, values) => values
            .iter()
            .map(|value| {
                let point = data.points(&asked.selection.with(*parameter, value));
                match point[..] {
                    [one] if data.is_x(*parameter) => data.study.points[one].1.clone(),
                    _ => format!("{} {value}", data.short(*parameter)),
                }
            })
            .collect(),
    }
}

/// What stands in the corner, if nothing was asked for: the metric, its unit, and with what it is compared.
fn corner_of(maker: &Maker, asked: &Asked, along: &[&Along]) -> Result<String, String> {
    let against = asked.against.as_deref().map(|against| maker.data_label(against));
    let has_metrics = along.iter().any(|along| matches!(along, Along::Metrics(_)));
    if has_metrics {
        return Ok(match (asked.kind, against) {
            (Kind::Changes, Some(name)) => format!("against {name}"),
            (Kind::Crossovers, Some(name)) => format!("advantage over {name} lost at"),
            _ => String::new(),
        });
    }
    let (column, words) = &asked.metrics[0];
    let unit = Style::of(column, asked.unit.as_deref(), asked.digits, "s")?.unit();
    Ok(match (asked.kind, against, unit) {
        (Kind::Changes, Some(name), _) => format!("{words} against {name}"),
        (Kind::Crossovers, Some(name), _) => format!("{words}, advantage over {name} lost at"),
        (Kind::Values, _, Some(unit)) => format!("{words}, {unit}"),
        _ => words.clone(),
    })
}
