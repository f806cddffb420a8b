//! Deterministic tournament (§3.4).

use scheduler::draw::Draw;

/// So many winners, as places: the population is shuffled and looked through in groups, and the least cost of a group wins;
/// again and again until there are enough. Of equals the first of the group wins. What is left behind the last whole group
/// does not take part, so that nobody wins alone.
///
/// # Panics
/// If a group is empty, or larger than the population.
pub fn parents<C: Ord>(costs: &[C], group: usize, count: usize, draw: &mut Draw) -> Vec<usize> {
    assert!((1..=costs.len()).contains(&group), "a group is of the population");
    let mut places: Vec<usize> = (0..costs.len()).collect();
    let mut winners = Vec::with_capacity(count);
    while winners.len() < count {
        draw.shuffle(&mut places);
        let won = |group: &[usize]| group.iter().copied().min_by_key(|&place| &costs[place]);
        winners.extend(places.chunks_exact(group).filter_map(won).take(count - winners.len()));
    }
    winners
}

#[cfg(test)]
mod tests {
    use super::super::Purpose;
    use super::*;

    #[test]
    fn in_pairs_the_best_wins_each_pass_and_the_worst_never() {
        let costs: Vec<u32> = (0..100).collect();
        for seed in 0..50 {
            let mut draw = Purpose::Initial.draw(seed, 1);
            let winners = parents(&costs, 2, 100, &mut draw);
            let times = |place: usize| winners.iter().filter(|&&winner| winner == place).count();
            assert_eq!((winners.len(), times(0), times(99)), (100, 2, 0));
            // Half of the population wins each of two passes.
            assert!((0..100).all(|place| times(place) <= 2));
        }
    }

    #[test]
    fn groups_of_other_sizes_fill_the_count_and_nobody_wins_alone() {
        let costs = [5, 4, 3, 2, 1, 0, 9];
        for group in 1..=7 {
            let winners = parents(&costs, group, 7, &mut Purpose::Initial.draw(3, 1));
            assert_eq!(winners.len(), 7);
            assert!(group == 1 || !winners.contains(&6), "{group}");
            assert!(group < 7 || winners.iter().all(|&winner| winner == 5));
        }
    }
}
