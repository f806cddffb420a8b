//! Sites that join, crash, stand still, leave and die during a run, as processes and in virtual time; and a node that
//! dies without being asked to.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

mod processes;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use rustix::process::Signal;

use self::processes::{PROGRAM, Run, assert_gone, read, signal, table};

const JOBS: usize = 150;

/// A job of 40 to 100 s every 6 s, too many for the two small sites; a lease of 3.5 s of the wall clock.
const EXPERIMENT: &str = r#"
grid.sizes = [4, 4, 8, 16]
workload.trace = "jobs.swf"
network.delay = "2s"
protocol = { heartbeat = "20s", suspect_after = "150s", lease = "350s" }
run.calibration_tolerance = 1000.0
"#;

/// Site 2 joins, site 1 crashes, site 3 stands still, site 2 leaves, and site 3 dies with what it has.
const FAULTS: &str = r#"
[[faults]]
site = "site2"
what = "join"
at = "100s"
[[faults]]
site = "site1"
what = "crash"
at = "200s"
for = "60s"
[[faults]]
site = "site3"
what = "pause"
at = "350s"
for = "30s"
[[faults]]
site = "site2"
what = "leave"
at = "450s"
[[faults]]
site = "site3"
what = "crash"
at = "550s"
"#;

fn experiment(folder: &Path, more: &str) -> String {
    let mut jobs = String::new();
    for job in 1..=JOBS {
        let (processors, run_time) = (1 + job % 4, 40 + job * 7 % 60);
        writeln!(
            jobs,
            "{job} {} -1 {run_time} {processors} -1 -1 {processors} 200 -1 1 1 1 1 1 -1 -1 -1",
            job * 6
        )
        .unwrap();
    }
    std::fs::write(folder.join("jobs.swf"), jobs).unwrap();
    let path = folder.join("experiment.toml");
    std::fs::write(&path, format!("{EXPERIMENT}{more}")).unwrap();
    path.to_str().unwrap().to_string()
}

/// Every job has a row in `jobs.csv`, and it is one of a job that ended.
fn assert_all_ended(out: &Path) {
    let jobs = read(&out.join("jobs.csv"));
    let (columns, rows) = table(&jobs);
    let column = |name: &str| columns.iter().position(|column| *column == name).unwrap();
    let ids: BTreeSet<&str> = rows.iter().map(|row| row[column("job_id")]).collect();
    assert_eq!((rows.len(), ids.len()), (JOBS, JOBS));
    assert!(rows.iter().all(|row| row[column("final_state")] == "COMPLETED_SUCCESSFULLY"), "{jobs}");
    let manifest: serde_json::Value = serde_json::from_str(&read(&out.join("manifest.json"))).unwrap();
    assert_eq!(manifest["status"], "complete", "{manifest}");
}

/// What was believed of sites, in words.
fn beliefs(out: &Path) -> BTreeSet<String> {
    let text = read(&out.join("membership.csv"));
    let (columns, rows) = table(&text);
    let column = |name: &str| columns.iter().position(|column| *column == name).unwrap();
    let belief = |row: &Vec<&str>| format!("{} {}", row[column("about")], row[column("event")]);
    rows.iter().map(belief).collect()
}

#[test]
fn sites_come_and_go_and_every_job_ends() {
    let folder = tempfile::tempdir().unwrap();
    let file = experiment(
        folder.path(),
        &format!("node.journal = \"process\"\nrun.clock = \"scaled:100\"\n{FAULTS}"),
    );
    let mut command = Command::new(PROGRAM);
    command.args(["run", &file]);
    let (status, output) = Run::of(command, folder.path()).wait();

    assert_eq!(status.code(), Some(0), "{output}");
    let out = folder.path().join("out");
    assert_all_ended(&out);
    let beliefs = beliefs(&out);
    for belief in ["1 recovered", "2 left", "3 gone"] {
        assert!(beliefs.contains(belief), "{belief} is missing: {beliefs:?}");
    }
    assert!(output.contains("node site3 is killed at 550 s, for good"), "{output}");

    // The same in virtual time.
    let simulated = folder.path().join("simulated");
    let ended = Command::new(PROGRAM).args(["simulate", &file, "--out"]).arg(&simulated).output().unwrap();
    assert_eq!(ended.status.code(), Some(0), "{}", String::from_utf8_lossy(&ended.stderr));
    assert_all_ended(&simulated);
    assert!(
        self::beliefs(&simulated).is_superset(&["1 recovered", "2 left", "3 gone"].map(String::from).into())
    );
}

/// Nobody asked for it, and it is not started again: others take over its jobs.
#[test]
fn a_run_with_a_lease_goes_on_without_a_node_that_dies() {
    let folder = tempfile::tempdir().unwrap();
    let file = experiment(
        folder.path(),
        "node = { journal = \"process\", restart = false }\nrun.clock = \"scaled:100\"\n",
    );
    let mut command = Command::new(PROGRAM);
    command.args(["run", &file]);
    let mut run = Run::of(command, folder.path());
    run.wait_for_logs(&["site1", "site2", "site3", "site4"], "start is ordered");
    std::thread::sleep(std::time::Duration::from_secs(3));
    let nodes = run.nodes();
    // The home of most jobs, which is responsible for them.
    let (victim, _) = nodes.iter().find(|(_, command)| command.contains("site1.json")).unwrap();
    signal(*victim, Signal::KILL);
    let (status, output) = run.wait();

    assert_eq!(status.code(), Some(0), "{output}");
    assert!(output.contains("node site1 has ended for good"), "{output}");
    assert_all_ended(&folder.path().join("out"));
    assert_gone(&nodes);
}

#[test]
fn nothing_happens_to_processes_in_virtual_time() {
    let folder = tempfile::tempdir().unwrap();
    let file = experiment(folder.path(), &format!("node.journal = \"process\"\n{FAULTS}"));
    let ended = Command::new(PROGRAM).args(["run", &file, "--clock", "virtual"]).output().unwrap();
    assert_eq!(ended.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&ended.stderr).contains("simulate the faults"));
}
