//! The genetic algorithm (§3.7), and random search beside it.
//!
//! Generations replace each other; the best of all is kept apart. Individuals are evaluated by whoever calls, a whole
//! population at a time, so that they can be given to threads: their order is that of the population.

use std::ops::ControlFlow;

use scheduler::draw::Draw;

use super::batch::Batch;
use super::crossover::{Mask, cross};
use super::individual::{Criteria, Individual};
use super::mutation::mutate;
use super::options::{Options, Per, Scaling};
use super::selection::parents;
use super::weights::{Cost, Scale};

/// What is made small.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aim {
    /// C_max.
    Makespan,
    /// The mean response ratio, which the tables call slowdown.
    ResponseRatio,
    /// The mean turnaround.
    Turnaround,
    /// The mean wait.
    Wait,
    /// The ordered weighted average of all four.
    Owa,
}

/// How far a search is.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    /// Generations that were made; 0 for the initial population.
    pub generation: u32,
    /// Individuals that were scheduled.
    pub evaluations: u64,
    /// What the best so far comes to.
    pub best: &'a Criteria,
    /// Its weighted average.
    pub average: f64,
}

/// What a search has found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The best of all.
    pub best: Individual,
    /// Individuals that were scheduled, those of the initial population among them. A copy of a parent is none.
    pub evaluations: u64,
    /// Generations that were made after the initial one.
    pub generations: u32,
    /// Whether somebody stopped it.
    pub stopped: bool,
}

/// Evaluates all individuals, in whatever order.
pub type Evaluate<'a> = dyn FnMut(&mut [Individual]) + 'a;

/// Is told of each generation, and says whether to go on.
pub type Watch<'a> = dyn FnMut(&Step<'_>) -> ControlFlow<()> + 'a;

/// The population that all genetic algorithms of a batch begin with, evaluated.
pub fn initial(
    batch: &Batch,
    options: &Options,
    draw: &mut Draw,
    evaluate: &mut Evaluate<'_>,
) -> Vec<Individual> {
    let mut population: Vec<Individual> =
        (0..options.population).map(|_| Individual::random(batch, options.initial_order, draw)).collect();
    evaluate(&mut population);
    population
}

/// Runs the genetic algorithm from an evaluated population.
///
/// # Panics
/// If the population is empty or smaller than a tournament.
pub fn search(
    batch: &Batch,
    options: &Options,
    aim: Aim,
    initial: &[Individual],
    draw: &mut Draw,
    evaluate: &mut Evaluate<'_>,
    watch: &mut Watch<'_>,
) -> Found {
    let mut scale = Scale::of(initial, options.reading);
    let mut population = initial.to_vec();
    let mut best = least(&population, &scale, aim).clone();
    let (mut evaluations, mut generations, mut stagnant) = (population.len() as u64, 0, 0);
    let mut stopped = false;
    let affords =
        |evaluations: u64| evaluations.saturating_add(initial.len() as u64) <= options.evaluations_max;
    while stagnant < options.stagnation && generations < options.generations_max && affords(evaluations) {
        let average = scale.average(best.criteria());
        let step = Step { generation: generations, evaluations, best: best.criteria(), average };
        if watch(&step).is_break() {
            stopped = true;
            break;
        }
        let costs: Vec<Cost> = population.iter().map(|one| scale.cost(aim, one.criteria())).collect();
        let mut children = children(batch, options, &population, &costs, draw);
        let mut elite: Vec<usize> = (0..population.len()).collect();
        elite.sort_by_key(|&place| costs[place]);
        for (child, &place) in children.iter_mut().rev().zip(&elite[..options.elitism.min(elite.len())]) {
            *child = population[place].clone();
        }
        evaluations += children.iter().filter(|child| child.is_stale()).count() as u64;
        evaluate(&mut children);
        population = children;
        generations += 1;
        scale = match options.scaling {
            Scaling::Initial => scale,
            Scaling::Population => Scale::of(&population, options.reading),
            Scaling::Running => scale.with(&population),
        };
        // Where maxima have changed, the best so far is measured by the same as the others.
        let candidate = least(&population, &scale, aim);
        stagnant += 1;
        if scale.cost(aim, candidate.criteria()) < scale.cost(aim, best.criteria()) {
            (best, stagnant) = (candidate.clone(), 0);
        }
    }
    Found { best, evaluations, generations, stopped }
}

/// Draws individuals as the initial ones are drawn, and keeps the one of the least weighted average by a scale.
pub fn by_chance(
    batch: &Batch,
    options: &Options,
    scale: &Scale,
    evaluations: u64,
    draw: &mut Draw,
    evaluate: &mut Evaluate<'_>,
    watch: &mut Watch<'_>,
) -> Found {
    let (mut best, mut done, mut generations, mut stopped): (Option<Individual>, _, _, _) =
        (None, 0, 0, false);
    loop {
        let count = (evaluations.max(1) - done).min(options.population as u64);
        let mut drawn: Vec<Individual> =
            (0..count).map(|_| Individual::random(batch, options.initial_order, draw)).collect();
        evaluate(&mut drawn);
        done += count;
        drawn.splice(0..0, best);
        let least = least(&drawn, scale, Aim::Owa).clone();
        let average = scale.average(least.criteria());
        let step = Step { generation: generations, evaluations: done, best: least.criteria(), average };
        if done < evaluations && watch(&step).is_break() {
            stopped = true;
        }
        if stopped || done >= evaluations {
            return Found { best: least, evaluations: done, generations, stopped };
        }
        generations += 1;
        best = Some(least);
    }
}

/// The first of those with the least cost.
pub(super) fn least<'a>(
    population: impl IntoIterator<Item = &'a Individual>,
    scale: &Scale,
    aim: Aim,
) -> &'a Individual {
    let best = population.into_iter().min_by_key(|one| scale.cost(aim, one.criteria()));
    best.expect("a population has individuals")
}

/// The next generation, not evaluated.
pub(super) fn children<C: Ord>(
    batch: &Batch,
    options: &Options,
    population: &[Individual],
    costs: &[C],
    draw: &mut Draw,
) -> Vec<Individual> {
    let mut parents = parents(costs, options.tournament, population.len(), draw);
    draw.shuffle(&mut parents);
    let mut children = Vec::with_capacity(population.len());
    for pair in parents.chunks(2) {
        let of = |place: usize| &population[pair[place]];
        if pair.len() == 2 && draw.chance(options.crossover) {
            for (base, other) in [(of(0), of(1)), (of(1), of(0))] {
                let mask = Mask::draw(options.mask, base.rows(), draw);
                children.push(cross(batch, options.obx, base, other, &mask));
            }
        } else {
            children.extend(pair.iter().map(|&place| population[place].clone()));
        }
    }
    for child in &mut children {
        let times = match options.mutation_per {
            Per::Child => 1,
            Per::Gene => batch.jobs().len(),
        };
        for _ in 0..times {
            if draw.chance(options.mutation) {
                mutate(batch, options, draw, child);
            }
        }
    }
    children
}
