//! The log: its jobs as a machine of so many processors gets them, and when they ended.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, ensure};
use experiments::experiment::accounts;
use experiments::progress;
use predict::score::Happened;
use scheduler::{Span, TimedJob};
use workload::prepare::{MissingEstimate, PrepareOptions, Rule};

use super::PredictArgs;

/// What is predicted.
#[derive(Clone, Debug)]
pub(super) struct Log {
    pub(super) name: String,
    /// Of the bytes of the file.
    pub(super) sha256: String,
    pub(super) read: u64,
    /// Left out for that.
    pub(super) without_estimate: u64,
    /// Left out as they ran for no time, are too wide, or are not sound.
    pub(super) others: u64,
    /// Unix time of its time 0, if it says so.
    pub(super) unix_start_s: Option<i64>,
    /// Whether no job says whose it is.
    pub(super) is_of_nobody: bool,
    /// In order of submission.
    pub(super) jobs: Vec<TimedJob>,
    /// The same, as they were in the log. Where it does not say when a job started, as if it had not waited.
    pub(super) happened: Vec<Happened>,
}

impl Log {
    /// Reads a log for a machine of so many processors.
    ///
    /// # Errors
    /// If it cannot be read, no job has an estimate, or none is left.
    pub(super) fn read(args: &PredictArgs, path: &Path, processors: u32) -> anyhow::Result<Log> {
        let trace = progress::read_log(path, &experiments::limits::of_logs(), None)?;
        let has_estimates = trace.records.iter().any(|record| record.requested_time > Span::ZERO);
        ensure!(
            has_estimates || args.missing_estimate.is_some(),
            "score predictions on {}: none of its {} jobs has an estimate, so nothing limits a prediction, and one made up of the run \
             time would tell it; say what is to be taken for one with --missing-estimate, as 24h, or take another log",
            path.display(),
            trace.records.len()
        );
        let missing_estimate = args.missing_estimate.unwrap_or(MissingEstimate::Drop);
        let options = PrepareOptions {
            size: args.size,
            overrun: args.overrun,
            missing_estimate,
            ..PrepareOptions::default()
        };
        let mut prepared = progress::prepare(&trace, &options, processors)?;
        // Nothing is to be predicted of a job that did nothing.
        prepared.jobs.retain(|job| job.run_time > Span::ZERO);
        ensure!(
            !prepared.jobs.is_empty(),
            "score predictions on {}: no job is left that ran, has an estimate and fits {} processors; give more --sites, or another \
             --missing-estimate",
            path.display(),
            processors
        );
        let waits: BTreeMap<i64, Span> =
            trace.records.iter().map(|record| (record.job, record.wait.max(Span::ZERO))).collect();
        let happened = |job: &TimedJob| {
            let number = i64::try_from(job.spec.id.0).expect("it was an i64 in the record");
            let end = (job.spec.submit + waits[&number]).saturating_add(job.run_time);
            Happened { job: job.spec, run_time: job.run_time, end }
        };
        let digest = accounts::digest(path).with_context(|| format!("read {}", path.display()))?;
        let without_estimate = prepared.report.count(Rule::DroppedRequestedTime);
        Ok(Log {
            name: digest.file,
            sha256: digest.sha256,
            read: prepared.report.read,
            without_estimate,
            others: prepared.report.read.saturating_sub(without_estimate + prepared.jobs.len() as u64),
            unix_start_s: trace.header.unix_start_time,
            is_of_nobody: !prepared.jobs.iter().any(|job| predict::is_known(&job.spec)),
            happened: prepared.jobs.iter().map(happened).collect(),
            jobs: prepared.jobs,
        })
    }
}
