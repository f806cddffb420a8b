//! The overlay that peers have made of themselves by the time that something else begins, for whoever simulates that and not
//! the overlay: nobody fails, and no message takes time, as in the papers.

use std::collections::{BTreeSet, VecDeque};

use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;
use scheduler::Time;

use crate::{Contact, Input, Membership, Message, Options, Output};

/// Rounds after which views change little: the degree, the clustering and the mean path of ten thousand peers are within a
/// hundredth of what they are after fifty.
pub const ROUNDS: u32 = 10;

/// Messages that follow from one thing that happens, as the mean for a peer, beyond which they are lost. With places for one neighbor each,
/// somebody of an odd number is without one and takes that of another, who takes that of a third, in no time and for ever.
const AT_ONCE_MAX: usize = 100;

/// What peers have to do with each other while they settle: who says what to whom, at once.
struct Settling {
    peers: Vec<Membership<u32, (), ChaCha8Rng>>,
    wakes: BTreeSet<(Time, u32)>,
    at_once: VecDeque<(u32, u32, Message<u32, ()>)>,
}

impl Settling {
    fn tell(&mut self, now: Time, peer: u32, input: Input<u32, ()>) {
        self.handle(now, peer, input);
        for _ in 0..AT_ONCE_MAX.saturating_mul(self.peers.len()) {
            let Some((from, to, message)) = self.at_once.pop_front() else { return };
            self.handle(now, to, Input::Message { from, message });
        }
        self.at_once.clear();
    }

    fn handle(&mut self, now: Time, peer: u32, input: Input<u32, ()>) {
        let membership = &mut self.peers[peer as usize];
        let before = membership.poll_timeout();
        membership.handle(now, input);
        while let Some(output) = membership.poll_output() {
            if let Output::Send { to, message } = output {
                self.at_once.push_back((peer, to, message));
            }
        }
        let after = membership.poll_timeout();
        if before != after {
            self.wakes.extend(after.map(|at| (at, peer)));
        }
    }
}

/// The neighbors of each peer, ascending, after all have joined through the first, one after another, and [`ROUNDS`] rounds
/// of everybody. Who is whose neighbor is mutual. The same seed is the same overlay.
///
/// # Panics
/// If there are more peers than numbers of 32 bits, or an option makes no sense ([`Membership::new`]).
pub fn neighbors(peers: usize, options: Options, seed: u64) -> Vec<Vec<u32>> {
    let count = u32::try_from(peers).expect("peers are numbered in 32 bits");
    let mut all = Settling { peers: Vec::new(), wakes: BTreeSet::new(), at_once: VecDeque::new() };
    for peer in 0..count {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(u64::from(peer) + 1);
        let own = Contact { peer, edition: 1, about: () };
        let membership = Membership::new(Time::ZERO, own, options, rng);
        all.wakes.extend(membership.poll_timeout().map(|at| (at, peer)));
        all.peers.push(membership);
        if peer > 0 {
            all.tell(Time::ZERO, peer, Input::Join(vec![0]));
        }
    }
    let end = Time::ZERO.saturating_add(options.period.saturating_mul(i64::from(ROUNDS)));
    while let Some((at, peer)) = all.wakes.pop_first().filter(|&(at, _)| at <= end) {
        // One that was set for another time since is there a second time.
        if all.peers[peer as usize].poll_timeout() == Some(at) {
            all.tell(at, peer, Input::Timeout);
        }
    }
    let known =
        |peer: &Membership<u32, (), ChaCha8Rng>| peer.active().iter().map(|contact| contact.peer).collect();
    let mut lists: Vec<Vec<u32>> = all.peers.iter().map(known).collect();
    mend(&mut lists);
    lists
}

/// A link that only one end knows of is one of which the other has not heard yet: nobody listens at it.
fn mend(lists: &mut [Vec<u32>]) {
    let before = lists.to_vec();
    for (peer, list) in before.iter().enumerate() {
        let peer = u32::try_from(peer).expect("peers are numbered in 32 bits");
        lists[peer as usize] =
            list.iter().copied().filter(|&other| before[other as usize].contains(&peer)).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(active_max: usize) -> Options {
        Options { active_max, passive_max: 6 * active_max, ..Options::default() }
    }

    /// Peers that are reached from the first.
    fn reached(lists: &[Vec<u32>]) -> usize {
        let mut seen = BTreeSet::from([0]);
        let mut open = vec![0];
        while let Some(peer) = open.pop() {
            for &next in &lists[peer as usize] {
                if seen.insert(next) {
                    open.push(next);
                }
            }
        }
        seen.len()
    }

    #[test]
    fn all_are_together_and_each_has_as_many_neighbors_as_it_may() {
        for (peers, active_max) in [(50, 5), (300, 5), (300, 8), (1_000, 16)] {
            for seed in 1..4 {
                let lists = neighbors(peers, of(active_max), seed);
                assert_eq!(reached(&lists), peers, "{peers} peers, {active_max} neighbors, seed {seed}");
                let full = lists.iter().filter(|list| list.len() == active_max).count();
                assert!(full * 10 >= peers * 9, "{full} of {peers} have {active_max} neighbors");
                for (peer, list) in lists.iter().enumerate() {
                    let peer = u32::try_from(peer).unwrap();
                    assert!(list.windows(2).all(|pair| pair[0] < pair[1]) && !list.contains(&peer));
                    assert!(list.iter().all(|&other| lists[other as usize].contains(&peer)), "it is mutual");
                }
            }
        }
    }

    /// It ends although somebody is always alone.
    #[test]
    fn an_odd_number_of_peers_with_one_neighbor_each_settles() {
        for seed in 1..9 {
            let lists = neighbors(7, of(1), seed);
            assert!(lists.iter().all(|list| list.len() <= 1), "{lists:?}");
        }
    }

    #[test]
    fn few_peers_all_know_each_other() {
        for peers in 1..6 {
            let lists = neighbors(peers, of(5), 1);
            assert!(lists.iter().all(|list| list.len() == peers - 1), "{lists:?}");
        }
    }

    #[test]
    fn the_same_seed_is_the_same_overlay_and_another_another() {
        assert_eq!(neighbors(100, of(5), 7), neighbors(100, of(5), 7));
        assert_ne!(neighbors(100, of(5), 7), neighbors(100, of(5), 8));
    }
}
