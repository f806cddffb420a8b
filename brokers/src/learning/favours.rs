//! The network of favors of OurGrid: who gave most is served first (Cirne et al. 2004).

use std::cmp::Reverse;
use std::collections::BTreeMap;

/// What one peer remembers of others: what it received from each and gave to it, in any unit of work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Favours {
    peers: BTreeMap<u32, (u64, u64)>,
}

impl Favours {
    /// A peer worked for this one.
    pub fn received(&mut self, peer: u32, work: u64) {
        let received = &mut self.peers.entry(peer).or_default().0;
        *received = received.saturating_add(work);
    }

    /// This one worked for a peer.
    pub fn gave(&mut self, peer: u32, work: u64) {
        let given = &mut self.peers.entry(peer).or_default().1;
        *given = given.saturating_add(work);
    }

    /// v = max(0, received - given): a peer that comes under a new name is no better off than one that owes.
    pub fn balance(&self, peer: u32) -> u64 {
        self.peers.get(&peer).map_or(0, |&(received, given)| received.saturating_sub(given))
    }

    /// Peers in the order in which they are served; of equal ones the first by number.
    pub fn order(&self, requesters: &[u32]) -> Vec<u32> {
        let mut order = requesters.to_vec();
        order.sort_by_key(|&peer| (Reverse(self.balance(peer)), peer));
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_gave_most_is_served_first_and_nobody_owes() {
        let mut favours = Favours::default();
        favours.received(1, 10);
        favours.received(2, 30);
        favours.gave(2, 25);
        favours.gave(3, 100);
        assert_eq!([1, 2, 3, 4].map(|peer| favours.balance(peer)), [10, 5, 0, 0]);
        assert_eq!(favours.order(&[4, 3, 2, 1]), [1, 2, 3, 4]);
        favours.received(3, 150);
        assert_eq!(favours.order(&[1, 2, 3]), [3, 1, 2]);
    }
}
