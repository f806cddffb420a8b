//! The JSON of the control interface, for both ends.

use std::collections::{BTreeMap, BTreeSet};

use scheduler::{Grid, SiteId, TimedJob};
use serde::{Deserialize, Serialize};

use crate::peer_address::PeerAddress;

/// The one line a node prints when it is up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadyLine {
    /// The site that the node is.
    pub site: SiteId,
    /// Name of the site in the grid.
    pub name: String,
    /// What stands after `/p2p/` in its addresses.
    pub peer_id: String,
    /// Where other sites can dial it.
    pub listen: Vec<String>,
    /// Where the control interface is.
    pub http: String,
    /// Where metrics are in addition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics: Option<String>,
}

/// Addresses of other sites.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConnectOrder {
    /// At least one per site; those known already are kept.
    pub peers: Vec<PeerAddress>,
}

/// Which links the operator has cut, as one end of them is told. The whole of it: a site that is not named is not cut off
/// any more.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinksOrder {
    /// Nothing is sent to these sites.
    #[serde(default)]
    pub cut_to: BTreeSet<SiteId>,
    /// Nothing is taken from these sites.
    #[serde(default)]
    pub cut_from: BTreeSet<SiteId>,
}

/// An order to measure round trips to all other sites, over the connections that the run uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CalibrateOrder {
    /// Round trips to each site, 1 to 1000, after one that is not counted.
    pub rounds: usize,
}

/// Round trips from one site to the others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Calibration {
    /// The site that measured.
    pub site: SiteId,
    /// All other sites, in order.
    pub links: Vec<RoundTrips>,
}

/// Round trips of small frames to one site.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoundTrips {
    /// The other site.
    pub to: SiteId,
    /// In microseconds of wall-clock time, in the order of measuring. Fewer than ordered if the site stopped
    /// answering.
    pub micros: Vec<u64>,
}

impl RoundTrips {
    /// The median, the lower one of two. `None` without any.
    pub fn median_us(&self) -> Option<u64> {
        let mut sorted = self.micros.clone();
        sorted.sort_unstable();
        sorted.get(sorted.len().checked_sub(1)? / 2).copied()
    }
}

/// A job that is given to a site because nobody is left who is responsible for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Adoption {
    /// The job with its true run time.
    pub job: TimedJob,
    /// The epoch under which it is owned from then on; copies of older ones are void unless they run.
    pub epoch: u32,
}

impl Adoption {
    /// Whether the job can be one of this grid, under an epoch that can be.
    pub fn is_lawful(&self, grid: &Grid) -> bool {
        protocol::is_job_of(grid, &self.job.spec)
            && (0..=protocol::MICROS_MAX).contains(&self.job.run_time.as_micros())
            && self.epoch <= protocol::EPOCH_MAX
    }
}

/// Why an order was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The reason in words.
    pub reason: String,
    /// Of a node that is busy: how many jobs it has room for. The same order may be given again later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room: Option<usize>,
}

/// Where a node is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Not every other site is connected.
    Connecting,
    /// Every other site is connected and has answered a probe.
    Ready,
    /// The start is ordered and ahead, or the clock was stopped.
    Armed,
    /// Trace time advances.
    Running,
}

/// A node as of now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The site that the node is.
    pub site: SiteId,
    /// Name of the site in the grid.
    pub name: String,
    /// Where in its life.
    pub phase: Phase,
    /// Whether every other site is connected and has answered a probe, in every phase.
    pub connected: bool,
    /// Which incarnation of the site's process this is.
    pub instance: u64,
    /// The node's peer id.
    pub peer_id: String,
    /// Where other sites can dial it.
    pub listen: Vec<String>,
    /// Trace time in microseconds.
    pub trace_time_us: i64,
    /// Processors of the site.
    pub processors: u32,
    /// Processors that execute nothing.
    pub idle: u32,
    /// Jobs whose first owner the site was.
    pub submitted: u64,
    /// Jobs that ended here.
    pub completed: u64,
    /// Jobs that were given up because the node crashed while they executed here.
    #[serde(default)]
    pub killed: u64,
    /// How often the node went on with its journal.
    #[serde(default)]
    pub restarts: u32,
    /// The number of the next event.
    pub events: u64,
    /// Events of this incarnation that were about heartbeats.
    #[serde(default)]
    pub heartbeats: u64,
    /// Whether the trace clock was stopped and has not gone on.
    #[serde(default)]
    pub paused: bool,
    /// Whether the site leaves and has nothing left to do.
    #[serde(default)]
    pub has_left: bool,
    /// What is not finished.
    pub outstanding: Outstanding,
    /// All other sites.
    pub links: Vec<LinkStatus>,
    /// Frames that were not acknowledged.
    pub frames_lost: u64,
    /// How often each limit was hit.
    pub limits_hit: BTreeMap<String, u64>,
}

impl Status {
    /// Whether the site has nothing left to do on its own: then only another site can cause anything here.
    pub fn is_quiet(&self) -> bool {
        self.outstanding == Outstanding::default()
    }
}

/// What is not finished at a site. All zero and `unanswered` false: nothing is outstanding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outstanding {
    /// Jobs held until their submission.
    pub arrivals: usize,
    /// Jobs that wait here.
    pub waiting: usize,
    /// Jobs that execute here.
    pub running: usize,
    /// Jobs granted to other sites that have not answered.
    pub leaving: usize,
    /// Messages in the delay line but for heartbeats.
    pub delayed: usize,
    /// Frames sent and not acknowledged.
    pub in_flight: u64,
    /// Frames received and not handled.
    pub inbox: usize,
    /// The peer waits for an answer or may have to repeat a message.
    pub unanswered: bool,
}

impl Outstanding {
    /// Whether nothing is left but frames between nodes. Heartbeats are such, and on a machine that is too busy to acknowledge them in
    /// time some are always under way.
    pub fn has_only_frames(self) -> bool {
        let frames = Outstanding { in_flight: self.in_flight, inbox: self.inbox, ..Outstanding::default() };
        self == frames
    }
}

/// One other site as this one sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkStatus {
    /// The other site.
    pub site: SiteId,
    /// Name of the other site.
    pub name: String,
    /// Whether it can be reached.
    pub connected: bool,
    /// Which incarnation of its process is there.
    pub instance: Option<u64>,
    /// Why it was refused, or refuses this node.
    pub problem: Option<String>,
    /// Latest round trip of a ping in microseconds of wall-clock time. Half of it, times the factor of the clock,
    /// is what the real network adds to an injected delay.
    pub rtt_us: Option<u64>,
    /// Mean injected delay of messages without payload to it, in microseconds of trace time.
    pub delay_out_us: i64,
    /// Mean injected delay of messages without payload from it, in microseconds of trace time.
    pub delay_in_us: i64,
    /// Delay of messages from it as measured, in trace time.
    pub measured: Option<MeasuredDelay>,
    /// Whether the operator has cut the way to it.
    #[serde(default)]
    pub cut_to: bool,
    /// Whether the operator has cut the way from it.
    #[serde(default)]
    pub cut_from: bool,
}

/// One-way delay of the messages that arrived on a link, from the peer that sent to the peer that received, in
/// microseconds of trace time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeasuredDelay {
    /// How many messages were measured.
    pub count: u64,
    /// Mean delay over all of them.
    pub mean_us: i64,
    /// Mean of what of it was injected.
    #[serde(default)]
    pub injected_mean_us: i64,
    /// The least that came on top of what was injected.
    #[serde(default)]
    pub added_min_us: i64,
    /// The most that did.
    #[serde(default)]
    pub added_max_us: i64,
    /// Median, to about 2 %.
    #[serde(default)]
    pub median_us: i64,
    /// The shortest delay.
    pub min_us: i64,
    /// The longest delay.
    pub max_us: i64,
    /// Messages that were overtaken by a later one.
    pub overtaken: u64,
}

/// One direction of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    To,
    From,
}

impl Way {
    pub(crate) const ALL: [Way; 2] = [Way::To, Way::From];

    /// The name in metrics.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Way::To => "to",
            Way::From => "from",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_under_way_are_no_work_and_everything_else_is() {
        let with = |change: fn(&mut Outstanding)| {
            let mut outstanding = Outstanding { in_flight: 3, inbox: 1, ..Outstanding::default() };
            change(&mut outstanding);
            outstanding.has_only_frames()
        };
        assert!(with(|_| ()));
        assert!(!with(|outstanding| outstanding.arrivals = 1));
        assert!(!with(|outstanding| outstanding.waiting = 1));
        assert!(!with(|outstanding| outstanding.running = 1));
        assert!(!with(|outstanding| outstanding.leaving = 1));
        assert!(!with(|outstanding| outstanding.delayed = 1));
        assert!(!with(|outstanding| outstanding.unanswered = true));
    }
}
