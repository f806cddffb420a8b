//! What predictions do to the schedule of one machine under EASY.

use std::collections::BTreeMap;
use std::ops::Range;

use predict::Correction;
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use scheduler::job::SLOWDOWN_BOUND;
use scheduler::local::{Estimator, LocalQueue, replay_watched};
use scheduler::{JobId, Pass, Span, Time, TimedJob};

use super::choice::{Order, Who};
use super::history::Earlier;
use super::log::Log;
use super::stored::ScheduleRow;

/// What plans a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Schedule {
    pub(super) order: Order,
    pub(super) who: Who,
    /// None where nothing is exceeded.
    pub(super) correction: Option<Correction>,
}

/// The whole and its halves, of so many jobs in order of submission.
pub(super) fn parts(jobs: usize) -> [(&'static str, Range<usize>); 3] {
    [("all", 0..jobs), ("first", 0..jobs / 2), ("second", jobs / 2..jobs)]
}

/// A job as it was planned, and as it came.
#[derive(Clone, Copy, Debug)]
struct Placed {
    wait: Span,
    run_time: Span,
    processors: u32,
    /// The start less the first reservation, if the job was ever at the head without a place.
    late: Option<Span>,
}

impl Schedule {
    /// Its name in a row: predictor, correction, order.
    fn names(&self) -> [String; 3] {
        let correction = self.correction.map_or("", Correction::name);
        [self.who.to_string(), correction.to_string(), self.order.to_string()]
    }

    pub(super) fn is(&self, row: &ScheduleRow) -> bool {
        self.names() == [&row.predictor, &row.correction, &row.backfill].map(Clone::clone)
    }

    /// Runs the log, and measures all of it and its halves.
    pub(super) fn rows(
        &self,
        processors: u32,
        pass: Pass,
        copies: u32,
        log: &Log,
        earlier: &Earlier,
    ) -> Vec<ScheduleRow> {
        let estimator = super::forecast(self.who, self.correction).map(|forecast| earlier.met_by(forecast));
        let measured = |jobs: &[TimedJob]| -> Vec<ScheduleRow> {
            let placed = self.run(processors, pass, jobs, estimator.clone());
            let parts = parts(placed.len()).into_iter().filter(|(_, range)| !range.is_empty());
            parts.map(|(part, range)| row(self.names(), part, &placed[range])).collect()
        };
        let mut rows = measured(&log.jobs);
        let others: Vec<Vec<ScheduleRow>> =
            (1..copies).map(|number| measured(&copy(&log.jobs, number.into()))).collect();
        for row in &mut rows {
            let of_part = |rows: &Vec<ScheduleRow>| rows.iter().find(|other| other.part == row.part).cloned();
            let others = others.iter().filter_map(of_part).map(|other| other.bounded_slowdown_mean);
            let all: Vec<f64> = std::iter::once(row.bounded_slowdown_mean).chain(others).collect();
            let mean = all.iter().sum::<f64>() / all.len() as f64;
            let variance = all.iter().map(|one| (one - mean) * (one - mean)).sum::<f64>() / all.len() as f64;
            row.bounded_slowdown_copies_mean = mean;
            row.bounded_slowdown_copies_deviation = variance.sqrt();
        }
        rows
    }

    fn run(
        &self,
        processors: u32,
        pass: Pass,
        jobs: &[TimedJob],
        estimator: Option<Box<dyn Estimator>>,
    ) -> Vec<Placed> {
        let told: Vec<TimedJob>;
        let jobs = match self.who {
            Who::Exact => {
                told = jobs.iter().map(|&job| knowing(job)).collect();
                &told
            }
            Who::Predictor(_) => jobs,
        };
        let queue = LocalQueue::new(self.order.0, pass, processors);
        let queue = match estimator {
            Some(estimator) => queue.with_estimator(estimator),
            None => queue,
        };
        let mut reserved: BTreeMap<JobId, Time> = BTreeMap::new();
        let mut head: Option<JobId> = None;
        let starts = replay_watched(queue, jobs, |queue, _| {
            if let Some((job, until)) = queue.reservation().filter(|&(job, _)| head != Some(job)) {
                head = Some(job);
                reserved.entry(job).or_insert(until);
            }
        });
        let starts: BTreeMap<JobId, Time> = starts.into_iter().collect();
        let placed = |job: &TimedJob| {
            let start = starts[&job.spec.id];
            Placed {
                wait: start.since(job.spec.submit),
                run_time: job.run_time,
                processors: job.spec.processors,
                late: reserved.get(&job.spec.id).map(|&until| start.since(until)),
            }
        };
        jobs.iter().map(placed).collect()
    }
}

/// One in so many jobs is left out of a copy. Arbitrary: too few to change the load, and enough to change the schedule.
const LEFT_OUT: u32 = 500;

/// A copy of a log without some of its jobs.
fn copy(jobs: &[TimedJob], number: u64) -> Vec<TimedJob> {
    let mut rng = ChaCha8Rng::seed_from_u64(number);
    jobs.iter().filter(|_| rng.random_range(0..LEFT_OUT) != 0).copied().collect()
}

/// The same job of a user who knows how long it takes.
fn knowing(mut job: TimedJob) -> TimedJob {
    job.spec.requested = job.run_time;
    job
}

fn row([predictor, correction, backfill]: [String; 3], part: &'static str, placed: &[Placed]) -> ScheduleRow {
    let count = placed.len() as f64;
    let slowdown = |job: &Placed| {
        let run_time = job.run_time.as_secs_f64();
        ((job.wait.as_secs_f64() + run_time) / run_time.max(SLOWDOWN_BOUND.as_secs_f64())).max(1.0)
    };
    let work = |job: &Placed| f64::from(job.processors) * job.run_time.as_secs_f64();
    let response = |job: &Placed| job.wait.as_secs_f64() + job.run_time.as_secs_f64();
    let late: Vec<f64> = placed.iter().filter_map(|job| job.late).map(Span::as_secs_f64).collect();
    let of_reserved = |sum: f64| (!late.is_empty()).then(|| sum / late.len() as f64);
    ScheduleRow {
        predictor,
        correction,
        backfill,
        part: part.to_string(),
        jobs: placed.len(),
        bounded_slowdown_mean: placed.iter().map(slowdown).sum::<f64>() / count,
        bounded_slowdown_max: placed.iter().map(slowdown).fold(0.0, f64::max),
        bounded_slowdown_copies_mean: 0.0,
        bounded_slowdown_copies_deviation: 0.0,
        wait_mean_s: placed.iter().map(|job| job.wait.as_secs_f64()).sum::<f64>() / count,
        wait_max_s: placed.iter().map(|job| job.wait.as_secs_f64()).fold(0.0, f64::max),
        awrt_s: placed.iter().map(|job| work(job) * response(job)).sum::<f64>()
            / placed.iter().map(work).sum::<f64>(),
        reserved: late.len(),
        late_share: late.iter().filter(|late| **late > 0.0).count() as f64 / count,
        reservation_error_mean_s: of_reserved(late.iter().map(|late| late.abs()).sum()),
    }
}

#[cfg(test)]
mod tests {
    use scheduler::{JobSpec, Labels, LocalScheduler, SiteId};

    use super::*;

    /// On 4 processors job 1 asks for 100 s and runs 60: job 2 has a reservation at 100 and starts at 60.
    #[test]
    fn a_row_is_worked_out_by_hand() {
        let job = |id, submit, processors, requested, run_time| TimedJob {
            spec: JobSpec {
                id: JobId(id),
                submit: Time::from_secs(submit),
                processors,
                requested: Span::from_secs(requested),
                labels: Labels::UNKNOWN,
                origin: SiteId(1),
                payload: 0,
            },
            run_time: Span::from_secs(run_time),
        };
        let jobs = [job(1, 0, 3, 100, 60), job(2, 10, 2, 40, 5)];
        let user = Schedule {
            order: Order(LocalScheduler::Easy),
            who: Who::Predictor(predict::Predictor::User),
            correction: None,
        };
        let placed = user.run(4, Pass::PerEvent, &jobs, None);
        let row = row(user.names(), "all", &placed);
        assert_eq!((row.wait_mean_s, row.wait_max_s, row.reserved), (25.0, 50.0, 1));
        // (1 + 55 / 10) / 2; job 2 runs for less than 10 s.
        assert_eq!((row.bounded_slowdown_mean, row.bounded_slowdown_max), (3.25, 5.5));
        // (180 · 60 + 10 · 55) / 190.
        assert!((row.awrt_s - 11_350.0 / 190.0).abs() < 1e-9);
        assert_eq!((row.late_share, row.reservation_error_mean_s), (0.0, Some(40.0)));
        let log = Log {
            name: String::new(),
            sha256: String::new(),
            read: 2,
            without_estimate: 0,
            others: 0,
            unix_start_s: None,
            is_of_nobody: false,
            jobs: jobs.to_vec(),
            happened: Vec::new(),
        };
        let rows = user.rows(4, Pass::PerEvent, 1, &log, &Earlier::default());
        assert_eq!(
            (rows.len(), rows[0].bounded_slowdown_copies_mean, rows[0].bounded_slowdown_copies_deviation),
            (3, 3.25, 0.0)
        );
        let exact = Schedule { who: Who::Exact, ..user };
        let placed = exact.run(4, Pass::PerEvent, &jobs, None);
        assert_eq!(placed[1].late, Some(Span::ZERO), "who knows reserves no more than is needed");
    }
}
