//! Results as tables for readers.

use outputs::table::Table;
use report::quantity::number;

use super::choice::short;
use super::stored::{ErrorRow, Results, ScheduleRow};

/// Both tables under their titles, each shown in one way.
pub(super) fn all(results: &Results, shown: impl Fn(&Table) -> String) -> String {
    let mut text = String::new();
    if !results.errors.is_empty() {
        text += &format!("Errors of predictions.\n\n{}", shown(&errors(results)));
    }
    if !results.schedules.is_empty() {
        let gap = if text.is_empty() { "" } else { "\n" };
        text += &format!("{gap}Schedules of EASY by predictions.\n\n{}", shown(&schedules(results)));
    }
    text
}

fn share(share: f64) -> String {
    format!("{share:.3}")
}

fn errors(results: &Results) -> Table {
    // Of rows that were stored for long nobody keeps what they took.
    let is_timed = !results.costs.is_empty();
    let timed = |cells: [String; 11]| cells.into_iter().take(if is_timed { 11 } else { 10 });
    let header = [
        "predictor",
        "MAE s",
        "of mean",
        "1st half",
        "2nd half",
        "median s",
        "accuracy",
        "under",
        "slope",
        "R",
        "µs",
    ];
    let mut table = Table::new(timed(header.map(str::to_string)));
    for row in results.errors.iter().filter(|row| row.part == "all") {
        let half = |part: &str| {
            let of_part = |other: &&ErrorRow| other.predictor == row.predictor && other.part == part;
            results.errors.iter().find(of_part).map_or("-".to_string(), |row| share(row.mae_share))
        };
        let cost = results.costs.iter().find(|cost| cost.predictor == row.predictor);
        table.push(timed([
            short(&row.predictor).to_string(),
            number(row.mae_s),
            share(row.mae_share),
            half("first"),
            half("second"),
            number(row.error_median_s),
            share(row.accuracy),
            share(row.under_share),
            row.slope.map_or("-".to_string(), share),
            row.correlation.map_or("-".to_string(), share),
            cost.map_or("-".to_string(), |cost| format!("{:.1}", cost.cost_us)),
        ]));
    }
    table
}

fn schedules(results: &Results) -> Table {
    let mut table = Table::new([
        "predictor",
        "corrected",
        "backfill",
        "slowdown",
        "1st half",
        "2nd half",
        "wait s",
        "longest s",
        "AWRT s",
        "late",
        "off s",
    ])
    .with_left(1)
    .with_left(2);
    for row in results.schedules.iter().filter(|row| row.part == "all") {
        let half = |part: &str| {
            let same = |other: &&ScheduleRow| {
                (&other.predictor, &other.correction, &other.backfill)
                    == (&row.predictor, &row.correction, &row.backfill)
                    && other.part == part
            };
            let found = results.schedules.iter().find(same);
            found.map_or("-".to_string(), |row| format!("{:.2}", row.bounded_slowdown_mean))
        };
        table.push([
            short(&row.predictor).to_string(),
            if row.correction.is_empty() { "-".to_string() } else { row.correction.clone() },
            row.backfill.clone(),
            format!("{:.2}", row.bounded_slowdown_mean),
            half("first"),
            half("second"),
            number(row.wait_mean_s),
            number(row.wait_max_s),
            number(row.awrt_s),
            share(row.late_share),
            row.reservation_error_mean_s.map_or("-".to_string(), number),
        ]);
    }
    table
}
