//! What a peer is told before it starts: the grid, the strategy, and every limit with its default.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use brokers::External;
use predict::Forecast;
use scheduler::local::LocalQueue;
use scheduler::{Grid, LocalScheduler, Pass, SiteId, Span, Strategy};
use serde::{Deserialize, Serialize};

use crate::balance::options::BalanceOptions;
use crate::broker::options::BrokerOptions;
use crate::message::jobs::TRANSFERS_MAX;
use crate::pool::options::PoolOptions;
use crate::steal::options::StealOptions;
use crate::views::Views;

/// What all members of a grid are told alike.
#[derive(Clone, Debug)]
pub struct Terms {
    /// The sites with their sizes, and members without processors.
    pub grid: Arc<Grid>,
    /// How jobs find a site.
    pub strategy: Strategy,
    /// The scheduler of local queues, where a strategy leaves sites one ([`scheduler::strategy::Nature::queues`]).
    pub local: LocalScheduler,
    /// When local schedulers decide.
    pub pass: Pass,
    /// How long queues of sites, and brokers that see into sites, believe that jobs run, each by what it was told of ends; as long as users
    /// say, if nobody predicts.
    pub forecast: Option<Forecast>,
    /// Switches and limits of the protocol.
    pub options: Options,
    /// Whom each member knows; none: all know all. Of those strategies alone that need nobody in between ([`scheduler::strategy::Nature::views`]),
    /// and of sites that nothing befalls.
    pub views: Option<Arc<Views>>,
    /// The seed of what is random. Peers draw what they decide from streams of their own.
    pub seed: u64,
    /// Who decides elsewhere, if somebody does: for [`scheduler::BrokerRule::External`] and [`LocalScheduler::External`].
    /// Without, the fallback of the one and EASY for the other. A site that restarts asks somebody new.
    pub external: Option<Arc<dyn External>>,
}

impl Terms {
    /// Published defaults, and nobody who decides elsewhere.
    pub fn new(grid: Arc<Grid>, strategy: Strategy) -> Terms {
        Terms {
            grid,
            strategy,
            local: LocalScheduler::default(),
            pass: Pass::default(),
            forecast: None,
            options: Options::default(),
            views: None,
            seed: 1,
            external: None,
        }
    }

    /// The same with the neighbors that [`Options::view`] asks for, if that is fewer than there are others.
    pub fn with_views(mut self) -> Terms {
        let others = self.grid.len() - 1;
        let neighbors = self.options.view.map(|view| view as usize).filter(|&view| view < others);
        self.views = neighbors.map(|view| Arc::new(Views::settled(others + 1, view, self.seed)));
        self
    }

    /// What the member of this rank is told.
    pub fn at_rank(&self, rank: usize) -> PeerConfig {
        PeerConfig { site: self.grid.at_rank(rank), terms: self.clone() }
    }
}

/// Everything a peer is told: where it is, and the terms of its grid, which are read and changed as if they were its own.
#[derive(Clone, Debug)]
pub struct PeerConfig {
    /// The site of this peer.
    pub site: SiteId,
    /// What the others are told, too.
    pub terms: Terms,
}

impl Deref for PeerConfig {
    type Target = Terms;

    fn deref(&self) -> &Terms {
        &self.terms
    }
}

impl DerefMut for PeerConfig {
    fn deref_mut(&mut self) -> &mut Terms {
        &mut self.terms
    }
}

impl PeerConfig {
    /// The local queue of the site, idle.
    pub(crate) fn queue(&self) -> LocalQueue {
        let capacity = self.grid.capacity(self.site);
        match (&self.external, self.local) {
            (Some(external), LocalScheduler::External) => {
                LocalQueue::external(external.queue(&self.grid, self.site), capacity.processors())
            }
            _ => {
                let queue = LocalQueue::new(self.local, self.pass, capacity);
                match self.forecast {
                    Some(forecast) => queue.with_estimator(forecast.estimator()),
                    None => queue,
                }
            }
        }
    }
}

/// How an idle site learns that there is something to steal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Discovery {
    /// Victims tell subscribers when their queues change, and serve standing requests.
    #[default]
    Standing,
    /// Thieves ask smaller sites one after another, then sleep.
    Polling {
        /// First sleep, doubled after each round without success.
        period: Span,
        /// The sleep that doubling stops at.
        period_max: Span,
    },
}

/// Switches and limits of the protocol: those of all sites, and a part for each family that has its own. Written flat.
/// Defaults are what the equality with the ideal was checked with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Options {
    /// Notices and standing requests, or polling.
    pub discovery: Discovery,
    /// Of job stealing.
    #[serde(flatten)]
    pub steal: StealOptions,
    /// Of the global queue.
    #[serde(flatten)]
    pub pool: PoolOptions,
    /// Of the baselines.
    #[serde(flatten)]
    pub balance: BalanceOptions,
    /// Of brokers.
    #[serde(flatten)]
    pub broker: BrokerOptions,
    /// Jobs in one grant, at most [`TRANSFERS_MAX`].
    pub batch: usize,
    /// After this many declines a job is granted firmly: the receiver must take it.
    pub bounces_max: u32,
    /// First wait before an unanswered message is sent again, doubled up to [`RETRY_FACTOR_MAX`] times.
    /// At least twice the largest delay; `None` on links that lose nothing.
    pub retry: Option<Span>,
    /// After this long an unanswered grant is recalled instead of sent again. `None`: never.
    pub recall: Option<Span>,
    /// Transfers to one site that may be unanswered. A request beyond that is refused as busy.
    pub unanswered_max: usize,
    /// A job is given away only if it would start elsewhere earlier by more than this and the round trip to get it
    /// there. `None`: whatever fits.
    pub margin: Option<Span>,
    /// Whether an event is emitted for every message.
    pub message_events: bool,
    /// How many others a site knows, where that is not all ([`Views`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub view: Option<u32>,
    /// How often a site says that it is there; see [`crate::membership`]. `None`: nobody asks.
    #[serde(default)]
    pub heartbeat: Option<Span>,
    /// After this long without a sign a site is suspected. At least some heartbeats and twice the largest delay.
    #[serde(default = "default_suspect_after")]
    pub suspect_after: Span,
    /// After this long without a sign a site is gone, and jobs that it holds are taken over. They may run twice.
    /// `None`: never.
    #[serde(default)]
    pub lease: Option<Span>,
    /// Whether a peer emits [`crate::Fact`]s for a journal. Without them a site does not survive a crash.
    #[serde(default)]
    pub journal: bool,
    /// What becomes of jobs that executed when their site crashed.
    #[serde(default)]
    pub interrupted: Interrupted,
}

fn default_suspect_after() -> Span {
    Span::from_secs(60)
}

/// What becomes of jobs that executed when their site crashed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Interrupted {
    /// They wait again, at their old place in the queue, and execute from the beginning.
    #[default]
    Requeue,
    /// They are reported as killed and not executed again.
    Kill,
}

/// The longest wait between repetitions, as a multiple of [`Options::retry`].
pub const RETRY_FACTOR_MAX: i64 = 32;

impl Default for Options {
    fn default() -> Self {
        Options {
            discovery: Discovery::Standing,
            steal: StealOptions::default(),
            pool: PoolOptions::default(),
            balance: BalanceOptions::default(),
            broker: BrokerOptions::default(),
            batch: TRANSFERS_MAX,
            bounces_max: 2,
            retry: None,
            recall: None,
            unanswered_max: TRANSFERS_MAX,
            margin: None,
            message_events: true,
            view: None,
            heartbeat: None,
            suspect_after: default_suspect_after(),
            lease: None,
            journal: false,
            interrupted: Interrupted::Requeue,
        }
    }
}
