//! Real nodes that are killed, stopped and started again while they work: every job ends exactly once.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use node::config::SiteEntry;
use node::control::Token;
use node::{NodeConfig, exit};
use operation::NodeProcess;
use operation::fleet::Fleet;
use operation::spawn::SpawnOrder;
use protocol::Interrupted;
use rustix::process::{Pid, Signal, kill_process};
use scheduler::{Event, EventKind, JobId, JobSpec, Labels, SiteId, Span, Time, TimedJob};

use crate::PROGRAM;

/// Seconds of trace time in a second.
const FACTOR: f64 = 100.0;
const PROCESSORS: [u32; 3] = [4, 8, 8];
const JOBS_PER_ROUND: u64 = 12;
/// Ample for what takes seconds; reached only by a failing test.
const PATIENCE: Duration = Duration::from_secs(120);

/// `STEALGRID_ROUNDS` kills or stops at random times (8 if it is not set).
#[test]
fn nodes_that_are_killed_and_started_again_run_every_job_exactly_once() {
    let rounds = std::env::var("STEALGRID_ROUNDS").map_or(8, |rounds| rounds.parse().unwrap());
    let (jobs, events) = killed_at_random(rounds, Interrupted::Requeue);
    for job in &jobs {
        let history = history(&events, job.spec.id);
        assert_eq!(history.ended, 1, "job {}: {history:?}", job.spec.id);
        assert_eq!(history.killed, 0, "job {}: {history:?}", job.spec.id);
    }
    let restarts = events.iter().filter(|event| matches!(event.kind, EventKind::Recovered { .. })).count();
    assert!(restarts > 0, "no node was started again");
}

#[test]
fn jobs_that_a_crash_kills_are_reported_and_not_run_again() {
    let (jobs, events) = killed_at_random(4, Interrupted::Kill);
    let killed =
        events.iter().filter(|event| matches!(event.kind, EventKind::Interrupted { killed: true, .. }));
    assert!(killed.count() > 0, "nothing executed when nodes were killed");
    for job in &jobs {
        let history = history(&events, job.spec.id);
        assert_eq!(history.ended + history.killed, 1, "job {}: {history:?}", job.spec.id);
        assert_eq!(history.started, 1, "job {}: {history:?}", job.spec.id);
    }
}

#[test]
fn a_node_without_room_stops_before_it_answers_and_goes_on_with_room() {
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    Token::random().write_new(&token).unwrap();
    let small = NodeConfig {
        journal_bytes_max: Some(128 * 1024),
        control_token: Some(token),
        ..config(folder.path(), 1)
    };
    let mut process = NodeProcess::spawn(&order(folder.path()), &small).unwrap();
    process.client().jobs(&jobs(0..10)).unwrap();
    assert!(process.client().jobs(&jobs(10..40_000)).is_err(), "the limit does not hold");
    let deadline = Instant::now() + PATIENCE;
    let status = loop {
        match process.ended().unwrap() {
            Some(status) => break status,
            None => assert!(Instant::now() < deadline, "the node does not end"),
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    assert_eq!(status.code(), Some(i32::from(exit::JOURNAL_FULL)), "{}", process.log_tail());

    let large = NodeConfig { journal_bytes_max: None, ..small };
    let process = NodeProcess::spawn_again(&order(folder.path()), &large).unwrap();
    let status = process.client().status().unwrap();
    assert_eq!((status.outstanding.arrivals, status.restarts), (10, 1));
    process.client().offer_again(&jobs(0..4000)).unwrap();
    assert_eq!(process.client().status().unwrap().outstanding.arrivals, 4000);

    // A second node with the same directory is told so.
    let error = NodeProcess::spawn(&order(tempfile::tempdir().unwrap().path()), &large).unwrap_err();
    assert!(error.to_string().contains("in use by another node"), "{error}");
}

/// What happened to one job.
#[derive(Debug, Default)]
struct History {
    started: u32,
    requeued: u32,
    killed: u32,
    ended: u32,
}

/// Also checks that it executes at one site at a time, and ends where it executes.
fn history(events: &[Event], wanted: JobId) -> History {
    let mut history = History::default();
    let mut here: Option<SiteId> = None;
    for event in events {
        match event.kind {
            EventKind::Started { job, .. } if job == wanted => {
                assert_eq!(here.replace(event.site), None, "job {job} executes twice at once");
                history.started += 1;
            }
            EventKind::Interrupted { job, killed, .. } if job == wanted => {
                assert_eq!(here.take(), Some(event.site), "job {job} is interrupted elsewhere");
                *(if killed { &mut history.killed } else { &mut history.requeued }) += 1;
            }
            EventKind::Completed { job, .. } if job == wanted => {
                assert_eq!(here.take(), Some(event.site), "job {job} ends elsewhere");
                history.ended += 1;
            }
            _ => {}
        }
    }
    history
}

/// Runs jobs while nodes are killed, or stopped for a while, at random times; all events in the order of time.
fn killed_at_random(rounds: u64, interrupted: Interrupted) -> (Vec<TimedJob>, Vec<Event>) {
    let folder = tempfile::tempdir().unwrap();
    let configs: Vec<NodeConfig> = (1..=PROCESSORS.len() as u32)
        .map(|site| {
            let mut config = config(folder.path(), site);
            config.options.interrupted = interrupted;
            config
        })
        .collect();
    let mut fleet = Fleet::spawn_each(&order(folder.path()), &configs).unwrap();
    fleet.wait_ready(PATIENCE).unwrap();
    // Where nodes must be killed while they execute something, more than a slow machine can end before.
    let times = if interrupted == Interrupted::Kill { 3 } else { 1 };
    let jobs = jobs(0..times * rounds * JOBS_PER_ROUND);
    fleet.feed(&jobs, |job| job.spec.origin).unwrap();
    fleet.start(FACTOR, Time::ZERO, Duration::from_millis(200)).unwrap();

    let mut events: BTreeMap<SiteId, Vec<Event>> = BTreeMap::new();
    let mut take = |event: Event| events.entry(event.site).or_default().push(event);
    let mut chance = Chance(rounds + 1);
    for _ in 0..rounds {
        std::thread::sleep(Duration::from_millis(chance.below(700)));
        let victim = chance.below(PROCESSORS.len() as u64) as usize;
        let process = Pid::from_raw(fleet.process_ids().nth(victim).unwrap() as i32).unwrap();
        if chance.below(4) == 0 {
            kill_process(process, Signal::STOP).unwrap();
            std::thread::sleep(Duration::from_millis(chance.below(500)));
            kill_process(process, Signal::CONT).unwrap();
        } else {
            if interrupted == Interrupted::Kill {
                until_busy(&mut fleet, victim, jobs.len() as u64);
            }
            kill_process(process, Signal::KILL).unwrap();
            std::thread::sleep(Duration::from_millis(chance.below(300)));
            // The kernel may take a moment to end the process.
            while fleet.restart_ended(true).unwrap().begun.is_empty() {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }
    // More is submitted than the grid can do meanwhile, and what is interrupted is done again.
    let deadline = Instant::now() + PATIENCE + Duration::from_secs(2 * rounds);
    while !fleet.is_finished(jobs.len() as u64).unwrap() {
        assert!(Instant::now() < deadline, "{:#?}", fleet.statuses().unwrap());
        std::thread::sleep(Duration::from_millis(50));
    }
    fleet.take_events(&mut take).unwrap();
    let page = fleet.clients().next().unwrap().metrics().unwrap();
    let restarts = page.lines().find(|line| line.starts_with("stealgrid_restarts_total{"));
    let restarts = restarts.and_then(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
    assert!(restarts.is_some(), "{page}");
    fleet.stop(PATIENCE).unwrap();
    for of_site in events.values() {
        assert!(of_site.is_sorted_by_key(|event| event.at), "the clock of a site ran backwards");
        within_capacity(of_site);
    }
    let mut events: Vec<Event> = events.into_values().flatten().collect();
    events.sort_by_key(|event| event.at);
    (jobs, events)
}

/// Waits until a node executes something, or nothing is left to execute.
fn until_busy(fleet: &mut Fleet, node: usize, jobs: u64) {
    let deadline = Instant::now() + PATIENCE;
    while fleet.statuses().unwrap()[node].outstanding.running == 0 && !fleet.is_finished(jobs).unwrap() {
        assert!(Instant::now() < deadline, "{:#?}", fleet.statuses().unwrap());
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn within_capacity(events: &[Event]) {
    let mut busy = 0;
    for event in events {
        match event.kind {
            EventKind::Started { processors, .. } => busy += processors,
            EventKind::Completed { processors, .. } | EventKind::Interrupted { processors, .. } => {
                busy -= processors;
            }
            _ => {}
        }
        assert!(busy <= PROCESSORS[event.site.index()], "site {} is over capacity", event.site);
    }
}

/// A generator for tests: the constants are those of Knuth's MMIX.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// Jobs of 5 to 60 s on 1 to 8 processors, a round's worth every 60 s of trace time.
fn jobs(numbers: std::ops::Range<u64>) -> Vec<TimedJob> {
    let job = |number: u64| {
        let spec = JobSpec {
            id: JobId(number + 1),
            submit: Time::from_secs((number * 60 / JOBS_PER_ROUND) as i64),
            processors: 1 + (number * 5 % 8) as u32,
            requested: Span::from_secs(100),
            labels: Labels::UNKNOWN,
            origin: SiteId(1 + (number % 3) as u32),
            payload: 0,
        };
        TimedJob { spec, run_time: Span::from_secs(5 + (number * 37 % 56) as i64) }
    };
    numbers.map(job).collect()
}

fn config(folder: &Path, site: u32) -> NodeConfig {
    let entry =
        |(index, processors): (usize, &u32)| SiteEntry::new(format!("site{}", index + 1), *processors);
    let mut config = NodeConfig::new(SiteId(site), PROCESSORS.iter().enumerate().map(entry).collect());
    config.options.retry = Some(Span::from_secs(50));
    config.data_dir = Some(folder.join(format!("data{site}")));
    config
}

fn order(folder: &Path) -> SpawnOrder {
    SpawnOrder { program: PROGRAM.into(), arguments: Vec::new(), folder: folder.to_path_buf() }
}
