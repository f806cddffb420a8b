//! What comes of chunks goes into a database, by one process: `stealgrid sweep collect`, and `sweep --workers` while it waits.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use experiments::exit;
use experiments::terminal::{note, say};

use super::folder::{self, Done, Outcome, PlanFolder};
use crate::sweep::database::{self, Database, Ending};
use crate::sweep::file::PlannedRun;
use crate::sweep::progress::FAILURES_NAMED;

/// Write what came of a planned sweep into its database
///
/// Run it at any time and as often as you like, also while chunks are computed. A run that was computed twice must have
/// given the same both times.
///
/// Exit codes: 0 every run is done, 3 unreadable input, 4 runs are left, 5 a run failed, a proved bound does not hold, or two results of one run differ.
#[derive(Clone, Debug, clap::Args)]
pub struct CollectArgs {
    /// Folder that `stealgrid sweep plan` wrote
    #[arg(value_name = "PLAN")]
    pub plan: PathBuf,

    /// Database of the results [default: out/NAME.db]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,

    /// How long to wait for a database that another program has locked, each time, as in 30s or 1h
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = links::quantity::time)]
    pub wait: Duration,
}

/// Runs the command.
///
/// # Errors
/// If something fails that should not.
pub fn command(args: &CollectArgs) -> anyhow::Result<u8> {
    let read = PlanFolder::open(&args.plan).and_then(|folder| Ok((folder.plan()?, folder)));
    let (plan, folder) = match read {
        Ok(read) => read,
        Err(error) => {
            eprintln!("error: failed to {error}");
            return Ok(exit::INPUT);
        }
    };
    let (mut database, interrupt, _lock) = match database::begin(&plan, args.out.as_deref(), args.wait)? {
        Ok(begun) => begun,
        Err(code) => return Ok(code),
    };
    let mut collector = Collector::new(&folder, &database)?;
    for chunk in collector.new_chunks()? {
        collector.take(chunk, &mut database)?;
        if interrupt.is_set() {
            break;
        }
    }
    collector.compare_all()?;
    collector.conclude(database.path(), || {
        format!("`stealgrid sweep work {} CHUNK` computes one; then collect again", folder.path().display())
    })
}

/// Takes chunks in, each once.
pub struct Collector {
    folder: PlanFolder,
    /// Runs that the database has a result of, and whether they were measured.
    ended: BTreeMap<String, bool>,
    taken: BTreeSet<usize>,
    compared: BTreeSet<PathBuf>,
    /// What is told in the end.
    pub counts: Counts,
}

/// How far it is.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Runs with a result.
    pub done: usize,
    /// Runs that failed, and why.
    pub failed: Vec<(usize, String)>,
    /// Runs with two results that are the same.
    pub twice: usize,
    /// Runs with two results that differ, in words.
    pub differ: Vec<String>,
    /// Runs that violate what is proved.
    pub violated: usize,
}

impl Collector {
    /// Begins with what is in the database.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn new(folder: &PlanFolder, database: &Database) -> anyhow::Result<Collector> {
        Ok(Collector {
            folder: folder.clone(),
            ended: database.ended()?,
            taken: BTreeSet::new(),
            compared: BTreeSet::new(),
            counts: Counts::default(),
        })
    }

    /// Chunks that were computed since the last time.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn new_chunks(&self) -> anyhow::Result<Vec<usize>> {
        let done = self.folder.done().map_err(|error| anyhow::anyhow!("failed to {error}"))?;
        Ok(done.into_iter().filter(|chunk| !self.taken.contains(chunk)).collect())
    }

    /// Takes in all chunks that were computed since the last time.
    ///
    /// # Errors
    /// As [`Collector::new_chunks`] and [`Collector::take`].
    pub fn take_new(&mut self, database: &mut Database) -> anyhow::Result<()> {
        self.new_chunks()?.into_iter().try_for_each(|chunk| self.take(chunk, database))
    }

    /// Chunks that are in.
    pub fn taken(&self) -> &BTreeSet<usize> {
        &self.taken
    }

    /// Takes one in.
    ///
    /// # Errors
    /// If it cannot be read, or the database takes nothing.
    pub fn take(&mut self, chunk: usize, database: &mut Database) -> anyhow::Result<()> {
        let read = self.folder.read_done(chunk).and_then(|done| Ok((done, self.folder.runs(chunk)?)));
        let (mut done, runs) = read.map_err(|error| anyhow::anyhow!("failed to {error}"))?;
        self.mend(chunk, &mut done)?;
        let kept = database.path().with_extension("runs");
        for ((run, outcome), wall_s) in of_each(&runs, &done)?.into_iter().zip(&done.attempt.wall_s) {
            let ending = outcome.ending();
            // One that was measured stays; a failure goes once there is something better.
            if self.ended.get(&run.digest) != Some(&true) {
                if run.keep {
                    move_kept(&done.folder.join("kept").join(run.position.to_string()), &kept, run.position);
                }
                database.write(run, &ending, *wall_s)?;
            }
            match ending {
                Ending::Done(measures) => {
                    let violated = measures.get("violated").and_then(outputs::sweep::Cell::number);
                    self.counts.violated += usize::from(violated == Some(1.0));
                    self.counts.done += 1;
                }
                Ending::Failed(reason) => self.counts.failed.push((run.position, reason)),
            }
        }
        self.taken.insert(chunk);
        Ok(())
    }

    /// Where the process of a run ended over it, another result of the chunk may know better.
    fn mend(&self, chunk: usize, done: &mut Done) -> anyhow::Result<()> {
        if done.outcomes.iter().all(|outcome| !outcome.crashed) {
            return Ok(());
        }
        let twice = self.folder.twice().map_err(|error| anyhow::anyhow!("failed to {error}"))?;
        for (_, path) in twice.into_iter().filter(|(of, _)| *of == chunk) {
            let other = folder::read_done(&path).map_err(|error| anyhow::anyhow!("failed to {error}"))?;
            for (outcome, known) in done.outcomes.iter_mut().zip(other.outcomes) {
                if outcome.crashed && outcome.position == known.position {
                    *outcome = known;
                }
            }
        }
        Ok(())
    }

    /// Compares chunks that were computed twice.
    ///
    /// # Errors
    /// If one cannot be read.
    pub fn compare_all(&mut self) -> anyhow::Result<()> {
        let twice = self.folder.twice().map_err(|error| anyhow::anyhow!("failed to {error}"))?;
        for (chunk, path) in twice {
            if !self.compared.insert(path.clone()) {
                continue;
            }
            let read = self.folder.read_done(chunk).and_then(|first| Ok((first, folder::read_done(&path)?)));
            let (first, second) = read.map_err(|error| anyhow::anyhow!("failed to {error}"))?;
            for (one, other) in first.outcomes.iter().zip(&second.outcomes) {
                match difference(one, other) {
                    None => self.counts.twice += 1,
                    Some(what) => self.counts.differ.push(format!(
                        "run {}: {what} ({} and {})",
                        one.position,
                        first.folder.display(),
                        path.display()
                    )),
                }
            }
        }
        Ok(())
    }

    /// What is told in the end, and the exit code of it.
    ///
    /// # Errors
    /// If nothing can be printed.
    pub fn conclude(&self, database: &Path, how_to_go_on: impl Fn() -> String) -> anyhow::Result<u8> {
        let Counts { done, failed, twice, differ, violated } = &self.counts;
        let mut text = format!("{done} runs done, {} failed", failed.len());
        if *twice > 0 {
            text += &format!(", {twice} computed twice with the same result");
        }
        let left = self.folder.head.runs - done - failed.len();
        if left > 0 {
            let chunks = self.folder.head.chunks - self.taken.len();
            text += &format!("\n{left} runs in {chunks} chunks are left; {}", how_to_go_on());
        }
        text += &format!("\nresults: {}\n", database.display());
        say(&text)?;
        for (position, reason) in failed.iter().take(FAILURES_NAMED) {
            eprintln!("error: run {position} failed: {reason}");
        }
        for what in differ.iter().take(FAILURES_NAMED) {
            eprintln!("error: two results of one run differ: {what}");
        }
        if differ.len() > FAILURES_NAMED {
            eprintln!("error: {} more differ", differ.len() - FAILURES_NAMED);
        }
        if *violated > 0 {
            eprintln!("error: {violated} runs violate what is proved; see column violated");
        }
        let sound = failed.is_empty() && differ.is_empty() && *violated == 0;
        Ok(match (sound, left) {
            (false, _) => exit::OUT_OF_TOLERANCE,
            (true, 0) => exit::DONE,
            (true, _) => exit::INCOMPLETE,
        })
    }
}

/// Each run of a chunk with what came of it.
fn of_each<'a>(runs: &'a [PlannedRun], done: &'a Done) -> anyhow::Result<Vec<(&'a PlannedRun, &'a Outcome)>> {
    let of = |outcome: &'a Outcome| {
        let run = runs.iter().find(|run| run.position == outcome.position);
        run.map(|run| (run, outcome)).ok_or(outcome.position)
    };
    let each: Result<Vec<_>, usize> = done.outcomes.iter().map(of).collect();
    let each = each.map_err(|position| {
        anyhow::anyhow!("failed to use {}: run {position} is not of this chunk", done.folder.display())
    })?;
    anyhow::ensure!(
        each.len() == runs.len() && done.attempt.wall_s.len() == runs.len(),
        "failed to use {}: it has {} of {} runs",
        done.folder.display(),
        each.len(),
        runs.len()
    );
    Ok(each)
}

/// In what two results of one run differ. One whose process ended over it says nothing of the run.
fn difference(one: &Outcome, other: &Outcome) -> Option<String> {
    if one.crashed || other.crashed || one == other {
        return None;
    }
    Some(match (&one.result, &other.result) {
        (Ok(these), Ok(those)) => {
            let unlike = these.iter().zip(those).find(|(a, b)| a != b);
            unlike.map_or_else(
                || "one has more numbers than the other".to_string(),
                |((name, a), (_, b))| format!("{name} is {a} and {b}"),
            )
        }
        (Err(reason), Ok(_)) | (Ok(_), Err(reason)) => format!("one failed: {reason}"),
        (Err(one), Err(other)) => format!("one failed with {one:?}, the other with {other:?}"),
    })
}

/// Full results go where `sweep` has them beside its database.
fn move_kept(from: &Path, kept: &Path, position: usize) {
    let to = kept.join(position.to_string());
    if !from.exists() {
        return;
    }
    let moved = fs::create_dir_all(kept).and_then(|()| match fs::remove_dir_all(&to) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => fs::rename(from, &to),
    });
    if let Err(cause) = moved {
        note(&format!("the full results of run {position} stay in {}: {cause}", from.display()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::worker::Number;

    fn outcome(value: f64) -> Outcome {
        let measures = vec![
            ("jobs".to_string(), Number::Integer(3)),
            ("ratio".to_string(), Number::Bits(value.to_bits())),
        ];
        Outcome { position: 4, result: Ok(measures), crashed: false }
    }

    #[test]
    fn results_that_differ_in_the_last_bit_differ() {
        let next = f64::from_bits(1.5_f64.to_bits() + 1);
        assert_eq!(difference(&outcome(1.5), &outcome(1.5)), None);
        assert_eq!(difference(&outcome(1.5), &outcome(next)).unwrap(), "ratio is 1.5 and 1.5000000000000002");
        let failed = Outcome { result: Err("no".to_string()), ..outcome(1.5) };
        assert_eq!(difference(&outcome(1.5), &failed).unwrap(), "one failed: no");
        // What ended by a signal says nothing of the run.
        assert_eq!(difference(&outcome(1.5), &Outcome { crashed: true, ..failed }), None);
    }
}
