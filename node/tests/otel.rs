//! Spans of jobs, as a collector of OpenTelemetry gets them from real processes. Needs the feature `otel`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::routing::post;
use node::NodeConfig;
use node::config::SiteEntry;
use operation::fleet::Fleet;
use operation::spawn::SpawnOrder;
use scheduler::{EventKind, JobId, JobSpec, Labels, SiteId, Span, Time, TimedJob};
use serde_json::Value;

use crate::PROGRAM;

/// Ample for what takes milliseconds; reached only by a failing test.
const PATIENCE: Duration = Duration::from_secs(30);
const JOBS: u64 = 6;

/// What the collector has been sent.
type Requests = Arc<Mutex<Vec<Value>>>;

#[test]
fn a_job_is_one_trace_whatever_sites_it_was_at() {
    let (endpoint, requests) = collector();
    let folder = tempfile::tempdir().unwrap();
    let mut fleet = Fleet::spawn(&order(folder.path(), &endpoint), &config()).unwrap();
    fleet.wait_ready(PATIENCE).unwrap();
    let jobs: Vec<TimedJob> = (1..=JOBS).map(job).collect();
    fleet.feed(&jobs, |job| job.spec.origin).unwrap();
    fleet.start(100.0, Time::ZERO, Duration::from_millis(100)).unwrap();
    let deadline = Instant::now() + PATIENCE;
    while !fleet.is_finished(JOBS).unwrap() {
        assert!(Instant::now() < deadline, "{:#?}", fleet.statuses().unwrap());
        std::thread::sleep(Duration::from_millis(10));
    }
    let mut events = Vec::new();
    fleet.take_events(&mut |event| events.push(event)).unwrap();
    // Nodes send what is left before they end.
    fleet.stop(PATIENCE).unwrap();

    let spans = spans(&requests.lock().unwrap());
    let mut traces: BTreeMap<u64, BTreeSet<String>> = BTreeMap::new();
    let mut sites: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
    for span in &spans {
        traces.entry(span.job).or_default().insert(span.trace.clone());
        sites.entry(span.job).or_default().insert(span.site);
        assert!(span.begin <= span.end, "{span:?}");
    }
    assert_eq!(traces.len() as u64, JOBS, "{spans:#?}");
    assert!(traces.values().all(|traces| traces.len() == 1), "{traces:?}");
    assert_eq!(traces.values().flatten().collect::<BTreeSet<_>>().len() as u64, JOBS, "{traces:?}");
    // What the log says, the spans say.
    let stolen: BTreeSet<u64> = events
        .iter()
        .filter_map(|event| match event.kind {
            EventKind::Accepted { job, .. } => Some(job.0),
            _ => None,
        })
        .collect();
    assert!(!stolen.is_empty(), "nothing was stolen");
    for job in 1..=JOBS {
        let ran: Vec<&Seen> = spans.iter().filter(|span| span.job == job && span.name == "runs").collect();
        assert_eq!(ran.len(), 1, "{spans:#?}");
        let moves = spans.iter().filter(|span| span.job == job && span.name == "moves").count();
        assert_eq!(moves > 0, stolen.contains(&job), "job {job}: {spans:#?}");
        assert_eq!(sites[&job].len() > 1, stolen.contains(&job), "job {job}: {spans:#?}");
    }
}

/// A span, as far as it is looked at.
#[derive(Debug)]
struct Seen {
    trace: String,
    name: String,
    job: u64,
    site: u64,
    begin: u64,
    end: u64,
}

/// All spans of the requests, in the JSON of OTLP (OpenTelemetry Protocol 1.x, JSON Protobuf Encoding).
fn spans(requests: &[Value]) -> Vec<Seen> {
    let list = |value: &Value, name: &str| value[name].as_array().cloned().unwrap_or_default();
    // Numbers of 64 bits may be strings.
    let number = |value: &Value| {
        let parsed = value.as_u64().or_else(|| value.as_str()?.parse().ok());
        parsed.unwrap_or_else(|| panic!("{value} is no number"))
    };
    let mut seen = Vec::new();
    for resource in requests.iter().flat_map(|request| list(request, "resourceSpans")) {
        for span in list(&resource, "scopeSpans").iter().flat_map(|scope| list(scope, "spans")) {
            let attribute = |name: &str| {
                let attributes = list(&span, "attributes");
                let found = attributes.iter().find(|attribute| attribute["key"] == name);
                let value = &found.unwrap_or_else(|| panic!("{name} in {span:#}"))["value"];
                number(&value["intValue"])
            };
            seen.push(Seen {
                trace: span["traceId"].as_str().unwrap().to_string(),
                name: span["name"].as_str().unwrap().to_string(),
                job: attribute("job"),
                site: attribute("site"),
                begin: number(&span["startTimeUnixNano"]),
                end: number(&span["endTimeUnixNano"]),
            });
        }
    }
    seen
}

/// A collector that keeps what it is sent: where it listens, and what it has.
fn collector() -> (String, Requests) {
    let requests = Requests::default();
    let kept = Arc::clone(&requests);
    let take = move |body: axum::body::Bytes| async move {
        kept.lock().unwrap().push(serde_json::from_slice(&body).unwrap());
        "{}"
    };
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    // It ends with the test.
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            axum::serve(listener, Router::new().route("/v1/traces", post(take))).await.unwrap();
        });
    });
    (endpoint, requests)
}

fn order(folder: &Path, endpoint: &str) -> SpawnOrder {
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"),
        ("RUST_LOG", "off"),
    ];
    let mut arguments: Vec<String> = variables.map(|(name, value)| format!("{name}={value}")).into();
    arguments.push(PROGRAM.to_string());
    SpawnOrder { program: "/usr/bin/env".into(), arguments, folder: folder.to_path_buf() }
}

fn config() -> NodeConfig {
    let entry = |(name, processors): (&str, u32)| SiteEntry::new(name, processors);
    NodeConfig::new(SiteId(1), [("one", 1), ("two", 2)].map(entry).into())
}

/// All at once at the first site, so that the second steals.
fn job(id: u64) -> TimedJob {
    let spec = JobSpec {
        id: JobId(id),
        submit: Time::ZERO,
        processors: 1,
        requested: Span::from_secs(60),
        labels: Labels::UNKNOWN,
        origin: SiteId(1),
        payload: 0,
    };
    TimedJob { spec, run_time: Span::from_secs(30) }
}
