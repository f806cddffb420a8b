//! Schedules that must be equal: of the fast references and their naive twins, and of variants that are one
//! algorithm in two forms.

use proptest::prelude::*;
use scheduler::ideal::{GreedySteal, StatefulSteal, StatelessSteal, closed_form, definition};
use scheduler::waiting::WaitingList;
use scheduler::{Grid, JobSpec, Order, Selection, Threshold};

use crate::ideal_twin::{
    Floor, TwinGreedy, TwinSteal, any_instance, crowded, grids, instances, job, orders, play, play_with,
    selections, steal, thresholds,
};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn stealing_equals_its_naive_twin(
        (grid, jobs) in any_instance(), percent in thresholds(), order in orders(), select in selections(),
    ) {
        let steal = steal(percent, order, select);
        let mut twin_lists = Vec::new();
        let expected = play_with(&mut TwinSteal::new(&grid, steal), &jobs, |_, twin| twin_lists.push(twin.lists()));
        let mut lists = Vec::new();
        let ran = play_with(&mut StatelessSteal::new(&grid, steal), &jobs, |_, ideal| lists.push(ideal.lists()));
        prop_assert_eq!(ran, expected);
        prop_assert_eq!(lists, twin_lists);
    }

    /// Many jobs, so that sites look again and again at lists that others take from.
    #[test]
    fn long_queues_equal_the_naive_twin(
        (grid, jobs) in crowded(), percent in thresholds(), order in orders(), select in selections(),
    ) {
        let steal = steal(percent, order, select);
        let expected = play(&mut TwinSteal::new(&grid, steal), &jobs);
        prop_assert_eq!(play(&mut StatelessSteal::new(&grid, steal), &jobs), expected);
    }

    #[test]
    fn greedy_stealing_equals_its_naive_twin(
        (grid, jobs) in any_instance(), percent in thresholds(), order in orders(), select in selections(),
    ) {
        let steal = steal(percent, order, select);
        let expected = play(&mut TwinGreedy { floor: Floor::new(&grid), steal }, &jobs);
        prop_assert_eq!(play(&mut GreedySteal::new(&grid, steal), &jobs), expected);
    }

    #[test]
    fn explicit_lists_give_the_same_schedule_offline(
        (grid, jobs) in instances(0), percent in thresholds(), select in selections(),
    ) {
        let mut stateful = StatefulSteal::new(&grid, Threshold::new(percent).unwrap(), select);
        let expected = play(&mut stateful, &jobs);
        let mut stateless = StatelessSteal::new(&grid, steal(percent, StatefulSteal::ORDER, select));
        prop_assert_eq!(play(&mut stateless, &jobs), expected);
    }

    #[test]
    fn thresholds_of_none_and_all_are_one_queue_each((grid, jobs) in any_instance(), select in selections()) {
        let st0 = play(&mut StatelessSteal::new(&grid, steal(0, Order::Ahb, select)), &jobs);
        let st100 = play(&mut StatelessSteal::new(&grid, steal(100, Order::Ahb, select)), &jobs);
        prop_assert_eq!(st0, st100);
    }

    #[test]
    fn where_h_stands_beside_b_does_not_matter(
        (grid, jobs) in any_instance(), percent in thresholds(), select in selections(),
    ) {
        for (one, other) in [(Order::Ahb, Order::Abh), (Order::Hba, Order::Bha)] {
            let one = play(&mut StatelessSteal::new(&grid, steal(percent, one, select)), &jobs);
            let other = play(&mut StatelessSteal::new(&grid, steal(percent, other, select)), &jobs);
            prop_assert_eq!(one, other);
        }
    }

    /// Any set of waiting jobs, not only those that a run leaves.
    #[test]
    fn closed_form_equals_the_recursion(
        grid in grids(), widths in prop::collection::vec(1u32..17, 0..12), percent in thresholds(),
    ) {
        let threshold = Threshold::new(percent).unwrap();
        let waiting = fitting(&grid, &widths);
        let queues = by_home(&grid, &waiting);
        let lists = definition::lists(&grid, threshold, Order::Ahb, &waiting);
        for (rank, list) in lists.into_iter().enumerate() {
            let view = closed_form::list(&queues, &grid, threshold, rank);
            let jobs = view.map_or_else(Vec::new, |view| queues[view.home].in_order(view.widths));
            prop_assert_eq!(jobs.into_iter().copied().collect::<Vec<_>>(), list);
        }
    }

    /// In every order, also those that steal before own work.
    #[test]
    fn every_list_lies_in_a_single_home_queue(
        grid in grids(), widths in prop::collection::vec(1u32..17, 0..12), percent in thresholds(), order in orders(),
    ) {
        let waiting = fitting(&grid, &widths);
        for list in definition::lists(&grid, Threshold::new(percent).unwrap(), order, &waiting) {
            let homes: Vec<_> = list.iter().map(|job| grid.home_rank(job.processors)).collect();
            prop_assert!(homes.windows(2).all(|pair| pair[0] == pair[1]), "{homes:?}");
        }
    }
}

/// Without this the twin comparisons could all be of idle thieves.
#[test]
fn random_instances_steal_in_every_order() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut stolen = [0; Order::ALL.len()];
    for _ in 0..50 {
        let (grid, jobs) = any_instance().new_tree(&mut runner).unwrap().current();
        for (count, order) in stolen.iter_mut().zip(Order::ALL) {
            let ran = play(&mut StatelessSteal::new(&grid, steal(50, order, Selection::FirstFit)), &jobs);
            *count += ran.iter().filter(|&&(id, site, ..)| Some(site) != home(&grid, &jobs, id)).count();
        }
    }
    assert!(stolen.iter().all(|&count| count > 100), "{stolen:?}");
}

fn home(grid: &Grid, jobs: &[scheduler::TimedJob], id: u64) -> Option<u32> {
    let job = jobs.iter().find(|job| job.spec.id.0 == id)?;
    grid.home(job.spec.processors).map(|site| site.0)
}

fn fitting(grid: &Grid, widths: &[u32]) -> Vec<JobSpec> {
    let fitting = widths.iter().filter(|&&width| width <= grid.widest());
    fitting.enumerate().map(|(index, &width)| job(index as u64, width, 1, 1, 0).spec).collect()
}

fn by_home(grid: &Grid, waiting: &[JobSpec]) -> Vec<WaitingList> {
    let mut queues = vec![WaitingList::new(); grid.len()];
    for &job in waiting {
        queues[grid.home_rank(job.processors).unwrap()].insert(job);
    }
    queues
}
