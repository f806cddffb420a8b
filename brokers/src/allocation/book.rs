//! What is known of one site: the jobs that it has, what they ask for, and how it would go on.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};

use scheduler::event::FallbackCause;
use scheduler::local::{LocalQueue, Occupation, Plan, PlannedJob, Portion};
use scheduler::strategy::{Count, Overrun, SharingEstimator};
use scheduler::{
    Application, COMPUTES, Capacity, Holds, JobId, JobSpec, LocalScheduler, Pass, Prediction, Span, Time,
};

use super::follow::Executed;
use crate::genetic::Occupied;
use crate::metascheduler::decisor::{COMPARED, Decisor};
use crate::metascheduler::limit::keep;

/// What some jobs ask for together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// How many they are.
    pub jobs: u64,
    /// Their processors.
    pub processors: u64,
    /// Their processors times what they requested, in processor-microseconds.
    pub work: i128,
}

impl Load {
    fn add(&mut self, job: &JobSpec) {
        self.jobs += 1;
        self.processors += u64::from(job.processors);
        self.work += work_of(job);
    }

    fn subtract(&mut self, job: &JobSpec) {
        self.jobs -= 1;
        self.processors -= u64::from(job.processors);
        self.work -= work_of(job);
    }
}

fn work_of(job: &JobSpec) -> i128 {
    i128::from(job.processors) * i128::from(job.requested.as_micros())
}

/// Waits of some jobs, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Waits {
    pub(super) jobs: i128,
    pub(super) sum: i128,
    /// Each times the processors of its job.
    pub(super) by_size: i128,
}

impl Waits {
    pub(super) fn add(&mut self, job: &JobSpec, start: Time) {
        self.jobs += 1;
        self.sum += wait_of(job, start);
        self.by_size += wait_of(job, start) * i128::from(job.processors);
    }

    fn subtract(&mut self, job: &JobSpec, start: Time) {
        self.jobs -= 1;
        self.sum -= wait_of(job, start);
        self.by_size -= wait_of(job, start) * i128::from(job.processors);
    }
}

fn wait_of(job: &JobSpec, start: Time) -> i128 {
    i128::from(start.as_micros()) - i128::from(job.submit.as_micros())
}

/// A job of the site.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    pub(super) job: JobSpec,
    /// Its turn in the queue.
    turn: u64,
    /// When it began to execute, if it does.
    pub(super) since: Option<Time>,
}

/// A job on its way to the site, and how many were sent before it.
#[derive(Clone, Copy, Debug)]
struct Expected {
    job: JobSpec,
    order: u64,
}

/// What a broker that decides is shown of a site.
#[derive(Clone, Copy, Debug)]
pub struct Site<'a> {
    /// Its place among all, which ascend by size.
    pub place: usize,
    /// What is known of it.
    pub book: &'a Book,
    /// Whether the job may go there, if the site is admissible: of those that were not asked for it nothing is known.
    pub is_candidate: bool,
    /// When that was so; none if nothing was ever heard of the site.
    pub as_of: Option<Time>,
}

/// The jobs of one site, as far as the keeper of the book was told. Time never goes back in it.
#[derive(Clone, Debug)]
pub struct Book {
    all: Load,
    waiting: Load,
    /// Jobs that are on their way to the site.
    expected: BTreeMap<JobId, Expected>,
    /// Jobs that were ever sent.
    sent: u64,
    /// The turn of the next job that joins, where jobs are queued in the order in which they join.
    turns: Option<u64>,
    capacity: Capacity,
    holds: Holds,
    scheduler: LocalScheduler,
    pass: Pass,
    /// A queue that is told what the site's is told; none if nobody plans by it.
    queue: Option<LocalQueue>,
    /// What the queue is planned on by, where jobs share nodes.
    estimator: SharingEstimator,
    /// Which estimators were right of late, if that is asked.
    decisor: Option<Box<Decisor>>,
    held: BTreeMap<JobId, Held>,
    /// Of all jobs that ever started.
    ever: Waits,
    /// Of those that execute.
    running: Waits,
    last_end: Option<Time>,
    /// What it has executed lately.
    executed: Executed,
    /// Arrivals, starts and ends that were told.
    changes: u64,
    /// Whether something happened since the site last decided.
    is_undecided: bool,
    /// How long the last jobs that ended executed, at most [`RATE_WINDOW`](crate::metascheduler::limit::RATE_WINDOW).
    executions: VecDeque<Span>,
    now: Time,
    /// Of what it has and what is on its way, while nothing happens.
    planned: Option<(Overrun, Plan)>,
}

impl Book {
    /// An idle site. Without a queue nothing can be planned.
    pub fn new(
        scheduler: LocalScheduler,
        pass: Pass,
        capacity: impl Into<Capacity>,
        has_queue: bool,
    ) -> Book {
        let capacity = capacity.into();
        Book {
            all: Load::default(),
            waiting: Load::default(),
            expected: BTreeMap::new(),
            sent: 0,
            turns: None,
            scheduler,
            pass,
            queue: has_queue.then(|| LocalQueue::new(scheduler, pass, capacity.clone())),
            estimator: SharingEstimator::default(),
            holds: Holds::new(&capacity),
            decisor: None,
            capacity,
            held: BTreeMap::new(),
            ever: Waits::default(),
            running: Waits::default(),
            last_end: None,
            executed: Executed::default(),
            changes: 0,
            is_undecided: false,
            executions: VecDeque::new(),
            now: Time::from_micros(i64::MIN),
            planned: None,
        }
    }

    /// The same with this queue, which is idle: that of the site itself, if whoever keeps the book is the site.
    pub fn with_queue(self, queue: LocalQueue) -> Book {
        Book { queue: Some(queue), ..self }
    }

    /// The same, planned on by this estimator where jobs share nodes.
    pub fn believing(self, estimator: SharingEstimator) -> Book {
        let compares = estimator == SharingEstimator::Decisor && self.is_shared();
        let decisor = compares.then(Box::default);
        let queue = self.queue.map(|queue| queue.believing(estimator));
        Book { queue, estimator, decisor, ..self }
    }

    /// Who is believed of waits there and who of executions, where estimators are compared.
    pub fn believed(&self) -> Option<(SharingEstimator, SharingEstimator)> {
        self.decisor.as_ref().map(|decisor| decisor.best())
    }

    /// What is known now, planned on by this estimator.
    pub fn planned_by(&self, estimator: SharingEstimator) -> Book {
        Book { planned: None, ..self.clone() }.believing(estimator)
    }

    /// What each of the estimators that are compared says of a job that waits there. None where none are, or it would never start.
    fn compared(&self, job: JobId) -> Option<[PlannedJob; COMPARED.len()]> {
        self.decisor.as_ref()?;
        let queue = self.queue.as_ref()?;
        let said = COMPARED
            .map(|estimator| queue.clone().believing(estimator).plan_with(self.now, Overrun::Now).of(job));
        let said: Vec<PlannedJob> = said.into_iter().collect::<Option<_>>()?;
        said.try_into().ok()
    }

    /// The same of a site that queues jobs in the order in which they join, whenever they were submitted.
    pub fn in_order_of_arrival(self) -> Book {
        Book { turns: Some(0), ..self }
    }

    /// Why whoever decides for the queue is not asked any more; see [`LocalQueue::failure`].
    pub fn failure(&mut self) -> Option<FallbackCause> {
        self.queue.as_mut().and_then(LocalQueue::failure)
    }

    /// What its queue predicted since this was asked last; see [`LocalQueue::predictions`].
    pub fn predictions(&mut self) -> impl Iterator<Item = Prediction> + '_ {
        self.queue.iter_mut().flat_map(LocalQueue::predictions)
    }

    /// Processors of the site.
    pub fn processors(&self) -> u32 {
        self.capacity.processors()
    }

    /// The width of the widest job that fits the site.
    pub fn widest(&self) -> u32 {
        self.capacity.widest()
    }

    /// Whether a job would ever start there: the site is wide enough, and has the memory beside its local users.
    pub fn can_hold(&self, job: &JobSpec) -> bool {
        self.holds.holds(job)
    }

    /// What its jobs ask for, those included that are on their way.
    pub fn load(&self, count: Count) -> Load {
        match count {
            Count::All => self.all,
            Count::Waiting => self.waiting,
        }
    }

    /// Jobs that wait there or are on their way.
    pub fn waiting(&self) -> u64 {
        self.waiting.jobs
    }

    /// What the jobs ask for that are on their way to it.
    pub fn pending(&self) -> Load {
        let mut pending = Load::default();
        self.expected().for_each(|job| pending.add(job));
        pending
    }

    /// Jobs on their way to it.
    pub fn expected(&self) -> impl Iterator<Item = &JobSpec> {
        self.expected.values().map(|expected| &expected.job)
    }

    /// Processors that no job has.
    pub fn free(&self) -> u32 {
        let busy = self.all.processors - self.waiting.processors;
        self.processors() - u32::try_from(busy).unwrap_or(u32::MAX).min(self.processors())
    }

    /// How fast what is free is for tasks of a job that starts now, in the order in which the site takes it: the power of each node that takes one,
    /// or of a slower one before it; 1 of each processor. No more than the job has tasks.
    pub fn room(&self, now: Time, job: &JobSpec) -> Vec<f64> {
        let queue = self.queue.as_ref().filter(|_| self.is_shared());
        let nodes = queue.and_then(|queue| queue.powers(self.now.max(now), job));
        let mut room = nodes.unwrap_or_else(|| vec![1.0; self.free().min(job.processors) as usize]);
        room.truncate(job.processors as usize);
        room
    }

    /// What the link of the site to all others carries, in Mbit/s: infinite where nobody says, on processors.
    pub fn uplink(&self) -> f64 {
        match &self.capacity {
            Capacity::Shared(nodes) => nodes.platform.uplinks().first().copied().unwrap_or(f64::INFINITY),
            Capacity::Processors(_) => f64::INFINITY,
        }
    }

    /// Of what the run time of a job is made up, by its program. On processors jobs only compute.
    pub fn program(&self, job: &JobSpec) -> Application {
        match &self.capacity {
            Capacity::Shared(nodes) => nodes.program(job),
            Capacity::Processors(_) => COMPUTES,
        }
    }

    /// Whether what is free there stays so until something happens: nothing waits, or the site has decided since something happened and
    /// nothing is on its way.
    pub fn is_settled(&self) -> bool {
        self.waiting.jobs == 0 || !self.is_undecided && self.expected.is_empty()
    }

    /// Whether the job waits in the queue of the site, as far as was told.
    pub fn has_waiting(&self, job: JobId) -> bool {
        self.held.get(&job).is_some_and(|held| held.since.is_none())
    }

    /// A number that is higher after each arrival, start and end; one that is on its way has arrived, as far as this is concerned.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// How long the last jobs executed that ended there, at most [`RATE_WINDOW`](crate::metascheduler::limit::RATE_WINDOW), in that order.
    pub fn executions(&self) -> &VecDeque<Span> {
        &self.executions
    }

    /// Whether the job is there, as far as was told.
    pub fn has(&self, job: JobId) -> bool {
        self.held.contains_key(&job)
    }

    /// The jobs that are there, and since when those that execute do.
    pub fn held(&self) -> impl Iterator<Item = (JobId, Option<Time>)> {
        self.held.iter().map(|(&job, held)| (job, held.since))
    }

    /// What jobs and local users have of the nodes now; none where jobs share none, or nobody plans.
    pub fn occupation(&self, now: Time) -> Option<Occupation> {
        let now = self.now.max(now);
        self.queue.as_ref().and_then(|queue| queue.occupation(now))
    }

    /// Whether a job computes for half of its time or more: its type, where jobs share nodes.
    pub fn mostly_computes(&self, job: &JobSpec) -> bool {
        match &self.capacity {
            Capacity::Shared(nodes) => nodes.demand(job, Span::ZERO).mostly_computes(),
            Capacity::Processors(_) => true,
        }
    }

    /// When a scheduler decides even if nothing happens; see [`LocalQueue::wake_at`].
    pub fn wake_at(&self) -> Option<Time> {
        self.queue.as_ref().and_then(LocalQueue::wake_at)
    }

    /// A job is on its way there.
    pub fn expects(&mut self, job: JobSpec) {
        self.planned = None;
        self.changes += 1;
        self.sent += 1;
        let order = self.expected.get(&job.id).map_or(self.sent, |expected| expected.order);
        if self.expected.insert(job.id, Expected { job, order }).is_none() {
            self.all.add(&job);
            self.waiting.add(&job);
        }
    }

    /// A job that was on its way is not, or not any more.
    pub fn expects_no_more(&mut self, job: JobId) {
        if self.arrives(job) {
            self.changes += 1;
        }
    }

    /// Whether a job was on its way, which it is not any more.
    fn arrives(&mut self, job: JobId) -> bool {
        self.planned = None;
        let Some(Expected { job, .. }) = self.expected.remove(&job) else { return false };
        self.all.subtract(&job);
        self.waiting.subtract(&job);
        true
    }

    /// A job waits there. Nothing if it does already.
    ///
    /// # Panics
    /// If it is wider than the site or has no width.
    pub fn joined(&mut self, now: Time, job: JobSpec) {
        self.planned = None;
        let was_expected = self.arrives(job.id);
        if self.held.contains_key(&job.id) {
            return;
        }
        // That it would come was the news.
        self.changes += u64::from(!was_expected);
        self.is_undecided = true;
        self.advance(now);
        let turn = self.turns.unwrap_or(0);
        self.turns = self.turns.map(|turn| turn + 1);
        if let Some(queue) = &mut self.queue {
            queue.submit_in_turn(self.now, job, turn);
        }
        self.held.insert(job.id, Held { job, turn, since: None });
        self.all.add(&job);
        self.waiting.add(&job);
        let (now, said) = (self.now, self.compared(job.id));
        if let (Some(decisor), Some(said)) = (&mut self.decisor, said) {
            decisor.joined(now, job.id, said);
        }
    }

    /// A job waits there, before one that had overtaken it on its way; behind all others if that one does not wait. Nothing if it
    /// waits already. Costs O(jobs of the site).
    ///
    /// # Panics
    /// As [`Book::joined`].
    pub fn joined_before(&mut self, now: Time, job: JobSpec, overtaker: JobId) {
        let turn = self.held.get(&overtaker).filter(|held| held.since.is_none()).map(|held| held.turn);
        let is_new = !self.held.contains_key(&job.id);
        self.joined(now, job);
        let Some(turn) = turn.filter(|_| is_new && self.turns.is_some()) else { return };
        for held in self.held.values_mut().filter(|held| held.since.is_none() && held.turn >= turn) {
            held.turn += 1;
        }
        self.turns = self.turns.map(|turns| turns + 1);
        if let Some(held) = self.held.get_mut(&job.id) {
            held.turn = turn;
        }
        if self.queue.is_some() {
            self.queue_anew();
        }
    }

    /// A part of a job starts there. Nothing as for [`Book::runs`].
    pub fn part_starts(&mut self, now: Time, part: JobSpec, portion: Portion) {
        self.executes(now, part, now, Some(portion));
    }

    /// A job executes there since a time in the past. Nothing if it is known, or cannot fit beside what executes.
    pub fn runs(&mut self, now: Time, job: JobSpec, since: Time) {
        self.executes(now, job, since, None);
    }

    fn executes(&mut self, now: Time, job: JobSpec, since: Time, portion: Option<Portion>) {
        self.planned = None;
        self.arrives(job.id);
        if self.held.contains_key(&job.id) || !self.has_room(&job) {
            return;
        }
        self.changes += 1;
        self.is_undecided = true;
        self.advance(now);
        if let Some(queue) = &mut self.queue {
            match portion {
                Some(portion) => {
                    queue.hold(self.now, job, portion);
                    queue.begins(self.now, &job, self.now);
                }
                None => queue.take_over(self.now, job, since),
            }
        }
        self.held.insert(job.id, Held { job, turn: 0, since: Some(since) });
        self.all.add(&job);
        self.ever.add(&job, since);
        self.running.add(&job, since);
    }

    /// A job that waits there.
    pub fn waits(&self, job: JobId) -> Option<JobSpec> {
        self.held.get(&job).filter(|held| held.since.is_none()).map(|held| held.job)
    }

    /// A job that executes there, and since when.
    pub fn running(&self, job: JobId) -> Option<(JobSpec, Time)> {
        let held = self.held.get(&job)?;
        Some((held.job, held.since?))
    }

    /// A job that executes there is believed to do so for this long in all. Nothing if it does not.
    pub fn expect(&mut self, job: JobId, run_time: Span) {
        let Some(&Held { job: before, turn, since: Some(since) }) = self.held.get(&job) else { return };
        self.planned = None;
        let believed = JobSpec { requested: run_time, ..before };
        self.all.subtract(&before);
        self.all.add(&believed);
        self.held.insert(job, Held { job: believed, turn, since: Some(since) });
        if let Some(queue) = &mut self.queue {
            queue.expect(self.now, job, since, run_time);
        }
    }

    /// Jobs that have run past what is believed of them by now, where they share nodes; see [`LocalQueue::past`]. None elsewhere, and where
    /// nobody plans.
    pub fn past(&self, now: Time) -> Option<Vec<(JobId, Span)>> {
        self.queue.as_ref()?.past(self.now.max(now))
    }

    /// Whether jobs share nodes there.
    pub fn is_shared(&self) -> bool {
        matches!(self.capacity, Capacity::Shared(_))
    }

    /// Lets the site decide, and appends what starts.
    ///
    /// # Panics
    /// If the book has no queue.
    pub fn decide(&mut self, now: Time, starts: &mut Vec<JobSpec>) {
        self.planned = None;
        self.is_undecided = false;
        self.advance(now);
        let before = starts.len();
        self.queue.as_mut().expect("a queue decides").decide(self.now, starts);
        for job in &starts[before..] {
            self.has_started(job.id, self.now);
        }
    }

    /// The site has decided, and these jobs have started. A queue that would have started others is made anew.
    pub fn decided(&mut self, now: Time, started: &[JobId]) {
        self.planned = None;
        self.is_undecided = false;
        self.advance(now);
        let (is_shared, mut starts) = (self.is_shared(), Vec::new());
        let agrees = self.queue.as_mut().is_none_or(|queue| {
            if is_shared {
                return queue.start_as_told(self.now, started);
            }
            queue.decide(self.now, &mut starts);
            starts.len() == started.len() && starts.iter().all(|job| started.contains(&job.id))
        });
        for &job in started {
            self.has_started(job, self.now);
        }
        if !agrees {
            self.queue_anew();
        }
    }

    /// Whoever tells of a site may be wrong: what cannot execute there waits on.
    fn has_started(&mut self, job: JobId, now: Time) {
        let Some(Held { job, turn, since: None }) = self.held.get(&job).copied() else { return };
        if self.has_room(&job) {
            self.held.insert(job.id, Held { job, turn, since: Some(now) });
            self.changes += 1;
            self.waiting.subtract(&job);
            self.ever.add(&job, now);
            self.running.add(&job, now);
            if let Some(decisor) = &mut self.decisor {
                decisor.started(now, job.id);
            }
        }
    }

    /// Whether so many processors execute nothing there.
    pub fn has_room(&self, job: &JobSpec) -> bool {
        job.processors <= self.free()
    }

    /// A job has ended there. Returns its run time, if the queue predicts and learned from it; see [`LocalQueue::complete`].
    pub fn ended(&mut self, now: Time, job: JobId) -> Option<Span> {
        self.planned = None;
        self.is_undecided = true;
        self.advance(now);
        self.last_end = self.last_end.max(Some(now));
        let Some(Held { job: spec, since: Some(since), .. }) = self.held.get(&job).copied() else {
            self.left(now, job);
            return None;
        };
        self.executed.ended(self.now, &spec, since);
        self.changes += 1;
        keep(&mut self.executions, self.now.since(since));
        if let Some(decisor) = &mut self.decisor {
            decisor.ended(self.now, job, since);
        }
        let run_time = self.queue.as_mut().and_then(|queue| queue.complete(self.now, job));
        self.forget(job);
        run_time
    }

    /// A job is not there any more, nor on its way.
    pub fn left(&mut self, now: Time, job: JobId) {
        self.planned = None;
        self.is_undecided = true;
        self.expects_no_more(job);
        self.advance(now);
        if let Some(queue) = &mut self.queue
            && matches!(self.capacity, Capacity::Shared(_))
            && self.held.get(&job).is_some_and(|held| held.since.is_some())
        {
            // The others are where they are: a queue that is made anew would place them in another order.
            queue.complete(self.now, job);
            self.forget(job);
            return;
        }
        let withdrawn = self.queue.as_mut().and_then(|queue| queue.withdraw(job)).is_some();
        if self.forget(job) && self.queue.is_some() && !withdrawn {
            self.queue_anew();
        }
    }

    fn forget(&mut self, job: JobId) -> bool {
        let Some(held) = self.held.remove(&job) else { return false };
        if let Some(decisor) = &mut self.decisor {
            decisor.left(job);
        }
        self.all.subtract(&held.job);
        match held.since {
            Some(since) => self.running.subtract(&held.job, since),
            None => self.waiting.subtract(&held.job),
        }
        true
    }

    /// Nothing is there that was told; what is on its way is still.
    pub fn clear(&mut self) {
        self.planned = None;
        let held: Vec<JobId> = self.held.keys().copied().collect();
        for job in held {
            self.forget(job);
        }
        if self.queue.is_some() {
            self.queue_anew();
        }
    }

    fn queue_anew(&mut self) {
        let mut queue =
            LocalQueue::new(self.scheduler, self.pass, self.capacity.clone()).believing(self.estimator);
        for held in self.held.values() {
            match held.since {
                Some(since) => queue.take_over(self.now, held.job, since),
                None => queue.submit_in_turn(self.now, held.job, held.turn),
            }
        }
        self.queue = Some(queue);
    }

    fn advance(&mut self, now: Time) {
        self.now = self.now.max(now);
    }

    /// Makes the plan of what the site has that decisions of this instant look at. Costs little where nothing happened since
    /// the last one.
    ///
    /// # Panics
    /// If the book has no queue.
    pub fn prepare(&mut self, now: Time, overrun: Overrun) {
        let now = self.now.max(now);
        let holds = self.planned.as_mut().is_some_and(|(rule, plan)| *rule == overrun && plan.move_to(now));
        if !holds {
            self.planned = Some((overrun, self.planned_anew(now, overrun, None)));
        }
    }

    /// How the site would go on from now by estimates with what it has, what is on its way, and an arriving job.
    ///
    /// # Panics
    /// If the book has no queue, or the arriving job is wider than the site.
    pub fn plan(&self, now: Time, overrun: Overrun, arriving: Option<&JobSpec>) -> Cow<'_, Plan> {
        let now = self.now.max(now);
        match &self.planned {
            Some((rule, plan)) if arriving.is_none() && *rule == overrun && plan.now() == now => {
                Cow::Borrowed(plan)
            }
            _ => Cow::Owned(self.planned_anew(now, overrun, arriving)),
        }
    }

    fn planned_anew(&self, now: Time, overrun: Overrun, arriving: Option<&JobSpec>) -> Plan {
        let queue = self.queue.as_ref().expect("a queue plans");
        if self.expected.is_empty() && arriving.is_none() {
            return queue.plan_with(now, overrun);
        }
        let mut queue = queue.clone();
        // Whoever tells of a site may be wrong, or late: a job that arrives once more is there once.
        let known = |job: &&JobSpec| self.held.contains_key(&job.id);
        let arriving = arriving.filter(|job| !self.expected.contains_key(&job.id));
        for job in self.expected().chain(arriving).filter(|job| !known(job)) {
            queue.submit(now, *job);
        }
        queue.plan_with(now, overrun)
    }

    /// The same before a job comes that is to be planned beside the others. Whoever tells of the site may be wrong, or late:
    /// what the book has of that job already counts for nothing.
    ///
    /// # Panics
    /// If the book has no queue.
    pub fn plan_for(&self, now: Time, overrun: Overrun, coming: JobId) -> Cow<'_, Plan> {
        if !self.held.contains_key(&coming) && !self.expected.contains_key(&coming) {
            return self.plan(now, overrun, None);
        }
        let mut without = self.clone();
        without.expects_no_more(coming);
        if without.forget(coming) {
            without.queue_anew();
        }
        Cow::Owned(without.planned_anew(now.max(self.now), overrun, None))
    }

    /// What comes before a row that is planned now: what executes, as long as it is expected to, then what waits in the
    /// order of the queue, then what is on its way in the order of sending.
    pub fn occupied(&self, now: Time) -> Occupied {
        let now = self.now.max(now);
        let running = self.held.values().filter_map(|held| {
            let left = held.since?.saturating_add(held.job.requested).since(now).as_micros();
            // What runs past its estimate is planned to end now.
            (left > 0).then_some((left, held.job.processors))
        });
        let mut waiting: Vec<&Held> = self.held.values().filter(|held| held.since.is_none()).collect();
        waiting.sort_by_key(|held| (held.turn, held.job.key()));
        let mut coming: Vec<&Expected> = self.expected.values().collect();
        coming.sort_by_key(|expected| expected.order);
        let jobs = waiting.iter().map(|held| &held.job).chain(coming.iter().map(|expected| &expected.job));
        Occupied {
            running: running.collect(),
            waiting: jobs.map(|job| (job.requested.as_micros(), job.processors)).collect(),
        }
    }

    /// Work of waiting jobs, and what is left of those that execute, in processor-microseconds.
    pub(super) fn remaining_work(&self, now: Time) -> i128 {
        let running = self.held.values().filter_map(|held| {
            let end = held.since?.saturating_add(held.job.requested);
            let left = i128::from(end.as_micros()) - i128::from(now.as_micros());
            Some(left.max(0) * i128::from(held.job.processors))
        });
        self.waiting.work + running.sum::<i128>()
    }

    /// A job that waits there or is on its way.
    pub(super) fn waiting_job(&self, job: JobId) -> Option<&JobSpec> {
        let expected = || self.expected.get(&job).map(|expected| &expected.job);
        self.held.get(&job).map(|held| &held.job).or_else(expected)
    }

    /// Waits of all that ever started.
    pub(super) fn waits_ever(&self) -> Waits {
        self.ever
    }

    /// Waits of what executes.
    pub(super) fn waits_of_running(&self) -> Waits {
        self.running
    }

    /// Work that it has executed lately.
    pub(super) fn executed(&self) -> &Executed {
        &self.executed
    }

    pub(super) fn last_end(&self) -> Option<Time> {
        self.last_end
    }
}
