//! `stealgrid rerun`: runs again what a result directory says it holds, and compares, byte for byte.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use experiments::drive::own::Driver;
use experiments::drive::{Sink, record, simulate};
use experiments::experiment::file::Written;
use experiments::experiment::jobs::{self, Jobs};
use experiments::experiment::resolved::EXPERIMENT;
use experiments::experiment::{Clock, Experiment};
use experiments::interrupt::Interrupt;
use experiments::terminal::{command_line, note, say};
use experiments::{exit, limits};
use outputs::{Manifest, ResultDirectory, Status};
use simulator::Checks;

/// Run again what a result directory holds, in virtual time, and compare the files byte for byte
///
/// For results of `simulate` and of `run --clock virtual`; a run by the wall clock is like no other to the byte. The
/// experiment is DIR/experiment.toml, and its logs must be those that DIR/manifest.json has the digests of.
///
/// Exit codes: 0 the same, 2 usage, 3 unreadable input or another log, 4 interrupted, 5 other results.
#[derive(Clone, Debug, clap::Args)]
pub struct RerunArgs {
    /// Directory of the results
    pub dir: PathBuf,

    /// Directory for the results of the second run [default: DIR with -again]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// Replace what is in that directory
    #[arg(long)]
    pub replace: bool,
}

/// Files that are the same in each run of an experiment in virtual time, whoever executes it.
const OF_EVENTS: [&str; 5] = [outputs::EVENTS, "jobs.csv", "migrations.csv", "schedule.swf", outputs::STEALS];
/// One that also says what a run was compared with.
const METRICS: &str = "metrics.json";

/// Runs the command.
///
/// # Errors
/// If something fails that should not.
pub fn command(args: &RerunArgs) -> anyhow::Result<u8> {
    let (mut experiment, jobs, manifest) = match again(&args.dir) {
        Ok(found) => found,
        Err(reason) => {
            eprintln!("error: failed to run {} again: {reason}", args.dir.display());
            return Ok(exit::INPUT);
        }
    };
    let now = outputs::version();
    if let Some(then) = manifest.versions.get("stealgrid").filter(|then| **then != now) {
        note(&format!("the results are of stealgrid {then}, and this is {now}"));
    }
    experiment.outputs.dir = args.out.clone().unwrap_or_else(|| {
        let mut dir = args.dir.clone().into_os_string();
        dir.push("-again");
        dir.into()
    });
    experiment.outputs.named = true;
    experiment.outputs.replace = args.replace;
    let interrupt = Interrupt::on_signals()?;
    let mut sink = Sink::new(&experiment, &jobs, Driver::Simulate)?;
    let ended =
        simulate::simulate(&experiment, &jobs, Checks::Cheap, &interrupt, &mut |event| sink.take(event))?;
    let is_partial = ended.status != Status::Complete;
    record(&experiment, &jobs, sink, ended, &interrupt, command_line())?;
    if is_partial {
        eprintln!("error: interrupted; nothing was compared");
        return Ok(exit::INCOMPLETE);
    }
    let simulated = manifest.driver == "simulate";
    let files = OF_EVENTS.iter().chain(simulated.then_some(&METRICS));
    let mut different = Vec::new();
    let mut compared = 0;
    for name in files {
        let (before, after) = (args.dir.join(name), experiment.outputs.dir.join(name));
        match (before.exists(), after.exists()) {
            (false, false) => {}
            (true, true) if same(&before, &after)? => compared += 1,
            (true, true) => different.push(name.to_string()),
            (false, true) => different.push(format!("{name} (not in {})", args.dir.display())),
            (true, false) => different.push(format!("{name} (not made again)")),
        }
    }
    let out = experiment.outputs.dir.display();
    if different.is_empty() {
        say(&format!("the same: {compared} files of {} and {out}, byte for byte\n", args.dir.display()))?;
        return Ok(exit::DONE);
    }
    let dir = args.dir.display();
    let hint = if different == [METRICS] {
        // Jobs and events are the same, which is all that `compare` looks at.
        format!("look at the two, as with `diff {dir}/{METRICS} {out}/{METRICS}`")
    } else {
        format!("`stealgrid compare {dir} {out}` says where jobs and events differ")
    };
    say(&format!("DIFFERENT: {}; {hint}\n", different.join(", ")))?;
    Ok(exit::OUT_OF_TOLERANCE)
}

/// The experiment of a directory and its jobs, or why there is none.
fn again(dir: &Path) -> Result<(Experiment, Jobs, Manifest), String> {
    let found = ResultDirectory::open(dir, limits::of_logs()).map_err(|error| error.to_string())?;
    let manifest = found.manifest().clone();
    if manifest.clock != Clock::Virtual.to_string() {
        return Err(format!(
            "it is of a run by the wall clock, and no two of these are the same; run it with `stealgrid run \
             {0}/{EXPERIMENT}`, or simulate it with `stealgrid simulate {0}/{EXPERIMENT}`",
            dir.display()
        ));
    }
    if let Status::Partial(reason) = &manifest.status {
        return Err(format!("it stopped before its end: {reason}"));
    }
    if !manifest.orders.is_empty() {
        return Err("orders were given while it ran, which no experiment has".to_string());
    }
    let path = dir.join(EXPERIMENT);
    let written = Written::load(&path).map_err(|error| error.to_string())?;
    let experiment = Experiment::resolve(&written).map_err(|error| error.to_string())?;
    let jobs = jobs::read(&experiment).map_err(|error| error.to_string())?;
    for (then, now) in manifest.provenance.logs.iter().zip(&jobs.logs) {
        if then.sha256 != now.sha256 {
            return Err(format!(
                "{} is another log than then: its SHA-256 is {}, it was {}",
                now.file, now.sha256, then.sha256
            ));
        }
    }
    Ok((experiment, jobs, manifest))
}

/// Whether two files have the same bytes.
fn same(one: &Path, other: &Path) -> anyhow::Result<bool> {
    let open = |path: &Path| {
        std::fs::File::open(path)
            .map(std::io::BufReader::new)
            .with_context(|| format!("failed to read {}", path.display()))
    };
    let (mut one, mut other) = (open(one)?.bytes(), open(other)?.bytes());
    loop {
        match (one.next().transpose()?, other.next().transpose()?) {
            (None, None) => return Ok(true),
            (left, right) if left != right => return Ok(false),
            _ => {}
        }
    }
}
