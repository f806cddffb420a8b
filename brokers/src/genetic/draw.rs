//! Which random numbers an algorithm draws on a batch.

use scheduler::draw::Draw;

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

impl Purpose {
    /// The stream of a seed for a batch and this purpose.
    ///
    /// # Panics
    /// If the number of an algorithm is not below 14.
    pub fn draw(self, seed: u64, batch: u64) -> Draw {
        let place = match self {
            Purpose::Initial => 0,
            Purpose::Chance => 1,
            Purpose::Algorithm(number) => 2 + u64::from(number),
        };
        assert!(place < 16, "streams of a batch are sixteen");
        Draw::of_stream(seed, FIRST_STREAM + 16 * batch + place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_repeat_and_differ_by_seed_batch_and_purpose() {
        let first = |seed, batch, purpose: Purpose| {
            let mut draw = purpose.draw(seed, batch);
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
}
