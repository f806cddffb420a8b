//! What is written is read again, and nothing else is.

use scheduler::LocalScheduler;

use super::super::choice::Order;
use super::super::waits::Waiting;
use super::*;

fn job(id: u64, submit: i64, processors: u32, requested: i64, run_time: i64) -> TimedJob {
    let labels = Labels { user: 7, group: 2, executable: 3, queue: 1, memory: -1 };
    let (origin, submit) = (SiteId(1), Time::from_secs(submit));
    let requested = Span::from_secs(requested);
    let spec = JobSpec { id: JobId(id), submit, processors, requested, labels, origin, payload: 0 };
    TimedJob { spec, run_time: Span::from_secs(run_time) }
}

/// A log of these jobs, none of which waited.
fn log(sha256: &str, unix_start_s: Option<i64>, jobs: &[TimedJob]) -> Log {
    let happened = |job: &TimedJob| Happened {
        job: job.spec,
        run_time: job.run_time,
        end: job.spec.submit + job.run_time,
    };
    Log {
        name: format!("{sha256}.swf"),
        sha256: sha256.to_string(),
        read: jobs.len() as u64,
        without_estimate: 0,
        others: 0,
        unix_start_s,
        is_of_nobody: false,
        jobs: jobs.to_vec(),
        happened: jobs.iter().map(happened).collect(),
    }
}

/// Job 1 holds all four processors from 0 to 60 s and asks for 100; jobs 2 and 3 wait for it.
fn jobs() -> [TimedJob; 3] {
    [job(1, 0, 4, 100, 60), job(2, 10, 4, 40, 5), job(3, 20, 4, 5, 5)]
}

fn written(path: &Path, log: &Log) {
    let order = Order(LocalScheduler::Easy);
    let waiting = Waiting { who: "plan".parse().unwrap(), order };
    let (waited, _) = waiting.run(4, scheduler::Pass::PerEvent, &[], &log.jobs);
    write(path, log, 4, "processors=4", &[(order, waited)]).unwrap();
}

fn whole<T: rusqlite::types::FromSql>(connection: &Connection, select: &str) -> Vec<T> {
    let mut select = connection.prepare(select).unwrap();
    let rows = select.query_map([], |row| row.get(0)).unwrap();
    rows.collect::<Result<_, _>>().unwrap()
}

#[test]
fn rows_are_those_worked_out_by_hand() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.db");
    let log = log("a", None, &jobs());
    written(&path, &log);
    // Once more, in place of what was there.
    written(&path, &log);
    let connection = Connection::open(&path).unwrap();
    let count = |table: &str| whole::<i64>(&connection, &format!("SELECT count(*) FROM {table}"))[0];
    assert_eq!(["experiments", "policies", "nodes", "applications", "jobs"].map(count), [1, 2, 1, 1, 6]);
    let of = |column: &str, policy: &str| {
        whole::<Option<i64>>(
            &connection,
            &format!(
                "SELECT CAST({column} / 1000000 AS INTEGER) FROM jobs JOIN policies USING (pid) WHERE name = '{policy}' ORDER BY jid"
            ),
        )
    };
    // In the log nobody waited; under EASY jobs 2 and 3 start at 60 and 65 s, and were planned for 100 and 140.
    assert_eq!(of("start_us", "log"), [Some(0), Some(10), Some(20)]);
    assert_eq!(of("sim_start_us", "log"), [None, None, None]);
    assert_eq!(of("start_us", "arrival"), [Some(0), Some(60), Some(65)]);
    assert_eq!(of("sim_start_us", "arrival"), [Some(0), Some(100), Some(140)]);
    assert_eq!(of("error_us", "arrival"), [Some(0), Some(40), Some(75)]);
    assert_eq!(of("ahead_s * 1000000", "arrival"), [Some(0), Some(0), Some(160)]);
    assert_eq!(
        whole::<f64>(&connection, "SELECT used_s FROM jobs WHERE pid = 1 ORDER BY jid"),
        [240.0, 20.0, 20.0]
    );
    let waited = "SELECT b.jid * 10 + position FROM queue_at_arrive JOIN jobs a ON a.hjid = hjid1 JOIN jobs b ON b.hjid = hjid2";
    assert_eq!(whole::<i64>(&connection, waited), [21], "job 2 waited first when job 3 came");
    assert_eq!(whole::<i64>(&connection, "SELECT count(*) FROM job_nodes WHERE hjid1 = hjid2"), [6]);
}

#[test]
fn earlier_logs_come_back_as_they_were_and_end_before_the_log_begins() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.db");
    let first = log("a", Some(0), &jobs());
    assert_eq!(read(&path, &first).unwrap().jobs(), 0, "there is no file yet");
    written(&path, &first);
    let own = read(&path, &first).unwrap();
    assert!(own.has_log && own.sources.is_empty());
    let same_time = |seconds| log("b", seconds, &[job(9, 5, 1, 10, 10)]);
    let earlier = read(&path, &same_time(Some(1_000))).unwrap();
    assert_eq!(earlier.sources, [Source { log: "a.swf".into(), sha256: "a".into(), processors: 4, jobs: 3 }]);
    let (processors, back) = &earlier.logs[0];
    // The last ends at 60 s, which is just before the 5 s of the first job of the other log.
    let shift = Span::from_secs(-55) - Span::from_micros(1);
    let expected = first.happened.iter().map(|happened| Happened {
        job: JobSpec { submit: happened.job.submit + shift, ..happened.job },
        run_time: happened.run_time,
        end: happened.end + shift,
    });
    assert_eq!((*processors, back.clone()), (4, expected.collect::<Vec<_>>()));
    // At 26 s of the first, jobs 2 and 3 have ended, at 15 and 25 s; job 1 goes on.
    let overlapping = read(&path, &same_time(Some(21))).unwrap();
    assert_eq!((overlapping.jobs(), overlapping.too_late), (2, 1));
    assert_eq!(read(&path, &same_time(None)).unwrap().jobs(), 3, "nobody knows when it was");
}

#[test]
fn what_is_no_history_is_refused_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let log = log("a", None, &jobs());
    let refused = |path: &Path| format!("{:#}", read(path, &log).unwrap_err());
    let text = folder.path().join("text");
    std::fs::write(&text, "no database, but a text of more than a hundred letters, so that it is taken for one that is not damaged at all").unwrap();
    assert!(refused(&text).contains("it is no SQLite database; give another file"), "{}", refused(&text));
    let other = folder.path().join("other.db");
    Connection::open(&other).unwrap().execute_batch("CREATE TABLE runs (a)").unwrap();
    assert!(refused(&other).contains("it is a database of something else; give another file"));
    let path = folder.path().join("history.db");
    written(&path, &log);
    let connection = Connection::open(&path).unwrap();
    connection.pragma_update(None, "user_version", FORMAT + 1).unwrap();
    let newer = refused(&path);
    assert!(newer.contains("it has format 2 of a later version, and this one knows 1"), "{newer}");
    connection.pragma_update(None, "user_version", FORMAT).unwrap();
    connection.execute("UPDATE jobs SET finish_us = start_us WHERE jid = 2", []).unwrap();
    let wrong = format!("{:#}", read(&path, &self::log("b", None, &jobs())).unwrap_err());
    assert!(wrong.contains("understand the jobs of a.swf: job 2 is none"), "{wrong}");
    let nowhere = folder.path().join("none").join("history.db");
    let error = format!("{:#}", write(&nowhere, &log, 4, "", &[]).unwrap_err());
    assert!(error.contains("is its folder there"), "{error}");
}

#[test]
fn a_file_that_is_locked_is_waited_for_and_then_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.db");
    let log = log("a", None, &jobs());
    written(&path, &log);
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let error = format!("{:#}", write(&path, &log, 4, "processors=4", &[]).unwrap_err());
    assert!(error.contains("another program has locked it; close that, or wait for it"), "{error}");
    other.execute_batch("ROLLBACK").unwrap();
    written(&path, &log);
}
