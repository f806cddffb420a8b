//! `stealgrid trace validate`: what reading repaired, what preparation would drop or change, or the refusal.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use experiments::exit;
use report::quantity::counted;
use serde_json::json;
use workload::prepare::{PrepareReport, RuleCount};
use workload::repair::RepairCount;

use super::info::awkward_text;
use super::switches::{PrepareArgs, ReadArgs, summary};
use super::{Failure, Output, prepare, print, print_json, read};

/// Arguments of `trace validate`.
#[derive(Debug, Args)]
pub(super) struct ValidateArgs {
    /// The logs
    #[arg(required = true)]
    files: Vec<PathBuf>,

    #[command(flatten)]
    prepare: PrepareArgs,

    #[command(flatten)]
    reading: ReadArgs,

    /// How to write the result
    #[arg(long, value_enum, default_value = "terminal")]
    format: Output,
}

/// Runs the command. All files are looked at, even after a refusal. A log of which no job is left cannot be run, and is refused.
pub(super) fn run(args: &ValidateArgs) -> Result<u8, Failure> {
    let mut code = exit::DONE;
    for file in &args.files {
        let name = file.display().to_string();
        match validate(args, file) {
            Ok(checked) => {
                if checked.report.kept == 0 {
                    code = exit::INPUT;
                }
                match args.format {
                    Output::Terminal => print(&checked.to_text(&name))?,
                    Output::Json => print_json(&checked.to_json(&name))?,
                }
            }
            Err(Failure::Input(error)) => {
                code = exit::INPUT;
                match args.format {
                    Output::Terminal => print(&format!("{name}: refused: failed to {error:#}\n"))?,
                    Output::Json => print_json(&json!({"file": name, "refused": format!("{error:#}")}))?,
                }
            }
            Err(failure) => return Err(failure),
        }
    }
    Ok(code)
}

struct Checked {
    switches: String,
    repairs: Vec<RepairCount>,
    /// The share of the work of jobs whose processors differ.
    differing_work: f64,
    report: PrepareReport,
}

fn validate(args: &ValidateArgs, file: &Path) -> Result<Checked, Failure> {
    let trace = read(file, &args.reading)?;
    let options = args.prepare.options();
    let widest = args.prepare.widest(&trace);
    let prepared = prepare(&trace, &options, widest)?;
    Ok(Checked {
        switches: summary(&options, args.prepare.origin(), widest),
        repairs: trace.repairs.iter().collect(),
        differing_work: trace.differing_work(),
        report: prepared.report,
    })
}

impl Checked {
    fn to_text(&self, name: &str) -> String {
        let jobs = counted(self.report.read, "job");
        let mut text = match self.report.kept {
            0 => format!("{name}: refused: readable, {jobs}, but none is left to run\n"),
            _ => format!("{name}: readable, {jobs}\n"),
        };
        text.push_str(&awkward_text(&self.repairs, self.differing_work));
        text.push_str(&report_text(&self.switches, &self.report));
        text
    }

    fn to_json(&self, name: &str) -> serde_json::Value {
        json!({
            "file": name,
            "awkward": self.repairs,
            "switches": self.switches,
            "read": self.report.read,
            "kept": self.report.kept,
            "rules": self.report.iter().collect::<Vec<RuleCount>>(),
        })
    }
}

/// A table of what preparation did.
pub(super) fn report_text(switches: &str, report: &PrepareReport) -> String {
    let mut text = format!(
        "\nprepared with {switches}:\n{:>10} read\n{:>10} kept\n{:>10} dropped\n",
        report.read,
        report.kept,
        report.dropped()
    );
    for row in report.iter() {
        writeln!(text, "{:>10} {}", row.count, row.rule).expect("a string takes any text");
    }
    text
}
