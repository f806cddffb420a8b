//! The least forecast turnaround, by exponential smoothing of what was seen, as in MARS (Bose et al. 2004).

use scheduler::strategy::opaque::Options;

use super::memory::{Subject, Words, number, words};
use super::rule::{Ended, Round, Rule};

/// s = a x + (1 - a) s, beginning with the first x.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Forecast {
    value: Option<f64>,
}

impl Forecast {
    /// Counts what was seen with a weight in [0, 1].
    pub fn saw(&mut self, weight: f64, seen: f64) {
        self.value = Some(self.value.map_or(seen, |value| weight * seen + (1.0 - weight) * value));
    }

    /// What is expected next; none before anything was seen.
    pub fn value(&self) -> Option<f64> {
        self.value
    }
}

/// Forecasts by site, in seconds.
#[derive(Clone, Debug)]
pub(super) struct Smoothing {
    weight: f64,
    sites: Vec<Forecast>,
}

impl Smoothing {
    pub(super) fn new(options: &Options, sites: usize) -> Smoothing {
        Smoothing { weight: options.learning, sites: vec![Forecast::default(); sites] }
    }
}

impl Rule for Smoothing {
    fn map(&mut self, round: &mut Round<'_>) {
        for job in 0..round.len() {
            let open = (0..round.slots().len()).filter(|&site| round.takes(job, site));
            // A site that nothing is known of is tried first.
            let forecast = |site: usize| self.sites[site].value().unwrap_or(f64::NEG_INFINITY);
            if let Some(site) = open.min_by(|&one, &other| forecast(one).total_cmp(&forecast(other))) {
                round.assign(job, site);
            }
        }
    }

    fn ended(&mut self, ended: &Ended) {
        self.sites[ended.site].saw(self.weight, ended.times.total().as_secs_f64());
    }

    fn known(&self, of: Subject) -> Option<Words> {
        let Subject::Site(site) = of else { return None };
        self.sites.get(site as usize)?.value().map(|value| words([value.to_bits()]))
    }

    fn recollect(&mut self, of: Subject, words: &Words) -> bool {
        let Subject::Site(site) = of else { return false };
        let (Some(forecast), Some(value)) = (self.sites.get_mut(site as usize), number(words[0])) else {
            return false;
        };
        forecast.value = Some(value);
        value >= 0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forecasts_follow_by_their_weight() {
        let mut forecast = Forecast::default();
        assert_eq!(forecast.value(), None);
        for (seen, expected) in [(100.0, 100.0), (200.0, 130.0), (50.0, 106.0)] {
            forecast.saw(0.3, seen);
            assert!((forecast.value().unwrap() - expected).abs() < 1e-12);
        }
    }
}
