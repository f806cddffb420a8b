//! What the reader makes of lines as real logs have them.

use scheduler::Span;

use crate::repair::Repair;
use crate::swf::read_trace;
use crate::trace::Trace;

const PLAIN: &str = "1 10 5 60 4 -1 -1 4 120 -1 1 3 1 -1 1 1 -1 -1";

fn read(text: &str) -> Trace {
    read_trace("test.swf", text.as_bytes(), &crate::Limits::default()).unwrap()
}

fn refusal(text: &str) -> String {
    read_trace("test.swf", text.as_bytes(), &crate::Limits::default()).unwrap_err().to_string()
}

#[test]
fn a_plain_line_is_read_field_by_field() {
    let trace = read("; MaxProcs: 4\n1 10 5 60 4 59.5 100 8 120 200 1 3 7 9 2 6 11 30\n");

    let record = trace.records[0];
    assert_eq!((record.job, record.submit, record.wait), (1, Span::from_secs(10), Span::from_secs(5)));
    assert_eq!((record.run_time, record.allocated), (Span::from_secs(60), 4));
    assert_eq!((record.cpu_time, record.used_memory), (Span::from_micros(59_500_000), 100));
    assert_eq!((record.requested, record.requested_time), (8, Span::from_secs(120)));
    assert_eq!((record.requested_memory, record.status, record.user, record.group), (200, 1, 3, 7));
    assert_eq!((record.executable, record.queue, record.partition), (9, 2, 6));
    assert_eq!((record.preceding, record.think_time), (11, Span::from_secs(30)));
    let noted: Vec<Repair> = trace.repairs.iter().map(|row| row.repair).collect();
    assert_eq!(noted, [Repair::ProcessorsDiffer]);
}

#[test]
fn tabs_blank_lines_and_windows_line_ends_do_not_matter() {
    let tabs = PLAIN.replace(' ', "\t");
    let trace = read(&format!("; MaxProcs: 4\r\n\r\n  {tabs}\t\r\n\n"));

    assert_eq!(trace.records, read(&format!(";\n{PLAIN}")).records);
    assert_eq!(trace.header.lines, [b"; MaxProcs: 4".to_vec()]);
}

#[test]
fn columns_beyond_the_eighteenth_are_ignored_and_counted() {
    let trace = read(&format!(";\n{PLAIN} 100 text 7.5\n{PLAIN}\n"));

    assert_eq!(trace.records[0], trace.records[1]);
    assert_eq!(trace.repairs.count(Repair::ExtraColumns), 1);
}

#[test]
fn logs_of_21_columns_have_a_size_in_the_last_and_processors_beyond_the_machine_are_counted() {
    let wide = PLAIN.replace(" 4 -1 -1 4 ", " 589824 -1 -1 4 ");
    let trace = read(&format!("; MaxProcs: 9408\n{PLAIN} 100 90 frontier:excl:8x112\n{wide} -1 -1 7.5\n"));

    let sizes: Vec<i32> = trace.records.iter().map(|record| record.described).collect();
    assert_eq!(sizes, [8, -1]);
    let noted: Vec<_> = trace.repairs.iter().filter(|row| row.repair == Repair::BeyondMachine).collect();
    assert_eq!(noted.len(), 1);
    assert_eq!((noted[0].count, noted[0].first_line), (1, 3));
}

#[test]
fn missing_trailing_columns_are_unknown() {
    let trace = read(";\n1 10 5 60 4 -1 -1 4 120\n");

    assert_eq!(trace.records[0].user, -1);
    assert_eq!(trace.repairs.count(Repair::MissingColumns), 1);
}

#[test]
fn a_line_cut_short_is_refused_with_its_place_and_a_remedy() {
    assert_eq!(
        refusal(&format!(";\n{PLAIN}\n2 20 1 3\n")),
        "read trace test.swf: line 3 has 4 columns, at least 9 are needed; complete or remove the line \
         (the file may be cut short)"
    );
}

#[test]
fn a_field_that_is_no_number_is_refused_with_its_name_and_value() {
    assert_eq!(
        refusal(&PLAIN.replace("60 4", "60 four")),
        "read trace test.swf: line 1: field 5 (allocated processors) is `four`: not a number; correct it, \
         or write -1 for unknown"
    );
    assert!(refusal(&PLAIN.replace("60 4", "60 5000000000")).contains("field 5"));
    assert!(refusal(&PLAIN.replace("60 4", "60 5000000000")).contains("too large"));
}

#[test]
fn labels_that_are_too_large_get_numbers_that_no_job_has() {
    let trace = read(
        ";\n1 0 10 100 4 -1 -1 4 200 -1 1 4294967294 4294967294 1 1 1 -1 -1\n\
         2 50 10 100 8 -1 -1 8 200 -1 1 1000001 anna 1 1 1 -1 -1\n\
         3 60 10 100 8 -1 -1 8 200 -1 1 4294967294 1 1 1 -99999999999 -1 -1\n",
    );

    let users: Vec<i32> = trace.records.iter().map(|record| record.user).collect();
    assert_eq!(users, [1_000_002, 1_000_001, 1_000_002]);
    let groups: Vec<i32> = trace.records.iter().map(|record| record.group).collect();
    assert_eq!(groups, [1_000_001, 1_000_002, 1]);
    assert_eq!(trace.repairs.count(Repair::LabelNumbered), 5);
    assert!(trace.header.lines.iter().any(|line| line == b"; Note: user 1000002 is 4294967294"));
}

#[test]
fn what_no_run_needs_refuses_nothing() {
    // Wait, CPU time, used memory, requested memory, status, preceding job and think time.
    let trace = read(
        ";\n1 10 ? 60 4 5,5 18446744073709551615 4 120 1e300 ok 3 1 -1 1 1 none 99999999999999999999\n\
         2 10 5 60 4 -1 -1 4 120 -1 9999999999 3 1 -1 1 1 -1 -1\n",
    );

    let record = trace.records[0];
    assert_eq!((record.wait, record.cpu_time), (Span::from_secs(-1), Span::from_secs(-1)));
    assert_eq!((record.used_memory, record.requested_memory, record.status), (-1, -1, -1));
    assert_eq!((record.preceding, record.think_time), (-1, Span::from_secs(-1)));
    assert_eq!((record.user, trace.records[1].status), (3, -1));
    assert_eq!(trace.repairs.count(Repair::FieldUnread), 8);
    for needed in ["x 10 5 60 4 -1 -1 4 120", "1 x 5 60 4 -1 -1 4 120", "1 10 5 x 4 -1 -1 4 120"] {
        assert!(refusal(needed).contains("not a number"), "{needed}");
    }
    for needed in ["1 10 5 60 4 -1 -1 x 120", "1 10 5 60 4 -1 -1 4 x"] {
        assert!(refusal(needed).contains("not a number"), "{needed}");
    }
}

#[test]
fn bursts_of_a_job_that_has_a_line_are_left_out() {
    let trace = read(
        "; MaxProcs: 16\n1 0 10 100 4 -1 -1 4 600 -1 1 1 1 1 1 1 -1 -1\n1 0 10 40 4 -1 -1 4 600 -1 2 1 1 1 1 1 -1 -1\n\
         1 -1 50 60 4 -1 -1 4 600 -1 3 1 1 1 1 1 -1 -1\n2 30 0 50 8 -1 -1 8 100 -1 1 2 1 1 1 1 -1 -1\n",
    );

    let jobs: Vec<(i64, Span)> = trace.records.iter().map(|record| (record.job, record.run_time)).collect();
    assert_eq!(jobs, [(1, Span::from_secs(100)), (2, Span::from_secs(50))]);
    assert_eq!(trace.repairs.count(Repair::BurstLeftOut), 2);
    assert_eq!(trace.repairs.count(Repair::NegativeSubmit), 0);
}

#[test]
fn bursts_of_a_job_without_a_line_are_joined() {
    let trace = read(
        "; MaxProcs: 16\n1 0 10 40 4 7 -1 4 600 -1 2 1 1 1 1 1 -1 -1\n2 30 0 50 8 -1 -1 8 100 -1 3 2 1 1 1 1 -1 -1\n\
         1 -1 50 60 4 8 -1 4 600 -1 2 1 1 1 1 1 -1 -1\n1 -1 5 1 5 -1 -1 4 600 -1 4 1 1 1 1 1 -1 -1\n\
         -1 60 0 5 8 -1 -1 8 100 -1 3 2 1 1 1 1 -1 -1\n-1 70 0 5 8 -1 -1 8 100 -1 3 2 1 1 1 1 -1 -1\n",
    );

    let [first, second, ..] = trace.records[..] else { panic!("two jobs") };
    assert_eq!((first.job, first.submit, first.wait), (1, Span::ZERO, Span::from_secs(10)));
    assert_eq!((first.run_time, first.cpu_time), (Span::from_secs(101), Span::from_secs(15)));
    assert_eq!((first.allocated, first.requested, first.status), (5, 4, 0));
    assert_eq!((second.job, second.run_time, second.status), (2, Span::from_secs(50), 3));
    // Numbers that are none make no job of two.
    assert_eq!(trace.records.len(), 4);
    let count = |repair| trace.repairs.count(repair);
    assert_eq!((count(Repair::BurstJoined), count(Repair::BurstLeftOut)), (2, 0));
    assert_eq!((count(Repair::ProcessorsDiffer), count(Repair::BadJobNumber)), (1, 2));
    assert_eq!(count(Repair::NegativeSubmit), 0);
}

#[test]
fn nothing_follows_a_refused_line() {
    let text = format!("1 2 x\n{PLAIN}\n");
    let mut reader = super::Reader::new("test.swf", text.as_bytes());

    assert!(reader.next().unwrap().is_err());
    assert!(reader.next().is_none());
}

#[test]
fn awkward_values_are_kept_and_counted() {
    let trace = read(
        ";\n1 100 -1 -1 4 -1 -1 -1 -1 -1 1 1 1 1 1 1 -1 -1\n\
         2 50 -1 0 -1 -1 -1 4 10 -1 1 1 1 1 1 1 -1 -1\n\
         3 -1 -1 20 -1 -1 -1 -1 10 -1 1 1 1 1 1 1 -1 -1\n\
         0 60 -1 20 2.5 -1 -1 2 30 -1 1 1 1 1 1 1 -1 -1\n",
    );

    let count = |repair| trace.repairs.count(repair);
    assert_eq!(count(Repair::MissingRunTime), 1);
    assert_eq!(count(Repair::ZeroRunTime), 1);
    assert_eq!(count(Repair::OnlyAllocated), 1);
    assert_eq!(count(Repair::OnlyRequested), 1);
    assert_eq!(count(Repair::MissingProcessors), 1);
    assert_eq!(count(Repair::MissingEstimate), 1);
    assert_eq!(count(Repair::RanPastEstimate), 1);
    assert_eq!(count(Repair::OutOfOrder), 2);
    assert_eq!(count(Repair::NegativeSubmit), 1);
    assert_eq!(count(Repair::BadJobNumber), 1);
    assert_eq!(count(Repair::FractionDropped), 1);
    assert_eq!(trace.records[3].allocated, 2);
}

#[test]
fn a_missing_header_is_counted() {
    assert_eq!(read(PLAIN).repairs.count(Repair::MissingHeader), 1);
}

#[test]
fn unix_submit_times_are_shifted_by_the_declared_start() {
    let epoch = PLAIN.replace("1 10 ", "1 1000000010 ");
    let trace = read(&format!("; UnixStartTime: 1000000000\n{epoch}\n"));

    assert_eq!(trace.records[0].submit, Span::from_secs(10));
    assert_eq!(trace.repairs.count(Repair::EpochShifted), 1);
}

#[test]
fn unix_submit_times_without_a_start_are_shifted_by_the_earliest() {
    let late = PLAIN.replace("1 10 ", "1 1000000010 ");
    let early = PLAIN.replace("1 10 ", "2 1000000003 ");
    let trace = read(&format!("; UnixStartTime: 0\n{late}\n{early}\n"));

    assert_eq!(trace.records[0].submit, Span::from_secs(7));
    assert_eq!(trace.records[1].submit, Span::ZERO);
    assert_eq!(trace.header.unix_start_time, Some(1_000_000_003));
}
