//! The competitive ratio while a run lasts: how long the jobs submitted so far take at least, as things are, over the
//! shortest time that any schedule of them could take.
//!
//! Above the line stands what the makespan cannot fall below any more: every job that runs ends when it ends, every job
//! that waits starts now at the earliest. Below it stands [`Bounds::proof`](crate::Bounds::proof) of the jobs submitted so
//! far, which the theorems are proved against. Both are counted from the first submission, as in the report. At the end
//! of a run both are exact, and so is the ratio, for the run times that the jobs were given; the report takes those that
//! they had. Before the end it can be below 1, while more work waits than was done.

use std::collections::BTreeMap;

use scheduler::{Grid, JobId, Span, Time, TimedJob};

/// What was seen of a run.
#[derive(Clone, Debug)]
pub struct SoFar {
    grid: Grid,
    jobs: BTreeMap<JobId, JobPhase>,
    /// Work in processor-microseconds by rank of the home, ascending.
    work: Vec<i128>,
    /// The first submission, once there is one.
    first: Option<Time>,
    /// max_j r_j + p_j, once there is a submission.
    time: Option<Time>,
    /// The last end of a job that has ended.
    ended: Option<Time>,
    /// Jobs that wait, by run time.
    waiting: Counts<Span>,
    /// Jobs that run, by when they end.
    running: Counts<Time>,
    /// Jobs that were given up.
    lost: u64,
}

#[derive(Clone, Copy, Debug)]
struct JobPhase {
    run_time: Span,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Waits,
    Runs(Time),
    Ended,
    GivenUp,
}

impl SoFar {
    /// Nothing was submitted yet.
    pub fn new(grid: &Grid) -> SoFar {
        SoFar {
            grid: grid.clone(),
            jobs: BTreeMap::new(),
            work: vec![0; grid.len()],
            first: None,
            time: None,
            ended: None,
            waiting: Counts::default(),
            running: Counts::default(),
            lost: 0,
        }
    }

    /// A job is submitted. Jobs that no site can hold, nor several together, and those known already, change nothing.
    pub fn submitted(&mut self, job: &TimedJob) {
        let processors = job.spec.processors;
        let home = match self.grid.spreads() {
            // In parts it may execute anywhere: its work is that of all sites.
            true => (processors <= self.grid.widest_job()).then_some(0),
            false => self.grid.home_rank(processors),
        };
        let Some(home) = home else { return };
        if self.jobs.contains_key(&job.spec.id) {
            return;
        }
        let TimedJob { spec, run_time } = *job;
        self.jobs.insert(spec.id, JobPhase { run_time, state: State::Waits });
        self.work[home] += i128::from(run_time.as_micros()) * i128::from(spec.processors);
        self.first = self.first.into_iter().chain([spec.submit]).min();
        self.time = self.time.max(Some(spec.submit + run_time));
        self.waiting.add(run_time);
    }

    /// A job that waits starts.
    pub fn started(&mut self, job: JobId, at: Time) {
        let run_time = self.jobs.get(&job).map(|known| known.run_time);
        self.set(job, State::Runs(at + run_time.unwrap_or(Span::ZERO)));
    }

    /// A job ends.
    pub fn ended(&mut self, job: JobId, at: Time) {
        self.set(job, State::Ended);
        self.ended = self.ended.max(Some(at));
    }

    /// A job is given up: it will not end.
    pub fn given_up(&mut self, job: JobId, at: Time) {
        self.set(job, State::GivenUp);
        self.ended = self.ended.max(Some(at));
    }

    /// A job that ran waits again.
    pub fn interrupted(&mut self, job: JobId) {
        self.set(job, State::Waits);
    }

    /// Whether a job has ended, and was not given up.
    pub fn has_ended(&self, job: JobId) -> bool {
        self.jobs.get(&job).is_some_and(|known| known.state == State::Ended)
    }

    fn set(&mut self, job: JobId, state: State) {
        let Some(known) = self.jobs.get_mut(&job) else { return };
        match std::mem::replace(&mut known.state, state) {
            State::Waits => self.waiting.take(known.run_time),
            State::Runs(until) => self.running.take(until),
            State::Ended => {}
            State::GivenUp => self.lost -= 1,
        }
        match state {
            State::Waits => self.waiting.add(known.run_time),
            State::Runs(until) => self.running.add(until),
            State::Ended => {}
            State::GivenUp => self.lost += 1,
        }
    }

    /// No schedule of the jobs submitted so far is shorter, counted from the first submission. Zero before it, and where jobs share
    /// nodes: how long they run there depends on the schedule, and nothing is proved of it.
    pub fn bound(&self) -> Span {
        if self.grid.is_shared() {
            return Span::ZERO;
        }
        let (mut work, mut processors, mut area) = (0, 0, 0);
        for rank in (0..self.grid.len()).rev() {
            work += self.work[rank];
            processors += i128::from(self.grid.site(self.grid.at_rank(rank)).processors);
            // Rounded up, as in `bounds`.
            area = area.max((work + processors - 1) / processors);
        }
        let area = Span::from_micros(i64::try_from(area).unwrap_or(i64::MAX));
        self.since_first(self.time).max(area)
    }

    /// What the makespan cannot fall below any more, counted from the first submission. Zero before it.
    pub fn makespan(&self, now: Time) -> Span {
        let running = self.running.last();
        let waiting = self.waiting.last().map(|run_time| now + run_time);
        self.since_first(self.ended.max(running).max(waiting))
    }

    fn since_first(&self, time: Option<Time>) -> Span {
        let length = time.zip(self.first).map(|(time, first)| time.since(first));
        length.map_or(Span::ZERO, |length| length.max(Span::ZERO))
    }

    /// One over the other; none while there is nothing to compare.
    pub fn ratio(&self, now: Time) -> Option<f64> {
        crate::Bounds::ratio(self.makespan(now), self.bound())
    }

    /// Jobs that were given up, which [`SoFar::counts`] has among those that ended.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Jobs that wait, run, and have ended or were given up.
    pub fn counts(&self) -> [u64; 3] {
        let (waiting, running) = (self.waiting.all, self.running.all);
        [waiting, running, self.jobs.len() as u64 - waiting - running]
    }
}

/// How many there are of each value, and of all.
#[derive(Clone, Debug)]
struct Counts<K> {
    by_value: BTreeMap<K, u64>,
    all: u64,
}

impl<K> Default for Counts<K> {
    fn default() -> Counts<K> {
        Counts { by_value: BTreeMap::new(), all: 0 }
    }
}

impl<K: Ord + Copy> Counts<K> {
    fn add(&mut self, value: K) {
        *self.by_value.entry(value).or_default() += 1;
        self.all += 1;
    }

    fn take(&mut self, value: K) {
        let Some(count) = self.by_value.get_mut(&value) else { return };
        *count -= 1;
        self.all -= 1;
        if *count == 0 {
            self.by_value.remove(&value);
        }
    }

    fn last(&self) -> Option<K> {
        self.by_value.last_key_value().map(|(&value, _)| value)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use scheduler::{JobSpec, Labels, SiteId};

    use super::*;
    use crate::Bounds;
    use crate::bounds::BoundJob;

    fn job(id: u64, submit: i64, processors: u32, run_time: i64) -> TimedJob {
        let run_time = Span::from_secs(run_time);
        let spec = JobSpec {
            id: JobId(id),
            submit: Time::from_secs(submit),
            processors,
            requested: run_time,
            labels: Labels::UNKNOWN,
            origin: SiteId(1),
            payload: 0,
        };
        TimedJob { spec, run_time }
    }

    #[test]
    fn nothing_is_proved_of_jobs_on_shared_nodes() {
        let mut run = SoFar::new(&crate::fixtures::shared_grid_beside(
            &[(4, 100)],
            &scheduler::sharing::LocalLoad::default(),
        ));
        run.submitted(&job(1, 0, 4, 100));
        let now = Time::from_secs(5);
        assert_eq!((run.bound(), run.ratio(now)), (Span::ZERO, None));
        assert_eq!(run.makespan(now), Span::from_secs(105));
    }

    #[test]
    fn a_job_that_waits_could_start_now_and_one_that_runs_ends_when_it_ends() {
        let grid = Grid::of_sizes(&[4, 4]).unwrap();
        let mut run = SoFar::new(&grid);
        let at = Time::from_secs;
        assert_eq!(run.ratio(at(0)), None);
        run.submitted(&job(1, 10, 4, 100));
        run.submitted(&job(2, 10, 4, 50));
        run.submitted(&job(3, 10, 9, 1000));
        assert_eq!(run.bound(), Span::from_secs(100), "the third fits nowhere");
        assert_eq!(run.makespan(at(10)), Span::from_secs(100));
        run.started(JobId(1), at(20));
        assert_eq!(run.makespan(at(20)), Span::from_secs(110));
        assert_eq!(run.makespan(at(90)), Span::from_secs(130), "the second waits still");
        assert_eq!(run.ratio(at(80)), Some(1.2));
        run.started(JobId(2), at(90));
        run.interrupted(JobId(2));
        assert_eq!(run.counts(), [1, 1, 0]);
        run.started(JobId(2), at(100));
        run.ended(JobId(1), at(120));
        run.ended(JobId(2), at(150));
        assert_eq!(run.makespan(at(999)), Span::from_secs(140), "time that passes at the end is nobody's");
        assert_eq!((run.counts(), run.lost()), ([0, 0, 2], 0));
        run.given_up(JobId(2), at(150));
        assert_eq!((run.counts(), run.lost()), ([0, 0, 2], 1));
        run.started(JobId(2), at(160));
        assert_eq!((run.counts(), run.lost()), ([0, 1, 1], 0), "another site has taken it over");
    }

    proptest! {
        /// At the end the bound is that of the report.
        #[test]
        fn the_bound_of_all_jobs_is_the_proved_one(
            sizes in prop::collection::vec(1u32..9, 1..5),
            written in prop::collection::vec((0i64..100, 1u32..9, 1i64..50), 1..20),
        ) {
            let grid = Grid::of_sizes(&sizes).unwrap();
            let jobs: Vec<TimedJob> = written
                .iter()
                .zip(1..)
                .filter(|((_, processors, _), _)| *processors <= grid.widest())
                .map(|(&(submit, processors, run_time), id)| job(id, submit, processors, run_time))
                .collect();
            let mut run = SoFar::new(&grid);
            jobs.iter().for_each(|job| run.submitted(job));
            let first = jobs.iter().map(|job| job.spec.submit).min().unwrap_or(Time::ZERO);
            let of_job = |job: &TimedJob| BoundJob {
                release: job.spec.submit.since(first),
                processors: job.spec.processors,
                run_time: job.run_time,
            };
            let mut written: Vec<BoundJob> = jobs.iter().map(of_job).collect();
            prop_assert_eq!(run.bound(), Bounds::of_jobs(&grid, &mut written).proof);
        }
    }
}
