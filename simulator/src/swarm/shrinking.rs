//! Makes a failing scenario small: leaves something out, and keeps that if it still fails by the same check.

use std::collections::BTreeSet;

use super::{Reduction, Trial, draw, run};
use crate::faults::Broken;

/// The smallest reduction found with so many runs, and how it fails.
pub fn shrink(seed: u64, failure: Broken, trial: Trial, runs: usize) -> (Reduction, Broken) {
    let scenario = draw(seed, trial.parts);
    let mut search = Search {
        seed,
        trial,
        left: runs,
        best: Reduction {
            faults: Some((0..scenario.faults.len()).collect()),
            jobs: Some(scenario.jobs.iter().map(|job| job.spec.id.0).collect()),
            sites: Some(scenario.grid.sites().iter().map(|site| site.id.0).collect()),
            plain: BTreeSet::new(),
        },
        failure,
    };
    loop {
        let before = search.best.clone();
        search.drop_some(|reduction| &mut reduction.faults, 0);
        search.drop_some(|reduction| &mut reduction.jobs, 1);
        search.drop_some(|reduction| &mut reduction.sites, 1);
        for name in Reduction::plain_names() {
            let mut next = search.best.clone();
            if next.plain.insert(name) {
                search.attempt(next);
            }
        }
        if search.best == before || search.left == 0 {
            return (search.best, search.failure);
        }
    }
}

struct Search {
    seed: u64,
    trial: Trial,
    left: usize,
    best: Reduction,
    failure: Broken,
}

impl Search {
    /// Leaves out halves of a list, then quarters, down to single items.
    fn drop_some<T: Ord + Copy>(
        &mut self,
        list: impl Fn(&mut Reduction) -> &mut Option<BTreeSet<T>>,
        at_least: usize,
    ) {
        let mut size = list(&mut self.best.clone()).as_ref().map_or(0, BTreeSet::len).div_ceil(2);
        while size > 0 {
            let items: Vec<T> = list(&mut self.best.clone()).iter().flatten().copied().collect();
            for chunk in items.chunks(size) {
                let mut next = self.best.clone();
                let kept = list(&mut next).get_or_insert_default();
                for item in chunk {
                    kept.remove(item);
                }
                if kept.len() >= at_least {
                    self.attempt(next);
                }
            }
            size /= 2;
        }
    }

    fn attempt(&mut self, next: Reduction) {
        if self.left == 0 {
            return;
        }
        self.left -= 1;
        if let Err(broken) = run(self.seed, &next, self.trial)
            && broken.check == self.failure.check
        {
            (self.best, self.failure) = (next, broken);
        }
    }
}
