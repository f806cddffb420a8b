//! The queue played forward with predicted run times, by the very scheduler that decides (Algorithm 3.2 of Lérida's thesis, 3.4.2, on
//! dedicated machines; Smith, Taylor and Foster, *Using run-time predictions to estimate queue wait times and improve scheduler performance*,
//! JSSPP 1999).
//!
//! The scheduler decides by what it believes, the users' estimates where nobody else predicts, and jobs end when the predictor says: who
//! believes the user gets the plan of the queue itself. A running job past its prediction is corrected by the user's estimate, and ends now
//! if it is past that, too. What the thesis leaves open: the target's own start is what is returned, and the queue decides once before
//! anything ends. Jobs that come later are not played; under backfilling they may overtake, and then the job starts later than predicted.

use std::collections::BTreeMap;
use std::fmt::{self, Display};

use scheduler::local::Estimator;
use scheduler::{JobId, JobSpec, Span, Time};

use super::{Arrival, WaitRule};
use crate::spelled::Options;
use crate::{Correction, Forecast, PREDICTORS, Predictor};

/// Whose run times the queue is played with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// A predictor of run times, by its name.
    by: &'static str,
}

impl Default for Plan {
    /// By those who believe the user.
    fn default() -> Plan {
        Plan { by: "user" }
    }
}

impl Plan {
    pub(super) fn read(options: &mut Options<'_>) -> Result<Plan, String> {
        let all = PREDICTORS.map(|name| (name, name));
        Ok(Plan { by: options.one_of("by", &all, Plan::default().by)? })
    }

    pub(super) fn estimator(self) -> Box<dyn Estimator> {
        let predictor: Predictor = self.by.parse().expect("it is in the list of names");
        Forecast { predictor, correction: Correction::User }.estimator()
    }
}

impl Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "by={}", self.by)
    }
}

/// A job that runs, with what is thought of it.
#[derive(Clone, Copy, Debug)]
struct Running {
    job: JobSpec,
    since: Time,
    predicted: Span,
    corrected: u32,
}

impl Running {
    fn end(&self) -> Time {
        self.since.saturating_add(self.predicted)
    }
}

#[derive(Debug)]
pub(super) struct Player {
    estimator: Box<dyn Estimator>,
    waiting: BTreeMap<JobId, Span>,
    running: BTreeMap<JobId, Running>,
}

impl Player {
    pub(super) fn new(estimator: Box<dyn Estimator>) -> Player {
        Player { estimator, waiting: BTreeMap::new(), running: BTreeMap::new() }
    }

    fn correct(&mut self, now: Time) {
        for running in self.running.values_mut() {
            while running.end() <= now {
                let longer = self.estimator.correct(&running.job, running.predicted, running.corrected);
                if longer <= running.predicted {
                    break;
                }
                (running.predicted, running.corrected) = (longer, running.corrected + 1);
            }
        }
    }
}

impl WaitRule for Player {
    fn predict(&mut self, arrival: &Arrival<'_>) -> Option<Span> {
        let Arrival { now, job, queue, .. } = *arrival;
        let predicted = self.estimator.predict(now, job).max(Span::from_micros(1));
        self.waiting.insert(job.id, predicted);
        self.correct(now);
        let ends = |job| self.running.get(&job).map_or(now, Running::end);
        let run_time = |job: &JobSpec| self.waiting.get(&job.id).copied().unwrap_or(job.requested);
        queue.start_if(now, job.id, ends, run_time).map(|start| start.since(now))
    }

    fn started(&mut self, now: Time, job: &JobSpec, _wait: Span) {
        let predicted = self.waiting.remove(&job.id).unwrap_or(job.requested);
        self.running.insert(job.id, Running { job: *job, since: now, predicted, corrected: 0 });
    }

    fn ended(&mut self, now: Time, job: &JobSpec, run_time: Span) {
        self.running.remove(&job.id);
        self.estimator.learn(now, job, run_time);
    }
}

#[cfg(test)]
mod tests {
    use scheduler::local::LocalQueue;
    use scheduler::{LocalScheduler, Pass};

    use super::*;
    use crate::tests::job;
    use crate::waits::{Ahead, WaitPredictor};

    fn wide(id: u64, submit: i64, processors: u32, requested: i64) -> JobSpec {
        JobSpec { id: JobId(id), submit: Time::from_secs(submit), processors, ..job(1, requested) }
    }

    /// Four processors under EASY. Job 1 holds three for 100 s by its user, and 60 s by the mean of the two before it. Job 2 needs four:
    /// it starts at 100 or at 60. Job 3 needs one for 50 s: it goes before job 2 at once in both, as the queue believes its user. Job 4
    /// needs one for 120 s, too long to go before job 2, which it follows: after 100 + 20, or 60 + 20 if all run for as long as predicted.
    #[test]
    fn the_queue_is_played_with_predicted_run_times() {
        for (by, expected) in [("user", [0, 100, 0, 120]), ("avg2", [0, 60, 0, 80])] {
            let mut waits = format!("plan:by={by}").parse::<WaitPredictor>().unwrap().waits();
            for (id, run_time) in [(11, 40), (12, 80)] {
                waits.ended(Time::ZERO, &wide(id, 0, 1, 100), Span::from_secs(run_time));
            }
            let mut queue = LocalQueue::new(LocalScheduler::Easy, Pass::PerEvent, 4);
            let jobs = [wide(1, 0, 3, 100), wide(2, 0, 4, 20), wide(3, 0, 1, 50), wide(4, 0, 1, 120)];
            let mut predicted = Vec::new();
            for job in &jobs {
                queue.submit(Time::ZERO, *job);
                let arrival = Arrival { now: Time::ZERO, job, queue: &queue, ahead: Ahead::default() };
                predicted.push(waits.predict(&arrival).unwrap().as_micros() / 1_000_000);
                let mut starts = Vec::new();
                queue.decide(Time::ZERO, &mut starts);
                starts.iter().for_each(|job| waits.started(Time::ZERO, job));
            }
            assert_eq!(predicted, expected, "{by}");
        }
    }

    /// The only job runs past the 60 s that were predicted, and is planned for its 100 s from then on; past these it ends now.
    #[test]
    fn who_runs_past_a_prediction_is_planned_as_the_user_said() {
        let mut waits = "plan:by=avg2".parse::<WaitPredictor>().unwrap().waits();
        for (id, run_time) in [(11, 40), (12, 80)] {
            waits.ended(Time::ZERO, &wide(id, 0, 1, 100), Span::from_secs(run_time));
        }
        let mut queue = LocalQueue::new(LocalScheduler::Fcfs, Pass::Batch, 4);
        let mut wait_at = |now: i64, id: u64| {
            let now = Time::from_secs(now);
            let job = JobSpec { submit: now, ..wide(id, 0, 4, 100) };
            let mut queue_with = queue.clone();
            queue_with.submit(now, job);
            let arrival = Arrival { now, job: &job, queue: &queue_with, ahead: Ahead::default() };
            let wait = waits.predict(&arrival).unwrap().as_micros() / 1_000_000;
            if id == 1 {
                queue = queue_with;
                queue.decide(now, &mut Vec::new());
                waits.started(now, &job);
            }
            wait
        };
        let predicted = [(0, 1), (30, 2), (70, 3), (130, 4)].map(|(now, id)| wait_at(now, id));
        assert_eq!(predicted, [0, 30, 30, 0]);
    }
}
