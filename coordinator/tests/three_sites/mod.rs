//! Runs of three sites with journals, whose nodes are killed and whose journals are damaged.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use node::running::Running;
use rustix::io::Errno;
use rustix::process::{Signal, kill_process};

use crate::PROGRAM;
use crate::processes::{Run, pid, read, signal, stop, table};

pub(crate) const JOBS: usize = 60;
/// Processors of a job that needs two sites.
pub(crate) const WIDE: &str = "20";
/// The files of a journal that say what it says.
pub(crate) const JOURNAL: [&str; 3] = ["journal.sqlite", "journal.sqlite-wal", "lock"];
pub(crate) const SITES: [&str; 3] = ["site1", "site2", "site3"];
/// Ample for what takes seconds; reached only by a failing test.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A failure detector with a short lease.
pub(crate) const LEASE: &str = "[protocol]\nheartbeat = \"10s\"\nsuspect_after = \"90s\"\nlease = \"200s\"\n";

/// Three sites with journals, and jobs that keep them busy for some seconds.
pub(crate) struct Grid {
    folder: tempfile::TempDir,
}

impl Grid {
    pub(crate) fn new(node: &str, more: &str) -> Grid {
        Grid::with_stall("20s", node, more)
    }

    /// The same, and it is given up when nothing happens for so long.
    pub(crate) fn with_stall(stall: &str, node: &str, more: &str) -> Grid {
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
             run.clock = \"scaled:20\"\nrun.stall_timeout = \"{stall}\"\n[node]\njournal = \"process\"\n{node}\n{more}"
        );
        std::fs::write(grid.path("experiment.toml"), text).unwrap();
        grid
    }

    /// The same, with every tenth job too wide for each site.
    pub(crate) fn with_wide_jobs(self) -> Grid {
        let mut jobs = String::new();
        for line in read(&self.path("jobs.swf")).lines() {
            let mut fields: Vec<&str> = line.split(' ').collect();
            if fields[0].ends_with('0') {
                (fields[4], fields[7]) = (WIDE, WIDE);
            }
            writeln!(jobs, "{}", fields.join(" ")).unwrap();
        }
        std::fs::write(self.path("jobs.swf"), jobs).unwrap();
        self
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn out(&self) -> PathBuf {
        self.path("out")
    }

    pub(crate) fn run(&self) -> Run {
        self.run_by(self.command())
    }

    /// The same, started by this command.
    pub(crate) fn run_by(&self, command: Command) -> Run {
        Run::of(command, self.folder.path())
    }

    /// A run that lacks nothing but the result directory.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(PROGRAM);
        // Whether the makespan is one that simulations have is not the question here.
        command.arg("run").arg(self.path("experiment.toml"));
        command.args(["--ensemble", "0", "--calibration-tolerance", "1000"]);
        command
    }

    /// The same, and the clocks of all nodes were started.
    pub(crate) fn started(&self) -> Run {
        let mut run = self.run();
        run.wait_for_logs(&SITES, "start is ordered");
        run
    }

    pub(crate) fn attach(&self) -> Run {
        let mut command = Command::new(PROGRAM);
        command.arg("attach").arg(self.out());
        Run::without_out(command, self.folder.path())
    }

    /// The node of a site that runs.
    pub(crate) fn node(&self, run: &Run, site: &str) -> Option<u32> {
        let config = format!("{site}.json");
        run.children().into_iter().find(|(_, command)| command.contains(&config)).map(|(id, _)| id)
    }

    /// Kills the node of a site, and then each successor some milliseconds after it appears.
    pub(crate) fn kill_again(&self, run: &Run, site: &str, after_ms: &[u64]) {
        let mut before = None;
        for after in after_ms {
            let mut next = None;
            wait_until(run, &format!("{site} begins"), || {
                next = self.node(run, site).filter(|id| Some(*id) != before);
                next.is_some()
            });
            std::thread::sleep(Duration::from_millis(*after));
            // It may have ended by itself, as one that cannot begin; then its successor is the next.
            match kill_process(pid(next.unwrap()), Signal::KILL) {
                Ok(()) | Err(Errno::SRCH) => before = next,
                Err(error) => panic!("{site} cannot be killed: {error}"),
            }
        }
    }

    /// Kills the node of a site when its journal is no journal any more.
    pub(crate) fn damage(&self, run: &Run, site: &str) {
        let victim = self.node(run, site).unwrap();
        stop(victim);
        // Both: where every page was written since the last checkpoint, the write-ahead log alone is a whole journal.
        for name in [JOURNAL[0], JOURNAL[1]] {
            std::fs::write(self.data(site).join(name), vec![7; 8192]).unwrap();
        }
        signal(victim, Signal::KILL);
    }

    /// Kills the node of a site when its write-ahead log is cut off: SQLite takes what is left for all that there was. What
    /// the files of the journal were before.
    pub(crate) fn cut_off(&self, run: &Run, site: &str) -> [Vec<u8>; 3] {
        let victim = self.node(run, site).unwrap();
        stop(victim);
        let dir = self.data(site);
        let whole = JOURNAL.map(|name| std::fs::read(dir.join(name)).unwrap());
        std::fs::write(dir.join(JOURNAL[1]), &whole[1][..whole[1].len() / 3]).unwrap();
        signal(victim, Signal::KILL);
        whole
    }

    /// Makes the journal of a site what it was.
    pub(crate) fn put_back(&self, site: &str, whole: &[Vec<u8>; 3]) {
        for (name, bytes) in JOURNAL.iter().zip(whole) {
            std::fs::write(self.data(site).join(name), bytes).unwrap();
        }
    }

    pub(crate) fn data(&self, site: &str) -> PathBuf {
        self.out().join(format!("nodes/{site}.data"))
    }

    /// Where the journal of a site is kept that it lost.
    pub(crate) fn aside(&self, site: &str, number: u32) -> PathBuf {
        self.data(site).join(format!("lost-{number}"))
    }

    /// Every job ended once, and nothing is left.
    pub(crate) fn assert_complete(&self) {
        self.assert_complete_of(JOBS);
    }

    pub(crate) fn assert_complete_of(&self, jobs_total: usize) {
        let jobs = read(&self.out().join("jobs.csv"));
        let (columns, rows) = table(&jobs);
        let column = |name: &str| columns.iter().position(|column| *column == name).unwrap();
        let ids: BTreeSet<&str> = rows.iter().map(|row| row[column("job_id")]).collect();
        assert_eq!((rows.len(), ids.len()), (jobs_total, jobs_total));
        assert!(rows.iter().all(|row| row[column("final_state")] == "COMPLETED_SUCCESSFULLY"), "{jobs}");
        assert!(!self.record().exists(), "the run is complete");
        self.assert_no_node();
    }

    pub(crate) fn record(&self) -> PathBuf {
        self.out().join("run.json")
    }

    pub(crate) fn assert_no_node(&self) {
        assert_eq!(Running::all_in(&self.out().join("nodes")), []);
    }
}

pub(crate) fn wait_until(run: &Run, what: &str, mut met: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !met() {
        assert!(Instant::now() < deadline, "{what}: {}", run.output());
        std::thread::sleep(Duration::from_millis(2));
    }
}
