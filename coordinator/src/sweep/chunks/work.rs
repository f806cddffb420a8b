//! `stealgrid sweep work`: computes one chunk of a plan.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc;

use anyhow::Context as _;
use experiments::exit;
use experiments::experiment::accounts;
use experiments::interrupt::Interrupt;
use experiments::terminal::say;

use super::folder::{Begun, PlanFolder};
use crate::sweep::file::PlannedRun;
use crate::sweep::pool::{self, Ended, Pool};
use crate::sweep::provenance;

/// Names of variables by which an engine says which of many equal commands this is.
const OF_ENGINES: [&str; 2] = ["JOB_COMPLETION_INDEX", "SLURM_ARRAY_TASK_ID"];

/// Compute one chunk of a planned sweep, on any machine that sees the plan and the logs
///
/// What came of it appears in the plan at once, when all of it is there. A chunk that has a result is not computed again.
///
/// Exit codes: 0 computed, or known already; 2 usage; 3 the plan or a log is not what it was, or the program is another one; 4 stopped
/// before the end; 5 computed, and a run failed.
#[derive(Clone, Debug, clap::Args)]
pub struct WorkArgs {
    /// Folder that `stealgrid sweep plan` wrote
    #[arg(value_name = "PLAN")]
    pub plan: PathBuf,

    /// Number of the chunk, from 0 [default: JOB_COMPLETION_INDEX of Kubernetes or SLURM_ARRAY_TASK_ID of Slurm]
    #[arg(value_name = "CHUNK")]
    pub chunk: Option<usize>,

    /// The number is a place in this list of PLAN/offers, from 0
    #[arg(long, value_name = "N")]
    pub offer: Option<usize>,

    /// Worker processes
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub jobs: usize,

    /// Compute it although there is a result; `collect` compares both
    #[arg(long)]
    pub again: bool,
}

/// Runs the command.
///
/// # Errors
/// If something fails that should not.
pub fn command(args: &WorkArgs) -> anyhow::Result<u8> {
    let said = || OF_ENGINES.iter().find_map(|name| std::env::var(name).ok()?.parse().ok());
    let Some(number) = args.chunk.or_else(said) else {
        eprintln!("error: failed to understand which chunk is meant; write its number behind the folder");
        return Ok(exit::USAGE);
    };
    if args.jobs == 0 {
        eprintln!("error: failed to understand --jobs: a chunk needs at least 1 worker");
        return Ok(exit::USAGE);
    }
    let ready = PlanFolder::open(&args.plan).and_then(|folder| {
        folder.check_program()?;
        let chunk = match args.offer {
            None => number,
            Some(offer) => folder.of_offer(offer, number)?,
        };
        let runs = folder.runs(chunk)?;
        Ok((folder, chunk, runs))
    });
    let (folder, chunk, runs) = match ready {
        Ok(ready) => ready,
        Err(error) => {
            eprintln!("error: failed to {error}");
            return Ok(exit::INPUT);
        }
    };
    if folder.is_done(chunk) && !args.again {
        say(&format!("chunk {chunk} has a result already\n"))?;
        return Ok(exit::DONE);
    }
    if let Err(reason) = check_logs(&folder, &runs) {
        eprintln!("error: failed to {reason}");
        return Ok(exit::INPUT);
    }
    let interrupt = Interrupt::saying("stopping; this chunk is left as it was")?;
    let begun = folder.begin(chunk).map_err(|error| anyhow::anyhow!("failed to {error}"))?;
    let Some(ended) = compute(&begun, runs, args.jobs, &interrupt)? else {
        folder.give_up(&begun);
        return Ok(exit::INCOMPLETE);
    };
    let failed = ended.iter().filter(|(_, end)| end.is_failed()).count();
    let count = ended.len();
    let twice = folder.end(begun, ended).map_err(|error| anyhow::anyhow!("failed to {error}"))?;
    let again = if twice { ", after somebody else" } else { "" };
    say(&format!("chunk {chunk}: {} runs done, {failed} failed{again}\n", count - failed))?;
    Ok(if failed > 0 { exit::OUT_OF_TOLERANCE } else { exit::DONE })
}

/// Refuses logs that have changed since the plan was made.
fn check_logs(folder: &PlanFolder, runs: &[PlannedRun]) -> Result<(), String> {
    for log in provenance::logs(runs)? {
        let here = accounts::digest(&log).map_err(|cause| format!("read {}: {cause}", log.display()))?;
        if folder.head.logs.get(&log) != Some(&here.sha256) {
            return Err(format!(
                "use {}: it is not the log that the plan was made with (SHA-256 {}); make a new plan",
                log.display(),
                here.sha256
            ));
        }
    }
    Ok(())
}

/// Every run with what came of it; nothing if the user stopped it.
fn compute(
    begun: &Begun,
    runs: Vec<PlannedRun>,
    jobs: usize,
    interrupt: &Interrupt,
) -> anyhow::Result<Option<Vec<(PlannedRun, Ended)>>> {
    let runs = Arc::new(runs);
    let todo: Vec<usize> = (0..runs.len()).collect();
    let (sender, ends) = mpsc::channel();
    let pool = Pool::start(jobs.min(runs.len()), runs.clone(), &todo, &begun.kept(), sender)
        .context("failed to start a worker")?;
    let mut ended: BTreeMap<usize, Ended> = BTreeMap::new();
    let mut stopped = false;
    pool::watch(&ends, |end| {
        ended.extend(end.map(|end| (end.index, end)));
        stopped = interrupt.is_set();
        Ok(if stopped { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    if stopped {
        pool.stop();
        return Ok(None);
    }
    pool.join();
    Ok(Some(ended.into_iter().map(|(index, end)| (runs[index].clone(), end)).collect()))
}
