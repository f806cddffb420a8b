//! How long jobs take, as a local queue believes it: what users say, or what somebody predicts.
//!
//! With an [`Estimator`] a job joins the queue with a predicted run time in place of the user's estimate, and a job that runs past
//! it gets another. The queue looks at who ran past a prediction when it decides next on something new: nothing but a decision depends
//! on it, and the reference (Gaussier, Lelong, Reis, Trystram, SC'15) makes none for a correction alone. Whoever drives the queue sees jobs as users
//! described them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use crate::job::{JobId, JobSpec};
use crate::prediction::Prediction;
use crate::time::{Span, Time};

/// Predicts run times and learns from jobs that have ended. What it is told is in the order of time.
pub trait Estimator: Debug + Send + Sync {
    /// How long a job will run that joins a queue now.
    fn predict(&mut self, now: Time, job: &JobSpec) -> Span;

    /// How long a job will run in all that ran past a prediction; so many were corrected before. A job that is to run for no longer than
    /// was predicted is not corrected any more.
    fn correct(&self, job: &JobSpec, predicted: Span, before: u32) -> Span;

    /// A job has ended that ran for so long.
    fn learn(&mut self, now: Time, job: &JobSpec, run_time: Span);

    /// A clone with what was learned, as trait objects cannot derive one.
    fn boxed(&self) -> Box<dyn Estimator>;
}

impl Clone for Box<dyn Estimator> {
    fn clone(&self) -> Self {
        self.boxed()
    }
}

/// What a site that has a part of a job is told of the whole, where run times are predicted. The parts share one run time, so they share one
/// prediction, and one end: the site that the job is known by learns from it, and no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Portion {
    /// Processors of the whole job.
    pub whole: u32,
    /// How long it is predicted to run, by whoever spread it.
    pub predicted: Span,
    /// Whether the job is known by this site.
    pub is_first: bool,
}

/// A job with what is predicted of it.
#[derive(Clone, Copy, Debug)]
struct Running {
    job: JobSpec,
    since: Time,
    predicted: Span,
    corrected: u32,
    /// None of a job that is here whole.
    portion: Option<Portion>,
}

impl Running {
    fn end(&self) -> Time {
        self.since.saturating_add(self.predicted)
    }

    /// The job that is to be learned from here, as its user described it.
    fn lesson(&self) -> Option<JobSpec> {
        match self.portion {
            None => Some(self.job),
            Some(Portion { whole, is_first, .. }) => {
                is_first.then_some(JobSpec { processors: whole, ..self.job })
            }
        }
    }

    /// Whether it is for this site to say what is predicted of it.
    fn is_known_here(&self) -> bool {
        self.portion.is_none_or(|portion| portion.is_first)
    }
}

/// The jobs of a queue as users described them, and what is predicted of those that run. For [`super::LocalQueue`], and for queues of
/// other kinds.
#[derive(Clone, Debug)]
pub struct Estimates {
    estimator: Box<dyn Estimator>,
    waiting: BTreeMap<JobId, JobSpec>,
    running: BTreeMap<JobId, Running>,
    /// Predicted ends of running jobs that can be corrected.
    ends: BTreeSet<(Time, JobId)>,
    /// What was predicted since somebody asked.
    news: Vec<Prediction>,
    /// Whether a job came, left or ended since predictions were corrected. Without that a decision is to change nothing, however
    /// often it is made.
    stirred: bool,
}

impl Estimates {
    /// Nothing waits or runs.
    pub fn by(estimator: Box<dyn Estimator>) -> Estimates {
        Estimates {
            estimator,
            waiting: BTreeMap::new(),
            running: BTreeMap::new(),
            ends: BTreeSet::new(),
            news: Vec::new(),
            stirred: false,
        }
    }

    /// A job as the queue is to know it, from now on.
    pub fn enter(&mut self, now: Time, job: JobSpec) -> JobSpec {
        self.stirred = true;
        let predicted = self.estimator.predict(now, &job).max(Span::from_micros(1));
        self.waiting.insert(job.id, job);
        self.news.push(Prediction { job: job.id, run_time: predicted, corrections: 0 });
        JobSpec { requested: predicted, ..job }
    }

    /// A job that waits no more, as its user described it.
    pub fn leave(&mut self, job: JobId) -> Option<JobSpec> {
        self.stirred = true;
        self.waiting.remove(&job)
    }

    /// A job starts that was known so; returns it as its user described it.
    ///
    /// # Panics
    /// If it does not wait.
    pub fn start(&mut self, since: Time, known: &JobSpec) -> JobSpec {
        let job = self.waiting.remove(&known.id).expect("what starts has waited");
        let running = Running { job, since, predicted: known.requested, corrected: 0, portion: None };
        self.ends.insert((running.end(), job.id));
        self.running.insert(job.id, running);
        job
    }

    /// A part of a job has processors from now on, and has not begun. Returns it as the queue is to know it.
    pub fn hold(&mut self, now: Time, part: JobSpec, portion: Portion) -> JobSpec {
        self.stirred = true;
        let predicted = portion.predicted.max(Span::from_micros(1));
        let running = Running { job: part, since: now, predicted, corrected: 0, portion: Some(portion) };
        self.running.insert(part.id, running);
        JobSpec { requested: predicted, ..part }
    }

    /// A part that is held begins. Returns how long it is predicted to run; none of one that is not held.
    pub fn begins(&mut self, now: Time, part: JobId) -> Option<Span> {
        let running = self.running.get_mut(&part)?;
        running.since = now;
        self.ends.insert((running.end(), part));
        if running.is_known_here() {
            self.news.push(Prediction { job: part, run_time: running.predicted, corrections: 0 });
        }
        Some(running.predicted)
    }

    /// A job that runs, or is held, does not go on. Nothing is learned from that.
    pub fn stop(&mut self, job: JobId) {
        self.stirred = true;
        if let Some(running) = self.running.remove(&job) {
            self.ends.remove(&(running.end(), job));
        }
    }

    /// What was predicted since this was asked last, in that order.
    pub fn news(&mut self) -> impl Iterator<Item = Prediction> + '_ {
        self.news.drain(..)
    }

    /// A job has ended elsewhere, or in a queue before this one.
    pub fn learn(&mut self, now: Time, job: &JobSpec, run_time: Span) {
        self.estimator.learn(now, job, run_time);
    }

    /// A job ends, and is learned from. Returns it as its user described it, and how long it ran.
    ///
    /// # Panics
    /// If it does not run.
    pub fn complete(&mut self, now: Time, job: JobId) -> (JobSpec, Span) {
        self.complete_work(now, job, None).expect("it was here whole")
    }

    /// As [`Estimates::complete`], of a job that may have shared nodes: then it has done this much, as the time that this takes on idle nodes
    /// of full power, which is what a run time is and what is learned. None of a part whose job is known by another site, which learns from it.
    ///
    /// # Panics
    /// As there.
    pub fn complete_work(&mut self, now: Time, job: JobId, work: Option<Span>) -> Option<(JobSpec, Span)> {
        self.stirred = true;
        let running = self.running.remove(&job).expect("what ends has run");
        self.ends.remove(&(running.end(), job));
        let run_time = work.unwrap_or_else(|| now.since(running.since));
        let lesson = running.lesson()?;
        self.estimator.learn(now, &lesson, run_time);
        Some((lesson, run_time))
    }

    /// Corrects what is predicted of jobs that run past it, if a job came, left or ended since this was done, and tells when each is to
    /// end; whether there were any.
    pub fn correct(&mut self, now: Time, mut expected: impl FnMut(JobId, Time)) -> bool {
        let mut any = false;
        if !std::mem::take(&mut self.stirred) {
            return any;
        }
        while let Some(&(end, job)) = self.ends.first().filter(|(end, _)| *end <= now) {
            self.ends.remove(&(end, job));
            if let Some(longer) = self.prolong(job) {
                self.ends.insert((longer.end(), job));
                expected(job, longer.end());
                any = true;
            }
        }
        any
    }

    /// The same of jobs that share nodes, of which those have run past what is predicted that are told, each with what it has done: run times
    /// are those on idle nodes of full power, so when a job ends is for others to say, who are told its run time.
    pub fn correct_work(&mut self, past: &[(JobId, Span)], mut expected: impl FnMut(JobId, Span)) {
        if !std::mem::take(&mut self.stirred) {
            return;
        }
        for &(job, done) in past {
            let mut last = None;
            while self.running.get(&job).is_some_and(|running| running.predicted <= done) {
                let Some(longer) = self.prolong(job) else { break };
                last = Some(longer.predicted);
            }
            if let Some(run_time) = last {
                expected(job, run_time);
            }
        }
    }

    /// Predicts a longer run time of a job that runs past the one before. None if it is not corrected any more.
    fn prolong(&mut self, job: JobId) -> Option<Running> {
        let running = self.running.get_mut(&job)?;
        let longer = self.estimator.correct(&running.job, running.predicted, running.corrected);
        if longer <= running.predicted {
            return None;
        }
        (running.predicted, running.corrected) = (longer, running.corrected + 1);
        if running.is_known_here() {
            self.news.push(Prediction { job, run_time: longer, corrections: running.corrected });
        }
        Some(*running)
    }

    /// Whether predictions are to be corrected before the next decision; see [`Estimates::correct`].
    pub(super) fn is_stirred(&self) -> bool {
        self.stirred
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::SiteId;
    use crate::job::Labels;

    /// A second for every job, and the user's estimate for one that runs past that.
    #[derive(Clone, Debug)]
    struct Second;

    impl Estimator for Second {
        fn predict(&mut self, _now: Time, _job: &JobSpec) -> Span {
            Span::from_secs(1)
        }

        fn correct(&self, job: &JobSpec, _predicted: Span, _before: u32) -> Span {
            job.requested
        }

        fn learn(&mut self, _now: Time, _job: &JobSpec, _run_time: Span) {}

        fn boxed(&self) -> Box<dyn Estimator> {
            Box::new(self.clone())
        }
    }

    fn job(id: u64) -> JobSpec {
        JobSpec {
            id: JobId(id),
            submit: Time::ZERO,
            processors: 1,
            requested: Span::from_secs(10),
            labels: Labels::UNKNOWN,
            origin: SiteId(1),
            payload: 0,
        }
    }

    #[test]
    fn without_news_nothing_is_corrected() {
        let mut estimates = Estimates::by(Box::new(Second));
        let known = estimates.enter(Time::ZERO, job(1));
        let mut ends = Vec::new();
        assert!(!estimates.correct(Time::ZERO, |job, end| ends.push((job, end))), "nothing runs");
        estimates.start(Time::ZERO, &known);
        assert!(
            !estimates.correct(Time::from_secs(5), |job, end| ends.push((job, end))),
            "nothing came or ended"
        );
        estimates.enter(Time::from_secs(5), job(2));
        assert!(estimates.correct(Time::from_secs(5), |job, end| ends.push((job, end))));
        assert_eq!(ends, [(JobId(1), Time::from_secs(10))]);
    }

    /// Predicts what it learned last: 100 s for each processor, and the run time; nothing before.
    #[derive(Clone, Debug)]
    struct Last(Span);

    impl Estimator for Last {
        fn predict(&mut self, _now: Time, _job: &JobSpec) -> Span {
            self.0
        }

        fn correct(&self, job: &JobSpec, _predicted: Span, _before: u32) -> Span {
            job.requested
        }

        fn learn(&mut self, _now: Time, job: &JobSpec, run_time: Span) {
            self.0 = Span::from_secs(100 * i64::from(job.processors)) + run_time;
        }

        fn boxed(&self) -> Box<dyn Estimator> {
            Box::new(self.clone())
        }
    }

    /// What a site makes of a part of a job of six processors, predicted to run for 2 s: what it says of it, when it believes it to end, what it
    /// predicts after that.
    fn of_a_part(is_first: bool, ends: bool) -> (Vec<Prediction>, Vec<Time>, Span) {
        let mut estimates = Estimates::by(Box::new(Last(Span::from_secs(1))));
        let portion = Portion { whole: 6, predicted: Span::from_secs(2), is_first };
        let known = estimates.hold(Time::ZERO, job(1), portion);
        assert_eq!(known.requested, Span::from_secs(2), "as whoever spread it predicts");
        let mut expected = Vec::new();
        assert!(!estimates.correct(Time::from_secs(5), |_, end| expected.push(end)), "it has not begun");
        assert_eq!(estimates.begins(Time::from_secs(5), JobId(1)), Some(Span::from_secs(2)));
        estimates.enter(Time::from_secs(7), job(2));
        estimates.correct(Time::from_secs(7), |_, end| expected.push(end));
        match ends {
            true => {
                let lesson = estimates.complete_work(Time::from_secs(9), JobId(1), None);
                assert_eq!(lesson.is_some(), is_first);
            }
            false => estimates.stop(JobId(1)),
        }
        let said = estimates.news().filter(|said| said.job == JobId(1)).collect();
        (said, expected, estimates.enter(Time::from_secs(9), job(3)).requested)
    }

    #[test]
    fn of_the_parts_of_a_job_the_first_alone_is_spoken_of_and_learned_from_as_the_whole() {
        let corrected = vec![Time::from_secs(15)];
        let said = [(2, 0), (10, 1)].map(|(seconds, corrections)| Prediction {
            job: JobId(1),
            run_time: Span::from_secs(seconds),
            corrections,
        });
        let (nothing, learned) = (Span::from_secs(1), Span::from_secs(604));
        assert_eq!(of_a_part(true, true), (said.to_vec(), corrected.clone(), learned));
        assert_eq!(of_a_part(false, true), (Vec::new(), corrected.clone(), nothing));
        assert_eq!(of_a_part(true, false), (said.to_vec(), corrected, nothing), "it was stopped");
    }
}
