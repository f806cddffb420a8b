//! `stealgrid compare`: whether two result directories hold the same run, job for job and event for event.
//!
//! Jobs are compared in [`jobs`], events in [`analysis::compare::events`], numbers in [`metrics`]. Everything is
//! read as a stream; how it is shown is in `show`. Whether a real run is one of an experiment is told in `with`.

pub mod jobs;
pub mod metrics;
mod page;
mod show;
mod sites;
mod with;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

pub use analysis::compare::events::{EventAgreement, EventComparison, Side, Strictness, streams};
use clap::{Args, ValueEnum};
use experiments::exit;
use experiments::folder::NoPlace;
use experiments::kind;
use experiments::limits;
use experiments::progress::Progress;
use experiments::terminal::{say, say_folded};
use outputs::{DirectoryError, EVENTS, JobRow, Manifest, ResultDirectory, Status};
use report::Format;
use serde::Serialize;

use self::jobs::JobsCompared;
use self::metrics::MetricRow;
use self::sites::Sites;

/// Say whether two result directories hold the same run, or whether a real run could be one of an experiment.
///
/// Jobs must agree in submission, width, site, start, end and state; events as --events says. Below the verdict
/// are the metrics of both runs with their differences. With --with, a run by the wall clock is held against
/// simulations of that experiment, as `stealgrid run` does with its own.
///
/// Exit codes: 0 the same, 2 usage, 3 a directory is unreadable or contradicts itself, 5 different, 6 the run was too late
/// to say (--with).
#[derive(Clone, Debug, Args)]
pub struct CompareArgs {
    /// Result directory of the first run
    #[arg(value_name = "DIR1")]
    first: PathBuf,

    /// Result directory of the second run
    #[arg(value_name = "DIR2", required_unless_present = "with")]
    second: Option<PathBuf>,

    /// Hold the first run against simulations of this experiment
    #[arg(long, value_name = "EXPERIMENT.toml", conflicts_with_all = ["second", "events"])]
    with: Option<PathBuf>,

    /// Simulations that it is held against [default: run.ensemble of the experiment]
    #[arg(long, value_name = "N", requires = "with")]
    ensemble: Option<usize>,

    /// How event logs must agree: exact, order-per-site, none; not given: exact, if both directories have one
    #[arg(long, value_enum)]
    events: Option<Events>,

    /// Write both runs as one page, with their schedules on one axis
    #[arg(long, value_name = "FILE.html", conflicts_with = "with")]
    page: Option<PathBuf>,

    /// How the result is printed: terminal, markdown, json, csv (the metrics)
    #[arg(long, default_value = "terminal")]
    format: Format,
}

/// How event logs are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Events {
    /// The same events in the same order
    Exact,
    /// The same events of each site in the same order; sites may come in another order
    OrderPerSite,
    /// Not at all
    None,
}

/// Two runs side by side.
#[derive(Debug, Serialize)]
struct Compared {
    directories: [PathBuf; 2],
    verdict: Verdict,
    /// What is said of the runs and differs: name, first, second.
    described_differently: Vec<(String, String, String)>,
    sites: Sites,
    jobs: JobsCompared,
    events: EventsCompared,
    /// What could not be compared, and why.
    not_compared: Vec<String>,
    /// Where a directory contradicts itself.
    damaged: Vec<String>,
    metrics: Vec<MetricRow>,
    /// Both runs, and their jobs if a page is drawn of them.
    #[serde(skip)]
    runs: [ResultDirectory; 2],
    #[serde(skip)]
    rows: [Vec<JobRow>; 2],
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum EventsCompared {
    Not,
    By { order: Strictness, agreement: Box<EventAgreement> },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Verdict {
    /// Everything that was compared is the same.
    Identical,
    /// Something is not.
    Different,
    /// A directory contradicts itself: nothing can be said of its run.
    Damaged,
}

/// Runs the command.
///
/// # Errors
/// If the result cannot be printed.
pub fn command(args: &CompareArgs) -> anyhow::Result<u8> {
    let second = match (&args.second, &args.with) {
        (Some(second), _) => second,
        (None, Some(experiment)) => {
            return with::command(&args.first, experiment, args.ensemble, args.format);
        }
        (None, None) => unreachable!("one of them is required"),
    };
    let compared = match Compared::of(args, second) {
        Ok(compared) => compared,
        Err(error) => {
            let wrong = [&args.first, second].into_iter().find_map(|path| kind::no_run(path));
            eprintln!("error: failed to {}", wrong.unwrap_or_else(|| error.to_string()));
            return Ok(exit::INPUT);
        }
    };
    if let Some(file) = &args.page {
        let page = page::page(&compared);
        if page::is_of_others(file) {
            eprintln!(
                "error: {} is no page of this program; it was left as it is, choose another name",
                file.display()
            );
            return Ok(exit::INPUT);
        }
        outputs::replace::write(file, |to| to.write_all(page.as_bytes()))
            .map_err(|cause| NoPlace::of_file(file, cause, "--page"))?;
    }
    let rendered = compared.render(args.format);
    if args.format == Format::Terminal { say_folded(&rendered) } else { say(&rendered) }?;
    Ok(match compared.verdict {
        Verdict::Identical => exit::DONE,
        Verdict::Different => exit::OUT_OF_TOLERANCE,
        Verdict::Damaged => exit::INPUT,
    })
}

impl Compared {
    fn of(args: &CompareArgs, second: &Path) -> Result<Compared, DirectoryError> {
        let [left, right] =
            [args.first.as_path(), second].map(|path| ResultDirectory::open(path, limits::of_results()));
        let (left, right) = (left?, right?);
        let mut not_compared = Vec::new();
        let sites = Sites::of_manifests(left.manifest(), right.manifest());
        let mut unfinished = [Vec::new(), Vec::new()];
        for (rows, directory) in unfinished.iter_mut().zip([&left, &right]) {
            match directory.unfinished() {
                Ok(found) => *rows = found,
                Err(DirectoryError::NoEvents { .. }) => not_compared.push(format!(
                    "jobs that had not ended: {} has no {EVENTS}, which would tell of them",
                    directory.path().display()
                )),
                Err(error) => return Err(error),
            }
        }
        let left_over = unfinished.each_ref().map(|rows| rows.len() as u64);
        let [of_first, of_second] = unfinished;
        let mut rows = [Vec::new(), Vec::new()];
        let [kept_first, kept_second] = &mut rows;
        let keep = |kept: &mut Vec<JobRow>, row: &Result<JobRow, DirectoryError>| {
            if let (true, Ok(row)) = (args.page.is_some(), row) {
                kept.push(row.clone());
            }
        };
        let jobs = JobsCompared::of(
            &sites,
            left.jobs()?.chain(of_first.into_iter().map(Ok)).inspect(|row| keep(kept_first, row)),
            right
                .jobs()?
                .chain(of_second.into_iter().map(Ok))
                .map(|row| Ok(sites.common(row?)))
                .inspect(|row| keep(kept_second, row)),
        )?;
        let order = match args.events {
            Some(Events::Exact) => Some(Strictness::Exact),
            Some(Events::OrderPerSite) => Some(Strictness::PerSite),
            Some(Events::None) => None,
            None => {
                for directory in [&left, &right].into_iter().filter(|directory| !directory.has_events()) {
                    not_compared.push(format!(
                        "events: {} has no {EVENTS}; runs with --no-events write none",
                        directory.path().display()
                    ));
                }
                if !sites.same_numbers {
                    not_compared.push(
                        "events: they name sites by number, and the runs have other sites or orders"
                            .to_string(),
                    );
                }
                (left.has_events() && right.has_events() && sites.same_numbers).then_some(Strictness::Exact)
            }
        };
        let events = match order {
            None => EventsCompared::Not,
            Some(order) => {
                let mut progress = Progress::of("events", left.manifest().events);
                let first = left.events()?.inspect(|_| progress.step());
                EventsCompared::By { order, agreement: Box::new(streams(first, right.events()?)?) }
            }
        };
        if let EventsCompared::By { agreement, .. } = &events
            && !agreement.messages_compared
        {
            let without = usize::from(agreement.about_messages[1] == 0);
            not_compared.push(format!(
                "single messages: {} has no events about them (outputs.message_events = false), the other has {}",
                [&left, &right][without].path().display(),
                agreement.about_messages[1 - without]
            ));
        }
        let mut damaged = Vec::new();
        for (side, directory) in [&left, &right].into_iter().enumerate() {
            let of_events = match &events {
                EventsCompared::By { agreement, .. } => Some(agreement.events[side]),
                EventsCompared::Not => None,
            };
            damaged.extend(contradictions(directory, jobs.rows[side] - left_over[side], of_events));
        }
        let same = sites.same()
            && jobs.identical()
            && match &events {
                EventsCompared::Not => true,
                EventsCompared::By { order, agreement } => agreement.identical(*order),
            };
        Ok(Compared {
            directories: [args.first.clone(), second.to_path_buf()],
            verdict: match (damaged.is_empty(), same) {
                (false, _) => Verdict::Damaged,
                (true, true) => Verdict::Identical,
                (true, false) => Verdict::Different,
            },
            described_differently: descriptions(left.manifest(), right.manifest()),
            sites,
            jobs,
            events,
            not_compared,
            damaged,
            metrics: metrics::rows(&left.metrics()?, &right.metrics()?),
            runs: [left, right],
            rows,
        })
    }
}

/// Where a directory has not what its manifest says.
fn contradictions(directory: &ResultDirectory, rows: u64, events: Option<u64>) -> Vec<String> {
    let manifest = directory.manifest();
    let ended = ["completed", "walltime_reached", "rejected"];
    let expected: usize = ended.iter().filter_map(|state| manifest.jobs.get(*state)).sum();
    let mut found = Vec::new();
    if rows != expected as u64 {
        found.push(format!(
            "{}/jobs.csv has {rows} jobs, its manifest says {expected}: it was cut off or changed",
            directory.path().display()
        ));
    }
    if let Some(events) = events.filter(|&events| events != manifest.events) {
        found.push(format!(
            "{}/{EVENTS} has {events} events, its manifest says {}: it was cut off or changed",
            directory.path().display(),
            manifest.events
        ));
    }
    found
}

/// What the manifests say differently.
fn descriptions(left: &Manifest, right: &Manifest) -> Vec<(String, String, String)> {
    let fields = |manifest: &Manifest| {
        let status = match &manifest.status {
            Status::Complete => "complete".to_string(),
            Status::Partial(reason) => format!("partial: {reason}"),
            Status::NotMeasured(reason) => format!("not measured: {reason}"),
        };
        let versions: Vec<String> =
            manifest.versions.iter().map(|(program, version)| format!("{program} {version}")).collect();
        let states = manifest.jobs.iter().filter(|(_, count)| **count > 0);
        let states: Vec<String> =
            states.map(|(state, count)| format!("{count} {}", state.replace('_', " "))).collect();
        [
            ("experiment", manifest.experiment.clone()),
            ("workload", manifest.workload.clone()),
            ("strategy", manifest.strategy.clone()),
            ("local", manifest.local.clone().unwrap_or("none".to_string())),
            ("network", manifest.network.clone()),
            ("seed", manifest.seed.to_string()),
            ("driver", manifest.driver.clone()),
            ("clock", manifest.clock.clone()),
            ("status", status),
            ("states", states.join(", ")),
            ("versions", versions.join(", ")),
        ]
    };
    let of_fields = fields(left)
        .into_iter()
        .zip(fields(right))
        .map(|((name, left), (_, right))| (name.to_string(), left, right));
    let (of_left, of_right) = (&left.provenance.switches, &right.provenance.switches);
    let keys: BTreeSet<&String> = of_left.keys().chain(of_right.keys()).collect();
    let value =
        |of: &BTreeMap<String, String>, key: &String| of.get(key).cloned().unwrap_or("not said".into());
    // The strategy stands there already.
    let switches = keys.into_iter().filter(|key| *key != "strategy.name");
    let of_switches = switches.map(|key| (key.clone(), value(of_left, key), value(of_right, key)));
    of_fields.chain(of_switches).filter(|(_, left, right)| left != right).collect()
}
