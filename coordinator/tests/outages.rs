//! Sites that join, crash, stand still, leave and die during a run, as processes and in virtual time; and a node that
//! dies without being asked to.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use outputs::EventReader;
use rustix::process::Signal;
use scheduler::event::{BeginCause, EndCause};
use scheduler::{Event, EventKind, SiteId, Time};
use tempfile::TempDir;
use workload::limits::Limits;

use crate::PROGRAM;
use crate::processes::{Run, assert_gone, read, signal, stop, table};

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
    assert_ne!(manifest["status"], "partial", "{manifest}");
}

/// What was believed of sites, in words.
fn beliefs(out: &Path) -> BTreeSet<String> {
    let text = read(&out.join("membership.csv"));
    let (columns, rows) = table(&text);
    let column = |name: &str| columns.iter().position(|column| *column == name).unwrap();
    let belief = |row: &Vec<&str>| format!("{} {}", row[column("about")], row[column("event")]);
    rows.iter().map(belief).collect()
}

/// Whether a driver says it of a site, and not the site.
fn by_driver(event: &Event) -> bool {
    let kind = &event.kind;
    matches!(kind, EventKind::Ended { .. } | EventKind::Begun { .. } | EventKind::Dismissed {})
        || matches!(kind, EventKind::Lost { .. })
}

/// What [`FAULTS`] do is what the log, and from it the report, says of sites, and no site does anything while it is
/// away. By the wall clock all may be late: how much is a matter of the machine.
fn assert_comings_and_goings(out: &Path, is_virtual: bool) {
    let metrics: serde_json::Value = serde_json::from_str(&read(&out.join("metrics.json"))).unwrap();
    let faults = &metrics["faults"];
    for (what, times) in [
        ("crashes", 1),
        ("joined", 1),
        ("pauses", 1),
        ("dismissed", 1),
        ("have_left", 1),
        ("silent_sites", 1),
    ] {
        assert_eq!(faults[what], times, "{what}: {faults:#}");
    }
    assert_eq!(faults["never_happened"], serde_json::json!([]));
    let of_site =
        |site: usize| faults["sites"].as_array().unwrap().iter().find(|row| row["site"] == site).unwrap();
    assert!(of_site(2)["silent_at_end"] == false && of_site(3)["silent_at_end"] == true, "{faults:#}");

    let log = EventReader::open(&out.join("events.jsonl.zst"), Limits::default()).unwrap();
    let events: Vec<Event> = log.map(Result::unwrap).collect();
    let when = |site: u32, kind: EventKind| {
        let found = events.iter().find(|event| (event.site, event.kind) == (SiteId(site), kind));
        found.unwrap_or_else(|| panic!("no {kind:?} of site {site}")).at
    };
    let ended = |site, how| when(site, EventKind::Ended { how });
    let begun = |site, how| when(site, EventKind::Begun { how });
    let away = |site, how, from| begun(site, how).since(ended(site, from));
    for (time, logged, planned) in [
        (&of_site(1)["down_at_most_s"], away(1, BeginCause::Restart, EndCause::Crash), 60.0),
        (&of_site(3)["paused_s"], away(3, BeginCause::Resume, EndCause::Pause), 30.0),
        (&of_site(2)["joined_at_s"], begun(2, BeginCause::Join).since(Time::ZERO), 100.0),
    ] {
        let (time, logged) = (time.as_f64().unwrap(), logged.as_secs_f64());
        assert!((time - logged).abs() < 1e-6, "{time} and not {logged}: {faults:#}");
        assert!(time == planned || !is_virtual, "{time} instead of {planned}: {faults:#}");
    }
    assert!(begun(2, BeginCause::Join) >= Time::from_secs(100), "nobody joins before the plan");
    let (start, end) = (Time::from_micros(i64::MIN), Time::MAX);
    for (site, from, until) in [
        (1, ended(1, EndCause::Crash), begun(1, BeginCause::Restart)),
        (2, start, begun(2, BeginCause::Join)),
        (2, ended(2, EndCause::Leave), end),
        (3, ended(3, EndCause::Pause), begun(3, BeginCause::Resume)),
        (3, ended(3, EndCause::Death), end),
    ] {
        let here = events.iter().filter(|event| event.site == SiteId(site) && !by_driver(event));
        let meanwhile = here.filter(|event| from < event.at && event.at < until).count();
        assert_eq!(meanwhile, 0, "site {site} does something between {from} s and {until} s");
    }
    assert!(ended(2, EndCause::Absent) <= begun(2, BeginCause::Join));
    assert!(when(2, EventKind::Dismissed {}) < ended(2, EndCause::Leave));
    let ran =
        events.iter().any(|event| event.site == SiteId(2) && matches!(event.kind, EventKind::Started { .. }));
    assert!(ran, "a site that joins is there to work");
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
    assert_comings_and_goings(&out, false);

    // The same in virtual time.
    let simulated = folder.path().join("simulated");
    let ended = Command::new(PROGRAM).args(["simulate", &file, "--out"]).arg(&simulated).output().unwrap();
    assert_eq!(ended.status.code(), Some(0), "{}", String::from_utf8_lossy(&ended.stderr));
    assert_all_ended(&simulated);
    assert!(
        self::beliefs(&simulated).is_superset(&["1 recovered", "2 left", "3 gone"].map(String::from).into())
    );
    assert_comings_and_goings(&simulated, true);
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
    // The home of most jobs, which is responsible for them: it has some, and some that it gave away.
    run.wait_for_nodes(4, |nodes| {
        let home = nodes.iter().find(|node| node.name == "site1").unwrap();
        home.outstanding.waiting > 0 && nodes.iter().any(|node| node.name != "site1" && node.completed > 0)
    });
    let nodes = run.nodes();
    let (victim, _) = nodes.iter().find(|(_, command)| command.contains("site1.json")).unwrap();
    signal(*victim, Signal::KILL);
    let (status, output) = run.wait();

    assert_eq!(status.code(), Some(0), "{output}");
    assert!(output.contains("node site1 has ended for good"), "{output}");
    assert_all_ended(&folder.path().join("out"));
    assert_gone(&nodes);
}

#[test]
fn a_node_that_dies_before_the_clocks_start_ends_the_run() {
    let started = || {
        let folder = tempfile::tempdir().unwrap();
        let file = experiment(folder.path(), "node.journal = \"process\"\nrun.clock = \"scaled:100\"\n");
        let mut command = Command::new(PROGRAM);
        command.args(["run", &file]);
        let mut run = Run::of(command, folder.path());
        // The first is up when the second has begun.
        run.wait_for_logs(&["site1", "site2"], "listening");
        // As long as it stands still no clock is started.
        stop(run.id());
        (run, folder)
    };
    // Where this was too slow to stop it before the clocks were started, it is done again.
    let begun = |(_, folder): &(Run, TempDir)| folder.path().join("out/run.json").exists();
    let in_time = std::iter::repeat_with(started).take(20).find(|started| !begun(started));
    let (run, folder) = in_time.expect("one of 20 runs can be stopped before its clocks are started");
    let nodes = run.children();
    let (victim, _) = nodes.iter().find(|(_, command)| command.contains("site1.json")).unwrap();
    signal(*victim, Signal::KILL);
    signal(run.id(), Signal::CONT);
    let (status, output) = run.wait();

    assert_eq!(status.code(), Some(4), "{output}");
    assert!(output.contains("before the clocks were started; nothing was run"), "{output}");
    assert!(output.contains("site1"), "{output}");
    assert_gone(&nodes);
    assert!(
        !folder.path().join("out/manifest.json").exists() && !folder.path().join("out/run.json").exists()
    );
}

#[test]
fn a_fault_that_never_happened_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let fault = "[[faults]]\nsite = \"site4\"\nwhat = \"pause\"\nat = \"1000h\"\nfor = \"1m\"\n";
    let file = experiment(folder.path(), fault);
    let out = folder.path().join("out");
    let ended = Command::new(PROGRAM).args(["simulate", &file, "--out"]).arg(&out).output().unwrap();
    let text = String::from_utf8_lossy(&ended.stdout).replace("\n  ", " ");
    assert_eq!(ended.status.code(), Some(0), "{text}");
    let line = "never happened: faults[1], pause of site4 at 3600000 s (the run was over before)";
    assert!(text.contains(&format!("faults:  {line}")), "{text}");
    assert!(read(&out.join("report.html")).contains(line));
    let metrics: serde_json::Value = serde_json::from_str(&read(&out.join("metrics.json"))).unwrap();
    let missed = &metrics["faults"]["never_happened"];
    assert_eq!(missed[0]["why"], "run_over", "{missed}");
    assert_eq!((&missed[0]["entry"], &missed[0]["site"]), (&1.into(), &"site4".into()));
}

#[test]
fn nothing_happens_to_processes_in_virtual_time() {
    let folder = tempfile::tempdir().unwrap();
    let file = experiment(folder.path(), &format!("node.journal = \"process\"\n{FAULTS}"));
    let ended = Command::new(PROGRAM).args(["run", &file, "--clock", "virtual"]).output().unwrap();
    assert_eq!(ended.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&ended.stderr).contains("simulate the faults"));
}
