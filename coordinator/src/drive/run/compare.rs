//! A run on real nodes beside simulations of the same experiment: could it be one of them?
//!
//! The two cannot agree job for job, see [`analysis::ensemble`]. The run is held against an [`ensemble`] of simulations
//! with the injected delays, late by no more than the experiment allows beforehand. If the run itself was later than
//! that, the machine was too busy and nothing was measured: the numbers are kept, and there is no verdict on them. How late
//! the run was can take its verdict away, but never give it one.

pub mod ensemble;

use analysis::ensemble::place_among;
use analysis::{Agreement, Figures, Outcome, Placed};
use scheduler::Span;
use serde::{Deserialize, Serialize};

use self::ensemble::{Allowed, Ensemble, Missing};
use super::audit::Lateness;
use super::links::Added;
use super::plan::Plan;
use crate::drive::Interrupt;
use crate::experiment::Experiment;
use crate::experiment::jobs::Jobs;

/// How late a run was, in trace time, and how late it might have been.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    /// What came on top of the injected delays, `None` without messages.
    pub added: Option<Added>,
    /// Submissions.
    pub submissions: Lateness,
    /// Ends of jobs.
    pub completions: Lateness,
}

impl Kept {
    /// What was later than allowed, in words; `None` if nothing was.
    fn too_late(&self, allowed: Allowed, factor: f64) -> Option<String> {
        let messages = self.added.map(|added| ("messages", added.mean, added.max));
        let submissions = ("submissions", self.submissions.mean(), self.submissions.max);
        let completions = ("ends of jobs", self.completions.mean(), self.completions.max);
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
        let all: Vec<String> =
            messages.into_iter().chain([submissions, completions]).filter_map(said).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }
}

/// What came of comparing a run with its simulations.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "verdict", content = "reason")]
pub enum Verdict {
    /// It lies among them.
    Within,
    /// It lies further out than all of them.
    Different,
    /// It was later than its experiment allows, so that it is neither.
    NotMeasured(String),
    /// There is nothing to compare it with.
    NotCompared(String),
}

/// A run beside its simulations.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Compared {
    /// What came of it.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// What it was compared by.
    pub figures: Figures,
    /// How late it was.
    pub kept: Kept,
    /// How late messages and timers of the run might be in the mean, and those of simulations are, in seconds of trace
    /// time.
    pub allowed_s: f64,
    /// Where the run lies, if there were simulations.
    pub placed: Option<Placed>,
    /// Jobs that ran at the same site as in the simulation without lateness, of all that ran in both.
    pub same_site: Option<(usize, usize)>,
}

/// What a run is asked.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// What it was to be.
    pub experiment: &'a Experiment,
    /// What its nodes were told.
    pub plan: &'a Plan,
    /// Its jobs.
    pub jobs: &'a Jobs,
    /// How late it was.
    pub kept: Kept,
    /// Why no simulation says what should have happened, if so.
    pub disturbed: Option<&'a str>,
    /// The user.
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
        let (placed, verdict) = match self.disturbed {
            Some(reason) => (None, Verdict::NotCompared(reason.to_string())),
            None => match ensemble.simulate(self.interrupt) {
                Ok(simulations) => {
                    let placed = place_among(&figures, &simulations);
                    let verdict = match self.kept.too_late(allowed, self.plan.factor) {
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

/// What fails if no simulation should.
const FAILED: &str = "a simulation failed";

impl Compared {
    /// Why it could not be compared, if something failed that should not.
    pub fn failed(&self) -> Option<String> {
        match &self.verdict {
            Verdict::NotCompared(reason) if reason.starts_with(FAILED) => {
                Some(format!("the run was not compared with its simulations: {reason}"))
            }
            _ => None,
        }
    }

    /// Lines for the summary.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(placed) = &self.placed {
            lines.push(format!(
                "beside {} simulations with the injected delays, late by up to {:.1} s in the mean as the experiment allows:",
                placed.simulations, self.allowed_s
            ));
            lines.push(format!(
                "  {:<17}{:>12}  {:>12}  {:>12} to {:<12} percentile",
                "", "run", "median", "1 %", "99 %"
            ));
            for place in &placed.figures {
                let [run, median, low, high] = [place.run, place.median, place.low, place.high].map(short);
                lines.push(format!(
                    "  {:<17}{run:>12}  {median:>12}  {low:>12} to {high:<12} {:.1}",
                    place.name, place.percentile
                ));
            }
        } else {
            lines.push("beside simulations with the injected delays:".to_string());
        }
        if let Some((same, jobs)) = self.same_site {
            lines.push(format!(
                "  same site        {same} of {jobs} jobs, of the simulation in which nothing is late"
            ));
        }
        lines.push(format!("  verdict          {}", self.words()));
        lines
    }

    /// The verdict, in words.
    fn words(&self) -> String {
        match (&self.verdict, &self.placed) {
            (Verdict::Within, Some(placed)) => {
                format!("within: {} of {} simulations lie as far out", placed.as_far_out, placed.simulations)
            }
            (Verdict::Different, Some(placed)) => format!(
                "DIFFERENT: further out than all {} simulations, by {}; a correct run is so once in {} times",
                placed.simulations,
                reasons(placed),
                placed.simulations + 1
            ),
            (Verdict::NotMeasured(reason), _) => format!(
                "NOT MEASURED: {reason}; the machine is too busy for this factor of the clock, and the figures above \
                 are those of longer delays"
            ),
            (Verdict::NotCompared(reason), _) => format!("not compared: {reason}"),
            (Verdict::Within | Verdict::Different, None) => unreachable!("they come from simulations"),
        }
    }
}

/// The figures that lie too far out; all, if none does alone.
fn reasons(placed: &Placed) -> String {
    let names: Vec<&str> = placed.beyond().iter().map(|place| place.name.trim_end_matches(", s")).collect();
    if names.is_empty() { "all figures together".to_string() } else { names.join(", ") }
}

/// With digits enough to be told apart.
fn short(value: f64) -> String {
    if value.abs() >= 1000.0 { format!("{value:.0}") } else { format!("{value:.3}") }
}

#[cfg(test)]
mod tests;
