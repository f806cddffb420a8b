//! Of the last run times of the user: their mean, their median, or the user's estimate times the largest share that they were of
//! theirs (the rule of Alea: Klusáček and Chlumský, *Evaluating the impact of soft walltimes on job scheduling performance*, JSSPP
//! 2018). A percentage makes all of these shorter: what a job runs past is corrected, and what is too long keeps it from overtaking.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::{self, Display};

use scheduler::{JobSpec, Span, Time};

use super::spelled::{K_MAX, Options};
use super::{Rule, whole_seconds};

/// What is made of run times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Their mean.
    Mean,
    /// Their median; the mean of the two in the middle, if there are two.
    Median,
    /// The largest share of the estimate, times that of the job.
    Ratio,
}

/// How many run times count, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Last {
    /// Run times at most; fewer, before there are so many.
    pub k: u32,
    /// What is made of them.
    pub by: By,
    /// Percent of it that is predicted, 1 to 100.
    pub percent: u32,
}

impl Last {
    /// Half of the last run time of the user: half is round. What EASY-SJBF makes of it, and of other shares, is in docs/PREDICTION.md.
    pub(super) const HALF: Last = Last { k: 1, by: By::Mean, percent: 50 };
}

const BY: [(&str, By); 3] = [("mean", By::Mean), ("median", By::Median), ("ratio", By::Ratio)];

impl Last {
    pub(super) fn read(options: &mut Options<'_>) -> Result<Last, String> {
        let k = options.number("k", 5, K_MAX)?;
        let by = options.one_of("by", &BY, By::Ratio)?;
        Ok(Last { k, by, percent: options.number("percent", 100, 100)? })
    }
}

impl Display for Last {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by = BY.iter().find(|(_, by)| *by == self.by).expect("all are there").0;
        write!(f, "k={},by={by}", self.k)?;
        if self.percent == 100 { Ok(()) } else { write!(f, ",percent={}", self.percent) }
    }
}

/// The mean of run times; none without any.
pub(super) fn mean(run_times: impl ExactSizeIterator<Item = Span>) -> Option<Span> {
    let count = i128::try_from(run_times.len()).ok().filter(|&count| count > 0)?;
    let sum: i128 = run_times.map(|span| i128::from(span.as_micros())).sum();
    i64::try_from(sum / count).ok().map(|micros| whole_seconds(Span::from_micros(micros)))
}

/// The median of run times; none without any.
pub(super) fn median(run_times: impl Iterator<Item = Span>) -> Option<Span> {
    let mut sorted: Vec<Span> = run_times.collect();
    sorted.sort_unstable();
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 {
        Some(sorted[middle])
    } else {
        mean(sorted.get(middle.checked_sub(1)?..=middle)?.iter().copied())
    }
}

/// Adds what is known last, in place of the first if there are so many.
pub(super) fn keep<T>(known: &mut VecDeque<T>, last: T, most: u32) {
    if known.len() == most as usize {
        known.pop_front();
    }
    known.push_back(last);
}

#[derive(Clone, Debug)]
pub(super) struct Experience {
    last: Last,
    /// By user: run times with the estimates, the last at the end.
    by_user: BTreeMap<i32, VecDeque<(Span, Span)>>,
}

impl Experience {
    pub(super) fn new(last: Last) -> Experience {
        Experience { last, by_user: BTreeMap::new() }
    }
}

impl Rule for Experience {
    fn predict(&mut self, _now: Time, job: &JobSpec) -> Option<Span> {
        let known = self.by_user.get(&job.labels.user)?;
        let whole = match self.last.by {
            By::Mean => mean(known.iter().map(|&(run_time, _)| run_time)),
            By::Median => median(known.iter().map(|&(run_time, _)| run_time)),
            By::Ratio => {
                let of_job = |&(run_time, requested): &(Span, Span)| {
                    let share = i128::from(job.requested.as_micros()) * i128::from(run_time.as_micros());
                    i64::try_from(share / i128::from(requested.as_micros().max(1))).unwrap_or(i64::MAX)
                };
                known.iter().map(of_job).max().map(|micros| whole_seconds(Span::from_micros(micros)))
            }
        }?;
        if self.last.percent == 100 {
            return Some(whole);
        }
        let part = i128::from(whole.as_micros()) * i128::from(self.last.percent) / 100;
        i64::try_from(part).ok().map(|micros| whole_seconds(Span::from_micros(micros)))
    }

    fn learn(&mut self, _now: Time, job: &JobSpec, run_time: Span) {
        let known = self.by_user.entry(job.labels.user).or_default();
        keep(known, (run_time, job.requested), self.last.k);
    }

    fn boxed(&self) -> Box<dyn Rule> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::job;

    #[test]
    fn the_last_of_the_user_count() {
        for (by, expected) in [(By::Mean, 50), (By::Median, 30), (By::Ratio, 120)] {
            let mut experience = Experience::new(Last { k: 3, by, percent: 100 });
            assert_eq!(experience.predict(Time::ZERO, &job(1, 200)), None);
            for (requested, run_time) in [(1000, 999), (100, 20), (200, 30), (200, 100)] {
                experience.learn(Time::ZERO, &job(1, requested), Span::from_secs(run_time));
            }
            experience.learn(Time::ZERO, &job(2, 1000), Span::from_secs(1000));
            assert_eq!(
                experience.predict(Time::ZERO, &job(1, 240)),
                Some(Span::from_secs(expected)),
                "{by:?}"
            );
        }
        let mut half = Experience::new(Last::HALF);
        for run_time in [900, 51] {
            half.learn(Time::ZERO, &job(1, 1000), Span::from_secs(run_time));
        }
        assert_eq!(half.predict(Time::ZERO, &job(1, 1000)), Some(Span::from_secs(25)), "whole seconds");
        let two = [Span::from_secs(10), Span::from_secs(13)];
        assert_eq!(median(two.into_iter()), Some(Span::from_secs(11)));
    }
}
