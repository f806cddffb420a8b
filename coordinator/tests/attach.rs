//! A coordinator that is killed, and `stealgrid attach` after it: the run is complete, and nothing is left behind.
//!
//! Every test starts its own processes and waits for their end. Nothing depends on how fast they are, but for a
//! patience that only a failing test exhausts.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use node::control::api::Status;
use node::running::Running;
use rustix::process::Signal;

use crate::PROGRAM;
use crate::processes::{Run, pid, read, signal, table};

const JOBS: usize = 150;
/// Ample for what takes seconds.
const PATIENCE: Duration = Duration::from_secs(60);

/// A run with journals of about seven seconds. What is left of it is ended when dropped.
struct Grid {
    folder: tempfile::TempDir,
}

impl Drop for Grid {
    fn drop(&mut self) {
        operation::fleet::end_all(&self.nodes());
    }
}

impl Grid {
    fn new(orphan_patience: &str) -> Grid {
        Grid::with(orphan_patience, "")
    }

    /// The same with more in its experiment. It lasts some 10 s: what is done to coordinators meanwhile takes a second
    /// or two, and may take three times as long.
    fn with(orphan_patience: &str, more: &str) -> Grid {
        let grid = Grid { folder: tempfile::tempdir().unwrap() };
        std::fs::write(grid.trace(), jobs()).unwrap();
        let text = format!(
            "grid.sizes = [4, 8, 16]\nworkload.trace = \"jobs.swf\"\nnetwork.delay = \"1s\"\n\
             run.clock = \"scaled:20\"\n[node]\njournal = \"process\"\norphan_patience = \"{orphan_patience}\"\n{more}"
        );
        std::fs::write(grid.experiment(), text).unwrap();
        grid
    }

    /// Starts the run, and returns when some jobs have ended.
    fn started(orphan_patience: &str) -> (Grid, Run) {
        let grid = Grid::new(orphan_patience);
        let mut run = grid.run();
        run.wait_for_nodes(3, |nodes| nodes.iter().any(|node| node.completed > 0));
        (grid, run)
    }

    fn run(&self) -> Run {
        self.run_with(&[])
    }

    fn run_with(&self, args: &[&str]) -> Run {
        let mut command = Command::new(PROGRAM);
        // Whether the makespan is one that simulations have is not the question here.
        command.arg("run").arg(self.experiment());
        command.args(["--ensemble", "0", "--calibration-tolerance", "1000"]).args(args);
        Run::of(command, self.folder.path())
    }

    fn attach(&self, args: &[&str]) -> Run {
        let mut command = Command::new(PROGRAM);
        command.arg("attach").arg(self.out()).args(args);
        Run::without_out(command, self.folder.path())
    }

    /// Attaches in vain; what was said.
    fn refused(&self) -> String {
        let (status, output) = self.attach(&[]).wait();
        assert_eq!(status.code(), Some(3), "{output}");
        output
    }

    fn out(&self) -> PathBuf {
        self.folder.path().join("out")
    }

    fn nodes(&self) -> PathBuf {
        self.out().join("nodes")
    }

    fn experiment(&self) -> PathBuf {
        self.folder.path().join("experiment.toml")
    }

    fn trace(&self) -> PathBuf {
        self.folder.path().join("jobs.swf")
    }

    /// Kills the coordinator; the nodes work on.
    fn kill(&self, run: Run) -> Vec<Running> {
        signal(run.id(), Signal::KILL);
        run.wait();
        let nodes = Running::all_in(&self.nodes());
        assert_eq!(nodes.len(), 3, "{nodes:?}");
        nodes
    }

    /// Kills the coordinator when it has said this, and then noted of a site that it is among these (`down`, `paused`,
    /// `leaving`), or gone for good; what it said.
    fn kill_when(&self, run: Run, words: &str, list: &str, site: u64) -> String {
        let noted = || {
            // It is replaced by another file, and never half written.
            let record: serde_json::Value =
                serde_json::from_str(&read(&self.out().join("run.json"))).unwrap();
            let past = |list: &str| record["past"][list].as_array().unwrap().clone();
            past(list).iter().any(|noted| *noted == site)
                || past("parted").iter().any(|gone| gone["site"] == site)
        };
        let deadline = Instant::now() + PATIENCE;
        while !(run.output().contains(words) && noted()) {
            assert!(Instant::now() < deadline, "{}", run.output());
            std::thread::sleep(Duration::from_millis(10));
        }
        signal(run.id(), Signal::KILL);
        run.wait().1
    }

    /// Every job ended well, and nothing that was planned was left out; what the manifest says.
    fn assert_complete_with_faults(&self) -> String {
        let jobs = read(&self.out().join("jobs.csv"));
        assert_eq!(jobs.matches("COMPLETED_SUCCESSFULLY").count(), JOBS, "{jobs}");
        let metrics: serde_json::Value =
            serde_json::from_str(&read(&self.out().join("metrics.json"))).unwrap();
        assert_eq!(metrics["faults"]["never_happened"], serde_json::json!([]));
        self.assert_complete()
    }

    /// Waits until the clocks of all nodes that are there are past this, in seconds.
    fn wait_for_trace_time(&self, seconds: i64) {
        let deadline = Instant::now() + PATIENCE;
        let past = |node: &Status| node.trace_time_us > seconds * 1_000_000;
        while !crate::processes::statuses(&self.nodes()).is_some_and(|nodes| nodes.iter().all(past)) {
            assert!(Instant::now() < deadline, "{:?}", crate::processes::statuses(&self.nodes()));
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits until no node of the run is left.
    fn wait_for_end(&self) {
        let deadline = Instant::now() + PATIENCE;
        while !Running::all_in(&self.nodes()).is_empty() {
            assert!(Instant::now() < deadline, "{:?}", Running::all_in(&self.nodes()));
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Every job ended once, the results are whole, and neither a process nor a secret is left.
    fn assert_complete(&self) -> String {
        let jobs = read(&self.out().join("jobs.csv"));
        let (columns, rows) = table(&jobs);
        let id = columns.iter().position(|column| *column == "job_id").unwrap();
        let ids: BTreeSet<&str> = rows.iter().map(|row| row[id]).collect();
        assert_eq!((rows.len(), ids.len()), (JOBS, JOBS));
        for file in
            ["metrics.json", "events.jsonl.zst", "report.html", "links.csv", "calibration.csv", "steals.csv"]
        {
            assert!(self.out().join(file).exists(), "{file} is missing");
        }
        self.assert_nothing_is_left();
        let manifest = read(&self.out().join("manifest.json"));
        assert!(manifest.contains("\"complete\"") && manifest.contains("stealgrid run"), "{manifest}");
        manifest
    }

    fn assert_nothing_is_left(&self) {
        assert!(!self.out().join("run.json").exists(), "the run has ended");
        self.assert_no_node_and_no_secret();
    }

    fn assert_no_node_and_no_secret(&self) {
        assert_eq!(Running::all_in(&self.nodes()), []);
        for file in ["nodes/grid.key", "nodes/control.token"] {
            assert!(!self.out().join(file).exists(), "{file} is left behind");
        }
    }
}

#[test]
fn a_run_whose_coordinator_is_killed_is_completed_by_another() {
    let (grid, run) = Grid::started("60s");
    let nodes = grid.kill(run);
    // Edits of the experiment file do not matter.
    std::fs::write(grid.experiment(), "grid.sizes = [1]").unwrap();

    let attached = grid.attach(&[]);
    let (status, output) = attached.wait();

    assert_eq!(status.code(), Some(0), "{output}");
    let manifest = grid.assert_complete();
    assert!(manifest.contains("another was attached: once"), "{manifest}");
    assert!(!output.contains("started again"), "{output}");
    assert!(nodes.iter().all(|node| !node.process.is_alive()));
    assert!(grid.refused().contains("its run has ended"));
}

#[test]
fn the_page_is_served_again_where_the_run_had_it() {
    let grid = Grid::new("60s");
    // An address that no other test uses.
    let free = TcpListener::bind("127.0.0.9:0").or_else(|_| TcpListener::bind("127.0.0.1:0"));
    let address = free.unwrap().local_addr().unwrap().to_string();
    let mut run = grid.run_with(&["--serve", &address]);
    run.wait_for_nodes(3, |nodes| nodes.iter().any(|node| node.completed > 0));
    grid.kill(run);

    let attached = grid.attach(&[]);

    let get = |path: &str| -> Option<String> {
        let mut stream = TcpStream::connect(&address).ok()?;
        write!(stream, "GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        Some(answer)
    };
    let deadline = Instant::now() + PATIENCE;
    while get("/sd").is_none_or(|targets| targets.matches("\"site\"").count() != 3) {
        assert!(Instant::now() < deadline, "{:?} {}", get("/sd"), attached.output());
        std::thread::sleep(Duration::from_millis(20));
    }
    // Nobody has a token for orders.
    let about = get("/about").unwrap();
    assert!(about.contains("\"orders\":false") && about.contains("site3"), "{about}");
    // What the other coordinator had seen is told again.
    let ended = || {
        let page = get("/metrics")?;
        let line = page
            .lines()
            .find(|line| line.starts_with("stealgrid_run_jobs{") && line.contains("\"ended\""))?;
        line.rsplit(' ').next()?.parse::<f64>().ok()
    };
    while !ended().is_some_and(|jobs| jobs > 0.0) {
        assert!(Instant::now() < deadline, "{:?} {}", get("/metrics"), attached.output());
        std::thread::sleep(Duration::from_millis(20));
    }
    let (status, output) = attached.wait();
    assert!(status.success(), "{output}");
}

#[test]
fn a_coordinator_that_is_killed_twice_and_with_a_node_changes_no_result() {
    let (grid, run) = Grid::started("60s");
    // The system continues stopped orphans, with a hangup that must not end them.
    let stopped = Running::all_in(&grid.nodes())[2].process.id;
    signal(stopped, Signal::STOP);
    let nodes = grid.kill(run);
    signal(nodes[1].process.id, Signal::KILL);
    // Not if it was still about to stop at that instant.
    signal(stopped, Signal::CONT);

    let mut second = grid.attach(&[]);
    second.wait_for_logs(&["site2"], "goes on with its journal");
    // It is a coordinator of the run once it has said so in the record.
    let record = grid.nodes().parent().unwrap().join("run.json");
    let deadline = Instant::now() + PATIENCE;
    while !read(&record).contains("\"attached\": 1") {
        assert!(Instant::now() < deadline, "{}", second.output());
        std::thread::sleep(Duration::from_millis(10));
    }
    grid.kill(second);

    let (status, output) = grid.attach(&[]).wait();
    assert_eq!(status.code(), Some(0), "{output}");
    let manifest = grid.assert_complete();
    assert!(manifest.contains("another was attached: 2 times"), "{manifest}");
}

/// A failure detector, with a lease of 10 s of the wall clock.
const LEASE: &str = "[protocol]\nheartbeat = \"10s\"\nsuspect_after = \"90s\"\nlease = \"200s\"\n";

/// The coordinator is killed while a site is down, and once more before the lease of a dead site is over; in between that
/// site should have been killed.
#[test]
fn what_is_done_about_sites_is_gone_on_with_and_what_came_due_meanwhile_is_done_late() {
    let faults = "[[faults]]\nsite = \"site2\"\nwhat = \"crash\"\nat = \"60s\"\nfor = \"200s\"\n\
                  [[faults]]\nsite = \"site1\"\nwhat = \"crash\"\nat = \"120s\"\n";
    let grid = Grid::with("60s", &format!("{LEASE}{faults}"));
    grid.kill_when(grid.run(), "node site2 is killed at 60 s", "down", 2);
    assert_eq!(Running::all_in(&grid.nodes()).len(), 2);
    // There is no coordinator when site 1 should be killed.
    grid.wait_for_trace_time(125);

    let second = grid.kill_when(grid.attach(&[]), "node site1 is killed at 120 s, for good", "parted", 1);

    assert!(!second.contains("site2 had ended"), "it begins when it should: {second}");
    let (status, output) = grid.attach(&[]).wait();
    assert_eq!(status.code(), Some(0), "{output}");
    assert!(output.contains("jobs of sites that are gone for good"), "{output}");
    assert!(!output.contains("site1 had ended"), "it never comes back: {output}");
    let manifest = grid.assert_complete_with_faults();
    assert!(manifest.contains("no coordinator at 120 s, when site1 was to be killed for good"), "{manifest}");
    let metrics: serde_json::Value = serde_json::from_str(&read(&grid.out().join("metrics.json"))).unwrap();
    let faults = &metrics["faults"];
    assert_eq!((&faults["silent_sites"], &faults["crashes"]), (&1.into(), &1.into()), "{faults:#}");
    // An execution beside another is found by the audit and ends with another code; what may have been one is named.
    let listed = read(&grid.out().join("faults.csv")).lines().count();
    assert!(listed as u64 > faults["may_have_run_twice"].as_u64().unwrap(), "{faults:#}");
}

/// The same with a site that stands still, which goes on when its coordinator ends, and one that joins and leaves.
#[test]
fn sites_join_stand_still_and_leave_under_several_coordinators() {
    let faults = "[[faults]]\nsite = \"site2\"\nwhat = \"join\"\nat = \"90s\"\n\
                  [[faults]]\nsite = \"site3\"\nwhat = \"pause\"\nat = \"60s\"\nfor = \"600s\"\n\
                  [[faults]]\nsite = \"site2\"\nwhat = \"leave\"\nat = \"200s\"\n";
    let grid = Grid::with("60s", &format!("{LEASE}{faults}"));
    grid.kill_when(grid.run(), "node site3 stands still at 60 s", "paused", 3);
    grid.kill_when(grid.attach(&[]), "site site2 leaves at 200 s", "leaving", 2);

    let (status, output) = grid.attach(&[]).wait();

    assert_eq!(status.code(), Some(0), "{output}");
    let manifest = grid.assert_complete_with_faults();
    assert!(manifest.contains("site3 was to be let go on at 660 s"), "{manifest}");
    let metrics: serde_json::Value = serde_json::from_str(&read(&grid.out().join("metrics.json"))).unwrap();
    for (what, times) in [("joined", 1), ("pauses", 1), ("have_left", 1), ("crashes", 0)] {
        assert_eq!(metrics["faults"][what], times, "{what}: {:#}", metrics["faults"]);
    }
}

/// A coordinator that is killed between doing something and noting it: whoever attaches does it once more.
#[test]
fn what_was_done_to_sites_and_not_noted_is_done_again_and_changes_no_result() {
    let faults = "[[faults]]\nsite = \"site2\"\nwhat = \"join\"\nat = \"60s\"\n\
                  [[faults]]\nsite = \"site3\"\nwhat = \"crash\"\nat = \"120s\"\nfor = \"60s\"\n";
    let grid = Grid::with("60s", &format!("{LEASE}{faults}"));
    let run = grid.run();
    let record = grid.out().join("run.json");
    let deadline = Instant::now() + PATIENCE;
    let before = loop {
        if let Ok(before) = std::fs::read(&record) {
            break before;
        }
        assert!(Instant::now() < deadline, "{}", run.output());
        std::thread::sleep(Duration::from_millis(5));
    };
    grid.kill_when(run, "node site3 is killed at 120 s", "down", 3);
    std::fs::write(&record, before).unwrap();

    let (status, output) = grid.attach(&[]).wait();

    assert_eq!(status.code(), Some(0), "{output}");
    let manifest = grid.assert_complete_with_faults();
    assert!(manifest.contains("no coordinator at 120 s, when site3 was to be killed"), "{manifest}");
    let metrics: serde_json::Value = serde_json::from_str(&read(&grid.out().join("metrics.json"))).unwrap();
    assert_eq!(metrics["faults"]["joined"], 1, "{:#}", metrics["faults"]);
}

#[test]
fn orphans_end_by_themselves_and_their_journals_are_enough() {
    // Longer than their coordinator may stand still while it is there.
    let (grid, run) = Grid::started("3s");
    grid.kill(run);
    grid.wait_for_end();
    for site in ["site1", "site2", "site3"] {
        let log = read(&grid.nodes().join(format!("{site}.log")));
        assert!(log.contains("no coordinator has asked anything for too long"), "{log}");
    }

    let (status, output) = grid.attach(&[]).wait();

    assert_eq!(status.code(), Some(0), "{output}");
    assert!(output.contains("site1, site2, site3 had ended and were started again"), "{output}");
    grid.assert_complete();
}

#[test]
fn what_cannot_be_attached_to_is_refused_with_the_remedy() {
    let nothing = tempfile::tempdir().unwrap();
    let (status, output) = {
        let mut command = Command::new(PROGRAM);
        command.arg("attach").arg(nothing.path());
        Run::without_out(command, nothing.path()).wait()
    };
    assert_eq!(status.code(), Some(3), "{output}");
    assert!(output.contains("holds no run to resume"), "{output}");

    let (grid, run) = Grid::started("60s");
    // The output of the run goes on in a file that the next would replace.
    assert!(grid.refused().contains("its coordinator is alive"));
    grid.kill(run);

    let (status, output) = grid.run().wait();
    assert_eq!(status.code(), Some(3), "{output}");
    assert!(output.contains("site1, site2, site3; `stealgrid attach"), "{output}");

    let log = read(&grid.trace());
    std::fs::write(grid.trace(), log.replace(" 2 -1 -1 2 ", " 3 -1 -1 3 ")).unwrap();
    assert!(grid.refused().contains("the workload log changed since its run began"));
    std::fs::write(grid.trace(), log).unwrap();
    assert_eq!(Running::all_in(&grid.nodes()).len(), 3, "a refusal ends no node");

    let (status, output) = grid.attach(&["--stop"]).wait();
    assert_eq!(status.code(), Some(4), "{output}");
    assert!(read(&grid.out().join("manifest.json")).contains("interrupted after"), "{output}");
    // With the names of columns. Nodes work on without a coordinator, and may have ended all jobs by now.
    let rows = read(&grid.out().join("jobs.csv")).lines().count();
    assert!(rows > 1 && rows <= JOBS + 1, "{rows}");
    grid.assert_no_node_and_no_secret();
    assert!(output.contains("goes on with it"), "{output}");

    // Nothing of it is lost.
    let (status, output) = grid.attach(&[]).wait();
    assert_eq!(status.code(), Some(0), "{output}");
    grid.assert_complete();
}

#[test]
fn a_run_that_is_killed_before_its_clocks_start_leaves_no_node() {
    let killed = || {
        let grid = Grid::new("60s");
        let run = grid.run();
        let deadline = Instant::now() + PATIENCE;
        // They are started one after another: with a second one there, the coordinator has read that the first is ready.
        let first = loop {
            if let [first, _, ..] = &Running::all_in(&grid.nodes())[..] {
                break first.process.clone();
            }
            assert!(Instant::now() < deadline, "{}", run.output());
            std::thread::sleep(Duration::from_millis(1));
        };
        // The last starts after it, and then the coordinator waits for the first.
        signal(first.id, Signal::STOP);
        while Running::all_in(&grid.nodes()).len() < 3 {
            assert!(Instant::now() < deadline, "{}", run.output());
            std::thread::sleep(Duration::from_millis(5));
        }
        signal(run.id(), Signal::KILL);
        run.wait();
        // The system may have done so already.
        let _ = rustix::process::kill_process(pid(first.id), Signal::CONT);
        grid
    };
    // Where this was too slow to stop a node before the clocks were started, it is done again.
    let begun = |grid: &Grid| grid.out().join("run.json").exists();
    let grid = std::iter::repeat_with(killed).take(20).find(|grid| !begun(grid)).unwrap();

    grid.wait_for_end();
    assert!(grid.refused().contains("must be started again"));
}

#[test]
fn a_failed_start_leaves_no_secret() {
    let folder = tempfile::tempdir().unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let (status, output) = Run::start(folder.path(), &["--port", &port]).wait();
    assert_eq!(status.code(), Some(3), "{output}");
    for secret in ["grid.key", "control.token"] {
        assert!(!folder.path().join("out/nodes").join(secret).exists(), "{secret} is left behind");
    }
}

/// Jobs of 20 to 40 s on one to four processors, one in two seconds: more than three sites of 28 processors can do.
fn jobs() -> String {
    let line = |job: usize| {
        let (processors, submit, run_time) = (1 + job % 4, 2 * job, 20 + job * 7 % 21);
        format!("{job} {submit} -1 {run_time} {processors} -1 -1 {processors} 60 -1 1 1 1 1 1 -1 -1 -1\n")
    };
    (1..=JOBS).map(line).collect()
}
