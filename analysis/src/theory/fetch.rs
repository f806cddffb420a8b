//! Bounds for reserve, then fetch: stealing that knows everything at once, and holds the processors of a stolen job
//! idle for a time Delta before it runs.
//!
//! The schedule is that of the ideal on run times p_j + Delta for stolen jobs, because stealing never looks at run
//! times. With `A_k` the widths of all stolen jobs of home k or above, beta = min(x, 1 - x), order AHB:
//!
//! ```text
//! offline  C_max <= max_k (W_k + Delta A_k) / (beta S_k) + p_max + Delta
//! online   C_max <= r_last + max_k (W_k + Delta A_k) / (beta S_k) + 2 (p_max + Delta)
//! ratio    1 + 1/beta + (Delta/LB) (1 + max_k A_k / (beta S_k))           online: 3 + 1/beta + (Delta/LB) (2 + ...)
//! crude    1 + 1/beta + Delta/(beta p_w) + Delta/LB                       online: 3 + ... + 2 Delta/LB
//! ```
//!
//! `p_w` is the least over k of W_k over the widths of its jobs: the crude form needs no schedule, for at worst all
//! jobs are stolen. docs/THEORY.md, "Reserve, then fetch".

use serde::{Deserialize, Serialize};

use scheduler::{Grid, Span};

use crate::bounds::Bounds;
use crate::job::JobState;
use crate::outcome::Outcome;
use crate::theory::{Comparison, PARTIAL, Quantity, Relation, Verdict};

/// Sums over the jobs of home k or above.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suffix {
    /// S_k: processors of the sites of rank k or above.
    pub processors: u64,
    /// W_k: work, in processor-microseconds.
    pub work: i128,
    /// Widths of all jobs.
    pub width: u64,
    /// A_k: widths of the stolen jobs.
    pub stolen_width: u64,
    /// How many jobs.
    pub jobs: u64,
}

impl Suffix {
    /// The sums by rank of k, the smallest site first. Jobs count with the time they executed for.
    pub fn all(outcome: &Outcome) -> Vec<Suffix> {
        let rows = outcome.jobs.iter().filter(|job| job.state != JobState::Rejected);
        Suffix::of_rows(&outcome.grid, rows.map(|job| (job.processors, job.service(), job.stolen())))
    }

    /// The same from (width, run time, whether it was stolen) of jobs that fit the grid.
    pub fn of_rows(grid: &Grid, rows: impl Iterator<Item = (u32, Span, bool)>) -> Vec<Suffix> {
        let mut sums = vec![Suffix::default(); grid.len()];
        for (processors, run_time, stolen) in rows {
            let Some(sum) = grid.home_rank(processors).map(|home| &mut sums[home]) else { continue };
            sum.work += i128::from(run_time.as_micros()) * i128::from(processors);
            sum.width += u64::from(processors);
            sum.stolen_width += if stolen { u64::from(processors) } else { 0 };
            sum.jobs += 1;
        }
        let mut above = Suffix::default();
        for (rank, sum) in sums.iter_mut().enumerate().rev() {
            above = Suffix {
                processors: above.processors + u64::from(grid.sizes()[rank]),
                work: above.work + sum.work,
                width: above.width + sum.width,
                stolen_width: above.stolen_width + sum.stolen_width,
                jobs: above.jobs + sum.jobs,
            };
            *sum = above;
        }
        sums
    }
}

/// What the bounds need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchSetting {
    /// How long a stolen job holds its processors idle.
    pub delta: Span,
    /// beta in percent, not zero.
    pub beta_percent: u8,
    /// Whether all jobs are there at the start.
    pub offline: bool,
    /// The longest run time.
    pub longest: Span,
    /// The last submission, since the origin.
    pub last: Span,
    /// The lower bound that ratios are to: at least r_j + p_j and W_k / S_k.
    pub bound: Span,
}

/// The bounds. Ratios are `None` if the lower bound is zero.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FetchBounds {
    /// On the makespan, rounded up.
    pub makespan: Span,
    /// On the ratio.
    pub ratio: Option<f64>,
    /// On the ratio, whatever is stolen.
    pub crude: Option<f64>,
    /// p_w in seconds; `None` without jobs.
    pub weighted_run_time_s: Option<f64>,
}

impl FetchBounds {
    /// The bounds from the sums by rank of k.
    pub fn of(setting: FetchSetting, sums: &[Suffix]) -> FetchBounds {
        let FetchSetting { delta, beta_percent, offline, longest, last, bound } = setting;
        let (delta_us, beta_percent) = (i128::from(delta.as_micros()), i128::from(beta_percent));
        let filled = sums.iter().map(|sum| {
            let capacity = beta_percent * i128::from(sum.processors);
            (100 * (sum.work + delta_us * i128::from(sum.stolen_width)) + capacity - 1) / capacity
        });
        let filled = Span::from_micros(i64::try_from(filled.max().unwrap_or(0)).unwrap_or(i64::MAX));
        let makespan = if offline {
            filled + longest + delta
        } else {
            last + filled + longest + longest + delta + delta
        };

        let beta = beta_percent as f64 / 100.0;
        let (units, hops) = if offline { (1.0, 1.0) } else { (3.0, 2.0) };
        let stolen = sums
            .iter()
            .map(|sum| sum.stolen_width as f64 / (beta * sum.processors as f64))
            .fold(0.0, f64::max);
        let weighted = sums
            .iter()
            .filter(|sum| sum.width > 0)
            .map(|sum| sum.work as f64 / 1e6 / sum.width as f64)
            .fold(f64::INFINITY, f64::min);
        let weighted_run_time_s = weighted.is_finite().then_some(weighted);
        let relative = (bound > Span::ZERO).then(|| delta.as_secs_f64() / bound.as_secs_f64());
        let crude = relative.zip(weighted_run_time_s.filter(|&time| time > 0.0)).map(|(relative, time)| {
            units + 1.0 / beta + delta.as_secs_f64() / (beta * time) + hops * relative
        });
        FetchBounds {
            makespan,
            ratio: relative.map(|relative| units + 1.0 / beta + relative * (hops + stolen)),
            crude,
            weighted_run_time_s,
        }
    }
}

const ASSUMPTION: &str =
    "lists are known at once; each stolen job holds its processors for Delta before it runs";
const SOURCE: &str = "the proof of IPDPS 2008 on run times p_j + Delta of stolen jobs; docs/THEORY";

/// The relations of a run whose stolen jobs were fetched for `delta`, order AHB or ABH; `complete` if every job ended.
pub fn comparisons(
    outcome: &Outcome,
    bounds: &Bounds,
    delta: Span,
    beta_percent: u8,
    complete: bool,
) -> Vec<Comparison> {
    let jobs = || outcome.jobs.iter().filter(|job| job.state != JobState::Rejected);
    let setting = FetchSetting {
        delta,
        beta_percent,
        offline: outcome.is_offline(),
        longest: jobs().map(|job| job.service()).max().unwrap_or(Span::ZERO),
        last: jobs().map(|job| job.submit.since(outcome.origin)).max().unwrap_or(Span::ZERO),
        bound: bounds.proof,
    };
    let proved = FetchBounds::of(setting, &Suffix::all(outcome));
    let makespan = outcome.makespan();
    let measured = Bounds::ratio(makespan, bounds.proof);
    let (makespan_formula, ratio_formula, crude_formula) = if setting.offline {
        (
            "max_k (W_k + Delta A_k)/(beta S_k) + p_max + Delta",
            "1 + 1/beta + (Delta/LB)(1 + max_k A_k/(beta S_k))",
            "1 + 1/beta + Delta/(beta p_w) + Delta/LB",
        )
    } else {
        (
            "r_last + max_k (W_k + Delta A_k)/(beta S_k) + 2 (p_max + Delta)",
            "3 + 1/beta + (Delta/LB)(2 + max_k A_k/(beta S_k))",
            "3 + 1/beta + Delta/(beta p_w) + 2 Delta/LB",
        )
    };
    let relation = |name: &str, quantity, measured, limit, formula: &str, within: Option<bool>| Comparison {
        name: name.into(),
        quantity,
        measured,
        relation: Relation::AtMost,
        limit,
        formula: format!("{formula}, Delta = {delta} s, beta = {}", f64::from(beta_percent) / 100.0),
        assumption: ASSUMPTION.into(),
        source: SOURCE.into(),
        verdict: match within {
            None => Verdict::NoCeiling("all jobs of some homes are of no length".into()),
            Some(within) if !complete => Verdict::unproved(within, PARTIAL),
            Some(true) => Verdict::Holds,
            Some(false) => Verdict::Violated,
        },
    };
    let below =
        |limit: Option<f64>| measured.zip(limit).map(|(measured, limit)| measured <= limit * (1.0 + 1e-12));
    vec![
        relation(
            "makespan, fetched",
            Quantity::Seconds,
            Some(makespan.as_secs_f64()),
            Some(proved.makespan.as_secs_f64()),
            makespan_formula,
            Some(makespan <= proved.makespan),
        ),
        relation(
            "ratio, fetched",
            Quantity::Ratio,
            measured,
            proved.ratio,
            ratio_formula,
            below(proved.ratio),
        ),
        relation(
            "ratio, all fetched",
            Quantity::Ratio,
            measured,
            proved.crude,
            crude_formula,
            below(proved.crude),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;

    /// Site 1 of 4 and site 2 of 4; two jobs of 4 for 10 s, the second is stolen and starts after `fetch`.
    fn fetched(fetch: i64) -> Outcome {
        fixtures::outcome(&[4, 4], &[(0, 4, 10, 1, 0), (0, 4, 10, 2, fetch)])
    }

    #[test]
    fn the_bounds_are_the_formulas() {
        let outcome = fetched(5);
        let found = comparisons(&outcome, &Bounds::of(&outcome), Span::from_secs(5), 50, true);
        // W_1 = 80, A_1 = 4, S_1 = 8: (80 + 20) / 4 + 10 + 5.
        assert_eq!(found[0].limit, Some(40.0));
        // 3 + (5/10) (1 + 4/4).
        assert_eq!(found[1].limit, Some(4.0));
        // p_w = 10: 3 + 5/5 + 5/10.
        assert_eq!(found[2].limit, Some(4.5));
        assert!(found.iter().all(|relation| relation.verdict == Verdict::Holds), "{found:?}");
        assert_eq!(found[1].measured, Some(1.5));
    }

    #[test]
    fn without_delay_they_are_the_ceilings() {
        let outcome = fetched(0);
        let found = comparisons(&outcome, &Bounds::of(&outcome), Span::ZERO, 25, true);
        assert_eq!(
            found.iter().map(|relation| relation.limit).collect::<Vec<_>>(),
            [Some(50.0), Some(5.0), Some(5.0)]
        );
        let online = fixtures::outcome(&[4], &[(0, 4, 10, 1, 0), (1, 4, 10, 1, 10)]);
        let found = comparisons(&online, &Bounds::of(&online), Span::ZERO, 50, true);
        assert_eq!(found[1].limit, Some(5.0));
    }

    #[test]
    fn mutant_a_job_that_is_fetched_for_longer_is_caught() {
        let outcome = fetched(50);
        let found = comparisons(&outcome, &Bounds::of(&outcome), Span::from_secs(5), 50, true);
        assert!(found.iter().all(|relation| relation.verdict == Verdict::Violated), "{found:?}");
    }
}
