//! The queue of one site: FCFS, LIST, EASY and conservative backfilling on one parallel machine.
//!
//! [`LocalQueue`] is told facts (submissions, terminations) and asked for decisions; it knows no clock and no
//! true run time. [`LocalQueue::plan`] says what it would do if nothing else came. [`LocalGrid`] is one queue per site of a grid, the reference of the strategy `local`;
//! [`replay()`] drives one queue with a whole log.
//!
//! # What each scheduler does
//! Queue order is (submit, id), after the *turn* of a job where one was given ([`LocalQueue::submit_in_turn`]). A job that ends at t frees its processors for a start at t. A running job
//! past its estimated end is planned as ending now until it comes.
//! - FCFS starts the head while it fits. LIST scans in queue order and starts everything that fits.
//! - EASY (Lifka 1995) starts heads while they fit. For the head that does not, the *shadow time* is the
//!   earliest estimated end at which it fits, and *extra* the processors then free beside it, with all jobs
//!   whose estimated end is at or before the shadow time counted. Another job starts if it fits and ends by
//!   its estimate no later than the shadow time, or needs at most `extra`, which then shrinks. Candidates
//!   come in queue order, or (best fit) the one of largest processors × request first, then the widest, then
//!   in queue order; or the one of the shortest request first (EASY-SJBF, Tsafrir, Etsion and Feitelson 2007), or the narrowest.
//! - Conservative (Mu'alem and Feitelson 2001) gives each job a reservation when it comes. After
//!   terminations, jobs not planned for now move, one by one in queue order, to their earliest hole. With one
//!   pass per instant: compression first, then arrivals.
//! - Conservative-replan plans all jobs anew at each pass.
//!
//! # One instant
//! With [`Pass::Batch`] a driver tells all facts of an instant, completions first, and calls
//! [`LocalQueue::decide`] once. With [`Pass::PerEvent`] it calls `decide` after every fact: submissions in
//! queue order, then terminations in start order. A running job whose estimated end is now then counts as
//! free: a job chosen on its processors is handed out by the `decide` of this instant at which they are free,
//! and jobs chosen later do not overtake it. If no termination comes (the job runs past its estimate), the
//! choice is withdrawn at the next instant.

mod asked;
pub(crate) mod backlog;
pub(crate) mod chunked;
mod conservative;
mod decider;
mod estimates;
mod fill_index;
pub mod grid;
mod in_order;
mod machine;
mod nodes;
mod ordered;
pub mod plan;
mod profile;
mod replan;
pub mod replay;
mod rule;
pub(crate) mod turn;

pub use decider::{CALLS, Decision, News, QueueDecider};
pub use estimates::{Estimates, Estimator, Portion};
pub use grid::LocalGrid;
pub use nodes::Occupation;
pub use plan::{Plan, PlannedJob};
pub use replay::{Watch, replay, replay_seen, replay_watched};

use asked::Asked;
use conservative::Conservative;
use in_order::{InOrder, Overtaking};
use machine::Machine;
use nodes::{NodeQueue, Passing};
use replan::Replan;
use rule::QueueRule;
use turn::{Place, Waiting};

use std::sync::Arc;

use crate::capacity::Capacity;
use crate::event::FallbackCause;
use crate::job::{JobId, JobSpec};
use crate::prediction::Prediction;
use crate::strategy::{LocalScheduler, Pass, SharingEstimator};
use crate::time::{Span, Time};

/// What starts by a scheduler. On shared nodes there are FCFS, LIST and EASY; what else is asked for is EASY there.
fn rule_of(scheduler: LocalScheduler, capacity: &Capacity) -> Box<dyn QueueRule> {
    let processors = match capacity {
        Capacity::Processors(processors) => *processors,
        Capacity::Shared(nodes) => {
            let passing = match scheduler {
                LocalScheduler::Fcfs => Passing::Never,
                LocalScheduler::List => Passing::WhateverFits,
                _ => Passing::WithoutDelay,
            };
            return Box::new(NodeQueue::new(passing, Arc::clone(nodes)));
        }
    };
    let in_order = |overtaking| Box::new(InOrder::new(overtaking));
    match scheduler {
        LocalScheduler::Fcfs => in_order(Overtaking::Never),
        LocalScheduler::List => in_order(Overtaking::WhateverFits),
        LocalScheduler::Easy | LocalScheduler::External => in_order(Overtaking::FirstFit),
        LocalScheduler::EasyBestFit => in_order(Overtaking::BestFit),
        LocalScheduler::EasyShortest => in_order(Overtaking::Shortest),
        LocalScheduler::EasySmallest => in_order(Overtaking::Smallest),
        LocalScheduler::Conservative => Box::new(Conservative::new(processors)),
        LocalScheduler::ConservativeReplan => Box::new(Replan::new()),
    }
}

/// The waiting and running jobs of one site under its local scheduler.
#[derive(Clone, Debug)]
pub struct LocalQueue {
    machine: Machine,
    /// The width of the widest job that fits.
    widest: u32,
    rule: Box<dyn QueueRule>,
    /// None if users are believed.
    estimates: Option<Box<Estimates>>,
    /// Of the latest fact or decision.
    now: Option<Time>,
}

impl LocalQueue {
    /// An idle site. Of a scheduler outside of this code nothing is known: it is taken for EASY, as in plans by others.
    pub fn new(scheduler: LocalScheduler, pass: Pass, capacity: impl Into<Capacity>) -> Self {
        let capacity = capacity.into();
        LocalQueue {
            machine: Machine::new(pass, capacity.processors()),
            widest: capacity.widest(),
            rule: rule_of(scheduler, &capacity),
            estimates: None,
            now: None,
        }
    }

    /// The same, with run times that somebody predicts in place of the estimates of users. Nothing was submitted yet.
    #[must_use]
    pub fn with_estimator(self, estimator: Box<dyn Estimator>) -> Self {
        LocalQueue { estimates: Some(Box::new(Estimates::by(estimator))), ..self }
    }

    /// The same, with plans by another estimator than the model, where jobs share nodes. What starts stays what it is.
    #[must_use]
    pub fn believing(mut self, estimator: SharingEstimator) -> Self {
        self.rule.believe(estimator);
        self
    }

    /// What jobs and local users have of the nodes at an instant, not before the latest fact or decision, by estimates; none where jobs
    /// share none. Costs O(nodes).
    pub fn occupation(&self, now: Time) -> Option<Occupation> {
        self.rule.occupation(now)
    }

    /// The nodes of a job that runs, ascending; none where jobs share none.
    pub fn nodes(&self, job: JobId) -> Option<&[u32]> {
        self.rule.nodes(job)
    }

    /// Whether a job, or a part of one, could start now beside what runs, whatever waits.
    ///
    /// # Panics
    /// If time runs backwards.
    pub fn takes(&mut self, now: Time, job: &JobSpec) -> bool {
        self.advance(now);
        job.processors <= self.free() && self.rule.takes(now, job)
    }

    /// Of each node that takes a task of a job now, in the order in which tasks are placed: the least effective power (Lérida 3.2) of it and those
    /// before it, with that task on it. So the power of the slowest node of so many tasks. None where jobs share no nodes. Costs as much as a clone.
    pub fn powers(&self, now: Time, job: &JobSpec) -> Option<Vec<f64>> {
        self.rule.powers(now, job)
    }

    /// An idle site whose starts somebody else decides, once per instant. Its clones decide by the fallback.
    pub fn external(decider: Arc<dyn QueueDecider>, processors: u32) -> Self {
        let fallback = rule_of(decider.fallback(), &processors.into());
        let rule = Box::new(Asked::new(decider, fallback));
        LocalQueue {
            machine: Machine::new(Pass::Batch, processors),
            widest: processors,
            rule,
            estimates: None,
            now: None,
        }
    }

    /// Why whoever decides elsewhere is not asked any more. None if nobody does, or after the first time.
    pub fn failure(&mut self) -> Option<FallbackCause> {
        self.rule.failure()
    }

    /// Tells that a job joined the queue.
    ///
    /// # Panics
    /// If the job is wider than the site or has no width, or if time runs backwards.
    pub fn submit(&mut self, now: Time, job: JobSpec) {
        self.submit_in_turn(now, job, 0);
    }

    /// Tells that a job joined the queue with a turn: jobs of lower turns come before it in queue order, also those that
    /// join later; of one turn it is the usual order. For rows that somebody has planned, and for policies that pick jobs.
    ///
    /// # Panics
    /// As for [`LocalQueue::submit`].
    pub fn submit_in_turn(&mut self, now: Time, job: JobSpec, turn: u64) {
        self.advance(now);
        assert!(job.processors > 0, "job {} has no width", job.id);
        assert!(job.processors <= self.widest, "job {} is wider than its site", job.id);
        let job = self.entering(now, job);
        self.rule.insert(Waiting { turn, job });
    }

    /// Gives a job another turn. False if it does not wait, or was chosen to start at this instant. Conservative
    /// backfilling plans all jobs anew for it. Costs O(waiting).
    ///
    /// # Panics
    /// If time runs backwards.
    pub fn set_turn(&mut self, now: Time, job: JobId, turn: u64) -> bool {
        self.advance(now);
        let Some(waiting) = self.rule.take(job) else { return false };
        self.rule.insert(Waiting { turn, ..waiting });
        true
    }

    /// Tells of a job that executes here already, since a time in the past: for whoever looks at a site from elsewhere.
    ///
    /// # Panics
    /// If it does not fit beside what runs, or if time runs backwards.
    pub fn take_over(&mut self, now: Time, job: JobSpec, since: Time) {
        self.advance(now);
        let job = self.entering(now, job);
        if let Some(estimates) = &mut self.estimates {
            estimates.start(since, &job);
        }
        self.has_taken_over(now, &job, since);
    }

    fn has_taken_over(&mut self, now: Time, job: &JobSpec, since: Time) {
        self.machine.take_over(since, job);
        self.withdraw_overtaken();
        self.rule.disturbed();
        self.rule.took_over(now, job, since);
    }

    /// Tells of a part of a job that has processors here from now on, and begins then or [later](LocalQueue::begins). Its run time is what the
    /// portion says, if anybody predicts here.
    ///
    /// # Panics
    /// As [`LocalQueue::take_over`].
    pub fn hold(&mut self, now: Time, part: JobSpec, portion: Portion) {
        self.advance(now);
        let known = self.estimates.as_mut().map_or(part, |estimates| estimates.hold(now, part, portion));
        self.has_taken_over(now, &known, now);
    }

    /// Tells that a part begins that has had processors here since a time in the past.
    ///
    /// # Panics
    /// If time runs backwards.
    pub fn begins(&mut self, now: Time, part: &JobSpec, since: Time) {
        let predicted = self.estimates.as_mut().and_then(|estimates| estimates.begins(now, part.id));
        if since < now {
            self.expect(now, part.id, now, predicted.unwrap_or(part.requested));
        }
    }

    /// Tells that a job that runs, or has processors, does not go on: they are free. Nothing is learned from that.
    ///
    /// # Panics
    /// As [`LocalQueue::complete`].
    pub fn stop(&mut self, now: Time, job: JobId) {
        self.advance(now);
        let end = self.machine.complete(job);
        self.rule.completed(now, end);
        if let Some(estimates) = &mut self.estimates {
            estimates.stop(job);
        }
    }

    /// Takes a waiting job out of the queue, also one that was promised processors which are not free. `None` if it does not
    /// wait. Conservative backfilling plans all jobs anew for it. Costs O(waiting).
    pub fn withdraw(&mut self, job: JobId) -> Option<JobSpec> {
        let known = match self.rule.take(job) {
            Some(waiting) => waiting.job,
            None => {
                let promised = self.machine.withdraw_promise(job)?;
                self.rule.disturbed();
                promised.job
            }
        };
        Some(self.estimates.as_mut().and_then(|estimates| estimates.leave(job)).unwrap_or(known))
    }

    /// Tells that a running job, or a part of one, ended: its processors are free. Returns its run time, if somebody predicts and learned from it: since its
    /// start, or where jobs share nodes what it would have taken on idle nodes of full power, by the model (Lérida, *M-CISNE*, 3.9).
    ///
    /// # Panics
    /// If the job does not run here, or if time runs backwards.
    pub fn complete(&mut self, now: Time, job: JobId) -> Option<Span> {
        self.advance(now);
        let work = self.estimates.as_ref().and_then(|_| self.rule.work(now, job));
        let end = self.machine.complete(job);
        self.rule.completed(now, end);
        self.estimates.as_mut()?.complete_work(now, job, work).map(|(_, run_time)| run_time)
    }

    /// Appends the jobs that start now, in the order of the decisions. They run from now.
    ///
    /// # Panics
    /// If time runs backwards.
    pub fn decide(&mut self, now: Time, starts: &mut Vec<JobSpec>) {
        self.advance(now);
        if let Some(estimates) = self.estimates.as_mut().filter(|estimates| estimates.is_stirred()) {
            match self.rule.past(now) {
                Some(past) => {
                    estimates.correct_work(&past, |job, run_time| self.rule.expect(now, job, run_time));
                }
                None if estimates.correct(now, |job, end| self.machine.set_end(job, end)) => {
                    // Somebody may have been promised the processors of one that was to end now, by a pass of this instant.
                    self.withdraw_overtaken();
                    self.rule.disturbed();
                }
                None => {}
            }
        }
        for job in self.machine.withdraw_broken(now) {
            self.rule.put_back(job);
        }
        self.rule.choose(now, &mut self.machine);
        let before = starts.len();
        self.machine.start_promised(now, starts);
        if let Some(estimates) = &mut self.estimates {
            starts[before..].iter_mut().for_each(|job| *job = estimates.start(now, job));
        }
    }

    /// Tells that these jobs have started, in this order, whatever this queue would have decided: for whoever looks at a site from elsewhere.
    /// Where jobs share nodes it matters, as what started before says where the next is placed. False if some do not wait, or do not fit by what
    /// is known, and on processors of one job each: then the queue is to be made anew.
    ///
    /// # Panics
    /// If time runs backwards.
    pub fn start_as_told(&mut self, now: Time, jobs: &[JobId]) -> bool {
        self.advance(now);
        let all = jobs.iter().all(|&job| self.rule.start_as_told(now, job, &mut self.machine));
        let mut starts = Vec::new();
        self.machine.start_promised(now, &mut starts);
        all && starts.len() == jobs.len()
    }

    /// A running job is believed to take so long in all, from its start, whatever was thought of it before; where jobs share nodes, on idle
    /// nodes of full power. Nothing if it does not run here. For whoever looks at a site from elsewhere and predicts by itself.
    ///
    /// # Panics
    /// If time runs backwards.
    pub fn expect(&mut self, now: Time, job: JobId, since: Time, run_time: Span) {
        self.advance(now);
        if self.machine.runs(job) {
            self.machine.set_end(job, since.saturating_add(run_time));
            // Somebody may have been promised its processors, as it was estimated to end now.
            self.withdraw_overtaken();
            self.rule.disturbed();
            self.rule.expect(now, job, run_time);
        }
    }

    /// Jobs that have run past their estimates by an instant, not before the latest fact or decision, where jobs share nodes: each with what
    /// it has done, as the time that this takes on idle nodes of full power. None elsewhere. Costs as much as a clone.
    pub fn past(&self, now: Time) -> Option<Vec<(JobId, Span)>> {
        self.rule.overdue()?;
        self.rule.clone().past(now)
    }

    /// What was predicted since this was asked last, in that order; nothing without an estimator.
    pub fn predictions(&mut self) -> impl Iterator<Item = Prediction> + '_ {
        self.estimates.iter_mut().flat_map(|estimates| estimates.news())
    }

    /// Has the estimator learn from a job that ended before this queue was there. Nothing without one.
    pub fn recall(&mut self, now: Time, job: &JobSpec, run_time: Span) {
        if let Some(estimates) = &mut self.estimates {
            estimates.learn(now, job, run_time);
        }
    }

    /// Whether somebody predicts run times.
    pub fn predicts(&self) -> bool {
        self.estimates.is_some()
    }

    /// When [`LocalQueue::decide`] must be called even if nothing happens: the earliest planned start, if a processor is free. Only
    /// conservative backfilling with compression has one, and whoever decides for a queue and asks for it.
    ///
    /// With no processor free nothing could start, and who executes past its estimate would make it ask again and again.
    pub fn wake_at(&self) -> Option<Time> {
        if self.free() == 0 {
            return None;
        }
        self.rule.wake_at(self.now.and_then(|now| self.machine.held_up_until(now)))
    }

    /// The planned start of a waiting job. `None` if it does not wait, came after the latest decision, or the
    /// scheduler plans no starts. Costs O(waiting).
    pub fn planned_start(&self, job: JobId) -> Option<Time> {
        self.rule.planned_start(job)
    }

    /// The job at the head of an EASY queue with its *shadow time*, until which others may not delay it by what is estimated at the
    /// latest fact or decision; that instant, if it fits. `None` if nothing waits, or under another scheduler.
    pub fn reservation(&self) -> Option<(JobId, Time)> {
        let (head, now) = (self.rule.head()?, self.now?);
        let fits = head.processors <= self.machine.free_for_planning(now);
        Some((head.id, if fits { now } else { self.machine.reservation(now, head.processors).shadow }))
    }

    /// Jobs submitted and not started.
    pub fn waiting(&self) -> usize {
        self.rule.waiting() + self.machine.promises()
    }

    /// Processors on which nothing runs.
    pub fn free(&self) -> u32 {
        self.machine.free()
    }

    /// Jobs started and not ended.
    pub fn running(&self) -> usize {
        self.machine.running()
    }

    /// When decisions are made.
    pub fn pass(&self) -> Pass {
        self.machine.pass()
    }

    /// Walks everything. For after a decision: a plan may contradict the machine between a fact and the next
    /// pass.
    ///
    /// # Panics
    /// If a structure contradicts another.
    pub fn check_invariants(&self) {
        self.machine.check_invariants();
        self.rule.check_invariants(self.now, &self.machine);
    }

    fn withdraw_overtaken(&mut self) {
        for overtaken in self.machine.withdraw_overtaken() {
            self.rule.put_back(overtaken);
        }
    }

    /// The last place that is taken.
    fn last_place(&self) -> Option<Place> {
        self.rule.last_place().max(self.machine.last_promised_place())
    }

    /// A job as the queue is to know it.
    fn entering(&mut self, now: Time, job: JobSpec) -> JobSpec {
        match &mut self.estimates {
            Some(estimates) => estimates.enter(now, job),
            None => job,
        }
    }

    fn advance(&mut self, now: Time) {
        assert!(self.now.is_none_or(|before| before <= now), "time does not run backwards");
        self.now = Some(now);
    }
}
