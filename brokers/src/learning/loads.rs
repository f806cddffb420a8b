//! Heuristics by the load of sites, for one job after the other as they came: least loaded, greedy and marginal costs.
//!
//! The last after Weng, Li, Lu 2006: what a job adds to a cost that is exponential in the load of processors and of network.

use std::collections::BTreeMap;

use scheduler::strategy::opaque::DispatchRule;
use scheduler::{JobId, JobSpec};

use super::completion::Planner;
use super::in_turn::place;
use super::memory::{Subject, Words, words};
use super::rule::{Ended, Lost, Round, Rule};

/// Least loaded, or least loaded with transfers.
#[derive(Clone, Debug)]
pub(super) struct ByLoad {
    rule: DispatchRule,
}

impl ByLoad {
    pub(super) fn new(rule: DispatchRule) -> ByLoad {
        ByLoad { rule }
    }
}

impl Rule for ByLoad {
    fn map(&mut self, round: &mut Round<'_>) {
        let mut planner = Planner::new(round);
        for job in 0..round.len() {
            let open = (0..round.slots().len()).filter(|&site| round.takes(job, site));
            let site = open.min_by_key(|&site| match self.rule {
                DispatchRule::GreedyCost => {
                    planner.ready(site).saturating_add(planner.transfer(round, job, site))
                }
                _ => planner.ready(site),
            });
            if let Some(site) = site {
                planner.assign(round, job, site);
            }
        }
    }
}

/// The base of costs a, and its natural logarithm.
const BASE_LN: f64 = 0.405_465_108_108_164_4;

/// a^x with a = 1.5 for x from 0 to 2, by its power series: no library of the platform rounds it.
fn power(x: f64) -> f64 {
    let (mut term, mut sum) = (1.0, 1.0);
    for step in 1..=24 {
        term *= x * BASE_LN / f64::from(step);
        sum += term;
    }
    sum
}

/// Loads of a site, in microseconds of work: processors and network.
type Loads = [i64; 2];

/// Marginal costs over the jobs that are under way.
#[derive(Clone, Debug)]
pub(super) struct OnlineCost {
    loads: Vec<Loads>,
    /// ψ: a guess of the best load, doubled when it is exceeded.
    guess: i64,
    /// Where jobs are and what they add.
    jobs: BTreeMap<JobId, (usize, Loads)>,
}

impl OnlineCost {
    pub(super) fn new(sites: usize) -> OnlineCost {
        OnlineCost { loads: vec![[0; 2]; sites], guess: 1, jobs: BTreeMap::new() }
    }

    /// What a job costs that adds so much.
    fn marginal(&self, site: usize, adds: Loads) -> f64 {
        let part = |load: i64| load as f64 / self.guess as f64;
        let costs = self.loads[site].iter().zip(adds);
        costs.map(|(&load, add)| power(part(load.saturating_add(add))) - power(part(load))).sum()
    }

    fn fits(&self, site: usize, adds: Loads) -> bool {
        self.loads[site].iter().zip(adds).all(|(&load, add)| load.saturating_add(add) <= self.guess)
    }

    fn remove(&mut self, job: JobId) {
        if let Some((site, adds)) = self.jobs.remove(&job) {
            self.loads[site].iter_mut().zip(adds).for_each(|(load, add)| *load -= add);
        }
    }
}

impl Rule for OnlineCost {
    fn map(&mut self, round: &mut Round<'_>) {
        let planner = Planner::new(round);
        for job in 0..round.len() {
            let spec = *round.job(job);
            let options: Vec<(usize, Loads)> = (0..round.slots().len())
                .filter(|&site| round.takes(job, site))
                .map(|site| {
                    let work = round.estimates().execution(&spec, site).as_micros().max(0);
                    let work = work.saturating_mul(i64::from(spec.processors));
                    let work = work / i64::from(round.slots().processors(site).max(1));
                    (site, [work, planner.transfer(round, job, site).as_micros().max(0)])
                })
                .collect();
            // Loads are within the guess, so that exponents stay below 2.
            while !options.is_empty() && !options.iter().any(|&(site, adds)| self.fits(site, adds)) {
                match self.guess.checked_mul(2) {
                    Some(doubled) => self.guess = doubled,
                    None => break,
                }
            }
            let fitting = options.into_iter().filter(|&(site, adds)| self.fits(site, adds));
            let cost = |&(site, adds): &(usize, Loads)| self.marginal(site, adds);
            if let Some((site, adds)) = fitting.min_by(|one, other| cost(one).total_cmp(&cost(other))) {
                round.assign(job, site);
                self.loads[site].iter_mut().zip(adds).for_each(|(load, add)| *load += add);
                self.jobs.insert(spec.id, (site, adds));
            }
        }
    }

    fn ended(&mut self, ended: &Ended) {
        self.remove(ended.job.id);
    }

    fn lost(&mut self, job: &JobSpec, _site: usize, _why: Lost) {
        self.remove(job.id);
    }

    fn known(&self, of: Subject) -> Option<Words> {
        match of {
            Subject::Rule => Some(words([self.guess.cast_unsigned()])),
            Subject::Job(job) => {
                let (site, [work, data]) = self.jobs.get(&job)?;
                Some(words([*site as u64, work.cast_unsigned(), data.cast_unsigned()]))
            }
            _ => None,
        }
    }

    fn recollect(&mut self, of: Subject, words: &Words) -> bool {
        let amount = |word: u64| i64::try_from(word).ok();
        let mut recollect = || match of {
            Subject::Rule => {
                self.guess = amount(words[0]).filter(|&guess| guess > 0)?;
                Some(())
            }
            Subject::Job(job) => {
                let site = place(words[0], self.loads.len())?;
                let adds = [amount(words[1])?, amount(words[2])?];
                let [work, data] = self.loads[site];
                // Loads are what the jobs there add.
                self.loads[site] = [work.checked_add(adds[0])?, data.checked_add(adds[1])?];
                self.jobs.insert(job, (site, adds)).is_none().then_some(())
            }
            _ => None,
        };
        recollect().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_are_powers() {
        for x in 0..=20 {
            let x = f64::from(x) / 10.0;
            assert!((power(x) - 1.5_f64.powf(x)).abs() < 1e-14 * 3.0, "{x}");
        }
    }

    #[test]
    fn the_same_job_costs_more_where_more_is() {
        let mut costs = OnlineCost { guess: 10, ..OnlineCost::new(3) };
        costs.loads = vec![[0, 0], [10, 0], [0, 10]];
        let close = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-12, "{found}");
        close(costs.marginal(0, [10, 0]), 0.5);
        close(costs.marginal(1, [10, 0]), 0.75);
        close(costs.marginal(2, [10, 10]), 0.5 + 0.75);
        assert!(costs.fits(0, [10, 10]) && !costs.fits(1, [1, 0]));
    }
}
