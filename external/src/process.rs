//! A process that is asked line by line, with time-outs, and how it ends.

use std::io::{ErrorKind, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, ChildStdout, Command as Program, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use scheduler::Time;
use scheduler::event::FallbackCause;

use crate::command::Command;
use crate::limits::Limits;
use crate::patience::look_until;
use crate::remains::Mark;
use crate::stderr::Errors;

/// How long a process may take to end by itself once it is told that all is over. Then it is killed.
const END_PATIENCE: Duration = Duration::from_secs(2);

/// Bytes that are read at once.
const READ: usize = 1 << 16;

/// A process of the user. It begins with the first question.
#[derive(Debug)]
pub(crate) struct Process {
    command: Command,
    limits: Limits,
    /// Whom it decides for, in words.
    whom: String,
    /// Who decides once it does not, in words.
    fallback: String,
    state: Mutex<State>,
}

#[derive(Debug)]
enum State {
    NotBegun,
    Runs(Box<Running>),
    Ended,
}

#[derive(Debug)]
struct Running {
    child: Child,
    /// None once it is told that all is over.
    input: Option<ChildStdin>,
    output: ChildStdout,
    errors: Errors,
    /// Who has it was started by the command.
    mark: Mark,
    /// What was read and not taken.
    read: Vec<u8>,
    /// The line that is sent; kept to spare allocations.
    line: String,
    now: Time,
}

/// Why there is no answer.
struct Fault {
    cause: FallbackCause,
    reason: String,
}

impl Fault {
    fn nonsense(reason: String) -> Fault {
        Fault { cause: FallbackCause::Nonsense, reason }
    }

    fn died(reason: &dyn std::fmt::Display) -> Fault {
        Fault { cause: FallbackCause::Died, reason: format!("it ended: {reason}") }
    }
}

impl Process {
    pub(crate) fn new(command: Command, limits: Limits, whom: String, fallback: String) -> Process {
        Process { command, limits, whom, fallback, state: Mutex::new(State::NotBegun) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Whoever panicked meanwhile has left a state that ends the process at worst.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a line and understands the answer. `begin` writes the line that comes first of all.
    ///
    /// # Errors
    /// If there is none that can be understood. Why is on stderr by then, and the process has ended.
    pub(crate) fn ask<T>(
        &self,
        now: Time,
        begin: impl FnOnce(&mut String),
        question: impl FnOnce(&mut String),
        understand: impl FnOnce(&[u8]) -> Result<T, String>,
    ) -> Result<T, FallbackCause> {
        let mut state = self.state();
        let answer = self.asked(&mut state, now, begin, question, understand);
        answer.map_err(|Fault { cause, reason }| {
            self.stop(&mut state, &reason);
            cause
        })
    }

    fn asked<T>(
        &self,
        state: &mut State,
        now: Time,
        begin: impl FnOnce(&mut String),
        question: impl FnOnce(&mut String),
        understand: impl FnOnce(&[u8]) -> Result<T, String>,
    ) -> Result<T, Fault> {
        if let State::NotBegun = state {
            let failed = |fault: Fault| Fault { cause: FallbackCause::Start, ..fault };
            let mut running = self
                .spawn()
                .map_err(|error| failed(Fault::nonsense(format!("it cannot be started: {error}"))))?;
            begin(&mut running.line);
            let answered = running.exchange(self.limits.start, self.limits.line_bytes);
            let answered = answered.map(|length| drop(running.read.drain(..=length)));
            *state = State::Runs(Box::new(running));
            answered.map_err(failed)?;
        }
        let State::Runs(running) = state else {
            return Err(Fault::died(&"it is not asked any more"));
        };
        running.now = now;
        running.line.clear();
        question(&mut running.line);
        let length = running.exchange(self.limits.decision, self.limits.line_bytes)?;
        let answer = understand(&running.read[..length]).map_err(|reason| {
            let said = String::from_utf8_lossy(&running.read[..length.min(200)]).into_owned();
            Fault::nonsense(format!("{reason}; it said {said:?}"))
        });
        running.read.drain(..=length);
        answer
    }

    fn spawn(&self) -> std::io::Result<Running> {
        let Some((program, arguments)) = self.command.split() else {
            return Err(std::io::Error::other("there is no command"));
        };
        let mark = Mark::new();
        let (name, value) = mark.variable();
        let mut child = Program::new(program)
            .args(arguments)
            .env(name, value)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-C at the terminal is for us; and whom it starts ends with it.
            .process_group(0)
            .spawn()?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(input), Some(output), Some(errors)) = pipes else {
            return Err(std::io::Error::other("it has no pipes"));
        };
        rustix::io::ioctl_fionbio(&input, true)?;
        let errors = Errors::hand_on(errors, self.limits.stderr_bytes)?;
        let (input, read, line) = (Some(input), Vec::new(), String::new());
        Ok(Running { child, input, output, errors, mark, read, line, now: Time::ZERO })
    }

    /// Ends it for a reason, if it runs or would be started.
    pub(crate) fn end(&self, reason: &str) {
        self.stop(&mut self.state(), reason);
    }

    fn stop(&self, state: &mut State, reason: &str) {
        let before = std::mem::replace(state, State::Ended);
        if let State::Ended = before {
            return;
        }
        let Process { command, whom, fallback, .. } = self;
        let mut at = Time::ZERO;
        if let State::Runs(mut running) = before {
            at = running.now;
            // What it said itself comes before what is said of it.
            running.kill();
        }
        eprintln!(
            "warning: at {at} s the external strategy of {whom}, `{command}`, failed: {reason}. From here on {fallback} \
             decides"
        );
    }
}

impl Drop for Process {
    /// Tells it that all is over, and waits until it has ended.
    fn drop(&mut self) {
        let before = std::mem::replace(&mut *self.state(), State::Ended);
        if let State::Runs(running) = before {
            running.finish();
        }
    }
}

impl Running {
    /// Sends the line and reads one. Returns how long it is, without its end, at the beginning of what was read.
    fn exchange(&mut self, patience: Duration, most: usize) -> Result<usize, Fault> {
        if !self.read.is_empty() {
            let said = String::from_utf8_lossy(&self.read[..self.read.len().min(200)]).into_owned();
            return Err(Fault::nonsense(format!("it said more than was asked: {said:?}")));
        }
        let deadline = Instant::now() + patience;
        let late =
            || Fault { cause: FallbackCause::Late, reason: format!("it took longer than {patience:?}") };
        self.line.push('\n');
        let Some(input) = &mut self.input else { return Err(Fault::died(&"it is told no more")) };
        let mut left = self.line.as_bytes();
        while !left.is_empty() {
            match input.write(left) {
                Ok(count) => left = &left[count..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if !is_ready(input.as_fd(), PollFlags::OUT, deadline) {
                        return Err(late());
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(self.died(&error)),
            }
        }
        let mut looked_at = 0;
        loop {
            let new = &self.read[looked_at..];
            if let Some(place) = new.iter().position(|&byte| byte == b'\n') {
                return Ok(looked_at + place);
            }
            looked_at = self.read.len();
            if looked_at > most {
                return Err(Fault::nonsense(format!("it said a line of more than {most} bytes")));
            }
            if !is_ready(self.output.as_fd(), PollFlags::IN, deadline) {
                return Err(late());
            }
            self.read.resize(looked_at + READ, 0);
            let count = self.output.read(&mut self.read[looked_at..]);
            self.read.truncate(looked_at + *count.as_ref().unwrap_or(&0));
            match count {
                Ok(0) => return Err(self.died(&"without an answer")),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(Fault::died(&error)),
            }
        }
    }

    /// With its exit status, if it has one soon.
    fn died(&mut self, error: &dyn std::fmt::Display) -> Fault {
        match self.wait(Duration::from_millis(200)) {
            Some(status) => Fault::died(&status),
            None => Fault::died(error),
        }
    }

    fn wait(&mut self, patience: Duration) -> Option<std::process::ExitStatus> {
        look_until(Instant::now() + patience, || self.child.try_wait().ok().flatten())
    }

    /// With whatever it started.
    fn kill(&mut self) {
        if let Some(group) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            // It may have ended, and its children not.
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.child.wait();
        self.mark.kill();
        self.errors.finish();
    }

    /// Says that all is over, and kills what does not end by itself.
    fn finish(mut self) {
        let now = self.now;
        self.line = format!(
            "{{\"now\":{now},\"events\":[{{\"timestamp\":{now},\"type\":\"SIMULATION_ENDS\",\"data\":{{}}}}]}}"
        );
        // An answer is not needed.
        let _ = self.exchange(END_PATIENCE, READ);
        rustix::io::ioctl_fionbio(&self.output, true).ok();
        let (mut rest, deadline) = (vec![0; READ], Instant::now() + END_PATIENCE);
        self.input = None;
        // Whoever says more meanwhile is not held up.
        while is_ready(self.output.as_fd(), PollFlags::IN, deadline)
            && self.output.read(&mut rest).is_ok_and(|count| count > 0)
        {}
        self.let_end(deadline);
        // What it started and left behind ends with it.
        self.kill();
    }

    /// Until it has ended. It is not taken note of yet: as long as it is not, the number of its group is nobody else's.
    fn let_end(&self, deadline: Instant) {
        let Some(leader) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) else { return };
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        // If it cannot be asked there is nothing to wait for.
        look_until(deadline, || waitid(WaitId::Pid(leader), options).map_or(Some(()), |end| end.map(drop)));
    }
}

/// Whether something can be read or written before the deadline, or never again.
fn is_ready(pipe: BorrowedFd<'_>, flags: PollFlags, deadline: Instant) -> bool {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let Ok(timeout) = Timespec::try_from(left) else { return false };
        let mut pipes = [PollFd::new(&pipe, flags)];
        match poll(&mut pipes, Some(&timeout)) {
            Ok(count) => return count > 0,
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}
