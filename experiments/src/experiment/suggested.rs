//! Values that shells complete, of flags that take others as well.

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{Arg, Command};

/// Strategies that somebody may begin with; each takes options.
pub(super) const STRATEGIES: &[&str] = &[
    "local",
    "st:25",
    "st:50",
    "st:75",
    "st-greedy:50",
    "common-pool",
    "pool:fcfs",
    "pool:easy",
    "pool:list",
    "steal:random",
    "steal:nearest",
    "steal:loaded",
    "steal:two-choices",
    "steal:loaded,select=easy",
    "broker:random",
    "broker:round-robin",
    "broker:ml",
    "broker:mlp",
    "broker:mpl",
    "broker:lbal-s",
    "broker:mlb",
    "broker:mct",
    "broker:mst",
    "broker:mwt",
    "broker:mwwt-s",
    "broker:genetic",
    "opaque:round-robin",
    "opaque:ag",
    "opaque:mqd",
    "ideal/local",
    "ideal/st:50",
    "ideal/common-pool",
    "ideal/broker:mst",
];
/// Local schedulers, but for commands.
pub(super) const LOCALS: &[&str] = &[
    "fcfs",
    "easy",
    "easy-best-fit",
    "easy-sjbf",
    "easy-smallest",
    "conservative",
    "conservative-replan",
    "list",
];
/// Named networks.
pub(super) const NETWORKS: &[&str] = &["lan", "metro", "continental", "world"];

/// Takes any text, and has these completed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Suggested(pub(super) &'static [&'static str]);

impl TypedValueParser for Suggested {
    type Value = String;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.0.iter().map(|value| PossibleValue::new(*value))))
    }
}

#[cfg(test)]
mod tests {
    use scheduler::{LocalScheduler, StrategySpec};

    use super::*;

    #[test]
    fn what_is_completed_is_taken_and_what_there_is_is_completed() {
        for name in STRATEGIES {
            assert!(name.parse::<StrategySpec>().is_ok(), "{name}");
        }
        assert_eq!(LOCALS, LocalScheduler::ALL.map(LocalScheduler::name));
        for name in NETWORKS {
            let written = links::Written { model: Some((*name).to_string()), ..links::Written::default() };
            assert!(written.resolve(&["a", "b"], &|_| unreachable!("it is no file")).is_ok(), "{name}");
        }
    }
}
