//! Results as files: rows as they come, and of what they are.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Context as _;
use experiments::limits;
use predict::score::Errors;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::PredictArgs;
use super::log::Log;

const ABOUT: &str = "predict.json";
const ERRORS: &str = "errors.csv";
const SCHEDULES: &str = "schedules.csv";
const TIMES: &str = "times.csv";
/// What is locked while results are written.
pub(super) const LOCKED: &str = "predict";

/// Of what all rows of a folder are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Setting {
    version: String,
    log: String,
    sha256: String,
    processors: u32,
    size: String,
    overrun: String,
    missing_estimate: Option<String>,
    copies: u32,
    pass: String,
    jobs_read: u64,
    jobs: usize,
    jobs_without_estimate: u64,
}

impl Setting {
    pub(super) fn of(args: &PredictArgs, processors: u32, log: &Log) -> Setting {
        Setting {
            version: env!("CARGO_PKG_VERSION").to_string(),
            log: log.name.clone(),
            sha256: log.sha256.clone(),
            processors,
            size: args.size.to_string(),
            overrun: args.overrun.to_string(),
            missing_estimate: args.missing_estimate.map(|rule| rule.to_string()),
            copies: args.copies,
            pass: args.pass.name().to_string(),
            jobs_read: log.read,
            jobs: log.jobs.len(),
            jobs_without_estimate: log.without_estimate,
        }
    }
}

/// A line of `errors.csv`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct ErrorRow {
    pub(super) predictor: String,
    /// `all`, or `first` or `second` half.
    pub(super) part: String,
    pub(super) jobs: usize,
    pub(super) run_time_mean_s: f64,
    pub(super) mae_s: f64,
    pub(super) mae_share: f64,
    pub(super) error_median_s: f64,
    pub(super) accuracy: f64,
    pub(super) under_share: f64,
    pub(super) slope: Option<f64>,
    pub(super) correlation: Option<f64>,
}

impl ErrorRow {
    pub(super) fn of(predictor: String, part: &str, errors: Errors) -> ErrorRow {
        ErrorRow {
            predictor,
            part: part.to_string(),
            jobs: errors.jobs,
            run_time_mean_s: errors.run_time_mean_s,
            mae_s: errors.mae_s,
            mae_share: errors.mae_share,
            error_median_s: errors.error_median_s,
            accuracy: errors.accuracy,
            under_share: errors.under_share,
            slope: errors.slope,
            correlation: errors.correlation,
        }
    }
}

/// A line of `schedules.csv`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct ScheduleRow {
    pub(super) predictor: String,
    /// Empty where nothing is exceeded.
    pub(super) correction: String,
    pub(super) backfill: String,
    /// `all`, or `first` or `second` half.
    pub(super) part: String,
    pub(super) jobs: usize,
    pub(super) bounded_slowdown_mean: f64,
    pub(super) bounded_slowdown_max: f64,
    /// Of the means in all copies, the mean.
    pub(super) bounded_slowdown_copies_mean: f64,
    /// Of the means in all copies, the standard deviation.
    pub(super) bounded_slowdown_copies_deviation: f64,
    pub(super) wait_mean_s: f64,
    pub(super) wait_max_s: f64,
    pub(super) awrt_s: f64,
    /// Jobs that had a reservation: they came to the head of the queue and did not fit.
    pub(super) reserved: usize,
    /// Of all jobs, those that started later than their first reservation.
    pub(super) late_share: f64,
    /// Of jobs with a reservation, the mean of |start − first reservation|.
    pub(super) reservation_error_mean_s: Option<f64>,
}

/// A line of `times.csv`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Cost {
    pub(super) predictor: String,
    pub(super) predictions: usize,
    /// By the clock of this machine, of one prediction and what is learned from one job.
    pub(super) cost_us: f64,
}

/// All rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Results {
    pub(super) errors: Vec<ErrorRow>,
    pub(super) schedules: Vec<ScheduleRow>,
    pub(super) costs: Vec<Cost>,
}

impl Results {
    pub(super) fn add(&mut self, other: Results) {
        self.errors.extend(other.errors);
        self.schedules.extend(other.schedules);
        self.costs.extend(other.costs);
    }

    /// All that have a row, in the order of the files.
    pub(super) fn predictors(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        let schedules = self.schedules.iter().map(|row| &row.predictor);
        for name in schedules.chain(self.errors.iter().map(|row| &row.predictor)) {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        names
    }

    /// Without rows of what was cut off before its last one, the second half.
    fn without_torn(mut self) -> Results {
        let names = |row: &ScheduleRow| [&row.predictor, &row.correction, &row.backfill].map(Clone::clone);
        let is_last = |part: &str| part == "second";
        let errors: BTreeSet<String> =
            self.errors.iter().filter(|row| is_last(&row.part)).map(|row| row.predictor.clone()).collect();
        let schedules: BTreeSet<[String; 3]> =
            self.schedules.iter().filter(|row| is_last(&row.part)).map(names).collect();
        self.errors.retain(|row| errors.contains(&row.predictor));
        self.schedules.retain(|row| schedules.contains(&names(row)));
        self
    }

    /// Those of others that are not there.
    pub(super) fn add_others(&mut self, other: &Results) {
        fn missing<T: Clone + PartialEq>(own: &mut Vec<T>, other: &[T]) {
            let new: Vec<T> = other.iter().filter(|row| !own.contains(row)).cloned().collect();
            own.extend(new);
        }
        missing(&mut self.errors, &other.errors);
        missing(&mut self.schedules, &other.schedules);
        missing(&mut self.costs, &other.costs);
    }
}

/// Whether a folder has results of this command, or those of a run that was cut off at its beginning.
pub(super) fn is_begun(out: &Path) -> bool {
    out.join(ABOUT).exists() || out.join(format!("{LOCKED}.lock")).exists()
}

/// What a folder has; nothing if it has no results.
///
/// # Errors
/// If a file of it cannot be read.
pub(super) fn read(out: &Path) -> anyhow::Result<Option<(Setting, Results)>> {
    let about = out.join(ABOUT);
    if !about.exists() {
        return Ok(None);
    }
    let setting = serde_json::from_str(&limits::read_text(&about, limits::GENETIC)?)
        .with_context(|| format!("understand {}; --replace begins anew", about.display()))?;
    let results = Results {
        errors: rows(&out.join(ERRORS))?,
        schedules: rows(&out.join(SCHEDULES))?,
        costs: rows(&out.join(TIMES))?,
    };
    Ok(Some((setting, results.without_torn())))
}

/// Rows of a file; none if it is not there yet. A last line without its end is left out, and is computed again.
fn rows<T: DeserializeOwned>(path: &Path) -> anyhow::Result<Vec<T>> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    let text = limits::read_text(path, limits::GENETIC)?;
    let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
    let rows: Result<Vec<T>, csv::Error> = csv::Reader::from_reader(whole.as_bytes()).deserialize().collect();
    rows.with_context(|| format!("understand {}; --replace begins anew", path.display()))
}

/// Says of what the rows are that come.
pub(super) fn begin(out: &Path, setting: &Setting) -> anyhow::Result<()> {
    if let Ok(Some((found, _))) = read(out)
        && found == *setting
    {
        return Ok(());
    }
    for name in [ERRORS, SCHEDULES, TIMES] {
        let path = out.join(name);
        if path.exists() {
            std::fs::remove_file(&path).with_context(|| format!("failed to remove {}", path.display()))?;
        }
    }
    let text = serde_json::to_string_pretty(setting)? + "\n";
    put(&out.join(ABOUT), text.as_bytes())
}

pub(super) fn write(out: &Path, results: &Results) -> anyhow::Result<()> {
    put(&out.join(ERRORS), csv(&results.errors)?.as_bytes())?;
    put(&out.join(SCHEDULES), csv(&results.schedules)?.as_bytes())?;
    put(&out.join(TIMES), csv(&results.costs)?.as_bytes())
}

/// Rows below their header; nothing without any.
pub(super) fn csv<T: Serialize>(rows: &[T]) -> anyhow::Result<String> {
    let mut csv = csv::Writer::from_writer(Vec::new());
    rows.iter().try_for_each(|row| csv.serialize(row))?;
    Ok(String::from_utf8(csv.into_inner()?)?)
}

fn put(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    outputs::replace::write(path, |file| file.write_all(bytes))
        .with_context(|| format!("failed to write {}", path.display()))
}

/// All of it as one document.
pub(super) fn document(setting: &Setting, results: &Results) -> serde_json::Value {
    serde_json::json!({
        "setting": setting,
        "errors": results.errors,
        "schedules": results.schedules,
        "costs": results.costs,
    })
}
