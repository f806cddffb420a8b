//! A log and what became of it, as rows.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::Context as _;
use predict::waits::Ahead;
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior, params};
use scheduler::{JobId, QueueKey, Span, Time, TimedJob};

use super::choice::Order;
use super::history::{APPLICATION, FORMAT, OF_LOG, QUEUE_MAX, TABLES, open, told};
use super::log::Log;
use super::waits::Waited;

/// A job under a policy.
struct Placed<'a> {
    job: &'a TimedJob,
    start: Time,
    /// None where nobody predicted.
    predicted: Option<Time>,
}

/// Writes a log on a machine, as it was and under each order, in place of what the file knew of it.
///
/// # Errors
/// If the file is none of ours, of a later version, or locked, or the disk is full.
pub(super) fn write(
    path: &Path,
    log: &Log,
    processors: u32,
    options: &str,
    orders: &[(Order, Vec<Waited>)],
) -> anyhow::Result<()> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
    let mut connection = open(path, flags)?;
    replace(&mut connection, log, processors, options, orders)
        .map_err(told)
        .with_context(|| format!("write {} (--history)", path.display()))
}

fn replace(
    connection: &mut Connection,
    log: &Log,
    processors: u32,
    options: &str,
    orders: &[(Order, Vec<Waited>)],
) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let is_new = transaction.pragma_query_value(None, "application_id", |row| row.get::<_, i32>(0))? == 0;
    if is_new {
        transaction.execute_batch(TABLES)?;
        transaction.pragma_update(None, "application_id", APPLICATION)?;
        transaction.pragma_update(None, "user_version", FORMAT)?;
    }
    forget(&transaction, log, options)?;
    transaction.execute(
        "INSERT INTO experiments (log, sha256, unix_start_s, options, estimator, version, state) VALUES (?1, ?2, ?3, ?4, ?5, ?6, 'valid')",
        params![log.name, log.sha256, log.unix_start_s, options, "plan:by=user", env!("CARGO_PKG_VERSION")],
    )?;
    let eid = transaction.last_insert_rowid();
    transaction.execute(
        "INSERT INTO nodes (eid, name, processors, power) VALUES (?1, 'machine', ?2, 1.0)",
        params![eid, processors],
    )?;
    let nid = transaction.last_insert_rowid();
    let mut experiment = Experiment { transaction: &transaction, eid, nid, applications: BTreeMap::new() };
    experiment.applications(log)?;
    let starts = log.happened.iter().zip(&log.jobs).map(|(happened, job)| Placed {
        job,
        start: (happened.end - happened.run_time).max(job.spec.submit),
        predicted: None,
    });
    experiment.jobs(OF_LOG, "as it was in the log", &starts.collect::<Vec<_>>())?;
    for (order, waited) in orders {
        let placed = log.jobs.iter().zip(waited).map(|(job, waited)| Placed {
            job,
            start: job.spec.submit + waited.wait,
            predicted: waited.predicted.map(|wait| job.spec.submit + wait),
        });
        let description = format!("EASY by users' estimates, overtaking in order {order}");
        experiment.jobs(&order.to_string(), &description, &placed.collect::<Vec<_>>())?;
    }
    transaction.commit()
}

/// What the file knew of this log with these options.
fn forget(transaction: &Transaction<'_>, log: &Log, options: &str) -> rusqlite::Result<()> {
    let of_jobs = |table: &str| {
        format!(
            "DELETE FROM {table} WHERE hjid1 IN (SELECT hjid FROM jobs WHERE eid IN (SELECT eid FROM experiments WHERE sha256 = ?1 AND \
             options = ?2))"
        )
    };
    let of_experiment = |table: &str| {
        format!(
            "DELETE FROM {table} WHERE eid IN (SELECT eid FROM experiments WHERE sha256 = ?1 AND options = ?2)"
        )
    };
    let deletions = ["job_nodes", "queue_at_arrive"].map(of_jobs);
    for deletion in
        deletions.into_iter().chain(["jobs", "applications", "nodes", "experiments"].map(of_experiment))
    {
        transaction.execute(&deletion, [&log.sha256, options])?;
    }
    Ok(())
}

/// An experiment that is written.
struct Experiment<'a> {
    transaction: &'a Transaction<'a>,
    eid: i64,
    nid: i64,
    /// By program and processors.
    applications: BTreeMap<(i32, u32), i64>,
}

impl Experiment<'_> {
    /// Programs by width: one that runs on several widths is several, as in the thesis.
    fn applications(&mut self, log: &Log) -> rusqlite::Result<()> {
        let mut known: BTreeMap<(i32, u32), (Span, i64)> = BTreeMap::new();
        for job in &log.jobs {
            let about =
                known.entry((job.spec.labels.executable, job.spec.processors)).or_insert((Span::ZERO, -1));
            *about = (about.0.max(job.run_time), about.1.max(job.spec.labels.memory));
        }
        let mut insert = self.transaction.prepare(
            "INSERT INTO applications (eid, executable, processors, longest_us, memory_kb) VALUES (?1, ?2, ?3, ?4, ?5)",
        )?;
        for ((executable, processors), (longest, memory)) in known {
            insert.execute(params![self.eid, executable, processors, longest.as_micros(), memory])?;
            self.applications.insert((executable, processors), self.transaction.last_insert_rowid());
        }
        Ok(())
    }

    /// Jobs in the order of submission, as a policy has them.
    fn jobs(&self, policy: &str, description: &str, placed: &[Placed<'_>]) -> rusqlite::Result<()> {
        self.transaction.execute(
            "INSERT INTO policies (name, description) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET description = ?2",
            [policy, description],
        )?;
        let pid: i64 =
            self.transaction
                .query_row("SELECT pid FROM policies WHERE name = ?1", [policy], |row| row.get(0))?;
        let mut insert = self.transaction.prepare(
            "INSERT INTO jobs (eid, pid, aid, jid, user, user_group, queue, requested_us, arrive_us, start_us, finish_us, sim_start_us,
             sim_finish_us, error_us, used_s, ahead_jobs, ahead_s)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)",
        )?;
        let mut on_node = self.transaction.prepare("INSERT INTO job_nodes VALUES (?1, ?1, ?2, ?3, ?4)")?;
        let mut before = self.transaction.prepare("INSERT INTO queue_at_arrive VALUES (?1, ?2, ?3)")?;
        let mut queue = Queue::default();
        for one in placed {
            let TimedJob { spec, run_time } = *one.job;
            queue.pass(spec.submit);
            let (submit, start) = (spec.submit.as_micros(), one.start.as_micros());
            let finish = one.start.saturating_add(run_time).as_micros();
            let sim_finish = one.predicted.map(|start| start.saturating_add(spec.requested).as_micros());
            let predicted = one.predicted.map(Time::as_micros);
            insert.execute(params![
                self.eid,
                pid,
                self.applications[&(spec.labels.executable, spec.processors)],
                i64::try_from(spec.id.0).expect("it was an i64 in the log"),
                spec.labels.user,
                spec.labels.group,
                spec.labels.queue,
                spec.requested.as_micros(),
                submit,
                start,
                finish,
                predicted,
                sim_finish,
                predicted.map(|predicted| predicted - start),
                f64::from(spec.processors) * run_time.as_secs_f64(),
                i64::try_from(queue.ahead.jobs).expect("fewer jobs than that"),
                queue.ahead.work as f64 / 1e6,
            ])?;
            let hjid = self.transaction.last_insert_rowid();
            on_node.execute(params![hjid, self.nid, start, finish])?;
            for (position, other) in queue.first().enumerate() {
                before.execute(params![hjid, other, position as i64 + 1])?;
            }
            queue.join(one, hjid);
        }
        Ok(())
    }
}

/// Who waits, as jobs come.
#[derive(Default)]
struct Queue<'a> {
    /// In the order of the queue.
    waiting: BTreeMap<QueueKey, (&'a TimedJob, i64)>,
    starts: BTreeSet<(Time, JobId, QueueKey)>,
    ahead: Ahead,
}

impl<'a> Queue<'a> {
    /// Who starts until then waits no more.
    fn pass(&mut self, now: Time) {
        while let Some(&(start, job, key)) = self.starts.first().filter(|(start, ..)| *start <= now) {
            self.starts.remove(&(start, job, key));
            let (job, _) = self.waiting.remove(&key).expect("who starts has waited");
            self.ahead.remove(&job.spec);
        }
    }

    fn join(&mut self, one: &Placed<'a>, hjid: i64) {
        let key = one.job.spec.key();
        self.waiting.insert(key, (one.job, hjid));
        self.starts.insert((one.start, one.job.spec.id, key));
        self.ahead.add(&one.job.spec);
    }

    /// Numbers of the rows of the first that wait.
    fn first(&self) -> impl Iterator<Item = i64> + '_ {
        self.waiting.values().take(QUEUE_MAX).map(|&(_, hjid)| hjid)
    }
}
