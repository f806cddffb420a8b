//! The results of a sweep: one SQLite file, one row a run.
//!
//! ```text
//! about    key, value            format, name, the sweep file's text, version, command, number of planned runs
//! columns  ordinal, name, role   which columns of runs are parameters and which are metrics
//! runs     digest, position, status, error, wall_s, then a column for each parameter and each metric
//! ```
//!
//! A row is written as soon as its run ends, in a transaction of its own, and the file uses a write-ahead log: a crash
//! loses no finished row, and other programs may read meanwhile. `position` is null for rows of runs that the sweep
//! file no longer has. Columns are added as metrics come; none is ever renamed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;
use experiments::interrupt::Interrupt;
use experiments::lock::lock;
use experiments::terminal::{command_line, note};
use experiments::{exit, folder, limits};
use outputs::sweep::{Cell, Meter, Row, Rows};
use rusqlite::types::{Value as Sql, ValueRef};
use rusqlite::{
    Connection, ErrorCode, OpenFlags, OptionalExtension as _, TransactionBehavior, params_from_iter,
};
use workload::limits::Limits;

use super::file::{Plain, Plan, PlannedRun};

/// The format of the file. A program reads only its own.
const FORMAT: &str = "2";
/// How long SQLite itself waits for a lock, and so how often an interruption is looked at.
const LOCK_LOOK_EVERY: Duration = Duration::from_millis(500);
/// Columns that every row has.
pub const FIXED: [&str; 5] = ["digest", "position", "status", "error", "wall_s"];

/// The measured numbers of a run by name of the column.
pub type Measures = BTreeMap<String, Cell>;

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Ending {
    /// It was measured.
    Done(Measures),
    /// It was not, for this reason.
    Failed(String),
}

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A value that the sweep file gives.
    Parameter,
    /// A number that was measured.
    Metric,
}

impl Role {
    fn name(self) -> &'static str {
        match self {
            Role::Parameter => "parameter",
            Role::Metric => "metric",
        }
    }
}

/// How long a database that another program has locked is waited for: viewers lock, also those that only read.
#[derive(Clone, Debug)]
pub struct Patience {
    /// At most so long, each time.
    pub wait: Duration,
    /// Or until the user asks to stop.
    pub interrupt: Interrupt,
}

/// Another program has locked the database.
#[derive(Debug, thiserror::Error)]
#[error("another program has locked it; close that, or wait for it")]
struct Locked;

impl Patience {
    /// What `act` returns, called again while the database is locked.
    fn with<T>(&self, path: &Path, mut act: impl FnMut() -> anyhow::Result<T>) -> anyhow::Result<T> {
        let begun = Instant::now();
        let mut is_told = false;
        loop {
            match act() {
                Err(error)
                    if is_locked(&error) && begun.elapsed() < self.wait && !self.interrupt.is_set() =>
                {
                    if !is_told {
                        let wait = humantime::format_duration(self.wait);
                        note(&format!(
                            "another program has locked {}; waiting for it, {wait} at most (--wait)",
                            path.display()
                        ));
                        is_told = true;
                    }
                    // Some locks are told of at once.
                    std::thread::sleep(LOCK_LOOK_EVERY / 10);
                }
                done => return done,
            }
        }
    }
}

fn is_locked(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| cause.is::<Locked>())
}

/// An open database.
pub struct Database {
    connection: Connection,
    path: PathBuf,
    /// Columns of `runs`.
    known: BTreeSet<String>,
    patience: Patience,
}

/// The database of a plan, `out/NAME.db` unless `out` says otherwise, for this process alone until the lock is dropped, and what asks it to stop; or the exit code, if what is wrong
/// was told.
///
/// # Errors
/// If the folder or the lock cannot be made, or the process handles signals already.
pub fn begin(
    plan: &Plan,
    out: Option<&Path>,
    wait: Duration,
) -> anyhow::Result<Result<(Database, Interrupt, File), u8>> {
    let default = || PathBuf::from("out").join(format!("{}.db", plan.name));
    let path = out.map_or_else(default, Path::to_path_buf);
    if let Some(folder) = path.parent() {
        folder::make(folder)?;
    }
    let Some(lock) = lock(&path)? else {
        eprintln!(
            "error: another sweep writes into {}; wait for it, or give --out another file",
            path.display()
        );
        return Ok(Err(exit::INPUT));
    };
    let interrupt = Interrupt::on_signals()?;
    let patience = Patience { wait, interrupt: interrupt.clone() };
    Ok(match Database::open(&path, plan, &command_line(), patience) {
        Ok(database) => Ok((database, interrupt, lock)),
        Err(error) => {
            eprintln!("error: {error:#}");
            Err(exit::INPUT)
        }
    })
}

impl Database {
    /// Opens the results of a sweep, or begins them, and takes note of what the sweep file says now.
    ///
    /// # Errors
    /// If the file cannot be used, is no database of a sweep, or is locked for longer than one is patient.
    pub fn open(path: &Path, plan: &Plan, command: &str, patience: Patience) -> anyhow::Result<Database> {
        // A disk that was full may have left a file without anything.
        let fresh = path.metadata().map_or(true, |about| about.len() == 0);
        let connection = Connection::open(path)
            .map_err(once)
            .with_context(|| format!("failed to open {}", path.display()))?;
        connection.busy_timeout(LOCK_LOOK_EVERY).map_err(once)?;
        let mut database = Database {
            connection,
            path: path.to_path_buf(),
            known: BTreeSet::new(),
            patience: patience.clone(),
        };
        patience
            .with(path, || database.begin(fresh, plan, command).map_err(once))
            .with_context(|| format!("failed to use {}", path.display()))?;
        Ok(database)
    }

    fn begin(&mut self, fresh: bool, plan: &Plan, command: &str) -> anyhow::Result<()> {
        if !fresh {
            check_format(&self.connection)?;
        }
        self.connection.pragma_update(None, "journal_mode", "WAL")?;
        // A power cut may lose the last rows, which are then run again; a crash of the program loses none.
        self.connection.pragma_update(None, "synchronous", "NORMAL")?;
        let transaction = self.connection.transaction()?;
        transaction.execute_batch(
            "CREATE TABLE IF NOT EXISTS about (key TEXT PRIMARY KEY, value TEXT NOT NULL);
             CREATE TABLE IF NOT EXISTS columns (ordinal INTEGER PRIMARY KEY, name TEXT UNIQUE NOT NULL, role TEXT NOT NULL);
             CREATE TABLE IF NOT EXISTS runs (digest TEXT PRIMARY KEY, position INTEGER, status TEXT NOT NULL, error TEXT, wall_s REAL);",
        )?;
        let planned = plan.runs.len().to_string();
        for (key, value) in [
            ("format", FORMAT),
            ("planned", &planned),
            ("name", &plan.name),
            ("sweep", &plan.text),
            ("version", env!("CARGO_PKG_VERSION")),
            ("command", command),
        ] {
            transaction.execute("INSERT OR REPLACE INTO about VALUES (?1, ?2)", [key, value])?;
        }
        // Positions are those of the sweep file as it is now; rows of runs that it no longer has keep none.
        transaction.execute("UPDATE runs SET position = NULL", [])?;
        {
            let mut place = transaction.prepare("UPDATE runs SET position = ?2 WHERE digest = ?1")?;
            for run in &plan.runs {
                place.execute(rusqlite::params![run.digest, run.position as i64])?;
            }
        }
        transaction.commit()?;
        self.known = self.columns()?;
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut added = BTreeSet::new();
        for parameter in &plan.parameters {
            add_column(&transaction, &self.known, &mut added, parameter, Role::Parameter)?;
        }
        transaction.commit()?;
        self.known.append(&mut added);
        Ok(())
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn columns(&self) -> rusqlite::Result<BTreeSet<String>> {
        let mut statement = self.connection.prepare("SELECT name FROM pragma_table_info('runs')")?;
        let names = statement.query_map([], |row| row.get(0))?;
        names.collect()
    }

    /// Digests of the runs with a row, and whether they were measured.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn ended(&self) -> anyhow::Result<BTreeMap<String, bool>> {
        let read = || -> rusqlite::Result<_> {
            let mut statement = self.connection.prepare("SELECT digest, status = 'done' FROM runs")?;
            let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
            rows.collect()
        };
        self.patience
            .with(&self.path, || read().map_err(once))
            .with_context(|| format!("failed to read {}", self.path.display()))
    }

    /// How many rows belong to no run of the sweep file.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn stale(&self) -> anyhow::Result<u64> {
        let select = "SELECT count(*) FROM runs WHERE position IS NULL";
        let count = || self.connection.query_row(select, [], |row| row.get::<_, i64>(0)).map_err(once);
        let count = self.patience.with(&self.path, count);
        let count = count.with_context(|| format!("failed to read {}", self.path.display()))?;
        Ok(count.unsigned_abs())
    }

    /// Writes the row of a run, in place of an earlier one.
    ///
    /// # Errors
    /// If the disk is full, for example, or another program has locked the file for longer than one is patient.
    pub fn write(&mut self, run: &PlannedRun, ending: &Ending, wall_s: f64) -> anyhow::Result<()> {
        let patience = self.patience.clone();
        let mut write = || -> rusqlite::Result<()> {
            let none = Measures::new();
            let (status, error, measures) = match ending {
                Ending::Done(measures) => ("done", Sql::Null, measures),
                Ending::Failed(reason) => ("failed", Sql::Text(reason.clone()), &none),
            };
            let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let mut added = BTreeSet::new();
            for name in measures.keys() {
                add_column(&transaction, &self.known, &mut added, name, Role::Metric)?;
            }
            let fixed = [
                Sql::Text(run.digest.clone()),
                Sql::Integer(run.position as i64),
                Sql::Text(status.to_string()),
                error,
                Sql::Real(wall_s),
            ];
            let mut names: Vec<String> = FIXED.iter().map(|name| quoted(name)).collect();
            let mut values = Vec::from(fixed);
            for (path, value) in &run.values {
                names.push(quoted(path));
                values.push(sql(parameter(value)));
            }
            for (name, value) in measures {
                names.push(quoted(name));
                values.push(sql(value.clone()));
            }
            let places = vec!["?"; names.len()].join(", ");
            let statement = format!("INSERT OR REPLACE INTO runs ({}) VALUES ({places})", names.join(", "));
            transaction.execute(&statement, params_from_iter(values))?;
            transaction.commit()?;
            self.known.append(&mut added);
            Ok(())
        };
        patience
            .with(&self.path, || write().map_err(once))
            .with_context(|| format!("failed to write run {} to {}", run.position, self.path.display()))
    }
}

/// Makes room for a value, unless there is some. SQLite takes two columns that differ in case only for one; ours never do.
fn add_column(
    connection: &Connection,
    known: &BTreeSet<String>,
    added: &mut BTreeSet<String>,
    name: &str,
    role: Role,
) -> rusqlite::Result<()> {
    if known.contains(name) || !added.insert(name.to_string()) {
        return Ok(());
    }
    connection.execute(&format!("ALTER TABLE runs ADD COLUMN {}", quoted(name)), [])?;
    connection.execute("INSERT INTO columns (name, role) VALUES (?1, ?2)", [name, role.name()])?;
    Ok(())
}

/// Reads all rows of the present sweep file's runs.
///
/// # Errors
/// If the file cannot be read, is no database of a sweep, or is over a limit.
pub fn read(path: &Path, limits: &Limits) -> anyhow::Result<Rows> {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)
        .map_err(once)
        .with_context(|| format!("failed to read {}; check the path", path.display()))?;
    read_rows(&connection, limits).map_err(once).with_context(|| format!("failed to read {}", path.display()))
}

fn read_rows(connection: &Connection, limits: &Limits) -> anyhow::Result<Rows> {
    check_format(connection)?;
    let about = |key: &str| -> rusqlite::Result<String> {
        connection.query_row("SELECT value FROM about WHERE key = ?1", [key], |row| row.get(0))
    };
    let names = |role: Role| -> rusqlite::Result<Vec<String>> {
        let mut statement =
            connection.prepare("SELECT name FROM columns WHERE role = ?1 ORDER BY ordinal")?;
        statement.query_map([role.name()], |row| row.get(0))?.collect()
    };
    let (parameters, metrics) = (names(Role::Parameter)?, names(Role::Metric)?);
    let columns: Vec<String> = ["position", "status", "error", "wall_s"]
        .into_iter()
        .map(str::to_string)
        .chain(parameters.iter().chain(&metrics).map(|name| quoted(name)))
        .collect();
    // Sorted here: SQLite would write rows to a temporary file before any of them is counted.
    let select = format!("SELECT {} FROM runs WHERE position IS NOT NULL", columns.join(", "));
    let mut statement = connection.prepare(&select)?;
    let mut found = statement.query([])?;
    let mut rows = Vec::new();
    let mut meter = Meter::new(limits);
    while let Some(row) = found.next()? {
        meter.row(parameters.len() + metrics.len())?;
        for index in 0..columns.len() {
            if let ValueRef::Text(text) = row.get_ref(index)? {
                meter.text(text.len())?;
            }
        }
        let cell = |index: usize| -> rusqlite::Result<Cell> {
            Ok(match row.get_ref(index)? {
                ValueRef::Null | ValueRef::Blob(_) => Cell::Null,
                ValueRef::Integer(value) => Cell::Integer(value),
                ValueRef::Real(value) => Cell::Real(value),
                ValueRef::Text(text) => Cell::Text(String::from_utf8_lossy(text).into_owned()),
            })
        };
        let cells = |from: usize, count: usize| (from..from + count).map(cell).collect::<Result<Vec<_>, _>>();
        rows.push(Row {
            position: row.get(0)?,
            done: row.get::<_, String>(1)? == "done",
            error: row.get(2)?,
            wall_s: row.get::<_, Option<f64>>(3)?.unwrap_or(0.0),
            parameters: cells(4, parameters.len())?,
            metrics: cells(4 + parameters.len(), metrics.len())?,
        });
    }
    rows.sort_by_key(|row: &Row| row.position);
    let planned = match about("planned") {
        Ok(text) => text.parse().ok(),
        Err(rusqlite::Error::QueryReturnedNoRows) => None,
        Err(error) => return Err(error.into()),
    };
    Ok(Rows {
        planned,
        digits: None,
        name: about("name")?,
        text: about("sweep")?,
        version: about("version")?,
        command: about("command")?,
        commit: None,
        parameters,
        metrics,
        rows,
    })
}

/// A file of another program, or of another version of this one, is left alone.
fn check_format(connection: &Connection) -> anyhow::Result<()> {
    check_tables(connection).map_err(no_database)?;
    for text in ["about.key", "about.value", "columns.name", "columns.role"] {
        let (table, column) = text.split_once('.').expect("written so");
        // It is not read for that.
        let select = format!("SELECT coalesce(sum(octet_length({column})), 0) FROM {table}");
        let bytes: i64 = connection.query_row(&select, [], |row| row.get(0)).map_err(once)?;
        if bytes.unsigned_abs() > limits::ABOUT {
            let most = limits::ABOUT;
            anyhow::bail!("{text} has {bytes} bytes, more than the {most} that a sweep may say of itself");
        }
    }
    let format: Result<String, _> =
        connection.query_row("SELECT value FROM about WHERE key = 'format'", [], |row| row.get(0));
    match format {
        Ok(format) if format == FORMAT => Ok(()),
        Ok(format) if format.len() > 20 => anyhow::bail!("it is no database of a sweep; name another file"),
        Ok(format) => anyhow::bail!("it has format {format}, this version reads {FORMAT}; name another file"),
        Err(error) => Err(no_database(error.into())),
    }
}

/// Why a file is no database of a sweep; one that is locked may well be.
fn no_database(error: anyhow::Error) -> anyhow::Error {
    let error = once(error);
    if is_locked(&error) { error } else { error.context("it is no database of a sweep; name another file") }
}

/// What is read must be on the disk, so that it costs what the file takes: what a view, a virtual table or a column of
/// somebody else computes has no end.
fn check_tables(connection: &Connection) -> anyhow::Result<()> {
    let one = |select: &str| -> rusqlite::Result<Option<(String, String)>> {
        connection.query_row(select, [], |row| Ok((row.get(0)?, row.get(1)?))).optional()
    };
    let other = one("SELECT name, type FROM pragma_table_list
         WHERE schema = 'main' AND type <> 'table' AND name COLLATE NOCASE IN ('about', 'columns', 'runs')")?;
    if let Some((name, kind)) = other {
        anyhow::bail!("{name} is a {kind}, where a sweep has a table");
    }
    let computed = one("SELECT x.name, t.column1 FROM (VALUES ('about'), ('columns'), ('runs')) AS t,
         pragma_table_xinfo(t.column1) AS x WHERE x.hidden <> 0")?;
    if let Some((column, table)) = computed {
        anyhow::bail!("{column} of {table} is computed, where a sweep has a value");
    }
    Ok(())
}

/// What SQLite says, without its cause: that is a number and the same words again, and who prints the causes of an error
/// would say it twice.
fn once(error: impl Into<anyhow::Error>) -> anyhow::Error {
    let error = error.into();
    match error.downcast_ref::<rusqlite::Error>() {
        Some(said)
            if matches!(
                said.sqlite_error_code(),
                Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
            ) =>
        {
            Locked.into()
        }
        Some(said) => anyhow::anyhow!("{said}"),
        None => error,
    }
}

/// A name as SQL takes it, whatever is in it.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn parameter(value: &toml::Value) -> Cell {
    match value {
        toml::Value::Integer(value) => Cell::Integer(*value),
        toml::Value::Float(value) => Cell::Real(*value),
        other => Cell::Text(Plain(other).to_string()),
    }
}

fn sql(cell: Cell) -> Sql {
    match cell {
        Cell::Null => Sql::Null,
        Cell::Integer(value) => Sql::Integer(value),
        Cell::Real(value) => Sql::Real(value),
        Cell::Text(text) => Sql::Text(text),
    }
}
