//! The queue of a site whose starts somebody else decides, a [`super::QueueDecider`].
//!
//! A clone decides by the fallback: plans and searches must not talk to whoever decides.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::decider::{News, QueueDecider};
use super::machine::{End, Machine};
use super::rule::QueueRule;
use super::turn::{Place, Waiting};
use crate::event::FallbackCause;
use crate::job::JobId;
use crate::time::Time;

#[derive(Debug)]
pub(super) struct Asked {
    decider: Arc<dyn QueueDecider>,
    /// Who decides once the decider does not, with the jobs that wait. Empty before.
    fallback: Box<dyn QueueRule>,
    waiting: BTreeMap<JobId, Waiting>,
    /// What the decider was not told yet, and when it was known.
    news: Vec<(Time, News)>,
    /// When it wants to be asked.
    calls: BTreeSet<Time>,
    /// How often it was called since a job joined, started, ended or left.
    in_vain: usize,
    /// Of the latest decision.
    now: Time,
    /// Why it is not asked any more.
    failed: Option<FallbackCause>,
    /// The same, until somebody was told.
    untold: Option<FallbackCause>,
}

impl Asked {
    pub(super) fn new(decider: Arc<dyn QueueDecider>, fallback: Box<dyn QueueRule>) -> Asked {
        Asked {
            decider,
            fallback,
            waiting: BTreeMap::new(),
            news: Vec::new(),
            calls: BTreeSet::new(),
            in_vain: 0,
            now: Time::from_micros(i64::MIN),
            failed: None,
            untold: None,
        }
    }

    /// The fallback with the jobs that wait.
    fn detached(&self) -> Box<dyn QueueRule> {
        let mut fallback = self.fallback.clone();
        for job in self.waiting.values() {
            fallback.insert(*job);
        }
        fallback
    }

    fn fails(&mut self, cause: FallbackCause, reason: &str) {
        self.decider.end(reason);
        self.fallback = self.detached();
        self.waiting.clear();
        self.news.clear();
        self.calls.clear();
        self.failed = Some(cause);
        self.untold = Some(cause);
    }

    /// Carries out what was decided as far as that is possible.
    fn ask(&mut self, now: Time, machine: &mut Machine) -> Result<(), (FallbackCause, String)> {
        let news = std::mem::take(&mut self.news);
        let is_progress = news.iter().any(|(_, news)| *news != News::Called);
        let decision =
            self.decider.decide(now, &news).map_err(|cause| (cause, "there is no answer".to_string()))?;
        let nonsense = |reason: String| (FallbackCause::Nonsense, reason);
        self.in_vain = if is_progress || !decision.starts.is_empty() { 0 } else { self.in_vain + 1 };
        for job in decision.starts {
            let Some(waiting) = self.waiting.get(&job) else {
                return Err(nonsense(format!("it starts job {job}, which does not wait here")));
            };
            let free = machine.free_for_planning(now);
            if waiting.processors > free {
                let wanted = waiting.processors;
                return Err(nonsense(format!(
                    "it starts job {job}, which needs {wanted} processors, where {free} are idle"
                )));
            }
            machine.promise(now, *waiting);
            self.waiting.remove(&job);
        }
        for call in decision.calls {
            if call <= now {
                return Err(nonsense(format!("it wants to be asked again at {call} s, and it is {now} s")));
            }
            self.calls.insert(call);
        }
        let too_often = |reason: String| (FallbackCause::Calls, reason);
        let most = self.decider.most_calls();
        if self.in_vain > most && !self.calls.is_empty() {
            return Err(too_often(format!(
                "it was called {most} times in a row (external.calls) at times that it asked for, nothing changed, and it \
                 asks to be called again: the run might never end"
            )));
        }
        if self.calls.len() > most {
            return Err(too_often(format!(
                "it asks to be called at more than {most} times that lie ahead (external.calls)"
            )));
        }
        let is_idle = machine.running() == 0 && machine.promises() == 0;
        if is_idle && !self.waiting.is_empty() && self.calls.is_empty() {
            return Err(nonsense(
                "nothing executes, jobs wait, and it neither starts one nor asks to be called: they might wait for ever"
                    .to_string(),
            ));
        }
        Ok(())
    }
}

impl QueueRule for Asked {
    fn waiting(&self) -> usize {
        self.waiting.len() + self.fallback.waiting()
    }

    fn insert(&mut self, job: Waiting) {
        if self.failed.is_some() {
            return self.fallback.insert(job);
        }
        self.waiting.insert(job.id, job);
        self.news.push((self.now.max(job.submit), News::Joined(job.job)));
    }

    fn take(&mut self, job: JobId) -> Option<Waiting> {
        if self.failed.is_some() {
            return self.fallback.take(job);
        }
        let waiting = self.waiting.remove(&job)?;
        let untold = self.news.iter().position(|(_, news)| matches!(news, News::Joined(of) if of.id == job));
        match untold {
            Some(place) => drop(self.news.remove(place)),
            None => self.news.push((self.now, News::Left(job))),
        }
        Some(waiting)
    }

    fn disturbed(&mut self) {
        self.fallback.disturbed();
    }

    fn completed(&mut self, now: Time, estimated: End) {
        if self.failed.is_some() {
            return self.fallback.completed(now, estimated);
        }
        self.news.push((now, News::Ended(estimated.job)));
    }

    fn choose(&mut self, now: Time, machine: &mut Machine) {
        self.now = now;
        if self.failed.is_none() {
            let later = self.calls.split_off(&now.saturating_add(crate::time::Span::from_micros(1)));
            if !std::mem::replace(&mut self.calls, later).is_empty() {
                self.news.push((now, News::Called));
            }
            if self.news.is_empty() {
                return;
            }
            match self.ask(now, machine) {
                Ok(()) => return,
                Err((cause, reason)) => self.fails(cause, &reason),
            }
        }
        self.fallback.choose(now, machine);
    }

    fn last_place(&self) -> Option<Place> {
        self.waiting.values().map(Waiting::place).max().max(self.fallback.last_place())
    }

    fn wake_at(&self, held_up_until: Option<Time>) -> Option<Time> {
        self.calls.first().copied().or_else(|| self.fallback.wake_at(held_up_until))
    }

    fn failure(&mut self) -> Option<FallbackCause> {
        self.untold.take()
    }

    fn check_invariants(&self, now: Option<Time>, machine: &Machine) {
        self.fallback.check_invariants(now, machine);
        assert!(self.failed.is_none() || self.waiting.is_empty(), "the fallback has what waits");
    }

    fn boxed(&self) -> Box<dyn QueueRule> {
        self.detached()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::super::LocalQueue;
    use super::super::decider::{CALLS, Decision};
    use super::*;
    use crate::grid::SiteId;
    use crate::job::{JobSpec, Labels};
    use crate::strategy::LocalScheduler;
    use crate::time::Span;

    /// Answers what it was given, and notes what it was told.
    #[derive(Debug)]
    struct Script {
        answers: Mutex<Vec<Result<Decision, FallbackCause>>>,
        told: Mutex<Vec<(Time, News)>>,
        ended: Mutex<Vec<String>>,
    }

    impl Script {
        fn new(mut answers: Vec<Result<Decision, FallbackCause>>) -> Arc<Script> {
            answers.reverse();
            Arc::new(Script { answers: Mutex::new(answers), told: Mutex::default(), ended: Mutex::default() })
        }
    }

    impl QueueDecider for Script {
        fn decide(&self, _now: Time, news: &[(Time, News)]) -> Result<Decision, FallbackCause> {
            self.told.lock().unwrap().extend(news);
            self.answers.lock().unwrap().pop().unwrap_or(Ok(Decision::default()))
        }

        fn end(&self, reason: &str) {
            self.ended.lock().unwrap().push(reason.to_string());
        }

        fn fallback(&self) -> LocalScheduler {
            LocalScheduler::Easy
        }
    }

    fn job(id: u64, processors: u32) -> JobSpec {
        JobSpec {
            id: JobId(id),
            submit: Time::ZERO,
            processors,
            requested: Span::from_secs(10),
            labels: Labels::UNKNOWN,
            origin: SiteId(1),
            payload: 0,
        }
    }

    fn start(jobs: &[u64]) -> Result<Decision, FallbackCause> {
        Ok(Decision { starts: jobs.iter().map(|&job| JobId(job)).collect(), calls: Vec::new() })
    }

    fn decide(queue: &mut LocalQueue, now: i64) -> Vec<u64> {
        let mut starts = Vec::new();
        queue.decide(Time::from_secs(now), &mut starts);
        queue.check_invariants();
        starts.iter().map(|job| job.id.0).collect()
    }

    #[test]
    fn what_is_answered_starts_and_what_happens_is_told() {
        let script = Script::new(vec![
            start(&[2]),
            Ok(Decision { starts: Vec::new(), calls: vec![Time::from_secs(7)] }),
            start(&[1]),
        ]);
        let mut queue = LocalQueue::external(script.clone(), 4);
        queue.submit(Time::ZERO, job(1, 4));
        queue.submit(Time::ZERO, job(2, 2));
        assert_eq!(decide(&mut queue, 0), [2]);
        assert_eq!(decide(&mut queue, 1), [0; 0], "nothing happened: nobody is asked");
        queue.complete(Time::from_secs(5), JobId(2));
        assert_eq!(decide(&mut queue, 5), [0; 0]);
        assert_eq!(queue.wake_at(), Some(Time::from_secs(7)));
        assert_eq!(decide(&mut queue, 7), [1]);
        let told = script.told.lock().unwrap();
        let news: Vec<News> = told.iter().map(|(_, news)| *news).collect();
        let expected =
            [News::Joined(job(1, 4)), News::Joined(job(2, 2)), News::Ended(JobId(2)), News::Called];
        assert_eq!(news, expected);
        assert_eq!(queue.failure(), None);
    }

    #[test]
    fn whatever_is_answered_every_job_starts_by_the_fallback() {
        let past = Decision { starts: Vec::new(), calls: vec![Time::ZERO] };
        for (answer, cause, word) in [
            (Err(FallbackCause::Died), FallbackCause::Died, "no answer"),
            (start(&[9]), FallbackCause::Nonsense, "does not wait here"),
            (start(&[1, 1]), FallbackCause::Nonsense, "does not wait here"),
            (start(&[1, 2]), FallbackCause::Nonsense, "where 1 are idle"),
            (start(&[]), FallbackCause::Nonsense, "might wait for ever"),
            (Ok(past), FallbackCause::Nonsense, "and it is 0 s"),
        ] {
            let script = Script::new(vec![answer]);
            let mut queue = LocalQueue::external(script.clone(), 4);
            for (id, processors) in [(1, 3), (2, 2), (3, 1)] {
                queue.submit(Time::ZERO, job(id, processors));
            }
            let mut started = decide(&mut queue, 0);
            started.sort_unstable();
            assert_eq!(started, [1, 3], "as under EASY: {word}");
            assert_eq!(queue.failure(), Some(cause));
            assert_eq!(queue.failure(), None, "it is told once");
            assert!(script.ended.lock().unwrap()[0].contains(word), "{word}");
            queue.complete(Time::from_secs(10), JobId(1));
            assert_eq!(decide(&mut queue, 10), [2]);
            assert_eq!(script.ended.lock().unwrap().len(), 1);
        }
    }

    /// Asks to be called again each second, whatever happens, and starts nothing.
    #[derive(Debug)]
    struct Restless;

    impl QueueDecider for Restless {
        fn decide(&self, now: Time, _news: &[(Time, News)]) -> Result<Decision, FallbackCause> {
            Ok(Decision { starts: Vec::new(), calls: vec![now + Span::from_secs(1)] })
        }

        fn end(&self, reason: &str) {
            assert!(reason.contains("external.calls"), "{reason}");
        }

        fn most_calls(&self) -> usize {
            5
        }

        fn fallback(&self) -> LocalScheduler {
            LocalScheduler::Easy
        }
    }

    #[test]
    fn calls_without_progress_have_a_limit_and_begin_anew_with_each_job() {
        let mut queue = LocalQueue::external(Arc::new(Restless), 4);
        queue.submit(Time::ZERO, job(1, 1));
        for second in 0..=5 {
            assert_eq!(decide(&mut queue, second), [0; 0]);
        }
        let mut later = JobSpec { submit: Time::from_secs(6), ..job(2, 1) };
        queue.submit(later.submit, later);
        for second in 6..=11 {
            assert_eq!(decide(&mut queue, second), [0; 0], "a job joined: the count begins anew");
        }
        assert_eq!(queue.failure(), None);
        assert_eq!(decide(&mut queue, 12), [1, 2], "the fallback");
        assert_eq!(queue.failure(), Some(FallbackCause::Calls));
        assert_eq!(queue.wake_at(), None);
        later.id = JobId(3);
        queue.submit(Time::from_secs(13), later);
        assert_eq!(decide(&mut queue, 13), [3]);
    }

    #[test]
    fn times_to_be_called_at_have_the_same_limit() {
        let calls = (1..=CALLS as i64 + 1).map(Time::from_secs).collect();
        let script = Script::new(vec![Ok(Decision { starts: Vec::new(), calls })]);
        let mut queue = LocalQueue::external(script.clone(), 4);
        queue.submit(Time::ZERO, job(1, 3));
        assert_eq!(decide(&mut queue, 0), [1]);
        assert!(script.ended.lock().unwrap()[0].contains("external.calls"));
    }

    #[test]
    fn plans_are_those_of_the_fallback_and_ask_nobody() {
        let script = Script::new(vec![start(&[1])]);
        let mut queue = LocalQueue::external(script.clone(), 4);
        for (id, processors) in [(1, 3), (2, 2), (3, 1)] {
            queue.submit(Time::ZERO, job(id, processors));
        }
        assert_eq!(decide(&mut queue, 0), [1]);
        let asked = script.told.lock().unwrap().len();
        let plan = queue.plan(Time::from_secs(1));
        assert_eq!(plan.of(JobId(3)).map(|planned| planned.start), Some(Time::from_secs(1)));
        assert_eq!(plan.of(JobId(2)).map(|planned| planned.start), Some(Time::from_secs(10)));
        assert_eq!(script.told.lock().unwrap().len(), asked);
    }

    #[test]
    fn a_job_that_leaves_is_told_of_if_it_was_known() {
        let script = Script::new(vec![start(&[1])]);
        let mut queue = LocalQueue::external(script.clone(), 4);
        queue.submit(Time::ZERO, job(1, 3));
        queue.submit(Time::ZERO, job(2, 2));
        assert_eq!(decide(&mut queue, 0), [1]);
        queue.submit(Time::from_secs(1), job(3, 2));
        assert!(queue.withdraw(JobId(3)).is_some() && queue.withdraw(JobId(2)).is_some());
        assert_eq!(decide(&mut queue, 1), [0; 0]);
        let told = script.told.lock().unwrap();
        assert_eq!(told.last().map(|(_, news)| *news), Some(News::Left(JobId(2))));
        assert_eq!(told.len(), 3, "of job 3 nobody ever heard");
    }
}
