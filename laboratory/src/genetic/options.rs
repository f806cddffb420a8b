//! A file of options: flags as keys, for what is not typed; and all of them as such a file, to run the same again.

use std::ffi::OsString;
use std::path::Path;

use anyhow::{Context as _, bail};
use clap::{ArgMatches, Args as _, Command, FromArgMatches as _};
use experiments::limits;
use scheduler::spelling;
use toml::{Table, Value};

use super::GeneticArgs;

/// Flags that are about a place or this machine, and no options of what is computed.
const NO_OPTIONS: [&str; 4] = ["options", "out", "replace", "jobs"];

fn parser() -> Command {
    GeneticArgs::augment_args(Command::new("genetic").no_binary_name(true))
}

/// What was typed to this process with what a file says of the rest, and all options as such a file. What is typed wins.
///
/// # Errors
/// If the file cannot be read, has a key that is no flag, or a value that the flag does not take.
pub(super) fn complete(file: Option<&Path>) -> anyhow::Result<(GeneticArgs, String)> {
    let typed: Vec<OsString> = std::env::args_os().skip_while(|word| word != "genetic").skip(1).collect();
    let Some(path) = file else { return parsed(typed) };
    let text = limits::read_text(path, limits::EXPERIMENT)
        .with_context(|| format!("read {}; check the path", path.display()))?;
    joined(&text, typed).with_context(|| format!("understand {}", path.display()))
}

/// A file with what is typed behind it.
fn joined(text: &str, typed: Vec<OsString>) -> anyhow::Result<(GeneticArgs, String)> {
    let table: Table =
        text.parse().map_err(|error: toml::de::Error| anyhow::anyhow!("{}", error.message()))?;
    let command = parser();
    let known: Vec<&str> = command.get_arguments().filter_map(|flag| flag.get_long()).collect();
    let mut all: Vec<OsString> = Vec::new();
    for (key, value) in &table {
        if !known.contains(&key.as_str()) || NO_OPTIONS.contains(&key.as_str()) {
            let known = known.iter().filter(|name| !NO_OPTIONS.contains(name));
            let hint = spelling::hint(key, known.clone().copied());
            let names: Vec<&str> = known.copied().collect();
            bail!("unknown key {key}{hint}; there are {}", names.join(", "));
        }
        let flag = format!("--{key}");
        let is_flag = |word: &OsString| {
            word.to_str().is_some_and(|word| word == flag || word.starts_with(&format!("{flag}=")))
        };
        if typed.iter().any(is_flag) {
            continue;
        }
        match value {
            // A path may have a comma.
            Value::Array(values) if key == "trace" => {
                for value in values {
                    all.push(format!("{flag}={}", word(key, value)?).into());
                }
            }
            Value::Array(values) => {
                let words =
                    values.iter().map(|value| word(key, value)).collect::<anyhow::Result<Vec<_>>>()?;
                all.push(format!("{flag}={}", words.join(",")).into());
            }
            value => all.push(format!("{flag}={}", word(key, value)?).into()),
        }
    }
    all.extend(typed);
    parsed(all)
}

fn parsed(words: Vec<OsString>) -> anyhow::Result<(GeneticArgs, String)> {
    let matches = parser().try_get_matches_from(words).map_err(|error| {
        let text = error.to_string();
        let first = text.split("\n\n").next().unwrap_or_default();
        anyhow::anyhow!("{}", first.trim_start_matches("error: ").trim())
    })?;
    let args = GeneticArgs::from_arg_matches(&matches)?;
    if args.trace.is_empty() {
        bail!("find a log: neither is --trace typed nor is trace in the file of options");
    }
    Ok((args, written(&matches)))
}

fn word(key: &str, value: &Value) -> anyhow::Result<String> {
    Ok(match value {
        Value::String(text) => text.clone(),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        _ => bail!("{key} is {value}; write a number, a text, or a list of them"),
    })
}

/// All options, whether they were typed or are defaults.
fn written(matches: &ArgMatches) -> String {
    let mut table = Table::new();
    for flag in parser().get_arguments() {
        let (Some(name), Ok(Some(values))) = (flag.get_long(), matches.try_get_raw(flag.get_id().as_str()))
        else {
            continue;
        };
        if NO_OPTIONS.contains(&name) {
            continue;
        }
        let value = |text: &std::ffi::OsStr| -> Value {
            let text = text.to_string_lossy().into_owned();
            match (text.parse::<i64>(), text.parse::<f64>()) {
                (Ok(number), _) => Value::Integer(number),
                (_, Ok(number)) if number.is_finite() => Value::Float(number),
                _ => Value::String(text),
            }
        };
        let values: Vec<Value> = values.map(value).collect();
        let is_list = matches!(name, "trace" | "algorithms");
        let value = match (&values[..], is_list) {
            ([one], false) => one.clone(),
            _ => Value::Array(values),
        };
        table.insert(name.to_string(), value);
    }
    table.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complete(text: &str, typed: &[&str]) -> anyhow::Result<(GeneticArgs, String)> {
        joined(text, typed.iter().map(OsString::from).collect())
    }

    #[test]
    fn what_is_typed_wins_and_what_is_written_is_the_same_again() {
        let text =
            "trace = [\"a,b.swf\", \"c.swf\"]\nsites = [4, 8]\nsize = 50\nmutation = 0.5\nobx = \"O2\"\n";
        let (args, written) = complete(text, &["--size", "60", "--out", "there"]).unwrap();
        assert_eq!((args.trace.len(), &args.sites, args.size, args.mutation), (2, &vec![4, 8], 60, 0.5));
        assert_eq!(args.obx.name(), "O2");
        assert!(!written.contains("there"), "{written}");
        let (again, same) = complete(&written, &["--out", "there"]).unwrap();
        assert_eq!((format!("{again:?}"), same), (format!("{args:?}"), written));
    }

    #[test]
    fn slips_in_a_file_are_named_with_what_to_do() {
        let wrong = |text: &str| format!("{:#}", complete(text, &[]).unwrap_err());
        assert!(
            wrong("mutatoin = 0.5\n")
                .contains("unknown key mutatoin (did you mean mutation?); there are sites")
        );
        assert!(wrong("out = \"there\"\n").contains("unknown key out"));
        assert!(wrong("trace = \"a\"\nmutation = 5\n").contains("write a number from 0 to 1"));
        assert!(wrong("trace = \"a\"\nsize = true\n").contains("size is true; write a number"));
        assert!(wrong("size = 5\n").contains("trace"));
    }
}
