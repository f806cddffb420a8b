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
pub mod orders;
pub mod outages;
pub mod past;
pub mod plan;
pub mod reception;
pub mod record;
pub mod scraped;
pub mod virtual_clock;
pub mod watch;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use analysis::Outcome;
use analysis::compare::events::is_about_a_message;
use anyhow::Context as _;
use node::NodeConfig;
use node::control::api::{Calibration as Measured, Status as NodeStatus};
use node::fleet::{Fleet, FleetError, Whereabouts, start_order};
use node::spawn::{SpawnError, SpawnOrder};
use node::telemetry::LogArgs;
use scheduler::{Event, SiteId, Time, TimedJob};
use simulator::Checks;

use self::audit::Audit;
use self::calibration::Calibration;
use self::compare::Kept;
use self::orders::{Orders, Starter};
use self::outages::Outages;
use self::past::Past;
use self::plan::Plan;
use self::reception::{Nodes, Open, Reception, ReceptionArgs, TokenFile};
use self::record::Record;
use self::scraped::{Comparison, ScrapeArgs, Source};
use self::watch::{Ending, Onlooker, Watch};
use super::own::Driver;
use super::simulate::{load_by, simulate, text};
use super::{Ended, Interrupt, Sink, builder, conclude};
use crate::exit;
use crate::experiment::flags::ExperimentArgs;
use crate::experiment::jobs::Jobs;
use crate::experiment::{self, Clock, Experiment, ExperimentError};
use crate::orders::Given;
use crate::outputs::Status;
use crate::serve::Server;
use crate::serve::live::{About, AboutSite, Live, Phase};

/// How long a node may take to stop before it is killed.
const STOP_PATIENCE: Duration = Duration::from_secs(5);
/// From the first order to start until trace time begins, so that every node has its order by then.
const START_LEAD: Duration = Duration::from_millis(200);
/// And this much more for every node.
const START_LEAD_PER_NODE: Duration = Duration::from_millis(10);

/// Why a run is not compared with simulations in which nothing happens to sites.
const DISTURBED: &str = "nodes ended or stood still, and in simulations they do not, or not then";

/// What a coordinator logs if `RUST_LOG` does not say: what it prints says the rest.
pub(crate) const LOGGED: &str = "warn";

/// Run an experiment on real processes: one node per site, over libp2p, faster than the wall clock.
///
/// With --clock scaled:K delays are injected, and the network adds its own. With --clock virtual they are modelled, and
/// the run does what `simulate` does, event for event, or ends where it does not.
///
/// Exit codes: 0 done, 2 usage, 3 unreadable input or a port in use, 4 stopped before the end, 5 a proved bound
/// does not hold, the run is not one that simulations of it could be, or in virtual time an event is not; or what was
/// scraped is not what the event log says; 6 not measured: the machine could not keep to the configured delays, before
/// the clocks started (then nothing is run) or during the run.
#[derive(Clone, Debug, clap::Args)]
pub struct RunArgs {
    /// What to run.
    #[command(flatten)]
    pub experiment: ExperimentArgs,

    /// Simulations that the run is compared with, 200 to 10000, or 0 for none [default: 500]
    ///
    /// Not with --clock virtual: there every event is that of the simulation, to the microsecond, or the run fails.
    #[arg(long, value_name = "N", help_heading = "Run")]
    pub ensemble: Option<usize>,

    /// How late messages and timers may be in a run that counts as measured, in percent of the delay [default: 10]
    #[arg(long, value_name = "PERCENT", help_heading = "Network")]
    pub delay_margin: Option<f64>,

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

    /// What the event log is compared with.
    #[command(flatten)]
    pub scrape: ScrapeArgs,

    /// How the nodes and this process log.
    #[command(flatten)]
    pub log: LogArgs,
}

/// Runs the command.
///
/// # Errors
/// If something fails that should not.
pub fn command(args: &RunArgs) -> anyhow::Result<u8> {
    let _telemetry = args.log.start(LOGGED)?;
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
    let Open { server, reception, mut come, token } = match args.reception.open() {
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
        Driver::RunVirtual.places(&mut experiment.outputs);
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
        if args.ensemble.is_some() || args.delay_margin.is_some() {
            eprintln!(
                "error: in virtual time every event is that of the simulation or the run fails; leave out --ensemble \
                 and --delay-margin"
            );
            return Ok(exit::USAGE);
        }
        if args.scrape.prometheus.is_some() {
            eprintln!(
                "error: in virtual time every event is that of the simulation or the run fails; leave out --prometheus"
            );
            return Ok(exit::USAGE);
        }
        return virtual_clock::command(&experiment, &jobs, &interrupt, args.log, args.experiment.format);
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
    let mut sink = Sink::new(&experiment, &jobs, Driver::Run)?;
    let token = token.map(|token| TokenFile::write(&token, &experiment.outputs.dir)).transpose()?;
    if let Some(server) = &server {
        server.shown.set_live(live(&experiment, &plan, &jobs));
    }
    if let (Some(server), Some(reception)) = (&server, &reception) {
        // Each as soon as it is up: until all are connected may take a while.
        server.shown.look_for_nodes(&experiment.name, Arc::clone(reception.desk()));
    }
    let started = match &reception {
        Some(reception) => enlist(&experiment, &plan, reception, &seats, &interrupt),
        None => start(&experiment, &plan.nodes, args.log, &interrupt),
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
            return Ok(if refused { exit::NOT_MEASURED } else { exit::DONE });
        }
        Ok(ready) => ready,
        Err(failure) => return Ok(failure.say()),
    };
    for site in outages::late(&experiment.faults) {
        fleet.leave_out(site).context("failed to leave out a site that joins later")?;
    }
    if let Some(server) = &server {
        // The run may be held for long.
        server.shown.set_targets(reception::targets(&experiment.name, &fleet));
    }
    if let Some(server) = &server {
        server.open_desk();
        if args.reception.hold {
            server.shown.change(|live| live.enter(Phase::Held));
            eprintln!("note: everything is ready; the run begins by an order to start (--hold)");
        }
    }
    let lead = START_LEAD + START_LEAD_PER_NODE * u32::try_from(plan.nodes.len()).unwrap_or(u32::MAX);
    let (begun, order, outages, mut record, starter) = loop {
        let mut starter = None;
        if let Some(come) = come.as_mut().filter(|_| args.reception.hold) {
            match orders::hold(come, &mut fleet, plan.origin, &interrupt) {
                Ok(Some(start)) => starter = Some(start),
                Ok(None) => return Ok(stopped_while_held(&experiment, fleet, reception.is_some())),
                Err(error) => return Ok(Failure::from(error).say()),
            }
        }
        let (begun, order) = (Instant::now(), start_order(plan.factor, plan.origin, lead));
        let outages = Outages::new(&experiment.faults, &plan, &jobs, order);
        let mut record = match plan::may_attach(&experiment) && reception.is_none() {
            true => {
                let (text, measured) = (text.clone(), measured.clone());
                Some(Record::new(&said, &jobs, text, order, measured, outages.past().clone())?)
            }
            false => None,
        };
        if let Some(record) = &mut record {
            record.orders.extend(starter.as_ref().map(|starter: &Starter| starter.given.clone()));
            if let Err(error) = record.write() {
                let Some(starter) = starter else {
                    return Err(error).context("failed to note what the run is about");
                };
                // Held on: the next order to start may find room.
                starter.refused(&error);
                continue;
            }
            interrupt.also_end(&experiment.outputs.dir.join("nodes"));
        }
        break (begun, order, outages, record, starter);
    };
    let given: Vec<Given> = starter.iter().map(|starter| starter.given.clone()).collect();
    if let Err(error) = fleet.start_by(&order) {
        // Whoever watches the nodes starts it again, and tells it the time; or ends the run as at any other time.
        match record.is_some() {
            true => {
                eprintln!("note: not all nodes were told when trace time begins, and are told again: {error}")
            }
            false => return Ok(Failure::from(error).say()),
        }
    }
    let mut warnings = Vec::new();
    if begun.elapsed() > lead {
        warnings.push(format!(
            "the clocks were started {:?} after they should have: the first events are late; is the machine \
             overloaded?",
            begun.elapsed().saturating_sub(lead)
        ));
    }
    starter.into_iter().for_each(Starter::obeyed);
    let course = Course {
        experiment: &experiment,
        plan: &plan,
        jobs: &jobs,
        warnings,
        simulated: &|| Ok(Some(simulation.clone())),
        interrupt: &interrupt,
        server: server.as_ref(),
        source: args.scrape.source(&experiment.name),
        orders: Orders::new(come, given, &jobs.jobs, order),
        outages,
        record: record.as_mut(),
    };
    let (mut ended, jobs) = drive(course, fleet, &mut sink)?;
    drop(token);
    ended.lines.insert(0, calibration.line(&experiment.grid));
    ended.calibration = Some(calibration.table(&experiment.grid));
    let complete = ended.status == Status::Complete;
    let code = conclude(&experiment, &jobs, sink, ended, &interrupt, args.experiment.format)?;
    if let Some(record) = record {
        record.over(complete)?;
    }
    if let Some(server) = server.filter(|_| args.reception.serve_after) {
        eprintln!("note: the run has ended; serving at {} until stopped", server.address());
        while !interrupt.is_set() {
            std::thread::sleep(Duration::from_millis(100));
        }
    }
    Ok(code)
}

/// Ends the nodes of a run that nobody ordered to start, and says so; the exit code.
fn stopped_while_held(experiment: &Experiment, fleet: Fleet, registered: bool) -> u8 {
    if let Err(error) = fleet.stop(STOP_PATIENCE) {
        eprintln!("note: {error}");
    }
    let logs = match registered {
        true => "the nodes were told to end".to_string(),
        false => {
            let folder = experiment.outputs.dir.join("nodes");
            format!("the nodes have ended, and their logs are in {}", folder.display())
        }
    };
    eprintln!(
        "error: stopped before the order to start (--hold): nothing was run, and there are no results; {logs}; start the \
         run again"
    );
    exit::INCOMPLETE
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
    let checked = |checked: Result<(), ExperimentError>| {
        checked.map_err(|error| {
            eprintln!("error: failed to {error}");
            exit::USAGE
        })
    };
    if let Some(count) = args.ensemble {
        checked(experiment::ensemble(count).map(|count| experiment.run.ensemble = count))?;
    }
    if let Some(percent) = args.delay_margin {
        checked(experiment::delay_margin(percent).map(|percent| experiment.run.delay_margin = percent))?;
    }
    if let Some(port) = args.port {
        experiment.run.port = port;
    }
    Ok((experiment, jobs))
}

/// The same experiment in virtual time: what the run is planned by and compared with. `None` if interrupted.
pub fn simulated(
    experiment: &Experiment,
    jobs: &Jobs,
    interrupt: &Interrupt,
) -> anyhow::Result<Option<Outcome>> {
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
            FleetError::Spawn(error @ SpawnError::Ended { .. }) => {
                let reason = format!("{error}\nnothing was run, start the run again");
                Failure { reason, code: exit::INCOMPLETE }
            }
            error => {
                Failure { reason: format!("failed to start the nodes: {error}"), code: exit::UNEXPECTED }
            }
        }
    }
}

/// What this program is called with to be a node, before the arguments of that one.
fn node_arguments(log: LogArgs) -> Vec<String> {
    std::iter::once("node".to_string()).chain(log.to_arguments()).collect()
}

/// Starts the nodes and waits until they are connected.
fn start(
    experiment: &Experiment,
    nodes: &[NodeConfig],
    log: LogArgs,
    interrupt: &Interrupt,
) -> Result<Fleet, Failure> {
    let unexpected = |reason: String| Failure { reason, code: exit::UNEXPECTED };
    let folder = experiment.outputs.dir.join("nodes");
    node::private::make_folder(&folder)
        .map_err(|error| unexpected(format!("failed to make {}: {error}", folder.display())))?;
    let order = SpawnOrder { program: node_program()?, arguments: node_arguments(log), folder };
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
            Err(Failure { reason, code: exit::NOT_MEASURED })
        }
        _ => Ok((found, measured)),
    }
}

/// Explains the commonest reason why a node does not start.
fn port_in_use(nodes: &[NodeConfig], error: FleetError) -> Failure {
    let FleetError::Spawn(SpawnError::Ended { name, status, log }) = &error else { return error.into() };
    match status.code() {
        Some(code) if code == i32::from(node::exit::ADDRESS) => {}
        // It was killed, or failed by itself.
        None => return error.into(),
        Some(code) if code == i32::from(node::exit::UNEXPECTED) => return error.into(),
        Some(_) => return Failure { code: exit::INPUT, ..error.into() },
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
    /// What the reader should know already.
    warnings: Vec<String>,
    /// The same in virtual time; `None` if interrupted.
    simulated: &'a dyn Fn() -> anyhow::Result<Option<Outcome>>,
    interrupt: &'a Interrupt,
    /// Where it is shown.
    server: Option<&'a Server>,
    /// What the event log is compared with.
    source: Source,
    /// Orders that are given meanwhile.
    orders: Orders,
    /// What happens to sites.
    outages: Outages,
    /// What another coordinator would need.
    record: Option<&'a mut Record>,
}

/// What is shown of a run that is about to begin.
fn live(experiment: &Experiment, plan: &Plan, jobs: &Jobs) -> Live {
    let about = About {
        name: experiment.name.clone(),
        strategy: experiment.strategy.to_string(),
        network: experiment.network(),
        clock: Clock::Scaled(plan.factor).to_string(),
        factor: Some(plan.factor),
        jobs: jobs.jobs.len(),
        sites: AboutSite::all(&experiment.grid),
        orders: true,
        replay: false,
    };
    let threshold = experiment.strategy.strategy.threshold();
    Live::new(about, &experiment.grid, threshold, &jobs.jobs)
}

/// Passes on what happens to all who want to know.
struct Eyes<'a> {
    /// Of the run.
    name: &'a str,
    plan: &'a Plan,
    audit: Audit,
    comparison: Comparison,
    interrupt: &'a Interrupt,
    sink: &'a mut Sink,
    server: Option<&'a Server>,
    record: Option<&'a mut Record>,
    /// Jobs of orders.
    injected: Vec<TimedJob>,
    /// When the last event was.
    last: Time,
    /// What could not be kept.
    failed: Option<std::io::Error>,
}

impl Eyes<'_> {
    /// Writes down what was done, if anybody could go on with the run. False if that is impossible for now.
    fn write(&mut self) -> bool {
        let Some(record) = &self.record else { return true };
        match (record.write(), self.failed.is_some()) {
            (Ok(()), failed) => {
                if failed {
                    eprintln!("note: what is done can be noted again, and the run goes on as before");
                }
                self.failed = None;
                true
            }
            (Err(error), failed) => {
                if !failed {
                    eprintln!(
                        "note: what is done cannot be noted: {error}; make room. Until then no site is given up, nothing \
                         is adopted, nothing that is planned happens to sites, and no order is taken"
                    );
                }
                self.failed = Some(error);
                false
            }
        }
    }

    fn show(&self, change: impl FnOnce(&mut Live)) {
        if let Some(server) = self.server {
            server.shown.change(change);
        }
    }
}

impl Onlooker for Eyes<'_> {
    fn event(&mut self, event: &Event) {
        self.last = self.last.max(event.at);
        self.show(|live| live.observe(event));
        self.comparison.observe(event);
        self.audit.observe(event);
        if self.plan.message_events || !is_about_a_message(event) {
            self.sink.take(event);
        }
    }

    fn order(&mut self, given: &Given, past: Option<&Past>) -> std::io::Result<()> {
        self.record.as_mut().map_or(Ok(()), |record| record.note_order(given, past))
    }

    fn ordered(&mut self, given: &Given) {
        if let Some(job) = &given.job {
            self.audit.add(job);
            self.comparison.add(job);
            self.sink.add(job);
            self.injected.push(*job);
        }
        // Only the order to stand still has come to something else than was kept: where they stand.
        if let Some(record) = self.record.as_mut().filter(|record| record.orders.last() != Some(given)) {
            record.orders.pop();
            record.orders.push(given.clone());
            self.failed = record.write().err().or(self.failed.take());
        }
        self.show(|live| live.ordered(given));
    }

    fn look(&mut self, fleet: &Fleet, statuses: &[NodeStatus], orders: &Orders) {
        if let Some(server) = self.server {
            // A node that was started again listens elsewhere.
            server.shown.set_targets(reception::targets(self.name, fleet));
        }
        let sites = statuses.iter().map(|status| status.site);
        let away: BTreeSet<SiteId> =
            sites.filter(|site| fleet.whereabouts(*site) != Whereabouts::Up).collect();
        let now = statuses.iter().map(|status| status.trace_time_us).max().map(Time::from_micros);
        self.show(|live| {
            live.look(statuses, &away, orders.cuts());
            live.hit(fleet.limits_hit());
            live.pass(now.unwrap_or(Time::ZERO));
            live.enter(if orders.is_paused() { Phase::Paused } else { Phase::Running });
        });
    }

    fn noted(&mut self, past: &Past) -> bool {
        if let Some(record) = &mut self.record {
            record.past.clone_from(past);
        }
        self.write()
    }

    fn keeps(&mut self) -> bool {
        self.failed.is_none() || self.write()
    }

    fn last(&mut self, fleet: &mut Fleet) {
        self.comparison.scrape(fleet, self.interrupt);
    }
}

/// To the end of the nodes, and judges what they did. Also all jobs that there were in the end.
fn drive(course: Course<'_>, mut fleet: Fleet, sink: &mut Sink) -> anyhow::Result<(Ended, Jobs)> {
    let Course { experiment, plan, jobs, mut warnings, .. } = course;
    let Course { simulated, interrupt, server, mut orders, mut outages, record, source, .. } = course;
    let audit = Audit::new(&experiment.grid, &jobs.jobs);
    let comparison = Comparison::new(source, &experiment.grid, &jobs.jobs);
    let (injected, failed, name) = (Vec::new(), None, experiment.name.as_str());
    let last = plan.origin;
    let mut eyes =
        Eyes { name, plan, audit, comparison, interrupt, sink, server, record, injected, last, failed };
    eyes.show(|live| live.enter(Phase::Running));
    if server.is_none() {
        let mut stage = orders::Stage { plan, fleet: &mut fleet, outages: &mut outages };
        for given in orders.release(&mut stage) {
            // They are done already: a run that nobody can order to go on must.
            eyes.failed = eyes.order(&given, None).err().or(eyes.failed.take());
            eyes.ordered(&given);
        }
    }
    let mut watch = Watch::new(plan, jobs.jobs.len(), outages, orders, interrupt);
    let ending = watch.until_end(&mut fleet, &mut eyes);
    if let Some(server) = server {
        server.close_desk();
    }
    eyes.show(|live| {
        live.say(format!("the run has ended: {ending}"));
        if ending == Ending::Finished { live.enter(Phase::Ended) } else { live.fail() }
    });
    let Eyes { audit, comparison, sink, injected, last, failed, .. } = eyes;
    if let Some(error) = failed {
        warnings.push(format!("what was done could not be kept for `stealgrid attach`: {error}"));
    }
    let jobs = jobs.with(injected);
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
    if let Err(error) = links.write(&experiment.outputs.dir.join("links.csv"), &experiment.grid) {
        warnings.push(format!("links.csv is incomplete: {error:#}"));
    }
    warnings.extend(links.warning(&jobs));
    warnings.extend(watch.warnings(&ending));
    let audited = audit.finish(complete);
    let scraped = comparison.finish();
    let mut lines = vec![audited.line(plan.factor), links.line(), scraped.line()];
    let (mut violation, mut out_of_tolerance, mut compared) = (audited.violation, false, None);
    if complete {
        // The same experiment with what orders did to it, where a simulation can do that.
        let ordered = orders::ordered(experiment, plan, watch.given(), last);
        let expected = match &ordered {
            None => simulated(),
            Some(experiment) => self::simulated(experiment, &jobs, interrupt),
        };
        let expected = expected.unwrap_or_else(|error| {
            warnings.push(format!("the run was not compared with its simulation: {error:#}"));
            violation
                .get_or_insert_with(|| format!("the run was not compared with its simulation: {error:#}"));
            None
        });
        let question = compare::Question {
            experiment: ordered.as_ref().unwrap_or(experiment),
            plan,
            jobs: &jobs,
            kept: Kept {
                added: links.added(),
                submissions: audited.submissions,
                completions: audited.completions,
            },
            disturbed: (!watch.was_undisturbed()).then_some(DISTURBED),
            interrupt,
        };
        let answer = question.answer(sink.builder.outcome(), expected.as_ref());
        lines.extend(answer.lines());
        if ordered.is_some() {
            lines.push(
                "  orders      jobs that were injected and links that were cut are in the simulation, too"
                    .to_string(),
            );
        }
        warnings.extend(answer.failed());
        violation = violation.or(answer.failed());
        out_of_tolerance = answer.verdict == compare::Verdict::Different;
        compared = Some(answer);
    }
    // A run that did not end by itself has another reason why something is missing.
    if let Some(refusal) = scraped.refusal().filter(|_| complete || scraped.differs()) {
        eprintln!("error: {refusal}");
        // Of a run that is not complete, its exit code must say that: somebody can go on with it.
        out_of_tolerance |= complete;
    }
    let ended = Ended {
        scraped: Some(scraped),
        driver: "run",
        clock: Clock::Scaled(plan.factor).to_string(),
        status,
        violation,
        calibration: None,
        warnings,
        lines,
        out_of_tolerance,
        compared,
        orders: watch.given().to_vec(),
    };
    Ok((ended, jobs))
}
