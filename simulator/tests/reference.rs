//! The event loop of the reference runs: order of events, zero run times, timers, refusals, and the checker.

use proptest::prelude::*;
use scheduler::ideal::invariants::Violation;
use scheduler::ideal::{CommonPool, GreedySteal, StatelessSteal};
use scheduler::local::{LocalGrid, LocalQueue, replay};
use scheduler::{
    Event, EventKind, Grid, JobId, JobSpec, Labels, LocalScheduler, Order, Pass, Policy, Selection, SiteId,
    Span, Start, Steal, Threshold, Time, TimedJob,
};
use simulator::reference::{Checker, ReferenceError, Summary, run, run_observed};

#[test]
fn one_instant_is_completions_then_submissions_then_starts() {
    let grid = Grid::of_sizes(&[2, 4]).unwrap();
    let jobs = [job(1, 2, 4, 0), job(2, 2, 4, 0), job(3, 3, 1, 4), job(4, 1, 1, 4)];

    let expected = [
        "0 1 submitted 1",
        "0 1 submitted 2",
        "0 1 started 1 hops 0",
        "0 2 started 2 hops 1",
        "4 1 completed 1",
        "4 2 completed 2",
        "4 2 submitted 3",
        "4 1 submitted 4",
        "4 1 started 4 hops 0",
        "4 2 started 3 hops 0",
        "5 1 completed 4",
        "5 2 completed 3",
    ];

    assert_eq!(log(&mut st50(&grid), &jobs, &grid, Pass::Batch), expected);
}

#[test]
fn a_job_without_run_time_makes_room_within_the_instant() {
    let grid = Grid::of_sizes(&[4]).unwrap();
    let jobs = [job(1, 4, 0, 3), job(2, 4, 0, 3), job(3, 4, 2, 3)];

    let expected = [
        "3 1 submitted 1",
        "3 1 submitted 2",
        "3 1 submitted 3",
        "3 1 started 1 hops 0",
        "3 1 completed 1",
        "3 1 started 2 hops 0",
        "3 1 completed 2",
        "3 1 started 3 hops 0",
        "5 1 completed 3",
    ];

    assert_eq!(log(&mut st50(&grid), &jobs, &grid, Pass::Batch), expected);
}

#[test]
fn per_event_decides_after_each_submission_and_then_after_each_end_in_start_order() {
    let grid = Grid::of_sizes(&[2]).unwrap();
    let jobs = [job(1, 1, 5, 0), job(2, 1, 4, 1), job(3, 1, 1, 5), job(4, 1, 1, 5), job(5, 1, 1, 5)];

    let lines = log(&mut CommonPool::new(&grid), &jobs, &grid, Pass::PerEvent);

    let expected = [
        "5 1 submitted 3",
        "5 1 submitted 4",
        "5 1 submitted 5",
        "5 1 completed 1",
        "5 1 started 3 hops 0",
        "5 1 completed 2",
        "5 1 started 4 hops 0",
    ];
    assert_eq!(lines[4..11], expected);
}

#[test]
fn a_policy_is_asked_again_when_it_wants_to_be() {
    let grid = Grid::of_sizes(&[4]).unwrap();
    let jobs = [job(1, 2, 1, 0), job(2, 2, 9, 1)];
    for pass in [Pass::Batch, Pass::PerEvent] {
        let lines = log(&mut Delayed { lag: 7, waiting: Vec::new() }, &jobs, &grid, pass);

        let mut expected = vec!["0 1 submitted 1", "1 1 submitted 2", "7 1 started 1 hops 0"];
        expected.extend(["8 1 completed 1", "8 1 started 2 hops 0", "17 1 completed 2"]);
        assert_eq!(lines, expected);
    }
}

#[test]
#[should_panic(expected = "job 2 does not fit site 1 at 3 s")]
fn a_policy_that_overfills_a_site_is_stopped() {
    let grid = Grid::of_sizes(&[2]).unwrap();
    let jobs = [job(1, 2, 4, 0), job(2, 2, 1, 3)];
    log(&mut Delayed { lag: 0, waiting: Vec::new() }, &jobs, &grid, Pass::Batch);
}

#[test]
fn what_cannot_be_run_is_refused_with_the_job() {
    let id = JobId(7);
    let mut lazy = Lazy(0);
    let impossible = |processors, run_time| ReferenceError::Impossible { job: id, processors, run_time };

    let too_wide = ReferenceError::TooWide { job: id, processors: 5, widest: 4 };
    assert_eq!(error(&mut lazy, &[job(7, 5, 1, 0)]), too_wide);
    assert_eq!(error(&mut lazy, &[job(7, 0, 1, 0)]), impossible(0, Span::from_secs(1)));
    assert_eq!(error(&mut lazy, &[job(7, 1, -1, 0)]), impossible(1, Span::from_secs(-1)));
    assert_eq!(error(&mut lazy, &[job(7, 1, 1, 0), job(7, 1, 1, 1)]), ReferenceError::Duplicate(id));
    assert_eq!(error(&mut lazy, &[job(8, 1, 1, 0), job(7, 1, 1, 0)]), ReferenceError::Unsorted(id));
    assert_eq!(lazy.0, 0, "nothing is submitted of a workload that is refused");
}

#[test]
fn a_policy_that_starves_jobs_ends_the_run() {
    let jobs = [job(1, 1, 1, 0), job(2, 1, 1, 6)];
    assert_eq!(error(&mut Lazy(0), &jobs), ReferenceError::Starved { at: Time::from_secs(6), waiting: 2 });
}

#[test]
fn a_workload_without_jobs_is_over_at_once() {
    let grid = Grid::of_sizes(&[4]).unwrap();
    let summary = run(&mut st50(&grid), &[], &grid, Pass::Batch, &mut |_| {}).unwrap();
    assert_eq!(summary, Summary { jobs: 0, last_end: None, decisions: 0 });
}

#[test]
fn ids_with_gaps_are_found_like_dense_ones() {
    let grid = Grid::of_sizes(&[4]).unwrap();
    for ids in [[5, 6, 7], [1, 1 << 40, u64::MAX]] {
        let jobs = ids.map(|id| job(id, 3, 2, 0));
        let summary = run(&mut st50(&grid), &jobs, &grid, Pass::Batch, &mut |_| {}).unwrap();
        assert_eq!(summary.last_end, Some(Time::from_secs(6)));
    }
}

proptest! {
    #[test]
    fn ideal_stealing_passes_the_checker(
        (grid, jobs) in instances(),
        percent in prop::sample::select(vec![25u8, 50, 75]),
        order in prop::sample::select(Order::ALL.to_vec()),
        select in prop::sample::select(Selection::ALL.to_vec()),
    ) {
        let steal = Steal { threshold: Threshold::new(percent).unwrap(), order, select };
        prop_assert_eq!(violations(StatelessSteal::new(&grid, steal), &grid, &jobs, steal), vec![]);
    }

    /// The loop of the local schedulers was written independently and drives one queue.
    #[test]
    fn one_site_starts_the_same_jobs_as_the_loop_of_its_queue(
        rows in prop::collection::vec((1u32..9, 0i64..9, 1i64..12, 0i64..25), 1..30),
        local in prop::sample::select(LocalScheduler::ALL.to_vec()),
        batch in any::<bool>(),
    ) {
        let pass = if batch { Pass::Batch } else { Pass::PerEvent };
        let timed = |(&(width, run, requested, submit), id): (&(u32, i64, i64, i64), u64)| {
            let mut timed = job(id, width, run.min(requested), submit);
            timed.spec.requested = Span::from_secs(requested);
            timed
        };
        let mut jobs: Vec<TimedJob> = rows.iter().zip(1..).map(timed).collect();
        jobs.sort_by_key(|job| job.spec.key());
        let grid = Grid::of_sizes(&[8]).unwrap();

        let mut starts = Vec::new();
        run(&mut LocalGrid::new(grid.clone(), local, pass), &jobs, &grid, pass, &mut |event| {
            if let EventKind::Started { job, .. } = event.kind {
                starts.push((job, event.at));
            }
        })
        .unwrap();

        prop_assert_eq!(starts, replay(LocalQueue::new(local, pass, 8), &jobs));
    }

    #[test]
    fn the_same_run_gives_the_same_events((grid, jobs) in instances(), batch in any::<bool>()) {
        let pass = if batch { Pass::Batch } else { Pass::PerEvent };
        let first = log(&mut st50(&grid), &jobs, &grid, pass);
        prop_assert_eq!(first.len(), 3 * jobs.len());
        prop_assert_eq!(first, log(&mut st50(&grid), &jobs, &grid, pass));
    }
}

/// Site 2 has work that does not fit what site 3 has idle; site 1 has work that does.
#[test]
fn mutant_a_thief_that_looks_past_its_root_does_not_pass_the_checker() {
    let grid = Grid::of_sizes(&[2, 4, 8]).unwrap();
    let jobs = [job(1, 2, 5, 0), job(2, 4, 5, 0), job(3, 6, 5, 0), job(4, 4, 5, 0), job(5, 2, 5, 0)];
    let steal = Steal::with_threshold(Threshold::HALF);

    assert_eq!(violations(st50(&grid), &grid, &jobs, steal), []);
    let found = violations(GreedySteal::new(&grid, steal), &grid, &jobs, steal);

    let expected = Violation::Root { job: JobId(5), rank: 2, waiting: JobId(4) };
    assert_eq!(found, [(Time::ZERO, expected)]);
}

fn job(id: u64, width: u32, run: i64, submit: i64) -> TimedJob {
    TimedJob {
        spec: JobSpec {
            id: JobId(id),
            submit: Time::from_secs(submit),
            processors: width,
            requested: Span::from_secs(run.max(1)),
            labels: Labels::UNKNOWN,
            origin: SiteId(1),
            payload: 0,
        },
        run_time: Span::from_secs(run),
    }
}

fn st50(grid: &Grid) -> StatelessSteal {
    StatelessSteal::new(grid, Steal::with_threshold(Threshold::HALF))
}

/// One line an event: time, site, what, job.
fn line(event: &Event) -> String {
    let Event { at, site, kind } = event;
    match kind {
        EventKind::Submitted { job, .. } => format!("{at} {site} submitted {job}"),
        EventKind::Started { job, hops, .. } => format!("{at} {site} started {job} hops {hops}"),
        EventKind::Completed { job, .. } => format!("{at} {site} completed {job}"),
        other => panic!("a reference does not emit {other:?}"),
    }
}

fn log<P: Policy>(policy: &mut P, jobs: &[TimedJob], grid: &Grid, pass: Pass) -> Vec<String> {
    let mut lines = Vec::new();
    run(policy, jobs, grid, pass, &mut |event| lines.push(line(&event))).unwrap();
    lines
}

fn error(policy: &mut impl Policy, jobs: &[TimedJob]) -> ReferenceError {
    run(policy, jobs, &Grid::of_sizes(&[4]).unwrap(), Pass::Batch, &mut |_| {}).unwrap_err()
}

fn violations<P: Policy>(
    mut policy: P,
    grid: &Grid,
    jobs: &[TimedJob],
    steal: Steal,
) -> Vec<(Time, Violation)> {
    let mut checker = Checker::new(grid, steal, jobs);
    let summary = run_observed(&mut policy, jobs, grid, Pass::Batch, &mut |_| {}, &mut checker).unwrap();
    checker.finish(&summary)
}

fn instances() -> impl Strategy<Value = (Grid, Vec<TimedJob>)> {
    let sizes = (4u32..9, prop::collection::vec(0u32..5, 1..7));
    (sizes, prop_oneof![Just(0i64), Just(25)]).prop_flat_map(|((base, steps), horizon)| {
        let sizes: Vec<u32> = steps.into_iter().map(|step| base + step).collect();
        let grid = Grid::of_sizes(&sizes).unwrap();
        let rows = prop::collection::vec((1..=grid.widest(), 0i64..9, 0..=horizon), 1..31);
        rows.prop_map(move |mut rows| {
            rows.sort_by_key(|&(_, _, submit)| submit);
            let jobs = rows.iter().zip(1..).map(|(&(width, run, submit), id)| job(id, width, run, submit));
            (grid.clone(), jobs.collect())
        })
    })
}

/// Starts every job `lag` seconds after its submission at site 1, whether it fits or not.
struct Delayed {
    lag: i64,
    waiting: Vec<JobSpec>,
}

impl Policy for Delayed {
    fn submitted(&mut self, _now: Time, job: JobSpec) {
        self.waiting.push(job);
    }

    fn completed(&mut self, _now: Time, _job: JobId) {}

    fn decide(&mut self, now: Time, starts: &mut Vec<Start>) {
        let lag = Span::from_secs(self.lag);
        let due = self.waiting.iter().filter(|job| job.submit + lag <= now);
        starts.extend(due.map(|&job| Start { job, site: SiteId(1) }));
        self.waiting.retain(|job| job.submit + lag > now);
    }

    fn wake_at(&self) -> Option<Time> {
        self.waiting.iter().map(|job| job.submit + Span::from_secs(self.lag)).min()
    }

    fn waiting(&self) -> usize {
        self.waiting.len()
    }
}

/// Forgets every job.
struct Lazy(usize);

impl Policy for Lazy {
    fn submitted(&mut self, _now: Time, _job: JobSpec) {
        self.0 += 1;
    }

    fn completed(&mut self, _now: Time, _job: JobId) {}

    fn decide(&mut self, _now: Time, _starts: &mut Vec<Start>) {}

    fn waiting(&self) -> usize {
        self.0
    }
}
