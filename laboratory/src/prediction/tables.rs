//! Results as tables for readers.

use outputs::table::Table;

use super::choice::short;
use super::stored::{ErrorRow, Results, ScheduleRow, WaitRow};
use super::waits::WhoWaits;

/// All tables under their titles, each shown in one way. What is not wide fits a terminal.
pub(super) fn all(results: &Results, is_wide: bool, shown: impl Fn(&Table) -> String) -> String {
    let mut text = String::new();
    if !results.errors.is_empty() {
        text += &format!("Errors of predictions.\n\n{}", shown(&errors(results)));
    }
    if !results.schedules.is_empty() {
        let gap = if text.is_empty() { "" } else { "\n" };
        text += &format!("{gap}Schedules of EASY by predictions.\n\n{}", shown(&schedules(results)));
    }
    if !results.waits.is_empty() {
        let gap = if text.is_empty() { "" } else { "\n" };
        text += &format!(
            "{gap}Predictions of waits under EASY by users' estimates.\n\n{}",
            shown(&waits(results, is_wide))
        );
    }
    text
}

pub(super) fn waits(results: &Results, is_wide: bool) -> Table {
    let has_bounds = results.waits.iter().any(|row| row.coverage.is_some());
    let is_timed = !results.wait_costs.is_empty();
    let chosen = |cells: [String; 13]| {
        let is_shown = move |place: usize| match place {
            4 | 5 | 9 | 10 => is_wide,
            11 => has_bounds,
            12 => is_timed,
            _ => true,
        };
        cells.into_iter().enumerate().filter(move |&(place, _)| is_shown(place)).map(|(_, cell)| cell)
    };
    let header = [
        "predictor",
        "order",
        "MAE s",
        "of mean",
        "1st",
        "2nd",
        "median s",
        "1 min",
        "under",
        "slope",
        "R",
        "covers",
        "µs",
    ];
    let mut table = Table::new(chosen(header.map(str::to_string))).with_left(1);
    for row in results.waits.iter().filter(|row| row.part == "all") {
        let half = |part: &str| {
            let of_part = |other: &&WaitRow| {
                (&other.predictor, &other.backfill) == (&row.predictor, &row.backfill) && other.part == part
            };
            results.waits.iter().find(of_part).map_or("-".to_string(), |row| share(row.mae_share))
        };
        let of_row = |cost: &&super::stored::WaitCost| {
            (&cost.predictor, &cost.backfill) == (&row.predictor, &row.backfill)
        };
        let cost = results.wait_costs.iter().find(of_row);
        let covers = row.coverage.map(|coverage| match row.coverage_half_width {
            Some(half) => format!("{} ± {}", share(coverage), share(half)),
            None => share(coverage),
        });
        table.push(chosen([
            WhoWaits::short(&row.predictor).to_string(),
            row.backfill.clone(),
            whole(row.mae_s),
            share(row.mae_share),
            half("first"),
            half("second"),
            whole(row.error_median_s),
            share(row.within_1min_share),
            share(row.under_share),
            row.slope.map_or("-".to_string(), share),
            row.correlation.map_or("-".to_string(), share),
            covers.unwrap_or("-".to_string()),
            cost.map_or("-".to_string(), |cost| format!("{:.1}", cost.cost_us)),
        ]));
    }
    table
}

fn share(share: f64) -> String {
    format!("{share:.3}")
}

pub(super) fn errors(results: &Results) -> Table {
    // Of rows that were stored for long nobody keeps what they took.
    let is_timed = !results.costs.is_empty();
    let timed = |cells: [String; 11]| cells.into_iter().take(if is_timed { 11 } else { 10 });
    let header =
        ["predictor", "MAE s", "of mean", "1st", "2nd", "median s", "accuracy", "under", "slope", "R", "µs"];
    let mut table = Table::new(timed(header.map(str::to_string)));
    for row in results.errors.iter().filter(|row| row.part == "all") {
        let half = |part: &str| {
            let of_part = |other: &&ErrorRow| other.predictor == row.predictor && other.part == part;
            results.errors.iter().find(of_part).map_or("-".to_string(), |row| share(row.mae_share))
        };
        let cost = results.costs.iter().find(|cost| cost.predictor == row.predictor);
        table.push(timed([
            short(&row.predictor).to_string(),
            whole(row.mae_s),
            share(row.mae_share),
            half("first"),
            half("second"),
            whole(row.error_median_s),
            share(row.accuracy),
            share(row.under_share),
            row.slope.map_or("-".to_string(), share),
            row.correlation.map_or("-".to_string(), share),
            cost.map_or("-".to_string(), |cost| format!("{:.1}", cost.cost_us)),
        ]));
    }
    table
}

/// With its deviation, if there is more than the log itself.
fn mean_of_copies(row: &ScheduleRow) -> String {
    let (mean, deviation) = (row.bounded_slowdown_copies_mean, row.bounded_slowdown_copies_deviation);
    if deviation > 0.0 { format!("{mean:.2} ± {deviation:.1}") } else { "-".to_string() }
}

/// Halves are means over copies. Where there are copies, they take the place of the longest wait and the AWRT.
pub(super) fn schedules(results: &Results) -> Table {
    let has_copies = results.schedules.iter().any(|row| row.bounded_slowdown_copies_deviation > 0.0);
    let chosen = |cells: [String; 12]| {
        let hidden: &'static [usize] = if has_copies { &[8, 9] } else { &[4] };
        cells.into_iter().enumerate().filter(|(place, _)| !hidden.contains(place)).map(|(_, cell)| cell)
    };
    let header = [
        "predictor",
        "corrected",
        "order",
        "slowdown",
        "in copies",
        "1st",
        "2nd",
        "wait s",
        "longest",
        "AWRT s",
        "late",
        "off s",
    ];
    let mut table = Table::new(chosen(header.map(str::to_string))).with_left(1).with_left(2);
    for row in results.schedules.iter().filter(|row| row.part == "all") {
        let half = |part: &str| {
            let same = |other: &&ScheduleRow| {
                (&other.predictor, &other.correction, &other.backfill)
                    == (&row.predictor, &row.correction, &row.backfill)
                    && other.part == part
            };
            let found = results.schedules.iter().find(same);
            found.map_or("-".to_string(), |row| format!("{:.1}", row.bounded_slowdown_copies_mean))
        };
        table.push(chosen([
            short(&row.predictor).to_string(),
            if row.correction.is_empty() { "-".to_string() } else { row.correction.clone() },
            row.backfill.clone(),
            format!("{:.2}", row.bounded_slowdown_mean),
            mean_of_copies(row),
            half("first"),
            half("second"),
            whole(row.wait_mean_s),
            whole(row.wait_max_s),
            whole(row.awrt_s),
            share(row.late_share),
            row.reservation_error_mean_s.map_or("-".to_string(), whole),
        ]));
    }
    table
}

/// Seconds without decimals.
fn whole(seconds: f64) -> String {
    format!("{seconds:.0}")
}
