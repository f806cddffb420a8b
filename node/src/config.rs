//! What one node is told: a JSON file that the coordinator writes, or flags, or both.
//!
//! [`NodeConfig`] is what was written; [`NodeConfig::check`] says whether it makes sense.

use std::path::PathBuf;
use std::sync::Arc;

use links::Model;
use predict::{Forecast, Predictor};
use protocol::journal::JOURNALS_MAX;
use protocol::{Options, PeerConfig, Terms};
use scheduler::sharing::PlatformError;
use scheduler::{Grid, LocalScheduler, Pass, SiteId, Span, StrategySpec};
use serde::{Deserialize, Serialize};

use crate::clock::StartOrder;
use crate::executor::{self, By, SettingsError};
use crate::limits::{DELAY_LINE_MAX, Durability, EVENTS_MAX, JOBS_HELD_MAX, Limits, LimitsError};
use crate::network::{Discovery, FRAME_BYTES_MAX};
use crate::nodes::Nodes;
use crate::peer_address::PeerAddress;

/// Bytes of such a file: those of an experiment with a matrix of delays, and the names and addresses of ten thousand sites.
pub const BYTES_MAX: u64 = 64 << 20;

/// Everything a node is told. Unknown keys are errors; all but `site` and `grid` have defaults.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeConfig {
    /// This site's number, from 1.
    pub site: SiteId,
    /// All sites in the order of the experiment.
    pub grid: Vec<SiteEntry>,
    /// The name of the run: nodes of other runs are ignored.
    #[serde(default = "default_run")]
    pub run: String,
    /// The strategy, as in `st:50`.
    #[serde(default = "default_strategy")]
    pub strategy: String,
    /// The scheduler of the local queue, used by the strategy `local`.
    #[serde(default = "default_local")]
    pub local_scheduler: String,
    /// When the local scheduler decides.
    #[serde(default = "default_pass")]
    pub pass: String,
    /// Who predicts run times for the queue of the site, or for a broker that sees into sites, as in `avg2`; `user` if users are believed.
    #[serde(default = "default_estimate")]
    pub estimate: String,
    /// What is thought of jobs that run past a prediction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correction: Option<String>,
    /// Commands of the user that decide, on this machine.
    #[serde(default, skip_serializing_if = "external::Settings::is_none")]
    pub external: external::Settings,
    /// The seed of everything random.
    #[serde(default = "default_seed")]
    pub seed: u64,
    /// Switches of the protocol. A real network can lose messages, so `retry` should be set: at least twice the
    /// largest delay and some hundred milliseconds of wall-clock time.
    #[serde(default)]
    pub options: Options,
    /// What links do to messages, in trace time. Chance is drawn from `seed`.
    #[serde(default)]
    pub network: Model,
    /// Multiaddress for the other sites.
    #[serde(default = "default_listen")]
    pub listen: String,
    /// Address for the control interface and Prometheus.
    #[serde(default = "default_http")]
    pub http: String,
    /// Further names by which metrics and health may be asked for.
    #[serde(default)]
    pub http_hosts: Vec<String>,
    /// How to find the other sites.
    #[serde(default)]
    pub discovery: Discovery,
    /// Addresses of other sites.
    #[serde(default)]
    pub peers: Vec<PeerAddress>,
    /// Where the key comes from.
    #[serde(default)]
    pub identity: IdentitySource,
    /// Longest frame between nodes, in bytes.
    #[serde(default = "default_frame_bytes_max")]
    pub frame_bytes_max: usize,
    /// Jobs held until their submission.
    #[serde(default = "default_jobs_held_max")]
    pub jobs_held_max: usize,
    /// Events kept in memory.
    #[serde(default = "default_events_max")]
    pub events_max: usize,
    /// Messages being delayed at once.
    #[serde(default = "default_delay_line_max")]
    pub delay_line_max: usize,
    /// A file for all events, made anew.
    #[serde(default)]
    pub events_file: Option<PathBuf>,
    /// The file with the key that all nodes of the grid share, in the format of `swarm.key`.
    #[serde(default)]
    pub grid_key: Option<PathBuf>,
    /// Whether to listen beyond the loopback interface without such a key.
    #[serde(default)]
    pub allow_open_network: bool,
    /// Identities of sites. Others are not let in, but for those that follow from the seed or from `peers`.
    #[serde(default)]
    pub members: Vec<Member>,
    /// The file with the token that a coordinator must show; without one nobody is obeyed.
    #[serde(default)]
    pub control_token: Option<PathBuf>,
    /// A second address for metrics and health, without the control interface.
    #[serde(default)]
    pub metrics: Option<String>,
    /// How much is taken from others.
    #[serde(default)]
    pub limits: Limits,
    /// Where the node keeps what it must not forget; without it nothing survives the process.
    #[serde(default)]
    pub data_dir: Option<PathBuf>,
    /// What the data directory survives.
    #[serde(default)]
    pub durability: Durability,
    /// Most bytes of the journal; the node stops before it is longer. None: as long as the disk has room.
    #[serde(default)]
    pub journal_bytes_max: Option<u64>,
    /// Seconds of wall-clock time for which the node works without a coordinator's request once its clock was started;
    /// 0 for as long as it takes.
    #[serde(default)]
    pub orphan_secs: u32,
    /// Of a site that restarts without its journal. A journal that there is in the data directory comes first.
    #[serde(default)]
    pub new_incarnation: Option<NewLife>,
    /// What runs its jobs.
    #[serde(default, skip_serializing_if = "executor::Settings::is_timer")]
    pub execution: executor::Settings,
}

/// What a site is told that has lost its journal: the others know it, and it knows nothing. See
/// [`protocol::Peer::restore_lost`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewLife {
    /// How many it has lost, at least 1 and less than [`JOURNALS_MAX`].
    pub journals_lost: u32,
    /// The trace clock, which runs.
    pub clock: StartOrder,
}

/// The identity of a site.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Member {
    /// The site that the key belongs to.
    pub site: SiteId,
    /// Its peer id, as `stealgrid key id` prints it.
    pub peer_id: String,
}

/// One site of the grid.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SiteEntry {
    /// For people and metrics.
    pub name: String,
    /// How many it has; 0 for a broker.
    pub processors: u32,
    /// The site that a broker is beside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<SiteId>,
    /// What a job costs there.
    #[serde(default, skip_serializing_if = "scheduler::is_free")]
    pub price: u64,
    /// Its nodes, if jobs share them; its processors are the places on these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<Nodes>,
}

impl SiteEntry {
    /// A site whose processors have one job each, at no price.
    pub fn new(name: impl Into<String>, processors: u32) -> SiteEntry {
        SiteEntry { name: name.into(), processors, beside: None, price: 0, nodes: None }
    }
}

/// Where a node's key comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IdentitySource {
    /// Derived from the run, this seed and the site.
    Seed(u64),
    /// Kept in a file, made if missing.
    File(PathBuf),
    /// Drawn anew by each process. Others must be told it, and the node restarts as somebody else.
    Drawn,
}

impl Default for IdentitySource {
    fn default() -> Self {
        IdentitySource::Seed(1)
    }
}

fn default_run() -> String {
    "stealgrid".to_string()
}

fn default_seed() -> u64 {
    1
}

fn default_strategy() -> String {
    "st:50".to_string()
}

fn default_estimate() -> String {
    Predictor::User.to_string()
}

fn default_local() -> String {
    LocalScheduler::default().name().to_string()
}

fn default_pass() -> String {
    Pass::default().name().to_string()
}

fn default_listen() -> String {
    "/ip4/127.0.0.1/tcp/0".to_string()
}

fn default_http() -> String {
    "127.0.0.1:0".to_string()
}

fn default_frame_bytes_max() -> usize {
    FRAME_BYTES_MAX
}

fn default_jobs_held_max() -> usize {
    JOBS_HELD_MAX
}

fn default_events_max() -> usize {
    EVENTS_MAX
}

fn default_delay_line_max() -> usize {
    DELAY_LINE_MAX
}

/// Why a configuration makes no sense.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ConfigError {
    /// The list of sites does not make a grid.
    #[error("grid: {0}")]
    Grid(#[from] scheduler::grid::GridError),
    /// Nodes of a site that are none.
    #[error("grid: {0}")]
    Nodes(#[from] PlatformError),
    /// Not a site of the grid.
    #[error("site {site}: the grid has sites 1 to {sites}")]
    Site {
        /// What was given.
        site: u32,
        /// How many there are.
        sites: usize,
    },
    /// The strategy is one that the scheduler does not allow.
    #[error(transparent)]
    Strategy(#[from] scheduler::strategy::StrategyError),
    /// A reference needs the global view.
    #[error("strategy {0}: a reference has no messages and runs in the simulator only; leave out ideal/")]
    Ideal(String),
    /// The local scheduler or its pass.
    #[error("{0}")]
    Local(String),
    /// What is said of the links makes no sense.
    #[error("network: {0}")]
    Network(String),
    /// The switches of the protocol.
    #[error("options: {0}")]
    Options(String),
    /// Nothing could run jobs so.
    #[error("execution.{0}")]
    Execution(SettingsError),
    /// Jobs whose ends the site would have to know beforehand.
    #[error("execution: jobs that share nodes are timers; leave out nodes, or by = {0:?}")]
    Shared(&'static str),
    /// A limit that allows nothing, or more than there can be.
    #[error(transparent)]
    Limits(#[from] LimitsError),
    /// A journal that could hold nothing.
    #[error("journal_bytes_max must be at least {needed}")]
    JournalBytes {
        /// The least `journal_bytes_max`, in bytes.
        needed: u64,
    },
    /// Frames that could not hold a message.
    #[error("frame_bytes_max {given}: messages need up to {needed} bytes")]
    FrameBytes {
        /// What was given.
        given: usize,
        /// The least `frame_bytes_max` for messages of this grid, in bytes.
        needed: usize,
    },
}

/// The least [`NodeConfig::frame_bytes_max`]: any grant of a hundred jobs fits.
const FRAME_BYTES_MIN: usize = 16 * 1024;

/// The least [`NodeConfig::journal_bytes_max`]: an empty journal and a few jobs.
const JOURNAL_BYTES_MIN: u64 = 64 * 1024;

impl NodeConfig {
    /// A configuration with defaults for everything else.
    pub fn new(site: SiteId, grid: Vec<SiteEntry>) -> NodeConfig {
        NodeConfig {
            site,
            grid,
            run: default_run(),
            strategy: default_strategy(),
            local_scheduler: default_local(),
            pass: default_pass(),
            estimate: default_estimate(),
            correction: None,
            external: external::Settings::default(),
            seed: default_seed(),
            options: Options::default(),
            network: Model::ZERO,
            listen: default_listen(),
            http: default_http(),
            http_hosts: Vec::new(),
            discovery: Discovery::default(),
            peers: Vec::new(),
            identity: IdentitySource::default(),
            frame_bytes_max: FRAME_BYTES_MAX,
            jobs_held_max: JOBS_HELD_MAX,
            events_max: EVENTS_MAX,
            delay_line_max: DELAY_LINE_MAX,
            events_file: None,
            grid_key: None,
            allow_open_network: false,
            members: Vec::new(),
            control_token: None,
            metrics: None,
            limits: Limits::default(),
            data_dir: None,
            durability: Durability::default(),
            journal_bytes_max: None,
            orphan_secs: 0,
            new_incarnation: None,
            execution: executor::Settings::default(),
        }
    }

    /// What runs its jobs, with the place for their output.
    pub(crate) fn execution_here(&self) -> executor::Settings {
        let folder = self.execution.folder.clone().or_else(|| Some(self.data_dir.as_ref()?.join("jobs")));
        executor::Settings { folder, ..self.execution.clone() }
    }

    /// What the peer is told, if the configuration makes sense.
    ///
    /// # Errors
    /// The first thing that does not.
    pub fn check(&self) -> Result<PeerConfig, ConfigError> {
        let grid =
            Grid::of_members(self.grid.iter().map(|site| (site.name.clone(), site.processors, site.beside)))?;
        let clusters = self.grid.iter().map(|site| site.nodes.as_ref().map(Nodes::shared).transpose());
        let clusters: Result<Vec<_>, PlatformError> = clusters.collect();
        let grid = grid.with_prices(self.grid.iter().map(|site| site.price)).with_clusters(clusters?)?;
        if self.site.0 == 0 || self.site.index() >= grid.len() {
            return Err(ConfigError::Site { site: self.site.0, sites: grid.len() });
        }
        let spec: StrategySpec = self.strategy.parse()?;
        if spec.ideal {
            return Err(ConfigError::Ideal(self.strategy.clone()));
        }
        let spread = spec.strategy.spread(grid.widths());
        let grid = grid.with_spread(spread);
        let local: LocalScheduler = self.local_scheduler.parse().map_err(ConfigError::Local)?;
        let pass: Pass = self.pass.parse().map_err(ConfigError::Local)?;
        let forecast =
            Forecast::of(&self.estimate, self.correction.as_deref()).map_err(ConfigError::Local)?;
        self.network.check(grid.len()).map_err(ConfigError::Network)?;
        let limits = [
            self.options.steal.window,
            self.options.batch,
            self.options.unanswered_max,
            self.options.balance.tries,
        ];
        if limits.contains(&0) {
            let reason = "window, batch, unanswered_max and tries must be at least 1".to_string();
            return Err(ConfigError::Options(reason));
        }
        if self.data_dir.is_some() && self.options.retry.is_none() {
            let reason = "with a data directory, retry must be set (--retry): a crash loses messages; write at least twice the largest \
                 delay and some hundred milliseconds of wall-clock time, in trace time"
                .to_string();
            return Err(ConfigError::Options(reason));
        }
        self.check_detector().map_err(ConfigError::Options)?;
        self.check_new_incarnation().map_err(ConfigError::Options)?;
        if self.journal_bytes_max.is_some_and(|bytes| bytes < JOURNAL_BYTES_MIN) {
            return Err(ConfigError::JournalBytes { needed: JOURNAL_BYTES_MIN });
        }
        let limits = [
            ("jobs_held_max", self.jobs_held_max),
            ("events_max", self.events_max),
            ("delay_line_max", self.delay_line_max),
        ];
        if let Some((name, _)) = limits.into_iter().find(|(_, limit)| *limit == 0) {
            return Err(LimitsError::Zero(name).into());
        }
        self.limits.check()?;
        self.execution.check().map_err(ConfigError::Execution)?;
        self.execution.goes_with(&spec.strategy, local).map_err(ConfigError::Execution)?;
        if self.execution.by != By::Timer {
            if grid.is_shared() {
                return Err(ConfigError::Shared(self.execution.by.name()));
            }
            if self.execution_here().folder.is_none() {
                return Err(ConfigError::Execution(SettingsError::NoFolder));
            }
        }
        if self.frame_bytes_max < FRAME_BYTES_MIN {
            return Err(ConfigError::FrameBytes { given: self.frame_bytes_max, needed: FRAME_BYTES_MIN });
        }
        // Metrics count messages by their events.
        let options = Options { message_events: true, journal: self.data_dir.is_some(), ..self.options };
        let (grid, strategy, seed) = (Arc::new(grid), spec.strategy, self.seed);
        let terms = Terms {
            grid,
            strategy,
            local,
            pass,
            forecast,
            options,
            views: None,
            seed,
            external: self.external.external(),
        };
        Ok(PeerConfig { site: self.site, terms })
    }

    /// Whether others know what to do about a journal that was lost.
    fn check_new_incarnation(&self) -> Result<(), String> {
        let Some(NewLife { journals_lost, .. }) = self.new_incarnation else { return Ok(()) };
        if !(1..JOURNALS_MAX).contains(&journals_lost) {
            let most = JOURNALS_MAX - 1;
            return Err(format!(
                "new_incarnation.journals_lost {journals_lost}: it is at least 1 and at most {most}"
            ));
        }
        if self.data_dir.is_none() || self.options.heartbeat.is_none() || self.options.lease.is_none() {
            let reason = "new_incarnation needs a data directory, heartbeat and lease: nobody would take over what is lost";
            return Err(reason.into());
        }
        Ok(())
    }

    /// Whether sites that are there can be told from those that are not.
    fn check_detector(&self) -> Result<(), String> {
        let Options { heartbeat, suspect_after, lease, .. } = self.options;
        let Some(heartbeat) = heartbeat else {
            return match lease {
                Some(_) => {
                    Err("with a lease, set heartbeat, too (--heartbeat): nobody notices silence without"
                        .into())
                }
                None => Ok(()),
            };
        };
        if heartbeat <= Span::ZERO {
            return Err("heartbeat must be positive (--heartbeat)".into());
        }
        let least = heartbeat + self.network.largest().saturating_mul(2);
        if suspect_after < least {
            return Err(format!(
                "suspect_after {suspect_after} s (--suspect-after) is less than a heartbeat and twice the largest delay, \
                 {least} s: sites that are there would be suspected"
            ));
        }
        match lease.filter(|lease| *lease < suspect_after) {
            Some(lease) => {
                Err(format!("lease {lease} s (--lease) is less than suspect_after, {suspect_after} s"))
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    fn config() -> NodeConfig {
        NodeConfig::new(SiteId(1), vec![SiteEntry::new("a", 2), SiteEntry::new("b", 8)])
    }

    /// Families have structs of their own; a file lists all options side by side, each once.
    #[test]
    fn options_are_written_flat_under_these_names() {
        let written = serde_json::to_value(Options::default()).unwrap();
        let names: Vec<&str> = written.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(
            names,
            [
                "batch",
                "bounces_max",
                "discovery",
                "eager",
                "failover",
                "gossip",
                "gossip_fanout",
                "heartbeat",
                "interrupted",
                "journal",
                "lease",
                "margin",
                "message_events",
                "pending",
                "prefetch",
                "recall",
                "refresh",
                "report",
                "retry",
                "suspect_after",
                "tries",
                "unanswered_max",
                "window",
            ]
        );
    }

    /// A misspelt key of a job would be a job of which less is known.
    #[test]
    fn jobs_have_no_other_keys() {
        let job = |labels: &str| {
            let text = r#"{"id":1,"submit":0,"processors":6,"requested":60,"origin":2,"payload":0LABELS}"#;
            serde_json::from_str::<scheduler::JobSpec>(&text.replace("LABELS", labels))
        };
        assert_eq!(job("").unwrap().labels, scheduler::Labels::UNKNOWN);
        assert_eq!(job(r#","labels":{"user":7}"#).unwrap().labels.user, 7);
        for wrong in [r#","user":7"#, r#","labels":{"usr":7}"#] {
            assert!(job(wrong).unwrap_err().to_string().contains("unknown field"), "{wrong}");
        }
    }

    #[test]
    fn configurations_round_trip_and_short_ones_get_defaults() {
        let text = serde_json::to_string(&config()).unwrap();
        assert_eq!(serde_json::from_str::<NodeConfig>(&text).unwrap(), config());

        let short = r#"{"site":1,"grid":[{"name":"a","processors":2},{"name":"b","processors":8}]}"#;
        assert_eq!(serde_json::from_str::<NodeConfig>(short).unwrap(), config());
    }

    #[test]
    fn unknown_keys_are_errors() {
        let text = r#"{"site":1,"grid":[],"colour":"red"}"#;
        let error = serde_json::from_str::<NodeConfig>(text).unwrap_err().to_string();
        assert!(error.contains("colour"), "{error}");
    }

    #[test]
    fn nonsense_is_refused_with_the_place() {
        let cases: [(NodeConfig, &str); 6] = [
            (NodeConfig { site: SiteId(3), ..config() }, "site 3: the grid has sites 1 to 2"),
            (NodeConfig { site: SiteId(0), ..config() }, "site 0: the grid has sites 1 to 2"),
            (NodeConfig { strategy: "ideal/st:50".to_string(), ..config() }, "leave out ideal/"),
            (NodeConfig { local_scheduler: "fifo".to_string(), ..config() }, "unknown local scheduler"),
            (
                NodeConfig { network: Model::matrix(vec![vec![Span::ZERO; 2]]), ..config() },
                "network: the delays are for 1 sites; the grid has 2",
            ),
            (NodeConfig { frame_bytes_max: 100, ..config() }, "frame_bytes_max 100"),
        ];
        for (config, expected) in cases {
            let error = config.check().unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        assert!(config().check().unwrap().options.message_events);
    }
}
