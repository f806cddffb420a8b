//! Arrivals with a daily cycle: a gap is spent faster in busy half hours than in quiet ones.
//!
//! Each half hour of the day has a weight, 1 on average. A gap is drawn in half hours of average weight; the
//! clock then passes as many real half hours as hold that much weight.

use super::parameters::Parameters;
use crate::draw::{Draw, Gamma};

/// Buckets of a day.
const BUCKETS: usize = 48;
/// Seconds of a bucket.
const BUCKET_SECONDS: f64 = 1800.0;
/// The bucket where the cycle starts: 05:30. The original's comment says 11 hours, its code half hours.
const CYCLE_START: usize = 11;
/// The longest gap, as a natural logarithm of seconds: five days.
const LN_GAP_MAX: f64 = 13.0;

/// The arrival process of one type of job.
#[derive(Clone, Debug)]
pub(super) struct Arrivals {
    gap: Gamma,
    /// Weight of each half hour from midnight; they sum to [`BUCKETS`].
    weights: [f64; BUCKETS],
    /// The half hour of the last arrival.
    bucket: usize,
    /// Weight spent in it, up to the last arrival.
    spent: f64,
    /// Start of that half hour, in seconds.
    bucket_start: f64,
}

impl Arrivals {
    /// Starts at midnight.
    pub(super) fn new(parameters: &Parameters) -> Arrivals {
        Arrivals {
            gap: parameters.gap,
            weights: weights(&parameters.daily_cycle),
            bucket: 0,
            spent: 0.0,
            bucket_start: 0.0,
        }
    }

    /// The next arrival, in seconds since the first midnight.
    pub(super) fn next(&mut self, draw: &mut Draw) -> f64 {
        let logarithm = loop {
            let logarithm = self.gap.sample(draw);
            if logarithm <= LN_GAP_MAX {
                break logarithm;
            }
        };
        self.spent += logarithm.exp() / BUCKET_SECONDS;
        while self.spent > self.weights[self.bucket] {
            self.spent -= self.weights[self.bucket];
            self.bucket = (self.bucket + 1) % BUCKETS;
            self.bucket_start += BUCKET_SECONDS;
        }
        self.bucket_start + BUCKET_SECONDS * (self.spent / self.weights[self.bucket])
    }
}

fn weights(cycle: &Gamma) -> [f64; BUCKETS] {
    let mut weights = [0.0; BUCKETS];
    for i in CYCLE_START..CYCLE_START + BUCKETS {
        let at = i as f64;
        weights[(i - 1) % BUCKETS] = cycle.cdf(at + 0.5) - cycle.cdf(at - 0.5);
    }
    let mean = weights.iter().sum::<f64>() / BUCKETS as f64;
    weights.map(|weight| weight / mean)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_average_one_and_peak_in_the_afternoon() {
        let weights = weights(&Parameters::typeless(128).daily_cycle);

        let busiest = (0..BUCKETS).max_by(|&a, &b| weights[a].total_cmp(&weights[b])).unwrap();
        assert!((weights.iter().sum::<f64>() - BUCKETS as f64).abs() < 1e-9);
        assert!(weights.iter().all(|&weight| weight > 0.0));
        assert!((24..32).contains(&busiest), "{busiest}");
    }

    #[test]
    fn arrivals_never_go_back() {
        let mut arrivals = Arrivals::new(&Parameters::batch(64));
        let mut draw = Draw::of_stream(3, 0);
        let times: Vec<f64> = (0..2000).map(|_| arrivals.next(&mut draw)).collect();

        assert!(times.is_sorted());
        assert!(times[0] > 0.0);
    }
}
