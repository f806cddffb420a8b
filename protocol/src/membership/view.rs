//! Whom a member knows, and who of these is there, as far as it believes.

use std::collections::BTreeMap;

use scheduler::Grid;

use super::state::Presence;
use crate::rank::Rank;

/// The members that one knows: all of the grid.
///
/// Who is not noted otherwise is there, so that a grid in which all are takes no room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct View {
    me: Rank,
    /// After the last that is known.
    end: Rank,
    away: BTreeMap<Rank, Presence>,
}

impl View {
    /// All members of a grid, all there.
    pub(crate) fn complete(grid: &Grid, me: Rank) -> View {
        View { me, end: Rank::at(grid.len()), away: BTreeMap::new() }
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

    /// Those that are known.
    pub(crate) fn all(&self) -> impl DoubleEndedIterator<Item = Rank> + Clone + use<> {
        self.from(Rank::FIRST)
    }

    /// Those from a rank on.
    pub(crate) fn from(&self, first: Rank) -> impl DoubleEndedIterator<Item = Rank> + Clone + use<> {
        Rank::range(first..self.end)
    }

    /// All but this member.
    pub(crate) fn others(&self) -> impl Iterator<Item = Rank> + use<> {
        let me = self.me;
        self.all().filter(move |&other| other != me)
    }

    pub(crate) fn smaller(&self) -> impl DoubleEndedIterator<Item = Rank> + Clone + use<> {
        Rank::range(Rank::FIRST..self.me)
    }

    pub(crate) fn larger(&self) -> impl DoubleEndedIterator<Item = Rank> + Clone + use<> {
        self.from(Rank(self.me.0 + 1))
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

    use super::*;

    const STATES: [Presence; 4] = [Presence::Here, Presence::Suspected, Presence::Leaving, Presence::Gone];

    proptest! {
        /// The naive twin: a list of what is believed of each.
        #[test]
        fn a_view_answers_as_a_list_of_all_does(
            sizes in prop::collection::vec(1_u32..9, 1..7),
            me in 0_u32..7,
            news in prop::collection::vec((0_u32..7, 0_usize..4), 0..20),
        ) {
            let members = u32::try_from(sizes.len()).unwrap();
            let me = Rank(me % members);
            let mut view = View::complete(&Grid::of_sizes(&sizes).unwrap(), me);
            let mut list = vec![Presence::Here; sizes.len()];
            for (rank, state) in news {
                let rank = Rank(rank % members);
                let before = std::mem::replace(&mut list[rank.index()], STATES[state]);
                prop_assert_eq!(view.sees(rank, STATES[state]), before);
            }
            let ranks = |is: &dyn Fn(Rank) -> bool| (0..members).map(Rank).filter(|&rank| is(rank)).collect::<Vec<_>>();
            let believed = |rank: Rank| list[rank.index()];
            let counts = |rank| matches!(believed(rank), Presence::Here | Presence::Suspected);
            prop_assert!(ranks(&|_| true).into_iter().all(|rank| view.presence(rank) == believed(rank)));
            prop_assert_eq!(view.present().collect::<Vec<_>>(), ranks(&counts));
            prop_assert_eq!(view.present().next_back(), ranks(&counts).pop());
            prop_assert_eq!(view.unreachable().collect::<Vec<_>>(), ranks(&|rank| believed(rank) != Presence::Here));
            prop_assert_eq!(ranks(&|rank| view.is_reachable(rank)), ranks(&|rank| believed(rank) == Presence::Here));
            prop_assert_eq!(ranks(&|rank| view.is_absent(rank)), ranks(&|rank| !counts(rank)));
            prop_assert_eq!(view.others().collect::<Vec<_>>(), ranks(&|rank| rank != me));
            prop_assert_eq!(view.smaller().collect::<Vec<_>>(), ranks(&|rank| rank < me));
            prop_assert_eq!(view.larger().collect::<Vec<_>>(), ranks(&|rank| rank > me));
        }
    }
}
