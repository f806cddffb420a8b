//! What holds of broadcasts over an overlay: all get them, once, and few payloads are sent twice. Each check meets a mistake.

use std::collections::BTreeSet;

use overlay::{Input, broadcast::Options};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use scheduler::Span;

use crate::graph;
use crate::measure::{broadcast, drawn, kill};
use crate::world::{Config, Counts, Mistake, World};

fn settled(seed: u64, peers: u32, mistake: Mistake) -> World {
    let mut world = World::of_one_contact(Config { mistake, ..Config::of_cycles(seed) }, peers);
    world.rounds(10);
    world
}

/// SRDS 2007, table 1: after the first broadcasts as many payloads as it takes, and a word on each other link and end.
#[test]
fn after_the_first_broadcasts_each_peer_gets_a_payload_once() {
    let mut world = settled(1, 500, Mistake::None);
    let links: usize = world.links().iter().map(Vec::len).sum();
    let one = drawn(&world, 1);

    let first = broadcast(&mut world, one, 1);
    let last = (2..6).map(|key| broadcast(&mut world, one, key)).last().unwrap();

    // The first is a flood: each passes it on to all but the one that it is from.
    assert_eq!(first.sent.payloads as usize, links - 499);
    assert!((first.reached, last.reached) == (500, 500));
    assert_eq!((last.sent.payloads, last.sent.prunes, last.sent.grafts), (499, 0, 0));
    // A word over each other link, from both ends; and one more from both where a link was made since.
    let lazy = links - 2 * 499;
    assert!((lazy..=lazy + 10).contains(&(last.sent.announcements as usize)), "{last:?}");
    assert_eq!(last.hops, first.hops, "the tree is of the shortest ways from one sender");
}

/// Where a shorter way takes the place of a long one, only who sent over that is told.
#[test]
fn broadcasts_from_anywhere_over_an_optimized_tree_send_no_payload_twice_in_the_end() {
    assert_eq!(too_many_payloads(Mistake::None), 0);
}

#[test]
fn mutant_without_prunes_payloads_are_sent_twice_for_ever() {
    let too_many = too_many_payloads(Mistake::PrunesNeverSent);
    eprintln!("{too_many} payloads");
    assert!(too_many > 0);
}

/// How many payloads are sent twice by the fifth broadcast of a peer, after those of twenty others.
fn too_many_payloads(mistake: Mistake) -> u64 {
    let mut world = settled(1, 300, mistake);
    world.plant(Options { optimize_from: Some(2), ..Options::default() });
    for key in 1..=20 {
        let from = drawn(&world, key);
        broadcast(&mut world, from, key);
    }
    (21..=25).map(|key| broadcast(&mut world, 0, key).sent.payloads - 299).last().unwrap()
}

/// A tenth is gone at once: the next broadcast mends the tree, and a few later none is sent twice.
#[test]
fn a_tree_is_mended_by_the_broadcast_that_misses_somebody() {
    for seed in 0..5 {
        let (mended, grafts, later) = after_failures(seed, Mistake::None);
        assert_eq!((mended, later), (0, 0), "seed {seed}");
        assert!(grafts > 0, "seed {seed}");
    }
}

#[test]
fn mutant_without_grafts_somebody_is_missed() {
    let missed = (0..5).filter(|seed| after_failures(*seed, Mistake::GraftsNeverSent).0 > 0).count();
    assert_eq!(missed, 5);
}

/// How many a broadcast after failures does not reach, by how many grafts, and how many payloads too many the tenth takes.
fn after_failures(seed: u64, mistake: Mistake) -> (usize, u64, u64) {
    let mut world = settled(seed, 300, mistake);
    let one = drawn(&world, seed);
    for key in 1..4 {
        broadcast(&mut world, one, key);
    }
    kill(&mut world, 10, seed);
    let live = world.live();
    let first = broadcast(&mut world, live[0], 4);
    assert_eq!(graph::parts(&world.links(), &live).len(), 1, "seed {seed}");
    let sent = |world: &mut World, key| broadcast(world, live[0], key).sent;
    let last: Counts = (5..14).map(|key| sent(&mut world, key)).last().unwrap();
    (live.len() - first.reached, first.sent.grafts, last.payloads.saturating_sub(live.len() as u64 - 1))
}

/// Broadcasts while peers come, fail and leave, and messages take a while: who is left has what anybody has who is left.
fn missed(seed: u64, mistake: Mistake) -> usize {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut world = World::new(Config {
        delay: (Span::from_micros(10_000), Span::from_micros(rng.random_range(20_000..400_000))),
        reports_failures: rng.random_range(0..2) == 0,
        mistake,
        ..Config::of_cycles(seed)
    });
    world.add();
    let mut key = 0;
    for _ in 0..100 {
        let some = world.any();
        match rng.random_range(0..10) {
            0..3 if world.sites.len() < 40 => {
                let new = world.add();
                world.tell(new, Input::Join(vec![some, 0]));
            }
            3 if some > 0 => world.crash(some),
            4 if some > 0 => world.leave(some),
            // No more than a new neighbor is told of.
            5..8 if key < Options::default().told_max as u64 => {
                key += 1;
                world.publish(some, key);
            }
            _ => world.run(Span::from_micros(rng.random_range(0..3_000_000))),
        }
    }
    world.rounds(40);
    let live = world.live();
    assert_eq!(graph::parts(&world.links(), &live).len(), 1, "seed {seed}");
    let mut known = BTreeSet::new();
    for peer in &live {
        let came: Vec<u64> = world.site(*peer).delivered.iter().map(|(key, _)| *key).collect();
        let once: BTreeSet<u64> = came.iter().copied().collect();
        assert_eq!(came.len(), once.len(), "seed {seed}: {peer} got something twice");
        known.extend((1..=key).filter(|key| world.site(*peer).broadcast.has(key)));
    }
    assert!(known.len() > 3, "seed {seed}");
    let lacks = |peer: &u32| known.iter().filter(|key| !world.site(*peer).broadcast.has(key)).count();
    live.iter().map(lacks).sum()
}

const SEEDS: u64 = 60;

#[test]
fn everybody_who_is_left_has_each_broadcast_that_anybody_has_and_got_it_once() {
    for seed in 0..SEEDS {
        assert_eq!(missed(seed, Mistake::None), 0, "seed {seed}");
    }
}

#[test]
fn mutant_without_grafts_broadcasts_pass_peers_by() {
    let first = (0..SEEDS).find(|seed| missed(*seed, Mistake::GraftsNeverSent) > 0);
    eprintln!("first seed: {first:?}");
    assert!(first.is_some());
}

#[test]
fn mutant_new_neighbors_that_are_told_nothing_miss_what_was_under_way() {
    let first = (0..SEEDS).find(|seed| missed(*seed, Mistake::NewNeighborsNeverTold) > 0);
    eprintln!("first seed: {first:?}");
    assert!(first.is_some());
}
