//! The metrics that the report shows, in words.

/// A metric with what a reader should know of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Metric {
    /// Column of the database.
    pub(crate) column: &'static str,
    /// The title of its plot.
    pub(crate) title: &'static str,
    /// Its vertical axis.
    pub(crate) label: &'static str,
    /// Whether its values are times.
    pub(crate) is_time: bool,
}

impl Metric {
    /// The value that none can be below, of ratios that are often hardly above it.
    pub(crate) fn least_possible(&self) -> Option<f64> {
        let is_ratio = self.column == "ratio_best" || self.column.contains("bounded_slowdown");
        is_ratio.then_some(1.0)
    }
}

const fn metric(column: &'static str, title: &'static str, label: &'static str, is_time: bool) -> Metric {
    Metric { column, title, label, is_time }
}

/// In the order of the report; those of the steady part are there where a sweep measures it.
pub(crate) const SHOWN: [Metric; 20] = [
    metric("ratio_best", "Competitive ratio", "makespan / best lower bound", false),
    metric("wait_mean_s", "Mean wait", "mean wait of a job", true),
    metric("bounded_slowdown_mean", "Bounded slowdown, mean", "mean bounded slowdown", false),
    metric("steady_wait_mean_s", "Mean wait, steady", "mean wait of jobs of the steady part", true),
    metric(
        "steady_bounded_slowdown_mean",
        "Bounded slowdown, mean, steady",
        "mean bounded slowdown, steady part",
        false,
    ),
    metric(
        "steady_awrt_s",
        "Average weighted response time, steady",
        "response time weighted by work, steady part",
        true,
    ),
    metric("steady_wait_max_s", "Longest wait, steady", "longest wait of a job of the steady part", true),
    metric(
        "steady_wide_wait_mean_s",
        "Mean wait of wide jobs, steady",
        "mean wait of wide jobs, steady part",
        true,
    ),
    metric("bounded_slowdown_max", "Bounded slowdown, greatest", "greatest bounded slowdown", false),
    metric("wait_max_s", "Longest wait", "longest wait of a job", true),
    metric("awrt_s", "Average weighted response time", "response time weighted by work", true),
    metric(
        "turnaround_by_work_mean",
        "Turnaround weighted by work",
        "processor-seconds times seconds",
        false,
    ),
    metric("makespan_s", "Makespan", "makespan", true),
    metric("utilization", "Utilization", "work / (makespan x processors)", false),
    metric("stolen_share", "Stolen jobs", "share of the jobs", false),
    metric("away_from_home_share", "Jobs that ran away from home", "share of the jobs", false),
    metric("steal_delay_mean_s", "Time under way between sites", "mean of stolen jobs", true),
    metric("messages_per_job", "Messages", "messages per job", false),
    metric("declines", "Granted jobs that were declined", "jobs a run", false),
    metric("deficiency_total_s", "Deficiency", "time that the makespan may be longer for it", true),
];

/// Metrics by which strategies are ranked; less is better.
pub(crate) const RANKED: [Metric; 3] = [SHOWN[0], SHOWN[1], SHOWN[2]];

/// Parts of the deficiency from below, and their columns.
pub(crate) const CAUSES: [(&str, &str); 6] = [
    ("drain: nothing fits", "deficiency_drain_s"),
    ("foreign work", "deficiency_foreign_s"),
    ("travelling", "deficiency_travelling_s"),
    ("asked", "deficiency_asked_s"),
    ("blind: work unknown", "deficiency_blind_s"),
    ("lost messages", "deficiency_lost_s"),
];

/// Parts of the mean wait from below, and their columns.
pub(super) const WAITS: [(&str, &str); 7] = [
    ("full: no room", "wait_full_s"),
    ("barred by rules", "wait_barred_s"),
    ("own queue", "wait_queue_s"),
    ("travelling", "wait_travelling_s"),
    ("asked", "wait_asked_s"),
    ("blind", "wait_blind_s"),
    ("offered", "wait_offered_s"),
];

/// Whether a column only says how far another depends on the order of causes.
pub(super) fn is_range(column: &str) -> bool {
    column.ends_with("_least_s") || column.ends_with("_greatest_s")
}
