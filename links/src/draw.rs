//! Random numbers of one message, by its place in a stream that is never walked through.
//!
//! ChaCha8 (Bernstein 2008) is a function from a key, a stream and a block number to 64 bytes. The seed is the key,
//! the directed link the stream, and the message's number the block.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};
use scheduler::SiteId;

/// 32-bit words of one block.
const WORDS: u128 = 16;

/// What each number is for. Fixed places, so that a model with more loss has the same jitter.
pub(crate) const LOSS: usize = 0;
pub(crate) const DUPLICATION: usize = 1;
/// The first two of a copy's three: its jitter. The third: what is added to it.
pub(crate) const COPY: [usize; 2] = [2, 5];

/// The numbers of a message of a directed link. Links have streams from 2^32 on; other users of the same seed take
/// small ones.
pub(crate) fn of_message(seed: u64, from: SiteId, to: SiteId, number: u64) -> [u64; 8] {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(u64::from(from.0) << 32 | u64::from(to.0));
    rng.set_word_pos(u128::from(number) * WORDS);
    std::array::from_fn(|_| rng.next_u64())
}

/// A number from 0 to below 1, all multiples of 2^-53 equally likely.
pub(crate) fn unit(number: u64) -> f64 {
    (number >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_links_and_seeds_have_numbers_of_their_own() {
        let base = of_message(1, SiteId(1), SiteId(2), 7);
        assert_eq!(base, of_message(1, SiteId(1), SiteId(2), 7));
        for other in [
            of_message(2, SiteId(1), SiteId(2), 7),
            of_message(1, SiteId(2), SiteId(1), 7),
            of_message(1, SiteId(1), SiteId(3), 7),
            of_message(1, SiteId(1), SiteId(2), 8),
        ] {
            assert!(base.iter().all(|number| !other.contains(number)));
        }
    }

    #[test]
    fn the_numbers_are_those_of_the_first_release() {
        // A change here changes every simulation with random links.
        assert_eq!(of_message(1, SiteId(1), SiteId(2), 1)[0], GOLDEN);
    }

    const GOLDEN: u64 = 9_523_695_410_181_645_784;
}
