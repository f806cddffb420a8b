//! The figures of an overlay of so many peers, as rows `what,seed,at,name,value` on stdout: its shape by cycle, what is
//! left of it when a share of all peers is gone at once, and what broadcasts take.
//!
//! `cargo run --release -p stealgrid-overlay --example figures -- 10000 5` is ten thousand peers and five seeds.

#![allow(dead_code, reason = "tests use more of the same files")]
#![expect(clippy::unwrap_used, reason = "so do those files")]

#[path = "../tests/graph.rs"]
mod graph;
#[path = "../tests/measure.rs"]
mod measure;
#[path = "../tests/world.rs"]
mod world;

use measure::{broadcast, drawn, kill, reliability, shape};
use world::{Config, World};

/// Cycles after which an overlay is taken for settled (DSN 2007, §5.2).
const SETTLED: i64 = 50;
/// Peers from which the longest ways are looked for.
const SOURCES: usize = 500;

#[expect(clippy::disallowed_methods, reason = "a program is told what to do, the crate is not")]
fn main() {
    let mut numbers = std::env::args().skip(1).map(|word| word.parse::<u32>());
    let (Some(Ok(peers)), Some(Ok(seeds)), None) = (numbers.next(), numbers.next(), numbers.next()) else {
        eprintln!("figures PEERS SEEDS");
        std::process::exit(2);
    };
    println!("what,seed,at,name,value");
    for seed in 1..=u64::from(seeds) {
        let world = settled(peers, seed);
        for percent in [10, 20, 30, 40, 50, 60, 70, 80, 90, 95] {
            failures(&world, seed, percent);
        }
        trees(&world, seed, None);
        trees(&world, seed, Some(7));
    }
}

fn row(what: &str, seed: u64, at: i64, name: &str, value: f64) {
    println!("{what},{seed},{at},{name},{value:.6}");
}

/// The shape by cycle.
fn settled(peers: u32, seed: u64) -> World {
    let mut world = World::of_one_contact(Config::of_cycles(seed), peers);
    let mut cycle = 0;
    for next in [0, 1, 2, 5, 10, SETTLED] {
        world.rounds(next - cycle);
        cycle = next;
        let shape = shape(&world, SOURCES);
        row("shape", seed, cycle, "clustering", shape.clustering);
        row("shape", seed, cycle, "path_mean", shape.path_mean);
        row("shape", seed, cycle, "hops_mean", shape.hops_mean);
        row("shape", seed, cycle, "hops_max", f64::from(shape.hops_max));
        row("shape", seed, cycle, "together", shape.together);
        for (degree, count) in shape.degrees.iter().enumerate() {
            row("shape", seed, cycle, &format!("degree_{degree}"), *count as f64);
        }
    }
    let before = world.counts.views;
    world.rounds(1);
    let sent = (world.counts.views - before) as f64 / f64::from(peers);
    row("shape", seed, SETTLED, "messages_per_peer_and_round", sent);
    world
}

/// A thousand floods before the next round, as figure 2 of the paper, and ten after each round, as figure 4.
fn failures(settled: &World, seed: u64, percent: usize) {
    let what = format!("failed_{percent}");
    let mut world = settled.clone();
    kill(&mut world, percent, seed);
    row(&what, seed, 0, "floods_1000", reliability(&mut world, 1_000));
    // As if every connection to a peer that is gone broke at once, and not only where something is sent.
    let mut world = settled.clone();
    kill(&mut world, percent, seed);
    world.break_connections();
    row(&what, seed, 0, "floods_1000_noticed", reliability(&mut world, 1_000));
    let mut world = settled.clone();
    kill(&mut world, percent, seed);
    row(&what, seed, 0, "together", shape(&world, 1).together);
    for cycle in 1..=10 {
        world.rounds(1);
        row(&what, seed, cycle, "floods_10", reliability(&mut world, 10));
        row(&what, seed, cycle, "together", shape(&world, 1).together);
    }
}

/// Broadcasts of one peer, then of others, then after a tenth of all is gone; with the optimization for many senders (SRDS
/// 2007, §4.1), too.
fn trees(settled: &World, seed: u64, optimize_from: Option<u32>) {
    let mut world = settled.clone();
    world.plant(overlay::broadcast::Options { optimize_from, ..Default::default() });
    let tree = if optimize_from.is_some() { "optimized" } else { "tree" };
    let one = drawn(&world, seed);
    for number in 1..=60 {
        let (phase, from) = match number {
            1..=10 => ("of_one", one),
            11..=30 => ("of_many", drawn(&world, seed * 1_000 + number)),
            _ => ("after_failures", drawn(&world, seed * 1_000 + number)),
        };
        if number == 31 {
            kill(&mut world, 10, seed);
        }
        // It may be the one that is drawn.
        let from =
            if world.sites[from as usize].is_some() { from } else { drawn(&world, seed * 1_000 + number) };
        let cost = broadcast(&mut world, from, number);
        let (what, at) = (format!("{tree}_{phase}"), number as i64);
        row(&what, seed, at, "payloads", cost.sent.payloads as f64);
        row(&what, seed, at, "announcements", cost.sent.announcements as f64);
        row(&what, seed, at, "prunes", cost.sent.prunes as f64);
        row(&what, seed, at, "grafts", cost.sent.grafts as f64);
        row(&what, seed, at, "hops", f64::from(cost.hops));
        row(&what, seed, at, "unreached", (world.live().len() - cost.reached) as f64);
    }
}
