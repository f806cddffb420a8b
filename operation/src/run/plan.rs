//! What the nodes of a run are told: their configurations, the factor of the clock, and how long they wait before
//! they repeat a message. Starts nothing.

use std::sync::Arc;
use std::time::Duration;

use analysis::Outcome;
use experiments::drive::builder;
use experiments::drive::simulate::simulate;
use experiments::experiment::faults::{Fault, What};
use experiments::experiment::jobs::Jobs;
use experiments::experiment::{Clock, Experiment, FACTOR_MAX, Identity, NodeDiscovery, refresh_default};
use experiments::interrupt::Interrupt;
use links::Model;
use node::NodeConfig;
use node::config::{IdentitySource, SiteEntry};
use node::executor::{By, Settings};
use node::network::Discovery;
use outputs::Status;
use protocol::PeerConfig;
use protocol::membership::operator;
use scheduler::{Grid, LocalUsers, SiteId, Span, Submit, Time, TimedJob};
use simulator::Checks;

/// How long a run takes on the wall clock if no factor is given: short enough to wait for it.
const WALL_DEFAULT: Duration = Duration::from_secs(40);
/// A message is repeated at the earliest after this much of the wall clock. TCP loses nothing while a connection
/// lasts, and a loaded machine can be slow for a second.
const RETRY_WALL: Duration = Duration::from_secs(2);
/// The same where messages are lost on purpose: there repeating late costs more than repeating in vain.
const RETRY_WALL_LOSSY: Duration = Duration::from_millis(200);
/// Waits for an answer, each doubled, until a message counts as lost for good: five losses in a row.
const RETRIES_PATIENCE: i64 = 1 + 2 + 4 + 8 + 16;

/// Heartbeats come at most this often on the wall clock, a site is suspected at the earliest after so long, and gone
/// after so long: a loaded machine can be slow for a second, and a site that is there must not be taken over.
const HEARTBEAT_WALL: Duration = Duration::from_millis(100);
const SUSPECT_WALL: Duration = Duration::from_secs(1);
const LEASE_WALL: Duration = Duration::from_secs(3);

/// Boards of the global queue are repeated at most once in so many waits for an answer. Arbitrary.
const REFRESH_RETRIES: i64 = 2;

/// Why an experiment cannot run on real nodes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// A reference has no messages.
    #[error(
        "{0} is a reference that sees all sites at once and sends no messages, so there is nothing for nodes to do; \
         leave out ideal/, or use `stealgrid simulate`"
    )]
    Ideal(String),
    /// Nodes of one site know nothing of the pace of others.
    #[error(
        "{0} starts jobs in parts on nodes that jobs share, where each part goes on at the pace of the slowest, of which processes know nothing \
         yet; use `stealgrid simulate`, give sites processors in place of nodes, or leave out coallocate"
    )]
    Apart(String),
    /// Sites that do not know all others.
    #[error(
        "--strategy {0} with a view of {1} (protocol.view): node processes know all others; use `stealgrid simulate`, or leave view out"
    )]
    View(String, u32),
    /// Ports beyond the last.
    #[error("--port {first} (run.port): {sites} sites need ports up to {last}, and the last is 65535")]
    Ports {
        /// What was given.
        first: u16,
        /// How many sites there are.
        sites: usize,
        /// The last port that is needed.
        last: usize,
    },
}

/// Whether an experiment can run on real nodes.
///
/// # Errors
/// The first reason why not.
pub fn check(experiment: &Experiment) -> Result<(), RunError> {
    if experiment.strategy.ideal {
        return Err(RunError::Ideal(experiment.strategy.to_string()));
    }
    if experiment.grid.is_shared() && experiment.grid.spreads() {
        return Err(RunError::Apart(experiment.strategy.to_string()));
    }
    if let Some(view) = experiment.options.view {
        return Err(RunError::View(experiment.strategy.to_string(), view));
    }
    let (first, sites) = (experiment.run.port, experiment.grid.len());
    let last = usize::from(first) + sites - 1;
    if first != 0 && last > usize::from(u16::MAX) {
        return Err(RunError::Ports { first, sites, last });
    }
    Ok(())
}

/// Whether another coordinator could go on with a run: what it needs of the nodes is in journals.
pub fn may_attach(experiment: &Experiment) -> bool {
    experiment.run.journal.is_some()
}

/// Everything that is decided before the nodes start.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Seconds of trace time in a second of wall-clock time.
    pub factor: f64,
    /// Trace time at the start of the clocks: the first submission.
    pub origin: Time,
    /// Trace time at the last end of the simulation; that of the start if it ends no job.
    pub end: Time,
    /// One configuration per site, in the order of the experiment.
    pub nodes: Vec<NodeConfig>,
    /// Whether events of single messages are wanted in the results.
    pub message_events: bool,
    /// Wall time without progress after which a run is given up.
    pub stall: Duration,
    /// Whether a node that ends is started again.
    pub restart: bool,
    /// What the user should know, in words.
    pub notes: Vec<String>,
    peer: PeerConfig,
    submit: Submit,
    local_users: LocalUsers,
    faults: Vec<Fault>,
}

impl Plan {
    /// Plans a run of these jobs, which take as long as in the simulation.
    ///
    /// # Errors
    /// If the nodes would not take their configuration.
    pub fn new(experiment: &Experiment, jobs: &Jobs, simulated: &Outcome) -> anyhow::Result<Plan> {
        let origin = jobs.jobs.iter().map(|job| job.spec.submit).min().unwrap_or(Time::ZERO);
        let last = simulated.finished().filter_map(|job| job.end).max().unwrap_or(origin);
        let span = last.since(origin);
        let mut notes = Vec::new();
        let factor = match experiment.run.clock {
            Some(Clock::Scaled(factor)) => factor,
            Some(Clock::Virtual) | None => default_factor(span),
        };
        let wall = Duration::from_secs_f64(span.as_secs_f64().max(0.0) / factor);
        notes.push(format!(
            "{} nodes; {span} s of trace time at {factor} times the wall clock (--clock scaled:{factor}) take \
             about {} s",
            experiment.grid.len(),
            wall.as_secs_f64().ceil()
        ));
        let largest = experiment.network.largest();
        let lossless = experiment.network.is_lossless();
        let retry_wall = if lossless { RETRY_WALL } else { RETRY_WALL_LOSSY };
        let retry_min = largest.saturating_mul(2) + trace_span(retry_wall, factor);
        let retry = match experiment.options.retry {
            Some(given) if given < retry_min => {
                notes.push(format!(
                    "protocol.retry is raised from {given} s to {retry_min} s: twice the largest delay and \
                     {retry_wall:?} of the wall clock"
                ));
                retry_min
            }
            given => given.unwrap_or(retry_min),
        };
        let refresh_min = refresh_default(largest).max(retry.saturating_mul(REFRESH_RETRIES));
        let refresh = experiment.options.pool.refresh.map_or(refresh_min, |given| given.max(retry_min));
        let pool = protocol::PoolOptions { refresh: Some(refresh) };
        let options = protocol::Options { retry: Some(retry), pool, ..experiment.options };
        let options = patient(options, factor, &mut notes);
        let nodes: Vec<NodeConfig> =
            (0..experiment.grid.len()).map(|index| node(experiment, index, options)).collect();
        let peer = nodes[0].check()?;
        let silence = match lossless {
            true => largest.saturating_mul(4),
            false => retry.saturating_mul(RETRIES_PATIENCE) + experiment.network.cut_in_all(),
        };
        let stall = experiment.run.stall_timeout + wall_span(silence, factor);
        let message_events = experiment.options.message_events;
        Ok(Plan {
            factor,
            origin,
            end: last,
            nodes,
            message_events,
            stall,
            restart: experiment.run.journal.is_some() && experiment.run.restart_nodes,
            notes,
            peer,
            submit: experiment.submit,
            local_users: jobs.local_users.clone(),
            faults: experiment.faults.clone(),
        })
    }

    /// The sites of the run.
    pub fn grid(&self) -> Arc<Grid> {
        Arc::clone(&self.peer.grid)
    }

    /// The switches of the protocol, as the nodes have them.
    pub fn options(&self) -> protocol::Options {
        self.peer.options
    }

    /// Whether sites that end are coped with: they leave journals, and a lease says when these are read.
    pub fn may_lose(&self) -> bool {
        self.options().lease.is_some() && self.nodes.iter().all(|node| node.data_dir.is_some())
    }

    /// Whether a node that ends is started again.
    pub fn may_restart(&self) -> bool {
        self.restart
    }

    /// The site where a job is submitted: where it belongs, or who stands in for that if it is not there at that time.
    pub fn entry(&self, job: &TimedJob) -> SiteId {
        let grid = &self.peer.grid;
        let rank = self.submit.rank(grid, self.peer.strategy, &job.spec, &self.local_users);
        let site = grid.at_rank(rank.expect("jobs wider than the widest site were refused"));
        let stays = |site: SiteId| {
            let mut its = self.faults.iter().filter(|fault| fault.site == site);
            its.all(|fault| match fault.what {
                What::Join => fault.at <= job.spec.submit,
                _ => !fault.is_final() || job.spec.submit < fault.at,
            })
        };
        if stays(site) {
            return site;
        }
        operator::successor(grid, self.peer.options.broker.failover, site, &job.spec, stays).unwrap_or(site)
    }
}

/// Times of the failure detector that this machine can keep at this factor.
fn patient(options: protocol::Options, factor: f64, notes: &mut Vec<String>) -> protocol::Options {
    let Some(heartbeat) = options.heartbeat else { return options };
    let mut raise = |name: &str, given: Span, wall: Duration| {
        let least = trace_span(wall, factor);
        if given < least {
            notes.push(format!(
                "protocol.{name} is raised from {given} s to {least} s: {wall:?} of the wall clock"
            ));
        }
        given.max(least)
    };
    protocol::Options {
        heartbeat: Some(raise("heartbeat", heartbeat, HEARTBEAT_WALL)),
        suspect_after: raise("suspect_after", options.suspect_after, SUSPECT_WALL),
        lease: options.lease.map(|lease| raise("lease", lease, LEASE_WALL)),
        ..options
    }
}

/// The factor with which so much trace time takes [`WALL_DEFAULT`], rounded up to two digits; never slower than the
/// wall clock.
fn default_factor(span: Span) -> f64 {
    let exact = span.as_secs_f64() / WALL_DEFAULT.as_secs_f64();
    if exact <= 1.0 {
        return 1.0;
    }
    let unit = 10f64.powf(exact.log10().floor() - 1.0);
    // The unit is a power of ten, but 0.1 is not one of two.
    let rounded = (exact / unit).ceil() * unit;
    ((rounded * 10.0).round() / 10.0).min(FACTOR_MAX)
}

/// Wall-clock time as trace time.
pub fn trace_span(wall: Duration, factor: f64) -> Span {
    Span::from_micros((wall.as_secs_f64() * 1e6 * factor) as i64)
}

/// Trace time as wall-clock time.
pub fn wall_span(span: Span, factor: f64) -> Duration {
    Duration::from_secs_f64(span.as_secs_f64().max(0.0) / factor)
}

/// What the nodes of a run in lockstep are told. Delays are not theirs: the coordinator says when a message is due.
pub fn nodes_in_lockstep(experiment: &Experiment) -> Vec<NodeConfig> {
    let node = |index| NodeConfig {
        network: Model::ZERO,
        // Virtual time cannot go on without the node.
        data_dir: None,
        orphan_secs: 0,
        ..node(experiment, index, experiment.options)
    };
    (0..experiment.grid.len()).map(node).collect()
}

fn node(experiment: &Experiment, index: usize, options: protocol::Options) -> NodeConfig {
    let site = SiteId::from_index(index);
    let sites = experiment.grid.sites();
    let entry = |site: &scheduler::Site| SiteEntry {
        name: site.name.clone(),
        processors: site.processors,
        beside: None,
        price: site.price,
        nodes: experiment.grid.cluster(site.id).map(|nodes| (&**nodes).into()),
    };
    let port = if experiment.run.port == 0 { 0 } else { usize::from(experiment.run.port) + index };
    let mut config = NodeConfig::new(site, sites.iter().map(entry).collect());
    config.run = run_name(&experiment.name);
    config.strategy = experiment.strategy.to_string();
    config.local_scheduler = experiment.local.name().to_string();
    config.pass = experiment.pass.name().to_string();
    if let Some(forecast) = experiment.forecast {
        config.estimate = forecast.predictor.to_string();
        config.correction = Some(forecast.correction.to_string());
    }
    config.external = experiment.external.clone();
    config.options = options;
    config.seed = experiment.seed;
    config.options.interrupted = experiment.run.interrupted;
    if let Some(durability) = experiment.run.journal {
        let name = format!("{}.data", sites[index].name);
        config.data_dir = Some(experiment.outputs.dir.join("nodes").join(name));
        config.durability = durability;
        if may_attach(experiment) {
            config.orphan_secs = u32::try_from(experiment.run.orphan_patience.as_secs()).unwrap_or(u32::MAX);
        }
    }
    if experiment.execution.by != By::Timer {
        let name = format!("{}.jobs", sites[index].name);
        let folder = Some(experiment.outputs.dir.join("nodes").join(name));
        config.execution = Settings { folder, ..experiment.execution.clone() };
    }
    config.network = experiment.network.clone();
    config.identity = match experiment.run.identity {
        Identity::Derived => IdentitySource::Seed(experiment.seed),
        Identity::Kept => {
            let name = format!("{}.key", sites[index].name);
            IdentitySource::File(experiment.outputs.dir.join("nodes").join(name))
        }
    };
    match experiment.run.discovery {
        NodeDiscovery::Static => {
            config.listen = format!("/ip4/127.0.0.1/tcp/{port}");
        }
        NodeDiscovery::Mdns => {
            config.discovery = Discovery::Mdns;
            // mDNS leaves out loopback.
            config.listen = format!("/ip4/0.0.0.0/tcp/{port}");
            // Nodes of another run of the same experiment must not be found.
            config.run = format!("{}-{}", config.run, std::process::id());
        }
    }
    config
}

/// The experiment's name, as far as the name of a run can have its characters.
fn run_name(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    // 64 less what is appended for mDNS.
    let name: String = name.chars().take(48).map(plain).collect();
    if name.is_empty() { "run".to_string() } else { name }
}

/// The same experiment in virtual time: what the run is planned by and compared with. `None` if interrupted.
///
/// # Errors
/// If the simulation fails.
pub fn simulated(
    experiment: &Experiment,
    jobs: &Jobs,
    interrupt: &Interrupt,
) -> anyhow::Result<Option<Outcome>> {
    let mut builder = builder(experiment, jobs);
    let ended = simulate(experiment, jobs, Checks::Cheap, interrupt, &mut |event| builder.observe(event))?;
    if let Some(violation) = ended.violation {
        anyhow::bail!("failed to simulate the experiment beforehand: {violation}");
    }
    Ok((ended.status == Status::Complete).then(|| builder.finish()))
}

#[cfg(test)]
pub(crate) mod tests {
    use std::path::Path;

    use experiments::experiment::file::Written;
    use experiments::fixtures::{experiment, jobs};
    use proptest::prelude::*;

    use super::*;

    /// Two sites and one job of 100 s, submitted at 3600 s.
    pub(crate) fn planned(text: &str) -> Plan {
        let (experiment, jobs) = (experiment(text), jobs());
        let mut simulated = builder(&experiment, &jobs).finish();
        simulated.jobs[0].state = analysis::JobState::Completed;
        simulated.jobs[0].start = Some(Time::from_secs(3600));
        simulated.jobs[0].end = Some(Time::from_secs(3700));
        Plan::new(&experiment, &jobs, &simulated).unwrap()
    }

    #[test]
    fn trace_time_begins_with_the_first_submission_and_fits_the_wall_clock() {
        let plan = planned("");
        assert_eq!(plan.origin, Time::from_secs(3600));
        assert_eq!(plan.factor, 2.5);
        assert!(
            plan.notes[0].contains("100 s of trace time at 2.5 times the wall clock"),
            "{}",
            plan.notes[0]
        );
        assert_eq!(planned("run.clock = \"scaled:7\"").factor, 7.0);
    }

    #[test]
    fn messages_are_repeated_after_two_delays_and_two_seconds_of_the_wall_clock() {
        let retry = |text: &str| planned(text).nodes[0].options.retry;
        let clock = "run.clock = \"scaled:10\"\n";
        assert_eq!(retry(clock), Some(Span::from_secs(20)));
        assert_eq!(retry(&format!("{clock}network.delay = \"30s\"")), Some(Span::from_secs(80)));
        assert_eq!(retry(&format!("{clock}protocol.retry = \"300s\"")), Some(Span::from_secs(300)));

        let raised = planned(&format!("{clock}protocol.retry = \"5s\""));
        assert_eq!(raised.nodes[0].options.retry, Some(Span::from_secs(20)));
        assert!(raised.notes[1].contains("raised from 5 s to 20 s"), "{:?}", raised.notes);
    }

    #[test]
    fn a_job_goes_to_the_smallest_site_that_holds_it_or_to_the_common_pool() {
        let job = jobs().jobs[0];
        let home = "strategy.submit = \"home\"\n";
        assert_eq!(planned("").entry(&job), job.spec.origin);
        assert_eq!(planned(home).entry(&job), SiteId(2));
        // The pool is hosted by the site of rank 0, which is the smallest.
        let mut wide = job;
        wide.spec.processors = 8;
        assert_eq!(planned(home).entry(&wide), SiteId(1));
        assert_eq!(planned(&format!("{home}strategy.name = \"common-pool\"")).entry(&wide), SiteId(2));
    }

    #[test]
    fn every_node_is_told_the_same_but_for_itself() {
        let plan = planned("run.port = 7000\nrun.identity = \"kept\"\noutputs.dir = \"there\"");
        let [first, second] = &plan.nodes[..] else { panic!("{:?}", plan.nodes) };
        assert_eq!(first.listen, "/ip4/127.0.0.1/tcp/7000");
        assert_eq!(second.listen, "/ip4/127.0.0.1/tcp/7001");
        assert_eq!(second.identity, IdentitySource::File("there/nodes/site2.key".into()));
        assert_eq!(first.run, "a-run");
        let (listen, identity) = (first.listen.clone(), first.identity.clone());
        assert_eq!(NodeConfig { site: SiteId(1), listen, identity, ..second.clone() }, *first);
    }

    #[test]
    fn what_only_the_simulator_can_do_is_refused() {
        let refused = |text: &str| check(&experiment(text)).unwrap_err().to_string();
        assert!(refused("strategy.name = \"ideal/st:50\"").contains("ideal/st:50 is a reference"));
        assert_eq!(check(&experiment("strategy.name = \"broker:mcisne,coallocate=dp\"")), Ok(()));
        let text = "workload.trace = \"log.swf\"\nstrategy.name = \"broker:mcisne,coallocate=dp\"\n\
            [[grid.sites]]\nname = \"a\"\nnodes = 4\n";
        let written = Written::parse(text, Path::new("apart.toml")).unwrap();
        let apart = check(&Experiment::resolve(&written).unwrap()).unwrap_err().to_string();
        assert!(apart.contains("use `stealgrid simulate`"), "{apart}");
        assert!(refused("run.port = 65535").contains("ports up to 65536"));
        assert_eq!(
            check(&experiment("run.port = 65534\nnetwork.delay = \"5s\"\nnetwork.loss = 0.1")),
            Ok(())
        );
    }

    proptest! {
        #[test]
        fn the_default_factor_has_two_digits_and_takes_at_most_the_time(seconds in 1i64..30_000_000) {
            let factor = default_factor(Span::from_secs(seconds));
            prop_assert!(factor >= 1.0);
            let wall = seconds as f64 / factor;
            prop_assert!(wall <= 40.001, "{wall}");
            prop_assert!(factor == 1.0 || wall > 36.0, "{wall}");
            let digits = factor.to_string().replace('.', "");
            prop_assert!(digits.trim_start_matches('0').trim_end_matches('0').len() <= 2, "{factor}");
        }
    }
}
