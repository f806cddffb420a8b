//! The switches of preparation and slicing as they are typed, shared by the commands that take them.

use std::path::PathBuf;

use clap::Args;
use experiments::experiment::time_of_log;
use scheduler::Span;
use workload::calendar::{WeekFrom, Weekdays, Zone};
use workload::prepare::{Estimate, Filters, MissingEstimate, Origin, Overrun, PrepareOptions, Size, TooWide};
use workload::slice::Slice;

/// How a log is read.
#[derive(Debug, Args)]
pub(super) struct ReadArgs {
    /// Zone of the times that sacct writes without one: Europe/Stockholm, GMT-7 [default: that of a comment
    /// `# TimeZoneString: NAME` above its header, else UTC]
    #[arg(long, value_name = "NAME")]
    pub(super) times_in: Option<Zone>,

    /// The log is CSV; this map says what its columns hold. Ready ones are in configs/columns
    #[arg(long, value_name = "MAP.toml", conflicts_with = "times_in")]
    pub(super) columns: Option<PathBuf>,
}

/// Which numbers of a log count, and which jobs are dropped.
#[derive(Debug, Args)]
#[command(next_help_heading = "Preparation")]
pub(super) struct PrepareArgs {
    /// Field that is a job's size, another one where it is missing: requested, allocated, descriptor (nodes by field 21) [default:
    /// requested]
    #[arg(long, value_name = "FIELD")]
    size: Option<Size>,

    /// What schedulers are told about run times: user, exact, factor:F [default: user]
    #[arg(long, value_name = "RULE")]
    estimate: Option<Estimate>,

    /// Estimate of jobs without a requested time: run-time-of-some (the run time, if other jobs have a requested time), run-time,
    /// drop, refuse, or a time as in 24h [default: run-time-of-some]
    #[arg(long, value_name = "RULE")]
    missing_estimate: Option<MissingEstimate>,

    /// What becomes of jobs that run past their requested time: kill, extend, as-is [default: as-is]
    #[arg(long, value_name = "RULE")]
    overrun: Option<Overrun>,

    /// Drop jobs of which these are not positive: job-id, submit (not negative), run-time, processors,
    /// requested-time, user; or all, none, default [default: submit,run-time,processors]
    #[arg(long, value_name = "NAMES")]
    filters: Option<Filters>,

    /// Where jobs are submitted: site:N, queue, partition, recorded [default: site:1]
    #[arg(long, value_name = "RULE")]
    origin: Option<Origin>,

    /// Processors of the widest site [default: the machine's by the header, else the widest job's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    widest: Option<u32>,

    /// Refuse the log if a job is wider than the widest site [default: drop the job]
    #[arg(long)]
    refuse_too_wide: bool,
}

impl PrepareArgs {
    /// Whether any switch was given.
    pub(super) fn any(&self) -> bool {
        self.size.is_some()
            || self.estimate.is_some()
            || self.missing_estimate.is_some()
            || self.overrun.is_some()
            || self.filters.is_some()
            || self.origin.is_some()
            || self.widest.is_some()
            || self.refuse_too_wide
    }

    /// The options of preparation.
    pub(super) fn options(&self) -> PrepareOptions {
        let defaults = PrepareOptions::default();
        PrepareOptions {
            size: self.size.unwrap_or(defaults.size),
            estimate: self.estimate.unwrap_or(defaults.estimate),
            missing_estimate: self.missing_estimate.unwrap_or(defaults.missing_estimate),
            overrun: self.overrun.unwrap_or(defaults.overrun),
            filters: self.filters.unwrap_or(defaults.filters),
            origin: self.origin.unwrap_or(defaults.origin),
            too_wide: if self.refuse_too_wide { TooWide::Refuse } else { TooWide::Drop },
            payload: defaults.payload,
        }
    }

    /// Where jobs are submitted, if that was said. A run has a rule of its own for logs that do not say it.
    pub(super) fn origin(&self) -> Option<Origin> {
        self.origin
    }

    /// Processors of the widest site.
    pub(super) fn widest(&self, trace: &workload::Trace) -> u32 {
        self.widest.unwrap_or_else(|| trace.processors())
    }
}

/// One line that says which switches are in force; where jobs are submitted, if that has any effect.
pub(super) fn summary(options: &PrepareOptions, origin: Option<Origin>, widest: u32) -> String {
    let PrepareOptions { size, estimate, missing_estimate, overrun, filters, .. } = options;
    let origin = origin.map_or(String::new(), |origin| format!(" origin={origin}"));
    format!(
        "size={size} estimate={estimate} missing-estimate={missing_estimate} overrun={overrun} filters={filters}{origin} \
         widest={widest}"
    )
}

/// Which part of a log.
#[derive(Debug, Args)]
#[command(next_help_heading = "Slice")]
pub(super) struct SliceArgs {
    /// Keep jobs submitted at this time of the log or later: 36h, or seconds
    #[arg(long, value_name = "TIME", value_parser = time_of_log, allow_negative_numbers = true)]
    from: Option<Span>,

    /// Keep jobs submitted before this time of the log: 36h, or seconds
    #[arg(long, value_name = "TIME", value_parser = time_of_log, allow_negative_numbers = true)]
    until: Option<Span>,

    /// Keep jobs submitted in this week, 1 for the log's first full one, Monday to Sunday
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    week: Option<i64>,

    /// Keep jobs submitted on these days: mon-fri, or mon,wed
    #[arg(long = "days", alias = "weekdays", value_name = "DAYS")]
    weekdays: Option<Weekdays>,

    /// Zone of weeks and days: Europe/Stockholm, GMT-7 [default: the log's, else UTC]
    #[arg(long, value_name = "NAME")]
    zone: Option<Zone>,

    /// Keep the first N of what is left
    #[arg(long, value_name = "N")]
    count: Option<usize>,

    /// Keep the times of the log: time 0 is not the start of the slice, Monday at midnight of its week or --from
    #[arg(long)]
    keep_times: bool,
}

impl SliceArgs {
    /// The part of the log that these switches ask for.
    pub(super) fn slice(&self) -> Slice {
        Slice {
            from: self.from,
            until: self.until,
            week: self.week,
            week_from: WeekFrom::default(),
            weeks: None,
            weekdays: self.weekdays,
            zone: self.zone.clone(),
            count: self.count,
            keep_times: self.keep_times,
        }
    }
}
