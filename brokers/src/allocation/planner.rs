//! Batches that a broker plans at once: rows of jobs for all sites by a genetic algorithm, behind what the sites have.
//!
//! An extension of the off-line work of Castro García, Tchernykh, Yaurima (§3.7 there; jobs that come over time are its
//! future work): each batch is searched as an off-line one is, but sites are not idle, jobs have waited, and the search ends
//! after so many generations and evaluations, so that a decision takes no longer than that.

use std::collections::{BTreeMap, VecDeque};
use std::ops::ControlFlow;

use scheduler::strategy::{Batches, Goal};
use scheduler::{JobId, JobSpec, QueueKey, Span, Time};

use super::book::Site;
use super::patience::Patience;
use crate::broker::{Act, Broker, Disclosure, Sites};
use crate::genetic::{Aim, Batch, Individual, Options, Purpose, RowScheduler, Step, initial, search};

/// Bits of the number of a batch below that of its broker, in streams of random numbers.
const BATCH_BITS: u32 = 32;

/// A broker that plans batches.
#[derive(Clone, Debug, Default)]
pub struct Planner {
    batches: Batches,
    seed: u64,
    /// Of the broker.
    number: u64,
    planned: u64,
    /// With since when; where it could not be planned, since it was tried.
    waiting: BTreeMap<QueueKey, (JobSpec, Time)>,
    /// When the window of the batch is over, if there is one.
    wake_at: Option<Time>,
    /// It is over.
    is_due: bool,
    /// Rows that were planned, as far as they were not told, with the places of their sites.
    rows: VecDeque<(JobSpec, usize)>,
}

impl Planner {
    /// The broker of this number among all.
    pub fn new(batches: Batches, seed: u64, number: u64) -> Planner {
        Planner { batches, seed, number, ..Planner::default() }
    }

    /// Since when the first job waits that is not wider than this, and how many there are.
    fn first(&self, widest: u32) -> Option<(Time, usize)> {
        let fit = self.waiting.values().filter(|(job, _)| job.processors <= widest);
        let since = fit.map(|&(_, since)| since);
        let count = since.clone().count();
        since.min().map(|first| (first, count))
    }

    /// Begins a window, if there is none and somebody waits.
    fn wait_for_more(&mut self, now: Time) {
        // Before all that wait are looked at: jobs come one by one.
        if self.wake_at.is_none()
            && let Some((first, _)) = self.first(u32::MAX)
        {
            self.wake_at = Some(self.batches.due_at(first).max(now));
        }
    }

    /// Plans a batch, if it is full or its window is over.
    fn plan(&mut self, now: Time, sites: &dyn Sites) {
        let most = self.batches.jobs as usize;
        if !self.is_due && self.waiting.len() < most {
            return;
        }
        let known = sites.known();
        let widest = known.last().map_or(0, |site| site.book.processors());
        let is_over = |first| self.is_due && self.batches.due_at(first) <= now;
        if self.first(widest).is_some_and(|(first, count)| count >= most || is_over(first)) {
            let fit = self.waiting.values().map(|&(job, _)| job).filter(|job| job.processors <= widest);
            let jobs: Vec<JobSpec> = fit.take(most).collect();
            let rows = self.rows(now, &jobs, &known, sites.patience());
            let placed = rows.into_iter().zip(&known);
            self.rows = placed.flat_map(|(row, site)| row.into_iter().map(|job| (job, site.place))).collect();
        }
    }

    /// A row for each site, which are given in ascending order of size. What fits no site, or asks for nothing, is in none.
    fn rows(
        &mut self,
        now: Time,
        jobs: &[JobSpec],
        sites: &[Site<'_>],
        patience: Option<&dyn Patience>,
    ) -> Vec<Vec<JobSpec>> {
        if let Some(patience) = patience {
            patience.begins();
        }
        let sizes: Vec<u32> = sites.iter().map(|site| site.book.processors()).collect();
        let widest = sizes.last().copied().unwrap_or(0);
        let fitting: Vec<&JobSpec> = jobs.iter().filter(|job| job.processors <= widest).collect();
        let occupied = sites.iter().map(|site| site.book.occupied(now)).collect();
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

impl Broker for Planner {
    fn needs(&self) -> Disclosure {
        Disclosure::All
    }

    fn came(&mut self, now: Time, job: JobSpec) {
        self.waiting.insert(job.key(), (job, now));
        self.wait_for_more(now);
    }

    fn withdraw(&mut self, job: &JobSpec) -> Option<JobSpec> {
        let (job, _) = self.waiting.remove(&job.key())?;
        self.wake_at = self.wake_at.filter(|_| !self.waiting.is_empty());
        Some(job)
    }

    fn waiting(&self) -> Box<dyn Iterator<Item = &JobSpec> + '_> {
        Box::new(self.waiting.values().map(|(job, _)| job))
    }

    fn count(&self) -> usize {
        self.waiting.len()
    }

    /// Row by row. What no site that is there is wide enough for is held for another window.
    fn decide(&mut self, now: Time, sites: &mut dyn Sites) -> Option<Act> {
        if self.rows.is_empty() {
            self.plan(now, sites);
        }
        if let Some((job, place)) = self.rows.pop_front() {
            self.withdraw(&job);
            return Some(Act::Place(job, place));
        }
        if std::mem::take(&mut self.is_due) {
            for (_, since) in
                self.waiting.values_mut().filter(|(_, since)| self.batches.due_at(*since) <= now)
            {
                *since = now;
            }
            // Nobody is wide enough for what is left of a window without length: it waits for the next job or site.
            if self.batches.window > Span::ZERO {
                self.wait_for_more(now);
            }
        }
        None
    }

    fn wake_at(&self) -> Option<Time> {
        self.wake_at
    }

    fn woke(&mut self, _now: Time) -> Vec<(JobId, usize)> {
        (self.wake_at, self.is_due) = (None, true);
        Vec::new()
    }

    fn met(&mut self, now: Time) {
        self.wait_for_more(now);
    }
}

/// As it is planned: one that requests no time is planned for the least that there is.
fn planned(job: &JobSpec) -> JobSpec {
    JobSpec { requested: job.requested.max(Span::from_micros(1)), ..*job }
}
