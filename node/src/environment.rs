//! Flags from the environment, where a variable that is set to nothing is none: compose files set all variables that
//! they know, and leave empty those that nobody has given. Both executables parse with this.

use std::ffi::OsString;

use clap::builder::Resettable;
use clap::error::ErrorKind;
use clap::{ArgMatches, Command, CommandFactory};

/// The arguments of the process, parsed as this command.
pub fn arguments<C: CommandFactory>() -> ArgMatches {
    let typed: Vec<OsString> = std::env::args_os().collect();
    let command = without_empty(C::command());
    let parsed = command.clone().try_get_matches_from(&typed).or_else(|error| match error.kind() {
        ErrorKind::UnknownArgument => command.try_get_matches_from(joined(typed)),
        _ => Err(error),
    });
    parsed.unwrap_or_else(|error| error.exit())
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
