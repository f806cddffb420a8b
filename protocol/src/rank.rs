//! The order of members by size, and of sites behind brokers.

use std::ops::Range;

use scheduler::{Grid, SiteId};

/// Place of a member among all when they are ordered by (processors, id), from 0: the index i of the stealing algorithm, and
/// the order in which members are walked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank(pub(crate) u32);

impl Rank {
    /// Before no other.
    pub(crate) const FIRST: Rank = Rank(0);
    /// After all others, and nobody's.
    pub(crate) const MAX: Rank = Rank(u32::MAX);

    pub(crate) fn of(grid: &Grid, site: SiteId) -> Rank {
        Rank::at(grid.rank(site))
    }

    /// The rank of this number.
    pub(crate) fn at(index: usize) -> Rank {
        Rank(
            u32::try_from(index)
                .expect("processors of a grid, and with them its sites, are counted in 32 bits"),
        )
    }

    /// The rank of a site by its place: ranks from the first that has processors.
    pub(crate) fn at_place(place: usize, brokers: usize) -> Rank {
        Rank::at(brokers + place)
    }

    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }

    /// The place of a site among those that have processors; none of a broker.
    pub(crate) fn place(self, brokers: usize) -> Option<usize> {
        self.index().checked_sub(brokers)
    }

    /// The next lower one.
    pub(crate) fn below(self) -> Option<Rank> {
        self.0.checked_sub(1).map(Rank)
    }

    /// Those from one on that are before another.
    pub(crate) fn range(ranks: Range<Rank>) -> impl DoubleEndedIterator<Item = Rank> + Clone {
        (ranks.start.0..ranks.end.0).map(Rank)
    }

    /// All of a grid.
    pub(crate) fn all(grid: &Grid) -> impl DoubleEndedIterator<Item = Rank> + Clone + use<> {
        Rank::range(Rank::FIRST..Rank::at(grid.len()))
    }

    /// Those of brokers.
    pub(crate) fn of_brokers(grid: &Grid) -> impl DoubleEndedIterator<Item = Rank> + Clone + use<> {
        Rank::range(Rank::FIRST..Rank::at(grid.brokers()))
    }
}
