//! `stealgrid serve`: the page of a run that has ended.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use node::telemetry::LogArgs;
use outputs::orders::Given;
use outputs::{DirectoryError, EVENTS, JobRow, ResultDirectory};
use scheduler::{Event, Grid, JobSpec, Labels, Threshold, Time, TimedJob};
use workload::limits::{Exceeded, Limit};

use super::live::{About, AboutSite, Live};
use super::replay::Replay;
use super::{Place, Server};
use crate::audit::Audit;
use crate::drive::progress::Progress;
use crate::exit;
use crate::interrupt::Interrupt;
use crate::limits;
use crate::terminal::LOGGED;

/// Show a run that has ended as a page in the browser, event by event.
///
/// Needs the event log, which `simulate` and `run` write unless --no-events is given. Serves until it is stopped.
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
    let run = match Run::read(&args.directory) {
        Ok(run) => run,
        Err(error) => return refused(&error),
    };
    let interrupt = Interrupt::saying("stopping")?;
    let (first, last) = match (run.events.first(), run.events.last()) {
        (Some(first), Some(last)) => (first.at, last.at),
        _ => (Time::ZERO, Time::ZERO),
    };
    let replay = Arc::new(Replay::new(first, last));
    let server = match Server::replaying(&Place::new(&args.serve, &args.serve_host), Arc::clone(&replay)) {
        Ok(server) => server,
        Err(error) => {
            eprintln!("error: {error:#}");
            return Ok(exit::INPUT);
        }
    };
    crate::terminal::say(&format!("open http://{} (Ctrl-C stops)\n", server.address()))?;
    replay.play(&run.events, &run.orders, &server.shown, || run.live(), || interrupt.is_set());
    Ok(exit::DONE)
}

/// What is read of a directory.
struct Run {
    about: About,
    grid: Grid,
    threshold: Threshold,
    jobs: Vec<TimedJob>,
    orders: Vec<Given>,
    events: Vec<Event>,
}

impl Run {
    fn read(path: &Path) -> Result<Run, DirectoryError> {
        let directory = ResultDirectory::open(path, limits::of_results())?;
        let manifest = directory.manifest();
        let wrong = |reason: String| DirectoryError::Content { path: path.join("manifest.json"), reason };
        let sites = manifest.sites.iter().map(|site| (site.name.clone(), site.processors, None));
        let grid = Grid::of_members(sites).map_err(|error| wrong(error.to_string()))?;
        let threshold = Threshold::new(manifest.threshold_percent)
            .ok_or_else(|| wrong(format!("threshold_percent is {}", manifest.threshold_percent)))?;
        let events = kept(&directory)?;
        let rows = directory.jobs()?.collect::<Result<Vec<JobRow>, _>>()?;
        let jobs: Vec<TimedJob> = rows.iter().map(job).collect();
        let about = About {
            name: manifest.experiment.clone(),
            strategy: manifest.strategy.clone(),
            network: manifest.network.clone(),
            clock: manifest.clock.clone(),
            factor: None,
            jobs: jobs.len(),
            sites: AboutSite::all(&grid),
            orders: false,
            replay: true,
        };
        let orders = manifest.orders.clone();
        Ok(Run { about, grid, threshold, jobs, orders, events })
    }

    fn live(&self) -> (Live, Audit) {
        let live = Live::new(self.about.clone(), &self.grid, self.threshold, &self.jobs);
        (live, Audit::new(&self.grid, &self.jobs))
    }
}

/// All events, which are kept to be shown in any order of time: as many as a log may have rows.
fn kept(directory: &ResultDirectory) -> Result<Vec<Event>, DirectoryError> {
    let most = limits::of_results().rows;
    let mut events = Vec::new();
    let mut progress = Progress::of("events read", directory.manifest().events);
    for event in directory.events()? {
        progress.step();
        if events.len() as u64 >= most {
            let exceeded = Exceeded { limit: Limit::Rows, most, line: most + 1 };
            return Err(DirectoryError::Limit { path: directory.path().join(EVENTS), exceeded });
        }
        events.push(event?);
    }
    Ok(events)
}

/// A job as far as the page needs it; one that did not run counts as one that needs no time.
fn job(row: &JobRow) -> TimedJob {
    let spec = JobSpec {
        id: row.job,
        submit: row.submit,
        processors: row.processors,
        requested: row.requested,
        labels: Labels::UNKNOWN,
        origin: row.origin,
        payload: 0,
    };
    let run_time = row.start.zip(row.end).map_or(scheduler::Span::ZERO, |(start, end)| end.since(start));
    TimedJob { spec, run_time }
}
