//! Random numbers of one algorithm on one batch.
//!
//! Written out here, not taken from a library, because a stored result must come out again next year.

use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

/// The first stream of random numbers of a batch; those of brokers begin lower.
const FIRST_STREAM: u64 = 1 << 40;

/// What a stream of random numbers is for. Streams of one seed do not overlap, so that an algorithm finds the same whichever
/// others run beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The population that all genetic algorithms of a batch begin with.
    Initial,
    /// Random search.
    Chance,
    /// The genetic algorithm of this number, below 14.
    Algorithm(u8),
}

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Draw {
    rng: ChaCha8Rng,
    /// Coins that were drawn and not used, and how many.
    coins: (u64, u32),
}

impl Draw {
    /// The stream of a seed for a batch and a purpose.
    ///
    /// # Panics
    /// If the number of an algorithm is not below 14.
    pub fn new(seed: u64, batch: u64, purpose: Purpose) -> Draw {
        let place = match purpose {
            Purpose::Initial => 0,
            Purpose::Chance => 1,
            Purpose::Algorithm(number) => 2 + u64::from(number),
        };
        assert!(place < 16, "streams of a batch are sixteen");
        Draw::of_stream(seed, FIRST_STREAM + 16 * batch + place)
    }

    /// The stream of a seed that has this number. Whoever takes one keeps clear of those of others.
    pub(crate) fn of_stream(seed: u64, stream: u64) -> Draw {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(stream);
        Draw { rng, coins: (0, 0) }
    }

    /// Uniform among 0, 1, …, `count` - 1.
    ///
    /// # Panics
    /// If there is nothing to choose from.
    pub fn below(&mut self, count: usize) -> usize {
        assert!(count > 0, "there is nothing to choose from");
        // The bias of the product is below count / 2^64.
        ((u128::from(self.rng.next_u64()) * count as u128) >> 64) as usize
    }

    /// True with this probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        // The upper 53 bits fill a float's mantissa exactly.
        ((self.rng.next_u64() >> 11) as f64) < probability * (1_u64 << 53) as f64
    }

    /// True with probability one half.
    pub fn coin(&mut self) -> bool {
        let (mut coins, mut left) = self.coins;
        if left == 0 {
            (coins, left) = (self.rng.next_u64(), u64::BITS);
        }
        self.coins = (coins >> 1, left - 1);
        coins & 1 == 1
    }

    /// Puts elements into a random order (Fisher and Yates).
    pub fn shuffle<T>(&mut self, elements: &mut [T]) {
        for last in (1..elements.len()).rev() {
            elements.swap(last, self.below(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_repeat_and_differ_by_seed_batch_and_purpose() {
        let first = |seed, batch, purpose| {
            let mut draw = Draw::new(seed, batch, purpose);
            (0..8).map(|_| draw.below(1000)).collect::<Vec<usize>>()
        };
        let purposes = [Purpose::Initial, Purpose::Chance, Purpose::Algorithm(0), Purpose::Algorithm(13)];
        let all: Vec<Vec<usize>> =
            (1..4).flat_map(|batch| purposes.map(|purpose| first(7, batch, purpose))).collect();
        let mut distinct = all.clone();
        distinct.push(first(8, 1, Purpose::Initial));
        distinct.sort();
        distinct.dedup();
        assert_eq!(distinct.len(), all.len() + 1);
        assert_eq!(first(7, 1, Purpose::Initial), all[0]);
    }

    #[test]
    fn chances_are_as_told_and_a_shuffle_keeps_all() {
        let mut draw = Draw::new(1, 1, Purpose::Initial);
        assert!((0..100).all(|_| draw.chance(1.0) && !draw.chance(0.0)));
        let often = (0..10_000).filter(|_| draw.chance(0.9)).count();
        assert!((8_850..9_150).contains(&often), "{often}");
        let coins = (0..10_000).filter(|_| draw.coin()).count();
        assert!((4_750..5_250).contains(&coins), "{coins}");
        let mut elements: Vec<u32> = (0..50).collect();
        draw.shuffle(&mut elements);
        assert_ne!(elements, (0..50).collect::<Vec<u32>>());
        elements.sort_unstable();
        assert_eq!(elements, (0..50).collect::<Vec<u32>>());
    }
}
