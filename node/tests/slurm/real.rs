//! The same against Slurm itself: `.ci/slurm-once` starts a cluster of its own for this, and says where in `STEALGRID_ONCE`.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use node::NodeConfig;
use node::executor::By;
use operation::NodeProcess;
use rustix::process::{Pid, Signal, kill_process};
use scheduler::event::ExitCause;

use super::stand::Stand;
use super::{WELL, asked, events, exits, kill};
use crate::commands::until;

/// Lets `sbatch` wait, or leaves it under way without an answer, as the stand-in does.
const SBATCH: &str = "#!/bin/sh\nat=HERE\n\
    if mv $at/late $at/late.$$ 2> /dev/null; then\n\
        while [ -e $at/late.$$ ]; do sleep 0.05; done\n\
    fi\n\
    if mv $at/lost $at/late.$$ 2> /dev/null; then\n\
        (while [ -e $at/late.$$ ]; do sleep 0.05; done; exec REAL \"$@\") > /dev/null 2>&1 < /dev/null &\n\
        echo 'sbatch: error: Batch job submission failed: Socket timed out on send/recv operation' >&2\n\
        exit 1\n\
    fi\n\
    exec REAL \"$@\"\n";
/// How long Slurm may take for what it does seldom: it forgets jobs every half a minute, and starts what is queued again after two and a half.
const SELDOM: Duration = Duration::from_secs(300);

/// A cluster under Slurm.
struct Real {
    stand: Stand,
    cluster: PathBuf,
}

impl Real {
    fn new() -> Real {
        let stand = Stand::new();
        std::fs::remove_dir_all(stand.path("bin")).unwrap();
        std::fs::create_dir(stand.path("bin")).unwrap();
        let real = Command::new("sh").args(["-c", "command -v sbatch"]).output().unwrap();
        let text = SBATCH.replace("HERE", stand.folder.path().to_str().unwrap());
        stand.program("bin/sbatch", &text.replace("REAL", String::from_utf8(real.stdout).unwrap().trim()));
        Real { stand, cluster: PathBuf::from(std::env::var_os("STEALGRID_ONCE").unwrap()) }
    }

    fn config(&self, by: By, seconds: &str, options: &[&str]) -> NodeConfig {
        let mut config = self.stand.config(&[4], seconds);
        config.execution.by = by;
        config.execution.slurm.conf = Some(self.conf());
        config.execution.slurm.options = options.iter().map(|option| option.to_string()).collect();
        config
    }

    fn conf(&self) -> String {
        self.cluster.join("slurm.conf").to_str().unwrap().to_string()
    }

    fn said(&self, program: &str, arguments: &[&str]) -> String {
        let said = Command::new(program).args(arguments).env("SLURM_CONF", self.conf()).output().unwrap();
        String::from_utf8(said.stdout).unwrap()
    }

    fn prefix(&self) -> String {
        format!("sg-{}-", std::fs::read_to_string(self.stand.path("files1/owner")).unwrap())
    }

    /// What Slurm has of this folder: numbers and states.
    fn rows(&self, states: &str) -> Vec<(String, String)> {
        let said = self.said("squeue", &["--noheader", states, "--format=%i|%T|%j"]);
        let row = |line: &str| {
            let (id, rest) = line.split_once('|')?;
            let (state, name) = rest.split_once('|')?;
            name.starts_with(&self.prefix()).then(|| (id.to_string(), state.to_string()))
        };
        said.lines().filter_map(row).collect()
    }

    /// How jobs of this folder have ended, by Slurm's own log.
    fn ended(&self) -> Vec<String> {
        let log = std::fs::read_to_string(self.cluster.join("ended.txt")).unwrap_or_default();
        let state = |line: &str| Some(line.split("JobState=").nth(1)?.split(' ').next()?.to_string());
        log.lines().filter(|line| line.contains(&self.prefix())).filter_map(state).collect()
    }
}

/// What Slurm does in its own time.
fn seldom<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + SELDOM;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
#[ignore = "needs Slurm: .ci/slurm-once"]
fn what_slurm_takes_late_does_not_run() {
    for by in [By::Slurm, By::SlurmQueue] {
        for file in ["late", "lost"] {
            let real = Real::new();
            real.stand.say(file);
            let (config, mut node) = real.stand.node_of(1, real.config(by, "1", &[]));
            let late = until("nothing is submitted", || real.stand.late());
            if file == "late" {
                kill(&node, Signal::KILL);
                until("the node does not end", || node.ended().unwrap());
                node = NodeProcess::spawn_again(&real.stand.order(), &config).unwrap();
            }
            assert_eq!(exits(&events(&node, 1)), [(1, WELL)].into());
            std::fs::remove_file(late).unwrap();
            let ended =
                seldom("what is late does not end", || Some(real.ended()).filter(|ended| ended.len() == 2));
            assert_eq!(real.stand.executed(), [1], "{by:?}, {file}");
            assert_eq!(ended[0], "COMPLETED", "{by:?}, {file}");
            assert!(["FAILED", "CANCELLED"].contains(&ended[1].as_str()), "{by:?}, {file}: {ended:?}");
        }
    }
}

#[test]
#[ignore = "needs Slurm: .ci/slurm-once"]
fn what_slurm_forgot_is_unknown_and_does_not_run_again() {
    for by in [By::Slurm, By::SlurmQueue] {
        let real = Real::new();
        let (config, mut node) = real.stand.node_of(1, real.config(by, "1000", &[]));
        until("the job does not begin", || (real.stand.executed() == [1]).then_some(()));
        kill(&node, Signal::KILL);
        until("the node does not end", || node.ended().unwrap());
        let id = real.rows("--states=all")[0].0.clone();
        real.said("scancel", &["--signal=KILL", "--full", &id]);
        seldom("Slurm does not forget a job", || real.rows("--states=all").is_empty().then_some(()));

        let node = NodeProcess::spawn_again(&real.stand.order(), &config).unwrap();
        let exits = exits(&events(&node, 1));
        assert_eq!(
            (real.stand.executed(), exits),
            (vec![1], [(1, (ExitCause::Unknown, None))].into()),
            "{by:?}"
        );
    }
}

/// `slurmctld` is killed, and restarts with what it had saved before a job was cancelled.
#[test]
#[ignore = "needs Slurm: .ci/slurm-once"]
fn what_slurm_has_again_does_not_run() {
    let real = Real::new();
    let (_, node) = real.stand.node_of(1, real.config(By::Slurm, "1", &["--hold"]));
    let id = until("the job does not come", || {
        asked(node.client().status())?;
        Some(real.rows("--states=all")).filter(|rows| !rows.is_empty())
    })[0]
        .0
        .clone();
    let (state, saved) = (real.cluster.join("state"), real.cluster.join("saved"));
    seldom("Slurm does not save the job", || {
        let saved = std::fs::read(state.join("job_state")).unwrap_or_default();
        let name = real.prefix();
        saved.windows(name.len()).any(|part| part == name.as_bytes()).then_some(())
    });
    let copy = |from: &PathBuf, to: &PathBuf| {
        let _ = std::fs::remove_dir_all(to);
        assert!(Command::new("cp").arg("-a").args([from, to]).status().unwrap().success());
    };
    copy(&state, &saved);
    real.said("scancel", &[&id]);
    assert_eq!(exits(&events(&node, 1)), [(1, (ExitCause::Cancelled, None))].into());

    let pid: i32 = std::fs::read_to_string(real.cluster.join("ctld.pid")).unwrap().trim().parse().unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    std::thread::sleep(Duration::from_secs(1));
    copy(&saved, &state);
    assert!(Command::new("slurmctld").args(["-f", &real.conf()]).status().unwrap().success());
    seldom("Slurm does not have it again", || (!real.rows("--states=pending").is_empty()).then_some(()));
    real.said("scontrol", &["release", &id]);
    let ended = seldom("it does not end", || Some(real.ended()).filter(|ended| ended.len() == 2));
    assert_eq!((real.stand.executed(), ended), (vec![], vec!["CANCELLED".to_string(), "FAILED".to_string()]));
}

/// `RequeueExit=41`: Slurm queues a job again that has ended so. What an operator queues again is the same execution.
#[test]
#[ignore = "needs Slurm: .ci/slurm-once"]
fn what_slurm_queues_again_runs_again_unless_it_has_ended() {
    let real = Real::new();
    let (_, node) = real.stand.node_of(0, real.config(By::SlurmQueue, "2", &["--requeue"]));
    node.client().jobs(&[crate::commands::job(3)]).unwrap();
    assert_eq!(exits(&events(&node, 1)), [(3, (ExitCause::Exit, Some(41)))].into());
    seldom("it is not cancelled", || real.ended().contains(&"CANCELLED".to_string()).then_some(()));
    assert_eq!(real.stand.executed(), [3]);

    node.client().jobs(&[crate::commands::job(1)]).unwrap();
    until("the job does not begin", || (real.stand.executed() == [1, 3]).then_some(()));
    let id = real.rows("--states=running")[0].0.clone();
    real.said("scontrol", &["requeue", &id]);
    // After two minutes and more, as Slurm has it.
    seldom("it does not begin again", || (real.stand.executed() == [1, 1, 3]).then_some(()));
    assert_eq!(exits(&events(&node, 2))[&1], WELL);
}
