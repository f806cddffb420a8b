//! What a run is held against: the ideal of its strategy, under free communication, and the same jobs without exchange,
//! both in virtual time.

use std::sync::Arc;

use analysis::Outcome;
use anyhow::bail;
use claims::ideal::Ideal;
use outputs::Status;
use scheduler::{Event, EventKind, Grid, LocalScheduler, Span, Strategy, StrategySpec};

use super::builder;
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
    sink: &mut impl FnMut(&Event),
) -> anyhow::Result<Status> {
    let Experiment { local, pass, submit, seed, .. } = *experiment;
    let external = experiment.external.external();
    let external = external.as_deref();
    let ideal = Ideal {
        spec,
        local,
        pass,
        submit,
        local_users: &jobs.local_users,
        grid: &experiment.grid,
        seed,
        jobs: &jobs.jobs,
        external,
    };
    match ideal.run_while(&mut |event| sink(&event), || interrupt.is_set()) {
        Ok(summary) if summary.jobs == jobs.jobs.len() => Ok(Status::Complete),
        Ok(summary) => Ok(Status::Partial(format!("interrupted after {} jobs", summary.jobs))),
        Err(error) => bail!("failed to run the reference: {error}"),
    }
}

/// The ideal run of the same jobs, where it says something that the run itself does not.
///
/// # Errors
/// If the reference refuses the workload.
pub fn beside(
    experiment: &Experiment,
    jobs: &Jobs,
    complete: bool,
    interrupt: &Interrupt,
) -> anyhow::Result<Option<Outcome>> {
    let pointless = experiment.strategy.is_free()
        || matches!(experiment.strategy.strategy, Strategy::Local | Strategy::Balance(_));
    if !experiment.outputs.ideal || pointless || !complete {
        return Ok(None);
    }
    let mut builder = builder(experiment, jobs);
    let free = experiment.strategy.freed();
    let mut fell_back = false;
    let mut progress = Progress::of("jobs of the run with free messages", jobs.jobs.len() as u64);
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

/// The same jobs with each at the site where it arrives, which no job leaves; nothing where that is the run itself.
///
/// # Errors
/// If the reference refuses the workload.
pub fn without_exchange(
    experiment: &Experiment,
    jobs: &Jobs,
    complete: bool,
    interrupt: &Interrupt,
) -> anyhow::Result<Option<Outcome>> {
    let is_it = matches!(experiment.strategy.strategy, Strategy::Local);
    // A command that decides for queues would be started for runs that nobody asked for.
    let asks = experiment.local == LocalScheduler::External;
    if !experiment.outputs.ideal || is_it || asks || !complete {
        return Ok(None);
    }
    let machines = experiment.grid.machines().map(|site| (site.name.clone(), site.processors));
    let alone = Experiment { grid: Arc::new(Grid::new(machines)?), ..experiment.clone() };
    let spec = StrategySpec { strategy: Strategy::Local, ideal: true, fetch: Span::ZERO };
    let mut builder = builder(&alone, jobs);
    let mut progress = Progress::of("jobs of the run without exchange", jobs.jobs.len() as u64);
    let status = run(&alone, spec, jobs, interrupt, &mut |event| {
        progress.event(&event.kind);
        builder.observe(event);
    })?;
    Ok((status == Status::Complete).then(|| builder.finish()))
}
