//! Every input of the corpus, and inputs made of them by a seeded mutation, through the same functions that libFuzzer
//! drives. Finds little that is new; what was found stays found.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fuzz::Target;
use fuzz::corpus::{SEED, seeds};

/// Mutated inputs per target: together a few seconds.
const MUTATIONS: u64 = 4_000;
/// Longest mutated input, in bytes.
const LENGTH_MAX: usize = 4096;

fn folder(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target)
}

/// The committed inputs of a target, by the names of their files.
fn corpus(target: &str) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(folder(target)).unwrap_or_else(|error| panic!("{target}: {error}"));
    let file = |entry: std::io::Result<std::fs::DirEntry>| {
        let entry = entry.unwrap();
        (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap())
    };
    entries.map(file).collect()
}

#[test]
fn the_committed_seeds_are_those_that_are_made() {
    for target in Target::ALL {
        let made: BTreeMap<String, Vec<u8>> = seeds(target.name).into_iter().collect();
        let mut committed = corpus(target.name);
        committed.retain(|name, _| name.starts_with(SEED));
        assert!(!made.is_empty(), "{} has no seeds", target.name);
        assert!(
            made == committed,
            "run `cargo run -p stealgrid-fuzz --bin fuzz-corpus` and commit fuzz/corpus"
        );
    }
}

#[test]
fn no_input_of_the_corpus_breaks_its_target() {
    for target in Target::ALL {
        for (name, bytes) in corpus(target.name) {
            run(target, &bytes, &name);
        }
    }
}

#[test]
fn no_mutation_of_the_corpus_breaks_its_target() {
    for target in Target::ALL {
        let inputs: Vec<Vec<u8>> = corpus(target.name).into_values().collect();
        let mut numbers = Numbers(0x5eed);
        for round in 0..MUTATIONS {
            let bytes = mutated(&inputs, &mut numbers);
            run(target, &bytes, &format!("mutation {round}"));
        }
    }
}

/// Runs a target, and says on stderr which input it was if that panics.
fn run(target: Target, bytes: &[u8], name: &str) {
    let result = std::panic::catch_unwind(|| (target.run)(bytes));
    assert!(result.is_ok(), "{} breaks on {name}: {bytes:?}", target.name);
}

/// One of the inputs, with some bytes changed, doubled, cut out, or taken from another.
fn mutated(inputs: &[Vec<u8>], numbers: &mut Numbers) -> Vec<u8> {
    let mut bytes = inputs[numbers.below(inputs.len())].clone();
    for _ in 0..=numbers.below(4) {
        let at = numbers.below(bytes.len() + 1);
        let end = (at + 1 + numbers.below(16)).min(bytes.len());
        match numbers.below(5) {
            0 => bytes.insert(at, numbers.next() as u8),
            1 if at < bytes.len() => bytes[at] ^= 1 << numbers.below(8),
            2 => drop(bytes.drain(at..end)),
            3 => {
                let part = bytes[at..end].to_vec();
                bytes.splice(at..at, part);
            }
            _ => {
                let other = &inputs[numbers.below(inputs.len())];
                let from = numbers.below(other.len() + 1);
                bytes.truncate(at);
                bytes.extend_from_slice(&other[from..]);
            }
        }
    }
    bytes.truncate(LENGTH_MAX);
    bytes
}

/// SplitMix64 (Steele, Lea, Flood 2014): any bits will do.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }
}
