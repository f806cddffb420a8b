//! `stealgrid play` as somebody uses it: started on a port of the system's choice, asked for simulations, and held against
//! `stealgrid simulate` of what it saves.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::PROGRAM;

/// Ample for what takes a second; reached only by a failing test.
const PATIENCE: Duration = Duration::from_secs(120);

/// The command, and where it listens. Dropping it ends it.
struct Playing {
    process: Child,
    address: String,
}

impl Playing {
    fn start(folder: &Path, args: &[&str]) -> Playing {
        let mut command = Command::new(PROGRAM);
        command.arg("play").args(args).current_dir(folder).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.strip_prefix("open http://").and_then(|rest| rest.split(' ').next());
        let address = address.unwrap_or_else(|| panic!("it says {line:?}")).to_string();
        assert!(address.starts_with("127.0.0.1:"), "{address}");
        Playing { process, address }
    }

    /// Status, head and body of an answer.
    fn ask(&self, path: &str, headers: &str) -> (u16, String, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\n{headers}connection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), head.to_string(), body.to_string())
    }

    fn get(&self, path: &str) -> (u16, String) {
        let (status, _, body) = self.ask(path, &format!("host: {}\r\n", self.address));
        (status, body)
    }

    fn simulate(&self, asked: &str, query: &str) -> (u16, String) {
        let headers = format!("host: {}\r\nx-play: {asked}\r\n", self.address);
        let (status, _, body) = self.ask(&format!("/simulate?{query}"), &headers);
        (status, body)
    }
}

impl Drop for Playing {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

/// What `stealgrid simulate` says of an experiment.
fn simulated(folder: &Path, text: &str) -> Value {
    std::fs::write(folder.join("saved.toml"), text).unwrap();
    let mut command = Command::new(PROGRAM);
    command.args([
        "simulate",
        "saved.toml",
        "--out",
        "out",
        "--replace",
        "--no-events",
        "--no-page",
        "--no-ideal",
    ]);
    let output = command.current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = std::fs::read_to_string(folder.join("out/metrics.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Every number of the page but the count of jobs, and the shares of the causes.
fn agree(picture: &Value, metrics: &Value, query: &str) {
    let (mut compared, mut apart) = (0, Vec::new());
    let mut same = |name: &str, here: &Value, there: &Value| {
        let (here, there) = (here.as_f64().unwrap(), there.as_f64().unwrap());
        // Files have fewer digits than the page.
        if (here - there).abs() > 1e-6 * there.abs().max(1.0) {
            apart.push(format!("{name}: {here} on the page, {there} in metrics.json"));
        }
        compared += 1;
    };
    for (name, value) in picture["numbers"].as_object().unwrap() {
        same(name, value, &metrics["metrics"][name]);
    }
    assert!(apart.is_empty() && compared >= 8, "{query}: {compared} numbers, {apart:?}");
}

#[test]
fn what_is_shown_is_what_the_saved_experiment_gives_without_a_file_in_reach() {
    let folder = tempfile::tempdir().unwrap();
    let playing = Playing::start(folder.path(), &[]);
    let mut waits = Vec::new();
    for (number, query) in [
        "",
        "delay=30m&load=0.9&threshold=25",
        "delay=1m&loss=0.05&strategy=steal:two-choices",
        "strategy=local&local=fcfs&load=1.2",
        "strategy=broker:mct&local=conservative&delay=10m",
    ]
    .into_iter()
    .enumerate()
    {
        let (status, body) = playing.simulate(&format!("1/{}", number + 1), query);
        assert_eq!(status, 200, "{query}: {body}");
        let picture: Value = serde_json::from_str(&body).unwrap();
        let (status, head, saved) =
            playing.ask(&format!("/experiment.toml?{query}"), &format!("host: {}\r\n", playing.address));
        assert_eq!(status, 200, "{query}: {saved}");
        assert!(head.contains("attachment; filename=\"quickstart-played.toml\""), "{head}");
        agree(&picture, &simulated(folder.path(), &saved), query);
        waits.push(picture["numbers"]["wait_mean_s"].as_f64().unwrap());
    }
    waits.sort_by(f64::total_cmp);
    waits.dedup();
    assert_eq!(waits.len(), 5, "settings make no difference: {waits:?}");
}

#[test]
fn an_experiment_of_ones_own_is_played_with_and_saved_with_its_log() {
    let folder = tempfile::tempdir().unwrap();
    let logs = tempfile::tempdir().unwrap();
    let jobs: String = (1..=60)
        .map(|job| format!("{job} {job} -1 {} 3 -1 -1 3 100 -1 1 1 1 1 1 -1 -1 -1\n", 20 + job % 50))
        .collect();
    std::fs::write(logs.path().join("jobs.swf"), jobs).unwrap();
    let experiment =
        "grid.sizes = [4, 8]\nworkload.trace = \"jobs.swf\"\nstrategy.name = \"st:30,order=bah\"\n";
    std::fs::write(logs.path().join("mine.toml"), experiment).unwrap();
    let file = logs.path().join("mine.toml");
    let playing = Playing::start(folder.path(), &[file.to_str().unwrap()]);
    let about: Value = serde_json::from_str(&playing.get("/about").1).unwrap();
    assert_eq!(
        (about["name"].as_str(), about["strategies"][0].as_str()),
        (Some("mine"), Some("st,order=bah"))
    );
    let query = "delay=2s&threshold=60";
    let picture: Value = serde_json::from_str(&playing.simulate("1/1", query).1).unwrap();
    assert_eq!(picture["settings"]["strategy"], "st,order=bah");
    agree(&picture, &simulated(folder.path(), &playing.get(&format!("/experiment.toml?{query}")).1), query);
}

#[test]
fn wrong_input_is_told_and_who_should_not_ask_is_not_answered() {
    let folder = tempfile::tempdir().unwrap();
    let playing = Playing::start(folder.path(), &[]);
    for (number, (query, expected)) in (1..).zip([
        ("dely=5m", "\"dely\" is no setting; use delay, load"),
        ("delay=5", "delay: \"5\" is not a time"),
        ("strategy=best", "unknown name; use local"),
        ("strategy=broker:exec=true", "strategy"),
        ("load=99", "failed to understand workload.load: 99 is not from 0.01 to 10"),
        ("loss=1", "1 is not a probability"),
    ]) {
        let (status, reason) = playing.simulate(&format!("1/{number}"), query);
        assert!(status == 400 && reason.contains(expected), "{query}: {status} {reason}");
        assert_eq!(playing.get(&format!("/experiment.toml?{query}")).0, 400, "{query}");
    }
    // A page of somebody else cannot send the header, nor ask by a name of its own.
    assert_eq!(playing.get("/simulate").0, 400);
    let (status, _, reason) = playing.ask("/", "host: rebound.example\r\n");
    assert!(status == 403 && reason.contains("--serve-host"), "{status} {reason}");
    let (status, head, _) = playing.ask("/", &format!("host: {}\r\n", playing.address));
    assert!(status == 200 && head.contains("content-security-policy: default-src 'none'"), "{head}");
}

/// One that takes too long ends with a sentence, and one that something newer follows ends at once; both leave the server
/// as it was.
#[test]
fn a_simulation_that_takes_too_long_ends_and_the_server_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let quick = Playing::start(folder.path(), &["--time-max", "1ms"]);
    let (status, reason) = quick.simulate("1/1", "delay=1s");
    assert!(status == 422 && reason.contains("ended after 1ms (--time-max)"), "{status} {reason}");
    assert_eq!(quick.get("/healthz"), (200, "ok\n".to_string()));

    let playing = Playing::start(folder.path(), &[]);
    assert_eq!(playing.simulate("1/5", "").0, 200);
    assert_eq!(playing.simulate("1/4", "").0, 409, "an old request gets a new picture");
    assert_eq!(playing.simulate("2/1", "").0, 200);
    assert_eq!(playing.simulate("1/6", "").0, 200);
}

#[test]
fn too_many_jobs_are_refused_before_anything_is_served() {
    let folder = tempfile::tempdir().unwrap();
    let begun = Instant::now();
    let mut command = Command::new(PROGRAM);
    let output = command.args(["play", "--jobs-max", "1999"]).current_dir(folder.path()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("failed to play with 2000 jobs: at most 1999 are (--jobs-max)"), "{said}");
    assert!(begun.elapsed() < PATIENCE);
}
