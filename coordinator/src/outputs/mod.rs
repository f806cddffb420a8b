//! The result directory of one run: what is in it, and how it is written.
//!
//! ```text
//! manifest.json       what was run, with which seed and versions, and whether it ended
//! jobs.csv            one row per finished or rejected job; the 17 columns of Batsim, then ours
//! site<i>/jobs.csv    the same rows split by executing site, if asked for
//! schedule.swf        the finished jobs as a log in the Standard Workload Format
//! migrations.csv      which site ran whose jobs
//! steals.csv          each accepted change of site; written while the run goes on, see [`StealsCsv`]
//! metrics.json        metrics, bounds, theory, migrations, comparison with the ideal
//! faults.csv          one row per job that was interrupted, taken over or stranded, if there is one
//! executions.csv      executions that are not the one in jobs.csv, if there are any
//! membership.csv      what sites believed of each other's presence, if anything happened
//! events.jsonl.zst    every event, one JSON object a line; written while the run goes on, see [`EventLog`]
//! report.html         the page of [`crate::report::page`]
//! ```
//!
//! A driver fills in a [`RunAbout`], makes a [`RunResult`] of it and the outcome, and calls [`write_all`]. Each
//! file appears complete or not at all, except the event log and `steals.csv`, which grow. How numbers are shown to people is in
//! [`crate::report`].

mod allocation;
pub(crate) mod csv_cell;
mod event_log;
mod faults_csv;
mod jobs_csv;
mod manifest;
mod metrics_json;
mod migrations_csv;
mod number;
pub(crate) mod replace;
mod run_result;
mod schedule_swf;
mod steals_csv;

use std::io::Write;
use std::path::{Path, PathBuf};

pub use allocation::{Allocation, Interval};
pub use event_log::{EventLog, EventLogError, EventReader};
pub(crate) use metrics_json::write as write_metrics;
pub use run_result::{Ideal, RunAbout, RunResult, Status, StealCost};
pub use steals_csv::StealsCsv;

/// Which files of the result directory are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// `jobs.csv`.
    pub jobs: bool,
    /// `site<i>/jobs.csv` as well.
    pub jobs_per_site: bool,
    /// Rows of rejected jobs, whose time fields are empty. Some tools cannot read those.
    pub rejected_rows: bool,
    /// `schedule.swf`.
    pub schedule: bool,
    /// `report.html`.
    pub page: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { jobs: true, jobs_per_site: false, rejected_rows: true, schedule: true, page: true }
    }
}

/// Why a result could not be written.
#[derive(Debug, thiserror::Error)]
#[error("write {}: {source}; is the disk full or the directory read-only?", path.display())]
pub struct WriteError {
    /// The file.
    pub path: PathBuf,
    /// What the system said.
    pub source: std::io::Error,
}

impl WriteError {
    fn at(path: &Path) -> impl FnOnce(std::io::Error) -> WriteError {
        let path = path.to_path_buf();
        move |source| WriteError { path, source }
    }
}

/// Writes all files of a run but the event log into `directory`, which is made if missing, and says which.
///
/// # Errors
/// At the first file that cannot be written; files before it are complete.
pub fn write_all(directory: &Path, result: &RunResult, options: Options) -> Result<Vec<PathBuf>, WriteError> {
    std::fs::create_dir_all(directory).map_err(WriteError::at(directory))?;
    let allocation = Allocation::of(&result.outcome);
    let mut written = Vec::new();
    let mut write = |name: &str, content: &dyn Fn(&mut dyn Write) -> std::io::Result<()>| {
        let path = directory.join(name);
        replace::write(&path, content).map_err(WriteError::at(&path))?;
        written.push(path);
        Ok(())
    };
    write("metrics.json", &|file| metrics_json::write(file, result))?;
    write("migrations.csv", &|file| migrations_csv::write(file, result))?;
    let faults = &result.outcome.faults;
    if !faults.jobs.is_empty() {
        write("faults.csv", &|file| faults_csv::jobs(file, result))?;
    }
    if !faults.attempts.is_empty() {
        write("executions.csv", &|file| faults_csv::executions(file, faults))?;
    }
    if !faults.membership.is_empty() {
        write("membership.csv", &|file| faults_csv::membership(file, faults))?;
    }
    if options.jobs {
        let rows = jobs_csv::Rows::new(result, &allocation, options.rejected_rows);
        write("jobs.csv", &|file| rows.write(file, None))?;
        if options.jobs_per_site {
            for site in result.outcome.grid.sites() {
                let folder = directory.join(format!("site{}", site.id));
                std::fs::create_dir_all(&folder).map_err(WriteError::at(&folder))?;
                write(&format!("site{}/jobs.csv", site.id), &|file| rows.write(file, Some(site.id)))?;
            }
        }
    }
    if options.schedule {
        write("schedule.swf", &|file| schedule_swf::write(file, result))?;
    }
    if options.page {
        write("report.html", &|file| crate::report::page::write(file, result, &allocation))?;
    }
    // Last, so that a directory with a manifest is complete.
    write("manifest.json", &|file| manifest::write(file, result, &allocation))?;
    Ok(written)
}

#[cfg(test)]
pub(crate) mod tests;
