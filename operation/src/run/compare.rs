//! A run on real nodes beside simulations of the same experiment: could it be one of them?
//!
//! The two cannot agree job for job, see [`analysis::ensemble`]. The run is held against an [`ensemble`] of simulations
//! with the injected delays, late by no more than the experiment allows beforehand. If the run itself was later than
//! that, the machine was too busy and nothing was measured: the numbers are kept, and there is no verdict on them. How late
//! the run was can take its verdict away, but never give it one.

pub mod ensemble;

use analysis::ensemble::place_among;
use analysis::{Agreement, Figures, Outcome};
use experiments::experiment::Experiment;
use experiments::experiment::jobs::Jobs;
use experiments::interrupt::Interrupt;
use outputs::compared::{Compared, FAILED, Kept, Verdict};
use scheduler::Span;

use self::ensemble::{Allowed, Ensemble, Missing};
use super::plan::Plan;

/// Why a run whose strategy is a command is not compared.
const COMMANDS: &str = "each simulation would start the commands of the experiment once more";

/// What was later than allowed, in words; `None` if nothing was.
fn too_late(kept: &Kept, allowed: Allowed, factor: f64) -> Option<String> {
    let messages = kept.added.map(|added| ("messages", added.mean, added.max));
    let submissions = ("submissions", kept.submissions.mean(), kept.submissions.max);
    let completions = ("ends of jobs", kept.completions.mean(), kept.completions.max);
    let wall_ms = |span: Span| span.as_secs_f64() / factor * 1e3;
    let said = |(what, mean, max): (&str, Span, Span)| {
        let (how, late, limit) = match (mean > allowed.mean, max > allowed.single) {
            (true, _) => ("in the mean", mean, allowed.mean),
            (false, true) => ("once", max, allowed.single),
            (false, false) => return None,
        };
        Some(format!(
            "{what} were {:.1} s late {how} ({:.2} ms of the wall clock), {:.1} s ({:.2} ms) are allowed",
            late.as_secs_f64(),
            wall_ms(late),
            limit.as_secs_f64(),
            wall_ms(limit)
        ))
    };
    let all: Vec<String> = messages.into_iter().chain([submissions, completions]).filter_map(said).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

/// What a run is asked.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// What it was to be.
    pub experiment: &'a Experiment,
    /// What its nodes were told.
    pub plan: &'a Plan,
    /// The jobs that it was given.
    pub jobs: &'a Jobs,
    /// How late it was.
    pub kept: Kept,
    /// Why no simulation says what should have happened, if so.
    pub disturbed: Option<&'a str>,
    /// Ends the simulations early when the user asks for it.
    pub interrupt: &'a Interrupt,
}

impl Question<'_> {
    /// Compares a complete run, of which a simulation without lateness was made, too. What fails here costs the comparison
    /// and nothing else of the run.
    pub fn answer(&self, run: &Outcome, simulated: Option<&Outcome>) -> Compared {
        let same_site = simulated.map(|simulated| {
            let agreement = Agreement::between(run, simulated, 0);
            (agreement.same_site, agreement.compared)
        });
        Compared { same_site, ..self.answer_by(Figures::of(run)) }
    }

    /// Compares a complete run by its figures.
    pub fn answer_by(&self, figures: Figures) -> Compared {
        let ensemble = Ensemble::new(self.experiment, self.plan, self.jobs);
        let allowed = ensemble.allowed();
        let commands = (!self.experiment.external.is_none()).then_some(COMMANDS);
        let (placed, verdict) = match self.disturbed.or(commands) {
            Some(reason) => (None, Verdict::NotCompared(reason.to_string())),
            None => match ensemble.simulate(self.interrupt) {
                Ok(simulations) => {
                    let placed = place_among(&figures, &simulations);
                    let verdict = match too_late(&self.kept, allowed, self.plan.factor) {
                        Some(reason) => Verdict::NotMeasured(reason),
                        None if placed.differs() => Verdict::Different,
                        None => Verdict::Within,
                    };
                    (Some(placed), verdict)
                }
                Err(Missing::Impossible(reason)) => (None, Verdict::NotCompared(reason)),
                Err(Missing::Stopped) => (None, Verdict::NotCompared("stopped before".to_string())),
                Err(Missing::Failed(reason)) => (None, Verdict::NotCompared(format!("{FAILED}: {reason}"))),
            },
        };
        let (allowed_s, kept) = (allowed.mean.as_secs_f64(), self.kept);
        Compared { verdict, figures, kept, allowed_s, placed, same_site: None }
    }
}

#[cfg(test)]
mod tests;
