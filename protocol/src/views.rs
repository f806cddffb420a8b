//! Who knows whom, in a grid in which not all know all.

use std::sync::Arc;

use overlay::{Options, settled};

use crate::rank::Rank;

/// Whom each member of a grid knows, where that is not everybody: its neighbors in an overlay, which know it, too.
///
/// Names and sizes of all members are in the grid that all are told of. What is bounded is to whom a member turns by itself, whom it tells
/// of its queue, and of whom it keeps what it heard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Views {
    /// By rank; each ascending, with the member itself.
    by_rank: Vec<Arc<[Rank]>>,
}

impl Views {
    /// Of so many members with at most so many neighbors each, as an overlay has them after a while without failures
    /// ([`settled::neighbors`]). The same seed has the same neighbors.
    ///
    /// # Panics
    /// If nobody may have a neighbor.
    pub fn settled(members: usize, neighbors: usize, seed: u64) -> Views {
        let options =
            Options { active_max: neighbors, passive_max: neighbors.saturating_mul(6), ..Options::default() };
        Views::of(settled::neighbors(members, options, seed))
    }

    /// Of these neighbors by rank, who must know each other.
    ///
    /// # Panics
    /// If one has a neighbor that there is not, or that does not have it.
    pub fn of(neighbors: Vec<Vec<u32>>) -> Views {
        let mut by_rank = Vec::with_capacity(neighbors.len());
        for (rank, list) in neighbors.iter().enumerate() {
            let me = Rank::at(rank);
            let is_mutual = |&other: &u32| neighbors[Rank(other).index()].contains(&me.0);
            assert!(list.iter().all(is_mutual), "who is known knows who knows it");
            let mut known: Vec<Rank> = list.iter().copied().map(Rank).chain([me]).collect();
            known.sort_unstable();
            known.dedup();
            by_rank.push(known.into());
        }
        Views { by_rank }
    }

    /// The members that the one of a rank knows, itself among them, ascending.
    pub(crate) fn of_rank(&self, rank: Rank) -> Arc<[Rank]> {
        Arc::clone(&self.by_rank[rank.index()])
    }

    /// Whether two members know each other. Each knows itself.
    pub fn are_neighbors(&self, rank: usize, other: usize) -> bool {
        self.by_rank[rank].binary_search(&Rank::at(other)).is_ok()
    }
}
