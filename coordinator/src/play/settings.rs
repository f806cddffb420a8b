//! What the page can change of an experiment, as it stands in addresses: `delay=5m&load=0.8&loss=0.01&strategy=st&threshold=75&local=easy&submit=home`.
//!
//! Parsed once, here. What is not set stays as the experiment has it. Strategies that have a threshold may be named without
//! it. No setting can name a command or a file: whoever opens a link runs nothing but a simulation.

use std::time::Duration;

use scheduler::{LocalScheduler, StrategySpec, Submit, Threshold};
use toml::{Table, Value};

/// The keys of settings.
pub(super) const KEYS: [&str; 7] = ["delay", "load", "loss", "strategy", "threshold", "local", "submit"];

/// What was set.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Settings {
    /// One-way delay of every message, in trace time.
    pub(super) delay: Option<Duration>,
    /// Offered load as a share of the capacity.
    pub(super) load: Option<f64>,
    /// The probability that a message is lost.
    pub(super) loss: Option<f64>,
    /// How jobs find a site, its threshold included.
    pub(super) strategy: Option<StrategySpec>,
    /// Where it has one: the border between big and small jobs.
    pub(super) threshold: Option<Threshold>,
    /// The scheduler of local queues.
    pub(super) local: Option<LocalScheduler>,
    /// Where jobs enter the grid.
    pub(super) submit: Option<Submit>,
}

impl Settings {
    /// What these keys and values of an address mean.
    ///
    /// # Errors
    /// In words, the first that means nothing.
    pub(super) fn parse(pairs: &[(String, String)]) -> Result<Settings, String> {
        let mut settings = Settings::default();
        for (place, (key, value)) in pairs.iter().enumerate() {
            if pairs[..place].iter().any(|(before, _)| before == key) {
                return Err(format!("{key} is given twice; keep one"));
            }
            let set = match key.as_str() {
                "delay" => links::quantity::time(value).map(|delay| settings.delay = Some(delay)),
                "load" => number(value, "0.8").map(|load| settings.load = Some(load)),
                "loss" => number(value, "0.01").map(|loss| settings.loss = Some(loss)),
                "strategy" => strategy(value).map(|strategy| settings.strategy = Some(strategy)),
                "threshold" => value.parse().map(|threshold| settings.threshold = Some(threshold)),
                "local" => local(value).map(|local| settings.local = Some(local)),
                "submit" => value.parse().map(|submit| settings.submit = Some(submit)),
                _ => return Err(format!("{key:?} is no setting; use {}", KEYS.join(", "))),
            };
            set.map_err(|reason| format!("{key}: {reason}"))?;
        }
        Ok(settings)
    }

    /// Writes them into an experiment whose strategy is this one.
    pub(super) fn apply(&self, experiment: &mut Table, written: StrategySpec) {
        if let Some(delay) = self.delay {
            let network = part(experiment, "network");
            // As `--delay`: it takes the place of all that gives base delays.
            for base in ["matrix", "matrix_file", "matrix_unit", "round_trip", "coordinates"] {
                network.remove(base);
            }
            network.insert("delay".to_string(), Value::String(shown(delay)));
        }
        if let Some(loss) = self.loss {
            part(experiment, "network").insert("loss".to_string(), Value::Float(loss));
        }
        if let Some(load) = self.load {
            let workload = part(experiment, "workload");
            workload.remove("load_factor");
            workload.insert("load".to_string(), Value::Float(load));
        }
        let mut strategy = self.strategy.unwrap_or(written);
        if let Some(threshold) = self.threshold {
            strategy.strategy = strategy.strategy.with_threshold(threshold);
        }
        if strategy != written {
            let name = Value::String(strategy.to_string());
            part(experiment, "strategy").insert("name".to_string(), name);
        }
        if let Some(local) = self.local {
            let name = Value::String(local.name().to_string());
            part(experiment, "strategy").insert("local".to_string(), name);
        }
        if let Some(submit) = self.submit {
            let name = Value::String(submit.name().to_string());
            part(experiment, "strategy").insert("submit".to_string(), name);
        }
    }
}

/// A time as people and experiment files write it.
pub(super) fn shown(time: Duration) -> String {
    if time.is_zero() { "0s".to_string() } else { humantime::format_duration(time).to_string() }
}

/// A strategy without its threshold, where it has one: `st` of `st:50`.
pub(super) fn without_threshold(spec: StrategySpec) -> String {
    let name = spec.to_string();
    match spec.strategy.steal() {
        Some(steal) => name.replacen(&format!(":{}", steal.threshold), "", 1),
        None => name,
    }
}

/// A table of the experiment, made if it is missing.
fn part<'a>(experiment: &'a mut Table, name: &str) -> &'a mut Table {
    let value = experiment.entry(name).or_insert_with(|| Value::Table(Table::new()));
    value.as_table_mut().expect("an experiment that was understood has tables there")
}

fn number(text: &str, example: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite());
    number.ok_or_else(|| format!("{text:?} is not a number; write one like {example}"))
}

fn strategy(text: &str) -> Result<StrategySpec, String> {
    let (head, options) =
        text.split_once(',').map_or((text, String::new()), |(head, options)| (head, format!(",{options}")));
    let completed = format!("{head}:{}{options}", Threshold::HALF);
    let spec: StrategySpec = match (text.parse(), completed.parse::<StrategySpec>()) {
        (Ok(spec), _) => spec,
        (Err(_), Ok(spec)) if spec.strategy.has_threshold() => spec,
        (Err(error), _) => return Err(error.to_string()),
    };
    match spec.strategy.nature().external {
        true => Err(format!("{text:?} is a command, and a page starts none; use stealgrid simulate")),
        false => Ok(spec),
    }
}

fn local(text: &str) -> Result<LocalScheduler, String> {
    LocalScheduler::ALL.into_iter().find(|local| local.name() == text).ok_or_else(|| {
        let names = LocalScheduler::ALL.map(LocalScheduler::name).join(", ");
        format!("unknown local scheduler {text:?}; use one of {names}")
    })
}

#[cfg(test)]
mod tests {
    use scheduler::Strategy;

    use super::*;

    fn parse(query: &[(&str, &str)]) -> Result<Settings, String> {
        let pairs: Vec<_> = query.iter().map(|&(key, value)| (key.to_string(), value.to_string())).collect();
        Settings::parse(&pairs)
    }

    fn applied(query: &[(&str, &str)], to: &str) -> String {
        let mut table: Table = to.parse().unwrap();
        parse(query).unwrap().apply(&mut table, "st:50".parse().unwrap());
        toml::to_string(&table).unwrap()
    }

    #[test]
    fn each_setting_is_a_key_of_the_experiment() {
        let all = [
            ("delay", "90s"),
            ("load", "0.8"),
            ("loss", "0.01"),
            ("strategy", "st,order=bah"),
            ("threshold", "75"),
            ("local", "fcfs"),
            ("submit", "home"),
        ];
        assert_eq!(all.map(|(key, _)| key), KEYS);
        let expected = "[network]\ndelay = \"1m 30s\"\nloss = 0.01\n\n[strategy]\nlocal = \"fcfs\"\n\
                        name = \"st:75,order=bah\"\nsubmit = \"home\"\n\n[workload]\nload = 0.8\n";
        assert_eq!(applied(&all, ""), expected);
    }

    #[test]
    fn nothing_set_changes_nothing() {
        let text = "seed = 7\n\n[network]\ndelay = \"5m\"\n";
        assert_eq!(applied(&[], text), text);
    }

    #[test]
    fn a_delay_and_a_load_take_the_place_of_what_says_the_same_otherwise() {
        let text = "[network]\nmatrix = [[\"0s\"]]\nround_trip = true\njitter = \"uniform 1s\"\n\n[workload]\nload_factor = 2.0\n";
        let expected = "[network]\ndelay = \"0s\"\njitter = \"uniform 1s\"\n\n[workload]\nload = 1.5\n";
        assert_eq!(applied(&[("delay", "0s"), ("load", "1.5")], text), expected);
    }

    #[test]
    fn a_threshold_changes_only_strategies_that_have_one() {
        let name = |query: &[(&str, &str)]| applied(query, "");
        assert_eq!(name(&[("threshold", "30")]), "[strategy]\nname = \"st:30\"\n");
        assert_eq!(
            name(&[("strategy", "st-greedy"), ("threshold", "30")]),
            "[strategy]\nname = \"st-greedy:30\"\n"
        );
        assert_eq!(name(&[("strategy", "local"), ("threshold", "30")]), "[strategy]\nname = \"local\"\n");
        assert_eq!(name(&[("strategy", "st:20")]), "[strategy]\nname = \"st:20\"\n");
    }

    #[test]
    fn every_strategy_can_be_named_without_its_threshold() {
        for strategy in Strategy::all() {
            let spec = StrategySpec { strategy, ideal: false, fetch: scheduler::Span::ZERO };
            let name = without_threshold(spec);
            assert_eq!(name != spec.to_string(), strategy.has_threshold(), "{name}");
            assert_eq!(parse(&[("strategy", &name)]).unwrap().strategy, Some(spec), "{name}");
        }
        assert_eq!(without_threshold("ideal/st:5,order=bah".parse().unwrap()), "ideal/st,order=bah");
    }

    #[test]
    fn what_means_nothing_is_told_with_its_key_and_what_to_write() {
        for (query, expected) in [
            ([("dely", "5m")].as_slice(), "\"dely\" is no setting; use delay, load, loss"),
            (&[("delay", "5")], "delay: \"5\" is not a time"),
            (&[("delay", "1s"), ("delay", "2s")], "delay is given twice"),
            (&[("load", "much")], "load: \"much\" is not a number; write one like 0.8"),
            (&[("loss", "NaN")], "loss: \"NaN\" is not a number"),
            (&[("threshold", "101")], "threshold: \"101\" is not a whole number from 0 to 100"),
            (&[("strategy", "best")], "strategy: strategy \"best\": unknown name; use local, st:X"),
            (&[("strategy", "broker")], "a rule is missing"),
            (&[("local", "sjf")], "local: unknown local scheduler \"sjf\"; use one of fcfs, easy"),
        ] {
            let error = parse(query).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }

    /// A link that somebody else made must not start a program.
    #[test]
    fn no_setting_is_a_command() {
        for query in [
            [("strategy", "broker:exec=touch /tmp/x")],
            [("strategy", "broker:exec")],
            [("strategy", "ideal/broker:exec")],
            [("local", "exec=touch /tmp/x")],
            [("local", "exec")],
        ] {
            assert!(parse(&query).is_err(), "{query:?}");
        }
    }
}
