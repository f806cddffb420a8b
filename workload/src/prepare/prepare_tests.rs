//! Preparation on records made for one rule each, and against a naive twin.

use proptest::prelude::*;

use super::*;
use crate::trace::Format;

fn secs(secs: i64) -> Span {
    Span::from_secs(secs)
}

fn record(job: i64) -> Record {
    Record {
        job,
        submit: secs(job * 10),
        run_time: secs(60),
        requested_time: secs(100),
        allocated: 4,
        requested: 2,
        user: 1,
        queue: 3,
        ..Record::default()
    }
}

fn trace(records: Vec<Record>) -> Trace {
    Trace { records, ..Trace::empty("test.swf", Format::Swf) }
}

/// Missing estimates are run times, whatever the log has.
fn run_times() -> PrepareOptions {
    PrepareOptions { missing_estimate: MissingEstimate::RunTime, ..PrepareOptions::default() }
}

fn prepared(records: Vec<Record>, options: &PrepareOptions) -> Prepared {
    prepare(&trace(records), options, 100).unwrap()
}

#[test]
fn each_size_falls_back_to_the_other() {
    let records =
        vec![record(1), Record { requested: -1, ..record(2) }, Record { allocated: 0, ..record(3) }];
    let sizes = |size| {
        let prepared = prepared(records.clone(), &PrepareOptions { size, ..PrepareOptions::default() });
        let sizes: Vec<u32> = prepared.jobs.iter().map(|job| job.spec.processors).collect();
        (sizes, prepared.report.count(Rule::SizeFromOtherField))
    };

    assert_eq!(sizes(Size::Requested), (vec![2, 4, 2], 1));
    assert_eq!(sizes(Size::Allocated), (vec![4, 4, 2], 1));
    assert_eq!(sizes(Size::Descriptor), (vec![2, 4, 2], 3));
    let described = vec![Record { described: 9, ..record(1) }];
    let options = PrepareOptions { size: Size::Descriptor, ..PrepareOptions::default() };
    assert_eq!(prepared(described, &options).jobs[0].spec.processors, 9);
}

#[test]
fn overruns_are_stopped_extended_or_left() {
    let long = Record { run_time: secs(150), ..record(1) };
    let times = |overrun, estimate: &str| {
        let estimate = estimate.parse().unwrap();
        let options = PrepareOptions { overrun, estimate, ..PrepareOptions::default() };
        let job = prepared(vec![long], &options).jobs[0];
        (job.run_time, job.spec.requested)
    };

    assert_eq!(times(Overrun::Kill, "user"), (secs(100), secs(100)));
    assert_eq!(times(Overrun::Extend, "user"), (secs(150), secs(150)));
    assert_eq!(times(Overrun::AsIs, "user"), (secs(150), secs(100)));
    assert_eq!(times(Overrun::Kill, "exact"), (secs(100), secs(100)));
    assert_eq!(times(Overrun::AsIs, "exact"), (secs(150), secs(150)));
    assert_eq!(times(Overrun::Kill, "factor:2.5"), (secs(100), secs(250)));
}

#[test]
fn a_missing_estimate_becomes_the_run_time_where_other_jobs_have_one() {
    let prepared = prepared(
        vec![Record { requested_time: secs(-1), ..record(1) }, record(2)],
        &PrepareOptions::default(),
    );

    let estimates: Vec<Span> = prepared.jobs.iter().map(|job| job.spec.requested).collect();
    assert_eq!(estimates, [secs(60), secs(100)]);
    assert_eq!(prepared.report.count(Rule::EstimateFromRunTime), 1);
}

#[test]
fn a_log_without_estimates_gets_what_is_asked_for_by_name() {
    let records = vec![Record { requested_time: secs(-1), ..record(1) }];
    let told = |missing: &str, estimate: &str, overrun| {
        let (missing_estimate, estimate) = (missing.parse().unwrap(), estimate.parse().unwrap());
        let options = PrepareOptions { missing_estimate, estimate, overrun, ..PrepareOptions::default() };
        prepare(&trace(records.clone()), &options, 100).map(|prepared| {
            let times =
                prepared.jobs.iter().map(|job| (job.run_time, job.spec.requested)).collect::<Vec<_>>();
            (times, prepared.report)
        })
    };
    let refusal = "prepare test.swf: 1 of 1 jobs have no requested time; say what schedulers are told of them: the run time, \
                   --missing-estimate run-time (missing_estimate = \"run-time\"), or a time, as 24h; or drop them, with drop";
    for missing in ["run-time-of-some", "refuse"] {
        assert_eq!(told(missing, "user", Overrun::Kill).unwrap_err().to_string(), refusal, "{missing}");
    }
    assert!(told("refuse", "exact", Overrun::Kill).is_err());
    // Who tells schedulers of run times by name misses nothing.
    let (times, report) = told("run-time-of-some", "factor:2", Overrun::Kill).unwrap();
    assert_eq!((times, report.count(Rule::EstimateFromRunTime)), (vec![(secs(60), secs(120))], 1));
    let (times, report) = told("run-time", "user", Overrun::Kill).unwrap();
    assert_eq!((times, report.count(Rule::EstimateFromRunTime)), (vec![(secs(60), secs(60))], 1));
    let (times, report) = told("1h", "user", Overrun::Kill).unwrap();
    assert_eq!((times, report.count(Rule::EstimateMadeUp)), (vec![(secs(60), secs(3600))], 1));
    // Shorter than the job, which nobody stopped there.
    let (times, report) = told("30s", "user", Overrun::Kill).unwrap();
    assert_eq!((times, report.count(Rule::StoppedAtEstimate)), (vec![(secs(60), secs(30))], 0));
    assert_eq!(report.count(Rule::RunsPastEstimate), 1);
    let (times, _) = told("30s", "user", Overrun::Extend).unwrap();
    assert_eq!(times, [(secs(60), secs(60))]);
    let (times, report) = told("drop", "user", Overrun::Kill).unwrap();
    assert_eq!((times.len(), report.count(Rule::DroppedRequestedTime)), (0, 1));
}

#[test]
fn each_filter_drops_its_jobs_and_only_when_on() {
    let bad = [
        (Filter::JobId, Record { job: 0, ..record(1) }),
        (Filter::Submit, Record { submit: secs(-1), ..record(2) }),
        (Filter::RunTime, Record { run_time: Span::ZERO, ..record(3) }),
        (Filter::Processors, Record { requested: -1, allocated: 0, ..record(4) }),
        (Filter::RequestedTime, Record { requested_time: secs(-1), ..record(5) }),
        (Filter::User, Record { user: -1, ..record(6) }),
    ];
    for (filter, record) in bad {
        let on = PrepareOptions { filters: Filters::NONE.with(filter), ..run_times() };
        let off = PrepareOptions { filters: Filters::ALL.without(filter), ..run_times() };

        assert_eq!(prepared(vec![record], &on).report.count(Rule::of_filter(filter)), 1, "{filter:?}");
        assert_eq!(prepared(vec![record], &off).jobs.len(), 1, "{filter:?}");
    }
}

#[test]
fn unfiltered_jobs_still_hold_what_jobs_must() {
    let nothing = Record { job: 0, submit: secs(5), ..Record::default() };
    let options = PrepareOptions { filters: Filters::NONE, ..run_times() };

    let job = prepared(vec![nothing], &options).jobs[0];

    assert_eq!((job.spec.processors, job.run_time, job.spec.requested), (1, Span::ZERO, secs(1)));
}

#[test]
fn jobs_wider_than_the_widest_site_are_dropped_or_refused() {
    let trace = trace(vec![record(1), Record { requested: 9, ..record(2) }]);
    let drop = prepare(&trace, &PrepareOptions::default(), 8).unwrap();
    let refuse = PrepareOptions { too_wide: TooWide::Refuse, ..PrepareOptions::default() };

    assert_eq!((drop.jobs.len(), drop.report.count(Rule::DroppedTooWide)), (1, 1));
    let used = drop.report.uses[0];
    assert_eq!((used.processors, used.cut), (9, secs(60)), "the work that is left out is counted");
    assert_eq!(
        prepare(&trace, &refuse, 8).unwrap_err().to_string(),
        "prepare test.swf: job 2 needs 9 processors and the widest site has 8; use a wider site, or drop such \
         jobs with --too-wide drop (too_wide = \"drop\")"
    );
}

#[test]
fn two_jobs_of_one_number_are_refused() {
    let trace = trace(vec![record(1), record(2), Record { submit: secs(99), ..record(1) }]);

    let error = prepare(&trace, &PrepareOptions::default(), 8).unwrap_err();

    assert_eq!(error, PrepareError::DuplicateJob { trace: "test.swf".into(), job: 1 });
}

#[test]
fn the_origin_comes_from_the_field_that_was_chosen() {
    let origin = |origin: &str| {
        let options = PrepareOptions { origin: origin.parse().unwrap(), ..PrepareOptions::default() };
        prepare(&trace(vec![record(1)]), &options, 8).map(|prepared| prepared.jobs[0].spec.origin)
    };

    assert_eq!(origin("site:7"), Ok(SiteId(7)));
    assert_eq!(origin("queue"), Ok(SiteId(3)));
    assert!(matches!(origin("partition"), Err(PrepareError::Origin { value: -1, .. })));
}

proptest! {
    /// The twin applies the rules of the reference normalization, one whole pass each.
    #[test]
    fn preparation_agrees_with_one_pass_per_rule(
        values in proptest::collection::vec((-2..50_i64, -1..4_i64, -1..6_i32, -1..6_i32, -1..4_i64), 0..40),
    ) {
        let records: Vec<Record> = values
            .iter()
            .zip(1..)
            .map(|(&(submit, run, allocated, requested, limit), job)| Record {
                submit: secs(submit), run_time: secs(run), allocated, requested, requested_time: secs(limit), ..record(job)
            })
            .collect();
        let options = PrepareOptions { size: Size::Allocated, overrun: Overrun::Kill, ..run_times() };

        let mut naive = records.clone();
        for record in &mut naive {
            if record.allocated <= 0 {
                record.allocated = record.requested;
            }
        }
        naive.retain(|record| record.run_time > Span::ZERO && record.allocated > 0 && record.submit >= Span::ZERO);
        naive.retain(|record| record.allocated <= 4);
        for record in &mut naive {
            if record.requested_time <= Span::ZERO {
                record.requested_time = record.run_time;
            }
            record.run_time = record.run_time.min(record.requested_time);
        }
        naive.sort_by_key(|record| (record.submit, record.job));
        let naive: Vec<_> = naive.iter().map(|r| (r.job, r.submit, r.run_time, r.allocated, r.requested_time)).collect();

        let prepared = prepare(&trace(records), &options, 4).unwrap();

        let ours: Vec<_> = prepared.jobs.iter().map(|job| {
            let spec = job.spec;
            (spec.id.0 as i64, spec.submit.since(Time::ZERO), job.run_time, spec.processors as i32, spec.requested)
        }).collect();
        prop_assert_eq!(ours, naive);
        prop_assert_eq!(prepared.report.kept + prepared.report.dropped(), prepared.report.read);
    }
}
