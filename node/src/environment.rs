//! Flags from the environment, where a variable that is set to nothing is none: compose files set all variables that
//! they know, and leave empty those that nobody has given. Both executables parse with this.

use std::ffi::OsString;

use clap::builder::Resettable;
use clap::{ArgMatches, Command, CommandFactory};

/// The arguments of the process, parsed as this command.
pub fn arguments<C: CommandFactory>() -> ArgMatches {
    without_empty(C::command()).get_matches()
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
