//! What files of others may cost this process: the limits of [`workload::limits`], which the environment can set, applied
//! to logs, results and experiments.

use std::io;
use std::path::Path;
use std::sync::OnceLock;

pub use node::bounded::read_text;
use node::bounded::read_text_or;
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

/// A document that is read as a whole, up to [`Limits::document`], which the environment can set.
///
/// # Errors
/// If it cannot be read, is no text, or is longer.
pub fn read_document(path: &Path) -> io::Result<String> {
    let most = of_logs().document;
    read_text_or(path, most, Exceeded { limit: Limit::Document, most, line: 0 })
}
