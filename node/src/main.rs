//! The `stealgrid-node` executable, for containers.

use std::process::ExitCode;

use clap::Parser;

/// One site of a Stealgrid as a process.
#[derive(Parser)]
#[command(name = "stealgrid-node", version, max_term_width = 100)]
struct Cli {
    #[command(flatten)]
    node: node::cli::NodeArgs,
}

fn main() -> ExitCode {
    node::cli::run(Cli::parse().node)
}
