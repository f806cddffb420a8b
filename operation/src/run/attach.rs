//! `stealgrid attach`: goes on with a run whose coordinator was killed, from where its nodes are by now.
//!
//! What is left of the run: nodes that work on, journals of those that do not, and a [`Record`]. The nodes are taken
//! over or started again, get the jobs and the order to start that they have not got, and tell all events from the
//! first on; from there everything is as in [`super`].

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use clap::Parser as _;
use experiments::drive::own::{self, NotFree};
use experiments::drive::{Concluded, Sink, builder, conclude_as};
use experiments::exit;
use experiments::experiment::jobs::Jobs;
use experiments::experiment::{Clock, Experiment};
use experiments::interrupt::Interrupt;
use experiments::terminal::{LOGGED, note};
use node::clock::StartOrder;
use node::journal::inspect::Remains;
use node::telemetry::LogArgs;
use outputs::orders::injected;
use report::Format;
use scheduler::{EventKind, JobId, SiteId, TimedJob};

use super::calibration::Calibration;
use super::course::{Course, drive, live};
use super::nodes::{Failure, node_arguments, node_program};
use super::orders::{self, Orders};
use super::outages::Outages;
use super::plan::{self, Plan};
use super::reception;
use super::record::Record;
use super::{RunArgs, understood};
use crate::fleet::{Adopted, Fleet, end_all};
use crate::serve::Server;
use crate::spawn::SpawnOrder;

/// Go on with a run whose coordinator was killed, with the nodes that it has left and the journals of the others
///
/// The nodes must keep journals ([node] journal). They work on without a coordinator for as long as
/// node.orphan_patience says; those that have ended are started again. The page is served where --serve had it, without
/// orders and until the run ends. Everything else is as for `stealgrid run`.
///
/// Exit codes: 0 done, 2 usage, 3 there is no such run in the directory, it has ended or has a coordinator, what it
/// reads was changed, or a journal is damaged or missing, 4 stopped before the end, 5 a proved bound does not hold, or
/// the run is not one that simulations of it could be, 6 not measured: the machine could not keep to the configured
/// delays.
#[derive(Clone, Debug, clap::Args)]
pub struct AttachArgs {
    /// The result directory of the run
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,

    /// Do not go on: collect what has happened, end the nodes and write partial results, as Ctrl-C does
    #[arg(long)]
    pub stop: bool,

    /// How the summary is printed: terminal, markdown, json, csv
    #[arg(long, value_name = "FORMAT", default_value = "terminal")]
    pub format: Format,
}

/// The command line of a run that can be gone on with.
#[derive(clap::Parser)]
struct Line {
    #[command(subcommand)]
    command: Typed,
}

#[derive(clap::Subcommand)]
enum Typed {
    Run(Box<RunArgs>),
}

/// Runs the command.
///
/// # Errors
/// If something fails that should not.
pub fn command(args: &AttachArgs) -> anyhow::Result<u8> {
    let refused = |reason: &dyn std::fmt::Display| {
        eprintln!("error: failed to attach to {}: {reason}", args.dir.display());
        Ok(exit::INPUT)
    };
    let dir = match std::fs::canonicalize(&args.dir) {
        Ok(dir) => dir,
        Err(error) => return refused(&error),
    };
    // Nothing is made in a directory that is none of a run.
    let mut record = match Record::read(&dir) {
        Ok(record) => record,
        Err(error) => return refused(&error),
    };
    // Paths of the experiment and of the nodes are relative to it.
    if let Err(error) = std::env::set_current_dir(&record.folder) {
        return refused(&format!("its run was started in {}: {error}", record.folder.display()));
    }
    let (run, mut experiment, jobs) = match load(&record) {
        Ok(loaded) => loaded,
        Err(code) => return Ok(code),
    };
    let mut claim = match own::resume(&dir, &experiment, &record.command) {
        Err(error) if error.is::<NotFree>() => return refused(&"its coordinator is alive"),
        claim => claim?,
    };
    let _telemetry = run.log.start(LOGGED)?;
    if let Err(error) = record.check(&experiment, &jobs) {
        return refused(&error);
    }
    let interrupt = Interrupt::on_signals()?;
    if args.stop {
        interrupt.set();
    }
    experiment.run.clock = Some(Clock::Scaled(record.start.factor));
    // With the factor given, the plan does not depend on how long the simulation takes.
    let plan = Plan::new(&experiment, &jobs, &builder(&experiment, &jobs).finish())?;
    if !experiment.network.is_lossless() {
        experiment.options.retry = plan.options().retry;
    }
    let known = jobs;
    let jobs = known.with(injected(&record.orders).collect());
    let clock = orders::clock(&record.orders, record.start);
    let (Adopted { fleet, remains, forgotten, .. }, warnings) =
        match take_over(&experiment, &jobs, &plan, &record, &clock, run.log) {
            Ok(taken) => taken,
            Err(failure) => return Ok(failure.say()),
        };
    let nodes = experiment.outputs.dir.join("nodes");
    interrupt.before_the_end(move || end_all(&nodes));
    let outages = Outages::new(&experiment.faults, &plan, &jobs.arriving(&experiment), clock);
    record.past.forget(&forgotten);
    let outages = outages.resumed(record.past.clone(), remains, &fleet);
    record.attached += 1;
    record.past.clone_from(outages.past());
    record.write()?;
    claim.go_on()?;
    let mut sink = Sink::over(claim, &experiment, &jobs)?;
    let server = if args.stop { None } else { served(&run) };
    if let Some(server) = &server {
        server.shown.set_live(live(&experiment, &plan, &jobs, false));
        server.shown.set_targets(reception::targets(&experiment.name, &fleet));
    }
    let course = Course {
        experiment: &experiment,
        plan: &plan,
        jobs: &jobs,
        warnings: [vec![times(record.attached)], warnings].concat(),
        simulated: &|| plan::simulated(&experiment, &known, &interrupt),
        interrupt: &interrupt,
        server: server.as_ref(),
        source: run.scrape.source(&experiment.name),
        orders: Orders::new(None, record.orders.clone(), &jobs.arriving(&experiment), record.start),
        outages,
        record: Some(&mut record),
    };
    let (mut ended, jobs) = drive(course, fleet, &mut sink)?;
    let tolerance = experiment.run.calibration_tolerance;
    let calibration =
        Calibration::new(&record.calibration, &experiment.network, plan.origin, plan.factor, tolerance);
    calibration.tell(&experiment.grid, &mut ended);
    let command = record.command.clone();
    let Concluded { code, left } =
        conclude_as(command, &experiment, &jobs, sink, ended, &interrupt, args.format)?;
    record.over(left)?;
    Ok(code)
}

/// The page, metrics and addresses of nodes where the run had them. Without them the run goes on: they may be in the way of
/// another's, and who attaches wants the results.
fn served(run: &RunArgs) -> Option<Server> {
    match run.reception.open() {
        // Orders are not taken: nobody has their token.
        Ok(opened) => opened.server,
        Err(error) => {
            note(&format!("no page is served: {error:#}"));
            None
        }
    }
}

/// What was run, as its command line says; the exit code if that is impossible.
fn load(record: &Record) -> Result<(RunArgs, Experiment, Jobs), u8> {
    let Ok(Line { command: Typed::Run(run) }) = Line::try_parse_from(&record.arguments) else {
        eprintln!("error: failed to understand the command line of the run: {}", record.command);
        return Err(exit::INPUT);
    };
    let (experiment, jobs) = understood(&run, record.experiment.as_deref())?;
    Ok((*run, experiment, jobs))
}

/// Takes over the nodes and tells them what they have not been told; also what sites that never come back have left, and
/// what the reader should know.
fn take_over(
    experiment: &Experiment,
    jobs: &Jobs,
    plan: &Plan,
    record: &Record,
    clock: &StartOrder,
    log: LogArgs,
) -> Result<(Adopted, Vec<String>), Failure> {
    let folder = experiment.outputs.dir.join("nodes");
    let order = SpawnOrder { program: node_program()?, arguments: node_arguments(log), folder };
    let sites: Vec<String> = experiment.grid.sites().iter().map(|site| site.name.clone()).collect();
    let failed = |error: crate::fleet::FleetError| match error.is_about_a_journal() {
        true => Failure {
            reason: format!(
                "failed to take over the nodes: {error}\nnothing was changed, and nodes that run go on; attach again when \
                 the journal is whole and where it was"
            ),
            code: exit::INPUT,
        },
        false => Failure {
            reason: format!("failed to take over the nodes: {error}\n`stealgrid attach` can try again"),
            // Nothing is wrong with the run, which is as incomplete as before.
            code: if error.is_for_want_of_room() { exit::INCOMPLETE } else { exit::UNEXPECTED },
        },
    };
    // On this thread, which lives as long as the process: the kernel ends a node with the thread that started it.
    let (away, lost) = (record.past.away(), record.past.lost());
    let mut adopted = Fleet::adopt(&order, &sites, &away, &lost, plan.may_lose()).map_err(failed)?;
    let Adopted { fleet, started, remains, put_back, .. } = &mut adopted;
    record.past.bystanders().into_iter().for_each(|site| fleet.leave_unlisted(site));
    let arriving = jobs.arriving(experiment);
    let holders = holders(&arriving, plan, record, remains);
    let held = arriving.iter().filter(|job| holders.contains_key(&job.spec.id));
    let held: Vec<TimedJob> = held.copied().collect();
    // What a node does not hear because it has just ended, it is told at the next look.
    let told = fleet.feed(&held, |job| holders[&job.spec.id]).and_then(|()| fleet.start_by(clock));
    let late = told.unwrap_or_else(|error| {
        eprintln!("note: not all nodes were told what is to be done, and are told again: {error}");
        0
    });
    let mut warnings = Vec::new();
    for site in put_back.iter() {
        warnings.push(format!(
            "the journal of {} is there again, but the site was given up and others have its jobs: it only says what the \
             site did",
            sites[site.index()]
        ));
    }
    if !started.is_empty() {
        let all = started.len() == sites.len();
        warnings.push(format!(
            "{} had ended and were started again with their journals{}",
            started.join(", "),
            if all { "; until then nothing was executed, while trace time went on" } else { "" }
        ));
    }
    if late > 0 {
        warnings.push(format!(
            "{late} nodes were told only now when trace time began; their first events are late"
        ));
    }
    warnings.iter().for_each(|warning| note(warning));
    Ok((adopted, warnings))
}

/// Who is to submit each job, but for those that sites which never come back have submitted.
fn holders(
    jobs: &[TimedJob],
    plan: &Plan,
    record: &Record,
    remains: &BTreeMap<SiteId, Remains>,
) -> BTreeMap<JobId, SiteId> {
    let submitted = |remains: &Remains| -> BTreeSet<JobId> {
        let job = |kind: &EventKind| match kind {
            EventKind::Submitted { job, .. } => Some(*job),
            _ => None,
        };
        remains.events.iter().filter_map(|event| job(&event.kind)).collect()
    };
    let submitted: BTreeMap<SiteId, _> =
        remains.iter().map(|(site, remains)| (*site, submitted(remains))).collect();
    let entries: BTreeMap<JobId, SiteId> =
        record.orders.iter().filter_map(|given| Some((given.job?.spec.id, given.entry?))).collect();
    let (grid, failover) = (plan.grid(), plan.options().broker.failover);
    let holder = |job: &TimedJob| {
        let id = job.spec.id;
        let meant = entries.get(&id).copied().unwrap_or_else(|| plan.entry(job));
        let has = |site: SiteId| match submitted.get(&site) {
            Some(jobs) => jobs.contains(&id),
            // Its journal was lost, whatever is there now: it may have, if it was there when it was time. So the
            // coordinator decided that gave it up.
            None => record.past.may_have_submitted(site, &job.spec),
        };
        Some((id, record.past.holder(&grid, failover, meant, &job.spec, has)?))
    };
    jobs.iter().filter_map(holder).collect()
}

fn times(attached: u32) -> String {
    let times = if attached == 1 { "once".to_string() } else { format!("{attached} times") };
    format!("the coordinator ended before the run, and another was attached: {times}")
}
