//! A run on real nodes beside simulations of the same experiment: what came of it.

use analysis::{Figures, Placed};
use scheduler::Span;
use serde::{Deserialize, Serialize};

use crate::quantity::{grouped, number};

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

/// How late a run was, in trace time, and how late it might have been.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    /// What came on top of the injected delays, `None` without messages.
    pub added: Option<Added>,
    /// How late submissions were noticed.
    pub submissions: Lateness,
    /// Ends of jobs.
    pub completions: Lateness,
}

/// What came on top of the injected delays, in trace time, over all messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Added {
    /// Mean over all messages.
    #[serde(rename = "mean_s", with = "scheduler::time::seconds")]
    pub mean: Span,
    /// The most that one message got.
    #[serde(rename = "max_s", with = "scheduler::time::seconds")]
    pub max: Span,
}

/// How late something was noticed, in trace time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lateness {
    /// How often it happened.
    pub count: u64,
    /// Sum over all times that it happened.
    #[serde(rename = "total_s", with = "scheduler::time::seconds")]
    pub total: Span,
    /// The latest single one.
    #[serde(rename = "max_s", with = "scheduler::time::seconds")]
    pub max: Span,
}

impl Lateness {
    /// Once more, by so much.
    pub fn add(&mut self, late: Span) {
        self.count += 1;
        self.total += late;
        self.max = self.max.max(late);
    }

    /// Total over count, 0 if it never happened.
    pub fn mean(self) -> Span {
        Span::from_micros(self.total.as_micros() / i64::try_from(self.count.max(1)).unwrap_or(i64::MAX))
    }
}

/// What to do about a run that was not measured, by its clock.
pub fn slower(clock: &str) -> String {
    let half = clock.strip_prefix("scaled:").and_then(|factor| factor.parse::<f64>().ok());
    match half.map(|factor| factor / 2.0) {
        Some(half) => {
            format!(
                "Run it again with a slower clock (--clock scaled:{half} or what a warning says, and --replace), or where less else is to be \
                 done"
            )
        }
        None => "Run it again with a slower clock (--clock, and --replace), or where less else is to be done"
            .to_string(),
    }
}

/// What fails if no simulation should.
pub const FAILED: &str = "a simulation failed";

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
            let [same, jobs] = [same, jobs].map(|count| grouped(count as u64));
            lines.push(format!(
                "  same site        {same} of {jobs} jobs, of the simulation in which nothing is late"
            ));
        }
        lines.push(format!("  agreement        {}", self.words()));
        lines
    }

    /// The verdict, in words.
    fn words(&self) -> String {
        match (&self.verdict, &self.placed) {
            (Verdict::Within, Some(placed)) => {
                format!(
                    "as simulated: {} of {} simulations lie as far out",
                    placed.as_far_out, placed.simulations
                )
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
    if value.abs() >= 1000.0 { number(value) } else { format!("{value:.3}") }
}
