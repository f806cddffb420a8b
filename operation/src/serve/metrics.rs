//! `GET /metrics` of the coordinator: the run that the page shows, in numbers for Prometheus.
//!
//! The registry is made anew for each answer from [`Figures`], which come from the state of the page: both say the
//! same. Every label set is closed and there from the beginning. What single sites count they serve themselves.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use axum::http::header;
use axum::response::{IntoResponse, Response};
use node::metrics::register;
use prometheus::{Gauge, GaugeVec, IntCounter, IntCounterVec, IntGaugeVec, Opts, Registry, TextEncoder};
use scheduler::{Span, Time};

use super::Shown;
use super::live::{About, Figures, Live, Phase};
use super::orders::Fate;
use crate::audit::Check;
use crate::fleet::Limit;

const STATES: [&str; 5] = ["preparing", "running", "paused", "ended", "failed"];
const JOBS: [&str; 4] = ["waiting", "running", "ended", "given_up"];
const SITES: [&str; 2] = ["there", "gone"];

/// Why requests are turned away at the door, whatever they ask.
pub const DOOR: [&str; 6] = ["connections", "head_time", "body_bytes", "body_time", "host", "unread"];

/// What became of requests to the server.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Requests {
    orders: [u64; Fate::ALL.len()],
    pages_refused: u64,
    door: [u64; DOOR.len()],
}

impl Requests {
    /// To this one, so far.
    pub(super) fn of(shown: &Shown) -> Requests {
        let turned = &shown.turned;
        Requests {
            orders: Fate::ALL.map(|fate| shown.desk.as_ref().map_or(0, |desk| desk.count(fate))),
            pages_refused: shown.pages_refused.load(Ordering::Relaxed),
            door: [
                turned.connections(),
                turned.heads(),
                turned.bodies_long(),
                turned.bodies_slow(),
                shown.hosts.refused(),
                turned.unread(),
            ],
        }
    }
}

/// The answer to a scrape. Before the run is known it says only what program answers.
pub(super) fn answer(live: Option<&Live>, requests: &Requests) -> Response {
    let registry = live.map_or_else(nothing, |live| of_run(live.about(), &live.figures(), requests));
    ([(header::CONTENT_TYPE, prometheus::TEXT_FORMAT)], page(&registry)).into_response()
}

fn page(registry: &Registry) -> String {
    TextEncoder::new().encode_to_string(&registry.gather()).expect("all metrics have a name and values")
}

fn nothing() -> Registry {
    let registry = Registry::new();
    build_info(&registry);
    registry
}

fn build_info(registry: &Registry) {
    let about = Opts::new("stealgrid_build_info", "Always 1; the labels say what runs.");
    let info = register(registry, IntGaugeVec::new(about, &["version"]));
    info.with_label_values(&[env!("CARGO_PKG_VERSION")]).set(1);
}

/// All series of a run.
fn of_run(about: &About, figures: &Figures, requests: &Requests) -> Registry {
    let labels = [("run".to_string(), about.name.clone())].into_iter().collect();
    let registry = Registry::new_custom(None, Some(labels)).expect("the label is valid");
    let r = &registry;
    build_info(r);
    let gauge = |name: &str, help: &str, value: f64| register(r, Gauge::new(name, help)).set(value);
    let gauges = |name: &str, help: &str, label: &str, values: &mut dyn Iterator<Item = (&str, u64)>| {
        let gauges = register(r, IntGaugeVec::new(Opts::new(name, help), &[label]));
        for (value, count) in values {
            gauges.with_label_values(&[value]).set(i64::try_from(count).unwrap_or(i64::MAX));
        }
    };

    let info = register(
        r,
        GaugeVec::new(
            Opts::new("stealgrid_run_info", "Always 1; the labels say what is run."),
            &["strategy", "clock", "network"],
        ),
    );
    info.with_label_values(&[&about.strategy, &about.clock, &about.network]).set(1.0);
    let state = match figures.phase {
        Phase::Waiting | Phase::Held => "preparing",
        Phase::Paused => "paused",
        Phase::Running => "running",
        Phase::Ended if figures.failed => "failed",
        Phase::Ended => "ended",
    };
    gauges(
        "stealgrid_run_state",
        "1 for the state that the run is in.",
        "state",
        &mut STATES.into_iter().map(|other| (other, u64::from(other == state))),
    );
    gauges(
        "stealgrid_run_jobs",
        "Jobs submitted so far, by what became of them.",
        "state",
        &mut JOBS.into_iter().zip(figures.jobs),
    );
    gauge(
        "stealgrid_run_competitive_ratio",
        "What the makespan cannot fall below any more over stealgrid_run_lower_bound_seconds, both counted from the \
         first submission. Not a number while there is nothing to compare.",
        figures.ratio.unwrap_or(f64::NAN),
    );
    let limits = Opts::new(
        "stealgrid_run_limit_hits_total",
        "How often a node was not started again because a limit was reached.",
    );
    let limits = register(r, IntCounterVec::new(limits, &["limit"]));
    for limit in Limit::ALL {
        let hits = figures.limits.get(limit.name()).copied().unwrap_or(0);
        limits.with_label_values(&[limit.name()]).inc_by(hits);
    }
    gauge(
        "stealgrid_run_lower_bound_seconds",
        "No schedule of the jobs submitted so far is shorter, in trace time, counted from the first submission.",
        figures.bound.as_secs_f64(),
    );
    gauge(
        "stealgrid_run_trace_time_seconds",
        "Trace time of the last look at the run.",
        figures.now.as_secs_f64(),
    );
    let events = "Events of sites and of what was done to them that were taken over.";
    register(r, IntCounter::new("stealgrid_run_events_total", events)).inc_by(figures.events);
    let violations = Opts::new(
        "stealgrid_run_violations_total",
        "Events that must not happen in a schedule, by the check that failed.",
    );
    let violations = register(r, IntCounterVec::new(violations, &["check"]));
    for (check, times) in &figures.failed_checks {
        violations.with_label_values(&[check.name()]).inc_by(*times);
    }
    let given =
        Opts::new("stealgrid_run_orders_total", "Requests to give the run an order, by what became of them.");
    let given = register(r, IntCounterVec::new(given, &["fate"]));
    for (fate, count) in Fate::ALL.into_iter().zip(requests.orders) {
        given.with_label_values(&[fate.name()]).inc_by(count);
    }
    let refused = "Pages that were not let look on because too many did.";
    register(r, IntCounter::new("stealgrid_run_pages_refused_total", refused)).inc_by(requests.pages_refused);
    let door = Opts::new(
        "stealgrid_run_requests_refused_total",
        "Connections and requests that were turned away at the door of the page, by the reason.",
    );
    let door = register(r, IntCounterVec::new(door, &["reason"]));
    for (reason, count) in DOOR.into_iter().zip(requests.door) {
        door.with_label_values(&[reason]).inc_by(count);
    }
    gauges(
        "stealgrid_run_sites",
        "Sites of the run, by whether they are believed to be there.",
        "state",
        &mut SITES.into_iter().zip(figures.sites),
    );
    registry
}

/// All metrics of a coordinator, for the table in `docs/METRICS.md`.
pub fn described() -> Vec<node::metrics::Described> {
    let figures = Figures {
        phase: Phase::Waiting,
        failed: false,
        jobs: [0; JOBS.len()],
        ratio: None,
        bound: Span::ZERO,
        now: Time::ZERO,
        events: 0,
        failed_checks: Check::ALL.map(|check| (check, 0)).to_vec(),
        sites: [0; SITES.len()],
        limits: BTreeMap::new(),
    };
    node::metrics::described(&of_run(&About::default(), &figures, &Requests::default()).gather())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about() -> About {
        About {
            name: "a \"run\"".to_string(),
            strategy: "st:50".to_string(),
            network: "constant 20ms".to_string(),
            clock: "scaled:100".to_string(),
            factor: Some(100.0),
            jobs: 9,
            sites: Vec::new(),
            users: false,
            orders: false,
            starts: false,
            replay: false,
            span: [0, 0],
        }
    }

    fn figures() -> Figures {
        Figures {
            phase: Phase::Running,
            failed: false,
            jobs: [1, 2, 3, 4],
            ratio: Some(1.25),
            bound: Span::from_secs(80),
            now: Time::from_secs(72),
            events: 11,
            failed_checks: Check::ALL.map(|check| (check, u64::from(check == Check::Capacity))).to_vec(),
            sites: [5, 6],
            limits: [("restarts", 7)].into(),
        }
    }

    #[test]
    fn the_page_has_every_series_with_all_values_of_its_labels() {
        let expected = r#"# HELP stealgrid_build_info Always 1; the labels say what runs.
# TYPE stealgrid_build_info gauge
stealgrid_build_info{version="0.1.0",run="a \"run\""} 1
# HELP stealgrid_run_competitive_ratio What the makespan cannot fall below any more over stealgrid_run_lower_bound_seconds, both counted from the first submission. Not a number while there is nothing to compare.
# TYPE stealgrid_run_competitive_ratio gauge
stealgrid_run_competitive_ratio{run="a \"run\""} 1.25
# HELP stealgrid_run_events_total Events of sites and of what was done to them that were taken over.
# TYPE stealgrid_run_events_total counter
stealgrid_run_events_total{run="a \"run\""} 11
# HELP stealgrid_run_info Always 1; the labels say what is run.
# TYPE stealgrid_run_info gauge
stealgrid_run_info{clock="scaled:100",network="constant 20ms",strategy="st:50",run="a \"run\""} 1
# HELP stealgrid_run_jobs Jobs submitted so far, by what became of them.
# TYPE stealgrid_run_jobs gauge
stealgrid_run_jobs{state="ended",run="a \"run\""} 3
stealgrid_run_jobs{state="given_up",run="a \"run\""} 4
stealgrid_run_jobs{state="running",run="a \"run\""} 2
stealgrid_run_jobs{state="waiting",run="a \"run\""} 1
# HELP stealgrid_run_limit_hits_total How often a node was not started again because a limit was reached.
# TYPE stealgrid_run_limit_hits_total counter
stealgrid_run_limit_hits_total{limit="beginnings",run="a \"run\""} 0
stealgrid_run_limit_hits_total{limit="journals",run="a \"run\""} 0
stealgrid_run_limit_hits_total{limit="restarts",run="a \"run\""} 7
# HELP stealgrid_run_lower_bound_seconds No schedule of the jobs submitted so far is shorter, in trace time, counted from the first submission.
# TYPE stealgrid_run_lower_bound_seconds gauge
stealgrid_run_lower_bound_seconds{run="a \"run\""} 80
# HELP stealgrid_run_orders_total Requests to give the run an order, by what became of them.
# TYPE stealgrid_run_orders_total counter
stealgrid_run_orders_total{fate="abandoned",run="a \"run\""} 2
stealgrid_run_orders_total{fate="done",run="a \"run\""} 9
stealgrid_run_orders_total{fate="foreign",run="a \"run\""} 6
stealgrid_run_orders_total{fate="late",run="a \"run\""} 3
stealgrid_run_orders_total{fate="limited",run="a \"run\""} 5
stealgrid_run_orders_total{fate="refused",run="a \"run\""} 8
stealgrid_run_orders_total{fate="too_long",run="a \"run\""} 4
stealgrid_run_orders_total{fate="unauthorized",run="a \"run\""} 7
# HELP stealgrid_run_pages_refused_total Pages that were not let look on because too many did.
# TYPE stealgrid_run_pages_refused_total counter
stealgrid_run_pages_refused_total{run="a \"run\""} 12
# HELP stealgrid_run_requests_refused_total Connections and requests that were turned away at the door of the page, by the reason.
# TYPE stealgrid_run_requests_refused_total counter
stealgrid_run_requests_refused_total{reason="body_bytes",run="a \"run\""} 3
stealgrid_run_requests_refused_total{reason="body_time",run="a \"run\""} 4
stealgrid_run_requests_refused_total{reason="connections",run="a \"run\""} 1
stealgrid_run_requests_refused_total{reason="head_time",run="a \"run\""} 2
stealgrid_run_requests_refused_total{reason="host",run="a \"run\""} 5
stealgrid_run_requests_refused_total{reason="unread",run="a \"run\""} 6
# HELP stealgrid_run_sites Sites of the run, by whether they are believed to be there.
# TYPE stealgrid_run_sites gauge
stealgrid_run_sites{state="gone",run="a \"run\""} 6
stealgrid_run_sites{state="there",run="a \"run\""} 5
# HELP stealgrid_run_state 1 for the state that the run is in.
# TYPE stealgrid_run_state gauge
stealgrid_run_state{state="ended",run="a \"run\""} 0
stealgrid_run_state{state="failed",run="a \"run\""} 0
stealgrid_run_state{state="paused",run="a \"run\""} 0
stealgrid_run_state{state="preparing",run="a \"run\""} 0
stealgrid_run_state{state="running",run="a \"run\""} 1
# HELP stealgrid_run_trace_time_seconds Trace time of the last look at the run.
# TYPE stealgrid_run_trace_time_seconds gauge
stealgrid_run_trace_time_seconds{run="a \"run\""} 72
# HELP stealgrid_run_violations_total Events that must not happen in a schedule, by the check that failed.
# TYPE stealgrid_run_violations_total counter
"#;
        let requests =
            Requests { orders: [9, 8, 7, 6, 5, 4, 3, 2], pages_refused: 12, door: [1, 2, 3, 4, 5, 6] };
        let page = page(&of_run(&about(), &figures(), &requests));
        let (start, violations) = page.split_at(expected.len().min(page.len()));
        assert_eq!(start, expected);
        let violations: Vec<&str> = violations.lines().collect();
        assert_eq!(violations.len(), Check::ALL.len());
        let failed = r#"stealgrid_run_violations_total{check="capacity",run="a \"run\""} 1"#;
        assert!(violations.contains(&failed), "{violations:?}");
        assert_eq!(violations.iter().filter(|line| line.ends_with(" 0")).count(), Check::ALL.len() - 1);
    }

    #[test]
    fn a_run_is_in_one_state_and_has_no_ratio_before_its_first_job() {
        let state = |phase, failed| {
            let figures = Figures { phase, failed, ratio: None, ..figures() };
            let page = page(&of_run(&about(), &figures, &Requests::default()));
            assert!(page.contains("stealgrid_run_competitive_ratio{run=\"a \\\"run\\\"\"} NaN"), "{page}");
            let states = page.lines().filter(|line| line.starts_with("stealgrid_run_state{"));
            let states: Vec<&str> = states.filter(|line| line.ends_with(" 1")).collect();
            assert_eq!(states.len(), 1, "{states:?}");
            states[0].split('"').nth(1).unwrap().to_string()
        };
        assert_eq!(state(Phase::Waiting, false), "preparing");
        assert_eq!(state(Phase::Running, false), "running");
        assert_eq!(state(Phase::Paused, false), "paused");
        assert_eq!(state(Phase::Ended, false), "ended");
        assert_eq!(state(Phase::Ended, true), "failed");
        assert!(page(&nothing()).contains("stealgrid_build_info{version="));
    }
}
