//! GWF as the archive publishes it, as tools write it, and there and back.

use super::*;
use crate::read_from;

fn read(text: &str) -> Trace {
    let trace = read_from("test.gwf", text.as_bytes()).unwrap();
    assert_eq!(trace.format, Format::Gwf);
    trace
}

fn line(job: &str, submit: i64, user: &str, origin: &str, ran: &str) -> String {
    let rest = "UNITARY\t-1".to_string() + &"\t-1".repeat(9);
    format!(
        "{job}\t{submit}\t5\t60\t4\t59.5\t-1\t8\t120\t-1\t1\t{user}\t2\t3\t1\t1\t{origin}\t{ran}\t{rest}\n"
    )
}

#[test]
fn a_line_of_29_columns_is_read_without_a_header() {
    let trace = read(&line("7", 100, "3", "1", "2"));

    let record = trace.records[0];
    assert_eq!((record.job, record.submit, record.run_time), (7, Span::from_secs(100), Span::from_secs(60)));
    assert_eq!((record.allocated, record.requested, record.user), (4, 8, 3));
    assert_eq!(record.requested_time, Span::from_secs(120));
    assert_eq!((record.origin, record.executed), (1, 2));
}

#[test]
fn columns_are_matched_by_name_when_there_is_a_header() {
    let trace = read(
        "# a comment\nJobID RunTime ReqTime: SubmitTime NProcs ReqNProcs OrigSiteID extra UserID\n1 60 120 10 4 8 2 x 9\n",
    );

    let record = trace.records[0];
    assert_eq!((record.submit, record.run_time), (Span::from_secs(10), Span::from_secs(60)));
    assert_eq!((record.requested_time, record.origin, record.user), (Span::from_secs(120), 2, 9));
    assert_eq!(record.executed, -1);
}

#[test]
fn names_are_numbered_and_sites_from_one() {
    let text = line("j1", 1, "anna", "delft", "leiden")
        + &line("j2", 2, "ben", "leiden", "delft")
        + &line("j3", 3, "anna", "delft", "delft");
    let trace = read(&text);

    let sites: Vec<(i32, i32)> =
        trace.records.iter().map(|record| (record.origin, record.executed)).collect();
    assert_eq!(sites, [(1, 2), (2, 1), (1, 1)]);
    assert_eq!(trace.records[0].user, trace.records[2].user);
    assert_ne!(trace.records[0].user, trace.records[1].user);
    assert_eq!(trace.repairs.count(Repair::NameNumbered), 7);
    assert!(trace.header.lines.iter().any(|line| line == b"; Note: site 2 is leiden"));
}

#[test]
fn names_never_get_the_number_of_somebody_else() {
    let text = line("1000001", 1, "1000001", "1", "b")
        + &line("x", 2, "anna", "a", "1")
        + &line("2", 3, "ben", "b", "a");
    let trace = read(&text);

    let jobs: Vec<i64> = trace.records.iter().map(|record| record.job).collect();
    assert_eq!(jobs, [1_000_001, 1_000_002, 2]);
    let users: Vec<i32> = trace.records.iter().map(|record| record.user).collect();
    assert_eq!(users, [1_000_001, 1_000_002, 1_000_003]);
    let sites: Vec<(i32, i32)> =
        trace.records.iter().map(|record| (record.origin, record.executed)).collect();
    assert_eq!(sites, [(1, 2), (3, 1), (2, 3)]);
    assert_eq!(trace.repairs.count(Repair::BadJobNumber), 0);
}

#[test]
fn commas_of_a_header_are_commas_of_all_lines() {
    let trace = read(
        "JobID,SubmitTime,WaitTime,RunTime,NProcs,AverageCPUTimeUsed,Used Memory,ReqNProcs,ReqTime:,ReqMemory,Status,UserID\n\
         1,1136070024,10,100,1,90,98652,1,259200,-1,1,U1\n",
    );

    let record = trace.records[0];
    assert_eq!((record.run_time, record.requested_time), (Span::from_secs(100), Span::from_secs(259_200)));
    assert_eq!((record.used_memory, record.user, record.origin), (98_652, 1_000_001, -1));
    assert_eq!(trace.repairs.count(Repair::MissingColumns), 1);
}

#[test]
fn a_header_without_what_makes_a_job_is_refused() {
    for (header, said) in [
        ("JobID RunTime NProcs", "no column SubmitTime"),
        ("JobID SubmitTime NProcs", "no column RunTime"),
        ("JobID SubmitTime RunTime", "no column NProcs or ReqNProcs"),
    ] {
        let error = read_from("t", format!("{header}\n1 2 3\n").as_bytes()).unwrap_err();
        assert!(error.to_string().contains(said), "{error}");
    }
    let error = read_from("t", &b"JobID SubmitTime RunTime NProcs\n1 2 3\n"[..]).unwrap_err();
    assert!(error.to_string().contains("line 2 has 3 columns, at least 4 are needed"), "{error}");
}

#[test]
fn unix_submit_times_are_shifted() {
    let trace = read(&(line("1", 1_100_000_005, "1", "1", "1") + &line("2", 1_100_000_000, "1", "1", "1")));

    assert_eq!(trace.records[0].submit, Span::from_secs(5));
    assert_eq!(trace.repairs.count(Repair::EpochShifted), 1);
}

#[test]
fn a_bad_field_is_refused_with_its_place() {
    let error = read_from("test.gwf", line("1", 1, "1", "1", "1").replace("\t60\t", "\tsixty\t").as_bytes())
        .unwrap_err();

    assert_eq!(
        error.to_string(),
        "read trace test.gwf: line 1: field 4 (RunTime) is `sixty`: not a number; correct it, or write -1 for unknown"
    );
}

#[test]
fn a_trace_written_is_read_back_the_same() {
    for start in ["", "# UnixStartTime: 1100000000\n"] {
        let epoch = if start.is_empty() { 0 } else { 1_100_000_000 };
        let original = read(
            &(start.to_string()
                + &line("1", epoch + 10, "3", "1", "2")
                + &line("2", epoch + 20, "4", "2", "-1")),
        );
        let mut written = Vec::new();
        write_trace(&original, &mut written).unwrap();

        let again = read_from("test.gwf", &written[..]).unwrap();

        assert_eq!(again.records, original.records);
        let columns: Vec<usize> = written
            .split(|&byte| byte == b'\n')
            .filter(|line| line.first().is_some_and(u8::is_ascii_digit))
            .map(columns)
            .collect();
        assert_eq!(columns, [29, 29]);
    }
}

#[test]
fn the_comma_separated_variant_is_read_and_its_dependencies_counted() {
    let text = "WorkflowID, JobID , SubmitTime, RunTime , NProcs , ReqNProcs , Dependencies\n\
                3, 1, 0, 60, 1, 2, \n3, 2, 5, 30, 1, 1, 1\n3, 3, 5, 30, 1, 1, \"[1, 2]\"\n";
    let trace = read_from("test.gwf", text.as_bytes()).unwrap();

    assert_eq!(trace.format, Format::OpenDc);
    assert_eq!(trace.records.len(), 3);
    assert_eq!((trace.records[0].requested, trace.records[0].run_time), (2, Span::from_secs(60)));
    assert_eq!(trace.repairs.count(Repair::DependencyIgnored), 2);
}

#[test]
fn a_comma_separated_header_without_a_needed_column_is_refused() {
    let error = read_from("t", &b"WorkflowID,JobID,SubmitTime\n1,1,1\n"[..]).unwrap_err();

    assert!(error.to_string().contains("no column RunTime"), "{error}");
}
