//! Jobs that are submitted to Slurm: none lost and none twice, whatever the cluster, its operator and the node do. A stand-in for the commands
//! of Slurm runs the jobs; `.ci/slurm` has the real one.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use node::NodeConfig;
use node::config::SiteEntry;
use node::control::Token;
use node::executor::{By, Settings, Slurm};
use operation::NodeProcess;
use operation::fleet::{Fleet, start_order};
use operation::spawn::SpawnOrder;
use rustix::process::{Pid, Signal, kill_process};
use scheduler::event::ExitCause;
use scheduler::{Event, EventKind, SiteId, Span, Time, TimedJob};
use tempfile::TempDir;

use crate::PROGRAM;
use crate::commands::{PATIENCE, job, until};

/// The beginning of each command: nobody answers while there is a file `away`.
const HEAD: &str = "#!/bin/sh\nat=HERE\n[ ! -e $at/away ] || { echo \"$(basename $0): error: Unable to contact slurm controller (connect failure)\" >&2; exit 1; }\n";

/// Runs the script at once; with a file `mute` its answer does not arrive, and while there is a file `slow` it is not given.
const SBATCH: &str = r#"
[ ! -e $at/refuse ] || { echo 'sbatch: error: Batch job submission failed: Job violates accounting/QOS policy' >&2; exit 1; }
for word; do
    case $word in
        --job-name=*) name=${word#*=} ;;
        --output=*) output=${word#*=} ;;
        --error=*) errors=${word#*=} ;;
        -*) ;;
        *) break ;;
    esac
    shift
done
id=1
while ! mkdir $at/jobs/$id 2> /dev/null; do id=$((id + 1)); done
setsid sh "$@" > "$output" 2> "$errors" < /dev/null &
echo $! > $at/jobs/$id/pid
echo "$SLURM_CONF" > $at/jobs/$id/conf
echo "$name" > $at/jobs/$id/name
while [ -e $at/slow ]; do sleep 0.1; done
[ ! -e $at/mute ] || { rm $at/mute; echo 'sbatch: error: Batch job submission failed: Socket timed out on send/recv operation' >&2; exit 1; }
echo $id
"#;

/// A state that somebody wrote, or what the process does.
const SQUEUE: &str = r#"
for job in $at/jobs/*; do
    [ -e $job/name ] || continue
    state=RUNNING
    kill -0 $(cat $job/pid) 2> /dev/null || state=COMPLETED
    [ ! -e $job/state ] || state=$(cat $job/state)
    echo "${job##*/}|$state|$(cat $job/reason 2> /dev/null)|$(cat $job/name)"
done
"#;

const SCANCEL: &str = r#"
for id; do
    kill -9 -$(cat $at/jobs/$id/pid) 2> /dev/null
    echo CANCELLED > $at/jobs/$id/state
done
exit 0
"#;

/// A stand-in for Slurm, and a node that submits to it.
struct Stand {
    folder: TempDir,
}

impl Stand {
    fn new() -> Stand {
        let stand = Stand { folder: tempfile::tempdir().unwrap() };
        for site in ["one.conf", "two.conf"] {
            stand.say(site);
        }
        for folder in ["bin", "jobs"] {
            std::fs::create_dir(stand.path(folder)).unwrap();
        }
        let head = HEAD.replace("HERE", stand.folder.path().to_str().unwrap());
        for (name, rest) in [("sbatch", SBATCH), ("squeue", SQUEUE), ("scancel", SCANCEL)] {
            stand.program(&format!("bin/{name}"), &format!("{head}{rest}"));
        }
        let bin = stand.path("bin");
        stand.program("node", &format!("#!/bin/sh\nPATH={}:$PATH exec {PROGRAM} \"$@\"\n", bin.display()));
        Token::random().write_new(&stand.path("token")).unwrap();
        stand
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn program(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
        std::fs::set_permissions(self.path(name), std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn say(&self, name: &str) {
        std::fs::write(self.path(name), "").unwrap();
    }

    fn order(&self) -> SpawnOrder {
        SpawnOrder {
            program: self.path("node"),
            arguments: Vec::new(),
            folder: self.folder.path().to_path_buf(),
        }
    }

    /// Each execution leaves a line, whoever wanted it.
    fn config(&self, grid: &[u32], seconds: &str) -> NodeConfig {
        let script =
            format!("echo $STEALGRID_JOB >> \"$0\"; sleep {seconds}; exit $((STEALGRID_JOB == 3 ? 41 : 0))");
        let command = ["sh", "-c", &script, self.path("executed").to_str().unwrap()].map(str::to_string);
        let slurm = Slurm {
            conf: Some(self.path("{site}.conf").to_str().unwrap().to_string()),
            poll_millis: 200,
            ..Slurm::default()
        };
        let names = ["one", "two"].iter().zip(grid);
        let grid = names.map(|(name, &processors)| SiteEntry::new(*name, processors)).collect();
        let mut config = NodeConfig::new(SiteId(1), grid);
        config.options.retry = Some(Span::from_secs(5));
        // One for each site.
        config.execution =
            Settings { by: By::Slurm, command: command.to_vec(), slurm, ..Settings::default() };
        config.execution.folder = Some(self.path("files"));
        config
    }

    fn executed(&self) -> Vec<u64> {
        let said = std::fs::read_to_string(self.path("executed")).unwrap_or_default();
        let mut jobs: Vec<u64> = said.lines().map(|line| line.parse().unwrap()).collect();
        jobs.sort_unstable();
        jobs
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.path("one.log")).unwrap()
    }

    /// One site, with a journal.
    fn node(&self, jobs: u64, seconds: &str) -> (NodeConfig, NodeProcess) {
        let mut config = self.config(&[2 * u32::try_from(jobs).unwrap()], seconds);
        config.data_dir = Some(self.path("data"));
        config.control_token = Some(self.path("token"));
        let node = NodeProcess::spawn(&self.order(), &config).unwrap();
        node.client().jobs(&(1..=jobs).map(job).collect::<Vec<_>>()).unwrap();
        node.client().start(&start_order(10.0, Time::ZERO, Duration::from_millis(100))).unwrap();
        (config, node)
    }
}

fn kill(node: &NodeProcess, signal: Signal) {
    let id = i32::try_from(node.id().unwrap()).ok().and_then(Pid::from_raw).unwrap();
    kill_process(id, signal).unwrap();
}

/// The events of a node once so many jobs have ended.
fn events(node: &NodeProcess, ended: usize) -> Vec<Event> {
    until("the jobs do not end", || {
        let events = node.client().events(0, 1000).unwrap();
        let completed =
            events.iter().filter(|event| matches!(event.kind, EventKind::Completed { .. })).count();
        (completed >= ended).then_some(events)
    })
}

fn exits(events: &[Event]) -> BTreeMap<u64, (ExitCause, Option<i32>)> {
    let mut exits = BTreeMap::new();
    for event in events {
        if let EventKind::Exited { job, how, code } = event.kind {
            assert_eq!(exits.insert(job.0, (how, code)), None, "job {job} ended twice");
        }
    }
    exits
}

const WELL: (ExitCause, Option<i32>) = (ExitCause::Exit, Some(0));

#[test]
fn each_job_is_submitted_to_the_cluster_of_the_site_that_starts_it() {
    let stand = Stand::new();
    let mut fleet = Fleet::spawn(&stand.order(), &stand.config(&[2, 8], "0.3")).unwrap();
    fleet.wait_ready(PATIENCE).unwrap();
    let jobs: Vec<TimedJob> = (1..=6).map(job).collect();
    fleet.feed(&jobs, |job| job.spec.origin).unwrap();
    fleet.start(10.0, Time::ZERO, Duration::from_millis(100)).unwrap();
    let mut events = Vec::new();
    until("the jobs do not end", || {
        let is_finished = fleet.is_finished(6).unwrap();
        fleet.take_events(&mut |event| events.push(event)).unwrap();
        is_finished.then_some(())
    });
    fleet.stop(PATIENCE).unwrap();

    assert_eq!(stand.executed(), [1, 2, 3, 4, 5, 6]);
    for (job, exit) in exits(&events) {
        assert_eq!(exit, if job == 3 { (ExitCause::Exit, Some(41)) } else { WELL }, "job {job}");
    }
    let started = |site| {
        let here =
            |event: &&Event| event.site == SiteId(site) && matches!(event.kind, EventKind::Started { .. });
        events.iter().filter(here).count()
    };
    let submitted = |site: &str| {
        let conf = stand.path(&format!("{site}.conf"));
        let confs =
            std::fs::read_dir(stand.path("jobs")).unwrap().map(|job| job.unwrap().path().join("conf"));
        confs.filter(|path| std::fs::read_to_string(path).unwrap().trim() == conf.to_str().unwrap()).count()
    };
    assert_eq!([started(1), started(2)], [submitted("one"), submitted("two")]);
    assert!(started(2) > 0, "nothing was stolen");
}

#[test]
fn a_cluster_that_is_away_is_waited_for_and_an_answer_that_does_not_come_submits_nothing_twice() {
    let stand = Stand::new();
    stand.say("away");
    let (_, node) = stand.node(2, "0.1");
    until("nobody says that the cluster is away", || stand.log().contains("does not answer").then_some(()));
    assert!(stand.executed().is_empty());
    stand.say("mute");
    std::fs::remove_file(stand.path("away")).unwrap();

    let events = events(&node, 2);

    assert_eq!(exits(&events), BTreeMap::from([(1, WELL), (2, WELL)]));
    assert!(!stand.path("mute").exists(), "all answers came");
    assert_eq!(stand.executed(), [1, 2]);
    assert!(stand.log().contains("answers again"), "{}", stand.log());
}

#[test]
fn what_slurm_refuses_and_what_its_operators_do_has_its_event_or_its_line() {
    let stand = Stand::new();
    let (_, node) = stand.node(3, "1000");
    until("the jobs do not begin", || (stand.executed().len() == 3).then_some(()));
    let ids: Vec<PathBuf> = (1..=3).map(|id| stand.path(&format!("jobs/{id}"))).collect();
    let number = |path: &Path| {
        let name = std::fs::read_to_string(path.join("name")).unwrap();
        let job: u64 = name.split('-').nth(2).unwrap().split('.').next().unwrap().parse().unwrap();
        job
    };
    let jobs: Vec<u64> = ids.iter().map(|path| number(path)).collect();
    std::fs::write(ids[0].join("state"), "NODE_FAIL").unwrap();
    std::fs::write(ids[1].join("state"), "CANCELLED").unwrap();
    std::fs::write(ids[2].join("reason"), "JobHeldAdmin").unwrap();
    std::fs::write(ids[2].join("state"), "PENDING").unwrap();
    until("nobody says that a job is held", || stand.log().contains("is held in Slurm").then_some(()));
    std::fs::write(ids[2].join("state"), "TIMEOUT").unwrap();

    let exits = exits(&events(&node, 3));

    let expected = [(ExitCause::NodeFailed, None), (ExitCause::Cancelled, None), (ExitCause::WallTime, None)];
    assert_eq!(exits, jobs.iter().copied().zip(expected).collect());

    stand.say("refuse");
    node.client().jobs(&[job(9)]).unwrap();
    let events = events(&node, 4);
    assert_eq!(self::exits(&events)[&9], (ExitCause::NotStarted, None));
    assert!(stand.log().contains("violates accounting/QOS policy"), "{}", stand.log());
    for id in 1..=3 {
        // The stand-in was only told that they are gone.
        let pid: i32 =
            std::fs::read_to_string(stand.path(&format!("jobs/{id}/pid"))).unwrap().trim().parse().unwrap();
        let _ = rustix::process::kill_process_group(Pid::from_raw(pid).unwrap(), Signal::KILL);
    }
}

#[test]
fn a_node_that_is_killed_finds_its_jobs_again_and_submits_none_twice() {
    let stand = Stand::new();
    let (config, mut node) = stand.node(2, "2");
    until("the jobs do not begin", || (stand.executed().len() == 2).then_some(()));
    kill(&node, Signal::KILL);
    until("the node does not end", || node.ended().unwrap());

    let node = NodeProcess::spawn_again(&stand.order(), &config).unwrap();
    let events = events(&node, 2);

    assert_eq!(stand.executed(), [1, 2]);
    assert_eq!(exits(&events), BTreeMap::from([(1, WELL), (2, WELL)]));
    assert!(stand.log().contains("found again"), "{}", stand.log());
}

#[test]
fn a_node_that_is_killed_before_it_hears_the_answer_finds_the_job() {
    let stand = Stand::new();
    stand.say("slow");
    let (config, mut node) = stand.node(1, "1");
    until("the job does not begin", || (stand.executed().len() == 1).then_some(()));
    kill(&node, Signal::KILL);
    until("the node does not end", || node.ended().unwrap());
    std::fs::remove_file(stand.path("slow")).unwrap();
    // It ends before anybody looks for it.
    until("the job does not end", || std::fs::read_dir(stand.path("files/done")).unwrap().next().map(drop));

    let node = NodeProcess::spawn_again(&stand.order(), &config).unwrap();
    let events = events(&node, 1);

    assert_eq!(stand.executed(), [1]);
    assert_eq!(exits(&events), BTreeMap::from([(1, WELL)]));
}

#[test]
fn a_node_that_is_told_to_end_cancels_its_jobs() {
    let stand = Stand::new();
    let (_, mut node) = stand.node(1, "1000");
    until("the job does not begin", || (stand.executed().len() == 1).then_some(()));
    kill(&node, Signal::TERM);
    until("the node does not end", || node.ended().unwrap());
    assert_eq!(std::fs::read_to_string(stand.path("jobs/1/state")).unwrap(), "CANCELLED\n");
}

#[test]
fn a_node_without_the_commands_of_slurm_says_so_and_does_not_start() {
    let stand = Stand::new();
    std::fs::remove_file(stand.path("bin/squeue")).unwrap();
    stand.program(
        "bin/squeue",
        "#!/bin/sh\necho 'squeue: fatal: Could not establish a configuration source' >&2; exit 1\n",
    );
    let error = NodeProcess::spawn(&stand.order(), &stand.config(&[2], "1")).unwrap_err().to_string();
    assert!(error.contains("Could not establish a configuration source"), "{error}");
}
