//! Instance-based learning: the mean run time of the k most similar jobs of the user that have ended, by the distance HEOM (Wilson and
//! Martinez, *Improved heterogeneous distance functions*, JAIR 1997; Lérida's thesis, 3.2.2).
//!
//! ```text
//! HEOM(x, y) = √ Σ_a d_a²      d_a = 0 or 1 for queue and program: the same or not, 1 if unknown
//!                              d_a = |x_a − y_a| / range_a for processors and estimate; range: greatest − least so far
//! ```
//!
//! The thesis takes all at distance 0; here those at the same distance count that ended last, k in all. Jobs of other users, at a distance of 1
//! for that alone, are not asked, and the state of the queue is none of the attributes: what a job waits for says little of how long it runs.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::{self, Display};

use scheduler::{JobSpec, Span, Time};

use super::Rule;
use super::last::{keep, mean};
use super::spelled::{K_MAX, Options};

/// How many instances count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ibl {
    /// Nearest instances that count at most.
    pub k: u32,
    /// Instances of a user that are remembered.
    pub window: u32,
}

impl Ibl {
    pub(super) fn read(options: &mut Options<'_>) -> Result<Ibl, String> {
        Ok(Ibl { k: options.number("k", 3, K_MAX)?, window: options.number("window", 100, K_MAX)? })
    }
}

impl Display for Ibl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "k={},window={}", self.k, self.window)
    }
}

/// What is compared of a job: what is the same or not, and what is far or near.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Instance<const N: usize, const L: usize> {
    /// Numbers that stand for names; -1 is unknown.
    pub(super) nominal: [i32; N],
    pub(super) linear: [f64; L],
}

impl<const N: usize, const L: usize> Instance<N, L> {
    /// HEOM without its root, which changes no order.
    pub(super) fn distance_squared(&self, other: &Self, ranges: &[Range; L]) -> f64 {
        let nominal = self.nominal.iter().zip(&other.nominal);
        let overlap = nominal.filter(|(own, other)| own != other || **own < 0).count() as f64;
        let linear = (0..L).map(|place| ranges[place].share(self.linear[place] - other.linear[place]));
        overlap + linear.map(|share| share * share).sum::<f64>()
    }
}

/// Of the last instances, which come first, the values of the k nearest; of the same distance those that come first.
pub(super) fn nearest<'a, const N: usize, const L: usize>(
    new: &Instance<N, L>,
    known: impl Iterator<Item = &'a (Instance<N, L>, Span)>,
    ranges: &[Range; L],
    k: u32,
) -> impl ExactSizeIterator<Item = Span> {
    // The nearest so far, ascending.
    let mut nearest: Vec<(f64, Span)> = Vec::with_capacity(k as usize + 1);
    for (instance, value) in known {
        let distance = new.distance_squared(instance, ranges);
        let place = nearest.partition_point(|(other, _)| *other <= distance);
        if place < k as usize {
            nearest.insert(place, (distance, *value));
            nearest.truncate(k as usize);
        }
    }
    nearest.into_iter().map(|(_, value)| value)
}

/// By queue and program; processors, and the estimate in seconds.
fn instance(job: &JobSpec) -> Instance<2, 2> {
    Instance {
        nominal: [job.labels.queue, job.labels.executable],
        linear: [f64::from(job.processors), job.requested.as_secs_f64()],
    }
}

/// The least and the greatest value so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct Range {
    least: f64,
    greatest: f64,
}

impl Range {
    pub(super) const NOTHING: Range = Range { least: f64::INFINITY, greatest: f64::NEG_INFINITY };

    pub(super) fn add(&mut self, value: f64) {
        (self.least, self.greatest) = (self.least.min(value), self.greatest.max(value));
    }

    fn share(&self, difference: f64) -> f64 {
        let range = self.greatest - self.least;
        if range > 0.0 { difference / range } else { 0.0 }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Experience {
    ibl: Ibl,
    /// By user, the last at the end.
    by_user: BTreeMap<i32, VecDeque<(Instance<2, 2>, Span)>>,
    ranges: [Range; 2],
}

impl Experience {
    pub(super) fn new(ibl: Ibl) -> Experience {
        Experience { ibl, by_user: BTreeMap::new(), ranges: [Range::NOTHING; 2] }
    }
}

impl Rule for Experience {
    fn predict(&mut self, _now: Time, job: &JobSpec) -> Option<Span> {
        let known = self.by_user.get(&job.labels.user)?;
        mean(nearest(&instance(job), known.iter().rev(), &self.ranges, self.ibl.k))
    }

    fn learn(&mut self, _now: Time, job: &JobSpec, run_time: Span) {
        let instance = instance(job);
        for (range, value) in self.ranges.iter_mut().zip(instance.linear) {
            range.add(value);
        }
        keep(self.by_user.entry(job.labels.user).or_default(), (instance, run_time), self.ibl.window);
    }

    fn boxed(&self) -> Box<dyn Rule> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use scheduler::Labels;

    use super::*;
    use crate::tests::job;

    fn of(executable: i32, processors: u32, requested: i64) -> JobSpec {
        let labels = Labels { user: 1, queue: 1, executable, ..Labels::UNKNOWN };
        JobSpec { labels, processors, ..job(1, requested) }
    }

    #[test]
    fn a_distance_is_worked_out_by_hand() {
        // Ranges of 6 processors and 20,000 s: (4/6)² + 0.15², and 1 for another program.
        let ranges = [Range { least: 2.0, greatest: 8.0 }, Range { least: 0.0, greatest: 20_000.0 }];
        let [one, other, third] =
            [of(1, 4, 5_000), of(1, 8, 8_000), of(2, 8, 8_000)].map(|job| instance(&job));
        assert!((one.distance_squared(&other, &ranges) - (16.0 / 36.0 + 0.0225)).abs() < 1e-12);
        assert!((one.distance_squared(&third, &ranges) - (1.0 + 16.0 / 36.0 + 0.0225)).abs() < 1e-12);
        let unknown = Instance { nominal: [1, -1], ..one };
        assert_eq!(unknown.distance_squared(&unknown, &ranges), 1.0, "what is unknown is like nothing");
    }

    #[test]
    fn the_nearest_that_ended_last_count() {
        let mut experience = Experience::new(Ibl { k: 2, window: 3 });
        assert_eq!(experience.predict(Time::ZERO, &of(1, 4, 100)), None);
        for (executable, processors, run_time) in [(1, 4, 1), (1, 4, 10), (1, 4, 30), (2, 4, 90)] {
            experience.learn(Time::ZERO, &of(executable, processors, 100), Span::from_secs(run_time));
        }
        let mut seconds = |job| experience.predict(Time::ZERO, &job).map(|span| span.as_micros() / 1_000_000);
        assert_eq!(seconds(of(1, 4, 100)), Some(20), "the first is forgotten");
        assert_eq!(seconds(of(2, 4, 100)), Some(60), "90, and of the others the last");
        assert_eq!(seconds(JobSpec { labels: Labels { user: 2, ..Labels::UNKNOWN }, ..of(1, 4, 100) }), None);
    }
}
