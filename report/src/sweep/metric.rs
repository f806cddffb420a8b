//! The metrics that the report shows, in words.

/// What values are in, as axes and marks under the pointer write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Seconds, written in what people think in.
    Time,
    /// Parts of one, written in percent.
    Share,
    /// What the label says, or nothing.
    Number,
}

impl Unit {
    /// That of a column, by its name.
    pub(crate) fn of(column: &str) -> Unit {
        if column.ends_with("_s") && !column.ends_with("_per_s") {
            Unit::Time
        } else if column.ends_with("share") || column.ends_with("utilization") {
            Unit::Share
        } else {
            Unit::Number
        }
    }
}

/// A metric with what a reader should know of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Metric {
    /// Column of the database.
    pub(crate) column: &'static str,
    /// The title of its plot.
    pub(crate) title: &'static str,
    /// Its vertical axis, without the unit that its name ends in.
    pub(crate) label: &'static str,
}

impl Metric {
    /// The value that none can be below, of ratios that are often hardly above it.
    pub(crate) fn least_possible(&self) -> Option<f64> {
        let is_ratio = self.column == "ratio_best" || self.column.contains("bounded_slowdown");
        is_ratio.then_some(1.0)
    }
}

const fn metric(column: &'static str, title: &'static str, label: &'static str) -> Metric {
    Metric { column, title, label }
}

/// In the order of the report; those of the steady part are there where a sweep measures it.
pub(crate) const SHOWN: [Metric; 20] = [
    metric("ratio_best", "Competitive ratio", "makespan / best lower bound"),
    metric("wait_mean_s", "Mean wait", "mean wait of a job"),
    metric("bounded_slowdown_mean", "Bounded slowdown, mean", "mean bounded slowdown"),
    metric("steady_wait_mean_s", "Mean wait, steady", "mean wait of jobs of the steady part"),
    metric(
        "steady_bounded_slowdown_mean",
        "Bounded slowdown, mean, steady",
        "mean bounded slowdown, steady part",
    ),
    metric(
        "steady_awrt_s",
        "Average weighted response time, steady",
        "response time weighted by work, steady part",
    ),
    metric("steady_wait_max_s", "Longest wait, steady", "longest wait of a job of the steady part"),
    metric(
        "steady_wide_wait_mean_s",
        "Mean wait of wide jobs, steady",
        "mean wait of wide jobs, steady part",
    ),
    metric("bounded_slowdown_max", "Bounded slowdown, greatest", "greatest bounded slowdown"),
    metric("wait_max_s", "Longest wait", "longest wait of a job"),
    metric("awrt_s", "Average weighted response time", "response time weighted by work"),
    metric(
        "turnaround_by_work_mean",
        "Turnaround weighted by work",
        "turnaround weighted by work (processor s\u{b2})",
    ),
    metric("makespan_s", "Makespan", "makespan"),
    metric("utilization", "Utilization", "work / (makespan \u{d7} processors)"),
    metric("stolen_share", "Stolen jobs", "stolen share of the jobs"),
    metric("away_from_home_share", "Jobs that ran away from home", "share of the jobs that ran away"),
    metric("steal_delay_mean_s", "Time under way between sites", "mean time under way of a stolen job"),
    metric("messages_per_job", "Messages", "messages per job"),
    metric("declines", "Granted jobs that were declined", "declined jobs a run"),
    metric("deficiency_total_s", "Deficiency", "time that the makespan may be longer for it"),
];

/// Metrics by which strategies are ranked; less is better.
pub(crate) const RANKED: [Metric; 3] = [SHOWN[0], SHOWN[1], SHOWN[2]];

/// Parts of the deficiency from below, and their columns.
pub(crate) const CAUSES: [(&str, &str); 6] = [
    ("drain: nothing fits", "deficiency_drain_s"),
    ("foreign work", "deficiency_foreign_s"),
    ("in transit", "deficiency_in_transit_s"),
    ("asked", "deficiency_asked_s"),
    ("blind: work unknown", "deficiency_blind_s"),
    ("lost messages", "deficiency_lost_s"),
];

/// Parts of the mean wait from below, and their columns.
pub(super) const WAITS: [(&str, &str); 8] = [
    ("full: no room", "wait_full_s"),
    ("in parts: not yet started", IN_PARTS),
    ("ineligible by the rules", "wait_ineligible_s"),
    ("own queue", "wait_queue_s"),
    ("in transit", "wait_in_transit_s"),
    ("asked", "wait_asked_s"),
    ("blind", "wait_blind_s"),
    ("offered", "wait_offered_s"),
];

/// The column of a cause that is only where jobs start in parts.
pub(super) const IN_PARTS: &str = "wait_in_parts_s";

/// Whether a column only says how far another depends on the order of causes.
pub(super) fn is_range(column: &str) -> bool {
    column.ends_with("_least_s") || column.ends_with("_greatest_s")
}
