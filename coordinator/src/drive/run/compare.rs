//! A run on real nodes beside its simulation: the same experiment with the same injected delays.
//!
//! The two cannot agree job for job: real messages and timers take a little longer than simulated ones. What is
//! asked for is the same makespan within a tolerance.

use analysis::{Agreement, Bounds, Metrics, Outcome};

/// Key figures of both.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    run: Figures,
    simulated: Figures,
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
            same_site: (agreement.same_site, agreement.compared),
            tolerance,
        }
    }

    /// How much longer the run took, in percent.
    fn makespan_difference(&self) -> f64 {
        percent(self.run.makespan_s, self.simulated.makespan_s)
    }

    /// Whether the makespans agree.
    pub fn within(&self) -> bool {
        self.makespan_difference().abs() <= self.tolerance
    }

    /// Lines for the summary.
    pub fn lines(&self) -> Vec<String> {
        let Compared { run, simulated, same_site: (same, jobs), tolerance } = self;
        let verdict = if self.within() { "within" } else { "OUTSIDE" };
        vec![
            "beside its simulation with the same injected delays:".to_string(),
            format!(
                "  makespan    {:.1} s, simulated {:.1} s: {:+.3} %, {verdict} the tolerance of {tolerance} %",
                run.makespan_s,
                simulated.makespan_s,
                self.makespan_difference()
            ),
            format!(
                "  mean wait   {:.1} s, simulated {:.1} s: {:+.1} s",
                run.wait_mean_s,
                simulated.wait_mean_s,
                run.wait_mean_s - simulated.wait_mean_s
            ),
            format!("  stolen jobs {}, simulated {}", run.stolen_jobs, simulated.stolen_jobs),
            format!("  same site   {same} of {jobs} jobs"),
        ]
    }
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
        Compared { run: of(makespan_s), simulated: of(1000.0), same_site: (9, 10), tolerance: 1.0 }
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
    fn the_lines_show_both_values_the_difference_and_the_verdict() {
        let lines = compared(1020.0).lines().join("\n");
        assert!(
            lines.contains("1020.0 s, simulated 1000.0 s: +2.000 %, OUTSIDE the tolerance of 1 %"),
            "{lines}"
        );
        assert!(lines.contains("9 of 10 jobs"), "{lines}");
    }

    #[test]
    fn a_run_without_any_length_equals_itself() {
        assert_eq!(percent(0.0, 0.0), 0.0);
        assert!(percent(1.0, 0.0).is_infinite());
    }
}
