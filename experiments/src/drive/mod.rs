//! Running an experiment: the same jobs and the same strategy under different drivers.
//!
//! [`simulate`] runs peers or the ideal reference in virtual time; `operation::run` runs node processes. Both end in
//! [`conclude`]: measure, compare with the ideal and with theory, write the result directory, print the summary.

mod aside;
pub mod ideal;
pub mod own;
pub mod simulate;
mod sink;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use analysis::theory::{Hindrance, Verdict};
use analysis::{Decisions, OutcomeBuilder};
use anyhow::Context;
use outputs::compared::{self, Compared};
use outputs::orders::Given;
use outputs::scraped::Scraped;
use outputs::table::{Table, folded};
use outputs::{self, Provenance, RunAbout, RunResult, Status};
use predict::Forecast;
use report::{self, Format};
use scheduler::TimedJob;
use simulator::{Checks, SimulationConfig};

use self::ideal::Bars;
use self::sink::Measured;
pub use self::sink::Sink;
use crate::exit;
use crate::experiment::faults::missed;
use crate::experiment::jobs::Jobs;
use crate::experiment::resolved::EXPERIMENT;
use crate::experiment::{Clock, Experiment};
use crate::interrupt::Interrupt;
use crate::terminal::{COLUMNS, command_line, say, say_folded};

/// What follows the decisions of brokers in a run to whose members these jobs come.
pub fn decisions(experiment: &Experiment, arriving: &[TimedJob]) -> Decisions {
    let strategy = &experiment.strategy.strategy;
    // What a broker would have chosen that saw all at once hangs on what it would have learned by then, which no event tells.
    let every = if experiment.forecast.is_some() { 0 } else { experiment.decisions };
    Decisions::new(&experiment.grid, strategy, experiment.local, arriving, every)
}

/// Measures runs of these jobs; classes are told by the strategy's threshold, one half if it has none.
pub fn builder(experiment: &Experiment, jobs: &Jobs) -> OutcomeBuilder {
    let threshold = experiment.strategy.strategy.threshold();
    OutcomeBuilder::new(&experiment.grid, threshold, &jobs.jobs)
        .with_submit(experiment.submit)
        .with_cut(jobs.cut.clone())
}

/// The experiment as the simulator's event loop wants it.
pub fn configuration(experiment: &Experiment, jobs: &Jobs, checks: Checks) -> SimulationConfig {
    SimulationConfig {
        submit: experiment.submit,
        local_users: jobs.local_users.clone(),
        network: experiment.network.clone(),
        checks,
        // An ideal has no use for who knows whom, which takes a while to find out.
        ..SimulationConfig::on(experiment.terms().with_views())
    }
}

/// How a driver ended.
#[derive(Debug)]
pub struct Ended {
    /// `simulate` or `run`.
    pub driver: &'static str,
    /// How time passed.
    pub clock: String,
    /// Whether every job ended.
    pub status: Status,
    /// Something that must not happen, if it did.
    pub violation: Option<String>,
    /// What the reader should know.
    pub warnings: Vec<String>,
    /// Lines that a driver adds to the summary.
    pub lines: Vec<String>,
    /// What was measured of the links before the clocks started, if it was.
    pub calibration: Option<Table>,
    /// What was scraped of the nodes beside what their events say, if there are nodes that count.
    pub scraped: Option<Scraped>,
    /// An allowed difference to another run was exceeded.
    pub out_of_tolerance: bool,
    /// The run beside its simulations, if that was asked.
    pub compared: Option<Compared>,
    /// Orders that were given meanwhile.
    pub orders: Vec<Given>,
    /// What the run is held against, if that was simulated meanwhile; [`record`] does so else.
    pub bars: Option<Bars>,
}

/// What became of a run and its results.
#[derive(Clone, Copy, Debug)]
pub struct Concluded {
    /// The exit code.
    pub code: u8,
    /// What `attach` would have to do.
    pub left: Left,
}

/// What there is left to do for a run that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// All is written.
    Nothing,
    /// To write what happened: not all of it is in the files that are written while it does.
    Files,
    /// To execute jobs.
    Jobs,
}

/// Measures, compares, writes and prints.
///
/// # Errors
/// If the results cannot be written.
pub fn conclude(
    experiment: &Experiment,
    jobs: &Jobs,
    sink: Sink,
    ended: Ended,
    interrupt: &Interrupt,
    format: Format,
) -> anyhow::Result<Concluded> {
    conclude_as(command_line(), experiment, jobs, sink, ended, interrupt, format)
}

/// The same for a run that another command line repeats.
///
/// # Errors
/// If the results cannot be written.
pub fn conclude_as(
    command: String,
    experiment: &Experiment,
    jobs: &Jobs,
    sink: Sink,
    ended: Ended,
    interrupt: &Interrupt,
    format: Format,
) -> anyhow::Result<Concluded> {
    let complete = ended.status == Status::Complete;
    let out_of_tolerance = ended.out_of_tolerance;
    let verdict = ended.compared.as_ref().map(|compared| &compared.verdict);
    let not_measured = matches!(verdict, Some(compared::Verdict::NotMeasured(_)));
    let fell_back = sink.fell_back();
    let Recorded { result, violation, is_whole } = record(experiment, jobs, sink, ended, interrupt, command)?;
    let left = match (complete, is_whole) {
        (false, _) => Left::Jobs,
        (true, false) => Left::Files,
        (true, true) => Left::Nothing,
    };
    let mut summary = report::render(&result, format);
    if format == Format::Terminal {
        for line in result.about.lines.iter().flat_map(|lines| lines.lines()) {
            summary += &format!("{}\n", folded(line, COLUMNS));
        }
        summary += &format!("results: {}\n", experiment.outputs.dir.display());
    }
    if format == Format::Terminal { say_folded(&summary) } else { say(&summary) }?;
    if let Some(violation) = violation {
        eprintln!("error: {violation}");
        return Ok(Concluded { code: exit::UNEXPECTED, left });
    }
    let code = if out_of_tolerance {
        exit::OUT_OF_TOLERANCE
    } else if left != Left::Nothing {
        exit::INCOMPLETE
    } else if result.verdict() == Verdict::Violated {
        exit::OUT_OF_TOLERANCE
    } else if not_measured {
        exit::NOT_MEASURED
    } else if fell_back {
        exit::FELL_BACK
    } else {
        exit::DONE
    };
    Ok(Concluded { code, left })
}

/// The local scheduler, with its command if it is one.
fn local_name(experiment: &Experiment) -> String {
    match &experiment.external.queue {
        Some(queue) => format!("{} `{}`", experiment.local.name(), queue.command),
        None => experiment.local.name().to_string(),
    }
}

/// Results as they were written.
pub struct Recorded {
    /// What they say.
    pub result: RunResult,
    /// What failed that should not, if something did: the results are those of the run nevertheless.
    pub violation: Option<String>,
    /// Whether all that happened is in the files that are written while it does.
    pub is_whole: bool,
}

/// Measures, compares and writes the result directory; `command` is what repeats the run.
///
/// # Errors
/// If the results cannot be written.
pub fn record(
    experiment: &Experiment,
    jobs: &Jobs,
    sink: Sink,
    ended: Ended,
    interrupt: &Interrupt,
    command: String,
) -> anyhow::Result<Recorded> {
    let measured = sink.finish(&experiment.grid);
    let Measured { outcome, attribution, decisions, lessons, waits, steals, is_whole, claim, .. } = measured;
    let mut warnings = ended.warnings;
    warnings.extend(measured.warnings);
    let complete = ended.status == Status::Complete;
    let mut violation = ended.violation;
    let bars = match ended.bars {
        _ if !complete => Bars::none(),
        Some(bars) => bars,
        None => Bars::of(experiment, jobs, interrupt, &Arc::new(AtomicBool::new(true))),
    };
    let ideal = bars.ideal.unwrap_or_else(|error| {
        let reason = format!("the run was not compared with the ideal one: {error:#}");
        warnings.push(reason.clone());
        violation.get_or_insert(reason);
        None
    });
    let (local, dealt) = bars.local.unwrap_or_else(|error| {
        warnings.push(format!("the run was not compared with one without exchange: {error:#}"));
        (None, None)
    });
    let mut status = ended.status;
    if let (Status::Complete, Some(compared::Verdict::NotMeasured(reason))) =
        (&status, ended.compared.as_ref().map(|compared| &compared.verdict))
    {
        warnings.insert(0, format!("NOT MEASURED: {reason}. {}", compared::slower(&ended.clock)));
        status = Status::NotMeasured(reason.clone());
    }
    let mut lines = ended.lines;
    if complete && experiment.outputs.ideal && interrupt.is_set() {
        lines.push("interrupted: what the run is held against was not simulated to its end".to_string());
    }
    if let Some(command) = &experiment.external.broker {
        lines.push(format!("brokers decide by `{command}`"));
    }
    let past_broker = jobs.past_broker(experiment);
    let local_users = past_broker.is_some();
    lines.extend(past_broker);
    let about = RunAbout {
        experiment: experiment.name.clone(),
        workload: jobs.workload.clone(),
        strategy: experiment.strategy,
        submit: experiment.submit,
        local_users,
        local: (experiment.strategy.strategy.nature().queues).then(|| {
            let by = experiment.forecast.map_or(String::new(), |Forecast { predictor, correction }| {
                format!("; run times by {predictor}, corrected by {correction}")
            });
            format!("{} ({} passes{by})", local_name(experiment), experiment.pass.name())
        }),
        scheduler: experiment.local,
        driver: ended.driver.to_string(),
        clock: ended.clock.clone(),
        network: experiment.network(),
        // Over a real network every message takes time.
        messages: experiment
            .messages()
            .hindered_if(ended.clock != Clock::Virtual.to_string(), Hindrance::Delay)
            .hindered_if(outcome.faults.disturbed(), Hindrance::Absence),
        seed: experiment.seed,
        cut: experiment.steady,
        provenance: Provenance {
            switches: experiment.switches(),
            logs: jobs.logs.clone(),
            preparation: jobs.preparation.clone(),
        },
        command,
        status,
        lines,
        orders: ended.orders,
        missed: missed(&experiment.faults, &experiment.grid, &outcome.faults.deeds),
        calibration: ended.calibration,
        compared: ended.compared,
        scraped: ended.scraped,
        warnings,
    };
    let result = RunResult::new(about, outcome, ideal.as_ref())
        .with_attribution(attribution)
        .with_decisions(decisions)
        .with_lessons(lessons)
        .with_waits(waits)
        .with_local(local.as_ref(), dealt.as_ref())
        .with_steals(steals, ideal.as_ref());
    let options = outputs::Options {
        jobs_per_site: experiment.outputs.per_site,
        schedule: experiment.outputs.schedule,
        page: experiment.outputs.page.then_some(report::page::write),
        ..outputs::Options::default()
    };
    let dir = &experiment.outputs.dir;
    outputs::replace::write(&dir.join(EXPERIMENT), |file| file.write_all(experiment.file.text().as_bytes()))
        .with_context(|| format!("failed to write {}", dir.join(EXPERIMENT).display()))?;
    outputs::write_all(dir, &result, options)?;
    claim.end().with_context(|| {
        format!("failed to note in {} whose results it has", experiment.outputs.dir.display())
    })?;
    Ok(Recorded { result, violation, is_whole })
}

#[cfg(test)]
mod tests {
    use self::own::Driver;
    use super::*;
    use crate::fixtures::{experiment, jobs};

    #[test]
    fn results_are_written_although_the_ideal_run_fails() {
        let folder = tempfile::tempdir().unwrap();
        let mut experiment = experiment("network.delay = \"1s\"");
        experiment.outputs.dir = folder.path().join("out");
        let sink = Sink::new(&experiment, &jobs(), Driver::Run).unwrap();
        let mut impossible = jobs();
        impossible.jobs[0].run_time = scheduler::Span::from_micros(-1);
        let ended = Ended {
            driver: "run",
            clock: "scaled:1".to_string(),
            status: Status::Complete,
            violation: None,
            warnings: Vec::new(),
            lines: Vec::new(),
            calibration: None,
            scraped: None,
            out_of_tolerance: false,
            compared: None,
            orders: Vec::new(),
            bars: None,
        };

        let interrupt = Interrupt::default();
        let recorded = record(&experiment, &impossible, sink, ended, &interrupt, String::new());

        let Recorded { result, violation, .. } = recorded.unwrap();
        let failed = violation.unwrap();
        assert!(failed.contains("not compared with the ideal one") && failed.contains("drop it"), "{failed}");
        assert!(result.about.warnings.contains(&failed));
        assert!(folder.path().join("out/manifest.json").exists());
    }
}
