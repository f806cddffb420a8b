//! The process between a node and a job: this program by another name, which becomes nothing but the holder of one job.
//!
//! It is told what to run in a line of JSON on its stdin, which stays open. When that closes, as it does whatever way the node ends, by
//! `kill -9` too, it kills the job. A job is its process group, and all that left the group: the holder is their reaper, and finds them. It
//! sets limits before it starts the job, keeps the output, and says in lines of JSON on its stdout what became of it.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufRead as _, ErrorKind, PipeReader, Read as _, Write as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::PathBuf;
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitOptions, getpid, getrlimit, kill_process, kill_process_group, nice,
    setrlimit, wait,
};
use scheduler::event::ExitCause;
use serde::{Deserialize, Serialize};

use crate::private;

/// What the holder is called, in place of the name of the program: nobody else is called so.
pub(super) const NAME: &str = "stealgrid-job";

/// Exit code of a command that cannot be started, as shells have it.
pub(super) const NOT_STARTED: i32 = 127;

/// How long a job has to end after it was told that its time is over. Then it is killed. Arbitrary; enough to write a few lines.
const GRACE: Duration = Duration::from_secs(2);
/// How long the holder waits for what the job said last.
const OUTPUT_PATIENCE: Duration = Duration::from_secs(1);
/// How often killed processes are looked for that do not go at once, and how long in all.
const KILL_LOOK: Duration = Duration::from_millis(5);
const KILL_PATIENCE: Duration = Duration::from_secs(5);
/// Bytes that are read at once.
const READ: usize = 1 << 13;
/// Bytes of the stack of a thread that copies: the buffer, and room to write.
const STACK: usize = 1 << 17;

/// What a holder is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Told {
    /// The program and its arguments.
    pub(super) words: Vec<String>,
    /// What the job finds in its environment, and nothing else.
    pub(super) environment: Vec<(String, String)>,
    /// Where its output goes.
    pub(super) output: PathBuf,
    pub(super) errors: PathBuf,
    /// Bytes of each that are kept.
    pub(super) output_bytes: u64,
    pub(super) nice: u8,
    pub(super) memory_bytes: Option<u64>,
    pub(super) wall_millis: Option<u64>,
}

/// What a holder says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Said {
    /// The job is this process group.
    Runs { group: i32 },
    /// The job is over, and nothing of it is left.
    Over { how: ExitCause, code: Option<i32>, why: Option<String> },
}

/// What happens to a job.
enum News {
    Ended(io::Result<ExitStatus>),
    /// The node is gone, or wants it stopped.
    Stop,
}

/// Holds a job, if this process was started to do that: for the first line of a program that can be a node.
pub fn asked() -> Option<ExitCode> {
    let name = std::env::args_os().next()?;
    (name == OsStr::new(NAME)).then(|| match hold() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // The log of the node.
            let _ = writeln!(io::stderr(), "error: failed to hold a job: {error}");
            ExitCode::FAILURE
        }
    })
}

fn say(said: &Said) -> io::Result<()> {
    let mut line = serde_json::to_string(said)?;
    line.push('\n');
    let mut stdout = io::stdout();
    stdout.write_all(line.as_bytes())?;
    stdout.flush()
}

fn hold() -> io::Result<()> {
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    let told: Told = serde_json::from_str(&line)?;
    let (news, come) = channel();
    watch_stdin(news.clone())?;
    #[cfg(target_os = "linux")]
    rustix::process::set_child_subreaper(Some(getpid()))?;
    let over = match begin(&told) {
        Ok((mut child, copies)) => {
            let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
            let group = group.ok_or_else(|| io::Error::other("the job has no number"))?;
            // If nobody listens any more, its stdin has closed, too.
            let _ = say(&Said::Runs { group: group.as_raw_nonzero().get() });
            Builder::new().stack_size(STACK).spawn(move || drop(news.send(News::Ended(child.wait()))))?;
            let over = watch(&told, group, &come);
            kill_all(group);
            finish(copies);
            over
        }
        Err(error) => {
            let why = format!("{:?} cannot be started: {error}", told.words.first());
            Said::Over { how: ExitCause::NotStarted, code: Some(NOT_STARTED), why: Some(why) }
        }
    };
    let _ = say(&over);
    Ok(())
}

/// Says so when there is nobody any more who would want the job.
fn watch_stdin(news: Sender<News>) -> io::Result<()> {
    let watch = move || {
        let mut rest = [0; 64];
        loop {
            match io::stdin().lock().read(&mut rest) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Ok(0) | Err(_) => break,
                Ok(_) => {}
            }
        }
        drop(news.send(News::Stop));
    };
    Builder::new().stack_size(STACK).spawn(watch).map(drop)
}

/// Starts the job within its limits, and what keeps its output.
fn begin(told: &Told) -> io::Result<(std::process::Child, Vec<JoinHandle<()>>)> {
    let (program, arguments) =
        told.words.split_first().ok_or_else(|| io::Error::other("there is no command"))?;
    let mut copies = Vec::new();
    let mut kept = |path: &PathBuf| -> io::Result<Stdio> {
        let (reader, writer) = io::pipe()?;
        let (file, most) = (private::create(path)?, told.output_bytes);
        copies.push(Builder::new().stack_size(STACK).spawn(move || copy(reader, file, most))?);
        Ok(writer.into())
    };
    let (output, errors) = (kept(&told.output)?, kept(&told.errors)?);
    if told.nice > 0 {
        nice(told.nice.into())?;
    }
    let own = getrlimit(Resource::As);
    if let Some(bytes) = told.memory_bytes {
        setrlimit(Resource::As, Rlimit { current: Some(bytes), ..own })?;
    }
    // No core files of a hundred jobs.
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env_clear()
        .envs(told.environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors)
        .process_group(0);
    let child = command.spawn();
    if told.memory_bytes.is_some() {
        setrlimit(Resource::As, own)?;
    }
    let child = child?;
    bind(&child, told.memory_bytes);
    // With the command go its ends of the pipes that are here.
    drop(command);
    Ok((child, copies))
}

/// Keeps a job from asking for more memory again. An error means that it has ended just now.
#[cfg(target_os = "linux")]
fn bind(child: &std::process::Child, memory_bytes: Option<u64>) {
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    if let (Some(bytes), Some(id)) = (memory_bytes, group) {
        let _ = rustix::process::prlimit(
            Some(id),
            Resource::As,
            Rlimit { current: Some(bytes), maximum: Some(bytes) },
        );
    }
}

/// Elsewhere it may, up to what the system allows.
#[cfg(not(target_os = "linux"))]
fn bind(_: &std::process::Child, _: Option<u64>) {}

/// Until the job ends, or has to.
fn watch(told: &Told, group: Pid, come: &Receiver<News>) -> Said {
    let deadline = told.wall_millis.map(|millis| Instant::now() + Duration::from_millis(millis));
    let news = match deadline {
        None => come.recv().map_err(|_| RecvTimeoutError::Disconnected),
        Some(deadline) => come.recv_timeout(deadline.saturating_duration_since(Instant::now())),
    };
    match news {
        Ok(News::Ended(Ok(status))) => {
            let (how, code) = match (status.code(), status.signal()) {
                (Some(code), _) => (ExitCause::Exit, Some(code)),
                // As shells have it.
                (None, Some(signal)) => (ExitCause::Signal, Some(128 + signal)),
                (None, None) => (ExitCause::Unknown, None),
            };
            Said::Over { how, code, why: None }
        }
        Ok(News::Ended(Err(error))) => {
            Said::Over { how: ExitCause::Unknown, code: None, why: Some(error.to_string()) }
        }
        Err(RecvTimeoutError::Timeout) => {
            let _ = kill_process_group(group, Signal::TERM);
            // However it ends: its time is over.
            let _ = come.recv_timeout(GRACE);
            Said::Over { how: ExitCause::WallTime, code: None, why: None }
        }
        Ok(News::Stop) | Err(RecvTimeoutError::Disconnected) => {
            Said::Over { how: ExitCause::Cancelled, code: None, why: None }
        }
    }
}

/// Kills what is left of the job: its group, and whatever this process is the parent of by then.
fn kill_all(group: Pid) {
    let deadline = Instant::now() + KILL_PATIENCE;
    loop {
        // An error means that there is none.
        let _ = kill_process_group(group, Signal::KILL);
        for child in children() {
            let _ = kill_process(child, Signal::KILL);
        }
        // What has no children any more has killed them all.
        while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
        let is_over = matches!(wait(WaitOptions::NOHANG), Err(rustix::io::Errno::CHILD));
        if is_over || Instant::now() > deadline {
            return;
        }
        std::thread::sleep(KILL_LOOK);
    }
}

/// Processes whose parent is this one, as far as the system shows them.
fn children() -> Vec<Pid> {
    let me = getpid().as_raw_nonzero().get().to_string();
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let is_child = |number: &i32| {
        let stat = std::fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
        // Field 4 (ppid) of proc(5); the name before it may have anything in it.
        stat.rsplit_once(") ").and_then(|(_, fields)| fields.split(' ').nth(1)) == Some(me.as_str())
    };
    numbers.filter(is_child).filter_map(Pid::from_raw).collect()
}

/// Keeps so many bytes of a stream, and reads the rest, so that a job that says much is not held up.
fn copy(mut from: PipeReader, mut to: File, most: u64) {
    let (mut buffer, mut left) = ([0; READ], most);
    loop {
        let count = match from.read(&mut buffer) {
            Ok(0) => return,
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(_) => return,
        };
        let kept = count.min(usize::try_from(left).unwrap_or(usize::MAX));
        // A disk that is full costs output and no job.
        let _ = to.write_all(&buffer[..kept]);
        left -= kept as u64;
        if kept < count && left == 0 {
            let _ = to.write_all(
                format!("\n[stealgrid: {most} bytes are kept, the rest is left out]\n").as_bytes(),
            );
            let _ = io::copy(&mut from, &mut io::sink());
            return;
        }
    }
}

/// Waits for what was said last; somebody who was not found may hold a pipe open.
fn finish(copies: Vec<JoinHandle<()>>) {
    let deadline = Instant::now() + OUTPUT_PATIENCE;
    while copies.iter().any(|copy| !copy.is_finished()) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(1));
    }
}
