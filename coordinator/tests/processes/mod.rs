//! `stealgrid run` as tests start it: a coordinator and its nodes, none of which outlives the test.

use std::collections::BTreeSet;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use node::control::Token;
use node::control::api::Status;
use node::running::Running;
use operation::client::NodeClient;
use rustix::process::{Pid, Signal};

use crate::PROGRAM;

/// Ample for what takes a minute; reached only by a failing test.
const PATIENCE: Duration = Duration::from_secs(300);
pub(crate) const JOBS: usize = 60;
/// How late links may be before a run chooses a slower clock.
pub(crate) const TOLERANCE: &str = "--calibration-tolerance";

/// A coordinator, in a process group of its own, and what it printed. Killed when dropped.
pub(crate) struct Run {
    child: Option<Child>,
    folder: PathBuf,
    /// Processes that are no children of it: each is looked at once, as tests ask again and again.
    others: Mutex<BTreeSet<u32>>,
}

impl Run {
    /// Starts a run of three sites on which narrow jobs fill the smallest. It keeps its clock however late messages are, unless
    /// the test says what it tolerates: beside a compiler it would choose one that is a hundred times slower.
    pub(crate) fn start(folder: &Path, args: &[&str]) -> Run {
        let mut command = Command::new(PROGRAM);
        command.arg("run");
        if !args.contains(&TOLERANCE) {
            command.args([TOLERANCE, "1000000"]);
        }
        Run::spawn(command, folder, args)
    }

    /// The same, started by this command, which ends with `run` and options of its own.
    pub(crate) fn spawn(mut command: Command, folder: &Path, args: &[&str]) -> Run {
        let trace = folder.join("jobs.swf");
        std::fs::write(&trace, jobs()).unwrap();
        command.args(args).args(["--sites", "4,8,16", "--trace"]).arg(trace);
        Run::of(command, folder)
    }

    /// Starts a run by a command that lacks nothing but the result directory.
    pub(crate) fn of(mut command: Command, folder: &Path) -> Run {
        command.arg("--out").arg(folder.join("out"));
        Run::without_out(command, folder)
    }

    /// Starts a command that lacks nothing.
    pub(crate) fn without_out(mut command: Command, folder: &Path) -> Run {
        let file = |name: &str| std::fs::File::create(folder.join(name)).unwrap();
        command.stdin(Stdio::null()).stdout(file("stdout")).stderr(file("stderr")).process_group(0);
        Run { child: Some(command.spawn().unwrap()), folder: folder.to_path_buf(), others: Mutex::default() }
    }

    /// Starts a run that takes a minute, and returns when the clocks of all nodes run.
    pub(crate) fn started(folder: &Path) -> Run {
        let mut run = Run::start(folder, &["--clock", "scaled:10"]);
        run.wait_for_logs(&["site1", "site2", "site3"], "start is ordered");
        // The start is ahead by some hundred milliseconds. Without journals nodes leave no word where they can be asked.
        std::thread::sleep(Duration::from_secs(1));
        run
    }

    /// Waits until so many nodes answer, and what they say of themselves is as wanted. Only of nodes with journals that are
    /// started here.
    pub(crate) fn wait_for_nodes(&mut self, count: usize, wanted: impl Fn(&[Status]) -> bool) {
        let nodes = self.folder.join("out/nodes");
        let deadline = Instant::now() + PATIENCE;
        while !statuses(&nodes).is_some_and(|nodes| nodes.len() == count && wanted(&nodes)) {
            assert!(Instant::now() < deadline, "{:#?}: {}", statuses(&nodes), self.output());
            assert_eq!(self.child.as_mut().unwrap().try_wait().unwrap(), None, "{}", self.output());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until the logs of these nodes have these words.
    pub(crate) fn wait_for_logs(&mut self, nodes: &[&str], words: &str) {
        let out = self.folder.join("out");
        let deadline = Instant::now() + PATIENCE;
        while !all_say(&out, nodes, words) {
            assert!(Instant::now() < deadline, "the run does not start: {}", self.output());
            assert_eq!(self.child.as_mut().unwrap().try_wait().unwrap(), None, "{}", self.output());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    /// Process ids and command lines of its children, which are there for each site.
    pub(crate) fn nodes(&self) -> Vec<(u32, String)> {
        let nodes = self.children();
        assert!(nodes.len() >= 2, "one process for each site: {nodes:?}");
        nodes
    }

    /// Process ids and command lines of its children that have not ended.
    pub(crate) fn children(&self) -> Vec<(u32, String)> {
        let parent = format!("PPid:\t{}\n", self.id());
        let mut nodes = Vec::new();
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        let mut there = BTreeSet::new();
        for entry in std::fs::read_dir("/proc").unwrap() {
            let Ok(id) = entry.unwrap().file_name().to_string_lossy().parse::<u32>() else { continue };
            there.insert(id);
            if others.contains(&id) {
                continue;
            }
            // A process may end while it is looked at.
            let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
            if status.contains(&parent) {
                nodes.push((id, command_of(id).unwrap_or_default()));
            } else {
                others.insert(id);
            }
        }
        // A number may be given again.
        others.retain(|id| there.contains(id));
        nodes
    }

    /// Waits for its end; what it printed.
    pub(crate) fn wait(mut self) -> (ExitStatus, String) {
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

    pub(crate) fn output(&self) -> String {
        ["stdout", "stderr"].map(|name| read(&self.folder.join(name))).concat()
    }
}

/// Whether the logs of these nodes of the run in `out` have these words.
pub(crate) fn all_say(out: &Path, nodes: &[&str], words: &str) -> bool {
    let log = |node: &str| std::fs::read_to_string(out.join(format!("nodes/{node}.log")));
    nodes.iter().all(|node| log(node).is_ok_and(|log| log.contains(words)))
}

/// What the nodes that left word in this directory say of themselves; none if one of them does not answer.
pub(crate) fn statuses(nodes: &Path) -> Option<Vec<Status>> {
    let token = Token::read(&nodes.join("control.token")).ok()?;
    let running = Running::all_in(nodes);
    running.iter().map(|node| NodeClient::new(&node.ready.http, Some(token.clone())).status().ok()).collect()
}

/// Runs this until its run lies among its simulations, or the machine was too busy to say, which these tests cannot help.
/// Never that it differs from them, but by chance: a correct run does so once in n + 1 times, a wrong one nearly always.
/// So it is run once more, and two in a row fail. What it printed, and what else the closure returns.
pub(crate) fn not_different<T>(mut run: impl FnMut() -> (ExitStatus, String, T)) -> (String, T) {
    let (mut status, mut output, mut rest) = run();
    if status.code() == Some(5) && output.contains("  agreement        DIFFERENT: ") {
        eprintln!("DIFFERENT: a correct run is so once in n + 1 times; it is tried again\n{output}");
        (status, output, rest) = run();
    }
    let verdict = |words: &str| output.contains(&format!("  agreement        {words}"));
    let slow = verdict("not compared: ") && output.contains("run.ensemble_patience allows");
    match status.code() {
        Some(0) if slow => {
            eprintln!("NOT MEASURED: this machine is too busy for the simulations of this test")
        }
        Some(0) => assert!(verdict("as simulated: "), "{output}"),
        Some(6) => {
            assert!(verdict("NOT MEASURED: "), "{output}");
            eprintln!("NOT MEASURED: this machine is too busy for the run of this test");
        }
        _ => panic!("{status}: {output}"),
    }
    (output, rest)
}

impl Drop for Run {
    fn drop(&mut self) {
        if self.child.is_none() {
            return;
        }
        // With journals they would wait ten minutes for another coordinator.
        let nodes = self.children();
        if let Some(child) = &mut self.child {
            // It may have ended.
            let _ = child.kill();
            let _ = child.wait();
        }
        for (id, command) in nodes {
            // A number may have been given to another process since.
            if command_of(id).as_ref() == Some(&command) {
                let _ = rustix::process::kill_process(pid(id), Signal::KILL);
            }
        }
    }
}

/// Narrow jobs of 100 s, one a second: too many for the smallest site, which is the home of all.
pub(crate) fn jobs() -> String {
    let line = |job: usize| {
        let processors = 1 + job % 4;
        // Of many lengths: where jobs end together, what is late by a microsecond decides the order, and a run is like
        // no simulation.
        let run_time = 80 + job * 37 % 41;
        format!("{job} {job} -1 {run_time} {processors} -1 -1 {processors} 200 -1 1 1 1 1 1 -1 -1 -1\n")
    };
    (1..=JOBS).map(line).collect()
}

pub(crate) fn pid(id: u32) -> Pid {
    Pid::from_raw(i32::try_from(id).unwrap()).unwrap()
}

pub(crate) fn signal(id: u32, signal: Signal) {
    rustix::process::kill_process(pid(id), signal).unwrap();
}

/// Stops a process, and returns when none of its threads does anything any more: the signal alone says only that they will
/// be stopped.
pub(crate) fn stop(id: u32) {
    signal(id, Signal::STOP);
    let does_nothing = |task: &Path| {
        // A thread may end while it is looked at.
        let stat = std::fs::read_to_string(task.join("stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_none_or(|(_, fields)| fields.starts_with(['T', 't', 'Z', 'X']))
    };
    let deadline = Instant::now() + PATIENCE;
    loop {
        let tasks = std::fs::read_dir(format!("/proc/{id}/task")).into_iter().flatten().flatten();
        if tasks.map(|task| task.path()).all(|task| does_nothing(&task)) {
            return;
        }
        assert!(Instant::now() < deadline, "process {id} does not stop");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn command_of(id: u32) -> Option<String> {
    let line = std::fs::read(format!("/proc/{id}/cmdline")).ok()?;
    Some(String::from_utf8_lossy(&line).replace('\0', " ")).filter(|line| !line.is_empty())
}

/// Waits until these processes are gone. A number may have been given to another process since.
pub(crate) fn assert_gone(nodes: &[(u32, String)]) {
    let deadline = Instant::now() + PATIENCE;
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

/// What a run says, on one line: what stands before a word decides where its line is folded.
pub(crate) fn unfolded(output: &str) -> String {
    output.split_whitespace().collect::<Vec<_>>().join(" ")
}

pub(crate) fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The columns and rows of a table.
pub(crate) fn table(text: &str) -> (Vec<&str>, Vec<Vec<&str>>) {
    let mut lines = text.lines().map(|line| line.split(',').collect());
    (lines.next().unwrap(), lines.collect())
}
