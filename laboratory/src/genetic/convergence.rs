//! The best so far by generation, as `convergence.csv`: at few generations, close together where much changes.

use std::fmt::Write as _;

use brokers::genetic::{Criteria, Step};

use super::allocate::Figures;

/// Whether the best of a generation is written: each of the first ten; then each tenth, and of the hundreds each fiftieth.
fn is_written(generation: u32) -> bool {
    let every = match generation {
        0..10 => 1,
        10..200 => 10,
        _ => 50,
    };
    generation.is_multiple_of(every)
}

/// The best of an algorithm on a batch, when so many generations were made.
#[derive(Clone, Debug)]
pub(super) struct Point {
    batch: usize,
    algorithm: String,
    generation: u32,
    evaluations: u64,
    figures: Figures,
}

impl Point {
    /// That of a step, if it is one of those that are written.
    pub(super) fn of(batch: usize, algorithm: &str, step: &Step<'_>) -> Option<Point> {
        is_written(step.generation)
            .then(|| Point::new(batch, algorithm, (step.generation, step.evaluations), step.best))
    }

    /// That of a generation and evaluations so far.
    pub(super) fn new(batch: usize, algorithm: &str, made: (u32, u64), best: &Criteria) -> Point {
        let (generation, evaluations) = made;
        let figures = Figures::of(best);
        Point { batch, algorithm: algorithm.to_string(), generation, evaluations, figures }
    }
}

/// What is in the first line of [`csv`].
const HEAD: &str = "batch,algorithm,generation,evaluations,makespan_s,turnaround_s,response_ratio,wait_s\n";

/// All points, by batch, in the order of the algorithms.
pub(super) fn csv(points: &mut [Point]) -> String {
    points.sort_by_key(|point| point.batch);
    let mut text = HEAD.to_string();
    for Point { batch, algorithm, generation, evaluations, figures } in points {
        let _ = write!(text, "{batch},{algorithm},{generation},{evaluations}");
        for value in figures.values() {
            let _ = write!(text, ",{value:.6}");
        }
        text.push('\n');
    }
    text
}
