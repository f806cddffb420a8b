//! Short ways to write jobs, events and outcomes in tests of this crate.

use std::sync::Arc;

use scheduler::event::EventKind;
use scheduler::sharing::{Cluster, Fairness, LocalLoad, Node, Platform};
use scheduler::{Event, Grid, JobId, JobSpec, Labels, SharedNodes, SiteId, Span, Threshold, Time, TimedJob};

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

/// Sites whose nodes jobs share, without local users: (nodes, KB of memory of each), two tasks on a node.
pub(crate) fn shared_grid(sites: &[(u32, u64)]) -> Grid {
    shared_grid_beside(sites, &LocalLoad::default())
}

/// The same with these local users on every node.
pub(crate) fn shared_grid_beside(sites: &[(u32, u64)], local: &LocalLoad) -> Grid {
    let nodes = |&(count, memory): &(u32, u64)| {
        let node = Node { power: 1.0, memory, link: 100.0, mpl: 2 };
        let platform =
            Platform::new(&[Cluster { nodes: vec![node; count as usize], uplink: 100.0 }]).unwrap();
        let platform = Arc::new(platform.with_local(vec![local.clone(); count as usize]).unwrap());
        Some(Arc::new(SharedNodes {
            platform,
            fairness: Fairness::Proportional,
            applications: Arc::default(),
        }))
    };
    let named = sites.iter().zip(1..).map(|(site, number)| (format!("site{number}"), 2 * site.0));
    Grid::new(named).unwrap().with_clusters(sites.iter().map(nodes)).unwrap()
}

/// A task of a job is put on a node.
pub(crate) fn placed(at: i64, site: u32, job: u64, node: u32) -> Event {
    event(at, site, EventKind::Placed { job: JobId(job), node })
}
