//! `stealgrid explain`: the life of one job, and why it waited when it did.
//!
//! Told from the event log alone by [`analysis::life`]; this module opens the files and finds words.

use std::path::{Path, PathBuf};

use analysis::life::{Life, LifeBuilder};
use clap::Args;
use outputs::table::Table;
use outputs::{DirectoryError, JobRow, Manifest, ResultDirectory};
use report::quantity::{clock, number};
use scheduler::{BrokerRule, Grid, JobId, Span, Strategy, StrategySpec, Threshold, Time};
use serde::Serialize;

use crate::exit;
use crate::limits;
use crate::terminal::say;

/// Tell the life of one job: where it was, why it waited, and what the ideal run did with it.
///
/// Needs the event log, which `simulate` and `run` write unless --no-events is given.
///
/// Exit codes: 0 done, 2 usage, 3 no such job, or a directory that is unreadable or has no events.
#[derive(Clone, Debug, Args)]
pub struct ExplainArgs {
    /// Result directory of the run
    #[arg(value_name = "DIR")]
    directory: PathBuf,

    /// Number of the job
    #[arg(value_name = "JOB")]
    job: u64,

    /// Result directory of the ideal run, to see what it did with the job
    #[arg(long, value_name = "DIR")]
    ideal: Option<PathBuf>,

    /// How the result is printed: terminal, json
    #[arg(long, default_value = "terminal")]
    format: Shown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Shown {
    /// For people
    Terminal,
    /// One JSON object
    Json,
}

/// What is said of a job.
#[derive(Debug, Serialize)]
struct Explained {
    strategy: String,
    #[serde(flatten)]
    life: Life,
    /// Whether it may have run twice, by the report of the run.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    may_have_run_twice: bool,
    ideal: Option<Ideal>,
    /// How to learn what the ideal run does, if that is not known.
    ideal_hint: Option<String>,
    #[serde(skip)]
    grid: Grid,
}

/// What the ideal run did with the job.
#[derive(Debug, Serialize)]
struct Ideal {
    site: Option<String>,
    #[serde(rename = "start_us")]
    start: Option<Time>,
    /// Wait of the run less that of the ideal.
    #[serde(rename = "later_us")]
    later: Option<Span>,
}

/// Why nothing can be said.
#[derive(Debug, thiserror::Error)]
enum ExplainError {
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    #[error("find job {job} in {}: jobs.csv and the events do not have it; jobs have the numbers of the log, {range}",
        directory.display())]
    NoSuchJob { job: u64, directory: PathBuf, range: String },
    #[error("explain job {job}: it is wider than every site and was rejected; it never was in the system")]
    Rejected { job: u64 },
    #[error("read {}: {reason}; was it changed?", path.display())]
    Manifest { path: PathBuf, reason: String },
    #[error("compare with {}: {reason}; name the result directory of the same experiment with --strategy ideal/…",
        path.display())]
    NotIdeal { path: PathBuf, reason: String },
}

/// Runs the command.
///
/// # Errors
/// If the result cannot be printed.
pub fn command(args: &ExplainArgs) -> anyhow::Result<u8> {
    let explained = match Explained::of(args) {
        Ok(explained) => explained,
        Err(error) => {
            eprintln!("error: failed to {error}");
            return Ok(exit::INPUT);
        }
    };
    match args.format {
        Shown::Terminal => say(&explained.text())?,
        Shown::Json => say(&format!("{}\n", serde_json::to_string_pretty(&explained)?))?,
    }
    Ok(exit::DONE)
}

/// Its name does not say which.
fn is_a_command(strategy: &Strategy) -> bool {
    matches!(strategy, Strategy::Broker(broker) if broker.rule == BrokerRule::External)
}

impl Explained {
    fn of(args: &ExplainArgs) -> Result<Explained, ExplainError> {
        let directory = ResultDirectory::open(&args.directory, limits::of_results())?;
        let manifest = directory.manifest();
        let wrong =
            |reason: String| ExplainError::Manifest { path: args.directory.join("manifest.json"), reason };
        let sites = manifest.sites.iter().map(|site| (site.name.clone(), site.processors, None));
        let grid = Grid::of_members(sites).map_err(|error| wrong(error.to_string()))?;
        let threshold = Threshold::new(manifest.threshold_percent)
            .ok_or_else(|| wrong(format!("the threshold is {} %", manifest.threshold_percent)))?;
        let strategy: Option<StrategySpec> = manifest.strategy.parse().ok();
        let exchanges =
            strategy.is_none_or(|spec| !matches!(spec.strategy, Strategy::Local | Strategy::Broker(_)));
        let mut builder = LifeBuilder::new(&grid, threshold, exchanges, JobId(args.job));
        if strategy.is_some_and(|spec| spec.ideal) {
            builder = builder.of_reference();
        }
        for event in directory.events()? {
            builder.observe(&event.map_err(DirectoryError::from)?);
        }
        let Some(life) = builder.finish() else { return Err(missing(&directory, args.job)?) };
        let faults = directory.metrics().ok().and_then(|metrics| metrics.get("faults").cloned());
        let twice = faults.as_ref().and_then(|faults| faults.get("jobs_that_may_have_run_twice")?.as_array());
        let may_have_run_twice = twice.is_some_and(|jobs| jobs.iter().any(|job| *job == args.job));
        let ideal = match &args.ideal {
            Some(path) => Some(Ideal::of(path, manifest, &life)?),
            None => None,
        };
        // The baselines have no ideal.
        let has_ideal = || format!("ideal/{}", manifest.strategy).parse::<StrategySpec>().is_ok();
        let referenced = strategy.is_some_and(|spec| {
            !spec.ideal && spec.strategy != Strategy::Local && !is_a_command(&spec.strategy)
        }) && has_ideal();
        let ideal_hint = (ideal.is_none() && referenced).then(|| {
            let again = format!("{}-ideal", args.directory.display());
            format!(
                "what the ideal does with it: run\n  {} --strategy ideal/{} --out {again}\n  and give --ideal {again}",
                repeatable(&manifest.command),
                manifest.strategy,
            )
        });
        let strategy = manifest.strategy.clone();
        Ok(Explained { strategy, life, may_have_run_twice, ideal, ideal_hint, grid })
    }

    fn text(&self) -> String {
        let life = &self.life;
        let name = |site| self.grid.site(site).name.clone();
        let home = life.home.map_or("no site".to_string(), name);
        let class = life.class.map_or(String::new(), |class| format!(", class {} there", class.letter()));
        let mut text = format!(
            "job {}: {} processors for at most {} s, submitted at {} s at {}; home {home}{class}; strategy {}\n",
            life.job,
            life.processors,
            life.requested,
            life.submit,
            name(life.origin),
            self.strategy,
        );
        text += &match (life.start, life.end) {
            (Some((start, site)), end) => format!(
                "waited {}, started at {start} s at {} after {} changes of site{}\n",
                span(start.since(life.submit)),
                name(site),
                life.hops,
                end.map_or(String::new(), |end| format!(", ran {}", span(end.since(start)))),
            ),
            (None, _) => "did not start before the log ended\n".to_string(),
        };
        if life.interrupted + life.taken_over > 0 {
            text += &format!(
                "crashes interrupted it {}, and it was taken over {}{}\n",
                times(life.interrupted),
                times(life.taken_over),
                match (life.ends > 1, self.may_have_run_twice) {
                    (true, _) => "; it ran twice",
                    (false, true) => "; it may have run twice",
                    (false, false) => "",
                }
            );
        }
        text += "\nWhat happened\n";
        let mut steps = Table::new(["time, s", "line", "event"]).with_left(2);
        for step in &life.steps {
            steps.push([step.at.to_string(), step.line.to_string(), step.text.clone()]);
        }
        text += &steps.text();
        if !life.waits.is_empty() {
            text += "\nWhy it waited\n";
            let mut waits =
                Table::new(["from, s", "to, s", "length, s", "share", "lines", "because"]).with_left(5);
            let all: Span = life.waits.iter().map(|wait| wait.length()).sum();
            for wait in &life.waits {
                let share = wait.length().as_secs_f64() / all.as_secs_f64();
                waits.push([
                    wait.from.to_string(),
                    wait.to.to_string(),
                    wait.length().to_string(),
                    format!("{:.1} %", 100.0 * share),
                    format!("{}-{}", wait.lines.0, wait.lines.1),
                    wait.cause.text(&self.grid),
                ]);
            }
            text += &waits.text();
        }
        for refusals in &life.refusals {
            let reason = refusals.reason.name().replace('_', " ");
            text += &format!(
                "refused meanwhile: {} asked {} in vain ({reason}), {} with too few processors for this job; first at \
                 line {}\n",
                name(refusals.thief),
                times(refusals.count),
                times(refusals.too_small),
                refusals.line
            );
        }
        if !life.messages_known {
            text += "the log has no events about single messages: a lost message would not be seen above\n";
        }
        if let Some(ideal) = &self.ideal {
            text += &match (ideal.start, &ideal.site, ideal.later) {
                (Some(start), Some(site), Some(later)) => format!(
                    "\nthe ideal run starts it at {start} s at {site}: {} s {} than here\n",
                    number(later.as_secs_f64().abs()),
                    if later < Span::ZERO { "later" } else { "earlier" }
                ),
                (Some(start), Some(site), None) => {
                    format!("\nthe ideal run starts it at {start} s at {site}\n")
                }
                _ => "\nthe ideal run does not start it\n".to_string(),
            };
        }
        if let Some(hint) = &self.ideal_hint {
            text += &format!("\n{hint}\n");
        }
        text
    }
}

impl Ideal {
    fn of(path: &Path, run: &Manifest, life: &Life) -> Result<Ideal, ExplainError> {
        let directory = ResultDirectory::open(path, limits::of_results())?;
        let ideal = directory.manifest();
        let wrong = |reason: String| ExplainError::NotIdeal { path: path.to_path_buf(), reason };
        if !ideal.strategy.parse::<StrategySpec>().is_ok_and(|spec| spec.ideal) {
            return Err(wrong(format!("it is a run of {} and no ideal", ideal.strategy)));
        }
        let differs =
            |what: &str, here: &str, there: &str| wrong(format!("its {what} is {there}, here it is {here}"));
        if ideal.workload != run.workload {
            return Err(differs("workload", &run.workload, &ideal.workload));
        }
        if ideal.sites != run.sites {
            return Err(differs("grid", &sizes(run), &sizes(ideal)));
        }
        let row = find(&directory, life.job.0)?;
        let row = row.filter(|row| row.submit == life.submit && row.processors == life.processors);
        let Some(row) = row else { return Err(missing(&directory, life.job.0)?) };
        Ok(Ideal {
            site: row.site.map(|site| directory.manifest().site_name(site)),
            start: row.start,
            later: life.start.zip(row.start).map(|((start, _), ideal)| start.since(ideal)),
        })
    }
}

/// The sites of a run in words.
fn sizes(manifest: &Manifest) -> String {
    let sites = manifest.sites.iter().map(|site| format!("{} {}", site.name, site.processors));
    sites.collect::<Vec<_>>().join(", ")
}

fn times(count: impl Into<u64>) -> String {
    match count.into() {
        0 => "never".to_string(),
        1 => "once".to_string(),
        count => format!("{count} times"),
    }
}

/// Flags of a command line that the ideal run has other values for, or no use for. Each has a value.
const REPLACED: [&str; 7] =
    ["--out", "--strategy", "--clock", "--ensemble", "--delay-margin", "--port", "--calibration-tolerance"];

/// The command line of a run as one of `simulate`, without the flags that are replaced.
fn repeatable(command: &str) -> String {
    let mut quoted = false;
    // Blanks inside quotes belong to a word.
    let words = command.split(|letter: char| {
        quoted ^= letter == '\'';
        letter == ' ' && !quoted
    });
    let mut kept = Vec::new();
    let mut skip = false;
    for word in words {
        let name = word.split('=').next().unwrap_or(word);
        if !std::mem::take(&mut skip) {
            if REPLACED.contains(&name) {
                skip = !word.contains('=');
            } else {
                kept.push(word);
            }
        }
    }
    kept.join(" ").replacen("stealgrid run", "stealgrid simulate", 1)
}

fn find(directory: &ResultDirectory, job: u64) -> Result<Option<JobRow>, DirectoryError> {
    directory.jobs()?.find(|row| row.as_ref().map_or(true, |row| row.job.0 == job)).transpose()
}

/// Why a job is not in the events.
fn missing(directory: &ResultDirectory, job: u64) -> Result<ExplainError, DirectoryError> {
    if find(directory, job)?.is_some_and(|row| row.state.ends_with("REJECTED")) {
        return Ok(ExplainError::Rejected { job });
    }
    let mut range: Option<(u64, u64)> = None;
    for row in directory.jobs()? {
        let id = row?.job.0;
        range = Some(range.map_or((id, id), |(least, most)| (least.min(id), most.max(id))));
    }
    let range = range.map_or("here none".to_string(), |(least, most)| format!("here {least} to {most}"));
    Ok(ExplainError::NoSuchJob { job, directory: directory.path().to_path_buf(), range })
}

fn span(span: Span) -> String {
    let seconds = span.as_secs_f64();
    if seconds < 3600.0 { format!("{span} s") } else { format!("{span} s ({})", clock(seconds)) }
}

#[cfg(test)]
mod tests {
    use super::repeatable;

    #[test]
    fn replaced_flags_are_left_out_with_their_values() {
        let command =
            "stealgrid run 'my file.toml' --out 'a b' --clock=scaled:5 --port 4000 --seed 7 --strategy st:75";
        assert_eq!(repeatable(command), "stealgrid simulate 'my file.toml' --seed 7");
    }
}
