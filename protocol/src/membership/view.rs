//! Whom a member knows, and who of these is there, as far as it believes.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::state::Presence;
use crate::config::PeerConfig;
use crate::rank::Rank;

/// The members that one knows, itself among them: all of the grid, or some.
///
/// Who is not noted otherwise is there, so that a grid in which all are takes no room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct View {
    me: Rank,
    known: Known,
    away: BTreeMap<Rank, Presence>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Known {
    /// All before this one.
    All { end: Rank },
    /// These, ascending.
    Some(Arc<[Rank]>),
}

impl Known {
    fn len(&self) -> usize {
        match self {
            Known::All { end } => end.index(),
            Known::Some(ranks) => ranks.len(),
        }
    }

    fn at(&self, place: usize) -> Rank {
        match self {
            Known::All { .. } => Rank::at(place),
            Known::Some(ranks) => ranks[place],
        }
    }

    /// Where the first is that is not below a rank.
    fn place(&self, rank: Rank) -> usize {
        match self {
            Known::All { end } => rank.min(*end).index(),
            Known::Some(ranks) => ranks.partition_point(|&known| known < rank),
        }
    }
}

impl View {
    /// Whom a member is told to know, all there.
    pub(crate) fn of(config: &PeerConfig) -> View {
        let me = Rank::of(&config.grid, config.site);
        let known = match &config.views {
            None => Known::All { end: Rank::at(config.grid.len()) },
            Some(views) => Known::Some(views.of_rank(me)),
        };
        View { me, known, away: BTreeMap::new() }
    }

    /// Whose view this is.
    pub(crate) fn me(&self) -> Rank {
        self.me
    }

    /// What is believed of a member; of itself that it is here, or leaving.
    pub(crate) fn presence(&self, rank: Rank) -> Presence {
        self.away.get(&rank).copied().unwrap_or(Presence::Here)
    }

    /// Believes something else of a member than before. What that was.
    pub(crate) fn sees(&mut self, rank: Rank, presence: Presence) -> Presence {
        let before = match presence {
            Presence::Here => self.away.remove(&rank),
            Presence::Suspected | Presence::Leaving | Presence::Gone => self.away.insert(rank, presence),
        };
        before.unwrap_or(Presence::Here)
    }

    /// Whether a member does not count in the order of sizes.
    pub(crate) fn is_absent(&self, rank: Rank) -> bool {
        matches!(self.presence(rank), Presence::Leaving | Presence::Gone)
    }

    /// Whether it makes sense to ask or to give anything to a member.
    pub(crate) fn is_reachable(&self, rank: Rank) -> bool {
        self.presence(rank) == Presence::Here
    }

    /// Whether not all members of the grid are known.
    pub(crate) fn is_bounded(&self) -> bool {
        matches!(self.known, Known::Some(_))
    }

    /// Whether a member is known.
    pub(crate) fn knows(&self, rank: Rank) -> bool {
        let place = self.known.place(rank);
        place < self.known.len() && self.known.at(place) == rank
    }

    /// How many are known, this one among them.
    pub(crate) fn len(&self) -> usize {
        self.known.len()
    }

    fn places(&self, places: Range<usize>) -> impl DoubleEndedIterator<Item = Rank> + Clone + use<> {
        let known = self.known.clone();
        places.map(move |place| known.at(place))
    }

    /// Those that are known.
    pub(crate) fn all(&self) -> impl DoubleEndedIterator<Item = Rank> + Clone + use<> {
        self.places(0..self.known.len())
    }

    /// Those from a rank on.
    pub(crate) fn from(&self, first: Rank) -> impl DoubleEndedIterator<Item = Rank> + Clone + use<> {
        self.places(self.known.place(first)..self.known.len())
    }

    /// All but this member.
    pub(crate) fn others(&self) -> impl Iterator<Item = Rank> + use<> {
        let me = self.me;
        self.all().filter(move |&other| other != me)
    }

    pub(crate) fn smaller(&self) -> impl DoubleEndedIterator<Item = Rank> + Clone + use<> {
        self.places(0..self.known.place(self.me))
    }

    pub(crate) fn larger(&self) -> impl DoubleEndedIterator<Item = Rank> + Clone + use<> {
        self.from(Rank(self.me.0 + 1))
    }

    /// How many others there are from a rank on.
    pub(crate) fn others_from(&self, first: Rank) -> usize {
        self.known.len() - self.known.place(first) - usize::from(self.me >= first)
    }

    /// The one of this number among the others from a rank on.
    pub(crate) fn other_at(&self, number: usize, first: Rank) -> Rank {
        let place = self.known.place(first) + number;
        let passes_me = self.me >= first && place >= self.known.place(self.me);
        self.known.at(place + usize::from(passes_me))
    }

    /// The number of one that is known among the others from a rank on: see [`View::other_at`].
    pub(crate) fn number_of(&self, other: Rank, first: Rank) -> usize {
        let after_me = self.me >= first && other > self.me;
        self.known.place(other) - self.known.place(first) - usize::from(after_me)
    }

    /// The last of those that count in the order of sizes, after one rank and up to another, for which something holds that holds up to
    /// some size and not beyond.
    pub(crate) fn last_between(
        &self,
        above: Rank,
        up_to: Rank,
        holds: impl Fn(Rank) -> bool,
    ) -> Option<Rank> {
        let (first, end) = (self.known.place(Rank(above.0 + 1)), self.known.place(Rank(up_to.0 + 1)));
        let (mut low, mut high) = (first, end);
        while low < high {
            let middle = low + (high - low) / 2;
            if holds(self.known.at(middle)) { low = middle + 1 } else { high = middle }
        }
        self.places(first..low).rev().find(|&rank| !self.is_absent(rank))
    }

    /// Those that count in the order of sizes.
    pub(crate) fn present(&self) -> impl DoubleEndedIterator<Item = Rank> {
        self.all().filter(|&rank| !self.is_absent(rank))
    }

    /// Those that it makes no sense to ask.
    pub(crate) fn unreachable(&self) -> impl Iterator<Item = Rank> {
        self.away.keys().copied()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use scheduler::{Grid, StrategySpec};

    use super::*;
    use crate::config::Terms;
    use crate::views::Views;

    const STATES: [Presence; 4] = [Presence::Here, Presence::Suspected, Presence::Leaving, Presence::Gone];

    proptest! {
        /// The naive twin: a list of what is believed of each, and whether it is known.
        #[test]
        fn a_view_answers_as_a_list_of_all_does(
            sizes in prop::collection::vec(1_u32..9, 1..7),
            me in 0_u32..7,
            circle in prop::option::of(0_u32..128),
            first in 0_u32..7,
            news in prop::collection::vec((0_u32..7, 0_usize..4), 0..20),
        ) {
            let members = u32::try_from(sizes.len()).unwrap();
            let me = Rank(me % members);
            let strategy = "local".parse::<StrategySpec>().unwrap().strategy;
            let mut config = Terms::new(Arc::new(Grid::of_sizes(&sizes).unwrap()), strategy).at_rank(me.index());
            let knows = |rank: Rank| rank == me || circle.is_none_or(|circle| (circle >> rank.0) & 1 == 1);
            if circle.is_some() {
                let of = |rank: u32| {
                    let is_one = |&other: &u32| match (rank == me.0, other == me.0) {
                        (true, false) => knows(Rank(other)),
                        (false, true) => knows(Rank(rank)),
                        _ => false,
                    };
                    (0..members).filter(is_one).collect()
                };
                config.views = Some(Arc::new(Views::of((0..members).map(of).collect())));
            }
            let mut view = View::of(&config);
            let mut list = vec![Presence::Here; sizes.len()];
            for (rank, state) in news {
                let rank = Rank(rank % members);
                let before = std::mem::replace(&mut list[rank.index()], STATES[state]);
                prop_assert_eq!(view.sees(rank, STATES[state]), before);
            }
            let ranks = |is: &dyn Fn(Rank) -> bool| (0..members).map(Rank).filter(|&rank| is(rank)).collect::<Vec<_>>();
            let believed = |rank: Rank| list[rank.index()];
            let counts = |rank: Rank| matches!(believed(rank), Presence::Here | Presence::Suspected);
            let present = |rank| knows(rank) && counts(rank);
            prop_assert!(ranks(&|_| true).into_iter().all(|rank| view.presence(rank) == believed(rank)));
            prop_assert_eq!(view.present().collect::<Vec<_>>(), ranks(&present));
            prop_assert_eq!(view.present().next_back(), ranks(&present).pop());
            prop_assert_eq!(view.unreachable().collect::<Vec<_>>(), ranks(&|rank| believed(rank) != Presence::Here));
            prop_assert_eq!(ranks(&|rank| view.is_reachable(rank)), ranks(&|rank| believed(rank) == Presence::Here));
            prop_assert_eq!(ranks(&|rank| view.is_absent(rank)), ranks(&|rank| !counts(rank)));
            prop_assert_eq!(ranks(&|rank| view.knows(rank)), ranks(&knows));
            prop_assert_eq!((view.is_bounded(), view.len()), (circle.is_some(), ranks(&knows).len()));
            prop_assert_eq!(view.others().collect::<Vec<_>>(), ranks(&|rank| knows(rank) && rank != me));
            prop_assert_eq!(view.smaller().collect::<Vec<_>>(), ranks(&|rank| knows(rank) && rank < me));
            prop_assert_eq!(view.larger().collect::<Vec<_>>(), ranks(&|rank| knows(rank) && rank > me));
            let first = Rank(first % members);
            prop_assert_eq!(view.from(first).collect::<Vec<_>>(), ranks(&|rank| knows(rank) && rank >= first));
            let others = ranks(&|rank| knows(rank) && rank >= first && rank != me);
            prop_assert_eq!((0..view.others_from(first)).map(|number| view.other_at(number, first)).collect::<Vec<_>>(), others.clone());
            prop_assert!(others.iter().enumerate().all(|(number, &other)| view.number_of(other, first) == number));
            for border in 0..=members {
                let between = ranks(&|rank| present(rank) && rank > first && rank <= me && rank.0 < border).pop();
                prop_assert_eq!(view.last_between(first, me, |rank| rank.0 < border), between);
            }
        }
    }
}
