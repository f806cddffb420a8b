//! `report.html`: the rows of a folder as one page with plots.

use std::path::Path;

use anyhow::Context as _;
use experiments::terminal::command_line;
use report::sweep::prediction::{Drawing, Plot, Predictions, Row, Table, html};

use super::choice::short;
use super::stored::{CurveRow, Results, ScheduleRow, Setting};
use super::tables;
use super::waits::WhoWaits;

/// Name of the file.
const PAGE: &str = "report.html";
/// Lines of a plot of times, at most: more hide each other.
const LINES: usize = 5;
/// Who is drawn there first, if it is there: what everybody compares with.
const ALWAYS: [&str; 3] = ["user", "avg2", "plan:by=user"];

/// Writes the page of a folder in place of the one that is there.
///
/// # Errors
/// If it cannot be written.
pub(super) fn write(
    out: &Path,
    setting: &Setting,
    results: &Results,
    warnings: Vec<String>,
) -> anyhow::Result<()> {
    let page = html(&Predictions {
        name: format!("Predictions on {}", setting.log_name()),
        about: setting.about(),
        warnings,
        command: command_line(),
        plots: plots(results),
        tables: written(results),
    });
    let path = out.join(PAGE);
    outputs::replace::write(&path, |file| file.write_all(page.as_bytes()))
        .with_context(|| format!("failed to write {}", path.display()))
}

fn written(results: &Results) -> Vec<Table> {
    let table = |title: &str, note, (is_there, table): (bool, outputs::table::Table)| {
        let (header, rows) = table.cells();
        is_there.then(|| Table {
            title: title.to_string(),
            note,
            header: header.to_vec(),
            rows: rows.to_vec(),
        })
    };
    let all = [
        table(
            "Errors of predictions of run times",
            "Of mean: the MAE over the mean run time, on the whole log and its halves. Under: the share that ran longer than \
             predicted. µs: what a prediction takes here.",
            (!results.errors.is_empty(), tables::errors(results)),
        ),
        table(
            "Schedules of EASY by predictions",
            "Slowdown: the mean bounded slowdown, from 10 s. Late: the share of jobs that started after their first reservation. Off: \
             how far starts are from these.",
            (!results.schedules.is_empty(), tables::schedules(results)),
        ),
        table(
            "Predictions of waits under EASY by users' estimates",
            "1 min: the share that is off by a minute at most. Covers: of a bound, the share of jobs that kept it, with its interval of \
             95 %.",
            (!results.waits.is_empty(), tables::waits(results, true)),
        ),
    ];
    all.into_iter().flatten().collect()
}

fn plots(results: &Results) -> Vec<Plot> {
    let of = |id, title: &str, note, drawing: Option<Drawing>| {
        drawing.map(|drawing| Plot { id, title: title.to_string(), note, drawing })
    };
    let all = [
        of(
            "errors",
            "Error of predicted run times",
            "The mean of |predicted − run time| over the mean run time. The least error is not the least slowdown.",
            errors(results),
        ),
        of(
            "slowdowns",
            "Bounded slowdown of EASY, by predictor, correction and order",
            "The least above. Dashed: who knows all run times, in each order: the end of the scale. With copies of the log, means over them \
             and their deviation.",
            slowdowns(results),
        ),
        of(
            "run-times",
            "Predicted over measured run time",
            "Jobs in twenty parts by run time: the median of what was predicted, with what half of them lie between. On the dashed line \
             predictions are right; below it they are too short.",
            times(results, ""),
        ),
        of(
            "wait-errors",
            "Error of predicted waits",
            "The mean of |predicted − wait| over the mean wait, in each order of backfilling. plan:by=exact knows all run times, but not \
             who comes later: what is left of its error is theirs.",
            wait_errors(results),
        ),
        of(
            "waits",
            "Predicted over measured wait",
            "Jobs that waited in twenty parts by wait, and those that did not at 0: the median of what was predicted, with what half of \
             them lie between.",
            results.waits.last().and_then(|row| times(results, &row.backfill)),
        ),
        of(
            "coverage",
            "Jobs that kept a bound on their wait",
            "The dashed line is the share that the bound is made for. Intervals are of batch means, as waits that follow each other are \
             alike.",
            coverage(results),
        ),
    ];
    all.into_iter().flatten().collect()
}

const PARTS: [(&str, &str); 3] = [("all", "whole log"), ("first", "first half"), ("second", "second half")];

/// Rows with values, the least first one above.
fn rows(
    label: &str,
    is_share: bool,
    kinds: Vec<String>,
    mut rows: Vec<Row>,
    references: Vec<(String, f64)>,
) -> Option<Drawing> {
    let first = |(_, values): &Row| values.iter().flatten().next().map_or(f64::INFINITY, |(value, _)| *value);
    rows.sort_by(|one, other| first(one).total_cmp(&first(other)));
    (!rows.is_empty()).then(|| Drawing::Rows { label: label.to_string(), is_share, kinds, rows, references })
}

fn errors(results: &Results) -> Option<Drawing> {
    let row = |name: &String| {
        let value = |part: &str| {
            let row = results.errors.iter().find(|row| row.predictor == *name && row.part == part)?;
            Some((row.mae_share, None))
        };
        (short(name).to_string(), PARTS.map(|(part, _)| value(part)).to_vec())
    };
    let names = results.errors.iter().filter(|row| row.part == "all").map(|row| &row.predictor);
    let kinds = PARTS.map(|(_, kind)| kind.to_string()).to_vec();
    rows("MAE over mean run time", false, kinds, names.map(row).collect(), Vec::new())
}

/// What occurs, in the order in which it does.
fn each(words: impl Iterator<Item = String>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for word in words {
        if !all.contains(&word) {
            all.push(word);
        }
    }
    all
}

fn slowdowns(results: &Results) -> Option<Drawing> {
    let whole = || results.schedules.iter().filter(|row| row.part == "all");
    // The last order is that of the shortest first, if nobody says otherwise, and counts for the order of rows.
    let mut orders = each(whole().map(|row| row.backfill.clone()));
    orders.reverse();
    let value = |row: &ScheduleRow| {
        let deviation = row.bounded_slowdown_copies_deviation;
        (row.bounded_slowdown_copies_mean, (deviation > 0.0).then_some(deviation))
    };
    let name = |row: &ScheduleRow| match row.correction.as_str() {
        "" => short(&row.predictor).to_string(),
        correction => format!("{}, {correction}", short(&row.predictor)),
    };
    let row = |shown: &String| {
        let of_order =
            |order: &String| whole().find(|row| name(row) == *shown && row.backfill == *order).map(value);
        (shown.clone(), orders.iter().map(of_order).collect())
    };
    let names = each(whole().map(name));
    let references = orders.iter().filter_map(|order| {
        let knowing = whole().find(|row| row.predictor == "exact" && row.backfill == *order)?;
        Some((format!("clairvoyant, {order}"), value(knowing).0))
    });
    let references = references.collect();
    let all = names.iter().map(row).collect();
    rows("mean bounded slowdown", false, orders, all, references)
}

fn wait_errors(results: &Results) -> Option<Drawing> {
    let shown = || results.waits.iter().filter(|row| row.part == "all" && row.coverage.is_none());
    let mut orders = each(shown().map(|row| row.backfill.clone()));
    orders.reverse();
    let row = |name: &String| {
        let of_order = |order: &String| {
            let row = shown().find(|row| row.predictor == *name && row.backfill == *order)?;
            Some((row.mae_share, None))
        };
        (WhoWaits::short(name).to_string(), orders.iter().map(of_order).collect())
    };
    let all = each(shown().map(|row| row.predictor.clone())).iter().map(row).collect();
    rows("MAE over mean wait", false, orders, all, Vec::new())
}

fn coverage(results: &Results) -> Option<Drawing> {
    let bounds = || results.waits.iter().filter(|row| row.part == "all" && row.coverage.is_some());
    let row = |bound: &super::stored::WaitRow| {
        let of_part = |part: &str| {
            let same = |row: &&super::stored::WaitRow| {
                (&row.predictor, &row.backfill, row.part.as_str())
                    == (&bound.predictor, &bound.backfill, part)
            };
            let row = results.waits.iter().find(same)?;
            Some((row.coverage?, row.coverage_half_width))
        };
        let name = format!("{}, {}", WhoWaits::short(&bound.predictor), bound.backfill);
        (name, PARTS.map(|(part, _)| of_part(part)).to_vec())
    };
    let kinds = PARTS.map(|(_, kind)| kind.to_string()).to_vec();
    let mut quantiles: Vec<f64> = bounds().filter_map(|row| row.quantile).collect();
    quantiles.sort_by(f64::total_cmp);
    quantiles.dedup();
    let references = quantiles.into_iter().map(|quantile| ("made for".to_string(), quantile)).collect();
    rows("share of jobs", true, kinds, bounds().map(row).collect(), references)
}

/// Of run times without an order, of waits under one.
fn times(results: &Results, order: &str) -> Option<Drawing> {
    let error = |name: &str| {
        let of_run_times = || results.errors.iter().find(|row| row.predictor == name && row.part == "all");
        let is_row = |row: &&super::stored::WaitRow| {
            row.predictor == name && row.backfill == order && row.part == "all"
        };
        match order {
            "" => of_run_times().map(|row| row.mae_s),
            // A bound is to be above.
            _ => results.waits.iter().find(is_row).filter(|row| row.coverage.is_none()).map(|row| row.mae_s),
        }
    };
    let of_order = || results.curves.iter().filter(|row| row.backfill == order);
    let mut names: Vec<(bool, f64, String)> = each(of_order().map(|row| row.predictor.clone()))
        .into_iter()
        .filter_map(|name| Some((!ALWAYS.contains(&name.as_str()), error(&name)?, name)))
        .collect();
    names.sort_by(|one, other| {
        (one.0, one.1).partial_cmp(&(other.0, other.1)).unwrap_or(std::cmp::Ordering::Equal)
    });
    names.truncate(LINES);
    let shown = |name: &str| {
        if order.is_empty() { short(name).to_string() } else { WhoWaits::short(name).to_string() }
    };
    let point =
        |row: &CurveRow| [row.measured_s, row.predicted_median_s, row.predicted_low_s, row.predicted_high_s];
    let line = |(_, _, name): &(bool, f64, String)| {
        (shown(name), of_order().filter(|row| row.predictor == *name).map(point).collect())
    };
    let what = if order.is_empty() { "run time" } else { "wait" };
    (!names.is_empty()).then(|| Drawing::Times { what, lines: names.iter().map(line).collect() })
}
