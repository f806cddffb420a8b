//! Which process serves a data directory, written there by the process itself: a coordinator that did not start it
//! finds it by that.
//!
//! Numbers of processes are given out again, so each stands beside the time its process began: [`ProcessMark`].

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};
use scheduler::SiteId;
use serde::{Deserialize, Serialize};

use crate::control::api::ReadyLine;
use crate::{bounded, private};

/// The file in a data directory.
const FILE: &str = "running.json";
/// Bytes of it: a few hundred, and some fifty for each address that is listened on.
const BYTES_MAX: u64 = 1 << 16;

/// One process of this machine, and no other that later has its number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProcessMark {
    /// Process id of the system.
    pub id: u32,
    /// When it began, in words that are compared and not read. Empty if the system did not say.
    pub began: String,
}

impl ProcessMark {
    /// That of this process.
    pub fn of_this() -> ProcessMark {
        let id = std::process::id();
        ProcessMark { id, began: began(id).ok().flatten().unwrap_or_default() }
    }

    /// Whether the process still runs. One that has ended and that nobody waits for does not; one of which that cannot be
    /// told, as without descriptors, may.
    pub fn is_alive(&self) -> bool {
        self.look().unwrap_or(true)
    }

    /// Whether it runs, if that can be told.
    fn look(&self) -> io::Result<bool> {
        Ok(!self.began.is_empty() && began(self.id)?.as_ref() == Some(&self.began))
    }

    /// Kills the process if it still runs. One of which that cannot be told is left alone: its number may be that of
    /// another by now.
    pub fn kill(&self) {
        let pid = i32::try_from(self.id).ok().and_then(Pid::from_raw);
        if let Some(pid) = pid.filter(|_| self.look().unwrap_or(false)) {
            // An error means that it has ended just now.
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

/// When a process began: which life of the machine, and how many ticks into it.
#[cfg(target_os = "linux")]
fn began(id: u32) -> io::Result<Option<String>> {
    let stat = match fs::read_to_string(format!("/proc/{id}/stat")) {
        Ok(stat) => stat,
        Err(error) if is_of_none(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    let life = match fs::read_to_string("/proc/sys/kernel/random/boot_id") {
        Err(error) if is_of_none(&error) => String::new(),
        life => life?,
    };
    Ok(if is_over(id, &stat)? { None } else { began_by(&stat, life.trim()) })
}

/// Whether a process has ended by field 3 (state) of proc(5). That is the state of its first thread, which may have ended
/// before the others: one that is writing goes on until that is done.
#[cfg(target_os = "linux")]
fn is_over(id: u32, stat: &str) -> io::Result<bool> {
    let state = stat.rsplit_once(") ").and_then(|(_, fields)| fields.split(' ').next());
    Ok(match state {
        Some("Z") => match fs::read_dir(format!("/proc/{id}/task")) {
            Err(error) if is_of_none(&error) => true,
            tasks => tasks?.count() <= 1,
        },
        state => state == Some("X"),
    })
}

/// Whether what was to be read is not there, or goes while it is read, as what is told of a process does with it.
fn is_of_none(error: &io::Error) -> bool {
    let gone = rustix::io::Errno::SRCH.raw_os_error();
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
        || error.raw_os_error() == Some(gone)
}

/// The same from field 22 of proc(5); the name before them may have spaces and parentheses.
#[cfg(target_os = "linux")]
fn began_by(stat: &str, life: &str) -> Option<String> {
    let (_, fields) = stat.rsplit_once(") ")?;
    let ticks = fields.split(' ').nth(19)?;
    Some(format!("{life} {ticks}"))
}

/// When a process began, as ps(1) says it.
#[cfg(not(target_os = "linux"))]
fn began(id: u32) -> io::Result<Option<String>> {
    let shown =
        std::process::Command::new("ps").args(["-o", "stat=,lstart=", "-p", &id.to_string()]).output()?;
    let text = String::from_utf8_lossy(&shown.stdout);
    let Some((state, began)) = text.trim().split_once(' ') else { return Ok(None) };
    Ok((!state.starts_with('Z')).then(|| began.trim().to_string()))
}

/// A node that is up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Running {
    /// The process to signal, or to look for.
    pub process: ProcessMark,
    /// What it said when it was up.
    pub ready: ReadyLine,
}

impl Running {
    /// Says in a data directory that this process serves it. The former file is there until the new one is whole.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(dir: &Path, ready: &ReadyLine) -> io::Result<()> {
        let running = Running { process: ProcessMark::of_this(), ready: ready.clone() };
        let new = dir.join(FILE).with_extension("new");
        let mut file = private::create(&new)?;
        serde_json::to_writer(&mut file, &running)?;
        file.write_all(b"\n")?;
        fs::rename(new, dir.join(FILE))
    }

    /// A process of a site of which nothing is known: it does not run.
    pub fn unknown(site: SiteId, name: String) -> Running {
        let (peer_id, listen, http) = (String::new(), Vec::new(), String::new());
        let ready = ReadyLine { site, name, peer_id, listen, http, metrics: None };
        Running { process: ProcessMark { id: 0, began: String::new() }, ready }
    }

    /// The process that serves a data directory, if it runs. A file that makes no sense names none: who starts a
    /// node there nevertheless is refused by its lock.
    pub fn of(dir: &Path) -> Option<Running> {
        Running::last_of(dir).filter(|running| running.process.is_alive())
    }

    /// The process that served a data directory last, whether or not it runs.
    pub fn last_of(dir: &Path) -> Option<Running> {
        let text = bounded::read_text(&dir.join(FILE), BYTES_MAX).ok()?;
        serde_json::from_str(&text).ok()
    }

    /// Whether a process may serve one of the directories in a folder: that is so, too, where it cannot be told.
    pub fn may_be_any_in(folder: &Path) -> bool {
        let may_serve = |entry: io::Result<fs::DirEntry>| {
            let text = match entry.and_then(|entry| bounded::read_text(&entry.path().join(FILE), BYTES_MAX)) {
                Ok(text) => text,
                // What is too long was written by no node.
                Err(error) => return error.kind() != io::ErrorKind::FileTooLarge && !is_of_none(&error),
            };
            serde_json::from_str(&text).is_ok_and(|running: Running| running.process.is_alive())
        };
        match fs::read_dir(folder) {
            Ok(mut entries) => entries.any(may_serve),
            Err(error) => !is_of_none(&error),
        }
    }

    /// Those that serve the directories in a folder, in the order of sites.
    pub fn all_in(folder: &Path) -> Vec<Running> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let mut all: Vec<Running> = entries.filter_map(|entry| Running::of(&entry.path())).collect();
        all.sort_by_key(|running| running.ready.site);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ready() -> ReadyLine {
        let (name, peer_id) = ("site1".to_string(), String::new());
        ReadyLine { site: SiteId(1), name, peer_id, listen: Vec::new(), http: String::new(), metrics: None }
    }

    #[test]
    fn a_process_is_told_from_a_later_one_with_its_number() {
        let this = ProcessMark::of_this();
        assert!(this.is_alive());
        assert!(!ProcessMark { began: "another time".to_string(), ..this.clone() }.is_alive());
        assert!(!ProcessMark { began: String::new(), ..this }.is_alive());
    }

    #[test]
    fn a_directory_names_its_process_while_that_runs() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("site1.data");
        fs::create_dir(&dir).unwrap();
        assert_eq!(Running::of(&dir), None);

        Running::write(&dir, &ready()).unwrap();
        let running = Running { process: ProcessMark::of_this(), ready: ready() };
        assert_eq!(Running::all_in(folder.path()), std::slice::from_ref(&running));
        assert_eq!(Running::last_of(&dir).as_ref(), Some(&running));

        let long = serde_json::to_string(&running).unwrap() + &" ".repeat(BYTES_MAX as usize);
        let gone = ProcessMark { began: "another time".to_string(), ..running.process };
        let text = serde_json::to_string(&Running { process: gone, ..running }).unwrap();
        for text in [text.as_str(), "", "{}", &long] {
            fs::write(dir.join(FILE), text).unwrap();
            assert_eq!(Running::all_in(folder.path()), [], "{text}");
            assert!(!Running::may_be_any_in(folder.path()), "{text}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_start_is_read_behind_any_name_and_a_zombie_does_not_run() {
        let fields = (4..=24).map(|field| field.to_string()).collect::<Vec<_>>().join(" ");
        let stat = |state: &str| format!("7 (a) Z (b) {state} {fields}\n");
        assert_eq!(began_by(&stat("S"), "life").as_deref(), Some("life 22"));
        for (state, over) in [("S", false), ("T", false), ("Z", true), ("X", true)] {
            // Number 0 is no process: it has no threads.
            assert_eq!(is_over(0, &stat(state)).unwrap(), over, "{state}");
        }
        assert_eq!(began_by("7 (short) S", "life"), None);
    }

    /// Its first thread has ended, and another goes on.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_has_ended_when_its_last_thread_has() {
        let script = "import ctypes, threading, time\n\
                      threading.Thread(target=time.sleep, args=(600,)).start()\n\
                      ctypes.CDLL(None).pthread_exit(None)";
        let Ok(mut child) = std::process::Command::new("python3").args(["-c", script]).spawn() else {
            eprintln!("SKIPPED: a process that ends thread by thread needs python3");
            return;
        };
        let id = child.id();
        let mark = ProcessMark { id, began: began(id).unwrap().unwrap() };
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while !fs::read_to_string(format!("/proc/{id}/stat")).unwrap().contains(") Z ") {
            assert!(std::time::Instant::now() < deadline, "its first thread does not end");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }

        let alive = mark.is_alive();
        child.kill().unwrap();

        assert!(alive, "a thread of it still runs");
        while mark.is_alive() {
            assert!(std::time::Instant::now() < deadline, "it does not end");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        child.wait().unwrap();
    }
}
