//! What can be typed, as clap types. Parsing only; the work is in the module of each command.

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::LazyLock;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use experiments::drive::own::NotFree;
use experiments::drive::simulate;
use experiments::experiment::keys;
use experiments::folder::NoPlace;
use experiments::{exit, limits};
use laboratory::{bench, chaos, genetic, learning, power, prediction, swarm, theory};
use operation::{run, serve};
use outputs::{EventLogError, WriteError};

use crate::{
    compare, docs, doctor, examples, explain, groups, journal, key, play, rerun, shell, submit, sweep, trace,
};

/// A testbed for peer-to-peer job scheduling between parallel machines.
#[derive(Debug, Parser)]
#[command(name = "stealgrid", version = version(), max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Simulate(Box<simulate::SimulateArgs>),
    Run(Box<run::RunArgs>),
    Attach(run::attach::AttachArgs),
    /// Run one site as a process; `run` starts one for each
    Node(Box<node::cli::NodeArgs>),
    Submit(submit::SubmitArgs),
    Health(node::health::HealthArgs),
    Serve(serve::command::ServeArgs),
    Play(play::PlayArgs),
    Key(key::KeyArgs),
    Compare(compare::CompareArgs),
    Rerun(rerun::RerunArgs),
    Explain(explain::ExplainArgs),
    Theory(Box<theory::TheoryArgs>),
    Power(Box<power::PowerArgs>),
    Genetic(Box<genetic::GeneticArgs>),
    Learning(learning::LearningArgs),
    Predict(prediction::PredictArgs),
    Trace(trace::TraceArgs),
    Swarm(swarm::SwarmArgs),
    Chaos(chaos::ChaosArgs),
    Sweep(sweep::SweepArgs),
    Report(sweep::report::ReportArgs),
    Export(sweep::export::ExportArgs),
    Study(sweep::study::StudyArgs),
    Reproduce(sweep::reproduce::ReproduceArgs),
    Journal(journal::JournalArgs),
    /// Run what stdin says; `sweep` starts one for each core
    #[command(hide = true)]
    SweepWorker,
    /// Measure what parts of a run cost on this machine
    Bench(bench::BenchArgs),
    Doctor(doctor::DoctorArgs),
    Docs(docs::DocsArgs),
    Licenses(node::licenses::LicensesArgs),
    Completions(shell::CompletionsArgs),
    Man(shell::ManArgs),
}

/// The version, with the commit where the program was built from one: what results say, too.
fn version() -> &'static str {
    static HERE: LazyLock<String> = LazyLock::new(outputs::version);
    &HERE
}

/// What a flag that is none says as a key of an experiment, of which the parser knows nothing.
fn key_for_flag(error: &clap::Error) -> Option<String> {
    match (error.kind(), error.get(ContextKind::InvalidArg)) {
        (ErrorKind::UnknownArgument, Some(ContextValue::String(flag))) => keys::of_flag(flag),
        _ => None,
    }
}

/// The words of the command line. `help -h` is `help`.
fn typed() -> Vec<OsString> {
    let mut typed: Vec<OsString> = std::env::args_os().collect();
    if typed.get(1).is_some_and(|command| command == "help") {
        typed.retain(|word| word != "-h" && word != "--help");
    }
    typed
}

/// Runs the command line and says how it ended.
pub fn main() -> ExitCode {
    if let Some(key) = Cli::try_parse().err().and_then(|error| key_for_flag(&error)) {
        eprintln!("error: {key}");
        return ExitCode::from(exit::USAGE);
    }
    let matches = node::environment::arguments_of(groups::of(examples::below(Cli::command())), typed());
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    if let Err(error) = limits::init() {
        eprintln!("error: {error}");
        return ExitCode::from(exit::USAGE);
    }
    let done = match cli.command {
        Command::Simulate(args) => simulate::command(&args),
        Command::Run(args) => run::command(&args),
        Command::Attach(args) => run::attach::command(&args),
        Command::Node(args) => return node::cli::run(*args),
        Command::Submit(args) => submit::command(&args),
        Command::Health(args) => return node::health::run(&args),
        Command::Serve(args) => serve::command::command(&args),
        Command::Play(args) => play::command(&args),
        Command::Key(args) => key::command(&args),
        Command::Compare(args) => compare::command(&args),
        Command::Rerun(args) => rerun::command(&args),
        Command::Explain(args) => explain::command(&args),
        Command::Theory(args) => theory::command(&args),
        Command::Power(args) => power::command(&args),
        Command::Genetic(args) => genetic::command(&args),
        Command::Learning(args) => learning::command(&args),
        Command::Predict(args) => prediction::command(&args),
        Command::Trace(args) => trace::run(args),
        Command::Swarm(args) => swarm::command(&args),
        Command::Chaos(args) => chaos::command(&args),
        Command::Sweep(args) => sweep::command(&args),
        Command::Report(args) => sweep::report::command(&args),
        Command::Export(args) => sweep::export::command(&args),
        Command::Study(args) => sweep::study::command(&args),
        Command::Reproduce(args) => sweep::reproduce::command(&args),
        Command::Journal(args) => journal::run(&args),
        Command::SweepWorker => sweep::worker::run(),
        Command::Bench(args) => bench::run(&args),
        Command::Doctor(args) => doctor::command(&args),
        Command::Docs(args) => docs::command(&args),
        Command::Licenses(_) => shell::licenses(),
        Command::Completions(args) => shell::completions(&args, Cli::command()),
        Command::Man(args) => shell::man(&args, examples::below(Cli::command())),
    };
    match done {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            // Those of results read after these words.
            let failed = error.is::<WriteError>() || error.is::<EventLogError>();
            eprintln!("error: {}{error:#}", if failed { "failed to " } else { "" });
            ExitCode::from(if error.is::<NoPlace>() || error.is::<NotFree>() {
                exit::INPUT
            } else {
                exit::UNEXPECTED
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_is_in_one_group_of_the_help() {
        let program = Cli::command();
        let shown = program.get_subcommands().filter(|command| !command.is_hide_set());
        let mut expected: Vec<&str> = shown.map(clap::Command::get_name).chain(["help"]).collect();
        let mut grouped = groups::names();
        expected.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(grouped, expected);
    }
}
