//! `stealgrid run` as a user sees it: exit codes, what is in the result directory, and that no process is left
//! behind, whatever happens.
//!
//! Every test starts its own processes and waits for their end. Nothing depends on how fast they are, but for a
//! patience that only a failing test exhausts.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

const PROGRAM: &str = env!("CARGO_BIN_EXE_stealgrid");
/// Ample for what takes seconds.
const PATIENCE: Duration = Duration::from_secs(60);
const JOBS: usize = 60;

#[test]
fn a_run_replays_every_job_once_and_writes_its_results() {
    let folder = tempfile::tempdir().unwrap();
    // 550 s of trace time. Tolerant: on a loaded machine delays are what they are, and the schedule follows them.
    let run = Run::start(folder.path(), &["--clock", "scaled:200", "--delay", "2s", "--tolerance", "50"]);
    let (status, output) = run.wait();

    assert_eq!(status.code(), Some(0), "{output}");
    assert!(output.contains("verdict     within"), "{output}");
    let out = folder.path().join("out");
    let jobs = read(&out.join("jobs.csv"));
    let (columns, rows) = table(&jobs);
    let column = |name: &str| columns.iter().position(|column| *column == name).unwrap();
    let ids: BTreeSet<&str> = rows.iter().map(|row| row[column("job_id")]).collect();
    assert_eq!((rows.len(), ids.len()), (JOBS, JOBS));
    let migrations = read(&out.join("migrations.csv"));
    let stolen: u64 = table(&migrations)
        .1
        .iter()
        .filter(|row| row[0] != row[1])
        .map(|row| row[2].parse::<u64>().unwrap())
        .sum();
    assert!(stolen > 0, "{migrations}");
    let links = read(&out.join("links.csv"));
    let (columns, rows) = table(&links);
    assert_eq!(rows.len(), 6, "one for each directed link of three sites: {links}");
    let mean = columns.iter().position(|column| *column == "delay_mean_s").unwrap();
    let means: Vec<f64> = rows.iter().filter_map(|row| row[mean].parse().ok()).collect();
    assert!(
        !means.is_empty() && means.iter().all(|mean| *mean >= 2.0),
        "no message is faster than injected: {links}"
    );
    for file in ["manifest.json", "metrics.json", "events.jsonl.zst", "report.html", "nodes/site1.log"] {
        assert!(out.join(file).exists(), "{file} is missing");
    }
    assert!(read(&out.join("manifest.json")).contains("complete"));
}

#[test]
fn a_node_that_dies_ends_the_run_and_what_was_collected_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let run = Run::started(folder.path());
    let nodes = run.nodes();

    let (victim, _) = nodes.iter().find(|(_, command)| command.contains("site2.json")).unwrap();
    signal(*victim, Signal::KILL);

    let (status, output) = run.wait();
    assert_eq!(status.code(), Some(4), "{output}");
    let manifest = read(&folder.path().join("out/manifest.json"));
    assert!(
        manifest.contains("partial") && manifest.contains("node site2 ended with signal: 9"),
        "{manifest}"
    );
    assert!(manifest.contains("connected"), "the end of its log is there: {manifest}");
    assert!(output.contains("the last events of site2 are missing"), "{output}");
    assert!(read(&folder.path().join("out/jobs.csv")).lines().count() < JOBS);
    assert!(folder.path().join("out/links.csv").exists());
    assert_gone(&nodes);
}

#[test]
fn nodes_do_not_outlive_a_coordinator_that_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let run = Run::started(folder.path());
    let nodes = run.nodes();

    signal(run.id(), Signal::KILL);

    run.wait();
    assert_gone(&nodes);
}

/// A terminal sends the signal to all processes of the group. The nodes must not take it for theirs.
#[test]
fn ctrl_c_at_the_terminal_keeps_what_was_collected() {
    let folder = tempfile::tempdir().unwrap();
    let run = Run::started(folder.path());
    let nodes = run.nodes();

    rustix::process::kill_process_group(pid(run.id()), Signal::INT).unwrap();

    let (status, output) = run.wait();
    assert_eq!(status.code(), Some(4), "{output}");
    let manifest = read(&folder.path().join("out/manifest.json"));
    assert!(manifest.contains("interrupted after"), "{manifest}");
    assert!(!output.contains("are missing"), "{output}");
    for file in ["jobs.csv", "links.csv", "metrics.json", "events.jsonl.zst"] {
        assert!(folder.path().join("out").join(file).exists(), "{file} is missing");
    }
    assert_gone(&nodes);
}

#[test]
fn a_port_in_use_is_named_with_the_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();

    let (status, output) = Run::start(folder.path(), &["--port", &port]).wait();

    assert_eq!(status.code(), Some(3), "{output}");
    assert!(output.contains(&format!("port {port} cannot be listened on")), "{output}");
    assert!(output.contains("choose another first port with --port"), "{output}");
}

#[test]
fn what_real_nodes_cannot_do_is_refused_before_any_starts() {
    let folder = tempfile::tempdir().unwrap();
    let lossy = folder.path().join("lossy.toml");
    std::fs::write(&lossy, "[network]\nloss = 0.1\n").unwrap();
    let cases: [(&[&str], &str); 4] = [
        (&["--clock", "virtual"], "no virtual clock yet"),
        (&["--strategy", "ideal/st:50"], "sends no messages"),
        (&[lossy.to_str().unwrap()], "network.loss is for `stealgrid simulate` only"),
        (&["--port", "65534"], "3 sites need ports up to 65536"),
    ];
    for (args, expected) in cases {
        let (status, output) = Run::start(folder.path(), args).wait();
        assert_eq!(status.code(), Some(2), "{output}");
        assert!(output.contains(expected), "{output}");
        assert!(!folder.path().join("out").exists(), "nothing was run");
    }
}

/// Multicast DNS in a network namespace of its own: with an interface the nodes find each other, and with loopback
/// alone, which mDNS leaves out, they do not. Needs root; skips otherwise and says so.
#[test]
fn nodes_find_each_other_by_mdns_or_the_run_says_who_misses_whom() {
    let network = "ip link add here type veth peer name there";
    let can = Command::new("unshare").args(["-n", "sh", "-c", network]).output();
    if !can.as_ref().is_ok_and(|output| output.status.success()) {
        eprintln!("SKIPPED: mDNS needs root, unshare, ip and veth interfaces: {can:?}");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mdns.toml");
    let in_namespace = |script: String, args: &[&str]| {
        let mut command = Command::new("unshare");
        command.args([
            "-n",
            "sh",
            "-c",
            &format!("ip link set lo up && {script} exec \"$0\" \"$@\""),
            PROGRAM,
        ]);
        Run::spawn(command, folder.path(), args).wait()
    };
    let path = file.to_str().unwrap();

    std::fs::write(&file, "[run]\ndiscovery = \"mdns\"\n").unwrap();
    let up = format!(
        "{network} && ip addr add 10.77.0.1/24 dev here && ip link set here multicast on up && ip link set there up &&"
    );
    let (status, output) = in_namespace(up, &[path, "--clock", "scaled:500", "--tolerance", "80"]);
    assert_eq!(status.code(), Some(0), "{output}");

    std::fs::write(&file, "[run]\ndiscovery = \"mdns\"\nconnect_timeout = \"1s\"\n").unwrap();
    let (status, output) = in_namespace(String::new(), &[path]);
    assert_eq!(status.code(), Some(4), "{output}");
    assert!(output.contains("did not connect within 1s"), "{output}");
    assert!(output.contains("site1") && output.contains("site3"), "{output}");
}

/// A coordinator, in a process group of its own, and what it printed. Killed when dropped.
struct Run {
    child: Option<Child>,
    folder: PathBuf,
}

impl Run {
    /// Starts a run of three sites on which narrow jobs fill the smallest.
    fn start(folder: &Path, args: &[&str]) -> Run {
        Run::spawn(Command::new(PROGRAM), folder, args)
    }

    fn spawn(mut command: Command, folder: &Path, args: &[&str]) -> Run {
        let trace = folder.join("jobs.swf");
        std::fs::write(&trace, jobs()).unwrap();
        let file = |name: &str| std::fs::File::create(folder.join(name)).unwrap();
        command
            .arg("run")
            .args(args)
            .args(["--sites", "4,8,16", "--trace"])
            .arg(trace)
            .arg("--out")
            .arg(folder.join("out"))
            .stdin(Stdio::null())
            .stdout(file("stdout"))
            .stderr(file("stderr"))
            .process_group(0);
        Run { child: Some(command.spawn().unwrap()), folder: folder.to_path_buf() }
    }

    /// Starts a run that takes a minute, and returns when the clocks of all nodes run and some jobs have started.
    fn started(folder: &Path) -> Run {
        let mut run = Run::start(folder, &["--clock", "scaled:10"]);
        let log = |site| folder.join(format!("out/nodes/site{site}.log"));
        let ordered =
            |site| std::fs::read_to_string(log(site)).is_ok_and(|log| log.contains("start is ordered"));
        let deadline = Instant::now() + PATIENCE;
        while !(1..=3).all(ordered) {
            assert!(Instant::now() < deadline, "the run does not start: {}", run.output());
            assert_eq!(run.child.as_mut().unwrap().try_wait().unwrap(), None, "{}", run.output());
            std::thread::sleep(Duration::from_millis(20));
        }
        // The start is ahead by some hundred milliseconds, and the first look at events as well.
        std::thread::sleep(Duration::from_secs(1));
        run
    }

    fn id(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    /// Process ids and command lines of its children.
    fn nodes(&self) -> Vec<(u32, String)> {
        let parent = format!("PPid:\t{}\n", self.id());
        let mut nodes = Vec::new();
        for entry in std::fs::read_dir("/proc").unwrap() {
            let Ok(id) = entry.unwrap().file_name().to_string_lossy().parse::<u32>() else { continue };
            // A process may end while it is looked at.
            let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
            if status.contains(&parent) {
                nodes.push((id, command_of(id).unwrap_or_default()));
            }
        }
        assert_eq!(nodes.len(), 3, "one process for each site: {nodes:?}");
        nodes
    }

    /// Waits for its end; what it printed.
    fn wait(mut self) -> (ExitStatus, String) {
        let deadline = Instant::now() + PATIENCE;
        let mut child = self.child.take().unwrap();
        loop {
            if let Some(status) = child.try_wait().unwrap() {
                return (status, self.output());
            }
            if Instant::now() >= deadline {
                child.kill().unwrap();
                child.wait().unwrap();
                panic!("the run does not end: {}", self.output());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn output(&self) -> String {
        ["stdout", "stderr"].map(|name| read(&self.folder.join(name))).concat()
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // It may have ended; its nodes end with it.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Narrow jobs of 100 s, one a second: too many for the smallest site, which is the home of all.
fn jobs() -> String {
    let line = |job: usize| {
        let processors = 1 + job % 4;
        format!("{job} {job} -1 100 {processors} -1 -1 {processors} 200 -1 1 1 1 1 1 -1 -1 -1\n")
    };
    (1..=JOBS).map(line).collect()
}

fn pid(id: u32) -> Pid {
    Pid::from_raw(i32::try_from(id).unwrap()).unwrap()
}

fn signal(id: u32, signal: Signal) {
    rustix::process::kill_process(pid(id), signal).unwrap();
}

fn command_of(id: u32) -> Option<String> {
    let line = std::fs::read(format!("/proc/{id}/cmdline")).ok()?;
    Some(String::from_utf8_lossy(&line).replace('\0', " ")).filter(|line| !line.is_empty())
}

/// Waits until these processes are gone. A number may have been given to another process since.
fn assert_gone(nodes: &[(u32, String)]) {
    let deadline = Instant::now() + Duration::from_secs(5);
    for (id, command) in nodes {
        while command_of(*id).as_ref() == Some(command) {
            if Instant::now() >= deadline {
                signal(*id, Signal::KILL);
                panic!("process {id} was left behind: {command}");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The columns and rows of a table.
fn table(text: &str) -> (Vec<&str>, Vec<Vec<&str>>) {
    let mut lines = text.lines().map(|line| line.split(',').collect());
    (lines.next().unwrap(), lines.collect())
}
