//! The result directory as a whole, and short ways to make results for tests of this crate.

use super::*;
use analysis::{Outcome, OutcomeBuilder};
use scheduler::{Event, EventKind, Grid, JobId, JobSpec, SiteId, Span, Submit, Threshold, Time, TimedJob};

#[test]
fn a_directory_holds_every_file_and_the_same_bytes_twice() {
    let jobs = [(0, 2, 10, 1, 0), (0, 1, 6, 2, 0), (4, 9, 1, 0, 0)];
    let result = RunResult::new(about(), outcome(&[2, 4], &jobs), Some(&outcome(&[2, 4], &jobs)));
    let options = Options { jobs_per_site: true, ..Options::default() };
    let (first, second) = (folder("write_all_1"), folder("write_all_2"));

    let written = write_all(&first, &result, options).unwrap();
    write_all(&second, &result, options).unwrap();

    let names: Vec<String> =
        written.iter().map(|path| path.strip_prefix(&first).unwrap().display().to_string()).collect();
    assert_eq!(
        names,
        [
            "metrics.json",
            "migrations.csv",
            "jobs.csv",
            "site1/jobs.csv",
            "site2/jobs.csv",
            "schedule.swf",
            "report.html",
            "manifest.json"
        ]
    );
    for name in names {
        assert_eq!(std::fs::read(first.join(&name)).unwrap(), std::fs::read(second.join(&name)).unwrap());
    }
}

#[test]
fn metrics_and_manifest_say_what_happened() {
    let jobs = [(0, 2, 10, 1, 0), (0, 1, 6, 2, 0), (4, 9, 1, 0, 0)];
    let mut about = about();
    about.status = Status::Partial("stopped by the user".into());
    let result = RunResult::new(about, outcome(&[2, 4], &jobs), None);
    let folder = folder("documents");
    write_all(&folder, &result, Options { page: false, ..Options::default() }).unwrap();

    let read = |name: &str| -> serde_json::Value {
        serde_json::from_slice(&std::fs::read(folder.join(name)).unwrap()).unwrap()
    };
    let (metrics, manifest) = (read("metrics.json"), read("manifest.json"));
    assert_eq!(metrics["metrics"]["makespan_s"], 10.0);
    assert_eq!(metrics["status"], "partial");
    assert_eq!(metrics["reason"], "stopped by the user");
    assert_eq!(metrics["migrations"][1]["site"], 2);
    assert_eq!(metrics["federation"]["users_at"], "home");
    assert_eq!(metrics["federation"]["sites"][1]["squashed_area"], 6.0);
    assert_eq!(metrics["bounds"]["best_s"], 10.0);
    assert_eq!(manifest["jobs"]["completed"], 2);
    assert_eq!(manifest["jobs"]["rejected"], 1);
    assert_eq!(manifest["sites"][1]["resource_bounds"], serde_json::json!([2, 5]));
    let migrations = std::fs::read_to_string(folder.join("migrations.csv")).unwrap();
    assert!(migrations.contains("1,2,1,0.500000,6.000000,0.230769"), "{migrations}");
}

#[test]
fn a_run_with_jobs_left_is_never_complete() {
    let done = outcome(&[4], &[(0, 4, 10, 1, 0), (0, 4, 10, 1, 10)]);
    let mut left = done.clone();
    left.jobs[1] = analysis::JobOutcome { end: None, state: analysis::JobState::Running, ..left.jobs[1] };

    assert!(RunResult::new(about(), done, None).is_complete());
    let result = RunResult::new(about(), left, None);
    assert_eq!(result.about.status, Status::Partial("1 jobs did not end".into()));
}

/// An empty folder for one test.
pub(crate) fn folder(test: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("stealgrid-{}-{test}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder); // It is usually not there.
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// The description of a run under ideal ST50.
pub(crate) fn about() -> RunAbout {
    RunAbout {
        scraped: None,
        compared: None,
        experiment: "two sites".into(),
        workload: "a,b.swf".into(),
        strategy: "ideal/st:50".parse().unwrap(),
        submit: Submit::default(),
        local: None,
        driver: "simulate".into(),
        clock: "virtual".into(),
        network: "no delay".into(),
        free_messages: true,
        seed: 7,
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
pub(crate) fn outcome(sizes: &[u32], jobs: &[(i64, u32, i64, u32, i64)]) -> Outcome {
    let grid = Grid::of_sizes(sizes).unwrap();
    let (workload, events) = run(sizes, jobs);
    let mut builder = OutcomeBuilder::new(&grid, Threshold::HALF, &workload);
    events.iter().for_each(|event| builder.observe(event));
    builder.finish()
}

/// Two jobs of 2 processors for 10 s on sites of 2 and 4: a crash of site 1 interrupts the first, and site 2, which
/// executes the second, is never heard of again.
pub(crate) fn faulty() -> Outcome {
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
        (20, one, EventKind::Recovered { life: 1, waiting: 0, running: 1, out: 0 }),
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

/// The workload and the events, in order of time, of such jobs.
pub(crate) fn run(sizes: &[u32], jobs: &[(i64, u32, i64, u32, i64)]) -> (Vec<TimedJob>, Vec<Event>) {
    let timed = |(&(submit, processors, run_time, ..), id): (&(i64, u32, i64, u32, i64), u64)| TimedJob {
        spec: JobSpec {
            id: JobId(id),
            submit: Time::from_secs(submit),
            processors,
            requested: Span::from_secs(run_time.max(1)),
            user: 1,
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
