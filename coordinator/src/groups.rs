//! The help of the whole program: commands in groups by what they are for, and examples.
//!
//! What a command does is said where it is; here is only to which group it belongs. A test sees that each is in one.

use std::fmt::Write as _;

use clap::Command;
use experiments::terminal::columns;
use outputs::table::{Table, folded};

/// Groups in the order in which most need them, with their commands.
const GROUPS: [(&str, &[&str]); 6] = [
    ("Run experiments", &["simulate", "run", "attach", "sweep", "play"]),
    ("Look at results", &["compare", "explain", "rerun", "serve", "report", "export", "study", "reproduce"]),
    ("Logs and theory", &["trace", "theory", "power", "genetic", "learning", "predict"]),
    ("Nodes by hand", &["node", "submit", "health", "key", "journal"]),
    ("Look for mistakes", &["swarm", "chaos", "bench"]),
    ("The program itself", &["doctor", "docs", "licenses", "completions", "man", "help"]),
];

/// Commands to begin with.
pub const EXAMPLES: &str = "\
Examples:
  stealgrid play                                          a simulation in the browser
  stealgrid simulate configs/quickstart.toml              the same jobs, simulated
  stealgrid simulate --sites 32,64,128 --trace my-log.swf.gz --strategy broker:mst --delay 30s
  stealgrid run configs/quickstart.toml                   and by real processes
  stealgrid explain out/quickstart 17                     why job 17 waited

stealgrid COMMAND --help tells all of a command.";

/// The program with its commands in groups.
pub fn of(program: Command) -> Command {
    let mut text = String::from("{about-with-newline}\n{usage-heading} {usage}\n");
    for (title, names) in GROUPS {
        let mut table = Table::new(["", ""]).with_left(1).within(columns() - 2);
        for name in names {
            let about = match *name {
                "help" => "Print this, or the help of a command".to_string(),
                name => about(&program, name),
            };
            table.push([format!("{name:<11}"), about]);
        }
        let _ = writeln!(text, "\n{title}:");
        // What the columns are is plain.
        for line in table.text().lines().skip(1) {
            let _ = writeln!(text, "  {line}");
        }
    }
    text += "\nOptions:\n{options}{after-help}\n";
    program.help_template(text).after_help(folded(EXAMPLES, columns()))
}

fn about(program: &Command, name: &str) -> String {
    let command = program.find_subcommand(name);
    command.and_then(Command::get_about).map(ToString::to_string).unwrap_or_default()
}

/// Names of all in groups.
#[cfg(test)]
pub(crate) fn names() -> Vec<&'static str> {
    GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect()
}
