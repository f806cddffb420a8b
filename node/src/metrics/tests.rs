//! The page after fixed lists of events.

use scheduler::Steal;
use scheduler::event::{GrantCause, RefusalReason};

use super::*;

const ONE: SiteId = SiteId(1);
const TWO: SiteId = SiteId(2);

fn job(id: u64, processors: u32) -> JobSpec {
    JobSpec {
        id: JobId(id),
        submit: Time::from_secs(10),
        processors,
        requested: Span::from_secs(60),
        user: -1,
        origin: ONE,
        payload: 0,
    }
}

fn submitted(job: &JobSpec) -> EventKind {
    let (requested, origin) = (job.requested, job.origin);
    EventKind::Submitted { job: job.id, processors: job.processors, requested, origin }
}

fn metrics(site: SiteId) -> Metrics {
    let grid = Arc::new(Grid::of_sizes(&[4, 8]).unwrap());
    Metrics::new(site, grid, &Strategy::Steal(Steal::with_threshold(Threshold::HALF)))
}

fn observe(metrics: &mut Metrics, seconds: i64, kind: EventKind) {
    metrics.observe(&Event { at: Time::from_secs(seconds), site: metrics.site, kind });
}

fn line<'a>(page: &'a str, start: &str) -> &'a str {
    page.lines().find(|line| line.starts_with(start)).unwrap_or_else(|| panic!("no line {start} in\n{page}"))
}

/// The life of three jobs at a small site: one runs there, one is stolen, one comes back once.
#[test]
fn a_fixed_list_of_events_gives_the_page_of_the_snapshot() {
    let mut metrics = metrics(ONE);
    let (wide, narrow, other) = (job(1, 4), job(2, 1), job(3, 3));
    for job in [&wide, &narrow, &other] {
        metrics.introduce(job);
        observe(&mut metrics, 10, submitted(job));
    }
    let message = MessageKind::Request;
    observe(&mut metrics, 10, EventKind::Started { job: wide.id, processors: 4, hops: 0 });
    observe(&mut metrics, 11, EventKind::Received { from: TWO, message });
    observe(
        &mut metrics,
        11,
        EventKind::Granted {
            job: narrow.id,
            to: TWO,
            transfer: 1,
            hops: 1,
            cause: GrantCause::Request,
            request: 1,
        },
    );
    observe(
        &mut metrics,
        11,
        EventKind::Granted {
            job: other.id,
            to: TWO,
            transfer: 2,
            hops: 1,
            cause: GrantCause::Request,
            request: 1,
        },
    );
    let grant = MessageKind::Grant;
    observe(&mut metrics, 11, EventKind::Sent { to: TWO, message: grant, retry: false });
    observe(&mut metrics, 12, EventKind::Sent { to: TWO, message: grant, retry: true });
    observe(&mut metrics, 12, EventKind::Lost { to: TWO, message: grant });
    observe(&mut metrics, 13, EventKind::Settled { job: narrow.id, to: TWO, transfer: 1 });
    observe(&mut metrics, 13, EventKind::Returned { job: other.id, by: TWO, transfer: 2, bounces: 1 });
    let reason = RefusalReason::TooWide;
    observe(&mut metrics, 14, EventKind::Refused { thief: TWO, seq: 2, reason });
    observe(&mut metrics, 70, EventKind::Completed { job: wide.id, processors: 4 });
    observe(&mut metrics, 71, EventKind::Started { job: other.id, processors: 3, hops: 0 });
    metrics.calibrated(SiteId(2), Duration::from_micros(125));
    metrics.link(TWO, true, Some(Duration::from_micros(250)), Span::from_secs(2), Some(Span::from_secs(3)));
    metrics.limit(Limit::Outbox, 2);
    metrics.limit(Limit::Outbox, 5);
    metrics.clock(Time::from_secs(72), true);

    // Series that are still 0 are covered by the next test; leaving them out keeps the snapshot readable.
    let page: Vec<String> =
        metrics.page().lines().filter(|line| !line.ends_with(" 0")).map(str::to_string).collect();
    let expected = include_str!("../metrics_snapshot.txt");
    assert_eq!(
        page.join("\n"),
        expected.trim_end(),
        "the page changed; dashboards and rules may need it too"
    );
}

#[test]
fn all_known_series_exist_before_the_first_event() {
    let page = metrics(ONE).page();
    for start in [
        "stealgrid_jobs{class=\"H\",state=\"running\",site=\"site1\"} 0",
        "stealgrid_messages_total{direction=\"lost\",kind=\"no_work\",site=\"site1\"} 0",
        "stealgrid_steal_requests_total{outcome=\"busy\",site=\"site1\"} 0",
        "stealgrid_limit_hits_total{limit=\"delay_line\",site=\"site1\"} 0",
        "stealgrid_processors{state=\"idle\",site=\"site1\"} 4",
        "stealgrid_link_connected{peer=\"site2\",site=\"site1\"} 0",
    ] {
        line(&page, start);
    }
}

/// A job is taken over from a silent site, waits for somebody who is wide enough, and goes when the site is back.
#[test]
fn what_is_believed_of_others_is_counted_and_shown() {
    let mut metrics = metrics(ONE);
    let job = job(1, 6);
    metrics.introduce(&job);
    let expect = |metrics: &Metrics, lines: &[&str]| {
        let page = metrics.page();
        lines.iter().for_each(|expected| assert_eq!(line(&page, expected), *expected));
    };
    expect(&metrics, &["stealgrid_sites{presence=\"here\",site=\"site1\"} 1"]);
    observe(&mut metrics, 40, EventKind::Suspected { peer: TWO });
    expect(
        &metrics,
        &[
            "stealgrid_sites{presence=\"here\",site=\"site1\"} 0",
            "stealgrid_sites{presence=\"suspected\",site=\"site1\"} 1",
        ],
    );
    observe(&mut metrics, 100, EventKind::Gone { peer: TWO });
    observe(&mut metrics, 100, EventKind::TookOver { job: job.id, holder: TWO, epoch: 1 });
    observe(&mut metrics, 100, EventKind::Stranded { job: job.id, processors: 6 });
    expect(
        &metrics,
        &[
            "stealgrid_sites{presence=\"gone\",site=\"site1\"} 1",
            "stealgrid_sites{presence=\"suspected\",site=\"site1\"} 0",
            "stealgrid_jobs_taken_over_total{site=\"site1\"} 1",
            "stealgrid_jobs_stranded{site=\"site1\"} 1",
            "stealgrid_jobs{class=\"H\",state=\"queued\",site=\"site1\"} 1",
        ],
    );
    observe(&mut metrics, 150, EventKind::Heard { peer: TWO, after: Span::from_secs(120) });
    let (job, transfer, cause) = (job.id, 1, GrantCause::Route);
    observe(&mut metrics, 150, EventKind::Granted { job, to: TWO, transfer, hops: 1, cause, request: 0 });
    observe(&mut metrics, 151, EventKind::Superseded { job, epoch: 2, started: true });
    expect(
        &metrics,
        &[
            "stealgrid_sites{presence=\"here\",site=\"site1\"} 1",
            "stealgrid_membership_events_total{event=\"heard\",site=\"site1\"} 1",
            "stealgrid_membership_events_total{event=\"left\",site=\"site1\"} 0",
            "stealgrid_link_absence_seconds{peer=\"site2\",site=\"site1\"} 120",
            "stealgrid_jobs_stranded{site=\"site1\"} 0",
            "stealgrid_jobs_stranded_total{site=\"site1\"} 1",
            "stealgrid_jobs_superseded_total{state=\"executing\",site=\"site1\"} 1",
            "stealgrid_jobs_superseded_total{state=\"dropped\",site=\"site1\"} 0",
        ],
    );
}

#[test]
fn a_thief_counts_stolen_jobs_as_class_h_and_times_its_requests() {
    let mut metrics = metrics(TWO);
    let stolen = job(1, 3);
    observe(&mut metrics, 20, EventKind::Requested { victim: ONE, seq: 1, offer: 8, view_age: None });
    metrics.introduce(&stolen);
    observe(&mut metrics, 24, EventKind::Answered { victim: ONE, seq: 1, jobs: 1 });
    observe(&mut metrics, 24, EventKind::Accepted { job: stolen.id, from: ONE, transfer: 1, firm: false });
    observe(&mut metrics, 24, EventKind::Started { job: stolen.id, processors: 3, hops: 1 });

    let page = metrics.page();
    for expected in [
        "stealgrid_jobs{class=\"H\",state=\"running\",site=\"site2\"} 1",
        "stealgrid_jobs{class=\"H\",state=\"queued\",site=\"site2\"} 0",
        "stealgrid_jobs_stolen_total{site=\"site2\"} 1",
        "stealgrid_steal_requests_total{outcome=\"granted\",site=\"site2\"} 1",
        "stealgrid_steal_rtt_seconds_sum{site=\"site2\"} 4",
        "stealgrid_job_wait_seconds_sum{site=\"site2\"} 14",
    ] {
        assert_eq!(line(&page, expected), expected);
    }
}

/// A job may come back before its first departure is settled; the late settlement must not remove it.
#[test]
fn a_job_that_returns_from_a_third_site_early_is_counted_once_per_place() {
    let mut metrics = metrics(ONE);
    let job = job(1, 1);
    metrics.introduce(&job);
    observe(&mut metrics, 10, submitted(&job));
    observe(
        &mut metrics,
        11,
        EventKind::Granted {
            job: job.id,
            to: TWO,
            transfer: 1,
            hops: 1,
            cause: GrantCause::Request,
            request: 1,
        },
    );
    observe(&mut metrics, 12, EventKind::Accepted { job: job.id, from: TWO, transfer: 1, firm: false });
    assert_eq!(metrics.leaving(), 1);
    observe(&mut metrics, 13, EventKind::Settled { job: job.id, to: TWO, transfer: 1 });

    assert_eq!(metrics.leaving(), 0);
    let page = metrics.page();
    line(&page, "stealgrid_jobs{class=\"B\",state=\"queued\",site=\"site1\"} 1");
    line(&page, "stealgrid_jobs{class=\"B\",state=\"leaving\",site=\"site1\"} 0");
}
