//! An experiment as it is written in a TOML file: strings and numbers, nothing resolved.
//!
//! Unknown keys are errors. Every key is optional except the grid and the workload; `configs/default.toml` shows
//! all of them with their defaults. What the values mean is in [`super::Experiment`].

use std::path::{Path, PathBuf};

use scheduler::spelling;
use serde::{Deserialize, Serialize};

use super::built_in;
use crate::kind::{self, Kind};
use crate::limits;

/// A whole file.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Written {
    /// The file, for errors; none if there is none.
    #[serde(skip)]
    pub path: Option<PathBuf>,
    /// A name for reports; the file's name if missing.
    pub name: Option<String>,
    /// The seed of everything random.
    pub seed: Option<u64>,
    /// `[grid]`: the sites.
    pub grid: WrittenGrid,
    /// `[workload]`: where jobs come from.
    pub workload: WrittenWorkload,
    /// How jobs find a site.
    pub strategy: WrittenStrategy,
    /// What commands of the user may take.
    pub external: WrittenExternal,
    /// Which jobs the steady metrics are of.
    pub measure: WrittenMeasure,
    /// `[network]`: what links do to messages.
    pub network: links::Written,
    /// Switches and limits of the protocol.
    pub protocol: WrittenProtocol,
    /// How `stealgrid run` runs.
    pub run: WrittenRun,
    /// What its nodes keep.
    pub node: WrittenNode,
    /// What runs their jobs.
    pub execution: WrittenExecution,
    /// What happens to sites.
    pub faults: Vec<WrittenFault>,
    /// Who allocates jobs to sites under a broker.
    pub brokers: Vec<WrittenBroker>,
    /// Which results are written.
    pub outputs: WrittenOutputs,
}

/// `[grid]`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "the section [grid]")]
pub struct WrittenGrid {
    /// Processors of each site; sites are named site1, site2, …
    pub sizes: Option<Vec<u32>>,
    /// Or sites with names.
    pub sites: Option<Vec<WrittenSite>>,
    /// How many brokers, or `each` for one beside each site; in place of `[[brokers]]`.
    pub brokers: Option<WrittenBrokers>,
    /// Local users of all nodes that jobs share.
    pub local: Option<WrittenLocal>,
    /// What is known of programs, where jobs share nodes.
    pub applications: Option<WrittenApplications>,
    /// How jobs share a link: `proportional` or `max-min`.
    pub fairness: Option<String>,
    /// Whether a flag has put sites with processors in place of sites with nodes.
    #[serde(skip)]
    pub lost_nodes: bool,
}

/// `grid.brokers`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "expected a whole number from 0 on, or \"each\"")]
pub enum WrittenBrokers {
    /// So many, beside no site.
    Count(usize),
    /// `each`, or a number.
    Named(String),
}

/// One entry of `[[brokers]]`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a broker, as in { name = \"front\", at = \"site1\" }")]
pub struct WrittenBroker {
    /// Its name; `broker`, or `broker` and the name of its site.
    pub name: Option<String>,
    /// The site that it is beside, by name.
    pub at: Option<String>,
}

/// One entry of `[[grid.sites]]`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a site, as in { name = \"site1\", processors = 8 }")]
pub struct WrittenSite {
    /// Name of the site, for people and metrics.
    pub name: String,
    /// How many processors it has, each for one job.
    pub processors: Option<u32>,
    /// Or how many nodes, which jobs share.
    pub nodes: Option<u32>,
    /// Jobs on a node at most.
    pub mpl: Option<u32>,
    /// Memory of a node, such as `1GB`.
    pub memory: Option<String>,
    /// Power of the nodes, or of each, in any unit.
    pub power: Option<WrittenPower>,
    /// What the link of a node carries, such as `1Gbit/s`.
    pub link: Option<String>,
    /// Its local users.
    pub local: Option<WrittenLocal>,
    /// What a job costs there, in any unit of money.
    pub price: Option<u32>,
}

/// `power` of a site with nodes.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged, expecting = "expected a number, or one for each node")]
pub enum WrittenPower {
    /// Of all nodes.
    All(f64),
    /// Of each.
    Each(Vec<f64>),
}

/// `grid.local`, and `local` of a site with nodes.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "local users, as in { profile = \"xwin+internet\", share = 0.5 }")]
pub struct WrittenLocal {
    /// `xwin+internet`, `xwin`, `internet` or `shell`.
    pub profile: Option<String>,
    /// The share of nodes that they are on.
    pub share: f64,
    /// `uniform` or `grouped`.
    pub layout: Option<String>,
    /// The mean time after which they move to other nodes; without it they stay.
    pub every: Option<String>,
    /// No longer than this.
    pub until: Option<String>,
    /// The share of a processor that they take, in place of the profile's.
    pub computing: Option<f64>,
    /// The share of the memory.
    pub memory: Option<f64>,
    /// Their traffic.
    pub link: Option<String>,
}

/// `grid.applications`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "expected \"m-cisne\", or a list of { executable = 1, computing = 0.5, bandwidth = \"50Mbit/s\" }"
)]
pub enum WrittenApplications {
    /// Those of a table that the program knows.
    Named(String),
    /// Each by itself.
    List(Vec<WrittenApplication>),
}

/// One entry of `[[grid.applications]]`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "a program, as in { executable = 1, computing = 0.5, bandwidth = \"50Mbit/s\" }"
)]
pub struct WrittenApplication {
    /// Its number in the log (field 14 of SWF).
    pub executable: i32,
    /// For people.
    pub name: Option<String>,
    /// The share of its run time on idle nodes in which it computes.
    pub computing: f64,
    /// What each task takes of the link of its node.
    pub bandwidth: Option<String>,
}

/// `[workload]`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "the section [workload]")]
pub struct WrittenWorkload {
    /// The log, relative to the experiment file.
    pub trace: Option<PathBuf>,
    /// Or one log per site, mixed into one workload.
    pub logs: Option<Vec<WrittenLog>>,
    /// Or a bag of tasks, relative to the experiment file; alone, or beside logs of local users.
    pub bag: Option<PathBuf>,
    /// When its tasks are submitted.
    pub bag_at: Option<String>,
    /// Whether the longest wait in a queue that a bag asks for is the time-out of a learning broker that has none.
    pub bag_queue_wait: Option<bool>,
    /// How long tasks of a bag take: `uniform`, `linear` or `affine`.
    pub lengths: Option<String>,
    /// The seed of these lengths; without it that of the experiment.
    pub lengths_seed: Option<u64>,
    /// Or jobs of a model that are drawn when the experiment is read.
    pub generate: Option<WrittenGenerate>,
    /// What jobs of a log are taken to be: `log`, or the `closest` application that is known.
    pub programs: Option<String>,
    /// Which weekdays of a mix, such as `mon-fri`.
    pub days: Option<String>,
    /// Which week of the log or mix, 1 for the first full one.
    pub week: Option<i64>,
    /// So many weeks from that one on.
    pub weeks: Option<u32>,
    /// What the first full week is of: `first-job` or `log`.
    pub week_from: Option<String>,
    /// The time zone that weeks and weekdays are counted in.
    pub zone: Option<String>,
    /// Only jobs submitted at this time of the log or later, such as `"36h"`, or `"3000"` for seconds.
    pub from: Option<String>,
    /// Only jobs submitted before this time of the log.
    pub until: Option<String>,
    /// Only so many jobs.
    pub count: Option<usize>,
    /// Whether times stay those of the log, and do not begin with the part of it.
    pub keep_times: Option<bool>,
    /// `requested`, `allocated` or `descriptor`.
    pub size: Option<String>,
    /// `user`, `exact`, `factor:F` or a predictor.
    pub estimate: Option<String>,
    /// `user`, `tsafrir`, `doubling` or `none`.
    pub correction: Option<String>,
    /// `run-time-of-some`, `run-time`, `drop`, `refuse`, or a time.
    pub missing_estimate: Option<String>,
    /// `kill`, `extend` or `as-is`.
    pub overrun: Option<String>,
    /// Names of filters.
    pub filters: Option<String>,
    /// `site:N`, `queue`, `partition` or `recorded`.
    pub origin: Option<String>,
    /// Where the users of a log without origins are: `processors`, `users` or `home`.
    pub deal: Option<String>,
    /// `refuse` or `drop`.
    pub too_wide: Option<String>,
    /// Bytes that move with each job.
    pub payload: Option<u64>,
    /// How many times faster jobs come than in the log.
    pub load_factor: Option<f64>,
    /// Jobs come so much faster or slower that their work is this share of the capacity.
    pub load: Option<f64>,
}

/// `workload.generate`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "a model, as in { model = \"m-cisne\", jobs = 60, interarrival = \"6s\" }"
)]
pub struct WrittenGenerate {
    /// `m-cisne`.
    pub model: String,
    /// How many jobs.
    pub jobs: usize,
    /// The mean time between two arrivals.
    pub interarrival: String,
    /// `balanced`, `computing` or `communicating`.
    pub flavor: Option<String>,
    /// Nodes of the widest job; without it those of the widest site.
    pub nodes: Option<u32>,
    /// The probability that a job fails.
    pub failing: Option<f64>,
    /// How many users the jobs are of; without it they are nobody's.
    pub users: Option<u64>,
    /// The seed of what is drawn; without it that of the experiment.
    pub seed: Option<u64>,
}

/// One entry of `[[workload.logs]]`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a log of a site, as in { site = \"site1\", trace = \"log.swf\" }")]
pub struct WrittenLog {
    /// The site whose users submit these jobs, by name.
    pub site: String,
    /// The log, relative to the experiment file.
    pub trace: PathBuf,
    /// The week of the log that is week 1 of the mix; 1 if missing, its first full one.
    pub first_week: Option<u32>,
    /// `grid` or `local`; `grid` if missing.
    pub role: Option<String>,
}

/// `[strategy]`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "the section [strategy], as in name = \"st:50\" below it")]
pub struct WrittenStrategy {
    /// Its name, such as `st:50`.
    pub name: Option<String>,
    /// The scheduler of local queues.
    pub local: Option<String>,
    /// Whom EASY lets overtake first: `arrival`, `sjf`, `smallest` or `fill`.
    pub backfill: Option<String>,
    /// `batch` or `per-event`.
    pub pass: Option<String>,
    /// `home` or `origin`.
    pub submit: Option<String>,
    /// `none` or `link`.
    pub submit_delay: Option<String>,
    /// What `broker:genetic` is told beside its name.
    pub genetic: WrittenGenetic,
}

/// `[strategy.genetic]`: options of `broker:genetic`, each as in a name.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "the section [strategy.genetic]")]
pub struct WrittenGenetic {
    /// Jobs of a full batch.
    pub batch: Option<u32>,
    /// The time after which a batch is planned that is not full.
    pub window: Option<String>,
    /// `owa`, `makespan`, `response`, `turnaround` or `wait`.
    pub goal: Option<String>,
    /// Individuals of a population.
    pub population: Option<u32>,
    /// Generations after which the best so far is taken.
    pub generations: Option<u32>,
    /// Individuals that one plan may schedule.
    pub evaluations: Option<u32>,
    /// The probability that two parents are crossed.
    pub crossover: Option<f64>,
    /// The probability that a child is mutated.
    pub mutation: Option<f64>,
}

impl WrittenGenetic {
    /// What is given, by names of options.
    pub(super) fn options(&self) -> impl Iterator<Item = (&'static str, String)> {
        let number = |value: Option<u32>| value.map(|value| value.to_string());
        let options = [
            ("batch", number(self.batch)),
            ("window", self.window.clone()),
            ("goal", self.goal.clone()),
            ("population", number(self.population)),
            ("generations", number(self.generations)),
            ("evaluations", number(self.evaluations)),
            ("crossover", self.crossover.map(|chance| chance.to_string())),
            ("mutation", self.mutation.map(|chance| chance.to_string())),
        ];
        options.into_iter().filter_map(|(key, value)| Some((key, value?)))
    }
}

/// `[external]`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "the section [external]")]
pub struct WrittenExternal {
    /// Wall time for a decision.
    pub decision: Option<String>,
    /// Wall time until it is ready.
    pub start: Option<String>,
    /// Bytes of a line that it says.
    pub line_bytes: Option<usize>,
    /// Calls of a queue in a row without progress.
    pub calls: Option<usize>,
    /// Bytes that it says on stderr and that are handed on.
    pub stderr_bytes: Option<u64>,
}

/// `[measure]`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "the section [measure]")]
pub struct WrittenMeasure {
    /// The share of the time of submissions that is left out at its beginning.
    pub warm_up: Option<f64>,
    /// The same at its end.
    pub cool_down: Option<f64>,
    /// Every so many-th decision of brokers is held against the true state; none if 0.
    pub decisions: Option<u64>,
}

/// `[protocol]`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "the section [protocol]")]
pub struct WrittenProtocol {
    /// `standing` or `polling`.
    pub discovery: Option<String>,
    /// First sleep of a site that polls, in trace time.
    pub poll: Option<String>,
    /// Longest sleep of a site that polls, in trace time.
    pub poll_max: Option<String>,
    /// Outstanding requests of one thief.
    pub window: Option<usize>,
    /// Processors that are idle within this time, by estimates, count when a thief asks.
    pub prefetch: Option<String>,
    /// Jobs in one grant.
    pub batch: Option<usize>,
    /// Serve thieves that believe the queue empty, too.
    pub eager: Option<bool>,
    /// Declines after which a job must be taken.
    pub bounces_max: Option<u32>,
    /// First wait before an unanswered message is repeated, in trace time.
    pub retry: Option<String>,
    /// Wait after which an unanswered grant is recalled, in trace time.
    pub recall: Option<String>,
    /// How often boards of the global queue are repeated, in trace time.
    pub refresh: Option<String>,
    /// Transfers to one site that may be unanswered.
    pub unanswered_max: Option<usize>,
    /// By how much earlier a job must start elsewhere to be given away, in trace time.
    pub margin: Option<String>,
    /// Baselines: refusals in a row before a site waits.
    pub tries: Option<usize>,
    /// Baselines that choose by digests: how often sites gossip, in trace time.
    pub gossip: Option<String>,
    /// To how many sites each time.
    pub gossip_fanout: Option<usize>,
    /// How many others a site knows, or `all`.
    pub view: Option<WrittenView>,
    /// When sites tell brokers what happened: `change`, `every:T` or `probe:D`.
    pub report: Option<String>,
    /// What brokers think of jobs on their way: `count` or `ignore`.
    pub pending: Option<String>,
    /// Who stands in for a broker that never comes back: `next` or `local`.
    pub failover: Option<String>,
    /// How often a site says that it is there, in trace time.
    pub heartbeat: Option<String>,
    /// Silence after which a site is suspected, in trace time.
    pub suspect_after: Option<String>,
    /// Silence after which the jobs of a site are taken over, in trace time.
    pub lease: Option<String>,
}

/// `protocol.view`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "expected a whole number from 2 on, or \"all\"")]
pub enum WrittenView {
    /// So many others.
    Count(u32),
    /// `all`.
    Named(String),
}

/// `[run]`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "the section [run]")]
pub struct WrittenRun {
    /// `scaled:K`: trace time is wall time times K.
    pub clock: Option<String>,
    /// `static` or `mdns`: how nodes find each other.
    pub discovery: Option<String>,
    /// `derived` from the seed, or `kept` in files under the result directory.
    pub identity: Option<String>,
    /// Wall time within which all nodes must be connected.
    pub connect_timeout: Option<String>,
    /// Wall time without any progress after which a run is given up.
    pub stall_timeout: Option<String>,
    /// How much the network may add to configured delays before a run is refused, in percent.
    pub calibration_tolerance: Option<f64>,
    /// How late messages and timers may be in a run that counts as measured, in percent of the mean configured delay.
    pub delay_margin: Option<f64>,
    /// Simulations that a run is compared with; 0 for none.
    pub ensemble: Option<usize>,
    /// Wall time within which they must be done.
    pub ensemble_patience: Option<String>,
    /// First port of the nodes' peer addresses; 0 for any free ones.
    pub port: Option<u16>,
}

/// `[node]`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "the section [node]")]
pub struct WrittenNode {
    /// `off`, or what a journal survives: `process` or `disk`.
    pub journal: Option<String>,
    /// `requeue` or `kill`: what becomes of jobs that executed when their node crashed.
    pub interrupted: Option<String>,
    /// Whether a node that ends is started again, if it has a journal.
    pub restart: Option<bool>,
    /// Wall time for which nodes with journals work on without a coordinator.
    pub orphan_patience: Option<String>,
}

/// `[execution]`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "the section [execution], as in by = \"process\" below it")]
pub struct WrittenExecution {
    /// `timer`, `process` or `slurm`.
    pub by: Option<String>,
    /// The program and its arguments.
    pub command: Option<Vec<String>>,
    /// Variables that jobs get, too.
    pub environment: Option<Vec<String>>,
    /// How much lower the priority of processes is.
    pub nice: Option<u8>,
    /// Most memory of a process of a job, such as `1GB`.
    pub memory: Option<String>,
    /// After which wall time a job is killed: `none`, `requested`, or a time.
    pub wall: Option<String>,
    /// How much of each stream of a job is kept, such as `1MB`.
    pub output: Option<String>,
    /// `execution.slurm`: which cluster, and how.
    pub slurm: WrittenSlurm,
}

/// `[execution.slurm]`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "the section [execution.slurm]")]
pub struct WrittenSlurm {
    /// `SLURM_CONF`, with `{site}` for the name of the site; relative to the experiment file.
    pub conf: Option<String>,
    /// The partition.
    pub partition: Option<String>,
    /// The account.
    pub account: Option<String>,
    /// Further options of `sbatch`.
    pub options: Option<Vec<String>>,
    /// How often a cluster is asked.
    pub poll: Option<String>,
}

/// One entry of `[[faults]]`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "a fault, as in { site = \"site1\", what = \"crash\", at = \"1h\", for = \"10m\" }"
)]
pub struct WrittenFault {
    /// The site, by name.
    pub site: String,
    /// `crash`, `pause`, `leave` or `join`.
    pub what: String,
    /// When, in trace time.
    pub at: String,
    /// How long it is away, in trace time.
    #[serde(rename = "for")]
    pub lasts: Option<String>,
}

/// `[outputs]`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "the section [outputs]")]
pub struct WrittenOutputs {
    /// Where results go, relative to the working directory.
    pub dir: Option<PathBuf>,
    /// Write `events.jsonl.zst`.
    pub events: Option<bool>,
    /// Emit an event for every message.
    pub message_events: Option<bool>,
    /// Write `report.html`.
    pub page: Option<bool>,
    /// Write `schedule.swf`.
    pub schedule: Option<bool>,
    /// Write `site<i>/jobs.csv`.
    pub per_site: Option<bool>,
    /// Compare with the ideal run of the same workload.
    pub ideal: Option<bool>,
}

/// Why a file is no experiment.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It cannot be read.
    #[error("read {}: {cause}; check the path", path.display())]
    Read {
        /// The file that was given.
        path: PathBuf,
        /// What the system said.
        cause: std::io::Error,
    },
    /// It is not what was expected.
    #[error("read {}: {reason}", path.display())]
    Parse {
        /// The file that was given.
        path: PathBuf,
        /// Where and what.
        reason: String,
    },
}

impl Written {
    /// Reads a file.
    ///
    /// # Errors
    /// If it cannot be read, is not TOML, or has a key that means nothing.
    pub fn load(path: &Path) -> Result<Written, FileError> {
        Written::parse(&Written::read(path)?, path)
    }

    /// The text of a file.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read(path: &Path) -> Result<String, FileError> {
        limits::read_text(path, limits::EXPERIMENT).map_err(|cause| {
            match kind::mistaken(path, Kind::Experiment) {
                Some(reason) => FileError::Parse { path: path.to_path_buf(), reason },
                None => FileError::Read { path: path.to_path_buf(), cause },
            }
        })
    }

    /// Understands what a file says, or said.
    ///
    /// # Errors
    /// If it is not TOML, or has a key that means nothing.
    pub fn parse(text: &str, path: &Path) -> Result<Written, FileError> {
        let mut written: Written = toml::from_str(text).map_err(|error| FileError::Parse {
            path: path.to_path_buf(),
            reason: kind::mistaken_text(text, path, Kind::Experiment)
                .or_else(|| kind::mistaken(path, Kind::Experiment))
                .unwrap_or_else(|| Written::mistake(text, &error)),
        })?;
        written.path = Some(path.to_path_buf());
        let folder = path.parent().unwrap_or(Path::new(""));
        written.workload.resolve(folder);
        written.network.resolve_paths(folder);
        if let Some(conf) = &mut written.execution.slurm.conf {
            // What is text stays text; a folder that is none is refused where the file is looked for.
            *conf = folder.join(&*conf).to_string_lossy().into_owned();
        }
        if written.name.is_none() {
            written.name = path.file_stem().map(|stem| super::name::of_file(&stem.to_string_lossy()));
        }
        Ok(written)
    }
}

impl Written {
    /// What is wrong with a text that is no experiment. A section that does not exist goes first: what stands elsewhere may
    /// be wrong because of it, and is read before it.
    fn mistake(text: &str, error: &toml::de::Error) -> String {
        let is_unknown = |message: &str| message.starts_with("unknown field");
        let whole = spelling::of_file(&error.to_string());
        let Ok(table) = text.parse::<toml::Table>() else { return whole };
        let alone = |(key, value): (String, toml::Value)| {
            let error = toml::Table::from_iter([(key, value)]).try_into::<Written>().err()?;
            is_unknown(error.message()).then(|| spelling::of_file(error.message()))
        };
        // With a value that no key has, a section is not refused for a wrong key of its own.
        let keys = table.into_iter().map(|(key, _)| (key, toml::Value::Boolean(true)));
        let keys: Vec<String> = keys.filter_map(alone).filter(|key| !whole.contains(key)).collect();
        if keys.is_empty() { whole } else { format!("{}\n{whole}", keys.join("\n")) }
    }
}

impl WrittenWorkload {
    /// Makes paths relative to the folder of the experiment file.
    fn resolve(&mut self, folder: &Path) {
        if let Some(trace) = &mut self.trace {
            *trace = built_in::placed(folder, trace);
        }
        if let Some(bag) = &mut self.bag {
            *bag = folder.join(&*bag);
        }
        for log in self.logs.iter_mut().flatten() {
            log.trace = built_in::placed(folder, &log.trace);
        }
    }
}
