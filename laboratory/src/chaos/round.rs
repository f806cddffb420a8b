//! One round: a run as a child process, the faults of its schedule, coordinators that attach, and what the audit says of
//! what is left.
//!
//! Signals reach only processes of the folder of this round: [`super::processes`]. What is done is in `deeds`, what
//! must be so in `judge`.

mod deeds;
mod judge;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use experiments::exit;
use experiments::interrupt::Interrupt;
use rustix::process::Signal;

use self::deeds::Action;
use super::audit::{Audited, Finding};
use super::disk::Disk;
use super::experiment::Template;
use super::journals::{Harmed, Journals};
use super::processes;
use super::schedule::{self, Attach, Schedule};

/// How long a run may take until its clocks start.
const START_PATIENCE: Duration = Duration::from_secs(90);
/// How long a run may take after the last fault, with all coordinators that attach in the end.
const END_PATIENCE: Duration = Duration::from_secs(240);
/// How long nodes may take to end after their coordinator, and one that is killed.
const GONE_PATIENCE: Duration = Duration::from_secs(15);
/// How long until somebody attaches to a run that has ended incomplete.
const ATTACH_AFTER: Duration = Duration::from_millis(300);
/// Coordinators that attach to a run that ended incomplete by itself, while faults strike and after them.
const ATTACHES_MAX: u32 = 12;
/// The same once all faults are over.
const LAST_ATTACHES_MAX: u32 = 2;
/// Runs that are begun because one was struck before its clocks started.
const STARTS_MAX: u32 = 3;
/// How often everything is looked at.
const TICK: Duration = Duration::from_millis(5);

/// What became of a round.
#[derive(Debug, Default)]
pub struct Ran {
    /// What the audit counted and found, and what was found beside it.
    pub audited: Audited,
    /// Faults that were carried out, by name.
    pub struck: BTreeMap<&'static str, u64>,
    /// Faults that were not: the run was over, or what they would have hit was not there.
    pub missed: u64,
    /// Coordinators that attached.
    pub attached: u64,
    /// How the last coordinator ended.
    pub ending: String,
}

/// A round that goes on.
#[derive(Debug)]
struct Round<'a> {
    template: &'a Template,
    schedule: &'a Schedule,
    interrupt: &'a Interrupt,
    folder: PathBuf,
    out: PathBuf,
    nodes: PathBuf,
    may_mount: bool,
    disk: Option<Disk>,
    journals: Journals,
    harmed: Vec<Harmed>,
    coordinator: Option<Child>,
    /// Coordinators so far.
    coordinators: u32,
    /// Whether the clocks were started.
    begun: bool,
    /// How the last ended by itself.
    ended: Option<ExitStatus>,
    /// Coordinators that ended incomplete by themselves.
    gave_up: u32,
    deeds: Vec<(Instant, Action)>,
    /// Sites whose nodes ended by a fault.
    hit: BTreeSet<usize>,
    ran: Ran,
}

/// Carries out a round in a folder of its own. None if interrupted.
///
/// # Errors
/// If the files of the round cannot be written, or the program cannot be started.
pub fn run(
    template: &Template,
    schedule: &Schedule,
    folder: &Path,
    may_mount: bool,
    interrupt: &Interrupt,
) -> anyhow::Result<Option<Ran>> {
    let out = folder.join("out");
    let nodes = out.join("nodes");
    let mut round = Round {
        template,
        schedule,
        interrupt,
        folder: folder.to_path_buf(),
        may_mount,
        disk: None,
        journals: Journals::new(&nodes, &folder.join("kept")),
        harmed: Vec::new(),
        coordinator: None,
        coordinators: 0,
        begun: false,
        ended: None,
        gave_up: 0,
        deeds: Vec::new(),
        hit: BTreeSet::new(),
        ran: Ran::default(),
        out,
        nodes,
    };
    std::fs::write(folder.join("experiment.toml"), template.of_round(schedule))
        .with_context(|| format!("failed to write into {}", folder.display()))?;
    std::fs::write(folder.join("schedule.txt"), schedule.to_string())?;
    if !round.begin()? {
        return Ok(None);
    }
    if round.begun && !(round.faults()? && round.end()?) {
        return Ok(None);
    }
    round.judge();
    round.keep_disk();
    Ok(Some(std::mem::take(&mut round.ran)))
}

impl Round<'_> {
    /// Starts the run, again if it was struck before its clocks started; false if interrupted.
    fn begin(&mut self) -> anyhow::Result<bool> {
        for start in 1.. {
            self.prepare()?;
            let experiment = self.folder.join("experiment.toml");
            let mut arguments: Vec<std::ffi::OsString> =
                vec!["run".into(), experiment.into(), "--out".into()];
            arguments.push(self.out.clone().into());
            // Whether the makespan is one that simulations have is not the question here, nor how busy the machine is.
            for argument in ["--ensemble", "0", "--calibration-tolerance", "1000000", "--no-page"] {
                arguments.push(argument.into());
            }
            self.spawn(&arguments)?;
            let early = self.schedule.early.filter(|_| start == 1);
            let mut strike =
                early.map(|early| (Instant::now() + Duration::from_millis(early.after_ms), early));
            let deadline = Instant::now() + START_PATIENCE;
            loop {
                if self.interrupt.is_set() {
                    return Ok(false);
                }
                if self.can_be_attached_to() {
                    self.begun = true;
                    return Ok(true);
                }
                if let Some((at, early)) = strike.filter(|(at, _)| Instant::now() >= *at) {
                    self.note(&format!("before the start, at {at:?}: {early:?}"));
                    strike = None;
                    *self.ran.struck.entry("kill before the start").or_default() += 1;
                    match early.site {
                        Some(site) => drop(self.kill(&[site])),
                        None => self.kill_coordinator(),
                    }
                }
                self.look();
                if self.coordinator.is_none() && !self.can_be_attached_to() {
                    break;
                }
                if Instant::now() >= deadline {
                    self.found("start", format!("the clocks did not start within {START_PATIENCE:?}"));
                    return Ok(true);
                }
                std::thread::sleep(TICK);
            }
            let ended = self.ended.take();
            self.nodes_are_gone("a run that had not begun");
            let early = self.ran.struck.contains_key("kill before the start");
            let in_order = ended.is_none_or(|status| status.code() == Some(exit::INCOMPLETE.into()));
            if !early || !in_order || start >= STARTS_MAX {
                let words = ended.map_or("killed".to_string(), |status| status.to_string());
                self.found("start", format!("the run ended with {words} before its clocks started"));
                self.ended = ended;
                return Ok(true);
            }
        }
        Ok(true)
    }

    /// An empty result directory, with the file system that the schedule wants.
    fn prepare(&mut self) -> anyhow::Result<()> {
        self.disk = None;
        if self.out.exists() {
            std::fs::remove_dir_all(&self.out)
                .with_context(|| format!("failed to clear {}", self.out.display()))?;
        }
        let folder = match self.schedule.disk {
            schedule::Disk::Site(site) => self.journals.dir(self.name(site)),
            schedule::Disk::Nodes => self.nodes.clone(),
            schedule::Disk::All => self.out.clone(),
        };
        if self.may_mount {
            let disk = Disk::mount(&folder);
            self.disk = Some(disk.with_context(|| format!("failed to mount over {}", folder.display()))?);
        }
        Ok(())
    }

    /// Strikes, until nothing is left to be done or the run is over; false if interrupted.
    fn faults(&mut self) -> anyhow::Result<bool> {
        let start = Instant::now();
        if self.coordinator.is_none() {
            self.attach_later();
        }
        for (place, fault) in self.schedule.faults.iter().enumerate() {
            self.deeds.push((start + Duration::from_millis(fault.at_ms), Action::Strike(place)));
        }
        while !self.deeds.is_empty() && !self.is_over() {
            if self.interrupt.is_set() {
                return Ok(false);
            }
            let now = Instant::now();
            // In the order in which they were meant, also if several are late.
            self.deeds.sort_by_key(|(at, _)| *at);
            while self.deeds.first().is_some_and(|(at, _)| *at <= now) && !self.is_over() {
                let (_, deed) = self.deeds.remove(0);
                self.act(deed)?;
            }
            if self.look().is_some() && !self.is_over() {
                self.attach_later();
            }
            let next = self.deeds.iter().map(|(at, _)| at.saturating_duration_since(Instant::now())).min();
            std::thread::sleep(next.unwrap_or(TICK).min(TICK));
        }
        let strikes = self.deeds.iter().filter(|(_, deed)| matches!(deed, Action::Strike(_))).count();
        self.ran.missed += strikes as u64;
        self.heal();
        Ok(true)
    }

    /// Whether there is nothing to go on with: the run is complete, or nobody can attach to it.
    fn is_over(&self) -> bool {
        let over = self.ended.is_some_and(is_complete) || !self.can_be_attached_to();
        self.coordinator.is_none() && (over || self.gave_up > ATTACHES_MAX)
    }

    fn can_be_attached_to(&self) -> bool {
        self.out.join("run.json").exists()
    }

    /// Whoever ended the run before its end may be followed by another.
    fn attach_later(&mut self) {
        let planned = self.deeds.iter().any(|(_, deed)| matches!(deed, Action::Attach(_)));
        if !planned {
            let once = Attach { after_ms: 0, killed_after_ms: None };
            self.later(ATTACH_AFTER, Action::Attach(VecDeque::from([once])));
        }
    }

    /// Waits for the end of the run, with nothing in its way; false if interrupted.
    fn end(&mut self) -> anyhow::Result<bool> {
        self.deeds.clear();
        let deadline = Instant::now() + END_PATIENCE;
        let mut attaches = 0;
        loop {
            if self.interrupt.is_set() {
                return Ok(false);
            }
            self.look();
            if self.coordinator.is_none() {
                if self.ended.is_some_and(is_complete) {
                    return Ok(true);
                }
                if self.can_be_attached_to() && (attaches < LAST_ATTACHES_MAX || self.put_back()?) {
                    attaches += 1;
                    self.nodes_are_gone_if_ended();
                    self.attach()?;
                } else {
                    return Ok(true);
                }
            }
            if Instant::now() >= deadline {
                self.found(
                    "end",
                    format!("the run did not end within {END_PATIENCE:?} after the last fault"),
                );
                self.kill_coordinator();
                return Ok(true);
            }
            std::thread::sleep(TICK);
        }
    }

    /// Puts back journals that were damaged or lost, where no node has begun anew; whether there were any. Whoever has
    /// a copy may go on with it: everything else must be kept.
    fn put_back(&mut self) -> anyhow::Result<bool> {
        let mut any = false;
        for harmed in std::mem::take(&mut self.harmed) {
            if !processes::of_site(&self.nodes, &harmed.site).is_empty() {
                self.harmed.push(harmed);
                continue;
            }
            let done = self.journals.put_back(&harmed);
            match done.with_context(|| format!("failed to put back the journal of {}", harmed.site))? {
                true => {
                    self.note(&format!("the journal of {} is put back", harmed.site));
                    any = true;
                }
                false => self.harmed.push(harmed),
            }
        }
        Ok(any)
    }

    fn attach(&mut self) -> anyhow::Result<()> {
        self.ran.attached += 1;
        self.spawn(&["attach".into(), self.out.clone().into()])
    }

    /// Starts this program with these arguments as the coordinator.
    fn spawn(&mut self, arguments: &[std::ffi::OsString]) -> anyhow::Result<()> {
        let program = std::env::current_exe().context("failed to find this executable")?;
        let words: Vec<String> = arguments.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        self.note(&format!("stealgrid {}", words.join(" ")));
        let log = OpenOptions::new().create(true).append(true).open(self.folder.join("coordinator.log"))?;
        let mut command = match self.schedule.limits_are_errors {
            // What is ignored here is ignored by everything that it starts.
            true => {
                let mut command = Command::new("sh");
                command.args(["-c", "trap '' XFSZ; exec \"$@\"", "sh"]).arg(program);
                command
            }
            false => Command::new(program),
        };
        command.args(arguments).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        // A Ctrl-C at the terminal is for this process, which ends the round.
        let child = command.process_group(0).spawn().context("failed to start a coordinator")?;
        self.coordinator = Some(child);
        self.coordinators += 1;
        self.ended = None;
        Ok(())
    }

    fn kill_coordinator(&mut self) {
        if self.look().is_some() {
            // It has ended by itself just now.
            return;
        }
        if let Some(mut child) = self.coordinator.take() {
            // It has ended if it cannot be killed.
            let _ = child.kill();
            let _ = child.wait();
            self.ran.ending = "killed".to_string();
        }
    }

    /// How the coordinator has ended, if it has.
    fn look(&mut self) -> Option<ExitStatus> {
        let status = self.coordinator.as_mut()?.try_wait().ok()??;
        self.note(&format!("the coordinator ended with {status}"));
        self.coordinator = None;
        self.ended = Some(status);
        self.ran.ending = status.to_string();
        if !is_complete(status) {
            self.gave_up += 1;
            self.ended_in_order(status);
        }
        Some(status)
    }

    fn found(&mut self, check: &'static str, what: String) {
        self.note(&format!("FOUND {check}: {what}"));
        self.ran.audited.findings.push(Finding { check, what });
    }

    /// Says in the log of the round what happens, between what the coordinators say.
    fn note(&self, what: &str) {
        let log = OpenOptions::new().create(true).append(true).open(self.folder.join("coordinator.log"));
        let now = humantime::format_rfc3339_millis(std::time::SystemTime::now());
        // The round goes on without.
        let _ = log.and_then(|mut log| writeln!(log, "-- {now} {what}"));
    }

    fn name(&self, site: usize) -> &str {
        &self.template.sites[site].0
    }

    fn later(&mut self, after: Duration, deed: Action) {
        self.deeds.push((Instant::now() + after, deed));
    }
}

impl Drop for Round<'_> {
    fn drop(&mut self) {
        self.kill_coordinator();
        for process in processes::all(&self.nodes) {
            process.signal(Signal::KILL);
        }
    }
}

/// Whether every job has ended: done, or beyond a tolerance, or not measured.
fn is_complete(status: ExitStatus) -> bool {
    let codes = [exit::DONE, exit::OUT_OF_TOLERANCE, exit::NOT_MEASURED, exit::FELL_BACK];
    status.code().is_some_and(|code| codes.iter().any(|complete| code == i32::from(*complete)))
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;

    use super::*;

    #[test]
    fn a_run_that_a_fallback_completed_is_complete() {
        let ended_with = |code: u8| ExitStatus::from_raw(i32::from(code) << 8);
        assert!(is_complete(ended_with(exit::FELL_BACK)) && is_complete(ended_with(exit::DONE)));
        assert!(!is_complete(ended_with(exit::INCOMPLETE)) && !is_complete(ended_with(exit::UNEXPECTED)));
        assert!(!is_complete(ExitStatus::from_raw(9)), "a signal");
    }
}
