//! Our numbers beside printed ones: tables, and how far both agree.

use analysis::ranking::{
    Aggregate, Measured, chances_against, improvement, kendall, kendall_chance, mean_degradations, ranks,
    spearman,
};
use analysis::statistics::mean;
use outputs::table::Table;

use scheduler::spelling;

use super::Maker;
use super::data::{Data, Selection};
use super::expression::Expression;
use super::published::{PrintedRow, PrintedTable, Published, What};
use super::words::{fixed, significant};
use crate::sweep::ranking::{better, common, draws};

/// A difference is statistically significant if its corrected chance is at most this.
const LEVEL: f64 = 0.05;

/// Our numbers in place of those of a row.
struct Row {
    values: Vec<f64>,
    /// Whether it differs from the best, statistically significantly; of degradations of one metric in one grid.
    told: Vec<bool>,
}

/// Printed tables and how strategies are named in the data.
struct Beside<'a> {
    maker: &'a Maker<'a>,
    published: &'a Published,
    /// Switches that are added to the names of those strategies that were run with them.
    with: Option<String>,
}

impl<'a> Beside<'a> {
    fn of(maker: &'a Maker<'a>, with: Option<String>) -> Result<Beside<'a>, String> {
        let published =
            maker.published.ok_or("the head names no file of printed tables; write published = \"FILE\"")?;
        Ok(Beside { maker, published, with: with.filter(|with| with != NOTHING) })
    }

    fn data(&self, name: &str) -> Result<&'a Data, String> {
        self.maker.data.get(name).ok_or_else(|| format!("no data are {name:?}, which a printed row is about"))
    }

    fn group(&self, data: &Data, column: &str) -> Result<usize, String> {
        let name = &self.published.strategies[column];
        let all = Selection::default();
        if let Some(with) = &self.with
            && let Ok(found) = data.group(&all, Some(&format!("{name},{with}")))
        {
            return Ok(found);
        }
        data.group(&all, Some(name))
    }

    /// Metrics of some strategies in the repetitions that all have.
    fn measured(
        &self,
        data: &Data,
        metrics: &[String],
        columns: &[&String],
    ) -> Result<Vec<Measured>, String> {
        let all = Selection::default();
        let point = data.point(&all)?;
        let places = metrics.iter().map(|name| data.metric(name)).collect::<Result<Vec<_>, _>>()?;
        let mut values = Vec::new();
        for column in columns {
            let group = self.group(data, column)?;
            values.push(
                places.iter().map(|&metric| data.measured(&all, group, point, metric)).collect::<Vec<_>>(),
            );
        }
        let names: Vec<&str> = metrics.iter().map(String::as_str).collect();
        common(&names, &values)
            .filter(|common| common.strategies.len() == columns.len())
            .map(|common| common.metrics)
            .ok_or_else(|| format!("some strategy has no values of {}", names.join(", ")))
    }

    fn row(&self, table: &PrintedTable, row: &PrintedRow) -> Result<Row, String> {
        let columns = table.columns_of(row);
        let mut by_data = Vec::new();
        let mut told = vec![false; columns.len()];
        for name in &row.data {
            let data = self.data(name)?;
            by_data.push(if row.what.is_improvement() {
                self.improvements(data, row, columns)?
            } else if row.what == What::Mean {
                let measured = self.measured(data, &row.metrics, &columns.iter().collect::<Vec<_>>())?;
                measured.first().map(Measured::means).unwrap_or_default()
            } else {
                let others = table.reference.iter().filter(|name| !columns.contains(name));
                let measured =
                    self.measured(data, &row.metrics, &columns.iter().chain(others).collect::<Vec<_>>())?;
                let rows: Vec<Vec<f64>> =
                    measured.iter().map(|metric| metric.degradations(Aggregate::RatioOfMeans)).collect();
                let means = mean_degradations(&rows);
                if row.what == What::Degradation && row.data.len() == 1 && row.metrics.len() == 1 {
                    let best = (0..means.len()).min_by(|&a, &b| means[a].total_cmp(&means[b])).unwrap_or(0);
                    let chances = chances_against(&measured, best, &draws(data.study.bootstrap));
                    let is_told = |chance: &Option<f64>| chance.is_some_and(|chance| chance <= LEVEL);
                    told = chances.iter().take(columns.len()).map(is_told).collect();
                }
                means[..columns.len()].to_vec()
            });
        }
        let means = mean_degradations(&by_data);
        let values = match row.what {
            What::Degradation | What::Improvement | What::Mean => means,
            What::Rank => as_values(&ranks(&means)),
            What::ImprovementRank => as_values(&ranks(&means.iter().map(|value| -value).collect::<Vec<_>>())),
        };
        Ok(Row { values, told })
    }

    fn improvements(&self, data: &Data, row: &PrintedRow, columns: &[String]) -> Result<Vec<f64>, String> {
        let metrics = &row.metrics;
        let before = columns.iter().filter_map(|name| self.published.before_of(row, name));
        let measured = self.measured(data, metrics, &columns.iter().chain(before).collect::<Vec<_>>())?;
        let rows = measured.iter().zip(metrics).map(|(metric, name)| {
            let means = metric.means();
            let (own, before) = means.split_at(columns.len());
            own.iter().zip(before).map(|(own, before)| improvement(*own, *before, better(name))).collect()
        });
        Ok(mean_degradations(&rows.collect::<Vec<Vec<f64>>>()))
    }
}

/// In place of switches: strategies as they are named.
const NOTHING: &str = "-";

fn as_values(ranks: &[usize]) -> Vec<f64> {
    ranks.iter().map(|&rank| rank as f64).collect()
}

/// Our numbers have a digit behind the point where that says something; means, which are of ratios, have two.
fn ours(value: f64, what: What) -> String {
    if what == What::Mean {
        return fixed(value, 2);
    }
    if !value.is_finite() {
        return "\u{221e}".to_string();
    }
    fixed(value, usize::from(!what.is_rank() && value.abs() < 9.95))
}

/// As it was printed.
fn printed(value: f64) -> String {
    let text = value.to_string();
    fixed(value, text.split_once('.').map_or(0, |(_, decimals)| decimals.len()))
}

fn coefficient(value: Option<f64>) -> String {
    value.map_or("-".to_string(), |value| fixed(value, 2))
}

/// How many of the printed signs are ours; a 0 has none.
fn signs(ours: &[f64], printed: &[f64]) -> (usize, usize) {
    let signed = || ours.iter().zip(printed).filter(|(_, printed)| **printed != 0.0);
    (signed().filter(|(ours, printed)| *ours * *printed > 0.0).count(), signed().count())
}

/// The columns with the best value.
fn best(columns: &[String], values: &[f64], what: What) -> String {
    let sign = if what == What::Improvement { -1.0 } else { 1.0 };
    let least = values.iter().map(|value| sign * value).fold(f64::INFINITY, f64::min);
    let is_best = |(_, value): &(&String, &f64)| sign * **value == least;
    columns.iter().zip(values).filter(is_best).map(|(name, _)| name.clone()).collect::<Vec<_>>().join(", ")
}

/// `{{table published id=}}`: each row twice, ours above what was printed, and Kendall's tau of both.
pub(super) fn published(maker: &Maker, mut expression: Expression) -> Result<Table, String> {
    let id = expression.need("id")?;
    let beside = Beside::of(maker, expression.take("with"))?;
    let printed_table = beside.published.table(&id)?;
    refuse_rest(&mut expression)?;
    let head = std::iter::once(format!("table {id}")).chain(printed_table.columns.iter().cloned());
    let mut table = Table::new(head.chain([TAU.to_string()]));
    for row in &printed_table.rows {
        let found = beside.row(printed_table, row)?;
        let cell = |(value, told): (&f64, &bool)| {
            let text = ours(*value, row.what);
            if *told { format!("**{text}**") } else { text }
        };
        let tau = tau(&found.values, &row.values);
        let cells = found.values.iter().zip(&found.told).map(cell);
        table.push(std::iter::once(row.name.clone()).chain(cells).chain([tau]));
        let cells = row.values.iter().map(|value| printed(*value));
        table.push(std::iter::once("printed".to_string()).chain(cells).chain([String::new()]));
    }
    Ok(table)
}

const TAU: &str = "\u{3c4}";

/// Kendall's tau of our values and those that were printed, with the chance of one as far from none.
fn tau(ours: &[f64], printed: &[f64]) -> String {
    let tau = coefficient(kendall(ours, printed));
    match kendall_chance(ours, printed) {
        Some(chance) if chance < 0.001 => format!("{tau} (p < 0.001)"),
        Some(chance) => format!("{tau} (p = {})", significant(chance, 2)),
        None => tau,
    }
}

/// `{{table agreement id= with="-; plan=open-loop"}}`: a line for each row, with the correlations of both orders.
pub(super) fn agreement(maker: &Maker, mut expression: Expression) -> Result<Table, String> {
    let ids = expression.list("id").ok_or("it needs id=")?;
    let variants = expression.list("with").unwrap_or_else(|| vec![NOTHING.to_string()]);
    refuse_rest(&mut expression)?;
    let mut head = vec!["row".to_string()];
    for with in &variants {
        let of = if with == NOTHING { String::new() } else { format!(", {with}") };
        head.extend([format!("{TAU}{of}"), format!("Spearman{of}"), format!("best{of}")]);
    }
    head.push("best, printed".to_string());
    let mut table = Table::new(head);
    for id in &ids {
        let first = Beside::of(maker, None)?.published.table(id)?;
        for row in &first.rows {
            let mut line = vec![if ids.len() > 1 { format!("{id}: {}", row.name) } else { row.name.clone() }];
            for with in &variants {
                let beside = Beside::of(maker, Some(with.clone()))?;
                let found = beside.row(first, row)?;
                line.push(tau(&found.values, &row.values));
                line.push(coefficient(spearman(&found.values, &row.values)));
                line.push(best(&first.columns, &found.values, row.what));
            }
            line.push(best(&first.columns, &row.values, row.what));
            table.push(line);
        }
    }
    Ok(table)
}

/// `{{measured id= row= column=}}`, `{{printed …}}`, and `{{agreement id= row=}}`, where `row=*` is the mean of all.
pub(super) fn inline(maker: &Maker, mut expression: Expression) -> Result<String, String> {
    let (id, row) = (expression.need("id")?, expression.need("row")?);
    let beside = Beside::of(maker, expression.take("with"))?;
    let table = beside.published.table(&id)?;
    if expression.verb == "agreement" {
        let (by_signs, by_ranks) = (expression.has("signs"), expression.has("spearman"));
        refuse_rest(&mut expression)?;
        let rows = if row == "*" { table.rows.iter().collect() } else { vec![table.row(&row)?] };
        // A mean of several has no chance of its own.
        if let ([row], false, false) = (&rows[..], by_signs, by_ranks) {
            return Ok(tau(&beside.row(table, row)?.values, &row.values));
        }
        let mut found = Vec::new();
        let mut counted = (0, 0);
        for row in rows {
            let ours = beside.row(table, row)?.values;
            let (same, all) = signs(&ours, &row.values);
            counted = (counted.0 + same, counted.1 + all);
            found.extend(if by_ranks { spearman(&ours, &row.values) } else { kendall(&ours, &row.values) });
        }
        if by_signs {
            return Ok(format!("{} of {}", counted.0, counted.1));
        }
        return Ok(coefficient(mean(&found)));
    }
    let row = table.row(&row)?;
    let column = expression.need("column")?;
    refuse_rest(&mut expression)?;
    let place = table.columns.iter().position(|name| *name == column);
    let place = place.ok_or_else(|| {
        let hint = spelling::hint(&column, &table.columns);
        format!("no column is {column:?}{hint}; there are {}", table.columns.join(", "))
    })?;
    if expression.verb == "printed" {
        return Ok(printed(row.values[place]));
    }
    Ok(ours(beside.row(table, row)?.values[place], row.what))
}

fn refuse_rest(expression: &mut Expression) -> Result<(), String> {
    match expression.rest()?.first() {
        Some((key, _)) => Err(format!("{key}= means nothing here")),
        None => Ok(()),
    }
}
