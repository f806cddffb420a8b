//! How long a message and its answer take, as a peer measures it by its own exchanges and its own clock.
//!
//! Only exchanges whose first message was sent once count: an answer does not say which copy it answers (Karn's rule,
//! as in RFC 6298). Later measurements are blended in with a weight of one eighth, as there.

use std::collections::BTreeMap;

use scheduler::{Span, Time};

use crate::rank::Rank;

/// Round trips to other sites, by rank. Sites never exchanged with are not in it.
#[derive(Clone, Debug, Default)]
pub(crate) struct RoundTrips {
    smoothed: BTreeMap<Rank, Span>,
    /// A transfer under way that is being timed: its number and when it left.
    probes: BTreeMap<Rank, (u64, Time)>,
}

/// The weight of a new measurement is one part of so many.
const WEIGHT: i64 = 8;

impl RoundTrips {
    /// An exchange with a site took so long.
    pub(crate) fn measured(&mut self, rank: Rank, took: Span) {
        let smoothed = self.smoothed.entry(rank).or_insert(took);
        let change = (took.as_micros() - smoothed.as_micros()) / WEIGHT;
        *smoothed = Span::from_micros(smoothed.as_micros() + change);
    }

    /// The round trip to a site, if it was ever measured.
    pub(crate) fn to(&self, rank: Rank) -> Option<Span> {
        self.smoothed.get(&rank).copied()
    }

    /// Half of the round trip; nothing is known of the two ways apart.
    pub(crate) fn one_way(&self, rank: Rank) -> Option<Span> {
        self.to(rank).map(|round_trip| Span::from_micros(round_trip.as_micros() / 2))
    }

    /// A transfer left. One is timed per site, until it is answered or repeated.
    pub(crate) fn transfer_left(&mut self, rank: Rank, number: u64, now: Time) {
        self.probes.entry(rank).or_insert((number, now));
    }

    /// A transfer was repeated: its answer would tell nothing.
    pub(crate) fn transfer_repeated(&mut self, rank: Rank, number: u64) {
        if self.probes.get(&rank).is_some_and(|probe| probe.0 == number) {
            self.probes.remove(&rank);
        }
    }

    /// A transfer was answered.
    pub(crate) fn transfer_answered(&mut self, rank: Rank, number: u64, now: Time) {
        if let Some(&(timed, left)) = self.probes.get(&rank)
            && timed == number
        {
            self.probes.remove(&rank);
            self.measured(rank, now.since(left));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SITE: Rank = Rank(3);

    #[test]
    fn later_measurements_move_the_round_trip_by_an_eighth() {
        let mut round_trips = RoundTrips::default();
        assert_eq!(round_trips.to(SITE), None);
        round_trips.measured(SITE, Span::from_secs(8));
        assert_eq!(round_trips.to(SITE), Some(Span::from_secs(8)));
        round_trips.measured(SITE, Span::from_secs(16));
        assert_eq!(round_trips.to(SITE), Some(Span::from_secs(9)));
        assert_eq!(round_trips.one_way(SITE), Some(Span::from_micros(4_500_000)));
    }

    #[test]
    fn a_repeated_transfer_measures_nothing() {
        let mut round_trips = RoundTrips::default();
        round_trips.transfer_left(SITE, 4, Time::ZERO);
        round_trips.transfer_left(SITE, 5, Time::ZERO);
        round_trips.transfer_repeated(SITE, 4);
        round_trips.transfer_answered(SITE, 4, Time::from_secs(9));
        assert_eq!(round_trips.to(SITE), None);
        round_trips.transfer_left(SITE, 6, Time::from_secs(9));
        round_trips.transfer_answered(SITE, 6, Time::from_secs(11));
        assert_eq!(round_trips.to(SITE), Some(Span::from_secs(2)));
    }
}
