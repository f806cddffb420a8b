//! What a command reads from and says to whoever typed it: its own line, and lines on stdout and stderr.

use std::io::Write as _;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use report::quantity::clock;

/// What a coordinator logs if `RUST_LOG` does not say: what it prints says the rest.
pub(crate) const LOGGED: &str = "warn";

/// Letters of a line of output, the same for all commands and the help of flags.
pub(crate) use report::COLUMNS;

/// Time between lines about progress where stderr is no terminal.
pub(crate) const LINE_EVERY: Duration = Duration::from_secs(10);

/// How long the rest takes in words, if it goes on like what is done since `begun`.
pub(crate) fn left(begun: Instant, done: u64, all: u64) -> String {
    match done {
        0 => "estimating the time left".to_string(),
        _ => {
            let left = begun.elapsed().mul_f64(all.saturating_sub(done) as f64 / done as f64);
            format!("about {} left", clock(left.as_secs_f64().ceil()))
        }
    }
}

/// Prints to stdout. A reader that has gone away, as `head` does, is no error.
pub(crate) fn say(text: &str) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error).context("failed to print"),
        _ => Ok(()),
    }
}

/// The command line as it can be pasted.
pub(crate) fn command_line() -> String {
    let quoted = |argument: String| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,%+".contains(c);
        if !argument.is_empty() && argument.chars().all(plain) {
            argument
        } else {
            format!("'{}'", argument.replace('\'', "'\\''"))
        }
    };
    let arguments: Vec<String> = std::env::args().skip(1).map(quoted).collect();
    format!("stealgrid {}", arguments.join(" "))
}

/// Says this on stderr, if anybody can hear it.
pub(crate) fn tell(words: &str) {
    let _ = std::io::stderr().lock().write_all(words.as_bytes());
}
