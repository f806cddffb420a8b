//! A result directory read back: what [`crate::write_all`] writes, for commands that look at runs that are over.
//!
//! Only what is asked for is read. Rows and events come one at a time, so a directory can be larger than memory.

use std::collections::BTreeMap;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use scheduler::{Event, EventKind, JobId};
use serde::de::DeserializeOwned;
use workload::limits::{Document, Exceeded, Limit, Limits};
use workload::source::open;

use crate::errors::DirectoryError;
use crate::event_log::EventReader;
use crate::jobs_csv::{JobRow, JobRows};
use crate::manifest::Manifest;
use crate::values::Values;

/// The name of the event log in a directory.
pub const EVENTS: &str = "events.jsonl.zst";

/// The results of one run.
#[derive(Clone, Debug)]
pub struct ResultDirectory {
    path: PathBuf,
    limits: Limits,
    manifest: Manifest,
}

impl ResultDirectory {
    /// Opens a directory and reads its manifest.
    ///
    /// # Errors
    /// If there is no manifest, as in a directory whose run was killed, or it cannot be understood.
    pub fn open(path: &Path, limits: Limits) -> Result<ResultDirectory, DirectoryError> {
        let manifest = read_json(&path.join("manifest.json"), &limits)?;
        Ok(ResultDirectory { path: path.to_path_buf(), limits, manifest })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What was run.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The document of `metrics.json`.
    ///
    /// # Errors
    /// If it is missing or no JSON.
    pub fn metrics(&self) -> Result<serde_json::Value, DirectoryError> {
        read_json(&self.path.join("metrics.json"), &self.limits)
    }

    /// The rows of `jobs.csv`.
    ///
    /// # Errors
    /// If it is missing, or a column is. Rows of sites that the manifest does not have are errors.
    pub fn jobs(&self) -> Result<JobRows, DirectoryError> {
        JobRows::open(&self.path.join("jobs.csv"), self.limits, self.manifest.sites.len())
    }

    /// Jobs that were in the system and had not ended when the run stopped, or were killed, from its events: `jobs.csv` does
    /// not have them. Their state is that of the manifest: `running`, `waiting` or `killed`. No log is read of a run that left
    /// none.
    ///
    /// # Errors
    /// If there is no log, it cannot be read, or more such jobs than [`Limits::rows`] are in the system at once.
    pub fn unfinished(&self) -> Result<Vec<JobRow>, DirectoryError> {
        let states = ["running", "waiting", "killed"];
        if states.iter().all(|state| self.manifest.jobs.get(*state).is_none_or(|jobs| *jobs == 0)) {
            return Ok(Vec::new());
        }
        let waits = |row: &mut JobRow| {
            (row.start, row.site) = (None, None);
            row.state = "waiting".to_string();
        };
        let mut jobs: BTreeMap<JobId, JobRow> = BTreeMap::new();
        // Those that ended in parts, whose ends may be revoked.
        let mut in_parts: BTreeMap<JobId, JobRow> = BTreeMap::new();
        let mut events = self.events()?.without_messages();
        while let Some(event) = events.next().transpose()? {
            let Event { at, site, kind } = event;
            match kind {
                EventKind::Submitted { job, processors, requested, origin } => {
                    let wide_enough = self.manifest.sites.iter().filter(|site| site.processors >= processors);
                    let row = JobRow {
                        job,
                        submit: at,
                        processors,
                        requested,
                        state: "waiting".to_string(),
                        start: None,
                        end: None,
                        site: None,
                        user: -1,
                        origin,
                        home: wide_enough.min_by_key(|site| (site.processors, site.id)).map(|site| site.id),
                        class: None,
                        hops: 0,
                        allocated: Vec::new(),
                    };
                    jobs.insert(job, row);
                    let most = self.limits.rows;
                    if jobs.len() as u64 > most {
                        let exceeded = Exceeded { limit: Limit::Rows, most, line: events.line() };
                        return Err(DirectoryError::Limit { path: self.path.join(EVENTS), exceeded });
                    }
                }
                EventKind::Started { job, hops, .. } => {
                    if let Some(row) = jobs.get_mut(&job) {
                        (row.start, row.site, row.hops) = (Some(at), Some(site), hops);
                        row.state = "running".to_string();
                    }
                }
                EventKind::Interrupted { job, killed, .. } => {
                    if let Some(row) = jobs.get_mut(&job).filter(|row| row.site == Some(site)) {
                        waits(row);
                        if killed {
                            row.state = "killed".to_string();
                        }
                    }
                }
                EventKind::TookOver { job, .. } => {
                    if let Some(row) = jobs.get_mut(&job).filter(|row| row.site != Some(site)) {
                        waits(row);
                    }
                }
                EventKind::Ended { how } if how.interrupts() => {
                    jobs.values_mut().filter(|row| row.site == Some(site)).for_each(waits);
                }
                EventKind::Completed { job, processors } => {
                    let ended = jobs.remove(&job);
                    in_parts.extend(ended.filter(|row| processors < row.processors).map(|row| (job, row)));
                }
                EventKind::Revoked { job, killed, .. } => {
                    if let Some(mut row) = in_parts.remove(&job).or_else(|| jobs.remove(&job)) {
                        waits(&mut row);
                        if killed {
                            row.state = "killed".to_string();
                        }
                        jobs.insert(job, row);
                    }
                }
                _ => {}
            }
        }
        Ok(jobs.into_values().collect())
    }

    /// Whether there is an event log.
    pub fn has_events(&self) -> bool {
        self.path.join(EVENTS).exists()
    }

    /// The events, in the order of the log.
    ///
    /// # Errors
    /// If there is no log, or it cannot be read. Events of sites that the manifest does not have are errors.
    pub fn events(&self) -> Result<EventReader, DirectoryError> {
        let path = self.path.join(EVENTS);
        if !path.exists() {
            return Err(DirectoryError::NoEvents { path, command: self.manifest.command.clone() });
        }
        Ok(EventReader::open(&path, self.limits)?.of_sites(self.manifest.sites.len()))
    }
}

fn read_json<T: DeserializeOwned>(path: &Path, limits: &Limits) -> Result<T, DirectoryError> {
    let file = open(path).map_err(|cause| DirectoryError::Open { path: path.to_path_buf(), cause })?;
    let text = Values::new(Document::new(file, limits.document), limits.cells);
    serde_json::from_reader(BufReader::new(text)).map_err(|error| {
        let (path, reason) = (path.to_path_buf(), error.to_string());
        match error.is_io().then(|| Exceeded::of(&error.into())).flatten() {
            Some(exceeded) => DirectoryError::Limit { path, exceeded },
            None => DirectoryError::Content { path, reason },
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event_log::EventLog;
    use crate::fixtures::{about, folder, outcome};
    use crate::{JobRow, Options, RunResult, write_all};
    use scheduler::{Class, SiteId, Span, Time};

    fn written(test: &str) -> (PathBuf, RunResult) {
        let jobs = [(0, 2, 10, 1, 0), (3, 2, 6, 2, 5), (4, 9, 1, 0, 0)];
        let result = RunResult::new(about(), outcome(&[2, 4], &jobs), None);
        let path = folder(test);
        write_all(&path, &result, Options::default()).unwrap();
        (path, result)
    }

    #[test]
    fn what_was_written_is_read_back() {
        let (path, result) = written("directory");
        let directory = ResultDirectory::open(&path, Limits::default()).unwrap();
        assert_eq!(directory.manifest().strategy, "ideal/st:50");
        assert_eq!(directory.manifest().site_name(SiteId(2)), "site2");
        assert_eq!(directory.metrics().unwrap()["metrics"]["makespan_s"], 11.0);

        let rows: Vec<JobRow> = directory.jobs().unwrap().map(Result::unwrap).collect();
        assert_eq!(rows.len(), 3);
        for (row, job) in rows.iter().zip(&result.outcome.jobs) {
            assert_eq!((row.job, row.submit, row.start, row.end), (job.id, job.submit, job.start, job.end));
            assert_eq!((row.site, row.home, row.processors), (job.site, job.home, job.processors));
            assert_eq!(row.user, job.labels.user);
        }
        assert_eq!(rows[2].state, "0 REJECTED");
        assert_eq!((rows[0].class, rows[2].class), (Some(Class::A), None));
    }

    /// Of a run that was stopped: three jobs wait, and a fourth has ended.
    #[test]
    fn jobs_that_have_not_ended_are_rows() {
        let (path, _) = written("directory_unfinished");
        let manifest = path.join("manifest.json");
        let mut about: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(&manifest).unwrap()).unwrap();
        about["jobs"]["waiting"] = 3.into();
        std::fs::write(&manifest, about.to_string()).unwrap();
        let mut log = EventLog::create(&path.join(EVENTS)).unwrap();
        let mut write = |kind| log.write(&Event { at: Time::ZERO, site: SiteId(1), kind }).unwrap();
        for job in (0..4).map(JobId) {
            write(EventKind::Submitted {
                job,
                processors: 1,
                requested: Span::from_secs(9),
                origin: SiteId(1),
            });
            if job == JobId(0) {
                write(EventKind::Completed { job, processors: 1 });
            }
        }
        log.finish().unwrap();
        let unfinished = |rows| {
            let directory = ResultDirectory::open(&path, Limits { rows, ..Limits::default() }).unwrap();
            directory.unfinished()
        };
        assert_eq!(unfinished(3).unwrap().len(), 3, "the one that has ended does not count");
        let error = unfinished(2).unwrap_err().to_string();
        let words = "events.jsonl.zst: line 5: there are more than 2 rows; if you trust it, set STEALGRID_MAX_ROWS higher";
        assert!(error.ends_with(words), "{error}");
    }

    /// Also for those who look a site up by its number.
    #[test]
    fn sites_that_the_manifest_does_not_have_are_errors() {
        let (path, _) = written("directory_foreign");
        let (path, limits) = (path.as_path(), Limits::default());
        let directory = ResultDirectory::open(path, limits).unwrap();
        for (site, origin) in [(4_000_000_000, 1), (1, 4_000_000_000), (0, 1), (1, 0), (1, 3)] {
            let mut log = EventLog::create(&path.join(EVENTS)).unwrap();
            let (job, requested, origin) = (JobId(0), Span::from_secs(9), SiteId(origin));
            let kind = EventKind::Submitted { job, processors: 1, requested, origin };
            log.write(&Event { at: Time::ZERO, site: SiteId(site), kind }).unwrap();
            log.finish().unwrap();
            let error = directory.events().unwrap().next().unwrap().unwrap_err().to_string();
            assert!(error.contains("line 1: it names site") && error.contains("has 2 sites"), "{error}");
        }
        let jobs = std::fs::read_to_string(path.join("jobs.csv")).unwrap();
        for (found, foreign) in [("home=1", "home=9"), (",2,B,", ",9,B,")] {
            if !jobs.contains(found) {
                continue;
            }
            std::fs::write(path.join("jobs.csv"), jobs.replace(found, foreign)).unwrap();
            let error = directory.jobs().unwrap().find_map(Result::err).unwrap().to_string();
            assert!(error.contains("is 9, and the manifest has 2 sites"), "{error}");
        }
        assert!(jobs.contains("home=1"));
    }

    #[test]
    fn errors_say_where_and_what_to_do() {
        let (path, _) = written("directory_wrong");
        let directory = ResultDirectory::open(&path, Limits::default()).unwrap();
        let error = directory.events().err().unwrap().to_string();
        assert!(error.contains("without --no-events") && error.contains("stealgrid simulate"), "{error}");

        let text = std::fs::read_to_string(path.join("jobs.csv")).unwrap();
        let rows = |text: &str| {
            std::fs::write(path.join("jobs.csv"), text).unwrap();
            directory.jobs().and_then(Iterator::collect::<Result<Vec<JobRow>, DirectoryError>>)
        };
        let wrong = |text: &str| rows(text).unwrap_err().to_string();
        assert!(wrong(&text[..text.len() - 1]).contains("line 4: the last row is cut off"));
        assert!(wrong(&text.replace(",3.000000,", ",3s,")).contains("line 3: submission_time is \"3s\""));
        assert!(wrong(&text.replace("exec_site", "ran_at")).contains("no column exec_site"));
        let error = ResultDirectory::open(Path::new("/no/such"), Limits::default()).unwrap_err().to_string();
        assert!(error.contains("is /no/such the result directory of a run?"), "{error}");
    }
}
