//! What a page shows of a folder that `stealgrid genetic` has left.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context as _, bail};
use experiments::experiment::flags::sizes;
use experiments::terminal::command_line;
use report::quantity::grouped;
use report::sweep::allocation::{Allocations, Bar, Criteria, Front, Schedule, Site};
use report::sweep::{Study, WrittenReport};
use scheduler::local::{LocalQueue, replay};
use scheduler::strategy::{LocalScheduler, Pass};
use scheduler::{JobId, JobSpec, Labels, SiteId, Span, Time, TimedJob, spelling};
use serde::Deserialize;
use toml::{Table, Value};

use super::{COMMAND, CONVERGENCE, FRONTS, JOBS, OPTIONS, ROWS, stored, table};

/// What is read of an object of `rows.json`.
#[derive(Deserialize)]
struct Entry {
    batch: usize,
    algorithm: String,
    rows: Vec<Vec<u64>>,
    #[serde(flatten)]
    figures: Figures,
}

#[derive(Clone, Copy, Deserialize)]
struct Figures {
    makespan_s: f64,
    turnaround_s: f64,
    response_ratio: f64,
    wait_s: f64,
}

impl Figures {
    fn criteria(self) -> Criteria {
        [self.makespan_s, self.turnaround_s, self.response_ratio, self.wait_s]
    }
}

/// What is read of a line of `table.csv` beside what is shown as it is.
#[derive(Deserialize)]
struct Mean {
    algorithm: String,
    #[serde(rename = "makespan_s")]
    makespan: f64,
    #[serde(rename = "turnaround_s")]
    turnaround: f64,
    response_ratio: f64,
    #[serde(rename = "wait_s")]
    wait: f64,
}

/// What is read of an object of `fronts.json`.
#[derive(Deserialize)]
struct FrontRead {
    batch: usize,
    members: Vec<Figures>,
}

/// What is read of a line of `jobs.csv`.
#[derive(Deserialize)]
struct Job {
    batch: usize,
    job: u64,
    processors: u32,
    requested_s: f64,
}

/// The columns of `table.csv` that the page shows, with their names there.
const MEASURES: [(&str, &str); 12] = [
    ("algorithm", "algorithm"),
    ("makespan_s", "makespan, s"),
    ("turnaround_s", "turnaround, s"),
    ("response_ratio", "response ratio"),
    ("wait_s", "wait, s"),
    ("rho_mean", "competitive factor"),
    ("evaluations_mean", "evaluations"),
    ("generations_mean", "generations"),
    ("makespan_better_than_a1_of_means_percent", "makespan, % less than a1"),
    ("turnaround_better_than_a3_of_means_percent", "turnaround, % less than a3"),
    ("response_better_than_a2_of_means_percent", "response, % less than a2"),
    ("wait_better_than_a4_of_means_percent", "wait, % less than a4"),
];

/// Those that are counts, whole but for means over batches.
const COUNTS: [&str; 2] = ["evaluations_mean", "generations_mean"];

/// Whether it is such a folder.
pub fn is_folder(path: &Path) -> bool {
    path.join(ROWS).is_file() && path.join(OPTIONS).is_file()
}

/// Reads a folder, with the rows of a batch under an algorithm: the first batch and the first algorithm that is a search, if
/// none are given.
///
/// # Errors
/// If a file of it cannot be read, or has no such batch or algorithm.
pub fn read(path: &Path, batch: Option<usize>, algorithm: Option<&str>) -> anyhow::Result<Allocations> {
    let written = stored::text(&path.join(OPTIONS))?;
    let options: Table = written.parse().with_context(|| format!("failed to understand {OPTIONS}"))?;
    let entries: Vec<Entry> = serde_json::from_str(&stored::text(&path.join(ROWS))?)
        .with_context(|| format!("failed to understand {ROWS}"))?;
    let grid =
        sizes(&words(&options, "sites")).map_err(anyhow::Error::msg).context("failed to understand sites")?;
    let batch = batch.or(entries.first().map(|entry| entry.batch)).context("no batch is done yet")?;
    let of_batch: Vec<&Entry> = entries.iter().filter(|entry| entry.batch == batch).collect();
    if of_batch.is_empty() {
        let last = entries.iter().map(|entry| entry.batch).max().unwrap_or(0);
        bail!("failed to find batch {batch}; there are 1 to {last}");
    }
    let names: Vec<&str> = of_batch.iter().map(|entry| entry.algorithm.as_str()).collect();
    let first = names.iter().find(|name| name.eq_ignore_ascii_case("c1")).or(names.first());
    let wanted = algorithm.or(first.copied()).unwrap_or_default();
    let entry =
        of_batch.iter().find(|entry| entry.algorithm.eq_ignore_ascii_case(wanted)).with_context(|| {
            let hint = spelling::hint(wanted, &names);
            format!("failed to find {wanted:?}{hint} in batch {batch}; there are {}", names.join(", "))
        })?;
    let jobs: Vec<Job> = stored::lines(&path.join(JOBS))?;
    let jobs: BTreeMap<u64, &Job> =
        jobs.iter().filter(|job| job.batch == batch).map(|job| (job.job, job)).collect();
    let convergence = stored::convergence(&path.join(CONVERGENCE))?;
    let wishes = WrittenReport {
        x: Some("generation".to_string()),
        replicates: Some(vec!["batch".to_string()]),
        ..WrittenReport::default()
    };
    // Of one search alone nothing tells series apart but its name.
    let searched = match &convergence.rows[..] {
        [] => None,
        [first, ..] => Some(first.parameters[0].to_string()),
    };
    let searching: BTreeSet<String> =
        convergence.rows.iter().map(|row| row.parameters[0].to_string()).collect();
    let convergence = Study::new(convergence, &wishes).ok();
    let batches = entries.iter().map(|entry| entry.batch).max().unwrap_or(0);
    Ok(Allocations {
        name: path.file_name().map_or("genetic".into(), |name| name.to_string_lossy().into_owned()),
        about: format!(
            "{} of {} jobs at sites of {} processors, from {}; seed {}",
            if batches == 1 { "1 batch".to_string() } else { format!("{} batches", grouped(batches as u64)) },
            words(&options, "size"),
            words(&options, "sites"),
            words(&options, "trace"),
            words(&options, "seed")
        ),
        commands: [stored::text(&path.join(COMMAND)).unwrap_or_default().trim().to_string(), command_line()],
        options: written,
        measures: measures(path)?,
        steady: steady(path, &searching)?,
        // Greedy strategies alone have none.
        convergence: convergence.zip(searched).map(|(study, name)| study.with_single_series(&name)),
        front: front(path, batch, &of_batch)?,
        schedule: Schedule {
            batch,
            algorithm: entry.algorithm.clone(),
            sites: entry
                .rows
                .iter()
                .zip(&grid)
                .map(|(row, &processors)| site(row, processors, &jobs))
                .collect::<anyhow::Result<_>>()?,
        },
    })
}

/// An option in words.
fn words(options: &Table, key: &str) -> String {
    let one = |value: &Value| value.as_str().map_or(value.to_string(), str::to_string);
    match options.get(key) {
        Some(Value::Array(values)) => values.iter().map(one).collect::<Vec<_>>().join(", "),
        Some(value) => one(value),
        None => String::new(),
    }
}

/// Who is none of these that search, with the means of its criteria.
fn steady(path: &Path, searching: &BTreeSet<String>) -> anyhow::Result<Vec<(String, Criteria)>> {
    let lines: Vec<Mean> = stored::lines(&path.join(table::FILE))?;
    let rest = lines.into_iter().filter(|line| !searching.contains(&line.algorithm));
    Ok(rest
        .map(|line| (line.algorithm, [line.makespan, line.turnaround, line.response_ratio, line.wait]))
        .collect())
}

fn measures(path: &Path) -> anyhow::Result<(Vec<String>, Vec<Vec<String>>)> {
    let lines: Vec<BTreeMap<String, String>> = stored::lines(&path.join(table::FILE))?;
    let shown = |line: &BTreeMap<String, String>| {
        let cell = |(column, _): &(&str, &str)| {
            let text = line.get(*column).map_or("", String::as_str);
            match text.parse::<f64>() {
                Ok(count) if COUNTS.contains(column) && count.fract() == 0.0 => grouped(count as u64),
                Ok(number) => report::quantity::number(number),
                Err(_) if text.is_empty() => "-".to_string(),
                Err(_) => text.to_string(),
            }
        };
        MEASURES.iter().map(cell).collect()
    };
    let rows: Vec<Vec<String>> = lines.iter().map(shown).collect();
    // What is against a strategy that was not asked for says nothing.
    let has_any = |column: &usize| rows.iter().any(|row| row[*column] != "-");
    let columns: Vec<usize> = (0..MEASURES.len()).filter(has_any).collect();
    let names = columns.iter().map(|&column| MEASURES[column].1.to_string()).collect();
    let kept = |row: &Vec<String>| columns.iter().map(|&column| row[column].clone()).collect();
    Ok((names, rows.iter().map(kept).collect()))
}

fn front(path: &Path, batch: usize, of_batch: &[&Entry]) -> anyhow::Result<Option<Front>> {
    if !path.join(FRONTS).exists() {
        return Ok(None);
    }
    let fronts: Vec<FrontRead> = serde_json::from_str(&stored::text(&path.join(FRONTS))?)
        .with_context(|| format!("failed to understand {FRONTS}"))?;
    let others = of_batch.iter().filter(|entry| !entry.algorithm.eq_ignore_ascii_case("nsga2"));
    Ok(fronts.into_iter().find(|front| front.batch == batch).map(|front| Front {
        batch,
        members: front.members.into_iter().map(Figures::criteria).collect(),
        others: others.map(|entry| (entry.algorithm.clone(), entry.figures.criteria())).collect(),
    }))
}

/// How a row runs with requested times, by the local queue of simulations and nodes.
fn site(row: &[u64], processors: u32, jobs: &BTreeMap<u64, &Job>) -> anyhow::Result<Site> {
    // All come at once, so that numbers are turns.
    let job = |(turn, number): (u64, &u64)| {
        let job = jobs.get(number).with_context(|| format!("failed to find job {number} in {JOBS}"))?;
        let requested = Span::from_micros((job.requested_s * 1e6).round() as i64);
        let spec = JobSpec {
            id: JobId(turn),
            submit: Time::ZERO,
            processors: job.processors,
            requested,
            labels: Labels::UNKNOWN,
            origin: SiteId(1),
            payload: 0,
        };
        Ok(TimedJob { spec, run_time: requested })
    };
    let timed = (0..).zip(row).map(job).collect::<anyhow::Result<Vec<TimedJob>>>()?;
    let mut bars: Vec<Bar> = replay(LocalQueue::new(LocalScheduler::Easy, Pass::Batch, processors), &timed)
        .into_iter()
        .map(|(turn, start)| {
            let place = turn.0 as usize;
            let start_s = start.since(Time::ZERO).as_secs_f64();
            let end_s = (start + timed[place].run_time).since(Time::ZERO).as_secs_f64();
            Bar { job: row[place], processors: timed[place].spec.processors, start_s, end_s }
        })
        .collect();
    bars.sort_by(|one, other| one.start_s.total_cmp(&other.start_s));
    Ok(Site { processors, jobs: bars })
}
