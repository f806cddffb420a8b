//! A result directory read back: what [`crate::outputs`] writes, for commands that look at runs that are over.
//!
//! Only what is asked for is read. Rows and events come one at a time, so a directory can be larger than memory.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

use scheduler::{Class, JobId, SiteId, Span, Time};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use workload::limits::{Document, Exceeded, Limit, Limits, read_line};

use crate::limits;
use crate::orders::Given;
use crate::outputs::{EventLogError, EventReader};

/// The name of the event log in a directory.
pub const EVENTS: &str = "events.jsonl.zst";

/// The results of one run.
#[derive(Clone, Debug)]
pub struct ResultDirectory {
    path: PathBuf,
    manifest: Manifest,
}

/// What a manifest says, as far as it is needed to read the other files.
#[derive(Clone, Debug, Deserialize)]
pub struct Manifest {
    /// The name of the experiment.
    pub experiment: String,
    /// The workload.
    pub workload: String,
    /// The strategy.
    pub strategy: String,
    /// The scheduler of local queues, if the strategy has one.
    pub local: Option<String>,
    /// Which driver ran it.
    pub driver: String,
    /// How time passed.
    pub clock: String,
    /// Delays and faults.
    pub network: String,
    /// The seed.
    pub seed: u64,
    /// A command line that repeats the run.
    pub command: String,
    /// `complete` or `partial`.
    pub status: String,
    /// Why it is partial.
    pub reason: Option<String>,
    /// Versions of the programs.
    pub versions: BTreeMap<String, String>,
    /// The border between classes A and B, in percent.
    pub threshold_percent: u8,
    /// Jobs by state.
    pub jobs: BTreeMap<String, usize>,
    /// Events that were observed.
    pub events: u64,
    /// From where the makespan is counted, in microseconds.
    pub origin_us: i64,
    /// Orders that were given during the run.
    #[serde(default)]
    pub orders: Vec<Given>,
    /// The sites, in the order of the experiment.
    pub sites: Vec<SiteEntry>,
}

/// A site of a manifest.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct SiteEntry {
    /// Its number.
    pub id: SiteId,
    /// Its name.
    pub name: String,
    /// Its processors.
    pub processors: u32,
}

impl Manifest {
    /// The name of a site, or its number if the manifest does not have it.
    pub fn site_name(&self, site: SiteId) -> String {
        let entry = self.sites.iter().find(|entry| entry.id == site);
        entry.map_or_else(|| format!("site {site}"), |entry| entry.name.clone())
    }
}

/// Why a result directory cannot be read. Reads after "failed to".
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// There is no such file, or it cannot be opened.
    #[error("read {}: {source}; is {} the result directory of a run?", path.display(),
        path.parent().unwrap_or(Path::new("")).display())]
    Open {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is not what this version writes.
    #[error("read {}: {reason}; was it written by another version, or changed?", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong and where.
        reason: String,
    },
    /// It costs more than a file may, unless somebody says so.
    #[error("read {}: {exceeded}", path.display())]
    Limit {
        /// The file.
        path: PathBuf,
        /// The limit.
        exceeded: Exceeded,
    },
    /// The event log cannot be read.
    #[error(transparent)]
    Events(#[from] EventLogError),
    /// There is no event log.
    #[error(
        "read {}: there is none; repeat the run without --no-events (outputs.events = true): {command}",
        path.display()
    )]
    NoEvents {
        /// Where it would be.
        path: PathBuf,
        /// The command line of the run.
        command: String,
    },
}

impl ResultDirectory {
    /// Opens a directory and reads its manifest.
    ///
    /// # Errors
    /// If there is no manifest, as in a directory whose run was killed, or it cannot be understood.
    pub fn open(path: &Path) -> Result<ResultDirectory, DirectoryError> {
        let manifest = read_json(&path.join("manifest.json"))?;
        Ok(ResultDirectory { path: path.to_path_buf(), manifest })
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
        read_json(&self.path.join("metrics.json"))
    }

    /// The rows of `jobs.csv`.
    ///
    /// # Errors
    /// If it is missing, or a column is.
    pub fn jobs(&self) -> Result<JobRows, DirectoryError> {
        JobRows::open(&self.path.join("jobs.csv"))
    }

    /// Whether there is an event log.
    pub fn has_events(&self) -> bool {
        self.path.join(EVENTS).exists()
    }

    /// The events, in the order of the log.
    ///
    /// # Errors
    /// If there is no log, or it cannot be read.
    pub fn events(&self) -> Result<EventReader, DirectoryError> {
        let path = self.path.join(EVENTS);
        if !path.exists() {
            return Err(DirectoryError::NoEvents { path, command: self.manifest.command.clone() });
        }
        Ok(EventReader::open(&path)?)
    }
}

fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, DirectoryError> {
    let file =
        File::open(path).map_err(|source| DirectoryError::Open { path: path.to_path_buf(), source })?;
    serde_json::from_reader(BufReader::new(Document::new(file, limits::of_results().document))).map_err(
        |error| {
            let (path, reason) = (path.to_path_buf(), error.to_string());
            match error.is_io().then(|| Exceeded::of(&error.into())).flatten() {
                Some(exceeded) => DirectoryError::Limit { path, exceeded },
                None => DirectoryError::Content { path, reason },
            }
        },
    )
}

/// A row of `jobs.csv`: a job that ended or was rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobRow {
    /// The job.
    pub job: JobId,
    /// Its submission.
    pub submit: Time,
    /// Its width.
    pub processors: u32,
    /// Its requested time.
    pub requested: Span,
    /// `success` and `final_state`, as in `1 COMPLETED_SUCCESSFULLY`.
    pub state: String,
    /// Its start, if it ran.
    pub start: Option<Time>,
    /// Its end, if it ran.
    pub end: Option<Time>,
    /// Where it ran.
    pub site: Option<SiteId>,
    /// Where the user submitted it.
    pub origin: SiteId,
    /// The smallest site that can hold it.
    pub home: Option<SiteId>,
    /// Its class at home.
    pub class: Option<Class>,
    /// Changes of site.
    pub hops: u32,
}

/// The columns that are read, in the order of [`Columns`].
const COLUMNS: [&str; 13] = [
    "job_id",
    "submission_time",
    "requested_number_of_resources",
    "requested_time",
    "success",
    "final_state",
    "starting_time",
    "finish_time",
    "metadata",
    "origin_site",
    "exec_site",
    "class",
    "hops",
];

/// Reads `jobs.csv` row by row.
#[derive(Debug)]
pub struct JobRows {
    path: PathBuf,
    /// Where each of [`COLUMNS`] is.
    places: [usize; COLUMNS.len()],
    line: u64,
    limits: Limits,
    text: Vec<u8>,
    file: BufReader<File>,
}

impl JobRows {
    fn open(path: &Path) -> Result<JobRows, DirectoryError> {
        let file =
            File::open(path).map_err(|source| DirectoryError::Open { path: path.to_path_buf(), source })?;
        let mut rows = JobRows {
            path: path.to_path_buf(),
            places: [0; COLUMNS.len()],
            line: 1,
            limits: limits::of_results(),
            text: Vec::new(),
            file: BufReader::new(file),
        };
        rows.read_line()?;
        let header = String::from_utf8_lossy(&rows.text).into_owned();
        let header: Vec<&str> = header.trim_end().split(',').collect();
        let mut places = [0; COLUMNS.len()];
        for (place, name) in places.iter_mut().zip(COLUMNS) {
            *place = header
                .iter()
                .position(|column| *column == name)
                .ok_or_else(|| rows.wrong(format!("no column {name}")))?;
        }
        rows.places = places;
        Ok(rows)
    }

    fn wrong(&self, reason: String) -> DirectoryError {
        DirectoryError::Content { path: self.path.clone(), reason: format!("line {}: {reason}", self.line) }
    }

    /// How long the next line is; 0 at the end.
    fn read_line(&mut self) -> Result<usize, DirectoryError> {
        let read = read_line(&mut self.file, &mut self.text, self.limits.line);
        read.map_err(|error| match Exceeded::of(&error) {
            Some(exceeded) => self.over(exceeded),
            None => self.wrong(error.to_string()),
        })
    }

    fn over(&self, exceeded: Exceeded) -> DirectoryError {
        DirectoryError::Limit { path: self.path.clone(), exceeded: Exceeded { line: self.line, ..exceeded } }
    }

    fn parse(&self) -> Result<JobRow, String> {
        let text = std::str::from_utf8(&self.text).map_err(|error| error.to_string())?;
        let text = text.strip_suffix('\n').ok_or("the last row is cut off")?;
        let fields: Vec<&str> = text.split(',').collect();
        let mut values = [""; COLUMNS.len()];
        for ((value, &place), name) in values.iter_mut().zip(&self.places).zip(COLUMNS) {
            *value = fields.get(place).ok_or_else(|| format!("no field {name}"))?;
        }
        let [job, submit, width, requested, success, state, start, end, metadata, origin, site, class, hops] =
            values;
        let home = metadata.split(';').find_map(|entry| entry.strip_prefix("home="));
        Ok(JobRow {
            job: JobId(whole(job, "job_id")?),
            submit: Time::from_micros(micros(submit, "submission_time")?),
            processors: whole(width, "requested_number_of_resources")?,
            requested: Span::from_micros(micros(requested, "requested_time")?),
            state: format!("{success} {state}"),
            start: given(start).map(|text| micros(text, "starting_time")).transpose()?.map(Time::from_micros),
            end: given(end).map(|text| micros(text, "finish_time")).transpose()?.map(Time::from_micros),
            site: given(site).map(|text| whole(text, "exec_site")).transpose()?.map(SiteId),
            origin: SiteId(whole(origin, "origin_site")?),
            home: home.map(|text| whole(text, "metadata")).transpose()?.map(SiteId),
            class: match class {
                "A" => Some(Class::A),
                "B" => Some(Class::B),
                "" => None,
                _ => return Err(format!("class is {class:?}, not A or B")),
            },
            hops: whole(hops, "hops")?,
        })
    }
}

impl Iterator for JobRows {
    type Item = Result<JobRow, DirectoryError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.line += 1;
        let most = self.limits.rows;
        match self.read_line() {
            Ok(0) => None,
            // The first line is the header.
            Ok(_) if self.line - 1 > most => {
                Some(Err(self.over(Exceeded { limit: Limit::Rows, most, line: self.line })))
            }
            Ok(_) => Some(self.parse().map_err(|reason| self.wrong(reason))),
            Err(error) => Some(Err(error)),
        }
    }
}

fn given(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

fn whole<T: std::str::FromStr>(text: &str, column: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("{column} is {text:?}, not a whole number"))
}

/// Seconds with up to six digits after the point, exactly.
fn micros(text: &str, column: &str) -> Result<i64, String> {
    let wrong = || format!("{column} is {text:?}, not seconds with at most six decimals");
    let (negative, magnitude) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (seconds, part) = magnitude.split_once('.').unwrap_or((magnitude, ""));
    let digits = |text: &str| text.bytes().all(|digit| digit.is_ascii_digit());
    if seconds.is_empty() || part.len() > 6 || !digits(seconds) || !digits(part) {
        return Err(wrong());
    }
    let fraction: i64 = format!("{part:0<6}").parse().map_err(|_| wrong())?;
    let micros = seconds
        .parse::<i64>()
        .ok()
        .and_then(|seconds| seconds.checked_mul(1_000_000))
        .and_then(|micros| micros.checked_add(fraction))
        .ok_or_else(wrong)?;
    Ok(if negative { -micros } else { micros })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outputs::tests::{about, folder, outcome};
    use crate::outputs::{Options, RunResult, write_all};

    fn written(test: &str) -> (PathBuf, RunResult) {
        let jobs = [(0, 2, 10, 1, 0), (3, 2, 6, 2, 5), (4, 9, 1, 0, 0)];
        let result = RunResult::new(about(), outcome(&[2, 4], &jobs), None);
        let path = folder(test);
        write_all(&path, &result, Options { page: false, ..Options::default() }).unwrap();
        (path, result)
    }

    #[test]
    fn what_was_written_is_read_back() {
        let (path, result) = written("directory");
        let directory = ResultDirectory::open(&path).unwrap();
        assert_eq!(directory.manifest().strategy, "ideal/st:50");
        assert_eq!(directory.manifest().site_name(SiteId(2)), "site2");
        assert_eq!(directory.metrics().unwrap()["metrics"]["makespan_s"], 11.0);

        let rows: Vec<JobRow> = directory.jobs().unwrap().map(Result::unwrap).collect();
        assert_eq!(rows.len(), 3);
        for (row, job) in rows.iter().zip(&result.outcome.jobs) {
            assert_eq!((row.job, row.submit, row.start, row.end), (job.id, job.submit, job.start, job.end));
            assert_eq!((row.site, row.home, row.processors), (job.site, job.home, job.processors));
        }
        assert_eq!(rows[2].state, "0 REJECTED");
        assert_eq!((rows[0].class, rows[2].class), (Some(Class::A), None));
    }

    #[test]
    fn errors_say_where_and_what_to_do() {
        let (path, _) = written("directory_wrong");
        let directory = ResultDirectory::open(&path).unwrap();
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
        let error = ResultDirectory::open(Path::new("/no/such")).unwrap_err().to_string();
        assert!(error.contains("is /no/such the result directory of a run?"), "{error}");
    }

    #[test]
    fn seconds_are_read_to_the_microsecond() {
        assert_eq!(micros("12.000001", ""), Ok(12_000_001));
        assert_eq!(micros("-0.5", ""), Ok(-500_000));
        for wrong in ["", ".", "1.0000001", "1e3", "--1", "99999999999999"] {
            assert!(micros(wrong, "c").is_err(), "{wrong}");
        }
    }
}
