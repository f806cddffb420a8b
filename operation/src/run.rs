//! `stealgrid run`: one node process per site, over libp2p, by the wall clock times a factor; in virtual time see
//! [`virtual_clock`].
//!
//! The same executable is started once more for every site, as `stealgrid node`. The coordinator hands over jobs,
//! starts the clocks, watches and collects events; it is on the path of no decision. What the nodes are told is in
//! [`plan`], the time they run in [`watch`], and how what they did is judged in [`compare`], [`links`] and
//! [`crate::audit`]. A run whose coordinator was killed is gone on with by [`attach`].

pub mod attach;
pub mod calibration;
pub mod compare;
mod course;
pub mod links;
pub mod merge;
mod nodes;
pub mod orders;
pub mod outages;
pub mod past;
pub mod plan;
pub mod reception;
pub mod record;
mod remaining;
pub mod scraped;
pub mod virtual_clock;
pub mod watch;

use std::sync::Arc;
use std::time::{Duration, Instant};

use analysis::Outcome;
use anyhow::Context as _;
use experiments::drive::own::Driver;
use experiments::drive::simulate::{load_by, text};
use experiments::drive::{Concluded, Sink, conclude};
use experiments::exit;
use experiments::experiment::flags::ExperimentArgs;
use experiments::experiment::jobs::Jobs;
use experiments::experiment::{self, Clock, Experiment, ExperimentError};
use experiments::interrupt::Interrupt;
use experiments::terminal::{LOGGED, note, say};
use node::clock::StartOrder;
use node::control::api::Calibration as Measured;
use node::telemetry::LogArgs;
use outputs::orders::Given;
use tokio::sync::mpsc::Receiver;

use self::calibration::Calibration;
use self::course::{Course, drive, live};
use self::nodes::{Failure, STOP_PATIENCE, TooFast, stopped_while_held};
use self::orders::{Orders, Starter};
use self::outages::Outages;
use self::plan::Plan;
use self::reception::{Nodes, Open, Reception, ReceptionArgs, TokenFile};
use self::record::Record;
use self::scraped::ScrapeArgs;
use crate::fleet::{Fleet, end_all, start_order};
use crate::serve::Server;
use crate::serve::live::Phase;
use crate::serve::orders::Asked;

/// How often a run that cannot keep to its delays chooses a slower clock: each time is another start of all nodes.
const SLOWER_TRIES: usize = 3;

/// From the first order to start until trace time begins, so that every node has its order by then.
const START_LEAD: Duration = Duration::from_millis(200);
/// And this much more for every node.
const START_LEAD_PER_NODE: Duration = Duration::from_millis(10);

/// Run an experiment on real processes: one node per site, over libp2p, faster than the wall clock.
///
/// With --clock scaled:K delays are injected, and the network adds its own. With --clock virtual they are modelled, and
/// the run does what `simulate` does, event for event, or ends where it does not.
///
/// Exit codes: 0 done, 2 usage, 3 unreadable input or a port in use, 4 stopped before the end, 5 a proved bound
/// does not hold, the run is not one that simulations of it could be, or in virtual time an event is not; or what was
/// scraped is not what the event log says; 6 not measured: the machine could not keep to the configured delays, during the
/// run, or before the clocks started with slower clocks either (then nothing is run); 7 an external strategy failed and its fallback decided.
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
    run(args).or_else(|error| Ok(error.downcast::<Failure>()?.say()))
}

/// From the command line to the results.
fn run(args: &RunArgs) -> anyhow::Result<u8> {
    let (mut experiment, mut jobs, text) = read(args)?;
    let interrupt = Interrupt::on_signals()?;
    let Open { server, reception, mut come, token } = open(args, &experiment)?;
    let slots = match &reception {
        Some(reception) => gather(args, text.as_deref(), reception, &mut experiment, &mut jobs, &interrupt)?,
        None => Vec::new(),
    };
    let said = experiment.clone();
    if experiment.run.clock == Some(Clock::Virtual) {
        Driver::RunVirtual.places(&mut experiment.outputs);
        check_virtual(args, &experiment)?;
        return virtual_clock::command(&experiment, &jobs, &interrupt, args.log, args.experiment.format);
    }
    let (mut plan, mut simulation) = planned(&mut experiment, &jobs, &interrupt)?;
    // Before the nodes, whose logs go into the same directory.
    let mut sink = Sink::new(&experiment, &jobs, Driver::Run)?;
    let token = token.map(|token| TokenFile::write(&token, &experiment.outputs.dir)).transpose()?;
    let (server, reception, jobs) = (server.as_ref(), reception.as_ref(), &jobs);
    let mut slowed = Vec::new();
    let (fleet, calibration, measured) = loop {
        let set = Set {
            args,
            experiment: &experiment,
            plan: &plan,
            jobs,
            server,
            reception,
            interrupt: &interrupt,
        };
        let TooFast { slower, failure } = match set.nodes(&slots) {
            Ok(connected) => break connected,
            Err(too_fast) => too_fast,
        };
        // Nodes that registered are begun by others.
        let factor = slower.filter(|_| reception.is_none() && slowed.len() < SLOWER_TRIES);
        let Some(factor) = factor.filter(|factor| *factor >= 1.0) else { return Err(failure.into()) };
        let line = format!(
            "the links could not keep to their delays at {} times the wall clock, so the clock is slower: --clock \
             scaled:{factor}",
            plan.factor
        );
        note(&line);
        slowed.push(line);
        experiment.run.clock = Some(Clock::Scaled(factor));
        (plan, simulation) = planned(&mut experiment, jobs, &interrupt)?;
    };
    let experiment = &experiment;
    let set = Set { args, experiment, plan: &plan, jobs, server, reception, interrupt: &interrupt };
    if args.calibrate_only {
        say(&calibration.show(&experiment.grid, args.experiment.format)?)?;
        fleet.stop(STOP_PATIENCE)?;
        let refused = calibration.refusal(&experiment.grid).is_some();
        return Ok(if refused { exit::NOT_MEASURED } else { exit::DONE });
    }
    let fleet = set.hand_out(fleet)?;
    let Begun { fleet, order, outages, mut record, given, warnings } =
        set.begin(fleet, come.as_mut(), |order, outages| {
            Record::new(&said, jobs, text.clone(), order, measured.clone(), outages.past().clone())
        })?;
    sink.begin();
    let course = Course {
        experiment,
        plan: &plan,
        jobs,
        warnings,
        simulated: &|| Ok(Some(simulation.clone())),
        interrupt: &interrupt,
        server,
        source: args.scrape.source(&experiment.name),
        orders: Orders::new(come, given, &jobs.arriving(experiment), order),
        outages,
        record: record.as_mut(),
    };
    let (mut ended, jobs) = drive(course, fleet, &mut sink)?;
    drop(token);
    ended.lines.splice(0..0, slowed);
    calibration.tell(&experiment.grid, &mut ended);
    let Concluded { code, left } =
        conclude(experiment, &jobs, sink, ended, &interrupt, args.experiment.format)?;
    if let Some(record) = record {
        record.over(left)?;
    }
    if let Some(server) = server.filter(|_| args.reception.serve_after) {
        eprintln!("note: the run has ended; serving at {} until stopped", server.address());
        while !interrupt.is_set() {
            std::thread::sleep(Duration::from_millis(100));
        }
    }
    Ok(code)
}

/// What is to be run, and what the experiment file says, if there is one.
fn read(args: &RunArgs) -> Result<(Experiment, Jobs, Option<String>), Failure> {
    let text = text(&args.experiment).map_err(Failure::said)?;
    let (mut experiment, jobs) = understood(args, text.as_deref()).map_err(Failure::said)?;
    plan::check(&experiment).map_err(|refusal| Failure { reason: refusal.to_string(), code: exit::USAGE })?;
    if args.calibrate_only {
        // A directory of its own: that of the experiment may have the results of a run.
        let mut dir = experiment.outputs.dir.into_os_string();
        dir.push("-calibration");
        experiment.outputs.dir = dir.into();
    }
    Ok((experiment, jobs, text))
}

/// Opens what the run is served by.
fn open(args: &RunArgs, experiment: &Experiment) -> Result<Open, Failure> {
    if args.reception.nodes == Some(Nodes::Register) {
        let usage = |refusal: &str| Failure { reason: refusal.to_string(), code: exit::USAGE };
        reception::check(experiment).map_err(usage)?;
    }
    args.reception.open().map_err(|error| Failure { reason: format!("{error:#}"), code: exit::INPUT })
}

/// Waits for nodes to register, makes the grid as large as they are many, and says which one is which site.
fn gather(
    args: &RunArgs,
    text: Option<&str>,
    reception: &Reception,
    experiment: &mut Experiment,
    jobs: &mut Jobs,
    interrupt: &Interrupt,
) -> Result<Vec<String>, Failure> {
    let incomplete = |reason: String| Failure { reason, code: exit::INCOMPLETE };
    let patience = experiment.run.connect_timeout;
    let here = reception.gather(&experiment.grid, patience, interrupt).map_err(incomplete)?;
    if let Some(sizes) = reception.sizes(&experiment.grid, here.len()) {
        let mut args = args.clone();
        args.experiment.sites = Some(sizes);
        let again = understood(&args, text).map_err(|_| {
            incomplete("run this on the sites that have registered; name a workload that fits them, or wait for more".to_string())
        })?;
        (*experiment, *jobs) = again;
    }
    reception::slots(&experiment.grid, &here).map_err(incomplete)
}

/// Refuses what means nothing in virtual time.
fn check_virtual(args: &RunArgs, experiment: &Experiment) -> Result<(), Failure> {
    let is_exact = "every event is that of the simulation or the run fails";
    let reason = if args.calibrate_only {
        "the network adds nothing to delays; leave out --calibrate-only".to_string()
    } else if !experiment.faults.is_empty() {
        "nothing happens to processes; leave out --clock virtual, or simulate the faults".to_string()
    } else if args.ensemble.is_some() || args.delay_margin.is_some() {
        format!("{is_exact}; leave out --ensemble and --delay-margin")
    } else if args.scrape.prometheus.is_some() {
        format!("{is_exact}; leave out --prometheus")
    } else {
        return Ok(());
    };
    Err(Failure { reason: format!("in virtual time {reason}"), code: exit::USAGE })
}

/// Simulates the experiment, and plans the run by what came of it.
fn planned(
    experiment: &mut Experiment,
    jobs: &Jobs,
    interrupt: &Interrupt,
) -> anyhow::Result<(Plan, Outcome)> {
    let simulate = |experiment: &Experiment| -> anyhow::Result<Outcome> {
        let reason = "stopped before any node was started".to_string();
        let stopped = || Failure { reason, code: exit::INCOMPLETE };
        Ok(plan::simulated(experiment, jobs, interrupt)?.ok_or_else(stopped)?)
    };
    let mut simulation = simulate(experiment)?;
    let plan = Plan::new(experiment, jobs, &simulation)?;
    if !experiment.network.is_lossless() && plan.options().retry != experiment.options.retry {
        // Where messages are lost, how soon they are repeated decides the schedule.
        experiment.options.retry = plan.options().retry;
        simulation = simulate(experiment)?;
    }
    plan.notes.iter().for_each(|words| note(words));
    Ok((plan, simulation))
}

/// A run that is planned, and who looks on.
struct Set<'a> {
    args: &'a RunArgs,
    experiment: &'a Experiment,
    plan: &'a Plan,
    jobs: &'a Jobs,
    server: Option<&'a Server>,
    reception: Option<&'a Reception>,
    interrupt: &'a Interrupt,
}

/// A run whose clocks have been told when to start.
struct Begun {
    fleet: Fleet,
    order: StartOrder,
    outages: Outages,
    record: Option<Record>,
    /// The order of somebody to begin, if there was one.
    given: Vec<Given>,
    warnings: Vec<String>,
}

impl Set<'_> {
    /// Starts the nodes or takes those that have registered, and measures the links between them.
    fn nodes(&self, slots: &[String]) -> Result<(Fleet, Calibration, Vec<Measured>), TooFast> {
        let Set { args, experiment, plan, interrupt, .. } = *self;
        if let Some(server) = self.server {
            server.shown.set_live(live(experiment, plan, self.jobs, true));
            if let Some(reception) = self.reception {
                // Each as soon as it is up: until all are connected may take a while.
                server.shown.look_for_nodes(&experiment.name, Arc::clone(reception.desk()));
            }
        }
        let mut fleet = match self.reception {
            Some(reception) => nodes::enlist(experiment, plan, reception, slots, interrupt),
            None => nodes::start(experiment, &plan.nodes, args.log, interrupt),
        }?;
        self.show_targets(&fleet);
        match nodes::calibrate(experiment, plan, &mut fleet, args.calibrate_only) {
            Ok((calibration, measured)) => Ok((fleet, calibration, measured)),
            Err(too_fast) => {
                // Others may be begun in their place.
                if self.reception.is_none()
                    && let Err(error) = fleet.stop(STOP_PATIENCE)
                {
                    eprintln!("note: {error}");
                }
                Err(too_fast)
            }
        }
    }

    /// Hands over the jobs, and opens the desk for orders.
    fn hand_out(&self, mut fleet: Fleet) -> anyhow::Result<Fleet> {
        fleet
            .feed(&self.jobs.arriving(self.experiment), |job| self.plan.entry(job))
            .map_err(Failure::from)?;
        for site in outages::late(&self.experiment.faults) {
            fleet.leave_out(site).context("failed to leave out a site that joins later")?;
        }
        // The run may be held for long.
        self.show_targets(&fleet);
        if let Some(server) = self.server {
            server.open_desk();
            if self.args.reception.hold {
                server.shown.change(|live| live.enter(Phase::Held));
                eprintln!("note: everything is ready; the run begins by an order to start (--hold)");
            }
        }
        Ok(fleet)
    }

    /// Waits for the order to begin, if the run is held, and starts the clocks. `record` makes what another coordinator
    /// needs, if one could go on with the run.
    fn begin(
        &self,
        mut fleet: Fleet,
        mut come: Option<&mut Receiver<Asked>>,
        record: impl Fn(StartOrder, &Outages) -> std::io::Result<Record>,
    ) -> anyhow::Result<Begun> {
        let Set { args, experiment, plan, jobs, interrupt, .. } = *self;
        let lead = START_LEAD + START_LEAD_PER_NODE * u32::try_from(plan.nodes.len()).unwrap_or(u32::MAX);
        let (begun, order, outages, record, starter) = loop {
            let mut starter = None;
            if let Some(come) = come.as_deref_mut().filter(|_| args.reception.hold) {
                let ordered =
                    orders::hold(come, &mut fleet, plan.origin, interrupt).map_err(Failure::from)?;
                let Some(start) = ordered else {
                    return Err(stopped_while_held(experiment, fleet, self.reception.is_some()).into());
                };
                starter = Some(start);
            }
            let (begun, order) = (Instant::now(), start_order(plan.factor, plan.origin, lead));
            let outages = Outages::new(&experiment.faults, plan, &jobs.arriving(experiment), order);
            let attachable = plan::may_attach(experiment) && self.reception.is_none();
            let mut record = attachable.then(|| record(order, &outages)).transpose()?;
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
                let nodes = experiment.outputs.dir.join("nodes");
                interrupt.before_the_end(move || end_all(&nodes));
            }
            break (begun, order, outages, record, starter);
        };
        let given: Vec<Given> = starter.iter().map(|starter| starter.given.clone()).collect();
        if let Err(error) = fleet.start_by(&order) {
            // Whoever watches the nodes starts it again, and tells it the time; or ends the run as at any other time.
            if record.is_none() {
                return Err(Failure::from(error).into());
            }
            eprintln!("note: not all nodes were told when trace time begins, and are told again: {error}");
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
        Ok(Begun { fleet, order, outages, record, given, warnings })
    }

    fn show_targets(&self, fleet: &Fleet) {
        if let Some(server) = self.server {
            server.shown.set_targets(reception::targets(&self.experiment.name, fleet));
        }
    }
}

/// What is to be run, if the experiment file says this; or the exit code, and why is on stderr by then.
fn understood(args: &RunArgs, text: Option<&str>) -> Result<(Experiment, Jobs), u8> {
    let (mut experiment, jobs) = load_by(&args.experiment, text)?;
    // Nodes are told in JSON where their files are.
    let dir = &experiment.outputs.dir;
    if std::path::absolute(dir).is_ok_and(|dir| dir.to_str().is_none()) {
        eprintln!(
            "error: nodes are told of their files as text, and {} is none: give --out a name in UTF-8, in a folder that has one",
            dir.display()
        );
        return Err(exit::USAGE);
    }
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
