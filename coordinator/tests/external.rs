//! Strategies that are commands: the examples decide as what they are examples of, under every driver, and whatever a command
//! does, no job is lost.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;

use brokers::ideal::Brokered;
use external::Settings;
use protocol::Terms;
use scheduler::{
    Broker, BrokerRule, Event, EventKind, Grid, JobId, LocalScheduler, Pass, SiteId, Span, Strategy, Time,
    TimedJob,
};
use simulator::{Checks, Simulation, SimulationConfig, reference};
use stealgrid_tests::Steady;

use crate::PROGRAM;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap()
}

fn example(name: &str) -> String {
    format!("python3 \"{}\"", root().join("examples/external").join(name).display())
}

/// Whether Python can do this; says so if it cannot.
fn python(code: &str) -> bool {
    let done = Command::new("python3").args(["-c", code]).output();
    let can = done.is_ok_and(|output| output.status.success());
    if !can {
        eprintln!("SKIPPED: python3 cannot `{code}`");
    }
    can
}

/// Runs a command of `stealgrid` over the shipped log, into `folder`.
fn stealgrid(command: &str, folder: &Path, arguments: &[&str]) -> Output {
    let mut program = Command::new(PROGRAM);
    program.arg(command).args(["--sites", "8,16,24,32,48,64,96", "--trace"]);
    program.arg(root().join("configs/traces/seven-sites.swf")).args(["--no-page", "--out"]).arg(folder);
    program.args(arguments).output().unwrap()
}

/// The jobs of a run that was complete and used no fallback.
fn jobs(command: &str, arguments: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let output = stealgrid(command, folder.path(), arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}\n{errors}");
    std::fs::read_to_string(folder.path().join("jobs.csv")).unwrap()
}

#[test]
fn mpl_in_python_gives_the_schedule_of_mpl() {
    if !python("import fractions") {
        return;
    }
    let exec = format!("ideal/broker:exec={}", example("mpl.py"));
    for options in ["", ",a=0.5"] {
        let own = jobs("simulate", &["--strategy", &format!("ideal/broker:mpl{options}")]);
        let python = jobs("simulate", &["--strategy", &format!("{exec}{options}")]);
        assert_eq!(own, python, "{options}");
        assert_ne!(own, jobs("simulate", &["--strategy", "ideal/broker:ml"]), "another rule shows");
    }
}

#[test]
fn easy_in_python_gives_the_schedule_of_easy_and_the_same_on_nodes() {
    if !python("import decimal") {
        return;
    }
    let exec = format!("exec={}", example("easy.py"));
    let own = jobs("simulate", &["--strategy", "local", "--local", "easy"]);
    assert_ne!(own, jobs("simulate", &["--strategy", "local", "--local", "fcfs"]), "another scheduler shows");
    assert_eq!(own, jobs("simulate", &["--strategy", "local", "--local", &exec]));
    assert_eq!(own, jobs("simulate", &["--strategy", "ideal/local", "--local", &exec]));
    let few = ["--count", "300", "--strategy", "local", "--local"];
    let on_nodes = jobs("run", &[&few[..], &[&exec, "--clock", "virtual"]].concat());
    assert_eq!(on_nodes, jobs("simulate", &[&few[..], &["easy"]].concat()));
}

#[test]
fn a_scheduler_of_pybatsim_runs_unchanged_as_the_queue_of_each_site() {
    if !python("import batsim.batsim, schedulers.easyBackfill, zmq") {
        return;
    }
    let few = ["--count", "500", "--strategy", "local", "--local"];
    let exec = format!("exec={} fcfs", example("pybatsim_bridge.py"));
    let exec = exec.replace(" fcfs", " easyBackfill");
    let pybatsim = jobs("simulate", &[&few[..], &[&exec]].concat());
    assert_eq!(pybatsim, jobs("simulate", &[&few[..], &[&exec]].concat()), "the same bytes twice");
    assert_eq!(pybatsim.lines().count(), 501);
}

/// A grid with two brokers, and jobs of which some end early.
fn workload() -> (Arc<Grid>, Vec<TimedJob>) {
    let sizes = [4, 8, 8, 16];
    let names = sizes.iter().enumerate().map(|(place, &size)| (format!("site{}", place + 1), size));
    let grid =
        Arc::new(Grid::with_brokers(names, ["one", "two"].map(|name| (name.to_string(), None))).unwrap());
    let (every, shortest) = (Span::from_secs(7), Span::from_secs(20));
    (grid, Steady { together: 3, every, shortest, widest: 11, sites: 4 }.jobs(400))
}

fn starts(events: &[Event]) -> Vec<(JobId, Time, SiteId)> {
    let start = |event: &Event| match event.kind {
        EventKind::Started { job, .. } => Some((job, event.at, event.site)),
        _ => None,
    };
    let mut starts: Vec<_> = events.iter().filter_map(start).collect();
    starts.sort_unstable();
    starts
}

fn ideal(grid: &Grid, jobs: &[TimedJob]) -> Vec<Event> {
    let (rules, local) = (Broker::new(BrokerRule::ParallelLoad), LocalScheduler::Easy);
    let mut policy = Brokered::new(grid, rules, local, Pass::Batch, 1);
    let mut events = Vec::new();
    reference::run(&mut policy, jobs, grid, Pass::Batch, &mut |event| events.push(event)).unwrap();
    events
}

fn peers(grid: &Arc<Grid>, jobs: &[TimedJob], broker: &str, queue: Option<&str>) -> Vec<Event> {
    let fallback = LocalScheduler::Easy;
    let command = |text: &str| external::Command::parse(text).unwrap();
    let queue = queue.map(|text| external::QueueSettings { command: command(text), fallback });
    let settings = Settings { broker: Some(command(broker)), queue, ..Settings::default() };
    let terms = Terms {
        local: if settings.queue.is_some() { LocalScheduler::External } else { fallback },
        external: settings.external(),
        ..Terms::new(grid.clone(), Strategy::Broker(Broker::new(BrokerRule::External)))
    };
    let config = SimulationConfig { checks: Checks::Full, ..SimulationConfig::on(terms) };
    let mut events = Vec::new();
    Simulation::new(config, jobs).run(&mut |event: &Event| events.push(*event)).unwrap();
    events
}

#[test]
fn commands_between_peers_without_delay_give_the_ideal_schedule() {
    if !python("import fractions, decimal") {
        return;
    }
    let (grid, jobs) = workload();
    let expected = starts(&ideal(&grid, &jobs));
    assert_eq!(starts(&peers(&grid, &jobs, &example("mpl.py"), None)), expected);
    assert_eq!(starts(&peers(&grid, &jobs, &example("mpl.py"), Some(&example("easy.py")))), expected);
}

#[test]
fn a_broker_that_breaks_is_replaced_by_its_fallback_and_said_once() {
    let (grid, jobs) = workload();
    let events = peers(&grid, &jobs, "cat", None);
    assert_eq!(starts(&events), starts(&ideal(&grid, &jobs)), "mpl decides from the first job on");
    let failed: Vec<SiteId> = events
        .iter()
        .filter_map(|event| matches!(event.kind, EventKind::FellBack { .. }).then_some(event.site))
        .collect();
    assert_eq!(failed, [0, 1].map(|rank| grid.at_rank(rank)));
}

/// Commands that do what they must not, as shells have them, with what is said of them.
const BROKEN: [(&str, &str); 6] = [
    ("sh -c 'exit 3'", "could not be started"),
    ("sh -c 'read x; echo {}; exit 3'", "ended"),
    ("sh -c 'read x; echo {}; read x; sleep 60'", "took longer"),
    ("cat", "answered what cannot be"),
    ("sh -c 'while read x; do echo {}; echo {}; done'", "answered what cannot be"),
    ("sh -c 'read x; echo {}; read x; head -c 5000 /dev/zero; sleep 60'", "answered what cannot be"),
];

#[test]
fn whatever_a_command_does_no_job_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    for (place, (command, expected)) in BROKEN.into_iter().enumerate() {
        for (kind, name, local) in [
            ("broker", format!("ideal/broker:exec={command}"), "easy".to_string()),
            ("queue", "local".to_string(), format!("exec={command},fallback=fcfs")),
        ] {
            let file = folder.path().join(format!("{kind}{place}.toml"));
            let trace = root().join("configs/traces/seven-sites.swf");
            std::fs::write(
                &file,
                format!(
                    "grid.sizes = [8, 16, 96]\nworkload.trace = {trace:?}\nworkload.count = 200\n\
                     external = {{ decision = \"300ms\", start = \"5s\", line_bytes = 1024 }}\n\
                     strategy = {{ name = {name:?}, local = {local:?} }}\n"
                ),
            )
            .unwrap();
            let out = folder.path().join(format!("{kind}{place}"));
            let output = Command::new(PROGRAM)
                .arg("simulate")
                .arg(&file)
                .args(["--no-page", "--out"])
                .arg(&out)
                .output()
                .unwrap();
            let errors = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(7), "{kind} {command}\n{errors}");
            assert!(errors.contains("the external strategy of"), "{errors}");
            let manifest = std::fs::read_to_string(out.join("manifest.json")).unwrap();
            assert!(manifest.contains(expected), "{kind} {command}: {manifest}\n{errors}");
            let jobs = std::fs::read_to_string(out.join("jobs.csv")).unwrap();
            assert_eq!(jobs.lines().count(), 201, "{kind} {command}");
        }
    }
}

/// Both in a gap of the log, in which nothing waits or runs, and with jobs that wait.
#[test]
fn a_queue_that_asks_to_be_called_for_ever_is_replaced_by_its_fallback() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("restless.sh");
    std::fs::write(
        &script,
        r#"read x; echo '{}'
while read line; do
  now=${line#*:}; now=${now%%,*}; second=${now%%.*}
  echo "{\"now\":$now,\"events\":[{\"timestamp\":$now,\"type\":\"CALL_ME_LATER\",\"data\":{\"timestamp\":$((second + 1))}}]}"
done
"#,
    )
    .unwrap();
    let job = |id: u32, at: u32| format!("{id} {at} -1 60 2 -1 -1 2 120 -1 1 1 1 -1 1 1 -1 -1\n");
    let log = folder.path().join("log.swf");
    std::fs::write(&log, format!("; MaxProcs: 4\n{}{}", job(1, 0), job(2, 90_000))).unwrap();
    let out = folder.path().join("out");
    let file = folder.path().join("restless.toml");
    let text = format!(
        "grid.sizes = [4]\nworkload.trace = {log:?}\nexternal.calls = 50\n\
         strategy = {{ name = \"local\", local = \"exec=sh {}\" }}\n",
        script.display()
    );
    std::fs::write(&file, text).unwrap();
    for (command, more) in [("simulate", &[][..]), ("run", &["--clock", "virtual"])] {
        let mut program = Command::new(PROGRAM);
        program.arg(command).arg(&file).args(more).args(["--no-page", "--replace", "--out"]).arg(&out);
        let output = program.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(7), "{command}: {said}");
        let log = std::fs::read_to_string(out.join("nodes/site1.log")).unwrap_or_default();
        assert!((said + &log).contains("external.calls"), "{command}: {log}");
        assert_eq!(std::fs::read_to_string(out.join("jobs.csv")).unwrap().lines().count(), 3);
    }
}

#[test]
fn what_a_command_says_on_stderr_has_a_limit() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("loud.toml");
    let trace = root().join("configs/traces/seven-sites.swf");
    let text = format!(
        "grid.sizes = [96]\nworkload.trace = {trace:?}\nworkload.count = 5\nexternal.stderr_bytes = 1000\n\
         strategy = {{ name = \"local\", local = \"exec=sh -c 'head -c 9000000 /dev/zero >&2; exit 3'\" }}\n"
    );
    std::fs::write(&file, text).unwrap();
    let mut program = Command::new(PROGRAM);
    program.arg("simulate").arg(&file).args(["--no-page", "--out"]).arg(folder.path().join("out"));
    let output = program.output().unwrap();
    assert_eq!(output.status.code(), Some(7));
    assert!(output.stderr.len() < 5000, "{}", output.stderr.len());
    let said = String::from_utf8_lossy(&output.stderr);
    let (limit, failed) =
        (said.find("external.stderr_bytes").unwrap(), said.find("failed: it ended").unwrap());
    assert!(limit < failed, "what it said stands before what is said of it");
}

#[test]
fn what_cannot_be_a_command_is_refused_before_anything_runs() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, code, expected) in [
        (["--strategy", "ideal/broker:exec"], 2, "a command is missing"),
        (
            ["--strategy", "ideal/broker:exec=no-such-program-here x"],
            3,
            "there is no program \"no-such-program-here\"",
        ),
        (["--strategy", "broker:exec=sh no-such.sh x"], 3, "there is no file \"no-such.sh\" for sh to run"),
    ] {
        let output = stealgrid("simulate", folder.path(), &arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{errors}");
        assert!(errors.contains(expected), "{errors}");
    }
    let output = stealgrid(
        "simulate",
        folder.path(),
        &["--strategy", "local", "--local", "exec=cat", "--pass", "per-event"],
    );
    assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A sweep does not take a run for done that a fallback decided, and what a command leaves behind ends with it.
#[test]
fn a_sweep_says_which_commands_failed_and_nothing_outlives_a_run() {
    let folder = tempfile::tempdir().unwrap();
    let (left, script) = (folder.path().join("left"), folder.path().join("leave.sh"));
    let mpl = example("mpl.py");
    // In the group of the command, in a session of its own, and an orphan of that.
    let leave = format!("echo $! >> '{}'\n", left.display());
    let alone = "sh -c 'sleep 300 & echo $!' ";
    let orphan = format!("setsid {alone} </dev/null >> '{}' 2>/dev/null\n", left.display());
    let sleep = format!("sleep 300 >/dev/null & {leave}setsid sleep 300 >/dev/null & {leave}{orphan}");
    std::fs::write(&script, format!("{sleep}{mpl}\n")).unwrap();
    let trace = root().join("configs/traces/seven-sites.swf");
    let sweep = format!(
        "[experiment]\ngrid.sizes = [8, 16, 96]\nworkload.trace = {trace:?}\nworkload.count = 50\nworkload.too_wide = \"drop\"\n\
         [parameters]\n\"strategy.name\" = [\"broker:exec=sh {}\", \"broker:exec=true\"]\n\"network.delay\" = [\"1s\"]\n",
        script.display()
    );
    std::fs::write(folder.path().join("s.toml"), sweep).unwrap();
    if !python("import fractions") {
        return;
    }

    let output = Command::new(PROGRAM)
        .args(["sweep", "s.toml", "--jobs", "1", "--out", "s.db"])
        .current_dir(folder.path())
        .output()
        .unwrap();

    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(5), "{said}");
    assert!(said.contains("1 failed"), "{said}");
    assert!(said.contains("the external strategy of broker failed"), "{said}");
    let left = std::fs::read_to_string(left).unwrap();
    assert!(left.lines().count() >= 3, "{left}");
    for process in left.lines() {
        // A zombie has ended, too: whoever adopted it may not have looked yet. One that was killed ends when it has its turn,
        // which on a busy machine takes a while.
        let ended = |status: &str| status.is_empty() || status.contains("State:\tZ");
        let status = || std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
        let patience = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while !ended(&status()) && std::time::Instant::now() < patience {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        assert!(ended(&status()), "{process} goes on: {}", status());
    }
}
