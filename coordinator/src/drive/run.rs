//! `stealgrid run`: one node process per site, over libp2p, by the wall clock times a factor; in virtual time see
//! [`virtual_clock`].
//!
//! The same executable is started once more for every site, as `stealgrid node`. The coordinator hands over jobs,
//! starts the clocks, watches and collects events; it is on the path of no decision. What the nodes are told is in
//! [`plan`], the time they run in [`watch`], and how what they did is judged in [`audit`], [`compare`] and
//! [`links`]. A run whose coordinator was killed is gone on with by [`attach`].

pub mod attach;
pub mod audit;
pub mod calibration;
pub mod compare;
pub mod links;
pub mod merge;
pub mod outages;
pub mod plan;
pub mod reception;
pub mod record;
pub mod virtual_clock;
pub mod watch;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use analysis::Outcome;
use analysis::compare::events::is_about_a_message;
use anyhow::Context as _;
use node::NodeConfig;
use node::clock::StartOrder;
use node::control::api::Calibration as Measured;
use node::fleet::{Fleet, FleetError, start_order};
use node::spawn::{SpawnError, SpawnOrder};
use scheduler::Time;
use simulator::Checks;

use self::audit::Audit;
use self::calibration::Calibration;
use self::outages::Outages;
use self::plan::Plan;
use self::reception::{Nodes, Reception, ReceptionArgs};
use self::record::Record;
use self::watch::{Ending, Watch};
use super::simulate::{load_by, simulate, text};
use super::{Ended, Interrupt, Sink, builder, conclude};
use crate::exit;
use crate::experiment::flags::ExperimentArgs;
use crate::experiment::jobs::Jobs;
use crate::experiment::{Clock, Experiment};
use crate::outputs::Status;
use crate::serve::Server;
use crate::serve::live::{About, AboutSite, Live, Phase};

/// How long a node may take to stop before it is killed.
const STOP_PATIENCE: Duration = Duration::from_secs(5);
/// From the first order to start until trace time begins, so that every node has its order by then.
const START_LEAD: Duration = Duration::from_millis(200);
/// And this much more for every node.
const START_LEAD_PER_NODE: Duration = Duration::from_millis(10);

/// The default of `--tolerance`, in percent.
const TOLERANCE: f64 = 1.0;

/// Run an experiment on real processes: one node per site, over libp2p, faster than the wall clock.
///
/// With --clock scaled:K delays are injected, and the network adds its own. With --clock virtual they are modelled, and
/// the run does what `simulate` does, event for event, or ends where it does not.
///
/// Exit codes: 0 done, 2 usage, 3 unreadable input or a port in use, 4 stopped before the end, 5 a proved bound
/// does not hold, the network is too slow for the configured delays (then nothing is run), the makespan is not that
/// of the simulation, or in virtual time an event is not.
#[derive(Clone, Debug, clap::Args)]
pub struct RunArgs {
    /// What to run.
    #[command(flatten)]
    pub experiment: ExperimentArgs,

    /// How far the makespan may be outside of what simulations of the experiment give, in percent [default: 1]
    ///
    /// Not with --clock virtual: there every event is that of the simulation, to the microsecond, or the run fails.
    #[arg(long, value_name = "PERCENT", help_heading = "Run")]
    pub tolerance: Option<f64>,

    /// How much the network may add to configured delays, in percent, before the run is refused [default: 10]
    #[arg(long, value_name = "PERCENT", help_heading = "Network")]
    pub calibration_tolerance: Option<f64>,

    /// Measure the links, show what the network adds at this factor of the clock, and run nothing
    #[arg(long, help_heading = "Network")]
    pub calibrate_only: bool,

    /// First port of the nodes, one for each site; 0 for any that are free [default: 0]
    #[arg(long, value_name = "PORT", help_heading = "Run")]
    pub port: Option<u16>,

    /// Where nodes come from.
    #[command(flatten)]
    pub reception: ReceptionArgs,
}

/// Runs the command.
///
/// # Errors
/// If something fails that should not.
pub fn command(args: &RunArgs) -> anyhow::Result<u8> {
    let loaded = text(&args.experiment).and_then(|text| Ok((understood(args, text.as_deref())?, text)));
    let ((mut experiment, jobs), text) = match loaded {
        Ok(loaded) => loaded,
        Err(code) => return Ok(code),
    };
    if let Err(refusal) = plan::check(&experiment) {
        eprintln!("error: {refusal}");
        return Ok(exit::USAGE);
    }
    if args.calibrate_only {
        // A directory of its own: that of the experiment may have the results of a run.
        let mut dir = experiment.outputs.dir.into_os_string();
        dir.push("-calibration");
        experiment.outputs.dir = dir.into();
    }
    let interrupt = Interrupt::on_signals()?;
    if args.reception.nodes == Some(Nodes::Register)
        && let Err(refusal) = reception::check(&experiment)
    {
        eprintln!("error: {refusal}");
        return Ok(exit::USAGE);
    }
    let (server, reception) = match args.reception.open() {
        Ok(open) => open,
        Err(error) => {
            eprintln!("error: {error:#}");
            return Ok(exit::INPUT);
        }
    };
    let mut seats = Vec::new();
    let mut jobs = jobs;
    if let Some(reception) = &reception {
        let here = reception.gather(&experiment.grid, experiment.run.connect_timeout, &interrupt);
        let seated = here.and_then(|here| {
            if let Some(sizes) = reception.sizes(&experiment.grid, here.len()) {
                let mut args = args.clone();
                args.experiment.sites = Some(sizes);
                let again =
                    understood(&args, text.as_deref()).map_err(|_| "the grid is another now".to_string());
                (experiment, jobs) = again?;
            }
            reception::seats(&experiment.grid, &here)
        });
        match seated {
            Ok(seated) => seats = seated,
            Err(reason) => {
                eprintln!("error: {reason}");
                return Ok(exit::INCOMPLETE);
            }
        }
    }
    let said = experiment.clone();
    if experiment.run.clock == Some(Clock::Virtual) {
        if args.calibrate_only {
            eprintln!(
                "error: in virtual time the network adds nothing to delays; leave out --calibrate-only"
            );
            return Ok(exit::USAGE);
        }
        if !experiment.faults.is_empty() {
            eprintln!(
                "error: in virtual time nothing happens to processes; leave out --clock virtual, or simulate the faults"
            );
            return Ok(exit::USAGE);
        }
        if args.tolerance.is_some() {
            eprintln!(
                "error: in virtual time every event is that of the simulation or the run fails; leave out --tolerance"
            );
            return Ok(exit::USAGE);
        }
        return virtual_clock::command(&experiment, &jobs, &interrupt, args.experiment.format);
    }
    let stopped = || {
        eprintln!("error: stopped before any node was started");
        Ok(exit::INCOMPLETE)
    };
    let Some(mut simulation) = simulated(&experiment, &jobs, &interrupt)? else { return stopped() };
    let plan = Plan::new(&experiment, &jobs, &simulation)?;
    if !experiment.network.is_lossless() && plan.options().retry != experiment.options.retry {
        // Where messages are lost, how soon they are repeated decides the schedule.
        experiment.options.retry = plan.options().retry;
        let Some(again) = simulated(&experiment, &jobs, &interrupt)? else { return stopped() };
        simulation = again;
    }
    for note in &plan.notes {
        eprintln!("note: {note}");
    }
    // Before the nodes, whose logs go into the same directory.
    let mut sink = Sink::new(&experiment, &jobs)?;
    if let Some(server) = &server {
        server.shown.set_live(live(&experiment, &plan, &jobs));
    }
    let started = match &reception {
        Some(reception) => enlist(&experiment, &plan, reception, &seats, &interrupt),
        None => start(&experiment, &plan.nodes, &interrupt),
    };
    let ready = started.and_then(|mut fleet| {
        if let Some(server) = &server {
            server.shown.set_targets(reception::targets(&experiment.name, &fleet));
        }
        let (calibration, measured) = calibrate(&experiment, &plan, &mut fleet, args.calibrate_only)?;
        if !args.calibrate_only {
            fleet.feed(&jobs.jobs, |job| plan.entry(job))?;
        }
        Ok((fleet, calibration, measured))
    });
    let (mut fleet, calibration, measured) = match ready {
        Ok((fleet, calibration, _)) if args.calibrate_only => {
            super::say(&calibration.show(&experiment.grid, args.experiment.format)?)?;
            fleet.stop(STOP_PATIENCE)?;
            let refused = calibration.refusal(&experiment.grid).is_some();
            return Ok(if refused { exit::OUT_OF_TOLERANCE } else { exit::DONE });
        }
        Ok(ready) => ready,
        Err(failure) => return Ok(failure.say()),
    };
    for site in outages::late(&experiment.faults) {
        fleet.kill(site).context("failed to leave out a site that joins later")?;
    }
    let begun = Instant::now();
    let lead = START_LEAD + START_LEAD_PER_NODE * u32::try_from(plan.nodes.len()).unwrap_or(u32::MAX);
    let order = start_order(plan.factor, plan.origin, lead);
    let record = match plan::may_attach(&experiment) && reception.is_none() {
        true => Some(Record::new(&said, &jobs, text, order, measured)?),
        false => None,
    };
    if let Some(record) = &record {
        record.write().context("failed to note what the run is about")?;
        interrupt.also_end(&experiment.outputs.dir.join("nodes"));
    }
    if let Err(error) = fleet.start_by(&order) {
        // There is nothing to attach to.
        record.as_ref().map_or(Ok(()), Record::remove)?;
        return Ok(Failure::from(error).say());
    }
    let mut warnings = Vec::new();
    if begun.elapsed() > lead {
        warnings.push(format!(
            "the clocks were started {:?} after they should have: the first events are late; is the machine \
             overloaded?",
            begun.elapsed().saturating_sub(lead)
        ));
    }
    let course = Course {
        experiment: &experiment,
        plan: &plan,
        jobs: &jobs,
        tolerance: args.tolerance.unwrap_or(TOLERANCE),
        warnings,
        start: order,
        simulated: &|| Ok(Some(simulation.clone())),
        interrupt: &interrupt,
        server: server.as_ref(),
    };
    let mut ended = drive(course, fleet, &mut sink)?;
    ended.lines.insert(0, calibration.line(&experiment.grid));
    ended.calibration = Some(calibration.table(&experiment.grid));
    let code = conclude(&experiment, &jobs, sink, ended, &interrupt, args.experiment.format)?;
    if let Some(record) = record {
        record.remove()?;
    }
    if let Some(server) = server.filter(|_| args.reception.serve_after) {
        eprintln!("note: the run has ended; serving at {} until stopped", server.address());
        while !interrupt.is_set() {
            std::thread::sleep(Duration::from_millis(100));
        }
    }
    Ok(code)
}

/// What is to be run, if the experiment file says this; or the exit code, and why is on stderr by then.
fn understood(args: &RunArgs, text: Option<&str>) -> Result<(Experiment, Jobs), u8> {
    let (mut experiment, jobs) = load_by(&args.experiment, text)?;
    if let Some(percent) = args.calibration_tolerance {
        if percent.is_nan() || percent < 0.0 {
            eprintln!(
                "error: --calibration-tolerance {percent} is no share; write percent from 0 on, as in 10"
            );
            return Err(exit::USAGE);
        }
        experiment.run.calibration_tolerance = percent;
    }
    if let Some(port) = args.port {
        experiment.run.port = port;
    }
    Ok((experiment, jobs))
}

/// The same experiment in virtual time: what the run is planned by and compared with. `None` if interrupted.
fn simulated(experiment: &Experiment, jobs: &Jobs, interrupt: &Interrupt) -> anyhow::Result<Option<Outcome>> {
    let mut builder = builder(experiment, jobs);
    let ended = simulate(experiment, jobs, Checks::Cheap, interrupt, &mut |event| builder.observe(event))?;
    if let Some(violation) = ended.violation {
        anyhow::bail!("failed to simulate the experiment beforehand: {violation}");
    }
    Ok((ended.status == Status::Complete).then(|| builder.finish()))
}

/// Why nothing was run.
struct Failure {
    reason: String,
    code: u8,
}

impl Failure {
    /// Tells the user, and what the exit code is.
    fn say(&self) -> u8 {
        eprintln!("error: {}", self.reason);
        self.code
    }
}

/// Before the clocks start.
impl From<FleetError> for Failure {
    fn from(error: FleetError) -> Failure {
        match error {
            FleetError::Ended { name, status, log } => {
                let reason = format!(
                    "node {name} ended with {status} before the clocks were started; nothing was run, start the run \
                     again\nits log ends with\n{log}"
                );
                Failure { reason, code: exit::INCOMPLETE }
            }
            error => {
                Failure { reason: format!("failed to start the nodes: {error}"), code: exit::UNEXPECTED }
            }
        }
    }
}

/// Starts the nodes and waits until they are connected.
fn start(experiment: &Experiment, nodes: &[NodeConfig], interrupt: &Interrupt) -> Result<Fleet, Failure> {
    let unexpected = |reason: String| Failure { reason, code: exit::UNEXPECTED };
    let folder = experiment.outputs.dir.join("nodes");
    std::fs::create_dir_all(&folder)
        .map_err(|error| unexpected(format!("failed to make {}: {error}", folder.display())))?;
    let order = SpawnOrder { program: node_program()?, arguments: vec!["node".to_string()], folder };
    // On this thread, which lives as long as the process: the kernel ends a node with the thread that started it.
    let mut fleet = Fleet::spawn_each(&order, nodes).map_err(|error| port_in_use(nodes, error))?;
    connect(experiment, &mut fleet, interrupt)?;
    Ok(fleet)
}

/// Makes sites of nodes that have registered and waits until they are connected.
fn enlist(
    experiment: &Experiment,
    plan: &Plan,
    reception: &Reception,
    seats: &[String],
    interrupt: &Interrupt,
) -> Result<Fleet, Failure> {
    let failed = |error: anyhow::Error| Failure { reason: format!("{error:#}"), code: exit::INCOMPLETE };
    let mut fleet = reception.enlist(experiment, plan, seats).map_err(failed)?;
    connect(experiment, &mut fleet, interrupt)?;
    Ok(fleet)
}

/// The program that is a node with its command of that name: this one.
fn node_program() -> Result<PathBuf, Failure> {
    std::env::current_exe().map_err(|error| Failure {
        reason: format!("failed to find this executable: {error}"),
        code: exit::UNEXPECTED,
    })
}

/// Measures all links and writes what was found. Fails if the run could not keep to its delays, unless it is only
/// to be looked at.
fn calibrate(
    experiment: &Experiment,
    plan: &Plan,
    fleet: &mut Fleet,
    look_only: bool,
) -> Result<(Calibration, Vec<Measured>), Failure> {
    let measured = fleet.calibrate(calibration::ROUNDS)?;
    let tolerance = experiment.run.calibration_tolerance;
    let found = Calibration::new(&measured, &experiment.network, plan.origin, plan.factor, tolerance);
    let path = experiment.outputs.dir.join("calibration.csv");
    found
        .write(&path, &experiment.grid)
        .map_err(|error| Failure { reason: format!("{error:#}"), code: exit::UNEXPECTED })?;
    match found.refusal(&experiment.grid) {
        Some(refusal) if !look_only => {
            let reason = format!("failed to {refusal}\nall links are in {}", path.display());
            Err(Failure { reason, code: exit::OUT_OF_TOLERANCE })
        }
        _ => Ok((found, measured)),
    }
}

/// Explains the commonest reason why a node does not start.
fn port_in_use(nodes: &[NodeConfig], error: FleetError) -> Failure {
    let FleetError::Spawn(SpawnError::Ended { name, status, log }) = &error else { return error.into() };
    if status.code() != Some(i32::from(node::exit::ADDRESS)) {
        return Failure { code: exit::INPUT, ..error.into() };
    }
    let listen = nodes.iter().find(|node| node.grid[node.site.index()].name == *name);
    let listen = listen.map_or("", |node| node.listen.as_str());
    let port = listen.rsplit('/').next().unwrap_or_default();
    let reason = format!(
        "failed to start node {name}: port {port} cannot be listened on ({listen}); stop what uses it, choose \
         another first port with --port (run.port), or 0 for any that are free\n{log}"
    );
    Failure { reason, code: exit::INPUT }
}

/// Waits until every node is connected to every other.
fn connect(experiment: &Experiment, fleet: &mut Fleet, interrupt: &Interrupt) -> Result<(), Failure> {
    let deadline = Instant::now() + experiment.run.connect_timeout;
    loop {
        let statuses = fleet.statuses()?;
        let missing = watch::missing(&statuses);
        if missing.is_empty() {
            return Ok(());
        }
        let incomplete = |reason: String| Err(Failure { reason, code: exit::INCOMPLETE });
        if interrupt.is_set() {
            return incomplete("stopped while the nodes were connecting".to_string());
        }
        if Instant::now() >= deadline {
            return incomplete(format!(
                "the nodes did not connect within {:?}; see their logs under {}, or allow more with \
                 run.connect_timeout\n{}",
                experiment.run.connect_timeout,
                experiment.outputs.dir.join("nodes").display(),
                missing.join("\n")
            ));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A run whose clocks are started.
struct Course<'a> {
    experiment: &'a Experiment,
    plan: &'a Plan,
    jobs: &'a Jobs,
    /// How far the makespan may be outside of what is expected, in percent.
    tolerance: f64,
    /// What the reader should know already.
    warnings: Vec<String>,
    /// When trace time began.
    start: StartOrder,
    /// The same in virtual time; `None` if interrupted.
    simulated: &'a dyn Fn() -> anyhow::Result<Option<Outcome>>,
    interrupt: &'a Interrupt,
    /// Where it is shown.
    server: Option<&'a Server>,
}

/// What is shown of a run that is about to begin.
fn live(experiment: &Experiment, plan: &Plan, jobs: &Jobs) -> Live {
    let about = About {
        name: experiment.name.clone(),
        strategy: experiment.strategy.to_string(),
        network: experiment.network(),
        factor: Some(plan.factor),
        jobs: jobs.jobs.len(),
        sites: AboutSite::all(&experiment.grid),
        orders: false,
        replay: false,
    };
    let threshold = experiment.strategy.strategy.threshold();
    Live::new(about, &experiment.grid, threshold, &jobs.jobs)
}

/// To the end of the nodes, and judges what they did.
fn drive(course: Course<'_>, mut fleet: Fleet, sink: &mut Sink) -> anyhow::Result<Ended> {
    let Course { experiment, plan, jobs, tolerance, mut warnings, start, simulated, interrupt, server } =
        course;
    let mut audit = Audit::new(&experiment.grid, &jobs.jobs);
    let outages = Outages::new(&experiment.faults, plan, jobs, start);
    let mut watch = Watch::new(plan, jobs.jobs.len(), outages, interrupt);
    let show = |change: &dyn Fn(&mut Live)| {
        if let Some(server) = server {
            server.shown.change(change);
        }
    };
    show(&|live| live.enter(Phase::Running));
    let mut look = |statuses: &[node::control::api::Status]| {
        let now = statuses.iter().map(|status| status.trace_time_us).max().map(Time::from_micros);
        show(&|live| {
            live.look(statuses);
            live.pass(now.unwrap_or(Time::ZERO));
        });
    };
    let ending = watch.until_end(&mut fleet, &mut look, &mut |event| {
        show(&|live| live.observe(event));
        audit.observe(event);
        if plan.message_events || !is_about_a_message(event) {
            sink.take(event);
        }
    });
    show(&|live| {
        live.say(format!("the run has ended: {ending}"));
        live.enter(Phase::Ended);
    });
    let statuses = watch.last_statuses();
    let status = match &ending {
        Ending::Finished => Status::Complete,
        other => Status::Partial(other.to_string()),
    };
    if let Err(error) = fleet.stop(STOP_PATIENCE)
        && ending == Ending::Finished
    {
        warnings.push(error.to_string());
    }
    let complete = status == Status::Complete;
    let links = links::Links::of(statuses, plan.factor);
    links.write(&experiment.outputs.dir.join("links.csv"), &experiment.grid)?;
    warnings.extend(links.warning(jobs));
    warnings.extend(watch.warnings(&ending));
    let audited = audit.finish(complete);
    let mut lines = vec![audited.line(plan.factor), links.line()];
    let mut out_of_tolerance = false;
    if complete {
        match simulated()? {
            Some(simulated) => {
                let mut compared = compare::Compared::of(sink.builder.outcome(), &simulated, tolerance);
                // A process that dies, or does so a little later than planned, changes everything that follows.
                if watch.was_undisturbed() {
                    compared.vary(experiment, plan, jobs, links.added(), audited.completions, interrupt)?;
                }
                out_of_tolerance = !compared.within() && watch.was_undisturbed();
                lines.extend(compared.lines());
                if !compared.within() && !out_of_tolerance {
                    lines.push("  no error: nodes ended or stood still, and in the simulation they did not, or not then".to_string());
                }
            }
            None => warnings.push("stopped before the run was compared with its simulation".to_string()),
        }
    }
    Ok(Ended {
        driver: "run",
        clock: Clock::Scaled(plan.factor).to_string(),
        status,
        violation: audited.violation,
        calibration: None,
        warnings,
        lines,
        out_of_tolerance,
    })
}
