//! Processes of a round: found by what they were started with, and signaled so that no other process can be meant.
//!
//! A node is a process whose command line names a configuration in the folder of the round. That is so from the moment
//! it runs the program, long before it says that it is up. Reads `/proc`: Linux only.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::process::{
    Pid, PidfdFlags, Resource, Rlimit, Signal, getrlimit, pidfd_open, pidfd_send_signal, prlimit,
};

/// One process, and no other that has its number later: signals go by a handle of the system, and everything else
/// looks first when the process with that number began.
#[derive(Debug)]
pub struct Process {
    /// Process id of the system.
    pub id: u32,
    pid: Pid,
    handle: OwnedFd,
    /// Ticks from the start of the machine until it began.
    began: String,
}

impl Process {
    /// The process that has this number.
    fn open(id: u32) -> Option<Process> {
        let pid = i32::try_from(id).ok().and_then(Pid::from_raw)?;
        let handle = pidfd_open(pid, PidfdFlags::empty()).ok()?;
        Some(Process { id, pid, handle, began: began(id)? })
    }

    /// A child of this process that is not waited for yet.
    pub fn of_child(child: &std::process::Child) -> Option<Process> {
        Process::open(child.id())
    }

    /// Sends a signal; false if the process has ended.
    pub fn signal(&self, signal: Signal) -> bool {
        pidfd_send_signal(&self.handle, signal).is_ok()
    }

    /// Whether it runs. One that has ended and is not waited for does not.
    pub fn is_running(&self) -> bool {
        began(self.id).is_some_and(|began| began == self.began)
    }

    /// Lowers a limit of it; false if it has ended.
    pub fn limit(&self, resource: Resource, most: u64) -> bool {
        let Some(was) = self.limits(resource) else { return false };
        let most = was.maximum.map_or(most, |maximum| most.min(maximum));
        self.alter(resource, Rlimit { current: Some(most), ..was })
    }

    /// Takes back what [`Process::limit`] did, to it or to whom it inherited the limit from.
    pub fn unlimit(&self, resource: Resource) {
        if let Some(was) = self.limits(resource) {
            // What this process may is what everything that it starts begins with.
            let own = getrlimit(resource);
            let current = if own.maximum == was.maximum { own.current } else { was.maximum };
            self.alter(resource, Rlimit { current, ..was });
        }
    }

    fn limits(&self, resource: Resource) -> Option<Rlimit> {
        let name = if resource == Resource::Nofile { "Max open files" } else { "Max file size" };
        let text = std::fs::read_to_string(format!("/proc/{}/limits", self.id)).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        // Without a limit there is a word.
        let mut words = line.split_whitespace().map(|word| word.parse().ok());
        Some(Rlimit { current: words.next()?, maximum: words.next()? })
    }

    fn alter(&self, resource: Resource, limit: Rlimit) -> bool {
        self.is_running() && prlimit(Some(self.pid), resource, limit).is_ok()
    }

    /// How many files it has open.
    pub fn open_files(&self) -> u64 {
        std::fs::read_dir(format!("/proc/{}/fd", self.id)).map_or(0, |entries| entries.count() as u64)
    }
}

/// When the process of this number began, in ticks: field 22 of proc(5). None if there is none that runs.
fn began(id: u32) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name before may have spaces and parentheses.
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut fields = fields.split(' ');
    let state = fields.next()?;
    (!matches!(state, "Z" | "X")).then(|| fields.nth(18).map(str::to_string))?
}

/// The nodes of a site, by the file that they were told to read: none or one, but for moments.
pub fn of_site(nodes: &Path, site: &str) -> Vec<Process> {
    let config = nodes.join(format!("{site}.json"));
    all_with(|argument| argument == config.as_os_str().as_bytes())
}

/// All nodes of a folder.
pub fn all(nodes: &Path) -> Vec<Process> {
    let mut folder = nodes.as_os_str().as_bytes().to_vec();
    folder.push(b'/');
    all_with(|argument| argument.starts_with(&folder))
}

/// Processes that run with `--config` and a file that is meant.
fn all_with(is_meant: impl Fn(&[u8]) -> bool) -> Vec<Process> {
    let is_node = |id: u32| {
        let Ok(line) = std::fs::read(format!("/proc/{id}/cmdline")) else { return false };
        let mut arguments = line.split(|byte| *byte == 0);
        arguments.any(|argument| argument == b"--config") && arguments.next().is_some_and(&is_meant)
    };
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    // Looked at once more when the handle is there: the number may have been given to another between.
    ids.filter(|id| is_node(*id)).filter_map(Process::open).filter(|process| is_node(process.id)).collect()
}

/// Whether processes can be found, signaled and limited here.
///
/// # Errors
/// If not.
pub fn check() -> io::Result<()> {
    let this = Process::open(std::process::id())
        .ok_or_else(|| io::Error::other("the system gives no handles of processes (pidfd_open)"))?;
    match this.limits(Resource::Nofile) {
        Some(_) => Ok(()),
        None => Err(io::Error::other("there is no /proc that tells the limits of processes")),
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    fn sleeper(folder: &Path, file: &str) -> std::process::Child {
        // A program that takes any arguments, and reads until it is told to stop.
        let mut command = Command::new("sh");
        command.args(["-c", "read line", "sh", "--config"]).arg(folder.join(file));
        command.stdin(Stdio::piped()).spawn().unwrap()
    }

    #[test]
    fn a_process_is_found_by_its_file_and_gone_with_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let (mut one, mut two) = (sleeper(folder.path(), "a.json"), sleeper(folder.path(), "b.json"));
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
        // Each is this program for a moment.
        while all(folder.path()).len() < 2 {
            assert!(std::time::Instant::now() < deadline);
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let found = of_site(folder.path(), "a");
        assert_eq!(found.iter().map(|process| process.id).collect::<Vec<_>>(), [one.id()]);
        assert!(all(&folder.path().join("a")).is_empty());

        assert!(found[0].limit(Resource::Nofile, 9));
        assert_eq!(found[0].limits(Resource::Nofile).unwrap().current, Some(9));
        found[0].unlimit(Resource::Nofile);
        assert_ne!(found[0].limits(Resource::Nofile).unwrap().current, Some(9));

        assert!(found[0].is_running() && found[0].signal(Signal::KILL));
        one.wait().unwrap();
        assert!(!found[0].is_running() && !found[0].signal(Signal::KILL));
        assert!(!found[0].limit(Resource::Nofile, 9));
        two.kill().unwrap();
        two.wait().unwrap();
    }
}
