//! Violations counted over many instances.

use std::ops::Range;

use rayon::iter::{IntoParallelIterator, ParallelIterator};

use crate::{Found, Verdict};

/// Examples of violations that are shown.
const SHOWN: usize = 3;

/// What some runs came to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    /// How many runs were made.
    pub runs: u64,
    /// How often what is claimed was not so.
    pub violations: u64,
    /// How near two measures came to their limits, in parts of them.
    pub closest: [f64; 2],
    /// The first violations, in words.
    pub broken: Vec<String>,
}

impl Tally {
    /// Sums over seeds, in their order.
    pub(crate) fn over(seeds: Range<u64>, one: impl Fn(u64) -> Tally + Send + Sync) -> Tally {
        let all: Vec<Tally> = seeds.into_par_iter().map(one).collect();
        all.into_iter().fold(Tally::default(), Tally::and)
    }

    /// Both together, this one first.
    pub(crate) fn and(mut self, next: Tally) -> Tally {
        self.runs += next.runs;
        self.violations += next.violations;
        for (closest, next) in self.closest.iter_mut().zip(next.closest) {
            *closest = closest.max(next);
        }
        self.broken.extend(next.broken);
        self.broken.truncate(SHOWN);
        self
    }

    /// Notes how near a measure came to its limit.
    pub(crate) fn near(&mut self, which: usize, share: f64) {
        self.closest[which] = self.closest[which].max(share);
    }

    /// Notes a violation.
    pub(crate) fn violated(&mut self, what: impl FnOnce() -> String) {
        self.violations += 1;
        if self.broken.len() < SHOWN {
            self.broken.push(what());
        }
    }

    /// The verdict: holds if there is no violation. `what` names the runs.
    pub(crate) fn found(self, what: &str, figures: Vec<String>) -> Found {
        let mut all = vec![format!("{} violations in {} {what}", self.violations, self.runs)];
        all.extend(figures);
        all.extend(self.broken.into_iter().map(|broken| format!("violation: {broken}")));
        let verdict = if self.violations == 0 { Verdict::Holds } else { Verdict::Fails };
        Found { verdict, runs: self.runs, cells: Vec::new(), figures: all }
    }
}
