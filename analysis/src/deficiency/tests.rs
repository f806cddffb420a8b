use proptest::prelude::*;
use scheduler::event::{DeclineReason, EventKind, GrantCause, MessageKind, ReleaseReason};
use scheduler::sharing::local_load::NOBODY;
use scheduler::sharing::{LocalLoad, Usage};
use scheduler::{Event, Grid, JobId, SiteId, Span, StrategySpec, TimedJob};

use super::*;
use crate::fixtures::{completed, event, placed, shared_grid_beside, started, timed_job};

/// What a run of ST50 came to, on sites of these sizes.
fn attribution(sizes: &[u32], jobs: &[TimedJob], events: &[Event]) -> Attribution {
    under("st:50", sizes, jobs, events).unwrap()
}

fn under(strategy: &str, sizes: &[u32], jobs: &[TimedJob], events: &[Event]) -> Option<Attribution> {
    let spec: StrategySpec = strategy.parse().unwrap();
    let mut deficiency = Deficiency::new(&Grid::of_sizes(sizes).unwrap(), &spec.strategy, jobs);
    events.iter().for_each(|event| deficiency.observe(event));
    deficiency.finish()
}

/// Submissions at their sites.
fn submitted(site: u32, jobs: &[TimedJob]) -> Vec<Event> {
    let at = |job: &TimedJob| EventKind::Submitted {
        job: job.spec.id,
        processors: job.spec.processors,
        requested: job.spec.requested,
        origin: SiteId(site),
    };
    jobs.iter().map(|job| Event { at: job.spec.submit, site: SiteId(site), kind: at(job) }).collect()
}

/// Site 1 of 4 has two jobs as wide as itself, site 2 of 4 is idle and gets the second; `between` is what happens.
fn steal(start: i64, between: &[Event]) -> Attribution {
    let jobs = [timed_job(1, 0, 4, 10), timed_job(2, 0, 4, 10)];
    let mut events = submitted(1, &jobs);
    events.push(started(0, 1, 1, 4));
    events.extend_from_slice(between);
    events.extend([started(start, 2, 2, 4), completed(10, 1, 1), completed(start + 10, 2, 2)]);
    events.sort_by_key(|event| event.at);
    attribution(&[4, 4], &jobs, &events)
}

fn requested(at: i64, offer: u32) -> Event {
    event(at, 2, EventKind::Requested { victim: SiteId(1), seq: 1, offer, view_age: None })
}

fn granted(at: i64, job: u64) -> Event {
    event(
        at,
        1,
        EventKind::Granted {
            job: JobId(job),
            to: SiteId(2),
            transfer: 1,
            hops: 1,
            cause: GrantCause::Request,
            request: 1,
        },
    )
}

fn accepted(at: i64, job: u64) -> Event {
    event(at, 2, EventKind::Accepted { job: JobId(job), from: SiteId(1), transfer: 1, firm: false })
}

fn answered(at: i64) -> Event {
    event(at, 2, EventKind::Answered { victim: SiteId(1), seq: 1, jobs: 1 })
}

/// Causes in processor-seconds: foreign, lost, in_transit, asked, drain, blind.
fn causes(attribution: &Attribution) -> [f64; 6] {
    attribution.causes().map(|(_, value)| value)
}

#[test]
fn a_site_that_does_not_know_is_blind() {
    let found = steal(6, &[]);
    // Two of four processors of site 2 count, for 6 s.
    assert_eq!(causes(&found), [0.0, 0.0, 0.0, 0.0, 0.0, 12.0]);
    assert_eq!((found.job, found.k, found.total), (JobId(2), SiteId(1), 12.0));
    // 0 + 10 + (80 + 12) / (8/2) = 33.
    assert_eq!(found.certificate.bound, Span::from_secs(33));
    assert_eq!(found.certificate.slack, Span::from_secs(17));
    assert!(found.certificate.holds);
    // 1 + 2 (1 + 12 / (8 * 10)).
    assert_eq!(found.ratio_bound(&Grid::of_sizes(&[4, 4]).unwrap(), Span::from_secs(10)), Some(3.3));
}

#[test]
fn a_request_has_asked_until_its_grant_travels() {
    let found = steal(6, &[requested(1, 4), granted(3, 2), answered(6), accepted(6, 2)]);
    assert_eq!(causes(&found), [0.0, 0.0, 6.0, 4.0, 0.0, 2.0]);
    // While the job travels its offer is used up.
    assert_eq!((found.least, found.greatest), (causes(&found), causes(&found)));
}

#[test]
fn what_a_grant_leaves_of_an_offer_stays_on_offer() {
    // Two sites of 8, of which beta counts on 4 each. Site 2 offers 8 and gets one job of 3.
    let jobs = [timed_job(1, 0, 8, 10), timed_job(2, 0, 3, 10), timed_job(3, 0, 3, 5)];
    let mut events = submitted(1, &jobs);
    events.extend([started(0, 1, 1, 8), requested(0, 8), granted(2, 2), answered(4), accepted(4, 2)]);
    events.extend([started(4, 2, 2, 3), completed(10, 1, 1), completed(14, 2, 2)]);
    events.extend([started(14, 1, 3, 3), completed(19, 1, 3)]);
    let found = attribution(&[8, 8], &jobs, &events);
    // Site 2 is short of 4 for 4 s, from 2 s on of 3 for job 2; then of 1, and site 1 of 4 from 10 s on.
    assert_eq!(causes(&found), [0.0, 0.0, 6.0, 10.0, 0.0, 26.0]);
    assert_eq!(found.in_transit_or_asked(), 16.0);
    assert_eq!(found.greatest[3], 16.0);
}

#[test]
fn two_causes_of_one_processor_are_a_range() {
    // A job of 8 processors waits for a small one, and the site has asked another for work meanwhile.
    let jobs = [timed_job(1, 0, 1, 10), timed_job(2, 1, 8, 2)];
    let mut events = submitted(2, &jobs);
    let asks = EventKind::Requested { victim: SiteId(1), seq: 1, offer: 7, view_age: None };
    events.extend([event(4, 2, asks), started(0, 2, 1, 1), completed(10, 2, 1)]);
    events.extend([started(10, 2, 2, 8), completed(12, 2, 2)]);
    events.sort_by_key(|event| event.at);
    let found = attribution(&[1, 8], &jobs, &events);
    // 3 processors from 1 s to 10 s; from 4 s on they were on offer, too. Job 1 is of the home below.
    assert_eq!(causes(&found), [9.0, 0.0, 0.0, 18.0, 9.0, 0.0]);
    assert_eq!(found.least, [0.0, 0.0, 0.0, 0.0, 9.0, 0.0]);
    assert_eq!(found.greatest, [9.0, 0.0, 0.0, 24.0, 36.0, 0.0]);
}

#[test]
fn an_offer_explains_no_more_than_it_offers() {
    let found = steal(6, &[requested(0, 1), answered(6)]);
    assert_eq!(causes(&found), [0.0, 0.0, 0.0, 6.0, 0.0, 6.0]);
}

#[test]
fn processors_reserved_by_a_claim_are_asked_until_it_ends() {
    let (job, claim, processors) = (JobId(2), 1, 4);
    let reason = ReleaseReason::Denied;
    let found = steal(
        6,
        &[
            event(1, 2, EventKind::Claimed { job, owner: SiteId(1), claim, processors }),
            event(4, 2, EventKind::Released { job, claim, processors, held: Span::from_secs(3), reason }),
        ],
    );
    assert_eq!(causes(&found), [0.0, 0.0, 0.0, 6.0, 0.0, 6.0]);
}

#[test]
fn a_claim_has_asked_until_its_job_travels() {
    let (job, claim, processors) = (JobId(2), 1, 4);
    let reason = ReleaseReason::Granted;
    let found = steal(
        6,
        &[
            event(1, 2, EventKind::Claimed { job, owner: SiteId(1), claim, processors }),
            granted(4, 2),
            accepted(6, 2),
            event(6, 2, EventKind::Released { job, claim, processors, held: Span::from_secs(5), reason }),
        ],
    );
    assert_eq!(causes(&found), [0.0, 0.0, 4.0, 6.0, 0.0, 2.0]);
}

#[test]
fn a_lost_request_is_lost_until_a_repetition_arrives() {
    let message = MessageKind::Request;
    let found = steal(
        9,
        &[
            requested(0, 4),
            event(0, 2, EventKind::Lost { to: SiteId(1), message }),
            event(5, 1, EventKind::Received { from: SiteId(2), message }),
            granted(5, 2),
            answered(9),
            accepted(9, 2),
        ],
    );
    assert_eq!(causes(&found), [0.0, 10.0, 8.0, 0.0, 0.0, 0.0]);
    // The request is on offer while it is lost, and its offer is used up when the job travels.
    assert_eq!(found.greatest[3], 10.0);
}

#[test]
fn a_lost_grant_is_repaired_by_its_repetition() {
    let message = MessageKind::Grant;
    let found = steal(
        9,
        &[
            requested(0, 4),
            granted(1, 2),
            event(1, 1, EventKind::Lost { to: SiteId(2), message }),
            event(9, 2, EventKind::Received { from: SiteId(1), message }),
            answered(9),
            accepted(9, 2),
        ],
    );
    assert_eq!(causes(&found), [0.0, 16.0, 0.0, 2.0, 0.0, 0.0]);
}

#[test]
fn a_declined_job_travels_until_it_is_back() {
    let jobs = [timed_job(1, 0, 4, 3), timed_job(2, 0, 4, 10)];
    let mut events = submitted(1, &jobs);
    let job = JobId(2);
    events.extend([
        started(0, 1, 1, 4),
        granted(0, 2),
        event(
            2,
            2,
            EventKind::Declined { job, from: SiteId(1), transfer: 1, reason: DeclineReason::DoesNotFit },
        ),
        completed(3, 1, 1),
        event(5, 1, EventKind::Returned { job, by: SiteId(2), transfer: 1, bounces: 1 }),
        started(7, 1, 2, 4),
        completed(17, 1, 2),
    ]);
    let found = attribution(&[4, 4], &jobs, &events);
    // Site 2 is idle for 7 s and site 1 from 3 s on; the job is in nobody's list until 5 s.
    assert_eq!(causes(&found), [0.0, 0.0, 14.0, 0.0, 0.0, 8.0]);
}

#[test]
fn work_of_smaller_homes_is_foreign() {
    // Home of job 1 is site 1 of 2 processors; it runs on site 2 while job 2, of home 2, waits.
    let jobs = [timed_job(1, 0, 2, 10), timed_job(2, 0, 3, 10)];
    let mut events = submitted(1, &jobs[..1]);
    events.extend(submitted(2, &jobs[1..]));
    events.extend([started(0, 2, 1, 2), completed(10, 2, 1), started(10, 2, 2, 3), completed(20, 2, 2)]);
    let found = attribution(&[2, 4], &jobs, &events);
    // beta s_2 = 2 for 10 s, both taken by job 1.
    assert_eq!(causes(&found), [20.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    assert_eq!(found.k, SiteId(2));
}

#[test]
fn a_site_that_waits_for_small_jobs_to_end_drains() {
    let jobs = [timed_job(1, 0, 1, 10), timed_job(2, 1, 8, 2)];
    let mut events = submitted(1, &jobs);
    events.extend([started(0, 1, 1, 1), completed(10, 1, 1), started(10, 1, 2, 8), completed(12, 1, 2)]);
    events.sort_by_key(|event| event.at);
    let found = attribution(&[8], &jobs, &events);
    // 4 - 1 processors from 1 s to 10 s.
    assert_eq!(causes(&found), [0.0, 0.0, 0.0, 0.0, 27.0, 0.0]);
    assert_eq!((found.from, found.until), (Span::from_secs(1), Span::from_secs(10)));
}

#[test]
fn beta_is_that_of_the_threshold_or_one_half() {
    for (strategy, expected) in [
        ("st:50", 50),
        ("st:30", 30),
        ("st:75", 25),
        ("st:100", 50),
        ("st-greedy:10", 10),
        ("local", 50),
        ("common-pool", 50),
    ] {
        let spec: StrategySpec = strategy.parse().unwrap();
        assert_eq!(beta_percent(&spec.strategy), expected, "{strategy}");
    }
}

#[test]
fn a_run_that_stopped_early_has_no_certificate() {
    let jobs = [timed_job(1, 0, 1, 10), timed_job(2, 0, 1, 10)];
    let mut events = submitted(1, &jobs);
    events.extend([started(0, 1, 1, 1), started(0, 1, 2, 1), completed(10, 1, 1)]);
    assert_eq!(under("st:50", &[4], &jobs, &events), None);
    assert_eq!(under("st:50", &[4], &[], &[]), None);
}

/// Jobs of the whole of one site, one after the other; the last starts when the one before has ended.
fn one_after_the_other(jobs: u64) -> (Vec<TimedJob>, Vec<Event>) {
    let jobs: Vec<TimedJob> = (1..=jobs).map(|id| timed_job(id, 0, 2, 10)).collect();
    let mut events = submitted(1, &jobs);
    for (job, at) in jobs.iter().zip((0..).step_by(10)) {
        events.extend([started(at, 1, job.spec.id.0, 2), completed(at + 10, 1, job.spec.id.0)]);
    }
    (jobs, events)
}

#[test]
fn mutant_a_completion_that_is_not_seen_is_caught() {
    let (jobs, mut events) = one_after_the_other(5);
    assert!(attribution(&[2], &jobs, &events).certificate.holds);
    events.retain(|event| *event != completed(20, 1, 2));
    assert_eq!(under("st:50", &[2], &jobs, &events), None, "a job that never ends makes a run partial");
    // If it is reported in the end, the job holds processors that others hold, too.
    events.push(completed(50, 1, 2));
    let found = attribution(&[2], &jobs, &events);
    assert!(found.work > 100.0, "more than 5 jobs of 20 processor-seconds: {found:?}");
}

#[test]
fn mutant_work_that_nobody_accounts_for_is_caught() {
    let (jobs, events) = one_after_the_other(5);
    let half = "st:50".parse::<StrategySpec>().unwrap().strategy;
    let mut broken = Deficiency::new(&Grid::of_sizes(&[2]).unwrap(), &half, &jobs);
    events.iter().for_each(|event| broken.observe(event));
    broken.work[0] -= 1;
    assert!(
        broken.clone().finish().unwrap().certificate.holds,
        "only the last 10 s of 50 are not in the window"
    );
    broken.work[0] -= 20_000_000;
    assert!(!broken.finish().unwrap().certificate.holds);
}

#[test]
fn mutant_a_wrong_beta_is_caught() {
    // One processor of four is busy: the deficiency is 1 for beta = 1/2 and 0 for beta = 1/4.
    let sums = |beta: i128, deficiency: i128| Sums {
        waited: Span::from_secs(10),
        work: 10_000_000,
        deficiency,
        capacity: beta * 4,
    };
    assert!(sums(50, 10 * 100_000_000).hold());
    assert!(sums(25, 0).hold());
    assert!(!sums(50, 0).hold());
    assert!(!sums(51, 10 * 100_000_000).hold());
    assert_eq!(sums(50, 10 * 100_000_000).wait_max(), Span::from_secs(10));
}

proptest! {
    /// Old entries may be summed up at any time: what is found does not depend on it.
    #[test]
    fn summing_up_changes_nothing(cuts in prop::collection::vec(0usize..60, 0..6), gap in 1i64..12) {
        let jobs: Vec<TimedJob> = (1..=20).map(|id| timed_job(id, id as i64 * gap, 1 + (id as u32 % 3), 15)).collect();
        let mut free = 0;
        let mut events = Vec::new();
        for job in &jobs {
            let start = free.max(job.spec.submit.as_micros() / 1_000_000);
            free = start + 15;
            events.extend(submitted(1, &[*job]));
            events.extend([started(start, 1, job.spec.id.0, job.spec.processors), completed(free, 1, job.spec.id.0)]);
        }
        events.sort_by_key(|event| event.at);
        let spec: StrategySpec = "st:50".parse().unwrap();
        let grid = Grid::of_sizes(&[4, 9]).unwrap();
        let mut plain = Deficiency::new(&grid, &spec.strategy, &jobs);
        let mut cut = plain.clone();
        for (place, event) in events.iter().enumerate() {
            plain.observe(event);
            cut.observe(event);
            if cuts.contains(&place) {
                cut.journal.sum_up();
            }
        }
        let (plain, cut) = (plain.finish().unwrap(), cut.finish().unwrap());
        prop_assert!(plain.certificate.holds);
        prop_assert_eq!(plain, cut);
    }
}

/// Job 1 of 60 KB is on node 0 of two with 100 KB for 10 s; job 2 of two tasks with so much memory each starts at 12 s. Causes that are not
/// zero: of four places two count, so one is short beside job 1 and two after it.
fn after_job_1(memory: i64, local: &LocalLoad) -> (f64, f64) {
    let mut jobs = [timed_job(1, 0, 1, 10), timed_job(2, 0, 2, 5)];
    (jobs[0].spec.labels.memory, jobs[1].spec.labels.memory) = (60, memory);
    let mut events = submitted(1, &jobs);
    events.extend([started(0, 1, 1, 1), placed(0, 1, 1, 0), completed(10, 1, 1), started(12, 1, 2, 2)]);
    events.extend([placed(12, 1, 2, 0), placed(12, 1, 2, 1), completed(17, 1, 2)]);
    let strategy: StrategySpec = "local".parse().unwrap();
    let grid = shared_grid_beside(&[(2, 100)], local);
    let mut deficiency = Deficiency::new(&grid, &strategy.strategy, &jobs);
    events.iter().for_each(|event| deficiency.observe(event));
    let found = deficiency.finish().unwrap();
    assert!(found.certificate.holds);
    assert_eq!(found.drain + found.blind, found.total);
    (found.drain, found.blind)
}

#[test]
fn nodes_without_the_memory_drain() {
    let nobody = LocalLoad::default();
    assert_eq!(after_job_1(40, &nobody), (0.0, 14.0));
    assert_eq!(after_job_1(41, &nobody), (10.0, 4.0));
    // Local users have 20 KB from 3 s to 7 s.
    let users = Usage::new(0.0, 0.2, 0.0).unwrap();
    let local = LocalLoad::changing(vec![(Time::from_secs(3), users), (Time::from_secs(7), NOBODY)]);
    assert_eq!(after_job_1(40, &local), (4.0, 10.0));
}
