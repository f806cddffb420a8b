//! What the papers measure of an overlay, on a world that has settled.

use rand::seq::SliceRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use scheduler::Span;

use crate::graph;
use crate::world::{Counts, World};

/// Figures of the links between peers that are there (DSN 2007, table 1 and figure 5).
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub(crate) clustering: f64,
    /// Links from a peer to another.
    pub(crate) path_mean: f64,
    /// Links until the last peer has a flood, and the most of all floods that were looked at.
    pub(crate) hops_mean: f64,
    pub(crate) hops_max: u32,
    /// Peers by how many have them as neighbor.
    pub(crate) degrees: Vec<usize>,
    /// Share of the peers that are in the largest part.
    pub(crate) together: f64,
}

/// The figures, with paths from so many peers or all.
pub(crate) fn shape(world: &World, sources: usize) -> Shape {
    let (links, live) = (world.links(), world.live());
    let step = (live.len() / sources).max(1);
    let sources: Vec<u32> = live.iter().copied().step_by(step).collect();
    let (path_mean, hops_mean) = graph::paths(&links, sources.iter().copied());
    let farthest = |from: &u32| graph::distances(&links, *from).into_iter().flatten().max();
    let mut known = vec![0; links.len()];
    for peer in links.iter().flatten() {
        known[*peer as usize] += 1;
    }
    let most = live.iter().map(|peer| known[*peer as usize]).max().unwrap_or(0);
    let mut degrees = vec![0; most + 1];
    for peer in &live {
        degrees[known[*peer as usize]] += 1;
    }
    Shape {
        clustering: graph::clustering(&links),
        path_mean,
        hops_mean,
        hops_max: sources.iter().filter_map(farthest).max().unwrap_or(0),
        degrees,
        together: graph::parts(&links, &live)[0] as f64 / live.len() as f64,
    }
}

/// Gone at once: so many of a hundred, drawn.
pub(crate) fn kill(world: &mut World, percent: usize, seed: u64) {
    let mut live = world.live();
    live.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
    for peer in &live[..live.len() * percent / 100] {
        world.crash(*peer);
    }
}

/// The share of those who are there that floods from drawn peers reach, the mean of so many (DSN 2007, §5.2).
pub(crate) fn reliability(world: &mut World, floods: u32) -> f64 {
    let count = world.live().len() as f64;
    let mut sum = 0.0;
    for _ in 0..floods {
        let from = world.any();
        sum += world.flood(from).0 as f64 / count;
    }
    sum / f64::from(floods)
}

/// What a broadcast took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    pub(crate) sent: Counts,
    /// Peers that got it, and links until the last one had it.
    pub(crate) reached: usize,
    pub(crate) hops: u32,
}

/// Tells everybody something along the tree, and waits until nobody misses anything.
pub(crate) fn broadcast(world: &mut World, from: u32, key: u64) -> Cost {
    let before = world.counts;
    world.publish(from, key);
    world.settle();
    // The longest that anybody waits for a payload that was announced, and for a few who do not answer.
    world.run(world.config.broadcast.graft_after + Span::from_secs(5));
    let after = world.counts;
    let of_key = |peer: &u32| world.site(*peer).delivered.iter().find(|(other, _)| *other == key).copied();
    let delivered: Vec<(u64, u32)> = world.live().iter().filter_map(of_key).collect();
    Cost {
        sent: Counts {
            views: after.views - before.views,
            payloads: after.payloads - before.payloads,
            announcements: after.announcements - before.announcements,
            prunes: after.prunes - before.prunes,
            grafts: after.grafts - before.grafts,
            parted: after.parted - before.parted,
        },
        reached: delivered.len() + 1,
        hops: delivered.iter().map(|(_, hops)| *hops).max().unwrap_or(0),
    }
}

/// A peer drawn by a seed of its own, so that what is measured does not move what is.
pub(crate) fn drawn(world: &World, seed: u64) -> u32 {
    let live = world.live();
    live[ChaCha8Rng::seed_from_u64(seed).random_range(0..live.len())]
}
