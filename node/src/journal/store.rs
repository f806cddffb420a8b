//! The file: rows, changes of them, and events in SQLite, one transaction for each commit, and a guard that notices
//! lost commits.
//!
//! A commit appends its changes to the table `log`; later ones bring them into the rows. So what the file says is its
//! rows with the logged changes over them.
//!
//! SQLite takes a write-ahead log that ends early as one that was never longer. So the number of commits is kept
//! in the lock file as well: a store that has fewer than that has lost some.

use std::fs::{File, TryLockError};
use std::io::{self, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, params};
use scheduler::Event;

use super::changes::{Changes, Rows};
use super::error::JournalError;
use super::row::{Key, Kind, Single, checksum, decode, encode};
use super::{Durability, FORMAT};
use crate::private;

/// The journal in its directory.
pub(super) const FILE: &str = "journal.sqlite";
/// The file that is locked while a node uses the directory.
pub(super) const LOCK: &str = "lock";
/// Checksums of events are told from those of rows by this.
const EVENTS: u8 = 255;
/// Those of logged changes by this.
const LOG: u8 = 254;
/// Bytes of a page, the unit of the limit.
const PAGE: u64 = 4096;
/// The write-ahead log is cut back to this after a checkpoint.
const WAL_BYTES: u64 = 64 * 1024 * 1024;

/// How each file of SQLite begins, how many bytes of that are looked at, and where among them its `user_version` is,
/// the highest byte first (SQLite, Database File Format, section 1.3). It is our [`FORMAT`], from the beginning on.
const SQLITE_MAGIC: &[u8] = b"SQLite format 3\0";
const SQLITE_HEAD: usize = 64;
const SQLITE_VERSION: usize = 60;

/// SQLite locks nothing of a connection: no two threads use one at once.
const ONE_AT_A_TIME: OpenFlags = OpenFlags::SQLITE_OPEN_NO_MUTEX;

const SCHEMA: &str = "
    CREATE TABLE row (
        kind INTEGER NOT NULL, a INTEGER NOT NULL, b INTEGER NOT NULL, value BLOB NOT NULL, sum INTEGER NOT NULL,
        PRIMARY KEY (kind, a, b)
    ) WITHOUT ROWID;
    CREATE TABLE log (number INTEGER PRIMARY KEY, value BLOB NOT NULL, sum INTEGER NOT NULL);
    CREATE TABLE events (first INTEGER PRIMARY KEY, value BLOB NOT NULL, sum INTEGER NOT NULL);
";

/// An open journal file.
#[derive(Debug)]
pub(super) struct Store {
    db: Connection,
    path: PathBuf,
    guard: File,
    commits: u64,
    /// Changes that the table of rows lacks.
    logged: Rows,
    /// What is wrong with them.
    damage: Vec<String>,
}

/// What one transaction writes: all of it, or nothing.
pub(super) struct Commit<'a> {
    /// See [`super::changes`].
    pub(super) changes: &'a [u8],
    /// Rows to bring up to date.
    pub(super) rows: &'a [(Key, Option<&'a [u8]>)],
    /// The rows are up to date with all changes up to this commit.
    pub(super) folded: Option<u64>,
    /// The number of the first event.
    pub(super) first_event: u64,
    /// Events to add.
    pub(super) events: &'a [Event],
}

/// A row as read.
pub(super) struct Row {
    pub(super) key: Key,
    pub(super) value: Vec<u8>,
}

impl Store {
    /// Opens the store of a directory, or makes one; and whether nothing was ever written.
    pub(super) fn open(
        dir: &Path,
        durability: Durability,
        bytes_max: Option<u64>,
    ) -> Result<(Store, bool), JournalError> {
        let file_error = |what: &str, path: &Path| {
            let what = format!("{what} {}", path.display());
            move |error| JournalError::File { what, error }
        };
        private::make_folder(dir).map_err(file_error("make the data directory", dir))?;
        if private::others_may_write(dir).map_err(file_error("look at", dir))? {
            // One that was there may have been made for a group of users on purpose.
            let dir = dir.display();
            tracing::warn!("others may put a journal of theirs into {dir}; chmod go-w {dir}");
        }
        let lock = dir.join(LOCK);
        let guard = private::options().read(true).write(true).create(true).truncate(false).open(&lock);
        let mut guard = guard.map_err(file_error("open", &lock))?;
        // Not waited for: a coordinator that finds a former node here ends it or takes it over at once.
        match guard.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(JournalError::InUse { dir: dir.to_path_buf() }),
            Err(TryLockError::Error(error)) => return Err(file_error("lock", &lock)(error)),
        }
        let path = dir.join(FILE);
        let fail = failure(&path);
        let exists = path.try_exists().map_err(file_error("look at", &path))?;
        let promised = promised(&mut guard).map_err(file_error("read", &lock))?;
        if !exists && promised > 0 {
            let what = format!("the file is missing, and there were {promised} writes; put it back");
            return Err(JournalError::Damaged { path, what });
        } else if !exists {
            create(&path, durability, bytes_max)?;
        } else if std::fs::metadata(&path).is_ok_and(|file| file.len() < PAGE) {
            return Err(JournalError::Damaged { path, what: "the file is cut off".to_string() });
        }
        check_format(dir, &path)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | ONE_AT_A_TIME;
        let db = Connection::open_with_flags(&path, flags).map_err(&fail)?;
        // Whoever is refused has merged nothing.
        merge_at_the_end(&db, false).map_err(&fail)?;
        prepare(&db, durability, bytes_max).map_err(&fail)?;
        let mut store = Store { db, path, guard, commits: 0, logged: Rows::default(), damage: Vec::new() };
        // Events are checked when they are read, so that a start does not take longer the more there are.
        store.check("('row')")?;
        store.check("('log')")?;
        store.read_log()?;
        if let Some(what) = store.damage.first() {
            return Err(store.damaged(what));
        }
        if let Some(what) = store.lacks(promised) {
            return Err(store.damaged(what));
        }
        // A store without a single write is one whose beginning was interrupted.
        let is_new = store.commits == 0;
        Ok((store, is_new))
    }

    /// The journal is what its user looks for: from now on it is written to.
    pub(super) fn take_over(&self) -> Result<(), JournalError> {
        merge_at_the_end(&self.db, true).map_err(self.failure())
    }

    /// The journal of a directory, to look at. A node may be using it.
    pub(super) fn look(dir: &Path) -> Result<Store, JournalError> {
        let path = dir.join(FILE);
        let file_error = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => JournalError::None { dir: dir.to_path_buf() },
            _ => JournalError::File { what: format!("open {}", path.display()), error },
        };
        std::fs::metadata(&path).map_err(file_error)?;
        let mut guard = File::open(dir.join(LOCK)).map_err(file_error)?;
        // Before the file, in which a node may write meanwhile: it promises no write that is not there.
        let promised = promised(&mut guard).map_err(file_error)?;
        check_format(dir, &path)?;
        let db = Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_ONLY | ONE_AT_A_TIME);
        let db = db.map_err(failure(&path))?;
        // All that is read is of one instant, whatever a node writes meanwhile.
        db.execute_batch("BEGIN").map_err(failure(&path))?;
        let mut store = Store { db, path, guard, commits: 0, logged: Rows::default(), damage: Vec::new() };
        store.read_log()?;
        if let Some(what) = store.lacks(promised) {
            store.damage.push(what);
        }
        Ok(store)
    }

    /// What is wrong if there were so many writes.
    fn lacks(&self, promised: u64) -> Option<String> {
        let commits = self.commits;
        (commits < promised).then(|| format!("it ends after {commits} writes, and there were {promised}"))
    }

    /// A store without a file that lacks these changes; never to be written to.
    #[cfg(feature = "doors")]
    pub(super) fn in_memory(logged: Rows) -> Result<Store, JournalError> {
        let path = PathBuf::from(":memory:");
        let file_error = |error| JournalError::File { what: "open /dev/null".to_string(), error };
        let guard = File::open("/dev/null").map_err(file_error)?;
        let fail = failure(&path);
        let db = Connection::open_in_memory().map_err(&fail)?;
        db.execute_batch(SCHEMA).map_err(&fail)?;
        drop(fail);
        Ok(Store { db, path, guard, commits: 0, logged, damage: Vec::new() })
    }

    /// SQLite's own check of the structure of the file: of `(1)`, all of it, or of `('TABLE')`.
    pub(super) fn check(&self, of: &str) -> Result<(), JournalError> {
        let found: String = self
            .db
            .query_row(&format!("PRAGMA quick_check{of}"), [], |row| row.get(0))
            .map_err(self.failure())?;
        // What is wrong with one page is told of many; the first says enough.
        let first: Vec<&str> = found.lines().take(2).collect();
        if found == "ok" { Ok(()) } else { Err(self.damaged(first.join(" "))) }
    }

    /// Reads the changes that the table of rows lacks.
    pub(super) fn read_log(&mut self) -> Result<(), JournalError> {
        let folded: u64 = self.single(Single::Folded)?.unwrap_or(0);
        self.commits = folded;
        let fail = self.failure();
        let (mut changes, mut damage) = (Changes::default(), Vec::new());
        let mut statement =
            self.db.prepare("SELECT number, value, sum FROM log ORDER BY number").map_err(&fail)?;
        let mut rows = statement.query([]).map_err(&fail)?;
        while let Some(row) = rows.next().map_err(&fail)? {
            let read =
                || -> rusqlite::Result<(i64, Vec<u8>, i64)> { Ok((row.get(0)?, row.get(1)?, row.get(2)?)) };
            let (number, value, sum) = read().map_err(&fail)?;
            let number = number as u64;
            let expected = self.commits + 1;
            if number != expected {
                damage.push(format!("writes {expected} to {number} are missing"));
            }
            self.commits = number;
            if i64::from(checksum(LOG, number, 0, &value)) == sum {
                damage.extend(changes.read(&value).err());
            } else {
                damage.push(format!("the checksum of write {number} is wrong"));
            }
        }
        drop(rows);
        drop(statement);
        (self.logged, self.damage) = (changes.take(), damage);
        Ok(())
    }

    /// What is wrong with changes that the table of rows lacks.
    pub(super) fn damage(&self) -> &[String] {
        &self.damage
    }

    /// The changes that the table of rows lacks, for whoever will bring them there. Rows that are read after this
    /// lack them.
    pub(super) fn take_logged(&mut self) -> Rows {
        std::mem::take(&mut self.logged)
    }

    pub(super) fn damaged(&self, what: impl Into<String>) -> JournalError {
        JournalError::Damaged { path: self.path.clone(), what: what.into() }
    }

    fn failure(&self) -> impl Fn(rusqlite::Error) -> JournalError + use<> {
        failure(&self.path)
    }

    pub(super) fn single<T: serde::de::DeserializeOwned>(
        &self,
        which: Single,
    ) -> Result<Option<T>, JournalError> {
        let mut found = None;
        self.rows(Kind::Single, &mut |row| {
            let row = row.map_err(|what| self.damaged(what))?;
            if row.key == Key::single(which) {
                found = Some(decode(&row.value).map_err(|what| self.damaged(what))?);
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// All rows of a kind, in order; damaged ones in words.
    pub(super) fn rows(
        &self,
        kind: Kind,
        each: &mut dyn FnMut(Result<Row, String>) -> Result<(), JournalError>,
    ) -> Result<(), JournalError> {
        let fail = self.failure();
        let mut logged = self.logged.of(kind).peekable();
        let logged_row =
            |(key, value): (Key, Option<&[u8]>)| value.map(|value| Row { key, value: value.to_vec() });
        let text = "SELECT a, b, value, sum FROM row WHERE kind = ?1 ORDER BY a, b";
        let mut statement = self.db.prepare_cached(text).map_err(&fail)?;
        let mut rows = statement.query([kind as u8]).map_err(&fail)?;
        while let Some(row) = rows.next().map_err(&fail)? {
            let read = || -> rusqlite::Result<(i64, i64, Vec<u8>, i64)> {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
            };
            let (a, b, value, sum) = read().map_err(&fail)?;
            let (a, b) = (a as u64, b as u64);
            let key = Key::new(kind, a, b);
            let good = i64::from(checksum(kind as u8, a, b, &value)) == sum;
            let mut stale = false;
            while let Some(change) = logged.next_if(|(changed, _)| *changed <= key) {
                stale |= change.0 == key;
                logged_row(change).map_or(Ok(()), |row| each(Ok(row)))?;
            }
            if !good {
                each(Err(format!("the checksum of row {a}/{b} of the {} is wrong", kind.name())))?;
            } else if !stale {
                each(Ok(Row { key, value }))?;
            }
        }
        logged.filter_map(logged_row).try_for_each(|row| each(Ok(row)))
    }

    /// Kinds of rows that this version does not know.
    pub(super) fn unknown_kinds(&self) -> Result<Vec<i64>, JournalError> {
        let fail = self.failure();
        let mut statement = self.db.prepare("SELECT DISTINCT kind FROM row").map_err(&fail)?;
        let kinds = statement.query_map([], |row| row.get(0)).map_err(&fail)?;
        let kinds: Vec<i64> = kinds.collect::<Result<_, _>>().map_err(&fail)?;
        Ok(kinds.into_iter().filter(|kind| Kind::of(*kind).is_none()).collect())
    }

    /// Groups of events from the one that holds number `from` on: number of the first, and the events. Damaged ones
    /// in words. Ends when `each` says so.
    pub(super) fn events(
        &self,
        from: u64,
        each: &mut dyn FnMut(u64, Result<Vec<Event>, String>) -> Result<bool, JournalError>,
    ) -> Result<(), JournalError> {
        let fail = self.failure();
        let text = "SELECT first, value, sum FROM events WHERE first >= \
                    coalesce((SELECT max(first) FROM events WHERE first <= ?1), 0) ORDER BY first";
        let mut statement = self.db.prepare_cached(text).map_err(&fail)?;
        let mut rows = statement.query([from as i64]).map_err(&fail)?;
        while let Some(row) = rows.next().map_err(&fail)? {
            let read =
                || -> rusqlite::Result<(i64, Vec<u8>, i64)> { Ok((row.get(0)?, row.get(1)?, row.get(2)?)) };
            let (first, value, sum) = read().map_err(&fail)?;
            let good = i64::from(checksum(EVENTS, first as u64, 0, &value)) == sum;
            let events = if good {
                decode(&value)
            } else {
                Err(format!("the checksum of the events from number {first} on is wrong"))
            };
            if !each(first as u64, events)? {
                break;
            }
        }
        Ok(())
    }

    /// The last events that were written and the number of the first of them; none if there are none.
    pub(super) fn last_events(&self) -> Result<(u64, Vec<Event>), JournalError> {
        let mut last = (0, Vec::new());
        self.events(i64::MAX as u64, &mut |first, events| {
            last = (first, events.map_err(|what| self.damaged(what))?);
            Ok(true)
        })?;
        Ok(last)
    }

    /// Writes all of this, or nothing.
    pub(super) fn commit(&mut self, commit: &Commit<'_>) -> Result<(), JournalError> {
        let number = self.commits + 1;
        let write = || -> rusqlite::Result<()> {
            let transaction = self.db.unchecked_transaction()?;
            let mut log = self.db.prepare_cached("INSERT INTO log VALUES (?1, ?2, ?3)")?;
            let sum = checksum(LOG, number, 0, commit.changes);
            log.execute(params![number as i64, commit.changes, sum])?;
            if !commit.events.is_empty() {
                let value = encode(&commit.events);
                let sum = checksum(EVENTS, commit.first_event, 0, &value);
                let mut add = self.db.prepare_cached("INSERT INTO events VALUES (?1, ?2, ?3)")?;
                add.execute(params![commit.first_event as i64, value, sum])?;
            }
            self.fold(commit)?;
            transaction.commit()
        };
        write().map_err(self.failure())?;
        self.commits = number;
        let promise = |error| JournalError::File { what: "write the lock file".to_string(), error };
        self.guard.write_all_at(&number.to_le_bytes(), 0).map_err(promise)
    }

    /// Brings rows up to date.
    fn fold(&self, commit: &Commit<'_>) -> rusqlite::Result<()> {
        if commit.rows.is_empty() && commit.folded.is_none() {
            return Ok(());
        }
        let mut put = self.db.prepare_cached("REPLACE INTO row VALUES (?1, ?2, ?3, ?4, ?5)")?;
        let mut put = |key: &Key, value: &[u8]| {
            let Key { kind, a, b } = *key;
            let sum = checksum(kind as u8, a, b, value);
            put.execute(params![kind as u8, a as i64, b as i64, value, sum])
        };
        let mut remove = self.db.prepare_cached("DELETE FROM row WHERE kind = ?1 AND a = ?2 AND b = ?3")?;
        for (key, value) in commit.rows {
            match value {
                Some(value) => put(key, value)?,
                None => remove.execute(params![key.kind as u8, key.a as i64, key.b as i64])?,
            };
        }
        if let Some(folded) = commit.folded {
            put(&Key::single(Single::Folded), &encode(&folded))?;
            self.db.prepare_cached("DELETE FROM log WHERE number <= ?1")?.execute([folded as i64])?;
        }
        Ok(())
    }

    /// How often something was written.
    pub(super) fn commits(&self) -> u64 {
        self.commits
    }
}

/// How many commits the lock file knows of. One that was cut off knows of none.
fn promised(guard: &mut File) -> io::Result<u64> {
    let mut bytes = Vec::new();
    guard.read_to_end(&mut bytes)?;
    Ok(bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes)))
}

/// Makes an empty store under another name first: a file with the name of the journal is always a whole one.
fn create(path: &Path, durability: Durability, bytes_max: Option<u64>) -> Result<(), JournalError> {
    let new = path.with_extension("new");
    let file_error = |what: String| move |error| JournalError::File { what, error };
    if let Err(error) = std::fs::remove_file(&new)
        && error.kind() != io::ErrorKind::NotFound
    {
        return Err(file_error(format!("remove {}", new.display()))(error));
    }
    let fail = failure(path);
    // Further files of SQLite have the mode of this one.
    private::create(&new).map_err(file_error(format!("make {}", new.display())))?;
    let db = Connection::open(&new).map_err(&fail)?;
    prepare(&db, durability, bytes_max).map_err(&fail)?;
    db.execute_batch(SCHEMA).map_err(&fail)?;
    db.pragma_update(None, "user_version", FORMAT).map_err(&fail)?;
    db.close().map_err(|(_, error)| fail(error))?;
    std::fs::rename(&new, path).map_err(file_error(format!("make {}", path.display())))
}

/// Refuses a file of another version before SQLite opens it, which would merge its log. The first two did not say
/// theirs. A file that is none of SQLite's is left to it.
fn check_format(dir: &Path, path: &Path) -> Result<(), JournalError> {
    let mut head = [0; SQLITE_HEAD];
    match File::open(path).and_then(|file| file.read_exact_at(&mut head, 0)) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
        read => {
            read.map_err(|error| JournalError::File { what: format!("read {}", path.display()), error })?
        }
    }
    let format = u32::from_be_bytes(*head[SQLITE_VERSION..].first_chunk().expect("the head is longer"));
    if format == FORMAT || !head.starts_with(SQLITE_MAGIC) {
        return Ok(());
    }
    let theirs = if format == 0 { "2 or older".to_string() } else { format.to_string() };
    Err(JournalError::Foreign { dir: dir.to_path_buf(), what: "format", theirs, ours: FORMAT.to_string() })
}

/// Whether the write-ahead log is brought into the file when the connection is closed.
fn merge_at_the_end(db: &Connection, merge: bool) -> rusqlite::Result<()> {
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, !merge).map(drop)
}

fn prepare(db: &Connection, durability: Durability, bytes_max: Option<u64>) -> rusqlite::Result<()> {
    let synchronous = match durability {
        Durability::Process => "OFF",
        Durability::Disk => "FULL",
    };
    db.execute_batch(&format!(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = {synchronous}; PRAGMA locking_mode = NORMAL; \
         PRAGMA journal_size_limit = {WAL_BYTES};"
    ))?;
    if let Some(bytes) = bytes_max {
        db.execute_batch(&format!("PRAGMA max_page_count = {}", (bytes / PAGE).max(1)))?;
    }
    Ok(())
}

/// What an error of the library means.
fn failure(path: &Path) -> impl Fn(rusqlite::Error) -> JournalError + use<> {
    let path = path.to_path_buf();
    move |error| {
        let path = path.clone();
        let reason = error.to_string();
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => JournalError::Full { path, reason },
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                JournalError::Damaged { path, what: reason }
            }
            // A missing table or column, or a value of another type.
            _ if matches!(error, rusqlite::Error::InvalidColumnType(..))
                || reason.contains("no such table") =>
            {
                JournalError::Damaged { path, what: reason }
            }
            _ => JournalError::Store { path, reason },
        }
    }
}
