//! What is held of each of several members.

use std::ops::{Index, IndexMut};

use crate::rank::Rank;

/// A row for each of some members, in the order of ranks.
///
/// Rows are side by side. Where ranks follow each other a row is found by its rank, and else by looking for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Table<T> {
    first: Rank,
    /// The ranks, ascending, unless they follow each other.
    ranks: Option<Vec<Rank>>,
    rows: Vec<T>,
}

impl<T> Default for Table<T> {
    fn default() -> Table<T> {
        Table { first: Rank::FIRST, ranks: None, rows: Vec::new() }
    }
}

impl<T> Table<T> {
    /// A row for each of these members.
    ///
    /// # Panics
    /// If they are not in the order of ranks.
    pub(crate) fn of(members: impl Iterator<Item = Rank>, mut row: impl FnMut(Rank) -> T) -> Table<T> {
        let mut table = Table::default();
        for rank in members {
            if table.rows.is_empty() {
                table.first = rank;
            }
            table.note(rank);
            table.rows.push(row(rank));
        }
        table
    }

    fn note(&mut self, rank: Rank) {
        let next = self.first.index() + self.rows.len();
        if self.ranks.is_none() && rank.index() == next {
            return;
        }
        let (first, count) = (self.first.index(), self.rows.len());
        let ranks = self.ranks.get_or_insert_with(|| (first..first + count).map(Rank::at).collect());
        assert!(ranks.last().is_none_or(|&last| last < rank), "members are in the order of ranks");
        ranks.push(rank);
    }

    fn place(&self, rank: Rank) -> Option<usize> {
        match &self.ranks {
            None => rank.index().checked_sub(self.first.index()),
            Some(ranks) => ranks.binary_search(&rank).ok(),
        }
    }

    fn rank_at(&self, place: usize) -> Rank {
        match &self.ranks {
            None => Rank::at(self.first.index() + place),
            Some(ranks) => ranks[place],
        }
    }

    /// None of a member that has no row.
    pub(crate) fn get(&self, rank: Rank) -> Option<&T> {
        self.rows.get(self.place(rank)?)
    }

    pub(crate) fn get_mut(&mut self, rank: Rank) -> Option<&mut T> {
        let place = self.place(rank)?;
        self.rows.get_mut(place)
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whose rows these are.
    pub(crate) fn ranks(&self) -> impl DoubleEndedIterator<Item = Rank> + Clone + use<'_, T> {
        (0..self.rows.len()).map(|place| self.rank_at(place))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Rank, &T)> {
        self.ranks().zip(&self.rows)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (Rank, &mut T)> {
        let Table { first, ranks, rows } = self;
        let first = *first;
        let rank_at =
            move |place: usize| ranks.as_ref().map_or(Rank::at(first.index() + place), |ranks| ranks[place]);
        rows.iter_mut().enumerate().map(move |(place, row)| (rank_at(place), row))
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = &T> {
        self.rows.iter()
    }

    pub(crate) fn rows_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.rows.iter_mut()
    }
}

impl<T> Index<Rank> for Table<T> {
    type Output = T;

    fn index(&self, rank: Rank) -> &T {
        self.get(rank).unwrap_or_else(|| panic!("nothing is held of the member of {rank:?}"))
    }
}

impl<T> IndexMut<Rank> for Table<T> {
    fn index_mut(&mut self, rank: Rank) -> &mut T {
        self.get_mut(rank).unwrap_or_else(|| panic!("nothing is held of the member of {rank:?}"))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The naive twin: a map.
        #[test]
        fn a_table_is_a_map_of_ranks(
            listed in prop::collection::btree_set(0_u32..9, 0..5),
            steps in prop::collection::vec((0_u32..10, 0_u32..100), 0..20),
        ) {
            let members = listed.iter().copied().map(Rank);
            let mut table = Table::of(members.clone(), |rank| 7 * rank.0);
            let mut map: BTreeMap<Rank, u32> = members.map(|rank| (rank, 7 * rank.0)).collect();
            for (rank, value) in steps {
                let rank = Rank(rank);
                prop_assert_eq!(table.get(rank), map.get(&rank));
                match (table.get_mut(rank), map.get_mut(&rank)) {
                    (None, None) => {}
                    (Some(row), Some(naive)) => (*row, *naive) = (value, value),
                    (row, naive) => prop_assert!(false, "{row:?} is not {naive:?}"),
                }
            }
            let pairs = |(rank, row): (Rank, &mut u32)| (rank, *row);
            prop_assert_eq!(table.iter_mut().map(pairs).collect::<BTreeMap<_, _>>(), map.clone());
            prop_assert!(table.iter().eq(map.iter().map(|(&rank, row)| (rank, row))));
            prop_assert!(table.rows().eq(map.values()) && table.rows_mut().map(|row| *row).eq(map.values().copied()));
            prop_assert!(table.ranks().eq(map.keys().copied()));
            prop_assert_eq!(table.len(), map.len());
        }
    }

    #[test]
    #[should_panic(expected = "members are in the order of ranks")]
    fn members_out_of_order_are_refused() {
        Table::of([Rank(1), Rank(3), Rank(2)].into_iter(), |_| ());
    }

    #[test]
    #[should_panic(expected = "nothing is held of the member of Rank(2)")]
    fn a_member_without_a_row_is_not_another() {
        let table = Table::of(Rank::range(Rank(3)..Rank(5)), |_| ());
        table[Rank(2)]
    }
}
