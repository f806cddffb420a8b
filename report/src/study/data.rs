//! The rows that a template speaks of, found by the values of parameters.
//!
//! Rows are sorted once, by [`Study`]: into panels, series, points and repetitions. A selection fixes parameters; what
//! tells the selected series apart then names them. Everything else goes by metric, series and point.

use std::collections::BTreeMap;

use scheduler::spelling;

use analysis::statistics::{mean, paired_sign_flip};
use outputs::sweep::{Cell, Rows};

use crate::sweep::columns::{as_number, series_name};
use crate::sweep::study::{Study, WrittenReport};

/// A data file, read and sorted.
pub(super) struct Data {
    pub(super) study: Study,
    /// Every series of every panel.
    groups: Vec<Group>,
    /// Values of each parameter.
    values: Vec<Vec<Cell>>,
    metrics: BTreeMap<String, usize>,
    /// How series are shown, by their names.
    labels: BTreeMap<String, String>,
    x: usize,
    replicates: Vec<usize>,
}

struct Group {
    panel: usize,
    series: usize,
    /// One of its rows; all have the same values of the parameters that make a group.
    row: usize,
}

/// Values of parameters, by place of the parameter.
#[derive(Clone, Debug, Default)]
pub(super) struct Selection(pub(super) BTreeMap<usize, Vec<String>>);

impl Selection {
    /// The same with one parameter at one value.
    pub(super) fn with(&self, parameter: usize, value: &str) -> Selection {
        let mut fixed = self.0.clone();
        fixed.insert(parameter, vec![value.to_string()]);
        Selection(fixed)
    }

    fn is_fixed(&self, parameter: usize) -> bool {
        self.0.get(&parameter).is_some_and(|values| values.len() == 1)
    }
}

/// Values by repetition.
pub(super) type Values<'a> = BTreeMap<&'a str, f64>;

impl Data {
    /// Sorts rows.
    ///
    /// # Errors
    /// In words, if they cannot be told apart, or `wishes` name what they have not.
    pub(super) fn new(
        rows: Rows,
        wishes: &WrittenReport,
        labels: &BTreeMap<String, String>,
    ) -> Result<Data, String> {
        let study = Study::new(rows, wishes).map_err(|error| error.to_string())?;
        let mut groups = Vec::new();
        for (panel, found) in study.panels.iter().enumerate() {
            for (series, points) in found.cells.iter().enumerate() {
                if let Some(row) = points.iter().flat_map(BTreeMap::values).next() {
                    groups.push(Group { panel, series, row: *row });
                }
            }
        }
        let rows = &study.rows;
        let done = || rows.rows.iter().filter(|row| row.done);
        let values = (0..rows.parameters.len()).map(|index| {
            let mut values: Vec<Cell> = Vec::new();
            for cell in done().map(|row| &row.parameters[index]) {
                if !values.contains(cell) {
                    values.push(cell.clone());
                }
            }
            values.sort_by(|a, b| order(a).total_cmp(&order(b)));
            values
        });
        let place = |name: &String| rows.parameters.iter().position(|other| other == name);
        Ok(Data {
            values: values.collect(),
            metrics: rows.metrics.iter().cloned().zip(0..).collect(),
            labels: labels.clone(),
            x: place(&study.x).ok_or("no parameter is the axis")?,
            replicates: study.replicates.iter().filter_map(place).collect(),
            groups,
            study,
        })
    }

    /// A parameter by its name or the last part of it.
    pub(super) fn parameter(&self, key: &str) -> Result<usize, String> {
        let names = &self.study.rows.parameters;
        if let Some(place) = names.iter().position(|name| name == key) {
            return Ok(place);
        }
        let short: Vec<usize> =
            (0..names.len()).filter(|&place| names[place].rsplit('.').next() == Some(key)).collect();
        match short[..] {
            [one] => Ok(one),
            [] => Err(format!(
                "{key:?}{} is neither a key of this expression nor a parameter; there are {}",
                spelling::hint(key, names),
                names.join(", ")
            )),
            _ => Err(format!("{key:?} is short for several parameters; write one of {}", names.join(", "))),
        }
    }

    /// The last part of a parameter's name.
    pub(super) fn short(&self, parameter: usize) -> &str {
        let name = &self.study.rows.parameters[parameter];
        name.rsplit('.').next().unwrap_or(name)
    }

    /// What parameters are selected.
    pub(super) fn selection(&self, pairs: Vec<(String, Vec<String>)>) -> Result<Selection, String> {
        let mut fixed = BTreeMap::new();
        for (key, wanted) in pairs {
            let parameter = self.parameter(&key)?;
            for value in &wanted {
                self.value(parameter, value)?;
            }
            if fixed.insert(parameter, wanted).is_some() {
                return Err(format!("{key} is given by two names"));
            }
        }
        Ok(Selection(fixed))
    }

    /// The value of a parameter that is written so.
    pub(super) fn value(&self, parameter: usize, wanted: &str) -> Result<&Cell, String> {
        let values = &self.values[parameter];
        values.iter().find(|cell| is(cell, wanted)).ok_or_else(|| {
            let there: Vec<String> = values.iter().map(Cell::to_string).collect();
            format!(
                "no run has {} = {wanted}; there are {}",
                self.study.rows.parameters[parameter],
                there.join(", ")
            )
        })
    }

    /// The values of a parameter that are selected, ascending or as they were asked for.
    pub(super) fn selected_values(&self, selection: &Selection, parameter: usize) -> Vec<String> {
        match selection.0.get(&parameter) {
            Some(wanted) => wanted.clone(),
            None => self.values[parameter]
                .iter()
                .filter(|cell| **cell != Cell::Null)
                .map(Cell::to_string)
                .collect(),
        }
    }

    /// Whether a parameter is the horizontal axis.
    pub(super) fn is_x(&self, parameter: usize) -> bool {
        parameter == self.x
    }

    /// The parameter along the horizontal axis.
    pub(super) fn x(&self) -> usize {
        self.x
    }

    /// The points of the axis that are selected.
    pub(super) fn points(&self, selection: &Selection) -> Vec<usize> {
        let wanted = selection.0.get(&self.x);
        let is_wanted = |(value, words): &(f64, String)| {
            wanted.is_none_or(|wanted| {
                wanted.iter().any(|text| {
                    text == words
                        || as_number(&Cell::Text(text.clone())).is_some_and(|(number, _)| number == *value)
                        || text.parse() == Ok(*value)
                })
            })
        };
        (0..self.study.points.len()).filter(|&point| is_wanted(&self.study.points[point])).collect()
    }

    /// The one point that is selected.
    pub(super) fn point(&self, selection: &Selection) -> Result<usize, String> {
        match self.points(selection)[..] {
            [one] => Ok(one),
            ref several => {
                let words: Vec<&str> =
                    several.iter().map(|&point| self.study.points[point].1.as_str()).collect();
                Err(format!("it needs one {}; there are {}", self.short(self.x), words.join(", ")))
            }
        }
    }

    /// A value of the group's parameter.
    fn cell(&self, group: usize, parameter: usize) -> &Cell {
        &self.study.rows.rows[self.groups[group].row].parameters[parameter]
    }

    fn makes_groups(&self, parameter: usize) -> bool {
        parameter != self.x && !self.replicates.contains(&parameter)
    }

    /// The series that are selected, in all panels.
    pub(super) fn groups(&self, selection: &Selection) -> Vec<usize> {
        let fixed = || selection.0.iter().filter(|(parameter, _)| self.makes_groups(**parameter));
        let is_selected = |group: &usize| {
            fixed()
                .all(|(parameter, wanted)| wanted.iter().any(|text| is(self.cell(*group, *parameter), text)))
        };
        (0..self.groups.len()).filter(is_selected).collect()
    }

    /// The name by what is not fixed.
    pub(super) fn name(&self, group: usize, selection: &Selection) -> String {
        let row = &self.study.rows.rows[self.groups[group].row];
        let named = self.study.named.iter().filter(|parameter| !selection.is_fixed(**parameter));
        series_name(
            named.map(|&parameter| {
                (self.study.rows.parameters[parameter].as_str(), &row.parameters[parameter])
            }),
        )
    }

    /// The whole name.
    fn full_name(&self, group: usize) -> &str {
        &self.study.series[self.groups[group].series]
    }

    /// Names of all series, whole.
    pub(super) fn series_names(&self) -> impl Iterator<Item = &str> {
        self.study.series.iter().map(String::as_str)
    }

    /// Whether a series goes by this name, or could where some of its parameters are fixed: that leaves these parts out.
    pub(super) fn has_series(&self, wanted: &str) -> bool {
        self.series_names().any(|name| {
            let parts: Vec<&str> = name.split(", ").collect();
            wanted.split(", ").all(|part| parts.contains(&part))
        })
    }

    /// What a series is called on the page.
    pub(super) fn label(&self, group: usize, selection: &Selection) -> String {
        let name = self.name(group, selection);
        let label = self.labels.get(self.full_name(group)).or_else(|| self.labels.get(&name));
        label.cloned().unwrap_or(name)
    }

    /// The same for a name that a series was found by.
    pub(super) fn label_of(&self, group: usize, name: &str) -> String {
        let label = self.labels.get(self.full_name(group)).or_else(|| self.labels.get(name));
        label.cloned().unwrap_or_else(|| name.to_string())
    }

    /// What repetitions are selected, for whoever must tell selections apart.
    pub(super) fn repetitions<'a>(&self, selection: &'a Selection) -> Vec<(&'a usize, &'a Vec<String>)> {
        selection.0.iter().filter(|(parameter, _)| self.replicates.contains(parameter)).collect()
    }

    /// The place of its series among all.
    pub(super) fn series_of(&self, group: usize) -> usize {
        self.groups[group].series
    }

    /// Which of some series goes by this name, wholly or by parts of it that no other has.
    fn pick(&self, among: &[usize], wanted: &str, selection: &Selection) -> Result<usize, String> {
        let exact = |group: &&usize| {
            let names = [
                self.label(**group, selection),
                self.name(**group, selection),
                self.full_name(**group).to_string(),
            ];
            names.iter().any(|name| name == wanted)
        };
        let by_parts = |group: &&usize| {
            let parts: Vec<&str> = self.full_name(**group).split(", ").collect();
            wanted.split(", ").all(|part| parts.contains(&part))
        };
        let mut found: Vec<usize> = among.iter().filter(exact).copied().collect();
        if found.is_empty() {
            found = among.iter().filter(by_parts).copied().collect();
        }
        match found[..] {
            [one] => Ok(one),
            [] => Err(format!("no series is {wanted:?}; {}", self.there_are(among, selection))),
            _ => Err(format!("several series are {wanted:?}; {}", self.there_are(&found, selection))),
        }
    }

    fn there_are(&self, groups: &[usize], selection: &Selection) -> String {
        if groups.is_empty() {
            return "nothing is selected".to_string();
        }
        let panel = |group: &usize| self.groups[*group].panel;
        let several = groups.iter().any(|group| panel(group) != panel(&groups[0]));
        let with_panel = |group: &usize| {
            let name = self.name(*group, selection);
            if several { format!("{name} ({})", self.study.panels[panel(group)].title) } else { name }
        };
        format!("there are {}", groups.iter().map(with_panel).collect::<Vec<_>>().join("; "))
    }

    /// The series of this name among those selected; without one, the only one.
    pub(super) fn group(&self, selection: &Selection, wanted: Option<&str>) -> Result<usize, String> {
        let among = self.groups(selection);
        match (wanted, &among[..]) {
            (Some(wanted), _) => self.pick(&among, wanted, selection),
            (None, [one]) => Ok(*one),
            (None, _) => Err(format!("it needs series=; {}", self.there_are(&among, selection))),
        }
    }

    /// The series of these names, in their order; without names, all that are selected.
    pub(super) fn named_groups(
        &self,
        selection: &Selection,
        names: Option<&[String]>,
    ) -> Result<Vec<usize>, String> {
        match names {
            None => Ok(self.groups(selection)),
            Some(names) => names.iter().map(|name| self.group(selection, Some(name))).collect(),
        }
    }

    /// The same in every panel that is selected and has them.
    pub(super) fn groups_of(
        &self,
        selection: &Selection,
        names: Option<&[String]>,
    ) -> Result<Vec<usize>, String> {
        let among = self.groups(selection);
        let Some(names) = names else { return Ok(among) };
        let mut panels: Vec<usize> = among.iter().map(|&group| self.groups[group].panel).collect();
        panels.sort_unstable();
        panels.dedup();
        let in_panel = |panel: usize| -> Vec<usize> {
            among.iter().copied().filter(|&group| self.groups[group].panel == panel).collect()
        };
        let mut found = Vec::new();
        for name in names {
            let before = found.len();
            found
                .extend(panels.iter().filter_map(|&panel| self.pick(&in_panel(panel), name, selection).ok()));
            if found.len() == before {
                // For its words.
                self.pick(&among, name, selection)?;
            }
        }
        Ok(found)
    }

    /// The series that another is compared with: in the same panel, and where it lacks a parameter that is fixed, or
    /// has another value of it, by its whole name.
    pub(super) fn against(&self, selection: &Selection, group: usize, wanted: &str) -> Result<usize, String> {
        let here = |other: &usize| self.groups[*other].panel == self.groups[group].panel;
        let selected: Vec<usize> = self.groups(selection).into_iter().filter(here).collect();
        let first = self.pick(&selected, wanted, selection);
        if first.is_ok() {
            return first;
        }
        let all: Vec<usize> = (0..self.groups.len()).filter(here).collect();
        let fixed = || selection.0.iter().filter(|(parameter, _)| self.makes_groups(**parameter));
        let lacks = |other: &usize| {
            fixed().all(|(parameter, wanted)| {
                let cell = self.cell(*other, *parameter);
                *cell == Cell::Null || wanted.iter().any(|text| is(cell, text))
            })
        };
        let lacking: Vec<usize> = all.iter().copied().filter(lacks).collect();
        self.pick(&lacking, wanted, selection)
            .or_else(|_| self.pick(&all, wanted, &Selection::default()))
            .or(first)
    }

    /// The metrics that a name with `*` stands for, and what stands for the star in each.
    pub(super) fn metrics(&self, wanted: &str) -> Result<Vec<(String, String)>, String> {
        let Some((begin, end)) = wanted.split_once('*') else {
            self.metric(wanted)?;
            return Ok(vec![(wanted.to_string(), wanted.to_string())]);
        };
        let part = |name: &String| {
            let part = name.strip_prefix(begin)?.strip_suffix(end)?;
            Some((name.clone(), part.to_string()))
        };
        let found: Vec<(String, String)> = self.study.rows.metrics.iter().filter_map(part).collect();
        if found.is_empty() { Err(self.no_metric(wanted)) } else { Ok(found) }
    }

    /// The column of a metric.
    pub(super) fn metric(&self, name: &str) -> Result<usize, String> {
        self.metrics.get(name).copied().ok_or_else(|| self.no_metric(name))
    }

    fn no_metric(&self, name: &str) -> String {
        let names = &self.study.rows.metrics;
        format!("no metric is {name:?}{}; there are {}", spelling::hint(name, names), names.join(", "))
    }

    /// Rows of a series at a point that are selected, with their repetition.
    pub(super) fn rows<'a>(
        &'a self,
        selection: &'a Selection,
        group: usize,
        point: usize,
    ) -> impl Iterator<Item = (&'a str, usize)> + 'a {
        let Group { panel, series, .. } = self.groups[group];
        let fixed = self.repetitions(selection);
        let is_selected = move |row: usize| {
            let cells = &self.study.rows.rows[row].parameters;
            fixed.iter().all(|(parameter, wanted)| wanted.iter().any(|text| is(&cells[**parameter], text)))
        };
        let cell = &self.study.panels[panel].cells[series][point];
        cell.iter().filter(move |(_, row)| is_selected(**row)).map(|(key, row)| (key.as_str(), *row))
    }

    /// Values of a metric by repetition.
    pub(super) fn measured<'a>(
        &'a self,
        selection: &'a Selection,
        group: usize,
        point: usize,
        metric: usize,
    ) -> Values<'a> {
        let number = |row: usize| self.study.rows.rows[row].metrics[metric].number();
        self.rows(selection, group, point).filter_map(|(key, row)| Some((key, number(row)?))).collect()
    }

    /// Mean of a metric over repetitions.
    pub(super) fn mean(
        &self,
        selection: &Selection,
        group: usize,
        point: usize,
        metric: usize,
    ) -> Option<f64> {
        let values: Vec<f64> = self.measured(selection, group, point, metric).into_values().collect();
        mean(&values)
    }

    /// The values of both of a pair.
    pub(super) fn pair<'a>(
        &'a self,
        selection: &'a Selection,
        pair: (usize, usize),
        point: usize,
        metric: usize,
    ) -> (Values<'a>, Values<'a>) {
        (self.measured(selection, pair.0, point, metric), self.measured(selection, pair.1, point, metric))
    }

    /// Left less right by repetition, at every point that is selected.
    pub(super) fn differences<'a>(
        &'a self,
        selection: &'a Selection,
        pair: (usize, usize),
        metric: usize,
    ) -> Vec<(f64, BTreeMap<&'a str, f64>)> {
        let at = |point: usize| {
            let (left, right) = self.pair(selection, pair, point, metric);
            let values =
                left.iter().filter_map(|(key, value)| Some((*key, value - right.get(key)?))).collect();
            (self.study.points[point].0, values)
        };
        self.points(selection).into_iter().map(at).collect()
    }

    /// The chance of such differences if nothing were behind them.
    pub(super) fn chance(
        &self,
        selection: &Selection,
        pair: (usize, usize),
        point: usize,
        metric: usize,
    ) -> Option<f64> {
        let (left, right) = self.pair(selection, pair, point, metric);
        paired_sign_flip(&left, &right, self.study.bootstrap.seed)
    }
}

/// Whether a value is written so: `1m` is `60s`, and `0.80` is `0.8`.
fn is(cell: &Cell, wanted: &str) -> bool {
    if cell.to_string() == wanted {
        return true;
    }
    match (cell, as_number(cell)) {
        (Cell::Text(text), _) if text.starts_with('[') => false,
        (_, Some((value, _))) => {
            wanted.parse() == Ok(value)
                || as_number(&Cell::Text(wanted.to_string()))
                    .is_some_and(|(other, is_time)| is_time && other == value)
        }
        _ => false,
    }
}

/// Numbers ascending; texts stay in the order of the sweep, behind them.
fn order(cell: &Cell) -> f64 {
    as_number(cell).map_or(f64::INFINITY, |(value, _)| value)
}
