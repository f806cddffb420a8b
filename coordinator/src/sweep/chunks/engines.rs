//! Who computes chunks: an engine is offered them, says which it still has, and is not believed in anything else.
//!
//! That a chunk is done says its result and nothing else: engines forget jobs, call killed ones completed and run others twice.
//! A chunk that an engine has no more and that has no result is offered again.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;
use std::time::{Duration, Instant};

use experiments::interrupt::Interrupt;
use experiments::terminal::note;

use super::collect::Collector;
use super::folder::PlanFolder;
use super::{exec, page, slurm};
use crate::sweep::database::Database;
use crate::sweep::progress::{LOOK_EVERY, Progress};

/// How often the page of progress is written.
const PAGE_EVERY: Duration = Duration::from_secs(5);
/// How often results are looked for.
const RESULTS_EVERY: Duration = Duration::from_millis(500);

/// What an engine has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Live {
    /// Chunks that it has not begun.
    pub waiting: BTreeSet<usize>,
    /// Chunks that it computes.
    pub running: BTreeSet<usize>,
    /// Why most of the waiting ones wait, in its own words.
    pub reason: Option<String>,
}

/// What has come of an offer.
#[derive(Debug)]
pub struct Offered {
    /// Chunks that it took.
    pub taken: Vec<usize>,
    /// Why it took no more.
    pub refused: Option<String>,
}

/// Who computes chunks.
pub trait Engine {
    /// Offers chunks.
    ///
    /// # Errors
    /// If the plan takes no offer, or a program of the engine cannot be started.
    fn offer(&mut self, folder: &PlanFolder, chunks: &[usize]) -> anyhow::Result<Offered>;

    /// What it has now; nothing if it cannot say.
    fn look(&mut self, folder: &PlanFolder) -> Option<Live>;

    /// How often it may be asked.
    fn look_every(&self) -> Duration;

    /// The user goes, and chunks are left. Says what becomes of them.
    fn leave(&mut self) -> String;
}

/// Which engine, as `--workers` says it.
#[derive(Clone, Debug, PartialEq)]
pub enum Workers {
    /// Arrays of jobs of Slurm.
    Slurm(slurm::Options),
    /// Indexed jobs of Kubernetes.
    Kubernetes(super::kubernetes::Options),
    /// A command of the user.
    Exec(exec::Options),
}

impl FromStr for Workers {
    type Err = String;

    fn from_str(text: &str) -> Result<Workers, String> {
        let (name, options) = text.split_once(':').unwrap_or((text, ""));
        match name {
            "slurm" => Ok(Workers::Slurm(options.parse()?)),
            "kubernetes" => Ok(Workers::Kubernetes(options.parse()?)),
            "exec" => Ok(Workers::Exec(options.parse()?)),
            _ => Err(format!(
                "there is no engine {name:?}; write slurm, kubernetes:image=IMAGE,claim=CLAIM or exec:COMMAND (workers on this machine: --jobs)"
            )),
        }
    }
}

/// Options as `key=value`, with commas between them.
pub(super) fn options(text: &str) -> Result<BTreeMap<String, String>, String> {
    let mut options = BTreeMap::new();
    for option in text.split(',').filter(|option| !option.is_empty()) {
        let (key, value) = option.split_once('=').unwrap_or((option, ""));
        if options.insert(key.to_string(), value.to_string()).is_some() {
            return Err(format!("{key} is there twice"));
        }
    }
    Ok(options)
}

/// How it ended.
#[derive(Debug)]
pub enum Driven {
    /// Nothing is left that an engine could do.
    Over {
        /// Chunks that were offered as often as they may be, and have no result.
        lost: Vec<usize>,
        /// Why the engine takes nothing.
        refused: Option<String>,
    },
    /// The user stopped it. What becomes of the chunks that are left.
    Stopped(String),
}

/// Offers chunks until all have a result, each at most `attempts` times.
///
/// # Errors
/// If the database or the plan cannot be used.
pub fn drive(
    engine: &mut dyn Engine,
    folder: &PlanFolder,
    collector: &mut Collector,
    database: &mut Database,
    attempts: u32,
    interrupt: &Interrupt,
) -> anyhow::Result<Driven> {
    let all: BTreeSet<usize> = (0..folder.head.chunks).collect();
    let mut offers: BTreeMap<usize, u32> = BTreeMap::new();
    let mut progress = Progress::new(folder.head.runs, 1);
    let (mut looked, mut paged, mut read) = (None::<Instant>, None::<Instant>, None::<Instant>);
    let (mut live, mut refused) = (Live::default(), None);
    let is_due = |last: Option<Instant>, every: Duration| last.is_none_or(|last| last.elapsed() >= every);
    let driven = loop {
        if interrupt.is_set() {
            break Driven::Stopped(engine.leave());
        }
        if is_due(looked, engine.look_every()) {
            looked = Some(Instant::now());
            // Results are read after what the engine says: what it has no more has written its result by then.
            let seen = engine.look(folder);
            collector.take_new(database)?;
            if let Some(seen) = seen {
                live = seen;
                let is_free = |chunk: &&usize| {
                    !collector.taken().contains(chunk)
                        && !live.waiting.contains(chunk)
                        && !live.running.contains(chunk)
                };
                let free: Vec<usize> = all.iter().filter(is_free).copied().collect();
                let (again, lost): (Vec<usize>, Vec<usize>) =
                    free.into_iter().partition(|chunk| offers.get(chunk).copied().unwrap_or(0) < attempts);
                let is_empty = live.waiting.is_empty() && live.running.is_empty();
                if again.is_empty() && is_empty {
                    break Driven::Over { lost, refused: None };
                }
                if !again.is_empty() {
                    let offered = engine.offer(folder, &again)?;
                    if let Some(reason) = offered.refused.clone().filter(|_| refused != offered.refused) {
                        note(&format!(
                            "{} of {} chunks were not taken: {reason}",
                            again.len() - offered.taken.len(),
                            again.len()
                        ));
                    }
                    refused = offered.refused;
                    for chunk in &offered.taken {
                        *offers.entry(*chunk).or_default() += 1;
                        live.waiting.insert(*chunk);
                        if offers[chunk] > 1 {
                            note(&format!(
                                "chunk {chunk} ended without a result and is offered again ({} of {attempts}); see {}",
                                offers[chunk],
                                folder.logs().display()
                            ));
                        }
                    }
                    if offered.taken.is_empty() && is_empty {
                        break Driven::Over { lost: Vec::new(), refused };
                    }
                }
            }
        }
        if is_due(read, RESULTS_EVERY) {
            read = Some(Instant::now());
            collector.take_new(database)?;
        }
        let [done, failed] = [collector.counts.done, collector.counts.failed.len()];
        live.waiting.retain(|chunk| !collector.taken().contains(chunk));
        live.running.retain(|chunk| !collector.taken().contains(chunk));
        if is_due(paged, PAGE_EVERY) {
            paged = Some(Instant::now());
            collector.compare_all()?;
            page::write(folder, collector, Some(&live))?;
        }
        progress.among(live.running.len().max(1), words(&live, failed, collector.counts.twice));
        progress.set(done + failed);
        if collector.taken().len() == all.len() {
            break Driven::Over { lost: Vec::new(), refused: None };
        }
        std::thread::sleep(LOOK_EVERY);
    };
    progress.finish();
    collector.compare_all()?;
    page::write(folder, collector, None)?;
    Ok(driven)
}

fn words(live: &Live, failed: usize, twice: usize) -> String {
    let mut words = format!("chunks: {} running, {} waiting", live.running.len(), live.waiting.len());
    if let Some(reason) = live.reason.as_ref().filter(|_| !live.waiting.is_empty()) {
        words += &format!(" ({reason})");
    }
    for (count, what) in [(failed, "failed"), (twice, "computed twice")] {
        if count > 0 {
            words += &format!("; {count} runs {what}");
        }
    }
    words
}

impl fmt::Display for Workers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Workers::Slurm(_) => "slurm",
            Workers::Kubernetes(_) => "kubernetes",
            Workers::Exec(_) => "exec",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_engine_is_told_which_there_are() {
        assert_eq!("slurm".parse::<Workers>().unwrap().to_string(), "slurm");
        let error = "pbs:queue=a".parse::<Workers>().unwrap_err();
        assert!(error.contains("\"pbs\"") && error.contains("slurm"), "{error}");
        assert_eq!(options("a=1,a=2").unwrap_err(), "a is there twice");
    }
}
