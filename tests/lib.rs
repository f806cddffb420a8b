//! What the tests of several crates share: where the real workload logs are, how a check says that it was skipped, and
//! the tables of documents. Only tests use this crate; what holds between crates is in `tests/tests/`.
//!
//! ```
//! let page = "| key | default |\n|---|---|\n| `delay` | 0s |\n";
//! assert_eq!(stealgrid_tests::rows(page, &["key", "default"]), [["`delay`", "0s"]]);
//! ```

pub mod once_more;
pub mod small_disk;

use std::fmt::Display;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use scheduler::{JobId, JobSpec, Labels, SiteId, Span, Time, TimedJob};
use workload::prepare::PrepareOptions;

/// The folder of real workload logs and reference schedules beside the project, or the one that
/// `STEALGRID_SHARED` names. `None`, said loudly on stderr with the file's name, if `file` is not there.
pub fn shared(file: &str) -> Option<PathBuf> {
    let root = std::env::var_os("STEALGRID_SHARED")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared"), PathBuf::from);
    let path = root.join(file);
    if path.exists() {
        Some(path)
    } else {
        skipped(format_args!(
            "{} is not there; set STEALGRID_SHARED to the folder that holds {file}",
            path.display()
        ));
        None
    }
}

/// All jobs of a real log of [`shared`], by the name of its file without ending, on a machine of so many processors. `None`,
/// said loudly, if it is not there.
///
/// # Panics
/// If the log cannot be read, or has jobs that cannot be.
pub fn real_jobs(log: &str, processors: u32) -> Option<Vec<TimedJob>> {
    let path = shared(&format!("traces/{log}.swf.gz"))?;
    let trace = workload::read(&path).expect("a log of the archive");
    let prepared = workload::prepare(&trace, &PrepareOptions::default(), processors);
    Some(prepared.expect("its jobs are sound").jobs)
}

/// Jobs that keep coming at a steady pace, of many widths and run times, each the same in every run. Estimates are twice the
/// run times.
#[derive(Clone, Copy, Debug)]
pub struct Steady {
    /// So many jobs come at one instant,
    pub together: u64,
    /// and the next ones after so long.
    pub every: Span,
    /// Run times are this and up to 96 s more.
    pub shortest: Span,
    /// Processors of the widest job.
    pub widest: u32,
    /// They come to sites 1 to this, in turn.
    pub sites: u32,
}

impl Steady {
    /// The first jobs of them, in queue order.
    pub fn jobs(&self, count: u64) -> Vec<TimedJob> {
        let job = |number: u64| {
            let run_time = self.shortest + Span::from_secs((number * 7919 % 97) as i64);
            let spec = JobSpec {
                id: JobId(number + 1),
                submit: Time::ZERO + self.every.saturating_mul((number / self.together) as i64),
                processors: 1 + (number * 31 % u64::from(self.widest)) as u32,
                requested: run_time.saturating_mul(2),
                labels: Labels::UNKNOWN,
                origin: SiteId(1 + (number % u64::from(self.sites)) as u32),
                payload: 0,
            };
            TimedJob { spec, run_time }
        };
        (0..count).map(job).collect()
    }
}

/// Says that a check was skipped and why, in a line that `.ci/run` counts. Those of [`shared`] are
/// failures there where the folder is.
///
/// # Panics
/// If there is no stderr.
pub fn skipped(why: impl Display) {
    // Not `eprintln`: the test harness hides that of tests that pass, and a skipped check must be seen.
    writeln!(std::io::stderr(), "SKIPPED: {why}").expect("tests have a stderr");
}

/// All Rust files below folders of the project, relative to its root, in order.
///
/// # Panics
/// If a folder cannot be read.
pub fn rust_files<P: AsRef<Path>>(folders: impl IntoIterator<Item = P>) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut folders: Vec<PathBuf> = folders.into_iter().map(|folder| folder.as_ref().to_path_buf()).collect();
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(root.join(&folder)).expect("a folder of the project") {
            let entry = entry.expect("an entry of a folder");
            let path = folder.join(entry.file_name());
            if entry.file_type().expect("a file or a folder").is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// The rows of all tables of a page with these columns, cell by cell.
pub fn rows<'a>(page: &'a str, header: &[&str]) -> Vec<Vec<&'a str>> {
    let mut rows = Vec::new();
    let mut inside = false;
    for line in page.lines() {
        let Some(cells) = line.strip_prefix('|').and_then(|line| line.trim_end().strip_suffix('|')) else {
            inside = false;
            continue;
        };
        let cells: Vec<&str> = cells.split('|').map(str::trim).collect();
        if cells == header {
            inside = true;
        } else if inside && !cells[0].starts_with("---") {
            rows.push(cells);
        }
    }
    rows
}

/// What is in code quotes.
pub fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}
