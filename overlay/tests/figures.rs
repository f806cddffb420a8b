//! The figures of DSN 2007, with fewer peers than there. What ten thousand give is in `docs/SCALE.md`.

use crate::measure::{Shape, kill, reliability, shape};
use crate::world::{Config, Mistake, World};

const PEERS: u32 = 1_000;

fn settled(seed: u64, mistake: Mistake) -> World {
    let mut world = World::of_one_contact(Config { mistake, ..Config::of_cycles(seed) }, PEERS);
    world.rounds(15);
    world
}

/// The mean shortest path of a random graph in which all have as many links, in the limit of many peers: Katzav et al., EPL
/// 2015. Who is at the end of a link is farther than so many steps if nobody at the ends of its other links is nearer.
fn path_of_a_random_graph(peers: f64, degree: f64) -> f64 {
    let other = 1.0 - 1.0 / peers;
    let (mut beyond_a_link, mut path) = (other, 1.0);
    for _ in 0..50 {
        path += beyond_a_link.powf(degree);
        beyond_a_link = other * beyond_a_link.powf(degree - 1.0);
    }
    path
}

#[test]
fn all_have_five_neighbors_hang_together_and_are_as_near_as_in_a_random_graph() {
    for seed in 1..=2 {
        let Shape { clustering, path_mean, hops_mean, hops_max, degrees, together } =
            shape(&settled(seed, Mistake::None), 50);
        assert_eq!(degrees.len(), 6, "{degrees:?}");
        assert!(degrees[5] >= 980, "{degrees:?}");
        assert!((together - 1.0).abs() < 1e-9, "{together}");
        let random = path_of_a_random_graph(f64::from(PEERS), 5.0);
        assert!((path_mean / random - 1.0).abs() < 0.05, "{path_mean} of {random}");
        // A random graph has 4/1000 times four fifths.
        assert!(clustering < 0.008, "{clustering}");
        assert!(hops_mean <= f64::from(hops_max) && hops_max <= 8, "{hops_mean} {hops_max}");
    }
}

/// With a transport that breaks connections to who is gone nearly all floods reach all, and a round later all do.
#[test]
fn half_of_all_peers_gone_at_once_is_healed_within_a_round() {
    let mut world = settled(1, Mistake::None);
    kill(&mut world, 50, 1);
    world.break_connections();
    assert!(reliability(&mut world, 20) > 0.99);
    world.rounds(1);
    assert!((reliability(&mut world, 20) - 1.0).abs() < 1e-9);
}

/// DSN 2007, figure 4: one or two rounds.
#[test]
fn of_eight_tenths_gone_at_once_the_others_hang_together_two_rounds_later() {
    for seed in 1..=2 {
        assert!((together_after(seed, Mistake::None) - 1.0).abs() < 1e-9, "seed {seed}");
    }
}

#[test]
fn mutant_without_shuffles_nobody_knows_enough_others_to_heal() {
    let together = together_after(1, Mistake::ShufflesNeverSent);
    eprintln!("{together}");
    assert!(together < 0.95, "{together}");
}

#[test]
fn mutant_without_wishes_an_overlay_stays_in_parts() {
    let together = together_after(1, Mistake::WishesNeverSent);
    eprintln!("{together}");
    assert!(together < 0.2, "{together}");
}

/// The share of those who are left in the largest part, two rounds after eight tenths are gone.
fn together_after(seed: u64, mistake: Mistake) -> f64 {
    let mut world = settled(seed, mistake);
    kill(&mut world, 80, seed);
    world.rounds(2);
    shape(&world, 1).together
}

/// Trees stand on links that last.
#[test]
fn an_overlay_that_has_settled_hardly_changes() {
    assert!(parted(Mistake::None) < 20, "{}", parted(Mistake::None));
}

#[test]
fn mutant_links_that_are_said_once_do_not_last() {
    let parted = parted(Mistake::LinksSaidOnce);
    eprintln!("{parted} times");
    assert!(parted > 200, "{parted}");
}

/// How often one of three hundred peers loses a neighbor in ten rounds without a fault.
fn parted(mistake: Mistake) -> u64 {
    let mut world = World::of_one_contact(Config { mistake, ..Config::of_cycles(1) }, 300);
    world.rounds(15);
    let before = world.counts.parted;
    world.rounds(10);
    world.counts.parted - before
}
