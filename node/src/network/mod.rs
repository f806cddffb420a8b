//! Bytes between sites: libp2p behind a handle that knows only [`SiteId`]s and opaque frames.
//!
//! No type of libp2p leaves this folder. Finding, dialing, authenticating and checking the other nodes happens in
//! `task`; what a frame contains is the business of `crate::frame` and `protocol::codec`. Nothing is retried
//! here: a frame is delivered once or reported as lost, and the peers' own timers do the rest.

mod address;
mod codec;
mod dial;
#[cfg(feature = "doors")]
pub(crate) mod doors;
pub(crate) mod echo;
mod frames;
mod grid_key;
mod guard;
pub mod handle;
mod hello;
mod identity;
mod patience;
mod rate;
mod refused;
mod streams;
mod swarm;
mod task;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use scheduler::SiteId;
use scheduler::event::MessageKind;
use tokio::sync::oneshot;

pub(crate) use address::listen_at;
pub use codec::Refusal;
pub use grid_key::{GridKey, GridKeyError};
pub use identity::{Identity, IdentityError};
pub use refused::{Offence, RefusedConnection};

use crate::limits::Limits;
pub(crate) use refused::Counts;

/// Default of [`NetworkConfig::frame_bytes_max`]: 256 KiB, a grant of some two thousand jobs.
pub const FRAME_BYTES_MAX: usize = 256 * 1024;
/// Frames to one peer that are not answered. Arbitrary; enough to keep the link busy.
pub(crate) const IN_FLIGHT_MAX: usize = 128;
/// Frames waiting for one of the [`IN_FLIGHT_MAX`] places of a peer. Arbitrary; beyond it frames are lost.
pub(crate) const OUTBOX_MAX: usize = 4096;
/// Commands and frames on their way to the network task. Arbitrary; beyond it frames are lost.
const COMMANDS_MAX: usize = 4096;
/// Reports of lost frames on their way from the network task, beside the frames. Arbitrary; beyond it the event of a
/// loss is missing, not its count.
const LOSSES_MAX: usize = 4096;

/// The most [`Limits::inbox_frames`] can be.
const INBOX_FRAMES_CAP: usize = 1 << 24;

/// How nodes find each other.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, clap::ValueEnum,
)]
#[serde(rename_all = "snake_case")]
pub enum Discovery {
    /// From a list of addresses, at the start or by `/control/connect`.
    #[default]
    Static,
    /// By multicast DNS on the local network, in addition to the list.
    Mdns,
}

/// Everything the network of one node needs to know.
#[derive(Clone)]
pub struct NetworkConfig {
    /// Name of the run; nodes of other runs are ignored.
    pub run: String,
    /// The site that this node is.
    pub site: SiteId,
    /// Processors of all sites, in the order of the experiment.
    pub processors: Vec<u32>,
    /// This node's key.
    pub identity: Identity,
    /// The seed all nodes of the run derive their keys from, if they do.
    pub identity_seed: Option<u64>,
    /// Which incarnation of this site's process this is; with a journal, which journal it has.
    pub instance: u64,
    /// Whether the others know this node from an earlier incarnation: then it dials them all at once.
    pub rejoins: bool,
    /// With a journal: those of other sites, as far as known. A site that comes with another one is refused.
    pub journals: Option<BTreeMap<SiteId, u64>>,
    /// Multiaddress to listen on, such as `/ip4/127.0.0.1/tcp/0`.
    pub listen: String,
    /// How to find the others.
    pub discovery: Discovery,
    /// Longest frame that is sent or taken, in bytes.
    pub frame_bytes_max: usize,
    /// The key that all nodes of the grid share.
    pub grid_key: Option<GridKey>,
    /// Whether to listen beyond the loopback interface without such a key.
    pub allow_open_network: bool,
    /// Peer ids of other sites, in addition to those that follow from the seed.
    pub members: Vec<(SiteId, String)>,
    /// What is taken from others at most.
    pub limits: Limits,
}

/// Why the network of a node does not start or does not take an address.
#[derive(Debug, thiserror::Error)]
pub enum NetworkError {
    /// The name of the run cannot be part of a protocol name.
    #[error("run {0:?}: use 1 to 64 letters, digits, '-', '_' or '.'")]
    RunName(String),
    /// Not an address.
    #[error("address {address:?}: {reason}; write it as /ip4/127.0.0.1/tcp/4001")]
    Address {
        /// What was given.
        address: String,
        /// What is wrong.
        reason: String,
    },
    /// Everybody could connect.
    #[error(
        "listen on {0}: beyond the loopback interface a node needs the grid's key; make one with `stealgrid key new \
         FILE`, give it to all nodes with --grid-key FILE, or let everybody in with --allow-open-network"
    )]
    Open(String),
    /// The identity of a site makes no sense.
    #[error("member {site}={peer_id}: {reason}")]
    Member {
        /// The site that was named.
        site: SiteId,
        /// What was given.
        peer_id: String,
        /// What is wrong.
        reason: String,
    },
    /// The listener does not come up.
    #[error("listen on {address}: {error}; choose a free port, or 0 for any")]
    Listen {
        /// The address that was to be listened on.
        address: String,
        /// What the system said.
        error: std::io::Error,
    },
    /// The peer of an address cannot be authenticated.
    #[error(
        "peer {site}={address}: its peer id is unknown; append /p2p/ and the peer_id the node prints at its start, \
         name it with --member, or give all nodes the same identity seed"
    )]
    PeerUnknown {
        /// The site that listens there.
        site: SiteId,
        /// Its address, without a peer id.
        address: String,
    },
    /// The address names another key than the site has.
    #[error("peer {site}={address}: the list of identities gives this site the peer id {expected}")]
    PeerMismatch {
        /// The site that listens there.
        site: SiteId,
        /// Its address, with the wrong peer id.
        address: String,
        /// The peer id that belongs to the site.
        expected: String,
    },
    /// No such site, or the node itself.
    #[error("peer {0}: not another site of this run")]
    PeerSite(SiteId),
    /// The parts of libp2p do not start.
    #[error("start the network: {0}")]
    Start(String),
    /// The network task has ended.
    #[error("the network has been shut down")]
    Closed,
}

/// A frame to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// The site that it is for.
    pub to: SiteId,
    /// What the frame is, to say so if it is lost.
    pub kind: MessageKind,
    /// The frame as it goes over the wire.
    pub bytes: Vec<u8>,
}

/// What the network delivers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// A frame from a node that has proved to be this site.
    Frame {
        /// The site that sent it.
        from: SiteId,
        /// In which incarnation the sender introduced itself.
        instance: u64,
        /// The frame as it came over the wire.
        bytes: Vec<u8>,
    },
    /// A frame of ours was not acknowledged. The other node may have it nevertheless.
    Lost {
        /// The site that it was for.
        to: SiteId,
        /// What the frame was.
        kind: MessageKind,
    },
}

/// One other site as the network sees it.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct LinkState {
    /// Both nodes have taken each other's hello on a connection that is up.
    pub connected: bool,
    /// Which incarnation of the site's process is there.
    pub instance: Option<u64>,
    /// Latest round trip of a ping, on the wall clock.
    pub rtt: Option<Duration>,
    /// Why the node was refused or refused us.
    pub problem: Option<String>,
}

/// The network as of now.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NetworkState {
    /// This node's peer id.
    pub peer_id: String,
    /// Addresses that other nodes can dial.
    pub listen: Vec<String>,
    /// All other sites.
    pub links: BTreeMap<SiteId, LinkState>,
}

impl NetworkState {
    /// Listening, connected to every other site, and each has answered a probe.
    pub fn ready(&self) -> bool {
        !self.listen.is_empty() && self.links.values().all(|link| link.connected && link.rtt.is_some())
    }
}

/// What the network counts; all but `in_flight` only grow.
#[derive(Debug, Default)]
pub struct NetworkCounters {
    in_flight: AtomicU64,
    lost: AtomicU64,
    outbox_full: AtomicU64,
    inbox_full: AtomicU64,
    refused: AtomicU64,
    /// Frames and bytes that arrived and were not taken.
    inbox_frames: AtomicUsize,
    inbox_bytes: AtomicUsize,
    inbox_of: Vec<AtomicUsize>,
    counts: Counts,
}

impl NetworkCounters {
    /// Frames accepted for sending that are neither acknowledged nor lost.
    pub fn in_flight(&self) -> u64 {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// Frames that were not acknowledged.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Frames lost because too many were waiting to be sent.
    pub fn outbox_full(&self) -> u64 {
        self.outbox_full.load(Ordering::Relaxed)
    }

    /// Frames not taken because too many were waiting to be handled.
    pub fn inbox_full(&self) -> u64 {
        self.inbox_full.load(Ordering::Relaxed)
    }

    /// What was refused to whom, and why.
    pub(crate) fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Requests refused, for one of the reasons of [`Refusal`].
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }
}

/// A frame's place in the inbox; free again when this is dropped.
struct Place {
    counters: Arc<NetworkCounters>,
    from: SiteId,
    bytes: usize,
}

impl Place {
    /// A place for a frame of so many bytes, if there is one left for its sender.
    fn take(counters: &Arc<NetworkCounters>, limits: &Limits, from: SiteId, bytes: usize) -> Option<Place> {
        let of_peer = counters.inbox_of.get(from.index())?;
        let full = counters.inbox_frames.load(Ordering::Relaxed) >= limits.inbox_frames
            || of_peer.load(Ordering::Relaxed) >= limits.inbox_frames_per_peer
            || counters.inbox_bytes.load(Ordering::Relaxed) + bytes > limits.inbox_bytes;
        if full {
            return None;
        }
        // The network task alone takes places, so nobody else has taken the last one meanwhile.
        counters.inbox_frames.fetch_add(1, Ordering::Relaxed);
        counters.inbox_bytes.fetch_add(bytes, Ordering::Relaxed);
        of_peer.fetch_add(1, Ordering::Relaxed);
        Some(Place { counters: Arc::clone(counters), from, bytes })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.counters.inbox_frames.fetch_sub(1, Ordering::Relaxed);
        self.counters.inbox_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        self.counters.inbox_of[self.from.index()].fetch_sub(1, Ordering::Relaxed);
    }
}

enum Command {
    Send(Outgoing),
    Offence { by: SiteId, offence: Offence },
    Probe { to: SiteId, answer: oneshot::Sender<Duration> },
    Connect { peers: Vec<(SiteId, String)>, answer: oneshot::Sender<Result<(), NetworkError>> },
}
