//! Local schedulers against whole schedules of a real log that two independent simulators made.
//!
//! `simgrid-*` come from a batch scheduler on SimGrid with one pass per instant, `pyss-*` from the Python Scheduler Simulator with
//! a pass per event. Every job must start at the same second.

use std::io::Read;
use std::path::Path;

use scheduler::local::{LocalQueue, replay};
use scheduler::{JobId, JobSpec, LocalScheduler, Pass, SiteId, Span, Time, TimedJob};
use stealgrid_tests::shared;

const LOG: &str = "traces/KTH-SP2-1996-2.1-cln.swf.gz";
const PROCESSORS: u32 = 100;
const JOBS: usize = 28_467;

#[test]
fn fcfs_batch_starts_every_job_when_simgrid_does() {
    compare(LocalScheduler::Fcfs, Pass::Batch, Estimates::User, "simgrid-kth-sp2-fcfs");
}

#[test]
fn easy_batch_starts_every_job_when_simgrid_does() {
    compare(LocalScheduler::Easy, Pass::Batch, Estimates::User, "simgrid-kth-sp2-easy");
}

#[test]
fn conservative_batch_starts_every_job_when_simgrid_does() {
    compare(LocalScheduler::Conservative, Pass::Batch, Estimates::User, "simgrid-kth-sp2-cons");
}

#[test]
fn conservative_replan_batch_starts_every_job_when_simgrid_does() {
    compare(LocalScheduler::ConservativeReplan, Pass::Batch, Estimates::User, "simgrid-kth-sp2-consreplan");
}

#[test]
fn easy_per_event_starts_every_job_when_pyss_does() {
    compare(LocalScheduler::Easy, Pass::PerEvent, Estimates::User, "pyss-kth-sp2-easy");
}

#[test]
fn conservative_per_event_starts_every_job_when_pyss_does() {
    compare(LocalScheduler::Conservative, Pass::PerEvent, Estimates::User, "pyss-kth-sp2-cons");
}

#[test]
fn easy_with_exact_estimates_starts_every_job_when_pyss_does_in_both_orders() {
    for pass in [Pass::Batch, Pass::PerEvent] {
        compare(LocalScheduler::Easy, pass, Estimates::Exact, "pyss-kth-sp2-exact-easy");
    }
}

#[test]
fn conservative_with_exact_estimates_starts_every_job_when_pyss_does_in_both_orders() {
    for pass in [Pass::Batch, Pass::PerEvent] {
        for scheduler in [LocalScheduler::Conservative, LocalScheduler::ConservativeReplan] {
            compare(scheduler, pass, Estimates::Exact, "pyss-kth-sp2-exact-cons");
        }
    }
}

/// Nothing overtakes, so the order of events within an instant changes no start.
#[test]
fn fcfs_per_event_starts_every_job_when_simgrid_does() {
    compare(LocalScheduler::Fcfs, Pass::PerEvent, Estimates::User, "simgrid-kth-sp2-fcfs");
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Estimates {
    User,
    Exact,
}

fn compare(scheduler: LocalScheduler, pass: Pass, estimates: Estimates, reference: &str) {
    let Some(log) = shared(LOG) else { return };
    let Some(reference) = shared(&format!("references/{reference}.csv.gz")) else { return };
    let jobs = normalized(&log, estimates);
    assert_eq!(jobs.len(), JOBS, "the log is the one that the references were made of");

    let mut starts = replay(LocalQueue::new(scheduler, pass, PROCESSORS), &jobs);

    starts.sort_unstable();
    let expected = reference_starts(&reference);
    assert_eq!(expected.len(), JOBS);
    let same = starts.iter().zip(&expected).filter(|(ours, theirs)| ours == theirs).count();
    let first = starts.iter().zip(&expected).filter(|(ours, theirs)| ours != theirs).min_by_key(|(_, t)| t.1);
    assert_eq!(same, JOBS, "{scheduler:?} {pass:?}: first difference (ours, theirs) {first:?}");
}

/// The log as the references have it: size as allocated, no job past its estimate, nothing without a run time or size.
fn normalized(log: &Path, estimates: Estimates) -> Vec<TimedJob> {
    let mut jobs: Vec<TimedJob> = Vec::new();
    for line in unpacked(log).lines().filter(|line| !line.starts_with(';')) {
        let field: Vec<i64> =
            line.split_whitespace().map(|text| text.parse::<f64>().unwrap() as i64).collect();
        let processors = if field[4] > 0 { field[4] } else { field[7] };
        let (submit, run) = (field[1], field[3]);
        if run <= 0 || processors <= 0 || submit < 0 || processors > i64::from(PROCESSORS) {
            continue;
        }
        let requested = if field[8] > 0 { field[8] } else { run };
        let run = run.min(requested);
        let requested = if estimates == Estimates::Exact { run } else { requested };
        let spec = JobSpec {
            id: JobId(field[0] as u64),
            submit: Time::from_secs(submit),
            processors: processors as u32,
            requested: Span::from_secs(requested),
            user: -1,
            origin: SiteId(1),
            payload: 0,
        };
        jobs.push(TimedJob { spec, run_time: Span::from_secs(run) });
    }
    jobs
}

/// (job, start) of a schedule, ascending.
fn reference_starts(path: &Path) -> Vec<(JobId, Time)> {
    let text = unpacked(path);
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("job_id,submit,start,end"));
    let mut starts: Vec<(JobId, Time)> = lines
        .map(|line| {
            let field: Vec<i64> = line.split(',').map(|text| text.parse().unwrap()).collect();
            (JobId(field[0] as u64), Time::from_secs(field[2]))
        })
        .collect();
    starts.sort_unstable();
    starts
}

fn unpacked(path: &Path) -> String {
    let mut text = String::new();
    flate2::read::GzDecoder::new(std::fs::File::open(path).unwrap()).read_to_string(&mut text).unwrap();
    text
}
