//! Hand-made transcripts with every phase worked out, and what must add up.

use scheduler::{Grid, Threshold, TimedJob};

use super::*;
use crate::fixtures::{completed, event, started, timed_job};
use crate::outcome::{Outcome, OutcomeBuilder};

const M1: u32 = 1;
const M2: u32 = 2;

fn requested(at: i64, seq: u64, age: Option<i64>) -> Event {
    let view_age = age.map(Span::from_secs);
    event(at, M2, EventKind::Requested { victim: SiteId(M1), seq, offer: 2, view_age })
}

fn granted(at: i64, job: u64, transfer: u64, cause: GrantCause, request: u64) -> Event {
    let (job, to) = (JobId(job), SiteId(M2));
    event(at, M1, EventKind::Granted { job, to, transfer, hops: 1, cause, request })
}

fn accepted(at: i64, job: u64, transfer: u64) -> Event {
    event(at, M2, EventKind::Accepted { job: JobId(job), from: SiteId(M1), transfer, firm: false })
}

fn stolen(at: i64, job: u64, processors: u32) -> Event {
    event(at, M2, EventKind::Started { job: JobId(job), processors, hops: 1 })
}

fn answered(at: i64, seq: u64, jobs: u32) -> Event {
    event(at, M2, EventKind::Answered { victim: SiteId(M1), seq, jobs })
}

/// Two machines of 4 and 8 processors, messages take 1 s: a request is refused, a standing request is served, a new
/// request crosses that and is served for what is left.
fn transcript() -> Vec<Event> {
    let (request, standing) = (GrantCause::Request, GrantCause::Standing);
    let refused = EventKind::Refused { thief: SiteId(M2), seq: 1, reason: RefusalReason::TooWide };
    vec![
        started(0, M1, 1, 2),
        started(0, M1, 2, 2),
        started(1, M2, 5, 6),
        requested(1, 1, Some(1)),
        event(2, M1, refused),
        answered(3, 1, 0),
        completed(4, M1, 1),
        completed(4, M1, 2),
        started(4, M1, 7, 3),
        granted(4, 3, 1, standing, 0),
        completed(4, M2, 5),
        requested(4, 2, Some(2)),
        granted(5, 4, 2, request, 2),
        granted(5, 6, 3, request, 2),
        accepted(5, 3, 1),
        stolen(5, 3, 2),
        answered(6, 2, 2),
        accepted(6, 4, 2),
        stolen(6, 4, 4),
        accepted(6, 6, 3),
        stolen(6, 6, 2),
        completed(6, M1, 7),
        completed(8, M2, 6),
        completed(9, M2, 3),
        completed(10, M2, 4),
    ]
}

fn workload() -> Vec<TimedJob> {
    vec![
        timed_job(1, 0, 2, 4),
        timed_job(2, 0, 2, 4),
        timed_job(3, 0, 2, 4),
        timed_job(4, 0, 4, 4),
        timed_job(5, 1, 6, 3),
        timed_job(6, 2, 2, 2),
        timed_job(7, 2, 3, 2),
    ]
}

fn measured(events: &[Event]) -> (Vec<Steal>, Steals, Outcome) {
    let mut rows = Vec::new();
    let mut steals = Steals::default();
    let mut builder = OutcomeBuilder::new(&Grid::of_sizes(&[4, 8]).unwrap(), Threshold::HALF, &workload());
    for event in events {
        builder.observe(event);
        steals.observe(event, &mut |steal| rows.push(*steal));
    }
    steals.finish(&mut |steal| rows.push(*steal));
    (rows, steals, builder.finish())
}

/// Each job's rows are as many as its changes of site, and in their order.
fn conserved(rows: &[Steal], outcome: &Outcome) -> bool {
    outcome.jobs.iter().all(|job| {
        let hops: Vec<u32> = rows.iter().filter(|row| row.job == job.id).map(|row| row.hop).collect();
        hops == (1..=job.hops).collect::<Vec<u32>>()
    })
}

#[test]
fn phases_of_a_known_transcript_are_those_worked_out_by_hand() {
    let (rows, steals, outcome) = measured(&transcript());
    let seconds = |span: Option<Span>| span.map(|span| span.as_micros() / 1_000_000);
    let phases: Vec<_> = rows
        .iter()
        .map(|row| (row.job.0, seconds(row.request()), seconds(Some(row.transfer())), seconds(row.start())))
        .collect();
    let zero = Some(0);
    assert_eq!(phases, [(3, None, Some(1), zero), (4, Some(1), Some(1), zero), (6, Some(1), Some(1), zero)]);
    assert_eq!(rows[1].view_age, Some(Span::from_secs(2)));
    assert_eq!(rows[0].total(), Some(Span::from_secs(1)));
    assert_eq!(rows[1].total(), Some(Span::from_secs(2)));
    assert!(conserved(&rows, &outcome));

    let price = steals.price(&outcome, None).unwrap();
    assert_eq!((price.steals, price.routes, price.without_request), (3, 0, 1));
    assert_eq!(price.by_cause, BTreeMap::from([("request".into(), 2), ("standing".into(), 1)]));
    assert_eq!((price.requests, price.refusal_rate), (2, 0.5));
    assert_eq!(price.refusals, BTreeMap::from([("too_wide".into(), 1)]));
    assert_eq!((price.view_age_granted_s.mean, price.view_age_refused_s.mean), (2.0, 1.0));
    assert_eq!(price.jobs_by_hops, [4, 3]);
    assert_eq!(price.jobs_by_bounces, [7]);
    assert_eq!((price.thieves[1].steals, price.thieves[1].work_proc_s), (3, 28.0));
    assert_eq!((price.concentration.herfindahl, price.concentration.gini), (1.0, 0.5));
}

#[test]
fn a_job_that_starts_again_is_one_job() {
    let mut events = transcript();
    // Job 3 was declined once before, and a crash interrupts it where it went.
    let place = events.iter().position(|event| *event == stolen(5, 3, 2)).unwrap();
    let back = EventKind::Returned { job: JobId(3), by: SiteId(M2), transfer: 9, bounces: 1 };
    events.splice(
        place + 1..place + 1,
        [
            event(5, M2, EventKind::Recovered { incarnation: 1, waiting: 0, running: 1, out: 0 }),
            event(5, M2, EventKind::Interrupted { job: JobId(3), processors: 2, killed: false }),
            stolen(5, 3, 2),
        ],
    );
    events.insert(0, event(0, M1, back));
    let (_, steals, outcome) = measured(&events);
    assert_eq!(outcome.contradictions.total(), 0);
    let price = steals.price(&outcome, None).unwrap();
    assert_eq!((price.jobs_by_hops, price.jobs_by_bounces), (vec![4, 3], vec![6, 1]));
}

/// The mutant: one acceptance is missing, and the rows no longer add up.
#[test]
fn a_lost_acceptance_is_noticed() {
    let mut events = transcript();
    events.retain(|event| !matches!(event.kind, EventKind::Accepted { job: JobId(6), .. }));
    let (rows, _, outcome) = measured(&events);
    assert!(!conserved(&rows, &outcome));
}

#[test]
fn a_declined_job_counts_its_bounces_where_it_is_taken() {
    let reason = DeclineReason::DoesNotFit;
    let (job, from, by) = (JobId(3), SiteId(M1), SiteId(M2));
    let events = [
        granted(0, 3, 1, GrantCause::Standing, 0),
        event(1, M2, EventKind::Declined { job, from, transfer: 1, reason }),
        event(2, M1, EventKind::Returned { job, by, transfer: 1, bounces: 1 }),
        granted(3, 3, 2, GrantCause::Push, 0),
        event(4, M2, EventKind::Accepted { job, from, transfer: 2, firm: true }),
        stolen(9, 3, 2),
    ];
    let (rows, steals, outcome) = measured(&events);
    assert_eq!(rows.len(), 1);
    assert_eq!((rows[0].bounces, rows[0].firm, rows[0].start()), (1, true, Some(Span::from_secs(5))));
    let price = steals.price(&outcome, None).unwrap();
    assert_eq!((price.jobs_by_bounces.as_slice(), price.decline_rate), (&[0, 1][..], 0.5));
    assert_eq!(price.declines, BTreeMap::from([("does_not_fit".into(), 1)]));
}

#[test]
fn a_job_that_moves_on_is_a_row_per_site_and_a_route_is_no_steal() {
    let job = JobId(3);
    let (first, second) = (SiteId(M1), SiteId(M2));
    let grant = |at, site, to, transfer, hops, cause| {
        event(at, site, EventKind::Granted { job, to, transfer, hops, cause, request: 0 })
    };
    let accept =
        |at, site, from, transfer| event(at, site, EventKind::Accepted { job, from, transfer, firm: true });
    let events = [
        grant(0, M2, first, 1, 1, GrantCause::Route),
        accept(1, M1, second, 1),
        grant(4, M1, second, 1, 2, GrantCause::Standing),
        accept(6, M2, first, 1),
    ];
    let (rows, steals, outcome) = measured(&events);
    let shown: Vec<_> = rows.iter().map(|row| (row.hop, row.thief.0, row.started, row.counts())).collect();
    assert_eq!(shown, [(1, 1, None, false), (2, 2, None, true)]);
    let price = steals.price(&outcome, None).unwrap();
    assert_eq!((price.steals, price.routes, price.start_s.count, price.transfer_s.mean), (1, 1, 0, 2.0));
}

#[test]
fn a_claim_is_the_request_of_a_global_queue() {
    let (job, owner) = (JobId(3), SiteId(M1));
    let reason = scheduler::event::ReleaseReason::Granted;
    let held = Span::from_secs(4);
    let denied = scheduler::event::ReleaseReason::Denied;
    let events = [
        event(0, M2, EventKind::Claimed { job, owner, claim: 1, processors: 2 }),
        event(0, M2, EventKind::Claimed { job: JobId(5), owner, claim: 2, processors: 6 }),
        event(2, M2, EventKind::Released { job: JobId(5), claim: 2, processors: 6, held, reason: denied }),
        granted(2, 3, 1, GrantCause::Pool, 0),
        event(4, M2, EventKind::Released { job, claim: 1, processors: 2, held, reason }),
        accepted(4, 3, 1),
        stolen(4, 3, 2),
        granted(5, 4, 2, GrantCause::Pool, 0),
        accepted(6, 4, 2),
    ];
    let (rows, steals, outcome) = measured(&events);
    assert_eq!((rows[0].request(), rows[0].total()), (Some(Span::from_secs(2)), Some(Span::from_secs(4))));
    assert_eq!(rows[1].request(), None, "the host of a queue assigns jobs unasked");
    let price = steals.price(&outcome, None).unwrap();
    assert_eq!((price.steals, price.without_request, price.requests), (2, 1, 0));
    assert_eq!((price.claims, price.denial_rate), (2, 0.5));
    assert_eq!(price.denials, BTreeMap::from([("denied".into(), 1)]), "a granted claim is none in vain");
}

#[test]
fn a_run_without_exchange_has_no_price() {
    let (_, steals, outcome) = measured(&[started(0, M1, 1, 2), completed(4, M1, 1)]);
    assert_eq!(steals.price(&outcome, None), None);
}

#[test]
fn waits_are_compared_with_the_ideal_run() {
    let (_, steals, outcome) = measured(&transcript());
    let mut ideal = outcome.clone();
    for job in ideal.jobs.iter_mut().filter(|job| job.stolen()) {
        job.start = job.start.map(|start| start - Span::from_secs(2));
    }
    let over = steals.price(&outcome, Some(&ideal)).unwrap().wait_over_ideal_s.unwrap();
    assert_eq!((over.count, over.mean, over.max), (3, 2.0, 2.0));
    ideal.jobs.reverse();
    let reordered = steals.price(&outcome, Some(&ideal)).unwrap().wait_over_ideal_s.unwrap();
    assert_eq!(reordered, over);
}

#[test]
fn concentration_of_known_shares() {
    let equal = Concentration::of([0.25; 4]);
    assert_eq!((equal.herfindahl, equal.effective_thieves, equal.gini), (0.25, 4.0, 0.0));
    let one = Concentration::of([0.0, 1.0, 0.0, 0.0]);
    assert_eq!((one.herfindahl, one.effective_thieves, one.gini, one.top_share), (1.0, 1.0, 0.75, 1.0));
    assert_eq!(Concentration::of([0.0, 0.0]), Concentration::default());
}
