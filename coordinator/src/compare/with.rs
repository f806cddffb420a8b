//! Whether a run by the wall clock could be one of an experiment, its own or another.
//!
//! Nothing is run but simulations. A run with another delay or strategy than the experiment has must be found out, and
//! that is how it is tried on real ones.

use std::path::Path;

use analysis::Figures;
use experiments::drive::simulate::load;
use experiments::exit;
use experiments::experiment::flags::ExperimentArgs;
use experiments::experiment::{self, Clock, Experiment};
use experiments::interrupt::Interrupt;
use experiments::limits;
use experiments::terminal::say;
use operation::run::compare::Question;
use operation::run::plan::Plan;
use operation::run::plan::simulated;
use outputs::compared::{Kept, Verdict};
use outputs::{DirectoryError, ResultDirectory, Status};
use report::Format;
use serde::Deserialize;

/// What `metrics.json` of a run by the wall clock has about it.
#[derive(Clone, Copy, Debug, Deserialize)]
struct Run {
    figures: Figures,
    kept: Kept,
}

/// Runs `compare DIR --with EXPERIMENT`.
///
/// # Errors
/// If the result cannot be printed.
pub(super) fn command(
    dir: &Path,
    file: &Path,
    ensemble: Option<usize>,
    format: Format,
) -> anyhow::Result<u8> {
    if matches!(format, Format::Csv | Format::Markdown) {
        eprintln!("error: --with prints as terminal or json");
        return Ok(exit::USAGE);
    }
    let args = ExperimentArgs { experiment: Some(file.to_path_buf()), ..ExperimentArgs::default() };
    let (mut experiment, jobs) = match load(&args) {
        Ok(loaded) => loaded,
        Err(code) => return Ok(code),
    };
    if let Some(count) = ensemble {
        match experiment::ensemble(count) {
            Ok(count) => experiment.run.ensemble = count,
            Err(error) => {
                eprintln!("error: failed to {error}");
                return Ok(exit::USAGE);
            }
        }
    }
    let run = match of(dir, &mut experiment, jobs.jobs.len()) {
        Ok(run) => run,
        Err(reason) => {
            eprintln!("error: failed to {reason}");
            return Ok(exit::INPUT);
        }
    };
    let interrupt = Interrupt::saying("stopping")?;
    let Some(planned) = simulated(&experiment, &jobs, &interrupt)? else {
        eprintln!("error: stopped");
        return Ok(exit::INCOMPLETE);
    };
    let plan = Plan::new(&experiment, &jobs, &planned)?;
    let question = Question {
        experiment: &experiment,
        plan: &plan,
        jobs: &jobs,
        kept: run.kept,
        disturbed: None,
        interrupt: &interrupt,
    };
    let compared = question.answer_by(run.figures);
    say(&match format {
        Format::Json => serde_json::to_string_pretty(&compared)? + "\n",
        _ => compared.lines().join("\n") + "\n",
    })?;
    Ok(match compared.verdict {
        Verdict::Within => exit::DONE,
        Verdict::Different => exit::OUT_OF_TOLERANCE,
        Verdict::NotMeasured(_) => exit::NOT_MEASURED,
        Verdict::NotCompared(_) => exit::INCOMPLETE,
    })
}

/// The run in a directory, which must be one of the same grid and as many jobs; its clock becomes that of the experiment.
fn of(dir: &Path, experiment: &mut Experiment, jobs: usize) -> Result<Run, String> {
    let directory = ResultDirectory::open(dir, limits::of_results()).map_err(|error| error.to_string())?;
    let manifest = directory.manifest();
    let whose = dir.display();
    let factor = manifest.clock.strip_prefix("scaled:").and_then(|factor| factor.parse().ok());
    // Whether it was measured is what is asked once more.
    let (Some(factor), "run", Status::Complete | Status::NotMeasured(_)) =
        (factor, manifest.driver.as_str(), &manifest.status)
    else {
        return Err(format!(
            "compare {whose}: it is no complete run by the wall clock ({} {}, {})",
            manifest.driver,
            manifest.clock,
            manifest.status.name()
        ));
    };
    experiment.run.clock = Some(Clock::Scaled(factor));
    let sites: Vec<(&str, u32)> =
        manifest.sites.iter().map(|site| (site.name.as_str(), site.processors)).collect();
    let expected: Vec<(&str, u32)> =
        experiment.grid.sites().iter().map(|site| (site.name.as_str(), site.processors)).collect();
    if sites != expected {
        return Err(format!("compare {whose}: its sites are not those of {}", experiment.name));
    }
    let had: usize = manifest.jobs.values().sum();
    if had != jobs {
        return Err(format!("compare {whose}: it had {had} jobs, and {} has {jobs}", experiment.name));
    }
    let metrics = directory.metrics().map_err(|error| error.to_string())?;
    let compared = metrics.get("compared").cloned().ok_or_else(|| {
        let path = dir.join("metrics.json");
        DirectoryError::Content { path, reason: "it does not say how late the run was".to_string() }
            .to_string()
    })?;
    serde_json::from_value(compared).map_err(|error| {
        DirectoryError::Content { path: dir.join("metrics.json"), reason: error.to_string() }.to_string()
    })
}
