//! What a run survives of disks that take nothing more, and of a coordinator that can note nothing.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use outputs::EventReader;
use rustix::process::{Resource, Rlimit, Signal};
use scheduler::{Event, EventKind};
use stealgrid_tests::small_disk::{self, SmallDisk};
use workload::limits::Limits;

use crate::PROGRAM;
use crate::processes::{Run, all_say, pid, signal};
use crate::three_sites::{Grid, LEASE, PATIENCE, SITES, wait_until};

/// KiB of the disks.
const SIZE: u64 = 8 * 1024;

/// Takes all room of a run's disk, and waits until its coordinator has met that.
fn fill_under(run: &Run, disk: &SmallDisk) {
    disk.fill(SIZE);
    let out_of_room = ["could not be started again", "cannot be noted"];
    wait_until(run, "there is no room", || out_of_room.iter().any(|words| run.output().contains(words)));
}

/// Nobody hears what it says, and everything else is done.
#[test]
fn a_coordinator_whose_stderr_is_on_a_full_disk_goes_on() {
    let grid = Grid::new("", "");
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut command = grid.command();
    command.arg("--out").arg(grid.out()).stdin(Stdio::null()).stderr(full);
    let ended = command.output().unwrap();
    assert_eq!(ended.status.code(), Some(0), "{}", String::from_utf8_lossy(&ended.stdout));
    grid.assert_complete();
}

/// Nodes end because there is no room for their journals, and restart when there is: none has ended for good.
#[test]
fn a_disk_that_is_full_for_a_while_costs_nothing_with_a_lease_and_without() {
    let test = "full_disks::a_disk_that_is_full_for_a_while_costs_nothing_with_a_lease_and_without";
    small_disk::in_namespace(test, full_for_a_while);
}

fn full_for_a_while() {
    for protocol in ["", LEASE] {
        let grid = Grid::new("", protocol);
        let disk = SmallDisk::mount(grid.out(), SIZE);
        let run = grid.started();
        fill_under(&run, &disk);
        disk.make_room();

        let (status, output) = run.wait();
        assert_eq!(status.code(), Some(0), "{output}");
        assert!(!output.contains("has ended for good"), "{output}");
        grid.assert_complete();
    }
}

/// Nothing of the log is lost that the disk refuses for a while. If it takes nothing to the end, everything is in the journals.
#[test]
fn a_coordinator_that_can_write_nothing_for_a_while_has_all_events_in_the_end() {
    const MANY: usize = 600;
    for for_a_while in [true, false] {
        let grid = Grid::new("", "");
        let mut jobs = String::new();
        for job in 1..=MANY {
            writeln!(jobs, "{job} {} -1 {} 1 -1 -1 1 60 -1 1 1 1 1 1 -1 -1 -1", job / 5, 3 + job % 4)
                .unwrap();
        }
        std::fs::write(grid.path("jobs.swf"), jobs).unwrap();
        // Without the signal that would end it, a write past the limit of a process fails as one to a full disk does.
        let mut command = Command::new("sh");
        command.args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\"", PROGRAM]).args(grid.command().get_args());
        // What it says must not be past the limit, too.
        command
            .arg("--out")
            .arg(grid.out())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut run = command.spawn().unwrap();
        let (lines, said) = std::sync::mpsc::channel();
        let stderr = BufReader::new(run.stderr.take().unwrap());
        std::thread::spawn(move || {
            stderr.lines().map_while(Result::ok).try_for_each(|line| lines.send(line))
        });
        let deadline = Instant::now() + PATIENCE;
        while !all_say(&grid.out(), &SITES, "start is ordered") {
            assert!(Instant::now() < deadline, "the run does not start");
            std::thread::sleep(Duration::from_millis(5));
        }

        let limited = |current| {
            let limit = Rlimit { current, maximum: None };
            rustix::process::prlimit(Some(pid(run.id())), Resource::Fsize, limit).unwrap()
        };
        let before = limited(Some(1));
        let mut output = Vec::new();
        if for_a_while {
            let waits = |line: &String| line.contains("events wait in memory");
            while !output.iter().any(waits) {
                output
                    .push(said.recv_timeout(PATIENCE).unwrap_or_else(|error| panic!("{error}: {output:#?}")));
            }
            limited(before.current);
        }
        let status = run.wait().unwrap();
        output.extend(said.iter());

        assert_eq!(status.code(), Some(if for_a_while { 0 } else { 1 }), "{output:#?}");
        if !for_a_while {
            assert!(grid.record().exists(), "{output:#?}");
            let (status, output) = grid.attach().wait();
            assert_eq!(status.code(), Some(0), "{output}");
        }
        grid.assert_complete_of(MANY);
        let log = EventReader::open(&grid.out().join("events.jsonl.zst"), Limits::default()).unwrap();
        let events: Vec<Event> = log.map(Result::unwrap).collect();
        let completed = events.iter().filter(|event| matches!(event.kind, EventKind::Completed { .. }));
        assert_eq!(completed.count(), MANY);
    }
}

/// A site is killed for a while. Where what is done cannot be noted from before that on, it is not done; where it cannot be
/// noted from then on, the site does not come back, and the run ends at the stall limit in place of waiting for it.
#[test]
fn what_is_planned_and_cannot_be_noted_is_not_done() {
    let crash = "[[faults]]\nsite = \"site3\"\nwhat = \"crash\"\nat = \"30s\"\nfor = \"20s\"\n";
    for is_killed in [false, true] {
        let grid = Grid::with_stall("3s", "", crash);
        let run = grid.started();
        if is_killed {
            wait_until(&run, "the site is killed", || run.output().contains("node site3 is killed"));
        }
        // Not even root can write to a directory in the place of the file that is written first.
        let blocker = grid.out().join("run.json.tmp");
        wait_until(&run, "the file is free", || std::fs::create_dir(&blocker).is_ok());

        let (status, output) = run.wait();
        std::fs::remove_dir(&blocker).unwrap();
        assert!(!output.contains("site3 begins"), "{output}");
        assert_eq!(output.contains("node site3 is killed"), is_killed, "{output}");
        if is_killed {
            assert_eq!(status.code(), Some(4), "{output}");
            let (status, output) = grid.attach().wait();
            assert_eq!(status.code(), Some(0), "{output}");
        } else {
            assert_eq!(status.code(), Some(0), "{output}");
        }
        grid.assert_complete();
    }
}

/// The coordinator is killed before there is room.
#[test]
fn a_run_on_a_full_disk_can_be_attached_to_when_there_is_room() {
    let test = "full_disks::a_run_on_a_full_disk_can_be_attached_to_when_there_is_room";
    small_disk::in_namespace(test, attached_to_with_room);
}

fn attached_to_with_room() {
    let grid = Grid::new("orphan_patience = \"60s\"", LEASE);
    let disk = SmallDisk::mount(grid.out(), SIZE);
    let run = grid.started();
    fill_under(&run, &disk);
    signal(run.id(), Signal::KILL);
    run.wait();
    disk.make_room();

    let (status, output) = grid.attach().wait();
    assert_eq!(status.code(), Some(0), "{output}");
    grid.assert_complete();
}
