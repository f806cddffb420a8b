//! A broker that knows the true state of every site, and sites that get their jobs at once.

use std::collections::{BTreeMap, BTreeSet};

use scheduler::event::FallbackCause;
use scheduler::local::{Estimator, LocalQueue, Portion};
use scheduler::{
    Broker as Rules, BrokerRule, Capacity, Grid, JobId, JobSpec, LocalScheduler, LocalUsers, Pass, Policy,
    Prediction, QueueKey, SiteId, Start, Strategy, Submit, Time,
};

use crate::allocation::Book;
use crate::broker::{Act, Broker, Disclosure, Spread, Truth};
use crate::external::External;
use crate::predictions::Predictions;
use crate::table;

/// Two-level scheduling without messages (Quezada Pina 2012, §3.3).
///
/// At one instant: completions; then each broker in turn allocates the jobs that arrived at it, one by one in queue order,
/// at once and for good; then each site decides once. Jobs of [local users](Brokered::with_local_users) are in the queue of
/// their site before brokers allocate. Where brokers plan batches, full ones come first, then what sites decide that something
/// happened at, then batches whose windows are over, then sites again, those among them that only wake.
///
/// A job that a broker spreads starts at once at all its sites, each of which has its part as a job that executes: one [`Start`] for each
/// part, the first by which the job is known. It ends everywhere at once. Where run times are predicted, its sites believe the broker that spreads
/// it, and of them that of the first part alone learns from its end, as each broker does.
#[derive(Clone, Debug)]
pub struct Brokered {
    grid: Grid,
    local_users: LocalUsers,
    rules: Rules,
    /// Of the broker that users of each site turn to; one if the grid has none.
    brokers: Vec<Box<dyn Broker>>,
    /// What the brokers see, where each predicts run times by itself; else they see what sites have.
    desks: Vec<Desk>,
    /// By rank, from the first that has processors.
    books: Vec<Book>,
    /// Places of running jobs; of one that was spread that of its first part.
    running: BTreeMap<JobId, usize>,
    /// Places of the other parts of those that were spread.
    others: BTreeMap<JobId, Vec<usize>>,
    /// Places of sites with a fact that no decision has seen.
    dirty: BTreeSet<usize>,
    /// Those of them that did not only wake.
    undecided: BTreeSet<usize>,
    timers: BTreeSet<(Time, usize)>,
    timer: Vec<Option<Time>>,
    waiting: usize,
    /// Brokers that jobs came to since the last decision.
    came: BTreeSet<usize>,
    starts: Vec<JobSpec>,
    /// Whether somebody else decides something.
    is_external: bool,
    /// What brokers predicted since somebody asked.
    news: Vec<(SiteId, Prediction)>,
}

/// What a broker that predicts run times knows of sites, which go by predictions of their own. Each book is told what a report at
/// once would tell.
#[derive(Clone, Debug)]
struct Desk {
    predictions: Predictions,
    /// Jobs that came since the last decision.
    arrived: BTreeMap<QueueKey, JobSpec>,
    /// By rank, from the first that has processors.
    books: Vec<Book>,
}

impl Brokered {
    /// Idle sites, all under one kind of scheduler. Each broker of the grid draws random numbers of its own from the seed.
    pub fn new(grid: &Grid, rules: Rules, scheduler: LocalScheduler, pass: Pass, seed: u64) -> Brokered {
        let brokers = grid.brokers();
        let sizes = &grid.sizes()[brokers..];
        let broker = |number| table::broker(rules, grid, scheduler, pass, seed, number);
        let book = |capacity| book(&rules, scheduler, pass, capacity);
        Brokered {
            rules,
            desks: Vec::new(),
            undecided: BTreeSet::new(),
            news: Vec::new(),
            brokers: (0..brokers.max(1) as u64).map(broker).collect(),
            books: grid.capacities().map(book).collect(),
            running: BTreeMap::new(),
            others: BTreeMap::new(),
            dirty: BTreeSet::new(),
            timers: BTreeSet::new(),
            timer: vec![None; sizes.len()],
            waiting: 0,
            came: BTreeSet::new(),
            starts: Vec::new(),
            is_external: false,
            local_users: LocalUsers::default(),
            grid: grid.clone(),
        }
    }

    /// The same with run times that each site and each broker predicts by an estimator of its own. A broker learns of the end of a job
    /// when it happens, if its rule has sites tell it anything.
    #[must_use]
    pub fn with_estimators(
        mut self,
        scheduler: LocalScheduler,
        pass: Pass,
        estimator: impl Fn() -> Box<dyn Estimator>,
    ) -> Brokered {
        let rules = self.rules;
        let book = |capacity: Capacity| book(&rules, scheduler, pass, capacity);
        let predicts = |capacity: Capacity| {
            let queue = LocalQueue::new(scheduler, pass, capacity.clone());
            book(capacity).with_queue(queue.with_estimator(estimator()))
        };
        self.books = self.grid.capacities().map(predicts).collect();
        let desk = |_| Desk {
            predictions: Predictions::by(estimator()),
            arrived: BTreeMap::new(),
            books: self.grid.capacities().map(book).collect(),
        };
        self.desks = self.brokers.iter().map(desk).collect();
        self
    }

    /// The same with what somebody else decides: where jobs go, if the rule is [`BrokerRule::External`], and what starts at
    /// sites under [`LocalScheduler::External`].
    pub fn with_external(mut self, external: &dyn External, local: LocalScheduler) -> Brokered {
        let brokers = self.grid.brokers();
        if self.rules.rule == BrokerRule::External {
            for (broker, number) in self.brokers.iter_mut().zip(0..) {
                broker.ask(external.broker(&self.grid, number));
            }
        }
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

    /// Gives jobs to sites as a broker decides.
    ///
    /// # Panics
    /// If a job is wider than the grid takes.
    fn ask(&mut self, now: Time, broker: usize, starts: &mut Vec<Start>) {
        self.brief(now, broker);
        loop {
            let books = self.desks.get_mut(broker).map_or(&mut self.books, |desk| &mut desk.books);
            match self.brokers[broker].decide(now, &mut Truth(now, books)) {
                Some(Act::Place(job, place)) => {
                    let job = self.desks.get(broker).map_or(job, |desk| desk.predictions.described(job));
                    self.join(now, place, job);
                }
                Some(Act::Spread(spread)) => self.spread(now, broker, &spread, starts),
                None => break,
            }
        }
        let broker = &self.brokers[broker];
        if broker.count() > 0 && broker.wake_at().is_none() {
            let widest = self.grid.widest_job();
            let wide = broker.waiting().find(|job| job.processors > widest).map(|job| job.id);
            assert_eq!(wide, None, "this job is wider than the grid takes");
        }
    }

    /// Starts a job in parts.
    ///
    /// # Panics
    /// If the parts are not the job, or a site has no room for its part: then the broker was wrong.
    fn spread(&mut self, now: Time, by: usize, spread: &Spread, starts: &mut Vec<Start>) {
        let Spread { job: believed, parts, from } = spread;
        let job = self.desks.get(by).map_or(*believed, |desk| desk.predictions.described(*believed));
        let together: u32 = parts.iter().map(|part| part.1).sum();
        assert_eq!(together, job.processors, "the parts of job {} are the job", job.id);
        if let Some(place) = *from {
            self.books[place].left(now, job.id);
            for (number, desk) in self.desks.iter_mut().enumerate() {
                // The others hear that it left before they hear of parts.
                match number == by {
                    true => desk.predictions.part_left(place, &mut desk.books[place], now, job.id),
                    false => desk.predictions.left(place, &mut desk.books[place], now, job.id),
                }
            }
            self.touch(place);
        }
        let predicted = self.desks.get_mut(by).map(|desk| desk.predictions.believed(now, job).requested);
        for (number, &(place, processors)) in parts.iter().enumerate() {
            let free = self.books[place].free();
            assert!(processors <= free, "a part of job {} has {processors} of {free} processors", job.id);
            let part = JobSpec { processors, ..job };
            match predicted {
                Some(predicted) => {
                    let portion = Portion { whole: job.processors, predicted, is_first: number == 0 };
                    self.books[place].part_starts(now, part, portion);
                }
                None => self.books[place].runs(now, part, now),
            }
            for desk in &mut self.desks {
                let book = &mut desk.books[place];
                desk.predictions.part_runs(place, book, now, part, (job.processors, now));
            }
            self.touch(place);
            starts.push(Start { job: part, site: self.grid.at_rank(self.grid.brokers() + place) });
        }
        let mut places = parts.iter().map(|part| part.0);
        self.running.insert(job.id, places.next().expect("a job has a processor"));
        self.others.insert(job.id, places.collect());
        self.waiting -= 1;
    }

    /// Something happened at a site.
    fn touch(&mut self, place: usize) {
        self.dirty.insert(place);
        self.undecided.insert(place);
    }

    /// Gives a broker that predicts what came, and corrects what it believes of jobs that execute past it.
    fn brief(&mut self, now: Time, broker: usize) {
        let Some(desk) = self.desks.get_mut(broker) else { return };
        for job in std::mem::take(&mut desk.arrived).into_values() {
            let believed = desk.predictions.believed(now, job);
            if broker < self.grid.brokers() {
                let prediction = Prediction { job: job.id, run_time: believed.requested, corrections: 0 };
                self.news.push((self.grid.at_rank(broker), prediction));
            }
            self.brokers[broker].came(now, believed);
        }
        if self.brokers[broker].count() > 0 {
            while let Some((place, _)) = desk.predictions.overdue(now) {
                desk.predictions.correct(&mut desk.books[place]);
            }
            desk.books.iter_mut().for_each(|book| desk.predictions.correct_shared(now, book));
        }
    }

    fn join(&mut self, now: Time, place: usize, job: JobSpec) {
        self.books[place].joined(now, job);
        for (desk, broker) in self.desks.iter_mut().zip(&self.brokers) {
            if broker.needs() == Disclosure::All {
                let believed = desk.predictions.believed(now, job);
                desk.books[place].joined(now, believed);
            } else {
                desk.predictions.forget(job.id);
            }
        }
        self.touch(place);
    }

    /// Lets sites decide and brokers that hold jobs for want of room hear of it, until that makes no more room.
    fn fill_room(&mut self, now: Time, starts: &mut Vec<Start>) {
        while self.brokers.iter().any(|broker| broker.waits_for_room()) {
            let (before, facts) = (starts.len(), !self.undecided.is_empty());
            self.decide_sites(now, starts);
            if !facts && starts.len() == before {
                break;
            }
            self.ask_for_room(now, starts);
        }
    }

    fn ask_for_room(&mut self, now: Time, starts: &mut Vec<Start>) {
        for broker in 0..self.brokers.len() {
            if self.brokers[broker].waits_for_room() {
                self.ask(now, broker, starts);
            }
        }
    }

    /// Lets the sites decide that something happened at.
    fn decide_sites(&mut self, now: Time, starts: &mut Vec<Start>) {
        let brokers = self.grid.brokers();
        for place in std::mem::take(&mut self.dirty) {
            self.books[place].decide(now, &mut self.starts);
            self.report(now, place);
            for job in self.starts.drain(..) {
                self.running.insert(job.id, place);
                self.waiting -= 1;
                starts.push(Start { job, site: self.grid.at_rank(brokers + place) });
            }
            self.set_timer(place);
        }
    }

    /// Tells the desks what a site has decided. Of one that woke and started nothing nobody hears.
    fn report(&mut self, now: Time, place: usize) {
        if !self.undecided.remove(&place) && self.starts.is_empty() {
            return;
        }
        let started: Vec<JobId> = self.starts.iter().map(|job| job.id).collect();
        for (desk, broker) in self.desks.iter_mut().zip(&self.brokers) {
            if broker.needs() == Disclosure::All {
                desk.predictions.decided(place, &mut desk.books[place], now, &started);
            }
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
        self.waiting += 1;
        self.came.insert(broker);
        match self.desks.get_mut(broker) {
            Some(desk) => drop(desk.arrived.insert(job.key(), job)),
            None => self.brokers[broker].came(now, job),
        }
    }

    /// # Panics
    /// If the job does not run.
    fn completed(&mut self, now: Time, job: JobId) {
        let place = self.running.remove(&job);
        let place = place.unwrap_or_else(|| panic!("job {job} ended and does not run"));
        let others = self.others.remove(&job).unwrap_or_default();
        for (number, place) in std::iter::once(place).chain(others).enumerate() {
            let run_time = self.books[place].ended(now, job);
            for (desk, broker) in self.desks.iter_mut().zip(&self.brokers) {
                let book = &mut desk.books[place];
                match broker.needs() {
                    Disclosure::All if number == 0 => {
                        desk.predictions.ended(book, now, job, run_time);
                    }
                    Disclosure::All => desk.predictions.part_ended(place, book, now, job),
                    Disclosure::Nothing | Disclosure::OwnEnds => {}
                }
            }
            self.touch(place);
        }
    }

    /// # Panics
    /// If a job is wider than the grid takes.
    fn decide(&mut self, now: Time, starts: &mut Vec<Start>) {
        let came = std::mem::take(&mut self.came);
        for broker in 0..self.brokers.len() {
            // One that holds jobs for want of room, and that nobody has asked, first hears what sites make of the instant.
            if came.contains(&broker) || !self.brokers[broker].waits_for_room() {
                self.ask(now, broker, starts);
            }
        }
        self.fill_room(now, starts);
        let is_due = |broker: &dyn Broker| broker.wake_at().is_some_and(|at| at <= now);
        if self.rules.plans_batches() || self.brokers.iter().any(|broker| is_due(&**broker)) {
            self.decide_sites(now, starts);
            // Brokers are woken after everything else of the instant. A site that wakes now decides behind them.
            for broker in 0..self.brokers.len() {
                if is_due(&*self.brokers[broker]) {
                    let recalls = self.brokers[broker].woke(now);
                    assert!(recalls.is_empty(), "what was given to a site stays there: {recalls:?}");
                    self.ask(now, broker, starts);
                }
            }
        }
        while let Some(&(_, place)) = self.timers.first().filter(|(time, _)| *time <= now) {
            self.timers.pop_first();
            self.timer[place] = None;
            self.dirty.insert(place);
        }
        let before = starts.len();
        self.decide_sites(now, starts);
        if starts.len() > before {
            self.ask_for_room(now, starts);
            self.fill_room(now, starts);
            self.decide_sites(now, starts);
        }
    }

    /// Of a broker that is no member of the grid the smallest site tells.
    fn failures(&mut self, sink: &mut dyn FnMut(SiteId, FallbackCause)) {
        if !self.is_external {
            return;
        }
        for (rank, broker) in self.brokers.iter_mut().enumerate() {
            if let Some(cause) = broker.failure() {
                sink(self.grid.at_rank(rank), cause);
            }
        }
        for (place, book) in self.books.iter_mut().enumerate() {
            if let Some(cause) = book.failure() {
                sink(self.grid.at_rank(self.grid.brokers() + place), cause);
            }
        }
    }

    fn predictions(&mut self, sink: &mut dyn FnMut(SiteId, Prediction)) {
        if self.desks.is_empty() {
            return;
        }
        self.news.drain(..).for_each(|(site, prediction)| sink(site, prediction));
        for (place, book) in self.books.iter_mut().enumerate() {
            let site = self.grid.at_rank(self.grid.brokers() + place);
            book.predictions().for_each(|prediction| sink(site, prediction));
        }
    }

    fn entry(&self, grid: &Grid, job: &JobSpec) -> Option<SiteId> {
        let strategy = Strategy::Broker(self.rules);
        Submit::Home.rank(grid, strategy, job, &self.local_users).map(|rank| grid.at_rank(rank))
    }

    fn wake_at(&self) -> Option<Time> {
        let due = self.brokers.iter().filter_map(|broker| broker.wake_at()).min();
        self.timers.first().map(|&(time, _)| time).into_iter().chain(due).min()
    }

    fn waiting(&self) -> usize {
        self.waiting
    }
}

/// An idle site.
fn book(rules: &Rules, scheduler: LocalScheduler, pass: Pass, capacity: Capacity) -> Book {
    let book = Book::new(scheduler, pass, capacity, true).believing(rules.meta.estimator);
    if rules.plans_batches() { book.in_order_of_arrival() } else { book }
}
