//! The greatest value of "a release plus the weight released since, over a capacity".
//!
//! Jobs belong to groups; group g counts the jobs of all groups up to g, and has its own capacity. The naive
//! search costs jobs times groups. Here the jobs, in order of release, are cut into blocks whose weights are kept
//! per group as it grows; a block whose latest release and whole weight cannot beat the best value is skipped.
//! Comparisons are exact: `release + weight / capacity > best` is tested as a product of integers.

/// Jobs of one block: arbitrary; near the square root of the largest logs, which balances both loops.
const BLOCK: usize = 512;

/// One job, seen as a step of the staircase.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    /// Release in microseconds.
    pub(super) release: i64,
    /// Counted by this group and all after it.
    pub(super) group: usize,
    /// Work or run time.
    pub(super) weight: i128,
}

/// Steps in order of release, with one capacity per group.
#[derive(Clone, Debug)]
pub(super) struct Staircase {
    steps: Vec<Step>,
    capacities: Vec<i128>,
}

impl Staircase {
    /// Steps must be sorted by release and capacities positive.
    pub(super) fn new(steps: Vec<Step>, capacities: Vec<i128>) -> Staircase {
        assert!(steps.is_sorted_by_key(|step| step.release), "steps are sorted by release");
        assert!(capacities.iter().all(|&capacity| capacity > 0), "every group has a capacity");
        Staircase { steps, capacities }
    }

    /// The greatest weight of a group over its capacity, whatever its releases.
    pub(super) fn whole(&self) -> i128 {
        let mut weights = vec![0i128; self.capacities.len()];
        for step in &self.steps {
            weights[step.group] += step.weight;
        }
        let mut sum = 0;
        let values = weights.iter().zip(&self.capacities).map(|(weight, &capacity)| {
            sum += weight;
            ceil_div(sum, capacity)
        });
        values.max().unwrap_or(0)
    }

    /// The greatest value over all groups and releases.
    pub(super) fn best(&self) -> i128 {
        let mut best = 0;
        let mut block_weights = vec![0i128; self.steps.len().div_ceil(BLOCK)];
        for (group, members) in self.members().into_iter().enumerate() {
            for member in members {
                block_weights[member / BLOCK] += self.steps[member].weight;
            }
            let capacity = self.capacities[group];
            let mut later = 0;
            for (block, steps) in self.steps.chunks(BLOCK).enumerate().rev() {
                let all = later + block_weights[block];
                let latest = i128::from(steps[steps.len() - 1].release);
                if all > (best - latest) * capacity {
                    best = best_in_block(steps, group, capacity, later, best);
                }
                later = all;
            }
        }
        best
    }

    /// The places of the steps of each group.
    fn members(&self) -> Vec<Vec<usize>> {
        let mut members = vec![Vec::new(); self.capacities.len()];
        for (place, step) in self.steps.iter().enumerate() {
            members[step.group].push(place);
        }
        members
    }
}

/// The greater of `best` and the best value with a release in this block.
fn best_in_block(steps: &[Step], group: usize, capacity: i128, later: i128, mut best: i128) -> i128 {
    let mut weight = later;
    for step in steps.iter().rev() {
        if step.group <= group {
            weight += step.weight;
            // Of several steps at one release the last one seen counts them all; the others are weaker but sound.
            let release = i128::from(step.release);
            if weight > (best - release) * capacity {
                best = release + ceil_div(weight, capacity);
            }
        }
    }
    best
}

/// A quotient of a non-negative number, rounded up.
pub(super) fn ceil_div(dividend: i128, divisor: i128) -> i128 {
    (dividend + divisor - 1) / divisor
}
