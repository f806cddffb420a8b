//! Sweeps that other machines compute: a plan is a folder of chunks, anybody computes one, and one process collects.
//!
//! [`folder`] is what they share, [`mod@cut`] how many runs make a chunk, [`work`] computes one and [`collect`] writes what came of
//! it into the database. [`engines`] has others compute them: [`slurm`], [`exec`], and [`kubernetes`], which gets manifests.

pub mod collect;
pub mod cut;
pub mod engines;
pub mod exec;
pub mod folder;
pub mod kubernetes;
mod page;
pub mod slurm;
pub mod work;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use experiments::exit;
use experiments::interrupt::Interrupt;
use experiments::terminal::{command_line, note, say};

use super::database::Database;
use super::file::Plan;
use super::provenance;
use collect::Collector;
use cut::Cost;
use engines::{Driven, Engine, Workers};
use folder::PlanFolder;

/// For how long a chunk computes, unless the user says otherwise: engines take up to a second to start one.
const AIM: Duration = Duration::from_secs(30);
/// Chunks that are named.
const NAMED: usize = 5;

/// Steps of a sweep that other machines compute
#[derive(Clone, Debug, clap::Subcommand)]
#[expect(missing_docs, reason = "a command has the words of its arguments")]
pub enum Step {
    Plan(PlanArgs),
    Work(work::WorkArgs),
    Collect(collect::CollectArgs),
}

/// Write the runs of a sweep into a folder, in chunks that any machine can compute
///
/// Some runs are tried first, for 20 seconds at most, to learn what one costs: a chunk computes for half a minute and more.
///
/// Exit codes: 0 planned, 2 usage, 3 unreadable input, or the folder is there, 4 stopped.
#[derive(Clone, Debug, clap::Args)]
pub struct PlanArgs {
    /// Sweep file
    #[arg(value_name = "SWEEP.toml")]
    pub sweep: PathBuf,

    /// Folder that is made, where all machines see it
    #[arg(long, value_name = "PLAN")]
    pub out: PathBuf,

    /// Folder that relative paths of logs start from, in place of what the file says
    #[arg(long, value_name = "DIR")]
    pub traces: Option<PathBuf>,

    /// How much a chunk computes
    #[command(flatten)]
    pub size: Size,
}

/// How much a chunk computes.
#[derive(Clone, Debug, clap::Args)]
pub struct Size {
    /// Runs of a chunk [default: as many as compute for half a minute]
    #[arg(long, value_name = "RUNS")]
    pub chunk: Option<usize>,
}

/// Runs a step.
///
/// # Errors
/// If something fails that should not.
pub fn command(step: &Step) -> anyhow::Result<u8> {
    match step {
        Step::Plan(args) => plan(args),
        Step::Work(args) => work::command(args),
        Step::Collect(args) => collect::command(args),
    }
}

fn plan(args: &PlanArgs) -> anyhow::Result<u8> {
    let plan = match load(&args.sweep, args.traces.as_deref()) {
        Ok(plan) => plan,
        Err(reason) => {
            eprintln!("error: failed to {reason}");
            return Ok(exit::INPUT);
        }
    };
    let interrupt = Interrupt::saying("stopping; no plan is written")?;
    let todo: Vec<usize> = (0..plan.runs.len()).collect();
    let chunks = match chunks(&plan, &todo, &args.size, &interrupt)? {
        Ok(chunks) => chunks,
        Err(code) => return Ok(code),
    };
    let folder = match PlanFolder::write(&args.out, &plan, &chunks) {
        Ok(folder) => folder,
        Err(error) => {
            eprintln!("error: failed to {error}");
            return Ok(exit::INPUT);
        }
    };
    let place = folder.path().display();
    say(&format!(
        "{} runs in {} chunks, 0 to {}\ncompute each: stealgrid sweep work {place} CHUNK\nthen: stealgrid sweep collect {place}\n",
        folder.head.runs,
        folder.head.chunks,
        folder.head.chunks.saturating_sub(1),
    ))?;
    Ok(exit::DONE)
}

/// A sweep whose logs are named so that other machines find them, with what made its rows.
pub(super) fn load(sweep: &Path, traces: Option<&Path>) -> Result<Plan, String> {
    let absolute =
        |path: &Path| std::path::absolute(path).map_err(|cause| format!("use {}: {cause}", path.display()));
    let traces = traces.map(absolute).transpose()?;
    let mut plan = Plan::load(&absolute(sweep)?, traces.as_deref()).map_err(|error| error.to_string())?;
    provenance::comment(&mut plan)?;
    Ok(plan)
}

/// Places of runs, chunk by chunk; or the exit code if there are none.
fn chunks(
    plan: &Plan,
    todo: &[usize],
    size: &Size,
    interrupt: &Interrupt,
) -> anyhow::Result<Result<Vec<Vec<usize>>, u8>> {
    let most = match size.chunk {
        Some(0) => {
            eprintln!("error: failed to understand --chunk: a chunk needs at least 1 run");
            return Ok(Err(exit::USAGE));
        }
        Some(most) => most,
        None => {
            let cost = Cost::measure(&Arc::new(plan.runs.clone()), todo, interrupt)?;
            if interrupt.is_set() {
                return Ok(Err(exit::INCOMPLETE));
            }
            let most = cost.runs_for(AIM);
            note(&match cost.runs {
                0 => "no run that was tried came to its end: a chunk has 1 run".to_string(),
                runs => format!(
                    "{runs} runs that were tried took {:.2} s: a chunk has up to {most} runs (--chunk)",
                    cost.wall.as_secs_f64()
                ),
            });
            most
        }
    };
    Ok(Ok(cut::cut(&plan.runs, todo, most)))
}

/// What `sweep --workers` needs to know beside the sweep.
pub(super) struct Spread<'a> {
    pub(super) workers: &'a Workers,
    pub(super) folder: Option<&'a Path>,
    pub(super) size: &'a Size,
    pub(super) attempts: u32,
    /// Commands at a time, where each chunk has its own.
    pub(super) at_once: usize,
}

/// Plans a sweep, unless it is planned, has an engine compute its chunks, and collects.
pub(super) fn spread(
    spread: &Spread<'_>,
    plan: &Plan,
    todo: &[usize],
    database: &mut Database,
    interrupt: &Interrupt,
) -> anyhow::Result<u8> {
    let first = spread.folder.map_or_else(|| database.path().with_extension("plan"), Path::to_path_buf);
    let folder = match open(&first, plan, todo, database)? {
        Ok(Some(folder)) => folder,
        Ok(None) if todo.is_empty() => {
            say(&format!("nothing is left to compute\nresults: {}\n", database.path().display()))?;
            return Ok(exit::DONE);
        }
        Ok(None) => {
            let chunks = match chunks(plan, todo, spread.size, interrupt)? {
                Ok(chunks) => chunks,
                Err(code) => return Ok(code),
            };
            match PlanFolder::write(&next(&first), plan, &chunks) {
                Ok(folder) => folder,
                Err(error) => {
                    eprintln!("error: failed to {error}");
                    return Ok(exit::INPUT);
                }
            }
        }
        Err(reason) => {
            eprintln!("error: failed to {reason}");
            return Ok(exit::INPUT);
        }
    };
    note(&format!(
        "{} chunks in {}; how far it is: progress.html in it",
        folder.head.chunks,
        folder.path().display()
    ));
    let mut collector = Collector::new(&folder, database)?;
    collector.take_new(database)?;
    let mut engine: Box<dyn Engine> = match spread.workers {
        Workers::Slurm(options) => match slurm::Slurm::begin(options.clone(), &folder) {
            Ok(slurm) => Box::new(slurm),
            Err(error) => {
                eprintln!("error: {error:#}");
                return Ok(exit::INPUT);
            }
        },
        Workers::Exec(options) => Box::new(exec::Exec::new(options.clone(), spread.at_once)),
        Workers::Kubernetes(options) => return by_hand(options, &folder, collector, database),
    };
    let driven = engines::drive(&mut *engine, &folder, &mut collector, database, spread.attempts, interrupt)?;
    if let Driven::Over { lost, refused } = &driven {
        if let Some(reason) = refused {
            eprintln!("error: {} takes nothing: {reason}", spread.workers);
        }
        for chunk in lost.iter().take(NAMED) {
            eprintln!(
                "error: chunk {chunk} has no result after {} attempts; see {}",
                spread.attempts,
                folder.logs().display()
            );
        }
        if lost.len() > NAMED {
            eprintln!("error: {} more chunks have none", lost.len() - NAMED);
        }
    }
    let path = database.path().to_path_buf();
    collector.conclude(&path, || match &driven {
        Driven::Stopped(words) => format!("{words}: {}", command_line()),
        Driven::Over { .. } => format!("go on with: {}", command_line()),
    })
}

/// Manifests for what has no result yet. Whether they are used nobody here knows.
fn by_hand(
    options: &kubernetes::Options,
    folder: &PlanFolder,
    mut collector: Collector,
    database: &Database,
) -> anyhow::Result<u8> {
    collector.compare_all()?;
    let left: Vec<usize> =
        (0..folder.head.chunks).filter(|chunk| !collector.taken().contains(chunk)).collect();
    let manifests = kubernetes::write(options, folder, &left)?;
    collector.conclude(database.path(), || {
        let apply = |path: &PathBuf| format!("`kubectl apply -f {}`", path.display());
        let apply: Vec<String> = manifests.iter().map(apply).collect();
        format!("{} computes them; then collect with the same command: {}", apply.join(", "), command_line())
    })
}

/// The plan of this sweep that has something left to compute or to collect, if there is one; or why it is of no use.
fn open(
    first: &Path,
    plan: &Plan,
    todo: &[usize],
    database: &Database,
) -> anyhow::Result<Result<Option<PlanFolder>, String>> {
    let ended = database.ended()?;
    let unknown =
        todo.iter().map(|&index| &plan.runs[index].digest).filter(|digest| !ended.contains_key(*digest));
    let unknown: BTreeSet<&String> = unknown.collect();
    Ok(find(first, plan, &unknown))
}

fn find(first: &Path, plan: &Plan, unknown: &BTreeSet<&String>) -> Result<Option<PlanFolder>, String> {
    for path in numbered(first).take_while(|path| path.exists()) {
        let words = |error: folder::PlanError| error.to_string();
        let folder = PlanFolder::open(&path).map_err(words)?;
        let is_computed = folder.done().map_err(words)?.len() == folder.head.chunks;
        if is_computed && !folder.digests().map_err(words)?.iter().any(|digest| unknown.contains(digest)) {
            continue;
        }
        if folder.head.text != plan.text {
            return Err(format!(
                "go on in {}: it is a plan of another sweep file, or of other logs; collect what it has with `stealgrid sweep collect`, \
                 then remove it, or name another folder with --plan",
                path.display()
            ));
        }
        folder.check_program().map_err(words)?;
        return Ok(Some(folder));
    }
    Ok(None)
}

/// The first folder of these that is not there.
fn next(first: &Path) -> PathBuf {
    numbered(first).find(|path| !path.exists()).expect("numbers have no end")
}

/// A path, and the same with 2, 3 and so on behind it.
fn numbered(first: &Path) -> impl Iterator<Item = PathBuf> {
    let with = |number: usize| {
        let mut name = first.as_os_str().to_owned();
        name.push(format!("-{number}"));
        PathBuf::from(name)
    };
    std::iter::once(first.to_path_buf()).chain((2..).map(with))
}
