//! An upper bound on a quantile of waits, with a confidence, from the order of the waits so far alone (the method BMBP: Brevik, Nurmi and
//! Wolski, *Predicting bounds on queuing delay for batch-scheduled parallel machines*, PPoPP 2006; Nurmi, Brevik and Wolski, *QBETS*, JSSPP
//! 2007).
//!
//! Of n waits that are drawn alike, the number above the quantile X_q is binomial with 1 − q. The k-th smallest is below X_q only if at most
//! n − k are above, so the bound is the k-th smallest with the least k for which
//!
//! ```text
//! P(Binomial(n, 1 − q) ≤ n − k) ≤ 1 − confidence
//! ```
//!
//! For q and confidence of 0.95 there is none below 59 waits: 0.95⁵⁸ is above 0.05. Waits change: when more bounds in a row are missed than
//! chance explains (`runs`), all but so many of the last waits are forgotten. Waits count when jobs start, so who still waits says
//! nothing, and coverage suffers while a queue builds up.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::{self, Display};

use scheduler::{JobSpec, Span, Time};

use super::runs::{Runs, autocorrelation};
use super::{Arrival, WaitRule};
use crate::pending::Pending;
use crate::spelled::Options;

/// Waits of a group that are remembered. Arbitrary; at 0.95 the bound is then within one in a hundred of the quantile, in order.
const HISTORY_MAX: usize = 10_000;

/// Which waits belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// All.
    All,
    /// Those of a queue of the log.
    Queue,
    /// Those of 1 to 4, 5 to 16, 17 to 64 or more processors, as published.
    Width,
}

const GROUPS: [(&str, Group); 3] = [("all", Group::All), ("queue", Group::Queue), ("width", Group::Width)];

/// Which bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quantile {
    /// Jobs in a hundred that wait no longer.
    pub q: u32,
    /// How sure that is, in percent.
    pub confidence: u32,
    /// Of whose waits. Before there are enough of a group, all count.
    pub of: Group,
}

impl Quantile {
    pub(super) fn read(options: &mut Options<'_>) -> Result<Quantile, String> {
        Ok(Quantile {
            q: options.number("q", 95, 99)?,
            confidence: options.number("confidence", 95, 99)?,
            of: options.one_of("of", &GROUPS, Group::All)?,
        })
    }
}

impl Display for Quantile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = GROUPS.iter().find(|(_, of)| *of == self.of).expect("all are there").0;
        write!(f, "q={},confidence={},of={of}", self.q, self.confidence)
    }
}

/// How many of the greatest of n values are above the bound: the most m with P(Binomial(n, 1 − q) ≤ m) ≤ 1 − confidence. None if
/// there is no such m: too few values.
fn above(n: usize, q: f64, confidence: f64) -> Option<usize> {
    // Terms of the sum in units of the first, q^n, which can be too small for a number; what it may reach, likewise.
    let most = libm::log(1.0 - confidence) - n as f64 * libm::log(q);
    let (mut term, mut sum, mut scale) = (1.0_f64, 1.0_f64, 0.0);
    let mut within = None;
    for m in 0..n {
        if libm::log(sum) + scale > most {
            break;
        }
        within = Some(m);
        term *= (n - m) as f64 / (m + 1) as f64 * (1.0 - q) / q;
        sum += term;
        if sum > 1e200 {
            (term, sum, scale) = (term / 1e200, sum / 1e200, scale + libm::log(1e200));
        }
    }
    within
}

/// The waits of a group.
#[derive(Clone, Debug, Default)]
struct History {
    /// The last at the end.
    waits: VecDeque<Span>,
    sorted: Vec<Span>,
    /// Bounds that were missed in a row.
    missed: u32,
}

impl History {
    fn push(&mut self, wait: Span) {
        if self.waits.len() == HISTORY_MAX
            && let Some(oldest) = self.waits.pop_front()
        {
            let place = self.sorted.partition_point(|&other| other < oldest);
            self.sorted.remove(place);
        }
        self.waits.push_back(wait);
        let place = self.sorted.partition_point(|&other| other < wait);
        self.sorted.insert(place, wait);
    }

    fn keep_last(&mut self, most: usize) {
        let old = self.waits.len().saturating_sub(most);
        self.waits.drain(..old);
        self.sorted = self.waits.iter().copied().collect();
        self.sorted.sort_unstable();
        self.missed = 0;
    }

    /// Of the logarithms of waits in seconds; a second more, as many are none.
    fn autocorrelation(&self) -> f64 {
        let logarithms: Vec<f64> =
            self.waits.iter().map(|wait| libm::log(1.0 + wait.as_secs_f64())).collect();
        autocorrelation(&logarithms)
    }
}

/// All, or a group of them.
type Key = Option<i32>;

#[derive(Debug)]
pub(super) struct Experience {
    quantile: Quantile,
    /// By how many values, how many are above the bound.
    above: Vec<Option<usize>>,
    /// The least number of values that have a bound.
    least: usize,
    runs: Runs,
    groups: BTreeMap<Key, History>,
    said: Pending<[Option<Span>; 2]>,
}

impl Experience {
    pub(super) fn new(quantile: Quantile) -> Experience {
        let [q, confidence] = [quantile.q, quantile.confidence].map(|percent| f64::from(percent) / 100.0);
        let above: Vec<Option<usize>> = Vec::new();
        let least = (1..).find(|&n| self::above(n, q, confidence).is_some()).expect("qⁿ goes to 0");
        Experience {
            quantile,
            above,
            least,
            runs: Runs::of(q),
            groups: BTreeMap::new(),
            said: Pending::new(),
        }
    }

    /// The job's own group, and all.
    fn keys(&self, job: &JobSpec) -> [Key; 2] {
        let own = match self.quantile.of {
            Group::All => None,
            Group::Queue => Some(job.labels.queue),
            Group::Width => Some(match job.processors {
                ..=4 => 0,
                5..=16 => 1,
                17..=64 => 2,
                _ => 3,
            }),
        };
        [own, None]
    }

    fn bound(&mut self, key: Key) -> Option<Span> {
        let sorted = &self.groups.get(&key)?.sorted;
        let (q, confidence) =
            (f64::from(self.quantile.q) / 100.0, f64::from(self.quantile.confidence) / 100.0);
        while self.above.len() <= sorted.len() {
            self.above.push(above(self.above.len(), q, confidence));
        }
        self.above[sorted.len()].map(|above| sorted[sorted.len() - 1 - above])
    }
}

impl WaitRule for Experience {
    fn predict(&mut self, arrival: &Arrival<'_>) -> Option<Span> {
        let bounds = self.keys(arrival.job).map(|key| self.bound(key));
        self.said.insert(arrival.job.id, bounds);
        bounds[0].or(bounds[1])
    }

    fn started(&mut self, _now: Time, job: &JobSpec, wait: Span) {
        let bounds = self.said.take(job.id).unwrap_or_default();
        let keys = self.keys(job);
        // Of all jobs both are one.
        let groups = if keys[0] == keys[1] { 1 } else { 2 };
        for (key, bound) in keys.into_iter().zip(bounds).take(groups) {
            let history = self.groups.entry(key).or_default();
            history.push(wait);
            match bound {
                Some(bound) if wait > bound => history.missed += 1,
                Some(_) => history.missed = 0,
                None => {}
            }
            if history.missed >= self.runs.rare(0.0)
                && history.missed >= self.runs.rare(history.autocorrelation())
            {
                history.keep_last(self.least);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use scheduler::local::LocalQueue;
    use scheduler::{JobId, LocalScheduler, Pass};

    use super::*;
    use crate::tests::job;
    use crate::waits::Ahead;

    /// Of how many values on the greatest, the second, … is a bound of 0.95 with 0.95: the known sample sizes of one-sided tolerance
    /// limits.
    #[test]
    fn the_least_sample_sizes_are_the_known_ones() {
        let first = |m: usize, q, confidence| (1..).find(|&n| above(n, q, confidence) == Some(m)).unwrap();
        assert_eq!([0, 1, 2, 3, 4].map(|m| first(m, 0.95, 0.95)), [59, 93, 124, 153, 181]);
        assert_eq!([0, 1, 2].map(|m| first(m, 0.90, 0.95)), [29, 46, 61]);
        assert_eq!((first(0, 0.99, 0.95), first(0, 0.5, 0.95)), (299, 5));
        assert_eq!(above(58, 0.95, 0.95), None);
    }

    /// Binomial coefficients as whole numbers, each term by itself.
    fn naive(n: usize, q: f64, confidence: f64) -> Option<usize> {
        let choose = |k: usize| (0..k).fold(1.0_f64, |product, i| product * (n - i) as f64 / (i + 1) as f64);
        let chance = |k: usize| choose(k) * (1.0 - q).powi(k as i32) * q.powi((n - k) as i32);
        (0..n).take_while(|&m| (0..=m).map(chance).sum::<f64>() <= 1.0 - confidence).last()
    }

    #[test]
    fn the_order_of_the_bound_is_that_of_the_naive_twin() {
        for (q, confidence) in [(0.95, 0.95), (0.5, 0.9), (0.25, 0.8), (0.99, 0.5), (0.01, 0.99)] {
            for n in 0..200 {
                assert_eq!(above(n, q, confidence), naive(n, q, confidence), "{n} {q} {confidence}");
            }
        }
        // Where q^n is no number any more: about the quantile, and two deviations of √(n q (1 − q)) for the confidence.
        let many = above(10_000, 0.5, 0.95).unwrap();
        assert!((4_900..4_930).contains(&many), "{many}");
    }

    /// In how many of so many samples of 59 to 159 values, drawn evenly from 0 to 1, the value above which so many are is no less than 0.95.
    fn bounded(samples: u32, above: impl Fn(usize) -> usize) -> f64 {
        let mut state = 0x2545_f491_4f6c_dd1d_u64;
        let mut draw = || {
            // Xorshift (Marsaglia 2003).
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        let mut kept = 0;
        for sample in 0..samples {
            let n = 59 + sample as usize % 101;
            let mut values: Vec<f64> = (0..n).map(|_| draw()).collect();
            values.sort_unstable_by(f64::total_cmp);
            kept += u32::from(values[n - 1 - above(n)] >= 0.95);
        }
        f64::from(kept) / f64::from(samples)
    }

    /// Not by much more, either: of 159 values the third greatest is a bound, and the second would be one in more than 99 of a hundred.
    #[test]
    fn a_bound_is_one_as_often_as_it_says() {
        let kept = bounded(20_000, |n| above(n, 0.95, 0.95).unwrap());
        assert!((0.95..0.98).contains(&kept), "{kept}");
    }

    #[test]
    fn mutant_the_quantile_of_the_sample_is_no_bound() {
        let kept = bounded(20_000, |n| (n as f64 * 0.05) as usize);
        assert!(kept < 0.75, "{kept}");
    }

    fn learned(of: Group) -> (Experience, LocalQueue, u64) {
        let queue = LocalQueue::new(LocalScheduler::Easy, Pass::Batch, 128);
        (Experience::new(Quantile { q: 95, confidence: 95, of }), queue, 0)
    }

    /// A job of so many processors comes, and waits; its bound.
    fn met(
        (experience, queue, number): &mut (Experience, LocalQueue, u64),
        processors: u32,
        wait: i64,
    ) -> Option<i64> {
        *number += 1;
        let job = JobSpec { id: JobId(*number), processors, ..job(1, 10) };
        let arrival = Arrival { now: Time::ZERO, job: &job, queue, ahead: Ahead::default() };
        let said = experience.predict(&arrival);
        experience.started(Time::ZERO, &job, Span::from_secs(wait));
        said.map(|span| span.as_micros() / 1_000_000)
    }

    #[test]
    fn the_bound_is_the_greatest_of_59_and_the_second_of_93() {
        let mut met_by = learned(Group::All);
        // Not in order: 60 is met before 59.
        for wait in 0..59 {
            assert_eq!(met(&mut met_by, 1, (wait * 37) % 59), None, "{wait}");
        }
        assert_eq!(met(&mut met_by, 1, 10), Some(58));
        for _ in 60..93 {
            assert_eq!(met(&mut met_by, 1, 10), Some(58));
        }
        assert_eq!(met(&mut met_by, 1, 10), Some(57));
    }

    /// Waits of 1 and 2 by turns, which are not alike to the next: the third miss in a row is no chance, and 59 are left, of which three are new.
    #[test]
    fn three_misses_in_a_row_forget_what_was() {
        let mut met_by = learned(Group::All);
        for wait in 0..1_000 {
            met(&mut met_by, 1, 1 + wait % 2);
        }
        assert_eq!(met_by.0.groups[&None].waits.len(), 1_000);
        for wait in [100, 101] {
            assert_eq!(met(&mut met_by, 1, wait), Some(2));
        }
        assert_eq!(met_by.0.groups[&None].waits.len(), 1_002);
        assert_eq!(met(&mut met_by, 1, 102), Some(2));
        let history = &met_by.0.groups[&None];
        assert_eq!((history.waits.len(), history.missed), (59, 0));
        assert_eq!(met(&mut met_by, 1, 50), Some(102), "the greatest of 59");
    }

    /// The same after 500 short waits and 500 long ones, which hang together: three are no news, and nothing is forgotten.
    #[test]
    fn waits_that_hang_together_are_missed_in_longer_runs() {
        let mut met_by = learned(Group::All);
        for wait in (0..500).map(|_| 1).chain((0..500).map(|_| 900)) {
            met_by.0.started(Time::ZERO, &job(1, 10), Span::from_secs(wait));
        }
        for wait in 0..3 {
            assert_eq!(met(&mut met_by, 1, 1_000 + wait), Some(900));
        }
        assert_eq!(met_by.0.groups[&None].waits.len(), 1_003);
    }

    #[test]
    fn a_group_has_its_own_bound_once_it_has_enough() {
        let mut met_by = learned(Group::Width);
        for _ in 0..59 {
            met(&mut met_by, 1, 5);
        }
        assert_eq!(met(&mut met_by, 64, 90), Some(5), "that of all");
        for _ in 0..58 {
            met(&mut met_by, 17, 90);
        }
        assert_eq!((met(&mut met_by, 32, 90), met(&mut met_by, 4, 5)), (Some(90), Some(5)));
    }

    #[test]
    fn the_oldest_of_too_many_is_forgotten() {
        let mut history = History::default();
        for wait in 0..HISTORY_MAX as i64 + 2 {
            history.push(Span::from_secs(wait % 1_000));
        }
        assert_eq!(history.waits.len(), HISTORY_MAX);
        let mut sorted: Vec<Span> = history.waits.iter().copied().collect();
        sorted.sort_unstable();
        assert_eq!(history.sorted, sorted);
    }
}
