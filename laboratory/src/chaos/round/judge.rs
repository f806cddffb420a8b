//! What a round must be like when it is over, and each coordinator of it when it ends.

use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use experiments::exit;
use rustix::process::Signal;

use super::deeds::Action;
use super::{GONE_PATIENCE, Round, TICK, is_complete};
use crate::chaos::audit::{self, Left, Rule};
use crate::chaos::processes;
use crate::chaos::schedule::{Interrupted, What};

/// By how much the end of an execution may be noticed late on the wall clock, beside the times its site stood still:
/// a busy machine and a slow disk. Arbitrary; large enough for a machine with many other things to do.
const LATE: Duration = Duration::from_secs(10);

impl Round<'_> {
    /// A coordinator that ends before the run does, does so by its own rule.
    pub(super) fn ended_in_order(&mut self, status: ExitStatus) {
        if !self.begun {
            return;
        }
        let code = status.code().and_then(|code| u8::try_from(code).ok());
        if !self.can_be_attached_to() {
            self.found(
                "end",
                format!("the run ended with {status}, and run.json is gone: nobody can attach"),
            );
        }
        // A journal that cannot be read is refused as input.
        let refuses = !self.harmed.is_empty() && code == Some(exit::INPUT);
        // It cannot write, or hits a limit that ends it.
        let cramped = self.is_cramped() && (status.signal().is_some() || code == Some(exit::UNEXPECTED));
        if code != Some(exit::INCOMPLETE) && !refuses && !cramped {
            self.found("end", format!("the coordinator ended with {status}"));
        }
    }

    /// Whether a fault keeps the coordinator itself from writing or opening files.
    pub(super) fn is_cramped(&self) -> bool {
        let no_room = self.disk.as_ref().is_some_and(|disk| disk.holds(&self.out))
            && self.deeds.iter().any(|(_, deed)| matches!(deed, Action::MakeRoom));
        no_room || self.deeds.iter().any(|(_, deed)| matches!(deed, Action::UnlimitAll))
    }

    /// What the audit says, and what must be so beside it.
    pub(super) fn judge(&mut self) {
        self.nodes_are_gone("the run");
        // One that was killed after it had written everything has no code.
        let complete = self.ended.map_or(!self.can_be_attached_to(), is_complete);
        for file in ["run.json", "nodes/grid.key", "nodes/control.token"] {
            if complete && self.out.join(file).exists() {
                self.found("left", format!("the run is complete, and {file} is still there"));
            }
        }
        self.no_panics();
        if self.ended.is_some_and(|status| status.code() == Some(exit::OUT_OF_TOLERANCE.into()))
            && !self.differs_by_its_makespan_alone()
        {
            self.found("end", "the run ended with exit code 5: see coordinator.log".to_string());
        }
        let left = match Left::read(&self.out) {
            Ok(left) => left,
            Err(reason) => return self.found("results", format!("there are none to be judged: {reason}")),
        };
        if audit::is_complete(&left.manifest) != complete {
            let status = &left.manifest["status"];
            self.found(
                "end",
                format!("the manifest says {status}, and the coordinator ended with {}", self.ran.ending),
            );
        }
        let stops = self.schedule.faults.iter().map(|fault| match fault.what {
            What::Stop { for_ms, .. } => for_ms,
            _ => 0,
        });
        let late = Duration::from_millis(stops.sum()) + LATE;
        let stays = |site: &usize| !self.hit.contains(site);
        let widest =
            (0..self.template.sites.len()).filter(stays).map(|site| self.template.sites[site].1).max();
        let rule = Rule {
            late_max_us: (late.as_secs_f64() * self.template.factor * 1e6) as i64,
            kills: self.schedule.interrupted == Interrupted::Kill,
            may_miss_wider_than: match (self.schedule.lease, self.schedule.restart) {
                // Others take over what a site had that lost its journal, and it restarts.
                (Some(_), true) => None,
                _ if !self.harmed.is_empty() => Some(0),
                // Those that are too wide for who is left.
                (_, false) => widest,
                (_, true) => None,
            },
            loses_events: !self.harmed.is_empty(),
            may_repeat: self.schedule.lease.is_some() || !self.harmed.is_empty(),
        };
        let sites: Vec<u32> = self.template.sites.iter().map(|(_, processors)| *processors).collect();
        let mut audited = audit::audit(&self.template.jobs, &sites, &left, rule);
        audited.findings.splice(0..0, std::mem::take(&mut self.ran.audited.findings));
        self.ran.audited = audited;
    }

    /// Whether code 5 says no more than that the run is none of its simulations: those know of no process that stood
    /// still.
    fn differs_by_its_makespan_alone(&self) -> bool {
        let text = std::fs::read_to_string(self.out.join("metrics.json")).unwrap_or_default();
        let metrics: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        metrics["compared"]["verdict"] == "different"
            && metrics["verdict"] != "violated"
            && metrics["scraped"]["equal"] != false
    }

    /// No process fails by a mistake of ours.
    pub(super) fn no_panics(&mut self) {
        let logs = std::fs::read_dir(&self.nodes).into_iter().flatten().flatten().map(|entry| entry.path());
        let logs = logs.filter(|path| path.extension().is_some_and(|ending| ending == "log"));
        for path in logs.chain([self.folder.join("coordinator.log")]).collect::<Vec<_>>() {
            let text = std::fs::read(&path).unwrap_or_default();
            let text = String::from_utf8_lossy(&text);
            if let Some(line) = text.lines().find(|line| line.contains("panicked at")) {
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                self.found("panic", format!("{name}: {line}"));
            }
        }
    }

    /// Whoever is about to attach to a run that ended by itself finds no node of it.
    pub(super) fn nodes_are_gone_if_ended(&mut self) {
        if self.ended.is_some_and(|status| status.code() == Some(exit::INCOMPLETE.into())) {
            self.nodes_are_gone("a run that ended incomplete");
        }
    }

    /// No node is left behind; those that are, are killed.
    pub(super) fn nodes_are_gone(&mut self, what: &str) {
        let deadline = Instant::now() + GONE_PATIENCE;
        loop {
            let left = processes::all(&self.nodes);
            if left.is_empty() {
                return;
            }
            if Instant::now() >= deadline {
                let ids: Vec<String> = left.iter().map(|process| process.id.to_string()).collect();
                self.found("left", format!("{what} left processes behind: {}", ids.join(", ")));
                for process in &left {
                    process.signal(Signal::KILL);
                }
                return;
            }
            std::thread::sleep(TICK);
        }
    }

    /// Copies what is on the small file system, so that it is there after it.
    pub(super) fn keep_disk(&mut self) {
        let Some(disk) = self.disk.take() else { return };
        if self.ran.audited.findings.is_empty() {
            return;
        }
        let kept = self.folder.join("disk");
        let copied = Command::new("cp").arg("-a").arg(disk.folder()).arg(&kept).status();
        drop(disk);
        if !copied.is_ok_and(|status| status.success()) {
            self.note("what was on the small file system could not be copied");
        }
    }
}
