//! Batches that a broker plans at once: rows of jobs for all sites by a genetic algorithm, behind what the sites have.
//!
//! An extension of the off-line work of Castro García, Tchernykh, Yaurima (§3.7 there; jobs that come over time are its
//! future work): each batch is searched as an off-line one is, but sites are not idle, jobs have waited, and the search ends
//! after so many generations and evaluations, so that a decision takes no longer than that.

use std::ops::ControlFlow;

use scheduler::strategy::{Batches, Goal};
use scheduler::{JobSpec, Span, Time};

use super::book::Book;
use super::patience::Patience;
use crate::genetic::{Aim, Batch, Individual, Options, Purpose, RowScheduler, Step, initial, search};

/// Bits of the number of a batch below that of its broker, in streams of random numbers.
const BATCH_BITS: u32 = 32;

/// Plans the batches of one broker.
#[derive(Clone, Debug)]
pub(super) struct Planner {
    batches: Batches,
    seed: u64,
    /// Of the broker.
    number: u64,
    planned: u64,
}

impl Planner {
    pub(super) fn new(batches: Batches, seed: u64, number: u64) -> Planner {
        Planner { batches, seed, number, planned: 0 }
    }

    /// A row for each site, which are given in ascending order of size. What fits no site, or asks for nothing, is in none.
    pub(super) fn rows(
        &mut self,
        now: Time,
        jobs: &[JobSpec],
        sites: &[&Book],
        patience: Option<&dyn Patience>,
    ) -> Vec<Vec<JobSpec>> {
        if let Some(patience) = patience {
            patience.begins();
        }
        let sizes: Vec<u32> = sites.iter().map(|book| book.processors()).collect();
        let widest = sizes.last().copied().unwrap_or(0);
        let fitting: Vec<&JobSpec> = jobs.iter().filter(|job| job.processors <= widest).collect();
        let occupied = sites.iter().map(|book| book.occupied(now)).collect();
        let batch = Batch::new(&sizes, fitting.iter().map(|job| planned(job)).collect());
        let batch = batch.and_then(|batch| batch.on_line(now, occupied));
        let Ok(batch) = batch else { return self.by_size(jobs, &sizes) };
        self.planned += 1;
        let rows = self.search(&batch, patience);
        let job = |&place: &u32| *fitting[place as usize];
        rows.iter().map(|row| row.iter().map(job).collect()).collect()
    }

    fn search(&self, batch: &Batch, patience: Option<&dyn Patience>) -> Vec<Vec<u32>> {
        let options = Options {
            population: self.batches.population.min(self.batches.evaluations) as usize,
            crossover: self.batches.crossover.as_f64(),
            mutation: self.batches.mutation.as_f64(),
            generations_max: self.batches.generations,
            evaluations_max: self.batches.evaluations.into(),
            ..Options::default()
        };
        let aim = match self.batches.goal {
            Goal::Average => Aim::Owa,
            Goal::Makespan => Aim::Makespan,
            Goal::ResponseRatio => Aim::ResponseRatio,
            Goal::Turnaround => Aim::Turnaround,
            Goal::Wait => Aim::Wait,
        };
        let stream = (self.number << BATCH_BITS) + self.planned;
        let draw = |purpose: Purpose| purpose.draw(self.seed, stream);
        let mut scheduler = RowScheduler::new();
        let mut evaluate = |population: &mut [Individual]| {
            population.iter_mut().for_each(|one| one.evaluate(batch, &mut scheduler));
        };
        let first = initial(batch, &options, &mut draw(Purpose::Initial), &mut evaluate);
        let mut draw = draw(Purpose::Algorithm(0));
        let mut watch = |_: &Step<'_>| match patience {
            Some(patience) if patience.is_over() => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        };
        search(batch, &options, aim, &first, &mut draw, &mut evaluate, &mut watch).best.rows().clone()
    }

    /// Where nothing can be planned, because times are too long or nobody is there: each job at the smallest site that is
    /// wide enough.
    fn by_size(&self, jobs: &[JobSpec], sizes: &[u32]) -> Vec<Vec<JobSpec>> {
        let mut rows = vec![Vec::new(); sizes.len()];
        for job in jobs {
            if let Some(row) = rows.get_mut(sizes.partition_point(|&size| size < job.processors)) {
                row.push(*job);
            }
        }
        rows
    }
}

/// As it is planned: one that requests no time is planned for the least that there is.
fn planned(job: &JobSpec) -> JobSpec {
    JobSpec { requested: job.requested.max(Span::from_micros(1)), ..*job }
}
