//! The rows of a sweep in the order that questions are asked: for each panel and strategy, along an axis, over
//! repetitions.
//!
//! The sweep file's `[report]` says which parameter plays which part. Without it, the axis is the delay, weeks and seeds
//! are repetitions, and all other parameters together name the strategy.

use std::collections::BTreeMap;

use analysis::statistics::{
    Bootstrap, Crossover, CrossoverInterval, Interval, Ratio, Summary, crossovers, paired_sign_flip,
};
use outputs::sweep::Rows;
use scheduler::spelling;
use serde::Deserialize;

use super::columns::{Columns, REPLICATES, X, chosen_axis};
use super::look::Looks;
use crate::quantity::grouped;

/// The strategy others are compared with, if nothing else is said and it is there.
const BASELINE: &str = "local";

/// `[report]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "the section [report]")]
pub struct WrittenReport {
    /// The parameter along the horizontal axis.
    pub x: Option<String>,
    /// Parameters that only repeat a run, such as weeks and seeds.
    pub replicates: Option<Vec<String>>,
    /// Parameters each of whose values gets plots of its own.
    pub panels: Option<Vec<String>>,
    /// The strategy that others are compared with.
    pub baseline: Option<String>,
    /// The metrics that strategies are ranked by.
    pub ranking: Option<Vec<String>>,
}

/// A sweep, read for a report.
#[derive(Clone, Debug)]
pub struct Study {
    /// As they were read.
    pub rows: Rows,
    /// The parameter along the axis.
    pub(crate) x: String,
    /// Its values, ascending, and how they are written.
    pub(crate) points: Vec<(f64, String)>,
    /// Whether the axis is a time in seconds.
    pub(crate) is_time: bool,
    /// The parameters that repeat.
    pub(crate) replicates: Vec<String>,
    /// Names of the strategies, in the order of the sweep.
    pub(crate) series: Vec<String>,
    /// How each is drawn.
    pub(crate) looks: Vec<usize>,
    /// Place of the strategy that others are compared with.
    pub(crate) baseline: usize,
    pub(crate) panels: Vec<Panel>,
    /// Parameters that name strategies, by place, that of `strategy.name` first.
    pub(crate) named: Vec<usize>,
    pub(crate) bootstrap: Bootstrap,
    /// The metrics that strategies are ranked by.
    pub(crate) ranking: Vec<String>,
}

/// All rows with the same values of the panel parameters.
#[derive(Clone, Debug)]
pub(crate) struct Panel {
    /// Those values; empty if there is one panel only.
    pub(crate) title: String,
    /// Rows by series, point and repetition.
    pub(crate) cells: Vec<Vec<BTreeMap<String, usize>>>,
}

/// Why a database cannot be shown. Reads after "failed to".
#[derive(Debug, thiserror::Error)]
#[error("show {what}: {reason}")]
pub struct StudyError {
    what: String,
    reason: String,
}

/// Says that a name is no parameter, and which names are.
pub fn no_parameter(name: &str, parameters: &[String]) -> String {
    if parameters.is_empty() {
        return format!("{name:?} is no parameter of the sweep, which has none; see [parameters]");
    }
    let hint = spelling::hint(name, parameters);
    format!("{name:?}{hint} is no parameter of the sweep; there are {}", parameters.join(", "))
}

/// How many runs of a sweep have no row yet, in words; `None` if all have.
pub fn missing_note(rows: &Rows) -> Option<String> {
    let missing = rows.missing()?;
    Some(format!(
        "{} of {} runs of the sweep are not there yet",
        grouped(missing as u64),
        grouped((missing + rows.rows.len()) as u64)
    ))
}

impl Study {
    /// The same, where all rows are of one series, with its name.
    #[must_use]
    pub fn with_single_series(mut self, name: &str) -> Study {
        if let [only] = &mut self.series[..] {
            *only = name.to_string();
            self.looks = Looks::default().of(&[name]);
        }
        self
    }

    /// Sorts the rows.
    ///
    /// # Errors
    /// If `wishes` name what the rows have not, or nothing was measured yet.
    pub fn new(rows: Rows, wishes: &WrittenReport) -> Result<Study, StudyError> {
        let wrong =
            |what: &str, reason: &str| StudyError { what: what.to_string(), reason: reason.to_string() };
        for name in [&wishes.x]
            .into_iter()
            .flatten()
            .chain(wishes.replicates.iter().flatten())
            .chain(wishes.panels.iter().flatten())
        {
            if !rows.parameters.contains(name) {
                return Err(wrong("the sweep", &no_parameter(name, &rows.parameters)));
            }
        }
        if !rows.rows.iter().any(|row| row.done) {
            return Err(wrong("the sweep", "no run is done yet"));
        }
        let varies = |name: &String| {
            let index = rows.parameters.iter().position(|other| other == name);
            index.is_some_and(|index| {
                let first = &rows.rows[0].parameters[index];
                rows.rows.iter().any(|row| row.parameters[index] != *first)
            })
        };
        let varying: Vec<String> = rows.parameters.iter().filter(|name| varies(name)).cloned().collect();
        let x = match &wishes.x {
            Some(x) => x.clone(),
            None => chosen_axis(&rows, &varying).ok_or_else(|| {
                wrong("the sweep", "no parameter with numbers varies; name one with x in [report]")
            })?,
        };
        let replicates: Vec<String> = match &wishes.replicates {
            Some(names) => names.clone(),
            None => varying
                .iter()
                .filter(|name| **name != x && REPLICATES.contains(&name.as_str()))
                .cloned()
                .collect(),
        };
        let panels = wishes.panels.clone().unwrap_or_default();
        let named: Vec<String> = varying
            .iter()
            .filter(|name| **name != x && !replicates.contains(name) && !panels.contains(name))
            .cloned()
            .collect();
        let columns = Columns::new(&rows, &x, &replicates, &panels, &named);
        let (points, is_time) = columns.points(&rows);
        let mut series: Vec<String> = Vec::new();
        let mut titles: Vec<String> = Vec::new();
        let mut found: Vec<Panel> = Vec::new();
        let mut placed = Vec::new();
        for (index, row) in rows.rows.iter().enumerate().filter(|(_, row)| row.done) {
            let name = columns.series(row);
            let title = columns.title(row);
            let place = |names: &mut Vec<String>, name: String| {
                names.iter().position(|other| *other == name).unwrap_or_else(|| {
                    names.push(name);
                    names.len() - 1
                })
            };
            let (series, panel) = (place(&mut series, name), place(&mut titles, title));
            let value = columns.x_value(row);
            let point = points.iter().position(|(x, words)| {
                value.map_or(*words == row.parameters[columns.x].to_string(), |value| value == *x)
            });
            placed.push((
                panel,
                series,
                point.expect("every value is a point"),
                columns.replicate(row),
                index,
            ));
        }
        for title in titles {
            found.push(Panel { title, cells: vec![vec![BTreeMap::new(); points.len()]; series.len()] });
        }
        for (panel, series, point, replicate, index) in placed {
            if let Some(other) = found[panel].cells[series][point].insert(replicate, index) {
                let (one, two) = (rows.rows[other].position, rows.rows[index].position);
                let reason = format!(
                    "they cannot be distinguished at {x}; name other panels or another x in [report]"
                );
                return Err(wrong(&format!("runs {one} and {two}"), &reason));
            }
        }
        let wanted = wishes.baseline.as_deref().unwrap_or(BASELINE);
        let is_wanted = |name: &String| name == wanted || name.split(", ").next() == Some(wanted);
        let baseline = match series.iter().position(is_wanted) {
            Some(place) => place,
            None if wishes.baseline.is_some() => {
                return Err(wrong(
                    wanted,
                    &format!("no strategy has this name; there are {}", series.join("; ")),
                ));
            }
            None => 0,
        };
        let present = with_numbers(&rows);
        let ranking = super::ranking::metrics(wishes.ranking.as_deref(), &present)
            .map_err(|reason| wrong("the ranking", &reason))?;
        Ok(Study {
            ranking,
            named: columns.named.iter().map(|(index, _)| *index).collect(),
            rows,
            x,
            points,
            is_time,
            replicates,
            looks: Looks::default().of(&series),
            series,
            baseline,
            panels: found,
            bootstrap: Bootstrap::default(),
        })
    }

    /// Names of the metrics with a number in some row.
    pub(crate) fn metrics(&self) -> Vec<String> {
        with_numbers(&self.rows)
    }

    /// The values of a metric by repetition; runs without one are missing.
    pub(crate) fn values(
        &self,
        panel: usize,
        series: usize,
        point: usize,
        metric: &str,
    ) -> BTreeMap<&str, f64> {
        let Some(column) = self.rows.metrics.iter().position(|name| name == metric) else {
            return BTreeMap::new();
        };
        let cell = &self.panels[panel].cells[series][point];
        cell.iter()
            .filter_map(|(key, &row)| Some((key.as_str(), self.rows.rows[row].metrics[column].number()?)))
            .collect()
    }

    /// The values in brief.
    pub(crate) fn summary(&self, panel: usize, series: usize, point: usize, metric: &str) -> Option<Summary> {
        let values: Vec<f64> = self.values(panel, series, point, metric).into_values().collect();
        self.bootstrap.summary(&values)
    }

    /// The mean of a metric.
    pub(crate) fn mean(&self, panel: usize, series: usize, point: usize, metric: &str) -> Option<f64> {
        let values: Vec<f64> = self.values(panel, series, point, metric).into_values().collect();
        analysis::statistics::mean(&values)
    }

    /// The paired difference of a strategy to another at a point.
    pub(crate) fn difference(
        &self,
        panel: usize,
        pair: (usize, usize),
        point: usize,
        metric: &str,
    ) -> Option<Summary> {
        let left = self.values(panel, pair.0, point, metric);
        let right = self.values(panel, pair.1, point, metric);
        self.bootstrap.paired(&left, &right)
    }

    /// The mean of a strategy over that of another at a point, by pairs.
    pub(crate) fn ratio(
        &self,
        panel: usize,
        pair: (usize, usize),
        point: usize,
        metric: &str,
    ) -> Option<Ratio> {
        let left = self.values(panel, pair.0, point, metric);
        let right = self.values(panel, pair.1, point, metric);
        self.bootstrap.paired_ratio(&left, &right)
    }

    /// How a strategy compares with another along the axis.
    pub(crate) fn duel(&self, panel: usize, pair: (usize, usize), metric: &str) -> Duel {
        let mut means = Vec::new();
        let mut first_lost = None;
        let mut ever_won = false;
        for (point, (x, words)) in self.points.iter().enumerate() {
            let Some(summary) = self.difference(panel, pair, point, metric) else { continue };
            means.push((*x, summary.mean));
            let certain = summary.interval.unwrap_or(Interval { low: summary.mean, high: summary.mean });
            if certain.high < 0.0 {
                ever_won = true;
                first_lost = None;
            } else if first_lost.is_none() {
                first_lost = Some(words.clone());
            }
        }
        Duel { crossovers: crossovers(&means), ever_won, lost_from: first_lost, means }
    }

    /// Where the advantage of a strategy over another ends along the axis, and how sure that is.
    pub(crate) fn advantage(
        &self,
        panel: usize,
        pair: (usize, usize),
        metric: &str,
    ) -> Option<CrossoverInterval> {
        let at = |(point, (x, _)): (usize, &(f64, String))| {
            let right = self.values(panel, pair.1, point, metric);
            let left = self.values(panel, pair.0, point, metric).into_iter();
            (*x, left.filter_map(|(key, value)| Some((key, value - right.get(key)?))).collect())
        };
        let axis: Vec<(f64, BTreeMap<&str, f64>)> = self.points.iter().enumerate().map(at).collect();
        self.bootstrap.crossover_interval(&axis)
    }

    /// The chance of the paired difference at a point if signs were chance.
    pub(crate) fn chance(
        &self,
        panel: usize,
        pair: (usize, usize),
        point: usize,
        metric: &str,
    ) -> Option<f64> {
        let left = self.values(panel, pair.0, point, metric);
        let right = self.values(panel, pair.1, point, metric);
        paired_sign_flip(&left, &right, self.bootstrap.seed)
    }

    /// Mean of a metric over all runs of a panel, for what depends on the workload alone.
    pub(crate) fn over_workloads(&self, panel: usize, metric: &str) -> Option<f64> {
        let values: Vec<f64> = (0..self.series.len())
            .flat_map(|series| (0..self.points.len()).map(move |point| (series, point)))
            .flat_map(|(series, point)| self.values(panel, series, point, metric).into_values())
            .collect();
        analysis::statistics::mean(&values)
    }

    /// Whether all repetitions of each point are one run again and again, by the mean wait.
    pub(crate) fn are_copies(&self) -> bool {
        let Some(metric) = self.rows.metrics.iter().find(|name| *name == "wait_mean_s") else { return false };
        let mut is_repeated = false;
        for panel in 0..self.panels.len() {
            for (series, point) in
                (0..self.series.len()).flat_map(|series| (0..self.points.len()).map(move |at| (series, at)))
            {
                let values: Vec<f64> = self.values(panel, series, point, metric).into_values().collect();
                is_repeated |= values.len() > 1;
                if values.windows(2).any(|pair| pair[0] != pair[1]) {
                    return false;
                }
            }
        }
        is_repeated
    }

    /// How many repetitions the fullest cell of a panel has.
    pub(crate) fn repetitions(&self, panel: usize) -> usize {
        self.panels[panel].cells.iter().flatten().map(BTreeMap::len).max().unwrap_or(0)
    }

    /// How many runs failed, and one of the reasons.
    pub(crate) fn failed(&self) -> (usize, Option<&str>) {
        let failed = || self.rows.rows.iter().filter(|row| !row.done);
        (failed().count(), failed().find_map(|row| row.error.as_deref()))
    }

    /// How many runs failed or are not there, of how many; `None` if all are.
    pub fn left_out(&self) -> Option<String> {
        let (failed, _) = self.failed();
        let missing = self.rows.missing().unwrap_or(0);
        let all = grouped((self.rows.rows.len() + missing) as u64);
        let failed = (failed > 0).then(|| format!("{} of {all} runs failed", grouped(failed as u64)));
        let missing =
            (missing > 0).then(|| format!("{} of {all} runs are not there", grouped(missing as u64)));
        match (failed, missing) {
            (Some(failed), Some(missing)) => Some(format!("{failed}, and {missing}")),
            (one, other) => one.or(other),
        }
    }

    /// The horizontal axis in words.
    pub(crate) fn x_label(&self) -> String {
        match self.x.as_str() {
            X => "one-way delay of a message".to_string(),
            "workload.load" => "load, work over capacity".to_string(),
            other => other.to_string(),
        }
    }
}

/// Names of the metrics with a number in some row.
fn with_numbers(rows: &Rows) -> Vec<String> {
    let has = |index: &usize| rows.rows.iter().any(|row| row.metrics[*index].number().is_some());
    (0..rows.metrics.len()).filter(has).map(|index| rows.metrics[index].clone()).collect()
}

/// How a strategy compares with another along the axis; less is better.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Duel {
    /// Where the mean difference changes its sign.
    pub(crate) crossovers: Vec<Crossover>,
    /// Whether it is better with certainty anywhere: the whole interval is below zero.
    pub(crate) ever_won: bool,
    /// The first point from which on it is nowhere better with certainty.
    pub(crate) lost_from: Option<String>,
    /// The mean differences.
    pub(crate) means: Vec<(f64, f64)>,
}

#[cfg(test)]
pub(super) mod tests {
    use outputs::sweep::{Cell, Row};

    use super::*;

    /// Rows of strategies by delay and week: `value(strategy, delay, week)` is the mean wait.
    pub(in crate::sweep) fn rows(
        strategies: &[&str],
        delays: &[&str],
        weeks: i64,
        value: impl Fn(&str, f64, i64) -> f64,
    ) -> Rows {
        let mut rows = Vec::new();
        for delay in delays {
            for strategy in strategies {
                for week in 1..=weeks {
                    let seconds = humantime::parse_duration(delay).unwrap().as_secs_f64();
                    let text = |text: &str| Cell::Text(text.to_string());
                    let wait = value(strategy, seconds, week);
                    rows.push(Row {
                        position: rows.len() as i64 + 1,
                        done: true,
                        error: None,
                        wall_s: 0.1,
                        parameters: vec![text(delay), text(strategy), Cell::Integer(week)],
                        metrics: vec![
                            Cell::Integer(100),
                            Cell::Real(1.0 + wait / 1000.0),
                            Cell::Real(wait),
                            Cell::Real(1.0 + wait / 10.0),
                            Cell::Real(50.0),
                        ],
                    });
                }
            }
        }
        Rows {
            name: "test".to_string(),
            text: String::new(),
            planned: Some(rows.len()),
            digits: None,
            version: "0".to_string(),
            command: "stealgrid sweep test.toml".to_string(),
            commit: None,
            parameters: ["network.delay", "strategy.name", "workload.week"].map(str::to_string).to_vec(),
            metrics: ["jobs", "ratio_best", "wait_mean_s", "bounded_slowdown_mean", "run_time_by_size_s"]
                .map(str::to_string)
                .to_vec(),
            rows,
        }
    }

    /// Stealing waits 10 s and twice the delay, no exchange 100 s; weeks differ by 1,000 s.
    pub(in crate::sweep) fn two_strategies() -> Study {
        let rows = rows(&["local", "st:50"], &["0s", "10s", "1m", "10m"], 8, |strategy, delay, week| {
            let own = if strategy == "local" { 100.0 } else { 10.0 + 2.0 * delay };
            own + 1000.0 * week as f64
        });
        Study::new(rows, &WrittenReport::default()).unwrap()
    }

    #[test]
    fn parameters_play_their_parts_without_being_told() {
        let study = two_strategies();

        assert_eq!(study.x, "network.delay");
        assert_eq!(
            study.points.iter().map(|(_, words)| words.as_str()).collect::<Vec<_>>(),
            ["0", "10 s", "1 min", "10 min"]
        );
        assert_eq!(study.series, ["local", "st:50"]);
        assert_eq!((study.baseline, study.replicates.as_slice()), (0, &["workload.week".to_string()][..]));
        assert_eq!(study.repetitions(0), 8);
        assert_eq!(study.mean(0, 1, 2, "wait_mean_s"), Some(130.0 + 4500.0));
    }

    #[test]
    fn a_sweep_of_one_delay_is_shown_at_that() {
        let rows = rows(&["local", "st:50"], &["30s"], 8, |_, _, week| week as f64);
        let study = Study::new(rows, &WrittenReport::default()).unwrap();
        assert_eq!((study.x.as_str(), study.points.len()), ("network.delay", 1));
        assert_eq!((study.series.len(), study.repetitions(0)), (2, 8));
    }

    #[test]
    fn differences_of_pairs_are_certain_where_means_are_not() {
        let study = two_strategies();

        let difference = study.difference(0, (1, 0), 0, "wait_mean_s").unwrap();
        assert!((difference.mean + 90.0).abs() < 1e-9);
        assert!(difference.interval.unwrap().high < -89.0, "weeks cancel");
        let own = study.summary(0, 1, 0, "wait_mean_s").unwrap().interval.unwrap();
        assert!(own.high - own.low > 1000.0, "weeks differ");

        let duel = study.duel(0, (1, 0), "wait_mean_s");
        // 10 + 2 d = 100 at d = 45 s; between 10 s and 1 min the means go from -70 to 30.
        assert_eq!(duel.crossovers.len(), 1);
        let at = duel.crossovers[0].at();
        assert!((10.0..60.0).contains(&at), "{at}");
        assert_eq!((duel.ever_won, duel.lost_from.as_deref()), (true, Some("1 min")));
    }

    #[test]
    fn wishes_are_followed_or_refused() {
        let rows = || rows(&["local", "st:50", "st:25"], &["0s", "1s"], 2, |_, delay, _| delay);
        let wishes = WrittenReport {
            x: Some("workload.week".to_string()),
            panels: Some(vec!["network.delay".to_string()]),
            replicates: Some(Vec::new()),
            baseline: Some("st:25".to_string()),
            ranking: None,
        };

        let study = Study::new(rows(), &wishes).unwrap();
        assert_eq!(study.points.len(), 2);
        assert!(!study.is_time);
        assert_eq!(study.panels.len(), 2);
        assert_eq!(study.panels[1].title, "network.delay = 1s");
        assert_eq!(study.baseline, 2);

        let unknown = WrittenReport { x: Some("seed".to_string()), ..WrittenReport::default() };
        let error = Study::new(rows(), &unknown).unwrap_err().to_string();
        assert_eq!(
            error,
            "show the sweep: \"seed\" is no parameter of the sweep; there are network.delay, strategy.name, workload.week"
        );
        let nobody = WrittenReport { baseline: Some("st:10".to_string()), ..WrittenReport::default() };
        let error = Study::new(rows(), &nobody).unwrap_err().to_string();
        assert!(error.contains("there are local; st:50; st:25"), "{error}");
    }

    #[test]
    fn failed_runs_are_counted_and_left_out() {
        let mut rows = rows(&["local"], &["0s", "1s"], 3, |_, _, _| 1.0);
        rows.rows[0] = Row {
            done: false,
            error: Some("why".to_string()),
            metrics: vec![Cell::Null; 5],
            ..rows.rows[0].clone()
        };

        let study = Study::new(rows.clone(), &WrittenReport::default()).unwrap();

        assert_eq!(study.failed(), (1, Some("why")));
        assert_eq!(study.values(0, 0, 0, "wait_mean_s").len(), 2);
        for row in &mut rows.rows {
            row.done = false;
        }
        let error = Study::new(rows, &WrittenReport::default()).unwrap_err().to_string();
        assert_eq!(error, "show the sweep: no run is done yet");
    }
}
