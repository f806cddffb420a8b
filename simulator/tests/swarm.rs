//! Small grids with faults, very many of them: what failed once, and the first seeds.

use std::collections::BTreeMap;

use simulator::faults::{Check, Tally};
use simulator::swarm::{self, Part, Parts, Reduction, Trial};

/// Each line is a seed, maybe what is drawn in any case, maybe a reduction, and what it found.
const SEEDS: &str = include_str!("seeds.txt");

#[test]
fn seeds_that_failed_once_pass() {
    let mut replayed = 0;
    for line in SEEDS.lines().map(|line| line.split('#').next().unwrap_or_default().trim()) {
        if line.is_empty() {
            continue;
        }
        let mut words = line.split_whitespace();
        let seed: u64 = words.next().and_then(|seed| seed.parse().ok()).expect("a line begins with a seed");
        let mut words = words.peekable();
        let named = words.next_if(|word| word.starts_with("with:"));
        let parts = named.map_or(Parts::Usual, |word| {
            let part = Part::ALL.into_iter().find(|part| word == format!("with:{}", part.name()));
            Parts::With(part.expect("the name of a part"))
        });
        let reduction: Reduction = words.next().unwrap_or_default().parse().expect("a reduction");
        for reduction in [Reduction::default(), reduction] {
            if let Err(broken) = swarm::run(seed, &reduction, Trial { parts, ..Trial::default() }) {
                panic!("seed {seed}, {parts:?}, {reduction}: {broken}");
            }
        }
        replayed += 1;
    }
    assert!(replayed > 0, "the file has seeds");
}

#[test]
fn the_first_seeds_pass_every_check() {
    let (tally, failed) = runs(1, 400, Parts::Usual);
    assert_eq!(failed, BTreeMap::new());
    // The faults are there.
    assert!(tally.deaths > 20 && tally.left > 20 && tally.joined > 10, "{tally:?}");
    assert!(tally.taken_over > 50 && tally.adopted > 5, "{tally:?}");
    assert!(tally.crashes > 100 && tally.torn > 50, "{tally:?}");
    assert!(tally.interrupted > 50 && tally.moved > 1_000 && tally.messages_lost > 1_000, "{tally:?}");
}

#[test]
fn the_first_seeds_with_brokers_pass_every_check() {
    let (tally, failed) = runs(1, 400, Parts::With(Part::Brokers));
    assert_eq!(failed, BTreeMap::new());
    assert!(tally.deaths > 50 && tally.left > 20 && tally.joined > 20, "{tally:?}");
    assert!(tally.taken_over > 50 && tally.adopted > 20, "{tally:?}");
    assert!(tally.crashes > 100 && tally.torn > 50, "{tally:?}");
    assert!(tally.moved > 5_000 && tally.messages_lost > 1_000, "{tally:?}");
}

#[test]
fn the_first_seeds_that_kill_who_begins_again_pass_every_check() {
    let (tally, failed) = runs(1, 300, Parts::With(Part::Restarts));
    assert_eq!(failed, BTreeMap::new());
    assert!(tally.crashes > 2_000 && tally.torn > 500 && tally.restarts > 2_000, "{tally:?}");
}

#[test]
fn the_first_seeds_with_jobs_in_parts_pass_every_check() {
    let (tally, failed) = runs(1, 150, Parts::With(Part::Gangs));
    assert_eq!(failed, BTreeMap::new());
    assert!(tally.deaths > 10 && tally.taken_over > 30 && tally.crashes > 100, "{tally:?}");
    assert!(tally.parts > 1_000 && tally.stopped > 10, "{tally:?}");
}

#[test]
#[ignore = "long: minutes"]
fn very_many_seeds_with_jobs_in_parts_pass_every_check() {
    let (tally, failed) = runs(1, 20_000, Parts::With(Part::Gangs));
    println!("{tally:?}");
    assert_eq!(failed, BTreeMap::new());
}

#[test]
#[ignore = "long: minutes"]
fn very_many_seeds_with_brokers_pass_every_check() {
    let (tally, failed) = runs(1, 20_000, Parts::With(Part::Brokers));
    println!("{tally:?}");
    assert_eq!(failed, BTreeMap::new());
}

#[test]
#[ignore = "long: minutes"]
fn very_many_seeds_pass_every_check() {
    let (tally, failed) = runs(1, 50_000, Parts::Usual);
    println!("{tally:?}");
    assert_eq!(failed, BTreeMap::new());
}

#[test]
#[ignore = "long: minutes"]
fn very_many_more_seeds_pass_every_check() {
    let (tally, failed) = runs(50_001, 50_000, Parts::Usual);
    println!("{tally:?}");
    assert_eq!(failed, BTreeMap::new());
}

#[test]
fn one_seed_is_one_run() {
    for seed in 1..20 {
        let log = || {
            let mut log = Vec::new();
            let done =
                swarm::run_scenario(&swarm::draw(seed, Parts::Usual), Trial::default(), &mut |event| {
                    log.push(*event)
                });
            (log, done)
        };
        assert_eq!(log(), log(), "seed {seed}");
    }
}

/// What so many seeds did, and which failed by which check.
fn runs(from: u64, number: u64, parts: Parts) -> (Tally, BTreeMap<Check, Vec<u64>>) {
    let mut tally = Tally::default();
    let mut failed: BTreeMap<Check, Vec<u64>> = BTreeMap::new();
    for seed in from..from + number {
        match swarm::run(seed, &Reduction::default(), Trial { parts, ..Trial::default() }) {
            Ok(done) => tally.add(&done),
            Err(broken) => {
                println!("seed {seed}: {broken}");
                failed.entry(broken.check).or_default().push(seed);
            }
        }
    }
    (tally, failed)
}
