//! What machines did, as a SQLite file that can be asked, shipped and gone on with: the data repository of Lérida's thesis, 2.8 and appendix
//! B.
//!
//! Seven tables. `experiments` has a row for each log on a machine; `policies` one for the log itself and for each order of EASY; `nodes` the
//! machine, `applications` what its jobs run, `jobs` each job under each policy, `job_nodes` which node it held and when, and `queue_at_arrive`
//! who waited when it came. Times are microseconds from the start of the log. docs/PREDICTION.md has the columns. A dedicated machine shares
//! no node between jobs, so in `job_nodes` each job stands with itself.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail};
use predict::Forecast;
use predict::score::{Happened, predictions_by};
use report::quantity::{counted, grouped};
use rusqlite::{Connection, ErrorCode, OpenFlags};
use scheduler::local::Estimator;
use scheduler::{JobId, JobSpec, Labels, SiteId, Span, Time, TimedJob};
use serde::{Deserialize, Serialize};

use super::log::Log;

/// By what a file of ours is known: "Shis".
pub(super) const APPLICATION: i32 = 0x5368_6973;
/// The format of the tables. A program reads up to its own.
pub(super) const FORMAT: i32 = 1;
/// How long a file that another program has locked is waited for. Arbitrary: longer than anybody writes a row, and shorter than a user waits
/// in doubt.
const LOCK_WAIT: Duration = Duration::from_secs(5);
/// Jobs that waited when one came, of which a row is kept: the first of the queue. Arbitrary; how many there were is in `jobs` and of a
/// busy log all of them would be most of the file.
pub(super) const QUEUE_MAX: usize = 20;

pub(super) const TABLES: &str = "
CREATE TABLE experiments (
  eid INTEGER PRIMARY KEY, log TEXT NOT NULL, sha256 TEXT NOT NULL, unix_start_s INTEGER, options TEXT NOT NULL, estimator TEXT NOT NULL,
  version TEXT NOT NULL, state TEXT NOT NULL, UNIQUE (sha256, options)
);
CREATE TABLE policies (pid INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, description TEXT NOT NULL);
CREATE TABLE nodes (
  nid INTEGER PRIMARY KEY, eid INTEGER NOT NULL REFERENCES experiments, name TEXT NOT NULL, processors INTEGER NOT NULL, power REAL NOT NULL
);
CREATE TABLE applications (
  aid INTEGER PRIMARY KEY, eid INTEGER NOT NULL REFERENCES experiments, executable INTEGER NOT NULL, processors INTEGER NOT NULL,
  longest_us INTEGER NOT NULL, memory_kb INTEGER NOT NULL, UNIQUE (eid, executable, processors)
);
CREATE TABLE jobs (
  hjid INTEGER PRIMARY KEY, eid INTEGER NOT NULL REFERENCES experiments, pid INTEGER NOT NULL REFERENCES policies,
  aid INTEGER NOT NULL REFERENCES applications, jid INTEGER NOT NULL, user INTEGER NOT NULL, user_group INTEGER NOT NULL,
  queue INTEGER NOT NULL, requested_us INTEGER NOT NULL, arrive_us INTEGER NOT NULL, start_us INTEGER NOT NULL, finish_us INTEGER NOT NULL,
  sim_start_us INTEGER, sim_finish_us INTEGER, error_us INTEGER, used_s REAL NOT NULL, ahead_jobs INTEGER NOT NULL, ahead_s REAL NOT NULL,
  UNIQUE (eid, pid, jid)
);
CREATE TABLE job_nodes (
  hjid1 INTEGER NOT NULL REFERENCES jobs, hjid2 INTEGER NOT NULL REFERENCES jobs, nid INTEGER NOT NULL REFERENCES nodes,
  start_us INTEGER NOT NULL, finish_us INTEGER NOT NULL, PRIMARY KEY (hjid1, hjid2, nid)
) WITHOUT ROWID;
CREATE TABLE queue_at_arrive (
  hjid1 INTEGER NOT NULL REFERENCES jobs, hjid2 INTEGER NOT NULL REFERENCES jobs, position INTEGER NOT NULL, PRIMARY KEY (hjid1, hjid2)
) WITHOUT ROWID;
";

/// The policy under which jobs are as the log has them.
pub(super) const OF_LOG: &str = "log";

/// An earlier log that predictors learned from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Source {
    log: String,
    sha256: String,
    processors: u32,
    jobs: usize,
}

impl Source {
    /// In words.
    pub(super) fn words(&self) -> String {
        format!(
            "Before the first job predictors met {} jobs of {} on {}, from a history",
            grouped(self.jobs as u64),
            self.log,
            counted(self.processors, "processor")
        )
    }
}

/// What there was before the log.
#[derive(Clone, Debug, Default)]
pub(super) struct Earlier {
    pub(super) sources: Vec<Source>,
    /// For each, the processors of its machine, and its jobs in the order of submission, with times that end before the log begins.
    pub(super) logs: Vec<(u32, Vec<Happened>)>,
    /// Jobs left out, as they ended when the log had begun.
    pub(super) too_late: usize,
    /// Whether the file has this very log, which is left out.
    pub(super) has_log: bool,
}

impl Earlier {
    /// How many jobs there are.
    pub(super) fn jobs(&self) -> usize {
        self.logs.iter().map(|(_, jobs)| jobs.len()).sum()
    }

    /// An estimator that has met all of them.
    pub(super) fn met_by(&self, forecast: Forecast) -> Box<dyn Estimator> {
        let mut estimator = forecast.estimator();
        for (_, jobs) in &self.logs {
            predictions_by(estimator.as_mut(), jobs);
        }
        estimator
    }

    /// The same as jobs to be run on their machines.
    pub(super) fn timed(&self) -> Vec<(u32, Vec<TimedJob>)> {
        let timed = |jobs: &Vec<Happened>| {
            jobs.iter().map(|job| TimedJob { spec: job.job, run_time: job.run_time }).collect()
        };
        self.logs.iter().map(|(processors, jobs)| (*processors, timed(jobs))).collect()
    }
}

/// Opens a file, which is made if it is not there and may be.
pub(super) fn open(path: &Path, flags: OpenFlags) -> anyhow::Result<Connection> {
    let name = path.display();
    let connection = Connection::open_with_flags(path, flags)
        .with_context(|| format!("open {name} (--history): is its folder there, and may you write there?"))?;
    connection.busy_timeout(LOCK_WAIT)?;
    let number = |pragma: &str| connection.pragma_query_value(None, pragma, |row| row.get::<_, i32>(0));
    let tables =
        || connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get::<_, i64>(0));
    let known =
        (|| Ok::<_, rusqlite::Error>((number("application_id")?, number("user_version")?, tables()?)))();
    match known.map_err(told).with_context(|| format!("use {name} (--history)"))? {
        (APPLICATION, format, _) if format > FORMAT => bail!(
            "use {name} (--history): it has format {format} of a later version, and this one knows {FORMAT}; use that version, or give \
             another file"
        ),
        (APPLICATION, ..) | (0, 0, 0) => Ok(connection),
        _ => bail!("use {name} (--history): it is a database of something else; give another file"),
    }
}

/// What a user can do about it.
pub(super) fn told(error: rusqlite::Error) -> anyhow::Error {
    let advice = match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            "another program has locked it; close that, or wait for it"
        }
        Some(ErrorCode::NotADatabase) => "it is no SQLite database; give another file",
        Some(ErrorCode::DatabaseCorrupt) => "it is damaged; give another file, or a copy of it from before",
        Some(ErrorCode::ReadOnly) => "it may not be written; give another file, or let yourself write it",
        Some(ErrorCode::DiskFull) => "the disk is full; make room there",
        _ => return error.into(),
    };
    anyhow::Error::from(error).context(advice)
}

/// What a file knows of logs before this one; nothing if it is not there.
///
/// # Errors
/// If it is none of ours, of a later version, damaged or locked.
pub(super) fn read(path: &Path, log: &Log) -> anyhow::Result<Earlier> {
    if !path.exists() {
        return Ok(Earlier::default());
    }
    let connection = open(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let is_empty =
        connection.pragma_query_value(None, "application_id", |row| row.get::<_, i32>(0)).map_err(told)? == 0;
    if is_empty {
        return Ok(Earlier::default());
    }
    logs(&connection, log).with_context(|| format!("read {} (--history)", path.display()))
}

fn logs(connection: &Connection, log: &Log) -> anyhow::Result<Earlier> {
    let mut earlier = Earlier::default();
    let mut found = connection
        .prepare("SELECT eid, log, sha256, unix_start_s FROM experiments WHERE state = 'valid' ORDER BY eid")
        .map_err(told)?;
    let found = found.query_map([], |row| {
        Ok((row.get::<_, i64>(0)?, row.get(1)?, row.get::<_, String>(2)?, row.get::<_, Option<i64>>(3)?))
    });
    let found: Vec<(i64, String, String, Option<i64>)> = found?.collect::<Result<_, _>>().map_err(told)?;
    let first = log.jobs.first().map_or(Time::ZERO, |job| job.spec.submit);
    let mut known: Vec<String> = Vec::new();
    for (eid, name, sha256, unix_start_s) in found {
        if sha256 == log.sha256 {
            earlier.has_log = true;
            continue;
        }
        // The same log with other options says nothing new.
        if known.contains(&sha256) {
            continue;
        }
        let processors: u32 =
            connection
                .query_row("SELECT sum(processors) FROM nodes WHERE eid = ?1", [eid], |row| row.get(0))?;
        let mut jobs =
            jobs(connection, eid, processors).with_context(|| format!("understand the jobs of {name}"))?;
        // What ended after this log began was not known then. Where a log does not say when it was, it is taken for earlier.
        if let (Some(then), Some(now)) = (unix_start_s, log.unix_start_s) {
            let begin = first + Span::from_secs(now.saturating_sub(then));
            let before = jobs.len();
            jobs.retain(|job| job.end <= begin);
            earlier.too_late += before - jobs.len();
        }
        let Some(last) = jobs.iter().map(|job| job.end).max() else { continue };
        // Predictors are told of things in the order of time.
        let shift = first.since(last) - Span::from_micros(1);
        for job in &mut jobs {
            (job.job.submit, job.end) = (job.job.submit + shift, job.end + shift);
        }
        known.push(sha256.clone());
        earlier.sources.push(Source { log: name, sha256, processors, jobs: jobs.len() });
        earlier.logs.push((processors, jobs));
    }
    Ok(earlier)
}

fn jobs(connection: &Connection, eid: i64, machine: u32) -> anyhow::Result<Vec<Happened>> {
    let mut select = connection.prepare(
        "SELECT jid, user, user_group, queue, executable, processors, requested_us, arrive_us, start_us, finish_us, memory_kb
         FROM jobs JOIN applications USING (aid) JOIN policies USING (pid)
         WHERE jobs.eid = ?1 AND policies.name = ?2 ORDER BY arrive_us, jid",
    )?;
    let rows = select.query_map((eid, OF_LOG), |row| {
        let span = |place| row.get(place).map(Span::from_micros);
        let time = |place| row.get(place).map(Time::from_micros);
        let labels = Labels {
            user: row.get(1)?,
            group: row.get(2)?,
            queue: row.get(3)?,
            executable: row.get(4)?,
            memory: row.get(10)?,
        };
        let job = JobSpec {
            id: JobId(row.get::<_, i64>(0)?.unsigned_abs()),
            submit: time(7)?,
            processors: row.get(5)?,
            requested: span(6)?,
            labels,
            origin: SiteId(1),
            payload: 0,
        };
        Ok((job, time(8)?, time(9)?))
    })?;
    let mut all = Vec::new();
    for row in rows {
        let (job, start, end) = row.map_err(told)?;
        let is_sound = (1..=machine).contains(&job.processors)
            && job.requested > Span::ZERO
            && job.submit <= start
            && start < end;
        if !is_sound {
            bail!(
                "job {} is none: a job needs 1 to {machine} processors and a requested time, and arrives, starts and finishes in that \
                 order; correct its row, or give another file",
                job.id
            );
        }
        all.push(Happened { job, run_time: end.since(start), end });
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use scheduler::LocalScheduler;

    use super::super::choice::Order;
    use super::super::history_rows::write;

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
        assert_eq!(
            earlier.sources,
            [Source { log: "a.swf".into(), sha256: "a".into(), processors: 4, jobs: 3 }]
        );
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
}
