//! The result directory as a whole.

use std::io::{self, Write};
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::thread;

use crate::allocation::Allocation;
use crate::errors::WriteError;
use crate::manifest::Manifest;
use crate::run_result::RunResult;
use crate::{faults_csv, jobs_csv, metrics_json, migrations_csv, replace, schedule_swf};

/// Writes a page about a run.
pub type Page = fn(&mut dyn Write, &RunResult, &Allocation) -> io::Result<()>;

/// Which files of the result directory are wanted.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// `jobs.csv`.
    pub jobs: bool,
    /// `site<i>/jobs.csv` as well.
    pub jobs_per_site: bool,
    /// Rows of rejected jobs, whose time fields are empty. Some tools cannot read those.
    pub rejected_rows: bool,
    /// `schedule.swf`.
    pub schedule: bool,
    /// Who writes `report.html`.
    pub page: Option<Page>,
}

impl Default for Options {
    fn default() -> Options {
        Options { jobs: true, jobs_per_site: false, rejected_rows: true, schedule: true, page: None }
    }
}

/// Writes all files of a run but the event log into `directory`, which is made if missing, and says which.
///
/// # Errors
/// At the first file that cannot be written; files before it are complete.
pub fn write_all(directory: &Path, result: &RunResult, options: Options) -> Result<Vec<PathBuf>, WriteError> {
    std::fs::create_dir_all(directory).map_err(WriteError::at(directory))?;
    let allocation = Allocation::of(&result.outcome);
    let write = |name: &str, content: Content<'_>| file(directory, name, content);
    let mut written = Vec::new();
    written.push(write("metrics.json", &|file| metrics_json::write(file, result))?);
    written.push(write("migrations.csv", &|file| migrations_csv::write(file, result))?);
    let faults = &result.outcome.faults;
    if !faults.jobs.is_empty() {
        written.push(write("faults.csv", &|file| faults_csv::jobs(file, result))?);
    }
    if !faults.attempts.is_empty() {
        written.push(write("executions.csv", &|file| faults_csv::executions(file, faults))?);
    }
    if !faults.membership.is_empty() {
        written.push(write("membership.csv", &|file| faults_csv::membership(file, faults))?);
    }
    // The page takes as long as all rows do.
    let (rows, page) = thread::scope(|scope| {
        let rows = scope.spawn(|| write_rows(directory, result, &allocation, options));
        let page =
            options.page.map(|page| file(directory, "report.html", &|file| page(file, result, &allocation)));
        (rows.join().unwrap_or_else(|panic| resume_unwind(panic)), page)
    });
    written.extend(rows?);
    written.extend(page.transpose()?);
    // Last, so that a directory with a manifest is complete.
    written.push(write("manifest.json", &|file| Manifest::of(result, &allocation).write(file))?);
    Ok(written)
}

/// The files with a row for each job.
fn write_rows(
    directory: &Path,
    result: &RunResult,
    allocation: &Allocation,
    options: Options,
) -> Result<Vec<PathBuf>, WriteError> {
    let mut written = Vec::new();
    if options.jobs {
        let rows = jobs_csv::Rows::new(result, allocation, options.rejected_rows);
        written.push(file(directory, "jobs.csv", &|file| rows.write(file, None))?);
        for site in result.outcome.grid.machines().filter(|_| options.jobs_per_site) {
            let folder = directory.join(format!("site{}", site.id));
            std::fs::create_dir_all(&folder).map_err(WriteError::at(&folder))?;
            written.push(file(&folder, "jobs.csv", &|file| rows.write(file, Some(site.id)))?);
        }
    }
    if options.schedule {
        written.push(file(directory, "schedule.swf", &|file| schedule_swf::write(file, result))?);
    }
    Ok(written)
}

/// What is to be in a file.
type Content<'a> = &'a dyn Fn(&mut dyn Write) -> io::Result<()>;

fn file(directory: &Path, name: &str, content: Content<'_>) -> Result<PathBuf, WriteError> {
    let path = directory.join(name);
    replace::write(&path, content).map_err(WriteError::at(&path))?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{about, folder, outcome};
    use crate::run_result::Status;

    #[test]
    fn a_directory_holds_every_file_and_the_same_bytes_twice() {
        let jobs = [(0, 2, 10, 1, 0), (0, 1, 6, 2, 0), (4, 9, 1, 0, 0)];
        let result = RunResult::new(about(), outcome(&[2, 4], &jobs), Some(&outcome(&[2, 4], &jobs)));
        let options = Options {
            jobs_per_site: true,
            page: Some(|file, _, _| writeln!(file, "a page")),
            ..Options::default()
        };
        let (first, second) = (folder("write_all_1"), folder("write_all_2"));

        let written = write_all(&first, &result, options).unwrap();
        write_all(&second, &result, options).unwrap();

        let names: Vec<String> =
            written.iter().map(|path| path.strip_prefix(&first).unwrap().display().to_string()).collect();
        assert_eq!(
            names,
            [
                "metrics.json",
                "migrations.csv",
                "jobs.csv",
                "site1/jobs.csv",
                "site2/jobs.csv",
                "schedule.swf",
                "report.html",
                "manifest.json"
            ]
        );
        for name in names {
            assert_eq!(std::fs::read(first.join(&name)).unwrap(), std::fs::read(second.join(&name)).unwrap());
        }
    }

    #[test]
    fn metrics_and_manifest_say_what_happened() {
        let jobs = [(0, 2, 10, 1, 0), (0, 1, 6, 2, 0), (4, 9, 1, 0, 0)];
        let mut about = about();
        about.status = Status::Partial("stopped by the user".into());
        let result = RunResult::new(about, outcome(&[2, 4], &jobs), None);
        let folder = folder("documents");
        write_all(&folder, &result, Options::default()).unwrap();

        let read = |name: &str| -> serde_json::Value {
            serde_json::from_slice(&std::fs::read(folder.join(name)).unwrap()).unwrap()
        };
        let (metrics, manifest) = (read("metrics.json"), read("manifest.json"));
        assert_eq!(metrics["metrics"]["makespan_s"], 10.0);
        assert_eq!(metrics["status"], "partial");
        assert_eq!(metrics["reason"], "stopped by the user");
        assert_eq!(metrics["migrations"][1]["site"], 2);
        assert_eq!(metrics["federation"]["users_at"], "home");
        assert_eq!(metrics["federation"]["sites"][1]["squashed_area"], 6.0);
        assert_eq!(metrics["bounds"]["best_s"], 10.0);
        assert_eq!(manifest["jobs"]["completed"], 2);
        assert_eq!(manifest["jobs"]["rejected"], 1);
        assert_eq!(manifest["sites"][1]["resource_bounds"], serde_json::json!([2, 5]));
        let migrations = std::fs::read_to_string(folder.join("migrations.csv")).unwrap();
        assert!(migrations.contains("1,2,1,0.500000,6.000000,0.230769"), "{migrations}");
    }

    #[test]
    fn a_run_with_jobs_left_is_never_complete() {
        let done = outcome(&[4], &[(0, 4, 10, 1, 0), (0, 4, 10, 1, 10)]);
        let mut left = done.clone();
        left.jobs[1] = analysis::JobOutcome { end: None, state: analysis::JobState::Running, ..left.jobs[1] };

        assert!(RunResult::new(about(), done, None).is_complete());
        let result = RunResult::new(about(), left, None);
        assert_eq!(result.about.status, Status::Partial("1 jobs did not end".into()));
    }
}
