//! `stealgrid explain`: the life of one job, and why it waited when it did.
//!
//! Told from the event log alone by [`analysis::life`]; this module opens the files and finds words.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use analysis::life::{Life, LifeBuilder};
use clap::Args;
use experiments::exit;
use experiments::experiment::Experiment;
use experiments::experiment::file::Written;
use experiments::experiment::jobs::{self, Jobs};
use experiments::experiment::resolved::EXPERIMENT;
use experiments::kind;
use experiments::limits;
use experiments::progress::Progress;
use experiments::terminal::{COLUMNS, note, say};
use outputs::table::{Table, folded};
use outputs::{DirectoryError, JobRow, Manifest, ResultDirectory};
use report::quantity::{clock, counted, number};
use scheduler::time::seconds;
use scheduler::{Class, Grid, JobId, JobSpec, Labels, Span, StrategySpec, Threshold, Time, TimedJob};
use serde::Serialize;

/// Say why a job waited: how long for each cause, what let it start, and what the ideal run did with it.
///
/// Needs the event log, which `simulate` and `run` write unless --no-events is given. --full tells its whole life: every
/// event, every interval of the wait, every request that was refused meanwhile.
///
/// Exit codes: 0 done, 2 usage, 3 no such job, or a directory that is unreadable or has no events.
#[derive(Clone, Debug, Args)]
pub struct ExplainArgs {
    /// Result directory of the run
    #[arg(value_name = "DIR")]
    directory: PathBuf,

    /// Number of the job [default: the one that waited longest]
    #[arg(value_name = "JOB")]
    job: Option<u64>,

    /// Result directory of the ideal run, to see what it did with the job [default: DIR-ideal if it is there]
    #[arg(long, value_name = "DIR")]
    ideal: Option<PathBuf>,

    /// Tell every event, every interval of the wait, and every refusal
    #[arg(long)]
    full: bool,

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

/// Causes that are shown without --full: with the rest in one line they fit below the job at a glance.
const CAUSES: usize = 3;

/// The switch of a manifest that says that jobs shared nodes.
const NODES: &str = "grid.sites.nodes";
/// The switch of a manifest that says that sites knew some others only.
const VIEW: &str = "protocol.view";

/// Letters of a hint that stands below the answer: about three lines.
const HINT: usize = 3 * COLUMNS;

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
    #[serde(rename = "start_s", with = "seconds")]
    start: Option<Time>,
    /// Wait of the run less that of the ideal.
    #[serde(rename = "later_s", with = "seconds")]
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
    #[error("find the job that waited longest in {}: none has started; name one", directory.display())]
    NoneStarted { directory: PathBuf },
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
            let wrong = kind::no_run(&args.directory);
            eprintln!("error: failed to {}", wrong.unwrap_or_else(|| error.to_string()));
            return Ok(exit::INPUT);
        }
    };
    match args.format {
        Shown::Terminal if args.full => say(&explained.in_full())?,
        Shown::Terminal => say(&explained.in_short())?,
        Shown::Json => say(&format!("{}\n", serde_json::to_string_pretty(&explained)?))?,
    }
    Ok(exit::DONE)
}

impl Explained {
    fn of(args: &ExplainArgs) -> Result<Explained, ExplainError> {
        let directory = ResultDirectory::open(&args.directory, limits::of_results())?;
        let manifest = directory.manifest();
        let asked = args.job.map_or_else(|| longest(&directory), Ok)?;
        let wrong =
            |reason: String| ExplainError::Manifest { path: args.directory.join("manifest.json"), reason };
        let sites = manifest.sites.iter().map(|site| (site.name.clone(), site.processors, None));
        let grid = Grid::of_members(sites).map_err(|error| wrong(error.to_string()))?;
        let threshold = Threshold::new(manifest.threshold_percent)
            .ok_or_else(|| wrong(format!("the threshold is {} %", manifest.threshold_percent)))?;
        let strategy: StrategySpec = manifest.strategy.parse().map_err(|error| wrong(format!("{error}")))?;
        let mut jobs = workload(&directory)?;
        let grid = match on_nodes(&args.directory, manifest) {
            None => grid,
            Some(Ok((experiment, read))) if experiment.grid.sizes() == grid.sizes() => {
                // What fits a node is a matter of what jobs ask for, of which results say nothing.
                let labels: BTreeMap<JobId, Labels> =
                    read.jobs.iter().map(|job| (job.spec.id, job.spec.labels)).collect();
                jobs.iter_mut()
                    .for_each(|job| job.spec.labels = labels.get(&job.spec.id).copied().unwrap_or_default());
                Grid::clone(&experiment.grid)
            }
            Some(Ok(_)) => grid,
            Some(Err(reason)) => {
                note(&format!(
                    "where jobs share nodes, what fits these is not known, and causes look at places for tasks: failed to {reason}"
                ));
                grid
            }
        };
        if manifest.provenance.switches.contains_key(VIEW) && strategy.strategy.steal().is_some() {
            note(
                "sites knew some others only; who may take a job, and whose list it is in, is told here by the order of all sites",
            );
        }
        let spread = strategy.strategy.spread(grid.widths());
        let grid = grid.with_spread(spread);
        let mut builder = LifeBuilder::new(&grid, threshold, &strategy.strategy, &jobs, JobId(asked));
        if strategy.ideal {
            builder = builder.of_reference();
        }
        // Its name comes first, how it is switched after it.
        let local = manifest.local.as_deref().and_then(|local| local.split(' ').next()?.parse().ok());
        // A plan on processors says nothing of nodes that jobs share.
        let plans = strategy.strategy.nature().queues && !manifest.provenance.switches.contains_key(NODES);
        if let Some(local) = local.filter(|_| plans) {
            builder = builder.with_plans(local, &jobs);
        }
        let metrics = directory.metrics().ok();
        let faults =
            metrics.as_ref().and_then(|metrics| metrics.get("faults")).filter(|faults| !faults.is_null());
        // Where nothing fails, a job that has ended has no more to tell.
        let nothing_fails = metrics.is_some() && faults.is_none() && manifest.orders.is_empty();
        // How a job starts in parts is said by messages alone.
        let all = strategy.strategy.nature().coallocates;
        let events = directory.events()?;
        let mut events = if all { events } else { events.without_messages() };
        let mut progress = Progress::new(manifest.jobs.values().sum());
        while let Some(event) = events.next() {
            let event = event.map_err(DirectoryError::from)?;
            progress.event(&event.kind);
            if events.passed_messages() {
                builder.passed_messages();
            }
            builder.observe_line(events.line(), &event);
            let knows_messages = events.passed_messages() || builder.knows_messages();
            if nothing_fails && knows_messages && builder.has_ended() {
                break;
            }
        }
        drop(progress);
        let Some(life) = builder.finish() else { return Err(missing(&directory, asked)?) };
        let twice = faults.and_then(|faults| faults.get("jobs_that_may_have_run_twice")?.as_array());
        let may_have_run_twice = twice.is_some_and(|jobs| jobs.iter().any(|job| *job == asked));
        let beside = beside(&args.directory);
        let ideal = match &args.ideal {
            Some(path) => Some(Ideal::of(path, manifest, &life)?),
            // What stands there may be of another experiment, about which nobody asked.
            None => Ideal::of(&beside, manifest, &life).ok(),
        };
        let nature = strategy.strategy.nature();
        // The name of a strategy does not say which command decides.
        let referenced = !strategy.ideal && nature.talks && nature.has_ideal && !nature.external;
        let ideal_hint = (ideal.is_none() && referenced).then(|| {
            format!(
                "to see what the ideal does with it, first run\n  {} --strategy ideal/{} --out {}",
                repeatable(&manifest.command),
                manifest.strategy,
                beside.display(),
            )
        });
        let strategy = manifest.strategy.clone();
        Ok(Explained { strategy, life, may_have_run_twice, ideal, ideal_hint, grid })
    }

    /// The job, and how long it waited.
    fn beginning(&self, also: &str) -> String {
        let life = &self.life;
        let name = |site| self.grid.site(site).name.clone();
        let mut text = format!(
            "job {}: {} for at most {} s{}, submitted at {} s at {}; {also}\n",
            life.job,
            counted(life.processors, "processor"),
            life.requested,
            if life.shares_nodes { " on idle nodes" } else { "" },
            life.submit,
            name(life.origin),
        );
        text += &match (life.start.zip(life.site), life.end) {
            (Some((start, site)), end) => format!(
                "waited {}, started at {start} s at {}{}{}{}\n",
                span(start.since(life.submit)),
                name(site),
                match life.parts.iter().map(|part| name(part.site)).collect::<Vec<_>>() {
                    parts if parts.is_empty() => String::new(),
                    parts => format!(", with parts at {}", parts.join(", ")),
                },
                match life.hops {
                    0 => String::new(),
                    1 => " after a change of site".to_string(),
                    hops => format!(" after {hops} changes of site"),
                },
                end.map_or(String::new(), |end| format!(", ran {} s", end.since(start))),
            ),
            (None, _) => "did not start before the log ended\n".to_string(),
        };
        if let Some(planned) = &life.planned {
            let off = life.later_than_planned();
            text += &format!(
                "planned to start at {} s when it joined the queue there{}\n",
                planned.start,
                match off {
                    None => String::new(),
                    Some(Span::ZERO) => ", as it did".to_string(),
                    Some(off) if off > Span::ZERO => format!(": it started {off} s later"),
                    Some(off) => format!(": it started {} s earlier", -off),
                }
            );
        }
        if let Some((predicted, corrections)) = life.predicted() {
            // How long it ran says how much others slowed it down, too.
            let ran = life.start.zip(life.end).filter(|_| !life.shares_nodes);
            text += &format!(
                "predicted to run for {predicted} s{} when it joined the queue there{}{}\n",
                if life.shares_nodes { " on idle nodes" } else { "" },
                ran.map_or(String::new(), |(start, end)| {
                    let ran = end.since(start);
                    let off = number((ran.as_secs_f64() - predicted.as_secs_f64()).abs());
                    let way = if ran > predicted { "less" } else { "more" };
                    match ran == predicted {
                        true => ", as it did".to_string(),
                        false => format!(": {off} s {way} than it did"),
                    }
                }),
                match corrections {
                    0 => String::new(),
                    corrections => format!(", corrected {} while it ran", times(corrections)),
                }
            );
        }
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
        text
    }

    /// What most want to know.
    fn in_short(&self) -> String {
        let life = &self.life;
        let mut lines = vec![self.beginning(&self.strategy)];
        let totals = life.totals(&self.grid);
        let all: Span = totals.iter().map(|total| total.length).sum();
        let share = |length: Span| format!("{:.1} %", 100.0 * length.as_secs_f64() / all.as_secs_f64());
        let (shown, rest) = totals.split_at(totals.len().min(CAUSES));
        let mut table = Table::new(["", "", ""]).with_left(2).within(COLUMNS - 2);
        for total in shown {
            table.push([format!("{} s", total.length), share(total.length), total.text.clone()]);
        }
        if !rest.is_empty() {
            let length: Span = rest.iter().map(|total| total.length).sum();
            let causes = if rest.len() == 1 { "another cause" } else { "other causes" };
            table.push([format!("{length} s"), share(length), format!("{causes}; see --full")]);
        }
        if !shown.is_empty() {
            // What the columns are is plain from the line above.
            lines.extend(table.text().lines().skip(1).map(|line| format!("  {line}")));
        }
        if let Some(decided) = &life.decided {
            lines.push(format!("decided at {} s: {} (line {})", decided.at, decided.text, decided.line));
        }
        lines.extend(self.ideal.as_ref().map(Ideal::words));
        if let Some(hint) = &self.ideal_hint {
            // The command of a grid of many sites would hide what was said.
            let is_short = hint.len() <= HINT;
            let elsewhere = "--full has the command with which to see what the ideal does with it";
            lines.push(if is_short { hint.clone() } else { elsewhere.to_string() });
        }
        lines.iter().flat_map(|line| line.lines()).map(fold).collect()
    }

    /// Everything that is known.
    fn in_full(&self) -> String {
        let life = &self.life;
        let name = |site| self.grid.site(site).name.clone();
        let class = life.class.map_or(String::new(), |class| {
            let (letter, width) = (class.letter(), if class == Class::A { "wide" } else { "narrow" });
            format!(", where it is {width} (class {letter})")
        });
        let home = life.home.map(name).map_or("no site alone can hold it".to_string(), |home| {
            format!("the smallest site that can hold it, its home, is {home}{class}")
        });
        let also = format!("{home}; strategy {}", self.strategy);
        let mut text: String = self.beginning(&also).lines().map(fold).collect();
        text += "\nWhat happened\n";
        let mut steps = Table::new(["time, s", "line", "event"]).with_left(2).within(COLUMNS);
        for step in &life.steps {
            steps.push([step.at.to_string(), step.line.to_string(), step.text.clone()]);
        }
        text += &steps.text();
        if life.steps.iter().any(|step| step.text.contains("of class ")) {
            text += "(A: wide for the site and at home there, B: narrow and at home there, H: at home elsewhere)\n";
        }
        if !life.waits.is_empty() {
            text += "\nWhy it waited\n";
            let mut waits = Table::new(["from, s", "to, s", "length, s", "share", "lines", "because"])
                .with_left(5)
                .within(COLUMNS);
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
            text += &fold(&format!(
                "refused meanwhile: {} asked {} in vain ({reason}), {} with too few processors for this job; first at \
                 line {}",
                name(refusals.thief),
                times(refusals.count),
                times(refusals.too_small),
                refusals.line
            ));
        }
        if !life.messages_known {
            text += "the log has no events about single messages: a lost message would not be seen above\n";
        }
        if let Some(ideal) = &self.ideal {
            text += &format!("\n{}\n", ideal.words());
        }
        if let Some(hint) = &self.ideal_hint {
            text += &format!("\n{hint}\n");
        }
        text
    }
}

impl Ideal {
    fn words(&self) -> String {
        match (self.start, &self.site, self.later) {
            (Some(start), Some(site), Some(Span::ZERO)) => {
                format!("the ideal run starts it at {start} s at {site}, as here")
            }
            (Some(start), Some(site), Some(later)) => format!(
                "the ideal run starts it at {start} s at {site}: {} s {} than here",
                number(later.as_secs_f64().abs()),
                if later < Span::ZERO { "later" } else { "earlier" }
            ),
            (Some(start), Some(site), None) => format!("the ideal run starts it at {start} s at {site}"),
            _ => "the ideal run does not start it".to_string(),
        }
    }

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
            later: life.start.zip(row.start).map(|(start, ideal)| start.since(ideal)),
        })
    }
}

/// Where the ideal run of a result directory is looked for.
fn beside(directory: &Path) -> PathBuf {
    let name = directory.file_name().map_or_else(|| "out".into(), |name| name.to_string_lossy());
    directory.with_file_name(format!("{name}-ideal"))
}

/// A line with its end, in several lines if it is longer than a terminal is wide. Commands to paste stay whole.
fn fold(line: &str) -> String {
    match line.starts_with("  stealgrid ") || line.chars().count() <= COLUMNS {
        true => format!("{line}\n"),
        false => format!("{}\n", folded(line, COLUMNS)),
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

/// The experiment of a run on nodes that jobs share, and its jobs, or why they cannot be read. None if it was of no such nodes, by its manifest.
fn on_nodes(directory: &Path, manifest: &Manifest) -> Option<Result<(Experiment, Jobs), String>> {
    manifest.provenance.switches.get(NODES)?;
    let written = Written::load(&directory.join(EXPERIMENT)).map_err(|error| error.to_string());
    Some(written.and_then(|written| {
        let experiment = Experiment::resolve(&written).map_err(|error| error.to_string())?;
        let jobs = jobs::read(&experiment).map_err(|error| error.to_string())?;
        Ok((experiment, jobs))
    }))
}

/// The jobs of a run: those that ended, and of a run that left some, those that the log names.
fn workload(directory: &ResultDirectory) -> Result<Vec<TimedJob>, DirectoryError> {
    let mut jobs = BTreeMap::new();
    for row in directory.jobs()? {
        let row = row?;
        jobs.insert(row.job, row);
    }
    for row in directory.unfinished()? {
        jobs.entry(row.job).or_insert(row);
    }
    let job = |row: JobRow| {
        let JobRow { job: id, submit, processors, requested, origin, .. } = row;
        let spec = JobSpec { id, submit, processors, requested, labels: Labels::UNKNOWN, origin, payload: 0 };
        TimedJob { spec, run_time: Span::ZERO }
    };
    Ok(jobs.into_values().map(job).collect())
}

/// The job that waited longest of those that started, of equal ones the first of the log.
fn longest(directory: &ResultDirectory) -> Result<u64, ExplainError> {
    let mut found: Option<(Span, u64)> = None;
    for row in directory.jobs()? {
        let row = row?;
        let Some(start) = row.start else { continue };
        let (waited, id) = (start.since(row.submit), row.job.0);
        if found.is_none_or(|(longest, first)| waited > longest || waited == longest && id < first) {
            found = Some((waited, id));
        }
    }
    found
        .map(|(_, job)| job)
        .ok_or_else(|| ExplainError::NoneStarted { directory: directory.path().to_path_buf() })
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
