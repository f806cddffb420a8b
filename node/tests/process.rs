//! The executable: its ready line, its exit codes, and that it never outlives who started it.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::TcpListener;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use node::config::SiteEntry;
use node::control::Token;
use node::control::api::ReadyLine;
use node::{NodeConfig, exit};
use operation::NodeProcess;
use operation::fleet::{Fleet, FleetError};
use operation::spawn::{SpawnError, SpawnOrder};
use scheduler::{EventKind, JobId, JobSpec, Labels, SiteId, Span, Time, TimedJob};

use crate::PROGRAM;

/// Ample for what takes milliseconds; reached only by a failing test.
const PATIENCE: Duration = Duration::from_secs(30);

#[test]
fn a_fleet_runs_jobs_and_stops_when_told() {
    let folder = tempfile::tempdir().unwrap();
    let mut fleet = Fleet::spawn(&order(folder.path()), &config(1)).unwrap();
    fleet.wait_ready(PATIENCE).unwrap();
    let jobs: Vec<TimedJob> = (1..=6).map(job).collect();

    fleet.feed(&jobs, |job| job.spec.origin).unwrap();
    fleet.start(100.0, Time::ZERO, Duration::from_millis(100)).unwrap();
    let mut events = Vec::new();
    let deadline = Instant::now() + PATIENCE;
    while !fleet.is_finished(6).unwrap() {
        fleet.take_events(&mut |event| events.push(event)).unwrap();
        assert!(Instant::now() < deadline, "{:#?}", fleet.statuses().unwrap());
        std::thread::sleep(Duration::from_millis(10));
    }
    fleet.take_events(&mut |event| events.push(event)).unwrap();
    fleet.stop(PATIENCE).unwrap();

    let count = |wanted: fn(&EventKind) -> bool| events.iter().filter(|event| wanted(&event.kind)).count();
    assert_eq!(count(|kind| matches!(kind, EventKind::Started { .. })), 6);
    assert_eq!(count(|kind| matches!(kind, EventKind::Completed { .. })), 6);
    assert!(count(|kind| matches!(kind, EventKind::Accepted { .. })) > 0, "nothing was stolen");
}

#[test]
fn a_node_that_has_too_few_descriptors_to_begin_says_so() {
    let folder = tempfile::tempdir().unwrap();
    for descriptors in 4..=18 {
        let begin =
            format!("ulimit -n {descriptors}; exec {PROGRAM} --site 1 --grid 8 --run few --http 127.0.0.1:0");
        let node = Command::new("sh").args(["-c", &begin]).current_dir(folder.path()).output().unwrap();
        let said = String::from_utf8_lossy(&node.stderr);
        assert_eq!(node.status.code(), Some(exit::UNEXPECTED.into()), "{descriptors}: {said}");
        assert!(
            said.contains("16 free file descriptors") && said.contains("ulimit -n"),
            "{descriptors}: {said}"
        );
    }
}

#[test]
fn a_node_that_dies_is_named_by_its_fleet() {
    let folder = tempfile::tempdir().unwrap();
    let mut fleet = Fleet::spawn(&order(folder.path()), &config(1)).unwrap();
    fleet.wait_ready(PATIENCE).unwrap();

    fleet.clients().nth(1).unwrap().stop().unwrap();

    let deadline = Instant::now() + PATIENCE;
    let error = loop {
        match fleet.statuses() {
            Ok(_) => assert!(Instant::now() < deadline, "the node does not end"),
            // The answer may fail a moment before the process has ended.
            Err(FleetError::Client(_)) => assert!(Instant::now() < deadline, "the node does not end"),
            Err(error) => break error.to_string(),
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    assert!(error.starts_with("node two ended with exit status: 0 during the run"), "{error}");
}

#[test]
fn a_dropped_process_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    Token::random().write_new(&token).unwrap();
    let config = NodeConfig { control_token: Some(token), ..config(1) };
    let node = NodeProcess::spawn(&order(folder.path()), &config).unwrap();
    let (id, client) = (node.id().unwrap(), node.client());
    client.metrics().unwrap();
    assert!(!client.stop_if_left().unwrap(), "it was not told to leave");
    client.metrics().unwrap();

    drop(node);

    assert!(!Path::new(&format!("/proc/{id}")).exists());
    assert!(client.metrics().is_err());
}

/// The log is on the disk that is full, too.
#[cfg(target_os = "linux")]
#[test]
fn a_node_that_cannot_write_its_log_works_and_ends_as_it_should() {
    let full = || std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let refused = Command::new(PROGRAM).args(["--config", "/nowhere"]).stderr(full()).status().unwrap();
    assert_eq!(refused.code(), Some(i32::from(exit::INPUT)));

    let mut node = Command::new(PROGRAM)
        .args(["--site", "1", "--grid", "2,8"])
        .env("RUST_LOG", "trace")
        .stdout(Stdio::piped())
        .stderr(full())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(node.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let ready: ReadyLine = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line:?}: {error}"));
    assert_eq!(ready.site, SiteId(1));
    let pid = rustix::process::Pid::from_raw(i32::try_from(node.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert_eq!(node.wait().unwrap().code(), Some(i32::from(exit::DONE)));
}

#[test]
fn a_node_that_cannot_start_says_why_to_who_spawned_it() {
    let folder = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let http = taken.local_addr().unwrap().to_string();

    let error = NodeProcess::spawn(&order(folder.path()), &NodeConfig { http: http.clone(), ..config(1) });

    let Err(SpawnError::Ended { status, log, .. }) = error else { panic!("{error:?}") };
    assert_eq!(status.code(), Some(i32::from(exit::ADDRESS)));
    assert!(log.contains(&http) && log.contains("choose a free port"), "{log}");
}

#[test]
fn addresses_in_use_have_their_own_exit_code() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let listen = format!("/ip4/127.0.0.1/tcp/{port}");
    let http = format!("127.0.0.1:{port}");
    for (flag, address) in [("--listen", &listen), ("--http", &http)] {
        let (code, error) = fails(&["--site", "1", "--grid", "2,8", flag, address]);
        assert_eq!(code, exit::ADDRESS, "{error}");
        assert!(error.contains(address.as_str()) && error.contains("choose a free port"), "{error}");
    }
}

#[test]
fn wrong_input_and_wrong_usage_have_theirs() {
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("key");
    std::fs::write(&key, "no key").unwrap();
    let key = key.to_str().unwrap();
    let cases: [(&[&str], u8, &str); 4] = [
        (&["--site", "3", "--grid", "2,8"], exit::USAGE, "sites 1 to 2"),
        (&["--site", "1", "--grid", "2,8", "--identity-file", key], exit::INPUT, "name another file"),
        (&["--site", "1", "--grid", "2,8", "--peer", "2=/ip4/x"], exit::INPUT, "peer"),
        (&["--site", "one"], exit::USAGE, "invalid value"),
    ];
    for (args, code, expected) in cases {
        let (got, error) = fails(args);
        assert_eq!(got, code, "{error}");
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_closed_stdin_ends_a_node_that_must_not_outlive_its_parent() {
    let (mut child, _) = start(&["--site", "1", "--grid", "2,8", "--die-with-parent"]);
    drop(child.stdin.take());
    assert_eq!(ended(&mut child).code(), Some(i32::from(exit::DONE)));
}

#[test]
fn a_node_dies_with_its_parent() {
    // The parent is a shell that starts the node, tells its id, and is killed; stdin stays open in the grandparent.
    let script = format!("{PROGRAM} --site 1 --grid 2,8 --die-with-parent <&3 & echo $!; wait");
    let mut shell = Command::new("sh")
        .args(["-c", &format!("exec 3<&0; {script}")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(shell.stdout.take().unwrap()).lines();
    // The node may be up before the shell says which it is.
    let lines: Vec<String> = lines.take(2).map(Result::unwrap).collect();
    let node: u32 = lines.iter().find_map(|line| line.parse().ok()).unwrap();
    assert!(lines.iter().any(|line| serde_json::from_str::<ReadyLine>(line).is_ok()), "{lines:?}");

    shell.kill().unwrap();
    shell.wait().unwrap();

    let deadline = Instant::now() + PATIENCE;
    // A zombie has ended, too: it waits for whoever inherited it.
    let alive = |id: u32| {
        std::fs::read_to_string(format!("/proc/{id}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
    };
    while alive(node) {
        assert!(Instant::now() < deadline, "node {node} outlives its parent");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn sigterm_is_a_proper_end() {
    let (mut child, _) = start(&["--site", "1", "--grid", "2,8"]);
    let kill = Command::new("kill").arg(child.id().to_string()).status().unwrap();
    assert!(kill.success());
    let status = ended(&mut child);
    assert_eq!((status.code(), status.signal()), (Some(i32::from(exit::DONE)), None));
}

#[test]
fn an_identity_in_a_file_is_the_same_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("key");
    let args = ["--site", "1", "--grid", "2", "--identity-file", key.to_str().unwrap(), "--die-with-parent"];
    let ids: Vec<String> = (0..2)
        .map(|_| {
            let (mut child, ready) = start(&args);
            drop(child.stdin.take());
            ended(&mut child);
            ready.peer_id
        })
        .collect();
    assert_eq!(ids[0], ids[1]);
}

fn config(site: u32) -> NodeConfig {
    NodeConfig::new(SiteId(site), vec![SiteEntry::new("one", 2), SiteEntry::new("two", 8)])
}

/// A job as wide as the smaller site; six of them at once are too many for it.
fn job(id: u64) -> TimedJob {
    let spec = JobSpec {
        id: JobId(id),
        submit: Time::from_secs(1),
        processors: 2,
        requested: Span::from_secs(60),
        labels: Labels::UNKNOWN,
        origin: SiteId(1),
        payload: 0,
    };
    TimedJob { spec, run_time: Span::from_secs(20) }
}

fn order(folder: &Path) -> SpawnOrder {
    SpawnOrder { program: PROGRAM.into(), arguments: Vec::new(), folder: folder.to_path_buf() }
}

/// Starts the executable and reads its ready line.
fn start(args: &[&str]) -> (Child, ReadyLine) {
    let mut child = Command::new(PROGRAM)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let ready = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line:?}: {error}"));
    (child, ready)
}

fn ended(child: &mut Child) -> std::process::ExitStatus {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if Instant::now() >= deadline {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("the node does not end");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Runs the executable to its failure: exit code and what it wrote to stderr. Nothing goes to stdout.
fn fails(args: &[&str]) -> (u8, String) {
    let mut child = Command::new(PROGRAM)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let status = ended(&mut child);
    let (mut stdout, mut stderr) = (String::new(), String::new());
    child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert_eq!(stdout, "");
    (status.code().unwrap() as u8, stderr)
}
