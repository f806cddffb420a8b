//! What a peer is told before it starts: the grid, the strategy, and every limit with its default.

use std::sync::Arc;

use scheduler::{Grid, LocalScheduler, Pass, SiteId, Span, Strategy};
use serde::{Deserialize, Serialize};

use crate::codec::TRANSFERS_MAX;

/// Everything a peer is told.
#[derive(Clone, Debug)]
pub struct PeerConfig {
    /// The site of this peer.
    pub site: SiteId,
    /// All sites with their sizes. Every peer is told the same.
    pub grid: Arc<Grid>,
    /// How jobs find a site.
    pub strategy: Strategy,
    /// The scheduler of the local queue, used by [`Strategy::Local`].
    pub local: LocalScheduler,
    /// When the local scheduler decides.
    pub pass: Pass,
    /// Switches and limits of the protocol.
    pub options: Options,
    /// The seed of what strategies decide at random. Every peer is told the same and draws from a stream of its own.
    pub seed: u64,
}

/// How a hungry site learns that there is something to steal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Discovery {
    /// Victims tell subscribers when their queues change, and serve standing requests.
    #[default]
    Standing,
    /// Thieves ask smaller sites one after another, then sleep.
    Polling {
        /// First sleep, doubled after each round without success.
        period: Span,
        /// Longest sleep.
        period_max: Span,
    },
}

/// Switches and limits of the protocol. Defaults are what the equality with the ideal was checked with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Options {
    /// Notices and standing requests, or polling.
    pub discovery: Discovery,
    /// Outstanding requests of one thief, to different victims. At least 1.
    pub window: usize,
    /// Jobs in one grant, at most [`TRANSFERS_MAX`].
    pub batch: usize,
    /// Serve thieves that believe the queue empty, too. Saves two delays on an idle grid, costs declines.
    pub eager: bool,
    /// After this many declines a job is granted firmly: the receiver must take it.
    pub bounces_max: u32,
    /// First wait before an unanswered message is sent again, doubled up to [`RETRY_FACTOR_MAX`] times.
    /// At least twice the largest delay; `None` on links that lose nothing.
    pub retry: Option<Span>,
    /// After this long an unanswered grant is recalled instead of sent again. `None`: never.
    pub recall: Option<Span>,
    /// Transfers to one site that may be unanswered. A request beyond that is refused as busy.
    pub unanswered_max: usize,
    /// How often a site repeats its board while something waits in the global queue; see [`crate::pool`]. At least
    /// twice the largest delay, better ten times; `None` on links that lose nothing.
    pub refresh: Option<Span>,
    /// Baselines: refusals in a row, at most one per other site, after which a site stops asking and waits.
    pub tries: usize,
    /// Baselines that choose by digests: how often a site passes on what changed.
    pub gossip: Span,
    /// To how many sites, drawn at random, each time.
    pub gossip_fanout: usize,
    /// A job is given away only if it would start elsewhere earlier by more than this and the round trip to get it
    /// there. `None`: whatever fits.
    pub margin: Option<Span>,
    /// Whether an event is emitted for every message.
    pub message_events: bool,
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
            window: 1,
            batch: TRANSFERS_MAX,
            eager: false,
            bounces_max: 2,
            retry: None,
            recall: None,
            unanswered_max: TRANSFERS_MAX,
            refresh: None,
            tries: 16,
            gossip: Span::from_secs(60),
            gossip_fanout: 3,
            margin: None,
            message_events: true,
            heartbeat: None,
            suspect_after: default_suspect_after(),
            lease: None,
            journal: false,
            interrupted: Interrupted::Requeue,
        }
    }
}
