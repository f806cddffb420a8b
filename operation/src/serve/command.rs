//! `stealgrid serve`: the page of a run that has ended.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use experiments::exit;
use experiments::interrupt::Interrupt;
use experiments::limits;
use experiments::progress::Progress;
use experiments::terminal::LOGGED;
use node::telemetry::LogArgs;
use outputs::{DirectoryError, EVENTS, EventReader, JobRow, ResultDirectory};
use scheduler::{Grid, JobSpec, Labels, Threshold, TimedJob};
use workload::limits::{Exceeded, Limit};

use super::live::{About, AboutSite, Live};
use super::replay::{Framer, Replay};
use super::{Place, Server, Shown, opened};
use crate::audit::Audit;

/// Events that are made into frames at once: some milliseconds of work, during which nobody else reads.
const EVENTS_AT_ONCE: usize = 4096;
/// How often it is looked whether to stop.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Show a run that has ended as a page in the browser, event by event.
///
/// The page is there at once, and says how much of the run was read. Each browser has a clock of its own. Needs the event log, which `simulate` and `run` write unless --no-events is given. Serves until it is stopped.
///
/// Exit codes: 0 stopped, 2 usage, 3 a directory that is unreadable or has no events, or an address that cannot be
/// listened on.
#[derive(Clone, Debug, Args)]
pub struct ServeArgs {
    /// Result directory of the run
    #[arg(value_name = "DIR")]
    directory: PathBuf,

    /// Where to serve the page
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    serve: String,

    /// A further name by which the page may be opened; may be given several times
    ///
    /// Always allowed are addresses, localhost, names without a dot, and the one that --serve has.
    #[arg(long, value_name = "NAME", env = "STEALGRID_SERVE_HOST", value_delimiter = ',')]
    serve_host: Vec<String>,

    /// How this process logs.
    #[command(flatten)]
    log: LogArgs,
}

/// Runs the command.
///
/// # Errors
/// If something fails that should not.
pub fn command(args: &ServeArgs) -> anyhow::Result<u8> {
    let _telemetry = args.log.start(LOGGED)?;
    let refused = |error: &dyn std::fmt::Display| {
        eprintln!("error: failed to {error}");
        Ok(exit::INPUT)
    };
    let log = ResultDirectory::open(&args.directory, limits::of_results())
        .and_then(|directory| Ok((directory.events()?, directory)));
    let (events, directory) = match log {
        Ok(log) => log,
        Err(error) => return refused(&error),
    };
    let interrupt = Interrupt::saying("stopping")?;
    let lines = directory.manifest().events;
    let replay = Arc::new(Replay::new(lines));
    let server = match Server::replaying(&Place::new(&args.serve, &args.serve_host), Arc::clone(&replay)) {
        Ok(server) => server,
        Err(error) => {
            eprintln!("error: {error:#}");
            return Ok(exit::INPUT);
        }
    };
    // At once: the page says how much was read.
    experiments::terminal::say(&format!("open {} (Ctrl-C stops)\n", opened(server.address())))?;
    if let Err(error) = read(&directory, events, &replay, &server.shown, || interrupt.is_set()) {
        return refused(&error);
    }
    while !interrupt.is_set() {
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(exit::DONE)
}

/// Reads a directory as frames, and says how far it is.
fn read(
    directory: &ResultDirectory,
    events: EventReader,
    replay: &Replay,
    shown: &Shown,
    stop: impl Fn() -> bool,
) -> Result<(), DirectoryError> {
    let manifest = directory.manifest();
    let (live, audit) = before(directory)?;
    let mut frames = Framer::new(replay, shown, live, audit, &manifest.orders);
    let mut progress = Progress::of("lines of the event log", manifest.events);
    // Messages are most of a log, and nothing of them is shown.
    let mut events = events.without_messages();
    let most = limits::of_results().rows;
    let mut some = Vec::with_capacity(EVENTS_AT_ONCE);
    loop {
        let event = events.next().transpose()?;
        if events.line() > most && event.is_some() {
            let exceeded = Exceeded { limit: Limit::Rows, most, line: events.line() };
            return Err(DirectoryError::Limit { path: directory.path().join(EVENTS), exceeded });
        }
        let is_last = event.is_none();
        some.extend(event);
        if is_last || some.len() >= EVENTS_AT_ONCE {
            frames.take(&some, events.line());
            some.clear();
            progress.set(events.line());
            if stop() {
                return Ok(());
            }
        }
        if is_last {
            frames.finish();
            return Ok(());
        }
    }
}

/// The run of a directory before its first event, and who judges it.
fn before(directory: &ResultDirectory) -> Result<(Live, Audit), DirectoryError> {
    let manifest = directory.manifest();
    let wrong = |reason: String| {
        let path = directory.path().join("manifest.json");
        DirectoryError::Content { path, reason }
    };
    let sites = manifest.sites.iter().map(|site| (site.name.clone(), site.processors, None));
    let grid = Grid::of_members(sites).map_err(|error| wrong(error.to_string()))?;
    let threshold = Threshold::new(manifest.threshold_percent)
        .ok_or_else(|| wrong(format!("threshold_percent is {}", manifest.threshold_percent)))?;
    let jobs =
        directory.jobs()?.map(|row| Ok(job(&row?))).collect::<Result<Vec<TimedJob>, DirectoryError>>()?;
    let about = About {
        name: manifest.experiment.clone(),
        strategy: manifest.strategy.clone(),
        network: manifest.network.clone(),
        clock: manifest.clock.clone(),
        factor: None,
        jobs: jobs.len(),
        sites: AboutSite::all(&grid),
        users: jobs.iter().any(|job| job.spec.labels.user >= 0),
        orders: false,
        starts: false,
        replay: true,
        span: [manifest.origin.as_micros() / 1000, manifest.until.as_micros() / 1000],
    };
    let live = Live::new(about, &grid, threshold, &jobs);
    Ok((live, Audit::new(&grid, &jobs)))
}

/// A job as far as the page needs it; one that did not run counts as one that needs no time.
fn job(row: &JobRow) -> TimedJob {
    let spec = JobSpec {
        id: row.job,
        submit: row.submit,
        processors: row.processors,
        requested: row.requested,
        labels: Labels { user: row.user, ..Labels::UNKNOWN },
        origin: row.origin,
        payload: 0,
    };
    let run_time = row.start.zip(row.end).map_or(scheduler::Span::ZERO, |(start, end)| end.since(start));
    TimedJob { spec, run_time }
}
