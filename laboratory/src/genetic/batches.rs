//! Batches of one log, or of several laid over each other: so many jobs at a time in order of submission, all there at time 0.

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use brokers::genetic::Batch;
use scheduler::{JobId, JobSpec, Span, Time, TimedJob};
use workload::calendar::Weekdays;
use workload::mix::{Log, MixOptions, mix};
use workload::prepare::{PrepareError, PrepareOptions, Rule, TooWide};

/// A batch, and what a schedule may not see.
#[derive(Clone, Debug)]
pub(super) struct TimedBatch {
    /// From 1.
    pub(super) number: usize,
    pub(super) batch: Batch,
    /// True run times, by place of the job.
    pub(super) run_times: Vec<Span>,
    /// By place of the job: the place of its log among those given, and its number there.
    pub(super) origins: Vec<(usize, JobId)>,
}

/// What was cut, and what was left out.
#[derive(Clone, Debug)]
pub(super) struct Batches {
    pub(super) batches: Vec<TimedBatch>,
    /// Jobs of the log.
    pub(super) read: u64,
    /// Those wider than every site.
    pub(super) too_wide: u64,
    /// Those without a size, a run time or a place in time.
    pub(super) unusable: u64,
}

/// The first batches for sites of these sizes, ascending. One log keeps its order and numbers. Several are one workload as
/// [`workload::mix`] lays them over each other: all days, week by week from the first full one of each, by the clock of GMT-7.
///
/// # Errors
/// If a log cannot be read, there are too few jobs, or one is too wide and such are refused.
pub(super) fn read(
    traces: &[PathBuf],
    sizes: &[u32],
    too_wide: TooWide,
    count: usize,
    size: usize,
) -> anyhow::Result<Batches> {
    let options = PrepareOptions { too_wide, ..PrepareOptions::default() };
    let widest = sizes.last().copied().context("make a grid without sites; give --sites at least one")?;
    let mut found = Batches { batches: Vec::new(), read: 0, too_wide: 0, unusable: 0 };
    let mut logs = Vec::new();
    for path in traces {
        let trace = workload::read_within(path, &experiments::limits::of_logs())
            .map_err(|error| experiments::progress::no_log(error, path))?;
        let prepared = workload::prepare(&trace, &options, widest).map_err(|error| match error {
            // There is no such switch here.
            PrepareError::NoEstimate { .. } => anyhow::Error::new(error).context(
                "use a log without estimates; let `stealgrid trace convert --missing-estimate` write some",
            ),
            error => error.into(),
        })?;
        let too_wide = prepared.report.count(Rule::DroppedTooWide);
        found.read += prepared.report.read;
        found.too_wide += too_wide;
        found.unusable += prepared.report.dropped() - too_wide;
        logs.push(Log {
            name: trace.name,
            header: trace.header,
            jobs: prepared.jobs,
            uses: Vec::new(),
            site: None,
            first_week: 1,
        });
    }
    let names: Vec<&str> = logs.iter().map(|log| log.name.as_str()).collect();
    let name = names.join(" + ");
    let (jobs, origins): (Vec<TimedJob>, Vec<(usize, JobId)>) = match &mut logs[..] {
        [one] => std::mem::take(&mut one.jobs).into_iter().map(|job| (job, (0, job.spec.id))).unzip(),
        logs => {
            let options = MixOptions { weekdays: Weekdays::ALL, ..MixOptions::default() };
            let mixed = mix(logs, &options).with_context(|| format!("lay {name} over each other"))?;
            let origins = mixed.sources.iter().map(|source| (source.log as usize, source.job)).collect();
            (mixed.jobs, origins)
        }
    };
    let fitting = jobs.len();
    if fitting / size < count {
        bail!(
            "cut {count} batches of {size} jobs: {name} has {fitting} that fit a site, which is enough for {}; give fewer \
             --batches or a smaller --size",
            fitting / size
        );
    }
    for (number, (jobs, origins)) in (1..).zip(jobs.chunks(size).zip(origins.chunks(size))).take(count) {
        let specs = jobs.iter().map(|job| JobSpec { submit: Time::ZERO, ..job.spec }).collect();
        let batch = Batch::new(sizes, specs).with_context(|| format!("use batch {number} of {name}"))?;
        let run_times = jobs.iter().map(|job| job.run_time).collect();
        found.batches.push(TimedBatch { number, batch, run_times, origins: origins.to_vec() });
    }
    Ok(found)
}

/// `jobs.csv`: what each number in `rows.json` is. Logs are numbered from 1 as they were given.
pub(super) fn jobs_csv(batches: &[TimedBatch]) -> String {
    let mut text = "batch,job,log,number,processors,requested_s,run_time_s\n".to_string();
    for batch in batches {
        for ((job, run_time), (log, number)) in
            batch.batch.jobs().iter().zip(&batch.run_times).zip(&batch.origins)
        {
            let _ = writeln!(
                text,
                "{},{},{},{},{},{},{}",
                batch.number,
                job.id.0,
                log + 1,
                number.0,
                job.processors,
                job.requested.as_secs_f64(),
                run_time.as_secs_f64()
            );
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn log(folder: &Path) -> std::path::PathBuf {
        let path = folder.join("log.swf");
        let row = |job: i64| {
            let (width, run) = (1 + job % 5, if job == 3 { -1 } else { 10 * job });
            format!("{job} {} -1 {run} {width} -1 -1 {width} {} -1 1 1 1 -1 1 1 -1 -1\n", 100 - job, 20 * job)
        };
        std::fs::write(&path, (1..=20).map(row).collect::<String>()).unwrap();
        path
    }

    #[test]
    fn batches_are_cut_in_order_of_submission_and_what_is_left_out_is_counted() {
        let folder = tempfile::tempdir().unwrap();
        let path = log(folder.path());
        let batches = read(std::slice::from_ref(&path), &[2, 4], TooWide::Drop, 2, 5).unwrap();
        // Widths of 5 are those of jobs 4, 9, 14 and 19; job 3 did not run.
        assert_eq!((batches.read, batches.too_wide, batches.unusable), (20, 4, 1));
        let ids = |place: usize| -> Vec<u64> {
            batches.batches[place].batch.jobs().iter().map(|job| job.id.0).collect()
        };
        assert_eq!((ids(0), ids(1)), (vec![20, 18, 17, 16, 15], vec![13, 12, 11, 10, 8]));
        assert!(batches.batches[1].batch.jobs().iter().all(|job| job.submit == Time::ZERO));
        assert_eq!(batches.batches[1].run_times[0], Span::from_secs(130));
        assert_eq!(batches.batches[1].batch.jobs()[0].requested, Span::from_secs(260));
    }

    #[test]
    fn too_few_jobs_and_a_wide_one_are_refused_with_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let path = log(folder.path());
        let wrong = |too_wide, count| {
            format!("{:#}", read(std::slice::from_ref(&path), &[2, 4], too_wide, count, 5).unwrap_err())
        };
        assert!(wrong(TooWide::Drop, 4).contains("15 that fit a site, which is enough for 3"));
        assert!(wrong(TooWide::Refuse, 1).contains("too_wide = \"drop\""));
    }

    /// What the first log submits in its first full week comes between what the second does in its own, years later.
    #[test]
    fn several_logs_are_laid_over_each_other_and_each_job_keeps_its_log_and_number() {
        let folder = tempfile::tempdir().unwrap();
        let log = |name: &str, begin: i64, submits: &[i64]| {
            let path = folder.path().join(name);
            let head = format!("; UnixStartTime: {begin}\n; TimeZoneString: UTC\n");
            let row = |(job, submit): (i64, &i64)| {
                format!("{job} {submit} -1 5 1 -1 -1 1 9 -1 1 1 1 -1 1 1 -1 -1\n")
            };
            std::fs::write(&path, head + &(11..).zip(submits).map(row).collect::<String>()).unwrap();
            path
        };
        // Mondays at 07:00 in Greenwich, midnight by GMT-7, in 2002 and in 2004.
        let paths =
            [log("a", 1_025_506_800, &[10, 30, 900_000]), log("b", 1_088_406_000, &[20, 500_000, 950_000])];
        let found = read(&paths, &[4], TooWide::Drop, 2, 2).unwrap();
        let origins = |place: usize| {
            found.batches[place].origins.iter().map(|(log, job)| (*log, job.0)).collect::<Vec<_>>()
        };
        assert_eq!((found.read, origins(0), origins(1)), (6, vec![(0, 11), (1, 11)], vec![(0, 12), (1, 12)]));
        let csv = jobs_csv(&found.batches);
        assert_eq!(csv.lines().nth(4), Some("2,4,2,12,1,9,5"), "{csv}");
    }
}
