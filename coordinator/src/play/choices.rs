//! What the page offers: marks of sliders, and lists of names from the code's own.

use std::time::Duration;

use scheduler::{LocalScheduler, Strategy, StrategySpec, Submit, Threshold};
use serde::Serialize;

use super::base::Base;
use super::settings::{shown, without_threshold};

/// Marks of the delay: from nothing over what networks need to what makes a grid useless, so far apart that each shows.
const DELAYS_S: [u64; 19] =
    [0, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 900, 1200, 1800, 3600, 7200, 10_800, 14_400, 21_600];
/// Marks of the loss; beyond, most messages are repetitions.
const LOSSES: [f64; 10] = [0.0, 0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5];
/// Marks of the load in percent: from an idle grid to one that cannot keep up.
const LOADS_PERCENT: std::ops::RangeInclusive<u32> = 2..=30;
/// Between two of them, in percent.
const LOAD_STEP: u32 = 5;
/// Between two marks of the threshold, in percent.
const THRESHOLD_STEP: usize = 5;

/// What can be chosen.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Choices {
    name: String,
    delays: Vec<String>,
    /// Shares of the capacity.
    loads: Vec<f64>,
    losses: Vec<f64>,
    thresholds: Vec<u8>,
    /// By name, without a threshold.
    strategies: Vec<String>,
    locals: Vec<&'static str>,
    submits: [&'static str; 2],
}

impl Choices {
    /// For this experiment, whose own strategy is among them, whatever its options.
    pub(super) fn of(base: &Base) -> Choices {
        let plain = |strategy| StrategySpec { strategy, ideal: false, fetch: scheduler::Span::ZERO };
        let mut strategies: Vec<String> =
            Strategy::all().into_iter().map(|strategy| without_threshold(plain(strategy))).collect();
        let own = without_threshold(base.strategy());
        if !strategies.contains(&own) {
            strategies.insert(0, own);
        }
        Choices {
            name: base.name().to_string(),
            delays: DELAYS_S.map(|seconds| shown(Duration::from_secs(seconds))).to_vec(),
            loads: LOADS_PERCENT.map(|step| f64::from(step * LOAD_STEP) / 100.0).collect(),
            losses: LOSSES.to_vec(),
            thresholds: (0..=100).step_by(THRESHOLD_STEP).filter(|&x| Threshold::new(x).is_some()).collect(),
            strategies,
            locals: LocalScheduler::ALL.map(LocalScheduler::name).to_vec(),
            submits: [Submit::Origin, Submit::Home].map(Submit::name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::play::settings::Settings;

    #[test]
    fn every_choice_is_a_setting_that_means_something() {
        let base = Base::built_in().unwrap();
        let choices = Choices::of(&base);
        let numbers = |numbers: &[f64]| numbers.iter().map(f64::to_string).collect::<Vec<_>>();
        let mut tried = 0;
        for (key, values) in [
            ("delay", choices.delays.clone()),
            ("load", numbers(&choices.loads)),
            ("loss", numbers(&choices.losses)),
            ("strategy", choices.strategies.clone()),
            ("threshold", choices.thresholds.iter().map(u8::to_string).collect()),
            ("local", choices.locals.iter().map(ToString::to_string).collect()),
            ("submit", choices.submits.iter().map(ToString::to_string).collect()),
        ] {
            for value in values {
                let settings = Settings::parse(&[(key.to_string(), value.clone())]).unwrap();
                base.resolve(&base.with(&settings)).unwrap_or_else(|error| panic!("{key}={value}: {error}"));
                tried += 1;
            }
        }
        assert!(tried > 80, "{tried}");
    }

    #[test]
    fn the_list_has_the_strategy_of_the_experiment() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mine.toml");
        let text = "grid.sizes = [4]\nworkload.trace = \"a.swf\"\nstrategy.name = \"st:30,order=bah\"\n";
        std::fs::write(&path, text).unwrap();
        let choices = Choices::of(&Base::read(&path).unwrap());
        assert_eq!(choices.strategies[0], "st,order=bah");
        let plain = Choices::of(&Base::built_in().unwrap());
        // The built-in experiment has one of its own, too.
        assert_eq!(choices.strategies[1..], plain.strategies[1..]);
        assert!(plain.strategies.contains(&"st".to_string()), "{:?}", plain.strategies);
    }
}
