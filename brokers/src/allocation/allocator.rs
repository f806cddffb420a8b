//! The rules of a broker: which of the admissible sites gets an arriving job (Quezada Pina 2012, §3.3).

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use scheduler::event::FallbackCause;
use scheduler::strategy::{ArrivingLoad, Completion, IdleSince, OwnWait, Plan, Population, RunningWork};
use scheduler::{Broker, BrokerRule, JobSpec, LocalScheduler, Pass, Time};

use super::admissible::admissible;
use super::balance::{Balance, Candidate};
use super::book::{Book, Waits};
use super::calendar::Calendar;
use super::decider::{BrokerDecider, Handle, Question};
use super::follow::admissible_part;
use super::fraction::Quotient;
use super::patience::Patience;
use super::planner::Planner;

/// The first stream of random numbers that brokers draw from; each adds its number among the brokers.
const FIRST_STREAM: u64 = 1 << 33;

/// What a broker is told of a site when a job arrives.
#[derive(Clone, Copy, Debug)]
pub struct Site<'a> {
    /// What it knows of it.
    pub book: &'a Book,
    /// Whether the site counts: it is there, or believed to be.
    pub is_present: bool,
    /// Whether this job may go there, if the site is admissible: of those that were not asked for it nothing is known.
    pub is_candidate: bool,
    /// When that was so; none if nothing was ever heard of the site.
    pub as_of: Option<Time>,
}

/// The rules of one broker, with what it remembers between decisions.
#[derive(Clone, Debug)]
pub struct Allocator {
    rules: Broker,
    rng: ChaCha8Rng,
    /// The place of the site that round-robin looks at first.
    turn: usize,
    /// By place of the site; empty unless plans are open loops.
    calendars: Vec<Calendar>,
    /// Who decides elsewhere, as long as it does.
    decider: Handle<dyn BrokerDecider>,
    /// Why it does not any more, until somebody was told.
    untold: Option<FallbackCause>,
    planner: Planner,
}

impl Allocator {
    /// The broker of this number among all, over sites of these sizes, ascending.
    pub fn new(
        rules: Broker,
        sizes: &[u32],
        scheduler: LocalScheduler,
        pass: Pass,
        seed: u64,
        number: u64,
    ) -> Allocator {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(FIRST_STREAM + number);
        let calendars = match rules.plan {
            Plan::Resynchronised => Vec::new(),
            Plan::OpenLoop | Plan::OpenLoopAll => {
                sizes.iter().map(|&size| Calendar::new(scheduler, pass, size)).collect()
            }
        };
        let planner = Planner::new(rules.batches, seed, number);
        Allocator { rules, rng, turn: 0, calendars, decider: Handle::none(), untold: None, planner }
    }

    /// The same, asking somebody else for each job. A clone asks nobody, and decides by the fallback.
    pub fn with_decider(self, decider: Arc<dyn BrokerDecider>) -> Allocator {
        Allocator { decider: Handle::of(decider), ..self }
    }

    /// Why whoever decides elsewhere is not asked any more. None if nobody does, or after the first time.
    pub fn failure(&mut self) -> Option<FallbackCause> {
        self.untold.take()
    }

    /// What it goes by.
    pub fn rules(&self) -> &Broker {
        &self.rules
    }

    /// The place of the site that gets the job; none if no site is wide enough that counts. A job that is chosen a site
    /// for is in the calendar from then on, if there is one.
    ///
    /// # Panics
    /// If a rule plans by a book without a queue.
    pub fn choose(&mut self, now: Time, job: &JobSpec, sites: &[Site<'_>]) -> Option<usize> {
        for calendar in &mut self.calendars {
            calendar.advance(now);
        }
        let (places, range) = self.candidates(now, job, sites);
        let asked = self.ask(now, job, sites, &places, range.clone());
        let chosen = match self.rules.own_rule() {
            _ if asked.is_some() => asked,
            BrokerRule::Random if range.is_empty() => None,
            BrokerRule::Random => Some(self.rng.random_range(range)),
            BrokerRule::RoundRobin => self.next_in_turn(&places, range),
            _ => self.least(now, job, sites, &places, range),
        };
        let place = places.at(chosen?);
        if let Some(calendar) = self.calendars.get_mut(place) {
            calendar.placed(now, *job);
        }
        Some(place)
    }

    /// Rows of jobs for sites, where a batch is planned at once: places of sites, ascending, with their jobs in order. Jobs
    /// that are wider than every site that counts are in none. Whoever has no patience for ever gets the best rows so far.
    pub fn plan(
        &mut self,
        now: Time,
        jobs: &[JobSpec],
        sites: &[Site<'_>],
        patience: Option<&dyn Patience>,
    ) -> Vec<(usize, Vec<JobSpec>)> {
        let places = Places::of(sites);
        let books: Vec<&Book> = (0..places.len()).map(|index| sites[places.at(index)].book).collect();
        let rows = self.planner.rows(now, jobs, &books, patience);
        rows.into_iter().enumerate().map(|(index, row)| (places.at(index), row)).collect()
    }

    /// The same for whoever knows the true state of every site: a reference.
    ///
    /// # Panics
    /// As [`Allocator::choose`].
    pub fn choose_knowing(&mut self, now: Time, job: &JobSpec, books: &mut [Book]) -> Option<usize> {
        if let Some(overrun) = self.rules.looks_at_plans() {
            books.iter_mut().for_each(|book| book.prepare(now, overrun));
        }
        let known = |book| Site { book, is_present: true, is_candidate: true, as_of: Some(now) };
        let sites: Vec<Site<'_>> = books.iter().map(known).collect();
        self.choose(now, job, &sites)
    }

    /// What whoever decides elsewhere says, as an index among the sites that count. None if nobody does.
    fn ask(
        &mut self,
        now: Time,
        job: &JobSpec,
        sites: &[Site<'_>],
        places: &Places,
        range: Range<usize>,
    ) -> Option<usize> {
        let decider = self.decider.get().filter(|_| !range.is_empty())?;
        let admissible: Vec<usize> = range.clone().map(|index| places.at(index)).collect();
        let question = Question { now, job, sites, admissible: &admissible };
        let chosen = decider.choose(&question).map_err(|cause| (cause, "there is no answer".to_string()));
        let index = chosen.and_then(|place| {
            let index = admissible.iter().position(|&admissible| admissible == place);
            let reason = || format!("it sends job {} to a site that is not admissible", job.id);
            index.ok_or_else(|| (FallbackCause::Nonsense, reason()))
        });
        match index {
            Ok(index) => Some(range.start + index),
            Err((cause, reason)) => {
                decider.end(&reason);
                self.decider = Handle::none();
                self.untold = Some(cause);
                None
            }
        }
    }

    /// The sites that count, and which of them are admissible.
    /// What is admissible is told by all sites that are there, whichever of them were asked.
    fn candidates(&self, now: Time, job: &JobSpec, sites: &[Site<'_>]) -> (Places, Range<usize>) {
        let places = Places::of(sites);
        let books = (0..places.len()).map(|index| sites[places.at(index)].book);
        let range = self.admissible(now, job, books);
        if sites.iter().all(|site| site.is_candidate) {
            return (places, range);
        }
        let asked: Vec<usize> =
            range.map(|index| places.at(index)).filter(|&place| sites[place].is_candidate).collect();
        let count = asked.len();
        (Places::Some(asked), 0..count)
    }

    /// The places of the admissible ones of these sites, which ascend in size.
    pub fn admissible<'a>(
        &self,
        now: Time,
        job: &JobSpec,
        books: impl Iterator<Item = &'a Book> + Clone,
    ) -> Range<usize> {
        let sizes: Vec<u32> = books.clone().map(Book::processors).collect();
        let a = match self.rules.follows {
            true => admissible_part(now, &sizes, job.processors, books.map(Book::executed)),
            false => self.rules.admissible,
        };
        admissible(&sizes, job.processors, a, self.rules.cut)
    }

    fn next_in_turn(&mut self, places: &Places, range: Range<usize>) -> Option<usize> {
        let next = range.clone().find(|&index| places.at(index) >= self.turn);
        let chosen = next.or_else(|| range.clone().next())?;
        self.turn = places.at(chosen) + 1;
        Some(chosen)
    }

    /// The first of the candidates of the least value.
    fn least(
        &self,
        now: Time,
        job: &JobSpec,
        sites: &[Site<'_>],
        places: &Places,
        range: Range<usize>,
    ) -> Option<usize> {
        let rules = &self.rules;
        let plan_of = |index: usize| self.planned_by(places.at(index), sites);
        let load_of = |index: usize| self.counted_in(places.at(index), sites).load(rules.count);
        let size_of = |index: usize| i128::from(sites[places.at(index)].book.processors());
        let by_time = |value: &dyn Fn(usize) -> Time| first_least(range.clone(), value, Ord::cmp);
        let by_quotient =
            |value: &dyn Fn(usize) -> Quotient| first_least(range.clone(), value, Quotient::compare);
        match rules.own_rule() {
            BrokerRule::Random | BrokerRule::RoundRobin | BrokerRule::External | BrokerRule::Genetic => {
                unreachable!("they compare nothing")
            }
            BrokerRule::Jobs => by_quotient(&|index| Quotient::of(load_of(index).jobs.into(), 1)),
            BrokerRule::JobsPerProcessor => {
                by_quotient(&|index| Quotient::of(load_of(index).jobs.into(), size_of(index)))
            }
            BrokerRule::ParallelLoad => {
                by_quotient(&|index| Quotient::of(load_of(index).processors.into(), size_of(index)))
            }
            BrokerRule::BalancedLoad => {
                let loads = (0..places.len())
                    .map(|index| (load_of(index).processors, sites[places.at(index)].book.processors()));
                let balance = Balance::of(loads.collect());
                let candidate = |index| {
                    let load = load_of(index);
                    let times = match rules.arriving {
                        ArrivingLoad::Once => 1,
                        ArrivingLoad::PerJob => load.jobs,
                    };
                    let processors = sites[places.at(index)].book.processors();
                    Candidate { load: load.processors, processors, more: times * u64::from(job.processors) }
                };
                first_least(range, candidate, |one, other| balance.compare(one, other))
            }
            BrokerRule::LowerBound => by_quotient(&|index| {
                let work = match rules.running {
                    RunningWork::Full => load_of(index).work,
                    RunningWork::Remaining => self.counted_in(places.at(index), sites).remaining_work(now),
                };
                Quotient::of(work, size_of(index))
            }),
            BrokerRule::CompletionTime => by_time(&|index| self.completion(now, job, plan_of(index))),
            BrokerRule::StartTime => {
                by_time(&|index| plan_of(index).plan_for(now, rules.overrun, job.id).with(job).start)
            }
            BrokerRule::MeanWait => by_quotient(&|index| {
                let waits = self.waits(now, job, plan_of(index));
                Quotient::of(waits.sum, waits.jobs.max(1))
            }),
            BrokerRule::WeightedWait => by_quotient(&|index| {
                let waits = self.waits(now, job, plan_of(index));
                Quotient::of(waits.by_size, waits.jobs.max(1))
            }),
        }
    }

    /// What a site is planned by.
    fn planned_by<'a>(&'a self, place: usize, sites: &[Site<'a>]) -> &'a Book {
        self.calendars.get(place).map_or(sites[place].book, Calendar::book)
    }

    /// What the load of a site is counted in.
    fn counted_in<'a>(&'a self, place: usize, sites: &[Site<'a>]) -> &'a Book {
        match self.rules.plan {
            Plan::OpenLoopAll => self.planned_by(place, sites),
            Plan::Resynchronised | Plan::OpenLoop => sites[place].book,
        }
    }

    fn completion(&self, now: Time, job: &JobSpec, book: &Book) -> Time {
        let overrun = self.rules.overrun;
        let idle = || match self.rules.idle {
            IdleSince::Now => now,
            IdleSince::LastEnd => book.last_end().unwrap_or(Time::from_micros(i64::MIN)),
        };
        match self.rules.completion {
            Completion::SiteBefore => book.plan(now, overrun, None).idle_from().unwrap_or_else(idle),
            Completion::SiteAfter => book.plan(now, overrun, Some(job)).idle_from().unwrap_or_else(idle),
            Completion::JobAfter => book.plan_for(now, overrun, job.id).with(job).end,
        }
    }

    /// Waits of the jobs of a site, those that wait as planned.
    fn waits(&self, now: Time, job: &JobSpec, book: &Book) -> Waits {
        let mut waits = match self.rules.population {
            Population::Ever => book.waits_ever(),
            Population::System => book.waits_of_running(),
        };
        let arriving = match self.rules.own_wait {
            OwnWait::With => Some(job),
            OwnWait::Without => None,
        };
        let plan = book.plan(now, self.rules.overrun, arriving);
        for planned in plan.jobs() {
            let waiting = book.waiting_job(planned.job).unwrap_or(job);
            waits.add(waiting, planned.start);
        }
        waits
    }
}

/// The first of the least values.
fn first_least<V>(
    range: Range<usize>,
    value: impl Fn(usize) -> V,
    compare: impl Fn(&V, &V) -> Ordering,
) -> Option<usize> {
    let mut least: Option<(usize, V)> = None;
    for index in range {
        let value = value(index);
        if least.as_ref().is_none_or(|(_, best)| compare(&value, best) == Ordering::Less) {
            least = Some((index, value));
        }
    }
    least.map(|(index, _)| index)
}

/// The sites that count, by number among them.
enum Places {
    All(usize),
    Some(Vec<usize>),
}

impl Places {
    fn of(sites: &[Site<'_>]) -> Places {
        if sites.iter().all(|site| site.is_present) {
            return Places::All(sites.len());
        }
        Places::Some((0..sites.len()).filter(|&place| sites[place].is_present).collect())
    }

    fn len(&self) -> usize {
        match self {
            Places::All(count) => *count,
            Places::Some(places) => places.len(),
        }
    }

    fn at(&self, index: usize) -> usize {
        match self {
            Places::All(_) => index,
            Places::Some(places) => places[index],
        }
    }
}
