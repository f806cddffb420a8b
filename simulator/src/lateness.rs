//! How late sites notice what comes by the clock alone: ends of jobs and submissions.
//!
//! In virtual time nothing is late. A process wakes up a little after the instant that it waits for, and then does all
//! that was due at that instant: jobs that end together are late together, and what is decided then is decided with all of
//! them. For simulations that are compared with real runs; what messages take longer is [`links::Model::added`].

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};
use scheduler::{SiteId, Span, Time};

/// 32-bit words of a block of ChaCha.
const WORDS: u128 = 16;

/// Late by something random, uniform from nothing to a most, once for each site and instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lateness {
    /// Upper end of the lateness, in trace time.
    pub most: Span,
    /// Of what is random.
    pub seed: u64,
}

impl Lateness {
    /// How late a site notices what is due at an instant: a function of the two, whatever else happens.
    pub fn of(&self, site: SiteId, due: Time) -> Span {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        // The stream of a site's link to itself, over which no message goes; instants are its blocks.
        rng.set_stream(u64::from(site.0) << 32 | u64::from(site.0));
        rng.set_word_pos(u128::from(due.as_micros().cast_unsigned()) * WORDS);
        let width = u128::from(self.most.as_micros().max(0).unsigned_abs()) + 1;
        Span::from_micros(((u128::from(rng.next_u64()) * width) >> 64) as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LATE: Lateness = Lateness { most: Span::from_secs(60), seed: 1 };

    #[test]
    fn each_site_and_instant_is_late_by_something_of_its_own_up_to_the_most() {
        let all: Vec<i64> = (1..=20)
            .flat_map(|site| (-100..100).map(move |due| (SiteId(site), Time::from_secs(due))))
            .map(|(site, due)| LATE.of(site, due).as_micros())
            .collect();
        assert!(all.iter().all(|late| (0..=60_000_000).contains(late)));
        let mean = all.iter().sum::<i64>() as f64 / all.len() as f64;
        // A standard deviation is 0.27 s.
        assert!((29e6..31e6).contains(&mean), "{mean}");
        let mut apart = all.clone();
        apart.sort_unstable();
        apart.dedup();
        assert!(apart.len() > all.len() - 10, "{} of {}", apart.len(), all.len());
    }

    #[test]
    fn nothing_is_late_if_the_most_is_nothing() {
        let none = Lateness { most: Span::ZERO, seed: 1 };
        assert_eq!(none.of(SiteId(1), Time::from_secs(5)), Span::ZERO);
        assert_ne!(LATE.of(SiteId(1), Time::from_secs(5)), Span::ZERO);
    }
}
