//! What runs the jobs of a node, as it is written, and what makes no sense of that. Starts nothing.

use std::path::PathBuf;
use std::time::Duration;

use scheduler::{JobSpec, LocalScheduler, Span, Strategy};
use serde::{Deserialize, Serialize};

use super::words::{self, WordError};

/// The least memory of a job: what this program needs itself, which sets the limit before it becomes the job.
pub const MEMORY_MIN: u64 = 64 << 20;
/// Bytes of each stream of a job that are kept if nobody says how many.
pub const OUTPUT_BYTES: u64 = 1 << 20;
/// The lowest priority that a process can ask for.
const NICE_MAX: u8 = 19;
/// How often Slurm is asked if nobody says how often. A job writes down its end itself; what Slurm alone knows may be so late.
const POLL_MILLIS: u32 = 2000;
/// The most often that Slurm may be asked.
const POLL_MILLIS_MIN: u32 = 200;

/// What a running job is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// A timer that is set to its run time.
    #[default]
    Timer,
    /// A command of the user on this machine.
    Process,
    /// A command of the user that is submitted to Slurm when the queue of the site starts it.
    Slurm,
    /// A command of the user that is submitted to Slurm when it joins the queue of the site, which is Slurm's.
    SlurmQueue,
}

impl By {
    /// The name in files.
    pub fn name(self) -> &'static str {
        match self {
            By::Timer => "timer",
            By::Process => "process",
            By::Slurm => "slurm",
            By::SlurmQueue => "slurm:queue",
        }
    }

    /// Whether Slurm runs jobs.
    pub fn is_slurm(self) -> bool {
        matches!(self, By::Slurm | By::SlurmQueue)
    }
}

/// After how long a job is killed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wall {
    /// Never.
    #[default]
    None,
    /// After what its user asked for, by the wall clock.
    Requested,
    /// After so many milliseconds of the wall clock.
    Millis(u64),
}

impl Wall {
    /// How long a job may run by the wall clock, in a run whose clock goes by this factor.
    pub(super) fn of(self, job: &JobSpec, factor: f64) -> Option<Duration> {
        match self {
            Wall::None => None,
            Wall::Requested => Some(wall_time(job.requested, factor)),
            Wall::Millis(millis) => Some(Duration::from_millis(millis)),
        }
    }
}

/// Trace time by the wall clock.
pub(super) fn wall_time(span: Span, factor: f64) -> Duration {
    Duration::from_secs_f64(span.as_secs_f64().max(0.0) / factor)
}

/// How a cluster under Slurm is submitted to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Slurm {
    /// The file that says which cluster: `SLURM_CONF` of its commands. None: the one of this machine. `{site}` is the name of the site.
    pub conf: Option<String>,
    /// The partition.
    pub partition: Option<String>,
    /// The account.
    pub account: Option<String>,
    /// Further options of `sbatch`, each a word as in `--qos=low`.
    pub options: Vec<String>,
    /// How often the cluster is asked what it knows of the jobs, in milliseconds; one call for all of them.
    pub poll_millis: u32,
}

impl Default for Slurm {
    fn default() -> Slurm {
        Slurm { conf: None, partition: None, account: None, options: Vec::new(), poll_millis: POLL_MILLIS }
    }
}

/// What runs the jobs of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// What a running job is.
    pub by: By,
    /// The program and its arguments; `{job}` and the like stand for what is known of a job. No shell reads it.
    pub command: Vec<String>,
    /// Names of variables of the node that jobs get, too.
    pub environment: Vec<String>,
    /// Where the output of jobs goes, made if missing.
    pub folder: Option<PathBuf>,
    /// How much lower the priority of processes is, from 0 to 19.
    pub nice: u8,
    /// Most bytes of memory that each process of a job may have.
    pub memory_bytes: Option<u64>,
    /// After how long a job is killed.
    pub wall: Wall,
    /// Bytes of each stream of a job that are kept; the rest is left out.
    pub output_bytes: u64,
    /// The cluster.
    pub slurm: Slurm,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            by: By::Timer,
            command: Vec::new(),
            environment: Vec::new(),
            folder: None,
            nice: 0,
            memory_bytes: None,
            wall: Wall::None,
            output_bytes: OUTPUT_BYTES,
            slurm: Slurm::default(),
        }
    }
}

/// Why nothing could run jobs so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// There is nothing to run.
    #[error("command: by {0} each job is a command, as in [\"sleep\", \"{{run_time}}\"]")]
    NoCommand(&'static str),
    /// A word that stands for nothing.
    #[error("command: {0}")]
    Word(WordError),
    /// Something that timers do not have.
    #[error("{0}: a timer has none; write by = \"process\" or by = \"slurm\", or leave it out")]
    Timer(&'static str),
    /// There is nowhere to write to.
    #[error("folder: the output of jobs needs one")]
    NoFolder,
    /// Whoever decides what starts at several sites at once, or from outside, cannot leave that to Slurm.
    #[error(
        "{0} says itself what starts now, and where the queue is Slurm's (\"slurm:queue\") nobody but Slurm does; write \"slurm\""
    )]
    Starts(String),
    /// No priority.
    #[error("nice: {0} is not from 0 to {NICE_MAX}")]
    Nice(u8),
    /// No priority of the system.
    #[error("nice: Slurm has priorities of its own; leave it out, or write slurm.options = [\"--nice={0}\"]")]
    SlurmNice(u8),
    /// Too little memory for anything.
    #[error("memory: {0} bytes are less than a process needs to begin; write 64MB or more")]
    Memory(u64),
    /// No time to run.
    #[error("wall: a job needs time to run; write 90s, \"requested\", or \"none\"")]
    Wall,
    /// No option of sbatch.
    #[error("slurm.options: {0:?} is not an option of sbatch as in \"--qos=low\"")]
    Option(String),
    /// An option that the node gives itself.
    #[error("slurm.options: {0:?} is what the node says of each job; leave it out")]
    OwnOption(String),
    /// A controller that would be asked all the time.
    #[error("slurm.poll: {0} ms are less than {POLL_MILLIS_MIN} ms, and many ask")]
    Poll(u32),
    /// A variable that is an option.
    #[error("environment: {0:?} is an option of sbatch; write it in slurm.options, or leave it out")]
    OptionVariable(String),
    /// A name of a variable that is none.
    #[error("environment: {0:?} is no name of a variable")]
    Variable(String),
}

/// Options of `sbatch` by which a node finds its jobs, or by which there would be none, and the short ones that mean the same.
const OWN_OPTIONS: [&str; 28] = [
    "--job-name",
    "--output",
    "--error",
    "--ntasks",
    "--time",
    "--parsable",
    "--partition",
    "--account",
    "--wrap",
    "--array",
    "--wait",
    "--clusters",
    "--test-only",
    "--uid",
    "--help",
    "--usage",
    "--version",
    "-h",
    "-V",
    "-M",
    "-J",
    "-o",
    "-e",
    "-n",
    "-t",
    "-p",
    "-A",
    "-a",
];

/// Short options of `sbatch` that have no value: what follows is another.
const FLAGS: &str = "HIkOQsv";

/// Whether an option is one of [`OWN_OPTIONS`]. Of a long one a beginning is enough for `sbatch`.
fn is_own(option: &str, name: &str) -> bool {
    if option.starts_with("--") {
        return OWN_OPTIONS.iter().any(|own| own.starts_with("--") && own.starts_with(name));
    }
    let flags = option[1..].chars().take_while(|letter| FLAGS.contains(*letter)).count();
    let mut letters = option[1..].chars().take(flags + 1);
    letters.any(|letter| OWN_OPTIONS.contains(&format!("-{letter}").as_str()))
}

impl Settings {
    /// Whether jobs are timers, as nobody says anything else.
    pub fn is_timer(&self) -> bool {
        *self == Settings::default()
    }

    /// Whether it can go with a strategy and a local scheduler.
    ///
    /// # Errors
    /// If it cannot.
    pub fn goes_with(&self, strategy: &Strategy, local: LocalScheduler) -> Result<(), SettingsError> {
        let nature = strategy.nature();
        if self.by != By::SlurmQueue {
            Ok(())
        } else if nature.offers || nature.coallocates {
            Err(SettingsError::Starts(strategy.to_string()))
        } else if nature.queues && local == LocalScheduler::External {
            Err(SettingsError::Starts("a local scheduler of yours".to_string()))
        } else {
            Ok(())
        }
    }

    /// Whether it makes sense.
    ///
    /// # Errors
    /// The first thing that does not.
    pub fn check(&self) -> Result<(), SettingsError> {
        let Settings { by, command, slurm, .. } = self;
        if *by == By::Timer {
            let said = [
                ("command", !command.is_empty()),
                ("environment", !self.environment.is_empty()),
                ("nice", self.nice != 0),
                ("memory", self.memory_bytes.is_some()),
                ("wall", self.wall != Wall::None),
                ("slurm", *slurm != Slurm::default()),
            ];
            let said = said.into_iter().find(|(_, is_said)| *is_said);
            return said.map_or(Ok(()), |(what, _)| Err(SettingsError::Timer(what)));
        }
        words::check(command).map_err(SettingsError::Word)?;
        if command.first().is_none_or(String::is_empty) {
            return Err(SettingsError::NoCommand(by.name()));
        }
        if self.nice > NICE_MAX {
            return Err(SettingsError::Nice(self.nice));
        }
        if let Some(bytes) = self.memory_bytes.filter(|bytes| *bytes < MEMORY_MIN) {
            return Err(SettingsError::Memory(bytes));
        }
        if self.wall == Wall::Millis(0) {
            return Err(SettingsError::Wall);
        }
        let is_name = |name: &&String| !name.is_empty() && !name.contains(['=', '\0']);
        if let Some(name) = self.environment.iter().find(|name| !is_name(name)) {
            return Err(SettingsError::Variable(name.clone()));
        }
        if by.is_slurm() {
            if self.nice > 0 {
                return Err(SettingsError::SlurmNice(self.nice));
            }
            if slurm.poll_millis < POLL_MILLIS_MIN {
                return Err(SettingsError::Poll(slurm.poll_millis));
            }
            let is_option = |name: &&String| name.starts_with("SBATCH_") || name.starts_with("SLURM_");
            if let Some(name) = self.environment.iter().find(is_option) {
                return Err(SettingsError::OptionVariable(name.clone()));
            }
            for option in &slurm.options {
                let name = option.split('=').next().unwrap_or_default();
                if !option.starts_with('-') || option.contains('\0') {
                    return Err(SettingsError::Option(option.clone()));
                }
                if is_own(option, name) {
                    return Err(SettingsError::OwnOption(option.clone()));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process() -> Settings {
        let command = ["sleep", "{run_time}"].map(str::to_string).to_vec();
        Settings { by: By::Process, command, ..Settings::default() }
    }

    #[test]
    fn nothing_said_is_a_timer_and_is_written_as_nothing() {
        assert!(Settings::default().is_timer() && Settings::default().check().is_ok());
        assert_eq!(serde_json::from_str::<Settings>("{}").unwrap(), Settings::default());
        let written = serde_json::to_string(&process()).unwrap();
        assert_eq!(serde_json::from_str::<Settings>(&written).unwrap(), process());
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        let options = |option: &str| {
            let options = vec![option.to_string()];
            Settings { by: By::Slurm, slurm: Slurm { options, ..Slurm::default() }, ..process() }
        };
        let words = |words: &[&str]| words.iter().map(|word| word.to_string()).collect::<Vec<_>>();
        for (settings, expected) in [
            (Settings { by: By::Timer, ..process() }, "command: a timer has none"),
            (Settings { command: Vec::new(), ..process() }, "each job is a command"),
            (Settings { command: words(&["sleep", "{runtime}"]), ..process() }, "{runtime}"),
            (Settings { nice: 20, ..process() }, "from 0 to 19"),
            (Settings { memory_bytes: Some(1 << 20), ..process() }, "64MB or more"),
            (Settings { wall: Wall::Millis(0), ..process() }, "90s"),
            (Settings { environment: words(&["A=B"]), ..process() }, "no name of a variable"),
            (options("qos=low"), "not an option of sbatch"),
            (options("--job-name=mine"), "leave it out"),
            (options("-Jmine"), "leave it out"),
            (options("-HJmine"), "leave it out"),
            (options("--job-nam=mine"), "leave it out"),
            (options("--clusters=other"), "leave it out"),
            (options("--cluster=other"), "leave it out"),
            (options("-Mother"), "leave it out"),
            (
                Settings { by: By::Slurm, environment: words(&["SLURM_CLUSTERS"]), ..process() },
                "option of sbatch",
            ),
        ] {
            let error = settings.check().unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        assert_eq!(
            [process(), options("--qos=low"), options("--no-kill"), options("--requeue"), options("-HcM")]
                .map(|good| good.check()),
            [(); 5].map(Ok)
        );
    }
}
