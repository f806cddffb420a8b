//! Whose a result directory is: one coordinator writes there at a time, none over nodes that still work there, results
//! give way to those of the same experiment alone, and files that nobody here wrote stay as they are.
//!
//! A directory is known by its `MARK`, which is locked while results are written, and says whose they are and which
//! files there are ours.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::{File, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use node::bounded::{TooLong, text_of};
use node::private;
use node::running::Running;
use serde::{Deserialize, Serialize};

use crate::experiment::resolved::EXPERIMENT;
use crate::experiment::{Experiment, Outputs};
use crate::{folder, limits};

/// The file by which a result directory is known.
const MARK: &str = ".stealgrid";
/// What a coordinator needs that goes on with a run; there until the run is complete.
pub const RECORD: &str = "run.json";
/// What those must show who give a run orders; there while it takes some.
pub const ORDERS_TOKEN: &str = "orders.token";
/// What was measured before the clocks started, which is not measured again.
const CALIBRATION: &str = "calibration.csv";
/// Says that results are whole.
const MANIFEST: &str = "manifest.json";
/// What a run may leave; a result directory holds one run.
const RESULTS: [&str; 16] = [
    RECORD,
    ORDERS_TOKEN,
    CALIBRATION,
    MANIFEST,
    EXPERIMENT,
    "metrics.json",
    "jobs.csv",
    "migrations.csv",
    "steals.csv",
    "faults.csv",
    "executions.csv",
    "membership.csv",
    "schedule.swf",
    "events.jsonl.zst",
    "report.html",
    "links.csv",
];
/// Where results wait that another run of the same experiment is to replace, until its clocks start.
const FORMER: &str = ".stealgrid.former";
/// Endings of what nodes left in `nodes/`. Their keys stay: identities can be kept from run to run.
const NODE_FILES: [&str; 2] = ["json", "log"];
/// What a data directory of a node is known by.
const JOURNAL: &str = "journal.sqlite";

/// Why nothing may be written into a result directory.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotFree {
    /// The other writes results.
    #[error("another coordinator writes into {}; wait for it, or give --out another directory", .0.display())]
    Coordinator(PathBuf),
    /// Nodes whose coordinator was killed.
    #[error(
        "nodes of a run whose coordinator was killed still work in {0}: {nodes}; `stealgrid attach {0}` goes on with \
         that run, `stealgrid attach --stop {0}` ends it; or give --out another directory",
        .dir.display()
    )]
    Nodes {
        /// The result directory.
        dir: PathBuf,
        /// Names of the sites whose nodes still work.
        nodes: String,
    },
    /// A run that can be gone on with.
    #[error(
        "a run in {0} is not complete, and its journals are there; `stealgrid attach {0}` goes on with it; give --out \
         another directory, or --replace to give that run up",
        .dir.display()
    )]
    Incomplete {
        /// The result directory.
        dir: PathBuf,
    },
    /// Results of something else.
    #[error("{} holds results of {whose}; give --out another directory, or --replace to lose them", .dir.display())]
    Others {
        /// The result directory.
        dir: PathBuf,
        /// What made them.
        whose: String,
    },
    /// A directory with files of somebody else and no results.
    #[error("{0}")]
    Taken(String),
    /// Files that would be replaced and that nobody here wrote.
    #[error(
        "{} has files of somebody else where results go: {files}; move them away, or give --out another directory",
        .dir.display()
    )]
    Foreign {
        /// The result directory.
        dir: PathBuf,
        /// Names of the files, as a list.
        files: String,
    },
}

/// What makes results: the commands that each have a default directory of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Driver {
    /// `simulate`.
    Simulate,
    /// `run` by the wall clock.
    Run,
    /// `run --clock virtual`.
    RunVirtual,
}

impl Driver {
    /// Lets results go where this driver's do, unless the user says where.
    pub fn places(self, outputs: &mut Outputs) {
        let ending = match self {
            Driver::Run => return,
            Driver::Simulate => "-simulated",
            Driver::RunVirtual => "-virtual",
        };
        if !outputs.named {
            let mut dir = std::mem::take(&mut outputs.dir).into_os_string();
            dir.push(ending);
            outputs.dir = dir.into();
        }
    }
}

impl fmt::Display for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Driver::Simulate => "simulate",
            Driver::Run => "run",
            Driver::RunVirtual => "run --clock virtual",
        })
    }
}

/// What results are of. Equal ones replace each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    experiment: String,
    driver: Driver,
    /// Of everything that the experiment says but where its results go.
    digest: String,
}

impl Identity {
    /// Of an experiment under this driver.
    pub fn of(experiment: &Experiment, driver: Driver) -> Identity {
        Identity { experiment: experiment.name.clone(), driver, digest: experiment.digest() }
    }
}

/// How far results are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Phase {
    /// Nothing has happened that would be lost.
    Prepared,
    Begun,
    Written,
}

/// What [`MARK`] says.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Mark {
    /// The version that wrote it.
    stealgrid: String,
    #[serde(flatten)]
    identity: Identity,
    /// The command line that repeats the run.
    command: String,
    phase: Phase,
    /// Our files, once results are written; before, all that bear a name of results are.
    files: BTreeSet<String>,
}

impl Mark {
    fn write(&self, file: &mut File) -> io::Result<()> {
        let text = serde_json::to_string_pretty(self)? + "\n";
        file.rewind()?;
        file.write_all(text.as_bytes())?;
        // After the new text: a disk without room for it leaves the former.
        file.set_len(text.len() as u64)
    }
}

/// A result directory that nobody else writes into until this is dropped.
#[derive(Debug)]
pub struct Claim {
    dir: PathBuf,
    file: File,
    mark: Mark,
}

impl Claim {
    /// Something has happened that would be lost: the clocks start. What waits of a former run is given up.
    ///
    /// # Errors
    /// If that cannot be noted.
    pub fn begin(&mut self) -> io::Result<()> {
        if self.mark.phase == Phase::Begun {
            return Ok(());
        }
        self.mark.phase = Phase::Begun;
        self.note()?;
        self.give_up_former();
        Ok(())
    }

    /// All results are written.
    ///
    /// # Errors
    /// If that cannot be noted.
    pub fn end(mut self) -> io::Result<()> {
        self.mark.phase = Phase::Written;
        self.mark.files = results(&self.dir).into_iter().collect();
        self.note()?;
        self.give_up_former();
        Ok(())
    }

    /// After the note that something has begun, by which whoever comes next would do it.
    fn give_up_former(&self) {
        let _ = remove(&self.dir.join(FORMER));
    }

    fn note(&mut self) -> io::Result<()> {
        self.mark.write(&mut self.file)
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if self.mark.phase == Phase::Prepared
            && let Err(error) = restore(&self.dir, &mut self.file)
        {
            eprintln!(
                "warning: the results of the former run are in {}: {error:#}",
                self.dir.join(FORMER).display()
            );
        }
    }
}

/// Makes a result directory that nobody else writes into. What an earlier run of the same left there, or whatever an earlier
/// run left there if the experiment says so, waits in `.stealgrid.former` until this one begins, and is put back if it never does.
///
/// # Errors
/// [`NotFree`], or as [`folder::make`].
pub fn begin(experiment: &Experiment, driver: Driver, command: &str) -> anyhow::Result<Claim> {
    let Outputs { dir, replace, .. } = &experiment.outputs;
    folder::make(dir)?;
    let (mut file, new) = lock(dir)?;
    let identity = Identity::of(experiment, driver);
    let mut former = read(&mut file);
    if former.as_ref().is_some_and(|mark| mark.phase == Phase::Prepared) {
        // Whoever put results aside was killed before anything began.
        restore(dir, &mut file)?;
        former = read(&mut file);
    }
    // A directory without results of ours, where the mark is but a moment old.
    let is_free = new && former.is_none() && !is_our_manifest(&dir.join(MANIFEST));
    let checked = check(dir, former.as_ref(), &identity, *replace).and_then(|()| {
        let taken = if is_free { folder::refused(dir) } else { None };
        taken.map_or(Ok(()), |reason| Err(NotFree::Taken(reason)))
    });
    if let Err(refused) = checked {
        if new {
            // Nothing is left in a directory that is none of ours.
            let _ = std::fs::remove_file(dir.join(MARK));
        }
        return Err(refused.into());
    }
    let version = env!("CARGO_PKG_VERSION").to_string();
    let (phase, files, command) = (Phase::Prepared, BTreeSet::new(), command.to_string());
    let mark = Mark { stealgrid: version, identity, command, phase, files };
    let waiting = set_aside(dir, former)?;
    let mut claim = Claim { dir: dir.clone(), file, mark };
    claim.note().with_context(|| format!("failed to write {}", dir.join(MARK).display()))?;
    let aside = dir.join(FORMER);
    let mut waiting = waiting.iter();
    let moved = waiting.try_for_each(|name| rename(&dir.join(name), &aside.join(name)));
    moved.with_context(|| format!("failed to put former results into {}", aside.display()))?;
    Ok(claim)
}

/// Takes the directory of a run whose coordinator is gone.
///
/// # Errors
/// [`NotFree`], if another coordinator is there.
pub fn resume(dir: &Path, experiment: &Experiment, command: &str) -> anyhow::Result<Claim> {
    let (mut file, _) = lock(dir)?;
    let mark = read(&mut file).unwrap_or_else(|| Mark {
        stealgrid: env!("CARGO_PKG_VERSION").to_string(),
        identity: Identity::of(experiment, Driver::Run),
        command: command.to_string(),
        phase: Phase::Begun,
        files: BTreeSet::new(),
    });
    Ok(Claim { dir: dir.to_path_buf(), file, mark })
}

impl Claim {
    /// Clears what a coordinator that is gone had written of results, and nothing of its nodes.
    ///
    /// # Errors
    /// [`NotFree::Foreign`], or that a file cannot be removed.
    pub fn go_on(&mut self) -> anyhow::Result<()> {
        foreign(&self.dir, Some(&self.mark))?;
        self.begin().with_context(|| format!("failed to write {}", self.dir.join(MARK).display()))?;
        let kept = [RECORD, CALIBRATION];
        let old = results(&self.dir).into_iter().filter(|name| !kept.contains(&name.as_str()));
        old.map(|name| self.dir.join(name)).try_for_each(|old| remove(&old))
    }
}

/// The locked mark of a directory, and whether it was not there before. The lock ends with the file.
fn lock(dir: &Path) -> anyhow::Result<(File, bool)> {
    let path = dir.join(MARK);
    let new = !path.exists();
    let file = File::options().read(true).write(true).create(true).truncate(false).open(&path);
    let file = file.with_context(|| format!("failed to make {}", path.display()))?;
    match private::lock(&file) {
        Ok(()) => Ok((file, new)),
        Err(TryLockError::WouldBlock) => Err(NotFree::Coordinator(dir.to_path_buf()).into()),
        Err(TryLockError::Error(error)) => {
            Err(error).with_context(|| format!("failed to lock {}", path.display()))
        }
    }
}

/// What a mark says; nothing if it is new, damaged, or longer than any that was written here.
/// The command line whose results a directory has, or was to have, if it says so.
pub fn command(dir: &Path) -> Option<String> {
    let mut file = workload::source::open(&dir.join(MARK)).ok()?;
    read(&mut file).map(|mark| mark.command)
}

fn read(file: &mut File) -> Option<Mark> {
    file.rewind().ok()?;
    let most = limits::MARK;
    let text = text_of(file, most, TooLong { most }).ok()?;
    serde_json::from_str(&text).ok()
}

/// Whether results of this may take the place of what is in a directory.
fn check(dir: &Path, former: Option<&Mark>, identity: &Identity, replace: bool) -> Result<(), NotFree> {
    let folder = dir.join("nodes");
    let left: Vec<String> = Running::all_in(&folder).into_iter().map(|running| running.ready.name).collect();
    if !left.is_empty() {
        return Err(NotFree::Nodes { dir: dir.to_path_buf(), nodes: left.join(", ") });
    }
    foreign(dir, former)?;
    if replace {
        return Ok(());
    }
    if dir.join(RECORD).exists() {
        return Err(NotFree::Incomplete { dir: dir.to_path_buf() });
    }
    let whose = match former {
        Some(mark) if mark.identity == *identity || mark.phase == Phase::Prepared => return Ok(()),
        Some(mark) => {
            let Identity { experiment, driver, .. } = &mark.identity;
            let same = (experiment, driver) == (&identity.experiment, &identity.driver);
            let what =
                if same { "other settings of this experiment" } else { "another experiment or driver" };
            format!("{what} (`{}`)", mark.command)
        }
        // Of a version that knew no marks.
        None if dir.join(MANIFEST).exists() => "an earlier version".to_string(),
        None => return Ok(()),
    };
    Err(NotFree::Others { dir: dir.to_path_buf(), whose })
}

/// Finds files that bear names of results and that are none of ours.
fn foreign(dir: &Path, former: Option<&Mark>) -> Result<(), NotFree> {
    let files: Vec<String> = match former {
        Some(mark) if mark.phase == Phase::Written => {
            results(dir).into_iter().filter(|name| !mark.files.contains(name)).collect()
        }
        Some(_) => Vec::new(),
        None if is_our_manifest(&dir.join(MANIFEST)) => Vec::new(),
        None => {
            let nodes = of_nodes(dir).into_iter();
            let nodes = nodes.filter_map(|path| Some(format!("nodes/{}", path.file_name()?.display())));
            results(dir).into_iter().chain(nodes).collect()
        }
    };
    if files.is_empty() {
        return Ok(());
    }
    Err(NotFree::Foreign { dir: dir.to_path_buf(), files: files.join(", ") })
}

/// Whether a directory without a mark has results of ours: of a version that knew no marks.
fn is_our_manifest(path: &Path) -> bool {
    #[derive(Deserialize)]
    struct Manifest {
        #[serde(rename = "format")]
        _format: u32,
        versions: Versions,
    }
    #[derive(Deserialize)]
    struct Versions {
        #[serde(rename = "stealgrid")]
        _stealgrid: String,
    }
    // One of ours is within the limit of documents; of another no more is read.
    let most = limits::of_logs().document;
    let manifest = workload::source::open(path)
        .ok()
        .and_then(|file| serde_json::from_reader(io::BufReader::new(file.take(most))).ok());
    manifest.is_some_and(|Manifest { versions: Versions { .. }, .. }| true)
}

/// Files in a directory that bear names of results, in the order of names; those of sites after the others.
fn results(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        RESULTS.iter().filter(|name| dir.join(name).exists()).map(ToString::to_string).collect();
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut sites: Vec<String> = entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.strip_prefix("site").is_some_and(|number| number.parse::<u32>().is_ok()))
        .map(|name| format!("{name}/jobs.csv"))
        .filter(|name| dir.join(name).exists())
        .collect();
    sites.sort();
    names.append(&mut sites);
    names
}

/// What nodes left in a directory: what they were told, their logs, their journals.
fn of_nodes(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir.join("nodes")).into_iter().flatten().flatten();
    let mut left: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| {
            let of_node =
                path.extension().is_some_and(|ending| NODE_FILES.iter().any(|name| ending == *name));
            of_node || path.join(JOURNAL).exists()
        })
        .collect();
    left.sort();
    left
}

/// Puts results of an earlier run that ended aside, with what says whose they are; removes what other runs left, and what nodes
/// left, as others are about to be in their place. Returns what is still to be moved, once the directory is another's.
fn set_aside(dir: &Path, former: Option<Mark>) -> anyhow::Result<Vec<String>> {
    let aside = dir.join(FORMER);
    remove(&aside)?;
    of_nodes(dir).iter().try_for_each(|old| remove(old))?;
    let names = results(dir);
    let Some(mut mark) = former.filter(|mark| mark.phase == Phase::Written && !names.is_empty()) else {
        names.iter().try_for_each(|name| remove(&dir.join(name)))?;
        return Ok(Vec::new());
    };
    mark.files = names.iter().cloned().collect();
    let failed = || format!("failed to put former results into {}", aside.display());
    std::fs::create_dir(&aside).with_context(failed)?;
    std::fs::write(aside.join(MARK), serde_json::to_string_pretty(&mark)? + "\n").with_context(failed)?;
    Ok(names)
}

/// Puts results back that were put aside for a run that has not begun; what that run has written goes, but for its nodes' logs,
/// which say why it did not begin. Never over a run that can be gone on with. Whoever was killed at putting aside or back
/// left each of the files in one of both places.
fn restore(dir: &Path, file: &mut File) -> anyhow::Result<()> {
    let aside = dir.join(FORMER);
    let former = File::open(aside.join(MARK)).ok().and_then(|mut mark| read(&mut mark));
    let Some(former) = former.filter(|_| !dir.join(RECORD).exists()) else { return Ok(()) };
    let is_aside = |name: &String| aside.join(name).exists();
    let names = results(dir).into_iter().filter(|name| is_aside(name) || !former.files.contains(name));
    names.into_iter().try_for_each(|name| remove(&dir.join(name)))?;
    let failed = || format!("failed to put back results from {}", aside.display());
    let mut back = former.files.iter().filter(|name| is_aside(name));
    back.try_for_each(|name| rename(&aside.join(name), &dir.join(name))).with_context(failed)?;
    former.write(file).with_context(failed)?;
    remove(&aside)
}

fn rename(from: &Path, to: &Path) -> io::Result<()> {
    to.parent().map_or(Ok(()), std::fs::create_dir_all)?;
    std::fs::rename(from, to)
}

fn remove(old: &Path) -> anyhow::Result<()> {
    let removed = if old.is_dir() { std::fs::remove_dir_all(old) } else { std::fs::remove_file(old) };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("failed to replace {}", old.display()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::experiment;

    fn of(dir: &Path, toml: &str) -> Experiment {
        let mut experiment = experiment(toml);
        experiment.outputs.dir = dir.to_path_buf();
        experiment
    }

    /// Writes a few files as a run of the experiment would.
    fn run(experiment: &Experiment, driver: Driver, names: &[&str]) -> anyhow::Result<()> {
        let mut claim = begin(experiment, driver, "stealgrid test")?;
        claim.begin()?;
        for name in names {
            let path = experiment.outputs.dir.join(name);
            std::fs::create_dir_all(path.parent().unwrap())?;
            std::fs::write(path, "ours")?;
        }
        claim.end()?;
        Ok(())
    }

    fn refused(result: anyhow::Result<()>) -> NotFree {
        result.unwrap_err().downcast().unwrap()
    }

    #[test]
    fn a_mark_that_is_too_long_is_none_of_ours() {
        let folder = tempfile::tempdir().unwrap();
        run(&of(folder.path(), SECOND), Driver::Run, &["jobs.csv"]).unwrap();
        let mut mark = File::options().read(true).append(true).open(folder.path().join(MARK)).unwrap();
        assert!(read(&mut mark).is_some());
        let blank = vec![b' '; 1 << 20];
        (0..16).for_each(|_| mark.write_all(&blank).unwrap());
        assert!(read(&mut mark).is_none());
    }

    const SECOND: &str = "network.delay = \"1s\"";

    #[test]
    fn results_give_way_to_the_same_experiment_and_driver_alone() {
        let folder = tempfile::tempdir().unwrap();
        let (dir, kept) = (folder.path(), folder.path().join("jobs.csv"));
        let (same, other) = (of(dir, SECOND), of(dir, "network.delay = \"2s\""));
        run(&same, Driver::Run, &["jobs.csv", MANIFEST, "site1/jobs.csv"]).unwrap();

        for (experiment, driver) in
            [(&same, Driver::Simulate), (&same, Driver::RunVirtual), (&other, Driver::Run)]
        {
            let error = refused(run(experiment, driver, &[]));
            assert!(matches!(error, NotFree::Others { .. }), "{error}");
            let text = error.to_string();
            assert!(text.contains("`stealgrid test`") && text.contains("--replace"), "{text}");
            assert_eq!(std::fs::read_to_string(&kept).unwrap(), "ours");
        }

        run(&same, Driver::Run, &[MANIFEST]).unwrap();
        assert!(!kept.exists() && !dir.join("site1/jobs.csv").exists(), "results of the former run");
        let mut other = other;
        other.outputs.replace = true;
        run(&other, Driver::Run, &["jobs.csv"]).unwrap();
        assert!(!dir.join(MANIFEST).exists());
    }

    #[test]
    fn a_claim_before_anything_happened_keeps_nobody_out() {
        let folder = tempfile::tempdir().unwrap();
        drop(begin(&of(folder.path(), SECOND), Driver::Run, "").unwrap());
        std::fs::write(folder.path().join(CALIBRATION), "too slow").unwrap();
        run(&of(folder.path(), "run.clock = \"scaled:2\""), Driver::Run, &["jobs.csv"]).unwrap();
        assert!(!folder.path().join(CALIBRATION).exists());
    }

    /// As `run --hold` that is ended, or killed, before its clocks start.
    #[test]
    fn results_wait_until_the_run_begins_that_replaces_them() {
        let folder = tempfile::tempdir().unwrap();
        let (experiment, dir) = (of(folder.path(), SECOND), folder.path());
        let written = ["events.jsonl.zst", "jobs.csv", MANIFEST, "site1/jobs.csv"];
        let all = ["manifest.json", "jobs.csv", "events.jsonl.zst", "site1/jobs.csv"];
        run(&experiment, Driver::Run, &written).unwrap();
        let is_as_it_was = |when: &str| {
            assert_eq!(results(dir), all, "{when}");
            let ours = |name| std::fs::read_to_string(dir.join(name)).unwrap() == "ours";
            assert!(all.into_iter().all(ours) && !dir.join(FORMER).exists(), "{when}");
            let mark = read(&mut File::open(dir.join(MARK)).unwrap()).unwrap();
            assert!(mark.phase == Phase::Written && mark.command == "stealgrid test", "{when}");
        };
        let held = |experiment: &Experiment| {
            let claim = begin(experiment, Driver::Run, "stealgrid held").unwrap();
            assert_eq!(results(dir), [""; 0]);
            for name in ["events.jsonl.zst", CALIBRATION, ORDERS_TOKEN] {
                std::fs::write(dir.join(name), "held").unwrap();
            }
            claim
        };
        drop(held(&experiment));
        is_as_it_was("ended");

        // Killed: nothing is dropped. Whoever comes next finds the former results, whatever was moved by then.
        let mut other = of(dir, "network.delay = \"2s\"");
        for back in [&[][..], &["jobs.csv"], &["jobs.csv", "events.jsonl.zst", "site1/jobs.csv"]] {
            let mut claim = held(&experiment);
            for name in back {
                rename(&dir.join(FORMER).join(name), &dir.join(name)).unwrap();
            }
            claim.mark.phase = Phase::Begun;
            drop(claim);
            let error = refused(begin(&other, Driver::Run, "").map(drop));
            assert!(matches!(error, NotFree::Others { .. }), "{error}");
            is_as_it_was("killed");
        }
        other.outputs.replace = true;
        drop(held(&other));
        is_as_it_was("given up for another, which did not begin");

        let mut claim = held(&experiment);
        claim.begin().unwrap();
        assert!(!dir.join(FORMER).exists(), "the clocks have started");
        drop(claim);
        assert_eq!(results(dir).len(), 3);
    }

    /// Whoever attaches goes on with the run; the former results are given up then.
    #[test]
    fn results_are_not_put_back_over_a_run_that_can_be_gone_on_with() {
        let folder = tempfile::tempdir().unwrap();
        let experiment = of(folder.path(), SECOND);
        run(&experiment, Driver::Run, &["jobs.csv"]).unwrap();
        drop({
            let claim = begin(&experiment, Driver::Run, "").unwrap();
            std::fs::write(folder.path().join(RECORD), "").unwrap();
            claim
        });
        assert_eq!(results(folder.path()), [RECORD]);
        resume(folder.path(), &experiment, "").unwrap().go_on().unwrap();
        assert!(!folder.path().join(FORMER).exists());
    }

    #[test]
    fn files_of_others_are_never_touched() {
        for name in ["report.html", "jobs.csv", "nodes/notes.json", "site7/jobs.csv"] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, "theirs").unwrap();
            let mut experiment = of(folder.path(), SECOND);
            for replace in [false, true] {
                experiment.outputs.replace = replace;
                let error = refused(run(&experiment, Driver::Simulate, &[]));
                assert!(matches!(&error, NotFree::Foreign { files, .. } if files == name), "{error}");
            }
            assert_eq!(std::fs::read_to_string(&path).unwrap(), "theirs");
            assert!(!folder.path().join(MARK).exists(), "nothing of ours is left there");
        }
    }

    #[test]
    fn a_directory_of_others_takes_no_results_and_one_of_ours_may_have_notes_beside() {
        let folder = tempfile::tempdir().unwrap();
        let (dir, notes) = (folder.path().join("x"), folder.path().join("x/notes.txt"));
        std::fs::create_dir(&dir).unwrap();
        std::fs::write(&notes, "theirs").unwrap();
        let mut experiment = of(&dir, SECOND);
        for replace in [false, true] {
            experiment.outputs.replace = replace;
            let error = refused(run(&experiment, Driver::Simulate, &[]));
            assert!(matches!(&error, NotFree::Taken(said) if said.contains("notes.txt")), "{error}");
        }
        assert!(!dir.join(MARK).exists(), "nothing of ours is left there");
        std::fs::remove_file(&notes).unwrap();
        run(&experiment, Driver::Simulate, &["jobs.csv"]).unwrap();
        std::fs::write(&notes, "beside results").unwrap();
        run(&experiment, Driver::Simulate, &["jobs.csv"]).unwrap();
        assert_eq!(std::fs::read_to_string(&notes).unwrap(), "beside results");
    }

    #[test]
    fn a_file_that_somebody_put_between_our_results_stays() {
        let folder = tempfile::tempdir().unwrap();
        let experiment = of(folder.path(), SECOND);
        run(&experiment, Driver::Simulate, &["jobs.csv"]).unwrap();
        std::fs::write(folder.path().join("report.html"), "theirs").unwrap();

        let error = refused(run(&experiment, Driver::Simulate, &[]));
        assert!(matches!(&error, NotFree::Foreign { files, .. } if files == "report.html"), "{error}");
        let mut claim = resume(folder.path(), &experiment, "").unwrap();
        assert!(claim.go_on().unwrap_err().is::<NotFree>());
        assert_eq!(std::fs::read_to_string(folder.path().join("report.html")).unwrap(), "theirs");

        std::fs::remove_file(folder.path().join("report.html")).unwrap();
        drop(claim);
        run(&experiment, Driver::Simulate, &["report.html"]).unwrap();
        run(&experiment, Driver::Simulate, &["report.html"]).unwrap();
    }

    #[test]
    fn a_run_that_can_be_gone_on_with_is_given_up_by_order_alone() {
        let folder = tempfile::tempdir().unwrap();
        let mut experiment = of(folder.path(), SECOND);
        run(&experiment, Driver::Run, &[RECORD, CALIBRATION, "jobs.csv"]).unwrap();
        let error = refused(run(&experiment, Driver::Run, &[]));
        assert!(
            matches!(error, NotFree::Incomplete { .. }) && error.to_string().contains("stealgrid attach")
        );

        let mut claim = resume(folder.path(), &experiment, "").unwrap();
        claim.go_on().unwrap();
        assert_eq!(results(folder.path()), [RECORD, CALIBRATION]);
        drop(claim);
        experiment.outputs.replace = true;
        run(&experiment, Driver::Run, &[]).unwrap();
        assert_eq!(results(folder.path()), [""; 0]);
    }

    #[test]
    fn results_of_a_version_without_marks_are_ours_and_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("jobs.csv"), "old").unwrap();
        let manifest = r#"{"format": 1, "versions": {"stealgrid": "0.1.0"}}"#;
        std::fs::write(folder.path().join(MANIFEST), manifest).unwrap();
        let mut experiment = of(folder.path(), SECOND);
        let error = refused(run(&experiment, Driver::Run, &[]));
        assert!(matches!(error, NotFree::Others { .. }), "{error}");
        experiment.outputs.replace = true;
        run(&experiment, Driver::Run, &[]).unwrap();
    }

    #[test]
    fn two_coordinators_do_not_write_into_one_directory() {
        let folder = tempfile::tempdir().unwrap();
        let experiment = of(folder.path(), SECOND);
        let claim = begin(&experiment, Driver::Run, "").unwrap();
        assert!(matches!(refused(run(&experiment, Driver::Run, &[])), NotFree::Coordinator(_)));
        assert!(resume(folder.path(), &experiment, "").unwrap_err().is::<NotFree>());
        drop(claim);
        run(&experiment, Driver::Run, &[]).unwrap();
    }

    #[test]
    fn a_directory_that_is_given_up_in_a_moment_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let experiment = of(folder.path(), SECOND);
        // As a process that is about to be another program still holds it.
        let held = begin(&experiment, Driver::Run, "").unwrap();
        let (_, tried) = std::thread::scope(|scope| {
            let trying = scope.spawn(|| run(&experiment, Driver::Run, &[]));
            std::thread::sleep(std::time::Duration::from_millis(100));
            (drop(held), trying.join().unwrap())
        });
        tried.unwrap();
    }

    #[test]
    fn drivers_have_default_directories_of_their_own() {
        let mut outputs = Outputs { dir: "out/x".into(), ..Outputs::default() };
        Driver::Run.places(&mut outputs);
        assert_eq!(outputs.dir, Path::new("out/x"));
        Driver::Simulate.places(&mut outputs);
        assert_eq!(outputs.dir, Path::new("out/x-simulated"));
        outputs.named = true;
        Driver::RunVirtual.places(&mut outputs);
        assert_eq!(outputs.dir, Path::new("out/x-simulated"));
    }
}
