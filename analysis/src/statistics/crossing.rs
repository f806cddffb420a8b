//! Where an advantage ends along an axis, and how sure that is.
//!
//! The place is read off means of paired differences. How far it would move with other repetitions is asked by drawing
//! repetitions with replacement, the same ones at every point of the axis: points of one repetition share its jobs. A
//! sample without a crossing lies beyond the axis, to the right if the advantage is never lost and to the left if it
//! never was, so that it counts in the interval and is not left out.

use std::collections::{BTreeMap, BTreeSet};

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{Bootstrap, Crossover, Interval, crossovers};

/// What becomes of an advantage along an axis; less is better.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Advantage {
    /// It ends for the first time.
    Lost {
        /// Where it ends.
        end: Crossover,
        /// Where it began, if it was not there from the first point.
        begin: Option<Crossover>,
    },
    /// It is there from this place on, and was not before.
    Gained(Crossover),
    /// Better at every point.
    Throughout,
    /// Better at no point.
    Never,
    /// The same at every point.
    Same,
}

impl Advantage {
    /// Of mean differences along points that ascend; a difference of 0 says nothing.
    pub fn of(points: &[(f64, f64)]) -> Advantage {
        let changes = crossovers(points);
        if let Some(end) = changes.iter().position(|change| change.before.1 < 0.0) {
            // Changes alternate.
            let begin = end.checked_sub(1).map(|begin| changes[begin]);
            return Advantage::Lost { end: changes[end], begin };
        }
        match (changes.first(), points.iter().find(|point| point.1 != 0.0)) {
            (Some(gained), _) => Advantage::Gained(*gained),
            (None, Some(point)) if point.1 < 0.0 => Advantage::Throughout,
            (None, Some(_)) => Advantage::Never,
            (None, None) => Advantage::Same,
        }
    }

    /// Where it ends: at infinity if it does not, and at minus infinity if there is none.
    pub fn end(&self) -> f64 {
        match self {
            Advantage::Lost { end, .. } => end.at(),
            Advantage::Gained(_) | Advantage::Throughout => f64::INFINITY,
            Advantage::Never | Advantage::Same => f64::NEG_INFINITY,
        }
    }
}

/// Where an advantage ends, with what other repetitions might have said.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CrossoverInterval {
    /// By all repetitions.
    pub advantage: Advantage,
    /// Percentiles of [`Advantage::end`] over samples; its ends may be infinite. `None` of a single repetition.
    pub interval: Option<Interval>,
    /// The share of samples in which it is not lost before the last point.
    pub kept: f64,
    /// The share of samples in which it is there at every point.
    pub throughout: f64,
    /// The share of samples in which it never is.
    pub never: f64,
}

impl Bootstrap {
    /// Where the mean paired difference first goes from better to worse. `axis` has its points ascending, each with the
    /// differences by repetition. `None` if there is no difference at all.
    pub fn crossover_interval<K: Ord>(&self, axis: &[(f64, BTreeMap<K, f64>)]) -> Option<CrossoverInterval> {
        let keys: Vec<&K> =
            axis.iter().flat_map(|(_, values)| values.keys()).collect::<BTreeSet<_>>().into_iter().collect();
        if keys.is_empty() {
            return None;
        }
        // By point, then by repetition.
        let differences: Vec<Vec<Option<f64>>> = axis
            .iter()
            .map(|(_, values)| keys.iter().map(|key| values.get(key).copied()).collect())
            .collect();
        let of = |drawn: &[usize]| {
            let means: Vec<(f64, f64)> = axis
                .iter()
                .zip(&differences)
                .filter_map(|((x, _), values)| Some((*x, mean_of(drawn, values)?)))
                .collect();
            Advantage::of(&means)
        };
        let all: Vec<usize> = (0..keys.len()).collect();
        let advantage = of(&all);
        if keys.len() < 2 || self.resamples == 0 {
            let is = |yes: bool| f64::from(u8::from(yes));
            let kept = advantage.end() == f64::INFINITY;
            let throughout = advantage == Advantage::Throughout;
            let never = advantage.end() == f64::NEG_INFINITY;
            return Some(CrossoverInterval {
                advantage,
                interval: None,
                kept: is(kept),
                throughout: is(throughout),
                never: is(never),
            });
        }
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        let samples: Vec<Advantage> = (0..self.resamples)
            .map(|_| {
                let drawn: Vec<usize> = (0..keys.len()).map(|_| rng.random_range(0..keys.len())).collect();
                of(&drawn)
            })
            .collect();
        let share = |is: &dyn Fn(&Advantage) -> bool| {
            samples.iter().filter(|sample| is(sample)).count() as f64 / samples.len() as f64
        };
        let mut ends: Vec<f64> = samples.iter().map(Advantage::end).collect();
        ends.sort_unstable_by(f64::total_cmp);
        let tail = self.tail(keys.len());
        Some(CrossoverInterval {
            advantage,
            interval: Some(Interval { low: percentile(&ends, tail), high: percentile(&ends, 1.0 - tail) }),
            kept: share(&|sample| sample.end() == f64::INFINITY),
            throughout: share(&|sample| *sample == Advantage::Throughout),
            never: share(&|sample| sample.end() == f64::NEG_INFINITY),
        })
    }
}

/// The mean over those drawn that have a value.
fn mean_of(drawn: &[usize], values: &[Option<f64>]) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0_u32);
    for value in drawn.iter().filter_map(|&index| values[index]) {
        sum += value;
        count += 1;
    }
    (count > 0).then(|| sum / f64::from(count))
}

/// As [`super::quantile`], but beside an infinite neighbor the nearer of both: nothing lies between.
fn percentile(ascending: &[f64], share: f64) -> f64 {
    let place = share * (ascending.len() - 1) as f64;
    let (below, above) = (ascending[place.floor() as usize], ascending[place.ceil() as usize]);
    if below.is_finite() && above.is_finite() {
        below + place.fract() * (above - below)
    } else if place.fract() < 0.5 {
        below
    } else {
        above
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Axis = Vec<(f64, BTreeMap<usize, f64>)>;

    fn axis(points: &[(f64, &[f64])]) -> Axis {
        points.iter().map(|(x, values)| (*x, values.iter().copied().enumerate().collect())).collect()
    }

    #[test]
    fn an_advantage_ends_where_it_first_turns() {
        let of = |values: &[f64]| {
            let points: Vec<(f64, f64)> =
                values.iter().zip(0..).map(|(value, x)| (f64::from(x), *value)).collect();
            Advantage::of(&points)
        };

        assert_eq!(of(&[-1.0, -2.0]), Advantage::Throughout);
        assert_eq!(of(&[0.0, 2.0]), Advantage::Never);
        assert_eq!(of(&[0.0, 0.0]), Advantage::Same);
        assert!(matches!(of(&[1.0, -1.0, -2.0]), Advantage::Gained(_)));
        assert_eq!(of(&[-1.0, 1.0]).end(), 0.5);
        // Worse at first, then better, then worse: the end of the advantage is the second change.
        let late = of(&[3.0, -1.0, -1.0, 1.0, -1.0]);
        assert_eq!(late.end(), (2.0 * 3.0f64).sqrt());
        assert!(matches!(late, Advantage::Lost { begin: Some(begin), .. } if begin.at() == 0.75));
        assert!(matches!(of(&[-1.0, 1.0, -1.0]), Advantage::Lost { begin: None, .. }));
        assert_eq!((of(&[-1.0]).end(), of(&[1.0]).end()), (f64::INFINITY, f64::NEG_INFINITY));
    }

    /// Every sample of three repetitions: 27, all equally likely.
    #[test]
    fn the_interval_is_that_of_all_samples() {
        let axis = axis(&[(0.0, &[-5.0, -3.0, -4.0]), (4.0, &[-1.0, 2.0, 1.0]), (8.0, &[2.0, 5.0, 9.0])]);
        let mut ends = Vec::new();
        for code in 0..27 {
            let drawn = [code % 3, code / 3 % 3, code / 9];
            let points: Vec<(f64, f64)> = axis
                .iter()
                .map(|(x, values)| (*x, drawn.iter().map(|index| values[index]).sum::<f64>() / 3.0))
                .collect();
            ends.push(Advantage::of(&points).end());
        }
        ends.sort_unstable_by(f64::total_cmp);

        let found =
            Bootstrap { resamples: 20_000, ..Bootstrap::default() }.crossover_interval(&axis).unwrap();

        let interval = found.interval.unwrap();
        // One sample in 27 is more than a tail of 2.5 %.
        assert!(
            (interval.low - ends[0]).abs() < 1e-9 && (interval.high - ends[26]).abs() < 1e-9,
            "{interval:?}"
        );
        assert_eq!((found.kept, found.throughout, found.never), (0.0, 0.0, 0.0));
        assert!(matches!(found.advantage, Advantage::Lost { begin: None, .. }));
    }

    #[test]
    fn samples_without_a_crossing_are_beyond_the_axis() {
        // Without the third repetition it is never lost: in 8 of 27 samples.
        let lost = axis(&[(1.0, &[-1.0, -1.0, -1.0]), (10.0, &[-1.0, -1.0, 30.0])]);
        let found = Bootstrap::default().crossover_interval(&lost).unwrap();
        assert!((found.throughout - 8.0 / 27.0).abs() < 0.04, "{found:?}");
        assert_eq!((found.kept, found.never), (found.throughout, 0.0));
        let interval = found.interval.unwrap();
        assert!(interval.low.is_finite() && interval.high == f64::INFINITY, "{interval:?}");

        let hardly = axis(&[(1.0, &[-1.0, -1.0, 30.0]), (10.0, &[1.0, 1.0, 1.0])]);
        let found = Bootstrap::default().crossover_interval(&hardly).unwrap();
        assert_eq!(found.advantage, Advantage::Never);
        assert!((found.never - 19.0 / 27.0).abs() < 0.04, "{found:?}");
        assert_eq!(found.interval.unwrap().low, f64::NEG_INFINITY);
    }

    #[test]
    fn repetitions_may_be_missing() {
        let mut some = axis(&[(1.0, &[-1.0, -2.0, -3.0]), (2.0, &[]), (4.0, &[1.0, 2.0, 3.0])]);
        some[0].1.remove(&1);
        let found = Bootstrap::default().crossover_interval(&some).unwrap();
        assert!((found.advantage.end() - 2.0).abs() < 1e-9);
        let single = axis(&[(1.0, &[-1.0]), (2.0, &[-1.0])]);
        let found = Bootstrap::default().crossover_interval(&single).unwrap();
        assert_eq!((found.interval, found.throughout), (None, 1.0));
        assert_eq!(Bootstrap::default().crossover_interval::<u32>(&[(1.0, BTreeMap::new())]), None);
    }

    /// Repetitions differ by far more than strategies do; the mean difference is 0 at 60 s by construction.
    fn two_strategies(rng: &mut ChaCha8Rng) -> (Axis, Axis) {
        let weeks: Vec<f64> = (0..20).map(|_| rng.random_range(0.0..2000.0)).collect();
        let slopes: Vec<f64> = (0..20).map(|_| rng.random_range(10.0..30.0)).collect();
        let mut left = Axis::new();
        let mut right = Axis::new();
        for x in [1.0, 5.0, 20.0, 60.0, 180.0, 600.0, 3600.0] {
            let of = |rng: &mut ChaCha8Rng, slope: &dyn Fn(usize) -> f64| -> BTreeMap<usize, f64> {
                let value = |week: usize| {
                    weeks[week] + slope(week) * (x / 60.0_f64).ln() + rng.random_range(-30.0..30.0)
                };
                (0..20).map(value).collect::<Vec<f64>>().into_iter().enumerate().collect()
            };
            left.push((x, of(rng, &|week| slopes[week])));
            right.push((x, of(rng, &|_| 0.0)));
        }
        (left, right)
    }

    /// A mistake: each side draws repetitions of its own.
    fn unpaired(left: &Axis, right: &Axis, rng: &mut ChaCha8Rng) -> Interval {
        let mut ends: Vec<f64> = (0..400)
            .map(|_| {
                let mut mean = |values: &Axis| -> Vec<f64> {
                    let drawn: Vec<usize> = (0..20).map(|_| rng.random_range(0..20)).collect();
                    values
                        .iter()
                        .map(|(_, values)| drawn.iter().map(|key| values[key]).sum::<f64>() / 20.0)
                        .collect()
                };
                let (left_means, right_means) = (mean(left), mean(right));
                let points: Vec<(f64, f64)> = left
                    .iter()
                    .zip(left_means.iter().zip(&right_means))
                    .map(|((x, _), (l, r))| (*x, l - r))
                    .collect();
                Advantage::of(&points).end()
            })
            .collect();
        ends.sort_unstable_by(f64::total_cmp);
        Interval { low: percentile(&ends, 0.025), high: percentile(&ends, 0.975) }
    }

    #[test]
    fn mutant_the_interval_covers_the_crossing_as_often_as_it_says_and_an_unpaired_one_does_not() {
        let mut rng = ChaCha8Rng::seed_from_u64(11);
        let bootstrap = Bootstrap { resamples: 400, ..Bootstrap::default() };
        let (mut covered, mut covered_unpaired, mut useless) = (0, 0, 0);
        for _ in 0..400 {
            let (left, right) = two_strategies(&mut rng);
            let differences: Axis = left
                .iter()
                .zip(&right)
                .map(|((x, left), (_, right))| {
                    (*x, left.iter().map(|(key, value)| (*key, value - right[key])).collect())
                })
                .collect();
            covered += usize::from(
                bootstrap.crossover_interval(&differences).unwrap().interval.unwrap().contains(60.0),
            );
            let wrong = unpaired(&left, &right, &mut rng);
            covered_unpaired += usize::from(wrong.contains(60.0));
            useless += usize::from(wrong.low == f64::NEG_INFINITY && wrong.high == f64::INFINITY);
        }
        println!(
            "of 400 intervals {covered} cover; unpaired {covered_unpaired}, of which {useless} say nothing"
        );

        // 95 % of 400 is 380; percentiles of 20 repetitions cover a little less.
        assert!((360..=394).contains(&covered), "{covered} of 400");
        assert!(covered_unpaired > 394, "{covered_unpaired} of 400: the mistake is not seen");
        assert!(useless > 300, "{useless} of 400");
    }
}
