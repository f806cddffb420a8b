//! Local schedulers against whole schedules of a real log that two independent simulators made.
//!
//! `simgrid-*` come from a batch scheduler on SimGrid with one pass per instant, `pyss-*` from the Python
//! Scheduler Simulator with a pass per event. Every job must start at the same second.

use std::io::Read;
use std::path::Path;

use scheduler::local::{LocalQueue, replay};
use scheduler::{JobId, LocalScheduler, Pass, Time, TimedJob};
use stealgrid_tests::shared;
use workload::prepare::{Estimate, Overrun, PrepareOptions, Size};

const LOG: &str = "traces/KTH-SP2-1996-2.1-cln.swf.gz";
const PROCESSORS: u32 = 100;
const JOBS: usize = 28_467;

/// A job and its start.
type Begins = (JobId, Time);

#[test]
fn fcfs_batch_starts_every_job_when_simgrid_does() {
    compare(LocalScheduler::Fcfs, Pass::Batch, Estimate::User, "simgrid-kth-sp2-fcfs");
}

#[test]
fn easy_batch_starts_every_job_when_simgrid_does() {
    compare(LocalScheduler::Easy, Pass::Batch, Estimate::User, "simgrid-kth-sp2-easy");
}

#[test]
fn conservative_batch_starts_every_job_when_simgrid_does() {
    compare(LocalScheduler::Conservative, Pass::Batch, Estimate::User, "simgrid-kth-sp2-cons");
}

#[test]
fn conservative_replan_batch_starts_every_job_when_simgrid_does() {
    compare(LocalScheduler::ConservativeReplan, Pass::Batch, Estimate::User, "simgrid-kth-sp2-consreplan");
}

#[test]
fn easy_per_event_starts_every_job_when_pyss_does() {
    compare(LocalScheduler::Easy, Pass::PerEvent, Estimate::User, "pyss-kth-sp2-easy");
}

#[test]
fn conservative_per_event_starts_every_job_when_pyss_does() {
    compare(LocalScheduler::Conservative, Pass::PerEvent, Estimate::User, "pyss-kth-sp2-cons");
}

#[test]
fn easy_with_exact_estimates_starts_every_job_when_pyss_does_in_both_orders() {
    for pass in [Pass::Batch, Pass::PerEvent] {
        compare(LocalScheduler::Easy, pass, Estimate::Exact, "pyss-kth-sp2-exact-easy");
    }
}

#[test]
fn conservative_with_exact_estimates_starts_every_job_when_pyss_does_in_both_orders() {
    for pass in [Pass::Batch, Pass::PerEvent] {
        for scheduler in [LocalScheduler::Conservative, LocalScheduler::ConservativeReplan] {
            compare(scheduler, pass, Estimate::Exact, "pyss-kth-sp2-exact-cons");
        }
    }
}

/// Nothing overtakes, so the order of events within an instant changes no start.
#[test]
fn fcfs_per_event_starts_every_job_when_simgrid_does() {
    compare(LocalScheduler::Fcfs, Pass::PerEvent, Estimate::User, "simgrid-kth-sp2-fcfs");
}

/// Another scheduler than the one of the reference, or the other order of events within an instant, is told apart.
#[test]
fn mutant_another_scheduler_or_order_is_not_the_reference() {
    for (scheduler, pass, estimate, reference) in [
        (LocalScheduler::List, Pass::Batch, Estimate::User, "simgrid-kth-sp2-fcfs"),
        (LocalScheduler::EasyBestFit, Pass::Batch, Estimate::User, "simgrid-kth-sp2-easy"),
        (LocalScheduler::ConservativeReplan, Pass::Batch, Estimate::User, "simgrid-kth-sp2-cons"),
        (LocalScheduler::Conservative, Pass::Batch, Estimate::User, "simgrid-kth-sp2-consreplan"),
        (LocalScheduler::Easy, Pass::Batch, Estimate::User, "pyss-kth-sp2-easy"),
        (LocalScheduler::Conservative, Pass::Batch, Estimate::User, "pyss-kth-sp2-cons"),
        (LocalScheduler::Easy, Pass::Batch, Estimate::User, "pyss-kth-sp2-exact-easy"),
        (LocalScheduler::Conservative, Pass::Batch, Estimate::User, "pyss-kth-sp2-exact-cons"),
    ] {
        let Some((same, _)) = matching(scheduler, pass, estimate, reference) else { return };
        println!("{scheduler:?} {pass:?}: {same} of {JOBS} starts are those of {reference}");
        assert!(same < JOBS, "{scheduler:?} {pass:?} passes for {reference}");
    }
}

fn compare(scheduler: LocalScheduler, pass: Pass, estimate: Estimate, reference: &str) {
    let Some((same, first)) = matching(scheduler, pass, estimate, reference) else { return };
    assert_eq!(same, JOBS, "{scheduler:?} {pass:?}: first difference (ours, theirs) {first:?}");
}

/// How many jobs start when those of the reference do, and the first that does not, of both. `None` without the files.
fn matching(
    scheduler: LocalScheduler,
    pass: Pass,
    estimate: Estimate,
    reference: &str,
) -> Option<(usize, Option<[Begins; 2]>)> {
    let log = shared(LOG)?;
    let reference = shared(&format!("references/{reference}.csv.gz"))?;
    let jobs = normalized(&log, estimate);
    assert_eq!(jobs.len(), JOBS, "the log is the one that the references were made of");

    let mut starts = replay(LocalQueue::new(scheduler, pass, PROCESSORS), &jobs);

    starts.sort_unstable();
    let expected = reference_starts(&reference);
    assert_eq!(expected.len(), JOBS);
    let same = starts.iter().zip(&expected).filter(|(ours, theirs)| ours == theirs).count();
    let first = starts.iter().zip(&expected).filter(|(ours, theirs)| ours != theirs).min_by_key(|(_, t)| t.1);
    Some((same, first.map(|(ours, theirs)| [*ours, *theirs])))
}

/// The log as the references have it: size as allocated, no job past its estimate, nothing without a run time
/// or size.
fn normalized(log: &Path, estimate: Estimate) -> Vec<TimedJob> {
    let trace = workload::read(log).expect("the log can be read");
    let options = PrepareOptions {
        size: Size::Allocated,
        overrun: Overrun::Kill,
        estimate,
        ..PrepareOptions::default()
    };
    workload::prepare(&trace, &options, PROCESSORS).expect("the log can be prepared").jobs
}

/// (job, start) of a schedule, ascending.
fn reference_starts(path: &Path) -> Vec<Begins> {
    let text = unpacked(path);
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("job_id,submit,start,end"));
    let mut starts: Vec<Begins> = lines
        .map(|line| {
            let field: Vec<i64> = line.split(',').map(|text| text.parse().expect("a whole number")).collect();
            (JobId(field[0].cast_unsigned()), Time::from_secs(field[2]))
        })
        .collect();
    starts.sort_unstable();
    starts
}

pub(crate) fn unpacked(path: &Path) -> String {
    let file = std::fs::File::open(path).expect("the file is there");
    let mut text = String::new();
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).expect("the file is packed text");
    text
}
