//! What a run survives of its nodes: killed again while they begin, no descriptors, all of them gone. It goes on, or ends
//! in order with everything kept for `stealgrid attach`.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

mod processes;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use node::running::Running;
use rustix::process::{Resource, Rlimit, Signal};

use self::processes::{PROGRAM, Run, pid, read, signal, table};

const JOBS: usize = 60;
const SITES: [&str; 3] = ["site1", "site2", "site3"];
/// Ample for what takes seconds; reached only by a failing test.
const PATIENCE: Duration = Duration::from_secs(60);

/// A failure detector with a short lease.
const LEASE: &str = "[protocol]\nheartbeat = \"10s\"\nsuspect_after = \"90s\"\nlease = \"200s\"\n";

/// Three sites with journals, and jobs that keep them busy for some seconds.
struct Grid {
    folder: tempfile::TempDir,
}

impl Grid {
    fn new(node: &str, more: &str) -> Grid {
        let grid = Grid { folder: tempfile::tempdir().unwrap() };
        let mut jobs = String::new();
        for job in 1..=JOBS {
            let (processors, submit, run_time) = (1 + job % 4, 2 * job, 20 + job * 7 % 21);
            writeln!(
                jobs,
                "{job} {submit} -1 {run_time} {processors} -1 -1 {processors} 60 -1 1 1 1 1 1 -1 -1 -1"
            )
            .unwrap();
        }
        std::fs::write(grid.path("jobs.swf"), jobs).unwrap();
        let text = format!(
            "grid.sizes = [4, 8, 16]\nworkload.trace = \"jobs.swf\"\nnetwork.delay = \"1s\"\n\
             run.clock = \"scaled:20\"\nrun.stall_timeout = \"5s\"\n[node]\njournal = \"process\"\n{node}\n{more}"
        );
        std::fs::write(grid.path("experiment.toml"), text).unwrap();
        grid
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn out(&self) -> PathBuf {
        self.path("out")
    }

    fn run(&self) -> Run {
        let mut command = Command::new(PROGRAM);
        // Whether the makespan is one that simulations have is not the question here.
        command.arg("run").arg(self.path("experiment.toml"));
        command.args(["--ensemble", "0", "--calibration-tolerance", "1000"]);
        Run::of(command, self.folder.path())
    }

    /// The same, and the clocks of all nodes were started.
    fn started(&self) -> Run {
        let mut run = self.run();
        run.wait_for_logs(&SITES, "start is ordered");
        run
    }

    fn attach(&self) -> Run {
        let mut command = Command::new(PROGRAM);
        command.arg("attach").arg(self.out());
        Run::without_out(command, self.folder.path())
    }

    /// The node of a site that runs.
    fn node(&self, run: &Run, site: &str) -> Option<u32> {
        let config = format!("{site}.json");
        run.children().into_iter().find(|(_, command)| command.contains(&config)).map(|(id, _)| id)
    }

    /// Kills the node of a site, and then each successor some milliseconds after it appears.
    fn kill_again(&self, run: &Run, site: &str, after_ms: &[u64]) {
        let mut before = None;
        for after in after_ms {
            let mut next = None;
            wait_until(run, &format!("{site} begins"), || {
                next = self.node(run, site).filter(|id| Some(*id) != before);
                next.is_some()
            });
            std::thread::sleep(Duration::from_millis(*after));
            signal(next.unwrap(), Signal::KILL);
            before = next;
        }
    }

    /// Every job ended once, and nothing is left.
    fn assert_complete(&self) {
        let jobs = read(&self.out().join("jobs.csv"));
        let (columns, rows) = table(&jobs);
        let column = |name: &str| columns.iter().position(|column| *column == name).unwrap();
        let ids: BTreeSet<&str> = rows.iter().map(|row| row[column("job_id")]).collect();
        assert_eq!((rows.len(), ids.len()), (JOBS, JOBS));
        assert!(rows.iter().all(|row| row[column("final_state")] == "COMPLETED_SUCCESSFULLY"), "{jobs}");
        assert!(!self.record().exists(), "the run is complete");
        self.assert_no_node();
    }

    fn record(&self) -> PathBuf {
        self.out().join("run.json")
    }

    fn assert_no_node(&self) {
        assert_eq!(Running::all_in(&self.out().join("nodes")), []);
    }
}

/// A small file system in the place of a directory; unmounted when dropped.
struct Disk {
    dir: PathBuf,
}

impl Disk {
    /// `None`, said loudly, where the system does not let this process mount one.
    fn mount(dir: PathBuf) -> Option<Disk> {
        std::fs::create_dir(&dir).unwrap();
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", "size=8m", "tmpfs"]).arg(&dir).output();
        if mounted.as_ref().is_ok_and(|mounted| mounted.status.success()) {
            return Some(Disk { dir });
        }
        eprintln!("SKIPPED: a full disk cannot be had here, as nothing may be mounted: {mounted:?}");
        None
    }

    /// Takes all room that is left.
    fn fill(&self) {
        let mut file = std::fs::File::create(self.filler()).unwrap();
        let chunk = vec![0; 4096];
        while file.write_all(&chunk).is_ok() {}
    }

    fn make_room(&self) {
        std::fs::remove_file(self.filler()).unwrap();
    }

    fn filler(&self) -> PathBuf {
        self.dir.join("filler")
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Whoever still has a file open there keeps it until then.
        let unmounted = Command::new("umount").arg("-l").arg(&self.dir).status();
        assert!(unmounted.is_ok_and(|status| status.success()), "{} is still mounted", self.dir.display());
    }
}

fn wait_until(run: &Run, what: &str, mut met: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !met() {
        assert!(Instant::now() < deadline, "{what}: {}", run.output());
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_node_that_is_killed_again_and_again_while_it_begins_is_started_once_more() {
    let grid = Grid::new("", "");
    let run = grid.started();

    grid.kill_again(&run, "site1", &[0, 0, 100, 10, 40, 0, 5, 70]);

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

/// They are to begin again, and cannot: what they said last does not count as something to come.
#[test]
fn a_run_whose_nodes_cannot_begin_ends_at_the_stall_limit() {
    let grid = Grid::new("", LEASE);
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
    assert!(output.contains("nothing happened for") && output.contains("site3 has ended"), "{output}");

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

/// With a lease others take over what a site had whose journal is damaged, also what it alone knew of.
#[test]
fn a_run_with_a_lease_goes_on_without_a_site_whose_journal_is_damaged() {
    let grid = Grid::new("", LEASE);
    let run = grid.started();
    let journal = grid.out().join("nodes/site1.data/journal.sqlite");
    let victim = grid.node(&run, "site1").unwrap();
    signal(victim, Signal::STOP);
    std::fs::write(&journal, vec![7; 8192]).unwrap();
    signal(victim, Signal::KILL);

    let (status, output) = run.wait();
    assert_eq!(status.code(), Some(0), "{output}");
    assert!(output.contains("is damaged") && output.contains("site1 has ended for good"), "{output}");
    grid.assert_complete();
}

/// Nodes end because there is no room for their journals, and begin again when there is: none has ended for good.
#[test]
fn a_disk_that_is_full_for_a_while_costs_nothing_with_a_lease_and_without() {
    for protocol in ["", LEASE] {
        let grid = Grid::new("", &format!("[outputs]\nevents = false\n{protocol}"));
        let Some(disk) = Disk::mount(grid.out()) else { return };
        let run = grid.started();
        disk.fill();
        let out_of_room = ["could not be started again", "cannot be noted"];
        wait_until(&run, "there is no room", || out_of_room.iter().any(|words| run.output().contains(words)));
        disk.make_room();

        let (status, output) = run.wait();
        assert_eq!(status.code(), Some(0), "{output}");
        assert!(!output.contains("has ended for good"), "{output}");
        grid.assert_complete();
    }
}

/// The same, and the coordinator is killed before there is room.
#[test]
fn a_run_on_a_full_disk_can_be_attached_to_when_there_is_room() {
    let grid = Grid::new("orphan_patience = \"60s\"", &format!("[outputs]\nevents = false\n{LEASE}"));
    let Some(disk) = Disk::mount(grid.out()) else { return };
    let run = grid.started();
    disk.fill();
    let out_of_room = ["could not be started again", "cannot be noted"];
    wait_until(&run, "there is no room", || out_of_room.iter().any(|words| run.output().contains(words)));
    signal(run.id(), Signal::KILL);
    run.wait();
    disk.make_room();

    let (status, output) = grid.attach().wait();
    assert_eq!(status.code(), Some(0), "{output}");
    grid.assert_complete();
}
