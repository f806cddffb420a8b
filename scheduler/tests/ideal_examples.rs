//! Schedules known in advance: worked examples derived by hand, and two families with closed formulas.

use scheduler::ideal::{CommonPool, StatefulSteal, StatelessSteal};
use scheduler::{Grid, Selection, Steal, Threshold, TimedJob};

use crate::ideal_twin::{by_id, jobs, makespan, play};

fn st50(grid: &Grid) -> StatelessSteal {
    StatelessSteal::new(grid, Steal::with_threshold(Threshold::HALF))
}

/// The schedule of ST50, as (job, site, start, end).
fn schedule(sizes: &[u32], jobs: &[TimedJob]) -> Vec<crate::ideal_twin::Ran> {
    by_id(play(&mut st50(&Grid::of_sizes(sizes).unwrap()), jobs))
}

#[test]
fn e1_a_large_site_steals_small_work_once_its_own_is_gone() {
    let jobs = jobs(&[(2, 4, 0), (2, 4, 0), (1, 3, 0), (6, 5, 0), (3, 2, 0), (4, 2, 0)]);

    let expected = [(1, 1, 0, 4), (2, 1, 4, 8), (3, 2, 5, 8), (4, 2, 0, 5), (5, 2, 5, 7), (6, 2, 5, 7)];

    assert_eq!(schedule(&[2, 8], &jobs), expected);
    assert_eq!(makespan(&play(&mut CommonPool::new(&Grid::of_sizes(&[2, 8]).unwrap()), &jobs)), 9);
}

#[test]
fn e2_the_second_of_two_equal_sites_lives_on_stolen_work() {
    let jobs = jobs(&[(4, 3, 0), (3, 2, 0), (3, 2, 0), (2, 4, 0), (1, 1, 0), (2, 2, 0)]);

    let expected = [(1, 1, 0, 3), (2, 2, 0, 2), (3, 2, 2, 4), (4, 1, 3, 7), (5, 2, 2, 3), (6, 1, 3, 5)];

    assert_eq!(schedule(&[4, 4], &jobs), expected);
}

#[test]
fn e3_big_work_is_stolen_over_two_levels() {
    let jobs = jobs(&[(6, 2, 0), (6, 2, 0), (5, 3, 0), (4, 4, 0), (7, 1, 0), (8, 1, 0), (2, 5, 0)]);

    let expected =
        [(1, 1, 0, 2), (2, 2, 1, 3), (3, 3, 1, 4), (4, 1, 2, 6), (5, 2, 0, 1), (6, 3, 0, 1), (7, 1, 2, 7)];

    assert_eq!(schedule(&[6, 7, 8], &jobs), expected);
}

#[test]
fn e4_big_jobs_block_small_ones_that_would_fit() {
    let jobs = jobs(&[(5, 2, 0), (5, 2, 0), (3, 2, 0), (3, 2, 0)]);

    assert_eq!(schedule(&[8], &jobs), [(1, 1, 0, 2), (2, 1, 2, 4), (3, 1, 2, 4), (4, 1, 4, 6)]);
    assert_eq!(makespan(&play(&mut CommonPool::new(&Grid::of_sizes(&[8]).unwrap()), &jobs)), 4);
}

#[test]
fn e5_a_site_drains_its_small_job_for_a_big_one() {
    let jobs = jobs(&[(1, 10, 0), (8, 2, 1), (4, 3, 1)]);

    assert_eq!(schedule(&[8], &jobs), [(1, 1, 0, 10), (2, 1, 10, 12), (3, 1, 12, 15)]);
    assert_eq!(makespan(&play(&mut CommonPool::new(&Grid::of_sizes(&[8]).unwrap()), &jobs)), 12);
}

#[test]
fn e6_a_draining_site_does_not_steal() {
    let jobs = jobs(&[(2, 4, 0), (2, 4, 0), (2, 4, 0), (2, 4, 0), (6, 3, 1), (2, 2, 2), (3, 2, 2)]);

    let expected =
        [(1, 1, 0, 4), (2, 1, 0, 4), (3, 2, 0, 4), (4, 2, 0, 4), (5, 2, 4, 7), (6, 2, 4, 6), (7, 1, 4, 6)];

    assert_eq!(schedule(&[4, 8], &jobs), expected);
}

#[test]
fn offline_examples_are_the_same_with_explicit_lists() {
    let e1 = jobs(&[(2, 4, 0), (2, 4, 0), (1, 3, 0), (6, 5, 0), (3, 2, 0), (4, 2, 0)]);
    let e2 = jobs(&[(4, 3, 0), (3, 2, 0), (3, 2, 0), (2, 4, 0), (1, 1, 0), (2, 2, 0)]);
    for (sizes, jobs) in [([2, 8], e1), ([4, 4], e2)] {
        let grid = Grid::of_sizes(&sizes).unwrap();
        let mut stateful = StatefulSteal::new(&grid, Threshold::HALF, Selection::FirstFit);

        assert_eq!(by_id(play(&mut stateful, &jobs)), schedule(&sizes, &jobs));
    }
}

/// s_i = N + i and T unit jobs of every size, in ascending order: possible in T, T · H_m by list scheduling.
#[test]
fn list_scheduling_needs_the_harmonic_number_of_times_the_optimum() {
    for (sites, unit_jobs, expected) in [(2u32, 2i64, 3), (3, 6, 11), (4, 12, 25), (5, 60, 137), (6, 60, 147)]
    {
        let sizes: Vec<u32> = (1..=sites).map(|site| sites + site).collect();
        let grid = Grid::of_sizes(&sizes).unwrap();
        let rows: Vec<(u32, i64, i64)> =
            sizes.iter().flat_map(|&size| (0..unit_jobs).map(move |_| (size, 1, 0))).collect();
        let jobs = jobs(&rows);

        let pool = play(&mut CommonPool::new(&grid), &jobs);
        let stealing = play(&mut st50(&grid), &jobs);

        let harmonic: f64 = (1..=sites).map(|site| 1.0 / f64::from(site)).sum();
        assert!((expected as f64 - unit_jobs as f64 * harmonic).abs() < 1e-9);
        assert_eq!(makespan(&pool), expected);
        assert_eq!(makespan(&stealing), unit_jobs);
    }
}

/// One site of 2q processors, q = 11 + 15c, where class A blocks class B. The optimum is at most n + 1.
#[test]
fn st50_is_nearly_two_and_a_half_times_the_optimum_on_the_stress_family() {
    for (c, ratio) in [(1u32, 2.214), (2, 2.318), (5, 2.413), (10, 2.453), (20, 2.476)] {
        let q = 11 + 15 * c;
        let n = 4 * (2 * c + 1) + 1;
        let mut rows = vec![(q + 1, 1, 0); n as usize];
        rows.push((q + 2, 1, 0));
        rows.extend(vec![(15, 1, 0); (n * c) as usize]);
        rows.push((10, i64::from(n), 0));
        let jobs = jobs(&rows);
        let grid = Grid::of_sizes(&[2 * q]).unwrap();

        let stealing = makespan(&play(&mut st50(&grid), &jobs));
        let list = makespan(&play(&mut CommonPool::new(&grid), &jobs));

        // All A one by one, then 4c full rounds of width 15 before the long job finds room.
        assert_eq!(stealing, i64::from(2 * n + 1 + 4 * c));
        assert_eq!(list, i64::from(n + 1));
        let measured = stealing as f64 / f64::from(n + 1);
        assert!((measured - ratio).abs() < 0.0005, "c = {c}: {measured}");
    }
}
