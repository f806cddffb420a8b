//! Results as files: rows as they come, and of what they are.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Context as _;
use experiments::limits;
use predict::score::{Bin, Errors, curve};
use report::quantity::{counted, grouped};
use scheduler::Span;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::PredictArgs;
use super::history::{Earlier, Source};
use super::log::Log;

const ABOUT: &str = "predict.json";
const ERRORS: &str = "errors.csv";
const SCHEDULES: &str = "schedules.csv";
const TIMES: &str = "times.csv";
const WAITS: &str = "waits.csv";
const WAIT_TIMES: &str = "waits_times.csv";
const CURVES: &str = "curves.csv";
/// All files of rows.
const ROWS: [&str; 6] = [ERRORS, SCHEDULES, TIMES, WAITS, WAIT_TIMES, CURVES];
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
    /// Earlier logs that predictors met before the first job.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    history: Vec<Source>,
}

impl Setting {
    pub(super) fn log_name(&self) -> &str {
        &self.log
    }

    /// For readers, in a line each.
    pub(super) fn about(&self) -> Vec<String> {
        let left_out = self.jobs_read.saturating_sub(self.jobs as u64);
        let mut about = vec![
            format!(
                "{} jobs on {}; {} of the log are left out",
                grouped(self.jobs as u64),
                counted(self.processors, "processor"),
                grouped(left_out)
            ),
            format!("SHA-256 {}; {}", self.sha256, self.options()),
        ];
        about.extend(self.history.iter().map(Source::words));
        about
    }

    /// What the jobs of the log are made by, for the history.
    pub(super) fn options(&self) -> String {
        let missing = self.missing_estimate.as_deref().unwrap_or("drop");
        format!(
            "processors={} size={} overrun={} missing-estimate={missing} pass={}",
            self.processors, self.size, self.overrun, self.pass
        )
    }

    pub(super) fn of(args: &PredictArgs, processors: u32, log: &Log, earlier: &Earlier) -> Setting {
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
            history: earlier.sources.clone(),
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

/// A line of `waits.csv`: predicted waits on a machine that plans by users' estimates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct WaitRow {
    pub(super) predictor: String,
    pub(super) backfill: String,
    /// `all`, or `first` or `second` half.
    pub(super) part: String,
    /// Of which something was said: a bound needs some waits before it says anything.
    pub(super) jobs: usize,
    pub(super) wait_mean_s: f64,
    pub(super) mae_s: f64,
    pub(super) mae_share: f64,
    pub(super) error_median_s: f64,
    pub(super) under_share: f64,
    pub(super) within_1min_share: f64,
    pub(super) within_10min_share: f64,
    pub(super) slope: Option<f64>,
    pub(super) correlation: Option<f64>,
    /// Of a bound: the share of jobs that are to keep it.
    pub(super) quantile: Option<f64>,
    /// Of a bound: how sure that is to be.
    pub(super) confidence: Option<f64>,
    /// Of a bound: the share of jobs that kept it.
    pub(super) coverage: Option<f64>,
    /// Half the width of its interval of 95 %.
    pub(super) coverage_half_width: Option<f64>,
}

/// A line of `waits_times.csv`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct WaitCost {
    pub(super) predictor: String,
    pub(super) backfill: String,
    pub(super) predictions: usize,
    /// By the clock of this machine, of one prediction and what is learned from one job.
    pub(super) cost_us: f64,
}

/// A line of `curves.csv`: of jobs that took about as long as each other, what was predicted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct CurveRow {
    pub(super) predictor: String,
    /// Empty of run times in the log; of waits, the order of the machine.
    pub(super) backfill: String,
    pub(super) jobs: usize,
    pub(super) measured_s: f64,
    /// Half of the predictions are from this …
    pub(super) predicted_low_s: f64,
    pub(super) predicted_median_s: f64,
    /// … to this.
    pub(super) predicted_high_s: f64,
}

/// Parts of a curve, without that of jobs that did not wait. Arbitrary: as many points as a plot has room for.
const PARTS: usize = 20;

impl CurveRow {
    /// Of (predicted, measured).
    pub(super) fn all(predictor: &str, backfill: &str, pairs: &[(Span, Span)]) -> Vec<CurveRow> {
        let row = |bin: Bin| CurveRow {
            predictor: predictor.to_string(),
            backfill: backfill.to_string(),
            jobs: bin.jobs,
            measured_s: bin.measured_s,
            predicted_low_s: bin.low_s,
            predicted_median_s: bin.median_s,
            predicted_high_s: bin.high_s,
        };
        curve(pairs, PARTS).into_iter().map(row).collect()
    }
}

/// All rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Results {
    pub(super) errors: Vec<ErrorRow>,
    pub(super) schedules: Vec<ScheduleRow>,
    pub(super) costs: Vec<Cost>,
    pub(super) waits: Vec<WaitRow>,
    pub(super) wait_costs: Vec<WaitCost>,
    pub(super) curves: Vec<CurveRow>,
}

impl Results {
    pub(super) fn add(&mut self, other: Results) {
        self.errors.extend(other.errors);
        self.schedules.extend(other.schedules);
        self.costs.extend(other.costs);
        self.waits.extend(other.waits);
        self.wait_costs.extend(other.wait_costs);
        self.curves.extend(other.curves);
    }

    /// Whether there is no row to show.
    pub(super) fn is_empty(&self) -> bool {
        self.errors.is_empty() && self.schedules.is_empty() && self.waits.is_empty()
    }

    /// All predictors of waits that have a row, in the order of the file.
    pub(super) fn waiting(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for row in &self.waits {
            if !names.contains(&row.predictor.as_str()) {
                names.push(&row.predictor);
            }
        }
        names
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
        let names = |row: &WaitRow| [&row.predictor, &row.backfill].map(Clone::clone);
        let waits: BTreeSet<[String; 2]> =
            self.waits.iter().filter(|row| is_last(&row.part)).map(names).collect();
        self.waits.retain(|row| waits.contains(&names(row)));
        self.curves.retain(|row| match row.backfill.as_str() {
            "" => errors.contains(&row.predictor),
            _ => waits.contains(&[&row.predictor, &row.backfill].map(Clone::clone)),
        });
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
        missing(&mut self.waits, &other.waits);
        missing(&mut self.wait_costs, &other.wait_costs);
        missing(&mut self.curves, &other.curves);
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
        waits: rows(&out.join(WAITS))?,
        wait_costs: rows(&out.join(WAIT_TIMES))?,
        curves: rows(&out.join(CURVES))?,
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
    for name in ROWS {
        let path = out.join(name);
        if path.exists() {
            std::fs::remove_file(&path).with_context(|| format!("failed to remove {}", path.display()))?;
        }
    }
    let text = serde_json::to_string_pretty(setting)? + "\n";
    put(&out.join(ABOUT), text.as_bytes())
}

pub(super) fn write(out: &Path, results: &Results) -> anyhow::Result<()> {
    // Before what says that they are there.
    put(&out.join(CURVES), csv(&results.curves)?.as_bytes())?;
    put(&out.join(ERRORS), csv(&results.errors)?.as_bytes())?;
    put(&out.join(SCHEDULES), csv(&results.schedules)?.as_bytes())?;
    put(&out.join(TIMES), csv(&results.costs)?.as_bytes())?;
    put(&out.join(WAITS), csv(&results.waits)?.as_bytes())?;
    put(&out.join(WAIT_TIMES), csv(&results.wait_costs)?.as_bytes())
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
        "waits": results.waits,
        "wait_costs": results.wait_costs,
        "curves": results.curves,
    })
}
