//! The page after fixed lists of events.

use protocol::handover::{Custody, Ledger, Record};
use scheduler::Labels;
use scheduler::event::{DeclineReason, FallbackCause, GrantCause, RefusalReason};

use super::*;

const ONE: SiteId = SiteId(1);
const TWO: SiteId = SiteId(2);

fn job(id: u64, processors: u32) -> JobSpec {
    JobSpec {
        id: JobId(id),
        submit: Time::from_secs(10),
        processors,
        requested: Span::from_secs(60),
        labels: Labels::UNKNOWN,
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
    Metrics::new(site, grid, &Strategy::default())
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
    let mut measured = Measured::default();
    // Of two sizes.
    for (delay, injected) in [(2, 1), (4, 3)] {
        measured.add(Span::from_secs(delay), Span::from_secs(injected), 1);
    }
    metrics.link(TWO, true, Some(Duration::from_micros(250)), Span::from_secs(2), Some(&measured));
    metrics.limit(Limit::Outbox, 2);
    metrics.limit(Limit::Outbox, 5);
    metrics.clock(Time::from_secs(72), true);

    // Series that are still 0 are covered by the next tests; leaving them out keeps the snapshot readable.
    let page: Vec<String> =
        metrics.page().lines().filter(|line| !line.ends_with(" 0")).map(str::to_string).collect();
    let expected = include_str!("../metrics_snapshot.txt");
    assert_eq!(
        page.join("\n"),
        expected.trim_end(),
        "the page changed; dashboards and rules may need it too"
    );
}

/// Series of a page: name and labels, without the value.
fn series(page: &str) -> BTreeSet<&str> {
    let samples = page.lines().filter(|line| !line.starts_with('#'));
    samples.filter_map(|line| Some(line.rsplit_once(' ')?.0)).collect()
}

/// What is measured of a link is there when it is known: 0 would be a measurement.
const MEASURED: [&str; 5] = [
    "stealgrid_link_rtt_seconds",
    "stealgrid_link_delay_seconds",
    "stealgrid_link_delay_configured_seconds",
    "stealgrid_link_delay_injected_seconds",
    "stealgrid_link_intrinsic_seconds",
];

/// There at brokers that learn.
const OF_LEARNERS: &str = "stealgrid_broker_efficiency";

#[test]
fn every_series_exists_before_the_first_event() {
    let page = metrics(ONE).page();
    let sources = [include_str!("series.rs"), include_str!("refusals.rs")].concat();
    let names: BTreeSet<&str> =
        sources.split('"').filter(|literal| literal.starts_with("stealgrid_")).collect();
    assert!(names.len() > 40, "the search finds {names:?}");
    for name in names {
        let there = page.contains(&format!("# TYPE {name} "));
        assert_eq!(there, !MEASURED.contains(&name) && name != OF_LEARNERS, "{name}");
    }
    for line in page.lines().filter(|line| !line.starts_with('#')) {
        let begins = line.ends_with(" 0")
            || line.starts_with("stealgrid_build_info")
            || line == "stealgrid_processors{state=\"idle\",site=\"site1\"} 4"
            || line == "stealgrid_sites{presence=\"here\",site=\"site1\"} 1";
        assert!(begins, "{line}");
    }
}

/// Whatever happens, no label value appears that was not there from the beginning.
#[test]
fn nothing_that_happens_adds_a_series() {
    let mut metrics = metrics(ONE);
    let before = metrics.page();
    let (wide, narrow, foreign) = (job(1, 4), job(2, 1), job(3, 8));
    for job in [&wide, &narrow, &foreign] {
        metrics.introduce(job);
        observe(&mut metrics, 10, submitted(job));
        observe(&mut metrics, 11, EventKind::Started { job: job.id, processors: 1, hops: 0 });
        observe(
            &mut metrics,
            12,
            EventKind::Interrupted { job: job.id, processors: 1, killed: job.id.0 == 1 },
        );
        let (to, job, transfer, cause) = (TWO, job.id, job.id.0, GrantCause::Route);
        observe(&mut metrics, 13, EventKind::Granted { job, to, transfer, hops: 1, cause, request: 0 });
    }
    observe(&mut metrics, 14, EventKind::Accepted { job: narrow.id, from: TWO, transfer: 1, firm: false });
    observe(&mut metrics, 15, EventKind::Started { job: narrow.id, processors: 1, hops: 0 });
    observe(&mut metrics, 16, EventKind::Completed { job: narrow.id, processors: 1 });
    for started in [false, true] {
        observe(&mut metrics, 17, EventKind::Superseded { job: wide.id, epoch: 1, started });
    }
    for message in MessageKind::ALL {
        let (to, from) = (TWO, TWO);
        observe(&mut metrics, 20, EventKind::Sent { to, message, retry: true });
        observe(&mut metrics, 20, EventKind::Received { from, message });
        observe(&mut metrics, 20, EventKind::Ignored { from, message });
        observe(&mut metrics, 20, EventKind::Lost { to, message });
        metrics.carried(message, Direction::Sent, 100);
        metrics.carried(message, Direction::Received, 100);
    }
    for reason in RefusalReason::ALL {
        observe(&mut metrics, 21, EventKind::Refused { thief: TWO, seq: 1, reason });
    }
    for reason in DeclineReason::ALL {
        observe(&mut metrics, 21, EventKind::Declined { job: wide.id, from: TWO, transfer: 9, reason });
    }
    observe(&mut metrics, 22, EventKind::Requested { victim: TWO, seq: 1, offer: 8, view_age: None });
    observe(&mut metrics, 23, EventKind::Answered { victim: TWO, seq: 1, jobs: 1 });
    for kind in [
        EventKind::Suspected { peer: TWO },
        EventKind::Heard { peer: TWO, after: Span::from_secs(1) },
        EventKind::Gone { peer: TWO },
        EventKind::Left { peer: TWO },
        EventKind::Orphaned { job: wide.id, processors: 4 },
    ] {
        observe(&mut metrics, 30, kind);
    }
    Limit::ALL.into_iter().for_each(|limit| metrics.limit(limit, 3));
    metrics.restarted([Duration::from_secs(1); RESTART_STEPS.len()]);
    assert_eq!(series(&metrics.page()), series(&before));

    metrics.calibrated(TWO, Duration::from_micros(125));
    metrics.link(TWO, true, Some(Duration::from_micros(250)), Span::ZERO, Some(&Measured::default()));
    let page = metrics.page();
    let measured: BTreeSet<String> =
        MEASURED.iter().map(|name| format!("{name}{{peer=\"site2\",site=\"site1\"}}")).collect();
    let added: BTreeSet<String> =
        series(&page).difference(&series(&before)).map(|series| series.to_string()).collect();
    assert_eq!(added, measured);
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
    observe(&mut metrics, 100, EventKind::Orphaned { job: job.id, processors: 6 });
    expect(
        &metrics,
        &[
            "stealgrid_sites{presence=\"gone\",site=\"site1\"} 1",
            "stealgrid_sites{presence=\"suspected\",site=\"site1\"} 0",
            "stealgrid_jobs_taken_over_total{site=\"site1\"} 1",
            "stealgrid_jobs_orphaned{site=\"site1\"} 1",
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
            "stealgrid_jobs_orphaned{site=\"site1\"} 0",
            "stealgrid_jobs_orphaned_total{site=\"site1\"} 1",
            "stealgrid_jobs_superseded_total{state=\"executing\",site=\"site1\"} 1",
            "stealgrid_jobs_superseded_total{state=\"dropped\",site=\"site1\"} 0",
        ],
    );
}

#[test]
fn an_external_strategy_that_is_not_asked_any_more_is_counted_by_its_cause() {
    let mut metrics = metrics(ONE);
    observe(&mut metrics, 7, EventKind::FellBack { cause: FallbackCause::Calls });
    let page = metrics.page();
    for expected in [
        "stealgrid_fallbacks_total{cause=\"calls\",site=\"site1\"} 1",
        "stealgrid_fallbacks_total{cause=\"nonsense\",site=\"site1\"} 0",
    ] {
        assert_eq!(line(&page, expected), expected);
    }
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
    observe(&mut metrics, 13, EventKind::Settled { job: job.id, to: TWO, transfer: 1 });

    let page = metrics.page();
    line(&page, "stealgrid_jobs{class=\"B\",state=\"queued\",site=\"site1\"} 1");
    line(&page, "stealgrid_handover_seconds_sum{site=\"site1\"} 2");
}

/// A transfer that becomes void is no event, and what is answered means nothing.
#[test]
fn jobs_leave_until_the_ledger_says_otherwise() {
    let mut metrics = metrics(ONE);
    let (small, big) = (job(1, 1), job(2, 4));
    let mut ledger = Ledger::new();
    for job in [small, big] {
        metrics.introduce(&job);
        observe(&mut metrics, 10, submitted(&job));
        let (record, transfer) = ledger.grant(TWO, job, Custody::default());
        ledger.apply(&record);
        let (job, to, transfer, cause) = (job.id, TWO, transfer.number, GrantCause::Request);
        observe(&mut metrics, 11, EventKind::Granted { job, to, transfer, hops: 1, cause, request: 1 });
    }
    let leaving = |metrics: &mut Metrics, ledger: &Ledger| {
        metrics.leaving(ledger.transfers_out());
        let page = metrics.page();
        ["A", "B"].map(|class| {
            let start = format!("stealgrid_jobs{{class=\"{class}\",state=\"leaving\"");
            line(&page, &start).rsplit(' ').next().unwrap().to_string()
        })
    };
    assert_eq!(leaving(&mut metrics, &ledger), ["1", "1"]);

    ledger.apply(&Record::Voided { to: TWO, number: 1 });
    assert_eq!(leaving(&mut metrics, &ledger), ["1", "0"]);
    observe(&mut metrics, 14, EventKind::Settled { job: small.id, to: TWO, transfer: 1 });
    line(&metrics.page(), "stealgrid_handover_seconds_count{site=\"site1\"} 0");
}

/// What a broker learns is shown from the beginning, and again after it restarted.
#[test]
fn a_broker_shows_what_it_has_learned_and_what_came_back() {
    let sites = [("site1".to_string(), 4), ("site2".to_string(), 8)];
    let grid = Grid::with_brokers(sites, [("broker".to_string(), None)]).unwrap();
    let broker = SiteId(3);
    let strategy = "opaque:ag".parse::<scheduler::StrategySpec>().unwrap().strategy;
    let mut metrics = Metrics::new(broker, Arc::new(grid), &strategy);
    let series = |peer: &str| format!("{OF_LEARNERS}{{peer=\"{peer}\",site=\"broker\"}}");
    assert!(line(&metrics.page(), &series("site2")).ends_with(" 0"));
    let [execution, queue, transfer, overhead] = [Span::ZERO; 4];
    let efficiency_millionths = -300_000;
    let kind = EventKind::Learned {
        job: JobId(1),
        of: TWO,
        execution,
        queue,
        transfer,
        overhead,
        efficiency_millionths,
    };
    observe(&mut metrics, 5, kind);
    observe(&mut metrics, 6, EventKind::Recalled { job: JobId(2), from: TWO });
    assert!(line(&metrics.page(), &series("site2")).ends_with(" -0.3"));
    assert!(line(&metrics.page(), "stealgrid_jobs_recalled_total").ends_with(" 1"));

    metrics.learned(&[(ONE, -0.3)]);
    assert!(line(&metrics.page(), &series("site1")).ends_with(" -0.3"));
    // Nobody else shows any.
    assert!(!self::metrics(ONE).page().contains(OF_LEARNERS));
}
