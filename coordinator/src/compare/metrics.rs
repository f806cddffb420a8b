//! The numbers of two `metrics.json`, side by side.

use outputs::table::Table;
use report::quantity::{change, grouped, number, percent};
use serde::Serialize;
use serde_json::Value;

/// One metric of two runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MetricRow {
    /// Its name in `metrics.json`.
    pub name: String,
    /// In the first run.
    pub left: Option<f64>,
    /// In the second run.
    pub right: Option<f64>,
    /// The second less the first.
    pub difference: Option<f64>,
    /// How much worse each run is than the better one, 100·(metric/best − 1), in percent. Only for metrics of
    /// which less is better, and a best that is not 0.
    pub degradation: Option<[f64; 2]>,
}

/// Metrics of which less is better: those that schedules are judged by.
const LESS_IS_BETTER: [&str; 16] = [
    "makespan_s",
    "ratio_thesis",
    "ratio_proof",
    "ratio_best",
    "bounded_slowdown_thesis_mean",
    "bounded_slowdown_mean",
    "slowdown_mean",
    "wait_mean_s",
    "wait_max_s",
    "wait_sum_s",
    "wait_by_size_mean",
    "turnaround_mean_s",
    "turnaround_by_size_mean",
    "turnaround_by_work_mean",
    "messages_per_job",
    "fcfs_inversions",
];
/// Shown even if they are equal.
const ALWAYS: [&str; 6] =
    ["finished", "makespan_s", "wait_mean_s", "bounded_slowdown_mean", "utilization", "stolen_jobs"];

/// Pairs the numbers of section `metrics`, in the order of the first document, and then those of section `faults`; a
/// run without that section had no faults.
pub fn rows(left: &Value, right: &Value) -> Vec<MetricRow> {
    let mut rows = of_section("metrics", "", None, left, right);
    rows.extend(of_section("faults", "faults.", Some(0.0), left, right));
    rows
}

/// The numbers of one section. `absent` is what a number is in a document without the section.
fn of_section(name: &str, prefix: &str, absent: Option<f64>, left: &Value, right: &Value) -> Vec<MetricRow> {
    let section = |document: &'_ Value| document.get(name).and_then(Value::as_object).cloned();
    let (left, right) = (section(left), section(right));
    let without = [left.is_none(), right.is_none()];
    let (left, right) = (left.unwrap_or_default(), right.unwrap_or_default());
    let names = left.keys().chain(right.keys().filter(|name| !left.contains_key(*name)));
    let is_number = |value: Option<&Value>| value.is_some_and(|value| value.is_number() || value.is_null());
    names
        .filter(|name| is_number(left.get(*name)) || is_number(right.get(*name)))
        .map(|name| {
            let value = |section: &serde_json::Map<String, Value>, without: bool| match without {
                true => absent,
                false => section.get(name).and_then(Value::as_f64),
            };
            MetricRow::new(&format!("{prefix}{name}"), value(&left, without[0]), value(&right, without[1]))
        })
        .collect()
}

impl MetricRow {
    fn new(name: &str, left: Option<f64>, right: Option<f64>) -> MetricRow {
        let both = left.zip(right);
        let degradation = both.filter(|_| LESS_IS_BETTER.contains(&name)).and_then(|(left, right)| {
            let best = left.min(right);
            (best > 0.0).then(|| [left, right].map(|value| 100.0 * (value / best - 1.0)))
        });
        let difference = both.map(|(left, right)| right - left);
        MetricRow { name: name.to_string(), left, right, difference, degradation }
    }

    /// Whether it differs, or always matters.
    pub fn is_shown(&self) -> bool {
        !self.equal() || ALWAYS.contains(&self.name.as_str())
    }

    /// Whether the two runs have the same value.
    pub fn equal(&self) -> bool {
        self.left == self.right
    }
}

/// Metrics that differ, and a few that always matter.
pub fn table(rows: &[MetricRow]) -> Table {
    let header = ["metric", "first", "second", "difference", "worse, first", "worse, second"];
    let mut table = Table::new(header);
    for row in rows.iter().filter(|row| row.is_shown()) {
        let show = |value: Option<f64>| value.map_or("-".to_string(), shown);
        let degradation = |side: usize| match (row.degradation, [row.left, row.right][side]) {
            (Some(_), Some(value)) => {
                let best = row.left.zip(row.right).map_or(value, |(left, right)| left.min(right));
                change(value, best).trim_start_matches('+').to_string()
            }
            _ => "-".to_string(),
        };
        // A difference that rounding would hide is shown as it is.
        let difference = match row.difference {
            Some(difference) if difference != 0.0 && difference.abs() < 0.001 => format!("{difference:.1e}"),
            difference => show(difference),
        };
        let name = row.name.clone();
        table.push([name, show(row.left), show(row.right), difference, degradation(0), degradation(1)]);
    }
    table
}

/// The name of a metric in words, with its unit behind it.
pub fn words(name: &str) -> String {
    let (section, name) = match name.strip_prefix("faults.") {
        Some(name) => ("faults: ", name),
        None => ("", name),
    };
    let bound = |bound: &str| format!("{section}makespan / {bound} lower bound");
    match name {
        "ratio_best" => return bound("best"),
        "ratio_thesis" => return bound("thesis"),
        "ratio_proof" => return bound("proof's"),
        _ => {}
    }
    let (name, unit) = match (name.strip_suffix("_per_s"), name.strip_suffix("_s")) {
        (Some(name), _) => (name, ", 1/s"),
        (None, Some(name)) => (name, ", s"),
        (None, None) => (name, ""),
    };
    format!("{section}{}{unit}", name.replace('_', " "))
}

/// Counts in full, other numbers to about four digits.
pub fn shown(value: f64) -> String {
    if value.fract() != 0.0 || value.abs() >= 1e15 {
        return number(value);
    }
    format!("{}{}", if value < 0.0 { "-" } else { "" }, grouped(value.abs() as u64))
}

/// Whether a metric is a share of a whole, which people read in percent.
fn is_share(name: &str) -> bool {
    name == "utilization" || name.ends_with("_share")
}

/// A value as people read it: shares in percent.
pub fn read(name: &str, value: f64) -> String {
    if is_share(name) { percent(value) } else { shown(value) }
}

/// The same of a difference; that of shares is no share of anything.
pub fn read_difference(name: &str, value: f64) -> String {
    if is_share(name) { format!("{:+.1} points", 100.0 * value) } else { shown(value) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn faults_of_one_run_are_compared_with_none() {
        let left = json!({"metrics": {"finished": 2}});
        let right =
            json!({"metrics": {"finished": 2}, "faults": {"crashes": 3, "rejoin_max_s": null, "sites": []}});
        let rows = rows(&left, &right);
        let crashes = rows.iter().find(|row| row.name == "faults.crashes").unwrap();
        assert_eq!((crashes.left, crashes.right, crashes.difference), (Some(0.0), Some(3.0), Some(3.0)));
        assert!(rows.iter().all(|row| row.name != "faults.sites"));
        assert_eq!(super::rows(&left, &left).len(), 1, "no faults, no rows");
    }

    #[test]
    fn people_read_words_and_whole_counts() {
        for (name, expected) in [
            ("wait_mean_s", "wait mean, s"),
            ("throughput_per_s", "throughput, 1/s"),
            ("stolen_jobs", "stolen jobs"),
            ("ratio_best", "makespan / best lower bound"),
            ("faults.rejoin_max_s", "faults: rejoin max, s"),
        ] {
            assert_eq!(words(name), expected);
        }
        assert_eq!([shown(12.0), shown(-4321.0), shown(0.5)], ["12", "-4,321", "0.500"]);
        assert_eq!([read("utilization", 0.479), read("stolen_work_share", 1.0)], ["47.9 %", "100.0 %"]);
        assert_eq!(read_difference("utilization", -0.0124), "-1.2 points");
        assert_eq!([read("fairness", 0.5), read_difference("jobs", 2.0)], ["0.500", "2"]);
    }

    #[test]
    fn degradation_is_relative_to_the_better_run() {
        let left =
            json!({"metrics": {"makespan_s": 110.0, "wait_mean_s": 0.0, "stolen_jobs": 3, "sites": []}});
        let right = json!({"metrics": {"makespan_s": 100.0, "wait_mean_s": 5.0, "stolen_jobs": 3, "new": 1}});
        let rows = rows(&left, &right);
        let row = |name: &str| rows.iter().find(|row| row.name == name).unwrap();

        let makespan = row("makespan_s").degradation.unwrap();
        assert!((makespan[0] - 10.0).abs() < 1e-9 && makespan[1] == 0.0, "{makespan:?}");
        assert_eq!(row("wait_mean_s").degradation, None, "nothing is a share of 0");
        assert_eq!((row("stolen_jobs").difference, row("stolen_jobs").degradation), (Some(0.0), None));
        assert_eq!((row("new").left, row("new").right), (None, Some(1.0)));
        assert!(rows.iter().all(|row| row.name != "sites"));

        let text = table(&rows).text();
        assert!(text.contains("makespan_s     110     100"), "{text}");
        assert!(text.contains("10.00 %              0"), "{text}");
        // Nobody reads 295,912 %.
        let right = json!({"metrics": {"makespan_s": 325_613.2}});
        let text = table(&super::rows(&left, &right)).text();
        assert!(text.contains("2,960 times"), "{text}");
    }
}
