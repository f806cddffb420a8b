//! A cluster as its commands show it: what is submitted, what is known of it, and what is cancelled. No word of a job reaches a shell.

use std::collections::BTreeMap;
use std::io::{self, BufRead as _, BufReader, Read};
use std::process::{Command, Stdio};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::getuid;

use super::super::settings::Slurm;
use super::state::{Meaning, meaning};

/// How long a command of Slurm may take: some of its own time-outs, after which it says so itself.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often a command is looked at that has not ended.
const LOOK: Duration = Duration::from_millis(1);
/// Bytes of what a command says that are kept.
const SAID_MAX: u64 = 1 << 20;
/// Bytes of what `squeue` says that are read, of which only our lines are kept: some millions of jobs.
const QUEUE_MAX: u64 = 1 << 30;
/// Bytes of the stack of a thread that reads.
const STACK: usize = 1 << 17;

/// The variable that says which cluster.
const CONF: &str = "SLURM_CONF";
/// How names of variables begin that are options of its commands, by whoever has started the node.
const OPTIONS: [&str; 5] = ["SLURM_", "SBATCH_", "SQUEUE_", "SCANCEL_", "SINFO_"];
/// Those of them that say where the cluster is, and who asks.
const KEPT: [&str; 3] = [CONF, "SLURM_CONF_SERVER", "SLURM_JWT"];

/// What Slurm says where a controller is away for a while, or has too much to do.
const AWAY: [&str; 11] = [
    "unable to contact slurm controller",
    "socket timed out",
    "connection refused",
    "connection reset",
    "zero bytes were transmitted",
    "communication connection failure",
    "communication shutdown failure",
    "temporarily unable to accept job",
    "resource temporarily unavailable",
    // Of munge, and of a partition that is drained or inactive for a while.
    "authentication error",
    "required partition not available",
];

/// Why Slurm did not do it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// Nobody answers; it may have been done nevertheless.
    Away(String),
    /// It never will.
    Refused(String),
}

/// What Slurm knows of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// Its number.
    pub(super) id: u64,
    /// Its state, as in `RUNNING`.
    pub(super) state: String,
    /// Why it is in that state, as in `JobHeldUser`.
    pub(super) reason: String,
}

/// What is submitted.
#[derive(Clone, Debug)]
pub(super) struct Submission<'a> {
    /// The name by which it is found again.
    pub(super) name: &'a str,
    pub(super) processors: u32,
    pub(super) wall: Option<Duration>,
    pub(super) memory_bytes: Option<u64>,
    pub(super) output: &'a str,
    pub(super) errors: &'a str,
    pub(super) environment: &'a [(String, String)],
    /// The script that is submitted, and its arguments.
    pub(super) script: &'a str,
    pub(super) arguments: &'a [&'a str],
}

/// What the jobs of a site have in common in `squeue`.
#[derive(Clone, Debug)]
struct Ours {
    /// How their names begin.
    prefix: String,
    /// Who submits them.
    user: u32,
    /// Where they wait and run, if not everywhere.
    partition: Option<String>,
}

/// A cluster.
#[derive(Clone, Debug)]
pub(super) struct Cluster {
    conf: Option<String>,
    slurm: Slurm,
}

impl Cluster {
    /// The one of a site.
    pub(super) fn of(slurm: &Slurm, site: &str) -> Cluster {
        Cluster { conf: slurm.conf.as_ref().map(|conf| conf.replace("{site}", site)), slurm: slurm.clone() }
    }

    fn command(&self, name: &str) -> Command {
        let mut command = Command::new(name);
        command.stdin(Stdio::null());
        let is_option =
            |name: &str| OPTIONS.iter().any(|begin| name.starts_with(begin)) && !KEPT.contains(&name);
        for (name, _) in std::env::vars_os() {
            if name.to_str().is_some_and(is_option) {
                command.env_remove(name);
            }
        }
        if let Some(conf) = self.conf() {
            command.env(CONF, conf);
        }
        command
    }

    /// The file that says which cluster, if it is not the one of this machine.
    pub(super) fn conf(&self) -> Option<String> {
        self.conf.clone().or_else(|| std::env::var(CONF).ok())
    }

    /// Submits a job; its number.
    pub(super) fn submit(&self, job: &Submission<'_>) -> Result<u64, Failure> {
        let mut command = self.command("sbatch");
        // A job gets the environment of who submits it.
        command.env_clear().envs(job.environment.iter().map(|(name, value)| (name, value)));
        if let Some(conf) = self.conf() {
            command.env(CONF, conf);
        }
        // A per cent sign begins what Slurm puts in.
        let path = |path: &str| path.replace('%', "%%");
        command
            // What comes too late must not empty files of the one that runs.
            .args(["--parsable", "--no-requeue", "--open-mode=append"])
            .arg(format!("--job-name={}", job.name))
            .arg(format!("--ntasks={}", job.processors))
            .arg(format!("--output={}", path(job.output)))
            .arg(format!("--error={}", path(job.errors)));
        if let Some(wall) = job.wall {
            command.arg(format!("--time={}", minutes(wall)));
        }
        if let Some(bytes) = job.memory_bytes {
            command.arg(format!("--mem={}M", bytes.div_ceil(1 << 20)));
        }
        command.args(self.slurm.partition.iter().map(|partition| format!("--partition={partition}")));
        command.args(self.slurm.account.iter().map(|account| format!("--account={account}")));
        // Last, as the last one counts.
        command.args(&self.slurm.options).arg(job.script).args(job.arguments);
        let said = said(command)?;
        // With the name of the cluster behind, where there are several.
        let id = said.trim().split(';').next().unwrap_or_default().lines().last().unwrap_or_default();
        id.parse().map_err(|_| Failure::Away(format!("sbatch said {said:?}, which is no number of a job")))
    }

    /// All jobs of this user whose names begin so; `all` counts those of others, too.
    pub(super) fn jobs(&self, prefix: &str, all: bool) -> Result<Rows, Failure> {
        let mut command = self.command("squeue");
        command.args(["--noheader", "--states=all", "--format=%i|%T|%r|%C|%U|%P|%j"]);
        let user = getuid().as_raw();
        if !all {
            command.arg(format!("--user={user}"));
        }
        let ours = Ours { prefix: prefix.to_string(), user, partition: self.slurm.partition.clone() };
        run(command, move |pipe| rows(pipe, &ours))?
            .map_err(|error| Failure::Away(format!("what squeue says cannot be read: {error}")))
    }

    /// The processors that jobs can have.
    pub(super) fn processors(&self) -> Result<u32, Failure> {
        let mut command = self.command("sinfo");
        command.args(["--noheader", "--format=%C"]);
        command.args(self.slurm.partition.iter().map(|partition| format!("--partition={partition}")));
        let said = said(command)?;
        // Those of jobs, idle ones, others, all; a line for each partition.
        let all = said.lines().filter_map(|line| line.trim().rsplit('/').next()?.parse().ok());
        all.max()
            .ok_or_else(|| Failure::Refused(format!("sinfo said {said:?}, which is no number of processors")))
    }

    /// Has jobs cancelled. Whether they are says the next look at them.
    pub(super) fn cancel(&self, ids: &[u64]) -> Result<(), Failure> {
        let mut command = self.command("scancel");
        command.args(ids.iter().map(u64::to_string));
        said(command).map(drop)
    }
}

/// Jobs of Slurm.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Rows {
    /// By the rest of their names; several where one was submitted twice, as nobody could say that it was.
    pub(super) by_name: BTreeMap<String, Vec<Row>>,
    /// Processors of others' jobs that run or wait to.
    pub(super) foreign: u32,
}

/// What `squeue` says of our jobs, and of all others.
fn rows(said: impl Read, ours: &Ours) -> io::Result<Rows> {
    let Rows { mut by_name, mut foreign } = Rows::default();
    for line in BufReader::new(said).split(b'\n') {
        let line = line?;
        let line = String::from_utf8_lossy(&line);
        let fields: Vec<&str> = line.trim().splitn(7, '|').collect();
        let [id, state, reason, processors, user, partition, name] = fields[..] else { continue };
        // Names of ours are names of files.
        let is_name = |name: &&str| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '.');
        let name =
            name.strip_prefix(ours.prefix.as_str()).filter(is_name).filter(|_| user.parse() == Ok(ours.user));
        let Some(name) = name else {
            let is_here =
                ours.partition.as_ref().is_none_or(|ours| partition.split(',').any(|one| one == ours));
            let is_load =
                !matches!(meaning(state, reason), Meaning::Ended { .. } | Meaning::Cut(_) | Meaning::Held);
            if is_here && is_load {
                // Arrays that wait are one line.
                foreign = u32::saturating_add(foreign, processors.parse().unwrap_or(0));
            }
            continue;
        };
        let Ok(id) = id.parse() else { continue };
        let row = Row { id, state: state.to_string(), reason: reason.to_string() };
        by_name.entry(name.to_string()).or_default().push(row);
    }
    Ok(Rows { by_name, foreign })
}

/// A time as Slurm reads it, which counts minutes.
fn minutes(wall: Duration) -> String {
    wall.as_secs().div_ceil(60).max(1).to_string()
}

/// What a command says that succeeds.
fn said(command: Command) -> Result<String, Failure> {
    run(command, |pipe| text(pipe))
}

/// What is read of what a command says that succeeds.
fn run<T: Send + 'static>(
    mut command: Command,
    reads: impl FnOnce(&mut dyn Read) -> T + Send + 'static,
) -> Result<T, Failure> {
    let name = command.get_program().to_string_lossy().into_owned();
    let refused = |error: io::Error| Failure::Refused(format!("{name} cannot be run: {error}"));
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(refused)?;
    let (output, errors) = (child.stdout.take(), child.stderr.take());
    let output = read(output, QUEUE_MAX, reads).map_err(refused)?;
    let errors = read(errors, SAID_MAX, |pipe| text(pipe)).map_err(refused)?;
    let deadline = Instant::now() + PATIENCE;
    let status = loop {
        match child.try_wait().map_err(refused)? {
            Some(status) => break status,
            None if Instant::now() > deadline => {
                // An error means that it has ended just now.
                let _ = child.kill();
                let _ = child.wait();
                return Err(Failure::Away(format!("{name} took longer than {PATIENCE:?}")));
            }
            None => std::thread::sleep(LOOK),
        }
    };
    let output = output.join().map_err(|_| Failure::Away(format!("what {name} says cannot be read")))?;
    let errors = errors.join().unwrap_or_default();
    if status.success() {
        return Ok(output);
    }
    let reason = format!("{name} ended with {status}: {}", errors.trim());
    let lower = errors.to_lowercase();
    Err(match AWAY.iter().any(|words| lower.contains(words)) {
        true => Failure::Away(reason),
        false => Failure::Refused(reason),
    })
}

fn read<T: Send + 'static>(
    pipe: Option<impl Read + Send + 'static>,
    most: u64,
    reads: impl FnOnce(&mut dyn Read) -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    Builder::new().stack_size(STACK).spawn(move || match pipe {
        // What is beyond the limit is not waited for: the pipe closes, and the command fails with it.
        Some(pipe) => reads(&mut pipe.take(most)),
        None => reads(&mut io::empty()),
    })
}

fn text(pipe: &mut dyn Read) -> String {
    let mut bytes = Vec::new();
    // What was read before an error may say what it was.
    let _ = pipe.take(SAID_MAX).read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_of_names_that_begin_so() {
        let said = "7|RUNNING|None|2|5|main|sg-a-1.1\n9|PENDING|(JobHeldUser)|2|5|main|sg-a-1.1\n\
                    8|FAILED|NonZeroExitCode|1|5|main|sg-a-2.3\n5|RUNNING|None|4|5|main|sg-b-1.1\nnonsense\n\
                    6_2|RUNNING|None|1|5|main|sg-a-9\n3|RUNNING|None|8|6|main|sg-a-4.1\n2|PENDING|None|16|6|big,main|x\n\
                    1|RUNNING|None|64|6|big|x\n4|COMPLETED|None|32|6|main|x\n10|PENDING|JobHeldUser|32|6|main|x\n\
                    11|RUNNING|None|128|5|main|sg-a-../1|2\n";
        let rows = rows(
            said.as_bytes(),
            &Ours { prefix: "sg-a-".to_string(), user: 5, partition: Some("main".to_string()) },
        );
        let row =
            |id, state: &str, reason: &str| Row { id, state: state.to_string(), reason: reason.to_string() };
        let by_name = BTreeMap::from([
            ("1.1".to_string(), vec![row(7, "RUNNING", "None"), row(9, "PENDING", "(JobHeldUser)")]),
            ("2.3".to_string(), vec![row(8, "FAILED", "NonZeroExitCode")]),
        ]);
        assert_eq!(rows.unwrap(), Rows { by_name, foreign: 4 + 8 + 16 + 128 });
    }

    #[test]
    fn slurm_counts_minutes_and_a_job_has_one_at_least() {
        for (seconds, written) in [(0, "1"), (1, "1"), (60, "1"), (61, "2"), (7200, "120")] {
            assert_eq!(minutes(Duration::from_secs(seconds)), written);
        }
    }

    #[test]
    fn who_is_away_is_told_from_who_refuses() {
        let failed = |text: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", "echo \"$0\" >&2; exit 1", text]);
            said(command).unwrap_err()
        };
        let away = "sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)";
        assert!(matches!(failed(away), Failure::Away(reason) if reason.contains("connect failure")));
        let refused =
            "sbatch: error: Batch job submission failed: Requested node configuration is not available";
        assert!(matches!(failed(refused), Failure::Refused(reason) if reason.contains("not available")));
        assert!(matches!(said(Command::new("/nowhere/sbatch")), Err(Failure::Refused(_))));
    }
}
