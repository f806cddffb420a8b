//! Strategies that are commands of the user, as they are written: `broker:exec=COMMAND` and `--local exec=COMMAND`.
//!
//! What follows `exec=` is the command, to the end or to the first of the options that end the text. So a command may have
//! commas, unless what stands behind its last one looks like an option.

use std::collections::BTreeSet;
use std::path::PathBuf;

use external::{Command, Limits, QueueSettings, Settings};
use scheduler::{Broker, BrokerRule, LocalScheduler, Strategy, StrategySpec};

use super::file::{Written, WrittenGenetic};
use super::{ExperimentError, duration, forecasts, wrong};

/// What begins the name of a broker that is a command.
const BROKER: &str = "broker:exec";

/// Takes the options off the end: the command, and the options with their commas.
fn split<'a>(text: &'a str, options: &[&str]) -> (&'a str, &'a str) {
    let mut command = text;
    while let Some((rest, last)) = command.rsplit_once(',')
        && last.split_once('=').is_some_and(|(key, _)| options.contains(&key))
    {
        command = rest;
    }
    (command, &text[command.len()..])
}

/// A strategy as the scheduler knows it, and its command if it has one.
///
/// # Errors
/// Why the name means nothing.
fn strategy(text: &str) -> Result<(StrategySpec, Option<Command>), String> {
    let (ideal, name) = text.strip_prefix("ideal/").map_or(("", text), |rest| ("ideal/", rest));
    let parse = |name: &str| name.parse::<StrategySpec>().map_err(|error| error.to_string());
    let Some(rest) = name.strip_prefix(BROKER) else { return Ok((parse(text)?, None)) };
    let Some(rest) = rest.strip_prefix('=') else {
        return Err(format!(
            "strategy {text:?}: a command is missing, as in {ideal}{BROKER}=python3 mine.py"
        ));
    };
    let (command, options) = split(rest, &Broker::OPTIONS);
    let command = Command::parse(command).map_err(|error| format!("strategy {text:?}: {error}"))?;
    Ok((parse(&format!("{ideal}{BROKER}{options}"))?, Some(command)))
}

/// A local scheduler, and its command if it has one.
///
/// # Errors
/// Why the name means nothing.
fn local(text: &str) -> Result<(LocalScheduler, Option<QueueSettings>), String> {
    let Some(rest) = text.strip_prefix("exec=") else {
        return match text.parse()? {
            LocalScheduler::External => Err("a command is missing, as in exec=python3 mine.py".to_string()),
            scheduler => Ok((scheduler, None)),
        };
    };
    let (command, options) = split(rest, &["fallback"]);
    let command = Command::parse(command).map_err(|error| error.to_string())?;
    let mut fallback = LocalScheduler::Easy;
    for option in options.split(',').filter(|option| !option.is_empty()) {
        let (_, name) = option.split_once('=').unwrap_or_default();
        fallback = name.parse()?;
        if fallback == LocalScheduler::External {
            return Err("the fallback of a command is no command".to_string());
        }
    }
    Ok((LocalScheduler::External, Some(QueueSettings { command, fallback })))
}

/// The same with what the section `[strategy.genetic]` says, if it is a strategy that the section is about; what the name says
/// itself stays.
///
/// # Errors
/// If a value of the section means nothing, whatever the strategy.
fn with_section(
    spec: StrategySpec,
    name: &str,
    section: &WrittenGenetic,
) -> Result<StrategySpec, ExperimentError> {
    let planner = spec.strategy.broker().filter(|rules| rules.plans_batches());
    let mut rules = planner.copied().unwrap_or(Broker::new(BrokerRule::Genetic));
    let named = name.split(',').filter_map(|option| option.split_once('='));
    let named: BTreeSet<&str> = named.map(|(key, _)| key).collect();
    for (key, value) in section.options() {
        let with = rules.with(key, &value).map_err(wrong(format!("strategy.genetic.{key}")))?;
        rules = if named.contains(key) { rules } else { with };
    }
    Ok(match planner {
        Some(_) => StrategySpec { strategy: Strategy::Broker(rules), ..spec },
        None => spec,
    })
}

/// How jobs find a site and what starts there, with the commands that decide it.
///
/// # Errors
/// If a name means nothing, a limit allows nothing, or a program is not there.
pub(super) fn resolve(
    written: &Written,
) -> Result<(StrategySpec, LocalScheduler, Settings), ExperimentError> {
    let wrong_strategy = wrong("--strategy (strategy.name)");
    let name = written.strategy.name.as_deref().unwrap_or("st:50");
    let (spec, broker) = strategy(name).map_err(&wrong_strategy)?;
    let spec = with_section(spec, name, &written.strategy.genetic)?;
    let wrong_local = wrong("--local (strategy.local)");
    let (scheduler, queue) = match &written.strategy.local {
        Some(text) => local(text).map_err(&wrong_local)?,
        None => (LocalScheduler::default(), None),
    };
    let scheduler = forecasts::backfill(written.strategy.backfill.as_deref(), scheduler)?;
    let has_queues = spec.strategy.nature().queues;
    let settings = Settings { broker, queue: queue.filter(|_| has_queues), limits: limits(written)? };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    for command in settings.commands() {
        let place = if settings.broker.as_ref() == Some(command) { &wrong_strategy } else { &wrong_local };
        command.check(&folders).map_err(|error| ExperimentError {
            lacks_a_file: error.is_about_a_file(),
            ..place(error.to_string())
        })?;
    }
    Ok((spec, scheduler, settings))
}

fn limits(written: &Written) -> Result<Limits, ExperimentError> {
    let defaults = Limits::default();
    let time = |place, text: &Option<String>, default| match text {
        Some(text) => duration(place, text).and_then(|time| match time.is_zero() {
            true => Err(wrong(place)(format!("{text:?} is no time to do anything; write 10s"))),
            false => Ok(time),
        }),
        None => Ok(default),
    };
    let line_bytes = written.external.line_bytes.unwrap_or(defaults.line_bytes);
    if line_bytes < LINE_BYTES_MIN {
        let reason = format!("{line_bytes} is less than an answer has; write {LINE_BYTES_MIN} or more");
        return Err(wrong("external.line_bytes")(reason));
    }
    let calls = written.external.calls.unwrap_or(defaults.calls);
    if calls == 0 {
        let reason = format!("nobody could ask to be called; write 1 or more, as in {}", defaults.calls);
        return Err(wrong("external.calls")(reason));
    }
    Ok(Limits {
        calls,
        decision: time("external.decision", &written.external.decision, defaults.decision)?,
        start: time("external.start", &written.external.start, defaults.start)?,
        line_bytes,
        stderr_bytes: written.external.stderr_bytes.unwrap_or(defaults.stderr_bytes),
    })
}

/// The least `external.line_bytes`: an answer with one start fits.
const LINE_BYTES_MIN: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_what_stands_before_the_options() {
        let (spec, command) =
            strategy("ideal/broker:exec=awk -f 'a,b c' x=1,y,a=0.5,cut=gt,fallback=mlb").unwrap();
        assert_eq!(spec.to_string(), "ideal/broker:exec,a=0.5,cut=gt,fallback=mlb");
        assert_eq!(command.unwrap().to_string(), "awk -f \"a,b c\" x=1,y");
        let (scheduler, queue) = local("exec=python3 mine.py --slow,fallback=fcfs").unwrap();
        let queue = queue.unwrap();
        assert_eq!((scheduler, queue.fallback), (LocalScheduler::External, LocalScheduler::Fcfs));
        assert_eq!(queue.command.to_string(), "python3 mine.py --slow");
        assert_eq!(strategy("st:50,order=bah").unwrap().1, None);
    }

    #[test]
    fn a_section_has_the_options_of_a_genetic_broker_that_its_name_does_not_have() {
        let resolved = |name: &str, section: &str| {
            let text = format!("[strategy]\nname = \"{name}\"\n[strategy.genetic]\n{section}");
            let written: Written = toml::from_str(&text).map_err(|error| error.to_string())?;
            resolve(&written).map(|(spec, ..)| spec.to_string()).map_err(|error| error.to_string())
        };
        let section = "window = \"60s\"\nbatch = 7\ngoal = \"wait\"\nevaluations = 99\n";
        for (name, expected) in [
            ("broker:genetic", "broker:genetic,batch=7,window=60s,goal=wait,evaluations=99"),
            (
                "ideal/broker:genetic,batch=3,goal=owa",
                "ideal/broker:genetic,batch=3,window=60s,evaluations=99",
            ),
            ("broker:mst", "broker:mst"),
            ("st:50", "st:50"),
        ] {
            assert_eq!(resolved(name, section), Ok(expected.to_string()));
        }
        for (section, expected) in [
            ("goal = \"wiat\"", "strategy.genetic.goal"),
            ("population = 1", "from 2 to 10000"),
            ("window = \"60\"", "write a whole number and a unit"),
            ("windov = \"60s\"", "unknown field `windov`"),
        ] {
            let error = resolved("st:50", section).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn what_is_missing_is_said() {
        for (text, expected) in [
            ("broker:exec", "broker:exec=python3 mine.py"),
            ("broker:exec,a=0.5", "a command is missing"),
            ("ideal/broker:exec=", "a command is missing"),
            ("broker:exec=x 'y", "not closed"),
            ("broker:exec=x,a=2", "write 0.5, 1/3 or auto"),
            ("broker:exec=x,fallback=exec", "fallback=exec means nothing"),
            ("broker:mpl,fallback=mlb", "means nothing to mpl"),
        ] {
            let error = strategy(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
        for (text, expected) in [
            ("exec", "a command is missing"),
            ("exec=x,fallback=best", "unknown local scheduler"),
            ("exec=x,fallback=exec", "is no command"),
        ] {
            let error = local(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
