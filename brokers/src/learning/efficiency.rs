//! How efficient each site is, learned from the jobs that ended there: `getNewRLEfficiency` (Costa 2007, §5.3, Algorithm 1).
//!
//! A reward is +1, -1 or none. None is not 0: efficiency stays as it is. Means and deviations of all jobs and of each site
//! are kept side by side, as MQD changes from one to the other.

use scheduler::Span;
use scheduler::strategy::opaque::{AlphaWeighs, Counted, Options, Scope};
use serde::{Deserialize, Serialize};

use super::memory::{Words, number, words};
use super::statistics::Sums;

/// What a job that ended says of its site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reward {
    /// +1: faster than the mean by more than the tolerance.
    Faster,
    /// -1: slower than the mean by more than the tolerance.
    Slower,
}

/// One step of the learner, for whoever wants to see why.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// pi: the index of the job, in seconds.
    pub index_s: f64,
    /// pim: that of the mean, in seconds.
    pub mean_index_s: f64,
    /// stdtem, in seconds.
    pub tolerance_s: f64,
    /// r; none within the tolerance.
    pub reward: Option<Reward>,
    /// rle of the site afterwards, in [-1, 1].
    pub efficiency: f64,
}

/// The learner: a number and four sums per site, and four sums of all.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Efficiency {
    all: Sums,
    sites: Vec<Learned>,
}

/// What was learned of one site: all that a journal keeps of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Learned {
    /// rle, in [-1, 1].
    #[serde(with = "scheduler::text")]
    efficiency: f64,
    /// Of the jobs that ended there.
    sums: Sums,
}

/// Efficiency is a number.
impl Eq for Learned {}

impl Learned {
    /// rle, in [-1, 1].
    pub fn efficiency(&self) -> f64 {
        self.efficiency
    }

    /// As words, of which [`Learned::from_words`] makes it again.
    pub fn words(&self) -> Words {
        let [count, e, f, s, t, a, b] = self.sums.words();
        words([self.efficiency.to_bits(), count, e, f, s, t, a, b])
    }

    /// None if it cannot have been learned.
    pub fn from_words(&[efficiency, count, e, f, s, t, a, b, rest @ ..]: &Words) -> Option<Learned> {
        let efficiency = number(efficiency).filter(|efficiency| (-1.0..=1.0).contains(efficiency))?;
        let sums = Sums::from_words([count, e, f, s, t, a, b])?;
        (rest == [0; 4]).then_some(Learned { efficiency, sums })
    }
}

impl Efficiency {
    /// Of so many sites, of which nothing is known: 0 each.
    pub fn new(sites: usize) -> Efficiency {
        Efficiency { all: Sums::default(), sites: vec![Learned::default(); sites] }
    }

    /// Of sites of which this was learned, in their order. Each job ended at one of them, so that sums of all are theirs.
    pub fn from_sites(sites: Vec<Learned>) -> Efficiency {
        Efficiency { all: sites.iter().fold(Sums::default(), |all, site| all.with(site.sums)), sites }
    }

    /// What was learned of a site.
    ///
    /// # Panics
    /// If there is no such site.
    pub fn learned(&self, site: usize) -> Learned {
        self.sites[site]
    }

    /// Sites that it knows of.
    pub fn sites(&self) -> usize {
        self.sites.len()
    }

    /// rle of a site, in [-1, 1].
    ///
    /// # Panics
    /// If there is no such site.
    pub fn of(&self, site: usize) -> f64 {
        self.sites[site].efficiency
    }

    /// Learns of a job that ended at a site, compared with the jobs in scope.
    ///
    /// # Panics
    /// If there is no such site.
    pub fn ended(
        &mut self,
        options: &Options,
        scope: Scope,
        site: usize,
        execution: Span,
        total: Span,
    ) -> Step {
        let execution = execution.max(Span::ZERO);
        let total = total.max(execution);
        if options.counted == Counted::With {
            self.count(site, execution, total);
        }
        let sums = match scope {
            Scope::All => &self.all,
            Scope::Site => &self.sites[site].sums,
        };
        let index = |execution: f64, total: f64| {
            let (weighted, rest) = match options.alpha_weighs {
                AlphaWeighs::Execution => (execution, total - execution),
                AlphaWeighs::Volatile => (total - execution, execution),
            };
            options.alpha * weighted + (1.0 - options.alpha) * rest
        };
        let index_s = index(execution.as_secs_f64(), total.as_secs_f64());
        let (is_known, mean_index_s) = match sums.count() {
            0 => (false, index_s),
            _ => (true, index(sums.execution_mean_s(), sums.total_mean_s())),
        };
        let tolerance_s = sums.tolerance_s(options.deviation, options.tolerance);
        let reward = if !is_known {
            None
        } else if index_s < mean_index_s - tolerance_s {
            Some(Reward::Faster)
        } else if index_s > mean_index_s + tolerance_s {
            Some(Reward::Slower)
        } else {
            None
        };
        if options.counted == Counted::Without {
            self.count(site, execution, total);
        }
        if let Some(reward) = reward {
            self.reward(options, site, reward);
        }
        Step { index_s, mean_index_s, tolerance_s, reward, efficiency: self.of(site) }
    }

    fn count(&mut self, site: usize, execution: Span, total: Span) {
        self.all.add(execution, total);
        self.sites[site].sums.add(execution, total);
    }

    /// rle + l (r - rle) (formula 5.4).
    ///
    /// # Panics
    /// If there is no such site.
    pub fn reward(&mut self, options: &Options, site: usize, reward: Reward) {
        let reward = match reward {
            Reward::Faster => 1.0,
            Reward::Slower => -1.0,
        };
        let efficiency = &mut self.sites[site].efficiency;
        *efficiency += options.learning * (reward - *efficiency);
        // Rounding must not carry it out of the range.
        *efficiency = efficiency.clamp(-1.0, 1.0);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use scheduler::strategy::opaque::{Deviation, Tolerance};

    /// §1.6 of the extract: site, te, tto; then pi, pim, stdtem, rle by all jobs, rle by those of the site.
    type Row = (usize, i64, i64, f64, f64, f64, f64, f64);
    const VECTORS: [Row; 9] = [
        (0, 200, 300, 150.0, 150.0, 0.0, 0.0, 0.0),
        (1, 300, 1200, 600.0, 375.0, 70.711, -0.3, 0.0),
        (0, 220, 340, 170.0, 306.667, 52.915, 0.3, 0.0),
        (1, 320, 1500, 750.0, 417.5, 58.878, -0.51, -0.3),
        (0, 210, 330, 165.0, 367.0, 55.678, 0.51, 0.0),
        (1, 310, 1600, 800.0, 439.167, 55.498, -0.657, -0.51),
        (0, 190, 290, 145.0, 397.143, 57.155, 0.657, 0.0),
        (0, 230, 1700, 850.0, 453.75, 53.385, 0.1599, -0.3),
        (1, 300, 400, 200.0, 425.556, 52.915, -0.1599, -0.057),
    ];

    #[test]
    fn the_vectors_of_algorithm_1_come_out_in_both_scopes() {
        let options = Options::default();
        let (mut all, mut own) = (Efficiency::new(2), Efficiency::new(2));
        for (number, (site, te, tto, pi, pim, deviation, by_all, by_own)) in (1..).zip(VECTORS) {
            let [te, tto] = [te, tto].map(Span::from_secs);
            let step = all.ended(&options, Scope::All, site, te, tto);
            let near = |found: f64, expected: f64| {
                assert!((found - expected).abs() < 5.1e-4, "row {number}: {found} {expected}");
            };
            near(step.index_s, pi);
            near(step.mean_index_s, pim);
            near(step.tolerance_s, deviation);
            assert!((step.efficiency - by_all).abs() < 1e-12, "row {number}: {step:?}");
            let step = own.ended(&options, Scope::Site, site, te, tto);
            assert!((step.efficiency - by_own).abs() < 1e-12, "row {number}: {step:?}");
            match number {
                4 => (near(step.mean_index_s, 675.0), near(step.tolerance_s, 14.142)),
                6 => (near(step.mean_index_s, 716.667), near(step.tolerance_s, 10.0)),
                8 => (near(step.mean_index_s, 296.0), near(step.tolerance_s, 15.811)),
                9 => (near(step.mean_index_s, 587.5), near(step.tolerance_s, 9.574)),
                _ => ((), ()),
            };
        }
    }

    #[test]
    fn equal_rewards_come_near_one_as_a_power() {
        for (learning, expected) in
            [(0.3, [0.3, 0.51, 0.657, 0.7599, 0.83193]), (0.7, [0.7, 0.91, 0.973, 0.9919, 0.99757])]
        {
            let options = Options { learning, ..Options::default() };
            let mut learner = Efficiency::new(1);
            for expected in expected {
                learner.reward(&options, 0, Reward::Faster);
                assert!((learner.of(0) - expected).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn each_reading_changes_what_is_learned() {
        let learned = |options: Options| {
            let mut learner = Efficiency::new(2);
            let rows = VECTORS.map(|(site, te, tto, ..)| {
                learner.ended(&options, Scope::All, site, Span::from_secs(te), Span::from_secs(tto))
            });
            rows.map(|step| (step.index_s, step.tolerance_s, step.efficiency))
        };
        let default = learned(Options::default());
        // Equal weights weigh nothing apart: the readings of alpha differ elsewhere only.
        assert_eq!(learned(Options { alpha_weighs: AlphaWeighs::Volatile, ..Options::default() }), default);
        let uneven = Options { alpha: 0.8, ..Options::default() };
        let volatile = Options { alpha_weighs: AlphaWeighs::Volatile, ..uneven };
        assert_eq!(learned(uneven)[0].0, 0.8 * 200.0 + (1.0 - 0.8) * 100.0);
        assert_eq!(learned(volatile)[0].0, 0.8 * 100.0 + (1.0 - 0.8) * 200.0);
        let population = learned(Options { deviation: Deviation::Population, ..Options::default() });
        assert!((population[1].1 - 50.0).abs() < 1e-9);
        let error = learned(Options { tolerance: Tolerance::StandardError, ..Options::default() });
        assert!((error[1].1 - 50.0).abs() < 1e-9);
        let without = learned(Options { counted: Counted::Without, ..Options::default() });
        assert_eq!((without[1].1, without[1].2), (0.0, -0.3));
    }

    #[test]
    fn a_job_on_the_border_is_no_reward() {
        // Two jobs, population: mean 250, deviation 50; the second is at pi = 150 + 50 of pim = 150 exactly.
        let options = Options { alpha: 1.0, deviation: Deviation::Population, ..Options::default() };
        let mut learner = Efficiency::new(1);
        for te in [200, 300] {
            let step = learner.ended(&options, Scope::All, 0, Span::from_secs(te), Span::from_secs(te));
            assert_eq!((step.reward, step.efficiency), (None, 0.0), "{step:?}");
        }
    }

    /// All of it from all jobs anew, after each: clever code has no sums to be wrong.
    fn twin(options: &Options, scope: Scope, jobs: &[(usize, i64, i64)]) -> Vec<f64> {
        let mut efficiency = vec![0.0; 4];
        for (last, &(site, te, tto)) in jobs.iter().enumerate() {
            let upto = if options.counted == Counted::With { last + 1 } else { last };
            let in_scope = |job: &&(usize, i64, i64)| scope == Scope::All || job.0 == site;
            let mut sums = Sums::default();
            for &(_, te, tto) in jobs[..upto].iter().filter(in_scope) {
                sums.add(Span::from_secs(te), Span::from_secs(tto));
            }
            if sums.count() == 0 {
                continue;
            }
            let index = |te: f64, tto: f64| options.alpha * te + (1.0 - options.alpha) * (tto - te);
            let pi = index(te as f64, tto as f64);
            let pim = index(sums.execution_mean_s(), sums.total_mean_s());
            let std = sums.tolerance_s(options.deviation, options.tolerance);
            let reward = if pim - std > pi {
                1.0
            } else if pim + std < pi {
                -1.0
            } else {
                continue;
            };
            efficiency[site] += options.learning * (reward - efficiency[site]);
        }
        efficiency
    }

    proptest! {
        #[test]
        fn the_learner_is_its_naive_twin_and_survives_being_stored(
            jobs in proptest::collection::vec((0_usize..4, 1_i64..500, 0_i64..900), 0..50),
            scope in prop_oneof![Just(Scope::All), Just(Scope::Site)],
            counted in prop_oneof![Just(Counted::With), Just(Counted::Without)],
            alpha in 0.0..=1.0_f64, learning in 0.0..=1.0_f64, stored_at in 0_usize..50,
        ) {
            let options = Options { alpha, learning, counted, ..Options::default() };
            let jobs: Vec<_> = jobs.into_iter().map(|(site, te, more)| (site, te, te + more)).collect();
            let mut learner = Efficiency::new(4);
            for (number, &(site, te, tto)) in jobs.iter().enumerate() {
                if number == stored_at {
                    learner = stored(&learner);
                }
                let before = learner.of(site);
                let step = learner.ended(&options, scope, site, Span::from_secs(te), Span::from_secs(tto));
                prop_assert!((-1.0..=1.0).contains(&step.efficiency));
                prop_assert!(step.reward.is_some() || step.efficiency == before, "no reward, no change");
            }
            let found: Vec<f64> = (0..4).map(|site| learner.of(site)).collect();
            prop_assert_eq!(found, twin(&options, scope, &jobs));
        }
    }

    /// Through a format and as words, and back.
    fn stored(learner: &Efficiency) -> Efficiency {
        let read: Efficiency = serde_json::from_str(&serde_json::to_string(learner).unwrap()).unwrap();
        let again = |site| Learned::from_words(&read.learned(site).words()).expect("it was learned");
        let by_site = Efficiency::from_sites((0..read.sites()).map(again).collect());
        assert_eq!(by_site, read);
        by_site
    }
}
