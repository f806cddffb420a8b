//! `stealgrid trace convert`: a log in another format, whole or in part, as it is or prepared.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use experiments::exit;
use report::quantity::counted;
use scheduler::Span;
use workload::batsim::{self, Version};
use workload::prepare::{Prepared, prepared_records};
use workload::repair::Repair;
use workload::{Format, Trace, gwf, swf};

use super::info::awkward_text;
use super::switches::{PrepareArgs, ReadArgs, SliceArgs, summary};
use super::validate::report_text;
use super::{Failure, read, write_to};

/// Arguments of `trace convert`.
#[derive(Debug, Args)]
pub(super) struct ConvertArgs {
    /// The log
    file: PathBuf,

    /// Where a user of other programs writes the file to be made
    #[arg(hide = true)]
    other: Option<PathBuf>,

    /// Format to write [default: that of the name of --out: .swf, .gwf, or .json for batsim]
    #[arg(long, value_enum)]
    to: Option<Target>,

    /// File to write; stdout if not given
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// Number jobs, users, groups, executables, queues and partitions by first appearance, and leave out all comments but
    /// those on machine and clock
    #[arg(long, visible_alias = "anonymise")]
    anonymize: bool,

    #[command(flatten)]
    reading: ReadArgs,

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
    /// Standard Workload Format. Origin sites become queues, executing sites partitions.
    Swf,
    /// Grid Workload Format, 29 columns.
    Gwf,
    /// Batsim's JSON, delays of version 5. Jobs are always prepared.
    Batsim,
    /// Batsim's JSON, delays of version 4. Jobs are always prepared.
    BatsimV4,
}

impl ConvertArgs {
    /// The format that was asked for.
    fn target(&self) -> Result<Target, Failure> {
        let ending = self.out.as_ref().and_then(|out| out.extension()).and_then(|ending| ending.to_str());
        let of_name = match ending {
            Some("swf") => Some(Target::Swf),
            Some("gwf") => Some(Target::Gwf),
            Some("json") => Some(Target::Batsim),
            _ => None,
        };
        self.to.or(of_name).ok_or_else(|| {
            let remedy = "write --to swf, gwf, batsim or batsim-v4, or --out with a name that ends in .swf, .gwf or .json";
            Failure::Usage(anyhow::anyhow!("choose a format to write: {remedy}"))
        })
    }
}

/// Runs the command. What was dropped is said on stderr.
pub(super) fn run(args: &ConvertArgs) -> Result<u8, Failure> {
    if let Some(other) = &args.other {
        let remedy = anyhow::anyhow!("write to {0}: name it with --out {0}", other.display());
        return Err(Failure::Usage(remedy));
    }
    let target = args.target()?;
    let mut trace = read(&args.file, &args.reading)?;
    if matches!(trace.format, Format::Sacct | Format::Csv) || loses(&trace) {
        // Lines of a dump that are no jobs are many, and a map may be wrong: what became of rows should not have to be asked for.
        eprintln!(
            "{} read{}",
            counted(trace.records.len(), "job"),
            awkward_text(&trace.repairs.iter().collect::<Vec<_>>(), trace.differing_work())
        );
    }
    if args.anonymize {
        trace.anonymize();
    }
    let sliced = args.slice.slice().apply(&mut trace);
    let sliced = sliced.with_context(|| format!("slice {}", args.file.display())).map_err(Failure::Input)?;
    if sliced.dropped > 0 {
        let dropped = counted(sliced.dropped, "job");
        eprintln!("{dropped} outside the slice left out, {} kept", trace.records.len());
        trace.header.push_pair("Note", &format!("slice: {dropped} left out"));
    }
    if sliced.start != Span::ZERO {
        let start = format!("time 0 is {} s of the log that it is a slice of", sliced.start);
        eprintln!("{start}; --keep-times keeps its times");
        trace.header.push_pair("Note", &start);
    }
    let batsim = match target {
        Target::Swf | Target::Gwf => None,
        Target::Batsim => Some(Version::V5),
        Target::BatsimV4 => Some(Version::V4),
    };
    let must_prepare = args.prepare || args.switches.any() || batsim.is_some();
    let prepared = if must_prepare { Some(prepare(args, &mut trace)?) } else { None };
    let lost = sliced.dropped > 0 || prepared.as_ref().is_some_and(|prepared| prepared.report.dropped() > 0);
    if lost {
        // What the header says of the whole log is not true of a part.
        trace.header.set_records(trace.records.len() as u64);
    }
    let (out, jobs) = (args.out.as_ref(), trace.records.len());
    match (target, batsim, prepared) {
        (_, Some(version), Some(prepared)) => {
            let processors = u64::from(trace.processors());
            write_to(out, jobs, |mut out| batsim::write_jobs(&prepared.jobs, processors, version, &mut out))?;
        }
        (Target::Gwf, _, _) => write_to(out, jobs, |mut out| gwf::write_trace(&trace, &mut out))?,
        _ => {
            for record in &mut trace.records {
                *record = record.with_sites_as_queues();
            }
            write_to(out, jobs, |mut out| swf::write_trace(&trace, &mut out))?;
        }
    }
    Ok(exit::DONE)
}

/// Whether what is written has less than what was read: nothing is cut in silence.
fn loses(trace: &Trace) -> bool {
    let fields = [Repair::ExtraColumns, Repair::FieldUnread];
    Repair::LINES.into_iter().chain(fields).any(|repair| trace.repairs.count(repair) > 0)
}

fn prepare(args: &ConvertArgs, trace: &mut Trace) -> Result<Prepared, Failure> {
    let options = args.switches.options();
    let widest = args.switches.widest(trace);
    let prepared = super::prepare(trace, &options, widest)?;
    let switches = summary(&options, Some(options.origin), widest);
    eprint!("{}", report_text(&switches, &prepared.report));
    trace.records = prepared_records(trace, &prepared);
    trace.header.push_pair(
        "Note",
        &format!("prepared with {switches}: {} dropped", counted(prepared.report.dropped(), "job")),
    );
    Ok(prepared)
}
