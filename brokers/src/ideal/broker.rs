//! A broker that knows the true state of every site, and sites that get their jobs at once.

use std::collections::{BTreeMap, BTreeSet};

use scheduler::event::FallbackCause;
use scheduler::local::LocalQueue;
use scheduler::{
    Broker, BrokerRule, Grid, JobId, JobSpec, LocalScheduler, LocalUsers, Pass, Policy, QueueKey, SiteId,
    Start, Strategy, Submit, Time,
};

use crate::allocation::{Allocator, Book, Site};
use crate::external::External;

/// Two-level scheduling without messages (Quezada Pina 2012, §3.3).
///
/// At one instant: completions; then each broker in turn allocates the jobs that arrived at it, one by one in queue order,
/// at once and for good; then each site decides once. Jobs of [local users](Brokered::with_local_users) are in the queue of
/// their site before brokers allocate. Where brokers plan batches, full ones come first, then what sites decide that something
/// happened at, then batches whose windows are over, then sites again, those among them that only wake.
#[derive(Clone, Debug)]
pub struct Brokered {
    grid: Grid,
    local_users: LocalUsers,
    /// Of the broker that users of each site turn to; one if the grid has none.
    allocators: Vec<Allocator>,
    /// By rank, from the first that has processors.
    books: Vec<Book>,
    /// By the number of the broker, with the time of the arrival.
    arrived: BTreeMap<(usize, QueueKey), (JobSpec, Time)>,
    /// Places of running jobs.
    running: BTreeMap<JobId, usize>,
    /// Places of sites with a fact that no decision has seen.
    dirty: BTreeSet<usize>,
    timers: BTreeSet<(Time, usize)>,
    timer: Vec<Option<Time>>,
    waiting: usize,
    starts: Vec<JobSpec>,
    /// Whether somebody else decides something.
    is_external: bool,
}

impl Brokered {
    /// Idle sites, all under one kind of scheduler. Each broker of the grid draws random numbers of its own from the seed.
    pub fn new(grid: &Grid, rules: Broker, scheduler: LocalScheduler, pass: Pass, seed: u64) -> Brokered {
        let brokers = grid.brokers();
        let sizes = &grid.sizes()[brokers..];
        let allocator = |number| Allocator::new(rules, sizes, scheduler, pass, seed, number);
        let book = |size| {
            let book = Book::new(scheduler, pass, size, true);
            if rules.plans_batches() { book.in_order_of_arrival() } else { book }
        };
        Brokered {
            allocators: (0..brokers.max(1) as u64).map(allocator).collect(),
            books: sizes.iter().map(|&size| book(size)).collect(),
            arrived: BTreeMap::new(),
            running: BTreeMap::new(),
            dirty: BTreeSet::new(),
            timers: BTreeSet::new(),
            timer: vec![None; sizes.len()],
            waiting: 0,
            starts: Vec::new(),
            is_external: false,
            local_users: LocalUsers::default(),
            grid: grid.clone(),
        }
    }

    /// The same with what somebody else decides: where jobs go, if the rule is [`BrokerRule::External`], and what starts at
    /// sites under [`LocalScheduler::External`].
    pub fn with_external(mut self, external: &dyn External, local: LocalScheduler) -> Brokered {
        let brokers = self.grid.brokers();
        let ask = |(number, allocator): (usize, Allocator)| match allocator.rules().rule {
            BrokerRule::External => allocator.with_decider(external.broker(&self.grid, number as u64)),
            _ => allocator,
        };
        self.allocators = self.allocators.into_iter().enumerate().map(ask).collect();
        if local == LocalScheduler::External {
            let queue = |(place, book): (usize, Book)| {
                let decider = external.queue(&self.grid, self.grid.at_rank(brokers + place));
                let processors = book.processors();
                book.with_queue(LocalQueue::external(decider, processors))
            };
            self.books = self.books.into_iter().enumerate().map(queue).collect();
        }
        self.is_external = true;
        self
    }

    /// The same with users who submit jobs at their own site.
    #[must_use]
    pub fn with_local_users(self, local_users: LocalUsers) -> Brokered {
        Brokered { local_users, ..self }
    }

    fn allocate(&mut self, now: Time, broker: usize, job: JobSpec) {
        let place = self.allocators[broker].choose_knowing(now, &job, &mut self.books);
        let place = place.unwrap_or_else(|| panic!("job {} is wider than every site", job.id));
        self.join(now, place, job);
    }

    /// When the first job that waits at a broker arrived there, and how many wait.
    fn waiting_at(&self, broker: usize) -> Option<(Time, usize)> {
        let of_broker = self.arrived.iter().filter(|((other, _), _)| *other == broker);
        let arrivals = of_broker.map(|(_, &(_, since))| since);
        let count = arrivals.clone().count();
        arrivals.min().map(|first| (first, count))
    }

    /// Plans the batches of a broker that are full, and what waits there if the window is over and counts.
    fn plan(&mut self, now: Time, broker: usize, by_time: bool) {
        let batches = self.allocators[broker].rules().batches;
        while let Some((first, count)) = self.waiting_at(broker)
            && (count >= batches.jobs as usize || (by_time && batches.due_at(first) <= now))
        {
            let keys: Vec<(usize, QueueKey)> = self.arrived.keys().copied().collect();
            let keys = keys.into_iter().filter(|(other, _)| *other == broker).take(batches.jobs as usize);
            let jobs: Vec<JobSpec> =
                keys.filter_map(|key| self.arrived.remove(&key)).map(|(job, _)| job).collect();
            let known = |book| Site { book, is_present: true, is_candidate: true, as_of: Some(now) };
            let sites: Vec<Site<'_>> = self.books.iter().map(known).collect();
            let rows = self.allocators[broker].plan(now, &jobs, &sites, None);
            let planned: usize = rows.iter().map(|(_, row)| row.len()).sum();
            assert_eq!(planned, jobs.len(), "no job is wider than every site");
            for (place, row) in rows {
                row.into_iter().for_each(|job| self.join(now, place, job));
            }
        }
    }

    fn join(&mut self, now: Time, place: usize, job: JobSpec) {
        self.books[place].joined(now, job);
        self.dirty.insert(place);
    }

    /// Lets the sites decide that something happened at.
    fn decide_sites(&mut self, now: Time, starts: &mut Vec<Start>) {
        let brokers = self.grid.brokers();
        for place in std::mem::take(&mut self.dirty) {
            self.books[place].decide(now, &mut self.starts);
            for job in self.starts.drain(..) {
                self.running.insert(job.id, place);
                self.waiting -= 1;
                starts.push(Start { job, site: self.grid.at_rank(brokers + place) });
            }
            self.set_timer(place);
        }
    }

    fn set_timer(&mut self, place: usize) {
        let wake_at = self.books[place].wake_at();
        let before = std::mem::replace(&mut self.timer[place], wake_at);
        if before != wake_at {
            if let Some(time) = before {
                self.timers.remove(&(time, place));
            }
            if let Some(time) = wake_at {
                self.timers.insert((time, place));
            }
        }
    }
}

impl Policy for Brokered {
    fn submitted(&mut self, now: Time, job: JobSpec) {
        if let Some(rank) = self.local_users.site(&self.grid, &job) {
            self.waiting += 1;
            return self.join(now, rank - self.grid.brokers(), job);
        }
        let broker = self.grid.broker_of(job.origin).unwrap_or(0);
        let before = self.arrived.insert((broker, job.key()), (job, now));
        assert!(before.is_none(), "job {} is submitted once", job.id);
        self.waiting += 1;
    }

    /// # Panics
    /// If the job does not run.
    fn completed(&mut self, now: Time, job: JobId) {
        let place = self.running.remove(&job);
        let place = place.unwrap_or_else(|| panic!("job {job} ended and does not run"));
        self.books[place].ended(now, job);
        self.dirty.insert(place);
    }

    /// # Panics
    /// If a job is wider than every site.
    fn decide(&mut self, now: Time, starts: &mut Vec<Start>) {
        if self.allocators[0].rules().plans_batches() {
            (0..self.allocators.len()).for_each(|broker| self.plan(now, broker, false));
            self.decide_sites(now, starts);
            // Windows are over after everything else of the instant. A site that wakes now decides behind them.
            (0..self.allocators.len()).for_each(|broker| self.plan(now, broker, true));
        } else {
            while let Some(((broker, _), (job, _))) = self.arrived.pop_first() {
                self.allocate(now, broker, job);
            }
        }
        while let Some(&(_, place)) = self.timers.first().filter(|(time, _)| *time <= now) {
            self.timers.pop_first();
            self.timer[place] = None;
            self.dirty.insert(place);
        }
        self.decide_sites(now, starts);
    }

    /// Of a broker that is no member of the grid the smallest site tells.
    fn failures(&mut self, sink: &mut dyn FnMut(SiteId, FallbackCause)) {
        if !self.is_external {
            return;
        }
        for (rank, allocator) in self.allocators.iter_mut().enumerate() {
            if let Some(cause) = allocator.failure() {
                sink(self.grid.at_rank(rank), cause);
            }
        }
        for (place, book) in self.books.iter_mut().enumerate() {
            if let Some(cause) = book.failure() {
                sink(self.grid.at_rank(self.grid.brokers() + place), cause);
            }
        }
    }

    fn entry(&self, grid: &Grid, job: &JobSpec) -> Option<SiteId> {
        let strategy = Strategy::Broker(*self.allocators[0].rules());
        Submit::Home.rank(grid, strategy, job, &self.local_users).map(|rank| grid.at_rank(rank))
    }

    fn wake_at(&self) -> Option<Time> {
        let rules = self.allocators[0].rules();
        // Of others nothing is left between instants.
        let brokers = if rules.plans_batches() { self.allocators.len() } else { 0 };
        let due = (0..brokers).filter_map(|broker| self.waiting_at(broker));
        let due = due.map(|(first, _)| rules.batches.due_at(first)).min();
        self.timers.first().map(|&(time, _)| time).into_iter().chain(due).min()
    }

    fn waiting(&self) -> usize {
        self.waiting
    }
}
