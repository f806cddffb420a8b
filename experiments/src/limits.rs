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
/// Sites of an experiment in which all know all, unless the environment sets [`SITES_VARIABLE`] higher. What sites know of each other grows
/// with the square of them: at this many a simulation takes some 2.5 GB and a quarter of a minute before the first job. With
/// `protocol.view` there may be as many pairs.
pub const SITES: u64 = 5_000;
/// Sets it.
pub const SITES_VARIABLE: &str = "STEALGRID_MAX_SITES";
/// Bytes of a page of ours, or a document, that is to be replaced: a page of a sweep has some ten million.
pub const PAGE: u64 = 256 << 20;
/// Bytes of all that a database of a sweep says of itself, and of the names of its columns: the text of the sweep file is most.
pub const ABOUT: u64 = EXPERIMENT;
/// Bytes of the file `.stealgrid`, which names the files of a result directory: some thirty bytes each.
pub const MARK: u64 = 16 << 20;

static LIMITS: OnceLock<Limits> = OnceLock::new();
static SITES_HERE: OnceLock<u64> = OnceLock::new();

/// Reads the environment, once and before anything else.
///
/// # Errors
/// In words, if a variable has a value that is no limit.
pub fn init() -> Result<(), String> {
    let mut limits = Limits::default();
    for limit in Limit::ALL {
        if let Some(number) = of_environment(limit.variable())? {
            *limits.of(limit) = number;
        }
    }
    LIMITS.get_or_init(|| limits);
    if let Some(number) = of_environment(SITES_VARIABLE)? {
        SITES_HERE.get_or_init(|| number);
    }
    Ok(())
}

/// What a variable says, if it is given.
fn of_environment(name: &str) -> Result<Option<u64>, String> {
    // Compose files leave empty what nobody has given.
    let Some(value) = std::env::var_os(name).filter(|value| !value.is_empty()) else { return Ok(None) };
    let number = value.to_str().and_then(|text| text.parse().ok()).filter(|&number: &u64| number > 0);
    number.map(Some).ok_or_else(|| format!("{name} is {value:?}; write a whole number above 0"))
}

/// Whether an experiment may have so many sites, each of which knows so many others or all.
///
/// # Errors
/// If it may not, with what to do.
pub fn check_sites(sites: usize, view: Option<u32>) -> Result<(), String> {
    let most = SITES_HERE.get().copied().unwrap_or(SITES);
    let sites = sites as u64;
    let known = view.map_or(sites, |view| u64::from(view).min(sites));
    if sites.saturating_mul(known) <= most.saturating_mul(most) {
        return Ok(());
    }
    let of_views = match view {
        Some(view) => format!(" where each knows {view} others"),
        None => String::new(),
    };
    Err(format!(
        "there are {sites} sites{of_views}, more than {most} that all know each other: memory grows with the square of these, some 100 bytes \
         for each pair; have sites know fewer others (protocol.view), or, if this machine has that, set {SITES_VARIABLE} higher"
    ))
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
