//! What a command says on stderr goes on to that of this process, up to a limit.
//!
//! What is beyond it is read and left out, so that nobody who says much is held up.

use std::io::{ErrorKind, Read, Write as _};
use std::process::ChildStderr;
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use crate::patience::look_until;

/// Bytes that are read at once.
const READ: usize = 1 << 13;
/// Bytes of the stack of a thread that reads: the buffer, and room to write a line.
const STACK: usize = 1 << 17;
/// How long to wait for what a command said last. Somebody who was not found may hold its stderr open.
const PATIENCE: Duration = Duration::from_millis(500);

/// A thread that hands on what one command says.
#[derive(Debug)]
pub(crate) struct Errors {
    thread: Option<JoinHandle<()>>,
}

impl Errors {
    /// Hands on `most` bytes.
    ///
    /// # Errors
    /// If there can be no more threads.
    pub(crate) fn hand_on(from: ChildStderr, most: u64) -> std::io::Result<Errors> {
        let thread = Builder::new().name("stderr of a command".to_string()).stack_size(STACK);
        let thread =
            thread.spawn(move || copy(from, most, |bytes| drop(std::io::stderr().write_all(bytes))))?;
        Ok(Errors { thread: Some(thread) })
    }

    /// Waits until all was handed on that a command said which has ended.
    pub(crate) fn finish(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        let deadline = Instant::now() + PATIENCE;
        look_until(deadline, || thread.is_finished().then_some(()));
        if thread.is_finished() {
            // It does not panic; and if it did, what it said is there.
            let _ = thread.join();
        }
    }
}

/// Hands on what is read until there is no more, at most so many bytes, and says so if that was not all.
fn copy(mut from: impl Read, most: u64, mut say: impl FnMut(&[u8])) {
    let (mut buffer, mut left, mut is_said) = ([0; READ], most, false);
    loop {
        let count = match from.read(&mut buffer) {
            Ok(0) => return,
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(_) => return,
        };
        let handed = count.min(usize::try_from(left).unwrap_or(usize::MAX));
        say(&buffer[..handed]);
        left -= handed as u64;
        if handed < count && !std::mem::replace(&mut is_said, true) {
            say(format!(
                "\nwarning: a command said more than {most} bytes on stderr (external.stderr_bytes); the rest is left \
                 out\n"
            )
            .as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copied(bytes: usize, most: u64) -> String {
        let mut said = Vec::new();
        copy(std::io::repeat(b'x').take(bytes as u64), most, |bytes| said.extend_from_slice(bytes));
        String::from_utf8(said).unwrap()
    }

    #[test]
    fn what_is_within_the_limit_is_handed_on_and_the_rest_is_named_once() {
        assert_eq!(copied(30_000, 30_000), "x".repeat(30_000));
        let said = copied(1 << 22, 30_000);
        assert_eq!(said.matches('x').count(), 30_000 + "external.stderr_bytes".matches('x').count());
        assert_eq!(said.matches("external.stderr_bytes").count(), 1, "{}", &said[30_000..]);
    }
}
