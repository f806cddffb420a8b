//! A dump with one of everything, small ones of each oddity, and lines of any bytes.

use proptest::prelude::*;

use super::*;
use crate::prepare::{PrepareOptions, prepare};
use crate::repair::Repairs;
use crate::{read_from, swf};

const SAMPLE: &str = include_str!("sample.txt");
const HEADER: &str = "JobID|Submit|Start|End|ElapsedRaw|Timelimit|AllocCPUS|ReqCPUS|State|User";

fn read(text: &str) -> Trace {
    let trace = read_from("dump.txt", text.as_bytes()).unwrap();
    assert_eq!(trace.format, Format::Sacct);
    trace
}

fn refused(text: &str) -> String {
    read_from("dump.txt", text.as_bytes()).unwrap_err().to_string()
}

fn dump(lines: &[&str]) -> Trace {
    read(&format!("{HEADER}\n{}\n", lines.join("\n")))
}

#[test]
fn the_rest_of_an_array_is_told_by_its_bracket_whatever_is_in_that() {
    for rest in ["200_[1-9%2]", "200_[1,3,5,...%4]", "200_[1,3,5,...]", "200_[1,3,..."] {
        let line = |job: &str| {
            format!(
                "{job}|2024-03-01T00:00:00|2024-03-01T00:01:00|2024-03-01T01:01:00|3600|02:00:00|4|4|COMPLETED|u"
            )
        };
        let trace = dump(&[&line("100"), &line(rest), &line("101")]);
        assert_eq!((trace.records.len(), trace.repairs.count(Repair::ArrayRestIgnored)), (2, 1), "{rest}");
    }
}

#[test]
fn a_count_of_nodes_may_have_a_unit_and_what_no_run_needs_refuses_nothing() {
    let header = "JobID|JobIDRaw|Submit|Start|End|ElapsedRaw|AllocCPUS|NNodes|State|ReqMem|TotalCPU";
    let line = |raw: &str, nodes: &str, memory: &str, used: &str| {
        format!(
            "{header}\n7|{raw}|2024-03-01T00:00:00|2024-03-01T00:00:10|2024-03-01T00:01:00|50|32768|{nodes}|COMPLETED|\
             {memory}|{used}\n"
        )
    };
    let trace = read(&line("7", "1K", "4000000Kn", "00:00:10"));
    assert_eq!(trace.records[0].requested_memory, 125_000);
    assert_eq!(trace.repairs.count(Repair::FieldUnread), 0);
    assert_eq!(read(&line("7", "1", "4g", "")).records[0].requested_memory, (4 << 20) / 32_768);
    for (raw, nodes, memory, used) in
        [("?", "1", "1G", ""), ("7", "many", "1G", ""), ("7", "1", "16?", ""), ("7", "1", "1G", "long")]
    {
        let trace = read(&line(raw, nodes, memory, used));
        assert_eq!(
            (trace.records.len(), trace.repairs.count(Repair::FieldUnread)),
            (1, 1),
            "{nodes} {memory}"
        );
        assert_eq!(trace.records[0].job, 7);
    }
    assert!(refused(&line("7", "1", "1G", "").replace("|32768|", "|some|")).contains("AllocCPUS"));
    assert!(refused(&line("7", "1", "1G", "").replace("|32768|", "|1.5K|")).contains("AllocCPUS"));
}

/// Job names come last where they can, so that a row has all its columns before its name is over.
#[test]
fn a_name_may_have_line_breaks_wherever_it_stands() {
    let last = "JobID|Submit|ElapsedRaw|AllocCPUS|State|JobName";
    let first = "JobName|JobID|Submit|ElapsedRaw|AllocCPUS|State";
    let of = |name: &str, job: i64| {
        let rest = "2024-03-01T00:00:00|60|4|COMPLETED";
        (format!("{job}|{rest}|{name}\n"), format!("{name}|{job}|{rest}\n"))
    };
    for name in ["one\ntwo", "one\n\ntwo", "one\n# MaxProcs: 2", "one\n# MaxProcs: 2\nthree", "a | b\nc"] {
        let jobs = [of("x", 1), of(name, 2), of("y", 3)];
        let after = jobs.iter().map(|(after, _)| after.as_str()).collect::<String>();
        let ended = after.replace("\n1|", "|\n1|").replace("\n2|", "|\n2|").replace("\n3|", "|\n3|");
        let before = jobs.iter().map(|(_, before)| before.as_str()).collect::<String>();
        for text in [
            format!("{last}\n{after}"),
            format!("{last}|\n{}|\n", ended.trim_end()),
            format!("{first}\n{before}"),
        ] {
            let trace = read(&text);
            let numbers: Vec<i64> = trace.records.iter().map(|record| record.job).collect();
            assert_eq!((numbers, trace.header.max_procs), (vec![1, 2, 3], None), "{text}");
            assert_eq!(trace.repairs.count(Repair::LineBreakInName), 1, "{text}");
        }
    }
    // Comments between the dumps of two months are comments.
    let month = |job| of("x", job).0;
    let trace = read(&format!("{last}\n{}# MaxProcs: 64\n\n{last}\n{}", month(1), month(2)));
    assert_eq!((trace.records.len(), trace.header.max_procs), (2, Some(64)));
    assert_eq!(trace.repairs.count(Repair::LineBreakInName), 0);
    // A row that was cut off does not swallow the next one.
    let cut = refused(&format!("{last}\n1|2024-03-01T00:00:00|60\n{}", month(2)));
    assert!(cut.contains("line 2 has 3 columns, at least 6 are needed"), "{cut}");
    // A row that does not end has the length of a line at most.
    let long = format!("{last}\n{}{}", month(1), "word\n".repeat(20_000));
    assert!(refused(&long).contains("a line has more than 65536 bytes"));
}

/// Lines that are neither blank nor comments nor headers.
fn lines_of_jobs(text: &str) -> u64 {
    let told = |line: &&[u8]| !line.is_empty() && !line.starts_with(b"#") && !is_header(line);
    text.as_bytes().split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii).filter(told).count() as u64
}

fn counted(repairs: &Repairs) -> u64 {
    Repair::LINES.into_iter().map(|repair| repairs.count(repair)).sum()
}

fn times(record: &Record) -> (i64, i64, i64) {
    let seconds = |span: Span| span.as_micros() / 1_000_000;
    (seconds(record.submit), seconds(record.wait), seconds(record.run_time))
}

#[test]
fn a_dump_with_one_of_everything_is_read() {
    let trace = read(SAMPLE);

    let jobs: Vec<_> =
        trace.records.iter().map(|r| (r.job, r.allocated, r.requested, r.status, times(r))).collect();
    let day = 86_400;
    assert_eq!(
        jobs,
        [
            (4100, 64, 64, 1, (0, 5, 3600)),
            (4102, 1, 1, 1, (1800, 60, 600)),
            (4103, 1, 1, 0, (1800, 60, 1812)),
            (4110, 40, 40, 1, (7200, 1800, 7800)),
            (4120, 128, 128, 0, (day + 43_200, 600, 3600)),
            // Clocks went from 2 to 3 o'clock that night: two hours of the clock, one of run time.
            (1_000_000_001, 128, 128, 1, (day + 47_400, 15_600, 3600)),
            (4121, -1, 16, 5, (2 * day, 300, 0)),
            (4122, 16, 8, 0, (2 * day + 600, 1, 600)),
            (4123, 16, 8, 0, (2 * day + 660, 600, 0)),
            (4124, 16, 8, -1, (2 * day + 720, 600, -1)),
        ]
    );
    let count = |repair| trace.repairs.count(repair);
    assert_eq!(
        Repair::LINES.map(count),
        [3, 1, 0, 1, 0, 0],
        "steps, rests of arrays, repeated lines, components of heterogeneous jobs, bursts"
    );
    assert_eq!(lines_of_jobs(SAMPLE), trace.records.len() as u64 + counted(&trace.repairs));
    assert_eq!((count(Repair::RunAgain), count(Repair::Unfinished)), (1, 1));
    assert_eq!((count(Repair::SeparatorInName), count(Repair::RanPastEstimate)), (1, 1));
    assert_eq!(count(Repair::MissingEstimate), 3);
    // 128 GB of 64 processors, 4 GB each, 64 GB of a node of 32, none, 500 MB of 16.
    let memory: Vec<i64> = trace.records.iter().map(|record| record.requested_memory).collect();
    let gib = 1 << 20;
    assert_eq!(memory, [2 * gib, 4 * gib, 4 * gib, 2 * gib, -1, -1, gib, 32_000, 32_000, 32_000]);
    assert_eq!(trace.records[3].requested_time, Span::from_secs(day));
    // Submitted at 8 o'clock in winter time of Stockholm.
    assert_eq!(trace.header.unix_start_time, Some(1_711_695_600));
    assert_eq!(trace.processors(), 256);
}

#[test]
fn names_are_numbers_by_first_appearance_and_comments_say_which() {
    let trace = read(SAMPLE);

    let who: Vec<_> =
        trace.records[..5].iter().map(|r| (r.user, r.group, r.queue, r.partition, r.executable)).collect();
    assert_eq!(who, [(1, 1, 1, 1, 1), (2, 2, 1, 1, 2), (2, 2, 1, 1, 2), (3, 3, 1, 1, 3), (1, 1, 2, 1, 4)]);
    let lines: Vec<_> = trace.header.lines.iter().map(|line| String::from_utf8_lossy(line)).collect();
    for comment in
        ["; Note: user 3 is cleo", "; Note: group 2 is genes", "; Queue: 2 low", "; Partition: 2 gpu"]
    {
        assert!(lines.iter().any(|line| line == comment), "{comment} is not in {lines:?}");
    }
    assert!(!lines.iter().any(|line| line.contains("channel flow")));

    let mut anonymous = trace.clone();
    anonymous.anonymize();
    let mut written = Vec::new();
    swf::write_trace(&anonymous, &mut written).unwrap();
    let written = String::from_utf8(written).unwrap();
    for name in ["astrid", "bo", "cleo", "dag", "fluid", "genes", "ocean", "batch", "gpu", "normal", "low"] {
        assert!(SAMPLE.contains(name) && !written.contains(name), "{name}");
    }
}

#[test]
fn a_dump_becomes_jobs_and_a_log_that_reads_the_same() {
    let trace = read(SAMPLE);
    let prepared = prepare(&trace, &PrepareOptions::default(), 256).unwrap();
    assert_eq!(prepared.jobs.len(), 7, "all but three, which ran for no time or are not over");

    let mut written = Vec::new();
    swf::write_trace(&trace, &mut written).unwrap();
    let again = read_from("again.swf", &written[..]).unwrap();

    assert_eq!(again.records, trace.records);
    assert_eq!(again.header.time_zone_name.as_deref(), Some("Europe/Stockholm"));
}

#[test]
fn columns_are_found_by_name_and_a_last_separator_changes_nothing() {
    let plain = read(SAMPLE);
    let trailing: String = SAMPLE
        .lines()
        .map(|line| if line.starts_with('#') { format!("{line}\n") } else { format!("{line}|\r\n") })
        .collect();
    let turned: String = SAMPLE
        .lines()
        .map(|line| {
            if line.starts_with('#') {
                return format!("{line}\n");
            }
            let fields: Vec<&str> = line.splitn(19, '|').collect();
            fields.into_iter().rev().collect::<Vec<_>>().join("|") + "\n"
        })
        .collect();

    for (what, text) in [("-p", trailing), ("turned around", turned)] {
        assert_eq!(read(&text).records, plain.records, "{what}");
    }
}

#[test]
fn a_missing_column_is_named_and_so_is_the_place_of_a_bad_value() {
    for (column, message) in [
        ("Submit", "line 1: there is no column Submit; ask sacct for what is missing, without -n"),
        ("State", "no column State"),
        ("ElapsedRaw", "no column ElapsedRaw (or Elapsed, or Start and End)"),
    ] {
        let header = HEADER.replace("|End", "").replace(&format!("|{column}"), "");
        assert!(refused(&format!("{header}\n1\n")).contains(message), "{column}");
    }
    let headless = "7|2024-03-01T12:00:00|2024-03-01T12:00:01|60|COMPLETED\n";
    let said = refused(headless);
    assert!(said.contains("line 1 has | like a dump of sacct, but names none of its columns"), "{said}");
    for column in ["JobID (or JobIDRaw)", "Submit", "State", "AllocCPUS", "ElapsedRaw"] {
        assert!(said.contains(column), "{column}: {said}");
    }
    let said = refused("JobID|User|State\n1|u|COMPLETED\n");
    assert!(said.contains("line 1: there are no columns Submit, AllocCPUS"), "{said}");
    let header = HEADER.replace("|AllocCPUS|ReqCPUS", "");
    assert!(refused(&format!("{header}\n1\n")).contains("no column AllocCPUS"));
    let good = "7|2024-03-01T12:00:00|2024-03-01T12:00:01|2024-03-01T12:01:01|60|5:00|4|4|COMPLETED|u";
    for (from, to, message) in [
        ("7|", "seven|", "line 2: field 1 (JobID) is `seven`: not a job"),
        ("12:00:01", "noon", "line 2: field 3 (Start) is `2024-03-01Tnoon`: not a time"),
        ("|60|", "|1:00|", "line 2: field 5 (ElapsedRaw) is `1:00`: not a number"),
        ("|5:00|", "|5|", "line 2: field 6 (Timelimit) is `5`: not [days-]hours"),
        ("|4|4|", "|4.5|4|", "line 2: field 7 (AllocCPUS) is `4.5`: not a number"),
        ("|u", "", "line 2 has 9 columns, at least 10 are needed"),
        ("|u", "|u|v", "line 2 has 11 columns and the header 10"),
    ] {
        let message_got = refused(&format!("{HEADER}\n{}\n", good.replacen(from, to, 1)));
        assert!(message_got.starts_with("read trace dump.txt: line 2"), "{message_got}");
        assert!(message_got.contains(message), "{message_got}");
    }
    assert!(refused(&format!("# TimeZoneString: Mars/Olympus\n{HEADER}\n{good}\n")).contains("Mars/Olympus"));
}

/// One instant, in each way to write it; with a zone the zone of the dump means nothing.
#[test]
fn times_are_read_with_a_zone_without_and_as_unix_times() {
    let zone: Zone = "America/New_York".parse().unwrap();
    for time in [
        "2024-03-01T12:00:00",
        "2024-03-01 12:00:00",
        "2024-03-01T17:00:00Z",
        "2024-03-01T18:00:00+01:00",
        "2024-03-01T12:00:00-0500",
        "1709312400",
    ] {
        let text = format!("{HEADER}\n1|{time}|{time}|{time}|0|1:00|1|1|COMPLETED|u\n");
        let trace = read_trace("t", text.as_bytes(), &Limits::default(), Some(&zone)).unwrap();
        assert_eq!(trace.header.unix_start_time, Some(1_709_312_400), "{time}");
        assert_eq!(trace.header.time_zone_name.as_deref(), Some("America/New_York"));
        assert_eq!(trace.repairs.count(Repair::ClockChange), 0);
    }
}

/// Clocks were set back from 3 to 2 o'clock in Stockholm on 27 October 2024, and forward from 2 to 3 on 31 March.
#[test]
fn a_time_that_happens_twice_is_the_earlier_unless_it_would_be_before_the_one_it_follows() {
    let zone = "# TimeZoneString: Europe/Stockholm";
    let of = |line: &str| {
        let trace = read(&format!("{zone}\n{HEADER}\n{line}\n"));
        let record = trace.records[0];
        (trace.header.unix_start_time.unwrap(), times(&record).1, times(&record).2, trace.repairs)
    };
    let early = 1_729_989_000; // 2024-10-27T00:30:00Z, half past two in summer time.

    let (submit, wait, run_time, repairs) =
        of("1|2024-10-27T02:30:00|2024-10-27T02:40:00|2024-10-27T02:20:00||1:00:00|1|1|COMPLETED|u");
    assert_eq!((submit, wait, run_time), (early, 600, 2400), "it ended after the change");
    assert_eq!(repairs.count(Repair::ClockChange), 3);
    assert_eq!(repairs.count(Repair::TimesCrossed), 0);

    let (submit, wait, _, repairs) =
        of("1|2024-03-31T02:30:00|2024-03-31T03:40:00|2024-03-31T03:50:00|600|1:00:00|1|1|COMPLETED|u");
    assert_eq!((submit, wait), (1_711_848_600, 600), "half past three");
    assert_eq!(repairs.count(Repair::ClockChange), 1);

    let (_, wait, _, repairs) =
        of("1|2024-06-01T12:00:00|2024-06-01T11:00:00|2024-06-01T13:00:00|7200|1:00:00|1|1|COMPLETED|u");
    assert_eq!((wait, repairs.count(Repair::TimesCrossed)), (0, 1));
}

#[test]
fn durations_have_days_hours_and_thousandths() {
    let duration = |text: &str| values::duration(text.as_bytes());
    assert_eq!(duration("1-02:03:04"), Ok(Some(Span::from_secs(93_784))));
    assert_eq!(duration("100-00:00:00"), Ok(Some(Span::from_secs(8_640_000))));
    assert_eq!(duration("02:03.500"), Ok(Some(Span::from_micros(123_500_000))));
    for none in ["", "UNLIMITED", "Partition_Limit", "Unknown"] {
        assert_eq!(duration(none), Ok(None), "{none}");
    }
    for bad in ["12", "1-12", "a:b", "1:-2", "-1:00", "1:2:3:4", "4294967295-4294967295:4294967295:1e15"] {
        assert!(duration(bad).is_err(), "{bad}");
    }
    assert_eq!(values::raw(b"90", 60), Ok(Some(Span::from_secs(5400))));
    assert!(values::raw(b"9000000000000", 60).is_err());
}

#[test]
fn states_are_statuses_of_the_standard_format() {
    let state = |text: &str| values::state(text.as_bytes());
    for (text, status) in [
        ("COMPLETED", 1),
        ("FAILED", 0),
        ("TIMEOUT", 0),
        ("NODE_FAIL", 0),
        ("PREEMPTED", 0),
        ("OUT_OF_MEMORY", 0),
        ("OUT_OF_ME+", 0),
        ("CANCELLED by 1000", 5),
        ("CANCELLED+", 5),
    ] {
        assert_eq!(state(text), State::Ended(status), "{text}");
    }
    assert_eq!((state("RUNNING"), state("PENDING")), (State::Unfinished, State::Unfinished));
    assert_eq!((state("SLEEPING"), state(""), state("+")), (State::Unknown, State::Unknown, State::Unknown));

    let trace = dump(&["1|1709312400|1709312400|1709312460|60|1:00|1|1|SLEEPING|u"]);
    assert_eq!((trace.records[0].status, trace.repairs.count(Repair::StateUnknown)), (-1, 1));
}

/// Two dumps in one file, the second taken later and with other columns: what had no end gets it, what had is not there
/// twice.
#[test]
fn a_later_dump_in_the_same_file_completes_the_earlier_one() {
    let trace = dump(&[
        "1|1709312400|1709312410|1709312470|60|2:00|4|4|COMPLETED|u",
        "2|1709312401|1709312411|Unknown|30|2:00|4|4|RUNNING|u",
        "3|1709312402|Unknown|Unknown|0|2:00|0|4|PENDING|v",
        "4+0|1709312403|1709312413|Unknown|9|2:00|4|4|RUNNING|v",
        "JobID|State|Submit|Start|End|Elapsed|NCPUS|User",
        "1|COMPLETED|1709312400|1709312410|1709312470|01:00|4|u",
        "2|FAILED|1709312401|1709312411|1709312511|01:40|4|u",
        "3|COMPLETED|1709312402|1709312502|1709312562|01:00|4|v",
        "4+0|COMPLETED|1709312403|1709312413|1709312443|00:30|4|v",
        "4+1|COMPLETED|1709312403|1709312413|1709312453|00:40|2|v",
        "1|COMPLETED|1709312500|1709312510|1709312570|01:00|4|u",
    ]);

    let jobs: Vec<_> = trace.records.iter().map(|r| (r.job, r.status, r.allocated, times(r))).collect();
    assert_eq!(
        jobs,
        [
            (1, 1, 4, (0, 10, 60)),
            (2, 0, 4, (1, 10, 100)),
            (3, 1, 4, (2, 100, 60)),
            (4, 1, 6, (3, 10, 40)),
            (1_000_000_001, 1, 4, (100, 10, 60)),
        ]
    );
    let count = |repair| trace.repairs.count(repair);
    assert_eq!((count(Repair::LineRepeated), count(Repair::ComponentJoined)), (4, 1));
    assert_eq!((count(Repair::RunAgain), count(Repair::Unfinished)), (1, 0));
}

#[test]
fn tasks_without_numbers_of_their_own_get_some() {
    let trace = dump(&[
        "7_1|1709312400|1709312410|1709312470|60|2:00|4|4|COMPLETED|u",
        "7_2|1709312400|1709312410|1709312470|60|2:00|4|4|COMPLETED|u",
        "8|1709312400|1709312410|1709312470|60|2:00|4|4|COMPLETED|u",
    ]);

    let numbers: Vec<i64> = trace.records.iter().map(|record| record.job).collect();
    assert_eq!(numbers, [1_000_000_001, 1_000_000_002, 8]);
}

/// What stands in fields, good and bad.
fn field() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("1_[1-3]".to_string()),
        "[0-9]{1,3}([_+.][0-9]{1,2})?(\\.batch)?",
        "20[0-9]{2}-0[1-9]-[0-2][0-9]T[0-2][0-9]:[0-5][0-9]:00(Z|\\+01:00)?",
        "[0-9]{1,20}",
        "-?([0-9]-)?[0-9]{1,2}:[0-9]{2}(:[0-9]{2})?",
        "(COMPLETED|CANCELLED by 7|RUNNING|PENDING|Unknown|None|UNLIMITED|)",
        "[0-9]{1,19}[KMGTP]?[cn]?",
        ".{0,8}",
    ]
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(
        header in Just(SAMPLE.lines().nth(2).unwrap()),
        lines in prop::collection::vec(prop::collection::vec(field(), 17..21), 0..8),
        bytes in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        for line in &lines {
            // Each line on its own: most are refused.
            let text = format!("{header}\n{}\n", line.join("|"));
            match read_from("t", text.as_bytes()) {
                Err(error) => prop_assert!(error.to_string().starts_with("read trace t: ")),
                Ok(trace) => {
                    let counted = trace.records.len() as u64 + counted(&trace.repairs);
                    prop_assert_eq!(lines_of_jobs(&text), counted, "{}", text);
                }
            }
        }
        let text = [header.as_bytes(), b"\n", &bytes].concat();
        let _: Result<Trace, TraceError> = read_from("t", &text[..]);
    }

    /// Every line is a job or counted, whatever jobs, tasks, components and steps follow each other.
    #[test]
    fn jobs_and_counts_add_up_to_the_lines(
        lines in prop::collection::vec(
            (
                1..4_u8,
                prop::sample::select(vec!["", "_1", "_2", "+0", "+1", ".batch", "_1.0", "_[3-4]", "#"]),
                0..3_i64,
                prop::sample::select(vec!["COMPLETED", "RUNNING", "PENDING", "CANCELLED by 1", "REQUEUED"]),
                prop::sample::select(vec![-1, 0, 5]),
            ),
            1..40,
        ),
    ) {
        let text: String = lines
            .iter()
            .map(|(job, part, submit, state, run)| {
                if *part == "#" {
                    return "# a comment\n\n".to_string();
                }
                let submit = 1_709_312_400 + submit;
                let (start, end) = match (*state, *run) {
                    ("PENDING", _) => ("None".to_string(), "Unknown".to_string()),
                    ("RUNNING", _) => (submit.to_string(), "Unknown".to_string()),
                    (_, -1) => ("Unknown".to_string(), (submit + 9).to_string()),
                    (_, run) => ((submit + run).to_string(), (submit + 9).to_string()),
                };
                format!("{job}{part}|{submit}|{start}|{end}||1:00|1|1|{state}|u\n")
            })
            .collect();
        let text = format!("{HEADER}\n{text}");
        let trace = read_trace("t", text.as_bytes(), &Limits::default(), None).unwrap();

        prop_assert_eq!(lines_of_jobs(&text), trace.records.len() as u64 + counted(&trace.repairs));
        let numbers: BTreeSet<i64> = trace.records.iter().map(|record| record.job).collect();
        prop_assert_eq!(numbers.len(), trace.records.len(), "numbers are unique");
    }
}
