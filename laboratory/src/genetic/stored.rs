//! What `stealgrid genetic` has left, as rows of a sweep: whatever reads a sweep reads it.
//!
//! The strategy is the algorithm, and batches are repetitions. A folder is what came out at the end, along the probability of a
//! mutation; a folder of such folders is all of them together. Its `convergence.csv` is the best so far, along generations.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use experiments::limits;
use outputs::sweep::{Cell, Row, Rows};
use serde::Deserialize;
use toml::{Table, Value};

use super::{COMMAND, CONVERGENCE, FRONTS, OPTIONS, ROWS, TIMES};

/// Metrics at the end, beside the criteria.
const AT_END: [&str; 9] = [
    "ratio_lower_bound",
    "evaluations",
    "generations",
    "hypervolume",
    "dominated_share",
    "members",
    "run_makespan_s",
    "run_wait_s",
    "search_s",
];
const CRITERIA: [&str; 4] = ["makespan_s", "turnaround_s", "response_ratio", "wait_s"];

/// The rows of a folder, of a folder of such folders, or of a `convergence.csv`; nothing if it is none of these.
///
/// # Errors
/// If a file of it cannot be read.
pub fn read(path: &Path) -> anyhow::Result<Option<Rows>> {
    if path.file_name().is_some_and(|name| name == CONVERGENCE) {
        return convergence(path).map(Some);
    }
    if !path.is_dir() {
        return Ok(None);
    }
    let has_rows = |folder: &PathBuf| folder.join(ROWS).exists();
    let mut folders: Vec<PathBuf> = Some(path.to_path_buf()).filter(has_rows).into_iter().collect();
    if folders.is_empty() {
        let entries =
            std::fs::read_dir(path).with_context(|| format!("failed to read {}", path.display()))?;
        folders = entries.filter_map(|entry| Some(entry.ok()?.path())).filter(has_rows).collect();
        folders.sort();
    }
    let mut all: Option<Rows> = None;
    for folder in folders {
        let rows = ends(&folder)?;
        match &mut all {
            None => all = Some(rows),
            Some(all) => {
                all.rows.extend(rows.rows);
                all.planned = all.planned.zip(rows.planned).map(|(one, other)| one + other);
                all.command = format!("{}; {}", all.command, rows.command);
            }
        }
    }
    if let Some(all) = &mut all {
        number(all);
    }
    Ok(all)
}

fn number(rows: &mut Rows) {
    for (row, position) in rows.rows.iter_mut().zip(1..) {
        row.position = position;
    }
}

pub(super) fn text(path: &Path) -> anyhow::Result<String> {
    limits::read_text(path, limits::GENETIC)
        .with_context(|| format!("failed to read {}; check the path", path.display()))
}

/// What is the same for all rows of a folder.
struct Folder {
    options: Table,
    rows: Rows,
}

/// Which parameter plays which part, for whoever shows the rows.
const PARTS: &str = "replicates = [\"batch\"]\nranking = [\"makespan_s\", \"response_ratio\", \"wait_s\"]\n";

fn folder(path: &Path, x: &str) -> anyhow::Result<Folder> {
    let written = text(&path.join(OPTIONS))?;
    let options: Table = written.parse().with_context(|| format!("failed to understand {OPTIONS}"))?;
    let command = text(&path.join(COMMAND)).unwrap_or_default().trim().to_string();
    let name = path.file_name().map_or("genetic".to_string(), |name| name.to_string_lossy().into_owned());
    let parameters = ["strategy.name", x, "batch", "seed"].map(str::to_string).to_vec();
    let rows = Rows {
        name,
        text: format!("{written}\n[report]\nx = \"{x}\"\n{PARTS}"),
        version: env!("CARGO_PKG_VERSION").to_string(),
        command,
        commit: None,
        planned: None,
        digits: None,
        parameters,
        metrics: Vec::new(),
        rows: Vec::new(),
    };
    Ok(Folder { options, rows })
}

impl Folder {
    fn seed(&self) -> Cell {
        Cell::Integer(self.options.get("seed").and_then(Value::as_integer).unwrap_or(0))
    }
}

fn row(parameters: Vec<Cell>, wall_s: f64, metrics: Vec<Cell>) -> Row {
    Row { position: 0, done: true, error: None, wall_s, parameters, metrics }
}

/// What is read of an object of `rows.json`.
#[derive(Deserialize)]
struct End {
    batch: i64,
    algorithm: String,
    makespan_s: f64,
    turnaround_s: f64,
    response_ratio: f64,
    wait_s: f64,
    lower_bound_s: f64,
    evaluations: i64,
    generations: i64,
    with_run_times: Run,
}

#[derive(Deserialize)]
struct Run {
    makespan_s: f64,
    wait_s: f64,
}

/// What is read of an object of `fronts.json`.
#[derive(Deserialize)]
struct Front {
    batch: i64,
    members: Vec<serde::de::IgnoredAny>,
    hypervolume: f64,
    others: Vec<Other>,
}

#[derive(Deserialize)]
struct Other {
    algorithm: String,
    hypervolume: f64,
    dominated: bool,
}

/// A line of `times.csv`.
#[derive(Deserialize)]
struct Time {
    batch: i64,
    algorithm: String,
    wall_s: f64,
}

/// What NSGA-II begins with, what becomes of duplicates, and its probability of a mutation: what a folder of fronts differs by.
/// A folder without these options is of an earlier version, which had no others.
fn front_options(options: &Table) -> String {
    let word = |key, earlier| options.get(key).and_then(Value::as_str).unwrap_or(earlier);
    let mutation = options.get("front-mutation").map_or("1/n".to_string(), Value::to_string);
    format!("{} {} {mutation}", word("front-begin", "shared"), word("front-duplicates", "keep"))
}

/// What came out at the end.
fn ends(path: &Path) -> anyhow::Result<Rows> {
    let mut folder = folder(path, "mutation")?;
    let mutation = match folder.options.get("mutation") {
        Some(Value::Float(value)) => Cell::Real(*value),
        Some(Value::Integer(value)) => Cell::Real(*value as f64),
        _ => bail!("failed to find mutation in {}", path.join(OPTIONS).display()),
    };
    folder.rows.parameters.insert(2, "front".to_string());
    let front_options = front_options(&folder.options);
    let entries: Vec<End> = serde_json::from_str(&text(&path.join(ROWS))?)
        .with_context(|| format!("failed to understand {}", path.join(ROWS).display()))?;
    let fronts: Vec<Front> = match path.join(FRONTS) {
        fronts if fronts.exists() => serde_json::from_str(&text(&fronts)?)
            .with_context(|| format!("failed to understand {}", fronts.display()))?,
        _ => Vec::new(),
    };
    let times: Vec<Time> = lines(&path.join(TIMES))?;
    let times: BTreeMap<(i64, String), f64> =
        times.into_iter().map(|time| ((time.batch, time.algorithm), time.wall_s)).collect();
    folder.rows.metrics = CRITERIA.iter().chain(&AT_END).map(|name| (*name).to_string()).collect();
    for end in entries {
        let front = fronts.iter().find(|front| front.batch == end.batch);
        let other =
            front.and_then(|front| front.others.iter().find(|other| other.algorithm == end.algorithm));
        // Of the front, how many of the others it dominates; of another, whether it is dominated.
        let own = front.filter(|_| other.is_none());
        let share = |front: &Front| {
            front.others.iter().filter(|other| other.dominated).count() as f64
                / front.others.len().max(1) as f64
        };
        let real = |value: Option<f64>| value.map_or(Cell::Null, Cell::Real);
        let wall_s = times.get(&(end.batch, end.algorithm.clone())).copied();
        let mut metrics =
            [end.makespan_s, end.turnaround_s, end.response_ratio, end.wait_s].map(Cell::Real).to_vec();
        metrics.extend([
            Cell::Real(end.makespan_s / end.lower_bound_s),
            Cell::Integer(end.evaluations),
            Cell::Integer(end.generations),
            real(other.map(|other| other.hypervolume).or(own.map(|front| front.hypervolume))),
            real(other.map(|other| f64::from(u8::from(other.dominated))).or(own.map(share))),
            own.map_or(Cell::Null, |front| Cell::Integer(front.members.len() as i64)),
            Cell::Real(end.with_run_times.makespan_s),
            Cell::Real(end.with_run_times.wait_s),
            real(wall_s),
        ]);
        let parameters = vec![
            Cell::Text(end.algorithm),
            mutation.clone(),
            Cell::Text(front_options.clone()),
            Cell::Integer(end.batch),
            folder.seed(),
        ];
        folder.rows.rows.push(row(parameters, wall_s.unwrap_or(0.0), metrics));
    }
    // A run that was stopped, or goes on, has fewer.
    let batches = folder.options.get("batches").and_then(Value::as_integer);
    let algorithms = folder.options.get("algorithms").and_then(Value::as_array).map(Vec::len);
    folder.rows.planned = batches
        .and_then(|batches| usize::try_from(batches).ok())
        .zip(algorithms)
        .map(|(batches, algorithms)| batches * algorithms);
    number(&mut folder.rows);
    Ok(folder.rows)
}

/// A line of `convergence.csv`.
#[derive(Deserialize)]
struct Best {
    batch: i64,
    algorithm: String,
    generation: i64,
    evaluations: i64,
    makespan_s: f64,
    turnaround_s: f64,
    response_ratio: f64,
    wait_s: f64,
}

/// The best so far, at generations that some algorithm on some batch was written at. Who has ended stays where it is.
pub(super) fn convergence(path: &Path) -> anyhow::Result<Rows> {
    let mut folder = folder(path.parent().unwrap_or(Path::new("")), "generation")?;
    folder.rows.metrics = CRITERIA.iter().chain(&["evaluations"]).map(|name| (*name).to_string()).collect();
    let mut searches: Vec<(i64, String, Vec<Best>)> = Vec::new();
    for best in lines::<Best>(path)? {
        match searches.last_mut().filter(|(batch, name, _)| *batch == best.batch && *name == best.algorithm) {
            Some((_, _, points)) => points.push(best),
            None => searches.push((best.batch, best.algorithm.clone(), vec![best])),
        }
    }
    // The last point of a search stands wherever it ended.
    let mut generations: Vec<i64> = searches
        .iter()
        .flat_map(|(_, _, points)| &points[..points.len() - 1])
        .map(|point| point.generation)
        .collect();
    generations.sort_unstable();
    generations.dedup();
    for (batch, algorithm, points) in searches {
        for &generation in &generations {
            let Some(best) = points.iter().rev().find(|point| point.generation <= generation) else {
                continue;
            };
            let criteria = [best.makespan_s, best.turnaround_s, best.response_ratio, best.wait_s];
            let mut metrics = criteria.map(Cell::Real).to_vec();
            metrics.push(Cell::Integer(best.evaluations));
            let parameters = vec![
                Cell::Text(algorithm.clone()),
                Cell::Integer(generation),
                Cell::Integer(batch),
                folder.seed(),
            ];
            folder.rows.rows.push(row(parameters, 0.0, metrics));
        }
    }
    number(&mut folder.rows);
    Ok(folder.rows)
}

pub(super) fn lines<T: for<'de> Deserialize<'de>>(path: &Path) -> anyhow::Result<Vec<T>> {
    let text = text(path)?;
    csv::Reader::from_reader(text.as_bytes())
        .deserialize()
        .collect::<Result<_, _>>()
        .with_context(|| format!("failed to understand {}", path.display()))
}
