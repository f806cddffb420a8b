//! Flags from the environment, where a variable that is set to nothing is none: compose files set all variables that
//! they know, and leave empty those that nobody has given. Both executables parse with this.

use std::ffi::OsString;
use std::io::Write as _;

use clap::builder::Resettable;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgMatches, Command, CommandFactory};

/// The arguments of the process, parsed as this command.
pub fn arguments<C: CommandFactory>() -> ArgMatches {
    arguments_of(C::command(), std::env::args_os().collect())
}

/// These words, parsed as this command.
pub fn arguments_of(command: Command, typed: Vec<OsString>) -> ArgMatches {
    let command = without_empty(command);
    let parsed = command.clone().try_get_matches_from(&typed).or_else(|error| match error.kind() {
        ErrorKind::UnknownArgument => command.try_get_matches_from(joined(typed)),
        _ => Err(error),
    });
    parsed.unwrap_or_else(|error| match in_words(&error) {
        Some(said) => {
            let _ = std::io::stderr().lock().write_all(said.as_bytes());
            std::process::exit(error.exit_code())
        }
        None => error.exit(),
    })
}

/// What the standard library says of numbers, and what is expected instead.
const OF_NUMBERS: [(&str, &str); 5] = [
    ("invalid digit found in string", "a whole number is expected"),
    ("cannot parse integer from empty string", "a whole number is expected"),
    ("number too large to fit in target type", "a smaller number is expected"),
    ("number too small to fit in target type", "a greater number is expected"),
    ("invalid float literal", "a number is expected"),
];

/// An error about a number with what is expected; nothing if it is about something else.
fn in_words(error: &clap::Error) -> Option<String> {
    if error.kind() != ErrorKind::ValueValidation {
        return None;
    }
    let said = error.render().to_string();
    let (found, expected) = OF_NUMBERS.iter().find(|(found, _)| said.contains(found))?;
    let value = match error.get(ContextKind::InvalidValue) {
        Some(ContextValue::String(value)) => value.as_str(),
        _ => "",
    };
    // A whole number that is refused as one has the wrong sign.
    let is_negative = value.strip_prefix('-').is_some_and(|digits| digits.parse::<u64>().is_ok());
    let expected = if is_negative { "a whole number from 0 on is expected" } else { expected };
    Some(said.replace(found, expected))
}

/// The same with `--delay=-5s` for `--delay -5s`: what begins with a minus and a digit is a value and no flag, about which
/// whoever takes it has more to say.
fn joined(typed: Vec<OsString>) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = Vec::new();
    for argument in typed {
        let bytes = argument.as_encoded_bytes();
        let is_value = bytes.starts_with(b"-") && bytes.get(1).is_some_and(u8::is_ascii_digit);
        match arguments.last_mut().filter(|flag| is_value && takes_next(flag)) {
            Some(flag) => {
                flag.push("=");
                flag.push(argument);
            }
            None => arguments.push(argument),
        }
    }
    arguments
}

/// Whether it is a flag by its whole name, without a value.
fn takes_next(argument: &OsString) -> bool {
    let bytes = argument.as_encoded_bytes();
    bytes.len() > 2 && bytes.starts_with(b"--") && !bytes.contains(&b'=')
}

/// The same command, for which an empty variable is as good as none.
fn without_empty(command: Command) -> Command {
    command
        .mut_args(|arg| {
            let value = arg.get_env().and_then(std::env::var_os);
            if value.is_some_and(|value: OsString| value.is_empty()) {
                arg.env(Resettable::Reset)
            } else {
                arg
            }
        })
        .mut_subcommands(without_empty)
}
