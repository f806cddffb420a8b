//! Rules by where the data is: storage affinity, and the three strategies of the Gridbus data scheduler.
//!
//! Storage affinity (Cirne et al. 2004) is the bytes of a job's input that are at a site. Gridbus (Venugopal, Buyya 2004)
//! limits what a site gets by its mean completion ratio.

use std::cmp::Reverse;

use scheduler::JobSpec;
use scheduler::strategy::opaque::DispatchRule;

use super::completion::Planner;
use super::copies::replicate;
use super::memory::{Subject, Words, number, words};
use super::rule::{Ended, Round, Rule};

/// Bytes of the input of a job that are at a site.
fn affinity(round: &Round<'_>, job: &JobSpec, site: usize) -> u64 {
    let inputs = round.estimates().inputs(job).iter();
    let here = inputs.filter(|input| round.estimates().holds(input.file, site));
    here.fold(0, |sum, input| sum.saturating_add(input.bytes))
}

/// The job with most of its input at a site goes there first; copies go where input is.
#[derive(Clone, Debug)]
pub(super) struct StorageAffinity {
    copies_max: usize,
}

impl StorageAffinity {
    pub(super) fn new(copies_max: u32) -> StorageAffinity {
        StorageAffinity { copies_max: copies_max as usize }
    }
}

impl Rule for StorageAffinity {
    fn map(&mut self, round: &mut Round<'_>) {
        loop {
            let jobs = (0..round.len()).filter(|&job| round.waits(job));
            let pairs = jobs.flat_map(|job| {
                let round = &*round;
                let open = (0..round.slots().len()).filter(move |&site| round.takes(job, site));
                open.map(move |site| {
                    let spec = round.job(job);
                    ((Reverse(affinity(round, spec, site)), spec.id, site), job)
                })
            });
            let Some(((.., site), job)) = pairs.min() else { break };
            if !round.assign(job, site) {
                break;
            }
        }
        if (0..round.len()).all(|job| !round.waits(job)) {
            replicate(round, self.copies_max, |round, job, copies, site| {
                let bytes = affinity(round, job, site);
                (bytes > 0).then_some((copies, Reverse(bytes)))
            });
        }
    }
}

/// What is known of a site's completion ratio.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Ratio {
    mean: f64,
    intervals: u32,
    /// Jobs that ended since the last interval.
    done: u32,
}

/// One of the three strategies.
#[derive(Clone, Debug)]
pub(super) struct DataStrategy {
    rule: DispatchRule,
    ratios: Vec<Ratio>,
}

impl DataStrategy {
    pub(super) fn new(rule: DispatchRule, sites: usize) -> DataStrategy {
        DataStrategy { rule, ratios: vec![Ratio::default(); sites] }
    }

    /// How many of the waiting jobs each site may get now. An interval ends with the first round after a job ended.
    fn limits(&mut self, round: &Round<'_>) -> Vec<usize> {
        if self.ratios.iter().any(|ratio| ratio.done > 0) {
            for (site, ratio) in self.ratios.iter_mut().enumerate() {
                let allocated = round.slots().active(site) + ratio.done;
                if allocated > 0 {
                    ratio.intervals += 1;
                    let newest = f64::from(ratio.done) / f64::from(allocated);
                    ratio.mean += (newest - ratio.mean) / f64::from(ratio.intervals);
                }
                ratio.done = 0;
            }
        }
        limits(round.len(), &self.ratios.iter().map(|ratio| ratio.mean).collect::<Vec<f64>>())
    }
}

/// In proportion to mean ratios, at least one each; all if nothing is known.
fn limits(waiting: usize, means: &[f64]) -> Vec<usize> {
    let sum: f64 = means.iter().sum();
    let limit = |mean: &f64| match sum > 0.0 {
        true => ((waiting as f64 * mean / sum).round() as usize).max(1),
        false => waiting,
    };
    means.iter().map(limit).collect()
}

impl Rule for DataStrategy {
    fn map(&mut self, round: &mut Round<'_>) {
        let mut left = self.limits(round);
        let mut planner = Planner::new(round);
        for job in 0..round.len() {
            let open = (0..round.slots().len()).filter(|&site| round.takes(job, site));
            let free = |&site: &usize| Reverse(round.slots().free(site));
            let site = match self.rule {
                DispatchRule::DataLocal => {
                    let inputs = round.estimates().inputs(round.job(job));
                    let holds_all =
                        |&site: &usize| inputs.iter().all(|one| round.estimates().holds(one.file, site));
                    open.filter(holds_all).min_by_key(free)
                }
                DispatchRule::DataAny => open.min_by_key(free),
                // The largest bandwidth is the shortest transfer, and none if the data is there.
                _ => {
                    open.filter(|&site| left[site] > 0).min_by_key(|&site| planner.transfer(round, job, site))
                }
            };
            if let Some(site) = site {
                planner.assign(round, job, site);
                left[site] = left[site].saturating_sub(1);
            }
        }
    }

    fn ended(&mut self, ended: &Ended) {
        self.ratios[ended.site].done += 1;
    }

    fn known(&self, of: Subject) -> Option<Words> {
        let Subject::Site(site) = of else { return None };
        let ratio = self.ratios.get(site as usize).filter(|ratio| **ratio != Ratio::default())?;
        Some(words([ratio.mean.to_bits(), ratio.intervals.into(), ratio.done.into()]))
    }

    fn recollect(&mut self, of: Subject, words: &Words) -> bool {
        let Subject::Site(site) = of else { return false };
        let (Some(ratio), Some(mean)) = (self.ratios.get_mut(site as usize), number(words[0])) else {
            return false;
        };
        let (Ok(intervals), Ok(done)) = (u32::try_from(words[1]), u32::try_from(words[2])) else {
            return false;
        };
        *ratio = Ratio { mean, intervals, done };
        (0.0..=1.0).contains(&mean) && intervals < u32::MAX && done < u32::MAX
    }
}

#[cfg(test)]
mod tests {
    use super::limits;

    #[test]
    fn limits_are_in_proportion_to_mean_completion_ratios() {
        assert_eq!(limits(10, &[0.0, 0.0]), [10, 10]);
        assert_eq!(limits(10, &[0.75, 0.25, 0.0]), [8, 3, 1]);
    }
}
