//! `stealgrid trace info`: what is in a log.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;

use clap::Args;
use experiments::exit;
use report::quantity::counted;
use scheduler::Span;
use serde::Serialize;
use workload::Trace;
use workload::calendar::{Calendar, Zone};
use workload::repair::{Repair, RepairCount};

use super::switches::ReadArgs;
use super::{Failure, Output, print, print_json, read};

/// A week without a change of clocks.
const WEEK: Span = Span::from_secs(7 * 86_400);

/// Arguments of `trace info`.
#[derive(Debug, Args)]
pub(super) struct InfoArgs {
    /// The log
    file: PathBuf,

    #[command(flatten)]
    reading: ReadArgs,

    /// How to write the result
    #[arg(long, value_enum, default_value = "terminal")]
    format: Output,
}

/// What is in a log. Times in seconds.
#[derive(Debug, Serialize)]
struct Info {
    file: String,
    format: workload::Format,
    computer: Option<String>,
    installation: Option<String>,
    processors: u32,
    processors_from: &'static str,
    start: Option<String>,
    time_zone: Option<String>,
    /// What the header names as time zone, if there is no such zone.
    time_zone_unknown: Option<String>,
    jobs: usize,
    users: usize,
    submit_first_s: f64,
    submit_last_s: f64,
    span_days: f64,
    /// Full weeks from the first submission to the last.
    full_weeks: i64,
    /// Weeks with a job as `--week` counts them, 1 for the first full one; `None` without a known submission.
    weeks: Option<(i64, i64)>,
    /// Work over processors and the time from first to last submission, by the processors that jobs held; `None` without a
    /// span.
    load: Option<f64>,
    /// The same by those that they requested.
    load_requested: Option<f64>,
    /// The share of the work of jobs for which the two differ.
    differing_work: f64,
    awkward: Vec<RepairCount>,
    sizes: Vec<SizeClass>,
}

/// Jobs of a range of sizes.
#[derive(Debug, Serialize)]
struct SizeClass {
    from: u32,
    to: u32,
    jobs: u64,
    jobs_share: f64,
    work_share: f64,
}

/// Runs the command.
pub(super) fn run(args: &InfoArgs) -> Result<u8, Failure> {
    let trace = read(&args.file, &args.reading)?;
    let info = Info::of(&trace);
    match args.format {
        Output::Terminal => print(&info.to_text())?,
        Output::Json => print_json(&serde_json::to_value(&info).expect("plain data"))?,
    }
    Ok(exit::DONE)
}

impl Info {
    fn of(trace: &Trace) -> Info {
        // A zone that nobody knows is a remark: only weeks and days need it, which are then told by Greenwich.
        let zone = Zone::of_header(&trace.header);
        let calendar = Calendar::new(&trace.header, zone.is_err().then(Zone::utc).as_ref());
        let calendar = calendar.expect("no zone of the header is asked for that is not known");
        let time_zone_unknown = zone.as_ref().err().map(|error| error.value.clone());
        let zone = zone.ok().flatten();
        let submits =
            || trace.records.iter().map(|record| record.submit).filter(|&submit| submit >= Span::ZERO);
        let first = submits().min().unwrap_or(Span::ZERO);
        let last = submits().max().unwrap_or(Span::ZERO);
        let work: f64 = trace.records.iter().map(workload::Record::work).sum();
        let work_requested: f64 = trace.records.iter().map(requested_work).sum();
        let capacity = f64::from(trace.processors()) * (last - first).as_secs_f64();
        let load = |work: f64| (capacity > 0.0).then(|| work / capacity);
        let has_submits = submits().next().is_some();
        let mut users: Vec<i32> =
            trace.records.iter().map(|record| record.user).filter(|&user| user >= 0).collect();
        users.sort_unstable();
        users.dedup();
        Info {
            file: trace.name.clone(),
            format: trace.format,
            computer: trace.header.computer.clone(),
            installation: trace.header.installation.clone(),
            processors: trace.processors(),
            processors_from: if trace.header.processors().is_some() { "header" } else { "widest job" },
            start: calendar.date(Span::ZERO),
            time_zone: zone.map(|zone| zone.to_string()),
            time_zone_unknown,
            jobs: trace.records.len(),
            users: users.len(),
            submit_first_s: first.as_secs_f64(),
            submit_last_s: last.as_secs_f64(),
            span_days: (last - first).as_secs_f64() / 86_400.0,
            full_weeks: (last - first).as_micros() / WEEK.as_micros(),
            weeks: has_submits.then(|| (calendar.place(first).week, calendar.place(last).week)),
            load: load(work),
            load_requested: load(work_requested),
            differing_work: trace.differing_work(),
            awkward: trace.repairs.iter().collect(),
            sizes: size_classes(trace, work),
        }
    }

    fn to_text(&self) -> String {
        let mut text = String::new();
        let mut row = |name: &str, value: String| {
            writeln!(text, "{name:<14}{value}").expect("a string takes any text");
        };
        row("file", self.file.clone());
        row("format", self.format.to_string());
        for (name, value) in [("computer", &self.computer), ("installation", &self.installation)] {
            if let Some(value) = value {
                row(name, value.clone());
            }
        }
        row("processors", format!("{} ({})", self.processors, self.processors_from));
        row("start", self.start.clone().unwrap_or_else(|| "unknown".to_string()));
        row(
            "time zone",
            match (&self.time_zone, &self.time_zone_unknown) {
                (Some(zone), _) => zone.clone(),
                (None, Some(said)) => format!("unknown (the header says {said})"),
                (None, None) => "unknown".to_string(),
            },
        );
        row("jobs", self.jobs.to_string());
        row("users", self.users.to_string());
        row(
            "submits",
            format!("{} s to {} s, {:.1} days", self.submit_first_s, self.submit_last_s, self.span_days),
        );
        if let Some((first, last)) = self.weeks {
            let full = counted(self.full_weeks.unsigned_abs(), "full week");
            let by_calendar = if first == last {
                format!("all in week {first}")
            } else {
                format!("in weeks {first} to {last}")
            };
            row("weeks", format!("{full} from the first job on, {by_calendar} of --week"));
        }
        let load = |load: Option<f64>| load.map_or("unknown".to_string(), |load| format!("{load:.3}"));
        if self.differing_work > 0.0 {
            let (held, requested) = (load(self.load), load(self.load_requested));
            row("load", format!("{held} by allocated, {requested} by requested processors"));
        } else {
            row("load", load(self.load));
        }
        text.push_str(&awkward_text(&self.awkward, self.differing_work));
        text.push_str("\nprocessors          jobs  % of jobs  % of work\n");
        for class in &self.sizes {
            let range = if class.from == class.to {
                class.from.to_string()
            } else {
                format!("{}-{}", class.from, class.to)
            };
            writeln!(
                text,
                "{range:<14}{:>10}{:>11.1}{:>11.1}",
                class.jobs,
                100.0 * class.jobs_share,
                100.0 * class.work_share
            )
            .expect("a string takes any text");
        }
        text
    }
}

/// Work of a job in processor seconds by the processors that it requested, by those it held where that is not known.
fn requested_work(record: &workload::Record) -> f64 {
    let allocated = if record.requested > 0 { record.requested } else { record.allocated };
    workload::Record { allocated, ..*record }.work()
}

/// A table of awkward values, with the share of the work of jobs whose processors differ, or a line that says there are none.
pub(super) fn awkward_text(counts: &[RepairCount], differing_work: f64) -> String {
    let mut text = String::new();
    if counts.is_empty() {
        text.push_str("\nno awkward values\n");
        return text;
    }
    text.push_str("\n      jobs  first at line  awkward value\n");
    for row in counts {
        write!(text, "{:>10}{:>15}  {}", row.count, row.first_line, row.repair)
            .expect("a string takes any text");
        if row.repair == Repair::ProcessorsDiffer {
            write!(text, ", {:.1} % of the work", 100.0 * differing_work).expect("a string takes any text");
        }
        text.push('\n');
    }
    text
}

/// Classes 1, 2, 3-4, 5-8, …, those without jobs left out.
fn size_classes(trace: &Trace, work: f64) -> Vec<SizeClass> {
    let mut classes: BTreeMap<u32, (u64, f64)> = BTreeMap::new();
    let mut jobs = 0_u64;
    for record in &trace.records {
        let Some(processors) = record.processors() else { continue };
        let to = processors.checked_next_power_of_two().unwrap_or(u32::MAX);
        let class = classes.entry(to).or_default();
        class.0 += 1;
        class.1 += record.work();
        jobs += 1;
    }
    let class_of = |(to, (count, class_work)): (u32, (u64, f64))| SizeClass {
        from: to / 2 + 1,
        to,
        jobs: count,
        jobs_share: count as f64 / jobs as f64,
        work_share: if work > 0.0 { class_work / work } else { 0.0 },
    };
    classes.into_iter().map(class_of).collect()
}
