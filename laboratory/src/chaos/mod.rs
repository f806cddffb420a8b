//! `stealgrid chaos`: real runs whose processes are killed, stopped and starved, each drawn from one number.
//!
//! What a seed stands for is in [`schedule`], how it is carried out in [`round`], and what is said of what is left in
//! [`audit`]. Here is the command: many rounds, and what came of them.

pub mod audit;
pub mod disk;
pub mod experiment;
pub mod journals;
pub mod processes;
pub mod round;
pub mod schedule;

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;
use experiments::interrupt::Interrupt;
use experiments::terminal::left;
use experiments::{exit, folder};
use serde::Serialize;

use self::audit::Finding;
use self::experiment::Template;
use self::round::Ran;
use self::schedule::Schedule;

/// After so many failures no more rounds are begun.
const FAILURES_MAX: usize = 20;
/// What tells the folder of a round from one of somebody else.
const MARK: &str = "schedule.txt";

/// Run an experiment on real processes again and again, with faults against them, and audit what is left.
///
/// Each seed draws how the run is set up (journal, lease, restarts) and a schedule of faults: kills, also within
/// milliseconds of each other and of a start, stops, full disks, limits on files and descriptors, damaged journals, lost
/// directories, and coordinators that are killed and followed by `stealgrid attach`. What the run leaves is judged by
/// code that shares nothing with it. The schedule is the same for a seed; when it strikes is wall time, and cannot
/// be repeated to the microsecond.
///
/// Exit codes: 0 no check failed, 1 unexpected, 2 usage, 3 unreadable input, 4 stopped before the end, 5 a check failed.
#[derive(Clone, Debug, Args)]
pub struct ChaosArgs {
    /// The experiment file: plain jobs in SWF, [run] clock = "scaled:K"; see configs/chaos.toml
    #[arg(value_name = "EXPERIMENT")]
    experiment: PathBuf,

    /// How many seeds, a round each
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,

    /// The first seed
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    from: u64,

    /// Further seeds, before those
    #[arg(long, value_name = "SEEDS", value_delimiter = ',')]
    also: Vec<u64>,

    /// Rounds at once; each takes eight processes that mostly wait
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    parallel: u32,

    /// Most faults in a round
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100))]
    faults_max: u32,

    /// Of the faults these alone, by their places in the schedule, from 0
    #[arg(long, value_name = "PLACES", value_delimiter = ',')]
    only: Option<Vec<usize>>,

    /// Begin no more rounds after so many seconds
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<u64>,

    /// A folder for rounds, each in one of its own
    #[arg(long, value_name = "DIR", default_value = "out/chaos")]
    out: PathBuf,

    /// Keep the folders of rounds that passed, too
    #[arg(long)]
    keep: bool,

    /// Print the schedules and run nothing
    #[arg(long)]
    draw: bool,

    /// Print the summary as JSON
    #[arg(long)]
    json: bool,
}

/// A round that failed.
#[derive(Clone, Debug, Serialize)]
struct Failure {
    seed: u64,
    findings: Vec<Finding>,
    folder: PathBuf,
    repeat: String,
}

/// What the command prints.
#[derive(Clone, Debug, Default, Serialize)]
struct Summary {
    rounds: u64,
    first: u64,
    seconds: f64,
    /// Whether the disks that were full were file systems; else limits on the size of files stood in for them.
    file_systems: bool,
    /// Faults that were carried out, by name.
    faults: BTreeMap<&'static str, u64>,
    faults_missed: u64,
    coordinators_attached: u64,
    jobs_ended: u64,
    jobs_killed: u64,
    jobs_missing: u64,
    rounds_with_missing_jobs: u64,
    jobs_reported_twice: u64,
    executions_beside: u64,
    failures: Vec<Failure>,
}

/// Runs the command.
///
/// # Errors
/// If a round cannot be set up: no folder, or no process.
pub fn command(args: &ChaosArgs) -> anyhow::Result<u8> {
    let template = match Template::read(&args.experiment) {
        Ok(template) => template,
        Err(reason) => {
            eprintln!("error: failed to {reason}");
            return Ok(exit::INPUT);
        }
    };
    let shape = template.shape(args.faults_max as usize);
    let mut seeds = args.also.clone();
    seeds.extend(
        (0..args.seeds).map(|place| args.from.wrapping_add(place)).filter(|seed| !args.also.contains(seed)),
    );
    if args.draw {
        let texts: Vec<String> = seeds.into_iter().map(|seed| drawn(seed, shape, args).to_string()).collect();
        experiments::terminal::say(&texts.concat())?;
        return Ok(exit::DONE);
    }
    processes::check().context("failed to see processes; `stealgrid chaos` needs Linux 5.3 or later")?;
    folder::make(&args.out)?;
    let out = std::fs::canonicalize(&args.out)?;
    let interrupt = Interrupt::on_signals()?;
    let file_systems = disk::can_mount(&out);
    if !file_systems {
        eprintln!(
            "note: no file system may be mounted here; limits on the size of files stand in for full disks"
        );
    }
    let begun = Instant::now();
    let rounds = Rounds {
        args,
        template: &template,
        shape,
        out: &out,
        file_systems,
        interrupt: &interrupt,
        begun,
        all: seeds.len() as u64,
    };
    let summary = Summary { first: args.from, file_systems, ..Summary::default() };
    let shared = Mutex::new(Shared { seeds: seeds.into(), summary, stopped: false });
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..args.parallel).map(|_| scope.spawn(|| rounds.run(&shared))).collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, anyhow::Result<()>>| {
            thread.join().expect("a round does not panic")
        };
        // All of them end before this does.
        threads.into_iter().map(join).fold(Ok(()), Result::and)
    })?;
    let Shared { mut summary, stopped, .. } = shared.into_inner().expect("nobody panicked");
    summary.failures.sort_by_key(|failure| failure.seed);
    summary.seconds = begun.elapsed().as_secs_f64();
    let text = match args.json {
        true => serde_json::to_string_pretty(&summary)? + "\n",
        false => summary.text(),
    };
    experiments::terminal::say(&text)?;
    Ok(match (summary.failures.is_empty(), stopped) {
        (false, _) => exit::OUT_OF_TOLERANCE,
        (true, true) => exit::INCOMPLETE,
        (true, false) => exit::DONE,
    })
}

/// What all rounds have in common.
struct Rounds<'a> {
    args: &'a ChaosArgs,
    template: &'a Template,
    shape: schedule::Shape,
    out: &'a Path,
    file_systems: bool,
    interrupt: &'a Interrupt,
    begun: Instant,
    /// How many there are to be.
    all: u64,
}

/// What is left to be done, and what came of the rest.
struct Shared {
    seeds: VecDeque<u64>,
    summary: Summary,
    stopped: bool,
}

impl Rounds<'_> {
    /// One round after another, until there is none left or nobody wants more. Others may do the same beside.
    fn run(&self, shared: &Mutex<Shared>) -> anyhow::Result<()> {
        let Rounds { args, out, .. } = *self;
        let lock = || shared.lock().expect("nobody panics with it");
        loop {
            let late = args.seconds.is_some_and(|most| self.begun.elapsed() >= Duration::from_secs(most));
            let next = {
                let mut shared = lock();
                let enough = late || shared.stopped || shared.summary.failures.len() >= FAILURES_MAX;
                shared.seeds.pop_front().filter(|_| !enough)
            };
            let Some(seed) = next else { return Ok(()) };
            let schedule = drawn(seed, self.shape, args);
            let round = Instant::now();
            let ran = folder_of_round(out, seed).and_then(|folder| {
                let ran = round::run(self.template, &schedule, &folder, self.file_systems, self.interrupt);
                Ok((ran?, folder))
            });
            let mut shared = lock();
            let (ran, folder) = match ran {
                Ok((Some(ran), folder)) => (ran, folder),
                Ok((None, _)) => {
                    shared.stopped = true;
                    return Ok(());
                }
                Err(error) => {
                    // The other rounds come to their end.
                    shared.stopped = true;
                    return Err(error);
                }
            };
            let passed = ran.audited.findings.is_empty();
            let (faults, attached) = (ran.struck.values().sum::<u64>(), ran.attached);
            shared.summary.add(seed, ran, args, &folder);
            eprintln!(
                "seed {seed}: {faults} faults, {attached} times attached, {:.1} s, {}; {} of {} rounds, {}",
                round.elapsed().as_secs_f64(),
                if passed { "passed" } else { "FAILED" },
                shared.summary.rounds,
                self.all,
                left(self.begun.elapsed(), shared.summary.rounds, self.all)
            );
            drop(shared);
            if passed && !args.keep {
                std::fs::remove_dir_all(&folder)
                    .with_context(|| format!("failed to remove {}", folder.display()))?;
            }
        }
    }
}

fn drawn(seed: u64, shape: schedule::Shape, args: &ChaosArgs) -> Schedule {
    let mut schedule = Schedule::draw(seed, shape);
    if let Some(places) = &args.only {
        schedule.keep(places);
    }
    schedule
}

/// An empty folder for a round. One that an earlier round has left is replaced.
fn folder_of_round(out: &Path, seed: u64) -> anyhow::Result<PathBuf> {
    let folder = out.join(seed.to_string());
    if folder.exists() {
        anyhow::ensure!(
            folder.join(MARK).exists(),
            "failed to begin a round: {} is there and is none of chaos; give --out another folder",
            folder.display()
        );
        std::fs::remove_dir_all(&folder)
            .with_context(|| format!("failed to replace {}", folder.display()))?;
    }
    std::fs::create_dir_all(&folder).with_context(|| format!("failed to make {}", folder.display()))?;
    Ok(folder)
}

impl Summary {
    fn add(&mut self, seed: u64, ran: Ran, args: &ChaosArgs, folder: &Path) {
        let Ran { audited, struck, missed, attached, .. } = ran;
        self.rounds += 1;
        for (name, count) in struck {
            *self.faults.entry(name).or_default() += count;
        }
        self.faults_missed += missed;
        self.coordinators_attached += attached;
        self.jobs_ended += audited.ended;
        self.jobs_killed += audited.killed;
        self.jobs_missing += audited.missing;
        self.rounds_with_missing_jobs += u64::from(audited.missing > 0);
        self.jobs_reported_twice += audited.repeated;
        self.executions_beside += audited.executions;
        if !audited.findings.is_empty() {
            let failure = Failure {
                seed,
                repeat: repeat(seed, args),
                folder: folder.to_path_buf(),
                findings: audited.findings,
            };
            eprint!("{}", failure.text());
            self.failures.push(failure);
        }
    }

    fn text(&self) -> String {
        let mut text: String = self.failures.iter().map(Failure::text).collect();
        let faults: Vec<String> = self.faults.iter().map(|(name, count)| format!("{count} {name}")).collect();
        text += &format!(
            "rounds               {} from seed {}, {} failed, in {:.0} s\n\
             faults               {}, of {} kinds: {}; {} more had nothing to hit\n\
             coordinators         {} attached\n\
             jobs                 {} ended, {} reported as killed, {} as missing in {} rounds, {} as run twice or perhaps\n\
             executions           {} beside those that count\n",
            self.rounds,
            self.first,
            self.failures.len(),
            self.seconds,
            self.faults.values().sum::<u64>(),
            self.faults.len(),
            faults.join(", "),
            self.faults_missed,
            self.coordinators_attached,
            self.jobs_ended,
            self.jobs_killed,
            self.jobs_missing,
            self.rounds_with_missing_jobs,
            self.jobs_reported_twice,
            self.executions_beside,
        );
        text
    }
}

impl Failure {
    /// The line that repeats it, and what was seen.
    fn text(&self) -> String {
        let seen: String =
            self.findings.iter().map(|Finding { check, what }| format!("  # {check}: {what}\n")).collect();
        format!("{}  # {}\n{seen}", self.repeat, self.folder.display())
    }
}

fn repeat(seed: u64, args: &ChaosArgs) -> String {
    let mut line = format!(
        "stealgrid chaos {} --seeds 1 --from {seed} --faults-max {}",
        args.experiment.display(),
        args.faults_max
    );
    if let Some(places) = &args.only {
        let places: Vec<String> = places.iter().map(usize::to_string).collect();
        line += &format!(" --only {}", places.join(","));
    }
    line
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        chaos: ChaosArgs,
    }

    #[test]
    fn a_printed_failure_can_be_typed() {
        let args =
            Line::parse_from(["chaos", "a.toml", "--seeds", "9", "--faults-max", "7", "--only", "0,3"]);
        let line = repeat(42, &args.chaos);
        let again = Line::parse_from(line.split(' ').skip(1)).chaos;
        assert_eq!((again.from, again.seeds, again.faults_max), (42, 1, 7));
        assert_eq!((again.only, again.experiment), (Some(vec![0, 3]), PathBuf::from("a.toml")));
    }

    #[test]
    fn a_folder_of_somebody_else_is_not_replaced() {
        let out = tempfile::tempdir().unwrap();
        let folder = folder_of_round(out.path(), 7).unwrap();
        std::fs::write(folder.join("mine"), "").unwrap();
        let error = folder_of_round(out.path(), 7).unwrap_err().to_string();
        assert!(error.contains("is none of chaos") && folder.join("mine").exists(), "{error}");
        std::fs::write(folder.join(MARK), "").unwrap();
        folder_of_round(out.path(), 7).unwrap();
        assert!(!folder.join("mine").exists());
    }
}
