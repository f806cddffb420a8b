use scheduler::event::{EndCause, EventKind, GrantCause, ReleaseReason};
use scheduler::{Event, Grid, JobId, SiteId, Span, StrategySpec, TimedJob};

use super::*;
use crate::fixtures::{completed, event, placed, shared_grid, started, timed_job};

fn under(strategy: &str, sizes: &[u32], jobs: &[TimedJob], events: &[Event]) -> Option<WaitCauses> {
    on(&Grid::of_sizes(sizes).unwrap(), strategy, jobs, events)
}

fn on(grid: &Grid, strategy: &str, jobs: &[TimedJob], events: &[Event]) -> Option<WaitCauses> {
    let spec: StrategySpec = strategy.parse().unwrap();
    let mut waits = Waits::new(grid, &spec.strategy, jobs);
    events.iter().for_each(|event| waits.observe(event));
    waits.finish()
}

fn submitted(site: u32, job: &TimedJob) -> Event {
    let (id, processors) = (job.spec.id, job.spec.processors);
    let kind = EventKind::Submitted { job: id, processors, requested: job.spec.requested, origin: SiteId(1) };
    Event { at: job.spec.submit, site: SiteId(site), kind }
}

/// Sites 1 and 2 of 4, of which site 1 has two jobs as wide as itself. Job 2 starts at site 2 or 1 at `start`;
/// `between` is what happens.
fn two_jobs(strategy: &str, (site, start): (u32, i64), between: &[Event]) -> WaitCauses {
    let jobs = [timed_job(1, 0, 4, 10), timed_job(2, 0, 4, 10)];
    let mut events = vec![submitted(1, &jobs[0]), submitted(1, &jobs[1]), started(0, 1, 1, 4)];
    events.extend_from_slice(between);
    events.extend([completed(10, 1, 1), started(start, site, 2, 4), completed(start + 10, site, 2)]);
    events.sort_by_key(|event| event.at);
    let found = under(strategy, &[4, 4], &jobs, &events).unwrap();
    assert!(found.holds);
    assert_eq!((found.jobs, found.total_s), (2, start as f64));
    found
}

/// The causes that are not zero, with their seconds: chosen, least and greatest.
fn told(found: &WaitCauses) -> Vec<(&'static str, f64, f64, f64)> {
    let some = |cause: &&CauseOfWaits| cause.greatest_s != 0.0;
    let tell = |cause: &CauseOfWaits| (cause.cause.name(), cause.wait_s, cause.least_s, cause.greatest_s);
    found.causes.iter().filter(some).map(tell).collect()
}

fn requested(at: i64, offer: u32) -> Event {
    event(at, 2, EventKind::Requested { victim: SiteId(1), seq: 1, offer, view_age: None })
}

fn answered(at: i64) -> Event {
    event(at, 2, EventKind::Answered { victim: SiteId(1), seq: 1, jobs: 1 })
}

fn granted(at: i64, from: u32, job: u64, to: u32) -> Event {
    let (job, to) = (JobId(job), SiteId(to));
    let cause = GrantCause::Request;
    event(at, from, EventKind::Granted { job, to, transfer: 1, hops: 1, cause, request: 1 })
}

fn accepted(at: i64, job: u64) -> Event {
    event(at, 2, EventKind::Accepted { job: JobId(job), from: SiteId(1), transfer: 1, firm: false })
}

#[test]
fn a_steal_is_blind_then_asked_then_travels() {
    let between = [requested(2, 4), granted(5, 1, 2, 2), answered(9), accepted(9, 2)];
    let found = two_jobs("st:50", (2, 9), &between);
    assert_eq!(
        told(&found),
        [("in_transit", 4.0, 4.0, 4.0), ("asked", 3.0, 3.0, 3.0), ("blind", 2.0, 2.0, 2.0)]
    );
    assert_eq!(found.exact().chosen.iter().sum::<i128>(), 9_000_000);
    assert_eq!(found.causes[0].processor_wait_s, 16.0);
    // Both jobs are of width 4.
    let widths = [(3, 4, 2)];
    assert_eq!(found.widths.iter().map(|w| (w.narrowest, w.widest, w.jobs)).collect::<Vec<_>>(), widths);
    assert_eq!(found.widths[0].causes, found.causes);
}

#[test]
fn an_offer_that_is_too_small_leaves_the_job_blind() {
    let found = two_jobs("st:50", (2, 9), &[requested(2, 3)]);
    assert_eq!(told(&found), [("blind", 9.0, 9.0, 9.0)]);
}

#[test]
fn a_request_that_is_refused_has_asked() {
    let found = two_jobs("st:50", (2, 9), &[requested(2, 4), answered(6)]);
    assert_eq!(told(&found), [("asked", 4.0, 4.0, 4.0), ("blind", 5.0, 5.0, 5.0)]);
}

#[test]
fn without_exchange_room_elsewhere_is_ineligible() {
    assert_eq!(told(&two_jobs("local", (1, 10), &[])), [("ineligible", 10.0, 10.0, 10.0)]);
}

#[test]
fn a_job_that_no_site_has_room_for_waits_in_a_full_grid() {
    let jobs = [timed_job(1, 0, 4, 10), timed_job(2, 0, 4, 10)];
    let mut events = vec![submitted(1, &jobs[0]), submitted(1, &jobs[1]), started(0, 1, 1, 4)];
    events.extend([completed(10, 1, 1), started(12, 1, 2, 4), completed(22, 1, 2)]);
    let found = under("st:50", &[4], &jobs, &events).unwrap();
    // From 10 s on its own site has room, and keeps it waiting.
    assert_eq!(told(&found), [("queue", 2.0, 2.0, 2.0), ("full", 10.0, 10.0, 10.0)]);
}

#[test]
fn two_things_that_are_true_make_a_range() {
    // Site 1 has room for job 2 from 10 s on, site 2 always.
    let found = two_jobs("st:50", (1, 15), &[requested(2, 4)]);
    assert_eq!(told(&found), [("queue", 5.0, 0.0, 5.0), ("asked", 8.0, 8.0, 13.0), ("blind", 2.0, 2.0, 2.0)]);
}

#[test]
fn processors_reserved_for_a_job_on_its_way_are_no_room_for_another() {
    // Job 2 travels to site 2 and takes all of it; job 3 has no room meanwhile, nor later.
    let jobs = [timed_job(1, 0, 4, 10), timed_job(2, 0, 4, 10), timed_job(3, 0, 2, 1)];
    let mut events: Vec<Event> = jobs.iter().map(|job| submitted(1, job)).collect();
    events.extend([started(0, 1, 1, 4), granted(2, 1, 2, 2), accepted(5, 2), started(5, 2, 2, 4)]);
    events.extend([completed(10, 1, 1), started(10, 1, 3, 2), completed(11, 1, 3), completed(15, 2, 2)]);
    let found = under("steal:random", &[4, 4], &jobs, &events).unwrap();
    // Both are blind for 2 s, then job 2 travels for 3 s and job 3 waits for 8 s.
    assert_eq!(
        told(&found),
        [("in_transit", 3.0, 3.0, 3.0), ("blind", 4.0, 4.0, 4.0), ("full", 8.0, 8.0, 8.0)]
    );
}

#[test]
fn a_job_that_is_routed_to_a_full_site_may_blame_either() {
    let jobs = [timed_job(1, 0, 4, 10), timed_job(2, 0, 4, 10)];
    let mut events = vec![submitted(2, &jobs[0]), submitted(1, &jobs[1]), started(0, 2, 1, 4)];
    events.extend([granted(0, 1, 2, 2), accepted(3, 2), completed(10, 2, 1), started(10, 2, 2, 4)]);
    events.push(completed(20, 2, 2));
    let found = under("local", &[2, 4], &jobs, &events).unwrap();
    assert_eq!(told(&found), [("in_transit", 3.0, 0.0, 3.0), ("full", 7.0, 7.0, 10.0)]);
}

#[test]
fn a_job_of_another_class_is_ineligible_from_room() {
    // Job 2 is small for site 1 of 8 and behind job 3, which is big there: the list of site 2 of 8 is that of the big one.
    let jobs = [timed_job(1, 0, 8, 10), timed_job(2, 0, 1, 1), timed_job(3, 0, 7, 1), timed_job(4, 0, 2, 10)];
    let mut events: Vec<Event> = jobs.iter().map(|job| submitted(1, job)).collect();
    events.extend([started(0, 1, 1, 8), started(0, 2, 4, 2), completed(10, 1, 1), completed(10, 2, 4)]);
    events.extend([started(10, 1, 3, 7), started(10, 1, 2, 1), completed(11, 1, 3), completed(11, 1, 2)]);
    let found = under("st:50", &[8, 8], &jobs, &events).unwrap();
    assert_eq!(told(&found), [("ineligible", 10.0, 10.0, 10.0), ("full", 10.0, 10.0, 10.0)]);
    // Anybody may take it from a common pool.
    let found = under("common-pool", &[8, 8], &jobs, &events).unwrap();
    assert_eq!(told(&found), [("blind", 10.0, 10.0, 10.0), ("full", 10.0, 10.0, 10.0)]);
}

#[test]
fn a_job_in_the_global_queue_is_offered_and_then_claimed() {
    let (job, claim, processors) = (JobId(2), 1, 4);
    let held = Span::from_secs(4);
    let between = [
        event(1, 1, EventKind::Offered { job, version: 1 }),
        event(3, 2, EventKind::Claimed { job, owner: SiteId(1), claim, processors }),
        event(5, 1, EventKind::Withdrawn { job, version: 1 }),
        granted(5, 1, 2, 2),
        accepted(7, 2),
        event(7, 2, EventKind::Released { job, claim, processors, held, reason: ReleaseReason::Granted }),
    ];
    let found = two_jobs("pool:easy,via=gossip", (2, 7), &between);
    assert_eq!(
        told(&found),
        [
            ("in_transit", 2.0, 2.0, 2.0),
            ("asked", 2.0, 2.0, 2.0),
            ("offered", 2.0, 2.0, 2.0),
            ("ineligible", 1.0, 1.0, 1.0)
        ]
    );
}

#[test]
fn a_claim_that_is_denied_frees_its_processors() {
    let (job, claim, processors) = (JobId(2), 1, 4);
    let (held, reason) = (Span::from_secs(3), ReleaseReason::Denied);
    let between = [
        event(0, 1, EventKind::Offered { job, version: 1 }),
        event(1, 2, EventKind::Claimed { job, owner: SiteId(1), claim, processors }),
        event(4, 2, EventKind::Released { job, claim, processors, held, reason }),
    ];
    let found = two_jobs("pool:easy,via=gossip", (2, 6), &between);
    assert_eq!(told(&found), [("asked", 3.0, 3.0, 3.0), ("offered", 3.0, 3.0, 3.0)]);
}

#[test]
fn runs_with_crashes_or_without_an_end_are_not_told() {
    let jobs = [timed_job(1, 0, 1, 10), timed_job(2, 0, 9, 10)];
    let mut events = vec![submitted(1, &jobs[0])];
    assert_eq!(under("st:50", &[4], &jobs, &events), None, "job 1 never started");
    events.extend([started(3, 1, 1, 1), completed(13, 1, 1)]);
    assert!(under("st:50", &[4], &jobs, &events).is_some(), "nobody can hold job 2");
    events.push(event(20, 1, EventKind::Ended { how: EndCause::Crash }));
    assert_eq!(under("st:50", &[4], &jobs, &events), None);
}

#[test]
fn a_job_is_on_its_way_until_the_log_has_it() {
    let jobs = [timed_job(1, 5, 1, 10)];
    let found = under("local", &[4], &jobs, &[started(8, 1, 1, 1), completed(18, 1, 1)]).unwrap();
    assert!(found.holds);
    assert_eq!(told(&found), [("in_transit", 3.0, 3.0, 3.0)]);
}

#[test]
fn a_step_back_in_time_has_no_length() {
    let jobs = [timed_job(1, 0, 4, 10), timed_job(2, 0, 4, 10)];
    let mut events = vec![submitted(1, &jobs[0]), submitted(1, &jobs[1]), started(0, 1, 1, 4)];
    events.extend([completed(10, 1, 1), started(8, 1, 2, 4), completed(20, 1, 2)]);
    let found = under("local", &[4], &jobs, &events).unwrap();
    assert!(found.holds);
    assert_eq!(found.total_s, 10.0);
}

#[test]
fn mutant_sums_that_do_not_add_up_are_caught() {
    let found = two_jobs("st:50", (2, 9), &[requested(2, 4)]);
    let total = 9_000_000;
    assert!(found.exact().hold(total));
    assert!(!found.exact().hold(total + 1));
    for cause in 0..CAUSES {
        let mut off = *found.exact();
        off.least[cause] = off.greatest[cause] + 1;
        assert!(!off.hold(total));
    }
}

#[test]
fn places_that_are_all_on_one_node_are_no_room_for_two_tasks() {
    // Two nodes of two places. Jobs 1 and 2 fill node 0; job 3 has two tasks.
    let jobs = [timed_job(1, 0, 1, 10), timed_job(2, 0, 1, 20), timed_job(3, 0, 2, 5)];
    let mut events: Vec<Event> = jobs.iter().map(|job| submitted(1, job)).collect();
    events.extend([started(0, 1, 1, 1), placed(0, 1, 1, 0), started(0, 1, 2, 1), placed(0, 1, 2, 0)]);
    // From 10 s on node 0 has a place, and the queue keeps job 3 waiting.
    events.extend([completed(10, 1, 1), started(12, 1, 3, 2), placed(12, 1, 3, 0), placed(12, 1, 3, 1)]);
    events.extend([completed(17, 1, 3), completed(20, 1, 2)]);
    let found = on(&shared_grid(&[(2, 100)]), "local", &jobs, &events).unwrap();
    assert!(found.holds);
    assert_eq!(told(&found), [("queue", 2.0, 2.0, 2.0), ("full", 10.0, 10.0, 10.0)]);
}

#[test]
fn nodes_without_the_memory_are_no_room() {
    // Job 1 has 60 of the 100 KB of the only node of site 1; job 2 asks for 50, which site 2 has.
    let mut jobs = [timed_job(1, 0, 1, 10), timed_job(2, 0, 1, 10)];
    (jobs[0].spec.labels.memory, jobs[1].spec.labels.memory) = (60, 50);
    let mut events: Vec<Event> = jobs.iter().map(|job| submitted(1, job)).collect();
    events.extend([started(0, 1, 1, 1), placed(0, 1, 1, 0), completed(10, 1, 1)]);
    events.extend([started(11, 1, 2, 1), placed(11, 1, 2, 0), completed(21, 1, 2)]);
    let alone = on(&shared_grid(&[(1, 100)]), "local", &jobs, &events).unwrap();
    assert_eq!(told(&alone), [("queue", 1.0, 1.0, 1.0), ("full", 10.0, 10.0, 10.0)]);
    let beside = on(&shared_grid(&[(1, 100), (1, 50)]), "local", &jobs, &events).unwrap();
    assert_eq!(told(&beside), [("queue", 1.0, 0.0, 1.0), ("ineligible", 10.0, 10.0, 11.0)]);
    let too_small = on(&shared_grid(&[(1, 100), (1, 49)]), "local", &jobs, &events).unwrap();
    assert_eq!(told(&too_small), told(&alone));
}

#[test]
fn what_is_on_its_way_has_its_nodes_before_others() {
    // Job 1 is on its way to the only node of site 1, with all of its memory; job 2 has room there but for that.
    let mut jobs = [timed_job(1, 0, 1, 10), timed_job(2, 0, 1, 10)];
    (jobs[0].spec.labels.memory, jobs[1].spec.labels.memory) = (100, 1);
    let mut events = vec![submitted(2, &jobs[0]), submitted(1, &jobs[1]), granted(0, 2, 1, 1)];
    events.extend([event(
        4,
        1,
        EventKind::Accepted { job: JobId(1), from: SiteId(2), transfer: 1, firm: false },
    )]);
    events.extend([started(4, 1, 1, 1), placed(4, 1, 1, 0), completed(14, 1, 1)]);
    events.extend([started(14, 1, 2, 1), placed(14, 1, 2, 0), completed(24, 1, 2)]);
    let found = on(&shared_grid(&[(1, 100), (1, 0)]), "local", &jobs, &events).unwrap();
    assert_eq!(told(&found), [("in_transit", 4.0, 4.0, 4.0), ("full", 14.0, 14.0, 14.0)]);
}

/// A broker before sites of 4 and 6. Job 1 has 4 of site 2, and job 2, of 8 processors, waits at the broker: until 10 s all sites together have
/// 6 idle, then they have 10, and it starts at 13 s in parts of 3 and 5. They leave no room for job 3, of 2, until they are over.
#[test]
fn a_job_wider_than_every_site_waits_for_room_and_then_to_be_started_in_parts() {
    let sites = [("a", 4, None), ("b", 6, None), ("broker", 0, None)]
        .map(|(name, size, at)| (name.to_string(), size, at));
    let grid = Grid::of_members(sites).unwrap().with_spread(10);
    let mut jobs = [timed_job(1, 0, 4, 10), timed_job(2, 0, 8, 10), timed_job(3, 14, 2, 1)];
    jobs[2].spec.submit = Time::from_secs(14);
    let part = |at, site, processors, ends| {
        let (job, of) = (JobId(2), SiteId(2));
        event(
            at,
            site,
            match ends {
                false => EventKind::PartStarted { job, processors, of },
                true => EventKind::PartCompleted { job, processors, of },
            },
        )
    };
    let events = [
        submitted(2, &jobs[0]),
        started(0, 2, 1, 4),
        submitted(3, &jobs[1]),
        completed(10, 2, 1),
        started(13, 2, 2, 5),
        part(13, 1, 3, false),
        submitted(2, &jobs[2]),
        completed(23, 2, 2),
        part(23, 1, 3, true),
        started(24, 2, 3, 2),
        completed(25, 2, 3),
    ];
    let found = on(&grid, "broker:mcisne,coallocate=dp", &jobs, &events).unwrap();
    assert!(found.holds);
    assert_eq!((found.jobs, found.total_s), (3, 23.0));
    assert_eq!(
        told(&found),
        [
            ("queue", 1.0, 0.0, 1.0),
            ("ineligible", 0.0, 0.0, 1.0),
            ("in_parts", 3.0, 3.0, 3.0),
            ("full", 19.0, 19.0, 19.0),
        ]
    );
    // Where no job starts so nobody reads of it.
    let alone =
        under("local", &[4], &jobs[..1], &[submitted(1, &jobs[0]), started(0, 1, 1, 4), completed(10, 1, 1)]);
    assert!(alone.unwrap().causes.iter().all(|cause| cause.cause != Cause::InParts));
}
