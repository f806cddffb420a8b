//! `stealgrid sweep`: many simulations from one file, on all cores, into one database.
//!
//! [`mod@file`] says what is run, [`pool`] who runs it, [`worker`] is the process that does, [`measure`] what is kept of a
//! run, and [`database`] where. Reports read the database, or what [`export`] made
//! of it for a repository ([`source`]); [`study`] makes documents of it.

mod check;
pub mod chunks;
pub mod database;
pub mod export;
pub mod file;
pub mod measure;
pub mod plots;
pub mod pool;
mod progress;
mod provenance;
pub mod report;
pub mod reproduce;
pub mod roles;
pub mod source;
pub mod study;
pub mod worker;

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use ::report::quantity::grouped;
use experiments::exit;
use experiments::interrupt::Interrupt;
use experiments::terminal::{command_line, say};

use chunks::{Size, Spread, Step};
use database::{Database, Ending};
use file::Plan;
use pool::Pool;
use progress::{FAILURES_NAMED, Progress};

/// Run many simulations from one file, on all cores, into one database
///
/// Runs that are in the database are not run again: stop a sweep at any time and start it again with the same command.
/// Runs are told apart by a digest of the whole experiment, so that after a change of the file only what changed is run.
/// `stealgrid report` shows the results, `stealgrid export` writes them as CSV or Parquet.
///
/// With `--workers` others compute: jobs of Slurm, pods of Kubernetes, or whatever a command starts. `sweep plan`, `sweep work` and
/// `sweep collect` are the steps of that.
///
/// Exit codes: 0 every run is done, 2 usage, 3 unreadable input, 4 stopped before the end, or runs are left, 5 a run failed, a proved
/// bound does not hold, or two results of one run differ.
#[derive(Clone, Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct SweepArgs {
    /// One step alone
    #[command(subcommand)]
    pub step: Option<Step>,

    /// Sweep file
    #[arg(value_name = "SWEEP.toml", required = true)]
    pub sweep: Option<PathBuf>,

    /// Database of the results [default: out/NAME.db]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,

    /// Worker processes [default: one per core]
    #[arg(long, value_name = "N")]
    pub jobs: Option<usize>,

    /// How long to wait for a database that another program has locked, each time, as in 30s or 1h
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = links::quantity::time)]
    pub wait: Duration,

    /// Folder that relative paths of logs start from, in place of what the file says
    #[arg(long, value_name = "DIR")]
    pub traces: Option<PathBuf>,

    /// Run failed runs again
    #[arg(long)]
    pub retry_failed: bool,

    /// Say what would be run, and run nothing
    #[arg(long)]
    pub dry_run: bool,

    /// Who computes: slurm[:OPTIONS of sbatch], kubernetes:image=IMAGE,claim=CLAIM or exec:COMMAND, in which {chunk} is a number and {plan} the folder
    #[arg(long, value_name = "ENGINE")]
    pub workers: Option<chunks::engines::Workers>,

    /// Folder for the chunks, where all machines see it [default: that of the database, with .plan]
    #[arg(long, value_name = "DIR", requires = "workers")]
    pub plan: Option<PathBuf>,

    /// How much a chunk computes
    #[command(flatten)]
    pub size: Size,

    /// How often a chunk is offered that ends without a result
    #[arg(long, value_name = "N", default_value_t = 3, requires = "workers", value_parser = clap::value_parser!(u32).range(1..))]
    pub attempts: u32,
}

/// Runs the command.
///
/// # Errors
/// If something fails that should not.
pub fn command(args: &SweepArgs) -> anyhow::Result<u8> {
    if let Some(step) = &args.step {
        return chunks::command(step);
    }
    let sweep = args.sweep.as_ref().expect("it is required where there is no step");
    let loaded = match (&args.workers, args.dry_run) {
        (Some(_), false) => chunks::load(sweep, args.traces.as_deref()),
        _ => Plan::load(sweep, args.traces.as_deref()).map_err(|error| error.to_string()),
    };
    let mut plan = match loaded {
        Ok(plan) => plan,
        Err(reason) => {
            eprintln!("error: failed to {reason}");
            return Ok(exit::INPUT);
        }
    };
    let jobs = match args.jobs {
        Some(0) => {
            eprintln!("error: failed to understand --jobs: a sweep needs at least 1 worker");
            return Ok(exit::USAGE);
        }
        Some(jobs) => jobs,
        None => std::thread::available_parallelism().map_or(1, usize::from),
    };
    if args.dry_run {
        return list(&plan);
    }
    if args.workers.is_none()
        && let Err(reason) = provenance::comment(&mut plan)
    {
        eprintln!("error: failed to {reason}");
        return Ok(exit::INPUT);
    }
    let (mut database, interrupt, _lock) = match database::begin(&plan, args.out.as_deref(), args.wait)? {
        Ok(begun) => begun,
        Err(code) => return Ok(code),
    };
    let (todo, failed) = todo(&plan, &database, args.retry_failed)?;
    // What failed before is no done run either.
    let of_all = |code| if code == exit::DONE && failed > 0 { exit::OUT_OF_TOLERANCE } else { code };
    if let Some(workers) = &args.workers {
        let spread = Spread {
            workers,
            folder: args.plan.as_deref(),
            size: &args.size,
            attempts: args.attempts,
            at_once: jobs,
        };
        return chunks::spread(&spread, &plan, &todo, &mut database, &interrupt).map(of_all);
    }
    let summary = run(plan, &mut database, &todo, jobs, &interrupt)?;
    conclude(&summary, &database).map(of_all)
}

fn list(plan: &Plan) -> anyhow::Result<u8> {
    let mut text = String::new();
    for run in &plan.runs {
        text += &format!("{}: {}\n", run.position, file::words(&run.values));
    }
    say(&text)?;
    Ok(exit::DONE)
}

/// Places in the plan of the runs that have no result yet; and how many runs have failed and are not run again.
fn todo(plan: &Plan, database: &Database, retry_failed: bool) -> anyhow::Result<(Vec<usize>, usize)> {
    let ended = database.ended()?;
    let is_due = |digest: &String| match ended.get(digest) {
        None => true,
        Some(done) => !done && retry_failed,
    };
    let todo: Vec<usize> = (0..plan.runs.len()).filter(|&index| is_due(&plan.runs[index].digest)).collect();
    let known = plan.runs.len() - todo.len();
    if known > 0 {
        eprintln!(
            "note: {} of {} runs have a result already",
            grouped(known as u64),
            grouped(plan.runs.len() as u64)
        );
    }
    let failures = plan.runs.iter().filter(|run| !retry_failed && ended.get(&run.digest) == Some(&false));
    let failed = failures.count();
    if failed > 0 {
        eprintln!("note: {failed} of them failed; --retry-failed runs them again");
    }
    let stale = database.stale()?;
    if stale > 0 {
        eprintln!(
            "note: {stale} rows belong to runs that the file does not have, or has otherwise now; they stay in the \
             database without a position, and out of reports"
        );
    }
    Ok((todo, failed))
}

/// What a sweep did.
struct Summary {
    runs: usize,
    done: usize,
    failed: Vec<(usize, String)>,
    violated: usize,
    stopped: bool,
    jobs: u64,
    wall: Duration,
}

fn run(
    plan: Plan,
    database: &mut Database,
    todo: &[usize],
    jobs: usize,
    interrupt: &Interrupt,
) -> anyhow::Result<Summary> {
    let begun = Instant::now();
    let runs = Arc::new(plan.runs);
    let kept = database.path().with_extension("runs");
    let (sender, ended) = mpsc::channel();
    let pool = Pool::start(jobs.min(todo.len()), runs.clone(), todo, &kept, sender)?;
    let mut progress = Progress::new(todo.len(), jobs);
    let mut summary = Summary {
        runs: todo.len(),
        done: 0,
        failed: Vec::new(),
        violated: 0,
        stopped: false,
        jobs: 0,
        wall: Duration::ZERO,
    };
    pool::watch(&ended, |end| {
        match end {
            Some(end) => {
                let run = &runs[end.index];
                database.write(run, &end.ending, end.wall_s)?;
                match end.ending {
                    Ending::Done(measures) => {
                        let number = |name: &str| measures.get(name).and_then(outputs::sweep::Cell::number);
                        summary.done += 1;
                        summary.jobs += number("jobs").unwrap_or(0.0) as u64;
                        summary.violated += usize::from(number("violated") == Some(1.0));
                    }
                    Ending::Failed(reason) => summary.failed.push((run.position, reason)),
                }
                progress.set(summary.done + summary.failed.len());
            }
            None => progress.tick(),
        }
        summary.stopped = interrupt.is_set();
        Ok(if summary.stopped { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    progress.finish();
    if summary.stopped {
        pool.stop();
    } else {
        pool.join();
    }
    summary.wall = begun.elapsed();
    Ok(summary)
}

fn conclude(summary: &Summary, database: &Database) -> anyhow::Result<u8> {
    let wall = summary.wall.as_secs_f64();
    let mut text = format!(
        "{} runs done, {} failed, in {wall:.1} s",
        grouped(summary.done as u64),
        summary.failed.len()
    );
    if summary.jobs > 0 {
        let rate = grouped((summary.jobs as f64 / wall.max(1e-9)) as u64);
        text += &format!(": {} jobs, {rate} jobs/s", grouped(summary.jobs));
    }
    let left = summary.runs - summary.done - summary.failed.len();
    if left > 0 {
        text += &format!("\n{} runs are left; go on with: {}", grouped(left as u64), command_line());
    }
    text += &format!("\nresults: {}\n", database.path().display());
    say(&text)?;
    for (position, reason) in summary.failed.iter().take(FAILURES_NAMED) {
        eprintln!("error: run {position} failed: {reason}");
    }
    let more = summary.failed.len().saturating_sub(FAILURES_NAMED);
    if more > 0 {
        eprintln!("error: {more} more failed; the column error of the database says why");
    }
    if summary.violated > 0 {
        eprintln!("error: {} runs violate what is proved; see column violated", summary.violated);
    }
    let sound = summary.failed.is_empty() && summary.violated == 0;
    Ok(if summary.stopped {
        exit::INCOMPLETE
    } else if sound {
        exit::DONE
    } else {
        exit::OUT_OF_TOLERANCE
    })
}
