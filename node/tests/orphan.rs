//! A node whose coordinator goes: before its clock was started it ends, afterwards it works on for its patience, and
//! forgets nothing that another coordinator wants to know.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use node::config::SiteEntry;
use node::control::Token;
use node::control::api::ReadyLine;
use node::running::Running;
use node::{NodeConfig, exit};
use operation::fleet::{Fleet, end_all, start_order};
use operation::spawn::SpawnOrder;
use operation::{NodeClient, NodeProcess};
use scheduler::{EventKind, JobId, JobSpec, Labels, SiteId, Span, Time, TimedJob};

use crate::PROGRAM;

/// Ample for what takes seconds; reached only by a failing test.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn an_orphan_ends_before_its_clock_and_is_patient_afterwards() {
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    Token::random().write_new(&token).unwrap();

    let (mut child, _) = start(folder.path(), &token, "a", "1");
    drop(child.stdin.take());
    assert_eq!(ended(&mut child).code(), Some(i32::from(exit::DONE)));

    let (mut child, ready) = start(folder.path(), &token, "b", "1");
    let client = NodeClient::new(&ready.http, Some(Token::read(&token).unwrap()));
    client.start(&start_order(1.0, Time::ZERO, Duration::ZERO)).unwrap();
    drop(child.stdin.take());
    assert!(client.metrics().unwrap().contains("stealgrid_orphaned_seconds{site=\"site1\"} 0"));
    let mut most: f64 = 0.0;
    // Metrics are no orders: who reads them keeps no node from its end.
    while let Ok(page) = client.metrics() {
        most = most.max(orphaned(&page));
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(ended(&mut child).code(), Some(i32::from(exit::ORPHANED)));
    assert!(most > 0.0, "the metric shows how close the end is");
}

/// Without a patience, and before the clock is started.
#[test]
fn a_coordinator_that_falls_silent_is_seen() {
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    Token::random().write_new(&token).unwrap();
    let (mut child, ready) = start(folder.path(), &token, "a", "0");
    let client = NodeClient::new(&ready.http, Some(Token::read(&token).unwrap()));
    client.status().unwrap();
    let deadline = Instant::now() + PATIENCE;
    while orphaned(&client.metrics().unwrap()) < 1.0 {
        assert!(Instant::now() < deadline, "nobody has noticed");
        std::thread::sleep(Duration::from_millis(20));
    }
    drop(child.stdin.take());
    assert_eq!(ended(&mut child).code(), Some(i32::from(exit::DONE)));
}

fn orphaned(page: &str) -> f64 {
    let line = page.lines().find(|line| line.starts_with("stealgrid_orphaned_seconds")).unwrap();
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

#[test]
fn events_beyond_the_memory_are_told_from_the_journal() {
    let folder = tempfile::tempdir().unwrap();
    let mut fleet = Fleet::spawn_each(&order(folder.path()), &configs(folder.path(), 0)).unwrap();
    fleet.wait_ready(PATIENCE).unwrap();
    let jobs: Vec<TimedJob> = (1..=20).map(job).collect();
    fleet.feed(&jobs, |job| job.spec.origin).unwrap();
    fleet.start(100.0, Time::ZERO, Duration::from_millis(100)).unwrap();
    let deadline = Instant::now() + PATIENCE;
    while !fleet.is_finished(20).unwrap() {
        assert!(Instant::now() < deadline, "{:#?}", fleet.statuses().unwrap());
        std::thread::sleep(Duration::from_millis(20));
    }
    // Nobody has asked before, and the nodes remember four.
    let mut ended = 0;
    let count = fleet
        .take_events(&mut |event| ended += u32::from(matches!(event.kind, EventKind::Completed { .. })))
        .unwrap();
    let statuses = fleet.statuses().unwrap();
    assert_eq!(ended, 20);
    assert_eq!(count, statuses.iter().map(|status| status.events).sum::<u64>());
    assert!(statuses.iter().all(|status| status.limits_hit["events"] == 0), "none was dropped");
    fleet.stop(PATIENCE).unwrap();
}

#[test]
fn nodes_are_adopted_once_bound_and_ended_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let order = order(folder.path());
    let configs = configs(folder.path(), 60);
    let mut fleet = Fleet::spawn_each(&order, &configs).unwrap();
    fleet.wait_ready(PATIENCE).unwrap();
    fleet.start(1.0, Time::ZERO, Duration::ZERO).unwrap();
    let nodes = Running::all_in(folder.path());
    assert_eq!(fleet.process_ids().collect::<Vec<_>>(), [nodes[0].process.id, nodes[1].process.id]);
    let told = std::fs::read_to_string(folder.path().join("site1.json")).unwrap();
    let told: NodeConfig = serde_json::from_str(&told).unwrap();

    // An adopted node outlives who has not bound it.
    drop(NodeProcess::adopt(&order, &told, nodes[0].clone()).unwrap());
    assert!(nodes[0].process.is_alive());
    let mut adopted = NodeProcess::adopt(&order, &told, nodes[0].clone()).unwrap();
    assert_eq!(adopted.client().status().unwrap().site, SiteId(1));
    assert_eq!(adopted.ended().unwrap(), None);
    adopted.bind();
    drop(adopted);
    // The child of this process is a zombie now.
    assert!(!nodes[0].process.is_alive());

    end_all(folder.path());
    let deadline = Instant::now() + PATIENCE;
    while nodes[1].process.is_alive() {
        assert!(Instant::now() < deadline);
        std::thread::sleep(Duration::from_millis(5));
    }
    for secret in ["grid.key", "control.token"] {
        assert!(!folder.path().join(secret).exists(), "{secret} is left behind");
    }
}

fn start(folder: &Path, token: &Path, data: &str, patience: &str) -> (Child, ReadyLine) {
    let mut child = Command::new(PROGRAM)
        .args(["--site", "1", "--grid", "2", "--die-with-parent", "--retry", "5s"])
        .args(["--orphan-patience", patience])
        .arg("--control-token")
        .arg(token)
        .arg("--data-dir")
        .arg(folder.join(data))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    (child, serde_json::from_str(&line).unwrap())
}

fn ended(child: &mut Child) -> ExitStatus {
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

/// Two nodes with journals that remember four events.
fn configs(folder: &Path, orphan_secs: u32) -> Vec<NodeConfig> {
    let of_site = |site: u32| {
        let mut config =
            NodeConfig::new(SiteId(site), vec![SiteEntry::new("site1", 2), SiteEntry::new("site2", 4)]);
        config.options.retry = Some(Span::from_secs(50));
        config.data_dir = Some(folder.join(format!("site{site}.data")));
        config.events_max = 4;
        config.orphan_secs = orphan_secs;
        config
    };
    vec![of_site(1), of_site(2)]
}

fn job(id: u64) -> TimedJob {
    let spec = JobSpec {
        id: JobId(id),
        submit: Time::from_secs(1),
        processors: 1,
        requested: Span::from_secs(20),
        labels: Labels::UNKNOWN,
        origin: SiteId(1),
        payload: 0,
    };
    TimedJob { spec, run_time: Span::from_secs(10) }
}

fn order(folder: &Path) -> SpawnOrder {
    SpawnOrder { program: PROGRAM.into(), arguments: Vec::new(), folder: folder.to_path_buf() }
}
