//! The command line of a node, alone or as a command of the coordinator.
//!
//! A configuration file is read first, then flags override it. Every flag can come from the environment instead,
//! for containers.

use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use ipnet::IpNet;
use protocol::Interrupted;
use scheduler::{SiteId, Span};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::bounded;
use crate::config::{ConfigError, IdentitySource, Member, NodeConfig, SiteEntry};
use crate::control::api::ReadyLine;
use crate::control::serve::ControlCounters;
use crate::executor::By;
use crate::exit;
use crate::journal::{Durability, JournalError};
use crate::network::Discovery;
use crate::node::Node;
use crate::parent;
use crate::peer_address::PeerAddress;
use crate::registration::ask::{self, Accepted, Application};
use crate::running::Running;
use crate::telemetry::LogArgs;

/// What can be said to a node on its command line.
#[derive(Clone, Debug, Default, Args)]
pub struct NodeArgs {
    /// JSON file with the whole configuration; flags override it
    #[arg(long, value_name = "FILE", env = "STEALGRID_CONFIG")]
    pub config: Option<PathBuf>,
    /// Number of this site in the grid, from 1
    #[arg(long, value_name = "N", env = "STEALGRID_SITE")]
    pub site: Option<u32>,
    /// All sites: processors as in 2,8,8, or name=processors as in a=2,b=8, or a file with one of these a line.
    /// What a job costs there goes behind, as in b=8:3; a broker has 0, or 0@SITE beside a site
    #[arg(long, value_name = "SITES", env = "STEALGRID_GRID")]
    pub grid: Option<String>,
    /// Check that this site has this name in the grid
    #[arg(long, value_name = "NAME", env = "STEALGRID_NAME")]
    pub name: Option<String>,
    /// Check that this site has this many processors in the grid
    #[arg(long, value_name = "P", env = "STEALGRID_PROCESSORS")]
    pub processors: Option<u32>,
    /// Name of the run; nodes of other runs are ignored
    #[arg(long, value_name = "RUN", env = "STEALGRID_RUN")]
    pub run: Option<String>,
    /// Strategy: local, st:X, st-greedy:X or common-pool
    #[arg(long, value_name = "STRATEGY", env = "STEALGRID_STRATEGY")]
    pub strategy: Option<String>,
    /// Scheduler of the local queue, for the strategy local
    #[arg(long, value_name = "NAME", env = "STEALGRID_LOCAL_SCHEDULER")]
    pub local_scheduler: Option<String>,
    /// Injected one-way delay of every message in trace time, as in 500ms, 2s or 10min
    #[arg(long, value_name = "SPAN", env = "STEALGRID_DELAY", value_parser = parse_span)]
    pub delay: Option<Span>,
    /// Links: lan, metro, continental, world, or a TOML file with the network keys of an experiment; --delay
    /// replaces its base delays
    #[arg(long, value_name = "MODEL", env = "STEALGRID_NETWORK")]
    pub network: Option<String>,
    /// Seed of everything random, the same on all nodes [default: 1]
    #[arg(long, value_name = "N", env = "STEALGRID_SEED")]
    pub seed: Option<u64>,
    /// Wait in trace time before an unanswered message is sent again, as in 30s
    #[arg(long, value_name = "SPAN", env = "STEALGRID_RETRY", value_parser = parse_span)]
    pub retry: Option<Span>,
    /// How often the site says that it is there, in trace time, as in 1min, the same on all nodes; without it nobody
    /// notices who is gone, and no site can leave
    #[arg(long, value_name = "SPAN", env = "STEALGRID_HEARTBEAT", value_parser = parse_span)]
    pub heartbeat: Option<Span>,
    /// Ask no site that was silent for so long in trace time: at least a heartbeat and twice the largest delay
    /// [default: 60s]
    #[arg(long, value_name = "SPAN", env = "STEALGRID_SUSPECT_AFTER", value_parser = parse_span)]
    pub suspect_after: Option<Span>,
    /// Take over the jobs of a site that was silent for so long in trace time; they may run twice
    #[arg(long, value_name = "SPAN", env = "STEALGRID_LEASE", value_parser = parse_span)]
    pub lease: Option<Span>,
    /// Multiaddress for the other sites [default: /ip4/127.0.0.1/tcp/0]
    #[arg(long, value_name = "ADDRESS", env = "STEALGRID_LISTEN")]
    pub listen: Option<String>,
    /// Address for control and metrics; orders need the token, which is not encrypted [default: 127.0.0.1:0]
    #[arg(long, value_name = "ADDRESS", env = "STEALGRID_HTTP")]
    pub http: Option<String>,
    /// A further name by which metrics and health may be asked for, beside addresses, localhost and names without a dot;
    /// repeat it for each
    #[arg(long, value_name = "NAME", env = "STEALGRID_HTTP_HOST", value_delimiter = ',')]
    pub http_host: Vec<String>,
    /// How to find the other sites [default: static]
    #[arg(long, value_enum, env = "STEALGRID_DISCOVERY")]
    pub discovery: Option<Discovery>,
    /// Address of another site, as in 2=/dns4/site2/tcp/4001; repeat it for each
    #[arg(long, value_name = "SITE=ADDRESS", env = "STEALGRID_PEERS", value_delimiter = ',', value_parser = parse_peer)]
    pub peer: Vec<PeerAddress>,
    /// Derive the key from the run, this number and the site, on all nodes alike
    #[arg(long, value_name = "SEED", env = "STEALGRID_IDENTITY_SEED", conflicts_with = "identity_file")]
    pub identity_seed: Option<u64>,
    /// Keep the key in this file, made if missing
    #[arg(long, value_name = "FILE", env = "STEALGRID_IDENTITY_FILE")]
    pub identity_file: Option<PathBuf>,
    /// Key that all nodes of the grid share, as made by `stealgrid key new FILE`
    #[arg(long, value_name = "FILE", env = "STEALGRID_GRID_KEY", help_heading = "Security")]
    pub grid_key: Option<PathBuf>,
    /// Listen beyond the loopback interface without a grid key: everybody who reaches the node can connect
    #[arg(
        long,
        env = "STEALGRID_ALLOW_OPEN_NETWORK",
        conflicts_with = "grid_key",
        help_heading = "Security"
    )]
    pub allow_open_network: bool,
    /// Identity of a site, as in 2=12D3Koo…; repeat it for each. Others are not let in, but for those of the seed
    /// and of --peer
    #[arg(long, value_name = "SITE=PEER_ID", env = "STEALGRID_MEMBERS", value_delimiter = ',', value_parser = parse_member, help_heading = "Security")]
    pub member: Vec<Member>,
    /// Token that coordinators must show, as made by `stealgrid key token FILE`; without one nobody is obeyed
    #[arg(long, value_name = "FILE", env = "STEALGRID_CONTROL_TOKEN", help_heading = "Security")]
    pub control_token: Option<PathBuf>,
    /// Second address for metrics and health, without control
    #[arg(long, value_name = "ADDRESS", env = "STEALGRID_METRICS", help_heading = "Security")]
    pub metrics: Option<String>,
    /// Write all events to this file, one JSON object a line
    #[arg(long, value_name = "FILE", env = "STEALGRID_EVENTS")]
    pub events: Option<PathBuf>,
    /// Keep what must not be forgotten in this directory, made if missing; without it nothing survives the process
    #[arg(long, value_name = "DIR", env = "STEALGRID_DATA_DIR")]
    pub data_dir: Option<PathBuf>,
    /// What the data directory survives: the end of the process, or a crash of the machine [default: process]
    #[arg(long, value_enum, env = "STEALGRID_DURABILITY")]
    pub durability: Option<Durability>,
    /// What becomes of jobs that executed when the node crashed: requeue or kill [default: requeue]
    #[arg(long, value_name = "WHAT", env = "STEALGRID_INTERRUPTED", value_parser = parse_interrupted)]
    pub interrupted: Option<Interrupted>,
    /// Most bytes of the journal; the node stops before it is longer
    #[arg(long, value_name = "BYTES", env = "STEALGRID_JOURNAL_BYTES_MAX")]
    pub journal_bytes_max: Option<u64>,
    /// Once the clock was started, stop after so many seconds without a request that shows the token; 0: never
    /// [default: 0]
    #[arg(long, value_name = "SECONDS", env = "STEALGRID_ORPHAN_PATIENCE")]
    pub orphan_patience: Option<u32>,
    /// Stop when the parent process ends or stdin is closed; with --orphan-patience only until the clock is started
    #[arg(long)]
    pub die_with_parent: bool,
    /// Ask the coordinator there which site this is, and take the configuration from it, as in
    /// http://coordinator:8080. It must know the token; --name and --processors say what site this must be
    #[arg(
        long,
        value_name = "URL",
        env = "STEALGRID_REGISTER",
        conflicts_with_all = ["config", "site", "grid"],
        requires = "control_token",
        help_heading = "Registration"
    )]
    pub register: Option<String>,
    /// What this node is known by at the coordinator when it restarts [default: the name of the machine]
    #[arg(long, value_name = "NAME", env = "STEALGRID_INSTANCE", help_heading = "Registration")]
    pub instance: Option<String>,
    /// Seconds for which a coordinator that does not answer, or a token that is not there yet, is waited for
    /// [default: 120]
    #[arg(long, value_name = "SECONDS", env = "STEALGRID_REGISTER_PATIENCE", help_heading = "Registration")]
    pub register_patience: Option<u32>,
    /// Listen for other sites on this machine's address within this network only, as in 172.28.0.0/24
    #[arg(long, value_name = "NETWORK", env = "STEALGRID_LISTEN_WITHIN")]
    pub listen_within: Option<IpNet>,
    /// How it logs.
    #[command(flatten)]
    pub log: LogArgs,
}

impl NodeArgs {
    /// The configuration these arguments mean.
    ///
    /// # Errors
    /// If a file cannot be read, something necessary is missing, or the site is not what it should be.
    pub fn to_config(&self) -> anyhow::Result<NodeConfig> {
        let grid = self.grid.as_deref().map(parse_grid).transpose()?;
        let config = match (&self.config, self.site, grid.clone()) {
            (Some(path), ..) => {
                let text = bounded::read_text(path, crate::config::BYTES_MAX)
                    .with_context(|| format!("read configuration {}", path.display()))?;
                serde_json::from_str(&text)
                    .with_context(|| format!("read configuration {}", path.display()))?
            }
            (None, Some(site), Some(grid)) => NodeConfig::new(SiteId(site), grid),
            (None, None, _) => {
                anyhow::bail!("the site is missing; give --site N, --config FILE, or --register URL")
            }
            (None, _, None) => {
                anyhow::bail!("the grid is missing; give --grid as in 2,8,8, or --config FILE")
            }
        };
        self.change(config, grid)
    }

    /// The same configuration with what the flags say.
    fn change(&self, mut config: NodeConfig, grid: Option<Vec<SiteEntry>>) -> anyhow::Result<NodeConfig> {
        if let Some(site) = self.site {
            config.site = SiteId(site);
        }
        if let Some(grid) = grid {
            config.grid = grid;
        }
        replace(&mut config.run, &self.run);
        replace(&mut config.strategy, &self.strategy);
        replace(&mut config.local_scheduler, &self.local_scheduler);
        replace(&mut config.listen, &self.listen);
        replace(&mut config.http, &self.http);
        config.http_hosts.extend(self.http_host.iter().cloned());
        replace(&mut config.discovery, &self.discovery);
        replace(&mut config.seed, &self.seed);
        if let Some(name) = &self.network {
            config.network = network(name, &config.grid)?;
        }
        if let Some(delay) = self.delay {
            config.network.base = links::model::Base::Constant(delay);
        }
        if self.retry.is_some() {
            config.options.retry = self.retry;
        }
        replace_some(&mut config.options.heartbeat, &self.heartbeat);
        replace(&mut config.options.suspect_after, &self.suspect_after);
        replace_some(&mut config.options.lease, &self.lease);
        config.peers.extend(self.peer.iter().cloned());
        if let Some(seed) = self.identity_seed {
            config.identity = IdentitySource::Seed(seed);
        }
        if let Some(path) = &self.identity_file {
            config.identity = IdentitySource::File(path.clone());
        }
        config.members.extend(self.member.iter().cloned());
        config.allow_open_network |= self.allow_open_network;
        replace_some(&mut config.grid_key, &self.grid_key);
        replace_some(&mut config.control_token, &self.control_token);
        replace_some(&mut config.metrics, &self.metrics);
        if self.events.is_some() {
            config.events_file.clone_from(&self.events);
        }
        // Who registers is told whether to keep a journal, and has found the place by then.
        if self.data_dir.is_some() && self.register.is_none() {
            config.data_dir.clone_from(&self.data_dir);
        }
        if let Some(network) = self.listen_within {
            config.listen = ask::within(&config.listen, network)?;
        }
        replace(&mut config.durability, &self.durability);
        replace(&mut config.options.interrupted, &self.interrupted);
        if self.journal_bytes_max.is_some() {
            config.journal_bytes_max = self.journal_bytes_max;
        }
        replace(&mut config.orphan_secs, &self.orphan_patience);
        config.check()?;
        self.check_site(&config.grid[config.site.index()])?;
        Ok(config)
    }

    /// Compares what the operator believes of this site with the grid: a slip in a list of sites is silent otherwise.
    fn check_site(&self, entry: &SiteEntry) -> anyhow::Result<()> {
        if let Some(name) = self.name.as_ref().filter(|name| **name != entry.name) {
            anyhow::bail!("--name {name}: the grid calls this site {}", entry.name);
        }
        if let Some(processors) = self.processors.filter(|processors| *processors != entry.processors) {
            anyhow::bail!("--processors {processors}: the grid gives this site {}", entry.processors);
        }
        Ok(())
    }
}

impl NodeArgs {
    /// How to ask a coordinator which site this is, if it is to be asked.
    fn application(&self) -> Option<Application> {
        let url = self.register.clone()?;
        let token = self.control_token.clone().expect("clap wants it beside --register");
        let machine = || rustix::system::uname().nodename().to_string_lossy().into_owned();
        Some(Application {
            url,
            token,
            instance: self.instance.clone().unwrap_or_else(machine),
            name: self.name.clone(),
            processors: self.processors,
            data_dir: self.data_dir.clone(),
            patience: self.register_patience.map_or(ask::PATIENCE, |secs| Duration::from_secs(secs.into())),
        })
    }
}

/// The named network or the one in a file, for these sites.
fn network(name: &str, grid: &[SiteEntry]) -> anyhow::Result<links::Model> {
    let names: Vec<&str> =
        grid.iter().filter(|site| site.beside.is_none()).map(|site| site.name.as_str()).collect();
    let read = |path: &Path| std::fs::read_to_string(path).map_err(|error| error.to_string());
    let written = links::Written { model: Some(name.to_string()), ..links::Written::default() };
    let model = written.resolve(&names, &read).context("--network")?;
    let beside = (1..).zip(grid).filter_map(|(number, site)| Some((SiteId(number), site.beside?))).collect();
    Ok(links::Model { beside, ..model })
}

fn replace<T: Clone>(target: &mut T, value: &Option<T>) {
    if let Some(value) = value {
        target.clone_from(value);
    }
}

fn replace_some<T: Clone>(target: &mut Option<T>, value: &Option<T>) {
    if value.is_some() {
        target.clone_from(value);
    }
}

/// Runs a node until it is told to stop: by the control interface, SIGTERM, SIGINT, or the end of its parent; or until
/// it has waited long enough for a coordinator.
///
/// Prints one line of JSON when it is up (`control::api::ReadyLine`); logs go to stderr, filtered by `RUST_LOG`.
pub fn run(args: NodeArgs) -> ExitCode {
    // Of no file: there may be none, in a root with nothing but the program.
    let pairs = (0..DESCRIPTORS_MIN / 2).map(|_| std::os::unix::net::UnixStream::pair());
    if let Err(error) = pairs.collect::<std::io::Result<Vec<_>>>() {
        let needs = format!("a node needs {DESCRIPTORS_MIN} free file descriptors at least (ulimit -n)");
        return fail(&anyhow::Error::new(error).context(needs), exit::UNEXPECTED);
    }
    let config = match args.register.is_none().then(|| args.to_config()).transpose() {
        Ok(config) => config,
        // Of a file it is the file that is wrong.
        Err(error) if args.site.is_some() && is_no_site(&error) => return fail(&error, exit::USAGE),
        Err(error) => return fail(&error, exit::INPUT),
    };
    let _telemetry = match args.log.start("info") {
        Ok(telemetry) => telemetry,
        Err(error) => return fail(&error, exit::INPUT),
    };
    // One thread is enough for one site, beside that of a journal, and a hundred sites on a laptop should not be a thousand threads.
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&error.into(), exit::UNEXPECTED),
    };
    runtime.block_on(async {
        match config {
            Some(config) => serve(config, args.die_with_parent, None).await,
            None => register(&args).await,
        }
    })
}

/// Asks which site this is, and is it.
async fn register(args: &NodeArgs) -> ExitCode {
    let mut terminated = match signal(SignalKind::terminate()) {
        Ok(terminated) => terminated,
        Err(error) => {
            return fail(&anyhow::Error::new(error).context("listen for signals"), exit::UNEXPECTED);
        }
    };
    let application = args.application().expect("there is a coordinator to be asked");
    let accepted = tokio::select! {
        accepted = aside(move || ask::ask(application)) => accepted,
        // The first process of a container is not ended by a signal that it does not listen to.
        _ = terminated.recv() => return ExitCode::from(exit::DONE),
    };
    let accepted = match accepted.map_err(anyhow::Error::new) {
        Ok(accepted) => accepted,
        Err(error) => return fail(&error, exit::UNREGISTERED),
    };
    // Whoever knows the token says what is simulated here, and not what is run.
    if accepted.config.execution.by != By::Timer {
        let error = anyhow::anyhow!(
            "the coordinator wants jobs to be commands here: only --config says that, and flags"
        );
        return fail(&error, exit::INPUT);
    }
    match args.change(*accepted.config.clone(), None) {
        Ok(config) => serve(config, args.die_with_parent, Some(accepted)).await,
        Err(error) => fail(&error, exit::INPUT),
    }
}

/// Runs something that blocks on a thread of its own, which ends with the process if nobody waits for it.
async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, result) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || drop(done.send(work())));
    result.await.expect("the thread ends when it has sent its result")
}

async fn serve(config: NodeConfig, die_with_parent: bool, accepted: Option<Accepted>) -> ExitCode {
    let patience = (config.orphan_secs > 0).then(|| Duration::from_secs(config.orphan_secs.into()));
    let data_dir = config.data_dir.clone();
    let parent = match die_with_parent.then(|| parent::watch(patience.is_some())).transpose() {
        Ok(parent) => parent,
        Err(error) => return fail(&anyhow::Error::new(error).context("watch the parent"), exit::UNEXPECTED),
    };
    // Before anybody can know of this process, or an early signal would be no proper end.
    let (terminated, interrupted) = match (signal(SignalKind::terminate()), signal(SignalKind::interrupt())) {
        (Ok(terminated), Ok(interrupted)) => (terminated, interrupted),
        (Err(error), _) | (_, Err(error)) => {
            return fail(&anyhow::Error::new(error).context("listen for signals"), exit::UNEXPECTED);
        }
    };
    // A terminal that closes, and the kernel when it continues a stopped process whose parent has gone, say this; a node
    // that may outlive its parent does not listen.
    let _hangups = match patience.map(|_| signal(SignalKind::hangup())).transpose() {
        Ok(hangups) => hangups,
        Err(error) => {
            return fail(&anyhow::Error::new(error).context("listen for signals"), exit::UNEXPECTED);
        }
    };
    let node = match Node::start(config).await {
        Ok(node) => node,
        Err(error) => {
            let code = error.exit_code();
            return fail(&error.into(), code);
        }
    };
    if let Some(dir) = &data_dir
        && let Err(error) = Running::write(dir, node.ready_line())
    {
        let full = error.kind() == std::io::ErrorKind::StorageFull;
        let code = if full { exit::JOURNAL_FULL } else { exit::UNEXPECTED };
        return fail(&anyhow::Error::new(error).context(format!("write into {}", dir.display())), code);
    }
    let line = serde_json::to_string(node.ready_line()).expect("the line is plain data");
    // Who started the node may have gone.
    let _ = writeln!(std::io::stdout(), "{line}");
    let mut registered = None;
    if let Some(accepted) = accepted {
        let accepted = Arc::new((accepted, node.ready_line().clone()));
        let telling = Arc::clone(&accepted);
        if let Err(error) = aside(move || telling.0.ready(&telling.1)).await {
            return fail(&error.into(), exit::UNREGISTERED);
        }
        // What a journal has is of its run, which somebody may want to go on with.
        registered = data_dir.is_none().then_some(accepted);
        // No parent would end it if the coordinator went away before the start.
        node.control().arm();
    }
    let (stopper, control) = (node.stopper(), node.control());
    let [orphaned, superseded] = [false; 2].map(AtomicBool::new).map(Arc::new);
    let (is_orphaned, is_superseded) = (Arc::clone(&orphaned), Arc::clone(&superseded));
    let stopping = tokio::spawn(async move {
        let reason = tokio::select! {
            reason = stop_reason(parent, patience, &control, terminated, interrupted) => reason,
            () = another_coordinator(registered, &control) => SUPERSEDED,
        };
        is_orphaned.store(reason == ORPHANED, Ordering::Relaxed);
        is_superseded.store(reason == SUPERSEDED, Ordering::Relaxed);
        tracing::info!(reason, "stopping");
        stopper.stop().await;
    });
    let result = node.wait().await;
    stopping.abort();
    // It either stopped the node and has ended, or was aborted just now.
    let _ = stopping.await;
    match result {
        Ok(()) if superseded.load(Ordering::Relaxed) => begin_again(),
        Ok(()) if orphaned.load(Ordering::Relaxed) => ExitCode::from(exit::ORPHANED),
        Ok(()) => ExitCode::from(exit::DONE),
        Err(error) => {
            let journal = error.downcast_ref::<JournalError>();
            let code = journal.map_or(exit::UNEXPECTED, JournalError::exit_code);
            fail(&error, code)
        }
    }
}

/// Fewer are too few to begin with: its runtime panics where it cannot open what it hears signals by, and its journal is half open.
const DESCRIPTORS_MIN: usize = 16;

/// The reason that has an exit code of its own.
const ORPHANED: &str = "no coordinator has asked anything for too long (orphan_secs)";

/// The reason after which the process asks again which site it is.
const SUPERSEDED: &str = "another coordinator is there, and nobody can go on with the former run";

/// A coordinator asks several times a second while a run goes on. Before it starts the clocks it may simulate for long, and
/// answers meanwhile.
const UNASKED: Duration = Duration::from_secs(5);

/// Resolves when a registered node without a journal is asked nothing any more, and another coordinator is where its own was.
async fn another_coordinator(registered: Option<Arc<(Accepted, ReadyLine)>>, control: &ControlCounters) {
    let Some(registered) = registered else { return std::future::pending().await };
    loop {
        control.unasked(UNASKED).await;
        let asking = Arc::clone(&registered);
        if aside(move || asking.0.is_superseded(&asking.1)).await {
            return;
        }
    }
}

/// Becomes the same program with the same arguments: nothing of a run is left in a new process.
fn begin_again() -> ExitCode {
    let mut arguments = std::env::args_os();
    let name = arguments.next().unwrap_or_default();
    let error = match std::env::current_exe() {
        Ok(program) => std::process::Command::new(program).arg0(name).args(arguments).exec(),
        Err(error) => error,
    };
    tracing::warn!("failed to ask again which site this is: {error}");
    ExitCode::from(exit::ORPHANED)
}

/// Waits for a reason to stop that does not come by the control interface.
async fn stop_reason(
    parent: Option<tokio::sync::oneshot::Receiver<()>>,
    patience: Option<Duration>,
    control: &ControlCounters,
    mut terminated: Signal,
    mut interrupted: Signal,
) -> &'static str {
    let parent_gone = async {
        match parent {
            // An error means that the watching thread has failed; then it is safer to stop, too.
            Some(gone) => drop(gone.await),
            None => std::future::pending().await,
        }
        if patience.is_some() && control.is_armed() {
            tracing::warn!("the coordinator has gone; the node goes on and waits for another");
            std::future::pending().await
        }
    };
    tokio::select! {
        () = parent_gone => "the parent has gone",
        () = control.orphaned(patience) => ORPHANED,
        Some(()) = terminated.recv() => "SIGTERM",
        Some(()) = interrupted.recv() => "SIGINT",
    }
}

fn fail(error: &anyhow::Error, code: u8) -> ExitCode {
    // The log may be on the disk that is full; the code says it, too.
    let _ = writeln!(std::io::stderr(), "error: {error:#}");
    ExitCode::from(code)
}

/// Whether the number of the site is none of the grid.
fn is_no_site(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref::<ConfigError>(), Some(ConfigError::Site { .. }))
}

/// Sites from `2,8`, from `a=2,b=8`, with prices as `b=8:3`, brokers as `c=0` or `c=0@b`, or from a file that has one of these forms, commas or line ends between.
fn parse_grid(text: &str) -> anyhow::Result<Vec<SiteEntry>> {
    let is_list = text.chars().next().is_some_and(|c| c.is_ascii_digit()) || text.contains('=');
    if is_list {
        return parse_sites(text).with_context(|| format!("grid {text:?}"));
    }
    let content = std::fs::read_to_string(text)
        .with_context(|| format!("grid {text:?}: neither a list as in 2,8,8 nor a file that can be read"))?;
    parse_sites(&content).with_context(|| format!("grid file {text}"))
}

fn parse_sites(text: &str) -> anyhow::Result<Vec<SiteEntry>> {
    let parts =
        text.lines().map(|line| line.split('#').next().unwrap_or_default()).flat_map(|line| line.split(','));
    let mut beside = Vec::new();
    let mut sites = parts
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .enumerate()
        .map(|(index, part)| {
            let (name, processors) = match part.split_once('=') {
                Some((name, processors)) => (name.trim().to_string(), processors.trim()),
                None => (format!("site{}", index + 1), part),
            };
            let (processors, site) = match processors.split_once('@') {
                Some((processors, site)) => (processors, Some(site.to_string())),
                None => (processors, None),
            };
            beside.push(site);
            let (processors, price) = processors.split_once(':').unwrap_or((processors, "0"));
            let price = price
                .trim()
                .parse()
                .with_context(|| format!("site {part:?}: write what a job costs there as name=8:PRICE"))?;
            let processors = processors.trim().parse().with_context(|| {
                format!("site {part:?}: write its processors, as in 8 or name=8, or a broker as name=0 or name=0@SITE")
            })?;
            Ok(SiteEntry { name, processors, beside: None, price, nodes: None })
        })
        .collect::<anyhow::Result<Vec<SiteEntry>>>()?;
    for (index, site) in beside.into_iter().enumerate() {
        let Some(site) = site else { continue };
        let place = sites.iter().position(|entry| entry.name == site);
        let place =
            place.with_context(|| format!("broker {}: there is no site {site}", sites[index].name))?;
        sites[index].beside = Some(SiteId::from_index(place));
    }
    Ok(sites)
}

fn parse_peer(text: &str) -> Result<PeerAddress, String> {
    let wrong = || format!("{text:?} is not SITE=ADDRESS as in 2=/ip4/127.0.0.1/tcp/4001");
    let (site, address) = text.split_once('=').ok_or_else(wrong)?;
    let site = SiteId(site.trim().parse().map_err(|_| wrong())?);
    Ok(PeerAddress { site, address: address.trim().to_string() })
}

fn parse_member(text: &str) -> Result<Member, String> {
    let wrong =
        || format!("{text:?} is not SITE=PEER_ID as in 2=12D3Koo…, which `stealgrid key id FILE` prints");
    let (site, peer_id) = text.split_once('=').ok_or_else(wrong)?;
    let site = SiteId(site.trim().parse().map_err(|_| wrong())?);
    Ok(Member { site, peer_id: peer_id.trim().to_string() })
}

fn parse_interrupted(text: &str) -> Result<Interrupted, String> {
    match text {
        "requeue" => Ok(Interrupted::Requeue),
        "kill" => Ok(Interrupted::Kill),
        _ => Err(format!("{text:?} is neither requeue nor kill")),
    }
}

/// A span with a unit, such as `500ms` or `1.5h`; `0` needs none.
fn parse_span(text: &str) -> Result<Span, String> {
    let wrong = || format!("{text:?} is not a span of time; write it as in 500ms, 2s, 10min or 1.5h");
    if text == "0" {
        return Ok(Span::ZERO);
    }
    let unit_at = text.find(|c: char| c.is_ascii_alphabetic()).ok_or_else(wrong)?;
    let (number, unit) = text.split_at(unit_at);
    let micros_per_unit = match unit {
        "us" => 1.0,
        "ms" => 1e3,
        "s" => 1e6,
        "min" => 60e6,
        "h" => 3600e6,
        _ => return Err(wrong()),
    };
    let number: f64 = number.trim().parse().map_err(|_| wrong())?;
    let micros = (number * micros_per_unit).round();
    // Beyond 2^53 microseconds (285 years) a float is no longer exact.
    if !(0.0..=9e15).contains(&micros) {
        return Err(wrong());
    }
    Ok(Span::from_micros(micros as i64))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        node: NodeArgs,
    }

    fn config(args: &[&str]) -> anyhow::Result<NodeConfig> {
        Cli::try_parse_from(std::iter::once(&"node").chain(args))?.node.to_config()
    }

    #[test]
    fn flags_alone_make_a_configuration() {
        let config = config(&[
            "--site",
            "2",
            "--grid",
            "a=2,b=8",
            "--delay",
            "1.5s",
            "--peer",
            "1=/ip4/10.0.0.1/tcp/4001",
            "--identity-seed",
            "9",
            "--strategy",
            "st:25",
        ])
        .unwrap();
        assert_eq!(config.site, SiteId(2));
        assert_eq!(
            config.grid[1],
            SiteEntry { name: "b".to_string(), processors: 8, beside: None, price: 0, nodes: None }
        );
        assert_eq!(config.network, links::Model::constant(Span::from_micros(1_500_000)));
        assert_eq!(config.identity, IdentitySource::Seed(9));
        assert_eq!(config.peers[0].address, "/ip4/10.0.0.1/tcp/4001");
    }

    #[test]
    fn flags_override_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("node.json");
        let written = NodeConfig::new(SiteId(1), parse_sites("2,8").unwrap());
        std::fs::write(&path, serde_json::to_string(&written).unwrap()).unwrap();

        let read = config(&["--config", path.to_str().unwrap(), "--site", "2", "--run", "other"]).unwrap();

        assert_eq!(read, NodeConfig { site: SiteId(2), run: "other".to_string(), ..written });
    }

    #[test]
    fn the_failure_detector_has_flags() {
        let flags = [
            "--site",
            "1",
            "--grid",
            "2,8",
            "--heartbeat",
            "20s",
            "--suspect-after",
            "2min",
            "--lease",
            "1h",
        ];
        let options = config(&flags).unwrap().options;
        assert_eq!(options.heartbeat, Some(Span::from_secs(20)));
        assert_eq!(options.suspect_after, Span::from_secs(120));
        assert_eq!(options.lease, Some(Span::from_secs(3600)));
    }

    #[test]
    fn a_grid_file_may_have_lines_and_comments() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("grid");
        std::fs::write(&path, "# two small ones\nalpha = 4, beta=4 : 7\n16\n").unwrap();
        let config = config(&["--site", "3", "--grid", path.to_str().unwrap()]).unwrap();
        let names: Vec<&str> = config.grid.iter().map(|site| site.name.as_str()).collect();
        assert_eq!(names, ["alpha", "beta", "site3"]);
        assert_eq!(config.grid[2].processors, 16);
        assert_eq!(config.grid.iter().map(|site| site.price).collect::<Vec<u64>>(), [0, 7, 0]);
    }

    #[test]
    fn mistakes_are_told_with_the_remedy() {
        for (args, expected) in [
            (&["--grid", "2,8"][..], "give --site"),
            (&["--site", "1"][..], "give --grid"),
            (&["--site", "3", "--grid", "2,8"][..], "sites 1 to 2"),
            (&["--site", "1", "--grid", "2,x"][..], "write its processors"),
            (&["--site", "1", "--grid", "a=2,b=8:x"][..], "as name=8:PRICE"),
            (&["--site", "1", "--grid", "nowhere"][..], "nor a file"),
            (&["--site", "1", "--grid", "2,8", "--processors", "4"][..], "the grid gives this site 2"),
            (&["--site", "1", "--grid", "2,8", "--name", "x"][..], "the grid calls this site site1"),
            (&["--site", "1", "--grid", "2,8", "--delay", "2 days"][..], "500ms"),
            (&["--site", "1", "--grid", "2,8", "--peer", "2"][..], "SITE=ADDRESS"),
            (&["--site", "1", "--grid", "2,8", "--lease", "1h"][..], "set heartbeat, too (--heartbeat)"),
            (
                &["--site", "1", "--grid", "2,8", "--heartbeat", "1min", "--delay", "1s"][..],
                "suspect_after 60 s (--suspect-after)",
            ),
            (
                &["--site", "1", "--grid", "2,8", "--heartbeat", "20s", "--lease", "59s"][..],
                "lease 59 s (--lease)",
            ),
            (&["--config", "/nowhere/node.json"][..], "read configuration /nowhere/node.json"),
        ] {
            let error = format!("{:#}", config(args).unwrap_err());
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn spans_have_units() {
        for (text, micros) in [("0", 0), ("7us", 7), ("500ms", 500_000), ("1.5h", 5_400_000_000)] {
            assert_eq!(parse_span(text), Ok(Span::from_micros(micros)), "{text}");
        }
        for text in ["5", "-1s", "1e40s", "s", "infs"] {
            assert!(parse_span(text).is_err(), "{text}");
        }
    }
}
