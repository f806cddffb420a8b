//! What a command left behind: processes that it started and that are in no process group of its any more.
//!
//! The command gets a variable that no other process has, and whoever it starts inherits it, also in a session of its own.
//! Where the system shows variables (`/proc`), who has it is killed at the end. Who cleared its variables is not found.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use rustix::process::{Pid, Signal, kill_process};

/// The variable.
const NAME: &str = "STEALGRID_COMMAND";
/// How often to look: a process may start another while it is being killed. Arbitrary, enough for what does not flee.
const LOOKS: usize = 20;

/// What marks one command and all that it starts.
#[derive(Debug)]
pub(crate) struct Mark {
    value: String,
}

impl Mark {
    /// One that no other has: by the number of this process, the time and a count.
    pub(crate) fn new() -> Mark {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Mark { value: format!("{}.{}.{count}", std::process::id(), time.as_nanos()) }
    }

    /// The variable that the command gets.
    pub(crate) fn variable(&self) -> (&str, &str) {
        (NAME, &self.value)
    }

    /// Kills all that have it, as far as the system shows them.
    pub(crate) fn kill(&self) {
        let wanted = format!("{NAME}={}", self.value);
        for _ in 0..LOOKS {
            if !kill_those_with(wanted.as_bytes()) {
                return;
            }
        }
    }
}

/// Whether there was one.
fn kill_those_with(variable: &[u8]) -> bool {
    let mut found = false;
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let id = entry.file_name().to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw);
        // Those of other users cannot be read, and those that have ended have no variables.
        let Some((id, variables)) = id.zip(std::fs::read(entry.path().join("environ")).ok()) else {
            continue;
        };
        if variables.split(|&byte| byte == 0).any(|own| own == variable) {
            // An error means that it has ended just now.
            found |= kill_process(id, Signal::KILL).is_ok();
        }
    }
    found
}
