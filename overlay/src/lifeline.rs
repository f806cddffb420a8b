//! Lifelines: whom an idle rank asks last, and who then wakes it when there is work. Saraswat, Kambadur, Kodali, Grove,
//! Krishnamoorthy, *Lifeline-based global load balancing*, PPoPP 2011, §4: cyclic hypercubes.
//!
//! Ranks are numbers of so many digits to a base. A rank has one lifeline for each digit: the rank that has the next digit
//! there, or, after the last digit for which there is a rank, 0. So the ranks that differ in one digit only are a ring. All
//! ranks reach all others, as digits can be lowered first, which leads to lesser ranks only, and then raised.

/// A cyclic hypercube over ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifelines {
    ranks: usize,
    base: usize,
    digits: u32,
}

impl Lifelines {
    /// With as many digits as numbers below `ranks` have to this base: for base 2 the hypercube, with log₂ n lifelines each.
    ///
    /// # Panics
    /// If there are no ranks, or the base is below 2.
    pub fn of_base(ranks: usize, base: usize) -> Lifelines {
        assert!(ranks > 0, "lifelines need ranks");
        assert!(base > 1, "digits need a base of two at least");
        let mut digits = 0;
        while size(base, digits) < ranks {
            digits += 1;
        }
        Lifelines { ranks, base, digits }
    }

    /// With at most so many lifelines each, however many ranks there are: the base is the least for which so many digits do.
    ///
    /// # Panics
    /// If there are no ranks, or no lifelines.
    pub fn of_degree(ranks: usize, degree: u32) -> Lifelines {
        assert!(degree > 0, "without lifelines nobody is woken");
        let mut base = 2;
        while size(base, degree) < ranks {
            base += 1;
        }
        Lifelines::of_base(ranks, base)
    }

    /// The base of the digits.
    pub fn base(&self) -> usize {
        self.base
    }

    /// Most lifelines of a rank.
    pub fn degree(&self) -> u32 {
        self.digits
    }

    /// Most lifelines in a row from any rank to any other: a digit goes around its ring at most once.
    pub fn diameter_max(&self) -> usize {
        self.digits as usize * (self.base - 1)
    }

    /// The lifelines of a rank, that of the lowest digit first. A digit that no other rank differs in has none, so there are
    /// fewer than [`Lifelines::degree`] for some ranks if these are not a power of the base.
    ///
    /// # Panics
    /// If there is no such rank.
    pub fn of(&self, rank: usize) -> Vec<usize> {
        assert!(rank < self.ranks, "there is no rank {rank} of {}", self.ranks);
        let lifeline = |digit: u32| {
            let unit = size(self.base, digit);
            let value = rank / unit % self.base;
            let lowest = rank - value * unit;
            let next = (value + 1 < self.base).then(|| rank.saturating_add(unit));
            let next = next.filter(|next| *next < self.ranks).unwrap_or(lowest);
            (next != rank).then_some(next)
        };
        (0..self.digits).filter_map(lifeline).collect()
    }
}

/// Numbers of so many digits to a base.
fn size(base: usize, digits: u32) -> usize {
    base.saturating_pow(digits)
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    /// How many lifelines it takes from a rank to each other, as far as there is a way.
    fn distances(ranks: usize, of: impl Fn(usize) -> Vec<usize>, from: usize) -> Vec<Option<usize>> {
        let mut distances = vec![None; ranks];
        distances[from] = Some(0);
        let mut open = VecDeque::from([(from, 0)]);
        while let Some((rank, steps)) = open.pop_front() {
            for lifeline in of(rank) {
                if distances[lifeline].is_none() {
                    distances[lifeline] = Some(steps + 1);
                    open.push_back((lifeline, steps + 1));
                }
            }
        }
        distances
    }

    /// The most of all ranks; `None` if some rank does not reach another.
    fn diameter(ranks: usize, of: impl Fn(usize) -> Vec<usize>) -> Option<usize> {
        let all = (0..ranks).flat_map(|from| distances(ranks, &of, from));
        all.collect::<Option<Vec<usize>>>()?.into_iter().max()
    }

    fn diameter_of(lifelines: &Lifelines) -> Option<usize> {
        diameter(lifelines.ranks, |rank| lifelines.of(rank))
    }

    #[test]
    fn a_hypercube_of_eight_is_the_known_one() {
        let cube = Lifelines::of_base(8, 2);
        assert_eq!(cube.degree(), 3);
        for rank in 0..8 {
            assert_eq!(cube.of(rank), [rank ^ 1, rank ^ 2, rank ^ 4]);
        }
        assert_eq!(diameter_of(&cube), Some(3));
    }

    #[test]
    fn a_ring_is_a_cube_of_one_digit() {
        let ring = Lifelines::of_degree(7, 1);
        assert_eq!(ring.base(), 7);
        assert_eq!((0..7).map(|rank| ring.of(rank)).collect::<Vec<_>>(), [[1], [2], [3], [4], [5], [6], [0]]);
        assert_eq!(diameter_of(&ring), Some(6));
    }

    #[test]
    fn every_rank_reaches_every_other_within_the_stated_number_of_lifelines() {
        for ranks in 1..150 {
            for base in [2, 3, 4, 7] {
                let lifelines = Lifelines::of_base(ranks, base);
                let diameter = diameter_of(&lifelines).unwrap_or_else(|| panic!("{lifelines:?} is in parts"));
                assert!(diameter <= lifelines.diameter_max(), "{lifelines:?}: {diameter}");
            }
        }
    }

    /// The bound is met where the ranks are a power of the base, so a lesser one would be wrong.
    #[test]
    fn the_stated_number_is_needed_where_ranks_are_a_power_of_the_base() {
        for (ranks, base) in [(64, 2), (81, 3), (64, 4), (125, 5)] {
            let lifelines = Lifelines::of_base(ranks, base);
            assert_eq!(diameter_of(&lifelines), Some(lifelines.diameter_max()), "{lifelines:?}");
        }
    }

    #[test]
    fn as_many_ranks_have_a_lifeline_as_it_has_itself() {
        for (ranks, base) in [(100, 2), (100, 3), (77, 5)] {
            let lifelines = Lifelines::of_base(ranks, base);
            let mut incoming = vec![0; ranks];
            for rank in 0..ranks {
                let outgoing = lifelines.of(rank);
                assert!(outgoing.len() <= lifelines.degree() as usize && !outgoing.contains(&rank));
                for lifeline in outgoing {
                    incoming[lifeline] += 1;
                }
            }
            for (rank, incoming) in incoming.iter().enumerate() {
                assert_eq!(*incoming, lifelines.of(rank).len(), "of {rank} in {lifelines:?}");
            }
        }
    }

    #[test]
    fn a_fixed_degree_stays_what_it_is_while_a_hypercube_grows() {
        for (ranks, cube, base) in [(100, 7, 3), (1_000, 10, 4), (10_000, 14, 7)] {
            assert_eq!(Lifelines::of_base(ranks, 2).degree(), cube);
            let fixed = Lifelines::of_degree(ranks, 5);
            assert_eq!(fixed.base(), base);
            assert!((0..ranks).all(|rank| fixed.of(rank).len() <= 5));
            assert!(
                distances(ranks, |rank| fixed.of(rank), ranks - 1).iter().all(Option::is_some),
                "{fixed:?} is in parts"
            );
        }
    }

    #[test]
    fn one_rank_has_no_lifelines() {
        assert_eq!(Lifelines::of_base(1, 2).of(0), [0; 0]);
        assert_eq!(Lifelines::of_degree(1, 3).of(0), [0; 0]);
    }

    /// Digits that stop at the last one, and digits that go on to where there is no rank.
    #[test]
    fn mutant_digits_that_do_not_go_around_leave_ranks_unreached() {
        for (ranks, base) in [(8, 2), (100, 3), (77, 5)] {
            let lifelines = Lifelines::of_base(ranks, base);
            let raised = |rank: usize| -> Vec<usize> {
                lifelines.of(rank).into_iter().filter(|next| *next > rank).collect()
            };
            assert_eq!(diameter(ranks, raised), None);
        }
        // 100 is no power of 3: ranks whose next digit leads beyond the last rank have no lifeline there.
        let cut = Lifelines::of_base(243, 3);
        let cut =
            |rank: usize| -> Vec<usize> { cut.of(rank).into_iter().filter(|next| *next < 100).collect() };
        assert!(
            diameter(100, cut) > diameter_of(&Lifelines::of_base(100, 3)) || diameter(100, cut).is_none()
        );
    }
}
