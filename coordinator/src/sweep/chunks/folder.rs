//! A planned sweep as a folder: chunks of runs that anybody may compute who sees it, and what came of them.
//!
//! ```text
//! plan.json                  format, sweep file, program, logs by their content, number of chunks
//! runs.jsonl                 number and digest of every run of the sweep, also of those that had a result before
//! chunks/7.jsonl             the runs of chunk 7, one a line
//! offers/2                   numbers of the chunks of the second offer to an engine, one a line
//! attempts/7-HOST-PID/       somebody computes chunk 7, or died over it
//! done/7/rows.jsonl          what came of the runs, one a line
//! done/7/attempt.json        who computed them, when, and how long each took
//! done/7/kept/12/            full results of run 12, where the sweep keeps them
//! twice/7-HOST-PID/          came second
//! ```
//!
//! An attempt takes its place in `done` by one renaming once it is whole and on the disk: there is no half a result, whoever
//! is killed when. Nobody but `sweep collect` writes into a database.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use experiments::experiment::accounts;
use outputs::replace;
use serde::{Deserialize, Serialize};

use crate::sweep::database::Ending;
use crate::sweep::file::{Plan, PlannedRun};
use crate::sweep::pool::Ended;
use crate::sweep::provenance;
use crate::sweep::worker::Number;

/// The format of the folder. A program reads only its own.
const FORMAT: &str = "1";

/// What `plan.json` says.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Head {
    format: String,
    /// Name of the sweep.
    pub name: String,
    /// The sweep file, with what made its rows as comments below it.
    pub text: String,
    /// Dotted paths of all parameters.
    pub parameters: Vec<String>,
    /// Version and commit of the program that may compute its chunks.
    pub program: String,
    /// SHA-256 of each log, by its path.
    pub logs: BTreeMap<PathBuf, String>,
    /// How many chunks there are. They are numbered from 0.
    pub chunks: usize,
    /// How many runs they have together.
    pub runs: usize,
}

/// What came of one run, without how long it took: two attempts say the same, byte by byte.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// Number of the run in the sweep.
    pub position: usize,
    /// What was measured, by name, or why nothing was.
    pub result: Result<Vec<(String, Number)>, String>,
    /// Whether its process ended over it, which may come of the machine.
    pub crashed: bool,
}

/// Who computed a chunk.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Attempt {
    /// The name of the machine.
    pub host: String,
    /// The process.
    pub process: u32,
    /// Seconds since 1970.
    pub begun: u64,
    /// The same.
    pub ended: u64,
    /// Wall times of the runs in their order, in seconds.
    pub wall_s: Vec<f64>,
}

/// A chunk that was computed.
#[derive(Clone, Debug)]
pub struct Done {
    /// Where it is.
    pub folder: PathBuf,
    /// Results, by position.
    pub outcomes: Vec<Outcome>,
    /// Who computed them.
    pub attempt: Attempt,
}

/// What somebody does who computes a chunk.
#[derive(Debug)]
pub struct Begun {
    folder: PathBuf,
    chunk: usize,
    attempt: Attempt,
}

/// Why a folder cannot be used. Reads after "failed to".
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The system refuses something.
    #[error("{what} {}: {cause}", path.display())]
    Files {
        /// What was tried.
        what: &'static str,
        /// With which file.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// It is not what this program can go on with.
    #[error("use {}: {reason}", path.display())]
    Other {
        /// The folder or file.
        path: PathBuf,
        /// What is wrong, and what to do.
        reason: String,
    },
}

/// A planned sweep.
#[derive(Clone, Debug)]
pub struct PlanFolder {
    path: PathBuf,
    /// What it is.
    pub head: Head,
}

fn files<'a>(what: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> PlanError + 'a {
    move |cause| PlanError::Files { what, path: path.to_path_buf(), cause }
}

fn other(path: &Path, reason: impl fmt::Display) -> PlanError {
    PlanError::Other { path: path.to_path_buf(), reason: reason.to_string() }
}

impl PlanFolder {
    /// Writes a plan into a new folder; `chunks` has places of runs in `plan`.
    ///
    /// # Errors
    /// If the folder is there, a log cannot be read, or the disk takes nothing.
    pub fn write(path: &Path, plan: &Plan, chunks: &[Vec<usize>]) -> Result<PlanFolder, PlanError> {
        let mut logs = BTreeMap::new();
        let runs = chunks.iter().flatten().map(|&index| &plan.runs[index]);
        for log in provenance::logs(runs).map_err(|reason| other(path, reason))? {
            let sha256 = match plan.logs.get(&log) {
                Some(Some(known)) => known.clone(),
                _ => accounts::digest(&log).map_err(files("read", &log))?.sha256,
            };
            logs.insert(log, sha256);
        }
        let head = Head {
            format: FORMAT.to_string(),
            name: plan.name.clone(),
            text: plan.text.clone(),
            parameters: plan.parameters.clone(),
            program: outputs::version(),
            logs,
            chunks: chunks.len(),
            runs: chunks.iter().map(Vec::len).sum(),
        };
        let folder = PlanFolder { path: path.to_path_buf(), head };
        if let Some(above) = path.parent() {
            fs::create_dir_all(above).map_err(files("make", above))?;
        }
        fs::create_dir(path).map_err(|cause| match cause.kind() {
            io::ErrorKind::AlreadyExists => other(
                path,
                "it is there; collect what it has with `stealgrid sweep collect`, then remove it, or name another folder",
            ),
            _ => files("make", path)(cause),
        })?;
        for part in ["chunks", "offers", "attempts", "done", "twice", "logs"] {
            let part = path.join(part);
            fs::create_dir(&part).map_err(files("make", &part))?;
        }
        for (number, chunk) in chunks.iter().enumerate() {
            let runs: Vec<&PlannedRun> = chunk.iter().map(|&index| &plan.runs[index]).collect();
            write_lines(&folder.chunk_path(number), &runs)?;
        }
        let all: Vec<(usize, &str)> =
            plan.runs.iter().map(|run| (run.position, run.digest.as_str())).collect();
        write_lines(&path.join("runs.jsonl"), &all)?;
        // Last: who finds it finds all of it.
        write_json(&path.join("plan.json"), &folder.head)?;
        Ok(folder)
    }

    /// Reads what a folder is.
    ///
    /// # Errors
    /// If it has no plan, or one of another program.
    pub fn open(path: &Path) -> Result<PlanFolder, PlanError> {
        let file = path.join("plan.json");
        let text = fs::read(&file).map_err(|cause| match cause.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
                other(path, "it has no plan.json; give the folder that `stealgrid sweep plan` wrote")
            }
            _ => files("read", &file)(cause),
        })?;
        let head: Head = serde_json::from_slice(&text).map_err(|error| other(&file, error))?;
        if head.format != FORMAT {
            return Err(other(
                &file,
                format!("it has format {}, and this program reads {FORMAT}", head.format),
            ));
        }
        Ok(PlanFolder { path: path.to_path_buf(), head })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Refuses a plan of another program, whose results might differ.
    ///
    /// # Errors
    /// If this is not the program that it was made for.
    pub fn check_program(&self) -> Result<(), PlanError> {
        let (made, here) = (&self.head.program, outputs::version());
        if *made == here {
            return Ok(());
        }
        Err(other(
            &self.path,
            format!(
                "it was planned by version {made}, and this is {here}: results might differ; use the same program"
            ),
        ))
    }

    fn chunk_path(&self, chunk: usize) -> PathBuf {
        self.path.join("chunks").join(format!("{chunk}.jsonl"))
    }

    fn done_path(&self, chunk: usize) -> PathBuf {
        self.path.join("done").join(chunk.to_string())
    }

    /// The runs of a chunk.
    ///
    /// # Errors
    /// If there is no such chunk.
    pub fn runs(&self, chunk: usize) -> Result<Vec<PlannedRun>, PlanError> {
        if chunk >= self.head.chunks {
            let reason = format!("it has chunks 0 to {}, and no {chunk}", self.head.chunks.saturating_sub(1));
            return Err(other(&self.path, reason));
        }
        read_lines(&self.chunk_path(chunk))
    }

    /// The sweep as a database wants to know it: every run by number and digest.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn plan(&self) -> Result<Plan, PlanError> {
        let all: Vec<(usize, String)> = read_lines(&self.path.join("runs.jsonl"))?;
        let run = |(position, digest)| PlannedRun { position, digest, ..PlannedRun::default() };
        let Head { name, text, parameters, .. } = self.head.clone();
        let runs = all.into_iter().map(run).collect();
        let report = report::sweep::WrittenReport::default();
        let (switches, logs) = (BTreeMap::new(), BTreeMap::new());
        Ok(Plan { name, text, base: None, parameters, runs, report, switches, logs })
    }

    /// Digests of the runs that its chunks have.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn digests(&self) -> Result<BTreeSet<String>, PlanError> {
        let mut digests = BTreeSet::new();
        for chunk in 0..self.head.chunks {
            digests.extend(self.runs(chunk)?.into_iter().map(|run| run.digest));
        }
        Ok(digests)
    }

    /// Whether a chunk was computed.
    pub fn is_done(&self, chunk: usize) -> bool {
        self.done_path(chunk).exists()
    }

    /// Numbers of the chunks that were computed, ascending.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn done(&self) -> Result<Vec<usize>, PlanError> {
        let mut done: Vec<usize> =
            self.names("done")?.into_iter().filter_map(|name| name.parse().ok()).collect();
        done.sort_unstable();
        Ok(done)
    }

    /// Chunks that were computed more than once: their numbers, and where the later results are.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn twice(&self) -> Result<Vec<(usize, PathBuf)>, PlanError> {
        let named =
            |name: String| Some((name.split('-').next()?.parse().ok()?, self.path.join("twice").join(&name)));
        let mut twice: Vec<_> = self.names("twice")?.into_iter().filter_map(named).collect();
        twice.sort();
        Ok(twice)
    }

    /// How many attempts have begun and not ended: somebody computes, or died over it.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn attempts(&self) -> Result<usize, PlanError> {
        Ok(self.names("attempts")?.len())
    }

    fn names(&self, part: &str) -> Result<Vec<String>, PlanError> {
        let part = self.path.join(part);
        let entries = fs::read_dir(&part).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        let entries = entries.map_err(files("read", &part))?;
        Ok(entries.into_iter().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect())
    }

    /// What came of a chunk.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read_done(&self, chunk: usize) -> Result<Done, PlanError> {
        read_done(&self.done_path(chunk))
    }

    /// Writes down chunks that are offered to an engine together. Returns the number of the offer.
    ///
    /// # Errors
    /// If the disk takes nothing.
    pub fn offer(&self, chunks: &[usize]) -> Result<usize, PlanError> {
        let numbers = self.names("offers")?.into_iter().filter_map(|name| name.parse().ok());
        let offer = numbers.max().map_or(0, |last: usize| last + 1);
        write_lines(&self.offer_path(offer), chunks)?;
        Ok(offer)
    }

    fn offer_path(&self, offer: usize) -> PathBuf {
        self.path.join("offers").join(offer.to_string())
    }

    /// The chunks of an offer.
    ///
    /// # Errors
    /// If there is no such offer.
    pub fn offered(&self, offer: usize) -> Result<Vec<usize>, PlanError> {
        read_lines(&self.offer_path(offer))
    }

    /// The chunk at a place of an offer.
    ///
    /// # Errors
    /// If there is no such offer, or it has not so many.
    pub fn of_offer(&self, offer: usize, place: usize) -> Result<usize, PlanError> {
        let chunks = self.offered(offer)?;
        let reason = || format!("it has {} chunks, and none at place {place}", chunks.len());
        chunks.get(place).copied().ok_or_else(|| other(&self.offer_path(offer), reason()))
    }

    /// Where engines leave what commands print.
    pub fn logs(&self) -> PathBuf {
        self.path.join("logs")
    }

    /// Begins to compute a chunk.
    ///
    /// # Errors
    /// If the disk takes nothing.
    pub fn begin(&self, chunk: usize) -> Result<Begun, PlanError> {
        let (host, process) = (host(), std::process::id());
        let folder = self.path.join("attempts").join(format!("{chunk}-{host}-{process}"));
        // One of the same name is of a process that died, whose number was given out again.
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).map_err(files("make", &folder))?;
        let attempt = Attempt { host, process, begun: now(), ended: 0, wall_s: Vec::new() };
        write_json(&folder.join("attempt.json"), &attempt)?;
        Ok(Begun { folder, chunk, attempt })
    }

    /// Gives what was computed its place. Returns whether somebody else was there before.
    ///
    /// # Errors
    /// If the disk takes nothing.
    pub fn end(&self, begun: Begun, mut ended: Vec<(PlannedRun, Ended)>) -> Result<bool, PlanError> {
        ended.sort_by_key(|(run, _)| run.position);
        let outcomes: Vec<Outcome> = ended.iter().map(|(run, end)| Outcome::of(run.position, end)).collect();
        let Begun { folder, chunk, mut attempt } = begun;
        attempt.ended = now();
        attempt.wall_s = ended.iter().map(|(_, end)| end.wall_s).collect();
        write_lines(&folder.join("rows.jsonl"), &outcomes)?;
        write_json(&folder.join("attempt.json"), &attempt)?;
        let done = self.done_path(chunk);
        // A folder never takes the place of one that has files.
        let was_there = match fs::rename(&folder, &done) {
            Ok(()) => false,
            Err(_) if done.exists() => {
                let twice = self
                    .path
                    .join("twice")
                    .join(format!("{chunk}-{}-{}-{}", attempt.host, attempt.process, attempt.ended));
                fs::rename(&folder, &twice).map_err(files("move the results to", &twice))?;
                true
            }
            Err(cause) => return Err(files("move the results to", &done)(cause)),
        };
        sync(&self.path.join(if was_there { "twice" } else { "done" }));
        Ok(was_there)
    }

    /// Forgets an attempt that did not come to its end.
    pub fn give_up(&self, begun: &Begun) {
        // What stays is in nobody's way.
        let _ = fs::remove_dir_all(&begun.folder);
    }
}

impl Begun {
    /// Where full results of runs go that are kept.
    pub fn kept(&self) -> PathBuf {
        self.folder.join("kept")
    }
}

impl Outcome {
    fn of(position: usize, end: &Ended) -> Outcome {
        let result = match &end.ending {
            Ending::Done(measures) => {
                Ok(measures.iter().map(|(name, cell)| (name.clone(), Number::from(cell.clone()))).collect())
            }
            Ending::Failed(reason) => Err(reason.clone()),
        };
        Outcome { position, result, crashed: end.crashed }
    }

    /// The same as a database takes it.
    pub fn ending(&self) -> Ending {
        match &self.result {
            Ok(measures) => Ending::Done(
                measures.iter().map(|(name, number)| (name.clone(), number.clone().into())).collect(),
            ),
            Err(reason) => Ending::Failed(reason.clone()),
        }
    }
}

/// Reads a chunk that was computed.
///
/// # Errors
/// If it cannot be read.
pub fn read_done(folder: &Path) -> Result<Done, PlanError> {
    let file = folder.join("attempt.json");
    let text = fs::read(&file).map_err(files("read", &file))?;
    let attempt = serde_json::from_slice(&text).map_err(|error| other(&file, error))?;
    Ok(Done { folder: folder.to_path_buf(), outcomes: read_lines(&folder.join("rows.jsonl"))?, attempt })
}

fn write_json(path: &Path, content: &impl Serialize) -> Result<(), PlanError> {
    replace::write_durably(path, |path| File::create(path), |to| Ok(serde_json::to_writer(to, content)?))
        .map_err(files("write", path))
}

fn write_lines<T: Serialize>(path: &Path, lines: &[T]) -> Result<(), PlanError> {
    let write = |to: &mut dyn io::Write| {
        lines.iter().try_for_each(|line| {
            serde_json::to_writer(&mut *to, line)?;
            to.write_all(b"\n")
        })
    };
    replace::write_durably(path, |path| File::create(path), write).map_err(files("write", path))
}

fn read_lines<T: serde::de::DeserializeOwned>(path: &Path) -> Result<Vec<T>, PlanError> {
    let file = File::open(path).map_err(files("read", path))?;
    let mut lines = Vec::new();
    for (line, number) in BufReader::new(file).lines().zip(1..) {
        let line = line.map_err(files("read", path))?;
        let of_line = |error: serde_json::Error| other(path, format!("line {number}: {error}"));
        lines.push(serde_json::from_str(&line).map_err(of_line)?);
    }
    Ok(lines)
}

fn sync(folder: &Path) {
    // Some file systems of clusters refuse it for folders; the files in it are on the disk already.
    let _ = File::open(folder).and_then(|folder| folder.sync_all());
}

/// The name of this machine as part of a file's name.
fn host() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let plain: String = name.trim().chars().filter(|c| c.is_ascii_alphanumeric() || *c == '.').collect();
    if plain.is_empty() { "unknown".to_string() } else { plain }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
