//! What a run survives of its nodes: killed again while they begin, no descriptors, all of them gone. It goes on, or ends
//! in order with everything kept for `stealgrid attach`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use node::journal::inspect;
use node::running::Running;
use outputs::EventReader;
use protocol::journal::restarts_of;
use rustix::process::{Resource, Rlimit, Signal};
use scheduler::{Event, EventKind, SiteId, Span};
use workload::limits::Limits;

use crate::processes::{pid, read, signal, table, unfolded};
use crate::three_sites::{Grid, JOBS, LEASE, SITES, WIDE, wait_until};

#[test]
fn a_node_that_is_killed_again_and_again_while_it_begins_is_started_once_more() {
    let grid = Grid::new("", "");
    let run = grid.started();

    // One that was up is not one that could not be started; of so many some are killed before that on any machine.
    grid.kill_again(&run, "site1", &[0, 0, 0, 0, 100, 10, 40, 0, 5, 70]);

    let (status, output) = run.wait();
    assert_eq!(status.code(), Some(0), "{output}");
    assert!(output.contains("site1 could not be started again, and is tried again"), "{output}");
    grid.assert_complete();
}

#[test]
fn with_a_lease_it_is_started_once_more_too() {
    let grid = Grid::new("", LEASE);
    let run = grid.started();

    grid.kill_again(&run, "site2", &[0, 0, 0, 0]);

    let (status, output) = run.wait();
    assert_eq!(status.code(), Some(0), "{output}");
    assert!(!output.contains("has ended for good"), "{output}");
    grid.assert_complete();
}

#[test]
fn a_node_that_is_killed_before_it_was_told_the_time_is_told_when_it_is_back() {
    let grid = Grid::new("", "");
    let run = grid.run();
    // From here on there is something to go on with.
    wait_until(&run, "the run is noted", || grid.record().exists());

    grid.kill_again(&run, "site3", &[0]);

    let (status, output) = run.wait();
    assert_eq!(status.code(), Some(0), "{output}");
    grid.assert_complete();
}

#[test]
fn a_broker_that_is_killed_in_the_middle_goes_on_with_its_journal() {
    let grid = Grid::new("", "[strategy]\nname = \"broker:mpl\"\n");
    let run = grid.started();

    // The last job is submitted after six seconds.
    grid.kill_again(&run, "broker", &[1_500, 300, 0, 800]);

    let (status, output) = run.wait();
    assert_eq!(status.code(), Some(0), "{output}");
    grid.assert_complete();
}

/// It gives jobs to sites that it cannot ask for their state: what it learned is in its journal, and its jobs are where they
/// were.
#[test]
fn a_broker_that_learns_and_is_killed_goes_on_with_what_it_had_learned() {
    let grid = Grid::new("", "[strategy]\nname = \"opaque:ag,cap=4,timeout=30\"\n");
    let run = grid.started();

    grid.kill_again(&run, "broker", &[2_000, 400, 0, 900]);

    let (status, output) = run.wait();
    assert_eq!(status.code(), Some(0), "{output}");
    grid.assert_complete();
    let log = EventReader::open(&grid.out().join("events.jsonl.zst"), Limits::default()).unwrap();
    let (mut efficiency, mut learned, mut restarts) = (BTreeMap::new(), BTreeSet::new(), 0);
    for event in log.map(Result::unwrap) {
        match event.kind {
            EventKind::Recovered { .. } => restarts += 1,
            EventKind::Learned { job, of, efficiency_millionths, .. } => {
                assert!(learned.insert(job), "job {job} is learned from once");
                let before = efficiency.insert(of, efficiency_millionths).unwrap_or(0);
                // One job moves it by l = 0.3 of the way to 1 or -1, or not at all.
                let to = |goal: f64| f64::from(before) + 0.3 * (goal * 1e6 - f64::from(before));
                let possible = [f64::from(before), to(1.0), to(-1.0)];
                let is_near = possible.iter().any(|one| (one - f64::from(efficiency_millionths)).abs() < 2.0);
                assert!(is_near, "site {of}: {before} before, {efficiency_millionths} after job {job}");
            }
            _ => {}
        }
    }
    assert!(restarts > 0, "it went on with its journal");
    assert!(efficiency.values().any(|&efficiency| efficiency != 0), "something was learned: {efficiency:?}");
}

/// Whoever is killed has said that it is ready, or executes a part, or has decided: a job in parts has all of its processors, or none.
#[test]
fn members_that_start_jobs_in_parts_are_killed_and_each_job_has_all_of_its_processors() {
    for victim in ["broker", "site3"] {
        let more = "[strategy]\nname = \"broker:mcisne,coallocate=dp\"\n";
        let grid = Grid::new("", more).with_wide_jobs();
        let run = grid.started();

        grid.kill_again(&run, victim, &[1_500, 300, 0, 800]);

        let (status, output) = run.wait();
        assert_eq!(status.code(), Some(0), "{victim}: {output}");
        grid.assert_complete();
        let jobs = read(&grid.out().join("jobs.csv"));
        let (columns, rows) = table(&jobs);
        let column = |name: &str| columns.iter().position(|column| *column == name).unwrap();
        let wide = rows.iter().filter(|row| row[column("requested_number_of_resources")] == WIDE);
        let mut count = 0;
        for row in wide {
            let ranges = row[column("allocated_resources")].split(' ').map(|range| {
                let (first, last) = range.split_once('-').unwrap_or((range, range));
                last.parse::<u32>().unwrap() + 1 - first.parse::<u32>().unwrap()
            });
            assert_eq!(ranges.sum::<u32>().to_string(), WIDE, "{victim}: {row:?}");
            count += 1;
        }
        assert_eq!(count, JOBS / 10);
    }
}

/// What the one user of all jobs asks for; they end after 20 to 40 s.
const ASKED: Span = Span::from_secs(60);

/// Whoever learns from ends of jobs writes them down. One that had forgotten them would believe the user until two more jobs have ended.
#[test]
fn a_member_that_predicts_and_is_killed_goes_on_with_what_it_had_learned() {
    let cases = [
        ("steal:loaded,select=easy", "site1", 1),
        ("broker:mst", "broker", 4),
        ("pool:easy", "site1", 1),
        ("opaque:min-min", "broker", 4),
    ];
    for (strategy, victim, site) in cases {
        let grid = Grid::new("", &format!("[strategy]\nname = \"{strategy}\"\n"));
        let mut command = grid.command();
        command.args(["--estimate", "avg2"]);
        let mut run = grid.run_by(command);
        run.wait_for_logs(&SITES, "start is ordered");
        let learned = || rows_of_ends(&grid.data(victim));
        // From here on a prediction is the mean of two.
        wait_until(&run, "it has learned from two ends", || {
            // Reading a journal takes longer than the look at anything else that is waited for.
            std::thread::sleep(Duration::from_millis(20));
            learned() >= 2
        });
        let before = learned();
        grid.kill_again(&run, victim, &[0, 300, 600]);

        let (status, output) = run.wait();
        assert_eq!(status.code(), Some(0), "{strategy}: {output}");
        grid.assert_complete();
        let after = learned();
        assert!(after >= before, "{strategy}: {after} ends are written down, and there were {before}");
        let log = EventReader::open(&grid.out().join("events.jsonl.zst"), Limits::default()).unwrap();
        let events: Vec<Event> = log.map(Result::unwrap).filter(|event| event.site == SiteId(site)).collect();
        let begun = events.iter().position(|event| matches!(event.kind, EventKind::Recovered { .. }));
        let begun = begun.expect("a process went on with the journal");
        let predicted: Vec<Span> = events[begun..]
            .iter()
            .filter_map(|event| match event.kind {
                EventKind::Predicted { run_time, corrections: 0, .. } => Some(run_time),
                _ => None,
            })
            .collect();
        assert!(predicted.len() > 2, "{strategy}: {predicted:?}");
        assert!(predicted.iter().all(|&run_time| run_time < ASKED), "{strategy}: {predicted:?}");
    }
}

/// How many ends of jobs a member has learned from, by its journal; none as long as that cannot be read.
fn rows_of_ends(dir: &Path) -> usize {
    /// The table of these rows (`protocol/src/experience.rs`).
    const ENDS: u8 = 64;
    inspect::durable(dir)
        .map_or(0, |durable| durable.memory.keys().filter(|topic| topic.table == ENDS).count())
}

/// Jobs are held for a second: it dies with some of them, and with others on their way.
#[test]
fn a_broker_that_is_killed_while_it_holds_jobs_for_a_plan_loses_none() {
    let strategy =
        "[strategy]\nname = \"broker:genetic\"\n[strategy.genetic]\nwindow = \"1s\"\npopulation = 8\n";
    let grid = Grid::new("", strategy);
    let run = grid.started();

    grid.kill_again(&run, "broker", &[1_500, 300, 0, 800]);

    let (status, output) = run.wait();
    assert_eq!(status.code(), Some(0), "{output}");
    grid.assert_complete();
}

#[test]
fn another_broker_goes_on_for_one_that_never_comes_back() {
    for (name, failover) in [("next", ""), ("local", "failover = \"local\"\n")] {
        let brokers = "[[brokers]]\nname = \"broker1\"\n[[brokers]]\nname = \"broker2\"\n";
        let more = format!("{LEASE}{failover}[strategy]\nname = \"broker:mpl\"\n{brokers}");
        let grid = Grid::new("restart = false", &more);
        let run = grid.started();
        std::thread::sleep(Duration::from_millis(1_500));
        signal(grid.node(&run, "broker1").unwrap(), Signal::KILL);

        let (status, output) = run.wait();
        assert_eq!(status.code(), Some(0), "{name}: {output}");
        grid.assert_complete();
    }
}

#[test]
fn a_coordinator_without_descriptors_starts_a_node_again_when_it_has_some() {
    let grid = Grid::new("", "");
    let run = grid.started();
    let limit = |current| {
        let limit = Rlimit { current: Some(current), maximum: Some(1024) };
        rustix::process::prlimit(Some(pid(run.id())), Resource::Nofile, limit).unwrap()
    };
    let before = limit(3);
    let victim = grid.node(&run, "site1").unwrap();
    signal(victim, Signal::KILL);
    wait_until(&run, "it is out of descriptors", || run.output().contains("Too many open files"));
    limit(before.current.unwrap().min(1024));

    let (status, output) = run.wait();
    assert_eq!(status.code(), Some(0), "{output}");
    grid.assert_complete();
}

#[test]
fn nodes_that_are_killed_while_another_coordinator_takes_over_are_started_once_more() {
    let grid = Grid::new("orphan_patience = \"60s\"", "");
    let run = grid.started();
    signal(run.id(), Signal::KILL);
    run.wait();
    for running in Running::all_in(&grid.out().join("nodes")) {
        signal(running.process.id, Signal::KILL);
    }

    let attached = grid.attach();
    grid.kill_again(&attached, "site1", &[0, 20, 60]);
    grid.kill_again(&attached, "site2", &[0]);
    let (status, output) = attached.wait();

    assert_eq!(status.code(), Some(0), "{output}");
    grid.assert_complete();
}

/// Others would take over what they had, but nobody is left.
#[test]
fn a_run_without_any_node_ends_in_order_and_can_be_attached_to() {
    let grid = Grid::new("restart = false", LEASE);
    let run = grid.started();
    for site in SITES {
        signal(grid.node(&run, site).unwrap(), Signal::KILL);
    }
    let (status, output) = run.wait();
    assert_eq!(status.code(), Some(4), "{output}");
    assert!(grid.record().exists() && output.contains("stealgrid attach"), "{output}");
    assert!(read(&grid.out().join("manifest.json")).contains("partial"), "{output}");

    let (status, output) = grid.attach().wait();
    assert_eq!(status.code(), Some(0), "{output}");
    grid.assert_complete();
}

/// They are to restart, and cannot: what they said last does not count as something to come.
#[test]
fn a_run_whose_nodes_cannot_begin_ends_at_the_stall_limit() {
    let grid = Grid::with_stall("5s", "", LEASE);
    let run = grid.started();
    // Who starts a node reads it before.
    let token = grid.out().join("nodes/control.token");
    let hidden = grid.path("hidden");
    std::fs::rename(&token, &hidden).unwrap();
    for site in SITES {
        signal(grid.node(&run, site).unwrap(), Signal::KILL);
    }
    let (status, output) = run.wait();
    assert_eq!(status.code(), Some(4), "{output}");
    let said = unfolded(&output);
    assert!(said.contains("nothing happened for") && said.contains("site3 has ended"), "{output}");

    let (status, output) = grid.attach().wait();
    assert_eq!(status.code(), Some(0), "{output}");
    grid.assert_complete();
}

/// Moved away and put back, or damaged and repaired: nothing runs twice, and nothing is lost.
#[test]
fn a_journal_that_is_missing_or_damaged_is_waited_for() {
    let grid = Grid::new("orphan_patience = \"60s\"", "");
    let run = grid.started();
    let journal = grid.out().join("nodes/site1.data");
    wait_until(&run, "there is something in the journal", || journal.join("journal.sqlite").exists());
    signal(run.id(), Signal::KILL);
    run.wait();
    for running in Running::all_in(&grid.out().join("nodes")) {
        signal(running.process.id, Signal::KILL);
    }
    let away = grid.path("away");
    std::fs::rename(&journal, &away).unwrap();

    let (status, output) = grid.attach().wait();
    assert_eq!(status.code(), Some(3), "{output}");
    assert!(output.contains("site1.data/journal.sqlite is missing; put the directory back"), "{output}");
    assert!(!journal.join("journal.sqlite").exists(), "none is begun in its place");

    std::fs::rename(&away, &journal).unwrap();
    let file = journal.join("journal.sqlite");
    let whole = std::fs::read(&file).unwrap();
    let log = journal.join("journal.sqlite-wal");
    let logged = std::fs::read(&log).ok();
    std::fs::write(&file, vec![7; 8192]).unwrap();
    let (status, output) = grid.attach().wait();
    assert_eq!(status.code(), Some(3), "{output}");
    assert!(output.contains("attach again when the journal is whole"), "{output}");

    std::fs::write(&file, whole).unwrap();
    logged.into_iter().for_each(|logged| std::fs::write(&log, logged).unwrap());
    let (status, output) = grid.attach().wait();
    assert_eq!(status.code(), Some(0), "{output}");
    grid.assert_complete();
}

/// The same while the run lasts: it ends in order, and goes on when the journal is back.
#[test]
fn a_run_one_of_whose_journals_goes_ends_in_order_and_can_be_attached_to() {
    let grid = Grid::new("", "");
    let run = grid.started();
    let journal = grid.out().join("nodes/site1.data");
    let away = grid.path("away");
    std::fs::rename(&journal, &away).unwrap();
    signal(grid.node(&run, "site1").unwrap(), Signal::KILL);

    let (status, output) = run.wait();
    assert_eq!(status.code(), Some(4), "{output}");
    assert!(output.contains("is missing; put the directory back"), "{output}");
    assert!(grid.record().exists(), "{output}");

    std::fs::rename(&away, &journal).unwrap();
    let (status, output) = grid.attach().wait();
    assert_eq!(status.code(), Some(0), "{output}");
    grid.assert_complete();
}

/// A site is given up only when that can be noted; else another coordinator would have it submit its jobs once more.
#[test]
fn a_coordinator_that_cannot_note_what_it_does_gives_no_site_up() {
    let grid = Grid::new("restart = false\norphan_patience = \"60s\"", LEASE);
    let run = grid.started();
    // In the place of the file that is written first: not even root can write to it.
    let in_the_way = grid.out().join("run.json.tmp");
    std::fs::create_dir(&in_the_way).unwrap();
    signal(grid.node(&run, "site1").unwrap(), Signal::KILL);
    wait_until(&run, "it is told", || run.output().contains("what is done cannot be noted"));
    assert!(!run.output().contains("has ended for good"), "{}", run.output());
    // Time for it to do something all the same.
    std::thread::sleep(Duration::from_secs(1));
    signal(run.id(), Signal::KILL);
    let (_, output) = run.wait();
    assert!(!output.contains("has ended for good"), "{output}");

    std::fs::remove_dir(&in_the_way).unwrap();
    let (status, output) = grid.attach().wait();
    assert_eq!(status.code(), Some(0), "{output}");
    grid.assert_complete();
}

/// The same, and there is room again while it lasts.
#[test]
fn a_coordinator_that_can_note_again_goes_on_as_before() {
    let grid = Grid::new("restart = false", LEASE);
    let run = grid.started();
    let in_the_way = grid.out().join("run.json.tmp");
    std::fs::create_dir(&in_the_way).unwrap();
    signal(grid.node(&run, "site1").unwrap(), Signal::KILL);
    wait_until(&run, "it is told", || run.output().contains("what is done cannot be noted"));
    std::fs::remove_dir(&in_the_way).unwrap();

    let (status, output) = run.wait();
    assert_eq!(status.code(), Some(0), "{output}");
    assert!(output.contains("can be noted again") && output.contains("has ended for good"), "{output}");
    grid.assert_complete();
}

/// With a lease others take over what a site had whose journal is damaged, also what it alone knew of. The site begins
/// again without, as often as that happens; what there was of the journals is kept.
#[test]
fn a_site_whose_journal_is_damaged_or_missing_begins_again_without_it() {
    let grid = Grid::new("", LEASE);
    let run = grid.started();
    grid.damage(&run, "site1");
    let dir = grid.data("site1");
    let events = || inspect::readable_events(&dir, 0);
    let began_anew = || matches!(events().first(), Some(first) if restarts(first.kind) == Some(0));
    // Its journal is there before it has said where it can be found, and without a directory it could not.
    let is_back = || grid.aside("site1", 1).exists() && began_anew() && Running::of(&dir).is_some();
    wait_until(&run, "site1 is back", is_back);
    let away = grid.path("away");
    std::fs::rename(&dir, &away).unwrap();
    signal(grid.node(&run, "site1").unwrap(), Signal::KILL);

    let (status, output) = run.wait();
    assert_eq!(status.code(), Some(0), "{output}");
    assert!(output.contains("is damaged") && output.contains("is missing"), "{output}");
    assert_eq!(output.matches("node site1 restarts without its journal;").count(), 2, "{output}");
    assert_eq!(output.matches("site1 restarted without its journal at").count(), 2, "{output}");
    assert!(!output.contains("has ended for good"), "{output}");
    grid.assert_complete();
    assert!(began_anew(), "the last journal has one incarnation");
    assert!(has_completed(&events()), "a site that is back executes jobs");
}

/// Whoever attaches knows that a journal was lost, whenever the coordinator before ended, and what it said if nobody can
/// read it any more.
#[test]
fn a_site_that_begins_without_its_journal_does_so_under_another_coordinator_too() {
    for (moment, is_missing) in [("noted", false), ("begun", false), ("settled", false), ("settled", true)] {
        let grid = Grid::new("orphan_patience = \"60s\"", LEASE);
        let run = grid.started();
        let dir = grid.data("site1");
        wait_until(&run, "a job ends at site1", || has_completed(&inspect::readable_events(&dir, 0)));
        // What was seen of it is known to this coordinator alone.
        std::thread::sleep(Duration::from_millis(500));
        if is_missing {
            let victim = grid.node(&run, "site1").unwrap();
            std::fs::rename(&dir, grid.path("away")).unwrap();
            signal(victim, Signal::KILL);
        } else {
            grid.damage(&run, "site1");
        }
        wait_until(&run, moment, || {
            // It is replaced by another file, and there may be none at some instant.
            let Ok(record) = std::fs::read_to_string(grid.record()) else { return false };
            match moment {
                "noted" => record.contains("\"losses\": [\n"),
                "begun" => grid.aside("site1", 1).exists() && Running::of(&dir).is_some(),
                _ => record.contains("\"settled\": true"),
            }
        });
        signal(run.id(), Signal::KILL);
        run.wait();

        let (status, output) = grid.attach().wait();
        assert_eq!(status.code(), Some(0), "{moment}, {is_missing}: {output}");
        assert!(output.contains("site1 restarted without its journal at"), "{output}");
        assert!(!output.contains("has ended for good"), "{output}");
        grid.assert_complete();
        let events = inspect::readable_events(&dir, 0);
        assert!(events.iter().any(|event| restarts(event.kind) == Some(0)), "it is another incarnation");
    }
}

/// What was given up as lost is nobody's journal any more, and is told from the one that the site has now.
#[test]
fn a_lost_journal_that_is_put_in_the_place_of_the_next_is_set_aside_again() {
    let grid = Grid::new("orphan_patience = \"60s\"", LEASE);
    let run = grid.started();
    let dir = grid.data("site1");
    wait_until(&run, "a job ends at site1", || has_completed(&inspect::readable_events(&dir, 0)));
    let whole = grid.cut_off(&run, "site1");
    wait_until(&run, "site1 is back", || grid.aside("site1", 1).exists() && Running::of(&dir).is_some());
    signal(run.id(), Signal::KILL);
    run.wait();
    for running in Running::all_in(&grid.out().join("nodes")) {
        signal(running.process.id, Signal::KILL);
    }
    let _ = std::fs::remove_file(dir.join("journal.sqlite-shm"));
    grid.put_back("site1", &whole);

    let (status, output) = grid.attach().wait();
    assert_eq!(status.code(), Some(0), "{output}");
    assert!(output.contains("belongs to journal number 1, and this node is of journal number 2"), "{output}");
    grid.assert_complete();
    assert!(grid.aside("site1", 2).exists(), "{output}");
}

fn has_completed(events: &[Event]) -> bool {
    events.iter().any(|event| matches!(event.kind, EventKind::Completed { .. }))
}

/// How often a site had gone on with its journal, if that is what an event says.
fn restarts(kind: EventKind) -> Option<u32> {
    match kind {
        EventKind::Recovered { incarnation, .. } => Some(restarts_of(incarnation)),
        _ => None,
    }
}

/// What was decided without its journal holds, whatever is there later: a site that was given up stays given up, also if
/// the journal is put back before somebody attaches. Nobody needs to put it back.
#[test]
fn a_site_that_was_given_up_with_its_journal_stays_so_whether_that_is_put_back_or_not() {
    for put_back in [true, false] {
        let grid = Grid::new("restart = false\norphan_patience = \"60s\"", LEASE);
        let run = grid.started();
        let dir = grid.data("site1");
        wait_until(&run, "a job ends at site1", || has_completed(&inspect::readable_events(&dir, 0)));
        let whole = grid.cut_off(&run, "site1");
        wait_until(&run, "site1 is given up", || {
            std::fs::read_to_string(grid.record()).is_ok_and(|record| record.contains("\"lost\": true"))
        });
        signal(run.id(), Signal::KILL);
        let (_, output) = run.wait();
        assert!(output.contains("it ends after"), "{output}");
        if put_back {
            grid.put_back("site1", &whole);
        }

        let (status, output) = grid.attach().wait();
        assert_eq!(status.code(), Some(0), "{output}");
        let told = output.contains("warning: the journal of site1 is there again, but the site was given up");
        assert_eq!(told, put_back, "{output}");
        grid.assert_complete();
    }
}

/// Exit code 1 says that something cannot be, and no more: what is left can be gone on with until every job has ended.
#[test]
fn a_run_that_finds_a_mistake_and_is_not_complete_can_be_attached_to() {
    let grid = Grid::new("", "");
    let mut command = grid.command();
    // Each node executes the fifth job that ends once more.
    command.env("STEALGRID_MUTANT", "repeat");
    let run = grid.run_by(command);
    wait_until(&run, "a mistake is made", || {
        SITES.iter().any(|site| {
            let events = inspect::readable_events(&grid.out().join(format!("nodes/{site}.data")), 0);
            events.iter().filter(|event| matches!(event.kind, EventKind::Completed { .. })).count() > 5
        })
    });
    signal(run.id(), Signal::INT);
    let (status, output) = run.wait();
    assert_eq!(status.code(), Some(1), "{output}");
    assert!(output.contains("started twice") && output.contains("stealgrid attach"), "{output}");
    assert!(grid.record().exists(), "{output}");

    let (status, output) = grid.attach().wait();
    assert_eq!(status.code(), Some(1), "{output}");
    assert!(!grid.record().exists(), "every job has ended: {output}");
}
