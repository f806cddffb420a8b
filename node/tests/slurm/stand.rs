//! A stand-in for the commands of Slurm, which runs the jobs, and nodes that submit to it. Files in its folder say what it does wrong.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::Duration;

use node::NodeConfig;
use node::config::SiteEntry;
use node::control::Token;
use node::executor::{By, Settings, Slurm};
use operation::NodeProcess;
use operation::fleet::start_order;
use operation::spawn::SpawnOrder;
use scheduler::{SiteId, Span, Time};
use tempfile::TempDir;

use crate::PROGRAM;
use crate::commands::{job, until};

/// The beginning of each command: nobody answers while there is a file `away`, and nobody may have told it anything but in its words.
const HEAD: &str = "#!/bin/sh\nat=HERE\n\
    [ ! -e $at/away ] || { echo \"$(basename $0): error: Unable to contact slurm controller (connect failure)\" >&2; exit 1; }\n\
    [ -z \"$SQUEUE_USERS$SCANCEL_NAME$SBATCH_QOS$SLURM_CLUSTERS\" ] || { echo \"$(basename $0): error: told by a variable\" >&2; exit 1; }\n";

/// Runs the script at once, or leaves it waiting while there is a file that is called as the cluster, with `.full` behind; with a file `mute` its
/// answer does not arrive, and while there is a file `slow` it is not given. With a file `late` one takes its job when that file is gone,
/// which has the number of its process behind it then; with a file `lost` the same, and its caller hears at once that nobody answers.
const SBATCH: &str = r#"
[ ! -e $at/refuse ] || { echo 'sbatch: error: Batch job submission failed: Job violates accounting/QOS policy' >&2; exit 1; }
for word; do
    case $word in
        --job-name=*) name=${word#*=} ;;
        --output=*) output=${word#*=} ;;
        --error=*) errors=${word#*=} ;;
        --ntasks=*) tasks=${word#*=} ;;
        -*) ;;
        *) break ;;
    esac
    shift
done
take() {
    id=1
    while ! mkdir $at/jobs/$id 2> /dev/null; do id=$((id + 1)); done
    printf '%s\0' "$@" > $at/jobs/$id/words
    export -p > $at/jobs/$id/environment
    echo "$output" > $at/jobs/$id/output
    echo "$errors" > $at/jobs/$id/errors
    echo "$tasks" > $at/jobs/$id/tasks
    echo "$SLURM_CONF" > $at/jobs/$id/conf
    echo "$name" > $at/jobs/$id/name.new
    [ -e "$SLURM_CONF.full" ] || $at/bin/begin $id
    mv $at/jobs/$id/name.new $at/jobs/$id/name
}
if mv $at/late $at/late.$$ 2> /dev/null; then
    while [ -e $at/late.$$ ]; do sleep 0.05; done
fi
if mv $at/lost $at/late.$$ 2> /dev/null; then
    (while [ -e $at/late.$$ ]; do sleep 0.05; done; take "$@") > /dev/null 2>&1 < /dev/null &
    echo 'sbatch: error: Batch job submission failed: Socket timed out on send/recv operation' >&2
    exit 1
fi
take "$@"
while [ -e $at/slow ]; do sleep 0.1; done
[ ! -e $at/mute ] || { rm $at/mute; echo 'sbatch: error: Batch job submission failed: Socket timed out on send/recv operation' >&2; exit 1; }
echo $id
"#;

/// Starts a job that waits, unless it is held or has ended; once more, if it has a file `restarts`.
const BEGIN: &str = r#"
job=$at/jobs/$1
[ ! -e $job/pid ] && [ ! -e $job/state ] && [ ! -e $job/reason ] || exit 0
. $job/environment
export SLURM_JOB_ID=$1 SLURMD_NODENAME=stand
[ ! -e $job/restarts ] || export SLURM_RESTART_COUNT=$(cat $job/restarts)
setsid xargs -0 -a $job/words sh >> "$(cat $job/output)" 2>> "$(cat $job/errors)" < /dev/null &
echo $! > $job/pid
"#;

/// A state that somebody wrote, or what the process does; and what others have there, a line in `foreign` each. One with a file `forgotten` it
/// does not know any more. A file counts how often it was asked.
const SQUEUE: &str = r#"
for job in $at/jobs/*; do
    [ -e $job/name ] && [ ! -e $job/forgotten ] || continue
    [ "$(cat $job/conf)" = "$SLURM_CONF" ] || continue
    state=$(cat $job/state 2> /dev/null)
    if [ -z "$state" ]; then
        state=PENDING
        if [ -e $job/pid ]; then
            state=RUNNING
            kill -0 $(cat $job/pid) 2> /dev/null || state=COMPLETED
        fi
    fi
    echo "${job##*/}|$state|$(cat $job/reason 2> /dev/null)|$(cat $job/tasks)|$(id -u)|main|$(cat $job/name)"
done
cat "$SLURM_CONF.foreign" 2> /dev/null
echo >> "$SLURM_CONF.looked"
exit 0
"#;

/// Cancels nothing while there is a file `stubborn`, and never a job that has one.
const SCANCEL: &str = r#"
[ ! -e $at/stubborn ] || { echo 'scancel: error: Kill job error: Access/permission denied' >&2; exit 1; }
for id; do
    [ ! -e $at/jobs/$id/stubborn ] || continue
    [ ! -e $at/jobs/$id/pid ] || kill -9 -$(cat $at/jobs/$id/pid) 2> /dev/null
    echo CANCELLED > $at/jobs/$id/state
done
exit 0
"#;

const SINFO: &str = r#"
echo 0/0/0/$(cat "$SLURM_CONF.processors" 2> /dev/null || echo 1)
"#;

/// A stand-in for Slurm, and a node that submits to it.
pub(crate) struct Stand {
    pub(crate) folder: TempDir,
}

impl Stand {
    pub(crate) fn new() -> Stand {
        let stand = Stand { folder: tempfile::tempdir().unwrap() };
        for site in ["one.conf", "two.conf"] {
            stand.say(site);
        }
        for folder in ["bin", "jobs"] {
            std::fs::create_dir(stand.path(folder)).unwrap();
        }
        let head = HEAD.replace("HERE", stand.folder.path().to_str().unwrap());
        for (name, rest) in
            [("sbatch", SBATCH), ("begin", BEGIN), ("squeue", SQUEUE), ("scancel", SCANCEL), ("sinfo", SINFO)]
        {
            stand.program(&format!("bin/{name}"), &format!("{head}{rest}"));
        }
        stand.wrap("");
        Token::random().write_new(&stand.path("token")).unwrap();
        stand
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn program(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
        std::fs::set_permissions(self.path(name), std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Has nodes begin in a shell that has said this.
    pub(crate) fn wrap(&self, said: &str) {
        let bin = self.path("bin");
        let wrapper = format!("#!/bin/sh\n{said}\nPATH={}:$PATH exec {PROGRAM} \"$@\"\n", bin.display());
        self.program("node", &wrapper);
    }

    pub(crate) fn say(&self, name: &str) {
        std::fs::write(self.path(name), "").unwrap();
    }

    /// What it said is so no longer.
    pub(crate) fn unsay(&self, name: &str) {
        std::fs::remove_file(self.path(name)).unwrap();
    }

    pub(crate) fn order(&self) -> SpawnOrder {
        SpawnOrder {
            program: self.path("node"),
            arguments: Vec::new(),
            folder: self.folder.path().to_path_buf(),
        }
    }

    /// Each execution leaves a line, whoever wanted it.
    pub(crate) fn config(&self, grid: &[u32], seconds: &str) -> NodeConfig {
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
        config.execution =
            Settings { by: By::Slurm, command: command.to_vec(), slurm, ..Settings::default() };
        config.execution.folder = Some(self.path("files1"));
        config
    }

    /// The same, with a queue that is Slurm's.
    pub(crate) fn queue(&self, grid: &[u32], seconds: &str) -> NodeConfig {
        let mut config = self.config(grid, seconds);
        config.execution.by = By::SlurmQueue;
        config
    }

    /// One for each of two sites, with folders and a journal of its own.
    pub(crate) fn each(&self, config: &NodeConfig) -> Vec<NodeConfig> {
        let of = |site: u32| {
            let mut config = NodeConfig { site: SiteId(site), ..config.clone() };
            config.data_dir = Some(self.path(&format!("data{site}")));
            config.execution.folder = Some(self.path(&format!("files{site}")));
            config
        };
        vec![of(1), of(2)]
    }

    /// How many jobs have written down how they ended.
    pub(crate) fn done(&self) -> usize {
        let files = |site: u32| std::fs::read_dir(self.path(&format!("files{site}/done"))).into_iter();
        [1, 2].into_iter().flat_map(files).flatten().count()
    }

    /// What Slurm calls the jobs of the grid that were submitted to the cluster of a site.
    pub(crate) fn ids(&self, site: &str) -> BTreeMap<u64, u64> {
        let conf = self.path(&format!("{site}.conf"));
        let mut ids = BTreeMap::new();
        for entry in std::fs::read_dir(self.path("jobs")).unwrap().flatten() {
            let read = |name: &str| std::fs::read_to_string(entry.path().join(name)).unwrap_or_default();
            let (name, of) = (read("name"), read("conf"));
            let job = name.split('-').nth(2).and_then(|rest| rest.split('.').next()?.parse().ok());
            let id = entry.file_name().into_string().unwrap().parse().unwrap();
            if let Some(job) = job.filter(|_| of.trim() == conf.to_str().unwrap()) {
                ids.insert(job, id);
            }
        }
        ids
    }

    /// The cluster of a site is full of jobs of others, until [`Stand::empties`].
    pub(crate) fn fills(&self, site: &str) {
        let foreign = "90|RUNNING|None|8|4711|main|theirs\n";
        std::fs::write(self.path(&format!("{site}.conf.foreign")), foreign).unwrap();
    }

    pub(crate) fn empties(&self, site: &str) {
        self.unsay(&format!("{site}.conf.foreign"));
    }

    /// Slurm starts a job.
    pub(crate) fn begin(&self, id: u64) {
        let begin = std::process::Command::new(self.path("bin/begin")).arg(id.to_string()).status();
        assert!(begin.unwrap().success());
    }

    /// Slurm has a job wait that it started or that was cancelled; it has started it so often again.
    pub(crate) fn waits_again(&self, id: u64, restarts: Option<u32>) {
        // The state last, as `squeue` reads it first: else one that has seen the process, and then no state any more, says that the job ended.
        for name in ["pid", "reason", "state"] {
            let _ = std::fs::remove_file(self.path(&format!("jobs/{id}/{name}")));
        }
        if let Some(restarts) = restarts {
            std::fs::write(self.path(&format!("jobs/{id}/restarts")), restarts.to_string()).unwrap();
        }
    }

    /// Until nothing of a job runs.
    pub(crate) fn is_over(&self, id: u64) {
        until("a job of Slurm does not end", || self.has_ended(id).then_some(()));
    }

    /// Whether Slurm has started a job and nothing of it runs any more.
    pub(crate) fn has_ended(&self, id: u64) -> bool {
        let Ok(pid) = self.state(id, "pid").parse::<i32>() else { return false };
        let gone = std::fs::read_to_string(format!("/proc/{pid}/stat"));
        // Whoever should reap it may not.
        gone.map_or(true, |stat| stat.contains(") Z "))
    }

    /// Until the node of a site has heard what `squeue` says now: the second call from now began after it, and is read before the third.
    pub(crate) fn is_seen(&self, site: &str) {
        let file = self.path(&format!("{site}.conf.looked"));
        let looked = || std::fs::metadata(&file).map_or(0, |file| file.len());
        let before = looked();
        until("the node does not ask", || (looked() >= before + 3).then_some(()));
    }

    pub(crate) fn state(&self, id: u64, name: &str) -> String {
        let state = std::fs::read_to_string(self.path(&format!("jobs/{id}/{name}")));
        state.unwrap_or_default().trim().to_string()
    }

    pub(crate) fn executed(&self) -> Vec<u64> {
        let said = std::fs::read_to_string(self.path("executed")).unwrap_or_default();
        let mut jobs: Vec<u64> = said.lines().map(|line| line.parse().unwrap()).collect();
        jobs.sort_unstable();
        jobs
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.path("one.log")).unwrap()
    }

    /// A file that `sbatch` has renamed: it waits for it to be gone, and then takes its job.
    pub(crate) fn late(&self) -> Option<PathBuf> {
        let files = std::fs::read_dir(self.folder.path()).unwrap().flatten();
        files
            .map(|file| file.path())
            .find(|path| path.file_stem().is_some_and(|stem| stem == "late") && path.extension().is_some())
    }

    /// One site, with a journal.
    pub(crate) fn node(&self, jobs: u64, seconds: &str) -> (NodeConfig, NodeProcess) {
        self.node_of(jobs, self.config(&[2 * u32::try_from(jobs).unwrap()], seconds))
    }

    pub(crate) fn node_of(&self, jobs: u64, mut config: NodeConfig) -> (NodeConfig, NodeProcess) {
        config.data_dir = Some(self.path("data"));
        config.control_token = Some(self.path("token"));
        let node = NodeProcess::spawn(&self.order(), &config).unwrap();
        node.client().jobs(&(1..=jobs).map(job).collect::<Vec<_>>()).unwrap();
        node.client().start(&start_order(10.0, Time::ZERO, Duration::from_millis(100))).unwrap();
        (config, node)
    }
}
