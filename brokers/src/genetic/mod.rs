//! Multi-criteria allocation of a batch of jobs to the sites of a grid by genetic algorithms, off-line.
//!
//! After Castro García, Tchernykh, Yaurima, *Calendarización Multi-Criterio en Grid Computacional de Dos Niveles con
//! Algoritmos Genéticos* (CICESE, no year). Level 1 gives each site of a [`Batch`] a row of jobs ([`Individual`]); level 2
//! is EASY over the row in its order, with requested times ([`RowScheduler`]). Four [`Criteria`] are made one by ordered
//! weighted averaging ([`Scale`]), [`search`] is the genetic algorithm, [`nsga2`] one that finds a front, [`mod@greedy`] the
//! strategies that they are compared with. What the text leaves open is a switch of [`Options`].
//!
//! Numbers are integers, so that no result depends on the machine; random numbers come from a [`Draw`](scheduler::draw::Draw) of the caller, and
//! whoever calls decides on how many threads a population is evaluated.

mod batch;
mod crossover;
mod dominance;
mod draw;
pub mod greedy;
mod hypervolume;
mod individual;
mod mutation;
mod nsga2;
mod options;
mod queues;
mod row;
mod search;
mod selection;
mod weights;

pub use batch::{Batch, BatchError, Occupied};
pub use crossover::{Mask, cross};
pub use dominance::{Standing, crowding, dominates, fronts, standings};
pub use draw::Purpose;
pub use hypervolume::hypervolume;
pub use individual::{Criteria, Individual, Rows};
pub use mutation::{Place, TRIES, exchange, insert};
pub use nsga2::{Front, beginning, nsga2};
pub use options::{
    Duplicates, Elements, FrontBegin, FrontOptions, Infeasible, MaskOf, Mutation, Obx, Options, Per, Queues,
    Reading, RowOrder, Scaling, Stays,
};
pub use queues::by_local_queues;
pub use row::{RESPONSE_UNIT, RowCost, RowScheduler};
pub use search::{Aim, Evaluate, Found, Step, Watch, by_chance, initial, search};
pub use selection::parents;
pub use weights::{Cost, Scale, Weights};

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use scheduler::{JobId, JobSpec, Labels, SiteId, Span, Time};

    use super::*;

    pub(super) fn batch(sizes: &[u32], jobs: &[(u32, i64)]) -> Batch {
        let spec = |(id, &(processors, seconds)): (u64, &(u32, i64))| JobSpec {
            id: JobId(id),
            submit: Time::ZERO,
            processors,
            requested: Span::from_secs(seconds),
            labels: Labels::UNKNOWN,
            origin: SiteId(1),
            payload: 0,
        };
        Batch::new(sizes, (0..).zip(jobs).map(spec).collect()).unwrap()
    }

    pub(super) fn rows(rows: &[&[u32]]) -> Rows {
        rows.iter().map(|row| row.to_vec()).collect()
    }

    /// The matrix of Figure 2.
    pub(super) fn figure() -> Rows {
        rows(&[&[1, 4], &[0, 3, 10, 8], &[7, 9, 5, 2, 6]])
    }

    /// Sites and widths of the worked example of OBX.
    pub(super) fn sizes_of_the_example() -> Batch {
        let widths = [6, 2, 1, 8, 4, 12, 3, 16, 2, 5, 1];
        batch(&[4, 8, 16], &widths.map(|width| (width, 10)))
    }

    /// Each job once, and where it fits.
    fn check(batch: &Batch, rows: &Rows) {
        let mut jobs: Vec<u32> = rows.iter().flatten().copied().collect();
        jobs.sort_unstable();
        assert_eq!(jobs, (0..batch.jobs().len() as u32).collect::<Vec<u32>>());
        for (site, row) in rows.iter().enumerate() {
            assert!(row.iter().all(|&job| batch.fits(job, site)), "site {site}: {row:?}");
        }
    }

    fn fresh(batch: &Batch, rows: &Rows) -> Criteria {
        let mut again = Individual::new(rows.clone());
        again.evaluate(batch, &mut RowScheduler::new());
        *again.criteria()
    }

    fn batches() -> impl Strategy<Value = Batch> {
        let sizes = prop::collection::vec(1u32..20, 1..6);
        (sizes, prop::collection::vec((1u32..20, 1i64..50), 1..40)).prop_map(|(mut sizes, mut jobs)| {
            sizes.sort_unstable();
            let widest = sizes[sizes.len() - 1];
            jobs.iter_mut().for_each(|job| job.0 = job.0.min(widest));
            batch(&sizes, &jobs)
        })
    }

    proptest! {
        /// Whatever operators do, and what is known of rows stays true of them.
        #[test]
        fn children_are_permutations_that_fit_and_only_changed_rows_are_scheduled_again(
            batch in batches(), seed in 0u64..1000, obx in 0usize..3, mask in 0usize..2, kind in 0usize..3,
            queues in 0usize..3, infeasible in 0usize..2, order in 0usize..2,
        ) {
            let options = Options {
                operator: Mutation::ALL[kind],
                obx: Obx::ALL[obx],
                mask: MaskOf::ALL[mask],
                queues: Queues::ALL[queues],
                infeasible: Infeasible::ALL[infeasible],
                initial_order: RowOrder::ALL[order],
                ..Options::default()
            };
            let mut draw = Purpose::Initial.draw(seed, 1);
            let mut scheduler = RowScheduler::new();
            let mut pair = [(); 2].map(|()| Individual::random(&batch, options.initial_order, &mut draw));
            for _ in 0..6 {
                pair.iter_mut().for_each(|one| one.evaluate(&batch, &mut scheduler));
                let [one, other] = &pair;
                let mut children = [(one, other), (other, one)].map(|(base, other)| {
                    let mask = Mask::draw(options.mask, base.rows(), &mut draw);
                    cross(&batch, options.obx, base, other, &mask)
                });
                for child in &mut children {
                    mutation::mutate(&batch, &options, &mut draw, child);
                    check(&batch, child.rows());
                    child.evaluate(&batch, &mut scheduler);
                    prop_assert_eq!(child.criteria(), &fresh(&batch, child.rows()));
                    prop_assert!(!child.is_stale());
                }
                pair = children;
            }
        }
    }

    #[test]
    fn the_worked_example_of_level_two_comes_out() {
        let batch = batch(&[4, 8], &[(2, 4), (4, 3), (1, 2), (8, 2), (4, 6), (2, 1)]);
        let mut scheduler = RowScheduler::new();
        let mut starts = [0; 6];
        let rows = rows(&[&[0, 1, 2], &[4, 3, 5]]);
        for (site, row) in rows.iter().enumerate() {
            let misfits =
                scheduler.schedule(&batch, site, row, |job, start| starts[job as usize] = start / 1_000_000);
            assert_eq!(misfits, 0);
        }
        assert_eq!(starts, [0, 4, 0, 6, 0, 0]);
        let criteria = fresh(&batch, &rows);
        assert_eq!(criteria, by_local_queues(&batch, &rows, |job| batch.jobs()[job as usize].requested));
        for (found, expected) in [
            (criteria.makespan_s(), 8.0),
            (criteria.turnaround_s(), 28.0 / 6.0),
            (criteria.response_ratio(), 31.0 / 18.0),
            (criteria.wait_s(), 10.0 / 6.0),
            (batch.lower_bound_s(), 6.0),
            (criteria.makespan_s() / batch.lower_bound_s(), 4.0 / 3.0),
        ] {
            assert!((found - expected).abs() < 1e-8, "{found} {expected}");
        }
    }

    #[test]
    fn what_is_no_batch_is_refused_with_what_to_do() {
        let spec = |processors, requested| JobSpec { requested, ..batch(&[9], &[(processors, 1)]).jobs()[0] };
        let wrong = |sizes: &[u32], jobs| Batch::new(sizes, jobs).unwrap_err();
        let second = Span::from_secs(1);
        assert_eq!(wrong(&[], vec![spec(1, second)]), BatchError::Sites);
        assert_eq!(wrong(&[8, 4], vec![spec(1, second)]), BatchError::Sites);
        assert_eq!(wrong(&[4], vec![]), BatchError::NoJobs);
        assert_eq!(wrong(&[4], vec![spec(1, Span::ZERO)]), BatchError::Nothing(JobId(0)));
        let wide = wrong(&[4], vec![spec(5, second)]);
        assert_eq!(wide, BatchError::TooWide { job: JobId(0), processors: 5, widest: 4 });
        assert!(wide.to_string().contains("drop it"), "{wide}");
        assert!(matches!(wrong(&[4], vec![spec(1, Span::MAX); 2]), BatchError::TooLong(_)));
    }

    #[test]
    fn jobs_are_drawn_evenly_over_all_sites_that_are_wide_enough() {
        let batch = batch(&[4, 8, 16], &[(1, 1), (8, 1), (16, 1)]);
        let mut counts = [[0; 3]; 3];
        let mut draw = Purpose::Initial.draw(1, 1);
        for _ in 0..6000 {
            let one = Individual::random(&batch, RowOrder::Arrival, &mut draw);
            assert!(one.rows().iter().all(|row| row.is_sorted()));
            for (site, row) in one.rows().iter().enumerate() {
                row.iter().for_each(|&job| counts[job as usize][site] += 1);
            }
        }
        let near = |count: i32, expected: i32| (count - expected).abs() < 200;
        assert!(counts[0].iter().all(|&count| near(count, 2000)), "{counts:?}");
        assert!(counts[1][0] == 0 && near(counts[1][1], 3000), "{counts:?}");
        assert_eq!(counts[2], [0, 0, 6000]);
    }
}
