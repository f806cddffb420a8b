//! `stealgrid simulate`: peers, or the ideal reference, in virtual time.

mod faulty;

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use outputs::Status;
use scheduler::Event;
use simulator::{Checks, Simulation, Violation};

use super::aside::Aside;
use super::ideal::Bars;
use super::own::{self, Driver};
use super::{Ended, Sink, conclude, configuration, ideal, record};
use crate::exit;
use crate::experiment::flags::ExperimentArgs;
use crate::experiment::jobs::{self, Jobs};
use crate::experiment::{Clock, Experiment};
use crate::interrupt::Interrupt;
use crate::progress::Progress;
use crate::terminal::note;

/// Simulate an experiment: the peers of all sites, or the ideal reference, in virtual time.
///
/// Exit codes: 0 done, 2 usage, 3 unreadable input, 4 stopped before the end, 5 a proved bound does not hold,
/// 7 an external strategy failed and its fallback decided.
#[derive(Clone, Debug, clap::Args)]
pub struct SimulateArgs {
    /// What to run.
    #[command(flatten)]
    pub experiment: ExperimentArgs,

    /// Check conservation and every peer's state after every step (slow)
    #[arg(long, help_heading = "Run")]
    pub check: bool,
}

/// Runs the command.
///
/// # Errors
/// If something fails that should not.
pub fn command(args: &SimulateArgs) -> anyhow::Result<u8> {
    let (mut experiment, jobs) = match load(&args.experiment) {
        Ok(loaded) => loaded,
        Err(code) => return Ok(code),
    };
    if args.experiment.clock.is_some() && matches!(experiment.run.clock, Some(Clock::Scaled(_))) {
        eprintln!(
            "error: simulate has virtual time; use --clock virtual, or `stealgrid run` for a scaled clock"
        );
        return Ok(exit::USAGE);
    }
    Driver::Simulate.places(&mut experiment.outputs);
    let interrupt = Interrupt::on_signals()?;
    let sink = Sink::new(&experiment, &jobs, Driver::Simulate)?;
    let checks = if args.check { Checks::Full } else { Checks::Cheap };
    let (ended, sink) = beside_its_bars(&experiment, &jobs, checks, &interrupt, sink)?;
    Ok(conclude(&experiment, &jobs, sink, ended, &interrupt, args.experiment.format)?.code)
}

/// Simulates once more and writes the result directory of the experiment, without printing anything.
///
/// # Errors
/// If the run or the results fail.
pub fn keep(experiment: &Experiment, jobs: &Jobs, command: &str) -> anyhow::Result<()> {
    let interrupt = Interrupt::default();
    let claim = own::begin(experiment, Driver::Simulate, command)?;
    let sink = Sink::over(claim, experiment, jobs)?;
    let (ended, sink) = beside_its_bars(experiment, jobs, Checks::Cheap, &interrupt, sink)?;
    record(experiment, jobs, sink, ended, &interrupt, command.to_string())?;
    Ok(())
}

/// Reads an experiment and its jobs.
///
/// # Errors
/// The exit code if that is impossible; why is on stderr by then.
pub fn load(args: &ExperimentArgs) -> Result<(Experiment, Jobs), u8> {
    load_by(args, text(args)?.as_deref())
}

/// What the experiment file says, if there is one.
///
/// # Errors
/// As for [`load`].
pub fn text(args: &ExperimentArgs) -> Result<Option<String>, u8> {
    args.text().map_err(|error| complain(&error, exit::INPUT))
}

fn complain(error: &dyn std::fmt::Display, code: u8) -> u8 {
    eprintln!("error: failed to {error}");
    code
}

/// Reads an experiment whose file says this, and its jobs.
///
/// # Errors
/// As for [`load`].
pub fn load_by(args: &ExperimentArgs, text: Option<&str>) -> Result<(Experiment, Jobs), u8> {
    let written = args.written_by(text).map_err(|error| complain(&error, exit::INPUT))?;
    let mut experiment = Experiment::resolve(&written).map_err(|error| match args.mistaken(&error) {
        Some(reason) => complain(&reason, exit::INPUT),
        None => complain(&args.blame(&error, text), args.code(&error)),
    })?;
    experiment.outputs.replace = args.replace;
    let jobs = jobs::read(&experiment).map_err(|error| complain(&error, exit::INPUT))?;
    let nature = experiment.strategy.strategy.nature();
    if !nature.queues && (args.local.is_some() || args.pass.is_some() || args.backfill.is_some()) {
        note(&format!(
            "{} has no local schedulers: --local, --backfill and --pass change nothing",
            experiment.strategy
        ));
    }
    if (!nature.talks || experiment.strategy.ideal) && args.delay.is_some() {
        note(&format!("{} sends no messages: --delay changes nothing", experiment.strategy));
    }
    if let Some(words) = jobs.of_nobody(&experiment) {
        note(words);
    }
    jobs.notes.iter().for_each(|words| note(words));
    Ok((experiment, jobs))
}

/// Simulates an experiment, and at the same time what it is held against.
///
/// # Errors
/// As [`simulate`].
fn beside_its_bars(
    experiment: &Experiment,
    jobs: &Jobs,
    checks: Checks,
    interrupt: &Interrupt,
    sink: Sink,
) -> anyhow::Result<(Ended, Sink)> {
    // Two at a time would ask a command of the user's at a time.
    if experiment.external.external().is_some() {
        let mut sink = sink;
        let ended = simulate(experiment, jobs, checks, interrupt, &mut |event| sink.take(event))?;
        return Ok((ended, sink));
    }
    let shown = Arc::new(AtomicBool::new(false));
    thread::scope(|scope| {
        let bars = scope.spawn(|| Bars::of(experiment, jobs, interrupt, &shown));
        let mut aside = Aside::new(sink);
        let ended = simulate(experiment, jobs, checks, interrupt, &mut |event| aside.take(event));
        let sink = aside.finish();
        shown.store(true, Ordering::Relaxed);
        let bars = bars.join().unwrap_or_else(|panic| resume_unwind(panic));
        Ok((Ended { bars: Some(bars), ..ended? }, sink))
    })
}

/// Runs an experiment in virtual time.
///
/// # Errors
/// If the reference refuses the workload.
pub fn simulate(
    experiment: &Experiment,
    jobs: &Jobs,
    checks: Checks,
    interrupt: &Interrupt,
    sink: &mut dyn FnMut(&Event),
) -> anyhow::Result<Ended> {
    let mut progress = Progress::new(jobs.jobs.len());
    let mut sink = |event: &Event| {
        progress.event(&event.kind);
        sink(event);
    };
    let (status, violation) = if experiment.strategy.ideal {
        (ideal::run(experiment, experiment.strategy, jobs, interrupt, &mut sink)?, None)
    } else if !experiment.faults.is_empty() {
        faulty::run(experiment, jobs, checks, interrupt, &mut sink)
    } else {
        peers(experiment, jobs, checks, interrupt, &mut sink)
    };
    Ok(Ended {
        scraped: None,
        driver: "simulate",
        clock: Clock::Virtual.to_string(),
        status,
        violation,
        calibration: None,
        warnings: Vec::new(),
        lines: Vec::new(),
        out_of_tolerance: false,
        compared: None,
        orders: Vec::new(),
        bars: None,
    })
}

fn peers(
    experiment: &Experiment,
    jobs: &Jobs,
    checks: Checks,
    interrupt: &Interrupt,
    sink: &mut dyn FnMut(&Event),
) -> (Status, Option<String>) {
    let arriving = jobs.arriving(experiment);
    let mut simulation = Simulation::new(configuration(experiment, jobs, checks), &arriving);
    let ended = loop {
        if interrupt.is_set()
            && let Some(at) = simulation.next_instant()
        {
            return (Status::Partial(format!("interrupted at {at} s")), None);
        }
        match simulation.advance(sink) {
            Ok(true) => {}
            Ok(false) => break simulation.finish(),
            Err(violation) => break Err(violation),
        }
    };
    match ended {
        Ok(_) => (Status::Complete, None),
        Err(stalled @ Violation::Stalled { .. }) => {
            eprintln!("error: {stalled}");
            (Status::Partial(stalled.to_string()), None)
        }
        Err(violation) => (Status::Partial(violation.to_string()), Some(violation.to_string())),
    }
}
