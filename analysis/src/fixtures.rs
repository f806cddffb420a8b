//! Short ways to write jobs, events and outcomes in tests of this crate.

use scheduler::event::EventKind;
use scheduler::{Event, Grid, JobId, JobSpec, Labels, SiteId, Span, Threshold, Time, TimedJob};

use crate::outcome::{Outcome, OutcomeBuilder};

/// A job with a good estimate, submitted at site 1. Times in seconds.
pub(crate) fn timed_job(id: u64, submit: i64, processors: u32, run_time: i64) -> TimedJob {
    let spec = JobSpec {
        id: JobId(id),
        submit: Time::from_secs(submit),
        processors,
        requested: Span::from_secs(run_time.max(1)),
        labels: Labels::UNKNOWN,
        origin: SiteId(1),
        payload: 0,
    };
    TimedJob { spec, run_time: Span::from_secs(run_time) }
}

/// An event at a second of the run.
pub(crate) fn event(at: i64, site: u32, kind: EventKind) -> Event {
    Event { at: Time::from_secs(at), site: SiteId(site), kind }
}

/// A job starts without having moved.
pub(crate) fn started(at: i64, site: u32, job: u64, processors: u32) -> Event {
    event(at, site, EventKind::Started { job: JobId(job), processors, hops: 0 })
}

/// A job ends.
pub(crate) fn completed(at: i64, site: u32, job: u64) -> Event {
    event(at, site, EventKind::Completed { job: JobId(job), processors: 0 })
}

/// The outcome of jobs `(submit, processors, run time, site, start)`, numbered from 1; all end by themselves.
pub(crate) fn outcome(sizes: &[u32], jobs: &[(i64, u32, i64, u32, i64)]) -> Outcome {
    let workload: Vec<TimedJob> = jobs
        .iter()
        .zip(1..)
        .map(|(&(submit, processors, run_time, ..), id)| timed_job(id, submit, processors, run_time))
        .collect();
    let grid = Grid::of_sizes(sizes).unwrap();
    let mut builder = OutcomeBuilder::new(&grid, Threshold::HALF, &workload);
    for (&(_, processors, run_time, site, start), id) in jobs.iter().zip(1..) {
        builder.observe(&started(start, site, id, processors));
        builder.observe(&completed(start + run_time, site, id));
    }
    builder.finish()
}
