//! Fronts: what NSGA-II has found of a batch, and where the other algorithms are by it.

use brokers::genetic::{Criteria, Found, Individual, dominates, hypervolume};
use serde::Serialize;

use super::allocate::Figures;

/// The front of a batch: an object of `fronts.json`.
#[derive(Clone, Debug, Serialize)]
pub(super) struct FrontEntry {
    /// From 1.
    pub(super) batch: usize,
    /// By makespan: of none of them is another better in one criterion and worse in none.
    members: Vec<Figures>,
    /// The largest of each criterion in the initial population: the reference point of hypervolumes.
    maxima: Figures,
    /// The share of the space below the maxima that the front dominates.
    hypervolume: f64,
    /// The other algorithms on this batch.
    others: Vec<Other>,
    evaluations: u64,
    generations: u32,
    seed: u64,
    /// Somebody stopped it before its end.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    stopped: bool,
}

/// What another algorithm has found, by the front.
#[derive(Clone, Debug, Serialize)]
struct Other {
    algorithm: String,
    /// The share of the space below the maxima that it dominates alone.
    hypervolume: f64,
    /// Whether a member of the front is better in one criterion and worse in none.
    dominated: bool,
}

impl FrontEntry {
    /// Others are given with what they come to, in the order of the algorithms.
    pub(super) fn of<'a>(
        batch: usize,
        members: &[Individual],
        found: &Found,
        initial: &[Individual],
        others: impl Iterator<Item = (&'a str, Criteria)>,
        seed: u64,
    ) -> FrontEntry {
        let maxima = initial.iter().map(|one| Figures::of(one.criteria()).values());
        let maxima = maxima.reduce(|one, other| std::array::from_fn(|place| one[place].max(other[place])));
        let maxima = maxima.unwrap_or([0.0; 4]);
        let scaled = |criteria: &Criteria| {
            let values = Figures::of(criteria).values();
            std::array::from_fn(|place| values[place] / maxima[place].max(f64::MIN_POSITIVE))
        };
        let points: Vec<[f64; 4]> = members.iter().map(|one| scaled(one.criteria())).collect();
        let other = |(algorithm, criteria): (&str, Criteria)| Other {
            algorithm: algorithm.to_string(),
            hypervolume: hypervolume(&[scaled(&criteria)]),
            dominated: members.iter().any(|one| dominates(one.criteria(), &criteria)),
        };
        let [makespan_s, turnaround_s, response_ratio, wait_s] = maxima;
        FrontEntry {
            batch,
            members: members.iter().map(|one| Figures::of(one.criteria())).collect(),
            maxima: Figures { makespan_s, turnaround_s, response_ratio, wait_s },
            hypervolume: hypervolume(&points),
            others: others.map(other).collect(),
            evaluations: found.evaluations,
            generations: found.generations,
            seed,
            stopped: found.stopped,
        }
    }
}
