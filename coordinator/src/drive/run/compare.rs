//! A run on real nodes beside its simulation: the same experiment with the same injected delays.
//!
//! The two cannot agree job for job: real messages and timers take a little longer than simulated ones, and a busy
//! grid is chaotic. A job that starts a second later may be stolen by another site, and everything after it changes.
//! How far that goes belongs to the experiment, not to the nodes, so it is measured: the experiment is simulated
//! again with delays and late timers as those of the run were. The makespan of the run must be one that the next such
//! simulation could have, within a tolerance.

use analysis::{Agreement, Bounds, Metrics, Outcome};
use links::Jitter;
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use scheduler::Span;
use simulator::Checks;

use super::audit::Lateness;
use super::links::Added;
use super::plan::Plan;
use crate::drive::simulate::simulate;
use crate::drive::{Interrupt, builder};
use crate::experiment::Experiment;
use crate::experiment::jobs::Jobs;
use crate::outputs::Status;

/// How often the experiment is simulated with varying delays. Arbitrary; more make the interval hardly narrower.
const VARIATIONS: usize = 20;
/// The 99.5 % quantile of Student's t with `VARIATIONS - 1` degrees of freedom.
const STUDENT_T: f64 = 2.861;

/// The stream of the seed that late ends are drawn from; the simulator draws from others.
const LATENESS_STREAM: u64 = 100;

/// What came of comparing a run with its simulation.
#[derive(Debug, Default)]
pub struct Judged {
    /// Lines for the summary.
    pub lines: Vec<String>,
    /// What the reader should know.
    pub warnings: Vec<String>,
    /// Why it could not be compared, if something failed that should not. A warning says so, too.
    pub failed: Option<String>,
    /// The makespan is not one that simulations have.
    pub out_of_tolerance: bool,
}

/// Compares a complete run with what simulating it gave, `None` if that was interrupted. An undisturbed run is compared
/// with what `vary` makes of it. What fails here costs the comparison and nothing else of the run.
pub fn judge(
    run: &Outcome,
    simulated: anyhow::Result<Option<Outcome>>,
    tolerance: f64,
    undisturbed: bool,
    vary: impl FnOnce(&mut Compared) -> anyhow::Result<()>,
) -> Judged {
    let mut judged = Judged::default();
    let simulated = match simulated {
        Ok(Some(simulated)) => simulated,
        Ok(None) => {
            judged.warnings.push("stopped before the run was compared with its simulation".to_string());
            return judged;
        }
        Err(error) => {
            judged.fail(format!("the run was not compared with its simulation: {error:#}"));
            return judged;
        }
    };
    let mut compared = Compared::of(run, &simulated, tolerance);
    // A process that dies, or does so a little later than planned, changes everything that follows.
    if undisturbed && let Err(error) = vary(&mut compared) {
        judged.fail(format!("what simulations with delays as measured give is not known: {error:#}"));
    }
    let within = compared.within();
    judged.out_of_tolerance = !within && undisturbed;
    judged.lines = compared.lines();
    if !within && !undisturbed {
        judged.lines.push(
            "  no error: nodes ended or stood still, and in the simulation they did not, or not then"
                .to_string(),
        );
    }
    judged
}

impl Judged {
    fn fail(&mut self, reason: String) {
        self.warnings.push(reason.clone());
        self.failed = Some(reason);
    }
}

/// Key figures of a run and its simulations.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    run: Figures,
    simulated: Figures,
    /// With varying delays.
    varied: Vec<Figures>,
    /// Jobs that ran at the same site in both, of all.
    same_site: (usize, usize),
    /// In percent.
    tolerance: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Figures {
    /// From the first submission, so that a late beginning hides nothing.
    makespan_s: f64,
    wait_mean_s: f64,
    stolen_jobs: usize,
}

impl Compared {
    /// Compares two complete runs.
    pub fn of(run: &Outcome, simulated: &Outcome, tolerance: f64) -> Compared {
        let agreement = Agreement::between(run, simulated, 0);
        Compared {
            run: Figures::of(run),
            simulated: Figures::of(simulated),
            varied: Vec::new(),
            same_site: (agreement.same_site, agreement.compared),
            tolerance,
        }
    }

    /// Simulates the experiment again, several times, with what the real network added to the delays, as much in
    /// the least and in the mean, and with jobs that end late, as much in the mean. An interrupt leaves it out.
    ///
    /// # Errors
    /// If the simulation fails.
    pub fn vary(
        &mut self,
        experiment: &Experiment,
        plan: &Plan,
        jobs: &Jobs,
        added: Option<Added>,
        completions: Lateness,
        interrupt: &Interrupt,
    ) -> anyhow::Result<()> {
        let mut experiment = experiment.clone();
        let (least, mean) =
            added.map_or((Span::ZERO, Span::ZERO), |added| (added.min.max(Span::ZERO), added.mean));
        // Uniform, so that the mean is the middle.
        let most = least.max(mean.saturating_mul(2) - least);
        experiment.network = experiment.network.over(Jitter::Uniform { min: least, max: most });
        // As the nodes do.
        experiment.options.retry = plan.nodes[0].options.retry;
        experiment.options.refresh = plan.nodes[0].options.refresh;
        experiment.options.heartbeat = plan.nodes[0].options.heartbeat;
        experiment.options.suspect_after = plan.nodes[0].options.suspect_after;
        experiment.options.lease = plan.nodes[0].options.lease;
        if experiment.options.heartbeat.is_some() && most >= experiment.options.suspect_after {
            // Sites that hear of each other so late take each other for gone, again and again, and nothing would end.
            return Ok(());
        }
        let first_seed = experiment.seed;
        let mut varied = Vec::new();
        for variation in 0..VARIATIONS as u64 {
            experiment.seed = first_seed.wrapping_add(variation);
            let jobs = &ending_late(jobs, completions.mean(), experiment.seed);
            let mut builder = builder(&experiment, jobs);
            let ended =
                simulate(&experiment, jobs, Checks::Cheap, interrupt, &mut |event| builder.observe(event))?;
            if ended.status != Status::Complete {
                return Ok(());
            }
            varied.push(Figures::of(&builder.finish()));
        }
        self.varied = varied;
        Ok(())
    }

    /// How much longer the run took than the simulation, in percent.
    fn makespan_difference(&self) -> f64 {
        percent(self.run.makespan_s, self.simulated.makespan_s)
    }

    /// Where a figure of the next simulation with varying delays is in 99 of 100 cases: the prediction interval of a
    /// normal distribution (Hahn and Meeker 1991, chapter 4). `None` without such simulations.
    fn expected(&self, figure: impl Fn(&Figures) -> f64) -> Option<(f64, f64)> {
        if self.varied.is_empty() {
            return None;
        }
        let n = self.varied.len() as f64;
        let mean = self.varied.iter().map(&figure).sum::<f64>() / n;
        let squares = self.varied.iter().map(|figures| (figure(figures) - mean).powi(2)).sum::<f64>();
        let deviation = (squares / (n - 1.0)).sqrt();
        let reach = STUDENT_T * deviation * (1.0 + 1.0 / n).sqrt();
        Some((mean - reach, mean + reach))
    }

    /// Whether the makespan is one that simulations have.
    pub fn within(&self) -> bool {
        let share = self.tolerance / 100.0;
        let near =
            |low: f64, high: f64| (low * (1.0 - share)..=high * (1.0 + share)).contains(&self.run.makespan_s);
        let exact = self.simulated.makespan_s;
        let expected = self.expected(|figures| figures.makespan_s);
        near(exact, exact) || expected.is_some_and(|(low, high)| near(low, high))
    }

    /// Lines for the summary.
    pub fn lines(&self) -> Vec<String> {
        let Compared { run, simulated, varied, same_site: (same, jobs), tolerance } = self;
        let verdict = if self.within() { "within" } else { "OUTSIDE" };
        let expected = |figure: fn(&Figures) -> f64| match self.expected(figure) {
            None => String::new(),
            Some((low, high)) => format!("; expected {:.0} to {high:.0}", low.max(0.0)),
        };
        let mut lines = vec![
            "beside its simulation with the same injected delays:".to_string(),
            format!(
                "  makespan    {:.1} s, simulated {:.1} s: {:+.3} %{}",
                run.makespan_s,
                simulated.makespan_s,
                self.makespan_difference(),
                expected(|figures| figures.makespan_s)
            ),
            format!(
                "  mean wait   {:.1} s, simulated {:.1} s: {:+.1} s{}",
                run.wait_mean_s,
                simulated.wait_mean_s,
                run.wait_mean_s - simulated.wait_mean_s,
                expected(|figures| figures.wait_mean_s)
            ),
            format!(
                "  stolen jobs {}, simulated {}{}",
                run.stolen_jobs,
                simulated.stolen_jobs,
                expected(|figures| figures.stolen_jobs as f64)
            ),
            format!("  same site   {same} of {jobs} jobs"),
        ];
        lines.push(match varied.len() {
            0 => format!("  verdict     {verdict} the tolerance of {tolerance} %"),
            count => format!(
                "  verdict     {verdict} what is expected and a tolerance of {tolerance} %; expected: 99 % of \
                 simulations with delays and timers as late as measured, by {count} of them"
            ),
        });
        lines
    }
}

/// The same jobs, each of which runs longer by something random with this mean.
fn ending_late(jobs: &Jobs, mean: Span, seed: u64) -> Jobs {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(LATENESS_STREAM);
    let mut jobs = jobs.clone();
    for job in &mut jobs.jobs {
        job.run_time += Span::from_micros(rng.random_range(0..=2 * mean.as_micros().max(0)));
    }
    jobs
}

impl Figures {
    fn of(outcome: &Outcome) -> Figures {
        let first = outcome.jobs.iter().map(|job| job.submit).min().unwrap_or(outcome.origin);
        let metrics = Metrics::of(outcome, &Bounds::of(outcome));
        Figures {
            makespan_s: (outcome.makespan() - first.since(outcome.origin)).as_secs_f64(),
            wait_mean_s: metrics.wait_mean_s,
            stolen_jobs: metrics.stolen_jobs,
        }
    }
}

fn percent(value: f64, reference: f64) -> f64 {
    let difference = value - reference;
    if difference == 0.0 { 0.0 } else { 100.0 * difference / reference }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compared(makespan_s: f64) -> Compared {
        let of = |makespan_s| Figures { makespan_s, wait_mean_s: 3.0, stolen_jobs: 2 };
        let simulated = of(1000.0);
        Compared { run: of(makespan_s), simulated, varied: Vec::new(), same_site: (9, 10), tolerance: 1.0 }
    }

    #[test]
    fn the_tolerance_holds_in_both_directions() {
        for (makespan_s, within) in
            [(1000.0, true), (1010.0, true), (990.0, true), (1010.1, false), (989.9, false)]
        {
            assert_eq!(compared(makespan_s).within(), within, "{makespan_s}");
        }
    }

    #[test]
    fn the_tolerance_begins_where_simulations_with_varying_delays_end() {
        let mut compared = compared(1060.0);
        // Mean 1030 and standard deviation 10.26: the next is within 30.08.
        let varied = (0..VARIATIONS).map(|index| if index % 2 == 0 { 1020.0 } else { 1040.0 });
        compared.varied = varied.map(|makespan_s| Figures { makespan_s, ..compared.run }).collect();
        assert!(compared.within());
        assert!(compared.lines().join("\n").contains("+6.000 %; expected 1000 to 1060"));

        compared.run.makespan_s = 1070.5;
        assert!(compared.within(), "1060.08 and 1 %");
        compared.run.makespan_s = 1070.9;
        assert!(!compared.within());
        compared.run.makespan_s = 989.7;
        assert!(!compared.within());
        // The simulation with exactly the injected delays is as good.
        compared.run.makespan_s = 990.0;
        assert!(compared.within());
    }

    #[test]
    fn the_lines_show_both_values_the_difference_and_the_verdict() {
        let lines = compared(1020.0).lines().join("\n");
        assert!(lines.contains("1020.0 s, simulated 1000.0 s: +2.000 %\n"), "{lines}");
        assert!(lines.contains("verdict     OUTSIDE the tolerance of 1 %"), "{lines}");
        assert!(lines.contains("9 of 10 jobs"), "{lines}");
    }

    #[test]
    fn a_comparison_that_fails_is_a_warning_and_what_was_found_before_stays() {
        let run = crate::outputs::tests::outcome(&[4], &[(0, 4, 10, 1, 0)]);
        let nothing = |_: &mut Compared| Ok(());
        let judged = judge(&run, Err(anyhow::anyhow!("it starves")), 1.0, true, nothing);
        assert_eq!(judged.warnings, ["the run was not compared with its simulation: it starves"]);
        assert_eq!(judged.failed.as_ref(), judged.warnings.first());
        assert!(judged.lines.is_empty() && !judged.out_of_tolerance);

        let fails = |_: &mut Compared| anyhow::bail!("it starves");
        let judged = judge(&run, Ok(Some(run.clone())), 1.0, true, fails);
        assert!(judged.failed.unwrap().ends_with("it starves"));
        assert!(judged.lines.join("\n").contains("verdict     within"));

        let judged = judge(&run, Ok(None), 1.0, true, nothing);
        assert!(judged.failed.is_none() && judged.warnings[0].starts_with("stopped before"));
        let judged = judge(&run, Ok(Some(run.clone())), 1.0, false, fails);
        assert!(judged.failed.is_none(), "a disturbed run is not varied");
    }

    #[test]
    fn a_run_without_any_length_equals_itself() {
        assert_eq!(percent(0.0, 0.0), 0.0);
        assert!(percent(1.0, 0.0).is_infinite());
    }
}
