//! `stealgrid trace convert`: a log in another format, whole or in part, as it is or prepared.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use workload::Trace;
use workload::prepare::prepared_records;

use super::switches::{PrepareArgs, SliceArgs, summary};
use super::validate::report_text;
use super::{Failure, read, write_to};
use crate::exit;

/// Arguments of `trace convert`.
#[derive(Debug, Args)]
pub(super) struct ConvertArgs {
    /// The log
    file: PathBuf,

    /// Format to write
    #[arg(long, value_enum)]
    to: Target,

    /// File to write; stdout if not given
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    #[command(flatten)]
    slice: SliceArgs,

    /// Prepare the jobs with the defaults below; any switch of preparation implies this
    #[arg(long, help_heading = "Preparation")]
    prepare: bool,

    #[command(flatten)]
    switches: PrepareArgs,
}

/// Formats that can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Target {
    /// Standard Workload Format.
    Swf,
}

/// Runs the command. What was dropped is said on stderr.
pub(super) fn run(args: &ConvertArgs) -> Result<u8, Failure> {
    let mut trace = read(&args.file)?;
    let sliced = args.slice.slice().apply(&mut trace).map_err(|error| Failure::Input(error.into()))?;
    if sliced > 0 {
        eprintln!("{sliced} jobs outside the slice left out, {} kept", trace.records.len());
        trace.header.push_pair("Note", &format!("slice: {sliced} jobs left out"));
    }
    if args.prepare || args.switches.any() {
        prepare(args, &mut trace)?;
    }
    for record in &mut trace.records {
        *record = record.with_sites_as_queues();
    }
    write_to(args.out.as_ref(), |mut out| match args.to {
        Target::Swf => workload::swf::write_trace(&trace, &mut out),
    })?;
    Ok(exit::DONE)
}

fn prepare(args: &ConvertArgs, trace: &mut Trace) -> Result<(), Failure> {
    let options = args.switches.options();
    let widest = args.switches.widest(trace);
    let prepared =
        workload::prepare(trace, &options, widest).map_err(|error| Failure::Input(error.into()))?;
    let switches = summary(&options, widest);
    eprint!("{}", report_text(&switches, &prepared.report));
    trace.records = prepared_records(trace, &prepared);
    trace
        .header
        .push_pair("Note", &format!("prepared with {switches}: {} jobs dropped", prepared.report.dropped()));
    Ok(())
}
