//! Logs as people have them, each of which was once read wrongly or refused: one test a folder of `tests/cases`, through the program.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::PROGRAM;

/// What a command said, and its exit code.
struct Said {
    code: i32,
    stdout: String,
    stderr: String,
}

fn stealgrid<S: AsRef<OsStr>>(folder: &Path, arguments: &[S]) -> Said {
    let output =
        Command::new(PROGRAM).current_dir(folder).args(arguments).stdin(Stdio::null()).output().unwrap();
    Said {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

fn case(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases").join(name)
}

fn trace(name: &str, arguments: &[&str]) -> Said {
    stealgrid(&case(name), &[&["trace"], arguments].concat())
}

/// What `trace info` says of a log, which it takes.
fn info(name: &str, file: &str) -> Value {
    let said = trace(name, &["info", "--format", "json", file]);
    assert_eq!(said.code, 0, "{}", said.stderr);
    serde_json::from_str(&said.stdout).unwrap()
}

/// How often something awkward is in what `trace info` says.
fn awkward(info: &Value, kind: &str) -> u64 {
    let rows = info["awkward"].as_array().unwrap();
    rows.iter().find(|row| row["repair"] == kind).map_or(0, |row| row["count"].as_u64().unwrap())
}

/// The SWF lines that `trace convert` makes of a log, in fields.
fn converted(name: &str, file: &str) -> Vec<Vec<String>> {
    let said = trace(name, &["convert", file, "--to", "swf"]);
    assert_eq!(said.code, 0, "{}", said.stderr);
    let lines = said.stdout.lines().filter(|line| !line.starts_with(';'));
    lines.map(|line| line.split(' ').map(str::to_string).collect()).collect()
}

/// What is said of a log that is refused, with exit code 3.
fn refused(name: &str, command: &str, file: &str) -> String {
    let said =
        trace(name, &[command, file, "--format", "terminal"][..if command == "convert" { 2 } else { 4 }]);
    assert_eq!(said.code, 3, "{command} {file}: {}{}", said.stdout, said.stderr);
    said.stdout + &said.stderr
}

const LOG: &str = "; MaxProcs: 16\n1 0 0 100 4 -1 -1 4 200 -1 1 1 1 1 1 1 -1 -1\n";

#[test]
fn names_of_files_are_bytes() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("log.swf"), LOG).unwrap();
    let name = |prefix: &[u8]| OsStr::from_bytes(&[prefix, b"\xff"].concat()).to_os_string();
    let plain = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
    let simulate = plain(&["simulate", "--sites", "16", "--trace", "log.swf", "--no-page", "--out"]);
    let said = stealgrid(folder.path(), &[simulate, vec![name(b"x")]].concat());
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert!(folder.path().join(name(b"x")).join("jobs.csv").is_file());

    let beside = folder.path().join(name(b"d"));
    std::fs::create_dir(&beside).unwrap();
    std::fs::write(beside.join("e.toml"), "[grid]\nsizes = [16]\n[workload]\ntrace = \"../log.swf\"\n")
        .unwrap();
    std::fs::write(beside.join(name(b"e")), "[grid]\nsizes = [16]\n[workload]\ntrace = \"../log.swf\"\n")
        .unwrap();
    for (file, out) in [(OsString::from("e.toml"), "y"), (name(b"e"), "z")] {
        let path = beside.join(file).into_os_string();
        let words = [plain(&["simulate"]), vec![path], plain(&["--no-page", "--out", out])].concat();
        let said = stealgrid(folder.path(), &words);
        assert_eq!(said.code, 0, "{}", said.stderr);
        let text = std::fs::read_to_string(folder.path().join(out).join("manifest.json")).unwrap();
        assert!(text.contains(r"/d\\xff/e"), "{text}");
    }
    let run = plain(&[
        "run",
        "--sites",
        "16",
        "--trace",
        "log.swf",
        "--clock",
        "scaled:1000",
        "--no-page",
        "--out",
    ]);
    let said = stealgrid(folder.path(), &[run, vec![name(b"r")]].concat());
    assert!(
        said.code == 2 && said.stderr.contains("give --out a name in UTF-8"),
        "{} {}",
        said.code,
        said.stderr
    );
}

#[test]
fn a_sequence_of_delays_takes_their_sum() {
    let jobs = converted("batsim-composed-delays", "workload.json");
    let lengths: Vec<&str> = jobs.iter().map(|fields| fields[3].as_str()).collect();
    assert_eq!(lengths, ["70", "13"]);
}

#[test]
fn zeros_behind_a_gzip_file_are_padding() {
    assert!(info("gzip-with-zero-padding", "padded.swf.gz")["jobs"].as_u64().unwrap() > 0);
}

#[test]
fn a_log_may_have_any_name() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["KTH-SP2 (1).swf", "a#b@c,d'e.swf"] {
        std::fs::write(folder.path().join(name), LOG).unwrap();
        let said = stealgrid(folder.path(), &["simulate", "--sites", "16", "--trace", name, "--no-page"]);
        assert_eq!(said.code, 0, "{}", said.stderr);
    }
    assert!(folder.path().join("out/KTH-SP2 _1_-simulated/jobs.csv").is_file());
}

#[test]
fn processors_that_differ_are_told_with_their_share_of_the_work() {
    let name = "requested-unlike-allocated";
    let found = info(name, "dump.txt");
    assert_eq!(awkward(&found, "processors-differ"), 3);
    assert_eq!(found["differing_work"], 1.0);
    // 896 and 7 processor hours in an hour of 512 processors.
    assert_eq!((found["load"].as_f64(), found["load_requested"].as_f64()), (Some(1.75), Some(7.0 / 512.0)));
    let said = trace(name, &["info", "dump.txt"]);
    assert!(said.stdout.contains("1.750 by allocated, 0.014 by requested processors"), "{}", said.stdout);
    let said = trace(name, &["validate", "dump.txt"]);
    assert!(said.stdout.contains("allocated and requested processors differ, kept, 100.0 % of the work"));
    let out = tempfile::tempdir().unwrap();
    let out = out.path().join("o").into_os_string().into_string().unwrap();
    let words = ["simulate", "--sites", "512", "--trace", "dump.txt", "--out", &out, "--no-page"];
    let said = stealgrid(&case(name), &words);
    let words = said.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("processors differ, kept: jobs with 100.0 % of the work"), "{words}");
}

#[test]
fn tasks_that_never_started_are_told_however_their_list_is_cut() {
    for file in ["dump.txt", "dump2.txt"] {
        let found = info("sacct-array-id-cut", file);
        assert_eq!((found["jobs"].as_u64(), awkward(&found, "array-rest-ignored")), (Some(2), 1), "{file}");
    }
}

#[test]
fn job_names_may_have_line_breaks() {
    for file in ["dump.txt", "hash.txt"] {
        let found = info("sacct-line-break-in-job-name", file);
        assert_eq!(awkward(&found, "line-break-in-name"), 1, "{file}");
        assert_eq!(
            (found["processors"].as_u64(), &found["processors_from"]),
            (Some(8), &"widest job".into())
        );
    }
    assert_eq!(info("sacct-line-break-in-job-name", "dump.txt")["jobs"], 3);
    assert_eq!(info("sacct-line-break-in-job-name", "hash.txt")["jobs"], 2);
}

#[test]
fn counts_of_nodes_may_have_units() {
    let jobs = converted("sacct-node-count-with-K", "dump.txt");
    let memory: Vec<(&str, &str)> =
        jobs.iter().map(|fields| (fields[0].as_str(), fields[9].as_str())).collect();
    assert_eq!(memory.len(), 3);
    assert!(memory.contains(&("300", "125000")), "{memory:?}");
}

#[test]
fn tables_of_slurm_are_told_how_to_become_logs() {
    for file in ["comma.csv", "table.txt", "tabs.txt"] {
        let said = refused("sacct-other-separators", "info", file);
        assert!(said.contains("sacct --parsable2"), "{said}");
    }
    let found = info("sacct-other-separators", "gwf.csv");
    assert_eq!((&found["format"], found["jobs"].as_u64()), (&"gwf".into(), Some(1)));
    let jobs = converted("sacct-other-separators", "gwf.csv");
    assert_eq!(jobs[0][..9], ["1", "0", "10", "100", "1", "90", "98652", "1", "259200"]);
}

#[test]
fn bursts_of_a_job_are_one_job() {
    let name = "swf-partial-executions";
    let found = info(name, "summary.swf");
    assert_eq!((found["jobs"].as_u64(), awkward(&found, "burst-left-out")), (Some(2), 2));
    assert_eq!(found["load"].as_f64(), Some(800.0 / 480.0));
    let found = info(name, "bursts.swf");
    assert_eq!((found["jobs"].as_u64(), awkward(&found, "burst-joined")), (Some(2), 1));
    assert_eq!(trace(name, &["validate", "summary.swf", "bursts.swf"]).code, 0);
    for file in ["summary.swf", "bursts.swf"] {
        let times: Vec<(String, String)> =
            converted(name, file).iter().map(|fields| (fields[0].clone(), fields[3].clone())).collect();
        assert_eq!(times, [("1".to_string(), "100".to_string()), ("2".to_string(), "50".to_string())]);
        let said = trace(name, &["convert", file, "--to", "swf"]);
        assert!(said.stderr.contains("bursts of a job"), "{}", said.stderr);
    }
}

#[test]
fn a_table_is_no_log_because_it_has_a_job_id() {
    let name = "table-with-jobid-taken-for-gwf";
    for (file, said) in
        [("sacct-table.txt", "parsable2"), ("squeue.txt", "parsable2"), ("titled.swf", "title")]
    {
        for command in ["validate", "info", "convert"] {
            if command == "convert" {
                let found = trace(name, &["convert", file, "--to", "swf"]);
                assert!(found.code == 3 && found.stderr.contains(said), "{}", found.stderr);
            } else {
                assert!(refused(name, command, file).contains(said));
            }
        }
    }
}

#[test]
fn a_time_zone_that_nobody_knows_is_a_remark() {
    let name = "trace-info-unknown-time-zone";
    for (file, zone) in [("log.swf", "UNKNOWN"), ("pst.swf", "PST")] {
        let said = trace(name, &["info", file]);
        assert_eq!(said.code, 0, "{}", said.stderr);
        let expected = format!("unknown (the header says {zone})");
        assert!(said.stdout.contains(&expected), "{}", said.stdout);
        assert_eq!(info(name, file)["time_zone_unknown"], zone);
    }
    // Who asks for a week is told to name a zone.
    let said = trace(name, &["convert", "pst.swf", "--to", "swf", "--week", "1"]);
    assert!(said.code == 3 && said.stderr.contains("--zone"), "{}", said.stderr);
    let said = trace(name, &["convert", "log.swf", "--to", "swf", "--week", "1", "--zone", "US/Pacific"]);
    assert_eq!(said.code, 0, "{}", said.stderr);
}

#[test]
fn a_user_is_a_label_however_large() {
    let found = info("user-number-above-2-31", "log.swf");
    assert_eq!((found["jobs"].as_u64(), found["users"].as_u64()), (Some(2), Some(2)));
    assert_eq!((awkward(&found, "label-numbered"), awkward(&found, "field-unread")), (2, 1));
}

#[test]
fn a_log_of_which_nothing_is_left_is_refused_and_no_processors_are_unknown_ones() {
    let name = "validate-keeps-nothing-exit-0";
    assert_eq!(trace(name, &["validate", "zero.swf"]).code, 0);
    let found = info(name, "zero.swf");
    assert_eq!((found["processors"].as_u64(), &found["processors_from"]), (Some(8), &"widest job".into()));
    assert!(refused(name, "validate", "none.swf").contains("none is left to run"));
}

#[test]
fn what_is_no_text_is_told_by_what_it_is() {
    let name = "xz-called-binary";
    assert!(refused(name, "info", "log.swf.xz").contains("it is compressed by xz"));
    assert!(refused(name, "info", "table.parquet").contains("it is binary (Parquet"));
}

/// A viewer that holds the database for some seconds in the middle of a sweep.
#[test]
fn a_sweep_waits_for_a_database_that_is_locked() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("log.swf"), LOG).unwrap();
    std::fs::write(
        folder.path().join("sweep.toml"),
        "[experiment.grid]\nsizes = [16, 32]\n[experiment.workload]\ntrace = \"log.swf\"\n[parameters]\n\
         \"strategy.name\" = [\"local\", \"st:50\"]\n",
    )
    .unwrap();
    let sweep = |wait: &str| {
        Command::new(PROGRAM)
            .current_dir(folder.path())
            .args(["sweep", "sweep.toml", "--out", "s.db", "--wait", wait])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let first = sweep("10m").wait_with_output().unwrap();
    assert!(first.status.success());
    let lock = rusqlite::Connection::open(folder.path().join("s.db")).unwrap();
    lock.execute_batch("DELETE FROM runs; PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE").unwrap();

    let hasty = sweep("1s").wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&hasty.stderr).into_owned();
    assert!(!hasty.status.success() && text.contains("another program has locked"), "{text}");
    let report = stealgrid(folder.path(), &["report", "s.db"]);
    assert!(report.stderr.contains("another program has locked it"), "{}", report.stderr);
    assert!(!report.stderr.contains("no database of a sweep"), "{}", report.stderr);

    let patient = sweep("10m");
    // It takes less to find the lock; were it more, the sweep would only be seen to need no patience.
    std::thread::sleep(Duration::from_secs(3));
    lock.execute_batch("COMMIT").unwrap();
    drop(lock);
    let output = patient.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{text}");
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains("note: another program has locked s.db; waiting for it, 10m at most (--wait)"),
        "{text}"
    );
    let db = rusqlite::Connection::open(folder.path().join("s.db")).unwrap();
    let done: i64 =
        db.query_row("SELECT count(*) FROM runs WHERE status = 'done'", [], |row| row.get(0)).unwrap();
    assert_eq!(done, 2);
}

/// Every ready map says how its log is converted; the rows are held by tests of the maps themselves.
#[test]
fn a_csv_is_converted_by_a_map_and_named_where_it_cannot_be() {
    let folder = tempfile::tempdir().unwrap();
    let map = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs/columns/helios.toml");
    let map = map.to_str().unwrap();
    let csv = "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n\
               11,uA,vcX,8,16,1,COMPLETED,2020-04-01 00:00:00,2020-04-01 00:00:30,2020-04-01 00:10:30,600,30\n";
    std::fs::write(folder.path().join("log.csv"), csv).unwrap();
    let said =
        stealgrid(folder.path(), &["trace", "convert", "--columns", map, "log.csv", "--out", "log.swf"]);
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert!(said.stderr.contains("1 job read"), "{}", said.stderr);
    let written = std::fs::read_to_string(folder.path().join("log.swf")).unwrap();
    let job = written.lines().last().unwrap();
    assert_eq!(job, "11 0 30 600 8 -1 -1 8 -1 -1 1 1000001 -1 -1 1000001 -1 -1 -1");
    for command in ["info", "validate"] {
        let words = ["trace", command, "--columns", map, "log.csv"];
        let words = if command == "info" {
            words.to_vec()
        } else {
            [&words[..], &["--missing-estimate", "24h"]].concat()
        };
        assert_eq!(stealgrid(folder.path(), &words).code, 0, "{command}");
    }
    // Without the map it is told to be one that needs a map, and without estimates nothing is made up.
    let said = stealgrid(folder.path(), &["trace", "info", "log.csv"]);
    assert!(said.code == 3 && said.stderr.contains("--columns"), "{}", said.stderr);
    let simulate = ["simulate", "--sites", "16", "--trace", "log.swf", "--no-page"];
    let said = stealgrid(folder.path(), &simulate);
    assert!(said.code == 3 && said.stderr.contains("--missing-estimate run-time"), "{}", said.stderr);
    let said = stealgrid(folder.path(), &[&simulate[..], &["--missing-estimate", "24h"]].concat());
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert!(said.stderr.contains("no requested time, the given one taken"), "{}", said.stderr);
    std::fs::write(folder.path().join("bad.toml"), "processor = \"cpu\"\n").unwrap();
    let said = stealgrid(folder.path(), &["trace", "info", "--columns", "bad.toml", "log.csv"]);
    assert!(said.code == 3 && said.stderr.contains("failed to read columns bad.toml"), "{}", said.stderr);
}

#[test]
fn full_weeks_are_counted_from_the_first_job_on() {
    let folder = tempfile::tempdir().unwrap();
    let job = |number: u32, day: u32| {
        format!("{number} {} 0 100 4 -1 -1 4 200 -1 1 1 1 1 1 1 -1 -1\n", day * 86_400)
    };
    // Time 0 is Thursday, 1 January 1970: 20 days from the first job to the last are two full weeks.
    let log = format!("; MaxProcs: 4\n; UnixStartTime: 0\n{}{}", job(1, 2), job(2, 22));
    std::fs::write(folder.path().join("log.swf"), log).unwrap();
    let said = stealgrid(folder.path(), &["trace", "info", "log.swf"]);
    let expected = "weeks         2 full weeks from the first job on, in weeks 0 to 3 of --week\n";
    assert!(said.stdout.contains(expected), "{}", said.stdout);
    let said = stealgrid(folder.path(), &["trace", "info", "log.swf", "--format", "json"]);
    let found: Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!((found["full_weeks"].as_u64(), found["weeks"][1].as_i64()), (Some(2), Some(3)));
}
