//! All nodes of a run as child processes, for the coordinator: start, connect, start the clock, watch, stop.
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use node::NodeConfig;
//! use operation::fleet::{Fleet, FleetError};
//! use operation::spawn::SpawnOrder;
//! use scheduler::{Event, Time, TimedJob};
//!
//! fn run(order: &SpawnOrder, config: &NodeConfig, jobs: &[TimedJob]) -> Result<Vec<Event>, FleetError> {
//!     let mut events = Vec::new();
//!     let mut fleet = Fleet::spawn(order, config)?;
//!     fleet.wait_ready(Duration::from_secs(30))?;
//!     fleet.feed(jobs, |job| job.spec.origin)?;
//!     fleet.start(1000.0, Time::ZERO, Duration::from_millis(200))?;
//!     while !fleet.is_finished(jobs.len() as u64)? {
//!         fleet.take_events(&mut |event| events.push(event))?;
//!         std::thread::sleep(Duration::from_millis(50));
//!     }
//!     fleet.take_events(&mut |event| events.push(event))?;
//!     fleet.stop(Duration::from_secs(5))?;
//!     Ok(events)
//! }
//! ```

mod adopt;
mod outages;
mod restarts;
mod secrets;

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use node::clock::StartOrder;
use node::config::NodeConfig;
use node::control::api::{Calibration, Phase, ReadyLine, Status};
use node::control::{Token, TokenError};
use node::exit;
use node::journal::{JournalError, inspect};
use node::lockstep::{Client, LinkError};
use node::network::{Discovery, GridKeyError, IdentityError};
use node::peer_address::PeerAddress;
use scheduler::{Event, SiteId, Time, TimedJob};

pub use self::outages::Whereabouts;
pub use self::restarts::{BEGINNINGS_MAX, Limit, RESTARTS_MAX, Restarted};
use crate::client::{ClientError, NodeClient};
use crate::registration::Desk;
use crate::spawn::{End, NodeProcess, SpawnError, SpawnOrder};

pub use self::adopt::{Adopted, end_all};
use self::restarts::Awaited;
use self::secrets::Secrets;

/// Events fetched in one request.
const EVENTS_PAGE: usize = 50_000;

/// How long a node that does not answer is watched for its end: a process ends a moment after its connections.
const END_PATIENCE: Duration = Duration::from_secs(1);
/// How often it is looked at meanwhile.
const END_POLL: Duration = Duration::from_millis(10);

/// Why a fleet does not do what it should.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// A node did not start.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// A node did not answer, or refused.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// A node ended in the middle of the run.
    #[error("node {name} ended with {status} during the run:\n{log}")]
    Ended {
        /// Name of the site.
        name: String,
        /// How its process ended, as far as that is known.
        status: End,
        /// The end of its log.
        log: String,
    },
    /// A node has ended and cannot be started again.
    #[error("node {name} has ended and does not restart: {reason}")]
    NotBegun {
        /// Name of the site.
        name: String,
        /// Why it is not started again.
        reason: String,
    },
    /// The journal of a node that is to go on with it is not there. Begun without it, the node would be another incarnation of
    /// its site, which has forgotten what it had and did, and the others would refuse it.
    #[error(
        "node {name} cannot go on, because its journal {} is missing; put the directory back as it was, nothing is done \
         without it",
        .path.display()
    )]
    JournalMissing {
        /// Name of the site.
        name: String,
        /// The journal that should be there.
        path: PathBuf,
    },
    /// What a node has left cannot be read.
    #[error("node {name} has ended, and what it has left cannot be read: {error}")]
    Remains {
        /// Name of the site.
        name: String,
        /// What is wrong with the journal.
        error: JournalError,
    },
    /// A node had to be killed, or did not end well.
    #[error("node {name} did not end as it should: {how}")]
    BadEnd {
        /// Name of the site.
        name: String,
        /// How it ended instead.
        how: String,
    },
    /// The grid's key cannot be made.
    #[error(transparent)]
    GridKey(#[from] GridKeyError),
    /// The token of the control interfaces cannot be made.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The identity of a node cannot be read or made.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// What a node was told when it was started cannot be read again.
    #[error("{}: {reason}", .path.display())]
    Config {
        /// The file with what it was told.
        path: PathBuf,
        /// Why it cannot be read.
        reason: String,
    },
    /// The system does not say what became of a process.
    #[error("watch the nodes: {0}")]
    Watch(#[from] io::Error),
}

impl FleetError {
    /// Whether there is no room on the disk for what all nodes share, or what they are told.
    pub fn is_for_want_of_room(&self) -> bool {
        let error = match self {
            FleetError::GridKey(GridKeyError::File { error, .. })
            | FleetError::Token(TokenError::File { error, .. })
            | FleetError::Spawn(SpawnError::File { error, .. })
            | FleetError::Watch(error) => error,
            _ => return false,
        };
        error.kind() == io::ErrorKind::StorageFull
    }

    /// Whether a journal is damaged, missing, or that of another site.
    pub fn is_about_a_journal(&self) -> bool {
        let codes = [exit::JOURNAL_DAMAGED, exit::JOURNAL_FOREIGN];
        let is_it = |code: Option<i32>| code.is_some_and(|code| codes.map(i32::from).contains(&code));
        match self {
            FleetError::JournalMissing { .. } => true,
            FleetError::Remains { error, .. } => error.is_for_good(),
            FleetError::Spawn(SpawnError::Ended { status, .. }) => is_it(status.code()),
            FleetError::Ended { status, .. } => is_it(status.code()),
            _ => false,
        }
    }
}

/// The nodes of a run.
#[derive(Debug)]
pub struct Fleet {
    source: Source,
    /// In the order of the experiment.
    nodes: Vec<Member>,
    /// Numbers of the next events when nothing was outstanding at the last look.
    quiet_before: Option<Vec<u64>>,
    /// How often a node was not started again because of a limit.
    limits_hit: BTreeMap<Limit, u64>,
    /// Removed after the nodes, which are dropped before.
    secrets: Secrets,
}

/// Where the processes of nodes come from.
#[derive(Debug)]
enum Source {
    /// They are started here.
    Spawned(SpawnOrder),
    /// They come by themselves.
    Registered { desk: Arc<Desk>, token: Token },
}

#[derive(Debug)]
struct Member {
    config: NodeConfig,
    /// Dropped before the process: whoever looks whether that has ended needs a descriptor, and this may have them.
    client: NodeClient,
    process: NodeProcess,
    /// How often the process was started again.
    restarts: u32,
    /// Whether it is to begin without the journal that it had.
    begins_anew: bool,
    /// Number of the next event to fetch.
    next_event: u64,
    /// Events before that which nobody has got yet.
    unfetched: Vec<Event>,
    /// Jobs that the node had no room for, in the order of submission.
    pending: VecDeque<TimedJob>,
    whereabouts: Whereabouts,
    /// Of one that is down because it has ended by itself: when it restarts.
    awaited: Option<Awaited>,
    /// Whether its site has joined and was not ended because it left.
    takes_part: bool,
    /// What it said last.
    last: Option<Status>,
    /// All its events before this were fetched.
    known_until: Time,
}

impl Fleet {
    /// Starts a node for every site of the configuration's grid, which else is the same for all, and introduces
    /// them to each other. Call it on a thread that lives as long as the fleet; see [`NodeProcess::spawn`].
    ///
    /// # Errors
    /// If one does not start; those that did are killed.
    pub fn spawn(order: &SpawnOrder, config: &NodeConfig) -> Result<Fleet, FleetError> {
        let of_site = |index| NodeConfig { site: SiteId::from_index(index), ..config.clone() };
        Fleet::spawn_each(order, &(0..config.grid.len()).map(of_site).collect::<Vec<_>>())
    }

    /// Starts a node for each configuration, given in the order of the grid, and introduces them to each other
    /// unless they are to find each other. Call it on a thread that lives as long as the fleet.
    ///
    /// Draws a grid key and a token of this run for the nodes that are told none, and puts the identities that are
    /// kept in files on everybody's list. The nodes get them in files in the order's folder that the owner alone can
    /// read, and that are removed at the end.
    ///
    /// # Errors
    /// If one does not start; those that did are killed, and the files removed.
    pub fn spawn_each(order: &SpawnOrder, configs: &[NodeConfig]) -> Result<Fleet, FleetError> {
        let mut configs = configs.to_vec();
        let secrets = Secrets::share(&order.folder, &mut configs)?;
        let mut nodes = Vec::with_capacity(configs.len());
        for config in &configs {
            let process = NodeProcess::spawn(order, config)?;
            nodes.push(Member::new(config.clone(), process));
        }
        let source = Source::Spawned(order.clone());
        let limits_hit = BTreeMap::new();
        let mut fleet = Fleet { source, nodes, quiet_before: None, limits_hit, secrets };
        fleet.introduce()?;
        Ok(fleet)
    }

    /// Makes sites of processes that have registered, one for each configuration, given in the order of the grid by the
    /// instances that are to be them, and introduces them to each other.
    ///
    /// # Errors
    /// If one is not up within `patience`; those that are, are told to stop.
    pub fn enlist(
        desk: &Arc<Desk>,
        token: &Token,
        configs: Vec<(String, NodeConfig)>,
        patience: Duration,
    ) -> Result<Fleet, FleetError> {
        desk.appoint(configs.iter().cloned());
        let deadline = Instant::now() + patience;
        let mut nodes = Vec::with_capacity(configs.len());
        for (_, config) in configs {
            let left = deadline.saturating_duration_since(Instant::now());
            let process = NodeProcess::registered(desk, &config, token, None, left)?;
            nodes.push(Member::new(config, process));
        }
        let source = Source::Registered { desk: Arc::clone(desk), token: token.clone() };
        let (limits_hit, secrets) = (BTreeMap::new(), Secrets::default());
        let mut fleet = Fleet { source, nodes, quiet_before: None, limits_hit, secrets };
        fleet.introduce()?;
        Ok(fleet)
    }

    /// Tells all nodes where the others are, unless they are to find each other.
    fn introduce(&mut self) -> Result<(), FleetError> {
        if self.nodes.iter().all(|node| node.config.discovery == Discovery::Mdns) {
            return Ok(());
        }
        for index in self.up() {
            let told = self.nodes[index].client.connect(&self.others(index));
            self.explain(told)?;
        }
        Ok(())
    }

    /// Where the nodes are that are up, without one of them.
    fn others(&self, index: usize) -> Vec<PeerAddress> {
        let up = self.up().into_iter().filter(|&other| other != index);
        up.flat_map(|other| self.nodes[other].addresses()).collect()
    }

    /// Waits until every node is connected to every other.
    ///
    /// # Errors
    /// If one is not within `patience`, or has ended.
    pub fn wait_ready(&mut self, patience: Duration) -> Result<(), FleetError> {
        let deadline = Instant::now() + patience;
        for index in 0..self.nodes.len() {
            let left = deadline.saturating_duration_since(Instant::now());
            let ready = self.nodes[index].client.wait_ready(left).map(drop);
            self.explain(ready)?;
        }
        Ok(())
    }

    /// Measures round trips between all nodes, each node one at a time, in the order of the experiment.
    ///
    /// # Errors
    /// If a node does not answer, or has ended.
    pub fn calibrate(&mut self, rounds: usize) -> Result<Vec<Calibration>, FleetError> {
        let clients: Vec<NodeClient> = self.clients().cloned().collect();
        let measured = std::thread::scope(|scope| {
            let of_node = |client: &NodeClient| client.calibrate(rounds);
            let threads: Vec<_> = clients.iter().map(|client| scope.spawn(move || of_node(client))).collect();
            let join = |thread: std::thread::ScopedJoinHandle<'_, _>| {
                thread.join().expect("asking a node does not panic")
            };
            threads.into_iter().map(join).collect()
        });
        self.explain(measured)
    }

    /// Hands each job over to the site that is to submit it. What a node has no room for is handed over later, by
    /// [`Fleet::statuses`].
    ///
    /// # Errors
    /// If a node refuses one, or has ended.
    pub fn feed(
        &mut self,
        jobs: &[TimedJob],
        site_of: impl Fn(&TimedJob) -> SiteId,
    ) -> Result<(), FleetError> {
        let mut shares = vec![Vec::new(); self.nodes.len()];
        for job in jobs {
            shares[site_of(job).index()].push(*job);
        }
        for (node, mut share) in self.nodes.iter_mut().zip(shares) {
            share.sort_by_key(|job| job.spec.key());
            node.pending.extend(share);
        }
        self.feed_pending()
    }

    fn feed_pending(&mut self) -> Result<(), FleetError> {
        for index in self.up() {
            let fed = self.nodes[index].feed_pending();
            self.explain(fed)?;
        }
        Ok(())
    }

    /// Jobs that nodes have had no room for so far.
    pub fn pending(&self) -> usize {
        self.nodes.iter().map(|node| node.pending.len()).sum()
    }

    /// Orders trace time to begin at `origin` on all nodes at once, `lead` from now on the wall clock; every node
    /// must have its order by then.
    ///
    /// # Errors
    /// If a node refuses, or has ended.
    pub fn start(&mut self, factor: f64, origin: Time, lead: Duration) -> Result<StartOrder, FleetError> {
        let order = start_order(factor, origin, lead);
        self.start_by(&order)?;
        Ok(order)
    }

    /// Gives this order to all nodes that have none yet. How many there were.
    ///
    /// # Errors
    /// If a node refuses, or has ended; the others have it.
    pub fn start_by(&mut self, order: &StartOrder) -> Result<usize, FleetError> {
        let (mut started, mut failed) = (0, None);
        for index in self.up() {
            match self.nodes[index].start_by(order) {
                Ok(told) => started += usize::from(told),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        self.explain(failed.map_or(Ok(started), Err))
    }

    /// Opens a connection for orders to every node, instead of [`Fleet::feed`] and [`Fleet::start`].
    ///
    /// # Errors
    /// The first site whose node refuses, or is gone.
    pub fn lockstep(&mut self, patience: Duration) -> Result<Vec<Client>, (SiteId, LinkError)> {
        let connect = |node: &Member| {
            let ready = node.process.ready_line();
            Client::connect(&ready.http, node.process.token(), patience).map_err(|error| (ready.site, error))
        };
        self.nodes.iter().map(connect).collect()
    }

    /// A node that has ended, once something has gone wrong: watches all for a moment.
    pub fn first_ended(&mut self) -> Option<FleetError> {
        let deadline = Instant::now() + END_PATIENCE;
        loop {
            match self.look_for_end() {
                Ok(None) if Instant::now() < deadline => std::thread::sleep(END_POLL),
                Ok(ended) => return ended,
                Err(error) => return Some(error),
            }
        }
    }

    fn look_for_end(&mut self) -> Result<Option<FleetError>, FleetError> {
        for node in self.nodes.iter_mut().filter(|node| node.is_up()) {
            if let Some(status) = node.process.ended()? {
                let name = node.process.ready_line().name.clone();
                return Ok(Some(FleetError::Ended { name, status, log: node.process.log_tail() }));
            }
        }
        Ok(None)
    }

    /// All nodes as of now, or as they were when they went away, in the order of the experiment. Hands over jobs first
    /// that nodes had no room for.
    ///
    /// # Errors
    /// If one does not answer, or has ended.
    pub fn statuses(&mut self) -> Result<Vec<Status>, FleetError> {
        self.feed_pending()?;
        for index in self.up() {
            let status = self.nodes[index].client.status();
            self.nodes[index].last = Some(self.explain(status)?);
        }
        Ok(self.nodes.iter().filter_map(|node| node.last.clone()).collect())
    }

    /// Places of the nodes that are expected to answer.
    fn up(&self) -> Vec<usize> {
        (0..self.nodes.len()).filter(|&index| self.nodes[index].is_up()).collect()
    }

    /// Whether this many jobs have ended and nothing is outstanding anywhere. Ask until it is true: one look at
    /// many nodes is not one instant, so two in a row must agree that nothing happened between them.
    ///
    /// # Errors
    /// If a node does not answer, or has ended.
    pub fn is_finished(&mut self, jobs: u64) -> Result<bool, FleetError> {
        let statuses = self.statuses()?;
        Ok(self.is_finished_by(&statuses, jobs))
    }

    /// The same, by a look at all nodes that the caller has taken already.
    pub fn is_finished_by(&mut self, statuses: &[Status], jobs: u64) -> bool {
        let completed: u64 = statuses.iter().map(|status| status.completed + status.killed).sum();
        self.is_quiet_by(statuses) && completed >= jobs
    }

    /// Whether nothing is outstanding at the nodes that are there, by this look and the one before.
    pub fn is_quiet_by(&mut self, statuses: &[Status]) -> bool {
        let there = |status: &&Status| self.nodes[status.site.index()].is_up();
        // One that restarts may have something to do.
        let quiet = !self.awaits_any() && statuses.iter().filter(there).all(Status::is_quiet);
        // Heartbeats go on.
        let now = quiet.then(|| statuses.iter().map(|status| status.events - status.heartbeats).collect());
        let finished = now.is_some() && now == self.quiet_before;
        self.quiet_before = now;
        finished
    }

    /// Fetches what happened since the last time, of nodes with journals what is written: node by node, each in order.
    /// How many events there were.
    ///
    /// # Errors
    /// If a node has forgotten some, does not answer, or has ended.
    pub fn take_events(&mut self, sink: &mut impl FnMut(Event)) -> Result<u64, FleetError> {
        let mut count = self.take_unfetched(sink);
        for index in self.up() {
            let taken = self.nodes[index].take_events(sink);
            count += self.explain(taken)?;
            let node = &mut self.nodes[index];
            if let Some(last) = &node.last {
                node.known_until = Time::from_micros(last.trace_time_us);
            }
        }
        Ok(count)
    }

    /// All events before this time were fetched, of all nodes but those that never come back. One that ends between a look
    /// and the fetch after it may have some from before the look, which come when it is back.
    pub fn known_until(&self) -> Time {
        let there = self.nodes.iter().filter(|node| node.whereabouts != Whereabouts::Gone);
        there.map(|node| node.known_until).min().unwrap_or(Time::MAX)
    }

    /// Passes on what journals of nodes said that were away when they were taken over. How much it is.
    fn take_unfetched(&mut self, sink: &mut impl FnMut(Event)) -> u64 {
        let unfetched = self.nodes.iter_mut().flat_map(|node| std::mem::take(&mut node.unfetched));
        unfetched.map(sink).count() as u64
    }

    /// Fetches the same from the nodes that still answer, once something has gone wrong, and from the journals of the
    /// others; and says of which there is neither.
    pub fn salvage_events(&mut self, sink: &mut impl FnMut(Event)) -> Vec<String> {
        let mut silent = Vec::new();
        self.take_unfetched(sink);
        let here = matches!(self.source, Source::Spawned(_));
        for node in self.nodes.iter_mut().filter(|node| node.whereabouts != Whereabouts::Gone) {
            let answers = node.is_up() && node.take_events(sink).is_ok();
            let told = answers || here && node.read_events(sink).is_ok();
            if !told {
                silent.push(node.process.ready_line().name.clone());
            }
        }
        silent
    }

    /// Process ids of the nodes that run on this machine, in the order of the experiment.
    pub fn process_ids(&self) -> impl Iterator<Item = u32> {
        self.nodes.iter().filter_map(|node| node.process.id())
    }

    /// What the nodes of sites that take part said when they were up, in the order of the experiment: not of those that
    /// are still to join, nor of those that were ended because they had left.
    pub fn ready_lines(&self) -> impl Iterator<Item = &ReadyLine> {
        self.nodes.iter().filter(|node| node.takes_part).map(|node| node.process.ready_line())
    }

    /// Clients of all nodes, in the order of the experiment.
    pub fn clients(&self) -> impl Iterator<Item = &NodeClient> {
        self.nodes.iter().map(|node| &node.client)
    }

    /// Stops all nodes and waits for their ends.
    ///
    /// # Errors
    /// If one had to be killed or says that it failed; all have ended nevertheless.
    pub fn stop(self, patience: Duration) -> Result<(), FleetError> {
        let mut result = Ok(());
        for node in self.nodes {
            if matches!(node.whereabouts, Whereabouts::Down | Whereabouts::Gone) {
                continue;
            }
            let name = node.process.ready_line().name.clone();
            let how = match node.process.stop(patience)? {
                Some(end) if !end.is_failure() => continue,
                Some(status) => status.to_string(),
                None => format!("killed after {patience:?}"),
            };
            result = result.and(Err(FleetError::BadEnd { name, how }));
        }
        drop(self.secrets);
        result
    }

    /// Replaces the error of a request by its cause, if that is a node which has ended.
    fn explain<T>(&mut self, result: Result<T, ClientError>) -> Result<T, FleetError> {
        let error = match result {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        match error.is_of_one_that_ends() {
            true => Err(self.first_ended().unwrap_or(error.into())),
            false => Err(error.into()),
        }
    }
}

/// The order that trace time begins at `origin`, `lead` from now on the wall clock.
pub fn start_order(factor: f64, origin: Time, lead: Duration) -> StartOrder {
    let at = SystemTime::now() + lead;
    let unix_micros = at.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as i64);
    StartOrder { unix_micros, factor, trace_origin_us: origin.as_micros() }
}

impl Member {
    /// A node from which nothing was fetched.
    fn new(config: NodeConfig, process: NodeProcess) -> Member {
        Member {
            config,
            client: process.client(),
            process,
            restarts: 0,
            begins_anew: false,
            next_event: 0,
            unfetched: Vec::new(),
            pending: VecDeque::new(),
            whereabouts: Whereabouts::Up,
            awaited: None,
            takes_part: true,
            last: None,
            known_until: Time::from_micros(i64::MIN),
        }
    }

    /// Gives it this order to start unless it has one. Whether it had none.
    fn start_by(&self, order: &StartOrder) -> Result<bool, ClientError> {
        let told = self.client.status()?.phase < Phase::Armed;
        if told {
            self.client.start(order)?;
        }
        Ok(told)
    }

    fn feed_pending(&mut self) -> Result<(), ClientError> {
        if !self.pending.is_empty() {
            let taken = self.client.offer_again(self.pending.make_contiguous())?;
            self.pending.drain(..taken);
        }
        Ok(())
    }

    fn take_events(&mut self, sink: &mut impl FnMut(Event)) -> Result<u64, ClientError> {
        let mut count = 0;
        loop {
            let page = self.client.events(self.next_event, EVENTS_PAGE)?;
            let taken = page.len() as u64;
            self.next_event += taken;
            count += taken;
            page.into_iter().for_each(&mut *sink);
            if taken < EVENTS_PAGE as u64 {
                return Ok(count);
            }
        }
    }

    /// The same from its journal, where that is on this machine.
    fn read_events(&mut self, sink: &mut impl FnMut(Event)) -> Result<(), JournalError> {
        let dir = self.config.data_dir.as_deref().unwrap_or(Path::new(""));
        let events = inspect::events(dir, self.next_event)?;
        self.next_event += events.len() as u64;
        events.into_iter().for_each(sink);
        Ok(())
    }

    fn addresses(&self) -> impl Iterator<Item = PeerAddress> {
        let ready = self.process.ready_line();
        let address = |listen: &String| format!("{listen}/p2p/{}", ready.peer_id);
        ready.listen.iter().map(move |listen| PeerAddress { site: ready.site, address: address(listen) })
    }
}
