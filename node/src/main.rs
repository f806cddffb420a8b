//! The `stealgrid-node` executable, for containers.

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::{FromArgMatches as _, Parser, Subcommand};

/// One site of a Stealgrid as a process.
#[derive(Parser)]
#[command(name = "stealgrid-node", version, max_term_width = 100, args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    node: node::cli::NodeArgs,
}

#[derive(Subcommand)]
enum Command {
    Health(node::health::HealthArgs),
    Licenses(node::licenses::LicensesArgs),
}

fn main() -> ExitCode {
    if let Some(code) = node::executor::held() {
        return code;
    }
    let cli =
        Cli::from_arg_matches(&node::environment::arguments::<Cli>()).unwrap_or_else(|error| error.exit());
    match cli.command {
        Some(Command::Health(args)) => node::health::run(&args),
        Some(Command::Licenses(_)) => {
            // A reader that has gone away, as `head` does, is no error.
            let _ = io::stdout().write_all(node::licenses::listed("stealgrid-node", &[]).as_bytes());
            ExitCode::SUCCESS
        }
        None => node::cli::run(cli.node),
    }
}
