//! Lives worked out by hand: every interval of a wait with its cause.

use super::*;
use crate::fixtures::{completed, event, started, timed_job};
use crate::waits;
use scheduler::event::{BeginCause, DeclineReason, EndCause, GrantCause, MessageKind};
use scheduler::{Event, EventKind, Grid, StrategySpec, Threshold, TimedJob};

const M1: SiteId = SiteId(1);
const M2: SiteId = SiteId(2);

fn submitted(at: i64, job: u64, processors: u32) -> Event {
    let requested = Span::from_secs(10);
    event(at, 1, EventKind::Submitted { job: JobId(job), processors, requested, origin: M1 })
}

fn granted(at: i64, job: u64, transfer: u64) -> Event {
    let cause = GrantCause::Request;
    event(at, 1, EventKind::Granted { job: JobId(job), to: M2, transfer, hops: 1, cause, request: 1 })
}

fn accepted(at: i64, job: u64, transfer: u64) -> Event {
    event(at, 2, EventKind::Accepted { job: JobId(job), from: M1, transfer, firm: false })
}

fn requested(at: i64, seq: u64, offer: u32) -> Event {
    event(at, 2, EventKind::Requested { victim: M1, seq, offer, view_age: None })
}

/// All jobs that these events name.
fn workload(events: &[Event]) -> Vec<TimedJob> {
    let mut jobs = std::collections::BTreeMap::new();
    for event in events {
        match event.kind {
            EventKind::Submitted { job, processors, .. } => {
                jobs.insert(job, timed_job(job.0, event.at.as_micros() / 1_000_000, processors, 10));
            }
            // It was there before.
            EventKind::Started { job, processors, .. } => {
                jobs.entry(job).or_insert_with(|| timed_job(job.0, 0, processors, 10));
            }
            _ => {}
        }
    }
    jobs.into_values().collect()
}

fn told(grid: &Grid, strategy: &str, job: u64, events: &[Event]) -> Option<Life> {
    let strategy = strategy.parse::<StrategySpec>().unwrap().strategy;
    let mut builder = LifeBuilder::new(grid, Threshold::HALF, &strategy, &workload(events), JobId(job));
    events.iter().for_each(|event| builder.observe(event));
    builder.finish()
}

/// The life of a job on sites of 4 and 8 processors.
fn life(job: u64, strategy: &str, events: &[Event]) -> Option<Life> {
    told(&Grid::of_sizes(&[4, 8]).unwrap(), strategy, job, events)
}

fn waits(life: &Life) -> Vec<(i64, i64, Cause)> {
    let seconds = |time: Time| time.as_micros() / 1_000_000;
    life.waits.iter().map(|wait| (seconds(wait.from), seconds(wait.to), wait.cause)).collect()
}

fn cause(cause: waits::Cause, site: SiteId, room: Option<SiteId>) -> Cause {
    Cause { reason: Reason::Of(cause), site, room, note: None }
}

const FULL: Cause = Cause { reason: Reason::Of(waits::Cause::Full), site: M1, room: None, note: None };
const QUEUE: Cause = Cause { reason: Reason::Of(waits::Cause::Queue), site: M1, room: None, note: None };
const AWAY: Cause = Cause { reason: Reason::Away, site: M1, room: None, note: None };

/// From site 1 to site 2.
fn in_transit(note: Option<Note>) -> Cause {
    Cause { note, ..cause(waits::Cause::InTransit, M1, Some(M2)) }
}

/// Job 2 waits behind job 1, is refused to a small offer, is asked for, is under way, and starts.
fn stolen() -> Vec<Event> {
    let refused = EventKind::Refused { thief: M2, seq: 1, reason: RefusalReason::TooWide };
    vec![
        submitted(0, 1, 4),
        started(0, 1, 1, 4),
        started(0, 2, 9, 8),
        submitted(1, 2, 3),
        requested(2, 1, 1),
        event(3, 1, refused),
        event(4, 2, EventKind::Answered { victim: M1, seq: 1, jobs: 0 }),
        event(5, 2, EventKind::Completed { job: JobId(9), processors: 8 }),
        requested(7, 2, 8),
        granted(9, 2, 1),
        event(11, 2, EventKind::Answered { victim: M1, seq: 2, jobs: 1 }),
        accepted(11, 2, 1),
        event(11, 2, EventKind::Started { job: JobId(2), processors: 3, hops: 1 }),
        completed(20, 2, 2),
    ]
}

#[test]
fn a_wait_is_cut_where_its_cause_changes() {
    let life = life(2, "common-pool", &stolen()).unwrap();
    assert_eq!(
        waits(&life),
        [
            (1, 5, FULL),
            (5, 7, cause(waits::Cause::Blind, M1, Some(M2))),
            (7, 9, cause(waits::Cause::Asked, M1, Some(M2))),
            (9, 11, in_transit(None)),
        ]
    );
    assert_eq!((life.start, life.site, life.hops), (Some(Time::from_secs(11)), Some(M2), 1));
    let refusal = &life.refusals[0];
    assert_eq!(
        (refusal.thief, refusal.reason, refusal.count, refusal.too_small),
        (M2, RefusalReason::TooWide, 1, 1)
    );
    assert_eq!(life.waits[1].lines, (8, 9), "the end of job 9 and the request");
    let told: Vec<&str> = life.steps.iter().map(|step| step.text.as_str()).collect();
    assert_eq!(told[0], "it is submitted at site1 and reaches site1");
    assert_eq!(told[1], "there it is of class A; 0 of 4 processors are idle; nothing waits ahead of it");
    assert!(told.contains(&"site1 gives it to site2 (request)"), "{told:?}");
}

#[test]
fn crashes_and_take_overs_are_told_and_the_job_waits_again() {
    let recovered =
        |at, site| event(at, site, EventKind::Recovered { incarnation: 1, waiting: 0, running: 1, out: 0 });
    let (job, processors) = (JobId(1), 3);
    let mut events = vec![
        submitted(0, 1, 3),
        started(0, 1, 1, 3),
        recovered(20, 1),
        event(20, 1, EventKind::Interrupted { job, processors, killed: false }),
        event(25, 1, EventKind::Orphaned { job, processors }),
        granted(30, 1, 1),
        accepted(31, 1, 1),
        event(31, 2, EventKind::Started { job, processors, hops: 1 }),
        event(100, 1, EventKind::TookOver { job, holder: M2, epoch: 1 }),
        started(103, 1, 1, 3),
    ];
    let first = life(1, "common-pool", &events).unwrap();
    assert_eq!(
        waits(&first),
        [
            (20, 25, QUEUE),
            (25, 30, Cause { reason: Reason::Orphaned, ..AWAY }),
            (30, 31, in_transit(None)),
            (100, 103, QUEUE),
        ]
    );
    assert_eq!((first.interrupted, first.taken_over), (1, 1));
    assert!(!first.shares_nodes, "it had its processors alone");
    let mut on_nodes = events.clone();
    on_nodes.insert(2, event(0, 1, EventKind::Placed { job, node: 0 }));
    assert!(life(1, "common-pool", &on_nodes).unwrap().shares_nodes);
    assert_eq!((first.start, first.site), (Some(Time::from_secs(103)), Some(M1)));

    // The old copy is back: what becomes of it changes nothing.
    events.extend([
        recovered(110, 2),
        event(110, 2, EventKind::Interrupted { job, processors, killed: false }),
        event(111, 2, EventKind::Superseded { job, epoch: 1, started: false }),
        completed(113, 1, 1),
    ]);
    let second = life(1, "common-pool", &events).unwrap();
    assert_eq!(waits(&second), waits(&first));
    assert_eq!((second.start, second.end), (first.start, Some(Time::from_secs(113))));
    let told: Vec<&str> = second.steps.iter().map(|step| step.text.as_str()).collect();
    for step in [
        "site1 is back after a crash, which interrupted it; it waits there again",
        "no site that is there is wide enough; it waits at site1",
        "site1 takes it over from site2, which is gone and may have run it",
        "site2 learns that it was taken over, and drops its copy",
    ] {
        assert!(told.contains(&step), "{step}: {told:?}");
    }
}

#[test]
fn the_wait_has_no_gaps() {
    let life = life(2, "common-pool", &stolen()).unwrap();
    assert_eq!(life.waits[0].from, life.submit);
    assert!(life.waits.windows(2).all(|pair| pair[0].to == pair[1].from));
    assert_eq!(life.waits.last().map(|wait| wait.to), life.start);
    let total: Span = life.waits.iter().map(Wait::length).sum();
    assert_eq!(total, Span::from_secs(10));
}

/// The mutant: without the request in the log the thief is told not to have asked.
#[test]
fn a_cause_hangs_on_its_event() {
    let mut events = stolen();
    events.remove(8);
    let life = life(2, "common-pool", &events).unwrap();
    assert_eq!(waits(&life)[1], (5, 9, cause(waits::Cause::Blind, M1, Some(M2))));
}

#[test]
fn idle_processors_at_home_mean_the_order_of_the_queue() {
    let events = [
        submitted(0, 1, 2),
        started(0, 1, 1, 2),
        submitted(1, 2, 4),
        submitted(1, 3, 1),
        completed(6, 1, 1),
        started(6, 1, 2, 4),
        event(7, 1, EventKind::Completed { job: JobId(2), processors: 4 }),
        started(7, 1, 3, 1),
    ];
    let life = life(3, "local", &events).unwrap();
    // Site 2 has room, and no job goes there under `local`.
    assert_eq!(waits(&life), [(1, 6, QUEUE), (6, 7, cause(waits::Cause::Ineligible, M1, Some(M2)))]);
    assert!(life.steps[1].text.ends_with("one job waits ahead of it (1 A, 0 B, 0 H) for 4 processors"));
}

#[test]
fn lost_and_declined_grants_are_told() {
    let message = MessageKind::Grant;
    let (job, by) = (JobId(2), M2);
    let reason = DeclineReason::DoesNotFit;
    let events = [
        submitted(0, 1, 4),
        started(0, 1, 1, 4),
        submitted(1, 2, 3),
        granted(2, 2, 1),
        event(2, 1, EventKind::Sent { to: M2, message, retry: false }),
        event(2, 1, EventKind::Lost { to: M2, message }),
        event(6, 1, EventKind::Sent { to: M2, message, retry: true }),
        event(7, 2, EventKind::Declined { job, from: M1, transfer: 1, reason }),
        event(8, 1, EventKind::Returned { job, by, transfer: 1, bounces: 1 }),
        completed(9, 1, 1),
        started(9, 1, 2, 3),
    ];
    let life = life(2, "common-pool", &events).unwrap();
    let blind = cause(waits::Cause::Blind, M1, Some(M2));
    assert_eq!(waits(&life), [(1, 2, blind), (2, 8, in_transit(Some(Note::Repeated))), (8, 9, blind)]);
    let told: String = life.steps.iter().map(|step| step.text.clone() + "\n").collect();
    for expected in [
        "a grant from site1 to site2 is lost",
        "a grant from site1 to site2 is sent again",
        "site2 declines it: its processors are no longer idle",
        "site1 has it back from site2, declined 1 times so far",
    ] {
        assert!(told.contains(expected), "{told}");
    }
    assert!(life.messages_known);
}

#[test]
fn an_offered_job_waits_for_a_claim() {
    let job = JobId(2);
    let events = [
        submitted(0, 1, 4),
        started(0, 1, 1, 4),
        submitted(1, 2, 3),
        event(1, 1, EventKind::Offered { job, version: 1 }),
        event(4, 2, EventKind::Claimed { job, owner: M1, claim: 1, processors: 3 }),
        granted(5, 2, 1),
        accepted(6, 2, 1),
        event(9, 2, EventKind::Started { job, processors: 3, hops: 1 }),
    ];
    let life = life(2, "pool:easy", &events).unwrap();
    let claimed = Cause { note: Some(Note::Claimed), ..cause(waits::Cause::Asked, M1, Some(M2)) };
    assert_eq!(
        waits(&life),
        [
            (1, 4, cause(waits::Cause::Offered, M1, Some(M2))),
            (4, 5, claimed),
            (5, 6, in_transit(None)),
            (6, 9, Cause { site: M2, ..QUEUE }),
        ]
    );
}

#[test]
fn a_job_that_is_not_in_the_log_has_no_life() {
    assert_eq!(life(77, "common-pool", &stolen()), None);
}

#[test]
fn a_job_waits_for_a_site_that_is_down_or_stands_still_and_not_for_its_processors() {
    let (job, processors) = (JobId(1), 3);
    let ended = |at, site, how| event(at, site, EventKind::Ended { how });
    let begun = |at, site, how| event(at, site, EventKind::Begun { how });
    let events = vec![
        ended(0, 2, EndCause::Absent),
        submitted(0, 1, 3),
        started(2, 1, 1, 3),
        ended(20, 1, EndCause::Crash),
        begun(30, 1, BeginCause::Restart),
        event(30, 1, EventKind::Recovered { incarnation: 1, waiting: 0, running: 1, out: 0 }),
        event(30, 1, EventKind::Interrupted { job, processors, killed: false }),
        ended(31, 1, EndCause::Pause),
        begun(35, 2, BeginCause::Join),
        begun(40, 1, BeginCause::Resume),
        started(41, 1, 1, 3),
        completed(50, 1, 1),
    ];
    let life = life(1, "common-pool", &events).unwrap();
    assert_eq!(
        waits(&life),
        [(0, 2, QUEUE), (20, 30, AWAY), (30, 31, QUEUE), (31, 40, AWAY), (40, 41, QUEUE),]
    );
    assert_eq!((life.interrupted, life.end), (1, Some(Time::from_secs(50))));
    let told: Vec<&str> = life.steps.iter().map(|step| step.text.as_str()).collect();
    for step in
        ["site1 crashes, which interrupts it", "site1 restarts", "site1 stands still", "site1 goes on"]
    {
        assert!(told.contains(&step), "{step}: {told:?}");
    }
    assert!(told.iter().all(|step| !step.contains("joins")), "{told:?}");
}

#[test]
fn a_broker_says_where_a_job_goes_and_by_which_view() {
    let sites = [("small".to_string(), 2), ("large".to_string(), 4)];
    let grid = Grid::with_brokers(sites, [("broker".to_string(), None)]).unwrap();
    let (large, broker, job) = (M2, SiteId(3), JobId(2));
    let at_broker = |event: Event| Event { site: broker, ..event };
    let events = [
        started(0, 2, 1, 4),
        at_broker(submitted(5, 2, 3)),
        at_broker(event(6, 1, EventKind::Allocated { job, to: large, as_of: Some(Time::from_secs(2)) })),
        at_broker(granted(6, 2, 1)),
        accepted(8, 2, 1),
        event(10, 2, EventKind::Completed { job: JobId(1), processors: 4 }),
        started(10, 2, 2, 3),
        event(15, 2, EventKind::Completed { job, processors: 3 }),
    ];
    let life = told(&grid, "broker:mlb", 2, &events).unwrap();

    assert_eq!(
        waits(&life),
        [
            (5, 6, Cause { note: Some(Note::Undecided), site: broker, ..FULL }),
            (6, 8, cause(waits::Cause::InTransit, broker, Some(large))),
            (8, 10, Cause { site: large, ..FULL }),
        ]
    );
    let told: Vec<&str> = life.steps.iter().map(|step| step.text.as_str()).collect();
    assert_eq!(told[1], "no site has it yet; nothing waits ahead of it");
    assert_eq!(told[2], "broker chooses large, as it knew it at 2 s, 4 s ago");
    assert!(told.contains(&"there 0 of 4 processors are idle; nothing waits ahead of it"), "{told:?}");
}

#[test]
fn causes_add_up_to_the_wait_the_largest_first_and_a_grant_decided() {
    let life = life(2, "common-pool", &stolen()).unwrap();
    let grid = Grid::of_sizes(&[4, 8]).unwrap();

    let totals = life.totals(&grid);

    let waited = life.start.unwrap().since(life.submit);
    assert_eq!(totals.iter().map(|total| total.length).sum::<Span>(), waited);
    assert!(totals.is_sorted_by_key(|total| std::cmp::Reverse(total.length)), "{totals:?}");
    assert_eq!(totals.iter().map(|total| total.parts).sum::<usize>(), life.waits.len());
    let decided = life.decided.unwrap();
    assert_eq!((decided.at, decided.line), (Time::from_secs(9), 10));
    assert!(decided.text.contains("gives it to"), "{}", decided.text);
}

#[test]
fn who_made_room_decided_the_start_of_a_job_that_stayed() {
    let events = [
        submitted(0, 1, 4),
        started(0, 1, 1, 4),
        submitted(1, 2, 3),
        completed(6, 1, 1),
        started(6, 1, 2, 3),
        completed(9, 1, 2),
    ];

    let life = life(2, "local", &events).unwrap();

    let decided = life.decided.unwrap();
    assert_eq!((decided.at, decided.line), (Time::from_secs(6), 4));
    assert_eq!(decided.text, "job 1 ends at site1 and makes room");
}

/// On 4 processors job 1 holds 3 from 0 s, for 10 s by its user. Job 2, which needs all, should start at 10 s; job 1 ends at 6 s. Job 3 comes
/// at the instant of a start, which its plan does not know.
#[test]
fn a_planned_start_stands_beside_what_happened() {
    let grid = Grid::of_sizes(&[4]).unwrap();
    let events = [
        submitted(0, 1, 3),
        started(0, 1, 1, 3),
        submitted(2, 2, 4),
        completed(6, 1, 1),
        submitted(6, 3, 1),
        started(6, 1, 2, 4),
        completed(16, 1, 2),
    ];
    let strategy = "local".parse::<StrategySpec>().unwrap().strategy;
    let planned = |job: u64, scheduler| {
        let jobs = workload(&events);
        let builder = LifeBuilder::new(&grid, Threshold::HALF, &strategy, &jobs, JobId(job));
        let mut builder = builder.with_plans(scheduler, &jobs);
        events.iter().for_each(|event| builder.observe(event));
        builder.finish().unwrap()
    };
    let second = planned(2, scheduler::LocalScheduler::Easy);
    let expected = Planned { at: Time::from_secs(2), site: M1, start: Time::from_secs(10) };
    assert_eq!(
        (second.planned.clone(), second.later_than_planned()),
        (Some(expected), Some(Span::from_secs(-4)))
    );
    let third = planned(3, scheduler::LocalScheduler::Easy);
    assert_eq!(
        third.planned.map(|planned| planned.start),
        Some(Time::from_secs(16)),
        "behind job 2, which has not started yet"
    );
    assert_eq!(planned(2, scheduler::LocalScheduler::External).planned, None);
    assert_eq!(life(2, "local", &events).unwrap().planned, None, "nobody asked");
}

#[test]
fn a_job_over_several_sites_has_each_part_once() {
    let grid = Grid::with_brokers(
        [("small".to_string(), 4), ("large".to_string(), 8)],
        [("broker".to_string(), None)],
    );
    let (grid, broker) = (grid.unwrap().with_spread(12), SiteId(3));
    let (job, requested) = (JobId(1), Span::from_secs(10));
    let part = EventKind::PartStarted { job, processors: 3, of: M2 };
    let events = [
        event(0, broker.0, EventKind::Submitted { job, processors: 10, requested, origin: M1 }),
        event(5, 2, EventKind::Started { job, processors: 7, hops: 1 }),
        event(5, 1, part),
        completed(15, 2, 1),
        event(15, 1, EventKind::PartCompleted { job, processors: 3, of: M2 }),
    ];
    let strategy = "ideal/broker:mcisne,coallocate=dp".parse::<StrategySpec>().unwrap().strategy;
    let mut builder =
        LifeBuilder::new(&grid, Threshold::HALF, &strategy, &workload(&events), job).of_reference();
    events.iter().for_each(|event| builder.observe(event));
    let life = builder.finish().unwrap();
    assert_eq!(life.parts, [Part { site: M1, processors: 3 }]);
    let parts =
        life.steps.iter().filter(|step| step.text.contains("part of it starts at small, with 3 processors"));
    assert_eq!(parts.count(), 1, "{:?}", life.steps);
    // The broker holds it, as no site alone has the room: it is on no way.
    let totals = life.totals(&grid);
    assert_eq!(totals.len(), 1);
    let text = "broker has not started it in parts yet, though enough are idle at all sites together: it asks them, or may not use these";
    assert_eq!(totals[0].text, text);
}

/// Its first part is stopped as the second was lost; then its first ends before it hears that the second was.
#[test]
fn a_job_in_parts_that_was_lost_waits_at_its_broker_again() {
    let sites = [("small".to_string(), 4), ("large".to_string(), 8)];
    let grid = Grid::with_brokers(sites, [("broker".to_string(), None)]).unwrap().with_spread(12);
    let (job, requested, of) = (JobId(1), Span::from_secs(10), M2);
    let started = |at| event(at, 2, EventKind::Started { job, processors: 7, hops: 1 });
    let part = |at| event(at, 1, EventKind::PartStarted { job, processors: 3, of });
    let events = [
        event(0, 3, EventKind::Submitted { job, processors: 10, requested, origin: M1 }),
        started(5),
        part(5),
        event(8, 2, EventKind::Interrupted { job, processors: 7, killed: false }),
        started(15),
        part(15),
        completed(25, 2, 1),
        event(26, 3, EventKind::Revoked { job, of, killed: false }),
    ];
    let strategy = "broker:mcisne,coallocate=dp".parse::<StrategySpec>().unwrap().strategy;
    let mut builder = LifeBuilder::new(&grid, Threshold::HALF, &strategy, &workload(&events), job);
    events.iter().for_each(|event| builder.observe(event));
    let life = builder.finish().unwrap();
    assert_eq!((life.ends, life.interrupted, life.end, life.parts.len()), (0, 2, None, 0));
    let again = life.steps.iter().filter(|step| step.text.contains("it waits at broker again"));
    assert_eq!(again.map(|step| step.at).collect::<Vec<_>>(), [Time::from_secs(8), Time::from_secs(26)]);
}

/// Job 1 of 10 waits at a broker, which asks both sites: one refuses. From 4 s on job 2 of 10 waits there, too. The messages from 5 s on are about
/// that, as is seen when it starts, and those from 20 s on about job 1. What came to nothing at 18 s may have been about either; job 3 of 2 never
/// starts in parts.
#[test]
fn how_a_job_starts_in_parts_is_told_by_the_messages_of_its_broker() {
    let grid = Grid::with_brokers(
        [("small".to_string(), 4), ("large".to_string(), 8)],
        [("broker".to_string(), None)],
    );
    let (grid, broker) = (grid.unwrap().with_spread(12), SiteId(3));
    let submitted = |at, job, processors| {
        let (job, requested) = (JobId(job), Span::from_secs(10));
        event(at, broker.0, EventKind::Submitted { job, processors, requested, origin: M1 })
    };
    let sent = |at, to, message| event(at, broker.0, EventKind::Sent { to, message, retry: false });
    let got = |at, from, message| event(at, broker.0, EventKind::Received { from, message });
    let (job, of) = (JobId(1), M2);
    let events = [
        submitted(0, 1, 10),
        submitted(0, 3, 2),
        sent(1, M1, MessageKind::Prepare),
        sent(1, M2, MessageKind::Prepare),
        event(2, M1.0, EventKind::Sent { to: broker, message: MessageKind::Ready, retry: false }),
        got(3, M1, MessageKind::Ready),
        got(3, M2, MessageKind::Refuse),
        sent(3, M1, MessageKind::Abort),
        submitted(4, 2, 10),
        sent(5, M1, MessageKind::Prepare),
        sent(5, M2, MessageKind::Prepare),
        got(6, M1, MessageKind::Ready),
        got(6, M2, MessageKind::Ready),
        sent(6, M1, MessageKind::Commit),
        sent(6, M2, MessageKind::Commit),
        event(7, 2, EventKind::Started { job: JobId(2), processors: 8, hops: 1 }),
        event(7, 1, EventKind::PartStarted { job: JobId(2), processors: 2, of }),
        submitted(8, 4, 10),
        event(17, 1, EventKind::PartCompleted { job: JobId(2), processors: 2, of }),
        completed(17, 2, 2),
        got(18, M2, MessageKind::Refuse),
        sent(20, M2, MessageKind::Prepare),
        got(21, M2, MessageKind::Ready),
        event(21, broker.0, EventKind::Lost { to: M2, message: MessageKind::Commit }),
        sent(22, M2, MessageKind::Commit),
        event(23, 2, EventKind::Started { job, processors: 7, hops: 1 }),
        event(23, 1, EventKind::PartStarted { job, processors: 3, of }),
        sent(24, M1, MessageKind::Prepare),
    ];
    let strategy = "broker:mcisne,coallocate=dp".parse::<StrategySpec>().unwrap().strategy;
    let mut builder = LifeBuilder::new(&grid, Threshold::HALF, &strategy, &workload(&events), job);
    events.iter().for_each(|event| builder.observe(event));
    let life = builder.finish().unwrap();
    let steps: Vec<(i64, &str)> =
        life.steps[2..].iter().map(|step| (step.at.as_micros() / 1_000_000, step.text.as_str())).collect();
    assert_eq!(
        steps,
        [
            (1, "broker asks small to keep processors for a part"),
            (1, "broker asks large to keep processors for a part"),
            (3, "small keeps processors for a part"),
            (3, "large refuses a part"),
            (3, "broker tells small that it does not start so"),
            (18, "large refuses a part (or of another job that waits there)"),
            (20, "broker asks large to keep processors for a part"),
            (21, "large keeps processors for a part"),
            (21, "broker tells large to start its part, which is lost"),
            (22, "broker tells large to start its part"),
            (23, "it starts at large"),
            (23, "a part of it starts at small, with 3 processors"),
        ]
    );
}
