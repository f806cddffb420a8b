//! What a run is held against: the ideal of its strategy, at zero latency, and the same jobs without exchange,
//! both in virtual time.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use analysis::Outcome;
use anyhow::{Context as _, bail};
use claims::ideal::Ideal;
use links::Model;
use outputs::{Overloaded, Status};
use protocol::Terms;
use scheduler::{Event, EventKind, Grid, LocalScheduler, Span, Strategy, StrategySpec, Submit};
use simulator::{Checks, Simulation};
use workload::deal::Deal;

use super::{builder, configuration};
use crate::experiment::Experiment;
use crate::experiment::jobs::Jobs;
use crate::interrupt::Interrupt;
use crate::progress::Progress;

/// Runs the ideal of a strategy.
///
/// # Errors
/// If the reference refuses the workload.
pub fn run(
    experiment: &Experiment,
    spec: StrategySpec,
    jobs: &Jobs,
    interrupt: &Interrupt,
    sink: &mut dyn FnMut(&Event),
) -> anyhow::Result<Status> {
    let ideal = Ideal {
        terms: &Terms { strategy: spec.strategy, ..experiment.terms() },
        fetch: spec.fetch,
        submit: experiment.submit,
        local_users: &jobs.local_users,
        jobs: &jobs.jobs,
    };
    match ideal.run_while(&mut |event| sink(&event), &|| interrupt.is_set()) {
        Ok(summary) if summary.jobs == jobs.jobs.len() => Ok(Status::Complete),
        Ok(summary) => Ok(Status::Partial(format!("interrupted after {} jobs", summary.jobs))),
        Err(error) => bail!("failed to run the reference: {error}"),
    }
}

/// What a complete run is held against.
#[derive(Debug)]
pub struct Bars {
    /// The same jobs and strategy where messages take no time.
    pub ideal: anyhow::Result<Option<Outcome>>,
    /// The same jobs without exchange, and dealt to all sites.
    pub local: anyhow::Result<(Option<Outcome>, Option<Outcome>)>,
}

impl Bars {
    /// Simulates them. Progress is shown from the moment that `shown` says so.
    pub fn of(experiment: &Experiment, jobs: &Jobs, interrupt: &Interrupt, shown: &Arc<AtomicBool>) -> Bars {
        Bars {
            ideal: beside(experiment, jobs, interrupt, shown),
            local: baselines(experiment, jobs, interrupt, shown),
        }
    }

    /// Of a run that is not complete.
    pub fn none() -> Bars {
        Bars { ideal: Ok(None), local: Ok((None, None)) }
    }
}

/// The same jobs and strategy where messages take no time, where that says something that the run itself does not: the
/// ideal of a strategy that has one, else the same protocol over links without delay.
///
/// # Errors
/// If the reference refuses the workload.
fn beside(
    experiment: &Experiment,
    jobs: &Jobs,
    interrupt: &Interrupt,
    shown: &Arc<AtomicBool>,
) -> anyhow::Result<Option<Outcome>> {
    let pointless = experiment.strategy.is_free() || !experiment.strategy.strategy.nature().talks;
    if !experiment.outputs.ideal || pointless {
        return Ok(None);
    }
    let strategy = &experiment.strategy.strategy;
    // That of a global queue knows nothing of nodes.
    let of_nodes = strategy.pool().is_some() && experiment.grid.is_shared();
    if !strategy.nature().has_ideal || of_nodes {
        return at_zero_latency(experiment, jobs, interrupt, shown);
    }
    let mut builder = builder(experiment, jobs);
    let free = experiment.strategy.freed();
    let mut fell_back = false;
    let mut progress =
        Progress::of("jobs of the run at zero latency", jobs.jobs.len() as u64).shown_if(shown);
    let status = run(experiment, free, jobs, interrupt, &mut |event| {
        progress.event(&event.kind);
        fell_back |= matches!(event.kind, EventKind::FellBack { .. });
        builder.observe(event);
    })?;
    if fell_back {
        eprintln!("warning: the run is not compared with the ideal one, whose external strategy failed");
        return Ok(None);
    }
    Ok((status == Status::Complete).then(|| builder.finish()))
}

/// The same peers over links that neither delay nor lose anything, without faults.
fn at_zero_latency(
    experiment: &Experiment,
    jobs: &Jobs,
    interrupt: &Interrupt,
    shown: &Arc<AtomicBool>,
) -> anyhow::Result<Option<Outcome>> {
    let free = Experiment { network: Model::ZERO, faults: Vec::new(), ..experiment.clone() };
    let mut builder = builder(&free, jobs);
    let mut progress =
        Progress::of("jobs of the run at zero latency", jobs.jobs.len() as u64).shown_if(shown);
    let mut simulation = Simulation::new(configuration(&free, jobs, Checks::Cheap), &jobs.jobs);
    let mut observe = |event: &Event| {
        progress.event(&event.kind);
        builder.observe(event);
    };
    while simulation.advance(&mut observe).context("the run at zero latency failed")? {
        if interrupt.is_set() {
            return Ok(None);
        }
    }
    simulation.finish().context("the run at zero latency failed")?;
    Ok(Some(builder.finish()))
}

/// The same jobs with each at the site where it arrives, which no job leaves; and, if most arrive at one site, the same with
/// jobs that arrive in proportion to processors. Nothing where that is the run itself.
///
/// # Errors
/// If the reference refuses the workload.
fn baselines(
    experiment: &Experiment,
    jobs: &Jobs,
    interrupt: &Interrupt,
    shown: &Arc<AtomicBool>,
) -> anyhow::Result<(Option<Outcome>, Option<Outcome>)> {
    let is_it = !experiment.strategy.strategy.nature().talks;
    // A command that decides for queues would be started for runs that nobody asked for.
    let asks = experiment.local == LocalScheduler::External;
    if !experiment.outputs.ideal || is_it || asks {
        return Ok((None, None));
    }
    // What is spread over sites has no place without exchange.
    let widest = experiment.grid.widest();
    if jobs.jobs.iter().any(|job| job.spec.processors > widest) {
        return Ok((None, None));
    }
    let machines = experiment.grid.machines().map(|site| (site.name.clone(), site.processors));
    let nodes = experiment.grid.machines().map(|site| experiment.grid.cluster(site.id).cloned());
    let machines = Grid::new(machines)?.with_clusters(nodes)?;
    let alone = Experiment { grid: Arc::new(machines), ..experiment.clone() };
    let what = "jobs of the run without exchange";
    let local = without_exchange(&alone, jobs, interrupt, what, shown)?;
    if local.as_ref().and_then(Overloaded::of).is_none() {
        return Ok((local, None));
    }
    let mut dealt = jobs.clone();
    Deal::Processors.deal(&mut dealt.jobs, &alone.grid);
    let alone = Experiment { submit: Submit::Origin, ..alone };
    let what = "jobs of the run without exchange, dealt to all sites";
    let dealt = without_exchange(&alone, &dealt, interrupt, what, shown)?;
    Ok((local, dealt))
}

/// These jobs at the sites where they arrive; nothing if interrupted.
fn without_exchange(
    experiment: &Experiment,
    jobs: &Jobs,
    interrupt: &Interrupt,
    what: &'static str,
    shown: &Arc<AtomicBool>,
) -> anyhow::Result<Option<Outcome>> {
    let spec = StrategySpec { strategy: Strategy::Local, ideal: true, fetch: Span::ZERO };
    let mut builder = builder(experiment, jobs);
    let mut progress = Progress::of(what, jobs.jobs.len() as u64).shown_if(shown);
    let status = run(experiment, spec, jobs, interrupt, &mut |event| {
        progress.event(&event.kind);
        builder.observe(event);
    })?;
    Ok((status == Status::Complete).then(|| builder.finish()))
}
