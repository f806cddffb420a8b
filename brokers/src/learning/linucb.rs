//! LinUCB with disjoint models, a contextual bandit (Li, Chu, Langford, Schapire 2010, Algorithm 1): a baseline of today.
//!
//! A site's model predicts a reward from three features by ridge regression and adds a bonus for what it is unsure of. Only
//! + - * / and square roots, so that all machines agree.

use std::collections::BTreeMap;

use scheduler::strategy::opaque::{Options, Tie};
use scheduler::{JobId, JobSpec};

use super::ag::best;
use super::memory::{Subject, Words, number, words};
use super::rule::{Ended, Lost, Round, Rule};

/// Weight of the bonus, which Li et al. call α.
const BONUS: f64 = 1.0;
/// Requested seconds that are one half as a feature; an hour, as most jobs are near it.
const HALF_S: f64 = 3600.0;
/// A constant, how long the job is, and how full the site is.
const FEATURES: usize = 3;

type Vector = [f64; FEATURES];

fn dot(one: &Vector, other: &Vector) -> f64 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}

/// What is known of one site.
#[derive(Clone, Debug)]
struct Model {
    /// The inverse of A = I + Σ x xᵀ.
    inverse: [Vector; FEATURES],
    /// b = Σ r x.
    rewards: Vector,
}

impl Model {
    fn new() -> Model {
        let mut inverse = [[0.0; FEATURES]; FEATURES];
        (0..FEATURES).for_each(|place| inverse[place][place] = 1.0);
        Model { inverse, rewards: [0.0; FEATURES] }
    }

    fn times(&self, vector: &Vector) -> Vector {
        self.inverse.map(|row| dot(&row, vector))
    }

    /// θᵀx + α √(xᵀ A⁻¹ x).
    fn bound(&self, features: &Vector) -> f64 {
        let theta = self.times(&self.rewards);
        dot(&theta, features) + BONUS * dot(features, &self.times(features)).max(0.0).sqrt()
    }

    /// Counts a reward; the inverse follows by the formula of Sherman and Morrison.
    fn learn(&mut self, features: &Vector, reward: f64) {
        let image = self.times(features);
        let divisor = 1.0 + dot(features, &image);
        for (row, &left) in self.inverse.iter_mut().zip(&image) {
            row.iter_mut().zip(&image).for_each(|(cell, &right)| *cell -= left * right / divisor);
        }
        self.rewards.iter_mut().zip(features).for_each(|(sum, feature)| *sum += reward * feature);
    }
}

impl Model {
    /// The inverse by rows, then b.
    fn words(&self) -> Words {
        let mut cells = self.inverse.iter().flatten().chain(&self.rewards);
        std::array::from_fn(|_| cells.next().map_or(0, |cell| cell.to_bits()))
    }

    fn of_words(words: &Words) -> Option<Model> {
        let mut model = Model::new();
        let cells = model.inverse.iter_mut().flatten().chain(&mut model.rewards);
        for (cell, &word) in cells.zip(words) {
            *cell = number(word)?;
        }
        Some(model)
    }
}

/// Models by site, and what jobs under way looked like as they went.
#[derive(Clone, Debug)]
pub(super) struct LinUcb {
    tie: Tie,
    models: Vec<Model>,
    jobs: BTreeMap<JobId, Vector>,
}

impl LinUcb {
    pub(super) fn new(options: &Options, sites: usize) -> LinUcb {
        LinUcb { tie: options.tie, models: vec![Model::new(); sites], jobs: BTreeMap::new() }
    }
}

fn features(round: &Round<'_>, job: usize, site: usize) -> Vector {
    let seconds = round.job(job).requested.as_secs_f64().max(0.0);
    let full = f64::from(round.slots().active(site)) / f64::from(round.slots().limit(site).max(1));
    [1.0, seconds / (seconds + HALF_S), full]
}

impl Rule for LinUcb {
    fn map(&mut self, round: &mut Round<'_>) {
        for job in 0..round.len() {
            let open: Vec<usize> = (0..round.slots().len()).filter(|&site| round.takes(job, site)).collect();
            if open.is_empty() {
                continue;
            }
            let bound = |round: &Round<'_>, site: usize| self.models[site].bound(&features(round, job, site));
            let site = best(round, &open, self.tie, bound);
            self.jobs.insert(round.job(job).id, features(round, job, site));
            round.assign(job, site);
        }
    }

    fn ended(&mut self, ended: &Ended) {
        if let Some(features) = self.jobs.remove(&ended.job.id) {
            // 1 without any wait or delay, less the longer it took against what was requested.
            let (requested, total) = (ended.job.requested.as_secs_f64(), ended.times.total().as_secs_f64());
            let reward = if requested + total > 0.0 { requested / (requested + total) } else { 0.0 };
            self.models[ended.site].learn(&features, reward);
        }
    }

    fn lost(&mut self, job: &JobSpec, _site: usize, _why: Lost) {
        self.jobs.remove(&job.id);
    }

    fn known(&self, of: Subject) -> Option<Words> {
        match of {
            Subject::Site(site) => self.models.get(site as usize).map(Model::words),
            Subject::Job(job) => self.jobs.get(&job).map(|features| words(features.map(f64::to_bits))),
            _ => None,
        }
    }

    fn recollect(&mut self, of: Subject, words: &Words) -> bool {
        let mut recollect = || match of {
            Subject::Site(site) => {
                *self.models.get_mut(site as usize)? = Model::of_words(words)?;
                Some(())
            }
            Subject::Job(job) => {
                let features = [number(words[0])?, number(words[1])?, number(words[2])?];
                self.jobs.insert(job, features).is_none().then_some(())
            }
            _ => None,
        };
        recollect().is_some()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_inverse_stays_one_and_rewards_are_found_again(
            rows in proptest::collection::vec((0.0..1.0_f64, 0.0..1.0_f64), 1..200),
        ) {
            let mut model = Model::new();
            let mut matrix = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
            for &(long, full) in &rows {
                let features = [1.0, long, full];
                model.learn(&features, 0.5 - 0.25 * full);
                for (row, left) in matrix.iter_mut().zip(features) {
                    row.iter_mut().zip(features).for_each(|(cell, right)| *cell += left * right);
                }
            }
            for (place, row) in matrix.iter().enumerate() {
                let product = model.times(row);
                for (other, cell) in product.into_iter().enumerate() {
                    let expected = if place == other { 1.0 } else { 0.0 };
                    prop_assert!((cell - expected).abs() < 1e-9, "{:?}", product);
                }
            }
        }
    }

    #[test]
    fn a_site_with_less_reward_is_left_once_it_is_known() {
        let (mut good, mut bad) = (Model::new(), Model::new());
        let features = [1.0, 0.5, 0.0];
        assert_eq!(good.bound(&features), 1.25_f64.sqrt());
        for _ in 0..100 {
            good.learn(&features, 0.9);
            bad.learn(&features, 0.2);
        }
        assert!(good.bound(&features) > bad.bound(&features));
        assert!(Model::new().bound(&features) > bad.bound(&features), "what is unknown is worth a try");
        assert!((good.bound(&features) - 0.9).abs() < 0.11);
    }
}
