//! Nodes that nobody here started: they ask the coordinator which site they are, run its experiment, and are the same
//! site again when they restart.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::PROGRAM;
use crate::processes::{read, table};

const PATIENCE: Duration = Duration::from_secs(120);

/// Three sites, and a job of 40 to 100 s every 8 s.
const EXPERIMENT: &str = r#"
name = "registered"
grid.sizes = [4, 8, 16]
workload.trace = "jobs.swf"
network.delay = "2s"
run.calibration_tolerance = 1000.0
run.clock = "scaled:100"
"#;

/// Wants to be stopped, if it has not ended, when the test does.
struct Process(Child);

impl Process {
    fn wait(&mut self) -> ExitStatus {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.0.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < deadline, "it does not end");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

struct Coordinator {
    process: Process,
    address: String,
    stderr: std::thread::JoinHandle<String>,
    folder: PathBuf,
}

impl Coordinator {
    fn start(folder: &Path, experiment: &str, jobs: usize, more: &[&str]) -> Coordinator {
        Coordinator::start_at("127.0.0.1:0", folder, experiment, jobs, more)
    }

    fn start_at(address: &str, folder: &Path, experiment: &str, jobs: usize, more: &[&str]) -> Coordinator {
        let mut text = String::new();
        for job in 1..=jobs {
            let (processors, run_time) = (1 + job % 4, 40 + job * 7 % 60);
            writeln!(
                text,
                "{job} {} -1 {run_time} {processors} -1 -1 {processors} 200 -1 1 1 1 1 1 -1 -1 -1",
                job * 8
            )
            .unwrap();
        }
        std::fs::write(folder.join("jobs.swf"), text).unwrap();
        std::fs::write(folder.join("experiment.toml"), experiment).unwrap();
        let mut child = Command::new(PROGRAM)
            .args(["run", "experiment.toml", "--nodes", "register", "--serve", address])
            .args(["--keys", "keys", "--out", "out"])
            .args(more)
            .current_dir(folder)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap());
        let (mut said, mut address) = (String::new(), None);
        while address.is_none() {
            let mut line = String::new();
            assert!(lines.read_line(&mut line).unwrap() > 0, "it ended: {said}");
            address =
                line.trim_end().strip_prefix("note: waiting for nodes to register at ").map(str::to_string);
            said.push_str(&line);
        }
        let stderr = std::thread::spawn(move || {
            lines.read_to_string(&mut said).unwrap();
            said
        });
        Coordinator {
            process: Process(child),
            address: address.unwrap(),
            stderr,
            folder: folder.to_path_buf(),
        }
    }

    fn node(&self, instance: &str, more: &[&str]) -> Process {
        self.node_with("keys/control.token", instance, more)
    }

    fn node_with(&self, token: &str, instance: &str, more: &[&str]) -> Process {
        let child = Command::new(PROGRAM)
            .args(["node", "--register", &format!("http://{}", self.address), "--instance", instance])
            .args(["--grid-key", "keys/grid.key", "--control-token", token])
            .args(more)
            .current_dir(&self.folder)
            .stdout(Stdio::null())
            .stderr(std::fs::OpenOptions::new().create(true).append(true).open(self.log(instance)).unwrap())
            .spawn()
            .unwrap();
        Process(child)
    }

    fn log(&self, instance: &str) -> PathBuf {
        self.folder.join(format!("{instance}.log"))
    }

    fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nhost: here\r\nconnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// Its exit code, and what it said.
    fn end(mut self) -> (Option<i32>, String) {
        let code = self.process.wait().code();
        (code, self.stderr.join().unwrap())
    }

    fn manifest(folder: &Path) -> serde_json::Value {
        serde_json::from_str(&read(&folder.join("out/manifest.json"))).unwrap()
    }
}

/// Every job of so many has ended.
fn assert_all_ended(folder: &Path, count: usize) {
    let jobs = read(&folder.join("out/jobs.csv"));
    let (columns, rows) = table(&jobs);
    let state = columns.iter().position(|column| *column == "final_state").unwrap();
    assert_eq!(rows.len(), count);
    assert!(rows.iter().all(|row| row[state] == "COMPLETED_SUCCESSFULLY"), "{jobs}");
}

#[test]
fn nodes_that_come_by_themselves_run_an_experiment() {
    let folder = tempfile::tempdir().unwrap();
    let coordinator = Coordinator::start(folder.path(), EXPERIMENT, 60, &["--ensemble", "0"]);
    assert!(coordinator.get("/healthz").ends_with("ok\n"));
    let mut nodes = [
        coordinator.node("a", &[]),
        coordinator.node("b", &["--processors", "16"]),
        coordinator.node("c", &["--name", "site1"]),
    ];
    let deadline = Instant::now() + PATIENCE;
    let targets = loop {
        let answer = coordinator.get("/sd");
        let targets: serde_json::Value = serde_json::from_str(answer.rsplit("\r\n").next().unwrap()).unwrap();
        if targets.as_array().unwrap().len() == 3 {
            break targets;
        }
        assert!(Instant::now() < deadline, "no node is up");
        std::thread::sleep(Duration::from_millis(50));
    };
    assert_eq!(targets[2]["labels"]["site"], "site3");
    let metrics = targets[2]["targets"][0].as_str().unwrap();
    let mut stream = TcpStream::connect(metrics).unwrap();
    write!(stream, "GET /metrics HTTP/1.1\r\nhost: here\r\nconnection: close\r\n\r\n").unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    assert!(page.contains("stealgrid_processors 16") || page.contains("stealgrid_processors{"), "{page}");

    let (code, said) = coordinator.end();

    assert_eq!(code, Some(0), "{said}");
    assert_all_ended(folder.path(), 60);
    for node in &mut nodes {
        assert_eq!(node.wait().code(), Some(0));
    }
    let of = |instance: &str| std::fs::read_to_string(folder.path().join(format!("{instance}.log"))).unwrap();
    assert!(of("c").contains("site=1") && of("b").contains("site=3"), "{}{}", of("b"), of("c"));
}

/// The third asks to be a site, and never is: the run waits for it, and Prometheus does not.
#[test]
fn prometheus_is_told_of_each_node_as_soon_as_it_is_up() {
    let folder = tempfile::tempdir().unwrap();
    let coordinator = Coordinator::start(folder.path(), EXPERIMENT, 10, &[]);
    let _nodes = [coordinator.node("a", &[]), coordinator.node("b", &[])];
    let token = read(&folder.path().join("keys/control.token"));
    let version = env!("CARGO_PKG_VERSION");
    let body = format!(
        r#"{{"instance":"c","process":7,"version":"{version}","name":null,"processors":null,"journal":false}}"#
    );
    let ask = || {
        let mut stream = TcpStream::connect(&coordinator.address).unwrap();
        write!(
            stream,
            "POST /register HTTP/1.1\r\nhost: here\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n\
             content-length: {}\r\nconnection: close\r\n\r\n{body}",
            token.trim(),
            body.len()
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    };
    let deadline = Instant::now() + PATIENCE;
    loop {
        ask();
        let answer = coordinator.get("/sd");
        let targets: serde_json::Value = serde_json::from_str(answer.rsplit("\r\n").next().unwrap()).unwrap();
        let sites: Vec<&str> = targets
            .as_array()
            .unwrap()
            .iter()
            .map(|target| target["labels"]["site"].as_str().unwrap())
            .collect();
        if sites == ["site1", "site2"] {
            break;
        }
        assert!(Instant::now() < deadline, "nobody is told of them: {targets}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_node_that_begins_again_is_the_same_site_and_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let experiment = format!("{EXPERIMENT}node.journal = \"process\"\n");
    let coordinator = Coordinator::start(folder.path(), &experiment, 150, &["--ensemble", "0"]);
    let _others = [coordinator.node("a", &["--data-dir", "a"]), coordinator.node("c", &["--data-dir", "c"])];
    let mut victim = coordinator.node("b", &["--data-dir", "b"]);
    let deadline = Instant::now() + PATIENCE;
    let log = coordinator.log("b");
    while !std::fs::read_to_string(&log).unwrap().contains("start is ordered") {
        assert!(Instant::now() < deadline, "the run does not begin");
        std::thread::sleep(Duration::from_millis(50));
    }
    // The start is ahead by some hundred milliseconds.
    let begun = || {
        let page = coordinator.get("/metrics");
        page.lines().any(|line| {
            line.starts_with("stealgrid_run_jobs{") && line.contains("running") && !line.ends_with(" 0")
        })
    };
    while !begun() {
        assert!(Instant::now() < deadline, "no job begins: {}", coordinator.get("/metrics"));
        std::thread::sleep(Duration::from_millis(50));
    }
    victim.0.kill().unwrap();
    victim.wait();
    let mut again = coordinator.node("b", &["--data-dir", "b"]);

    let (code, said) = coordinator.end();

    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("node site2 has ended and was started again"), "{said}");
    assert_all_ended(folder.path(), 150);
    assert_eq!(again.wait().code(), Some(0));
}

/// The coordinator is killed, and what it leaves is no run that anybody can go on with.
#[test]
fn nobody_attaches_to_nodes_that_registered() {
    let folder = tempfile::tempdir().unwrap();
    let experiment = format!("{EXPERIMENT}node.journal = \"process\"\n");
    let mut coordinator = Coordinator::start(folder.path(), &experiment, 150, &["--ensemble", "0"]);
    let _nodes = ["a", "b", "c"].map(|name| coordinator.node(name, &["--data-dir", name]));
    let deadline = Instant::now() + PATIENCE;
    let log = coordinator.log("b");
    while !std::fs::read_to_string(&log).unwrap().contains("start is ordered") {
        assert!(Instant::now() < deadline, "the run does not begin");
        std::thread::sleep(Duration::from_millis(50));
    }
    coordinator.process.0.kill().unwrap();
    coordinator.process.wait();

    let output = Command::new(PROGRAM).args(["attach", "out"]).current_dir(folder.path()).output().unwrap();

    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("nobody can attach to those") && said.contains("--nodes register"), "{said}");
}

/// An address that no other test uses, so that two coordinators can have it one after the other.
fn free_address() -> String {
    let free = TcpListener::bind("127.0.0.8:0").or_else(|_| TcpListener::bind("127.0.0.1:0"));
    free.unwrap().local_addr().unwrap().to_string()
}

/// Starts a run at this address, and kills its coordinator when the clocks of the nodes run.
fn killed_coordinator(address: &str, folder: &Path, experiment: &str, nodes: &[&[&str]; 3]) -> [Process; 3] {
    let mut first = Coordinator::start_at(address, folder, experiment, 150, &["--ensemble", "0"]);
    let names = ["a", "b", "c"];
    let nodes = std::array::from_fn(|place| first.node(names[place], nodes[place]));
    let deadline = Instant::now() + PATIENCE;
    for name in names {
        while !std::fs::read_to_string(first.log(name)).unwrap().contains("start is ordered") {
            assert!(Instant::now() < deadline, "the run does not begin");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
    first.process.0.kill().unwrap();
    first.process.wait();
    nodes
}

/// They have jobs that wait and jobs that execute, and nobody can go on with their run.
#[test]
fn nodes_of_a_coordinator_that_was_killed_are_sites_of_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let address = free_address();
    let mut nodes = killed_coordinator(&address, folder.path(), EXPERIMENT, &[&[]; 3]);

    let second = Coordinator::start_at(&address, folder.path(), EXPERIMENT, 40, &["--ensemble", "0"]);
    let (code, said) = second.end();

    assert_eq!(code, Some(0), "{said}");
    assert_all_ended(folder.path(), 40);
    nodes.iter_mut().for_each(|node| assert_eq!(node.wait().code(), Some(0)));
    let log = read(&folder.path().join("a.log"));
    assert!(log.contains("another coordinator is there"), "{log}");
}

/// The next coordinator has others, at other places.
#[test]
fn nodes_with_journals_belong_to_their_run_when_another_coordinator_comes() {
    let folder = tempfile::tempdir().unwrap();
    let address = free_address();
    let experiment = format!("{EXPERIMENT}run.connect_timeout = \"20s\"\n");
    let journals = format!("{experiment}node.journal = \"process\"\n");
    let data: [&[&str]; 3] = [&["--data-dir", "a"], &["--data-dir", "b"], &["--data-dir", "c"]];
    let mut nodes = killed_coordinator(&address, folder.path(), &journals, &data);

    let second = Coordinator::start_at(&address, folder.path(), &experiment, 40, &[]);
    let (code, said) = second.end();

    assert_eq!(code, Some(4), "{said}");
    assert!(said.contains("0 of 3 sites have registered within 20s"), "{said}");
    nodes.iter_mut().for_each(|node| assert!(node.0.try_wait().unwrap().is_none(), "it works on"));
}

#[test]
fn a_crash_is_ordered_and_the_site_kept_away_until_its_time() {
    let folder = tempfile::tempdir().unwrap();
    let experiment = format!(
        "{EXPERIMENT}node.journal = \"process\"\n[[faults]]\nsite = \"site3\"\nwhat = \"crash\"\nat = \"300s\"\nfor = \"200s\"\n"
    );
    let coordinator = Coordinator::start(folder.path(), &experiment, 100, &[]);
    let _others = [coordinator.node("a", &["--data-dir", "a"]), coordinator.node("b", &["--data-dir", "b"])];
    // As a container that is restarted, at the same address, whenever it ends and does not say that it is done.
    // Where the system has an address that no other test uses, nobody takes its port meanwhile.
    let free = TcpListener::bind("127.0.0.7:0").or_else(|_| TcpListener::bind("127.0.0.1:0"));
    let free = free.unwrap().local_addr().unwrap().to_string();
    let mut victim = coordinator.node("c", &["--data-dir", "c", "--http", &free]);
    assert!(!victim.wait().success(), "it was told to crash");
    let mut again = coordinator.node("c", &["--data-dir", "c", "--http", &free]);

    let (code, said) = coordinator.end();

    assert_eq!(code, Some(0), "{said}");
    assert_all_ended(folder.path(), 100);
    assert_eq!(again.wait().code(), Some(0));
    let kept = std::fs::read_to_string(folder.path().join("c.log")).unwrap();
    assert!(kept.contains("this site is away by order"), "{kept}");
}

#[test]
fn more_nodes_than_sites_repeat_the_sizes() {
    let folder = tempfile::tempdir().unwrap();
    let coordinator =
        Coordinator::start(folder.path(), EXPERIMENT, 40, &["--register-sites", "5", "--ensemble", "0"]);
    let mut nodes: Vec<Process> =
        ["n1", "n2", "n3", "n10", "n9"].iter().map(|name| coordinator.node(name, &[])).collect();

    let (code, said) = coordinator.end();

    assert_eq!(code, Some(0), "{said}");
    assert_all_ended(folder.path(), 40);
    nodes.iter_mut().for_each(|node| assert_eq!(node.wait().code(), Some(0)));
    let manifest = Coordinator::manifest(folder.path());
    let text = manifest.to_string();
    assert!(text.contains("site5"), "{text}");
    // By the names of the instances, numbers as numbers: n10 is the last.
    let last = std::fs::read_to_string(folder.path().join("n10.log")).unwrap();
    assert!(last.contains("site=5"), "{last}");
}

#[test]
fn who_is_missing_and_who_may_not_come_is_said() {
    let folder = tempfile::tempdir().unwrap();
    // Two processes begin within it, one after the other.
    let experiment = format!("{EXPERIMENT}run.connect_timeout = \"20s\"\n");
    let coordinator = Coordinator::start(folder.path(), &experiment, 10, &[]);
    std::fs::write(folder.path().join("wrong"), "0123456789012345678901234567890123456789\n").unwrap();
    let mut stranger = coordinator.node_with("wrong", "stranger", &[]);
    assert_eq!(stranger.wait().code(), Some(12));
    let why = std::fs::read_to_string(coordinator.log("stranger")).unwrap();
    assert!(why.contains("the coordinator refused: the token is not that"), "{why}");
    let _alone = coordinator.node("alone", &[]);

    let (code, said) = coordinator.end();

    assert_eq!(code, Some(4), "{said}");
    assert!(said.contains("1 of 3 sites have registered within 20s (alone)"), "{said}");
}
