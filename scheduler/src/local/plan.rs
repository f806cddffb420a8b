//! What a queue would do from now on if nothing came and every job ran as long as it is estimated to.
//!
//! A plan is what [`LocalQueue::decide`] decides when it is played on: at each estimated end the job ends, and the queue
//! decides. A job past its estimated end is planned as ending now. The reservations of conservative backfilling are no
//! plan: one job that moves makes room for another at the next termination.
//!
//! A job that joins the queue behind all others changes nothing of what they do before it starts. So what each decision
//! left over tells when it would start ([`Plan::with`]), and nothing is planned again.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::LocalQueue;
use super::backlog::Limits;
use super::machine::End;
use super::turn::{Place, Waiting};
use crate::job::{JobId, JobSpec};
use crate::strategy::{Overrun, Pass};
use crate::time::{Span, Time, earlier};

/// When a job would start and end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedJob {
    /// The waiting job that is planned.
    pub job: JobId,
    /// Its planned start, now or later.
    pub start: Time,
    /// Its planned end: the start and the requested time, or what sharing nodes makes of that.
    pub end: Time,
    /// On how many of its nodes local users are then; none where jobs share no nodes.
    pub local_nodes: u32,
}

impl PlannedJob {
    fn at(start: Time, job: &JobSpec) -> PlannedJob {
        PlannedJob { job: job.id, start, end: start.saturating_add(job.requested), local_nodes: 0 }
    }
}

/// The planned starts of everything that waits at a site.
#[derive(Clone, Debug)]
pub struct Plan {
    now: Time,
    jobs: Vec<PlannedJob>,
    /// When the last of the running jobs would end.
    running_until: Option<Time>,
    /// When a job ends that is past its estimate.
    overdue: Time,
    /// When a running job would end, or a waiting one start, first of all.
    next: Time,
    /// The queue at the instant of the plan, before it decides.
    queue: LocalQueue,
    /// The last waiting job in queue order.
    last: Option<Place>,
    /// What each decision left to a job behind all that wait, in the order of time. Empty where a job's place in the queue
    /// does not say when it is looked at: best fit looks at the largest jobs first, conservative backfilling at what it
    /// reserved.
    left: Vec<Limits>,
}

impl Plan {
    /// The instant that it was made for.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Makes it the plan of a later instant, for a site at which nothing happened since. False if time alone would have
    /// changed something, by estimates: then it must be made anew. No rule starts later what it did not start before,
    /// unless processors come free.
    pub fn move_to(&mut self, now: Time) -> bool {
        if now == self.now {
            return true;
        }
        if now < self.now || now >= self.next {
            return false;
        }
        self.overdue += now.since(self.now);
        self.now = now;
        if let Some(first) = self.left.first_mut() {
            first.now = now;
        }
        true
    }

    /// Every waiting job, in the order of planned starts.
    pub fn jobs(&self) -> &[PlannedJob] {
        &self.jobs
    }

    /// The planned start of a waiting job; none if it does not wait. Costs O(waiting).
    pub fn of(&self, job: JobId) -> Option<PlannedJob> {
        self.jobs.iter().find(|planned| planned.job == job).copied()
    }

    /// When everything that waits would have ended; none if nothing waits.
    pub fn end(&self) -> Option<Time> {
        self.jobs.iter().map(|planned| planned.end).max()
    }

    /// When everything that waits or runs would have ended; none if there is nothing.
    pub fn idle_from(&self) -> Option<Time> {
        self.end().max(self.running_until)
    }

    /// When a job would start that joins the queue now, without a turn. Costs O(waiting) if it comes behind all others in queue order
    /// under FCFS, LIST and EASY; otherwise as much as a plan.
    ///
    /// # Panics
    /// If the job is wider than the site or has no width.
    pub fn with(&self, job: &JobSpec) -> PlannedJob {
        self.with_turn(job, 0)
    }

    /// The same with a turn.
    ///
    /// # Panics
    /// As for [`Plan::with`].
    pub fn with_turn(&self, job: &JobSpec, turn: u64) -> PlannedJob {
        assert!(job.processors > 0, "job {} has no width", job.id);
        assert!(job.processors <= self.queue.widest, "job {} is wider than its site", job.id);
        let waiting = Waiting { turn, job: *job };
        let is_last = self.last.is_none_or(|last| last < waiting.place());
        let first = self.left.iter().find(|left| is_last && left.admits(waiting.shape()));
        first.map_or_else(|| self.played_with(waiting), |left| PlannedJob::at(left.now, job))
    }

    /// Plays the queue on until it is known when the job starts and ends.
    fn played_with(&self, job: Waiting) -> PlannedJob {
        let mut queue = self.queue.clone();
        queue.submit_in_turn(self.now, job.job, job.turn);
        let (ends, ends_move) = queue.ends_of_running(self.now, self.overdue);
        let mut planned = None;
        play(
            queue,
            self.now,
            ends,
            |job| job.requested,
            |queue, step| {
                if step.started.iter().any(|other| other.id == job.id) {
                    let local_nodes = queue.rule.local_nodes(job.id);
                    planned = Some(PlannedJob { local_nodes, ..PlannedJob::at(step.at, &job) });
                    return ends_move;
                }
                match planned.as_mut().filter(|_| step.ended.contains(&job.id)) {
                    Some(planned) => planned.end = step.at,
                    None => return true,
                }
                false
            },
        );
        // Local users who stay for ever may leave a job too little memory.
        let never = PlannedJob { start: Time::MAX, ..PlannedJob::at(Time::MAX, &job) };
        planned.or(ends_move.then_some(never)).expect("every job starts once all others have ended")
    }
}

impl LocalQueue {
    /// What the queue would do from `now` on by estimates: the planned start of every waiting job.
    ///
    /// The queue itself is left as it is. Decisions are those of [`Pass::Batch`]; with exact estimates the order of an
    /// instant changes no start. Where somebody predicts run times, jobs are planned by what was predicted so far: a plan corrects nothing
    /// and learns nothing.
    ///
    /// # Panics
    /// If time runs backwards.
    pub fn plan(&self, now: Time) -> Plan {
        self.plan_with(now, Overrun::Now)
    }

    /// When a waiting job would start if nothing came, while the queue decides by what it believes and jobs end when somebody else says:
    /// those that run when `ends` does, none of them before now, those that start after `run_time`. Algorithm 3.2 of Lérida's thesis on a
    /// dedicated machine: jobs that come later are not played, though under backfilling they may overtake. `None` if the job does not
    /// wait. Costs as much as a plan until the job starts.
    ///
    /// # Panics
    /// If time runs backwards.
    pub fn start_if(
        &self,
        now: Time,
        job: JobId,
        ends: impl Fn(JobId) -> Time,
        run_time: impl Fn(&JobSpec) -> Span,
    ) -> Option<Time> {
        let mut queue = self.without_estimator();
        queue.machine.set_pass(Pass::Batch);
        queue.advance(now);
        let running =
            self.machine.running_ends().map(|end| Reverse((ends(end.job).max(now), end.job))).collect();
        let mut start = None;
        play(queue, now, Ends::Fixed(running), run_time, |_, step| {
            start = step.started.iter().any(|other| other.id == job).then_some(step.at);
            start.is_none()
        });
        start
    }

    /// The same, with the end of a job past its estimate as told.
    ///
    /// # Panics
    /// If time runs backwards.
    pub fn plan_with(&self, now: Time, overrun: Overrun) -> Plan {
        let overdue = match overrun {
            Overrun::Now => now,
            Overrun::Next => now.saturating_add(Span::from_micros(1)),
        };
        let mut queue = self.without_estimator();
        queue.machine.set_pass(Pass::Batch);
        queue.advance(now);
        let running_until = self.machine.running_ends().map(|end| end.at).max();
        let running_until = running_until.map(|end| if end <= now { overdue } else { end });
        queue.rule.play(now);
        let past = queue.rule.overdue();
        let ends_move = past.is_some();
        if overdue == now {
            let by_machine = || self.machine.running_ends().filter(|end| end.at <= now).map(|end| end.job);
            for job in past.unwrap_or_else(|| by_machine().collect()) {
                queue.complete(now, job);
            }
        }
        let last = queue.last_place();
        // Where ends move a plan is one of its instant.
        let (running_until, next) = match ends_move {
            true => (self.machine.running_ends().next().map(|_| overdue), now),
            false => {
                (running_until, self.machine.running_ends().map(|end| end.at).min().unwrap_or(Time::MAX))
            }
        };
        let mut plan = Plan {
            now,
            jobs: Vec::new(),
            running_until,
            overdue,
            next,
            queue: queue.clone(),
            last,
            left: Vec::new(),
        };
        let (ends, _) = queue.ends_of_running(now, overdue);
        play(
            queue,
            now,
            ends,
            |job| job.requested,
            |queue, Step { at, started, ended }| {
                for job in started {
                    let local_nodes = queue.rule.local_nodes(job.id);
                    plan.jobs.push(PlannedJob { local_nodes, ..PlannedJob::at(at, job) });
                }
                for job in ended.iter().filter(|_| ends_move) {
                    match plan.jobs.iter_mut().find(|planned| planned.job == *job) {
                        Some(planned) => planned.end = at,
                        None => plan.running_until = plan.running_until.max(Some(at)),
                    }
                }
                plan.left.extend(queue.rule.left(at, queue.machine.free()));
                true
            },
        );
        if let Some(first) = plan.jobs.first() {
            plan.next = plan.next.min(first.start);
        }
        plan
    }
}

/// When jobs end in a queue that is played on.
enum Ends {
    /// When they are believed to, whatever else starts; the earliest first.
    Fixed(BinaryHeap<Reverse<(Time, JobId)>>),
    /// When the rule says: they move. Those past their estimates end at that time.
    Moving(Time, Vec<JobId>),
}

impl Ends {
    fn next(&self, queue: &LocalQueue) -> Option<Time> {
        match self {
            Ends::Fixed(ends) => ends.peek().map(|&Reverse((end, _))| end),
            Ends::Moving(overdue, past) => {
                earlier(queue.rule.next_end(), Some(*overdue).filter(|_| !past.is_empty()))
            }
        }
    }

    fn pop(&mut self, queue: &mut LocalQueue, at: Time) -> Option<JobId> {
        match self {
            Ends::Fixed(ends) => {
                ends.peek().filter(|Reverse((end, _))| *end <= at)?;
                ends.pop().map(|Reverse((_, job))| job)
            }
            Ends::Moving(overdue, past) => {
                let past = (*overdue <= at).then(|| past.pop()).flatten();
                past.or_else(|| queue.rule.pop_ended(at))
            }
        }
    }
}

/// One instant of a queue that is played on.
struct Step<'a> {
    at: Time,
    /// What started by the decision of it.
    started: &'a [JobSpec],
    /// What ended before that decision.
    ended: &'a [JobId],
}

impl LocalQueue {
    /// A copy that knows jobs by what was predicted of them, and asks nobody again.
    fn without_estimator(&self) -> LocalQueue {
        LocalQueue {
            machine: self.machine.clone(),
            widest: self.widest,
            rule: self.rule.clone(),
            estimates: None,
            now: self.now,
        }
    }

    /// When running jobs end by estimates, those past theirs when told; and whether that moves.
    fn ends_of_running(&self, now: Time, overdue: Time) -> (Ends, bool) {
        let end_of = |end: &End| if end.at <= now { overdue } else { end.at };
        match self.rule.overdue() {
            Some(past) => (Ends::Moving(overdue, past), true),
            None => {
                let ends = self.machine.running_ends().map(|end| Reverse((end_of(end), end.job)));
                (Ends::Fixed(ends.collect()), false)
            }
        }
    }
}

/// Plays a queue on from an instant, until everything has ended or `decided` says that it is enough. It is told of each decision.
/// Running jobs end as given, others so long after their starts as `run_time` says, unless ends move.
fn play(
    mut queue: LocalQueue,
    now: Time,
    mut ends: Ends,
    run_time: impl Fn(&JobSpec) -> Span,
    mut decided: impl FnMut(&LocalQueue, Step<'_>) -> bool,
) {
    let (mut at, mut starts, mut ended) = (now, Vec::new(), Vec::new());
    loop {
        while let Some(job) = ends.pop(&mut queue, at) {
            queue.complete(at, job);
            ended.push(job);
        }
        queue.decide(at, &mut starts);
        if let Ends::Fixed(ends) = &mut ends {
            ends.extend(starts.iter().map(|job| Reverse((at.saturating_add(run_time(job)), job.id))));
        }
        if !decided(&queue, Step { at, started: &starts, ended: &ended }) {
            return;
        }
        starts.clear();
        ended.clear();
        let Some(next) = earlier(ends.next(&queue), queue.wake_at()) else { return };
        at = next;
    }
}
