//! Which parameter of a sweep plays which part, and what its values mean: places on an axis, names of strategies.

use outputs::sweep::{Cell, Row, Rows};

use super::axis::{short, span};

/// The parameter along the axis, if nothing else is said.
pub(super) const X: &str = "network.delay";
/// Parameters that repeat a run, if nothing else is said.
pub(super) const REPLICATES: [&str; 5] =
    ["seed", "workload.week", "workload.from", "workload.until", "workload.days"];
/// A value of a parameter as a number: one, a time in seconds, or the length of a list such as the sizes of sites.
pub(crate) fn as_number(cell: &Cell) -> Option<(f64, bool)> {
    match cell {
        Cell::Text(text) if text.starts_with('[') => {
            let list: Vec<serde_json::Value> = serde_json::from_str(text).ok()?;
            Some((list.len() as f64, false))
        }
        Cell::Text(text) => {
            humantime::parse_duration(text).ok().map(|duration| (duration.as_secs_f64(), true))
        }
        other => other.number().map(|number| (number, false)),
    }
}

/// What a strategy is called by the parameters that tell it from others.
pub(crate) fn series_name<'a>(named: impl Iterator<Item = (&'a str, &'a Cell)>) -> String {
    let part = |(name, cell): (&str, &Cell)| match name {
        "strategy.name" => Some(cell.to_string()),
        _ if *cell == Cell::Null => None,
        _ => Some(format!("{} {cell}", name.rsplit('.').next().unwrap_or(name))),
    };
    let parts: Vec<String> = named.filter_map(part).collect();
    if parts.is_empty() { "all runs".to_string() } else { parts.join(", ") }
}

pub(super) fn chosen_axis(rows: &Rows, varying: &[String]) -> Option<String> {
    if let Some(delay) = varying.iter().find(|name| *name == X) {
        return Some(delay.clone());
    }
    let numbers = |name: &&String| {
        let index = rows.parameters.iter().position(|other| other == *name);
        index.is_some_and(|index| rows.rows.iter().all(|row| as_number(&row.parameters[index]).is_some()))
    };
    let is_axis = |name: &&String| !REPLICATES.contains(&name.as_str());
    // A sweep of one delay is shown at that.
    let only = rows.parameters.iter().find(|name| *name == X);
    varying.iter().filter(is_axis).find(numbers).or(only).or_else(|| varying.first()).cloned()
}

/// Which columns of the parameters play which part.
pub(super) struct Columns {
    pub(super) x: usize,
    replicates: Vec<usize>,
    panels: Vec<(usize, String)>,
    pub(super) named: Vec<(usize, String)>,
}

impl Columns {
    pub(super) fn new(
        rows: &Rows,
        x: &str,
        replicates: &[String],
        panels: &[String],
        named: &[String],
    ) -> Columns {
        let place = |name: &str| {
            rows.parameters.iter().position(|other| other == name).expect("callers name parameters")
        };
        let mut named: Vec<(usize, String)> = named.iter().map(|name| (place(name), name.clone())).collect();
        // The strategy's own name comes first.
        named.sort_by_key(|(_, name)| name != "strategy.name");
        Columns {
            x: place(x),
            replicates: replicates.iter().map(|name| place(name)).collect(),
            panels: panels.iter().map(|name| (place(name), name.clone())).collect(),
            named,
        }
    }

    pub(super) fn x_value(&self, row: &Row) -> Option<f64> {
        as_number(&row.parameters[self.x]).map(|(value, _)| value)
    }

    /// The points of the axis, and whether they are times. Texts that are no numbers are numbered.
    pub(super) fn points(&self, rows: &Rows) -> (Vec<(f64, String)>, bool) {
        let cells = || rows.rows.iter().map(|row| &row.parameters[self.x]);
        let is_time = cells().all(|cell| as_number(cell).is_some_and(|(_, is_time)| is_time));
        let mut points: Vec<(f64, String)> = Vec::new();
        for cell in cells() {
            let point = match as_number(cell) {
                Some((value, _)) if is_time => (value, span(value)),
                Some((value, _)) => (value, short(value)),
                None => (points.len() as f64 + 1.0, cell.to_string()),
            };
            let known = |other: &(f64, String)| {
                if as_number(cell).is_some() { other.0 == point.0 } else { other.1 == point.1 }
            };
            if !points.iter().any(known) {
                points.push(point);
            }
        }
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        (points, is_time)
    }

    pub(super) fn series(&self, row: &Row) -> String {
        series_name(self.named.iter().map(|(index, name)| (name.as_str(), &row.parameters[*index])))
    }

    pub(super) fn title(&self, row: &Row) -> String {
        let parts: Vec<String> =
            self.panels.iter().map(|(index, name)| format!("{name} = {}", row.parameters[*index])).collect();
        parts.join(", ")
    }

    pub(super) fn replicate(&self, row: &Row) -> String {
        let parts: Vec<String> =
            self.replicates.iter().map(|&index| row.parameters[index].to_string()).collect();
        parts.join(" ")
    }
}
