//! A sweep as it is written in a TOML file, and the list of runs that it means.
//!
//! A sweep is a base experiment and changes to it. `[parameters]` gives lists of values by dotted path, of which every
//! combination is run; `[[runs]]` gives single combinations. With both, every entry of `[[runs]]` is combined with
//! every combination of `[parameters]`. Runs are numbered from 1, the last parameter by name varying fastest.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use experiments::experiment::file::Written;
use experiments::experiment::{Experiment, ExperimentError, Source, built_in, predicts};
use experiments::hex::hex;
use experiments::kind::{self, Kind};
use experiments::limits;
use experiments::terminal::note;
use links::preset::Preset;
use report::quantity::counted;
use report::sweep::WrittenReport;
use scheduler::spelling;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use toml::{Table, Value};

use super::progress::Progress;
use super::roles;

/// Sweeps beyond this are a slip of the pen; large enough for a week of two cores.
pub const RUNS_MAX: usize = 1_000_000;

const CORRECTION: &str = "workload.correction";

/// A whole file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WrittenSweep {
    /// A name for reports and the database; the file's name if missing.
    pub name: Option<String>,
    /// An experiment file to start from, relative to the sweep file.
    pub base: Option<PathBuf>,
    /// The folder that relative paths of logs start from; the folder of the sweep file if missing.
    pub traces: Option<PathBuf>,
    /// Keys of an experiment, over those of the base.
    pub experiment: Table,
    /// Lists of values by dotted path.
    pub parameters: Table,
    /// Single combinations of values by dotted path.
    pub runs: Vec<Table>,
    /// Runs whose full results are kept: those with all values of one entry.
    pub keep: Vec<Table>,
    /// How the report reads the sweep.
    pub report: WrittenReport,
}

/// What is run, one entry a run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Name of the sweep.
    pub name: String,
    /// The text of the file.
    pub text: String,
    /// The text of the base experiment, if there is one.
    pub base: Option<String>,
    /// Dotted paths of all parameters, ascending.
    pub parameters: Vec<String>,
    /// The runs, by position.
    pub runs: Vec<PlannedRun>,
    /// How the report reads the sweep.
    pub report: WrittenReport,
    /// The values that runs have of the switches that decide, whether or not somebody wrote them.
    pub switches: BTreeMap<String, BTreeSet<String>>,
    /// The logs that runs read, each with its SHA-256 once somebody has asked for it.
    pub logs: BTreeMap<PathBuf, Option<String>>,
}

/// One run of a sweep.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PlannedRun {
    /// Number in the sweep, from 1.
    pub position: usize,
    /// What tells this run from every other: a digest of the whole experiment as written.
    pub digest: String,
    /// The values that the parameters have.
    pub values: BTreeMap<String, Value>,
    /// The whole experiment, with paths that can be opened.
    pub experiment: Table,
    /// Tells workloads apart: runs with the same one share their jobs.
    pub workload: String,
    /// Whether its full results are kept.
    pub keep: bool,
}

/// Why a file is no sweep. Reads after "failed to".
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// It cannot be read.
    #[error("read {}: {cause}; check the path", path.display())]
    Read {
        /// The file that was given.
        path: PathBuf,
        /// What the system said.
        cause: std::io::Error,
    },
    /// It is not what was expected.
    #[error("read {}: {reason}", path.display())]
    Parse {
        /// The file that was given.
        path: PathBuf,
        /// Where and what.
        reason: String,
    },
    /// A value means nothing.
    #[error("understand {place}: {reason}")]
    Value {
        /// The key of the value, with its table.
        place: String,
        /// What is wrong and what to write.
        reason: String,
    },
    /// A combination of values is no experiment.
    #[error("set up run {position} ({values}): {reason}")]
    Run {
        /// Number of the run in the sweep.
        position: usize,
        /// Values of its parameters, in words.
        values: String,
        /// What is wrong with the experiment.
        reason: String,
    },
}

impl Plan {
    /// Reads a sweep file and checks every run of it. `traces` replaces the folder of the logs.
    ///
    /// # Errors
    /// If the file or its base cannot be read, or one of the runs is no experiment.
    pub fn load(path: &Path, traces: Option<&Path>) -> Result<Plan, SweepError> {
        Plan::of(path, read(path)?, traces)
    }

    /// The same of a text, as if it stood at that path.
    ///
    /// # Errors
    /// As [`Plan::load`].
    pub fn of(path: &Path, text: String, traces: Option<&Path>) -> Result<Plan, SweepError> {
        let sweep: WrittenSweep =
            parse(path, &text).map_err(|error| match kind::mistaken(path, Kind::Sweep) {
                Some(reason) => SweepError::Parse { path: path.to_path_buf(), reason },
                None => error,
            })?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let mut places = Places {
            base: PathBuf::new(),
            sweep: folder.to_path_buf(),
            logs: match (traces, &sweep.traces) {
                (Some(given), _) => given.to_path_buf(),
                (None, Some(written)) => folder.join(written),
                (None, None) => folder.to_path_buf(),
            },
        };
        let (mut base, mut base_text) = (Table::new(), None);
        if let Some(file) = &sweep.base {
            let file = folder.join(file);
            let text = read(&file)?;
            base = parse(&file, &text)?;
            base_text = Some(text);
            places.base = file.parent().unwrap_or(Path::new("")).to_path_buf();
        }
        let name = sweep.name.clone().unwrap_or_else(|| {
            path.file_stem().map_or("sweep".to_string(), |stem| stem.to_string_lossy().into_owned())
        });
        let combinations = combinations(&sweep)?;
        let keep = keep_rules(&sweep)?;
        let parameters: BTreeSet<&String> = combinations.iter().flat_map(BTreeMap::keys).collect();
        let parameters: Vec<String> = parameters.into_iter().cloned().collect();
        let mut runs = Vec::with_capacity(combinations.len());
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        let mut meant: BTreeMap<String, usize> = BTreeMap::new();
        let (mut switches, mut logs) = (BTreeMap::<String, BTreeSet<String>>::new(), BTreeMap::new());
        // Thousands of runs on links of many sites take minutes.
        let mut progress = Progress::of_checks(combinations.len());
        for (values, position) in combinations.into_iter().zip(1..) {
            let keep =
                keep.iter().any(|rule| rule.iter().all(|(path, value)| values.get(path) == Some(value)));
            let (run, resolved) = planned(&base, &sweep.experiment, &places, values, position, keep)?;
            for (key, value) in resolved.switches() {
                switches.entry(key).or_default().insert(value);
            }
            logs.extend(logs_of(&resolved).into_iter().map(|log| (log.clone(), None)));
            if let Some(first) = seen.insert(run.digest.clone(), position) {
                return Err(SweepError::Run {
                    position,
                    values: words(&run.values),
                    reason: format!("it is the same as run {first}; drop one of them"),
                });
            }
            if let Some(first) = meant.insert(resolved.digest(), position) {
                return Err(SweepError::Run {
                    position,
                    values: words(&run.values),
                    reason: format!("it means the same as run {first}, in other words; drop one of them"),
                });
            }
            runs.push(run);
            progress.set(position);
        }
        drop(progress);
        roles::check(&sweep.report, &parameters, &runs)?;
        Ok(Plan { name, text, base: base_text, parameters, runs, report: sweep.report, switches, logs })
    }
}

fn read(path: &Path) -> Result<String, SweepError> {
    limits::read_text(path, limits::EXPERIMENT).map_err(|cause| match kind::mistaken(path, Kind::Sweep) {
        Some(reason) => SweepError::Parse { path: path.to_path_buf(), reason },
        None => SweepError::Read { path: path.to_path_buf(), cause },
    })
}

fn parse<T: serde::de::DeserializeOwned>(path: &Path, text: &str) -> Result<T, SweepError> {
    toml::from_str(text).map_err(|error: toml::de::Error| SweepError::Parse {
        path: path.to_path_buf(),
        reason: spelling::of_file(&error.to_string()),
    })
}

/// Folders that relative paths start from.
struct Places {
    /// The base experiment.
    base: PathBuf,
    /// The sweep file.
    sweep: PathBuf,
    /// Logs that the sweep file names.
    logs: PathBuf,
}

/// The experiment of one combination: base, then the experiment of the sweep, then the values; and what it means.
fn planned(
    base: &Table,
    over: &Table,
    places: &Places,
    values: BTreeMap<String, Value>,
    position: usize,
    keep: bool,
) -> Result<(PlannedRun, Experiment), SweepError> {
    let wrong = |reason: String| SweepError::Run { position, values: words(&values), reason };
    let mut changes = over.clone();
    // What is inside a table of a section changes that table, and the rest of it stays.
    let is_inside = |path: &str| path.split('.').nth(2).is_some();
    let set_those = |table: &mut Table, inside: bool| {
        let those = values.iter().filter(|(path, _)| is_inside(path) == inside);
        those.into_iter().try_for_each(|(path, value)| set(table, path, value.clone()))
    };
    set_those(&mut changes, false).map_err(&wrong)?;
    // The digest knows nothing of where files are, so that a sweep can go on elsewhere.
    let mut written = base.clone();
    merge(&mut written, &changes);
    set_those(&mut written, true).map_err(&wrong)?;
    let digest = digest(&written);
    let mut experiment = base.clone();
    place_logs(&mut experiment, &places.base);
    place_network(&mut experiment, &places.base);
    place_logs(&mut changes, &places.logs);
    place_network(&mut changes, &places.sweep);
    merge(&mut experiment, &changes);
    set_those(&mut experiment, true).map_err(&wrong)?;
    let resolved = resolve(&experiment).map_err(&wrong)?;
    let is_missing = |path: &&PathBuf| !built_in::is_built_in(path) && !path.exists();
    let missing = logs_of(&resolved).into_iter().find(is_missing);
    if let Some(missing) = missing {
        return Err(wrong(format!(
            "the log {} is not there; check the path, or say with --traces where logs are",
            missing.display()
        )));
    }
    let workload = workload_key(&resolved);
    Ok((PlannedRun { position, digest, values, experiment, workload, keep }, resolved))
}

/// The files that an experiment reads its jobs from.
pub(super) fn logs_of(experiment: &Experiment) -> Vec<&PathBuf> {
    match &experiment.source {
        Source::Trace(path) => vec![path],
        Source::Mix(logs) => logs.iter().map(|log| &log.trace).collect(),
        Source::Bag(bag) => vec![&bag.file],
        Source::BagBeside(bag, logs) => logs.iter().map(|log| &log.trace).chain([&bag.file]).collect(),
        // What is drawn is said by the file and the seed.
        Source::Generated(_) => Vec::new(),
    }
}

/// What an experiment means that was put together from tables.
///
/// # Errors
/// In words, if it means nothing.
pub fn resolve(experiment: &Table) -> Result<Experiment, String> {
    let written: Written = experiment.clone().try_into().map_err(|error: toml::de::Error| {
        // Places in a text that nobody wrote would mislead.
        spelling::of_file(error.message())
    })?;
    Experiment::resolve(&written).map_err(|error: ExperimentError| error.of_key())
}

/// Tells workloads apart. The jobs of two experiments with the same key are the same.
pub fn workload_key(experiment: &Experiment) -> String {
    format!(
        "{:?} {:?} {:?} {:?} {:?} {} {:?}",
        experiment.source,
        experiment.slice,
        experiment.prepare,
        experiment.deal,
        experiment.grid.machines().collect::<Vec<_>>(),
        experiment.load_factor,
        experiment.load
    )
}

/// Every combination of values, in order.
fn combinations(sweep: &WrittenSweep) -> Result<Vec<BTreeMap<String, Value>>, SweepError> {
    let mut axes: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    flatten("parameters", "", &sweep.parameters, &mut |path, value| {
        axes.insert(path.clone(), list(&path, value)?);
        Ok(())
    })?;
    let mut all: Vec<BTreeMap<String, Value>> = Vec::new();
    for (number, entry) in sweep.runs.iter().enumerate() {
        let mut values = BTreeMap::new();
        flatten(&format!("runs entry {}", number + 1), "", entry, &mut |path, value| {
            if axes.contains_key(&path) {
                return Err(wrong(&path, "it is both in [parameters] and in [[runs]]; keep one".into()));
            }
            values.insert(path, value.clone());
            Ok(())
        })?;
        all.push(values);
    }
    if all.is_empty() {
        all.push(BTreeMap::new());
    }
    for (path, values) in axes {
        if all.len().saturating_mul(values.len()) > RUNS_MAX {
            return Err(wrong(&path, format!("with it the sweep has more than {RUNS_MAX} runs; split it")));
        }
        let combine = |run: BTreeMap<String, Value>| {
            let path = &path;
            values
                .iter()
                .map(move |value| {
                    let mut run = run.clone();
                    run.insert(path.clone(), value.clone());
                    run
                })
                .collect::<Vec<_>>()
        };
        all = all.into_iter().flat_map(combine).collect();
    }
    Ok(corrected(all))
}

/// Where nobody predicts there is nothing to correct: of such combinations, one is left, with the correction that does nothing.
fn corrected(all: Vec<BTreeMap<String, Value>>) -> Vec<BTreeMap<String, Value>> {
    let is_believed = |values: &BTreeMap<String, Value>| {
        let estimate = values.get("workload.estimate").and_then(Value::as_str);
        estimate.is_some_and(|estimate| !predicts(estimate)) && values.contains_key(CORRECTION)
    };
    let (mut left, mut believed, mut merged) = (Vec::with_capacity(all.len()), BTreeSet::new(), 0_u64);
    for mut values in all {
        if is_believed(&values) {
            values.insert(CORRECTION.to_string(), Value::String("user".to_string()));
            if !believed.insert(words(&values)) {
                merged += 1;
                continue;
            }
        }
        left.push(values);
    }
    if merged > 0 {
        note(&format!(
            "where users are believed there is nothing to correct: {} left out that would differ in workload.correction alone",
            counted(merged, "run")
        ));
    }
    left
}

fn keep_rules(sweep: &WrittenSweep) -> Result<Vec<BTreeMap<String, Value>>, SweepError> {
    let mut rules = Vec::new();
    for entry in &sweep.keep {
        let mut rule = BTreeMap::new();
        flatten("keep", "", entry, &mut |path, value| {
            rule.insert(path, value.clone());
            Ok(())
        })?;
        rules.push(rule);
    }
    Ok(rules)
}

fn wrong(place: &str, reason: String) -> SweepError {
    SweepError::Value { place: place.to_string(), reason }
}

/// Calls `take` for each value with its dotted path; `a.b = 1`, `"a.b" = 1` and `[a]` with `b = 1` are the same.
fn flatten(
    section: &str,
    prefix: &str,
    table: &Table,
    take: &mut impl FnMut(String, &Value) -> Result<(), SweepError>,
) -> Result<(), SweepError> {
    for (key, value) in table {
        let path = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
        if path.split('.').any(str::is_empty) {
            return Err(wrong(
                &format!("[{section}] {path:?}"),
                "write a dotted path such as network.delay".into(),
            ));
        }
        match value {
            Value::Table(inner) if !inner.get("from").is_some_and(Value::is_integer) => {
                flatten(section, &path, inner, take)?
            }
            value => take(path, value)?,
        }
    }
    Ok(())
}

/// The values of a parameter: a list, or whole numbers `{ from = 1, to = 30, step = 1 }`.
fn list(path: &str, value: &Value) -> Result<Vec<Value>, SweepError> {
    let values = match value {
        Value::Array(values) => values.clone(),
        Value::Table(range) => {
            if let Some(key) = range.keys().find(|key| !["from", "to", "step"].contains(&key.as_str())) {
                return Err(wrong(path, format!("unknown key {key:?}; a range has from, to and step")));
            }
            let number = |key, default: Option<i64>| match range.get(key) {
                Some(Value::Integer(number)) => Ok(*number),
                Some(other) => Err(wrong(path, format!("{key} = {other} is not a whole number"))),
                None => default.ok_or_else(|| wrong(path, format!("a range needs {key}"))),
            };
            let (from, to, step) = (number("from", None)?, number("to", None)?, number("step", Some(1))?);
            if step < 1 {
                return Err(wrong(path, format!("step = {step} leads nowhere; write a step from 1 on")));
            }
            if to.saturating_sub(from) / step >= RUNS_MAX as i64 {
                return Err(wrong(
                    path,
                    format!(
                        "from {from} to {to} in steps of {step} are more than {RUNS_MAX} values; split the sweep"
                    ),
                ));
            }
            let mut values = Vec::new();
            let mut next = Some(from);
            while let Some(value) = next.filter(|value| *value <= to) {
                values.push(Value::Integer(value));
                next = value.checked_add(step);
            }
            values
        }
        other => {
            return Err(wrong(
                path,
                format!("{other} is not a list; write [{other}], or give it in [experiment]"),
            ));
        }
    };
    if values.is_empty() {
        return Err(wrong(
            path,
            "it has no values; write at least one, and ranges from the lower end on".into(),
        ));
    }
    for (index, value) in values.iter().enumerate() {
        if values[..index].contains(value) {
            return Err(wrong(path, format!("{value} is there twice")));
        }
    }
    Ok(values)
}

/// Sets a value by its dotted path.
fn set(table: &mut Table, path: &str, value: Value) -> Result<(), String> {
    let (head, rest) = match path.split_once('.') {
        None => {
            table.insert(path.to_string(), value);
            return Ok(());
        }
        Some(parts) => parts,
    };
    match table.entry(head).or_insert_with(|| Value::Table(Table::new())) {
        Value::Table(inner) => set(inner, rest, value),
        _ => Err(format!("{head} is a value, so {path} cannot be set")),
    }
}

/// Keys of which a file has one; giving one takes the others away.
const EXCLUSIVE: [(&str, &[&str]); 3] = [
    ("grid", &["sizes", "sites"]),
    ("workload", &["trace", "logs", "bag", "generate"]),
    ("network", &["delay", "matrix", "matrix_file", "coordinates"]),
];

/// Lays a table over another.
fn merge(under: &mut Table, over: &Table) {
    for (section, keys) in EXCLUSIVE {
        let given = over.get(section).and_then(Value::as_table);
        let is_given = |key: &&str| given.is_some_and(|given| given.contains_key(*key));
        if let Some(Value::Table(below)) = under.get_mut(section)
            && keys.iter().any(is_given)
        {
            for key in keys {
                below.remove(*key);
            }
        }
    }
    for (key, value) in over {
        match (under.get_mut(key), value) {
            (Some(Value::Table(below)), Value::Table(above)) => {
                for (key, value) in above {
                    below.insert(key.clone(), value.clone());
                }
            }
            _ => {
                under.insert(key.clone(), value.clone());
            }
        }
    }
}

/// Makes relative paths of logs start at a folder.
pub fn place_logs(experiment: &mut Table, folder: &Path) {
    let place = |value: &mut Value| {
        if let Value::String(path) = value {
            *path = built_in::placed(folder, Path::new(path)).to_string_lossy().into_owned();
        }
    };
    let Some(Value::Table(workload)) = experiment.get_mut("workload") else { return };
    for key in ["trace", "bag"] {
        if let Some(file) = workload.get_mut(key) {
            place(file);
        }
    }
    if let Some(Value::Array(logs)) = workload.get_mut("logs") {
        for log in logs {
            if let Some(trace) = log.get_mut("trace") {
                place(trace);
            }
        }
    }
}

/// Makes relative paths of network models start at a folder.
pub fn place_network(experiment: &mut Table, folder: &Path) {
    let Some(Value::Table(network)) = experiment.get_mut("network") else { return };
    for key in ["model", "matrix_file"] {
        if let Some(Value::String(path)) = network.get_mut(key)
            && (key == "matrix_file" || Preset::named(path).is_none())
        {
            *path = folder.join(&*path).to_string_lossy().into_owned();
        }
    }
}

/// Part of a digest that is enough to tell a million runs apart.
const DIGEST_BYTES: usize = 16;

/// Counts up where a default that decides what numbers are of becomes another: what was run before is then run again.
const DEFAULTS: u32 = 2;

/// Hexadecimal digest of an experiment as written; what changes only outputs does not count.
fn digest(experiment: &Table) -> String {
    let mut experiment = experiment.clone();
    experiment.remove("outputs");
    experiment.remove("run");
    experiment.remove("name");
    // Tables are ordered by key, so equal experiments give equal texts.
    let text = serde_json::to_string(&experiment).expect("a table of plain values");
    let hash = Sha256::digest(format!("{DEFAULTS} {text}").as_bytes());
    hex(&hash[..DIGEST_BYTES])
}

/// Values as `a = 1, b = "x"`.
pub fn words(values: &BTreeMap<String, Value>) -> String {
    values.iter().map(|(path, value)| format!("{path} = {value}")).collect::<Vec<_>>().join(", ")
}

/// A value as it stands in a table: strings without quotes, lists as JSON.
pub struct Plain<'a>(pub &'a Value);

impl fmt::Display for Plain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::String(text) => f.write_str(text),
            Value::Array(_) | Value::Table(_) => {
                f.write_str(&serde_json::to_string(self.0).map_err(|_| fmt::Error)?)
            }
            other => write!(f, "{other}"),
        }
    }
}
