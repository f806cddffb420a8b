//! `stealgrid play`: a page on which an experiment is changed by sliders and simulated again at once.
//!
//! | request | for |
//! |---|---|
//! | `GET /` | the page, with `play.js`, `schedule.js`, `play.css` and `report.css` |
//! | `GET /about` | what can be chosen (`choices`) |
//! | `GET /simulate?SETTINGS` | numbers and schedule of these settings (`picture`); needs the header `x-play` (`turns`) |
//! | `GET /experiment.toml?SETTINGS` | the experiment that was simulated, for `stealgrid simulate` |
//!
//! Settings are those of `settings`. An answer is that of the file which they are saved as, so that both cannot differ.
//! Nothing is written, and no setting names a file or a command.

mod base;
mod choices;
mod picture;
mod routes;
mod settings;
mod turns;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use experiments::exit;
use experiments::interrupt::Interrupt;
use experiments::terminal::LOGGED;
use node::telemetry::LogArgs;
use operation::serve::PATIENCE;
use operation::serve::door::{Door, Place, opened};

use self::base::Base;
use self::picture::Player;
use self::routes::Table;

/// The default of `--jobs-max`: more than a screen can show. So many on seven sites took from half a second to five,
/// with a broker that plans, on two cores.
const JOBS_MAX: usize = 20_000;

/// How often the command looks whether it shall stop.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Play with an experiment on a page in the browser: change delay, load, strategy, and see the schedule at once.
///
/// Without an experiment it is that of the quick start, which needs no file. Nothing is written. Serves until it is
/// stopped.
///
/// Exit codes: 0 stopped, 2 usage, 3 an experiment that is unreadable or not for this, or an address that cannot be
/// listened on.
#[derive(Clone, Debug, Args)]
pub struct PlayArgs {
    /// Experiment file to begin with [default: the quick start, which comes with the program]
    #[arg(value_name = "EXPERIMENT.toml")]
    experiment: Option<PathBuf>,

    /// Where to serve the page; port 0 is any free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    serve: String,

    /// A further name by which the page may be opened; may be given several times
    ///
    /// Always allowed are addresses, localhost, names without a dot, and the one that --serve has.
    #[arg(long, value_name = "NAME", env = "STEALGRID_SERVE_HOST", value_delimiter = ',')]
    serve_host: Vec<String>,

    /// Most jobs of an experiment
    #[arg(long, value_name = "N", default_value_t = JOBS_MAX)]
    jobs_max: usize,

    /// Longest time of one simulation, by the wall clock
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = time)]
    time_max: Duration,

    /// How this process logs.
    #[command(flatten)]
    log: LogArgs,
}

/// What a page may cost.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// Jobs of an experiment.
    jobs: usize,
    /// Wall time of a simulation.
    time: Duration,
}

/// A wall time that is not nothing.
fn time(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(Duration::ZERO) => Err("a simulation needs some time; write 10s".to_string()),
        Ok(time) => Ok(time),
        Err(error) => Err(format!("{error}; write 500ms, 10s or 2m")),
    }
}

/// Runs the command.
///
/// # Errors
/// If something fails that should not.
pub fn command(args: &PlayArgs) -> anyhow::Result<u8> {
    let _telemetry = args.log.start(LOGGED)?;
    let refused = |error: &dyn std::fmt::Display| {
        eprintln!("error: failed to {error}");
        Ok(exit::INPUT)
    };
    let limits = Limits { jobs: args.jobs_max, time: args.time_max };
    let base = match args.experiment.as_deref().map_or_else(Base::built_in, Base::read) {
        Ok(base) => base,
        Err(error) => return refused(&error),
    };
    let player = Player::new(base, limits);
    match player.notes() {
        Ok(notes) => notes.iter().for_each(|note| eprintln!("note: {note}")),
        Err(error) => return refused(&error),
    }
    let interrupt = Interrupt::saying("stopping")?;
    let place = Place::new(&args.serve, &args.serve_host);
    let router = routes::router(&place, Arc::new(Table::new(player)));
    let door = match Door::open(&place, router, Arc::default(), PATIENCE) {
        Ok(door) => door,
        Err(error) => {
            eprintln!("error: {error:#}");
            return Ok(exit::INPUT);
        }
    };
    experiments::terminal::say(&format!("open {} (Ctrl-C stops)\n", opened(door.address())))?;
    while !interrupt.is_set() {
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(exit::DONE)
}
