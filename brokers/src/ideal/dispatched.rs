//! Dispatchers that learn, free messages, and sites of which they know nothing but how many processors they have.
//!
//! Who goes where is [`Dispatcher`]'s; what starts at a site, its [`LocalQueue`]'s. Here is what lies between: when facts
//! reach a dispatcher, calling back what waits too long, and the times of each job.

use std::collections::{BTreeMap, BTreeSet};

use scheduler::event::FallbackCause;
use scheduler::execution::at_speed;
use scheduler::local::{Estimator, LocalQueue};
use scheduler::strategy::opaque::{Options, TotalFrom};
use scheduler::{
    Grid, JobId, JobSpec, Labels, LocalScheduler, LocalUsers, Pass, Policy, Prediction, SiteId, Span, Start,
    Time,
};

use crate::broker::{Act, Broker as _};
use crate::external::External;
use crate::learning::{Dispatcher, Estimates, Times};

/// A site that takes no job of a dispatcher for some time, and gives those that wait there back. What runs ends, and local
/// users wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    /// The place of the site.
    pub place: usize,
    /// When it begins.
    pub from: Time,
    /// When it is over.
    pub until: Time,
}

/// What sites are like beside their processors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct World {
    /// Users who submit at their own site, past any dispatcher.
    pub local_users: LocalUsers,
    /// How fast sites compute, in percent of the machine that run times are of; by place, 100 where nothing is said.
    pub speeds: Vec<u32>,
    /// In any order; those of one site do not overlap.
    pub outages: Vec<Outage>,
    /// How much later than it happens a dispatcher learns that a job started or ended. Its place is taken as long.
    pub feedback: Span,
    /// How long a dispatcher takes to submit a job to a site. It submits one after the other, in the order of its decisions; until
    /// then the job is on its way, and its place is taken.
    pub submission: Span,
}

/// A job of a dispatcher that ended, as that learned of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Executed {
    /// Which one.
    pub job: JobId,
    /// The place of its site.
    pub place: usize,
    /// When it ended there.
    pub end: Time,
    /// What its time went into.
    pub times: Times,
}

#[derive(Clone, Copy, Debug)]
enum News {
    Started { since: Time },
    Ended { execution: Span },
}

/// A job that is being submitted.
#[derive(Clone, Copy, Debug)]
struct Submitted {
    job: JobId,
    place: usize,
    dispatcher: usize,
    scheduled: Time,
}

/// Where a job is.
#[derive(Clone, Copy, Debug)]
struct Placed {
    /// None of a local user.
    dispatcher: Option<usize>,
    place: usize,
    scheduled: Time,
    queued: Time,
    started: Option<Time>,
    ended: Option<Time>,
}

/// Dispatching without messages (Costa 2007, chapter 5).
///
/// At one instant: completions; submissions; outages; jobs that were long in submission enter queues; what dispatchers learn now; each dispatcher that has news decides; then
/// each site that has; then jobs that waited too long come back, and those who have news of that decide again. What starts as
/// its limit ends stays. Sites queue jobs in the order in which they come.
///
/// That is the order of the protocol with free messages, whose schedule this is.
#[derive(Clone, Debug)]
pub struct Dispatched {
    grid: Grid,
    world: World,
    /// Of the broker that users of each site turn to; one if the grid has none.
    dispatchers: Vec<Dispatcher>,
    /// Dispatchers that something happened to.
    awake: BTreeSet<usize>,
    queues: Vec<LocalQueue>,
    /// Sites that something happened to since they last decided.
    dirty: BTreeSet<usize>,
    /// Jobs that ever came to each site.
    turns: Vec<u64>,
    is_down: Vec<bool>,
    /// The one site that dispatchers may use, if they may use one only.
    only: Option<usize>,
    /// Jobs of dispatchers that have not ended, as far as these know.
    jobs: BTreeMap<JobId, JobSpec>,
    placed: BTreeMap<JobId, Placed>,
    news: BTreeMap<(Time, u64), (JobId, News)>,
    told: u64,
    /// Jobs that are being submitted, by when each enters the queue of its site.
    submitted: BTreeMap<(Time, u64), Submitted>,
    /// By dispatcher: until when it submits.
    busy: Vec<Time>,
    /// Beginnings and ends of outages that are to come.
    agenda: BTreeSet<(Time, bool, usize)>,
    waiting: usize,
    executed: Vec<Executed>,
    knows_queues: bool,
}

impl Dispatched {
    /// Idle sites, all under one kind of scheduler. Each dispatcher draws random numbers of its own from the seed.
    ///
    /// # Errors
    /// If the rule has a job at several sites at once: which copy goes on is for the protocol to find out.
    pub fn new(
        grid: &Grid,
        options: &Options,
        scheduler: LocalScheduler,
        world: World,
        seed: u64,
    ) -> Result<Dispatched, String> {
        if options.makes_copies() {
            return Err(format!(
                "{} makes copies of jobs, which has no ideal; take a rule without copies",
                options.rule.name()
            ));
        }
        let sizes = &grid.sizes()[grid.brokers()..];
        let dispatcher = |number| Dispatcher::new(options, sizes, seed, number);
        let begin = |outage: &Outage| (outage.from, true, outage.place);
        Ok(Dispatched {
            dispatchers: (0..grid.brokers().max(1) as u64).map(dispatcher).collect(),
            awake: BTreeSet::new(),
            queues: sizes.iter().map(|&size| LocalQueue::new(scheduler, Pass::Batch, size)).collect(),
            dirty: BTreeSet::new(),
            turns: vec![0; sizes.len()],
            is_down: vec![false; sizes.len()],
            only: None,
            jobs: BTreeMap::new(),
            placed: BTreeMap::new(),
            news: BTreeMap::new(),
            told: 0,
            submitted: BTreeMap::new(),
            busy: vec![Time::from_micros(i64::MIN); grid.brokers().max(1)],
            agenda: world.outages.iter().map(begin).collect(),
            waiting: 0,
            executed: Vec::new(),
            knows_queues: false,
            world,
            grid: grid.clone(),
        })
    }

    /// The same where somebody else decides what starts at sites.
    #[must_use]
    pub fn with_external(mut self, external: &dyn External) -> Dispatched {
        let (grid, brokers) = (&self.grid, self.grid.brokers());
        let ask = |place: usize| external.queue(grid, grid.at_rank(brokers + place));
        let sizes = grid.sizes()[brokers..].iter().enumerate();
        self.queues = sizes.map(|(place, &size)| LocalQueue::external(ask(place), size)).collect();
        self
    }

    /// The same with sites and dispatchers that each predict run times by an estimator of their own.
    #[must_use]
    pub fn with_estimators(mut self, estimator: impl Fn() -> Box<dyn Estimator>) -> Dispatched {
        self.dispatchers.iter_mut().for_each(|dispatcher| dispatcher.predict_by(estimator()));
        self.queues = self.queues.into_iter().map(|queue| queue.with_estimator(estimator())).collect();
        self
    }

    /// The same where dispatchers may use this site only: what a fixed choice would come to.
    #[must_use]
    pub fn with_one_site(mut self, place: usize) -> Dispatched {
        self.only = Some(place);
        (0..self.queues.len()).for_each(|other| self.open(other));
        self
    }

    /// The same where dispatchers see the queues of sites, and how fast these are. With exact requests it is an oracle.
    #[must_use]
    pub fn knowing_queues(self) -> Dispatched {
        Dispatched { knows_queues: true, ..self }
    }

    /// Jobs of dispatchers that ended so far, in the order in which they learned of it.
    pub fn executed(&self) -> &[Executed] {
        &self.executed
    }

    /// Times that jobs were called back.
    pub fn recalled_total(&self) -> u64 {
        self.dispatchers.iter().map(Dispatcher::recalled_total).sum()
    }

    fn speed_at(&self, place: usize) -> u32 {
        self.world.speeds.get(place).copied().unwrap_or(100)
    }

    /// Tells dispatchers whether they may use a site.
    fn open(&mut self, place: usize) {
        let is_available = !self.is_down[place] && self.only.is_none_or(|only| only == place);
        for dispatcher in &mut self.dispatchers {
            dispatcher.slots_mut().set_available(place, is_available);
        }
    }

    /// A job joins the queue of a site behind all others.
    fn join(
        &mut self,
        now: Time,
        place: usize,
        mut job: JobSpec,
        dispatcher: Option<usize>,
        scheduled: Time,
    ) {
        job.requested = at_speed(job.requested, self.speed_at(place));
        self.queues[place].submit_in_turn(now, job, self.turns[place]);
        self.turns[place] += 1;
        self.dirty.insert(place);
        let placed = Placed { dispatcher, place, scheduled, queued: now, started: None, ended: None };
        self.placed.insert(job.id, placed);
        if let Some(dispatcher) = dispatcher {
            self.dispatchers[dispatcher].queued(now, job.id, place);
        }
    }

    fn tell(&mut self, now: Time, job: JobId, news: News) {
        self.news.insert((now + self.world.feedback, self.told), (job, news));
        self.told += 1;
    }

    /// What dispatchers learn now.
    fn hear(&mut self, now: Time) {
        while let Some(entry) = self.news.first_entry().filter(|entry| entry.key().0 <= now) {
            let (job, news) = entry.remove();
            let Some(&placed) = self.placed.get(&job) else { continue };
            let Some(number) = placed.dispatcher else { continue };
            let dispatcher = &mut self.dispatchers[number];
            match news {
                News::Started { since } => dispatcher.started(since, job, placed.place),
                News::Ended { execution } => {
                    self.awake.insert(number);
                    self.placed.remove(&job);
                    self.jobs.remove(&job);
                    let finished = dispatcher.finished(now, job, placed.place, execution, Span::ZERO);
                    let times = finished.expect("it was there").times;
                    let end = placed.ended.expect("it ended before anybody learned of it");
                    assert_eq!(times.execution, execution, "the site measures te");
                    if dispatcher.options().total_from == TotalFrom::Last {
                        let total = now.since(placed.scheduled);
                        let parts = Times::of_total(total, times.execution, times.queue, times.transfer);
                        assert_eq!(parts, Ok(times), "tto = te + tf + ttr + overhead");
                        let submission = placed.queued.since(placed.scheduled);
                        assert_eq!(times.overhead, now.since(end) + submission, "nothing else takes time");
                    }
                    self.executed.push(Executed { job, place: placed.place, end, times });
                }
            }
        }
    }

    /// Takes back what waited for its limit. False if nothing did.
    fn recall(&mut self, now: Time) -> bool {
        let mut is_late = false;
        for number in 0..self.dispatchers.len() {
            for (job, place) in self.dispatchers[number].woke(now) {
                is_late = true;
                if self.queues[place].withdraw(job).is_some() {
                    self.placed.remove(&job);
                    let was_there = self.dispatchers[number].recalled(job, place);
                    assert!(was_there, "job {job} waited at its site");
                    self.awake.insert(number);
                    // What waited behind it may start.
                    self.dirty.insert(place);
                } else if let Some(key) = self.submission_of(job) {
                    self.submitted.remove(&key);
                    self.dispatchers[number].recalled(job, place);
                    self.awake.insert(number);
                } else if let Some(since) = self.placed.get(&job).and_then(|placed| placed.started) {
                    // The site refuses, and says why.
                    self.dispatchers[number].started(since, job, place);
                }
            }
        }
        is_late
    }

    fn submission_of(&self, job: JobId) -> Option<(Time, u64)> {
        self.submitted.iter().find(|(_, submitted)| submitted.job == job).map(|(&key, _)| key)
    }

    /// What was submitted long enough enters the queue of its site. One that is down takes none.
    fn enter(&mut self, now: Time) {
        while let Some(entry) = self.submitted.first_entry().filter(|entry| entry.key().0 <= now) {
            let Submitted { job, place, dispatcher, scheduled } = entry.remove();
            if self.is_down[place] {
                self.dispatchers[dispatcher].failed(job, place);
                self.awake.insert(dispatcher);
            } else {
                self.join(now, place, self.jobs[&job], Some(dispatcher), scheduled);
            }
        }
    }

    /// Sites whose plan has something start now, whatever happened. False if there is none.
    fn plans(&mut self, now: Time) -> bool {
        let is_due = |queue: &LocalQueue| queue.wake_at().is_some_and(|at| at <= now);
        let due = (0..self.queues.len()).filter(|&place| !self.is_down[place] && is_due(&self.queues[place]));
        let before = self.dirty.len();
        self.dirty.extend(due);
        self.dirty.len() > before
    }

    /// Outages begin and end.
    fn turn(&mut self, now: Time) {
        while let Some(&(at, is_begin, place)) = self.agenda.first().filter(|(at, ..)| *at <= now) {
            self.agenda.pop_first();
            self.is_down[place] = is_begin;
            self.open(place);
            self.awake.extend(0..self.dispatchers.len());
            self.dirty.insert(place);
            if !is_begin {
                continue;
            }
            let end = self.world.outages.iter().find(|outage| outage.place == place && outage.from == at);
            self.agenda.extend(end.map(|outage| (outage.until, false, place)));
            let waits = |(_, placed): &(&JobId, &Placed)| placed.place == place && placed.started.is_none();
            let lost: Vec<(JobId, usize)> = self
                .placed
                .iter()
                .filter(waits)
                .filter_map(|(&job, placed)| Some((job, placed.dispatcher?)))
                .collect();
            for (job, number) in lost {
                self.queues[place].withdraw(job).expect("it waits there");
                self.placed.remove(&job);
                self.dispatchers[number].failed(job, place);
            }
        }
    }

    fn dispatch(&mut self, now: Time) {
        for number in std::mem::take(&mut self.awake) {
            let mut known = Known {
                now,
                queues: self.knows_queues.then_some(&self.queues[..]),
                turns: &self.turns,
                speeds: &self.world.speeds,
                grid: &self.grid,
            };
            let dispatcher = &mut self.dispatchers[number];
            let decided: Vec<_> =
                std::iter::from_fn(|| dispatcher.decide(now, &mut known)).map(Act::placed).collect();
            for (JobSpec { id: job, .. }, place) in decided {
                if self.world.submission == Span::ZERO {
                    self.join(now, place, self.jobs[&job], Some(number), now);
                    continue;
                }
                let until = self.busy[number].max(now).saturating_add(self.world.submission);
                self.busy[number] = until;
                let submitted = Submitted { job, place, dispatcher: number, scheduled: now };
                self.submitted.insert((until, self.told), submitted);
                self.told += 1;
            }
        }
    }

    fn decide_sites(&mut self, now: Time, starts: &mut Vec<Start>) {
        let mut started = Vec::new();
        for place in std::mem::take(&mut self.dirty) {
            if self.is_down[place] {
                // Once it is back it decides.
                continue;
            }
            self.queues[place].decide(now, &mut started);
            for job in started.drain(..) {
                let placed = self.placed.get_mut(&job.id).expect("it waited");
                placed.started = Some(now);
                let tells = placed.dispatcher.is_some();
                self.waiting -= 1;
                starts.push(Start { job, site: self.grid.at_rank(self.grid.brokers() + place) });
                if tells {
                    self.tell(now, job.id, News::Started { since: now });
                }
            }
        }
        // Without delay it is known at once.
        self.hear(now);
    }
}

/// What dispatchers know of sites: all of their queues, or nothing.
struct Known<'a> {
    now: Time,
    queues: Option<&'a [LocalQueue]>,
    turns: &'a [u64],
    speeds: &'a [u32],
    grid: &'a Grid,
}

impl Estimates for Known<'_> {
    fn execution(&self, job: &JobSpec, site: usize) -> Span {
        match self.queues {
            Some(_) => at_speed(job.requested, self.speeds.get(site).copied().unwrap_or(100)),
            None => job.requested,
        }
    }

    fn price(&self, site: usize) -> u64 {
        self.grid.site(self.grid.at_rank(self.grid.brokers() + site)).price
    }

    fn ready(&self, site: usize) -> Time {
        let Some(queues) = self.queues else { return Time::from_micros(i64::MIN) };
        // The next narrow job would start then.
        let probe = JobSpec {
            id: JobId(u64::MAX),
            submit: self.now,
            processors: 1,
            requested: Span::from_secs(1),
            labels: Labels::UNKNOWN,
            origin: SiteId(1),
            payload: 0,
        };
        queues[site].plan(self.now).with_turn(&probe, self.turns[site]).start
    }
}

impl Policy for Dispatched {
    fn submitted(&mut self, now: Time, job: JobSpec) {
        self.waiting += 1;
        if let Some(rank) = self.world.local_users.site(&self.grid, &job) {
            return self.join(now, rank - self.grid.brokers(), job, None, now);
        }
        let number = self.grid.broker_of(job.origin).unwrap_or(0);
        self.jobs.insert(job.id, job);
        self.dispatchers[number].came(now, job);
        self.awake.insert(number);
    }

    /// # Panics
    /// If the job does not run.
    fn completed(&mut self, now: Time, job: JobId) {
        let placed = self.placed.get_mut(&job).unwrap_or_else(|| panic!("job {job} ended and is nowhere"));
        let since = placed.started.unwrap_or_else(|| panic!("job {job} ended and does not run"));
        placed.ended = Some(now);
        let Placed { place, dispatcher, .. } = *placed;
        self.queues[place].complete(now, job);
        self.dirty.insert(place);
        match dispatcher {
            Some(_) => self.tell(now, job, News::Ended { execution: now.since(since) }),
            None => {
                self.placed.remove(&job);
            }
        }
    }

    fn decide(&mut self, now: Time, starts: &mut Vec<Start>) {
        self.turn(now);
        self.enter(now);
        self.hear(now);
        loop {
            self.dispatch(now);
            self.decide_sites(now, starts);
            let (is_late, is_planned) = (self.recall(now), self.plans(now));
            if !is_late && !is_planned {
                break;
            }
        }
    }

    fn predictions(&mut self, sink: &mut dyn FnMut(SiteId, Prediction)) {
        for (rank, dispatcher) in self.dispatchers.iter_mut().enumerate().take(self.grid.brokers()) {
            let broker = self.grid.at_rank(rank);
            dispatcher.predictions().for_each(|prediction| sink(broker, prediction));
        }
        for (place, queue) in self.queues.iter_mut().enumerate() {
            let site = self.grid.at_rank(self.grid.brokers() + place);
            queue.predictions().for_each(|prediction| sink(site, prediction));
        }
    }

    fn failures(&mut self, sink: &mut dyn FnMut(SiteId, FallbackCause)) {
        for (place, queue) in self.queues.iter_mut().enumerate() {
            if let Some(cause) = queue.failure() {
                sink(self.grid.at_rank(self.grid.brokers() + place), cause);
            }
        }
    }

    fn entry(&self, grid: &Grid, job: &JobSpec) -> Option<SiteId> {
        let home = grid.home_rank(job.processors)?;
        let rank = self.world.local_users.site(grid, job).or_else(|| grid.broker_of(job.origin));
        Some(grid.at_rank(rank.unwrap_or(home)))
    }

    fn speed(&self, grid: &Grid, site: SiteId) -> u32 {
        self.speed_at(grid.rank(site) - grid.brokers())
    }

    fn wake_at(&self) -> Option<Time> {
        let up = self.queues.iter().zip(&self.is_down).filter(|(_, is_down)| !**is_down);
        let timers = up.filter_map(|(queue, _)| queue.wake_at());
        let timeouts = self.dispatchers.iter().filter_map(Dispatcher::wake_at);
        let news = self.news.first_key_value().map(|(&(at, _), _)| at);
        let agenda = self.agenda.first().map(|&(at, ..)| at);
        let submissions = self.submitted.first_key_value().map(|(&(at, _), _)| at);
        timers.chain(timeouts).chain(news).chain(agenda).chain(submissions).min()
    }

    fn waiting(&self) -> usize {
        self.waiting
    }
}
