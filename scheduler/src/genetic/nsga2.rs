//! NSGA-II: a front of individuals of which none is better than another in all criteria, in the place of one weighted
//! average (Deb and others 2002, see [`super::dominance`]).
//!
//! Representation, crossover and mutation are those of [`super::search`]; what differs is who is a parent (the crowded
//! tournament) and who stays (the best of parents and children together).

use super::batch::Batch;
use super::dominance::standings;
use super::draw::Draw;
use super::individual::{Criteria, Individual};
use super::options::Options;
use super::search::{Aim, Evaluate, Found, Step, Watch, children, least};
use super::weights::Scale;

/// What NSGA-II has found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Front {
    /// Of the last population, those that nobody dominates, the first of equals, by makespan and then by response ratio.
    pub members: Vec<Individual>,
    /// The member of the least weighted average, scaled by the initial population, and what it took.
    pub found: Found,
}

/// Runs NSGA-II from an evaluated population until so many individuals were scheduled, those of the initial population among
/// them; the generation that reaches that is the last. [`Options::stagnation`], [`Options::elitism`] and [`Options::scaling`]
/// do not count: there is no one number that could stagnate, parents are kept as a rule, and dominance needs no scale.
///
/// # Panics
/// If the population is empty or smaller than a tournament.
pub fn nsga2(
    batch: &Batch,
    options: &Options,
    initial: &[Individual],
    evaluations_max: u64,
    draw: &mut Draw,
    evaluate: &mut Evaluate<'_>,
    watch: &mut Watch<'_>,
) -> Front {
    let scale = Scale::of(initial, options.reading);
    let size = initial.len();
    let mut population = initial.to_vec();
    let (mut ranks, mut first) = standings(&criteria(&population));
    let (mut evaluations, mut generations, mut stopped) = (size as u64, 0, false);
    while evaluations < evaluations_max && generations < options.generations_max {
        let best = least(first.iter().map(|&place| &population[place]), &scale, Aim::Owa).criteria();
        let average = scale.average(best);
        if watch(&Step { generation: generations, evaluations, best, average }).is_break() {
            stopped = true;
            break;
        }
        let mut children = children(batch, options, &population, &ranks, draw);
        evaluations += children.iter().filter(|child| child.is_stale()).count() as u64;
        evaluate(&mut children);
        population.append(&mut children);
        let (of_both, _) = standings(&criteria(&population));
        let mut order: Vec<usize> = (0..population.len()).collect();
        order.sort_by_key(|&place| of_both[place]);
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
    let best = least(&members, &scale, Aim::Owa).clone();
    Front { members, found: Found { best, evaluations, generations, stopped } }
}

fn criteria(population: &[Individual]) -> Vec<&Criteria> {
    population.iter().map(Individual::criteria).collect()
}
