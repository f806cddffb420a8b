//! What metrics there are, read from the registries that serve them: the source of the table in `docs/METRICS.md`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use prometheus::proto::{MetricFamily, MetricType};
use scheduler::{Grid, SiteId, Span, Strategy};

use super::Metrics;
use crate::measured::Measured;

/// Labels with values that are names or versions: not closed, but bounded by the grid.
const OPEN: [(&str, &str); 7] = [
    ("clock", "as in a report"),
    ("network", "as in a report"),
    ("peer", "name of the other site"),
    ("run", "name of the experiment"),
    ("site", "name of the site"),
    ("strategy", "as in a report"),
    ("version", "of Stealgrid"),
];

/// A metric, as a reader of the documentation wants it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    /// Name of the metric, with its prefix.
    pub name: String,
    /// `counter`, `gauge` or `histogram`.
    pub kind: &'static str,
    /// What one of it is, by the ending of the name.
    pub unit: &'static str,
    /// The labels by name: all values of closed sets, or what a value is.
    pub labels: Vec<(String, Vec<String>)>,
    /// What it is.
    pub meaning: String,
}

/// Describes what a registry has gathered.
pub fn described(families: &[MetricFamily]) -> Vec<Described> {
    families.iter().map(of_family).collect()
}

/// All metrics of a site.
pub fn of_site() -> Vec<Described> {
    let grid = Arc::new(Grid::of_sizes(&[1, 1]).expect("both have a processor"));
    let metrics = Metrics::new(SiteId(1), grid, &Strategy::default());
    // Those that are there only when they are known.
    metrics.calibrated(SiteId(2), Duration::ZERO);
    metrics.show_efficiency(SiteId(2), 0.0);
    metrics.link(SiteId(2), true, Some(Duration::ZERO), Span::ZERO, Some(&Measured::default()));
    described(&metrics.registry.gather())
}

fn of_family(family: &MetricFamily) -> Described {
    let mut values: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for pair in family.get_metric().iter().flat_map(|metric| metric.get_label()) {
        let of_label = values.entry(pair.name()).or_default();
        match OPEN.iter().find(|(label, _)| *label == pair.name()) {
            Some((_, what)) => *of_label = vec![(*what).to_string()],
            None if of_label.iter().any(|value| value == pair.value()) => {}
            None => of_label.push(pair.value().to_string()),
        }
    }
    let kind = match family.get_field_type() {
        MetricType::COUNTER => "counter",
        MetricType::GAUGE => "gauge",
        MetricType::HISTOGRAM => "histogram",
        MetricType::SUMMARY | MetricType::UNTYPED => unreachable!("none is registered"),
    };
    Described {
        name: family.name().to_string(),
        kind,
        unit: unit(family.name()),
        labels: values.into_iter().map(|(label, values)| (label.to_string(), values)).collect(),
        meaning: family.help().to_string(),
    }
}

/// The unit is the last word of a name, before `total`.
fn unit(name: &str) -> &'static str {
    let name = name.strip_suffix("_total").unwrap_or(name);
    match name.rsplit('_').next() {
        Some("seconds") => "seconds",
        Some("bytes") => "bytes",
        Some("ratio" | "slowdown" | "efficiency" | "intrusion") => "ratio",
        Some("info" | "ready" | "connected" | "state") => "0 or 1",
        _ => "count",
    }
}
