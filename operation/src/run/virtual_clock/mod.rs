//! `stealgrid run --clock virtual`: real nodes, real messages between them, and the simulator's event loop as the
//! authority over time.
//!
//! The loop is the one of [`simulator::Simulation`]; only its peers live in processes ([`remote_peers`]). The same
//! experiment is simulated one instant ahead ([`twin`]), and the run ends where the two part: then deployment
//! changes what the protocol does, which is a mistake in one of them.

pub mod remote_peers;
pub mod twin;

use std::time::{Duration, Instant};

use experiments::drive::configuration;
use experiments::drive::own::Driver;
use experiments::drive::{Ended, Sink, conclude};
use experiments::experiment::jobs::Jobs;
use experiments::experiment::{Clock, Experiment};
use experiments::interrupt::Interrupt;
use experiments::progress::Progress;
use node::lockstep::Client;
use node::telemetry::LogArgs;
use outputs::Status;
use report::Format;
use simulator::{Checks, Simulation, Violation};

use self::remote_peers::{Common, RemotePeers};
use self::twin::Twin;
use super::links::Links;
use super::nodes::{STOP_PATIENCE, start};
use super::plan;
use crate::fleet::{Fleet, FleetError};

/// Runs an experiment in lockstep, from the start of the nodes to the results.
///
/// # Errors
/// If something fails that should not.
pub fn command(
    experiment: &Experiment,
    jobs: &Jobs,
    interrupt: &Interrupt,
    log: LogArgs,
    format: Format,
) -> anyhow::Result<u8> {
    let nodes = plan::nodes_in_lockstep(experiment);
    // Before the nodes, whose logs go into the same directory.
    let mut sink = Sink::new(experiment, jobs, Driver::RunVirtual)?;
    let fleet = match start(experiment, &nodes, log, interrupt) {
        Ok(fleet) => fleet,
        Err(failure) => return Ok(failure.say()),
    };
    let ended = drive(experiment, jobs, fleet, &mut sink, interrupt)?;
    Ok(conclude(experiment, jobs, sink, ended, interrupt, format)?.code)
}

/// How a run in lockstep ended.
enum Ending {
    Finished(RunTotals),
    /// At an instant of trace time, in seconds.
    Interrupted(String),
    /// The run and its simulation part.
    Differs(String),
    /// A node cannot be told something any more.
    Lost {
        reason: String,
        log: Option<String>,
    },
    /// The run or the simulation did what must not happen.
    Violated(Violation),
}

/// What a complete run did, and how fast.
struct RunTotals {
    messages: u64,
    orders: u64,
    wall: Duration,
}

/// From the first order to the end of the nodes.
fn drive(
    experiment: &Experiment,
    jobs: &Jobs,
    mut fleet: Fleet,
    sink: &mut Sink,
    interrupt: &Interrupt,
) -> anyhow::Result<Ended> {
    let config = configuration(experiment, jobs, Checks::Cheap);
    let arriving = jobs.arriving(experiment);
    let mut twin = Twin::new(config.clone(), &arriving);
    let common = Common {
        grid: &experiment.grid,
        jobs: &arriving,
        message_events: experiment.options.message_events,
        patience: experiment.run.stall_timeout,
        interrupt,
    };
    let mut ending = match begin(&mut fleet, common) {
        Ok(host) => {
            let mut run = Simulation::over(host, config, &arriving);
            let ending = in_step(&mut run, &mut twin, arriving.len(), sink, interrupt);
            let links =
                Links::modelled(&experiment.grid, &experiment.network, |from, to| run.host().delay(from, to));
            links.write(&experiment.outputs.dir.join("links.csv"), &experiment.grid)?;
            ending.unwrap_or_else(|violation| lost_or_violated(violation, experiment, &mut fleet, interrupt))
        }
        Err(violation) => lost_or_violated(violation, experiment, &mut fleet, interrupt),
    };
    let mut warnings = Vec::new();
    if let Err(error) = fleet.stop(STOP_PATIENCE)
        && matches!(ending, Ending::Finished(_))
    {
        warnings.push(error.to_string());
    }
    let mut lines = Vec::new();
    if let Ending::Finished(totals) = &ending {
        match twin.finish() {
            Ok(identical) => {
                lines.push(totals.line());
                lines.push(identical.to_string());
            }
            Err(difference) => ending = Ending::Differs(difference),
        }
    }
    let mut violation = None;
    let mut out_of_tolerance = false;
    let status = match ending {
        Ending::Finished(_) => Status::Complete,
        Ending::Interrupted(at) => Status::Partial(format!("interrupted at {at} s")),
        Ending::Differs(difference) => {
            out_of_tolerance = true;
            eprintln!("error: the nodes did not do what the simulation does: {difference}");
            Status::Partial(format!("not what the simulation does: {difference}"))
        }
        Ending::Lost { reason, log } => {
            eprintln!("error: {reason}");
            warnings.extend(log.map(|log| format!("the log of that node ends with\n{log}")));
            Status::Partial(reason)
        }
        Ending::Violated(what) => {
            violation = Some(what.to_string());
            Status::Partial(what.to_string())
        }
    };
    Ok(Ended {
        scraped: None,
        driver: "run",
        clock: Clock::Virtual.to_string(),
        status,
        violation,
        calibration: None,
        warnings,
        lines,
        out_of_tolerance,
        compared: None,
        orders: Vec::new(),
        bars: None,
    })
}

/// Connects to all nodes and gives the first orders.
fn begin<'a>(fleet: &mut Fleet, common: Common<'a>) -> Result<RemotePeers<'a>, Violation> {
    let clients: Vec<Client> = fleet
        .lockstep(common.patience)
        .map_err(|(site, error)| Violation::Host { site, reason: error.to_string() })?;
    RemotePeers::begin(common, clients)
}

/// Goes through all instants, the simulation always one ahead.
fn in_step(
    run: &mut Simulation<'_, RemotePeers<'_>>,
    twin: &mut Twin<'_>,
    jobs: usize,
    sink: &mut Sink,
    interrupt: &Interrupt,
) -> Result<Ending, Violation> {
    let begun = Instant::now();
    let mut progress = Progress::new(jobs);
    while let Some(at) = run.next_instant() {
        if interrupt.is_set() {
            return Ok(Ending::Interrupted(at.to_string()));
        }
        twin.advance()?;
        let advanced = run.advance_over(&mut |event| {
            progress.event(&event.kind);
            twin.compare(event);
            sink.take(event);
        });
        let same = match &advanced {
            Ok(_) => twin.instant_over(),
            // What is missing of the instant is missing because it was cut short.
            Err(_) => twin.difference().is_none(),
        };
        if !same {
            let difference = twin.difference().expect("something is not the same");
            return Ok(Ending::Differs(difference.to_string()));
        }
        advanced?;
    }
    run.check_end()?;
    let (messages, orders) = (run.totals().messages, run.host().orders());
    Ok(Ending::Finished(RunTotals { messages, orders, wall: begun.elapsed() }))
}

/// Why the loop stopped, if it did not by itself.
fn lost_or_violated(
    violation: Violation,
    experiment: &Experiment,
    fleet: &mut Fleet,
    interrupt: &Interrupt,
) -> Ending {
    if let stalled @ Violation::Stalled { .. } = violation {
        return Ending::Lost { reason: stalled.to_string(), log: None };
    }
    let Violation::Host { site, reason } = violation else { return Ending::Violated(violation) };
    if interrupt.is_set() {
        return Ending::Interrupted("an order that was not answered".to_string());
    }
    match fleet.first_ended() {
        Some(FleetError::Ended { name, status, log }) => {
            Ending::Lost { reason: format!("node {name} ended with {status} during the run"), log: Some(log) }
        }
        _ => {
            let name = &experiment.grid.site(site).name;
            Ending::Lost { reason: format!("node {name} cannot be kept in lockstep: {reason}"), log: None }
        }
    }
}

impl RunTotals {
    fn line(&self) -> String {
        let RunTotals { messages, orders, wall } = self;
        let each = wall.as_secs_f64() * 1e6 / (*orders).max(1) as f64;
        format!(
            "lockstep: {orders} orders, {messages} messages over libp2p, {:.1} s of the wall clock ({each:.0} us an \
             order)",
            wall.as_secs_f64()
        )
    }
}
