//! Short ways to make results, for tests of this crate and of those that show them.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

use std::path::PathBuf;

use analysis::{Outcome, OutcomeBuilder};
use scheduler::{
    Event, EventKind, Grid, JobId, JobSpec, Labels, LocalScheduler, SiteId, Span, Submit, Threshold, Time,
    TimedJob,
};

use crate::run_result::{RunAbout, Status};

/// An empty folder for one test.
pub fn folder(test: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("stealgrid-{}-{test}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder); // It is usually not there.
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// The description of a run under ideal ST50.
pub fn about() -> RunAbout {
    RunAbout {
        scraped: None,
        compared: None,
        experiment: "two sites".into(),
        workload: "a,b.swf".into(),
        strategy: "ideal/st:50".parse().unwrap(),
        submit: Submit::Home,
        local_users: false,
        local: None,
        scheduler: LocalScheduler::default(),
        driver: "simulate".into(),
        clock: "virtual".into(),
        network: "no delay".into(),
        messages: analysis::Messages::FREE,
        seed: 7,
        cut: analysis::steady::Cut::default(),
        provenance: crate::Provenance::default(),
        command: "stealgrid simulate two-sites.toml --seed 7".into(),
        status: Status::Complete,
        calibration: None,
        lines: Vec::new(),
        orders: Vec::new(),
        missed: Vec::new(),
        warnings: Vec::new(),
    }
}

/// The outcome of jobs `(submit, processors, run time, site, start)` in seconds, numbered from 1. A job wider than
/// every site is rejected, whatever its site.
pub fn outcome(sizes: &[u32], jobs: &[(i64, u32, i64, u32, i64)]) -> Outcome {
    let grid = Grid::of_sizes(sizes).unwrap();
    let (workload, events) = run(sizes, jobs);
    let mut builder = OutcomeBuilder::new(&grid, Threshold::HALF, &workload);
    events.iter().for_each(|event| builder.observe(event));
    builder.finish()
}

/// Two jobs of 2 processors for 10 s on sites of 2 and 4: a crash of site 1 interrupts the first, and site 2, which
/// executes the second, is never heard of again.
pub fn faulty() -> Outcome {
    let grid = Grid::of_sizes(&[2, 4]).unwrap();
    let (workload, _) = run(&[2, 4], &[(0, 2, 10, 1, 0), (0, 2, 10, 2, 5)]);
    let (one, two) = (SiteId(1), SiteId(2));
    let started = |job| EventKind::Started { job: JobId(job), processors: 2, hops: 0 };
    let completed = |job| EventKind::Completed { job: JobId(job), processors: 2 };
    let submitted = |job| EventKind::Submitted {
        job: JobId(job),
        processors: 2,
        requested: Span::from_secs(10),
        origin: one,
    };
    let events = [
        (0, one, submitted(1)),
        (0, one, submitted(2)),
        (0, one, started(1)),
        (4, one, EventKind::Requested { victim: two, seq: 1, offer: 1, view_age: None }),
        (5, two, started(2)),
        (20, one, EventKind::Recovered { incarnation: 1, waiting: 0, running: 1, out: 0 }),
        (20, one, EventKind::Interrupted { job: JobId(1), processors: 2, killed: false }),
        (20, one, started(1)),
        (30, one, completed(1)),
        (40, one, EventKind::Suspected { peer: two }),
        (50, one, EventKind::Gone { peer: two }),
        (50, one, EventKind::TookOver { job: JobId(2), holder: two, epoch: 1 }),
        (60, one, started(2)),
        (70, one, completed(2)),
    ];
    let mut builder = OutcomeBuilder::new(&grid, Threshold::HALF, &workload);
    for (at, site, kind) in events {
        builder.observe(&Event { at: Time::from_secs(at), site, kind });
    }
    builder.finish()
}

/// Two jobs on sites of 2 and 4 processors: one of 2 for 10 s at site 1, then one of 5 for 10 s over both.
pub fn spread() -> Outcome {
    let grid = Grid::of_sizes(&[2, 4]).unwrap().with_spread(6);
    let (mut workload, mut events) = run(&[2, 4], &[(0, 2, 10, 1, 0)]);
    let (job, of) = (JobId(2), SiteId(2));
    let mut wide = workload[0];
    (wide.spec.id, wide.spec.processors) = (job, 5);
    workload.push(wide);
    let kinds = [
        (
            0,
            2,
            EventKind::Submitted { job, processors: 5, requested: wide.spec.requested, origin: SiteId(1) },
        ),
        (10, 2, EventKind::Started { job, processors: 3, hops: 0 }),
        (10, 1, EventKind::PartStarted { job, processors: 2, of }),
        (20, 2, EventKind::Completed { job, processors: 3 }),
        (20, 1, EventKind::PartCompleted { job, processors: 2, of }),
    ];
    let event = |(at, site, kind)| Event { at: Time::from_secs(at), site: SiteId(site), kind };
    events.extend(kinds.map(event));
    events.sort_by_key(|event| event.at);
    let mut builder = OutcomeBuilder::new(&grid, Threshold::HALF, &workload);
    events.iter().for_each(|event| builder.observe(event));
    builder.finish()
}

/// The workload and the events, in order of time, of such jobs.
pub fn run(sizes: &[u32], jobs: &[(i64, u32, i64, u32, i64)]) -> (Vec<TimedJob>, Vec<Event>) {
    let timed = |(&(submit, processors, run_time, ..), id): (&(i64, u32, i64, u32, i64), u64)| TimedJob {
        spec: JobSpec {
            id: JobId(id),
            submit: Time::from_secs(submit),
            processors,
            requested: Span::from_secs(run_time.max(1)),
            labels: Labels { user: 1, ..Labels::UNKNOWN },
            origin: SiteId(1),
            payload: 0,
        },
        run_time: Span::from_secs(run_time),
    };
    let workload: Vec<TimedJob> = jobs.iter().zip(1..).map(timed).collect();
    let mut events = Vec::new();
    for (job, &(.., site, start)) in workload.iter().zip(jobs) {
        let JobSpec { id, processors, requested, origin, submit, .. } = job.spec;
        if sizes.iter().all(|&size| processors > size) {
            continue;
        }
        let start = Time::from_secs(start);
        let home = Grid::of_sizes(sizes).unwrap().home(processors).unwrap();
        for (at, site, kind) in [
            (submit, home, EventKind::Submitted { job: id, processors, requested, origin }),
            (start, SiteId(site), EventKind::Started { job: id, processors, hops: 0 }),
            (start + job.run_time, SiteId(site), EventKind::Completed { job: id, processors }),
        ] {
            events.push(Event { at, site, kind });
        }
    }
    events.sort_by_key(|event| event.at);
    (workload, events)
}
