//! Mutants: a run that is well, and each check with a run that it must catch.

use super::*;

const RULE: Rule = Rule {
    late_max_us: 2_000_000,
    kills: false,
    may_miss_wider_than: None,
    loses_events: false,
    may_repeat: false,
};
const LEASE: Rule = Rule { may_repeat: true, ..RULE };
const SITES: [u32; 2] = [4, 8];

const LOG: &str = "; UnixStartTime: 0\n\
                   1 0 -1 10 3 -1 -1 3 20 -1 1 1 1 1 1 -1 -1 -1\n\
                   2 5 -1 10 3 -1 -1 -1 20 -1 1 1 1 1 1 -1 -1 -1\n\
                   3 5 -1 10 8 -1 -1 8 -1 -1 1 1 1 1 1 -1 -1 -1\n";

const JOBS: &str = "job_id,workload_name,submission_time,requested_number_of_resources,requested_time,success,\
                    final_state,starting_time,execution_time,finish_time,waiting_time,turnaround_time,exec_site\n\
                    1,log,0.000000,3,20.000000,1,COMPLETED_SUCCESSFULLY,0.000000,10.500000,10.500000,0.000000,10.500000,1\n\
                    2,log,5.000000,3,20.000000,1,COMPLETED_SUCCESSFULLY,10.500000,10.000000,20.500000,5.500000,15.500000,1\n\
                    3,log,5.000000,8,10.000000,1,COMPLETED_SUCCESSFULLY,6.000000,10.000000,16.000000,1.000000,11.000000,2\n";

const EXECUTIONS: &str =
    "job_id,exec_site,requested_number_of_resources,starting_time,at_least_until,at_most_until,end\n";
const FAULTS: &str = "job_id,final_state,taken_over,superseded,ran_twice\n";

fn events(text: &[(u64, usize, i64, i64)]) -> Vec<Happened> {
    let both = |&(job, site, from, until): &(u64, usize, i64, i64)| {
        let processors = if job == 3 { 8 } else { 3 };
        let event = |is_end, at_us| Happened { is_end, is_part: false, processors, job, site, at_us };
        [event(false, from), event(true, until)]
    };
    text.iter().flat_map(both).collect()
}

fn left() -> Left {
    Left {
        jobs: JOBS.to_string(),
        executions: String::new(),
        faults: String::new(),
        manifest: serde_json::json!({"status": "complete", "jobs": {"completed": 3, "killed": 0}}),
        events: events(&[
            (1, 1, 0, 10_500_000),
            (2, 1, 10_500_000, 20_500_000),
            (3, 2, 6_000_000, 16_000_000),
        ]),
    }
}

/// A second execution of job 3 that ended, and is reported.
fn repeated() -> Left {
    let mut left = left();
    left.executions = format!("{EXECUTIONS}3,2,8,20.000000,30.000000,30.000000,repeated\n");
    left.faults = format!("{FAULTS}3,completed,1,0,yes\n");
    left.events.extend(events(&[(3, 2, 20_000_000, 30_000_000)]));
    left
}

fn may_miss(wider_than: u32) -> Rule {
    Rule { may_miss_wider_than: Some(wider_than), ..RULE }
}

fn audited(left: &Left, rule: Rule) -> Audited {
    audit(&jobs_of(LOG, None).unwrap(), &SITES, left, rule)
}

/// What is found if the text of `jobs.csv` is another.
fn doctored(from: &str, to: &str) -> Vec<&'static str> {
    assert!(JOBS.contains(from), "{from}");
    checks(&Left { jobs: JOBS.replace(from, to), ..left() }, RULE)
}

fn checks(left: &Left, rule: Rule) -> Vec<&'static str> {
    audited(left, rule).findings.iter().map(|finding| finding.check).collect()
}

/// Job 3 has seven processors of the second site and one of the first.
fn in_parts(until: i64) -> Left {
    let mut left = left();
    left.events.iter_mut().filter(|event| event.job == 3).for_each(|event| event.processors = 7);
    let part = |is_end, at_us| Happened { is_end, is_part: true, processors: 1, job: 3, site: 1, at_us };
    left.events.extend([part(false, 6_000_000), part(true, until)]);
    left
}

#[test]
fn mutant_a_job_in_parts_that_ends_without_one_of_them_is_found() {
    assert_eq!(audited(&in_parts(16_000_000), RULE), Audited { ended: 3, ..Audited::default() });
    assert_eq!(checks(&in_parts(9_000_000), RULE), ["parts"], "it was stopped");
    let mut crashed = in_parts(16_000_000);
    crashed.events.pop();
    assert_eq!(checks(&crashed, RULE), ["parts"]);
    assert_eq!(
        checks(&crashed, Rule { loses_events: true, ..RULE }),
        [""; 0],
        "a journal was lost, with what it said of the part"
    );
    let mut wide = in_parts(16_000_000);
    wide.events.iter_mut().filter(|event| event.is_part).for_each(|event| event.processors = 2);
    assert_eq!(checks(&wide, RULE), ["capacity"; 2], "of four jobs 1 and 2 have three");
}

/// The first part of job 3 ended although another was lost, and it restarted: its first end is none.
#[test]
fn mutant_an_end_that_is_not_taken_back_is_found() {
    let mut left = left();
    left.executions = format!("{EXECUTIONS}3,2,8,5.500000,5.900000,5.900000,interrupted\n");
    left.events.splice(0..0, events(&[(3, 2, 5_500_000, 5_900_000)]));
    assert_eq!(checks(&left, RULE), ["unreported"]);
    let all = left.events.clone();
    left.events.truncate(2);
    take_back(&mut left.events, 3, 1);
    assert_eq!(left.events.len(), 2, "another site said so");
    take_back(&mut left.events, 3, 2);
    left.events.extend(&all[2..]);
    assert_eq!(checks(&left, RULE), [""; 0]);
}

#[test]
fn a_run_that_is_well_passes() {
    let audited = audited(&left(), RULE);
    assert_eq!(audited, Audited { ended: 3, ..Audited::default() });
}

#[test]
fn a_log_is_read_by_its_columns() {
    let jobs = jobs_of(LOG, Some(2)).unwrap();
    let job =
        Job { id: 2, submit_us: 5_000_000, processors: 3, run_us: 10_000_000, requested_us: 20_000_000 };
    assert_eq!(jobs[1..], [job]);
    assert_eq!(jobs_of("1 0 -1 9 1 -1 -1 1 5 -1 1 1 1 1 1 -1 -1 -1", None).unwrap()[0].run_us, 5_000_000);
    for (row, words) in [
        ("1 0 -1 -1 3 -1 -1 3 20 -1 1 1 1 1 1 -1 -1 -1", "without number, processors or run time"),
        ("1 0 -1 1.5 3 -1 -1 3 20 -1 1 1 1 1 1 -1 -1 -1", "whole numbers alone"),
        ("1 0 -1", "fewer than 18"),
        (
            "1 9 -1 1 3 -1 -1 3 20 -1 1 1 1 1 1 -1 -1 -1\n2 8 -1 1 3 -1 -1 3 20 -1 1 1 1 1 1 -1 -1 -1",
            "order of submission",
        ),
    ] {
        let reason = jobs_of(row, None).unwrap_err();
        assert!(reason.contains(words), "{reason}");
    }
}

#[test]
fn a_missing_job_is_caught() {
    let row = JOBS.lines().nth(3).unwrap().to_string() + "\n";
    let found = doctored(&row, "");
    assert!(found.contains(&"missing") && found.contains(&"manifest"), "{found:?}");
    // Nor is it well if the manifest counts it, unless the round may miss jobs and the run says that it is partial.
    let mut left = Left { jobs: JOBS.replace(&row, ""), ..left() };
    left.events.retain(|event| event.job != 3);
    left.manifest = serde_json::json!({"status": "complete", "jobs": {"completed": 2, "waiting": 1}});
    assert_eq!(checks(&left, RULE), ["missing"]);
    assert_eq!(checks(&left, may_miss(0)), ["missing"]);
    left.manifest["status"] = "partial".into();
    assert_eq!(checks(&left, RULE), ["missing"]);
    assert_eq!(audited(&left, may_miss(0)).missing, 1);
    assert_eq!(audited(&left, may_miss(7)).missing, 1);
    assert_eq!(checks(&left, may_miss(8)), ["missing"]);
    left.manifest["jobs"]["waiting"] = 0.into();
    assert_eq!(checks(&left, may_miss(0)), ["manifest"]);
}

#[test]
fn a_killed_job_is_missing_unless_crashes_kill_and_it_is_reported() {
    let row = JOBS.lines().nth(3).unwrap().to_string() + "\n";
    let mut left = Left { jobs: JOBS.replace(&row, ""), ..left() };
    left.events.retain(|event| event.job != 3);
    left.manifest = serde_json::json!({"status": "complete", "jobs": {"completed": 2, "killed": 1}});
    let kills = Rule { kills: true, ..RULE };
    assert!(checks(&left, kills).contains(&"missing"));
    left.faults = format!("{FAULTS}3,killed,0,0,no\n");
    assert_eq!(checks(&left, kills), [""; 0]);
    assert!(checks(&left, RULE).contains(&"missing"));
}

#[test]
fn a_doubled_job_is_caught() {
    let row = JOBS.lines().nth(1).unwrap();
    let twice = format!("{row}\n{row}");
    assert!(doctored(row, &twice).contains(&"doubled"));
}

#[test]
fn a_site_over_its_capacity_is_caught() {
    let moved = JOBS.replace(
        "10.500000,10.000000,20.500000,5.500000,15.500000,1",
        "10.499999,10.000001,20.500000,5.499999,15.500000,1",
    );
    assert_ne!(moved, JOBS);
    let found = checks(&Left { jobs: moved, ..left() }, RULE);
    assert!(found.contains(&"capacity"), "{found:?}");
    // By an execution that does not count, too, and up to its end alone.
    let with = |until: &str| {
        let row = format!("1,1,3,5.000000,{until},{until},interrupted\n");
        let mut left = left();
        left.executions = format!("{EXECUTIONS}{row}");
        left.jobs = left.jobs.replace(
            "0.000000,10.500000,10.500000,0.000000,10.500000,1",
            "16.000000,10.000000,26.000000,16.000000,26.000000,2",
        );
        checks(&left, RULE)
    };
    assert!(!with("10.500000").contains(&"capacity"), "{:?}", with("10.500000"));
    assert!(with("10.500001").contains(&"capacity"));
}

#[test]
fn an_early_start_is_caught() {
    let found = doctored(
        "6.000000,10.000000,16.000000,1.000000,11.000000",
        "4.999999,10.000000,14.999999,-0.000001,9.999999",
    );
    assert!(found.contains(&"early"), "{found:?}");
}

#[test]
fn a_wrong_run_time_is_caught() {
    let short = doctored(
        "6.000000,10.000000,16.000000,1.000000,11.000000",
        "6.000001,9.999999,16.000000,1.000001,11.000000",
    );
    assert!(short.contains(&"run time"), "{short:?}");
    let long = doctored(
        "6.000000,10.000000,16.000000,1.000000,11.000000",
        "6.000000,12.000001,18.000001,1.000000,13.000001",
    );
    assert!(long.contains(&"run time"), "{long:?}");
    assert!(doctored("1.000000,11.000000", "1.000000,11.000001").contains(&"sums"));
}

#[test]
fn an_unknown_job_or_site_is_caught() {
    assert!(doctored("\n3,", "\n4,").contains(&"unknown"));
    assert!(doctored("11.000000,2", "11.000000,3").contains(&"unknown"));
    let mut left = left();
    left.executions = format!("{EXECUTIONS}9,1,3,5.000000,6.000000,6.000000,interrupted\n");
    assert!(checks(&left, RULE).contains(&"unknown"));
}

#[test]
fn a_job_that_is_not_the_one_of_the_log_is_caught() {
    assert!(doctored("3,log,5.000000,8,", "3,log,5.000000,7,").contains(&"changed"));
    assert!(doctored("3,log,5.000000,8,10.0", "3,log,5.000000,8,11.0").contains(&"changed"));
    assert!(doctored("1,COMPLETED_SUCCESSFULLY", "0,REJECTED").contains(&"state"));
    assert!(doctored("15.500000,1", "15.5,1").contains(&"table"));
}

#[test]
fn a_second_execution_must_be_reported_and_allowed() {
    assert_eq!(checks(&repeated(), LEASE), [""; 0]);
    assert_eq!(audited(&repeated(), LEASE).repeated, 1);
    assert!(checks(&repeated(), RULE).contains(&"repeated"));

    let unreported = Left { faults: String::new(), ..repeated() };
    assert!(checks(&unreported, LEASE).contains(&"unreported"));
    let wrong = Left { faults: format!("{FAULTS}3,completed,1,0,perhaps\n"), ..repeated() };
    assert_eq!(checks(&wrong, LEASE), ["unreported"], "it did, by the event log");
    let nobody = Left { faults: format!("{FAULTS}3,completed,0,0,yes\n"), ..repeated() };
    assert_eq!(checks(&nobody, LEASE), ["repeated"]);
}

#[test]
fn the_event_log_must_say_the_same() {
    let mut more = left();
    more.events.extend(events(&[(1, 2, 20_000_000, 30_000_000)]));
    assert!(checks(&more, LEASE).contains(&"events"));
    let mut less = left();
    less.events.truncate(4);
    assert!(checks(&less, RULE).contains(&"events"));
}

#[test]
fn many_findings_are_counted() {
    let findings = audited(&Left { jobs: String::new(), events: Vec::new(), ..left() }, RULE).findings;
    assert!(findings.iter().filter(|finding| finding.check == "missing").count() == 3);
    let log: String = (1..=20).map(|id| format!("{id} 0 -1 1 1 -1 -1 1 1 -1 1 1 1 1 1 -1 -1 -1\n")).collect();
    let empty = Left { jobs: String::new(), events: Vec::new(), ..left() };
    let findings = audit(&jobs_of(&log, None).unwrap(), &SITES, &empty, RULE).findings;
    let missing: Vec<_> = findings.iter().filter(|finding| finding.check == "missing").collect();
    assert_eq!((missing.len(), missing[TOLD_MAX].what.as_str()), (TOLD_MAX + 1, "and 15 more"));
}

/// The audit would believe what it should judge if it used the code that wrote it.
#[test]
fn it_shares_nothing_with_what_it_judges() {
    let source = include_str!("../audit.rs");
    let ours = [
        "crate::",
        "super::",
        "coordinator::",
        "experiments::",
        "operation::",
        "analysis::",
        "links::",
        "claims::",
        "node::",
        "protocol::",
    ];
    let more = ["scheduler::", "simulator::", "workload::", "stealgrid_"];
    for name in ours.iter().chain(&more) {
        assert!(!source.contains(name), "{name} is used");
    }
    let imports: Vec<&str> = source.lines().filter_map(|line| line.strip_prefix("use ")).collect();
    assert!(imports.iter().all(|line| line.starts_with("std::") || line.starts_with("serde")), "{imports:?}");
}
