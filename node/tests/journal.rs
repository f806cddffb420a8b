//! The journal as a file: what is written is read again, and everything that is wrong with it is refused with a
//! reason and without touching it.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use node::exit;
use node::journal::{
    About, Durability, FORMAT, Journal, JournalError, Saved, Writer, inspect, job_with_run_time,
};
use proptest::prelude::*;
use protocol::handover::{Answer, Custody, Ledger};
use protocol::journal::{Place, Topic};
use protocol::{Durable, Fact};
use scheduler::{Event, EventKind, JobId, JobSpec, Labels, SiteId, Span, Time, TimedJob};

const FILE: &str = "journal.sqlite";

#[test]
fn what_was_written_is_read_again_and_what_was_not_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let (mut journal, saved) = open(folder.path()).unwrap();
    assert!(saved.durable.is_new());
    // Of the first portion the one that is first in the queue comes first.
    journal.handed_over(0, vec![timed(8), timed(7), timed(9)]);
    journal.handed_over(1, vec![timed(10)]);
    journal.submitted(0);
    journal.submitted(0);
    journal.submitted(1);
    write(
        &mut journal,
        &[began(0), owns(1), owns(2), Fact::Started { job: JobId(1), at: Time::from_secs(3) }],
    );
    journal.event(event(0));
    journal.event(event(1));
    journal.commit().unwrap();
    write(&mut journal, &[Fact::Ended { job: JobId(1) }]);
    journal.event(event(2));
    drop(journal);

    let (mut journal, saved) = open(folder.path()).unwrap();
    assert_eq!(saved.durable.incarnation, Some(0));
    assert_eq!(saved.durable.running().map(|kept| kept.job.id).collect::<Vec<_>>(), [JobId(1)]);
    assert_eq!(saved.durable.jobs.len(), 2);
    assert_eq!(saved.run_times[&JobId(2)], Span::from_secs(2));
    assert_eq!(saved.arrivals, [(0, vec![timed(9)])].into());
    assert_eq!(saved.portions, 2);
    assert_eq!(saved.handed_over, (7..=10).map(JobId).collect());
    assert_eq!(saved.next_event, 2);
    assert_eq!(saved.last_event, Some(event(1).at));
    assert_eq!(all_events(&journal), [event(0), event(1)]);
    journal.event(event(2));
    journal.event(event(3));
    journal.commit().unwrap();
    assert_eq!(journal.read_events(1, 2).unwrap(), [event(1), event(2)]);
    assert_eq!(journal.read_events(4, 2).unwrap(), []);
}

/// Rows of all tables, of which some go and some are others later.
#[test]
fn what_a_family_must_not_forget_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let (mut journal, _) = open(folder.path()).unwrap();
    let topics = [(0, 0, 0), (0, 0, 1), (1, u32::MAX, u64::MAX), (u8::MAX, 1, 0), (u8::MAX, u32::MAX, 7)];
    let topics = topics.map(|(table, a, b)| Topic { table, a, b });
    let remembers = |number: usize, word: Option<u64>| Fact::Remembers {
        topic: topics[number],
        words: word.map(|word| [word; 12]),
    };
    let facts = [
        began(0),
        remembers(0, Some(0)),
        remembers(1, Some(1)),
        remembers(2, Some(2)),
        remembers(3, Some(3)),
        remembers(3, None),
        // From here on after a start.
        remembers(0, Some(u64::MAX)),
        remembers(1, None),
        remembers(4, Some(4)),
        remembers(3, Some(5)),
    ];
    let mut durable = Durable::default();
    facts.iter().for_each(|fact| durable.apply(fact));
    // Once as changes after the rows, once as rows.
    for (number, half) in facts.chunks(6).enumerate() {
        write(&mut journal, half);
        journal.commit().unwrap();
        if number == 0 {
            drop(journal);
            journal = open(folder.path()).unwrap().0;
        }
    }
    drop(journal);
    let (_, saved) = open(folder.path()).unwrap();
    assert_eq!(saved.durable, durable);
    let words: Vec<u64> = durable.memory.values().map(|words| words[0]).collect();
    assert_eq!(words, [u64::MAX, 2, 5, 4]);
}

#[test]
fn a_directory_is_used_by_one_node_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let first = open(folder.path()).unwrap();
    let error = Journal::open(folder.path(), &about(), Durability::Process, None).unwrap_err();
    assert_eq!(error.exit_code(), exit::JOURNAL_IN_USE, "{error}");
    // To look is allowed.
    assert_eq!(inspect::check(folder.path()).unwrap().damage, Vec::<String>::new());
    drop(first);
    open(folder.path()).unwrap();
}

#[test]
fn the_journal_of_another_run_site_or_grid_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    drop(open(folder.path()).unwrap());
    for (other, expected) in [
        (About { run: "blue".to_string(), ..about() }, "belongs to run red, and this node is of run blue"),
        (About { site: SiteId(2), ..about() }, "belongs to site 1"),
        (About { grid: vec![("a".to_string(), 5)], ..about() }, "belongs to grid a=4"),
    ] {
        let error = open_as(folder.path(), &other, None).unwrap_err();
        assert_eq!(error.exit_code(), exit::JOURNAL_FOREIGN);
        assert!(error.to_string().contains(expected), "{error}");
    }
}

/// As a node that was killed left it: its log is not merged, and only its own node merges it.
#[test]
fn a_refused_journal_is_not_touched() {
    let (folder, killed) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (mut journal, _) = open(folder.path()).unwrap();
    write(&mut journal, &[began(0), owns(1)]);
    journal.commit().unwrap();
    for (name, bytes) in files(folder.path()).into_iter().filter(|(name, _)| !name.ends_with("-shm")) {
        std::fs::write(killed.path().join(name), bytes).unwrap();
    }
    let wal = || std::fs::read(killed.path().join("journal.sqlite-wal")).unwrap_or_default();
    let main = || std::fs::read(killed.path().join(FILE)).unwrap();
    let before = (main(), wal());
    assert!(before.1.len() > 4096, "there is something to merge");

    let other = About { run: "blue".to_string(), ..about() };
    let error = open_as(killed.path(), &other, None).unwrap_err();

    assert_eq!(error.exit_code(), exit::JOURNAL_FOREIGN);
    assert!((main(), wal()) == before, "it was merged");
    assert_eq!(open(killed.path()).unwrap().1.durable.jobs.len(), 1);
    assert!(wal().is_empty(), "its own node merges it");
}

#[test]
fn a_folder_without_a_journal_is_told_as_such() {
    let folder = tempfile::tempdir().unwrap();
    let error = inspect::check(folder.path()).unwrap_err();
    assert!(error.to_string().contains("holds no journal; give the data directory of a node"), "{error}");
    assert_eq!(error.exit_code(), exit::INPUT);
}

/// As a node of that version left it that was killed: its log is not merged, and nobody merges it.
#[test]
fn a_journal_of_another_format_is_refused_and_not_touched() {
    for (version, expected) in [
        (0, "belongs to format 2 or older"),
        (FORMAT - 1, "belongs to format 4"),
        (FORMAT + 1, "belongs to format 6"),
    ] {
        let (folder, killed) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let db = rusqlite::Connection::open(folder.path().join(FILE)).unwrap();
        let sql = |text: &str| db.execute_batch(text).unwrap();
        sql(
            "PRAGMA journal_mode = WAL; CREATE TABLE row (kind INTEGER NOT NULL, a INTEGER NOT NULL, b INTEGER NOT \
             NULL, value BLOB NOT NULL, sum INTEGER NOT NULL, PRIMARY KEY (kind, a, b)) WITHOUT ROWID;",
        );
        sql(&format!("PRAGMA user_version = {version}; PRAGMA wal_checkpoint(TRUNCATE)"));
        sql(
            "CREATE TABLE log (number INTEGER PRIMARY KEY, value BLOB NOT NULL, sum INTEGER NOT NULL); CREATE TABLE \
             events (first INTEGER PRIMARY KEY, value BLOB NOT NULL, sum INTEGER NOT NULL); \
             INSERT INTO log VALUES (1, x'00', 0);",
        );
        for name in [FILE, "journal.sqlite-wal"] {
            std::fs::copy(folder.path().join(name), killed.path().join(name)).unwrap();
        }
        std::fs::write(killed.path().join("lock"), 1u64.to_le_bytes()).unwrap();
        let before = files(killed.path());
        assert!(before["journal.sqlite-wal"].len() > 4096, "there is something to merge");

        let looked = inspect::check(killed.path()).map(drop).unwrap_err();
        for error in [open(killed.path()).map(drop).unwrap_err(), looked] {
            assert_eq!(error.exit_code(), exit::JOURNAL_FOREIGN, "{error}");
            let text = error.to_string();
            assert!(text.contains(expected) && text.contains("and this node is of format 5"), "{text}");
        }
        assert!(files(killed.path()) == before, "the directory was touched");
    }
}

/// Wherever the file is cut off or a byte is another, the journal is refused, or says all that it said: never less.
/// It is not touched, and what is readable can be counted.
#[test]
fn a_damaged_journal_is_refused_and_kept() {
    let folder = tempfile::tempdir().unwrap();
    let good = filled(folder.path());
    let path = folder.path().join(FILE);
    let bytes = std::fs::read(&path).unwrap();
    let mut refused = 0;
    let cuts = (0..8).map(|eighth| (bytes.len() * eighth / 8, None));
    let spoilt = (0..bytes.len()).step_by(997).map(|at| (bytes.len(), Some(at)));
    for (len, spoilt) in cuts.chain(spoilt) {
        let mut wrong = bytes[..len].to_vec();
        if let Some(at) = spoilt {
            wrong[at] ^= 0x55;
        }
        std::fs::write(&path, &wrong).unwrap();
        match open(folder.path()) {
            Ok((journal, saved)) => {
                assert_eq!(saved.durable, good.durable, "byte {spoilt:?} of {len}");
                // Events are read later; then damage is noticed.
                if let Ok(events) = journal.read_events(0, usize::MAX) {
                    assert_eq!(events, (0..100).map(event).collect::<Vec<_>>(), "byte {spoilt:?} of {len}");
                }
                assert!(spoilt.is_some(), "a file of {len} bytes was taken for a whole one");
            }
            Err(error) => {
                assert_eq!(error.exit_code(), exit::JOURNAL_DAMAGED, "{error}");
                assert_eq!(std::fs::read(&path).unwrap(), wrong, "it was overwritten: {error}");
                refused += 1;
            }
        }
    }
    assert!(refused > 8, "no spoilt byte was noticed");
}

#[test]
fn a_wrong_value_is_named_and_the_rest_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    filled(folder.path());
    let path = folder.path().join(FILE);
    let bytes = std::fs::read(&path).unwrap();
    // A number that is in the value of one row.
    // As the encoding has it: a mark for four bytes, and those.
    let needle = [&[252][..], &0x1234_5678_u32.to_le_bytes()].concat();
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    // Pages that are not in use may have copies.
    for at in (0..bytes.len() - 5).filter(|at| bytes[*at..at + 5] == needle) {
        file.write_all_at(&[0xff], at as u64 + 1).unwrap();
    }

    let error = open(folder.path()).map(drop).unwrap_err();
    assert!(error.to_string().contains("the checksum of row 5/0 of the jobs owned is wrong"), "{error}");
    let checked = inspect::check(folder.path()).unwrap();
    assert_eq!(checked.damage.len(), 1, "{:?}", checked.damage);
    assert!(checked.readable.contains(&("jobs owned", 199)), "{:?}", checked.readable);
    assert_eq!(checked.events, 100);
}

/// An empty one in its place would mean that jobs are lost, and nobody told.
#[test]
fn a_journal_that_is_missing_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    filled(folder.path());
    std::fs::remove_file(folder.path().join(FILE)).unwrap();
    let error = open(folder.path()).unwrap_err();
    assert_eq!(error.exit_code(), exit::JOURNAL_DAMAGED);
    assert!(error.to_string().contains("the file is missing, and there were"), "{error}");
    assert!(!folder.path().join(FILE).exists(), "nothing is made in its place");
}

/// SQLite takes a shorter write-ahead log for a whole one; the guard does not.
#[test]
fn a_journal_that_lost_its_last_writes_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (mut journal, _) = open(folder.path()).unwrap();
    write(&mut journal, &[began(0), owns(1)]);
    journal.commit().unwrap();
    // As a crash leaves it: the log is not merged.
    let copy = tempfile::tempdir().unwrap();
    for name in [FILE, "journal.sqlite-wal", "lock"] {
        std::fs::copy(folder.path().join(name), copy.path().join(name)).unwrap();
    }
    let log = OpenOptions::new().write(true).open(copy.path().join("journal.sqlite-wal")).unwrap();
    log.set_len(log.metadata().unwrap().len() / 2).unwrap();
    let error = open(copy.path()).unwrap_err();
    assert_eq!(error.exit_code(), exit::JOURNAL_DAMAGED);
    assert!(error.to_string().contains("and there were"), "{error}");
    // Nor does whoever only looks: what an older copy says is not what the site has left.
    let errors = [inspect::remains(copy.path(), 0).map(drop), inspect::durable(copy.path()).map(drop)];
    for error in errors.map(Result::unwrap_err) {
        assert!(error.is_for_good() && error.to_string().contains("and there were"), "{error}");
    }
    let damage = inspect::check(copy.path()).unwrap().damage;
    assert!(damage.iter().any(|what| what.contains("and there were")), "{damage:?}");
}

#[test]
fn events_are_read_up_to_the_first_that_is_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let (mut journal, _) = open(folder.path()).unwrap();
    write(&mut journal, &[began(0)]);
    for number in 0..8 {
        journal.event(event(number));
        if number % 2 == 1 {
            journal.commit().unwrap();
        }
    }
    drop(journal);
    let all: Vec<Event> = (0..8).map(event).collect();
    assert_eq!(inspect::readable_events(folder.path(), 0), all);
    let change = |text: &str| {
        let db = rusqlite::Connection::open(folder.path().join(FILE)).unwrap();
        assert_eq!(db.execute(text, []).unwrap(), 1);
    };
    change("UPDATE events SET sum = sum + 1 WHERE first = 6");
    assert_eq!(inspect::readable_events(folder.path(), 0), all[..6]);
    assert_eq!(inspect::readable_events(folder.path(), 3), all[3..6]);
    assert_eq!(inspect::readable_events(folder.path(), 6), []);
    change("DELETE FROM events WHERE first = 2");
    assert_eq!(inspect::readable_events(folder.path(), 0), all[..2]);
    assert_eq!(inspect::readable_events(&folder.path().join("none"), 0), []);
}

#[test]
fn without_room_nothing_is_half_written_and_with_room_it_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let small = |bytes| open_as(folder.path(), &about(), Some(bytes));
    let (mut journal, _) = small(128 * 1024).unwrap();
    write(&mut journal, &[began(0)]);
    journal.commit().unwrap();
    let mut written = 0;
    let error = loop {
        // Two in each commit, so that half of one would show.
        write(&mut journal, &[owns(written + 1), owns(written + 2)]);
        match journal.commit() {
            Ok(()) => written += 2,
            Err(error) => break error,
        }
        assert!(written < 10_000, "the limit does not hold");
    };
    assert_eq!(error.exit_code(), exit::JOURNAL_FULL, "{error}");
    drop(journal);
    assert!(matches!(
        small(128 * 1024).map(|(mut journal, _)| {
            write(&mut journal, &(20_000..20_900).map(owns).collect::<Vec<_>>());
            journal.commit()
        }),
        Ok(Err(JournalError::Full { .. }))
    ));

    let (mut journal, saved) = small(1024 * 1024).unwrap();
    assert_eq!(saved.durable.jobs.len() as u64, written);
    write(&mut journal, &[owns(written + 1)]);
    journal.commit().unwrap();
}

#[test]
fn what_the_thread_cannot_write_is_an_error_at_the_next_look() {
    for look in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let (journal, _) = open_as(folder.path(), &about(), Some(128 * 1024)).unwrap();
        let mut writer = Writer::new(journal);
        writer.write(began(0), |_| None);
        writer.hand_over(1).unwrap();
        assert_eq!(writer.take_back(true).unwrap(), Some(1));
        (0..40_000).for_each(|number| writer.event(event(number)));
        writer.hand_over(2).unwrap();
        let error = loop {
            match writer.take_back(look) {
                Ok(back) => assert_eq!(back, None, "it is not written"),
                Err(error) => break error,
            }
        };
        assert_eq!(error.exit_code(), exit::JOURNAL_FULL, "{error}");
        assert_eq!(writer.next_written(), 0);
        drop(writer);
        assert_eq!(open(folder.path()).unwrap().1.durable.incarnation, Some(0));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Of what is noted that is kept which was committed or handed over, whoever writes it.
    #[test]
    fn what_a_thread_has_is_written_and_what_nobody_handed_over_is_not(
        steps in prop::collection::vec((0u64..12, 0u8..6), 1..120),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = Writer::new(open(folder.path()).unwrap().0);
        let (mut durable, mut noted) = (Durable::default(), 0);
        writer.write(began(0), |_| None);
        durable.apply(&began(0));
        writer.commit().unwrap();
        let mut kept = (durable.clone(), 0);
        for (number, step) in steps {
            if let Some(fact) = possible(&durable, JobId(number), step) {
                durable.apply(&fact);
                writer.write(fact, run_time);
                writer.event(event(noted));
                noted += 1;
            } else if step % 2 == 0 {
                writer.take_back(true).unwrap();
                writer.commit().unwrap();
                kept = (durable.clone(), noted);
                prop_assert!(writer.next_written() == noted && !writer.is_dirty());
            } else {
                if writer.is_writing() {
                    // Looks only, or waits; looking may find that it is not written yet.
                    let back = writer.take_back(number % 2 == 0).unwrap();
                    prop_assert!(back.is_none() || back == Some(kept.1), "what waited comes with its batch");
                }
                if writer.is_writing() {
                    continue;
                }
                prop_assert_eq!(writer.next_written(), kept.1);
                writer.hand_over(noted).unwrap();
                kept = (durable.clone(), noted);
                prop_assert!(writer.is_writing() && writer.is_dirty() && writer.pending_bytes() == 0);
            }
        }
        drop(writer);
        let (journal, saved) = open(folder.path()).unwrap();
        prop_assert_eq!((&saved.durable, saved.next_event), (&kept.0, kept.1));
        let events: Vec<Event> = (0..kept.1).map(event).collect();
        prop_assert_eq!(all_events(&journal), events);
    }

    /// However facts are grouped into commits, the rows say what the facts say.
    #[test]
    fn rows_are_what_the_facts_say(steps in prop::collection::vec((0u64..12, 0u8..6), 1..120)) {
        let folder = tempfile::tempdir().unwrap();
        let (mut journal, _) = open(folder.path()).unwrap();
        let mut durable = Durable::default();
        write(&mut journal, &[began(0)]);
        durable.apply(&began(0));
        for (number, step) in steps {
            if let Some(fact) = possible(&durable, JobId(number), step) {
                durable.apply(&fact);
                write(&mut journal, &[fact]);
            } else {
                journal.commit().unwrap();
            }
        }
        journal.commit().unwrap();
        drop(journal);
        let (_, saved) = open(folder.path()).unwrap();
        prop_assert_eq!(saved.durable, durable);
    }
}

/// A fact of that sort about that job, if it can be one.
fn possible(durable: &Durable, job: JobId, step: u8) -> Option<Fact> {
    let other = SiteId(2);
    let kept = durable.jobs.get(&job);
    let out = durable.ledger.out_to(other).find(|out| out.job.id == job).copied();
    Some(match (step, kept, out) {
        (0, None, None) => owns(job.0),
        (1, Some(kept), _) if kept.started.is_none() => Fact::Started { job, at: Time::from_secs(1) },
        (2, Some(kept), _) if kept.started.is_some() => Fact::Ended { job },
        (3, Some(kept), None) if kept.started.is_none() => {
            Fact::Ledger(durable.ledger.grant(other, kept.job, kept.custody).0)
        }
        (3, None, Some(out)) => Fact::Routed { to: other, number: out.number },
        (4, None, Some(out)) => {
            let (record, _) = durable.ledger.settle(other, out.number, Answer::Accepted)?;
            Fact::Ledger(record)
        }
        (5, ..) => {
            let number = durable.ledger.seen(other) + 1;
            match durable.ledger.floor_from(other, number.saturating_sub(job.0)) {
                Some(floor) => Fact::Ledger(floor),
                None => Fact::Ledger(durable.ledger.answer(other, number, Answer::Declined)),
            }
        }
        _ => return None,
    })
}

/// A journal of 200 waiting jobs and 100 events, closed; the jobs are in rows, a transfer is in the log.
fn filled(folder: &Path) -> Saved {
    let (mut journal, _) = open(folder).unwrap();
    write(&mut journal, &[began(0)]);
    for number in 1..=200 {
        write(&mut journal, &[owns(number)]);
    }
    for number in 0..100 {
        journal.event(event(number));
    }
    journal.commit().unwrap();
    drop(journal);
    // The next incarnation brings the rows up to date. What comes then is in the log alone.
    let (mut journal, _) = open(folder).unwrap();
    let (record, _) = Ledger::new().grant(SiteId(2), spec(900), Custody::default());
    write(&mut journal, &[owns(900), Fact::Ledger(record)]);
    journal.commit().unwrap();
    drop(journal);
    open(folder).unwrap().1
}

/// The files of a folder.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
    entries
        .map(|entry| (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap()))
        .collect()
}

fn all_events(journal: &Journal) -> Vec<Event> {
    journal.read_events(0, usize::MAX).unwrap()
}

fn open(folder: &Path) -> Result<(Journal, Saved), JournalError> {
    open_as(folder, &about(), None)
}

/// Waits for whoever has the journal. Other tests of this program start processes, and until such a child is the program that
/// it is to be it has all files of this process open, and with them the lock of a journal that was closed here.
fn open_as(folder: &Path, about: &About, bytes_max: Option<u64>) -> Result<(Journal, Saved), JournalError> {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        match Journal::open(folder, about, Durability::Process, bytes_max) {
            Err(JournalError::InUse { .. }) if Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(5));
            }
            opened => return opened,
        }
    }
}

fn about() -> About {
    let grid = vec![("a".to_string(), 4)];
    About { format: FORMAT, run: "red".to_string(), site: SiteId(1), grid, instance: 77 }
}

fn write(journal: &mut Journal, facts: &[Fact]) {
    facts.iter().for_each(|fact| journal.write(fact, job_with_run_time(fact).and_then(run_time)));
}

fn run_time(job: JobId) -> Option<Span> {
    Some(Span::from_secs(job.0 as i64))
}

fn began(incarnation: u32) -> Fact {
    Fact::Began { incarnation }
}

fn owns(id: u64) -> Fact {
    Fact::Owns { job: spec(id), custody: Custody::default(), place: Place::Queue }
}

fn spec(id: u64) -> JobSpec {
    JobSpec {
        id: JobId(id),
        submit: Time::ZERO,
        processors: 1,
        requested: Span::from_secs(10),
        labels: Labels::UNKNOWN,
        origin: SiteId(1),
        payload: if id == 5 { 0x1234_5678 } else { 0 },
    }
}

fn timed(id: u64) -> TimedJob {
    TimedJob { spec: spec(id), run_time: Span::from_secs(5) }
}

fn event(number: u64) -> Event {
    let kind = EventKind::Completed { job: JobId(number), processors: 1 };
    Event { at: Time::ZERO, site: SiteId(1), kind }
}
