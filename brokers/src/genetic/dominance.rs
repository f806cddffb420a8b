//! Dominance between individuals: fronts by fast non-dominated sorting, and how lonely a member of a front is.
//!
//! After Deb, Pratap, Agarwal, Meyarivan, *A Fast and Elitist Multiobjective Genetic Algorithm: NSGA-II*, IEEE Transactions
//! on Evolutionary Computation 6 (2), 2002, §III.A and III.B. All is in integers; ties end at the place in the population.

use std::cmp::Reverse;

use super::individual::Criteria;

/// Binary places of a distance, as of scaled criteria.
const DISTANCE_BITS: u32 = 40;

/// Where an individual stands in a population: the number of its front, then how lonely it is there; the least is the best.
/// This is the crowded-comparison operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Standing {
    /// 0 for those that nobody dominates.
    pub front: usize,
    /// See [`crowding`].
    pub crowding: Reverse<u128>,
}

/// Whether one is not worse in any criterion and better in one. Of those that are no schedule, whoever has fewer jobs at
/// sites too small for them dominates (constrained domination, §VI.A).
pub fn dominates(one: &Criteria, other: &Criteria) -> bool {
    if one.misfits != other.misfits {
        return one.misfits < other.misfits;
    }
    let (one, other) = (one.values(), other.values());
    one.iter().zip(&other).all(|(one, other)| one <= other) && one != other
}

/// Places by front, the first of those that nobody dominates, the next of those that only members of earlier ones dominate;
/// each in order of places.
pub fn fronts(points: &[&Criteria]) -> Vec<Vec<usize>> {
    let mut dominated: Vec<Vec<usize>> = vec![Vec::new(); points.len()];
    let mut dominating = vec![0_usize; points.len()];
    for one in 0..points.len() {
        for other in one + 1..points.len() {
            let pair = match (dominates(points[one], points[other]), dominates(points[other], points[one])) {
                (true, _) => (one, other),
                (_, true) => (other, one),
                (false, false) => continue,
            };
            dominated[pair.0].push(pair.1);
            dominating[pair.1] += 1;
        }
    }
    let mut fronts = Vec::new();
    let mut front: Vec<usize> = (0..points.len()).filter(|&place| dominating[place] == 0).collect();
    while !front.is_empty() {
        let mut next = Vec::new();
        for &other in front.iter().flat_map(|&place| &dominated[place]) {
            dominating[other] -= 1;
            if dominating[other] == 0 {
                next.push(other);
            }
        }
        next.sort_unstable();
        fronts.push(std::mem::replace(&mut front, next));
    }
    fronts
}

/// Crowding distances of the members of a front: over all criteria, the distance between both neighbors as a share of that
/// between the ends, in units of 2^-40; the largest number for the ends themselves.
///
/// Of equals the first in the front is the first in a criterion, and a criterion in which all are equal has no ends.
pub fn crowding(front: &[&Criteria]) -> Vec<u128> {
    let mut distances = vec![0_u128; front.len()];
    for criterion in 0..4 {
        let value = |place: usize| front[place].values()[criterion];
        let mut order: Vec<usize> = (0..front.len()).collect();
        order.sort_by_key(|&place| value(place));
        let (Some(&first), Some(&last)) = (order.first(), order.last()) else { continue };
        let span = value(last) - value(first);
        if span == 0 {
            continue;
        }
        (distances[first], distances[last]) = (u128::MAX, u128::MAX);
        for around in order.windows(3) {
            let between = value(around[2]) - value(around[0]);
            let distance = &mut distances[around[1]];
            *distance = distance.saturating_add((between << DISTANCE_BITS) / span);
        }
    }
    distances
}

/// Where each of a population stands, and the places of the first front.
pub fn standings(population: &[&Criteria]) -> (Vec<Standing>, Vec<usize>) {
    let fronts = fronts(population);
    let mut standings = vec![Standing { front: 0, crowding: Reverse(0) }; population.len()];
    for (front, places) in fronts.iter().enumerate() {
        let members: Vec<&Criteria> = places.iter().map(|&place| population[place]).collect();
        for (&place, distance) in places.iter().zip(crowding(&members)) {
            standings[place] = Standing { front, crowding: Reverse(distance) };
        }
    }
    (standings, fronts.into_iter().next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn criteria(values: [u32; 4], misfits: u32) -> Criteria {
        let [makespan, turnaround, response, wait] = values.map(i64::from);
        Criteria { makespan, turnaround, response: response as u128, wait, misfits, jobs: 1 }
    }

    fn references(points: &[Criteria]) -> Vec<&Criteria> {
        points.iter().collect()
    }

    /// By the definition: whom nobody dominates is taken away, again and again.
    fn peeled(points: &[Criteria]) -> Vec<Vec<usize>> {
        let mut left: Vec<usize> = (0..points.len()).collect();
        let mut fronts = Vec::new();
        while !left.is_empty() {
            let is_free =
                |&place: &usize| !left.iter().any(|&other| is_worse(&points[place], &points[other]));
            let front: Vec<usize> = left.iter().copied().filter(|place| is_free(place)).collect();
            left.retain(|place| !front.contains(place));
            fronts.push(front);
        }
        fronts
    }

    /// Whether the other dominates, case by case.
    fn is_worse(one: &Criteria, other: &Criteria) -> bool {
        if one.misfits != other.misfits {
            return other.misfits < one.misfits;
        }
        let (mut better, mut worse) = (0, 0);
        for (one, other) in one.values().into_iter().zip(other.values()) {
            better += u32::from(other < one);
            worse += u32::from(other > one);
        }
        better > 0 && worse == 0
    }

    proptest! {
        #[test]
        fn fronts_are_those_of_peeling(
            points in prop::collection::vec((prop::array::uniform4(0u32..5), 0u32..2), 0..60)
        ) {
            let points: Vec<Criteria> = points.into_iter().map(|(values, misfits)| criteria(values, misfits)).collect();
            prop_assert_eq!(fronts(&references(&points)), peeled(&points));
        }
    }

    #[test]
    fn who_is_equal_shares_a_front_and_who_is_no_schedule_is_behind_all() {
        let points = [
            criteria([1, 1, 1, 1], 1),
            criteria([5, 5, 5, 5], 0),
            criteria([5, 5, 5, 5], 0),
            criteria([9, 1, 9, 9], 0),
            criteria([5, 5, 5, 6], 0),
        ];
        assert_eq!(fronts(&references(&points)), [vec![1, 2, 3], vec![4], vec![0]]);
        let (standings, first) = standings(&references(&points));
        assert_eq!(first, [1, 2, 3]);
        assert_eq!(standings.iter().map(|one| one.front).collect::<Vec<_>>(), [2, 0, 0, 0, 1]);
    }

    #[test]
    fn distances_are_those_of_the_hand_example_and_ends_are_the_loneliest() {
        // Two criteria that contradict each other, two in which all are equal.
        let points = [[0, 8, 3, 3], [2, 4, 3, 3], [3, 2, 3, 3], [8, 0, 3, 3]].map(|one| criteria(one, 0));
        let unit = 1_u128 << DISTANCE_BITS;
        // (3 - 0) / 8 + (8 - 2) / 8, and (8 - 2) / 8 + (4 - 0) / 8.
        let inner = [unit * 3 / 8 + unit * 6 / 8, unit * 6 / 8 + unit * 4 / 8];
        assert_eq!(crowding(&references(&points)), [u128::MAX, inner[0], inner[1], u128::MAX]);
        let (standings, _) = standings(&references(&points));
        assert!(standings[0] == standings[3] && standings[3] < standings[2] && standings[2] < standings[1]);
    }

    #[test]
    fn equals_are_not_far_from_each_other() {
        let same = [criteria([1, 2, 3, 4], 0); 3];
        assert_eq!(crowding(&references(&same)), [0; 3]);
        assert_eq!(crowding(&[]), [0_u128; 0]);
        let points = [[0, 4, 0, 0], [2, 2, 0, 0], [2, 2, 0, 0], [4, 0, 0, 0]].map(|one| criteria(one, 0));
        let distances = crowding(&references(&points));
        // In each criterion one neighbor is the equal one.
        assert_eq!(distances[1..3], [1_u128 << DISTANCE_BITS; 2]);
    }
}
