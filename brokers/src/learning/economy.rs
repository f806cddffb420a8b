//! Deadline and budget: the schedulers COST, TIME and COST_TIME of a grid whose sites have prices (Buyya et al. 2000).
//!
//! One pass over the sites per event. Prices are reserved as jobs go, and spent as they end.

use std::collections::BTreeMap;

use scheduler::strategy::opaque::{DispatchRule, Options};
use scheduler::{JobId, JobSpec, Span, Time};

use super::copies::{sums_in, sums_of};
use super::memory::{Subject, Words, truth, words};
use super::rule::{Ended, Lost, Round, Rule};

/// No first round was later, or as long before the zero of times, in microseconds; any two of these can be subtracted.
const STARTED_MAX: i64 = 1 << 61;

/// Money and time, and what jobs took so far.
#[derive(Clone, Debug)]
pub(super) struct Economy {
    rule: DispatchRule,
    budget: Option<u64>,
    deadline: Option<Span>,
    started: Option<Time>,
    spent: u64,
    reserved: BTreeMap<JobId, u64>,
    /// By site: how long jobs took in microseconds, and how many ended.
    times: Vec<(i128, i128)>,
    is_infeasible: bool,
}

impl Economy {
    pub(super) fn new(options: &Options, sites: usize) -> Economy {
        Economy {
            rule: options.rule,
            budget: options.budget,
            deadline: options.deadline,
            started: None,
            spent: 0,
            reserved: BTreeMap::new(),
            times: vec![(0, 0); sites],
            is_infeasible: false,
        }
    }

    /// The mean total time of jobs of a site in microseconds; 0 if none ended.
    fn mean(&self, site: usize) -> i128 {
        let (sum, jobs) = self.times[site];
        if jobs == 0 { 0 } else { sum / jobs }
    }

    /// Money that is neither spent nor reserved; none if there is no end of it.
    fn money(&self) -> Option<u64> {
        let reserved = self.reserved.values().fold(0_u64, |sum, &price| sum.saturating_add(price));
        self.budget.map(|budget| budget.saturating_sub(self.spent).saturating_sub(reserved))
    }

    /// How many of the jobs that wait the site gets at most.
    fn share(&self, round: &Round<'_>, site: usize, waiting: usize, left: Option<i64>) -> usize {
        let (price, limit) = (round.estimates().price(site), round.slots().limit(site) as usize);
        if self.rule == DispatchRule::Time {
            // Of what is reserved nothing can be spent twice, so the quotient is not rounded up.
            return match self.money() {
                Some(money) if price > 0 => limit.min(usize::try_from(money / price).unwrap_or(usize::MAX)),
                _ => waiting,
            };
        }
        if self.money().is_some_and(|money| money / (waiting as u64) < price) {
            return 0;
        }
        match (self.rule, self.mean(site), left) {
            (DispatchRule::CostTime, ..) | (_, _, None) => limit,
            (_, 0, _) => 1,
            (_, mean, Some(left)) => {
                let jobs = (2 * i128::from(left) + mean) / (2 * mean);
                limit.min(usize::try_from(jobs).unwrap_or(usize::MAX))
            }
        }
    }
}

impl Rule for Economy {
    fn map(&mut self, round: &mut Round<'_>) {
        let started = *self.started.get_or_insert(round.now());
        let left =
            self.deadline.map(|deadline| deadline.as_micros() - round.now().since(started).as_micros());
        let is_over =
            left.is_some_and(|left| left <= 0) || self.budget.is_some_and(|budget| budget <= self.spent);
        self.is_infeasible = is_over && !round.is_empty();
        if is_over {
            return;
        }
        let mut sites: Vec<usize> = round.slots().open().collect();
        sites.sort_by_key(|&site| {
            let (price, mean) = (round.estimates().price(site), self.mean(site));
            match self.rule {
                DispatchRule::Time => (mean, 0),
                DispatchRule::CostTime => (i128::from(price), mean),
                _ => (i128::from(price), 0),
            }
        });
        for site in sites {
            let jobs: Vec<usize> = (0..round.len()).filter(|&job| round.waits(job)).collect();
            if jobs.is_empty() {
                return;
            }
            let share = self.share(round, site, jobs.len(), left);
            for job in jobs.into_iter().take(share) {
                if !round.assign(job, site) {
                    break;
                }
                self.reserved.insert(round.job(job).id, round.estimates().price(site));
            }
        }
    }

    fn ended(&mut self, ended: &Ended) {
        self.spent = self.spent.saturating_add(self.reserved.remove(&ended.job.id).unwrap_or(0));
        let (sum, jobs) = &mut self.times[ended.site];
        *sum += i128::from(ended.times.total().as_micros());
        *jobs += 1;
    }

    fn lost(&mut self, job: &JobSpec, _site: usize, _why: Lost) {
        self.reserved.remove(&job.id);
    }

    fn known(&self, of: Subject) -> Option<Words> {
        match of {
            Subject::Rule => {
                let started = self.started?;
                Some(words([started.as_micros().cast_unsigned(), self.spent, self.is_infeasible.into()]))
            }
            Subject::Job(job) => self.reserved.get(&job).map(|&price| words([price])),
            Subject::Site(site) => sums_of(self.times.get(site as usize)?),
            _ => None,
        }
    }

    fn recollect(&mut self, of: Subject, words: &Words) -> bool {
        let mut recollect = || match of {
            Subject::Rule => {
                let started = words[0].cast_signed();
                // What time it is can still be compared with it.
                self.started =
                    (-STARTED_MAX..=STARTED_MAX).contains(&started).then(|| Time::from_micros(started));
                self.started?;
                (self.spent, self.is_infeasible) = (words[1], truth(words[2])?);
                Some(())
            }
            Subject::Job(job) => self.reserved.insert(job, words[0]).is_none().then_some(()),
            Subject::Site(site) => {
                *self.times.get_mut(site as usize)? = sums_in(words)?;
                Some(())
            }
            _ => None,
        };
        recollect().is_some()
    }

    fn is_infeasible(&self) -> bool {
        self.is_infeasible
    }
}
