//! The nodes of a run until its clocks start: begun here or taken as they registered, connected, and their links
//! measured. How a run fails that has not begun is said here.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use experiments::exit;
use experiments::experiment::Experiment;
use experiments::interrupt::Interrupt;
use node::NodeConfig;
use node::control::api::Calibration as Measured;
use node::telemetry::LogArgs;

use super::calibration::{self, Calibration};
use super::plan::Plan;
use super::reception::Reception;
use super::watch;
use crate::fleet::{Fleet, FleetError};
use crate::spawn::{SpawnError, SpawnOrder};

/// How long a node may take to stop before it is killed.
pub(super) const STOP_PATIENCE: Duration = Duration::from_secs(5);
/// So many nodes take seconds to start, which is said before. Arbitrary.
const MANY: usize = 50;
/// Why nothing was run.
#[derive(Debug, thiserror::Error)]
#[error("{reason}")]
pub(super) struct Failure {
    /// Empty if the user was told already.
    pub(super) reason: String,
    /// The exit code.
    pub(super) code: u8,
}

impl Failure {
    /// One that the user was told of.
    pub(super) fn said(code: u8) -> Failure {
        Failure { reason: String::new(), code }
    }

    /// Tells the user, and what the exit code is.
    pub(super) fn say(&self) -> u8 {
        if !self.reason.is_empty() {
            eprintln!("error: {}", self.reason);
        }
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

/// Why the clocks were not started: mostly that links cannot keep to their delays with this clock.
#[derive(Debug)]
pub(super) struct TooFast {
    /// The factor of a clock with which they could, if that is the reason.
    pub(super) slower: Option<f64>,
    /// What is said if no other is tried.
    pub(super) failure: Failure,
}

impl From<Failure> for TooFast {
    fn from(failure: Failure) -> TooFast {
        TooFast { slower: None, failure }
    }
}

/// What this program is called with to be a node, before the arguments of that one.
pub(super) fn node_arguments(log: LogArgs) -> Vec<String> {
    std::iter::once("node".to_string()).chain(log.to_arguments()).collect()
}

/// Starts the nodes and waits until they are connected.
pub(super) fn start(
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
    if nodes.len() >= MANY {
        eprintln!("note: starting {} nodes and connecting each with each", nodes.len());
    }
    // On this thread, which lives as long as the process: the kernel ends a node with the thread that started it.
    let mut fleet = Fleet::spawn_each(&order, nodes).map_err(|error| port_in_use(nodes, error))?;
    connect(experiment, &mut fleet, interrupt)?;
    Ok(fleet)
}

/// Makes sites of nodes that have registered and waits until they are connected.
pub(super) fn enlist(
    experiment: &Experiment,
    plan: &Plan,
    reception: &Reception,
    slots: &[String],
    interrupt: &Interrupt,
) -> Result<Fleet, Failure> {
    let failed = |error: anyhow::Error| Failure { reason: format!("{error:#}"), code: exit::INCOMPLETE };
    let mut fleet = reception.enlist(experiment, plan, slots).map_err(failed)?;
    connect(experiment, &mut fleet, interrupt)?;
    Ok(fleet)
}

/// The program that is a node with its command of that name: this one.
pub(super) fn node_program() -> Result<PathBuf, Failure> {
    std::env::current_exe().map_err(|error| Failure {
        reason: format!("failed to find this executable: {error}"),
        code: exit::UNEXPECTED,
    })
}

/// Measures all links and writes what was found. Fails if the run could not keep to its delays, unless it is only
/// to be looked at.
pub(super) fn calibrate(
    experiment: &Experiment,
    plan: &Plan,
    fleet: &mut Fleet,
    look_only: bool,
) -> Result<(Calibration, Vec<Measured>), TooFast> {
    let measured = fleet.calibrate(calibration::ROUNDS).map_err(Failure::from)?;
    let tolerance = experiment.run.calibration_tolerance;
    let found = Calibration::new(&measured, &experiment.network, plan.origin, plan.factor, tolerance);
    let path = experiment.outputs.dir.join("calibration.csv");
    found
        .write(&path, &experiment.grid)
        .map_err(|error| Failure { reason: format!("{error:#}"), code: exit::UNEXPECTED })?;
    match found.refusal(&experiment.grid) {
        Some(refusal) if !look_only => {
            let reason = format!("failed to {refusal}\nall links are in {}", path.display());
            Err(TooFast { slower: found.slower(), failure: Failure { reason, code: exit::NOT_MEASURED } })
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

/// Ends the nodes of a run that nobody ordered to start, and says why nothing was run.
pub(super) fn stopped_while_held(experiment: &Experiment, fleet: Fleet, registered: bool) -> Failure {
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
    let reason = format!(
        "stopped before the order to start (--hold): nothing was run, and there are no results; {logs}; start the \
         run again"
    );
    Failure { reason, code: exit::INCOMPLETE }
}
