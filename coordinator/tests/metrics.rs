//! What is told to Prometheus: by the coordinator of a real run, and in `docs/METRICS.md`, which is made from the
//! registries that serve it.

use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use node::metrics::Described;
use rustix::process::Signal;

use crate::PROGRAM;
use crate::processes::{JOBS, Run, TOLERANCE, jobs, read, signal};

/// Set to write the file instead of comparing it.
const BLESS: &str = "STEALGRID_BLESS";

const HEAD: &str = "\
# Metrics

Which series do sites and coordinators serve to Prometheus? Those below; [MONITORING](MONITORING.md#from-clone-to-dashboard)
collects and watches them. `STEALGRID_BLESS=1 cargo test --workspace --test it metrics::` makes this page from the program, and a
test compares it.

Each series exists from the beginning, with all values of its labels, so that `rate` counts the first event; measurements of links
(`stealgrid_link_…_seconds`) appear when known. No label names a job. Histograms have `_bucket` (label `le`), `_sum` and `_count`.
";

/// All but the label `of`, which every metric of the table has.
fn table(title: &str, about: &str, of: &str, metrics: &[Described]) -> String {
    let mut text = format!(
        "\n## {title}\n\n{about}\n\n| metric | type | unit | labels | meaning |\n|---|---|---|---|---|\n"
    );
    for Described { name, kind, unit, labels, meaning } in metrics {
        let label = |(name, values): &(String, Vec<String>)| format!("`{name}`: {}", values.join(", "));
        assert!(labels.iter().any(|(label, _)| label == of), "{name} has no label {of}");
        let labels: Vec<String> = labels.iter().filter(|(label, _)| label != of).map(label).collect();
        assert!(!format!("{meaning}{labels:?}").contains('|'), "{name} would break the table");
        text += &format!("| `{name}` | {kind} | {unit} | {} | {meaning} |\n", labels.join("; "));
    }
    text
}

#[test]
fn the_table_of_metrics_is_what_is_served() {
    let of_sites = table(
        "Sites",
        "`GET /metrics` of each node, on the address of its control interface or of `--metrics`. All have the label `site`.",
        "site",
        &node::metrics::of_site(),
    );
    let of_coordinator = table(
        "Coordinator",
        "`GET /metrics` on the address of `--serve`, of `stealgrid run` and of `stealgrid serve`. All have the \
         label `run`, the experiment's name.",
        "run",
        &operation::serve::metrics::described(),
    );
    let expected = format!("{HEAD}{of_sites}{of_coordinator}");
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/METRICS.md");
    if std::env::var_os(BLESS).is_some() {
        std::fs::write(path, expected).unwrap();
        return;
    }
    let found = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        found == expected,
        "docs/METRICS.md is not what the program serves; write it anew with {BLESS}=1 cargo test --workspace --test \
         metrics, and look at the dashboards and rules that use what changed"
    );
}

fn try_get(address: &str, path: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    write!(stream, "GET {path} HTTP/1.1\r\nhost: here\r\nconnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let Some((head, body)) = answer.split_once("\r\n\r\n") else {
        return Err(io::ErrorKind::UnexpectedEof.into());
    };
    assert!(head.starts_with("HTTP/1.1 200"), "{answer}");
    Ok(body.to_string())
}

fn get(address: &str, path: &str) -> String {
    try_get(address, path).unwrap()
}

/// Values by name and labels.
fn samples(page: &str) -> BTreeMap<&str, f64> {
    let lines = page.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| line.rsplit_once(' ').unwrap())
        .map(|(name, value)| (name, value.parse().unwrap()))
        .collect()
}

#[test]
fn the_coordinator_of_a_run_serves_its_figures() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["--clock", "scaled:1000", "--ensemble", "0", "--serve", "127.0.0.1:0", "--serve-after"];
    let run = Run::start(folder.path(), &args);
    let deadline = Instant::now() + Duration::from_secs(60);
    let address = loop {
        let output = run.output();
        if let Some((_, rest)) = output.split_once("serving at ") {
            break rest.split(' ').next().unwrap().to_string();
        }
        assert!(Instant::now() < deadline, "{output}");
        std::thread::sleep(Duration::from_millis(20));
    };
    let page = get(&address, "/metrics");
    let targets: serde_json::Value = serde_json::from_str(&get(&address, "/sd")).unwrap();
    signal(run.id(), Signal::INT);
    let (status, output) = run.wait();
    assert_eq!(status.code(), Some(0), "{output}");

    let metrics = metrics_of(folder.path());
    let name = metrics["experiment"].as_str().unwrap();
    let samples = samples(&page);
    let of = |series: &str, labels: &str| {
        let key = format!("{series}{{{labels}run=\"{name}\"}}");
        *samples.get(key.as_str()).unwrap_or_else(|| panic!("no {key} in\n{page}"))
    };
    let state = |series: &str, value: &str| of(series, &format!("state=\"{value}\","));
    assert!((state("stealgrid_run_state", "ended") - 1.0).abs() < 0.1, "{page}");
    for (value, jobs) in [("waiting", 0), ("running", 0), ("ended", JOBS), ("given_up", 0)] {
        assert!((state("stealgrid_run_jobs", value) - jobs as f64).abs() < 0.1, "{value} in\n{page}");
    }
    assert!((state("stealgrid_run_sites", "there") - 3.0).abs() < 0.1, "{page}");
    let near = |found: f64, expected: &serde_json::Value| {
        let expected = expected.as_f64().unwrap();
        assert!((found / expected - 1.0).abs() < 1e-6, "{found} is not {expected}");
    };
    let (ratio, bound) =
        (of("stealgrid_run_competitive_ratio", ""), of("stealgrid_run_lower_bound_seconds", ""));
    // Both count from the first submission, as the report does.
    near(ratio * bound, &metrics["metrics"]["makespan_s"]);
    // The report goes by the time that jobs took, which is longer by how late their ends were noticed.
    let proved = metrics["bounds"]["proof_s"].as_f64().unwrap();
    assert!(bound > 100.0 && bound <= proved, "{bound} and {proved}");
    assert!(of("stealgrid_run_events_total", "") >= 3.0 * JOBS as f64, "{page}");
    let violations =
        samples.iter().filter(|(series, _)| series.starts_with("stealgrid_run_violations_total{"));
    assert!(violations.clone().count() > 5 && violations.clone().all(|(_, times)| *times < 0.1), "{page}");
    assert_eq!(targets.as_array().unwrap().len(), 3, "only sites: {targets}");
    assert_equal(&metrics, 3);
    assert!(output.contains("metrics: what was scraped equals the event log ("), "{output}");
}

/// What was scraped of so many sites equals what their events say.
fn assert_equal(metrics: &serde_json::Value, sites: usize) {
    let scraped = &metrics["scraped"];
    assert_eq!(scraped["equal"], true, "{scraped:#}");
    let of_sites = scraped["sites"].as_array().unwrap();
    let compared = |site: &&serde_json::Value| site["compared"].as_u64().unwrap() > 100;
    assert_eq!(of_sites.iter().filter(compared).count(), sites, "{scraped:#}");
    assert!(of_sites.iter().all(|site| site["different"] == 0), "{scraped:#}");
}

fn metrics_of(folder: &Path) -> serde_json::Value {
    serde_json::from_str(&read(&folder.join("out/metrics.json"))).unwrap()
}

/// A node that counts a start too many.
#[test]
fn a_counter_that_is_wrong_fails_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(PROGRAM);
    command.env("STEALGRID_MUTANT", "miscount").args(["run", TOLERANCE, "1000000"]);
    let run = Run::spawn(command, folder.path(), &["--clock", "scaled:1000", "--ensemble", "0"]);
    let (status, output) = run.wait();
    assert_eq!(status.code(), Some(5), "{output}");
    assert!(output.contains("error: what was scraped is not what the event log says:"), "{output}");
    assert!(output.contains("site1: stealgrid_jobs_started_total is "), "{output}");
    let metrics = metrics_of(folder.path());
    assert_eq!(metrics["scraped"]["equal"], false);
    assert_eq!(metrics["status"], "complete", "results are kept");
}

/// Counters of a node that was killed and goes on with its journal are those of all its incarnations.
#[test]
fn counters_of_a_node_that_was_restarted_equal_its_log() {
    let folder = tempfile::tempdir().unwrap();
    let jobs: String = (1..=JOBS)
        .map(|job| {
            let processors = 1 + job % 4;
            format!("{job} {} -1 40 {processors} -1 -1 {processors} 100 -1 1 1 1 1 1 -1 -1 -1\n", job * 5)
        })
        .collect();
    std::fs::write(folder.path().join("jobs.swf"), jobs).unwrap();
    let experiment = "grid.sizes = [4, 8]\nworkload.trace = \"jobs.swf\"\nnode.journal = \"process\"\n\
                      run.calibration_tolerance = 1000.0\n[[faults]]\nsite = \"site1\"\nwhat = \"crash\"\n\
                      at = \"100s\"\nfor = \"50s\"\n";
    let path = folder.path().join("experiment.toml");
    std::fs::write(&path, experiment).unwrap();
    let mut command = Command::new(PROGRAM);
    command.arg("run").arg(path).args(["--clock", "scaled:100"]);
    let (status, output) = Run::of(command, folder.path()).wait();
    assert_eq!(status.code(), Some(0), "{output}");
    let metrics = metrics_of(folder.path());
    assert_equal(&metrics, 2);
    let restarted = |site: usize| metrics["scraped"]["sites"][site]["restarted"] == true;
    assert_eq!([restarted(0), restarted(1)], [true, false], "{metrics:#}");
}

/// A server that answers queries as Prometheus does, from scrapes of all targets that a coordinator tells of, whose address
/// it is told: nothing at first, and then always from the scrape before the last.
fn prometheus(coordinator: mpsc::Receiver<String>) -> (String, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (sender, queries) = mpsc::channel();
    std::thread::spawn(move || {
        let mut scraped = "[]".to_string();
        let Ok(coordinator) = coordinator.recv() else { return };
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let query = request(&mut stream);
            let body =
                format!(r#"{{"status":"success","data":{{"resultType":"vector","result":{scraped}}}}}"#);
            write!(
                stream,
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            )
            .unwrap();
            let told = sender.send(query);
            // After the run nobody is there.
            let (Ok(()), Ok(next)) = (told, scrape_all(&coordinator)) else { return };
            scraped = next;
        }
    });
    (address, queries)
}

/// The body of a request that has one.
fn request(stream: &mut TcpStream) -> String {
    let mut text = String::new();
    let mut buffer = [0; 4096];
    loop {
        let read = stream.read(&mut buffer).unwrap();
        text += std::str::from_utf8(&buffer[..read]).unwrap();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.to_lowercase();
        let length = length.split_once("content-length: ").unwrap().1.split("\r\n").next().unwrap();
        if body.len() >= length.parse().unwrap() {
            return body.to_string();
        }
        assert!(read > 0, "{text}");
    }
}

/// Samples of all targets, as an instant vector.
fn scrape_all(coordinator: &str) -> io::Result<String> {
    let targets: serde_json::Value = serde_json::from_str(&try_get(coordinator, "/sd")?).unwrap();
    let mut samples = Vec::new();
    for target in targets.as_array().unwrap() {
        let address = target["targets"][0].as_str().unwrap();
        let page = try_get(address, "/metrics")?;
        for line in page.lines().filter(|line| !line.starts_with('#')) {
            let (series, value) = line.rsplit_once(' ').unwrap();
            let (name, labels) = series.split_once('{').unwrap();
            let mut metric = serde_json::Map::new();
            metric.insert("__name__".to_string(), name.into());
            metric.insert("instance".to_string(), address.into());
            metric.insert("run".to_string(), target["labels"]["run"].clone());
            for label in labels.trim_end_matches('}').split(',').filter(|label| !label.is_empty()) {
                let (label, value) = label.split_once('=').unwrap();
                metric.insert(label.to_string(), value.trim_matches('"').into());
            }
            samples.push(serde_json::json!({ "metric": metric, "value": [1.5, value] }));
        }
    }
    Ok(serde_json::to_string(&samples).unwrap())
}

/// Where a coordinator that was told to choose a port says that it serves.
fn served_at(run: &Run) -> String {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let output = run.output();
        let said = output.split_once("note: watch at http://").and_then(|(_, rest)| rest.split_once('\n'));
        if let Some((line, _)) = said {
            return line.to_string();
        }
        assert!(Instant::now() < deadline, "{output}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Where a site is, as Prometheus is told; nothing as long as the list has none.
fn target(coordinator: &str, site: &str) -> Option<String> {
    let list: serde_json::Value = serde_json::from_str(&try_get(coordinator, "/sd").ok()?).unwrap();
    let target = list.as_array().unwrap().iter().find(|target| target["labels"]["site"] == site)?;
    Some(target["targets"][0].as_str().unwrap().to_string())
}

#[test]
fn a_node_that_was_started_again_is_scraped_where_it_listens_now() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("jobs.swf"), jobs()).unwrap();
    let file = folder.path().join("experiment.toml");
    std::fs::write(
        &file,
        "grid.sizes = [4, 8, 16]\nworkload.trace = \"jobs.swf\"\nrun.clock = \"scaled:60\"\n\
         run.calibration_tolerance = 1000.0\nnode.journal = \"process\"\n",
    )
    .unwrap();
    let mut command = Command::new(PROGRAM);
    command.arg("run").arg(&file).args(["--serve", "127.0.0.1:0"]);
    let mut run = Run::of(command, folder.path());
    let coordinator = served_at(&run);
    run.wait_for_logs(&["site1", "site2", "site3"], "start is ordered");
    let nodes = run.nodes();
    let (victim, _) = nodes.iter().find(|(_, command)| command.contains("site1.json")).unwrap();
    signal(*victim, Signal::KILL);

    let deadline = Instant::now() + Duration::from_secs(60);
    // It may have the port that it had.
    let began_again = |address: String| {
        let page = try_get(&address, "/metrics").unwrap_or_default();
        page.lines().any(|line| line == "stealgrid_restarts_total{site=\"site1\"} 1")
    };
    while !target(&coordinator, "site1").is_some_and(began_again) {
        assert!(Instant::now() < deadline, "site1 is not said to be where it began again: {}", run.output());
        std::thread::sleep(Duration::from_millis(20));
    }
    let (status, output) = run.wait();
    assert_eq!(status.code(), Some(0), "{output}");
}

#[test]
fn what_a_prometheus_server_scraped_after_the_end_is_compared() {
    let folder = tempfile::tempdir().unwrap();
    let (tell, told) = mpsc::channel();
    let (url, queries) = prometheus(told);
    let args = ["--clock", "scaled:1000", "--ensemble", "0", "--serve", "127.0.0.1:0", "--prometheus", &url];
    let run = Run::start(folder.path(), &args);
    tell.send(served_at(&run)).unwrap();
    let (status, output) = run.wait();
    assert_eq!(status.code(), Some(0), "{output}");
    assert!(output.contains(&format!("series of 3 sites, from {url})")), "{output}");
    assert_equal(&metrics_of(folder.path()), 3);
    assert!(queries.try_iter().count() >= 2, "the first answer has nothing");
}

#[test]
fn a_prometheus_server_that_does_not_answer_fails_a_complete_run_in_time() {
    let folder = tempfile::tempdir().unwrap();
    // Nobody else gets the port as long as this is there, and on Linux another address refuses connections.
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://127.0.0.2:{}", taken.local_addr().unwrap().port());
    let args =
        ["--clock", "scaled:1000", "--ensemble", "0", "--prometheus", &url, "--prometheus-patience", "1"];
    let (status, output) = Run::start(folder.path(), &args).wait();
    assert_eq!(status.code(), Some(5), "{output}");
    let said = format!("not compared: failed to ask Prometheus at {url}: ");
    assert!(output.contains(&said) && output.contains("--prometheus-patience"), "{output}");
    assert_eq!(metrics_of(folder.path())["status"], "complete", "results are kept");

    let (status, output) = Run::start(folder.path(), &["--prometheus", "127.0.0.1:9090"]).wait();
    assert_eq!(status.code(), Some(2), "{output}");
    assert!(output.contains("as in http://127.0.0.1:9090"), "{output}");
}
