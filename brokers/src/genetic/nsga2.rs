//! NSGA-II: a front of individuals of which none is better than another in all criteria, in the place of one weighted
//! average (Deb and others 2002, see [`super::dominance`]).
//!
//! Representation and operators are those of [`super::search`]; what differs is who is a parent (the crowded tournament) and
//! who stays (the best of parents and children together). So copies would crowd out the rest, and all would soon be
//! relatives: [`FrontOptions`](super::FrontOptions) has what keeps them apart.

use std::collections::BTreeSet;

use scheduler::draw::Draw;

use super::batch::Batch;
use super::dominance::standings;
use super::individual::{Criteria, Individual, Rows};
use super::mutation::mutate;
use super::options::{Duplicates, FrontBegin, Options, Per, RowOrder};
use super::search::{Aim, Evaluate, Found, Step, Watch, children, initial, least};
use super::weights::Scale;

/// What NSGA-II has found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Front {
    /// Of the last population, those that nobody dominates, the first of equals, by makespan and then by response ratio.
    pub members: Vec<Individual>,
    /// The member of the least weighted average, and what it took.
    pub found: Found,
}

/// What NSGA-II begins with, evaluated. The shared population is that of the other algorithms; rows of greedy strategies count
/// where [`FrontBegin::Greedy`] wants them.
pub fn beginning(
    batch: &Batch,
    options: &Options,
    shared: &[Individual],
    greedy: &[Rows],
    draw: &mut Draw,
    evaluate: &mut Evaluate<'_>,
) -> Vec<Individual> {
    let mut population = match options.front.begin {
        FrontBegin::Random => {
            let random = Options { initial_order: RowOrder::Random, ..options.clone() };
            return initial(batch, &random, draw, evaluate);
        }
        FrontBegin::Greedy | FrontBegin::Shared => shared.to_vec(),
    };
    if options.front.begin == FrontBegin::Greedy {
        for (place, rows) in population.iter_mut().rev().zip(greedy) {
            *place = Individual::new(rows.clone());
        }
        evaluate(&mut population);
    }
    population
}

/// Runs NSGA-II from an evaluated population until [`Options::evaluations_max`] individuals were scheduled, those of the
/// initial population among them; the generation that reaches that is the last. [`Options::stagnation`],
/// [`Options::elitism`] and [`Options::scaling`] do not count: there is no one number that could stagnate, parents are kept as
/// a rule, and dominance needs no scale. The weighted average that is told and chosen by is by the scale that is given.
///
/// # Panics
/// If the population is empty or smaller than a tournament.
pub fn nsga2(
    batch: &Batch,
    options: &Options,
    scale: &Scale,
    initial: Vec<Individual>,
    draw: &mut Draw,
    evaluate: &mut Evaluate<'_>,
    watch: &mut Watch<'_>,
) -> Front {
    let (mutation, mutation_per) = match options.front.mutation {
        Some(probability) => (probability, options.mutation_per),
        None => (1.0 / batch.jobs().len() as f64, Per::Gene),
    };
    let options = &Options { mutation, mutation_per, ..options.clone() };
    let duplicates = options.front.duplicates;
    let size = initial.len();
    let mut population = initial;
    let (mut ranks, mut first) = standings(&criteria(&population));
    let (mut evaluations, mut generations, mut stopped) = (size as u64, 0, false);
    while evaluations < options.evaluations_max && generations < options.generations_max {
        let best = least(first.iter().map(|&place| &population[place]), scale, Aim::Owa).criteria();
        let average = scale.average(best);
        if watch(&Step { generation: generations, evaluations, best, average }).is_break() {
            stopped = true;
            break;
        }
        let mut children = children(batch, options, &population, &ranks, draw);
        if duplicates == Duplicates::Replace {
            // A copy of a parent would find out nothing.
            for copy in children.iter_mut().filter(|child| !child.is_stale()) {
                mutate(batch, options, draw, copy);
            }
        }
        evaluations += children.iter().filter(|child| child.is_stale()).count() as u64;
        evaluate(&mut children);
        population.append(&mut children);
        let (of_both, _) = standings(&criteria(&population));
        let mut order: Vec<usize> = (0..population.len()).collect();
        let again = repeated(&population, duplicates);
        order.sort_by_key(|&place| (again[place], of_both[place]));
        order.truncate(size);
        let mut both: Vec<Option<Individual>> = population.into_iter().map(Some).collect();
        population = order.into_iter().filter_map(|place| both[place].take()).collect();
        // Anew: distances are to neighbors who are still there.
        (ranks, first) = standings(&criteria(&population));
        generations += 1;
    }
    let mut members: Vec<Individual> = first.into_iter().map(|place| population[place].clone()).collect();
    let point = |one: &Individual| {
        let [makespan, turnaround, response, wait] = one.criteria().values();
        (makespan, response, turnaround, wait)
    };
    members.sort_by_key(point);
    members.dedup_by_key(|one| point(one));
    let best = least(&members, scale, Aim::Owa).clone();
    Front { members, found: Found { best, evaluations, generations, stopped } }
}

/// Of each whether one before it has the same criteria.
fn repeated(population: &[Individual], duplicates: Duplicates) -> Vec<bool> {
    let mut seen = BTreeSet::new();
    let is_again = |one: &Individual| {
        duplicates == Duplicates::Replace && !seen.insert((one.criteria().misfits, one.criteria().values()))
    };
    population.iter().map(is_again).collect()
}

fn criteria(population: &[Individual]) -> Vec<&Criteria> {
    population.iter().map(Individual::criteria).collect()
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use super::super::tests::{batch, rows};
    use super::super::{FrontOptions, Purpose, RowScheduler};
    use super::*;

    fn some_batch() -> Batch {
        let jobs: Vec<(u32, i64)> =
            (0..60_u32).map(|job| (1 + job * 7 % 8, 1 + i64::from(job * 13 % 37))).collect();
        batch(&[4, 8, 8], &jobs)
    }

    fn front(options: &Options, greedy: &[Rows]) -> Front {
        let batch = some_batch();
        let mut evaluate = |population: &mut [Individual]| {
            population.iter_mut().for_each(|one| one.evaluate(&batch, &mut RowScheduler::new()));
        };
        let shared = initial(&batch, options, &mut Purpose::Initial.draw(1, 1), &mut evaluate);
        let scale = Scale::of(&shared, options.reading);
        let mut draw = Purpose::Algorithm(7).draw(1, 1);
        let first = beginning(&batch, options, &shared, greedy, &mut draw, &mut evaluate);
        let mut go_on = |_: &Step<'_>| ControlFlow::Continue(());
        nsga2(&batch, options, &scale, first, &mut draw, &mut evaluate, &mut go_on)
    }

    fn options(front: FrontOptions) -> Options {
        Options { population: 20, evaluations_max: 1000, front, ..Options::default() }
    }

    #[test]
    fn who_has_the_criteria_of_one_before_is_a_duplicate() {
        let batch = batch(&[4, 4], &[(4, 5), (4, 5), (4, 3)]);
        let mut population: Vec<Individual> =
            [&[&[0, 2][..], &[1]], &[&[1, 2], &[0]], &[&[2, 1], &[0]], &[&[0, 2], &[1]]]
                .map(|one| Individual::new(rows(one)))
                .into();
        population.iter_mut().for_each(|one| one.evaluate(&batch, &mut RowScheduler::new()));
        assert_eq!(repeated(&population, Duplicates::Replace), [false, true, false, true]);
        assert_eq!(repeated(&population, Duplicates::Keep), [false; 4]);
    }

    /// An individual that is a copy of a parent is not scheduled again, and counts for none.
    #[test]
    fn without_duplicates_no_child_is_a_copy_of_a_parent() {
        let copies = |duplicates| {
            let begin = FrontBegin::Shared;
            let front = front(&options(FrontOptions { begin, duplicates, mutation: Some(0.01) }), &[]);
            20 * u64::from(front.found.generations + 1) - front.found.evaluations
        };
        assert_eq!(copies(Duplicates::Replace), 0);
        assert!(copies(Duplicates::Keep) > 0);
    }

    /// Each greedy individual is in the front, or somebody is no worse in anything.
    #[test]
    fn a_front_that_begins_with_greedy_rows_is_not_behind_them() {
        use scheduler::strategy::Completion;

        use super::super::greedy::{Order, Rule, greedy};
        use crate::genetic::Stays;

        let batch = some_batch();
        let seeds = [Order::Arrival, Order::ShortestFirst, Order::LargestFirst].map(|order| {
            greedy(&batch, order, Rule::CompletionTime, Completion::default(), Stays::default())
        });
        let covered = |begin| {
            let front = FrontOptions { begin, ..FrontOptions::default() };
            let Front { members, .. } = super::tests::front(&options(front), &seeds);
            let is_covered = |rows: &Rows| {
                let mut one = Individual::new(rows.clone());
                one.evaluate(&batch, &mut RowScheduler::new());
                let values = one.criteria().values();
                let covers = |member: &Individual| {
                    member.criteria().values().iter().zip(values).all(|(member, one)| *member <= one)
                };
                members.iter().any(covers)
            };
            seeds.iter().filter(|rows| is_covered(rows)).count()
        };
        assert_eq!(covered(FrontBegin::Greedy), 3);
        assert!(covered(FrontBegin::Shared) < 3, "it does not find them by itself");
    }
}
