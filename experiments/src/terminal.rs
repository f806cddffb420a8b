//! What a command reads from and says to whoever typed it: its own line, and lines on stdout and stderr.

use std::ffi::OsStr;
use std::io::{IsTerminal as _, Write as _};
use std::sync::OnceLock;
use std::time::Duration;

use anyhow::Context as _;
use outputs::table::folded;
use report::quantity::clock;

use crate::exit;

/// What a coordinator logs if `RUST_LOG` does not say: what it prints says the rest.
pub const LOGGED: &str = "warn";

/// Letters of a line of output, the same for all commands and the help of flags.
pub use report::COLUMNS;

/// The least that lines are folded to, whatever a terminal says: a word needs room.
const COLUMNS_MIN: usize = 40;

/// Letters of a line of stdout: [`COLUMNS`], or fewer on a terminal that is narrower.
pub fn columns() -> usize {
    static HERE: OnceLock<usize> = OnceLock::new();
    *HERE.get_or_init(|| {
        let stdout = std::io::stdout();
        let width = if stdout.is_terminal() { rustix::termios::tcgetwinsize(&stdout).ok() } else { None };
        columns_of(width.map(|size| size.ws_col))
    })
}

/// The same where stdout is a terminal of so many columns, if it is one and says so.
fn columns_of(terminal: Option<u16>) -> usize {
    let width = terminal.filter(|&width| width > 0).map_or(COLUMNS, usize::from);
    width.clamp(COLUMNS_MIN, COLUMNS)
}

/// Prints to stdout as [`say`], folding lines that are longer than a narrow terminal. Commands to paste stay whole.
pub fn say_folded(text: &str) -> anyhow::Result<()> {
    say(&narrowed(text, columns()))
}

fn narrowed(text: &str, width: usize) -> String {
    if width >= COLUMNS {
        return text.to_string();
    }
    let fold = |line: &str| match line.starts_with("  stealgrid ") {
        true => line.to_string(),
        false => folded(line, width),
    };
    text.split('\n').map(fold).collect::<Vec<_>>().join("\n")
}

/// Time between lines about progress where stderr is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// The same, unless `STEALGRID_PROGRESS_EVERY` has other seconds.
pub fn line_every() -> Duration {
    static EVERY: OnceLock<Duration> = OnceLock::new();
    let asked = || std::env::var("STEALGRID_PROGRESS_EVERY").ok()?.parse::<f64>().ok();
    *EVERY.get_or_init(|| {
        asked().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).unwrap_or(LINE_EVERY)
    })
}

/// How long the rest takes in words, if it goes on like what is done in the time so far.
pub fn left(so_far: Duration, done: u64, all: u64) -> String {
    left_of_several(so_far, done, all, 1)
}

/// The same of what is done several at a time. When one of them has ended, each of the others is half done in the mean:
/// counted for nothing, they would make the first estimates too high by as much as there are of them.
pub fn left_of_several(so_far: Duration, done: u64, all: u64, at_a_time: u64) -> String {
    match done {
        0 => "estimating the time left".to_string(),
        _ if done >= all => "nearly done".to_string(),
        _ => {
            let halves = 2 * done + at_a_time.clamp(1, all - done) - 1;
            let left = so_far.as_secs_f64() * (2 * all - halves) as f64 / halves as f64;
            about_left(Duration::from_secs_f64(left))
        }
    }
}

/// That the rest takes so long.
pub fn about_left(left: Duration) -> String {
    format!("about {} left", clock(left.as_secs_f64().ceil().max(1.0)))
}

/// Prints to stdout. A reader that has gone away, as `head` does, is no error.
pub fn say(text: &str) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error).context("failed to print"),
        _ => Ok(()),
    }
}

/// Prints a part of what goes on being printed. Once nobody reads it there is nothing left to do, and the process ends with
/// [`exit::UNREAD`]; if it cannot be printed otherwise, as on a full disk, with that of a failure.
pub fn print(text: &str) {
    let mut stdout = std::io::stdout().lock();
    let Err(error) = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) else { return };
    if error.kind() == std::io::ErrorKind::BrokenPipe {
        std::process::exit(exit::UNREAD.into());
    }
    tell(&format!("error: failed to print: {error}\n"));
    std::process::exit(exit::UNEXPECTED.into());
}

/// The command line as it can be pasted.
pub fn command_line() -> String {
    let arguments: Vec<String> = std::env::args_os().skip(1).map(|argument| quoted(&argument)).collect();
    format!("stealgrid {}", arguments.join(" "))
}

/// An argument as shells take it. Names of files are bytes: what is no text is written as bash and its like read it, `$'x\xff'`.
fn quoted(argument: &OsStr) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,%+".contains(c);
    match argument.to_str() {
        Some(text) if !text.is_empty() && text.chars().all(plain) => text.to_string(),
        Some(text) => format!("'{}'", text.replace('\'', "'\\''")),
        None => format!("$'{}'", argument.as_encoded_bytes().escape_ascii()),
    }
}

/// A note on stderr, of lines that are not too long. Words stay whole, and so paths do.
pub fn note(words: &str) {
    tell(&format!("{}\n", folded(&format!("note: {words}"), COLUMNS)));
}

/// Says this on stderr, if anybody can hear it.
pub fn tell(words: &str) {
    let _ = std::io::stderr().lock().write_all(words.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_begins_with_an_estimate_and_is_never_nothing() {
        let after = |seconds, done, all| left(Duration::from_secs(seconds), done, all);
        assert_eq!(after(2, 0, 100), "estimating the time left");
        assert_eq!(after(10, 25, 100), "about 0:00:30 left");
        assert_eq!(after(100, 1, 100), "about 2:45:00 left");
        assert_eq!(after(1, 999_999, 1_000_000), "about 0:00:01 left");
        assert_eq!(after(9, 100, 100), "nearly done");
    }

    #[test]
    fn an_argument_is_quoted_as_a_shell_reads_it_whatever_bytes_it_has() {
        use std::os::unix::ffi::OsStrExt as _;
        for (argument, expected) in [
            (&b"out/x.toml"[..], "out/x.toml"),
            (b"KTH (1).swf", "'KTH (1).swf'"),
            (b"it's", "'it'\\''s'"),
            (b"", "''"),
            (b"x\xff'\n", "$'x\\xff\\'\\n'"),
        ] {
            assert_eq!(quoted(OsStr::from_bytes(argument)), expected);
        }
    }

    #[test]
    fn lines_fit_a_narrow_terminal_and_are_as_they_are_elsewhere() {
        assert_eq!([None, Some(0), Some(200), Some(60), Some(3)].map(columns_of), [100, 100, 100, 60, 40]);
        let line = format!("wait  {}\n  stealgrid run {}\n", "some words ".repeat(8), "x".repeat(80));
        assert_eq!(narrowed(&line, 100), line);
        let folded = narrowed(&line, 60);
        let (text, command) = folded.split_once("  stealgrid").unwrap();
        assert!(text.lines().count() > 1 && text.lines().all(|line| line.chars().count() <= 60), "{folded}");
        assert_eq!(command.lines().count(), 1);
    }

    #[test]
    fn what_is_under_way_beside_is_half_done() {
        let after = |done, at_a_time| left_of_several(Duration::from_secs(10), done, 100, at_a_time);
        assert_eq!(after(25, 1), "about 0:00:30 left");
        // 5 at a time, 10 s each: when the first has ended, 20 rounds of 10 s are ahead less what the others have done.
        assert_eq!(after(1, 5), "about 0:05:24 left");
        assert_eq!(after(99, 5), "about 0:00:01 left");
        assert_eq!(after(0, 5), "estimating the time left");
    }
}
