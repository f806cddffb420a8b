//! What files of others may cost this process: the limits of [`workload::limits`], which the environment can set, applied
//! to logs, results and experiments.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::OnceLock;

use workload::limits::{Exceeded, Limit, Limits};

/// Bytes of a line that we write ourselves: an event, a row of `jobs.csv`. Of a grid of 10,000 sites a row has some ten
/// kilobytes of intervals.
pub const OWN_LINE: u64 = 1 << 20;
/// Bytes of a TOML file: a matrix of delays between 1,000 sites has eight million.
pub const EXPERIMENT: u64 = 16 << 20;
/// Bytes of a file that `genetic` writes: `rows.json` has some five kilobytes for a thousand jobs.
pub const GENETIC: u64 = 1 << 30;
/// Bytes of the file `.stealgrid`, which names the files of a result directory: some thirty bytes each.
pub const MARK: u64 = 16 << 20;

static LIMITS: OnceLock<Limits> = OnceLock::new();

/// Reads the environment, once and before anything else.
///
/// # Errors
/// In words, if a variable has a value that is no limit.
pub fn init() -> Result<(), String> {
    let mut limits = Limits::default();
    for limit in Limit::ALL {
        let name = limit.variable();
        // Compose files leave empty what nobody has given.
        let Some(value) = std::env::var_os(name).filter(|value| !value.is_empty()) else { continue };
        let number = value.to_str().and_then(|text| text.parse().ok()).filter(|&number: &u64| number > 0);
        *limits.of(limit) =
            number.ok_or_else(|| format!("{name} is {value:?}; write a whole number above 0"))?;
    }
    LIMITS.get_or_init(|| limits);
    Ok(())
}

/// Of workload logs.
pub fn of_logs() -> Limits {
    LIMITS.get().copied().unwrap_or_default()
}

/// Of result directories, whose lines are longer and whose event logs are read as a stream, however long they are.
pub fn of_results() -> Limits {
    let limits = of_logs();
    Limits { line: limits.line.max(OWN_LINE), text: u64::MAX, ..limits }
}

/// A file is over a limit that no variable sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it has more than {most} bytes, the most that such a file may have")]
pub struct TooLong {
    /// What the limit allows, in bytes.
    pub most: u64,
}

/// A text that is read as a whole, up to so many bytes, which are a limit that cannot be set.
///
/// # Errors
/// If it cannot be read, is no text, or is longer.
pub fn read_text(path: &Path, most: u64) -> io::Result<String> {
    read_up_to(path, most, || io::Error::new(io::ErrorKind::FileTooLarge, TooLong { most }))
}

/// A document that is read as a whole, up to [`Limits::document`], which the environment can set.
///
/// # Errors
/// If it cannot be read, is no text, or is longer.
pub fn read_document(path: &Path) -> io::Result<String> {
    let most = of_logs().document;
    read_up_to(path, most, || Exceeded { limit: Limit::Document, most, line: 0 }.into())
}

fn read_up_to(path: &Path, most: u64, too_long: impl Fn() -> io::Error) -> io::Result<String> {
    let file = File::open(path)?;
    if file.metadata()?.len() > most {
        return Err(too_long());
    }
    // A file that grows, or has no length, ends at the limit, too.
    let mut bytes = Vec::new();
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(too_long());
    }
    String::from_utf8(bytes)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "stream did not contain valid UTF-8"))
}
