//! Who is dialed when: the lower peer id dials, the higher waits a grace period, failures back off.
//!
//! Two nodes that dial each other at once end up with two connections that both stay open, and a limit of one
//! connection per peer closes both, so the roles are settled beforehand. Pure: the caller brings the time.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use libp2p::{Multiaddr, PeerId};
use tokio::time::Instant;

/// Addresses kept per peer. Arbitrary; a node has a few interfaces at most.
const ADDRESSES_MAX: usize = 8;
/// The higher id dials if the lower did not within this time, because it may not know the address.
const GRACE: Duration = Duration::from_secs(3);
/// First wait after a failure; it doubles with each.
const BACKOFF_MIN: Duration = Duration::from_millis(200);
/// Longest wait after a failure.
const BACKOFF_MAX: Duration = Duration::from_secs(30);

#[derive(Debug)]
struct NextDial {
    addresses: Vec<Multiaddr>,
    failures: u32,
    /// When to dial; `None` while connected or dialing.
    due: Option<Instant>,
}

/// All peers worth dialing.
#[derive(Debug)]
pub(super) struct DialTable {
    local: PeerId,
    /// Whether the others cannot know yet that this node is there again, so that all are dialed at once.
    rejoins: bool,
    entries: BTreeMap<PeerId, NextDial>,
}

impl DialTable {
    pub(super) fn new(local: PeerId, rejoins: bool) -> Self {
        DialTable { local, rejoins, entries: BTreeMap::new() }
    }

    /// Notes an address of a peer and plans to dial it. The newest address comes first.
    pub(super) fn learn(&mut self, peer: PeerId, address: Multiaddr, connected: bool, now: Instant) {
        let grace = if self.rejoins || self.dials(peer) { Duration::ZERO } else { GRACE };
        let entry = self.entries.entry(peer).or_insert_with(|| NextDial {
            addresses: Vec::new(),
            failures: 0,
            due: (!connected).then_some(now + grace),
        });
        entry.addresses.retain(|known| *known != address);
        entry.addresses.insert(0, address);
        entry.addresses.truncate(ADDRESSES_MAX);
    }

    /// Whether connecting is this node's part rather than the other's.
    pub(super) fn dials(&self, peer: PeerId) -> bool {
        self.local < peer
    }

    /// The peers to dial now. Each must be reported as connected or failed afterwards.
    pub(super) fn take_due(&mut self, now: Instant) -> Vec<(PeerId, Vec<Multiaddr>)> {
        let due = self.entries.iter_mut().filter(|(_, entry)| entry.due.is_some_and(|due| due <= now));
        due.map(|(peer, entry)| {
            entry.due = None;
            (*peer, entry.addresses.clone())
        })
        .collect()
    }

    /// When the next peer is to be dialed.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.entries.values().filter_map(|entry| entry.due).min()
    }

    pub(super) fn on_connected(&mut self, peer: PeerId) {
        if let Some(entry) = self.entries.get_mut(&peer) {
            entry.due = None;
            entry.failures = 0;
        }
    }

    pub(super) fn on_disconnected(&mut self, peer: PeerId, now: Instant) {
        let grace = if self.dials(peer) { BACKOFF_MIN } else { GRACE };
        if let Some(entry) = self.entries.get_mut(&peer) {
            entry.due = Some(now + grace);
        }
    }

    pub(super) fn on_failed(&mut self, peer: PeerId, now: Instant) {
        if let Some(entry) = self.entries.get_mut(&peer) {
            let wait = backoff(peer, entry.failures);
            entry.failures = entry.failures.saturating_add(1);
            entry.due = Some(now + wait);
        }
    }

    /// The peer was refused, or refused us: try again, but as rarely as possible.
    pub(super) fn on_refused(&mut self, peer: PeerId, now: Instant) {
        if let Some(entry) = self.entries.get_mut(&peer) {
            entry.failures = u32::MAX;
            entry.due = Some(now + BACKOFF_MAX);
        }
    }
}

/// The wait after the failure with this number, from 0: doubling, within a quarter of the nominal value, so that
/// nodes that lost the same peer do not return in step. The same peer and number give the same wait.
fn backoff(peer: PeerId, failures: u32) -> Duration {
    let nominal = BACKOFF_MIN.saturating_mul(1 << failures.min(16)).min(BACKOFF_MAX);
    let mut hasher = DefaultHasher::new();
    (peer, failures).hash(&mut hasher);
    let thousandths = 750 + (hasher.finish() % 501) as u32;
    nominal * thousandths / 1000
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::Identity;
    use scheduler::SiteId;

    fn two_peers() -> (PeerId, PeerId) {
        let mut ids = [1, 2].map(|site| Identity::derived("dial", 0, SiteId(site)).peer());
        ids.sort();
        (ids[0], ids[1])
    }

    fn address(port: u16) -> Multiaddr {
        format!("/ip4/127.0.0.1/tcp/{port}").parse().unwrap()
    }

    #[test]
    fn the_lower_id_dials_at_once_and_the_higher_after_the_grace_period() {
        let (low, high) = two_peers();
        let now = Instant::now();

        let mut of_low = DialTable::new(low, false);
        of_low.learn(high, address(1), false, now);
        assert_eq!(of_low.take_due(now), [(high, vec![address(1)])]);
        assert_eq!(of_low.next_due(), None, "a dial is under way");

        let mut of_high = DialTable::new(high, false);
        of_high.learn(low, address(1), false, now);
        assert_eq!(of_high.take_due(now), []);
        assert_eq!(of_high.next_due(), Some(now + GRACE));

        let mut back = DialTable::new(high, true);
        back.learn(low, address(1), false, now);
        assert_eq!(back.take_due(now), [(low, vec![address(1)])], "the other does not know that it is back");
    }

    #[test]
    fn failures_back_off_and_a_connection_resets_them() {
        let (low, high) = two_peers();
        let now = Instant::now();
        let mut table = DialTable::new(low, false);
        table.learn(high, address(1), false, now);

        let mut waits = Vec::new();
        for _ in 0..10 {
            table.on_failed(high, now);
            waits.push(table.next_due().unwrap() - now);
        }
        for (number, wait) in waits.iter().enumerate() {
            let nominal = BACKOFF_MIN.saturating_mul(1 << number).min(BACKOFF_MAX);
            assert!(*wait >= nominal * 3 / 4 && *wait <= nominal * 5 / 4, "wait {number} is {wait:?}");
        }

        table.on_connected(high);
        assert_eq!(table.next_due(), None);
        table.on_disconnected(high, now);
        assert_eq!(table.next_due(), Some(now + BACKOFF_MIN));
    }

    #[test]
    fn the_newest_address_is_tried_first_and_the_number_is_bounded() {
        let (low, high) = two_peers();
        let now = Instant::now();
        let mut table = DialTable::new(low, false);
        for port in 1..=20 {
            table.learn(high, address(port), false, now);
        }
        let addresses = table.take_due(now).remove(0).1;
        assert_eq!(addresses.len(), ADDRESSES_MAX);
        assert_eq!(addresses[0], address(20));
    }
}
