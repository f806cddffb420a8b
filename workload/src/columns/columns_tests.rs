//! Maps, and small CSVs that have what others have: each ready map with rows of its log's shape.

use scheduler::Span;

use super::*;
use crate::limits::{Limit, Limits};
use crate::repair::Repair;
use crate::trace::{Trace, TraceError};

fn ready(name: &str) -> Map {
    let path = format!("{}/../configs/columns/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    Map::parse(name, &std::fs::read_to_string(path).unwrap()).unwrap()
}

fn read(map: &Map, text: &str) -> Result<Trace, TraceError> {
    read_trace("log.csv", text.as_bytes(), &Limits::default(), map)
}

/// Number, submission, wait, run time, requested time, processors and status of each job, times in seconds.
fn jobs(trace: &Trace) -> Vec<[i64; 7]> {
    let seconds = |span: Span| span.as_micros().div_euclid(1_000_000);
    let job = |record: &crate::Record| {
        [
            record.job,
            seconds(record.submit),
            seconds(record.wait),
            seconds(record.run_time),
            seconds(record.requested_time),
            record.requested.into(),
            record.status.into(),
        ]
    };
    trace.records.iter().map(job).collect()
}

#[test]
fn helios_is_read() {
    let trace = read(
        &ready("helios"),
        "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n\
         11,uA,vcX,8,16,1,COMPLETED,2020-04-01 00:00:00,2020-04-01 00:00:30,2020-04-01 00:10:30,600,30\n\
         12,uB,vcY,0,4,1,TIMEOUT,2020-04-01 00:01:00,2020-04-01 00:01:00,2020-04-01 00:01:05,5,0\n\
         13,uA,vcX,1,1,1,CANCELLED,2020-04-01 00:02:00,,,0,0\n",
    )
    .unwrap();

    assert_eq!(
        jobs(&trace),
        [[11, 0, 30, 600, -1, 8, 1], [12, 60, 0, 5, -1, 0, 0], [13, 120, -1, 0, -1, 1, 5]]
    );
    assert_eq!(trace.records[0].user, trace.records[2].user);
    // Midnight in Shanghai.
    assert_eq!(trace.header.unix_start_time, Some(1_585_670_400));
    assert_eq!(trace.header.time_zone_name.as_deref(), Some("Asia/Shanghai"));
    assert!(trace.header.lines.iter().any(|line| line == b"; Note: a processor is a GPU"));
}

#[test]
fn acme_is_read_by_its_start_and_end() {
    // What Kalos calls the duration has the wait in it.
    let trace = read(
        &ready("acme"),
        "job_id,user,node_num,gpu_num,cpu_num,mem_per_pod_GB,type,state,submit_time,start_time,end_time,fail_time,duration,queue\n\
         dlcone,u1,8,64,960,1000,Other,FAILED,2023-05-17 11:00:58+00:00,2023-05-17 11:01:08+00:00,2023-05-17 11:01:16+00:00,,18,10.0\n\
         77,u2,1,8,128,1000,Other,COMPLETED,2023-05-17 19:01:58+08:00,2023-05-17 19:02:00+08:00,2023-05-17 20:02:00+08:00,,3602,2.0\n",
    )
    .unwrap();

    assert_eq!(jobs(&trace), [[1_000_001, 0, 10, 8, -1, 64, 0], [77, 60, 2, 3600, -1, 8, 1]]);
}

#[test]
fn openb_is_read_with_its_times_from_zero() {
    let trace = read(
        &ready("openb"),
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n\
         openb-pod-0000,12000,16384,1,1000,,LS,Running,0,12537496,0\n\
         openb-pod-0001,6000,12288,1,460,,LS,Succeeded,427061,497108,427061\n\
         openb-pod-0002,6000,12288,0,0,,BE,Pending,427100,,\n",
    )
    .unwrap();

    assert_eq!(
        jobs(&trace),
        [
            [1_000_001, 0, 0, -1, -1, 1, -1],
            [1_000_002, 427_061, 0, 70_047, -1, 1, 1],
            [1_000_003, 427_100, -1, -1, -1, 0, -1]
        ]
    );
    assert_eq!(trace.repairs.count(Repair::Unfinished), 2);
    assert_eq!(trace.records[0].queue, trace.records[1].queue);
}

#[test]
fn pm100_is_read_with_limits_in_minutes() {
    let trace = read(
        &ready("pm100"),
        "job_id,user_id,group_id,partition,qos,job_state,submit_time,start_time,end_time,time_limit,num_cores_req,num_cores_alloc\n\
         900,5,25200,1,2,COMPLETED,2020-05-05 10:00:00+00:00,2020-05-05 10:00:20+00:00,2020-05-05 11:00:20+00:00,1440,32,128\n\
         901,6,25200,1,2,OUT_OF_MEMORY,2020-05-05 10:01:00+00:00,2020-05-05 10:01:20+00:00,2020-05-05 10:01:21+00:00,60.0,4,4\n",
    )
    .unwrap();

    assert_eq!(jobs(&trace), [[900, 0, 20, 3600, 86_400, 32, 1], [901, 60, 20, 1, 3600, 4, 0]]);
    assert_eq!((trace.records[0].allocated, trace.records[0].user), (128, 5));
    assert_eq!(trace.repairs.count(Repair::ProcessorsDiffer), 1);
}

#[test]
fn f_data_is_read_by_nodes() {
    let trace = read(
        &ready("f-data"),
        "usr,jnam,nnuma,elpl,adt,sdt,edt,duration\n\
         u_1,j_1,384,86400,2021-03-01 00:00:00+00:00,2021-03-01 01:00:00+00:00,2021-03-01 02:00:00+00:00,3600.5\n\
         u_1,j_2,1,600,2021-03-01 00:10:00+00:00,2021-03-01 00:11:00+00:00,2021-03-01 00:20:00+00:00,540.0\n",
    )
    .unwrap();

    assert_eq!(jobs(&trace), [[1, 0, 3600, 3600, 86_400, 384, -1], [2, 600, 60, 540, 600, 1, -1]]);
    assert_eq!(trace.records[0].run_time, Span::from_micros(3_600_500_000));
    assert_ne!(trace.records[0].executable, trace.records[1].executable);
}

const SMALL: &str = "processor = \"core\"\n[columns]\njob = \"id\"\nsubmit = { column = \"at\", time = \"ms\" }\n\
                     run_time = { column = \"took\", length = \"min\" }\nprocessors = { column = \"milli\", divide = 1000 }\n\
                     site = \"cluster\"\nuser = \"who\"\n";

#[test]
fn sites_units_quotes_and_numbers_that_are_taken() {
    let map = Map::parse("map", SMALL).unwrap();
    let trace = read(
        &map,
        "cluster,id,at,took,milli,who\n\"Venus, old\",7,1000,1.5,1500,0\nEarth,7,2000,1,2000,\"a \"\"b\"\"\nc\"\nEarth,x,1500,1,\
         1000,4294967294\nEarth,1000001,1500,1,-1,NaN\n",
    )
    .unwrap();

    assert_eq!(
        jobs(&trace),
        [
            [7, 1, -1, 90, -1, 2, -1],
            [1_000_002, 2, -1, 60, -1, 2, -1],
            [1_000_003, 1, -1, 60, -1, 1, -1],
            [1_000_001, 1, -1, 60, -1, -1, -1]
        ]
    );
    let sites: Vec<(i32, i32)> =
        trace.records.iter().map(|record| (record.origin, record.executed)).collect();
    assert_eq!(sites, [(1, 1), (2, 2), (2, 2), (2, 2)]);
    assert!(trace.header.lines.iter().any(|line| line == b"; Note: site 1 is Venus, old"));
    let count = |repair| trace.repairs.count(repair);
    assert_eq!((count(Repair::RoundedUp), count(Repair::OutOfOrder)), (1, 1));
    assert_eq!((trace.records[0].user, trace.records[3].user), (0, -1));
    // Two jobs, two sites and two users.
    assert_eq!(count(Repair::NameNumbered), 6);
}

#[test]
fn what_cannot_be_read_is_refused_with_its_place() {
    let map = Map::parse("map", SMALL).unwrap();
    let refused = |text: &str| read(&map, text).unwrap_err().to_string();
    assert_eq!(
        refused("cluster,id,took,milli,who\na,1,1,1,1\n"),
        "read trace log.csv: there is no column at, which the map names for submit; there are cluster, id, took, milli, who"
    );
    let header = "cluster,id,at,took,milli,who\n";
    assert!(
        refused(&format!("{header}a,1,soon,1,1,1\n")).contains("line 2: field 3 (submit) is `soon`: no time")
    );
    assert!(
        refused(&format!("{header}a,1,1,long,1,1\n")).contains("field 4 (run_time) is `long`: no length")
    );
    assert!(
        refused(&format!("{header}a,1,1,1,many,1\n")).contains("field 5 (processors) is `many`: no number")
    );
    assert!(refused(&format!("{header}a,1,1,1,1,1\na,2,1\n")).contains("line 3 has 3 columns, at least 6"));
    assert!(refused(header).contains("there is no job in it"));
    // A quote that is never closed is a row that is too long.
    let open = format!("{header}\"{}", "word\n".repeat(30_000));
    match read(&map, &open).unwrap_err() {
        TraceError::Limit { exceeded, .. } => assert_eq!(exceeded.limit, Limit::Line),
        other => panic!("{other}"),
    }
}

#[test]
fn a_map_that_means_nothing_is_refused_with_what_would() {
    for (from, to, said) in [
        ("job = ", "jobs = ", "columns.jobs (did you mean job?) is nothing that a column may hold"),
        ("\"core\"", "\"cores\"", "processor"),
        ("time = \"ms\"", "time = \"often\"", "time is `often`; write iso"),
        ("length = \"min\"", "length = \"minute\"", "length is `minute`"),
        ("divide = 1000", "length = \"s\"", "columns.processors.length means nothing there"),
        ("run_time = ", "requested_time = ", "there is no run_time (or start and end) in [columns]"),
        ("user = ", "state = ", "say what they mean"),
        ("[columns]", "zone = \"Mars/Olympus\"\n[columns]", "Mars/Olympus"),
        ("[columns]", "separator = \"||\"\n[columns]", "separator"),
    ] {
        let error = Map::parse("map", &SMALL.replacen(from, to, 1)).unwrap_err().to_string();
        assert!(error.starts_with("read columns map: ") && error.contains(said), "{error}");
    }
}
