//! The door of a run's page, on real processes: who crowds it, and who asks by a name that is not its own. And what a run
//! leaves on the disk is for its owner alone.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use node::running::Running;
use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};
use serde_json::json;

use crate::PROGRAM;
use crate::processes::{Run, jobs, signal};
use crate::served::{self, EXPERIMENT, PATIENCE, Served, ask, until};

/// Strangers at the page.
const STRANGERS: usize = 2000;
/// Files that the coordinator may open: what its nodes need, and a quarter for the page.
const FILES: usize = 128;

/// Half of them say nothing, half begin a request. The page answers everybody else, and what the run needs is left to it:
/// a node that is killed restarts.
#[test]
fn a_crowd_at_the_page_takes_nothing_from_the_run() {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
    let may = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    assert!(may > STRANGERS as u64 + 100, "the test itself needs a file for each; this machine allows {may}");
    let folder = tempfile::tempdir().unwrap();
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("ulimit -n {FILES} && exec \"$0\" \"$@\""), PROGRAM]);
    let served = Served::by(shell, folder.path(), EXPERIMENT, &["--hold"]);
    served.until_frame(|frame| frame["phase"] == "held");

    let mut looks_on = TcpStream::connect(&served.address).unwrap();
    write!(looks_on, "GET /live HTTP/1.1\r\nhost: {}\r\n\r\n", served.address).unwrap();
    let mut start = [0; 12];
    looks_on.set_read_timeout(Some(PATIENCE)).unwrap();
    looks_on.read_exact(&mut start).unwrap();
    assert_eq!(&start, b"HTTP/1.1 200");
    let strangers: Vec<TcpStream> = (0..STRANGERS)
        .map(|number| {
            let mut stream = TcpStream::connect(&served.address).unwrap();
            if number % 2 == 0 {
                // The connection may be closed already.
                let _ = stream.write_all(b"GET / HTTP/1.1\r\nhost");
            }
            stream
        })
        .collect();
    served.obeyed("start", json!({}));
    served.until_frame(|frame| frame["jobs"][1].as_u64() > Some(0));
    let open = std::fs::read_dir(format!("/proc/{}/fd", served.run.id())).unwrap().count();
    assert!(open < FILES * 3 / 4, "{open} files are open");
    let running = Running::all_in(&folder.path().join("out/nodes"));
    signal(running[0].process.id, Signal::KILL);
    until(|| served.run.output().contains("was started again").then_some(()));

    let refused = served.turned_away("connections");
    assert!(refused >= STRANGERS - FILES, "{refused}");
    // Whoever looks on is not idle, and was not sent away for a stranger.
    looks_on.read_exact(&mut [0; 100]).unwrap();
    drop((looks_on, strangers));
    let (status, output) = served.run.wait();
    assert!([Some(0), Some(5)].contains(&status.code()), "{output}");
}

/// A page of somebody else whose name leads here asks by that name.
#[test]
fn only_by_its_own_names_does_the_page_answer() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), EXPERIMENT, &["--hold", "--serve-host", "Grid.example"]);
    served.until_frame(|frame| frame["phase"] == "held");
    let status = |path: &str, host: &str| served.ask("GET", path, &format!("host: {host}\r\n"), "").0;
    for path in ["/", "/about", "/live.js", "/chart.js", "/metrics", "/sd", "/healthz"] {
        assert_eq!(status(path, "rebound.example:8080"), 403, "{path}");
        for own in [&served.address, "localhost:1", "coordinator:8080", "grid.example:8080", "[::1]:8080"] {
            assert_eq!(status(path, own), 200, "{path} by {own}");
        }
    }
    assert_eq!(status("/live", "rebound.example"), 403);
    // Sites that steal have no local scheduler, whose plan would be one.
    let (code, reason) = served.ask("GET", "/starts?site=0", "host: localhost\r\n", "");
    assert!(code == 409 && reason.contains("no queues with a local scheduler"), "{code}: {reason}");
    let order = |host: &str| {
        let headers = format!("host: {host}\r\nauthorization: Bearer {}\r\n", served.token);
        served.order_by("pause", &headers, &json!({})).0
    };
    assert_eq!(order("rebound.example"), 403);
    assert_eq!(order("grid.example"), 409, "that the run is held is said to whom it listens");
    let (_, page) = served.ask("GET", "/metrics", "host: here\r\n", "");
    assert!(
        page.contains("stealgrid_run_requests_refused_total{reason=\"host\",run=\"experiment\"} 8"),
        "{page}"
    );
}

/// All jobs are at the smallest site, and most of them wait there: when each should start is told to those who ask.
#[test]
fn whoever_asks_is_told_when_waiting_jobs_should_start() {
    let folder = tempfile::tempdir().unwrap();
    let experiment = format!("strategy.name = \"local\"\nstrategy.submit = \"home\"\n{EXPERIMENT}");
    let served = Served::start(folder.path(), &experiment, &["--hold"]);
    served.until_frame(|frame| frame["phase"] == "held");
    let get = |path: &str| served.ask("GET", path, "host: localhost\r\n", "");
    let starts = || -> serde_json::Value { serde_json::from_str(&get("/starts?site=0").1).unwrap() };
    let about: serde_json::Value = serde_json::from_str(&get("/about").1).unwrap();
    assert_eq!(about["starts"], true, "{about}");
    assert_eq!((starts()["waiting"].as_u64(), get("/starts?site=7").0), (Some(0), 404));
    served.obeyed("start", json!({}));
    let told = until(|| Some(starts()).filter(|told| told["waiting"].as_u64() > Some(10)));
    let jobs = told["jobs"].as_array().unwrap();
    assert_eq!(jobs.len() as u64, told["waiting"].as_u64().unwrap());
    let start = |job: &serde_json::Value| job["start_s"].as_f64().unwrap();
    assert!(jobs.is_sorted_by(|one, other| start(one) <= start(other)), "{told}");
    assert!(jobs.iter().all(|job| start(job) >= told["now_s"].as_f64().unwrap()), "{told}");
    assert!(start(&jobs[10]) > start(&jobs[0]), "one machine does not start all of them at once: {told}");
    // So that its nodes end with it, and wait for no other coordinator.
    signal(served.run.id(), Signal::INT);
    let (status, output) = served.run.wait();
    assert_eq!(status.code(), Some(4), "{output}");
}

/// The same door before a run that has ended: a crowd, names of others, orders to nobody. Numbers are for Prometheus.
#[test]
fn a_run_that_has_ended_is_shown_behind_the_same_door() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("jobs.swf"), jobs()).unwrap();
    let mut simulate = Command::new(PROGRAM);
    simulate.args(["simulate", "--sites", "4,8,16", "--trace"]).arg(path("jobs.swf"));
    let done = simulate.arg("--out").arg(path("out")).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("ulimit -n {FILES} && exec \"$0\" \"$@\""), PROGRAM, "serve"]);
    shell.arg(path("out")).args(["--serve", "127.0.0.1:0", "--serve-host", "Grid.example"]);
    let run = Run::without_out(shell, folder.path());
    let address = until(|| {
        let said = std::fs::read_to_string(path("stdout")).unwrap();
        Some(said.strip_prefix("open http://")?.split_once(" (Ctrl-C stops)\n")?.0.to_string())
    });
    let get = |path: &str, host: &str| ask(&address, "GET", path, &format!("host: {host}\r\n"), "");
    let status = |path: &str, host: &str| get(path, host).0;
    until(|| (status("/about", "here") == 200).then_some(()));

    // A quarter of the files are places.
    let places = FILES / 4;
    let strangers: Vec<TcpStream> = (0..10 * places)
        .map(|number| {
            let mut stream = TcpStream::connect(&address).unwrap();
            if number % 2 == 0 {
                // The connection may be closed already.
                let _ = stream.write_all(b"GET / HTTP/1.1\r\nhost");
            }
            stream
        })
        .collect();
    // Whoever asks has a place, the others are with strangers. What was asked before may just be leaving.
    let turned_away = served::turned_away(&address, "connections");
    let late = served::turned_away(&address, "head_time");
    let most = strangers.len() + 1 - places;
    assert!(turned_away <= most + 4, "{turned_away} of {most}");
    assert!(turned_away + late >= most, "{turned_away} and {late} that were late, of {most}");

    let paths = ["/", "/about", "/live.js", "/chart.js", "/metrics", "/sd", "/healthz", "/log?from=0"];
    for path in paths {
        assert_eq!(status(path, "rebound.example:8080"), 403, "{path}");
        for own in [&address, "localhost:1", "grid.example:8080"] {
            assert_eq!(status(path, own), 200, "{path} by {own}");
        }
    }
    assert_eq!(status("/live", "rebound.example"), 403);
    assert_eq!(status("/live", "localhost"), 409, "it has ended");
    assert_eq!(served::turned_away(&address, "host"), paths.len() + 1);
    assert_eq!(ask(&address, "POST", "/orders/pause", "host: localhost\r\n", "{}").0, 409);
    let (_, page) = get("/metrics", "localhost");
    assert!(page.contains("stealgrid_run_info{") && page.contains("stealgrid_run_jobs{"), "{page}");
    drop(strangers);

    signal(run.id(), Signal::INT);
    let (status, output) = run.wait();
    assert_eq!(status.code(), Some(0), "{output}");
}

/// Whatever the mask of the process is.
#[test]
fn what_nodes_keep_and_log_is_for_their_owner_alone() {
    let folder = tempfile::tempdir().unwrap();
    let mut shell = Command::new("sh");
    shell.args(["-c", "umask 0 && exec \"$0\" \"$@\"", PROGRAM]);
    let served = Served::by(shell, folder.path(), EXPERIMENT, &[]);
    served.until_frame(|frame| frame["jobs"][1].as_u64() > Some(0));
    let out = folder.path().join("out");

    let mut seen = Vec::new();
    look_at(&out.join("nodes"), &mut seen);
    for file in ["run.json", "orders.token"] {
        look_at(&out.join(file), &mut seen);
    }

    let names = [
        "site1.log",
        "site1.json",
        "grid.key",
        "control.token",
        "journal.sqlite",
        "journal.sqlite-wal",
        "lock",
    ];
    for name in names.into_iter().chain(["running.json", "run.json", "orders.token"]) {
        assert!(seen.iter().any(|seen| seen == name), "there is no {name}: {seen:?}");
    }
}

/// Everything there is private; the names of the files.
fn look_at(path: &Path, seen: &mut Vec<String>) {
    // Files of SQLite and new ones that take the place of others come and go.
    let Ok(about) = std::fs::metadata(path) else { return };
    let (mode, wanted) = (about.permissions().mode() & 0o777, if about.is_dir() { 0o700 } else { 0o600 });
    assert_eq!(mode, wanted, "{} is {mode:o}", path.display());
    if about.is_dir() {
        std::fs::read_dir(path).unwrap().for_each(|entry| look_at(&entry.unwrap().path(), seen));
    } else {
        seen.push(path.file_name().unwrap().to_string_lossy().into_owned());
    }
}
