//! `stealgrid journal`: what is in the data directory of a node.

use std::path::PathBuf;

use experiments::exit;
use experiments::terminal::say;
use node::journal::inspect;

/// Look at the journal of a node. The node may be running
#[derive(Clone, Debug, clap::Args)]
pub struct JournalArgs {
    #[command(subcommand)]
    command: JournalCommand,
}

#[derive(Clone, Debug, clap::Subcommand)]
enum JournalCommand {
    /// Say what can be read, and what is damaged. Exit codes: 0 all is readable, 3 there is no journal or it is damaged
    Check {
        /// The data directory of the node
        dir: PathBuf,
    },
    /// Print what a journal says: jobs, transfers, the trace clock
    Show {
        /// The data directory of the node
        dir: PathBuf,
    },
}

/// Runs the command.
///
/// # Errors
/// If it cannot print.
pub fn run(args: &JournalArgs) -> anyhow::Result<u8> {
    let refused = |error| {
        eprintln!("error: {error}");
        Ok(exit::INPUT)
    };
    match &args.command {
        JournalCommand::Check { dir } => {
            let checked = match inspect::check(dir) {
                Ok(checked) => checked,
                Err(error) => return refused(error),
            };
            let mut text = String::new();
            for (what, rows) in &checked.readable {
                text += &format!("{what}: {rows} readable\n");
            }
            text += &format!("events: {} readable\n", checked.events);
            for damage in &checked.damage {
                text += &format!("damaged: {damage}\n");
            }
            say(&text)?;
            Ok(if checked.damage.is_empty() { exit::DONE } else { exit::INPUT })
        }
        JournalCommand::Show { dir } => match inspect::show(dir) {
            Ok(text) => {
                say(&text)?;
                Ok(exit::DONE)
            }
            Err(error) => refused(error),
        },
    }
}
