//! Co-allocation as the mixed-integer program of Lérida's thesis (4.17 to 4.19, Figure 4.11), by the solver `microlp`.
//!
//! In place of a binary variable for each node there is one for each number of tasks of a cluster, which go to its most powerful nodes: y_kn is
//! 1 where cluster k has n tasks. So (4.14), which is quadratic in n, is a coefficient, and each cluster is one row for SP and one for SC.
//! Nodes of a cluster are not told apart otherwise, so solutions are the same. [`brokers::coallocation::best`] solves the same problem
//! exactly and much faster; this is what it is held against.

use std::time::Duration;

use brokers::coallocation::{Cluster, CoallocationError, Job, Solution, Variant, assigned, crossing};
use microlp::{ComparisonOp, OptimizationDirection, Problem, SolveOptions, SolveOutcome, Variable};
use thiserror::Error;

/// When a search ends that has not proved its solution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Limits {
    /// After so much time, which no two machines have alike.
    pub(super) time: Option<Duration>,
    /// After so many nodes of the search, which is the same everywhere.
    pub(super) nodes: Option<u64>,
}

/// What a search found.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Found {
    /// A solution, and whether it is proved that none is better.
    Solution {
        /// The best so far.
        solution: Solution,
        /// Whether no better one is left, as the solver says.
        is_proved: bool,
    },
    /// There is none, as the solver says.
    Infeasible,
    /// A limit came before a solution.
    Nothing,
}

/// Why the solver has no answer.
#[derive(Clone, Debug, PartialEq, Error)]
pub(super) enum MipError {
    /// The problem is none.
    #[error(transparent)]
    Problem(#[from] CoallocationError),
    /// The solver failed, or its counts of tasks do not add up.
    #[error("solve the mixed-integer program: {0}; take the exact solution in its place")]
    Solver(String),
}

/// The solution that is wanted, within limits.
///
/// # Errors
/// If a number is out of its range, or the solver fails.
pub(super) fn solve(
    variant: Variant,
    job: &Job,
    clusters: &[Cluster],
    limits: Limits,
) -> Result<Found, MipError> {
    // Says what is out of range.
    assigned(job, clusters, &[])?;
    let any = variant == Variant::NonOptimal;
    let most = if variant == Variant::Optimal { f64::INFINITY } else { 1.0 };
    let mut problem = Problem::new(OptimizationDirection::Minimize);
    let weight = |time: f64| if any { 0.0 } else { time };
    let processing = problem.add_var(weight(job.computing), (0.0, f64::INFINITY));
    let communication = problem.add_var(weight(job.communicating), (0.0, most));
    let mut all = Vec::new();
    let mut chosen: Vec<Vec<Variable>> = Vec::new();
    for cluster in clusters {
        let mut slowdowns: Vec<f64> = cluster.powers.iter().map(|power| power.recip()).collect();
        slowdowns.sort_by(f64::total_cmp);
        let counts = 0..=slowdowns.len().min(job.tasks);
        let here: Vec<Variable> = counts.map(|_| problem.add_binary_var(0.0)).collect();
        let numbered = || here.iter().copied().enumerate();
        let one: Vec<(Variable, f64)> = numbered().map(|(_, count)| (count, 1.0)).collect();
        problem.add_constraint(&one, ComparisonOp::Eq, 1.0);
        // SP is that of the slowest node in use (4.11, 4.12).
        let slowest = numbered().skip(1).map(|(n, count)| (count, -slowdowns[n - 1]));
        let row: Vec<(Variable, f64)> = slowest.chain([(processing, 1.0)]).collect();
        problem.add_constraint(&row, ComparisonOp::Ge, 0.0);
        // SC is that of the most loaded link (4.13, 4.15, 4.16), also of one that the job does not use.
        let load = |n| (cluster.consumed + crossing(job, n)) / cluster.link;
        let row: Vec<(Variable, f64)> =
            numbered().map(|(n, count)| (count, -load(n))).chain([(communication, 1.0)]).collect();
        problem.add_constraint(&row, ComparisonOp::Ge, 0.0);
        all.extend(numbered().skip(1).map(|(n, count)| (count, n as f64)));
        chosen.push(here);
    }
    if clusters.iter().map(|cluster| cluster.powers.len()).sum::<usize>() < job.tasks {
        return Ok(Found::Infeasible);
    }
    // All tasks at once (4.18).
    problem.add_constraint(&all, ComparisonOp::Eq, job.tasks as f64);
    let mut options = SolveOptions::default();
    options.time_limit = limits.time;
    options.node_limit = limits.nodes;
    let outcome = match problem.solve_with(options) {
        Ok(outcome) => outcome,
        Err(microlp::Error::Infeasible) => return Ok(Found::Infeasible),
        Err(error) => return Err(MipError::Solver(error.to_string())),
    };
    let is_proved = outcome.is_optimal();
    let SolveOutcome::Solution(values) = outcome else { return Ok(Found::Nothing) };
    let count = |here: &Vec<Variable>| here.iter().position(|&count| values.var_value(count) > 0.5);
    let tasks: Option<Vec<usize>> = chosen.iter().map(count).collect();
    let solution = tasks.as_deref().map(|tasks| assigned(job, clusters, tasks)).transpose()?.flatten();
    let solution =
        solution.ok_or_else(|| MipError::Solver("its counts of tasks do not add up".to_string()))?;
    Ok(Found::Solution { solution, is_proved })
}

#[cfg(test)]
mod tests {
    use brokers::coallocation::best;
    use scheduler::draw::Draw;

    use super::*;

    fn cluster(powers: &[f64], consumed: f64) -> Cluster {
        Cluster { powers: powers.to_vec(), link: 100.0, consumed }
    }

    fn job(bandwidth: f64) -> Job {
        Job { tasks: 4, bandwidth, computing: 60.0, communicating: 30.0 }
    }

    fn proved(variant: Variant, job: &Job, clusters: &[Cluster]) -> Option<Solution> {
        match solve(variant, job, clusters, Limits::default()).unwrap() {
            Found::Solution { solution, is_proved } => {
                assert!(is_proved);
                Some(solution)
            }
            Found::Infeasible => None,
            Found::Nothing => panic!("nothing limits it"),
        }
    }

    #[test]
    fn the_program_finds_what_was_calculated_by_hand() {
        let clusters = [cluster(&[1.0, 1.0, 0.5], 20.0), cluster(&[1.0, 0.8, 0.8], 0.0)];
        for variant in [Variant::Optimal, Variant::NonSaturated] {
            let found = proved(variant, &job(40.0), &clusters).unwrap();
            assert_eq!((found.tasks, found.processing), (vec![1, 3], 1.25));
            assert!((found.time - 93.0).abs() < 1e-9 && (found.communication - 0.6).abs() < 1e-9);
        }
        let found = proved(Variant::Optimal, &job(120.0), &clusters).unwrap();
        assert!((found.time - 117.0).abs() < 1e-9 && (found.communication - 1.4).abs() < 1e-9);
        assert_eq!(proved(Variant::NonSaturated, &job(120.0), &clusters), None);

        let clusters = [cluster(&[1.0, 1.0], 20.0), cluster(&[1.0, 1.0, 0.4, 0.4], 20.0)];
        let found = proved(Variant::Optimal, &job(100.0), &clusters).unwrap();
        assert_eq!((found.tasks, found.processing), (vec![2, 2], 1.0));
        assert!((found.time - 106.0).abs() < 1e-9);
        let found = proved(Variant::NonSaturated, &job(100.0), &clusters).unwrap();
        assert_eq!((found.tasks, found.processing), (vec![0, 4], 2.5));
        assert!((found.time - 156.0).abs() < 1e-9);
    }

    fn drawn(seed: u64) -> (Job, Vec<Cluster>) {
        let mut draw = Draw::of_stream(seed, 10);
        let clusters: Vec<Cluster> = (0..1 + draw.below(4))
            .map(|_| {
                let powers = (0..draw.below(6)).map(|_| [1.0, 0.8, 0.6, 0.5, 0.25][draw.below(5)]).collect();
                Cluster { powers, link: draw.between(50.0, 150.0), consumed: draw.between(0.0, 60.0) }
            })
            .collect();
        let tasks = 1 + draw.below(10);
        let bandwidth = draw.between(0.0, 80.0);
        let job = Job {
            tasks,
            bandwidth,
            computing: draw.between(0.0, 100.0),
            communicating: draw.between(0.0, 100.0),
        };
        (job, clusters)
    }

    /// Instances of which one of the two has another time than the other, or a solution where the other has none. `seen` is what
    /// the program is given.
    fn differing(variant: Variant, seen: impl Fn(&Job) -> Job) -> usize {
        let differs = |&seed: &u64| {
            let (job, clusters) = drawn(seed);
            let exact = best(variant, &job, &clusters).unwrap();
            let found = proved(variant, &seen(&job), &clusters);
            let found = found.map(|found| assigned(&job, &clusters, &found.tasks).unwrap().unwrap());
            match (exact, found) {
                (Some(one), Some(other)) if variant != Variant::NonOptimal => {
                    (one.time - other.time).abs() > 1e-6 * one.time
                }
                (Some(_), Some(other)) => other.communication > 1.0 + 1e-6,
                (one, other) => one.is_some() != other.is_some(),
            }
        };
        (0..200).filter(differs).count()
    }

    #[test]
    fn what_is_proved_is_what_the_dynamic_program_finds() {
        for variant in [Variant::Optimal, Variant::NonSaturated, Variant::NonOptimal] {
            assert_eq!(differing(variant, |job| *job), 0, "{variant:?}");
        }
    }

    #[test]
    fn mutant_a_program_that_takes_messages_between_clusters_for_free_is_another() {
        let free = |job: &Job| Job { bandwidth: 0.0, ..*job };
        let found = [Variant::Optimal, Variant::NonSaturated].map(|variant| differing(variant, free));
        eprintln!("{found:?} of 200");
        assert!(found.iter().all(|&count| count > 10), "{found:?}");
    }

    /// One node of the search is not enough for 16 clusters: there is something or nothing, and no proof.
    #[test]
    fn a_limit_leaves_the_best_so_far_and_says_that_it_is_not_proved() {
        let mut draw = Draw::of_stream(1, 11);
        let mut node = || [1.0, 0.8, 0.6][draw.below(3)] / (1.0 + draw.below(4) as f64);
        let clusters: Vec<Cluster> =
            (0..16).map(|k| cluster(&[(); 8].map(|()| node()), f64::from(k))).collect();
        let job = Job { tasks: 40, ..job(50.0) };
        let limits = Limits { nodes: Some(1), ..Limits::default() };
        let exact = best(Variant::Optimal, &job, &clusters).unwrap().unwrap();
        match solve(Variant::Optimal, &job, &clusters, limits).unwrap() {
            Found::Solution { solution, is_proved } => {
                assert!(!is_proved && solution.time >= exact.time - 1e-9, "{solution:?}");
                assert_eq!(solution.tasks.iter().sum::<usize>(), 40);
            }
            Found::Nothing => {}
            Found::Infeasible => panic!("there are 128 nodes"),
        }
    }

    #[test]
    fn what_is_no_problem_is_refused() {
        let none = Job { tasks: 0, ..job(1.0) };
        let error = solve(Variant::Optimal, &none, &[], Limits::default()).unwrap_err();
        assert_eq!(error, MipError::Problem(CoallocationError::Job));
        assert_eq!(solve(Variant::Optimal, &job(1.0), &[], Limits::default()), Ok(Found::Infeasible));
    }
}
