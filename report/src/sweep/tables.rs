//! What the report says in tables: where advantages end, who degrades first, who ranks where, and all numbers.

use analysis::statistics::{Advantage, Crossover, crossovers, holm};

use super::advantage;
use super::axis::rounded;
use super::metric::{Metric, RANKED, SHOWN};
use super::study::Study;
use crate::quantity::{number, percent};

/// A table of texts; the first column is left, the others right.
#[derive(Clone, Debug)]
pub(super) struct Table {
    pub(super) title: String,
    pub(super) note: String,
    pub(super) header: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
    /// Shown only on demand.
    pub(super) is_detail: bool,
}

/// All tables of a panel.
pub(super) fn all(study: &Study, panel: usize) -> Vec<Table> {
    let present = study.metrics();
    let has = |column: &str| present.iter().any(|name| name == column);
    let compared = COMPARED.iter().filter(|column| has(column));
    let compared: Vec<&Metric> =
        compared.filter_map(|column| SHOWN.iter().find(|metric| metric.column == *column)).collect();
    // A stored sweep has few metrics: what it does not have is no column, and no table.
    let ranked: Vec<&Metric> = RANKED.iter().filter(|metric| has(metric.column)).collect();
    let judged = if ranked.is_empty() { &compared } else { &ranked };
    let mut tables = Vec::new();
    if !judged.is_empty() {
        tables.push(advantages(study, panel, judged));
    }
    let growths: Vec<&Growth> = GROWTHS.iter().filter(|(metric, ..)| has(metric.column)).collect();
    if !growths.is_empty() {
        tables.push(degradations(study, panel, &growths));
    }
    tables.extend(compared.iter().map(|metric| changes(study, panel, metric)));
    if ranked.len() == RANKED.len() {
        tables.push(ranks(study, panel));
    }
    tables.extend(judged.iter().take(2).map(|metric| pairs(study, panel, metric)));
    tables.push(numbers(study, panel));
    tables
}

fn place(study: &Study, crossover: &Crossover) -> String {
    let words = |x: f64| {
        let point = study.points.iter().find(|(value, _)| *value == x);
        point.map_or_else(|| number(x), |(_, words)| words.clone())
    };
    format!("{} ({} to {})", at(study, crossover), words(crossover.before.0), words(crossover.after.0))
}

fn at(study: &Study, crossover: &Crossover) -> String {
    if study.is_time { rounded(crossover.at()) } else { number(crossover.at()) }
}

/// Where each strategy loses its advantage over the baseline.
fn advantages(study: &Study, panel: usize, metrics: &[&Metric]) -> Table {
    let baseline = &study.series[study.baseline];
    let mut header = vec!["strategy".to_string()];
    for metric in metrics {
        header.push(metric.title.to_string());
        header.push("lost from".to_string());
    }
    let rows = (0..study.series.len()).filter(|&series| series != study.baseline).map(|series| {
        let mut row = vec![study.series[series].clone()];
        for metric in metrics {
            let pair = (series, study.baseline);
            let duel = study.duel(panel, pair, metric.column);
            let last = study.points.last().map_or("", |(_, words)| words.as_str());
            row.push(match study.advantage(panel, pair, metric.column) {
                None => "-".to_string(),
                Some(found) => {
                    let words = advantage::words(&found, study.is_time, last, true);
                    let others = |other: &&Crossover| match found.advantage {
                        Advantage::Lost { end, begin } => **other != end && Some(**other) != begin,
                        Advantage::Gained(begin) => **other != begin,
                        _ => false,
                    };
                    let others: Vec<String> =
                        duel.crossovers.iter().filter(others).map(|other| at(study, other)).collect();
                    if others.is_empty() {
                        words
                    } else {
                        format!("{words}; changes also at {}", others.join(", "))
                    }
                }
            });
            row.push(match (duel.ever_won, duel.lost_from) {
                (false, _) => "never certain".to_string(),
                (true, Some(from)) => from,
                (true, None) => "nowhere".to_string(),
            });
        }
        row
    });
    Table {
        title: format!("At which delay each strategy loses its advantage over {baseline}"),
        note: "First number: where the mean paired difference first goes from better to worse; in brackets its 95 % interval \
               over draws of repetitions; after \u{201c}perhaps\u{201d} stands where that interval goes if an advantage may as well never \
               be there, or last beyond the last delay. \
               \u{201c}Lost from\u{201d}: the first measured delay from which on the 95 % interval of the difference nowhere lies \
               below zero."
            .to_string(),
        header,
        rows: rows.collect(),
        is_detail: false,
    }
}

/// Metrics whose changes against the baseline are in a table.
const COMPARED: [&str; 5] = [
    "wait_mean_s",
    "bounded_slowdown_mean",
    "steady_wait_mean_s",
    "steady_bounded_slowdown_mean",
    "steady_awrt_s",
];
/// A difference is statistically significant if its corrected chance is at most this.
const LEVEL: f64 = 0.05;

/// How far each strategy is from the baseline at every point, and which of these differences could be chance.
fn changes(study: &Study, panel: usize, metric: &Metric) -> Table {
    let baseline = &study.series[study.baseline];
    let others: Vec<usize> = (0..study.series.len()).filter(|&series| series != study.baseline).collect();
    let cells =
        || others.iter().flat_map(|&series| (0..study.points.len()).map(move |point| (series, point)));
    let chances: Vec<Option<f64>> = cells()
        .map(|(series, point)| study.chance(panel, (series, study.baseline), point, metric.column))
        .collect();
    let mut corrected = holm(&chances.iter().flatten().copied().collect::<Vec<_>>()).into_iter();
    let told: Vec<bool> = chances
        .iter()
        .map(|chance| chance.and_then(|_| corrected.next()).is_some_and(|chance| chance <= LEVEL))
        .collect();
    let text = |((series, point), told): ((usize, usize), bool)| {
        let ratio = study.ratio(panel, (series, study.baseline), point, metric.column);
        let mark = if told { " *" } else { "" };
        ratio.map_or("-".to_string(), |ratio| format!("{:+.1} %{mark}", 100.0 * (ratio.ratio - 1.0)))
    };
    let texts: Vec<String> = cells().zip(told).map(text).collect();
    let rows = others.iter().zip(texts.chunks(study.points.len())).map(|(&series, texts)| {
        std::iter::once(study.series[series].clone()).chain(texts.iter().cloned()).collect()
    });
    Table {
        title: format!("{} against {baseline}", metric.title),
        note: "Change of the mean over the same repetitions. A star: the paired difference is statistically significant at 5 %, by \
               flips of its sign, two-sided, with Holm's correction over all cells of the table."
            .to_string(),
        header: std::iter::once("strategy".to_string())
            .chain(study.points.iter().map(|(_, words)| words.clone()))
            .collect(),
        rows: rows.collect(),
        is_detail: false,
    }
}

/// A metric, how many times its first value is degraded, and the words for it.
type Growth = (Metric, f64, &'static str);

/// Growths at which a metric counts as degraded.
const GROWTHS: [Growth; 4] = [
    (RANKED[1], 1.1, "mean wait +10 %"),
    (RANKED[1], 2.0, "mean wait doubled"),
    (RANKED[2], 2.0, "slowdown doubled"),
    (RANKED[0], 1.02, "ratio +2 %"),
];

/// Who degrades first against itself.
fn degradations(study: &Study, panel: usize, growths: &[&Growth]) -> Table {
    let first = &study.points[0].1;
    let rows = (0..study.series.len()).map(|series| {
        let mut row = vec![study.series[series].clone()];
        for (metric, factor, _) in growths {
            let base = study.mean(panel, series, 0, metric.column);
            let excess: Vec<(f64, f64)> = study
                .points
                .iter()
                .enumerate()
                .filter_map(|(point, (x, _))| {
                    let mean = study.mean(panel, series, point, metric.column)?;
                    Some((*x, mean / base.filter(|base| *base > 0.0)? - factor))
                })
                .collect();
            // A list may be better with a delay than without: only the last crossing says where growth begins.
            let last = crossovers(&excess).into_iter().next_back();
            row.push(match last.filter(|crossover| crossover.after.1 > 0.0) {
                Some(crossover) => place(study, &crossover),
                None if excess.is_empty() => "-".to_string(),
                None => "not reached".to_string(),
            });
        }
        row
    });
    Table {
        title: "Who degrades first".to_string(),
        note: format!(
            "The delay from which on the mean of a metric stays so far above its value at delay {first}."
        ),
        header: std::iter::once("strategy".to_string())
            .chain(growths.iter().map(|(_, _, words)| words.to_string()))
            .collect(),
        rows: rows.collect(),
        is_detail: false,
    }
}

/// Degradation in percent over the best, and ranks, at every point.
fn ranks(study: &Study, panel: usize) -> Table {
    let mut rows: Vec<Vec<String>> = study.series.iter().map(|name| vec![name.clone()]).collect();
    let mut order: Vec<f64> = vec![f64::INFINITY; study.series.len()];
    for point in 0..study.points.len() {
        let by_metric: Vec<Vec<Option<f64>>> = RANKED
            .iter()
            .map(|metric| {
                let means: Vec<Option<f64>> = (0..study.series.len())
                    .map(|series| study.mean(panel, series, point, metric.column))
                    .collect();
                let best = means.iter().flatten().copied().fold(f64::INFINITY, f64::min);
                means
                    .iter()
                    .map(|mean| mean.filter(|_| best > 0.0).map(|mean| 100.0 * (mean / best - 1.0)))
                    .collect()
            })
            .collect();
        let total = |series: usize| -> Option<f64> {
            let parts: Option<Vec<f64>> = by_metric.iter().map(|metric| metric[series]).collect();
            analysis::statistics::mean(&parts?)
        };
        let totals: Vec<Option<f64>> = (0..study.series.len()).map(total).collect();
        let rank = |values: &[Option<f64>], series: usize| {
            values[series].map(|own| 1 + values.iter().flatten().filter(|other| **other < own - 1e-9).count())
        };
        for (series, row) in rows.iter_mut().enumerate() {
            let Some(own) = totals[series] else {
                row.push("-".to_string());
                continue;
            };
            let each: Vec<String> = by_metric
                .iter()
                .map(|metric| rank(metric, series).map_or("-".to_string(), |rank| rank.to_string()))
                .collect();
            let place = rank(&totals, series).unwrap_or(0);
            if point == 0 {
                order[series] = own;
            }
            row.push(format!("{place} ({} %; {})", number(own), each.join("/")));
        }
    }
    let mut places: Vec<usize> = (0..rows.len()).collect();
    places.sort_by(|&a, &b| order[a].total_cmp(&order[b]));
    let names: Vec<&str> = RANKED.iter().map(|metric| metric.title).collect();
    Table {
        title: "Degradation and ranks".to_string(),
        note: format!(
            "Rank by the mean degradation, 100 (metric / best - 1) of the means over repetitions, averaged over {}; in \
             brackets that mean and the rank by each of the three. Waits and slowdowns decide it: their degradations are far \
             greater than those of the ratio.",
            names.join(", ").to_lowercase()
        ),
        header: std::iter::once("strategy".to_string())
            .chain(study.points.iter().map(|(_, words)| words.clone()))
            .collect(),
        rows: places.into_iter().map(|place| rows[place].clone()).collect(),
        is_detail: false,
    }
}

/// Crossovers of every pair of strategies.
fn pairs(study: &Study, panel: usize, metric: &Metric) -> Table {
    let count = study.series.len();
    let rows = (0..count).map(|left| {
        let mut row = vec![study.series[left].clone()];
        for right in 0..count {
            if left == right {
                row.push("\u{b7}".to_string());
                continue;
            }
            let duel = study.duel(panel, (left, right), metric.column);
            let words: Vec<String> = duel
                .crossovers
                .iter()
                .map(|crossover| {
                    let sign = if crossover.before.1 < 0.0 { "until" } else { "from" };
                    format!("{sign} {}", at(study, crossover))
                })
                .collect();
            let mean = duel.means.first().map_or(0.0, |(_, mean)| *mean);
            row.push(match words.is_empty() {
                false => words.join(", "),
                true if duel.means.iter().all(|(_, mean)| *mean == 0.0) => "=".to_string(),
                true if mean < 0.0 => "always".to_string(),
                true => "never".to_string(),
            });
        }
        row
    });
    Table {
        title: format!("{}: at which delays the row is better than the column", metric.title),
        note: "By the mean of paired differences, without a test of significance.".to_string(),
        header: std::iter::once("row better than".to_string()).chain(study.series.iter().cloned()).collect(),
        rows: rows.collect(),
        is_detail: true,
    }
}

/// Means and half widths of intervals.
fn numbers(study: &Study, panel: usize) -> Table {
    let present = study.metrics();
    let shown: Vec<&Metric> = SHOWN.iter().filter(|m| present.iter().any(|name| name == m.column)).collect();
    let mut rows = Vec::new();
    for (series, name) in study.series.iter().enumerate() {
        for (point, (_, words)) in study.points.iter().enumerate() {
            let count = study.values(panel, series, point, "jobs").len();
            if count == 0 {
                continue;
            }
            let mut row = vec![name.clone(), words.clone(), count.to_string()];
            for metric in &shown {
                let summary = study.summary(panel, series, point, metric.column);
                row.push(summary.map_or("-".to_string(), |summary| {
                    let show = |value: f64| {
                        if metric.column.ends_with("share") || metric.column == "utilization" {
                            percent(value)
                        } else if metric.column.starts_with("ratio") {
                            format!("{value:.4}")
                        } else {
                            number(value)
                        }
                    };
                    let half = summary.interval.map(|interval| (interval.high - interval.low) / 2.0);
                    half.map_or(show(summary.mean), |half| {
                        format!("{} \u{b1} {}", show(summary.mean), show(half))
                    })
                }));
            }
            rows.push(row);
        }
    }
    let header = ["strategy", study.x.as_str(), "runs"].map(str::to_string).into_iter();
    Table {
        title: "All numbers".to_string(),
        note: "Mean over the repetitions and half the width of its 95 % interval; times in seconds. All columns of all \
               runs: stealgrid export."
            .to_string(),
        header: header.chain(shown.iter().map(|metric| metric.column.to_string())).collect(),
        rows,
        is_detail: true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::study::WrittenReport;
    use crate::sweep::study::tests::{rows, two_strategies};

    fn table(title: &str) -> Table {
        let study = two_strategies();
        all(&study, 0).into_iter().find(|table| table.title.starts_with(title)).unwrap()
    }

    #[test]
    fn the_end_of_an_advantage_is_named() {
        let table = table("At which delay");

        assert_eq!(table.rows.len(), 1);
        assert_eq!(table.rows[0][0], "st:50");
        // Linear in log d from (10 s, -70) to (1 min, 30): 10 * 6^0.7 s, in every week.
        assert_eq!(&table.rows[0][3..5], ["35 s", "1 min"]);
    }

    #[test]
    fn the_end_of_an_advantage_has_the_interval_of_its_weeks() {
        let rows = rows(&["local", "st:50"], &["0s", "10s", "1m", "10m"], 8, |strategy, delay, week| {
            let own =
                if strategy == "local" { 100.0 } else { 10.0 + 2.0 * delay + 20.0 * (week % 3 - 1) as f64 };
            own + 1000.0 * week as f64
        });
        let study = Study::new(rows, &WrittenReport::default()).unwrap();

        let words = &advantages(&study, 0, &RANKED.each_ref()).rows[0][3];

        // One week more than less has 20 s more: (10 s, -67.5), (1 min, 32.5).
        assert_eq!(words, "34 s (27 to 44)");
    }

    #[test]
    fn differences_that_are_told_from_chance_have_a_star() {
        let changes = table("Mean wait against local");

        assert_eq!(changes.rows.len(), 1);
        // The least chance of 8 weeks is 2 in 256, times 4 cells.
        assert_eq!(changes.rows[0], ["st:50", "-2.0 % *", "-1.5 % *", "+0.7 % *", "+24.1 % *"]);
        let few =
            rows(
                &["local", "st:50"],
                &["0s", "10s"],
                4,
                |strategy, _, _| if strategy == "local" { 100.0 } else { 90.0 },
            );
        let few = changes_of(&Study::new(few, &WrittenReport::default()).unwrap());
        assert_eq!(few.rows[0], ["st:50", "-10.0 %", "-10.0 %"], "2 in 16 is no news");
    }

    fn changes_of(study: &Study) -> Table {
        all(study, 0).into_iter().find(|table| table.title.starts_with("Mean wait against")).unwrap()
    }

    #[test]
    fn ranks_change_where_means_cross() {
        let table = table("Degradation and ranks");

        assert_eq!(table.rows[0][0], "st:50", "the best without delay comes first");
        assert!(table.rows[0][1].starts_with("1 (0 %; 1/1/1)"), "{:?}", table.rows);
        assert!(table.rows[1][1].starts_with("2 ("), "{:?}", table.rows);
        assert!(table.rows[1][4].starts_with("1 (0 %; 1/1/1)"), "{:?}", table.rows);
    }

    #[test]
    fn degradation_is_measured_against_oneself() {
        let table = table("Who degrades first");

        let of = |name: &str| table.rows.iter().find(|row| row[0] == name).unwrap();
        assert_eq!(of("local")[1], "not reached");
        // 4,510 s without delay; +10 % is 451 s more, at a delay of 225 s.
        assert!(of("st:50")[1].ends_with("(1 min to 10 min)"), "{:?}", of("st:50"));
    }

    /// As rows are that `stealgrid export --format study --columns "steady_*"` has stored.
    #[test]
    fn metrics_that_were_not_stored_have_neither_a_table_nor_a_column() {
        let stored = |names: [&str; 5]| {
            let mut rows = rows(&["local", "st:50"], &["0s", "1m"], 8, |strategy, delay, week| {
                100.0 + week as f64 + if strategy == "local" { 0.0 } else { delay }
            });
            rows.metrics = names.map(str::to_string).to_vec();
            all(&Study::new(rows, &WrittenReport::default()).unwrap(), 0)
        };
        let steady =
            ["jobs", "steady_awrt_s", "steady_wait_mean_s", "steady_bounded_slowdown_mean", "other_s"];
        let tables = stored(steady);
        let has = |title: &str| tables.iter().any(|table| table.title.starts_with(title));
        assert!(has("At which delay") && has("Mean wait, steady against local"));
        assert!(!has("Degradation and ranks") && !has("Who degrades first"));
        let is_empty = |table: &Table| table.rows.iter().all(|row| row[1..].iter().all(|cell| cell == "-"));
        assert!(!tables.iter().any(is_empty), "{tables:?}");

        let part = stored(["jobs", "other", "wait_mean_s", "another", "other_s"]);
        let growth = part.iter().find(|table| table.title == "Who degrades first").unwrap();
        assert_eq!(growth.header, ["strategy", "mean wait +10 %", "mean wait doubled"]);
    }

    #[test]
    fn every_number_is_in_the_last_table() {
        let table = table("All numbers");

        assert_eq!(table.rows.len(), 8);
        assert_eq!(table.rows[4][..3], ["st:50", "0", "8"]);
        assert!(table.rows[4][4].starts_with("4,510 \u{b1} "), "{:?}", table.rows[4]);
    }
}
