//! Jobs as processes of this machine, each under a holder ([`super::hold`]) that a thread waits for.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{ChildStdin, Command, Stdio};
use std::thread::Builder;

use rustix::process::{Pid, Signal, kill_process_group};
use scheduler::event::ExitCause;

use super::exit::Exit;
use super::hold::{self, Said, Told};

/// Bytes of the stack of a thread that waits for a holder.
const STACK: usize = 1 << 17;

/// A job that runs. Dropping it kills the job.
#[derive(Debug)]
pub(super) struct Held {
    _input: ChildStdin,
}

/// Starts the holder of a job; `over` hears once when nothing of it is left.
///
/// # Errors
/// If there can be no more processes or threads.
pub(super) fn begin(told: &Told, over: impl FnOnce(Exit) + Send + 'static) -> io::Result<Held> {
    let mut child = Command::new(program()?)
        .arg0(hold::NAME)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        // Ctrl-C at the terminal is for the node.
        .process_group(0)
        .spawn()?;
    let pipes = (child.stdin.take(), child.stdout.take());
    let (Some(mut input), Some(output)) = pipes else {
        return Err(io::Error::other("the holder has no pipes"));
    };
    let mut line = serde_json::to_string(told)?;
    line.push('\n');
    input.write_all(line.as_bytes())?;
    let wait = move || {
        let (mut group, mut exit) = (None, None);
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            match serde_json::from_str(&line) {
                Ok(Said::Runs { group: number }) => group = Pid::from_raw(number),
                Ok(Said::Over { how, code, why }) => exit = Some(Exit { how, code, why }),
                Err(error) => tracing::warn!(%error, line, "the holder of a job says what it does not mean"),
            }
        }
        let status = child.wait();
        over(exit.unwrap_or_else(|| {
            // It was killed, and the job was not.
            if let Some(group) = group {
                let _ = kill_process_group(group, Signal::KILL);
            }
            let why = match status {
                Ok(status) => format!("the process that held it ended with {status}"),
                Err(error) => error.to_string(),
            };
            Exit { how: ExitCause::Unknown, code: None, why: Some(why) }
        }));
    };
    Builder::new().name("job".to_string()).stack_size(STACK).spawn(wait)?;
    Ok(Held { _input: input })
}

/// This program, also after its file was replaced.
fn program() -> io::Result<std::path::PathBuf> {
    if cfg!(target_os = "linux") { Ok("/proc/self/exe".into()) } else { std::env::current_exe() }
}
