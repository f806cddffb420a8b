//! Batches of a log: so many jobs at a time in order of submission, all there at time 0.

use std::path::Path;

use anyhow::{Context as _, bail};
use scheduler::genetic::Batch;
use scheduler::{JobSpec, Span, Time, TimedJob};
use workload::prepare::{PrepareOptions, Rule, TooWide};

/// A batch, and what a schedule may not see.
#[derive(Clone, Debug)]
pub(super) struct TimedBatch {
    /// From 1.
    pub(super) number: usize,
    pub(super) batch: Batch,
    /// True run times, by place of the job.
    pub(super) run_times: Vec<Span>,
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

/// The first batches of a log for sites of these sizes, ascending.
///
/// # Errors
/// If the log cannot be read, has too few jobs, or has one that is too wide and such are refused.
pub(super) fn read(
    trace: &Path,
    sizes: &[u32],
    too_wide: TooWide,
    count: usize,
    size: usize,
) -> anyhow::Result<Batches> {
    let trace = workload::read_within(trace, &crate::limits::of_logs())?;
    let options = PrepareOptions { too_wide, ..PrepareOptions::default() };
    let widest = sizes.last().copied().context("make a grid without sites; give --sites at least one")?;
    let prepared = workload::prepare(&trace, &options, widest)?;
    let fitting = prepared.jobs.len();
    if fitting / size < count {
        bail!(
            "cut {count} batches of {size} jobs: {} has {fitting} that fit a site, which is enough for {}; give fewer \
             --batches or a smaller --size",
            trace.name,
            fitting / size
        );
    }
    let batch = |(number, jobs): (usize, &[TimedJob])| -> anyhow::Result<TimedBatch> {
        let specs = jobs.iter().map(|job| JobSpec { submit: Time::ZERO, ..job.spec }).collect();
        let batch =
            Batch::new(sizes, specs).with_context(|| format!("use batch {number} of {}", trace.name))?;
        Ok(TimedBatch { number, batch, run_times: jobs.iter().map(|job| job.run_time).collect() })
    };
    let too_wide = prepared.report.count(Rule::DroppedTooWide);
    Ok(Batches {
        batches: (1..).zip(prepared.jobs.chunks(size).take(count)).map(batch).collect::<Result<_, _>>()?,
        read: prepared.report.read,
        too_wide,
        unusable: prepared.report.dropped() - too_wide,
    })
}

#[cfg(test)]
mod tests {
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
        let batches = read(&path, &[2, 4], TooWide::Drop, 2, 5).unwrap();
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
        let wrong = |too_wide, count| format!("{:#}", read(&path, &[2, 4], too_wide, count, 5).unwrap_err());
        assert!(wrong(TooWide::Drop, 4).contains("15 that fit a site, which is enough for 3"));
        assert!(wrong(TooWide::Refuse, 1).contains("too_wide = \"drop\""));
    }
}
