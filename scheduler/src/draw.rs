//! Random numbers: one numbered stream of a seed.
//!
//! Written out here, not taken from a library, because a stored result and a generated trace must come out again next year.

use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

/// Words of a stream: blocks are counted by 64 bits, and each has 16.
const WORDS: u128 = 1 << 68;

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Draw {
    rng: ChaCha8Rng,
    /// Coins that were drawn and not used, and how many.
    coins: (u64, u32),
}

impl Draw {
    /// The stream of a seed that has this number. Streams of one seed do not overlap; whoever takes one keeps clear of those of
    /// others.
    pub fn of_stream(seed: u64, stream: u64) -> Draw {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(stream);
        Draw { rng, coins: (0, 0) }
    }

    /// How far the stream is: words that were drawn, high and low, then coins that are left, and how many.
    pub fn position(&self) -> [u64; 4] {
        let drawn = self.rng.get_word_pos();
        [(drawn >> 64) as u64, (drawn & u128::from(u64::MAX)) as u64, self.coins.0, self.coins.1.into()]
    }

    /// Goes on from there. False if no stream can be so far.
    pub fn go_on_at(&mut self, position: [u64; 4]) -> bool {
        let [high, low, coins, left] = position;
        let drawn = (u128::from(high) << 64) | u128::from(low);
        let left = u32::try_from(left).ok().filter(|&left| left < u64::BITS);
        let is_position = drawn < WORDS && left.is_some_and(|left| coins >> left == 0);
        if let Some(left) = left.filter(|_| is_position) {
            self.rng.set_word_pos(drawn);
            self.coins = (coins, left);
        }
        is_position
    }

    /// Uniform in [0, 1).
    pub fn uniform(&mut self) -> f64 {
        // The upper 53 bits fill a float's mantissa exactly.
        (self.rng.next_u64() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// Uniform in [low, high).
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.uniform()
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
        self.uniform() < probability
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
    fn streams_of_one_seed_differ_and_repeat() {
        let first = |stream| Draw::of_stream(7, stream).uniform();
        assert_eq!(first(0).to_bits(), first(0).to_bits());
        assert_ne!(first(0).to_bits(), first(1).to_bits());
    }

    #[test]
    fn a_stream_goes_on_where_another_is() {
        for drawn in [0, 1, 7, 33] {
            let mut one = Draw::of_stream(7, 3);
            for _ in 0..drawn {
                one.below(5);
                one.coin();
            }
            let mut other = Draw::of_stream(7, 3);
            assert!(other.go_on_at(one.position()));
            for _ in 0..100 {
                assert_eq!((one.coin(), one.below(1000)), (other.coin(), other.below(1000)), "{drawn}");
            }
        }
        let mut draw = Draw::of_stream(7, 3);
        for wrong in [[1 << 4, 0, 0, 0], [0, 0, 0, 64], [0, 0, 2, 1]] {
            assert!(!draw.go_on_at(wrong), "{wrong:?}");
        }
    }

    #[test]
    fn chances_are_as_told_and_a_shuffle_keeps_all() {
        let mut draw = Draw::of_stream(1, 1);
        assert!((0..100).all(|_| draw.chance(1.0) && !draw.chance(0.0)));
        let often = (0..10_000).filter(|_| draw.chance(0.9)).count();
        assert!((8_850..9_150).contains(&often), "{often}");
        let coins = (0..10_000).filter(|_| draw.coin()).count();
        assert!((4_750..5_250).contains(&coins), "{coins}");
        assert!((0..1000).all(|_| (3.0..5.0).contains(&draw.between(3.0, 5.0))));
        let mut elements: Vec<u32> = (0..50).collect();
        draw.shuffle(&mut elements);
        assert_ne!(elements, (0..50).collect::<Vec<u32>>());
        elements.sort_unstable();
        assert_eq!(elements, (0..50).collect::<Vec<u32>>());
    }
}
